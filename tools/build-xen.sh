#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Build Xen with the driver, redoing only what changed.
#
#   build-xen.sh PRISTINE TREE IMAGE DRIVER_KCONFIG DEBUG [OPTION...]
#
# PRISTINE is the unpacked source; TREE the copy of it that is built.  With
# DRIVER_KCONFIG ARM_SMMU_V3 it is Xen's own driver, for comparison: nothing of
# this project enters that tree.  OPTIONs of Kconfig are set, too.
set -eu
cd "$(dirname "$0")/.."
[ $# -ge 5 ] || { sed -n '3,9p' "$0" >&2; exit 2; }
pristine=$1 tree=$2 image=$3 kconfig=$4 debug=$5
shift 5
more=$*
: "${PYTHON:=/usr/bin/python3}" "${CROSS_COMPILE:=aarch64-linux-gnu-}"
log=${image%.img}-build.log
case $debug in y|n) ;; *)
    echo "build-xen: XEN_DEBUG=$debug: must be y or n" >&2
    exit 1
esac
command -v "${CROSS_COMPILE}gcc" > /dev/null || {
    echo "build-xen: no ${CROSS_COMPILE}gcc in PATH (CROSS_COMPILE): run" \
         "'make setup', or name one that is there" >&2
    exit 1
}

# shellcheck disable=SC2046     # one word, or none
PYTHON="$PYTHON" tools/prepare-tree.sh "$pristine" "$tree" \
    $([ "$kconfig" != ARM_SMMU_V3 ] || echo plain)

# The name of the driver's option is the last, so nothing overrides it.
options() {
    cat <<END
CONFIG_EXPERT=y
CONFIG_UNSUPPORTED=y
CONFIG_HAS_ITS=y
END
    [ "$kconfig" = ARM_SMMU_V3 ] || echo '# CONFIG_ARM_SMMU_V3 is not set'
    if [ "$debug" = y ]; then
        echo CONFIG_DEBUG=y
    else
        echo '# CONFIG_DEBUG is not set'
    fi
    for option in $more; do
        echo "CONFIG_$option=y"
    done
    [ "$kconfig" = none ] || echo "CONFIG_$kconfig=y"
}

xenmake() {
    make -s -C "$tree/xen" XEN_TARGET_ARCH=arm64 \
        CROSS_COMPILE="$CROSS_COMPILE" "$@" >> "$log" 2>&1 || {
        echo "build-xen: 'make $*' failed, from $log:" >&2
        grep -n -A5 -E 'error|Error|warning' "$log" | tail -40 >&2
        exit 1
    }
}

: > "$log"
# Without the parent's jobserver: its descriptors are not passed through here.
unset MAKEFLAGS MFLAGS MAKELEVEL

stamp=$( (options; find "$tree/xen" -name 'Kconfig*' -type f \
          -exec cksum {} +) | cksum)
if [ "$(cat "$tree/.configured" 2>/dev/null)" != "$stamp" ]; then
    rm -f "$tree/xen/.config"
    xenmake defconfig
    options >> "$tree/xen/.config"
    xenmake olddefconfig
    options | grep '=y' | while read -r line; do
        grep -qx "$line" "$tree/xen/.config" || {
            echo "build-xen: $line did not survive olddefconfig: a dependency" \
                 "of it is missing (see its Kconfig entry)" >&2
            exit 1
        }
    done
    echo "$stamp" > "$tree/.configured"
fi

echo "build-xen: building $tree, with output in $log"
xenmake -j"$(nproc)"
cmp -s "$tree/xen/xen" "$image" || cp "$tree/xen/xen" "$image"
echo "build-xen: $image ($(stat -c %s "$image") bytes)"
