/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Random operations against a model: the same answers, the same translations
 * by walking the tables and by DMA, the same references, nothing left at the
 * end.  The SMMUs keep every stale entry, and devices do DMA at any time.
 *
 *   test_property              OPERATIONS (1,000,000) in many sequences
 *   SEED=n test_property       one sequence, told step by step
 *   PROFILE=p, FROM=n          of one profile only; the first seed
 *   SHRINK=s                   at most so many seconds
 *
 * A sequence that fails is made as short as possible and printed.
 */

#include "prop_ops.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Of the first frames most are others' pages, sooner or later. */
#define FOREIGN_GFNS 24

static struct dt_device_node bridge;
static __be32 iommu_map[4];
static struct config cfg;
static unsigned long xenheap_before;

static void shape_smmu(struct swsmmu *s)
{
    s->late = cfg.late;
    if ( cfg.noncoherent )
    {
        s->noncoherent = true;
        s->node.props[0].name = NULL;
    }
}

/* Level 2 stream tables, which stay, and everything else of Xen's heap. */
static unsigned long xenheap(void)
{
    struct smmu_device *smmu;
    unsigned long i, n = 0;

    for ( i = 0; i < min(fr_end + 4096, FAKE_NR_PAGES); i++ )
        n += fake_frames[i].count_info && fake_frames[i].xenheap;
    smmu_for_each ( smmu )
        for ( i = 0; i < smmu->strtab.nr_l1; i++ )
            n -= smmu_l2(&smmu->strtab, i) && !test_bit(i, smmu->strtab.shared);
    return n;
}

static void begin(void)
{
    static uint32_t segment;
    unsigned int i;

    make_smmu = shape_smmu;
    fr_end = max(fr_end, GUEST_PAGES * 3);
    make(cfg.strict, cfg.ril);
    m_windows(cfg.huge);
    m_eps();
    huge = NULL;
    huge_split = false;
    p2m_setup(cfg.blocks);
    if ( cfg.huge )
    {
        huge = fake_guest_pages(&dom, 18);
        adopt(huge, 1UL << 18);
        dom.arch.p2m.size = HUGE_GFN << 1;
    }
    for ( i = 0; i < 4; i++ )
        cpus[i] = (struct vcpu){ .domain = &dom, .vcpu_id = i };
    segment = cpu_to_be32(M_BRIDGE_ID >> 16);
    iommu_map[1] = cpu_to_be32(0x77);
    iommu_map[2] = cpu_to_be32(M_BRIDGE_SID);
    iommu_map[3] = cpu_to_be32(M_BRIDGE_NR);
    memset(&bridge, 0, sizeof(bridge));
    bridge.type = "pci";
    bridge.full_name = "/pcie";
    bridge.props[0] = (struct fake_prop){ "iommu-map", iommu_map, 16 };
    bridge.props[1] = (struct fake_prop){ "linux,pci-domain", &segment, 4 };
    sw[0].node.phandle = 0x77;
    sw[1].node.phandle = 0x78;
    sw[0].node.allnext = &sw[1].node;
    dt_host = &sw[0].node;
    sw[0].hook = sw[1].hook = hot_hook;
    memset(hot, 0, sizeof(hot));
    fl_head = fl_tail = 0;
    fl_begun = nomem_ok = expect_broken = any_open = revoked_unknown = false;
    nr_taints = nr_held = 0;
    memset(&recent, 0, sizeof(recent));
    memset(recent_foreign, 0, sizeof(recent_foreign));
    xenheap_before = xenheap();
    /* From here on devices do DMA whenever something is stored. */
    fake_store_hook(hot_stored);
}

/*
 * Operations
 */
static uint32_t some_ctx(void)
{
    unsigned int i, k = rn(M_CTXS);

    /* Mostly one that is there and has tables. */
    for ( i = 0; i < M_CTXS && !one_in(12); i++, k = (k + 1) % M_CTXS )
        if ( m_ctx[k].exists && !m_ctx[k].bypass )
            return m_ctx_id[k];
    return m_ctx_id[rn(one_in(4) ? M_CTXS : 3)];
}

static uint32_t some_ep(void)
{
    unsigned int i, k = rn(M_EPS);

    for ( i = 0; i < M_EPS && !one_in(12); i++, k = (k + 1) % M_EPS )
        if ( m_ep_there(&m_ep[k]) )
            return m_ep[k].id;
    return one_in(8) ? 0x77 : m_ep[rn(M_EPS)].id;
}

/* The answer of the allocator is no, once. */
static void arm(void)
{
    run_all();
    fake_alloc_fail = 1 + rn(4);
    nomem_ok = true;
}

static void disarm(void)
{
    fake_alloc_fail = 0;
    nomem_ok = false;
}

static void op_attach(void)
{
    struct viommu_req_attach r = { .type = VIOMMU_T_ATTACH };
    struct flight f = { .kind = OP_ATTACH };
    bool fails = one_in(32);

    r.domain = f.ctx = one_in(32) ? 1024 + rn(3) :
                       one_in(2) ? some_ctx() : m_ctx_id[rn(M_CTXS)];
    r.endpoint = f.ep = some_ep();
    r.flags = f.flags = one_in(64) ? 2 : one_in(10);
    f.reserved = one_in(64);
    r.reserved[rn(4)] = f.reserved;
    say("ATTACH context %u endpoint %#x flags %u%s%s\n", f.ctx, f.ep, f.flags,
        f.reserved ? " reserved" : "", fails ? " no memory" : "");
    if ( fails )
        arm();
    post_request(&f, &r, sizeof(r), 4);
    if ( fails )
        kick_now(true);
    else
        maybe_kick();
    if ( fails )
        disarm();
}

