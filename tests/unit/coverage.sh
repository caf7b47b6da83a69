#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# coverage.sh DIR: lines of the driver that the tests in DIR have executed.

find "$1/driver" -name '*.gcda' | sort | while read -r f; do
    gcov -n -o "${f%.gcda}.o" "$f" 2>/dev/null
done | awk '
    /^File .*passthrough\// { name = $2; gsub(/.*passthrough\/|\047/, "", name) }
    /^File/ && !/passthrough\// { name = "" }
    /^Lines executed/ && name ~ /\.c$/ {
        split($0, a, /[:% ]+/); share = a[3]; n = a[5];
        printf "%6.1f %% of %4d lines  %s\n", share, n, name;
        all += n; hit += share * n / 100; name = ""
    }
    END { printf "%6.1f %% of %4d lines in all\n", 100 * hit / all, all }'
