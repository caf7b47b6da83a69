/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a MAP and an UNMAP of 4K cost on the machine this runs on: the driver's
 * files, from the kick to the used index.
 *
 *   bench_native MAPPINGS BATCH ROUNDS lazy|strict|tree
 *
 * MAPPINGS are there all the time; each round unmaps the BATCH oldest of them in
 * one kick, and maps as many anew at other addresses in another.  "tree" does
 * the same with a balanced tree that has a node for each mapping (peer.c).
 * Prints one line of JSON.  Instructions are callgrind's: the functions
 * measured_map() and measured_unmap() are what is to be collected.
 *
 * Locks are one exchange of a word and a store; barriers keep the compiler from
 * moving things; an SMMU has done all by the time it is asked; a guest's pages
 * are found by an addition, not in a p2m.  References of pages are taken and
 * dropped as they are.  There is no trap.
 */
#define NUM     256
#define POOL    4096

#include "guest.h"

#include <time.h>

#include "../bench/peer.h"

#define IOVA(i) (0x100000000UL + ((uint64_t)(i) << 12))

/*
 * The linker's --wrap
 */
void __wrap_spin_lock(spinlock_t *l);
void __wrap_spin_unlock(spinlock_t *l);
bool __wrap_spin_is_locked(const spinlock_t *l);
void __wrap_fake_rmb(void);
void __wrap_fake_wmb(void);
uint32_t __wrap_fake_readl(const volatile void *p);
void __wrap_fake_writel(uint32_t v, volatile void *p);
uint32_t __real_fake_readl(const volatile void *p);
void __real_fake_writel(uint32_t v, volatile void *p);
void *__wrap_map_domain_page(mfn_t mfn);
void __wrap_unmap_domain_page(const void *va);

void __wrap_spin_lock(spinlock_t *l)
{
    while ( __atomic_exchange_n(&l->held, true, __ATOMIC_ACQUIRE) )
        continue;
}

void __wrap_spin_unlock(spinlock_t *l)
{
    __atomic_store_n(&l->held, false, __ATOMIC_RELEASE);
}

bool __wrap_spin_is_locked(const spinlock_t *l)
{
    return l->held;
}

void __wrap_fake_rmb(void) { asm volatile ( "" ::: "memory" ); }
void __wrap_fake_wmb(void) { asm volatile ( "" ::: "memory" ); }

void *__wrap_map_domain_page(mfn_t mfn)
{
    return maddr_to_virt(mfn_to_maddr(mfn));
}

void __wrap_unmap_domain_page(const void *va) { (void)va; }

/* From here on SMMUs have done what was published. */
static bool at_once;
static struct { const volatile void *cons; uint32_t val; } queue[2];

uint32_t __wrap_fake_readl(const volatile void *p)
{
    unsigned int i;

    for ( i = 0; at_once && i < ARRAY_SIZE(queue); i++ )
        if ( p == queue[i].cons )
            return queue[i].val;

    return __real_fake_readl(p);
}

void __wrap_fake_writel(uint32_t v, volatile void *p)
{
    unsigned int i;

    for ( i = 0; at_once && i < ARRAY_SIZE(queue); i++ )
        if ( p + 4 == queue[i].cons )
        {
            queue[i].val = v;
            return;
        }

    __real_fake_writel(v, p);
}

/* Nobody executes commands, so nobody writes words when they are done. */
static void no_msi(struct swsmmu *s)
{
    s->idr0 &= ~IDR0_MSI;
}

static void take_over_queues(void)
{
    struct smmu_device *smmu;
    unsigned int i = 0;

    smmu_for_each ( smmu )
    {
        queue[i].cons = smmu->base + SMMU_CMDQ_CONS;
        queue[i++].val = __real_fake_readl(smmu->base + SMMU_CMDQ_CONS);
    }
    at_once = true;
}

/*
 * Requests
 */
static bool tree;
static unsigned int batch;
static uint64_t order_mul, span;

/* The i-th address: all over the place, each once in @span. */
static uint64_t address(uint64_t i)
{
    return IOVA(i * order_mul % span);
}

/* A page of the guest that is no neighbour of its neighbours' pages. */
static uint64_t page(uint64_t i)
{
    return (i * 7919 % (GUEST_PAGES - 64)) << 12;
}

