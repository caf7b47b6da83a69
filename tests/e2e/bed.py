# SPDX-License-Identifier: GPL-2.0-only
"""The test bed: Xen and dom0 under QEMU with an SMMUv3, driven from Python.

    with Bed("name", xen_args=["dom0-viommu=strict=0"]) as bed:
        bed.boot()
        print(bed.run("cat /proc/cmdline"))

Everything of a run is in build/run/NAME/: console.log (all that came over the
serial line), qemu.log, disk.img, traces.  XEN_IMAGE=FILE overrides the
hypervisor, XEN_ARGS adds to its command line.  QEMU is ended by its pid, and
dies with this process.
"""
import ctypes
import json
import os
import re
import select
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
BUILD = TOP / "build"
sys.path.insert(0, str(TOP / "tools"))
# pylint: disable-next=wrong-import-position
from dom0_image import Cpio     # noqa: E402

PROMPT = "DOM0# "
KERNEL_AT, INITRD_AT = 0x50000000, 0x58000000
XEN_AT = 0x60000000             # with a firmware: tests/firmware/Makefile
XEN_ARGS = ["console=dtuart", "dom0_mem=1024M", "dom0_max_vcpus=2",
            "bootscrub=0", "loglvl=all", "guest_loglvl=all",
            "console_timestamps=none"]
# kpti=0: the seed in QEMU's tree would force it on and halve the I/O rate.
DOM0_ARGS = ["console=hvc0", "kpti=0", "nokaslr", "rdinit=/init", "quiet",
             "loglevel=4", "panic=-1", "nvme_core.admin_timeout=5"]
ACCEL = ("-accel", "tcg,thread=multi")
# One CPU at a time, and time that follows the instructions: repeatable, and
# nobody waits for a timer while all CPUs sleep.
ACCEL_ICOUNT = ("-accel", "tcg,thread=single", "-icount", "shift=1,sleep=off",
                "-rtc", "base=2024-01-01,clock=vm")
# What these take on an idle machine, tens of times over: only a hang is late.
BOOT_SECONDS = 240
RUN_SECONDS = 180
COUNTERS_SECONDS = 30
QEMU_SECONDS = 60
# The first with stage 2 in its SMMUv3.
QEMU_OLDEST = (8, 1)
# Xen drops what its receive ring of 128 bytes does not hold, and a busy dom0
# empties it late: no more than this is on its way at any time.
LINE_BYTES = 90
PIECE_BYTES = 50
COUNTER = re.compile(
    r"^\(XEN\) (?:\[.*?\] )?pviommu: (smmu\d+|d\d+)\s+(\w+=.*)$", re.M)
XEN_LINE = re.compile(r"\(XEN\) [^\n]*\n")
XEN_LINE_BEGUN = re.compile(r"\((X(E(N(\)( .*)?)?)?)?)?$")
# A key of Xen's that prints little, and the first line of that.
LAST_KEY, LAST_LINE = "m", r"^\(XEN\).*Physical memory information"


class BedError(Exception):
    """What did not happen, with the end of the console."""


