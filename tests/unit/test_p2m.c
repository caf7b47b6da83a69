/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Changes of the p2m: for devices that translate with it, and for pages of
 * other domains that a context maps.  The test stands for Xen's p2m code.
 */

#include "guest.h"

static struct domain other = { .domain_id = 9, .creation_finished = true };
static uint64_t *t3;                /* of the CPUs' table, for 2 MiB from 0 on */
static uint64_t *t2;                /* for 1 GiB */

/* Entries as Xen writes them: attributes, rights, type. */
static uint64_t entry(struct page_info *pg, p2m_type_t t)
{
    return page_to_maddr(pg) | 0x7ff | (uint64_t)t << 55;
}

static void cpu_tables(void)
{
    uint64_t *l1 = page_to_virt(dom.arch.p2m.root);
    struct page_info *l2 = alloc_domheap_pages(NULL, 0, 0);
    struct page_info *l3 = alloc_domheap_pages(NULL, 0, 0);

    t2 = page_to_virt(l2);
    t3 = page_to_virt(l3);
    memset(page_to_virt(l2), 0, PAGE_SIZE);
    memset(t3, 0, PAGE_SIZE);
    *(uint64_t *)page_to_virt(l2) = page_to_maddr(l3) | 3;
    l1[0] = page_to_maddr(l2) | 3;
}

static int setup_p2m(void **state)
{
    make(true, false);
    cpu_tables();
    other.creation_finished = true;
    return 0;
}

static int setup_p2m_lazy(void **state)
{
    make(false, true);
    cpu_tables();
    return 0;
}

/* What Xen does to enter, replace or remove a page. */
static void set_locked(unsigned int gfn, struct page_info *pg, p2m_type_t t)
{
    lpae_t old = { .bits = t3[gfn] };

    t3[gfn] = 0;
    pviommu_p2m_change(&dom.arch.p2m, _gfn(gfn), 0, &old, 3, !pg);
    if ( pg )
        t3[gfn] = entry(pg, t);
}

static void set(unsigned int gfn, struct page_info *pg, p2m_type_t t)
{
    spin_lock(&dom.arch.p2m.lock);
    set_locked(gfn, pg, t);
    pviommu_p2m_unlock(&dom.arch.p2m);
    spin_unlock(&dom.arch.p2m.lock);
    assert_int_equal(fake_locks, 0);
}

static void enter(unsigned int gfn)
{
    set(gfn, ram + gfn, p2m_ram_rw);
}

static bool reaches(unsigned int ep, unsigned int gfn, struct page_info *pg)
{
    uint64_t to;

    return !dma(ep, (uint64_t)gfn << PAGE_SHIFT, true, &to) &&
           to == page_to_maddr(pg) - page_to_maddr(ram);
}

/* Nobody else may get a page that a device still reaches (invariant 1). */
static void check_unreachable(struct page_info *pg)
{
    if ( sw_reaching(&sw[0], page_to_maddr(pg), PAGE_SIZE) ||
         sw_reaching(&sw[1], page_to_maddr(pg), PAGE_SIZE) )
        fail_msg("a page that was released is reached");
}

static void strict_removal(void **state)
{
    unsigned int ep, before = syncs();

    enter(5);
    assert_int_equal(syncs(), before); /* additions cost nothing */
    for ( ep = 0x10; ep < 0x14; ep++ )
        assert_true(reaches(ep, 5, ram + 5));
    set(5, NULL, 0);
    /* One sync for each SMMU. */
    assert_int_equal(syncs() - before, 2);
    assert_int_equal(atomic_read(&pd->stats.flush[PVI_CAUSE_P2M]), 2);
    for ( ep = 0x10; ep < 0x14; ep++ )
        assert_int_equal(dma(ep, 0x5000, true, NULL), EVT_F_TRANSLATION);
    assert_int_equal(pvi_fq_count(&pd->fq), 0);
    check_counters();
}

