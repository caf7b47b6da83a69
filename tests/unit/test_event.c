/* SPDX-License-Identifier: GPL-2.0-only */
/* The event queue: decoding, overflow, bounded runs; global errors. */

#include "unit.h"

static struct swsmmu sw;
static struct smmu_device *smmu;
static struct smmu_event got[2048];
static unsigned int nr_got;

static unsigned int work;       /* what each has cost */

unsigned int pvi_smmu_event(const struct smmu_event *ev)
{
    assert_false(fake_irqs_off);
    assert_int_equal(fake_locks, 0);
    assert_true(nr_got < ARRAY_SIZE(got));
    got[nr_got++] = *ev;

    return work;
}

static void make(bool coherent)
{
    fake_init();
    INIT_LIST_HEAD(&smmu_devices);
    smmu_nr = 0;
    sw_init(&sw, "smmu");
    fake_now_step = MICROSECS(10);
    if ( !coherent )
    {
        sw.noncoherent = true;
        sw.node.props[0].name = NULL;
    }
    assert_int_equal(smmu_probe(&sw.node), 0);
    smmu = smmu_by_node(&sw.node);
    nr_got = 0;
}

static int setup(void **state) { make(true); return 0; }
static int setup_noncoh(void **state) { make(false); return 0; }

static int teardown(void **state)
{
    no_violations(&sw);
    xfree(smmu->cmdq.phase);
    xfree(smmu->vmids);
    xfree(smmu->strtab.shared);
    xfree(smmu);
    sw_exit(&sw);
    return 0;
}

/* Interrupts and tasklets until nothing is left, over periods if need be. */
static void drain(void)
{
    sw_run_irqs(&sw);
    do {
        while ( fake_run_tasklets() )
            continue;
        if ( sw.evtq_cons != sw.evtq_prod )
            fake_advance(SMMU_EVENTS_PERIOD);
    } while ( sw.evtq_cons != sw.evtq_prod );
}

static void decode(void **state)
{
    static const struct { unsigned int id; bool addr; const char *name; } k[] = {
        { 0x01, true, "unsupported upstream transaction" },
        { 0x02, false, "StreamID outside the stream table" },
        { 0x03, false, "stream table entry not readable" },
        { 0x04, false, "stream not assigned to anyone" },
        { 0x05, false, "ATS request not allowed" },
        { 0x06, false, "stream disabled" },
        { 0x07, true, "translated request without ATS" },
        { 0x08, false, "PASID not allowed" },
        { 0x09, false, "context descriptor not readable" },
        { 0x0a, false, "context descriptor wrong" },
        { 0x0b, true, "translation table not readable" },
        { 0x10, true, "no mapping" },
        { 0x11, true, "address too large" },
        { 0x12, true, "access flag" },
        { 0x13, true, "no permission" },
        { 0x20, true, "conflicting TLB entries" },
        { 0x21, false, "conflicting configuration caches" },
        { 0x24, false, "page request hint" },
        { 0x25, false, "VM structure not readable" },
        { 0x99, false, "unknown event" },
    };
    unsigned int i;

    for ( i = 0; i < ARRAY_SIZE(k); i++ )
        sw_event(&sw, k[i].id, 0x100 + i, 0x123456789000 + i, i & 1);
    drain();
    assert_int_equal(nr_got, ARRAY_SIZE(k));
    for ( i = 0; i < ARRAY_SIZE(k); i++ )
    {
        assert_ptr_equal(got[i].smmu, smmu);
        assert_int_equal(got[i].id, k[i].id);
        assert_int_equal(got[i].sid, 0x100 + i);
        assert_int_equal(got[i].has_addr, k[i].addr);
        assert_int_equal(got[i].read, i & 1);
        assert_false(got[i].insn);
        assert_false(got[i].cut_off);
        assert_int_equal(got[i].has_fetch,
                         k[i].id == 0x03 || k[i].id == 0x09 ||
                         k[i].id == 0x0b || k[i].id == 0x25);
        if ( got[i].has_fetch )
            assert_int_equal(got[i].fetch, 0x4567890123458);
        if ( k[i].addr )
            assert_int_equal(got[i].addr, 0x123456789000 + i);
        assert_string_equal(smmu_event_name(k[i].id), k[i].name);
    }
    assert_int_equal(atomic_read(&smmu->stats.events), ARRAY_SIZE(k));
    assert_int_equal(sw.evtq_cons, sw.evtq_prod);
}

