#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""make bench: all benchmarks, one after the other, into one file.

Each prints its tables and writes its own file into build/results; bench.json
has all of them and the machine they ran on, *.svg the plots.

  bench.py [--merge] [PART...]    merge: only what is there already
"""
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
RESULTS = TOP / "build/results"
sys.path.insert(0, str(TOP / "tests/bench"))
# pylint: disable=wrong-import-position
import plot     # noqa: E402

PYTHON = (sys.executable,)
# Part: what runs it, and the files that it writes.
PARTS = {
    "xen": ((*PYTHON, "tests/bench/xen_cost.py", "requests", "slices"),
            ("requests", "slices")),
    "native": ((*PYTHON, "tests/bench/native.py"), ("native",)),
    "scaling": ((*PYTHON, "tests/bench/scaling.py"), ("scaling",)),
    "cmdq": (("make", "--no-print-directory", "bench-cmdq"), ("cmdq",)),
    "io": ((*PYTHON, "tests/bench/per_io.py"), ("io",)),
    "delay": ((*PYTHON, "tests/bench/sync_delay.py"), ("delay",)),
    "p2m": ((*PYTHON, "tests/bench/p2m.py"), ("p2m",)),
}


def first_line(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True,
                              check=True).stdout.split("\n", 1)[0]
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def machine():
    """What it ran on."""
    names = [l.split(":", 1)[1].strip() for l in
             Path("/proc/cpuinfo").read_text().splitlines()
             if l.startswith("model name")]
    return {"date": time.strftime("%Y-%m-%d", time.gmtime()),
            "cpu": names[0] if names else platform.machine(),
            "cpus": os.cpu_count(), "load": os.getloadavg()[0],
            "kernel": platform.release(),
            "qemu": first_line("qemu-system-aarch64", "--version"),
            "gcc": first_line("gcc", "--version"),
            "commit": first_line("git", "-C", str(TOP), "rev-parse", "HEAD")}


def merge():
    """What is in the files of all parts."""
    out = {}
    for part in PARTS.values():
        for name in part[1]:
            path = RESULTS / f"{name}.json"
            if path.exists():
                out[name] = json.loads(path.read_text())
    return out


def plots(data):
    """Those that the parts don't draw themselves."""
    if "requests" in data:
        series = {}
        for r in data["requests"]["rows"]:
            if r["size"] == "4K" and r["strict"]:
                series.setdefault(r["request"], []).append(
                    (r["batch"], r["insn_per_request"]))
        plot.lines(RESULTS / "requests.svg", "Instructions in Xen for a "
                   "request of 4K, strict", "requests in a kick", "instructions",
                   series)
    if "cmdq" in data:
        rows = [r for r in data["cmdq"]["rows"] if r["smmu"] == "slow"]
        plot.lines(RESULTS / "cmdq.svg", "Commands a second, a slow SMMU",
                   "threads", "commands/s",
                   {name: [(r["threads"], r[name]["commands_per_s"])
                           for r in rows] for name in ("ours", "locked")})


def main(argv):
    only_merge = "--merge" in argv
    names = [a for a in argv if a != "--merge"] or list(PARTS)
    if set(names) - set(PARTS):
        sys.exit(__doc__)
    RESULTS.mkdir(parents=True, exist_ok=True)
    failed, took = [], {}
    for name in [] if only_merge else names:
        print(f"\nbench: {name}", flush=True)
        began = time.monotonic()
        env = {k: v for k, v in os.environ.items() if k != "XEN_IMAGE"}
        if subprocess.run(PARTS[name][0], cwd=TOP, check=False,
                          env=env).returncode:
            failed.append(name)
        took[name] = round(time.monotonic() - began)
    data = merge()
    plots(data)
    (RESULTS / "bench.json").write_text(json.dumps(
        {"machine": machine(), "seconds": took, **data}, indent=1) + "\n")
    print(f"\nbench: {', '.join(data)} in build/results/bench.json, plots in "
          "build/results/*.svg"
          + (f"; FAILED: {', '.join(failed)}" if failed else ""))
    sys.exit(bool(failed))


if __name__ == "__main__":
    main(sys.argv[1:])
