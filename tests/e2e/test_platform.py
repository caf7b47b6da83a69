# SPDX-License-Identifier: GPL-2.0-only
"""A platform device: an endpoint by its StreamID, of dom0 and of guests.

QEMU's virt machine has none with DMA through the SMMU.  What the SMMU sees of a
device is its stream, though, so one of PCI's is given to a node of its own: an
edu with its registers at a fixed address, its configuration space, and the
StreamID that it has.  The bridge's iommu-map leaves it out."""
import re
import struct
import unittest

import libfdt

from bed import ACCEL_ICOUNT, Bed
from guest import BRIDGE, Guest, domains
from test_guests import GUEST, SECONDS, Guests, tap
from test_xl import domain_info, free_memory

SID = 0x10                      # device 2 of bus 0
BAR, BAR_SIZE = 0x30000000, 0x100000
CONFIG = 0x4010000000 + (SID << 12)
NODE = "/edu@30000000"
EDU = "edu,dma_mask=0xffffffffffffffff"


def cells(*values):
    return struct.pack(f">{len(values)}I", *values)


def platform_edu(fdt):
    """dtb_edit of a Bed."""
    bridge = fdt.path_offset(BRIDGE)
    phandle = int.from_bytes(bytes(fdt.getprop(bridge, "iommu-map"))[4:8],
                             "big")
    fdt.setprop(bridge, "iommu-map",
                cells(0, phandle, 0, SID, SID + 1, phandle, SID + 1,
                      0x10000 - SID - 1))
    node = fdt.add_subnode(0, NODE[1:])
    fdt.setprop_str(node, "compatible", "test,edu")
    fdt.setprop(node, "reg", struct.pack(">4Q", BAR, BAR_SIZE, CONFIG, 4096))
    fdt.setprop(node, "iommus", cells(phandle, SID))


class Dom0(Guests):
    """The suites of test_guests.py with such an endpoint."""

    # Not these again.
    test_smoke = test_conformance = test_dma = test_foreign = None
    test_hostile = test_hostile_repeatable = test_replay = None
    test_slices = test_limits = test_behind_port = None

    def platform(self, name, *args, others=1, **kw):
        self.suite(name, args=args, accel=ACCEL_ICOUNT, dtb_edit=platform_edu,
                   devices=[EDU] * others + [f"{EDU},addr={SID >> 3}"], **kw)

    def test_alone(self):
        self.platform("smoke", others=0)

    def test_conformant(self):
        self.platform("conformance", "platform_first=1")

    def test_reaches(self):
        """Beside one of PCI's, also in one context with it."""
        self.platform("dma", memory=4096, xen_args=["dom0_mem=2560M"])


def passed_edu(fdt):
    """dtb_edit: the same, for a guest."""
    platform_edu(fdt)
    fdt.setprop(fdt.path_offset(NODE), "xen,passthrough", b"")


def guest_tree():
    """What xl adds to the guest's device tree."""
    sw = libfdt.FdtSw()
    sw.finish_reservemap()
    with sw.add_node(""):
        sw.property_u32("#address-cells", 2)
        sw.property_u32("#size-cells", 2)
        with sw.add_node("passthrough"):
            sw.property_string("compatible", "simple-bus")
            sw.property("ranges", b"")
            sw.property_u32("#address-cells", 2)
            sw.property_u32("#size-cells", 2)
            with sw.add_node(NODE[1:]):
                sw.property_string("compatible", "test,edu")
                sw.property("reg", struct.pack(">4Q", BAR, BAR_SIZE, CONFIG,
                                               4096))
    return bytes(sw.as_fdt().as_bytearray())


class Passed(unittest.TestCase):
    """To an xl guest by dtdev, which is the guest of tests/guests."""

    CONFIG = f"""
kernel = "/guest/bare"
memory = 64
device_tree = "/guest/edu.dtb"
dtdev = [ "{NODE}" ]
iomem = [ "{BAR >> 12:#x},{BAR_SIZE >> 12:#x}", "{CONFIG >> 12:#x},1" ]
"""

    @classmethod
    def setUpClass(cls):
        cls.bed = Bed("test-platform", xl=True, disk_mb=0, dtb_edit=passed_edu,
                      devices=[f"{EDU},addr={SID >> 3}"],
                      files={"guest/bare": GUEST.read_bytes(),
                             "guest/edu.dtb": guest_tree()})
        cls.addClassCleanup(cls.bed.close)
        cls.bed.boot()
        cls.free = free_memory(cls.bed)

    def works(self, suite, config):
        """Three lives of a guest, with a look at each before it ends."""
        bed = self.bed
        for _ in range(3):
            guest = Guest(bed, "edu", self.CONFIG + f'extra = "suite={suite} '
                          f'strict=1"\n{config}', without=["ramdisk"])
            start = len(bed.console)
            status, text = guest.try_create()
            self.assertEqual(status, 0, text)
            self.addCleanup(bed.run, "xl destroy edu 2>/dev/null", check=False)
            bed.expect(r"\(d\d+\) (1\.\.\d+|Bail out!.*)\n", SECONDS, start)
            lines = re.findall(r"\(d\d+\) (.*\n)", bed.console[start:])
            for test, good, details in tap("".join(lines)):
                with self.subTest(test):
                    self.assertTrue(good, details)
            state = domain_info(bed, "edu")
            self.assertEqual([(e["kind"], e["id"], e["sid"], e["present"])
                              for e in state["endpoints"]],
                             [("dt", SID, SID, True)])
            guest.destroy()
            self.assertEqual(domains(bed), {})
            self.assertEqual(free_memory(bed), self.free)
        return state

    def test_virtio(self):
        state = self.works("smoke", 'iommu = "virtio"\n')
        self.assertEqual((state["type"], state["counters"]["errors"]),
                         ("virtio", 0))
        self.assertGreater(state["counters"]["req_attach"], 0)

    def test_none(self):
        state = self.works("direct", "")
        self.assertEqual((state["type"], state["counters"]["errors"]),
                         ("none", 0))
        # The one past the end of the guest's memory.
        self.assertGreater(state["counters"]["faults"], 0)


if __name__ == "__main__":
    unittest.main()
