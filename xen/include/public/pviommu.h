/* SPDX-License-Identifier: MIT */
/*
 * pviommu.h - a domain's devices behind the SMMUv3: XEN_DOMCTL_pviommu
 *
 * One domctl with operations, for the toolstack of the control domain.  It has
 * a version of its own: XEN_DOMCTL_INTERFACE_VERSION stays as it is, and a Xen
 * without the driver answers -ENOSYS.
 *
 * Errors of every operation:
 *   -ENOSYS      this Xen doesn't have the driver
 *   -EACCES      this Xen has another version, now in `version`; nothing else
 *                was looked at
 *   -ENODEV      there is no SMMUv3 in use (or Xen's iommu=off), or the domain
 *                was created without XEN_DOMCTL_CDF_iommu
 *   -EINVAL      unknown `op`, unknown flag, padding not 0, or as stated below
 *   -EOPNOTSUPP  not possible on this Xen or for this domain (as stated below)
 *   -ESRCH       no such domain
 *   -EFAULT      a handle can't be accessed
 */
#ifndef XEN_PUBLIC_PVIOMMU_H
#define XEN_PUBLIC_PVIOMMU_H

#if defined(__XEN__) || defined(__XEN_TOOLS__)

#include "xen.h"

/* The command; far away from those that Xen counts up. */
#define XEN_DOMCTL_pviommu      0x7669

/*
 * Changes with each incompatible change of this file.  What is appended to the
 * counters, the kinds or the flags that are only returned is compatible.
 */
#define XEN_PVIOMMU_VERSION     1

/* Flags of a domain. */
#define XEN_PVIOMMU_VIRTIO      (1U << 0) /* it has a virtio-iommu */
#define XEN_PVIOMMU_STRICT      (1U << 1) /* unmaps wait for invalidation */
#define XEN_PVIOMMU_BYPASS      (1U << 2) /* not attached: IOVA is guest
                                             physical; without: blocked */
/* These are only returned. */
#define XEN_PVIOMMU_BROKEN      (1U << 3) /* a sync failed: devices cut off */

/*
 * XEN_PVIOMMU_OP_create - say what the domain gets
 *
 * At most once, after XEN_DOMCTL_createdomain and before the domain runs and
 * any device is assigned to it.  Without this call a domain is strict and has
 * no virtio-iommu.  The registers are XEN_PVIOMMU_MMIO_SIZE bytes of guest
 * physical memory at @mmio_base where nothing else is.
 *
 *   -EEXIST      called before
 *   -EBUSY       the domain has run or has devices; @virq is taken
 *   -EINVAL      @mmio_base is not a multiple of XEN_PVIOMMU_MMIO_SIZE, or
 *                out of the guest's address width; @virq is not an SPI that the
 *                domain has.  Without XEN_PVIOMMU_VIRTIO: @mmio_base, @virq or
 *                @pool_pages isn't 0, or XEN_PVIOMMU_BYPASS is missing
 *   -EOPNOTSUPP  the hardware domain: Xen's command line decides
 *   -ENOSPC      @pool_pages is less than XEN_PVIOMMU_POOL_MIN, or the
 *                domain's paging pool has less
 *   -ENOMEM
 */
#define XEN_PVIOMMU_OP_create       0
/* One context that maps a little: root, a table per level, and some. */
#define XEN_PVIOMMU_POOL_MIN        16
#define XEN_PVIOMMU_MMIO_SIZE       0x200
struct xen_pviommu_create {
    uint32_t flags;                 /* IN: VIRTIO, STRICT, BYPASS */
    uint32_t virq;                  /* IN: INTID of an SPI */
    uint64_aligned_t mmio_base;     /* IN */
    /*
     * IN: pages of the domain's paging pool that are meant for contexts.  The
     * toolstack has put them in there with the rest of the pool.
     */
    uint64_aligned_t pool_pages;
};

/*
 * XEN_PVIOMMU_OP_set_strict - at any time; returns after what was pending is
 * invalidated when it turns strict on
 *
 *   -ETIMEDOUT   an SMMU doesn't answer; the domain is broken
 */
#define XEN_PVIOMMU_OP_set_strict   1
struct xen_pviommu_set_strict {
    uint8_t strict;                 /* IN: 0 or 1 */
    uint8_t pad[7];
};

/*
 * XEN_PVIOMMU_OP_get_info - flags, counters, sizes of the lists
 */
#define XEN_PVIOMMU_OP_get_info     2
struct xen_pviommu_get_info {
    uint32_t flags;                 /* OUT */
    uint32_t virq;                  /* OUT: 0 without virtio-iommu */
    uint64_aligned_t mmio_base;     /* OUT */
    uint32_t nr_endpoints;          /* OUT */
    uint32_t nr_contexts;           /* OUT: made by the guest */
    /*
     * IN: size of the array; OUT: how many counters this Xen has.  At most
     * the former were written; those beyond the latter were not.
     */
    uint32_t nr_counters;
    uint32_t pad;
    XEN_GUEST_HANDLE_64(uint64) counters;
};

