/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The property test's operations.  Each is made of its kind and of one random
 * number, and takes its parameters from the state it meets: so any part of a
 * sequence is a sequence.
 */
#ifndef PROP_OPS_H
#define PROP_OPS_H

#include "prop_xen.h"

#define OPS(X) \
    X(ATTACH) X(DETACH) X(MAP) X(UNMAP) X(PROBE) X(JUNK) X(RUN) X(P2M_OUT) \
    X(P2M_IN) X(P2M_BATCH) X(P2M_CHANGE) X(P2M_BLOCK) X(OWNER) X(STRICT) \
    X(BYPASS) X(RESET) X(QUEUE) X(EP_OUT) X(EP_IN) X(BRIDGE) X(TIME) X(SETTLE) X(POOL) \
    X(DMA) X(HANG) X(SABOTAGE)
#define X(n) OP_##n,
enum { OPS(X) NR_OPS };
#undef X
#define X(n) #n,
static const char *const op_name[] = { OPS(X) };
#undef X

struct op { unsigned int kind; uint64_t r; };

struct config {
    bool strict, ril, noncoherent, huge;
    unsigned int late;
    uint64_t blocks;
};

static bool verbose;
#define say(...) do { if ( verbose ) printf(__VA_ARGS__); } while ( 0 )
/* What the model forbids.  Not fail_msg(): this runs in a child process. */
#define wrong(...) \
    do { printf("wrong: " __VA_ARGS__); printf("\n"); fflush(stdout); \
         abort(); } while ( 0 )

/* xorshift64*, started anew for each operation. */
static uint64_t rng_state, hook_state;

static uint64_t next_random(uint64_t *s)
{
    *s ^= *s >> 12;
    *s ^= *s << 25;
    *s ^= *s >> 27;
    return *s * 0x2545f4914f6cdd1dULL;
}

static uint64_t r64(void) { return next_random(&rng_state) >> 8; }
static unsigned int rn(unsigned int n) { return r64() % n; }
static bool one_in(unsigned int n) { return rn(n) == 0; }

/*
 * Requests on their way.  [fl_head, fl_tail) are not accounted for yet.
 */
struct flight {
    unsigned int kind;
    uint32_t ctx, ep, flags;
    bool reserved, killed;
    uint64_t start, last, phys;
    uint8_t *status;
};
static struct flight flight[NUM];
static uint16_t fl_head, fl_tail;
static bool fl_begun;           /* the one at the head may be in progress */

/* Entries of the p2m that were replaced under a MAP in progress. */
#define MAX_TAINTS  64
static struct { uint64_t gfn; struct p2m_page old; } taint[MAX_TAINTS];
static unsigned int nr_taints;
static bool revoked_unknown;
static bool nomem_ok;           /* an allocation was made to fail */
static struct page_info *held[POOL];
static unsigned int nr_held;
static bool expect_broken, any_open;   /* any_open: see settle_open() */
static unsigned long executed;
static struct vcpu cpus[4];

/* The last UNMAP that found something, for a MAP that comes back to it. */
static struct { uint32_t ctx; uint64_t iova; uint32_t nr, gfn; } recent;

/* Pages of others that were mapped of late: their grants may end. */
static unsigned long recent_foreign[4];

/* DMA that happens at any time: a few addresses that matter just now. */
static struct { unsigned int smmu; uint32_t sid; uint64_t iova; } hot[8];

static void heat(unsigned int smmu, uint32_t sid, uint64_t iova)
{
    unsigned int i = next_random(&hook_state) % ARRAY_SIZE(hot);

    hot[i].smmu = smmu;
    hot[i].sid = sid;
    hot[i].iova = iova;
}

