#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Install what the project needs, and fetch Debian packages it boots.

Package sources are derived from the machine's own apt configuration
(apt-get indextargets), so no host is named here and any mirror works.  They
are kept in a private apt directory under build/, the machine's own
configuration is not changed.

  setup.py install PKG...       install host packages (idempotent)
  setup.py source PKG=VERSION DIR   unpack a source package below DIR
  setup.py arm64 DIR PKG...     unpack arm64 binary packages below DIR
"""
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
APT = TOP / "build" / "apt"
BACKPORTS = ("qemu-", "linux-image-")
# An older one does not do: the first with stage 2 in its SMMUv3.
AT_LEAST = {"qemu-system-arm": "1:8.1"}


def run(*cmd, **kw):
    return subprocess.run([str(c) for c in cmd], check=True, **kw)


def output(*cmd):
    return run(*cmd, stdout=subprocess.PIPE, text=True).stdout


def sources():
    """(uri, codename, keyring) of each of Debian's archives configured."""
    fmt = "$(ORIGIN)|$(COMPONENT)|$(REPO_URI)|$(CODENAME)|$(SIGNED_BY)"
    out = output("apt-get", "indextargets", "--format", fmt,
                 "Created-By: Packages")
    rows = {tuple(line.split("|")) for line in out.splitlines()}
    found = sorted(r[2:] for r in rows if r[:2] == ("Debian", "main"))
    if not found:
        sys.exit("setup: apt on this machine knows no archive of Debian; "
                 "add one to its configuration and run 'apt-get update'")
    return found


def release():
    """The codename of the machine's Debian, as its archives state it."""
    return [code for _, code, _ in sources() if "-" not in code][0]


def source_list():
    """The machine's own archives, with source entries and backports added."""
    lines = []
    for uri, code, key in sources():
        opt = f"[signed-by={key}] " if key.startswith("/") else ""
        lines.append(f"deb {opt}{uri} {code} main")
        lines.append(f"deb-src {opt}{uri} {code} main")
        if "-" not in code:
            lines.append(f"deb {opt}{uri} {code}-backports main")
    return "\n".join(lines) + "\n"


def apt_options(arch):
    """Options that point apt at the private directory for ARCH."""
    root = APT / arch
    for d in ("lists/partial", "archives/partial"):
        (root / d).mkdir(parents=True, exist_ok=True)
    opts = ["-q", "-o", "APT::Sandbox::User=root", "-o", "Acquire::Retries=3",
            "-o", f"Dir::Etc::sourcelist={root}/sources.list",
            "-o", "Dir::Etc::sourceparts=-",
            "-o", f"Dir::State::lists={root}/lists",
            "-o", f"Dir::Cache::archives={root}/archives",
            "-o", f"Dir::Cache::pkgcache={root}/pkgcache.bin",
            "-o", f"Dir::Cache::srcpkgcache={root}/srcpkgcache.bin"]
    if arch != "host":
        (root / "status").touch()
        opts += ["-o", f"Dir::State::status={root}/status",
                 "-o", f"APT::Architecture={arch}",
                 "-o", f"APT::Architectures={arch}"]
    return opts


def update(arch):
    """Bring the private lists of ARCH up to date unless they are there."""
    opts = apt_options(arch)
    root = APT / arch
    stamp = root / "updated"
    want = source_list()
    conf = root / "sources.list"
    if stamp.exists() and conf.exists() and conf.read_text() == want:
        return opts
    conf.write_text(want)
    print(f"setup: reading package lists ({arch})", flush=True)
    done = subprocess.run(
        ["apt-get", *opts, "-o", "APT::Update::Error-Mode=any", "update"],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        check=False)
    if done.returncode:
        stamp.unlink(missing_ok=True)
        sys.exit(f"setup: the package lists of these archives can't be read:\n"
                 f"{want}{done.stderr}setup: they follow from apt's own "
                 "configuration (apt-get indextargets): see that "
                 "'apt-get update' works, and that the mirror has backports")
    stamp.touch()
    return opts


