/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Requests of the virtio-iommu (virtio 1.2, 5.13.6), in slices.
 *
 * One request is in progress at a time, in viommu->req; a MAP or UNMAP that
 * needs more than a slice goes on from its cursor in the next one.  MAP runs
 * MAP -> done, or on an error MAP -> UNDO -> done, and leaves nothing mapped.
 * Used entries become visible at the end of the slice: in a strict domain
 * after the sync, which all of a kick share.
 */

#include <xen/lib.h>
#include <xen/mm.h>
#include <xen/nospec.h>
#include <xen/sched.h>

#include "viommu.h"

/* Items that one attachment costs: stream table entries and their syncs. */
#define ATTACH_WORK     64
/* Items to take, decode and answer one request. */
#define REQUEST_WORK    4

#define HUGE_PAGES      (1UL << (30 - PAGE_SHIFT))
#define HUGE_MASK       ((1UL << 30) - 1)

enum { REQ_MAP, REQ_UNDO, REQ_UNMAP };

/*
 * What a step says: a status, or that it goes on in the next slice.  Neither
 * an errno nor one of the standard's 8-bit statuses.
 */
#define REQ_MORE        0x100

static struct pvi_context *find_context(struct viommu *v, uint32_t id)
{
    if ( id >= PVI_MAX_CONTEXTS )
        return NULL;

    return v->pd->ctx[array_index_nospec(id, PVI_MAX_CONTEXTS)];
}

static bool all_zero(const uint8_t *p, unsigned int n)
{
    while ( n-- )
        if ( *p++ )
            return false;

    return true;
}

static int status_of(int rc)
{
    switch ( rc )
    {
    case 0:             return VIOMMU_S_OK;
    case -EXDEV:        return VIOMMU_S_UNSUPP;
    case -ENOMEM:
    case -ENOSPC:       return VIOMMU_S_NOMEM;
    case -EBUSY:        return VIOMMU_S_INVAL;
    case -EFAULT:
    case -EPERM:        return VIOMMU_S_FAULT;
    default:            return VIOMMU_S_DEVERR;
    }
}

static struct pvi_context *create_context(struct viommu *v, uint32_t id,
                                          bool bypass)
{
    struct pvi_domain *pd = v->pd;
    struct pvi_context *ctx;

    /* Those that wait for their destruction count, too. */
    if ( pd->nr_contexts >= PVI_MAX_CONTEXTS )
        return NULL;

    if ( bypass )
    {
        ctx = xzalloc(struct pvi_context);
        if ( ctx )
        {
            pvi_context_init(ctx, pd, PVI_CTX_DEFAULT);
            ctx->id = id;
        }
    }
    else
        ctx = pvi_context_create(pd, id);

    if ( ctx )
    {
        pvi_context_enter(ctx);
        pd->nr_contexts++;
    }

    return ctx;
}

/* 5.13.6.3.2 */
static int do_attach(struct viommu *v, const struct viommu_req_attach *r)
{
    struct pvi_domain *pd = v->pd;
    bool bypass = r->flags & VIOMMU_ATTACH_F_BYPASS;
    struct pvi_endpoint *ep;
    struct pvi_context *ctx;
    int rc;

    pd->stats.attach++;

    if ( !all_zero(r->reserved, sizeof(r->reserved)) ||
         (r->flags & ~VIOMMU_ATTACH_F_BYPASS) )
        return VIOMMU_S_INVAL;
    if ( bypass && !viommu_has_feature(v, VIOMMU_F_BYPASS_CONFIG) )
        return VIOMMU_S_INVAL;

    ep = pvi_endpoint_find(pd, r->endpoint);
    if ( ep ? !ep->present : !pvi_bridge_has(pd, r->endpoint) )
        return VIOMMU_S_NOENT;
    if ( r->domain >= PVI_MAX_CONTEXTS )
        return VIOMMU_S_RANGE;

    ctx = find_context(v, r->domain);
    if ( ctx && bypass != (ctx->kind == PVI_CTX_DEFAULT) )
        return VIOMMU_S_INVAL;
    if ( !ctx )
        ctx = create_context(v, r->domain, bypass);
    if ( !ctx )
        return VIOMMU_S_NOMEM;

    rc = 0;
    if ( !ep )
        ep = pvi_bridge_endpoint(pd, r->endpoint, &rc);
    if ( ep )
    {
        rc = pvi_endpoint_attach(ep, ctx);
        if ( rc && !ep->ctx && ep->bridge )
            pvi_endpoint_forget(ep);
    }
    if ( rc && !ctx->nr_endpoints )
    {
        pvi_context_kill(ctx);
    }

    return status_of(rc);
}

