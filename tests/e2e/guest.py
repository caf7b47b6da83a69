# SPDX-License-Identifier: GPL-2.0-only
"""Guests that xl creates in the dom0 of a test bed.

    with Bed("name", xl=True) as bed:
        bed.boot()
        guest = Guest(bed, "small", SMALL)
        guest.create()
        print(guest.run("cat /proc/cmdline"))
        guest.destroy()
"""
import re
import shlex
import time
from pathlib import Path

from bed import BedError

CONFIGS = Path(__file__).resolve().parent / "guest"
BRIDGE = "/pcie@10000000"
LOGS = "/var/log/xen/console"
# Only a hang takes longer, however busy the machine is.
BOOT_SECONDS = 300
RUN_SECONDS = 180
POLL_SECONDS = 0.2


def domains(bed):
    """{name: domid} by xl list, without dom0."""
    rows = [l.split() for l in bed.run("xl list").splitlines()[1:]]
    return {r[0]: int(r[1]) for r in rows if r and r[1] != "0"}


def put(bed, path, text):
    """Write TEXT to PATH in dom0."""
    bed.run("printf '%s\\n' " + " ".join(map(shlex.quote, text.splitlines()))
            + f" > {path}")


def pass_bridge(fdt):
    """dtb_edit of a Bed: the PCI host bridge is for a guest."""
    fdt.setprop(fdt.path_offset(BRIDGE), "xen,passthrough", b"")


class Guest:
    """One guest.

    BASE: the file in guest/ whose lines it has; CONFIG: lines for xl, instead
    of those of the same key; WITHOUT: keys of which there is no line."""

    def __init__(self, bed, name="small", config="", base="small.cfg",
                 without=()):
        self.bed, self.name, self.base = bed, name, base
        self.without = without
        self.cfg = f"/tmp/{name}.cfg"
        self.config = config
        self.count = 0
        self.tty = None
        self.poll = POLL_SECONDS

    @property
    def log(self):
        return f"{LOGS}/guest-{self.name}.log"

    def try_create(self, options=""):
        """(status, output) of xl create."""
        mine = f'name = "{self.name}"\n' + self.config
        # Of a key given twice the last line counts: only CONFIG says it.
        keys = {*(l.split("=")[0].strip() for l in mine.splitlines()),
                *self.without}
        base = (l for l in (CONFIGS / self.base).read_text().splitlines()
                if not l.startswith("#")
                and l.split("=")[0].strip() not in keys)
        put(self.bed, self.cfg, "\n".join(base) + "\n" + mine)
        self.bed.run(f"rm -f {self.log}")
        return self.bed.run(f"xl create {options} {self.cfg} 2>&1",
                            check=False)

    def create(self, options=""):
        """Create it and wait for its shell."""
        status, text = self.try_create(options)
        if status:
            raise BedError(f"xl create of {self.name} ended with {status}: "
                           f"{text}")
        domid = domains(self.bed)[self.name]
        self.wait_for_shell(domid)
        return domid

    def wait_for_shell(self, domid):
        self.tty = self.bed.run(
            f"xenstore-read /local/domain/{domid}/console/tty").strip()
        self.wait("guest# ", BOOT_SECONDS)
        self.bed.run(f"echo exec /bedshell GUEST > {self.tty}")
        self.wait("GUEST# ", RUN_SECONDS)

    def console(self):
        """What the guest has printed, lines ended by \\n alone."""
        text = self.bed.run(f"cat {self.log}")
        return text.replace("\r", "").replace("\0", "")

    def wait(self, regex, seconds):
        """Wait until the guest's console holds REGEX; return match, console."""
        end = time.monotonic() + seconds
        while True:
            text = self.console()
            m = re.search(regex, text, re.M)
            if m:
                return m, text
            if time.monotonic() > end:
                raise BedError(f"guest {self.name}: '{regex}' did not come "
                               f"within {seconds} s.  Its console ends with:\n"
                               + "\n".join(text.splitlines()[-25:]))
            time.sleep(self.poll)

    def run(self, command, *, check=True, seconds=RUN_SECONDS):
        """Run COMMAND in the guest; as Bed.run()."""
        self.count += 1
        line = f"{command}; echo \"@@{self.count}:$?\""
        self.bed.run(f": > {self.log}")
        self.bed.run(f"printf '%s\\n' {shlex.quote(line)} > {self.tty}")
        m, text = self.wait(rf"^(?:GUEST# )*@@{self.count}:(\d+)$", seconds)
        out = text[:m.start()].replace("GUEST# ", "")
        status = int(m[1])
        if not check:
            return status, out
        if status:
            raise BedError(f"guest {self.name}: '{command}' ended with "
                           f"{status}: {out}")
        return out

    def destroy(self):
        self.bed.run(f"xl destroy {self.name}")
