/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a hostile review of the driver tried, and what it had to find: rings in
 * other domains' pages, grants that end at the wrong moment, work without end,
 * SMMUs that hang in the middle.
 */

#include "guest.h"

static struct domain other = { .domain_id = 9, .creation_finished = true };

/* A window of guest frames that isn't the guest's own memory. */
static struct {
    struct page_info *pg;
    unsigned long gfn, nr;
    bool same;                  /* one page at all frames */
    p2m_type_t type;
    mfn_t mmio;                 /* instead of pg */
} win;
static unsigned long lookups;

static void hook(unsigned long gfn, mfn_t *mfn, p2m_type_t *t, p2m_access_t *a,
                 unsigned int *order)
{
    lookups++;
    if ( gfn - win.gfn >= win.nr )
        return;
    *t = win.type;
    *mfn = win.pg ? page_to_mfn(win.pg + (win.same ? 0 : gfn - win.gfn))
                  : mfn_add(win.mmio, gfn - win.gfn);
    *order = 0;
}

static void window(struct page_info *pg, unsigned long gfn, unsigned long nr,
                   p2m_type_t type)
{
    win.pg = pg;
    win.gfn = gfn;
    win.nr = nr;
    win.same = false;
    win.type = type;
    dom.arch.p2m.hook = hook;
}

static uint64_t entry(paddr_t pa, p2m_type_t t)
{
    return pa | 0x7ff | (uint64_t)t << 55;
}

/* Xen takes the page at @gfn out of the p2m. */
static void leaves(unsigned long gfn)
{
    paddr_t pa = win.pg ? page_to_maddr(win.pg + (win.same ? 0 : gfn - win.gfn))
                        : mfn_to_maddr(mfn_add(win.mmio, gfn - win.gfn));
    lpae_t old = { .bits = entry(pa, win.type) };

    spin_lock(&dom.arch.p2m.lock);
    pviommu_p2m_change(&dom.arch.p2m, _gfn(gfn), 0, &old, 3, true);
    pviommu_p2m_unlock(&dom.arch.p2m);
    spin_unlock(&dom.arch.p2m.lock);
}

static void attach_all(void)
{
    unsigned int ep;

    for ( ep = 0x10; ep < 0x14; ep++ )
        assert_int_equal(attach(1, ep, 0), VIOMMU_S_OK);
}

static bool reached(struct page_info *pg)
{
    return sw_reaching(&sw[0], page_to_maddr(pg), PAGE_SIZE) ||
           sw_reaching(&sw[1], page_to_maddr(pg), PAGE_SIZE);
}

static int setup_a(void **state)
{
    win.nr = 0;
    return setup(state);
}

static int setup_al(void **state)
{
    win.nr = 0;
    return setup_lazy(state);
}

/* After the grant's end Xen would go on writing to a page of somebody else's. */
static void ring_in_a_grant(void **state)
{
    static const p2m_type_t types[] = { p2m_grant_map_rw, p2m_map_foreign_rw };
    unsigned int i, area;

    for ( i = 0; i < ARRAY_SIZE(types); i++ )
        for ( area = 0x80; area <= 0xa0; area += 0x10 )
        {
            window(fake_guest_pages(&other, 0), 0x300, 1, types[i]);
            wr(0x30, 0);
            wr(0x44, 0);
            wr(area, 0x300000);
            wr(area + 4, 0);
            wr(0x44, 1);
            assert_int_equal(rd(0x44), 0);
            assert_int_equal(win.pg->count_info, 1);
            wr(area, RINGS + (area - 0x80) * 0x100);
        }
    /* The control: the same ring in the guest's own memory. */
    wr(0x44, 1);
    assert_int_equal(rd(0x44), 1);
}

