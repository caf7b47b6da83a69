/* SPDX-License-Identifier: GPL-2.0-only */
/* What the host's device tree says of an SMMU. */

#include <xen/device_tree.h>
#include <xen/lib.h>

#include "smmu.h"

/* The property is a bus's, too (Devicetree Specification, 2.3.10). */
bool smmu_tree_coherent(const struct dt_device_node *np)
{
    for ( ; np; np = np->parent )
        if ( dt_get_property(np, "dma-coherent", NULL) )
            return true;
        else if ( dt_get_property(np, "dma-noncoherent", NULL) )
            return false;

    return false;
}

/* The binding pci-iommu.txt, which other buses have taken over. */
static uint32_t last_of_map(const struct dt_device_node *np,
                            const struct dt_device_node *smmu)
{
    uint32_t len, last = 0;
    const __be32 *map = dt_get_property(np, "iommu-map", &len);

    for ( ; map && len >= 4 * sizeof(*map); len -= 4 * sizeof(*map), map += 4 )
    {
        uint64_t end = (uint64_t)be32_to_cpu(map[2]) + be32_to_cpu(map[3]);

        /* What wraps is refused when it is used. */
        if ( end && end - 1 <= UINT_MAX && end - 1 > last &&
             dt_find_node_by_phandle(be32_to_cpu(map[1])) == smmu )
            last = end - 1;
    }

    return last;
}

uint32_t smmu_tree_last_sid(const struct dt_device_node *smmu)
{
    const struct dt_device_node *np;
    uint32_t last = 0;

    dt_for_each_device_node ( dt_host, np )
    {
        struct dt_phandle_args args;
        unsigned int i;

        last = max(last, last_of_map(np, smmu));
        for ( i = 0; !dt_parse_phandle_with_args(np, "iommus", "#iommu-cells",
                                                 i, &args); i++ )
            if ( args.np == smmu && args.args_count )
                last = max(last, args.args[0]);
    }

    return last;
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
