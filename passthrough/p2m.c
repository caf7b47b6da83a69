/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Changes of a domain's p2m, where devices translate with it, and pages that
 * leave it while contexts map them.
 *
 * Every entry that goes is queued, with a reference on its pages, so that
 * nobody else gets them before a sync.  What differs is who waits:
 *   - additions: nobody, an SMMU doesn't cache what was invalid;
 *   - changes in place, and tables that go: the change itself (break before
 *     make, and Xen frees the table next);
 *   - removals, strict: the end of the operation, which is when Xen drops the
 *     p2m lock or, in a batch, when the batch ends;
 *   - removals, lazy: nobody.  But the end of a grant, and of a device's
 *     registers, does wait in either mode: the domain that granted the page
 *     goes on using it, the device may go to another domain, and one domain's
 *     laziness is not another's risk;
 *   - removals of a guest's pages while that guest is built, strict: its start.
 *     The toolstack's kernel takes them out one by one, tens of thousands of
 *     them.  Until the guest runs its pages hold only what the toolstack put
 *     there, and the queue sees to it that nobody else gets them.
 */

#include <xen/domain_page.h>
#include <xen/iommu.h>
#include <xen/lib.h>
#include <xen/mm.h>
#include <xen/percpu.h>
#include <xen/pviommu.h>
#include <xen/sched.h>

#include <asm/p2m.h>

#include "pviommu.h"

/* A batch of p2m operations on this CPU; Xen isn't preempted in between. */
struct p2m_batch {
    bool open;
    struct pvi_domain *pd;      /* whose removals have to be waited for */
};
static DEFINE_PER_CPU(struct p2m_batch, p2m_batch);

/* Orders up to this one are pinned page by page; above, the removal waits. */
#define PIN_ORDER_MAX   9

static struct pvi_domain *p2m_pd(const struct domain *d)
{
    return is_iommu_enabled(d) ? dom_pvi(d) : NULL;
}

/* The domain that owns such a page goes on using it after the removal. */
static bool is_grant(p2m_type_t t)
{
    return t == p2m_grant_map_rw || t == p2m_grant_map_ro ||
           t == p2m_iommu_map_rw || t == p2m_iommu_map_ro;
}

/* Nothing keeps the device from going to another domain next. */
static bool is_mmio(p2m_type_t t)
{
    return t == p2m_mmio_direct_dev || t == p2m_mmio_direct_nc ||
           t == p2m_mmio_direct_c;
}

/*
 * May a removal, which is queued, wait until the domain that owns the page is
 * started?
 */
static bool may_wait_for_start(struct pvi_domain *pd, mfn_t mfn)
{
    const struct domain *owner;
    bool wait;

    if ( !mfn_valid(mfn) )
        return false;
    owner = page_get_owner(mfn_to_page(mfn));

    /*
     * Queued before the look at the flag.  Partner: pviommu_domain_starts(),
     * which flushes after the flag was set.
     */
    smp_mb();
    if ( !owner || is_system_domain(owner) ||
         ACCESS_ONCE(owner->creation_finished) )
        return false;

    pvi_lock(&pd->tlock, PVI_LOCK_TABLES);
    wait = pd->fq.pages < PVI_FQ_PAGES;
    pvi_fq_watch(pd);
    pvi_unlock(&pd->tlock, PVI_LOCK_TABLES);

    return wait;
}

/*
 * Invalidate addresses of the default context at once, and wait.  With @split
 * an SMMU may be left out that bears a block and its pages side by side: they
 * say the same, and each later change of a page drops both (IHI 0070 3.21.1,
 * IDR3.BBML 2).
 */
static int flush_now(struct pvi_domain *pd, uint64_t start, uint64_t last,
                     bool split)
{
    struct pvi_context *ctx = &pd->dflt;
    /* SMMUs beyond these are waited for one by one. */
    struct { struct smmu_device *smmu; uint32_t ticket; } t[8];
    unsigned int nr = 0, i;
    struct pvi_att *att;
    int rc = 0;

    pvi_lock(&ctx->att_lock, PVI_LOCK_ATT);
    list_for_each_entry ( att, &ctx->atts, list )
    {
        struct smmu_batch b;

        if ( split && att->smmu->bbml == 2 )
            continue;

        smmu_batch_init(&b, att->smmu);
        if ( smmu_tlbi_range_cost(att->smmu, ((last - start) >> PAGE_SHIFT) + 1,
                                  false, 0) > PVI_TLBI_RANGES_MAX )
            rc = smmu_tlbi_vmid(&b, att->vmid);
        else
            /* A table may have gone: not leaf only. */
            rc = smmu_tlbi_range(&b, att->vmid, start, last, false, 0);
        t[nr].smmu = att->smmu;
        rc = rc ?: smmu_batch_submit(&b, true, &t[nr].ticket);
        pvi_count(pd, b.total, b.syncs, PVI_CAUSE_P2M);
        if ( !rc && nr == ARRAY_SIZE(t) - 1 )
            rc = smmu_sync_wait(t[nr].smmu, t[nr].ticket);
        else
            nr++;
        if ( rc )
            break;
    }
    pvi_unlock(&ctx->att_lock, PVI_LOCK_ATT);

    for ( i = 0; !rc && i < nr; i++ )
        rc = smmu_sync_wait(t[i].smmu, t[i].ticket);

    if ( rc )
        pvi_fail(pd, "an invalidation of the p2m did not complete");

    return rc;
}