static void op_detach(void)
{
    struct viommu_req_detach r = { .type = VIOMMU_T_DETACH };
    struct flight f = { .kind = OP_DETACH };
    const struct m_ep *e = &m_ep[rn(M_EPS)];

    r.endpoint = f.ep = e->id;
    r.domain = f.ctx = e->ctx >= 0 && !one_in(4) ? m_ctx_id[e->ctx]
                                                 : some_ctx();
    say("DETACH context %u endpoint %#x\n", f.ctx, f.ep);
    post_request(&f, &r, sizeof(r), 4);
    maybe_kick();
}

/* A place in a window: index of its first page, how many follow. */
static uint32_t some_place(uint32_t *left)
{
    const struct m_window *w = &m_win[one_in(4) ? rn(M_WINDOWS) : 1];
    uint32_t i = rn(one_in(2) ? min(w->nr, 64U) : w->nr);

    if ( huge && w == &m_win[1] && one_in(2) )
        i = rn(w->nr / 512) * 512;
    *left = w->nr - i;
    return w->first + i;
}

static uint32_t some_size(void)
{
    switch ( rn(16) )
    {
    case 0 ... 7:   return 1 + rn(4);
    case 8 ... 11:  return 1 + rn(48);
    case 12 ... 13: return 1 + rn(560);
    default:        return 512 * (1 + rn(3)) + (one_in(2) ? rn(16) : 0);
    }
}

static uint64_t some_gfn(uint32_t nr)
{
    if ( one_in(4) )
        /* Where grants come and go, and one page several times. */
        return one_in(2) ? rn(FOREIGN_GFNS) : recent_foreign[rn(4)];
    if ( one_in(40) )
        return NR_GFNS - 8 + 16;    /* what isn't there */
    return rn(NR_GFNS - min(nr, 4096U));
}

static void op_map(void)
{
    struct flight f = { .kind = OP_MAP, .ctx = some_ctx(), .flags = 3 };
    uint32_t left, place = some_place(&left), nr = min(some_size(), left);
    uint64_t iova = m_iova(place), gfn = some_gfn(nr);
    struct viommu_req_map r;

    if ( nr >= 512 && !one_in(4) )
    {
        /* Blocks need both to be aligned. */
        if ( left > 1024 && one_in(2) )
            iova &= ~0x1fffffUL;
        gfn = (gfn & ~511UL) | (iova >> 12 & 511);
    }
    left = recent.nr && m_ctx_of(recent.ctx) >= 0 ?
           m_page(&m_ctx[m_ctx_of(recent.ctx)], recent.iova)->flags : M_MAPPED;
    if ( left & M_MAPPED ? recent.nr && one_in(16) : !one_in(3) )
    {
        f.ctx = recent.ctx;
        iova = recent.iova;
        nr = one_in(4) ? nr : recent.nr;
        gfn = one_in(2) ? recent.gfn : gfn;
    }
    if ( huge && one_in(3) )
    {
        iova = (8UL << 30) + (one_in(4) ? 0x200000 : 0);
        nr = 1U << 18;
        gfn = HUGE_GFN;
    }
    else if ( huge && one_in(2) )
        gfn = HUGE_GFN + (gfn << 4 & ((1UL << 18) - 1));
    if ( m_index(iova) < 0 ||
         m_index(iova + ((uint64_t)nr << 12) - 1) != m_index(iova) + nr - 1 )
        nr = 1;
    if ( one_in(6) )
        f.flags = one_in(8) ? rn(16) : 1 + rn(3);
    f.start = iova;
    f.last = iova + ((uint64_t)nr << 12) - 1;
    f.phys = gfn << 12;
    if ( one_in(64) )
        f.start += 0x800;
    if ( one_in(64) )
        f.last -= 0x7ff;
    if ( one_in(64) )
        f.phys += one_in(2) ? 8 : -4096UL << 8;
    if ( one_in(64) )
        f.last = m_ias_last + 0x1000;
    say("MAP context %u %#lx..%#lx from %#lx flags %u (%u pages)\n", f.ctx,
        (long)f.start, (long)f.last, (long)f.phys, f.flags, nr);
    for ( left = 0; left < min(nr, 8U); left++ )
        if ( rights(p2m_at(gfn + left)) & M_FOREIGN )
            recent_foreign[rn(4)] = gfn + left;
    r = map_req(f.ctx, f.start, f.last - f.start + 1, f.phys, f.flags);
    post_request(&f, &r, sizeof(r), 4);
    maybe_kick();
    dma_range(f.ctx, iova, iova + ((uint64_t)nr << 12) - 1);
}

