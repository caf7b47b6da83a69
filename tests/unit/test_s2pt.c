/* SPDX-License-Identifier: GPL-2.0-only */
/* Stage-2 tables against a model of single pages, with counted references. */

#include "unit.h"

#include "pviommu.h"

static struct domain dom;
static struct s2pt pt;

#define PROT (S2_READ | S2_WRITE | S2_ATTR_NORMAL | S2_SH_INNER)
#define POOL 400

/* Without a domain's queue nothing is revived, and nothing here is foreign. */
void pvi_fq_revived(struct pvi_domain *pd, unsigned int slot, unsigned long nr)
{
    fail();
}

void pvi_foreign_del(struct pvi_domain *pd, unsigned int ctx_id, uint64_t iova,
                     mfn_t mfn, bool mmio)
{
    fail();
}

static int setup(void **state)
{
    fake_init();
    memset(&dom, 0, sizeof(dom));
    fake_pool_fill(&dom, POOL);
    assert_int_equal(s2pt_init(&pt, &dom, 48, false), 0);
    return 0;
}

static void destroy(int slice)
{
    uint64_t cursor = 0;
    int budget;

    do {
        budget = slice;
    } while ( !s2pt_destroy(&pt, &cursor, &budget) );
}

static unsigned int pool(void)
{
    struct page_info *pg;
    unsigned int n = 0;

    page_list_for_each ( pg, &dom.arch.paging.p2m_freelist )
        n++;
    return n;
}

static int teardown(void **state)
{
    if ( pt.root )
        destroy(512);
    assert_int_equal(fake_refs, 0);
    assert_int_equal(fake_mapped, 0);
    assert_int_equal(fake_locks, 0);
    assert_int_equal(pt.nr_tables, 0);
    assert_int_equal(pool(), POOL);
    return 0;
}

/* Take references, map all of it. */
static long map(uint64_t iova, mfn_t mfn, unsigned long nr)
{
    unsigned long i = 0, k;

    while ( i < nr )
    {
        long n = s2pt_map(&pt, NULL, iova + (i << 12), mfn_add(mfn, i), nr - i, PROT,
                          !i);

        if ( n < 0 )
            return n;
        for ( k = 0; k < n; k++ )
            assert_true(get_page(mfn_to_page(mfn_add(mfn, i + k)), &dom));
        i += n;
    }
    return i;
}

static void unmap(uint64_t start, uint64_t last, unsigned int slot,
                  struct s2_cleared *c, int slice)
{
    uint64_t at = start;

    while ( at <= last )
    {
        int budget = slice;
        uint64_t next = s2pt_unmap(&pt, at, last, slot, &budget, c);

        assert_true(next > at);
        /* A table as a whole, 32, is the largest piece. */
        assert_true(budget > -32);
        at = next;
    }
}

static void release(uint64_t start, uint64_t last, unsigned int slot, int slice)
{
    uint64_t at = start;

    while ( at <= last )
    {
        int budget = slice;
        uint64_t next = s2pt_release(&pt, at, last, slot, &budget);

        assert_true(next > at);
        /* One table is one piece. */
        assert_true(budget >= -512);
        at = next;
    }
}

#define NOTHING { .first = 1, .last = 0 }

static void geometry(void **state)
{
    static const struct { unsigned int ias, level; } c[] = {
        { 32, 1 }, { 36, 1 }, { 39, 1 }, { 40, 0 }, { 44, 0 }, { 48, 0 },
    };
    unsigned int i;

    destroy(512);
    for ( i = 0; i < ARRAY_SIZE(c); i++ )
    {
        assert_int_equal(s2pt_init(&pt, &dom, c[i].ias, false), 0);
        assert_int_equal(pt.start_level, c[i].level);
        destroy(100000);
    }
}

