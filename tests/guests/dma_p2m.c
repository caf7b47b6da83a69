/* SPDX-License-Identifier: GPL-2.0-only */
/* Pages that leave the guest's memory while devices reach them. */

#include "dma.h"

#include <public/xen.h>
#include <public/memory.h>

static long reservation(unsigned int cmd, const void *page)
{
    xen_pfn_t pfn = (uint64_t)page / PAGE;
    struct xen_memory_reservation r = {
        .nr_extents = 1,
        .domid = DOMID_SELF,
    };

    set_xen_guest_handle(r.extent_start, &pfn);

    return hypercall(__HYPERVISOR_memory_op, cmd, (uint64_t)&r, 0);
}

static bool balloon_out(const void *page)
{
    return reservation(XENMEM_decrease_reservation, page) == 1;
}

static bool balloon_in(const void *page)
{
    return reservation(XENMEM_populate_physmap, page) == 1;
}

void dma_p2m(void)
{
    uint64_t *page = page_new(1), addr = (uint64_t)page;

    if ( !tree.xen )
        return;
    start_over();
    config_write(offsetof(struct virtio_iommu_config, bypass), 1, 1);

    ok(dma_write(ep_a, addr, page), "balloon: a page is reached in bypass");
    /* Lazy: pinned, and perhaps still reached, until the flush. */
    in_flight(ep_a, addr, page, strict ? GAP_IN : GAP_AFTER);
    events_drop();
    ok(balloon_out(page), "balloon: it goes");
    /* Not to be looked at now, only at the fault. */
    while ( edu_busy(ep_a) )
        sleep_us(100);
    fault_is(ep_a, addr, true, VIRTIO_IOMMU_FAULT_R_DOMAIN,
             "fault of a ballooned page");
    ok(map_range(1, iova, iova + PAGE - 1, addr, READ) > OK,
       "balloon: it can't be mapped");
    ok(balloon_in(page), "balloon: it comes back");
    ok(dma_write(ep_a, addr, page), "balloon: and is reached again");

    /* Mapped by the guest, it stays pinned and no fault comes. */
    attach(1, ep_a->endpoint);
    map(1, iova, page, PAGE, RW);
    ok(dma_write(ep_a, iova, page), "balloon: a page that is mapped");
    events_drop();
    ok(balloon_out(page), "balloon: it goes too");
    edu_start(ep_a, true, iova, 0, 8);
    edu_wait(ep_a);
    {
        struct virtio_iommu_fault f;

        ok(!event_get(&f, 1000), "balloon: it stays pinned while mapped");
    }
    is(unmap(1, iova, PAGE), OK, "balloon: unmap");
    ok(map(1, iova, page, PAGE, RW) > OK, "balloon: not to be mapped again");
    ok(balloon_in(page), "balloon: it comes back");
    is(map(1, iova, page, PAGE, RW), OK, "balloon: and can be mapped");
    ok(dma_write(ep_a, iova, page), "balloon: and reached");
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
