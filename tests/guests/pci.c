/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * PCI as far as needed: find QEMU's edu devices, give them an address.
 *
 * endpoint=RID on the command line: the function of that number is used instead
 * of them.  Nothing drives it, so this is for suites that need no DMA, on
 * machines that have no edu.
 */

#include "viommu.h"

#include <public/xen.h>
#include <public/physdev.h>
#include <public/errno.h>

#define PCI_ID              0x00
#define PCI_COMMAND         0x04
#define PCI_CLASS           0x08
#define PCI_HEADER          0x0e
#define PCI_BAR0            0x10
#define PCI_BUSES           0x18
#define PCI_BRIDGE_MEMORY   0x20
#define PCI_BRIDGE_PREFETCH 0x24
#define PCI_ON              0x6     /* memory space, bus master */
#define EDU_ID              0x11e81234
#define NO_ENDPOINT         (~0UL)

#define EDU_REG_SRC         0x80
#define EDU_REG_DST         0x88
#define EDU_REG_COUNT       0x90
#define EDU_REG_CMD         0x98
#define EDU_CMD_RUN         1
#define EDU_CMD_TO_MEMORY   2
#define EDU_BUFFER          0x40000

struct edu edu[4];
unsigned int nr_edu;
static uint64_t window;             /* next free address of the bridge's */
static unsigned int last_bus;

static uintptr_t cfg(uint16_t rid, unsigned int reg)
{
    return tree.ecam.base + ((uint64_t)rid << 12) + reg;
}

int pci_announce(uint16_t rid, bool add)
{
    /* Both commands begin with the same fields. */
    struct physdev_pci_device_add arg = {
        .seg = tree.pci_segment,
        .bus = rid >> 8,
        .devfn = rid,
    };

    if ( !tree.dom0 )
        return 0;

    return hypercall(__HYPERVISOR_physdev_op,
                     add ? PHYSDEVOP_pci_device_add
                         : PHYSDEVOP_pci_device_remove, (uint64_t)&arg, 0);
}

static void edu_found(uint16_t rid)
{
    struct edu *e = &edu[nr_edu];
    uint32_t size;

    if ( nr_edu == ARRAY_SIZE(edu) )
        return;

    mmio_write32(cfg(rid, PCI_BAR0), ~0U);
    size = -(mmio_read32(cfg(rid, PCI_BAR0)) & ~0xfU);
    window = (window + size - 1) & -(uint64_t)size;
    mmio_write32(cfg(rid, PCI_BAR0), window);
    mmio_write(cfg(rid, PCI_COMMAND), PCI_ON, 2);

    e->rid = rid;
    e->endpoint = rid + tree.iommu_base;
    e->regs = window;
    window += size;
    nr_edu++;
}

static void scan(unsigned int bus);

/* An endpoint that nothing drives. */
static void endpoint_given(uint16_t rid)
{
    edu[0].rid = rid;
    edu[0].endpoint = rid + tree.iommu_base;
    nr_edu = 1;
}

/* A root port: its bus, and a window of whole megabytes. */
static void port_found(uint16_t rid)
{
    unsigned int bus = ++last_bus;
    uint64_t first;

    window = (window + MB - 1) & -MB;
    first = window;
    mmio_write32(cfg(rid, PCI_BUSES), 0xff << 16 | bus << 8 | rid >> 8);
    scan(bus);
    mmio_write32(cfg(rid, PCI_BUSES), last_bus << 16 | bus << 8 | rid >> 8);
    window = (window + MB - 1) & -MB;
    if ( window == first )
        return;
    mmio_write32(cfg(rid, PCI_BRIDGE_MEMORY),
                 (first >> 16 & 0xfff0) | ((window - MB) & 0xfff00000));
    mmio_write32(cfg(rid, PCI_BRIDGE_PREFETCH), 0xfff0);    /* closed */
    mmio_write(cfg(rid, PCI_COMMAND), PCI_ON, 2);
}