static void page(void **state)
{
    struct page_info *pg = fake_guest_pages(&dom, 0);
    mfn_t mfn = page_to_mfn(pg);
    struct s2_cleared c = NOTHING;
    unsigned int level;

    assert_int_equal(map(0x123456000, mfn, 1), 1);
    assert_int_equal(s2pt_lookup(&pt, 0x123456000, &level),
                     mfn_to_maddr(mfn) | PROT | S2_AF | S2_XN | S2_VALID |
                     S2_TABLE | S2_SW_FIRST);
    assert_int_equal(level, 3);
    assert_int_equal(pt.nr_pages, 1);
    assert_int_equal(pt.nr_tables, 4);
    assert_int_equal(s2pt_lookup(&pt, 0x123457000, &level), 0);
    assert_int_equal(map(0x123456000, mfn, 1), -EBUSY);

    unmap(0x123456000, 0x123456fff, 7, &c, 512);
    assert_int_equal(c.first, 0x123456000);
    assert_int_equal(c.last, 0x123456fff);
    assert_int_equal(c.pages, 1);
    assert_int_equal(c.levels, 1 << 3);
    assert_false(c.table);
    assert_int_equal(fake_refs, 1);
    assert_int_equal(map(0x123456000, mfn, 1), -EAGAIN);
    /* Of another slot: not yet. */
    release(0x123456000, 0x123456fff, 8, 512);
    assert_int_equal(fake_refs, 1);
    release(0x123456000, 0x123456fff, 7, 512);
    assert_int_equal(fake_refs, 0);
    assert_int_equal(map(0x123456000, mfn, 1), 1);
}

static void blocks(void **state)
{
    mfn_t mfn = page_to_mfn(fake_guest_pages(&dom, 10));
    struct s2_cleared c = NOTHING;
    unsigned int level;

    assert_int_equal(map(0x40000000, mfn, 1024), 1024);
    assert_int_equal(pt.nr_tables, 3);
    s2pt_lookup(&pt, 0x40200000, &level);
    assert_int_equal(level, 2);
    assert_true(s2pt_splits(&pt, 0x40000000, 0x401fffff));
    assert_true(s2pt_splits(&pt, 0x40001000, 0x403fffff));
    assert_true(s2pt_splits(&pt, 0x40000000, 0x403fefff));
    assert_false(s2pt_splits(&pt, 0x40000000, 0x403fffff));
    assert_false(s2pt_splits(&pt, 0, 0xffffffffffff));
    unmap(0x40000000, 0x403fffff, 3, &c, 1);
    assert_int_equal(c.pages, 1024);
    assert_int_equal(c.levels, 1 << 2);
    assert_int_equal(fake_refs, 1024);
    release(0x40000000, 0x403fffff, 3, 100);
    assert_int_equal(fake_refs, 0);
    /* Not aligned in machine memory: pages. */
    assert_int_equal(map(0x40000000, mfn_add(mfn, 1), 512), 512);
    s2pt_lookup(&pt, 0x40000000, &level);
    assert_int_equal(level, 3);
}

static void huge(void **state)
{
    mfn_t mfn = page_to_mfn(fake_guest_pages(&dom, 18));
    struct s2_cleared c = NOTHING;
    unsigned long i;
    unsigned int level;

    for ( i = 0; i < 1UL << 18; i++ )
        assert_true(get_page(mfn_to_page(mfn_add(mfn, i)), &dom));
    assert_int_equal(s2pt_map_huge(&pt, 1UL << 30, mfn, PROT, true), 0);
    assert_int_equal(s2pt_map_huge(&pt, 1UL << 30, mfn, PROT, true), -EBUSY);
    assert_int_equal(map(1UL << 30, mfn, 1), -EBUSY);
    s2pt_lookup(&pt, 0x7ffff000, &level);
    assert_int_equal(level, 1);
    assert_true(s2pt_splits(&pt, 0x40001000, 0x7fffffff));
    unmap(1UL << 30, (2UL << 30) - 1, 1, &c, 512);
    assert_int_equal(c.levels, 1 << 1);
    assert_int_equal(s2pt_map_huge(&pt, 1UL << 30, mfn, PROT, true), -EAGAIN);
    /* 2^18 references are dropped in slices. */
    release(1UL << 30, (2UL << 30) - 1, 1, 512);
    assert_int_equal(fake_refs, 0);
    assert_int_equal(map(1UL << 30, mfn, 1), 1);
    assert_int_equal(s2pt_map_huge(&pt, 1UL << 30, mfn, PROT, true), -ENOSPC);
}

