/* SPDX-License-Identifier: GPL-2.0-only */
/* Debug key 'I': counters, one subject a line, name=value. */

#include <xen/keyhandler.h>
#include <xen/lib.h>
#include <xen/sched.h>

#include <public/domctl.h>

#include "pviommu.h"
#include "viommu/viommu.h"

static const char *const cause_name[PVI_NR_CAUSES] = {
    [PVI_CAUSE_STRICT]  = "strict",
    [PVI_CAUSE_COUNT]   = "count",
    [PVI_CAUSE_PAGES]   = "pages",
    [PVI_CAUSE_AGE]     = "age",
    [PVI_CAUSE_OVERLAP] = "overlap",
    [PVI_CAUSE_MEMORY]  = "memory",
    [PVI_CAUSE_DETACH]  = "detach",
    [PVI_CAUSE_SWITCH]  = "switch",
    [PVI_CAUSE_DESTROY] = "destroy",
    [PVI_CAUSE_CONFIG]  = "config",
    [PVI_CAUSE_P2M]     = "p2m",
    [PVI_CAUSE_EARLY]   = "early",
};

static void dump_smmu(const struct smmu_device *s)
{
    const struct smmu_stats *t = &s->stats;

    printk("pviommu: smmu%u tlbi=%d sync=%d cfgi=%d cmdq_ill=%d cmdq_abt=%d cmdq_atc=%d cmdq_timeout=%d cmdq_full=%d\n",
           s->index, atomic_read(&t->tlbi), atomic_read(&t->sync),
           atomic_read(&t->cfgi), atomic_read(&t->cmdq_ill),
           atomic_read(&t->cmdq_abt), atomic_read(&t->cmdq_atc),
           atomic_read(&t->cmdq_timeout),
           atomic_read(&t->cmdq_full));
    printk("pviommu: smmu%u events=%d event_overflow=%d event_unknown=%d gerror=%d dead=%d\n",
           s->index, atomic_read(&t->events), atomic_read(&t->event_overflow),
           atomic_read(&t->event_unknown), atomic_read(&t->gerror),
           smmu_is_dead(s));
    printk("pviommu: smmu%u event_cutoff=%d event_no_cutoff=%d event_sync=%d event_dropped=%d event_throttled=%d\n",
           s->index, atomic_read(&t->event_cutoff),
           atomic_read(&t->event_no_cutoff), atomic_read(&t->event_sync),
           atomic_read(&t->event_dropped),
           atomic_read(&t->event_throttled));
}

/* Pages and tables of all contexts, those that are being destroyed too. */
static void sum_contexts(const struct pvi_domain *pd, unsigned long *pages,
                         unsigned long *tables)
{
    const struct pvi_context *ctx;
    unsigned int i;

    *pages = *tables = 0;
    for ( i = 0; pd->ctx && i < PVI_MAX_CONTEXTS; i++ )
        if ( pd->ctx[i] )
        {
            *pages += pd->ctx[i]->pt.nr_pages;
            *tables += pd->ctx[i]->pt.nr_tables;
        }
    list_for_each_entry ( ctx, &pd->dying, dying )
        *tables += ctx->pt.nr_tables;
}

