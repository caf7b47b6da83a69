/* SPDX-License-Identifier: GPL-2.0-only */
/* Behind fake.h: an arena of machine memory, clock, timers, log, device tree. */

#include <stdarg.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "fake.h"

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

void fake_panic(const char *file, int line, const char *what)
{
    fprintf(stderr, "%s:%d: assertion failed: %s\n%s", file, line, what,
            fake_log());
    abort();
}

/*
 * Log
 */
static char log_buf[1 << 16];
static size_t log_len;
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;

void fake_printk(const char *fmt, ...)
{
    char f[512];
    va_list ap;
    char *pd;
    int n;

    /* %pd takes a struct domain: print the pointer. */
    snprintf(f, sizeof(f), "%s", fmt);
    while ( (pd = strstr(f, "%pd")) || (pd = strstr(f, "%pv")) )
        memmove(pd + 2, pd + 3, strlen(pd + 3) + 1);

    pthread_mutex_lock(&log_lock);
    va_start(ap, fmt);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    n = vsnprintf(log_buf + log_len, sizeof(log_buf) - log_len, f, ap);
#pragma GCC diagnostic pop
    va_end(ap);
    if ( log_len + n < sizeof(log_buf) )
        log_len += n;
    if ( getenv("VERBOSE") )
        fputs(log_buf + log_len - n, stderr);
    pthread_mutex_unlock(&log_lock);
}

bool printk_ratelimit(void) { return true; }
const char *fake_log(void) { return log_buf; }
bool fake_logged(const char *text) { return strstr(log_buf, text); }

/*
 * Barriers.  The thread sanitizer doesn't know fences, so volatile accesses
 * come to it as follows: a store is a release if a write barrier was executed
 * since interrupts were last turned off (the start of any sequence that
 * counts), and what was loaded is acquired at the next read barrier.
 */
__thread bool fake_irqs_off;
__thread unsigned int fake_locks;
unsigned int fake_nr_cpus = 4;
static void (*store_hook)(void);

#ifdef __SANITIZE_THREAD__
#define MAX_LOADED 4096
static __thread bool wmb_done;
static __thread void *loaded[MAX_LOADED];
static __thread unsigned int nr_loaded;

static void volatile_load(void *p)
{
    unsigned int i;

    for ( i = nr_loaded; i && nr_loaded - i < 4; i-- )
        if ( loaded[i - 1] == p )
            return;
    if ( nr_loaded == MAX_LOADED )
        nr_loaded = 0;
    loaded[nr_loaded++] = p;
}

static void volatile_store(void *p)
{
    if ( wmb_done )
        __tsan_release(p);
}

#define VOLATILE(n) \
void __tsan_volatile_read##n(void *p); \
void __tsan_volatile_write##n(void *p); \
void __tsan_unaligned_volatile_read##n(void *p); \
void __tsan_unaligned_volatile_write##n(void *p); \
void __tsan_volatile_read##n(void *p) { volatile_load(p); } \
void __tsan_volatile_write##n(void *p) { volatile_store(p); } \
void __tsan_unaligned_volatile_read##n(void *p) { volatile_load(p); } \
void __tsan_unaligned_volatile_write##n(void *p) { volatile_store(p); }
VOLATILE(1)
VOLATILE(2)
VOLATILE(4)
VOLATILE(8)
VOLATILE(16)

void fake_rmb(void)
{
    while ( nr_loaded )
        __tsan_acquire(loaded[--nr_loaded]);
    __asm__ volatile ("mfence" ::: "memory");
}

void fake_wmb(void)
{
    wmb_done = true;
    __asm__ volatile ("mfence" ::: "memory");
}

void fake_irq_save(unsigned long *flags)
{
    *flags = fake_irqs_off;
    fake_irqs_off = true;
    wmb_done = false;
}
#else
void fake_rmb(void) { __sync_synchronize(); }
void fake_wmb(void) { __sync_synchronize(); }

void fake_irq_save(unsigned long *flags)
{
    *flags = fake_irqs_off;
    fake_irqs_off = true;
}
#endif

void fake_store_hook(void (*fn)(void)) { store_hook = fn; }

void fake_stored(void)
{
    if ( store_hook )
        store_hook();
}

