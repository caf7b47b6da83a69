/* SPDX-License-Identifier: GPL-2.0-only */
/* A guest with a device and without a virtio-iommu: addresses are its own. */

#include "viommu.h"

static void run(void)
{
    uint64_t *pattern = memory(PAGE, PAGE), *page = memory(PAGE, PAGE);
    uint64_t end = tree.memory[0].base + tree.memory[0].size;

    ok(!tree.viommu.size, "the device tree has no virtio-iommu");
    pci_init();
    if ( !ok(nr_edu, "there is an edu device") )
        return;

    *pattern = PATTERN;
    edu_start(&edu[0], false, (uint64_t)pattern, 0, 8);
    edu_wait(&edu[0]);
    ok(dma_write(&edu[0], (uint64_t)page, page), "DMA reaches memory");
    page[1] = 0xfeedf00d;
    is(dma_read(&edu[0], (uint64_t)&page[1], (uint64_t)&page[2], &page[2]),
       0xfeedf00d, "and reads it");
    /* That is no memory of this guest; Xen says so, and nothing else happens. */
    *page = 0;
    edu_start(&edu[0], true, end, 0, 8);
    edu_wait(&edu[0]);
    is(*page, 0, "DMA past the end of memory hits nothing here");
    ok(dma_write(&edu[0], (uint64_t)page, page), "and the next one works");
}

const struct suite suite_direct = { "direct", run };

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * tab-width: 4
 * indent-tabs-mode: nil
 * End:
 */
