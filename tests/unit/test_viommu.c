/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The virtio-iommu as its guest sees it, down to the DMA of its devices:
 * registers, rings, requests, contexts, flush queue.
 */

#include "guest.h"

static void registers(void **state)
{
    assert_int_equal(rd(0), 0x74726976);
    assert_int_equal(rd(4), 2);
    assert_int_equal(rd(8), 23);
    assert_int_equal(rd(0x34), 256);
    wr(0x30, 2);
    assert_int_equal(rd(0x34), 0);
    wr(0x14, 0);
    assert_int_equal(rd(0x10) & 0x77, 0x77);
    wr(0x14, 1);
    assert_int_equal(rd(0x10), 1);
    wr(0x14, 7);
    assert_int_equal(rd(0x10), 0);
    /* Configuration: page sizes, input range, domains, probe size, bypass. */
    assert_int_equal(mmio_read(0x100, 3), ~0xfffUL);
    assert_int_equal(mmio_read(0x110, 3), (1UL << 48) - 1);
    assert_int_equal(mmio_read(0x11c, 2), 1023);
    assert_int_equal(mmio_read(0x120, 2), 512);
    assert_int_equal(mmio_read(0x124, 0), 1);
    assert_int_equal(mmio_read(0x1f8, 3), 0);
    /* Odd accesses do nothing. */
    assert_int_equal(mmio_read(1, 2), 0);
    assert_int_equal(mmio_read(0, 0), 0);
    mmio_write(0x71, 0, 2);
    mmio_write(0x70, 0, 0);
    assert_int_equal(rd(0x70), 15);
}

static void bad_queues(void **state)
{
    wr(0x70, 0);
    run_bare();
    assert_int_equal(rd(0x70), 0);
    assert_int_equal(fake_mapped, 0);
    wr(0x30, 0);
#define TRY(num, d, a, u) do { \
    wr(0x38, num); wr(0x80, d); wr(0x90, a); wr(0xa0, u); wr(0x44, 1); \
    assert_int_equal(rd(0x44), 0); } while ( 0 )
    TRY(0, RINGS, RINGS + 0x1000, RINGS + 0x2000);
    TRY(3, RINGS, RINGS + 0x1000, RINGS + 0x2000);
    TRY(512, RINGS, RINGS + 0x1000, RINGS + 0x2000);
    TRY(64, RINGS + 8, RINGS + 0x1000, RINGS + 0x2000);
    TRY(64, RINGS, RINGS + 0x1001, RINGS + 0x2000);
    TRY(64, RINGS, RINGS + 0x1000, RINGS + 0x2002);
    TRY(64, GUEST_PAGES << 12, RINGS + 0x1000, RINGS + 0x2000);
    TRY(256, (GUEST_PAGES << 12) - 0x800, RINGS + 0x1000, RINGS + 0x2000);
    TRY(64, RINGS, RINGS + 0x1000, 0xfffff000);
    assert_int_equal(fake_mapped, 0);
    drive(FEATURES);
}

static void basic(void **state)
{
    uint64_t to;
    unsigned int before;

    assert_int_equal(attach(1, 0x10, 0), VIOMMU_S_OK);
    assert_int_equal(dma(0x10, 0x1000, false, NULL), EVT_F_TRANSLATION);
    assert_int_equal(map(1, 0x100000, 0x4000, 0x20000, RW), VIOMMU_S_OK);
    assert_int_equal(dma(0x10, 0x101234, true, &to), 0);
    assert_int_equal(to, 0x21234);
    assert_int_equal(dma(0x11, 0x101234, true, &to), EVT_F_TRANSLATION);
    assert_int_equal(map(1, 0x100000, 0x1000, 0, RW), VIOMMU_S_INVAL);
    assert_int_equal(unmap(1, 0x101000, 0x1000), VIOMMU_S_RANGE);
    before = syncs();
    assert_int_equal(unmap(1, 0x100000, 0x4000), VIOMMU_S_OK);
    assert_int_equal(syncs() - before, 1);
    assert_int_equal(dma(0x10, 0x101234, true, &to), EVT_F_TRANSLATION);
    assert_int_equal(unmap(1, 0x100000, 0x4000), VIOMMU_S_OK);
    assert_int_equal(detach(1, 0x10), VIOMMU_S_OK);
    assert_int_equal(detach(1, 0x10), VIOMMU_S_NOENT);
    check_counters();
}

static void permissions(void **state)
{
    assert_int_equal(attach(1, 0x10, 0), VIOMMU_S_OK);
    assert_int_equal(map(1, 0x1000, 0x1000, 0x1000, 1), VIOMMU_S_OK);
    assert_int_equal(map(1, 0x2000, 0x1000, 0x1000, 2), VIOMMU_S_OK);
    assert_int_equal(dma(0x10, 0x1000, false, NULL), 0);
    assert_int_equal(dma(0x10, 0x1000, true, NULL), EVT_F_PERMISSION);
    assert_int_equal(dma(0x10, 0x2000, false, NULL), EVT_F_PERMISSION);
    assert_int_equal(dma(0x10, 0x2000, true, NULL), 0);
}

