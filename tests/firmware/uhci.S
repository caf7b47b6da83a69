/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A guest that starts the USB controller of its PCI bridge and sleeps: once a
 * millisecond, whoever owns it by then, the controller reads a word of the page
 * behind this one.  tests/e2e/test_vmid.py writes that page.
 */

#define ECAM    0x4010000000
#define DEVFN   8
#define PORT    0x1000
#define PIO     0x3eff0000

    b       1f
    .long   0
    .quad   0x80000                     /* from the start of memory */
    .quad   0x2000
    .quad   0xa
    .quad   0, 0, 0
    .ascii  "ARM\x64"
    .long   0

1:  ldr     x0, =ECAM + (DEVFN << 12)
    mov     w1, #PORT
    str     w1, [x0, #0x20]
    mov     w1, #5                      /* I/O, bus master */
    strh    w1, [x0, #0x04]
    ldr     x0, =PIO + PORT
    adr     x1, frames
    str     w1, [x0, #0x08]
    strh    wzr, [x0, #0x06]
    mov     w1, #1                      /* run */
    strh    w1, [x0]
2:  wfi
    b       2b

    .ltorg
    .balign 4096, 0
frames:
