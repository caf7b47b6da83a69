/* SPDX-License-Identifier: GPL-2.0-only */
/* The command queue: order, wrap, completion, errors, threads. */

#include "unit.h"

unsigned int pvi_smmu_event(const struct smmu_event *ev) { (void)ev; return 0; }

static struct swsmmu sw;
static struct smmu_device *smmu;
static unsigned int queue_bits = 11;

static int setup(void **state)
{
    fake_init();
    sw_init(&sw, "smmu");
    sw.idr1 = (sw.idr1 & ~(0x1fU << 21)) | queue_bits << 21;
    smmu = dev_new(&sw);
    return 0;
}

static int teardown(void **state)
{
    no_violations(&sw);
    assert_false(fake_irqs_off);
    assert_int_equal(fake_locks, 0);
    sw_exit(&sw);
    dev_free(smmu);
    queue_bits = 11;
    return 0;
}

/* Completion by the SMMU's write. */
static int setup_msi(void **state)
{
    fake_init();
    sw_init(&sw, "smmu");
    sw.cs_msi = true;
    smmu = dev_new(&sw);
    assert_non_null(smmu->cmdq.word);
    return 0;
}

static int setup_small(void **state)
{
    queue_bits = 7;
    return setup(state);
}

static int setup_noncoherent(void **state)
{
    fake_init();
    sw_init(&sw, "smmu");
    sw.noncoherent = true;
    smmu = dev_new(&sw);
    return 0;
}

static void add(struct smmu_batch *b, unsigned int vmid)
{
    assert_int_equal(smmu_batch_add(b, CMD_OP_TLBI_S12_VMALL |
                                       CMD_TLBI_VMID(vmid), 0), 0);
}

#define N() (1U << smmu->cmdq.log2)

static void size(void **state)
{
    struct smmu_device s = { .node = &sw.node, .base = smmu->base };
    unsigned int i;

    sw_enable(&sw, 0);
    /* CPUs x (batch + sync), at least 2^10, at most 2^13, and IDR1.CMDQS. */
    fake_nr_cpus = 4;
    assert_int_equal(smmu->cmdq.log2, 10);
    fake_nr_cpus = 64;
    assert_int_equal(smmu_cmdq_init(&s, 19), 0);
    assert_int_equal(s.cmdq.log2, 13);
    assert_int_equal(sw.cmdq_base & 0x1f, 13);
    assert_int_equal(virt_to_maddr(s.cmdq.base) & ((16UL << 13) - 1), 0);
    xfree(s.cmdq.phase);
    fake_nr_cpus = 4;
    for ( i = 1; i < 4; i++ )
    {
        s.flags |= SMMU_F_MSI;
        fake_alloc_fail = i;
        assert_int_equal(smmu_cmdq_init(&s, 10), -ENOMEM);
        assert_null(s.cmdq.base);
        assert_null(s.cmdq.word);
    }
}

/* However small the queue: a batch and its sync of each CPU fit together. */
static void size_and_cpus(void **state)
{
    struct smmu_device s = { .node = &sw.node, .base = smmu->base };
    unsigned int bits, cpus;

    sw_enable(&sw, 0);
    for ( bits = 0; bits <= 19; bits++ )
        for ( cpus = 1; cpus <= 512; cpus *= 2 )
        {
            int rc;

            fake_nr_cpus = cpus;
            rc = smmu_cmdq_init(&s, bits);
            if ( cpus * 2 > 1U << bits )
            {
                assert_int_equal(rc, -ENODEV);
                continue;
            }
            assert_int_equal(rc, 0);
            assert_in_range(s.cmdq.log2, 0, bits);
            assert_in_range(s.cmdq.batch, 1, SMMU_BATCH_MAX);
            assert_true(cpus * (s.cmdq.batch + 1) <= 1U << s.cmdq.log2);
            if ( bits >= 10 && cpus <= 8 )
                assert_int_equal(s.cmdq.batch, SMMU_BATCH_MAX);
            xfree(s.cmdq.phase);
        }
    fake_nr_cpus = 4;
    assert_true(fake_logged("2^6 entries (IDR1.CMDQS) is too small for 64 CPUs"));
    assert_true(fake_logged("batches of 1 commands, for 64 CPUs share a queue of 2^7"));
}

