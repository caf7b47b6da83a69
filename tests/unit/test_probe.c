/* SPDX-License-Identifier: GPL-2.0-only */
/* Taking over an SMMU: what is refused, and that nothing ever passes. */

#include "unit.h"

unsigned int pvi_smmu_event(const struct smmu_event *ev) { (void)ev; return 0; }

static struct swsmmu sw;

static int setup(void **state)
{
    fake_init();
    INIT_LIST_HEAD(&smmu_devices);
    smmu_nr = 0;
    sw_init(&sw, "smmu");
    fake_now_step = MICROSECS(10);
    return 0;
}

static struct smmu_device *dev(void)
{
    return smmu_by_node(&sw.node);
}

static int teardown(void **state)
{
    struct smmu_device *d = dev();

    no_violations(&sw);
    if ( d )
    {
        xfree(d->cmdq.phase);
        xfree(d->vmids);
        xfree(d->strtab.shared);
        list_del(&d->list);
        xfree(d);
    }
    sw_exit(&sw);
    return 0;
}

static bool blocked(void)
{
    paddr_t pa;

    return sw_dma(&sw, 0, 0x1000, false, &pa) != 0;
}

static void good(void **state)
{
    assert_int_equal(smmu_probe(&sw.node), 0);
    assert_non_null(dev());
    assert_int_equal(smmu_nr, 1);
    assert_int_equal(sw.cr0ack, 0xd);
    assert_int_equal(sw.irq_ctrlack, 5);
    assert_true(sw.gbpa_now & GBPA_ABORT);
    assert_int_equal(sw.cr2 & 6, 6);        /* PTM, RECINVSID */
    assert_int_equal(sw_count(&sw, CMD_OP_CFGI_ALL), 1);
    assert_int_equal(sw_count(&sw, CMD_OP_TLBI_NSNH_ALL), 1);
    assert_int_equal(sw.nr_syncs, 1);
    assert_true(blocked());
    assert_true(fake_logged("16-bit StreamIDs, 16-bit VMIDs, 48-bit"));
    /* VMID 0 is taken by the blocked context. */
    assert_int_equal(smmu_vmid_alloc(dev()), 1);

    smmu_shutdown(dev());
    assert_int_equal(sw.cr0ack, 0);
    assert_true(blocked());
    assert_false(fake_logged("could not be blocked"));
}

/* Acknowledges take a while. */
static void slow(void **state)
{
    sw.ack_delay = 50;
    assert_int_equal(smmu_probe(&sw.node), 0);
    assert_int_equal(sw.cr0ack, 0xd);
}

/* What the tree names decides how far the stream table goes. */
static void large_sids(void **state)
{
    static struct dt_device_node nodes[3];
    static __be32 map[8], iommus[4];

    sw.idr1 = (sw.idr1 & ~0x3fU) | 32;
    sw.node.phandle = 0x77;
    sw.node.allnext = &nodes[0];
    nodes[0].allnext = &nodes[1];
    nodes[1].allnext = &nodes[2];
    nodes[2].phandle = 0x78;
    dt_host = &sw.node;

    assert_int_equal(smmu_tree_last_sid(&sw.node), 0);
    /* A bus with a map of two lines, the first for somebody else. */
    map[1] = cpu_to_be32(0x78);
    map[2] = cpu_to_be32(0x80000000);
    map[3] = cpu_to_be32(0x10000);
    map[5] = cpu_to_be32(0x77);
    map[6] = cpu_to_be32(0x120000);
    map[7] = cpu_to_be32(0x10000);
    nodes[0].props[0] = (struct fake_prop){ "iommu-map", map, sizeof(map) };
    assert_int_equal(smmu_tree_last_sid(&sw.node), 0x12ffff);
    assert_int_equal(smmu_tree_last_sid(&nodes[2]), 0x8000ffff);
    /* The last one there is, and one that wraps. */
    map[6] = cpu_to_be32(0xffff0000);
    assert_int_equal(smmu_tree_last_sid(&sw.node), 0xffffffff);
    map[7] = cpu_to_be32(0x10001);
    assert_int_equal(smmu_tree_last_sid(&sw.node), 0);
    /* A device with two. */
    iommus[0] = iommus[2] = cpu_to_be32(0x77);
    iommus[1] = cpu_to_be32(0x2345678);
    iommus[3] = cpu_to_be32(5);
    nodes[1].props[0] = (struct fake_prop){ "iommus", iommus, sizeof(iommus) };
    assert_int_equal(smmu_tree_last_sid(&sw.node), 0x2345678);

    assert_int_equal(smmu_probe(&sw.node), 0);
    assert_int_equal(dev()->sid_bits, 26);
    assert_true(fake_logged("smmu: 26-bit StreamIDs (of 32)"));
}

