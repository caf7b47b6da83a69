#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# run.sh DIR SECONDS NAME...: run fuzzers; the last line is
# 'N passed, N failed, N skipped'.

dir=$1 seconds=$2
shift 2
passed=0 failed=0
for f; do
    found=$dir/$f.found
    mkdir -p "$found"
    if "$dir/fuzz_$f" -max_total_time="$seconds" -timeout=20 -max_len=600 \
            -artifact_prefix="$dir/$f." -print_final_stats=1 "$found" \
            "corpus/$f" >"$dir/$f.log" 2>&1; then
        passed=$((passed + 1))
        echo "ok      fuzz_$f: $(sed -n \
            's/^stat::number_of_executed_units: *//p' "$dir/$f.log") inputs"
    else
        failed=$((failed + 1))
        # The stack, and where the input is.
        grep -v '^#[0-9]*	' "$dir/$f.log" | tail -n 60
        echo "FAILED  fuzz_$f"
    fi
done
echo "$passed passed, $failed failed, 0 skipped"
[ $failed -eq 0 ]
