/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * From the loader to C: image header, relocation, MMU, secondary CPUs,
 * exceptions.
 *
 * Addresses are mapped one to one in blocks of 1G, so that what the guest
 * calls an address is one for Xen and for devices in bypass too.
 */

#include "config.h"

#define L1_ENTRIES      512             /* 39 bits of address */
/* Block, access flag, never executed; attribute 1: device. */
#define BLOCK_DEVICE    0x0060000000000405
/* Block, access flag, inner shareable; attribute 0: write-back. */
#define BLOCK_MEMORY    0x0000000000000701
#define MAIR            0x04ff
/* 39 bits, walks write-back and inner shareable, no upper half. */
#define TCR             ((64 - 39) | 1 << 8 | 1 << 10 | 3 << 12 | 1 << 23)
#define R_AARCH64_RELATIVE 1027

    .section .head, "ax"
    .globl _start
_start:
    b       primary
    .long   0
    .quad   0                           /* offset from 2M */
    .quad   _end - . + 16               /* size, with what is not loaded */
    .quad   0xa                         /* 4K pages, anywhere in memory */
    .quad   0, 0, 0
    .ascii  "ARM\x64"
    .long   0

    .text
primary:
    msr     daifset, #0xf
    mov     x20, x0                     /* device tree */

    adrp    x0, _bss
    add     x0, x0, :lo12:_bss
    adrp    x1, _end
    mov     x2, x0
1:  stp     xzr, xzr, [x0], #16
    cmp     x0, x1
    b.lo    1b

    adrp    x3, _start
    adrp    x4, _rela
    add     x4, x4, :lo12:_rela
    adrp    x5, _erela
    add     x5, x5, :lo12:_erela
2:  cmp     x4, x5
    b.hs    3f
    ldp     x6, x7, [x4], #16
    ldr     x8, [x4], #8
    cmp     x7, #R_AARCH64_RELATIVE
    b.ne    .                           /* the linker made another kind */
    add     x8, x8, x3
    str     x8, [x3, x6]
    b       2b

3:  adrp    x0, l1_table
    mov     x1, #0
    ldr     x4, =BLOCK_DEVICE
4:  orr     x5, x4, x1, lsl #30
    str     x5, [x0, x1, lsl #3]
    add     x1, x1, #1
    cmp     x1, #L1_ENTRIES
    b.lo    4b
    /* Memory as far as it is known here; main() reads of the rest. */
    ldr     x4, =BLOCK_MEMORY
    lsr     x1, x3, #30
    orr     x5, x4, x1, lsl #30
    str     x5, [x0, x1, lsl #3]
    lsr     x1, x20, #30
    orr     x5, x4, x1, lsl #30
    str     x5, [x0, x1, lsl #3]

    /* Written with the caches off: what they hold of it is old. */
    dsb     sy
    adrp    x0, _start
    adrp    x1, _end
5:  dc      ivac, x0
    add     x0, x0, #16
    cmp     x0, x1
    b.lo    5b
    dsb     sy

    bl      mmu_on
    adrp    x0, stacks
    add     x0, x0, :lo12:stacks
    add     sp, x0, #STACK_SIZE
    msr     tpidr_el1, xzr
    mov     x0, x20
    bl      main
    b       .

/* PSCI's CPU_ON: x0 is the number of the CPU. */
    .globl secondary
secondary:
    msr     daifset, #0xf
    mov     x20, x0
    bl      mmu_on
    adrp    x0, stacks
    add     x0, x0, :lo12:stacks
    add     x1, x20, #1
    mov     x2, #STACK_SIZE
    madd    x0, x1, x2, x0
    mov     sp, x0
    msr     tpidr_el1, x20
    mov     x0, x20
    bl      cpu_main
    b       .

mmu_on:
    adr     x0, vectors
    msr     vbar_el1, x0
    ldr     x0, =MAIR
    msr     mair_el1, x0
    ldr     x0, =TCR
    mrs     x1, id_aa64mmfr0_el1
    and     x1, x1, #7
    orr     x0, x0, x1, lsl #32
    msr     tcr_el1, x0
    adrp    x0, l1_table
    msr     ttbr0_el1, x0
    mov     x0, #3 << 20                /* libfdt may use vector registers */
    msr     cpacr_el1, x0
    isb
    tlbi    vmalle1
    ic      iallu
    dsb     nsh
    isb
    mrs     x0, sctlr_el1
    bic     x0, x0, #1 << 1             /* no alignment checks */
    orr     x0, x0, #1 << 0
    orr     x0, x0, #1 << 2
    orr     x0, x0, #1 << 12
    msr     sctlr_el1, x0
    isb
    ret

/* An interrupt: interrupts stay off, so ELR and SPSR stay too. */
irq_entry:
    sub     sp, sp, #176
    stp     x0, x1, [sp, #0]
    stp     x2, x3, [sp, #16]
    stp     x4, x5, [sp, #32]
    stp     x6, x7, [sp, #48]
    stp     x8, x9, [sp, #64]
    stp     x10, x11, [sp, #80]
    stp     x12, x13, [sp, #96]
    stp     x14, x15, [sp, #112]
    stp     x16, x17, [sp, #128]
    stp     x18, x29, [sp, #144]
    str     x30, [sp, #160]
    bl      irq_handler
    ldp     x0, x1, [sp, #0]
    ldp     x2, x3, [sp, #16]
    ldp     x4, x5, [sp, #32]
    ldp     x6, x7, [sp, #48]
    ldp     x8, x9, [sp, #64]
    ldp     x10, x11, [sp, #80]
    ldp     x12, x13, [sp, #96]
    ldp     x14, x15, [sp, #112]
    ldp     x16, x17, [sp, #128]
    ldp     x18, x29, [sp, #144]
    ldr     x30, [sp, #160]
    add     sp, sp, #176
    eret

/* Anything else ends the run. */
fatal:
    mrs     x0, esr_el1
    mrs     x1, elr_el1
    mrs     x2, far_el1
    bl      trap
    b       .

    .macro  vector to
    .align  7
    b       \to
    .endm

    .align  11
vectors:
    .rept   4
    vector  fatal
    .endr
    vector  fatal
    vector  irq_entry
    vector  fatal
    vector  fatal
    .rept   8
    vector  fatal
    .endr

    .bss
    .align  12
    .globl  l1_table
l1_table:
    .skip   L1_ENTRIES * 8
stacks:
    .skip   STACK_SIZE * MAX_CPUS
