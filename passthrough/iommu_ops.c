/* SPDX-License-Identifier: GPL-2.0-only */
/* Xen's interface to an IOMMU driver, and devices entering and leaving. */

#include <xen/guest_access.h>
#include <xen/init.h>
#include <xen/iommu.h>
#include <xen/lib.h>
#include <xen/pviommu.h>
#include <xen/sched.h>
#include <xen/xmalloc.h>

#include <public/physdev.h>

#include <asm/device.h>
#include <asm/iommu_fwspec.h>

#include "pviommu.h"

static int cf_check op_init(struct domain *d)
{
    const struct smmu_device *smmu;
    bool coherent = true;

    smmu_for_each ( smmu )
        coherent &= !!(smmu->flags & SMMU_F_COHERENT);
    if ( coherent )
        iommu_set_feature(d, IOMMU_FEAT_COHERENT_WALK);

    return pvi_domain_init(d);
}

static void __hwdom_init cf_check op_hwdom_init(struct domain *d)
{
    arch_iommu_hwdom_init(d);
    pvi_dump_init();
}

static void cf_check op_teardown(struct domain *d)
{
    pvi_domain_free(d);
}

static int __must_check cf_check op_iotlb_flush(struct domain *d, dfn_t dfn,
                                                unsigned long page_count,
                                                unsigned int flush_flags)
{
    struct pvi_domain *pd = dom_pvi(d);

    if ( !pd || !(flush_flags & ~IOMMU_FLUSHF_added) )
        return 0;

    if ( flush_flags & IOMMU_FLUSHF_all )
        return pvi_p2m_flush_all(pd);

    /*
     * p2m.c sees each change of an entry by itself.  What is left is the end
     * of a batch during which Xen has said that it would flush later.
     */
    return this_cpu(iommu_dont_flush_iotlb) ? 0 : pvi_p2m_settle();
}

static int cf_check op_dt_xlate(device_t *dev,
                                const struct dt_phandle_args *args)
{
    return iommu_fwspec_add_ids(dev, args->args, 1);
}

/* What the device issues, as far as Xen has collected it. */
static int describe(device_t *dev, struct pvi_ep_desc *desc)
{
    const struct iommu_fwspec *fwspec = dev_iommu_fwspec_get(dev);
    struct smmu_device *smmu;
    unsigned int i;

    memset(desc, 0, sizeof(*desc));
    if ( !fwspec || !fwspec->num_ids )
        return -ENODEV;

    smmu = smmu_by_node(dev_to_dt(fwspec->iommu_dev));
    if ( !smmu )
        return -ENODEV;

    if ( fwspec->num_ids > PVI_EP_MAX_STREAMS )
    {
        printk(XENLOG_ERR "pviommu: a device with %u StreamIDs, at most %u\n",
               fwspec->num_ids, PVI_EP_MAX_STREAMS);
        return -E2BIG;
    }

    for ( i = 0; i < fwspec->num_ids; i++ )
    {
        desc->s[i].smmu = smmu;
        desc->s[i].sid = fwspec->ids[i];
    }
    desc->nr_streams = i;
    desc->kind = PVI_EP_DT;
    desc->epid = fwspec->ids[0];
#ifdef CONFIG_HAS_PCI
    if ( dev_is_pci(dev) )
    {
        desc->kind = PVI_EP_PCI;
        desc->epid = dev_to_pci(dev)->sbdf.sbdf;
        return 0;
    }
#endif
    desc->path = dt_node_full_name(dev_to_dt(dev));

    return 0;
}

/* A host bridge for a guest: pviommu_dt_bridge() left it without an id. */
static struct dt_device_node *guest_bridge(device_t *dev)
{
    const struct iommu_fwspec *fwspec = dev_iommu_fwspec_get(dev);

#ifdef CONFIG_HAS_PCI
    if ( dev_is_pci(dev) )
        return NULL;
#endif

    return fwspec && !fwspec->num_ids && pvi_bridge_smmu(dev_to_dt(dev))
           ? dev_to_dt(dev) : NULL;
}

static int leave(struct domain *d, device_t *dev)
{
    struct pvi_ep_desc desc;
    int rc;

    /* Quarantine: an endpoint of nobody, its streams are invalid. */
    if ( !dom_pvi(d) )
        return 0;

    if ( guest_bridge(dev) )
        return pvi_bridge_remove(dom_pvi(d), dev_to_dt(dev));

    rc = describe(dev, &desc);

    return rc ?: pvi_endpoint_remove(dom_pvi(d), desc.kind, desc.epid);
}

static int enter(struct domain *d, device_t *dev)
{
    struct pvi_ep_desc desc;
    int rc;

    if ( !dom_pvi(d) )
        return 0;

    if ( guest_bridge(dev) )
        return pvi_bridge_add(dom_pvi(d), dev_to_dt(dev));

    rc = describe(dev, &desc);

    return rc ?: pvi_endpoint_add(dom_pvi(d), &desc);
}

