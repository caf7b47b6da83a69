/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Registers: any sequence of reads and writes of any size, with slices of work
 * in between.  The guest's memory holds what looks like rings, so that queues
 * that happen to be enabled have something in them.
 *
 * Each access is 3 bytes and the value: kind, register, number of slices.
 */

#include "fuzz.h"

static const uint16_t reg[] = {
    0x000, 0x010, 0x014, 0x020, 0x024, 0x030, 0x034, 0x038, 0x044, 0x050,
    0x060, 0x064, 0x070, 0x080, 0x084, 0x090, 0x094, 0x0a0, 0x0a4, 0x0b0,
    0x0fc, 0x100, 0x108, 0x110, 0x118, 0x120, 0x124, 0x1fc,
};

static void rings(void)
{
    struct viommu_req_attach *r = gpa(0x4000);
    struct vring_desc *d = gpa(0x1000);
    uint16_t *a = gpa(0x2000);
    unsigned int i;

    r->type = VIOMMU_T_ATTACH;
    r->endpoint = 0x10;
    for ( i = 0; i < 16; i += 2 )
    {
        d[i] = (struct vring_desc){ 0x4000, sizeof(*r), VRING_DESC_F_NEXT,
                                    i + 1 };
        d[i + 1] = (struct vring_desc){ 0x5000, 4, VRING_DESC_F_WRITE };
        a[2 + i / 2] = i;
    }
    a[1] = 8;
}

static void one_access(void)
{
    uint8_t kind = take_bytes(1), r = take_bytes(1), slices = take_bytes(1);
    mmio_info_t info = {
        .dabt.size = kind & 8 ? kind >> 4 & 3 : 2,
        .gpa = 0x2000000 + (kind & 4 ? reg[r % ARRAY_SIZE(reg)] :
                            r << 1 | (kind >> 6 & 1)),
    };
    register_t x;

    if ( kind & 1 )
    {
        x = take_bytes(kind & 2 ? 1 : 4);
        check(fake_mmio_ops->write(&cpu, &info, x, fake_mmio_priv) == 1);
    }
    else
        check(fake_mmio_ops->read(&cpu, &info, &x, fake_mmio_priv) == 1);
    check(!fake_locks);
    if ( slices & 1 )
        work(1 + (slices >> 1 & 31));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t how;

    in = data;
    in_left = size;
    how = take_bytes(1);
    begin(how & 1, how & 2);
    if ( !(how & 4) )
    {
        /* From the beginning, as a driver finds it. */
        wr(0x70, 0);
        work(100);
    }
    rings();
    while ( in_left )
        one_access();
    work(20000);
    end();
    return 0;
}
