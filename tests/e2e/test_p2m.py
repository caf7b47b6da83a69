# SPDX-License-Identifier: GPL-2.0-only
"""Changes of dom0's p2m while its NVMe translates with it, strict: they cost
what they must, by the SMMU's command trace.  make bench-p2m has the rest."""
import unittest

from bed import Bed
from guest import domains
from p2m_phases import (BALLOON_MB, BOOT_TRACE, PAGES_PER_MB, PvGuest, Window,
                        balloon, fixed_stream)

READS = 320
# The SMMU and a stream start: a handful; and Linux changes or removes one
# page, where each one filled would be hundreds of thousands.
BOOT_SYNCS = 8
BOOT_P2M_SYNCS = 1
# Balloon: Linux gives pages back by hundreds.
PAGES_PER_SYNC = 100


class Strict(unittest.TestCase):
    def test_counts(self):
        with Bed("test-p2m", xl=True, dtb_edit=fixed_stream,
                 xen_args=["dom0-viommu=no,strict=1"], qemu_args=BOOT_TRACE,
                 dom0_args=["pci=nomsi"], nvme="dbcs=off") as bed:
            self.counts(bed)

    def window(self, bed, name, **more):
        return Window(bed, name, counters=True, **more)

    def same(self, w):
        """Counters and trace agree."""
        self.assertEqual(sum(w.causes.values()), w.sync, w.causes)

    def counts(self, bed):
        with self.window(bed, "boot", running=True) as w:
            bed.boot()
        self.assertGreater(w.sync, 0)
        self.assertLessEqual(w.sync, BOOT_SYNCS, w.causes)
        self.assertLessEqual(w.causes.get("d0 p2m", 0), BOOT_P2M_SYNCS)

        # Removals by batches, and additions for nothing.
        pages = BALLOON_MB * PAGES_PER_MB
        with self.window(bed, "out") as w:
            balloon(bed, -pages)
        self.same(w)
        self.assertGreater(w.sync, 0)
        self.assertLess(w.sync, pages // PAGES_PER_SYNC * 2, w.causes)
        with self.window(bed, "in") as w:
            balloon(bed, pages)
        self.assertEqual((w.tlbi, w.sync), (0, 0), w.causes)

        # The toolstack maps kernel and initramfs' pages for nothing, and unmaps
        # each by itself; all of them wait for the start.
        guest = PvGuest(bed)
        with self.window(bed, "create") as w:
            guest.load_backend()
            self.assertEqual(guest.try_create("-p")[0], 0)
        self.same(w)
        size = int(bed.run("cat /guest/Image /guest/initramfs.cpio | wc -c"))
        self.assertGreater(w.sync, 0)
        self.assertLess(w.sync, (size >> 12) // PAGES_PER_SYNC, w.causes)
        bed.run("xl unpause small")
        guest.wait_for_shell(domains(bed)["small"])
        guest.load_frontend()

        # The end of a grant waits, once for a batch: one batch for each read.
        for bytes_each, batches in ((4096, 1), (65536, 2)):
            with self.window(bed, f"read-{bytes_each}") as w:
                guest.read(READS, bytes_each)
            self.same(w)
            # With indirect segments these are a batch of their own.
            self.assertLessEqual(w.sync, batches * READS, w.causes)
            self.assertGreaterEqual(w.sync, READS / 2, w.causes)
        guest.destroy()
        self.assertEqual(bed.counters()["d0"]["faults"], 0)


if __name__ == "__main__":
    unittest.main()