static void bad_requests(void **state)
{
    struct viommu_req_attach a = { .type = VIOMMU_T_ATTACH, .domain = 1,
                                   .endpoint = 0x10 };
    uint8_t junk[80] = { 0x77 }, *status;
    unsigned int i;

    assert_int_equal(attach(1, 0x99, 0), VIOMMU_S_NOENT);
    assert_int_equal(attach(1, 0x10, 8), VIOMMU_S_INVAL);
    assert_int_equal(attach(1024, 0x10, 0), VIOMMU_S_RANGE);
    a.reserved[2] = 1;
    assert_int_equal(request(&a, sizeof(a)), VIOMMU_S_INVAL);
    assert_int_equal(request(&a, 8), VIOMMU_S_INVAL);
    assert_int_equal(detach(1, 0x10), VIOMMU_S_NOENT);
    assert_int_equal(map(1, 0, 0x1000, 0, RW), VIOMMU_S_NOENT);
    assert_int_equal(attach(1, 0x10, 0), VIOMMU_S_OK);
    assert_int_equal(detach(1, 0x11), VIOMMU_S_INVAL);
    assert_int_equal(attach(1, 0x11, VIOMMU_ATTACH_F_BYPASS), VIOMMU_S_INVAL);
    assert_int_equal(map(1, 0x800, 0x1000, 0, RW), VIOMMU_S_RANGE);
    assert_int_equal(map(1, 0, 0x1000, 0x10, RW), VIOMMU_S_RANGE);
    assert_int_equal(map(1, 0, 0x801, 0, RW), VIOMMU_S_RANGE);
    assert_int_equal(map(1, 1UL << 48, 0x1000, 0, RW), VIOMMU_S_RANGE);
    assert_int_equal(map(1, -4096UL, 0x1000, 0, RW), VIOMMU_S_RANGE);
    assert_int_equal(map(1, 0, 0x2000, -4096UL, RW), VIOMMU_S_RANGE);
    assert_int_equal(map(1, 0, 0x1000, 0, 0x10), VIOMMU_S_INVAL);
    assert_int_equal(map(1, 0, 0x1000, GUEST_PAGES << 12, RW), VIOMMU_S_FAULT);
    /* The last page of many isn't there: nothing stays mapped. */
    assert_int_equal(map(1, 0, 0x400000, (GUEST_PAGES << 12) - 0x3ff000, RW),
                     VIOMMU_S_FAULT);
    assert_int_equal(dma(0x10, 0, false, NULL), EVT_F_TRANSLATION);
    fake_advance(MILLISECS(11));
    assert_int_equal(fake_refs, 2 * 3);
    /* An unknown request is returned and nothing written. */
    status = post(junk, sizeof(junk), 4);
    kick();
    assert_int_equal(*status, 0xee);
    /* Random bytes never do harm. */
    for ( i = 0; i < 3000; i++ )
    {
        unsigned int k;

        for ( k = 0; k < sizeof(junk); k++ )
            junk[k] = rnd() % 4 ? 0 : rnd();
        junk[0] = rnd() % 7;
        junk[4] = rnd() % 3;
        status = post(junk, 1 + rnd() % sizeof(junk), 4 + rnd() % 8);
        kick();
    }
    assert_int_equal(rd(0x70), 15);
}

static void probe(void **state)
{
    struct viommu_req_probe r = { .type = VIOMMU_T_PROBE, .endpoint = 0x10 };
    uint8_t *status = post(&r, sizeof(r), 516);

    kick();
    assert_int_equal(*status, VIOMMU_S_OK);
    assert_int_equal(status[-512] | status[-1], 0);
    r.endpoint = 0x77;
    status = post(&r, sizeof(r), 516);
    kick();
    assert_int_equal(*status, VIOMMU_S_NOENT);
    status = post(&r, sizeof(r), 100);
    kick();
    assert_int_equal(*status, VIOMMU_S_INVAL);
}

/*
 * Strict: however many UNMAPs a kick holds, each SMMU gets at most one sync.
 * What has to come in between: mixed_kicks().
 */
static void one_sync_per_kick(void **state)
{
    unsigned int i, before0, before1;
    uint8_t *status[20];

    assert_int_equal(attach(1, 0x10, 0), VIOMMU_S_OK);
    assert_int_equal(attach(1, 0x11, 0), VIOMMU_S_OK);
    for ( i = 0; i < 20; i++ )
    {
        assert_int_equal(map(1, i << 16, 0x3000, i << 14, RW), VIOMMU_S_OK);
        assert_int_equal(dma(0x10, i << 16, true, NULL), 0);
        assert_int_equal(dma(0x11, i << 16, true, NULL), 0);
    }
    before0 = sw[0].nr_syncs;
    before1 = sw[1].nr_syncs;
    for ( i = 0; i < 20; i++ )
    {
        struct viommu_req_unmap r = unmap_req(1, i << 16, 0x3000);

        status[i] = post(&r, sizeof(r), 4);
    }
    kick();
    for ( i = 0; i < 20; i++ )
    {
        assert_int_equal(*status[i], VIOMMU_S_OK);
        assert_int_equal(dma(0x10, i << 16, true, NULL), EVT_F_TRANSLATION);
        assert_int_equal(dma(0x11, i << 16, true, NULL), EVT_F_TRANSLATION);
    }
    assert_int_equal(sw[0].nr_syncs - before0, 1);
    assert_int_equal(sw[1].nr_syncs - before1, 1);
    check_counters();
}

/* ... and a kick of many slices, with pages and gaps, has no more. */
static void one_sync_for_many_slices(void **state)
{
    struct viommu_req_unmap a = unmap_req(1, 0, 1UL << 30);
    struct viommu_req_unmap b = unmap_req(1, 1UL << 32, 1UL << 30);
    unsigned int i, before0, before1;
    uint8_t *sa, *sb;

    assert_int_equal(attach(1, 0x10, 0), VIOMMU_S_OK);
    assert_int_equal(attach(1, 0x11, 0), VIOMMU_S_OK);
    /* Pages with gaps, in many tables; and 16 MiB of pages. */
    for ( i = 0; i < 40; i++ )
        assert_int_equal(map(1, (uint64_t)i << 22, 0x1000, i << 12, RW),
                         VIOMMU_S_OK);
    assert_int_equal(map(1, 1UL << 32, 0x1000000, 0x1000, RW), VIOMMU_S_OK);
    assert_int_equal(dma(0x10, 39 << 22, true, NULL), 0);
    assert_int_equal(dma(0x11, (1UL << 32) + 0xfff000, true, NULL), 0);
    before0 = sw[0].nr_syncs;
    before1 = sw[1].nr_syncs;
    sa = post(&a, sizeof(a), 4);
    sb = post(&b, sizeof(b), 4);
    kick();
    assert_int_equal(*sa, VIOMMU_S_OK);
    assert_int_equal(*sb, VIOMMU_S_OK);
    assert_true(slices > 4);
    assert_int_equal(sw[0].nr_syncs - before0, 1);
    assert_int_equal(sw[1].nr_syncs - before1, 1);
    assert_int_equal(dma(0x10, 39 << 22, true, NULL), EVT_F_TRANSLATION);
    assert_int_equal(dma(0x11, (1UL << 32) + 0xfff000, true, NULL),
                     EVT_F_TRANSLATION);
    check_counters();
}

/*
 * A kick of @n UNMAPs, each followed at once or after all of them by a MAP of
 * the same address, to another page or the same one.  Syncs of SMMU 0.
 */
