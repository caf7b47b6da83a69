#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Run cmocka binaries; the last line is 'N passed, N failed, N skipped'.

passed=0 failed=0 skipped=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT

count() {
    sed -n "s/^\[ *$1 *\] \([0-9]*\) test(s).*/\1/p" "$log" | tail -n 1
}

for bin; do
    name=$(basename "$(dirname "$bin")")/$(basename "$bin")
    timeout 300 "$bin" >"$log" 2>&1
    status=$?
    p=$(count PASSED) f=$(count FAILED) s=$(count SKIPPED)
    # A crash or a sanitizer's report ends a binary without the counts.
    [ $status -eq 0 ] || [ "${f:-0}" -gt 0 ] || f=1
    passed=$((passed + ${p:-0}))
    failed=$((failed + ${f:-0}))
    skipped=$((skipped + ${s:-0}))
    if [ "${f:-0}" -gt 0 ]; then
        cat "$log"
        echo "FAILED  $name (status $status)"
    else
        echo "ok      $name: ${p:-0} tests"
    fi
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
