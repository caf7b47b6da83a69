/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The event queue and global errors (IHI 0070 3.5, 7).
 *
 * The interrupt only schedules a tasklet; the tasklet handles a bounded number
 * of records and schedules itself again, so that a flood neither holds a CPU
 * nor keeps interrupts off.
 */

#include <xen/irq.h>
#include <xen/lib.h>
#include <xen/mm.h>
#include <xen/sched.h>
#include <xen/time.h>

#include <asm/io.h>

#include "../compat.h"
#include "smmu.h"

/* One run of the tasklet: 32 records, each at most one log line. */
#define EVENTS_PER_RUN  32
/*
 * Work items of one of these (PVI_SLICE_WORK / EVENTS_PER_RUN).  A report in a
 * guest's event queue costs what walking the guest's chain does on top.
 */
#define EVENT_WORK      16

#define EQ_SIZE         (1U << SMMU_EVTQ_LOG2)

const char *smmu_event_name(unsigned int id)
{
    switch ( id )
    {
    case EVT_F_UUT:             return "unsupported upstream transaction";
    case EVT_C_BAD_STREAMID:    return "StreamID outside the stream table";
    case EVT_F_STE_FETCH:       return "stream table entry not readable";
    case EVT_C_BAD_STE:         return "stream not assigned to anyone";
    case EVT_F_BAD_ATS_TREQ:    return "ATS request not allowed";
    case EVT_F_STREAM_DISABLED: return "stream disabled";
    case EVT_F_TRANSL_FORBIDDEN: return "translated request without ATS";
    case EVT_C_BAD_SUBSTREAMID: return "PASID not allowed";
    case EVT_F_CD_FETCH:        return "context descriptor not readable";
    case EVT_C_BAD_CD:          return "context descriptor wrong";
    case EVT_F_WALK_EABT:       return "translation table not readable";
    case EVT_F_TRANSLATION:     return "no mapping";
    case EVT_F_ADDR_SIZE:       return "address too large";
    case EVT_F_ACCESS:          return "access flag";
    case EVT_F_PERMISSION:      return "no permission";
    case EVT_F_TLB_CONFLICT:    return "conflicting TLB entries";
    case EVT_F_CFG_CONFLICT:    return "conflicting configuration caches";
    case EVT_E_PAGE_REQUEST:    return "page request hint";
    case EVT_F_VMS_FETCH:       return "VM structure not readable";
    default:                    return "unknown event";
    }
}

/* Returns what it has cost beyond EVENT_WORK. */
static unsigned int event_decode(struct smmu_device *smmu, const uint64_t *w)
{
    struct smmu_event ev = {
        .smmu = smmu,
        .sid = EVT_SID(w),
        .id = EVT_ID(w),
        .read = w[1] & EVT_RNW,
        .insn = w[1] & EVT_IND,
        .addr = w[2],
        .fetch = w[3] & EVT_FETCH_MASK,
    };

    switch ( ev.id )
    {
    case EVT_F_TRANSLATION:
    case EVT_F_ADDR_SIZE:
    case EVT_F_ACCESS:
    case EVT_F_PERMISSION:
    case EVT_F_WALK_EABT:
    case EVT_F_UUT:
    case EVT_F_TRANSL_FORBIDDEN:
    case EVT_F_TLB_CONFLICT:
        ev.has_addr = true;
        break;

    default:
        break;
    }
    switch ( ev.id )
    {
    case EVT_F_STE_FETCH:
    case EVT_F_CD_FETCH:
    case EVT_F_VMS_FETCH:
    case EVT_F_WALK_EABT:
        ev.has_fetch = true;
        break;

    default:
        break;
    }

    atomic_inc(&smmu->stats.events);
    return smmu_cutoff_count(smmu, ev.sid, &ev.cut_off) ? pvi_smmu_event(&ev)
                                                        : 0;
}

/* Is there something that has no interrupt? */
static bool is_polled(const struct smmu_device *smmu)
{
    return !smmu->irq_evtq || !smmu->irq_gerror;
}

