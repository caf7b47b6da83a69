/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A firmware that leaves everything running: a USB controller that reads its
 * list each millisecond and writes into what it finds there, and, if the
 * command line says firmware=on, the SMMU translating for it, with queues,
 * interrupts, an error that nobody has acknowledged and commands behind it.
 * Otherwise the SMMU is off and lets all DMA pass.
 *
 * Nothing here is shared with the driver: numbers are those of the
 * architecture (Arm IHI 0070) and of the controller (UHCI 1.1).
 */

#include <stdint.h>

/* QEMU's virt machine. */
#define UART            0x09000000UL
#define SMMU            0x09050000UL
#define PIO             0x3eff0000UL
#define ECAM            0x4010000000UL
#define DEVFN           0x80UL          /* test_takeover.py puts it there */
#define PORT            0x1000UL

#define reg32(a)        (*(volatile uint32_t *)(a))
#define reg64(a)        (*(volatile uint64_t *)(a))
#define reg16(a)        (*(volatile uint16_t *)(a))
#define aligned(n)      __attribute__((aligned(n)))

/* One descriptor for each millisecond of the controller's list. */
#define FRAMES          1024
#define TD_ACTIVE       (1U << 23)
#define TD_IN           0x69U
static struct td { uint32_t link, ctrl, token, buffer; } td[FRAMES] aligned(16);
static uint32_t frame[FRAMES] aligned(4096);

/* The SMMU's memory; each at its size's alignment. */
#define STREAMS_LOG2    8
static uint64_t strtab[8 << STREAMS_LOG2] aligned(64 << STREAMS_LOG2);
#define CMDQ_LOG2       4
static uint64_t cmdq[2 << CMDQ_LOG2] aligned(4096);
#define EVTQ_LOG2       4
static uint64_t evtq[4 << EVTQ_LOG2] aligned(4096);
static uint64_t s2[512] aligned(4096);

static void print(const char *s)
{
    for ( ; *s; s++ )
        reg32(UART) = *s;
}

static void barrier(void)
{
    asm volatile("dsb sy" ::: "memory");
}

/* Stage 2 one to one, as VMID 1: the first one that a driver takes. */
static void smmu_on(void)
{
    unsigned int i;

    for ( i = 0; i < 512; i++ )
        s2[i] = (uint64_t)i << 30 | 0x7fd;  /* block, read and write */
    for ( i = 0; i < 1U << STREAMS_LOG2; i++ )
    {
        strtab[8 * i] = 1 | 6 << 1;         /* valid, stage 2 */
        strtab[8 * i + 1] = 1UL << 44;
        /* VMID 1, 39 bits from level 1, 4K, 44 bits of output. */
        strtab[8 * i + 2] = 1 | 25UL << 32 | 1UL << 38 | 4UL << 48 |
                            1UL << 51 | 1UL << 53;
        strtab[8 * i + 3] = (uintptr_t)s2;
    }
    cmdq[0] = 0x46;                         /* CMD_SYNC */
    cmdq[2] = 0xff;                         /* there is none such */
    cmdq[4] = 0x46;
    barrier();

    reg32(SMMU + 0x28) = 0xd75;             /* CR1: cached, shareable */
    reg64(SMMU + 0x80) = (uintptr_t)strtab;
    reg32(SMMU + 0x88) = STREAMS_LOG2;
    reg64(SMMU + 0x90) = (uintptr_t)cmdq | CMDQ_LOG2;
    reg64(SMMU + 0xa0) = (uintptr_t)evtq | EVTQ_LOG2;
    reg32(SMMU + 0x50) = 5;                 /* both interrupts */
    reg32(SMMU + 0x20) = 0xd;               /* queues, translation */
    while ( reg32(SMMU + 0x24) != 0xd )
        continue;
    reg32(SMMU + 0x98) = 3;                 /* CMDQ_PROD */
    while ( !((reg32(SMMU + 0x60) ^ reg32(SMMU + 0x64)) & 1) )
        continue;                           /* GERROR: the second command */
}

static void uhci_on(void)
{
    unsigned long config = ECAM + (DEVFN << 12);
    unsigned int i;

    for ( i = 0; i < FRAMES; i++ )
    {
        td[i].link = 1;                     /* nothing follows */
        td[i].ctrl = TD_ACTIVE;
        td[i].token = TD_IN | 0x7ffU << 21; /* to nobody, without data */
        frame[i] = (uintptr_t)&td[i];
    }
    barrier();

    reg32(config + 0x20) = PORT;
    reg16(config + 0x04) = 5;               /* I/O, bus master */
    reg32(PIO + PORT + 0x08) = (uintptr_t)frame;
    reg16(PIO + PORT + 0x06) = 0;
    reg16(PIO + PORT) = 1;                  /* run */
}

static int find(const char *s, unsigned long n, const char *what)
{
    unsigned long i, j;

    for ( i = 0; i < n; i++ )
    {
        for ( j = 0; what[j] && s[i + j] == what[j]; j++ )
            continue;
        if ( !what[j] )
            return 1;
    }

    return 0;
}

void firmware(const char *fdt)
{
    /* Xen's command line is somewhere in the tree; its size is big endian. */
    unsigned long size = __builtin_bswap32(*(const uint32_t *)(fdt + 4));
    int on = find(fdt, size, "firmware=on");

    if ( on )
        smmu_on();
    uhci_on();
    print(on ? "firmware: SMMU on\n" : "firmware: SMMU off\n");
}
