/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The property test's Xen: the p2m of the guest, as dictionary and as the
 * tables that CPUs and SMMUs share, its changes, and who holds which page.
 */
#ifndef PROP_XEN_H
#define PROP_XEN_H

#include "guest.h"
#include "prop_model.h"

#define NR_GFNS     (GUEST_PAGES - 16)  /* the rings stay as they are */
#define NR_REGIONS  (GUEST_PAGES / 512)
#define NR_FOREIGN  48
#define MMIO_MFN    0x8000U
#define HUGE_GFN    (1UL << 18)         /* 1 GiB in one piece */

struct p2m_page {
    uint32_t mfn;
    uint8_t type, access;       /* p2m_invalid: nothing there */
    struct m_page dma;          /* stale, as in a context */
};

static struct p2m_page p2m[GUEST_PAGES];
static bool p2m_block[NR_REGIONS];
static uint64_t *p2m_l2, *p2m_l3[NR_REGIONS];
static struct domain other;
static struct page_info *foreign[NR_FOREIGN], *huge;
static bool huge_split;         /* Xen has split that block */
static bool p2m_wait;           /* the lock's end waits for all that is queued */
static uint32_t ended[16];      /* grants since then */
static unsigned int nr_ended;
static unsigned int p2m_batched;

/* Per frame: the owner's reference, and those of the p2m. */
static uint8_t fr_alloc[FAKE_NR_PAGES], fr_p2m[FAKE_NR_PAGES];
static unsigned long fr_end;

static unsigned long frame(uint32_t mfn)
{
    return mfn - (FAKE_RAM_BASE >> PAGE_SHIFT);
}

static void adopt(struct page_info *pg, unsigned long nr)
{
    unsigned long f = pg - fake_frames;

    memset(fr_alloc + f, 1, nr);
    fr_end = max(fr_end, f + nr);
}

/* The owner gives a page back. */
static void disown(uint32_t mfn)
{
    fr_alloc[frame(mfn)] = 0;
    fake_refs++;                /* this one was not taken by get_page() */
    put_page(mfn_to_page(_mfn(mfn)));
}

/* A grant: its end waits in a lazy domain, too. */
static bool is_grant_type(unsigned int t)
{
    return t == p2m_grant_map_rw || t == p2m_grant_map_ro ||
           t == p2m_iommu_map_rw || t == p2m_iommu_map_ro;
}

static bool is_foreign_type(unsigned int t)
{
    return t == p2m_map_foreign_rw || t == p2m_map_foreign_ro;
}

static bool is_mmio_type(unsigned int t)
{
    return t == p2m_mmio_direct_dev || t == p2m_mmio_direct_nc ||
           t == p2m_mmio_direct_c;
}

static bool is_ro_type(unsigned int t)
{
    return t == p2m_ram_ro || t == p2m_grant_map_ro || t == p2m_iommu_map_ro ||
           t == p2m_map_foreign_ro;
}

/* What a device may do with a page; 0: nothing. */
static unsigned int rights(const struct p2m_page *e)
{
    unsigned int r;

    if ( e->type == p2m_invalid || e->access == p2m_access_n )
        return 0;
    r = M_READ | (is_ro_type(e->type) || e->access == p2m_access_r ? 0
                                                                   : M_WRITE);
    if ( is_mmio_type(e->type) )
        r |= M_NOREF | M_FOREIGN;
    else if ( is_grant_type(e->type) || is_foreign_type(e->type) )
        r |= M_FOREIGN;
    return r;
}

static const struct p2m_page *p2m_at(uint64_t gfn)
{
    static struct p2m_page e;

    if ( gfn < GUEST_PAGES )
        return &p2m[gfn];
    e = (struct p2m_page){};
    if ( huge && gfn - HUGE_GFN < 1UL << 18 )
    {
        e.type = p2m_ram_rw;
        e.access = p2m_access_rwx;
        e.mfn = mfn_x(page_to_mfn(huge)) + (gfn - HUGE_GFN);
    }
    return &e;
}

static void p2m_hook(unsigned long gfn, mfn_t *mfn, p2m_type_t *t,
                     p2m_access_t *a, unsigned int *order)
{
    const struct p2m_page *e = p2m_at(gfn);

    *mfn = e->type == p2m_invalid ? INVALID_MFN : _mfn(e->mfn);
    *t = e->type;
    *a = e->access;
    *order = gfn >= HUGE_GFN ? (huge_split ? 9 : 18) : gfn < GUEST_PAGES && p2m_block[gfn / 512]
                                    ? 9 : 0;
}

