/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The stream table (IHI 0070 3.3.1) and VMIDs.
 *
 * An entry that was never written is invalid: its stream reaches nothing and
 * attempts are recorded.  There is no bypass entry in this file.
 */

#include <xen/bitmap.h>
#include <xen/lib.h>
#include <xen/mm.h>
#include <xen/sched.h>
#include <xen/xmalloc.h>

#include <asm/io.h>

#include "../compat.h"
#include "smmu.h"

#define STE_BYTES       (STE_WORDS * 8)

/* A linear table is used up to here: 64 KiB of entries. */
#define LINEAR_MAX_BITS 10
/*
 * Level 2 tables of one PCI bus as long as level 1 is at most 1 MiB; beyond,
 * the largest there are: 64 KiB each, and 32 MiB of level 1 for 32 bits.
 */
#define SPLIT_BUS       8
#define SPLIT_LARGE     10
#define SPLIT_BUS_MAX_BITS  25
/*
 * StreamIDs that the tree doesn't name (yet: overlays) have room up to here;
 * that is 2 KiB of level 1.
 */
#define MIN_BITS        16

static void *strtab_alloc(const struct smmu_device *smmu, size_t bytes)
{
    /* The table must be aligned to its size: page orders are. */
    void *p = alloc_xenheap_pages(get_order_from_bytes(bytes), 0);

    if ( p )
    {
        memset(p, 0, bytes);
        if ( !(smmu->flags & SMMU_F_COHERENT) )
            clean_dcache_va_range(p, bytes);
    }

    return p;
}

static void strtab_write(const struct smmu_device *smmu, uint64_t *p,
                         uint64_t v)
{
    write_atomic(p, v);
    if ( !(smmu->flags & SMMU_F_COHERENT) )
        clean_dcache_va_range(p, sizeof(*p));
}

int smmu_strtab_init(struct smmu_device *smmu, bool two_level, uint32_t last)
{
    struct smmu_strtab *st = &smmu->strtab;
    uint32_t cfg;
    size_t bytes;

    spin_lock_init(&st->lock);
    /*
     * No larger than what the tree names: streams beyond LOG2SIZE abort as
     * those without an entry do (C_BAD_STREAMID).
     */
    smmu->sid_bits = min_t(unsigned int, smmu->sid_bits,
                           max_t(unsigned int, fls(last),
                                 two_level ? MIN_BITS : LINEAR_MAX_BITS));
    st->split = smmu->sid_bits > SPLIT_BUS_MAX_BITS ? SPLIT_LARGE : SPLIT_BUS;
    st->two_level = two_level && smmu->sid_bits > st->split;

    if ( st->two_level )
    {
        st->nr_l1 = 1U << (smmu->sid_bits - st->split);
        bytes = (size_t)st->nr_l1 * 8;
        cfg = STRTAB_FMT_2LVL | STRTAB_SPLIT(st->split) | smmu->sid_bits;
        st->shared = xzalloc_array(unsigned long, BITS_TO_LONGS(st->nr_l1));
        if ( !st->shared )
            return -ENOMEM;
    }
    else
    {
        smmu->sid_bits = min_t(unsigned int, smmu->sid_bits, LINEAR_MAX_BITS);
        bytes = (size_t)STE_BYTES << smmu->sid_bits;
        cfg = smmu->sid_bits;
    }

    st->base = strtab_alloc(smmu, bytes);
    if ( !st->base )
    {
        XFREE(st->shared);
        return -ENOMEM;
    }

    writeq_relaxed(STRTAB_BASE_RA | virt_to_maddr(st->base),
                   smmu->base + SMMU_STRTAB_BASE);
    writel_relaxed(cfg, smmu->base + SMMU_STRTAB_BASE_CFG);

    return 0;
}

static size_t l2_bytes(const struct smmu_device *smmu)
{
    return (size_t)STE_BYTES << smmu->strtab.split;
}

uint64_t *smmu_l2_alloc(const struct smmu_device *smmu)
{
    return strtab_alloc(smmu, l2_bytes(smmu));
}

void smmu_l2_free(const struct smmu_device *smmu, uint64_t *l2)
{
    free_xenheap_pages(l2, get_order_from_bytes(l2_bytes(smmu)));
}

static void l2_copy(const struct smmu_device *smmu, uint64_t *to,
                    const uint64_t *from)
{
    memcpy(to, from, l2_bytes(smmu));
    if ( !(smmu->flags & SMMU_F_COHERENT) )
        clean_dcache_va_range(to, l2_bytes(smmu));
}