static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static void work(void)
{
    wr(0x50, 0);
    fake_irqs_off = true;
    while ( pviommu_vcpu_work(&cpu) )
        continue;
    fake_irqs_off = false;
}

double measured_map(uint64_t first);
double measured_unmap(uint64_t first);

double __attribute__((__noinline__)) measured_map(uint64_t first)
{
    double start = now_ns();
    unsigned int i;

    if ( !tree )
        work();
    for ( i = 0; tree && i < batch; i++ )
        peer_map(address(first + i), address(first + i) + 4095,
                 page(first + i), RW);

    return now_ns() - start;
}

double __attribute__((__noinline__)) measured_unmap(uint64_t first)
{
    double start = now_ns();
    unsigned int i;

    if ( !tree )
        work();
    for ( i = 0; tree && i < batch; i++ )
        peer_unmap(address(first + i), address(first + i) + 4095);

    return now_ns() - start;
}

static void done(uint8_t **status)
{
    unsigned int i;

    if ( used()[1] != avail_idx )
        fail_msg("not done");
    for ( i = 0; i < batch; i++ )
        if ( *status[i] != VIOMMU_S_OK )
            fail_msg("request %u has status %u", i, *status[i]);
}

static double round_of(bool is_map, uint64_t first)
{
    uint8_t *status[NUM];
    unsigned int i;
    double ns;

    for ( i = 0; !tree && i < batch; i++ )
        if ( is_map )
        {
            struct viommu_req_map r = map_req(1, address(first + i), 0x1000,
                                              page(first + i), RW);

            status[i] = post(&r, sizeof(r), 4);
        }
        else
        {
            struct viommu_req_unmap r = unmap_req(1, address(first + i),
                                                  0x1000);

            status[i] = post(&r, sizeof(r), 4);
        }
    ns = is_map ? measured_map(first) : measured_unmap(first);
    if ( !tree )
        done(status);

    return ns / batch;
}

static int by_value(const void *a, const void *b)
{
    double d = *(const double *)a - *(const double *)b;

    return d < 0 ? -1 : d > 0;
}

int main(int argc, char **argv)
{
    unsigned long n, i, rounds, before = 0;
    uint64_t next = 0, oldest = 0;
    double *map_ns, *unmap_ns, bytes;
    struct page_info *pg;

    if ( argc != 5 )
        return 2;
    n = strtoul(argv[1], NULL, 0);
    batch = strtoul(argv[2], NULL, 0);
    rounds = strtoul(argv[3], NULL, 0);
    tree = argv[4][0] == 't';
    span = n + n / 8;
    /* A prime that divides no span of ours: random enough for a cache. */
    order_mul = 1000003;
    if ( !batch || batch > NUM / 2 || !rounds || n < 8192 )
        return 2;
    map_ns = calloc(rounds, sizeof(*map_ns));
    unmap_ns = calloc(rounds, sizeof(*unmap_ns));

    if ( tree )
    {
        peer_init();
        before = peer_bytes();
    }
    else
    {
        make_smmu = no_msi;
        make(argv[4][0] == 's', false);
        if ( attach(1, 0x10, 0) != VIOMMU_S_OK )
            fail_msg("no domain");
        take_over_queues();
        page_list_for_each ( pg, &dom.arch.paging.p2m_freelist )
            before++;
    }

    /* In the order of addresses: tables are dense, as a guest's are. */
    i = batch;
    batch = NUM / 2;
    for ( ; next < n; next += batch )
        round_of(true, next);
    batch = i;
    n = next;

    if ( tree )
        bytes = peer_bytes() - before;
    else
    {
        page_list_for_each ( pg, &dom.arch.paging.p2m_freelist )
            before--;
        bytes = before * 4096.0;
    }

    for ( i = 0; i < rounds; i++ )
    {
        unmap_ns[i] = round_of(false, oldest);
        oldest += batch;
        map_ns[i] = round_of(true, next);
        next += batch;
    }
    qsort(map_ns, rounds, sizeof(*map_ns), by_value);
    qsort(unmap_ns, rounds, sizeof(*unmap_ns), by_value);
    printf("{\"what\": \"%s\", \"mappings\": %lu, \"batch\": %u, "
           "\"map_ns\": %.1f, \"unmap_ns\": %.1f, \"bytes\": %.2f}\n",
           argv[4], n, batch, map_ns[rounds / 2], unmap_ns[rounds / 2],
           bytes / n);

    return 0;
}
