#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""make bench-scaling: does an operation cost the same when there is more?

requests: instructions and nanoseconds of a MAP and an UNMAP on the host, by
live mappings and by contexts (native.c).  io: kicks, TLBI and SYNC for each I/O
of Linux on Xen, by vCPUs and disks.  Prints tables, writes
build/results/scaling.json and scaling.svg.

  scaling.py [requests|io ...]
"""
import json
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests/e2e"))
# pylint: disable=wrong-import-position
from bed import BUILD, BedError                         # noqa: E402
from measure import Job, measure, problems              # noqa: E402
import native                                           # noqa: E402
import per_io                                           # noqa: E402
import plot                                             # noqa: E402

BATCH = 32
MAPPINGS = (64, 1024, 8192, 65536, 1000000)
CONTEXTS = (1, 10, 100, 1000)
OF_CONTEXTS = 65536             # mappings, of all contexts
NUMBERS = (1, 2, 4)             # of vCPUs, of disks
IOS = 2000                      # of each disk


def requests():
    """Rows by mappings and by contexts."""
    native.build()
    rows = []
    for n, contexts in [(n, 1) for n in MAPPINGS] + \
                       [(OF_CONTEXTS, c) for c in CONTEXTS[1:]]:
        key = ("lazy", "row", n, BATCH, contexts)
        row = native.times(native.REQUESTS, 3, key)
        row["map_insn"], row["unmap_insn"] = \
            native.instructions(native.COUNTED, key)
        rows.append(row)
    return rows


def requests_table(rows):
    out = ["", f"A request of 4K on the host, {BATCH} in a kick", "",
           f"{'mappings':>9}{'contexts':>10}{'MAP insn':>10}{'ns':>6}"
           f"{'UNMAP insn':>12}{'ns':>6}"]
    return out + [f"{r['mappings']:9}{r['contexts']:10}{r['map_insn']:10.0f}"
                  f"{r['map_ns']:6.0f}{r['unmap_insn']:12.0f}"
                  f"{r['unmap_ns']:6.0f}" for r in rows]


def job_of(vcpus, disks):
    names = ":".join(f"/dev/nvme{i}n1" for i in range(disks))
    return Job(f"vcpus{vcpus}-disks{disks}",
               "--rw=randread --bs=4k --iodepth=32 --group_reporting "
               f"--numjobs={vcpus} --size={per_io.MB // 2}m "
               f"--io_size={IOS * 4 * disks // vcpus}k", names)


def io(flags=((1, 1), (0, 0)), numbers=NUMBERS):
    """(rows, what is wrong); flags: Xen's strict and the guest's."""
    rows, bad = [], []
    for xen, guest in flags:
        for vcpus in numbers:
            with per_io.machine("scaling", xen, "ours", guest,
                                xen_args=[f"dom0_max_vcpus={vcpus}"],
                                **per_io.disks(numbers[-1])) as bed:
                bed.boot()
                for disks in numbers:
                    row = {"xen_strict": xen, "guest_strict": guest,
                           "vcpus": vcpus, "disks": disks,
                           **measure(bed, job_of(vcpus, disks))}
                    rows.append(row)
                    bad += [f"{row['job']}: {p}" for p in problems(row)]
    return rows, bad


def io_table(rows):
    out = ["", "4K random read, depth 32 of each thread, a thread for each "
           "vCPU: for each I/O", "",
           f"{'xen':8}{'guest':8}{'vCPUs':>6}{'disks':>6}{'MAP':>8}{'UNMAP':>8}"
           f"{'kicks':>8}{'TLBI':>8}{'SYNC':>8}"]
    word = {1: "strict", 0: "lazy"}
    return out + [f"{word[r['xen_strict']]:8}{word[r['guest_strict']]:8}"
                  f"{r['vcpus']:6}{r['disks']:6}" + "".join(
                      f"{r[k] / r['ios']:8.3f}" for k in per_io.COUNTS)
                  for r in rows]


def main(argv):
    if set(argv) - {"requests", "io"}:
        sys.exit(__doc__)
    path = BUILD / "results/scaling.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    result = json.loads(path.read_text()) if path.exists() else {}
    bad = []
    if not argv or "requests" in argv:
        result["requests"] = rows = requests()
        print("\n".join(requests_table(rows)), flush=True)
        series = {f"{name}, one context":
                  [(r["mappings"] / 1000, r[key]) for r in rows
                   if r["contexts"] == 1]
                  for name, key in (("MAP", "map_insn"),
                                    ("UNMAP", "unmap_insn"))}
        plot.lines(path.with_suffix(".svg"), "Instructions of a request on "
                   "the host by live mappings", "thousand mappings",
                   "instructions", series)
    if not argv or "io" in argv:
        try:
            result["io"], bad = io()
        except BedError as e:
            sys.exit(f"bench-scaling: {e}")
        print("\n".join(io_table(result["io"])), flush=True)
    path.write_text(json.dumps(result, indent=1) + "\n")
    for b in bad:
        print(f"bench-scaling: WRONG: {b}")
    print("\nbench-scaling: build/results/scaling.json")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main(sys.argv[1:])
