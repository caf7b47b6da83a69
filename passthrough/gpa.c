/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Guest frames to machine pages.  The p2m type decides what a device may get.
 */

#include <xen/lib.h>
#include <xen/mm.h>
#include <xen/sched.h>

#include <asm/p2m.h>

#include "pviommu.h"

/*
 * Registers of a device.  Recorded, as another domain's pages are: no reference
 * keeps the device from going to another domain.
 */
#define MMIO    (S2_SW_NOREF | S2_SW_FOREIGN)

/* What entries for a p2m type look like; 0: devices don't get it. */
static s2_pte_t type_prot(p2m_type_t t, mfn_t mfn)
{
    switch ( t )
    {
    case p2m_ram_rw:
        return S2_ATTR_NORMAL | S2_SH_INNER | S2_READ | S2_WRITE;

    case p2m_ram_ro:
        return S2_ATTR_NORMAL | S2_SH_INNER | S2_READ;

    case p2m_mmio_direct_dev:
        return S2_ATTR_DEVICE | S2_SH_OUTER | S2_READ | S2_WRITE | MMIO;

    case p2m_mmio_direct_nc:
        return S2_ATTR_NC | S2_SH_OUTER | S2_READ | S2_WRITE | MMIO;

    case p2m_mmio_direct_c:
        return S2_ATTR_NORMAL | S2_SH_OUTER | S2_READ | S2_WRITE | MMIO;

    case p2m_iommu_map_rw:
    case p2m_iommu_map_ro:
        /* The ITS doorbell, where Xen enters it with this type. */
        if ( !mfn_valid(mfn) )
            return S2_ATTR_DEVICE | S2_SH_OUTER | S2_READ | S2_WRITE |
                   S2_SW_NOREF;
        /* Otherwise a page that another domain has granted, 1:1. */
        return S2_ATTR_NORMAL | S2_SH_INNER | S2_READ | S2_SW_FOREIGN |
               (t == p2m_iommu_map_rw ? S2_WRITE : 0);

    case p2m_grant_map_rw:
    case p2m_map_foreign_rw:
        return S2_ATTR_NORMAL | S2_SH_INNER | S2_READ | S2_WRITE |
               S2_SW_FOREIGN;

    case p2m_grant_map_ro:
    case p2m_map_foreign_ro:
        return S2_ATTR_NORMAL | S2_SH_INNER | S2_READ | S2_SW_FOREIGN;

    default:
        return 0;
    }
}

/* A reference that keeps the page what it is until the entry is released. */
static bool get_ref(struct page_info *pg, struct domain *d, bool foreign)
{
    /*
     * Whoever owns it: that @d may use it is what the p2m says, and when the
     * p2m stops saying so pvi_foreign_revoke() takes it out of the tables.
     */
    return foreign ? page_get_owner_and_reference(pg) != NULL : get_page(pg, d);
}

int pvi_gpa_get_locked(struct p2m_domain *p2m, gfn_t gfn, unsigned long nr,
                       bool write, struct pvi_run *run)
{
    struct domain *d = p2m->domain;
    p2m_access_t a;
    p2m_type_t t;
    bool valid;
    unsigned long i = 0, left;

    run->gfn = gfn;
    run->mfn = p2m_get_entry(p2m, gfn, &t, &a, &run->order, &valid);
    run->prot = mfn_eq(run->mfn, INVALID_MFN) ? 0 : type_prot(t, run->mfn);
    run->noref = run->prot & S2_SW_NOREF;
    run->foreign = run->prot & S2_SW_FOREIGN;

    if ( !run->prot )
        return -EFAULT;
    switch ( a )
    {
    case p2m_access_rw:
    case p2m_access_rwx:
        if ( write && !(run->prot & S2_WRITE) )
            return -EPERM;
        break;

    case p2m_access_r:
    case p2m_access_rx:
    case p2m_access_rx2rw:
        if ( write )
            return -EPERM;
        run->prot &= ~S2_WRITE;
        break;

    default:
        /* No reading, or not yet: an access is to be seen by a monitor. */
        return -EFAULT;
    }

    left = (1UL << run->order) - (gfn_x(gfn) & ((1UL << run->order) - 1));
    nr = min(nr, left);
    if ( run->foreign )
        /* Page by page, as they come and go; never a block. */
        nr = min(nr, 64UL);

    for ( ; i < nr && !run->noref; i++ )
        if ( !get_ref(mfn_to_page(mfn_add(run->mfn, i)), d, run->foreign) )
            break;
    run->nr = run->noref ? nr : i;

    return run->nr ? 0 : -EFAULT;
}

int pvi_gpa_get(struct domain *d, gfn_t gfn, unsigned long nr, bool write,
                struct pvi_run *run)
{
    struct p2m_domain *p2m = p2m_get_hostp2m(d);
    int rc;

    p2m_read_lock(p2m);
    rc = pvi_gpa_get_locked(p2m, gfn, nr, write, run);
    p2m_read_unlock(p2m);

    return rc;
}

void pvi_gpa_put(const struct pvi_run *run, unsigned long from)
{
    unsigned long i;

    if ( run->noref )
        return;

    /* Never entered into a table: no device knows them. */
    for ( i = from; i < run->nr; i++ )
        put_page(mfn_to_page(mfn_add(run->mfn, i)));
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
