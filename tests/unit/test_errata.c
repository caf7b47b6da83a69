/* SPDX-License-Identifier: GPL-2.0-only */
/* Errata: who has them, and what the driver does about them. */

#include "unit.h"

unsigned int pvi_smmu_event(const struct smmu_event *ev) { (void)ev; return 0; }

static struct swsmmu sw;
static struct smmu_device *smmu;

static int setup(void **state)
{
    fake_init();
    INIT_LIST_HEAD(&smmu_devices);
    smmu_nr = 0;
    sw_init(&sw, "smmu");
    fake_now_step = 100;
    return 0;
}

static int teardown(void **state)
{
    no_violations(&sw);
    sw_exit(&sw);
    return 0;
}

static unsigned int flags_of(uint32_t iidr)
{
    unsigned int flags;

    setup(NULL);
    sw.iidr = iidr;
    assert_int_equal(smmu_probe(&sw.node), 0);
    flags = smmu_by_node(&sw.node)->flags;
    teardown(NULL);
    return flags & (SMMU_F_FORCE_SYNC | SMMU_F_PAGE0 | SMMU_F_CFGI_RANGE);
}

/* Product, variant, revision, implementer. */
#define IIDR(p, v, r, i) ((p) << 20 | (v) << 16 | (r) << 12 | (i))

static void who(void **state)
{
    assert_int_equal(flags_of(IIDR(0x487U, 0, 0, 0x43b)), SMMU_F_FORCE_SYNC);
    assert_int_equal(flags_of(IIDR(0x487U, 1, 1, 0x43b)), SMMU_F_FORCE_SYNC);
    assert_int_equal(flags_of(IIDR(0x487U, 15, 15, 0x43b)), SMMU_F_FORCE_SYNC);
    assert_int_equal(flags_of(IIDR(0x483U, 0, 0, 0x43b)), 0);
    assert_int_equal(flags_of(IIDR(0x487U, 0, 0, 0x736)), 0);
    assert_int_equal(flags_of(0), SMMU_F_CFGI_RANGE);
    setup(NULL);
}

/* As many commands as one likes, and no more than 64 without a sync. */
static void force_sync(void **state)
{
    struct smmu_batch b;
    unsigned int i;

    sw.iidr = IIDR(0x487U, 0, 1, 0x43b);
    sw.max_unsynced = 63;
    assert_int_equal(smmu_probe(&sw.node), 0);
    assert_true(fake_logged("erratum Arm MMU-700 2812531"));
    smmu = smmu_by_node(&sw.node);
    assert_int_equal(smmu->cmdq.batch, 63);

    smmu_batch_init(&b, smmu);
    assert_int_equal(smmu_tlbi_range(&b, 5, 0, 1000 * 4096UL - 1, true, 3), 0);
    assert_int_equal(smmu_batch_sync(&b), 0);
    assert_int_equal(sw_count(&sw, CMD_OP_TLBI_S2_IPA), 1000);
    /* The probe's, 15 in between, and the last; they are counted. */
    assert_int_equal(sw.nr_syncs, 1 + 15 + 1);
    assert_int_equal(b.syncs, 16);
    assert_int_equal(atomic_read(&smmu->stats.sync), sw.nr_syncs);

    /* Some CPUs' batches together are more: each has its own sync. */
    for ( i = 0; i < 200; i++ )
    {
        assert_int_equal(smmu_tlbi_vmid(&b, i), 0);
        if ( i % 50 == 49 )
            assert_int_equal(smmu_batch_sync(&b), 0);
    }
}

/* A sync on the way that doesn't come is an error of the batch. */
static void force_sync_fails(void **state)
{
    struct smmu_batch b;

    sw.iidr = IIDR(0x487U, 0, 1, 0x43b);
    assert_int_equal(smmu_probe(&sw.node), 0);
    sw.mode = SW_NEVER;
    fake_now_step = MILLISECS(1);
    smmu_batch_init(&b, smmu_by_node(&sw.node));
    assert_int_equal(smmu_tlbi_range(&b, 5, 0, 100 * 4096UL - 1, true, 3),
                     -ETIMEDOUT);
}

/* Without the erratum: one sync. */
static void no_force_sync(void **state)
{
    struct smmu_batch b;

    assert_int_equal(smmu_probe(&sw.node), 0);
    smmu_batch_init(&b, smmu_by_node(&sw.node));
    assert_int_equal(smmu_tlbi_range(&b, 5, 0, 1000 * 4096UL - 1, true, 3), 0);
    assert_int_equal(smmu_batch_sync(&b), 0);
    assert_int_equal(sw.nr_syncs, 2);
}

/* Page 1 is not touched, and need not exist. */
static void page0(void **state)
{
    paddr_t pa;

    sw.page0_only = true;
    sw.node.reg_size = 0x10000;
    sw.node.props[1].name = "cavium,cn9900-broken-page1-regspace";
    sw.node.props[1].value = "";
    assert_int_equal(smmu_probe(&sw.node), 0);
    smmu = smmu_by_node(&sw.node);
    assert_ptr_equal(smmu->page1, smmu->base);
    sw_dma(&sw, 5, 0x1000, false, &pa);
    sw_run_irqs(&sw);
    fake_run_tasklets();
    assert_int_equal(atomic_read(&smmu->stats.events), 1);
    assert_int_equal(sw.evtq_cons, sw.evtq_prod);
}

/* A stream is switched without the command that may not have an effect. */
static unsigned int switched(uint32_t iidr)
{
    struct smmu_s2_cfg cfg = { .t0sz = 64 - 39, .sl0 = 1, .ps = 5, .vmid = 7 };
    void *p = alloc_xenheap_pages(0, 0);
    unsigned int n = 0;
    paddr_t pa;
    int rc;

    memset(p, 0, PAGE_SIZE);
    *(uint64_t *)p = 0x40000000 | 0x7fd;    /* 1 GiB */
    cfg.ttb = virt_to_maddr(p);
    sw.iidr = iidr;
    sw.deaf = CMD_OP_CFGI_STE;
    assert_int_equal(smmu_probe(&sw.node), 0);
    smmu = smmu_by_node(&sw.node);
    assert_int_equal(smmu_strtab_reserve(smmu, 0x31, &n), 0);
    assert_int_equal(smmu_ste_s2(smmu, 0x31, &cfg, &n), 0);
    assert_int_equal(sw_dma(&sw, 0x31, 0x5000, true, &pa), 0);
    assert_int_equal(smmu_ste_invalid(smmu, 0x31, &n), 0);
    rc = sw_dma(&sw, 0x31, 0x5000, true, &pa);
    sw.violations = 0;                      /* free memory is mapped */
    return rc;
}

static void cfgi_range(void **state)
{
    assert_int_equal(switched(0), EVT_C_BAD_STE);
    assert_int_equal(sw_count(&sw, CMD_OP_CFGI_STE), 0);
    teardown(NULL);
    setup(NULL);
    /* The control. */
    assert_int_equal(switched(IIDR(0x483U, 2, 0, 0x43b)), 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(who), T(force_sync), T(force_sync_fails), T(no_force_sync), T(page0),
        T(cfgi_range),
    };

    return cmocka_run_group_tests_name("errata", tests, NULL, NULL);
}

const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "detect_leaks=0"; }
