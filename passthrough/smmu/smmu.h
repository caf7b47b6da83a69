/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One SMMUv3: its queues, stream table and VMIDs.
 *
 * This folder knows the hardware and nothing of virtio or of guests' tables.
 * Above it are contexts (context.c) and endpoints (endpoint.c).
 */
#ifndef PVIOMMU_SMMU_H
#define PVIOMMU_SMMU_H

#include <xen/device_tree.h>
#include <xen/list.h>
#include <xen/mm.h>
#include <xen/radix-tree.h>
#include <xen/spinlock.h>
#include <xen/tasklet.h>
#include <xen/timer.h>

#include <asm/atomic.h>
#include <asm/io.h>

#include "regs.h"

/*
 * A command batch is written to the queue in one piece with interrupts off:
 * 64 commands are 1 KiB, a few microseconds of stores.
 */
#define SMMU_BATCH_MAX      64

/*
 * The command queue holds every CPU's largest batch with its sync, so that a
 * queue that stays full means that the SMMU stands, not that many CPUs ask.
 * It has at least 1024 entries (16 KiB, so that no caller waits for space in
 * practice) and at most 8192: 128 KiB of contiguous memory, what 126 CPUs
 * need.  Where that or IDR1.CMDQS is less than the CPUs need, their batches
 * shrink (smmu_cmdq.batch).
 */
#define SMMU_CMDQ_MIN_LOG2  10
#define SMMU_CMDQ_MAX_LOG2  13

/* 256 events are 8 KiB; a flood beyond is counted as overflow and dropped. */
#define SMMU_EVTQ_LOG2      8

/*
 * A stream that faults so often within a window is not recorded for a while.
 * A driver's error faults once or twice, and is retried for minutes; a device
 * that walks through memory reaches this within a millisecond.
 */
#define SMMU_FAULTS_MAX     64
#define SMMU_FAULT_WINDOW   SECONDS(1)
#define SMMU_CUTOFF_TIME    SECONDS(10)
/* Streams that are counted at a time; 1.5 KiB. */
#define SMMU_FAULT_SLOTS    64

/*
 * Where that doesn't help (many streams, or such that have no entry): at most
 * so many records in a period, the others stay in the queue, which overflows
 * at no cost.  512 of them take about 1 ms.
 */
#define SMMU_EVENTS_MAX     512
#define SMMU_EVENTS_PERIOD  MILLISECS(100)

/*
 * Without an interrupt: often enough for a log, and for a guest's driver that
 * is told of faults; errors of the command queue are seen by who waits.
 */
#define SMMU_POLL_PERIOD    MILLISECS(20)

/* Known drivers wait a second; nothing legitimate takes that long. */
#define SMMU_SYNC_TIMEOUT   SECONDS(1)

/* VMID 0 belongs to the empty table of blocked endpoints, see context.c. */
#define SMMU_VMID_BLOCKED   0

struct smmu_device;

/* Command queue, see cmdq.c for the algorithm and who writes what. */
struct smmu_cmdq {
    uint64_t *base;
    uint8_t *phase;             /* per slot: parity of the pass last written */
    uint32_t *word;             /* per slot: ticket of the last sync, or NULL */
    unsigned int log2;
    unsigned int batch;         /* commands of one batch, without its sync */
    uint32_t prod;              /* next slot to reserve (free running) */
    uint32_t cons;              /* consumed up to here, a lower bound */
    uint32_t published;         /* PROD register, written by the publisher */
    unsigned int publishing;    /* 1: somebody is the publisher */
    spinlock_t error_lock;      /* serialises repair after CMDQ_ERR */
#ifdef CONFIG_ARM_PVIOMMU_SYNC_DELAY
    s_time_t *issued;           /* per slot: when its sync was */
#endif
};

/* Faults of a stream, cutoff.c. */
struct smmu_fault_slot {
    uint32_t sid;
    unsigned int count;         /* since then */
    s_time_t since;             /* 0: slot is free */
    bool off;                   /* not recorded from then on */
};

/* Messages in a second. */
struct smmu_lines {
    s_time_t since;
    unsigned int nr, hidden;
};

/* All of the tasklet, but for the timer, which only starts it. */
struct smmu_evtq {
    uint64_t *base;
    uint32_t cons;
    struct tasklet tasklet;
    struct timer timer;
    s_time_t period;            /* began then */
    unsigned int handled;       /* in it */
    struct smmu_fault_slot slot[SMMU_FAULT_SLOTS];
    struct smmu_lines lines;    /* about streams of nobody */
};

