/* SPDX-License-Identifier: GPL-2.0-only */
/* Faults: whose they are, a line for the log, and the guest's event queue. */

#include <xen/lib.h>
#include <xen/sched.h>

#include "pviommu.h"
#include "viommu/viommu.h"

#define NAME_LEN 16

/* 0000:00:01.0, in @buf, or the path in the device tree. */
static const char *device_name(char *buf, enum pvi_ep_kind kind, uint32_t epid,
                               const char *path)
{
    if ( kind == PVI_EP_DT )
        return path ?: "platform device";

    snprintf(buf, NAME_LEN, "%04x:%02x:%02x.%u", epid >> 16,
             (epid >> 8) & 0xff, PCI_SLOT(epid & 0xff), PCI_FUNC(epid & 0xff));

    return buf;
}

/* The first of those that have this stream: which it was can't be told. */
static struct pvi_endpoint *endpoint_of(struct pvi_domain *pd,
                                        const struct smmu_event *ev)
{
    struct pvi_endpoint *ep;
    unsigned int i;

    list_for_each_entry ( ep, &pd->endpoints, list )
        for ( i = 0; i < ep->nr_streams; i++ )
            if ( ep->streams[i]->smmu == ev->smmu &&
                 ep->streams[i]->sid == ev->sid )
                return ep;

    return NULL;
}

/* Whose stream is it?  With a reference on the domain, or NULL. */
static struct pvi_domain *owner_of(const struct smmu_event *ev, uint32_t *epid)
{
    struct smmu_device *smmu = ev->smmu;
    struct pvi_domain *pd = NULL;
    struct pvi_stream *s;

    spin_lock(&smmu->streams_lock);
    s = radix_tree_lookup(&smmu->streams, ev->sid);
    if ( s && get_domain(s->pd->d) )
    {
        pd = s->pd;
        *epid = s->epid;
    }
    spin_unlock(&smmu->streams_lock);

    return pd ?: pvi_bridge_fault(smmu, ev->sid, epid);
}

#define WHAT_LEN 112

/* Access, address and reason. */
static void describe(char *buf, const struct smmu_event *ev)
{
    const char *access = ev->insn ? "instruction fetch"
                                  : ev->read ? "read" : "write";
    int n = 0;

    if ( ev->has_addr )
        n = snprintf(buf, WHAT_LEN, "%s at %#"PRIx64": ", access, ev->addr);
    n += snprintf(buf + n, WHAT_LEN - n, "%s", smmu_event_name(ev->id));
    if ( ev->has_fetch )
        snprintf(buf + n, WHAT_LEN - n, " (fetched from %#"PRIx64")",
                 ev->fetch);
}

/* At most so many lines a second; then how many there would have been. */
static bool line_allowed(struct smmu_lines *l, unsigned int *hidden)
{
    s_time_t now = NOW();

    *hidden = 0;
    if ( !l->since || now - l->since >= SECONDS(1) )
    {
        *hidden = l->hidden;
        l->since = now;
        l->nr = l->hidden = 0;
    }
    if ( l->nr < PVI_FAULT_LINES )
    {
        l->nr++;
        return true;
    }
    l->hidden++;

    return false;
}

/* Of no domain; the SMMU's tasklet is the only one to use its limit. */
static void nobodys(const struct smmu_event *ev)
{
    const char *smmu = dt_node_full_name(ev->smmu->node);
    unsigned int hidden;
    char what[WHAT_LEN];

    atomic_inc(&ev->smmu->stats.event_unknown);

    if ( line_allowed(&ev->smmu->evtq.lines, &hidden) )
    {
        if ( hidden )
            printk(XENLOG_WARNING
                   "pviommu: fault: %u more of %s were not shown\n", hidden,
                   smmu);
        describe(what, ev);
        printk(XENLOG_WARNING
               "pviommu: fault: stream %#x of %s belongs to nobody: %s\n",
               ev->sid, smmu, what);
    }
    if ( ev->cut_off )
        printk(XENLOG_WARNING
               "pviommu: fault: stream %#x of %s: %u faults within %u s: not recorded for %u s\n",
               ev->sid, smmu, SMMU_FAULTS_MAX,
               (unsigned int)(SMMU_FAULT_WINDOW / SECONDS(1)),
               (unsigned int)(SMMU_CUTOFF_TIME / SECONDS(1)));
}

unsigned int pvi_smmu_event(const struct smmu_event *ev)
{
    enum pvi_ep_kind kind = PVI_EP_PCI;
    const char *path = NULL, *name;
    struct pvi_endpoint *ep;
    struct pvi_domain *pd;
    char buf[NAME_LEN], what[WHAT_LEN];
    unsigned int hidden, work = 0;
    uint32_t epid = 0;
    bool attached = false, line;

    pd = owner_of(ev, &epid);
    if ( !pd )
    {
        nobodys(ev);
        return 0;
    }

    pvi_lock(&pd->lock, PVI_LOCK_DOMAIN);
    atomic_inc(&pd->stats.faults);
    if ( ev->cut_off )
        atomic_inc(&pd->stats.cutoffs);
    ep = endpoint_of(pd, ev);
    if ( ep )
    {
        epid = ep->epid;
        kind = ep->kind;
        path = ep->path;
        attached = ep->ctx;
    }
    if ( pd->viommu && (ep || pvi_bridge_has(pd, epid)) )
        work = viommu_report_fault(pd->viommu, epid, ev, attached);
    line = line_allowed(&pd->fault_lines, &hidden);
    pvi_unlock(&pd->lock, PVI_LOCK_DOMAIN);

    name = device_name(buf, kind, epid, path);
    if ( line )
    {
        if ( hidden )
            printk(XENLOG_G_WARNING
                   "pviommu: fault: %u more of %pd were not shown\n", hidden,
                   pd->d);
        describe(what, ev);
        printk(XENLOG_G_WARNING
               "pviommu: fault: %pd %s stream %#x: %s (%s)\n",
               pd->d, name, ev->sid, what,
               attached ? "attached by the guest" : "not attached");
    }
    if ( ev->cut_off )
        printk(XENLOG_G_WARNING
               "pviommu: fault: %pd %s stream %#x: %u faults within %u s: not recorded for %u s\n",
               pd->d, name, ev->sid, SMMU_FAULTS_MAX,
               (unsigned int)(SMMU_FAULT_WINDOW / SECONDS(1)),
               (unsigned int)(SMMU_CUTOFF_TIME / SECONDS(1)));

    put_domain(pd->d);

    return work;
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
