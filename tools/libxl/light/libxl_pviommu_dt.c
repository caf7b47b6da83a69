/* SPDX-License-Identifier: LGPL-2.1-only */
/* The guest's device tree: see libxl_pviommu.h. */

#include "libxl_osdeps.h"

#include "libxl_internal.h"

#include <libfdt.h>
#include <xen/device_tree_defs.h>
#include <xen/pviommu.h>

/* After those that libxl uses already. */
#define PHANDLE_VIOMMU      (GUEST_PHANDLE_IOMMU + 1)

/* Room for iommu-map, four cells, and its name, with a lot to spare. */
#define ROOM_PER_DEVICE     256

#define PASSTHROUGH         "/passthrough"
/* What Xen's documents use to name the host's node from a partial tree. */
#define PROP_HOST_PATH      "xen,path"

static int fdt_failed(libxl__gc *gc, const char *what, int r)
{
    LOG(ERROR, "iommu: partial device tree: %s: %s", what, fdt_strerror(r));
    return ERROR_FAIL;
}

/* Is the node for the host's node at path?  It says so, or has its name. */
static bool node_is_for(const void *fdt, int node, const char *path)
{
    int len;
    const char *p = fdt_getprop(fdt, node, PROP_HOST_PATH, &len);

    if (p)
        return len == strlen(path) + 1 && !memcmp(p, path, len);

    p = fdt_get_name(fdt, node, NULL);
    return p && !strcmp(p, strrchr(path, '/') + 1);
}

/* The one node below /passthrough that is for the host's node at path. */
static int find_node(libxl__gc *gc, const void *fdt, const char *path,
                     int *found)
{
    int node, depth = 0, top = fdt_path_offset(fdt, PASSTHROUGH);

    if (!strchr(path, '/')) {
        LOG(ERROR, "iommu: dtdev %s: aliases of the host's device tree are not "
            "known here: give the path of the node", path);
        return ERROR_INVAL;
    }

    *found = -1;
    for (node = top < 0 ? top : fdt_next_node(fdt, top, &depth);
         node >= 0 && depth > 0; node = fdt_next_node(fdt, node, &depth)) {
        if (!node_is_for(fdt, node, path)) continue;
        if (*found >= 0) {
            LOG(ERROR, "iommu: dtdev %s: two nodes in device_tree are for it: "
                "tell them apart by " PROP_HOST_PATH, path);
            return ERROR_INVAL;
        }
        *found = node;
    }
    if (*found >= 0) return 0;

    LOG(ERROR, "iommu: dtdev %s: no node in device_tree below " PASSTHROUGH
        " is for it: call it \"%s\", or give it " PROP_HOST_PATH " = \"%s\"",
        path, strrchr(path, '/') + 1, path);
    return ERROR_INVAL;
}

static bool is_bridge(const void *fdt, int node)
{
    int len;
    const char *type = fdt_getprop(fdt, node, "device_type", &len);

    return type && len == sizeof("pci") && !memcmp(type, "pci", len);
}

/* Put the virtio-iommu in front of one device. */
static int patch_device(libxl__gc *gc, void *fdt, const char *path)
{
    struct xen_pviommu_get_device dev;
    const char *prop;
    uint32_t cells[4];
    int node, nr, r, rc;

    rc = libxl__pviommu_device(gc, path, &dev);
    rc = rc ?: find_node(gc, fdt, path, &node);
    if (rc) return rc;

    if (is_bridge(fdt, node) != (dev.kind == XEN_PVIOMMU_EP_bridge)) {
        LOG(ERROR, "iommu: dtdev %s: the host's node is %s PCI host bridge, "
            "the one in device_tree is%s (device_type)", path,
            dev.kind == XEN_PVIOMMU_EP_bridge ? "a" : "no",
            dev.kind == XEN_PVIOMMU_EP_bridge ? " not" : "");
        return ERROR_INVAL;
    }

    if (dev.kind == XEN_PVIOMMU_EP_bridge) {
        prop = "iommu-map";
        cells[0] = cpu_to_fdt32(0);
        cells[1] = cpu_to_fdt32(PHANDLE_VIOMMU);
        cells[2] = cpu_to_fdt32(dev.id);
        cells[3] = cpu_to_fdt32(dev.nr_ids);
        nr = 4;
    } else {
        prop = "iommus";
        cells[0] = cpu_to_fdt32(PHANDLE_VIOMMU);
        cells[1] = cpu_to_fdt32(dev.id);
        nr = 2;
    }

    if (fdt_getprop(fdt, node, "iommu-map", NULL) ||
        fdt_getprop(fdt, node, "iommus", NULL)) {
        LOG(ERROR, "iommu: dtdev %s: its node in device_tree has iommu-map or "
            "iommus: remove it, xl adds what is right", path);
        return ERROR_INVAL;
    }

    r = fdt_setprop(fdt, node, prop, cells, nr * sizeof(*cells));
    return r ? fdt_failed(gc, prop, r) : 0;
}