struct smmu_strtab {
    bool two_level;
    unsigned int split;         /* log2 of the entries of a level 2 table */
    uint64_t *base;             /* level 1 descriptors, or linear STEs */
    unsigned long *shared;      /* by level 1 index: of smmu_strtab_fill() */
    unsigned int nr_l1;
    spinlock_t lock;            /* level 1; then streams_lock */
};

/* All counters only grow; they are exact, each event counts once. */
struct smmu_stats {
    atomic_t tlbi, sync, cfgi;
    atomic_t cmdq_ill, cmdq_abt, cmdq_atc, cmdq_timeout, cmdq_full;
    atomic_t events, event_overflow, event_unknown, gerror;
    atomic_t event_cutoff, event_no_cutoff, event_sync, event_dropped;
    atomic_t event_throttled;
};

struct smmu_device {
    struct list_head list;      /* smmu_devices, never removed */
    unsigned int index;         /* position in smmu_devices */
    const struct dt_device_node *node;
    paddr_t addr;
    void __iomem *base, *page1;
    unsigned int sid_bits, vmid_bits, ias, oas;
    unsigned int bbml;          /* 2: a block may be split without a break */
    unsigned int flags;
#define SMMU_F_COHERENT     (1U << 0)
#define SMMU_F_RIL          (1U << 1)
#define SMMU_F_MSI          (1U << 2)   /* a sync may write a word */
/* Errata, see errata.c. */
#define SMMU_F_FORCE_SYNC   (1U << 8)   /* at most a batch without a sync */
#define SMMU_F_PAGE0        (1U << 9)   /* page 1 is in page 0 */
#define SMMU_F_CFGI_RANGE   (1U << 10)  /* CFGI_STE has no effect at times */
    unsigned int irq_evtq, irq_gerror;  /* 0: no line, it is polled */
    unsigned int dead;          /* 1: a sync timed out, nothing is believed */

    struct smmu_cmdq cmdq;
    struct smmu_evtq evtq;
    struct smmu_strtab strtab;

    spinlock_t vmid_lock;
    unsigned long *vmids;

    spinlock_t streams_lock;    /* streams and the endpoints they name */
    struct radix_tree_root streams;     /* each begins with its StreamID */

    struct smmu_stats stats;
};

extern struct list_head smmu_devices;
extern unsigned int smmu_nr;

#define smmu_for_each(s) list_for_each_entry ( s, &smmu_devices, list )

/* Commands gathered on the caller's stack, written in one piece. */
struct smmu_batch {
    struct smmu_device *smmu;
    unsigned int nr;            /* in cmd[], not submitted yet */
    unsigned int total;         /* added since smmu_batch_init() */
    unsigned int syncs;         /* submitted since then */
    uint64_t cmd[(SMMU_BATCH_MAX + 1) * CMD_WORDS];
};

/* What a stage-2 stream translates with (fields of the STE, 5.2). */
struct smmu_s2_cfg {
    paddr_t ttb;
    unsigned int vmid;
    unsigned int t0sz, sl0, ps;
};

/*
 * smmu_probe - take over the SMMUv3 of a device tree node
 *
 * Everything behind the SMMU aborts from here on.  Returns 0, -ENODEV when the
 * SMMU can't be used (a message says which register says so; its GBPA then
 * aborts), or another errno when memory or a mapping failed.  Boot only.
 * IHI 0070 3.11 (reset, disable and initialisation).
 */
int smmu_probe(const struct dt_device_node *node);

/*
 * tree.c: what the host's device tree says of an SMMU.  Whether its walks see
 * the CPUs' caches; the greatest StreamID that any node has there, 0: none.
 */
bool smmu_tree_coherent(const struct dt_device_node *node);
uint32_t smmu_tree_last_sid(const struct dt_device_node *node);

/* Set the flags of what is wrong with it: first step of smmu_probe(). */
void smmu_errata(struct smmu_device *smmu);

/* Return the SMMU of a device tree node, or NULL when it isn't ours. */
struct smmu_device *smmu_by_node(const struct dt_device_node *node);

/*
 * Request the wired interrupts.  Those that there are not, or that Xen can't
 * have, are replaced by polling: interrupts of the SMMU by MSI would need an
 * LPI, and Xen has no LPIs of its own.
 */
void smmu_irq_init(struct smmu_device *smmu);