/* Name a level 2 table, or none, by one write. */
static void l1_write(struct smmu_device *smmu, unsigned int i, uint64_t *l2)
{
    struct smmu_strtab *st = &smmu->strtab;

    /*
     * The table's entries before the descriptor that names it.  Partner: the
     * SMMU's fetch of the descriptor before that of the entry.
     */
    dsb(ishst);
    strtab_write(smmu, &st->base[i],
                 l2 ? virt_to_maddr(l2) | L1STD_SPAN(st->split + 1) : 0);
}

/*
 * Make the SMMU forget its copy of the entry, and of the level 1 descriptor
 * with @l1, and wait for that.
 */
static int ste_sync(struct smmu_device *smmu, uint32_t sid, bool l1,
                    unsigned int *syncs)
{
    struct smmu_batch b;
    int rc;

    /* The entry before the command; partner: the SMMU's refetch after it. */
    dsb(ishst);

    smmu_batch_init(&b, smmu);
    if ( smmu->flags & SMMU_F_CFGI_RANGE )
        /* Two entries, and the descriptor in any case: the least there is. */
        rc = smmu_batch_add(&b, CMD_OP_CFGI_ALL | CMD_CFGI_STE_SID(sid), 0);
    else
        rc = smmu_batch_add(&b, CMD_OP_CFGI_STE | CMD_CFGI_STE_SID(sid),
                            l1 ? 0 : CMD_CFGI_STE_LEAF);
    (*syncs)++;

    return rc ?: smmu_batch_sync(&b);
}

static int reserve(struct smmu_device *smmu, uint32_t sid, unsigned int *syncs)
{
    struct smmu_strtab *st = &smmu->strtab;
    unsigned int i = sid >> st->split;
    uint64_t *old, *l2;

    ASSERT(spin_is_locked(&st->lock));

    if ( smmu->sid_bits < 32 && (sid >> smmu->sid_bits) )
        return -ERANGE;

    if ( !st->two_level )
        return 0;

    old = smmu_l2(st, i);
    if ( old && !test_bit(i, st->shared) )
        return 0;

    l2 = smmu_l2_alloc(smmu);
    if ( !l2 )
        return -ENOMEM;

    /* The same entries, but its own from now on. */
    if ( old )
        l2_copy(smmu, l2, old);
    l1_write(smmu, i, l2);
    __clear_bit(i, st->shared);

    /* An SMMU may remember what the descriptor was (3.21.3). */
    return ste_sync(smmu, sid, true, syncs);
}

int smmu_strtab_reserve(struct smmu_device *smmu, uint32_t sid,
                        unsigned int *syncs)
{
    struct smmu_strtab *st = &smmu->strtab;
    int rc;

    spin_lock(&st->lock);
    rc = reserve(smmu, sid, syncs);
    spin_unlock(&st->lock);

    return rc;
}

static uint64_t *ste_ptr(struct smmu_device *smmu, uint32_t sid)
{
    struct smmu_strtab *st = &smmu->strtab;

    if ( !st->two_level )
        return &st->base[(size_t)sid * STE_WORDS];

    return smmu_l2(st, sid >> st->split) +
           (size_t)(sid & ((1U << st->split) - 1)) * STE_WORDS;
}

/* Word 0 alone decides V and Config, so these are single atomic writes. */
static int ste_set_word0(struct smmu_device *smmu, uint32_t sid, uint64_t w0,
                         unsigned int *syncs)
{
    uint64_t *ste = ste_ptr(smmu, sid);

    if ( ste[0] == w0 )
        return 0;
    strtab_write(smmu, &ste[0], w0);

    return ste_sync(smmu, sid, false, syncs);
}

int smmu_ste_invalid(struct smmu_device *smmu, uint32_t sid,
                     unsigned int *syncs)
{
    return ste_set_word0(smmu, sid, 0, syncs);
}

int smmu_ste_abort(struct smmu_device *smmu, uint32_t sid, unsigned int *syncs)
{
    return ste_set_word0(smmu, sid, STE0_V | STE0_CFG_ABORT, syncs);
}

/* The entry that says @cfg; NULL: an invalid one. */
static void ste_words(const struct smmu_s2_cfg *cfg, uint64_t w[STE_WORDS])
{
    memset(w, 0, STE_BYTES);
    if ( !cfg )
        return;

    w[0] = STE0_V | STE0_CFG_S2;
    w[1] = STE1_SHCFG_INCOMING;
    w[2] = STE2_S2VMID(cfg->vmid) | STE2_S2T0SZ(cfg->t0sz) |
           STE2_S2SL0(cfg->sl0) | STE2_S2IR0_WBWA | STE2_S2OR0_WBWA |
           STE2_S2SH0_ISH | STE2_S2TG_4K | STE2_S2PS(cfg->ps) | STE2_S2AA64 |
           STE2_S2AFFD | STE2_S2R;
    w[3] = cfg->ttb & STE3_S2TTB_MASK;
}

