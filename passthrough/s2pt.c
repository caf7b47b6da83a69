/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Stage-2 tables of a context: map, unmap, release, in bounded steps.
 *
 * There is no list of mappings.  An entry says where a mapping begins
 * (S2_SW_FIRST), and a cleared entry stays in its place as a pending one until
 * its page may be released (see s2fmt.h).  No allocation except in map.
 */

#include <xen/domain_page.h>
#include <xen/lib.h>
#include <xen/mm.h>
#include <xen/sched.h>

#include "pviommu.h"

/*
 * What a table page's type_info holds while it is in use here: how many
 * entries are not 0, how many of them are valid leaves, the table's level, and
 * the input address of its first entry.
 */
#define META_USED(m)    ((m) & 0x3ff)
#define META_LEAVES(m)  (((m) >> 10) & 0x3ff)
#define META_LEVEL(m)   (((m) >> 20) & 0x3)
#define META_IOVA(m)    ((uint64_t)((m) >> 22) << 21)
#define META_ONE_USED   1UL
#define META_ONE_LEAF   (1UL << 10)
#define META(level, iova) (((unsigned long)(level) << 20) | \
                           (((iova) >> 21) << 22))

#define META_OF(pg)     ((pg)->u.inuse.type_info)

/* A walk holds the tables from `top` (the root's) down to where it stopped. */
struct s2_walk {
    unsigned int top, level;
    s2_pte_t *tbl[S2_LAST_LEVEL + 1];
    struct page_info *pg[S2_LAST_LEVEL + 1];
    s2_pte_t *pte;              /* the entry at `level` */
};

/*
 * Table pages of the hardware domain: one for 16 pages of its memory.  Mapping
 * all of it in one context takes one for 512.
 */
#define HW_TABLES_MAX(d) (domain_tot_pages(d) / 16)

struct page_info *pvi_pool_get(struct domain *d)
{
    struct page_info *pg;

    /*
     * As for the p2m: the hardware domain has no pool (see p2m.c of Xen).  But
     * it doesn't get all of the heap either.
     */
    if ( is_hardware_domain(d) )
    {
        pg = atomic_read(&dom_pvi(d)->hw_tables) < HW_TABLES_MAX(d)
             ? alloc_domheap_page(NULL, 0) : NULL;
        if ( pg )
            atomic_inc(&dom_pvi(d)->hw_tables);
        return pg;
    }

    spin_lock(&d->arch.paging.lock);
    pg = page_list_remove_head(&d->arch.paging.p2m_freelist);
    spin_unlock(&d->arch.paging.lock);

    return pg;
}

void pvi_pool_put(struct domain *d, struct page_info *pg)
{
    if ( is_hardware_domain(d) )
    {
        atomic_dec(&dom_pvi(d)->hw_tables);
        free_domheap_page(pg);
        return;
    }

    spin_lock(&d->arch.paging.lock);
    page_list_add_tail(pg, &d->arch.paging.p2m_freelist);
    spin_unlock(&d->arch.paging.lock);
}

static struct page_info *table_alloc(struct s2pt *pt, unsigned int level,
                                     uint64_t iova)
{
    struct page_info *pg = pvi_pool_get(pt->d);
    void *p;

    if ( !pg )
        return NULL;

    p = __map_domain_page(pg);
    clear_page(p);
    if ( pt->clean )
        clean_dcache_va_range(p, PAGE_SIZE);
    unmap_domain_page(p);

    META_OF(pg) = META(level, iova);
    pt->nr_tables++;

    return pg;
}

/* No hardware can reach @pg: it was unlinked before a sync that completed. */
static void table_free(struct s2pt *pt, struct page_info *pg)
{
    META_OF(pg) = PGT_TYPE_INFO_INITIALIZER;
    pt->nr_tables--;
    pvi_pool_put(pt->d, pg);
}

