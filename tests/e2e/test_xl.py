# SPDX-License-Identifier: GPL-2.0-only
"""xl in dom0: guests come and go without a trace, the PCI host bridge passed
through with and without virtio-iommu, iommu-info and iommu-strict, bad input."""
import hashlib
import json
import os
import unittest
import unittest.mock

from bed import BUILD, Bed
from guest import BRIDGE, Guest, domains, pass_bridge

DATA_MB = 8
WRITE_AT_MB = 16
DISK = "/dev/nvme0n1"
STOCK = BUILD / "xen-stock.img"
NO_DRIVER = "this Xen does not have the SMMUv3 driver with virtio-iommu"
# Each time killed while its NVMe is busy.
LIVES = int(os.environ.get("LIVES", "3"))   # make soak: 20
BUSY_MAPS = 100                 # so many MAPs are not from the driver's start


def free_memory(bed):
    return bed.run("xl info free_memory").strip()


def info(bed, domain=""):
    return json.loads(bed.run(f"xl iommu-info -j {domain}"))


def domain_info(bed, domain):
    return info(bed, domain)["domains"][0]


class Small(unittest.TestCase):
    """A guest without devices."""

    @classmethod
    def setUpClass(cls):
        cls.bed = Bed("test-xl", xl=True, disk_mb=0)
        cls.addClassCleanup(cls.bed.close)
        cls.bed.boot()

    def test_create_use_destroy(self):
        bed = self.bed
        free = free_memory(bed)
        guest = Guest(bed, "small")
        domid = guest.create()
        self.assertEqual(domains(bed), {"small": domid})
        self.assertIn("rdinit=/init", guest.run("cat /proc/cmdline"))
        self.assertNotEqual(guest.run("false", check=False)[0], 0)
        self.assertEqual(guest.run("nproc").strip(), "1")
        # What the debug key prints is there, too.
        state = info(bed)
        for subject, names in bed.counters().items():
            of = state["smmus" if subject.startswith("smmu") else "domains"]
            mine = next(o for o in of if subject in (f"smmu{o.get('index')}",
                                                     f"d{o.get('domid')}"))
            self.assertEqual(
                {n for n in names if n not in (*mine, *mine["counters"],
                                               "contexts", "endpoints",
                                               "viommu")}, set())
        # It has no IOMMU, and that is said.
        status, text = bed.run("xl iommu-info small 2>&1", check=False)
        self.assertNotEqual(status, 0)
        self.assertIn("no IOMMU", text)
        guest.destroy()
        self.assertEqual(domains(bed), {})
        self.assertEqual(free_memory(bed), free)
        # Nothing is left for a second one of that name to stumble over.
        guest.create()
        guest.destroy()
        self.assertEqual(domains(bed), {})