static void two(void **state)
{
    static struct swsmmu other;

    sw_init(&other, "smmu2");
    assert_int_equal(smmu_probe(&sw.node), 0);
    assert_int_equal(smmu_probe(&other.node), 0);
    assert_int_equal(smmu_nr, 2);
    assert_int_equal(smmu_by_node(&other.node)->index, 1);
    assert_null(smmu_by_node(&(struct dt_device_node){ 0 }));
    no_violations(&other);
    list_del(&smmu_by_node(&other.node)->list);
    sw_exit(&other);
}

/* Capabilities that become limits. */
static void limits(void **state)
{
    sw.idr0 &= ~(1U << 18);             /* 8-bit VMIDs */
    sw.idr5 = 2 | 1 << 4;               /* 40 bits */
    sw.idr3 |= 1 << 10;
    assert_int_equal(smmu_probe(&sw.node), 0);
    assert_int_equal(dev()->vmid_bits, 8);
    assert_int_equal(dev()->oas, 40);
    assert_true(dev()->flags & SMMU_F_RIL);
    assert_true(dev()->flags & SMMU_F_COHERENT);
}

static void sizes_of_addresses(void **state)
{
    static const unsigned int bits[] = { 32, 36, 40, 42, 44, 48, 48, 48 };
    unsigned int i;

    for ( i = 0; i < 8; i++ )
    {
        setup(NULL);
        sw.idr5 = i | 1 << 4;
        assert_int_equal(smmu_probe(&sw.node), 0);
        assert_int_equal(dev()->oas, bits[i]);
        teardown(NULL);
    }
    setup(NULL);
}

static void noncoherent(void **state)
{
    sw.noncoherent = true;
    sw.idr0 &= ~(1U << 4);
    sw.node.props[0].name = NULL;
    assert_int_equal(smmu_probe(&sw.node), 0);
    assert_false(dev()->flags & SMMU_F_COHERENT);
    assert_false(fake_logged("differs"));
}

/* Tree and register disagree: the tree counts, and it is said. */
static void disagree(void **state)
{
    sw.node.props[0].name = NULL;
    assert_int_equal(smmu_probe(&sw.node), 0);
    assert_false(dev()->flags & SMMU_F_COHERENT);
    assert_true(fake_logged("differs"));
}