static void op_unmap(void)
{
    struct flight f = { .kind = OP_UNMAP, .ctx = some_ctx() };
    uint32_t left, place = some_place(&left), nr = min(some_size(), left);
    uint64_t mem = mfn_x(page_to_mfn(ram));
    int c = m_ctx_of(f.ctx);
    struct viommu_req_unmap r;

    if ( c >= 0 && m_ctx[c].mapped && !one_in(4) )
    {
        /* A mapping: go to the next one, from its beginning to its end. */
        const struct m_page *p = m_ctx[c].page;

        /* The rest of one whose beginning was revoked is as good. */
        while ( !(p[place].flags & M_MAPPED) )
            place = (place + 1) % m_nr_pages;
        while ( place && !(p[place].flags & M_FIRST) &&
                (p[place - 1].flags & M_MAPPED) )
            place--;
        for ( nr = 1; m_index(m_iova(place) + ((uint64_t)nr << 12)) ==
                      place + nr &&
                      (p[place + nr].flags & (M_MAPPED | M_FIRST)) ==
                      M_MAPPED; nr++ )
            continue;
        recent.ctx = f.ctx;
        recent.iova = m_iova(place);
        recent.nr = nr;
        recent.gfn = p[place].mfn - mem < NR_GFNS ? p[place].mfn - mem : 1;
    }
    f.start = m_iova(place);
    f.last = f.start + ((uint64_t)nr << 12) - 1;
    switch ( rn(64) )
    {
    case 0 ... 3:
        f.start = m_win[1].base;
        f.last = f.start + ((uint64_t)m_win[1].nr << 12) - 1;
        break;
    case 4: f.start = 0; f.last = m_ias_last; break;
    case 5: f.start = 0; f.last = ~0UL; break;
    case 6: f.start += 0x800; break;
    case 7: f.last -= 0x800; break;
    case 8: f.last = f.start - 1; break;
    case 9: f.start = m_ias_last + 1; f.last = ~0UL; break;
    }
    say("UNMAP context %u %#lx..%#lx (%u pages)\n", f.ctx, (long)f.start,
        (long)f.last, nr);
    r = (struct viommu_req_unmap){ .type = VIOMMU_T_UNMAP, .domain = f.ctx,
                                   .virt_start = f.start,
                                   .virt_end = f.last };
    post_request(&f, &r, sizeof(r), 4);
    maybe_kick();
    dma_range(f.ctx, m_iova(place), m_iova(place) + ((uint64_t)nr << 12) - 1);
}

static void op_probe(void)
{
    struct viommu_req_probe r = { .type = VIOMMU_T_PROBE };
    struct flight f = { .kind = OP_PROBE };

    r.endpoint = f.ep = some_ep();
    say("PROBE %#x\n", f.ep);
    post_request(&f, &r, sizeof(r), 516);
    maybe_kick();
}

static void op_junk(void)
{
    struct flight f = { .kind = OP_JUNK };
    uint8_t r[64] = { one_in(2) ? 0 : 6 + rn(250) };

    say("unknown request %u\n", r[0]);
    post_request(&f, r, 1 + rn(sizeof(r)), 4);
    maybe_kick();
}

static void op_run(void)
{
    bool all = one_in(2);

    say(all ? "run\n" : "some slices\n");
    kick_now(all);
}

/*
 * The p2m
 */
static struct p2m_page some_page(unsigned long gfn)
{
    static const uint8_t types[] = {
        p2m_ram_rw, p2m_ram_rw, p2m_ram_rw, p2m_ram_ro, p2m_grant_map_rw,
        p2m_grant_map_ro, p2m_map_foreign_rw, p2m_map_foreign_ro,
        p2m_iommu_map_rw, p2m_mmio_direct_dev, p2m_mmio_direct_c,
    };
    struct p2m_page e = { .type = types[rn(ARRAY_SIZE(types))],
                          .access = one_in(16) ? p2m_access_r :
                                    one_in(16) ? p2m_access_n
                                               : p2m_access_rwx };

    if ( gfn < FOREIGN_GFNS && !one_in(4) )
        e.type = types[4 + rn(5)];
    if ( is_mmio_type(e.type) )
        e.mfn = MMIO_MFN + gfn;
    else if ( is_grant_type(e.type) || is_foreign_type(e.type) )
        e.mfn = mfn_x(page_to_mfn(foreign[rn(NR_FOREIGN)]));
    else
    {
        e.mfn = mfn_x(page_to_mfn(ram)) + gfn;
        if ( !fr_alloc[frame(e.mfn)] )
        {
            struct page_info *pg = fake_guest_pages(&dom, 0);

            adopt(pg, 1);
            e.mfn = mfn_x(page_to_mfn(pg));
        }
    }
    return e;
}

static unsigned long some_entry(void)
{
    if ( one_in(4) )
        return recent_foreign[rn(4)];
    return one_in(3) ? rn(NR_GFNS) : one_in(2) ? rn(FOREIGN_GFNS) : rn(64);
}

/* Out of the p2m; memory of the guest's own may be given back, too. */
static void take_out(unsigned long gfn, bool locked)
{
    struct p2m_page old = p2m[gfn];

    if ( old.type == p2m_invalid )
        return;
    add_taint(gfn);
    if ( locked )
        p2m_set_locked(gfn, NULL);
    else
        p2m_set(gfn, NULL);
    if ( !locked && (old.type == p2m_ram_rw || old.type == p2m_ram_ro) &&
         one_in(2) )
    {
        say("  and given back\n");
        disown(old.mfn);
    }
}

static void op_p2m_out(void)
{
    unsigned long gfn = some_entry();

    say("p2m: gfn %#lx (mfn %#x, type %u) out\n", gfn, p2m[gfn].mfn,
        p2m[gfn].type);
    take_out(gfn, false);
    dma_default(gfn);
}