#ifdef CONFIG_HAS_PCI
/* Also the lists of Xen's PCI support are the driver's to change. */
static int pci_move(struct pci_dev *pdev, struct domain *d)
{
    struct domain *old = pdev->domain;
    device_t *dev = pci_to_dev(pdev);
    int rc;

    ASSERT(pcidevs_locked());

    /* Not behind an SMMU: it is nobody's to have but the host's. */
    if ( !dev_iommu_fwspec_get(dev) && d != dom_io && !is_hardware_domain(d) )
        return -ENODEV;

    if ( dev_iommu_fwspec_get(dev) )
    {
        rc = leave(old, dev);
        if ( rc )
            return rc;
        rc = enter(d, dev);
        if ( rc )
        {
            if ( enter(old, dev) )
                printk(XENLOG_G_ERR "pviommu: %pp is cut off\n", &pdev->sbdf);
            return rc;
        }
    }

    write_lock(&old->pci_lock);
    list_del(&pdev->domain_list);
    write_unlock(&old->pci_lock);
    pdev->domain = d;
    write_lock(&d->pci_lock);
    list_add(&pdev->domain_list, &d->pdev_list);
    write_unlock(&d->pci_lock);

    return 0;
}
#endif

static int cf_check op_assign_device(struct domain *d, uint8_t devfn,
                                     device_t *dev, uint32_t flag)
{
#ifdef CONFIG_HAS_PCI
    if ( dev_is_pci(dev) )
        /* Phantom functions share the streams of the real one. */
        return devfn == dev_to_pci(dev)->devfn
               ? pci_move(dev_to_pci(dev), d) : 0;
#endif

    return enter(d, dev);
}

static int cf_check op_reassign_device(struct domain *s, struct domain *t,
                                       uint8_t devfn, device_t *dev)
{
    int rc;

    if ( t && t != dom_io && !is_hardware_domain(t) )
        return -EPERM;
    if ( s == t )
        return 0;

#ifdef CONFIG_HAS_PCI
    if ( dev_is_pci(dev) )
        return op_assign_device(t, devfn, dev, 0);
#endif

    rc = leave(s, dev);

    return rc ?: (t ? enter(t, dev) : 0);
}

static int cf_check op_add_device(uint8_t devfn, device_t *dev)
{
    struct pvi_ep_desc desc;
    unsigned int i, syncs = 0;
    int rc;

    desc.nr_streams = 0;

#ifdef CONFIG_HAS_PCI
    if ( dev_is_pci(dev) )
    {
        struct pci_dev *pdev = dev_to_pci(dev);

        if ( devfn != pdev->devfn )
            return 0;

        rc = iommu_add_pci_sideband_ids(pdev);
        if ( rc )
        {
            iommu_fwspec_free(dev);
            /* Not behind an SMMU: nothing to do for it. */
            return rc > 0 ? 0 : rc;
        }
        rc = describe(dev, &desc);
        /* The hardware domain's devices come without an assignment. */
        if ( !rc && pdev->domain && dom_pvi(pdev->domain) )
            rc = pvi_endpoint_add(dom_pvi(pdev->domain), &desc);
        if ( rc )
            iommu_fwspec_free(dev);
        return rc;
    }
#endif

    rc = guest_bridge(dev) ? 0 : describe(dev, &desc);
    for ( i = 0; !rc && i < desc.nr_streams; i++ )
        rc = smmu_strtab_reserve(desc.s[i].smmu, desc.s[i].sid, &syncs);
    if ( rc )
    {
        printk(XENLOG_ERR "pviommu: %s: its StreamIDs can't be used (%d)\n",
               dt_node_full_name(dev_to_dt(dev)), rc);
        return rc;
    }

    if ( dt_device_is_protected(dev_to_dt(dev)) )
        return -EEXIST;
    dt_device_set_protected(dev_to_dt(dev));

    return 0;
}

int pviommu_dt_bridge(struct dt_device_node *np)
{
    struct smmu_device *smmu;

    /* dom0's own bridges: it tells of each function (pci_device()). */
    if ( !dt_device_for_passthrough(np) )
        return 1;

    smmu = pvi_bridge_smmu(np);
    if ( !smmu )
        return 1;

    return iommu_fwspec_init(dt_to_dev(np),
                             dt_to_dev((struct dt_device_node *)smmu->node));
}

static int cf_check op_remove_device(uint8_t devfn, device_t *dev)
{
#ifdef CONFIG_HAS_PCI
    if ( dev_is_pci(dev) )
    {
        int rc;

        if ( devfn != dev_to_pci(dev)->devfn || !dev_iommu_fwspec_get(dev) )
            return 0;

        rc = leave(dev_to_pci(dev)->domain, dev);
        iommu_fwspec_free(dev);
        return rc;
    }
#endif
    /* Of no domain: the caller has looked.  It frees the rest. */
    dev_to_dt(dev)->is_protected = false;

    return 0;
}