/* Without references: nothing is dropped. */
static void noref(void **state)
{
    struct s2_cleared c = NOTHING;

    assert_int_equal(s2pt_map(&pt, NULL, 0x8000000, _mfn(0x9000), 512,
                              PROT | S2_SW_NOREF, true), 512);
    assert_int_equal(s2pt_map(&pt, NULL, 0x8201000, _mfn(0x9000), 5,
                              PROT | S2_SW_NOREF, true), 5);
    unmap(0x8000000, 0x83fffff, 0, &c, 512);
    release(0x8000000, 0x83fffff, 0, 512);
    assert_int_equal(s2pt_map(&pt, NULL, 0x8201000, _mfn(0x9000), 5,
                              PROT | S2_SW_NOREF, true), 5);
}

/* A table whose leaves all go is unlinked by one store. */
static void whole_table(void **state)
{
    mfn_t mfn = page_to_mfn(fake_guest_pages(&dom, 10));
    struct s2_cleared c = NOTHING;

    assert_int_equal(map(0x40000000, mfn_add(mfn, 1), 512), 512);
    assert_int_equal(pt.nr_tables, 4);
    unmap(0x40000000, 0x401fffff, 9, &c, 512);
    assert_true(c.table);
    assert_int_equal(c.pages, 512);
    assert_int_equal(map(0x40000000, mfn, 1), -EAGAIN);
    assert_int_equal(pt.nr_tables, 4);
    release(0x40000000, 0x401fffff, 9, 512);
    assert_int_equal(pt.nr_tables, 3);
    assert_int_equal(fake_refs, 0);
}

static void reclaim(void **state)
{
    mfn_t mfn = page_to_mfn(fake_guest_pages(&dom, 0));
    struct s2_cleared c = NOTHING;
    unsigned int i;
    int budget = 100;

    for ( i = 0; i < 5; i++ )
        assert_int_equal(map((uint64_t)i << 21, mfn, 1), 1);
    assert_int_equal(pt.nr_tables, 3 + 5);
    for ( i = 0; i < 3; i++ )
    {
        struct s2_cleared one = NOTHING;

        unmap((uint64_t)i << 21, ((uint64_t)i << 21) + 4095, i, &one, 10);
        release((uint64_t)i << 21, ((uint64_t)i << 21) + 4095, i, 10);
    }
    assert_int_equal(s2pt_reclaim(&pt, 6, &budget, &c), 3);
    assert_int_equal(c.first, 0);
    assert_int_equal(c.last, (3UL << 21) - 1);
    assert_true(c.table);
    assert_int_equal(pt.nr_tables, 8);
    release(c.first, c.last, 6, 512);
    assert_int_equal(pt.nr_tables, 5);
    assert_int_equal(map(0, mfn, 1), 1);
}

/* Tables of all levels come back once nothing is mapped below them. */
static void reclaim_all(void **state)
{
    mfn_t mfn = page_to_mfn(fake_guest_pages(&dom, 0));
    unsigned int i, slot = 0, rounds;

    for ( i = 0; i < 8; i++ )
        assert_int_equal(map((uint64_t)i << 38, mfn, 1), 1);
    assert_int_equal(pt.nr_tables, 1 + 4 + 8 + 8);
    for ( i = 0; i < 8; i++ )
    {
        struct s2_cleared c = NOTHING;

        unmap((uint64_t)i << 38, ((uint64_t)i << 38) + 4095, slot, &c, 10);
        release((uint64_t)i << 38, ((uint64_t)i << 38) + 4095, slot++, 10);
    }
    /* Level 3, then 2, then 1. */
    for ( rounds = 0; rounds < 3; rounds++ )
    {
        struct s2_cleared c = NOTHING;
        int budget = 100;

        assert_int_equal(s2pt_reclaim(&pt, slot, &budget, &c),
                         rounds == 2 ? 4 : 8);
        release(c.first, c.last, slot++, 512);
    }
    assert_int_equal(pt.nr_tables, 1);
    assert_true(page_list_empty(&pt.empty));
    assert_int_equal(map(0, mfn, 1), 1);
}