/* A detached endpoint that isn't there any more, or need not be. */
static void detached(struct pvi_endpoint *ep)
{
    if ( !ep->present || ep->bridge )
        pvi_endpoint_forget(ep);
}

/* 5.13.6.4.2 */
static int do_detach(struct viommu *v, const struct viommu_req_detach *r)
{
    struct pvi_domain *pd = v->pd;
    struct pvi_context *ctx = find_context(v, r->domain);
    struct pvi_endpoint *ep = pvi_endpoint_find(pd, r->endpoint);
    int rc;

    pd->stats.detach++;

    if ( !ep || (!ep->present && !ep->ctx) || !ctx )
        return VIOMMU_S_NOENT;
    if ( ep->ctx != ctx )
        return VIOMMU_S_INVAL;

    rc = pvi_endpoint_attach(ep, NULL);
    if ( !rc )
        detached(ep);

    return status_of(rc);
}

/* 5.13.6.5.2: what can be refused at once is refused here. */
static int start_map(struct viommu *v, const struct viommu_req_map *r)
{
    struct viommu_request *req = &v->req;
    uint64_t size = r->virt_end - r->virt_start + 1;

    v->pd->stats.map++;

    if ( r->flags & ~(VIOMMU_MAP_F_READ | VIOMMU_MAP_F_WRITE |
                      VIOMMU_MAP_F_MMIO) )
        return VIOMMU_S_INVAL;
    if ( (r->flags & VIOMMU_MAP_F_MMIO) &&
         !viommu_has_feature(v, VIOMMU_F_MMIO) )
        return VIOMMU_S_INVAL;

    req->ctx = find_context(v, r->domain);
    if ( !req->ctx )
        return VIOMMU_S_NOENT;
    if ( req->ctx->kind == PVI_CTX_DEFAULT )
        return VIOMMU_S_INVAL;

    if ( ((r->virt_start | r->phys_start | (r->virt_end + 1)) & ~PAGE_MASK) ||
         r->virt_end <= r->virt_start ||
         (r->virt_end >> req->ctx->pt.ias) ||
         r->phys_start + size - 1 < r->phys_start )
        return VIOMMU_S_RANGE;

    req->start = req->cursor = r->virt_start;
    req->last = r->virt_end;
    req->phys = r->phys_start;
    req->read = r->flags & VIOMMU_MAP_F_READ;
    req->write = r->flags & VIOMMU_MAP_F_WRITE;
    req->huge_refs = 0;
    req->no_huge = false;
    req->state = REQ_MAP;

    return REQ_MORE;
}

/* 5.13.6.6.2 */
static int start_unmap(struct viommu *v, const struct viommu_req_unmap *r)
{
    struct viommu_request *req = &v->req;

    v->pd->stats.unmap++;

    req->ctx = find_context(v, r->domain);
    if ( !req->ctx )
        return VIOMMU_S_NOENT;
    if ( req->ctx->kind == PVI_CTX_DEFAULT )
        return VIOMMU_S_INVAL;
    if ( r->virt_end < r->virt_start )
        return VIOMMU_S_RANGE;
    /* Nothing can be mapped beyond the input range. */
    if ( r->virt_start >> req->ctx->pt.ias )
        return VIOMMU_S_OK;

    req->start = req->cursor = r->virt_start & PAGE_MASK;
    req->last = min(r->virt_end, (1UL << req->ctx->pt.ias) - 1);

    req->raw_start = r->virt_start;
    req->state = REQ_UNMAP;

    return REQ_MORE;
}

/*
 * Clear up to req->last.  REQ_MORE when the budget is used up; a full queue is
 * flushed, and its release may need slices of its own.
 */
