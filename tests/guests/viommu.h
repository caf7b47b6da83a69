/* SPDX-License-Identifier: GPL-2.0-only */
/* A driver for the virtio-iommu, as thin as tests want it. */
#ifndef VIOMMU_H
#define VIOMMU_H

#include "guest.h"

#include <linux/virtio_config.h>
#include <linux/virtio_ids.h>
#include <linux/virtio_iommu.h>
#include <linux/virtio_mmio.h>
#include <linux/virtio_ring.h>

#define QUEUE_MAX   256     /* entries that we have memory for */
#define EVENTS      16      /* buffers in the event queue */

#define BIT(n)      (1UL << (n))
#define READ        VIRTIO_IOMMU_MAP_F_READ
#define WRITE       VIRTIO_IOMMU_MAP_F_WRITE

/* Results of requests besides the device's statuses. */
#define NOT_WRITTEN (-1)    /* used length 0 */
#define TIMED_OUT   (-2)
#define BROKEN      (-3)    /* the device wants a reset, or uses other chains */

struct queue {
    unsigned int index, num;
    struct vring_desc *desc;
    struct vring_avail *avail;
    struct vring_used *used;
    uint16_t avail_idx, used_idx;   /* ours: published, and seen */
};

extern struct queue requestq, eventq;
extern unsigned int viommu_interrupts;

static inline uint32_t reg_read(unsigned int reg)
{
    return mmio_read32(tree.viommu.base + reg);
}

static inline void reg_write(unsigned int reg, uint32_t val)
{
    mmio_write32(tree.viommu.base + reg, val);
}

static inline uint64_t config_read(unsigned int offset, unsigned int size)
{
    return mmio_read(tree.viommu.base + VIRTIO_MMIO_CONFIG + offset, size);
}

static inline void config_write(unsigned int offset, uint64_t val,
                                unsigned int size)
{
    mmio_write(tree.viommu.base + VIRTIO_MMIO_CONFIG + offset, val, size);
}

#define CONFIG(f) \
    config_read(offsetof(struct virtio_iommu_config, f),    \
                sizeof(((struct virtio_iommu_config *)0)->f))

uint64_t device_features(void);
void driver_features(uint64_t features);
/* Write 0 and wait until it reads so.  False: it doesn't within a second. */
bool device_reset(void);
/* Memory for the queues, once, and the interrupt. */
void queues_alloc(void);
/* Tell the device of a queue; false: it doesn't get ready. */
bool queue_enable(struct queue *q);
/* From reset to DRIVER_OK.  False: refused. */
bool device_start(uint64_t features, unsigned int num);
/* The same with all features and 64 entries; a test that fails if not. */
void device_restart(void);

/* Put a chain that begins at descriptor @head into the ring, without a kick. */
void queue_add(struct queue *q, uint16_t head);
void queue_kick(const struct queue *q);
/* Until @n more chains are used.  0, TIMED_OUT or BROKEN. */
int queue_wait(struct queue *q, unsigned int n);
/* Descriptor @i; @flags without NEXT ends the chain, else @i + 1 follows. */
void desc_set(struct vring_desc *d, unsigned int i, const void *addr,
              uint32_t len, uint16_t flags);

/* One request in two descriptors.  0, TIMED_OUT or BROKEN. */
int request(const void *out, unsigned int out_len, void *in,
            unsigned int in_len, uint32_t *used_len);
/* The same, and the status of the tail at the end of @in. */
int request_status(const void *out, unsigned int out_len);

int attach_flags(uint32_t domain, uint32_t endpoint, uint32_t flags);
static inline int attach(uint32_t domain, uint32_t endpoint)
{
    return attach_flags(domain, endpoint, 0);
}
int detach(uint32_t domain, uint32_t endpoint);
int map_range(uint32_t domain, uint64_t start, uint64_t end, uint64_t phys,
              uint32_t flags);
static inline int map(uint32_t domain, uint64_t iova, const void *phys,
                      uint64_t size, uint32_t flags)
{
    return map_range(domain, iova, iova + size - 1, (uint64_t)phys, flags);
}
int unmap_range(uint32_t domain, uint64_t start, uint64_t end);
static inline int unmap(uint32_t domain, uint64_t iova, uint64_t size)
{
    return unmap_range(domain, iova, iova + size - 1);
}
/* @props: CONFIG(probe_size) bytes. */
int probe(uint32_t endpoint, void *props);

/* The next fault report, waiting for it up to @us.  False: none came. */
bool event_get(struct virtio_iommu_fault *f, uint64_t us);
/* Throw away those that are there. */
void events_drop(void);

/*
 * pci.c: the bridge and the edu devices behind it, and one that is none of PCI's
 */
struct edu {
    uint16_t rid;               /* 0 for that one */
    uint32_t endpoint;
    uintptr_t regs;
};

extern struct edu edu[4];
extern unsigned int nr_edu;
void pci_init(void);
/* Tell Xen that a function comes or goes.  0 or an errno of Xen's. */
int pci_announce(uint16_t rid, bool add);

/* Copy between memory and the buffer inside the device. */
void edu_start(const struct edu *e, bool to_memory, uint64_t addr,
               unsigned int offset, unsigned int size);
bool edu_busy(const struct edu *e);
/* A transfer takes 100 ms of the machine's time: that long, from its start. */
#define EDU_US      100000
void edu_wait(const struct edu *e);

#define PATTERN     0x5ca1ab1e0ddba11UL
/* Let the device's buffer begin with PATTERN.  Needs domain 999. */
void edu_load(const struct edu *e);
/* Does a write to @addr change the word at @target into PATTERN? */
bool dma_write(const struct edu *e, uint64_t addr, uint64_t *target);
/*
 * The word that a read at @addr gets, written to @scratch through @scratch_at
 * to be looked at.
 */
uint64_t dma_read(const struct edu *e, uint64_t addr, uint64_t scratch_at,
                  uint64_t *scratch);

#endif /* VIOMMU_H */
