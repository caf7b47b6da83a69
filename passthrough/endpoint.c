/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Endpoints: the devices of a domain, and the streams they issue.
 */

#include <xen/lib.h>
#include <xen/sched.h>
#include <xen/xmalloc.h>

#include "pviommu.h"

struct pvi_endpoint *pvi_endpoint_find(struct pvi_domain *pd, uint32_t epid)
{
    struct pvi_endpoint *ep;

    list_for_each_entry ( ep, &pd->endpoints, list )
        if ( ep->epid == epid )
            return ep;

    return NULL;
}

struct pvi_context *pvi_unattached(struct pvi_domain *pd)
{
    return pd->bypass ? &pd->dflt : &pd->blocked;
}

/* A context stands for the p2m when it is a bypass domain of the guest. */
static struct pvi_context *effective(struct pvi_domain *pd,
                                     struct pvi_context *ctx)
{
    if ( !ctx )
        return pvi_unattached(pd);

    return ctx->kind == PVI_CTX_DEFAULT ? &pd->dflt : ctx;
}

/* Find or create the stream; one more endpoint uses it. */
static struct pvi_stream *stream_get(struct pvi_domain *pd,
                                     struct smmu_device *smmu, uint32_t sid,
                                     uint32_t epid, int *rc)
{
    struct pvi_stream *s, *new = xzalloc(struct pvi_stream);

    BUILD_BUG_ON(offsetof(struct pvi_stream, sid));

    /* What a DETACH will need; given back below if the stream has it. */
    *rc = pvi_att_reserve(&pd->dflt, smmu);
    if ( *rc )
    {
        xfree(new);
        return NULL;
    }

    spin_lock(&smmu->streams_lock);
    s = radix_tree_lookup(&smmu->streams, sid);
    if ( s )
    {
        if ( s->pd != pd )
            *rc = -EBUSY;
    }
    else if ( !new )
        *rc = -ENOMEM;
    else
    {
        *rc = radix_tree_insert(&smmu->streams, sid, new);
        if ( !*rc )
        {
            s = new;
            new = NULL;
            s->smmu = smmu;
            s->sid = sid;
            s->pd = pd;
            s->epid = epid;
        }
    }
    if ( !*rc )
        s->users++;
    spin_unlock(&smmu->streams_lock);
    if ( *rc || s->users > 1 )
        pvi_att_unreserve(&pd->dflt, smmu);
    xfree(new);

    return *rc ? NULL : s;
}

/* One endpoint less; with the last one the record goes. */
static void stream_drop(struct pvi_stream *s)
{
    struct smmu_device *smmu = s->smmu;

    if ( --s->users )
        return;

    spin_lock(&smmu->streams_lock);
    radix_tree_delete(&smmu->streams, s->sid);
    spin_unlock(&smmu->streams_lock);
    pvi_att_unreserve(&s->pd->dflt, smmu);
    xfree(s);
}

/* One endpoint less; the last one makes the stream invalid. */
static int stream_put(struct pvi_stream *s)
{
    int rc = 0;

    if ( s->users == 1 )
        rc = pvi_stream_set(s, NULL);

    stream_drop(s);

    return rc;
}

/* Put a stream where its endpoints want it. */
static int stream_move(struct pvi_stream *s, struct pvi_context *ctx)
{
    return s->ctx == ctx ? 0 : pvi_stream_set(s, ctx);
}

int pvi_endpoint_attach(struct pvi_endpoint *ep, struct pvi_context *ctx)
{
    struct pvi_domain *pd = ep->pd;
    struct pvi_context *old = ep->ctx, *target = effective(pd, ctx);
    unsigned int i;
    int rc = 0;

    ASSERT(spin_is_locked(&pd->lock));

    if ( ctx == old )
        return 0;

    for ( i = 0; i < ep->nr_streams; i++ )
    {
        const struct pvi_stream *s = ep->streams[i];

        /* All endpoints behind one stream share what it translates with. */
        if ( ctx && s->attached > !!old && s->ctx != target )
            return -EXDEV;
    }

    /* What is pending in the old context is completed before it is left. */
    if ( old && pvi_fq_has(pd, old) )
        rc = pvi_fq_flush(pd, PVI_CAUSE_DETACH);

    for ( i = 0; !rc && i < ep->nr_streams; i++ )
    {
        struct pvi_stream *s = ep->streams[i];

        /* Others are attached still: it stays with them. */
        if ( !ctx && s->attached > 1 )
            continue;
        rc = stream_move(s, target);
    }
    if ( rc )
    {
        while ( i-- > 1 )
            if ( stream_move(ep->streams[i - 1], effective(pd, old)) )
                pvi_fail(pd, "an endpoint is between two contexts");
        return rc;
    }

    for ( i = 0; i < ep->nr_streams; i++ )
        ep->streams[i]->attached += !!ctx - !!old;

    ep->ctx = ctx;
    if ( ctx )
        ctx->nr_endpoints++;
    if ( old && !--old->nr_endpoints )
        pvi_context_kill(old);

    return 0;
}

int pvi_endpoints_refresh(struct pvi_domain *pd)
{
    struct pvi_endpoint *ep;
    unsigned int i;
    int rc;

    ASSERT(spin_is_locked(&pd->lock));

    /* What is pending is completed first, as when an endpoint is detached. */
    rc = pvi_fq_flush(pd, PVI_CAUSE_DETACH);

    list_for_each_entry ( ep, &pd->endpoints, list )
        for ( i = 0; !rc && !ep->ctx && i < ep->nr_streams; i++ )
            if ( !ep->streams[i]->attached )
                rc = stream_move(ep->streams[i], pvi_unattached(pd));

    return rc ?: pvi_bridges_refresh(pd);
}

