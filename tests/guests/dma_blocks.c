/* SPDX-License-Identifier: GPL-2.0-only */
/* Mappings that the driver enters as blocks of 2M and 1G. */

#include "dma.h"

/* @size at @at, backed by @base: a few places, split, unmap. */
static void block(const char *what, uint64_t at, uint8_t *base, uint64_t size)
{
    const uint64_t off[] = { 0, size / 2 + 0x18, size - 8 };
    uint64_t *word;
    unsigned int i;
    bool good = true;

    start_over();
    attach(1, ep_a->endpoint);
    is(map(1, at, base, size, RW), OK, "%s: map", what);
    for ( i = 0; i < ARRAY_SIZE(off); i++ )
        good &= dma_write(ep_a, at + off[i], (uint64_t *)(base + off[i]));
    ok(good, "%s: reached at its start, middle and end", what);
    word = (uint64_t *)base;
    ok(!dma_write(ep_a, at + size, word) && !dma_write(ep_a, at - 8, word),
       "%s: but not beside it", what);

    is(unmap(1, at, size / 2), RANGE, "%s: the first half can't be unmapped",
       what);
    is(unmap(1, at + size / 2, size / 2), RANGE,
       "%s: nor the second half", what);
    is(unmap(1, at + PAGE, PAGE), RANGE, "%s: nor a page", what);
    for ( i = 0, good = true; i < ARRAY_SIZE(off); i++ )
        good &= dma_write(ep_a, at + off[i], (uint64_t *)(base + off[i]));
    ok(good, "%s: all of it is reached as before", what);

    /* A GiB takes longer than a transfer: all its pages are let go. */
    if ( size < GB / 2 )
        in_flight(ep_a, at + off[1], (uint64_t *)(base + off[1]),
                  strict ? GAP_IN : GAP_AFTER);
    is(unmap(1, at, size), OK, "%s: unmap", what);
    if ( size < GB / 2 )
        ok(!in_flight_arrived(ep_a, (uint64_t *)(base + off[1])),
           "%s: not reached after it", what);
    if ( !strict )
        sleep_us(GAP_AFTER);
    for ( i = 0, good = true; i < ARRAY_SIZE(off); i++ )
        good &= !dma_write(ep_a, at + off[i], (uint64_t *)(base + off[i]));
    ok(good, "%s: not reached at any place", what);

    /* Pages where the block was. */
    is(map(1, at + 5 * PAGE, base, PAGE, RW), OK, "%s: a page in its place",
       what);
    ok(dma_write(ep_a, at + 5 * PAGE, word), "%s: that is reached", what);
    ok(!dma_write(ep_a, at, word), "%s: and nothing else", what);
    unmap(1, at + 5 * PAGE, PAGE);
    is(map(1, at, base, size, RW), OK, "%s: and the block again", what);
    ok(dma_write(ep_a, at + off[2], (uint64_t *)(base + off[2])),
       "%s: that is reached", what);
}

void dma_blocks(void)
{
    uint8_t *two = memory(4 * MB, 2 * MB), *one = memory(GB, GB);
    uint64_t at = iova & -GB;

    if ( !two )
        bail("no memory for blocks of 2M");
    block("2M", at + 2 * MB, two, 2 * MB);
    block("2M with pages around it", at + 3 * MB, two + MB, 2 * MB + 4 * PAGE);
    block("2M unaligned in memory", at + 2 * MB, two + PAGE, 2 * MB);
    block("4M", at + 4 * MB, two, 4 * MB);
    if ( !one )
        skip("no GiB of memory at a multiple of it", "1G");
    else
    {
        block("1G", at, one, GB);
        block("1G less a page", at + PAGE, one + PAGE, GB - PAGE);
        block("1G elsewhere in its GiB", at + 2 * MB, one, GB);
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
