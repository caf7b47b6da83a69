/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A VMID that is used again must not hit what its former owner left in a TLB.
 *
 * Each test has its control: the same steps without the invalidation, as a
 * driver does that frees a VMID by clearing a bit.  There the new owner's
 * device reaches the former owner's memory.
 */

#include "guest.h"

static unsigned int vmid_of(struct pvi_context *ctx, unsigned int i)
{
    struct pvi_att *att;

    list_for_each_entry ( att, &ctx->atts, list )
        if ( att->smmu->node == &sw[i].node )
            return att->vmid;
    fail_msg("not attached");
    return 0;
}

/*
 * The order of a driver that switches the stream off, forgets the VMID, gives
 * it to the next domain and switches the stream on again.
 */
static int reuse_of_bit(bool invalidate)
{
    struct smmu_device *smmu = smmu_by_node(&sw[0].node);
    struct smmu_s2_cfg cfg = { .t0sz = 64 - 39, .sl0 = 1, .ps = 5 };
    struct page_info *l[3];
    unsigned int i, n = 0;
    struct smmu_batch b;
    paddr_t pa;
    int vmid, rc;

    assert_int_equal(smmu_strtab_reserve(smmu, 0x40, &n), 0);
    for ( i = 0; i < 3; i++ )
    {
        l[i] = alloc_domheap_pages(NULL, 0, 0);
        clear_page(page_to_virt(l[i]));
    }
    *(uint64_t *)page_to_virt(l[0]) = page_to_maddr(l[1]) | 3;
    *(uint64_t *)page_to_virt(l[1]) = page_to_maddr(l[2]) | 3;
    *(uint64_t *)page_to_virt(l[2]) = page_to_maddr(ram) | 0x7ff;
    cfg.ttb = page_to_maddr(l[0]);

    vmid = smmu_vmid_alloc(smmu);
    cfg.vmid = vmid;
    assert_int_equal(smmu_ste_s2(smmu, 0x40, &cfg, &n), 0);
    assert_int_equal(sw_dma(&sw[0], 0x40, 0x123, true, &pa), 0);
    assert_int_equal(smmu_ste_abort(smmu, 0x40, &n), 0);
    if ( invalidate )
    {
        smmu_batch_init(&b, smmu);
        assert_int_equal(smmu_tlbi_vmid(&b, vmid), 0);
        assert_int_equal(smmu_batch_sync(&b), 0);
    }
    smmu_vmid_free(smmu, vmid);

    /* The next domain has mapped nothing. */
    cfg.ttb = page_to_maddr(l[0] = alloc_domheap_pages(NULL, 0, 0));
    clear_page(page_to_virt(l[0]));
    cfg.vmid = smmu_vmid_alloc(smmu);
    assert_int_equal(cfg.vmid, vmid);
    assert_int_equal(smmu_ste_s2(smmu, 0x40, &cfg, &n), 0);
    rc = sw_dma(&sw[0], 0x40, 0x123, true, &pa);
    if ( !rc )
        assert_int_equal(pa, page_to_maddr(ram) + 0x123);
    assert_int_equal(smmu_ste_invalid(smmu, 0x40, &n), 0);
    return rc;
}

static void bit_only(void **state)
{
    assert_int_equal(reuse_of_bit(false), 0);
    assert_int_equal(reuse_of_bit(true), EVT_F_TRANSLATION);
}

/* Two contexts of one guest, one after the other. */
static int next_context(unsigned int deaf)
{
    unsigned int vmid;
    uint64_t to;
    int rc;

    sw[0].deaf = deaf;
    assert_int_equal(attach(1, 0x10, 0), 0);
    vmid = vmid_of(pd->ctx[1], 0);
    assert_int_equal(map(1, 0x100000, 0x1000, 0x3000, RW), 0);
    assert_int_equal(dma(0x10, 0x100000, true, &to), 0);
    assert_int_equal(to, 0x3000);
    assert_int_equal(detach(1, 0x10), 0);

    assert_int_equal(attach(2, 0x10, 0), 0);
    assert_int_equal(vmid_of(pd->ctx[2], 0), vmid);
    rc = dma(0x10, 0x100000, true, &to);
    assert_int_equal(detach(2, 0x10), 0);
    sw[0].deaf = 0;
    return rc;
}

