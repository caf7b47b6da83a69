/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Inside of the driver: domains, contexts, endpoints, the flush queue.
 * The order of their locks: lock.h.
 */
#ifndef PVIOMMU_PVIOMMU_H
#define PVIOMMU_PVIOMMU_H

#include <xen/iommu.h>
#include <xen/list.h>
#include <xen/pci.h>
#include <xen/sched.h>
#include <xen/spinlock.h>
#include <xen/tasklet.h>
#include <xen/timer.h>

#include "compat.h"
#include "lock.h"
#include "smmu/smmu.h"
#include "arm64/s2fmt.h"

/*
 * Work items in one slice: an entry written, cleared or released, a page
 * reference taken or dropped, a request decoded.  At about 200 ns each on a
 * server core that is the 100 microseconds that a slice may take.
 */
#define PVI_SLICE_WORK      512

/* Lazy: ranges that wait for one flush.  Also what 8 bits of an entry name. */
#define PVI_FQ_RANGES       256
/*
 * Of these, kept for what leaves the p2m: it is removed with the p2m lock held,
 * and should not have to make room.
 */
#define PVI_FQ_RESERVE      16
/* Lazy: pages pinned by one window; 32 MiB, a deep NVMe queue of 128K I/Os. */
#define PVI_FQ_PAGES        8192
/* Lazy: age at which a window closes; what Linux's own flush queue uses. */
#define PVI_FQ_AGE          MILLISECS(10)
/*
 * Strict: age at which what left the p2m while a guest was built is flushed, if
 * the guest hasn't been started by then.  It only bounds how long the pages of
 * a guest that never starts stay pinned.
 */
#define PVI_FQ_BUILD_AGE    SECONDS(1)
/*
 * Lazy, early flushes (pvi_fq_start()): for how many slices after a MAP that
 * met what was pending, and up to how many ranges.  A guest that defers on its
 * own has hundreds pending then, and one sync for all of them is cheap enough.
 */
#define PVI_FQ_EARLY_SLICES 64
#define PVI_FQ_EARLY_RANGES 8
/* SMMUs for whose syncs a flush waits together. */
#define PVI_FQ_SMMUS        8
/* Contexts of one domain: the 1000 of large hosts; 8 KiB of pointers. */
#define PVI_MAX_CONTEXTS    1024
/* Endpoints of one domain: 4 full buses; 400 bytes each in Xen's heap. */
#define PVI_MAX_ENDPOINTS   1024
/*
 * Buses of a guest's bridge on which endpoints are attached at the same time: a
 * change of bypass writes 256 stream table entries for each in one go.
 */
#define PVI_BRIDGE_BUSES    32
/*
 * Above this many commands a flush invalidates the VMID instead: refilling a
 * TLB costs about as much as the SMMU needs for 16 to 32 commands.
 */
#define PVI_TLBI_RANGES_MAX 16

/* Lines about faults in a second, for each domain: what a person can read. */
#define PVI_FAULT_LINES     10

struct p2m_domain;
struct pvi_bridge;
struct pvi_domain;
struct pvi_foreign;
struct viommu;

/* Why a sync was issued; each has a counter flush_<name>. */
enum pvi_cause {
    PVI_CAUSE_STRICT,       /* end of a slice, strict=1 */
    PVI_CAUSE_COUNT,        /* PVI_FQ_RANGES reached */
    PVI_CAUSE_PAGES,        /* PVI_FQ_PAGES reached */
    PVI_CAUSE_AGE,          /* PVI_FQ_AGE reached */
    PVI_CAUSE_OVERLAP,      /* MAP over a pending range */
    PVI_CAUSE_MEMORY,       /* table pages are needed */
    PVI_CAUSE_DETACH,       /* an endpoint leaves a context */
    PVI_CAUSE_SWITCH,       /* strict was turned on */
    PVI_CAUSE_DESTROY,      /* the domain dies */
    PVI_CAUSE_CONFIG,       /* stream table entries, VMID release */
    PVI_CAUSE_P2M,          /* a p2m entry changed */
    PVI_CAUSE_EARLY,        /* before somebody needs it */
    PVI_NR_CAUSES
};

