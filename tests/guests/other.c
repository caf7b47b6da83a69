/* SPDX-License-Identifier: GPL-2.0-only */
/* Hypercalls for and about a second domain. */

#include "other.h"

/* Pages of the paging pool: more than the tables of so little memory take. */
#define POOL_PAGES      256
#define TABLE_GFN       (OTHER_GFN + 0x10000)
#define POLL_US         200

static long domctl(struct xen_domctl *op)
{
    op->interface_version = XEN_DOMCTL_INTERFACE_VERSION;

    return hypercall(__HYPERVISOR_domctl, (uint64_t)op, 0, 0);
}

static long memory_op(unsigned int cmd, void *arg)
{
    return hypercall(__HYPERVISOR_memory_op, cmd, (uint64_t)arg, 0);
}

static long reservation(unsigned int cmd, domid_t dom, xen_pfn_t *pfns,
                        unsigned int nr)
{
    struct xen_memory_reservation r = { .nr_extents = nr, .domid = dom };

    set_xen_guest_handle(r.extent_start, pfns);

    return memory_op(cmd, &r);
}

domid_t other_new(unsigned int pages, bool iommu)
{
    domid_t dom = other_built(pages, iommu);

    other_start(dom);

    return dom;
}

void other_start(domid_t dom)
{
    struct xen_domctl op = { .cmd = XEN_DOMCTL_unpausedomain, .domain = dom };
    long rc = domctl(&op);

    if ( rc )
        bail("the second domain does not start: %ld", rc);
}

domid_t other_built(unsigned int pages, bool iommu)
{
    struct xen_domctl op = {
        .cmd = XEN_DOMCTL_createdomain,
        .u.createdomain = {
            .flags = XEN_DOMCTL_CDF_hvm | XEN_DOMCTL_CDF_hap |
                     (iommu ? XEN_DOMCTL_CDF_iommu : 0),
            .max_vcpus = 1,
            .max_evtchn_port = 31,
            .max_grant_frames = 4,
            .max_maptrack_frames = 4,
            .grant_opts = XEN_DOMCTL_GRANT_version(1),
        },
    };
    unsigned int i;
    domid_t dom;
    long rc = domctl(&op);

    if ( rc )
        bail("no second domain: %ld", rc);
    dom = op.domain;

    op = (struct xen_domctl){
        .cmd = XEN_DOMCTL_set_paging_mempool_size, .domain = dom,
        .u.paging_mempool.size = POOL_PAGES * PAGE,
    };
    rc = domctl(&op);
    if ( rc )
        bail("no paging pool: %ld", rc);

    op = (struct xen_domctl){
        .cmd = XEN_DOMCTL_max_mem, .domain = dom,
        .u.max_mem.max_memkb = (pages + 256) * PAGE / 1024,
    };
    rc = domctl(&op);
    if ( rc )
        bail("no limit of memory: %ld", rc);

    for ( i = 0; i < pages; i++ )
    {
        xen_pfn_t pfn = OTHER_GFN + i;

        if ( reservation(XENMEM_populate_physmap, dom, &pfn, 1) != 1 )
            bail("no memory for the second domain");
    }

    return dom;
}

bool other_kill(domid_t dom)
{
    struct xen_domctl op = { .cmd = XEN_DOMCTL_destroydomain, .domain = dom };
    long rc;

    do
        rc = domctl(&op);
    while ( rc == -XEN_EAGAIN );

    return !rc;
}

int64_t other_pages(domid_t dom)
{
    struct xen_domctl op = { .cmd = XEN_DOMCTL_getdomaininfo, .domain = dom };

    /* Without such a domain Xen tells of the next one. */
    if ( domctl(&op) || op.u.getdomaininfo.domain != dom )
        return -1;

    return op.u.getdomaininfo.tot_pages;
}

int64_t other_pages_wait(domid_t dom, int64_t want, uint64_t us)
{
    uint64_t end = now_us() + us;
    int64_t n;

    while ( (n = other_pages(dom)) != want && now_us() < end )
        sleep_us(POLL_US);

    return n;
}

bool other_drop(domid_t dom, uint64_t gfn)
{
    xen_pfn_t pfn = gfn;

    return reservation(XENMEM_decrease_reservation, dom, &pfn, 1) == 1;
}

uint64_t free_pages(void)
{
    struct xen_sysctl op = {
        .cmd = XEN_SYSCTL_physinfo,
        .interface_version = XEN_SYSCTL_INTERFACE_VERSION,
    };
    long rc = hypercall(__HYPERVISOR_sysctl, (uint64_t)&op, 0, 0);

    if ( rc )
        bail("Xen doesn't tell its free pages: %ld", rc);

    return op.u.physinfo.free_pages;
}

uint64_t free_pages_wait(uint64_t want, uint64_t us)
{
    uint64_t end = now_us() + us, n;

    while ( (n = free_pages()) != want && now_us() < end )
        sleep_us(POLL_US);

    return n;
}

uint64_t *hole(unsigned int nr)
{
    uint8_t *p = memory(nr * PAGE, PAGE);
    unsigned int i;

    if ( !p )
        bail("no memory left");
    for ( i = 0; i < nr; i++ )
    {
        xen_pfn_t pfn = (uint64_t)p / PAGE + i;

        if ( reservation(XENMEM_decrease_reservation, DOMID_SELF, &pfn,
                         1) != 1 )
            bail("our page %#lx can't go", (uint64_t)pfn);
    }

    return (uint64_t *)p;
}