static unsigned int mixed_kick(unsigned int n, bool at_once, bool other_page)
{
    unsigned int before, i, j, k = 0;
    uint8_t *status[40];

    for ( i = 0; i < n; i++ )
    {
        assert_int_equal(map(1, i << 16, 0x1000, i << 12, RW), VIOMMU_S_OK);
        assert_int_equal(dma(0x10, i << 16, true, NULL), 0);
    }
    before = sw[0].nr_syncs;
    for ( i = 0; i < 2 * n; i++ )
    {
        struct viommu_req_unmap u;
        struct viommu_req_map m;

        j = at_once ? i / 2 : i % n;
        u = unmap_req(1, j << 16, 0x1000);
        m = map_req(1, j << 16, 0x1000, (j + (other_page ? 100 : 0)) << 12, RW);
        status[k++] = (at_once ? i % 2 == 0 : i < n) ? post(&u, sizeof(u), 4)
                                                     : post(&m, sizeof(m), 4);
    }
    kick();
    before = sw[0].nr_syncs - before;
    for ( i = 0; i < k; i++ )
        assert_int_equal(*status[i], VIOMMU_S_OK);
    for ( i = 0; i < n; i++ )
    {
        uint64_t to;

        assert_int_equal(dma(0x10, i << 16, true, &to), 0);
        assert_int_equal(to >> 12, i + (other_page ? 100 : 0));
        assert_int_equal(unmap(1, i << 16, 0x1000), VIOMMU_S_OK);
    }

    return before;
}

/* Where a strict kick has more than one sync: docs/design.md says so. */
static void mixed_kicks(void **state)
{
    struct viommu_req_unmap u = unmap_req(1, 0, 0x1000);
    struct viommu_req_detach d = { .type = VIOMMU_T_DETACH, .domain = 1,
                                   .endpoint = 0x10 };
    unsigned int before;
    uint8_t *su, *sd;

    assert_int_equal(attach(1, 0x10, 0), VIOMMU_S_OK);
    assert_int_equal(attach(1, 0x11, 0), VIOMMU_S_OK);

    /* Break before make, once for all that was unmapped before it ... */
    assert_int_equal(mixed_kick(8, false, true), 1);
    /* ... or once for each, if that is how the guest asks. */
    assert_int_equal(mixed_kick(8, true, true), 8);
    /* The same page in the same place needs none at all. */
    assert_int_equal(mixed_kick(8, false, false), 0);
    assert_int_equal(mixed_kick(8, true, false), 0);

    /*
     * DETACH: what is pending, the stream's entry in three steps that each keep
     * it from reaching too much, the VMID if it was the last.
     */
    assert_int_equal(map(1, 0, 0x1000, 0, RW), VIOMMU_S_OK);
    assert_int_equal(dma(0x10, 0, true, NULL), 0);
    before = sw[0].nr_syncs;
    su = post(&u, sizeof(u), 4);
    sd = post(&d, sizeof(d), 4);
    kick();
    assert_int_equal(*su, VIOMMU_S_OK);
    assert_int_equal(*sd, VIOMMU_S_OK);
    assert_in_range(sw[0].nr_syncs - before, 2, 5);
    check_counters();
}

/* Strict is final: the used index moves after the sync and not before. */
static uint16_t used_before;
static unsigned int order_checks;
static uint64_t watched;
static void watch(struct swsmmu *s)
{
    /* An entry that a cache still holds: the answer must not be visible. */
    if ( sw_reaching(s, watched, PAGE_SIZE) )
    {
        order_checks++;
        assert_int_equal(used()[1], used_before);
    }
}

static void strict_is_final(void **state)
{
    unsigned int i;

    assert_int_equal(attach(1, 0x10, 0), VIOMMU_S_OK);
    watched = page_to_maddr(ram) + 0x5000;
    for ( i = 0; i < 5; i++ )
    {
        assert_int_equal(map(1, 0x5000, 0x1000, 0x5000, RW), VIOMMU_S_OK);
        assert_int_equal(dma(0x10, 0x5000, true, NULL), 0);
        used_before = used()[1];
        sw[0].hook = watch;
        assert_int_equal(unmap(1, 0x5000, 0x1000), VIOMMU_S_OK);
        sw[0].hook = NULL;
    }
    assert_true(order_checks > 5);
}

/* Lazy: no sync for an unmap, but the page stays until the window closes. */
static void lazy_window(void **state)
{
    unsigned int before;

    assert_int_equal(attach(1, 0x10, 0), VIOMMU_S_OK);
    assert_int_equal(map(1, 0x5000, 0x1000, 0x5000, RW), VIOMMU_S_OK);
    assert_int_equal(dma(0x10, 0x5000, true, NULL), 0);
    before = syncs();
    assert_int_equal(unmap(1, 0x5000, 0x1000), VIOMMU_S_OK);
    assert_int_equal(syncs(), before);
    /* The guest gives the page back: a stale entry still reaches it. */
    put_page(ram + 5);
    fake_refs++; /* that was not one of the driver's */
    assert_true(ram[5].count_info > 0);
    assert_int_equal(dma(0x10, 0x5000, true, NULL), 0);
    fake_advance(MILLISECS(11));
    assert_int_equal(syncs(), before + 1);
    assert_int_equal(ram[5].count_info, 0);
    assert_int_equal(dma(0x10, 0x5000, true, NULL), EVT_F_TRANSLATION);
    assert_int_equal(atomic_read(&pd->stats.flush[PVI_CAUSE_AGE]), 1);
    check_counters();
}

/* Lazy: a MAP over a pending range flushes first (invariant 4). */
static void lazy_overlap(void **state)
{
    uint64_t to;

    assert_int_equal(attach(1, 0x10, 0), VIOMMU_S_OK);
    assert_int_equal(map(1, 0x5000, 0x1000, 0x5000, RW), VIOMMU_S_OK);
    assert_int_equal(dma(0x10, 0x5000, true, NULL), 0);
    assert_int_equal(unmap(1, 0x5000, 0x1000), VIOMMU_S_OK);
    assert_int_equal(map(1, 0x5000, 0x1000, 0x9000, RW), VIOMMU_S_OK);
    assert_int_equal(dma(0x10, 0x5000, true, &to), 0);
    assert_int_equal(to, 0x9000);
    assert_int_equal(atomic_read(&pd->stats.flush[PVI_CAUSE_OVERLAP]), 1);
    check_counters();
}