/* From a DMA that faults to the driver. */
static void from_dma(void **state)
{
    unsigned int syncs = 0;
    paddr_t pa;

    assert_int_equal(sw_dma(&sw, 0x123, 0xabc000, true, &pa), 2);
    assert_int_equal(smmu_strtab_reserve(smmu, 0x123, &syncs), 0);
    assert_int_equal(sw_dma(&sw, 0x123, 0xabc000, true, &pa), 4);
    drain();
    assert_int_equal(nr_got, 2);
    assert_int_equal(got[0].id, EVT_C_BAD_STREAMID);
    assert_int_equal(got[1].id, EVT_C_BAD_STE);
    assert_int_equal(got[1].sid, 0x123);
}

static void bounded(void **state)
{
    unsigned int i;

    for ( i = 0; i < 200; i++ )
        sw_event(&sw, 0x10, i, 0, true);
    sw_run_irqs(&sw);
    assert_int_equal(nr_got, 0);            /* not in the interrupt */
    assert_int_equal(fake_run_tasklets(), 1);
    assert_int_equal(nr_got, 32);
    assert_int_equal(fake_run_tasklets(), 1);
    assert_int_equal(nr_got, 64);
    while ( fake_run_tasklets() )
        continue;
    assert_int_equal(nr_got, 200);
}

static void wraps(void **state)
{
    unsigned int i, n = 0;

    for ( i = 0; i < 1500; i++ )
    {
        sw_event(&sw, 0x10, i, 0, true);
        if ( i % 100 == 7 )
            drain();
    }
    drain();
    for ( i = 0; i < nr_got; i++ )
        n += got[i].sid == i;
    assert_int_equal(n, 1500);
    assert_int_equal(atomic_read(&smmu->stats.event_overflow), 0);
}

static void overflow(void **state)
{
    unsigned int i, round;

    for ( round = 1; round < 4; round++ )
    {
        for ( i = 0; i < 300; i++ )
            sw_event(&sw, 0x10, i, 0, true);
        assert_true((sw.evtq_prod ^ sw.evtq_cons) >> 31);
        drain();
        assert_int_equal(nr_got, 256 * round);
        assert_int_equal(atomic_read(&smmu->stats.event_overflow), round);
        assert_int_equal(sw.evtq_cons, sw.evtq_prod);
        assert_int_equal(got[nr_got - 1].sid, 255);
    }
}

static void spurious(void **state)
{
    fake_irq(40);
    fake_irq(41);
    drain();
    assert_int_equal(nr_got, 0);
    assert_int_equal(atomic_read(&smmu->stats.gerror), 0);
}

static void gerror(void **state)
{
    sw_gerror(&sw, 1U << 2);
    drain();
    assert_int_equal(sw.gerror, sw.gerrorn);
    assert_int_equal(atomic_read(&smmu->stats.gerror), 1);
    assert_true(fake_logged("global error 0x4"));
    sw_gerror(&sw, 1U << 8 | 1U << 2);
    drain();
    assert_int_equal(sw.gerror, sw.gerrorn);
    assert_true(fake_logged("service failure mode"));
}

/*
 * Streams that fault too often.
 */
static struct smmu_s2_cfg empty_table(unsigned int vmid)
{
    void *p = alloc_xenheap_pages(0, 0);

    memset(p, 0, PAGE_SIZE);
    clean_dcache_va_range(p, PAGE_SIZE);
    return (struct smmu_s2_cfg){ .ttb = virt_to_maddr(p), .vmid = vmid,
                                 .t0sz = 64 - 39, .sl0 = 1, .ps = 5 };
}

/* A DMA that must fault, and what has been told of it. */
static unsigned int told(uint32_t sid, unsigned int times)
{
    unsigned int before = nr_got, i;
    paddr_t pa;

    for ( i = 0; i < times; i++ )
    {
        assert_true(sw_dma(&sw, sid, 0x1000 * i, false, &pa) != 0);
        drain();
    }
    return nr_got - before;
}

