/* SPDX-License-Identifier: GPL-2.0-only */
/* Garbage, mostly with a structure that gets it past the first check. */

#include "hostile.h"

uint8_t *arena;
struct queue hostile_q[2];
enum hostile_level hostile_level;

#define MAX_RING    64      /* entries of rings that hostile_start() makes */
/* In the arena: requests of 128 bytes, tables of 128 bytes. */
#define REQUESTS_AT ((ARENA_PAGES - 3) * PAGE)
#define TABLES_AT   ((ARENA_PAGES - 1) * PAGE)

uint64_t pick_number(struct rng *r)
{
    static const uint64_t edge[] = {
        0, 1, 2, 3, 4, 7, 8, 15, 16, 63, 64, 65, 255, 256, 257, 1023, 1024,
        4095, 4096, 0x7fff, 0x8000, 0xffff, 0x10000, 0x1fffff, 0x200000,
        0x7fffffff, 0x80000000, 0xffffffff, 0x100000000, BIT(44) - 1, BIT(44),
        BIT(48), BIT(63), ~0UL - 4095, ~0UL,
    };

    switch ( rng_below(r, 4) )
    {
    case 0:
        return rng_next(r);
    case 1:
        return rng_next(r) >> rng_below(r, 64);
    case 2:
        return edge[rng_below(r, ARRAY_SIZE(edge))] + rng_below(r, 3) - 1;
    default:
        return edge[rng_below(r, ARRAY_SIZE(edge))];
    }
}

static uint64_t in_arena(struct rng *r, unsigned int align)
{
    return (uint64_t)arena + (rng_below(r, ARENA_PAGES * PAGE) & -align);
}

uint64_t pick_address(struct rng *r)
{
    switch ( rng_below(r, 16) )
    {
    case 0:
        return 0;
    case 1:
        return tree.viommu.base + rng_below(r, 0x200);
    case 2:
        return tree.gicd.base;
    case 3:
        return rng_next(r) | BIT(60);       /* nothing is there */
    case 4:
        return ~0UL - rng_below(r, 64);
    case 5:
        return BIT(47) + rng_below(r, PAGE);
    case 6:
        return (uint64_t)arena + ARENA_PAGES * PAGE - 1 - rng_below(r, 32);
    case 7:
        return in_arena(r, PAGE) + PAGE - 1 - rng_below(r, 32);
    case 8:
        return in_arena(r, 1);
    case 9:
        /* The rings themselves. */
        return (uint64_t)hostile_q[0].desc + rng_below(r, 256);
    case 10:
        return (uint64_t)hostile_q[0].used + rng_below(r, 64);
    default:
        return in_arena(r, 16);
    }
}

/* For the device to write to. */
static uint64_t pick_target(struct rng *r)
{
    return hostile_level < LEVEL_CHAINS ? in_arena(r, 1) : pick_address(r);
}

static void random_register(struct rng *r)
{
    unsigned int size = 1U << rng_below(r, 4);
    unsigned int reg = rng_below(r, 0x200) & -size;

    if ( rng_below(r, 4) )
    {
        size = 4;
        reg = rng_below(r, 0x40) * 4;
    }
    if ( rng_below(r, 3) )
        mmio_read(tree.viommu.base + reg, size);
    else if ( reg != VIRTIO_MMIO_STATUS || !rng_below(r, 8) )
        mmio_write(tree.viommu.base + reg, pick_number(r), size);
}

static void place(struct rng *r, struct queue *q)
{
    bool wild = hostile_level == LEVEL_ALL && !rng_below(r, 8);

    q->num = wild ? pick_number(r) : 1U << rng_below(r, 7);
    q->desc = (void *)(wild ? pick_address(r) : in_arena(r, 16));
    q->avail = (void *)(wild ? pick_address(r) : in_arena(r, 2));
    q->used = (void *)(wild ? pick_address(r) : in_arena(r, 4));
    q->avail_idx = 0;
}

static void set_queue(const struct queue *q)
{
    const uint64_t addr[] = { (uint64_t)q->desc, (uint64_t)q->avail,
                              (uint64_t)q->used };
    static const unsigned int low[] = {
        VIRTIO_MMIO_QUEUE_DESC_LOW, VIRTIO_MMIO_QUEUE_AVAIL_LOW,
        VIRTIO_MMIO_QUEUE_USED_LOW,
    };
    unsigned int i;

    reg_write(VIRTIO_MMIO_QUEUE_SEL, q->index);
    reg_write(VIRTIO_MMIO_QUEUE_NUM, q->num);
    for ( i = 0; i < 3; i++ )
    {
        reg_write(low[i], addr[i]);
        reg_write(low[i] + 4, addr[i] >> 32);
    }
    reg_write(VIRTIO_MMIO_QUEUE_READY, 1);
}

