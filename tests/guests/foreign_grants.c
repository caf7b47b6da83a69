/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Grants: who granted a page goes on using it when the grant ends, so that
 * nothing may reach it then, strict or lazy.
 */

#include "foreign.h"

#define PAGES       40
#define REF         8           /* the first that isn't reserved */
#define BATCH       32          /* what Xen ends together */

static domid_t dom;
static grant_entry_v1_t *table;

/* A grant of page @nr, mapped at @at. */
static struct grant granted(uint64_t *at, unsigned int nr, bool readonly)
{
    struct grant g = { .at = at, .readonly = readonly };
    int rc;

    grant_page(&table[REF + nr], OTHER_GFN + nr, readonly);
    rc = grant_map(&g, dom, REF + nr);
    if ( rc )
        bail("grant %u can't be mapped: %d", REF + nr, rc);

    return g;
}

static uint64_t *viewed(unsigned int nr)
{
    uint64_t *at = hole(1);
    int rc = foreign_map(at, dom, OTHER_GFN + nr);

    if ( rc )
        bail("page %u can't be looked at: %d", nr, rc);

    return at;
}

static void bypass(bool on)
{
    config_write(offsetof(struct virtio_iommu_config, bypass), on, 1);
}

/* Right after the end of the grant, with a transfer on its way. */
static void ended(const struct way *w, bool by_bus_address)
{
    uint64_t *view = viewed(0), *at = hole(1), addr;
    struct grant g;

    way_begin(w);
    g = granted(at, 0, false);
    addr = way_open(w, by_bus_address ? (uint64_t *)g.bus : at);
    ok(dma_write(ep_a, addr, view), "%s: a granted page is reached", w->name);
    in_flight(ep_a, addr, view, GAP_IN);
    events_drop();
    is(grants_unmap(&g, 1), 1, "%s: the grant ends", w->name);
    ok(!in_flight_arrived(ep_a, view), "%s: not reached right after it",
       w->name);
    fault_is(ep_a, addr, true, w->why, "fault of a granted page");
    way_close(w);
    foreign_unmap(view);
}

/*
 * What Linux does: UNMAP, then the end of the grant.  A lazy UNMAP is still
 * pending by then.  @others: devices that translate by the p2m, too.
 */
static void unmapped_before(bool others)
{
    const char *name = others ? "UNMAP before" : "UNMAP before, no bypass";
    uint64_t *view = viewed(1), *at = hole(1);
    struct grant g;

    way_begin(&ways[0]);
    bypass(others);
    g = granted(at, 1, false);
    is(map(1, iova, at, PAGE, RW), OK, "%s: MAP", name);
    ok(dma_write(ep_a, iova, view), "%s: reached", name);
    settle();
    in_flight(ep_a, iova, view, GAP_IN);
    is(unmap(1, iova, PAGE), OK, "%s: UNMAP", name);
    is(grants_unmap(&g, 1), 1, "%s: the grant ends", name);
    ok(!in_flight_arrived(ep_a, view), "%s: not reached right after", name);
    foreign_unmap(view);
}

static void readonly(void)
{
    uint64_t *view = viewed(2), *at = hole(1), *scratch = page_new(1);
    struct grant g;

    way_begin(&ways[0]);
    g = granted(at, 2, true);
    view[0] = 0x1122334455667788UL;
    ok(map(1, iova, at, PAGE, RW) > OK, "read only: no MAP to be written");
    is(map(1, iova, at, PAGE, READ), OK, "read only: MAP to be read");
    is(map(1, iova + PAGE, scratch, PAGE, RW), OK, "(MAP of our own)");
    ok(!dma_write(ep_a, iova + 8, view + 1), "read only: not written");
    is(dma_read(ep_a, iova, iova + PAGE, scratch), 0x1122334455667788UL,
       "read only: read");
    is(grants_unmap(&g, 1), 1, "read only: the grant ends");
    events_drop();
    dma_read(ep_a, iova, iova + PAGE, scratch);
    fault_is(ep_a, iova, false, VIRTIO_IOMMU_FAULT_R_MAPPING,
             "read after the end");
    is(unmap(1, iova, 2 * PAGE), OK, "read only: UNMAP");
    foreign_unmap(view);
}

