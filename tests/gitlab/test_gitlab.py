# SPDX-License-Identifier: GPL-2.0-only
"""The script for Xen's GitLab, run as it is there: on binaries/, with a log of
the serial line, and with a status that can be believed."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOP = HERE.parents[1]
sys.path.insert(0, str(TOP / "tests/e2e"))
from bed import BUILD, xen_image        # noqa: E402

SCRIPT = HERE / "qemu-pviommu-arm64.sh"
SECONDS = 600


def variants():
    return re.findall(r"^    ([\w-]+)\) xen=", SCRIPT.read_text(), re.M)


class Script(unittest.TestCase):
    def setUp(self):
        tmp = tempfile.TemporaryDirectory(dir=BUILD, prefix="gitlab-")
        self.addCleanup(tmp.cleanup)
        self.where = Path(tmp.name)
        (self.where / "binaries").mkdir()
        # As integrate.py puts them into a Xen tree.
        scripts = self.where / "automation/scripts"
        scripts.mkdir(parents=True)
        shutil.copyfile(SCRIPT, scripts / SCRIPT.name)
        shutil.copytree(TOP / "tests/osstest/steps", scripts / "pviommu")

    def binaries(self, xen):
        for p in (BUILD / "dom0/Image", BUILD / "dom0/xl.cpio", xen):
            if not p.is_file():
                self.skipTest(f"no {p}")
        there = self.where / "binaries"
        shutil.copy(xen, there / "xen")
        shutil.copy(BUILD / "dom0/Image", there / "Image")
        (there / "dom0-rootfs.cpio").write_bytes(
            b"".join((BUILD / "dom0" / n).read_bytes()
                     for n in ("initramfs.cpio", "xl.cpio")))

    def run_script(self, *args, **env):
        done = subprocess.run(
            ["sh", f"automation/scripts/{SCRIPT.name}", *args], cwd=self.where, text=True,
            check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, timeout=SECONDS + 60,
            env={**os.environ, "TEST_TIMEOUT": str(SECONDS), **env})
        return done.returncode, done.stdout

    def test_dom0(self):
        # All of them: make soak.
        for v in variants() if "SOAK" in os.environ else ("dom0-lazy",):
            with self.subTest(v):
                self.binaries(xen_image())
                status, out = self.run_script(v)
                self.assertEqual(status, 0, out)
                log = (self.where / "smoke.serial").read_text(errors="replace")
                self.assertIn(f"pviommu: {v} test passed", log)

    @unittest.skipIf(os.environ.get("XEN_IMAGE"), "XEN_IMAGE is what is tested")
    def test_it_can_fail(self):
        self.binaries(BUILD / "xen-stock.img")
        # Without the disk's driver, which waits for a minute when its DMA is
        # blocked.
        status, out = self.run_script("dom0-strict",
                                      DOM0_CMD="bed.groups=iommu,xen")
        self.assertEqual(status, 1, out)
        self.assertIn("pviommu: dom0-strict test failed", out)

    def test_without_binaries(self):
        status, out = self.run_script("dom0-strict")
        self.assertNotEqual(status, 0)
        self.assertIn("initrd.tar.gz", out)

    def test_unknown_variant(self):
        status, out = self.run_script("no-such")
        self.assertEqual(status, 2)
        self.assertIn("no variant 'no-such'", out)


class Jobs(unittest.TestCase):
    def test_a_job_for_each_variant(self):
        text = (HERE / "pviommu.yaml").read_text()
        jobs = dict(re.findall(r"^qemu-pviommu-arm64-([\w-]+):\n"
                               r"  extends: \.qemu-pviommu-arm64\n"
                               r"  variables:\n    TEST_VARIANT: ([\w-]+)$",
                               text, re.M))
        self.assertEqual(jobs, {v: v for v in variants()})
        self.assertEqual(len(jobs), text.count("TEST_VARIANT: "))
        self.assertIn(f"automation/scripts/{SCRIPT.name}", text)


if __name__ == "__main__":
    unittest.main()
