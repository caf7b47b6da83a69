/* SPDX-License-Identifier: GPL-2.0-only */
/* The device tree: where everything is. */

#include <libfdt.h>

#include "guest.h"

struct tree tree;
const char *cmdline = "";

/* The value of @name= on the command line, NULL if it isn't there. */
static const char *find_option(const char *name)
{
    size_t len = strlen(name);
    const char *s = cmdline;

    for ( ; ; s++ )
    {
        if ( !strncmp(s, name, len) && s[len] == '=' )
            return s + len + 1;
        s = strchr(s, ' ');
        if ( !s )
            return NULL;
    }
}

uint64_t option(const char *name, uint64_t otherwise)
{
    const char *v = find_option(name);

    return v ? parse_number(v) : otherwise;
}

bool option_has(const char *name, const char *value)
{
    size_t len = strlen(value);
    const char *v = find_option(name);

    for ( ; v; v++ )
    {
        if ( !strncmp(v, value, len) &&
             (!v[len] || v[len] == ' ' || v[len] == ',') )
            return true;
        while ( *v && *v != ' ' && *v != ',' )
            v++;
        if ( *v != ',' )
            break;
    }

    return false;
}

static uint64_t cells(const fdt32_t *p, int n)
{
    uint64_t v = 0;

    while ( n-- )
        v = v << 32 | fdt32_ld(p++);

    return v;
}

/* Entry @i of reg of a child of the root. */
static bool get_reg(const void *fdt, int node, unsigned int i,
                    struct region *r)
{
    int ac = fdt_address_cells(fdt, 0), sc = fdt_size_cells(fdt, 0), len;
    const fdt32_t *reg = fdt_getprop(fdt, node, "reg", &len);

    if ( !reg || len < (int)((i + 1) * (ac + sc) * 4) )
        return false;
    reg += i * (ac + sc);
    r->base = cells(reg, ac);
    r->size = cells(reg + ac, sc);

    return true;
}

static void read_memory(const void *fdt)
{
    int node, i;

    fdt_for_each_subnode ( node, fdt, 0 )
    {
        const char *type = fdt_getprop(fdt, node, "device_type", NULL);

        if ( !type || strcmp(type, "memory") )
            continue;
        for ( i = 0; tree.nr_memory < ARRAY_SIZE(tree.memory) &&
                     get_reg(fdt, node, i, &tree.memory[tree.nr_memory]); i++ )
            tree.nr_memory++;
    }
}

static void read_cpus(const void *fdt)
{
    int cpus = fdt_path_offset(fdt, "/cpus"), node;

    fdt_for_each_subnode ( node, fdt, cpus )
    {
        const char *type = fdt_getprop(fdt, node, "device_type", NULL);
        int len;
        const fdt32_t *reg = fdt_getprop(fdt, node, "reg", &len);

        if ( type && !strcmp(type, "cpu") && reg && tree.nr_cpus < MAX_CPUS )
            tree.cpu[tree.nr_cpus++] = cells(reg, len / 4);
    }
}

static void read_viommu(const void *fdt)
{
    int node;

    for ( node = fdt_node_offset_by_compatible(fdt, -1, "virtio,mmio");
          node >= 0;
          node = fdt_node_offset_by_compatible(fdt, node, "virtio,mmio") )
    {
        const fdt32_t *irq;
        int len;

        if ( !fdt_getprop(fdt, node, "#iommu-cells", NULL) )
            continue;
        irq = fdt_getprop(fdt, node, "interrupts", &len);
        if ( get_reg(fdt, node, 0, &tree.viommu) && irq && len >= 12 )
            tree.viommu_intid = fdt32_ld(irq + 1) + (fdt32_ld(irq) ? 16 : 32);
        return;
    }
}

static void read_pci(const void *fdt)
{
    int node = fdt_node_offset_by_compatible(fdt, -1, "pci-host-ecam-generic");
    int pac = fdt_address_cells(fdt, 0), len;
    const fdt32_t *p;

    if ( node < 0 )
        return;
    get_reg(fdt, node, 0, &tree.ecam);

    /* Child address of 3 cells, parent's, size of 2. */
    p = fdt_getprop(fdt, node, "ranges", &len);
    for ( ; p && len >= (3 + pac + 2) * 4; len -= (3 + pac + 2) * 4 )
    {
        /* 32-bit memory, not prefetchable. */
        if ( (fdt32_ld(p) & 0x43000000) == 0x02000000 )
        {
            tree.pci_window.base = cells(p + 3, pac);
            tree.pci_window.size = cells(p + 3 + pac, 2);
        }
        p += 3 + pac + 2;
    }

    p = fdt_getprop(fdt, node, "linux,pci-domain", &len);
    if ( p )
        tree.pci_segment = fdt32_ld(p);

    p = fdt_getprop(fdt, node, "iommu-map", &len);
    if ( p && len >= 16 )
    {
        tree.has_iommu_map = true;
        tree.iommu_base = fdt32_ld(p + 2) - fdt32_ld(p);
    }
}

/*
 * An edu without a bridge: its BAR, its configuration space, and its stream.
 * For the SMMU it is a device like any other that isn't on a PCI bus.
 */
static void read_platform(const void *fdt)
{
    int node = fdt_node_offset_by_compatible(fdt, -1, "test,edu"), len;
    const fdt32_t *p;

    if ( node < 0 || !get_reg(fdt, node, 1, &tree.edu_config) ||
         !get_reg(fdt, node, 0, &tree.edu_bar) )
        return;
    p = fdt_getprop(fdt, node, "iommus", &len);
    if ( p && len == 8 )
        tree.edu_endpoint = fdt32_ld(p + 1);
}

void tree_read(const void *fdt)
{
    int node = fdt_path_offset(fdt, "/chosen");
    const char *args = fdt_getprop(fdt, node, "bootargs", NULL);

    if ( args )
        cmdline = args;

    read_memory(fdt);
    read_cpus(fdt);
    node = fdt_node_offset_by_compatible(fdt, -1, "arm,gic-v3");
    if ( node >= 0 )
    {
        get_reg(fdt, node, 0, &tree.gicd);
        get_reg(fdt, node, 1, &tree.gicr);
    }
    tree.xen = fdt_node_offset_by_compatible(fdt, -1, "xen,xen") >= 0;
    node = fdt_node_offset_by_compatible(fdt, -1, "arm,pl011");
    if ( node >= 0 )
        get_reg(fdt, node, 0, &tree.uart);
    read_viommu(fdt);
    read_pci(fdt);
    read_platform(fdt);
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