/* Several entries in one operation, and several operations in a batch. */
static void batches(void **state)
{
    unsigned int before, i;

    for ( i = 0; i < 64; i++ )
    {
        enter(i);
        assert_true(reaches(0x10, i, ram + i));
    }

    before = syncs();
    spin_lock(&dom.arch.p2m.lock);
    for ( i = 0; i < 16; i++ )
        set_locked(i, NULL, 0);
    assert_int_equal(syncs(), before);
    pviommu_p2m_unlock(&dom.arch.p2m);
    spin_unlock(&dom.arch.p2m.lock);
    assert_int_equal(syncs() - before, 2);
    for ( i = 0; i < 16; i++ )
        assert_false(reaches(0x10, i, ram + i));

    before = syncs();
    pviommu_p2m_batch_begin();
    for ( i = 16; i < 48; i += 2 )
        set(i, NULL, 0);
    assert_int_equal(syncs(), before);
    assert_true(reaches(0x10, 16, ram + 16)); /* the stale entry exists */
    pviommu_p2m_batch_end();
    assert_int_equal(syncs() - before, 2);
    for ( i = 16; i < 48; i += 2 )
        assert_false(reaches(0x10, i, ram + i));

    /* As xenmem_add_to_physmap() does it. */
    before = syncs();
    per_cpu_iommu_dont_flush_iotlb = true;
    set(48, NULL, 0);
    set(50, NULL, 0);
    assert_int_equal(syncs(), before);
    per_cpu_iommu_dont_flush_iotlb = false;
    assert_int_equal(pvi_p2m_settle(), 0);
    assert_int_equal(syncs() - before, 2);
    assert_false(reaches(0x10, 48, ram + 48));

    /* A batch of nothing, and the end of none. */
    pviommu_p2m_batch_begin();
    pviommu_p2m_batch_end();
    pviommu_p2m_batch_end();
    assert_int_equal(syncs() - before, 2);
    check_counters();
}

/* Break before make, for the SMMUs too; and tables that go. */
static void changes_in_place(void **state)
{
    unsigned int before;
    lpae_t table = { .bits = page_to_maddr(ram) | 3 };

    enter(5);
    assert_true(reaches(0x10, 5, ram + 5));
    before = syncs();
    spin_lock(&dom.arch.p2m.lock);
    set_locked(5, ram + 6, p2m_ram_rw);
    /* Before the new one was written, not at the end. */
    assert_int_equal(syncs() - before, 2);
    pviommu_p2m_unlock(&dom.arch.p2m);
    spin_unlock(&dom.arch.p2m.lock);
    assert_true(reaches(0x10, 5, ram + 6));

    before = syncs();
    spin_lock(&dom.arch.p2m.lock);
    pviommu_p2m_break(&dom.arch.p2m, _gfn(5), 2);
    assert_int_equal(syncs() - before, 2);
    pviommu_p2m_change(&dom.arch.p2m, _gfn(0), 9, &table, 2, true);
    assert_int_equal(syncs() - before, 4);
    spin_unlock(&dom.arch.p2m.lock);

    assert_int_equal(pvi_p2m_flush_all(pd), 0);
    assert_int_equal(syncs() - before, 6);
    check_counters();
}

/*
 * A block is split, then one page of it removed.  An SMMU that bears both side
 * by side isn't told of the split, and forgets both with the page.
 */
static void split_block(unsigned int bbml0, unsigned int bbml1)
{
    struct page_info *l3 = alloc_domheap_pages(NULL, 0, 0);
    unsigned int before, i, ep;
    uint64_t *pte = page_to_virt(l3);

    smmu_by_node(&sw[0].node)->bbml = bbml0;
    smmu_by_node(&sw[1].node)->bbml = bbml1;
    t2[1] = page_to_maddr(ram + 512) | 0x7fd;
    for ( ep = 0x10; ep < 0x14; ep++ )
        assert_true(reaches(ep, 0x205, ram + 0x205));

    spin_lock(&dom.arch.p2m.lock);
    before = syncs();
    t2[1] = 0;
    pviommu_p2m_break(&dom.arch.p2m, _gfn(0x205), 2);
    assert_int_equal(syncs() - before, (bbml0 < 2) + (bbml1 < 2));
    for ( i = 0; i < 512; i++ )
        pte[i] = entry(ram + 512 + i, p2m_ram_rw);
    t2[1] = page_to_maddr(l3) | 3;
    for ( ep = 0x10; ep < 0x14; ep++ )
        assert_true(reaches(ep, 0x206, ram + 0x206));
    pte[5] = 0;
    pviommu_p2m_change(&dom.arch.p2m, _gfn(0x205), 0,
                       &(lpae_t){ entry(ram + 0x205, p2m_ram_rw) }, 3, true);
    pviommu_p2m_unlock(&dom.arch.p2m);
    spin_unlock(&dom.arch.p2m.lock);

    assert_int_equal(pvi_fq_flush(pd, PVI_CAUSE_AGE), 0);
    check_unreachable(ram + 0x205);
    for ( ep = 0x10; ep < 0x14; ep++ )
    {
        assert_int_equal(dma(ep, 0x205000, true, NULL), EVT_F_TRANSLATION);
        assert_true(reaches(ep, 0x206, ram + 0x206));
    }
    check_counters();
}