/* Small batches are submitted when they are full. */
static void small_batches(void **state)
{
    struct smmu_batch b;
    unsigned int i, prod = 0;

    sw.mode = SW_MANUAL;
    smmu_batch_init(&b, smmu);
    assert_int_equal(smmu->cmdq.batch, 7);
    for ( i = 0; i < 20; i++ )
    {
        add(&b, i);
        assert_in_range(sw.cmdq_prod - prod, 0, 7);
        prod = sw.cmdq_prod;
    }
    assert_int_equal(prod, 14);
    sw.mode = SW_AT_ONCE;
    assert_int_equal(smmu_batch_sync(&b), 0);
    assert_int_equal(sw_count(&sw, CMD_OP_TLBI_S12_VMALL), 20);
}

/* Every command arrives once and in order, over many passes. */
static void wrap(void **state)
{
    struct smmu_batch b;
    unsigned int want = 0, i, n, k;

    sw.mode = SW_LATE;
    smmu_batch_init(&b, smmu);
    for ( i = 0; i < 500; i++ )
    {
        n = rnd() % 100;
        for ( k = 0; k < n; k++ )
            add(&b, want++ & 0xffff);
        sw.late = 1 + rnd() % 3;
        assert_int_equal(smmu_batch_sync(&b), 0);
    }
    for ( i = n = 0; i < sw.nr_log; i++ )
        if ( (sw.log[i].w[0] & 0xff) == CMD_OP_TLBI_S12_VMALL )
        {
            assert_int_equal(sw.log[i].w[0] >> 32, n & 0xffff);
            n++;
        }
    assert_int_equal(n, want);
    assert_true(smmu->cmdq.prod > 4 * N());
    assert_int_equal(atomic_read(&smmu->stats.tlbi), want);
    assert_int_equal(atomic_read(&smmu->stats.sync), 500);
    assert_int_equal(sw.nr_syncs, 500);
}

/* The free running index passes 2^32. */
static void index_overflow(void **state)
{
    struct smmu_batch b;
    unsigned int i;

    /* As if 2^32 - 100 commands had gone through: the parity must agree. */
    smmu->cmdq.prod = smmu->cmdq.cons = smmu->cmdq.published = -100U;
    memset(smmu->cmdq.phase, 1, N());
    for ( i = -100U & (N() - 1); i < N(); i++ )
        smmu->cmdq.phase[i] = 1 + !((-100U >> smmu->cmdq.log2) & 1);
    for ( i = 0; i < (-100U & (N() - 1)); i++ )
        smmu->cmdq.phase[i] = 1 + ((-100U >> smmu->cmdq.log2) & 1);
    for ( i = 0; smmu->cmdq.word && i < N(); i++ )
        smmu->cmdq.word[i] = -101U - ((-101U - i) & (N() - 1));
    sw.cmdq_prod = sw.cmdq_cons = -100U & (2 * N() - 1);
    sw.mode = SW_LATE;
    smmu_batch_init(&b, smmu);
    for ( i = 0; i < 300; i++ )
    {
        add(&b, i);
        if ( i % 7 == 0 )
            assert_int_equal(smmu_batch_sync(&b), 0);
    }
    assert_int_equal(smmu_batch_sync(&b), 0);
    assert_int_equal(sw_count(&sw, CMD_OP_TLBI_S12_VMALL), 300);
    assert_true(smmu->cmdq.prod < 1000);
}

/* A batch that doesn't fit waits, and what is refused leaves nothing. */
static void full(void **state)
{
    struct smmu_batch b;
    uint32_t ticket;
    unsigned int i, prod;

    sw.mode = SW_MANUAL;
    smmu_batch_init(&b, smmu);
    for ( i = 0; i < N(); i++ )
    {
        add(&b, i);
        if ( b.nr == SMMU_BATCH_MAX )
            assert_int_equal(smmu_batch_submit(&b, false, NULL), 0);
    }
    assert_int_equal(b.nr, 0);
    /* All N slots in use: PROD and CONS differ in the wrap bit only. */
    assert_int_equal(sw.cmdq_prod ^ sw.cmdq_cons, N());
    prod = sw.cmdq_prod;

    fake_now_step = MICROSECS(500);
    add(&b, 1);
    assert_int_equal(smmu_batch_submit(&b, true, &ticket), -ETIMEDOUT);
    assert_int_equal(sw.cmdq_prod, prod);
    assert_int_equal(atomic_read(&smmu->stats.cmdq_timeout), 1);
    assert_int_equal(atomic_read(&smmu->stats.cmdq_full), 1);
    assert_int_equal(sw_consume(&sw, UINT_MAX), N());
    assert_true(smmu->dead);
}