class Bridge(unittest.TestCase):
    """The machine's PCI host bridge in a guest.  One boot for all."""

    @classmethod
    def setUpClass(cls):
        cls.bed = Bed("test-xl-bridge", xl=True, disk_mb=64,
                      dtb_edit=pass_bridge, limit=3600)
        cls.addClassCleanup(cls.bed.close)
        data = os.urandom(DATA_MB << 20)
        with open(cls.bed.disk, "r+b") as f:
            f.write(data)
        cls.md5 = hashlib.md5(data).hexdigest()
        cls.bed.boot()
        cls.free = free_memory(cls.bed)

    def setUp(self):
        self.addCleanup(self.bed.run, "xl destroy pci 2>/dev/null", check=False)

    def guest(self, config=""):
        return Guest(self.bed, "pci", config, base="pci.cfg")

    def works(self, guest):
        """The guest reads what the host wrote, and the other way round."""
        read = guest.run(f"dd if={DISK} bs=1M count={DATA_MB} iflag=direct "
                         "2>/dev/null | md5sum")
        self.assertEqual(read.split()[0], self.md5)
        want = guest.run("dd if=/dev/urandom of=/tmp/r bs=1M count=4 "
                         "2>/dev/null; md5sum < /tmp/r").split()[0]
        guest.run(f"dd if=/tmp/r of={DISK} bs=64k seek={WRITE_AT_MB * 16} "
                  "conv=fsync 2>/dev/null")
        with open(self.bed.disk, "rb") as f:
            f.seek(WRITE_AT_MB << 20)
            self.assertEqual(hashlib.md5(f.read(4 << 20)).hexdigest(), want)

    def gone(self):
        """Nothing is left of guests, and nothing went wrong."""
        self.assertEqual(domains(self.bed), {})
        self.assertEqual(free_memory(self.bed), self.free)
        state = info(self.bed)
        self.assertEqual([d["domid"] for d in state["domains"]], [0])
        for smmu in state["smmus"]:
            self.assertFalse(smmu["dead"])
            bad = {k: v for k, v in smmu["counters"].items()
                   if v and k not in ("tlbi", "sync", "cfgi")}
            self.assertEqual(bad, {})

    def test_none(self):
        guest = self.guest()
        guest.create()
        self.works(guest)
        state = domain_info(self.bed, "pci")
        self.assertEqual((state["type"], state["strict"]), ("none", True))
        self.assertEqual([e["kind"] for e in state["endpoints"]], ["bridge"])
        guest.destroy()
        self.gone()

    def test_none_lazy(self):
        """strict=0 is for the p2m path, too."""
        guest = self.guest('iommu = "strict=0"\n')
        guest.create()
        self.works(guest)
        state = domain_info(self.bed, "pci")
        self.assertEqual((state["type"], state["strict"]), ("none", False))
        guest.destroy()
        self.gone()

    def virtio(self, config, strict):
        guest = self.guest(f'iommu = "{config}"\n')
        guest.create()
        self.assertRegex(guest.run("dmesg"), r"nvme.*Adding to iommu group")
        self.works(guest)
        state = domain_info(self.bed, "pci")
        self.assertEqual((state["type"], state["strict"], state["bypass"]),
                         ("virtio", strict, True))
        # The guest's id of a function is its RID.
        mine = [e for e in state["endpoints"] if e["kind"] == "pci"]
        self.assertEqual([(e["id"], e["sid"]) for e in mine], [(8, 8)])
        self.assertIn(mine[0]["context"], [c["id"] for c in state["contexts"]])
        count = state["counters"]
        self.assertGreater(count["req_unmap"], 0)
        self.assertEqual((count["req_bad"], count["faults"], count["errors"]),
                         (0, 0, 0))
        # Each sync has a cause, and lazy unmaps never wait on their own.
        self.assertEqual(sum(v for k, v in count.items()
                             if k.startswith("flush_")), count["sync"])
        (self.assertGreater if strict else self.assertEqual)(
            count["flush_strict"], 0)
        return guest

    def test_virtio_strict(self):
        self.virtio("virtio", True).destroy()
        self.gone()

    def test_virtio_lazy_and_switched_live(self):
        bed = self.bed
        guest = self.virtio("type=virtio,strict=off,pool=8M", False)
        for word, strict in (("on", True), ("off", False)):
            bed.run(f"xl iommu-strict pci {word}")
            before = domain_info(bed, "pci")
            self.assertEqual(before["strict"], strict)
            self.works(guest)
            after = domain_info(bed, "pci")["counters"]
            grown = after["flush_strict"] - before["counters"]["flush_strict"]
            (self.assertGreater if strict else self.assertEqual)(grown, 0)
            # It survives in what a reboot of the guest would use.
            saved = json.loads(bed.run("xl list -l pci"))
            saved = saved[0] if isinstance(saved, list) else saved
            self.assertEqual(
                saved["config"]["b_info"]["arch_arm"]["iommu"]["strict"],
                str(strict))
        guest.destroy()
        self.gone()

    def test_without_bypass_the_guest_blocks_until_it_attaches(self):
        guest = self.guest('iommu = "virtio,bypass=0"\n')
        guest.create()
        self.works(guest)
        self.assertFalse(domain_info(self.bed, "pci")["bypass"])
        guest.destroy()
        self.gone()

    def test_last_line_counts(self):
        """As with all keys of xl's, which the command line may give anew."""
        guest = self.guest('iommu = "virtio"\niommu = "strict=0"\n')
        status, text = guest.try_create("-p")
        self.assertEqual(status, 0, text)
        state = domain_info(self.bed, "pci")
        self.assertEqual((state["type"], state["strict"]), ("none", False))
        guest.destroy()
        self.gone()

    def test_killed_while_busy_again_and_again(self):
        bed = self.bed
        for i in range(LIVES):
            guest = self.guest(f'iommu = "virtio,strict={i % 2}"\n'
                               'extra = "console=hvc0 rdinit=/init quiet '
                               'guest.busy"\n')
            status, text = guest.try_create()
            self.assertEqual(status, 0, text)
            bed.run("while [ $(xl iommu-info pci | sed -n "
                    "'s/.*req_map=\\([0-9]*\\).*/\\1/p') -lt "
                    f"{BUSY_MAPS} ]; do usleep 200000; done",
                    seconds=600)
            guest.destroy()
        self.gone()
        # What the last one left to the next: nothing that disturbs.
        guest = self.guest('iommu = "virtio"\n')
        guest.create()
        self.works(guest)
        guest.destroy()
        self.gone()


