/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A second domain, made by hypercalls of dom0: somebody else whose pages we map,
 * and who gets them back.  It has no vCPU, so it does nothing when it is started.
 */
#ifndef OTHER_H
#define OTHER_H

#include "guest.h"

#define __XEN_TOOLS__
#include <public/xen.h>
#include <public/domctl.h>
#include <public/errno.h>
#include <public/grant_table.h>
#include <public/memory.h>
#include <public/pviommu.h>
#include <public/sysctl.h>

/* Where its memory begins, as a frame. */
#define OTHER_GFN   0x40000UL

/* A domain with @pages of memory.  Bails if there is none to be had. */
domid_t other_new(unsigned int pages, bool iommu);
/* The same, not started yet: it is being built. */
domid_t other_built(unsigned int pages, bool iommu);
void other_start(domid_t dom);
/* False: Xen refuses. */
bool other_kill(domid_t dom);
/* Pages that it owns, or that others still hold; -1: there is no such domain */
int64_t other_pages(domid_t dom);
/* The same, once it is @want, or after @us of waiting. */
int64_t other_pages_wait(domid_t dom, int64_t want, uint64_t us);
/* It gives the page at @gfn back to Xen. */
bool other_drop(domid_t dom, uint64_t gfn);
/* Free pages of the machine; once they are @want, or after @us of waiting. */
uint64_t free_pages(void);
uint64_t free_pages_wait(uint64_t want, uint64_t us);

/* @nr addresses of ours, one after the other, where no memory is. */
uint64_t *hole(unsigned int nr);

/* Its page @gfn appears at @at, and disappears.  0 or an errno. */
int foreign_map(uint64_t *at, domid_t dom, uint64_t gfn);
int foreign_unmap(uint64_t *at);

/*
 * The page of registers at @machine appears at @at, or disappears, as when the
 * toolstack gives a device to a guest and takes it away.  0 or an errno.
 */
int registers_map(uint64_t *at, uint64_t machine, bool add);

/* What it has granted: its table, filled by us, of version 1. */
grant_entry_v1_t *grants_of(domid_t dom);
void grant_page(grant_entry_v1_t *e, uint64_t gfn, bool readonly);
struct grant { uint64_t *at; uint64_t bus; uint32_t handle; bool readonly; };
/* GNTST_* */
int grant_map(struct grant *g, domid_t dom, uint32_t ref);
/* In one hypercall.  The number of those that ended well. */
#define GRANTS_MAX  64
unsigned int grants_unmap(const struct grant *g, unsigned int nr);

/* The driver's counters, of ourselves and of the first SMMU. */
uint64_t counter(unsigned int index);
uint64_t smmu_counter(unsigned int index);
bool is_strict(void);
/* Of ourselves, now.  0 or an errno. */
int set_strict(bool strict);

#endif /* OTHER_H */
