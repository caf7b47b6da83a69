/* SPDX-License-Identifier: LGPL-2.1-only */
/* xl's side of the SMMUv3 driver with virtio-iommu. */
#ifndef XL_IOMMU_H
#define XL_IOMMU_H

#include <libxl.h>
#include <libxlutil.h>

/* `iommu` of a guest's configuration.  Exits when it is wrong. */
void parse_iommu(XLU_Config *config, libxl_domain_build_info *b_info);

int main_iommu_info(int argc, char **argv);
int main_iommu_strict(int argc, char **argv);

#endif /* XL_IOMMU_H */