IRQS = ", ".join(map(str, range(33, 44)))


class BadInput(unittest.TestCase):
    """Each has its own message, and leaves nothing behind."""
    # base, lines for xl, what must be said
    TABLE = (
        ("small", 'iommu = "virtio"', "no device is passed through"),
        ("small", 'iommu = "strict=0"', "no IOMMU, as nothing is passed"),
        ("pci", 'iommu = "smmu"', '"smmu".*type, strict, bypass, pool'),
        ("pci", 'iommu = "strict=maybe"', 'strict: "maybe".*0, 1, false'),
        ("pci", 'iommu = "pool=1K"', 'pool: "1K".*64K'),
        ("pci", 'iommu = "virtio,type=none"', "type is given twice"),
        ("pci", 'iommu = "virtio,pool=64G"', "pool of 67108864 KiB.*free"),
        ("pci", 'iommu = "virtio"\ndtdev = [ "/pcie@10000000", '
                '"/pcie@10000000" ]', "/pcie@10000000 is given twice"),
        ("pci", 'iommu = "virtio"\ndtdev = [ "" ]', "not the path of a node"),
        ("pci", 'iommu = [ "virtio" ]', "must be one string"),
        ("pci", 'iommu = "bypass=0"', "bypass=0 needs type=virtio"),
        ("pci", 'iommu = "pool=1M"', "pool needs type=virtio"),
        ("pci", 'iommu = "virtio"\npassthrough = "disabled"',
         "passthrough disabled"),
        ("pci", 'iommu = "virtio"\ndtdev = [ "/nothing@0" ]',
         "/nothing@0: the host's device tree has no such node"),
        ("pci", 'iommu = "virtio"\ndtdev = [ "/pl011@9000000" ]',
         "/pl011@9000000: no SMMUv3"),
        ("pci", f'iommu = "virtio"\nirqs = [ {IRQS} ]',
         "no interrupt is left"),
        ("pci", 'iommu = "virtio"\niomem = [ "0x10000,1@0x20ff" ]',
         "over the virtio-iommu's registers.*@GFN"),
    )

    @classmethod
    def setUpClass(cls):
        cls.bed = Bed("test-xl-bad", xl=True, disk_mb=0, dtb_edit=pass_bridge)
        cls.addClassCleanup(cls.bed.close)
        cls.bed.boot()

    def refused(self, base, lines, says, without=()):
        before = domains(self.bed), free_memory(self.bed)
        guest = Guest(self.bed, "bad", lines + "\n", base=f"{base}.cfg",
                      without=without)
        status, text = guest.try_create()
        self.assertNotEqual(status, 0, text)
        self.assertRegex(text.replace("\n", " "), says)
        self.assertEqual((domains(self.bed), free_memory(self.bed)), before)
        self.assertTrue(self.bed.running())

    def test_table(self):
        for base, lines, says in self.TABLE:
            with self.subTest(lines):
                self.refused(base, lines, says)

    def test_no_device_tree(self):
        self.refused("pci", 'iommu = "virtio"', "dtdev needs device_tree",
                     without=["device_tree"])

    def test_device_of_another_guest(self):
        owner = Guest(self.bed, "owner", 'iommu = "virtio"\n', base="pci.cfg")
        status, text = owner.try_create()
        self.assertEqual(status, 0, text)
        self.addCleanup(owner.destroy)
        domid = domains(self.bed)["owner"]
        self.refused("pci", 'iommu = "virtio"\niomem = []\nirqs = []',
                     f"{BRIDGE}: assigned already, to domain {domid}")

    def test_commands(self):
        for command, says in (
                ("iommu-strict Domain-0 maybe", '"maybe".*on, off'),
                ("iommu-strict Domain-0", "Usage|usage"),
                ("iommu-strict nobody on", "invalid domain"),
                ("iommu-info nobody", "invalid domain"),
                ("iommu-info 0 1", "Usage|usage"),
                ("iommu-strict 0 on more", "Usage|usage"),
                ("iommu-info 99", '"99": no such domain'),
                ("iommu-info 65536", "no such domain"),
                ("iommu-strict 32752 off", "no such domain"),
                ("iommu-strict 4294967296 off", "no such domain"),
                ("iommu-strict '' off", '"": no such domain')):
            with self.subTest(command):
                status, text = self.bed.run(f"xl {command} 2>&1", check=False)
                self.assertNotEqual(status, 0)
                self.assertRegex(text, says)