static void cut_off(uint32_t sid)
{
    unsigned int records;

    assert_int_equal(told(sid, SMMU_FAULTS_MAX - 1), SMMU_FAULTS_MAX - 1);
    assert_false(got[nr_got - 1].cut_off);
    assert_int_equal(told(sid, 1), 1);
    assert_true(got[nr_got - 1].cut_off);
    assert_int_equal(atomic_read(&smmu->stats.event_cutoff), 1);

    /* Not even recorded, unlike those of another stream. */
    records = sw.evtq_prod;
    assert_int_equal(told(sid, 100), 0);
    assert_int_equal(sw.evtq_prod, records);
    assert_int_equal(told(sid ^ 1, 5), 5);
    assert_int_equal(atomic_read(&smmu->stats.event_dropped), 0);

    /* Until its time is over. */
    fake_advance(SMMU_CUTOFF_TIME - SECONDS(1));
    drain();
    assert_int_equal(told(sid, 3), 0);
    fake_advance(SECONDS(1));
    drain();
    assert_int_equal(told(sid, 3), 3);
    assert_int_equal(atomic_read(&smmu->stats.event_no_cutoff), 0);
}

static void cutoff_translating(void **state)
{
    struct smmu_s2_cfg cfg = empty_table(7), other = empty_table(8);
    unsigned int n = 0, i;
    const uint64_t *ste;

    assert_int_equal(smmu_strtab_reserve(smmu, 0x124, &n), 0);
    assert_int_equal(smmu_ste_s2(smmu, 0x124, &cfg, &n), 0);
    assert_int_equal(smmu_ste_s2(smmu, 0x125, &other, &n), 0);
    cut_off(0x124);
    /* Nothing else has changed. */
    ste = &smmu_l2(&smmu->strtab, 1)[0x24 * STE_WORDS];
    i = sw.nr_log;
    assert_int_equal(smmu_ste_s2(smmu, 0x124, &cfg, &n), 0);
    assert_int_equal(sw.nr_log, i);
    assert_int_equal(ste[3], cfg.ttb);
}

static void cutoff_invalid(void **state)
{
    unsigned int n = 0;

    assert_int_equal(smmu_strtab_reserve(smmu, 0x124, &n), 0);
    cut_off(0x124);
    assert_int_equal(got[nr_got - 1].id, EVT_C_BAD_STE);
    assert_int_equal(smmu_l2(&smmu->strtab, 1)[0x24 * STE_WORDS], 0);
}

/* No table yet: it gets one, whose other entries are recorded. */
static void cutoff_no_table(void **state)
{
    assert_null(smmu_l2(&smmu->strtab, 1));
    cut_off(0x124);
    assert_non_null(smmu_l2(&smmu->strtab, 1));
}

/* Beyond the table there is no entry: they are recorded, and not told. */
static void cutoff_beyond(void **state)
{
    unsigned int i;

    for ( i = 0; i < 200; i++ )
    {
        sw_event(&sw, 0x02, 0x10000, 0, true);
        drain();
    }
    assert_int_equal(nr_got, SMMU_FAULTS_MAX);
    assert_int_equal(atomic_read(&smmu->stats.event_dropped),
                     200 - SMMU_FAULTS_MAX);
    assert_true(atomic_read(&smmu->stats.event_no_cutoff) > 0);
}

/* No memory for a table: the same. */
static void cutoff_no_memory(void **state)
{
    unsigned int i;
    paddr_t pa;

    for ( i = 0; i < 100; i++ )
    {
        sw_dma(&sw, 0x124, 0, true, &pa);
        if ( i >= SMMU_FAULTS_MAX - 1 )
            fake_alloc_fail = 1;
        drain();
    }
    fake_alloc_fail = 0;
    assert_int_equal(nr_got, SMMU_FAULTS_MAX);
}

