#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Make the kernel Image and the initramfs images from unpacked arm64 packages.

  dom0_image.py dom0 ROOT OUT
  dom0_image.py xl ROOT OUT SYSROOT TOOLS

ROOT and SYSROOT hold packages (setup.py arm64), TOOLS Xen's tools (build-tools.sh).
dom0: writes OUT/Image and OUT/initramfs.cpio: busybox, fio with exactly the
libraries it needs, the kernel modules of MODULES with what they depend on,
and tests/e2e/dom0/*.
xl: writes OUT/xl.cpio: the same with Xen's tools in place of fio, and a guest in
/guest: Linux, an initramfs of busybox, modules and tests/e2e/guest/init, and
configurations for xl and parts of device trees (tests/e2e/guest/*).
They are not compressed: unpacking them would cost more under emulation than
copying them.
"""
import gzip
import lzma
import os
import re
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
READELF = os.environ.get("CROSS_COMPILE", "aarch64-linux-gnu-") + "readelf"
FIO = ("usr/bin/fio",)
XL = ("usr/sbin/xl", "usr/sbin/xenstored", "usr/sbin/xenconsoled",
      "usr/bin/xenstore", "usr/lib/xen/bin/xen-init-dom0",
      "usr/lib/xen/bin/xenconsole")
XENSTORE_LINKS = ("chmod", "exists", "list", "ls", "read", "rm", "watch",
                  "write")
# Loaded by name when a thread ends, so no program says that it needs it.
BY_NAME = ("libgcc_s.so.1",)
LIBRARY_PATH = ("lib/aarch64-linux-gnu", "usr/lib/aarch64-linux-gnu",
                "usr/lib/aarch64-linux-gnu/ceph", "lib", "usr/lib")
# In the order in which init loads them; absent ones are built in or not there.
MODULES = {"iommu": ("virtio_mmio", "virtio_iommu"),
           "disk": ("nvme",),
           "xen": ("xen_evtchn", "xen_privcmd", "xen_gntdev", "xen_gntalloc",
                   "xenfs"),
           # On demand: a PV disk, for guests and in them.
           "blkback": ("xen_blkback",), "blkfront": ("xen_blkfront",),
           "uio": ("uio", "uio_pci_generic")}
DIRS = ("bin", "dev", "etc", "lib", "lib/aarch64-linux-gnu", "modules", "mnt",
        "proc", "root", "run", "sys", "tmp", "usr", "usr/bin", "var")
XL_DIRS = ("usr/sbin", "usr/lib", "usr/lib/xen", "usr/lib/xen/bin", "etc/xen",
           "var/lock", "var/run", "var/run/xen", "var/run/xenstored",
           "var/lib", "var/lib/xen", "var/log", "var/log/xen", "var/log/xen/console",
           "guest")
DOM0 = TOP / "tests/e2e/dom0"
GUEST = TOP / "tests/e2e/guest"


class Cpio:
    """A newc archive, in memory."""

    def __init__(self):
        self.out = bytearray()
        self.count = 0

    def add(self, name, mode, data=b"", rdev=(0, 0)):
        self.count += 1
        name = name.encode() + b"\0"
        head = [self.count, mode, 0, 0, 1, 0, len(data), 0, 0, *rdev,
                len(name), 0]
        self.out += b"070701" + b"".join(b"%08X" % v for v in head) + name
        self.pad()
        self.out += data
        self.pad()

    def pad(self):
        self.out += bytes(-len(self.out) % 4)

    def end(self):
        self.add("TRAILER!!!", 0)
        return self.out


def needed(path):
    """(interpreter or None, [libraries]) of the ELF file at PATH."""
    out = subprocess.run([READELF, "-ld", str(path)], text=True, check=True,
                         stdout=subprocess.PIPE).stdout
    interp = re.search(r"program interpreter: (\S+)\]", out)
    return (interp[1] if interp else None,
            re.findall(r"\(NEEDED\).*\[(.+)\]", out))


def find(roots, places, what):
    """The file at one of PLACES (relative) in one of ROOTS."""
    for root in roots:
        for p in places:
            if (root / p).exists():
                return root / p
    sys.exit(f"dom0-image: {what}: not in {', '.join(map(str, roots))}: add "
             "its package to DOM0_PACKAGES in Config.mk")


def closure(roots, programs, by_name=()):
    """name -> path of each library that PROGRAMS need, directly or not."""
    found = {}
    todo = list(programs)

    def take(name, user):
        if name not in found:
            found[name] = find(roots, [f"{d}/{name}" for d in LIBRARY_PATH],
                               f"{name}, which {user} needs")
            todo.append(found[name])

    for name in by_name:
        take(name, "a program")
    while todo:
        path = todo.pop()
        for name in needed(path)[1]:
            take(name, path)
    return found


class Modules:
    """The modules of a kernel, found by name, unpacked."""

    def __init__(self, root):
        self.files = {p.name.split(".ko")[0].replace("-", "_"): p
                      for p in root.rglob("*.ko*")}
        self.data = {}

    def load_order(self, names):
        """NAMES after what they depend on, without what is already there."""
        order = []
        for name in names:
            if name not in self.files or name in self.data:
                continue
            path = self.files[name]
            raw = path.read_bytes()
            data = lzma.decompress(raw) if path.suffix == ".xz" else raw
            deps = re.search(rb"\0depends=([^\0]*)", data)[1].decode()
            self.data[name] = data
            order += self.load_order(
                d.replace("-", "_") for d in deps.split(",") if d)
            order.append(name)
        return order


def kernel_image(path):
    """The raw Image in the vmlinuz at PATH (plain, gzip or EFI zboot)."""
    data = path.read_bytes()
    if data[4:8] == b"zimg":
        at = int.from_bytes(data[8:12], "little")
        size = int.from_bytes(data[12:16], "little")
        how = data[24:56].split(b"\0")[0].decode()
        unpack = {"gzip": gzip.decompress, "xz": lzma.decompress,
                  "lzma": lzma.decompress}.get(how)
        if unpack is None:
            sys.exit(f"dom0-image: {path} is compressed with '{how}', only "
                     "gzip, xz and lzma are known here")
        data = unpack(data[at:at + size])
    elif data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    if data[56:60] != b"ARMd":
        sys.exit(f"dom0-image: {path} holds no arm64 Image "
                 f"(magic {data[56:60]!r} at 56)")
    return data


def base(root, dirs):
    """A new archive with DIRS and busybox."""
    cpio = Cpio()
    for d in dirs:
        cpio.add(d, 0o040755)
    cpio.add("dev/console", 0o020600, rdev=(5, 1))
    cpio.add("bin/busybox", 0o100755, (root / "bin/busybox").read_bytes())
    cpio.add("bin/sh", 0o120777, b"busybox")
    return cpio


def add_programs(cpio, roots, programs, by_name=()):
    """PROGRAMS of ROOTS with their libraries and the loader."""
    paths = {p: find(roots, [p], p) for p in programs}
    for p, path in paths.items():
        cpio.add(p, 0o100755, path.read_bytes())
    for loader in {needed(path)[0] for path in paths.values()}:
        cpio.add(loader.lstrip("/"), 0o120777,
                 b"/lib/aarch64-linux-gnu/ld-linux-aarch64.so.1")
    libs = closure(roots, paths.values(), by_name)
    for name, path in sorted(libs.items()):
        cpio.add(f"lib/aarch64-linux-gnu/{name}", 0o100755, path.read_bytes())


def add_modules(cpio, modules, groups):
    for group in groups:
        order = modules.load_order(MODULES[group])
        cpio.add(f"modules/{group}.list", 0o100644,
                 "".join(f"{n}\n" for n in order).encode())
        for n in order:
            cpio.add(f"modules/{n}.ko", 0o100644, modules.data[n])


def add_dom0(cpio, modules):
    add_modules(cpio, modules, MODULES)
    for f in sorted(DOM0.iterdir()):
        cpio.add(f.name, 0o100755, f.read_bytes())


def dom0_initramfs(root, modules):
    cpio = base(root, DIRS)
    add_programs(cpio, [root], FIO)
    add_dom0(cpio, Modules(modules))
    return cpio.end()


def guest_initramfs(root, modules):
    cpio = base(root, DIRS)
    add_modules(cpio, Modules(modules), ("iommu", "disk", "blkfront"))
    cpio.add("init", 0o100755, (GUEST / "init").read_bytes())
    cpio.add("bedshell", 0o100755, (DOM0 / "bedshell").read_bytes())
    return cpio.end()


def device_tree(path):
    """The compiled form of the source at PATH, which uses macros."""
    text = subprocess.run(["cpp", "-nostdinc", "-undef", "-D__DTS__", "-P",
                           "-x", "assembler-with-cpp", str(path)], check=True,
                          stdout=subprocess.PIPE).stdout
    return subprocess.run(["dtc", "-q", "-I", "dts", "-O", "dtb"], input=text,
                          check=True, stdout=subprocess.PIPE).stdout


def xl_initramfs(root, modules, image, roots):
    cpio = base(root, DIRS + XL_DIRS)
    add_programs(cpio, roots, XL, BY_NAME)
    for name in XENSTORE_LINKS:
        cpio.add(f"usr/bin/xenstore-{name}", 0o120777, b"xenstore")
    cpio.add("etc/xen/xl.conf", 0o100644)
    add_dom0(cpio, Modules(modules))
    cpio.add("guest/Image", 0o100644, image)
    cpio.add("guest/initramfs.cpio", 0o100644, guest_initramfs(root, modules))
    for f in sorted(GUEST.glob("*.cfg")):
        cpio.add(f"guest/{f.name}", 0o100644, f.read_bytes())
    for f in sorted(GUEST.glob("*.dts")):
        cpio.add(f"guest/{f.stem}.dtb", 0o100644, device_tree(f))
    return cpio.end()


def kernel(root):
    """(version, Image) of the one kernel in ROOT."""
    kernels = sorted((root / "boot").glob("vmlinuz-*"))
    if len(kernels) != 1:
        sys.exit(f"dom0-image: {root}/boot holds {len(kernels)} kernels, must "
                 f"be one: remove {root} and run 'make setup'")
    return kernels[0].name.removeprefix("vmlinuz-"), kernel_image(kernels[0])


def write(path, data):
    tmp = path.with_suffix(".tmp")
    tmp.write_bytes(data)
    tmp.rename(path)


def main(argv):
    if len(argv) < 2 or (argv[1], len(argv)) not in (("dom0", 4), ("xl", 6)):
        sys.exit(__doc__)
    root, out, *more = map(Path, argv[2:])
    version, image = kernel(root)
    modules = root / "lib/modules" / version
    out.mkdir(parents=True, exist_ok=True)
    if argv[1] == "dom0":
        write(out / "Image", image)
        name, data = "initramfs.cpio", dom0_initramfs(root, modules)
    else:
        name, data = "xl.cpio", xl_initramfs(root, modules, image,
                                             [root, *more])
    write(out / name, data)
    print(f"dom0-image: Linux {version}, {name} {len(data) >> 20} MB")


if __name__ == "__main__":
    main(sys.argv)