static void hot_dma(void)
{
    unsigned int i;
    uint64_t x = next_random(&hook_state);
    paddr_t pa;

    if ( x >> 8 & 15 )
        return;
    i = (x >> 16) % ARRAY_SIZE(hot);
    /* Where it goes is checked by the SMMU: nothing that is free. */
    if ( hot[i].sid )
        (void)sw_dma(&sw[hot[i].smmu], hot[i].sid, hot[i].iova, x >> 32 & 1,
                     &pa);
}

static bool in_hook;
static void hot_stored(void)
{
    if ( !in_hook )
    {
        in_hook = true;
        hot_dma();
        in_hook = false;
    }
}

static void hot_hook(struct swsmmu *s) { (void)s; hot_stored(); }

static unsigned int pool_free(void)
{
    struct page_info *pg;
    unsigned int n = 0;

    page_list_for_each ( pg, &dom.arch.paging.p2m_freelist )
        n++;
    return n;
}

/*
 * What the model says of the requests that were answered.
 */
static bool may_map(const struct p2m_page *e, uint32_t flags)
{
    unsigned int r = rights(e);

    return r && !((flags & 2) && !(r & M_WRITE));
}

static unsigned int m_prot(unsigned int rights, uint32_t flags)
{
    return (rights & ~3U) | (rights & flags & 3);
}

static bool is_tainted(uint64_t gfn)
{
    unsigned int i;

    for ( i = 0; i < nr_taints; i++ )
        if ( taint[i].gfn == gfn )
            return true;
    return false;
}

static bool nomem_allowed(const struct flight *f)
{
    unsigned long pages = ((f->last - f->start) >> PAGE_SHIFT) + 1;

    return nomem_ok || nr_held || m_foreign + min(pages, 300UL) > 254 ||
           pool_free() < 80;
}

static unsigned int map_allowed(const struct flight *f, uint64_t *good)
{
    struct m_ctx *c = &m_ctx[m_ctx_of(f->ctx)];
    unsigned int set = 0;
    uint64_t iova;

    for ( iova = f->start; iova <= f->last; iova += PAGE_SIZE )
    {
        uint64_t gfn = (f->phys + (iova - f->start)) >> PAGE_SHIFT;
        const struct m_page *p = m_page(c, iova);
        bool may = may_map(p2m_at(gfn), f->flags);

        if ( nr_taints && is_tainted(gfn) )
        {
            /* Whatever it was when the MAP came by. */
            set |= SET(M_FAULT);
        }
        else if ( !may )
            break;
        if ( p && (p->flags & M_MAPPED) )
        {
            *good = iova;
            return set | SET(M_INVAL);
        }
    }
    *good = iova;
    return set | (iova <= f->last ? SET(M_FAULT) : SET(M_OK));
}

/* Whatever forbids a MAP, in any order. */
static unsigned int anywhere(const struct flight *f)
{
    const struct m_ctx *c = &m_ctx[m_ctx_of(f->ctx)];
    unsigned int set = 0;
    uint64_t iova;

    for ( iova = f->start; iova <= f->last; iova += PAGE_SIZE )
    {
        uint64_t gfn = (f->phys + (iova - f->start)) >> PAGE_SHIFT;
        const struct m_page *p = m_page(c, iova);

        if ( p && (p->flags & M_MAPPED) )
            set |= SET(M_INVAL);
        if ( !may_map(p2m_at(gfn), f->flags) )
            set |= SET(M_FAULT);
    }
    return set;
}

static void map_enter(const struct flight *f)
{
    struct m_ctx *c = &m_ctx[m_ctx_of(f->ctx)];
    uint64_t iova;

    for ( iova = f->start; iova <= f->last; iova += PAGE_SIZE )
    {
        uint64_t gfn = (f->phys + (iova - f->start)) >> PAGE_SHIFT;
        const struct p2m_page *e = p2m_at(gfn);
        unsigned int first = iova == f->start ? M_FIRST : 0;

        if ( !m_page(c, iova) )
            wrong("a MAP outside all windows succeeds");
        if ( nr_taints && is_tainted(gfn) )
        {
            m_enter(c, iova, gfn, 0, M_OPEN | first);
            any_open = true;
        }
        else
            m_enter(c, iova, gfn, e->mfn, m_prot(rights(e), f->flags) | first);
    }
}