/* Wait for all that is queued. */
static int flush_queued(struct pvi_domain *pd, enum pvi_cause cause)
{
    int rc = pvi_fq_flush(pd, cause);

    if ( !rc )
        pvi_fq_release_later(pd);

    return rc;
}

/*
 * References that are never dropped: a sync has failed, and whoever has the
 * pages now must not let go of them.  Returns where one could not be had.
 */
static unsigned long pin(mfn_t mfn, unsigned long from, unsigned long nr)
{
    while ( from < nr && page_get_owner_and_reference(
                             mfn_to_page(mfn_add(mfn, from))) )
        from++;

    return from;
}

/*
 * Queue what was removed, with its pages.  False: that was not possible, and
 * the invalidation is over.
 */
static bool queue(struct pvi_domain *pd, uint64_t start, uint64_t last,
                  mfn_t mfn)
{
    unsigned long nr = ((last - start) >> PAGE_SHIFT) + 1, refs = 0;
    enum pvi_cause due;
    bool queued;

    /* Whose ever it is: nobody else is to get it before the sync. */
    if ( mfn_valid(mfn) && nr <= 1UL << PIN_ORDER_MAX )
        refs = pin(mfn, 0, nr);

    pvi_lock(&pd->tlock, PVI_LOCK_TABLES);
    queued = (!mfn_valid(mfn) || refs == nr) &&
             pvi_fq_p2m(pd, start, last, mfn, refs);
    due = pvi_fq_due(pd);
    pvi_unlock(&pd->tlock, PVI_LOCK_TABLES);

    if ( !queued )
    {
        if ( flush_now(pd, start, last, false) )
        {
            if ( mfn_valid(mfn) )
                pin(mfn, refs, nr);
        }
        else
            while ( refs )
                /* A sync has completed since the entry was cleared. */
                put_page(mfn_to_page(mfn_add(mfn, --refs)));
    }
    else if ( due != PVI_NR_CAUSES )
        /* A failure has been told, and the domain stopped. */
        flush_queued(pd, due);

    return queued;
}

/*
 * A table that goes, by a sync that has failed: all that it leads to is pinned.
 * The walk is long, and the domain's last.
 */
static void pin_table(lpae_t old, unsigned int level)
{
    const lpae_t *t[S2_LAST_LEVEL + 1];
    unsigned int i[S2_LAST_LEVEL + 1], top = level + 1, l = top;

    t[l] = map_domain_page(lpae_get_mfn(old));
    i[l] = 0;
    while ( l >= top )
    {
        lpae_t e;

        if ( i[l] == S2_ENTRIES )
        {
            unmap_domain_page(t[l--]);
            continue;
        }
        e = t[l][i[l]++];
        if ( !lpae_is_valid(e) )
            continue;
        if ( l < S2_LAST_LEVEL && e.walk.table )
        {
            t[++l] = map_domain_page(lpae_get_mfn(e));
            i[l] = 0;
        }
        else if ( mfn_valid(lpae_get_mfn(e)) )
            pin(lpae_get_mfn(e), 0, 1UL << (s2_shift(l) - PAGE_SHIFT));
    }
}

/*
 * Take pages of other domains, and registers, out of the contexts.  True: some
 * were there, or had been unmapped a moment ago, so that a flush has to follow.
 * @mfn: as for pvi_foreign_revoke().
 */
static bool revoke(struct pvi_domain *pd, gfn_t gfn, mfn_t mfn,
                   unsigned long nr)
{
    bool found = false;
    int rc;

    if ( likely(!ACCESS_ONCE(pd->foreign)) )
        return false;

    do {
        pvi_lock(&pd->tlock, PVI_LOCK_TABLES);
        rc = pvi_foreign_revoke(pd, gfn, mfn, nr, &found);
        pvi_unlock(&pd->tlock, PVI_LOCK_TABLES);
        /* No slot is left: make one. */
        if ( rc && flush_queued(pd, PVI_CAUSE_COUNT) )
            return true;
    } while ( rc );

    return found;
}

