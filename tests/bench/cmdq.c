/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The command queue with 1 to 16 producers, against one under a plain lock.
 *
 *   cmdq [-t MILLISECONDS] [-n RUNS] [JSON]
 *
 * Each producer submits batches with a sync and waits for each.  "Ours" is
 * smmu/cmdq.c as it is; "locked" is below: a lock around each command, and
 * around a sync and the wait for the queue to be empty, which is how Xen's
 * stock driver uses its queue.  Both talk to the software SMMU, whose thread
 * checks that no command is lost or out of order; each producer checks after
 * each wait that its commands were consumed.  A wrong result ends in status 1.
 *
 * The SMMU "fast" consumes whatever there is; "slow" rests a while after it has
 * done so, as one does that takes long for a sync and not for each command:
 * with it one sees who waits for whom.
 *
 * The lock is the host's mutex, which sleeps: on a host with fewer CPUs than
 * producers that is kinder to the locked queue than a spinlock would be.
 */

#include "unit.h"

#include <sched.h>
#include <time.h>
#include <unistd.h>

#define BATCH       8           /* TLBI commands with each sync */
#define MAX_THREADS 16
#define SLOW_US     50

static const unsigned int thread_counts[] = { 1, 2, 4, 8, 16 };
static const struct { const char *name; unsigned int rest; } smmus[] = {
    { "fast", 0 }, { "slow", SLOW_US },
};

unsigned int pvi_smmu_event(const struct smmu_event *ev) { (void)ev; return 0; }

static struct swsmmu sw;
static struct smmu_device *smmu;
static unsigned int run_ms = 300, repeats = 5;

/* What one producer has seen. */
struct seen {
    unsigned int cons_reads, prod_writes, lock_waits;
    unsigned int batches;
    s_time_t longest, began, ended;
    bool bad;
} __attribute__((__aligned__(128)));
static struct seen seen[MAX_THREADS];
static __thread struct seen *my;

static unsigned int consumed[MAX_THREADS];      /* by the SMMU's thread */
static bool disorder;

struct result {
    double rate;                /* commands (with syncs) per second */
    double longest_us;          /* wait of one producer for one batch */
    double cons_reads, prod_writes;     /* per batch */
    double lock_waits;          /* share of lock acquisitions that waited */
    double full;                /* per batch: no room in the queue */
};

/*
 * Register accesses of the producers, counted (the linker's --wrap).
 */
uint32_t __real_fake_readl(const volatile void *p);
void __real_fake_writel(uint32_t v, volatile void *p);
uint32_t __wrap_fake_readl(const volatile void *p);
void __wrap_fake_writel(uint32_t v, volatile void *p);

uint32_t __wrap_fake_readl(const volatile void *p)
{
    if ( my && p == smmu->base + SMMU_CMDQ_CONS )
        my->cons_reads++;
    return __real_fake_readl(p);
}

void __wrap_fake_writel(uint32_t v, volatile void *p)
{
    if ( my && p == smmu->base + SMMU_CMDQ_PROD )
        my->prod_writes++;
    __real_fake_writel(v, p);
}

#ifdef __SANITIZE_THREAD__
/*
 * Not to measure but to look for races: others get in between at barriers, so
 * that one producer publishes what another has marked.
 */
void __real_fake_wmb(void);
void __wrap_fake_wmb(void);

void __wrap_fake_wmb(void)
{
    static __thread unsigned int calls;

    __real_fake_wmb();
    if ( my && ++calls % 3 == 0 )
        sched_yield();
}
#endif

/*
 * The locked queue: one command at a time, PROD after each, a sync waits under
 * the lock until the SMMU has consumed everything.
 */
static spinlock_t locked_lock;
static uint32_t locked_prod;

static uint32_t locked_space(void)
{
    uint32_t size = 1U << smmu->cmdq.log2;

    return size - ((locked_prod - readl(smmu->base + SMMU_CMDQ_CONS)) &
                   (2 * size - 1));
}

static void locked_insert(uint64_t w0, uint64_t w1)
{
    uint32_t size = 1U << smmu->cmdq.log2;
    uint64_t *slot = &smmu->cmdq.base[(locked_prod & (size - 1)) * CMD_WORDS];

    while ( !locked_space() )
        cpu_relax();
    slot[0] = w0;
    slot[1] = w1;
    locked_prod++;
    writel(locked_prod & (2 * size - 1), smmu->base + SMMU_CMDQ_PROD);
}

static void locked_begin(unsigned long *flags)
{
    local_irq_save(*flags);
    if ( spin_is_locked(&locked_lock) )
        my->lock_waits++;
    spin_lock(&locked_lock);
}