static void split_bbm(void **state) { split_block(0, 1); }
static void split_bbml2(void **state) { split_block(2, 2); }
static void split_mixed(void **state) { split_block(2, 0); }

/* Nothing is issued while nobody translates with the p2m. */
static void unused(void **state)
{
    unsigned int before;
    uint64_t to;

    enter(5);
    assert_true(reaches(0x10, 5, ram + 5));
    /* bypass=0, and it survives a reset of the device. */
    mmio_write(0x124, 0, 0);
    assert_int_equal(mmio_read(0x124, 0), 0);
    assert_int_equal(dma(0x10, 0x5000, true, &to), EVT_F_TRANSLATION);
    before = syncs();
    set(5, NULL, 0);
    enter(5);
    assert_int_equal(pvi_p2m_flush_all(pd), 0);
    assert_int_equal(syncs(), before);
    assert_int_equal(pvi_fq_count(&pd->fq), 0);
    wr(0x70, 0);
    run_bare();
    drive(FEATURES);
    assert_int_equal(mmio_read(0x124, 0), 0);
    mmio_write(0x124, 1, 0);
    assert_true(reaches(0x10, 5, ram + 5));

    /* A bypass domain of the guest does the same. */
    mmio_write(0x124, 0, 0);
    assert_int_equal(attach(7, 0x11, VIOMMU_ATTACH_F_BYPASS), VIOMMU_S_OK);
    assert_true(reaches(0x11, 5, ram + 5));
    assert_int_equal(map(7, 0, 0x1000, 0, RW), VIOMMU_S_INVAL);
    assert_int_equal(unmap(7, 0, 0x1000), VIOMMU_S_INVAL);
    assert_int_equal(dma(0x10, 0x5000, true, &to), EVT_F_TRANSLATION);
    check_counters();
}

/* Lazy: nobody waits, the page is pinned, and an insert over it completes. */
static void lazy_removal(void **state)
{
    struct page_info *pg = ram + 5;
    unsigned int before, refs = fake_refs;

    enter(5);
    assert_true(reaches(0x10, 5, pg));
    before = syncs();
    set(5, NULL, 0);
    assert_int_equal(syncs(), before);
    assert_int_equal(fake_refs, refs + 1);
    assert_true(reaches(0x10, 5, pg)); /* the window */

    /* An insert elsewhere costs nothing, one over it closes the window. */
    enter(6);
    assert_int_equal(syncs(), before);
    set(5, ram + 7, p2m_ram_rw);
    assert_int_equal(syncs() - before, 2);
    assert_int_equal(atomic_read(&pd->stats.flush[PVI_CAUSE_OVERLAP]), 2);
    assert_int_equal(fake_refs, refs);
    assert_true(reaches(0x10, 5, ram + 7));
    assert_false(reaches(0x10, 5, pg));

    /* By age. */
    set(6, NULL, 0);
    set(5, NULL, 0);
    assert_int_equal(fake_refs, refs + 2);
    fake_advance(PVI_FQ_AGE);
    assert_int_equal(fake_refs, refs);
    assert_int_equal(dma(0x10, 0x5000, true, NULL), EVT_F_TRANSLATION);
    check_counters();
}

/* A change of bypass leaves nothing pending, in the p2m and in contexts. */
static void bypass_completes(void **state)
{
    unsigned int refs;

    enter(5);
    assert_true(reaches(0x10, 5, ram + 5));
    assert_int_equal(attach(1, 0x11, 0), VIOMMU_S_OK);
    assert_int_equal(map(1, 0x8000, 0x1000, 0x6000, RW), VIOMMU_S_OK);
    assert_true(reaches(0x11, 8, ram + 6));
    refs = fake_refs - 1;
    set(5, NULL, 0);
    assert_int_equal(unmap(1, 0x8000, 0x1000), VIOMMU_S_OK);
    assert_true(reaches(0x10, 5, ram + 5)); /* the window */
    assert_true(reaches(0x11, 8, ram + 6));

    mmio_write(0x124, 0, 0);
    assert_false(pvi_fq_pending(pd));
    fake_advance(PVI_FQ_AGE); /* the timer releases, too */
    assert_int_equal(fake_refs, refs);
    assert_int_equal(dma(0x10, 0x5000, true, NULL), EVT_F_TRANSLATION);
    assert_int_equal(dma(0x11, 0x8000, true, NULL), EVT_F_TRANSLATION);
    mmio_write(0x124, 1, 0);
    assert_int_equal(dma(0x10, 0x5000, true, NULL), EVT_F_TRANSLATION);
    check_counters();
}

