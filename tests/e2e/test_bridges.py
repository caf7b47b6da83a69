# SPDX-License-Identifier: GPL-2.0-only
"""Two PCI host bridges behind one SMMU, in two guests.

QEMU's second root bus has no node of its own: the tree is edited so that the
configuration space and the windows are two bridges', buses 0x80 on the second
one's."""
import hashlib
import os
import struct
import unittest

from bed import Bed
from guest import BRIDGE, Guest, domains
from test_platform import cells
from test_xl import DISK, domain_info, free_memory, info

SECOND = "/pcie@20000000"
DISK_MB, DATA_MB = 32, 4
BUS = 0x80
CONFIG = 0x4010000000
RID = (BUS + 1) << 8            # the disk, behind the port
DEVICES = {
    "first": f"""
dtdev = [ "{BRIDGE}" ]
device_tree = "/guest/pci.dtb"
iomem = [ "0x4010000,0x200", "0x10000,0x200" ]
irqs = [ 36 ]
""",
    "second": f"""
dtdev = [ "{SECOND}" ]
device_tree = "/guest/pci2.dtb"
iomem = [ "0x4018000,0x200", "0x20000,0x200" ]
irqs = [ 35 ]
"""}


def two_bridges(fdt):
    """dtb_edit of a Bed."""
    node = fdt.path_offset(BRIDGE)
    old = bytes(fdt.getprop(node, "iommu-map"))
    smmu = int.from_bytes(old[4:8], "big")
    half = BUS << 8
    fdt.setprop(node, "xen,passthrough", b"")
    fdt.setprop(node, "reg", struct.pack(">2Q", CONFIG, half << 12))
    fdt.setprop(node, "bus-range", cells(0, BUS - 1))
    fdt.setprop(node, "iommu-map", cells(0, smmu, 0, half))
    fdt.setprop_u32(node, "linux,pci-domain", 0)

    node = fdt.add_subnode(0, SECOND[1:])
    for name, value in (
            ("compatible", b"pci-host-ecam-generic\0"),
            ("device_type", b"pci\0"), ("xen,passthrough", b""),
            ("dma-coherent", b""),
            ("reg", struct.pack(">2Q", CONFIG + (half << 12), half << 12)),
            ("bus-range", cells(BUS, 0xff)),
            ("#address-cells", cells(3)), ("#size-cells", cells(2)),
            ("ranges", cells(0x02000000, 0, 0x20000000, 0, 0x20000000,
                             0, 0x10000000)),
            ("iommu-map", cells(half, smmu, half, half)),
            ("linux,pci-domain", cells(1))):
        fdt.setprop(node, name, value)


class Bridges(unittest.TestCase):
    """Each guest has a bridge and a disk behind it."""

    @classmethod
    def setUpClass(cls):
        cls.bed = bed = Bed(
            "test-bridges", xl=True, disk_mb=DISK_MB, dtb_edit=two_bridges,
            devices=[f"pxb-pcie,bus_nr={BUS},id=pxb,bus=pcie.0,addr=8",
                     "pcie-root-port,id=rp,bus=pxb,addr=0",
                     "nvme,serial=second,drive=second,bus=rp"],
            qemu_args=["-drive", "if=none,id=second,format=raw,"
                                 "file=second.img"])
        cls.addClassCleanup(bed.close)
        cls.md5 = {}
        for name, path in (("first", bed.disk),
                           ("second", bed.dir / "second.img")):
            data = os.urandom(DATA_MB << 20)
            path.write_bytes(data)
            os.truncate(path, DISK_MB << 20)
            cls.md5[name] = hashlib.md5(data).hexdigest()
        bed.boot()
        cls.free = free_memory(bed)

    def create(self, name, option):
        guest = Guest(self.bed, name, DEVICES[name] + f'iommu = "{option}"\n',
                      base="pci.cfg")
        self.addCleanup(self.bed.run, f"xl destroy {name} 2>/dev/null",
                        check=False)
        guest.create()
        return guest

    def works(self, guest):
        text = guest.run(f"dd if={DISK} bs=1M count={DATA_MB} iflag=direct "
                         "2>/dev/null | md5sum")
        self.assertEqual(text.split()[0], self.md5[guest.name])

    def test_two_guests(self):
        """Lazy and strict, and one goes on when the other ends."""
        first = self.create("first", "virtio")
        second = self.create("second", "virtio,strict=0")
        self.works(first)
        self.works(second)
        # The second's ids begin at its segment.
        for guest, epid, sid in ((first, 8, 8),
                                 (second, 0x10000 + RID, RID)):
            mine = [e for e in domain_info(self.bed, guest.name)["endpoints"]
                    if e["kind"] == "pci"]
            self.assertIn((epid, sid), [(e["id"], e["sid"]) for e in mine])
        first.destroy()
        self.works(second)
        first = self.create("first", "virtio")
        self.works(first)
        second.destroy()
        self.works(first)
        first.destroy()
        self.gone()

    def test_one_without(self):
        first = self.create("first", "virtio")
        second = self.create("second", "type=none")
        self.works(second)
        self.works(first)
        second.destroy()
        first.destroy()
        self.gone()

    def gone(self):
        self.assertEqual(domains(self.bed), {})
        self.assertEqual(free_memory(self.bed), self.free)
        state = info(self.bed)
        self.assertEqual([d["domid"] for d in state["domains"]], [0])
        self.assertEqual(state["smmus"][0]["counters"]["events"], 0)


if __name__ == "__main__":
    unittest.main()