static void locked_end(unsigned long flags)
{
    spin_unlock(&locked_lock);
    local_irq_restore(flags);
}

static int locked_batch(unsigned int who, unsigned int *nr)
{
    unsigned long flags;
    unsigned int i;

    for ( i = 0; i < BATCH; i++ )
    {
        locked_begin(&flags);
        locked_insert(CMD_OP_TLBI_S2_IPA | CMD_TLBI_VMID(who),
                      (uint64_t)++*nr << 12);
        locked_end(flags);
    }

    locked_begin(&flags);
    locked_insert(CMD_OP_SYNC | CMD_SYNC_CS_NONE, 0);
    while ( locked_space() != 1U << smmu->cmdq.log2 )
        cpu_relax();
    locked_end(flags);

    return 0;
}

static int our_batch(unsigned int who, unsigned int *nr)
{
    struct smmu_batch b;
    unsigned int i;
    int rc = 0;

    smmu_batch_init(&b, smmu);
    for ( i = 0; !rc && i < BATCH; i++ )
        rc = smmu_batch_add(&b, CMD_OP_TLBI_S2_IPA | CMD_TLBI_VMID(who),
                            (uint64_t)++*nr << 12);

    return rc ?: smmu_batch_sync(&b);
}

/* Before each command. */
static int note(struct swsmmu *s, const struct sw_cmd *c, unsigned int n)
{
    s->nr_log = 0;              /* or a long run fills the memory */
    if ( (c->w[0] & 0xff) == CMD_OP_TLBI_S2_IPA )
    {
        unsigned int who = c->w[0] >> 32 & 0xff, nr = c->w[1] >> 12;

        if ( nr != consumed[who] + 1 )
            __atomic_store_n(&disorder, true, __ATOMIC_RELAXED);
        __atomic_store_n(&consumed[who], nr, __ATOMIC_RELEASE);
    }
    return SW_OK;
}

/* The SMMU: all there is at once, then a rest. */
static unsigned int rest_us;
static bool stop;

static void *consumer(void *arg)
{
    while ( !__atomic_load_n(&stop, __ATOMIC_RELAXED) )
        if ( !sw_consume(&sw, UINT_MAX) )
            sched_yield();
        else if ( rest_us )
            usleep(rest_us);

    return NULL;
}

static int (*batch)(unsigned int who, unsigned int *nr);
static pthread_barrier_t start;

static void *producer(void *arg)
{
    unsigned int who = (unsigned long)arg, nr = 0;
    s_time_t began, now;

    my = &seen[who];
    pthread_barrier_wait(&start);
    my->began = now = NOW();
    do {
        began = now;
        if ( batch(who, &nr) ||
             __atomic_load_n(&consumed[who], __ATOMIC_ACQUIRE) != nr )
            my->bad = true;
        my->batches++;
        now = NOW();
        my->longest = max(my->longest, now - began);
    } while ( now - my->began < MILLISECS(run_ms) );
    my->ended = now;
    my = NULL;

    return NULL;
}

/* False: something went wrong. */
static bool run(bool locked, unsigned int threads, unsigned int rest,
                struct result *r)
{
    pthread_t t[MAX_THREADS], consumes;
    unsigned int batches = 0;
    unsigned long i;
    s_time_t began = STIME_MAX, ended = 0, longest = 0;
    bool ok = true;

    fake_init();
    fake_nr_cpus = MAX_THREADS;
    sw_init(&sw, "smmu");
    smmu = dev_new(&sw);
    sw.inject = note;
    sw.mode = SW_MANUAL;
    rest_us = rest;
    stop = false;
    fake_real_time = true;
    memset(seen, 0, sizeof(seen));
    memset(consumed, 0, sizeof(consumed));
    disorder = false;
    spin_lock_init(&locked_lock);
    locked_prod = 0;
    batch = locked ? locked_batch : our_batch;
    pthread_barrier_init(&start, NULL, threads);

    pthread_create(&consumes, NULL, consumer, NULL);
    for ( i = 0; i < threads; i++ )
        pthread_create(&t[i], NULL, producer, (void *)i);
    for ( i = 0; i < threads; i++ )
        pthread_join(t[i], NULL);
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    pthread_join(consumes, NULL);

