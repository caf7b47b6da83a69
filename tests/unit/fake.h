/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the driver uses of Xen, for host tests.  Every Xen header the driver
 * includes is this file (the Makefile makes a one-line header for each name).
 *
 * Machine memory is an arena with a frame table.  A second copy of it is what
 * a device sees that doesn't snoop: only cache maintenance updates it.
 */
#ifndef FAKE_H
#define FAKE_H

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* xen/compile.h: the interfaces of the current tree. */
#ifndef XEN_VERSION
#define XEN_VERSION     4
#define XEN_SUBVERSION  21
#endif
#define CONFIG_HAS_PCI  1

/* xen/types.h, xen/lib.h */
typedef uint64_t paddr_t;
typedef int64_t s_time_t;
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef uint32_t __be32;
typedef uint16_t domid_t;

#define __iomem
#define __init
#define __initdata
#define __initconst
#define __hwdom_init
#define __read_mostly
#define __ro_after_init
#define cf_check
#define __must_check    __attribute__((__warn_unused_result__))
#define always_inline   inline
#define __packed        __attribute__((__packed__))
#define __maybe_unused  __attribute__((__unused__))
#define fallthrough     __attribute__((__fallthrough__))
#define likely(x)       __builtin_expect(!!(x), 1)
#define unlikely(x)     __builtin_expect(!!(x), 0)
#define offsetof_end(t, m) (offsetof(t, m) + sizeof(((t *)0)->m))
#define container_of(p, type, m) \
    ((type *)((char *)(p) - offsetof(type, m)))
#define ARRAY_SIZE(a)   (sizeof(a) / sizeof((a)[0]))
#define min(a, b) ({ typeof(a) a_ = (a); typeof(b) b_ = (b); \
                     (void)(&a_ == &b_); a_ < b_ ? a_ : b_; })
#define max(a, b) ({ typeof(a) a_ = (a); typeof(b) b_ = (b); \
                     (void)(&a_ == &b_); a_ > b_ ? a_ : b_; })
#define min_t(t, a, b)  ({ t a_ = (a), b_ = (b); a_ < b_ ? a_ : b_; })
#define max_t(t, a, b)  ({ t a_ = (a), b_ = (b); a_ > b_ ? a_ : b_; })
#define DIV_ROUND_UP(n, d) (((n) + (d) - 1) / (d))
#define ROUNDUP(x, a)   (((x) + (a) - 1) & ~((typeof(x))(a) - 1))
#define IS_ALIGNED(x, a) (!((x) & ((a) - 1)))
#define _AC(x, y)       x##y
#define BIT(n, sfx)     (1##sfx << (n))
#define GENMASK(h, l)   (((~0UL) << (l)) & (~0UL >> (63 - (h))))
#define MASK_EXTR(v, m) (((v) & (m)) / ((m) & -(m)))
#define MASK_INSR(v, m) (((v) * ((m) & -(m))) & (m))
#define KB(n)           ((uint64_t)(n) << 10)
#define MB(n)           ((uint64_t)(n) << 20)
#define GB(n)           ((uint64_t)(n) << 30)
#define BITS_PER_LONG   64
#define BITS_TO_LONGS(n) DIV_ROUND_UP(n, BITS_PER_LONG)
#define DECLARE_BITMAP(name, n) unsigned long name[BITS_TO_LONGS(n)]

void fake_panic(const char *file, int line, const char *what)
    __attribute__((__noreturn__));
