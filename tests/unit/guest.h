/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A guest with a virtio-iommu in front of two software SMMUs that keep every
 * stale entry: what the tests of the device and of the p2m share.
 */
#ifndef GUEST_H
#define GUEST_H

#include "unit.h"

#include <xen/pviommu.h>

#include "viommu/viommu.h"

bool opt_dom0_viommu = true, opt_dom0_strict = true, opt_dom0_bypass = true;

#ifndef GUEST_ORDER
#define GUEST_ORDER 13                  /* 32 MiB; the rings are at its end */
#endif
#define GUEST_PAGES (1UL << GUEST_ORDER)
#define RINGS       ((GUEST_PAGES - 16) << 12)
#ifndef NUM
#define NUM         64                  /* entries of a ring */
#endif
#ifndef POOL
#define POOL        200
#endif

static struct swsmmu sw[2];
static struct domain dom;
static struct vcpu cpu;
static struct pvi_domain *pd;
static struct viommu *v;
static struct page_info *ram;
static unsigned int slices;
__attribute__((unused)) static long allocs_before; /* the domain's birth */
/* Driver's side of the ring. */
static uint16_t avail_idx, used_seen;
static unsigned int next_buf;

__attribute__((unused)) static uint64_t mmio_read(unsigned int reg, unsigned int size)
{
    mmio_info_t info = { .dabt.size = size, .gpa = 0x2000000 + reg };
    register_t r;

    assert_int_equal(fake_mmio_ops->read(&cpu, &info, &r, fake_mmio_priv), 1);
    return r;
}

__attribute__((unused)) static void mmio_write(unsigned int reg, uint64_t val, unsigned int size)
{
    mmio_info_t info = { .dabt.size = size, .gpa = 0x2000000 + reg };

    assert_int_equal(fake_mmio_ops->write(&cpu, &info, val, fake_mmio_priv), 1);
}

#define rd(r)       ((uint32_t)mmio_read(r, 2))
#define wr(r, x)    mmio_write(r, x, 2)

__attribute__((unused)) static void *gpa(uint64_t a)
{
    return (char *)page_to_virt(ram) + a;
}

__attribute__((unused)) static struct vring_desc *desc(void) { return gpa(RINGS); }
__attribute__((unused)) static uint16_t *avail(void) { return gpa(RINGS + 0x1000); }
__attribute__((unused)) static uint16_t *used(void) { return gpa(RINGS + 0x2000); }

/* Let the hypervisor work until it has nothing to do. */
__attribute__((unused)) static void run_bare(void)
{
    fake_irqs_off = true;
    slices = 0;
    do {
        if ( ++slices == 20000 )
            fail_msg("still at work after %u slices", slices);
    } while ( pviommu_vcpu_work(&cpu) );
    fake_irqs_off = false;
    assert_int_equal(fake_locks, 0);
}

__attribute__((unused)) static void run(void)
{
    run_bare();
    assert_int_equal(fake_mapped, 2 * 3);   /* the rings */
}

__attribute__((unused)) static void queue_set(unsigned int n, uint64_t at)
{
    wr(0x30, n);
    wr(0x38, NUM);
    wr(0x80, at);
    wr(0x84, 0);
    wr(0x90, at + 0x1000);
    wr(0x94, 0);
    wr(0xa0, at + 0x2000);
    wr(0xa4, 0);
    wr(0x44, 1);
    assert_int_equal(rd(0x44), 1);
}

#define FEATURES ((1UL << 28) | 1UL << 32 | 0x77)

__attribute__((unused)) static void drive(uint64_t features)
{
    wr(0x70, 0);
    wr(0x70, 1);
    wr(0x70, 3);
    wr(0x24, 0);
    wr(0x20, features);
    wr(0x24, 1);
    wr(0x20, features >> 32);
    wr(0x70, 11);
    assert_int_equal(rd(0x70), 11);
    memset(gpa(RINGS), 0, 0x6000);
    queue_set(0, RINGS);
    queue_set(1, RINGS + 0x3000);
    wr(0x70, 15);
    avail_idx = used_seen = 0;
    next_buf = 0;
}

/* What a test wants to be different about an SMMU, before it is probed. */
__attribute__((unused)) static void (*make_smmu)(struct swsmmu *s);

