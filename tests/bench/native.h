/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * At the end of tests/unit/fake.h for the driver's files in native.c's
 * benchmark: what a release of Xen has inline, or for less than a test that
 * checks all.  A lock is one exchange and one store, a reference of a page one
 * compare-and-swap, dsb and a full barrier are mfence, the others keep the
 * compiler in order, which is what x86 needs.
 */
#ifndef NATIVE_H
#define NATIVE_H

#undef smp_rmb
#undef smp_wmb
#undef smp_mb
#undef dsb
#undef cmpxchg
#undef write_atomic
#define smp_rmb()           barrier()
#define smp_wmb()           barrier()
#define smp_mb()            __sync_synchronize()
#define dsb(x)              __sync_synchronize()
#define cmpxchg(p, o, n)    __sync_val_compare_and_swap(p, o, n)
#define write_atomic(p, v)  ((void)(ACCESS_ONCE(*(p)) = (v)))

static inline void native_lock(spinlock_t *l)
{
    while ( __atomic_exchange_n(&l->held, true, __ATOMIC_ACQUIRE) )
        continue;
}

static inline void native_unlock(spinlock_t *l)
{
    __atomic_store_n(&l->held, false, __ATOMIC_RELEASE);
}

static inline struct page_info *native_page(mfn_t mfn)
{
    return &fake_frames[mfn_x(mfn) - (FAKE_RAM_BASE >> PAGE_SHIFT)];
}

static inline mfn_t native_mfn(const struct page_info *pg)
{
    return _mfn((pg - fake_frames) + (FAKE_RAM_BASE >> PAGE_SHIFT));
}

static inline void *native_map(mfn_t mfn)
{
    return fake_ram + (mfn_to_maddr(mfn) - FAKE_RAM_BASE);
}

static inline bool native_get(struct page_info *pg, const struct domain *d)
{
    unsigned long n = ACCESS_ONCE(pg->count_info);

    do {
        if ( !n || ACCESS_ONCE(pg->owner) != d )
            return false;
    } while ( !__atomic_compare_exchange_n(&pg->count_info, &n, n + 1, false,
                                           __ATOMIC_ACQ_REL,
                                           __ATOMIC_RELAXED) );

    return true;
}

/* The guest keeps its pages: this is never the last reference. */
static inline void native_put(struct page_info *pg)
{
    unsigned long n = ACCESS_ONCE(pg->count_info);

    do {
        BUG_ON(n <= 1);
    } while ( !__atomic_compare_exchange_n(&pg->count_info, &n, n - 1, false,
                                           __ATOMIC_ACQ_REL,
                                           __ATOMIC_RELAXED) );
}

/* No walk: memory begins at 0 and is one piece. */
static inline mfn_t native_p2m(struct p2m_domain *p2m, gfn_t gfn,
                               p2m_type_t *t, p2m_access_t *a,
                               unsigned int *order, bool *valid)
{
    bool ram = gfn_x(gfn) < p2m->size;

    *t = ram ? p2m_ram_rw : p2m_invalid;
    *a = p2m_access_rwx;
    *order = p2m->order;
    *valid = true;

    return ram ? mfn_add(p2m->base, gfn_x(gfn)) : INVALID_MFN;
}

#define spin_lock(l)            native_lock(l)
#define spin_unlock(l)          native_unlock(l)
#define mfn_to_page(m)          native_page(m)
#define page_to_mfn(pg)         native_mfn(pg)
#define map_domain_page(m)      native_map(m)
#define unmap_domain_page(va)   ((void)(va))
#define get_page(pg, d)         native_get(pg, d)
#define put_page(pg)            native_put(pg)
#define p2m_get_entry(p, g, t, a, o, v) native_p2m(p, g, t, a, o, v)

#endif /* NATIVE_H */