static void pte_write(const struct s2pt *pt, s2_pte_t *p, s2_pte_t v)
{
    write_atomic(p, v);
    if ( pt->clean )
        clean_dcache_va_range(p, sizeof(*p));
}

/*
 * Linked tables without entries are on pt->empty, to be reclaimed when pages
 * are needed; the root stays.
 */
static bool is_empty(const struct s2pt *pt, const struct page_info *pg)
{
    return !META_USED(META_OF(pg)) && pg != pt->root;
}

static void used_inc(struct s2pt *pt, struct page_info *pg)
{
    if ( is_empty(pt, pg) )
        page_list_del(pg, &pt->empty);
    META_OF(pg) += META_ONE_USED;
}

static void used_dec(struct s2pt *pt, struct page_info *pg)
{
    META_OF(pg) -= META_ONE_USED;
    if ( is_empty(pt, pg) )
        page_list_add_tail(pg, &pt->empty);
}

static void walk_start(struct s2pt *pt, struct s2_walk *w, uint64_t iova)
{
    unsigned int l = pt->start_level;

    w->top = w->level = l;
    w->pg[l] = pt->root;
    w->tbl[l] = __map_domain_page(pt->root);
    w->pte = &w->tbl[l][s2_index(iova, l)];
}

static void walk_down(struct s2_walk *w, uint64_t iova)
{
    unsigned int l = w->level + 1;

    w->pg[l] = maddr_to_page(*w->pte & S2_ADDR_MASK);
    w->tbl[l] = __map_domain_page(w->pg[l]);
    w->level = l;
    w->pte = &w->tbl[l][s2_index(iova, l)];
}

/*
 * The last level table that was used last: most requests are about the same one
 * as the request before, and each looks at its entries more than once.  It is
 * linked as long as it is remembered.
 */
static void remember(struct s2pt *pt, const struct s2_walk *w)
{
    if ( w->level == S2_LAST_LEVEL )
        pt->recent = w->pg[S2_LAST_LEVEL];
}

static void forget(struct s2pt *pt, const struct page_info *pg)
{
    if ( pt->recent == pg )
        pt->recent = NULL;
}

/*
 * Start at that table's entry for @iova, if the table has @iova..@last and more
 * than those: the walk goes no higher then.
 */
static bool walk_recent(struct s2pt *pt, struct s2_walk *w, uint64_t iova,
                        uint64_t last)
{
    struct page_info *pg = pt->recent;
    uint64_t mask = (1UL << s2_shift(2)) - 1;

    if ( !pg || (iova & ~mask) != META_IOVA(META_OF(pg)) ||
         ((iova ^ last) & ~mask) || last - iova >= mask )
        return false;

    w->top = w->level = S2_LAST_LEVEL;
    w->pg[S2_LAST_LEVEL] = pg;
    w->tbl[S2_LAST_LEVEL] = __map_domain_page(pg);
    w->pte = &w->tbl[S2_LAST_LEVEL][s2_index(iova, S2_LAST_LEVEL)];

    return true;
}

/* Go down as far as there are valid tables, at most to @target. */
static void walk_to(struct s2pt *pt, struct s2_walk *w, uint64_t iova,
                    unsigned int target)
{
    if ( target == S2_LAST_LEVEL && walk_recent(pt, w, iova, iova) )
        return;

    walk_start(pt, w, iova);
    while ( w->level < target && s2_is_table(*w->pte, w->level) )
        walk_down(w, iova);
    remember(pt, w);
}

/*
 * From @from, where the walk is, on to @iova: up to the table that holds both
 * addresses, or stay.  The caller goes down again.
 */
static void walk_move(struct s2pt *pt, struct s2_walk *w, uint64_t from,
                      uint64_t iova)
{
    while ( w->level > w->top &&
            ((from ^ iova) >> s2_shift(w->level - 1)) )
        unmap_domain_page(w->tbl[w->level--]);
    w->pte = &w->tbl[w->level][s2_index(iova, w->level)];
}

