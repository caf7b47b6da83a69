/* SPDX-License-Identifier: LGPL-2.1-only */
/* XEN_DOMCTL_pviommu, see xenctrl_pviommu.h. */

#include "xc_private.h"

/* The operation in and out.  The hypervisor writes the result on errors too. */
static int pviommu_op(xc_interface *xch, uint32_t domid,
                      struct xen_domctl_pviommu *op)
{
    struct xen_domctl domctl = {
        .cmd = XEN_DOMCTL_pviommu,
        .domain = domid,
    };
    int rc, err;

    op->version = XEN_PVIOMMU_VERSION;
    domctl.u.pviommu = *op;
    rc = do_domctl(xch, &domctl);
    err = errno;
    *op = domctl.u.pviommu;

    if ( rc && err == EACCES )
        ERROR("pviommu: Xen has version %u of the interface, libxenctrl %u",
              op->version, XEN_PVIOMMU_VERSION);
    errno = err;

    return rc;
}

int xc_pviommu_create(xc_interface *xch, uint32_t domid,
                      const struct xen_pviommu_create *create)
{
    struct xen_domctl_pviommu op = {
        .op = XEN_PVIOMMU_OP_create,
        .u.create = *create,
    };

    return pviommu_op(xch, domid, &op);
}

int xc_pviommu_set_strict(xc_interface *xch, uint32_t domid, bool strict)
{
    struct xen_domctl_pviommu op = {
        .op = XEN_PVIOMMU_OP_set_strict,
        .u.set_strict.strict = strict,
    };

    return pviommu_op(xch, domid, &op);
}

int xc_pviommu_get_info(xc_interface *xch, uint32_t domid,
                        struct xen_pviommu_get_info *info,
                        uint64_t *counters, uint32_t nr)
{
    struct xen_domctl_pviommu op = {
        .op = XEN_PVIOMMU_OP_get_info,
        .u.get_info.nr_counters = nr,
    };
    DECLARE_HYPERCALL_BOUNCE(counters, nr * sizeof(*counters),
                             XC_HYPERCALL_BUFFER_BOUNCE_BOTH);
    int rc;

    if ( xc_hypercall_bounce_pre(xch, counters) )
        return -1;
    set_xen_guest_handle(op.u.get_info.counters, counters);

    rc = pviommu_op(xch, domid, &op);

    xc_hypercall_bounce_post(xch, counters);
    *info = op.u.get_info;

    return rc;
}

/* What is common to both lists once the handle is set. */
static int get_list(xc_interface *xch, uint32_t domid,
                    struct xen_domctl_pviommu *op, uint64_t *cursor,
                    uint32_t *nr)
{
    int rc;

    op->u.get_list.cursor = *cursor;
    op->u.get_list.nr = *nr;

    rc = pviommu_op(xch, domid, op);
    if ( !rc )
    {
        *cursor = op->u.get_list.cursor;
        *nr = op->u.get_list.nr;
    }

    return rc;
}

int xc_pviommu_get_endpoints(xc_interface *xch, uint32_t domid,
                             uint64_t *cursor, xen_pviommu_endpoint_t *list,
                             uint32_t *nr)
{
    struct xen_domctl_pviommu op = { .op = XEN_PVIOMMU_OP_get_endpoints };
    DECLARE_HYPERCALL_BOUNCE(list, *nr * sizeof(*list),
                             XC_HYPERCALL_BUFFER_BOUNCE_OUT);
    int rc;

    if ( xc_hypercall_bounce_pre(xch, list) )
        return -1;
    set_xen_guest_handle(op.u.get_list.u.endpoints, list);

    rc = get_list(xch, domid, &op, cursor, nr);

    xc_hypercall_bounce_post(xch, list);

    return rc;
}

int xc_pviommu_get_contexts(xc_interface *xch, uint32_t domid,
                            uint64_t *cursor, xen_pviommu_context_t *list,
                            uint32_t *nr)
{
    struct xen_domctl_pviommu op = { .op = XEN_PVIOMMU_OP_get_contexts };
    DECLARE_HYPERCALL_BOUNCE(list, *nr * sizeof(*list),
                             XC_HYPERCALL_BUFFER_BOUNCE_OUT);
    int rc;

    if ( xc_hypercall_bounce_pre(xch, list) )
        return -1;
    set_xen_guest_handle(op.u.get_list.u.contexts, list);

    rc = get_list(xch, domid, &op, cursor, nr);

    xc_hypercall_bounce_post(xch, list);

    return rc;
}

int xc_pviommu_get_smmu(xc_interface *xch, uint32_t index,
                        struct xen_pviommu_get_smmu *smmu,
                        uint64_t *counters, uint32_t nr)
{
    struct xen_domctl_pviommu op = {
        .op = XEN_PVIOMMU_OP_get_smmu,
        .u.get_smmu.index = index,
        .u.get_smmu.nr_counters = nr,
    };
    DECLARE_HYPERCALL_BOUNCE(counters, nr * sizeof(*counters),
                             XC_HYPERCALL_BUFFER_BOUNCE_BOTH);
    int rc;

    if ( xc_hypercall_bounce_pre(xch, counters) )
        return -1;
    set_xen_guest_handle(op.u.get_smmu.counters, counters);

    rc = pviommu_op(xch, 0, &op);

    xc_hypercall_bounce_post(xch, counters);
    *smmu = op.u.get_smmu;

    return rc;
}

int xc_pviommu_get_device(xc_interface *xch, const char *path,
                          struct xen_pviommu_get_device *dev)
{
    size_t size = strlen(path);
    struct xen_domctl_pviommu op = {
        .op = XEN_PVIOMMU_OP_get_device,
        .u.get_device.size = size,
    };
    DECLARE_HYPERCALL_BOUNCE_IN(path, size);
    int rc;

    if ( xc_hypercall_bounce_pre(xch, path) )
        return -1;
    set_xen_guest_handle(op.u.get_device.path, path);

    rc = pviommu_op(xch, 0, &op);

    xc_hypercall_bounce_post(xch, path);
    *dev = op.u.get_device;

    return rc;
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