int smmu_ste_s2(struct smmu_device *smmu, uint32_t sid,
                const struct smmu_s2_cfg *cfg, unsigned int *syncs)
{
    uint64_t *ste = ste_ptr(smmu, sid);
    uint64_t w[STE_WORDS];
    unsigned int i;
    int rc;

    ste_words(cfg, w);

    for ( i = 0; i < STE_WORDS && ste[i] == w[i]; i++ )
        continue;
    if ( i == STE_WORDS )
        return 0;

    /*
     * Words 1 to 3 can't be replaced together with word 0 in one access, so
     * the stream aborts in between: first nothing, then the rest, then V.
     */
    rc = smmu_ste_abort(smmu, sid, syncs);
    if ( rc )
        return rc;

    for ( i = 1; i < STE_WORDS; i++ )
        strtab_write(smmu, &ste[i], w[i]);

    /*
     * The SMMU may have fetched the whole entry while it aborted; drop that
     * copy before word 0 makes the other words count (3.21.3.1).
     */
    rc = ste_sync(smmu, sid, false, syncs);
    if ( rc )
        return rc;

    strtab_write(smmu, &ste[0], w[0]);

    return ste_sync(smmu, sid, false, syncs);
}

int smmu_ste_record(struct smmu_device *smmu, uint32_t sid, bool on,
                    unsigned int *syncs)
{
    static const uint64_t abort = STE0_V | STE0_CFG_ABORT;
    struct smmu_strtab *st = &smmu->strtab;
    uint64_t *ste, *p, from, to, w0;
    int rc;

    /* The table of a stream without an owner stays only as long as this. */
    spin_lock(&st->lock);
    rc = reserve(smmu, sid, syncs);
    if ( rc )
    {
        spin_unlock(&st->lock);
        return rc;
    }
    ste = ste_ptr(smmu, sid);

    /*
     * One word by compare-and-swap, so that no change of somebody else is
     * lost.  What matters of an entry that is being written is word 0, and it
     * is changed here from invalid to abort or back only: nothing is reached
     * with either, and whoever writes the entry writes its own word 0 last.
     */
    do {
        w0 = ACCESS_ONCE(ste[0]);
        if ( (w0 & STE0_CFG_MASK) == STE0_CFG_S2 )
        {
            p = &ste[2];
            from = ACCESS_ONCE(*p);
            to = on ? from | STE2_S2R : from & ~STE2_S2R;
        }
        else
        {
            p = &ste[0];
            from = w0;
            to = on ? 0 : abort;
            if ( from != (on ? abort : 0) )
                to = from;
        }
    } while ( to != from && cmpxchg(p, from, to) != from );

    if ( to != from && !(smmu->flags & SMMU_F_COHERENT) )
        clean_dcache_va_range(p, sizeof(*p));
    spin_unlock(&st->lock);

    return to == from ? 0 : ste_sync(smmu, sid, false, syncs);
}

/* Make the SMMU forget all entries and descriptors, and wait for that. */
static int cfgi_all(struct smmu_device *smmu, unsigned int *syncs)
{
    struct smmu_batch b;
    int rc;

    /* The entries before the command; partner: the SMMU's refetch. */
    dsb(ishst);

    smmu_batch_init(&b, smmu);
    rc = smmu_batch_add(&b, CMD_OP_CFGI_ALL, CMD_CFGI_ALL_RANGE);
    (*syncs)++;

    return rc ?: smmu_batch_sync(&b);
}

/* The first stream with an owner from @sid on, or ~0UL. */
static uint64_t next_owner(struct smmu_device *smmu, uint32_t sid)
{
    uint64_t found = ~0UL;
    void *stream;

    spin_lock(&smmu->streams_lock);
    if ( radix_tree_gang_lookup(&smmu->streams, &stream, sid, 1) )
        found = *(const uint32_t *)stream;
    spin_unlock(&smmu->streams_lock);

    return found;
}

/* No table, one that is shared, or one that no owner's stream needs. */
static bool bus_is_free(struct smmu_device *smmu, unsigned int i)
{
    const struct smmu_strtab *st = &smmu->strtab;

    return !smmu_l2(st, i) || test_bit(i, st->shared) ||
           next_owner(smmu, i << st->split) >> st->split != i;
}

/*
 * Entries of @first..@last that have no owner and lie in no shared table: the
 * words from @from to @to - 1.  Returns how many entries there are.
 */