/* The end of one grant of a page isn't the end of the other. */
static void two_grants_of_a_page(void **state)
{
    window(fake_guest_pages(&other, 0), 0x100, 2, p2m_grant_map_rw);
    win.same = true;

    assert_int_equal(attach(1, 0x10, 0), VIOMMU_S_OK);
    assert_int_equal(map(1, 0x10000, 0x1000, 0x100000, RW), VIOMMU_S_OK);
    assert_int_equal(map(1, 0x20000, 0x1000, 0x101000, RW), VIOMMU_S_OK);
    assert_int_equal(dma(0x10, 0x20000, true, NULL), 0);
    assert_int_equal(unmap(1, 0x10000, 0x1000), VIOMMU_S_OK);
    leaves(0x100);
    assert_int_equal(dma(0x10, 0x20000, true, NULL), 0);
    leaves(0x101);
    assert_int_equal(dma(0x10, 0x20000, true, NULL), EVT_F_TRANSLATION);
    assert_false(reached(win.pg));
}

/* ATTACH to ever new ids, with a ring that is never empty. */
static void contexts_without_end(void **state)
{
    struct viommu_req_attach r = { .type = VIOMMU_T_ATTACH, .domain = 9,
                                   .flags = VIOMMU_ATTACH_F_BYPASS,
                                   .endpoint = 0x10 };
    unsigned int i, n = 0, id = 10;

    /* Something that takes a while to destroy. */
    assert_int_equal(attach(1, 0x11, 0), VIOMMU_S_OK);
    assert_int_equal(map(1, 0, 0x1000, 0, RW), VIOMMU_S_OK);
    post(&r, sizeof(r), 4);
    for ( i = 0; i < 2000; i++ )
    {
        while ( (uint16_t)(avail_idx - used()[1]) < NUM / 2 )
        {
            struct viommu_req_attach other_ep = r;

            if ( ++n == 2 )
            {
                other_ep.endpoint = 0x11;
                other_ep.domain = 8;
                post(&other_ep, sizeof(other_ep), 4);
                continue;
            }
            r.domain = id;
            id = id == 11 ? 10 : id + 1;
            post(&r, sizeof(r), 4);
        }
        wr(0x50, 0);
        fake_irqs_off = true;
        pviommu_vcpu_work(&cpu);
        fake_irqs_off = false;
        assert_true(pd->nr_contexts <= PVI_MAX_CONTEXTS);
    }
    assert_true(n > 5 * PVI_MAX_CONTEXTS);
    run_bare();
}

/* A device tree that names a StreamID twice. */
static void stream_named_twice(void **state)
{
    struct pvi_ep_desc d = { .kind = PVI_EP_DT, .epid = 0x30, .nr_streams = 2 };

    d.s[0].smmu = d.s[1].smmu = smmu_by_node(&sw[0].node);
    d.s[0].sid = d.s[1].sid = 0x30;
    assert_int_equal(pvi_endpoint_add(pd, &d), 0);
    assert_int_equal(attach(1, 0x30, 0), VIOMMU_S_OK);
    assert_int_equal(map(1, 0x5000, 0x1000, 0x6000, RW), VIOMMU_S_OK);
    assert_int_equal(dma(0x30, 0x5000, true, NULL), 0);
    assert_int_equal(detach(1, 0x30), VIOMMU_S_OK);
    assert_int_not_equal(dma(0x30, 0x5000, true, NULL), 0);
    assert_int_equal(pvi_endpoint_remove(pd, PVI_EP_DT, 0x30), 0);
}

/* A p2m in which devices in bypass find the guest's first 2 MiB. */
static uint64_t *cpu_tables(bool pages)
{
    uint64_t *l1 = page_to_virt(dom.arch.p2m.root), *l2, *l3;

    l2 = page_to_virt(alloc_domheap_pages(NULL, 0, 0));
    l3 = page_to_virt(alloc_domheap_pages(NULL, 0, 0));
    memset(l2, 0, PAGE_SIZE);
    memset(l3, 0, PAGE_SIZE);
    l2[0] = pages ? virt_to_maddr(l3) | 3
                  : (page_to_maddr(ram) & ~0x1fffffUL) | 0x7fd;
    l1[0] = virt_to_maddr(l2) | 3;

    return pages ? l3 : l2;
}

