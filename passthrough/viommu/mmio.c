/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Registers of the virtio-iommu device (virtio 1.2: 4.2.2 MMIO registers,
 * 2.1 status, 5.13.4 configuration).
 *
 * Nothing is worked on here: a kick or a reset is only noted, and done in
 * slices on the way out (request.c).  A wrong access is ignored or reads 0;
 * it never aborts the guest, whose kernel would die of its own probing.
 */

#include <xen/lib.h>
#include <xen/sched.h>
#include <xen/xmalloc.h>

#include <asm/io.h>
#include <asm/mmio.h>
#include <asm/vgic.h>

#include "viommu.h"

#define VIRTIO_MAGIC            0x74726976  /* "virt" */
#define VIRTIO_VERSION          2
#define VIOMMU_VENDOR           0x004e4558  /* "XEN" */

#define R_MAGIC                 0x000
#define R_VERSION               0x004
#define R_DEVICE_ID             0x008
#define R_VENDOR_ID             0x00c
#define R_DEVICE_FEATURES       0x010
#define R_DEVICE_FEATURES_SEL   0x014
#define R_DRIVER_FEATURES       0x020
#define R_DRIVER_FEATURES_SEL   0x024
#define R_QUEUE_SEL             0x030
#define R_QUEUE_NUM_MAX         0x034
#define R_QUEUE_NUM             0x038
#define R_QUEUE_READY           0x044
#define R_QUEUE_NOTIFY          0x050
#define R_INTERRUPT_STATUS      0x060
#define R_INTERRUPT_ACK         0x064
#define R_STATUS                0x070
#define R_QUEUE_DESC_LOW        0x080
#define R_QUEUE_DESC_HIGH       0x084
#define R_QUEUE_DRIVER_LOW      0x090
#define R_QUEUE_DRIVER_HIGH     0x094
#define R_QUEUE_DEVICE_LOW      0x0a0
#define R_QUEUE_DEVICE_HIGH     0x0a4
#define R_SHM_LEN_LOW           0x0b0
#define R_SHM_LEN_HIGH          0x0b4
#define R_SHM_BASE_LOW          0x0b8
#define R_SHM_BASE_HIGH         0x0bc
#define R_CONFIG_GENERATION     0x0fc
#define R_CONFIG                0x100

#define VIOMMU_INT_CONFIG       2U

#define BIT64(n)                (1UL << (n))
#define VIOMMU_FEATURES                                                 \
    (BIT64(VIRTIO_F_VERSION_1) | BIT64(VIRTIO_F_INDIRECT_DESC) |        \
     BIT64(VIRTIO_F_EVENT_IDX) | BIT64(VIOMMU_F_INPUT_RANGE) |          \
     BIT64(VIOMMU_F_DOMAIN_RANGE) | BIT64(VIOMMU_F_MAP_UNMAP) |         \
     BIT64(VIOMMU_F_PROBE) | BIT64(VIOMMU_F_MMIO) |                     \
     BIT64(VIOMMU_F_BYPASS_CONFIG))

/* What the driver may set: the other bits have no meaning or are ours. */
#define STATUS_WRITABLE                                                 \
    (VIRTIO_STATUS_ACKNOWLEDGE | VIRTIO_STATUS_DRIVER |                 \
     VIRTIO_STATUS_DRIVER_OK | VIRTIO_STATUS_FEATURES_OK |              \
     VIRTIO_STATUS_FAILED)

bool viommu_driver_ok(const struct viommu *v)
{
    return !v->resetting &&
           (v->status & (VIRTIO_STATUS_DRIVER_OK | VIRTIO_STATUS_NEEDS_RESET |
                         VIRTIO_STATUS_FAILED)) == VIRTIO_STATUS_DRIVER_OK;
}

