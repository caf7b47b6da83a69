/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The flush queue of a domain: what was cleared, until it may be released.
 *
 *    s2pt_unmap(), p2m       pvi_fq_flush()         pvi_fq_release()
 *   ------------------> queued ------------> synced -------------> slot is free
 *                     [synced, tail)       [head, synced)
 *
 * Strict and lazy differ only in who calls pvi_fq_flush(): the end of each
 * slice or p2m operation, or whatever comes first of count, pages, age and
 * need.  In both, nothing is released that was not cleared before a sync that
 * has completed.
 *
 * The queue and the tables are under pd->tlock, which is not held while a
 * flush waits: what is queued meanwhile lies beyond fq->started and is none of
 * that flush's business.  Several flushes may be in flight; each covers all
 * that was queued when it began.
 */

#include <xen/lib.h>
#include <xen/mm.h>
#include <xen/sched.h>
#include <xen/time.h>

#include "pviommu.h"

#define SLOT(i)     ((i) & (PVI_FQ_RANGES - 1))

/* While a release goes on, its next slice follows after this time. */
#define RELEASE_GAP MICROSECS(100)

/* When the window closes that the oldest entry has opened. */
static s_time_t fq_deadline(const struct pvi_domain *pd)
{
    return pd->fq.e[SLOT(pd->fq.synced)].queued +
           (pd->strict ? PVI_FQ_BUILD_AGE : PVI_FQ_AGE);
}

void pvi_count(struct pvi_domain *pd, unsigned int tlbi, unsigned int syncs,
               enum pvi_cause cause)
{
    atomic_add(tlbi, &pd->stats.tlbi);
    atomic_add(syncs, &pd->stats.sync);
    atomic_add(syncs, &pd->stats.flush[cause]);
}

/* The entry queued last, if a flush has not begun with it. */
static struct pvi_fq_entry *fq_open_entry(struct pvi_flushq *fq)
{
    return fq->tail != fq->started ? &fq->e[SLOT(fq->tail - 1)] : NULL;
}

int pvi_fq_open(struct pvi_domain *pd, struct pvi_context *ctx, uint64_t from,
                uint64_t start, unsigned int reserve)
{
    struct pvi_flushq *fq = &pd->fq;
    const struct pvi_fq_entry *e = fq_open_entry(fq);

    BUILD_BUG_ON(PVI_FQ_RANGES & (PVI_FQ_RANGES - 1));
    BUILD_BUG_ON(S2_PEND_SLOT_OF(S2_PEND_SLOT(PVI_FQ_RANGES - 1)) !=
                 PVI_FQ_RANGES - 1);
    ASSERT(spin_is_locked(&pd->tlock));

    if ( e && e->ctx == ctx && e->last < start && e->last + 1 >= from )
        return SLOT(fq->tail - 1);

    if ( fq->tail - fq->head >= PVI_FQ_RANGES - reserve )
        return -ENOSPC;

    return SLOT(fq->tail);
}

/* Enter a new entry at the tail. */
static struct pvi_fq_entry *fq_push(struct pvi_domain *pd,
                                    struct pvi_context *ctx, uint64_t start)
{
    struct pvi_flushq *fq = &pd->fq;
    struct pvi_fq_entry *e = &fq->e[SLOT(fq->tail)];
    s_time_t now = NOW();

    *e = (struct pvi_fq_entry){
        .ctx = ctx,
        .start = start,
        .cursor = start,
        .queued = now,
    };
    ctx->fq_entries++;
    pd->stats.ranges++;
    if ( !pvi_fq_count(fq) && !pd->strict )
        set_timer(&fq->timer, now + PVI_FQ_AGE);
    fq->tail++;

    return e;
}

void pvi_fq_close(struct pvi_domain *pd, struct pvi_context *ctx, int slot,
                  const struct s2_cleared *c)
{
    struct pvi_flushq *fq = &pd->fq;
    struct pvi_fq_entry *e = &fq->e[slot];

    ASSERT(spin_is_locked(&pd->tlock));

    if ( c->first > c->last )
        return;

    if ( slot == SLOT(fq->tail) )
        e = fq_push(pd, ctx, c->first);

    e->last = c->last;
    e->pages += c->pages;
    e->table |= c->table;
    e->levels |= c->levels;
    fq->pages += c->pages;
}

