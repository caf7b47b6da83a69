/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Rings: descriptors, indirect tables and indexes of any content, that change
 * while the device reads them.
 *
 * The input is a number of kicks, each with writes to the guest's memory
 * before it and others that happen at the following look-ups of guest pages.
 */

#include "fuzz.h"

/* Writes that wait for a look-up: offset from the rings, size, bytes. */
static bool armed;
static unsigned int lookups;

/* Where something matters: descriptors, both rings, requests, a table. */
static uint64_t place(uint16_t x)
{
    static const uint16_t base[] = { 0, 0x1000, 0x2000, 0x7000, 0x7080,
                                     0x7400, 0x3000, 0x8000 };

    return RINGS + base[x & 7] + (x >> 3 & 0x3ff);
}

static void scribble(void)
{
    uint64_t at = place(take_bytes(2));
    unsigned int n = 1 + (take_bytes(1) & 31);
    uint8_t *p = gpa(at);

    for ( ; n && in_left && at < RAM_SIZE; n--, at++ )
        *p++ = take_bytes(1);
}

static void changes(unsigned long gfn, mfn_t *mfn, p2m_type_t *t,
                    p2m_access_t *a, unsigned int *order)
{
    uint8_t how;

    if ( !armed || lookups++ > 64 || !in_left )
        return;
    how = take_bytes(1);
    if ( how & 1 )
        scribble();
    if ( (how & 0xf0) == 0xf0 )
    {
        /* The page itself is gone, or is something else. */
        static const p2m_type_t types[] = {
            p2m_invalid, p2m_ram_ro, p2m_mmio_direct_dev, p2m_map_foreign_ro };

        *t = types[how >> 1 & 3];
        if ( *t == p2m_invalid )
            *mfn = INVALID_MFN;
        else if ( *t == p2m_mmio_direct_dev )
            *mfn = _mfn(0x8000);
    }
}

/* Requests that would be good, for descriptors to point to. */
static void requests(void)
{
    struct viommu_req_map m = map_req(1, 0x10000, 0x4000, 0x10000, 3);
    struct viommu_req_unmap u = unmap_req(1, 0x10000, 0x4000);
    struct viommu_req_attach a = { .type = VIOMMU_T_ATTACH, .domain = 1,
                                   .endpoint = 0x10 };
    struct vring_desc *t = gpa(RINGS + 0x8000);

    post(&a, sizeof(a), 4);
    post(&m, sizeof(m), 4);
    post(&u, sizeof(u), 4);
    t[0] = (struct vring_desc){ RINGS + 0x7000, 20, VRING_DESC_F_NEXT, 1 };
    t[1] = (struct vring_desc){ RINGS + 0x7080, 4, VRING_DESC_F_WRITE };
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t how, n;

    in = data;
    in_left = size;
    how = take_bytes(1);
    begin(how & 1, how & 2);
    wr(0x70, 0);
    work(100);
    drive(FEATURES | (how & 4 ? 1UL << 29 : 0));
    requests();
    dom.arch.p2m.hook = changes;
    lookups = 0;
    while ( in_left )
    {
        n = take_bytes(1);
        while ( n & 7 )
        {
            scribble();
            n--;
        }
        armed = n & 8;
        lookups = 0;
        wr(0x50, 0);
        work(1 + (n >> 4) * 8);
        /* A malformed ring: the driver starts anew. */
        if ( rd(0x70) & VIRTIO_STATUS_NEEDS_RESET )
        {
            armed = false;
            wr(0x70, 0);
            work(1000);
            drive(FEATURES | (how & 4 ? 1UL << 29 : 0));
        }
    }
    armed = false;
    work(20000);
    end();
    return 0;
}
