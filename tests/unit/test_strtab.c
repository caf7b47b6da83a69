/* SPDX-License-Identifier: GPL-2.0-only */
/* The stream table: both forms, and what is reachable after every step. */

#include "unit.h"

unsigned int pvi_smmu_event(const struct smmu_event *ev) { (void)ev; return 0; }

static struct swsmmu sw;
static struct smmu_device *smmu;
static uint32_t sid;
static unsigned int syncs;

/* What the stream may reach now: the entries before and after, or nothing. */
static struct smmu_s2_cfg may[2];
static unsigned int nr_may, exposures, hooks;

static void look(const uint64_t *ste, void *arg)
{
    char why[128];
    unsigned int i;

    if ( !sw_ste_check(&sw, ste, why) )
    {
        exposures++;
        print_error("entry the SMMU may use: %s\n", why);
        return;
    }
    for ( i = 0; i < nr_may; i++ )
        if ( (ste[3] & STE3_S2TTB_MASK) == may[i].ttb &&
             (ste[2] & 0xffff) == may[i].vmid &&
             (ste[2] >> 32 & 0x3f) == may[i].t0sz &&
             (ste[2] >> 38 & 3) == may[i].sl0 )
            return;
    exposures++;
    print_error("neither old nor new: %#lx %#lx %#lx %#lx\n", ste[0], ste[1],
                ste[2], ste[3]);
}

/* After each store, cache clean, command and register write. */
static void hook(struct swsmmu *s)
{
    hooks++;
    sw_ste_observe(s, sid);
    sw_ste_each(s, sid, look, NULL);
}

static void make_up_to(unsigned int bits, bool two_level, bool coherent,
                       uint32_t last)
{
    fake_init();
    sw_init(&sw, "smmu");
    sw.idr1 = (sw.idr1 & ~0x3fU) | bits;
    if ( !two_level )
        sw.idr0 &= ~(3U << 27);
    sw.noncoherent = !coherent;
    sw.at_sync = true;
    smmu = dev_new(&sw);
    assert_int_equal(smmu_strtab_init(smmu, two_level, last), 0);
    /* The checks of an enabled table, and the driver's own setting of CR2. */
    fake_writel(6, smmu->base + SMMU_CR2);
    fake_writel(9, smmu->base + SMMU_CR0);
    assert_int_equal(fake_readl(smmu->base + SMMU_CR0ACK), 9);
    nr_may = exposures = hooks = syncs = 0;
}

static void make(unsigned int bits, bool two_level, bool coherent)
{
    make_up_to(bits, two_level, coherent, 0);
}

static int setup_2lvl(void **state) { make(16, true, true); return 0; }
static int setup_linear(void **state) { make(8, true, true); return 0; }
static int setup_noncoh(void **state) { make(16, true, false); return 0; }
/* 27 bits of 32: tables of 1024 entries. */
static int setup_large(void **state)
{
    make_up_to(32, true, true, 0x4000123);
    return 0;
}

static int teardown(void **state)
{
    assert_int_equal(exposures, 0);
    no_violations(&sw);
    assert_int_equal(fake_locks, 0);
    sw_exit(&sw);
    dev_free(smmu);
    return 0;
}

static paddr_t table(void)
{
    void *p = alloc_xenheap_pages(0, 0);

    memset(p, 0, PAGE_SIZE);
    clean_dcache_va_range(p, PAGE_SIZE);
    return virt_to_maddr(p);
}

/* Maps IOVA 0x1000 to @pa with 39 bits from level 1. */
static struct smmu_s2_cfg context(unsigned int vmid, paddr_t pa)
{
    paddr_t l1 = table(), l2 = table(), l3 = table();

    *(uint64_t *)maddr_to_virt(l1) = l2 | 3;
    *(uint64_t *)maddr_to_virt(l2) = l3 | 3;
    ((uint64_t *)maddr_to_virt(l3))[1] = pa | 0x7ff;
    clean_dcache_va_range(maddr_to_virt(l1), 8);
    clean_dcache_va_range(maddr_to_virt(l2), 8);
    clean_dcache_va_range(maddr_to_virt(l3), 16);

    return (struct smmu_s2_cfg){ .ttb = l1, .vmid = vmid, .t0sz = 64 - 39,
                                 .sl0 = 1, .ps = 5 };
}

static void expect(unsigned int n, struct smmu_s2_cfg a, struct smmu_s2_cfg b)
{
    may[0] = a;
    may[1] = b;
    nr_may = n;
}

