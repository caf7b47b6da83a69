# SPDX-License-Identifier: GPL-2.0-only
"""Each step fails when what it checks is wrong: on a host in QEMU that is
broken on purpose, or whose xl does or says something else."""
import re
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
# pylint: disable=wrong-import-position
from standalone import BRIDGE, BUILD, HERE, Runner  # noqa: E402

PCI_CFG = (HERE.parent / "e2e/guest/pci.cfg").read_bytes()
NO_DRIVER = "module_blacklist=virtio_iommu"
# A disk that forgets what is written to it.
FORGETS = {"disk_mb": 0, "qemu_args": [
    "-blockdev", "driver=null-co,node-name=nvm,size=67108864,read-zeroes=on",
    "-device", "nvme,serial=bed,drive=nvm"]}
GUEST = ["pviommu-guest-install"]


def xl(case):
    """A command xl that differs in CASE, the inside of a shell's case."""
    return {"commands": {"xl": f"""#!/bin/sh
real=/usr/sbin/xl cfg=/tmp/pviommu/pviommu.cfg
case $1 in
{case}
esac
exec $real "$@"
"""}}


def create(change):
    """xl create makes something else of the configuration."""
    return f"create) sed -i '{change}' $cfg ;;"


def says(change):
    """xl iommu-info says something else."""
    return f"iommu-info) $real \"$@\" | sed '{change}'; exit ;;"


def behind_nothing(fdt):
    """dtb_edit: the host bridge is in front of no SMMU."""
    fdt.delprop(fdt.path_offset(BRIDGE), "iommu-map")


