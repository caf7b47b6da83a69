#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# qemu-pviommu-arm64.sh [VARIANT]: a smoke test of the SMMUv3 driver with
# virtio-iommu, in the form of Xen's automation/scripts.
#
#   dom0-strict, dom0-lazy   dom0's NVMe behind the virtio-iommu (dom0-strict is
#                            the default)
#   p2m-strict, p2m-lazy     without it, while dom0's memory shrinks and grows
#   switch                   strict goes on and off while the NVMe is busy
#
# From binaries/ it takes xen, Image, and dom0's root with Xen's tools: either
# dom0-rootfs.cpio.gz (or .cpio), or initrd.tar.gz and dist/install, of which it
# makes that.  The root runs etc/local.d/*.start once it is up.  The console is
# in smoke.serial; the status is 0 when PASSED is in there.  TEST_TIMEOUT:
# seconds; QEMU: 8.1 or later, its path; QEMU_ARGS, DOM0_CMD: more arguments of
# QEMU's and dom0's kernel's.
set -eu

variant=${1:-${TEST_VARIANT:-dom0-strict}}
case $variant in
    dom0-strict) xen="dom0-viommu=strict=1" step="dom0-disk.sh strict" ;;
    dom0-lazy) xen="dom0-viommu=strict=0" step="dom0-disk.sh lazy" ;;
    p2m-strict) xen="dom0-viommu=no,strict=1" step="dom0-disk.sh p2m-strict" ;;
    p2m-lazy) xen="dom0-viommu=no,strict=0" step="dom0-disk.sh p2m-lazy" ;;
    switch) xen="dom0-viommu" step="switch.sh dom0" ;;
    *)  echo "$0: no variant '$variant'" >&2
        exit 2
esac

here=$(cd "$(dirname "$0")" && pwd)
: "${PVIOMMU_STEPS:=$here/pviommu}"
[ -d "$PVIOMMU_STEPS" ] || PVIOMMU_STEPS=$here/../osstest/steps
: "${TEST_TIMEOUT:=600}" "${TEST_LOG:=smoke.serial}"
: "${PASSED:=pviommu: $variant test passed}"
FAILED="pviommu: $variant test failed"
[ -n "${QEMU:-}" ] || QEMU=./binaries/qemu-system-aarch64
[ -x "$QEMU" ] || QEMU="qemu-system-aarch64"

#
# dom0's root, and what it runs
#
root=binaries/dom0-rootfs.cpio
[ -f "$root" ] || root=$root.gz
if [ ! -f "$root" ]; then
    rm -rf rootfs
    mkdir rootfs
    tar -C rootfs -xzf binaries/initrd.tar.gz
    cp -a binaries/dist/install/. rootfs/
    (cd rootfs && mkdir -p proc run srv sys &&
        find . | cpio -o -H newc --quiet) | gzip > "$root"
fi

rm -rf overlay
mkdir -p overlay/etc/local.d overlay/pviommu
cp "$PVIOMMU_STEPS"/*.sh overlay/pviommu/
cat > overlay/etc/local.d/pviommu.start <<END
#!/bin/sh
export LD_LIBRARY_PATH=/usr/local/lib
PATH=\$PATH:/usr/local/sbin:/usr/local/bin
[ ! -f /etc/init.d/xencommons ] || bash /etc/init.d/xencommons start
if PVIOMMU_NVME=0000:00:01.0 sh /pviommu/$step; then
    echo "$PASSED"
else
    echo "$FAILED"
fi
END
chmod +x overlay/etc/local.d/pviommu.start
# The kernel takes several archives in a row, packed or not.
(cat "$root"; cd overlay && find . | cpio -o -H newc --quiet) \
    > binaries/pviommu.cpio
rm -f binaries/pviommu.nvme
truncate -s 64M binaries/pviommu.nvme

#
# Run
#
rm -f "$TEST_LOG"
# A comma ends an option of QEMU's, two are one.
dom0=$(echo "${DOM0_CMD:-}" | sed 's/,/,,/g')
# shellcheck disable=SC2086     # of QEMU_ARGS each word is an argument
"$QEMU" -machine virt,virtualization=on,iommu=smmuv3,gic-version=3,its=on \
    -cpu cortex-a57 -smp 2 -m 2048 -nodefaults -display none -monitor none \
    -no-reboot -serial "file:$TEST_LOG" \
    -kernel binaries/xen -append \
    "console=dtuart dom0_mem=1024M dom0_max_vcpus=2 loglvl=all $xen" \
    -device "guest-loader,addr=0x50000000,kernel=binaries/Image,bootargs=console=hvc0 root=/dev/ram0 rdinit=/init $dom0" \
    -device guest-loader,addr=0x58000000,initrd=binaries/pviommu.cpio \
    -drive if=none,id=nvm,format=raw,file=binaries/pviommu.nvme \
    -device nvme,serial=pviommu,drive=nvm ${QEMU_ARGS:-} &
qemu=$!
trap 'kill $qemu 2>/dev/null || :' EXIT

ended() { grep -qE "^($PASSED|$FAILED)|^\(XEN\) Panic on CPU" "$TEST_LOG"; }

left=$((TEST_TIMEOUT * 2))
until ended 2>/dev/null; do
    left=$((left - 1))
    [ $left -gt 0 ] || { echo "$0: timeout after $TEST_TIMEOUT s"; break; }
    kill -0 $qemu 2>/dev/null || { echo "$0: QEMU has ended"; break; }
    sleep 0.5
done
kill $qemu 2>/dev/null || :
wait $qemu 2>/dev/null || :

tr -d '\r' < "$TEST_LOG" | tail -40
# Xen prints its own lines anywhere, so the result is looked for at the start of
# one; and the driver must be there, whatever dom0 says.
grep -q '^(XEN) .*I/O virtualisation enabled' "$TEST_LOG" &&
    grep -q "^$PASSED" "$TEST_LOG"