static unsigned int fill_words(struct smmu_device *smmu, uint32_t first,
                               uint32_t last, const uint64_t *w,
                               unsigned int from, unsigned int to)
{
    const struct smmu_strtab *st = &smmu->strtab;
    unsigned int nr = 0, i;
    uint64_t sid, owner = next_owner(smmu, first);

    for ( sid = first; sid <= last; sid++ )
    {
        if ( st->two_level && (!smmu_l2(st, sid >> st->split) ||
                               test_bit(sid >> st->split, st->shared)) )
        {
            sid |= (1U << st->split) - 1;
            continue;
        }
        if ( owner < sid )
            owner = next_owner(smmu, sid);
        if ( owner == sid )
            continue;
        for ( i = from; i < to; i++ )
            strtab_write(smmu, ste_ptr(smmu, sid) + i, w[i]);
        nr++;
    }

    return nr;
}

int smmu_strtab_fill(struct smmu_device *smmu, uint32_t first, uint32_t nr,
                     const struct smmu_s2_cfg *cfg, const uint64_t *old,
                     uint64_t *new, unsigned int *syncs)
{
    static const uint64_t abort = STE0_V | STE0_CFG_ABORT;
    struct smmu_strtab *st = &smmu->strtab;
    uint64_t w[STE_WORDS], last = (uint64_t)first + nr - 1;
    unsigned int i, l;
    PAGE_LIST_HEAD(gone);
    struct page_info *pg;
    int rc = 0;

    if ( last >> smmu->sid_bits )
        return -ERANGE;

    ste_words(cfg, w);

    if ( st->two_level )
    {
        uint32_t mask = (1U << st->split) - 1;
        unsigned int begin = ((uint64_t)first + mask) >> st->split;
        unsigned int end = (last + 1) >> st->split;

        /* Parts of a bus at the ends, which may be others' too. */
        if ( cfg && (first & mask) )
            rc = smmu_strtab_reserve(smmu, first, syncs);
        if ( !rc && cfg && ((last + 1) & mask) )
            rc = smmu_strtab_reserve(smmu, last, syncs);
        if ( rc )
            return rc;

        for ( i = begin; i < end; i++ )
            if ( test_bit(i, st->shared) && smmu_l2(st, i) != old )
                return -EBUSY;

        for ( i = 0; cfg && i <= mask; i++ )
            memcpy(new + i * STE_WORDS, w, STE_BYTES);
        if ( cfg && !(smmu->flags & SMMU_F_COHERENT) )
            clean_dcache_va_range(new, l2_bytes(smmu));

        /*
         * From one complete table to another by one write each: at any time a
         * stream does what the old or what the new entry says.
         */
        spin_lock(&st->lock);
        for ( i = begin; i < end; i++ )
        {
            uint64_t *l2 = smmu_l2(st, i);

            if ( !bus_is_free(smmu, i) )
                continue;
            if ( l2 && !test_bit(i, st->shared) )
                page_list_add_tail(virt_to_page(l2), &gone);
            l1_write(smmu, i, cfg ? new : NULL);
            if ( cfg )
                __set_bit(i, st->shared);
            else
                __clear_bit(i, st->shared);
        }
        spin_unlock(&st->lock);
    }

    /* Others as in smmu_ste_s2(), all of them in one step. */
    l = fill_words(smmu, first, last, &abort, 0, 1);
    if ( l )
    {
        rc = cfgi_all(smmu, syncs);
        if ( rc )
            return rc;
        fill_words(smmu, first, last, w, 1, STE_WORDS);
        rc = cfgi_all(smmu, syncs);
        if ( rc )
            return rc;
        fill_words(smmu, first, last, w, 0, 1);
    }

    rc = cfgi_all(smmu, syncs);
    if ( rc )
        /* It may read the tables in @gone: they are kept, named by nothing. */
        return rc;

    /* No descriptor names them, and a sync has completed since. */
    while ( (pg = page_list_remove_head(&gone)) )
        smmu_l2_free(smmu, page_to_virt(pg));

    return 0;
}

int smmu_vmid_alloc(struct smmu_device *smmu)
{
    unsigned int nr = 1U << smmu->vmid_bits, vmid;

    spin_lock(&smmu->vmid_lock);
    vmid = find_first_zero_bit(smmu->vmids, nr);
    if ( vmid < nr )
        __set_bit(vmid, smmu->vmids);
    spin_unlock(&smmu->vmid_lock);

    return vmid < nr ? vmid : -ENOSPC;
}

void smmu_vmid_free(struct smmu_device *smmu, unsigned int vmid)
{
    spin_lock(&smmu->vmid_lock);
    ASSERT(test_bit(vmid, smmu->vmids));
    __clear_bit(vmid, smmu->vmids);
    spin_unlock(&smmu->vmid_lock);
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
