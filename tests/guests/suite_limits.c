/* SPDX-License-Identifier: GPL-2.0-only */
/* Asking for more than there is: NOMEM, and all is well once it is given back. */

#include "viommu.h"

#define IOVA    0x4000000000UL

static uint64_t *page;

/* One page every 2 MiB, each of which needs a table.  How many fitted. */
static uint64_t fill(uint32_t domain, int *rc)
{
    uint64_t n, max = (CONFIG(input_range.end) - IOVA) / (2 * MB);

    *rc = VIRTIO_IOMMU_S_OK;
    for ( n = 0; n < max; n++ )
    {
        *rc = map(domain, IOVA + n * 2 * MB, page, PAGE, READ | WRITE);
        if ( *rc )
            break;
    }

    return n;
}

static void run(void)
{
    uint64_t first, again;
    int rc;

    pci_init();
    if ( !tree.viommu.size || nr_edu < 2 )
        bail("this suite needs a virtio-iommu and two edu devices");
    queues_alloc();
    page = memory(PAGE, PAGE);
    device_restart();
    edu_load(&edu[0]);
    attach(1, edu[0].endpoint);
    attach(2, edu[1].endpoint);

    first = fill(1, &rc);
    print("# %lu tables\n", first);
    is(rc, VIRTIO_IOMMU_S_NOMEM, "limits: tables run out: NOMEM");
    ok(dma_write(&edu[0], IOVA, page) &&
       dma_write(&edu[0], IOVA + (first - 1) * 2 * MB, page),
       "limits: what is mapped stays mapped");
    ok(!dma_write(&edu[0], IOVA + first * 2 * MB, page),
       "limits: what failed is not");
    is(map(1, IOVA + PAGE, page, PAGE, READ), VIRTIO_IOMMU_S_OK,
       "limits: a page in a table that is there");
    is(map(2, IOVA, page, PAGE, READ), VIRTIO_IOMMU_S_NOMEM,
       "limits: another domain has none either");
    is(unmap(1, IOVA + 2 * MB, 64 * 2 * MB), VIRTIO_IOMMU_S_OK,
       "limits: UNMAP needs no memory");
    is(map(2, IOVA, page, PAGE, READ), VIRTIO_IOMMU_S_OK,
       "limits: what it gave back is used elsewhere");
    is(unmap_range(1, 0, CONFIG(input_range.end)), VIRTIO_IOMMU_S_OK,
       "limits: UNMAP of everything");
    again = fill(1, &rc);
    ok(rc == VIRTIO_IOMMU_S_NOMEM && again >= first - 64,
       "limits: as many again");
    is(detach(1, edu[0].endpoint), VIRTIO_IOMMU_S_OK,
       "limits: DETACH needs no memory");
    attach(1, edu[0].endpoint);
    again = fill(1, &rc);
    ok(again >= first - 64, "limits: as many after the domain was destroyed");
    ok(device_reset(), "limits: reset");
    device_restart();
    attach(1, edu[0].endpoint);
    is(map(1, IOVA, page, PAGE, READ | WRITE), VIRTIO_IOMMU_S_OK,
       "limits: map after it");
    ok(dma_write(&edu[0], IOVA, page), "limits: which DMA reaches");
    ok(device_reset(), "reset at the end");
}

const struct suite suite_limits = { "limits", run };

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * tab-width: 4
 * indent-tabs-mode: nil
 * End:
 */