/* A MAP that failed has been undone; what it had entered may be stale. */
static void map_undone(const struct flight *f, uint64_t good)
{
    struct m_ctx *c = &m_ctx[m_ctx_of(f->ctx)];
    uint64_t iova;

    for ( iova = f->start; iova < good; iova += PAGE_SIZE )
    {
        uint64_t gfn = (f->phys + (iova - f->start)) >> PAGE_SHIFT;
        struct m_page *p = m_page(c, iova);
        unsigned int i;

        if ( !p )
            break;
        m_add_stale(p, c->flushed, p2m_at(gfn)->mfn);
        for ( i = 0; i < nr_taints; i++ )
            if ( taint[i].gfn == gfn )
                m_add_stale(p, c->flushed, taint[i].old.mfn);
    }
}

static void expect(const struct flight *f, unsigned int set)
{
    unsigned int got = *f->status;

    if ( expect_broken )
        set |= SET(M_DEVERR);
    if ( got > 31 || !(set & SET(got)) )
        wrong("%s ctx %u ep %#x %#lx..%#lx phys %#lx flags %u: status %u, allowed %#x",
              op_name[f->kind], f->ctx, f->ep, (long)f->start, (long)f->last,
              (long)f->phys, f->flags, got, set);
}

static void replay_map(const struct flight *f)
{
    unsigned int status = m_map_status(f->ctx, f->start, f->last, f->phys,
                                       f->flags), set;
    uint64_t good;

    if ( status != M_OK )
    {
        expect(f, SET(status));
        return;
    }
    set = map_allowed(f, &good);
    /* Blocks look at what is in the way first. */
    if ( f->last - f->start >= 0x1fffff &&
         (set & (SET(M_INVAL) | SET(M_FAULT))) )
        set |= anywhere(f);
    if ( *f->status == M_NOMEM && nomem_allowed(f) )
        set |= SET(M_NOMEM);
    expect(f, set);
    if ( *f->status == M_OK )
        map_enter(f);
    else
        map_undone(f, good);
}

/* What it must have done, when nothing but one status is possible. */
static void replay_unseen(struct flight *f)
{
    static uint8_t status;
    unsigned int s;
    uint64_t good;

    s = f->kind == OP_MAP ? m_map_status(f->ctx, f->start, f->last, f->phys,
                                         f->flags)
                          : m_unmap_status(f->ctx, f->start, f->last);
    if ( f->kind == OP_MAP && s == M_OK )
    {
        unsigned int set = map_allowed(f, &good);

        s = set & SET(M_OK) ? M_OK : set & SET(M_INVAL) ? M_INVAL : M_FAULT;
    }
    status = s;
    f->status = &status;
    if ( f->kind == OP_MAP )
        replay_map(f);
    else if ( s == M_OK )
        m_unmap(f->ctx, f->start, f->last, !pd->strict);
}

static void replay(void)
{
    while ( !pd->broken && fl_head != fl_tail &&
            fl_head != v->q[0].used_idx )
    {
        struct flight *f = &flight[fl_head++ % NUM];
        unsigned int set;
        if ( f->killed )
            continue;
        switch ( f->kind )
        {
        case OP_ATTACH:
            set = SET(m_attach_status(f->ctx, f->ep, f->flags, f->reserved));
            if ( *f->status == M_NOMEM && (nomem_ok || nr_held ||
                                           pool_free() < 80) )
                set |= SET(M_NOMEM);
            expect(f, set);
            if ( *f->status == M_OK )
                m_attach(f->ctx, f->ep, f->flags);
            break;

        case OP_DETACH:
            expect(f, SET(m_detach_status(f->ctx, f->ep)));
            if ( *f->status == M_OK )
                m_leave(m_ep_of(f->ep));
            break;

        case OP_MAP:
            replay_map(f);
            break;

        case OP_UNMAP:
            expect(f, SET(m_unmap_status(f->ctx, f->start, f->last)));
            if ( *f->status != M_OK )
                break;
            m_unmap(f->ctx, f->start, f->last, true);
            break;

        case OP_PROBE:
            expect(f, SET(m_ep_there(m_ep_of(f->ep)) ? M_OK : M_NOENT));
            break;

        case OP_JUNK:
            if ( *f->status != 0xee )
                wrong("an unknown request is answered: %u", *f->status);
            break;
        }
    }
    fl_begun = fl_head != fl_tail && v->req.active;

    /* Strict: what the driver is told of is over; before, it may not be. */
    if ( pd->strict && !pd->broken && v->q[0].published == v->q[0].used_idx )
        m_all_flushed();
}

