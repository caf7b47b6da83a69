/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Several SMMUs, endpoints with several streams, streams of several endpoints.
 */

#include "guest.h"

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
#define L(f) cmocka_unit_test_setup_teardown(f, setup_lazy, teardown)

static unsigned int seen, too_late;

/* When a sync is consumed, somebody waits: all must have been asked by then. */
static int asked(struct swsmmu *s, const struct sw_cmd *c, unsigned int n)
{
    struct swsmmu *o = s == &sw[0] ? &sw[1] : &sw[0];

    if ( (c->w[0] & 0xff) == CMD_OP_SYNC && !seen++ )
        too_late = o->cmdq_prod == o->cmdq_cons;
    return SW_OK;
}

static void both_at_once(void)
{
    seen = too_late = 0;
    sw[0].inject = sw[1].inject = asked;
}

/* All SMMUs are told before the first is waited for. */
static void told_first(void **state)
{
    unsigned int before;

    assert_int_equal(attach(1, 0x10, 0), 0);
    assert_int_equal(attach(1, 0x11, 0), 0);
    assert_int_equal(map(1, 0x100000, 0x2000, 0x3000, RW), 0);
    assert_int_equal(dma(0x10, 0x100000, true, NULL), 0);
    assert_int_equal(dma(0x11, 0x101000, true, NULL), 0);

    before = syncs();
    both_at_once();
    assert_int_equal(unmap(1, 0x100000, 0x2000), 0);
    assert_int_equal(pvi_fq_flush(pd, PVI_CAUSE_AGE), 0);
    assert_int_equal(syncs() - before, 2);
    assert_int_equal(seen, 2);
    assert_false(too_late);
    assert_int_equal(dma(0x10, 0x100000, true, NULL), EVT_F_TRANSLATION);
    assert_int_equal(dma(0x11, 0x101000, true, NULL), EVT_F_TRANSLATION);

    /* The same for the p2m. */
    both_at_once();
    assert_int_equal(pvi_p2m_flush_all(pd), 0);
    assert_int_equal(seen, 2);
    assert_false(too_late);
    sw[0].inject = sw[1].inject = NULL;
}

/* An SMMU that a context doesn't use isn't told. */
static void told_only_users(void **state)
{
    unsigned int before;

    assert_int_equal(attach(1, 0x10, 0), 0);
    assert_int_equal(map(1, 0x100000, 0x2000, 0x3000, RW), 0);
    before = sw[1].nr_log;
    assert_int_equal(unmap(1, 0x100000, 0x2000), 0);
    assert_int_equal(pvi_fq_flush(pd, PVI_CAUSE_AGE), 0);
    assert_int_equal(sw[1].nr_log, before);
}

/* One SMMU of two hangs: nothing is released, whatever the other says. */
static void one_hangs(void **state)
{
    struct viommu_req_unmap r = unmap_req(1, 0x100000, 0x2000);
    long refs;

    assert_int_equal(attach(1, 0x10, 0), 0);
    assert_int_equal(attach(1, 0x11, 0), 0);
    assert_int_equal(map(1, 0x100000, 0x2000, 0x3000, RW), 0);
    refs = fake_refs;
    sw[1].mode = SW_NEVER;
    fake_now_step = MILLISECS(1);
    post(&r, sizeof(r), 4);
    wr(0x50, 0);
    run();
    assert_int_equal(pvi_fq_flush(pd, PVI_CAUSE_AGE), -ETIMEDOUT);
    assert_true(pd->broken);
    assert_int_equal(fake_refs, refs);
}

/* Behind different widths: contexts are as wide as the narrowest. */
static void widths(void **state)
{
    static const struct { unsigned int oas, ias, ctx; } c[] = {
        { 1, 36, 36 }, { 2, 40, 39 }, { 3, 42, 39 }, { 4, 44, 44 },
        { 5, 48, 48 },
    };
    unsigned int i;
    uint64_t top;

    for ( i = 0; i < ARRAY_SIZE(c); i++ )
    {
        struct smmu_device *smmu = smmu_by_node(&sw[1].node);

        smmu->ias = smmu->oas = c[i].ias;
        sw[1].idr5 = (sw[1].idr5 & ~7U) | c[i].oas;
        assert_int_equal(pvi_ias(), c[i].ias);
        assert_int_equal(pvi_ctx_bits(), c[i].ctx);
        /* As the device's configuration space says it. */
        assert_int_equal(rd(0x110) | (uint64_t)rd(0x114) << 32,
                         (1UL << c[i].ctx) - 1);

        top = (1UL << c[i].ctx) - 0x1000;
        assert_int_equal(attach(1, 0x10, 0), 0);
        assert_int_equal(attach(1, 0x11, 0), 0);
        assert_int_equal(map(1, top, 0x1000, 0x3000, RW), 0);
        assert_int_equal(map(1, top + 0x1000, 0x1000, 0x3000, RW),
                         VIOMMU_S_RANGE);
        assert_int_equal(dma(0x10, top, true, NULL), 0);
        assert_int_equal(dma(0x11, top, true, NULL), 0);
        assert_int_equal(detach(1, 0x10), 0);
        assert_int_equal(detach(1, 0x11), 0);
    }
}

