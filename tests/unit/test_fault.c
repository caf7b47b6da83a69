/* SPDX-License-Identifier: GPL-2.0-only */
/* What a fault becomes: a line, a counter, a report to the guest. */

#include "guest.h"

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static void drain(void)
{
    sw_run_irqs(&sw[0]);
    sw_run_irqs(&sw[1]);
    while ( fake_run_tasklets() )
        continue;
    assert_int_equal(fake_locks, 0);
    assert_int_equal(dom.refs, 0);
}

/* How often the log has @text. */
static unsigned int lines(const char *text)
{
    const char *p = fake_log();
    unsigned int n = 0;

    while ( (p = strstr(p, text)) )
    {
        p++;
        n++;
    }
    return n;
}

/* The end of the line: %pd, at its beginning, is a pointer in the tests. */
static void logged(const char *text)
{
    if ( !fake_logged(text) )
        fail_msg("no '%s' in: %s", text, fake_log());
}

static void text(void **state)
{
    assert_int_equal(dma(0x12, 0x7654000, true, NULL), EVT_F_TRANSLATION);
    drain();
    logged(" 0000:00:02.2 stream 0x12: write at 0x7654000: no mapping (not attached)\n");
    assert_int_equal(attach(1, 0x12, 0), 0);
    assert_int_equal(dma(0x12, 0x7654000, false, NULL), EVT_F_TRANSLATION);
    drain();
    logged(" 0000:00:02.2 stream 0x12: read at 0x7654000: no mapping (attached by the guest)\n");
    sw_event(&sw[0], 0x03, 0x12, 0, true);
    drain();
    logged(" stream 0x12: stream table entry not readable (fetched from 0x4567890123458) (attached by the guest)\n");
    sw_event(&sw[0], 0x0b, 0x12, 0x5000, true);
    drain();
    logged(": read at 0x5000: translation table not readable (fetched from 0x4567890123458) (");
    sw_event(&sw[0], 0x77, 0x12, 0x5000, true);
    drain();
    logged(" stream 0x12: unknown event (attached by the guest)\n");
    assert_int_equal(atomic_read(&pd->stats.faults), 5);
}

static void of_nobody(void **state)
{
    dma(0x90, 0x1000, true, NULL);
    drain();
    logged("pviommu: fault: stream 0x90 of smmu0 belongs to nobody: stream not assigned to anyone\n");
    assert_int_equal(atomic_read(&pd->stats.faults), 0);
    assert_int_equal(atomic_read(&smmu_by_node(&sw[0].node)->stats.event_unknown), 1);
}

/* A platform device has a path, and any of its streams leads to it. */
static void platform(void **state)
{
    struct pvi_ep_desc d = { .kind = PVI_EP_DT, .epid = 0x200,
                             .path = "/soc/dma@9000000", .nr_streams = 2 };
    paddr_t pa;

    d.s[0].smmu = smmu_by_node(&sw[0].node);
    d.s[0].sid = 0x200;
    d.s[1].smmu = smmu_by_node(&sw[1].node);
    d.s[1].sid = 0x333;
    assert_int_equal(pvi_endpoint_add(pd, &d), 0);
    sw_dma(&sw[1], 0x333, 0x9000, true, &pa);
    drain();
    logged(" /soc/dma@9000000 stream 0x333: write at 0x9000: no mapping (not attached)\n");
    assert_int_equal(pvi_endpoint_remove(pd, PVI_EP_DT, 0x200), 0);

    /* The longest text there is. */
    d.path = "/a-very-long-path-in-the-device-tree/with-many-parts/and-more-of-them@0123456789";
    assert_int_equal(pvi_endpoint_add(pd, &d), 0);
    sw_event(&sw[1], 0x0b, 0x333, ~0UL, true);
    drain();
    logged("and-more-of-them@0123456789 stream 0x333: read at 0xffffffffffffffff: translation table not readable (fetched from 0x4567890123458) (not attached)\n");
    assert_int_equal(pvi_endpoint_remove(pd, PVI_EP_DT, 0x200), 0);
    d.path = NULL;
    assert_int_equal(pvi_endpoint_add(pd, &d), 0);
    sw_dma(&sw[1], 0x333, 0x9000, true, &pa);
    drain();
    logged(" platform device stream 0x333: ");
    assert_int_equal(pvi_endpoint_remove(pd, PVI_EP_DT, 0x200), 0);
}

/* The first of two goes: the fault is the other's. */
static void shared(void **state)
{
    struct pvi_ep_desc d = { .kind = PVI_EP_PCI, .epid = 0x21,
                             .nr_streams = 1 };

    d.s[0].smmu = smmu_by_node(&sw[0].node);
    d.s[0].sid = 0x10;
    assert_int_equal(pvi_endpoint_add(pd, &d), 0);
    dma(0x10, 0x1000, true, NULL);
    drain();
    logged(" 0000:00:02.0 stream 0x10: ");
    assert_int_equal(pvi_endpoint_remove(pd, PVI_EP_PCI, 0x10), 0);
    dma(0x10, 0x1000, true, NULL);
    drain();
    logged(" 0000:00:04.1 stream 0x10: ");
    assert_int_equal(pvi_endpoint_remove(pd, PVI_EP_PCI, 0x21), 0);
}

