#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""make osstest-standalone: the osstest jobs, on a host in QEMU.

  standalone.py [JOB...]      those whose name holds one of the words; all

Jobs come from mfi-pviommu and steps from tcl/pviommu.tcl, installed into a tree
with a small stand-in for osstest (t/), so what runs is what a lab runs: the
ts-* scripts, which copy steps/*.sh to the host and run them there.  The log is
as osstest's own in its standalone mode; each step's output is in
build/osstest/logs/.  Results are in build/results/osstest.json.
"""
import base64
import gzip
import io
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "e2e"), str(HERE.parents[1] / "tools")]
# pylint: disable=wrong-import-position
from bed import BUILD, Bed, BedError    # noqa: E402
from guest import BRIDGE, pass_bridge   # noqa: E402

FLIGHT = "standalone"
NVME = "0000:00:01.0"
# What a lab writes down for a host; here by the host flag that a job asks for.
PROPERTIES = {
    "pviommu-dom0": {"PviommuNvme": NVME},
    "pviommu-guest": {"PviommuBridge": BRIDGE,
                      "PviommuGuestConfig": "qemu-virt.tar.gz"},
}
COMMANDS = "/tmp/commands"
# Of the machine's time; here an attack goes a hundred times slower anyway.
HOSTILE_SECONDS = 5
# A step that hangs is the step's business, up to here.
STEP_SECONDS = 1500
RUN_TS = re.compile(r"^ +run-ts (\S+) +(\S+) +(ts-\S+)((?: \S+)*)$", re.M)
PROC = re.compile(r"^proc run-job/(\S+) \{\} \{\n(.*?)^\}", re.M | re.S)
# As much of osstest's own files as the hooks of install.sh need, and as makes
# make-flight print what it creates.
STUBS = {
    "sg-run-job": "#---------- main program ----------\n",
    "mfi-common": "job_create_test () { printf '%s\\n' \"$@\" ''; }\n",
    "make-flight": """set -e
. mfi-common
test_matrix_do_one () {
:
}
xenarch=arm64; dom0arch=arm64; kern=; most_hostflags=arch-arm64
test_matrix_do_one
""",
    "allow.all": "",
}


@dataclass
class Job:
    """What make-flight makes of it."""
    name: str
    recipe: str
    runvars: dict

    @property
    def flags(self):
        return self.runvars["all_hostflags"].split(",")


@dataclass
class Step:
    """A line of a recipe."""
    iffail: str
    testid: str
    script: str
    args: list
    status: str = "queued"
    seconds: float = 0
    log: str = ""


@dataclass
class Result:
    job: Job
    status: str = "queued"
    steps: list = field(default_factory=list)


def tree(top):
    """An osstest tree with our files in it, at TOP."""
    shutil.rmtree(top, ignore_errors=True)
    shutil.copytree(HERE / "t", top, ignore=shutil.ignore_patterns(
        "bin", "__pycache__", "test_*"))
    (top / "tcl").mkdir(parents=True)
    for name, text in STUBS.items():
        (top / name).write_text(text)
    subprocess.run([HERE / "install.sh", top], check=True,
                   stdout=subprocess.DEVNULL)
    return top


def flight(top):
    """The jobs."""
    more = f"pviommu_hostile_seconds={HOSTILE_SECONDS}"
    env = {"PVIOMMU_GUEST_RUNVARS": more, **os.environ}
    text = subprocess.run(["bash", "make-flight"], cwd=top, env=env, check=True,
                          text=True, stdout=subprocess.PIPE).stdout
    out = []
    for block in text.strip().split("\n\n"):
        name, recipe, toolstack, _, _, *variables = block.split("\n")
        runvars = dict(v.split("=", 1) for v in variables)
        out.append(Job(name, recipe, {"toolstack": toolstack,
                                      "host": "qemu", **runvars}))
    return out


def recipes(top):
    """{recipe: [Step]}, with testids as sg-run-job makes them."""
    out = {}
    for name, body in PROC.findall((top / "tcl/pviommu.tcl").read_text()):
        lines = RUN_TS.findall(body)
        if len(lines) != len(body.strip().splitlines()):
            raise ValueError(f"{name}: a line is no run-ts")
        out[name] = []
        for iffail, testid, script, rest in lines:
            before, _, after = rest.partition(" + ")
            if testid.startswith("="):
                testid = script.removeprefix("ts-") + "".join(
                    f"/{a}" for a in before.split()) + testid[1:]
            out[name].append(Step("fail" if iffail == "." else iffail, testid,
                                  script, [*before.split(), *after.split()]))
    return out


class Host:
    """A booted bed, behind a socket that t/bin/ssh and scp talk to.

    commands: {name: shell script} that go in front of the host's own."""

    def __init__(self, job, *, commands=None, **kw):
        self.commands = commands or {}
        self.flag = next(f for f in job.flags if f in PROPERTIES)
        if self.flag == "pviommu-guest":
            kw.setdefault("dtb_edit", pass_bridge)
        kw.setdefault("disk_mb", 64)
        xen_args = job.runvars.get("xen_boot_append", "").split()
        dom0_args = job.runvars.get("linux_boot_append", "").split()
        self.bed = Bed(f"osstest-{job.name}", xl=True,
                       files={"guest/guest.img": hostile_guest()},
                       xen_args=[*xen_args, *kw.pop("xen_args", ())],
                       dom0_args=[*dom0_args, *kw.pop("dom0_args", ())], **kw)
        self.dir = tempfile.mkdtemp(prefix="osstest-")
        self.name = f"{self.dir}/host"
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.name)
        self.listener.listen()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # Closing alone does not wake accept().
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.bed.close()
        shutil.rmtree(self.dir)

    def boot(self):
        self.bed.boot()
        self.bed.run(f"mkdir -p {COMMANDS}")
        for name, text in self.commands.items():
            self.put(f"{COMMANDS}/{name}", text.encode())
            self.bed.run(f"chmod +x {COMMANDS}/{name}")
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                s = self.listener.accept()[0]
            except OSError:
                return          # shut down
            with s:
                request = json.loads(s.makefile().readline())
                try:
                    status, out = self.answer(request)
                except (BedError, OSError) as e:
                    status, out = 255, f"{e}\n"
                try:
                    s.sendall((json.dumps({"status": status, "out": out})
                               + "\n").encode())
                except OSError:
                    pass        # who asked was timed out

    def answer(self, request):
        if "put" in request:
            return self.put(request["put"], bytes.fromhex(request["data"]))
        command = f"PATH={COMMANDS}:$PATH; {request['run']}" \
            if self.commands else request["run"]
        if "\n" in command:
            self.put("/tmp/ssh-command", command.encode())
            command = ". /tmp/ssh-command"
        return self.bed.run(f"sh -c {shlex.quote(command)} 2>&1",
                            check=False, seconds=request["seconds"])

    def put(self, path, data):
        text = base64.b64encode(gzip.compress(data)).decode()
        return self.bed.run(f"echo {text} | base64 -d | gunzip > {path}",
                            check=False)


def hostile_guest():
    """The guest without an operating system."""
    path = BUILD / "guests/guest.img"
    if not path.is_file():
        raise BedError(f"no {path}: run 'make guests'")
    return path.read_bytes()


def images(where, config):
    """The controller's Images: configuration and device tree for this host."""
    where.mkdir(parents=True, exist_ok=True)
    with tarfile.open(where / "qemu-virt.tar.gz", "w:gz") as tar:
        info = tarfile.TarInfo("pci.cfg")
        info.size = len(config)
        tar.addfile(info, io.BytesIO(config))


class Runner:
    """Runs jobs; say: what takes the lines of the log."""

    def __init__(self, say=print, where=BUILD / "osstest"):
        where.mkdir(parents=True, exist_ok=True)
        self.say, self.where = say, where
        self.tree = tree(where / "tree")
        self.recipes = recipes(self.tree)
        self.jobs = flight(self.tree)

    def log(self, text):
        self.say(time.strftime("%Y-%m-%d %H:%M:%S Z ", time.gmtime()) + text)

    def environment(self, job, host, config):
        base = self.where / "logs" / job.name
        base.mkdir(parents=True, exist_ok=True)
        files = {"runvars": job.runvars, "properties": PROPERTIES[host.flag]}
        for name, pairs in files.items():
            (base / name).write_text(
                "".join(f"{k}={v}\n" for k, v in pairs.items()))
        images(self.where / "images", config)
        return {**os.environ, "FAKE_RUNVARS": str(base / "runvars"),
                "FAKE_PROPERTIES": str(base / "properties"),
                "FAKE_IMAGES": str(self.where / "images"),
                "FAKE_HOST": host.name, "OSSTEST_FLIGHT": FLIGHT,
                "OSSTEST_JOB": job.name,
                "PATH": f"{HERE / 't/bin'}:{os.environ['PATH']}"}

    def step(self, job, number, step, call):
        """Run CALL, which returns a status, as a step, with its lines in the
        log."""
        what = " ".join([f"{FLIGHT}.{job.name}", step.script, *step.args])
        self.log(f"starting {what} {step.testid}")
        self.log(f"{FLIGHT}.{job.name} ========== {number} testid "
                 f"{step.testid} ==========")
        self.log(f"awaiting {what}")
        began = time.monotonic()
        step.log = str(self.where / "logs" / job.name
                       / f"{number}.{step.script}.log")
        with open(step.log, "w") as log:
            good = call(log)
        step.seconds = round(time.monotonic() - began, 1)
        step.status = "pass" if good else step.iffail
        self.log(f"{FLIGHT}.{job.name} {number} status status {step.status}")
        self.log(f"finished {what} {step.status}")
        return good

    def script(self, step, env):
        def call(log):
            try:
                return subprocess.run(
                    ["./" + step.script, *step.args], cwd=self.tree, env=env,
                    stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                    timeout=STEP_SECONDS, check=False).returncode == 0
            except subprocess.TimeoutExpired:
                log.write(f"timed out after {STEP_SECONDS} s\n")
                return False
        return call

    def run(self, job, only=None, config=None, **host):
        """Run JOB; a step that fails ends it.

        only: testids of the steps; config: guests' configuration, in place of
        the file of tests/e2e/guest; HOST: as Host."""
        config = config or (HERE.parent / "e2e/guest/pci.cfg").read_bytes()
        result = Result(job)
        steps = [Step(**{**vars(s)}) for s in self.recipes[job.recipe]
                 if only is None or s.testid in only]
        boot = Step("broken", "xen-boot", "ts-host-reboot", ["host"])

        def start(log):
            try:
                machine.boot()
                return True
            except BedError as e:
                log.write(f"{e}\n")
                return False

        with Host(job, **host) as machine:
            env = self.environment(job, machine, config)
            result.steps = [boot, *steps]
            for number, step in enumerate(result.steps, 1):
                call = start if step is boot else self.script(step, env)
                if not self.step(job, number, step, call):
                    result.status = step.iffail
                    break
            else:
                result.status = "pass"
        self.log(f"{FLIGHT}.{job.name} job status {result.status}")
        return result


def report(results):
    """The flight's report, as lines."""
    lines = ["", f"flight {FLIGHT}", ""]
    bad = [(r, n, s) for r in results for n, s in enumerate(r.steps, 1)
           if s.status not in ("pass", "queued")]
    if bad:
        lines += ["Tests which did not succeed,",
                  "including tests which could not be run:"]
        lines += [f" {r.job.name:45} {n:2} {s.testid:28} {s.status}  {s.log}"
                  for r, n, s in bad]
    else:
        lines += ["All tests in this flight passed"]
    return [*lines, "", "jobs:",
            *(f" {r.job.name:60} {r.status}" for r in results), ""]


def save(results, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"flight": FLIGHT, "jobs": [
        {"job": r.job.name, "recipe": r.job.recipe, "status": r.status,
         "steps": [{"stepno": n, "testid": s.testid, "step": s.script,
                    "status": s.status, "seconds": s.seconds,
                    "log": s.log and os.path.relpath(s.log, BUILD.parent)}
                   for n, s in enumerate(r.steps, 1)]}
        for r in results]}, indent=1) + "\n")


def main(argv):
    words = argv[1:]
    if any(w.startswith("-") for w in words):
        sys.exit(__doc__)
    runner = Runner(lambda line: print(line, flush=True))
    jobs = [j for j in runner.jobs
            if not words or any(w in j.name for w in words)]
    if not jobs:
        sys.exit("standalone: no such job; there are: "
                 + " ".join(j.name for j in runner.jobs))
    results = [runner.run(j) for j in jobs]
    out = BUILD / "results/osstest.json"
    save(results, out)
    print("\n".join(report(results)))
    print(f"standalone: {os.path.relpath(out)}")
    sys.exit(any(r.status != "pass" for r in results))


if __name__ == "__main__":
    main(sys.argv)
