/* SPDX-License-Identifier: GPL-2.0-only */
/* Requests of the virtio-iommu: virtio 1.2, 5.13.6. */

#include "conformance.h"

#define OK      VIRTIO_IOMMU_S_OK
#define INVAL   VIRTIO_IOMMU_S_INVAL
#define RANGE   VIRTIO_IOMMU_S_RANGE
#define NOENT   VIRTIO_IOMMU_S_NOENT

#define OUT(r)  (sizeof(r) - sizeof(struct virtio_iommu_req_tail))
#define NOBODY  0xfffffff0U     /* no endpoint has this id */
#define UNUSED  500U            /* a domain that nobody creates */
#define IOVA    0x40000000UL
#define F_BYPASS VIRTIO_IOMMU_ATTACH_F_BYPASS

static uint32_t ep, ep2;
static uint8_t *ram;            /* 32 pages */

/* Domain @d exists, with @ep alone and nothing mapped. */
static void fresh(uint32_t d)
{
    device_restart();
    if ( attach(d, ep) )
        bail("attach of a fresh domain");
}

static int map_pages(unsigned int at, unsigned int n)
{
    return map(1, IOVA + at * PAGE, ram, n * PAGE, READ | WRITE);
}

static int unmap_pages(unsigned int at, unsigned int n)
{
    return unmap(1, IOVA + at * PAGE, n * PAGE);
}

/* Is the page mapped?  Mapped again, it would be an overlap. */
static bool mapped(unsigned int at)
{
    if ( map_pages(at, 1) == INVAL )
        return true;
    unmap_pages(at, 1);

    return false;
}

static void general(void)
{
    static const uint8_t types[] = { 0, 6, 7, 0x3f, 0x80, 0xff };
    uint8_t in[64], untouched[64];
    unsigned int i;
    bool quiet = true;
    uint32_t len;

    device_restart();
    memset(untouched, 0xee, sizeof(untouched));
    for ( i = 0; i < ARRAY_SIZE(types); i++ )
    {
        uint8_t out[72] = { types[i] };

        memset(in, 0xee, sizeof(in));
        quiet &= !request(out, sizeof(out), in, sizeof(in), &len) && !len &&
                 !memcmp(in, untouched, sizeof(in));
    }
    ok(quiet, "request: unknown type: nothing written, length 0");

    {
        const struct virtio_iommu_req_attach r = {
            .head = { VIRTIO_IOMMU_T_ATTACH, { 1, 0x80, 0xff } },
            .domain = 1,
            .endpoint = ep,
        };
        struct virtio_iommu_req_tail t;

        memset(&t, 0xee, sizeof(t));
        request(&r, OUT(r), &t, sizeof(t), &len);
        is(t.status, OK, "request: reserved bytes of the head are ignored");
        ok(!(t.reserved[0] | t.reserved[1] | t.reserved[2]),
           "request: reserved bytes of the tail are 0");
        is(request_status(&r, OUT(r) - 1), INVAL,
           "request: too short is refused");
    }
    detach(1, ep);
}

static int attach_reserved(unsigned int byte)
{
    struct virtio_iommu_req_attach r = {
        .head.type = VIRTIO_IOMMU_T_ATTACH,
        .domain = 1,
        .endpoint = ep,
    };

    r.reserved[byte] = 0x10;

    return request_status(&r, OUT(r));
}