static void op_p2m_in(void)
{
    unsigned long gfn = some_entry(), i;
    struct p2m_page e;

    for ( i = 0; i < 64 && p2m[gfn].type != p2m_invalid; i++ )
        gfn = (gfn + 1) % NR_GFNS;
    if ( p2m[gfn].type != p2m_invalid )
        return;
    e = some_page(gfn);
    say("p2m: gfn %#lx is mfn %#x, type %u, access %u\n", gfn, e.mfn, e.type,
        e.access);
    add_taint(gfn);
    p2m_set(gfn, &e);
    dma_default(gfn);
}

static void op_p2m_change(void)
{
    unsigned long gfn = some_entry();
    struct p2m_page e = some_page(gfn);

    if ( p2m[gfn].type == p2m_invalid )
        return;
    say("p2m: gfn %#lx from mfn %#x, type %u to mfn %#x, type %u, access %u\n",
        gfn, p2m[gfn].mfn, p2m[gfn].type, e.mfn, e.type, e.access);
    add_taint(gfn);
    p2m_set(gfn, &e);
    dma_default(gfn);
}

static void op_p2m_batch(void)
{
    unsigned long gfn = some_entry();
    unsigned int n = 1 + rn(12), step = 1 + rn(3), i;
    bool lock = one_in(2);

    say("p2m: %u gfns from %#lx on, every %u, out in one %s\n", n, gfn, step,
        lock ? "operation" : "batch");
    if ( lock )
        spin_lock(&dom.arch.p2m.lock);
    else
        batch_begin();
    for ( i = 0; i < n && gfn + i * step < NR_GFNS; i++ )
        take_out(gfn + i * step, lock);
    if ( lock )
        p2m_unlock();
    else
        batch_end();
    dma_default(gfn + rn(n) * step);
}

static void op_p2m_block(void)
{
    unsigned int r = 1 + rn(NR_REGIONS - 2), i;

    if ( huge && !one_in(3) )
    {
        /* What is mapped stays the same; how it is found doesn't. */
        say("p2m: the block of 1G is %s\n", huge_split ? "whole" : "split");
        huge_split = !huge_split;
        return;
    }
    /* Too much for taints: not under a MAP. */
    run_all();
    if ( p2m_block[r] )
    {
        say("p2m: region %u out\n", r);
        p2m_set_block(r, true);
    }
    else if ( can_be_block(r) )
    {
        say("p2m: region %u a block\n", r);
        p2m_set_block(r, false);
    }
    else
    {
        for ( i = r * 512; i < (r + 1) * 512; i++ )
            if ( fr_alloc[frame(ram_page(i).mfn)] &&
                 p2m[i].type == p2m_invalid )
            {
                struct p2m_page e = ram_page(i);

                p2m_set(i, &e);
            }
        say("p2m: region %u filled\n", r);
    }
    dma_default(r * 512UL + rn(512));
}

/* A foreign page that isn't granted any more is its owner's to give away. */
static void op_owner(void)
{
    unsigned int i = rn(NR_FOREIGN);
    uint32_t mfn = mfn_x(page_to_mfn(foreign[i]));

    if ( fr_p2m[frame(mfn)] )
        return;
    say("the owner of mfn %#x gives it away\n", mfn);
    disown(mfn);
    foreign[i] = fake_guest_pages(&other, 0);
    adopt(foreign[i], 1);
}

/*
 * The toolstack, dom0, time
 */
static void op_strict(void)
{
    bool strict = one_in(2);

    say("strict=%u\n", strict);
    if ( pvi_set_strict(pd, strict) && !pd->broken )
        wrong("strict can't be set");
    if ( strict )
        m_all_flushed();
}

static void op_bypass(void)
{
    bool to = one_in(3);

    say("bypass=%u\n", to);
    mmio_write(0x124, to, 0);
    m_bypass = to;
    if ( !pd->broken && mmio_read(0x124, 0) != to )
        wrong("bypass can't be set");
}

static void op_reset(void)
{
    unsigned int i;

    say("device reset\n");
    wr(0x70, 0);
    /* What was asked and not answered is forgotten. */
    fl_head = fl_tail = 0;
    fl_begun = false;
    run_to_rest();
    if ( pd->broken )
        return;
    if ( v->resetting || rd(0x70) || pd->nr_contexts )
        wrong("a reset is not completed");
    for ( i = 0; i < M_EPS; i++ )
        if ( m_ep[i].ctx >= 0 )
            m_leave(&m_ep[i]);
    any_open = false;
    nr_taints = 0;
    drive(FEATURES);
}

static void op_ep_out(void)
{
    struct m_ep *e = &m_ep[rn(7)];
    int rc;

    say("endpoint %#x is taken away\n", e->id);
    rc = pvi_endpoint_remove(pd, e->id == 0x100 ? PVI_EP_DT : PVI_EP_PCI,
                             e->id);
    if ( rc != (e->present ? 0 : -ENODEV) && !pd->broken )
        wrong("removal says %d", rc);
    e->present = false;
}

