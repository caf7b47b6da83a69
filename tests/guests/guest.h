/* SPDX-License-Identifier: GPL-2.0-only */
/* What the files of the guest share: library, machine, test output. */
#ifndef GUEST_H
#define GUEST_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "config.h"

#define PAGE            4096UL
#define MB              (1UL << 20)
#define GB              (1UL << 30)
#define ARRAY_SIZE(a)   (sizeof(a) / sizeof((a)[0]))
#define min(a, b)       ((a) < (b) ? (a) : (b))
#define PRINTF(a, b)    __attribute__((__format__(__printf__, a, b)))

#define ACCESS(x)       (*(volatile __typeof__(x) *)&(x))
#define mb()            asm volatile ( "dmb ish" ::: "memory" )
#define dsb()           asm volatile ( "dsb sy" ::: "memory" )
#define sysreg_read(r) ({ uint64_t v_;                          \
    asm volatile ( "mrs %0, " #r : "=r" (v_) :: "memory" ); v_; })
#define sysreg_write(r, v)                                      \
    asm volatile ( "msr " #r ", %0\n\tisb" :: "r" ((uint64_t)(v)) : "memory" )

static inline uint32_t mmio_read32(uintptr_t a)
{
    uint32_t v;

    asm volatile ( "ldr %w0, [%1]" : "=r" (v) : "r" (a) : "memory" );
    return v;
}

static inline void mmio_write32(uintptr_t a, uint32_t v)
{
    asm volatile ( "str %w0, [%1]" :: "r" (v), "r" (a) : "memory" );
}

/* Any width: 1, 2, 4 or 8 bytes. */
uint64_t mmio_read(uintptr_t a, unsigned int size);
void mmio_write(uintptr_t a, uint64_t v, unsigned int size);

/*
 * lib.c
 */
void print(const char *fmt, ...) PRINTF(1, 2);
int format(char *buf, size_t size, const char *fmt, va_list args);
uint64_t parse_number(const char *s);

struct rng { uint64_t state; };
uint64_t rng_next(struct rng *r);
/* 0 .. n-1 */
static inline uint64_t rng_below(struct rng *r, uint64_t n)
{
    return (rng_next(r) >> 11) % n;
}

/*
 * machine.c: hypercalls, time, interrupts, CPUs, memory
 */
long hypercall(unsigned int nr, uint64_t a, uint64_t b, uint64_t c);
void console_write(const char *s, unsigned int len);
void machine_init(void);
void power_off(void);
void bail(const char *fmt, ...) PRINTF(1, 2) __attribute__((__noreturn__));

uint64_t now_us(void);
/* Until @us of now_us(), with the CPU given up meanwhile. */
void sleep_until(uint64_t us);
static inline void sleep_us(uint64_t us) { sleep_until(now_us() + us); }

static inline unsigned int this_cpu(void)
{
    return sysreg_read(tpidr_el1);
}
extern unsigned int nr_cpus;    /* that run */
/* Let another CPU do something; it must have done what it was given before. */
void cpu_run(unsigned int cpu, void (*fn)(void *arg), void *arg);
bool cpu_busy(unsigned int cpu);
void cpu_wait(unsigned int cpu);

/* Count the interrupt @intid (edge), delivered to CPU 0, in *@count. */
void irq_count(unsigned int intid, unsigned int *count);

/* Zeroed, never given back.  NULL: there is no such piece. */
void *memory(size_t size, size_t align);
void memory_mark(uint64_t start, uint64_t size);

/*
 * tree.c
 */
struct region { uint64_t base, size; };

extern const char *cmdline;
/* Value of name=NUMBER on the command line, or @otherwise. */
uint64_t option(const char *name, uint64_t otherwise);
/* Is @value in the list name=a,b,c? */
bool option_has(const char *name, const char *value);

struct tree {
    struct region memory[8];
    unsigned int nr_memory;
    uint64_t cpu[MAX_CPUS];     /* MPIDR */
    bool dom0;                  /* Xen has PCI functions announced by it */
    bool xen;                   /* false: the bare machine, without EL2 */
    struct region uart;         /* PL011, for the output without Xen */
    unsigned int nr_cpus;
    struct region gicd, gicr;
    struct region viommu;       /* size 0: none */
    unsigned int viommu_intid;
    struct region ecam, pci_window;
    uint32_t pci_segment;
    /* iommu-map of the bridge: endpoint id = RID + iommu_base. */
    bool has_iommu_map;
    uint32_t iommu_base;
    /* An edu that the tree has as a platform device (size 0: none). */
    struct region edu_bar, edu_config;
    uint32_t edu_endpoint;
};
extern struct tree tree;
void tree_read(const void *fdt);

/*
 * tap.c: test output
 */
bool ok(bool good, const char *fmt, ...) PRINTF(2, 3);
/* ok() if @got is @want, and says both if not. */
bool is(int64_t got, int64_t want, const char *fmt, ...) PRINTF(3, 4);
void skip(const char *why, const char *fmt, ...) PRINTF(2, 3);
void plan(void);

struct suite {
    const char *name;
    void (*run)(void);
};

#endif /* GUEST_H */
