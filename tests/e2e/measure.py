# SPDX-License-Identifier: GPL-2.0-only
"""fio in dom0, with the driver's counters and QEMU's command trace over
exactly the same window."""
import base64
import gzip
import json
from dataclasses import dataclass

from bed import BedError, count_trace

DISK = "/dev/nvme0n1"
# Dumps of the counters until they rest; a few are enough.
DUMPS = 100
FIO = ("fio --ioengine=libaio --direct=1 --thread --output-format=json "
       "--output=/tmp/o")
COMMANDS = ("smmuv3_cmdq_opcode",)


@dataclass
class Job:
    name: str
    options: str
    disks: str = DISK           # separated by ':'


# Each takes about 3 seconds here.  The disk is sparse: reads are of zeros, and
# what is written is read back and compared.
JOBS = (
    Job("randread-4k", "--rw=randread --bs=4k --iodepth=32 --size=256m "
        "--runtime=3 --time_based"),
    Job("seqread-128k", "--rw=read --bs=128k --iodepth=8 --size=256m "
        "--runtime=3 --time_based"),
    Job("randwrite-4k-verify", "--rw=randwrite --bs=4k --iodepth=32 "
        "--offset=256m --size=12m --verify=crc32c "
        "--continue_on_error=verify"),
)


def total(counters, prefix, key):
    """Sum of KEY over the subjects that start with PREFIX."""
    return sum(v.get(key, 0) for s, v in counters.items()
               if s.startswith(prefix))


def causes(counters):
    """Sum of dom0's flushes by cause."""
    return sum(n for k, n in counters.get("d0", {}).items()
               if k.startswith("flush_"))


def fio(bed, options, disks=DISK):
    """Run fio; return (status, its report).  The report is packed, so that
    no line of Xen's lands in the middle of it."""
    status, text = bed.run(f"{FIO} --filename={disks} --name=j {options}",
                           check=False)
    packed = bed.run("gzip -c /tmp/o | base64 -w0; echo")
    try:
        report = gzip.decompress(base64.b64decode(packed)).decode()
        return status, json.loads(report[report.index("{"):])["jobs"][0]
    except (ValueError, OSError, KeyError, IndexError) as e:
        raise BedError(f"fio's report is not JSON ({e}), status {status}: "
                       f"{text}") from None


def at_rest(bed, trace):
    """(counters, length of the trace) at a moment when nothing is pending or
    under way: from one dump to the next no counter moved, no command came."""
    def look():
        now = bed.counters()
        return now, trace.stat().st_size if trace.exists() else 0

    last = look()
    for _ in range(DUMPS):
        this = look()
        if this == last and not this[0].get("d0", {}).get("pending"):
            return this
        last = this
    raise BedError(f"the counters do not come to rest in {DUMPS} dumps: "
                   f"{last[0]}")


def measure(bed, job, *, need_counters=True, events=COMMANDS):
    """Run JOB in a window of its own, with EVENTS in the trace of its name;
    return a row of the results."""
    name = f"{job.name}.trace"
    trace = bed.dir / name
    bed.trace_on(name, events)
    before, start = at_rest(bed, trace) if need_counters else ({}, 0)
    status, result = fio(bed, job.options, job.disks)
    after, end = at_rest(bed, trace) if need_counters else ({}, None)
    bed.trace_off(events)

    def diff(prefix, key):
        return total(after, prefix, key) - total(before, prefix, key)

    phases = [result[p] for p in ("read", "write") if result[p]["total_ios"]]
    ios = sum(p["total_ios"] for p in phases)
    msec = sum(p["runtime"] for p in phases)
    errors = result.get("total_err", 0) or int(bool(result["error"] or status))
    tlbi_trace, sync_trace = count_trace(trace, start, end)
    return {
        "job": job.name, "ios": ios,
        "iops": round(ios * 1000 / msec, 1) if msec else 0,
        "map_requests": diff("d0", "req_map"),
        "unmap_requests": diff("d0", "req_unmap"),
        "kicks": diff("d0", "kicks"),
        "tlbi": diff("smmu", "tlbi"), "sync": diff("smmu", "sync"),
        "tlbi_trace": tlbi_trace, "sync_trace": sync_trace,
        "verify_errors": errors,
        "faults": max(diff("d", "faults"), diff("smmu", "events")),
        "flushes": causes(after) - causes(before),
        "domain_sync": diff("d0", "sync"),
        "flush_causes": {
            k: v - before["d0"].get(k, 0)
            for k, v in after.get("d0", {}).items()
            if k.startswith("flush_") and v != before["d0"].get(k, 0)},
    }


def problems(row):
    """What is wrong with a row, one sentence each."""
    out = []
    for key in ("verify_errors", "faults"):
        if row[key]:
            out.append(f"{key} is {row[key]}, must be 0")
    for key in ("tlbi", "sync"):
        if row[key] != row[f"{key}_trace"]:
            out.append(f"{key} counted {row[key]}, traced "
                       f"{row[f'{key}_trace']}")
    if row["flushes"] != row["domain_sync"]:
        out.append(f"the causes of flushes add up to {row['flushes']}, "
                   f"syncs are {row['domain_sync']}: {row['flush_causes']}")
    if not row["ios"]:
        out.append("fio did no I/O")
    if row["xen_strict"] and row["sync"] > row["kicks"] and \
            row["guest_strict"] is not None:
        out.append(f"strict: {row['sync']} syncs for {row['kicks']} kicks")
    waited = row["flush_causes"].get("flush_strict", 0)
    if row["xen_strict"] == 0 and waited:
        out.append(f"lazy: {waited} flushes in the path of an unmap")
    return out