/*
 * Locks.  Each has its place in the order that pviommu.h documents; who takes
 * one while he holds an inner one, or another of the same place, panics.
 */
static const struct { const char *name; unsigned int rank; } order[] = {
    { "&pd->lock", 2 },
    { "&dom.arch.p2m.lock", 3 },
    { "&next.arch.p2m.lock", 3 },
    { "&pd->tlock", 4 },
    { "&ctx->att_lock", 5 },
    /* Stream table, then what is never held over another of the driver. */
    { "&st->lock", 6 },
    { "&smmu->streams_lock", 7 },
    { "&smmu->vmid_lock", 7 },
    { "&bridges_lock", 7 },
    { "&q->error_lock", 7 },
    { "&d->arch.paging.lock", 7 },
    /* Not the driver's: tests/bench/cmdq.c. */
    { "&locked_lock", 7 },
};

#define MAX_HELD 8
static __thread const spinlock_t *lock_held[MAX_HELD];

static unsigned int rank_of(const char *name)
{
    unsigned int i;

    for ( i = 0; i < ARRAY_SIZE(order); i++ )
        if ( name && !strcmp(name, order[i].name) )
            return order[i].rank;
    fprintf(stderr, "lock %s has no place in the order\n", name);
    fake_panic(__FILE__, __LINE__, "lock order");
}

void fake_lock_init(spinlock_t *l, const char *name)
{
    memset(l, 0, sizeof(*l));
    pthread_mutex_init(&l->m, NULL);
    l->name = name;
    l->rank = rank_of(name);
}

static bool held_by_me(const spinlock_t *l)
{
    return __atomic_load_n(&l->held, __ATOMIC_RELAXED) &&
           __atomic_load_n(&l->by, __ATOMIC_RELAXED) == pthread_self();
}

static void check_order(const spinlock_t *l)
{
    unsigned int i, rank = l->rank ?: rank_of(l->name);

    for ( i = 0; i < fake_locks; i++ )
        if ( (lock_held[i]->rank ?: rank_of(lock_held[i]->name)) >= rank )
        {
            fprintf(stderr, "lock %s is taken under %s\n", l->name,
                    lock_held[i]->name);
            fake_panic(__FILE__, __LINE__, "lock order");
        }
    ASSERT(fake_locks < MAX_HELD);
}

static void locked(spinlock_t *l)
{
    __atomic_store_n(&l->by, pthread_self(), __ATOMIC_RELAXED);
    __atomic_store_n(&l->held, true, __ATOMIC_RELAXED);
    lock_held[fake_locks++] = l;
}

void spin_lock(spinlock_t *l)
{
    if ( held_by_me(l) )
        fake_panic(__FILE__, __LINE__, "lock taken twice");
    check_order(l);
    pthread_mutex_lock(&l->m);
    locked(l);
}

void spin_unlock(spinlock_t *l)
{
    unsigned int i;

    ASSERT(held_by_me(l));
    for ( i = 0; lock_held[i] != l; i++ )
        continue;
    lock_held[i] = lock_held[--fake_locks];
    __atomic_store_n(&l->held, false, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&l->m);
}

bool spin_trylock(spinlock_t *l)
{
    if ( pthread_mutex_trylock(&l->m) )
        return false;
    locked(l);
    return true;
}

bool spin_is_locked(const spinlock_t *l)
{
    return held_by_me(l);
}

unsigned int find_next_zero_bit(const unsigned long *a, unsigned int size,
                                unsigned int from)
{
    while ( from < size && test_bit(from, a) )
        from++;
    return from;
}

unsigned int find_first_zero_bit(const unsigned long *a, unsigned int size)
{
    return find_next_zero_bit(a, size, 0);
}

/*
 * Time
 */
s_time_t fake_now, fake_now_step;
bool fake_real_time;
static struct timer *timers;
static struct tasklet *tasklets;

s_time_t NOW(void)
{
    struct timespec ts;

    if ( !fake_real_time )
        return __atomic_add_fetch(&fake_now, fake_now_step, __ATOMIC_RELAXED);

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return SECONDS(ts.tv_sec) + ts.tv_nsec;
}

void (*fake_relax_hook)(void);