/*
 * Stage-2 tables of a context, s2pt.c.  All under pvi_domain.tlock.
 */
struct s2pt {
    struct domain *d;           /* whose pool pays */
    struct page_info *root;
    unsigned int start_level, ias;
    bool clean;                 /* walks don't snoop: clean each entry */
    unsigned long nr_tables, nr_pages;
    struct page_list_head empty;    /* linked tables without entries */
    struct page_info *recent;   /* a last level table, or NULL */
};

/* What one call of s2pt_unmap() cleared. */
struct s2_cleared {
    uint64_t first, last;       /* first > last: nothing */
    unsigned long pages;        /* valid pages among it */
    bool table;                 /* a table was unlinked too */
    unsigned int levels;        /* bit per level of the leaves */
};

int s2pt_init(struct s2pt *pt, struct domain *d, unsigned int ias, bool clean);

/*
 * s2pt_map - write leaf entries for machine contiguous pages
 *
 * @iova: input address, page aligned.  @mfn, @nr: what it maps to.
 * @prot: S2_READ and S2_WRITE, attribute, shareability and software bits
 *        except S2_SW_FIRST.
 * @first: a mapping begins at @iova.
 * Returns the number of pages mapped (at least 1, at most to the end of one
 * table, or a block), or
 *  -EBUSY   a valid mapping is in the way
 *  -EAGAIN  a pending entry is in the way: flush, release, and call again
 *  -ENOMEM  the domain's pool has no page for a table
 * The page references that the entries stand for are the caller's to take.
 *
 * A pending entry that named the same page with the same rights becomes valid
 * again: what a TLB may still hold of it is true.  It has its reference, so
 * the new one is dropped, and @pd's flush queue is told.  With @pd NULL such an
 * entry is in the way like others.
 */
long __must_check s2pt_map(struct s2pt *pt, struct pvi_domain *pd,
                           uint64_t iova, mfn_t mfn, unsigned long nr,
                           s2_pte_t prot, bool first);

/*
 * s2pt_map_huge - a 1G block at a 1G aligned @iova; otherwise as s2pt_map()
 *
 * -ENOSPC: there is a table already, use s2pt_map().
 */
int __must_check s2pt_map_huge(struct s2pt *pt, uint64_t iova, mfn_t mfn,
                               s2_pte_t prot, bool first);

/*
 * s2pt_room - is there room for a block at @level, 1 or 2?
 *
 * 0; -ENOSPC: there is a table; -EBUSY, -EAGAIN as s2pt_map().  To ask before
 * the references of all its pages are taken; allocates nothing.
 */
int __must_check s2pt_room(struct s2pt *pt, uint64_t iova, unsigned int level);

/*
 * s2pt_splits - would clearing @start..@last split a mapping?
 *
 * Looks at the two ends only: a mapping that is cut is cut there.
 */
bool s2pt_splits(struct s2pt *pt, uint64_t start, uint64_t last);
/*
 * s2pt_begin - a mapping begins at @iova, if something is mapped there
 *
 * What was mapped in front of it has been revoked.
 */
void s2pt_begin(struct s2pt *pt, uint64_t iova);

/*
 * s2pt_unmap - turn valid entries of @start..@last into pending ones
 *
 * @slot: the flush queue slot they will belong to.
 * @budget: work items left, counted down; stops at 0.
 * @c: what was cleared, added to what it holds.
 * Returns the address to go on from; > @last when done.
 */
uint64_t s2pt_unmap(struct s2pt *pt, uint64_t start, uint64_t last,
                    unsigned int slot, int *budget, struct s2_cleared *c);

/*
 * s2pt_release - drop what pending entries of @slot hold, make them empty
 *
 * Only after a sync that was issued after s2pt_unmap() has completed.
 * Returns as s2pt_unmap().
 */
uint64_t s2pt_release(struct s2pt *pt, uint64_t start, uint64_t last,
                      unsigned int slot, int *budget);

/*
 * s2pt_reclaim - unlink tables without entries, as s2pt_unmap() does
 *
 * Returns how many; they are released with @slot like anything else.
 */
unsigned int s2pt_reclaim(struct s2pt *pt, unsigned int slot, int *budget,
                          struct s2_cleared *c);