static void op_ep_in(void)
{
    struct m_ep *e = &m_ep[rn(7)];
    struct pvi_ep_desc d = { .kind = e->id == 0x100 ? PVI_EP_DT : PVI_EP_PCI,
                             .epid = e->id, .nr_streams = e->nr_streams };
    bool fails = one_in(16), conflict;
    unsigned int i;
    int rc;

    say("endpoint %#x is there%s\n", e->id, fails ? " (no memory)" : "");
    for ( i = 0; i < e->nr_streams; i++ )
    {
        d.s[i].smmu = smmu_by_node(&sw[e->s[i].smmu].node);
        d.s[i].sid = e->s[i].sid;
    }
    /* Others may have attached its stream elsewhere while it was away. */
    conflict = !e->present && e->ctx >= 0 && m_conflict(e, e->ctx);
    if ( fails )
        arm();
    rc = pvi_endpoint_add(pd, &d);
    if ( fails )
        disarm();
    if ( pd->broken || (fails && rc == -ENOMEM) ||
         (expect_broken && rc == -ETIMEDOUT) )
        return;
    if ( e->present ? rc != -EEXIST : conflict ? rc != -EXDEV : rc )
        wrong("adding says %d", rc);
    e->present |= !rc;
}

static void bridge_in_or_out(bool fails)
{
    unsigned int i;
    int rc;

    say("bridge %s%s\n", m_bridge ? "out" : "in", fails ? " (no memory)" : "");
    if ( fails )
        arm();
    rc = m_bridge ? pvi_bridge_remove(pd, &bridge)
                  : pvi_bridge_add(pd, &bridge);
    if ( fails )
        disarm();
    if ( pd->broken || (fails && !m_bridge && rc == -ENOMEM) ||
         (expect_broken && rc == -ETIMEDOUT) )
        return;
    if ( rc )
        wrong("the bridge says %d", rc);
    for ( i = 7; m_bridge && i < M_EPS; i++ )
        if ( m_ep[i].ctx >= 0 )
            m_leave(&m_ep[i]);
    m_bridge = !m_bridge;
    kill_flight();
}

static void op_bridge(void)
{
    bridge_in_or_out(one_in(16));
}

/* A MAP that takes many slices, in a context of a device behind the bridge. */
static void bridge_map(void)
{
    struct flight f = { .kind = OP_MAP, .flags = 3 };
    const struct m_ep *e = &m_ep[7 + rn(3)];
    struct viommu_req_map r;

    if ( e->ctx < 0 )
        return;
    f.ctx = m_ctx_id[e->ctx];
    f.start = m_iova(m_win[1].first + rn(64));
    f.last = f.start + (3000UL << 12) - 1;
    f.phys = rn(4000) << 12;
    say("MAP context %u %#lx..%#lx from %#lx\n  ", f.ctx, (long)f.start,
        (long)f.last, (long)f.phys);
    r = map_req(f.ctx, f.start, f.last - f.start + 1, f.phys, f.flags);
    post_request(&f, &r, sizeof(r), 4);
}

/*
 * The driver takes the queue away and brings it back.  A request in progress
 * is completed without an answer, if its context is still there.
 */
static void op_queue(void)
{
    struct flight f = {};
    bool unseen;

    if ( nr_held || nr_taints || pool_free() < 80 || m_foreign > 100 )
        return;
    if ( one_in(2) )
        bridge_map();
    say("the request queue is disabled\n");
    if ( fl_head != fl_tail )
        kick_now(false);
    if ( pd->broken )
        return;
    unseen = fl_begun;
    f = flight[fl_head % NUM];
    fl_head = fl_tail = 0;
    fl_begun = false;
    wr(0x30, 0);
    wr(0x44, 0);
    if ( one_in(2) )
    {
        say("  ");
        bridge_in_or_out(false);
        f.killed = m_ctx_of(f.ctx) < 0;
    }
    run_to_rest();
    if ( pd->broken )
        return;
    memset(gpa(RINGS), 0, 0x3000);
    avail_idx = used_seen = next_buf = 0;
    queue_set(0, RINGS);
    say("  and enabled%s\n", unseen ? ", a request in progress" : "");
    ring_bell();
    run_to_rest();
    if ( unseen && !f.killed && !pd->broken )
        replay_unseen(&f);
    if ( !pd->broken )
        check_idle();
}

static void op_time(void)
{
    s_time_t t = one_in(2) ? MILLISECS(11) : MICROSECS(rn(4000));

    say("%ld us pass\n", (long)t / 1000);
    fake_advance(t);
    if ( t == MILLISECS(11) )
        m_all_flushed();
    if ( one_in(4) )
    {
        sw_run_irqs(&sw[0]);
        fake_run_tasklets();
    }
}

static void op_settle(void)
{
    say("settle\n");
    settle();
    /* One that hangs has been asked, and doesn't say so. */
    if ( !pd->broken && !expect_broken )
        check_counters_exact();
}

static void op_pool(void)
{
    unsigned int n = one_in(3) ? POOL : rn(40);
    struct page_info *pg;

    if ( nr_held && one_in(2) )
    {
        say("the pool's pages are back\n");
        while ( nr_held )
            page_list_add(held[--nr_held], &dom.arch.paging.p2m_freelist);
        return;
    }
    say("%u pages of the pool are not there\n", n);
    while ( n-- && (pg = page_list_remove_head(&dom.arch.paging.p2m_freelist)) )
        held[nr_held++] = pg;
}

static void op_dma(void)
{
    unsigned int n = 1 + rn(8), i;
    uint32_t left;

    say("DMA\n");
    for ( i = 0; i < n; i++ )
        if ( one_in(3) )
            dma_default(some_entry());
        else
            dma_ctx(some_ctx(), m_iova(some_place(&left)) | (r64() & 0xff8));
}