#define CHECK_(x) \
    do { if ( !(x) ) fake_panic(__FILE__, __LINE__, #x); } while ( 0 )
#ifndef NDEBUG
#define ASSERT(x)       CHECK_(x)
#else
#define ASSERT(x)       ((void)sizeof(x))
#endif
#define BUG_ON(x)       CHECK_(!(x))
#define BUG()           fake_panic(__FILE__, __LINE__, "BUG")
#define WARN_ON(x)      ({ bool w_ = (x); w_; })
#define ASSERT_UNREACHABLE() BUG()
#define BUILD_BUG_ON(x) _Static_assert(!(x), #x)

#define XENLOG_ERR      "<E>"
#define XENLOG_WARNING  "<W>"
#define XENLOG_INFO     "<I>"
#define XENLOG_DEBUG    "<D>"
#define XENLOG_G_ERR    "<GE>"
#define XENLOG_G_WARNING "<GW>"
#define XENLOG_G_INFO   "<GI>"
#define XENLOG_G_DEBUG  "<GD>"
void fake_printk(const char *fmt, ...);
/* "%pd" and "%pv" are Xen's own: the host's compiler can't check the format. */
#define printk(...)     fake_printk(__VA_ARGS__)
#define dprintk(lvl, ...) fake_printk(lvl __VA_ARGS__)
#define gprintk(lvl, ...) fake_printk(lvl __VA_ARGS__)
#define gdprintk(lvl, ...) fake_printk(lvl __VA_ARGS__)
bool printk_ratelimit(void);

/* asm/atomic.h, asm/system.h */
#define ACCESS_ONCE(x)  (*(volatile typeof(x) *)&(x))
#define read_atomic(p)  ACCESS_ONCE(*(p))
#define write_atomic(p, v) \
    do { ACCESS_ONCE(*(p)) = (v); fake_stored(); } while ( 0 )
/* A full barrier, before and after. */
#define cmpxchg(p, o, n) ({ \
    typeof(*(p)) c_; \
    fake_rmb(); \
    c_ = __sync_val_compare_and_swap(p, o, n); \
    fake_rmb(); \
    c_; })
#define xchg(p, v)      __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST)

void fake_store_hook(void (*fn)(void));
void fake_stored(void);     /* each store that hardware may see by itself */
void fake_rmb(void);
void fake_wmb(void);
#define smp_rmb()       fake_rmb()
#define smp_wmb()       fake_wmb()
#define smp_mb()        do { fake_wmb(); fake_rmb(); } while ( 0 )
#define smp_mb__before_atomic() smp_mb()
#define smp_mb__after_atomic()  smp_mb()
#define barrier()       __asm__ volatile ("" ::: "memory")
#define rmb()           smp_rmb()
#define wmb()           smp_wmb()
#define mb()            smp_mb()
#define dsb(x)          do { smp_mb(); fake_stored(); } while ( 0 )
#define isb()           barrier()
void cpu_relax(void);
extern void (*fake_relax_hook)(void);

typedef struct { int counter; } atomic_t;
#define ATOMIC_INIT(n)  { n }
#define atomic_read(a)  __atomic_load_n(&(a)->counter, __ATOMIC_RELAXED)
#define atomic_set(a, n) __atomic_store_n(&(a)->counter, n, __ATOMIC_RELAXED)
#define atomic_add(n, a) \
    ((void)__atomic_fetch_add(&(a)->counter, n, __ATOMIC_RELAXED))
#define atomic_sub(n, a) atomic_add(-(n), a)
#define atomic_inc(a)   atomic_add(1, a)
#define atomic_dec(a)   atomic_add(-1, a)
#define atomic_inc_return(a) \
    __atomic_add_fetch(&(a)->counter, 1, __ATOMIC_SEQ_CST)
#define atomic_dec_and_test(a) \
    (__atomic_sub_fetch(&(a)->counter, 1, __ATOMIC_SEQ_CST) == 0)

extern __thread bool fake_irqs_off;
void fake_irq_save(unsigned long *flags);
#define local_irq_save(f)       fake_irq_save(&(f))
#define local_irq_restore(f)    ((void)(fake_irqs_off = (f)))
#define local_irq_disable()     ((void)(fake_irqs_off = true))
#define local_irq_enable()      ((void)(fake_irqs_off = false))
#define local_irq_is_enabled()  (!fake_irqs_off)
#define in_irq()                0
extern unsigned int fake_nr_cpus;
#define num_possible_cpus()     (fake_nr_cpus + 0u)
#define num_online_cpus()       (fake_nr_cpus + 0u)
#define smp_processor_id()      0u

