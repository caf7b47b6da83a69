# SPDX-License-Identifier: GPL-2.0-only
"""Forms of the machine: an SMMU that could nest and one with stage 2 only, or
without a wired interrupt; disks at the root and behind a root port, in two
contexts and in one; removed and found again.  The data is right, and nothing
faults."""
import hashlib
import os
import re
import unittest

from bed import Bed

MB = 1 << 20
SIZE_MB, HOST_MB, DOM0_MB, WRITE_AT = 64, 4, 4, 32

NESTED = {"machine": "virt", "smmu": "nested"}
STAGE2 = {"machine": "virt-9.1", "smmu": "2"}

AT_ROOT = ["nvme,serial=d0,drive=d0", "nvme,serial=d1,drive=d1"]
BEHIND_PORT = ["pcie-root-port,id=rp,chassis=1,slot=1",
               "nvme,serial=d0,drive=d0,bus=rp",
               "nvme,serial=d1,drive=d1"]
# Functions of one device without ACS are one group to Linux: one context.
ONE_GROUP = ["nvme,serial=d0,drive=d0,addr=0x5.0,multifunction=on",
             "nvme,serial=d1,drive=d1,addr=0x5.1"]


def no_interrupt(fdt):
    """The SMMU of QEMU's tree has none that Xen could find."""
    fdt.delprop(fdt.path_offset("/smmuv3@9050000"), "interrupt-names")


class Disk:
    """One NVMe disk, as the host's file and as dom0's device."""

    def __init__(self, bed, n):
        self.bed, self.file = bed, bed.dir / f"d{n}.img"
        self.serial, self.host, self.written = f"d{n}", None, None

    def make(self):
        data = os.urandom(HOST_MB * MB)
        with open(self.file, "wb") as f:
            f.write(data)
            f.truncate(SIZE_MB * MB)
        self.host = hashlib.md5(data).hexdigest()

    @property
    def block(self):
        # Not nvme0c0n1, a path to it.
        text = self.bed.run(
            f"grep -l '^{self.serial} *$' /sys/block/nvme*/device/serial")
        return re.search(r"/(nvme\d+n\d+)/", text)[1]

    @property
    def pci(self):
        text = self.bed.run(
            f"grep -l '^{self.serial} *$' /sys/class/nvme/*/serial")
        return self.bed.run(
            f"readlink -f {text.strip()[:-len('serial')]}device").strip()

    @property
    def group(self):
        return self.bed.run(f"readlink {self.pci}/iommu_group").strip()

    def md5(self, command):
        text = self.bed.run(f"{command} 2>/dev/null | md5sum")
        return re.search(r"[0-9a-f]{32}", text)[0]

    def read(self):
        """MD5 of what dom0 reads of the host's data."""
        self.bed.run("echo 3 > /proc/sys/vm/drop_caches")
        return self.md5(f"dd if=/dev/{self.block} bs=1M count={HOST_MB}")

    def write(self):
        """dom0 writes; MD5 of it, and of what the host finds."""
        bed = self.bed
        bed.run(f"dd if=/dev/urandom of=/tmp/r bs=1M count={DOM0_MB} "
                "2>/dev/null")
        bed.run(f"dd if=/tmp/r of=/dev/{self.block} bs=1M seek={WRITE_AT} "
                "conv=fsync 2>/dev/null")
        with open(self.file, "rb") as f:
            f.seek(WRITE_AT * MB)
            found = hashlib.md5(f.read(DOM0_MB * MB)).hexdigest()
        return self.md5("cat /tmp/r"), found


class Machines(unittest.TestCase):
    """One boot for each combination."""

    # pylint: disable-next=too-many-arguments
    def machine(self, name, form, devices, one_context=False, lazy=False,
                dtb_edit=None):
        args = ["-global", f"arm-smmuv3.stage={form['smmu']}"]
        for n in range(2):
            args += ["-drive", f"if=none,id=d{n},format=raw,file=d{n}.img"]
        with Bed(f"test-machine-{name}", machine=form["machine"], disk_mb=0,
                 qemu_args=args, devices=devices, dtb_edit=dtb_edit,
                 xen_args=[f"dom0-viommu=strict={0 if lazy else 1}"]) as bed:
            disks = [Disk(bed, n) for n in range(2)]
            for d in disks:
                d.make()
            bed.boot()
            self.stage1(bed, form)
            self.assertEqual(disks[0].group == disks[1].group, one_context)
            self.contexts(bed)
            for d in disks:
                self.assertEqual(d.read(), d.host)
                self.assertEqual(*d.write())
            for d in disks:
                self.again(bed, d)
            # The other one was not disturbed.
            for d in disks:
                self.assertEqual(d.read(), d.host)
            self.contexts(bed)
            self.quiet(bed)
            self.assertEqual("polled every 20 ms" in bed.console,
                             bool(dtb_edit))

    def stage1(self, bed, form):
        """QEMU's SMMU is of the form that the test is about."""
        idr0 = int(re.search(r"IDR0 ([0-9a-f]{8})", bed.console)[1], 16)
        self.assertEqual(idr0 & 3, 3 if form is NESTED else 1)

    def contexts(self, bed):
        """Each function is an endpoint, each group a context."""
        functions = bed.run("ls /sys/bus/pci/devices | wc -l").strip()
        groups = bed.run("ls /sys/kernel/iommu_groups | wc -l").strip()
        count = bed.counters()["d0"]
        self.assertEqual(count["endpoints"], int(functions))
        self.assertEqual(count["contexts"], int(groups))

    def again(self, bed, disk):
        """Hot removal and rescan of one disk."""
        pci, before = disk.pci, bed.counters()["d0"]["endpoints"]
        bed.run(f"echo 1 > {pci}/remove")
        self.assertEqual(bed.counters()["d0"]["endpoints"], before - 1)
        bed.run("echo 1 > /sys/bus/pci/rescan")
        bed.run("n=0; while ! grep -q '^%s *$' /sys/block/nvme*/device/serial "
                "2>/dev/null && [ $n -lt 100 ]; do n=$((n + 1)); sleep 0.1; "
                "done" % disk.serial)
        self.assertEqual(disk.pci, pci)
        self.assertEqual(disk.read(), disk.host)
        self.assertEqual(*disk.write())

    def quiet(self, bed):
        """Nothing faulted, nothing went wrong."""
        count = bed.counters()
        for subject, names in (
                ("d0", ("faults", "errors", "broken", "cutoffs")),
                ("smmu0", ("events", "gerror", "dead", "cmdq_ill", "cmdq_abt",
                           "cmdq_timeout"))):
            for n in names:
                self.assertEqual(count[subject][n], 0, n)

    def test_nested_at_root(self):
        self.machine("nested-root", NESTED, AT_ROOT)

    def test_nested_behind_port(self):
        self.machine("nested-port", NESTED, BEHIND_PORT, lazy=True)

    def test_nested_one_context(self):
        self.machine("nested-group", NESTED, ONE_GROUP, one_context=True)

    def test_stage2_at_root(self):
        self.machine("stage2-root", STAGE2, AT_ROOT, lazy=True)

    def test_stage2_without_interrupt(self):
        self.machine("polled", STAGE2, AT_ROOT, dtb_edit=no_interrupt)

    def test_stage2_behind_port(self):
        self.machine("stage2-port", STAGE2, BEHIND_PORT)

    def test_stage2_one_context(self):
        self.machine("stage2-group", STAGE2, ONE_GROUP, one_context=True,
                     lazy=True)


if __name__ == "__main__":
    unittest.main()