/* However many ranges a slice has: a few commands, or one for the whole VMID. */
static void few_commands(void **state)
{
    unsigned int i, n, before;

    assert_int_equal(attach(1, 0x10, 0), VIOMMU_S_OK);
    for ( n = 1; n <= 30; n++ )
    {
        for ( i = 0; i < n; i++ )
        {
            assert_int_equal(map(1, i << 16, 0x1000, i << 14, RW), VIOMMU_S_OK);
            assert_int_equal(dma(0x10, i << 16, true, NULL), 0);
        }
        before = tlbis();
        for ( i = 0; i < n; i++ )
        {
            struct viommu_req_unmap r = unmap_req(1, i << 16, 0x1000);

            post(&r, sizeof(r), 4);
        }
        kick();
        assert_int_equal(tlbis() - before, n <= PVI_TLBI_RANGES_MAX ? n : 1);
        for ( i = 0; i < n; i++ )
            assert_int_equal(dma(0x10, i << 16, true, NULL),
                             EVT_F_TRANSLATION);
    }
    check_counters();
}

static void lazy_count(void **state)
{
    unsigned int i;

    assert_int_equal(attach(1, 0x10, 0), VIOMMU_S_OK);
    for ( i = 0; i < 300; i++ )
        assert_int_equal(map(1, i << 13, 0x1000, 0x5000, RW), VIOMMU_S_OK);
    fake_now_step = 0;
    for ( i = 0; i < 300; i++ )
        assert_int_equal(unmap(1, i << 13, 0x1000), VIOMMU_S_OK);
    assert_int_equal(atomic_read(&pd->stats.flush[PVI_CAUSE_COUNT]), 1);
    assert_true(pvi_fq_pending(pd));
    fake_now_step = MICROSECS(1);
    check_counters();
}

/* UNMAP, and the same address for another page at once: syncs of that cause. */
static unsigned int reuse(unsigned int n, enum pvi_cause cause)
{
    unsigned int before = atomic_read(&pd->stats.flush[cause]), i;
    static unsigned int page;
    uint64_t to;

    for ( i = 0; i < n; i++ )
    {
        page = (page + 1) % 1024;
        assert_int_equal(unmap(1, 0x5000, 0x1000), VIOMMU_S_OK);
        assert_int_equal(map(1, 0x5000, 0x1000, page << 12, RW), VIOMMU_S_OK);
        assert_int_equal(dma(0x10, 0x5000, true, &to), 0);
        assert_int_equal(to, page << 12);
    }

    return atomic_read(&pd->stats.flush[cause]) - before;
}

/*
 * A guest that uses an address again at once: its first MAP waits, later ones
 * find that the flush was issued when the UNMAP had been answered.
 */
static void early(void **state)
{
    unsigned int i;

    assert_int_equal(attach(1, 0x10, 0), VIOMMU_S_OK);
    assert_int_equal(map(1, 0x5000, 0x1000, 0, RW), VIOMMU_S_OK);
    assert_int_equal(reuse(1, PVI_CAUSE_OVERLAP), 1);
    assert_int_equal(reuse(3 * PVI_FQ_EARLY_SLICES, PVI_CAUSE_OVERLAP), 0);
    assert_int_equal(reuse(3 * PVI_FQ_EARLY_SLICES, PVI_CAUSE_EARLY),
                     3 * PVI_FQ_EARLY_SLICES);

    /* Who does not use them again isn't given it. */
    reuse(1, PVI_CAUSE_EARLY);
    fake_now_step = 0;
    for ( i = 0; i < 3 * PVI_FQ_EARLY_SLICES; i++ )
    {
        uint64_t iova = 0x100000 + ((uint64_t)i << 13);

        assert_int_equal(map(1, iova, 0x1000, 0, RW), VIOMMU_S_OK);
        assert_int_equal(unmap(1, iova, 0x1000), VIOMMU_S_OK);
    }
    assert_in_range(pd->fq.early_left, 0, PVI_FQ_EARLY_SLICES / 2);
    assert_true(pvi_fq_pending(pd));
    fake_now_step = MICROSECS(1);
    check_counters();
}

/* The SMMU is slow: the MAP comes before what was issued early is done. */
static void early_not_done(void **state)
{
    struct viommu_req_unmap u = unmap_req(1, 0x5000, 0x1000);
    unsigned int overlap;
    uint8_t *status;
    uint64_t to;

    assert_int_equal(attach(1, 0x10, 0), VIOMMU_S_OK);
    assert_int_equal(map(1, 0x5000, 0x1000, 0, RW), VIOMMU_S_OK);
    assert_int_equal(map(1, 0x9000, 0x1000, 0x9000, RW), VIOMMU_S_OK);
    reuse(1, PVI_CAUSE_OVERLAP);
    overlap = atomic_read(&pd->stats.flush[PVI_CAUSE_OVERLAP]);

    /* Answered, issued, and nothing of it executed. */
    status = post(&u, sizeof(u), 4);
    kick();
    assert_int_equal(*status, VIOMMU_S_OK);
    assert_true(pd->fq.early_on);
    assert_true(pvi_fq_pending(pd));
    assert_int_equal(dma(0x10, 0x5000, true, NULL), 0);
    /* What is unmapped later isn't covered by it. */
    assert_int_equal(unmap(1, 0x9000, 0x1000), VIOMMU_S_OK);
    assert_int_equal(map(1, 0x5000, 0x1000, 0x7000, RW), VIOMMU_S_OK);
    assert_int_equal(dma(0x10, 0x5000, true, &to), 0);
    assert_int_equal(to, 0x7000);
    assert_int_equal(map(1, 0x9000, 0x1000, 0xa000, RW), VIOMMU_S_OK);
    assert_int_equal(dma(0x10, 0x9000, true, &to), 0);
    assert_int_equal(to, 0xa000);
    assert_in_range(atomic_read(&pd->stats.flush[PVI_CAUSE_OVERLAP]) - overlap,
                    0, 1);

    /* Turning strict on waits for it as well. */
    assert_int_equal(unmap(1, 0x9000, 0x1000), VIOMMU_S_OK);
    assert_int_equal(pvi_set_strict(pd, true), 0);
    assert_int_equal(dma(0x10, 0x9000, true, NULL), EVT_F_TRANSLATION);
    check_counters();
}