/* xen/spinlock.h */
typedef struct {
    pthread_mutex_t m;
    bool held;
    pthread_t by;
    const char *name;           /* as given at initialisation */
    unsigned int rank;          /* in the order of pviommu.h; 0: not known yet */
} spinlock_t;
#define DEFINE_SPINLOCK(l) \
    spinlock_t l = { .m = PTHREAD_MUTEX_INITIALIZER, .name = "&" #l }
extern __thread unsigned int fake_locks;    /* held by this thread */
void fake_lock_init(spinlock_t *l, const char *name);
#define spin_lock_init(l)       fake_lock_init(l, #l)
void spin_lock(spinlock_t *l);
void spin_unlock(spinlock_t *l);
bool spin_trylock(spinlock_t *l);
bool spin_is_locked(const spinlock_t *l);   /* by this thread */
#define spin_lock_irqsave(l, f) \
    do { local_irq_save(f); spin_lock(l); } while ( 0 )
#define spin_unlock_irqrestore(l, f) \
    do { spin_unlock(l); local_irq_restore(f); } while ( 0 )
#define spin_lock_irq(l)        do { local_irq_disable(); spin_lock(l); } while ( 0 )
#define spin_unlock_irq(l)      do { spin_unlock(l); local_irq_enable(); } while ( 0 )
typedef spinlock_t rwlock_t;
#define DEFINE_RWLOCK(l)        DEFINE_SPINLOCK(l)
#define rwlock_init(l)          spin_lock_init(l)
#define read_lock(l)            spin_lock(l)
#define read_unlock(l)          spin_unlock(l)
#define write_lock(l)           spin_lock(l)
#define write_unlock(l)         spin_unlock(l)

/* xen/list.h */
struct list_head { struct list_head *next, *prev; };
#define LIST_HEAD_INIT(h)       { &(h), &(h) }
#define LIST_HEAD(h)            struct list_head h = LIST_HEAD_INIT(h)
static inline void INIT_LIST_HEAD(struct list_head *h)
{
    h->next = h->prev = h;
}
static inline void fake_link(struct list_head *e, struct list_head *before,
                             struct list_head *after)
{
    e->prev = before;
    e->next = after;
    before->next = after->prev = e;
}
static inline void list_add(struct list_head *e, struct list_head *h)
{
    fake_link(e, h, h->next);
}
static inline void list_add_tail(struct list_head *e, struct list_head *h)
{
    fake_link(e, h->prev, h);
}
static inline void list_del(struct list_head *e)
{
    e->prev->next = e->next;
    e->next->prev = e->prev;
    e->next = e->prev = NULL;
}
static inline void list_del_init(struct list_head *e)
{
    list_del(e);
    INIT_LIST_HEAD(e);
}
static inline bool list_empty(const struct list_head *h)
{
    return h->next == h;
}
static inline void list_move_tail(struct list_head *e, struct list_head *h)
{
    list_del(e);
    list_add_tail(e, h);
}
#define list_entry(p, type, m)  container_of(p, type, m)
#define list_first_entry(h, type, m) list_entry((h)->next, type, m)
#define list_first_entry_or_null(h, type, m) \
    (list_empty(h) ? NULL : list_first_entry(h, type, m))
#define list_for_each(p, h) \
    for ( (p) = (h)->next; (p) != (h); (p) = (p)->next )
#define list_for_each_entry(p, h, m) \
    for ( (p) = list_entry((h)->next, typeof(*(p)), m); \
          &(p)->m != (h); \
          (p) = list_entry((p)->m.next, typeof(*(p)), m) )
#define list_for_each_entry_safe(p, n, h, m) \
    for ( (p) = list_entry((h)->next, typeof(*(p)), m), \
          (n) = list_entry((p)->m.next, typeof(*(p)), m); \
          &(p)->m != (h); \
          (p) = (n), (n) = list_entry((n)->m.next, typeof(*(n)), m) )

/* xen/bitmap.h, xen/bitops.h */
static inline bool test_bit(unsigned int n, const unsigned long *a)
{
    return a[n / 64] >> (n % 64) & 1;
}
static inline void __set_bit(unsigned int n, unsigned long *a)
{
    a[n / 64] |= 1UL << (n % 64);
}
static inline void __clear_bit(unsigned int n, unsigned long *a)
{
    a[n / 64] &= ~(1UL << (n % 64));
}
static inline int __test_and_set_bit(unsigned int n, unsigned long *a)
{
    unsigned long old = a[n / 64];

    a[n / 64] |= 1UL << (n % 64);
    return (old >> (n % 64)) & 1;
}
#define set_bit(n, a)   __set_bit(n, a)
#define clear_bit(n, a) __clear_bit(n, a)
unsigned int find_first_zero_bit(const unsigned long *a, unsigned int size);
unsigned int find_next_zero_bit(const unsigned long *a, unsigned int size,
                                unsigned int from);
static inline unsigned int hweight32(uint32_t v)
{
    return __builtin_popcount(v);
}
#define hweight8(v)     hweight32((uint8_t)(v))
static inline int fls(unsigned int v)
{
    return v ? 32 - __builtin_clz(v) : 0;
}
static inline int flsl(unsigned long v)
{
    return v ? 64 - __builtin_clzl(v) : 0;
}
#define find_first_set_bit(v) ((unsigned int)__builtin_ctzl(v))
#define ffs64(v)        __builtin_ffsll(v)
#define ISOLATE_LSB(x)  ((x) & -(x))

/* xen/time.h: the clock stands unless a test moves it or looking does. */
s_time_t NOW(void);
#define SECONDS(n)      ((s_time_t)(n) * 1000000000)
#define MILLISECS(n)    ((s_time_t)(n) * 1000000)
#define MICROSECS(n)    ((s_time_t)(n) * 1000)
#define STIME_MAX       INT64_MAX
extern s_time_t fake_now;
extern s_time_t fake_now_step;  /* each NOW() takes that long */
extern bool fake_real_time;     /* threads: the host's clock */
void fake_advance(s_time_t ns); /* and run the timers that expire */

/* xen/timer.h, xen/tasklet.h */
struct timer {
    struct timer *next;
    void (*fn)(void *);
    void *data;
    s_time_t expires;
    bool known, active;
};
void init_timer(struct timer *t, void (*fn)(void *), void *data,
                unsigned int cpu);
void set_timer(struct timer *t, s_time_t expires);
void stop_timer(struct timer *t);
void kill_timer(struct timer *t);
/* For threads that are timers: has it expired?  Then it is off. */
bool fake_timer_due(struct timer *t);
static inline bool active_timer(const struct timer *t) { return t->active; }

struct tasklet {
    struct tasklet *next;
    void (*fn)(void *);
    void *data;
    bool known, scheduled;
};
void tasklet_init(struct tasklet *t, void (*fn)(void *), void *data);
#define softirq_tasklet_init(t, fn, d) tasklet_init(t, fn, d)
void tasklet_schedule(struct tasklet *t);
void tasklet_kill(struct tasklet *t);
/* Run each scheduled tasklet once.  Returns how many ran. */
unsigned int fake_run_tasklets(void);

/* asm/mm.h, xen/mm.h */
#define PAGE_SHIFT      12
#define PAGE_SIZE       (1UL << PAGE_SHIFT)
#define PAGE_MASK       (~(PAGE_SIZE - 1))
#define PADDR_BITS      48
#define PAGE_ORDER_4K   0
#define PAGE_ORDER_2M   9
#define PAGE_ORDER_1G   18
#define MAX_ORDER       18
#define PFN_DOWN(x)     ((x) >> PAGE_SHIFT)
#define PFN_UP(x)       (((x) + PAGE_SIZE - 1) >> PAGE_SHIFT)
#define PAGE_ALIGN(x)   (((x) + PAGE_SIZE - 1) & PAGE_MASK)
typedef struct { unsigned long mfn; } mfn_t;
typedef struct { unsigned long gfn; } gfn_t;
#define _mfn(n)         ((mfn_t){ n })
#define mfn_x(m)        ((m).mfn)
#define mfn_add(m, n)   _mfn((m).mfn + (n))
#define mfn_eq(a, b)    ((a).mfn == (b).mfn)
#define INVALID_MFN     _mfn(~0UL)
#define _gfn(n)         ((gfn_t){ n })
#define gfn_x(g)        ((g).gfn)
#define gfn_add(g, n)   _gfn((g).gfn + (n))
#define INVALID_GFN     _gfn(~0UL)
#define gaddr_to_gfn(a) _gfn((a) >> PAGE_SHIFT)
#define gfn_eq(a, b)            (gfn_x(a) == gfn_x(b))
#define gfn_to_gaddr(g) ((paddr_t)gfn_x(g) << PAGE_SHIFT)
#define maddr_to_mfn(a) _mfn((a) >> PAGE_SHIFT)
#define mfn_to_maddr(m) ((paddr_t)mfn_x(m) << PAGE_SHIFT)

struct domain;
struct page_list_entry { struct page_info *next, *prev; };
struct page_info {
    union {
        struct list_head list;
    };
    union {
        struct { unsigned long type_info; } inuse;
    } u;
    unsigned long count_info;   /* references; 0: free */
    struct domain *owner;
    bool xenheap;
};
#define PGT_TYPE_INFO_INITIALIZER 0
#define PGC_count_mask  ~0UL
#define page_list_head  list_head
#define PAGE_LIST_HEAD(h)       LIST_HEAD(h)
#define INIT_PAGE_LIST_HEAD(h)  INIT_LIST_HEAD(h)
#define page_list_empty(h)      list_empty(h)
#define page_list_add(p, h)     list_add(&(p)->list, h)
#define page_list_add_tail(p, h) list_add_tail(&(p)->list, h)
#define page_list_del(p, h)     ((void)(h), list_del(&(p)->list))
#define page_list_first(h)      list_first_entry_or_null(h, struct page_info, list)
static inline struct page_info *page_list_remove_head(struct list_head *h)
{
    struct page_info *pg = page_list_first(h);

    if ( pg )
        list_del(&pg->list);
    return pg;
}
#define page_list_for_each(p, h) list_for_each_entry(p, h, list)

#define FAKE_RAM_BASE   0x40000000UL
#define FAKE_RAM_SIZE   (2UL << 30)
#define FAKE_NR_PAGES   (FAKE_RAM_SIZE >> PAGE_SHIFT)
extern char *fake_ram, *fake_ram_seen;  /* CPU's view, device's view */
extern struct page_info fake_frames[FAKE_NR_PAGES];
extern unsigned long fake_pages_used;   /* of the arena, allocated */
extern long fake_refs;                  /* get_page minus put_page */
extern long fake_allocs;        /* xzalloc() minus xfree() */
extern int fake_alloc_fail;     /* n: the n-th allocation from now fails */
extern void (*fake_page_freed)(struct page_info *pg);

bool mfn_valid(mfn_t mfn);
paddr_t virt_to_maddr(const void *va);
void *maddr_to_virt(paddr_t ma);
#define __pa(va)        virt_to_maddr(va)
struct page_info *mfn_to_page(mfn_t mfn);
mfn_t page_to_mfn(const struct page_info *pg);
#define maddr_to_page(ma) mfn_to_page(maddr_to_mfn(ma))
#define page_to_maddr(pg) mfn_to_maddr(page_to_mfn(pg))
#define virt_to_page(va) maddr_to_page(virt_to_maddr(va))
#define virt_to_mfn(va) mfn_x(maddr_to_mfn(virt_to_maddr(va)))
#define page_to_virt(pg) maddr_to_virt(page_to_maddr(pg))
#define page_get_owner(pg) ((pg)->owner)
#define MEMF_no_owner   1
#define MEMF_no_refcount 2
unsigned int get_order_from_bytes(paddr_t size);
#define get_order_from_pages(n) get_order_from_bytes((paddr_t)(n) << PAGE_SHIFT)
void *alloc_xenheap_pages(unsigned int order, unsigned int memflags);
void free_xenheap_pages(void *va, unsigned int order);
#define alloc_xenheap_page() alloc_xenheap_pages(0, 0)
#define free_xenheap_page(va) free_xenheap_pages(va, 0)
struct page_info *alloc_domheap_pages(struct domain *d, unsigned int order,
                                      unsigned int memflags);
void free_domheap_pages(struct page_info *pg, unsigned int order);
#define alloc_domheap_page(d, f) alloc_domheap_pages(d, 0, f)
#define free_domheap_page(pg) free_domheap_pages(pg, 0)
/* Test pages: owned by @d, one reference, aligned to the order. */
struct page_info *fake_guest_pages(struct domain *d, unsigned int order);
bool get_page(struct page_info *pg, const struct domain *d);
struct domain *page_get_owner_and_reference(struct page_info *pg);
bool get_page_nr(struct page_info *pg, const struct domain *d,
                 unsigned long nr);
void put_page(struct page_info *pg);
void put_page_nr(struct page_info *pg, unsigned long nr);
extern unsigned int fake_mapped;    /* map_domain_page() minus unmap */
void *map_domain_page(mfn_t mfn);
#define __map_domain_page(pg) map_domain_page(page_to_mfn(pg))
void unmap_domain_page(const void *va);
#define clear_page(p)   memset(p, 0, PAGE_SIZE)
#define copy_page(d, s) memcpy(d, s, PAGE_SIZE)
void *vmap(const mfn_t *mfn, unsigned int nr);
void vunmap(const void *va);

void *map_domain_page_global(mfn_t mfn);
void unmap_domain_page_global(const void *va);
void clean_dcache_va_range(const void *p, unsigned long size);
void invalidate_dcache_va_range(const void *p, unsigned long size);
#define clean_and_invalidate_dcache_va_range(p, s) clean_dcache_va_range(p, s)

/* xen/xmalloc.h */
void *fake_zalloc(size_t size);
void xfree(void *p);
#define xzalloc(t)              ((t *)fake_zalloc(sizeof(t)))
#define xmalloc(t)              xzalloc(t)
#define xzalloc_array(t, n)     ((t *)fake_zalloc(sizeof(t) * (n)))
#define xmalloc_array(t, n)     xzalloc_array(t, n)
#define xzalloc_bytes(n)        fake_zalloc(n)
#define xvzalloc(t)             xzalloc(t)
#define xvzalloc_array(t, n)    xzalloc_array(t, n)
#define xvfree(p)               xfree(p)
#define vzalloc(n)              fake_zalloc(n)
#define vfree(p)                xfree(p)
#define XFREE(p)                do { xfree(p); (p) = NULL; } while ( 0 )
#define XVFREE(p)               XFREE(p)

/* asm/io.h: registers belong to a software SMMU (swsmmu.c). */
void *ioremap_nocache(paddr_t ma, size_t len);
void iounmap(void *va);
uint32_t fake_readl(const volatile void *p);
void fake_writel(uint32_t v, volatile void *p);
void fake_writeq(uint64_t v, volatile void *p);
uint64_t fake_readq(const volatile void *p);
#define readl_relaxed(p)        fake_readl(p)
#define readq_relaxed(p)        fake_readq(p)
#define writel_relaxed(v, p)    fake_writel(v, p)
#define writeq_relaxed(v, p)    fake_writeq(v, p)
#define readl(p)        ({ uint32_t r_ = fake_readl(p); fake_rmb(); r_; })
#define readq(p)        ({ uint64_t r_ = fake_readq(p); fake_rmb(); r_; })
#define writel(v, p)    do { fake_wmb(); fake_writel(v, p); } while ( 0 )
#define writeq(v, p)    do { fake_wmb(); fake_writeq(v, p); } while ( 0 )

/* xen/irq.h */
#define IRQF_SHARED     2
int request_irq(unsigned int irq, unsigned int flags,
                void (*handler)(int irq, void *data), const char *name,
                void *data);
void fake_irq(unsigned int irq);    /* call the handlers */
extern int fake_request_irq_error;

/* xen/radix-tree.h */
struct radix_tree_root {
    unsigned int nr, max;
    struct { unsigned long key; void *item; } *e;
};
void radix_tree_init(struct radix_tree_root *r);
void *radix_tree_lookup(struct radix_tree_root *r, unsigned long key);
int radix_tree_insert(struct radix_tree_root *r, unsigned long key, void *item);
unsigned int radix_tree_gang_lookup(struct radix_tree_root *r, void **results,
                                    unsigned long first, unsigned int max);
void *radix_tree_delete(struct radix_tree_root *r, unsigned long key);
void radix_tree_destroy(struct radix_tree_root *r, void (*fn)(void *));

/* xen/pci.h */
#define PCI_SLOT(devfn) (((devfn) >> 3) & 31)
#define PCI_FUNC(devfn) ((devfn) & 7)

/* xen/device_tree.h */
struct fake_prop { const char *name; const void *value; uint32_t len; };
#define FAKE_MAX_PROPS  16
struct dt_device_node {
    const char *name, *full_name, *type;
    struct dt_device_node *parent, *child, *sibling, *allnext;
    uint32_t phandle;
    bool is_protected;
    domid_t used_by;
    paddr_t reg, reg_size;
    const char *irq_names[4];   /* interrupt-names */
    int irqs[4];
    struct fake_prop props[FAKE_MAX_PROPS];
};
static inline const char *dt_node_full_name(const struct dt_device_node *n)
{
    return n ? n->full_name : "<no-node>";
}
#define dt_node_name(n) ((n)->name)
const void *dt_get_property(const struct dt_device_node *n, const char *name,
                            uint32_t *len);
int dt_property_match_string(const struct dt_device_node *n, const char *name,
                             const char *string);
int platform_get_irq(const struct dt_device_node *n, unsigned int index);
int dt_device_get_paddr(const struct dt_device_node *n, unsigned int index,
                        paddr_t *addr, paddr_t *size);
#define dt_device_get_address(n, i, a, s) dt_device_get_paddr(n, i, a, s)

extern struct dt_device_node *dt_host;  /* the first; others by allnext */
#define dt_for_each_device_node(dt, np) \
    for ( (np) = (dt); (np); (np) = (np)->allnext )
#define dt_device_type_is_equal(n, t)   (!strcmp((n)->type, t))
#define be32_to_cpu(x)  __builtin_bswap32(x)
#define cpu_to_be32(x)  __builtin_bswap32(x)
struct dt_device_node *dt_find_node_by_phandle(uint32_t phandle);
#define dt_device_for_passthrough(n) \
    (dt_get_property(n, "xen,passthrough", NULL) != NULL)
bool dt_property_read_u32(const struct dt_device_node *n, const char *name,
                          uint32_t *out);
struct dt_phandle_args {
    struct dt_device_node *np;
    int args_count;
    uint32_t args[16];
};
/* One cell after each phandle. */
int dt_parse_phandle_with_args(const struct dt_device_node *n,
                               const char *list, const char *cells, int index,
                               struct dt_phandle_args *out);
int pci_get_host_bridge_segment(const struct dt_device_node *n,
                                uint16_t *segment);

/* asm/p2m.h: frame numbers from 0 on are the pages from `base` on. */
typedef enum {
    p2m_invalid, p2m_ram_rw, p2m_ram_ro, p2m_mmio_direct_dev,
    p2m_mmio_direct_nc, p2m_mmio_direct_c, p2m_map_foreign_rw,
    p2m_map_foreign_ro, p2m_grant_map_rw, p2m_grant_map_ro, p2m_iommu_map_rw,
    p2m_iommu_map_ro,
} p2m_type_t;
typedef enum {
    p2m_access_n, p2m_access_r, p2m_access_w, p2m_access_rw, p2m_access_x,
    p2m_access_rx, p2m_access_wx, p2m_access_rwx, p2m_access_rx2rw,
} p2m_access_t;
struct p2m_domain {
    struct page_info *root;
    struct domain *domain;
    spinlock_t lock;
    mfn_t base;
    unsigned long size;         /* frames */
    unsigned int order;         /* of each entry */
    /* Changes what is found. */
    void (*hook)(unsigned long gfn, mfn_t *mfn, p2m_type_t *t,
                 p2m_access_t *a, unsigned int *order);
};
/* xen/guest_access.h */
#define XEN_GUEST_HANDLE_PARAM(t) t *
/* public/domctl.h, public/pviommu.h */
#define __XEN__
#define uint64_aligned_t        uint64_t
#define XEN_GUEST_HANDLE_64(t)  fake_handle
#define DEFINE_XEN_GUEST_HANDLE(t) struct fake_unused_##t
typedef struct { void *p; } fake_handle;
#include "public/pviommu.h"
/* xen/keyhandler.h */
#define register_keyhandler(key, fn, text, diag) ((void)(fn))
#define rcu_read_lock(l)        ((void)0)
#define rcu_read_unlock(l)      ((void)0)
/* One at most. */
extern struct domain *fake_domain;
#define for_each_domain(d)      for ( (d) = fake_domain; (d); (d) = NULL )

/* asm/lpae.h */
typedef union {
    uint64_t bits;
    struct { uint64_t valid:1, table:1; } walk;
    struct { uint64_t pad:55, type:4; } p2m;
} lpae_t;
#define lpae_is_valid(p)        ((p).walk.valid)
#define lpae_get_mfn(p)         _mfn(((p).bits >> PAGE_SHIFT) & 0xfffffffffUL)
#define p2m_is_foreign(t)       ((t) == p2m_map_foreign_rw || \
                                 (t) == p2m_map_foreign_ro)
