/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the pinned Xen release lacks or names differently.  The driver is
 * written to the interfaces of the current development tree.
 */
#ifndef PVIOMMU_COMPAT_H
#define PVIOMMU_COMPAT_H

#include <xen/compile.h>
#include <xen/irq.h>
#include <xen/lib.h>

#if XEN_VERSION == 4 && XEN_SUBVERSION < 18
/* dt_device_get_paddr() replaced dt_device_get_address() on Arm. */
#define dt_device_get_paddr dt_device_get_address
#endif

#if XEN_VERSION == 4 && XEN_SUBVERSION < 19
/* Interrupt handlers lost their register argument. */
#define PVI_IRQ_HANDLER(name, irq, data) \
    void name(int irq, void *data, struct cpu_user_regs *regs)
#else
#define PVI_IRQ_HANDLER(name, irq, data) void name(int irq, void *data)
#endif

#ifndef cf_check
#define cf_check
#endif

#endif /* PVIOMMU_COMPAT_H */
