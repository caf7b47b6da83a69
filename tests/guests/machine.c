/* SPDX-License-Identifier: GPL-2.0-only */
/* Hypercalls, time, GICv3, CPUs by PSCI, memory. */

#include "guest.h"

#include <public/xen.h>
#include <public/version.h>
#include <public/features.h>

uint64_t mmio_read(uintptr_t a, unsigned int size)
{
    uint64_t v;

    switch ( size )
    {
    case 1:
        asm volatile ( "ldrb %w0, [%1]" : "=r" (v) : "r" (a) : "memory" );
        break;
    case 2:
        asm volatile ( "ldrh %w0, [%1]" : "=r" (v) : "r" (a) : "memory" );
        break;
    case 4:
        return mmio_read32(a);
    default:
        asm volatile ( "ldr %0, [%1]" : "=r" (v) : "r" (a) : "memory" );
    }

    return v;
}

void mmio_write(uintptr_t a, uint64_t v, unsigned int size)
{
    switch ( size )
    {
    case 1:
        asm volatile ( "strb %w0, [%1]" :: "r" (v), "r" (a) : "memory" );
        break;
    case 2:
        asm volatile ( "strh %w0, [%1]" :: "r" (v), "r" (a) : "memory" );
        break;
    case 4:
        mmio_write32(a, v);
        break;
    default:
        asm volatile ( "str %0, [%1]" :: "r" (v), "r" (a) : "memory" );
    }
}

/*
 * Hypercalls
 */
long hypercall(unsigned int nr, uint64_t a, uint64_t b, uint64_t c)
{
    register uint64_t x16 asm ( "x16" ) = nr;
    register uint64_t x0 asm ( "x0" ) = a;
    register uint64_t x1 asm ( "x1" ) = b;
    register uint64_t x2 asm ( "x2" ) = c;

    asm volatile ( "hvc #0xea1"
                   : "+r" (x0), "+r" (x1), "+r" (x2), "+r" (x16)
                   :: "x3", "x4", "memory" );

    return x0;
}

void console_write(const char *s, unsigned int len)
{
    if ( tree.xen )
        hypercall(__HYPERVISOR_console_io, CONSOLEIO_write, len, (uint64_t)s);
    else if ( tree.uart.size )
        while ( len-- )
            mmio_write32(tree.uart.base, *s++);
}

void bail(const char *fmt, ...)
{
    char text[100];
    va_list args;

    va_start(args, fmt);
    format(text, sizeof(text), fmt, args);
    va_end(args);
    print("Bail out! %s\n", text);
    if ( !tree.xen )
        power_off();
    for ( ; ; )
        asm volatile ( "wfi" );
}

void trap(uint64_t esr, uint64_t elr, uint64_t far);
extern const char _start[];
void trap(uint64_t esr, uint64_t elr, uint64_t far)
{
    bail("exception on CPU %u: ESR %#lx at image+%#lx, address %#lx",
         this_cpu(), esr, elr - (uint64_t)_start, far);
}

/*
 * Time: the virtual timer
 */
#define TIMER_PPI   27
#define KICK_SGI    1

uint64_t now_us(void)
{
    uint64_t hz = sysreg_read(cntfrq_el0), t;

    asm volatile ( "isb" ::: "memory" );
    t = sysreg_read(cntvct_el0);

    return t / hz * 1000000 + t % hz * 1000000 / hz;
}

static void irq_on(void)
{
    asm volatile ( "msr daifclr, #2" ::: "memory" );
}

static void irq_off(void)
{
    asm volatile ( "msr daifset, #2" ::: "memory" );
}

void sleep_until(uint64_t us)
{
    uint64_t hz = sysreg_read(cntfrq_el0);

    /* Up to the next tick of the counter. */
    sysreg_write(cntv_cval_el0,
                 us / 1000000 * hz + (us % 1000000 * hz + 999999) / 1000000);
    while ( now_us() < us )
    {
        /* A pending interrupt ends wfi also while it is masked. */
        irq_off();
        sysreg_write(cntv_ctl_el0, 1);
        if ( now_us() < us )
            asm volatile ( "wfi" );
        irq_on();
    }
    sysreg_write(cntv_ctl_el0, 0);
}

/*
 * GICv3, in group 1 and with affinity routing
 */
