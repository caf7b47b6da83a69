# SPDX-License-Identifier: GPL-2.0-only
"""However Xen ends, while a disk is being read: the SMMU is left blocking."""
import re
import time
import unittest

from bed import RUN_SECONDS, Bed

SMMU = 0x9050000                # QEMU's virt machine
CR0, CR0ACK, GBPA = 0x20, 0x24, 0x44
ABORT = 1 << 20


class Handover(unittest.TestCase):
    """Each way to the end, with the machine held where it would reset."""

    def register(self, bed, offset):
        text = bed.hmp(f"xp /1wx {SMMU + offset:#x}")
        return int(re.search(r": 0x([0-9a-f]+)", text)[1], 16)

    @staticmethod
    def runs(bed):
        return bed.qmp_command("query-status")["running"]

    def registers(self, bed):
        return [self.register(bed, r) for r in (CR0, CR0ACK, GBPA)]

    def blocked(self, bed):
        cr0, ack, gbpa = self.registers(bed)
        self.assertEqual((cr0 & 1, ack & 1, gbpa & ABORT), (0, 0, ABORT))

    def until(self, bed, condition):
        """Look until CONDITION() holds; on a busy machine that takes long."""
        end = time.monotonic() + RUN_SECONDS
        while not condition():
            self.assertLess(time.monotonic(), end, bed.tail())
            bed.receive(0.1)

    def hold(self, bed):
        """Let the machine stop where it would reset or go off."""
        bed.qmp_command("set-action", shutdown="pause", reboot="shutdown")

    def check(self, name, last_words, message, key=None):
        """LAST_WORDS: what dom0 runs; or KEY: pressed at Xen's console.
        MESSAGE of Xen must follow."""
        with Bed(f"test-handover-{name}", xen_args=["dom0-viommu"]) as bed:
            bed.boot()
            self.hold(bed)
            bed.run("while dd if=/dev/nvme0n1 of=/dev/null bs=1M; do :; done "
                    ">/dev/null 2>&1 &")
            # The control: translation is on, and there is DMA.
            self.assertEqual(self.register(bed, CR0ACK) & 1, 1)
            before = bed.counters()["smmu0"]["tlbi"]
            self.until(bed, lambda: bed.counters()["smmu0"]["tlbi"] > before)

            start = len(bed.console)
            if key:
                bed.send("\x01\x01\x01")
                bed.expect(r"input to Xen.*\n", RUN_SECONDS, start)
                bed.send(key)
            else:
                bed.send(last_words + "\n")
            bed.expect(message, RUN_SECONDS, start)
            self.until(bed, lambda: not self.runs(bed))
            self.blocked(bed)

    def test_reboot(self):
        self.check("reboot", "echo b > /proc/sysrq-trigger",
                   "Hardware Dom0 shutdown: rebooting machine")

    def test_power_off(self):
        self.check("off", "echo o > /proc/sysrq-trigger",
                   "Hardware Dom0 halted: halting machine")

    def test_panic(self):
        """Xen panics (no memory for dom0), in the seconds that it leaves for
        reading the message; the SMMU was enabled before."""
        with Bed("test-handover-panic", xen_args=["dom0_mem=64G"]) as bed:
            bed.start()
            self.hold(bed)
            bed.expect("pviommu: .*bit StreamIDs", RUN_SECONDS, 0)
            bed.expect("Panic on CPU 0", RUN_SECONDS, 0)
            bed.expect("Reboot in five seconds", RUN_SECONDS, 0)
            # Before the reset, which is five seconds away.
            self.until(bed, lambda: not self.register(bed, CR0ACK) & 1)
            self.assertTrue(self.runs(bed))
            self.blocked(bed)

    def test_key_of_xen(self):
        """Xen's own decision; nothing in dom0 knows of it."""
        self.check("key", None, "'R' pressed -> rebooting machine", key="R")


if __name__ == "__main__":
    unittest.main()