/*
 * s2pt_destroy - release everything, valid or pending, and all tables
 *
 * No hardware may know the root any more.  @cursor starts at 0; returns true
 * when done.
 */
bool s2pt_destroy(struct s2pt *pt, uint64_t *cursor, int *budget);

/* Leaf entry for @iova, 0 when there is none: for tests and dumps. */
s2_pte_t s2pt_lookup(struct s2pt *pt, uint64_t iova, unsigned int *level);

/*
 * Contexts, context.c.
 */
enum pvi_ctx_kind {
    PVI_CTX_DEFAULT,        /* the p2m: IOVA is guest physical */
    PVI_CTX_BLOCKED,        /* an empty table: each access faults */
    PVI_CTX_PAGING,         /* a virtio-iommu domain's own table */
};

/* A context in use on an SMMU. */
struct pvi_att {
    struct list_head list;
    struct smmu_device *smmu;
    unsigned int vmid;
    unsigned int nr_streams;
    unsigned int reserved;      /* that may come back, see pvi_att_reserve() */
};

struct pvi_context {
    struct pvi_domain *pd;
    enum pvi_ctx_kind kind;
    uint32_t id;
    unsigned int nr_endpoints;
    struct s2pt pt;             /* PVI_CTX_PAGING only */

    spinlock_t att_lock;
    struct list_head atts;      /* struct pvi_att with streams */
    struct list_head idle_atts; /* without; under pvi_domain.lock alone */

    unsigned int fq_entries;    /* entries of the flush queue that name us */
    /* Scratch of a flush while it holds tlock. */
    unsigned int fq_cost;
    int fq_vmid;
    bool fq_done;

    struct list_head dying;     /* pvi_domain.dying */
    uint64_t cursor;            /* how far it is destroyed */
};

/* May a stream use it?  Without its lock: the caller says why that will do. */
static inline bool pvi_in_use(const struct pvi_context *ctx)
{
    return ACCESS_ONCE(ctx->atts.next) != &ctx->atts;
}

/*
 * Endpoints, endpoint.c.
 */
enum pvi_ep_kind { PVI_EP_PCI, PVI_EP_DT, PVI_EP_BRIDGE };

/* A stream in front of an SMMU; several endpoints may share it. */
struct pvi_stream {
    uint32_t sid;               /* first: smmu_device.streams */
    uint32_t epid;              /* of the first endpoint, for faults */
    struct smmu_device *smmu;
    struct pvi_domain *pd;
    unsigned int users;         /* endpoints */
    unsigned int attached;      /* of which attached by the guest */
    struct pvi_context *ctx;    /* what the entry says */
};

#define PVI_EP_MAX_STREAMS  16  /* platform devices have a handful */

struct pvi_endpoint {
    struct list_head list;      /* pvi_domain.endpoints */
    struct pvi_domain *pd;
    enum pvi_ep_kind kind;
    uint32_t epid;
    const char *path;           /* of PVI_EP_DT, for messages */
    bool present;               /* false: removed, but still attached */
    struct pvi_bridge *bridge;  /* attached behind it by the guest, or NULL */
    struct pvi_context *ctx;    /* attached by the guest, or NULL */
    unsigned int nr_streams;
    struct pvi_stream *streams[PVI_EP_MAX_STREAMS];
};

/*
 * The flush queue, flushq.c.  Slots are a ring: [head, synced) may be
 * released, [synced, tail) wait for a flush.
 */
struct pvi_fq_entry {
    struct pvi_context *ctx;
    uint64_t start, last;
    uint64_t cursor;            /* release has come this far */
    s_time_t queued;
    unsigned long pages;        /* that it pins */
    mfn_t mfn;                  /* the first of them, if they left the p2m */
    bool table;
    unsigned int levels;
};

/* Syncs that were issued for what was queued before @to. */
struct pvi_fq_flight {
    unsigned int to;
    struct { bool submitted; uint32_t ticket; } t[PVI_FQ_SMMUS];
};

struct pvi_flushq {
    struct pvi_fq_entry e[PVI_FQ_RANGES];
    struct pvi_fq_flight early; /* nobody waits for it, if early_on */
    bool early_on;
    unsigned int early_left;    /* slices that will start one */
    unsigned int head, synced, tail;    /* free running */
    unsigned int started;       /* a flush has begun with what is before it */
    unsigned long pages;        /* in [synced, tail) */
    struct timer timer;
};

