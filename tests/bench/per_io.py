#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""make bench-io: what an I/O costs, by who confines the disk.

fio with 4K blocks in Linux, on one NVMe disk and on two, with a fixed number of
I/Os: under Xen with this virtio-iommu and without, and on the same machine
without Xen: no IOMMU, Linux's own SMMUv3 driver, QEMU's own virtio-iommu.
The disks are of zeros and cost the host nothing.  Counted are requests, kicks
and the commands of the SMMU, in ours by the driver's counters (which have to
equal the trace), elsewhere by QEMU's trace.  Prints a table, writes
build/results/io.json and io.svg.

  per_io.py [--short]
"""
import json
import re
import sys
import time
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests/e2e"))
# pylint: disable=wrong-import-position
from bed import BUILD, Bed, BedError                    # noqa: E402
from demo import boot_options                           # noqa: E402
from measure import Job, measure, problems              # noqa: E402
from plain import Plain                                 # noqa: E402
import plot                                             # noqa: E402

# (name, Xen's strict or None without Xen, IOMMU, the guest's iommu.strict)
MODES = (("xen strict, guest strict", 1, "ours", 1),
         ("xen strict, guest lazy", 1, "ours", 0),
         ("xen lazy, guest strict", 0, "ours", 1),
         ("xen lazy, guest lazy", 0, "ours", 0),
         ("xen, no virtio-iommu", 1, "off", None),
         ("no xen, no IOMMU", None, None, 1),
         ("no xen, SMMUv3 strict", None, "smmuv3", 1),
         ("no xen, SMMUv3 lazy", None, "smmuv3", 0),
         ("no xen, virtio strict", None, "virtio", 1),
         ("no xen, virtio lazy", None, "virtio", 0))
SHORT = (MODES[0], MODES[9])
RW = (("randread", "read at random"), ("read", "read in a row"),
      ("randwrite", "write at random"))
DEPTHS = (1, 32, 128)
DISKS = (1, 2)
MB = 512
COUNTS = ("map_requests", "unmap_requests", "kicks", "tlbi", "sync")


def disks(n):
    """Options of a Bed: N disks of zeros that swallow what is written."""
    args = []
    for i in range(n):
        args += ["-drive", f"if=none,id=null{i},driver=null-co,"
                 f"size={MB << 20},read-zeroes=on",
                 "-device", f"nvme,id=nvme{i},serial=null{i},drive=null{i}"]
    return {"disk_mb": 0, "qemu_args": args}


def jobs(short):
    """[(job, rw, depth, disks)]"""
    out = []
    for n in DISKS[-1:] if short else DISKS:
        names = ":".join(f"/dev/nvme{i}n1" for i in range(n))
        for rw, _ in RW[:1] if short else RW:
            for depth in DEPTHS[1:2] if short else DEPTHS:
                ios = 500 if short else 1000 if depth == 1 else 2000
                out.append((Job(f"{rw}-{depth}-{n}", f"--rw={rw} --bs=4k "
                                f"--iodepth={depth} --size={MB // 2}m "
                                f"--io_size={ios * 4 * n}k", names),
                            rw, depth, n))
    return out


def machine(name, xen, iommu, strict, **options):
    """The bed of a mode."""
    options = {**disks(DISKS[-1]), **options}
    if xen is None:
        return Plain(name, iommu=iommu, strict=strict, **options)
    more = boot_options(xen, strict)
    more["xen_args"] = [*more["xen_args"], *options.pop("xen_args", [])]
    return Bed(name, **more, **options)


def virtio_counts(trace):
    """Of QEMU's virtio-iommu, from its trace."""
    text = trace.read_text() if trace.exists() else ""
    return {"map_requests": len(re.findall(r"^virtio_iommu_map ", text, re.M)),
            "unmap_requests": len(re.findall(r"^virtio_iommu_unmap ", text,
                                             re.M)),
            "kicks": len(re.findall(r"^virtio_queue_notify ", text, re.M))}


def one(bed, mode, job):
    """A row."""
    _, xen, iommu, strict = mode
    ours = xen is not None
    row = measure(bed, job[0], need_counters=ours,
                  **({} if ours else {"events": bed.events}))
    if not ours:
        row.update(tlbi=row["tlbi_trace"], sync=row["sync_trace"])
    if iommu == "virtio":
        row.update(virtio_counts(bed.dir / f"{job[0].name}.trace"))
    return {"mode": mode[0], "xen_strict": xen, "iommu": iommu,
            "guest_strict": strict, "rw": job[1], "depth": job[2],
            "disks": job[3], **row}


def wrong(row):
    """What is wrong with a row of any mode."""
    if row["xen_strict"] is not None:
        return problems(row)
    return [f"fio: {row['ios']} I/Os, {row['verify_errors']} errors"] \
        if row["verify_errors"] or not row["ios"] else []


def table(rows):
    """Lines: a block for each kind of I/O, depth and number of disks."""
    out = []
    keys = dict.fromkeys((r["rw"], r["depth"], r["disks"]) for r in rows)
    for key in keys:
        these = [r for r in rows if (r["rw"], r["depth"], r["disks"]) == key]
        base = {r["iommu"] in ("ours", "off"): r["iops"] for r in these
                if r["iommu"] in ("off", None)}
        out += ["", f"4K {dict(RW)[key[0]]}, depth {key[1]}, "
                f"{key[2]} disk{'s' * (key[2] > 1)}, for each I/O:",
                f"{'':26}{'MAP':>8}{'UNMAP':>8}{'kicks':>8}{'TLBI':>8}"
                f"{'SYNC':>8}{'IOPS':>9}{'of none':>9}"]
        for r in these:
            none = base.get(r["iommu"] in ("ours", "off"))
            out.append(f"{r['mode']:26}" + "".join(
                f"{r[k] / r['ios']:8.3f}" for k in COUNTS)
                + f"{r['iops']:9.0f}"
                + (f"{r['iops'] / none:9.2f}" if none else f"{'-':>9}"))
    return out


def figure(rows):
    """SYNC for each I/O by depth, of random reads on one disk."""
    series = {}
    for r in rows:
        if r["rw"] == "randread" and r["disks"] == 1 and r["sync"]:
            series.setdefault(r["mode"], []).append(
                (r["depth"], r["sync"] / r["ios"]))
    if series:
        plot.lines(BUILD / "results/io.svg",
                   "4K random read, one disk: SYNC for each I/O",
                   "depth", "SYNC", series)


def run(modes, short):
    """(rows, what is wrong)."""
    rows, bad = [], []
    for mode in modes:
        began = time.monotonic()
        with machine("io", *mode[1:]) as bed:
            bed.boot()
            for job in jobs(short):
                rows.append(one(bed, mode, job))
                bad += [f"{mode[0]}, {job[0].name}: {w}"
                        for w in wrong(rows[-1])]
        print(f"bench-io: {mode[0]}: {time.monotonic() - began:.0f} s",
              flush=True)
    return rows, bad


def main(argv):
    if argv not in ([], ["--short"]):
        sys.exit(__doc__)
    try:
        rows, bad = run(SHORT if argv else MODES, bool(argv))
    except BedError as e:
        sys.exit(f"bench-io: {e}")
    print("\n".join([*table(rows), ""]))
    (BUILD / "results").mkdir(exist_ok=True)
    (BUILD / "results/io.json").write_text(
        json.dumps({"rows": rows}, indent=1) + "\n")
    figure(rows)
    for b in bad:
        print(f"bench-io: WRONG: {b}")
    print("bench-io: build/results/io.json")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main(sys.argv[1:])