/* Chains since the last kick; the device has taken all before it. */
static unsigned int waiting;

/* Ours to write to?  Rings may have been placed outside the arena. */
static bool usable(const struct queue *q)
{
    uint64_t first = (uint64_t)arena, last = first + REQUESTS_AT - PAGE;
    uint64_t d = (uint64_t)q->desc, a = (uint64_t)q->avail;

    return q->num && q->num <= MAX_RING && d >= first && d < last &&
           a >= first && a < last;
}

void hostile_start(struct rng *r)
{
    unsigned int i;
    uint64_t f = device_features();

    device_reset();
    if ( !rng_below(r, 4) )
        f &= rng_next(r) | BIT(VIRTIO_F_VERSION_1);
    reg_write(VIRTIO_MMIO_STATUS, 3);
    driver_features(f);
    reg_write(VIRTIO_MMIO_STATUS, 0xb);
    for ( i = 0; i < 2; i++ )
    {
        hostile_q[i].index = i;
        place(r, &hostile_q[i]);
        if ( usable(&hostile_q[i]) )
            memset(hostile_q[i].avail, 0, 4);
        set_queue(&hostile_q[i]);
    }
    reg_write(VIRTIO_MMIO_STATUS, 0xf);
    waiting = 0;
}

static uint32_t pick_endpoint(struct rng *r)
{
    return rng_below(r, 6) ? edu[rng_below(r, nr_edu)].endpoint
                           : pick_number(r);
}

static uint32_t pick_domain(struct rng *r)
{
    return rng_below(r, 16) ? 1 + rng_below(r, 2) : pick_number(r);
}

/* Few addresses, so that requests meet. */
static uint64_t pick_iova(struct rng *r)
{
    switch ( rng_below(r, 8) )
    {
    case 0:
        return pick_number(r);
    case 1:
        return rng_below(r, 4) * GB;
    case 2:
        return rng_below(r, 8) * 2 * MB;
    default:
        return 0x40000000 + rng_below(r, 256) * 2 * PAGE;
    }
}

static uint64_t pick_size(struct rng *r)
{
    switch ( rng_below(r, 64) )
    {
    case 0:
        return 16 * MB;
    case 1: case 2:
        return pick_number(r);
    case 3: case 4:
        return 2 * MB;
    case 5: case 6: case 7: case 8:
        return PAGE << rng_below(r, 8);
    default:
        return PAGE << rng_below(r, 2);
    }
}

static uint64_t pick_phys(struct rng *r)
{
    if ( !rng_below(r, 8) )
        return tree.memory[0].base + rng_below(r, 16) * 2 * MB;

    return rng_below(r, 4) ? in_arena(r, PAGE) : pick_address(r);
}

/* A request of 72 bytes, any of them, at @at. */
static unsigned int make_request(struct rng *r, void *at)
{
    union {
        struct virtio_iommu_req_head head;
        struct virtio_iommu_req_attach attach;
        struct virtio_iommu_req_detach detach;
        struct virtio_iommu_req_map map;
        struct virtio_iommu_req_unmap unmap;
        struct virtio_iommu_req_probe probe;
        uint8_t bytes[80];
    } u = {};
    static const uint8_t often[] = {
        VIRTIO_IOMMU_T_ATTACH, VIRTIO_IOMMU_T_ATTACH, VIRTIO_IOMMU_T_DETACH,
        VIRTIO_IOMMU_T_PROBE, VIRTIO_IOMMU_T_MAP, VIRTIO_IOMMU_T_MAP,
        VIRTIO_IOMMU_T_MAP, VIRTIO_IOMMU_T_MAP, VIRTIO_IOMMU_T_UNMAP,
        VIRTIO_IOMMU_T_UNMAP, VIRTIO_IOMMU_T_UNMAP,
    };
    unsigned int len;

    u.head.type = rng_below(r, 32) ? often[rng_below(r, sizeof(often))]
                                   : rng_next(r);
    switch ( u.head.type )
    {
    case VIRTIO_IOMMU_T_ATTACH:
        u.attach.domain = pick_domain(r);
        u.attach.endpoint = pick_endpoint(r);
        u.attach.flags = rng_below(r, 4) ? 0 : rng_below(r, 3);
        len = 20;
        break;
    case VIRTIO_IOMMU_T_DETACH:
        u.detach.domain = pick_domain(r);
        u.detach.endpoint = pick_endpoint(r);
        len = 20;
        break;
    case VIRTIO_IOMMU_T_MAP:
        u.map.domain = pick_domain(r);
        u.map.virt_start = pick_iova(r);
        u.map.virt_end = u.map.virt_start + pick_size(r) - 1;
        u.map.phys_start = pick_phys(r);
        u.map.flags = rng_below(r, 16) ? rng_below(r, 4) : pick_number(r);
        len = 36;
        break;
    case VIRTIO_IOMMU_T_UNMAP:
        u.unmap.domain = pick_domain(r);
        u.unmap.virt_start = pick_iova(r);
        u.unmap.virt_end = u.unmap.virt_start + pick_size(r) - 1;
        if ( !rng_below(r, 8) )
        {
            u.unmap.virt_start = 0;
            u.unmap.virt_end = rng_below(r, 4) ? ~0UL : pick_number(r);
        }
        len = 28;
        break;
    case VIRTIO_IOMMU_T_PROBE:
        u.probe.endpoint = pick_endpoint(r);
        len = 72;
        break;
    default:
        len = rng_below(r, 80);
    }
    if ( !rng_below(r, 32) )
        u.bytes[rng_below(r, sizeof(u))] = rng_next(r);
    memcpy(at, &u, sizeof(u));

    return rng_below(r, 32) ? len : rng_below(r, 100);
}