static inline unsigned int pvi_fq_count(const struct pvi_flushq *fq)
{
    return fq->tail - fq->synced;
}

struct pvi_stats {
    unsigned long kicks, attach, detach, map, unmap, probe, bad;
    unsigned long ranges;       /* ranges queued for a flush */
    unsigned long revived;      /* pages mapped again before their flush */
    unsigned long revoked;      /* pages that left the p2m while mapped */
    atomic_t tlbi, sync;
    atomic_t flush[PVI_NR_CAUSES];
    atomic_t faults, faults_dropped, cutoffs, errors;
};

struct pvi_domain {
    struct domain *d;
    spinlock_t lock, tlock;
    bool strict, bypass;
    bool broken;                /* a sync failed: nothing is released again */
    struct tasklet fail;        /* cuts the devices off then */

    bool created;               /* the toolstack has said what it gets */
    unsigned int nr_endpoints;
    struct list_head endpoints, bridges;

    struct pvi_context dflt, blocked;
    struct pvi_context **ctx;   /* by id, NULL without virtio-iommu */
    unsigned int nr_contexts;
    struct list_head dying;

    struct pvi_flushq fq;
    atomic_t hw_tables;         /* of the hardware domain, which has no pool */
    bool p2m_wait;              /* under the p2m lock: wait at its end */
    struct pvi_foreign *foreign;    /* NULL: none mapped so far */
    struct viommu *viommu;      /* NULL without virtio-iommu */
    struct smmu_lines fault_lines;

    bool work;                  /* something waits for pvi_vcpu_work() */
    struct vcpu *worker;        /* the vCPU that does it */

    struct pvi_stats stats;
};

#define dom_pvi(d) ((struct pvi_domain *)dom_iommu(d)->arch.priv)

/* context.c */
void pvi_context_init(struct pvi_context *ctx, struct pvi_domain *pd,
                      enum pvi_ctx_kind kind);
int pvi_context_global_init(void);
/* Width of guest physical addresses: the narrowest SMMU's. */
unsigned int pvi_ias(void);
/* Width of addresses in the other contexts. */
unsigned int pvi_ctx_bits(void);
/* Create PVI_CTX_PAGING with @id.  NULL: no memory. */
struct pvi_context *pvi_context_create(struct pvi_domain *pd, uint32_t id);
/* The domain knows it by its id from here on. */
void pvi_context_enter(struct pvi_context *ctx);
/* Forget the id, and queue a context without endpoints for destruction. */
void pvi_context_kill(struct pvi_context *ctx);
/* One slice of that.  True when nothing is left. */
bool pvi_context_reap(struct pvi_domain *pd, int *budget);
/*
 * Keep a VMID of @ctx on @smmu for a stream that may need it later, so that a
 * DETACH can't fail (invariant 8).  0, -ENOSPC, -ENOMEM.
 */
int __must_check pvi_att_reserve(struct pvi_context *ctx,
                                 struct smmu_device *smmu);
void pvi_att_unreserve(struct pvi_context *ctx, struct smmu_device *smmu);
/*
 * The VMID of @ctx on @smmu, for one more stream (or bridge).  -ENOSPC: all
 * VMIDs are in use; -ENOMEM.
 */
int pvi_att_get(struct pvi_context *ctx, struct smmu_device *smmu);
/* One less; the last one invalidates and frees the VMID.  -ETIMEDOUT. */
int __must_check pvi_att_put(struct pvi_context *ctx, struct smmu_device *smmu);
/* What an entry that translates with @ctx says. */
void pvi_context_cfg(const struct pvi_context *ctx,
                     const struct smmu_device *smmu, unsigned int vmid,
                     struct smmu_s2_cfg *cfg);
/*
 * Make a stream use @ctx, or nothing with NULL.  The old context's VMID is
 * invalidated and freed with its last stream.  0, -ENOSPC (VMIDs), -ENOMEM,
 * -ETIMEDOUT.  On -ENOSPC and -ENOMEM nothing has changed.
 */
