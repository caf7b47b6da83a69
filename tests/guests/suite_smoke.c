/* SPDX-License-Identifier: GPL-2.0-only */
/* From finding the device to one page that edu may reach, and then may not. */

#include "viommu.h"

#define DOMAIN  7
#define IOVA    0x123456000UL

static void dma(void)
{
    const struct edu *e = &edu[0];
    uint64_t *page = memory(PAGE, PAGE), *scratch = memory(PAGE, PAGE);
    struct virtio_iommu_fault f;

    edu_load(e);

    is(attach(DOMAIN, e->endpoint), VIRTIO_IOMMU_S_OK, "attach");
    is(map(DOMAIN, IOVA, page, PAGE, READ | WRITE), VIRTIO_IOMMU_S_OK, "map");
    is(map(DOMAIN, IOVA + PAGE, scratch, PAGE, WRITE), VIRTIO_IOMMU_S_OK,
       "map another");
    ok(dma_write(e, IOVA + 8, page + 1), "a write arrives");
    page[2] = 0xfeedf00d;
    is(dma_read(e, IOVA + 16, IOVA + PAGE, scratch), 0xfeedf00d,
       "a read gets what is there");
    is(unmap(DOMAIN, IOVA, PAGE), VIRTIO_IOMMU_S_OK, "unmap");
    sleep_us(20000);        /* lazy: at most 10 ms */
    events_drop();
    ok(!dma_write(e, IOVA, page), "no write arrives after it");
    ok(event_get(&f, 100000), "the fault is reported");
    is(f.endpoint, e->endpoint, "endpoint of the fault");
    is(detach(DOMAIN, e->endpoint), VIRTIO_IOMMU_S_OK, "detach");
}

static void run(void)
{
    uint8_t props[PAGE];

    if ( !ok(tree.viommu.size, "the device tree has a virtio-iommu") )
        return;
    is(reg_read(VIRTIO_MMIO_MAGIC_VALUE), 0x74726976, "magic");
    is(reg_read(VIRTIO_MMIO_DEVICE_ID), VIRTIO_ID_IOMMU, "device id");
    queues_alloc();
    device_restart();
    ok(true, "the device starts");

    ok(tree.has_iommu_map || tree.edu_bar.size,
       "the bridge has an iommu-map, or there is a platform device");
    pci_init();
    if ( !ok(nr_edu, "there is an edu device") )
        return;
    is(probe(edu[0].endpoint, props), VIRTIO_IOMMU_S_OK, "probe");
    dma();
    ok(device_reset(), "reset");
}

const struct suite suite_smoke = { "smoke", run };

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * tab-width: 4
 * indent-tabs-mode: nil
 * End:
 */