static void no_memory(void **state)
{
    mfn_t mfn = page_to_mfn(fake_guest_pages(&dom, 0));
    unsigned int i, level;
    struct page_info *pg[POOL];
    unsigned int n = 0;

    while ( (pg[n] = page_list_remove_head(&dom.arch.paging.p2m_freelist)) )
        n++;
    for ( i = 0; i < 3; i++ )
    {
        assert_int_equal(s2pt_map(&pt, NULL, 0x1000, mfn, 1, PROT, true), -ENOMEM);
        assert_int_equal(s2pt_lookup(&pt, 0x1000, &level), 0);
        page_list_add(pg[--n], &dom.arch.paging.p2m_freelist);
    }
    assert_int_equal(map(0x1000, mfn, 1), 1);
    while ( n )
        page_list_add(pg[--n], &dom.arch.paging.p2m_freelist);
}

/*
 * Random operations.  The model: for each page of a window what it maps to,
 * if a mapping begins there, and with which slot it is pending.
 */
#define WIN 4096                            /* pages: 16 MiB */
#define BASE 0x7fff800000UL                 /* across 512 GiB: two level 1 */
static struct { unsigned long mfn; bool first; int slot; } m[WIN];

static void verify(void)
{
    unsigned long i, mapped = 0, pending = 0;

    for ( i = 0; i < WIN; i++ )
    {
        unsigned int level;
        uint64_t iova = BASE + (i << 12);
        s2_pte_t p = s2pt_lookup(&pt, iova, &level);

        if ( !m[i].mfn || m[i].slot >= 0 )
        {
            assert_int_equal(p, 0);
            pending += m[i].mfn != 0;
            continue;
        }
        mapped++;
        assert_true(p & S2_VALID);
        assert_int_equal((p & S2_ADDR_MASK) +
                         (iova & ((1UL << s2_shift(level)) - 1)),
                         m[i].mfn << 12);
        if ( !(iova & ((1UL << s2_shift(level)) - 1)) )
            assert_int_equal(!!(p & S2_SW_FIRST), m[i].first);
    }
    assert_int_equal(pt.nr_pages, mapped);
    assert_int_equal(fake_refs, mapped + pending);
}

static bool model_splits(unsigned long a, unsigned long b)
{
#define IN(i) ((i) < WIN && m[i].mfn && m[i].slot < 0 && !m[i].first)
    return IN(a) || IN(b);
}

