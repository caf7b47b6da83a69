#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# hostile.sh strict|lazy [SECONDS [SEED]]: a guest without an operating system
# writes garbage to its virtio-iommu from all its CPUs.  It has to recover each
# time, and Xen, the SMMU and dom0 must not notice.  Needs a debug build of Xen,
# which shows what guests print.
# shellcheck source=lib.sh
. "${0%/*}/lib.sh"
# shellcheck source=guest-lib.sh
. "${0%/*}/guest-lib.sh"

mode=${1:-} seconds=${2:-10} seed=${3:-$(date +%s)}
: "${PVIOMMU_HOSTILE_RID:=8}"   # of a PCI function behind the bridge, decimal
case $mode in
    strict) strict=1 ;;
    lazy) strict=0 ;;
    *) die "usage: hostile.sh strict|lazy [SECONDS [SEED]]" ;;
esac

said() { xl dmesg | sed -n "s/^(d$id) //p"; }
ended() { gone || said | grep -Eq '^(1\.\.|Bail out)'; }

config "iommu = \"virtio,strict=$strict\"" "kernel = \"$PVIOMMU_GUEST/guest.img\"" \
    'ramdisk =' 'vcpus = 4' 'on_crash = "preserve"' \
    "extra = \"suite=hostile seconds=$seconds seed=$seed endpoint=$PVIOMMU_HOSTILE_RID\""
create
before $NAME
# shellcheck disable=SC2034     # of wait_for
WAIT_SECONDS=$((seconds * 2 + 120))
wait_for "the hostile guest does not end" ended
! gone || die "the hostile guest is gone"
said
plan=$(said | sed -n 's/^1\.\.//p')
good=$(said | grep -c '^ok ')
! said | grep -Eq '^(not ok|Bail out)' || die "the hostile guest failed, seed=$seed"
[ "$plan" = "$good" ] ||
    die "results are missing: $good of '$plan'; is Xen a debug build?"

bad=$(grown req_bad)
[ "$bad" -gt 0 ] || die "no request was bad: that was no attack"
say "bad requests: $bad"
is $NAME strict $strict
[ "$(grown errors)" = 0 ] || die "errors in the driver: $(grown errors)"
[ "$(value $NAME pages)" = 0 ] && [ "$(value $NAME pending)" = 0 ] ||
    die "pages are left mapped"
destroy
pass