/* Block all DMA: called on the way into a crash kernel or a reset. */
void smmu_shutdown(struct smmu_device *smmu);

/*
 * smmu_cmdq_init - allocate the command queue and program its base
 *
 * @queue_bits: IDR1.CMDQS, log2 of the largest queue the SMMU takes.
 * The queue is still disabled afterwards.  0, -ENODEV or -ENOMEM.
 */
int smmu_cmdq_init(struct smmu_device *smmu, unsigned int queue_bits);

/*
 * smmu_batch_submit - write a batch to the command queue
 *
 * @sync: append a CMD_SYNC.
 * @ticket: where to store what smmu_sync_wait() takes (with @sync).
 * Returns 0, or -ETIMEDOUT when the queue stayed full for a second (then
 * nothing of the batch was written).  Any context; waits with the interrupts
 * as they were.  The batch is empty afterwards.  IHI 0070 3.5, 4.7.3.
 */
int __must_check smmu_batch_submit(struct smmu_batch *b, bool sync,
                                   uint32_t *ticket);

/*
 * smmu_sync_wait - wait until a CMD_SYNC was consumed
 *
 * All commands submitted before the sync (by this caller) are then complete.
 * 0, or -ETIMEDOUT: then nothing that depends on it may be released.
 * Takes no lock; busy-waits, at most SMMU_SYNC_TIMEOUT.
 */
int __must_check smmu_sync_wait(struct smmu_device *smmu, uint32_t ticket);
/* The same without waiting.  False: not yet, or never. */
bool smmu_sync_done(struct smmu_device *smmu, uint32_t ticket);

/* Submit with a sync and wait for it.  Errors as the two calls above. */
int __must_check smmu_batch_sync(struct smmu_batch *b);

/* Handle a pending command queue error.  Any context. */
void smmu_cmdq_repair(struct smmu_device *smmu);

static inline void smmu_batch_init(struct smmu_batch *b,
                                   struct smmu_device *smmu)
{
    b->smmu = smmu;
    b->nr = b->total = b->syncs = 0;
}

/*
 * smmu_batch_add - append one command; submits when the batch is full
 *
 * Returns 0 or what smmu_batch_submit() returned, or, where an erratum wants
 * syncs in between, smmu_batch_sync().
 */
int __must_check smmu_batch_add(struct smmu_batch *b, uint64_t w0, uint64_t w1);

/* Invalidate all of a VMID (CMD_TLBI_S12_VMALL, 4.4.3). */
int __must_check smmu_tlbi_vmid(struct smmu_batch *b, unsigned int vmid);

/*
 * smmu_tlbi_range - invalidate intermediate physical addresses of a VMID
 *
 * @start, @last: first and last address; page aligned start.
 * @leaf: only leaf entries changed, no table was unlinked.
 * @level: level 1..3 of all the leaves, 0 when they differ.
 * CMD_TLBI_S2_IPA, with range fields where IDR3.RIL offers them (4.4.1).
 */
int __must_check smmu_tlbi_range(struct smmu_batch *b, unsigned int vmid,
                                 uint64_t start, uint64_t last, bool leaf,
                                 unsigned int level);

/*
 * How many commands smmu_tlbi_range() will issue for @pages pages (at least
 * 1), with @leaf and @level as there; saturates at UINT_MAX.
 */
unsigned int smmu_tlbi_range_cost(const struct smmu_device *smmu,
                                  uint64_t pages, bool leaf,
                                  unsigned int level);

/*
 * Stream table (strtab.c, IHI 0070 3.3.1, 3.21.3).  Callers hold the lock of
 * the domain that owns the stream, or are the only ones that know it.
 */

/*
 * Allocate and program the table, for StreamIDs up to @last at least as far as
 * IDR1.SIDSIZE allows; smmu_device.sid_bits says what it became.  0, -ENOMEM.
 */
int smmu_strtab_init(struct smmu_device *smmu, bool two_level, uint32_t last);

/* The level 2 table of a level 1 descriptor, or NULL. */
static inline uint64_t *smmu_l2(const struct smmu_strtab *st, unsigned int i)
{
    uint64_t desc = ACCESS_ONCE(st->base[i]);

    return desc ? maddr_to_virt(desc & L1STD_L2PTR_MASK) : NULL;
}

/*
 * Make room for @sid, which has an owner (smmu_device.streams).  0, -ERANGE
 * (beyond the table), -ENOMEM, -ETIMEDOUT; @syncs counts the syncs issued.
 */
