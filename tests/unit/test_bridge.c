/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A host bridge that the guest owns: functions are endpoints while they are
 * attached, and do what `bypass` says otherwise.  16-bit StreamIDs.
 */

#include "guest.h"

static struct dt_device_node bridge;
static __be32 iommu_map[36];

static void map_line(unsigned int i, uint32_t rid, uint32_t smmu, uint32_t sid,
                     uint32_t nr)
{
    iommu_map[4 * i] = cpu_to_be32(rid);
    iommu_map[4 * i + 1] = cpu_to_be32(smmu);
    iommu_map[4 * i + 2] = cpu_to_be32(sid);
    iommu_map[4 * i + 3] = cpu_to_be32(nr);
    bridge.props[0].len = 16 * (i + 1);
}

/* The p2m maps guest frame 5. */
static void cpu_tables(void)
{
    struct page_info *l2 = alloc_domheap_pages(NULL, 0, 0);
    struct page_info *l3 = alloc_domheap_pages(NULL, 0, 0);

    memset(page_to_virt(l2), 0, PAGE_SIZE);
    memset(page_to_virt(l3), 0, PAGE_SIZE);
    ((uint64_t *)page_to_virt(l3))[5] = page_to_maddr(ram + 5) | 0x7ff;
    *(uint64_t *)page_to_virt(l2) = page_to_maddr(l3) | 3;
    *(uint64_t *)page_to_virt(dom.arch.p2m.root) = page_to_maddr(l2) | 3;
}

static int setup_bridge(void **state)
{
    static uint32_t segment;

    make(true, false);
    cpu_tables();
    segment = cpu_to_be32(2);
    memset(&bridge, 0, sizeof(bridge));
    bridge.type = "pci";
    bridge.full_name = "/pcie";
    bridge.props[0] = (struct fake_prop){ "iommu-map", iommu_map, 0 };
    bridge.props[1] = (struct fake_prop){ "linux,pci-domain", &segment, 4 };
    sw[0].node.phandle = 0x77;
    sw[1].node.phandle = 0x78;
    sw[0].node.allnext = &sw[1].node;
    dt_host = &sw[0].node;
    /* Whole buses, and parts of one at both ends. */
    map_line(0, 0, 0x77, 0x180, 0x500);
    return 0;
}

static int dma_sid(unsigned int smmu, uint32_t sid, uint64_t iova, uint64_t *to)
{
    paddr_t pa;
    int rc = sw_dma(&sw[smmu], sid, iova, true, &pa);

    *to = rc ? ~0UL : pa - page_to_maddr(ram);
    return rc;
}

/* A stream without an entry, or even without a table for it, or that aborts. */
#define NOBODY  (-1)

static bool is(int got, int want)
{
    return want == NOBODY ? got == EVT_C_BAD_STE || got == EVT_C_BAD_STREAMID ||
                            got == -1
                          : got == want;
}

static void all(uint32_t first, uint32_t last, int want)
{
    uint32_t sid;
    uint64_t to;

    for ( sid = first; sid <= last; sid += sid % 7 ? 1 : 13 )
    {
        assert_true(is(dma_sid(0, sid, 0x5000, &to), want));
        if ( !want )
            assert_int_equal(to, 0x5000);
    }
}

static void post_unmap(void)
{
    struct viommu_req_unmap r = unmap_req(1, 0x1000, 0x1000);

    post(&r, sizeof(r), 4);
}

#define ID(rid) (0x20000 + (rid))