/* Indices of the domain's counters.  Those marked "now" go down, too. */
#define XEN_PVIOMMU_CNT_kicks               0  /* writes of QueueNotify */
#define XEN_PVIOMMU_CNT_req_attach          1  /* requests by type */
#define XEN_PVIOMMU_CNT_req_detach          2
#define XEN_PVIOMMU_CNT_req_map             3
#define XEN_PVIOMMU_CNT_req_unmap           4
#define XEN_PVIOMMU_CNT_req_probe           5
#define XEN_PVIOMMU_CNT_req_bad             6  /* malformed or unknown */
#define XEN_PVIOMMU_CNT_pages               7  /* now: mapped */
#define XEN_PVIOMMU_CNT_tables              8  /* now: pages of tables */
#define XEN_PVIOMMU_CNT_ranges              9  /* unmapped, to invalidate */
#define XEN_PVIOMMU_CNT_pending             10 /* now: ranges not invalidated */
#define XEN_PVIOMMU_CNT_pinned              11 /* now: pages that waits for */
#define XEN_PVIOMMU_CNT_tlbi                12 /* commands issued */
#define XEN_PVIOMMU_CNT_sync                13
#define XEN_PVIOMMU_CNT_faults              14
#define XEN_PVIOMMU_CNT_faults_dropped      15 /* not told to the guest */
#define XEN_PVIOMMU_CNT_errors              16
#define XEN_PVIOMMU_CNT_flush_strict        17 /* syncs by cause */
#define XEN_PVIOMMU_CNT_flush_count         18
#define XEN_PVIOMMU_CNT_flush_pages         19
#define XEN_PVIOMMU_CNT_flush_age           20
#define XEN_PVIOMMU_CNT_flush_overlap       21
#define XEN_PVIOMMU_CNT_flush_memory        22
#define XEN_PVIOMMU_CNT_flush_detach        23
#define XEN_PVIOMMU_CNT_flush_switch        24
#define XEN_PVIOMMU_CNT_flush_destroy       25
#define XEN_PVIOMMU_CNT_flush_config        26
#define XEN_PVIOMMU_CNT_flush_p2m           27
#define XEN_PVIOMMU_CNT_revived             28 /* mapped again unflushed */
#define XEN_PVIOMMU_CNT_revoked             29 /* pages taken back by others */
#define XEN_PVIOMMU_CNT_cutoffs             30 /* streams cut off */
#define XEN_PVIOMMU_CNT_flush_early         31
#define XEN_PVIOMMU_NR_COUNTERS             32

/*
 * XEN_PVIOMMU_OP_get_endpoints, XEN_PVIOMMU_OP_get_contexts - lists, in pieces
 *
 * A list that changes between two calls may miss what came meanwhile.
 */
#define XEN_PVIOMMU_OP_get_endpoints    3
#define XEN_PVIOMMU_OP_get_contexts     4
#define XEN_PVIOMMU_LIST_END            (~(uint64_t)0)

#define XEN_PVIOMMU_EP_pci              0 /* a PCI function */
#define XEN_PVIOMMU_EP_dt               1 /* a platform device */
#define XEN_PVIOMMU_EP_bridge           2 /* all functions behind a host bridge
                                             that aren't listed themselves */

#define XEN_PVIOMMU_EP_ATTACHED         (1U << 0) /* @context is valid */
#define XEN_PVIOMMU_EP_PRESENT          (1U << 1)
struct xen_pviommu_endpoint {
    uint32_t id;                    /* endpoint id; of a bridge the first */
    uint32_t nr_ids;                /* 1; more for a bridge */
    uint32_t context;               /* the guest's domain id */
    uint32_t sid;                   /* StreamID; the first if there are more */
    uint32_t nr_sids;
    uint16_t smmu;                  /* index: XEN_PVIOMMU_OP_get_smmu */
    uint8_t kind;                   /* XEN_PVIOMMU_EP_* */
    uint8_t flags;
};
typedef struct xen_pviommu_endpoint xen_pviommu_endpoint_t;
DEFINE_XEN_GUEST_HANDLE(xen_pviommu_endpoint_t);

struct xen_pviommu_context {
    uint32_t id;                    /* the guest's domain id */
    uint32_t nr_endpoints;
    uint64_aligned_t pages;         /* mapped */
    uint64_aligned_t tables;        /* pages of tables */
    uint32_t flags;                 /* XEN_PVIOMMU_CTX_* */
    uint32_t pad;
};
#define XEN_PVIOMMU_CTX_BYPASS          (1U << 0) /* IOVA is guest physical */
typedef struct xen_pviommu_context xen_pviommu_context_t;
DEFINE_XEN_GUEST_HANDLE(xen_pviommu_context_t);

