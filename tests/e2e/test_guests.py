# SPDX-License-Identifier: GPL-2.0-only
"""The bare-metal guest of tests/guests as dom0: its TAP lines are the results.

HOSTILE="seconds=600 seed=7" replaces how long the hostile guest goes on, and
with which seed: tests/guests/README.md."""
import os
import re
import struct
import subprocess
import unittest

from bed import ACCEL_ICOUNT, BUILD, Bed, die_with_parent

# Of one suite; only a hang takes longer, however busy the machine is.
SECONDS = 600
GUEST = BUILD / "guests/guest.img"
# Counters that are 0 when the guest has given back all it had.
LEFT = ("contexts", "pages", "tables", "pending", "pinned", "broken", "errors")
WRONG = ("cmdq_ill", "cmdq_abt", "cmdq_timeout", "event_overflow", "gerror",
         "dead")
END = r"^(1\.\.\d+|Bail out!.*)\n"
RESULT = re.compile(r"^(not )?ok (\d+) - (.*?)( # SKIP)?$", re.M)


def tap(text):
    """[(name, ok, details)] of a TAP stream; an incomplete one is an error."""
    bail = re.search(r"^Bail out!.*$", text, re.M)
    if bail:
        raise AssertionError(bail[0])
    plan = re.findall(r"^1\.\.(\d+)$", text, re.M)
    found = list(RESULT.finditer(text))
    numbers = [int(m[2]) for m in found]
    if len(plan) != 1 or numbers != list(range(1, int(plan[0]) + 1)):
        raise AssertionError(f"TAP is incomplete: plan {plan}, results "
                             f"{numbers[:1]}..{numbers[-1:]}, "
                             f"{len(numbers)} of them")
    out = []
    for m, after in zip(found, [*found[1:], None]):
        details = text[m.end():after.start() if after else len(text)]
        out.append((m[3], not m[1], "\n".join(
            l for l in details.splitlines() if l.startswith("# "))))
    return out


class Guests(unittest.TestCase):
    """Each suite, strict and lazy."""

    def suite(self, name, *, seconds=SECONDS, args=(), **kw):
        for strict in (1, 0):
            self.run_guest(name, strict, seconds, args, **kw)

    def run_guest(self, name, strict, seconds, args, after=None, allowed=(),
                  **kw):
        mode = "strict" if strict else "lazy"
        kw.setdefault("disk_mb", 0)
        kw.setdefault("devices", ["edu,dma_mask=0xffffffffffffffff"] * 2)
        xen_args = [f"dom0-viommu=strict={strict}", *kw.pop("xen_args", ())]
        with Bed(f"guest-{name}-{mode}", kernel=GUEST, xen_args=xen_args,
                 dom0_args=[f"suite={name}", f"strict={strict}", *args],
                 **kw) as bed:
            bed.start()
            bed.expect(END, seconds, 0)
            for test, good, details in tap(bed.console):
                with self.subTest(f"{mode}: {test}"):
                    self.assertTrue(good, f"{details}\n{bed.dir}/console.log")
            with self.subTest(f"{mode}: counters"):
                self.nothing_left(bed.counters(), allowed)
            if after:
                with self.subTest(f"{mode}: after it"):
                    after(bed)

    def nothing_left(self, counters, allowed):
        """All was given back, and nothing went wrong inside."""
        d0, smmu = counters["d0"], counters["smmu0"]
        self.assertEqual({k: d0[k] for k in LEFT if d0[k]}, {})
        self.assertEqual({k: smmu[k] for k in WRONG
                          if smmu[k] and k not in allowed}, {})
        # Each sync has a cause, none is counted twice or not at all.
        self.assertEqual(sum(v for k, v in d0.items()
                             if k.startswith("flush_")), d0["sync"])

    def test_smoke(self):
        self.suite("smoke")

    def test_conformance(self):
        self.suite("conformance", accel=ACCEL_ICOUNT)

    def test_dma(self):
        """Also with blocks of 1G, which needs memory for one."""
        self.suite("dma", accel=ACCEL_ICOUNT, memory=4096,
                   xen_args=["dom0_mem=2560M"])

    def test_behind_port(self):
        """The first edu is behind a root port, the second at the root."""
        edu = "edu,dma_mask=0xffffffffffffffff"
        self.suite("dma", accel=ACCEL_ICOUNT, memory=4096,
                   xen_args=["dom0_mem=2560M"],
                   devices=["pcie-root-port,id=rp,addr=1", f"{edu},bus=rp",
                            f"{edu},addr=2"])

    def test_foreign(self):
        """Pages of a second domain, which dom0 makes and never runs."""
        self.suite("foreign", accel=ACCEL_ICOUNT)

    def hostile(self, otherwise, **kw):
        args = os.environ.get("HOSTILE", otherwise).split()
        long = re.search(r"seconds=(\d+)", " ".join(args))
        seconds = SECONDS + 2 * int(long[1] if long else 0)
        self.suite("hostile", seconds=seconds, limit=seconds + 60, args=args,
                   after=self.log_is_limited,
                   xen_args=["dom0_max_vcpus=4", "guest_loglvl=none/warning"],
                   **kw)

    def test_hostile(self):
        """More vCPUs than CPUs: each is stopped in the middle of anything."""
        self.hostile("cases=4096 seed=1")

    def test_hostile_repeatable(self):
        """The same seed, the same run, to the last instruction."""
        self.hostile("cases=20480 seed=100", accel=ACCEL_ICOUNT)

    def test_replay(self):
        self.suite("replay", args=["n=8192"], accel=ACCEL_ICOUNT)

    def test_slices(self):
        """One CPU for both vCPUs."""
        # QEMU calls a full event queue one that can't be written.
        self.suite("slices", accel=ACCEL_ICOUNT, xen_args=["maxcpus=1"],
                   allowed=("event_overflow", "gerror"))

    def test_limits(self):
        """Little memory, so that it soon runs out."""
        self.suite("limits", accel=ACCEL_ICOUNT, memory=512,
                   xen_args=["dom0_mem=256M"])

    def log_is_limited(self, bed):
        """Xen lets 10 lines pass every 5 seconds, and says what it left out."""
        text = bed.console[bed.console.index("# suite hostile"):]
        took = int(re.search(r"cases in (\d+) ms", text)[1])
        lines = [l for l in text[:text.index("cases in")].splitlines()
                 if l.startswith("(XEN)")]
        self.assertLessEqual(len(lines), 11 * (took / 5000 + 2))