static void walk_end(struct s2pt *pt, struct s2_walk *w)
{
    unsigned int l;

    for ( l = w->top; l <= w->level; l++ )
        unmap_domain_page(w->tbl[l]);
}

int s2pt_init(struct s2pt *pt, struct domain *d, unsigned int ias, bool clean)
{
    memset(pt, 0, sizeof(*pt));
    pt->d = d;
    pt->ias = ias;
    pt->clean = clean;
    INIT_PAGE_LIST_HEAD(&pt->empty);

    /* One page of root: level 1 resolves 39 bits, level 0 40 to 48. */
    pt->start_level = ias <= s2_shift(0) ? 1 : 0;
    pt->root = table_alloc(pt, pt->start_level, 0);

    return pt->root ? 0 : -ENOMEM;
}

/* Link a new table below w->pte, which is empty. */
static int link_table(struct s2pt *pt, struct s2_walk *w, uint64_t iova)
{
    unsigned int level = w->level + 1;
    uint64_t base = iova & ~((1UL << s2_shift(w->level)) - 1);
    struct page_info *pg = table_alloc(pt, level, base);

    if ( !pg )
        return -ENOMEM;

    used_inc(pt, w->pg[w->level]);
    if ( is_empty(pt, pg) )
        page_list_add_tail(pg, &pt->empty);

    /*
     * The zeroed table before the entry that names it.  Partner: the address
     * dependency in the SMMU's walk.
     */
    dsb(ishst);
    pte_write(pt, w->pte, page_to_maddr(pg) | S2_TABLE | S2_VALID);

    return 0;
}

/* Walk to @target, linking tables on the way. */
static int walk_alloc(struct s2pt *pt, struct s2_walk *w, uint64_t iova,
                      unsigned int target)
{
    int rc = 0;

    if ( target == S2_LAST_LEVEL && walk_recent(pt, w, iova, iova) )
        return 0;

    walk_start(pt, w, iova);
    while ( !rc && w->level < target )
    {
        s2_pte_t p = *w->pte;

        if ( s2_is_leaf(p, w->level) )
            rc = -EBUSY;
        else if ( s2_is_pending(p) )
            rc = -EAGAIN;
        else
        {
            if ( !p )
                rc = link_table(pt, w, iova);
            if ( !rc )
                walk_down(w, iova);
        }
    }
    remember(pt, w);

    return rc;
}

static s2_pte_t leaf(mfn_t mfn, s2_pte_t prot, unsigned int level)
{
    return mfn_to_maddr(mfn) | prot | S2_AF | S2_XN | S2_VALID |
           (level == S2_LAST_LEVEL ? S2_TABLE : 0);
}

/*
 * Write leaf @new at w->pte, where there is none.  A pending entry that says
 * the same comes back to life.  0, -EBUSY or -EAGAIN.
 */
static int leaf_enter(struct s2pt *pt, struct pvi_domain *pd,
                      struct s2_walk *w, s2_pte_t new)
{
    s2_pte_t old = *w->pte;

    if ( s2_is_valid(old) )
        return -EBUSY;

    if ( old )
    {
        /*
         * A block may have lost part of its references to a release already,
         * and foreign.c counts each entry for another domain's page once.
         */
        if ( !pd || w->level != S2_LAST_LEVEL || !s2_same_leaf(old, new) ||
             (new & S2_SW_FOREIGN) )
            return -EAGAIN;
        pvi_fq_revived(pd, S2_PEND_SLOT_OF(old), 1);
        /* The old entry's reference is held as before; drop the new one. */
        if ( !(new & S2_SW_NOREF) )
            put_page(maddr_to_page(new & S2_ADDR_MASK));
    }
    else
        used_inc(pt, w->pg[w->level]);

    pte_write(pt, w->pte, new);
    META_OF(w->pg[w->level]) += META_ONE_LEAF;
    pt->nr_pages += 1UL << (s2_shift(w->level) - PAGE_SHIFT);

