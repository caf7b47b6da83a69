#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# dom0-disk.sh strict|lazy|p2m-strict|p2m-lazy: dom0's NVMe, translated so.
#   strict, lazy    behind the virtio-iommu: attached, data right, each unmap
#                   waits, or none does
#   p2m-*           without it: data right while pages leave and join dom0
# shellcheck source=lib.sh
. "${0%/*}/lib.sh"

need PVIOMMU_NVME
mode=${1:-}
BALLOON=/sys/devices/system/xen_memory/xen_memory0
BALLOON_KB=16384

reserve() { [ "$(cat "$BALLOON"/info/current_kb)" = "$1" ]; }

# Give pages back to Xen, use the disk, take them again, use the disk.
balloon() {
    size=$(cat $BALLOON/info/current_kb)
    for kb in $((size - BALLOON_KB)) "$size"; do
        echo "$kb" > $BALLOON/target_kb
        wait_for "dom0's memory does not become $kb KB" reserve "$kb"
        data "$disk"
    done
}

case $mode in
    strict) type=virtio strict=1 ;;
    lazy) type=virtio strict=0 ;;
    p2m-strict) type=none strict=1 ;;
    p2m-lazy) type=none strict=0 ;;
    *) die "usage: dom0-disk.sh strict|lazy|p2m-strict|p2m-lazy" ;;
esac

is 0 type $type
is 0 strict $strict
wait_for "no disk of $PVIOMMU_NVME" disk_of "$PVIOMMU_NVME"
line=$(endpoint 0 "$(rid "$PVIOMMU_NVME")") || die "$PVIOMMU_NVME: no endpoint"
group=/sys/bus/pci/devices/$PVIOMMU_NVME/iommu_group
say "$PVIOMMU_NVME is $disk:$line"

before 0
if [ $type = virtio ]; then
    echo "$line" | grep -q ' context ' ||
        die "dom0 has not attached $PVIOMMU_NVME: no virtio-iommu driver?"
    [ -e "$group" ] || die "Linux has no IOMMU group for $PVIOMMU_NVME"
    data "$disk"
    fio_data "$disk"
    for c in req_map req_unmap; do
        [ "$(grown $c)" -gt 0 ] || die "no $c: the disk does not use the IOMMU"
    done
    waits=flush_strict
else
    [ ! -e "$group" ] || die "Linux has an IOMMU for $PVIOMMU_NVME"
    data "$disk"
    balloon
    fio_data "$disk"
    waits=flush_p2m
fi

n=$(grown $waits)
say "ranges $(grown ranges), syncs $(grown sync), $waits $n"
[ "$(grown ranges)" -gt 0 ] || die "nothing was unmapped"
if [ $strict = 1 ]; then
    [ "$n" -gt 0 ] || die "strict, and nothing waited ($waits)"
else
    [ "$n" = 0 ] || die "lazy, and $n waited ($waits)"
fi
well
pass