void cpu_relax(void)
{
    if ( fake_relax_hook && !fake_real_time )
        fake_relax_hook();
    if ( fake_real_time )
        sched_yield();
}

void init_timer(struct timer *t, void (*fn)(void *), void *data,
                unsigned int cpu)
{
    (void)cpu;
    memset(t, 0, sizeof(*t));
    t->fn = fn;
    t->data = data;
    t->known = true;
    t->next = timers;
    timers = t;
}

void set_timer(struct timer *t, s_time_t expires)
{
    ASSERT(t->known);
    __atomic_store_n(&t->expires, expires, __ATOMIC_RELAXED);
    __atomic_store_n(&t->active, true, __ATOMIC_RELEASE);
}

bool fake_timer_due(struct timer *t)
{
    return __atomic_load_n(&t->expires, __ATOMIC_RELAXED) <= NOW() &&
           __atomic_exchange_n(&t->active, false, __ATOMIC_ACQUIRE);
}

void stop_timer(struct timer *t)
{
    t->active = false;
}

void kill_timer(struct timer *t)
{
    struct timer **p;

    for ( p = &timers; *p; p = &(*p)->next )
        if ( *p == t )
        {
            *p = t->next;
            break;
        }
    t->active = t->known = false;
}

void fake_advance(s_time_t ns)
{
    struct timer *t;
    s_time_t end = fake_now + ns;

    for ( ; ; )
    {
        struct timer *first = NULL;

        for ( t = timers; t; t = t->next )
            if ( t->active && t->expires <= end &&
                 (!first || t->expires < first->expires) )
                first = t;
        if ( !first )
            break;
        if ( first->expires > fake_now )
            fake_now = first->expires;
        first->active = false;
        first->fn(first->data);
    }
    fake_now = max(end, fake_now);
}

void tasklet_init(struct tasklet *t, void (*fn)(void *), void *data)
{
    memset(t, 0, sizeof(*t));
    t->fn = fn;
    t->data = data;
    t->known = true;
    t->next = tasklets;
    tasklets = t;
}

void tasklet_schedule(struct tasklet *t)
{
    ASSERT(t->known);
    t->scheduled = true;
}

void tasklet_kill(struct tasklet *t)
{
    struct tasklet **p;

    for ( p = &tasklets; *p; p = &(*p)->next )
        if ( *p == t )
        {
            *p = t->next;
            break;
        }
    t->known = t->scheduled = false;
}

unsigned int fake_run_tasklets(void)
{
    struct tasklet *t, *next;
    unsigned int ran = 0;

    for ( t = tasklets; t; t = next )
    {
        next = t->next;
        if ( !t->scheduled )
            continue;
        t->scheduled = false;
        t->fn(t->data);
        ran++;
    }
    return ran;
}

/*
 * Memory
 */
char *fake_ram, *fake_ram_seen;
struct page_info fake_frames[FAKE_NR_PAGES];
unsigned long fake_pages_used;
long fake_refs, fake_allocs;
bool fake_preempt;
int fake_alloc_fail;
unsigned int fake_mapped;
void (*fake_page_freed)(struct page_info *pg);
static unsigned long next_free, top_used;

static bool alloc_fails(void)
{
    return fake_alloc_fail && !--fake_alloc_fail;
}

bool mfn_valid(mfn_t mfn)
{
    return mfn.mfn - (FAKE_RAM_BASE >> PAGE_SHIFT) < FAKE_NR_PAGES;
}

paddr_t virt_to_maddr(const void *va)
{
    ASSERT((const char *)va >= fake_ram &&
           (const char *)va < fake_ram + FAKE_RAM_SIZE);
    return FAKE_RAM_BASE + ((const char *)va - fake_ram);
}

void *maddr_to_virt(paddr_t ma)
{
    ASSERT(ma - FAKE_RAM_BASE < FAKE_RAM_SIZE);
    return fake_ram + (ma - FAKE_RAM_BASE);
}

struct page_info *mfn_to_page(mfn_t mfn)
{
    ASSERT(mfn_valid(mfn));
    return &fake_frames[mfn.mfn - (FAKE_RAM_BASE >> PAGE_SHIFT)];
}

