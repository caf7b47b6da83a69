/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Pages of other domains, and registers of devices, that are mapped in
 * contexts: where and by which of our guest frames.
 *
 * A domain's own pages are found from nowhere: they stay pinned.  A page that
 * another domain has granted must leave the devices together with the p2m
 * (invariant 10), as must the registers of a device that goes to another
 * domain, and looking for them in all tables has no bound.  So each leaf for
 * such a page has 16 bytes here: the only bookkeeping per mapping, and only for
 * these.
 *
 * One page may be at several guest frames, as when its owner has granted it
 * twice, and each of them goes by itself.
 */

#include <xen/domain_page.h>
#include <xen/lib.h>
#include <xen/mm.h>
#include <xen/sched.h>
#include <xen/xmalloc.h>

#include "pviommu.h"

/* Buckets of a page each; 64 hold the 16320 pages of 15 full blkback rings. */
#define BUCKETS         64

/* Addresses of all three kinds have 48 bits at most. */
struct rmap {
    uint64_t mfn:36, gfn_low:28;
    uint64_t iova_pfn:36, ctx_id:12, gfn_high:16;
};

/* The first place of a page counts the others. */
#define BUCKET_MAX      (PAGE_SIZE / sizeof(struct rmap) - 1)

struct pvi_foreign {
    struct page_info *bucket[BUCKETS];
};

static struct page_info **bucket_of(struct pvi_domain *pd, unsigned int ctx_id,
                                    mfn_t mfn, bool mmio)
{
    uint64_t m = mfn_x(mfn);

    /*
     * Each context has a leaf for the doorbell of the ITS: they go to different
     * buckets, and registers are looked for in all.
     */
    if ( mmio )
        m += ctx_id;

    /* Neighbours go to different buckets. */
    return &pd->foreign->bucket[(m ^ (m >> 6) ^ (m >> 12)) % BUCKETS];
}

static struct rmap record(unsigned int ctx_id, uint64_t iova, gfn_t gfn,
                          mfn_t mfn)
{
    BUILD_BUG_ON(sizeof(struct rmap) != 16);
    BUILD_BUG_ON(PVI_MAX_CONTEXTS > 1U << 12);
    BUILD_BUG_ON(S2_ADDR_MASK >> 48);

    return (struct rmap){
        .mfn = mfn_x(mfn),
        .gfn_low = gfn_x(gfn),
        .iova_pfn = iova >> PAGE_SHIFT,
        .ctx_id = ctx_id,
        .gfn_high = gfn_x(gfn) >> 28,
    };
}

static uint64_t rmap_gfn(const struct rmap *r)
{
    return ((uint64_t)r->gfn_high << 28) | r->gfn_low;
}

int pvi_foreign_add(struct pvi_domain *pd, unsigned int ctx_id, uint64_t iova,
                    gfn_t gfn, mfn_t mfn, bool mmio)
{
    struct page_info **b;
    struct rmap *r;
    uint64_t nr;
    int rc = 0;

    ASSERT(spin_is_locked(&pd->tlock));

    if ( !pd->foreign )
    {
        pd->foreign = xzalloc(struct pvi_foreign);
        if ( !pd->foreign )
            return -ENOMEM;
    }

    b = bucket_of(pd, ctx_id, mfn, mmio);
    if ( !*b )
    {
        *b = pvi_pool_get(pd->d);
        if ( !*b )
            return -ENOMEM;
        r = __map_domain_page(*b);
        r->mfn = 0;
    }
    else
        r = __map_domain_page(*b);

    nr = r->mfn;
    if ( nr < BUCKET_MAX )
    {
        r[nr + 1] = record(ctx_id, iova, gfn, mfn);
        r->mfn = nr + 1;
    }
    else
        rc = -ENOMEM;
    unmap_domain_page(r);

    return rc;
}

