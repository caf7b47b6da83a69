/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the fuzzers of the device share: a guest is born, does what the input
 * says, and dies; nothing of it may be left then.
 */
#ifndef FUZZ_H
#define FUZZ_H

/* Small, since it is made anew for each input. */
#define GUEST_ORDER 8
#include "guest.h"

#define RAM_SIZE (GUEST_PAGES << PAGE_SHIFT)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The input, taken bit by bit; zeros when it ends. */
static const uint8_t *in;
static size_t in_left;

static uint64_t take_bytes(unsigned int n)
{
    uint64_t x = 0;
    unsigned int i;

    for ( i = 0; i < n && in_left; i++, in_left-- )
        x |= (uint64_t)*in++ << (8 * i);
    return x;
}

#define check(x) \
    do { if ( !(x) ) fake_panic(__FILE__, __LINE__, #x); } while ( 0 )

/* At most @max slices: what isn't done is met by whatever comes next. */
__attribute__((unused)) static void work(unsigned int max)
{
    bool more;

    do {
        fake_irqs_off = true;
        more = pviommu_vcpu_work(&cpu);
        check(fake_irqs_off && !fake_locks);
        fake_irqs_off = false;
    } while ( more && --max );
    if ( max )
        check(!pd->work && !pd->worker);
}

__attribute__((unused)) static void begin(bool strict, bool ril)
{
    make(strict, ril);
    fake_store_hook(NULL);
}

static void smmu_gone(struct smmu_device *smmu)
{
    free(smmu->cmdq.phase);
    free(smmu->vmids);
    free(smmu->strtab.shared);
    radix_tree_destroy(&smmu->streams, NULL);
    free(smmu);
}

__attribute__((unused)) static void end(void)
{
    struct smmu_device *smmu, *next;
    unsigned int i, n = 0;
    struct page_info *pg;

    dom.is_dying = true;
    for ( i = 0; i < 4; i++ )
        check(!pvi_endpoint_remove(pd, PVI_EP_PCI, 0x10 + i));
    check(!pviommu_relinquish(&dom));
    check(!fake_refs && !fake_mapped && !fake_locks);
    page_list_for_each ( pg, &dom.arch.paging.p2m_freelist )
        n++;
    check(n == POOL);
    pvi_domain_free(&dom);
    check(fake_allocs == allocs_before);
    check(!sw[0].violations && !sw[1].violations);
    for ( smmu = list_first_entry_or_null(&smmu_devices, struct smmu_device,
                                          list); smmu; smmu = next )
    {
        next = smmu->list.next == &smmu_devices ? NULL :
               list_entry(smmu->list.next, struct smmu_device, list);
        smmu_gone(smmu);
    }
    sw_exit(&sw[0]);
    sw_exit(&sw[1]);
}

#endif /* FUZZ_H */