static void attach_rules(void)
{
    uint32_t last = CONFIG(domain_range.end);
    unsigned int i;
    bool good = true;

    device_restart();
    for ( i = 0; i < 4; i++ )
        good &= attach_reserved(i) == INVAL;
    ok(good, "ATTACH: reserved not 0: INVAL");
    for ( i = 1, good = true; i < 32; i++ )
        good &= attach_flags(1, ep, 1U << i) == INVAL;
    ok(good, "ATTACH: unknown flags: INVAL");
    is(attach(1, NOBODY), NOENT, "ATTACH: no such endpoint: NOENT");
    is(map_pages(0, 1), NOENT, "ATTACH: refused, it creates no domain");

    is(attach(1, ep), OK, "ATTACH: an endpoint");
    is(attach(1, ep), OK, "ATTACH: where it is already");
    is(map_pages(0, 1), OK, "ATTACH: the domain exists then");
    is(attach(1, ep2), OK, "ATTACH: a second endpoint");
    is(attach(2, ep), OK, "ATTACH: to another domain");
    ok(mapped(0), "ATTACH: the first domain stays with its other endpoint");
    is(attach(2, ep2), OK, "ATTACH: that one too");
    is(map_pages(1, 1), NOENT, "ATTACH: so the first domain is gone");
    is(attach(1, ep), OK, "ATTACH: the domain's id can be used again");
    ok(!mapped(0), "ATTACH: and nothing is mapped in it");

    is(attach(last, ep), OK, "ATTACH: the last domain of the range");
    ok(attach(last + 1, ep) > OK, "ATTACH: beyond the range: an error");
    is(map(last, IOVA, ram, PAGE, READ), OK,
       "ATTACH: refused, the endpoint stays where it is");

    is(attach_flags(3, ep, F_BYPASS), OK, "ATTACH: a bypass domain");
    is(attach_flags(3, ep2, 0), INVAL,
       "ATTACH: to a bypass domain without the flag: INVAL");
    is(attach_flags(3, ep2, F_BYPASS), OK, "ATTACH: a second, to bypass");
    is(attach(4, ep2), OK, "ATTACH: from bypass to a domain");
    is(attach_flags(4, ep, F_BYPASS), INVAL,
       "ATTACH: to another domain with the bypass flag: INVAL");
    is(map(3, IOVA, ram, PAGE, READ), INVAL, "MAP: a bypass domain: INVAL");
    is(unmap(3, IOVA, PAGE), INVAL, "UNMAP: a bypass domain: INVAL");
    is(detach(3, ep), OK, "DETACH: from bypass");

    device_start(device_features() & ~BIT(VIRTIO_IOMMU_F_BYPASS_CONFIG), 64);
    is(attach_flags(1, ep, F_BYPASS), INVAL,
       "ATTACH: the bypass flag without BYPASS_CONFIG: INVAL");
}

static void detach_rules(void)
{
    struct virtio_iommu_req_detach r = {
        .head.type = VIRTIO_IOMMU_T_DETACH,
        .domain = 1,
        .endpoint = ep,
        .reserved = { 1, 2, 3, 4, 5, 6, 7, 8 },
    };

    fresh(1);
    is(detach(1, NOBODY), NOENT, "DETACH: no such endpoint: NOENT");
    ok(detach(UNUSED, ep) > OK, "DETACH: no such domain: an error");
    ok(detach(1, ep2) > OK, "DETACH: an unattached endpoint: an error");
    attach(2, ep2);
    is(detach(2, ep), INVAL, "DETACH: from another domain: INVAL");
    map_pages(0, 1);
    ok(mapped(0), "DETACH: refused, nothing has changed");
    is(request_status(&r, OUT(r)), OK, "DETACH: reserved is ignored");
    is(map_pages(0, 1), NOENT, "DETACH: the last one, the domain is gone");
    is(attach(1, ep), OK, "DETACH: its id can be used again");
    ok(!mapped(0), "DETACH: its mappings are gone");
}