int __must_check pvi_stream_set(struct pvi_stream *s, struct pvi_context *ctx);

/*
 * flushq.c.  pvi_fq_open(), _close(), _revived(), _p2m(), _overlaps() and
 * _due() are called with pd->tlock held, the others without.
 */
void pvi_fq_init(struct pvi_domain *pd);
void pvi_fq_exit(struct pvi_domain *pd);
/*
 * Slot for a range of @ctx that begins at @start, or -ENOSPC: flush first.
 * @from..@start may be in the same slot, since nothing is mapped there.
 * @reserve: free slots that must be left, 0 or PVI_FQ_RESERVE.
 */
int pvi_fq_open(struct pvi_domain *pd, struct pvi_context *ctx, uint64_t from,
                uint64_t start, unsigned int reserve);
/* Record what was cleared with that slot (nothing: the slot stays free). */
void pvi_fq_close(struct pvi_domain *pd, struct pvi_context *ctx, int slot,
                  const struct s2_cleared *c);
/* @nr pages of that slot's were mapped again. */
void pvi_fq_revived(struct pvi_domain *pd, unsigned int slot, unsigned long nr);
/*
 * Queue guest physical addresses that have left the p2m, and the references
 * on @refs machine contiguous pages from @mfn on.  False: there is no room.
 */
bool __must_check pvi_fq_p2m(struct pvi_domain *pd, uint64_t start,
                             uint64_t last, mfn_t mfn, unsigned long refs);
/* See to it that what is queued, and waited for by nobody, gets old only. */
void pvi_fq_watch(struct pvi_domain *pd);
/* Is there something queued and not synced in this range? */
bool pvi_fq_overlaps(struct pvi_domain *pd, const struct pvi_context *ctx,
                     uint64_t start, uint64_t last);
/*
 * Invalidate all that is queued when it is called, and wait for that.  0 or
 * -ETIMEDOUT.  Busy-waits; the caller may hold pd->lock or the p2m lock.
 */
int __must_check pvi_fq_flush(struct pvi_domain *pd, enum pvi_cause cause);
/*
 * A lazy slice has ended: if the guest has lately mapped what it had just
 * unmapped, issue the invalidation of what is queued, and go on; see flushq.c.
 */
void pvi_fq_start(struct pvi_domain *pd);
/*
 * A MAP has met something that is queued: complete that.  0: look again, it may
 * take another call; -ETIMEDOUT.
 */
int __must_check pvi_fq_overlap(struct pvi_domain *pd);
/* Release what was invalidated.  True when nothing is left to release. */
bool pvi_fq_release(struct pvi_domain *pd, int *budget);
/* The same for who can't come back: one slice now, the others by the timer. */
void pvi_fq_release_later(struct pvi_domain *pd);
/* Does the queue name @ctx?  Takes pd->tlock. */
bool pvi_fq_has(struct pvi_domain *pd, const struct pvi_context *ctx);
/* Cause for which a lazy domain must flush now, or PVI_NR_CAUSES. */
enum pvi_cause pvi_fq_due(struct pvi_domain *pd);
static inline bool pvi_fq_pending(const struct pvi_domain *pd)
{
    return ACCESS_ONCE(pd->fq.synced) != ACCESS_ONCE(pd->fq.tail);
}

/*
 * foreign.c: pages of other domains, and with @mmio registers of devices, in
 * contexts, so that they leave the devices when they leave the p2m (invariant
 * 10).  Called with pd->tlock held.
 */
/* 0, or -ENOMEM: the pool is empty, or too many share a bucket. */
int __must_check pvi_foreign_add(struct pvi_domain *pd, unsigned int ctx_id,
                                 uint64_t iova, gfn_t gfn, mfn_t mfn,
                                 bool mmio);
void pvi_foreign_del(struct pvi_domain *pd, unsigned int ctx_id, uint64_t iova,
                     mfn_t mfn, bool mmio);
/*
 * Clear all entries made for @nr guest frames from @gfn on; they are queued
 * like unmapped ones.  @mfn: that of the one page, if it is one and no device's
 * register; it is quicker to find.  Otherwise INVALID_MFN, and all records are
 * looked at, 16320 at most.  @found is set if there are some, or some that were
 * unmapped and are not released yet: a device may reach the page until the next
 * flush.  -ENOSPC: no slot, flush and release, then call again.
 */