def xen_image():
    """The hypervisor to boot."""
    path = Path(os.environ.get("XEN_IMAGE") or BUILD / "xen.img")
    if not path.is_file():
        raise BedError(f"no hypervisor at {path}: run 'make xen', or set "
                       "XEN_IMAGE to one that exists")
    with open(path, "rb") as f:
        magic = f.read(60)[56:]
    if magic != b"ARMd":
        raise BedError(f"{path} is no arm64 Image (it has {magic!r} at byte "
                       "56, not b'ARMd'): set XEN_IMAGE to the file xen/xen "
                       "of a Xen built for arm64, not to xen-syms or xen.gz")
    return path.resolve()


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class Bed:
    """One virtual machine: see the module's description."""

    # pylint: disable=too-many-instance-attributes,too-many-arguments
    def __init__(self, name, *, xen_args=(), dom0_args=(), devices=(),
                 cpu="cortex-a57", machine="virt", smp=2, memory=2048,
                 disk_mb=512, nvme="", qemu_args=(), dtb_edit=None,
                 limit=1200, xl=False, kernel=None, accel=ACCEL,
                 firmware=None, fio=False, files=()):
        """kernel: runs as dom0 instead of Linux, with dom0_args alone and no
        initramfs; such a machine is started with start(), not boot().
        firmware: an image that runs in Xen's place and starts Xen, which
        waits at XEN_AT.
        accel: QEMU's options for -accel and -icount.
        dtb_edit: function(libfdt.Fdt) that changes QEMU's device tree.
        disk_mb: size of the NVMe disk, sparse; 0 for none.
        xl: dom0 has Xen's tools and a guest in /guest; fio only with fio=True.
        files: {path in dom0: bytes}.
        nvme: more options of the NVMe controller.
        limit: seconds from the start after which nothing is waited for."""
        self.dir = BUILD / "run" / name
        shutil.rmtree(self.dir, ignore_errors=True)
        self.dir.mkdir(parents=True)
        self.disk = self.dir / "disk.img"
        self.xen_args = [*XEN_ARGS, *os.environ.get("XEN_ARGS", "").split(),
                         *xen_args]
        self.dom0_args = [*(() if kernel else DOM0_ARGS), *dom0_args]
        self.kernel, self.accel, self.firmware = kernel, accel, firmware
        self.devices = list(devices)
        self.cpu, self.smp, self.memory = cpu, smp, memory
        self.machine = (f"{machine},virtualization=on,iommu=smmuv3,"
                        "gic-version=3,its=on")
        self.disk_mb, self.nvme = disk_mb, nvme
        self.qemu_args = list(qemu_args)
        self.dtb_edit, self.limit = dtb_edit, limit
        self.xl, self.files = xl, dict(files)
        # What comes later replaces what came before.
        self.initrds = ["initramfs.cpio"] * (fio or not xl) + ["xl.cpio"] * xl
        if disk_mb:
            with open(self.disk, "wb") as f:
                f.truncate(disk_mb << 20)
        self.proc = self.serial = self.qmp = None
        self.console = ""           # all output, lines ended by \n alone
        self.partial = self.answers = b""
        self.log = open(self.dir / "console.log", "wb")
        self.deadline = None
        self.count = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # -- QEMU ------------------------------------------------------------

    def command(self):
        """QEMU's command line, without what loads dom0."""
        cmd = ["qemu-system-aarch64", "-M", self.machine, "-cpu", self.cpu,
               "-smp", str(self.smp), "-m", str(self.memory),
               *self.accel, "-display", "none",
               "-nodefaults", "-no-reboot", "-S", "-D", "qemu.log",
               "-chardev", "socket,id=ser,path=serial.sock,server=on,wait=on",
               "-serial", "chardev:ser",
               "-qmp", "unix:qmp.sock,server=on,wait=off",
               "-kernel", str(self.firmware or xen_image()),
               "-append", " ".join(self.xen_args)]
        if self.firmware:
            cmd += ["-device", f"loader,addr={XEN_AT:#x},file={xen_image()},"
                               "force-raw=on"]
        if self.disk_mb:
            cmd += ["-drive", "if=none,id=nvm,format=raw,file=disk.img",
                    "-device", "nvme,id=nvme0,serial=bed,drive=nvm"
                    + (self.nvme and "," + self.nvme)]
        for d in self.devices:
            cmd += ["-device", d]
        return cmd + self.qemu_args

    def loaders(self):
        """The options that put dom0 in memory and in the device tree."""
        kernel = self.kernel or BUILD / "dom0/Image"
        if not kernel.is_file():
            raise BedError(f"no {kernel}: run 'make dom0-image guests'")
        files = [(KERNEL_AT, kernel)]
        load = ["-device", f"guest-loader,addr={KERNEL_AT:#x},kernel={kernel},"
                "bootargs=" + " ".join(self.dom0_args).replace(",", ",,")]
        if not self.kernel:
            initrd = self.make_initrd()
            files.append((INITRD_AT, initrd))
            load += ["-device",
                     f"guest-loader,addr={INITRD_AT:#x},initrd={initrd}"]
        if not self.dtb_edit:
            return load
        self.edit_tree(load)
        return ["-dtb", "edited.dtb"] + [
            x for addr, f in files
            for x in ("-device", f"loader,addr={addr:#x},file={f},"
                                 "force-raw=on")]

    def make_initrd(self):
        """The file that dom0 gets as its initramfs."""
        parts = [BUILD / "dom0" / name for name in self.initrds]
        for p in parts:
            if not p.is_file():
                raise BedError(f"no {p}: run 'make dom0-image'")
        if len(parts) == 1 and not self.files:
            return parts[0]
        cpio = Cpio()
        for path, data in self.files.items():
            cpio.add(path, 0o100755, data)
        path = self.dir / "initrd.cpio"
        path.write_bytes(b"".join(p.read_bytes() for p in parts) + cpio.end())
        return path

    def edit_tree(self, load):
        import libfdt           # pylint: disable=import-outside-toplevel
        cmd = self.command()
        cmd[cmd.index("-M") + 1] += ",dumpdtb=qemu.dtb"
        cmd[cmd.index("-chardev") + 1] = "null,id=ser"
        subprocess.run(cmd + load, cwd=self.dir, check=True, timeout=QEMU_SECONDS,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        fdt = libfdt.Fdt((self.dir / "qemu.dtb").read_bytes())
        fdt.resize(fdt.totalsize() + 65536)
        self.dtb_edit(fdt)
        fdt.pack()
        (self.dir / "edited.dtb").write_bytes(fdt.as_bytearray())

    def start(self):
        """Start QEMU and connect to it."""
        cmd = self.command() + self.loaders()
        (self.dir / "command").write_text("\n".join(cmd) + "\n")
        try:
            with open(self.dir / "qemu.err", "wb") as err:
                # pylint: disable-next=consider-using-with,subprocess-popen-preexec-fn
                self.proc = subprocess.Popen(
                    cmd, cwd=self.dir, stderr=err, stdout=err,
                    stdin=subprocess.DEVNULL, preexec_fn=die_with_parent)
        except FileNotFoundError:
            raise BedError(f"no {cmd[0]} in PATH: run 'make setup'") from None
        self.deadline = time.monotonic() + self.limit
        self.serial = self.connect("serial.sock")
        self.qmp = self.connect("qmp.sock")
        self.qmp_line("its greeting")
        self.qmp_command("qmp_capabilities")
        version = self.qmp_command("query-version")["qemu"]
        if (version["major"], version["minor"]) < QEMU_OLDEST:
            raise BedError(
                f"QEMU {version['major']}.{version['minor']} is too old, "
                "its SMMUv3 has no stage 2: needed is "
                f"{'.'.join(map(str, QEMU_OLDEST))} or later, which 'make "
                "setup' installs")
        # Started only now (-S): a serial line that nobody reads is full after
        # some hundred characters, and then QEMU's monitor does not answer.
        self.cont()

    def connect(self, name):
        """Connect to a socket of QEMU's, whatever the length of its path."""
        fd = os.open(self.dir, os.O_DIRECTORY)
        end = time.monotonic() + QEMU_SECONDS
        try:
            while self.proc.poll() is None and time.monotonic() < end:
                s = socket.socket(socket.AF_UNIX)
                try:
                    s.connect(f"/proc/self/fd/{fd}/{name}")
                    return s
                except OSError:
                    s.close()
                    time.sleep(0.05)
        finally:
            os.close(fd)
        raise BedError(f"QEMU did not start ({self.dir}): "
                       + ((self.dir / "qemu.err").read_text().strip()
                          or f"no {name} within {QEMU_SECONDS} s"))

    def qmp_command(self, name, **args):
        line = json.dumps({"execute": name, "arguments": args}) + "\n"
        self.qmp.sendall(line.encode())
        while True:
            answer = json.loads(self.qmp_line(name))
            if "return" in answer:
                return answer["return"]
            if "error" in answer:
                raise BedError(f"QEMU refuses '{name} {args}': "
                               + answer["error"]["desc"])

    def qmp_line(self, what):
        """The next line of QEMU's monitor, which can't say anything while the
        serial line is full."""
        end = time.monotonic() + QEMU_SECONDS
        while b"\n" not in self.answers:
            ready = select.select([self.qmp, self.serial], [], [],
                                  max(0, end - time.monotonic()))[0]
            if not ready:
                raise BedError(f"QEMU does not answer '{what}' within "
                               f"{QEMU_SECONDS} s ({self.dir})")
            data = self.qmp.recv(65536) if self.qmp in ready else None
            if data == b"":
                raise BedError(f"QEMU ended during '{what}' ({self.dir}): "
                               + (self.dir / "qemu.err").read_text())
            self.answers += data or b""
            if self.serial in ready:
                self.receive(0)
        line, _, self.answers = self.answers.partition(b"\n")
        return line

    def hmp(self, line):
        """A command of QEMU's human monitor; returns its output."""
        return self.qmp_command("human-monitor-command",
                                **{"command-line": line})

    def close(self):
        """End QEMU, by its pid."""
        if self.proc and self.proc.poll() is None:
            self.proc.terminate()
            try:
                self.proc.wait(5)
            except subprocess.TimeoutExpired:
                self.proc.kill()
                self.proc.wait()
        for s in (self.serial, self.qmp):
            if s:
                s.close()
        self.log.close()

    def running(self):
        return self.proc is not None and self.proc.poll() is None

    # -- the serial line ---------------------------------------------------

    def receive(self, seconds):
        """Take in what comes within SECONDS; True if something came."""
        if not select.select([self.serial], [], [], max(0, seconds))[0]:
            return False
        data = self.serial.recv(65536)
        if not data:
            raise BedError(f"QEMU ended.  {self.tail()}")
        self.log.write(data)
        self.log.flush()
        data = self.partial + data
        cut = len(data) - next((k for k in (1, 2, 3) if
                                len(data) >= k and data[-k] >= 0xc0), 0)
        self.partial = data[cut:]
        self.console += data[:cut].decode(errors="replace").replace("\r", "")
        return True

    def send(self, text):
        """Type TEXT."""
        self.serial.sendall(text.encode())

    def send_long(self, command):
        """Put COMMAND into dom0's $cmd piece by piece, each when it is ready
        for it."""
        for i in range(0, len(command), PIECE_BYTES):
            start = len(self.console)
            piece = shlex.quote(command[i:i + PIECE_BYTES])
            self.send(f"cmd={'${cmd}' if i else ''}{piece}\n")
            self.expect(re.escape(PROMPT), RUN_SECONDS, start, dom0=True)

    def tail(self, lines=25):
        return (f"Console ({self.dir / 'console.log'}) ends with:\n"
                + "\n".join(self.console.splitlines()[-lines:]))

    def expect(self, regex, seconds, start=None, dom0=False):
        """Wait for REGEX at or after START of the console; return the match.

        dom0: match what is left from START on without Xen's lines, for these
        can come in the middle of a line of dom0's."""
        start = len(self.console) if start is None else start
        pattern = re.compile(regex, re.M)
        end = min(time.monotonic() + seconds, self.deadline)
        while True:
            m = pattern.search(without_xen(self.console, start)) \
                if dom0 else pattern.search(self.console, start)
            if m:
                return m
            left = end - time.monotonic()
            if left <= 0:
                raise BedError(f"'{regex}' did not come within {seconds} s.  "
                               + self.tail())
            self.receive(left)

    def boot(self, seconds=BOOT_SECONDS):
        """Start, and wait for dom0's prompt; return the seconds it took."""
        began = time.monotonic()
        if not self.running():
            self.start()
        self.expect(re.escape(PROMPT), seconds, 0)
        took = time.monotonic() - began
        if self.xl and os.environ.get("XEN_IMAGE") and \
                self.run("xl list", check=False)[0]:
            raise unittest.SkipTest("dom0's xl is not of XEN_IMAGE's version")
        return took

    # -- dom0 and Xen ------------------------------------------------------

    def run(self, command, *, check=True, seconds=RUN_SECONDS):
        """Run COMMAND (one line of shell) in dom0; return its output.

        Lines of Xen are left out.  A status other than 0 is an error unless
        check is false, then the result is (status, output)."""
        if "\n" in command:
            raise ValueError(f"one line only: {command!r}")
        self.count += 1
        if len(command) > LINE_BYTES:
            self.send_long(command)
            command = 'eval "$cmd"'
        start = len(self.console)
        self.send(f'{command}\necho "@@{self.count}:$?"\n')
        # Xen's lines are taken out, so what is before the match is dom0's.
        m = self.expect(rf"@@{self.count}:(\d+)\n(?s:.*?){PROMPT}", seconds,
                        start, dom0=True)
        text = m.string[:m.start()].replace(PROMPT, "")
        status = int(m[1])
        if not check:
            return status, text
        if status:
            raise BedError(f"dom0: '{command}' ended with {status}: {text}")
        return text

    def run_until(self, condition, seconds=RUN_SECONDS):
        """Run CONDITION in dom0 until it succeeds."""
        tries = seconds * 10
        self.run(f"i=0; until {condition}; do i=$((i + 1)); [ $i -lt {tries} ]"
                 " || break; usleep 100000; done > /tmp/until; "
                 f"[ $i -lt {tries} ]", seconds=3 * seconds)

    def xen_key(self, key, first, seconds=RUN_SECONDS):
        """Press KEY at Xen's console; return what Xen printed from a line
        that matches FIRST on."""
        self.send("\x01\x01\x01")
        start = self.expect(r"input to Xen.*\n", seconds).end()
        self.send(key)
        start = self.expect(first, seconds, start).start()
        # Xen works off one key after the other (but remembers only one that
        # waits): when the next one prints, this one has ended.
        self.send(LAST_KEY)
        end = self.expect(LAST_LINE, seconds, start).start()
        self.send("\x01\x01\x01")
        self.expect(r"input to DOM0.*\n", seconds, end)
        return self.console[start:end]

    def counters(self):
        """{"smmu0": {key: value}, "d0": {...}} by Xen's debug key 'I'."""
        try:
            return parse_counters(
                self.xen_key("I", COUNTER.pattern, COUNTERS_SECONDS))
        except BedError as e:
            raise BedError("Xen's key 'I' prints no counters ('(XEN) pviommu: "
                           "smmu0 tlbi=...'): is this hypervisor built with "
                           f"the driver, and did it find an SMMU?  {e}"
                           ) from None

    # -- the machine -------------------------------------------------------

    def stop(self):
        self.hmp("stop")

    def cont(self):
        self.hmp("cont")

    def trace_on(self, name, events=("smmuv3_cmdq_opcode",)):
        """Trace EVENTS into the file NAME of the run's directory."""
        self.hmp(f"logfile {name}")
        for e in events:
            self.hmp(f"trace-event {e} on")

    def trace_off(self, events=("smmuv3_cmdq_opcode",)):
        for e in events:
            self.hmp(f"trace-event {e} off")
        self.hmp("logfile qemu.log")


def without_xen(console, start):
    """What CONSOLE holds from START on without Xen's lines, without the rest
    of one that began before, too."""
    line = console.rfind("\n", 0, start) + 1
    begun = XEN_LINE_BEGUN.search(console[line:start])
    if begun:
        start = line + begun.start()
    return XEN_LINE.sub("", console[start:])


def parse_counters(text):
    """Merge the lines of a counter dump by subject."""
    out = {}
    for m in COUNTER.finditer(text):
        for item in m[2].split():
            key, _, value = item.partition("=")
            if re.fullmatch(r"-?\d+|0x[0-9a-f]+", value):
                out.setdefault(m[1], {})[key] = int(value, 0)
    return out


def count_trace(path, start=0, end=None):
    """(TLBI, SYNC) in the bytes START to END of a trace of
    smmuv3_cmdq_opcode."""
    data = Path(path).read_bytes()[start:end]
    return (len(re.findall(rb"smmuv3_cmdq_opcode.*TLBI", data)),
            len(re.findall(rb"smmuv3_cmdq_opcode.*CMD_SYNC", data)))
