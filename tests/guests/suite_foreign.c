/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Pages of another domain: what leaves our memory leaves our devices.
 *
 * The witness is a second mapping of the same page, through which we see what
 * a device wrote after the first is gone.  Where a page must have no other user,
 * to see when Xen gets it back, its owner's number of pages is the witness.
 */

#include "foreign.h"

const struct way ways[2] = {
    { "mapped", true, VIRTIO_IOMMU_FAULT_R_MAPPING },
    { "bypass", false, VIRTIO_IOMMU_FAULT_R_DOMAIN },
};

#define PAGES   8       /* of the second domain */

void way_begin(const struct way *w)
{
    start_over();
    config_write(offsetof(struct virtio_iommu_config, bypass), 1, 1);
    if ( w->mapped && attach(1, ep_a->endpoint) )
        bail("%s: no ATTACH", w->name);
    events_drop();
}

uint64_t way_open(const struct way *w, uint64_t *at)
{
    if ( !w->mapped )
        return (uint64_t)at;
    is(map(1, iova, at, PAGE, RW), OK, "(%s: MAP)", w->name);

    return iova;
}

void way_close(const struct way *w)
{
    if ( w->mapped )
        is(unmap(1, iova, PAGE), OK, "(%s: UNMAP of what is gone)", w->name);
}

void settle(void)
{
    sleep_us(30000);
}

static void foreign_is_mapped(uint64_t *at, domid_t dom, unsigned int nr)
{
    int rc = foreign_map(at, dom, OTHER_GFN + nr);

    if ( rc )
        bail("a foreign page can't be mapped: %d", rc);
}

/* A transfer right after the removal, and one after the longest delay. */
static void removed(const struct way *w)
{
    domid_t dom = other_new(PAGES, false);
    uint64_t *at = hole(1), *view = hole(1), addr, before;

    way_begin(w);
    foreign_is_mapped(view, dom, 0);
    foreign_is_mapped(at, dom, 0);
    addr = way_open(w, at);
    ok(dma_write(ep_a, addr, view), "%s: a foreign page is reached", w->name);
    ok(at[0] == PATTERN, "%s: and seen by us", w->name);

    before = counter(XEN_PVIOMMU_CNT_revoked);
    in_flight(ep_a, addr, view, GAP_IN);
    is(foreign_unmap(at), 0, "%s: it is removed", w->name);
    if ( strict )
        ok(!in_flight_arrived(ep_a, view),
           "%s: strict: not reached right after it", w->name);
    else
        /* Allowed, and the proof that it is stale on this SMMU. */
        ok(in_flight_arrived(ep_a, view),
           "%s: lazy: still reached right after it", w->name);
    is(counter(XEN_PVIOMMU_CNT_revoked) - before, w->mapped,
       "%s: counted as revoked", w->name);
    settle();
    way_close(w);

    foreign_is_mapped(at, dom, 0);
    addr = way_open(w, at);
    ok(dma_write(ep_a, addr, view), "%s: it can come back", w->name);
    in_flight(ep_a, addr, view, GAP_AFTER);
    foreign_unmap(at);
    events_drop();
    ok(!in_flight_arrived(ep_a, view), "%s: not reached 12 ms after",
       w->name);
    fault_is(ep_a, addr, true, w->why, "fault of a foreign page");
    way_close(w);

    foreign_unmap(view);
    ok(other_kill(dom), "%s: the second domain ends", w->name);
    is(other_pages_wait(dom, -1, 1000000), -1, "%s: and is gone", w->name);
}

/*
 * A page of a domain that is being built: the removals of all its pages wait
 * for one flush, before it starts.
 */
static void building(void)
{
    domid_t dom = other_built(PAGES, false);
    uint64_t *at = hole(1), *view = hole(1), syncs;

    way_begin(&ways[1]);
    foreign_is_mapped(view, dom, 0);
    foreign_is_mapped(at, dom, 0);
    ok(dma_write(ep_a, (uint64_t)at, view), "building: a page is reached");

    syncs = counter(XEN_PVIOMMU_CNT_sync);
    in_flight(ep_a, (uint64_t)at, view, GAP_IN);
    is(foreign_unmap(at), 0, "building: it is removed");
    if ( strict )
        is(counter(XEN_PVIOMMU_CNT_sync), syncs, "building: without a sync");
    ok(in_flight_arrived(ep_a, view), "building: reached until the start");

    foreign_is_mapped(at, dom, 0);
    ok(dma_write(ep_a, (uint64_t)at, view), "building: it comes back");
    in_flight(ep_a, (uint64_t)at, view, GAP_IN);
    foreign_unmap(at);
    other_start(dom);
    if ( strict )
    {
        ok(!in_flight_arrived(ep_a, view), "building: not after the start");
        is(counter(XEN_PVIOMMU_CNT_pending), 0, "building: nothing is pending");
    }
    else
        while ( edu_busy(ep_a) )
            sleep_us(100);
    settle();
    events_drop();
    foreign_unmap(view);
    ok(other_kill(dom), "building: the second domain ends");
    is(other_pages_wait(dom, -1, 1000000), -1, "building: and is gone");
}