/* Ten lines a second of one domain, then how many there were. */
static void rate(void **state)
{
    unsigned int i;

    for ( i = 0; i < 30; i++ )
    {
        dma(0x10, 0x1000 * i, true, NULL);
        drain();
    }
    assert_int_equal(lines("no mapping"), PVI_FAULT_LINES);
    /* Those of others are not hidden. */
    dma(0x90, 0, true, NULL);
    drain();
    assert_int_equal(lines("belongs to nobody"), 1);
    fake_advance(SECONDS(1));
    dma(0x11, 0x1000 * i, true, NULL);
    drain();
    assert_int_equal(lines("no mapping"), PVI_FAULT_LINES + 1);
    logged("pviommu: fault: 20 more of ");
    assert_int_equal(atomic_read(&pd->stats.faults), 31);

    for ( i = 0; i < 30; i++ )
    {
        dma(0x90, 0, true, NULL);
        drain();
    }
    assert_int_equal(lines("belongs to nobody"), 1 + PVI_FAULT_LINES);
    fake_advance(SECONDS(2));
    dma(0x90, 0, true, NULL);
    drain();
    logged("pviommu: fault: 20 more of smmu0 were not shown\n");
}

/* A flood: cut off, said once, and the guest is told of what was recorded. */
static void flood(void **state)
{
    unsigned int i, stored = 0;
    uint16_t *us = gpa(RINGS + 0x5000);

    assert_int_equal(attach(1, 0x12, 0), 0);
    for ( i = 0; i < 1000; i++ )
    {
        struct vring_desc *d = gpa(RINGS + 0x3000);
        uint16_t *av = gpa(RINGS + 0x4000);

        d[0] = (struct vring_desc){ RINGS + 0x6000, 24, VRING_DESC_F_WRITE, 0 };
        av[2 + us[1] % NUM] = 0;
        av[1] = us[1] + 1;
        dma(0x12, 0x1000 * i, true, NULL);
        stored += sw[0].evtq_prod != sw[0].evtq_cons;
        drain();
    }
    assert_int_equal(stored, SMMU_FAULTS_MAX);
    assert_int_equal(us[1], SMMU_FAULTS_MAX);
    assert_int_equal(atomic_read(&pd->stats.faults), SMMU_FAULTS_MAX);
    assert_int_equal(atomic_read(&pd->stats.cutoffs), 1);
    assert_int_equal(lines("0000:00:02.2 stream 0x12: 64 faults within 1 s: not recorded for 10 s\n"), 1);

    /* The device works on with what is mapped. */
    assert_int_equal(map(1, 0x100000, 0x1000, 0x3000, RW), 0);
    assert_int_equal(dma(0x12, 0x100000, true, NULL), 0);

    fake_advance(SMMU_CUTOFF_TIME);
    drain();
    dma(0x12, 0x9000, true, NULL);
    drain();
    assert_int_equal(atomic_read(&pd->stats.faults), SMMU_FAULTS_MAX + 1);

    /* Of nobody. */
    for ( i = 0; i < 200; i++ )
    {
        dma(0x90, 0, true, NULL);
        drain();
    }
    assert_int_equal(lines("stream 0x90 of smmu0: 64 faults within 1 s: not recorded for 10 s\n"), 1);
}

/* Attached elsewhere while it is cut off: it moves, and nothing leaks. */
static void moves(void **state)
{
    unsigned int i;
    uint64_t to;

    assert_int_equal(attach(1, 0x12, 0), 0);
    assert_int_equal(map(1, 0x100000, 0x1000, 0x3000, RW), 0);
    for ( i = 0; i < 100; i++ )
    {
        dma(0x12, 0x900000, true, NULL);
        drain();
    }
    assert_int_equal(attach(2, 0x12, 0), 0);
    assert_int_equal(map(2, 0x100000, 0x1000, 0x4000, RW), 0);
    assert_int_equal(dma(0x12, 0x100000, true, &to), 0);
    assert_int_equal(to, 0x4000);
    assert_int_equal(pvi_endpoint_remove(pd, PVI_EP_PCI, 0x12), 0);
    assert_int_equal(dma(0x12, 0x100000, true, NULL), EVT_C_BAD_STE);
    drain();
    fake_advance(SMMU_CUTOFF_TIME);
    drain();
    assert_int_equal(dma(0x12, 0x100000, true, NULL), EVT_C_BAD_STE);
    assert_int_equal(detach(2, 0x12), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(text), T(of_nobody), T(platform), T(shared), T(rate), T(flood),
        T(moves),
    };

    return cmocka_run_group_tests_name("fault", tests, NULL, NULL);
}

/* The harness keeps the SMMUs. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "detect_leaks=0"; }
