# SPDX-License-Identifier: GPL-2.0-only
"""What a device must not reach, by QEMU's edu device: it reads or writes any
address on command, and has no driver in dom0."""
import re
import unittest

from bed import Bed

DMA_READ, DMA_WRITE = 1, 3      # edu's command register: start, direction
EDU_BUFFER = 0x40000
PATTERN = 0x1122334455667788
UNMAPPED = 0x7654000
LOG_SECONDS = 30
# What QEMU's SMMU traces when it answers a device.
SMMU_ANSWERS = [f"smmuv3_translate_{how}"
                for how in ("abort", "success", "bypass", "disable")]
# Memory of dom0's that Linux does not use, so that /dev/mem may show it.
LINUX_MB, SPARE_MB = 768, 800


class Edu:
    """The edu device of a booted bed, driven from dom0's shell."""

    device = "edu,dma_mask=0xffffffffffff"

    def __init__(self, bed, attach=False):
        """attach: give it a driver, for Linux attaches only what has one."""
        self.bed = bed
        self.path = bed.run("for d in /sys/bus/pci/devices/*; do grep -q "
                            "0x11e8 $d/device && echo $d; done").strip()
        if attach:
            bed.run("echo 1234 11e8 > "
                    "/sys/bus/pci/drivers/uio_pci_generic/new_id")
        else:
            bed.run(f"echo 1 > {self.path}/enable")
        # Memory space and bus master on.
        bed.run(f"printf '\\006' | dd of={self.path}/config bs=1 seek=4 "
                "conv=notrunc 2>/dev/null")
        self.bar = int(bed.run(f"head -1 {self.path}/resource").split()[0], 0)

    def dma(self, command, address, size=8):
        """One transfer between the device's buffer and ADDRESS."""
        ends = (address, EDU_BUFFER) if command == DMA_READ else \
            (EDU_BUFFER, address)
        for reg, value in ((0x80, ends[0]), (0x88, ends[1]), (0x90, size),
                           (0x98, command)):
            self.bed.run(f"devmem {self.bar + reg:#x} 64 {value:#x}")
        # It works after 100 ms, and then clears the command's lowest bit.
        self.bed.run_until(
            f"[ $(($(devmem {self.bar + 0x98:#x} 64) & 1)) = 0 ]")

    @property
    def rid(self):
        _, bus, dev, fn = re.split("[:.]", self.path.split("/")[-1])
        return int(bus, 16) << 8 | int(dev, 16) << 3 | int(fn, 16)


def spare_memory(bed):
    """An address in dom0's memory that Linux was told not to use."""
    cells = bed.run("od -An -v -tx1 /proc/device-tree/memory*/reg | "
                    "tr -d ' \\n'; echo").strip()
    base, size = int(cells[:16], 16), int(cells[16:32], 16)
    if size < (SPARE_MB + 1) << 20:
        raise AssertionError(f"dom0's first bank {base:#x}+{size:#x} is too "
                             "small for this test")
    return base + (SPARE_MB << 20)


def faults(bed):
    return bed.counters()["d0"]["faults"]


def logged(bed, start, what):
    """Wait for Xen's message of a fault that holds WHAT."""
    bed.expect(rf"\(XEN\).*pviommu: fault: .*{what}", LOG_SECONDS, start)


def write_by_dma(edu):
    """Let edu write to dom0's spare memory; return (did it arrive, address)."""
    bed, target = edu.bed, spare_memory(edu.bed)
    bed.run(f"devmem {target:#x} 64 {PATTERN:#x}")
    edu.dma(DMA_WRITE, target)
    value = int(bed.run(f"devmem {target:#x} 64"), 0)
    if value not in (0, PATTERN):       # edu's buffer is zero
        raise AssertionError(f"memory at {target:#x} holds {value:#x}")
    return value == 0, target


