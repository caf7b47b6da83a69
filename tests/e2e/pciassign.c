/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Runs in dom0: assign a PCI function to a domain, or take it from it.
 *
 *   pciassign a|d DOMID SBDF     (numbers in hex)
 *
 * The exit status is 0, or the errno that Xen answered.  No libc: it is sent
 * over the console.  Layouts: Xen's public/domctl.h and Linux's xen/privcmd.h.
 */
#include <stdint.h>

#define SYS_ioctl       29
#define SYS_openat      56
#define SYS_exit_group  94
#define SYS_mmap        222

#define AT_FDCWD        (-100)
#define O_RDWR          2
#define PROT_RW         3
#define MAP_SHARED      1
#define EACCES          13

#define PRIVCMD_HYPERCALL   0x305000
#define HYPERVISOR_domctl   36
#define DOMCTL_assign       37
#define DOMCTL_deassign     47
/* Each version of the interface refuses the others with EACCES. */
#define VERSION_FIRST       0x15
#define VERSION_LAST        0x40

struct domctl {
    uint32_t cmd, version;
    uint16_t domain, pad[3];
    uint32_t kind, flags, sbdf;     /* kind 0: PCI */
};

static long syscall6(long nr, long a, long b, long c, long d, long e, long f)
{
    register long x8 asm("x8") = nr;
    register long x0 asm("x0") = a;
    register long x1 asm("x1") = b;
    register long x2 asm("x2") = c;
    register long x3 asm("x3") = d;
    register long x4 asm("x4") = e;
    register long x5 asm("x5") = f;

    asm volatile ( "svc #0" : "+r" (x0)
                   : "r" (x8), "r" (x1), "r" (x2), "r" (x3), "r" (x4), "r" (x5)
                   : "memory" );
    return x0;
}

static long number(const char *s)
{
    long v = 0;

    for ( ; *s; s++ )
        v = v * 16 + (*s <= '9' ? *s - '0' : (*s | 0x20) - 'a' + 10);
    return v;
}

static long run(char **argv)
{
    long fd = syscall6(SYS_openat, AT_FDCWD, (long)"/dev/xen/privcmd", O_RDWR,
                       0, 0, 0);
    long buf = syscall6(SYS_openat, AT_FDCWD, (long)"/dev/xen/hypercall",
                        O_RDWR, 0, 0, 0);
    volatile struct domctl *ctl;
    uint64_t call[6] = { HYPERVISOR_domctl };
    uint32_t version;
    long rc = -EACCES;

    if ( fd < 0 || buf < 0 )
        return fd < 0 ? fd : buf;
    ctl = (void *)syscall6(SYS_mmap, 0, 4096, PROT_RW, MAP_SHARED, buf, 0);
    if ( (unsigned long)ctl > -4096UL )
        return (long)ctl;

    call[1] = (uint64_t)ctl;
    for ( version = VERSION_FIRST; rc == -EACCES && version <= VERSION_LAST;
          version++ )
    {
        ctl->cmd = argv[1][0] == 'a' ? DOMCTL_assign : DOMCTL_deassign;
        ctl->version = version;
        ctl->domain = number(argv[2]);
        ctl->kind = ctl->flags = 0;
        ctl->sbdf = number(argv[3]);
        rc = syscall6(SYS_ioctl, fd, PRIVCMD_HYPERCALL, (long)call, 0, 0, 0);
    }

    return rc;
}

void start(long *sp);
void start(long *sp)
{
    syscall6(SYS_exit_group, sp[0] == 4 ? -run((char **)(sp + 1)) : 1,
             0, 0, 0, 0, 0);
}

asm ( ".globl _start\n_start: mov x0, sp\n b start" );
