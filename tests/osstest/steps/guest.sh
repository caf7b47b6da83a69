#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# guest.sh strict|lazy|p2m-strict|p2m-lazy: a guest uses the NVMe behind the
# bridge that is passed through to it, and leaves nothing behind.
# shellcheck source=lib.sh
. "${0%/*}/lib.sh"
# shellcheck source=guest-lib.sh
. "${0%/*}/guest-lib.sh"

mode=${1:-}
case $mode in
    strict) type=virtio strict=1 ;;
    lazy) type=virtio strict=0 ;;
    p2m-strict) type=none strict=1 ;;
    p2m-lazy) type=none strict=0 ;;
    *) die "usage: guest.sh strict|lazy|p2m-strict|p2m-lazy" ;;
esac

config "iommu = \"type=$type,strict=$strict\""
create
is $NAME type $type
is $NAME strict $strict
shell

ask 'i=0; until ls /dev/nvme*n1; do i=$((i+1)); [ $i -lt 60 ] || exit; sleep 1; done' ||
    die "the guest has no NVMe: $(cat "$TMP/answer")"
ask 'ls /sys/bus/pci/drivers/nvme/*:*/iommu_group'
if [ $type = virtio ]; then
    [ "$status" = 0 ] || die "no virtio-iommu in front of the guest's NVMe"
    info $NAME | grep -E '^ *endpoint .* pci .* context ' ||
        die "the guest has attached no PCI function"
else
    [ "$status" != 0 ] || die "the guest has an IOMMU with type=none"
    info $NAME | grep -E '^ *endpoint .* bridge ' || die "no bridge"
fi

before $NAME
guest_data
n=$(grown flush_strict)
say "maps $(grown req_map), unmaps $(grown req_unmap), syncs $(grown sync)," \
    "flush_strict $n"
if [ $type = virtio ]; then
    for c in req_map req_unmap; do
        [ "$(grown $c)" -gt 0 ] || die "no $c: the NVMe does not use the IOMMU"
    done
fi
if [ "$mode" = strict ]; then
    [ "$n" -gt 0 ] || die "strict, and no unmap waited"
else
    [ "$n" = 0 ] || die "$mode, and $n unmaps waited"
fi
well
destroy
pass