class NobodyAttached(unittest.TestCase):
    """dom0 without a driver for the virtio-iommu: nothing is attached."""

    @staticmethod
    def boot(bypass):
        bed = Bed(f"test-unattached-{bypass}", devices=[Edu.device], disk_mb=0,
                  xen_args=[f"dom0-viommu=bypass={bypass}"],
                  dom0_args=["bed.groups=xen", f"mem={LINUX_MB}M"])
        bed.boot()
        return bed

    def test_bypass_reaches_own_memory(self):
        """The control: with bypass the write arrives, so the test can tell."""
        with self.boot(1) as bed:
            before = faults(bed)
            self.assertTrue(write_by_dma(Edu(bed))[0])
            self.assertEqual(faults(bed), before)

    def test_blocked_without_bypass(self):
        with self.boot(0) as bed:
            before, start = faults(bed), len(bed.console)
            reached, target = write_by_dma(Edu(bed))
            self.assertFalse(reached)
            logged(bed, start, rf"at {target:#x}\b.*not attached")
            self.assertGreater(faults(bed), before)

    def test_removed_device_is_cut_off(self):
        """What dom0 gave up reaches nothing, though it reached all before."""
        with self.boot(1) as bed:
            edu = Edu(bed)
            self.assertTrue(write_by_dma(edu)[0])
            bed.run(f"echo 1 > {edu.path}/remove")
            start = len(bed.console)
            self.assertFalse(write_by_dma(edu)[0])
            logged(bed, start, rf"stream {edu.rid:#x} .*belongs to nobody")


class Attached(unittest.TestCase):
    """Linux attached the endpoint, and maps nothing: the fault arrives in the
    guest's event queue, and in Xen's log."""

    def test_fault_is_reported(self):
        with Bed("test-attached-fault", devices=[Edu.device], disk_mb=0,
                 xen_args=["dom0-viommu"],
                 dom0_args=["bed.groups=iommu,xen,uio"]) as bed:
            bed.boot()
            edu = Edu(bed, attach=True)
            before, start = faults(bed), len(bed.console)
            edu.dma(DMA_READ, UNMAPPED)
            logged(bed, start, rf"at {UNMAPPED:#x}\b.*attached by the guest")
            bed.run_until("dmesg | grep "
                          f"'fault from EP {edu.rid} at {UNMAPPED:#x}'")
            self.assertGreater(faults(bed), before)


class NoStage2(unittest.TestCase):
    """An SMMU that can't confine a guest is refused, and blocks."""

    def test_refused_and_blocking(self):
        # Since QEMU 9.2 a new machine's SMMU always has both stages.
        with Bed("test-no-stage2", devices=[Edu.device], disk_mb=0,
                 machine="virt-9.1", xen_args=["dom0-viommu"],
                 qemu_args=["-global", "arm-smmuv3.stage=1"],
                 dom0_args=["bed.groups=iommu,xen", f"mem={LINUX_MB}M"]
                 ) as bed:
            bed.boot()
            told = bed.expect(r"\(XEN\) pviommu: (\S+): .*stage.2.*"
                              r"IDR0 (0x[0-9a-f]+)", 0, 0)
            self.assertIn("smmuv3", told[1])
            self.assertEqual(int(told[2], 0) & 3, 2, "IDR0.S1P and not S2P")
            self.assertRegex(bed.console, r"\(XEN\) I/O virtuali[sz]ation "
                                          "disabled")
            # dom0 has neither the SMMU nor a virtio-iommu.
            self.assertEqual(bed.run("ls /sys/class/iommu"), "")
            bed.trace_on("smmu.trace", SMMU_ANSWERS)
            reached, target = write_by_dma(Edu(bed))
            self.assertFalse(reached)
            trace = (bed.dir / "smmu.trace").read_text()
            self.assertRegex(trace, f"translate_abort.*{target:#x}")
            self.assertNotRegex(trace, "translate_(success|bypass|disable)")


if __name__ == "__main__":
    unittest.main()