    memset(r, 0, sizeof(*r));
    for ( i = 0; i < threads; i++ )
    {
        const struct seen *p = &seen[i];

        batches += p->batches;
        r->cons_reads += p->cons_reads;
        r->prod_writes += p->prod_writes;
        r->lock_waits += p->lock_waits;
        longest = max(longest, p->longest);
        began = min(began, p->began);
        ended = max(ended, p->ended);
        ok = ok && !p->bad && consumed[i] == p->batches * BATCH;
    }
    r->cons_reads /= batches;
    r->prod_writes /= batches;
    r->lock_waits /= batches * (BATCH + 1);
    r->rate = batches * (BATCH + 1) * 1e9 / (ended - began);
    r->longest_us = longest / 1e3;
    r->full = (double)atomic_read(&smmu->stats.cmdq_full) / batches;
    ok = ok && !disorder && !sw.violations && sw.nr_syncs == batches &&
         !atomic_read(&smmu->stats.cmdq_timeout);

    pthread_barrier_destroy(&start);
    sw_exit(&sw);
    dev_free(smmu);

    return ok;
}

static int by_rate(const void *a, const void *b)
{
    const struct result *x = a, *y = b;

    return x->rate < y->rate ? -1 : x->rate > y->rate;
}

static void json_result(FILE *f, const char *name, const struct result *r,
                        bool locked)
{
    fprintf(f, "\"%s\": {\"commands_per_s\": %.0f, \"longest_wait_us\": %.1f, "
               "\"cons_reads_per_batch\": %.2f, \"prod_writes_per_batch\": %.3f, ",
            name, r->rate, r->longest_us, r->cons_reads, r->prod_writes);
    if ( locked )
        fprintf(f, "\"lock_waits\": %.4f}", r->lock_waits);
    else
        fprintf(f, "\"queue_full_per_batch\": %.4f}", r->full);
}

int main(int argc, char **argv)
{
    struct result r[2][16];
    unsigned int s, i, n, locked;
    FILE *f = NULL;
    int opt;

    while ( (opt = getopt(argc, argv, "t:n:")) != -1 )
        switch ( opt )
        {
        case 't': run_ms = max(atoi(optarg), 1); break;
        case 'n': repeats = min(max(atoi(optarg), 1), 16); break;
        default: return 2;
        }
    if ( optind < argc && !(f = fopen(argv[optind], "w")) )
    {
        perror(argv[optind]);
        return 2;
    }

    printf("Batches of %u commands and a sync, medians of %u runs of %u ms, %ld CPUs.\n"
           "wait: longest of one producer; CONS, PROD: register accesses per batch;\n"
           "held: share of lock acquisitions that found it held.\n\n"
           "SMMU threads |  ours: cmd/s  wait us   CONS  PROD | locked: cmd/s"
           "  wait us   CONS  PROD  held | ratio\n",
           BATCH, repeats, run_ms, sysconf(_SC_NPROCESSORS_ONLN));
    if ( f )
        fprintf(f, "{\"cpus\": %ld, \"batch\": %u, \"runs\": %u, \"run_ms\": %u, "
                   "\"slow_smmu_rest_us\": %u, \"rows\": [",
                sysconf(_SC_NPROCESSORS_ONLN), BATCH, repeats, run_ms,
                SLOW_US);

    for ( s = 0; s < ARRAY_SIZE(smmus); s++ )
        for ( i = 0; i < ARRAY_SIZE(thread_counts); i++ )
        {
            const struct result *o = &r[0][repeats / 2], *l = &r[1][repeats / 2];

            for ( n = 0; n < repeats; n++ )
                for ( locked = 0; locked < 2; locked++ )
                    if ( !run(locked, thread_counts[i], smmus[s].rest,
                              &r[locked][n]) )
                    {
                        printf("WRONG: %s, %u threads, %s SMMU: %s\n",
                               locked ? "locked" : "ours", thread_counts[i],
                               smmus[s].name, fake_log());
                        return 1;
                    }
            for ( locked = 0; locked < 2; locked++ )
                qsort(r[locked], repeats, sizeof(r[0][0]), by_rate);

            printf("%s %7u | %12.0f %8.0f %6.1f %5.2f | %13.0f %8.0f %6.1f %5.2f %5.2f | %5.2f\n",
                   smmus[s].name, thread_counts[i], o->rate, o->longest_us,
                   o->cons_reads, o->prod_writes, l->rate, l->longest_us,
                   l->cons_reads, l->prod_writes, l->lock_waits,
                   o->rate / l->rate);
            fflush(stdout);
            if ( f )
            {
                fprintf(f, "%s\n {\"smmu\": \"%s\", \"threads\": %u, ",
                        s || i ? "," : "", smmus[s].name, thread_counts[i]);
                json_result(f, "ours", o, false);
                fprintf(f, ", ");
                json_result(f, "locked", l, true);
                fprintf(f, ", \"ratio\": %.3f}", o->rate / l->rate);
            }
        }
    if ( f )
    {
        fprintf(f, "\n]}\n");
        if ( fclose(f) )
            return 2;
    }

    return 0;
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
