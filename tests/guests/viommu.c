/* SPDX-License-Identifier: GPL-2.0-only */
/* The driver: see viommu.h. */

#include "viommu.h"

#define ALL_FEATURES                                                    \
    (BIT(VIRTIO_F_VERSION_1) | BIT(VIRTIO_RING_F_INDIRECT_DESC) |       \
     BIT(VIRTIO_RING_F_EVENT_IDX) | 0x7f)
#define TIMEOUT_US      5000000
#define POLL_US         20

struct queue requestq = { .index = 0 }, eventq = { .index = 1 };
unsigned int viommu_interrupts;
static struct virtio_iommu_fault *faults;

uint64_t device_features(void)
{
    uint64_t low;

    reg_write(VIRTIO_MMIO_DEVICE_FEATURES_SEL, 0);
    low = reg_read(VIRTIO_MMIO_DEVICE_FEATURES);
    reg_write(VIRTIO_MMIO_DEVICE_FEATURES_SEL, 1);

    return low | (uint64_t)reg_read(VIRTIO_MMIO_DEVICE_FEATURES) << 32;
}

void driver_features(uint64_t features)
{
    reg_write(VIRTIO_MMIO_DRIVER_FEATURES_SEL, 0);
    reg_write(VIRTIO_MMIO_DRIVER_FEATURES, features);
    reg_write(VIRTIO_MMIO_DRIVER_FEATURES_SEL, 1);
    reg_write(VIRTIO_MMIO_DRIVER_FEATURES, features >> 32);
}

bool device_reset(void)
{
    unsigned int i;

    reg_write(VIRTIO_MMIO_STATUS, 0);
    for ( i = 0; reg_read(VIRTIO_MMIO_STATUS); i++ )
    {
        if ( i == 1000 )
            return false;
        sleep_us(1000);
    }

    return true;
}

void queues_alloc(void)
{
    struct queue *q;

    for ( q = &requestq; ; q = &eventq )
    {
        q->desc = memory(QUEUE_MAX * sizeof(*q->desc), PAGE);
        q->avail = memory(PAGE, PAGE);
        q->used = memory(PAGE, PAGE);
        if ( q == &eventq )
            break;
    }
    faults = memory(PAGE, PAGE);
    irq_count(tree.viommu_intid, &viommu_interrupts);
}

static void set_address(unsigned int low, const void *p)
{
    reg_write(low, (uint64_t)p);
    reg_write(low + 4, (uint64_t)p >> 32);
}

bool queue_enable(struct queue *q)
{
    reg_write(VIRTIO_MMIO_QUEUE_SEL, q->index);
    reg_write(VIRTIO_MMIO_QUEUE_NUM, q->num);
    set_address(VIRTIO_MMIO_QUEUE_DESC_LOW, q->desc);
    set_address(VIRTIO_MMIO_QUEUE_AVAIL_LOW, q->avail);
    set_address(VIRTIO_MMIO_QUEUE_USED_LOW, q->used);
    memset(q->avail, 0, sizeof(*q->avail) + (q->num + 1) * 2);
    /* No interrupt unless a test asks for it. */
    q->avail->ring[q->num] = 0x8000;
    q->avail_idx = q->used_idx = 0;
    mb();
    reg_write(VIRTIO_MMIO_QUEUE_READY, 1);

    return reg_read(VIRTIO_MMIO_QUEUE_READY) == 1;
}

static void event_post(unsigned int i)
{
    memset(&faults[i], 0xff, sizeof(faults[i]));
    desc_set(eventq.desc, i, &faults[i], sizeof(faults[i]),
             VRING_DESC_F_WRITE);
    queue_add(&eventq, i);
}

bool device_start(uint64_t features, unsigned int num)
{
    unsigned int i;

    if ( !device_reset() )
        return false;
    reg_write(VIRTIO_MMIO_STATUS, VIRTIO_CONFIG_S_ACKNOWLEDGE);
    reg_write(VIRTIO_MMIO_STATUS, VIRTIO_CONFIG_S_ACKNOWLEDGE |
                                  VIRTIO_CONFIG_S_DRIVER);
    driver_features(features);
    reg_write(VIRTIO_MMIO_STATUS, VIRTIO_CONFIG_S_ACKNOWLEDGE |
                                  VIRTIO_CONFIG_S_DRIVER |
                                  VIRTIO_CONFIG_S_FEATURES_OK);
    if ( !(reg_read(VIRTIO_MMIO_STATUS) & VIRTIO_CONFIG_S_FEATURES_OK) )
        return false;

    requestq.num = num;
    eventq.num = EVENTS;
    if ( !queue_enable(&requestq) || !queue_enable(&eventq) )
        return false;
    for ( i = 0; i < EVENTS; i++ )
        event_post(i);
    reg_write(VIRTIO_MMIO_STATUS, VIRTIO_CONFIG_S_ACKNOWLEDGE |
                                  VIRTIO_CONFIG_S_DRIVER |
                                  VIRTIO_CONFIG_S_FEATURES_OK |
                                  VIRTIO_CONFIG_S_DRIVER_OK);
    queue_kick(&eventq);

    return true;
}

void device_restart(void)
{
    if ( !device_start(device_features() & ALL_FEATURES, 64) )
        bail("the device doesn't start, status %#x",
             reg_read(VIRTIO_MMIO_STATUS));
}

