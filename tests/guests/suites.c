/* SPDX-License-Identifier: GPL-2.0-only */
#include "guest.h"

extern const struct suite suite_smoke;
extern const struct suite suite_limits;
extern const struct suite suite_replay;
extern const struct suite suite_slices;
extern const struct suite suite_hostile;
extern const struct suite suite_dma;
extern const struct suite suite_conformance;
extern const struct suite suite_foreign;
extern const struct suite suite_bench;
extern const struct suite suite_direct;

extern const struct suite *const suites[];
const struct suite *const suites[] = {
    &suite_smoke,
    &suite_dma,
    &suite_foreign,
    &suite_hostile,
    &suite_replay,
    &suite_slices,
    &suite_limits,
    &suite_conformance,
    &suite_bench,
    &suite_direct,
    NULL
};