static int step_unmap(struct viommu *v, int *budget)
{
    struct pvi_domain *pd = v->pd;
    struct viommu_request *req = &v->req;

    while ( req->cursor <= req->last )
    {
        struct s2_cleared c = { .first = 1, .last = 0 };
        enum pvi_cause due;
        int slot;

        if ( *budget <= 0 )
            return REQ_MORE;

        pvi_lock(&pd->tlock, PVI_LOCK_TABLES);
        /* Before anything is cleared; what is mapped can't change meanwhile. */
        if ( req->state == REQ_UNMAP && req->cursor == req->start &&
             s2pt_splits(&req->ctx->pt, req->raw_start, req->last) )
        {
            pvi_unlock(&pd->tlock, PVI_LOCK_TABLES);
            return VIOMMU_S_RANGE;
        }
        slot = pvi_fq_open(pd, req->ctx, req->start, req->cursor,
                           PVI_FQ_RESERVE);
        if ( slot >= 0 )
        {
            req->cursor = s2pt_unmap(&req->ctx->pt, req->cursor, req->last,
                                     slot, budget, &c);
            pvi_fq_close(pd, req->ctx, slot, &c);
        }
        due = slot < 0 && pvi_fq_pending(pd) ? PVI_CAUSE_COUNT
                                             : pvi_fq_due(pd);
        pvi_unlock(&pd->tlock, PVI_LOCK_TABLES);

        if ( due != PVI_NR_CAUSES && pvi_fq_flush(pd, due) )
            return VIOMMU_S_DEVERR;
        if ( slot < 0 && !pvi_fq_release(pd, budget) )
            return REQ_MORE;
    }

    return VIOMMU_S_OK;
}

/* Drop the references of a 1G block that was not entered. */
static bool huge_drop(struct viommu_request *req, int *budget)
{
    while ( req->huge_refs && *budget > 0 )
    {
        /* Never entered into a table: no device knows the page. */
        put_page(mfn_to_page(mfn_add(req->huge_mfn, --req->huge_refs)));
        (*budget)--;
    }

    return !req->huge_refs;
}

/* A MAP has failed: take back what it has mapped, then say @status. */
static int start_undo(struct viommu_request *req, uint8_t status)
{
    req->status = status;
    req->last = req->cursor - 1;
    if ( req->cursor == req->start )
    {
        /* Nothing mapped: an empty range. */
        req->cursor = 1;
        req->last = 0;
    }
    else
        req->cursor = req->start;
    req->state = REQ_UNDO;

    return REQ_MORE;
}

/*
 * Make room for an entry that is pending.  0: try again; REQ_MORE: in the
 * next slice; -EIO: a sync failed.
 */
static int map_wait(struct viommu *v, int *budget)
{
    struct pvi_domain *pd = v->pd;

    if ( pvi_fq_overlap(pd) )
        return -EIO;

    return pvi_fq_release(pd, budget) ? 0 : REQ_MORE;
}

/*
 * The pool is empty: take back tables without entries from all contexts.
 * 0: try again; REQ_MORE; -ENOMEM: there are none; -EIO.
 */
static int map_reclaim(struct viommu *v, int *budget)
{
    struct pvi_domain *pd = v->pd;
    unsigned int i, nr = 0;

    pvi_lock(&pd->tlock, PVI_LOCK_TABLES);
    for ( i = 0; i < PVI_MAX_CONTEXTS && *budget > 0; i++ )
    {
        struct s2_cleared c = { .first = 1, .last = 0 };
        struct pvi_context *ctx = pd->ctx[i];
        int slot;

        if ( !ctx || ctx->kind != PVI_CTX_PAGING ||
             page_list_empty(&ctx->pt.empty) )
            continue;
        /* ~0: never next to what was queued before, so a slot of its own. */
        slot = pvi_fq_open(pd, ctx, ~0UL, ~0UL, PVI_FQ_RESERVE);
        if ( slot < 0 )
            break;
        nr += s2pt_reclaim(&ctx->pt, slot, budget, &c);
        pvi_fq_close(pd, ctx, slot, &c);
    }

    /* What waits for a flush or a release may hold tables too. */
    nr += pd->fq.tail - pd->fq.head;
    pvi_unlock(&pd->tlock, PVI_LOCK_TABLES);

    if ( !nr )
        return -ENOMEM;
    if ( pvi_fq_pending(pd) && pvi_fq_flush(pd, PVI_CAUSE_MEMORY) )
        return -EIO;

    return pvi_fq_release(pd, budget) ? 0 : REQ_MORE;
}

