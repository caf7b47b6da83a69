/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Contexts: which table and VMID a stream translates with.
 *
 * The VMIDs are the driver's own, one for each pair of context and SMMU, and
 * have nothing to do with those of the CPUs.
 */

#include <xen/domain_page.h>
#include <xen/lib.h>
#include <xen/mm.h>
#include <xen/sched.h>
#include <xen/xmalloc.h>

#include "pviommu.h"
#include "viommu/viommu.h"

/* One empty root for all blocked endpoints; never written, never freed. */
static struct page_info *__read_mostly blocked_root;

unsigned int pvi_ias(void)
{
    const struct smmu_device *smmu;
    unsigned int ias = 48;

    smmu_for_each ( smmu )
        ias = min(ias, smmu->ias);

    return ias;
}

unsigned int pvi_ctx_bits(void)
{
    unsigned int ias = pvi_ias();

    /*
     * A walk with 4K pages may begin at level 0 only with 44 bits of output
     * or more, and level 1 resolves 39 bits with one page.
     */
    return ias >= 44 ? ias : min(ias, s2_shift(0) + 0U);
}

static bool pvi_coherent(void)
{
    const struct smmu_device *smmu;

    smmu_for_each ( smmu )
        if ( !(smmu->flags & SMMU_F_COHERENT) )
            return false;

    return true;
}

int pvi_context_global_init(void)
{
    void *p;

    if ( blocked_root )
        return 0;

    blocked_root = alloc_domheap_page(NULL, 0);
    if ( !blocked_root )
        return -ENOMEM;

    p = __map_domain_page(blocked_root);
    clear_page(p);
    clean_dcache_va_range(p, PAGE_SIZE);
    unmap_domain_page(p);

    return 0;
}

void pvi_context_init(struct pvi_context *ctx, struct pvi_domain *pd,
                      enum pvi_ctx_kind kind)
{
    ctx->pd = pd;
    ctx->kind = kind;
    spin_lock_init(&ctx->att_lock);
    INIT_LIST_HEAD(&ctx->atts);
    INIT_LIST_HEAD(&ctx->idle_atts);
    INIT_LIST_HEAD(&ctx->dying);
}

struct pvi_context *pvi_context_create(struct pvi_domain *pd, uint32_t id)
{
    struct pvi_context *ctx = xzalloc(struct pvi_context);

    if ( !ctx )
        return NULL;

    pvi_context_init(ctx, pd, PVI_CTX_PAGING);
    ctx->id = id;
    if ( s2pt_init(&ctx->pt, pd->d, pvi_ctx_bits(), !pvi_coherent()) )
    {
        xfree(ctx);
        return NULL;
    }

    return ctx;
}

void pvi_context_enter(struct pvi_context *ctx)
{
    struct pvi_domain *pd = ctx->pd;

    pvi_lock(&pd->tlock, PVI_LOCK_TABLES);
    pd->ctx[ctx->id] = ctx;
    pvi_unlock(&pd->tlock, PVI_LOCK_TABLES);
}

void pvi_context_kill(struct pvi_context *ctx)
{
    struct pvi_domain *pd = ctx->pd;

    /*
     * No stream uses it, its VMIDs were invalidated: pvi_stream_set().  Where
     * that failed nothing is reaped any more.
     */
    ASSERT(!ctx->nr_endpoints && (list_empty(&ctx->atts) || pd->broken));

    pvi_lock(&pd->tlock, PVI_LOCK_TABLES);
    pd->ctx[ctx->id] = NULL;
    pvi_unlock(&pd->tlock, PVI_LOCK_TABLES);
    if ( pd->viommu )
        viommu_context_gone(pd->viommu, ctx);

    list_add_tail(&ctx->dying, &pd->dying);
    pvi_work(pd);
}

bool pvi_context_reap(struct pvi_domain *pd, int *budget)
{
    struct pvi_context *ctx, *next;

    ASSERT(spin_is_locked(&pd->lock));

    list_for_each_entry_safe ( ctx, next, &pd->dying, dying )
    {
        bool done;

        pvi_lock(&pd->tlock, PVI_LOCK_TABLES);
        /* Entries of the flush queue that name it are released first. */
        done = !ctx->fq_entries &&
               (ctx->kind != PVI_CTX_PAGING ||
                s2pt_destroy(&ctx->pt, &ctx->cursor, budget));
        pvi_unlock(&pd->tlock, PVI_LOCK_TABLES);
        if ( !done )
            return false;

        list_del(&ctx->dying);
        pd->nr_contexts--;
        xfree(ctx);
    }

    return true;
}

/* Physical address size as encoded in STE.S2PS and VTCR_EL2.PS. */
static unsigned int ps_encode(unsigned int bits)
{
    return bits >= 48 ? 5 : bits >= 44 ? 4 : bits >= 42 ? 3 :
           bits >= 40 ? 2 : bits >= 36 ? 1 : 0;
}

void pvi_context_cfg(const struct pvi_context *ctx,
                     const struct smmu_device *smmu, unsigned int vmid,
                     struct smmu_s2_cfg *cfg)
{
    unsigned int ias = pvi_ctx_bits();

    cfg->vmid = vmid;
    cfg->ps = ps_encode(smmu->oas);

    if ( ctx->kind == PVI_CTX_DEFAULT )
    {
        register_t vtcr = READ_SYSREG(VTCR_EL2);

        /* The CPUs' geometry; Xen has limited it to what the SMMU takes. */
        cfg->t0sz = vtcr & 0x3f;
        cfg->sl0 = (vtcr >> 6) & 3;
        cfg->ttb = page_to_maddr(ctx->pd->d->arch.p2m.root);
        return;
    }

