/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the rest of Xen calls: the hooks' targets.  Without the driver they
 * vanish.
 */
#ifndef XEN_PVIOMMU_H
#define XEN_PVIOMMU_H

#include <xen/errno.h>
#include <xen/types.h>

struct domain;
struct p2m_domain;
struct vcpu;
struct dt_device_node;

#ifdef CONFIG_ARM_PVIOMMU

#include <xen/guest_access.h>
#include <xen/mm.h>

#include <asm/lpae.h>

/*
 * pviommu_vcpu_work - do one slice of what the domain's guest has asked for
 *
 * Called on the way out to the guest, interrupts off on entry and on return;
 * they are on in between.  Returns true when there is more to do: the caller
 * then handles softirqs, so that the vCPU can be descheduled, and calls again.
 */
bool pviommu_vcpu_work(struct vcpu *v);

/* MMIO handlers that a domain may need, for domain_io_init(). */
unsigned int pviommu_nr_mmio_handlers(const struct domain *d);

/*
 * pviommu_relinquish - release a dying domain's contexts, preemptibly
 *
 * After its devices were taken away, before its memory is relinquished.
 * 0, or -ERESTART: call again.
 */
int pviommu_relinquish(struct domain *d);

/*
 * pviommu_dom0_properties - IOMMU properties of a node in dom0's device tree
 *
 * Xen has left out those of the host tree.  0 or a libfdt error.
 */
int pviommu_dom0_properties(struct domain *d, void *fdt,
                            const struct dt_device_node *node);

/*
 * pviommu_dom0_node - the virtio-iommu node, if dom0 gets one
 *
 * @addrcells, @sizecells: of the root node.  0, a libfdt error or an errno.
 */
int pviommu_dom0_node(struct domain *d, void *fdt, int addrcells,
                      int sizecells);

/*
 * Changes of the p2m, with its lock held for writing.
 *
 * pviommu_p2m_change - an entry is about to change, @old was cleared
 * @gfn, @order: what the entry covers; @level: where in the table it is;
 * @removing: nothing will be written in its place.
 *
 * pviommu_p2m_break - a block was cleared, to be split
 * @gfn: a frame in it; @level: that of the block.
 *
 * pviommu_p2m_unlock - the lock is about to be dropped
 * Strict: returns after the SMMUs have forgotten all that was removed.
 *
 * No errors: when an SMMU doesn't answer the domain is stopped, and what its
 * devices may still reach stays pinned; @old is emptied then, so that Xen frees
 * no table either.
 */
void pviommu_p2m_change(struct p2m_domain *p2m, gfn_t gfn, unsigned int order,
                        lpae_t *old, unsigned int level, bool removing);
void pviommu_p2m_break(struct p2m_domain *p2m, gfn_t gfn, unsigned int level);
void pviommu_p2m_unlock(struct p2m_domain *p2m);

/*
 * A batch of removals on this CPU, none of which takes effect for the rest of
 * the system before the end: one sync for all of them, at the end.
 */
void pviommu_p2m_batch_begin(void);
void pviommu_p2m_batch_end(void);

/*
 * A domain is about to run for the first time, and is marked so.  Other
 * domains' devices have forgotten its pages, which were mapped to build it,
 * when this returns.
 */
void pviommu_domain_starts(void);

/* Does the driver see the changes of this p2m by itself? */
bool pviommu_owns_p2m(const struct domain *d);

/*
 * pviommu_domctl - XEN_DOMCTL_pviommu
 *
 * @d: may be NULL.  @op is an output too, with errors as well.
 */
struct xen_domctl_pviommu;
long pviommu_domctl(struct domain *d, struct xen_domctl_pviommu *op);

/*
 * pviommu_has_viommu - does the domain have a virtio-iommu?
 *
 * Its kernel is then told that it isn't mapped 1:1: Linux would otherwise set
 * swiotlb-xen's operations for each device beside those of the IOMMU, and
 * refuse all DMA masks (its dma_supported() warns of both).
 */
bool pviommu_has_viommu(const struct domain *d);

/*
 * pviommu_dt_bridge - may a node without `iommus` be given to a guest?
 *
 * For iommu_add_dt_device().  0: yes, a host bridge with an iommu-map onto
 * an SMMU of ours, and its fwspec is set up; 1: no; or an errno.
 */
int pviommu_dt_bridge(struct dt_device_node *np);

/*
 * pviommu_physdev_op - PHYSDEVOP_pci_device_add and _remove
 *
 * For a Xen without PCI support of its own on Arm.  -ENOSYS: not one of these.
 */
int pviommu_physdev_op(int cmd, XEN_GUEST_HANDLE_PARAM(void) arg);

/*
 * pviommu_shutdown - block all DMA: Xen goes down
 *
 * Takes no lock, and a fraction of a second at most whatever the hardware does.
 */
void pviommu_shutdown(void);

#else /* !CONFIG_ARM_PVIOMMU */

static inline bool pviommu_vcpu_work(struct vcpu *v) { return false; }
static inline unsigned int pviommu_nr_mmio_handlers(const struct domain *d)
{
    return 0;
}
static inline int pviommu_relinquish(struct domain *d) { return 0; }
static inline int pviommu_dom0_properties(struct domain *d, void *fdt,
                                          const struct dt_device_node *node)
{
    return 0;
}
static inline int pviommu_dom0_node(struct domain *d, void *fdt, int addrcells,
                                    int sizecells)
{
    return 0;
}
#define pviommu_physdev_op(cmd, arg) (-ENOSYS)
static inline bool pviommu_has_viommu(const struct domain *d) { return false; }
#define pviommu_domctl(d, op) (-ENOSYS)
static inline int pviommu_dt_bridge(struct dt_device_node *np) { return 1; }
#define pviommu_p2m_change(p2m, gfn, order, old, level, removing) ((void)0)
#define pviommu_p2m_break(p2m, gfn, level) ((void)0)
#define pviommu_p2m_unlock(p2m) ((void)0)
static inline void pviommu_p2m_batch_begin(void) {}
static inline void pviommu_p2m_batch_end(void) {}
static inline void pviommu_domain_starts(void) {}
static inline bool pviommu_owns_p2m(const struct domain *d) { return false; }
static inline void pviommu_shutdown(void) {}

#endif /* CONFIG_ARM_PVIOMMU */

#endif /* XEN_PVIOMMU_H */
