/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which streams a device has, by the device tree: PCI host bridges and
 * iommu-map (the binding pci-iommu.txt).
 */

#include <xen/device_tree.h>
#include <xen/lib.h>

#include "pviommu.h"

bool pvi_is_bridge(const struct dt_device_node *np)
{
    return np->type && dt_device_type_is_equal(np, "pci");
}

/*
 * The segment of a bridge: what Xen's PCI support says, which doesn't look at
 * bridges for guests; without it linux,pci-domain, or else the bridge's place
 * in the tree.  (The property is on all bridges or on none.)
 */
int pvi_bridge_segment(const struct dt_device_node *bridge, uint16_t *seg)
{
    const struct dt_device_node *np;
    uint32_t nr, n = 0;

    if ( !pvi_is_bridge(bridge) )
        return -ENODEV;

#ifdef CONFIG_HAS_PCI
    if ( !dt_device_for_passthrough(bridge) )
        return pci_get_host_bridge_segment(bridge, seg);
#endif

    if ( dt_property_read_u32(bridge, "linux,pci-domain", &nr) )
    {
        *seg = nr;
        return 0;
    }

    dt_for_each_device_node ( dt_host, np )
    {
        if ( np == bridge )
            break;
        if ( pvi_is_bridge(np) )
            n++;
    }
    *seg = n;

    return 0;
}

const struct dt_device_node *pvi_bridge_by_segment(uint16_t seg)
{
    const struct dt_device_node *np;
    uint16_t s;

    dt_for_each_device_node ( dt_host, np )
        if ( !pvi_bridge_segment(np, &s) && s == seg )
            return np;

    return NULL;
}

int pvi_map_entry(const struct dt_device_node *bridge, unsigned int i,
                  struct pvi_map_entry *e)
{
    uint32_t len;
    const __be32 *map = dt_get_property(bridge, "iommu-map", &len);

    if ( !map )
        return -ENOENT;
    if ( len % (4 * sizeof(*map)) )
    {
        printk(XENLOG_ERR "pviommu: %s: iommu-map of %u bytes, not 4 cells each\n",
               dt_node_full_name(bridge), len);
        return -EINVAL;
    }
    if ( i >= len / (4 * sizeof(*map)) )
        return -ENOENT;

    map += 4 * i;
    e->rid = be32_to_cpu(map[0]);
    e->smmu = smmu_by_node(dt_find_node_by_phandle(be32_to_cpu(map[1])));
    e->sid = be32_to_cpu(map[2]);
    e->nr = be32_to_cpu(map[3]);
    if ( !e->nr || e->rid + e->nr - 1 < e->rid || e->sid + e->nr - 1 < e->sid )
    {
        printk(XENLOG_ERR "pviommu: %s: line %u of iommu-map is empty or wraps\n",
               dt_node_full_name(bridge), i);
        return -EINVAL;
    }

    return 0;
}

/*
 * Append the stream of @rid to @desc.  0, or -ENODEV: it has none.
 */
int pvi_map_rid(const struct dt_device_node *bridge, uint32_t rid,
                struct pvi_ep_desc *desc)
{
    struct pvi_map_entry e;
    uint32_t mask;
    unsigned int i;
    int rc;

    if ( dt_property_read_u32(bridge, "iommu-map-mask", &mask) )
        rid &= mask;

    for ( i = 0; !(rc = pvi_map_entry(bridge, i, &e)); i++ )
    {
        if ( rid < e.rid || rid - e.rid >= e.nr )
            continue;

        if ( !e.smmu || desc->nr_streams == PVI_EP_MAX_STREAMS )
            return -ENODEV;

        desc->s[desc->nr_streams].smmu = e.smmu;
        desc->s[desc->nr_streams++].sid = e.sid + (rid - e.rid);
        return 0;
    }

    return rc == -ENOENT ? -ENODEV : rc;
}

struct smmu_device *pvi_bridge_smmu(const struct dt_device_node *np)
{
    struct pvi_map_entry e;
    unsigned int i;

    for ( i = 0; pvi_is_bridge(np) && !pvi_map_entry(np, i, &e); i++ )
        if ( e.smmu )
            return e.smmu;

    return NULL;
}

int pvi_dt_describe(struct dt_device_node *np, struct pvi_ep_desc *desc)
{
    struct dt_phandle_args args;
    uint16_t seg;
    unsigned int i;
    int rc;

    memset(desc, 0, sizeof(*desc));

    if ( pvi_bridge_smmu(np) )
    {
        rc = pvi_bridge_segment(np, &seg);
        desc->kind = PVI_EP_BRIDGE;
        desc->epid = (uint32_t)seg << 16;
        return rc;
    }

    desc->kind = PVI_EP_DT;
    for ( i = 0; !dt_parse_phandle_with_args(np, "iommus", "#iommu-cells", i,
                                             &args); i++ )
    {
        struct smmu_device *smmu = smmu_by_node(args.np);

        if ( !smmu || !args.args_count )
            continue;
        if ( desc->nr_streams == PVI_EP_MAX_STREAMS )
        {
            printk(XENLOG_ERR "pviommu: %s: more than %u StreamIDs\n",
                   dt_node_full_name(np), PVI_EP_MAX_STREAMS);
            return -E2BIG;
        }
        desc->s[desc->nr_streams].smmu = smmu;
        desc->s[desc->nr_streams++].sid = args.args[0];
    }
    if ( !desc->nr_streams )
        return -ENODEV;
    desc->epid = desc->s[0].sid;

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