void pvi_fq_revived(struct pvi_domain *pd, unsigned int slot, unsigned long nr)
{
    struct pvi_flushq *fq = &pd->fq;

    ASSERT(spin_is_locked(&pd->tlock));

    fq->e[slot].pages -= nr;
    /* An entry that waits for its release only isn't part of the sum. */
    if ( SLOT(slot - fq->synced) < pvi_fq_count(fq) )
        fq->pages -= nr;
    pd->stats.revived += nr;
}

bool pvi_fq_p2m(struct pvi_domain *pd, uint64_t start, uint64_t last,
                mfn_t mfn, unsigned long refs)
{
    struct pvi_flushq *fq = &pd->fq;
    struct pvi_fq_entry *e = fq_open_entry(fq);

    ASSERT(spin_is_locked(&pd->tlock));

    if ( !e || e->ctx != &pd->dflt || e->last + 1 != start ||
         !!refs != !!e->pages ||
         (refs && !mfn_eq(mfn_add(e->mfn, e->pages), mfn)) )
    {
        if ( fq->tail - fq->head == PVI_FQ_RANGES )
            return false;
        e = fq_push(pd, &pd->dflt, start);
        e->mfn = mfn;
    }

    e->last = last;
    e->pages += refs;
    fq->pages += refs;

    return true;
}

bool pvi_fq_has(struct pvi_domain *pd, const struct pvi_context *ctx)
{
    bool has;

    pvi_lock(&pd->tlock, PVI_LOCK_TABLES);
    has = ctx->fq_entries;
    pvi_unlock(&pd->tlock, PVI_LOCK_TABLES);

    return has;
}

bool pvi_fq_overlaps(struct pvi_domain *pd, const struct pvi_context *ctx,
                     uint64_t start, uint64_t last)
{
    const struct pvi_flushq *fq = &pd->fq;
    unsigned int i;

    ASSERT(spin_is_locked(&pd->tlock));

    if ( !ctx->fq_entries )
        return false;

    for ( i = fq->synced; i != fq->tail; i++ )
    {
        const struct pvi_fq_entry *e = &fq->e[SLOT(i)];

        if ( e->ctx == ctx && e->start <= last && start <= e->last )
            return true;
    }

    return false;
}

enum pvi_cause pvi_fq_due(struct pvi_domain *pd)
{
    const struct pvi_flushq *fq = &pd->fq;

    ASSERT(spin_is_locked(&pd->tlock));

    if ( pvi_fq_count(fq) >= PVI_FQ_RANGES - PVI_FQ_RESERVE )
        return PVI_CAUSE_COUNT;
    /* Strict: nothing waits longer than a kick, and one sync does for it. */
    if ( !pd->strict && fq->pages >= PVI_FQ_PAGES )
        return PVI_CAUSE_PAGES;

    return PVI_NR_CAUSES;
}

/* Level 1..3 if all leaves are of that one, else 0. */
static unsigned int entry_level(const struct pvi_fq_entry *e)
{
    switch ( e->levels )
    {
    case 1U << 1: return 1;
    case 1U << 2: return 2;
    case 1U << 3: return 3;
    default:      return 0;
    }
}

/*
 * All of its pages have been mapped again as they were: what an SMMU may still
 * hold of them is true.
 */
static bool entry_is_void(const struct pvi_domain *pd,
                          const struct pvi_fq_entry *e)
{
    return e->ctx != &pd->dflt && !e->pages && !e->table;
}

/* For pvi_context.fq_vmid. */
#define VMID_NONE       (-1)    /* not used on this SMMU */
#define VMID_UNKNOWN    (-2)    /* not looked up yet */

static int find_vmid(struct pvi_context *ctx, const struct smmu_device *smmu)
{
    const struct pvi_att *att;
    int vmid = VMID_NONE;

    pvi_lock(&ctx->att_lock, PVI_LOCK_ATT);
    list_for_each_entry ( att, &ctx->atts, list )
        if ( att->smmu == smmu )
        {
            vmid = att->vmid;
            break;
        }
    pvi_unlock(&ctx->att_lock, PVI_LOCK_ATT);

    return vmid;
}

