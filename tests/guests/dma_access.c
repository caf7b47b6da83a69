/* SPDX-License-Identifier: GPL-2.0-only */
/* MAP: the right page, the right permission, and what faults say. */

#include "dma.h"

static void pages(void)
{
    uint64_t *page = page_new(4), last = CONFIG(input_range.end) - PAGE + 1;
    const uint64_t at[] = { 0, iova, iova + PAGE, last };
    unsigned int i, j;

    start_over();
    attach(1, ep_a->endpoint);
    for ( i = 0; i < 4; i++ )
        map(1, at[i], page + i * PAGE / 8, PAGE, RW);
    for ( i = 0; i < 4; i++ )
    {
        bool others = false;

        memset(page, 0, 4 * PAGE);
        ok(dma_write(ep_a, at[i] + 0xff8, page + (i + 1) * PAGE / 8 - 1),
           "access: a write at %#lx arrives", at[i]);
        for ( j = 0; j < 4 * PAGE / 8; j++ )
            others |= page[j] && j != (i + 1) * PAGE / 8 - 1;
        ok(!others, "access: and nowhere else");
    }
    page[1] = 0x1d0;
    is(dma_read(ep_a, at[0] + 8, at[3], page + 3 * PAGE / 8), 0x1d0,
       "access: a read gets what is there");
    ok(!dma_write(ep_a, iova + 2 * PAGE, page),
       "access: beside the mappings nothing arrives");
}

static void permissions(void)
{
    uint64_t *ro = page_new(1), *scratch = page_new(1), *wo = page_new(1);
    uint64_t none = iova + 16 * PAGE;

    start_over();
    attach(1, ep_a->endpoint);
    map(1, iova, ro, PAGE, READ);
    map(1, iova + PAGE, scratch, PAGE, WRITE);
    map(1, iova + 2 * PAGE, wo, PAGE, WRITE);
    ok(!dma_write(ep_a, iova + 8, ro + 1), "access: read only: no write");
    fault_is(ep_a, iova + 8, true, VIRTIO_IOMMU_FAULT_R_MAPPING,
             "fault of a write to read only");
    ro[2] = 0x5eed;
    is(dma_read(ep_a, iova + 16, iova + PAGE, scratch), 0x5eed,
       "access: read only: a read");
    /* QEMU's SMMU records no event for this one. */
    ok(!dma_write(ep_a, iova + 8, ro + 1),
       "access: read only: no write either when the SMMU has cached it");
    ok(dma_write(ep_a, iova + 2 * PAGE, wo), "access: write only: a write");

    events_drop();
    ok(!dma_write(ep_a, none, ro), "access: unmapped: no write");
    fault_is(ep_a, none, true, VIRTIO_IOMMU_FAULT_R_MAPPING,
             "fault of a write to nothing");
    events_drop();
    dma_read(ep_a, none + 0x123, iova + PAGE, scratch);
    fault_is(ep_a, none + 0x123, false, VIRTIO_IOMMU_FAULT_R_MAPPING,
             "fault of a read of nothing");
}

/* A MAP that was refused opens nothing, not even for a time. */
static void refused(void)
{
    uint64_t *page = page_new(8), end = 0;
    unsigned int i;

    start_over();
    attach(1, ep_a->endpoint);
    for ( i = 0; i < tree.nr_memory; i++ )
        if ( tree.memory[i].base + tree.memory[i].size > end )
            end = tree.memory[i].base + tree.memory[i].size;
    ok(map(1, iova, (void *)(end - 4 * PAGE), 8 * PAGE, RW) > OK,
       "access: a MAP that is half over nothing is refused");
    ok(!dma_write(ep_a, iova, (uint64_t *)(end - 4 * PAGE)),
       "access: its first page isn't reached");
    ok(!dma_write(ep_a, iova + 3 * PAGE, (uint64_t *)(end - PAGE)),
       "access: nor its last that is there");
    map(1, iova, page, PAGE, RW);
    ok(map(1, iova - PAGE, page + PAGE / 8, 3 * PAGE, RW) > OK,
       "access: a MAP over another is refused");
    ok(!dma_write(ep_a, iova - PAGE, page + PAGE / 8) &&
       !dma_write(ep_a, iova + PAGE, page + 3 * PAGE / 8),
       "access: nothing of it is reached");
    ok(dma_write(ep_a, iova, page), "access: the other is as it was");
}

/* The event queue: short buffers, no buffers. */
static void events(void)
{
    uint64_t *page = page_new(1);
    struct virtio_iommu_fault f;
    unsigned int i;

    start_over();
    attach(1, ep_a->endpoint);
    for ( i = 0; i < 3 * EVENTS; i++ )
        dma_write(ep_a, iova + i * PAGE, page);
    for ( i = 0; event_get(&f, 0); i++ )
        ;
    ok(i >= EVENTS, "events: more faults than buffers");
    events_drop();
    dma_write(ep_a, iova, page);
    ok(event_get(&f, 100000) && f.address == iova,
       "events: the next ones are reported again");

    /* A buffer that is too small for a report. */
    reg_write(VIRTIO_MMIO_QUEUE_SEL, 1);
    reg_write(VIRTIO_MMIO_QUEUE_READY, 0);
    queue_enable(&eventq);
    memset(page, 0xee, PAGE);
    desc_set(eventq.desc, 0, page, sizeof(f) - 1, VRING_DESC_F_WRITE);
    queue_add(&eventq, 0);
    queue_kick(&eventq);
    dma_write(ep_a, iova, page + 100);
    sleep_us(10000);
    is((uint8_t)page[0], 0xee, "events: none in a buffer that is too small");
}

/* Both on one bus, and in each other's way if anything is mixed up. */
static void two(void)
{
    uint64_t *p = page_new(1), *q = page_new(1);

    start_over();
    attach(1, ep_a->endpoint);
    attach(2, ep_b->endpoint);
    map(1, iova, p, PAGE, RW);
    map(2, iova, q, PAGE, RW);
    memset(q, 0, PAGE);
    ok(dma_write(ep_a, iova, p) && !q[0], "two domains: the first's own page");
    p[0] = 0;
    ok(dma_write(ep_b, iova, q) && !p[0], "two domains: the second's own page");
    unmap(1, iova, PAGE);
    sleep_us(20000);
    ok(!dma_write(ep_a, iova, p), "two domains: unmapped in the first");
    ok(dma_write(ep_b, iova, q), "two domains: the second keeps its own");

    events_drop();
    dma_write(ep_a, iova, p);
    fault_is(ep_a, iova, true, VIRTIO_IOMMU_FAULT_R_MAPPING,
             "fault of one of two");

    is(attach(2, ep_a->endpoint), OK, "one domain: both in it");
    ok(dma_write(ep_a, iova, q),
       "one domain: what was mapped reaches the new endpoint");
    ok(dma_write(ep_b, iova, q), "one domain: and still the first");
    map(2, iova + PAGE, p, PAGE, RW);
    ok(dma_write(ep_a, iova + PAGE, p) && dma_write(ep_b, iova + PAGE, p),
       "one domain: a new mapping reaches both");
    unmap(2, iova, PAGE);
    sleep_us(20000);
    ok(!dma_write(ep_a, iova, q) && !dma_write(ep_b, iova, q),
       "one domain: unmapped for both");
}

void dma_access(void)
{
    pages();
    permissions();
    refused();
    events();
    two();
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
