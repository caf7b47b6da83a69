#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# host.sh: is this a machine for the other steps?
#   Xen has the driver, and it runs an SMMU; dom0 has the NVMe, if one is named,
#   behind that SMMU; the bridge, if one is named, is there for guests.
# shellcheck source=lib.sh
. "${0%/*}/lib.sh"

xl iommu-info -j > "$TMP/info" 2>&1 || die "xl iommu-info: $(cat "$TMP/info")"
grep -q '"base":' "$TMP/info" ||
    die "Xen uses no SMMUv3: none in the device tree, refused, or iommu=off"

if [ -n "${PVIOMMU_NVME:-}" ]; then
    [ -e "/sys/bus/pci/devices/$PVIOMMU_NVME" ] || die "no $PVIOMMU_NVME"
    endpoint 0 "$(rid "$PVIOMMU_NVME")" ||
        die "$PVIOMMU_NVME is behind no SMMU: iommu-map of its bridge?"
    wait_for "no disk of $PVIOMMU_NVME" disk_of "$PVIOMMU_NVME"
fi
if [ -n "${PVIOMMU_BRIDGE:-}" ]; then
    # Xen disables the node of what guests get.
    node=/proc/device-tree$PVIOMMU_BRIDGE
    [ ! -d "$node" ] || grep -q disabled "$node/status" 2>/dev/null ||
        die "$PVIOMMU_BRIDGE is dom0's: its node has no xen,passthrough"
fi
smmus_well
pass