class Broken(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.runner = Runner(lambda line: None, BUILD / "osstest/broken")

    # pylint: disable=too-many-arguments
    def broken(self, job, testid, regex, *, status="fail", before=(),
               runvars=None, **host):
        """The step TESTID of JOB fails and says REGEX."""
        job = next(j for j in self.runner.jobs
                   if j.name.endswith(f"pviommu-{job}"))
        job = type(job)(job.name, job.recipe,
                        {**job.runvars, **(runvars or {})})
        result = self.runner.run(job, [*before, testid], **host)
        *earlier, last = [s for s in result.steps if s.status != "queued"]
        log = Path(last.log).read_text()
        self.assertEqual((last.testid, last.status), (testid, status), log)
        self.assertEqual({s.status for s in earlier}, {"pass"})
        self.assertEqual(result.status, status)
        self.assertRegex(log, re.compile(regex, re.M))

    # The host
    def test_iommu_off(self):
        self.broken("strict", "pviommu-host", "^FAIL: Xen uses no SMMUv3",
                    status="blocked", xen_args=["iommu=off"])

    def test_behind_no_smmu(self):
        self.broken("strict", "pviommu-host", "^FAIL: .*behind no SMMU",
                    status="blocked", dtb_edit=behind_nothing,
                    dom0_args=["bed.groups=iommu,xen"])

    def test_bridge_is_dom0s(self):
        self.broken("guest", "pviommu-host", "^FAIL: .*no xen,passthrough",
                    status="blocked", dtb_edit=None)

    # dom0's disk
    def test_dom0_lazy_instead_of_strict(self):
        self.broken("lazy", "pviommu-dom0-disk", "^FAIL: .*strict is '0'",
                    runvars={"pviommu_mode": "strict"})

    def test_dom0_strict_instead_of_lazy(self):
        self.broken("strict", "pviommu-dom0-disk", "^FAIL: .*strict is '1'",
                    runvars={"pviommu_mode": "lazy"})

    def test_dom0_strict_that_does_not_wait(self):
        self.broken("lazy", "pviommu-dom0-disk", "^FAIL: strict, and nothing",
                    runvars={"pviommu_mode": "strict"},
                    **xl(says("s/strict=0/strict=1/")))

    def test_dom0_lazy_that_waits(self):
        self.broken("strict", "pviommu-dom0-disk", "^FAIL: lazy, and [1-9]",
                    runvars={"pviommu_mode": "lazy"},
                    **xl(says("s/ strict=1/ strict=0/")))

    def test_dom0_without_the_driver(self):
        self.broken("strict", "pviommu-dom0-disk",
                    "^FAIL: dom0 has not attached", dom0_args=[NO_DRIVER])

    def test_dom0_data(self):
        self.broken("strict", "pviommu-dom0-disk",
                    "^FAIL: .*not what was written", **FORGETS)

    def test_dom0_faults(self):
        """Faults that come up after the step has begun."""
        self.broken("strict", "pviommu-dom0-disk", "^FAIL: .*faults grew",
                    **xl('iommu-info) n=$(cat /tmp/n 2>/dev/null || echo 0);'
                         ' echo $((n + 1)) > /tmp/n;'
                         ' $real "$@" | sed "s/ faults=0/ faults=$n/"; exit ;;'))

    # The p2m path
    def test_p2m_with_virtio_iommu(self):
        self.broken("strict", "pviommu-dom0-disk", "^FAIL: .*type is 'virtio'",
                    runvars={"pviommu_mode": "p2m-strict"})

    def test_p2m_strict_that_does_not_wait(self):
        self.broken("p2m-lazy", "pviommu-dom0-disk",
                    "^FAIL: strict, and nothing",
                    runvars={"pviommu_mode": "p2m-strict"},
                    **xl(says("s/strict=0/strict=1/")))

    def test_p2m_data(self):
        self.broken("p2m-lazy", "pviommu-dom0-disk",
                    "^FAIL: .*not what was written", **FORGETS)

    # A guest
    def guest(self, what, regex, **host):
        self.broken("guest", what, regex, before=GUEST, **host)

    def test_guest_install(self):
        """The lab's file is not there."""
        self.broken("guest", "pviommu-guest-install", "no/such.tar",
                    status="blocked",
                    runvars={"pviommu_guestdist": "/no/such.tar"})

    def test_guest_without_the_driver(self):
        config = PCI_CFG.replace(b"quiet", b"quiet " + NO_DRIVER.encode())
        self.guest("pviommu-guest/strict", "^FAIL: no virtio-iommu in front",
                   config=config)

    def test_guest_data(self):
        self.guest("pviommu-guest/lazy", "^FAIL: .*not what was written",
                   **FORGETS)

    def test_guest_lazy_instead_of_strict(self):
        self.guest("pviommu-guest/strict", "^FAIL: .*strict is '0'",
                   **xl(create("s/strict=1/strict=0/")))

    def test_guest_strict_that_does_not_wait(self):
        self.guest("pviommu-guest/strict", "^FAIL: strict, and no unmap",
                   **xl(create("s/strict=1/strict=0/")
                        + says("s/strict=0/strict=1/")))

    def test_guest_p2m_with_virtio_iommu(self):
        self.guest("pviommu-guest/p2m-strict", "^FAIL: .*type is 'virtio'",
                   **xl(create("s/type=none/type=virtio/")))

    def test_guest_that_stays(self):
        self.guest("pviommu-guest/p2m-lazy", "^FAIL: pviommu stays",
                   **xl("destroy) exit 0 ;;"))

    # The switch
    def test_switch_that_does_nothing(self):
        self.broken("strict", "pviommu-switch/dom0", "^FAIL: .*strict is '1'",
                    **xl("iommu-strict) exit 0 ;;"))

    def test_switch_that_only_says_so(self):
        self.broken("lazy", "pviommu-switch/dom0",
                    "^FAIL: switched on, and no unmap waits",
                    **xl("iommu-strict) exit 0 ;;\n"
                         + says("s/strict=0/strict=1/")))

    def test_guests_switch_that_does_nothing(self):
        self.guest("pviommu-switch/guest", "^FAIL: .*strict is '1'",
                   **xl("iommu-strict) exit 0 ;;"))

    # The hostile guest
    def test_hostile_guest_that_fails(self):
        self.guest("pviommu-hostile/strict", "^FAIL: the hostile guest failed",
                   **xl(create("s/suite=hostile/suite=none/")))

    def test_hostile_guest_that_attacks_nothing(self):
        self.guest("pviommu-hostile/strict", "^FAIL: .*no attack",
                   **xl(says("s/req_bad=[0-9]*/req_bad=0/")))

    def test_hostile_guest_leaves_pages(self):
        self.guest("pviommu-hostile/lazy", "^FAIL: pages are left",
                   **xl(says("s/pages=0 tables/pages=1 tables/")))


if __name__ == "__main__":
    unittest.main()
