/* SPDX-License-Identifier: GPL-2.0-only */
/* The value of `iommu` in xl.cfg, as xl parses it. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "xl_iommu_parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define check(x) do { if (!(x)) abort(); } while (0)

static int is_flag(int v)
{
    return v == XL_IOMMU_UNSET || v == 0 || v == 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct xl_iommu_option opt;
    size_t room;
    char *text, *err;

    if (!size) return 0;
    /* Both of exactly that size, so that going beyond is seen. */
    room = 1 + data[0];
    err = malloc(room);
    memset(err, 'x', room);
    text = malloc(size);
    memcpy(text, data + 1, size - 1);
    text[size - 1] = 0;

    if (xl_iommu_parse(text, &opt, err, room))
        check(memchr(err, 0, room) && (room < 8 || !memcmp(err, "iommu: ", 7)));
    else
        check(is_flag(opt.type) && is_flag(opt.strict) && is_flag(opt.bypass) &&
              (!opt.pool_kb || (opt.pool_kb >= XL_IOMMU_POOL_MIN &&
                                opt.pool_kb <= XL_IOMMU_POOL_MAX)));
    free(text);
    free(err);
    return 0;
}