/* Ended together: one sync, whoever translates and however. */
static void batch(const struct way *w, bool others)
{
    struct grant g[BATCH];
    uint64_t *at = hole(BATCH), *view[2] = { viewed(0), viewed(BATCH - 1) };
    uint64_t addr[2], own, smmu, revoked;
    unsigned int i, last = BATCH - 1;

    way_begin(w);
    bypass(others);
    for ( i = 0; i < BATCH; i++ )
    {
        g[i] = granted(at + i * PAGE / 8, i, false);
        if ( w->mapped && map(1, iova + i * PAGE, g[i].at, PAGE, RW) )
            ok(false, "(batch: MAP %u)", i);
    }
    addr[0] = w->mapped ? iova : (uint64_t)at;
    addr[1] = addr[0] + last * PAGE;
    ok(dma_write(ep_a, addr[0], view[0]) && dma_write(ep_a, addr[1], view[1]),
       "batch: %s: first and last are reached", w->name);
    settle();

    in_flight(ep_a, addr[1], view[1], GAP_IN);
    smmu = smmu_counter(XEN_PVIOMMU_SMMU_CNT_sync);
    own = counter(XEN_PVIOMMU_CNT_sync);
    revoked = counter(XEN_PVIOMMU_CNT_revoked);
    i = grants_unmap(g, BATCH);
    own = counter(XEN_PVIOMMU_CNT_sync) - own;
    smmu = smmu_counter(XEN_PVIOMMU_SMMU_CNT_sync) - smmu;
    revoked = counter(XEN_PVIOMMU_CNT_revoked) - revoked;
    is(i, BATCH, "batch: %s: all grants end", w->name);
    ok(!in_flight_arrived(ep_a, view[1]), "batch: %s: the last isn't reached",
       w->name);
    ok(!dma_write(ep_a, addr[0], view[0]), "batch: %s: nor the first",
       w->name);
    is(own, 1, "batch: %s%s: one sync", w->name, others ? "" : ", no bypass");
    is(smmu, 1, "batch: %s: and no more at the SMMU", w->name);
    is(revoked, w->mapped ? BATCH : 0, "batch: %s: all revoked", w->name);
    if ( w->mapped )
        is(unmap(1, iova, BATCH * PAGE), OK, "batch: UNMAP");
    foreign_unmap(view[0]);
    foreign_unmap(view[1]);
}

/* Two grants of one page, as of a guest that writes it to two disks. */
static void twice(void)
{
    uint64_t *view = viewed(3), *at = hole(2);
    struct grant g[2] = { { .at = at }, { .at = at + PAGE / 8 } };
    unsigned int i;

    way_begin(&ways[0]);
    for ( i = 0; i < 2; i++ )
    {
        grant_page(&table[REF + i], OTHER_GFN + 3, false);
        if ( grant_map(&g[i], dom, REF + i) ||
             map(1, iova + i * PAGE, g[i].at, PAGE, RW) )
            bail("two grants of a page can't be mapped");
    }
    ok(dma_write(ep_a, iova, view) && dma_write(ep_a, iova + PAGE, view),
       "two grants of a page: both are reached");
    is(grants_unmap(&g[0], 1), 1, "two grants of a page: one ends");
    ok(!dma_write(ep_a, iova, view), "two grants of a page: not reached by it");
    ok(dma_write(ep_a, iova + PAGE, view),
       "two grants of a page: reached by the other");
    in_flight(ep_a, iova + PAGE, view, GAP_IN);
    is(grants_unmap(&g[1], 1), 1, "two grants of a page: the other ends");
    ok(!in_flight_arrived(ep_a, view), "two grants of a page: not reached");
    is(unmap(1, iova, 2 * PAGE), OK, "two grants of a page: UNMAP");
    foreign_unmap(view);
}

/* Its owner is destroyed while the grant is mapped. */
static void destroyed(void)
{
    uint64_t *at = hole(1);
    struct grant g;

    way_begin(&ways[0]);
    g = granted(at, 4, false);
    is(map(1, iova, at, PAGE, RW), OK, "destroyed: MAP");
    foreign_unmap((uint64_t *)table);
    ok(other_kill(dom), "destroyed: the granting domain ends");
    settle();
    is(other_pages(dom), 1, "destroyed: the granted page is left");
    ok(dma_write(ep_a, iova, at), "destroyed: it is reached");
    is(grants_unmap(&g, 1), 1, "destroyed: the grant ends");
    is(other_pages_wait(dom, -1, 5000), -1,
       "destroyed: all of it is gone at once");
    ok(!dma_write(ep_a, iova, page_new(1)), "destroyed: nothing is reached");
    is(unmap(1, iova, PAGE), OK, "destroyed: UNMAP");
}

void foreign_grants(void)
{
    dom = other_new(PAGES, false);
    table = grants_of(dom);

    ended(&ways[0], false);
    ended(&ways[1], false);
    /* Xen enters a granted page of a domain like dom0 there as well. */
    ended(&ways[0], true);
    ended(&ways[1], true);
    unmapped_before(true);
    unmapped_before(false);
    readonly();
    batch(&ways[0], true);
    batch(&ways[0], false);
    batch(&ways[1], true);
    twice();
    destroyed();
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