/* An SMMU stops answering: the domain breaks at the next sync. */
static void op_hang(void)
{
    say("SMMU hangs\n");
    sw[rn(2)].mode = SW_NEVER;
    fake_now_step = MILLISECS(1);
    expect_broken = true;
}

/* Only of the test of this test: the hypervisor loses a reference. */
static void op_sabotage(void)
{
    unsigned int c;
    uint32_t k;

    say("a reference is lost\n");
    for ( c = 0; c < M_CTXS; c++ )
        for ( k = 0; m_ctx[c].mapped && k < m_nr_pages; k++ )
            if ( (m_ctx[c].page[k].flags & (M_MAPPED | M_NOREF | M_OPEN)) ==
                 M_MAPPED && fl_head == fl_tail )
            {
                put_page(mfn_to_page(_mfn(m_ctx[c].page[k].mfn)));
                return;
            }
}

static void (*const op_fn[NR_OPS])(void) = {
    [OP_ATTACH] = op_attach, [OP_DETACH] = op_detach, [OP_MAP] = op_map,
    [OP_UNMAP] = op_unmap, [OP_PROBE] = op_probe, [OP_JUNK] = op_junk,
    [OP_RUN] = op_run, [OP_P2M_OUT] = op_p2m_out, [OP_P2M_IN] = op_p2m_in,
    [OP_P2M_BATCH] = op_p2m_batch, [OP_P2M_CHANGE] = op_p2m_change,
    [OP_P2M_BLOCK] = op_p2m_block, [OP_OWNER] = op_owner,
    [OP_STRICT] = op_strict, [OP_BYPASS] = op_bypass, [OP_RESET] = op_reset,
    [OP_EP_OUT] = op_ep_out, [OP_EP_IN] = op_ep_in, [OP_BRIDGE] = op_bridge, [OP_QUEUE] = op_queue,
    [OP_TIME] = op_time, [OP_SETTLE] = op_settle, [OP_POOL] = op_pool,
    [OP_DMA] = op_dma, [OP_HANG] = op_hang, [OP_SABOTAGE] = op_sabotage,
};

static void do_op(const struct op *op)
{
    rng_state = op->r | 1;
    hook_state = ~op->r | 1;
    op_fn[op->kind]();
    if ( pd->broken && !expect_broken )
        wrong("the domain is broken");
    if ( pd->broken )
        return;
    if ( sw[0].violations || sw[1].violations )
        wrong("the SMMU: %s%s", sw[0].last_violation, sw[1].last_violation);
    if ( fake_locks || fake_irqs_off )
        wrong("locks are held, or interrupts off");
    if ( !(op->r >> 40 & 7) )
        (void)check_tables(op->r >> 48 & 3);
}

/*
 * The end of the domain, in the middle of whatever was going on.
 */
static void give_all_back(bool ours)
{
    unsigned long i;

    for ( i = 0; i < fr_end; i++ )
    {
        if ( !ours && fake_frames[i].owner != &other )
            continue;
        while ( ours && fr_p2m[i] )
        {
            fr_p2m[i]--;
            put_page(&fake_frames[i]);
        }
        if ( fr_alloc[i] )
            disown(i + (FAKE_RAM_BASE >> PAGE_SHIFT));
    }
}

/* Its memory and its p2m stay.  Pages of others may go, if it let them go. */
static void end_broken(void)
{
    while ( fake_run_tasklets() )
        continue;
    sw[0].mode = sw[1].mode = SW_LATE;
    if ( pviommu_relinquish(&dom) != -EBUSY || !dom.is_crashed )
        wrong("a broken domain is let go");
    give_all_back(false);
    if ( sw[0].violations || sw[1].violations )
        wrong("the SMMU: %s%s", sw[0].last_violation, sw[1].last_violation);
}

static void end(void)
{
    struct smmu_device *smmu;
    unsigned int i;
    int rc;

    say("destroy\n");
    rng_state = hook_state = 0x9e3779b97f4a7c15ULL;
    dom.is_dying = true;
    fake_preempt = true;
    for ( i = 0; i < 7 && !pd->broken; i++ )
        if ( m_ep[i].present &&
             pvi_endpoint_remove(pd, m_ep[i].id == 0x100 ? PVI_EP_DT
                                                         : PVI_EP_PCI,
                                 m_ep[i].id) && !pd->broken )
            wrong("removal of %#x fails", m_ep[i].id);
    if ( m_bridge && !pd->broken && pvi_bridge_remove(pd, &bridge) &&
         !pd->broken )
        wrong("removal of the bridge fails");
    while ( !pd->broken && (rc = pviommu_relinquish(&dom)) )
        if ( rc != -ERESTART && !pd->broken )
            wrong("relinquish: %d", rc);
    if ( pd->broken )
    {
        if ( !expect_broken )
            wrong("the domain is broken");
        end_broken();
        return;
    }
    while ( nr_held )
        page_list_add(held[--nr_held], &dom.arch.paging.p2m_freelist);
    if ( pool_free() != POOL )
        wrong("the pool has %u pages of %u", pool_free(), POOL);
    if ( fake_mapped )
        wrong("%u pages are mapped", fake_mapped);
    give_all_back(true);
    if ( fake_refs )
        wrong("%ld references are left", fake_refs);
    if ( !expect_broken )
        check_counters_exact();
    pvi_domain_free(&dom);
    if ( fake_allocs != allocs_before )
        wrong("%ld allocations are left", fake_allocs - allocs_before);
    if ( xenheap() != xenheap_before )
        wrong("pages of Xen's heap are left");
    smmu_for_each ( smmu )
    {
        if ( smmu->streams.nr )
            wrong("streams are left");
        if ( find_next_zero_bit(smmu->vmids, 64, 0) != 1 ||
             smmu->vmids[0] != 1 )
            wrong("VMIDs are left: %#lx", smmu->vmids[0]);
    }
    if ( sw[0].violations || sw[1].violations )
        wrong("the SMMU: %s%s", sw[0].last_violation, sw[1].last_violation);
}