void pviommu_p2m_change(struct p2m_domain *p2m, gfn_t gfn, unsigned int order,
                        lpae_t *old, unsigned int level, bool removing)
{
    struct pvi_domain *pd = p2m_pd(p2m->domain);
    uint64_t start = gfn_to_gaddr(gfn);
    uint64_t last = start + ((uint64_t)PAGE_SIZE << order) - 1;
    mfn_t mfn = lpae_get_mfn(*old);
    p2m_type_t t = old->p2m.type;
    bool table = level < S2_LAST_LEVEL && old->walk.table;
    bool in_use, revoked = false, queued = false;

    if ( !pd )
        return;
    pvi_lock_check(PVI_LOCK_P2M + 1);

    /*
     * The changed entry before the look at the list: a device that is attached
     * later walks what was written.  Partners: the SMMU's next walk, and
     * att_get(), which enters the list before the stream names the table.
     */
    dsb(ishst);
    in_use = pvi_in_use(&pd->dflt);

    if ( !lpae_is_valid(*old) )
    {
        bool overlap = false;

        if ( !removing && in_use )
        {
            pvi_lock(&pd->tlock, PVI_LOCK_TABLES);
            overlap = pvi_fq_overlaps(pd, &pd->dflt, start, last);
            pvi_unlock(&pd->tlock, PVI_LOCK_TABLES);
        }
        if ( overlap )
            flush_queued(pd, PVI_CAUSE_OVERLAP);
        return;
    }

    /* What a table leads to may be of any kind. */
    if ( table || is_mmio(t) )
        revoked = revoke(pd, gfn, INVALID_MFN, 1UL << order);
    else if ( is_grant(t) || p2m_is_foreign(t) )
        revoked = revoke(pd, gfn, mfn, 1UL << order);

    if ( in_use )
    {
        if ( !table && removing )
            queued = queue(pd, start, last, mfn);
        else if ( flush_now(pd, start, last, false) )
        {
            if ( table )
                pin_table(*old, level);
            else if ( mfn_valid(mfn) )
                pin(mfn, 0, 1UL << order);
            /* An SMMU may go on walking what Xen would free next. */
            *old = (lpae_t){};
        }
    }

    if ( !revoked && !queued )
        return;

    if ( !removing || table )
        flush_queued(pd, PVI_CAUSE_P2M);
    else if ( is_grant(t) || is_mmio(t) ||
              (ACCESS_ONCE(pd->strict) &&
               (revoked || !p2m_is_foreign(t) ||
                !may_wait_for_start(pd, mfn))) )
        /*
         * Looked at after it was queued under tlock: who turns strict on in
         * between flushes what he finds.
         */
        pd->p2m_wait = true;
}

void pviommu_p2m_break(struct p2m_domain *p2m, gfn_t gfn, unsigned int level)
{
    struct pvi_domain *pd = p2m_pd(p2m->domain);
    uint64_t size = 1UL << s2_shift(level);
    uint64_t start = gfn_to_gaddr(gfn) & ~(size - 1);

    if ( !pd )
        return;

    dsb(ishst); /* as above */
    if ( pvi_in_use(&pd->dflt) )
        flush_now(pd, start, start + size - 1, true);
}

void pviommu_p2m_unlock(struct p2m_domain *p2m)
{
    struct p2m_batch *b = &this_cpu(p2m_batch);
    struct pvi_domain *pd = p2m_pd(p2m->domain);

    if ( !pd || likely(!pd->p2m_wait) )
        return;
    pd->p2m_wait = false;

    if ( (b->open || this_cpu(iommu_dont_flush_iotlb)) &&
         (!b->pd || b->pd == pd) )
        b->pd = pd;
    else
        flush_queued(pd, PVI_CAUSE_P2M);
}

void pviommu_domain_starts(void)
{
    struct domain *d;

    /* The flag before the look at the queues: see may_wait_for_start(). */
    smp_mb();

    rcu_read_lock(&domlist_read_lock);
    for_each_domain ( d )
    {
        struct pvi_domain *pd = p2m_pd(d);

        if ( pd && ACCESS_ONCE(pd->strict) )
            flush_queued(pd, PVI_CAUSE_P2M);
    }
    rcu_read_unlock(&domlist_read_lock);
}

bool pviommu_owns_p2m(const struct domain *d)
{
    return p2m_pd(d);
}

int pvi_p2m_settle(void)
{
    struct p2m_batch *b = &this_cpu(p2m_batch);
    struct pvi_domain *pd = b->pd;

    b->pd = NULL;

    return pd ? flush_queued(pd, PVI_CAUSE_P2M) : 0;
}

void pviommu_p2m_batch_begin(void)
{
    this_cpu(p2m_batch).open = true;
}

void pviommu_p2m_batch_end(void)
{
    this_cpu(p2m_batch).open = false;
    /* A failure has been told, and the domain stopped. */
    pvi_p2m_settle();
}

int pvi_p2m_flush_all(struct pvi_domain *pd)
{
    dsb(ishst); /* as above */

    return !pvi_in_use(&pd->dflt) ? 0 :
           flush_now(pd, 0, (1UL << pvi_ias()) - 1, false);
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