static void whole_bridge(void **state)
{
    uint64_t to;

    all(0x180, 0x67f, NOBODY);
    assert_int_equal(pvi_bridge_add(pd, &bridge), 0);
    all(0x180, 0x67f, 0);
    assert_int_equal(dma_sid(0, 0x17f, 0x5000, &to), EVT_C_BAD_STE);
    assert_int_equal(dma_sid(0, 0x680, 0x5000, &to), EVT_C_BAD_STE);

    /* One function attaches, its neighbours stay as they are. */
    assert_int_equal(attach(1, ID(0x208), 0), VIOMMU_S_OK);
    assert_int_equal(pd->nr_endpoints, 5);
    assert_int_equal(map(1, 0x9000, 0x1000, 0x7000, RW), VIOMMU_S_OK);
    assert_int_equal(dma_sid(0, 0x388, 0x9000, &to), 0);
    assert_int_equal(to, 0x7000);
    assert_int_equal(dma_sid(0, 0x388, 0x5000, &to), EVT_F_TRANSLATION);
    all(0x180, 0x387, 0);
    all(0x389, 0x67f, 0);

    /* bypass=0 for all but that one, and back. */
    mmio_write(0x124, 0, 0);
    all(0x180, 0x387, EVT_F_TRANSLATION);
    all(0x389, 0x67f, EVT_F_TRANSLATION);
    assert_int_equal(dma_sid(0, 0x388, 0x9000, &to), 0);
    /* It detaches into what the others do now. */
    assert_int_equal(detach(1, ID(0x208)), VIOMMU_S_OK);
    assert_int_equal(pd->nr_endpoints, 4);
    all(0x180, 0x67f, EVT_F_TRANSLATION);
    mmio_write(0x124, 1, 0);
    all(0x180, 0x67f, 0);

    /* In the parts at the ends, too; and left attached at the end. */
    assert_int_equal(attach(1, ID(0), 0), VIOMMU_S_OK);
    assert_int_equal(attach(1, ID(0x4ff), 0), VIOMMU_S_OK);
    assert_int_equal(dma_sid(0, 0x180, 0x5000, &to), EVT_F_TRANSLATION);
    assert_int_equal(dma_sid(0, 0x67f, 0x5000, &to), EVT_F_TRANSLATION);
    all(0x181, 0x67e, 0);
    check_counters();

    assert_int_equal(pvi_bridge_remove(pd, &bridge), 0);
    all(0x180, 0x67f, NOBODY);
    assert_int_equal(pd->nr_endpoints, 4);
    assert_true(list_empty(&pd->dflt.atts) == false); /* the four of make() */
    assert_int_equal(pvi_bridge_remove(pd, &bridge), -ENODEV);
    /* And again, as the next guest has it. */
    assert_int_equal(pvi_bridge_add(pd, &bridge), 0);
    all(0x180, 0x67f, 0);
    assert_int_equal(pvi_bridge_remove(pd, &bridge), 0);
    all(0x180, 0x67f, NOBODY);
    check_counters();
}

static unsigned long xenheap(void)
{
    unsigned long i, n = 0;

    for ( i = 0; i < FAKE_NR_PAGES; i++ )
        n += fake_frames[i].count_info && fake_frames[i].xenheap;

    return n;
}

/* Stream tables that a guest's endpoints, and its faults, have needed. */
static void tables_given_back(void **state)
{
    struct smmu_device *smmu = smmu_by_node(&sw[0].node);
    unsigned int bus, syncs = 0;
    unsigned long before, shared;

    /* Parts of a bus have tables that stay: they may be others' too. */
    assert_int_equal(pvi_bridge_add(pd, &bridge), 0);
    assert_int_equal(pvi_bridge_remove(pd, &bridge), 0);
    before = xenheap();

    assert_int_equal(pvi_bridge_add(pd, &bridge), 0);
    shared = xenheap();
    for ( bus = 0; bus < 4; bus++ )
        assert_int_equal(attach(1, ID(0x80 + bus * 0x100), 0), VIOMMU_S_OK);
    assert_true(xenheap() >= shared + 4);
    mmio_write(0x124, 0, 0);
    assert_true(xenheap() >= shared + 4);
    /* One is needed no more. */
    assert_int_equal(detach(1, ID(0x80)), VIOMMU_S_OK);
    assert_int_equal(smmu_ste_record(smmu, 0x210, false, &syncs), 0);
    mmio_write(0x124, 1, 0);
    assert_true(xenheap() < shared + 16);
    all(0x180, 0x2ff, 0);
    /* Nobody's, but silent. */
    assert_int_equal(smmu_ste_record(smmu, 0x220, false, &syncs), 0);
    assert_int_equal(smmu_ste_record(smmu, 0x220, true, &syncs), 0);
    pvi_count(pd, 0, syncs, PVI_CAUSE_CONFIG);
    assert_int_equal(pvi_bridge_remove(pd, &bridge), 0);
    assert_int_equal(xenheap(), before);
    all(0x180, 0x67f, NOBODY);
    check_counters();
}

