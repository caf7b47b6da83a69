#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""make bench-p2m: SMMU commands that changes of the p2m cost, ours against
Xen's own SMMUv3 driver.

Same source of Xen, same machine, dom0 and guests; both drivers in one run.
dom0 has no virtio-iommu, so its devices translate with the p2m; their streams
are dom0's before dom0's memory is filled.  All counts are from QEMU's trace of
SMMU commands.  Prints a table, writes build/results/p2m.json.

Interrupts are INTx: Xen's own driver maps no MSI doorbell for devices.
"""
import functools
import json
import os
import sys
import time
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(TOP / "tests/e2e"))
# pylint: disable=wrong-import-position
from bed import BUILD, Bed, BedError    # noqa: E402
from p2m_phases import (                # noqa: E402
    BALLOON_MB, BOOT_TRACE, PAGES_PER_MB, PvGuest, Window, balloon,
    created_and_destroyed, fixed_stream, fixed_stream_for_guest)

STOCK = BUILD / "xen-stock.img"
DRIVERS = {"stock": (), "strict": ("dom0-viommu=no,strict=1",),
           "lazy": ("dom0-viommu=no,strict=0",)}
READS = ((10_000, 4096), (800, 65536))
# Of stock's syncs; for boot, create and destroy.
AIM_PERCENT = 1


def boot(driver, name, edit):
    """(bed that has booted, class of its windows, window of the boot)."""
    # The bed takes it from there.
    if driver == "stock":
        os.environ["XEN_IMAGE"] = str(STOCK)
    else:
        os.environ.pop("XEN_IMAGE", None)
    bed = Bed(f"p2m-{name}-{driver}", xen_args=DRIVERS[driver], xl=True,
              dtb_edit=edit, qemu_args=BOOT_TRACE, dom0_args=["pci=nomsi"],
              nvme="dbcs=off")
    window = functools.partial(Window, bed, counters=driver != "stock")
    try:
        with window("boot", running=True) as w:
            bed.boot()
    except BaseException:
        bed.close()
        raise
    return bed, window, w


def dom0_has_nvme(driver):
    """{key of a row: window} for one boot in which the NVMe is dom0's."""
    bed, window, w = boot(driver, "dom0", fixed_stream)
    out = {("boot", "dom0 of 1024 MB", 1): w}
    with bed:
        pages = BALLOON_MB * PAGES_PER_MB
        for way, n in (("out", -pages), ("in", pages)):
            with window(f"balloon-{way}") as w:
                balloon(bed, n)
            out["balloon", f"{BALLOON_MB} MB {way}", pages] = w
        guest = PvGuest(bed)
        guest.create()
        for n, size in READS:
            with window(f"pvdisk-{size}") as w:
                guest.read(n, size)
            out["pvdisk", f"{size >> 10} KiB", n] = w
    return out


def guest_has_bridge(driver):
    """The same for a boot in which a guest gets the PCI host bridge, and dom0
    keeps another device."""
    what = "256 MB, PCI bridge"
    bed, window, _ = boot(driver, "bridge", fixed_stream_for_guest)
    with bed:
        create, destroy = created_and_destroyed(bed, "pci", window)
    return {("create", what, 1): create, ("destroy", what, 1): destroy}


def rows_of(results):
    stock = results["stock"]
    return [{"phase": key[0], "mode": mode, "what": key[1], "ops": key[2],
             "ours_tlbi": ours.tlbi, "ours_sync": ours.sync,
             "stock_tlbi": stock[key].tlbi, "stock_sync": stock[key].sync,
             "causes": ours.causes}
            for mode in ("strict", "lazy")
            for key, ours in results[mode].items()]


def percent(row):
    return 100 * row["ours_sync"] / row["stock_sync"] \
        if row["stock_sync"] else None


def table(rows):
    head = ("phase", "what", "mode", "ops", "TLBI", "SYNC", "stock's TLBI",
            "SYNC", "ours/stock", "SYNC/op", "stock's", "causes")
    lines = [head]
    for r in rows:
        share = percent(r)
        lines.append((
            r["phase"], r["what"], r["mode"], str(r["ops"]),
            str(r["ours_tlbi"]), str(r["ours_sync"]), str(r["stock_tlbi"]),
            str(r["stock_sync"]), "-" if share is None else f"{share:.3f} %",
            f"{r['ours_sync'] / r['ops']:.3f}",
            f"{r['stock_sync'] / r['ops']:.3f}",
            ", ".join(f"{k} {v}" for k, v in r["causes"].items())))
    width = [max(len(l[i]) for l in lines) for i in range(len(head))]
    return ["  ".join(c.ljust(w) if i < 3 or i == 11 else c.rjust(w)
                      for i, (c, w) in enumerate(zip(l, width))).rstrip()
            for l in lines]


def problems(rows):
    """What is not as it is meant to be, one sentence each."""
    out = []
    for r in rows:
        where = f"{r['phase']} ({r['what']}), {r['mode']}"
        share = percent(r)
        if r["phase"] in ("boot", "create", "destroy") and \
                r["ours_sync"] and (share is None or share > AIM_PERCENT):
            out.append(f"{where}: {r['ours_sync']} syncs, stock has "
                       f"{r['stock_sync']}: more than {AIM_PERCENT} %")
        if r["phase"] == "pvdisk" and not r["stock_sync"]:
            out.append(f"{where}: stock did no sync: nothing was measured")
    return out


def main(argv):
    if argv[1:]:
        sys.exit(__doc__)
    began = time.monotonic()
    results = {}
    try:
        for driver in DRIVERS:
            results[driver] = {}
            for part in (dom0_has_nvme, guest_has_bridge):
                print(f"bench-p2m: {driver}, {part.__name__}", flush=True)
                results[driver].update(part(driver))
    except (BedError, AssertionError) as e:
        sys.exit(f"bench-p2m: {e}")
    rows = rows_of(results)
    print("\n".join(["", *table(rows), ""]))
    out = BUILD / "results" / "p2m.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps({"rows": rows}, indent=1) + "\n")
    for p in problems(rows):
        print(f"bench-p2m: above the aim: {p}")
    print(f"bench-p2m: {len(rows)} rows in {time.monotonic() - began:.0f} s; "
          f"{os.path.relpath(out)}")


if __name__ == "__main__":
    main(sys.argv)
