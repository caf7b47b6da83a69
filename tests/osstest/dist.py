#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""make osstest-dist: build/osstest/pviommu-guest.tar.gz, what guests need that is
the same on every machine: kernel, initramfs, and the hostile guest."""
import io
import os
import sys
import tarfile
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tools"))
# pylint: disable=wrong-import-position
import dom0_image   # noqa: E402

OUT = TOP / "build/osstest/pviommu-guest.tar.gz"


def main():
    root = TOP / "build/arm64-root"
    version, image = dom0_image.kernel(root)
    files = {"Image": image,
             "initramfs.cpio": dom0_image.guest_initramfs(
                 root, root / "lib/modules" / version),
             "guest.img": (TOP / "build/guests/guest.img").read_bytes()}
    OUT.parent.mkdir(parents=True, exist_ok=True)
    tmp = OUT.with_suffix(".tmp")
    with tarfile.open(tmp, "w:gz") as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    tmp.rename(OUT)
    print(f"osstest-dist: {os.path.relpath(OUT)}, Linux {version}, "
          f"{OUT.stat().st_size >> 20} MB")


if __name__ == "__main__":
    main()