/*
 * A 1G block: its 2^18 references are taken in slices first, then it is
 * entered by one write.  -ENOSPC: not possible here, use smaller ones.
 */
static int map_huge(struct viommu *v, int *budget, s2_pte_t prot_mask)
{
    struct viommu_request *req = &v->req;
    struct pvi_run run;
    int rc;

    /* What is in the way is better known before 2^18 references are taken. */
    pvi_lock(&v->pd->tlock, PVI_LOCK_TABLES);
    rc = s2pt_room(&req->ctx->pt, req->cursor, 1);
    pvi_unlock(&v->pd->tlock, PVI_LOCK_TABLES);
    if ( rc )
        return rc;

    while ( req->huge_refs < HUGE_PAGES )
    {
        unsigned long left = HUGE_PAGES - req->huge_refs;
        uint64_t gpa = req->phys + (req->cursor - req->start) +
                       ((uint64_t)req->huge_refs << PAGE_SHIFT);

        if ( *budget <= 0 )
            return REQ_MORE;

        rc = pvi_gpa_get(v->pd->d, gaddr_to_gfn(gpa),
                         min(left, (unsigned long)*budget), req->write, &run);
        if ( rc )
            return rc;
        if ( !req->huge_refs )
        {
            req->huge_mfn = run.mfn;
            req->huge_prot = run.prot & prot_mask;
            req->huge_noref = run.noref;
        }
        if ( run.order < 30 - PAGE_SHIFT || run.foreign ||
             run.noref != req->huge_noref ||
             (mfn_to_maddr(req->huge_mfn) & HUGE_MASK) ||
             (run.prot & prot_mask) != req->huge_prot ||
             !mfn_eq(run.mfn, mfn_add(req->huge_mfn, req->huge_refs)) )
        {
            pvi_gpa_put(&run, 0);
            return -ENOSPC;
        }
        if ( run.noref )
            break;
        *budget -= run.nr;
        req->huge_refs += run.nr;
    }

    pvi_lock(&v->pd->tlock, PVI_LOCK_TABLES);
    rc = s2pt_map_huge(&req->ctx->pt, req->cursor, req->huge_mfn,
                       req->huge_prot, req->cursor == req->start);
    pvi_unlock(&v->pd->tlock, PVI_LOCK_TABLES);
    (*budget)--;
    if ( !rc )
    {
        req->huge_refs = 0; /* the entry holds them now */
        req->cursor += HUGE_MASK + 1;
    }

    return rc;
}

/*
 * Enter the pages of @run at @iova.  Returns how many, or as s2pt_map().  The
 * p2m lock is held, so no page can leave the p2m in between.
 */
static long enter_run(struct viommu *v, uint64_t iova,
                      const struct pvi_run *run, s2_pte_t prot, bool first)
{
    struct pvi_domain *pd = v->pd;
    struct pvi_context *ctx = v->req.ctx;
    unsigned long nr = run->nr, i;
    long n;

    pvi_lock(&pd->tlock, PVI_LOCK_TABLES);

    if ( run->foreign )
    {
        for ( i = 0; i < nr; i++ )
            if ( pvi_foreign_add(pd, ctx->id, iova + (i << PAGE_SHIFT),
                                 gfn_add(run->gfn, i), mfn_add(run->mfn, i),
                                 run->noref) )
                break;
        nr = i;
    }

    n = nr ? s2pt_map(&ctx->pt, pd, iova, run->mfn, nr, prot, first) : -ENOMEM;

    for ( i = max(n, 0L); run->foreign && i < nr; i++ )
        pvi_foreign_del(pd, ctx->id, iova + (i << PAGE_SHIFT),
                        mfn_add(run->mfn, i), run->noref);

    pvi_unlock(&pd->tlock, PVI_LOCK_TABLES);

    return n;
}

