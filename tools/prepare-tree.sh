#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Copy the unpacked source, once, and put the driver and hooks into the copy.
#
#   prepare-tree.sh PRISTINE TREE [plain]
#
# plain: only copy.
set -eu
cd "$(dirname "$0")/.."
[ $# -eq 2 ] || [ "$#-${3-}" = 3-plain ] || { sed -n '3,7p' "$0" >&2; exit 2; }
pristine=$1 tree=$2
: "${PYTHON:=/usr/bin/python3}"

if [ "$(cat "$tree/.copied" 2>/dev/null)" != "$pristine" ]; then
    [ -d "$pristine/xen" ] || {
        echo "prepare-tree: no Xen source in $pristine: run 'make setup'" >&2
        exit 1
    }
    rm -rf "$tree"
    cp -a "$pristine" "$tree"
    echo "$pristine" > "$tree/.copied"
fi

[ $# -eq 3 ] || exec "$PYTHON" tools/integrate.py -q "$tree"