/* A block of 1G is too much to be pinned: its removal waits. */
static void block_1g(void **state)
{
    struct page_info *pg = fake_guest_pages(&dom, 18);
    uint64_t *l1 = page_to_virt(dom.arch.p2m.root);
    lpae_t old = { .bits = page_to_maddr(pg) | 0x7fd |
                           (uint64_t)p2m_ram_rw << 55 };
    unsigned int refs = fake_refs;

    l1[1] = old.bits;
    assert_true(reaches(0x10, 0x40005, pg + 5));
    assert_true(reaches(0x11, 0x7ffff, pg + 0x3ffff));
    spin_lock(&dom.arch.p2m.lock);
    l1[1] = 0;
    pviommu_p2m_change(&dom.arch.p2m, _gfn(0x40000), 18, &old, 1, true);
    pviommu_p2m_unlock(&dom.arch.p2m);
    spin_unlock(&dom.arch.p2m.lock);
    check_unreachable(pg + 5);
    check_unreachable(pg + 0x3ffff);
    assert_false(reaches(0x10, 0x40005, pg + 5));
    assert_int_equal(fake_refs, refs);
}

/* The old page of a change in place, when the SMMU hangs just then. */
static void change_hangs(void **state)
{
    struct page_info *pg = fake_guest_pages(&other, 0);

    fake_refs++; /* that of the allocation, dropped below */
    set(5, pg, p2m_map_foreign_rw);
    assert_true(reaches(0x10, 5, pg));
    sw[0].mode = SW_NEVER;
    fake_now_step = MILLISECS(1);
    set(5, ram + 6, p2m_ram_rw);
    assert_true(pd->broken);
    put_page(pg);
    assert_int_equal(pg->count_info, 1);
}

/* The last reference of a page goes only after the sync. */
static void freed_late(void **state)
{
    struct page_info *pg = fake_guest_pages(&dom, 0);

    fake_refs++; /* that of the allocation, dropped below */
    set(5, pg, p2m_ram_rw);
    assert_true(reaches(0x10, 5, pg));
    if ( !pd->strict )
    {
        set(5, NULL, 0);
        put_page(pg);
        assert_int_equal(pg->count_info, 1); /* the queue's */
        assert_int_equal(pvi_set_strict(pd, true), 0);
    }
    else
    {
        pviommu_p2m_batch_begin();
        set(5, NULL, 0);
        put_page(pg);
        assert_int_equal(pg->count_info, 1);
        pviommu_p2m_batch_end();
    }
    assert_int_equal(pg->count_info, 0);
    check_unreachable(pg);
}

/* A full queue, and more removals than it holds. */
static void many(void **state)
{
    unsigned int i, before;

    for ( i = 0; i < 511; i++ )
    {
        enter(i);
        assert_true(reaches(0x10, i, ram + i));
    }
    before = syncs();
    pviommu_p2m_batch_begin();
    for ( i = 1; i < 511; i += 2 )
        set(i, NULL, 0);
    for ( i = 0; i < 511; i += 2 )
        set(i, NULL, 0);
    pviommu_p2m_batch_end();
    /* The queue was full twice; strict has the end of the batch too. */
    assert_int_equal(syncs() - before, pd->strict ? 6 : 4);
    if ( !pd->strict )
        assert_int_equal(pvi_fq_flush(pd, PVI_CAUSE_AGE), 0);
    for ( i = 0; i < 511; i++ )
        assert_false(reaches(0x10, i, ram + i));
    check_counters();
}