static void run_sequence(const struct op *ops, unsigned int nr)
{
    unsigned int i;

    begin();
    for ( i = 0; i < nr && !pd->broken; i++ )
    {
        say("%3u: ", i);
        do_op(&ops[i]);
        executed++;
    }
    end();
    sw_exit(&sw[0]);
    sw_exit(&sw[1]);
}

/*
 * Sequences
 */
enum { P_STRICT, P_LAZY, P_MIXED, P_HUGE, P_HANG, P_SABOTAGE, NR_PROFILES };
static const char *const profile_name[] = {
    "strict", "lazy", "mixed", "huge", "hang", "sabotage",
};

#define MAX_OPS 400
/* Seconds.  One takes milliseconds; those with blocks of 1G less than one. */
#define SEQUENCE_MAX    10
static unsigned int shrink_max = 60;

/* How often, out of all. */
static const uint8_t weight[NR_OPS] = {
    [OP_ATTACH] = 20, [OP_DETACH] = 6, [OP_MAP] = 60, [OP_UNMAP] = 50,
    [OP_PROBE] = 2, [OP_JUNK] = 2, [OP_RUN] = 16, [OP_P2M_OUT] = 12,
    [OP_P2M_IN] = 14, [OP_P2M_BATCH] = 4, [OP_P2M_CHANGE] = 4,
    [OP_P2M_BLOCK] = 2, [OP_OWNER] = 6, [OP_BYPASS] = 3, [OP_RESET] = 1, [OP_QUEUE] = 3,
    [OP_EP_OUT] = 4, [OP_EP_IN] = 8, [OP_BRIDGE] = 6, [OP_TIME] = 8,
    [OP_SETTLE] = 2, [OP_POOL] = 2, [OP_DMA] = 12,
};

static unsigned int pick_kind(unsigned int profile, unsigned int i,
                              unsigned int nr)
{
    unsigned int k, sum = 0, x;

    if ( (profile == P_HANG && i == nr / 2) )
        return OP_HANG;
    if ( (profile == P_SABOTAGE && i == nr / 2) )
        return OP_SABOTAGE;
    if ( profile == P_MIXED && one_in(24) )
        return OP_STRICT;
    for ( k = 0; k < NR_OPS; k++ )
        sum += weight[k];
    x = rn(sum);
    for ( k = 0; x >= weight[k]; k++ )
        x -= weight[k];
    return k;
}

static unsigned int generate(unsigned int profile, uint64_t seed,
                             struct op *ops)
{
    unsigned int nr, i;

    rng_state = (seed + 1) * 0x9e3779b97f4a7c15ULL | 1;
    for ( i = 0; i < 8; i++ )
        r64();
    cfg = (struct config){
        .strict = profile == P_STRICT || (profile != P_LAZY && one_in(2)),
        .ril = one_in(2),
        .noncoherent = one_in(8),
        .huge = profile == P_HUGE,
        .late = 1 + rn(3),
        .blocks = r64(),
    };
    nr = profile == P_HUGE ? 40 : 20 + rn(MAX_OPS - 20);
    for ( i = 0; i < nr; i++ )
    {
        /* Devices first: nothing else is of use without them. */
        ops[i].kind = i < 4 ? OP_ATTACH : pick_kind(profile, i, nr);
        if ( profile == P_HUGE && one_in(8) )
            ops[i].kind = OP_P2M_BLOCK;
        ops[i].r = next_random(&rng_state);
    }
    return nr;
}

static const char *config_text(void)
{
    static char s[80];

    snprintf(s, sizeof(s), "%s%s%s, %u polls a command",
             cfg.strict ? "strict" : "lazy", cfg.ril ? ", range commands" : "",
             cfg.noncoherent ? ", not coherent" : "", cfg.late);
    return s;
}

/*
 * Children: a sequence that fails takes its process with it.
 */
static struct { unsigned long seed, executed; bool done; } *progress;

/* Ends the process after so much work: what time it takes, others decide. */
static void work_limit(unsigned int seconds)
{
    struct itimerval t = { .it_value.tv_sec = seconds };

    setitimer(ITIMER_PROF, &t, NULL);
}

static bool child_ok(pid_t pid)
{
    int status;

    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
           !WEXITSTATUS(status);
}

static void quiet(void)
{
    if ( !freopen("/dev/null", "w", stdout) ||
         !freopen("/dev/null", "w", stderr) )
        _exit(1);
}

static bool replay_ok(const struct op *ops, unsigned int nr, bool tell)
{
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if ( !pid )
    {
        work_limit(SEQUENCE_MAX);
        verbose = tell;
        if ( tell )
        {
            dup2(1, 2);
            setvbuf(stdout, NULL, _IONBF, 0);
        }
        else
            quiet();
        run_sequence(ops, nr);
        exit(0);
    }
    return child_ok(pid);
}

