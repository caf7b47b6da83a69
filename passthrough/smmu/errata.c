/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Known errors of implementations, as flags.
 *
 * Public errata that need no flag, because the driver never does what they are
 * about:
 *   Arm MMU-600 1076982 (r0p0 to r0p2: no event at a sync's end): no WFE,
 *     see cmdq.c;
 *   Arm MMU-600 1209401, MMU-700 2268618 (nested translation): stage 2 only;
 *   Arm MMU-700 2812531 also forbids broadcast TLB maintenance: CR2.PTM;
 *   HiSilicon Hip06, Hip07 161010701 (prefetch command): never issued;
 *   Cavium ThunderX2 126 (one interrupt line for several sources): lines are
 *     always requested as shared;
 *   range commands with NUM, SCALE and TTL 0: never issued, see tlbi.c.
 */

#include <xen/device_tree.h>
#include <xen/lib.h>

#include <asm/io.h>

#include "smmu.h"

struct erratum {
    const char *id;
    /* By IIDR: all revisions before r<before / 16>p<before % 16>. */
    unsigned int implementer, product, before;
    /* Or by a property of the node, where the IIDR says nothing. */
    const char *property;
    unsigned int flags;
};

#define ALL             0x100
#define ARM             0x43b

static const struct erratum errata[] = {
    {
        /* Many commands without a sync between them may be dropped. */
        .id = "Arm MMU-700 2812531",
        .implementer = ARM, .product = 0x487, .before = ALL,
        .flags = SMMU_F_FORCE_SYNC,
    },
    {
        /*
         * A stream is looked up by its bus number in a cache that isn't
         * updated when a bridge gets its numbers, so CFGI_STE may miss it.
         * The command with a range looks at each stream's number of now.
         */
        .id = "QEMU CFGI_STE",
        .implementer = 0, .product = 0, .before = ALL,
        .flags = SMMU_F_CFGI_RANGE,
    },
    {
        /* Page 1 does not work, its registers are in page 0. */
        .id = "Cavium ThunderX2 74",
        .property = "cavium,cn9900-broken-page1-regspace",
        .flags = SMMU_F_PAGE0,
    },
};

static bool affected(const struct erratum *e, const struct smmu_device *smmu,
                     uint32_t iidr)
{
    if ( e->property )
        return dt_get_property(smmu->node, e->property, NULL);

    return IIDR_IMPLEMENTER(iidr) == e->implementer &&
           IIDR_PRODUCT(iidr) == e->product && IIDR_REVISION(iidr) < e->before;
}

void smmu_errata(struct smmu_device *smmu)
{
    uint32_t iidr = smmu_read(smmu, SMMU_IIDR);
    unsigned int i;

    for ( i = 0; i < ARRAY_SIZE(errata); i++ )
        if ( affected(&errata[i], smmu, iidr) )
        {
            smmu->flags |= errata[i].flags;
            printk(XENLOG_INFO "pviommu: %s: erratum %s\n",
                   dt_node_full_name(smmu->node), errata[i].id);
        }
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