/*
 * Commands for the entries before @to on one SMMU, with a sync if there are
 * any.  An SMMU that a context has left needs none: leaving it has invalidated
 * the VMID (att_put()) after the last stream was switched.
 */
static int flush_submit(struct pvi_domain *pd, struct smmu_device *smmu,
                        unsigned int to, enum pvi_cause cause,
                        bool *submitted, uint32_t *ticket)
{
    struct pvi_flushq *fq = &pd->fq;
    const struct pvi_context *last = NULL;
    struct smmu_batch b;
    bool used = false;
    unsigned int i;
    int rc = 0;

    smmu_batch_init(&b, smmu);

    for ( i = fq->synced; i != to; i++ )
    {
        struct pvi_context *ctx = fq->e[SLOT(i)].ctx;

        /* Neighbours are mostly of one context. */
        if ( ctx == last )
            continue;
        last = ctx;
        ctx->fq_cost = 0;
        ctx->fq_done = false;
        ctx->fq_vmid = VMID_UNKNOWN;
    }
    for ( i = fq->synced; i != to; i++ )
    {
        const struct pvi_fq_entry *e = &fq->e[SLOT(i)];
        struct pvi_context *ctx = e->ctx;
        unsigned int cost;

        if ( ctx->fq_vmid == VMID_UNKNOWN )
        {
            ctx->fq_vmid = find_vmid(ctx, smmu);
            used |= ctx->fq_vmid != VMID_NONE;
        }
        /* More than a whole VMID is no different from that. */
        if ( ctx->fq_vmid == VMID_NONE || ctx->fq_cost > PVI_TLBI_RANGES_MAX ||
             entry_is_void(pd, e) )
            continue;
        cost = smmu_tlbi_range_cost(smmu, ((e->last - e->start) >> PAGE_SHIFT)
                                    + 1, !e->table, entry_level(e));
        /* Saturate: one entry may cost UINT_MAX without range commands. */
        ctx->fq_cost += min(cost, (unsigned int)PVI_TLBI_RANGES_MAX + 1);
    }
    for ( i = fq->synced; used && !rc && i != to; i++ )
    {
        const struct pvi_fq_entry *e = &fq->e[SLOT(i)];
        struct pvi_context *ctx = e->ctx;

        if ( ctx->fq_vmid == VMID_NONE || ctx->fq_done ||
             entry_is_void(pd, e) )
            continue;

        if ( ctx->fq_cost > PVI_TLBI_RANGES_MAX )
        {
            ctx->fq_done = true;
            rc = smmu_tlbi_vmid(&b, ctx->fq_vmid);
        }
        else
            rc = smmu_tlbi_range(&b, ctx->fq_vmid, e->start, e->last,
                                 !e->table, entry_level(e));
    }

    *submitted = b.total;
    if ( !rc && b.total )
    {
        rc = smmu_batch_submit(&b, true, ticket);
        pvi_count(pd, b.total, b.syncs, cause);
    }

    return rc;
}

/* The entries before @to are synced: they may be released. */
static void flush_finished(struct pvi_flushq *fq, unsigned int to)
{
    /* A flush that began later may have finished before. */
    while ( (int)(to - fq->synced) > 0 )
        fq->pages -= fq->e[SLOT(fq->synced++)].pages;
}

/* Issue what invalidates the entries before the tail, with pd->tlock held. */
static int flight_start(struct pvi_domain *pd, struct pvi_fq_flight *f,
                        enum pvi_cause cause)
{
    struct smmu_device *smmu;
    int rc = 0;

    ASSERT(spin_is_locked(&pd->tlock));

    memset(f, 0, sizeof(*f));
    f->to = pd->fq.started = pd->fq.tail;

    /*
     * All cleared entries are visible to the walks of every SMMU before any
     * of them sees a command.  Partner: the walk after the invalidation.
     */
    dsb(ishst);

