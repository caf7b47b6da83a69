/* SPDX-License-Identifier: GPL-2.0-only */
/* Split virtqueues: virtio 1.2, 2.7. */

#include "conformance.h"

#define OUT_LEN (sizeof(harmless.r) - sizeof(struct virtio_iommu_req_tail))
#define IN_LEN  sizeof(struct virtio_iommu_req_tail)
#define N_BYTES (OUT_LEN + IN_LEN)

#define F_NEXT  VRING_DESC_F_NEXT
#define F_WRITE VRING_DESC_F_WRITE
#define F_TABLE VRING_DESC_F_INDIRECT

static void prepare(void)
{
    prepare_harmless(0);
}

/* Post @head; the answer is right and the used entry says so. */
static bool answered(uint16_t head)
{
    const struct vring_used_elem *e;

    queue_add(&requestq, head);
    queue_kick(&requestq);
    if ( queue_wait(&requestq, 1) )
        return false;
    e = &requestq.used->ring[(requestq.used_idx - 1) & (requestq.num - 1)];

    return e->id == head && e->len == IN_LEN && harmless_answered();
}

/* One descriptor for each byte of the harmless request, from @d[0]. */
static void by_bytes(struct vring_desc *d, unsigned int first)
{
    unsigned int i;

    for ( i = 0; i < N_BYTES; i++ )
    {
        desc_set(d, i, (uint8_t *)&harmless.r + i, 1,
                 (i < OUT_LEN ? 0 : F_WRITE) |
                 (i == N_BYTES - 1 ? 0 : F_NEXT));
        d[i].next = first + i + 1;
    }
}

static void framing(void)
{
    struct vring_desc *d = requestq.desc;
    unsigned int i;

    device_restart();
    prepare();
    ok(answered(0), "ring: two descriptors");

    prepare();
    by_bytes(d, 0);
    ok(answered(0), "ring: one descriptor for each byte");

    /* The same, all over the table. */
    prepare();
    by_bytes(d, 0);
    for ( i = N_BYTES; i-- > 1; )
    {
        unsigned int to = (i * 37 + 5) % 64;

        /* 37 is odd: different i, different places; below 24 is in use. */
        if ( to < N_BYTES )
            continue;
        d[to] = d[i];
        d[i - 1].next = to;
    }
    ok(answered(0), "ring: descriptors in any order");

    prepare();
    desc_set(d, 0, &harmless.r, 1, F_NEXT);
    desc_set(d, 1, (uint8_t *)&harmless.r + 1, OUT_LEN - 1, F_NEXT);
    desc_set(d, 2, &harmless.r.tail, 1, F_WRITE | F_NEXT);
    desc_set(d, 3, (uint8_t *)&harmless.r.tail + 1, IN_LEN - 1, F_WRITE);
    ok(answered(0), "ring: head and tail cut");
}

static void crossing(void)
{
    uint8_t *pages = memory(4 * PAGE, PAGE), *p = pages + PAGE - 10,
            *t = pages + 3 * PAGE - 2;

    prepare();
    memcpy(p, &harmless.r, OUT_LEN);
    memset(t - 4, 0x55, 12);
    desc_set(requestq.desc, 0, p, OUT_LEN, F_NEXT);
    desc_set(requestq.desc, 1, t, IN_LEN, F_WRITE);
    queue_add(&requestq, 0);
    queue_kick(&requestq);
    is(queue_wait(&requestq, 1), 0, "ring: buffers over page boundaries");
    is(t[0], VIRTIO_IOMMU_S_NOENT, "ring: their answer");
    ok(!memcmp(p, &harmless.r, OUT_LEN),
       "ring: readable buffers are not written");
    ok(t[-1] == 0x55 && t[IN_LEN] == 0x55,
       "ring: nothing around the writable buffer is written");
}

static void unchanged(void)
{
    static struct vring_desc copy[64];
    unsigned int i;

    device_restart();
    for ( i = 0; i < 64; i++ )
        desc_set(requestq.desc, i, (void *)(i * 0x111000UL), i, i & 3);
    post_harmless(6);
    memcpy(copy, requestq.desc, sizeof(copy));
    queue_kick(&requestq);
    queue_wait(&requestq, 1);
    ok(!memcmp(copy, requestq.desc, sizeof(copy)),
       "ring: the descriptor table is not written");
}

