/* SPDX-License-Identifier: GPL-2.0-only */
/* XEN_DOMCTL_pviommu: what the toolstack asks and says (public/pviommu.h). */

#include <xen/device_tree.h>
#include <xen/guest_access.h>
#include <xen/iommu.h>
#include <xen/lib.h>
#include <xen/pviommu.h>
#include <xen/sched.h>

#include <public/domctl.h>

#include <asm/vgic.h>

#include "pviommu.h"
#include "viommu/viommu.h"

/* Records copied in one go, with the domain's lock held. */
#define LIST_PIECE      64

/* Longest path of a device tree node that is asked for. */
#define PATH_MAX_LEN    1024

static uint32_t flags_of(const struct pvi_domain *pd)
{
    return (pd->viommu ? XEN_PVIOMMU_VIRTIO : 0) |
           (pd->strict ? XEN_PVIOMMU_STRICT : 0) |
           (pd->bypass ? XEN_PVIOMMU_BYPASS : 0) |
           (pd->broken ? XEN_PVIOMMU_BROKEN : 0);
}

static int op_create(struct pvi_domain *pd, const struct xen_pviommu_create *c)
{
    struct domain *d = pd->d;
    bool virtio = c->flags & XEN_PVIOMMU_VIRTIO;
    int rc = 0;

    if ( is_hardware_domain(d) )
        return -EOPNOTSUPP;
    if ( c->flags & ~(XEN_PVIOMMU_VIRTIO | XEN_PVIOMMU_STRICT |
                      XEN_PVIOMMU_BYPASS) )
        return -EINVAL;
    if ( !virtio && (c->mmio_base || c->virq || c->pool_pages ||
                     !(c->flags & XEN_PVIOMMU_BYPASS)) )
        return -EINVAL;
    if ( virtio && (c->mmio_base % XEN_PVIOMMU_MMIO_SIZE ||
                    c->mmio_base >> p2m_ipa_bits ||
                    c->virq < 32 || c->virq >= vgic_num_irqs(d)) )
        return -EINVAL;
    if ( virtio && (c->pool_pages < XEN_PVIOMMU_POOL_MIN ||
                    c->pool_pages > d->arch.paging.p2m_total_pages) )
        return -ENOSPC;

    BUILD_BUG_ON(XEN_PVIOMMU_MMIO_SIZE != VIOMMU_MMIO_SIZE);

    pvi_lock(&pd->lock, PVI_LOCK_DOMAIN);
    if ( pd->created )
        rc = -EEXIST;
    else if ( d->creation_finished || pd->nr_endpoints ||
              !list_empty(&pd->bridges) )
        rc = -EBUSY;
    else if ( virtio )
    {
        if ( !vgic_reserve_virq(d, c->virq) )
            rc = -EBUSY;
        else
        {
            rc = viommu_init(pd, c->mmio_base, c->virq);
            if ( rc )
                vgic_free_virq(d, c->virq);
        }
    }
    if ( !rc )
    {
        pd->created = true;
        pd->strict = c->flags & XEN_PVIOMMU_STRICT;
        pd->bypass = c->flags & XEN_PVIOMMU_BYPASS;
    }
    pvi_unlock(&pd->lock, PVI_LOCK_DOMAIN);

    return rc;
}

static int copy_counters(XEN_GUEST_HANDLE_64(uint64) to, uint32_t *room,
                         const uint64_t *c, uint32_t have)
{
    uint32_t nr = min(*room, have);

    *room = have;

    return nr && copy_to_guest(to, c, nr) ? -EFAULT : 0;
}

static int op_get_info(struct pvi_domain *pd, struct xen_pviommu_get_info *g)
{
    uint64_t c[XEN_PVIOMMU_NR_COUNTERS];
    struct pvi_bridge_info info;

    if ( g->pad )
        return -EINVAL;

    pvi_counters(pd, c);

    pvi_lock(&pd->lock, PVI_LOCK_DOMAIN);
    g->flags = flags_of(pd);
    g->virq = pd->viommu ? pd->viommu->virq : 0;
    g->mmio_base = pd->viommu ? pd->viommu->base : 0;
    g->nr_endpoints = pd->nr_endpoints;
    while ( pvi_bridge_describe(pd, g->nr_endpoints - pd->nr_endpoints,
                                &info) )
        g->nr_endpoints++;
    g->nr_contexts = pd->nr_contexts;
    pvi_unlock(&pd->lock, PVI_LOCK_DOMAIN);

    return copy_counters(g->counters, &g->nr_counters, c, ARRAY_SIZE(c));
}