void viommu_needs_reset(struct viommu *v, const char *why)
{
    ASSERT(spin_is_locked(&v->pd->lock));

    if ( v->status & VIRTIO_STATUS_NEEDS_RESET )
        return;

    v->status |= VIRTIO_STATUS_NEEDS_RESET;
    /* XENLOG_G_* is rate limited: a guest can reset and do it again. */
    printk(XENLOG_G_WARNING
           "pviommu: %pd: virtio-iommu stops until its driver resets it: %s\n",
           v->pd->d, why);

    /* Before DRIVER_OK the driver expects no interrupt (2.1.2). */
    if ( v->status & VIRTIO_STATUS_DRIVER_OK )
    {
        v->interrupt_status |= VIOMMU_INT_CONFIG;
        vgic_inject_irq(v->pd->d, NULL, v->virq, true);
    }
}

void viommu_reset_registers(struct viommu *v)
{
    unsigned int i;

    ASSERT(spin_is_locked(&v->pd->lock));

    for ( i = 0; i < VIOMMU_NR_QUEUES; i++ )
    {
        viommu_queue_disable(&v->q[i]);
        memset(&v->q[i], 0, sizeof(v->q[i]));
    }

    v->features_sel = v->driver_features_sel = v->queue_sel = 0;
    v->driver_features = 0;
    v->features_beyond = false;
    v->interrupt_status = 0;
    v->status = 0;
    v->resetting = false;
    /* pd->bypass survives a device reset (5.13.6.2). */
}

static struct viommu_queue *selected(struct viommu *v)
{
    return v->queue_sel < VIOMMU_NR_QUEUES ? &v->q[v->queue_sel] : NULL;
}

static uint32_t reg_read(struct viommu *v, unsigned int reg)
{
    const struct viommu_queue *q = selected(v);

    switch ( reg )
    {
    case R_MAGIC:
        return VIRTIO_MAGIC;

    case R_VERSION:
        return VIRTIO_VERSION;

    case R_DEVICE_ID:
        return VIRTIO_ID_IOMMU;

    case R_VENDOR_ID:
        return VIOMMU_VENDOR;

    case R_DEVICE_FEATURES:
        return v->features_sel < 2 ? VIOMMU_FEATURES >> (32 * v->features_sel)
                                   : 0;

    case R_QUEUE_NUM_MAX:
        return q ? VIOMMU_QUEUE_MAX : 0;

    case R_QUEUE_READY:
        return q && q->ready;

    case R_INTERRUPT_STATUS:
        return v->interrupt_status;

    case R_STATUS:
        return v->status;

    /* There is no shared memory region (4.2.2). */
    case R_SHM_LEN_LOW:
    case R_SHM_LEN_HIGH:
    case R_SHM_BASE_LOW:
    case R_SHM_BASE_HIGH:
        return ~0U;

    /* Only the driver itself changes the configuration. */
    case R_CONFIG_GENERATION:
        return 0;

    default:
        return 0;
    }
}

static void set_low(uint64_t *reg, uint32_t val)
{
    *reg = (*reg & ~(uint64_t)UINT32_MAX) | val;
}

static void set_high(uint64_t *reg, uint32_t val)
{
    *reg = (*reg & UINT32_MAX) | ((uint64_t)val << 32);
}

static void queue_ready_write(struct viommu *v, struct viommu_queue *q,
                              uint32_t val)
{
    int rc;

    if ( val > 1 || val == q->ready )
        return;

    if ( !val )
    {
        /*
         * From now on the buffers are the driver's again: what is in progress
         * must write neither there nor to the next ring.
         */
        if ( q == &v->q[VIOMMU_REQUESTQ] )
        {
            v->chain.in_len = v->chain.in_segs = 0;
            v->chain.head = VIOMMU_QUEUE_MAX;
        }
        viommu_queue_disable(q);
        return;
    }

    rc = viommu_queue_enable(v, q);
    if ( rc )
        printk(XENLOG_G_WARNING
               "pviommu: %pd: virtio-iommu queue %u refused (%d): %u entries, rings at %#"PRIx64" %#"PRIx64" %#"PRIx64"\n",
               v->pd->d, v->queue_sel, rc, q->num, q->desc_gpa, q->avail_gpa,
               q->used_gpa);
}

