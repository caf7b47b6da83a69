# SPDX-License-Identifier: GPL-2.0-only
"""Go's bindings of libxl, made anew from the IDL as Xen's own make does it: they
have the `iommu` option, and Go's compiler takes them and a program that uses it."""
import os
import shutil
import subprocess
import unittest

from bed import BUILD

TREE = BUILD / "xen/tools"
DIR = BUILD / "run/go"

PROGRAM = """package xenlight

func example() (*DomainConfig, error) {
    c, err := NewDomainConfig()
    if err != nil {
        return nil, err
    }
    c.BInfo.ArchArm.Iommu = ArmIommu{Type: IommuTypeVirtio, PoolMemkb: 64}
    c.BInfo.ArchArm.Iommu.Strict.Set(false)
    return c, nil
}

func waits(info *Iommuinfo) uint64 {
    return info.Counters.FlushStrict + info.Counters.FlushOverlap
}
"""


def run(*cmd, **env):
    done = subprocess.run(cmd, cwd=DIR, env={**os.environ, **env}, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False)
    if done.returncode:
        raise AssertionError(f"{' '.join(map(str, cmd))}:\n{done.stdout}")


class Go(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        shutil.rmtree(DIR, ignore_errors=True)
        DIR.mkdir(parents=True)
        source = TREE / "golang/xenlight"
        for name in ("xenlight.go", "go.mod"):
            shutil.copy(source / name, DIR)
        run("/usr/bin/python3", source / "gengotypes.py",
            TREE / "libs/light/libxl_types.idl", "types.gen.go",
            "helpers.gen.go", LIBXL_SRC_DIR=str(TREE / "libs/light"))
        (DIR / "example.go").write_text(PROGRAM)

    def test_compiles(self):
        sysroot = f"--sysroot={BUILD / 'arm64-dev'}"
        run("go", "build", "./...", GOARCH="arm64", CGO_ENABLED="1",
            GOFLAGS="-mod=mod", GOPROXY="off", GOCACHE=str(DIR / "cache"),
            CC=f"aarch64-linux-gnu-gcc {sysroot}",
            CGO_CFLAGS=f"-I{BUILD / 'tools-root/usr/include'} "
                       f"-I{TREE / 'include'}")


if __name__ == "__main__":
    unittest.main()