/* What firmware left: enabled, queues running, bypass, errors pending. */
static void takeover(void **state)
{
    void *firmware = alloc_xenheap_pages(2, 0);
    unsigned int delay;

    memset(firmware, 0, 4 * PAGE_SIZE);
    for ( delay = 0; delay < 30; delay += 7 )
    {
        setup(NULL);
        firmware = alloc_xenheap_pages(2, 0);
        memset(firmware, 0, 4 * PAGE_SIZE);
        sw.ack_delay = delay;
        sw.cr2 = 4;
        sw.strtab_base = virt_to_maddr(firmware);
        sw.strtab_cfg = 5;
        sw.cmdq_base = virt_to_maddr(firmware) | 5;
        sw.cmdq_prod = sw.cmdq_cons = 3;
        sw.evtq_base = virt_to_maddr(firmware) | 5;
        sw.gerror = 0x105;
        sw.gerrorn = 0x004;
        sw_enable(&sw, 0xd);
        sw.irq_ctrl = sw.irq_ctrlack = 7;
        sw.was_blocked = true;          /* from now on nothing may pass */
        assert_int_equal(smmu_probe(&sw.node), 0);
        assert_true(fake_logged("firmware left it on, its queues running, an "
                                "error pending (CR0 0xd GBPA 0 GERROR 0x101)"));
        assert_int_equal(sw.gerror, sw.gerrorn);
        assert_int_equal(sw.cr0ack, 0xd);
        teardown(NULL);
    }
    /* Off and in bypass. */
    setup(NULL);
    assert_true(sw_bypasses(&sw));
    assert_int_equal(smmu_probe(&sw.node), 0);
    assert_true(fake_logged("left it off, DMA passing (CR0 0 GBPA 0"));
    assert_true(sw.was_blocked);
}

static void refused(const char *why)
{
    assert_int_equal(smmu_probe(&sw.node), -ENODEV);
    assert_null(dev());
    assert_int_equal(smmu_nr, 0);
    assert_true(sw.gbpa_now & GBPA_ABORT);
    assert_int_equal(sw.cr0ack, 0);
    assert_true(blocked());
    if ( !fake_logged(why) )
        fail_msg("no '%s' in: %s", why, fake_log());
}

static void no_stage2(void **state)
{
    sw.idr0 &= ~1U;
    refused("no stage-2 translation (IDR0 0x");
}

static void no_aarch64(void **state)
{
    sw.idr0 = (sw.idr0 & ~(3U << 2)) | 1 << 2;
    refused("no AArch64 translation tables (IDR0 0x");
}

static void always_stalls(void **state)
{
    sw.idr0 = (sw.idr0 & ~(3U << 24)) | 2U << 24;
    refused("faults always stall (IDR0 0x");
}

static void no_4k(void **state)
{
    sw.idr5 &= ~(1U << 4);
    refused("no 4K granule (IDR5 0x");
}

static void preset_tables(void **state)
{
    sw.idr1 |= 1U << 30;
    refused("fixed addresses (IDR1 0x");
}

static void preset_queues(void **state)
{
    sw.idr1 |= 1U << 29;
    refused("fixed addresses (IDR1 0x");
}

static void small_cmdq(void **state)
{
    sw.idr1 = (sw.idr1 & ~(31U << 21)) | 2 << 21;
    refused("IDR1.CMDQS");
}

static void small_evtq(void **state)
{
    sw.idr1 = (sw.idr1 & ~(31U << 16)) | 4 << 16;
    refused("IDR1.EVENTQS");
}

static void self_check_hangs(void **state)
{
    sw.mode = SW_NEVER;
    refused("fails its self-check");
}

static int ill(struct swsmmu *s, const struct sw_cmd *c, unsigned int n)
{
    return SW_ILL;
}

static void self_check_ill(void **state)
{
    sw.inject = ill;
    refused("fails its self-check (GERROR 0x");
}

static int sfm(struct swsmmu *s, const struct sw_cmd *c, unsigned int n)
{
    if ( n == 1 )
        sw_gerror(s, 1U << 8);
    return SW_OK;
}

static void self_check_gerror(void **state)
{
    sw.inject = sfm;
    refused("fails its self-check (GERROR 0x00000100");
}

static void cr0_stuck(void **state)
{
    sw.cr0_stuck = true;
    assert_int_equal(smmu_probe(&sw.node), -ENODEV);
    assert_true(fake_logged("register CR0ACK (0x24) is 0"));
    assert_true(blocked());
    assert_null(dev());
    /* Giving up, it tries to shut it down while CR0ACK never followed. */
    sw.violations = 0;
}