/* What was cut off after a failure doesn't come back. */
static void broken_stays_cut_off(void **state)
{
    struct pvi_ep_desc d = { .kind = PVI_EP_PCI, .epid = 0x41, .nr_streams = 1 };
    struct viommu_req_unmap r = unmap_req(1, 0x5000, 0x1000);

    cpu_tables(false);
    assert_int_equal(attach(1, 0x10, 0), VIOMMU_S_OK);
    assert_int_equal(map(1, 0x5000, 0x1000, 0x5000, RW), VIOMMU_S_OK);
    assert_int_equal(dma(0x11, 0x5000, true, NULL), 0);
    sw[0].mode = SW_NEVER;
    fake_now_step = MILLISECS(1);
    post(&r, sizeof(r), 4);
    wr(0x50, 0);
    run();
    assert_true(pd->broken);
    fake_run_tasklets();
    /* SMMU 1 is well, and its endpoint is cut off all the same. */
    assert_int_not_equal(dma(0x11, 0x5000, true, NULL), 0);

    /* The hardware domain lives: its driver resets the device, */
    wr(0x70, 0);
    run_bare();
    assert_int_equal(rd(0x70), 0);
    drive(FEATURES);
    run_bare();
    /* writes the bypass setting, */
    mmio_write(0x100 + offsetof(struct viommu_config, bypass), 0, 0);
    mmio_write(0x100 + offsetof(struct viommu_config, bypass), 1, 0);
    /* and has its bus scanned again. */
    d.s[0].smmu = smmu_by_node(&sw[1].node);
    d.s[0].sid = 0x41;
    assert_int_not_equal(pvi_endpoint_add(pd, &d), 0);
    assert_int_not_equal(dma(0x11, 0x5000, true, NULL), 0);
    assert_int_not_equal(dma(0x41, 0x5000, true, NULL), 0);
}

/* What a chain's 120 buffers cost counts against the slice. */
static void long_chains(void **state)
{
    const unsigned int per = 120;
    unsigned int i, j, worst = 0;
    bool more;

    for ( i = 0; i < NUM; i++ )
    {
        uint64_t at = 0x400000 + i * 0x2000;
        struct vring_desc *t = gpa(at);

        for ( j = 0; j < per; j++ )
            t[j] = (struct vring_desc){ 0x800000 + ((j * 8 + 8 * i) << 12), 1,
                                        VRING_DESC_F_NEXT, j + 1 };
        t[j] = (struct vring_desc){ 0xa00000, 4, VRING_DESC_F_WRITE };
        desc()[i] = (struct vring_desc){ at, (per + 1) * 16,
                                         VRING_DESC_F_INDIRECT };
        avail()[2 + avail_idx % NUM] = i;
        avail_idx++;
    }
    avail()[1] = avail_idx;
    dom.arch.p2m.hook = hook;
    wr(0x50, 0);
    fake_irqs_off = true;
    do {
        lookups = 0;
        more = pviommu_vcpu_work(&cpu);
        worst = max_t(unsigned int, worst, lookups);
    } while ( more );
    fake_irqs_off = false;
    assert_int_equal(used()[1], avail_idx);
    assert_true(worst <= 2 * PVI_SLICE_WORK);
}

/* A vCPU that is about to sleep takes no work with it. */
static void worker_sleeps(void **state)
{
    struct viommu_req_map r = map_req(1, 0, 0x1000000, 0, RW);
    struct vcpu sleeper = { .domain = &dom, .pause_flags = 1 };
    uint8_t *status;

    assert_int_equal(attach(1, 0x10, 0), VIOMMU_S_OK);
    dom.arch.p2m.order = 0;
    status = post(&r, sizeof(r), 4);
    /* vCPU 0 kicks; before it is at its exit vCPU 1 comes from its WFI. */
    wr(0x50, 0);
    fake_irqs_off = true;
    assert_false(pviommu_vcpu_work(&sleeper));
    fake_irqs_off = false;
    run_bare();
    assert_int_equal(used()[1], avail_idx);
    assert_int_equal(*status, VIOMMU_S_OK);
}

/*
 * The order of every backend: the I/O is done, its buffer is unmapped, lazily
 * in a lazy domain, and its grant is given back.
 */
static void unmapped_then_ungranted(void **state)
{
    window(fake_guest_pages(&other, 0), 0x100, 1, p2m_grant_map_rw);
    attach_all();
    assert_int_equal(map(1, 0x10000, 0x1000, 0x100000, RW), VIOMMU_S_OK);
    assert_int_equal(dma(0x10, 0x10000, true, NULL), 0);
    assert_int_equal(unmap(1, 0x10000, 0x1000), VIOMMU_S_OK);
    pviommu_p2m_batch_begin();
    leaves(0x100);
    pviommu_p2m_batch_end();
    assert_false(reached(win.pg));
}