static struct pvi_ep_desc three_streams(void)
{
    struct pvi_ep_desc d = { .kind = PVI_EP_DT, .epid = 0x100,
                             .nr_streams = 3 };
    unsigned int i;

    for ( i = 0; i < 3; i++ )
    {
        d.s[i].smmu = smmu_by_node(&sw[i & 1].node);
        d.s[i].sid = 0x100 + 0x77 * i;
    }
    return d;
}

static int dma3(unsigned int i, uint64_t iova)
{
    paddr_t pa;

    return sw_dma(&sw[i & 1], 0x100 + 0x77 * i, iova, true, &pa);
}

/* All streams of an endpoint follow it, also to another SMMU. */
static void many_streams(void **state)
{
    struct pvi_ep_desc d = three_streams();
    unsigned int i;

    assert_int_equal(pvi_endpoint_add(pd, &d), 0);
    assert_int_equal(attach(1, 0x100, 0), 0);
    assert_int_equal(map(1, 0x100000, 0x1000, 0x3000, RW), 0);
    for ( i = 0; i < 3; i++ )
        assert_int_equal(dma3(i, 0x100000), 0);
    assert_int_equal(unmap(1, 0x100000, 0x1000), 0);
    assert_int_equal(pvi_fq_flush(pd, PVI_CAUSE_AGE), 0);
    for ( i = 0; i < 3; i++ )
        assert_int_equal(dma3(i, 0x100000), EVT_F_TRANSLATION);
    assert_int_equal(detach(1, 0x100), 0);
    assert_int_equal(pvi_endpoint_remove(pd, PVI_EP_DT, 0x100), 0);
    /* Of nobody: invalid, or a table that was never made. */
    for ( i = 0; i < 3; i++ )
        assert_int_equal(dma3(i, 0x100000), EVT_C_BAD_STE);
}

/* One stream of many belongs to another: none is taken. */
static void all_or_none(void **state)
{
    static struct domain other = { .domain_id = 8 };
    struct pvi_ep_desc d = three_streams(), one = {
        .kind = PVI_EP_PCI, .epid = 1, .nr_streams = 1 };
    unsigned int i;

    other.arch.p2m.root = alloc_domheap_pages(NULL, 1, 0);
    memset(page_to_virt(other.arch.p2m.root), 0, 2 * PAGE_SIZE);
    assert_int_equal(pvi_domain_init(&other), 0);
    one.s[0] = d.s[2];
    assert_int_equal(pvi_endpoint_add(dom_pvi(&other), &one), 0);
    assert_int_equal(pvi_endpoint_add(pd, &d), -EBUSY);
    assert_null(pvi_endpoint_find(pd, 0x100));
    for ( i = 0; i < 2; i++ )
        assert_int_equal(dma3(i, 0x100000), EVT_C_BAD_STE);
    assert_int_equal(pvi_endpoint_remove(dom_pvi(&other), PVI_EP_PCI, 1), 0);
    assert_int_equal(pvi_endpoint_add(pd, &d), 0);
    assert_int_equal(pvi_endpoint_remove(pd, PVI_EP_DT, 0x100), 0);
    pvi_domain_free(&other);
}