static void kick(struct rng *r)
{
    reg_write(VIRTIO_MMIO_QUEUE_NOTIFY,
              rng_below(r, 16) ? rng_below(r, 2) : pick_number(r));
}

static void kick_requests(void)
{
    reg_write(VIRTIO_MMIO_QUEUE_NOTIFY, 0);
    waiting = 0;
}

static void publish(struct queue *q, uint16_t head, uint16_t jump)
{
    if ( !q->index )
        waiting++;
    q->avail->ring[q->avail_idx & (q->num - 1)] = head;
    mb();
    q->avail_idx += jump;
    ACCESS(q->avail->idx) = q->avail_idx;
}

/* A request as a driver would send it, perhaps cut in pieces. */
static void post_request(struct rng *r)
{
    struct queue *q = &hostile_q[0];
    unsigned int n = q->num, slot = rng_below(r, MAX_RING);
    uint8_t *at = arena + REQUESTS_AT + slot * 128;
    struct vring_desc *d = q->desc;
    uint16_t head;
    unsigned int len, cut;

    if ( !usable(q) || (n & (n - 1)) )
        return;
    len = make_request(r, at);
    head = rng_below(r, n);
    /* In order, and no more than the ring has room for. */
    if ( hostile_level < LEVEL_CHAINS )
    {
        if ( (waiting + 1) * 3 > n )
            kick_requests();
        head = waiting * 3;
    }
    if ( n < 4 || !rng_below(r, 4) )
    {
        struct vring_desc *t = (void *)(arena + TABLES_AT + (slot & 31) * 128);

        desc_set(t, 0, at, len, VRING_DESC_F_NEXT);
        desc_set(t, 1, (void *)pick_target(r), rng_below(r, 8) ? 4 : 600,
                 VRING_DESC_F_WRITE);
        desc_set(d, head, t, 32, VRING_DESC_F_INDIRECT);
    }
    else
    {
        uint16_t second = (head + 1) % n, third = (head + 2) % n;

        cut = rng_below(r, len + 1);
        desc_set(d, head, at, cut, VRING_DESC_F_NEXT);
        d[head].next = second;
        desc_set(d, second, at + cut, len - cut, VRING_DESC_F_NEXT);
        d[second].next = third;
        desc_set(d, third, (void *)pick_target(r),
                 rng_below(r, 4) ? 4 : rng_below(r, 700),
                 VRING_DESC_F_WRITE);
    }
    publish(q, head, 1);
}

static void random_desc(struct rng *r, struct vring_desc *d, unsigned int n)
{
    struct vring_desc v = {
        .addr = pick_address(r),
        .len = rng_below(r, 4) ? rng_below(r, 256) : pick_number(r),
        .flags = rng_below(r, 16) ? rng_below(r, 8) : rng_next(r),
        .next = rng_below(r, 16) ? rng_below(r, n) : rng_next(r),
    };

    memcpy(d, &v, sizeof(v));
}

