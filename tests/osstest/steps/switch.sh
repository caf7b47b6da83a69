#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# switch.sh dom0|guest: strict goes on and off while the NVMe is busy; it acts at
# once, and the data stays right.
# shellcheck source=lib.sh
. "${0%/*}/lib.sh"
# shellcheck source=guest-lib.sh
. "${0%/*}/guest-lib.sh"

ROUNDS=4
BUSY=50                     # unmaps that show what the flag does

# until the load has done so many unmaps since before
unmapped() { [ "$(grown req_unmap)" -ge "$BUSY" ]; }

case ${1:-} in
    dom0)
        need PVIOMMU_NVME
        dom=0
        wait_for "no disk of $PVIOMMU_NVME" disk_of "$PVIOMMU_NVME"
        check() { data "$disk"; }
        start() {
            while dd if="$disk" of=/dev/null bs=64k count=64 iflag=direct; do
                [ -e "$TMP/busy" ] || exit
            done 2>/dev/null &
        }
        stop() { wait; }
        ;;
    guest)
        dom=$NAME
        config 'iommu = "virtio"'
        create
        shell
        check() { guest_data; }
        start() {
            ask 'touch /tmp/busy; while [ -e /tmp/busy ]; do dd if=$(ls /dev/nvme*n1) of=/dev/null bs=64k count=64 iflag=direct; done > /dev/null 2>&1 &' ||
                die "guest: no load"
        }
        stop() { ask 'rm /tmp/busy'; destroy; }
        ;;
    *) die "usage: switch.sh dom0|guest" ;;
esac

is $dom type virtio
first=$(value $dom strict)
: > "$TMP/busy"
trap 'rm -f $TMP/busy; xl iommu-strict $dom on; [ $dom = 0 ] || xl destroy $dom' EXIT
start
i=0
while [ $i -lt $ROUNDS ]; do
    i=$((i + 1))
    for word in on off; do
        xl iommu-strict $dom $word || die "xl iommu-strict: status $?"
        [ $word = on ] && want=1 || want=0
        is $dom strict "$want"
        before $dom
        wait_for "no $BUSY unmaps: no load?" unmapped
        n=$(grown flush_strict)
        say "round $i, $word: unmaps $(grown req_unmap), flush_strict $n"
        if [ $word = on ]; then
            [ "$n" -gt 0 ] || die "switched on, and no unmap waits"
        else
            [ "$n" = 0 ] || die "switched off, and $n unmaps wait"
        fi
        check
        well
    done
done
[ "$first" = 1 ] && word=on || word=off
xl iommu-strict $dom "$word"
trap - EXIT
rm "$TMP/busy"
stop
pass
