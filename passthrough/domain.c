/* SPDX-License-Identifier: GPL-2.0-only */
/* A domain's part of the driver: birth, slices of work, failure, death. */

#include <xen/event.h>
#include <xen/lib.h>
#include <xen/pviommu.h>
#include <xen/sched.h>
#include <xen/xmalloc.h>

#include "pviommu.h"
#include "viommu/viommu.h"

#ifndef NDEBUG
DEFINE_PER_CPU(unsigned int, pvi_locks);
#endif

/* After a failure: whatever still answers must let no device through. */
static void cf_check cut_off(void *data)
{
    struct pvi_domain *pd = data;
    struct pvi_endpoint *ep;
    unsigned int i, syncs = 0;

    pvi_lock(&pd->lock, PVI_LOCK_DOMAIN);
    list_for_each_entry ( ep, &pd->endpoints, list )
        for ( i = 0; i < ep->nr_streams; i++ )
            if ( smmu_ste_abort(ep->streams[i]->smmu, ep->streams[i]->sid,
                                &syncs) )
                atomic_inc(&pd->stats.errors);
    pvi_count(pd, 0, syncs, PVI_CAUSE_CONFIG);
    pvi_bridges_cut_off(pd);
    pvi_unlock(&pd->lock, PVI_LOCK_DOMAIN);
}

int pvi_domain_init(struct domain *d)
{
    struct pvi_domain *pd;

    /* dom_io stands for quarantine: its devices reach nothing. */
    if ( is_system_domain(d) )
        return 0;

    /* All memory that unmapping will need is in here. */
    pd = xzalloc(struct pvi_domain);
    if ( !pd )
        return -ENOMEM;

    pd->d = d;
    spin_lock_init(&pd->lock);
    spin_lock_init(&pd->tlock);
    softirq_tasklet_init(&pd->fail, cut_off, pd);
    INIT_LIST_HEAD(&pd->endpoints);
    INIT_LIST_HEAD(&pd->bridges);
    INIT_LIST_HEAD(&pd->dying);
    pd->strict = is_hardware_domain(d) ? opt_dom0_strict : true;
    pd->bypass = is_hardware_domain(d) ? opt_dom0_bypass : true;
    pvi_context_init(&pd->dflt, pd, PVI_CTX_DEFAULT);
    pvi_context_init(&pd->blocked, pd, PVI_CTX_BLOCKED);
    pvi_fq_init(pd);

    dom_iommu(d)->arch.priv = pd;

    return 0;
}

void pvi_domain_free(struct domain *d)
{
    struct pvi_domain *pd = dom_pvi(d);

    if ( !pd )
        return;

    ASSERT(list_empty(&pd->endpoints) && list_empty(&pd->dying));
    pvi_fq_exit(pd);
    tasklet_kill(&pd->fail);
    pvi_foreign_free(pd);
    if ( pd->viommu )
        viommu_free(pd->viommu);
    xfree(pd->ctx);
    dom_iommu(d)->arch.priv = NULL;
    xfree(pd);
}

void pvi_fail(struct pvi_domain *pd, const char *what)
{
    atomic_inc(&pd->stats.errors);
    if ( xchg(&pd->broken, true) )
        return;

    printk(XENLOG_ERR
           "pviommu: %pd: %s: its pages stay pinned, its devices are cut off\n",
           pd->d, what);
    if ( !is_hardware_domain(pd->d) )
        domain_crash(pd->d);
    /* Not here: the caller may hold any lock. */
    tasklet_schedule(&pd->fail);
    pvi_work(pd);
}

int pvi_set_strict(struct pvi_domain *pd, bool strict)
{
    int rc = 0;

    pvi_lock(&pd->lock, PVI_LOCK_DOMAIN);
    /*
     * No slice sees it change.  A p2m operation may have queued as a strict
     * domain's, without a timer, and find that it need not wait any more.
     */
    pvi_lock(&pd->tlock, PVI_LOCK_TABLES);
    pd->strict = strict;
    if ( !strict )
        pvi_fq_watch(pd);
    pvi_unlock(&pd->tlock, PVI_LOCK_TABLES);
    if ( strict )
        rc = pvi_fq_flush(pd, PVI_CAUSE_SWITCH);
    pvi_unlock(&pd->lock, PVI_LOCK_DOMAIN);
    if ( !rc )
        pvi_fq_release_later(pd);

    return rc;
}

