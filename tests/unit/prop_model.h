/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The reference model of the property test: what a guest may expect, kept in
 * dictionaries with an entry for each page.  It knows nothing of tables, of
 * queues or of anything else of the driver; constants are those of the
 * standard, written down anew.
 *
 * Stale: in a lazy domain a device may reach what was unmapped until the next
 * flush.  So a page remembers what it was, with the time; whatever completes
 * an invalidation moves `flushed` forward.
 */
#ifndef PROP_MODEL_H
#define PROP_MODEL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    M_OK, M_IOERR, M_UNSUPP, M_DEVERR, M_INVAL, M_RANGE, M_NOENT, M_FAULT,
    M_NOMEM,
};
#define SET(status) (1U << (status))

enum {
    M_READ = 1, M_WRITE = 2, M_FIRST = 4, M_NOREF = 8, M_FOREIGN = 16,
    M_MAPPED = 32,
    M_OPEN = 64,            /* one of the candidates: see m_settle_open() */
};

#define M_STALE     3

struct m_page {
    uint32_t mfn, gfn;      /* what is mapped, and by which guest frame */
    uint8_t flags;
    uint8_t nr_stale;       /* M_STALE + 1: any page */
    uint32_t stale[M_STALE];
    uint64_t since;         /* when the last of them was added */
};

/* Where sequences map: a few windows of the input range. */
struct m_window { uint64_t base; uint32_t nr, first; };
#define M_WINDOWS   3
static struct m_window m_win[M_WINDOWS];
static uint32_t m_nr_pages;         /* in all windows */
static uint64_t m_ias_last;

struct m_ctx {
    bool exists, bypass;
    unsigned int endpoints;
    unsigned long mapped;           /* pages */
    uint64_t flushed;
    struct m_page *page;            /* m_nr_pages of them */
};

#define M_CTXS      5
static const uint32_t m_ctx_id[M_CTXS] = { 0, 1, 2, 7, 1023 };
static struct m_ctx m_ctx[M_CTXS];
static uint64_t m_clock, m_flushed;
static unsigned long m_foreign;     /* pages that are foreign, all contexts */
static unsigned long m_revoked;

static int m_ctx_of(uint32_t id)
{
    int i;

    for ( i = 0; i < M_CTXS; i++ )
        if ( m_ctx_id[i] == id )
            return m_ctx[i].exists ? i : -1;
    return -1;
}

static int m_index(uint64_t iova)
{
    int i;

    for ( i = 0; i < M_WINDOWS; i++ )
        if ( iova - m_win[i].base < (uint64_t)m_win[i].nr << 12 )
            return m_win[i].first + ((iova - m_win[i].base) >> 12);
    return -1;
}

static uint64_t m_iova(uint32_t index)
{
    int i;

    for ( i = M_WINDOWS - 1; index < m_win[i].first; i-- )
        continue;
    return m_win[i].base + ((uint64_t)(index - m_win[i].first) << 12);
}

static struct m_page *m_page(const struct m_ctx *c, uint64_t iova)
{
    int i = m_index(iova);

    return i < 0 ? NULL : &c->page[i];
}

static void m_all_flushed(void)
{
    m_flushed = ++m_clock;
}

static unsigned int m_nr_stale(const struct m_page *p, uint64_t flushed)
{
    return p->since > m_flushed && p->since > flushed ? p->nr_stale : 0;
}

static void m_add_stale(struct m_page *p, uint64_t flushed, uint32_t mfn)
{
    if ( !m_nr_stale(p, flushed) )
        p->nr_stale = 0;
    if ( p->nr_stale < M_STALE )
        p->stale[p->nr_stale] = mfn;
    if ( p->nr_stale <= M_STALE )
        p->nr_stale++;
    p->since = ++m_clock;
}

static bool m_is_stale(const struct m_page *p, uint64_t flushed, uint32_t mfn)
{
    unsigned int i, n = m_nr_stale(p, flushed);

    if ( n > M_STALE )
        return true;
    for ( i = 0; i < n; i++ )
        if ( p->stale[i] == mfn )
            return true;
    return false;
}

static void m_clear(struct m_ctx *c, struct m_page *p, bool lazy)
{
    if ( !(p->flags & M_MAPPED) )
        return;
    if ( p->flags & M_OPEN )
        p->nr_stale = M_STALE + 1, p->since = ++m_clock;
    else if ( lazy )
        m_add_stale(p, c->flushed, p->mfn);
    if ( p->flags & M_FOREIGN )
        m_foreign--;
    p->flags = 0;
    c->mapped--;
}

static void m_ctx_gone(struct m_ctx *c)
{
    uint32_t i;

    for ( i = 0; c->mapped && i < m_nr_pages; i++ )
        m_clear(c, &c->page[i], false);
    c->exists = false;
    /* The next one of that name has a VMID that nobody has used. */
    c->flushed = ++m_clock;
}

