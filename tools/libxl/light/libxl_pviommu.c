/* SPDX-License-Identifier: LGPL-2.1-only */
/* See libxl_pviommu.h. */

#include "libxl_osdeps.h"

#include "libxl_internal.h"

#include <xen/pviommu.h>

/* Below this a context can't be made; above it nothing is sensible. */
#define PAGE_KB         ((unsigned int)XC_PAGE_SIZE >> 10)
#define POOL_MIN_KB     (XEN_PVIOMMU_POOL_MIN * PAGE_KB)
#define POOL_MAX_KB     (UINT64_C(4) << 30)

/* Entries of a list fetched at a time. */
#define LIST_ROOM       64

static bool wanted(const libxl_domain_build_info *b_info)
{
    const libxl_arm_iommu *iommu = &b_info->arch_arm.iommu;

    return iommu->type != LIBXL_IOMMU_TYPE_NONE ||
           !libxl_defbool_is_default(iommu->strict) ||
           !libxl_defbool_is_default(iommu->bypass) ||
           iommu->pool_memkb != LIBXL_MEMKB_DEFAULT;
}

static bool is_virtio(const libxl_domain_build_info *b_info)
{
    return b_info->arch_arm.iommu.type == LIBXL_IOMMU_TYPE_VIRTIO;
}

/* Errors of all operations.  Logs, unless the caller can go on. */
static int failed(libxl__gc *gc, uint32_t domid, const char *what, int err)
{
    switch (err) {
    case ENOSYS:
        LOGD(ERROR, domid, "iommu: %s: this Xen does not have the SMMUv3 "
             "driver with virtio-iommu", what);
        return ERROR_NI;
    case EACCES:
        LOGD(ERROR, domid, "iommu: %s: Xen has another version of the "
             "interface than libxl (version %u): rebuild the tools from "
             "Xen's tree", what, XEN_PVIOMMU_VERSION);
        return ERROR_VERSION;
    case ENODEV:
        LOGD(DEBUG, domid, "iommu: %s: no SMMUv3, or not for this domain",
             what);
        return ERROR_NOTFOUND;
    case ESRCH:
        LOGD(DEBUG, domid, "iommu: %s: no such domain", what);
        return ERROR_DOMAIN_NOTFOUND;
    default:
        LOGEVD(ERROR, err, domid, "iommu: %s", what);
        return ERROR_FAIL;
    }
}

static int check_none(libxl__gc *gc, libxl_arm_iommu *iommu, uint32_t domid)
{
    if (!libxl_defbool_is_default(iommu->bypass) &&
        !libxl_defbool_val(iommu->bypass)) {
        LOGD(ERROR, domid, "iommu: bypass=0 needs type=virtio: without a "
             "virtio-iommu the guest can't attach its devices");
        return ERROR_INVAL;
    }
    if (iommu->pool_memkb != LIBXL_MEMKB_DEFAULT) {
        LOGD(ERROR, domid, "iommu: pool needs type=virtio: it is for what the "
             "guest maps there");
        return ERROR_INVAL;
    }
    libxl_defbool_setdefault(&iommu->strict, true);

    return 0;
}

/* Before anything is made of a domain that can't be. */
static int check_devices(libxl__gc *gc, const libxl_domain_config *d_config,
                         uint32_t domid)
{
    int i, j;

    for (i = 0; i < d_config->num_dtdevs; i++) {
        const char *path = d_config->dtdevs[i].path;

        if (!path || path[0] != '/') {
            LOGD(ERROR, domid, "iommu: dtdev \"%s\": not the path of a node in "
                 "the host's device tree", path ?: "");
            return ERROR_INVAL;
        }
        for (j = 0; j < i; j++)
            if (!strcmp(path, d_config->dtdevs[j].path)) {
                LOGD(ERROR, domid, "iommu: dtdev %s is given twice", path);
                return ERROR_INVAL;
            }
    }

    return 0;
}