/* One slice.  Returns true when there is more. */
static bool slice(struct pvi_domain *pd)
{
    int budget = PVI_SLICE_WORK;
    bool more;

    /* Cleared before looking, so that what comes later sets it again. */
    ACCESS_ONCE(pd->work) = false;
    smp_mb(); /* partner: the one in pviommu_vcpu_work() */

    if ( pd->broken )
    {
        if ( pd->viommu && pd->viommu->resetting )
            viommu_reset_registers(pd->viommu);
        /* Its driver waits for answers that will not come (2.1.2). */
        else if ( pd->viommu )
            viommu_needs_reset(pd->viommu, "an SMMU does not answer");
        return false;
    }

    /* Slots and pages first: the rest may need them. */
    if ( !pvi_fq_release(pd, &budget) )
        return true;

    more = pd->viommu && viommu_slice(pd->viommu, &budget);
    if ( !pvi_context_reap(pd, &budget) )
    {
        /* It may wait for a flush that nothing else would cause. */
        if ( budget > 0 && pvi_fq_pending(pd) &&
             pvi_fq_flush(pd, PVI_CAUSE_DETACH) )
            return false;
        more = true;
    }

    return more;
}

bool pviommu_vcpu_work(struct vcpu *v)
{
    struct domain *d = v->domain;
    struct pvi_domain *pd;
    bool more;

    if ( !is_iommu_enabled(d) )
        return false;

    pd = dom_pvi(d);
    if ( likely(!pd || !ACCESS_ONCE(pd->work)) )
        return false;

    /*
     * One vCPU works, the others go on; it looks again when it has stopped.
     * Only a device reset is waited for by all: drivers expect it to be done
     * when the write of the status returns.
     */
    if ( ACCESS_ONCE(pd->worker) != v && ACCESS_ONCE(v->pause_flags) )
        /* About to sleep, and the work with it: whoever has kicked does it. */
        return false;
    if ( ACCESS_ONCE(pd->worker) != v &&
         cmpxchgptr(&pd->worker, NULL, v) != NULL )
    {
        if ( !pd->viommu || !ACCESS_ONCE(pd->viommu->resetting) )
            return false;

        /*
         * The worker may have been descheduled, and wait for this very CPU:
         * take the interrupt that would say so, and let others run.
         */
        local_irq_enable();
        vcpu_yield();
        local_irq_disable();

        return true;
    }

    local_irq_enable();

    pvi_lock(&pd->lock, PVI_LOCK_DOMAIN);
    more = slice(pd);
    if ( more )
        pvi_work(pd);
    pvi_unlock(&pd->lock, PVI_LOCK_DOMAIN);

    if ( !more )
    {
        ACCESS_ONCE(pd->worker) = NULL;
        /*
         * Nobody is the worker before the flag is read.  Partner: a vCPU that
         * set the flag in pvi_work() (under the lock) and then found a worker.
         */
        smp_mb();
        more = ACCESS_ONCE(pd->work);
    }

    local_irq_disable();

    return more;
}

bool pviommu_has_viommu(const struct domain *d)
{
    return is_iommu_enabled(d) && dom_pvi(d) && dom_pvi(d)->viommu;
}

int pviommu_relinquish(struct domain *d)
{
    struct pvi_domain *pd;
    struct pvi_endpoint *ep, *next;
    bool done;
    int rc;

    if ( !is_iommu_enabled(d) )
        return 0;
    pd = dom_pvi(d);
    if ( !pd )
        return 0;

    do {
        int budget = PVI_SLICE_WORK;

        pvi_lock(&pd->lock, PVI_LOCK_DOMAIN);

        /* Devices were taken away; records of removed ones may be left. */
        list_for_each_entry_safe ( ep, next, &pd->endpoints, list )
            if ( !ep->present && !pvi_endpoint_attach(ep, NULL) )
                pvi_endpoint_forget(ep);

        done = !pd->viommu || viommu_stop(pd->viommu, &budget);
        if ( done && pd->viommu )
            /* The rings' pages go back with the rest of the memory. */
            viommu_reset_registers(pd->viommu);
        rc = pvi_fq_flush(pd, PVI_CAUSE_DESTROY);
        done = !rc && pvi_fq_release(pd, &budget) &&
               pvi_context_reap(pd, &budget) && done;

        pvi_unlock(&pd->lock, PVI_LOCK_DOMAIN);

        if ( rc )
            /*
             * A device may still reach the domain's memory.  It must not be
             * given to anyone: the domain stays, dead, with all it has.
             */
            return -EBUSY;

        if ( !done && hypercall_preempt_check() )
            return -ERESTART;
    } while ( !done );

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