/* Would removing from @start to @last split a mapping? */
static bool m_cut(const struct m_ctx *c, uint64_t at)
{
    const struct m_page *p;

    if ( at > m_ias_last || !(p = m_page(c, at)) || !(p->flags & M_MAPPED) )
        return false;
    return !(p->flags & M_FIRST) || (at & 0xfff);
}

static unsigned int m_unmap_status(uint32_t id, uint64_t start, uint64_t last)
{
    int i = m_ctx_of(id);

    if ( i < 0 )
        return M_NOENT;
    if ( m_ctx[i].bypass )
        return M_INVAL;
    if ( last < start )
        return M_RANGE;
    if ( start > m_ias_last )
        return M_OK;
    if ( last > m_ias_last )
        last = m_ias_last;
    return m_cut(&m_ctx[i], start) || m_cut(&m_ctx[i], last + 1) ? M_RANGE
                                                                 : M_OK;
}

static void m_unmap(uint32_t id, uint64_t start, uint64_t last, bool lazy)
{
    int i = m_ctx_of(id), w;
    uint64_t iova;

    for ( w = 0; w < M_WINDOWS && i >= 0; w++ )
    {
        uint64_t first = m_win[w].base, end = first - 1 +
                         ((uint64_t)m_win[w].nr << 12);

        if ( start > end || last < first )
            continue;
        iova = (start > first ? start : first) & ~0xfffULL;
        for ( ; iova <= end && iova <= last && m_ctx[i].mapped; iova += 0x1000 )
            m_clear(&m_ctx[i], m_page(&m_ctx[i], iova), lazy);
    }
}

/* What can be said of a MAP without looking at pages; M_OK: go on. */
static unsigned int m_map_status(uint32_t id, uint64_t start, uint64_t last,
                                 uint64_t phys, uint32_t flags)
{
    int i = m_ctx_of(id);

    if ( flags & ~7U )
        return M_INVAL;
    if ( i < 0 )
        return M_NOENT;
    if ( m_ctx[i].bypass )
        return M_INVAL;
    if ( (start | phys | (last + 1)) & 0xfff || last <= start ||
         last > m_ias_last || phys + (last - start) < phys )
        return M_RANGE;
    return M_OK;
}

static void m_enter(struct m_ctx *c, uint64_t iova, uint32_t gfn, uint32_t mfn,
                    unsigned int flags)
{
    struct m_page *p = m_page(c, iova);

    p->gfn = gfn;
    p->mfn = mfn;
    p->flags = flags | M_MAPPED;
    /* What it was can't be reached any more, strict or lazy. */
    p->nr_stale = 0;
    c->mapped++;
    if ( flags & M_FOREIGN )
        m_foreign++;
}

static void m_windows(unsigned int profile_huge)
{
    static uint32_t have;
    uint32_t n = 0;
    int i;

    m_ias_last = (1ULL << 48) - 1;
    m_win[0] = (struct m_window){ 0, 128, 0 };
    m_win[1] = (struct m_window){ 0x3fc00000, 3072, 0 };
    m_win[2] = (struct m_window){ (1ULL << 48) - 0x80000, 128, 0 };
    if ( profile_huge )
        m_win[1] = (struct m_window){ (8ULL << 30) - 0x200000,
                                      512 + (3U << 18) / 2, 0 };
    for ( i = 0; i < M_WINDOWS; i++ )
    {
        m_win[i].first = n;
        n += m_win[i].nr;
    }
    for ( i = 0; i < M_CTXS; i++ )
    {
        struct m_page *p = m_ctx[i].page;

        if ( n > have )
        {
            free(p);
            p = calloc(n, sizeof(*p));
        }
        else
            memset(p, 0, n * sizeof(*p));
        m_ctx[i] = (struct m_ctx){ .page = p };
    }
    have = n > have ? n : have;
    m_nr_pages = n;
    m_clock = 1;
    m_flushed = 0;
    m_foreign = m_revoked = 0;
}

/*
 * Endpoints and streams
 */
#define M_EP_STREAMS 3
struct m_ep {
    uint32_t id;
    bool present, bridge;
    int ctx;                        /* index into m_ctx, or -1 */
    unsigned int nr_streams;
    struct { unsigned int smmu; uint32_t sid; } s[M_EP_STREAMS];
};

#define M_EPS       10
static struct m_ep m_ep[M_EPS];
static bool m_bypass, m_bridge;

/* The bridge: requester ids 0..0x4ff of segment 2 are streams from 0x180 on. */
#define M_BRIDGE_ID     0x20000U
#define M_BRIDGE_NR     0x500U
#define M_BRIDGE_SID    0x180U