/* It never comes: whoever needs it finds out. */
static void early_fails(void **state)
{
    struct viommu_req_map m = map_req(1, 0x5000, 0x1000, 0x7000, RW);
    struct viommu_req_unmap u = unmap_req(1, 0x5000, 0x1000);
    struct page_info *old;
    long refs;
    uint64_t to;

    assert_int_equal(attach(1, 0x10, 0), VIOMMU_S_OK);
    assert_int_equal(map(1, 0x5000, 0x1000, 0, RW), VIOMMU_S_OK);
    reuse(1, PVI_CAUSE_OVERLAP);
    assert_int_equal(dma(0x10, 0x5000, true, &to), 0);
    old = ram + (to >> 12);
    refs = old->count_info;
    sw[0].mode = SW_NEVER;
    post(&u, sizeof(u), 4);
    wr(0x50, 0);
    run();
    assert_true(pd->fq.early_on);
    assert_false(pd->broken);
    fake_now_step = MILLISECS(1);
    post(&m, sizeof(m), 4);
    wr(0x50, 0);
    run();
    assert_true(pd->broken);
    fake_advance(SECONDS(1));
    assert_int_equal(old->count_info, refs);
}

static void lazy_pages(void **state)
{
    unsigned int i;

    assert_int_equal(attach(1, 0x10, 0), VIOMMU_S_OK);
    dom.arch.p2m.order = 9;
    for ( i = 0; i < 20; i++ )
        assert_int_equal(map(1, (uint64_t)i << 22, 2UL << 20, 0, RW),
                         VIOMMU_S_OK);
    for ( i = 0; i < 20; i++ )
        assert_int_equal(unmap(1, (uint64_t)i << 22, 2UL << 20), VIOMMU_S_OK);
    assert_int_equal(atomic_read(&pd->stats.flush[PVI_CAUSE_PAGES]), 1);
    check_counters();
}

/* Detach completes what is pending, and the VMID is not reused dirty. */
static void detach_flushes(void **state)
{
    unsigned int i;
    uint64_t to;

    for ( i = 0; i < 40; i++ )
    {
        assert_int_equal(attach(1, 0x10, 0), VIOMMU_S_OK);
        assert_int_equal(map(1, 0x5000, 0x1000, 0x5000 + (i << 12), RW),
                         VIOMMU_S_OK);
        assert_int_equal(dma(0x10, 0x5000, true, &to), 0);
        assert_int_equal(to, 0x5000 + (i << 12));
        if ( i & 1 )
            assert_int_equal(unmap(1, 0x5000, 0x1000), VIOMMU_S_OK);
        assert_int_equal(detach(1, 0x10), VIOMMU_S_OK);
        assert_int_not_equal(dma(0x10, 0x5000, true, &to), 0);
    }
    check_counters();
}

/* A sync that never comes: nothing is released, no answer is seen. */
static void fails_closed(void **state)
{
    long refs;
    uint16_t before;
    struct viommu_req_unmap r = unmap_req(1, 0x5000, 0x1000);

    assert_int_equal(attach(1, 0x10, 0), VIOMMU_S_OK);
    assert_int_equal(map(1, 0x5000, 0x1000, 0x5000, RW), VIOMMU_S_OK);
    assert_int_equal(dma(0x10, 0x5000, true, NULL), 0);
    refs = fake_refs;
    before = used()[1];
    sw[0].mode = SW_NEVER;
    fake_now_step = MILLISECS(1);
    post(&r, sizeof(r), 4);
    wr(0x50, 0);
    run();
    assert_int_equal(used()[1], before);
    assert_true(pd->broken);
    assert_true(dom.is_crashed);
    assert_int_equal(fake_refs, refs);
    fake_advance(SECONDS(1));
    assert_int_equal(fake_refs, refs);
    /* Only the rings go, which no device was given. */
    assert_int_equal(pviommu_relinquish(&dom), -EBUSY);
    assert_int_equal(fake_refs, refs - 2 * 3);
}

/* A 1G block over one that is pending, and one where a table is. */
static void huge_setup(void)
{
    ram = fake_guest_pages(&dom, 18);
    dom.arch.p2m.base = page_to_mfn(ram);
    dom.arch.p2m.size = 1UL << 18;
    dom.arch.p2m.order = 18;
}

static void huge_again(void **state)
{
    uint64_t to;

    assert_int_equal(attach(1, 0x10, 0), VIOMMU_S_OK);
    wr(0x70, 0);
    run_bare();
    huge_setup();
    drive(FEATURES);
    assert_int_equal(attach(1, 0x10, 0), VIOMMU_S_OK);
    assert_int_equal(map(1, 1UL << 30, 1UL << 30, 0, RW), VIOMMU_S_OK);
    assert_int_equal(dma(0x10, (1UL << 30) + 0x12345, true, &to), 0);
    assert_int_equal(to, 0x12345);
    assert_int_equal(unmap(1, 1UL << 30, 1UL << 30), VIOMMU_S_OK);
    assert_int_equal(dma(0x10, (1UL << 30) + 0x12345, true, &to),
                     EVT_F_TRANSLATION);
    assert_int_equal(map(1, 1UL << 30, 1UL << 30, 0, RW), VIOMMU_S_OK);
}

static void huge_over_table(void **state)
{
    uint64_t to;

    huge_again(state);
    assert_int_equal(map(1, 2UL << 30, 0x1000, 0, RW), VIOMMU_S_OK);
    assert_int_equal(unmap(1, 2UL << 30, 0x1000), VIOMMU_S_OK);
    assert_int_equal(map(1, 2UL << 30, 1UL << 30, 0, RW), VIOMMU_S_OK);
    assert_int_equal(dma(0x10, (2UL << 30) + 0x12345, true, &to), 0);
    assert_int_equal(to, 0x12345);
}

