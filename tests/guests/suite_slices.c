/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Requests that take long, and whether the rest of the guest runs on
 * meanwhile.  To be run with fewer CPUs than vCPUs: then the other vCPU gets
 * its turn only if the hypervisor lets go between slices.
 */

#include "dma.h"

#define IOVA    0x4000000000UL
#define TICK_US 1000
/*
 * Xen's scheduler may give a vCPU 10 ms, and the one with the request has used
 * none when it begins.
 */
#define GAP_MAX 25000

static bool stop;
static uint64_t longest;

static void ticks(void *arg)
{
    uint64_t last = now_us();

    (void)arg;
    while ( !ACCESS(stop) )
    {
        uint64_t now;

        sleep_us(TICK_US);
        now = now_us();
        if ( now - last > longest )
            longest = now - last;
        last = now;
    }
}

static uint64_t began;

static void begin(void)
{
    longest = 0;
    ACCESS(stop) = false;
    cpu_run(1, ticks, NULL);
    sleep_us(5 * TICK_US);
    began = now_us();
}

static void end(const char *what)
{
    uint64_t took = now_us() - began;

    ACCESS(stop) = true;
    cpu_wait(1);
    print("# %s: %lu us, longest time between two ticks %lu us\n", what, took,
          longest);
    ok(longest < GAP_MAX, "slices: %s: the other vCPU keeps its tick", what);
}

static struct virtio_iommu_req_map maps[64];

/* A whole ring of MAPs, of 2 GiB together, without the kick. */
static void post_maps(uint8_t *ram)
{
    unsigned int i;

    for ( i = 0; i < 64; i++ )
    {
        maps[i] = (struct virtio_iommu_req_map){
            .head.type = VIRTIO_IOMMU_T_MAP,
            .domain = 1,
            .virt_start = IOVA + i * 32 * MB + PAGE,
            .virt_end = IOVA + (i + 1) * 32 * MB - 1,
            .phys_start = (uint64_t)ram,
            .flags = READ | WRITE,
            .tail.status = 0xee,
        };
        desc_set(requestq.desc, 2 * i, &maps[i],
                 offsetof(struct virtio_iommu_req_map, tail),
                 VRING_DESC_F_NEXT);
        desc_set(requestq.desc, 2 * i + 1, &maps[i].tail,
                 sizeof(maps[i].tail), VRING_DESC_F_WRITE);
        queue_add(&requestq, 2 * i);
    }
}

static void ring(uint8_t *ram)
{
    unsigned int i, bad;

    post_maps(ram);
    begin();
    queue_kick(&requestq);
    bad = queue_wait(&requestq, 64) ? 64 : 0;
    end("one kick, 2 GiB of pages");
    for ( i = 0; i < 64; i++ )
        bad += maps[i].tail.status != VIRTIO_IOMMU_S_OK;
    is(bad, 0, "slices: all 64 MAPs succeed");
}

static uint64_t reset_us;
static uint32_t reset_status;

static void reset_later(void *arg)
{
    uint64_t start;

    (void)arg;
    sleep_us(20000);
    start = now_us();
    reg_write(VIRTIO_MMIO_STATUS, 0);
    reset_status = reg_read(VIRTIO_MMIO_STATUS);
    reset_us = now_us() - start;
}

/*
 * The other vCPU resets the device in the middle of a MAP.  On one CPU it has
 * to wait for this one, which was interrupted for it.
 */
static void reset_meanwhile(uint8_t *ram)
{
    uint64_t start = now_us();

    post_maps(ram);
    cpu_run(1, reset_later, NULL);
    queue_kick(&requestq);
    cpu_wait(1);
    print("# reset in the middle: %lu us of %lu us\n", reset_us,
          now_us() - start);
    is(reset_status, 0, "slices: a reset from the other vCPU in the middle");
    ok(reset_us < 10 * GAP_MAX, "slices: does not wait for the whole MAP");
    ok(device_start(device_features(), 128) &&
       attach(1, edu[0].endpoint) == VIRTIO_IOMMU_S_OK,
       "slices: and the device works again");
}