/* All of the pool is taken from Xen's free memory when the domain is made. */
static int check_memory(libxl__gc *gc, const libxl_arm_iommu *iommu,
                        uint32_t domid)
{
    uint64_t free_kb;

    if (libxl_get_free_memory(CTX, &free_kb) || iommu->pool_memkb <= free_kb)
        return 0;

    LOGD(ERROR, domid, "iommu: pool of %"PRIu64" KiB, and Xen has %"PRIu64" KiB "
         "of free memory", iommu->pool_memkb, free_kb);

    return ERROR_NOMEM;
}

static int check_virtio(libxl__gc *gc, const libxl_domain_config *d_config,
                        libxl_arm_iommu *iommu, uint32_t domid)
{
    if (d_config->num_pcidevs) {
        /* libxl makes the virtual host bridge of these, without iommu-map. */
        LOGD(ERROR, domid, "iommu: type=virtio is not possible with pci=: pass "
             "the host bridge through (dtdev=), or use type=none");
        return ERROR_INVAL;
    }
    if (!d_config->num_dtdevs) {
        LOGD(ERROR, domid, "iommu: type=virtio, but no device is passed "
             "through to the guest: give it some (dtdev=), or use type=none");
        return ERROR_INVAL;
    }

    libxl_defbool_setdefault(&iommu->strict, true);
    libxl_defbool_setdefault(&iommu->bypass, true);

    /*
     * Twice what maps all of the guest's memory by pages, an eighth of a
     * percent each, and something for upper levels.
     */
    if (iommu->pool_memkb == LIBXL_MEMKB_DEFAULT)
        iommu->pool_memkb = d_config->b_info.max_memkb / 256 + 1024;

    if (iommu->pool_memkb < POOL_MIN_KB || iommu->pool_memkb > POOL_MAX_KB) {
        LOGD(ERROR, domid, "iommu: pool of %"PRIu64" KiB; allowed: %u KiB to "
             "%"PRIu64" KiB", iommu->pool_memkb, POOL_MIN_KB, POOL_MAX_KB);
        return ERROR_INVAL;
    }

    return check_devices(gc, d_config, domid) ?:
           check_memory(gc, iommu, domid);
}

int libxl__pviommu_setdefault(libxl__gc *gc, libxl_domain_config *d_config,
                              uint32_t domid)
{
    libxl_domain_build_info *b_info = &d_config->b_info;
    libxl_arm_iommu *iommu = &b_info->arch_arm.iommu;
    int rc;

    if (!wanted(b_info)) return 0;

#if !defined(__arm__) && !defined(__aarch64__)
    LOGD(ERROR, domid, "iommu: only guests on Arm have this");
    return ERROR_INVAL;
#endif

    switch (iommu->type) {
    case LIBXL_IOMMU_TYPE_NONE:
        rc = check_none(gc, iommu, domid);
        break;
    case LIBXL_IOMMU_TYPE_VIRTIO:
        rc = check_virtio(gc, d_config, iommu, domid);
        break;
    default:
        LOGD(ERROR, domid, "iommu: type %d is unknown; allowed: none, virtio",
             iommu->type);
        rc = ERROR_INVAL;
    }
    if (rc) return rc;

    if (d_config->c_info.passthrough == LIBXL_PASSTHROUGH_DISABLED) {
        LOGD(ERROR, domid, "iommu: the guest has no IOMMU, as nothing is passed "
             "through to it: give it devices, or passthrough=\"enabled\"");
        return ERROR_INVAL;
    }

    return 0;
}

uint64_t libxl__pviommu_pool(const libxl_domain_build_info *b_info)
{
    return is_virtio(b_info) ? b_info->arch_arm.iommu.pool_memkb << 10 : 0;
}

int libxl__pviommu_device(libxl__gc *gc, const char *path,
                          struct xen_pviommu_get_device *dev)
{
    if (!xc_pviommu_get_device(CTX->xch, path, dev)) return 0;

