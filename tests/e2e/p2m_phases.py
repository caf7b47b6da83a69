# SPDX-License-Identifier: GPL-2.0-only
"""What the p2m of dom0 and of guests goes through, in phases, with the SMMU's
command trace over each.  For our driver and Xen's own, on the same machine."""
import re
import time

from bed import count_trace
from guest import BRIDGE, Guest, domains

DISK = "/dev/nvme0n1"
STREAM = 8                      # of the NVMe: bus 0, device 1, function 0
# Of dom0, and used by nothing else: bus 1.
DOM0_DEVICE, DOM0_STREAM = "/fw-cfg@9020000", 0x100
BALLOON = "/sys/devices/system/xen_memory/xen_memory0"
BALLOON_MB = 64
PAGES_PER_MB = 256
BOOT_TRACE = ("-trace", "smmuv3_cmdq_opcode")
READERS = 16
# The queue's age limit is 10 ms of the machine's time; nothing follows later.
REST_SECONDS = 1


def fixed_stream(fdt):
    """dtb_edit of a Bed: the NVMe's stream belongs to the bridge's owner from
    the start.  Xen 4.17's own driver doesn't know iommu-map.  Returns the
    SMMU's phandle."""
    node = fdt.path_offset(BRIDGE)
    smmu = bytes(fdt.getprop(node, "iommu-map"))[4:8]
    fdt.delprop(node, "iommu-map")
    fdt.setprop(node, "iommus", smmu + STREAM.to_bytes(4, "big"))
    return smmu


def fixed_stream_for_guest(fdt):
    """The same, a guest gets the bridge, and dom0 still has a device that
    translates with its p2m, as where there is more than one bridge."""
    smmu = fixed_stream(fdt)
    fdt.setprop(fdt.path_offset(BRIDGE), "xen,passthrough", b"")
    fdt.setprop(fdt.path_offset(DOM0_DEVICE), "iommus",
                smmu + DOM0_STREAM.to_bytes(4, "big"))


class Window:
    """with Window(bed, NAME) as w: ...; then w.tlbi, w.sync and, with our
    driver, w.causes: the syncs of each domain that is left, by cause."""

    def __init__(self, bed, name, *, counters, running=False):
        self.bed, self.counters = bed, counters
        # running: the trace was begun with the machine (BOOT_TRACE).
        self.file = "qemu.log" if running else f"{name}.trace"
        self.running = running
        self.tlbi = self.sync = 0
        self.causes, self.before = {}, {}

    def look(self):
        """{(domain, cause): syncs}"""
        if not self.counters:
            return {}
        return {(s, k.removeprefix("flush_")): v
                for s, keys in self.bed.counters().items()
                for k, v in keys.items() if k.startswith("flush_")}

    def __enter__(self):
        if not self.running:
            self.before = self.look()
            self.bed.trace_on(self.file)
        return self

    def __exit__(self, kind, *_):
        if kind:
            return
        # Not asleep: with a console that nobody reads QEMU's monitor hangs.
        end = time.monotonic() + REST_SECONDS
        while time.monotonic() < end:
            self.bed.receive(end - time.monotonic())
        # Counted first: a log that is opened anew is emptied.
        self.tlbi, self.sync = count_trace(self.bed.dir / self.file)
        self.bed.trace_off()
        self.causes = {f"{s} {k}": v - self.before.get((s, k), 0)
                       for (s, k), v in self.look().items()
                       if v != self.before.get((s, k), 0)}

    def row(self, ops, **more):
        return {"ops": ops, "tlbi": self.tlbi, "sync": self.sync,
                "causes": self.causes, **more}


def reserve(bed):
    """Pages that dom0 has."""
    return int(bed.run(f"cat {BALLOON}/info/current_kb")) // 4


def balloon(bed, pages):
    """Change dom0's memory by PAGES and wait until it is done."""
    want = (reserve(bed) + pages) * 4
    bed.run(f"echo {want} > {BALLOON}/target_kb")
    bed.run_until(f"[ $(cat {BALLOON}/info/current_kb) = {want} ]")


class PvGuest(Guest):
    """A guest with a PV disk on dom0's NVMe, without persistent grants."""

    def __init__(self, bed):
        super().__init__(bed, "small", "disk = [ 'format=raw,vdev=xvda,"
                         f"access=rw,script=/block,target={DISK}' ]\n")

    def load_backend(self):
        self.bed.run("insmod /modules/xen_blkback.ko feature_persistent=0")

    def load_frontend(self):
        self.run("insmod /modules/xen_blkfront.ko feature_persistent=0")
        self.run("until [ -b /dev/xvda ]; do usleep 100000; done")

    def create(self, options=""):
        self.load_backend()
        domid = super().create(options)
        self.load_frontend()
        return domid

    def read(self, count, size):
        """COUNT reads of SIZE bytes past the cache, READERS at a time, each in
        a place of its own, so that none are merged."""
        each = count // READERS
        # Looking costs the machine as much as many of these.
        self.poll = REST_SECONDS
        text = self.run(
            f"for i in $(seq {READERS}); do dd if=/dev/xvda of=/dev/null "
            f"bs={size} count={each} skip=$((i * {2 * each})) iflag=direct "
            "2>&1 & done; wait", seconds=400)
        done = len(re.findall(rf"^{each}\+0 records in", text, re.M))
        if done != READERS:
            raise AssertionError(f"{done} of {READERS} readers ended: {text}")


def created_and_destroyed(bed, name, window):
    """(window of xl create, window of xl destroy) of the guest NAME, which
    runs in between."""
    guest = Guest(bed, name, base=f"{name}.cfg")
    with window(f"create-{name}") as create:
        status, text = guest.try_create()
    if status:
        raise AssertionError(f"xl create: {text}")
    guest.wait("guest# ", 300)
    with window(f"destroy-{name}") as destroy:
        guest.destroy()
        if domains(bed):
            raise AssertionError("a guest is left")
    return create, destroy