static void full_then_space(void **state)
{
    struct smmu_batch b;
    unsigned int i;

    sw.mode = SW_LATE;
    sw.late = 5;
    smmu_batch_init(&b, smmu);
    for ( i = 0; i < 3 * N(); i++ )
        add(&b, i);
    assert_int_equal(smmu_batch_sync(&b), 0);
    assert_int_equal(sw_count(&sw, CMD_OP_TLBI_S12_VMALL), 3 * N());
    assert_true(atomic_read(&smmu->stats.cmdq_full) > 0);
    assert_int_equal(atomic_read(&smmu->stats.cmdq_timeout), 0);
}

/* A wait ends with its own sync: not before, and not with the queue empty. */
static void own_slot(void **state)
{
    struct smmu_batch b;
    uint32_t t1, t2;

    sw.mode = SW_MANUAL;
    fake_now_step = MILLISECS(1);
    smmu_batch_init(&b, smmu);
    add(&b, 1);
    assert_int_equal(smmu_batch_submit(&b, true, &t1), 0);
    add(&b, 2);
    assert_int_equal(smmu_batch_submit(&b, true, &t2), 0);

    assert_int_equal(sw_consume(&sw, 2), 2);
    assert_int_equal(smmu_sync_wait(smmu, t1), 0);
    assert_int_equal(sw_consume(&sw, 1), 1);
    assert_int_equal(smmu_sync_wait(smmu, t1), 0);
    assert_int_equal(smmu_sync_wait(smmu, t2), -ETIMEDOUT);
    assert_true(smmu->dead);
}

/* A completely full queue is not taken for a drained one. */
static void own_slot_full(void **state)
{
    struct smmu_batch b;
    uint32_t ticket;
    unsigned int i;

    sw.mode = SW_MANUAL;
    fake_now_step = MILLISECS(1);
    smmu_batch_init(&b, smmu);
    for ( i = 0; i < N() - 1; i++ )
    {
        add(&b, i);
        if ( b.nr == SMMU_BATCH_MAX )
            assert_int_equal(smmu_batch_submit(&b, false, NULL), 0);
    }
    assert_int_equal(smmu_batch_submit(&b, true, &ticket), 0);
    assert_int_equal(sw.cmdq_prod ^ sw.cmdq_cons, N());
    assert_int_equal(smmu_sync_wait(smmu, ticket), -ETIMEDOUT);
}

static void timeout(void **state)
{
    struct smmu_batch b;
    s_time_t began;

    sw.mode = SW_NEVER;
    fake_now_step = MICROSECS(100);
    began = fake_now;
    smmu_batch_init(&b, smmu);
    add(&b, 1);
    assert_int_equal(smmu_batch_sync(&b), -ETIMEDOUT);
    assert_in_range(fake_now - began, SECONDS(1), SECONDS(1) + MILLISECS(10));
    assert_true(fake_logged("sync timed out"));
    assert_int_equal(atomic_read(&smmu->stats.cmdq_timeout), 1);
    assert_true(smmu->dead);

    /* It comes back: still nothing is believed, and it was said once. */
    sw.mode = SW_AT_ONCE;
    add(&b, 1);
    assert_int_equal(smmu_batch_sync(&b), -ETIMEDOUT);
    assert_ptr_equal(strstr(strstr(fake_log(), "timed out") + 1, "timed out"),
                     NULL);
}

static int ill_at;
static int inject_kind;
static int inject_once(struct swsmmu *s, const struct sw_cmd *c, unsigned int n)
{
    if ( (int)n == ill_at )
    {
        ill_at = -1;
        return inject_kind;
    }
    return SW_OK;
}