mfn_t page_to_mfn(const struct page_info *pg)
{
    ASSERT(pg >= fake_frames && pg < fake_frames + FAKE_NR_PAGES);
    return _mfn((pg - fake_frames) + (FAKE_RAM_BASE >> PAGE_SHIFT));
}

unsigned int get_order_from_bytes(paddr_t size)
{
    unsigned int order = 0;

    while ( (PAGE_SIZE << order) < size )
        order++;
    return order;
}

static bool range_free(unsigned long first, unsigned long nr)
{
    unsigned long i;

    for ( i = first; i < first + nr; i++ )
        if ( fake_frames[i].count_info )
            return false;
    return true;
}

static struct page_info *take(unsigned int order)
{
    unsigned long nr = 1UL << order, i, pass;

    /* Going round: a freed page is not used again at once. */
    for ( pass = 0; pass < 2; pass++, next_free = 0 )
        for ( i = (next_free + nr - 1) & -nr; i + nr <= FAKE_NR_PAGES; i += nr )
            if ( range_free(i, nr) )
            {
                unsigned long j;

                for ( j = i; j < i + nr; j++ )
                {
                    memset(&fake_frames[j], 0, sizeof(fake_frames[j]));
                    fake_frames[j].count_info = 1;
                }
                next_free = i + nr;
                top_used = max(top_used, next_free);
                fake_pages_used += nr;
                return &fake_frames[i];
            }
    return NULL;
}

static void page_free(struct page_info *pg)
{
    if ( fake_page_freed )
        fake_page_freed(pg);
    __atomic_store_n(&pg->count_info, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&pg->owner, NULL, __ATOMIC_RELAXED);
    __atomic_sub_fetch(&fake_pages_used, 1, __ATOMIC_RELAXED);
    /* Whoever still reads it sees that. */
    memset(page_to_virt(pg), 0xdb, PAGE_SIZE);
}

void *alloc_xenheap_pages(unsigned int order, unsigned int memflags)
{
    struct page_info *pg = alloc_fails() ? NULL : take(order);

    (void)memflags;
    if ( !pg )
        return NULL;
    pg->xenheap = true;
    memset(page_to_virt(pg), 0xa5, PAGE_SIZE << order);
    memset(fake_ram_seen + (page_to_maddr(pg) - FAKE_RAM_BASE), 0x5a,
           PAGE_SIZE << order);
    return page_to_virt(pg);
}

void free_xenheap_pages(void *va, unsigned int order)
{
    struct page_info *pg;
    unsigned long i;

    if ( !va )
        return;
    pg = virt_to_page(va);
    ASSERT(pg->xenheap);
    for ( i = 0; i < 1UL << order; i++ )
    {
        ASSERT(pg[i].count_info == 1);
        page_free(&pg[i]);
    }
}

struct page_info *alloc_domheap_pages(struct domain *d, unsigned int order,
                                      unsigned int memflags)
{
    struct page_info *pg = alloc_fails() ? NULL : take(order);

    (void)memflags;
    if ( pg )
    {
        pg->owner = d;
        memset(page_to_virt(pg), 0xa5, PAGE_SIZE << order);
    }
    return pg;
}

void free_domheap_pages(struct page_info *pg, unsigned int order)
{
    unsigned long i;

    for ( i = 0; i < 1UL << order; i++ )
    {
        ASSERT(pg[i].count_info == 1 && !pg[i].xenheap);
        page_free(&pg[i]);
    }
}

struct domain *fake_domain;

struct page_info *fake_guest_pages(struct domain *d, unsigned int order)
{
    struct page_info *pg = take(order);
    unsigned long i;

    ASSERT(pg);
    for ( i = 0; i < 1UL << order; i++ )
        pg[i].owner = d;
    return pg;
}

bool get_page_nr(struct page_info *pg, const struct domain *d,
                 unsigned long nr)
{
    unsigned long n = __atomic_load_n(&pg->count_info, __ATOMIC_RELAXED);

    do {
        if ( !n || __atomic_load_n(&pg->owner, __ATOMIC_RELAXED) != d )
            return false;
    } while ( !__atomic_compare_exchange_n(&pg->count_info, &n, n + nr, false,
                                           __ATOMIC_ACQ_REL,
                                           __ATOMIC_RELAXED) );
    __atomic_add_fetch(&fake_refs, nr, __ATOMIC_RELAXED);
    return true;
}

