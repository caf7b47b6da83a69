# SPDX-License-Identifier: GPL-2.0-only
"""What the benchmarks compute from what they have measured."""
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))
# pylint: disable=wrong-import-position
import bench        # noqa: E402
import per_io       # noqa: E402
import scaling      # noqa: E402
import sync_delay   # noqa: E402


class Delay(unittest.TestCase):
    def test_reached(self):
        points = [(0, 1.0), (1000, 1.2), (2000, 1.4)]
        self.assertAlmostEqual(sync_delay.reached(points, 1.27), 1350)
        self.assertEqual(sync_delay.reached(points, 0.9), 0)
        self.assertIsNone(sync_delay.reached(points, 3.9))

    def test_verdict(self):
        rows = [{"xen_strict": x, "guest_strict": g, "job": job.name,
                 "delay_ns": d, "iops": 1000 - d / 10 * x * g}
                for x, g in sync_delay.MODES for job in sync_delay.JOBS
                for d in (0, 8000)]
        lines, found = sync_delay.verdict(rows)
        self.assertEqual(len(found), 3 * len(sync_delay.JOBS))
        self.assertAlmostEqual(found[0]["ratios"][1][1], 5)
        self.assertIsNone(found[0]["reached_ns"]["5.9"])
        self.assertIn("5.9 not reached; at most 5.00, at 8000 ns", lines[0])


class Tables(unittest.TestCase):
    def test_io(self):
        row = {"rw": "read", "depth": 1, "disks": 2, "ios": 10, "iops": 5.0,
               **{k: 10 for k in per_io.COUNTS}}
        lines = per_io.table([{**row, "mode": "a", "iommu": "ours"},
                              {**row, "mode": "b", "iommu": "off"},
                              {**row, "mode": "c", "iommu": "virtio"}])
        self.assertTrue(lines[3].endswith("1.00"), lines)
        self.assertTrue(lines[5].endswith("-"), lines)

    def test_scaling(self):
        row = {"xen_strict": 0, "guest_strict": 1, "vcpus": 2, "disks": 4,
               "ios": 4, **{k: 2 for k in per_io.COUNTS}}
        self.assertEqual(scaling.io_table([row])[-1].split(),
                         ["lazy", "strict", "2", "4"] + ["0.500"] * 5)

    def test_machine(self):
        self.assertGreater(bench.machine()["cpus"], 0)


if __name__ == "__main__":
    unittest.main()