static void map_rules(void)
{
    const uint64_t last = CONFIG(input_range.end), r = (uint64_t)ram;
    uint64_t end = 0;
    unsigned int i;
    bool good = true;

    fresh(1);
    is(map(UNUSED, IOVA, ram, PAGE, READ), NOENT, "MAP: no domain: NOENT");
    is(map_range(1, IOVA + 0x800, IOVA + PAGE - 1, r, READ), RANGE,
       "MAP: virt_start unaligned: RANGE");
    is(map_range(1, IOVA, IOVA + PAGE, r, READ), RANGE,
       "MAP: virt_end unaligned: RANGE");
    is(map_range(1, IOVA, IOVA + PAGE - 1, r + 1, READ), RANGE,
       "MAP: phys_start unaligned: RANGE");
    for ( i = 3; i < 32; i++ )
        good &= map_range(1, IOVA, IOVA + PAGE - 1, r, READ | 1U << i) ==
                INVAL;
    ok(good, "MAP: unknown flags: INVAL");
    is(map_range(1, IOVA + PAGE, IOVA - 1, r, READ), RANGE,
       "MAP: end before start: RANGE");
    is(map_range(1, last + 1, last + PAGE, r, READ), RANGE,
       "MAP: outside the input range: RANGE");
    is(map_range(1, last - PAGE + 1, last + PAGE, r, READ), RANGE,
       "MAP: out of the input range: RANGE");
    is(map_range(1, ~0UL - PAGE + 1, ~0UL, r, READ), RANGE,
       "MAP: the last page of 2^64: RANGE");
    is(map_range(1, 0, ~0UL, 0, READ), RANGE, "MAP: all of 2^64: RANGE");
    ok(map_range(1, IOVA, IOVA + 2 * PAGE - 1, ~0UL - PAGE + 1, READ) > OK,
       "MAP: phys_start + size beyond 2^64: an error");
    is(map_range(1, last - PAGE + 1, last, r, READ), OK,
       "MAP: the last page of the input range");
    is(map_range(1, 0, PAGE - 1, r, READ), OK, "MAP: address 0");

    ok(map(1, IOVA, (void *)BIT(46), PAGE, READ) > OK,
       "MAP: nothing there: an error");
    ok(map(1, IOVA, (void *)tree.viommu.base, PAGE, READ) > OK,
       "MAP: emulated registers: an error");
    for ( i = 0; i < tree.nr_memory; i++ )
        if ( tree.memory[i].base + tree.memory[i].size > end )
            end = tree.memory[i].base + tree.memory[i].size;
    ok(map(1, IOVA, (void *)(end - 8 * PAGE), 16 * PAGE, READ) > OK,
       "MAP: half of it isn't there: an error");
    ok(!mapped(0) && !mapped(7) && !mapped(8),
       "MAP: and nothing of it is mapped");

    is(map_pages(4, 4), OK, "MAP: four pages");
    ok(map_pages(4, 4) == INVAL && map_pages(5, 1) == INVAL &&
       map_pages(7, 4) == INVAL && map_pages(0, 5) == INVAL &&
       map_pages(0, 12) == INVAL, "MAP: overlaps of any kind: INVAL");
    ok(!mapped(3) && !mapped(8) && !mapped(0),
       "MAP: overlaps leave nothing mapped");
    is(unmap_pages(4, 4), OK, "MAP: nor do they change what there was");
    is(map(1, IOVA, ram, PAGE, WRITE), OK, "MAP: write only");
    is(map(1, IOVA + PAGE, ram, PAGE, READ), OK, "MAP: read only");

    device_start(device_features() & ~BIT(VIRTIO_IOMMU_F_MMIO), 64);
    attach(1, ep);
    is(map(1, IOVA, ram, PAGE, READ | VIRTIO_IOMMU_MAP_F_MMIO), INVAL,
       "MAP: the MMIO flag without the feature: INVAL");
}

