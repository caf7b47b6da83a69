/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Requests to be counted by tests/bench/insn.c: each window ends with a mark,
 * and the labels follow at the end, so that printing is in no window.
 *
 * part=requests: many small ones, by the number in a kick.
 * part=slices: one large one at a time.
 */

#include "viommu.h"

#define IOVA    0x4000000000UL
#define TB      (1UL << 40)
/* Requests in a window. */
#define N       1024

static char label[160][64];
static unsigned int nr_labels;

/* Ends a window; "-" is one that nobody wants to know of. */
static void mark(const char *fmt, ...) PRINTF(1, 2);
static void mark(const char *fmt, ...)
{
    va_list args;

    asm volatile ( "hint #127" ::: "memory" );
    if ( nr_labels == ARRAY_SIZE(label) )
        bail("more marks than labels");
    va_start(args, fmt);
    format(label[nr_labels++], sizeof(label[0]), fmt, args);
    va_end(args);
}

struct slot {
    union {
        struct virtio_iommu_req_map map;
        struct virtio_iommu_req_unmap unmap;
    };
    struct vring_desc table[2];
};

static struct slot *slots;
static unsigned int bad;

static void fill(unsigned int i, bool map, uint64_t iova, uint64_t size,
                 uint64_t phys)
{
    struct slot *s = &slots[i];
    unsigned int len = map ? offsetof(struct virtio_iommu_req_map, tail)
                           : offsetof(struct virtio_iommu_req_unmap, tail);

    if ( map )
        s->map = (struct virtio_iommu_req_map){
            .head.type = VIRTIO_IOMMU_T_MAP, .domain = 1, .virt_start = iova,
            .virt_end = iova + size - 1, .phys_start = phys,
            .flags = READ | WRITE, .tail.status = 0xee,
        };
    else
        s->unmap = (struct virtio_iommu_req_unmap){
            .head.type = VIRTIO_IOMMU_T_UNMAP, .domain = 1,
            .virt_start = iova, .virt_end = iova + size - 1,
            .tail.status = 0xee,
        };
    desc_set(s->table, 0, s, len, VRING_DESC_F_NEXT);
    desc_set(s->table, 1, (uint8_t *)s + len,
             sizeof(struct virtio_iommu_req_tail), VRING_DESC_F_WRITE);
}

/* Slots 0 to @n - 1, @batch in each kick. */
static void send(unsigned int n, unsigned int batch)
{
    unsigned int done, i;

    for ( done = 0; done < n; done += batch )
    {
        for ( i = 0; i < batch; i++ )
        {
            desc_set(requestq.desc, i, slots[done + i].table,
                     sizeof(slots[0].table), VRING_DESC_F_INDIRECT);
            queue_add(&requestq, i);
        }
        queue_kick(&requestq);
        if ( queue_wait(&requestq, batch) )
            bail("the device does not answer");
    }
    for ( i = 0; i < n; i++ )
        bad += (slots[i].map.head.type == VIRTIO_IOMMU_T_MAP ?
                slots[i].map.tail.status : slots[i].unmap.tail.status) != 0;
}

static void window(const char *what, const char *size_name, unsigned int n,
                   unsigned int batch)
{
    mark("-");
    send(n, batch);
    mark("%s %s %u %u", what, size_name, batch, n);
}

static void requests_of(const char *name, uint64_t size, uint8_t *ram,
                        unsigned int batch)
{
    unsigned int i, n = size == PAGE ? N : N / 2;

    for ( i = 0; i < n; i++ )
        fill(i, true, IOVA + i * size, size, (uint64_t)ram);
    window("MAP", name, n, batch);

    /* In pairs: the address is used again at once, for the same memory... */
    for ( i = 0; i < n; i++ )
        fill(i, i & 1, IOVA + (i >> 1) * size, size, (uint64_t)ram);
    window("UNMAP+MAP-same", name, n, batch);
    /* ... and for other memory. */
    for ( i = 0; i < n; i++ )
        fill(i, i & 1, IOVA + (i >> 1) * size, size, (uint64_t)ram + size);
    window("UNMAP+MAP-other", name, n, batch);

    for ( i = 0; i < n; i++ )
        fill(i, false, IOVA + i * size, size, 0);
    window("UNMAP", name, n, batch);
    sleep_us(30000); /* a lazy window closes meanwhile */
}