/* Tables that are not needed any more, and no sync says so. */
static void tables_kept(void **state)
{
    unsigned long before;

    /* Whole buses only: nothing else is waited for before they would go. */
    map_line(0, 0x100, 0x77, 0x100, 0xff00);
    assert_int_equal(pvi_bridge_add(pd, &bridge), 0);
    assert_int_equal(attach(1, ID(0x208), 0), VIOMMU_S_OK);
    assert_int_equal(detach(1, ID(0x208)), VIOMMU_S_OK);
    before = xenheap();
    sw[0].mode = SW_NEVER;
    assert_int_equal(pvi_bridge_remove(pd, &bridge), -ETIMEDOUT);
    assert_int_equal(xenheap(), before);
    assert_true(pd->broken);
}

/* Endpoints on so many buses at a time, and on others when some have gone. */
static void bus_limit(void **state)
{
    unsigned int bus;

    map_line(0, 0, 0x77, 0, 0x10000);
    assert_int_equal(pvi_bridge_add(pd, &bridge), 0);
    for ( bus = 1; bus <= PVI_BRIDGE_BUSES; bus++ )
        assert_int_equal(attach(1, ID(bus << 8), 0), VIOMMU_S_OK);
    assert_int_equal(attach(1, ID(bus << 8), 0), VIOMMU_S_NOMEM);
    assert_int_equal(attach(1, ID(0x108), 0), VIOMMU_S_OK);
    assert_int_equal(detach(1, ID(0x100)), VIOMMU_S_OK);
    assert_int_equal(attach(1, ID(bus << 8), 0), VIOMMU_S_NOMEM);
    assert_int_equal(detach(1, ID(0x108)), VIOMMU_S_OK);
    assert_int_equal(attach(1, ID(bus << 8), 0), VIOMMU_S_OK);
    mmio_write(0x124, 0, 0);
    mmio_write(0x124, 1, 0);
    all(0x101, 0x1ff, 0);
    assert_int_equal(pvi_bridge_remove(pd, &bridge), 0);
    check_counters();
}

/* iommu-map-mask: the functions of a device are one stream. */
static void masked_ids(void **state)
{
    static uint32_t mask;
    struct pvi_ep_desc d = { .kind = PVI_EP_PCI };
    uint64_t to;
    unsigned int fn;

    mask = cpu_to_be32(0xfff8);
    bridge.props[2] = (struct fake_prop){ "iommu-map-mask", &mask, 4 };

    /* dom0 tells Xen of its functions one by one. */
    for ( fn = 0; fn < 8; fn++ )
    {
        d.nr_streams = 0;
        assert_int_equal(pvi_map_rid(&bridge, 0x208 + fn, &d), 0);
        assert_int_equal(d.s[0].sid, 0x180 + 0x208);
    }
    d.nr_streams = 0;
    assert_int_equal(pvi_map_rid(&bridge, 0x210, &d), 0);
    assert_int_equal(d.s[0].sid, 0x180 + 0x210);
    assert_int_equal(pvi_map_rid(&bridge, 0x500, &d), -ENODEV);

    /* A guest has the bridge: all functions are there, on one stream. */
    assert_int_equal(pvi_bridge_add(pd, &bridge), 0);
    assert_int_equal(attach(1, ID(0x20f), 0), VIOMMU_S_OK);
    assert_int_equal(map(1, 0x9000, 0x1000, 0x7000, RW), VIOMMU_S_OK);
    assert_int_equal(dma_sid(0, 0x180 + 0x208, 0x9000, &to), 0);
    assert_int_equal(to, 0x7000);
    assert_int_equal(attach(1, ID(0x208), 0), VIOMMU_S_OK);
    assert_int_equal(attach(2, ID(0x209), 0), VIOMMU_S_UNSUPP);
    assert_int_equal(attach(2, ID(0x210), 0), VIOMMU_S_OK);
    assert_int_equal(pvi_bridge_remove(pd, &bridge), 0);

    /* All functions of all buses: one. */
    mask = 0;
    map_line(0, 0, 0x77, 0x180, 1);
    assert_int_equal(pvi_bridge_add(pd, &bridge), 0);
    assert_int_equal(attach(1, ID(0x4321), 0), VIOMMU_S_OK);
    assert_int_equal(map(1, 0x9000, 0x1000, 0x7000, RW), VIOMMU_S_OK);
    assert_int_equal(dma_sid(0, 0x180, 0x9000, &to), 0);
    /* Segments are not masked. */
    assert_int_equal(attach(1, 0x14321, 0), VIOMMU_S_NOENT);
    assert_int_equal(attach(1, 0x34321, 0), VIOMMU_S_NOENT);
    assert_int_equal(pvi_bridge_remove(pd, &bridge), 0);
    check_counters();
}

