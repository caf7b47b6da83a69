#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""make bench-native: MAP and UNMAP of 4K on the host, against a balanced tree.

Builds bench_native (native.c), runs it for 8192 and 1,000,000 mappings, and
prints nanoseconds, instructions (valgrind's callgrind) and bytes of memory for
each; also in build/results/native.json.

  native.py [--short]     short: few rounds, 8192 mappings, to see that it works
"""
import json
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
BINARY = TOP / "build/unit/native/bench_native"
OUT = TOP / "build/results/native.json"
WHAT = ("lazy", "strict", "tree")
ORDERS = ("row", "scattered")
BATCHES = (1, 128)
# Requests of a run, and runs; the median of all.
REQUESTS = 1 << 17
RUNS = 5
COUNTED = 6400


def build():
    subprocess.run(["make", "--no-print-directory", "-C", "tests/unit", "-f",
                    "../bench/native.mk"], cwd=TOP, check=True)


def command(key, requests):
    """KEY: what, order, mappings, batch, and contexts if not one."""
    what, order, mappings, batch, *contexts = key
    return [str(BINARY), str(mappings), str(batch),
            str(max(requests // batch, 2)), what, order, *map(str, contexts)]


def times(requests, runs, key):
    """One row: medians of RUNS runs, and their spread."""
    rows = [json.loads(subprocess.run(command(key, requests), check=True,
                                      capture_output=True, text=True).stdout)
            for _ in range(runs)]
    row = rows[0]
    for name in ("map_ns", "unmap_ns"):
        all_ = sorted(r[name] for r in rows)
        row[name] = statistics.median(all_)
        row[f"{name}_range"] = [all_[0], all_[-1]]
    return row


def instructions(requests, key):
    """(of a MAP, of an UNMAP)."""
    with tempfile.NamedTemporaryFile() as f:
        requests = requests // key[3] * key[3]
        subprocess.run(["valgrind", "--tool=callgrind", "--collect-atstart=no",
                        "--toggle-collect=measured_map",
                        "--toggle-collect=measured_unmap",
                        f"--callgrind-out-file={f.name}",
                        *command(key, requests)], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        text = subprocess.run(
            ["callgrind_annotate", "--inclusive=yes", "--auto=no",
             "--threshold=100", f.name], check=True, capture_output=True,
            text=True).stdout
    found = {m[2]: int(m[1].replace(",", "")) / requests for m in re.finditer(
        r"^ *([\d,]+) \(.*:(measured_\w+) \[", text, re.M)}
    return (round(found["measured_map"], 1), round(found["measured_unmap"], 1))


def table(rows):
    out = [f"{'':8}{'addresses':11}{'mappings':>9}{'batch':>6}"
           f"{'MAP ns':>9}{'insn':>7}{'UNMAP ns':>10}{'insn':>7}"
           f"{'bytes each':>12}"]
    for r in rows:
        out.append(f"{r['what']:8}{r['order']:11}{r['mappings']:9}"
                   f"{r['batch']:6}{r['map_ns']:9.0f}{r['map_insn']:7.0f}"
                   f"{r['unmap_ns']:10.0f}{r['unmap_insn']:7.0f}"
                   f"{r['bytes']:12.1f}")
    return out


def main(argv):
    if argv not in ([], ["--short"]):
        sys.exit(__doc__)
    requests, runs, counted, sizes = (256, 1, 256, (8192,)) if argv else \
        (REQUESTS, RUNS, COUNTED, (8192, 1000000))
    build()
    rows = []
    for order in ORDERS:
        for mappings in sizes:
            for batch in BATCHES:
                for what in WHAT:
                    key = (what, order, mappings, batch)
                    row = times(requests, runs, key)
                    row["map_insn"], row["unmap_insn"] = \
                        instructions(counted, key)
                    rows.append(row)
    print("\n".join(["", "A request of 4K on the host", "", *table(rows), ""]))
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(json.dumps({"rows": rows}, indent=1) + "\n")
    print(f"bench: {OUT.relative_to(TOP)}")


if __name__ == "__main__":
    main(sys.argv[1:])