int __must_check pvi_foreign_revoke(struct pvi_domain *pd, gfn_t gfn, mfn_t mfn,
                                    unsigned long nr, bool *found);
void pvi_foreign_free(struct pvi_domain *pd);

/* A page for a table, from the domain's pool (s2pt.c). */
struct page_info *pvi_pool_get(struct domain *d);
void pvi_pool_put(struct domain *d, struct page_info *pg);

/* p2m.c: wait for what this CPU's batch has taken from a p2m. */
int pvi_p2m_settle(void);
/* Invalidate the whole p2m on all SMMUs that use it.  0 or -ETIMEDOUT. */
int __must_check pvi_p2m_flush_all(struct pvi_domain *pd);

/* Count a submitted batch for the domain. */
void pvi_count(struct pvi_domain *pd, unsigned int tlbi, unsigned int syncs,
               enum pvi_cause cause);
/* A sync failed: pin everything, stop the domain, say so once. */
void pvi_fail(struct pvi_domain *pd, const char *what);

/* endpoint.c: callers hold no lock unless it says so. */
struct pvi_ep_desc {
    enum pvi_ep_kind kind;
    uint32_t epid;
    const char *path;           /* of PVI_EP_DT; stays */
    unsigned int nr_streams;
    struct { struct smmu_device *smmu; uint32_t sid; } s[PVI_EP_MAX_STREAMS];
};
/*
 * Give a device to a domain.  It is in the state that `bypass` says.
 * -EBUSY: a stream of it belongs to another domain; -EEXIST: added already;
 * others as smmu_strtab_reserve() and pvi_stream_set().
 */
int pvi_endpoint_add(struct pvi_domain *pd, const struct pvi_ep_desc *desc);
/* Take it away; its streams reach nothing afterwards.  -ENODEV, -ETIMEDOUT. */
int pvi_endpoint_remove(struct pvi_domain *pd, enum pvi_ep_kind kind,
                        uint32_t epid);
/* With pd->lock held. */
struct pvi_endpoint *pvi_endpoint_find(struct pvi_domain *pd, uint32_t epid);
/*
 * Attach to @ctx, or with NULL to what `bypass` says.  With pd->lock held.
 * -EXDEV: a stream is shared with an endpoint that is attached elsewhere;
 * others as pvi_stream_set().
 */
int __must_check pvi_endpoint_attach(struct pvi_endpoint *ep,
                                     struct pvi_context *ctx);
/*
 * The bypass configuration has changed: complete what is pending, then move
 * what nobody has attached.  With pd->lock held.  Errors as pvi_fq_flush(),
 * pvi_stream_set() and smmu_strtab_fill(); some may have changed then.
 */
int pvi_endpoints_refresh(struct pvi_domain *pd);
/* What endpoints use that the guest has not attached. */
struct pvi_context *pvi_unattached(struct pvi_domain *pd);
/*
 * pvi_endpoint_add() with pd->lock held.  -ENOSPC: PVI_MAX_ENDPOINTS.
 */
int pvi_endpoint_add_locked(struct pvi_domain *pd,
                            const struct pvi_ep_desc *desc);
/*
 * A detached endpoint behind a guest's bridge: drop the record; its streams
 * do what those of the bridge do.  With pd->lock held.
 */
void pvi_endpoint_forget(struct pvi_endpoint *ep);

/*
 * bridge.c: PCI host bridges of guests.  _add() and _remove() are called
 * without locks, _fault() under streams_lock at most, the others with pd->lock
 * held.
 */
/* 0, -ENODEV, -EINVAL, -E2BIG (iommu-map), or as smmu_strtab_fill(). */
int __must_check pvi_bridge_add(struct pvi_domain *pd,
                                const struct dt_device_node *node);
int __must_check pvi_bridge_remove(struct pvi_domain *pd,
                                   const struct dt_device_node *node);
