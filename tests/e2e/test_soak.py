# SPDX-License-Identifier: GPL-2.0-only
"""What has to go on for long.  SOAK=600 says how many seconds: make soak.

A guest without manners beside one whose data are verified; and in dom0 disks
that are verified while one of them comes and goes and strict changes."""
import os
import re
import time
import unittest

from bed import Bed
from guest import Guest, domains
from test_bridges import BUS, DEVICES, two_bridges
from test_guests import GUEST, LEFT, WRONG, tap
from test_platform import EDU
from test_xl import DISK, domain_info, free_memory, info

SOAK = int(os.environ.get("SOAK", "5"))
SEED = int(os.environ.get("SEED", "1"))
# Longer than anything takes that goes on.
STALL_SECONDS = 120
LINES_A_SECOND = 10             # PVI_FAULT_LINES
FAULT_LINE = re.compile(r"^\(XEN\) pviommu: fault", re.M)

# New data to the disk, and back, and whether they are the same.
VERIFY = f"""#!/bin/sh
while :; do
    dd if=/dev/urandom of=/tmp/data bs=256k count=4
    dd if=/tmp/data of={DISK} bs=256k seek=16 oflag=direct
    a=$(md5sum < /tmp/data)
    b=$(dd if={DISK} bs=256k skip=16 count=4 iflag=direct | md5sum)
    [ "$a" = "$b" ] && echo good || echo BAD
done 2>/dev/null >> /tmp/verified
"""

# A disk that is gone by then must not become a file of that name.
FIO = ("fio --allow_file_create=0 "
       "--ioengine=libaio --direct=1 --thread --iodepth=8 --bs=4k "
       "--verify=crc32c --verify_fatal=1 --size=4M")
FIRST, SECOND = "0000:00:01.0", "0000:00:02.0"
# The kernel's numbers are by chance; nvme0c1n1 is a path of disk nvme0n1.
DISK_OF = """#!/bin/sh
disk_of() {
    for b in /sys/bus/pci/devices/$1/nvme/nvme*/nvme*n1; do
        b=$(echo ${b##*/} | sed 's/c[0-9]*n/n/')
        [ -b /dev/$b ] && echo /dev/$b
    done
}
"""

# Verified all the time.
STEADY = DISK_OF + f"""
disk=$(disk_of {FIRST})
until [ -e /tmp/stop ]; do
    {FIO} --name=steady --filename=$disk --rw=randwrite > /tmp/steady 2>&1 ||
        cat /tmp/steady >> /tmp/failed
    echo . >> /tmp/steady.count
done
"""

# Comes and goes, in the middle of it.  That it is gone may be an error for fio;
# data that are wrong are none of those.
CHURN = DISK_OF + f"""
D=/sys/bus/pci/devices/{SECOND}
n=0
until [ -e /tmp/stop ]; do
    until disk=$(disk_of {SECOND}) && [ "$disk" ]; do
        [ -e /tmp/stop ] && exit
        usleep 50000
    done
    {FIO} --name=churn --filename=$disk --rw=randwrite --size=1M \\
        --loops=1000 > /tmp/churn 2>&1 &
    usleep 700000
    if [ $((n % 2)) = 0 ]; then
        echo {SECOND} > /sys/bus/pci/drivers/nvme/unbind
        wait
        echo {SECOND} > /sys/bus/pci/drivers/nvme/bind
    else
        echo 1 > $D/remove
        wait
        echo 1 > /sys/bus/pci/rescan
    fi
    grep -E "verify:|verify failed|magic|crc32c:" /tmp/churn | grep -v '^churn:' >> /tmp/failed
    n=$((n + 1))
    echo . >> /tmp/churn.count
done
"""

TOGGLE = """#!/bin/sh
until [ -e /tmp/stop ]; do
    for word in off on; do
        xl iommu-strict 0 $word >> /tmp/failed 2>&1 || echo toggle >> /tmp/failed
        echo . >> /tmp/toggle.count
        usleep 100000
    done
done
"""


