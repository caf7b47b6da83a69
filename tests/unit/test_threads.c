/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Everything at once on one domain, for the thread sanitizer and the check of
 * the lock order: vCPUs that kick and work, p2m changes, ends of grants, strict
 * on and off, bypass, endpoints that come and go, the timer, counters, SMMUs
 * that consume late, devices that do DMA.
 *
 * Two vCPUs have a context, an endpoint and a window each, so that they know
 * what every answer must be.
 */

#include "guest.h"

#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <public/pviommu.h>

#define ROUNDS      1500
#define VCPUS       2
#define STABLE      0x400           /* frames that stay, by vCPU from here on */
#define NR_PLAYED   64              /* frames that come and go, from 0 on */
#define NR_GRANTS   16              /* and those of grants, after them */

static struct domain other = { .creation_finished = true };
static struct page_info *grants;
static struct vcpu cpus[4];
static pthread_mutex_t ring_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned int stop, busy;

/* The p2m: under its lock. */
static struct { bool there; } played[NR_PLAYED], granted[NR_GRANTS];
static uint64_t *l3;

#define check(x) \
    do { if ( !(x) ) fake_panic(__FILE__, __LINE__, #x); } while ( 0 )

static unsigned int random_of(unsigned int *x, unsigned int n)
{
    *x = *x * 1103515245 + 12345;
    return (*x >> 16) % n;
}

static bool stopped(void)
{
    return __atomic_load_n(&stop, __ATOMIC_ACQUIRE);
}

static void yield(void) { sched_yield(); }

static void hook(unsigned long gfn, mfn_t *mfn, p2m_type_t *t,
                 p2m_access_t *a, unsigned int *order)
{
    if ( gfn < NR_PLAYED && !played[gfn].there )
    {
        *mfn = INVALID_MFN;
        *t = p2m_invalid;
    }
    else if ( gfn >= NR_PLAYED && gfn < NR_PLAYED + NR_GRANTS )
    {
        gfn -= NR_PLAYED;
        *mfn = granted[gfn].there ? page_to_mfn(grants + gfn) : INVALID_MFN;
        *t = granted[gfn].there ? p2m_grant_map_rw : p2m_invalid;
    }
}

static void work(struct vcpu *c)
{
    bool more;

    do {
        fake_irqs_off = true;
        more = pviommu_vcpu_work(c);
        fake_irqs_off = false;
        check(!fake_locks);
    } while ( more );
}

static void write_reg(struct vcpu *c, unsigned int reg, uint64_t val,
                      unsigned int size)
{
    mmio_info_t info = { .dabt.size = size, .gpa = 0x2000000 + reg };

    check(fake_mmio_ops->write(c, &info, val, fake_mmio_priv) == 1);
}

/* Both vCPUs share the ring; each waits for its own answer. */
static void ask(struct vcpu *c, const void *req, unsigned int len,
                uint8_t *status)
{
    unsigned int d = c->vcpu_id * 2;
    uint64_t at = RINGS + 0x7000 + d * 256;
    uint16_t mine, seen;

    pthread_mutex_lock(&ring_lock);
    mine = ++avail_idx;
    memcpy(gpa(at), req, len);
    *(uint8_t *)gpa(at + 128) = 0xee;
    desc()[d] = (struct vring_desc){ at, len, VRING_DESC_F_NEXT, d + 1 };
    desc()[d + 1] = (struct vring_desc){ at + 128, 4, VRING_DESC_F_WRITE };
    avail()[2 + (mine - 1) % NUM] = d;
    smp_wmb();
    ACCESS_ONCE(avail()[1]) = mine;
    pthread_mutex_unlock(&ring_lock);

    write_reg(c, 0x50, 0, 2);
    do {
        work(c);
        seen = ACCESS_ONCE(used()[1]);
        smp_rmb();
        yield();
    } while ( (int16_t)(seen - mine) < 0 );
    *status = *(uint8_t *)gpa(at + 128);
}

static int ask_map(struct vcpu *c, uint32_t ctx, uint64_t iova,
                   unsigned int nr, unsigned int gfn)
{
    struct viommu_req_map r = map_req(ctx, iova, nr << 12,
                                      (uint64_t)gfn << 12, RW);
    uint8_t status;

    ask(c, &r, sizeof(r), &status);
    return status;
}

static int ask_unmap(struct vcpu *c, uint32_t ctx, uint64_t iova,
                     unsigned int nr)
{
    struct viommu_req_unmap r = unmap_req(ctx, iova, nr << 12);
    uint8_t status;

    ask(c, &r, sizeof(r), &status);
    return status;
}

static int ask_attach(struct vcpu *c, uint32_t ctx, uint32_t ep, bool attach)
{
    struct viommu_req_attach r = {
        .type = attach ? VIOMMU_T_ATTACH : VIOMMU_T_DETACH,
        .domain = ctx, .endpoint = ep };
    uint8_t status;

    ask(c, &r, sizeof(r), &status);
    return status;
}

/* A vCPU's own context: all is known, and devices find what was mapped. */
static void own_pages(struct vcpu *c, unsigned int *x)
{
    unsigned int id = c->vcpu_id, ctx = 1 + id, nr = 1 + random_of(x, 40);
    unsigned int gfn = STABLE * (1 + id) + random_of(x, 64);
    uint64_t iova = (uint64_t)random_of(x, 3) << 21 | 0x1e0000;
    paddr_t pa;

    check(ask_map(c, ctx, iova, nr, gfn) == VIOMMU_S_OK);
    check(ask_map(c, ctx, iova, 1, gfn) == VIOMMU_S_INVAL);
    check(!sw_dma(&sw[id], 0x10 + id, iova + ((nr - 1) << 12), true, &pa));
    check(pa == page_to_maddr(ram + gfn + nr - 1));
    if ( random_of(x, 4) == 0 )
    {
        /* All of it goes with the context. */
        check(ask_attach(c, ctx, 0x10 + id, false) == VIOMMU_S_OK);
        check(ask_attach(c, ctx, 0x10 + id, true) == VIOMMU_S_OK);
    }
    else
        check(ask_unmap(c, ctx, iova, nr) == VIOMMU_S_OK);
}

/* Frames that come and go, in a context that all share. */
static void shared_pages(struct vcpu *c, unsigned int *x)
{
    unsigned int nr = 1 + random_of(x, 8);
    unsigned int gfn = random_of(x, NR_PLAYED + NR_GRANTS - nr);
    uint64_t iova = (uint64_t)(random_of(x, 4) + 4 * c->vcpu_id) << 16;
    int status = ask_map(c, 9, iova, nr, gfn);

    check(status == VIOMMU_S_OK || status == VIOMMU_S_FAULT);
    check(ask_unmap(c, 9, iova, nr) == VIOMMU_S_OK);
}

static void *vcpu_thread(void *arg)
{
    struct vcpu *c = arg;
    unsigned int i, x = c->vcpu_id + 1;

    for ( i = 0; i < ROUNDS; i++ )
    {
        if ( random_of(&x, 2) )
            own_pages(c, &x);
        else
            shared_pages(c, &x);
        if ( random_of(&x, 16) == 0 )
            write_reg(c, 0x124, random_of(&x, 2), 0);
    }
    __atomic_sub_fetch(&busy, 1, __ATOMIC_RELEASE);
    /* Somebody must do what is left. */
    while ( !stopped() )
    {
        work(c);
        yield();
    }
    return NULL;
}

static void p2m_change(unsigned int gfn, uint64_t new, bool *there)
{
    lpae_t old = { .bits = l3[gfn] };

    spin_lock(&dom.arch.p2m.lock);
    l3[gfn] = 0;
    *there = false;
    pviommu_p2m_change(&dom.arch.p2m, _gfn(gfn), 0, &old, 3, !new);
    *there = new;
    l3[gfn] = new;
    pviommu_p2m_unlock(&dom.arch.p2m);
    spin_unlock(&dom.arch.p2m.lock);
}

static void *p2m_thread(void *arg)
{
    unsigned int x = 77, i;

    while ( !stopped() )
    {
        paddr_t pa;

        i = random_of(&x, NR_PLAYED);
        p2m_change(i, played[i].there ? 0 : page_to_maddr(ram + i) | 0x7ff |
                      (uint64_t)p2m_ram_rw << 55, &played[i].there);

        i = random_of(&x, NR_GRANTS);
        pa = page_to_maddr(grants + i);
        if ( !granted[i].there )
            p2m_change(NR_PLAYED + i, pa | 0x7ff |
                       (uint64_t)p2m_grant_map_rw << 55, &granted[i].there);
        else
        {
            p2m_change(NR_PLAYED + i, 0, &granted[i].there);
            /* Its owner's again. */
            check(!sw_reaching(&sw[0], pa, PAGE_SIZE) &&
                  !sw_reaching(&sw[1], pa, PAGE_SIZE));
        }
        yield();
    }
    return NULL;
}

static void *toolstack_thread(void *arg)
{
    struct pvi_ep_desc d = { .kind = PVI_EP_PCI, .epid = 0x13,
                             .nr_streams = 1 };
    uint64_t c[XEN_PVIOMMU_NR_COUNTERS];
    unsigned int x = 99;

    d.s[0].smmu = smmu_by_node(&sw[1].node);
    d.s[0].sid = 0x13;
    while ( !stopped() )
    {
        check(!pvi_set_strict(pd, random_of(&x, 2)));
        pvi_counters(pd, c);
        check(c[XEN_PVIOMMU_CNT_errors] == 0);
        if ( random_of(&x, 4) == 0 )
        {
            check(!pvi_endpoint_remove(pd, PVI_EP_PCI, 0x13));
            check(!pvi_endpoint_add(pd, &d));
        }
        yield();
    }
    return NULL;
}

/* Has an SMMU nothing to do?  Else its thread may just not get a CPU. */
static bool smmu_idle(const struct swsmmu *s)
{
    return __atomic_load_n(&s->cmdq_prod, __ATOMIC_ACQUIRE) ==
           __atomic_load_n(&s->cmdq_cons, __ATOMIC_ACQUIRE);
}

static void *timer_thread(void *arg)
{
    while ( !stopped() )
    {
        if ( smmu_idle(&sw[0]) && smmu_idle(&sw[1]) )
            __atomic_add_fetch(&fake_now, MICROSECS(200), __ATOMIC_RELAXED);
        if ( fake_timer_due(&pd->fq.timer) )
            pd->fq.timer.fn(pd->fq.timer.data);
        yield();
    }
    return NULL;
}

static void *device_thread(void *arg)
{
    unsigned int x = 55;

    while ( !stopped() )
    {
        unsigned int ep = random_of(&x, 4);
        uint64_t iova = random_of(&x, 2) ? random_of(&x, NR_PLAYED + 16) << 12
                                         : random_of(&x, 128) << 12;
        paddr_t pa;

        /* That nothing free is reached is the SMMU's to see. */
        (void)sw_dma(&sw[ep & 1], 0x10 + ep, iova, random_of(&x, 2), &pa);
        yield();
    }
    return NULL;
}

static void cpu_tables(void)
{
    uint64_t *l2 = page_to_virt(alloc_domheap_pages(NULL, 0, 0));

    l3 = page_to_virt(alloc_domheap_pages(NULL, 0, 0));
    clear_page(l2);
    clear_page(l3);
    l2[0] = virt_to_maddr(l3) | 3;
    *(uint64_t *)page_to_virt(dom.arch.p2m.root) = virt_to_maddr(l2) | 3;
}

static void all_at_once(void **state)
{
    static void *(*const others[])(void *) = {
        p2m_thread, toolstack_thread, timer_thread, device_thread,
    };
    pthread_t v[VCPUS], o[ARRAY_SIZE(others)];
    unsigned int i;

    cpu_tables();
    grants = fake_guest_pages(&other, 4);
    memset(played, 0, sizeof(played));
    memset(granted, 0, sizeof(granted));
    dom.arch.p2m.hook = hook;
    assert_int_equal(attach(1, 0x10, 0), 0);
    assert_int_equal(attach(2, 0x11, 0), 0);
    assert_int_equal(attach(9, 0x12, 0), 0);

    /* Time is counted in looks at the clock, so that load is no time-out. */
    fake_now_step = 10;
    fake_relax_hook = yield;
    fake_store_hook(NULL);
    stop = 0;
    busy = VCPUS;
    sw_thread_start(&sw[0]);
    sw_thread_start(&sw[1]);
    for ( i = 0; i < VCPUS; i++ )
    {
        cpus[i] = (struct vcpu){ .domain = &dom, .vcpu_id = i };
        pthread_create(&v[i], NULL, vcpu_thread, &cpus[i]);
    }
    for ( i = 0; i < ARRAY_SIZE(others); i++ )
        pthread_create(&o[i], NULL, others[i], NULL);
    while ( __atomic_load_n(&busy, __ATOMIC_ACQUIRE) )
        usleep(1000);
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    for ( i = 0; i < VCPUS; i++ )
        pthread_join(v[i], NULL);
    for ( i = 0; i < ARRAY_SIZE(others); i++ )
        pthread_join(o[i], NULL);
    sw_thread_stop(&sw[0]);
    sw_thread_stop(&sw[1]);
    sw[0].mode = sw[1].mode = SW_AT_ONCE;

    assert_false(pd->broken);
    work(&cpus[0]);
    assert_int_equal(pvi_set_strict(pd, true), 0);
    for ( i = 0; !pvi_fq_release(pd, &(int){ 100000 }); i++ )
        continue;
    /* Everything was unmapped: the rings, and grants that still are there. */
    assert_int_equal(fake_refs, 6);
    for ( i = 0; i < NR_GRANTS; i++ )
        assert_int_equal(grants[i].count_info, 1);
    assert_true(pd->stats.map >= ROUNDS);
    assert_true(atomic_read(&pd->stats.flush[PVI_CAUSE_STRICT]) > 0);
    check_counters();
}

/* The check of the lock order does see an inversion. */
static void inversion(void **state)
{
    int status;
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if ( !pid )
    {
        if ( !freopen("/dev/null", "w", stderr) )
            _exit(1);
        signal(SIGABRT, SIG_DFL);
        spin_lock(&pd->tlock);
        spin_lock(&dom.arch.p2m.lock);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
#define L(f) cmocka_unit_test_setup_teardown(f, setup_lazy, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(all_at_once), L(all_at_once), T(inversion),
    };

    return cmocka_run_group_tests_name("threads", tests, NULL, NULL);
}

/* Probed SMMUs stay for ever. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "detect_leaks=0"; }
