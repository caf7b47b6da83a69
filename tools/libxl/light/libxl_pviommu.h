/* SPDX-License-Identifier: LGPL-2.1-only */
/*
 * A domain's IOMMU (arch_arm.iommu): from the configuration to the hypervisor.
 * Included by libxl_internal.h.  Without `iommu` in the configuration none of
 * these does anything, so that it all works on a Xen without the driver.
 */
#ifndef LIBXL_PVIOMMU_H
#define LIBXL_PVIOMMU_H

/* Check the configuration, fill in defaults. */
_hidden int libxl__pviommu_setdefault(libxl__gc *gc,
                                      libxl_domain_config *d_config,
                                      uint32_t domid);

/* Bytes of the paging pool that are for the tables of the guest's contexts. */
_hidden uint64_t libxl__pviommu_pool(const libxl_domain_build_info *b_info);

/*
 * Before the domain exists: can its devices be behind the virtio-iommu?  Where
 * are the registers and which interrupt do they have?  nr_spis: raised so
 * that the domain has that interrupt.
 */
_hidden int libxl__pviommu_prepare(libxl__gc *gc,
                                   libxl_domain_config *d_config,
                                   uint32_t *nr_spis);

/* Tell the hypervisor, once the paging pool is filled. */
_hidden int libxl__pviommu_create(libxl__gc *gc, libxl_domain_config *d_config,
                                  uint32_t domid);

/*
 * What a node of the host's device tree is to the hypervisor.  Says what is
 * wrong.
 */
_hidden int libxl__pviommu_device(libxl__gc *gc, const char *path,
                                  struct xen_pviommu_get_device *dev);

/* libxl_pviommu_dt.c, for Arm */

/*
 * Put the virtio-iommu in front of the nodes of passed-through devices in the
 * partial device tree.  pfdt: replaced by a copy.
 */
_hidden int libxl__pviommu_patch_tree(libxl__gc *gc,
                                      const libxl_domain_config *d_config,
                                      void **pfdt);

/* The node of the virtio-iommu, if there is one.  0 or a libfdt error. */
_hidden int libxl__pviommu_node(libxl__gc *gc, void *fdt,
                                const libxl_domain_build_info *b_info);

#endif /* LIBXL_PVIOMMU_H */