/* Ids that it doesn't have. */
static void unknown_ids(void **state)
{
    struct viommu_req_probe p = { .type = VIOMMU_T_PROBE, .endpoint = ID(7) };
    uint8_t *st;

    assert_int_equal(attach(1, ID(7), 0), VIOMMU_S_NOENT);
    assert_int_equal(pvi_bridge_add(pd, &bridge), 0);
    assert_int_equal(attach(1, ID(0x500), 0), VIOMMU_S_NOENT);
    assert_int_equal(attach(1, 7, 0), VIOMMU_S_NOENT);
    assert_int_equal(detach(1, ID(7)), VIOMMU_S_NOENT);
    st = post(&p, sizeof(p), 516);
    kick();
    assert_int_equal(*st, VIOMMU_S_OK);
    assert_int_equal(pd->nr_endpoints, 4); /* not made by that */
    p.endpoint = ID(0x500);
    st = post(&p, sizeof(p), 516);
    kick();
    assert_int_equal(*st, VIOMMU_S_NOENT);
    /* A refused ATTACH leaves nothing. */
    assert_int_equal(attach(PVI_MAX_CONTEXTS, ID(7), 0), VIOMMU_S_RANGE);
    assert_int_equal(pd->nr_endpoints, 4);
    assert_int_equal(pvi_bridge_remove(pd, &bridge), 0);
}

/* As many endpoints as a domain may have, and usable again afterwards. */
static void endpoint_limit(void **state)
{
    unsigned int i;

    map_line(0, 0, 0x77, 0x200, 0x800);
    assert_int_equal(pvi_bridge_add(pd, &bridge), 0);
    for ( i = 0; i < PVI_MAX_ENDPOINTS - 4; i++ )
        assert_int_equal(attach(1, ID(i), 0), VIOMMU_S_OK);
    assert_int_equal(attach(1, ID(i), 0), VIOMMU_S_NOMEM);
    assert_int_equal(detach(1, ID(0)), VIOMMU_S_OK);
    assert_int_equal(attach(1, ID(i), 0), VIOMMU_S_OK);
    /* A device reset sends them all back. */
    wr(0x70, 0);
    run_bare();
    assert_int_equal(pd->nr_endpoints, 4);
    all(0x200, 0x9ff, 0);
    assert_int_equal(pvi_bridge_remove(pd, &bridge), 0);
}

/* Two bridges that claim the same buses; lines that make no sense. */
static void bad_maps(void **state)
{
    struct dt_device_node twin = bridge;
    unsigned int i;
    uint64_t to;

    map_line(0, 0, 0x77, 0x200, 0x200);
    assert_int_equal(pvi_bridge_add(pd, &bridge), 0);
    twin.props[0].len = 16;
    assert_int_equal(pvi_bridge_add(pd, &twin), -EBUSY);
    assert_int_equal(dma_sid(0, 0x200, 0x5000, &to), 0);
    assert_int_equal(pvi_bridge_remove(pd, &bridge), 0);

    map_line(0, 0, 0x77, 0x200, 0);
    assert_int_equal(pvi_bridge_add(pd, &bridge), -EINVAL);
    map_line(0, 0, 0x77, 0xffffffff, 2);
    assert_int_equal(pvi_bridge_add(pd, &bridge), -EINVAL);
    map_line(0, 0, 0x77, 0xff00, 0x200);    /* beyond 16-bit StreamIDs */
    assert_int_equal(pvi_bridge_add(pd, &bridge), -ERANGE);
    map_line(0, 0, 0x79, 0x200, 0x200);     /* no such SMMU */
    assert_int_equal(pvi_bridge_add(pd, &bridge), -ENODEV);
    for ( i = 0; i < 9; i++ )
        map_line(i, i << 8, 0x77, 0x200 + (i << 8), 0x100);
    assert_int_equal(pvi_bridge_add(pd, &bridge), -E2BIG);
    bridge.props[0].len = 15;
    assert_int_equal(pvi_bridge_add(pd, &bridge), -EINVAL);
    bridge.props[0].len = 0;
    assert_int_equal(pvi_bridge_add(pd, &bridge), -ENODEV);

    /* The second line fails: the first is undone. */
    map_line(0, 0, 0x77, 0x200, 0x100);
    map_line(1, 0x100, 0x77, 0xff00, 0x200);
    assert_int_equal(pvi_bridge_add(pd, &bridge), -ERANGE);
    all(0x200, 0x2ff, NOBODY);
    assert_true(list_empty(&pd->bridges));
}