/*
 * Behind the UNMAP is a long MAP, and in its middle the queue is disabled, or
 * the driver says that it has failed: the sync at the end of the kick must not
 * be lost with it.
 */
static void stopped_kick(void (*stop)(void))
{
    struct viommu_req_unmap u = unmap_req(1, 0x10000, 0x1000);
    struct viommu_req_map m = map_req(1, 0x1000000, 0x800000, 0x800000, RW);
    struct page_info *pg = ram + 0x28;
    unsigned long before = pg->count_info;

    attach_all();
    assert_int_equal(map(1, 0x10000, 0x1000, 0x28000, RW), VIOMMU_S_OK);
    assert_int_equal(dma(0x10, 0x10000, true, NULL), 0);
    assert_int_equal(pg->count_info, before + 1);
    post(&u, sizeof(u), 4);
    post(&m, sizeof(m), 4);
    dom.arch.p2m.order = 0;
    wr(0x50, 0);
    fake_irqs_off = true;
    assert_true(pviommu_vcpu_work(&cpu));
    fake_irqs_off = false;
    assert_true(pvi_fq_pending(pd));
    assert_int_equal(dma(0x10, 0x10000, true, NULL), 0); /* as long as it is */
    stop();
    run_bare();
    assert_false(pvi_fq_pending(pd));
    assert_int_equal(dma(0x10, 0x10000, true, NULL), EVT_F_TRANSLATION);
    assert_int_equal(pg->count_info, before);
}

static void disable(void)
{
    wr(0x30, 0);
    wr(0x44, 0);
}

static void give_up(void)
{
    wr(0x70, 0x80 | 15);
}

static void unmapped_and_disabled(void **state) { stopped_kick(disable); }
static void unmapped_and_failed(void **state) { stopped_kick(give_up); }

/* The invalidation of a replaced page fails: Xen would let go of it next. */
static void changed_page_is_pinned(void **state)
{
    uint64_t *t3 = cpu_tables(true);
    unsigned long before = ram[5].count_info;
    lpae_t old;

    t3[5] = entry(page_to_maddr(ram + 5), p2m_ram_rw);
    assert_int_equal(dma(0x10, 0x5000, true, NULL), 0);
    sw[0].mode = SW_NEVER;
    fake_now_step = MILLISECS(1);

    spin_lock(&dom.arch.p2m.lock);
    old.bits = t3[5];
    t3[5] = 0;
    pviommu_p2m_change(&dom.arch.p2m, _gfn(5), 0, &old, 3, false);
    t3[5] = entry(page_to_maddr(ram + 6), p2m_ram_rw);
    pviommu_p2m_unlock(&dom.arch.p2m);
    spin_unlock(&dom.arch.p2m.lock);
    assert_true(pd->broken);
    assert_int_equal(old.bits, 0);
    fake_run_tasklets();
    assert_true(reached(ram + 5));
    assert_true(ram[5].count_info > before);
}

/* The same with a table: all its pages, and Xen is not to free the table. */
static void gone_table_is_pinned(void **state)
{
    uint64_t *l2 = cpu_tables(false), *t3;
    lpae_t old;

    t3 = cpu_tables(true);
    l2[0] = virt_to_maddr(t3) | 3;
    *(uint64_t *)page_to_virt(dom.arch.p2m.root) = virt_to_maddr(l2) | 3;
    t3[5] = entry(page_to_maddr(ram + 5), p2m_ram_rw);
    t3[511] = entry(page_to_maddr(ram + 7), p2m_ram_ro);
    t3[6] = entry(0x8000000, p2m_mmio_direct_dev);
    assert_int_equal(dma(0x10, 0x5000, true, NULL), 0);
    sw[0].mode = SW_NEVER;
    fake_now_step = MILLISECS(1);

    /* A level above, as when 1 GiB goes. */
    spin_lock(&dom.arch.p2m.lock);
    old.bits = virt_to_maddr(l2) | 3;
    *(uint64_t *)page_to_virt(dom.arch.p2m.root) = 0;
    pviommu_p2m_change(&dom.arch.p2m, _gfn(0), 18, &old, 1, true);
    pviommu_p2m_unlock(&dom.arch.p2m);
    spin_unlock(&dom.arch.p2m.lock);
    assert_true(pd->broken);
    assert_int_equal(old.bits, 0);
    assert_int_equal(ram[5].count_info, 2);
    assert_int_equal(ram[7].count_info, 2);
    assert_int_equal(ram[8].count_info, 1);
}