static void m_eps(void)
{
    unsigned int i;

    memset(m_ep, 0, sizeof(m_ep));
    for ( i = 0; i < M_EPS; i++ )
    {
        m_ep[i].ctx = -1;
        m_ep[i].nr_streams = 1;
    }
    for ( i = 0; i < 4; i++ )
    {
        m_ep[i].id = m_ep[i].s[0].sid = 0x10 + i;
        m_ep[i].s[0].smmu = i & 1;
        m_ep[i].present = true;
    }
    /* Two with a stream in common. */
    for ( i = 4; i < 6; i++ )
    {
        m_ep[i].id = 0x10 + i;
        m_ep[i].s[0].sid = 0x30;
    }
    /* One with streams at both SMMUs. */
    m_ep[6].id = 0x100;
    m_ep[6].nr_streams = 3;
    for ( i = 0; i < 3; i++ )
    {
        m_ep[6].s[i].sid = 0x100 + 0x33 * i;
        m_ep[6].s[i].smmu = i & 1;
    }
    for ( i = 7; i < M_EPS; i++ )
    {
        uint32_t rid = i == 7 ? 0 : i == 8 ? 0x208 : 0x4ff;

        m_ep[i].id = M_BRIDGE_ID + rid;
        m_ep[i].s[0].sid = M_BRIDGE_SID + rid;
        m_ep[i].bridge = true;
    }
    m_bypass = true;
    m_bridge = false;
}

static struct m_ep *m_ep_of(uint32_t id)
{
    unsigned int i;

    for ( i = 0; i < M_EPS; i++ )
        if ( m_ep[i].id == id )
            return &m_ep[i];
    return NULL;
}

static bool m_ep_there(const struct m_ep *e)
{
    return e && (e->bridge ? m_bridge : e->present);
}

/* What a stream does: a context's index, or one of these. */
enum { M_NOBODY = -3, M_BLOCKED = -2, M_DEFAULT = -1 };

static bool m_has(const struct m_ep *e, unsigned int smmu, uint32_t sid)
{
    unsigned int i;

    for ( i = 0; i < e->nr_streams; i++ )
        if ( e->s[i].smmu == smmu && e->s[i].sid == sid )
            return true;
    return false;
}

static int m_stream(unsigned int smmu, uint32_t sid)
{
    bool owned = m_bridge && !smmu && sid - M_BRIDGE_SID < M_BRIDGE_NR;
    unsigned int i;

    for ( i = 0; i < M_EPS; i++ )
        if ( m_ep_there(&m_ep[i]) && m_has(&m_ep[i], smmu, sid) )
        {
            if ( m_ep[i].ctx >= 0 )
                return m_ctx[m_ep[i].ctx].bypass ? M_DEFAULT : m_ep[i].ctx;
            owned = true;
        }
    return !owned ? M_NOBODY : m_bypass ? M_DEFAULT : M_BLOCKED;
}

/* Is a stream of @e used by another that is attached, and not to @ctx? */
static bool m_conflict(const struct m_ep *e, int ctx)
{
    int target = m_ctx[ctx].bypass ? M_DEFAULT : ctx;
    unsigned int i, j;

    for ( i = 0; i < M_EPS; i++ )
        for ( j = 0; j < e->nr_streams; j++ )
            if ( &m_ep[i] != e && m_ep_there(&m_ep[i]) && m_ep[i].ctx >= 0 &&
                 m_has(&m_ep[i], e->s[j].smmu, e->s[j].sid) &&
                 m_stream(e->s[j].smmu, e->s[j].sid) != target )
                return true;
    return false;
}

static unsigned int m_attach_status(uint32_t id, uint32_t ep, uint32_t flags,
                                    bool reserved)
{
    int c = m_ctx_of(id);
    const struct m_ep *e = m_ep_of(ep);

    if ( reserved || flags & ~1U )
        return M_INVAL;
    if ( !m_ep_there(e) )
        return M_NOENT;
    if ( id > 1023 )
        return M_RANGE;
    if ( c >= 0 && m_ctx[c].bypass != (flags & 1) )
        return M_INVAL;
    if ( c < 0 )
    {
        /* A new one is nobody else's. */
        for ( c = 0; m_ctx_id[c] != id; c++ )
            continue;
        m_ctx[c].bypass = flags & 1;
    }
    return e->ctx != c && m_conflict(e, c) ? M_UNSUPP : M_OK;
}

static void m_leave(struct m_ep *e)
{
    struct m_ctx *c = &m_ctx[e->ctx];

    e->ctx = -1;
    /* Leaving completes what was pending. */
    c->flushed = ++m_clock;
    if ( !--c->endpoints )
        m_ctx_gone(c);
}

static void m_attach(uint32_t id, uint32_t ep, uint32_t flags)
{
    struct m_ep *e = m_ep_of(ep);
    int c;

    for ( c = 0; m_ctx_id[c] != id; c++ )
        continue;
    if ( e->ctx == c )
        return;
    if ( !m_ctx[c].exists )
    {
        m_ctx[c].exists = true;
        m_ctx[c].bypass = flags & 1;
    }
    m_ctx[c].endpoints++;
    if ( e->ctx >= 0 )
        m_leave(e);
    e->ctx = c;
}

static unsigned int m_detach_status(uint32_t id, uint32_t ep)
{
    const struct m_ep *e = m_ep_of(ep);
    int c = m_ctx_of(id);

    if ( !e || c < 0 || (e->ctx < 0 && (e->bridge || !e->present)) )
        return M_NOENT;
    return e->ctx != c ? M_INVAL : M_OK;
}

#endif /* PROP_MODEL_H */