    return 0;
}

/* One block at @level; @iova and @mfn are aligned to it. */
static int map_block(struct s2pt *pt, uint64_t iova, mfn_t mfn, s2_pte_t prot,
                     bool first, unsigned int level)
{
    struct s2_walk w;
    int rc = walk_alloc(pt, &w, iova, level);

    if ( !rc )
        rc = s2_is_table(*w.pte, level) ? -ENOSPC :
             leaf_enter(pt, NULL, &w, leaf(mfn, prot, level) |
                                      (first ? S2_SW_FIRST : 0));
    walk_end(pt, &w);

    return rc;
}

int s2pt_room(struct s2pt *pt, uint64_t iova, unsigned int level)
{
    struct s2_walk w;
    s2_pte_t p;

    walk_to(pt, &w, iova, level);
    p = *w.pte;
    walk_end(pt, &w);

    if ( s2_is_table(p, w.level) )
        return -ENOSPC;

    return !p ? 0 : s2_is_valid(p) ? -EBUSY : -EAGAIN;
}

int s2pt_map_huge(struct s2pt *pt, uint64_t iova, mfn_t mfn, s2_pte_t prot,
                  bool first)
{
    return map_block(pt, iova, mfn, prot, first, 1);
}

long s2pt_map(struct s2pt *pt, struct pvi_domain *pd, uint64_t iova, mfn_t mfn,
              unsigned long nr, s2_pte_t prot, bool first)
{
    struct s2_walk w;
    unsigned long n, i;
    int rc;

    if ( nr >= S2_ENTRIES &&
         !((iova | mfn_to_maddr(mfn)) & ((1UL << s2_shift(2)) - 1)) )
    {
        rc = map_block(pt, iova, mfn, prot, first, 2);
        if ( rc != -ENOSPC )
            return rc ?: S2_ENTRIES;
    }

    rc = walk_alloc(pt, &w, iova, S2_LAST_LEVEL);
    n = min(nr, (unsigned long)(S2_ENTRIES - s2_index(iova, S2_LAST_LEVEL)));

    for ( i = 0; !rc && i < n; i++, w.pte++ )
    {
        rc = leaf_enter(pt, pd, &w, leaf(mfn_add(mfn, i), prot, S2_LAST_LEVEL) |
                                    (first && !i ? S2_SW_FIRST : 0));
        if ( rc )
            break;
    }
    walk_end(pt, &w);

    return i ?: rc;
}

s2_pte_t s2pt_lookup(struct s2pt *pt, uint64_t iova, unsigned int *level)
{
    struct s2_walk w;
    s2_pte_t p;

    walk_to(pt, &w, iova, S2_LAST_LEVEL);
    p = *w.pte;
    *level = w.level;
    walk_end(pt, &w);

    return s2_is_leaf(p, *level) ? p : 0;
}

void s2pt_begin(struct s2pt *pt, uint64_t iova)
{
    struct s2_walk w;

    if ( pt->ias < 64 && (iova >> pt->ias) )
        return;

    walk_to(pt, &w, iova, S2_LAST_LEVEL);
    /* The hardware ignores the bit: no break-before-make. */
    if ( s2_is_leaf(*w.pte, w.level) )
        pte_write(pt, w.pte, *w.pte | S2_SW_FIRST);
    walk_end(pt, &w);
}

/* Is @iova, where the walk is, in the middle of a mapping? */
static bool inside_mapping(const struct s2_walk *w, uint64_t iova)
{
    s2_pte_t p = *w->pte;

    return s2_is_leaf(p, w->level) &&
           (!(p & S2_SW_FIRST) || (iova & ((1UL << s2_shift(w->level)) - 1)));
}