bool get_page(struct page_info *pg, const struct domain *d)
{
    return get_page_nr(pg, d, 1);
}

struct domain *page_get_owner_and_reference(struct page_info *pg)
{
    struct domain *d = __atomic_load_n(&pg->owner, __ATOMIC_RELAXED);

    return get_page(pg, d) ? d : NULL;
}

void put_page_nr(struct page_info *pg, unsigned long nr)
{
    unsigned long n = __atomic_load_n(&pg->count_info, __ATOMIC_RELAXED);

    __atomic_sub_fetch(&fake_refs, nr, __ATOMIC_RELAXED);
    do {
        ASSERT(n >= nr);
        /* The last one: nobody finds the page any more. */
        if ( n == nr )
        {
            (void)__atomic_load_n(&pg->count_info, __ATOMIC_ACQUIRE);
            page_free(pg);
            return;
        }
    } while ( !__atomic_compare_exchange_n(&pg->count_info, &n, n - nr, false,
                                           __ATOMIC_ACQ_REL,
                                           __ATOMIC_RELAXED) );
}

void put_page(struct page_info *pg)
{
    put_page_nr(pg, 1);
}

void *map_domain_page(mfn_t mfn)
{
    ASSERT(__atomic_load_n(&mfn_to_page(mfn)->count_info, __ATOMIC_RELAXED));
    __atomic_add_fetch(&fake_mapped, 1, __ATOMIC_RELAXED);
    return maddr_to_virt(mfn_to_maddr(mfn));
}

void unmap_domain_page(const void *va)
{
    if ( !va )
        return;
    BUG_ON(!__atomic_fetch_sub(&fake_mapped, 1, __ATOMIC_RELAXED));
}

void *map_domain_page_global(mfn_t mfn)
{
    return map_domain_page(mfn);
}

void unmap_domain_page_global(const void *va)
{
    unmap_domain_page(va);
}

/* Contiguous runs in the arena are their own mapping. */
void *vmap(const mfn_t *mfn, unsigned int nr)
{
    unsigned int i;

    for ( i = 1; i < nr; i++ )
        ASSERT(mfn_eq(mfn[i], mfn_add(mfn[0], i)));
    return map_domain_page(mfn[0]);
}

void vunmap(const void *va)
{
    unmap_domain_page(va);
}

/* Maintenance works on whole lines. */
static void copy_lines(char *to, const char *from, const void *p,
                       unsigned long size)
{
    unsigned long first = (const char *)p - fake_ram, end = first + size;

    ASSERT(end <= FAKE_RAM_SIZE);
    first &= ~63UL;
    end = (end + 63) & ~63UL;
    memcpy(to + first, from + first, end - first);
}

void clean_dcache_va_range(const void *p, unsigned long size)
{
    copy_lines(fake_ram_seen, fake_ram, p, size);
    fake_stored();
}

void invalidate_dcache_va_range(const void *p, unsigned long size)
{
    copy_lines(fake_ram, fake_ram_seen, p, size);
}

void *fake_zalloc(size_t size)
{
    if ( alloc_fails() )
        return NULL;
    __atomic_add_fetch(&fake_allocs, 1, __ATOMIC_RELAXED);
    return calloc(1, size ?: 1);
}

void xfree(void *p)
{
    if ( p )
        __atomic_sub_fetch(&fake_allocs, 1, __ATOMIC_RELAXED);
    free(p);
}

/*
 * Interrupts
 */
static struct {
    unsigned int irq, flags;
    void (*fn)(int, void *);
    void *data;
} irqs[16];
static unsigned int nr_irqs;
int fake_request_irq_error;

int request_irq(unsigned int irq, unsigned int flags,
                void (*handler)(int irq, void *data), const char *name,
                void *data)
{
    unsigned int i;

    (void)name;
    if ( fake_request_irq_error )
        return fake_request_irq_error;
    ASSERT(nr_irqs < ARRAY_SIZE(irqs));
    for ( i = 0; i < nr_irqs; i++ )
        if ( irqs[i].irq == irq && !(irqs[i].flags & flags & IRQF_SHARED) )
            return -EINVAL;
    irqs[nr_irqs].flags = flags;
    irqs[nr_irqs].irq = irq;
    irqs[nr_irqs].fn = handler;
    irqs[nr_irqs++].data = data;
    return 0;
}