static void requests(void)
{
    static const unsigned int batch[] = { 1, 8, 32, 128 };
    uint8_t *ram = memory(4 * MB, 2 * MB);
    unsigned int i;

    if ( !ram )
        bail("no memory");
    for ( i = 0; i < ARRAY_SIZE(batch); i++ )
    {
        requests_of("4K", PAGE, ram, batch[i]);
        requests_of("2M", 2 * MB, ram, batch[i]);
    }
    is(bad, 0, "bench: all requests succeed");
}

static void one(const char *what, bool map, uint64_t iova, uint64_t size,
                const void *ram, int want)
{
    int rc;

    mark("-");
    rc = map ? map_range(1, iova, iova + size - 1, (uint64_t)ram, READ | WRITE)
             : unmap_range(1, iova, iova + size - 1);
    mark("%s", what);
    is(rc, want, "bench: %s", what);
    sleep_us(30000);
}

static void slices(void)
{
    uint8_t *ram = memory(GB + 2 * MB, GB);
    uint64_t i;
    int rc;

    if ( !ram )
        bail("no 1 GiB of memory");

    one("MAP 4K", true, IOVA, PAGE, ram, 0);
    one("UNMAP 4K", false, IOVA, PAGE, ram, 0);
    /* Pages: I/O address and memory aren't aligned to each other. */
    one("MAP 2M of 4K", true, IOVA, 2 * MB, ram + PAGE, 0);
    one("UNMAP 2M of 4K", false, IOVA, 2 * MB, ram, 0);
    one("MAP 2M block", true, IOVA, 2 * MB, ram, 0);
    one("UNMAP 2M block", false, IOVA, 2 * MB, ram, 0);
    one("MAP 1G of 4K", true, IOVA, GB, ram + PAGE, 0);
    one("UNMAP 1G of 4K", false, IOVA, GB, ram, 0);
    one("MAP 1G of 2M", true, IOVA, GB, ram + 2 * MB, 0);
    one("UNMAP 1G of 2M", false, IOVA, GB, ram, 0);
    one("MAP 1G block", true, IOVA, GB, ram, 0);
    one("UNMAP 1G block", false, IOVA, GB, ram, 0);
    /* There isn't so much memory: it is undone. */
    one("MAP 1T refused", true, IOVA, TB, ram + PAGE,
        VIRTIO_IOMMU_S_FAULT);
    for ( i = 0; i < 1024; i++ )
        bad += map_range(1, IOVA + i * GB, IOVA + i * GB + PAGE - 1,
                         (uint64_t)ram, READ) != 0;
    is(bad, 0, "bench: a page in each of 1024 GiB");
    one("UNMAP 1T sparse", false, IOVA, TB, ram, 0);
    for ( i = 0; i < 4; i++ )
        bad += map_range(1, IOVA + i * GB, IOVA + i * GB + GB - 1,
                         (uint64_t)ram + PAGE, READ) != 0;
    is(bad, 0, "bench: 4 GiB of pages");
    mark("-");
    rc = detach(1, edu[0].endpoint);
    /* Until nothing is left of it, which its own request does not wait for. */
    sleep_us(30000);
    mark("DETACH 4G of 4K");
    is(rc, 0, "bench: DETACH 4G");
}

static void run(void)
{
    unsigned int i;

    pci_init();
    if ( !tree.viommu.size || !nr_edu )
        bail("this suite needs a virtio-iommu and an edu device");
    queues_alloc();
    slots = memory(N * sizeof(*slots), PAGE);
    if ( !slots || !device_start(device_features(), QUEUE_MAX) ||
         attach(1, edu[0].endpoint) )
        bail("no memory, or no device");

    if ( option_has("part", "requests") )
        requests();
    if ( option_has("part", "slices") )
        slices();

    ok(device_reset(), "reset at the end");
    for ( i = 0; i < nr_labels; i++ )
        print("# mark: %s\n", label[i]);
}

const struct suite suite_bench = { "bench", run };

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * tab-width: 4
 * indent-tabs-mode: nil
 * End:
 */
