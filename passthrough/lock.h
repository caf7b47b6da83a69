/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Locks, outermost first; a later one may be taken under an earlier one:
 *   1. dtdevs/pcidevs lock of Xen
 *   2. pvi_domain.lock     endpoints, contexts, viommu
 *   3. p2m lock            guest frames; Xen takes it on its own, too, and
 *                          then calls p2m.c
 *   4. pvi_domain.tlock    tables, flush queue, foreign pages, pvi_domain.ctx
 *                          (which is written under both)
 *   5. pvi_context.att_lock    which VMID a context has on which SMMU
 *   6. smmu_device.strtab.lock
 *   7. smmu_device.streams_lock, vmid_lock, cmdq.error_lock, bridges_lock
 *                          leaves, as are Xen's locks of pools and of the heap
 * Two of one kind are never held at a time.  No lock is held with interrupts
 * off, none over more than one slice.
 *
 * Debug builds of Xen check 2 to 5 wherever they are taken, and that Xen calls
 * p2m.c with none of 4 and 5: what nests wrongly stops at once, not when two
 * CPUs meet.  The host tests' locks know all of them.
 */
#ifndef PVIOMMU_LOCK_H
#define PVIOMMU_LOCK_H

#include <xen/lib.h>
#include <xen/percpu.h>
#include <xen/spinlock.h>

enum pvi_lock_rank {
    PVI_LOCK_DOMAIN,
    PVI_LOCK_P2M,               /* Xen's: only looked at */
    PVI_LOCK_TABLES,
    PVI_LOCK_ATT,
};

/* Nothing of that rank, or further in, is held by this CPU. */
#ifndef NDEBUG
/* A bit for each rank; only this CPU's own, and never in an interrupt. */
DECLARE_PER_CPU(unsigned int, pvi_locks);
#define pvi_lock_check(rank) ASSERT(!(this_cpu(pvi_locks) >> (rank)))
#define pvi_lock_held(rank, held) do {                                  \
    if ( held )                                                         \
        this_cpu(pvi_locks) |= 1U << (rank);                            \
    else                                                                \
        this_cpu(pvi_locks) &= ~(1U << (rank));                         \
} while ( 0 )
#else
#define pvi_lock_check(rank) ((void)0)
#define pvi_lock_held(rank, held) ((void)0)
#endif

static inline void pvi_lock(spinlock_t *lock, enum pvi_lock_rank rank)
{
    pvi_lock_check(rank);
    spin_lock(lock);
    pvi_lock_held(rank, true);
}

static inline void pvi_unlock(spinlock_t *lock, enum pvi_lock_rank rank)
{
    pvi_lock_held(rank, false);
    spin_unlock(lock);
}

#endif /* PVIOMMU_LOCK_H */

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * tab-width: 4
 * indent-tabs-mode: nil
 * End:
 */
