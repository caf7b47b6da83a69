/* SPDX-License-Identifier: GPL-2.0-only */
/* What the parts of the DMA suite share. */
#ifndef DMA_H
#define DMA_H

#include "viommu.h"

#define OK      VIRTIO_IOMMU_S_OK
#define RANGE   VIRTIO_IOMMU_S_RANGE
#define RW      (READ | WRITE)

extern const struct edu *ep_a, *ep_b;
extern bool strict;
/* An address that is no memory of the guest and below the input range's end. */
extern uint64_t iova;

uint64_t *page_new(unsigned int nr);

/*
 * A write that takes place @gap_us to @gap_us + 1000 after this returns, at
 * @addr: what is done meanwhile comes before it.
 */
void in_flight(const struct edu *e, uint64_t addr, uint64_t *target,
               uint64_t gap_us);
/*
 * Did it reach @target?  Fails a test when it was too early, or in a lazy
 * domain later than the 10 ms that a flush may take.
 */
bool in_flight_arrived(const struct edu *e, uint64_t *target);
/* Within the window of a lazy domain, and after it. */
#define GAP_IN      1000
#define GAP_AFTER   12000

/* The next fault report is of @e, at @addr.  A read unless @write. */
void fault_is(const struct edu *e, uint64_t addr, bool write, unsigned int why,
              const char *what);
/* Endpoints unattached, no domain, no event waiting. */
void start_over(void);

void dma_access(void);
void dma_unmap(void);
void dma_attach(void);
void dma_blocks(void);
void dma_p2m(void);

#endif /* DMA_H */