    smmu_for_each ( smmu )
    {
        unsigned int i = min_t(unsigned int, smmu->index, PVI_FQ_SMMUS - 1);

        rc = flush_submit(pd, smmu, f->to, cause, &f->t[i].submitted,
                          &f->t[i].ticket);
        /* Those that share the last place are waited for one by one. */
        if ( !rc && f->t[i].submitted && smmu->index >= PVI_FQ_SMMUS - 1 )
        {
            rc = smmu_sync_wait(smmu, f->t[i].ticket);
            f->t[i].submitted = false;
        }
        if ( rc )
            break;
    }

    return rc;
}

/* Wait for it, without pd->tlock. */
static int flight_wait(const struct pvi_fq_flight *f)
{
    struct smmu_device *smmu;
    int rc = 0;

    smmu_for_each ( smmu )
    {
        if ( smmu->index < PVI_FQ_SMMUS - 1 && f->t[smmu->index].submitted )
            rc = smmu_sync_wait(smmu, f->t[smmu->index].ticket);
        if ( rc )
            break;
    }

    return rc;
}

static bool flight_landed(const struct pvi_fq_flight *f)
{
    struct smmu_device *smmu;

    smmu_for_each ( smmu )
        if ( smmu->index < PVI_FQ_SMMUS - 1 && f->t[smmu->index].submitted &&
             !smmu_sync_done(smmu, f->t[smmu->index].ticket) )
            return false;

    return true;
}

int pvi_fq_flush(struct pvi_domain *pd, enum pvi_cause cause)
{
    struct pvi_flushq *fq = &pd->fq;
    struct pvi_fq_flight f;
    int rc;

    if ( ACCESS_ONCE(pd->broken) )
        return -ETIMEDOUT;

    pvi_lock(&pd->tlock, PVI_LOCK_TABLES);

    if ( fq->tail == fq->synced )
    {
        pvi_unlock(&pd->tlock, PVI_LOCK_TABLES);
        return 0;
    }
    if ( fq->early_on && fq->early.to == fq->tail )
    {
        /* All of it has been issued; what is left is to wait. */
        f = fq->early;
        rc = 0;
    }
    else
        rc = flight_start(pd, &f, cause);

    pvi_unlock(&pd->tlock, PVI_LOCK_TABLES);

    rc = rc ?: flight_wait(&f);
    if ( rc )
    {
        /* What is queued stays queued, and pinned, for ever. */
        pvi_fail(pd, "an invalidation did not complete");
        return rc;
    }

    pvi_lock(&pd->tlock, PVI_LOCK_TABLES);
    flush_finished(fq, f.to);
    pvi_unlock(&pd->tlock, PVI_LOCK_TABLES);

    return 0;
}

/*
 * Early flushes.  A guest that is strict itself gives an address back and uses
 * it again at once, for another page: each MAP would wait for a sync.  For such
 * a guest the commands are issued when the slice of the UNMAP ends, and nobody
 * waits: by the time of the MAP they are done.  It costs a sync for each such
 * slice, so it ends by itself unless a MAP meets again what is queued.
 *
 * There is at most one such flight.  It may be forgotten at any time: whoever
 * needs its entries covers them again.
 */
void pvi_fq_start(struct pvi_domain *pd)
{
    struct pvi_flushq *fq = &pd->fq;

    pvi_lock(&pd->tlock, PVI_LOCK_TABLES);

    if ( fq->early_on && flight_landed(&fq->early) )
    {
        flush_finished(fq, fq->early.to);
        fq->early_on = false;
    }
    if ( fq->early_left && !fq->early_on && pvi_fq_count(fq) &&
         pvi_fq_count(fq) <= PVI_FQ_EARLY_RANGES )
    {
        fq->early_left--;
        /* A failure is met again by whoever has to wait. */
        fq->early_on = !flight_start(pd, &fq->early, PVI_CAUSE_EARLY);
    }

    pvi_unlock(&pd->tlock, PVI_LOCK_TABLES);
}

