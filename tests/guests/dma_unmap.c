/* SPDX-License-Identifier: GPL-2.0-only */
/* UNMAP, strict and lazy, with a transfer on its way. */

#include "dma.h"

/* Mapped, and the SMMU knows it. */
static void warm(uint64_t *page)
{
    if ( map(1, iova, page, PAGE, RW) || !dma_write(ep_a, iova, page) )
        ok(false, "(mapped and reached before)");
}

static void unmapped(void)
{
    uint64_t *page = page_new(1);

    start_over();
    attach(1, ep_a->endpoint);

    warm(page);
    in_flight(ep_a, iova, page, GAP_IN);
    unmap(1, iova, PAGE);
    if ( strict )
        ok(!in_flight_arrived(ep_a, page),
           "unmap: strict: a transfer right after it doesn't arrive");
    else
        /* Allowed, and expected on this SMMU: the proof that it is stale. */
        ok(in_flight_arrived(ep_a, page),
           "unmap: lazy: a transfer right after it reaches the old page");

    sleep_us(20000);
    warm(page);
    in_flight(ep_a, iova, page, GAP_AFTER);
    unmap(1, iova, PAGE);
    events_drop();
    ok(!in_flight_arrived(ep_a, page),
       "unmap: 12 ms after it a transfer doesn't arrive");
    fault_is(ep_a, iova, true, VIRTIO_IOMMU_FAULT_R_MAPPING,
             "fault after unmap");
}

/* The same address again, for another page, while the old one is pending. */
static void reused(void)
{
    uint64_t *old = page_new(1), *new = page_new(1);

    start_over();
    attach(1, ep_a->endpoint);

    warm(old);
    in_flight(ep_a, iova, new, GAP_IN);
    old[0] = 0;
    unmap(1, iova, PAGE);
    map(1, iova, new, PAGE, RW);
    ok(in_flight_arrived(ep_a, new), "reuse: the new page is reached");
    is(ACCESS(old[0]), 0, "reuse: the old one is not");
    unmap(1, iova, PAGE);

    /* The same for a mapping that covers more. */
    sleep_us(20000);
    old = page_new(8);
    new = page_new(8);
    map(1, iova, old, 8 * PAGE, RW);
    dma_write(ep_a, iova + 5 * PAGE, old + 5 * PAGE / 8);
    in_flight(ep_a, iova + 5 * PAGE, new + 3 * PAGE / 8, GAP_IN);
    old[5 * PAGE / 8] = 0;
    unmap(1, iova, 8 * PAGE);
    map(1, iova + 2 * PAGE, new, 4 * PAGE, RW);
    ok(in_flight_arrived(ep_a, new + 3 * PAGE / 8),
       "reuse: of a part: the new page is reached");
    is(ACCESS(old[5 * PAGE / 8]), 0, "reuse: of a part: the old one is not");

    /* From read only to writable, and back. */
    start_over();
    attach(1, ep_a->endpoint);
    map(1, iova, old, PAGE, READ);
    dma_write(ep_a, iova, old);
    unmap(1, iova, PAGE);
    map(1, iova, old, PAGE, RW);
    ok(dma_write(ep_a, iova, old), "reuse: read only becomes writable");
    in_flight(ep_a, iova, old, GAP_IN);
    unmap(1, iova, PAGE);
    map(1, iova, old, PAGE, READ);
    ok(!in_flight_arrived(ep_a, old), "reuse: writable becomes read only");
}

/* Nothing may be left that was reached before. */
static void vmids(void)
{
    uint64_t *page = page_new(1);
    unsigned int i, bad = 0;

    for ( i = 0; i < 8; i++ )
    {
        start_over();
        attach(i, ep_a->endpoint);
        map(i, iova, page, PAGE, RW);
        bad += !dma_write(ep_a, iova, page);
        in_flight(ep_a, iova, page, GAP_IN);
        if ( i & 1 )
            detach(i, ep_a->endpoint);
        else
            unmap(i, iova, PAGE);
        attach(i + 100, ep_a->endpoint);
        bad += in_flight_arrived(ep_a, page);
    }
    is(bad, 0, "recycle: a new domain never hits what an old one left");
}

void dma_unmap(void)
{
    unmapped();
    reused();
    vmids();
}

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * tab-width: 4
 * indent-tabs-mode: nil
 * End:
 */