    switch (errno) {
    case ENODEV:
        LOG(ERROR, "iommu: dtdev %s: no SMMUv3 of Xen's is in front of it: its "
            "node in the host's device tree needs iommus or iommu-map, "
            "and Xen's command line no iommu=off", path);
        return ERROR_NOTFOUND;
    case ENOENT:
        LOG(ERROR, "iommu: dtdev %s: the host's device tree has no such node",
            path);
        return ERROR_NOTFOUND;
    case EBUSY:
        LOG(ERROR, "iommu: dtdev %s: assigned already, to domain %u", path,
            dev->owner);
        return ERROR_INVAL;
    case EPERM:
        LOG(ERROR, "iommu: dtdev %s: its node in the host's device tree isn't "
            "marked xen,passthrough: dom0 has it", path);
        return ERROR_INVAL;
    default:
        return failed(gc, INVALID_DOMID, GCSPRINTF("dtdev %s", path), errno);
    }
}

#if defined(__arm__) || defined(__aarch64__)

static bool irq_used(const libxl_domain_config *d_config, uint32_t irq)
{
    const libxl_domain_build_info *b_info = &d_config->b_info;
    int i;

    for (i = 0; i < b_info->num_irqs; i++)
        if (b_info->irqs[i] == irq) return true;
    for (i = 0; i < d_config->num_disks; i++)
        if (d_config->disks[i].specification ==
            LIBXL_DISK_SPECIFICATION_VIRTIO && d_config->disks[i].irq == irq)
            return true;

    return b_info->arch_arm.vuart == LIBXL_VUART_TYPE_SBSA_UART &&
           irq == GUEST_VPL011_SPI;
}

/*
 * Virtio disks are given slots from the first on, and no passed-through interrupt
 * may lie among theirs.  So this device takes the last that is free.
 */
static int pick_irq(libxl__gc *gc, const libxl_domain_config *d_config,
                    uint32_t *irq)
{
    uint32_t i;

    for (i = GUEST_VIRTIO_MMIO_SPI_LAST; i >= GUEST_VIRTIO_MMIO_SPI_FIRST; i--)
        if (!irq_used(d_config, i)) {
            *irq = i;
            return 0;
        }

    LOG(ERROR, "iommu: no interrupt is left for the virtio-iommu: %u to %u are "
        "used by irqs= and virtio disks; pass through or attach one less",
        GUEST_VIRTIO_MMIO_SPI_FIRST, GUEST_VIRTIO_MMIO_SPI_LAST);
    return ERROR_INVAL;
}

static int pick_base(libxl__gc *gc, const libxl_domain_config *d_config,
                     uint64_t *base)
{
    const libxl_domain_build_info *b_info = &d_config->b_info;
    uint64_t addr = GUEST_VIRTIO_MMIO_BASE + GUEST_VIRTIO_MMIO_SIZE -
                    XEN_PVIOMMU_MMIO_SIZE;
    uint64_t gfn = addr >> XC_PAGE_SHIFT;
    int i;

    for (i = 0; i < b_info->num_iomem; i++) {
        const libxl_iomem_range *io = &b_info->iomem[i];

        if (gfn >= io->gfn && gfn - io->gfn < io->number) {
            LOG(ERROR, "iommu: iomem 0x%"PRIx64",0x%"PRIx64"@0x%"PRIx64
                " lies over the virtio-iommu's registers at 0x%"PRIx64
                ": put it elsewhere with @GFN", io->start, io->number,
                io->gfn, addr);
            return ERROR_INVAL;
        }
    }

    *base = addr;
    return 0;
}

