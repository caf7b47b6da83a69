/* SPDX-License-Identifier: GPL-2.0-only */
/* Strict on and off while devices work, for UNMAP and for what leaves the p2m. */

#include "foreign.h"

#define PAGES       4
#define ROUNDS      12

static domid_t dom;
static uint64_t *at, *view;

static void now_strict(bool on)
{
    int rc = set_strict(on);

    if ( rc || is_strict() != on )
        bail("strict can't be switched: %d", rc);
    strict = on;
}

/* Our own page by a request, or the foreign one by the p2m. */
enum what { OWN, FOREIGN, P2M, NR_WHATS };
static const char *const names[NR_WHATS] = { "UNMAP", "removal", "p2m removal" };

static uint64_t begin(enum what what, uint64_t **target)
{
    static uint64_t *own;
    int rc;

    if ( !own )
        own = page_new(1);
    way_begin(&ways[what == P2M]);
    *target = what == OWN ? own : view;
    if ( what == OWN )
        is(map(1, iova, own, PAGE, RW), OK, "(switch: MAP)");
    else
    {
        rc = foreign_map(at, dom, OTHER_GFN);
        if ( rc )
            bail("a foreign page can't be mapped: %d", rc);
        return way_open(&ways[what == P2M], at);
    }

    return iova;
}

static int end(enum what what)
{
    return what == OWN ? unmap(1, iova, PAGE) : foreign_unmap(at);
}

/* Both directions, with a transfer on its way at each. */
static void switched(enum what what)
{
    uint64_t *target, addr, flushes;

    /* What is lazy's own when strict begins is finished by then. */
    now_strict(false);
    addr = begin(what, &target);
    ok(dma_write(ep_a, addr, target), "switch: %s: reached", names[what]);
    settle();
    in_flight(ep_a, addr, target, GAP_IN);
    is(end(what), 0, "switch: %s: lazy", names[what]);
    ok(counter(XEN_PVIOMMU_CNT_pending), "switch: %s: pending", names[what]);
    flushes = counter(XEN_PVIOMMU_CNT_flush_switch);
    now_strict(true);
    is(counter(XEN_PVIOMMU_CNT_pending), 0, "switch: %s: on: not pending",
       names[what]);
    is(counter(XEN_PVIOMMU_CNT_flush_switch) - flushes, 1,
       "switch: %s: on: one flush by the switch", names[what]);
    ok(!in_flight_arrived(ep_a, target), "switch: %s: on: not reached",
       names[what]);

    /* Strict from the first removal on. */
    now_strict(false);
    addr = begin(what, &target);
    ok(dma_write(ep_a, addr, target), "switch: %s: reached again",
       names[what]);
    in_flight(ep_a, addr, target, GAP_IN);
    now_strict(true);
    is(end(what), 0, "switch: %s: strict", names[what]);
    ok(!in_flight_arrived(ep_a, target),
       "switch: %s: on before: not reached", names[what]);

    /* And lazy from the first on: stale within the window, not after it. */
    addr = begin(what, &target);
    ok(dma_write(ep_a, addr, target), "switch: %s: reached once more",
       names[what]);
    in_flight(ep_a, addr, target, GAP_IN);
    now_strict(false);
    is(end(what), 0, "switch: %s: lazy again", names[what]);
    ok(in_flight_arrived(ep_a, target),
       "switch: %s: off: the old page within the window", names[what]);
    settle();
    addr = begin(what, &target);
    ok(dma_write(ep_a, addr, target), "switch: %s: reached at last",
       names[what]);
    in_flight(ep_a, addr, target, GAP_AFTER);
    end(what);
    ok(!in_flight_arrived(ep_a, target), "switch: %s: off: not after it",
       names[what]);
}

struct toggle { bool stop; unsigned int times, bad; };

static void toggle(void *arg)
{
    struct toggle *t = arg;

    while ( !ACCESS(t->stop) )
    {
        t->bad += set_strict(t->times++ & 1) != 0;
        sleep_us(500 + t->times % 7 * 300);
    }
}

/* Another CPU switches all the time while this one maps, removes and waits. */
static void under_load(void)
{
    struct toggle t = { .stop = false };
    unsigned int i, n, bad_map = 0, missed = 0, stale = 0, wrong = 0;
    uint64_t *old = page_new(1), *new = page_new(1), *more = page_new(64);

    if ( nr_cpus < 2 )
        bail("switching under load needs two CPUs");
    way_begin(&ways[0]);
    cpu_run(1, toggle, &t);
    for ( i = 0; i < ROUNDS; i++ )
    {
        bad_map += foreign_map(at, dom, OTHER_GFN) ||
                   map(1, iova, at, PAGE, RW) ||
                   map(1, iova + PAGE, old, PAGE, RW);
        missed += !dma_write(ep_a, iova, view);
        missed += !dma_write(ep_a, iova + PAGE, old);

        /* The same address for another page: never the old one. */
        ACCESS(*old) = 0;
        in_flight(ep_a, iova + PAGE, new, GAP_AFTER);
        bad_map += unmap(1, iova + PAGE, PAGE) ||
                   map(1, iova + PAGE, new, PAGE, RW);
        /* Many, for a queue that isn't empty at a switch. */
        for ( n = 0; n < 64; n++ )
            bad_map += map(1, iova + (n + 8) * PAGE, more, PAGE, RW) ||
                       unmap(1, iova + (n + 8) * PAGE, PAGE);
        while ( edu_busy(ep_a) )
            sleep_us(100);
        missed += ACCESS(*new) != PATTERN;
        wrong += ACCESS(*old) != 0;

        /* And the foreign one is gone after the longest delay. */
        in_flight(ep_a, iova, view, GAP_AFTER);
        bad_map += foreign_unmap(at);
        while ( edu_busy(ep_a) )
            sleep_us(100);
        stale += ACCESS(*view) == PATTERN;
        bad_map += unmap(1, iova, 2 * PAGE);
    }
    ACCESS(t.stop) = true;
    cpu_wait(1);
    print("# %u switches\n", t.times);
    ok(t.times > ROUNDS, "under load: it was switched");
    is(t.bad, 0, "under load: no switch failed");
    is(bad_map, 0, "under load: no request failed");
    is(missed, 0, "under load: what is mapped is reached");
    is(wrong, 0, "under load: an old page is not, once there is a new one");
    is(stale, 0, "under load: what is gone is not reached 12 ms after");
    events_drop();
}

void foreign_switch(void)
{
    bool was = strict;
    unsigned int i;

    dom = other_new(PAGES, false);
    at = hole(1);
    view = hole(1);
    if ( foreign_map(view, dom, OTHER_GFN) )
        bail("a foreign page can't be looked at");

    for ( i = 0; i < NR_WHATS; i++ )
        switched(i);
    under_load();

    now_strict(was);
    start_over();
    foreign_unmap(view);
    ok(other_kill(dom), "switch: the second domain ends");
    is(other_pages_wait(dom, -1, 1000000), -1, "switch: and is gone");
    is(counter(XEN_PVIOMMU_CNT_pending), 0, "switch: nothing is pending");
    is(counter(XEN_PVIOMMU_CNT_pinned), 0, "switch: nothing is pinned");
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
