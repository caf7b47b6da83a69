/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Requests: well formed in most bytes, with values that meet each other, on a
 * p2m with a bit of everything; resets, time and p2m changes in between.
 */

#include "fuzz.h"

static struct domain other;
static struct page_info *foreign;

/* What a frame is follows from its number. */
static void types(unsigned long gfn, mfn_t *mfn, p2m_type_t *t,
                  p2m_access_t *a, unsigned int *order)
{
    static const p2m_type_t by_gfn[] = {
        p2m_ram_ro, p2m_invalid, p2m_mmio_direct_dev, p2m_grant_map_rw,
        p2m_map_foreign_ro, p2m_iommu_map_rw, p2m_mmio_direct_c, p2m_ram_rw };

    if ( gfn < 0x40 || gfn >= 0x50 )
        return;
    *t = by_gfn[gfn & 7];
    if ( *t == p2m_invalid )
        *mfn = INVALID_MFN;
    else if ( *t == p2m_mmio_direct_dev || *t == p2m_mmio_direct_c )
        *mfn = _mfn(0x8000 + gfn);
    else if ( *t != p2m_ram_ro && *t != p2m_ram_rw )
        *mfn = page_to_mfn(foreign + (gfn & 15));
}

/* Near page 0, block boundaries, the end of the input range, anywhere. */
static uint64_t some_iova(void)
{
    uint8_t x = take_bytes(1);
    uint64_t page = x & 0x1f;

    switch ( x >> 5 )
    {
    case 0: case 1: return page << 12;
    case 2:         return 0x200000 - 0x8000 + (page << 12);
    case 3:         return (1UL << 30) - 0x8000 + (page << 12);
    case 4:         return (1UL << 48) - 0x20000 + (page << 12);
    case 5:         return page << 12 | take_bytes(1);
    case 6:         return -4096UL * page;
    default:        return take_bytes(8);
    }
}

static uint64_t some_size(void)
{
    uint8_t x = take_bytes(1);

    return x < 0x80 ? ((x & 0x1f) + 1UL) << 12 :
           x < 0xc0 ? (1UL << (12 + (x & 0x3f) % 48)) : take_bytes(3);
}

static uint64_t some_phys(void)
{
    uint8_t x = take_bytes(1);

    return x < 0xf0 ? (uint64_t)x << 12 : take_bytes(8);
}

static uint32_t some_ctx(uint8_t how)
{
    return how & 0x80 ? take_bytes(4) : how >> 4 & 3;
}

static void queue_request(uint8_t how)
{
    union {
        struct viommu_req_attach attach;
        struct viommu_req_detach detach;
        struct viommu_req_map map;
        struct viommu_req_unmap unmap;
        struct viommu_req_probe probe;
        uint8_t raw[80];
    } r;
    unsigned int len = sizeof(r.map);
    uint64_t start;

    memset(&r, 0, sizeof(r));
    switch ( how & 7 )
    {
    case 0:
        len = 1 + (take_bytes(1) & 63);
        for ( start = 0; start < len; start++ )
            r.raw[start] = take_bytes(1);
        break;

    case 1:
        r.attach.domain = some_ctx(how);
        r.attach.endpoint = 0x10 + (take_bytes(1) & 7);
        r.attach.flags = how >> 3 & 1;
        len = sizeof(r.attach);
        break;

    case 2:
        r.detach.domain = some_ctx(how);
        r.detach.endpoint = 0x10 + (take_bytes(1) & 7);
        len = sizeof(r.detach);
        break;

    case 3: case 6:
        start = some_iova();
        r.map = map_req(some_ctx(how), start, some_size(), some_phys(),
                        how & 8 ? take_bytes(1) : 3);
        break;

    case 4: case 7:
        start = some_iova();
        r.unmap = unmap_req(some_ctx(how), start, some_size());
        len = sizeof(r.unmap);
        break;

    case 5:
        r.probe.endpoint = 0x10 + (take_bytes(1) & 7);
        len = sizeof(r.probe);
        break;
    }
    if ( (how & 7) && (how & 7) < 6 )
        r.raw[0] = how & 7;
    (void)post(&r, len, (how & 7) == 5 ? 516 : 4);
}

/* A frame's pages leave the p2m, as by the end of a grant. */
static void leave(unsigned int i)
{
    lpae_t old = { .bits = page_to_maddr(foreign + i) | 0x7ff |
                           (uint64_t)p2m_grant_map_rw << 55 };

    spin_lock(&dom.arch.p2m.lock);
    pviommu_p2m_change(&dom.arch.p2m, _gfn(0x40 + i), 0, &old, 3, true);
    pviommu_p2m_unlock(&dom.arch.p2m);
    spin_unlock(&dom.arch.p2m.lock);
    check(!sw_reaching(&sw[0], page_to_maddr(foreign + i), PAGE_SIZE));
}

static void other_event(uint8_t how)
{
    paddr_t pa;

    switch ( how & 7 )
    {
    case 0:
        wr(0x70, 0);
        work(20000);
        drive(FEATURES);
        break;
    case 1: fake_advance(MILLISECS(11)); break;
    case 2: check(!pvi_set_strict(pd, how & 8)); break;
    case 3: mmio_write(0x124, how >> 3 & 1, 0); break;
    case 4: leave(how >> 3 & 15); break;
    default:
        (void)sw_dma(&sw[how >> 3 & 1], 0x10 + (how >> 3 & 3), some_iova(),
                     how & 1, &pa);
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned int posted = 0;
    uint8_t how;

    in = data;
    in_left = size;
    how = take_bytes(1);
    begin(how & 1, how & 2);
    memset(&other, 0, sizeof(other));
    foreign = fake_guest_pages(&other, 4);
    dom.arch.p2m.hook = types;
    while ( in_left )
    {
        uint8_t what = take_bytes(1);

        if ( what & 1 )
            other_event(what >> 1);
        else
        {
            queue_request(take_bytes(1));
            posted++;
        }
        if ( (what & 0xc0) || posted == NUM / 2 - 1 || (what & 0x1f) == 1 )
        {
            wr(0x50, 0);
            work((what & 0xc0) == 0x40 ? 2 : 20000);
            posted = pd->work || pd->worker ? posted : 0;
            if ( posted == NUM / 2 - 1 )
            {
                work(20000);
                posted = 0;
            }
        }
    }
    wr(0x50, 0);
    work(20000);
    check(used()[1] == avail_idx);
    check(rd(0x70) == 15);
    end();
    return 0;
}