int libxl__pviommu_prepare(libxl__gc *gc, libxl_domain_config *d_config,
                           uint32_t *nr_spis)
{
    libxl_arm_iommu *iommu = &d_config->b_info.arch_arm.iommu;
    struct xen_pviommu_get_device dev;
    int i, rc;

    if (!wanted(&d_config->b_info)) return 0;

    for (i = 0; i < d_config->num_dtdevs; i++) {
        rc = libxl__pviommu_device(gc, d_config->dtdevs[i].path, &dev);
        if (rc) return rc;
    }

    if (!is_virtio(&d_config->b_info)) return 0;

    rc = pick_irq(gc, d_config, &iommu->irq);
    rc = rc ?: pick_base(gc, d_config, &iommu->mmio_base);
    if (rc) return rc;

    *nr_spis = max(*nr_spis, iommu->irq - 32 + 1);
    LOG(DEBUG, "iommu: registers at 0x%"PRIx64", interrupt %u",
        iommu->mmio_base, iommu->irq);

    return 0;
}

#endif /* Arm */

int libxl__pviommu_create(libxl__gc *gc, libxl_domain_config *d_config,
                          uint32_t domid)
{
    const libxl_arm_iommu *iommu = &d_config->b_info.arch_arm.iommu;
    struct xen_pviommu_create create = { .flags = XEN_PVIOMMU_BYPASS };

    if (!wanted(&d_config->b_info)) return 0;

    if (libxl_defbool_val(iommu->strict))
        create.flags |= XEN_PVIOMMU_STRICT;

    if (is_virtio(&d_config->b_info)) {
        create.flags |= XEN_PVIOMMU_VIRTIO;
        if (!libxl_defbool_val(iommu->bypass))
            create.flags &= ~XEN_PVIOMMU_BYPASS;
        create.mmio_base = iommu->mmio_base;
        create.virq = iommu->irq;
        create.pool_pages = iommu->pool_memkb / PAGE_KB;
    }

    if (!xc_pviommu_create(CTX->xch, domid, &create)) return 0;

    switch (errno) {
    case ENODEV:
        LOGD(ERROR, domid, "iommu: no SMMUv3 is in use: the host's device tree "
             "needs one, and Xen's command line no iommu=off");
        return ERROR_NOTFOUND;
    case ENOSPC:
        LOGD(ERROR, domid, "iommu: pool of %"PRIu64" KiB is too small, or the "
             "domain's paging pool lacks it", iommu->pool_memkb);
        return ERROR_INVAL;
    default:
        return failed(gc, domid, "set-up of the domain's IOMMU", errno);
    }
}

/*
 * At run time
 */

/* As struct xen_pviommu_get_info's flags and counters have them. */
static void fill_info(libxl_iommuinfo *info,
                      const struct xen_pviommu_get_info *x,
                      const uint64_t *cnt)
{
    info->type = x->flags & XEN_PVIOMMU_VIRTIO ? LIBXL_IOMMU_TYPE_VIRTIO
                                               : LIBXL_IOMMU_TYPE_NONE;
    info->strict = x->flags & XEN_PVIOMMU_STRICT;
    info->bypass = x->flags & XEN_PVIOMMU_BYPASS;
    info->broken = x->flags & XEN_PVIOMMU_BROKEN;
    info->mmio_base = x->mmio_base;
    info->irq = x->virq;

#define FILL(name) info->counters.name = cnt[XEN_PVIOMMU_CNT_ ## name]
    FILL(kicks);
    FILL(req_attach);
    FILL(req_detach);
    FILL(req_map);
    FILL(req_unmap);
    FILL(req_probe);
    FILL(req_bad);
    FILL(pages);
    FILL(tables);
    FILL(ranges);
    FILL(pending);
    FILL(pinned);
    FILL(revived);
    FILL(revoked);
    FILL(tlbi);
    FILL(sync);
    FILL(faults);
    FILL(faults_dropped);
    FILL(cutoffs);
    FILL(errors);
    FILL(flush_strict);
    FILL(flush_count);
    FILL(flush_pages);
    FILL(flush_age);
    FILL(flush_overlap);
    FILL(flush_memory);
    FILL(flush_detach);
    FILL(flush_switch);
    FILL(flush_destroy);
    FILL(flush_config);
    FILL(flush_p2m);
    FILL(flush_early);
#undef FILL
}