static void queue_write(struct viommu *v, unsigned int reg, uint32_t val)
{
    struct viommu_queue *q = selected(v);

    if ( !q )
        return;

    if ( reg == R_QUEUE_READY )
    {
        queue_ready_write(v, q, val);
        return;
    }

    /* The rings are mapped: what they were checked for must stay. */
    if ( q->ready )
        return;

    switch ( reg )
    {
    case R_QUEUE_NUM:
        q->num = val;
        break;

    case R_QUEUE_DESC_LOW:
        set_low(&q->desc_gpa, val);
        break;

    case R_QUEUE_DESC_HIGH:
        set_high(&q->desc_gpa, val);
        break;

    case R_QUEUE_DRIVER_LOW:
        set_low(&q->avail_gpa, val);
        break;

    case R_QUEUE_DRIVER_HIGH:
        set_high(&q->avail_gpa, val);
        break;

    case R_QUEUE_DEVICE_LOW:
        set_low(&q->used_gpa, val);
        break;

    case R_QUEUE_DEVICE_HIGH:
        set_high(&q->used_gpa, val);
        break;

    default:
        break; /* none of a queue's: reg_write() */
    }
}

static bool features_acceptable(const struct viommu *v)
{
    return viommu_has_feature(v, VIRTIO_F_VERSION_1) &&
           !(v->driver_features & ~VIOMMU_FEATURES) && !v->features_beyond;
}

static void status_write(struct viommu *v, uint32_t val)
{
    if ( !val )
    {
        /*
         * Without DRIVER_OK since the last reset no request was taken, so
         * there is nothing to detach.  Linux doesn't wait for a reset to
         * complete; this way its first one is immediate.
         */
        if ( !(v->status & VIRTIO_STATUS_DRIVER_OK) )
        {
            viommu_reset_registers(v);
            return;
        }

        v->resetting = true;
        pvi_work(v->pd);
        return;
    }

    /* A driver sets bits and clears none but by a reset (2.1.1). */
    val = (val & STATUS_WRITABLE) | v->status;

    if ( (val & ~v->status & VIRTIO_STATUS_FEATURES_OK) &&
         !features_acceptable(v) )
        val &= ~VIRTIO_STATUS_FEATURES_OK;

    /* A driver that hasn't agreed on features is one of before VERSION_1. */
    if ( !(val & VIRTIO_STATUS_FEATURES_OK) )
        val &= ~VIRTIO_STATUS_DRIVER_OK;

    v->status = val;
}

static void reg_write(struct viommu *v, unsigned int reg, uint32_t val)
{
    switch ( reg )
    {
    case R_DEVICE_FEATURES_SEL:
        v->features_sel = val;
        break;

    case R_DRIVER_FEATURES_SEL:
        v->driver_features_sel = val;
        break;

    case R_DRIVER_FEATURES:
        /* Agreed on: not to change under a running device. */
        if ( v->status & VIRTIO_STATUS_FEATURES_OK )
            break;
        if ( v->driver_features_sel == 0 )
            set_low(&v->driver_features, val);
        else if ( v->driver_features_sel == 1 )
            set_high(&v->driver_features, val);
        else if ( val )
            v->features_beyond = true;
        break;

    case R_QUEUE_SEL:
        v->queue_sel = val;
        break;

    case R_QUEUE_NUM:
    case R_QUEUE_READY:
    case R_QUEUE_DESC_LOW:
    case R_QUEUE_DESC_HIGH:
    case R_QUEUE_DRIVER_LOW:
    case R_QUEUE_DRIVER_HIGH:
    case R_QUEUE_DEVICE_LOW:
    case R_QUEUE_DEVICE_HIGH:
        queue_write(v, reg, val);
        break;

    case R_QUEUE_NOTIFY:
        v->pd->stats.kicks++;
        pvi_work(v->pd);
        break;

    case R_INTERRUPT_ACK:
        v->interrupt_status &= ~val;
        break;

    case R_STATUS:
        status_write(v, val);
        break;

    default:
        break; /* reserved, or read only */
    }
}