/* A context that went while a request works on it. */
static void kill_flight(void)
{
    struct flight *f = &flight[fl_head % NUM];

    if ( fl_head != fl_tail && fl_begun && m_ctx_of(f->ctx) < 0 &&
         (f->kind == OP_MAP || f->kind == OP_UNMAP) )
        f->killed = true;
}

static void add_taint(uint64_t gfn)
{
    const struct flight *f = &flight[fl_head % NUM];

    /* How far it has come is not known: nor how much there is to revoke. */
    revoked_unknown |= fl_head != fl_tail && fl_begun;
    if ( fl_head == fl_tail || !fl_begun || f->kind != OP_MAP ||
         nr_taints == MAX_TAINTS || gfn << PAGE_SHIFT < f->phys ||
         (gfn << PAGE_SHIFT) - f->phys > f->last - f->start )
        return;
    taint[nr_taints].gfn = gfn;
    taint[nr_taints++].old = p2m[gfn];
}

/*
 * A page was revoked while its MAP was under way: the next one begins a mapping
 * if it was there already.
 */
static void hole_before(struct m_ctx *ctx, unsigned int c, uint64_t iova)
{
    struct m_page *next = m_page(ctx, iova);
    unsigned int level;

    if ( next && (next->flags & M_MAPPED) &&
         (s2pt_lookup(&pd->ctx[m_ctx_id[c]]->pt, iova, &level) & S2_SW_FIRST) )
        next->flags |= M_FIRST;
}

/* Pages whose MAP met a change of the p2m: look which one it took. */
static void settle_open(void)
{
    unsigned int c, i, level;
    uint32_t k, to;

    for ( c = 0; any_open && c < M_CTXS; c++ )
        for ( k = 0; m_ctx[c].mapped && k < m_nr_pages; k++ )
        {
            struct m_page *p = &m_ctx[c].page[k];
            uint64_t gfn = p->gfn;
            const struct p2m_page *e = p2m_at(gfn);
            bool foreign = false;
            s2_pte_t pte;

            if ( !(p->flags & M_OPEN) )
                continue;
            pte = s2pt_lookup(&pd->ctx[m_ctx_id[c]]->pt, m_iova(k), &level);
            to = ((pte & S2_ADDR_MASK) | (m_iova(k) &
                  ((1UL << s2_shift(level)) - 1))) >> PAGE_SHIFT;
            for ( i = 0; i < nr_taints; i++ )
                if ( taint[i].gfn == gfn )
                {
                    if ( pte && to == taint[i].old.mfn )
                        e = &taint[i].old;
                    foreign |= rights(&taint[i].old) & M_FOREIGN;
                }
            if ( !pte && !foreign )
                wrong("iova %#lx: not mapped by a MAP that succeeded",
                      (long)m_iova(k));
            if ( pte && (to != e->mfn || !rights(e)) )
                wrong("iova %#lx: mapped to a page that never was there",
                      (long)m_iova(k));
            p->flags &= ~M_OPEN;
            if ( pte )
            {
                p->mfn = e->mfn;
                p->flags |= m_prot(rights(e), pte >> 6 & 3);
                m_foreign += !!(p->flags & M_FOREIGN);
            }
            else
            {
                p->nr_stale = M_STALE + 1;
                p->since = ++m_clock;
                p->flags = 0;
                m_ctx[c].mapped--;
                hole_before(&m_ctx[c], c, m_iova(k) + 0x1000);
            }
        }
    any_open = false;
    nr_taints = 0;
}