/* A chain of anything: loops, tables in tables, overlaps with the rings. */
static void post_garbage(struct rng *r)
{
    struct queue *q = &hostile_q[rng_below(r, 2)];
    unsigned int n = q->num, i, count;

    if ( !usable(q) || (n & (n - 1)) )
        return;
    count = 1 + rng_below(r, 8);
    for ( i = 0; i < count; i++ )
        random_desc(r, q->desc + rng_below(r, n), n);
    publish(q, rng_below(r, 32) ? rng_below(r, n) : rng_next(r),
            rng_below(r, 64) ? 1 : rng_next(r));
}

static void event_buffers(struct rng *r)
{
    struct queue *q = &hostile_q[1];

    if ( !usable(q) || (q->num & (q->num - 1)) )
        return;
    desc_set(q->desc, 0, (void *)pick_target(r), rng_below(r, 40),
             VRING_DESC_F_WRITE);
    publish(q, 0, 1);
    kick(r);
}

void hostile_case(struct rng *r)
{
    unsigned int i;
    /* The first of these are only for the worst. */
    unsigned int first = hostile_level == LEVEL_ALL ? 0 :
                         hostile_level == LEVEL_CHAINS ? 7 : 11;

    switch ( first + rng_below(r, 32 - first) )
    {
    case 0: case 1: case 2: case 3:
        random_register(r);
        break;
    case 4:
        hostile_start(r);
        break;
    case 5:
        reg_write(VIRTIO_MMIO_STATUS, rng_below(r, 4) ? 0xf : rng_next(r));
        break;
    case 6:
        reg_write(VIRTIO_MMIO_QUEUE_SEL, rng_below(r, 2));
        reg_write(VIRTIO_MMIO_QUEUE_READY, rng_below(r, 2));
        break;
    case 7: case 8: case 9: case 10:
        post_garbage(r);
        kick(r);
        break;
    case 11:
        config_write(offsetof(struct virtio_iommu_config, bypass),
                     rng_below(r, 3), 1);
        break;
    case 12:
        event_buffers(r);
        break;
    case 13:
        /* Only reads: it may reach all that is mapped. */
        i = rng_below(r, nr_edu);
        if ( !edu_busy(&edu[i]) )
            edu_start(&edu[i], false, pick_iova(r), 0, 8);
        break;
    case 14:
        if ( !rng_below(r, 8) )
            pci_announce(edu[rng_below(r, nr_edu)].rid, rng_below(r, 2));
        break;
    case 15: case 16: case 17:
        kick(r);
        break;
    case 18: case 19:
        for ( i = rng_below(r, MAX_RING); i; i-- )
            post_request(r);
        kick_requests();
        break;
    default:
        post_request(r);
        if ( rng_below(r, 2) )
            kick_requests();
    }
    /* Most garbage stops the device: on with it. */
    if ( reg_read(VIRTIO_MMIO_STATUS) != 0xf && rng_below(r, 2) )
        hostile_start(r);
}

void hostile_disturb(struct rng *r)
{
    /* A copy: CPU 0 moves the rings at any time. */
    const struct queue copy = hostile_q[rng_below(r, 8) == 7], *q = &copy;
    uint8_t *at;

    unsigned int kinds = hostile_level == LEVEL_ALL ? 16 :
                         hostile_level == LEVEL_CHAINS ? 12 :
                         hostile_level == LEVEL_RACES ? 9 : 2;

    switch ( rng_below(r, kinds) )
    {
    case 0:
        kick(r);
        break;
    case 1:
        mmio_read32(tree.viommu.base + rng_below(r, 0x40) * 4);
        break;
    case 2: case 3:
        /* Requests, while they are read. */
        make_request(r, arena + REQUESTS_AT + rng_below(r, 64) * 128);
        break;
    case 4:
        at = arena + TABLES_AT + rng_below(r, PAGE);
        ACCESS(*at) ^= 1U << rng_below(r, 8);
        break;
    case 5: case 6: case 7: case 8:
        if ( usable(q) )
            random_desc(r, q->desc + rng_below(r, q->num), q->num);
        break;
    case 9:
        if ( usable(q) )
            ACCESS(q->avail->idx) = ACCESS(q->avail->idx) + rng_below(r, 3);
        break;
    case 10: case 11:
        at = arena + rng_below(r, ARENA_PAGES * PAGE - 8);
        ACCESS(*at) ^= 1U << rng_below(r, 8);
        break;
    case 12:
        random_register(r);
        break;
    case 13:
        if ( !rng_below(r, 32) )
            reg_write(VIRTIO_MMIO_STATUS, rng_below(r, 2) ? 0 : 0xf);
        break;
    default:
        reg_write(VIRTIO_MMIO_QUEUE_SEL, rng_below(r, 2));
    }
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