int libxl__pviommu_patch_tree(libxl__gc *gc,
                              const libxl_domain_config *d_config,
                              void **pfdt)
{
    void *fdt;
    size_t size;
    int i, r, rc;

    if (d_config->b_info.arch_arm.iommu.type != LIBXL_IOMMU_TYPE_VIRTIO ||
        !d_config->num_dtdevs)
        return 0;

    if (!*pfdt) {
        LOG(ERROR, "iommu: dtdev needs device_tree: the guest finds its "
            "devices, and their IOMMU, by a node of it");
        return ERROR_INVAL;
    }

    size = fdt_totalsize(*pfdt) + d_config->num_dtdevs * ROOM_PER_DEVICE;
    fdt = libxl__malloc(gc, size);
    r = fdt_open_into(*pfdt, fdt, size);
    if (r) return fdt_failed(gc, "copy", r);

    if (fdt_node_offset_by_phandle(fdt, PHANDLE_VIOMMU) >= 0) {
        LOG(ERROR, "iommu: device_tree uses phandle %u, which is the "
            "virtio-iommu's: use another", PHANDLE_VIOMMU);
        return ERROR_INVAL;
    }

    for (i = 0; i < d_config->num_dtdevs; i++) {
        rc = patch_device(gc, fdt, d_config->dtdevs[i].path);
        if (rc) return rc;
    }

    *pfdt = fdt;
    return 0;
}

int libxl__pviommu_node(libxl__gc *gc, void *fdt,
                        const libxl_domain_build_info *b_info)
{
    const libxl_arm_iommu *iommu = &b_info->arch_arm.iommu;
    uint64_t reg[2] = {
        cpu_to_fdt64(iommu->mmio_base), cpu_to_fdt64(XEN_PVIOMMU_MMIO_SIZE),
    };
    uint32_t irq[3] = {
        cpu_to_fdt32(0),                /* SPI */
        cpu_to_fdt32(iommu->irq - 32),
        cpu_to_fdt32(1),                /* rising edge */
    };
    int r;

    if (iommu->type != LIBXL_IOMMU_TYPE_VIRTIO) return 0;

    BUILD_BUG_ON(GUEST_ROOT_ADDRESS_CELLS != 2 || GUEST_ROOT_SIZE_CELLS != 2);

    r = fdt_begin_node(fdt, GCSPRINTF("iommu@%"PRIx64, iommu->mmio_base));
    r = r ?: fdt_property_string(fdt, "compatible", "virtio,mmio");
    r = r ?: fdt_property(fdt, "reg", reg, sizeof(reg));
    r = r ?: fdt_property(fdt, "interrupts", irq, sizeof(irq));
    r = r ?: fdt_property_cell(fdt, "interrupt-parent", GUEST_PHANDLE_GIC);
    r = r ?: fdt_property(fdt, "dma-coherent", NULL, 0);
    r = r ?: fdt_property_cell(fdt, "#iommu-cells", 1);
    r = r ?: fdt_property_cell(fdt, "phandle", PHANDLE_VIOMMU);
    r = r ?: fdt_end_node(fdt);

    return r;
}

/*
 * Local variables:
 * mode: C
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
