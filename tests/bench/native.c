/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a MAP and an UNMAP of 4K cost on the machine this runs on: the driver's
 * files, from the kick to the used index.
 *
 *   bench_native MAPPINGS BATCH ROUNDS lazy|strict|tree row|scattered
 *                [CONTEXTS]
 *
 * MAPPINGS are there all the time; each round unmaps the BATCH oldest of them
 * in one kick, and maps as many anew at other addresses in another.  "tree" does
 * the same with a balanced tree that has a node for each mapping (peer.c).
 * "row": addresses and pages one after the other, "scattered": all over the
 * place.  Prints one line of JSON; times are medians of the rounds.
 * Instructions are callgrind's, of measured_map() and measured_unmap().
 *
 * In the measured path: reading the ring and the requests from guest memory,
 * all checks, tables, references of pages, locks, the flush queue, commands and
 * syncs, the answer and the used ring.  Not in it: the trap, the p2m's walk
 * (a guest's pages are found by an addition), waiting for an SMMU, which
 * has done all by the time it is asked, and what the guest itself does.
 * What locks and barriers are is in native.h.
 */
#define NUM     256
#define POOL    16384
#define GUEST_ORDER 16                  /* 256 MiB */

#include "guest.h"

#include <time.h>

#include "../bench/peer.h"

/* Of PVI_MAX_CONTEXTS and as many endpoints; some are the fake guest's. */
#define MAX_CONTEXTS 1000
#define IOVA(i) (0x100000000UL + ((uint64_t)(i) << 12))

/*
 * The linker's --wrap
 */
uint32_t __wrap_fake_readl(const volatile void *p);
void __wrap_fake_writel(uint32_t v, volatile void *p);
uint32_t __real_fake_readl(const volatile void *p);
void __real_fake_writel(uint32_t v, volatile void *p);

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

/* Its syncs are seen in CONS, which take_over_queues() answers. */
static void without_msi(struct swsmmu *s)
{
    s->idr0 &= ~(1U << 13);
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
    /* Nobody looks at single stores any more. */
    fake_store_hook(NULL);
}

/*
 * Requests
 */
static bool tree;
static unsigned int batch, contexts = 1;
static uint64_t order_mul, page_mul, span;

/* The i-th mapping's context, and its address: each once in @span. */
static uint32_t context(uint64_t i)
{
    return 1 + i % contexts;
}

static uint64_t address(uint64_t i)
{
    return IOVA(i / contexts * order_mul % span);
}

static uint64_t page(uint64_t i)
{
    return (i * page_mul % (GUEST_PAGES - 64)) << 12;
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

static void do_map(uint64_t first)
{
    unsigned int i;

    if ( !tree )
        work();
    for ( i = 0; tree && i < batch; i++ )
        peer_map(address(first + i), address(first + i) + 4095,
                 page(first + i), RW);
}

double measured_map(uint64_t first);
double measured_unmap(uint64_t first);

double __attribute__((__noinline__)) measured_map(uint64_t first)
{
    double start = now_ns();

    do_map(first);

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

    if ( tree )
        return;
    if ( used()[1] != avail_idx )
        fail_msg("not done");
    for ( i = 0; i < batch; i++ )
        if ( *status[i] != VIOMMU_S_OK )
            fail_msg("request %u has status %u", i, *status[i]);
}

static void post_all(bool is_map, uint64_t first, uint8_t **status)
{
    unsigned int i;

    for ( i = 0; !tree && i < batch; i++ )
        if ( is_map )
        {
            struct viommu_req_map r = map_req(context(first + i),
                                              address(first + i), 0x1000,
                                              page(first + i), RW);

            status[i] = post(&r, sizeof(r), 4);
        }
        else
        {
            struct viommu_req_unmap r = unmap_req(context(first + i),
                                                  address(first + i), 0x1000);

            status[i] = post(&r, sizeof(r), 4);
        }
}

static double round_of(bool is_map, uint64_t first, double clock)
{
    uint8_t *status[NUM];
    double ns;

    post_all(is_map, first, status);
    ns = is_map ? measured_map(first) : measured_unmap(first);
    done(status);

    return (ns - clock) / batch;
}

/* The same, and nobody counts. */
static void fill(uint64_t first)
{
    uint8_t *status[NUM];

    post_all(true, first, status);
    do_map(first);
    done(status);
}

/* A device for each context, by turns behind one SMMU and the other. */
static void attach_all(void)
{
    struct pvi_ep_desc d = { .kind = PVI_EP_PCI, .nr_streams = 1 };
    unsigned int i;

    for ( i = 0; i < contexts; i++ )
    {
        d.epid = d.s[0].sid = 0x100 + i;
        d.s[0].smmu = smmu_by_node(&sw[i & 1].node);
        if ( pvi_endpoint_add(pd, &d) ||
             attach(context(i), d.epid, 0) != VIOMMU_S_OK )
            fail_msg("no context %u", i);
    }
}

/* What looking at the clock twice takes. */
static double clock_ns(void)
{
    double best = 1e9, start;
    unsigned int i;

    for ( i = 0; i < 10000; i++ )
    {
        start = now_ns();
        best = min(best, now_ns() - start);
    }

    return best;
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
    double *map_ns, *unmap_ns, bytes, clock = clock_ns();
    struct page_info *pg;

    if ( argc != 6 && argc != 7 )
        return 2;
    n = strtoul(argv[1], NULL, 0);
    batch = strtoul(argv[2], NULL, 0);
    rounds = strtoul(argv[3], NULL, 0);
    tree = argv[4][0] == 't';
    if ( argc == 7 )
        contexts = strtoul(argv[6], NULL, 0);
    if ( !contexts || contexts > MAX_CONTEXTS )
        return 2;
    span = n / contexts + n / contexts / 8 + NUM;
    /* A prime that divides no span of ours: random enough for a cache. */
    order_mul = argv[5][0] == 's' ? 1000003 : 1;
    page_mul = argv[5][0] == 's' ? 7919 : 1;
    if ( !batch || batch > NUM / 2 || !rounds || n < batch )
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
        make_smmu = without_msi;
        make(argv[4][0] == 's', false);
        attach_all();
        take_over_queues();
        page_list_for_each ( pg, &dom.arch.paging.p2m_freelist )
            before++;
    }

    i = batch;
    batch = min(n, NUM / 2UL);
    for ( ; next < n; next += batch )
        fill(next);
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
        unmap_ns[i] = round_of(false, oldest, clock);
        oldest += batch;
        map_ns[i] = round_of(true, next, clock);
        next += batch;
    }
    qsort(map_ns, rounds, sizeof(*map_ns), by_value);
    qsort(unmap_ns, rounds, sizeof(*unmap_ns), by_value);
    printf("{\"what\": \"%s\", \"order\": \"%s\", \"mappings\": %lu, "
           "\"contexts\": %u, \"batch\": %u, \"map_ns\": %.1f, "
           "\"unmap_ns\": %.1f, \"bytes\": %.2f}\n",
           argv[4], argv[5], n, contexts, batch, map_ns[rounds / 2],
           unmap_ns[rounds / 2], bytes / n);

    return 0;
}