static void gbpa_stuck(void **state)
{
    sw.gbpa_stuck = true;
    assert_int_equal(smmu_probe(&sw.node), -ENODEV);
    assert_true(fake_logged("register GBPA (0x44) is"));
    assert_true(fake_logged("DMA could not be blocked"));
    assert_null(dev());
    /* Translation wasn't touched: turning it off would have opened it. */
    assert_int_equal(sw.cr0, 0);
}

static void gbpa_stuck_enabled(void **state)
{
    void *firmware = alloc_xenheap_pages(2, 0);

    memset(firmware, 0, 4 * PAGE_SIZE);
    sw.strtab_base = virt_to_maddr(firmware);
    sw.strtab_cfg = 5;
    sw.cr2 = 4;
    sw_enable(&sw, 1);
    sw.gbpa_stuck = true;
    assert_int_equal(smmu_probe(&sw.node), -ENODEV);
    assert_int_equal(sw.cr0ack, 1);
}

static void irq_ctrl_stuck(void **state)
{
    sw.irq_stuck = true;
    assert_int_equal(smmu_probe(&sw.node), -ENODEV);
    assert_true(blocked());
    assert_null(dev());
}

static void combined_irq(void **state)
{
    sw.node.irq_names[0] = "priq";
    sw.node.irq_names[1] = "combined";
    assert_int_equal(smmu_probe(&sw.node), 0);
    assert_int_equal(dev()->irq_evtq, 41);
    assert_int_equal(dev()->irq_gerror, 41);
}

/* The line is Xen's other SMMU's too, and both of one have the same. */
static void shared_lines(void **state)
{
    static struct swsmmu other;

    sw_init(&other, "smmu2");
    other.node.irqs[1] = 40;
    assert_int_equal(smmu_probe(&sw.node), 0);
    assert_int_equal(smmu_probe(&other.node), 0);
    assert_false(fake_logged("polled"));
    sw_gerror(&sw, 1U << 2);
    sw_gerror(&other, 1U << 2);
    fake_irq(40);
    assert_int_equal(other.gerror, other.gerrorn);
    fake_irq(41);
    assert_int_equal(sw.gerror, sw.gerrorn);
    no_violations(&other);
    list_del(&smmu_by_node(&other.node)->list);
    sw_exit(&other);
}

/* Nothing calls: it is looked at, and IRQ_CTRL stays off. */
static void polled(const char *why, uint32_t irqs)
{
    paddr_t pa;

    assert_int_equal(smmu_probe(&sw.node), 0);
    if ( !fake_logged(why) )
        fail_msg("no '%s' in: %s", why, fake_log());
    assert_int_equal(sw.irq_ctrlack, irqs);
    sw_gerror(&sw, 1U << 2);
    sw_dma(&sw, 5, 0x1000, false, &pa);
    fake_advance(SMMU_POLL_PERIOD);
    assert_int_equal(sw.gerror, sw.gerrorn);
    fake_run_tasklets();
    assert_int_equal(atomic_read(&dev()->stats.events), 1);
    /* And again. */
    sw_dma(&sw, 5, 0x1000, false, &pa);
    fake_advance(SMMU_POLL_PERIOD);
    fake_run_tasklets();
    assert_int_equal(atomic_read(&dev()->stats.events), 2);
}

static void no_irq(void **state)
{
    sw.node.irq_names[0] = "priq";
    sw.node.irq_names[1] = "other";
    polled("no wired interrupt for events errors: polled every 20 ms", 0);
}

static void no_gerror_irq(void **state)
{
    sw.node.irq_names[1] = "other";
    polled("no wired interrupt for errors: polled", 4);
}

static void irq_refused(void **state)
{
    fake_request_irq_error = -EBUSY;
    polled("interrupt 40 (eventq) refused (-16)", 0);
}