/* The examples (1) to (7) of 5.13.6.6, with units of @unit pages. */
static void unmap_examples(unsigned int unit)
{
#define map_u(at, n)    map_pages((at) * unit, (n) * unit)
#define unmap_u(at, n)  unmap_pages((at) * unit, (n) * unit)
    fresh(1);
    is(unmap_u(0, 5), OK, "UNMAP: (1) nothing there: OK");
    map_u(0, 10);
    is(unmap_u(0, 10), OK, "UNMAP: (2) a mapping: OK");
    ok(!mapped(0) && !mapped(9 * unit), "UNMAP: (2) it is gone");
    map_u(0, 5);
    map_u(5, 5);
    is(unmap_u(0, 10), OK, "UNMAP: (3) two mappings: OK");
    ok(!mapped(0) && !mapped(5 * unit), "UNMAP: (3) both are gone");
    map_u(0, 10);
    is(unmap_u(0, 5), RANGE, "UNMAP: (4) a part: RANGE");
    ok(mapped(0) && mapped(4 * unit) && mapped(5 * unit),
       "UNMAP: (4) nothing is removed");
    is(unmap_u(5, 5), RANGE, "UNMAP: (4) the other part: RANGE");
    is(unmap_u(2, 2), RANGE, "UNMAP: (4) the middle: RANGE");
    ok(mapped(0) && mapped(9 * unit), "UNMAP: (4) still nothing is removed");
    unmap_u(0, 10);
    map_u(0, 5);
    map_u(5, 5);
    is(unmap_u(0, 5), OK, "UNMAP: (5) one of two: OK");
    ok(!mapped(0) && mapped(5 * unit), "UNMAP: (5) just that one is gone");
    unmap_u(5, 5);
    map_u(0, 5);
    is(unmap_u(0, 10), OK, "UNMAP: (6) more than there is: OK");
    ok(!mapped(0), "UNMAP: (6) it is gone");
    map_u(0, 5);
    map_u(10, 5);
    is(unmap_u(0, 15), OK, "UNMAP: (7) two with a hole: OK");
    ok(!mapped(0) && !mapped(10 * unit), "UNMAP: (7) both are gone");

    map_u(0, 2);
    map_u(4, 2);
    map_u(8, 2);
    is(unmap_u(0, 9), RANGE, "UNMAP: splits the last of three: RANGE");
    is(unmap_u(1, 9), RANGE, "UNMAP: splits the first of three: RANGE");
    ok(mapped(0) && mapped(4 * unit) && mapped(8 * unit),
       "UNMAP: none of the three is removed");
#undef map_u
#undef unmap_u
}

static void unmap_rules(void)
{
    struct virtio_iommu_req_unmap r = {
        .head.type = VIRTIO_IOMMU_T_UNMAP,
        .domain = 1,
        .virt_start = IOVA,
        .virt_end = IOVA + PAGE - 1,
        .reserved = { 1, 0, 0, 0 },
    };
    int rc;

    unmap_examples(1);
    unmap_examples(2);

    fresh(1);
    is(unmap(UNUSED, IOVA, PAGE), NOENT, "UNMAP: no domain: NOENT");
    ok(unmap_range(1, IOVA + PAGE, IOVA) > OK,
       "UNMAP: end before start: an error");
    map_pages(0, 1);
    map_pages(17, 2);
    is(unmap_range(1, 0, CONFIG(input_range.end)), OK,
       "UNMAP: the whole input range");
    ok(!mapped(0) && !mapped(17), "UNMAP: and all is gone");
    map_pages(0, 1);
    is(unmap_range(1, 0, ~0UL), OK, "UNMAP: 0 to the end of 2^64");
    ok(!mapped(0), "UNMAP: and all is gone");
    is(unmap_range(1, ~0UL - PAGE + 1, ~0UL), OK,
       "UNMAP: beyond the input range: OK, there is nothing");
    map_pages(0, 1);
    rc = request_status(&r, OUT(r));
    ok(rc == OK || rc == INVAL, "UNMAP: reserved not 0: OK or INVAL");
    unmap_pages(0, 1);

    map_pages(0, 2);
    is(unmap_range(1, IOVA + 0x800, IOVA + 2 * PAGE - 1), RANGE,
       "UNMAP: from inside a page of a mapping: RANGE");
    is(unmap_range(1, IOVA, IOVA + 2 * PAGE - 2), RANGE,
       "UNMAP: up to inside a page of a mapping: RANGE");
    ok(mapped(0) && mapped(1), "UNMAP: nothing is removed");
}

