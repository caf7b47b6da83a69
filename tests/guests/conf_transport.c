/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Registers: virtio 1.2, 4.2.2 (MMIO), 2.1 (status), 2.2 (features), 5.13.4
 * (configuration).
 */

#include "conformance.h"

#define KNOWN                                                           \
    (BIT(VIRTIO_F_VERSION_1) | BIT(VIRTIO_RING_F_INDIRECT_DESC) |       \
     BIT(VIRTIO_RING_F_EVENT_IDX) |                                     \
     BIT(VIRTIO_IOMMU_F_INPUT_RANGE) | BIT(VIRTIO_IOMMU_F_DOMAIN_RANGE) | \
     BIT(VIRTIO_IOMMU_F_MAP_UNMAP) | BIT(VIRTIO_IOMMU_F_PROBE) |        \
     BIT(VIRTIO_IOMMU_F_MMIO) | BIT(VIRTIO_IOMMU_F_BYPASS_CONFIG))

static void identity(void)
{
    static const unsigned int fixed[] = {
        VIRTIO_MMIO_MAGIC_VALUE, VIRTIO_MMIO_VERSION, VIRTIO_MMIO_DEVICE_ID,
        VIRTIO_MMIO_VENDOR_ID, VIRTIO_MMIO_QUEUE_NUM_MAX,
        VIRTIO_MMIO_INTERRUPT_STATUS, VIRTIO_MMIO_CONFIG_GENERATION,
    };
    unsigned int i;
    bool same = true;

    is(reg_read(VIRTIO_MMIO_MAGIC_VALUE), 0x74726976, "transport: magic");
    is(reg_read(VIRTIO_MMIO_VERSION), 2, "transport: version 2");
    is(reg_read(VIRTIO_MMIO_DEVICE_ID), VIRTIO_ID_IOMMU,
       "transport: device id");

    for ( i = 0; i < ARRAY_SIZE(fixed); i++ )
    {
        uint32_t before = reg_read(fixed[i]);

        reg_write(fixed[i], ~before);
        same &= reg_read(fixed[i]) == before;
    }
    ok(same, "transport: read-only registers don't change when written");
    is(reg_read(VIRTIO_MMIO_CONFIG_GENERATION),
       reg_read(VIRTIO_MMIO_CONFIG_GENERATION),
       "transport: the generation is steady while nothing changes");

    reg_write(0x0ac, 5);        /* SHMSel */
    ok(reg_read(0x0b0) == ~0U && reg_read(0x0b4) == ~0U,
       "transport: a shared memory region that isn't there has length ~0");
}

static void widths(void)
{
    static const unsigned int sizes[] = { 1, 2, 8 };
    unsigned int i, reg;

    for ( i = 0; i < ARRAY_SIZE(sizes); i++ )
        for ( reg = 0; reg < VIRTIO_MMIO_CONFIG; reg += sizes[i] )
            mmio_read(tree.viommu.base + reg, sizes[i]);
    for ( i = 0; i < ARRAY_SIZE(sizes); i++ )
        for ( reg = 0; reg < VIRTIO_MMIO_CONFIG; reg += sizes[i] )
            mmio_write(tree.viommu.base + reg, ~0UL, sizes[i]);
    is(reg_read(VIRTIO_MMIO_MAGIC_VALUE), 0x74726976,
       "transport: accesses of other widths do no harm");
    ok(device_reset(), "transport: reset after them");
}

static void features(void)
{
    uint64_t offered = device_features();
    static const uint32_t beyond[] = { 2, 3, 4, 0x7fffffff, ~0U };
    unsigned int i;
    bool zero = true, good = true;

    ok(offered & BIT(VIRTIO_F_VERSION_1), "features: VERSION_1 is offered");
    ok(offered & BIT(VIRTIO_IOMMU_F_MAP_UNMAP),
       "features: MAP_UNMAP is offered");
    ok(!(offered & BIT(VIRTIO_IOMMU_F_BYPASS)),
       "features: the old BYPASS is not offered");
    is(offered & ~KNOWN, 0, "features: none that this guest doesn't know");
    for ( i = 0; i < ARRAY_SIZE(beyond); i++ )
    {
        reg_write(VIRTIO_MMIO_DEVICE_FEATURES_SEL, beyond[i]);
        zero &= !reg_read(VIRTIO_MMIO_DEVICE_FEATURES);
    }
    ok(zero, "features: words beyond the second are 0");

    ok(!device_start(offered & ~BIT(VIRTIO_F_VERSION_1), 64),
       "features: refused without VERSION_1");
    ok(!device_start(offered | BIT(VIRTIO_IOMMU_F_BYPASS), 64),
       "features: refused with an old bit that was not offered");
    ok(!device_start(offered | BIT(40), 64),
       "features: refused with an unknown bit of the second word");
    ok(device_start(BIT(VIRTIO_F_VERSION_1), 64),
       "features: VERSION_1 alone is enough");
    for ( i = 0; i < 64; i++ )
        if ( offered & BIT(i) )
        {
            good &= device_start(BIT(VIRTIO_F_VERSION_1) | BIT(i), 64);
            good &= is_alive();
            good &= device_start(offered & ~(BIT(i) &
                                             ~BIT(VIRTIO_F_VERSION_1)), 64);
            good &= is_alive();
        }
    ok(good, "features: any one with VERSION_1, and any one left out");

    device_start(BIT(VIRTIO_F_VERSION_1), 64);
    driver_features(offered);
    is(probe_bytes(edu[0].endpoint, NULL), 0,
       "features: not to be changed once agreed on");
}