#define NONE ((struct smmu_s2_cfg){ 0 })

static void life(uint32_t id)
{
    paddr_t p1 = table(), p2 = table(), pa;
    /* Fresh VMIDs each time: nobody has invalidated the former ones. */
    static unsigned int vmid;
    struct smmu_s2_cfg a = context(++vmid, p1), b = context(++vmid, p2);
    unsigned int before;

    sid = id;
    assert_int_equal(smmu_strtab_reserve(smmu, sid, &syncs), 0);
    assert_int_equal(sw_dma(&sw, sid, 0x1000, false, &pa), 4);
    sw.hook = hook;

    expect(1, a, NONE);
    assert_int_equal(smmu_ste_s2(smmu, sid, &a, &syncs), 0);
    assert_int_equal(sw_dma(&sw, sid, 0x1234, true, &pa), 0);
    assert_int_equal(pa, p1 + 0x234);
    assert_int_equal(sw_dma(&sw, sid, 0x2000, true, &pa), 0x10);

    /* The same again: nothing to do. */
    before = sw.nr_log;
    assert_int_equal(smmu_ste_s2(smmu, sid, &a, &syncs), 0);
    assert_int_equal(sw.nr_log, before);

    /* Whether its faults are recorded is all that changes. */
    hook(&sw);
    assert_int_equal(smmu_ste_record(smmu, sid, false, &syncs), 0);
    hook(&sw);
    before = sw.nr_log;
    assert_int_equal(smmu_ste_record(smmu, sid, false, &syncs), 0);
    assert_int_equal(sw.nr_log, before);
    assert_int_equal(sw_dma(&sw, sid, 0x1234, true, &pa), 0);
    assert_int_equal(pa, p1 + 0x234);
    assert_int_equal(smmu_ste_record(smmu, sid, true, &syncs), 0);
    hook(&sw);

    /* From one live entry to another. */
    expect(2, a, b);
    assert_int_equal(smmu_ste_s2(smmu, sid, &b, &syncs), 0);
    expect(1, b, NONE);
    hook(&sw);
    assert_int_equal(sw_dma(&sw, sid, 0x1000, true, &pa), 0);
    assert_int_equal(pa, p2);

    /* The VMID alone. */
    a = b;
    a.vmid = ++vmid;
    expect(2, a, b);
    assert_int_equal(smmu_ste_s2(smmu, sid, &a, &syncs), 0);
    expect(1, a, NONE);
    hook(&sw);

    assert_int_equal(smmu_ste_abort(smmu, sid, &syncs), 0);
    expect(0, NONE, NONE);
    hook(&sw);
    assert_int_equal(sw_dma(&sw, sid, 0x1000, true, &pa), -1);

    expect(1, b, NONE);
    assert_int_equal(smmu_ste_s2(smmu, sid, &b, &syncs), 0);
    assert_int_equal(smmu_ste_invalid(smmu, sid, &syncs), 0);
    expect(0, NONE, NONE);
    hook(&sw);
    assert_int_equal(sw_dma(&sw, sid, 0x1000, true, &pa), 4);
    assert_int_equal(smmu_ste_record(smmu, sid, false, &syncs), 0);
    hook(&sw);
    assert_int_equal(sw_dma(&sw, sid, 0x1000, true, &pa), -1);
    assert_int_equal(smmu_ste_record(smmu, sid, true, &syncs), 0);
    hook(&sw);
    assert_int_equal(sw_dma(&sw, sid, 0x1000, true, &pa), 4);

    assert_int_equal(syncs, sw.nr_syncs);
    assert_true(hooks > 50);
    sw.hook = NULL;
}

static void life_2lvl(void **state)
{
    assert_true(smmu->strtab.two_level);
    life(0);
    syncs = sw.nr_syncs = 0;
    life(0x1ff);
    syncs = sw.nr_syncs = 0;
    life(0xffff);
    /* A stream of a bus that nobody reserved is blocked. */
    assert_int_equal(sw_dma(&sw, 0x8000, 0x1000, false, &(paddr_t){ 0 }), 2);
}