/* Take in one record.  False: there is none. */
static bool evtq_take(struct smmu_device *smmu, uint64_t w[EVT_WORDS])
{
    struct smmu_evtq *q = &smmu->evtq;
    uint32_t prod = readl(smmu->page1 + SMMU_EVENTQ_PROD);
    unsigned int slot = q->cons & (EQ_SIZE - 1), i;

    if ( (prod ^ q->cons) & EVENTQ_OVFLG )
    {
        /* Acknowledged by the CONS write below (7.4). */
        atomic_inc(&smmu->stats.event_overflow);
        if ( printk_ratelimit() )
            printk(XENLOG_WARNING
                   "pviommu: %s: the event queue was full, faults were lost\n",
                   dt_node_full_name(smmu->node));
        q->cons ^= EVENTQ_OVFLG;
        writel(q->cons, smmu->page1 + SMMU_EVENTQ_CONS);
    }
    if ( ((prod ^ q->cons) & (2 * EQ_SIZE - 1)) == 0 )
        return false;

    /* readl() of PROD is ordered before the record; partner: the SMMU. */
    if ( !(smmu->flags & SMMU_F_COHERENT) )
        invalidate_dcache_va_range(&q->base[slot * EVT_WORDS], EVT_WORDS * 8);
    for ( i = 0; i < EVT_WORDS; i++ )
        w[i] = ACCESS_ONCE(q->base[slot * EVT_WORDS + i]);

    q->cons = (q->cons & EVENTQ_OVFLG) | ((q->cons + 1) & (2 * EQ_SIZE - 1));
    /* The record was copied before the SMMU may write it again. */
    smp_mb();
    writel(q->cons, smmu->page1 + SMMU_EVENTQ_CONS);

    return true;
}

/* Are there more of them in this period than are worth anybody's time? */
static bool evtq_throttled(struct smmu_evtq *q)
{
    s_time_t now = NOW();

    if ( !q->period || now - q->period >= SMMU_EVENTS_PERIOD )
    {
        q->period = now;
        q->handled = 0;
    }

    return q->handled >= SMMU_EVENTS_MAX;
}

static void cf_check evtq_tasklet(void *data)
{
    struct smmu_device *smmu = data;
    struct smmu_evtq *q = &smmu->evtq;
    s_time_t next = STIME_MAX;
    uint64_t w[EVT_WORDS];
    unsigned int work = 0;

    while ( work < EVENTS_PER_RUN * EVENT_WORK )
    {
        if ( evtq_throttled(q) )
        {
            atomic_inc(&smmu->stats.event_throttled);
            next = q->period + SMMU_EVENTS_PERIOD;
            break;
        }
        if ( !evtq_take(smmu, w) )
            break;
        q->handled++;
        work += EVENT_WORK + event_decode(smmu, w);
    }

    if ( work >= EVENTS_PER_RUN * EVENT_WORK )
        tasklet_schedule(&q->tasklet);

    next = min(next, smmu_cutoff_expire(smmu));
    if ( is_polled(smmu) )
        next = min(next, NOW() + SMMU_POLL_PERIOD);
    if ( next != STIME_MAX )
        set_timer(&q->timer, next);
}

static void gerror_handle(struct smmu_device *smmu)
{
    uint32_t pending;
    unsigned long flags;

    smmu_cmdq_repair(smmu);

    /* GERRORN is read and written as a whole: not beside a repair. */
    spin_lock_irqsave(&smmu->cmdq.error_lock, flags);
    pending = (smmu_read(smmu, SMMU_GERROR) ^
               smmu_read(smmu, SMMU_GERRORN)) & GERROR_MASK & ~GERROR_CMDQ;
    if ( pending )
        writel(smmu_read(smmu, SMMU_GERRORN) ^ pending,
               smmu->base + SMMU_GERRORN);
    spin_unlock_irqrestore(&smmu->cmdq.error_lock, flags);
    if ( !pending )
        return;

    atomic_inc(&smmu->stats.gerror);
    if ( printk_ratelimit() )
        printk(XENLOG_ERR "pviommu: %s: global error %#x%s\n",
               dt_node_full_name(smmu->node), pending,
               pending & GERROR_SFM ? " (service failure mode: DMA is blocked)"
                                    : "");
}

