/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Stage-2 entries: VMSAv8-64, 4K granule (Arm ARM D8.3), as an SMMU reads them
 * too (IHI 0070 3.4), and what the driver keeps in entries the hardware
 * ignores.
 *
 * Three kinds of entry: valid ones; 0, which is empty; and pending ones, which
 * are invalid to the hardware but still name what was mapped.  A pending entry
 * waits until a sync has completed after it was cleared: then the pages or
 * the table it names are released and it becomes 0.  So the table itself is
 * the list of what has to be released, and nothing is allocated to unmap.
 */
#ifndef PVIOMMU_ARM64_S2FMT_H
#define PVIOMMU_ARM64_S2FMT_H

#include <xen/const.h>
#include <xen/types.h>

typedef uint64_t s2_pte_t;

#define S2_BITS_PER_LEVEL   9
#define S2_ENTRIES          512
#define S2_LAST_LEVEL       3

#define S2_VALID            1UL
/* Levels 0 to 2: a table, not a block.  Level 3: always 1 in a page. */
#define S2_TABLE            2UL
#define S2_ATTR_NORMAL      (0xfUL << 2)    /* write-back, both */
#define S2_ATTR_NC          (0x5UL << 2)    /* normal, non-cacheable */
#define S2_ATTR_DEVICE      (0x1UL << 2)    /* nGnRE */
#define S2_READ             (1UL << 6)
#define S2_WRITE            (2UL << 6)
#define S2_SH_OUTER         (2UL << 8)
#define S2_SH_INNER         (3UL << 8)
#define S2_AF               (1UL << 10)
#define S2_XN               (2UL << 53)
#define S2_ADDR_MASK        GENMASK(47, 12)

/* Software bits 58:55, kept in pending entries. */
#define S2_SW_FIRST         (1UL << 55)     /* a mapping begins here */
#define S2_SW_NOREF         (1UL << 56)     /* no page reference is held */
#define S2_SW_FOREIGN       (1UL << 57)     /* another domain's page */

/*
 * Pending entries: bit 0 clear; bits 51:48 and 62:59, 0 in valid ones, are the
 * flush queue slot; the rest is as it was.
 */
#define S2_PEND_SLOT(s)     ((((s2_pte_t)(s) & 0xf) << 48) | \
                             (((s2_pte_t)(s) & 0xf0) << 55))
#define S2_PEND_SLOT_OF(p)  ((((p) >> 48) & 0xf) | (((p) >> 55) & 0xf0))
#define S2_PEND_SLOT_MASK   S2_PEND_SLOT(0xff)

static inline unsigned int s2_shift(unsigned int level)
{
    return 12 + S2_BITS_PER_LEVEL * (S2_LAST_LEVEL - level);
}

static inline unsigned int s2_index(uint64_t iova, unsigned int level)
{
    return (iova >> s2_shift(level)) & (S2_ENTRIES - 1);
}

static inline bool s2_is_valid(s2_pte_t p)
{
    return p & S2_VALID;
}

static inline bool s2_is_pending(s2_pte_t p)
{
    return p && !(p & S2_VALID);
}

static inline bool s2_names_table(s2_pte_t p, unsigned int level)
{
    return level < S2_LAST_LEVEL && (p & S2_TABLE);
}

static inline bool s2_is_table(s2_pte_t p, unsigned int level)
{
    return s2_is_valid(p) && s2_names_table(p, level);
}

static inline bool s2_is_leaf(s2_pte_t p, unsigned int level)
{
    return s2_is_valid(p) && !s2_names_table(p, level);
}

static inline s2_pte_t s2_make_pending(s2_pte_t p, unsigned int slot)
{
    return (p & ~S2_VALID) | S2_PEND_SLOT(slot);
}

/* Did pending @p say the same as the new leaf @n? */
static inline bool s2_same_leaf(s2_pte_t p, s2_pte_t n)
{
    return !((p ^ n) & ~(S2_VALID | S2_PEND_SLOT_MASK | S2_SW_FIRST));
}

#endif /* PVIOMMU_ARM64_S2FMT_H */