/* A rejected command is replaced by one that does more, from the wait. */
static void ill(void **state)
{
    static const struct { uint64_t w0, w1; unsigned int by; } cases[] = {
        { CMD_OP_TLBI_S12_VMALL | CMD_TLBI_VMID(7), 0, CMD_OP_TLBI_NSNH_ALL },
        { CMD_OP_TLBI_S2_IPA | CMD_TLBI_VMID(7), 0x1000, CMD_OP_TLBI_NSNH_ALL },
        { CMD_OP_CFGI_STE | CMD_CFGI_STE_SID(9), 1, CMD_OP_CFGI_ALL },
        { CMD_OP_CFGI_ALL | CMD_CFGI_STE_SID(9), 0, CMD_OP_CFGI_ALL },
    };
    struct smmu_batch b;
    unsigned int i, mode;

    fake_now_step = 100;
    sw.inject = inject_once;
    inject_kind = SW_ILL;
    smmu_batch_init(&b, smmu);
    for ( mode = SW_AT_ONCE; mode <= SW_LATE; mode++ )
        for ( i = 0; i < ARRAY_SIZE(cases); i++ )
        {
            unsigned int at = sw.nr_log;

            sw.mode = mode;
            ill_at = sw.nr_consumed + 1;
            add(&b, 1);
            assert_int_equal(smmu_batch_add(&b, cases[i].w0, cases[i].w1), 0);
            add(&b, 2);
            assert_int_equal(smmu_batch_sync(&b), 0);
            assert_int_equal(sw.nr_log - at, 4);
            assert_int_equal(sw.log[at + 1].w[0], cases[i].by);
            assert_int_equal(sw.log[at + 1].w[1],
                             cases[i].by == CMD_OP_CFGI_ALL ? 31 : 0);
            assert_int_equal(sw.log[at + 2].w[0] >> 32, 2);
        }
    assert_int_equal(atomic_read(&smmu->stats.cmdq_ill), 8);
    assert_false(smmu->dead);
    assert_int_equal(sw.gerror, sw.gerrorn);
}

static int inject_always(struct swsmmu *s, const struct sw_cmd *c,
                         unsigned int n)
{
    return (c->w[0] & 0xff) == CMD_OP_TLBI_NSNH_ALL ? SW_ILL : SW_OK;
}

/* What can't be repaired is reported, and the queue goes on for others. */
static void ill_unrepairable(void **state)
{
    struct smmu_batch b;

    fake_now_step = 100;
    sw.inject = inject_always;
    smmu_batch_init(&b, smmu);
    assert_int_equal(smmu_batch_add(&b, CMD_OP_TLBI_NSNH_ALL, 0), 0);
    assert_int_equal(smmu_batch_sync(&b), -ETIMEDOUT);
    assert_true(smmu->dead);
    assert_true(fake_logged("rejected (error 1)"));
    assert_int_equal(sw.cmdq_cons, sw.cmdq_prod);
}

static void ill_sync(void **state)
{
    struct smmu_batch b;

    fake_now_step = 100;
    sw.inject = inject_once;
    inject_kind = SW_ILL;
    ill_at = sw.nr_consumed + 1;
    smmu_batch_init(&b, smmu);
    add(&b, 1);
    assert_int_equal(smmu_batch_sync(&b), -ETIMEDOUT);
    assert_true(smmu->dead);
}

static void abt(void **state)
{
    struct smmu_batch b;

    fake_now_step = 100;
    sw.inject = inject_once;
    inject_kind = SW_ABT;
    ill_at = sw.nr_consumed + 1;
    smmu_batch_init(&b, smmu);
    add(&b, 1);
    add(&b, 2);
    assert_int_equal(smmu_batch_sync(&b), 0);
    assert_int_equal(sw.nr_log, 3);
    assert_int_equal(sw.log[1].w[0] >> 32, 2);
    assert_int_equal(atomic_read(&smmu->stats.cmdq_abt), 1);
    assert_int_equal(atomic_read(&smmu->stats.cmdq_ill), 0);
    assert_false(smmu->dead);
}

static int inject_abt(struct swsmmu *s, const struct sw_cmd *c, unsigned int n)
{
    return SW_ABT;
}

/* An abort that stays ends in a time-out, not in an endless loop. */
static void abt_stays(void **state)
{
    struct smmu_batch b;

    fake_now_step = MICROSECS(10);
    sw.inject = inject_abt;
    smmu_batch_init(&b, smmu);
    add(&b, 1);
    assert_int_equal(smmu_batch_sync(&b), -ETIMEDOUT);
    assert_true(smmu->dead);
    assert_true(atomic_read(&smmu->stats.cmdq_abt) > 1);
}