static void life_large(void **state)
{
    assert_int_equal(smmu->sid_bits, 27);
    assert_int_equal(smmu->strtab.split, 10);
    life(0x3ff);
    syncs = sw.nr_syncs = 0;
    life(0x4000123);
    syncs = sw.nr_syncs = 0;
    life(0x7ffffff);
    /* Beyond the table, though the SMMU has ids for it: blocked. */
    assert_int_equal(sw_dma(&sw, 0x8000000, 0x1000, false, &(paddr_t){ 0 }), 2);
    assert_int_equal(smmu_strtab_reserve(smmu, 0x8000000, &syncs), -ERANGE);
}

/* Whole tables and parts of one, as a bridge for a guest has them. */
static void fill_large(void **state)
{
    struct smmu_s2_cfg a = context(1, table());
    uint64_t *l2 = smmu_l2_alloc(smmu);
    unsigned int i;
    paddr_t pa;
    static const struct { uint32_t sid; int rc; } c[] = {
        { 0x40000ff, 4 }, { 0x4000100, 0 }, { 0x40003ff, 0 }, { 0x4000400, 0 },
        { 0x4000bff, 0 }, { 0x4000c00, 0 }, { 0x4000c0f, 0 }, { 0x4000c10, 4 },
    };

    assert_int_equal(smmu_strtab_fill(smmu, 0x4000100, 0xb10, &a, NULL, l2,
                                      &syncs), 0);
    for ( i = 0; i < ARRAY_SIZE(c); i++ )
        assert_int_equal(sw_dma(&sw, c[i].sid, 0x1000, false, &pa), c[i].rc);
    assert_int_equal(smmu_strtab_fill(smmu, 0x4000100, 0xb10, NULL, l2, NULL,
                                      &syncs), 0);
    smmu_l2_free(smmu, l2);
    for ( i = 0; i < ARRAY_SIZE(c); i++ )
        assert_true(sw_dma(&sw, c[i].sid, 0x1000, false, &pa) != 0);
    assert_int_equal(smmu_strtab_fill(smmu, 0x7fff800, 0x801, &a, NULL, l2,
                                      &syncs), -ERANGE);
}

static void life_linear(void **state)
{
    assert_false(smmu->strtab.two_level);
    life(0);
    syncs = sw.nr_syncs = 0;
    life(255);
}

/* The neighbours of a stream don't change. */
static void neighbours(void **state)
{
    struct smmu_s2_cfg a = context(1, table());
    paddr_t pa;

    sid = 0x10;
    assert_int_equal(smmu_strtab_reserve(smmu, 0x10, &syncs), 0);
    assert_int_equal(smmu_ste_s2(smmu, 0x10, &a, &syncs), 0);
    assert_int_equal(sw_dma(&sw, 0x0f, 0x1000, false, &pa), 4);
    assert_int_equal(sw_dma(&sw, 0x11, 0x1000, false, &pa), 4);
    assert_int_equal(sw_dma(&sw, 0x10, 0x1000, false, &pa), 0);
}

static void range_checks(void **state)
{
    unsigned long used = fake_pages_used;

    assert_int_equal(smmu_strtab_reserve(smmu, 1U << smmu->sid_bits, &syncs), -ERANGE);
    assert_int_equal(smmu_strtab_reserve(smmu, ~0U, &syncs), -ERANGE);
    assert_int_equal(fake_pages_used, used);
    assert_int_equal(smmu_strtab_reserve(smmu, (1U << smmu->sid_bits) - 1, &syncs), 0);
    used = fake_pages_used;
    assert_int_equal(smmu_strtab_reserve(smmu, (1U << smmu->sid_bits) - 2, &syncs), 0);
    assert_int_equal(fake_pages_used, used);
}

static void no_memory(void **state)
{
    fake_alloc_fail = 1;
    assert_int_equal(smmu_strtab_reserve(smmu, 0x300, &syncs), -ENOMEM);
    assert_int_equal(sw_dma(&sw, 0x300, 0, false, &(paddr_t){ 0 }), 2);
    assert_int_equal(smmu_strtab_reserve(smmu, 0x300, &syncs), 0);
    assert_int_equal(sw_dma(&sw, 0x300, 0, false, &(paddr_t){ 0 }), 4);
}

/* A sync that doesn't come: reported, and never a further step is made. */
static void times_out(void **state)
{
    struct smmu_s2_cfg a = context(1, table());
    const uint64_t *ste;

    sid = 5;
    assert_int_equal(smmu_strtab_reserve(smmu, sid, &syncs), 0);
    sw.mode = SW_NEVER;
    fake_now_step = MILLISECS(1);
    assert_int_equal(smmu_ste_s2(smmu, sid, &a, &syncs), -ETIMEDOUT);
    ste = &smmu_l2(&smmu->strtab, 0)[sid * STE_WORDS];
    assert_int_equal(ste[0] & 0xf, 1);      /* abort */
}

