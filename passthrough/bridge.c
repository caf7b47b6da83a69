/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * PCI host bridges that a guest owns.
 *
 * Nobody tells Xen which functions such a guest finds behind its bridge, and it
 * may number its buses as it likes.  So every requester id that iommu-map names
 * has a stream from the start, which does what `bypass` says.  A function
 * becomes an endpoint of its own when the guest attaches it, and goes back into
 * the crowd when the guest detaches it.
 *
 * 65536 stream table entries would be 4 MiB, all alike: the level 1 descriptors
 * of whole buses share one level 2 table (smmu_strtab_fill()).
 */

#include <xen/bitmap.h>
#include <xen/lib.h>
#include <xen/sched.h>
#include <xen/xmalloc.h>

#include "pviommu.h"

/* Lines of an iommu-map: one each for a few root complexes and holes. */
#define RANGES_MAX      8

struct range {
    struct smmu_device *smmu;
    uint32_t rid, sid, nr;
    uint64_t *l2[2];            /* in use, and the next one */
};

struct pvi_bridge {
    struct list_head list;      /* pvi_domain.bridges */
    struct list_head all;       /* bridges */
    struct pvi_domain *pd;
    const struct dt_device_node *node;
    uint32_t id;                /* endpoint id of requester id 0 */
    uint32_t mask;              /* requester ids that differ elsewhere: one */
    struct pvi_context *ctx;    /* of all that are no endpoints */
    unsigned int nr_ranges;
    struct range range[RANGES_MAX];
};

/* Of all domains, for faults. */
static LIST_HEAD(bridges);
static DEFINE_SPINLOCK(bridges_lock);

/* Parse iommu-map. */
static int read_map(struct pvi_bridge *b)
{
    unsigned int i;
    int rc;

    if ( !dt_property_read_u32(b->node, "iommu-map-mask", &b->mask) )
        b->mask = ~0U;

    for ( i = 0; ; i++ )
    {
        struct pvi_map_entry e;

        rc = pvi_map_entry(b->node, i, &e);
        if ( rc == -ENOENT )
            return b->nr_ranges ? 0 : -ENODEV;
        if ( rc )
            return rc;
        if ( !e.smmu )
            continue;
        if ( b->nr_ranges == RANGES_MAX )
        {
            printk(XENLOG_ERR "pviommu: %s: iommu-map has more than %u lines\n",
                   dt_node_full_name(b->node), RANGES_MAX);
            return -E2BIG;
        }
        b->range[b->nr_ranges++] = (struct range){
            .smmu = e.smmu, .rid = e.rid, .sid = e.sid, .nr = e.nr,
        };
    }
}

/* One range to @ctx (NULL: reach nothing), from @old. */
static int range_set(struct pvi_bridge *b, struct range *r,
                     struct pvi_context *ctx, struct pvi_context *old)
{
    unsigned int syncs = 0;
    struct smmu_s2_cfg cfg;
    int rc;

    if ( ctx )
    {
        rc = pvi_att_get(ctx, r->smmu);
        if ( rc < 0 )
            return rc;
        pvi_context_cfg(ctx, r->smmu, rc, &cfg);
    }

    rc = smmu_strtab_fill(r->smmu, r->sid, r->nr, ctx ? &cfg : NULL, r->l2[0],
                          ctx ? r->l2[1] : NULL, &syncs);
    pvi_count(b->pd, 0, syncs, PVI_CAUSE_CONFIG);

    if ( rc && rc != -ETIMEDOUT )
    {
        /* Nothing has changed. */
        if ( ctx && pvi_att_put(ctx, r->smmu) )
            rc = -ETIMEDOUT;
    }
    else
    {
        uint64_t *l2 = r->l2[0];

        if ( ctx )
        {
            r->l2[0] = r->l2[1];
            r->l2[1] = l2;
        }
        if ( old && !rc )
            rc = pvi_att_put(old, r->smmu);
    }
    if ( rc == -ETIMEDOUT )
        pvi_fail(b->pd, "the streams of a bridge could not be switched");

    return rc;
}