/* A 1G block that finds no page for its table, until some are taken back. */
static void huge_no_memory(void **state)
{
    struct page_info *pg, *held[POOL];
    unsigned int n = 0;
    uint64_t to;

    huge_again(state);
    assert_int_equal(unmap(1, 1UL << 30, 1UL << 30), VIOMMU_S_OK);
    assert_int_equal(map(1, 2UL << 30, 0x1000, 0, RW), VIOMMU_S_OK);
    assert_int_equal(unmap(1, 2UL << 30, 0x1000), VIOMMU_S_OK);
    while ( (pg = page_list_remove_head(&dom.arch.paging.p2m_freelist)) )
        held[n++] = pg;
    assert_int_equal(map(1, 1UL << 40, 1UL << 30, 0, RW), VIOMMU_S_OK);
    assert_int_equal(dma(0x10, (1UL << 40) + 0x12345, true, &to), 0);
    assert_int_equal(to, 0x12345);
    while ( n )
        page_list_add(held[--n], &dom.arch.paging.p2m_freelist);
}

/*
 * Random requests in batches, checked by DMA after each kick: every page of a
 * window is what the model says (strict), or that or older (lazy).
 */
#define WIN 1100
#define IOVA0 0x7fc00000UL
static struct { long page; bool first; } m[2][WIN];

static void random_requests(void **state)
{
    unsigned int step, i, n, a, nr, c;
    uint64_t to;

    for ( c = 0; c < 2; c++ )
        for ( i = 0; i < WIN; i++ )
            m[c][i].page = -1;
    dom.arch.p2m.order = 9;
    assert_int_equal(attach(0, 0x10, 0), VIOMMU_S_OK);
    assert_int_equal(attach(0, 0x11, 0), VIOMMU_S_OK);
    assert_int_equal(attach(1, 0x12, 0), VIOMMU_S_OK);
    for ( step = 0; step < 700; step++ )
    {
        uint8_t *status[8];
        int want[8];

        n = 1 + rnd() % 8;
        for ( i = 0; i < n; i++ )
        {
            unsigned int k;

            c = rnd() % 2;
            a = rnd() % WIN;
            nr = min(1 + (unsigned int)(rnd() % (rnd() % 4 ? 8 : 600)),
                     WIN - a);
            want[i] = VIOMMU_S_OK;
            if ( rnd() % 2 )
            {
                unsigned long page = rnd() % (GUEST_PAGES - 1000);
                struct viommu_req_map r;

                if ( !(rnd() % 4) )
                    page = (page & ~511UL) + a % 512;
                for ( k = a; k < a + nr; k++ )
                    if ( m[c][k].page >= 0 )
                        want[i] = VIOMMU_S_INVAL;
                for ( k = a; want[i] == VIOMMU_S_OK && k < a + nr; k++ )
                {
                    m[c][k].page = page + k - a;
                    m[c][k].first = k == a;
                }
                r = map_req(c, IOVA0 + ((uint64_t)a << 12), nr << 12,
                            page << 12, RW);
                status[i] = post(&r, sizeof(r), 4);
            }
            else
            {
                struct viommu_req_unmap r;

                if ( !(rnd() % 8) )
                    a = 0, nr = WIN;
                r = unmap_req(c, IOVA0 + ((uint64_t)a << 12), nr << 12);

                if ( (m[c][a].page >= 0 && !m[c][a].first) ||
                     (a + nr < WIN && m[c][a + nr].page >= 0 &&
                      !m[c][a + nr].first) )
                    want[i] = VIOMMU_S_RANGE;
                else
                    for ( k = a; k < a + nr; k++ )
                        m[c][k].page = -1;
                status[i] = post(&r, sizeof(r), 4);
            }
        }
        kick();
        for ( i = 0; i < n; i++ )
            assert_int_equal(*status[i], want[i]);
        for ( i = 0; i < 150; i++ )
        {
            unsigned int ep = 0x10 + rnd() % 3;

            a = rnd() % WIN;
            c = ep == 0x12;
            if ( m[c][a].page >= 0 )
            {
                /* Never a wrong translation, strict or lazy. */
                assert_int_equal(dma(ep, IOVA0 + ((uint64_t)a << 12), true,
                                     &to), 0);
                assert_int_equal(to, (uint64_t)m[c][a].page << 12);
            }
            else if ( pd->strict )
                assert_int_equal(dma(ep, IOVA0 + ((uint64_t)a << 12), true,
                                     &to), EVT_F_TRANSLATION);
            else
                (void)dma(ep, IOVA0 + ((uint64_t)a << 12), true, &to);
        }
        for ( i = 0; i < 2; i++ )
            fake_run_tasklets();
        if ( step % 50 == 49 )
            fake_advance(MILLISECS(11));
        check_counters();
        check_pool();
    }
}

/* The pool is exhausted: NOMEM, and what was mapped stays usable. */
static void pool_exhausted(void **state)
{
    unsigned int i, status = VIOMMU_S_OK;

    assert_int_equal(attach(1, 0x10, 0), VIOMMU_S_OK);
    for ( i = 0; i < 2 * POOL && status == VIOMMU_S_OK; i++ )
        status = map(1, (uint64_t)i << 21, 0x1000, 0x1000, RW);
    assert_int_equal(status, VIOMMU_S_NOMEM);
    assert_in_range(i, POOL - 10, POOL);
    assert_int_equal(dma(0x10, 0, true, NULL), 0);
    assert_int_equal(attach(2, 0x11, 0), VIOMMU_S_NOMEM);
    /* What is unmapped gives its tables back when they are needed. */
    assert_int_equal(unmap(1, 0, 0x1000), VIOMMU_S_OK);
    assert_int_equal(map(1, (1UL << 30) - 0x200000, 0x1000, 0x1000, RW),
                     VIOMMU_S_OK);
    assert_int_equal(unmap(1, 0, 1UL << 40), VIOMMU_S_OK);
    assert_int_equal(map(1, 3UL << 30, 0x1000, 0x1000, RW), VIOMMU_S_OK);
}

/* A reset puts all back, however much there is. */
static unsigned int pool_free(void)
{
    struct page_info *pg;
    unsigned int n = 0;

    page_list_for_each ( pg, &dom.arch.paging.p2m_freelist )
        n++;

    return n;
}

/*
 * A mapping of 4K takes its entry of 8 bytes and its share of table pages:
 * nothing of Xen's heap, nothing else of the pool.
 */