__attribute__((unused)) static void make(bool strict, bool ril)
{
    static bool again;
    struct pvi_ep_desc d = { .kind = PVI_EP_PCI };
    unsigned int i;

    fake_init();
    fake_domain = &dom;
    /* The driver keeps the root of blocked streams: always the same page. */
    if ( again )
        clear_page(page_to_virt(alloc_domheap_pages(NULL, 0, 0)));
    else
        assert_int_equal(pvi_context_global_init(), 0);
    again = true;
    INIT_LIST_HEAD(&smmu_devices);
    smmu_nr = 0;
    memset(&dom, 0, sizeof(dom));
    memset(&cpu, 0, sizeof(cpu));
    fake_now_step = MICROSECS(1);
    for ( i = 0; i < 2; i++ )
    {
        sw_init(&sw[i], i ? "smmu1" : "smmu0");
        sw[i].at_sync = true;
        sw[i].mode = SW_LATE;
        if ( ril )
            sw[i].idr3 |= 1 << 10;
        if ( make_smmu )
            make_smmu(&sw[i]);
        assert_int_equal(smmu_probe(&sw[i].node), 0);
    }
    fake_pool_fill(&dom, POOL);
    ram = fake_guest_pages(&dom, GUEST_ORDER);
    spin_lock_init(&dom.arch.p2m.lock);
    dom.arch.p2m.domain = &dom;
    dom.arch.p2m.base = page_to_mfn(ram);
    dom.arch.p2m.size = GUEST_PAGES;
    /* A p2m for the CPUs' view: empty, so that bypass reaches nothing. */
    dom.arch.p2m.root = alloc_domheap_pages(NULL, 1, 0);
    memset(page_to_virt(dom.arch.p2m.root), 0, 2 * PAGE_SIZE);
    cpu.domain = &dom;

    assert_int_equal(pvi_context_global_init(), 0);
    allocs_before = fake_allocs;
    assert_int_equal(pvi_domain_init(&dom), 0);
    pd = dom_pvi(&dom);
    pd->strict = strict;
    assert_int_equal(viommu_init(pd, 0x2000000, 50), 0);
    v = pd->viommu;
    for ( i = 0; i < 4; i++ )
    {
        d.epid = 0x10 + i;
        d.nr_streams = 1;
        d.s[0].smmu = smmu_by_node(&sw[i & 1].node);
        d.s[0].sid = 0x10 + i;
        assert_int_equal(pvi_endpoint_add(pd, &d), 0);
    }
    slices = 0;
    drive(FEATURES);
}

__attribute__((unused)) static int setup(void **state) { make(true, false); return 0; }
__attribute__((unused)) static int setup_lazy(void **state) { make(false, true); return 0; }

__attribute__((unused)) static int teardown(void **state)
{
    unsigned int i;

    for ( i = 0; i < 4; i++ )
        if ( pvi_endpoint_find(pd, 0x10 + i) )
            assert_true(pvi_endpoint_remove(pd, PVI_EP_PCI, 0x10 + i) == 0 ||
                        pd->broken);
    if ( !pd->broken )
    {
        struct page_info *pg;

        dom.is_dying = true;
        assert_int_equal(pviommu_relinquish(&dom), 0);
        assert_int_equal(fake_refs, 0);
        assert_int_equal(fake_mapped, 0);
        i = 0;
        page_list_for_each ( pg, &dom.arch.paging.p2m_freelist )
            i++;
        assert_int_equal(i, POOL);
        pvi_domain_free(&dom);
    }
    no_violations(&sw[0]);
    no_violations(&sw[1]);
    assert_int_equal(fake_locks, 0);
    sw_exit(&sw[0]);
    sw_exit(&sw[1]);
    return 0;
}

/* Queue a request; its status will be at the returned place. */
__attribute__((unused)) static uint8_t *post(const void *req, unsigned int len, unsigned int in_len)
{
    unsigned int d = next_buf % (NUM / 2) * 2;
    uint64_t at = RINGS + 0x7000 + d / 2 * (0x8000 / (NUM / 2));
    uint8_t *in = gpa(at + 128);

    next_buf++;
    memcpy(gpa(at), req, len);
    memset(in, 0xee, in_len);
    desc()[d] = (struct vring_desc){ at, len, VRING_DESC_F_NEXT, d + 1 };
    desc()[d + 1] = (struct vring_desc){ at + 128, in_len, VRING_DESC_F_WRITE };
    avail()[2 + avail_idx % NUM] = d;
    avail()[1] = ++avail_idx;
    return in + in_len - 4;
}