#define GICD_CTLR       0x0000
#define GICD_IGROUPR    0x0080
#define GICD_ISENABLER  0x0100
#define GICD_IPRIORITYR 0x0400
#define GICD_ICFGR      0x0c00
#define GICD_IROUTER    0x6000
#define GICR_TYPER      0x0008
#define GICR_SGI        0x10000
#define GICR_STRIDE     0x20000
#define SPURIOUS        1020

static struct { unsigned int intid; unsigned int *count; } counted[4];

static void gic_enable(uintptr_t regs, unsigned int intid)
{
    uintptr_t group = regs + GICD_IGROUPR + intid / 32 * 4;

    mmio_write32(group, mmio_read32(group) | 1U << (intid % 32));
    mmio_write(regs + GICD_IPRIORITYR + intid, 0x80, 1);
    mmio_write32(regs + GICD_ISENABLER + intid / 32 * 4, 1U << (intid % 32));
}

static void gic_cpu_init(void)
{
    uint64_t mpidr = sysreg_read(mpidr_el1);
    uint32_t aff = (mpidr & 0xffffff) | (mpidr >> 32 & 0xff) << 24;
    uintptr_t r = tree.gicr.base;

    for ( ; r < tree.gicr.base + tree.gicr.size; r += GICR_STRIDE )
    {
        uint64_t typer = mmio_read(r + GICR_TYPER, 8);

        if ( typer >> 32 == aff )
        {
            gic_enable(r + GICR_SGI, KICK_SGI);
            gic_enable(r + GICR_SGI, TIMER_PPI);
            break;
        }
        if ( typer & 0x10 )
            bail("no redistributor for CPU %u", this_cpu());
    }

    sysreg_write(S3_0_C12_C12_5, 7);        /* ICC_SRE_EL1 */
    sysreg_write(S3_0_C4_C6_0, 0xff);       /* ICC_PMR_EL1 */
    sysreg_write(S3_0_C12_C12_7, 1);        /* ICC_IGRPEN1_EL1 */
    irq_on();
}

static void gic_init(void)
{
    if ( !tree.gicd.size || !tree.gicr.size )
        bail("no GICv3 in the device tree");
    mmio_write32(tree.gicd.base + GICD_CTLR, 0x12);
    gic_cpu_init();
}

void irq_count(unsigned int intid, unsigned int *count)
{
    uintptr_t cfg = tree.gicd.base + GICD_ICFGR + intid / 16 * 4;
    unsigned int i;

    for ( i = 0; i < ARRAY_SIZE(counted) - 1 && counted[i].count; i++ )
        if ( counted[i].intid == intid )
            break;
    counted[i].intid = intid;
    counted[i].count = count;

    mmio_write32(cfg, mmio_read32(cfg) | 2U << (intid % 16 * 2));
    mmio_write(tree.gicd.base + GICD_IROUTER + intid * 8,
               tree.cpu[0] & 0xff00ffffffUL, 8);
    gic_enable(tree.gicd.base, intid);
}

void irq_handler(void);
void irq_handler(void)
{
    for ( ; ; )
    {
        unsigned int intid = sysreg_read(S3_0_C12_C12_0), i; /* ICC_IAR1 */

        if ( intid >= SPURIOUS )
            return;
        if ( intid == TIMER_PPI )
            sysreg_write(cntv_ctl_el0, 0);
        for ( i = 0; i < ARRAY_SIZE(counted); i++ )
            if ( counted[i].count && counted[i].intid == intid )
                ACCESS(*counted[i].count)++;
        sysreg_write(S3_0_C12_C12_1, intid);    /* ICC_EOIR1 */
    }
}

/*
 * CPUs
 */
#define PSCI_CPU_ON     0xc4000003UL
#define PSCI_OFF        0x84000008UL

static struct job {
    void (*fn)(void *arg);
    void *arg;
    bool online;
} job[MAX_CPUS];
unsigned int nr_cpus = 1;

void secondary(void);
void cpu_main(unsigned int cpu);
void cpu_main(unsigned int cpu)
{
    struct job *j = &job[cpu];

    gic_cpu_init();
    mb();
    ACCESS(j->online) = true;

    for ( ; ; )
    {
        irq_off();
        if ( !ACCESS(j->fn) )
            asm volatile ( "wfi" );
        irq_on();
        if ( !ACCESS(j->fn) )
            continue;
        mb();
        j->fn(j->arg);
        mb();
        ACCESS(j->fn) = NULL;
    }
}