/* The entry is written anew meanwhile: cut off again at the next fault. */
static void cutoff_rewritten(void **state)
{
    struct smmu_s2_cfg a = empty_table(7), b = empty_table(8);
    unsigned int n = 0;
    uint64_t pa;

    assert_int_equal(smmu_strtab_reserve(smmu, 0x124, &n), 0);
    assert_int_equal(smmu_ste_s2(smmu, 0x124, &a, &n), 0);
    assert_int_equal(told(0x124, SMMU_FAULTS_MAX), SMMU_FAULTS_MAX);
    assert_int_equal(smmu_ste_s2(smmu, 0x124, &b, &n), 0);
    assert_int_equal(told(0x124, 10), 0);
    assert_int_equal(atomic_read(&smmu->stats.event_dropped), 1);
    /* Switched off by its owner: it isn't opened when the time is over. */
    assert_int_equal(smmu_ste_invalid(smmu, 0x124, &n), 0);
    fake_advance(SMMU_CUTOFF_TIME);
    drain();
    assert_int_equal(sw_dma(&sw, 0x124, 0, false, &pa), EVT_C_BAD_STE);
    assert_int_equal(smmu_l2(&smmu->strtab, 1)[0x24 * STE_WORDS], 0);
}

/* Slowly, for ever: that is not a flood. */
static void no_cutoff(void **state)
{
    unsigned int i;

    for ( i = 0; i < 1000; i++ )
    {
        assert_int_equal(told(0x124, 1), 1);
        fake_advance(SMMU_FAULT_WINDOW / 32);
    }
    assert_int_equal(atomic_read(&smmu->stats.event_cutoff), 0);
}

/* More streams than slots at once: some go on, and time is bounded. */
static void many_streams(void **state)
{
    unsigned int i, k;

    for ( i = 0; i < 2 * SMMU_FAULT_SLOTS; i++ )
        for ( k = 0; k < SMMU_FAULTS_MAX; k++ )
        {
            sw_event(&sw, 0x10, 0x400 + i, 0, true);
            drain();
            nr_got = 0;
        }
    assert_int_equal(atomic_read(&smmu->stats.event_cutoff), SMMU_FAULT_SLOTS);
}

/* Whatever comes: so many in a period, the rest is dropped by the SMMU. */
static void throttle(void **state)
{
    unsigned int period, i, sid = 0;

    for ( period = 1; period <= 3; period++ )
    {
        s_time_t began = fake_now;

        for ( i = 0; i < 40; i++ )
        {
            unsigned int k;

            for ( k = 0; k < 32; k++ )
                sw_event(&sw, 0x10, sid++, 0, true);
            sw_run_irqs(&sw);
            while ( fake_run_tasklets() )
                continue;
        }
        assert_true(fake_now - began < SMMU_EVENTS_PERIOD);
        assert_int_equal(nr_got, period * SMMU_EVENTS_MAX);
        fake_advance(SMMU_EVENTS_PERIOD);
    }
    /* Once for each interrupt that came too early, at most twice. */
    assert_in_range(atomic_read(&smmu->stats.event_throttled), 3 * 24, 3 * 48);
    assert_true(atomic_read(&smmu->stats.event_overflow) > 0);
    assert_true(fake_logged("the event queue was full, faults were lost"));
    drain();
}

static int ill_once(struct swsmmu *s, const struct sw_cmd *c, unsigned int n)
{
    s->inject = NULL;
    return SW_ILL;
}

/* The interrupt repairs the command queue, while nobody waits. */
static void cmdq_error(void **state)
{
    struct smmu_batch b;
    uint32_t ticket;

    sw.inject = ill_once;
    smmu_batch_init(&b, smmu);
    assert_int_equal(smmu_tlbi_vmid(&b, 5), 0);
    assert_int_equal(smmu_batch_submit(&b, true, &ticket), 0);
    assert_true(sw.gerror != sw.gerrorn);
    drain();
    assert_int_equal(sw.gerror, sw.gerrorn);
    assert_int_equal(smmu_sync_wait(smmu, ticket), 0);
    assert_int_equal(sw.log[sw.nr_log - 2].w[0], CMD_OP_TLBI_NSNH_ALL);
    assert_int_equal(atomic_read(&smmu->stats.gerror), 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
#define C(f) cmocka_unit_test_setup_teardown(f, setup_noncoh, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(decode), T(from_dma), T(bounded), T(wraps), T(overflow),
        T(spurious), T(gerror), T(cmdq_error), C(decode), C(wraps),
        T(cutoff_translating), C(cutoff_translating), T(cutoff_invalid),
        C(cutoff_invalid), T(cutoff_no_table), T(cutoff_beyond),
        T(cutoff_no_memory), T(cutoff_rewritten), T(no_cutoff),
        T(many_streams), T(throttle),
    };

    return cmocka_run_group_tests_name("event", tests, NULL, NULL);
}
