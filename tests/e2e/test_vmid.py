# SPDX-License-Identifier: GPL-2.0-only
"""A VMID that had another owner before: a device of the new one must not hit
what the SMMU remembers of the former one.

A USB controller reads a word of its owner's memory each millisecond, for ever.
Its guest is destroyed, another takes that memory, a third one gets the
controller and the VMID, and never runs.  Where does the controller read?

Xen's own driver has the hole: in the former owner's memory."""
import os
import re
import time
import unittest
import unittest.mock

from bed import BUILD, RUN_SECONDS, Bed
from guest import Guest
from p2m_phases import STREAM, fixed_stream_for_guest

CODE = BUILD / "guests/uhci.img"
STOCK = BUILD / "xen-stock.img"
PAGE = 4096
SMMU, STRTAB_BASE, STRTAB_CFG = 0x9050000, 0x80, 0x88
TWO_LEVEL, ADDRESS = 1 << 16, ((1 << 52) - 1) & ~0x3f
SUCCESS = "smmuv3_translate_success"
READ = re.compile(SUCCESS + rf" .*sid={STREAM:#x} iova=(0x[0-9a-f]+) "
                  r"translated=(0x[0-9a-f]+)")


class Vmid(unittest.TestCase):
    """Our driver, and Xen's own as the control."""

    def guest(self, bed, name, word, config="", base="pci.cfg"):
        """A guest whose controller reads WORD; bit 0 says: nothing follows."""
        octal = "".join(f"\\{b:03o}" for b in word.to_bytes(4, "little"))
        bed.run(f"(cat /tmp/code; for i in $(seq {PAGE // 4}); do "
                f"printf '{octal}'; done) > /tmp/{name}.img")
        return Guest(bed, name, base=base, without=["ramdisk", "extra"],
                     config=f'kernel = "/tmp/{name}.img"\n' + config)

    def passed(self, bed, name, word, memory):
        return self.guest(bed, name, word, f"memory = {memory}\nirqs = []\n"
                          'iomem = [ "0x4010000,0x200", "0x3eff1,1" ]\n')

    @staticmethod
    def xp(bed, address, size="g"):
        return int(re.search(r": (0x[0-9a-f]+)",
                             bed.hmp(f"xp /1{size}x {address:#x}"))[1], 16)

    def vmid(self, bed):
        """What the controller's stream table entry names."""
        base = self.xp(bed, SMMU + STRTAB_BASE) & ADDRESS
        if self.xp(bed, SMMU + STRTAB_CFG, "w") & TWO_LEVEL:
            base = self.xp(bed, base) & ADDRESS
        return self.xp(bed, base + STREAM * 64 + 16) & 0xffff

    def read(self, bed, start):
        """Wait for a read that passes after START of the trace: (IOVA,
        address)."""
        end = time.monotonic() + RUN_SECONDS
        while True:
            text = (bed.dir / "qemu.log").read_text()
            m = READ.search(text, start)
            if m:
                return int(m[1], 16), int(m[2], 16)
            self.assertLess(time.monotonic(), end, "no read by the device")
            bed.receive(0.1)

    def reuse(self, name):
        with Bed(f"test-vmid-{name}", xl=True, disk_mb=0, xen_args=["iommu=yes"],
                 devices=[f"piix3-usb-uhci,addr={STREAM >> 3}"],
                 dtb_edit=fixed_stream_for_guest,
                 qemu_args=["-trace", SUCCESS]) as bed:
            bed.boot()
            code = "".join(f"\\{b:03o}" for b in
                           CODE.read_bytes().rstrip(b"\0"))
            bed.run(f"printf '{code}' > /tmp/code; truncate -s {PAGE} /tmp/code")

            former = self.passed(bed, "former", 0xa001, 64)
            self.create(former)
            iova, memory = self.read(bed, 0)
            self.assertEqual(self.xp(bed, memory, "w"), 0xa001)
            vmid = self.vmid(bed)
            former.destroy()
            end = (bed.dir / "qemu.log").stat().st_size

            # Takes what the former one had, so that the next one can't.
            self.create(self.guest(bed, "other", 0xb001, "memory = 512\n",
                                   base="small.cfg"), "-p")
            self.create(self.passed(bed, "next", 0xc001, 64), "-p")
            self.assertEqual(self.vmid(bed), vmid)
            again, now = self.read(bed, end)
            self.assertEqual(again // PAGE, iova // PAGE)
            return memory // PAGE, now // PAGE, self.xp(bed, now, "w")

    def create(self, guest, options=""):
        status, text = guest.try_create(options)
        self.assertEqual(status, 0, text)

    def test_ours(self):
        """The new owner's memory is read."""
        former, now, word = self.reuse("ours")
        self.assertEqual(word, 0xc001)
        self.assertNotEqual(now, former)

    def test_control(self):
        """With Xen's own driver it is the former owner's."""
        if not STOCK.is_file():
            self.skipTest(f"no {STOCK}: make xen-stock")
        with unittest.mock.patch.dict(os.environ, XEN_IMAGE=str(STOCK)):
            former, now, word = self.reuse("stock")
        self.assertEqual(now, former)
        self.assertEqual(word, 0xb001)


if __name__ == "__main__":
    unittest.main()
