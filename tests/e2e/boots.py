#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""make boots [N=20]: N boots in a row, through all modes, each reading its disk."""
import shutil
import sys

from bed import BUILD, Bed, BedError, xen_image
from demo import MODES, boot_options, label, whole_boot
from test_boot import dom0_md5, host_data


def boot(mode):
    """Boot once; return (seconds, what is wrong)."""
    with Bed("boots", **boot_options(*mode)) as bed:
        try:
            want = host_data(bed)
            took = bed.boot()
            found = whole_boot(bed)
            if dom0_md5(bed) != want:
                found.append("the disk's data is wrong")
            return took, found
        except BedError as e:
            return None, [str(e)]


def keep(number):
    """Put the traces of a failed boot where the next one leaves them."""
    to = BUILD / f"run/boots-failed-{number}"
    shutil.rmtree(to, ignore_errors=True)
    (BUILD / "run/boots").rename(to)
    return to


def main(argv):
    times = argv[1] if len(argv) == 2 else "20"
    if not times.isdigit() or len(argv) > 2 or int(times) == 0:
        sys.exit(f"boots: N={' '.join(argv[1:])}: must be one number of "
                 "boots, 1 or more")
    times = int(times)
    try:
        xen_image()
    except BedError as e:
        sys.exit(f"boots: {e}")
    bad = 0
    for i in range(1, times + 1):
        mode = MODES[i % len(MODES)]
        took, found = boot(mode)
        if found:
            bad += 1
            found.append(f"kept in {keep(i)}")
        print(f"boot {i}/{times} {label(*mode)}: "
              + ("; ".join(found) or f"{took:.1f} s"), flush=True)
    print(f"boots: {times - bad} of {times} good")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main(sys.argv)
