# SPDX-License-Identifier: GPL-2.0-only
"""osstest's steps, recipes and jobs: they fit each other, they run on a host in
QEMU, and they fail when what they check is wrong (t/test_breakage.py has all of
that; make osstest-standalone)."""
import json
import os
import re
import socket
import subprocess
import tempfile
import threading
import unittest
from pathlib import Path

import standalone
from standalone import BUILD, HERE, PROPERTIES, Runner, images

SECONDS = 60


def ts_scripts():
    return sorted(p.name for p in HERE.glob("ts-*"))


class Recorder:
    """A host that does nothing: what it was asked to run, and put."""

    def __init__(self, answer="y\n", status=0):
        self.run, self.put = [], []
        self.answer, self.status = answer, status
        self.dir = tempfile.TemporaryDirectory()
        self.name = f"{self.dir.name}/host"
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.name)
        self.listener.listen()
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # Closing alone does not wake accept().
        self.listener.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.listener.close()
        self.dir.cleanup()

    def serve(self):
        while True:
            try:
                s = self.listener.accept()[0]
            except OSError:
                return          # shut down
            with s:
                request = json.loads(s.makefile().readline())
                for kind, seen in (("run", self.run), ("put", self.put)):
                    if kind in request:
                        seen.append(request[kind])
                s.sendall((json.dumps({"status": self.status, "out":
                                       self.answer}) + "\n").encode())


class Scripts(unittest.TestCase):
    """The Perl scripts, against a host that only records."""

    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.dir.cleanup)
        cls.where = Path(cls.dir.name)
        cls.tree = standalone.tree(cls.where / "tree")
        images(cls.where / "images", b"name = 'x'\n")

    def ts(self, host, script, *args, properties=None, **runvars):
        """(status, output) of a script."""
        for name, pairs in (("runvars", {"host": "h", **runvars}),
                            ("properties", properties or {})):
            (self.where / name).write_text(
                "".join(f"{k}={v}\n" for k, v in pairs.items()))
        env = {**os.environ, "FAKE_HOST": host.name,
               "FAKE_RUNVARS": str(self.where / "runvars"),
               "FAKE_PROPERTIES": str(self.where / "properties"),
               "FAKE_IMAGES": str(self.where / "images"),
               "OSSTEST_FLIGHT": "f", "OSSTEST_JOB": "j",
               "PATH": f"{HERE / 't/bin'}:{os.environ['PATH']}"}
        r = subprocess.run(["./" + script, *args], cwd=self.tree, env=env,
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True,
                           timeout=SECONDS, check=False)
        return r.returncode, r.stdout

    def test_compile_without_a_warning(self):
        self.assertTrue(ts_scripts())
        for name in ts_scripts():
            with self.subTest(name):
                r = subprocess.run(["perl", "-wc", name], cwd=self.tree,
                                   text=True, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, check=False)
                self.assertEqual(r.stdout, f"{name} syntax OK\n")

    def test_steps_are_shell(self):
        paths = sorted(HERE.glob("steps/*.sh"))
        self.assertTrue(paths)
        for path in paths:
            subprocess.run(["sh", "-n", path], check=True)

    TABLE = (
        ("ts-pviommu-host", [], {}, "host.sh"),
        ("ts-pviommu-dom0-disk", [], {"pviommu_mode": "p2m-lazy"},
         "dom0-disk.sh p2m-lazy"),
        ("ts-pviommu-guest", ["strict"], {}, "guest.sh strict"),
        ("ts-pviommu-switch", ["guest"], {}, "switch.sh guest"),
        ("ts-pviommu-hostile", ["lazy"], {}, "hostile.sh lazy 60"),
        ("ts-pviommu-hostile", ["lazy"],
         {"pviommu_hostile_seconds": 7, "pviommu_hostile_seed": 9},
         "hostile.sh lazy 7 9"),
    )

    def test_what_they_run(self):
        properties = {"PviommuNvme": "0000:02:00.0", "PviommuAtMb": "7"}
        for script, args, runvars, step in self.TABLE:
            with self.subTest(step), Recorder() as host:
                status, out = self.ts(host, script, "host", *args,
                                      properties=properties, **runvars)
                self.assertEqual(status, 0, out)
                self.assertEqual(
                    host.run[-1], "PVIOMMU_AT_MB=7 PVIOMMU_NVME=0000:02:00.0 "
                    f"sh /root/pviommu-steps/{step}")
                self.assertIn(
                    f"/root/pviommu-steps/{step.split()[0]}", host.put)
                self.assertIn("/root/pviommu-steps/lib.sh", host.put)

    def test_a_step_that_fails_fails_the_script(self):
        for script, args, runvars, step in self.TABLE:
            with self.subTest(step), Recorder("FAIL: x\n", 1) as host:
                status, out = self.ts(host, script, "host", *args, **runvars)
                self.assertNotEqual(status, 0)
                self.assertIn("FAIL: x", out)

    def test_what_is_missing_is_named(self):
        for script, args, says in (
                ("ts-pviommu-dom0-disk", [], "missing runvars pviommu_mode"),
                ("ts-pviommu-guest-install", [], "pviommu-guest-config"),
                ("ts-pviommu-guest", [], "which mode"),
                ("ts-pviommu-guest", ["strict;reboot"], "strict;reboot")):
            with self.subTest(script), Recorder() as host:
                status, out = self.ts(host, script, "host", *args)
                self.assertNotEqual(status, 0)
                self.assertIn(says, out)
                self.assertFalse([c for c in host.run if "sh " in c], host.run)

    def test_guest_install(self):
        files = {"PviommuGuestConfig": "qemu-virt.tar.gz"}
        with Recorder() as host:
            status, out = self.ts(host, "ts-pviommu-guest-install", "host",
                                  properties=files)
            self.assertEqual(status, 0, out)
            self.assertEqual(host.put, ["/root/pviommu.tar.gz"])
            self.assertIn("tar -C /guest -xz", host.run[0])
        # A file of the guest's is not there.
        with Recorder("\n") as host:
            status, out = self.ts(host, "ts-pviommu-guest-install", "host",
                                  properties=files)
            self.assertNotEqual(status, 0)
            self.assertIn("no /guest/Image", out)


