/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A QEMU plugin that counts executed instructions: in Xen, in its guests, and
 * the longest stretches in Xen.
 *
 *   -plugin insn.so,lo=ADDR,hi=ADDR,slice=ADDR,stop=ADDR,out=FILE
 *
 * lo, hi: Xen's text.  slice: the function in which a slice of work begins;
 * stop: one that lets others have the CPU.
 * A guest executes MARK to end a window; each gives one line of JSON with what
 * was executed since the mark before:
 *   xen, guest   instructions
 *   traps        times that Xen was entered from a guest
 *   trap_max     most instructions in Xen between two of a guest
 *   slice_max    most instructions from the start of a slice to where others
 *                may have the CPU, or to the guest
 *   blocks       [[address, instructions], ...] of Xen, for a profile
 *
 * Debian ships no header of the plugin interface; what is used of it is
 * declared here (interface version 4).  Meant for one host thread: -accel
 * tcg,thread=single.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((__visibility__("default")))

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;

EXPORT int qemu_plugin_version = 4;
EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc,
                               char **argv);
void qemu_plugin_register_vcpu_tb_trans_cb(
    qemu_plugin_id_t id,
    void (*cb)(qemu_plugin_id_t id, struct qemu_plugin_tb *tb));
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(
    const struct qemu_plugin_tb *tb, size_t idx);
size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *dest,
                             size_t len);
void qemu_plugin_register_vcpu_tb_exec_cb(
    struct qemu_plugin_tb *tb, void (*cb)(unsigned int cpu, void *data),
    int flags, void *data);
void qemu_plugin_register_vcpu_insn_exec_cb(
    struct qemu_plugin_insn *insn, void (*cb)(unsigned int cpu, void *data),
    int flags, void *data);

/* hint #127: does nothing, and no compiler emits it. */
#define MARK 0xd5032fffU
#define CPUS 16

struct block {
    struct block *next, *chain;
    uint64_t addr;
    unsigned int n;
    bool xen, slice, stop;
    uint64_t execs;
};

static uint64_t lo, hi, slice, stop;
static FILE *out;
static struct block *blocks, *hash[1 << 14];
static struct { uint64_t trap, slice; bool in_slice; } cpu_state[CPUS];
static uint64_t xen, guest, traps, trap_max, slice_max;

static void close_slice(unsigned int cpu)
{
    if ( cpu_state[cpu].in_slice && cpu_state[cpu].slice > slice_max )
        slice_max = cpu_state[cpu].slice;
    cpu_state[cpu].in_slice = false;
    cpu_state[cpu].slice = 0;
}

static void executed(unsigned int cpu, void *data)
{
    struct block *b = data;

    b->execs++;
    if ( !b->xen )
    {
        guest += b->n;
        if ( cpu_state[cpu].trap )
        {
            close_slice(cpu);
            if ( cpu_state[cpu].trap > trap_max )
                trap_max = cpu_state[cpu].trap;
            cpu_state[cpu].trap = 0;
            traps++;
        }
        return;
    }

    if ( b->slice || b->stop )
    {
        close_slice(cpu);
        cpu_state[cpu].in_slice = b->slice;
    }
    xen += b->n;
    cpu_state[cpu].trap += b->n;
    cpu_state[cpu].slice += b->n;
}

static void mark(unsigned int cpu, void *data)
{
    const char *sep = "";
    struct block *b;

    (void)cpu;
    (void)data;
    fprintf(out, "{\"xen\": %" PRIu64 ", \"guest\": %" PRIu64
            ", \"traps\": %" PRIu64 ", \"trap_max\": %" PRIu64
            ", \"slice_max\": %" PRIu64 ", \"blocks\": [",
            xen, guest, traps, trap_max, slice_max);
    for ( b = blocks; b; b = b->next )
    {
        if ( b->xen && b->execs )
        {
            fprintf(out, "%s[%" PRIu64 ",%" PRIu64 "]", sep, b->addr,
                    b->execs * b->n);
            sep = ",";
        }
        b->execs = 0;
    }
    fprintf(out, "]}\n");
    fflush(out);
    xen = guest = traps = trap_max = slice_max = 0;
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    uint64_t addr = qemu_plugin_tb_vaddr(tb);
    size_t n = qemu_plugin_tb_n_insns(tb), i;
    struct block **h = &hash[(addr >> 2) % (1 << 14)], *b;

    (void)id;
    /* The same code is translated more than once; one record is enough. */
    for ( b = *h; b && (b->addr != addr || b->n != n); )
        b = b->chain;
    if ( !b )
    {
        b = calloc(1, sizeof(*b));
        b->addr = addr;
        b->n = n;
        b->xen = addr >= lo && addr < hi;
        b->slice = addr == slice;
        b->stop = addr == stop;
        b->chain = *h;
        *h = b;
        b->next = blocks;
        blocks = b;
    }
    qemu_plugin_register_vcpu_tb_exec_cb(tb, executed, 0, b);

    for ( i = 0; i < n && !b->xen; i++ )
    {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        uint32_t op = 0;

        if ( qemu_plugin_insn_data(insn, &op, sizeof(op)) == sizeof(op) &&
             op == MARK )
            qemu_plugin_register_vcpu_insn_exec_cb(insn, mark, 0, NULL);
    }
}

int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc,
                        char **argv)
{
    int i;

    (void)info;
    for ( i = 0; i < argc; i++ )
    {
        const char *v = strchr(argv[i], '=');

        if ( !v )
            return -1;
        v++;
        if ( !strncmp(argv[i], "lo=", 3) )
            lo = strtoull(v, NULL, 0);
        else if ( !strncmp(argv[i], "hi=", 3) )
            hi = strtoull(v, NULL, 0);
        else if ( !strncmp(argv[i], "slice=", 6) )
            slice = strtoull(v, NULL, 0);
        else if ( !strncmp(argv[i], "stop=", 5) )
            stop = strtoull(v, NULL, 0);
        else if ( !strncmp(argv[i], "out=", 4) )
            out = fopen(v, "w");
        else
            return -1;
    }
    if ( !hi || !slice || !stop || !out )
        return -1;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);

    return 0;
}
