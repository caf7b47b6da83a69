/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The command queue (IHI 0070 3.5): many producers, and no lock around a wait.
 *
 * Indexes are free running 32-bit counters; the register value of index i is
 * i modulo 2N for a queue of N entries, so that its bit log2(N) is the wrap
 * bit.  Always cons <= published <= prod <= cons + N.
 *
 *  (1) Reserve: compare-and-swap moves prod past the caller's slots, if they
 *      lie within N of cons.  From here on to (4) interrupts are off, since
 *      nobody's command further on can be published before these.
 *  (2) Write the commands into the slots.
 *  (3) Mark each slot with the parity of this pass through the queue.
 *  (4) Publish: whoever turns `publishing` from 0 to 1 moves PROD past all
 *      marked slots, its own and others'.  Who finds it 1 leaves: the
 *      publisher looks again after it has put it back to 0.
 *  (5) Wait, with interrupts as the caller had them, for one's own CMD_SYNC:
 *      until cons has passed its slot, and any waiter moves cons forward.  Or,
 *      where the SMMU writes memory coherently (IDR0.MSI, COHACC), until it
 *      has written the sync's ticket to the word of its slot: that is a cached
 *      read instead of one across the interconnect, and the waiters of one
 *      SMMU don't queue up at its registers.
 *
 *         producer                         publisher
 *      mark slot             (3)        publishing = 0
 *      smp_mb()              [A]        smp_mb()              [B]
 *      read publishing: 1 -> leave      read the mark: set -> publish again
 *
 * With both barriers at least one of the two sees the other's store, so no
 * marked slot stays unpublished.
 *
 * The words: (2) sets the word of a sync's slot to the ticket before its own,
 * and the SMMU to its own.  The ticket of an earlier pass is less, and one
 * of a later pass means that the slot was reserved again, which (1) does only
 * after cons has passed it; so "word - ticket >= 0" is completion, whatever
 * the order in which late writes arrive.  A write that doesn't arrive costs
 * time only, for cons is looked at now and then.  cons itself is never moved
 * because of a word: the register may follow later.
 *
 * Why no WFE with IDR0.SEV: a CPU that waits for an event needs another
 * one to notice a time-out or an error of the queue.  That would be the
 * event stream of the generic timer, and Xen leaves CNTHCTL_EL2.EVNTEN off
 * (4.17 to the current tree; the guests' CNTKCTL_EL1 is theirs).  With a
 * queue that stands on an error, whose interrupt may be pending at
 * the very CPU that waits with interrupts off, the CPU would sleep for ever.
 */

#include <xen/lib.h>
#include <xen/mm.h>
#include <xen/param.h>
#include <xen/sched.h>
#include <xen/time.h>
#include <xen/xmalloc.h>

#include <asm/io.h>

#include "../compat.h"
#include "smmu.h"

#define Q_SIZE(q)       (1U << (q)->log2)
#define Q_SLOT(q, i)    ((i) & (Q_SIZE(q) - 1))
#define Q_REG(q, i)     ((i) & (2 * Q_SIZE(q) - 1))
/* Parity of a pass, never the initial 0. */
#define Q_PHASE(q, i)   ((uint8_t)(1 + (((i) >> (q)->log2) & 1)))

/* A GERROR read costs as much as a CONS read: look at every 64th poll. */
#define GERROR_POLL     64

/*
 * Largest size that is of use, and how many commands may then go together.
 * 0: not even a command with its sync for each CPU fits.
 */
static unsigned int cmdq_size(unsigned int queue_bits, unsigned int *batch)
{
    unsigned int cpus = num_possible_cpus(), log2 = SMMU_CMDQ_MIN_LOG2;

    while ( (1U << log2) < cpus * (SMMU_BATCH_MAX + 1) &&
            log2 < SMMU_CMDQ_MAX_LOG2 )
        log2++;
    log2 = min(log2, queue_bits);

    *batch = min((1U << log2) / cpus, SMMU_BATCH_MAX + 1U);
    if ( *batch )
        (*batch)--;

    return log2;
}

#ifdef CONFIG_ARM_PVIOMMU_SYNC_DELAY
/* Nanoseconds; what the SMMU itself takes comes on top only if it is longer. */
static unsigned int __read_mostly opt_sync_delay;
integer_param("pviommu-sync-delay", opt_sync_delay);

static int sync_delay_init(struct smmu_cmdq *q)
{
    q->issued = xzalloc_array(s_time_t, Q_SIZE(q));

    return q->issued ? 0 : -ENOMEM;
}

static void sync_issued(struct smmu_cmdq *q, uint32_t ticket)
{
    q->issued[Q_SLOT(q, ticket)] = NOW();
}

static bool sync_is_ripe(const struct smmu_cmdq *q, uint32_t ticket)
{
    return !opt_sync_delay ||
           NOW() - q->issued[Q_SLOT(q, ticket)] >= opt_sync_delay;
}
#else
static int sync_delay_init(struct smmu_cmdq *q) { return 0; }
static void sync_issued(struct smmu_cmdq *q, uint32_t ticket) {}
static bool sync_is_ripe(const struct smmu_cmdq *q, uint32_t ticket)
{
    return true;
}
#endif

int smmu_cmdq_init(struct smmu_device *smmu, unsigned int queue_bits)
{
    struct smmu_cmdq *q = &smmu->cmdq;
    unsigned int log2, order, word_order, i;
    bool msi = smmu->flags & SMMU_F_MSI;

    log2 = cmdq_size(queue_bits, &q->batch);
    if ( !q->batch )
    {
        printk(XENLOG_ERR
               "pviommu: %s: command queue of 2^%u entries (IDR1.CMDQS) is too small for %u CPUs\n",
               dt_node_full_name(smmu->node), queue_bits,
               num_possible_cpus());
        return -ENODEV;
    }
    /* With its sync not more than others without. */
    if ( (smmu->flags & SMMU_F_FORCE_SYNC) && q->batch == SMMU_BATCH_MAX )
        q->batch--;
    else if ( q->batch < SMMU_BATCH_MAX )
        printk(XENLOG_INFO
               "pviommu: %s: batches of %u commands, for %u CPUs share a queue of 2^%u\n",
               dt_node_full_name(smmu->node), q->batch, num_possible_cpus(),
               log2);

    q->log2 = log2;
    /* The base must be aligned to the queue's size: page orders are. */
    order = get_order_from_bytes((uint64_t)Q_SIZE(q) * CMD_WORDS * 8);
    q->base = alloc_xenheap_pages(order, 0);
    q->phase = xzalloc_array(uint8_t, Q_SIZE(q));
    /* Of the heap that is mapped one to one: the SMMU writes there. */
    word_order = get_order_from_bytes((uint64_t)Q_SIZE(q) * sizeof(*q->word));
    q->word = msi ? alloc_xenheap_pages(word_order, 0) : NULL;
    if ( !q->base || !q->phase || (msi && !q->word) )
    {
        free_xenheap_pages(q->base, order);
        xfree(q->phase);
        free_xenheap_pages(q->word, word_order);
        q->base = NULL;
        q->phase = NULL;
        q->word = NULL;
        return -ENOMEM;
    }
    memset(q->base, 0, (size_t)Q_SIZE(q) * CMD_WORDS * 8);
    if ( !(smmu->flags & SMMU_F_COHERENT) )
        clean_dcache_va_range(q->base, (size_t)Q_SIZE(q) * CMD_WORDS * 8);

    /* As if the pass before had left its tickets. */
    for ( i = 0; q->word && i < Q_SIZE(q); i++ )
        q->word[i] = i - Q_SIZE(q);

    q->prod = q->cons = q->published = 0;
    q->publishing = 0;
    spin_lock_init(&q->error_lock);

    writeq_relaxed(Q_BASE_RWA | virt_to_maddr(q->base) | log2,
                   smmu->base + SMMU_CMDQ_BASE);
    writel_relaxed(0, smmu->base + SMMU_CMDQ_PROD);
    writel_relaxed(0, smmu->base + SMMU_CMDQ_CONS);

    return sync_delay_init(q);
}

/*
 * Bring cons up to date from the CONS register.  The register is at most N
 * beyond a cons that is still current after the register was read, because no
 * slot beyond cons + N can have been reserved; so the distance is unambiguous.
 */
static uint32_t cmdq_update_cons(struct smmu_device *smmu)
{
    struct smmu_cmdq *q = &smmu->cmdq;
    uint32_t old, new;

    for ( ; ; )
    {
        old = ACCESS_ONCE(q->cons);
        /*
         * [D] Orders the read of cons before that of the register (a device's,
         * so not smp_rmb()) and, with the barrier implied by cmpxchg(), the
         * SMMU's effects before what the caller does next.  Partner: the
         * SMMU's own update of CONS.
         */
        rmb();
        new = readl(smmu->base + SMMU_CMDQ_CONS);
        smp_rmb();
        if ( ACCESS_ONCE(q->cons) != old )
            continue;

        new = Q_REG(q, new - old);
        /* Nothing moved; or an impossible value, which is not believed. */
        if ( !new || new > Q_SIZE(q) )
            return old;
        new += old;
        if ( cmpxchg(&q->cons, old, new) == old )
            return new;
    }
}

/* From now on every wait fails, so nothing that depends on it is released. */
static void smmu_distrust(struct smmu_device *smmu, const char *why)
{
    if ( !cmpxchg(&smmu->dead, 0, 1) )
        printk(XENLOG_ERR
               "pviommu: %s: %s (PROD %#x CONS %#x GERROR %#x), the SMMU is no longer trusted\n",
               dt_node_full_name(smmu->node), why,
               smmu_read(smmu, SMMU_CMDQ_PROD),
               smmu_read(smmu, SMMU_CMDQ_CONS),
               smmu_read(smmu, SMMU_GERROR));
}

/*
 * A legal command that does at least what the rejected one should have done,
 * or 0: then the SMMU can't be trusted any more.
 */
static uint64_t cmdq_superset(const uint64_t *cmd)
{
    switch ( cmd[0] & 0xff )
    {
    case CMD_OP_TLBI_S12_VMALL:
    case CMD_OP_TLBI_S2_IPA:
        return CMD_OP_TLBI_NSNH_ALL;

    case CMD_OP_CFGI_ALL:
        if ( cmd[1] == CMD_CFGI_ALL_RANGE )
            return 0;
        /* Fall through. */
    case CMD_OP_CFGI_STE:
        return CMD_OP_CFGI_ALL;

    default:
        return 0;
    }
}

void smmu_cmdq_repair(struct smmu_device *smmu)
{
    struct smmu_cmdq *q = &smmu->cmdq;
    unsigned long flags;
    uint32_t gerror, cons;
    uint64_t *cmd, w0;

    /* Whoever waits comes here at times: no lock while all is well. */
    if ( !((smmu_read(smmu, SMMU_GERROR) ^ smmu_read(smmu, SMMU_GERRORN)) &
           GERROR_CMDQ) )
        return;

    spin_lock_irqsave(&q->error_lock, flags);

    gerror = smmu_read(smmu, SMMU_GERROR) ^ smmu_read(smmu, SMMU_GERRORN);
    if ( !(gerror & GERROR_CMDQ) )
    {
        spin_unlock_irqrestore(&q->error_lock, flags);
        return;
    }

    cons = smmu_read(smmu, SMMU_CMDQ_CONS);
    cmd = &q->base[Q_SLOT(q, cons) * CMD_WORDS];

    switch ( CMDQ_CONS_ERR(cons) )
    {
    case CMDQ_ERR_NONE:
        break;

    case CMDQ_ERR_ABT:
        /* The fetch failed; nothing was executed.  Try it again. */
        atomic_inc(&smmu->stats.cmdq_abt);
        break;

    case CMDQ_ERR_ATC_SYNC:
        /*
         * A device has not answered that its own TLB is empty.  No ATC_INV is
         * issued here, nor is ATS allowed, so this says that the SMMU is not
         * what it seems to be.  The sync is done again: the queue goes on.
         */
        atomic_inc(&smmu->stats.cmdq_atc);
        smmu_distrust(smmu, "a device TLB was not invalidated");
        break;

    case CMDQ_ERR_ILL:
    default:
        atomic_inc(&smmu->stats.cmdq_ill);
        w0 = cmdq_superset(cmd);
        if ( !w0 )
        {
            if ( !smmu_is_dead(smmu) )
                printk(XENLOG_ERR
                       "pviommu: %s: command %016"PRIx64" %016"PRIx64" rejected (error %u)\n",
                       dt_node_full_name(smmu->node), cmd[0], cmd[1],
                       CMDQ_CONS_ERR(cons));
            smmu_distrust(smmu, "a command can't be repaired");
            w0 = CMD_OP_SYNC | CMD_SYNC_CS_NONE;
        }
        /* What waits for a rejected sync's word finds out by cons. */
        cmd[0] = w0;
        cmd[1] = (w0 & 0xff) == CMD_OP_CFGI_ALL ? CMD_CFGI_ALL_RANGE : 0;
        if ( !(smmu->flags & SMMU_F_COHERENT) )
            clean_dcache_va_range(cmd, CMD_WORDS * 8);
        break;
    }

    /* writel() orders the repaired slot before the acknowledge [C]. */
    writel(smmu_read(smmu, SMMU_GERRORN) ^ GERROR_CMDQ,
           smmu->base + SMMU_GERRORN);

    spin_unlock_irqrestore(&q->error_lock, flags);
}

/*
 * (4) of the algorithm.  Interrupts are off.  It goes round again only for what
 * others have marked meanwhile: at most one batch of each CPU at a time, and
 * N slots in all before somebody has to wait for room.
 */
static void cmdq_publish(struct smmu_device *smmu)
{
    struct smmu_cmdq *q = &smmu->cmdq;
    uint32_t i;

    do {
        smp_mb(); /* [A], [B] */

        if ( cmpxchg(&q->publishing, 0, 1) != 0 )
            return;

        i = q->published;
        while ( ACCESS_ONCE(q->phase[Q_SLOT(q, i)]) == Q_PHASE(q, i) )
            i++;

        if ( i != q->published )
        {
            q->published = i;
            /*
             * [C] writel() has the barrier that makes the slots visible to
             * the SMMU before the index: our own writes, and those of others
             * whose marks were read above.  Partner: smp_wmb() in (3), and
             * the SMMU's read of PROD before its fetch of the slots.
             */
            smp_rmb();
            writel(Q_REG(q, i), smmu->base + SMMU_CMDQ_PROD);
        }

        smp_mb(); /* publication before the release, partner: cmpxchg above */
        ACCESS_ONCE(q->publishing) = 0;
        smp_mb(); /* [B] */
    } while ( ACCESS_ONCE(q->phase[Q_SLOT(q, i)]) == Q_PHASE(q, i) );
}

/* (1) of the algorithm; on success interrupts are off, @flags restores them. */
static int cmdq_reserve(struct smmu_device *smmu, unsigned int nr,
                        uint32_t *first, unsigned long *flags)
{
    struct smmu_cmdq *q = &smmu->cmdq;
    s_time_t deadline = 0;
    unsigned int polls = 0;
    bool full = false;

    for ( ; ; )
    {
        uint32_t prod, cons;

        local_irq_save(*flags);
        /*
         * cons first: in the other order it may have passed the prod that was
         * read.  As it is, a full queue is really full, unless cons moved on.
         */
        cons = ACCESS_ONCE(q->cons);
        smp_rmb();
        prod = ACCESS_ONCE(q->prod);

        if ( prod + nr - cons <= Q_SIZE(q) )
        {
            /* cmpxchg() is a full barrier, partner: the one in update_cons. */
            if ( cmpxchg(&q->prod, prod, prod + nr) == prod )
            {
                *first = prod;
                return 0;
            }
            local_irq_restore(*flags);
            continue;
        }
        local_irq_restore(*flags);

        if ( cmdq_update_cons(smmu) != cons )
        {
            deadline = 0; /* slow, but alive */
            continue;
        }

        if ( smmu_is_dead(smmu) )
            return -ETIMEDOUT;

        if ( !full )
            atomic_inc(&smmu->stats.cmdq_full);
        full = true;

        if ( !deadline )
            deadline = NOW() + SMMU_SYNC_TIMEOUT;
        else if ( NOW() > deadline )
            return -ETIMEDOUT;

        if ( !(++polls % GERROR_POLL) )
            smmu_cmdq_repair(smmu);
        cpu_relax();
    }
}

static void cmdq_count(struct smmu_device *smmu, const uint64_t *cmd)
{
    switch ( cmd[0] & 0xff )
    {
    case CMD_OP_TLBI_S12_VMALL:
    case CMD_OP_TLBI_S2_IPA:
    case CMD_OP_TLBI_NSNH_ALL:
        atomic_inc(&smmu->stats.tlbi);
        break;

    case CMD_OP_CFGI_STE:
    case CMD_OP_CFGI_ALL:
        atomic_inc(&smmu->stats.cfgi);
        break;

    case CMD_OP_SYNC:
        atomic_inc(&smmu->stats.sync);
        break;
    }
}

/* The CMD_SYNC of a ticket (4.7.3). */
static void cmdq_sync_cmd(struct smmu_device *smmu, uint32_t ticket,
                          uint64_t *cmd)
{
    struct smmu_cmdq *q = &smmu->cmdq;
    uint32_t *word;

    cmd[0] = CMD_OP_SYNC | CMD_SYNC_CS_NONE;
    cmd[1] = 0;
    if ( !q->word )
        return;

    word = &q->word[Q_SLOT(q, ticket)];
    /* Published with the slot, so before the SMMU's write. */
    ACCESS_ONCE(*word) = ticket - 1;
    cmd[0] = CMD_OP_SYNC | CMD_SYNC_CS_MSI | CMD_SYNC_MSH_ISH |
             CMD_SYNC_MSIATTR_WB | CMD_SYNC_MSIDATA(ticket);
    cmd[1] = virt_to_maddr(word);
}

int smmu_batch_submit(struct smmu_batch *b, bool sync, uint32_t *ticket)
{
    struct smmu_device *smmu = b->smmu;
    struct smmu_cmdq *q = &smmu->cmdq;
    unsigned int nr = b->nr, i;
    unsigned long flags;
    uint32_t first;
    int rc;

    /* Its words are written in (2), when its ticket is known. */
    nr += sync;
    if ( !nr )
        return 0;
    b->nr = 0;
    b->syncs += sync;

    rc = cmdq_reserve(smmu, nr, &first, &flags); /* (1) */
    if ( rc )
    {
        atomic_inc(&smmu->stats.cmdq_timeout);
        smmu_distrust(smmu, "the command queue stays full");
        return rc;
    }

    if ( sync )
    {
        cmdq_sync_cmd(smmu, first + nr - 1, &b->cmd[(nr - 1) * CMD_WORDS]);
        sync_issued(q, first + nr - 1);
    }

    for ( i = 0; i < nr; i++ ) /* (2) */
    {
        uint64_t *slot = &q->base[Q_SLOT(q, first + i) * CMD_WORDS];

        slot[0] = b->cmd[i * CMD_WORDS];
        slot[1] = b->cmd[i * CMD_WORDS + 1];
        if ( !(smmu->flags & SMMU_F_COHERENT) )
            clean_dcache_va_range(slot, CMD_WORDS * 8);
        cmdq_count(smmu, slot);
    }

    smp_wmb(); /* slots before marks, partner: smp_rmb() at [C] */

    for ( i = 0; i < nr; i++ ) /* (3) */
        ACCESS_ONCE(q->phase[Q_SLOT(q, first + i)]) = Q_PHASE(q, first + i);

    cmdq_publish(smmu); /* (4) */
    local_irq_restore(flags);

    if ( ticket )
        *ticket = first + nr - 1;

    return 0;
}

/* Completed, as far as can be told without the registers? */
static bool cmdq_done(const struct smmu_cmdq *q, uint32_t ticket)
{
    if ( !sync_is_ripe(q, ticket) )
        return false;

    return (int32_t)(ACCESS_ONCE(q->cons) - (ticket + 1)) >= 0 ||
           (q->word &&
            (int32_t)(ACCESS_ONCE(q->word[Q_SLOT(q, ticket)]) - ticket) >= 0);
}

int smmu_sync_wait(struct smmu_device *smmu, uint32_t ticket) /* (5) */
{
    struct smmu_cmdq *q = &smmu->cmdq;
    uint32_t cons = ACCESS_ONCE(q->cons), now;
    s_time_t deadline = 0;
    unsigned int polls = 0;

    while ( !cmdq_done(q, ticket) )
    {
        bool look = !(++polls % GERROR_POLL);

        /* No second for each of those that still wait, or come later. */
        if ( smmu_is_dead(smmu) )
            return -ETIMEDOUT;

        if ( !q->word || look )
        {
            now = cmdq_update_cons(smmu);
            if ( now != cons )
            {
                cons = now;
                deadline = 0; /* slow, but alive */
                continue;
            }
            if ( !deadline )
                deadline = NOW() + SMMU_SYNC_TIMEOUT;
            else if ( NOW() > deadline )
            {
                atomic_inc(&smmu->stats.cmdq_timeout);
                smmu_distrust(smmu, "sync timed out");
                return -ETIMEDOUT;
            }
        }
        if ( look )
            smmu_cmdq_repair(smmu);
        cpu_relax();
    }

    /*
     * What another waiter saw of CONS is ordered by its cmpxchg() [D]; what
     * the SMMU did before it wrote the word, by this barrier.
     */
    smp_mb();

    return smmu_is_dead(smmu) ? -ETIMEDOUT : 0;
}

bool smmu_sync_done(struct smmu_device *smmu, uint32_t ticket)
{
    struct smmu_cmdq *q = &smmu->cmdq;

    if ( !cmdq_done(q, ticket) )
        cmdq_update_cons(smmu);
    if ( !cmdq_done(q, ticket) )
        return false;

    smp_mb(); /* as above */

    return !smmu_is_dead(smmu);
}

int smmu_batch_sync(struct smmu_batch *b)
{
    struct smmu_device *smmu = b->smmu;
    uint32_t ticket;
    int rc = smmu_batch_submit(b, true, &ticket);

    return rc ?: smmu_sync_wait(smmu, ticket);
}

int smmu_batch_add(struct smmu_batch *b, uint64_t w0, uint64_t w1)
{
    int rc = 0;

    if ( b->nr >= b->smmu->cmdq.batch )
        rc = b->smmu->flags & SMMU_F_FORCE_SYNC
             ? smmu_batch_sync(b) : smmu_batch_submit(b, false, NULL);

    b->cmd[b->nr * CMD_WORDS] = w0;
    b->cmd[b->nr * CMD_WORDS + 1] = w1;
    b->nr++;
    b->total++;

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
