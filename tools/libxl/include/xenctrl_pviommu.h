/* SPDX-License-Identifier: LGPL-2.1-only */
/*
 * libxenctrl: XEN_DOMCTL_pviommu.  What the fields and errors mean:
 * <xen/pviommu.h>.
 *
 * All return 0, or -1 and errno.  EACCES: Xen has another version of the
 * interface than XEN_PVIOMMU_VERSION.  Part of xenctrl.h, not to be included
 * on its own.
 */
#ifndef XENCTRL_PVIOMMU_H
#define XENCTRL_PVIOMMU_H

#include <xen/pviommu.h>

int xc_pviommu_create(xc_interface *xch, uint32_t domid,
                      const struct xen_pviommu_create *create);

int xc_pviommu_set_strict(xc_interface *xch, uint32_t domid, bool strict);

/*
 * counters: room for nr of them; the handle in info is of no use afterwards.
 * info->nr_counters is how many Xen has.
 */
int xc_pviommu_get_info(xc_interface *xch, uint32_t domid,
                        struct xen_pviommu_get_info *info,
                        uint64_t *counters, uint32_t nr);

/* cursor, nr: see struct xen_pviommu_get_list. */
int xc_pviommu_get_endpoints(xc_interface *xch, uint32_t domid,
                             uint64_t *cursor, xen_pviommu_endpoint_t *list,
                             uint32_t *nr);
int xc_pviommu_get_contexts(xc_interface *xch, uint32_t domid,
                            uint64_t *cursor, xen_pviommu_context_t *list,
                            uint32_t *nr);

int xc_pviommu_get_smmu(xc_interface *xch, uint32_t index,
                        struct xen_pviommu_get_smmu *smmu,
                        uint64_t *counters, uint32_t nr);

int xc_pviommu_get_device(xc_interface *xch, const char *path,
                          struct xen_pviommu_get_device *dev);

#endif /* XENCTRL_PVIOMMU_H */