/*
 * The guest's vCPUs, in the hypervisor.
 */
static void check_idle(void)
{
    unsigned int i;
    struct { uint32_t id, len; } e;

    if ( used()[1] != avail_idx || fl_head != fl_tail )
        wrong("idle with %u of %u answered", used()[1], avail_idx);
    for ( i = 0; i < NUM && i < avail_idx; i++ )
    {
        uint16_t n = avail_idx - 1 - i;

        memcpy(&e, (char *)used() + 4 + n % NUM * 8, 8);
        if ( e.id != avail()[2 + n % NUM] || (e.len && e.len != 4 &&
                                              e.len != 516) )
            wrong("used entry %u: id %u, length %u", n, e.id, e.len);
    }
    if ( rd(0x70) != 15 )
        wrong("status %#x", rd(0x70));
    if ( fake_mapped != 6 )
        wrong("%u pages are mapped", fake_mapped);
    settle_open();
}

/* The worker's slice, cut wherever @budget ends.  As in domain.c. */
static void cut_slice(int budget)
{
    bool more = true;

    spin_lock(&pd->lock);
    pd->work = false;
    if ( pvi_fq_release(pd, &budget) )
    {
        more = viommu_slice(v, &budget);
        if ( !pvi_context_reap(pd, &budget) )
        {
            if ( budget > 0 && pvi_fq_pending(pd) &&
                 pvi_fq_flush(pd, PVI_CAUSE_DETACH) )
                more = false;
            else
                more = true;
        }
    }
    if ( more )
        pvi_work(pd);
    spin_unlock(&pd->lock);
    if ( !more )
        pd->worker = NULL;
}

static void one_slice(void)
{
    struct vcpu *w = pd->worker && !one_in(4) ? pd->worker : &cpus[rn(4)];

    if ( !pd->broken && one_in(2) )
        cut_slice(1 + rn(huge ? 4096 : 96));
    else
    {
        bool more;

        fake_irqs_off = true;
        more = pviommu_vcpu_work(w);
        if ( more && pd->worker != w && !v->resetting && !pd->work )
            wrong("a vCPU waits for another");
        if ( !fake_irqs_off )
            wrong("interrupts are on");
        fake_irqs_off = false;
    }
    if ( fake_locks )
        wrong("%u locks are held", fake_locks);
    replay();
}

static void run_to_rest(void)
{
    unsigned int i;

    for ( i = 0; (pd->work || pd->worker) && !pd->broken; i++ )
    {
        if ( i == 100000 )
            wrong("still at work after %u slices", i);
        one_slice();
    }
}

static void ring_bell(void)
{
    mmio_info_t info = { .dabt.size = 2, .gpa = 0x2000050 };

    fake_mmio_ops->write(&cpus[rn(4)], &info, 0, fake_mmio_priv);
}

/* All that was posted is answered. */
static void run_all(void)
{
    if ( fl_head != fl_tail )
        ring_bell();
    run_to_rest();
    if ( !pd->broken )
        check_idle();
}

static void post_request(struct flight *f, const void *req, unsigned int len,
                         unsigned int in_len)
{
    /* Buffers of the ring are used again after NUM / 2 requests. */
    if ( (uint16_t)(fl_tail - fl_head) >= NUM / 2 - 1 )
        run_all();
    if ( pd->broken )
        return;
    f->status = post(req, len, in_len);
    flight[fl_tail++ % NUM] = *f;
}