/* All ranges, or none. */
static int bridge_set(struct pvi_bridge *b, struct pvi_context *ctx)
{
    struct pvi_context *old = b->ctx;
    unsigned int i;
    int rc = 0;

    if ( ctx == old )
        return 0;
    if ( ctx && ACCESS_ONCE(ctx->pd->broken) )
        return -ETIMEDOUT;

    for ( i = 0; !rc && i < b->nr_ranges; i++ )
        rc = range_set(b, &b->range[i], ctx, old);
    if ( !rc )
        b->ctx = ctx;
    else if ( rc != -ETIMEDOUT )
        for ( i--; i; i-- )
            if ( range_set(b, &b->range[i - 1], old, ctx) )
                pvi_fail(b->pd, "a bridge is between two contexts");

    return rc;
}

static void bridge_free(struct pvi_bridge *b)
{
    unsigned int i;

    for ( i = 0; i < b->nr_ranges; i++ )
    {
        smmu_l2_free(b->range[i].smmu, b->range[i].l2[0]);
        smmu_l2_free(b->range[i].smmu, b->range[i].l2[1]);
    }
    xfree(b);
}

int pvi_bridge_add(struct pvi_domain *pd, const struct dt_device_node *node)
{
    struct pvi_bridge *b = xzalloc(struct pvi_bridge);
    unsigned int i;
    uint16_t seg;
    int rc;

    if ( !b )
        return -ENOMEM;

    b->pd = pd;
    b->node = node;
    rc = pvi_bridge_segment(node, &seg);
    b->id = (uint32_t)seg << 16;
    rc = rc ?: read_map(b);

    /* All that later changes need. */
    for ( i = 0; !rc && i < b->nr_ranges; i++ )
    {
        b->range[i].l2[0] = smmu_l2_alloc(b->range[i].smmu);
        b->range[i].l2[1] = smmu_l2_alloc(b->range[i].smmu);
        if ( !b->range[i].l2[0] || !b->range[i].l2[1] )
            rc = -ENOMEM;
    }
    if ( rc )
    {
        bridge_free(b);
        return rc;
    }

    pvi_lock(&pd->lock, PVI_LOCK_DOMAIN);
    /* The default context, which bypass may bring back at any time. */
    for ( i = 0; !rc && i < b->nr_ranges; i++ )
        rc = pvi_att_reserve(&pd->dflt, b->range[i].smmu);
    if ( rc )
        i--;
    rc = rc ?: bridge_set(b, pvi_unattached(pd));
    while ( rc && rc != -ETIMEDOUT && i-- )
        pvi_att_unreserve(&pd->dflt, b->range[i].smmu);
    if ( !rc )
    {
        list_add_tail(&b->list, &pd->bridges);
        spin_lock(&bridges_lock);
        list_add_tail(&b->all, &bridges);
        spin_unlock(&bridges_lock);
    }
    pvi_unlock(&pd->lock, PVI_LOCK_DOMAIN);

    /* After a time-out an SMMU may still read the tables: they are kept. */
    if ( rc && rc != -ETIMEDOUT )
        bridge_free(b);

    return rc;
}

int pvi_bridge_remove(struct pvi_domain *pd, const struct dt_device_node *node)
{
    struct pvi_endpoint *ep, *next;
    struct pvi_bridge *b;
    int rc = -ENODEV;

    pvi_lock(&pd->lock, PVI_LOCK_DOMAIN);
    list_for_each_entry ( b, &pd->bridges, list )
        if ( b->node == node )
        {
            rc = 0;
            break;
        }
    if ( rc )
    {
        pvi_unlock(&pd->lock, PVI_LOCK_DOMAIN);
        return rc;
    }

    list_for_each_entry_safe ( ep, next, &pd->endpoints, list )
        if ( ep->bridge == b )
        {
            rc = pvi_endpoint_attach(ep, NULL) ?: rc;
            pvi_endpoint_forget(ep);
        }

    rc = bridge_set(b, NULL) ?: rc;
    if ( !rc )
    {
        unsigned int i;

        for ( i = 0; i < b->nr_ranges; i++ )
            pvi_att_unreserve(&pd->dflt, b->range[i].smmu);
        list_del(&b->list);
        spin_lock(&bridges_lock);
        list_del(&b->all);
        spin_unlock(&bridges_lock);
    }
    pvi_unlock(&pd->lock, PVI_LOCK_DOMAIN);

    if ( !rc )
        /* No descriptor names the tables, and a sync has completed since. */
        bridge_free(b);

    return rc;
}