/* Sizes of the table for what IDR1 and the tree say. */
static void sizes(void **state)
{
    static const struct {
        unsigned int bits, two;
        uint32_t last;
        unsigned int got, l1;
    } c[] = {
        { 0, 1, 0, 0, 0 }, { 5, 1, ~0U, 5, 0 }, { 8, 1, 0, 8, 0 },
        { 9, 1, 5, 9, 2 }, { 16, 1, 0, 16, 256 }, { 16, 1, ~0U, 16, 256 },
        { 25, 1, 0xffff, 16, 256 }, { 25, 1, 0x10000, 17, 512 },
        { 25, 1, ~0U, 25, 1 << 17 }, { 32, 1, 5, 16, 256 },
        { 32, 1, 0x1ffffff, 25, 1 << 17 }, { 32, 1, 0x2000000, 26, 1 << 16 },
        { 32, 1, ~0U, 32, 1 << 22 },
        { 5, 0, 0, 5, 0 }, { 16, 0, ~0U, 10, 0 }, { 32, 0, ~0U, 10, 0 },
    };
    unsigned int i;

    for ( i = 0; i < ARRAY_SIZE(c); i++ )
    {
        make_up_to(c[i].bits, c[i].two, true, c[i].last);
        assert_int_equal(smmu->sid_bits, c[i].got);
        assert_int_equal(smmu->strtab.two_level, c[i].l1 != 0);
        assert_int_equal(smmu->strtab.nr_l1, c[i].l1);
        if ( c[i].got < 32 )
            assert_int_equal(smmu_strtab_reserve(smmu, 1U << c[i].got, &syncs), -ERANGE);
        assert_int_equal(smmu_strtab_reserve(smmu, (1UL << c[i].got) - 1, &syncs), 0);
        teardown(NULL);
    }
    make(16, true, true);
    for ( i = 1; i < 3; i++ )
    {
        struct smmu_device s = { .base = smmu->base, .sid_bits = 16 };

        sw_enable(&sw, 0);
        fake_alloc_fail = i;
        assert_int_equal(smmu_strtab_init(&s, true, 0), -ENOMEM);
        assert_null(s.strtab.shared);
    }
    teardown(NULL);
}

static void vmids(void **state)
{
    unsigned int bits, i;

    for ( bits = 8; bits <= 16; bits += 8 )
    {
        smmu->vmid_bits = bits;
        memset(smmu->vmids, 0, 8192);
        for ( i = 0; i < 1U << bits; i++ )
            assert_int_equal(smmu_vmid_alloc(smmu), i);
        assert_int_equal(smmu_vmid_alloc(smmu), -ENOSPC);
        smmu_vmid_free(smmu, 77);
        assert_int_equal(smmu_vmid_alloc(smmu), 77);
        assert_int_equal(smmu_vmid_alloc(smmu), -ENOSPC);
    }
}

/* Our check sees it when the sync in the middle is left out. */
static void check_works(void **state)
{
    struct smmu_s2_cfg a = context(1, table()), b = context(2, table());
    uint64_t *ste;

    sid = 5;
    assert_int_equal(smmu_strtab_reserve(smmu, sid, &syncs), 0);
    assert_int_equal(smmu_ste_s2(smmu, sid, &a, &syncs), 0);
    expect(2, a, b);
    sw.hook = hook;
    ste = &smmu_l2(&smmu->strtab, 0)[sid * STE_WORDS];
    write_atomic(&ste[3], b.ttb);
    assert_true(exposures > 0);
    print_message("(as expected)\n");
    exposures = 0;
    sw.hook = NULL;
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup_2lvl, teardown)
#define L(f) cmocka_unit_test_setup_teardown(f, setup_linear, teardown)
#define B(f) cmocka_unit_test_setup_teardown(f, setup_large, teardown)
#define C(f) cmocka_unit_test_setup_teardown(f, setup_noncoh, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(life_2lvl), B(life_large), B(fill_large), L(life_linear), C(life_2lvl), T(neighbours),
        L(neighbours), T(range_checks), L(range_checks), T(no_memory),
        T(times_out), cmocka_unit_test(sizes), T(vmids), T(check_works),
    };

    return cmocka_run_group_tests_name("strtab", tests, NULL, NULL);
}
