/* SPDX-License-Identifier: GPL-2.0-only */
/* What the three parts of the conformance suite share. */
#ifndef CONFORMANCE_H
#define CONFORMANCE_H

#include "viommu.h"

void conf_transport(void);
void conf_ring(void);
void conf_requests(void);

/*
 * A request that changes nothing and has an answer, in descriptors @head and
 * @head + 1: DETACH of an endpoint that isn't there.
 */
struct harmless {
    struct virtio_iommu_req_detach r;
};
extern struct harmless harmless;
void prepare_harmless(uint16_t head);
void post_harmless(uint16_t head);
/* Its answer is right. */
bool harmless_answered(void);
/* Does the device work?  Sends the harmless request. */
bool is_alive(void);
/* Interrupt at the next used buffer, with or without EVENT_IDX. */
void interrupt_wanted(bool yes);

/*
 * Bytes that the device says to have written for a PROBE, or an error as of
 * request().  @status: what the tail says, unless NULL.
 */
int probe_bytes(uint32_t endpoint, int *status);

#endif /* CONFORMANCE_H */