static void scan(unsigned int bus)
{
    unsigned int devfn;

    for ( devfn = 0; devfn < 256; devfn++ )
    {
        uint16_t rid = bus << 8 | devfn;
        uint32_t id = mmio_read32(cfg(rid, PCI_ID));
        int rc;

        if ( id == ~0U || cfg(rid, 0) == tree.edu_config.base )
        {
            if ( !(devfn & 7) )
                devfn |= 7;         /* no function 0, no others */
            continue;
        }
        if ( mmio_read32(cfg(rid, PCI_CLASS)) >> 16 == 0x0604 )
            port_found(rid);
        else if ( id == EDU_ID )
            edu_found(rid);
        rc = pci_announce(rid, true);
        /* Only dom0 is asked for them. */
        if ( rc && rc != -XEN_EPERM )
            bail("Xen refuses PCI function %#x: %d", rid, rc);
        if ( !(devfn & 7) && !(mmio_read(cfg(rid, PCI_HEADER), 1) & 0x80) )
            devfn |= 7;
    }
}

/* The one that is no PCI device for Xen. */
static void platform_found(void)
{
    struct edu *e = &edu[nr_edu++];

    if ( mmio_read32(tree.edu_config.base + PCI_ID) != EDU_ID )
        bail("the platform device is no edu");
    mmio_write32(tree.edu_config.base + PCI_BAR0, tree.edu_bar.base);
    mmio_write(tree.edu_config.base + PCI_COMMAND, PCI_ON, 2);
    e->endpoint = tree.edu_endpoint;
    e->regs = tree.edu_bar.base;
}

void pci_init(void)
{
    if ( nr_edu )
        return;
    if ( option("endpoint", NO_ENDPOINT) != NO_ENDPOINT )
    {
        endpoint_given(option("endpoint", NO_ENDPOINT));
        return;
    }
    if ( tree.edu_bar.size && option("platform_first", 0) )
        platform_found();
    if ( tree.ecam.size && tree.pci_window.size )
    {
        window = tree.pci_window.base;
        scan(0);
    }
    if ( tree.edu_bar.size && !option("platform_first", 0) )
        platform_found();
}

void edu_start(const struct edu *e, bool to_memory, uint64_t addr,
               unsigned int offset, unsigned int size)
{
    dsb();
    mmio_write(e->regs + EDU_REG_SRC,
               to_memory ? EDU_BUFFER + offset : addr, 8);
    mmio_write(e->regs + EDU_REG_DST,
               to_memory ? addr : EDU_BUFFER + offset, 8);
    mmio_write(e->regs + EDU_REG_COUNT, size, 8);
    mmio_write(e->regs + EDU_REG_CMD,
               EDU_CMD_RUN | (to_memory ? EDU_CMD_TO_MEMORY : 0), 8);
}

bool edu_busy(const struct edu *e)
{
    /* Nothing to drive is never idle. */
    return !e->regs || mmio_read(e->regs + EDU_REG_CMD, 8) & EDU_CMD_RUN;
}

void edu_wait(const struct edu *e)
{
    uint64_t end = now_us() + 50 * EDU_US;

    for ( sleep_us(EDU_US - 2000); edu_busy(e); sleep_us(500) )
        if ( now_us() > end )
            bail("edu doesn't finish its transfer");
    dsb();
}

#define LOAD_DOMAIN 999
#define LOAD_IOVA   0x10000UL

void edu_load(const struct edu *e)
{
    static uint64_t *page;

    if ( !page )
        page = memory(PAGE, PAGE);
    *page = PATTERN;
    if ( attach(LOAD_DOMAIN, e->endpoint) ||
         map(LOAD_DOMAIN, LOAD_IOVA, page, PAGE, READ) )
        bail("edu can't be attached and mapped to get its pattern");
    edu_start(e, false, LOAD_IOVA, 0, 8);
    edu_wait(e);
    if ( detach(LOAD_DOMAIN, e->endpoint) )
        bail("edu can't be detached again");
}

bool dma_write(const struct edu *e, uint64_t addr, uint64_t *target)
{
    ACCESS(*target) = ~PATTERN;
    edu_start(e, true, addr, 0, 8);
    edu_wait(e);

    return ACCESS(*target) == PATTERN;
}

uint64_t dma_read(const struct edu *e, uint64_t addr, uint64_t scratch_at,
                  uint64_t *scratch)
{
    edu_start(e, false, addr, 8, 8);
    edu_wait(e);
    ACCESS(*scratch) = ~PATTERN;
    edu_start(e, true, scratch_at, 8, 8);
    edu_wait(e);

    return ACCESS(*scratch);
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