bool s2pt_splits(struct s2pt *pt, uint64_t start, uint64_t last)
{
    uint64_t next = last + 1;
    struct s2_walk w;
    bool splits;

    /* A range need not be aligned: its ends are then in a page's middle. */
    walk_to(pt, &w, start, S2_LAST_LEVEL);
    splits = inside_mapping(&w, start);
    if ( !splits && !(next >> pt->ias) )
    {
        if ( w.top == S2_LAST_LEVEL && ((start ^ next) >> s2_shift(2)) )
        {
            /* The walk was within a table that doesn't have the other end. */
            walk_end(pt, &w);
            walk_to(pt, &w, next, S2_LAST_LEVEL);
        }
        else
        {
            walk_move(pt, &w, start, next);
            while ( s2_is_table(*w.pte, w.level) )
                walk_down(&w, next);
        }
        splits = inside_mapping(&w, next);
    }
    walk_end(pt, &w);

    return splits;
}

static void cleared(struct s2_cleared *c, uint64_t first, uint64_t last,
                    unsigned long pages, unsigned int level)
{
    if ( c->first > c->last )
        c->first = first;
    c->last = last;
    c->pages += pages;
    c->levels |= 1U << level;
}

/*
 * What a table costs that is unlinked as a whole: so a slice of an UNMAP takes
 * no more than PVI_FQ_PAGES pages out, and what waits for a release stays
 * within a few slices' worth.
 */
#define TABLE_WORK (PVI_SLICE_WORK * S2_ENTRIES / PVI_FQ_PAGES)

/* A last level table that lies in the range as a whole. */
static bool is_whole(unsigned int level, uint64_t iova, uint64_t last)
{
    uint64_t mask = (1UL << s2_shift(2)) - 1;

    return level == 2 && !(iova & mask) && last - iova >= mask;
}

/* Unlink the table at w->pte with all its leaves by one write. */
static void unlink_table(struct s2pt *pt, struct s2_walk *w, uint64_t iova,
                         unsigned int slot, struct s2_cleared *c)
{
    struct page_info *pg = maddr_to_page(*w->pte & S2_ADDR_MASK);
    unsigned long pages = META_LEAVES(META_OF(pg));

    if ( is_empty(pt, pg) )
        page_list_del(pg, &pt->empty);
    forget(pt, pg);
    pte_write(pt, w->pte, s2_make_pending(*w->pte, slot));
    pt->nr_pages -= pages;
    cleared(c, iova, iova + (1UL << s2_shift(2)) - 1, pages, S2_LAST_LEVEL);
    c->table = true;
}

/*
 * Down to the entry for @iova, but not into a table without entries: there is
 * nothing to find.
 */
static void walk_to_entry(struct s2pt *pt, struct s2_walk *w, uint64_t iova)
{
    while ( s2_is_table(*w->pte, w->level) &&
            META_USED(META_OF(maddr_to_page(*w->pte & S2_ADDR_MASK))) )
        walk_down(w, iova);
}

uint64_t s2pt_unmap(struct s2pt *pt, uint64_t start, uint64_t last,
                    unsigned int slot, int *budget, struct s2_cleared *c)
{
    uint64_t iova = start, end;
    struct s2_walk w;

    if ( iova > last || *budget <= 0 )
        return iova;

    if ( !walk_recent(pt, &w, iova, last) )
        walk_start(pt, &w, iova);
    for ( ; ; walk_move(pt, &w, end, iova) )
    {
        s2_pte_t p;

        while ( s2_is_table(*w.pte, w.level) &&
                !is_whole(w.level, iova, last) &&
                META_USED(META_OF(maddr_to_page(*w.pte & S2_ADDR_MASK))) )
            walk_down(&w, iova);

        p = *w.pte;
        end = iova | ((1UL << s2_shift(w.level)) - 1);

        if ( s2_is_table(p, w.level) && is_whole(w.level, iova, last) )
        {
            unlink_table(pt, &w, iova, slot, c);
            /* One write, but its pages count when the entry is released. */
            *budget -= TABLE_WORK;
        }
        else
        {
            if ( s2_is_leaf(p, w.level) )
            {
                uint64_t size = 1UL << s2_shift(w.level);

                pte_write(pt, w.pte, s2_make_pending(p, slot));
                META_OF(w.pg[w.level]) -= META_ONE_LEAF;
                pt->nr_pages -= size >> PAGE_SHIFT;
                cleared(c, end - size + 1, end, size >> PAGE_SHIFT, w.level);
            }
            (*budget)--;
        }

        iova = end + 1;
        if ( iova > last || *budget <= 0 )
            break;
    }
    walk_end(pt, &w);

    return iova;
}