class Stock(unittest.TestCase):
    """A Xen without the driver: Debian's, built with its own for the SMMUv3."""

    @classmethod
    def setUpClass(cls):
        if not STOCK.is_file():
            raise unittest.SkipTest(f"no {STOCK}: make xen-stock")
        with unittest.mock.patch.dict(os.environ, XEN_IMAGE=str(STOCK)):
            cls.bed = Bed("test-xl-stock", xl=True, disk_mb=0,
                          dtb_edit=pass_bridge)
            cls.addClassCleanup(cls.bed.close)
            cls.bed.boot()

    def test_commands(self):
        for command in ("iommu-info", "iommu-info -j", "iommu-info Domain-0",
                        "iommu-strict Domain-0 on"):
            with self.subTest(command):
                status, text = self.bed.run(f"xl {command} 2>&1", check=False)
                self.assertNotEqual(status, 0)
                self.assertIn(NO_DRIVER, text)

    def test_guests(self):
        """Refused where the option asks for the driver, and nothing is left;
        those without the option are as before."""
        bed = self.bed
        free = free_memory(bed)
        for base, lines in (("pci", 'iommu = "virtio"'),
                            ("pci", 'iommu = "strict=0"')):
            with self.subTest(lines):
                status, text = Guest(bed, "bad", lines + "\n",
                                     base=f"{base}.cfg").try_create()
                self.assertNotEqual(status, 0)
                self.assertIn(NO_DRIVER, text)
                self.assertEqual((domains(bed), free_memory(bed)), ({}, free))
        guest = Guest(bed, "small")
        guest.create()
        guest.destroy()
        self.assertEqual(domains(bed), {})


class NotMarked(unittest.TestCase):
    """The bridge is dom0's: its node isn't marked xen,passthrough."""

    def test_refused(self):
        with Bed("test-xl-marked", xl=True, disk_mb=0) as bed:
            bed.boot()
            status, text = Guest(bed, "pci", 'iommu = "virtio"\n',
                                 base="pci.cfg").try_create()
            self.assertNotEqual(status, 0)
            self.assertRegex(text, "isn't marked xen,passthrough")
            self.assertEqual(domains(bed), {})


if __name__ == "__main__":
    unittest.main()
