/* SPDX-License-Identifier: GPL-2.0-only */
/* The value of `iommu` in xl.cfg. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "xl_iommu_parse.h"

#define U           XL_IOMMU_UNSET
#define NR(a)       (sizeof(a) / sizeof(*(a)))

static const struct {
    const char *text;
    struct xl_iommu_option want;
} good[] = {
    { "virtio", { XL_IOMMU_VIRTIO, U, U, 0 } },
    { "none", { XL_IOMMU_NONE, U, U, 0 } },
    { "type=virtio", { XL_IOMMU_VIRTIO, U, U, 0 } },
    { "strict=0", { U, 0, U, 0 } },
    { "virtio,strict=off,bypass=no", { XL_IOMMU_VIRTIO, 0, 0, 0 } },
    { "strict=yes,bypass=true,type=none", { XL_IOMMU_NONE, 1, 1, 0 } },
    { "strict=on,bypass=1", { U, 1, 1, 0 } },
    { "strict=false,bypass=0", { U, 0, 0, 0 } },
    { " Type = VirtIO ,\tSTRICT = No ", { XL_IOMMU_VIRTIO, 0, U, 0 } },
    { "pool=64K", { U, U, U, 64 } },
    { "pool=1m", { U, U, U, 1024 } },
    { "pool=3G", { U, U, U, 3 << 20 } },
    { "pool=4096G", { U, U, U, XL_IOMMU_POOL_MAX } },
    { "pool=0000000000000000000000128K", { U, U, U, 128 } },
};

static void test_good(void **state)
{
    unsigned int i;

    for ( i = 0; i < NR(good); i++ )
    {
        struct xl_iommu_option got;
        char err[256] = "";

        if ( xl_iommu_parse(good[i].text, &got, err, sizeof(err)) )
            fail_msg("\"%s\": %s", good[i].text, err);
        if ( got.type != good[i].want.type ||
             got.strict != good[i].want.strict ||
             got.bypass != good[i].want.bypass ||
             got.pool_kb != good[i].want.pool_kb )
            fail_msg("\"%s\": type=%d strict=%d bypass=%d pool=%llu",
                     good[i].text, got.type, got.strict, got.bypass,
                     (unsigned long long)got.pool_kb);
    }
}

#define BOOLS   "0, 1, false, true, off, on, no, yes"
#define LONG    "0123456789012345678901234567890123456789"

static const struct {
    const char *text;
    const char *says[3];        /* key, value, what is allowed */
} bad[] = {
    { "", { "\"\"", "type, strict, bypass, pool" } },
    { ",", { "\"\"", "type, strict, bypass, pool" } },
    { "virtio,", { "\"\"", "type, strict, bypass, pool" } },
    { "virtio,,strict=1", { "\"\"", "type, strict, bypass, pool" } },
    { "smmu", { "\"smmu\"", "type, strict, bypass, pool", "none, virtio" } },
    { "strict", { "\"strict\"", "KEY=VALUE", "strict" } },
    { "virtio strict=1", { "\"virtio strict\"", "type, strict, bypass" } },
    { "type=", { "type", "\"\"", "none, virtio" } },
    { "type=smmuv3", { "type", "\"smmuv3\"", "none, virtio" } },
    { "type=virtio ,strict=2", { "strict", "\"2\"", BOOLS } },
    { "strict=", { "strict", "\"\"", BOOLS } },
    { "strict=maybe", { "strict", "\"maybe\"", BOOLS } },
    { "strict=01", { "strict", "\"01\"", BOOLS } },
    { "strict==1", { "strict", "\"=1\"", BOOLS } },
    { "bypass=-1", { "bypass", "\"-1\"", BOOLS } },
    { "pool=", { "pool", "\"\"", "64K to 4096G" } },
    { "pool=K", { "pool", "\"K\"", "64K to 4096G" } },
    { "pool=128", { "pool", "\"128\"", "with K, M or G" } },
    { "pool=63K", { "pool", "\"63K\"", "64K to 4096G" } },
    { "pool=0M", { "pool", "\"0M\"", "64K to 4096G" } },
    { "pool=4097G", { "pool", "\"4097G\"", "64K to 4096G" } },
    { "pool=18446744073709551617M", { "pool", "\"18446744073709551617M\"" } },
    { "pool=-1M", { "pool", "\"-1M\"", "64K to 4096G" } },
    { "pool=1.5M", { "pool", "\"1.5M\"", "64K to 4096G" } },
    { "pool=1MB", { "pool", "\"1MB\"", "with K, M or G" } },
    { "colour=red", { "\"colour\"", "\"red\"", "type, strict, bypass, pool" } },
    { "=1", { "\"\"", "\"1\"", "type, strict, bypass, pool" } },
    { "strict=1,strict=1", { "strict", "twice" } },
    { "virtio,type=virtio", { "type", "twice" } },
    { "none,virtio", { "type", "twice" } },
    { "bypass=0,bypass=1", { "bypass", "twice" } },
    { "pool=1M,pool=1M", { "pool", "twice" } },
    { "type=" LONG LONG, { "type", LONG "\"", "none, virtio" } },
    { LONG LONG "=" LONG LONG, { LONG "\" (value \"" LONG "\")", "pool" } },
};

static void test_bad(void **state)
{
    unsigned int i, j;

    for ( i = 0; i < NR(bad); i++ )
    {
        struct xl_iommu_option got;
        char err[256] = "";

        if ( !xl_iommu_parse(bad[i].text, &got, err, sizeof(err)) )
            fail_msg("\"%s\" is taken", bad[i].text);
        if ( strncmp(err, "iommu: ", 7) )
            fail_msg("\"%s\": not said what option: %s", bad[i].text, err);
        if ( strlen(err) == sizeof(err) - 1 )
            fail_msg("\"%s\": cut: %s", bad[i].text, err);
        for ( j = 0; j < 3 && bad[i].says[j]; j++ )
            if ( !strstr(err, bad[i].says[j]) )
                fail_msg("\"%s\": %s: not said: %s", bad[i].text, err,
                         bad[i].says[j]);
    }
}

/* Texts made of pieces at random: no crash, and a message or a sane result. */
static void test_random(void **state)
{
    static const char *const pieces[] = {
        "type", "strict", "bypass", "pool", "=", "=", "=", ",", ",", "virtio",
        "none", "0", "1", "64K", "9G", " ", "\t", "\"", "%s%n", "\x80", "yes",
    };
    unsigned int round, taken = 0;

    srand(1);
    for ( round = 0; round < 200000; round++ )
    {
        struct xl_iommu_option got;
        char text[64] = "", err[256] = "", *exact;
        unsigned int n = rand() % 9;

        while ( n-- )
        {
            const char *p = pieces[rand() % NR(pieces)];

            if ( strlen(text) + strlen(p) < sizeof(text) )
                strcat(text, p);
        }
        exact = strdup(text);       /* so that reading beyond is seen */
        if ( xl_iommu_parse(exact, &got, err, sizeof(err)) )
            assert_true(err[0]);
        else
        {
            taken++;
            assert_in_range(got.type + 1, 0, 2);
            assert_in_range(got.strict + 1, 0, 2);
            assert_in_range(got.bypass + 1, 0, 2);
            assert_true(!got.pool_kb || (got.pool_kb >= XL_IOMMU_POOL_MIN &&
                                         got.pool_kb <= XL_IOMMU_POOL_MAX));
        }
        free(exact);
    }
    /* Or else nothing but errors was tried. */
    assert_true(taken > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_bad),
        cmocka_unit_test(test_random),
    };

    return cmocka_run_group_tests_name("xliommu", tests, NULL, NULL);
}