#define gfn_eq(a, b)            (gfn_x(a) == gfn_x(b))
#define gfn_to_gaddr(g)         ((paddr_t)gfn_x(g) << PAGE_SHIFT)
extern bool per_cpu_iommu_dont_flush_iotlb;

#define p2m_get_hostp2m(d)      (&(d)->arch.p2m)
#define p2m_read_lock(p)        spin_lock(&(p)->lock)
#define p2m_read_unlock(p)      spin_unlock(&(p)->lock)
mfn_t p2m_get_entry(struct p2m_domain *p2m, gfn_t gfn, p2m_type_t *t,
                    p2m_access_t *a, unsigned int *order, bool *valid);

/* asm/mmio.h, asm/vgic.h */
#define register_t uint64_t
struct hsr_dabt { unsigned int size; };
typedef struct { struct hsr_dabt dabt; paddr_t gpa; } mmio_info_t;
struct vcpu;
struct mmio_handler_ops {
    int (*read)(struct vcpu *v, mmio_info_t *info, register_t *r, void *priv);
    int (*write)(struct vcpu *v, mmio_info_t *info, register_t r, void *priv);
};
void register_mmio_handler(struct domain *d, const struct mmio_handler_ops *ops,
                           paddr_t addr, paddr_t size, void *priv);