int pvi_bridges_refresh(struct pvi_domain *pd)
{
    struct pvi_bridge *b;
    int rc = 0;

    ASSERT(spin_is_locked(&pd->lock));

    list_for_each_entry ( b, &pd->bridges, list )
        rc = rc ?: bridge_set(b, pvi_unattached(pd));

    return rc;
}

void pvi_bridges_cut_off(struct pvi_domain *pd)
{
    struct pvi_bridge *b;
    unsigned int i, syncs = 0;

    list_for_each_entry ( b, &pd->bridges, list )
        for ( i = 0; i < b->nr_ranges; i++ )
            /* Written in any case; tables go only where an SMMU answers. */
            if ( smmu_strtab_fill(b->range[i].smmu, b->range[i].sid,
                                  b->range[i].nr, NULL, b->range[i].l2[0],
                                  NULL, &syncs) )
                atomic_inc(&pd->stats.errors);
    pvi_count(pd, 0, syncs, PVI_CAUSE_CONFIG);
}

static struct pvi_bridge *bridge_of(struct pvi_domain *pd, uint32_t epid)
{
    struct pvi_bridge *b;
    unsigned int i;

    list_for_each_entry ( b, &pd->bridges, list )
    {
        uint32_t rid = (epid - b->id) & b->mask;

        /* A bridge is a segment: 16 bits of requester id. */
        for ( i = 0; i < b->nr_ranges && !((epid - b->id) >> 16); i++ )
            if ( rid - b->range[i].rid < b->range[i].nr )
                return b;
    }

    return NULL;
}

bool pvi_bridge_has(struct pvi_domain *pd, uint32_t epid)
{
    return bridge_of(pd, epid);
}

/* Is there room for an endpoint on this bus?  See PVI_BRIDGE_BUSES. */
static bool has_room(const struct pvi_bridge *b, uint32_t epid)
{
    DECLARE_BITMAP(buses, 256) = {};
    const struct pvi_endpoint *ep;
    unsigned int n = 1;

    __set_bit((epid - b->id) >> 8, buses);
    list_for_each_entry ( ep, &b->pd->endpoints, list )
        if ( ep->bridge == b )
            n += !__test_and_set_bit((ep->epid - b->id) >> 8, buses);

    return n <= PVI_BRIDGE_BUSES;
}

struct pvi_endpoint *pvi_bridge_endpoint(struct pvi_domain *pd, uint32_t epid,
                                         int *rc)
{
    struct pvi_bridge *b = bridge_of(pd, epid);
    struct pvi_ep_desc desc = { .kind = PVI_EP_PCI, .epid = epid };
    struct pvi_endpoint *ep;

    ASSERT(spin_is_locked(&pd->lock));

    *rc = -ENODEV;
    if ( !b )
        return NULL;
    *rc = -ENOSPC;
    if ( !has_room(b, epid) )
        return NULL;

    *rc = pvi_map_rid(b->node, epid - b->id, &desc);
    *rc = *rc ?: pvi_endpoint_add_locked(pd, &desc);
    if ( *rc )
        return NULL;

    ep = pvi_endpoint_find(pd, epid);
    ep->bridge = b;

    return ep;
}

struct pvi_domain *pvi_bridge_fault(const struct smmu_device *smmu,
                                    uint32_t sid, uint32_t *epid)
{
    struct pvi_domain *pd = NULL;
    struct pvi_bridge *b;
    unsigned int i;

    spin_lock(&bridges_lock);
    list_for_each_entry ( b, &bridges, all )
        for ( i = 0; !pd && i < b->nr_ranges; i++ )
        {
            const struct range *r = &b->range[i];

            if ( r->smmu == smmu && sid >= r->sid && sid - r->sid < r->nr &&
                 get_domain(b->pd->d) )
            {
                pd = b->pd;
                *epid = b->id + r->rid + (sid - r->sid);
            }
        }
    spin_unlock(&bridges_lock);

    return pd;
}

unsigned int pvi_bridge_describe(struct pvi_domain *pd, unsigned int n,
                                 struct pvi_bridge_info *info)
{
    struct pvi_bridge *b;
    unsigned int i = 0;

    list_for_each_entry ( b, &pd->bridges, list )
        if ( i++ == n )
        {
            info->id = b->id;
            info->nr_ids = 0x10000;
            info->smmu = b->range[0].smmu->index;
            info->sid = b->range[0].sid;
            info->nr_sids = b->range[0].nr;
            return 1;
        }

    return 0;
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
