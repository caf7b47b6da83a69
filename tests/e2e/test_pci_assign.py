# SPDX-License-Identifier: GPL-2.0-only
"""A PCI function changes hands, on a Xen with PCI support of its own (4.21
and later, CONFIG_PCI_PASSTHROUGH): away from dom0 it reaches nothing."""
import base64
import errno
import os
import subprocess
import unittest
from pathlib import Path

from bed import Bed
from test_isolation import (DMA_WRITE, LINUX_MB, PATTERN, Edu, faults,
                            spare_memory)

SOURCE = Path(__file__).with_name("pciassign.c")
DOMID_IO = 0x7ff1               # owns what is quarantined
FLAGS = ["-Os", "-Wall", "-Werror", "-ffreestanding", "-nostdlib", "-static",
         "-fno-stack-protector", "-mgeneral-regs-only", "-s"]


def install(bed):
    """Build pciassign and put it into the booted dom0."""
    exe = bed.dir / "pciassign"
    subprocess.run([os.environ.get("CROSS_COMPILE", "aarch64-linux-gnu-")
                    + "gcc", *FLAGS, "-o", exe, SOURCE], check=True)
    text = base64.b64encode(exe.read_bytes()).decode()
    bed.run(f"echo {text} | base64 -d > /bin/pciassign; "
            "chmod +x /bin/pciassign")


class PciAssign(unittest.TestCase):
    def test_quarantine_and_back(self):
        with Bed("test-pci-assign", devices=[Edu.device], disk_mb=0,
                 xen_args=["dom0-viommu"],
                 dom0_args=["bed.groups=xen", f"mem={LINUX_MB}M"]) as bed:
            bed.boot()
            install(bed)
            edu, target = Edu(bed), spare_memory(bed)

            def change(how):
                return bed.run(f"pciassign {how} {DOMID_IO:x} {edu.rid:x}",
                               check=False)[0]

            def reaches():
                bed.run(f"devmem {target:#x} 64 {PATTERN:#x}")
                edu.dma(DMA_WRITE, target)
                return int(bed.run(f"devmem {target:#x} 64"), 0) != PATTERN

            self.assertTrue(reaches())
            endpoints = bed.counters()["d0"]["endpoints"]
            rc = change("a")
            if rc in (errno.ENODEV, errno.ENOSYS, errno.EOPNOTSUPP):
                self.skipTest("this Xen has no PCI support on Arm")
            self.assertEqual(rc, 0)
            self.assertFalse(reaches())
            self.assertEqual(bed.counters()["d0"]["endpoints"], endpoints - 1)
            self.assertEqual(faults(bed), 0, "dom0 is blamed")
            self.assertEqual(change("d"), 0)
            self.assertTrue(reaches())
            self.assertEqual(bed.counters()["d0"]["endpoints"], endpoints)


if __name__ == "__main__":
    unittest.main()
