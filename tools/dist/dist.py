#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Make a series of patches for the pinned Xen, as mails and for quilt.

  dist.py PRISTINE OUT

PRISTINE is the unpacked source.  OUT/git gets 0000-cover-letter.patch and the
patches, for git am; OUT/quilt/patches the same with DEP-3 headers, and `series`.
What is in which patch, and the messages: tools/dist/series.toml.  After the last
one the tree is what tools/integrate.py makes of it, but for its record.

Patches are signed off by the user: git's user.name and user.email.  Their date
is that of the last commit, or SOURCE_DATE_EPOCH, so that the same input gives
the same bytes.
"""
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import quilt                                            # noqa: E402
import series                                           # noqa: E402
from integrate import TOP, Error                        # noqa: E402


class Git:
    """Git in a directory, untouched by the user's configuration."""

    def __init__(self, where, name, mail, date):
        self.where, self.date = where, date
        self.env = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null",
                    "GIT_CONFIG_NOSYSTEM": "1", "TZ": "UTC", "LC_ALL": "C"}
        for who in ("AUTHOR", "COMMITTER"):
            self.env |= {f"GIT_{who}_NAME": name, f"GIT_{who}_EMAIL": mail}
        for var in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
            self.env.pop(var, None)

    def __call__(self, *args, **kw):
        for who in ("AUTHOR", "COMMITTER"):
            self.env[f"GIT_{who}_DATE"] = f"@{self.date} +0000"
        return subprocess.run(["git", *args], cwd=self.where, env=self.env,
                              check=True, text=True,
                              stdout=subprocess.PIPE, **kw).stdout

    def commit(self, message, *options):
        self("add", "-A", "-f")
        self("commit", "-q", "--no-verify", "--cleanup=whitespace", *options,
             "-F", "-", input=message)
        self.date += 1


def identity():
    """Name and address of the user, as git knows them."""
    done = subprocess.run(
        ["git", "-c", "user.useConfigOnly=true", "var", "GIT_AUTHOR_IDENT"],
        cwd=TOP, text=True, check=False, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL)
    if done.returncode:
        raise Error("git does not know who you are, and patches are signed "
                    "off: git config user.name NAME; "
                    "git config user.email ADDRESS")
    name, _, rest = done.stdout.partition(" <")
    return name, rest.partition(">")[0]


def seconds():
    """The patches' date, since 1970."""
    if os.environ.get("SOURCE_DATE_EPOCH"):
        return int(os.environ["SOURCE_DATE_EPOCH"])
    done = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=TOP,
                          text=True, check=False, stdout=subprocess.PIPE)
    if not done.stdout.strip():
        raise Error("no commit to take the date of: set SOURCE_DATE_EPOCH")
    return int(done.stdout)


def put(where, files):
    for path, data in files.items():
        (where / path).parent.mkdir(parents=True, exist_ok=True)
        (where / path).write_bytes(data)


def commits(git, pristine, plan):
    """One commit for each patch of PLAN; returns what the last one holds."""
    git("init", "-q", "-b", "pviommu")
    count = len(plan.patches)
    final = series.state(pristine, plan, count)
    put(git.where, {p: (pristine / p).read_bytes() for p in final
                    if (pristine / p).is_file()})
    git.commit("base\n")
    git("tag", "base")
    for n, patch in enumerate(plan.patches, 1):
        put(git.where, series.state(pristine, plan, n))
        if not git("status", "--porcelain"):
            raise Error(f"patch '{patch['subject']}' changes nothing")
        git.commit(f"{patch['subject']}\n\n{patch['message']}", "-s")
    return final


def mails(git, plan, base, out):
    """The series as mails."""
    git("config", "branch.pviommu.description",
        f"{plan.cover['subject']}\n\n"
        + plan.cover["message"].replace("@BASE@", base))
    git("format-patch", "-q", "--cover-letter", "--no-signature",
        "--cover-from-description=subject", "--zero-commit", "--no-renames",
        "--stat=72", "-o", str(out), "base")


def table(git, plan):
    """Lines about each patch."""
    total = [0, 0]
    hashes = git("rev-list", "--reverse", "base..").split()
    for n, (commit, patch) in enumerate(zip(hashes, plan.patches), 1):
        stat = [l.split("\t") for l in
                git("show", "--numstat", "--format=", "--no-renames",
                    commit).splitlines()]
        added = sum(int(s[0]) for s in stat)
        total = [total[0] + added, total[1] + len(stat)]
        yield f"{n:4} {added:6} {len(stat):6}  {patch['subject']}"
    yield f"     {total[0]:6} {total[1]:6}  in {len(hashes)} patches"


def dist(pristine, out):
    """Make both series in OUT; print a table."""
    pristine, out = Path(pristine), Path(out)
    if not (pristine / "xen/Makefile").is_file():
        raise Error(f"no Xen source in {pristine}: run 'make setup'")
    plan = series.load(TOP)
    name, mail = identity()
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    with tempfile.TemporaryDirectory(dir=out) as tmp:
        git = Git(Path(tmp), name, mail, seconds())
        final = commits(git, pristine, plan)
        series.same(final, series.integrated(pristine, TOP))
        mails(git, plan, pristine.name, (out / "git").resolve())
        quilt.write(git, out / "quilt/patches")
        print("   # lines+  files  subject", *table(git, plan), sep="\n")
    print(f"dist: {out}/git for git am, {out}/quilt/patches for quilt")


def main(argv):
    if len(argv) != 3:
        sys.exit(__doc__)
    try:
        dist(argv[1], argv[2])
    except Error as e:
        sys.exit(f"dist: {e}")


if __name__ == "__main__":
    main(sys.argv)