/* Two endpoints with one stream: together or not at all; the last one off. */
static void shared_stream(void **state)
{
    struct pvi_ep_desc d = { .kind = PVI_EP_PCI, .epid = 0x20,
                             .nr_streams = 1 };

    d.s[0].smmu = smmu_by_node(&sw[0].node);
    d.s[0].sid = 0x10;                      /* that of endpoint 0x10 */
    assert_int_equal(pvi_endpoint_add(pd, &d), 0);
    assert_int_equal(attach(1, 0x10, 0), 0);
    assert_int_equal(map(1, 0x100000, 0x1000, 0x3000, RW), 0);
    assert_int_equal(attach(2, 0x20, 0), VIOMMU_S_UNSUPP);
    assert_int_equal(attach(1, 0x20, 0), 0);
    assert_int_equal(pvi_endpoint_remove(pd, PVI_EP_PCI, 0x10), 0);
    assert_int_equal(dma(0x10, 0x100000, true, NULL), 0);
    assert_int_equal(pvi_endpoint_remove(pd, PVI_EP_PCI, 0x20), 0);
    assert_int_equal(dma(0x10, 0x100000, true, NULL), EVT_C_BAD_STE);
    assert_int_equal(detach(1, 0x10), 0);
    assert_int_equal(detach(1, 0x20), 0);
}

static struct pvi_ep_desc twin(uint32_t epid)
{
    struct pvi_ep_desc d = { .kind = PVI_EP_PCI, .epid = epid,
                             .nr_streams = 1 };

    d.s[0].smmu = smmu_by_node(&sw[0].node);
    d.s[0].sid = 0x10;
    return d;
}

/* The one that is attached is taken away: its context ends with it. */
static void shared_taken(void **state)
{
    struct pvi_ep_desc d = twin(0x20);

    assert_int_equal(pvi_endpoint_add(pd, &d), 0);
    assert_int_equal(attach(1, 0x10, 0), 0);
    assert_int_equal(map(1, 0x100000, 0x1000, 0x3000, RW), 0);
    assert_int_equal(dma(0x10, 0x100000, true, NULL), 0);
    assert_int_equal(pvi_endpoint_remove(pd, PVI_EP_PCI, 0x10), 0);
    assert_int_equal(dma(0x10, 0x100000, true, NULL), EVT_F_TRANSLATION);
    assert_int_equal(detach(1, 0x10), 0);
    assert_int_equal(pd->nr_contexts, 0);
    assert_int_equal(dma(0x10, 0x100000, true, NULL), EVT_F_TRANSLATION);
    assert_int_equal(pvi_endpoint_remove(pd, PVI_EP_PCI, 0x20), 0);
}

/* It comes back while the other one is attached elsewhere: it can't. */
static void shared_comes_back(void **state)
{
    struct pvi_ep_desc d = twin(0x20), back = twin(0x10);
    uint64_t to;

    assert_int_equal(pvi_endpoint_add(pd, &d), 0);
    assert_int_equal(attach(1, 0x10, 0), 0);
    assert_int_equal(pvi_endpoint_remove(pd, PVI_EP_PCI, 0x10), 0);
    assert_int_equal(attach(2, 0x20, 0), 0);
    assert_int_equal(map(2, 0x100000, 0x1000, 0x3000, RW), 0);
    assert_int_equal(pvi_endpoint_add(pd, &back), -EXDEV);
    assert_int_equal(dma(0x10, 0x100000, true, &to), 0);
    assert_int_equal(to, 0x3000);
    assert_int_equal(detach(2, 0x20), 0);
    assert_int_equal(pvi_endpoint_add(pd, &back), 0);
    assert_int_equal(dma(0x10, 0x100000, true, NULL), EVT_F_TRANSLATION);
    assert_int_equal(detach(1, 0x10), 0);
    assert_int_equal(pvi_endpoint_remove(pd, PVI_EP_PCI, 0x20), 0);
}

/* An SMMU that hangs while the guest makes a new context. */
static void attach_hangs(void **state)
{
    struct viommu_req_attach r = { .type = VIOMMU_T_ATTACH, .domain = 1,
                                   .endpoint = 0x10 };

    sw[0].mode = SW_NEVER;
    fake_now_step = MILLISECS(1);
    post(&r, sizeof(r), 4);
    wr(0x50, 0);
    run();
    assert_true(pd->broken);
    assert_int_equal(used()[1], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(told_first), L(told_first), T(told_only_users), L(told_only_users),
        T(one_hangs), L(one_hangs), T(widths), T(many_streams),
        L(many_streams), T(all_or_none), T(shared_stream), L(shared_stream),
        T(shared_taken), L(shared_taken), T(shared_comes_back),
        T(attach_hangs),
    };

    return cmocka_run_group_tests_name("several", tests, NULL, NULL);
}

/* What a broken domain holds stays pinned. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "detect_leaks=0"; }