void power_off(void)
{
    register uint64_t x0 asm ( "x0" ) = PSCI_OFF;

    asm volatile ( "hvc #0" : "+r" (x0) :: "x1", "x2", "x3", "memory" );
}

void cpu_run(unsigned int cpu, void (*fn)(void *arg), void *arg)
{
    uint64_t mpidr = tree.cpu[cpu];

    job[cpu].arg = arg;
    mb();
    ACCESS(job[cpu].fn) = fn;
    dsb();
    /* ICC_SGI1R_EL1 */
    sysreg_write(S3_0_C12_C11_5,
                 (mpidr >> 32 & 0xff) << 48 | (mpidr >> 16 & 0xff) << 32 |
                 (mpidr >> 8 & 0xff) << 16 | 1UL << (mpidr & 0xf) |
                 (uint64_t)KICK_SGI << 24);
}

bool cpu_busy(unsigned int cpu)
{
    return ACCESS(job[cpu].fn);
}

void cpu_wait(unsigned int cpu)
{
    while ( cpu_busy(cpu) )
        sleep_us(100);
    mb();
}

static void cpus_start(void)
{
    unsigned int i;

    for ( i = 1; i < tree.nr_cpus; i++ )
    {
        register uint64_t x0 asm ( "x0" ) = PSCI_CPU_ON;
        register uint64_t x1 asm ( "x1" ) = tree.cpu[i];
        register uint64_t x2 asm ( "x2" ) = (uint64_t)secondary;
        register uint64_t x3 asm ( "x3" ) = i;
        unsigned int tries;

        asm volatile ( "hvc #0"
                       : "+r" (x0), "+r" (x1), "+r" (x2), "+r" (x3)
                       :: "memory" );
        if ( x0 )
            bail("CPU %u does not start: %ld", i, (long)x0);
        for ( tries = 0; !ACCESS(job[i].online); tries++ )
        {
            if ( tries == 2000 )
                bail("CPU %u does not come up", i);
            sleep_us(1000);
        }
        nr_cpus++;
    }
}

/*
 * Memory: handed out from the front of each bank, around what is in use
 */
extern uint64_t l1_table[];
extern const char _end[];
static struct region used[4];
static unsigned int nr_used;
static uint64_t next[8];

/* Make the blocks of @r write-back memory; until now they were device. */
static void map_memory(const struct region *r)
{
    uint64_t i = r->base >> 30, last = (r->base + r->size - 1) >> 30;

    for ( ; i <= last && i < 512; i++ )
    {
        if ( (l1_table[i] & 0x1c) == 0 )
            continue;
        ACCESS(l1_table[i]) = 0;
        asm volatile ( "dsb ishst; tlbi vmalle1is; dsb ish" ::: "memory" );
        ACCESS(l1_table[i]) = i << 30 | 0x701;
        asm volatile ( "dsb ishst; isb" ::: "memory" );
    }
}

void memory_mark(uint64_t start, uint64_t size)
{
    used[nr_used++] = (struct region){ start, size };
}

void *memory(size_t size, size_t align)
{
    unsigned int b, i;

    align = align < PAGE ? PAGE : align;
    for ( b = 0; b < tree.nr_memory; b++ )
    {
        uint64_t end = tree.memory[b].base + tree.memory[b].size;
        uint64_t a = (next[b] + align - 1) & -align;

        for ( i = 0; i < nr_used; i++ )
            if ( a < used[i].base + used[i].size && used[i].base < a + size )
            {
                a = (used[i].base + used[i].size + align - 1) & -align;
                i = -1;         /* from the first again */
            }
        if ( a + size > end )
            continue;
        /* Big alignments leave gaps; small pieces go in from the front. */
        if ( align <= 2 * MB )
            next[b] = a + size;
        else
            memory_mark(a, size);
        return memset((void *)a, 0, size);
    }

    return NULL;
}

static bool is_dom0(void)
{
    struct xen_feature_info info = { 0 };

    return !hypercall(__HYPERVISOR_xen_version, XENVER_get_features,
                      (uint64_t)&info, 0) &&
           (info.submap & 1U << XENFEAT_dom0);
}

void machine_init(void)
{
    unsigned int i;

    for ( i = 0; i < tree.nr_memory; i++ )
    {
        map_memory(&tree.memory[i]);
        next[i] = tree.memory[i].base;
    }
    memory_mark((uint64_t)_start, _end - _start);
    tree.dom0 = tree.xen && is_dom0();
    gic_init();
    cpus_start();
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
