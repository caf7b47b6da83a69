/* SPDX-License-Identifier: GPL-2.0-only */
/* Ranges become commands that cover them exactly, and as many as announced. */

#include "unit.h"

unsigned int pvi_smmu_event(const struct smmu_event *ev) { (void)ev; return 0; }

static struct swsmmu sw;
static struct smmu_device *smmu;

static void make(bool ril)
{
    fake_init();
    sw_init(&sw, "smmu");
    if ( ril )
        sw.idr3 |= 1 << 10;
    smmu = dev_new(&sw);
}

static int setup(void **state) { make(false); return 0; }
static int setup_ril(void **state) { make(true); return 0; }

static int teardown(void **state)
{
    no_violations(&sw);
    sw_exit(&sw);
    dev_free(smmu);
    return 0;
}

static unsigned int issue(uint64_t start, uint64_t last, bool leaf,
                          unsigned int level)
{
    struct smmu_batch b;
    unsigned int at = sw.nr_log;

    smmu_batch_init(&b, smmu);
    assert_int_equal(smmu_tlbi_range(&b, 0x1234, start, last, leaf, level), 0);
    assert_int_equal(smmu_batch_sync(&b), 0);
    return sw.nr_log - at - 1;
}

/* The commands logged from @at on cover start..last, without gap or overlap. */
static void check_cover(unsigned int at, uint64_t start, uint64_t last,
                        bool leaf, unsigned int level, bool ril)
{
    uint64_t next = start, s, pages;
    unsigned int i, ttl;

    for ( i = at; (sw.log[i].w[0] & 0xff) != CMD_OP_SYNC; i++ )
    {
        const struct sw_cmd *c = &sw.log[i];

        assert_int_equal(c->w[0] & 0xff, CMD_OP_TLBI_S2_IPA);
        assert_int_equal(c->w[0] >> 32, 0x1234);
        assert_int_equal(c->w[1] & 1, leaf);
        if ( !sw_cmd_decode_range(c, &s, &pages, &ttl) )
            pages = ril || !leaf || !level ? 1 : 1UL << (9 * (3 - level));
        else
            assert_int_equal(ttl, leaf ? level : 0);
        assert_int_equal(s, next);
        next += pages << 12;
    }
    assert_int_equal(next, last + 1);
}

static void range(uint64_t start, uint64_t pages, bool leaf,
                  unsigned int level, bool ril)
{
    uint64_t last = start + (pages << 12) - 1;
    unsigned int at = sw.nr_log, n = issue(start, last, leaf, level);

    check_cover(at, start, last, leaf, level, ril);
    if ( ril )
    {
        assert_in_range(n, 1, 8);
        assert_int_equal(n, smmu_tlbi_range_cost(smmu, pages, leaf, level));
    }
    else
        assert_int_equal(n, smmu_tlbi_range_cost(smmu, pages, leaf, level));
}

static void pages_no_ril(void **state)
{
    unsigned int n;

    for ( n = 1; n < 200; n++ )
    {
        range(0x40000000, n, true, 3, false);
        range(0xfffff000, n, true, 0, false);
        range(0x1000, n, false, 0, false);
    }
    range(0, 512, false, 0, false);
    /* The last page there is. */
    range(((1UL << 48) - 4096), 1, true, 3, false);
}

static void blocks_no_ril(void **state)
{
    range(0x40000000, 512, true, 2, false);
    range(0x40200000, 512 * 17, true, 2, false);
    range(0x40000000, 512 * 512, true, 1, false);
    range(0x4000000000, 512 * 512 * 5, true, 1, false);
}