/* A page that its owner has given up: ours until the flush, and no longer. */
static void pinned(const struct way *w)
{
    domid_t dom = other_new(PAGES, true);
    uint64_t *at = hole(1), addr;

    way_begin(w);
    is(other_pages(dom), PAGES, "%s: pages of the owner", w->name);
    foreign_is_mapped(at, dom, 1);
    addr = way_open(w, at);
    ok(other_drop(dom, OTHER_GFN + 1), "%s: the owner gives it up", w->name);
    settle();
    is(other_pages(dom), PAGES, "%s: we still hold it", w->name);
    ok(dma_write(ep_a, addr, at), "%s: and reach it", w->name);

    in_flight(ep_a, addr, at, GAP_IN);
    is(foreign_unmap(at), 0, "%s: the last mapping goes", w->name);
    if ( strict )
        is(other_pages_wait(dom, PAGES - 1, 900), PAGES - 1,
           "%s: strict: Xen has it at once", w->name);
    else
        is(other_pages(dom), PAGES, "%s: lazy: pinned", w->name);
    while ( edu_busy(ep_a) )
        sleep_us(100);
    if ( !strict )
        is(other_pages(dom), PAGES,
           "%s: lazy: pinned when a transfer came", w->name);
    settle();
    is(other_pages(dom), PAGES - 1, "%s: Xen has it", w->name);
    is(counter(XEN_PVIOMMU_CNT_pinned), 0, "%s: nothing is pinned", w->name);
    way_close(w);

    ok(other_kill(dom), "%s: the second domain ends", w->name);
    is(other_pages_wait(dom, -1, 1000000), -1, "%s: and is gone", w->name);
}

/*
 * A device's registers, which the toolstack takes away: the device may be
 * another domain's next, so lazy waits as well.  The witness is a register of
 * the other edu's that keeps what is written.
 */
static void registers(const struct way *w)
{
    const uint64_t src = 0x80;
    uint64_t *at = hole(1), *reg = (uint64_t *)(ep_b->regs + src), addr, before;

    way_begin(w);
    is(registers_map(at, ep_b->regs, true), 0, "%s: registers appear", w->name);
    addr = way_open(w, at) + src;
    ok(dma_write(ep_a, addr, reg), "%s: a device reaches them", w->name);
    before = counter(XEN_PVIOMMU_CNT_revoked);
    in_flight(ep_a, addr, reg, GAP_IN);
    is(registers_map(at, ep_b->regs, false), 0, "%s: registers go", w->name);
    events_drop();
    ok(!in_flight_arrived(ep_a, reg), "%s: not reached right after", w->name);
    fault_is(ep_a, addr, true, w->why, "fault of registers");
    is(counter(XEN_PVIOMMU_CNT_revoked) - before, w->mapped,
       "%s: counted as revoked", w->name);
    way_close(w);
}

/* MAP gives what the request says, and of foreign pages no more. */
static void permissions(void)
{
    domid_t dom = other_new(PAGES, false);
    uint64_t *at = hole(1), *scratch = page_new(1);

    way_begin(&ways[0]);
    foreign_is_mapped(at, dom, 0);
    at[0] = 0x1122334455667788UL;
    is(map(1, iova, at, PAGE, READ), OK, "foreign: MAP to be read");
    is(map(1, iova + PAGE, scratch, PAGE, RW), OK, "(MAP of our own)");
    /* The write first: QEMU's SMMU reports none once it has cached the page. */
    ok(!dma_write(ep_a, iova + 8, at + 1), "foreign: it is not written");
    fault_is(ep_a, iova + 8, true, VIRTIO_IOMMU_FAULT_R_MAPPING,
             "write of what is to be read");
    is(dma_read(ep_a, iova, iova + PAGE, scratch), 0x1122334455667788UL,
       "foreign: it is read");
    foreign_unmap(at);
    ok(map(1, iova + 2 * PAGE, at, PAGE, READ) > OK,
       "foreign: no MAP of what is gone");
    ok(dma_write(ep_a, iova + PAGE, scratch), "foreign: our own page stays");
    is(unmap(1, iova, 2 * PAGE), OK, "foreign: UNMAP of both");
    other_kill(dom);
}

