# SPDX-License-Identifier: GPL-2.0-only
"""dom0's NVMe on real Xen: the data is right and the counters exact, in each
mode; interrupts, hot removal, and bad command lines."""
import hashlib
import os
import re
import unittest

from bed import Bed
from demo import whole_boot
from measure import DISK, JOBS, measure, problems

HOST_MB = 16                    # written by the host, at the disk's start
DOM0_MB = 8                     # written by dom0, at WRITE_AT
WRITE_AT = 128
NVME = "/sys/bus/pci/devices/0000:00:01.0"


def host_data(bed):
    """Fill the start of the disk; return what dom0's md5sum must print."""
    data = os.urandom(HOST_MB << 20)
    with open(bed.disk, "r+b") as f:
        f.write(data)
    return hashlib.md5(data).hexdigest()


def dom0_md5(bed):
    bed.run("echo 3 > /proc/sys/vm/drop_caches")
    return md5sum(bed, f"dd if={DISK} bs=1M count={HOST_MB}")


def md5sum(bed, command):
    """The MD5 of what COMMAND prints in dom0."""
    text = bed.run(f"({command}) 2>/tmp/err | md5sum; cat /tmp/err")
    m = re.search(r"\b([0-9a-f]{32})  -$", text, re.M)
    if not m:
        raise AssertionError(f"no MD5 from '{command}': {text}")
    return m[1]


class Mode:
    # pylint: disable=no-member     # those of TestCase
    """The tests that each mode passes; one boot for all of them."""
    xen_args = dom0_args = ()
    strict = None               # what the dump of counters must show

    @classmethod
    def setUpClass(cls):
        cls.bed = Bed(f"test-{cls.__name__}", xen_args=cls.xen_args,
                      dom0_args=cls.dom0_args)
        cls.addClassCleanup(cls.bed.close)
        cls.md5 = host_data(cls.bed)
        cls.bed.boot()

    def test_1_flags(self):
        if self.strict is not None:
            self.assertEqual(self.bed.counters()["d0"]["strict"], self.strict)

    def test_2_reads_what_the_host_wrote(self):
        self.assertEqual(dom0_md5(self.bed), self.md5)

    def test_3_host_reads_what_dom0_wrote(self):
        bed = self.bed
        bed.run(f"dd if=/dev/urandom of=/tmp/r bs=1M count={DOM0_MB} "
                "2>/dev/null")
        want = md5sum(bed, "cat /tmp/r")
        bed.run(f"dd if=/tmp/r of={DISK} bs=1M seek={WRITE_AT} conv=fsync "
                "2>/dev/null")
        with open(bed.disk, "rb") as f:
            f.seek(WRITE_AT << 20)
            got = hashlib.md5(f.read(DOM0_MB << 20)).hexdigest()
        self.assertEqual(got, want)

    def test_4_random_write_verifies_and_counters_equal_the_trace(self):
        row = measure(self.bed, JOBS[2])
        row.update(xen_strict=self.strict, guest_strict=self.strict)
        self.assertEqual(problems(row), [])

    def test_5_remove_and_rescan(self):
        bed = self.bed
        bed.run(f"echo 1 > {NVME}/remove")
        self.assertNotEqual(bed.run(f"[ -e {DISK} ]", check=False)[0], 0)
        bed.run("echo 1 > /sys/bus/pci/rescan")
        bed.run_until(f"[ -b {DISK} ]")
        self.assertEqual(dom0_md5(bed), self.md5)

    def test_6_no_faults(self):
        self.assertEqual(whole_boot(self.bed), [])


class Strict(Mode, unittest.TestCase):
    xen_args = ["dom0-viommu=strict=1"]
    dom0_args = ["iommu.strict=1"]
    strict = 1


class Lazy(Mode, unittest.TestCase):
    xen_args = ["dom0-viommu=strict=0"]
    dom0_args = ["iommu.strict=0"]
    strict = 0


class Off(Mode, unittest.TestCase):
    xen_args = ["dom0-viommu=no"]

    def test_no_device(self):
        self.assertEqual(self.bed.run(
            "ls -d /sys/bus/virtio/devices/* 2>/dev/null | wc -l").strip(),
            "0")


class Interrupts(unittest.TestCase):
    """NVMe with INTx, which the bridge's interrupt-map routes."""

    @staticmethod
    def count(bed):
        """Interrupts of the NVMe's so far, all from a line of the GIC."""
        rows = bed.run("grep nvme /proc/interrupts").splitlines()
        cells = [r.split() for r in rows]
        if [c[3:4] + c[5:6] for c in cells] != [["GICv3", "Level"]]:
            raise AssertionError(f"not one level interrupt of the GIC: {rows}")
        return int(cells[0][1]) + int(cells[0][2])

    def test_intx(self):
        # Without shadow doorbells (dbcs): with them dom0 may take the last
        # completions without a word to QEMU's NVMe, which lowers its line only
        # when told.  Linux then takes 100,000 interrupts that nobody handles,
        # and switches them off; with any driver, and without an SMMU.
        with Bed("test-intx", dom0_args=["pci=nomsi"], nvme="dbcs=off") as bed:
            md5 = host_data(bed)
            bed.boot()
            before = self.count(bed)
            self.assertGreater(before, 0)
            self.assertEqual(dom0_md5(bed), md5)
            self.assertGreater(self.count(bed), before)
            # Linux goes on without interrupts, too: by polling, after a wait.
            self.assertEqual(bed.run("dmesg | grep -E 'nobody cared|Disabling "
                                     "IRQ|timeout, completion polled'; :"), "")


class CommandLine(unittest.TestCase):
    """Bad values of dom0-viommu: a message that names them all and what is
    used instead, which is strict."""

    def said(self, bed, what):
        self.assertIn(f"(XEN) pviommu: dom0-viommu: {what}\n", bed.console)

    def refused(self, bed, items, effect):
        quoted = ", ".join(f'"{i}"' for i in items)
        self.said(bed, f"not understood: {quoted}; allowed: <bool>, "
                       "strict=<bool>, bypass=<bool>; in effect: " + effect)

    def test_bad_values(self):
        for value, bad, effect in (
                ("strict=maybe", ["strict=maybe"], "yes,strict=1,bypass=1"),
                ("strict=0,bogus,bypass=0,,colour=2",
                 ["bogus", "", "colour=2"], "yes,strict=1,bypass=0")):
            with self.subTest(value), Bed(
                    "test-cmdline", xen_args=[f"dom0-viommu={value}"],
                    disk_mb=0) as bed:
                bed.boot()
                self.refused(bed, bad, effect)
                self.assertNotIn("no SMMUv3 is in use", bed.console)
                self.assertEqual(bed.counters()["d0"]["strict"], 1)

    def test_without_an_smmu(self):
        with Bed("test-cmdline-off", disk_mb=0,
                 xen_args=["iommu=off", "dom0-viommu=" + "a" * 90,
                           "dom0-viommu=" + "b" * 90]) as bed:
            bed.boot()
            self.assertRegex(bed.console, r'dom0-viommu: not understood: '
                             r'"a{90}", "b{20,35}\.\.\.; allowed')
            self.said(bed, "no SMMUv3 is in use, dom0 gets no virtio-iommu")


if __name__ == "__main__":
    unittest.main()