/* Drop the references of the leaf at @iova from page @from on. */
static unsigned long leaf_put(struct s2pt *pt, uint64_t iova, s2_pte_t p,
                              unsigned int level, unsigned long from,
                              int *budget)
{
    unsigned long nr = 1UL << (s2_shift(level) - PAGE_SHIFT), i;
    struct page_info *pg;

    if ( p & S2_SW_FOREIGN )
        pvi_foreign_del(dom_pvi(pt->d),
                        container_of(pt, struct pvi_context, pt)->id, iova,
                        maddr_to_mfn(p & S2_ADDR_MASK), p & S2_SW_NOREF);
    if ( p & S2_SW_NOREF )
    {
        (*budget)--;
        return nr;
    }

    pg = maddr_to_page(p & S2_ADDR_MASK);
    for ( i = from; i < nr && *budget > 0; i++, (*budget)-- )
        /* The caller knows of a sync after this entry was cleared. */
        put_page(pg + i);

    return i;
}

/* Release what a last level table holds, and the table; others are empty. */
static void release_table(struct s2pt *pt, s2_pte_t p, int *budget)
{
    struct page_info *pg = maddr_to_page(p & S2_ADDR_MASK);
    s2_pte_t *t = __map_domain_page(pg);
    unsigned int i, used = META_USED(META_OF(pg));
    uint64_t iova = META_IOVA(META_OF(pg));

    ASSERT(!used || META_LEVEL(META_OF(pg)) == S2_LAST_LEVEL);
    for ( i = 0; used && i < S2_ENTRIES; i++ )
    {
        int one = 1;

        if ( !t[i] )
            continue;
        leaf_put(pt, iova + ((uint64_t)i << PAGE_SHIFT), t[i], S2_LAST_LEVEL,
                 0, &one);
        (*budget)--;
        used--;
    }
    unmap_domain_page(t);

    table_free(pt, pg);
}

uint64_t s2pt_release(struct s2pt *pt, uint64_t start, uint64_t last,
                      unsigned int slot, int *budget)
{
    uint64_t iova = start, end;
    struct s2_walk w;

    if ( iova > last || *budget <= 0 )
        return iova;

    if ( !walk_recent(pt, &w, iova, last) )
        walk_start(pt, &w, iova);
    for ( ; ; walk_move(pt, &w, end, iova) )
    {
        uint64_t size;
        s2_pte_t p;

        walk_to_entry(pt, &w, iova);
        p = *w.pte;
        size = 1UL << s2_shift(w.level);
        end = iova | (size - 1);

        if ( s2_is_pending(p) && S2_PEND_SLOT_OF(p) == slot )
        {
            uint64_t off = iova & (size - 1);

            if ( s2_names_table(p, w.level) )
            {
                /* Not linked any more, and its TLB entries are gone. */
                release_table(pt, p, budget);
                off = size;
            }
            else
                off = leaf_put(pt, iova - off, p, w.level, off >> PAGE_SHIFT,
                               budget) << PAGE_SHIFT;

            if ( off < size )
            {
                /* A block that takes more than this slice. */
                iova = (iova & ~(size - 1)) + off;
                break;
            }
            pte_write(pt, w.pte, 0);
            used_dec(pt, w.pg[w.level]);
        }
        else
            (*budget)--;

        iova = end + 1;
        if ( iova > last || *budget <= 0 )
            break;
    }
    walk_end(pt, &w);

    return iova;
}