    cfg->t0sz = 64 - ias;
    cfg->sl0 = ias <= s2_shift(0) ? 1 : 2;
    cfg->ttb = page_to_maddr(ctx->kind == PVI_CTX_BLOCKED ? blocked_root
                                                          : ctx->pt.root);
}

static struct pvi_att *att_find(struct list_head *list,
                                const struct smmu_device *smmu)
{
    struct pvi_att *att;

    list_for_each_entry ( att, list, list )
        if ( att->smmu == smmu )
            return att;

    return NULL;
}

/* A VMID that nothing uses so far. */
static struct pvi_att *att_create(struct smmu_device *smmu, int *rc)
{
    struct pvi_att *att = xzalloc(struct pvi_att);
    int vmid;

    *rc = -ENOMEM;
    if ( !att )
        return NULL;

    vmid = smmu_vmid_alloc(smmu);
    if ( vmid < 0 )
    {
        printk_once(XENLOG_WARNING
                    "pviommu: %s: all %u VMIDs are in use\n",
                    dt_node_full_name(smmu->node), 1U << smmu->vmid_bits);
        xfree(att);
        *rc = vmid;
        return NULL;
    }
    att->smmu = smmu;
    att->vmid = vmid;
    *rc = 0;

    return att;
}

int pvi_att_reserve(struct pvi_context *ctx, struct smmu_device *smmu)
{
    struct pvi_att *att = att_find(&ctx->atts, smmu) ?:
                          att_find(&ctx->idle_atts, smmu);
    int rc = 0;

    if ( !att )
    {
        att = att_create(smmu, &rc);
        if ( !att )
            return rc;
        list_add_tail(&att->list, &ctx->idle_atts);
    }
    att->reserved++;

    return 0;
}

void pvi_att_unreserve(struct pvi_context *ctx, struct smmu_device *smmu)
{
    struct pvi_att *att = att_find(&ctx->idle_atts, smmu);

    if ( !att )
    {
        /* In use, or kept by nobody after a failed sync. */
        att = att_find(&ctx->atts, smmu);
        if ( att )
            att->reserved--;
        return;
    }
    if ( --att->reserved )
        return;

    /* Never used, or invalidated when its last stream left. */
    list_del(&att->list);
    smmu_vmid_free(smmu, att->vmid);
    xfree(att);
}

int pvi_att_get(struct pvi_context *ctx, struct smmu_device *smmu)
{
    struct pvi_att *att;
    int rc;

    ASSERT(spin_is_locked(&ctx->pd->lock));

    if ( ctx->kind == PVI_CTX_BLOCKED )
        return SMMU_VMID_BLOCKED;

    att = att_find(&ctx->atts, smmu);
    if ( att )
    {
        att->nr_streams++;
        return att->vmid;
    }

    att = att_find(&ctx->idle_atts, smmu);
    if ( att )
        list_del(&att->list);
    else
    {
        att = att_create(smmu, &rc);
        if ( !att )
            return rc;
    }
    att->nr_streams = 1;
    /* Before any stream uses it, so that no p2m change misses this SMMU. */
    pvi_lock(&ctx->att_lock, PVI_LOCK_ATT);
    list_add_tail(&att->list, &ctx->atts);
    pvi_unlock(&ctx->att_lock, PVI_LOCK_ATT);

    return att->vmid;
}

int pvi_att_put(struct pvi_context *ctx, struct smmu_device *smmu)
{
    struct pvi_att *att;
    struct smmu_batch b;
    int rc;

    ASSERT(spin_is_locked(&ctx->pd->lock));

    if ( ctx->kind == PVI_CTX_BLOCKED )
        return 0;

    att = att_find(&ctx->atts, smmu);
    if ( --att->nr_streams )
        return 0;

    smmu_batch_init(&b, smmu);
    rc = smmu_tlbi_vmid(&b, att->vmid);
    rc = rc ?: smmu_batch_sync(&b);
    pvi_count(ctx->pd, b.total, 1, PVI_CAUSE_CONFIG);

    pvi_lock(&ctx->att_lock, PVI_LOCK_ATT);
    list_del(&att->list);
    pvi_unlock(&ctx->att_lock, PVI_LOCK_ATT);

    /* Not reused after a failed sync: its entries may still be in a TLB. */
    if ( rc )
        xfree(att);
    else if ( att->reserved )
        list_add_tail(&att->list, &ctx->idle_atts);
    else
    {
        smmu_vmid_free(smmu, att->vmid);
        xfree(att);
    }

    return rc;
}

int pvi_stream_set(struct pvi_stream *s, struct pvi_context *ctx)
{
    struct pvi_context *old = s->ctx;
    unsigned int syncs = 0;
    int rc;

    if ( ctx == old )
        return 0;
    /* What was cut off stays so. */
    if ( ctx && ACCESS_ONCE(ctx->pd->broken) )
        return -ETIMEDOUT;

    if ( ctx )
    {
        struct smmu_s2_cfg cfg;
        int vmid = pvi_att_get(ctx, s->smmu);

        if ( vmid < 0 )
            return vmid;
        pvi_context_cfg(ctx, s->smmu, vmid, &cfg);
        rc = smmu_ste_s2(s->smmu, s->sid, &cfg, &syncs);
    }
    else
        rc = smmu_ste_invalid(s->smmu, s->sid, &syncs);

    pvi_count((ctx ?: old)->pd, 0, syncs, PVI_CAUSE_CONFIG);
    s->ctx = ctx;

    if ( old && !rc )
        rc = pvi_att_put(old, s->smmu);
    if ( rc )
        pvi_fail((ctx ?: old)->pd, "a stream could not be switched");

    return rc;
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