/* Both directions, with work pending. */
static void strict_switch(void **state)
{
    enter(5);
    enter(6);
    assert_true(reaches(0x10, 5, ram + 5));
    assert_true(reaches(0x10, 6, ram + 6));
    set(5, NULL, 0);
    assert_int_equal(pvi_fq_count(&pd->fq), 1);
    assert_int_equal(pvi_set_strict(pd, true), 0);
    assert_int_equal(pvi_fq_count(&pd->fq), 0);
    assert_false(reaches(0x10, 5, ram + 5));
    assert_int_equal(atomic_read(&pd->stats.flush[PVI_CAUSE_SWITCH]), 2);
    set(6, NULL, 0);
    assert_false(reaches(0x10, 6, ram + 6));
    assert_int_equal(pvi_set_strict(pd, false), 0);
    enter(5);
    assert_true(reaches(0x10, 5, ram + 5));
    set(5, NULL, 0);
    assert_true(reaches(0x10, 5, ram + 5));
}

/*
 * A sync that never completes, in the middle of a removal: the page stays
 * pinned, the domain is stopped, its devices are cut off.
 */
static void fails_closed(void **state)
{
    unsigned int refs = fake_refs;

    enter(5);
    assert_true(reaches(0x10, 5, ram + 5));
    sw[0].mode = SW_NEVER;
    pviommu_p2m_batch_begin();
    set(5, NULL, 0);
    pviommu_p2m_batch_end();
    if ( !pd->strict )
    {
        fake_advance(PVI_FQ_AGE);
    }
    assert_true(pd->broken);
    assert_true(dom.is_crashed);
    assert_int_equal(fake_refs, refs + 1);
    assert_true(fake_logged("pages stay pinned"));
    fake_run_tasklets();
    /* Turning strict on can't promise anything any more. */
    assert_int_equal(pvi_set_strict(pd, true), -ETIMEDOUT);
    assert_int_equal(pviommu_relinquish(&dom), -EBUSY);
}

/*
 * Pages of other domains in contexts.
 */
static p2m_type_t foreign_type;
static struct page_info *foreign_page;
static void foreign_hook(unsigned long gfn, mfn_t *mfn, p2m_type_t *t,
                         p2m_access_t *a, unsigned int *order)
{
    if ( gfn < 0x100 || gfn >= 0x120 || !foreign_page )
        return;
    *t = foreign_type;
    *mfn = page_to_mfn(foreign_page + (gfn - 0x100));
}

/* Xen removes one of them from the p2m. */
static void take_back(unsigned int i)
{
    lpae_t old = { .bits = entry(foreign_page + i, foreign_type) };

    spin_lock(&dom.arch.p2m.lock);
    pviommu_p2m_change(&dom.arch.p2m, _gfn(0x100 + i), 0, &old, 3, true);
    pviommu_p2m_unlock(&dom.arch.p2m);
    spin_unlock(&dom.arch.p2m.lock);
}