/* Pages: as many as one table and the budget take.  0 or an errno. */
static int map_some(struct viommu *v, int *budget, s2_pte_t prot_mask)
{
    struct viommu_request *req = &v->req;
    struct p2m_domain *p2m = p2m_get_hostp2m(v->pd->d);
    uint64_t table_last = req->cursor | ((1UL << s2_shift(2)) - 1);
    int rc = 0;

    /* One hold of the lock for all that one table takes. */
    p2m_read_lock(p2m);

    do {
        uint64_t phys = req->phys + (req->cursor - req->start);
        uint64_t last = min(req->last, table_last);
        unsigned long want = ((last - req->cursor) >> PAGE_SHIFT) + 1;
        struct pvi_run run;
        long n;

        /* A block of 2M is one piece of work, even with less budget left. */
        if ( (req->cursor | phys) & ((1UL << s2_shift(2)) - 1) )
            want = min_t(unsigned long, want, *budget);
        else if ( want == S2_ENTRIES )
        {
            pvi_lock(&v->pd->tlock, PVI_LOCK_TABLES);
            rc = s2pt_room(&req->ctx->pt, req->cursor, 2);
            pvi_unlock(&v->pd->tlock, PVI_LOCK_TABLES);
            /* With a table in the way it takes pages. */
            if ( rc && rc != -ENOSPC )
                break;
        }

        rc = pvi_gpa_get_locked(p2m, gaddr_to_gfn(phys), want, req->write,
                                &run);
        if ( rc )
            break;

        n = enter_run(v, req->cursor, &run, run.prot & prot_mask,
                      req->cursor == req->start);
        *budget -= run.nr;
        pvi_gpa_put(&run, max(n, 0L));
        if ( n < 0 )
            rc = n;
        else
            req->cursor += (uint64_t)n << PAGE_SHIFT;
    } while ( !rc && *budget > 0 &&
              req->cursor <= min(req->last, table_last) );

    p2m_read_unlock(p2m);

    return rc;
}

static int step_map(struct viommu *v, int *budget)
{
    struct viommu_request *req = &v->req;
    s2_pte_t prot_mask = ~((req->read ? 0 : S2_READ) |
                           (req->write ? 0 : S2_WRITE));

    while ( req->cursor <= req->last )
    {
        uint64_t phys = req->phys + (req->cursor - req->start);
        int rc;

        if ( *budget <= 0 )
            return REQ_MORE;

        rc = -ENOSPC;
        if ( !req->no_huge && !((req->cursor | phys) & HUGE_MASK) &&
             req->last - req->cursor >= HUGE_MASK )
            rc = map_huge(v, budget, prot_mask);
        if ( rc == REQ_MORE )
            return REQ_MORE;
        if ( rc == -ENOSPC )
        {
            /* Not again for this piece, however many slices it takes. */
            req->no_huge = true;
            if ( !huge_drop(req, budget) )
                return REQ_MORE;
            rc = map_some(v, budget, prot_mask);
            if ( !rc )
                req->no_huge = false; /* the next piece may be one */
        }

        if ( rc == -EAGAIN )
            rc = map_wait(v, budget);
        else if ( rc == -ENOMEM )
            rc = map_reclaim(v, budget);
        if ( rc == REQ_MORE )
            return REQ_MORE;
        if ( rc )
            return start_undo(req, status_of(rc));
    }

    v->entered = true;

    return VIOMMU_S_OK;
}

static int step_undo(struct viommu *v, int *budget)
{
    if ( !huge_drop(&v->req, budget) )
        return REQ_MORE;

    return step_unmap(v, budget);
}

/* Answer the request in progress with @status. */
static void finish(struct viommu *v, int status, unsigned int offset)
{
    struct viommu_queue *q = &v->q[VIOMMU_REQUESTQ];
    struct viommu_req_tail tail = { .status = status };
    unsigned int written = offset + sizeof(tail);

    if ( viommu_chain_write(v, &v->chain, offset, &tail, sizeof(tail)) )
        written = 0;
    if ( status != VIOMMU_S_OK )
        v->pd->stats.bad++;
    viommu_queue_put(v, q, v->chain.head, written);
    v->req.active = false;
    v->req.ctx = NULL;
}

