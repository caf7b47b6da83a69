# SPDX-License-Identifier: GPL-2.0-only
"""make dist: both series give the tree that integrate.py makes, and each patch
builds.

After the last patch the tree is byte for byte the one that `make xen` has built
and other tests boot.  Of the others two are built, on a copy of the tree that
`make xen-stock` has built; SOAK=600 (make soak): each, the tools after each that
changes them, and a boot.
"""
import filecmp
import functools
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


class Shared:
    """What is made once: the series, and a tree of the release in git, with
    the patches as commits."""
    tmp = out = said = None

    @classmethod
    def copy(cls, name, source=None):
        tree = cls.tmp / name
        run("cp", "-a", source or pristine(), tree, cwd=TOP)
        return tree

    @staticmethod
    @functools.cache
    def commits():
        tree = Shared.copy("git")
        run("git", "init", "-q", cwd=tree)
        run("git", "add", "-A", "-f", cwd=tree)
        run("git", "commit", "-q", "-m", "release", cwd=tree)
        run("git", "am", "-q", "--empty=drop",
            *sorted((Shared.out / "git").iterdir()), cwd=tree)
        return tree


def setUpModule():
    BUILD.mkdir(exist_ok=True)
    tmp = tempfile.TemporaryDirectory(dir=BUILD, prefix="dist-")
    unittest.addModuleCleanup(tmp.cleanup)
    Shared.tmp = Path(tmp.name)
    Shared.out = Shared.tmp / "out"
    Shared.said = dist(Shared.out)


class Series(unittest.TestCase):
    """Both forms, on the release."""

    @classmethod
    def setUpClass(cls):
        cls.want = Shared.copy("want")
        integrate.integrate(cls.want)

    def equal(self, tree):
        files = content(self.want)
        self.assertEqual(content(tree) ^ files, set())
        self.assertGreater(len(files), 3000)
        self.assertEqual(filecmp.cmpfiles(self.want, tree, files,
                                          shallow=False)[1:], ([], []))

    def test_git_am(self):
        tree = Shared.commits()
        self.equal(tree)
        commits = run("git", "log", "--format=%an <%ae> %b", cwd=tree)
        self.assertEqual(commits.count("Signed-off-by: A Nobody <a@exam"),
                         len(list((Shared.out / "git").iterdir())) - 1)
        self.assertIn("[PATCH 00/", next(
            (Shared.out / "git").glob("0000-cover-*")).read_text())

    @unittest.skipIf(os.environ.get("XEN_IMAGE"), "XEN_IMAGE is what is tested")
    def test_this_is_what_was_built(self):
        built = BUILD / "xen"
        if not (built / "xen/xen").is_file():
            self.skipTest("no tree that 'make xen' has built")
        self.assertEqual(filecmp.cmpfiles(
            # But for what the build itself makes.
            self.want, built, content(self.want) - {"tools/config.h.in"},
            shallow=False)[1:], ([], []), "run 'make xen' first")

    def test_quilt_push(self):
        tree = Shared.copy("quilt")
        ours = Shared.out / "quilt/patches"
        shutil.copytree(ours / "pviommu", tree / "debian/patches/pviommu")
        with open(tree / "debian/patches/series", "a",
                  encoding="utf-8") as f:
            f.write((ours / "series").read_text())
        run("quilt", "push", "-a", cwd=tree,
            env={"QUILT_PATCHES": "debian/patches", "QUILTRC": "-"})
        self.equal(tree)

    def test_the_same_bytes_again(self):
        again = Shared.tmp / "again"
        dist(again)
        files = content(Shared.out)
        self.assertEqual(content(again), files)
        self.assertEqual(filecmp.cmpfiles(Shared.out, again, files,
                                          shallow=False)[1:], ([], []))

    def test_table(self):
        self.assertRegex(Shared.said, r"(?m)^   1 +\d+ +3  docs: ")
        self.assertRegex(Shared.said, r"(?m)^ +\d+ +\d+  in \d+ patches$")

    def test_who(self):
        env = {k: v for k, v in os.environ.items()
               if not k.startswith("GIT_")}
        done = subprocess.run(
            [sys.executable, str(TOP / "tools/dist/dist.py"), pristine(),
             Shared.tmp / "who"], cwd=TOP, text=True, check=False,
            stderr=subprocess.PIPE, stdout=subprocess.DEVNULL,
            # No repository of its own either, whose configuration names one.
            env={**env, "GIT_CONFIG_GLOBAL": "/dev/null",
                 "GIT_CONFIG_NOSYSTEM": "1", "GIT_DIR": "/nonexistent"})
        self.assertEqual(done.returncode, 1)
        self.assertIn("git config user.name", done.stderr)


