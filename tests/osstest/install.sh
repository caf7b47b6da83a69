#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# install.sh DIR: put steps, recipes and jobs into the osstest tree DIR.  Again is
# no harm.
set -e
dir=${1:?'say where: install.sh OSSTEST_DIR'}
here=$(cd "$(dirname "$0")" && pwd)
cd "$dir"
for f in sg-run-job make-flight allow.all Osstest tcl; do
    [ -e $f ] || { echo "install: no osstest tree: $dir has no $f" >&2; exit 1; }
done

# hook FILE LINE HOW REGEX: put LINE before or after (i, a) the first match, once
hook() {
    grep -qxF "$2" "$1" && return
    n=$(grep -n "$4" "$1" | head -1 | cut -d: -f1)
    [ -n "$n" ] || {
        echo "install: $1 has no line that matches '$4': add '$2' by hand" >&2
        exit 1
    }
    sed -i "$n$3\\
$2" "$1"
    echo "install: $1: $2"
}

cp "$here"/ts-pviommu-* "$here"/mfi-pviommu .
cp "$here"/Osstest/PvIommu.pm Osstest/
cp "$here"/tcl/pviommu.tcl tcl/
mkdir -p pviommu-steps
cp "$here"/steps/*.sh pviommu-steps/

hook sg-run-job 'source ./tcl/pviommu.tcl' i '^#-* main program'
hook make-flight '. ./mfi-pviommu' a '^\. \(\./\)\{0,1\}mfi-common'
hook make-flight 'do_pviommu_tests' a '^test_matrix_do_one *() *{'
grep -v '^#' "$here/allow.pviommu" | while read -r line; do
    grep -qxF "$line" allow.all || echo "$line" >> allow.all
done