/* The default of unattached streams has changed. */
int pvi_bridges_refresh(struct pvi_domain *pd);
/* After a failure: its streams reach nothing, as far as SMMUs still answer. */
void pvi_bridges_cut_off(struct pvi_domain *pd);
/* Does a bridge of the domain have a stream for @epid? */
bool pvi_bridge_has(struct pvi_domain *pd, uint32_t epid);
/* Make it an endpoint of its own. */
struct pvi_endpoint *pvi_bridge_endpoint(struct pvi_domain *pd, uint32_t epid,
                                         int *rc);
/* Whose bridge has this stream?  With a reference on the domain, or NULL. */
struct pvi_domain *pvi_bridge_fault(const struct smmu_device *smmu,
                                    uint32_t sid, uint32_t *epid);
struct pvi_bridge_info {
    uint32_t id, nr_ids, sid, nr_sids;
    unsigned int smmu;
};
/* The @n-th bridge; 0: there are no more. */
unsigned int pvi_bridge_describe(struct pvi_domain *pd, unsigned int n,
                                 struct pvi_bridge_info *info);

/*
 * gpa.c: guest frames to machine pages
 *
 * @nr: pages wanted.  On success @run holds a reference on each of run->nr
 * pages unless run->noref.  -EFAULT: nothing there that may be mapped;
 * -EPERM: read only, and @write.
 * pvi_gpa_get_locked() is called with the p2m lock held, at least for reading:
 * who enters a foreign page into a table holds on to it until that is done, so
 * that a removal finds the entry.
 */
struct pvi_run {
    gfn_t gfn;
    mfn_t mfn;
    unsigned long nr;
    s2_pte_t prot;              /* attributes, permission, S2_SW_ bits */
    bool noref;                 /* registers of a device */
    bool foreign;               /* leaves with the p2m, S2_SW_FOREIGN in prot */
    unsigned int order;         /* of the p2m entry */
};
int __must_check pvi_gpa_get_locked(struct p2m_domain *p2m, gfn_t gfn,
                                    unsigned long nr, bool write,
                                    struct pvi_run *run);
int __must_check pvi_gpa_get(struct domain *d, gfn_t gfn, unsigned long nr,
                             bool write, struct pvi_run *run);
void pvi_gpa_put(const struct pvi_run *run, unsigned long from);

/* domain.c */
int pvi_domain_init(struct domain *d);
/*
 * Turn strict mode on or off on a live domain.  Turning it on returns after
 * all that was pending is complete.  0 or -ETIMEDOUT.
 */
int __must_check pvi_set_strict(struct pvi_domain *pd, bool strict);
void pvi_domain_free(struct domain *d);
/* Let the next exit of a vCPU look. */
static inline void pvi_work(struct pvi_domain *pd)
{
    ACCESS_ONCE(pd->work) = true;
}

/* fwnode.c: device tree bindings */
struct pvi_map_entry {
    struct smmu_device *smmu;   /* NULL: not one of ours */
    uint32_t rid, sid, nr;
};
/* Line @i of iommu-map.  -ENOENT: no such line; -EINVAL: malformed. */
int pvi_map_entry(const struct dt_device_node *bridge, unsigned int i,
                  struct pvi_map_entry *e);
bool pvi_is_bridge(const struct dt_device_node *np);
/* Is it a bridge, and is there an SMMU of ours behind it?  That, or NULL. */
struct smmu_device *pvi_bridge_smmu(const struct dt_device_node *np);
/*
 * What a node is to a guest: kind and endpoint id, of a platform device its
 * streams too.  -ENODEV: no SMMU of ours in front of it.
 */
int pvi_dt_describe(struct dt_device_node *np, struct pvi_ep_desc *desc);
int pvi_map_rid(const struct dt_device_node *bridge, uint32_t rid,
                struct pvi_ep_desc *desc);
const struct dt_device_node *pvi_bridge_by_segment(uint16_t seg);
int pvi_bridge_segment(const struct dt_device_node *bridge, uint16_t *seg);

/* cmdline.c */
extern bool opt_dom0_viommu, opt_dom0_strict, opt_dom0_bypass;

/* dump.c */
/* All counters of public/pviommu.h: XEN_PVIOMMU_NR_COUNTERS of them. */
void pvi_counters(struct pvi_domain *pd, uint64_t *c);
void pvi_dump_init(void);

#endif /* PVIOMMU_PVIOMMU_H */