int __must_check smmu_strtab_reserve(struct smmu_device *smmu, uint32_t sid,
                                     unsigned int *syncs);

/*
 * smmu_ste_invalid - nothing is reached, and attempts are recorded
 * smmu_ste_abort - nothing is reached, and nothing is recorded
 * smmu_ste_s2 - translate with @cfg
 *
 * On return the SMMU uses the new entry only: each is followed by CFGI_STE and
 * a sync, and no step in between lets the stream reach what neither the old
 * nor the new entry lets it.  0 or -ETIMEDOUT; @syncs counts the syncs issued.
 */
int __must_check smmu_ste_invalid(struct smmu_device *smmu, uint32_t sid,
                                  unsigned int *syncs);
int __must_check smmu_ste_abort(struct smmu_device *smmu, uint32_t sid,
                                unsigned int *syncs);
int __must_check smmu_ste_s2(struct smmu_device *smmu, uint32_t sid,
                             const struct smmu_s2_cfg *cfg,
                             unsigned int *syncs);

/*
 * smmu_ste_record - record faults of a stream, or don't; that is all it changes
 *
 * Without a lock of the owner's, whoever that is: an entry that is written at
 * the same time is at most recorded again.  0, or as smmu_strtab_reserve().
 */
int __must_check smmu_ste_record(struct smmu_device *smmu, uint32_t sid,
                                 bool on, unsigned int *syncs);

/*
 * smmu_strtab_fill - what streams without an owner do
 *
 * @first, @nr: StreamIDs; those in smmu_device.streams keep their entries.
 *         Level 2 tables of whole buses without any of those are freed.
 * @cfg: how they translate, or NULL: they reach nothing.
 * @new: with @cfg, a table from smmu_l2_alloc(), to be shared by whole buses
 *       (2^split streams); @old: that of the last call, or NULL.
 * 0: @old is not in use any more; -ETIMEDOUT: an SMMU may use both tables;
 * -ERANGE, -ENOMEM, -EBUSY (a bus is filled by somebody else): nothing has
 * changed.  In between a stream does what it did, what it will do, or nothing.
 */
int __must_check smmu_strtab_fill(struct smmu_device *smmu, uint32_t first,
                                  uint32_t nr, const struct smmu_s2_cfg *cfg,
                                  const uint64_t *old, uint64_t *new,
                                  unsigned int *syncs);
uint64_t *smmu_l2_alloc(const struct smmu_device *smmu);
void smmu_l2_free(const struct smmu_device *smmu, uint64_t *l2);

/*
 * VMIDs.  smmu_vmid_alloc() returns one, or -ENOSPC when all are in use.
 * smmu_vmid_free() must follow a completed invalidation of the VMID.
 */
int smmu_vmid_alloc(struct smmu_device *smmu);
void smmu_vmid_free(struct smmu_device *smmu, unsigned int vmid);

/* Event queue (event.c, IHI 0070 3.5, 7). */
int smmu_evtq_init(struct smmu_device *smmu, unsigned int queue_bits);

/*
 * cutoff.c.  smmu_cutoff_count(): one more fault of that stream; false: it was
 * cut off, forget it; @cut_off: it is cut off from here on.
 * smmu_cutoff_expire(): record those again whose time is over; returns when
 * the next one's is, or STIME_MAX.
 */
bool smmu_cutoff_count(struct smmu_device *smmu, uint32_t sid, bool *cut_off);
s_time_t smmu_cutoff_expire(struct smmu_device *smmu);

/* One event, decoded. */
struct smmu_event {
    struct smmu_device *smmu;
    uint32_t sid;
    unsigned int id;            /* EVT_* */
    uint64_t addr, fetch;       /* of the access; of the entry not readable */
    bool has_addr, has_fetch, read, insn;
    bool cut_off;               /* later ones are not recorded for a while */
};
/*
 * Called for each event, without locks, in softirq context: fault.c.  Returns
 * the work items that a guest has made it cost, 2 for each of its descriptors.
 */
unsigned int pvi_smmu_event(const struct smmu_event *ev);
const char *smmu_event_name(unsigned int id);

/* Waits on this SMMU have failed, and all later ones will. */
static inline bool smmu_is_dead(const struct smmu_device *smmu)
{
    return ACCESS_ONCE(smmu->dead);
}

static inline uint32_t smmu_read(const struct smmu_device *smmu, unsigned int r)
{
    return readl_relaxed(smmu->base + r);
}

#endif /* PVIOMMU_SMMU_H */