struct xen_pviommu_get_list {
    /* IN: 0 to begin; OUT: where to go on, or XEN_PVIOMMU_LIST_END. */
    uint64_aligned_t cursor;
    uint32_t nr;                    /* IN: room, at least 1; OUT: written */
    uint32_t pad;
    union {
        XEN_GUEST_HANDLE_64(xen_pviommu_endpoint_t) endpoints;
        XEN_GUEST_HANDLE_64(xen_pviommu_context_t) contexts;
    } u;
};

/*
 * XEN_PVIOMMU_OP_get_smmu - counters of one SMMU; the domain doesn't matter
 *
 *   -ENOENT      no SMMU has this @index (they are counted from 0)
 */
#define XEN_PVIOMMU_OP_get_smmu     5
#define XEN_PVIOMMU_SMMU_CNT_tlbi           0
#define XEN_PVIOMMU_SMMU_CNT_sync           1
#define XEN_PVIOMMU_SMMU_CNT_cfgi           2
#define XEN_PVIOMMU_SMMU_CNT_cmdq_ill       3
#define XEN_PVIOMMU_SMMU_CNT_cmdq_abt       4
#define XEN_PVIOMMU_SMMU_CNT_cmdq_timeout   5
#define XEN_PVIOMMU_SMMU_CNT_cmdq_full      6
#define XEN_PVIOMMU_SMMU_CNT_events         7
#define XEN_PVIOMMU_SMMU_CNT_event_overflow 8
#define XEN_PVIOMMU_SMMU_CNT_event_unknown  9
#define XEN_PVIOMMU_SMMU_CNT_gerror         10
#define XEN_PVIOMMU_SMMU_CNT_cmdq_atc       11
#define XEN_PVIOMMU_SMMU_CNT_event_cutoff   12
#define XEN_PVIOMMU_SMMU_CNT_event_no_cutoff 13
#define XEN_PVIOMMU_SMMU_CNT_event_sync     14
#define XEN_PVIOMMU_SMMU_CNT_event_dropped  15
#define XEN_PVIOMMU_SMMU_CNT_event_throttled 16
#define XEN_PVIOMMU_SMMU_NR_COUNTERS        17
#define XEN_PVIOMMU_SMMU_DEAD       (1U << 0) /* it stopped answering */
struct xen_pviommu_get_smmu {
    uint32_t index;                 /* IN */
    uint32_t flags;                 /* OUT: XEN_PVIOMMU_SMMU_* */
    uint64_aligned_t base;          /* OUT: physical address */
    uint32_t nr_counters;           /* as in struct xen_pviommu_get_info */
    uint32_t pad;
    XEN_GUEST_HANDLE_64(uint64) counters;
};

/*
 * XEN_PVIOMMU_OP_get_device - what a node of the host's device tree is
 *
 * Asked before XEN_DOMCTL_assign_device of the same path, so that the
 * guest's device tree can name its endpoints.
 *
 *   -ENODEV      also: there is no SMMUv3 in front of it
 *   -ENOENT      the host's device tree has no such node
 *   -EBUSY       assigned already, to @owner
 *   -EPERM       it isn't marked xen,passthrough
 */
#define XEN_PVIOMMU_OP_get_device   6
struct xen_pviommu_get_device {
    XEN_GUEST_HANDLE_64(char) path; /* IN: not terminated */
    uint32_t size;                  /* IN: bytes of @path */
    uint8_t kind;                   /* OUT: XEN_PVIOMMU_EP_dt or _bridge */
    uint8_t pad;
    domid_t owner;                  /* OUT, with -EBUSY */
    /*
     * OUT: the endpoint ids of the device.  A bridge's function with requester
     * id RID is endpoint @id + RID, for RID < @nr_ids.
     */
    uint32_t id;
    uint32_t nr_ids;
};

struct xen_domctl_pviommu {
    uint32_t version;               /* IN: XEN_PVIOMMU_VERSION; OUT: Xen's */
    uint32_t op;                    /* IN: XEN_PVIOMMU_OP_* */
    union {
        struct xen_pviommu_create create;
        struct xen_pviommu_set_strict set_strict;
        struct xen_pviommu_get_info get_info;
        struct xen_pviommu_get_list get_list;
        struct xen_pviommu_get_smmu get_smmu;
        struct xen_pviommu_get_device get_device;
        uint8_t pad[88];
    } u;
};

#endif /* __XEN__ || __XEN_TOOLS__ */

#endif /* XEN_PUBLIC_PVIOMMU_H */

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * tab-width: 4
 * indent-tabs-mode: nil
 * End:
 */