/* A grant goes with the table that leads to it, when a block takes its place. */
static void grant_below_a_table(void **state)
{
    uint64_t *t3 = page_to_virt(alloc_domheap_pages(NULL, 0, 0));
    lpae_t old = { .bits = virt_to_maddr(t3) | 3 };

    window(fake_guest_pages(&other, 0), 0x203, 1, p2m_grant_map_rw);
    memset(t3, 0, PAGE_SIZE);
    t3[3] = entry(page_to_maddr(win.pg), win.type);
    attach_all();
    assert_int_equal(map(1, 0x10000, 0x3000, 0x202000, RW), VIOMMU_S_OK);
    assert_int_equal(dma(0x10, 0x11000, true, NULL), 0);
    assert_true(reached(win.pg));

    spin_lock(&dom.arch.p2m.lock);
    pviommu_p2m_change(&dom.arch.p2m, _gfn(0x200), 9, &old, 2, false);
    pviommu_p2m_unlock(&dom.arch.p2m);
    spin_unlock(&dom.arch.p2m.lock);
    assert_false(reached(win.pg));
    assert_int_equal(dma(0x10, 0x11000, true, NULL), EVT_F_TRANSLATION);
    assert_int_equal(win.pg->count_info, 1);
    assert_int_equal(dma(0x10, 0x10000, true, NULL), 0);
    assert_int_equal(pd->stats.revoked, 1);
}

/* A device's registers leave with the device, in strict and in lazy domains. */
static void registers_leave(void **state)
{
    uint64_t pa;
    unsigned int i;

    win.mmio = _mfn(0x8000);
    window(NULL, 0x300, 64, p2m_mmio_direct_dev);
    attach_all();
    assert_int_equal(map(1, 0x40000, 64 << 12, 0x300000, RW), VIOMMU_S_OK);
    assert_int_equal(map(1, 0x90000, 0x1000, 0x301000, RW), VIOMMU_S_OK);
    for ( i = 0; i < 64; i++ )
    {
        assert_int_equal(sw_dma(&sw[0], 0x10, 0x40000 + (i << 12), true, &pa),
                         0);
        assert_int_equal(pa, mfn_to_maddr(mfn_add(win.mmio, i)));
    }
    assert_int_equal(dma(0x10, 0x90000, true, NULL), 0);

    leaves(0x301);
    assert_int_equal(dma(0x10, 0x41000, true, NULL), EVT_F_TRANSLATION);
    assert_int_equal(dma(0x10, 0x90000, true, NULL), EVT_F_TRANSLATION);
    assert_int_equal(dma(0x10, 0x42000, true, NULL), 0);
    assert_int_equal(pd->stats.revoked, 2);

    /* A block at once. */
    spin_lock(&dom.arch.p2m.lock);
    {
        lpae_t old = { .bits = (0x8000UL << 12 & ~0x1fffffUL) | 0x7fd |
                               (uint64_t)p2m_mmio_direct_dev << 55 };

        pviommu_p2m_change(&dom.arch.p2m, _gfn(0x200), 9, &old, 2, true);
    }
    pviommu_p2m_unlock(&dom.arch.p2m);
    spin_unlock(&dom.arch.p2m.lock);
    for ( i = 0; i < 64; i++ )
        assert_int_equal(dma(0x10, 0x40000 + (i << 12), true, NULL),
                         EVT_F_TRANSLATION);
    assert_int_equal(unmap(1, 0, 0x100000), VIOMMU_S_OK);
}

