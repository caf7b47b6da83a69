/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The virtio-iommu device a guest sees (virtio 1.2: 4.2 MMIO transport,
 * 2.7 split virtqueues, 5.13 IOMMU device).
 *
 * Everything a guest writes is read once into Xen's memory and then checked.
 * All of it is under pvi_domain.lock.
 */
#ifndef PVIOMMU_VIOMMU_H
#define PVIOMMU_VIOMMU_H

#include "../pviommu.h"
#include "proto.h"

#define VIOMMU_MMIO_SIZE    0x200
/* What QEMU offers too; 4 KiB of descriptors. */
#define VIOMMU_QUEUE_MAX    256
#define VIOMMU_NR_QUEUES    2
#define VIOMMU_REQUESTQ     0
#define VIOMMU_EVENTQ       1
/* Room for the properties of a PROBE. */
#define VIOMMU_PROBE_SIZE   512

/* A ring area in guest memory, its pages referenced and mapped. */
struct viommu_map {
    void *va;                   /* of the area's first byte, NULL: not mapped */
    unsigned int nr_pages;
    struct page_info *pages[3]; /* 4 KiB of descriptors at any offset: 2 */
};

struct viommu_queue {
    unsigned int num;           /* entries, 0: not set */
    bool ready;
    uint64_t desc_gpa, avail_gpa, used_gpa;
    struct viommu_map desc, avail, used;
    uint16_t last_avail;        /* next avail entry to take */
    uint16_t used_idx;          /* next used entry to write */
    uint16_t published;         /* used_idx the guest can see */
};

/* A descriptor chain, taken from the ring and walked. */
struct viommu_chain {
    uint16_t head;
    unsigned int out_len;       /* bytes readable by the device */
    unsigned int in_len;        /* bytes writable by the device */
    unsigned int in_segs;
    unsigned int work;          /* what the walk has cost, in work items */
    struct { uint64_t gpa; uint32_t len; } in[VIOMMU_QUEUE_MAX];
    /* The readable part; requests are at most 72 bytes, longer is cut. */
    uint8_t out[80];
};

/* The request in progress: it may take many slices. */
struct viommu_request {
    bool active;
    unsigned int state;         /* of a MAP or UNMAP, see request.c */
    uint8_t type, status;
    struct pvi_context *ctx;
    uint64_t start, last, cursor;
    uint64_t raw_start;         /* of an UNMAP, which need not be aligned */
    uint64_t phys;
    bool read, write;
    bool no_huge;               /* no 1G block at the cursor */
    unsigned long huge_refs;    /* pages of a 1G block referenced so far */
    mfn_t huge_mfn;
    s2_pte_t huge_prot;
    bool huge_noref;
};

/* A guest page, referenced and mapped for the rest of a slice. */
struct viommu_page {
    gfn_t gfn;
    void *va;                   /* NULL: none */
    struct page_info *pg;
    bool write;
};

struct viommu {
    struct pvi_domain *pd;
    paddr_t base;
    unsigned int virq;

    uint32_t features_sel, driver_features_sel, queue_sel;
    uint64_t driver_features;
    bool features_beyond;       /* the driver wants bits that nobody offers */
    uint32_t status;
    uint32_t interrupt_status;
    bool resetting;             /* a reset waits to be carried out */

    struct viommu_page page[8]; /* by frame; a driver's buffers are in 2 or 3 */
    struct viommu_queue q[VIOMMU_NR_QUEUES];
    struct viommu_chain chain;  /* of the request in progress */
    struct viommu_request req;
    bool entered;               /* entries that no barrier has followed yet */

    bool cut_off;               /* faults are not reported just now */
};

/*
 * mmio.c: registers (4.2.2), status and reset (2.1, 4.2.3)
 */
/* Create the device of a domain; the MMIO handler is registered. */
int viommu_init(struct pvi_domain *pd, paddr_t base, unsigned int virq);
void viommu_free(struct viommu *v);
/* The driver broke the rules: stop until it resets the device (2.1.1). */
void viommu_needs_reset(struct viommu *v, const char *why);
bool viommu_driver_ok(const struct viommu *v);
/* Unmap both queues and put registers to their reset values. */
void viommu_reset_registers(struct viommu *v);
static inline bool viommu_has_feature(const struct viommu *v, unsigned int bit)
{
    return v->driver_features & (1UL << bit);
}

/*
 * vring.c: split virtqueues (2.7), from the device's side
 */
/* Map the three areas.  -EINVAL: size, alignment or address; -ENOMEM. */
int viommu_queue_enable(struct viommu *v, struct viommu_queue *q);
void viommu_queue_disable(struct viommu_queue *q);
/* Is there a chain to take?  -EBADMSG: the avail index is impossible. */
int viommu_queue_peek(struct viommu *v, struct viommu_queue *q);
/*
 * Take the next chain and walk it into @c.  1: taken; 0: none; -EBADMSG: the
 * ring is broken (head out of range, avail index jumped).  A chain that is
 * broken in itself (loop, bad indirect table, readable after writable, index
 * out of range, unreadable memory) is taken with out_len = in_len = 0.
 */
int viommu_queue_take(struct viommu *v, struct viommu_queue *q,
                      struct viommu_chain *c);
/* Write @len bytes at @offset of the writable part.  -EFAULT, -ENOSPC. */
int viommu_chain_write(struct viommu *v, const struct viommu_chain *c,
                       unsigned int offset, const void *buf, unsigned int len);
/* Add a used entry; the guest doesn't see it yet. */
void viommu_queue_put(struct viommu *v, struct viommu_queue *q, uint16_t head,
                      uint32_t written);
/* Let the guest see all used entries, and interrupt it if it wants that. */
void viommu_queue_publish(struct viommu *v, struct viommu_queue *q);
/*
 * Ask for a kick at the next chain.  True: one came in meanwhile, go on.
 */
bool viommu_queue_rearm(struct viommu *v, struct viommu_queue *q);
/* The slice ends: let go of the pages that were kept for it. */
void viommu_pages_put(struct viommu *v);
/* Copy from guest memory.  -EFAULT. */
int viommu_copy_from_guest(struct viommu *v, void *buf, uint64_t gpa,
                           unsigned int len);

/*
 * request.c: requests (5.13.6)
 */
/*
 * One slice of work.  Returns true when there is more.
 */
bool viommu_slice(struct viommu *v, int *budget);
/* A context is about to be destroyed: a request that works on it ends. */
void viommu_context_gone(struct viommu *v, const struct pvi_context *ctx);
/* The domain is dying: give up the request in progress.  True when done. */
bool viommu_stop(struct viommu *v, int *budget);

/*
 * event.c: fault reports (5.13.6.9)
 */
/*
 * With pd->lock held.  Returns the work items that walking the driver's chain
 * has cost, beyond those of any event.
 */
unsigned int viommu_report_fault(struct viommu *v, uint32_t epid,
                                 const struct smmu_event *ev, bool attached);

#endif /* PVIOMMU_VIOMMU_H */