#ifdef CONFIG_HAS_PCI
static int cf_check op_device_group(uint16_t seg, uint8_t bus, uint8_t devfn)
{
    return (bus << 8) | devfn;
}
#endif

void cf_check pviommu_shutdown(void)
{
    struct smmu_device *smmu;

    smmu_for_each ( smmu )
        smmu_shutdown(smmu);
}

static const struct iommu_ops pvi_iommu_ops = {
    .page_sizes = PAGE_SIZE,
    .init = op_init,
    .hwdom_init = op_hwdom_init,
    .teardown = op_teardown,
    .iotlb_flush = op_iotlb_flush,
    .map_page = arm_iommu_map_page,
    .unmap_page = arm_iommu_unmap_page,
    .dt_xlate = op_dt_xlate,
    .add_device = op_add_device,
    .remove_device = op_remove_device,
    .assign_device = op_assign_device,
    .reassign_device = op_reassign_device,
#ifdef CONFIG_HAS_PCI
    .get_device_group_id = op_device_group,
#endif
    .crash_shutdown = pviommu_shutdown,
};

#ifndef CONFIG_HAS_PCI
/*
 * Without PCI support in Xen, dom0 owns the bridges and tells of functions
 * as it finds them; their streams follow from the bridge's iommu-map.
 */
static int pci_device(uint16_t seg, uint8_t bus, uint8_t devfn, bool add)
{
    struct pvi_domain *pd = dom_pvi(current->domain);
    const struct dt_device_node *bridge = pvi_bridge_by_segment(seg);
    struct pvi_ep_desc desc = {
        .kind = PVI_EP_PCI,
        .epid = ((uint32_t)seg << 16) | (bus << 8) | devfn,
    };
    int rc;

    if ( !pd || !bridge )
        return 0;

    if ( !add )
    {
        rc = pvi_endpoint_remove(pd, desc.kind, desc.epid);
        return rc == -ENODEV ? 0 : rc;
    }

    rc = pvi_map_rid(bridge, desc.epid & 0xffff, &desc);
    if ( rc == -ENODEV )
        return 0; /* not behind an SMMU of ours */
    rc = rc ?: pvi_endpoint_add(pd, &desc);
    if ( rc )
        printk(XENLOG_G_ERR "pviommu: PCI device %04x:%02x:%02x.%u: not added (%d)\n",
               seg, bus, PCI_SLOT(devfn), PCI_FUNC(devfn), rc);

    return rc;
}

int pviommu_physdev_op(int cmd, XEN_GUEST_HANDLE_PARAM(void) arg)
{
    if ( cmd != PHYSDEVOP_pci_device_add && cmd != PHYSDEVOP_pci_device_remove )
        return -ENOSYS;
    if ( !is_hardware_domain(current->domain) )
        return -EPERM;
    if ( !is_iommu_enabled(current->domain) )
        return 0;

    if ( cmd == PHYSDEVOP_pci_device_add )
    {
        struct physdev_pci_device_add add;

        if ( copy_from_guest(&add, arg, 1) )
            return -EFAULT;
        return pci_device(add.seg, add.bus, add.devfn, true);
    }
    else
    {
        struct physdev_pci_device dev;

        if ( copy_from_guest(&dev, arg, 1) )
            return -EFAULT;
        return pci_device(dev.seg, dev.bus, dev.devfn, false);
    }
}
#endif /* !CONFIG_HAS_PCI */

static int __init pvi_dt_init(struct dt_device_node *dev, const void *data)
{
    int rc;

    /* Used or not, it isn't dom0's. */
    dt_device_set_used_by(dev, DOMID_XEN);

    rc = pvi_context_global_init();
    rc = rc ?: smmu_probe(dev);
    if ( rc )
    {
        printk(XENLOG_ERR "pviommu: %s: not used (%d)\n",
               dt_node_full_name(dev), rc);
        /* Xen goes on without it; what is behind it is blocked. */
        return -ENODEV;
    }

    p2m_restrict_ipa_bits(pvi_ias());
    iommu_set_ops(&pvi_iommu_ops);

    return 0;
}

static const struct dt_device_match pvi_dt_match[] __initconst = {
    DT_MATCH_COMPATIBLE("arm,smmu-v3"),
    { },
};

DT_DEVICE_START(pviommu, "Arm SMMUv3 with virtio-iommu", DEVICE_IOMMU)
    .dt_match = pvi_dt_match,
    .init = pvi_dt_init,
DT_DEVICE_END

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * tab-width: 4
 * indent-tabs-mode: nil
 * End:
 */
