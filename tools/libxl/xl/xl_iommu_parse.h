/* SPDX-License-Identifier: LGPL-2.1-only */
/* The value of `iommu` in xl.cfg.  Plain C, so that it is tested on its own. */
#ifndef XL_IOMMU_PARSE_H
#define XL_IOMMU_PARSE_H

#include <stddef.h>
#include <stdint.h>

#define XL_IOMMU_UNSET      (-1)
/* One context that maps a little; and more than any machine has. */
#define XL_IOMMU_POOL_MIN   (UINT64_C(64))          /* KiB */
#define XL_IOMMU_POOL_MAX   (UINT64_C(4) << 30)     /* KiB */

enum xl_iommu_type { XL_IOMMU_NONE, XL_IOMMU_VIRTIO };

struct xl_iommu_option {
    int type;               /* enum xl_iommu_type, or XL_IOMMU_UNSET */
    int strict, bypass;     /* 0, 1, or XL_IOMMU_UNSET */
    uint64_t pool_kb;       /* 0: unset */
};

/*
 * Parse "KEY=VALUE,..." or "virtio".  0, or -1 with what is wrong in err:
 * it names key and value, and what is allowed.
 */
int xl_iommu_parse(const char *text, struct xl_iommu_option *opt,
                   char *err, size_t size);

#endif /* XL_IOMMU_PARSE_H */
