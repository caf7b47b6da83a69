#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""make demo: dom0's NVMe behind the virtio-iommu, strict and lazy.

Boots Xen under QEMU once for each combination of Xen's strict flag and the
guest's, and once with the virtio-iommu off; runs fio; prints one table and writes
build/results/demo.json.  Exit status 0 only if all data verified and the
driver's counters equal QEMU's trace of SMMU commands.

  --stock   only try the bed, with a hypervisor that has no counters
"""
import json
import os
import sys
import time

from bed import BUILD, Bed, BedError, xen_image
from measure import JOBS, measure, problems

# Of demo.json; the flushes by cause are in demo-detail.json.
COLUMNS = ("xen_strict", "guest_strict", "job", "ios", "iops", "map_requests",
           "unmap_requests", "kicks", "tlbi", "sync", "tlbi_trace",
           "sync_trace", "verify_errors", "faults")
# (Xen's strict, the guest's iommu.strict); None: virtio-iommu off.
MODES = ((1, 1), (1, 0), (0, 1), (0, 0), (1, None))


def label(xen, guest):
    return "off" if guest is None else \
        f"xen-{'strict' if xen else 'lazy'}-guest-{'strict' if guest else 'lazy'}"


def boot_options(xen, guest):
    """Options of Bed for a mode."""
    if guest is None:
        return {"xen_args": ["dom0-viommu=no"]}
    return {"xen_args": [f"dom0-viommu=strict={xen}"],
            "dom0_args": [f"iommu.strict={guest}"]}


def run_mode(xen, guest, stock):
    """Rows of one boot."""
    rows = []
    name = label(xen, guest)
    with Bed(f"demo-{name}", **boot_options(xen, guest)) as bed:
        print(f"{name}: booting", end="", flush=True)
        print(f" ({bed.boot():.1f} s)", end="", flush=True)
        for job in JOBS:
            print(f", {job.name}", end="", flush=True)
            row = measure(bed, job, need_counters=not stock)
            rows.append({"xen_strict": xen, "guest_strict": guest, **row})
            print(f" {row['iops']:.0f}/s", end="", flush=True)
        print()
        late = [] if stock else whole_boot(bed)
    return rows, [f"{name}: {p}" for p in late]


def whole_boot(bed):
    """Problems outside the windows: faults and errors since the start."""
    return [f"{s} {k}={v[k]} since the start, must be 0"
            for s, v in sorted(bed.counters().items())
            for k in ("faults", "errors", "events", "gerror", "req_bad")
            if v.get(k)]


def table(rows):
    """The table, as lines."""
    base = {r["job"]: r["iops"] for r in rows
            if (r["xen_strict"], r["guest_strict"]) == (1, 1)}
    head = ("xen", "guest", "job", "I/Os", "IOPS", "ratio", "MAP", "UNMAP",
            "kicks", "TLBI", "SYNC", "verify", "faults")
    lines = [("", "", "", "", "", "", "", "", "per", "I/O", "", "errors", "")]
    for r in rows:
        flag = {1: "strict", 0: "lazy", None: "off"}
        per = [f"{r[k] / r['ios']:.3f}" if r["ios"] else "-" for k in
               ("map_requests", "unmap_requests", "kicks", "tlbi", "sync")]
        ratio = base.get(r["job"])
        lines.append((flag[r["xen_strict"]] if r["guest_strict"] is not None
                      else "-", flag[r["guest_strict"]], r["job"],
                      str(r["ios"]), f"{r['iops']:.0f}",
                      f"{r['iops'] / ratio:.2f}" if ratio else "-", *per,
                      str(r["verify_errors"]), str(r["faults"])))
    lines = [head, *lines]
    width = [max(len(l[i]) for l in lines) for i in range(len(head))]
    return ["  ".join(c.ljust(w) if i < 3 else c.rjust(w)
                      for i, (c, w) in enumerate(zip(l, width))).rstrip()
            for l in lines]


def main(argv):
    if argv[1:] not in ([], ["--stock"]):
        sys.exit(__doc__)
    stock = argv[1:] == ["--stock"]
    began = time.monotonic()
    rows, bad = [], []
    try:
        print(f"demo: hypervisor {os.path.relpath(xen_image())}")
        for xen, guest in MODES:
            if stock and guest is not None:
                continue
            mode_rows, late = run_mode(xen, guest, stock)
            rows += mode_rows
            bad += late
    except BedError as e:
        print()
        sys.exit(f"demo: {e}")
    for r in rows:
        bad += [f"{label(r['xen_strict'], r['guest_strict'])} {r['job']}: {p}"
                for p in problems(r)]
    print("\n".join(["", *table(rows), ""]))
    out = BUILD / "results" / "demo.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(
        {"rows": [{k: r[k] for k in COLUMNS} for r in rows]}, indent=1) + "\n")
    out.with_name("demo-detail.json").write_text(
        json.dumps({"rows": rows}, indent=1) + "\n")
    for b in bad:
        print(f"demo: WRONG: {b}")
    print(f"demo: {len(rows)} rows in {time.monotonic() - began:.0f} s, "
          + (f"{len(bad)} problems" if bad else
             "all verified, counters equal the trace")
          + f"; {os.path.relpath(out)}")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main(sys.argv)