static void write_status(uint32_t s)
{
    reg_write(VIRTIO_MMIO_STATUS, s);
}

#define S_ACK   VIRTIO_CONFIG_S_ACKNOWLEDGE
#define S_DRV   VIRTIO_CONFIG_S_DRIVER
#define S_FEAT  VIRTIO_CONFIG_S_FEATURES_OK
#define S_OK    VIRTIO_CONFIG_S_DRIVER_OK
#define S_RESET VIRTIO_CONFIG_S_NEEDS_RESET

static void status(void)
{
    ok(device_reset(), "status: 0 after reset");
    write_status(S_ACK);
    is(reg_read(VIRTIO_MMIO_STATUS), S_ACK, "status: ACKNOWLEDGE");
    write_status(S_ACK | S_DRV);
    is(reg_read(VIRTIO_MMIO_STATUS), S_ACK | S_DRV, "status: DRIVER");
    driver_features(BIT(VIRTIO_F_VERSION_1));
    write_status(S_ACK | S_DRV | S_FEAT);
    is(reg_read(VIRTIO_MMIO_STATUS), S_ACK | S_DRV | S_FEAT,
       "status: FEATURES_OK");

    requestq.num = 64;
    queue_enable(&requestq);
    post_harmless(0);
    queue_kick(&requestq);
    sleep_us(20000);
    is(ACCESS(requestq.used->idx), 0,
       "status: no buffer is used before DRIVER_OK");
    write_status(S_ACK | S_DRV | S_FEAT | S_OK);
    queue_kick(&requestq);
    is(queue_wait(&requestq, 1), 0, "status: it is used after DRIVER_OK");

    device_restart();
    post_harmless(0);
    write_status(VIRTIO_CONFIG_S_FAILED | 0xf);
    ok(device_reset(), "status: reset after FAILED");
    device_restart();
    ok(is_alive(), "status: and it works again");
}

static void reset(void)
{
    unsigned int i;
    bool ready = false;

    device_restart();
    interrupt_wanted(true);
    is_alive();
    sleep_us(1000);
    ok(reg_read(VIRTIO_MMIO_INTERRUPT_STATUS) & VIRTIO_MMIO_INT_VRING,
       "reset: (an interrupt is pending before it)");
    ok(device_reset(), "reset: status gets 0");
    is(reg_read(VIRTIO_MMIO_INTERRUPT_STATUS), 0,
       "reset: InterruptStatus is 0");
    for ( i = 0; i < 2; i++ )
    {
        reg_write(VIRTIO_MMIO_QUEUE_SEL, i);
        ready |= reg_read(VIRTIO_MMIO_QUEUE_READY);
    }
    ok(!ready, "reset: no queue is ready");
    for ( i = 0; i < 100; i++ )
        if ( !device_start(device_features(), 64) || !is_alive() )
            break;
    is(i, 100, "reset: 100 times start, use, reset");

    attach(1, edu[0].endpoint);
    map(1, 0x100000, memory(PAGE, PAGE), PAGE, READ);
    device_restart();
    is(map(1, 0x200000, memory(PAGE, PAGE), PAGE, READ),
       VIRTIO_IOMMU_S_NOENT, "reset: domains are gone");
    is(attach(1, edu[0].endpoint), VIRTIO_IOMMU_S_OK,
       "reset: endpoints can be attached again");
    is(map(1, 0x100000, memory(PAGE, PAGE), PAGE, READ), VIRTIO_IOMMU_S_OK,
       "reset: mappings are gone");
    detach(1, edu[0].endpoint);
}