/* Walk the properties: a length that fits, regions that don't overlap. */
static void properties(const uint8_t *p, unsigned int size)
{
    struct virtio_iommu_probe_resv_mem seen[16];
    unsigned int at = 0, n = 0, msi = 0, i;
    bool good = true, zero = true;

    while ( at + 4 <= size )
    {
        const struct virtio_iommu_probe_property *h = (void *)(p + at);
        unsigned int type = h->type & VIRTIO_IOMMU_PROBE_T_MASK;
        const struct virtio_iommu_probe_resv_mem *m = (void *)h;

        if ( type == VIRTIO_IOMMU_PROBE_T_NONE )
            break;
        good &= at + 4 + h->length <= size;
        if ( !good )
            break;
        if ( type == VIRTIO_IOMMU_PROBE_T_RESV_MEM )
        {
            good &= h->length == sizeof(*m) - 4 && m->start <= m->end &&
                    !(m->reserved[0] | m->reserved[1] | m->reserved[2]);
            for ( i = 0; i < n; i++ )
                good &= m->end < seen[i].start || seen[i].end < m->start;
            msi += m->subtype == VIRTIO_IOMMU_RESV_MEM_T_MSI;
            if ( n < ARRAY_SIZE(seen) )
                seen[n++] = *m;
        }
        at += 4 + h->length;
    }
    for ( i = at; i < size; i++ )
        zero &= !p[i];
    ok(good, "PROBE: properties are well-formed and don't overlap");
    ok(msi <= 1, "PROBE: at most one MSI region");
    ok(zero, "PROBE: the rest of the buffer is 0");

    attach(1, ep);
    for ( i = 0, good = true; i < n; i++ )
    {
        uint64_t start = seen[i].start & -PAGE;

        good &= map(1, start, ram, PAGE, READ) > OK;
        print("# reserved: %#lx to %#lx, subtype %u\n",
              (uint64_t)seen[i].start, (uint64_t)seen[i].end, seen[i].subtype);
    }
    ok(good, "PROBE: MAP over reserved memory is refused (%u regions)", n);
    detach(1, ep);
}

static void probe_rules(void)
{
    static uint8_t props[PAGE];
    struct virtio_iommu_req_probe *r = memory(PAGE, PAGE);
    static const uint8_t none[28];
    uint8_t in[32];
    unsigned int size = CONFIG(probe_size);
    uint32_t len;
    int status;

    device_restart();
    is(probe(ep, props), OK, "PROBE: an endpoint");
    properties(props, size);
    is(probe(NOBODY, props), NOENT, "PROBE: no such endpoint: NOENT");

    r->head.type = VIRTIO_IOMMU_T_PROBE;
    r->endpoint = ep;
    memset(r->reserved, 0xff, sizeof(r->reserved));
    request(r, sizeof(*r), props, size + 4, &len);
    is(props[size], OK, "PROBE: reserved is ignored");

    memset(in, 0xee, sizeof(in));
    request(r, sizeof(*r), in, sizeof(in), &len);
    is(in[sizeof(in) - 4], INVAL, "PROBE: no room for probe_size: INVAL");
    /* Type 0 ends the list, and what the length covers has been written. */
    ok(len == sizeof(in) && !memcmp(in, none, sizeof(none)),
       "PROBE: then no property is written");

    device_start(device_features() & ~BIT(VIRTIO_IOMMU_F_PROBE), 64);
    is(probe_bytes(ep, &status), 0, "PROBE: without the feature: length 0");
    is(status, 0xee, "PROBE: and nothing is written");
}

void conf_requests(void)
{
    ep = edu[0].endpoint;
    ep2 = edu[1].endpoint;
    ram = memory(32 * PAGE, PAGE);
    general();
    attach_rules();
    detach_rules();
    map_rules();
    unmap_rules();
    probe_rules();
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