/* Where firmware had its interrupts written to. */
static void msis_left(void **state)
{
    paddr_t pa;

    sw.idr0 |= 1U << 16;                /* PRI */
    sw.gerror_msi = sw.evtq_msi = sw.priq_msi = 0x8080040;
    sw.irq_ctrl = sw.irq_ctrlack = 7;
    assert_int_equal(smmu_probe(&sw.node), 0);
    assert_int_equal(sw.gerror_msi | sw.evtq_msi | sw.priq_msi, 0);
    sw_gerror(&sw, 1U << 2);
    sw_dma(&sw, 5, 0x1000, false, &pa);
    sw_run_irqs(&sw);
    fake_run_tasklets();
}

static void no_msis(void **state)
{
    sw.idr0 &= ~(1U << 13);
    assert_int_equal(smmu_probe(&sw.node), 0);
    assert_false(dev()->flags & SMMU_F_MSI);
    assert_null(dev()->cmdq.word);
}

/* A bus says it for what is on it, unless the node says the contrary. */
static void coherent_bus(void **state)
{
    static struct dt_device_node bus = {
        .name = "soc", .props = { { .name = "dma-coherent", .value = "" } } };

    sw.node.props[0].name = NULL;
    sw.node.parent = &bus;
    assert_int_equal(smmu_probe(&sw.node), 0);
    assert_true(dev()->flags & SMMU_F_COHERENT);
    teardown(NULL);

    setup(NULL);
    sw.noncoherent = true;
    sw.idr0 &= ~(1U << 4);
    sw.node.props[0].name = "dma-noncoherent";
    sw.node.parent = &bus;
    assert_int_equal(smmu_probe(&sw.node), 0);
    assert_false(dev()->flags & (SMMU_F_COHERENT | SMMU_F_MSI));
}

static void big_endian(void **state)
{
    sw.idr0 |= 3U << 21;
    refused("big endian tables only (IDR0 0x");
}

static void no_registers(void **state)
{
    sw.node.reg_size = 0;
    assert_int_equal(smmu_probe(&sw.node), -EINVAL);
    sw.node.reg_size = 0x10000;
    assert_int_equal(smmu_probe(&sw.node), -ENODEV);
    assert_true(fake_logged("fewer than 2 pages"));
}

/* Each allocation fails once: an error, and it stays blocked. */
static void no_memory(void **state)
{
    unsigned int i;
    int rc;

    for ( i = 1; ; i++ )
    {
        setup(NULL);
        sw_enable(&sw, 0);
        fake_alloc_fail = i;
        rc = smmu_probe(&sw.node);
        if ( !rc )
            break;
        assert_int_equal(rc, -ENOMEM);
        assert_null(dev());
        /* Later than the mapping of the registers. */
        if ( i > 3 )
            assert_true(blocked());
        teardown(NULL);
    }
    assert_true(i > 6);
}

/* After every register write: nothing passes once GBPA aborts. */
static unsigned int looks;
static void look(struct swsmmu *s)
{
    looks++;
    if ( s->was_blocked )
        assert_false(sw_bypasses(s));
}

static void at_all_times(void **state)
{
    sw.hook = look;
    sw.ack_delay = 3;
    assert_int_equal(smmu_probe(&sw.node), 0);
    smmu_shutdown(dev());
    assert_true(looks > 15);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(good), T(slow), T(large_sids), T(two), T(limits), T(sizes_of_addresses),
        T(noncoherent), T(disagree), T(takeover), T(no_stage2),
        T(no_aarch64), T(always_stalls), T(no_4k), T(preset_tables),
        T(preset_queues), T(small_cmdq), T(small_evtq), T(self_check_hangs),
        T(self_check_ill), T(self_check_gerror), T(cr0_stuck), T(gbpa_stuck),
        T(gbpa_stuck_enabled), T(irq_ctrl_stuck), T(combined_irq), T(no_irq),
        T(no_gerror_irq), T(irq_refused), T(shared_lines), T(msis_left),
        T(no_msis), T(coherent_bus), T(big_endian), T(no_registers), T(no_memory), T(at_all_times),
    };

    return cmocka_run_group_tests_name("probe", tests, NULL, NULL);
}

/* A refused SMMU keeps its memory on purpose, see smmu_probe(). */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "detect_leaks=0"; }