def apt_get(arch, *args, **kw):
    """Run apt-get for ARCH; lists that are too old are read anew, once."""
    for last in (False, True):
        opts = update(arch)
        with open(APT / f"{arch}.log", "ab") as log:
            start = log.tell()
            done = subprocess.run(
                ["apt-get", *opts, *args], stdout=subprocess.PIPE, stderr=log,
                text=True, check=False,
                env=dict(os.environ, DEBIAN_FRONTEND="noninteractive"), **kw)
            log.write(done.stdout.encode())
        if not done.returncode:
            return done.stdout
        if last:
            text = Path(log.name).read_bytes()[start:].decode(errors="replace")
            sys.exit(f"setup: 'apt-get {' '.join(args)}' failed "
                     f"(all of it in {log.name}):\n"
                     + "\n".join(text.splitlines()[-15:])
                     + "\nsetup: packages and versions are named in Config.mk")
        (APT / arch / "updated").unlink()
    raise AssertionError("the second try returns or exits")


def suite_args(pkgs):
    """Append /SUITE to those packages that must come from backports."""
    code = release()
    return [f"{p}/{code}-backports" if p.startswith(BACKPORTS) else p
            for p in pkgs]


def missing(pkgs):
    """Those of PKGS that are not installed, or too old."""
    out = subprocess.run(["dpkg-query", "-W", "-f",
                          "${db:Status-Status} ${Package} ${Version}\n", *pkgs],
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                         text=True, check=False).stdout
    have = {l.split()[1]: l.split()[2] for l in out.splitlines()
            if l.startswith("installed ")}
    return [p for p in pkgs if p not in have or p in AT_LEAST and subprocess.run(
        ["dpkg", "--compare-versions", have[p], "lt", AT_LEAST[p]],
        check=False).returncode == 0]


def install(pkgs):
    need = missing(pkgs)
    if not need:
        return
    if os.geteuid():
        sys.exit("setup: these packages are missing or too old: "
                 f"{' '.join(need)}; run 'make setup' as root")
    back = [p for p in need if p.startswith(BACKPORTS)]
    rest = [p for p in need if p not in back]
    for some, suite in ((rest, []), (back, ["-t", f"{release()}-backports"])):
        if some:
            print("setup: installing " + " ".join(some), flush=True)
            apt_get("host", *suite, "install", "-y",
                    "--no-install-recommends", *some)


def source(spec, dest):
    dest = Path(dest).resolve()
    stamp = dest / (".unpacked-" + spec)
    if stamp.exists():
        return
    dest.mkdir(parents=True, exist_ok=True)
    for old in dest.iterdir():
        # dpkg-source does not unpack over a directory left half done.
        if old.is_dir():
            shutil.rmtree(old)
    print(f"setup: unpacking source {spec}", flush=True)
    apt_get("host", "source", "-qq", spec, cwd=dest)
    stamp.touch()


def arm64(dest, pkgs):
    dest = Path(dest).resolve()
    stamp = dest / (".unpacked-" + "-".join(pkgs)[:120])
    if stamp.exists():
        return
    shutil.rmtree(dest, ignore_errors=True)
    dest.mkdir(parents=True)
    # A metapackage stands for what it depends on, so let apt resolve.
    args = ["install", "--no-install-recommends", "-y", *suite_args(pkgs)]
    names = [f"{name}_{ver.replace(':', '%3a')}_{arch}.deb"
             for name, ver, arch in
             re.findall(r"^Inst (\S+) \((\S+) .*\[(\w+)\]\)",
                        apt_get("arm64", *args, "--simulate"), re.M)]
    print(f"setup: downloading {len(names)} arm64 packages for "
          + " ".join(pkgs), flush=True)
    apt_get("arm64", *args, "--download-only")
    for name in names:
        run("dpkg-deb", "-x", APT / "arm64/archives" / name, dest)
    stamp.touch()


def main(argv):
    if len(argv) >= 3 and argv[1] == "install":
        install(argv[2:])
    elif len(argv) == 4 and argv[1] == "source":
        source(argv[2], argv[3])
    elif len(argv) >= 4 and argv[1] == "arm64":
        arm64(argv[2], argv[3:])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv)
