/* SPDX-License-Identifier: GPL-2.0-only */
/* What the parts of the suite about other domains' pages share. */
#ifndef FOREIGN_H
#define FOREIGN_H

#include "dma.h"
#include "other.h"

/* How a device gets at a page: through a mapping of ours, or by the p2m. */
struct way {
    const char *name;
    bool mapped;
    unsigned int why;           /* of the fault when it is gone */
};
extern const struct way ways[2];

/* ep_a is ready for @w, and ep_b is in bypass. */
void way_begin(const struct way *w);
/* The address at which a device finds our page @at. */
uint64_t way_open(const struct way *w, uint64_t *at);
void way_close(const struct way *w);
/* Longer than anything stays queued, with time for its release. */
void settle(void);

void foreign_grants(void);
void foreign_switch(void);

#endif /* FOREIGN_H */