static void indirect(void)
{
    struct vring_desc *table = memory(2 * PAGE, PAGE), *d = requestq.desc;

    device_restart();
    prepare();
    by_bytes(table, 0);
    desc_set(d, 3, table, N_BYTES * 16, F_TABLE);
    ok(answered(3), "indirect: a table");

    prepare();
    desc_set(d, 3, table, N_BYTES * 16, F_TABLE | F_WRITE);
    ok(answered(3), "indirect: WRITE is ignored where it refers to a table");

    prepare();
    table += (PAGE / 16) - 7;
    by_bytes(table, 0);
    desc_set(d, 3, table, N_BYTES * 16, F_TABLE);
    ok(answered(3), "indirect: a table over a page boundary");

    /* Readable part in the ring, the rest in a table. */
    prepare();
    desc_set(d, 0, &harmless.r, 8, F_NEXT);
    desc_set(d, 1, (uint8_t *)&harmless.r + 8, OUT_LEN - 8, F_NEXT);
    desc_set(d, 2, table, 16, F_TABLE);
    desc_set(table, 0, &harmless.r.tail, IN_LEN, F_WRITE);
    ok(answered(0), "indirect: a table after normal descriptors");

    requestq.num = 1;
    device_start(device_features(), 1);
    prepare();
    by_bytes(table, 0);
    desc_set(d, 0, table, N_BYTES * 16, F_TABLE);
    ok(answered(0), "indirect: in a queue of one entry");
    prepare();
    desc_set(d, 0, table, N_BYTES * 16, F_TABLE);
    ok(answered(0), "indirect: and again");
}

static void sizes(void)
{
    unsigned int max, num;
    bool good = true;

    reg_write(VIRTIO_MMIO_QUEUE_SEL, 0);
    max = min(reg_read(VIRTIO_MMIO_QUEUE_NUM_MAX), QUEUE_MAX);
    for ( num = 4; num <= max; num *= 2 )
    {
        unsigned int i;

        good &= device_start(device_features(), num);
        for ( i = 0; i < num + 3; i++ )
            good &= is_alive();
    }
    ok(good, "ring: all sizes from 4 to %u", max);
}

/* Unknown requests: cheap, and an answer with length 0. */
static void wrap(void)
{
    static const struct virtio_iommu_req_head unknown = { .type = 0x7f };
    unsigned int done = 0, i;
    bool good = true;

    device_start(device_features(), 128);
    while ( good && done < 0x10000 + 256 )
    {
        for ( i = 0; i < 128; i++ )
        {
            desc_set(requestq.desc, i, &unknown, sizeof(unknown), 0);
            queue_add(&requestq, i);
        }
        queue_kick(&requestq);
        good &= !queue_wait(&requestq, 128);
        done += 128;
    }
    ok(good && is_alive(), "ring: the indexes wrap at 65536");
}

static void batch(void)
{
    bool seen[64] = {}, once = true;
    unsigned int i;

    device_restart();
    for ( i = 0; i < 32; i++ )
        post_harmless(i * 2);
    queue_kick(&requestq);
    is(queue_wait(&requestq, 32), 0, "ring: 32 chains for one kick");
    for ( i = 0; i < 32; i++ )
    {
        uint32_t id = requestq.used->ring[i].id;

        once &= id < 64 && !(id & 1) && !seen[id];
        seen[id & 63] = true;
    }
    ok(once, "ring: each is used once");
    sleep_us(20000);
    is(ACCESS(requestq.used->idx), 32, "ring: and no more");
}

/* Interrupts that one request caused. */
static unsigned int caused(void)
{
    unsigned int before = ACCESS(viommu_interrupts);

    if ( !is_alive() )
        return 1000;
    sleep_us(1000);
    reg_write(VIRTIO_MMIO_INTERRUPT_ACK, ~0U);

    return ACCESS(viommu_interrupts) - before;
}

static void suppression(void)
{
    struct vring_avail *a = requestq.avail;
    uint64_t f = device_features();
    uint16_t *avail_event;

    device_start(f & ~BIT(VIRTIO_RING_F_EVENT_IDX), 64);
    a->flags = 0;
    a->ring[64] = 0x4000;
    is(caused(), 1, "notify: without EVENT_IDX, flags 0: an interrupt");
    ACCESS(a->flags) = VRING_AVAIL_F_NO_INTERRUPT;
    a->ring[64] = requestq.used_idx;
    is(caused(), 0, "notify: flags 1: none");
    ok(requestq.used->flags <= 1, "notify: used flags are 0 or 1");

    device_start(f, 64);
    ACCESS(a->ring[64]) = requestq.used_idx;
    a->flags = VRING_AVAIL_F_NO_INTERRUPT;
    is(caused(), 1, "notify: with EVENT_IDX flags are ignored");
    ACCESS(a->ring[64]) = requestq.used_idx + 1;
    is(caused(), 0, "notify: used_event not reached: none");
    is(caused(), 1, "notify: used_event reached");
    is(caused(), 0, "notify: and passed");
    is(requestq.used->flags, 0, "notify: used flags are 0 with EVENT_IDX");
    avail_event = (uint16_t *)&requestq.used->ring[64];
    is(ACCESS(*avail_event), requestq.avail_idx,
       "notify: an idle device wants a kick for the next chain");

    queue_kick(&requestq);
    queue_kick(&requestq);
    queue_kick(&eventq);
    reg_write(VIRTIO_MMIO_QUEUE_NOTIFY, 2);
    reg_write(VIRTIO_MMIO_QUEUE_NOTIFY, ~0U);
    ok(is_alive(), "notify: needless kicks do no harm");
}