unsigned int s2pt_reclaim(struct s2pt *pt, unsigned int slot, int *budget,
                          struct s2_cleared *c)
{
    unsigned int nr = 0;

    for ( ; *budget > 0; (*budget)-- )
    {
        struct page_info *pg = page_list_remove_head(&pt->empty);
        uint64_t iova, size;
        unsigned int level;
        struct s2_walk w;

        if ( !pg )
            break;

        forget(pt, pg);
        iova = META_IOVA(META_OF(pg));
        level = META_LEVEL(META_OF(pg)) - 1;
        size = 1UL << s2_shift(level);
        walk_to(pt, &w, iova, level);
        ASSERT(w.level == level &&
               maddr_to_page(*w.pte & S2_ADDR_MASK) == pg);
        pte_write(pt, w.pte, s2_make_pending(*w.pte, slot));
        walk_end(pt, &w);

        if ( c->first > c->last )
            c->first = iova, c->last = iova + size - 1;
        c->first = min(c->first, iova);
        c->last = max(c->last, iova + size - 1);
        c->table = true;
        nr++;
    }

    return nr;
}

/* Free the table at @pte, whose entries are all done; no hardware knows it. */
static void destroy_table(struct s2pt *pt, s2_pte_t *pte, struct page_info *pg)
{
    *pte = 0;
    if ( is_empty(pt, pg) )
        page_list_del(pg, &pt->empty);
    table_free(pt, pg);
}

bool s2pt_destroy(struct s2pt *pt, uint64_t *cursor, int *budget)
{
    uint64_t last = (1UL << pt->ias) - 1, iova = *cursor, size;
    struct s2_walk w;

    if ( !pt->root )
        return true;
    pt->recent = NULL;

    for ( walk_start(pt, &w, iova); iova <= last && *budget > 0; )
    {
        s2_pte_t p;
        struct page_info *pg;

        while ( w.level < 2 && s2_is_table(*w.pte, w.level) )
            walk_down(&w, iova);

        p = *w.pte;
        size = 1UL << s2_shift(w.level);

        if ( s2_names_table(p, w.level) )
        {
            /* Above level 2 only pending ones: they are empty. */
            pg = maddr_to_page(p & S2_ADDR_MASK);
            if ( s2_is_valid(p) && is_empty(pt, pg) )
                page_list_del(pg, &pt->empty);
            release_table(pt, p, budget);
            (*budget)--;
            iova = (iova | (size - 1)) + 1;
        }
        else if ( p )
            iova = (iova & ~(size - 1)) +
                   (leaf_put(pt, iova & ~(size - 1), p, w.level,
                             (iova & (size - 1)) >> PAGE_SHIFT,
                             budget) << PAGE_SHIFT);
        else
        {
            iova = (iova | (size - 1)) + 1;
            (*budget)--;
        }

        if ( iova & (size - 1) )
            break; /* a block that takes more than this slice */
        *w.pte = 0;

        /* Tables that end here are done; the root stays for last. */
        while ( w.level > pt->start_level &&
                !(iova & ((1UL << s2_shift(w.level - 1)) - 1)) )
        {
            pg = w.pg[w.level];
            unmap_domain_page(w.tbl[w.level--]);
            w.pte = &w.tbl[w.level][s2_index(iova - 1, w.level)];
            destroy_table(pt, w.pte, pg);
        }
        w.pte = &w.tbl[w.level][s2_index(iova, w.level)];
    }
    walk_end(pt, &w);
    *cursor = iova;

    if ( iova <= last )
        return false;

    table_free(pt, pt->root);
    pt->root = NULL;
    pt->nr_pages = 0;

    return true;
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * tab-width: 4
 * indent-tabs-mode: nil
 * End:
 */
