# SPDX-License-Identifier: GPL-2.0-only
# What the steps share.  They run in dom0 as root, with xl and the commands that
# busybox has, too.  Parameters come by the environment:
#   PVIOMMU_NVME    PCI address of an NVMe disk, whose data is destroyed
#   PVIOMMU_AT_MB   where on the disk the step may write DATA_MB of data
#   PVIOMMU_BRIDGE  device tree path of the PCI host bridge that guests get
#   PVIOMMU_GUEST   folder with kernel, initramfs and configuration for guests
# The last line is 'PASS' or begins with 'FAIL: ', as the status says.

: "${PVIOMMU_AT_MB:=16}" "${PVIOMMU_GUEST:=/guest}"
DATA_MB=4
TMP=/tmp/pviommu
WAIT_SECONDS=120            # for what takes a few; only a hang is late
mkdir -p "$TMP"

say() { echo "$(date -u +%H:%M:%S) $*"; }

# Ends the step, with what one wants to know then.
die() {
    xl iommu-info 2>&1
    xl list 2>&1
    xl dmesg 2>/dev/null | grep -v '^(d' | tail -15 | sed 's/^(XEN)/Xen:/'
    echo "FAIL: $*"
    exit 1
}

pass() { echo PASS; exit 0; }

need() {
    for n; do
        eval "v=\${$n:-}"
        [ -n "$v" ] || die "$n is not set"
    done
}

# wait_for WHAT COMMAND...: until it succeeds
wait_for() {
    awaited=$1 tries=0
    shift
    until "$@"; do
        tries=$((tries + 1))
        [ $tries -lt $((WAIT_SECONDS * 5)) ] ||
            die "$awaited: not within $WAIT_SECONDS s"
        sleep 0.2
    done
}

#
# What Xen says: the domain's lines of xl iommu-info end where the SMMUs' begin
#
info() { xl iommu-info "$1" | sed '/^smmu/,$d'; }

# value DOMAIN NAME: of a flag or counter; nothing if there is none
value() { info "$1" | tr ' ' '\n' | sed -n "s/^$2=//p" | head -1; }

# is DOMAIN NAME VALUE
is() {
    v=$(value "$1" "$2")
    [ "$v" = "$3" ] || die "domain $1: $2 is '$v', must be $3"
}

# before DOMAIN: remember the counters; grown NAME: by how much since
before() { of=$1 old=$(info "$1"); }
grown() {
    o=$(echo "$old" | tr ' ' '\n' | sed -n "s/^$1=//p" | head -1)
    n=$(value "$of" "$1")
    if [ -n "$o" ] && [ -n "$n" ]; then
        echo $((n - o))
    else
        echo "unknown: no counter $1"
    fi
}

# No SMMU counted an error, and none was given up.
smmus_well() {
    bad=$(xl iommu-info | sed -n '/^smmu/,$p' | tr ' ' '\n' |
        grep -E '^(cmdq_(ill|abt|timeout)|events|event_overflow|gerror)=[1-9]')
    [ -z "$bad" ] || die "SMMU: $bad"
    ! xl iommu-info -j | grep -q '"dead": true' || die "an SMMU is dead"
}

# well: what was remembered by before has not met faults or errors since
well() {
    for c in faults faults_dropped errors req_bad; do
        n=$(grown $c)
        [ "$n" = 0 ] || die "domain $of: $c grew by $n"
    done
    smmus_well
}

# PCI address to what Linux and xl call endpoint: bus, device, function
rid() {
    # shellcheck disable=SC2046
    set -- $(echo "$1" | sed 's/^[0-9a-f]*:\(..\):\(..\)\.\(.\)$/\1 \2 \3/')
    printf '0x%x\n' $((0x$1 << 8 | 0x$2 << 3 | $3))
}

# endpoint DOMAIN RID: its line; attached or not says what xl iommu-info says
endpoint() { info "$1" | grep -E "^ *endpoint $2 pci "; }

#
# Data
#

# disk_of BDF: its block device, when Linux has it
disk_of() {
    for d in /sys/bus/pci/devices/"$1"/nvme/nvme*; do
        disk=/dev/${d##*/}n1
        [ -b "$disk" ] && return 0
    done
    return 1
}

# data DISK: what is written is read back, past the caches.  The disk starts
# with other data, so that nothing old passes for new.
data() {
    at=$((PVIOMMU_AT_MB * 16)) n=$((DATA_MB * 16))
    dd if=/dev/urandom of="$TMP/data" bs=64k count=$n 2>/dev/null ||
        die "no random data"
    dd if="$TMP/data" of="$1" bs=64k seek=$at oflag=direct conv=fsync,notrunc \
        2>/dev/null || die "$1: writing fails"
    dd if="$1" of="$TMP/back" bs=64k skip=$at count=$n iflag=direct \
        2>/dev/null || die "$1: reading fails"
    cmp "$TMP/data" "$TMP/back" ||
        die "$1: what was read is not what was written"
    rm "$TMP/data" "$TMP/back"
}

# fio_data DISK: the same with many at a time, where dom0 has fio
fio_data() {
    command -v fio > /dev/null || return 0
    fio --name=pviommu --filename="$1" --offset="${PVIOMMU_AT_MB}m" \
        --size="${DATA_MB}m" --rw=randwrite --bs=4k --ioengine=libaio \
        --iodepth=32 --direct=1 --verify=crc32c --verify_fatal=1 \
        --output="$TMP/fio" || { cat "$TMP/fio"; die "$1: fio"; }
}
