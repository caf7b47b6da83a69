/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * dom0's device tree: its virtio-iommu, and which devices are behind it.
 *
 * The node takes the place of the SMMU that dom0 doesn't see: its registers'
 * address, its interrupt's number and its phandle, all of which are certain
 * not to be used by anything else in dom0.  Of an SMMU without a wired
 * interrupt it has one that nobody else in dom0 has.
 */

#include <xen/device_tree.h>
#include <xen/init.h>
#include <xen/iommu.h>
#include <xen/lib.h>
#include <xen/libfdt/libfdt.h>
#include <xen/pviommu.h>
#include <xen/sched.h>

#include <asm/gic.h>
#include <asm/p2m.h>
#include <asm/vgic.h>

#include "../pviommu.h"
#include "../viommu/viommu.h"

/* GITS_TRANSLATER's page, from the base of an ITS (GICv3 12.18). */
#define ITS_DOORBELL    0x10000

static bool dom0_has_viommu(const struct domain *d)
{
    return is_hardware_domain(d) && is_iommu_enabled(d) && dom_pvi(d) &&
           opt_dom0_viommu && !list_empty(&smmu_devices);
}

static const struct smmu_device *first_smmu(void)
{
    return list_first_entry(&smmu_devices, struct smmu_device, list);
}

unsigned int pviommu_nr_mmio_handlers(const struct domain *d)
{
    /*
     * Called before the domain has its struct pvi_domain, and before the
     * toolstack says what it gets.
     */
    return is_hardware_domain(d) ? opt_dom0_viommu : is_iommu_enabled(d);
}

/*
 * Devices write MSIs to the ITS through their context, so the doorbell must be
 * in the p2m: for the default context, and for MAP to find it.
 */
static int __init map_doorbells(struct domain *d)
{
    const struct dt_device_node *np;

    dt_for_each_device_node ( dt_host, np )
    {
        paddr_t addr, size;
        p2m_type_t t;
        mfn_t mfn;
        gfn_t gfn;
        int rc;

        if ( !dt_device_is_compatible(np, "arm,gic-v3-its") ||
             dt_device_get_paddr(np, 0, &addr, &size) ||
             size < ITS_DOORBELL + PAGE_SIZE )
            continue;

        gfn = gaddr_to_gfn(addr + ITS_DOORBELL);
        mfn = p2m_lookup(d, gfn, &t);
        if ( !mfn_eq(mfn, INVALID_MFN) )
            continue; /* this Xen does it itself */

        rc = map_mmio_regions(d, gfn, 1, maddr_to_mfn(addr + ITS_DOORBELL));
        if ( rc )
            return rc;
    }

    return 0;
}

static int __init add_iommu_map(struct domain *d, void *fdt,
                                const struct dt_device_node *bridge)
{
    uint32_t phandle = first_smmu()->node->phandle;
    uint16_t seg;
    int rc = pvi_bridge_segment(bridge, &seg);

    if ( rc )
        return 0;

    /* Xen and Linux must number the bridges alike; Xen may see to it. */
    if ( !is_pci_passthrough_enabled() &&
         !dt_get_property(bridge, "linux,pci-domain", NULL) )
    {
        rc = fdt_property_u32(fdt, "linux,pci-domain", seg);
        if ( rc )
            return rc;
    }

    if ( dom0_has_viommu(d) )
    {
        /* Endpoint ids are segment << 16 | RID. */
        __be32 map[4] = {
            0, cpu_to_be32(phandle), cpu_to_be32((uint32_t)seg << 16),
            cpu_to_be32(0x10000),
        };

        rc = fdt_property(fdt, "iommu-map", map, sizeof(map));
    }

    return rc;
}