/* A full queue that stands on an error is repaired by who wants space. */
static void full_repaired(void **state)
{
    struct smmu_batch b;
    unsigned int i;

    fake_now_step = 100;
    sw.mode = SW_LATE;
    sw.inject = inject_once;
    inject_kind = SW_ILL;
    ill_at = 3;
    smmu_batch_init(&b, smmu);
    for ( i = 0; i < 2 * N(); i++ )
        add(&b, i);
    assert_int_equal(smmu_batch_sync(&b), 0);
    assert_int_equal(atomic_read(&smmu->stats.cmdq_ill), 1);
    assert_int_equal(sw_count(&sw, CMD_OP_TLBI_S12_VMALL), 2 * N() - 1);
    assert_int_equal(sw_count(&sw, CMD_OP_TLBI_NSNH_ALL), 1);
}

/* Where the interrupt can't come: the one that waits repairs. */
static void interrupts_off(void **state)
{
    static const int kinds[] = { SW_ILL, SW_ABT };
    struct smmu_batch b;
    unsigned long flags;
    unsigned int i;

    fake_now_step = 100;
    sw.inject = inject_once;
    smmu_batch_init(&b, smmu);
    for ( i = 0; i < ARRAY_SIZE(kinds); i++ )
    {
        inject_kind = kinds[i];
        ill_at = sw.nr_consumed;
        local_irq_save(flags);
        add(&b, 1);
        assert_int_equal(smmu_batch_sync(&b), 0);
        assert_true(fake_irqs_off);
        local_irq_restore(flags);
        assert_int_equal(sw.gerror, sw.gerrorn);
    }
    /* And a time-out is noticed. */
    sw.mode = SW_NEVER;
    fake_now_step = MILLISECS(1);
    local_irq_save(flags);
    add(&b, 1);
    assert_int_equal(smmu_batch_sync(&b), -ETIMEDOUT);
    local_irq_restore(flags);
}

/* A device's TLB that was not invalidated: the queue goes on, nobody believes. */
static void atc_timeout(void **state)
{
    struct smmu_batch b;

    fake_now_step = 100;
    sw.inject = inject_once;
    inject_kind = 3;
    ill_at = sw.nr_consumed + 1;
    smmu_batch_init(&b, smmu);
    add(&b, 1);
    assert_int_equal(smmu_batch_sync(&b), -ETIMEDOUT);
    assert_true(smmu->dead);
    assert_int_equal(atomic_read(&smmu->stats.cmdq_atc), 1);
    assert_int_equal(sw.cmdq_cons, sw.cmdq_prod);
    assert_int_equal(sw_count(&sw, CMD_OP_SYNC), 1);
}

/* The word is what is polled, not the register. */
static void msi_polls(void **state)
{
    struct smmu_batch b;
    unsigned int i;

    fake_now_step = 100;
    sw.mode = SW_LATE;
    sw.late = 1000;
    smmu_batch_init(&b, smmu);
    for ( i = 0; i < 50; i++ )
    {
        add(&b, i);
        assert_int_equal(smmu_batch_sync(&b), 0);
    }
    /* Two commands of 1000 polls each: the register at each 64th. */
    assert_in_range(sw.cons_reads, 1, 50 * 2 * (1000 / 64 + 2));
    assert_in_range(sw.relaxes, 50 * 1900, 50 * 2100);
    assert_int_equal(sw_count(&sw, CMD_OP_SYNC), 50);
}

/* The write comes first, the register later: cons is not confused. */
static void msi_early(void **state)
{
    struct smmu_batch b;
    uint32_t ticket;
    unsigned int i;

    sw.mode = SW_MANUAL;
    smmu_batch_init(&b, smmu);
    for ( i = 0; i < 5 * N(); i++ )
    {
        assert_int_equal(smmu_batch_submit(&b, true, &ticket), 0);
        smmu->cmdq.word[ticket & (N() - 1)] = ticket;
        assert_int_equal(smmu_sync_wait(smmu, ticket), 0);
        assert_int_equal(sw_consume(&sw, 1), 1);
    }
    assert_int_equal(sw.nr_syncs, 5 * N());
    sw.mode = SW_AT_ONCE;
    sw.msi_early = true;
    for ( i = 0; i < 2 * N(); i++ )
        assert_int_equal(smmu_batch_sync(&b), 0);
    /* The register was read for space only, once a pass. */
    assert_in_range(sw.cons_reads, 1, 20);
}

/* Writes that get lost cost time, and nothing else. */
static void msi_lost(void **state)
{
    struct smmu_batch b;
    unsigned int i;

    fake_now_step = 100;
    sw.msi_lost = true;
    smmu_batch_init(&b, smmu);
    for ( i = 0; i < 3 * N(); i++ )
        assert_int_equal(smmu_batch_sync(&b), 0);
    assert_int_equal(sw.nr_syncs, 3 * N());
    assert_false(smmu->dead);
}