/* 5.13.6.7.2: no property so far, and the rest of the buffer is zero. */
static void do_probe(struct viommu *v, const struct viommu_req_probe *r)
{
    static const uint8_t zero[VIOMMU_PROBE_SIZE];
    unsigned int tail = sizeof(struct viommu_req_tail), len;
    struct pvi_endpoint *ep = pvi_endpoint_find(v->pd, r->endpoint);

    v->pd->stats.probe++;

    /* All that the used length covers is written (2.7.8.2). */
    len = min_t(unsigned int, v->chain.in_len - tail, VIOMMU_PROBE_SIZE);
    if ( viommu_chain_write(v, &v->chain, 0, zero, len) )
    {
        v->pd->stats.bad++;
        viommu_queue_put(v, &v->q[VIOMMU_REQUESTQ], v->chain.head, 0);
        v->req.active = false;
        return;
    }
    if ( len < VIOMMU_PROBE_SIZE )
    {
        finish(v, VIOMMU_S_INVAL, len);
        return;
    }
    finish(v, (ep ? ep->present : pvi_bridge_has(v->pd, r->endpoint)) ?
              VIOMMU_S_OK : VIOMMU_S_NOENT, VIOMMU_PROBE_SIZE);
}

/* Decode v->chain and do what takes no slices. */
static int start_request(struct viommu *v, int *budget)
{
    const struct viommu_chain *c = &v->chain;
    uint8_t type = c->out_len ? c->out[0] : 0;
    union {
        struct viommu_req_attach attach;
        struct viommu_req_detach detach;
        struct viommu_req_map map;
        struct viommu_req_unmap unmap;
        struct viommu_req_probe probe;
    } r;
    unsigned int need;

    BUILD_BUG_ON(sizeof(r) > sizeof(c->out));

    v->req.active = true;
    v->req.type = type;

    switch ( type )
    {
    case VIOMMU_T_ATTACH: need = sizeof(r.attach); break;
    case VIOMMU_T_DETACH: need = sizeof(r.detach); break;
    case VIOMMU_T_MAP:    need = sizeof(r.map);    break;
    case VIOMMU_T_UNMAP:  need = sizeof(r.unmap);  break;
    case VIOMMU_T_PROBE:
        need = sizeof(r.probe);
        if ( viommu_has_feature(v, VIOMMU_F_PROBE) )
            break;
        /* fall through */
    default:
        need = UINT_MAX;
    }

    if ( need == UINT_MAX || c->in_len < sizeof(struct viommu_req_tail) )
    {
        /* Unknown, or no room for an answer: nothing is written (5.13.6.2). */
        v->pd->stats.bad++;
        viommu_queue_put(v, &v->q[VIOMMU_REQUESTQ], c->head, 0);
        v->req.active = false;
        return VIOMMU_S_OK;
    }
    if ( c->out_len < need )
        return VIOMMU_S_INVAL;

    memcpy(&r, c->out, need);

    switch ( type )
    {
    case VIOMMU_T_ATTACH:
        *budget -= ATTACH_WORK;
        return do_attach(v, &r.attach);

    case VIOMMU_T_DETACH:
        *budget -= ATTACH_WORK;
        return do_detach(v, &r.detach);

    case VIOMMU_T_MAP:
        return start_map(v, &r.map);

    case VIOMMU_T_UNMAP:
        return start_unmap(v, &r.unmap);

    default:
        do_probe(v, &r.probe);
        return VIOMMU_S_OK;
    }
}

/* Go on with the request in progress.  REQ_MORE or the status. */
static int step(struct viommu *v, int *budget)
{
    struct viommu_request *req = &v->req;
    int status = REQ_MORE;

    if ( req->state == REQ_MAP )
        status = step_map(v, budget);
    if ( req->state == REQ_UNMAP )
        status = step_unmap(v, budget);
    else if ( req->state == REQ_UNDO )
    {
        status = step_undo(v, budget);
        if ( status == VIOMMU_S_OK )
            status = req->status;
    }

    return status;
}