/* Faults of streams that are no endpoints are known by their requester id. */
static void fault(void **state)
{
    uint32_t epid = 0;

    assert_int_equal(pvi_bridge_add(pd, &bridge), 0);
    assert_ptr_equal(pvi_bridge_fault(smmu_by_node(&sw[0].node), 0x388, &epid),
                     pd);
    assert_int_equal(epid, ID(0x208));
    assert_null(pvi_bridge_fault(smmu_by_node(&sw[1].node), 0x388, &epid));
    assert_null(pvi_bridge_fault(smmu_by_node(&sw[0].node), 0x680, &epid));
    dom.refs = 0;
    assert_int_equal(pvi_bridge_remove(pd, &bridge), 0);
    assert_null(pvi_bridge_fault(smmu_by_node(&sw[0].node), 0x388, &epid));
}

/*
 * The bridge is taken away while a MAP for a device behind it is in progress,
 * and the guest keeps it from going on until its context is gone.
 */
static void removed_in_a_request(void **state)
{
    struct viommu_req_map r = map_req(1, 0x100000, 0x1000000, 0, RW);
    unsigned int refs = fake_refs;
    uint8_t *status;

    assert_int_equal(pvi_bridge_add(pd, &bridge), 0);
    assert_int_equal(attach(1, ID(0x208), 0), VIOMMU_S_OK);
    status = post(&r, sizeof(r), 4);
    wr(0x50, 0);
    fake_irqs_off = true;
    assert_true(pviommu_vcpu_work(&cpu));
    fake_irqs_off = false;
    assert_int_equal(*status, 0xee);
    wr(0x30, 0);
    wr(0x44, 0);
    assert_int_equal(pvi_bridge_remove(pd, &bridge), 0);
    run_bare();
    assert_int_equal(pd->nr_contexts, 0);
    queue_set(0, RINGS);
    wr(0x50, 0);
    run_bare();
    assert_int_equal(fake_refs, refs);
    wr(0x70, 0);
    run_bare();
}

/* One of two SMMUs hangs: on the other one the bridge's streams are cut off. */
static void cut_off(void **state)
{
    uint64_t to;

    assert_int_equal(pvi_bridge_add(pd, &bridge), 0);
    assert_int_equal(attach(1, 0x11, 0), VIOMMU_S_OK);
    assert_int_equal(map(1, 0x1000, 0x1000, 0x1000, RW), VIOMMU_S_OK);
    all(0x180, 0x67f, 0);
    sw[1].mode = SW_NEVER;
    post_unmap();
    wr(0x50, 0);
    run_bare();
    assert_true(pd->broken);
    fake_run_tasklets();
    all(0x180, 0x67f, NOBODY);
    assert_int_not_equal(dma_sid(0, 0x10, 0x5000, &to), 0);
}

/* A dead SMMU while a bridge is taken away: the domain is broken. */
static void fails_closed(void **state)
{
    assert_int_equal(pvi_bridge_add(pd, &bridge), 0);
    sw[0].mode = SW_NEVER;
    assert_int_equal(pvi_bridge_remove(pd, &bridge), -ETIMEDOUT);
    assert_true(pd->broken);
}

/* Probed SMMUs stay for ever. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "detect_leaks=0"; }

#define T(f) cmocka_unit_test_setup_teardown(f, setup_bridge, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(whole_bridge), T(tables_given_back), T(bus_limit), T(tables_kept), T(masked_ids), T(unknown_ids), T(endpoint_limit),
        T(bad_maps),
        T(fault), T(cut_off), T(removed_in_a_request), T(fails_closed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