static int fill_endpoints(libxl__gc *gc, uint32_t domid, libxl_iommuinfo *info)
{
    xen_pviommu_endpoint_t list[LIST_ROOM];
    uint64_t cursor = 0;
    uint32_t i, nr;

    do {
        nr = LIST_ROOM;
        if (xc_pviommu_get_endpoints(CTX->xch, domid, &cursor, list, &nr))
            return failed(gc, domid, "list of endpoints", errno);

        info->endpoints = libxl__realloc(NOGC, info->endpoints,
                                         (info->num_endpoints + nr) *
                                         sizeof(*info->endpoints));
        for (i = 0; i < nr; i++) {
            libxl_iommu_endpoint *ep =
                &info->endpoints[info->num_endpoints++];

            libxl_iommu_endpoint_init(ep);
            ep->id = list[i].id;
            ep->nr_ids = list[i].nr_ids;
            /* The hypervisor's numbers, also of kinds that are not known. */
            ep->kind = list[i].kind;
            ep->attached = list[i].flags & XEN_PVIOMMU_EP_ATTACHED;
            ep->present = list[i].flags & XEN_PVIOMMU_EP_PRESENT;
            ep->context = list[i].context;
            ep->smmu = list[i].smmu;
            ep->sid = list[i].sid;
            ep->nr_sids = list[i].nr_sids;
        }
    } while (nr && cursor != XEN_PVIOMMU_LIST_END);

    return 0;
}

static int fill_contexts(libxl__gc *gc, uint32_t domid, libxl_iommuinfo *info)
{
    xen_pviommu_context_t list[LIST_ROOM];
    uint64_t cursor = 0;
    uint32_t i, nr;

    do {
        nr = LIST_ROOM;
        if (xc_pviommu_get_contexts(CTX->xch, domid, &cursor, list, &nr))
            return failed(gc, domid, "list of contexts", errno);

        info->contexts = libxl__realloc(NOGC, info->contexts,
                                        (info->num_contexts + nr) *
                                        sizeof(*info->contexts));
        for (i = 0; i < nr; i++) {
            libxl_iommu_context *c = &info->contexts[info->num_contexts++];

            libxl_iommu_context_init(c);
            c->id = list[i].id;
            c->nr_endpoints = list[i].nr_endpoints;
            c->bypass = list[i].flags & XEN_PVIOMMU_CTX_BYPASS;
            c->pages = list[i].pages;
            c->tables = list[i].tables;
        }
    } while (nr && cursor != XEN_PVIOMMU_LIST_END);

    return 0;
}

int libxl_iommu_info(libxl_ctx *ctx, uint32_t domid, libxl_iommuinfo *info)
{
    GC_INIT(ctx);
    uint64_t counters[XEN_PVIOMMU_NR_COUNTERS] = {};
    struct xen_pviommu_get_info x;
    int rc;

    libxl_iommuinfo_init(info);
    info->domid = domid;

    rc = xc_pviommu_get_info(ctx->xch, domid, &x, counters,
                             XEN_PVIOMMU_NR_COUNTERS);
    if (rc) {
        rc = failed(gc, domid, "state of the domain's IOMMU", errno);
        goto out;
    }
    fill_info(info, &x, counters);
    rc = fill_endpoints(gc, domid, info);
    rc = rc ?: fill_contexts(gc, domid, info);

out:
    if (rc) libxl_iommuinfo_dispose(info);
    GC_FREE;
    return rc;
}