class Tree(unittest.TestCase):
    """Recipes, jobs and allow entries, in a tree of osstest's."""

    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.dir.cleanup)
        cls.tree = standalone.tree(Path(cls.dir.name) / "tree")
        cls.recipes = standalone.recipes(cls.tree)
        cls.jobs = standalone.flight(cls.tree)

    def test_fit_each_other(self):
        self.assertEqual({j.recipe for j in self.jobs}, set(self.recipes))
        used = {s.script for steps in self.recipes.values() for s in steps}
        self.assertEqual(sorted(used), ts_scripts())
        for name, steps in self.recipes.items():
            ids = [s.testid for s in steps]
            self.assertEqual(len(ids), len(set(ids)), name)
            self.assertIn(f"proc need-hosts/{name} ",
                          (self.tree / "tcl/pviommu.tcl").read_text())

    def test_testids(self):
        self.assertEqual(
            [(s.testid, s.iffail) for s in self.recipes["test-pviommu-dom0"]],
            [("pviommu-host", "blocked"), ("pviommu-dom0-disk", "fail"),
             ("pviommu-switch/dom0", "fail")])

    def test_jobs(self):
        boot = {j.name.partition("pviommu-")[2]: j.runvars["xen_boot_append"]
                for j in self.jobs}
        self.assertEqual(boot, {
            "strict": "dom0-viommu=strict=1", "lazy": "dom0-viommu=strict=0",
            "p2m-strict": "dom0-viommu=no,strict=1",
            "p2m-lazy": "dom0-viommu=no,strict=0",
            "guest": "guest_loglvl=all"})
        for j in self.jobs:
            self.assertIn("hw-smmuv3-s2", j.flags)
            self.assertEqual(len([f for f in j.flags if f in PROPERTIES]), 1)

    def test_allow(self):
        """As osstest reads them: @@ is any number of characters."""
        lines = (self.tree / "allow.all").read_text().splitlines()
        self.assertEqual(len(lines), len(set(lines)))
        pattern = "|".join(re.escape(l).replace("@@", r"\S*") for l in lines)
        for j in self.jobs:
            self.assertRegex(j.name, pattern)
        self.assertNotRegex("test-arm64-arm64-xl", pattern)

    def test_install_again_changes_nothing(self):
        def all_files():
            return {p: p.read_bytes() for p in self.tree.rglob("*")
                    if p.is_file()}
        before = all_files()
        subprocess.run([HERE / "install.sh", self.tree], check=True)
        self.assertEqual(all_files(), before)

    def test_install_elsewhere_is_refused(self):
        with tempfile.TemporaryDirectory() as d:
            r = subprocess.run([HERE / "install.sh", d], text=True, check=False,
                               stderr=subprocess.PIPE)
            self.assertNotEqual(r.returncode, 0)
            self.assertIn("no osstest tree", r.stderr)
            self.assertEqual(os.listdir(d), [])


class Qemu(unittest.TestCase):
    """The steps on a host in QEMU, as much as is short."""

    def run_job(self, name, only):
        lines = []
        runner = Runner(lines.append, BUILD / "osstest/test")
        job = next(j for j in runner.jobs if j.name.endswith(f"pviommu-{name}"))
        result = runner.run(job, only)
        text = "\n".join(lines)
        bad = [s for s in result.steps if s.status != "pass"]
        self.assertEqual(result.status, "pass", text + "".join(
            "\n" + Path(s.log).read_text() for s in bad if s.log))
        self.assertEqual(len(result.steps), len(only) + 1)
        for number, testid in enumerate(["xen-boot", *only], 1):
            self.assertIn(f"{job.name} ========== {number} testid {testid} "
                          "==========", text)
            self.assertIn(f"{job.name} {number} status status pass", text)

    def test_dom0_lazy(self):
        self.run_job("lazy", ["pviommu-host", "pviommu-dom0-disk"])

    def test_guest(self):
        self.run_job("guest", ["pviommu-host", "pviommu-guest-install",
                               "pviommu-guest/strict", "pviommu-hostile/lazy"])


if __name__ == "__main__":
    unittest.main()