static void revocation(p2m_type_t type)
{
    bool waits = pd->strict || type == p2m_grant_map_rw;
    struct page_info *pg;
    unsigned int refs = fake_refs, before;
    uint64_t to;

    foreign_type = type;
    foreign_page = pg = fake_guest_pages(&other, 5);
    dom.arch.p2m.hook = foreign_hook;
    assert_int_equal(attach(1, 0x10, 0), VIOMMU_S_OK);
    assert_int_equal(attach(2, 0x11, 0), VIOMMU_S_OK);

    /* One page in two contexts, and in the middle of a larger mapping. */
    assert_int_equal(map(1, 0x10000, 0x8000, 0x100000, RW), VIOMMU_S_OK);
    assert_int_equal(map(1, 0x40000, 0x1000, 0x102000, RW), VIOMMU_S_OK);
    assert_int_equal(map(2, 0x90000, 0x3000, 0x101000, RW), VIOMMU_S_OK);
    assert_int_equal(fake_refs, refs + 12);
    assert_int_equal(dma(0x10, 0x12000, true, NULL), 0);
    assert_int_equal(dma(0x10, 0x40000, true, NULL), 0);
    assert_int_equal(dma(0x11, 0x91000, true, &to), 0);

    before = syncs();
    take_back(2);
    assert_int_equal(pd->stats.revoked, 3);
    if ( waits )
    {
        assert_true(syncs() > before);
        assert_int_equal(dma(0x10, 0x12000, true, NULL), EVT_F_TRANSLATION);
        assert_int_equal(dma(0x10, 0x40000, true, NULL), EVT_F_TRANSLATION);
        assert_int_equal(dma(0x11, 0x91000, true, NULL), EVT_F_TRANSLATION);
        check_unreachable(pg + 2);
        assert_int_equal(pg[2].count_info, 1);
    }
    else
    {
        /* Reachable, but nobody gets it: it is pinned. */
        assert_int_equal(syncs(), before);
        assert_int_equal(pg[2].count_info, 5); /* the p2m queue's too */
        fake_advance(PVI_FQ_AGE);
        check_unreachable(pg + 2);
        assert_int_equal(pg[2].count_info, 1);
    }
    /* Its neighbours are as before. */
    assert_int_equal(dma(0x10, 0x11000, true, NULL), 0);
    assert_int_equal(dma(0x10, 0x13000, true, NULL), 0);
    assert_int_equal(dma(0x11, 0x92000, true, NULL), 0);

    /* What is left of a mapping is unmapped as a whole, and only so. */
    assert_int_equal(unmap(1, 0x13000, 0x1000), VIOMMU_S_RANGE);
    assert_int_equal(unmap(1, 0x10000, 0x8000), VIOMMU_S_OK);
    assert_int_equal(unmap(1, 0x40000, 0x1000), VIOMMU_S_OK);
    /* The same addresses again, now and after it was taken back. */
    assert_int_equal(map(1, 0x10000, 0x2000, 0x100000, RW), VIOMMU_S_OK);
    take_back(0);
    assert_int_equal(dma(0x10, 0x11000, true, NULL), 0);
    assert_int_equal(detach(1, 0x10), VIOMMU_S_OK);
    assert_int_equal(detach(2, 0x11), VIOMMU_S_OK);
    assert_int_equal(fake_refs, refs);
    foreign_page = NULL;
}

static void revoke_grant(void **state) { revocation(p2m_grant_map_rw); }
static void revoke_foreign(void **state) { revocation(p2m_map_foreign_rw); }

/*
 * The end of a grant whose page the guest has just unmapped: what a device
 * still remembers goes before the owner has the page again, also where nobody
 * translates with the p2m.
 */
static void revoke_unmapped(void **state)
{
    foreign_type = p2m_grant_map_rw;
    foreign_page = fake_guest_pages(&other, 5);
    dom.arch.p2m.hook = foreign_hook;
    mmio_write(0x124, 0, 0);
    assert_int_equal(attach(1, 0x10, 0), VIOMMU_S_OK);
    assert_int_equal(map(1, 0x10000, 0x1000, 0x102000, RW), VIOMMU_S_OK);
    assert_int_equal(dma(0x10, 0x10000, true, NULL), 0);
    assert_int_equal(unmap(1, 0x10000, 0x1000), VIOMMU_S_OK);
    assert_int_equal(dma(0x10, 0x10000, true, NULL), 0); /* the window */
    take_back(2);
    check_unreachable(foreign_page + 2);
    assert_int_equal(dma(0x10, 0x10000, true, NULL), EVT_F_TRANSLATION);
    assert_int_equal(foreign_page[2].count_info, 1);
    foreign_page = NULL;
}

/*
 * Pages of a guest that is being built are taken out of the toolstack's p2m one
 * by one.
 */
static void building(void **state)
{
    struct page_info *pg = fake_guest_pages(&other, 5);
    unsigned int before, i;

    other.creation_finished = false;
    for ( i = 0; i < 16; i++ )
    {
        set(i, pg + i, p2m_map_foreign_rw);
        assert_true(reaches(0x10, i, pg + i));
    }
    before = syncs();
    for ( i = 0; i < 8; i++ )
    {
        set(i, NULL, 0);
        assert_true(reaches(0x10, i, pg + i)); /* the stale entry exists */
        assert_int_equal(pg[i].count_info, 2); /* and nobody gets the page */
    }
    assert_int_equal(syncs(), before);

    other.creation_finished = true;
    pviommu_domain_starts();
    assert_int_equal(syncs() - before, 2);
    for ( i = 0; i < 8; i++ )
    {
        check_unreachable(pg + i);
        assert_int_equal(pg[i].count_info, 1);
    }

    /* When it runs, each waits. */
    set(8, NULL, 0);
    assert_int_equal(syncs() - before, 4);
    check_unreachable(pg + 8);

    /* It never starts. */
    other.creation_finished = false;
    set(9, NULL, 0);
    fake_advance(PVI_FQ_BUILD_AGE - MILLISECS(1));
    assert_int_equal(syncs() - before, 4);
    fake_advance(MILLISECS(1));
    assert_int_equal(syncs() - before, 6);
    check_unreachable(pg + 9);
    assert_int_equal(pg[9].count_info, 1);

    /* Grants, and what is entered over it, wait for nobody's start. */
    set(10, NULL, 0);
    enter(10);
    assert_int_equal(syncs() - before, 8);
    set(11, NULL, 0);
    set(12, pg + 12, p2m_grant_map_rw);
    assert_true(reaches(0x10, 12, pg + 12));
    before = syncs();
    set(12, NULL, 0);
    assert_int_equal(syncs() - before, 2);
    check_unreachable(pg + 11);
    check_unreachable(pg + 12);
    check_counters();
}