static void ranges_ril(void **state)
{
    unsigned int i;
    uint64_t n;

    for ( n = 1; n < 3000; n++ )
    {
        range(0x40000000, n, true, 3, true);
        range(0x40003000, n, false, 0, true);
        range(0x3000, n, true, 0, true);
    }
    for ( n = 1; n < 70; n++ )
    {
        range(0x40200000, n << 9, true, 2, true);
        range(0x40000000, n << 18, true, 1, true);
    }
    for ( i = 0; i < 32; i++ )
        range(0, 1UL << i, false, 0, true);
    for ( i = 0; i < 20000; i++ )
    {
        unsigned int bits = rnd() % 32;
        uint64_t start;

        n = 1 + rnd() % (1UL << bits);
        start = (rnd() % ((1UL << 36) - n)) << 12;
        range(start, n, rnd() & 1, 0, true);
    }
}

/* From 16 TiB on: SCALE is at most 31. */
static void huge_ril(void **state)
{
    unsigned int i;

    range(0, (1UL << 36) - 1, true, 0, true);
    for ( i = 32; i < 36; i++ )
    {
        range(0, 1UL << i, false, 0, true);
        range(0x1000, (1UL << i) + 1, false, 0, true);
    }
    /* All of the address space. */
    range(0, 1UL << 36, false, 0, true);
}

/* One page never is a range command (NUM = SCALE = 0 without a level). */
static void one_page_ril(void **state)
{
    assert_int_equal(issue(0x5000, 0x5fff, true, 3), 1);
    assert_int_equal(sw.log[sw.nr_log - 2].w[1], 0x5001);
    assert_int_equal(sw.log[sw.nr_log - 2].w[0], 0x12340000002aUL);
    assert_int_equal(issue(0x5000, 0x5fff, false, 0), 1);
    assert_int_equal(sw.log[sw.nr_log - 2].w[1], 0x5000);
}

static unsigned int cost_of(uint64_t pages)
{
    return smmu_tlbi_range_cost(smmu, pages, false, 0);
}

static void cost(void **state)
{
    bool ril = smmu->flags & SMMU_F_RIL;

    assert_int_equal(cost_of(1), 1);
    assert_int_equal(cost_of(31), ril ? 1 : 31);
    assert_int_equal(cost_of(33), ril ? 2 : 33);
    assert_int_equal(cost_of(512), ril ? 1 : 512);
    assert_int_equal(cost_of(1UL << 36),
                     ril ? 1 : UINT_MAX);
    /* Blocks of 2M need one command each. */
    assert_int_equal(smmu_tlbi_range_cost(smmu, 1024, true, 2), ril ? 1 : 2);
}

static void vmid(void **state)
{
    struct smmu_batch b;

    smmu_batch_init(&b, smmu);
    assert_int_equal(smmu_tlbi_vmid(&b, 0xfedc), 0);
    assert_int_equal(smmu_batch_sync(&b), 0);
    assert_int_equal(sw.log[0].w[0], 0xfedc00000028UL);
    assert_int_equal(sw.log[0].w[1], 0);
}

/* More commands than a batch holds: submitted on the way. */
static void long_range(void **state)
{
    range(0, 1000, true, 3, false);
    assert_int_equal(sw.nr_syncs, 1);
}

/* A queue that takes nothing: the error comes back at once. */
static void error(void **state)
{
    struct smmu_batch b;
    unsigned int i;

    sw.mode = SW_NEVER;
    fake_now_step = MILLISECS(1);
    smmu_batch_init(&b, smmu);
    for ( i = 0; i < (1U << smmu->cmdq.log2) / SMMU_BATCH_MAX; i++ )
        assert_int_equal(smmu_tlbi_range(&b, 1, 0,
                                         SMMU_BATCH_MAX * 4096UL - 1, true, 3),
                         0);
    if ( smmu->flags & SMMU_F_RIL )
        return;
    assert_int_equal(smmu_tlbi_range(&b, 1, 0, 200 * 4096UL, true, 3),
                     -ETIMEDOUT);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
#define R(f) cmocka_unit_test_setup_teardown(f, setup_ril, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(pages_no_ril), T(blocks_no_ril), T(cost), T(vmid), T(long_range),
        T(error), R(ranges_ril), R(huge_ril), R(one_page_ril), R(cost), R(vmid),
    };

    return cmocka_run_group_tests_name("tlbi", tests, NULL, NULL);
}
