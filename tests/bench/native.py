#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""What requests cost on the host, natively: the driver's own files, against a
balanced tree with a node for each mapping.

  native.py [ROUNDS]

Nanoseconds: the median of ROUNDS (3000) kicks, which depends on the machine;
compare within one run.  Instructions are counted by callgrind, and repeat.
Also in build/results/native.json.  What is in it, and what is not: native.c.
"""
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent
BENCH = TOP / "build/unit/native/bench_native"
MAPPINGS = (8192, 1000000)
BATCHES = (1, 128)
KINDS = ("strict", "lazy", "tree")
COUNTED = 30        # rounds under callgrind


def build():
    subprocess.run(["make", "-s", "--no-print-directory", "-C", "tests/unit",
                    "-f", "../bench/native.mk"], cwd=TOP, check=True)


def run(kind, mappings, batch, rounds, under=()):
    p = subprocess.run([*under, BENCH, str(mappings), str(batch), str(rounds),
                        kind], check=False, text=True, stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE)
    if p.returncode:
        sys.exit(f"native: {BENCH.name} {kind} {mappings} {batch}: status "
                 f"{p.returncode}\n{p.stderr[-2000:]}")
    return json.loads(p.stdout)


def collected(function, kind, mappings, batch, rounds):
    """Instructions in FUNCTION, all calls of it."""
    with tempfile.TemporaryDirectory() as d:
        out = Path(d) / "callgrind"
        run(kind, mappings, batch, rounds,
            ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}",
             f"--toggle-collect={function}"])
        return int(re.search(r"^(?:summary|totals): (\d+)", out.read_text(),
                             re.M)[1])


def instructions(kind, batch):
    """(for a MAP, for an UNMAP) at the smaller number of mappings: what more
    rounds cost more, so that what came before counts for nothing."""
    n = COUNTED * batch
    return [round((collected(f, kind, MAPPINGS[0], batch, 2 * COUNTED) -
                   collected(f, kind, MAPPINGS[0], batch, COUNTED)) / n, 1)
            for f in ("measured_map", "measured_unmap")]


def measure(rounds):
    build()
    rows = []
    for kind in KINDS:
        for batch in BATCHES:
            insn = instructions(kind, batch)
            for n in MAPPINGS:
                row = run(kind, n, batch, rounds)
                row["map_insn"], row["unmap_insn"] = insn
                rows.append(row)
    return rows


def main(argv):
    rounds = int(argv[0]) if argv else 3000
    rows = measure(rounds)
    print("\nOne request, natively: ns (median) and instructions\n")
    print(f"{'':8}{'mappings':>10}{'in a kick':>10}{'MAP ns':>9}{'UNMAP ns':>9}"
          f"{'MAP insn':>10}{'UNMAP insn':>11}{'bytes each':>11}")
    for r in rows:
        print(f"{r['what']:8}{r['mappings']:10}{r['batch']:10}"
              f"{r['map_ns']:9.0f}{r['unmap_ns']:9.0f}{r['map_insn']:10.0f}"
              f"{r['unmap_insn']:11.0f}{r['bytes']:11.2f}")
    path = TOP / "build/results/native.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"rows": rows}, indent=1) + "\n")
    print(f"\nnative: {path.relative_to(TOP)}")


if __name__ == "__main__":
    main(sys.argv[1:])
