/* SPDX-License-Identifier: GPL-2.0-only */
/* ATTACH, DETACH, bypass, reset, removal, with a transfer on its way. */

#include "dma.h"

static uint64_t *page, *other;

static void warm(uint32_t domain)
{
    attach(domain, ep_a->endpoint);
    if ( map(domain, iova, page, PAGE, RW) || !dma_write(ep_a, iova, page) )
        ok(false, "(mapped and reached before)");
}

static void set_bypass(unsigned int val)
{
    config_write(offsetof(struct virtio_iommu_config, bypass), val, 1);
    if ( CONFIG(bypass) != val )
        ok(false, "(bypass is %u)", val);
}

static void detached(void)
{
    unsigned int b;

    for ( b = 0; b < 2; b++ )
    {
        start_over();
        set_bypass(b);
        warm(1);
        in_flight(ep_a, iova, page, GAP_IN);
        events_drop();
        detach(1, ep_a->endpoint);
        ok(!in_flight_arrived(ep_a, page),
           "detach: bypass=%u: nothing of the domain is reached", b);
        fault_is(ep_a, iova, true, VIRTIO_IOMMU_FAULT_R_DOMAIN,
                 "fault of an unattached endpoint");
    }
}

static void moved(void)
{
    start_over();
    set_bypass(0);
    attach(2, ep_b->endpoint);
    map(2, iova, other, PAGE, RW);
    warm(1);
    other[0] = 0;
    in_flight(ep_a, iova, page, GAP_IN);
    is(attach(2, ep_a->endpoint), OK, "move: to another domain");
    ok(!in_flight_arrived(ep_a, page), "move: the old domain isn't reached");
    is(other[0], PATTERN, "move: the new one is");

    warm(1);
    in_flight(ep_a, iova, page, GAP_IN);
    other[0] = 0;
    unmap(1, iova, PAGE);       /* pending, if lazy */
    attach(2, ep_a->endpoint);
    ok(!in_flight_arrived(ep_a, page) && other[0] == PATTERN,
       "move: also with an unmap pending");
}

static void was_reset(void)
{
    start_over();
    set_bypass(0);
    warm(1);
    in_flight(ep_a, iova, page, GAP_IN);
    device_reset();
    ok(!in_flight_arrived(ep_a, page), "reset: nothing is reached after it");
    start_over();
}

static void bypassed(void)
{
    uint64_t addr = (uint64_t)page;

    start_over();
    set_bypass(1);
    ok(dma_write(ep_a, addr, page), "bypass: on: memory is reached");
    in_flight(ep_a, addr, page, GAP_IN);
    events_drop();
    set_bypass(0);
    ok(!in_flight_arrived(ep_a, page), "bypass: switched off: at once not");
    fault_is(ep_a, addr, true, VIRTIO_IOMMU_FAULT_R_DOMAIN,
             "fault with bypass off");
    set_bypass(1);
    ok(dma_write(ep_a, addr, page), "bypass: switched on again");
    set_bypass(0);

    is(attach_flags(9, ep_a->endpoint, VIRTIO_IOMMU_ATTACH_F_BYPASS), OK,
       "bypass: a bypass domain");
    ok(dma_write(ep_a, addr, page), "bypass: its endpoint reaches memory");
    ok(!dma_write(ep_b, addr, page), "bypass: an unattached one doesn't");
    in_flight(ep_a, addr, page, GAP_IN);
    detach(9, ep_a->endpoint);
    ok(!in_flight_arrived(ep_a, page), "bypass: detached: at once not");

    attach(1, ep_a->endpoint);
    ok(!dma_write(ep_a, addr, page), "bypass: nor attached to an empty domain");
    set_bypass(1);
    ok(!dma_write(ep_a, addr, page),
       "bypass: the setting says nothing of attached endpoints");
    in_flight(ep_b, addr, page, GAP_IN);
    attach(1, ep_b->endpoint);
    ok(!in_flight_arrived(ep_b, page), "bypass: ends with ATTACH");
}

static void removed(void)
{
    start_over();
    set_bypass(0);
    warm(1);
    in_flight(ep_a, iova, page, GAP_IN);
    is(pci_announce(ep_a->rid, false), 0, "removal: of an attached endpoint");
    ok(!in_flight_arrived(ep_a, page), "removal: nothing is reached");
    ok(attach(2, ep_a->endpoint) == VIRTIO_IOMMU_S_NOENT,
       "removal: it can't be attached");
    is(pci_announce(ep_a->rid, true), 0, "removal: it comes back");
    ok(dma_write(ep_a, iova, page), "removal: where it was attached");
    pci_announce(ep_a->rid, false);
    is(detach(1, ep_a->endpoint), OK, "removal: detached while away");
    pci_announce(ep_a->rid, true);
    ok(!dma_write(ep_a, iova, page), "removal: comes back unattached");
    is(attach(1, ep_a->endpoint), OK, "removal: can be attached again");
    ok(!dma_write(ep_a, iova, page), "removal: to an empty domain");
}

void dma_attach(void)
{
    uint64_t boot = CONFIG(bypass);

    page = page_new(1);
    other = page_new(1);
    detached();
    moved();
    was_reset();
    bypassed();
    removed();
    start_over();
    set_bypass(boot);
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