/* The doorbell of the ITS is mapped in each context. */
static void one_register_in_many_contexts(void **state)
{
    const unsigned int nr = 600;
    unsigned int i;

    win.mmio = _mfn(0x8090);
    window(NULL, 0x300, 1, p2m_mmio_direct_dev);
    fake_pool_fill(&dom, 8 * nr);
    /* Contexts without endpoints die: keep them by hand. */
    for ( i = 0; i < nr; i++ )
    {
        struct pvi_context *ctx = pvi_context_create(pd, i);

        assert_non_null(ctx);
        pvi_context_enter(ctx);
        ctx->nr_endpoints++;
        pd->nr_contexts++;
        assert_int_equal(map(i, 0x8000000, 0x1000, 0x300000, RW), VIOMMU_S_OK);
    }
    for ( i = 0; i < nr; i++ )
    {
        assert_int_equal(unmap(i, 0x8000000, 0x1000), VIOMMU_S_OK);
        spin_lock(&pd->lock);
        pd->ctx[i]->nr_endpoints--;
        pvi_context_kill(pd->ctx[i]);
        spin_unlock(&pd->lock);
    }
    pvi_work(pd);
    run();
    for ( i = 0; i < 8 * nr; i++ )
        page_list_remove_head(&dom.arch.paging.p2m_freelist);
}

/* What is put in the place of a revoked page is a mapping of its own. */
static void hole_filled_again(void **state)
{
    window(fake_guest_pages(&other, 2), 0x100, 4, p2m_grant_map_rw);
    attach_all();
    assert_int_equal(map(1, 0x10000, 0x4000, 0x100000, RW), VIOMMU_S_OK);
    leaves(0x100);
    win.nr = 0;
    assert_int_equal(map(1, 0x10000, 0x1000, 0x5000, RW), VIOMMU_S_OK);
    assert_int_equal(unmap(1, 0x10000, 0x1000), VIOMMU_S_OK);
    assert_int_equal(unmap(1, 0x12000, 0x2000), VIOMMU_S_RANGE);
    assert_int_equal(unmap(1, 0x11000, 0x3000), VIOMMU_S_OK);
}

/* Chains in the event queue are walked by Xen for each fault. */
static void long_chains_for_events(void **state)
{
    struct smmu_event ev = { .id = EVT_F_TRANSLATION, .has_addr = true,
                             .sid = 0x10 };
    struct vring_desc *t = gpa(0x400000);
    uint16_t *ring = gpa(RINGS + 0x4000);
    unsigned int j;

    ev.smmu = smmu_by_node(&sw[0].node);
    for ( j = 0; j < 200; j++ )
        t[j] = (struct vring_desc){ 0x800000 + (j << 15), 1, VRING_DESC_F_NEXT,
                                    j + 1 };
    t[j] = (struct vring_desc){ 0xa00000, 24, VRING_DESC_F_WRITE };
    ((struct vring_desc *)gpa(RINGS + 0x3000))[0] =
        (struct vring_desc){ 0x400000, (j + 1) * 16, VRING_DESC_F_INDIRECT };
    ring[2] = 0;
    ring[1] = 1;
    assert_int_equal(pvi_smmu_event(&ev), 2 * (j + 2));
    /* The control: no chain, no cost. */
    assert_int_equal(pvi_smmu_event(&ev), 0);
    assert_int_equal(((uint16_t *)gpa(RINGS + 0x5000))[1], 1);
}

const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "detect_leaks=0"; }

#define T(f) cmocka_unit_test_setup_teardown(f, setup_a, teardown)
#define L(f) cmocka_unit_test_setup_teardown(f, setup_al, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(ring_in_a_grant), T(two_grants_of_a_page), L(two_grants_of_a_page),
        T(contexts_without_end), L(contexts_without_end),
        T(stream_named_twice), T(broken_stays_cut_off), T(long_chains),
        T(worker_sleeps), T(unmapped_then_ungranted),
        L(unmapped_then_ungranted), T(unmapped_and_disabled),
        T(unmapped_and_failed), T(changed_page_is_pinned),
        T(gone_table_is_pinned), T(grant_below_a_table), L(grant_below_a_table),
        T(registers_leave), L(registers_leave),
        T(one_register_in_many_contexts), T(hole_filled_again),
        L(hole_filled_again), T(long_chains_for_events),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
