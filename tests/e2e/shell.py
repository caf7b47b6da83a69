#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""make shell: a terminal in dom0, with Xen's tools and a guest to create.

Ctrl-a three times goes to Xen's console and back.  What was on the line is in
build/run/shell/console.log.

  --bridge      the PCI host bridge is for a guest, /guest/pci.cfg
"""
import os
import select
import sys
import termios
import tty

from bed import Bed, BedError
from guest import pass_bridge

HINTS = """\
shell: try   xl create -c /guest/small.cfg   a guest with its console: Ctrl-]
shell:       xl list; xl destroy small       leaves it
shell:       /guest/pci.cfg                  the same with the PCI host bridge,
shell:                                       after 'make shell BRIDGE=guest'
shell: end it with 'poweroff -f', or Ctrl-\\
"""
END = b"\x1c"                   # Ctrl-\
SESSION_SECONDS = 12 * 3600


def relay(bed):
    """Connect this terminal with the serial line until one of them ends."""
    stdin, stdout = sys.stdin.fileno(), sys.stdout.fileno()
    while True:
        ready = select.select([bed.serial, stdin], [], [])[0]
        if stdin in ready:
            # Xen's receive ring has 128 bytes.
            data = os.read(stdin, 64)
            if not data or END in data:
                return
            bed.serial.sendall(data)
        if bed.serial in ready:
            data = bed.serial.recv(65536)
            if not data:
                return
            bed.log.write(data)
            os.write(stdout, data)


def main(argv):
    if argv[1:] not in ([], ["--bridge"]):
        sys.exit(__doc__)
    edit = pass_bridge if argv[1:] else None
    print("shell: booting", flush=True)
    with Bed("shell", xl=True, limit=SESSION_SECONDS, dtb_edit=edit) as bed:
        bed.boot()
        print(HINTS, flush=True)
        old = None
        if sys.stdin.isatty():
            old = termios.tcgetattr(sys.stdin)
            tty.setraw(sys.stdin)
        try:
            bed.send("stty sane; PS1='dom0# ' exec sh -i\n")
            relay(bed)
        finally:
            if old:
                termios.tcsetattr(sys.stdin, termios.TCSADRAIN, old)
            print("\nshell: ended")


if __name__ == "__main__":
    try:
        main(sys.argv)
    except BedError as e:
        sys.exit(f"shell: {e}")