static void pte_store(uint64_t *p, uint64_t v)
{
    *p = v;
    if ( sw[0].noncoherent )
        clean_dcache_va_range(p, sizeof(*p));
}

static uint64_t pte_of(const struct p2m_page *e)
{
    uint64_t v;

    if ( e->type == p2m_invalid )
        return 0;
    v = ((uint64_t)e->mfn << PAGE_SHIFT) | (uint64_t)e->type << 55 | 0x73f;
    if ( e->access != p2m_access_n )
        v |= 1 << 6;
    if ( rights(e) & M_WRITE )
        v |= 1 << 7;
    return v;
}

static struct p2m_page ram_page(unsigned long gfn)
{
    return (struct p2m_page){ .mfn = mfn_x(page_to_mfn(ram)) + gfn,
                              .type = p2m_ram_rw, .access = p2m_access_rwx };
}

static void fill_l3(unsigned int r)
{
    unsigned int i;

    for ( i = 0; i < 512; i++ )
        p2m_l3[r][i] = pte_of(&p2m[r * 512 + i]);
    if ( sw[0].noncoherent )
        clean_dcache_va_range(p2m_l3[r], PAGE_SIZE);
}

static void p2m_setup(uint64_t blocks)
{
    uint64_t *l1 = page_to_virt(dom.arch.p2m.root);
    unsigned int r;
    unsigned long i;

    memset(&other, 0, sizeof(other));
    other.domain_id = 9;
    other.creation_finished = true;
    memset(fr_p2m, 0, max(fr_end, 1UL));
    memset(fr_alloc, 0, max(fr_end, 1UL));
    fr_end = 0;
    p2m_wait = false;
    p2m_batched = nr_ended = 0;
    adopt(ram, GUEST_PAGES);
    for ( i = 0; i < GUEST_PAGES; i++ )
        p2m[i] = ram_page(i);
    for ( i = 0; i < NR_FOREIGN; i++ )
    {
        foreign[i] = fake_guest_pages(&other, 0);
        adopt(foreign[i], 1);
    }
    p2m_l2 = page_to_virt(alloc_domheap_pages(NULL, 0, 0));
    clear_page(p2m_l2);
    for ( r = 0; r < NR_REGIONS; r++ )
    {
        p2m_block[r] = r && r < NR_REGIONS - 1 && (blocks >> r & 1);
        p2m_l3[r] = page_to_virt(alloc_domheap_pages(NULL, 0, 0));
        fill_l3(r);
        p2m_l2[r] = p2m_block[r] ? pte_of(&p2m[r * 512]) & ~2UL
                                 : virt_to_maddr(p2m_l3[r]) | 3;
    }
    l1[0] = virt_to_maddr(p2m_l2) | 3;
    if ( sw[0].noncoherent )
    {
        clean_dcache_va_range(p2m_l2, PAGE_SIZE);
        clean_dcache_va_range(l1, 2 * PAGE_SIZE);
    }
    dom.arch.p2m.hook = p2m_hook;
}

/* All contexts' pages for a guest frame that leaves the p2m. */
static void model_revoke(uint32_t gfn, uint32_t mfn)
{
    unsigned int c;
    uint32_t i;

    for ( c = 0; c < M_CTXS && m_foreign; c++ )
        for ( i = 0; m_ctx[c].mapped && i < m_nr_pages; i++ )
        {
            struct m_page *p = &m_ctx[c].page[i], *next;

            if ( (p->flags & M_FOREIGN) && p->gfn == gfn && p->mfn == mfn )
            {
                m_clear(&m_ctx[c], p, true);
                m_revoked++;
                /* The rest of the mapping is one of its own. */
                next = m_page(&m_ctx[c], m_iova(i) + 0x1000);
                if ( next && (next->flags & M_MAPPED) )
                    next->flags |= M_FIRST;
            }
        }
}