static void kick_now(bool all)
{
    ring_bell();
    if ( all )
        run_all();
    else
    {
        unsigned int n = 1 + rn(6);

        while ( n-- && (pd->work || pd->worker) && !pd->broken )
            one_slice();
    }
}

static void maybe_kick(void)
{
    unsigned int x = rn(8);

    if ( x < 4 )
        kick_now(true);
    else if ( x < 6 )
        kick_now(false);
}

/*
 * Checks
 */
static bool dma_ok(const struct m_page *p, uint64_t flushed, bool write,
                   int rc, uint32_t to)
{
    if ( p && (p->flags & M_OPEN) )
        return true;
    if ( p && (p->flags & M_MAPPED) )
    {
        if ( !(p->flags & (write ? M_WRITE : M_READ)) )
            return rc == EVT_F_PERMISSION;
        return !rc && to == p->mfn;
    }
    if ( rc == EVT_F_TRANSLATION )
        return true;
    if ( !p || !m_nr_stale(p, flushed) )
        return false;
    /* It is what it was, and nobody else has got it. */
    return rc == EVT_F_PERMISSION || (!rc && m_is_stale(p, flushed, to));
}

static void check_dma(unsigned int smmu, uint32_t sid, uint64_t iova,
                      bool write)
{
    int what = m_stream(smmu, sid), rc;
    const struct flight *f = &flight[fl_head % NUM];
    bool fuzzy = fl_head != fl_tail && fl_begun && what >= 0 &&
                 m_ctx_id[what] == f->ctx;
    struct m_page dflt, *p = NULL;
    bool ok;
    paddr_t pa;

    if ( sw[0].mode == SW_NEVER || sw[1].mode == SW_NEVER )
        return;
    heat(smmu, sid, iova);
    rc = sw_dma(&sw[smmu], sid, iova, write, &pa);
    if ( what == M_NOBODY )
        /* -1: not recorded, after so many of these. */
        ok = rc == EVT_C_BAD_STE || rc == EVT_C_BAD_STREAMID || rc == -1;
    else if ( what == M_BLOCKED )
        ok = rc == EVT_F_TRANSLATION;
    else if ( what == M_DEFAULT )
    {
        uint64_t gfn = iova >> PAGE_SHIFT;

        if ( gfn < GUEST_PAGES )
        {
            dflt = p2m[gfn].dma;
            dflt.flags = p2m[gfn].type == p2m_invalid ? 0 : M_MAPPED |
                         (p2m[gfn].access == p2m_access_n ? 0 :
                          rights(&p2m[gfn]) & 3);
            dflt.mfn = p2m[gfn].mfn;
            p = &dflt;
        }
        ok = dma_ok(p, 0, write, rc, pa >> PAGE_SHIFT);
    }
    else
        ok = fuzzy || dma_ok(m_page(&m_ctx[what], iova), m_ctx[what].flushed,
                             write, rc, pa >> PAGE_SHIFT);
    if ( !ok )
    {
        if ( what >= 0 )
            p = m_page(&m_ctx[what], iova);
        wrong("%s of stream %#x of SMMU %u at %#lx: event %d, page %#lx; the model: %d, flags %#x, page %#x, %u stale",
              write ? "write" : "read", sid, smmu, (long)iova, rc,
              (long)(pa >> PAGE_SHIFT), what, p ? p->flags : 0,
              p ? p->mfn : 0, p ? p->nr_stale : 0);
    }
    if ( !rc && (pa & 0xfff) != (iova & 0xfff) )
        wrong("the offset in the page is lost");
}

/* Any endpoint that is attached to a context, or one at random. */
static void dma_ctx(uint32_t id, uint64_t iova)
{
    unsigned int i, k = rn(M_EPS);
    int c = m_ctx_of(id);

    for ( i = 0; i < M_EPS && c >= 0; i++ )
        if ( m_ep[(i + k) % M_EPS].ctx == c && m_ep_there(&m_ep[(i + k) % M_EPS]) )
        {
            k += i;
            break;
        }
    k %= M_EPS;
    i = rn(m_ep[k].nr_streams);
    check_dma(m_ep[k].s[i].smmu, m_ep[k].s[i].sid, iova, one_in(2));
}