static int op_get_endpoints(struct pvi_domain *pd,
                            struct xen_pviommu_get_list *g)
{
    uint32_t room = min_t(uint32_t, g->nr, LIST_PIECE), n = 0;
    uint64_t pos = 0, begin = g->cursor;
    const struct pvi_endpoint *ep;
    struct pvi_bridge_info info;
    unsigned int i;
    int rc = 0;

    if ( g->pad || !room )
        return -EINVAL;

    pvi_lock(&pd->lock, PVI_LOCK_DOMAIN);
    list_for_each_entry ( ep, &pd->endpoints, list )
    {
        struct xen_pviommu_endpoint e = {
            .id = ep->epid,
            .nr_ids = 1,
            .context = ep->ctx ? ep->ctx->id : 0,
            .nr_sids = ep->nr_streams,
            .kind = ep->kind == PVI_EP_PCI ? XEN_PVIOMMU_EP_pci
                                           : XEN_PVIOMMU_EP_dt,
            .flags = (ep->ctx ? XEN_PVIOMMU_EP_ATTACHED : 0) |
                     (ep->present ? XEN_PVIOMMU_EP_PRESENT : 0),
        };

        if ( pos++ < begin )
            continue;
        if ( ep->nr_streams )
        {
            e.sid = ep->streams[0]->sid;
            e.smmu = ep->streams[0]->smmu->index;
        }
        if ( n == room || copy_to_guest_offset(g->u.endpoints, n, &e, 1) )
            goto out;
        n++;
    }
    for ( i = 0; pvi_bridge_describe(pd, i, &info); i++ )
    {
        struct xen_pviommu_endpoint e = {
            .id = info.id,
            .nr_ids = info.nr_ids,
            .sid = info.sid,
            .nr_sids = info.nr_sids,
            .smmu = info.smmu,
            .kind = XEN_PVIOMMU_EP_bridge,
            .flags = XEN_PVIOMMU_EP_PRESENT,
        };

        if ( pos++ < begin )
            continue;
        if ( n == room || copy_to_guest_offset(g->u.endpoints, n, &e, 1) )
            goto out;
        n++;
    }
    pos = 0;

 out:
    if ( pos && n < room )
        rc = -EFAULT;
    g->cursor = pos ? pos - 1 : XEN_PVIOMMU_LIST_END;
    g->nr = n;
    pvi_unlock(&pd->lock, PVI_LOCK_DOMAIN);

    return rc;
}

static int op_get_contexts(struct pvi_domain *pd,
                           struct xen_pviommu_get_list *g)
{
    uint32_t room = min_t(uint32_t, g->nr, LIST_PIECE), n = 0;
    uint64_t i;
    int rc = 0;

    if ( g->pad || !room )
        return -EINVAL;

    pvi_lock(&pd->lock, PVI_LOCK_DOMAIN);
    for ( i = g->cursor; pd->ctx && i < PVI_MAX_CONTEXTS && n < room; i++ )
    {
        const struct pvi_context *ctx = pd->ctx[i];
        struct xen_pviommu_context c = { .id = i };

        if ( !ctx )
            continue;
        c.nr_endpoints = ctx->nr_endpoints;
        c.pages = ctx->pt.nr_pages;
        c.tables = ctx->pt.nr_tables;
        c.flags = ctx->kind == PVI_CTX_DEFAULT ? XEN_PVIOMMU_CTX_BYPASS : 0;
        if ( copy_to_guest_offset(g->u.contexts, n, &c, 1) )
        {
            rc = -EFAULT;
            break;
        }
        n++;
    }
    g->cursor = pd->ctx && i < PVI_MAX_CONTEXTS ? i : XEN_PVIOMMU_LIST_END;
    g->nr = n;
    pvi_unlock(&pd->lock, PVI_LOCK_DOMAIN);

    return rc;
}