/* Tables that were given back: no walk may find them any more. */
__attribute__((unused)) static void check_pool(void)
{
    struct page_info *pg;

    page_list_for_each ( pg, &dom.arch.paging.p2m_freelist )
        if ( sw_reaching(&sw[0], page_to_maddr(pg), PAGE_SIZE) ||
             sw_reaching(&sw[1], page_to_maddr(pg), PAGE_SIZE) )
            fail_msg("a free table is still cached");
}

__attribute__((unused)) static void kick(void)
{
    wr(0x50, 0);
    run();
    assert_int_equal(used()[1], avail_idx);
}

__attribute__((unused)) static int request(const void *req, unsigned int len)
{
    uint8_t *status = post(req, len, 4);

    kick();
    return *status;
}

__attribute__((unused)) static int attach(uint32_t domain, uint32_t ep, uint32_t flags)
{
    struct viommu_req_attach r = { .type = VIOMMU_T_ATTACH, .domain = domain,
                                   .endpoint = ep, .flags = flags };

    return request(&r, sizeof(r));
}

__attribute__((unused)) static int detach(uint32_t domain, uint32_t ep)
{
    struct viommu_req_detach r = { .type = VIOMMU_T_DETACH, .domain = domain,
                                   .endpoint = ep };

    return request(&r, sizeof(r));
}

#define RW 3
__attribute__((unused)) static struct viommu_req_map map_req(uint32_t domain, uint64_t virt,
                                     uint64_t size, uint64_t phys,
                                     uint32_t flags)
{
    return (struct viommu_req_map){
        .type = VIOMMU_T_MAP, .domain = domain, .virt_start = virt,
        .virt_end = virt + size - 1, .phys_start = phys, .flags = flags };
}

__attribute__((unused)) static int map(uint32_t domain, uint64_t virt, uint64_t size, uint64_t phys,
               uint32_t flags)
{
    struct viommu_req_map r = map_req(domain, virt, size, phys, flags);

    return request(&r, sizeof(r));
}

__attribute__((unused)) static struct viommu_req_unmap unmap_req(uint32_t domain, uint64_t virt,
                                         uint64_t size)
{
    return (struct viommu_req_unmap){
        .type = VIOMMU_T_UNMAP, .domain = domain, .virt_start = virt,
        .virt_end = virt + size - 1 };
}

__attribute__((unused)) static int unmap(uint32_t domain, uint64_t virt, uint64_t size)
{
    struct viommu_req_unmap r = unmap_req(domain, virt, size);

    return request(&r, sizeof(r));
}

__attribute__((unused)) static int dma(unsigned int ep, uint64_t iova, bool write, uint64_t *to)
{
    paddr_t pa;
    int rc = sw_dma(&sw[ep & 1], ep, iova, write, &pa);

    if ( to )
        *to = rc ? ~0UL : pa - page_to_maddr(ram);
    return rc;
}

__attribute__((unused)) static unsigned int syncs(void)
{
    return sw[0].nr_syncs + sw[1].nr_syncs;
}

/* The counters equal what the SMMUs have seen. */
__attribute__((unused)) static unsigned int tlbis(void)
{
    return sw_count(&sw[0], 0x28) + sw_count(&sw[0], 0x2a) +
           sw_count(&sw[1], 0x28) + sw_count(&sw[1], 0x2a);
}

__attribute__((unused)) static void check_counters(void)
{
    unsigned int i, n = 0;

    /* Nobody waits for what was issued early. */
    for ( i = 0; i < 2; i++ )
        sw_consume(&sw[i], UINT_MAX);
    for ( i = 0; i < PVI_NR_CAUSES; i++ )
        n += atomic_read(&pd->stats.flush[i]);
    assert_int_equal(atomic_read(&pd->stats.sync), n);
    /* One of each SMMU is the probe's. */
    assert_int_equal(n, syncs() - 2);
    assert_int_equal(atomic_read(&pd->stats.tlbi), tlbis());
}

#endif /* GUEST_H */