static void dma_default(uint64_t gfn)
{
    unsigned int i, j, k = rn(M_EPS);

    for ( i = 0; i < M_EPS; i++ )
    {
        const struct m_ep *e = &m_ep[(i + k) % M_EPS];

        j = rn(e->nr_streams);
        if ( m_stream(e->s[j].smmu, e->s[j].sid) == M_DEFAULT )
        {
            check_dma(e->s[j].smmu, e->s[j].sid, gfn << PAGE_SHIFT |
                      (r64() & 0xff8), one_in(2));
            return;
        }
    }
}

/* Both ends of a range, what is beside them, and something inside. */
static void dma_range(uint32_t ctx, uint64_t start, uint64_t last)
{
    uint64_t at[5] = { start, last, start - 0x1000, last + 1,
                       start + (r64() % (last - start + 1)) };
    unsigned int i;

    for ( i = 0; i < 5; i++ )
        if ( i < 2 || one_in(2) )
            dma_ctx(ctx, at[i] & m_ias_last);
}

/*
 * A context's tables, read as an SMMU reads them: exactly the model's pages,
 * mappings begin where the model says, and the counters are right.
 */
struct tables { struct m_ctx *c; unsigned long tables, pages; };

static void walk_table(struct tables *t, paddr_t pa, unsigned int level,
                       uint64_t iova)
{
    const uint64_t *e = maddr_to_virt(pa);
    unsigned int shift = 12 + 9 * (3 - level), i;

    t->tables++;
    for ( i = 0; i < 512; i++, iova += 1UL << shift )
    {
        uint64_t v = e[i], n, k;
        bool table = level < 3 && (v & 2);

        if ( table )
        {
            if ( v & 1 )
                walk_table(t, v & GENMASK(47, 12), level + 1, iova);
            else
                t->tables++;            /* waits for its release */
            continue;
        }
        if ( !(v & 1) )
            continue;
        n = 1UL << (shift - 12);
        t->pages += n;
        for ( k = 0; k < n; k++ )
        {
            const struct m_page *p = m_page(t->c, iova + (k << 12));
            unsigned int flags = (v >> 6 & 3) | M_MAPPED |
                                 (!k && (v >> 55 & 1) ? M_FIRST : 0);

            if ( !p || p->mfn != ((v & GENMASK(47, 12)) >> 12) + k ||
                 (p->flags & ~(M_NOREF | M_FOREIGN)) != flags )
                wrong("table: %#lx is %#lx, the model has page %#x flags %#x",
                      (long)iova + (long)(k << 12), (long)v, p ? p->mfn : 0,
                      p ? p->flags : 0);
        }
    }
}

static unsigned long check_tables(unsigned int c)
{
    const struct flight *f = &flight[fl_head % NUM];
    struct pvi_context *ctx = pd->ctx[m_ctx_id[c]];
    struct tables t = { &m_ctx[c] };

    if ( !ctx != !m_ctx[c].exists )
        wrong("context %u: %s", m_ctx_id[c], ctx ? "exists" : "is missing");
    if ( !ctx || m_ctx[c].bypass )
        return 0;
    if ( fl_head != fl_tail && fl_begun && f->ctx == m_ctx_id[c] )
        return 0;
    settle_open();
    walk_table(&t, page_to_maddr(ctx->pt.root), 0, 0);
    if ( t.pages != m_ctx[c].mapped || ctx->pt.nr_pages != t.pages ||
         ctx->pt.nr_tables != t.tables )
        wrong("context %u: %lu pages in %lu tables, counted %lu in %lu, the model %lu",
              m_ctx_id[c], t.pages, t.tables, ctx->pt.nr_pages,
              ctx->pt.nr_tables, m_ctx[c].mapped);
    return t.tables;
}