class Builds(unittest.TestCase):
    """Hypervisor, parts of the driver, and tools, after patches."""

    @classmethod
    def setUpClass(cls):
        # The release, built: all the patches add.
        built = BUILD / "xen-stock"
        if not (built / "xen/xen").is_file():
            raise unittest.SkipTest("no tree that 'make xen-stock' has built")
        cls.commits = Shared.commits()
        cls.tree = Shared.copy("tree", built)
        log = run("git", "log", "--reverse", "--format=%H %s",
                  cwd=cls.commits).splitlines()
        cls.hashes, cls.subjects = zip(*(l.split(" ", 1) for l in log))
        cls.at = cls.hashes[0]

    def changed(self, old, new):
        return run("git", "diff", "--name-only", "--no-renames", old, new,
                   cwd=self.commits).split()

    def move(self, n):
        """Make the tree that of patch N, touching what differs only; files
        are only ever added."""
        to = self.hashes[n]
        paths = self.changed(self.at, to)
        self.at = to
        if paths:
            run("sh", "-c", f"git archive {to} -- \"$@\" | tar -xmC {self.tree}",
                "sh", *paths, cwd=self.commits)
        if any("Kconfig" in p for p in paths):
            with open(self.tree / "xen/.config", "a", encoding="utf-8") as f:
                f.write(f"{OPTION}=y\n")
            self.make("olddefconfig")

    def make(self, *args):
        env = {k: "" for k in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
        run("make", "-s", f"-j{os.cpu_count()}", "-C", self.tree / "xen",
            "XEN_TARGET_ARCH=arm64", "CROSS_COMPILE="
            + os.environ.get("CROSS_COMPILE", "aarch64-linux-gnu-"), *args,
            cwd=TOP, env=env)

    def build(self, n):
        """The hypervisor after patch N, and what there is of the driver."""
        self.move(n)
        self.make()
        if not self.driver() and (self.tree / integrate.DRIVER
                                  / "Makefile").exists():
            self.make(f"EXTRA_CFLAGS_XEN_CORE=-D{OPTION}", PARTS)

    def driver(self):
        return f"{OPTION}=y\n" in (self.tree / "xen/.config").read_text()

    def objects(self):
        """Those that have been built of the driver."""
        return {str(o.relative_to(self.tree / integrate.DRIVER))
                for o in (self.tree / integrate.DRIVER).rglob("*.o")}

    def number(self, subject):
        """Of the patch with this in its subject, from 1 on."""
        return [i for i, s in enumerate(self.subjects) if subject in s][0]

    @unittest.skipIf(SOAK, "all of them are built")
    def test_some_builds(self):
        self.build(self.number("flush queue"))
        self.assertFalse(self.driver())
        self.assertLessEqual({"flushq.o", "smmu/cmdq.o"}, self.objects())
        self.assertNotIn("domain.o", self.objects())
        # All of the driver, and the calls without it.
        self.build(self.number("CONFIG_ARM_PVIOMMU") - 1)
        self.assertFalse(self.driver())
        self.assertIn("domain.o", self.objects())

    @unittest.skipUnless(SOAK, "SOAK=600, make soak: each patch")
    def test_each_builds(self):
        for n in range(1, len(self.hashes)):
            self.build(n)
            if any(p.startswith("tools/")
                   for p in self.changed(self.hashes[n - 1], self.hashes[n])):
                run("tools/build-tools.sh", pristine().relative_to(TOP),
                    self.tree, "build/arm64-dev", Shared.tmp / "tools-root",
                    "plain", cwd=TOP)
        self.assertTrue(self.driver())
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