void desc_set(struct vring_desc *d, unsigned int i, const void *addr,
              uint32_t len, uint16_t flags)
{
    d[i] = (struct vring_desc){
        .addr = (uint64_t)addr,
        .len = len,
        .flags = flags,
        .next = i + 1,
    };
}

void queue_add(struct queue *q, uint16_t head)
{
    q->avail->ring[q->avail_idx & (q->num - 1)] = head;
    mb();
    ACCESS(q->avail->idx) = ++q->avail_idx;
    mb();
}

void queue_kick(const struct queue *q)
{
    mb();
    reg_write(VIRTIO_MMIO_QUEUE_NOTIFY, q->index);
}

int queue_wait(struct queue *q, unsigned int n)
{
    uint64_t start = now_us();
    uint16_t want = q->used_idx + n;

    while ( ACCESS(q->used->idx) != want )
    {
        if ( reg_read(VIRTIO_MMIO_STATUS) & VIRTIO_CONFIG_S_NEEDS_RESET )
            return BROKEN;
        if ( now_us() - start > TIMEOUT_US )
            return TIMED_OUT;
        sleep_us(now_us() - start < 1000 ? POLL_US : 1000);
    }
    mb();
    q->used_idx = want;

    return 0;
}

int request(const void *out, unsigned int out_len, void *in,
            unsigned int in_len, uint32_t *used_len)
{
    const struct vring_used_elem *e;
    int rc;

    desc_set(requestq.desc, 0, out, out_len, VRING_DESC_F_NEXT);
    desc_set(requestq.desc, 1, in, in_len, VRING_DESC_F_WRITE);
    queue_add(&requestq, 0);
    queue_kick(&requestq);
    rc = queue_wait(&requestq, 1);
    if ( rc )
        return rc;
    e = &requestq.used->ring[(requestq.used_idx - 1) & (requestq.num - 1)];
    if ( e->id )
        return BROKEN;
    *used_len = e->len;

    return 0;
}

int request_status(const void *out, unsigned int out_len)
{
    struct virtio_iommu_req_tail tail = { 0xee, { 0xee, 0xee, 0xee } };
    uint32_t len;
    int rc = request(out, out_len, &tail, sizeof(tail), &len);

    if ( rc )
        return rc;

    return len == sizeof(tail) ? tail.status : NOT_WRITTEN;
}

/* Sizes of the readable parts. */
#define OUT(r) (sizeof(r) - sizeof(struct virtio_iommu_req_tail))

int attach_flags(uint32_t domain, uint32_t endpoint, uint32_t flags)
{
    const struct virtio_iommu_req_attach r = {
        .head.type = VIRTIO_IOMMU_T_ATTACH,
        .domain = domain,
        .endpoint = endpoint,
        .flags = flags,
    };

    return request_status(&r, OUT(r));
}

int detach(uint32_t domain, uint32_t endpoint)
{
    const struct virtio_iommu_req_detach r = {
        .head.type = VIRTIO_IOMMU_T_DETACH,
        .domain = domain,
        .endpoint = endpoint,
    };

    return request_status(&r, OUT(r));
}

int map_range(uint32_t domain, uint64_t start, uint64_t end, uint64_t phys,
              uint32_t flags)
{
    const struct virtio_iommu_req_map r = {
        .head.type = VIRTIO_IOMMU_T_MAP,
        .domain = domain,
        .virt_start = start,
        .virt_end = end,
        .phys_start = phys,
        .flags = flags,
    };

    return request_status(&r, OUT(r));
}

int unmap_range(uint32_t domain, uint64_t start, uint64_t end)
{
    const struct virtio_iommu_req_unmap r = {
        .head.type = VIRTIO_IOMMU_T_UNMAP,
        .domain = domain,
        .virt_start = start,
        .virt_end = end,
    };

    return request_status(&r, OUT(r));
}

int probe(uint32_t endpoint, void *props)
{
    static uint8_t in[PAGE];
    const struct virtio_iommu_req_probe r = {
        .head.type = VIRTIO_IOMMU_T_PROBE,
        .endpoint = endpoint,
    };
    unsigned int size = CONFIG(probe_size);
    uint32_t len;
    int rc;

    memset(in, 0xee, sizeof(in));
    rc = request(&r, sizeof(r), in, size + sizeof(struct virtio_iommu_req_tail),
                 &len);
    if ( rc )
        return rc;
    memcpy(props, in, size);

    return len == size + sizeof(struct virtio_iommu_req_tail) ? in[size]
                                                              : NOT_WRITTEN;
}

bool event_get(struct virtio_iommu_fault *f, uint64_t us)
{
    uint64_t end = now_us() + us;
    const struct vring_used_elem *e;

    while ( ACCESS(eventq.used->idx) == eventq.used_idx )
    {
        if ( now_us() >= end )
            return false;
        sleep_us(POLL_US);
    }
    mb();
    e = &eventq.used->ring[eventq.used_idx++ & (eventq.num - 1)];
    if ( e->id >= EVENTS || e->len != sizeof(*f) )
        bail("event buffer %u with %u bytes", e->id, e->len);
    *f = faults[e->id];
    event_post(e->id);
    queue_kick(&eventq);

    return true;
}

void events_drop(void)
{
    struct virtio_iommu_fault f;

    while ( event_get(&f, 0) )
        ;
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