/*
 * What a word holds from long ago is not completion, also when more than 2^31
 * commands have passed the slot since.
 */
static void msi_stale(void **state)
{
    struct smmu_batch b;
    uint32_t ticket;
    unsigned int i;

    sw.mode = SW_NEVER;
    fake_now_step = MILLISECS(1);
    smmu_batch_init(&b, smmu);
    for ( i = 0; i < N(); i++ )
        smmu->cmdq.word[i] = i + 0x7fffff00;
    add(&b, 1);
    assert_int_equal(smmu_batch_submit(&b, true, &ticket), 0);
    assert_int_equal(smmu_sync_wait(smmu, ticket), -ETIMEDOUT);
}

/* A sync of a later pass in the slot: this one was consumed. */
static void msi_overtaken(void **state)
{
    struct smmu_batch b;
    uint32_t first, ticket;
    unsigned int i;

    smmu_batch_init(&b, smmu);
    assert_int_equal(smmu_batch_submit(&b, true, &first), 0);
    sw.msi_lost = true;
    for ( i = 0; i < 10 * N(); i++ )
        assert_int_equal(smmu_batch_submit(&b, true, &ticket), 0);
    sw.mode = SW_NEVER;
    fake_now_step = MILLISECS(1);
    assert_int_equal(smmu_sync_wait(smmu, first), 0);
}

/* Nothing pending: repair does nothing. */
static void repair_idle(void **state)
{
    smmu_cmdq_repair(smmu);
    assert_int_equal(sw.gerrorn, 0);
    assert_int_equal(atomic_read(&smmu->stats.cmdq_ill), 0);
}

/* Error NONE with the bit set: acknowledged only. */
static void repair_none(void **state)
{
    sw_gerror(&sw, 1);
    smmu_cmdq_repair(smmu);
    assert_int_equal(sw.gerror, sw.gerrorn);
    assert_false(smmu->dead);
}

static void empty(void **state)
{
    struct smmu_batch b;
    uint32_t ticket;

    smmu_batch_init(&b, smmu);
    assert_int_equal(smmu_batch_submit(&b, false, &ticket), 0);
    assert_int_equal(sw.nr_log, 0);
    assert_int_equal(smmu_batch_sync(&b), 0);
    assert_int_equal(sw.nr_log, 1);
}

/* A walk that doesn't snoop: every slot was cleaned before PROD. */
static void noncoherent(void **state)
{
    struct smmu_batch b;
    unsigned int i;

    smmu_batch_init(&b, smmu);
    fake_now_step = 100;
    for ( i = 0; i < 3 * N(); i++ )
    {
        add(&b, i & 0xffff);
        if ( i % 13 == 0 )
            assert_int_equal(smmu_batch_sync(&b), 0);
    }
    sw.inject = inject_once;
    inject_kind = SW_ILL;
    ill_at = sw.nr_consumed;
    add(&b, 5);
    assert_int_equal(smmu_batch_sync(&b), 0);
    assert_int_equal(sw_count(&sw, CMD_OP_TLBI_S12_VMALL), 3 * N());
    assert_int_equal(sw_count(&sw, CMD_OP_TLBI_NSNH_ALL), 1);
}

/*
 * Threads.  Each has a counter that its commands carry in the VMID; at the end
 * of each wait the SMMU must have consumed all the thread's commands.
 */
#define THREADS 4
static unsigned int seen[THREADS];      /* by the SMMU's thread */
static int rounds, bad;

static int note(struct swsmmu *s, const struct sw_cmd *c, unsigned int n)
{
    if ( (c->w[0] & 0xff) == CMD_OP_TLBI_S2_IPA )
    {
        unsigned int who = c->w[0] >> 32 & 0xff, nr = c->w[1] >> 12;

        /* One's own commands stay in order. */
        if ( nr != seen[who] + 1 )
            __atomic_store_n(&bad, 1, __ATOMIC_RELAXED);
        __atomic_store_n(&seen[who], nr, __ATOMIC_RELEASE);
    }
    return SW_OK;
}

static int note_with_errors(struct swsmmu *s, const struct sw_cmd *c,
                            unsigned int n)
{
    static unsigned int calls;

    if ( ++calls % 97 == 0 )
        return SW_ABT;
    return note(s, c, n);
}