class Hostile(unittest.TestCase):
    """With 4 vCPUs on 2, and another guest's disk behind the same SMMU."""

    def test_beside_another(self):
        with Bed("soak-hostile", xl=True, disk_mb=0, dtb_edit=two_bridges,
                 limit=3 * SOAK + 1200,
                 devices=[EDU, EDU,
                          f"pxb-pcie,bus_nr={BUS},id=pxb,bus=pcie.0,addr=8",
                          "pcie-root-port,id=rp,bus=pxb,addr=0",
                          "nvme,serial=second,drive=second,bus=rp"],
                 qemu_args=["-drive", "if=none,id=second,format=raw,"
                                      "file=second.img"],
                 files={"guest/bare": GUEST.read_bytes()}) as bed:
            with open(bed.dir / "second.img", "wb") as f:
                f.truncate(32 << 20)
            bed.boot()
            free = free_memory(bed)
            other = Guest(bed, "second", DEVICES["second"] +
                          'iommu = "virtio,strict=0"\n', base="pci.cfg")
            other.create()
            script = VERIFY.replace("\n", "\\n").replace("'", "")
            other.run(f"printf '{script}' > /tmp/v; (sh /tmp/v &)")
            hostile = Guest(bed, "hostile", DEVICES["first"] + f"""
kernel = "/guest/bare"
memory = 128
vcpus = 4
iommu = "virtio"
extra = "suite=hostile seconds={SOAK} seed={SEED}"
""", base="pci.cfg", without=["ramdisk"])
            start, began = len(bed.console), time.monotonic()
            status, text = hostile.try_create()
            self.assertEqual(status, 0, text)
            self.while_it_runs(bed, start, other)
            took = time.monotonic() - began

            text = bed.console[start:]
            lines = re.findall(r"\(d\d+\) (.*\n)", text)
            for test, good, details in tap("".join(lines)):
                with self.subTest(test):
                    self.assertTrue(good, details)
            self.assertLessEqual(len(FAULT_LINE.findall(text)),
                                 (LINES_A_SECOND + 1) * (took + 2))
            state = domain_info(bed, "hostile")
            left = {k: v for k, v in state["counters"].items()
                    if k in LEFT and v}
            self.assertEqual((left, state["contexts"], state["broken"]),
                             ({}, [], False))
            self.assertGreater(state["counters"]["req_bad"], 0)
            print("#", next(l.strip() for l in lines if "cases in" in l),
                  f"- the other guest verified {self.verified(other)} times")
            hostile.destroy()
            self.verified(other)
            other.destroy()
            self.assertEqual((domains(bed), free_memory(bed)), ({}, free))
            smmu = info(bed)["smmus"][0]
            # QEMU calls a full event queue one that can't be written.
            self.assertEqual({k: v for k, v in smmu["counters"].items()
                              if v and k in WRONG and
                              k not in ("event_overflow", "gerror")}, {})
            self.assertFalse(smmu["dead"])

    def verified(self, other):
        """How often the other guest has; never in vain."""
        text = other.run("cat /tmp/verified")
        self.assertNotIn("BAD", text)
        return text.count("good")

    def while_it_runs(self, bed, start, other):
        """The other guest goes on, to the end of the hostile one."""
        done, moved = self.verified(other), time.monotonic()
        while not re.search(r"\(d\d+\) (1\.\.\d+|Bail out!.*)\n",
                            bed.console[start:]):
            bed.receive(1)
            now = self.verified(other)
            if now > done:
                done, moved = now, time.monotonic()
            self.assertLess(time.monotonic() - moved, STALL_SECONDS,
                            f"the other guest stands still.  {bed.tail()}")


class Churn(unittest.TestCase):
    """dom0's second disk is unbound and bound, or removed and found again, in
    the middle of its data, and strict changes every 100 ms."""

    def test_fio(self):
        with Bed("soak-churn", xl=True, fio=True, disk_mb=16,
                 limit=2 * SOAK + 1200, xen_args=["dom0-viommu"],
                 devices=["nvme,serial=second,drive=second"],
                 qemu_args=["-drive", "if=none,id=second,format=raw,"
                                      "file=second.img"],
                 files={"steady": STEADY.encode(), "churn": CHURN.encode(),
                        "toggle": TOGGLE.encode()}) as bed:
            with open(bed.dir / "second.img", "wb") as f:
                f.truncate(16 << 20)
            bed.boot()
            for name in ("steady", "churn", "toggle"):
                bed.run(f"/{name} > /tmp/{name}.out 2>&1 &")
            end = time.monotonic() + SOAK
            before, moved = {}, {}
            # At least twice each way.
            while time.monotonic() < end or min(before.values()) < 4:
                time.sleep(2)
                for name, n in self.counts(bed).items():
                    if n > before.get(name, -1):
                        before[name], moved[name] = n, time.monotonic()
                    if time.monotonic() - moved[name] >= STALL_SECONDS:
                        self.fail(f"{name} stands still: " + bed.run(
                            f"cat /tmp/{name}.out; ps | grep -v '[[]'; "
                            "ls -d /sys/bus/pci/devices/*/nvme/*/nvme*n* "
                            "/dev/nvme*; dmesg | tail -n 40"))
            bed.run("touch /tmp/stop; wait", seconds=STALL_SECONDS)
            self.assertEqual(bed.run("cat /tmp/failed"), "")
            counts = self.counts(bed)
            print("#", counts)
            state = info(bed)
            mine = state["domains"][0]
            self.assertEqual((mine["broken"], mine["counters"]["errors"]),
                             (False, 0))
            # Both were in force.
            causes = {k: v for k, v in mine["counters"].items()
                      if k.startswith("flush_") and k != "flush_config"}
            self.assertGreater(causes.pop("flush_strict"), 0)
            self.assertGreater(sum(causes.values()), 0)
            self.assertEqual({k: v for k, v in
                              state["smmus"][0]["counters"].items()
                              if v and k in WRONG}, {})

    @staticmethod
    def counts(bed):
        return {name: int(bed.run(f"cat /tmp/{name}.count 2>/dev/null | wc -l"))
                for name in ("steady", "churn", "toggle")}


if __name__ == "__main__":
    unittest.main()