int pvi_fq_overlap(struct pvi_domain *pd)
{
    struct pvi_flushq *fq = &pd->fq;
    struct pvi_fq_flight f;
    bool early;
    int rc;

    pvi_lock(&pd->tlock, PVI_LOCK_TABLES);
    if ( pvi_fq_count(fq) <= PVI_FQ_EARLY_RANGES )
        fq->early_left = PVI_FQ_EARLY_SLICES;
    early = fq->early_on;
    f = fq->early;
    fq->early_on = false;
    pvi_unlock(&pd->tlock, PVI_LOCK_TABLES);

    if ( !early )
        return pvi_fq_pending(pd) ? pvi_fq_flush(pd, PVI_CAUSE_OVERLAP) : 0;

    rc = flight_wait(&f);
    if ( rc )
    {
        pvi_fail(pd, "an invalidation did not complete");
        return rc;
    }

    pvi_lock(&pd->tlock, PVI_LOCK_TABLES);
    flush_finished(fq, f.to);
    pvi_unlock(&pd->tlock, PVI_LOCK_TABLES);

    return 0;
}

/* Drop the references that left the p2m with an entry's pages. */
static void p2m_release(struct pvi_fq_entry *e, int *budget)
{
    for ( ; e->pages && *budget > 0; (*budget)-- )
        /* The caller knows of a sync after the p2m entry was cleared. */
        put_page(mfn_to_page(mfn_add(e->mfn, --e->pages)));
    (*budget)--;
    if ( !e->pages )
        e->cursor = e->last + 1;
}

static bool fq_release(struct pvi_domain *pd, int *budget)
{
    struct pvi_flushq *fq = &pd->fq;

    ASSERT(spin_is_locked(&pd->tlock));

    while ( fq->head != fq->synced )
    {
        unsigned int slot = SLOT(fq->head);
        struct pvi_fq_entry *e = &fq->e[slot];

        if ( *budget <= 0 )
            return false;

        /* [head, synced) was cleared before a sync that completed. */
        if ( e->ctx == &pd->dflt )
            p2m_release(e, budget);
        else
            e->cursor = s2pt_release(&e->ctx->pt, e->cursor, e->last, slot,
                                     budget);
        if ( e->cursor <= e->last )
            return false;

        e->ctx->fq_entries--;
        fq->head++;
    }

    return true;
}

bool pvi_fq_release(struct pvi_domain *pd, int *budget)
{
    bool done;

    pvi_lock(&pd->tlock, PVI_LOCK_TABLES);
    done = fq_release(pd, budget);
    pvi_unlock(&pd->tlock, PVI_LOCK_TABLES);

    return done;
}

void pvi_fq_release_later(struct pvi_domain *pd)
{
    int budget = PVI_SLICE_WORK;

    pvi_lock(&pd->tlock, PVI_LOCK_TABLES);
    if ( !fq_release(pd, &budget) )
        set_timer(&pd->fq.timer, NOW() + RELEASE_GAP);
    pvi_unlock(&pd->tlock, PVI_LOCK_TABLES);
}

static void cf_check fq_timer(void *data)
{
    struct pvi_domain *pd = data;
    struct pvi_flushq *fq = &pd->fq;
    int budget = PVI_SLICE_WORK;
    s_time_t now = NOW();
    bool due;

    if ( ACCESS_ONCE(pd->broken) )
        return;

    /* The window may have been closed and opened again since it was set. */
    pvi_lock(&pd->tlock, PVI_LOCK_TABLES);
    due = pvi_fq_count(fq) && now >= fq_deadline(pd);
    pvi_unlock(&pd->tlock, PVI_LOCK_TABLES);

    if ( due && pvi_fq_flush(pd, PVI_CAUSE_AGE) )
        return;

    pvi_lock(&pd->tlock, PVI_LOCK_TABLES);
    if ( !fq_release(pd, &budget) )
        set_timer(&fq->timer, NOW() + RELEASE_GAP);
    else if ( pvi_fq_count(fq) )
        set_timer(&fq->timer, fq_deadline(pd));
    pvi_unlock(&pd->tlock, PVI_LOCK_TABLES);
}

void pvi_fq_watch(struct pvi_domain *pd)
{
    struct pvi_flushq *fq = &pd->fq;

    if ( pvi_fq_count(fq) )
        set_timer(&fq->timer, fq_deadline(pd));
}

void pvi_fq_init(struct pvi_domain *pd)
{
    init_timer(&pd->fq.timer, fq_timer, pd, smp_processor_id());
}

void pvi_fq_exit(struct pvi_domain *pd)
{
    /* After this the callback neither runs nor will run. */
    kill_timer(&pd->fq.timer);
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