static void memory_of_a_mapping(void **state)
{
    const unsigned int n = 60 * 512;
    long heap;
    unsigned int i, tables;

    assert_int_equal(attach(1, 0x10, 0), VIOMMU_S_OK);
    heap = fake_allocs;
    tables = pool_free();
    /* Single pages, never two that could be one block's. */
    for ( i = 0; i < n; i++ )
        assert_int_equal(map(1, 0x40000000UL + ((uint64_t)i << 12), 0x1000,
                             (i * 7919UL % 4096) << 12, RW), VIOMMU_S_OK);
    tables -= pool_free();
    print_message("%u mappings of 4K: %u table pages, %u.%02u bytes each\n", n,
                  tables, tables * 4096 / n, tables * 4096 % n * 100 / n);
    assert_int_equal(fake_allocs, heap);
    /* 60 of level 3, and one of each level above. */
    assert_in_range(tables, n / 512, n / 512 + 2);
    assert_int_equal(detach(1, 0x10), VIOMMU_S_OK);
}

static void reset(void **state)
{
    unsigned int i;

    for ( i = 0; i < 4; i++ )
        assert_int_equal(attach(i, 0x10 + i, 0), VIOMMU_S_OK);
    assert_int_equal(map(1, 0, 0x1000000, 0, RW), VIOMMU_S_OK);
    wr(0x70, 0);
    run_bare();
    assert_true(slices < 1000);
    assert_int_equal(rd(0x70), 0);
    assert_int_equal(fake_refs, 0);
    assert_int_equal(pd->nr_contexts, 0);
    drive(FEATURES);
    assert_int_equal(attach(1, 0x10, 0), VIOMMU_S_OK);
    assert_int_equal(dma(0x10, 0, true, NULL), EVT_F_TRANSLATION);
}

/* Broken rings: NEEDS_RESET, or an answer without content; never a crash. */
static void bad_ring_head(void **state)
{
    avail()[2] = 200;
    avail()[1] = 1;
    wr(0x50, 0);
    run();
    assert_int_equal(rd(0x70) & VIRTIO_STATUS_NEEDS_RESET,
                     VIRTIO_STATUS_NEEDS_RESET);
    assert_int_equal(used()[1], 0);
}

static void bad_ring_index(void **state)
{
    avail()[1] = NUM + 1;
    wr(0x50, 0);
    run();
    assert_true(rd(0x70) & VIRTIO_STATUS_NEEDS_RESET);
}

static void bad_chains(void **state)
{
    unsigned int i;

    /* A loop, an index out of the table, readable after writable, ... */
    for ( i = 0; i < 5000; i++ )
    {
        unsigned int k;

        for ( k = 0; k < NUM; k++ )
        {
            desc()[k].addr = rnd() % 8 ? RINGS + 0x7000 + (rnd() % 0x2000)
                                       : rnd();
            desc()[k].len = rnd() % 4 ? rnd() % 100 : rnd();
            desc()[k].flags = rnd() % 3 ? rnd() % 4 : rnd() % 8;
            desc()[k].next = rnd() % (NUM + 4);
        }
        for ( k = 0; k < 0x2000; k += 8 )
            *(uint64_t *)gpa(RINGS + 0x7000 + k) = rnd() & rnd() & rnd();
        avail()[2 + avail_idx % NUM] = rnd() % NUM;
        avail()[1] = ++avail_idx;
        wr(0x50, 0);
        run();
        assert_int_equal(used()[1], avail_idx);
    }
    assert_int_equal(rd(0x70), 15);
}

/* A DMA that faults arrives in the guest's event queue. */
static void fault_event(void **state)
{
    struct vring_desc *d = gpa(RINGS + 0x3000);
    uint16_t *av = gpa(RINGS + 0x4000), *us = gpa(RINGS + 0x5000);
    struct viommu_fault *f = gpa(RINGS + 0x6000);

    assert_int_equal(attach(1, 0x12, 0), VIOMMU_S_OK);
    d[0] = (struct vring_desc){ RINGS + 0x6000, 24, VRING_DESC_F_WRITE, 0 };
    av[2] = 0;
    av[1] = 1;
    assert_int_equal(dma(0x12, 0xabcd000, true, NULL), EVT_F_TRANSLATION);
    sw_run_irqs(&sw[0]);
    while ( fake_run_tasklets() )
        continue;
    assert_int_equal(us[1], 1);
    assert_int_equal(f->reason, VIOMMU_FAULT_R_MAPPING);
    assert_int_equal(f->endpoint, 0x12);
    assert_int_equal(f->address, 0xabcd000);
    assert_int_equal(f->flags, VIOMMU_FAULT_F_ADDRESS | VIOMMU_FAULT_F_WRITE);
    /* No buffer: dropped and counted. */
    assert_int_equal(dma(0x12, 0xabce000, false, NULL), EVT_F_TRANSLATION);
    sw_run_irqs(&sw[0]);
    while ( fake_run_tasklets() )
        continue;
    assert_int_equal(atomic_read(&pd->stats.faults), 2);
    assert_int_equal(atomic_read(&pd->stats.faults_dropped), 1);
    assert_int_equal(dom.refs, 0);
}

/* Two functions behind one stream share what it translates with. */
static void shared_stream(void **state)
{
    struct pvi_ep_desc d = { .kind = PVI_EP_PCI, .nr_streams = 1 };

    d.s[0].smmu = smmu_by_node(&sw[0].node);
    d.s[0].sid = 0x20;
    d.epid = 0x20;
    assert_int_equal(pvi_endpoint_add(pd, &d), 0);
    assert_int_equal(pvi_endpoint_add(pd, &d), -EEXIST);
    d.epid = 0x21;
    assert_int_equal(pvi_endpoint_add(pd, &d), 0);
    assert_int_equal(attach(1, 0x20, 0), VIOMMU_S_OK);
    assert_int_equal(map(1, 0x5000, 0x1000, 0x5000, RW), VIOMMU_S_OK);
    assert_int_equal(attach(2, 0x21, 0), VIOMMU_S_UNSUPP);
    assert_int_equal(dma(0x20, 0x5000, true, NULL), 0);
    assert_int_equal(attach(1, 0x21, 0), VIOMMU_S_OK);
    assert_int_equal(detach(1, 0x20), VIOMMU_S_OK);
    assert_int_equal(dma(0x20, 0x5000, true, NULL), 0);
    assert_int_equal(detach(1, 0x21), VIOMMU_S_OK);
    assert_int_not_equal(dma(0x20, 0x5000, true, NULL), 0);
    assert_int_equal(pvi_endpoint_remove(pd, PVI_EP_PCI, 0x20), 0);
    assert_int_equal(pvi_endpoint_remove(pd, PVI_EP_PCI, 0x20), -ENODEV);
    assert_int_equal(pvi_endpoint_remove(pd, PVI_EP_PCI, 0x21), 0);
    d.s[0].sid = 1U << 16;
    assert_int_equal(pvi_endpoint_add(pd, &d), -ERANGE);
    assert_null(pvi_endpoint_find(pd, 0x21));
    check_counters();
}

