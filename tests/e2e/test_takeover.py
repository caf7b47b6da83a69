# SPDX-License-Identifier: GPL-2.0-only
"""A firmware that left the SMMU and a device running (tests/firmware): from
Xen's first write on, nothing of it reaches memory."""
import re
import struct
import subprocess
import time
import unittest

import libfdt

from bed import ACCEL_ICOUNT, BUILD, RUN_SECONDS, Bed
from test_guests import END, GUEST, SECONDS, tap

FIRMWARE = BUILD / "guests/firmware.img"
# Where it lies and what it writes to: memory that Xen leaves alone.
AT, SIZE = 0x40200000, 0x100000
DEVFN = 0x80
UHCI = f"piix3-usb-uhci,addr={DEVFN >> 3:#x}"
FRAMES, TD_BYTES, ACTIVE = 1024, 16, 1 << 23
GBPA, ABORT = 0x44, 1 << 20
# One line for each access, and for each write to a register.
PASSED, STOPPED = ("success", "bypass", "disable"), ("abort", "event")
EVENTS = [f"smmuv3_translate_{o}" for o in (*PASSED, "abort")] + \
    ["smmuv3_record_event", "smmuv3_write_mmio"]


def descriptors():
    """Address of the controller's descriptors in the firmware."""
    out = subprocess.run(["aarch64-linux-gnu-nm", FIRMWARE.with_suffix(".elf")],
                         check=True, capture_output=True, text=True).stdout
    return int(re.search(r"^(\w+) \w td$", out, re.M)[1], 16)


def reserve(fdt):
    """Take the firmware's memory out of what Xen uses, and dom0 gets."""
    # pylint: disable-next=protected-access
    libfdt.check_err(libfdt.fdt_add_mem_rsv(fdt._fdt, AT, SIZE))


class TakeOver(unittest.TestCase):
    """The controller reads its list and writes into a descriptor each ms."""

    def bed(self, name, words, **kw):
        return Bed(f"test-takeover-{name}", firmware=FIRMWARE, kernel=GUEST,
                   dom0_args=["suite=smoke", "strict=1"], disk_mb=0,
                   devices=["edu,dma_mask=0xffffffffffffffff", UHCI],
                   # Or dom0 would have it: one to one within its memory.
                   xen_args=["dom0-viommu=bypass=0", *words],
                   dtb_edit=reserve,
                   accel=ACCEL_ICOUNT,
                   qemu_args=[x for e in EVENTS for x in ("-trace", e)], **kw)

    def untouched(self, bed):
        """Descriptors that the device has not written to yet."""
        bed.qmp_command("pmemsave", val=descriptors(), size=FRAMES * TD_BYTES,
                        filename="descriptors")
        data = (bed.dir / "descriptors").read_bytes()
        return sum(bool(struct.unpack_from("<I", data, i + 4)[0] & ACTIVE)
                   for i in range(0, len(data), TD_BYTES))

    @staticmethod
    def accesses(bed):
        """What became of the device's accesses: before Xen made the SMMU
        abort, and after it."""
        counts = [dict.fromkeys(PASSED + STOPPED, 0) for _ in range(2)]
        after = False
        access = re.compile(r"smmuv3_(?:translate_(\w+)|record_(event)) "
                            r".*sid=0x([0-9a-f]+)")
        write = re.compile(r"smmuv3_write_mmio addr: 0x([0-9a-f]+) "
                           r"val:0x([0-9a-f]+)")
        with open(bed.dir / "qemu.log", encoding="utf-8") as f:
            for line in f:
                m = access.match(line)
                if m and int(m[3], 16) == DEVFN:
                    counts[after][m[1] or m[2]] += 1
                    continue
                m = write.match(line)
                if m and int(m[1], 16) == GBPA and int(m[2], 16) & ABORT:
                    after = True
        assert after
        return counts

    def takes_over(self, name, words, found, outcome):
        with self.bed(name, words) as bed:
            bed.start()
            bed.expect(rf"^firmware: SMMU {name}\n", RUN_SECONDS, 0)
            bed.expect(r"pviommu: \S+: firmware left it " + found, RUN_SECONDS,
                       0)
            bed.expect(r"pviommu: .*bit StreamIDs", RUN_SECONDS, 0)
            left = self.untouched(bed)
            bed.expect(END, SECONDS, 0)
            for test, good, details in tap(bed.console):
                with self.subTest(test):
                    self.assertTrue(good, details)
            # The device was in the middle of it, and is still running.
            self.assertGreater(left, 0)
            self.assertLess(left, FRAMES)
            self.assertEqual(self.untouched(bed), left)
            bed.stop()
            before, after = self.accesses(bed)
            self.assertGreater(before.pop(outcome), 0)
            self.assertEqual(set(before.values()), {0})
            self.assertGreater(sum(after[k] for k in STOPPED), 0)
            self.assertEqual({k: after[k] for k in PASSED},
                             dict.fromkeys(PASSED, 0))

    def test_on(self):
        """Translating, one to one, with an error that nobody cleared."""
        self.takes_over("on", ["firmware=on"],
                        "on, its queues running, an error pending", "success")

    def test_off(self):
        self.takes_over("off", [], "off, DMA passing", "disable")

    def test_control(self):
        """Without a driver the same device reaches all of its memory."""
        with self.bed("control", ["iommu=no"]) as bed:
            bed.start()
            bed.expect(END, SECONDS, 0)
            end = time.monotonic() + RUN_SECONDS
            while self.untouched(bed):      # one more each ms
                self.assertLess(time.monotonic(), end, bed.tail())
                bed.receive(0.1)


if __name__ == "__main__":
    unittest.main()
