/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Every rule for devices that the standard has and a driver can see; each
 * check is one rule.  Where a device may choose, what this one chose is held
 * to, and said in docs/.
 */

#include "conformance.h"

#define NOBODY  0xfffffff0U     /* no endpoint has this id */

struct harmless harmless;

static void harmless_set(void)
{
    harmless.r = (struct virtio_iommu_req_detach){
        .head.type = VIRTIO_IOMMU_T_DETACH,
        .domain = 1,
        .endpoint = NOBODY,
        .tail = { 0xee, { 0xee, 0xee, 0xee } },
    };
}

#define HARMLESS_OUT \
    (sizeof(harmless.r) - sizeof(struct virtio_iommu_req_tail))

void prepare_harmless(uint16_t head)
{
    harmless_set();
    desc_set(requestq.desc, head, &harmless.r, HARMLESS_OUT,
             VRING_DESC_F_NEXT);
    desc_set(requestq.desc, head + 1, &harmless.r.tail,
             sizeof(harmless.r.tail), VRING_DESC_F_WRITE);
}

void post_harmless(uint16_t head)
{
    prepare_harmless(head);
    queue_add(&requestq, head);
}

bool harmless_answered(void)
{
    const struct virtio_iommu_req_tail *t = &harmless.r.tail;

    return t->status == VIRTIO_IOMMU_S_NOENT && !t->reserved[0] &&
           !t->reserved[1] && !t->reserved[2];
}

bool is_alive(void)
{
    const struct vring_used_elem *e;

    post_harmless(2);
    queue_kick(&requestq);
    if ( queue_wait(&requestq, 1) )
        return false;
    e = &requestq.used->ring[(requestq.used_idx - 1) & (requestq.num - 1)];

    return e->id == 2 && e->len == sizeof(harmless.r.tail) &&
           harmless_answered();
}

void interrupt_wanted(bool yes)
{
    requestq.avail->flags = yes ? 0 : VRING_AVAIL_F_NO_INTERRUPT;
    requestq.avail->ring[requestq.num] = requestq.used_idx - !yes;
    mb();
}

int probe_bytes(uint32_t endpoint, int *status)
{
    static uint8_t in[PAGE];
    const struct virtio_iommu_req_probe r = {
        .head.type = VIRTIO_IOMMU_T_PROBE,
        .endpoint = endpoint,
    };
    unsigned int size = CONFIG(probe_size);
    uint32_t len;
    int rc;

    in[size] = 0xee;
    rc = request(&r, sizeof(r), in, size + sizeof(struct virtio_iommu_req_tail),
                 &len);
    if ( status )
        *status = in[size];

    return rc ? rc : (int)len;
}

static void run(void)
{
    if ( !tree.viommu.size )
        bail("the device tree has no virtio-iommu");
    pci_init();
    if ( nr_edu < 2 )
        bail("this suite needs two edu devices, there are %u", nr_edu);
    queues_alloc();
    conf_transport();
    conf_ring();
    conf_requests();
    ok(device_reset(), "reset at the end");
}

const struct suite suite_conformance = { "conformance", run };

/*
 * Local variables:
 * mode: C
 * c-file-style: "BSD"
 * c-basic-offset: 4
 * tab-width: 4
 * indent-tabs-mode: nil
 * End:
 */