static void streams_drop(struct pvi_endpoint *ep)
{
    while ( ep->nr_streams )
    {
        struct pvi_stream *s = ep->streams[--ep->nr_streams];

        if ( ep->ctx )
            s->attached--;
        /* What others share with it and none of them has attached. */
        if ( ep->ctx && !s->attached && s->users > 1 &&
             stream_move(s, pvi_unattached(ep->pd)) )
            atomic_inc(&ep->pd->stats.errors);
        /* A failure has marked the domain broken; nothing more can be done. */
        if ( stream_put(s) )
            atomic_inc(&ep->pd->stats.errors);
    }
}

static bool has_stream(const struct pvi_endpoint *ep,
                       const struct smmu_device *smmu, uint32_t sid)
{
    unsigned int i;

    for ( i = 0; i < ep->nr_streams; i++ )
        if ( ep->streams[i]->smmu == smmu && ep->streams[i]->sid == sid )
            return true;

    return false;
}

int pvi_endpoint_add_locked(struct pvi_domain *pd,
                            const struct pvi_ep_desc *desc)
{
    struct pvi_endpoint *ep, *new = xzalloc(struct pvi_endpoint);
    unsigned int i, syncs = 0;
    int rc = 0;

    if ( !new )
        return -ENOMEM;

    ASSERT(spin_is_locked(&pd->lock));

    ep = pvi_endpoint_find(pd, desc->epid);
    if ( ep && (ep->present || ep->kind != desc->kind) )
        rc = -EEXIST;
    else if ( !ep && pd->nr_endpoints == PVI_MAX_ENDPOINTS )
        rc = -ENOSPC;
    else if ( !ep )
    {
        ep = new;
        new = NULL;
        ep->pd = pd;
        ep->kind = desc->kind;
        ep->epid = desc->epid;
        ep->path = desc->path;
        list_add_tail(&ep->list, &pd->endpoints);
        pd->nr_endpoints++;
    }

    for ( i = 0; !rc && i < desc->nr_streams; i++ )
    {
        struct pvi_stream *s;

        /* A tree may name one twice; it is one stream. */
        if ( has_stream(ep, desc->s[i].smmu, desc->s[i].sid) )
            continue;
        s = stream_get(pd, desc->s[i].smmu, desc->s[i].sid, desc->epid, &rc);
        if ( rc )
            break;
        /* With an owner: until then smmu_strtab_fill() may take it away. */
        rc = smmu_strtab_reserve(desc->s[i].smmu, desc->s[i].sid, &syncs);
        if ( rc )
        {
            stream_drop(s);
            break;
        }
        ep->streams[ep->nr_streams++] = s;
        /*
         * A device that comes back is where the guest had attached it, unless
         * others behind the same stream are attached elsewhere by now.
         */
        s->attached += !!ep->ctx;
        if ( ep->ctx && s->attached > 1 && s->ctx != effective(pd, ep->ctx) )
            rc = -EXDEV;
        else if ( ep->ctx || !s->attached )
            rc = stream_move(s, effective(pd, ep->ctx));
    }

    pvi_count(pd, 0, syncs, PVI_CAUSE_CONFIG);

    if ( ep && rc != -EEXIST )
    {
        if ( rc )
            streams_drop(ep);
        ep->present = !rc;
        if ( rc && !ep->ctx )
        {
            list_del(&ep->list);
            pd->nr_endpoints--;
            new = ep;
        }
    }

    xfree(new);

    return rc;
}

int pvi_endpoint_add(struct pvi_domain *pd, const struct pvi_ep_desc *desc)
{
    int rc;

    pvi_lock(&pd->lock, PVI_LOCK_DOMAIN);
    rc = pvi_endpoint_add_locked(pd, desc);
    pvi_unlock(&pd->lock, PVI_LOCK_DOMAIN);

    return rc;
}

void pvi_endpoint_forget(struct pvi_endpoint *ep)
{
    struct pvi_domain *pd = ep->pd;

    ASSERT(!ep->ctx || pd->broken);

    while ( ep->nr_streams )
    {
        struct pvi_stream *s = ep->streams[--ep->nr_streams];
        struct smmu_device *smmu = s->smmu;

        /* Not the last one: the bridge uses the VMID too. */
        if ( s->users == 1 && s->ctx && pvi_att_put(s->ctx, smmu) )
            atomic_inc(&pd->stats.errors);

        /* What the entry says is what the bridge's streams do. */
        stream_drop(s);
    }

    list_del(&ep->list);
    pd->nr_endpoints--;
    xfree(ep);
}


int pvi_endpoint_remove(struct pvi_domain *pd, enum pvi_ep_kind kind,
                        uint32_t epid)
{
    struct pvi_endpoint *ep;
    int rc = 0;

    pvi_lock(&pd->lock, PVI_LOCK_DOMAIN);

    ep = pvi_endpoint_find(pd, epid);
    if ( !ep || ep->kind != kind || !ep->present )
    {
        pvi_unlock(&pd->lock, PVI_LOCK_DOMAIN);
        return -ENODEV;
    }

    if ( ep->ctx && pvi_fq_has(pd, ep->ctx) )
        rc = pvi_fq_flush(pd, PVI_CAUSE_DETACH);
    streams_drop(ep);
    ep->present = false;
    /*
     * The guest may not have detached it yet (Linux does so after the removal
     * was reported): then the record stays until it does.
     */
    if ( !ep->ctx || pd->d->is_dying )
    {
        if ( ep->ctx )
            rc = pvi_endpoint_attach(ep, NULL) ?: rc;
        list_del(&ep->list);
        pd->nr_endpoints--;
    }
    else
        ep = NULL;
    if ( pd->broken )
        rc = -ETIMEDOUT;

    pvi_unlock(&pd->lock, PVI_LOCK_DOMAIN);
    xfree(ep);

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