/* One page, mapped twice by us: one mapping goes, the other goes on. */
static void twice(void)
{
    domid_t dom = other_new(PAGES, false);
    uint64_t *at = hole(1), *other = hole(1);

    way_begin(&ways[0]);
    foreign_is_mapped(at, dom, 0);
    foreign_is_mapped(other, dom, 0);
    is(map(1, iova, at, PAGE, RW), OK, "twice: MAP");
    is(map(1, iova + PAGE, other, PAGE, RW), OK, "twice: MAP by another name");
    is(map(1, iova + 5 * PAGE, at, PAGE, RW), OK, "twice: MAP again");
    ok(dma_write(ep_a, iova, other) && dma_write(ep_a, iova + PAGE, other) &&
       dma_write(ep_a, iova + 5 * PAGE, other), "twice: all are reached");
    is(foreign_unmap(at), 0, "twice: one name goes");
    settle();
    ok(!dma_write(ep_a, iova, other), "twice: not reached by it");
    ok(!dma_write(ep_a, iova + 5 * PAGE, other), "twice: nor at the other place");
    ok(dma_write(ep_a, iova + PAGE, other), "twice: reached by the other name");
    foreign_unmap(other);
    settle();
    events_drop();
    is(unmap(1, iova, 6 * PAGE), OK, "twice: UNMAP");
    other_kill(dom);
    is(other_pages_wait(dom, -1, 1000000), -1, "twice: the owner is gone");
}

/* The owner is destroyed while we have its page. */
static void destroyed(const struct way *w, bool iommu)
{
    uint64_t *at = hole(1), before, addr;
    domid_t dom;

    start_over();
    settle();
    before = free_pages();
    way_begin(w);
    dom = other_new(PAGES, iommu);
    foreign_is_mapped(at, dom, 2);
    addr = way_open(w, at);
    ok(dma_write(ep_a, addr, at), "%s: reached before the end", w->name);
    ok(other_kill(dom), "%s: the owner is destroyed", w->name);
    settle();
    is(other_pages(dom), 1, "%s: our page is left of it", w->name);
    ok(dma_write(ep_a, addr, at), "%s: and still reached", w->name);
    /* Queued or not, the p2m is not what holds it then. */
    in_flight(ep_a, addr, at, GAP_IN);
    is(foreign_unmap(at), 0, "%s: we remove it", w->name);
    if ( !strict )
        is(other_pages(dom), 1, "%s: lazy: pinned", w->name);
    is(other_pages_wait(dom, -1, 1000000), -1, "%s: it is gone", w->name);
    while ( edu_busy(ep_a) )
        sleep_us(100);
    way_close(w);
    start_over();
    is(free_pages_wait(before, 1000000), before, "%s: all pages are free",
       w->name);
}

static void run(void)
{
    unsigned int i;

    if ( !tree.xen || !tree.viommu.size )
        bail("this suite needs Xen and a virtio-iommu");
    pci_init();
    if ( nr_edu < 2 )
        bail("this suite needs two edu devices, there are %u", nr_edu);
    strict = option("strict", 1);
    queues_alloc();
    device_restart();
    edu_load(ep_a);
    edu_load(ep_b);
    is(is_strict(), strict, "Xen calls us strict or not");

    for ( i = 0; i < ARRAY_SIZE(ways); i++ )
    {
        removed(&ways[i]);
        pinned(&ways[i]);
        registers(&ways[i]);
    }
    building();
    permissions();
    twice();
    /* What Xen keeps after the first time, it has by now. */
    for ( i = 0; i < ARRAY_SIZE(ways); i++ )
    {
        destroyed(&ways[i], false);
        destroyed(&ways[i], true);
    }
    foreign_grants();
    foreign_switch();
    start_over();
    ok(device_reset(), "reset at the end");
}

const struct suite suite_foreign = { "foreign", run };

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * tab-width: 4
 * indent-tabs-mode: nil
 * End:
 */
