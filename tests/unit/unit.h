/* SPDX-License-Identifier: GPL-2.0-only */
/* What all tests of the SMMU's side share. */
#ifndef UNIT_H
#define UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "fake.h"
#include <cmocka.h>

#include "compat.h"
#include "smmu/smmu.h"
#include "swsmmu.h"

/* A driver's SMMU on @sw, as smmu_probe() would have filled it in. */
static inline struct smmu_device *dev_new(struct swsmmu *sw)
{
    struct smmu_device *smmu = calloc(1, sizeof(*smmu));

    smmu->node = &sw->node;
    smmu->base = ioremap_nocache(sw->addr, PAGE_SIZE);
    smmu->page1 = ioremap_nocache(sw->addr + SMMU_PAGE1, PAGE_SIZE);
    smmu->sid_bits = sw->idr1 & 0x3f;
    smmu->vmid_bits = sw->idr0 & IDR0_VMID16 ? 16 : 8;
    smmu->oas = smmu->ias = 48;
    if ( !sw->noncoherent )
        smmu->flags |= SMMU_F_COHERENT;
    if ( sw->idr3 & IDR3_RIL )
        smmu->flags |= SMMU_F_RIL;
    if ( sw->cs_msi )
        smmu->flags |= SMMU_F_MSI;
    spin_lock_init(&smmu->vmid_lock);
    spin_lock_init(&smmu->streams_lock);
    smmu->vmids = calloc(BITS_TO_LONGS(1U << smmu->vmid_bits), 8);
    assert_int_equal(smmu_cmdq_init(smmu, (sw->idr1 >> 21) & 0x1f), 0);
    sw_enable(sw, CR0_CMDQEN);

    return smmu;
}

static inline void dev_free(struct smmu_device *smmu)
{
    free(smmu->cmdq.phase);
    free(smmu->vmids);
    free(smmu->strtab.shared);
    free(smmu);
}

static inline uint64_t rnd(void)
{
    static uint64_t x = 88172645463325252ULL;

    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return x;
}

#define no_violations(sw) \
    do { if ( (sw)->violations ) \
             fail_msg("%u violations, last: %s", (sw)->violations, \
                      (sw)->last_violation); } while ( 0 )

#endif /* UNIT_H */