int foreign_map(uint64_t *at, domid_t dom, uint64_t gfn)
{
    xen_ulong_t idx = gfn;
    xen_pfn_t pfn = (uint64_t)at / PAGE;
    int err = 0;
    struct xen_add_to_physmap_batch b = {
        .domid = DOMID_SELF,
        .space = XENMAPSPACE_gmfn_foreign,
        .size = 1,
        .u.foreign_domid = dom,
    };
    long rc;

    set_xen_guest_handle(b.idxs, &idx);
    set_xen_guest_handle(b.gpfns, &pfn);
    set_xen_guest_handle(b.errs, &err);
    rc = memory_op(XENMEM_add_to_physmap_batch, &b);

    return rc ? rc : ACCESS(err);
}

int foreign_unmap(uint64_t *at)
{
    struct xen_remove_from_physmap r = {
        .domid = DOMID_SELF, .gpfn = (uint64_t)at / PAGE,
    };

    return memory_op(XENMEM_remove_from_physmap, &r);
}

int registers_map(uint64_t *at, uint64_t machine, bool add)
{
    struct xen_domctl op = {
        .cmd = XEN_DOMCTL_memory_mapping,
        .domain = 0,
        .u.memory_mapping = {
            .first_gfn = (uint64_t)at / PAGE,
            .first_mfn = machine / PAGE,
            .nr_mfns = 1,
            .add_mapping = add ? DPCI_ADD_MAPPING : DPCI_REMOVE_MAPPING,
        },
    };

    return domctl(&op);
}

grant_entry_v1_t *grants_of(domid_t dom)
{
    struct xen_add_to_physmap add = {
        .domid = dom,
        .space = XENMAPSPACE_grant_table,
        .gpfn = TABLE_GFN,
    };
    uint64_t *at = hole(1);
    long rc = memory_op(XENMEM_add_to_physmap, &add);

    if ( !rc )
        rc = foreign_map(at, dom, TABLE_GFN);
    if ( rc )
        bail("the grant table can't be mapped: %ld", rc);

    return (grant_entry_v1_t *)at;
}

void grant_page(grant_entry_v1_t *e, uint64_t gfn, bool readonly)
{
    e->domid = 0;
    e->frame = gfn;
    mb();
    ACCESS(e->flags) = GTF_permit_access | (readonly ? GTF_readonly : 0);
    mb();
}

int grant_map(struct grant *g, domid_t dom, uint32_t ref)
{
    struct gnttab_map_grant_ref op = {
        .host_addr = (uint64_t)g->at,
        .flags = GNTMAP_host_map | (g->readonly ? GNTMAP_readonly : 0),
        .ref = ref,
        .dom = dom,
    };

    if ( hypercall(__HYPERVISOR_grant_table_op, GNTTABOP_map_grant_ref,
                   (uint64_t)&op, 1) )
        return GNTST_general_error;
    g->handle = ACCESS(op.handle);
    g->bus = ACCESS(op.dev_bus_addr);

    return ACCESS(op.status);
}

unsigned int grants_unmap(const struct grant *g, unsigned int nr)
{
    struct gnttab_unmap_grant_ref op[GRANTS_MAX];
    unsigned int i, good = 0;

    for ( i = 0; i < nr; i++ )
        op[i] = (struct gnttab_unmap_grant_ref){
            .host_addr = (uint64_t)g[i].at,
            .handle = g[i].handle,
            .status = GNTST_general_error,
        };
    if ( hypercall(__HYPERVISOR_grant_table_op, GNTTABOP_unmap_grant_ref,
                   (uint64_t)op, nr) )
        return 0;
    for ( i = 0; i < nr; i++ )
        good += ACCESS(op[i].status) == GNTST_okay;

    return good;
}

/* XEN_DOMCTL_pviommu is no member of the union in Xen's own header. */
static long pviommu(struct xen_domctl_pviommu *p)
{
    struct xen_domctl op = { .cmd = XEN_DOMCTL_pviommu };
    long rc;

    p->version = XEN_PVIOMMU_VERSION;
    memcpy(&op.u, p, sizeof(*p));
    rc = domctl(&op);
    memcpy(p, &op.u, sizeof(*p));

    return rc;
}

static uint32_t info(uint64_t *counters)
{
    struct xen_domctl_pviommu p = {
        .op = XEN_PVIOMMU_OP_get_info,
        .u.get_info.nr_counters = XEN_PVIOMMU_NR_COUNTERS,
    };
    long rc;

    set_xen_guest_handle(p.u.get_info.counters, counters);
    rc = pviommu(&p);
    if ( rc )
        bail("no counters of ours: %ld", rc);

    return p.u.get_info.flags;
}

uint64_t counter(unsigned int index)
{
    uint64_t c[XEN_PVIOMMU_NR_COUNTERS];

    info(c);

    return ACCESS(c[index]);
}

bool is_strict(void)
{
    uint64_t c[XEN_PVIOMMU_NR_COUNTERS];

    return info(c) & XEN_PVIOMMU_STRICT;
}

uint64_t smmu_counter(unsigned int index)
{
    uint64_t c[XEN_PVIOMMU_SMMU_NR_COUNTERS];
    struct xen_domctl_pviommu p = {
        .op = XEN_PVIOMMU_OP_get_smmu,
        .u.get_smmu.nr_counters = XEN_PVIOMMU_SMMU_NR_COUNTERS,
    };
    long rc;

    set_xen_guest_handle(p.u.get_smmu.counters, c);
    rc = pviommu(&p);
    if ( rc )
        bail("no counters of the SMMU: %ld", rc);

    return ACCESS(c[index]);
}

int set_strict(bool strict)
{
    struct xen_domctl_pviommu p = {
        .op = XEN_PVIOMMU_OP_set_strict,
        .u.set_strict.strict = strict,
    };

    return pviommu(&p);
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