/* The p2m lock is held.  @new: NULL to remove. */
static void p2m_set_locked(unsigned long gfn, const struct p2m_page *new)
{
    struct p2m_page *e = &p2m[gfn], old = *e;
    unsigned int r = gfn / 512;
    uint64_t *pte = &p2m_l3[r][gfn % 512];
    lpae_t was;
    bool grant = is_grant_type(old.type) && mfn_valid(_mfn(old.mfn));
    bool other_s = grant || is_foreign_type(old.type);
    unsigned long revoked = m_revoked;

    if ( p2m_block[r] )
    {
        /* Break before make: Xen splits the block. */
        pte_store(&p2m_l2[r], 0);
        pviommu_p2m_break(&dom.arch.p2m, _gfn(gfn), 2);
        fill_l3(r);
        pte_store(&p2m_l2[r], virt_to_maddr(p2m_l3[r]) | 3);
        p2m_block[r] = false;
    }

    was.bits = *pte;
    pte_store(pte, 0);
    e->type = p2m_invalid;
    pviommu_p2m_change(&dom.arch.p2m, _gfn(gfn), 0, &was, 3, !new);

    if ( old.type != p2m_invalid )
    {
        if ( !new )
            m_add_stale(&e->dma, 0, old.mfn);
        if ( other_s || is_mmio_type(old.type) )
            model_revoke(gfn, old.mfn);
        if ( new && m_revoked != revoked )
            m_all_flushed();
        if ( !new && pd->strict )
            p2m_wait = true;
        if ( grant )
            ended[nr_ended++ % ARRAY_SIZE(ended)] = old.mfn;
    }
    if ( other_s )
    {
        fr_p2m[frame(old.mfn)]--;
        put_page(mfn_to_page(_mfn(old.mfn)));
    }
    if ( !new )
        return;

    *e = *new;
    pte_store(pte, pte_of(e));
    if ( is_grant_type(e->type) || is_foreign_type(e->type) )
    {
        fr_p2m[frame(e->mfn)]++;
        assert_true(get_page(mfn_to_page(_mfn(e->mfn)), &other));
    }
}

/* A p2m operation has ended, and its batch if there was one. */
static void p2m_done(void)
{
    if ( p2m_batched )
        return;
    if ( p2m_wait )
        m_all_flushed();
    p2m_wait = false;
    /* Grants that have ended: their pages are their owner's again. */
    while ( nr_ended )
    {
        uint32_t mfn = ended[--nr_ended % ARRAY_SIZE(ended)];
        paddr_t pa = (paddr_t)mfn << PAGE_SHIFT;

        /* Granted twice, it is still here by the other one. */
        if ( !pd->broken && !fr_p2m[frame(mfn)] && (sw_reaching(&sw[0], pa, PAGE_SIZE) ||
                             sw_reaching(&sw[1], pa, PAGE_SIZE)) )
            fail_msg("page %#lx is reached after the end of its grant",
                     (long)pa);
    }
}

static void p2m_unlock(void)
{
    pviommu_p2m_unlock(&dom.arch.p2m);
    spin_unlock(&dom.arch.p2m.lock);
    p2m_done();
}

static void p2m_set(unsigned long gfn, const struct p2m_page *new)
{
    spin_lock(&dom.arch.p2m.lock);
    p2m_set_locked(gfn, new);
    p2m_unlock();
}

static void batch_begin(void)
{
    pviommu_p2m_batch_begin();
    p2m_batched++;
}

static void batch_end(void)
{
    pviommu_p2m_batch_end();
    p2m_batched--;
    p2m_done();
}

/* A whole region at once: out as a block, or in as one. */
static void p2m_set_block(unsigned int r, bool remove)
{
    unsigned long gfn = r * 512UL, i;
    lpae_t was = { .bits = p2m_l2[r] };

    spin_lock(&dom.arch.p2m.lock);
    pte_store(&p2m_l2[r], 0);
    for ( i = gfn; i < gfn + 512; i++ )
        p2m[i].type = p2m_invalid;
    pviommu_p2m_change(&dom.arch.p2m, _gfn(gfn), 9, &was, 2, remove);
    if ( p2m_block[r] && remove )
    {
        for ( i = gfn; i < gfn + 512; i++ )
            m_add_stale(&p2m[i].dma, 0, p2m[i].mfn);
        p2m_wait |= pd->strict;
        /* An empty table in its place, so that pages can be entered. */
        p2m_block[r] = false;
        fill_l3(r);
        pte_store(&p2m_l2[r], virt_to_maddr(p2m_l3[r]) | 3);
    }
    else if ( !remove )
    {
        /* A table goes, and its pages are where they were. */
        for ( i = gfn; i < gfn + 512; i++ )
            p2m[i] = ram_page(i);
        p2m_block[r] = true;
        pte_store(&p2m_l2[r], pte_of(&p2m[gfn]) & ~2UL);
    }
    p2m_unlock();
}

/* Has each page of a region its first own page, so that it can be a block? */
static bool can_be_block(unsigned int r)
{
    unsigned long i;

    for ( i = r * 512UL; i < (r + 1) * 512UL; i++ )
        if ( p2m[i].type != p2m_ram_rw || p2m[i].access != p2m_access_rwx ||
             p2m[i].mfn != mfn_x(page_to_mfn(ram)) + i )
            return false;
    return true;
}

#endif /* PROP_XEN_H */