static cf_check PVI_IRQ_HANDLER(smmu_irq, irq, data)
{
    struct smmu_device *smmu = data;

    gerror_handle(smmu);
    tasklet_schedule(&smmu->evtq.tasklet);
}

static void cf_check evtq_timer(void *data)
{
    struct smmu_device *smmu = data;

    if ( is_polled(smmu) )
        gerror_handle(smmu);
    tasklet_schedule(&smmu->evtq.tasklet);
}

int smmu_evtq_init(struct smmu_device *smmu, unsigned int queue_bits)
{
    struct smmu_evtq *q = &smmu->evtq;
    size_t bytes = (size_t)EQ_SIZE * EVT_WORDS * 8;

    if ( queue_bits < SMMU_EVTQ_LOG2 )
    {
        printk(XENLOG_ERR
               "pviommu: %s: event queue of 2^%u entries (IDR1.EVENTQS) is too small, 2^%u needed\n",
               dt_node_full_name(smmu->node), queue_bits, SMMU_EVTQ_LOG2);
        return -ENODEV;
    }

    q->base = alloc_xenheap_pages(get_order_from_bytes(bytes), 0);
    if ( !q->base )
        return -ENOMEM;
    memset(q->base, 0, bytes);
    if ( !(smmu->flags & SMMU_F_COHERENT) )
        clean_dcache_va_range(q->base, bytes);

    q->cons = 0;
    softirq_tasklet_init(&q->tasklet, evtq_tasklet, smmu);
    init_timer(&q->timer, evtq_timer, smmu, smp_processor_id());

    writeq_relaxed(Q_BASE_RWA | virt_to_maddr(q->base) | SMMU_EVTQ_LOG2,
                   smmu->base + SMMU_EVENTQ_BASE);
    writel_relaxed(0, smmu->page1 + SMMU_EVENTQ_PROD);
    writel_relaxed(0, smmu->page1 + SMMU_EVENTQ_CONS);

    return 0;
}

/* Request the line of that name.  0: there is none that Xen can have. */
static unsigned int irq_get(struct smmu_device *smmu, const char *name)
{
    int i = dt_property_match_string(smmu->node, "interrupt-names", name);
    int irq = i < 0 ? i : platform_get_irq(smmu->node, i), rc;

    if ( irq <= 0 )
        return 0;

    /* Several SMMUs, and several sources of one, may have the same line. */
    rc = request_irq(irq, IRQF_SHARED, smmu_irq, "pviommu", smmu);
    if ( !rc )
        return irq;

    printk(XENLOG_WARNING "pviommu: %s: interrupt %d (%s) refused (%d)\n",
           dt_node_full_name(smmu->node), irq, name, rc);

    return 0;
}

void smmu_irq_init(struct smmu_device *smmu)
{
    smmu->irq_evtq = smmu->irq_gerror = irq_get(smmu, "combined");

    if ( !smmu->irq_evtq )
    {
        smmu->irq_evtq = irq_get(smmu, "eventq");
        smmu->irq_gerror = irq_get(smmu, "gerror");
    }

    if ( !is_polled(smmu) )
        return;

    printk(XENLOG_WARNING
           "pviommu: %s: no wired interrupt for%s%s: polled every %u ms\n",
           dt_node_full_name(smmu->node), smmu->irq_evtq ? "" : " events",
           smmu->irq_gerror ? "" : " errors",
           (unsigned int)(SMMU_POLL_PERIOD / MILLISECS(1)));
    set_timer(&smmu->evtq.timer, NOW() + SMMU_POLL_PERIOD);
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