int __init pviommu_dom0_properties(struct domain *d, void *fdt,
                                   const struct dt_device_node *node)
{
    struct dt_phandle_args args;
    struct pvi_ep_desc desc = {};

    if ( !is_hardware_domain(d) || list_empty(&smmu_devices) ||
         dt_device_for_passthrough(node) )
        return 0;

    /* A bridge of which the first function maps to some SMMU of ours. */
    if ( dt_get_property(node, "iommu-map", NULL) )
        return pvi_map_rid(node, 0, &desc) ? 0 : add_iommu_map(d, fdt, node);

    if ( dom0_has_viommu(d) &&
         !dt_parse_phandle_with_args(node, "iommus", "#iommu-cells", 0,
                                     &args) && smmu_by_node(args.np) )
    {
        /* A platform device is named by its first StreamID. */
        __be32 iommus[2] = {
            cpu_to_be32(first_smmu()->node->phandle),
            cpu_to_be32(args.args[0]),
        };

        return fdt_property(fdt, "iommus", iommus, sizeof(iommus));
    }

    return 0;
}

/* The interrupt of dom0's virtio-iommu; 0: there is none. */
static unsigned int __init dom0_irq(struct domain *d,
                                    const struct smmu_device *smmu)
{
    int virq;

    if ( !smmu->irq_evtq )
    {
        /* Those of dom0's devices are all reserved by now. */
        virq = vgic_allocate_spi(d);
        if ( virq > 0 )
            return virq;
        printk(XENLOG_ERR "pviommu: dom0 has no interrupt left\n");
        return 0;
    }

    if ( vgic_reserve_virq(d, smmu->irq_evtq) )
        return smmu->irq_evtq;
    printk(XENLOG_ERR "pviommu: dom0's interrupt %u is taken\n",
           smmu->irq_evtq);

    return 0;
}

int __init pviommu_dom0_node(struct domain *d, void *fdt, int addrcells,
                             int sizecells)
{
    const struct smmu_device *smmu;
    struct pvi_domain *pd;
    char name[40];
    unsigned int virq;
    __be32 reg[4], *p = reg;
    __be32 irq[3];
    int rc;

    if ( !is_hardware_domain(d) || !is_iommu_enabled(d) || !dom_pvi(d) ||
         list_empty(&smmu_devices) )
        return 0;

    rc = map_doorbells(d);
    if ( rc )
        return rc;

    if ( !dom0_has_viommu(d) )
        return 0;

    pd = dom_pvi(d);
    smmu = first_smmu();

    virq = dom0_irq(d, smmu);
    if ( !virq )
        return -EBUSY;

    rc = viommu_init(pd, smmu->addr, virq);
    if ( rc )
        return rc;

    snprintf(name, sizeof(name), "virtio@%"PRIpaddr, smmu->addr);
    rc = fdt_begin_node(fdt, name);
    rc = rc ?: fdt_property_string(fdt, "compatible", "virtio,mmio");
    dt_set_cell(&p, addrcells, smmu->addr);
    dt_set_cell(&p, sizecells, VIOMMU_MMIO_SIZE);
    rc = rc ?: fdt_property(fdt, "reg", reg, (p - reg) * sizeof(*reg));
    irq[0] = 0;                                     /* SPI */
    irq[1] = cpu_to_be32(virq - 32);
    irq[2] = cpu_to_be32(1);                        /* rising edge */
    rc = rc ?: fdt_property(fdt, "interrupts", irq, sizeof(irq));
    rc = rc ?: fdt_property_u32(fdt, "interrupt-parent",
                                dt_interrupt_controller->phandle);
    rc = rc ?: fdt_property(fdt, "dma-coherent", NULL, 0);
    rc = rc ?: fdt_property_u32(fdt, "#iommu-cells", 1);
    rc = rc ?: fdt_property_u32(fdt, "phandle", smmu->node->phandle);
    rc = rc ?: fdt_end_node(fdt);

    printk(XENLOG_INFO
           "pviommu: dom0 has a virtio-iommu at %#"PRIpaddr", interrupt %u, strict=%d bypass=%d\n",
           smmu->addr, virq, pd->strict, pd->bypass);

    return rc;
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
