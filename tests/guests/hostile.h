/* SPDX-License-Identifier: GPL-2.0-only */
/* What the parts of the hostile suite share. */
#ifndef HOSTILE_H
#define HOSTILE_H

#include "viommu.h"

/*
 * All that the device is told to write to is in here, so that it can't hurt
 * the guest itself; other addresses that it gets are no memory of ours.
 */
#define ARENA_PAGES 64
extern uint8_t *arena;

/*
 * How bad a round is; the worst breaks the device too often to get far into
 * requests.
 */
enum hostile_level {
    LEVEL_REQUESTS,     /* only what requests say, and devices that go */
    LEVEL_RACES,        /* they and their chains change while they are read */
    LEVEL_CHAINS,       /* chains of anything, indexes that jump */
    LEVEL_ALL,          /* registers, rings anywhere */
    NR_LEVELS
};
extern enum hostile_level hostile_level;

/* The rings as they were last told to the device; the disturbers read it. */
extern struct queue hostile_q[2];

uint64_t pick_number(struct rng *r);
uint64_t pick_address(struct rng *r);

/* From reset to DRIVER_OK with what a driver may choose, mostly. */
void hostile_start(struct rng *r);
/* One case: something that a driver should not do, or only maybe. */
void hostile_case(struct rng *r);
/* What another CPU does at the same time. */
void hostile_disturb(struct rng *r);

#endif /* HOSTILE_H */