static void fill_smmu(libxl_smmuinfo *info,
                      const struct xen_pviommu_get_smmu *x,
                      const uint64_t *cnt)
{
    libxl_smmuinfo_init(info);
    info->index = x->index;
    info->base = x->base;
    info->dead = x->flags & XEN_PVIOMMU_SMMU_DEAD;

#define FILL(name) info->name = cnt[XEN_PVIOMMU_SMMU_CNT_ ## name]
    FILL(tlbi);
    FILL(sync);
    FILL(cfgi);
    FILL(cmdq_ill);
    FILL(cmdq_abt);
    FILL(cmdq_atc);
    FILL(cmdq_timeout);
    FILL(cmdq_full);
    FILL(events);
    FILL(event_overflow);
    FILL(event_unknown);
    FILL(event_cutoff);
    FILL(event_no_cutoff);
    FILL(event_sync);
    FILL(event_dropped);
    FILL(event_throttled);
    FILL(gerror);
#undef FILL
}

int libxl_list_smmu(libxl_ctx *ctx, libxl_smmuinfo **list_out, int *nr_out)
{
    GC_INIT(ctx);
    libxl_smmuinfo *list = NULL;
    int nr = 0, rc = 0;

    for (;;) {
        uint64_t counters[XEN_PVIOMMU_SMMU_NR_COUNTERS] = {};
        struct xen_pviommu_get_smmu x;

        if (xc_pviommu_get_smmu(ctx->xch, nr, &x, counters,
                                XEN_PVIOMMU_SMMU_NR_COUNTERS)) {
            /* ENOENT: that was the last; ENODEV: there is none at all. */
            if (errno != ENOENT && errno != ENODEV)
                rc = failed(gc, INVALID_DOMID, "state of an SMMU", errno);
            break;
        }
        list = libxl__realloc(NOGC, list, (nr + 1) * sizeof(*list));
        fill_smmu(&list[nr++], &x, counters);
    }

    if (rc) {
        libxl_smmuinfo_list_free(list, nr);
        list = NULL;
        nr = 0;
    }
    *list_out = list;
    *nr_out = nr;
    GC_FREE;
    return rc;
}

void libxl_smmuinfo_list_free(libxl_smmuinfo *list, int nr)
{
    int i;

    for (i = 0; i < nr; i++)
        libxl_smmuinfo_dispose(&list[i]);
    free(list);
}

/* So that the saved configuration (xl list -l, reboot) says what is so. */
static int save_strict(libxl__gc *gc, uint32_t domid, bool strict)
{
    libxl_domain_config d_config;
    int rc;

    libxl_domain_config_init(&d_config);
    rc = libxl__get_domain_configuration(gc, domid, &d_config);
    if (!rc) {
        libxl_defbool_set(&d_config.b_info.arch_arm.iommu.strict, strict);
        rc = libxl__set_domain_configuration(gc, domid, &d_config);
    }
    libxl_domain_config_dispose(&d_config);

    return rc;
}

int libxl_iommu_set_strict(libxl_ctx *ctx, uint32_t domid, bool strict)
{
    GC_INIT(ctx);
    libxl__flock *lock = NULL;
    int rc;

    CTX_LOCK;

    lock = libxl__lock_domain_userdata(gc, domid);
    if (!lock) {
        rc = ERROR_LOCK_FAIL;
        goto out;
    }

    if (xc_pviommu_set_strict(ctx->xch, domid, strict)) {
        if (errno == ENODEV)
            LOGD(ERROR, domid, "iommu: the domain has no IOMMU: nothing is "
                 "passed through to it, or Xen uses none");
        rc = failed(gc, domid, strict ? "strict on" : "strict off", errno);
        goto out;
    }

    /* dom0 has a configuration only if its init made one. */
    rc = save_strict(gc, domid, strict);
    if (rc && domid == LIBXL_TOOLSTACK_DOMID)
        rc = 0;
    if (rc)
        LOGD(ERROR, domid, "iommu: strict is %s now, but the domain's saved "
             "configuration could not be changed", strict ? "on" : "off");

out:
    if (lock) libxl__unlock_file(lock);
    CTX_UNLOCK;
    GC_FREE;
    return rc;
}

/*
 * Local variables:
 * mode: C
 * c-basic-offset: 4
 * indent-tabs-mode: nil
 * End:
 */