/* A chain that is against the rules comes back empty, and nothing else. */
static void refused(uint16_t head, const char *what)
{
    const struct vring_used_elem *e;
    unsigned int before = requestq.used_idx;
    int rc;

    queue_add(&requestq, head);
    queue_kick(&requestq);
    rc = queue_wait(&requestq, 1);
    e = &requestq.used->ring[before & (requestq.num - 1)];
    ok(!rc && e->id == head && !e->len &&
       harmless.r.tail.status == 0xee && is_alive(),
       "malformed: %s", what);
    if ( rc )
        device_restart();
}

static void malformed(void)
{
    struct vring_desc *table = memory(PAGE, PAGE), *d = requestq.desc;

    device_restart();

    prepare();
    desc_set(d, 0, &harmless.r, OUT_LEN, F_NEXT);
    d[0].next = 0;
    refused(0, "a chain of one that is a loop");

    prepare();
    desc_set(d, 0, &harmless.r, OUT_LEN, F_NEXT);
    desc_set(d, 1, &harmless.r.tail, IN_LEN, F_WRITE | F_NEXT);
    d[1].next = 0;
    refused(0, "a loop over readable and writable");

    prepare();
    desc_set(d, 0, &harmless.r, OUT_LEN, F_NEXT);
    d[0].next = 64;
    refused(0, "next is outside the table");

    prepare();
    desc_set(d, 0, &harmless.r, OUT_LEN, F_NEXT);
    d[0].next = 0xffff;
    refused(0, "next is 65535");

    prepare();
    desc_set(d, 0, &harmless.r.tail, IN_LEN, F_WRITE | F_NEXT);
    desc_set(d, 1, &harmless.r, OUT_LEN, 0);
    refused(0, "readable after writable");

    prepare();
    desc_set(d, 0, (void *)BIT(47), OUT_LEN, F_NEXT);
    refused(0, "readable, but no memory");

    prepare();
    desc_set(d, 0, (void *)(~0UL - 7), OUT_LEN, F_NEXT);
    refused(0, "an address that wraps");

    prepare();
    desc_set(d, 0, (void *)tree.viommu.base, OUT_LEN, F_NEXT);
    refused(0, "readable, but registers");

    prepare();
    desc_set(d, 0, table, 16, F_TABLE);
    desc_set(table, 0, table, 16, F_TABLE);
    refused(0, "a table in a table");

    prepare();
    desc_set(d, 0, table, 0, F_TABLE);
    refused(0, "a table of 0 bytes");

    prepare();
    by_bytes(table, 0);
    desc_set(d, 0, table, N_BYTES * 16 + 8, F_TABLE);
    refused(0, "a table of no whole descriptors");

    prepare();
    desc_set(d, 0, table, ~0xfU, F_TABLE);
    refused(0, "a table of 4 GiB");

    prepare();
    desc_set(d, 0, (void *)BIT(47), N_BYTES * 16, F_TABLE);
    refused(0, "a table that isn't in memory");

    prepare();
    by_bytes(table, 0);
    table[5].next = N_BYTES;
    desc_set(d, 0, table, N_BYTES * 16, F_TABLE);
    refused(0, "next is outside an indirect table");

    prepare();
    by_bytes(table, 0);
    table[5].next = 2;
    desc_set(d, 0, table, N_BYTES * 16, F_TABLE);
    refused(0, "a loop in a table");

    prepare();
    desc_set(d, 0, table, 16, F_TABLE | F_NEXT);
    desc_set(d, 1, &harmless.r.tail, IN_LEN, F_WRITE);
    refused(0, "INDIRECT with NEXT");

    prepare();
    desc_set(d, 0, &harmless.r, OUT_LEN, 0);
    refused(0, "no room for the status");

    prepare();
    desc_set(d, 0, &harmless.r.tail, IN_LEN, F_WRITE);
    refused(0, "nothing readable");

    device_start(device_features() & ~BIT(VIRTIO_RING_F_INDIRECT_DESC), 64);
    prepare();
    by_bytes(table, 0);
    desc_set(d, 0, table, N_BYTES * 16, F_TABLE);
    refused(0, "a table without INDIRECT_DESC");
}

/* Nothing can be answered when the ring itself is wrong. */
static void broken(uint16_t head, uint16_t jump, const char *what)
{
    device_restart();
    requestq.avail->ring[requestq.avail_idx & 63] = head;
    mb();
    ACCESS(requestq.avail->idx) = requestq.avail_idx + jump;
    queue_kick(&requestq);
    is(queue_wait(&requestq, 1), BROKEN, "malformed: %s: needs a reset", what);
    device_restart();
    ok(is_alive(), "malformed: works after the reset");
}

void conf_ring(void)
{
    framing();
    crossing();
    unchanged();
    indirect();
    sizes();
    wrap();
    batch();
    suppression();
    malformed();
    broken(64, 1, "a head outside the table");
    broken(0xffff, 1, "head 65535");
    broken(0, 65, "more chains than the ring has");
    broken(0, 0xffff, "an index that goes back");
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