void pvi_counters(struct pvi_domain *pd, uint64_t *c)
{
    const struct pvi_stats *t = &pd->stats;
    unsigned long pages, tables, pinned = 0;
    unsigned int i;

    pvi_lock(&pd->lock, PVI_LOCK_DOMAIN);
    pvi_lock(&pd->tlock, PVI_LOCK_TABLES);

    sum_contexts(pd, &pages, &tables);
    for ( i = pd->fq.head; i != pd->fq.tail; i++ )
        pinned += pd->fq.e[i & (PVI_FQ_RANGES - 1)].pages;

    c[XEN_PVIOMMU_CNT_kicks] = t->kicks;
    c[XEN_PVIOMMU_CNT_req_attach] = t->attach;
    c[XEN_PVIOMMU_CNT_req_detach] = t->detach;
    c[XEN_PVIOMMU_CNT_req_map] = t->map;
    c[XEN_PVIOMMU_CNT_req_unmap] = t->unmap;
    c[XEN_PVIOMMU_CNT_req_probe] = t->probe;
    c[XEN_PVIOMMU_CNT_req_bad] = t->bad;
    c[XEN_PVIOMMU_CNT_pages] = pages;
    c[XEN_PVIOMMU_CNT_tables] = tables;
    c[XEN_PVIOMMU_CNT_ranges] = t->ranges;
    c[XEN_PVIOMMU_CNT_pending] = pvi_fq_count(&pd->fq);
    c[XEN_PVIOMMU_CNT_pinned] = pinned;
    c[XEN_PVIOMMU_CNT_tlbi] = atomic_read(&t->tlbi);
    c[XEN_PVIOMMU_CNT_sync] = atomic_read(&t->sync);
    c[XEN_PVIOMMU_CNT_faults] = atomic_read(&t->faults);
    c[XEN_PVIOMMU_CNT_faults_dropped] = atomic_read(&t->faults_dropped);
    c[XEN_PVIOMMU_CNT_errors] = atomic_read(&t->errors);
    for ( i = 0; i <= PVI_CAUSE_P2M; i++ )
        c[XEN_PVIOMMU_CNT_flush_strict + i] = atomic_read(&t->flush[i]);
    c[XEN_PVIOMMU_CNT_flush_early] = atomic_read(&t->flush[PVI_CAUSE_EARLY]);
    c[XEN_PVIOMMU_CNT_revived] = t->revived;
    c[XEN_PVIOMMU_CNT_revoked] = t->revoked;
    c[XEN_PVIOMMU_CNT_cutoffs] = atomic_read(&t->cutoffs);

    pvi_unlock(&pd->tlock, PVI_LOCK_TABLES);
    pvi_unlock(&pd->lock, PVI_LOCK_DOMAIN);

    BUILD_BUG_ON(XEN_PVIOMMU_CNT_flush_p2m - XEN_PVIOMMU_CNT_flush_strict !=
                 PVI_CAUSE_P2M);
}

static void dump_domain(struct pvi_domain *pd)
{
    const struct pvi_stats *t = &pd->stats;
    unsigned int id = pd->d->domain_id, i;
    unsigned long pages, tables, pinned = 0;

    pvi_lock(&pd->lock, PVI_LOCK_DOMAIN);
    pvi_lock(&pd->tlock, PVI_LOCK_TABLES);

    sum_contexts(pd, &pages, &tables);
    for ( i = pd->fq.head; i != pd->fq.tail; i++ )
        pinned += pd->fq.e[i & (PVI_FQ_RANGES - 1)].pages;

    printk("pviommu: d%u strict=%d bypass=%d viommu=%d broken=%d endpoints=%u contexts=%u\n",
           id, pd->strict, pd->bypass, !!pd->viommu, pd->broken,
           pd->nr_endpoints, pd->nr_contexts);
    printk("pviommu: d%u kicks=%lu req_attach=%lu req_detach=%lu req_map=%lu req_unmap=%lu req_probe=%lu req_bad=%lu\n",
           id, t->kicks, t->attach, t->detach, t->map, t->unmap, t->probe,
           t->bad);
    printk("pviommu: d%u pages=%lu tables=%lu ranges=%lu pending=%u pinned=%lu revived=%lu revoked=%lu\n",
           id, pages, tables, t->ranges, pvi_fq_count(&pd->fq), pinned,
           t->revived, t->revoked);
    printk("pviommu: d%u tlbi=%d sync=%d faults=%d faults_dropped=%d cutoffs=%d errors=%d\n",
           id, atomic_read(&t->tlbi), atomic_read(&t->sync),
           atomic_read(&t->faults), atomic_read(&t->faults_dropped),
           atomic_read(&t->cutoffs), atomic_read(&t->errors));
    for ( i = 0; i < PVI_NR_CAUSES; i++ )
        printk("pviommu: d%u flush_%s=%d\n", id, cause_name[i],
               atomic_read(&t->flush[i]));

    pvi_unlock(&pd->tlock, PVI_LOCK_TABLES);
    pvi_unlock(&pd->lock, PVI_LOCK_DOMAIN);
}

static void cf_check dump_key(unsigned char key)
{
    const struct smmu_device *smmu;
    struct domain *d;

    smmu_for_each ( smmu )
        dump_smmu(smmu);

    rcu_read_lock(&domlist_read_lock);
    for_each_domain ( d )
        if ( is_iommu_enabled(d) && dom_pvi(d) )
            dump_domain(dom_pvi(d));
    rcu_read_unlock(&domlist_read_lock);
}

void pvi_dump_init(void)
{
    register_keyhandler('I', dump_key, "dump SMMUv3 and virtio-iommu counters",
                        1);
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
