/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What devices really reach, with edu as the witness.
 *
 * QEMU's SMMU keeps a translation until it is told to drop it, which the lazy
 * run shows: there a write after UNMAP still arrives in the old page.  So the
 * strict run, with the same steps, proves something.
 */

#include "dma.h"

const struct edu *ep_a = &edu[0], *ep_b = &edu[1];
bool strict;
uint64_t iova = 0x1234000000UL;

static uint64_t changed_at;

uint64_t *page_new(unsigned int nr)
{
    uint64_t *p = memory(nr * PAGE, PAGE);

    if ( !p )
        bail("no memory left");

    return p;
}

void in_flight(const struct edu *e, uint64_t addr, uint64_t *target,
               uint64_t gap_us)
{
    uint64_t start;

    ACCESS(*target) = ~PATTERN;
    edu_start(e, true, addr, 0, 8);
    /* edu counts whole milliseconds, so it may come one earlier. */
    start = now_us();
    sleep_until(start + EDU_US - 1000 - gap_us);
    changed_at = now_us();
}

bool in_flight_arrived(const struct edu *e, uint64_t *target)
{
    bool early = !edu_busy(e);
    uint64_t end;

    while ( edu_busy(e) )
        sleep_us(100);
    end = now_us();
    if ( early )
        ok(false, "(the transfer came before the change)");
    else if ( !strict && end - changed_at > 9000 &&
              end - changed_at < 11000 )
        ok(false, "(the transfer came %lu us after the change)",
           end - changed_at);

    return ACCESS(*target) == PATTERN;
}

void fault_is(const struct edu *e, uint64_t addr, bool write, unsigned int why,
              const char *what)
{
    struct virtio_iommu_fault f;

    if ( !ok(event_get(&f, 100000), "%s: reported", what) )
        return;
    is(f.endpoint, e->endpoint, "%s: endpoint", what);
    is(f.flags, VIRTIO_IOMMU_FAULT_F_ADDRESS |
                (write ? VIRTIO_IOMMU_FAULT_F_WRITE
                       : VIRTIO_IOMMU_FAULT_F_READ), "%s: flags", what);
    is(f.address, addr, "%s: address", what);
    is(f.reason, why, "%s: reason", what);
    ok(!(f.reserved[0] | f.reserved[1] | f.reserved[2] | f.reserved2[0] |
         f.reserved2[1] | f.reserved2[2] | f.reserved2[3]),
       "%s: reserved fields are 0", what);
}

void start_over(void)
{
    device_restart();
}

static void run(void)
{
    if ( !tree.viommu.size )
        bail("the device tree has no virtio-iommu");
    pci_init();
    if ( nr_edu < 2 )
        bail("this suite needs two edu devices, there are %u", nr_edu);
    strict = option("strict", 1);
    queues_alloc();
    device_restart();
    edu_load(ep_a);
    edu_load(ep_b);

    dma_access();
    dma_unmap();
    dma_attach();
    dma_blocks();
    dma_p2m();
    ok(device_reset(), "reset at the end");
}

const struct suite suite_dma = { "dma", run };

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * tab-width: 4
 * indent-tabs-mode: nil
 * End:
 */
