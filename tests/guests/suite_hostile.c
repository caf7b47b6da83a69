/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A guest that attacks the device: seed=N cases=N, or seconds=N.
 *
 * Each round begins with a seed of its own, the first with seed=, so that a
 * round is repeated by its number: seed=(first + round) cases=256.  With more
 * than one CPU what meets what is chance, but under QEMU's -icount even that
 * repeats.
 */

#include "conformance.h"
#include "hostile.h"

#define ROUND_CASES 256
#define REPORT      64      /* rounds */

static bool stop;
static struct rng disturber[MAX_CPUS];
static uint64_t disturbed[MAX_CPUS];

static void disturb(void *arg)
{
    unsigned int cpu = (uint64_t)arg;

    while ( !ACCESS(stop) )
    {
        hostile_disturb(&disturber[cpu]);
        disturbed[cpu]++;
    }
}

static void round_run(uint64_t seed, uint64_t *longest)
{
    struct rng r = { seed * 0x100000001b3UL };
    unsigned int i, cpu;

    hostile_level = seed % NR_LEVELS;
    hostile_start(&r);
    for ( i = 0; i < nr_edu; i++ )
        pci_announce(edu[i].rid, true);     /* -EEXIST if it is there */
    ACCESS(stop) = false;
    for ( cpu = 1; cpu < nr_cpus; cpu++ )
    {
        disturber[cpu].state = rng_next(&r);
        cpu_run(cpu, disturb, (void *)(uint64_t)cpu);
    }
    for ( i = 0; i < ROUND_CASES; i++ )
    {
        uint64_t start = now_us(), took;

        hostile_case(&r);
        took = now_us() - start;
        if ( took > *longest )
            *longest = took;
    }
    ACCESS(stop) = true;
    for ( cpu = 1; cpu < nr_cpus; cpu++ )
        cpu_wait(cpu);
}

/* Whatever was done to it, a reset makes it a working device. */
static bool recovers(void)
{
    unsigned int i;

    for ( i = 0; i < nr_edu; i++ )
        pci_announce(edu[i].rid, true);
    if ( !device_reset() || !device_start(device_features(), 64) ||
         !is_alive() )
        return false;

    return attach(1, edu[0].endpoint) == VIRTIO_IOMMU_S_OK &&
           map(1, 0x40000000, arena, PAGE, READ) == VIRTIO_IOMMU_S_OK &&
           map(1, 0x40000000, arena, PAGE, READ) == VIRTIO_IOMMU_S_INVAL &&
           detach(1, edu[0].endpoint) == VIRTIO_IOMMU_S_OK;
}

static void run(void)
{
    uint64_t seed = option("seed", 1), cases = option("cases", 20000),
             seconds = option("seconds", 0), start = now_us(), longest = 0,
             boot_bypass, others = 0;
    unsigned int round = 0, bad = 0, i;

    if ( !tree.viommu.size )
        bail("the device tree has no virtio-iommu");
    pci_init();
    if ( !nr_edu )
        bail("this suite needs an edu device, or endpoint=RID");
    queues_alloc();
    boot_bypass = CONFIG(bypass);
    /* With room before and after it for what begins or ends inside. */
    arena = (uint8_t *)memory((ARENA_PAGES + 4) * PAGE, PAGE) + 2 * PAGE;

    for ( ; seconds ? now_us() - start < seconds * 1000000
                    : round * ROUND_CASES < cases; round++ )
    {
        if ( round % REPORT == 0 )
            print("# round %u, seed=%lu\n", round, seed + round);
        round_run(seed + round, &longest);
        if ( recovers() )
            continue;
        print("# seed=%lu: the device does not recover, status %#x\n",
              seed + round, reg_read(VIRTIO_MMIO_STATUS));
        if ( ++bad == 10 )
            break;
    }
    for ( i = 1; i < nr_cpus; i++ )
        others += disturbed[i];
    print("# %u cases in %lu ms, %lu disturbances by %u CPUs\n",
          round * ROUND_CASES, (now_us() - start) / 1000, others, nr_cpus - 1);
    print("# the longest case took %lu us\n", longest);
    ok(round && !bad, "hostile: the device recovers after each round");
    config_write(offsetof(struct virtio_iommu_config, bypass), boot_bypass, 1);
    ok(device_reset(), "reset at the end");
}

const struct suite suite_hostile = { "hostile", run };

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * tab-width: 4
 * indent-tabs-mode: nil
 * End:
 */