static bool queue_refused(unsigned int num, uint64_t desc, uint64_t avail,
                          uint64_t used)
{
    static const unsigned int low[] = {
        VIRTIO_MMIO_QUEUE_DESC_LOW, VIRTIO_MMIO_QUEUE_AVAIL_LOW,
        VIRTIO_MMIO_QUEUE_USED_LOW,
    };
    const uint64_t addr[] = { desc, avail, used };
    unsigned int i;

    reg_write(VIRTIO_MMIO_QUEUE_SEL, 0);
    reg_write(VIRTIO_MMIO_QUEUE_READY, 0);
    reg_write(VIRTIO_MMIO_QUEUE_NUM, num);
    for ( i = 0; i < 3; i++ )
    {
        reg_write(low[i], addr[i]);
        reg_write(low[i] + 4, addr[i] >> 32);
    }
    reg_write(VIRTIO_MMIO_QUEUE_READY, 1);

    return !reg_read(VIRTIO_MMIO_QUEUE_READY);
}

static void queues(void)
{
    static const uint32_t absent[] = { 2, 3, 100, 0xffff, 0x10000, ~0U };
    const uint64_t d = (uint64_t)requestq.desc, a = (uint64_t)requestq.avail,
                   u = (uint64_t)requestq.used;
    uint32_t max;
    unsigned int i;
    bool none = true, refused = true;

    device_reset();
    for ( i = 0; i < 2; i++ )
    {
        reg_write(VIRTIO_MMIO_QUEUE_SEL, i);
        max = reg_read(VIRTIO_MMIO_QUEUE_NUM_MAX);
        ok(max && !(max & (max - 1)), "queues: %u has a size, %u", i, max);
    }
    for ( i = 0; i < ARRAY_SIZE(absent); i++ )
    {
        reg_write(VIRTIO_MMIO_QUEUE_SEL, absent[i]);
        none &= !reg_read(VIRTIO_MMIO_QUEUE_NUM_MAX) &&
                !reg_read(VIRTIO_MMIO_QUEUE_READY);
        reg_write(VIRTIO_MMIO_QUEUE_NUM, 16);
        reg_write(VIRTIO_MMIO_QUEUE_READY, 1);
        none &= !reg_read(VIRTIO_MMIO_QUEUE_READY);
    }
    ok(none, "queues: others have size 0 and don't get ready");

    reg_write(VIRTIO_MMIO_QUEUE_SEL, 0);
    max = reg_read(VIRTIO_MMIO_QUEUE_NUM_MAX);
    {
        const uint32_t sizes[] = { 0, 3, 6, max - 1, max * 2, 0x8000, 0x10000,
                                   0x80000000, ~0U };

        for ( i = 0; i < ARRAY_SIZE(sizes); i++ )
            refused &= queue_refused(sizes[i], d, a, u);
    }
    ok(refused, "queues: sizes of 0, over the maximum, no power of 2 refused");
    ok(queue_refused(16, d + 8, a, u) && queue_refused(16, d, a + 1, u) &&
       queue_refused(16, d, a, u + 2), "queues: unaligned areas refused");
    ok(queue_refused(16, ~0xfffUL, a, u) &&
       queue_refused(16, d, a | BIT(60), u) &&
       queue_refused(16, d, a, 0) && queue_refused(16, d, a, BIT(47)),
       "queues: areas outside memory refused");
    ok(queue_refused(16, d, a, tree.viommu.base) &&
       queue_refused(16, d, tree.gicd.base, u),
       "queues: areas in device registers refused");
    ok(!queue_refused(16, d, a, u), "queues: (the control is accepted)");
    reg_write(VIRTIO_MMIO_QUEUE_READY, 0);
    is(reg_read(VIRTIO_MMIO_QUEUE_READY), 0,
       "queues: QueueReady reads 0 after 0 was written");

    device_restart();
    is_alive();
    reg_write(VIRTIO_MMIO_QUEUE_SEL, 0);
    reg_write(VIRTIO_MMIO_QUEUE_READY, 0);
    post_harmless(0);
    queue_kick(&requestq);
    sleep_us(20000);
    is(ACCESS(requestq.used->idx), requestq.used_idx,
       "queues: one that isn't ready is not accessed");
    ok(queue_enable(&requestq) && is_alive(),
       "queues: enabled again, it starts from index 0");
}

