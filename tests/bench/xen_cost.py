#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""What requests cost in Xen: executed instructions, by a QEMU plugin.

  xen_cost.py requests|slices ...

requests: per request, by kind, size and number in a kick; and where they go,
by function.  slices: one large request at a time, and the longest stretch that
the hypervisor works on it without looking whether others want the CPU.
Counts, not times: they repeat exactly.  Also in build/results/PART.json.
"""
import bisect
import json
import re
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(TOP / "tests/e2e"))
# pylint: disable=wrong-import-position
from bed import ACCEL_ICOUNT, BUILD, Bed    # noqa: E402

GUEST = BUILD / "guests/guest.img"
SYMS = BUILD / "xen/xen/xen-syms"
PLUGIN = BUILD / "bench/insn.so"
END = r"^(1\.\.\d+|Bail out!.*)\n"
PROFILED = 12
MODES = ("lazy", "strict")
# Of the driver's counters, over the whole run.
COMMANDS = ("kicks", "tlbi", "sync")


def plugin():
    """Build the plugin if it is older than its source."""
    src = TOP / "tests/bench/insn.c"
    if not PLUGIN.exists() or PLUGIN.stat().st_mtime < src.stat().st_mtime:
        PLUGIN.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-fPIC",
                        "-shared", "-o", PLUGIN, src], check=True)


def symbols():
    """Functions of Xen: sorted [(address, name)], and all by name."""
    text = subprocess.run(["aarch64-linux-gnu-nm", SYMS], check=True,
                          capture_output=True, text=True).stdout
    all_ = [(int(a, 16), n) for a, t, n in
            (l.split() for l in text.splitlines() if len(l.split()) == 3)
            if t in "tT" and not n.startswith("$")]
    return sorted(all_), {n: a for a, n in all_}


def run(part, strict):
    """One boot: [(label, counts of that window)], and the driver's counters
    after it."""
    _, by_name = symbols()
    bed = Bed(f"bench-{part}-{'strict' if strict else 'lazy'}", kernel=GUEST,
              xen_args=[f"dom0-viommu=strict={strict}", "dom0_mem=2560M"],
              dom0_args=["suite=bench", f"part={part}"], memory=4096,
              smp=1, disk_mb=0, devices=["edu,dma_mask=0xffffffffffffffff"],
              accel=ACCEL_ICOUNT, limit=3000)
    out = bed.dir / "insn.json"
    bed.qemu_args += ["-plugin", f"{PLUGIN},lo={by_name['_stext']:#x},"
                      f"hi={by_name['_etext']:#x},"
                      f"slice={by_name['pviommu_vcpu_work']:#x},"
                      f"stop={by_name['do_softirq']:#x},out={out}"]
    with bed:
        bed.start()
        end = bed.expect(END, 2900, 0)
        if end[1].startswith("Bail") or re.search(r"^not ok", bed.console, re.M):
            raise SystemExit(f"bench: the guest failed: {bed.dir}/console.log")
        labels = re.findall(r"^# mark: (.*)$", bed.console, re.M)
        counters = bed.counters()
    windows = [json.loads(l) for l in out.read_text().splitlines()]
    if len(windows) != len(labels):
        raise SystemExit(f"bench: {len(windows)} windows, {len(labels)} labels")
    return [(l, w) for l, w in zip(labels, windows) if l != "-"], counters


def profile(blocks, n):
    """[(function, instructions per request)], the largest first."""
    table, _ = symbols()
    addresses = [a for a, _ in table]
    by = {}
    for addr, count in blocks:
        name = table[bisect.bisect_right(addresses, addr) - 1][1]
        by[name] = by.get(name, 0) + count
    return sorted(((k, v / n) for k, v in by.items()), key=lambda x: -x[1])


def requests():
    rows, hot, commands = [], {}, {}
    for strict in (1, 0):
        windows, counters = run("requests", strict)
        commands[MODES[strict]] = {k: counters["d0"][k] for k in COMMANDS}
        for label, w in windows:
            what, size, batch, n = label.split()
            rows.append({"strict": strict, "request": what, "size": size,
                         "batch": int(batch), "requests": int(n),
                         "insn_per_request": round(w["xen"] / int(n), 1),
                         "slice_max": w["slice_max"]})
            if batch == "128" and size == "4K":
                hot[f"{MODES[strict]} {what}"] = \
                    [(f, round(c, 1)) for f, c in
                     profile(w["blocks"], int(n))[:PROFILED]]
    batches = sorted({r["batch"] for r in rows})
    print("\nInstructions in Xen per request, by requests in a kick\n")
    print(f"{'':8}{'':17}{'':4}" + "".join(f"{b:>9}" for b in batches))
    for key in dict.fromkeys((r["strict"], r["request"], r["size"])
                             for r in rows):
        line = [r["insn_per_request"] for r in rows
                if (r["strict"], r["request"], r["size"]) == key]
        print(f"{MODES[key[0]]:8}{key[1]:17}{key[2]:4}"
              + "".join(f"{v:9.0f}" for v in line))
    for what, functions in hot.items():
        print(f"\n{what} 4K, 128 in a kick, by function:")
        for f, c in functions:
            print(f"  {c:8.1f}  {f}")
    return {"rows": rows, "profile": hot, "commands": commands}


def slices():
    rows = []
    for strict in (1, 0):
        for label, w in run("slices", strict)[0]:
            rows.append({"strict": strict, "request": label,
                         "insn": w["xen"], "slice_max": w["slice_max"]})
    print("\nOne request: instructions in Xen, and in its longest slice\n")
    for r in rows:
        print(f"{MODES[r['strict']]:8}{r['request']:20}"
              f"{r['insn']:12}{r['slice_max']:9}")
    return {"rows": rows}


def main(parts):
    if not parts or set(parts) - {"requests", "slices"}:
        sys.exit(__doc__)
    plugin()
    for part in parts:
        result = {"requests": requests, "slices": slices}[part]()
        path = BUILD / f"results/{part}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(result, indent=1) + "\n")
        print(f"\nbench: {path.relative_to(TOP)}")


if __name__ == "__main__":
    main(sys.argv[1:])
