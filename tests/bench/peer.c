/* SPDX-License-Identifier: GPL-2.0-only */
#include <malloc.h>

#include <glib.h>

#include "../bench/peer.h"

struct mapping {
    uint64_t start, last, phys;
    uint32_t flags;
};

static GTree *tree;

/* Ranges that overlap are equal. */
static gint compare(gconstpointer a, gconstpointer b, gpointer unused)
{
    const struct mapping *x = a, *y = b;

    (void)unused;
    return x->last < y->start ? -1 : x->start > y->last;
}

void peer_init(void)
{
    tree = g_tree_new_full(compare, NULL, g_free, NULL);
}

int peer_map(uint64_t start, uint64_t last, uint64_t phys, uint32_t flags)
{
    struct mapping key = { .start = start, .last = last }, *m;

    if ( g_tree_lookup(tree, &key) )
        return -1;
    m = g_new(struct mapping, 1);
    *m = (struct mapping){ start, last, phys, flags };
    g_tree_insert(tree, m, m);

    return 0;
}

int peer_unmap(uint64_t start, uint64_t last)
{
    struct mapping key = { .start = start, .last = last }, *m;

    while ( (m = g_tree_lookup(tree, &key)) )
    {
        if ( m->start < start || m->last > last )
            return -1;
        g_tree_remove(tree, m);
    }

    return 0;
}

size_t peer_bytes(void)
{
    return mallinfo2().uordblks;
}