extern const struct mmio_handler_ops *fake_mmio_ops;
extern void *fake_mmio_priv;
void vgic_inject_irq(struct domain *d, struct vcpu *v, unsigned int virq,
                     bool level);
extern unsigned int fake_virqs;     /* injected */

#define READ_SYSREG(r)          fake_sysreg_##r
extern register_t fake_sysreg_VTCR_EL2;
#define DEFINE_PER_CPU(t, n)    __thread t per_cpu_##n
#define DECLARE_PER_CPU(t, n)   extern __thread t per_cpu_##n
#define this_cpu(n)             per_cpu_##n
#define array_index_nospec(i, n) (i)
#define printk_once(...) \
    do { static bool said_; if ( !said_ ) printk(__VA_ARGS__); \
         said_ = true; } while ( 0 )
#define cmpxchgptr(p, o, n)     cmpxchg(p, o, n)
extern bool fake_preempt;       /* somebody else wants the CPU */
#define hypercall_preempt_check() fake_preempt
#define vcpu_yield()            ((void)0)
#define get_domain(d)           ((d)->refs++, true)
#define put_domain(d)           ((void)(d)->refs--)
#define is_system_domain(d)     ((d)->domain_id >= 0x7ff0)
#define is_iommu_enabled(d)     true
#define domain_crash(d)         ((void)((d)->is_crashed = true))

/* xen/sched.h, xen/iommu.h, asm/domain.h */
struct vcpu {
    struct domain *domain;
    unsigned int vcpu_id;
    bool kicked;
    unsigned long pause_flags;
};
struct domain_iommu {
    struct { void *priv; } arch;
};
struct paging_domain {
    spinlock_t lock;
    struct list_head p2m_freelist;
    unsigned long p2m_total_pages;
};
struct domain {
    domid_t domain_id;
    bool is_hwdom, is_dying, is_crashed, creation_finished;
    struct domain_iommu iommu;
    struct vcpu *vcpu[4];
    unsigned int max_vcpus;
    struct { struct paging_domain paging; struct p2m_domain p2m; } arch;
    int refs;
};
#define dom_iommu(d)    (&(d)->iommu)
#define is_hardware_domain(d) ((d)->is_hwdom)
#define domain_tot_pages(d) 524288U

/* For all tests. */
void fake_init(void);           /* fresh arena, clock, log */
const char *fake_log(void);     /* what was printed since fake_init() */
bool fake_logged(const char *text);
void fake_pool_fill(struct domain *d, unsigned long pages);

#ifdef FAKE_NATIVE
#include "../bench/native.h"
#endif

#endif /* FAKE_H */