void pvi_foreign_del(struct pvi_domain *pd, unsigned int ctx_id, uint64_t iova,
                     mfn_t mfn, bool mmio)
{
    struct page_info **b = bucket_of(pd, ctx_id, mfn, mmio), *empty = NULL;
    uint64_t nr;
    struct rmap *r = __map_domain_page(*b);
    unsigned int i;

    ASSERT(spin_is_locked(&pd->tlock));

    nr = r->mfn;
    /* What was added last is likely to go first: Linux reuses addresses so. */
    for ( i = nr; i; i-- )
        if ( r[i].mfn == mfn_x(mfn) && r[i].ctx_id == ctx_id &&
             r[i].iova_pfn == iova >> PAGE_SHIFT )
        {
            r[i] = r[nr];
            r->mfn = --nr;
            break;
        }
    ASSERT(i);
    if ( !nr )
        empty = *b;
    unmap_domain_page(r);

    if ( empty )
    {
        /* Only this file knows the page; no hardware does. */
        *b = NULL;
        pvi_pool_put(pd->d, empty);
    }
}

/* The entries of one bucket for guest frames from @gfn on. */
static int revoke_in(struct pvi_domain *pd, const struct page_info *bucket,
                     gfn_t gfn, unsigned long nr, bool *found)
{
    struct rmap *r = __map_domain_page(bucket);
    unsigned int i;
    int rc = 0;

    for ( i = 1; !rc && i <= r->mfn; i++ )
    {
        struct s2_cleared c = { .first = 1, .last = 0 };
        uint64_t iova = (uint64_t)r[i].iova_pfn << PAGE_SHIFT;
        struct pvi_context *ctx = pd->ctx[r[i].ctx_id];
        unsigned int level;
        int slot, one = 1;
        s2_pte_t p;

        /* Without a context by that id it is dying: no device uses it. */
        if ( rmap_gfn(&r[i]) - gfn_x(gfn) >= nr || !ctx ||
             ctx->kind != PVI_CTX_PAGING )
            continue;
        *found = true;
        p = s2pt_lookup(&ctx->pt, iova, &level);
        if ( (p & S2_ADDR_MASK) != (uint64_t)r[i].mfn << PAGE_SHIFT )
            continue; /* unmapped already, and maybe not synced yet */

        slot = pvi_fq_open(pd, ctx, iova, iova, 0);
        if ( slot < 0 )
            rc = slot;
        else
        {
            s2pt_unmap(&ctx->pt, iova, iova + PAGE_SIZE - 1, slot, &one, &c);
            pvi_fq_close(pd, ctx, slot, &c);
            /* What is left of the mapping behind the hole is one of its own. */
            s2pt_begin(&ctx->pt, iova + PAGE_SIZE);
            pd->stats.revoked++;
        }
    }
    unmap_domain_page(r);

    return rc;
}

int pvi_foreign_revoke(struct pvi_domain *pd, gfn_t gfn, mfn_t mfn,
                       unsigned long nr, bool *found)
{
    unsigned int i;
    int rc = 0;

    ASSERT(spin_is_locked(&pd->tlock));

    if ( !pd->foreign )
        return 0;

    if ( !mfn_eq(mfn, INVALID_MFN) && nr == 1 )
    {
        const struct page_info *bucket = *bucket_of(pd, 0, mfn, false);

        return bucket ? revoke_in(pd, bucket, gfn, 1, found) : 0;
    }

    for ( i = 0; !rc && i < BUCKETS; i++ )
        if ( pd->foreign->bucket[i] )
            rc = revoke_in(pd, pd->foreign->bucket[i], gfn, nr, found);

    return rc;
}

void pvi_foreign_free(struct pvi_domain *pd)
{
    unsigned int i;

    /* All contexts are gone, and with each entry its record. */
    for ( i = 0; pd->foreign && i < BUCKETS; i++ )
        ASSERT(!pd->foreign->bucket[i]);
    xfree(pd->foreign);
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * tab-width: 4
 * indent-tabs-mode: nil
 * End:
 */