/*
 * An UNMAP, and at once so much to do that Xen has the CPU for much longer than
 * the window: the flush by age comes all the same.
 */
static void window(uint8_t *ram, uint64_t gap_us, bool reached)
{
    uint64_t addr = IOVA - PAGE, *page = memory(PAGE, PAGE), unmapped_us, us;
    unsigned int i;

    if ( !page || map(1, addr, page, PAGE, WRITE) ||
         !dma_write(&edu[0], addr, page) )
        bail("no page that is mapped and reached");
    in_flight(&edu[0], addr, page, gap_us);
    unmapped_us = now_us();
    unmap(1, addr, PAGE);
    unmapped_us = now_us() - unmapped_us;
    post_maps(ram);
    us = now_us();
    queue_kick(&requestq);
    i = queue_wait(&requestq, 64);
    us = now_us() - us;
    while ( edu_busy(&edu[0]) )
        continue;
    print("# UNMAP in %lu us, then one kick of %lu us\n", unmapped_us, us);
    ok(!i && us > 2 * GAP_AFTER, "slices: the CPU is Xen's for a long time");
    is(ACCESS(*page) == PATTERN, reached,
       "slices: meanwhile, %lu ms after an UNMAP, the page is %s",
       gap_us / 1000, reached ? "still reached" : "not reached");
    events_drop();
    unmap_range(1, 0, CONFIG(input_range.end));
}

/* A transfer of 4 KiB into nothing is a fault for each of its words. */
static void flood(void)
{
    struct virtio_iommu_fault f;
    unsigned int i;

    begin();
    for ( i = 0; i < 20; i++ )
    {
        edu_start(&edu[0], false, IOVA, 0, PAGE);
        edu_wait(&edu[0]);
    }
    end("thousands of faults");
    events_drop();
    /* The stream is cut off for 10 s by now. */
    edu_start(&edu[0], false, IOVA + PAGE, 0, 8);
    edu_wait(&edu[0]);
    ok(!event_get(&f, 100000), "slices: a stream that floods is cut off");
    sleep_us(11000000);
    edu_start(&edu[0], false, IOVA + PAGE, 0, 8);
    edu_wait(&edu[0]);
    ok(event_get(&f, 100000) && f.address == IOVA + PAGE,
       "slices: and its faults are reported again later");
}

static void run(void)
{
    uint8_t *ram;
    int rc;

    if ( nr_cpus < 2 )
        bail("this suite needs two vCPUs");
    pci_init();
    if ( !tree.viommu.size || !nr_edu )
        bail("this suite needs a virtio-iommu and an edu device");
    strict = option("strict", 1);
    queues_alloc();
    ram = memory(32 * MB, 2 * MB);
    if ( !ram || !device_start(device_features(), 128) )
        bail("no memory, or no device");
    edu_load(&edu[0]);
    attach(1, edu[0].endpoint);

    reset_meanwhile(ram);
    ring(ram);

    begin();
    rc = unmap_range(1, 0, CONFIG(input_range.end));
    end("UNMAP of everything");
    is(rc, VIRTIO_IOMMU_S_OK, "slices: it succeeds");

    ring(ram);
    begin();
    rc = detach(1, edu[0].endpoint);
    end("DETACH, which destroys the domain");
    is(rc, VIRTIO_IOMMU_S_OK, "slices: it succeeds");

    attach(1, edu[0].endpoint);
    window(ram, GAP_IN, !strict);
    window(ram, GAP_AFTER, false);
    flood();
    ring(ram);
    begin();
    reg_write(VIRTIO_MMIO_STATUS, 0);
    rc = reg_read(VIRTIO_MMIO_STATUS);
    end("reset");
    is(rc, 0, "slices: it is done when the write returns");
}

const struct suite suite_slices = { "slices", run };

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * tab-width: 4
 * indent-tabs-mode: nil
 * End:
 */