void fake_irq(unsigned int irq)
{
    unsigned int i;

    for ( i = 0; i < nr_irqs; i++ )
        if ( irqs[i].irq == irq )
            irqs[i].fn(irq, irqs[i].data);
}

/*
 * Radix tree: a table of pairs
 */
void radix_tree_init(struct radix_tree_root *r)
{
    memset(r, 0, sizeof(*r));
}

void *radix_tree_lookup(struct radix_tree_root *r, unsigned long key)
{
    unsigned int i;

    for ( i = 0; i < r->nr; i++ )
        if ( r->e[i].key == key )
            return r->e[i].item;
    return NULL;
}

int radix_tree_insert(struct radix_tree_root *r, unsigned long key, void *item)
{
    if ( radix_tree_lookup(r, key) )
        return -EEXIST;
    if ( alloc_fails() )
        return -ENOMEM;
    r->e = realloc(r->e, (r->nr + 1) * sizeof(*r->e));
    r->e[r->nr].key = key;
    r->e[r->nr++].item = item;
    return 0;
}

unsigned int radix_tree_gang_lookup(struct radix_tree_root *r, void **results,
                                    unsigned long first, unsigned int max)
{
    unsigned int i, best = r->nr;

    ASSERT(max == 1);
    for ( i = 0; i < r->nr; i++ )
        if ( r->e[i].key >= first &&
             (best == r->nr || r->e[i].key < r->e[best].key) )
            best = i;
    if ( best == r->nr )
        return 0;
    *results = r->e[best].item;

    return 1;
}

void *radix_tree_delete(struct radix_tree_root *r, unsigned long key)
{
    unsigned int i;
    void *item;

    for ( i = 0; i < r->nr; i++ )
        if ( r->e[i].key == key )
        {
            item = r->e[i].item;
            r->e[i] = r->e[--r->nr];
            if ( !r->nr )
            {
                free(r->e);
                r->e = NULL;
            }
            return item;
        }
    return NULL;
}

void radix_tree_destroy(struct radix_tree_root *r, void (*fn)(void *))
{
    unsigned int i;

    for ( i = 0; fn && i < r->nr; i++ )
        fn(r->e[i].item);
    free(r->e);
    memset(r, 0, sizeof(*r));
}

/*
 * Device tree
 */
const void *dt_get_property(const struct dt_device_node *n, const char *name,
                            uint32_t *len)
{
    const struct fake_prop *p;

    for ( p = n->props; p < n->props + FAKE_MAX_PROPS && p->name; p++ )
        if ( !strcmp(p->name, name) )
        {
            if ( len )
                *len = p->len;
            return p->value;
        }
    return NULL;
}

int dt_property_match_string(const struct dt_device_node *n, const char *name,
                             const char *string)
{
    int i;

    if ( strcmp(name, "interrupt-names") )
        return -EINVAL;
    for ( i = 0; i < 4 && n->irq_names[i]; i++ )
        if ( !strcmp(n->irq_names[i], string) )
            return i;
    return -ENODATA;
}

int platform_get_irq(const struct dt_device_node *n, unsigned int index)
{
    return index < 4 && n->irqs[index] ? n->irqs[index] : -EINVAL;
}

int dt_device_get_paddr(const struct dt_device_node *n, unsigned int index,
                        paddr_t *addr, paddr_t *size)
{
    if ( index || !n->reg_size )
        return -EINVAL;
    *addr = n->reg;
    *size = n->reg_size;
    return 0;
}

/*
 * Guests
 */
const struct mmio_handler_ops *fake_mmio_ops;
void *fake_mmio_priv;
unsigned int fake_virqs;
/* 40 bits from level 1, as Xen uses with 1 TiB of input: two root pages. */
register_t fake_sysreg_VTCR_EL2 = 24 | 1 << 6;

bool per_cpu_iommu_dont_flush_iotlb;

struct dt_device_node *dt_host;

