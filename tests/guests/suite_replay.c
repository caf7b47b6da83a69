/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What Linux does when it attaches a domain that has mappings: n= MAPs of one
 * page, queued as fast as the ring takes them; then as many UNMAPs.
 *
 * To be counted from outside: with step=1 it waits at each phase for a line on
 * the console.
 */

#include "viommu.h"

#include <public/xen.h>

#define IOVA    0x40000000UL

struct slot {
    union {
        struct virtio_iommu_req_map map;
        struct virtio_iommu_req_unmap unmap;
    };
    struct vring_desc table[2];
};

static void phase(const char *what, uint64_t n)
{
    char c = 0;

    print("# replay: %s %lu\n", what, n);
    if ( !option("step", 0) )
        return;
    while ( c != '\n' && c != '\r' )
        if ( hypercall(__HYPERVISOR_console_io, CONSOLEIO_read, 1,
                       (uint64_t)&c) != 1 )
            sleep_us(1000);
}

/* All in @s, in as few kicks as the ring allows.  The number of kicks. */
static unsigned int send(struct slot *s, uint64_t n, unsigned int size)
{
    unsigned int kicks = 0, m, i;
    uint64_t done;

    for ( done = 0; done < n; done += m )
    {
        m = min(n - done, (uint64_t)requestq.num);
        for ( i = 0; i < m; i++ )
        {
            struct slot *t = &s[done + i];

            desc_set(t->table, 0, t, size, VRING_DESC_F_NEXT);
            desc_set(t->table, 1, (uint8_t *)t + size,
                     sizeof(struct virtio_iommu_req_tail), VRING_DESC_F_WRITE);
            desc_set(requestq.desc, i, t->table, sizeof(t->table),
                     VRING_DESC_F_INDIRECT);
            queue_add(&requestq, i);
        }
        queue_kick(&requestq);
        kicks++;
        if ( queue_wait(&requestq, m) )
            bail("the device does not answer");
    }

    return kicks;
}

static void run(void)
{
    const uint64_t n = option("n", 8192);
    struct slot *s;
    uint8_t *ram;
    uint64_t i, bad = 0, start;
    unsigned int kicks;

    if ( !tree.viommu.size )
        bail("the device tree has no virtio-iommu");
    pci_init();
    if ( !nr_edu )
        bail("this suite needs an edu device");
    queues_alloc();
    s = memory(n * sizeof(*s), PAGE);
    ram = memory(n * PAGE, 2 * MB);
    if ( !s || !ram || !device_start(device_features(), QUEUE_MAX) ||
         attach(1, edu[0].endpoint) )
        bail("no memory, or no device");

    for ( i = 0; i < n; i++ )
        s[i].map = (struct virtio_iommu_req_map){
            .head.type = VIRTIO_IOMMU_T_MAP,
            .domain = 1,
            .virt_start = IOVA + i * PAGE,
            .virt_end = IOVA + i * PAGE + PAGE - 1,
            .phys_start = (uint64_t)ram + i * PAGE,
            .flags = READ | WRITE,
            .tail.status = 0xee,
        };
    phase("map", n);
    start = now_us();
    kicks = send(s, n, offsetof(struct virtio_iommu_req_map, tail));
    print("# replay: mapped in %lu us, %u kicks\n", now_us() - start, kicks);
    for ( i = 0; i < n; i++ )
        bad += s[i].map.tail.status != VIRTIO_IOMMU_S_OK;
    is(bad, 0, "replay: %lu MAPs", n);

    for ( i = 0, bad = 0; i < n; i++ )
        s[i].unmap = (struct virtio_iommu_req_unmap){
            .head.type = VIRTIO_IOMMU_T_UNMAP,
            .domain = 1,
            .virt_start = IOVA + i * PAGE,
            .virt_end = IOVA + i * PAGE + PAGE - 1,
            .tail.status = 0xee,
        };
    phase("unmap", n);
    start = now_us();
    kicks = send(s, n, offsetof(struct virtio_iommu_req_unmap, tail));
    print("# replay: unmapped in %lu us, %u kicks\n", now_us() - start, kicks);
    for ( i = 0; i < n; i++ )
        bad += s[i].unmap.tail.status != VIRTIO_IOMMU_S_OK;
    is(bad, 0, "replay: %lu UNMAPs", n);
    phase("end", n);
    ok(device_reset(), "reset at the end");
}

const struct suite suite_replay = { "replay", run };

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * tab-width: 4
 * indent-tabs-mode: nil
 * End:
 */