/* Nothing pending, nothing in progress: each reference is accounted for. */
static void check_refs(void)
{
    static uint16_t want[FAKE_NR_PAGES];    /* references of each frame */
    unsigned long i, tables = 0, used;
    unsigned int c, q;
    uint32_t k;

    for ( i = 0; i < fr_end; i++ )
        want[i] = fr_alloc[i] + fr_p2m[i];
    for ( c = 0; c < M_CTXS; c++ )
    {
        tables += check_tables(c);
        for ( k = 0; m_ctx[c].mapped && k < m_nr_pages; k++ )
            if ( (m_ctx[c].page[k].flags & (M_MAPPED | M_NOREF)) == M_MAPPED )
                want[frame(m_ctx[c].page[k].mfn)]++;
    }
    for ( q = 0; q < 6; q++ )
        want[frame(p2m[(RINGS >> 12) + q].mfn)]++;
    for ( i = 0; i < fr_end; i++ )
        if ( (fr_alloc[i] || want[i]) && fake_frames[i].count_info != want[i] )
            wrong("frame %#lx has %lu references, not %u",
                  i + (FAKE_RAM_BASE >> 12), fake_frames[i].count_info,
                  want[i]);
    if ( pd->fq.pages || pvi_fq_pending(pd) || pd->fq.head != pd->fq.tail )
        wrong("the flush queue is empty, and pins %lu pages", pd->fq.pages);
    used = POOL - nr_held - pool_free();
    if ( used < tables || used - tables > min(m_foreign, 64UL) ||
         (m_foreign && used == tables) )
        wrong("%lu pages of the pool are in use: %lu tables, %lu foreign pages",
              used, tables, m_foreign);
}

/* No cache names a table that was given back. */
static void check_free_tables(void)
{
    struct page_info *pg;

    page_list_for_each ( pg, &dom.arch.paging.p2m_freelist )
        if ( sw_reaching(&sw[0], page_to_maddr(pg), PAGE_SIZE) ||
             sw_reaching(&sw[1], page_to_maddr(pg), PAGE_SIZE) )
            wrong("a free table is still cached");
}

/* Streams that the checks' own DMA has made too loud. */
static unsigned int smmu_cutoff_syncs(void)
{
    const struct smmu_device *smmu;
    unsigned int n = 0;

    smmu_for_each ( smmu )
        n += atomic_read(&smmu->stats.event_sync);

    return n;
}

static void check_counters_exact(void)
{
    unsigned int i, n = 0;

    /* Nobody waits for what was issued early. */
    if ( !pd->broken )
        for ( i = 0; i < 2; i++ )
            sw_consume(&sw[i], UINT_MAX);
    for ( i = 0; i < PVI_NR_CAUSES; i++ )
        n += atomic_read(&pd->stats.flush[i]);
    i = smmu_cutoff_syncs();
    if ( n != atomic_read(&pd->stats.sync) || n + i != syncs() - 2 )
        wrong("%u syncs by cause, %d in all, %u seen", n,
              atomic_read(&pd->stats.sync), syncs() - 2);
    if ( !revoked_unknown && pd->stats.revoked != m_revoked )
        wrong("%lu revoked, the model %lu", pd->stats.revoked, m_revoked);
}

static void settle(void)
{
    int budget;

    run_all();
    if ( pd->broken )
        return;
    if ( pvi_fq_flush(pd, PVI_CAUSE_AGE) )
    {
        if ( !expect_broken )
            wrong("a flush fails");
        return;
    }
    do {
        budget = 1 + rn(huge ? 100000 : 64);
    } while ( !pvi_fq_release(pd, &budget) );
    m_all_flushed();
    /* Contexts that waited for that. */
    run_all();
    check_refs();
    check_free_tables();
}

#endif /* PROP_OPS_H */