static void random_ops(void **state)
{
    mfn_t ram = page_to_mfn(fake_guest_pages(&dom, 13));
    /* Slots in the order of their use: like the flush queue's ring. */
    struct { uint64_t first, last; } ring[16];
    unsigned int head = 0, tail = 0, step;
    unsigned long i;

    memset(m, 0, sizeof(m));
    for ( i = 0; i < WIN; i++ )
        m[i].slot = -1;
    for ( step = 0; step < 12000; step++ )
    {
        unsigned long a = rnd() % WIN, nr, at = rnd() % 8192;
        int op = rnd() % 10;

        switch ( rnd() % 4 )
        {
        case 0: nr = 1; break;
        case 1: nr = 1 + rnd() % 16; break;
        case 2: nr = 1 + rnd() % 700; break;
        default: nr = 512 * (1 + rnd() % 3); a &= ~511UL; at &= ~511UL; break;
        }
        nr = min(nr, WIN - a);
        nr = min(nr, 8192 - at);

        if ( op < 4 )
        {
            unsigned long done = 0;

            while ( done < nr )
            {
                long n = s2pt_map(&pt, NULL, BASE + ((a + done) << 12),
                                  mfn_add(ram, at + done), nr - done, PROT,
                                  !done);
                unsigned long k;

                if ( n < 0 )
                {
                    bool busy = false, pend = false;

                    for ( k = a + done; k < a + nr; k++ )
                    {
                        busy |= m[k].mfn && m[k].slot < 0;
                        pend |= m[k].slot >= 0;
                    }
                    /*
                     * An empty table may itself be pending: then the model
                     * sees nothing in the way, but something waits.
                     */
                    assert_true(n == -EBUSY ? busy : n == -EAGAIN &&
                                (pend || head != tail));
                    break;
                }
                for ( k = 0; k < n; k++ )
                {
                    assert_int_equal(m[a + done + k].mfn, 0);
                    m[a + done + k].mfn = mfn_x(ram) + at + done + k;
                    m[a + done + k].first = !done && !k;
                    assert_true(get_page(mfn_to_page(mfn_add(ram, at + done +
                                                             k)), &dom));
                }
                done += n;
            }
        }
        else if ( op < 7 && tail - head < 16 )
        {
            struct s2_cleared c = NOTHING;
            unsigned int slot = tail % 16;
            unsigned long pages = 0;

            if ( s2pt_splits(&pt, BASE + (a << 12),
                             BASE + ((a + nr) << 12) - 1) )
            {
                assert_true(model_splits(a, a + nr));
                continue;
            }
            assert_false(model_splits(a, a + nr));
            unmap(BASE + (a << 12), BASE + ((a + nr) << 12) - 1, slot, &c,
                  1 + rnd() % 300);
            for ( i = a; i < a + nr; i++ )
                if ( m[i].mfn && m[i].slot < 0 )
                {
                    m[i].slot = slot;
                    pages++;
                    assert_in_range(BASE + (i << 12), c.first, c.last);
                }
            assert_int_equal(c.pages, pages);
            if ( c.first <= c.last )
            {
                ring[slot].first = c.first;
                ring[slot].last = c.last;
                tail++;
            }
        }
        else if ( op == 7 && tail - head < 16 )
        {
            struct s2_cleared c = NOTHING;
            int budget = 1 + rnd() % 8;

            s2pt_reclaim(&pt, tail % 16, &budget, &c);
            if ( c.first <= c.last )
            {
                ring[tail % 16].first = c.first;
                ring[tail % 16].last = c.last;
                tail++;
            }
        }
        else
            /* All that waits, oldest first. */
            for ( ; head != tail; head++ )
            {
                unsigned int slot = head % 16;

                release(ring[slot].first, ring[slot].last, slot,
                        1 + rnd() % 400);
                if ( head + 1 == tail )
                    for ( i = 0; i < WIN; i++ )
                        if ( m[i].slot >= 0 )
                        {
                            m[i].mfn = 0;
                            m[i].slot = -1;
                        }
            }
        if ( step % 16 == 0 )
            verify();
    }
    /* Whatever is there: destroyed in small steps. */
    destroy(7);
    assert_int_equal(fake_refs, 0);
}

/* Tables that a device doesn't snoop: it sees each entry at once. */
static void noncoherent(void **state)
{
    mfn_t mfn = page_to_mfn(fake_guest_pages(&dom, 9));
    unsigned long i;

    destroy(512);
    assert_int_equal(s2pt_init(&pt, &dom, 40, true), 0);
    for ( i = 0; i < 100; i++ )
        assert_int_equal(map(i * 0x234000, mfn, 3), 3);
    for ( i = 0; i < FAKE_NR_PAGES; i++ )
        if ( fake_frames[i].count_info && fake_frames[i].u.inuse.type_info )
            assert_memory_equal(fake_ram + (i << 12), fake_ram_seen + (i << 12),
                                4096);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(geometry), T(page), T(blocks), T(huge), T(noref), T(whole_table),
        T(reclaim), T(reclaim_all), T(no_memory), T(random_ops), T(noncoherent),
    };

    return cmocka_run_group_tests_name("s2pt", tests, NULL, NULL);
}