class WithoutXen(unittest.TestCase):
    """The conformance suite on QEMU's own virtio-iommu, without Xen: it tells
    where that device differs, and so that the suite can tell.  The list is in
    build/results/qemu-virtio-iommu.txt."""

    SLOT = "/virtio_mmio@a003e00"       # the one that QEMU fills first

    def setUp(self):
        self.dir = BUILD / "run/guest-without-xen"
        self.dir.mkdir(parents=True, exist_ok=True)

    def qemu(self, machine="", *more):
        # pylint: disable-next=subprocess-popen-preexec-fn
        return subprocess.run(
            ["qemu-system-aarch64", "-M", "virt,gic-version=3" + machine,
             "-cpu", "cortex-a57", "-smp", "2", "-m", "1024", *ACCEL_ICOUNT,
             "-display", "none", "-nodefaults", "-serial", "stdio",
             "-global", "virtio-mmio.force-legacy=false",
             "-global", "virtio-mmio.ioeventfd=off",
             "-device", "virtio-iommu-device,primary-bus=pcie.0",
             "-device", "edu", "-device", "edu", "-kernel", str(GUEST),
             "-append", "suite=conformance", *more],
            cwd=self.dir, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL, timeout=SECONDS, check=True, text=True,
            preexec_fn=die_with_parent).stdout

    def edit_tree(self):
        """QEMU describes no virtio-iommu on MMIO."""
        import libfdt           # pylint: disable=import-outside-toplevel
        self.qemu(",dumpdtb=qemu.dtb")
        fdt = libfdt.Fdt((self.dir / "qemu.dtb").read_bytes())
        fdt.resize(fdt.totalsize() + 4096)
        node = fdt.path_offset(self.SLOT)
        fdt.setprop_u32(node, "#iommu-cells", 1)
        fdt.setprop_u32(node, "phandle", 0x7777)
        fdt.setprop(fdt.path_offset("/pcie@10000000"), "iommu-map",
                    struct.pack(">4I", 0, 0x7777, 0, 0x10000))
        (self.dir / "edited.dtb").write_bytes(fdt.as_bytearray())

    def test_conformance(self):
        self.edit_tree()
        text = self.qemu("", "-dtb", "edited.dtb")
        (self.dir / "console.log").write_text(text)
        results = tap(text)
        differs = [name for name, good, _ in results if not good]
        out = BUILD / "results/qemu-virtio-iommu.txt"
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text("\n".join(differs) + "\n")
        for name, good, details in results:
            if name.startswith("transport: "):
                self.assertTrue(good, f"{name}\n{details}")
        # Both ways: it is a virtio-iommu, and it is not ours.
        self.assertGreater(len(results) - len(differs), len(differs))
        self.assertTrue(differs)


if __name__ == "__main__":
    unittest.main()