/* Taken away while attached: blocked at once; it comes back attached. */
static void hot_remove(void **state)
{
    struct pvi_ep_desc d = { .kind = PVI_EP_PCI, .epid = 0x10,
                             .nr_streams = 1 };

    d.s[0].smmu = smmu_by_node(&sw[0].node);
    d.s[0].sid = 0x10;
    assert_int_equal(attach(1, 0x10, 0), VIOMMU_S_OK);
    assert_int_equal(map(1, 0x5000, 0x1000, 0x5000, RW), VIOMMU_S_OK);
    assert_int_equal(dma(0x10, 0x5000, true, NULL), 0);
    assert_int_equal(unmap(1, 0x5000, 0x1000), VIOMMU_S_OK);
    assert_int_equal(map(1, 0x6000, 0x1000, 0x6000, RW), VIOMMU_S_OK);
    assert_int_equal(pvi_endpoint_remove(pd, PVI_EP_PCI, 0x10), 0);
    assert_int_not_equal(dma(0x10, 0x6000, true, NULL), 0);
    assert_int_equal(pvi_endpoint_add(pd, &d), 0);
    assert_int_equal(dma(0x10, 0x6000, true, NULL), 0);
    assert_int_equal(dma(0x10, 0x5000, true, NULL), EVT_F_TRANSLATION);
    assert_int_equal(pvi_endpoint_remove(pd, PVI_EP_PCI, 0x10), 0);
    assert_int_equal(detach(1, 0x10), VIOMMU_S_OK);
    assert_null(pvi_endpoint_find(pd, 0x10));
    assert_int_equal(pd->nr_contexts, 0);
    check_counters();
}

static p2m_type_t hook_type;
static p2m_access_t hook_access;
static void p2m_hook(unsigned long gfn, mfn_t *mfn, p2m_type_t *t,
                     p2m_access_t *a, unsigned int *order)
{
    if ( gfn != 0x100 )
        return;
    *t = hook_type;
    *a = hook_access;
    if ( hook_type >= p2m_mmio_direct_dev && hook_type <= p2m_mmio_direct_c )
        *mfn = _mfn(0x8000);
}

/* Only what a device may have is mapped. */
static void p2m_types(void **state)
{
    static const struct { p2m_type_t t; p2m_access_t a; int ro, rw; } c[] = {
        { p2m_ram_rw, p2m_access_rwx, 0, 0 },
        { p2m_ram_rw, p2m_access_r, 0, 7 },
        { p2m_ram_rw, p2m_access_n, 7, 7 },
        { p2m_ram_ro, p2m_access_rwx, 0, 7 },
        { p2m_mmio_direct_dev, p2m_access_rwx, 0, 0 },
        { p2m_mmio_direct_nc, p2m_access_rwx, 0, 0 },
        { p2m_mmio_direct_c, p2m_access_rwx, 0, 0 },
        { p2m_map_foreign_rw, p2m_access_rwx, 0, 0 },
        { p2m_map_foreign_ro, p2m_access_rwx, 0, 7 },
        { p2m_grant_map_rw, p2m_access_rwx, 0, 0 },
        { p2m_grant_map_ro, p2m_access_rwx, 0, 7 },
        { p2m_iommu_map_rw, p2m_access_rwx, 0, 0 },
        { p2m_iommu_map_ro, p2m_access_rwx, 0, 7 },
        { p2m_invalid, p2m_access_rwx, 7, 7 },
    };
    unsigned int i;

    assert_int_equal(attach(1, 0x10, 0), VIOMMU_S_OK);
    dom.arch.p2m.hook = p2m_hook;
    for ( i = 0; i < ARRAY_SIZE(c); i++ )
    {
        hook_type = c[i].t;
        hook_access = c[i].a;
        assert_int_equal(map(1, 0x1000, 0x1000, 0x100000, 1), c[i].ro);
        assert_int_equal(unmap(1, 0x1000, 0x1000), VIOMMU_S_OK);
        assert_int_equal(map(1, 0x1000, 0x1000, 0x100000, 3), c[i].rw);
        if ( !c[i].rw )
            assert_int_equal(dma(0x10, 0x1000, true, NULL), 0);
        assert_int_equal(unmap(1, 0x1000, 0x1000), VIOMMU_S_OK);
    }
    dom.arch.p2m.hook = NULL;
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
#define L(f) cmocka_unit_test_setup_teardown(f, setup_lazy, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(registers), T(bad_queues), T(basic), T(permissions),
        T(bad_requests), L(bad_requests), T(probe),
        T(one_sync_per_kick), T(one_sync_for_many_slices), T(mixed_kicks),
        T(strict_is_final), L(lazy_window), L(lazy_overlap), L(lazy_count),
        T(few_commands), T(memory_of_a_mapping), L(memory_of_a_mapping),
        L(early), L(early_not_done), L(early_fails),
        L(lazy_pages), T(detach_flushes), L(detach_flushes), T(fails_closed),
        T(huge_again), L(huge_again), T(huge_over_table), T(huge_no_memory),
        T(random_requests),
        L(random_requests), T(pool_exhausted), L(pool_exhausted), T(reset),
        L(reset), T(bad_ring_head), T(bad_ring_index), T(bad_chains),
        T(fault_event), T(shared_stream),
        L(shared_stream), T(hot_remove), L(hot_remove), T(p2m_types),
        L(p2m_types),
    };

    return cmocka_run_group_tests_name("viommu", tests, NULL, NULL);
}

/* Probed SMMUs stay for ever. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "detect_leaks=0"; }