static uint64_t config_read(const struct viommu *v, unsigned int offset,
                            unsigned int size)
{
    const struct viommu_config cfg = {
        .page_size_mask = ~0xfffUL,
        .input_start = 0,
        .input_end = (1UL << pvi_ctx_bits()) - 1,
        .domain_start = 0,
        .domain_end = PVI_MAX_CONTEXTS - 1,
        .probe_size = VIOMMU_PROBE_SIZE,
        .bypass = v->pd->bypass,
    };
    uint64_t val = 0;

    /* An aligned access doesn't go beyond the end of whole 8 bytes. */
    BUILD_BUG_ON(sizeof(cfg) % 8);
    if ( offset < sizeof(cfg) )
        memcpy(&val, (const uint8_t *)&cfg + offset, size);

    return val;
}

static void config_write(struct viommu *v, unsigned int offset,
                         unsigned int size, uint64_t val)
{
    struct pvi_domain *pd = v->pd;
    bool old = pd->bypass;

    /* 4.2.2.2: a field is accessed with its own width. */
    if ( offset != offsetof(struct viommu_config, bypass) || size != 1 )
        return;

    val &= 0xff;
    if ( val > 1 || val == old ||
         !(v->status & VIRTIO_STATUS_FEATURES_OK) ||
         !viommu_has_feature(v, VIOMMU_F_BYPASS_CONFIG) )
        return;

    pd->bypass = val;
    if ( pvi_endpoints_refresh(pd) )
    {
        /* Don't claim what isn't so: some endpoint may still be reachable. */
        pd->bypass = old;
        viommu_needs_reset(v, "the bypass setting could not be changed");
    }
}

static int cf_check viommu_read(struct vcpu *vcpu, mmio_info_t *info,
                                register_t *r, void *priv)
{
    struct viommu *v = priv;
    unsigned int offset = info->gpa - v->base;
    unsigned int size = 1U << info->dabt.size;

    *r = 0;
    if ( offset & (size - 1) )
        return 1;

    pvi_lock(&v->pd->lock, PVI_LOCK_DOMAIN);
    if ( offset >= R_CONFIG )
        *r = config_read(v, offset - R_CONFIG, size);
    else if ( size == 4 )
        *r = reg_read(v, offset);
    pvi_unlock(&v->pd->lock, PVI_LOCK_DOMAIN);

    return 1;
}

static int cf_check viommu_write(struct vcpu *vcpu, mmio_info_t *info,
                                 register_t r, void *priv)
{
    struct viommu *v = priv;
    unsigned int offset = info->gpa - v->base;
    unsigned int size = 1U << info->dabt.size;

    if ( offset & (size - 1) )
        return 1;

    pvi_lock(&v->pd->lock, PVI_LOCK_DOMAIN);
    /* A driver must wait for status 0; what it sets earlier would be lost. */
    if ( !v->resetting )
    {
        if ( offset >= R_CONFIG )
            config_write(v, offset - R_CONFIG, size, r);
        else if ( size == 4 )
            reg_write(v, offset, r);
    }
    pvi_unlock(&v->pd->lock, PVI_LOCK_DOMAIN);

    return 1;
}

static const struct mmio_handler_ops viommu_mmio_ops = {
    .read = viommu_read,
    .write = viommu_write,
};

int viommu_init(struct pvi_domain *pd, paddr_t base, unsigned int virq)
{
    struct viommu *v;

    if ( pd->viommu )
        return -EEXIST;

    if ( !pd->ctx )
        pd->ctx = xzalloc_array(struct pvi_context *, PVI_MAX_CONTEXTS);
    if ( !pd->ctx )
        return -ENOMEM;

    v = xzalloc(struct viommu);
    if ( !v )
        return -ENOMEM;

    v->pd = pd;
    v->base = base;
    v->virq = virq;

    register_mmio_handler(pd->d, &viommu_mmio_ops, base, VIOMMU_MMIO_SIZE, v);
    pd->viommu = v;

    return 0;
}

void viommu_free(struct viommu *v)
{
    unsigned int i;

    if ( !v )
        return;

    /* No vCPU runs any more, and nobody else knows the device. */
    v->pd->viommu = NULL;
    for ( i = 0; i < VIOMMU_NR_QUEUES; i++ )
        viommu_queue_disable(&v->q[i]);
    xfree(v);
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