static int op_get_smmu(struct xen_pviommu_get_smmu *g)
{
    const struct smmu_device *smmu;

    if ( g->pad )
        return -EINVAL;

    smmu_for_each ( smmu )
        if ( smmu->index == g->index )
        {
            const struct smmu_stats *t = &smmu->stats;
            const uint64_t c[] = {
                [XEN_PVIOMMU_SMMU_CNT_tlbi] = atomic_read(&t->tlbi),
                [XEN_PVIOMMU_SMMU_CNT_sync] = atomic_read(&t->sync),
                [XEN_PVIOMMU_SMMU_CNT_cfgi] = atomic_read(&t->cfgi),
                [XEN_PVIOMMU_SMMU_CNT_cmdq_ill] = atomic_read(&t->cmdq_ill),
                [XEN_PVIOMMU_SMMU_CNT_cmdq_abt] = atomic_read(&t->cmdq_abt),
                [XEN_PVIOMMU_SMMU_CNT_cmdq_timeout] =
                    atomic_read(&t->cmdq_timeout),
                [XEN_PVIOMMU_SMMU_CNT_cmdq_full] = atomic_read(&t->cmdq_full),
                [XEN_PVIOMMU_SMMU_CNT_events] = atomic_read(&t->events),
                [XEN_PVIOMMU_SMMU_CNT_event_overflow] =
                    atomic_read(&t->event_overflow),
                [XEN_PVIOMMU_SMMU_CNT_event_unknown] =
                    atomic_read(&t->event_unknown),
                [XEN_PVIOMMU_SMMU_CNT_gerror] = atomic_read(&t->gerror),
                [XEN_PVIOMMU_SMMU_CNT_cmdq_atc] = atomic_read(&t->cmdq_atc),
                [XEN_PVIOMMU_SMMU_CNT_event_cutoff] =
                    atomic_read(&t->event_cutoff),
                [XEN_PVIOMMU_SMMU_CNT_event_no_cutoff] =
                    atomic_read(&t->event_no_cutoff),
                [XEN_PVIOMMU_SMMU_CNT_event_sync] =
                    atomic_read(&t->event_sync),
                [XEN_PVIOMMU_SMMU_CNT_event_dropped] =
                    atomic_read(&t->event_dropped),
                [XEN_PVIOMMU_SMMU_CNT_event_throttled] =
                    atomic_read(&t->event_throttled),
            };

            BUILD_BUG_ON(ARRAY_SIZE(c) != XEN_PVIOMMU_SMMU_NR_COUNTERS);
            g->flags = smmu_is_dead(smmu) ? XEN_PVIOMMU_SMMU_DEAD : 0;
            g->base = smmu->addr;
            return copy_counters(g->counters, &g->nr_counters, c,
                                 ARRAY_SIZE(c));
        }

    return -ENOENT;
}

static int op_get_device(struct xen_pviommu_get_device *g)
{
    struct dt_device_node *np;
    struct pvi_ep_desc desc;
    int rc;

    if ( g->pad || !g->size || g->size > PATH_MAX_LEN )
        return -EINVAL;

    rc = dt_find_node_by_gpath(g->path, g->size, &np);
    if ( rc )
        return rc == -ESRCH ? -ENOENT : rc;

    rc = pvi_dt_describe(np, &desc);
    if ( rc )
        return rc;
    g->kind = desc.kind == PVI_EP_BRIDGE ? XEN_PVIOMMU_EP_bridge
                                         : XEN_PVIOMMU_EP_dt;
    g->id = desc.epid;
    g->nr_ids = desc.kind == PVI_EP_BRIDGE ? 0x10000 : 1;

    if ( !dt_device_for_passthrough(np) )
        return -EPERM;
    if ( !list_empty(&np->domain_list) )
    {
        g->owner = dt_device_used_by(np);
        return -EBUSY;
    }

    return 0;
}

long pviommu_domctl(struct domain *d, struct xen_domctl_pviommu *op)
{
    struct pvi_domain *pd;

    if ( op->version != XEN_PVIOMMU_VERSION )
    {
        op->version = XEN_PVIOMMU_VERSION;
        return -EACCES;
    }
    if ( list_empty(&smmu_devices) )
        return -ENODEV;

    switch ( op->op )
    {
    case XEN_PVIOMMU_OP_get_smmu:
        return op_get_smmu(&op->u.get_smmu);

    case XEN_PVIOMMU_OP_get_device:
        return op_get_device(&op->u.get_device);

    default:
        break; /* of a domain */
    }

    pd = d && is_iommu_enabled(d) ? dom_pvi(d) : NULL;
    if ( !pd )
        return -ENODEV;

    switch ( op->op )
    {
    case XEN_PVIOMMU_OP_create:
        return op_create(pd, &op->u.create);

    case XEN_PVIOMMU_OP_set_strict:
    {
        const struct xen_pviommu_set_strict *s = &op->u.set_strict;
        unsigned int i;

        for ( i = 0; i < ARRAY_SIZE(s->pad); i++ )
            if ( s->pad[i] )
                return -EINVAL;
        return s->strict > 1 ? -EINVAL : pvi_set_strict(pd, s->strict);
    }

    case XEN_PVIOMMU_OP_get_info:
        return op_get_info(pd, &op->u.get_info);

    case XEN_PVIOMMU_OP_get_endpoints:
        return op_get_endpoints(pd, &op->u.get_list);

    case XEN_PVIOMMU_OP_get_contexts:
        return op_get_contexts(pd, &op->u.get_list);

    default:
        return -EINVAL;
    }
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