/* Leave out parts, larger ones first, as long as what is left fails. */
static unsigned int shrink(struct op *ops, unsigned int nr)
{
    struct op try[MAX_OPS];
    unsigned int size = max(nr / 2, 1U), at;
    time_t end = time(NULL) + shrink_max;

    for ( ; ; size = max(size / 2, 1U) )
    {
        bool less = false;

        for ( at = 0; at < nr && time(NULL) < end; )
        {
            unsigned int n = min(size, nr - at);

            memcpy(try, ops, at * sizeof(*ops));
            memcpy(try + at, ops + at + n, (nr - at - n) * sizeof(*ops));
            if ( replay_ok(try, nr - n, false) )
            {
                at += size;
                continue;
            }
            nr -= n;
            memcpy(ops, try, nr * sizeof(*ops));
            less = true;
        }
        if ( (size == 1 && !less) || time(NULL) >= end )
            return nr;
    }
}

static unsigned int tell_failure(unsigned int profile, uint64_t seed)
{
    struct op ops[MAX_OPS];
    unsigned int nr = generate(profile, seed, ops), all = nr;

    if ( replay_ok(ops, nr, false) )
    {
        printf("SEED=%lu PROFILE=%s: fails only after others\n", (long)seed,
               profile_name[profile]);
        return nr;
    }
    nr = shrink(ops, nr);
    printf("\nSEED=%lu PROFILE=%s fails with %u of its %u operations (%s):\n",
           (long)seed, profile_name[profile], nr, all, config_text());
    replay_ok(ops, nr, true);
    return nr;
}

/* Sequences until @ops operations are done.  True: all were right. */
static bool run_profile(unsigned int profile, unsigned long ops,
                        unsigned long from)
{
    unsigned long seed = from, done = 0, sequences = 0;

    while ( done < ops )
    {
        pid_t pid;
        bool ok;

        progress->executed = 0;
        progress->done = false;
        fflush(NULL);
        pid = fork();
        if ( !pid )
        {
            struct op list[MAX_OPS];

            quiet();
            /* Processes of some size, so that what is left in one ends. */
            while ( executed < 40000 && done + executed < ops )
            {
                progress->seed = seed;
                work_limit(3 * SEQUENCE_MAX);
                run_sequence(list, generate(profile, seed++, list));
                progress->executed = executed;
            }
            progress->seed = seed;
            progress->done = true;
            exit(0);
        }
        ok = child_ok(pid);
        sequences += progress->seed - seed;
        seed = progress->seed;
        done += progress->executed;
        if ( !ok || !progress->done )
        {
            tell_failure(profile, seed);
            return false;
        }
    }
    printf("%-8s %8lu operations in %lu sequences\n", profile_name[profile],
           done, sequences);
    return true;
}

/* Shares of all operations, per mille; those of `huge` are large ones. */
static const unsigned int share[] = { 340, 340, 298, 2, 20 };
static bool result[P_HANG + 1], found;
static unsigned int found_in;

static void strict(void **state) { assert_true(result[P_STRICT]); }
static void lazy(void **state) { assert_true(result[P_LAZY]); }
static void mixed(void **state) { assert_true(result[P_MIXED]); }
static void blocks_1g(void **state) { assert_true(result[P_HUGE]); }
static void hang(void **state) { assert_true(result[P_HANG]); }

/* A bug that is planted is found, and told in a few operations. */
static void finds_a_bug(void **state)
{
    assert_true(found);
    assert_in_range(found_in, 1, 6);
}

static void planted_bug(void)
{
    struct op ops[MAX_OPS];
    unsigned int nr = 0, seed;

    for ( seed = 1; !found && seed < 10; seed++ )
    {
        nr = generate(P_SABOTAGE, seed, ops);
        found = !replay_ok(ops, nr, false);
    }
    if ( found )
        found_in = shrink(ops, nr);
}

static unsigned long number(const char *name, unsigned long otherwise)
{
    const char *s = getenv(name);

    return s ? strtoul(s, NULL, 0) : otherwise;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strict), cmocka_unit_test(lazy),
        cmocka_unit_test(mixed), cmocka_unit_test(blocks_1g),
        cmocka_unit_test(hang), cmocka_unit_test(finds_a_bug),
    };
    unsigned long ops = number("OPERATIONS", 1000000), from = number("FROM", 1);
    const char *only = getenv("PROFILE");
    unsigned int p;

    shrink_max = number("SHRINK", shrink_max);
    progress = mmap(NULL, sizeof(*progress), PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if ( getenv("SEED") )
    {
        struct op list[MAX_OPS];
        unsigned int nr;

        for ( p = 0; only && p < P_HANG && strcmp(only, profile_name[p]); p++ )
            continue;
        nr = generate(p, number("SEED", 1), list);
        printf("%u operations (%s):\n", nr, config_text());
        return !replay_ok(list, nr, true) &&
               tell_failure(p, number("SEED", 1));
    }
    for ( p = 0; p <= P_HANG; p++ )
        result[p] = only && strcmp(only, profile_name[p]) ? true :
                    run_profile(p, ops * share[p] / 1000 + 1, from);
    planted_bug();

    return cmocka_run_group_tests_name("property", tests, NULL, NULL);
}

/* Probed SMMUs stay for ever. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "detect_leaks=0"; }
