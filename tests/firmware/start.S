/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Started by QEMU in place of Xen, at EL2 with the MMU off: leaves the SMMU as
 * no firmware should (firmware.c), and starts Xen as QEMU would have.
 */

    .section .head, "ax"
    .globl _start
_start:
    b       1f
    .long   0
    .quad   FIRMWARE_OFFSET             /* from the start of memory */
    .quad   _end - _start
    .quad   0xa
    .quad   0, 0, 0
    .ascii  "ARM\x64"
    .long   0

1:  msr     daifset, #0xf
    mov     x19, x0                     /* device tree */
    ldr     x1, =_end
    mov     sp, x1
    bl      firmware
    mov     x0, x19
    mov     x1, #0
    mov     x2, #0
    mov     x3, #0
    ldr     x4, =XEN_AT
    ic      iallu
    dsb     sy
    isb
    br      x4
