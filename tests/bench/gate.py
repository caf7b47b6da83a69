#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Does a request cost more than it did?

  gate.py             compares with tests/bench/gate.json
  gate.py --accept    makes what is measured now the committed figures

Figures of xen_cost.py, which repeat exactly: instructions in Xen for a request
and in its longest stretch, commands and kicks of the whole run.
"""
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
# pylint: disable=wrong-import-position
import xen_cost     # noqa: E402

COMMITTED = Path(__file__).resolve().parent / "gate.json"
PERCENT = 3


def measure():
    """{name: figure}."""
    xen_cost.plugin()
    part = xen_cost.requests()
    out = {f"{xen_cost.MODES[r['strict']]} {r['request']} {r['size']}, "
           f"{r['batch']} in a kick: instructions": r["insn_per_request"]
           for r in part["rows"]}
    for mode, counters in part["commands"].items():
        out.update({f"{mode}: all {k}": n for k, n in counters.items()})
    out.update({f"{xen_cost.MODES[r['strict']]} {r['request']}: longest "
                "stretch": r["slice_max"] for r in xen_cost.slices()["rows"]})
    return out


def compare(now, committed):
    """(what is worse, what is better or has no committed figure), in words."""
    worse, other = [], []
    for name in sorted(now.keys() | committed.keys()):
        if name not in now:
            worse.append(f"{name}: is not measured any more")
        elif name not in committed:
            other.append(f"{name}: {now[name]}, new")
        else:
            was, is_ = committed[name], now[name]
            change = (is_ - was) * 100 / was if was else 100 * bool(is_)
            line = f"{name}: {is_}, was {was} ({change:+.1f} %)"
            if change > PERCENT:
                worse.append(line)
            elif change < -PERCENT:
                other.append(line)
    return worse, other


def committed_figures():
    return json.loads(COMMITTED.read_text())


def main(argv):
    if argv not in ([], ["--accept"]):
        sys.exit(__doc__)
    now = measure()
    worse, other = compare(now, committed_figures()
                           if COMMITTED.exists() else {})
    print("\n".join(["", *(f"worse: {l}" for l in worse),
                     *(f"note: {l}" for l in other)]))
    if argv:
        COMMITTED.write_text(json.dumps(now, indent=1, sort_keys=True) + "\n")
        print(f"gate: {len(now)} figures in {COMMITTED.name}; commit it, and "
              "say why")
    else:
        print(f"gate: {len(now)} figures, {len(worse)} more than {PERCENT} % "
              "above the committed ones")
        sys.exit(bool(worse))


if __name__ == "__main__":
    main(sys.argv[1:])
