/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a device does that keeps a node for each mapping in a balanced tree: the
 * least of it, without rings, requests, pages and tables.
 */
#ifndef PEER_H
#define PEER_H

#include <stddef.h>
#include <stdint.h>

void peer_init(void);
int peer_map(uint64_t start, uint64_t last, uint64_t phys, uint32_t flags);
int peer_unmap(uint64_t start, uint64_t last);
/* Bytes of the heap in use. */
size_t peer_bytes(void);

#endif /* PEER_H */
