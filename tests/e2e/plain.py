# SPDX-License-Identifier: GPL-2.0-only
"""The test bed without Xen: the same kernel and initramfs on the machine, with
an IOMMU of QEMU's or none, to compare with.

    with Plain("name", iommu="smmuv3", strict=0) as bed:
        bed.boot()
"""
from bed import ACCEL, BUILD, DOM0_ARGS, Bed, BedError

# What QEMU has, and what counts its work in the trace.
EVENTS = {None: (), "smmuv3": ("smmuv3_cmdq_opcode",),
          "virtio": ("virtio_iommu_map", "virtio_iommu_unmap",
                     "virtio_queue_notify")}


class Plain(Bed):
    def __init__(self, name, *, iommu=None, strict=1, accel=ACCEL, **options):
        """iommu: None, "smmuv3" or "virtio"; strict: Linux's iommu.strict."""
        super().__init__(name, accel=accel, **options)
        self.machine = "virt,gic-version=3,its=on"
        if iommu == "smmuv3":
            self.machine += ",iommu=smmuv3"
        if iommu == "virtio":
            self.devices.insert(0, "virtio-iommu-pci")
        self.events = EVENTS[iommu]
        args = [a for a in DOM0_ARGS if not a.startswith("console=")]
        self.args = ["console=ttyAMA0", *args, f"iommu.strict={strict}",
                     "iommu.passthrough=0", "bed.groups=iommu,disk"]

    def command(self):
        """As Bed's, with Linux in Xen's place."""
        kernel = BUILD / "dom0/Image"
        if not kernel.is_file():
            raise BedError(f"no {kernel}: run 'make dom0-image'")
        cmd = super().command()
        cmd[cmd.index("-kernel") + 1] = str(kernel)
        cmd[cmd.index("-append") + 1] = " ".join(self.args)
        return cmd

    def loaders(self):
        return ["-initrd", str(self.make_initrd())]
