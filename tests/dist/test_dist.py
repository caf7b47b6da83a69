# SPDX-License-Identifier: GPL-2.0-only
"""make dist: both series give the tree that integrate.py makes, and each patch
builds.

Three of the patches are built, on a copy of the tree that `make xen` has built;
SOAK=600 (make soak): all, from the release on, with the tools.
"""
import filecmp
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

TOP = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TOP / "tools/dist"), str(TOP / "tools"),
                str(TOP / "tests/e2e")]
import integrate                        # noqa: E402
import series                           # noqa: E402
from bed import BUILD, Bed              # noqa: E402

SOAK = "SOAK" in os.environ
NOBODY = {"GIT_AUTHOR_NAME": "A Nobody", "GIT_AUTHOR_EMAIL": "a@example.org",
          "GIT_COMMITTER_NAME": "A Nobody",
          "GIT_COMMITTER_EMAIL": "a@example.org", "SOURCE_DATE_EPOCH": "1",
          "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
# Not Xen's: what the packaging, git, quilt and these tools leave in a tree.
OTHERS = {".git", ".pc", "debian", ".copied", integrate.RECORD}
PARTS = integrate.DRIVER.removeprefix("xen/") + "/"
OPTION = "CONFIG_ARM_PVIOMMU"


def run(*cmd, cwd, env=None, **kw):
    """Output of a command; what it says is in the failure."""
    done = subprocess.run([str(c) for c in cmd], cwd=cwd, text=True,
                          check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT,
                          env={**os.environ, **NOBODY, **(env or {})}, **kw)
    if done.returncode:
        raise AssertionError(f"{' '.join(map(str, cmd))} in {cwd}: status "
                             f"{done.returncode}\n"
                             + "\n".join(done.stdout.splitlines()[-30:]))
    return done.stdout


def pristine():
    found = sorted(p.parent for p in BUILD.glob("xen-src/xen-*/xen"))
    if not found:
        raise unittest.SkipTest("no Xen source: run 'make setup'")
    return found[-1]


def dist(out, **env):
    return run(sys.executable, TOP / "tools/dist/dist.py", pristine(), out,
               cwd=TOP, env=env)


def content(tree):
    """Paths of the files that are Xen's."""
    out = set()
    for where, dirs, names in os.walk(tree):
        rel = Path(where).relative_to(tree)
        dirs[:] = [d for d in dirs if str(rel / d) not in OTHERS]
        out |= {str(rel / n) for n in names if str(rel / n) not in OTHERS}
    return out


class Made(unittest.TestCase):
    """What `make dist` has made is there for each test."""

    @classmethod
    def setUpClass(cls):
        BUILD.mkdir(exist_ok=True)
        tmp = tempfile.TemporaryDirectory(dir=BUILD, prefix="dist-")
        cls.addClassCleanup(tmp.cleanup)
        cls.tmp = Path(tmp.name)
        cls.out = cls.tmp / "out"
        cls.said = dist(cls.out)

    @classmethod
    def copy(cls, name, source=None):
        tree = cls.tmp / name
        run("cp", "-a", source or pristine(), tree, cwd=TOP)
        return tree

    @classmethod
    def git(cls, tree, *args):
        return run("git", *args, cwd=tree)

    @classmethod
    def with_git(cls, name):
        """A tree of the release, in git, with the series as commits."""
        tree = cls.copy(name)
        cls.git(tree, "init", "-q")
        cls.git(tree, "add", "-A", "-f")
        cls.git(tree, "commit", "-q", "-m", "release")
        cls.git(tree, "am", "-q", "--empty=drop",
                *sorted((cls.out / "git").iterdir()))
        return tree


class Series(Made):
    """Both forms, on the release."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.want = cls.copy("want")
        with mock.patch.dict(os.environ):
            integrate.integrate(cls.want)

    def equal(self, tree):
        files = content(self.want)
        self.assertEqual(content(tree) ^ files, set())
        self.assertGreater(len(files), 3000)
        self.assertEqual(filecmp.cmpfiles(self.want, tree, files,
                                          shallow=False)[1:], ([], []))

    def test_git_am(self):
        tree = self.with_git("git")
        self.equal(tree)
        commits = self.git(tree, "log", "--format=%an <%ae> %b")
        self.assertEqual(commits.count("Signed-off-by: A Nobody <a@exam"),
                         len(list((self.out / "git").iterdir())) - 1)
        self.assertIn("[PATCH 00/", next(
            (self.out / "git").glob("0000-cover-*")).read_text())

    def test_quilt_push(self):
        tree = self.copy("quilt")
        ours = self.out / "quilt/patches"
        shutil.copytree(ours / "pviommu", tree / "debian/patches/pviommu")
        with open(tree / "debian/patches/series", "a",
                  encoding="utf-8") as f:
            f.write((ours / "series").read_text())
        run("quilt", "push", "-a", cwd=tree,
            env={"QUILT_PATCHES": "debian/patches", "QUILTRC": "-"})
        self.equal(tree)

    def test_the_same_bytes_again(self):
        dist(self.tmp / "again")
        files = content(self.out)
        self.assertEqual(content(self.tmp / "again"), files)
        self.assertEqual(filecmp.cmpfiles(self.out, self.tmp / "again", files,
                                          shallow=False)[1:], ([], []))

    def test_table(self):
        self.assertRegex(self.said, r"(?m)^   1 +\d+ +3  docs: ")
        self.assertRegex(self.said, r"(?m)^ +\d+ +\d+  in \d+ patches$")

    def test_who(self):
        env = {k: v for k, v in os.environ.items()
               if not k.startswith("GIT_")}
        done = subprocess.run(
            [sys.executable, str(TOP / "tools/dist/dist.py"), pristine(),
             self.tmp / "who"], cwd=TOP, text=True, check=False,
            stderr=subprocess.PIPE, stdout=subprocess.DEVNULL,
            # No repository of its own either, whose configuration names one.
            env={**env, "GIT_CONFIG_GLOBAL": "/dev/null",
                 "GIT_CONFIG_NOSYSTEM": "1", "GIT_DIR": "/nonexistent"})
        self.assertEqual(done.returncode, 1)
        self.assertIn("git config user.name", done.stderr)


class Builds(Made):
    """Hypervisor, parts of the driver, and tools, after patches."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if not (BUILD / "xen/xen/xen").is_file():
            raise unittest.SkipTest("no tree that 'make xen' has built")
        cls.commits = cls.with_git("commits")
        cls.tree = cls.copy("tree", BUILD / "xen")
        cls.hashes = cls.git(cls.commits, "rev-list", "--reverse",
                             "HEAD").split()
        cls.at = cls.hashes[-1]

    def move(self, n):
        """Make the tree that of patch N, touching what differs only."""
        to = self.hashes[n]
        paths = self.git(self.commits, "diff", "--name-only", "--no-renames",
                         self.at, to).split()
        self.git(self.commits, "checkout", "-q", to)
        for p in paths:
            new, old = self.commits / p, self.tree / p
            if new.is_file():
                old.parent.mkdir(parents=True, exist_ok=True)
                old.write_bytes(new.read_bytes())
            else:
                old.unlink()
        self.at = to
        if any("Kconfig" in p for p in paths):
            with open(self.tree / "xen/.config", "a", encoding="utf-8") as f:
                f.write(f"{OPTION}=y\n")
            self.make("olddefconfig")
        return self.git(self.commits, "diff", "--name-only", "--no-renames",
                        to + "^", to).split() if n else []

    def make(self, *args):
        env = {k: "" for k in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
        run("make", "-s", f"-j{os.cpu_count()}", "-C", self.tree / "xen",
            "XEN_TARGET_ARCH=arm64", "CROSS_COMPILE="
            + os.environ.get("CROSS_COMPILE", "aarch64-linux-gnu-"), *args,
            cwd=TOP, env=env)

    def build(self, n):
        """The hypervisor after patch N, and what there is of the driver."""
        paths = self.move(n)
        self.make()
        if not self.driver() and any(p.startswith(integrate.DRIVER)
                                     for p in paths):
            self.make(f"EXTRA_CFLAGS_XEN_CORE=-D{OPTION}", PARTS)
        return paths

    def driver(self):
        return f"{OPTION}=y\n" in (self.tree / "xen/.config").read_text()

    def objects(self):
        """Objects of the driver that are younger than now."""
        return {str(o.relative_to(self.tree / integrate.DRIVER))
                for o in (self.tree / integrate.DRIVER).rglob("*.o")
                if o.name != "built_in.o"}

    def number(self, subject):
        """Of the patch with this subject, from 1 on."""
        subjects = self.git(self.commits, "log", "--reverse",
                            "--format=%s", self.hashes[-1]).splitlines()
        return [i for i, s in enumerate(subjects) if subject in s][0]

    def clean_driver(self):
        for o in (self.tree / integrate.DRIVER).rglob("*.o"):
            o.unlink()

    @unittest.skipIf(SOAK, "all of them are built")
    def test_some_builds(self):
        self.clean_driver()
        queue = self.number("flush queue")
        self.build(queue)
        self.assertFalse(self.driver())
        self.assertIn("flushq.o", self.objects())
        self.assertIn("smmu/cmdq.o", self.objects())
        self.assertNotIn("domain.o", self.objects())
        # The calls, without the driver.
        self.build(self.number("CONFIG_ARM_PVIOMMU") - 1)
        self.assertFalse(self.driver())
        self.last()

    @unittest.skipUnless(SOAK, "SOAK=600, make soak: each patch")
    def test_each_builds(self):
        self.clean_driver()
        for n in range(len(self.hashes)):
            paths = self.build(n)
            if any(p.startswith("tools/") for p in paths):
                run("tools/build-tools.sh", pristine().relative_to(TOP),
                    self.tree, "build/arm64-dev", self.tmp / "tools-root",
                    "plain", cwd=TOP)
        self.last()

    def last(self):
        """The hypervisor of the whole series boots."""
        self.build(len(self.hashes) - 1)
        self.assertTrue(self.driver())
        self.assertIn("domain.o", self.objects())
        with mock.patch.dict(os.environ,
                             XEN_IMAGE=str(self.tree / "xen/xen")), \
                Bed("dist", xen_args=["dom0-viommu"]) as bed:
            bed.boot()
            self.assertIn("dom0 has a virtio-iommu", bed.console)


class Description(unittest.TestCase):
    """Everything is in one patch, or it is said what is not."""

    def wrong(self, *patches):
        bad = []
        series.assign("files", ["a/x.c", "a/y.c"], [
            {"subject": str(i), "files": p}
            for i, p in enumerate(patches)], bad)
        return bad

    def test_good(self):
        self.assertEqual(self.wrong(["a/x.c"], ["a/y*"]), [])

    def test_bad(self):
        for patches, says in (
                ([["a/x.c"]], "a/y.c is in no patch"),
                ([["a/*"], ["a/y.c"]], "a/y.c is in '0' and '1'"),
                ([["a/*", "b"]], "no files are 'b'")):
            with self.subTest(says):
                self.assertIn(says, "\n".join(self.wrong(*patches)))

    def test_objects_come_with_their_sources(self):
        text = "# SPDX\nobj-y += s/\nobj-y += x.o\nobj-$(CONFIG_A) += y.o\n"
        for present, want in (
                ([], None), (["d/y.h"], None),
                (["d/x.c"], b"# SPDX\nobj-y += x.o\n"),
                (["d/y.c", "d/s/z.c"],
                 b"# SPDX\nobj-y += s/\nobj-$(CONFIG_A) += y.o\n")):
            self.assertEqual(series.makefile("d/Makefile", text, present),
                             want)

    def test_what_differs_is_named(self):
        with self.assertRaisesRegex(integrate.Error, ": b, c$"):
            series.same({"a": b"", "b": b"", "c": b""}, {"a": b"", "b": b"1"})


if __name__ == "__main__":
    unittest.main()
