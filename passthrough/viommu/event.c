/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Fault reports on the event queue (virtio 1.2, 5.13.6.9).
 *
 * The guest provides the buffers; a fault without a buffer is dropped and
 * counted, nothing is kept for later.
 */

#include <xen/lib.h>
#include <xen/percpu.h>
#include <xen/sched.h>

#include <asm/io.h>

#include "viommu.h"

/*
 * viommu.chain belongs to the request in progress, and a chain is too big for
 * the stack.  One for each CPU will do: this file runs in softirq context and
 * never waits, so nobody else on this CPU gets in between.
 */
static DEFINE_PER_CPU(struct viommu_chain, event_chain);

static uint8_t fault_reason(const struct smmu_event *ev, bool attached)
{
    if ( !attached )
        return VIOMMU_FAULT_R_DOMAIN;

    switch ( ev->id )
    {
    case EVT_F_TRANSLATION:
    case EVT_F_PERMISSION:
    case EVT_F_ADDR_SIZE:
        return VIOMMU_FAULT_R_MAPPING;

    default:
        return VIOMMU_FAULT_R_UNKNOWN;
    }
}

static void fault_fill(struct viommu_fault *f, uint32_t epid,
                       const struct smmu_event *ev, bool attached)
{
    memset(f, 0, sizeof(*f));
    f->reason = fault_reason(ev, attached);
    f->endpoint = epid;

    /* Records without an address don't say what kind of access it was. */
    if ( !ev->has_addr )
        return;

    f->flags = VIOMMU_FAULT_F_ADDRESS |
               (ev->read ? VIOMMU_FAULT_F_READ : VIOMMU_FAULT_F_WRITE);
    f->address = ev->addr;
}

/* True: the guest's driver has the report.  @work: what taking a chain cost. */
static bool fault_send(struct viommu *v, const struct viommu_fault *f,
                       unsigned int *work)
{
    struct viommu_queue *q = &v->q[VIOMMU_EVENTQ];
    struct viommu_chain *c = &this_cpu(event_chain);
    bool sent;
    int rc;

    if ( !viommu_driver_ok(v) || !q->ready )
        return false;

    rc = viommu_queue_take(v, q, c);
    if ( rc < 0 )
        viommu_needs_reset(v, "event queue: impossible index in the ring");
    if ( rc <= 0 )
        return false;
    *work = c->work;

    sent = c->in_len >= sizeof(*f) &&
           !viommu_chain_write(v, c, 0, f, sizeof(*f));

    /* A buffer that is of no use goes back, or the driver would lose it. */
    viommu_queue_put(v, q, c->head, sent ? sizeof(*f) : 0);
    viommu_queue_publish(v, q);
    viommu_pages_put(v);

    return sent;
}

unsigned int viommu_report_fault(struct viommu *v, uint32_t epid,
                                 const struct smmu_event *ev, bool attached)
{
    struct viommu_fault f;
    unsigned int work = 0;

    ASSERT(spin_is_locked(&v->pd->lock));

    fault_fill(&f, epid, ev, attached);
    if ( !fault_send(v, &f, &work) )
        atomic_inc(&v->pd->stats.faults_dropped);

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
