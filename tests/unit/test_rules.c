/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Rules of the standard for states that no driver can bring about by itself:
 * see docs/virtio-iommu.md.
 */

#include "guest.h"

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
#define L(f) cmocka_unit_test_setup_teardown(f, setup_lazy, teardown)

/* Feature bits from 64 on: there are none, so none is accepted (2.2.2). */
static void features_beyond(void **state)
{
    static const unsigned int words[] = { 2, 3, 0x7fffffff, ~0U };
    unsigned int i;

    for ( i = 0; i < ARRAY_SIZE(words); i++ )
    {
        wr(0x70, 0);
        run_bare();
        wr(0x70, 3);
        wr(0x24, 0);
        wr(0x20, (uint32_t)FEATURES);
        wr(0x24, 1);
        wr(0x20, FEATURES >> 32);
        wr(0x24, words[i]);
        wr(0x20, 0x10000);
        wr(0x70, 11);
        assert_int_equal(rd(0x70), 3);
    }
    /* A 0 there is no bit, and a reset forgets those that were. */
    wr(0x70, 0);
    wr(0x24, 2);
    wr(0x20, 0);
    drive(FEATURES);
}

/* An unknown endpoint comes before an impossible domain (5.13.6.3.2). */
static void endpoint_before_domain(void **state)
{
    assert_int_equal(attach(PVI_MAX_CONTEXTS, 0x99, 0), VIOMMU_S_NOENT);
    assert_int_equal(attach(~0U, 0x99, 0), VIOMMU_S_NOENT);
    assert_int_equal(attach(PVI_MAX_CONTEXTS, 0x10, 0), VIOMMU_S_RANGE);
}

/* Flags of a report, whatever the access was (5.13.6.9.2). */
static void fault_flags(void **state)
{
    const uint32_t all = VIOMMU_FAULT_F_READ | VIOMMU_FAULT_F_WRITE |
                         VIOMMU_FAULT_F_ADDRESS;
    struct vring_desc *d = gpa(RINGS + 0x3000);
    uint16_t *av = gpa(RINGS + 0x4000), *us = gpa(RINGS + 0x5000);
    struct viommu_fault *f = gpa(RINGS + 0x6000);
    unsigned int i;

    d[0] = (struct vring_desc){ RINGS + 0x6000, 24, VRING_DESC_F_WRITE, 0 };
    for ( i = 0; i < 8; i++ )
    {
        const struct smmu_event ev = {
            .id = EVT_F_PERMISSION,
            .addr = 0xabcd000,
            .insn = i & 1,
            .read = i & 2,
            .has_addr = i & 4,
        };

        memset(f, 0xee, sizeof(*f));
        av[2 + i % NUM] = 0;
        av[1] = i + 1;
        spin_lock(&pd->lock);
        viommu_report_fault(v, 0x10, &ev, true);
        spin_unlock(&pd->lock);
        assert_int_equal(us[1], i + 1);
        assert_int_equal(f->flags & ~all, 0);
        assert_int_equal(!!(f->flags & VIOMMU_FAULT_F_ADDRESS), !!(i & 4));
        /* Without an address nothing is known of the access. */
        assert_int_equal(f->flags & (VIOMMU_FAULT_F_READ |
                                     VIOMMU_FAULT_F_WRITE),
                         !(i & 4) ? 0 : i & 2 ? VIOMMU_FAULT_F_READ
                                              : VIOMMU_FAULT_F_WRITE);
        assert_int_equal(f->address, i & 4 ? 0xabcd000 : 0);
    }
}

/* No VMID and no memory is left: DETACH and reset need neither. */
static void detach_needs_nothing(void **state)
{
    struct viommu_req_detach r = { .type = VIOMMU_T_DETACH, .domain = 1,
                                   .endpoint = 0x10 };
    struct pvi_stream *s0, *s1;
    struct smmu_device *s;

    /* All of both SMMUs: then nothing uses the default context. */
    assert_int_equal(attach(1, 0x10, 0), 0);
    assert_int_equal(attach(1, 0x12, 0), 0);
    assert_int_equal(attach(2, 0x11, 0), 0);
    assert_int_equal(attach(2, 0x13, 0), 0);
    s0 = pvi_endpoint_find(pd, 0x10)->streams[0];
    s1 = pvi_endpoint_find(pd, 0x11)->streams[0];
    smmu_for_each ( s )
    {
        s->vmid_bits = 8;
        while ( smmu_vmid_alloc(s) >= 0 )
            continue;
    }
    /* The control: a new context finds none. */
    assert_int_equal(attach(3, 0x12, 0), VIOMMU_S_NOMEM);

    fake_alloc_fail = 1;
    assert_int_equal(request(&r, sizeof(r)), VIOMMU_S_OK);
    assert_ptr_equal(s0->ctx, &pd->dflt);
    wr(0x70, 0);
    run_bare();
    assert_int_equal(rd(0x70), 0);
    assert_ptr_equal(s1->ctx, &pd->dflt);
    /* Nobody has asked for memory. */
    assert_int_equal(fake_alloc_fail, 1);
    fake_alloc_fail = 0;
}

/* Its driver waits for answers that will not come: it is told (2.1.2). */
static void broken_is_told(void **state)
{
    struct viommu_req_unmap r = unmap_req(1, 0x5000, 0x1000);

    assert_int_equal(attach(1, 0x10, 0), 0);
    assert_int_equal(map(1, 0x5000, 0x1000, 0x5000, RW), 0);
    wr(0x64, ~0U);
    sw[0].mode = SW_NEVER;
    fake_now_step = MILLISECS(1);
    post(&r, sizeof(r), 4);
    wr(0x50, 0);
    run();
    if ( !pd->strict )
    {
        fake_advance(PVI_FQ_AGE);
        run();
    }
    assert_true(pd->broken);
    assert_int_equal(rd(0x70) & VIRTIO_STATUS_NEEDS_RESET,
                     VIRTIO_STATUS_NEEDS_RESET);
    assert_int_equal(rd(0x60) & 2, 2);
    assert_true(fake_logged("an SMMU does not answer"));
    /* The reset completes, though nothing else does any more. */
    wr(0x70, 0);
    run_bare();
    assert_int_equal(rd(0x70), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(features_beyond), T(endpoint_before_domain), T(fault_flags),
        T(detach_needs_nothing), L(detach_needs_nothing), T(broken_is_told),
        L(broken_is_told),
    };

    return cmocka_run_group_tests_name("rules", tests, NULL, NULL);
}

/* What a broken domain holds stays pinned. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "detect_leaks=0"; }