struct dt_device_node *dt_find_node_by_phandle(uint32_t phandle)
{
    struct dt_device_node *np;

    dt_for_each_device_node ( dt_host, np )
        if ( np->phandle == phandle )
            return np;
    return NULL;
}

bool dt_property_read_u32(const struct dt_device_node *n, const char *name,
                          uint32_t *out)
{
    uint32_t len;
    const __be32 *p = dt_get_property(n, name, &len);

    if ( !p || len < sizeof(*p) )
        return false;
    *out = be32_to_cpu(*p);
    return true;
}

int dt_parse_phandle_with_args(const struct dt_device_node *n,
                               const char *list, const char *cells, int index,
                               struct dt_phandle_args *out)
{
    uint32_t len;
    const __be32 *p = dt_get_property(n, list, &len);

    if ( !p || (index + 1) * 8 > len )
        return -ENOENT;
    out->np = dt_find_node_by_phandle(be32_to_cpu(p[2 * index]));
    out->args_count = 1;
    out->args[0] = be32_to_cpu(p[2 * index + 1]);
    return out->np ? 0 : -EINVAL;
}

int pci_get_host_bridge_segment(const struct dt_device_node *n,
                                uint16_t *segment)
{
    uint32_t v;

    if ( !dt_property_read_u32(n, "linux,pci-domain", &v) )
        return -ENODEV;
    *segment = v;
    return 0;
}

mfn_t p2m_get_entry(struct p2m_domain *p2m, gfn_t gfn, p2m_type_t *t,
                    p2m_access_t *a, unsigned int *order, bool *valid)
{
    mfn_t mfn = INVALID_MFN;

    ASSERT(spin_is_locked(&p2m->lock));
    *t = p2m_invalid;
    *a = p2m_access_rwx;
    *order = 0;
    *valid = true;
    if ( gfn_x(gfn) < p2m->size )
    {
        mfn = mfn_add(p2m->base, gfn_x(gfn));
        *t = p2m_ram_rw;
        *order = p2m->order;
    }
    if ( p2m->hook )
        p2m->hook(gfn_x(gfn), &mfn, t, a, order);
    return mfn;
}

void register_mmio_handler(struct domain *d, const struct mmio_handler_ops *ops,
                           paddr_t addr, paddr_t size, void *priv)
{
    (void)d;
    (void)addr;
    (void)size;
    fake_mmio_ops = ops;
    fake_mmio_priv = priv;
}

void vgic_inject_irq(struct domain *d, struct vcpu *v, unsigned int virq,
                     bool level)
{
    (void)d;
    (void)v;
    (void)virq;
    (void)level;
    fake_virqs++;
}

void fake_pool_fill(struct domain *d, unsigned long pages)
{
    if ( !d->arch.paging.p2m_freelist.next )
    {
        INIT_LIST_HEAD(&d->arch.paging.p2m_freelist);
        spin_lock_init(&d->arch.paging.lock);
    }
    while ( pages-- )
    {
        struct page_info *pg = take(0);

        ASSERT(pg);
        list_add_tail(&pg->list, &d->arch.paging.p2m_freelist);
        d->arch.paging.p2m_total_pages++;
    }
}

void fake_init(void)
{
    if ( !fake_ram )
    {
        fake_ram = mmap(NULL, 2 * FAKE_RAM_SIZE, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        ASSERT(fake_ram != MAP_FAILED);
        fake_ram_seen = fake_ram + FAKE_RAM_SIZE;
    }
    memset(fake_frames, 0, top_used * sizeof(fake_frames[0]));
    next_free = top_used = fake_pages_used = 0;
    fake_refs = fake_allocs = 0;
    fake_preempt = false;
    fake_alloc_fail = 0;
    fake_mapped = 0;
    fake_page_freed = NULL;
    fake_now = SECONDS(1);
    fake_now_step = 0;
    fake_real_time = false;
    fake_irqs_off = false;
    fake_locks = 0;
    fake_nr_cpus = 4;
    fake_request_irq_error = 0;
    timers = NULL;
    dt_host = NULL;
    tasklets = NULL;
    nr_irqs = 0;
    store_hook = NULL;
    fake_virqs = 0;
    log_len = 0;
    log_buf[0] = 0;
}
