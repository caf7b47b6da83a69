/* SPDX-License-Identifier: GPL-2.0-only */
/* Stage-2 TLB invalidation: from address ranges to commands (IHI 0070 4.4). */

#include <xen/bitops.h>
#include <xen/lib.h>
#include <xen/mm.h>

#include "../compat.h"
#include "smmu.h"

/* A range command reaches (NUM + 1) << SCALE pages, 5 bits each (4.4.1.1). */
#define RIL_NUM_MAX     32U
#define RIL_SCALE_MAX   31U

int smmu_tlbi_vmid(struct smmu_batch *b, unsigned int vmid)
{
    return smmu_batch_add(b, CMD_OP_TLBI_S12_VMALL | CMD_TLBI_VMID(vmid), 0);
}

/* The next command of a range: SCALE, and how many units of it. */
static unsigned int ril_next(uint64_t pages, unsigned int *num)
{
    unsigned int scale = min_t(unsigned int, __builtin_ctzl(pages),
                               RIL_SCALE_MAX);

    *num = (pages >> scale) % RIL_NUM_MAX ?: RIL_NUM_MAX;

    return scale;
}

/* Without range commands one drops an entry of any size for an address. */
static unsigned int step_shift(bool leaf, unsigned int level)
{
    return leaf && level ? 39 - 9 * level : PAGE_SHIFT;
}

unsigned int smmu_tlbi_range_cost(const struct smmu_device *smmu,
                                  uint64_t pages, bool leaf,
                                  unsigned int level)
{
    unsigned int cost = 0;

    if ( !(smmu->flags & SMMU_F_RIL) )
    {
        unsigned int shift = step_shift(leaf, level) - PAGE_SHIFT;

        pages = ((pages - 1) >> shift) + 1;
        return pages > UINT_MAX ? UINT_MAX : pages;
    }

    while ( pages )
    {
        unsigned int num, scale = ril_next(pages, &num);

        pages -= (uint64_t)num << scale;
        cost++;
    }

    return cost;
}

int smmu_tlbi_range(struct smmu_batch *b, unsigned int vmid, uint64_t start,
                    uint64_t last, bool leaf, unsigned int level)
{
    uint64_t pages = ((last - start) >> PAGE_SHIFT) + 1;
    uint64_t w0 = CMD_OP_TLBI_S2_IPA | CMD_TLBI_VMID(vmid);
    uint64_t w1 = leaf ? CMD_TLBI_LEAF : 0;
    int rc;

    if ( !(b->smmu->flags & SMMU_F_RIL) )
    {
        unsigned int shift = step_shift(leaf, level);

        for ( ; ; start += 1UL << shift )
        {
            rc = smmu_batch_add(b, w0, w1 | start);
            if ( rc || last - start < (1UL << shift) )
                return rc;
        }
    }

    while ( pages )
    {
        unsigned int num, scale = ril_next(pages, &num);
        uint64_t c0 = w0, c1 = w1 | start;

        /*
         * A single page goes without range fields: NUM = SCALE = 0 with
         * TG != 0 and no level hint is an erratum on known implementations.
         */
        if ( scale || num > 1 )
        {
            c0 |= CMD_TLBI_NUM(num - 1) | CMD_TLBI_SCALE(scale);
            c1 |= CMD_TLBI_TG_4K;
            if ( leaf && level )
                c1 |= CMD_TLBI_TTL(level);
        }

        rc = smmu_batch_add(b, c0, c1);
        if ( rc )
            return rc;

        pages -= (uint64_t)num << scale;
        start += ((uint64_t)num << scale) << PAGE_SHIFT;
    }

    return 0;
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