static void interrupts(void)
{
    unsigned int before;

    device_restart();
    is(reg_read(VIRTIO_MMIO_INTERRUPT_STATUS), 0,
       "interrupts: none pending at the start");
    before = ACCESS(viommu_interrupts);
    interrupt_wanted(true);
    is_alive();
    sleep_us(1000);
    is(ACCESS(viommu_interrupts) - before, 1,
       "interrupts: one for a used buffer");
    is(reg_read(VIRTIO_MMIO_INTERRUPT_STATUS), VIRTIO_MMIO_INT_VRING,
       "interrupts: InterruptStatus says why");
    reg_write(VIRTIO_MMIO_INTERRUPT_ACK, VIRTIO_MMIO_INT_CONFIG);
    is(reg_read(VIRTIO_MMIO_INTERRUPT_STATUS), VIRTIO_MMIO_INT_VRING,
       "interrupts: stays until it is acknowledged");
    reg_write(VIRTIO_MMIO_INTERRUPT_ACK, VIRTIO_MMIO_INT_VRING);
    is(reg_read(VIRTIO_MMIO_INTERRUPT_STATUS), 0, "interrupts: acknowledged");

    before = ACCESS(viommu_interrupts);
    requestq.avail->ring[0] = requestq.num;     /* no such descriptor */
    requestq.avail->ring[1] = requestq.num;
    ACCESS(requestq.avail->idx) = requestq.avail_idx + 1;
    queue_kick(&requestq);
    sleep_us(1000);
    ok(reg_read(VIRTIO_MMIO_STATUS) & S_RESET,
       "interrupts: (a broken ring needs a reset)");
    ok(reg_read(VIRTIO_MMIO_INTERRUPT_STATUS) & VIRTIO_MMIO_INT_CONFIG,
       "interrupts: NEEDS_RESET is a configuration change");
    is(ACCESS(viommu_interrupts) - before, 1, "interrupts: and interrupts");
    device_restart();
    ok(is_alive(), "interrupts: a reset repairs it");
}

static void config(void)
{
    const unsigned int size = sizeof(struct virtio_iommu_config);
    uint8_t bytes[size], again[size];
    unsigned int i, w;
    bool same = true;
    uint64_t last;

    for ( i = 0; i < size; i++ )
        bytes[i] = config_read(i, 1);
    for ( w = 2; w <= 8; w *= 2 )
    {
        for ( i = 0; i < size; i += w )
        {
            uint64_t v = config_read(i, w);

            memcpy(again + i, &v, w);
        }
        same &= !memcmp(bytes, again, size);
    }
    ok(same, "config: the same in pieces of 1, 2, 4 and 8 bytes");

    ok(CONFIG(page_size_mask) & PAGE, "config: pages of 4K");
    is(CONFIG(page_size_mask) & (PAGE - 1), 0, "config: and none smaller");
    last = CONFIG(input_range.end);
    ok(CONFIG(input_range.start) < last && !((last + 1) & (PAGE - 1)),
       "config: input range, up to %#lx", last);
    ok(CONFIG(domain_range.start) < CONFIG(domain_range.end),
       "config: domain range, up to %lu", CONFIG(domain_range.end));
    ok(CONFIG(probe_size) && !(CONFIG(probe_size) & 3),
       "config: probe size %lu", CONFIG(probe_size));
    ok(CONFIG(bypass) <= 1, "config: bypass is 0 or 1");
    ok(!(bytes[37] | bytes[38] | bytes[39]), "config: the padding is 0");

    for ( w = 1; w <= 8; w *= 2 )
        for ( i = 0; i < offsetof(struct virtio_iommu_config, bypass);
              i += w )
            config_write(i, ~0UL, w);
    for ( i = 0; i < size; i++ )
        again[i] = config_read(i, 1);
    ok(!memcmp(bytes, again, size), "config: read-only but for bypass");
    for ( i = size; i < 0x100; i++ )
        config_read(i, 1);
    ok(true, "config: reads beyond it do no harm");
}

static void write_bypass(unsigned int val)
{
    config_write(offsetof(struct virtio_iommu_config, bypass), val, 1);
}

static void bypass(void)
{
    uint64_t boot = CONFIG(bypass);

    device_restart();
    write_bypass(!boot);
    is(CONFIG(bypass), !boot, "bypass: written and read back");
    write_bypass(2);
    is(CONFIG(bypass), !boot, "bypass: 2 is no value");
    write_bypass(0xff);
    is(CONFIG(bypass), !boot, "bypass: 255 is no value");
    device_restart();
    is(CONFIG(bypass), !boot, "bypass: survives a reset of the device");
    write_bypass(boot);
    is(CONFIG(bypass), boot, "bypass: and back");

    device_start(device_features() & ~BIT(VIRTIO_IOMMU_F_BYPASS_CONFIG), 64);
    write_bypass(!boot);
    is(CONFIG(bypass), boot, "bypass: read-only without the feature");
    device_reset();
    write_bypass(!boot);
    is(CONFIG(bypass), boot, "bypass: read-only before features are agreed on");
    device_restart();
}

void conf_transport(void)
{
    identity();
    widths();
    features();
    status();
    reset();
    queues();
    interrupts();
    config();
    bypass();
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