static void *producer(void *arg)
{
    unsigned int who = (unsigned long)arg, nr = 0, i, k, n, x = who + 1;
    struct smmu_batch b;

    smmu_batch_init(&b, smmu);
    for ( i = 0; i < rounds; i++ )
    {
        x = x * 1103515245 + 12345;
        n = 1 + (x >> 16) % (i % 5 ? 4 : 3 * SMMU_BATCH_MAX);
        for ( k = 0; k < n; k++ )
            if ( smmu_batch_add(&b, CMD_OP_TLBI_S2_IPA | CMD_TLBI_VMID(who),
                                (uint64_t)++nr << 12) )
                __atomic_store_n(&bad, 2, __ATOMIC_RELAXED);
        if ( smmu_batch_sync(&b) )
            __atomic_store_n(&bad, 3, __ATOMIC_RELAXED);
        if ( __atomic_load_n(&seen[who], __ATOMIC_ACQUIRE) != nr )
            __atomic_store_n(&bad, 4, __ATOMIC_RELAXED);
        if ( fake_irqs_off )
            __atomic_store_n(&bad, 5, __ATOMIC_RELAXED);
    }
    return (void *)(unsigned long)nr;
}

static void run_threads(int n)
{
    pthread_t t[THREADS];
    unsigned long i, total = 0;
    void *nr;

    bad = 0;
    rounds = n;
    memset(seen, 0, sizeof(seen));
    fake_real_time = true;
    sw_thread_start(&sw);
    for ( i = 0; i < THREADS; i++ )
        pthread_create(&t[i], NULL, producer, (void *)i);
    for ( i = 0; i < THREADS; i++ )
    {
        pthread_join(t[i], &nr);
        total += (unsigned long)nr;
    }
    sw_thread_stop(&sw);
    assert_int_equal(bad, 0);
    assert_int_equal(sw_count(&sw, CMD_OP_TLBI_S2_IPA), total);
    assert_int_equal(atomic_read(&smmu->stats.tlbi), total);
    assert_int_equal(sw.nr_syncs, THREADS * n);
    assert_int_equal(atomic_read(&smmu->stats.sync), THREADS * n);
    assert_int_equal(atomic_read(&smmu->stats.cmdq_timeout), 0);
    assert_int_equal(smmu->cmdq.published, smmu->cmdq.prod);
}

static void threads(void **state)
{
    sw.inject = note;
    run_threads(400);
}

/* A queue of 128 entries is full all the time. */
static void threads_small(void **state)
{
    assert_int_equal(smmu->cmdq.log2, 7);
    sw.late = 100;
    sw.inject = note;
    run_threads(100);
    assert_true(atomic_read(&smmu->stats.cmdq_full) > 0);
}

static void threads_errors(void **state)
{
    sw.inject = note_with_errors;
    run_threads(200);
    assert_true(atomic_read(&smmu->stats.cmdq_abt) > 0);
}

static int setup_tiny(void **state)
{
    queue_bits = 5;
    return setup(state);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
#define M(f) cmocka_unit_test_setup_teardown(f, setup_msi, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(size), T(wrap), T(index_overflow), T(full), T(full_then_space),
        T(own_slot), T(own_slot_full), T(timeout), T(ill), T(ill_unrepairable),
        T(ill_sync), T(abt), T(abt_stays), T(full_repaired), T(repair_idle),
        T(repair_none), T(empty), T(size_and_cpus), T(interrupts_off),
        T(atc_timeout),
        cmocka_unit_test_setup_teardown(small_batches, setup_tiny, teardown),
        M(wrap), M(index_overflow), M(full_then_space), M(own_slot),
        M(own_slot_full), M(timeout), M(ill), M(ill_unrepairable),
        M(ill_sync), M(abt), M(abt_stays), M(full_repaired),
        M(interrupts_off), M(atc_timeout), M(empty), M(msi_polls),
        M(msi_early), M(msi_lost), M(msi_stale), M(msi_overtaken),
        M(threads), M(threads_errors),
        cmocka_unit_test_setup_teardown(noncoherent, setup_noncoherent,
                                        teardown),
        T(threads), T(threads_errors),
        cmocka_unit_test_setup_teardown(threads_small, setup_small, teardown),
    };

    return cmocka_run_group_tests_name("cmdq", tests, NULL, NULL);
}