/* The same, by the queue's limits: its entries, and the pages it pins. */
static void building_many(void **state)
{
    struct page_info *pg = fake_guest_pages(&other, 9);
    lpae_t block = { .bits = page_to_maddr(pg) | 0x7fd |
                             (uint64_t)p2m_map_foreign_rw << 55 };
    unsigned int before = syncs(), n;

    other.creation_finished = false;
    for ( n = 0; syncs() == before; n++ )
    {
        set(n, pg, p2m_map_foreign_rw);
        set(n, NULL, 0);
    }
    assert_int_equal(n, PVI_FQ_RANGES - PVI_FQ_RESERVE);
    assert_int_equal(pg->count_info, 1);

    before = syncs();
    for ( n = 0; syncs() == before; n += 512 )
    {
        spin_lock(&dom.arch.p2m.lock);
        pviommu_p2m_change(&dom.arch.p2m, _gfn(0x1000 + n), 9, &block, 2, true);
        pviommu_p2m_unlock(&dom.arch.p2m);
        spin_unlock(&dom.arch.p2m.lock);
    }
    assert_int_equal(n, PVI_FQ_PAGES);
    while ( pd->fq.head != pd->fq.tail )
        fake_advance(MILLISECS(1));
    assert_int_equal(pg->count_info, 1);
    check_counters();
}

/* More entries for one page than a bucket holds. */
static void foreign_limit(void **state)
{
    unsigned int i, refs = fake_refs, n = 0;

    foreign_type = p2m_grant_map_rw;
    foreign_page = fake_guest_pages(&other, 5);
    dom.arch.p2m.hook = foreign_hook;
    assert_int_equal(attach(1, 0x10, 0), VIOMMU_S_OK);
    for ( i = 0; i < 300; i++ )
        if ( map(1, i << 13, 0x1000, 0x100000, RW) == VIOMMU_S_OK )
            n++;
    assert_int_equal(n, 255);
    assert_int_equal(dma(0x10, 100 << 13, true, NULL), 0);
    take_back(0);
    assert_int_equal(pd->stats.revoked, 255);
    for ( i = 0; i < 300; i++ )
        assert_int_equal(dma(0x10, i << 13, true, NULL), EVT_F_TRANSLATION);
    /* Room again. */
    assert_int_equal(map(1, 0, 0x1000, 0x101000, RW), VIOMMU_S_OK);
    assert_int_equal(unmap(1, 0, 0x1000), VIOMMU_S_OK);
    assert_int_equal(detach(1, 0x10), VIOMMU_S_OK);
    assert_int_equal(fake_refs, refs);
    foreign_page = NULL;
}

/* A domain whose sync failed keeps all it has, on purpose. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "detect_leaks=0"; }

#define T(f) cmocka_unit_test_setup_teardown(f, setup_p2m, teardown)
#define L(f) cmocka_unit_test_setup_teardown(f, setup_p2m_lazy, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(strict_removal), T(batches), T(building), T(building_many),
        T(changes_in_place),
        L(changes_in_place), T(unused), L(unused), L(lazy_removal),
        L(bypass_completes),
        T(freed_late), L(freed_late), T(block_1g), L(block_1g), T(change_hangs), T(many), L(many), L(strict_switch),
        T(fails_closed), L(fails_closed), T(revoke_grant), L(revoke_grant),
        T(revoke_foreign), L(revoke_foreign), L(revoke_unmapped), T(foreign_limit),
        L(foreign_limit), T(split_bbm), L(split_bbm), T(split_bbml2),
        L(split_bbml2), T(split_mixed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