static void contexts(void **state)
{
    assert_int_equal(next_context(0), EVT_F_TRANSLATION);
    assert_int_equal(next_context(CMD_OP_TLBI_S12_VMALL), 0);
    print_message("(as expected)\n");
    sw[0].violations = 0;
    sw[0].nr_tlb = 0;
}

/*
 * A device goes from one domain to another, which gets the VMID of the first:
 * its p2m is empty, and nothing of the first is left.
 */
static int next_domain(unsigned int deaf)
{
    static struct domain next = { .domain_id = 7 };
    struct pvi_ep_desc d = { .kind = PVI_EP_PCI, .epid = 0x80, .nr_streams = 1 };
    uint64_t *l1 = page_to_virt(dom.arch.p2m.root);
    struct page_info *l2 = alloc_domheap_pages(NULL, 0, 0);
    unsigned int vmid;
    paddr_t pa;
    int rc;

    /* The only device behind its SMMU, so that the VMID is given back. */
    assert_int_equal(pvi_endpoint_remove(pd, PVI_EP_PCI, 0x10), 0);
    assert_int_equal(pvi_endpoint_remove(pd, PVI_EP_PCI, 0x12), 0);
    d.s[0].smmu = smmu_by_node(&sw[0].node);
    d.s[0].sid = 0x80;
    assert_int_equal(pvi_endpoint_add(pd, &d), 0);
    vmid = vmid_of(&pd->dflt, 0);
    l1[0] = page_to_maddr(l2) | 3;
    clear_page(page_to_virt(l2));
    *(uint64_t *)page_to_virt(l2) = page_to_maddr(ram) | 0x7fd;
    assert_int_equal(sw_dma(&sw[0], 0x80, 0x5000, true, &pa), 0);
    assert_int_equal(pa, page_to_maddr(ram) + 0x5000);

    sw[0].deaf = deaf;
    assert_int_equal(pvi_endpoint_remove(pd, PVI_EP_PCI, 0x80), 0);

    spin_lock_init(&next.arch.p2m.lock);
    next.arch.p2m.root = alloc_domheap_pages(NULL, 1, 0);
    memset(page_to_virt(next.arch.p2m.root), 0, 2 * PAGE_SIZE);
    assert_int_equal(pvi_domain_init(&next), 0);
    assert_int_equal(pvi_endpoint_add(dom_pvi(&next), &d), 0);
    assert_int_equal(vmid_of(&dom_pvi(&next)->dflt, 0), vmid);
    rc = sw_dma(&sw[0], 0x80, 0x5000, true, &pa);

    assert_int_equal(pvi_endpoint_remove(dom_pvi(&next), PVI_EP_PCI, 0x80), 0);
    pvi_domain_free(&next);
    sw[0].deaf = 0;
    return rc;
}

static void domains(void **state)
{
    assert_int_equal(next_domain(0), EVT_F_TRANSLATION);
}

static void domains_control(void **state)
{
    assert_int_equal(next_domain(CMD_OP_TLBI_S12_VMALL), 0);
    sw[0].violations = 0;
    sw[0].nr_tlb = 0;
}

/* After a sync that failed the VMID is never given out again. */
static void failed_sync(void **state)
{
    struct smmu_device *smmu = smmu_by_node(&sw[0].node);
    struct viommu_req_detach r = { .type = VIOMMU_T_DETACH, .domain = 1,
                                   .endpoint = 0x10 };
    unsigned int vmid, i;

    assert_int_equal(attach(1, 0x10, 0), 0);
    vmid = vmid_of(pd->ctx[1], 0);
    assert_int_equal(map(1, 0x100000, 0x1000, 0x3000, RW), 0);
    sw[0].mode = SW_NEVER;
    fake_now_step = MILLISECS(1);
    post(&r, sizeof(r), 4);
    wr(0x50, 0);
    run();
    assert_true(pd->broken);
    for ( i = 0; i < 1000; i++ )
    {
        int got = smmu_vmid_alloc(smmu);

        assert_true(got >= 0 && got != vmid);
    }
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
#define L(f) cmocka_unit_test_setup_teardown(f, setup_lazy, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(bit_only), T(contexts), L(contexts), T(domains), L(domains),
        T(domains_control), T(failed_sync),
    };

    return cmocka_run_group_tests_name("vmid", tests, NULL, NULL);
}

/* What a broken domain holds stays pinned. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "detect_leaks=0"; }