/*
 * A device reset (2.1.2): all endpoints are unattached, all contexts go.  One
 * endpoint a step.  True when done.
 */
static bool reset_step(struct viommu *v, int *budget)
{
    struct pvi_domain *pd = v->pd;
    struct pvi_endpoint *ep, *next;

    if ( !viommu_stop(v, budget) )
        return false;

    list_for_each_entry_safe ( ep, next, &pd->endpoints, list )
    {
        if ( !ep->ctx )
            continue;
        if ( *budget <= 0 )
            return false;
        *budget -= ATTACH_WORK;
        if ( pvi_endpoint_attach(ep, NULL) )
            return true; /* the domain is broken; nothing goes on anyway */
        detached(ep);
    }

    viommu_reset_registers(v);

    return true;
}

void viommu_context_gone(struct viommu *v, const struct pvi_context *ctx)
{
    struct viommu_request *req = &v->req;

    if ( !req->active || req->ctx != ctx )
        return;

    /* What was entered so far goes with the tables; nothing is left to undo. */
    req->ctx = NULL;
    req->cursor = 1;
    req->last = 0;
    req->status = VIOMMU_S_NOENT;
    req->state = REQ_UNDO;
}

bool viommu_stop(struct viommu *v, int *budget)
{
    /* What a MAP has entered so far is destroyed with its context. */
    if ( v->req.active && !huge_drop(&v->req, budget) )
        return false;
    v->req.active = false;

    return true;
}

static bool do_slice(struct viommu *v, int *budget)
{
    struct pvi_domain *pd = v->pd;
    struct viommu_queue *q = &v->q[VIOMMU_REQUESTQ];
    bool more = false, idle = false;

    if ( v->resetting )
    {
        if ( !reset_step(v, budget) )
            return true;
        return false;
    }

    if ( !viommu_driver_ok(v) || !q->ready )
    {
        /*
         * The driver has stopped a kick half-way: what was cleared so far waits
         * for the sync at its end, which doesn't come any more.
         */
        if ( pd->strict && pvi_fq_pending(pd) &&
             !pvi_fq_flush(pd, PVI_CAUSE_STRICT) )
            return !pvi_fq_release(pd, budget);
        return false;
    }

    while ( !pd->broken )
    {
        int status;

        if ( *budget <= 0 )
        {
            more = true;
            break;
        }

        if ( !v->req.active )
        {
            int rc = viommu_queue_take(v, q, &v->chain);

            if ( rc < 0 )
            {
                viommu_needs_reset(v, "the request queue is malformed");
                break;
            }
            if ( !rc )
            {
                idle = true;
                break;
            }
            *budget -= REQUEST_WORK + v->chain.work;
            status = start_request(v, budget);
            if ( !v->req.active )
                continue; /* answered already */
            if ( status == REQ_MORE )
                status = step(v, budget);
        }
        else
            status = step(v, budget);

        if ( status == REQ_MORE )
        {
            more = true;
            break;
        }
        finish(v, status, 0);
    }

    /*
     * Strict is final: the sync comes before the used index (invariant 2).  It
     * comes once, after the last request of the kick, however many slices that
     * takes; a driver can't have more requests under way than the ring holds.
     */
    if ( pd->strict && pvi_fq_pending(pd) )
    {
        if ( more )
            return true;
        if ( pvi_fq_flush(pd, PVI_CAUSE_STRICT) )
            return true;
    }
    if ( pd->broken )
        return true;

    if ( !pvi_fq_release(pd, budget) )
        more = true;

    if ( v->entered )
    {
        /*
         * All entries of this slice's MAPs before the used index.  Partner:
         * the SMMU's walk.
         */
        dsb(ishst);
        v->entered = false;
    }
    viommu_queue_publish(v, q);
    if ( !pd->strict )
        pvi_fq_start(pd);
    if ( idle && viommu_queue_rearm(v, q) )
        more = true;

    return more;
}

bool viommu_slice(struct viommu *v, int *budget)
{
    bool more;

    ASSERT(spin_is_locked(&v->pd->lock));

    more = do_slice(v, budget);
    viommu_pages_put(v);

    return more;
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
