/* SPDX-License-Identifier: GPL-2.0-only */
/* Results in TAP: one line for each check, the plan at the end. */

#include "guest.h"

static unsigned int number;

static void result(bool good, const char *suffix, const char *fmt,
                   va_list args)
{
    char text[100];

    format(text, sizeof(text), fmt, args);
    print("%sok %u - %s%s\n", good ? "" : "not ", ++number, text, suffix);
}

bool ok(bool good, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    result(good, "", fmt, args);
    va_end(args);

    return good;
}

bool is(int64_t got, int64_t want, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    result(got == want, "", fmt, args);
    va_end(args);
    if ( got != want )
        print("# got %ld (%#lx), not %ld (%#lx)\n", got, got, want, want);

    return got == want;
}

void skip(const char *why, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    result(true, " # SKIP", fmt, args);
    va_end(args);
    print("# skipped: %s\n", why);
}

void plan(void)
{
    print("1..%u\n", number);
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
