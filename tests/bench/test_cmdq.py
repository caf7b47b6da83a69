# SPDX-License-Identifier: GPL-2.0-only
"""The command queue's benchmark gives right results, with 1 to 16 threads.

Short runs: what is counted is looked at here, what is timed is not.
"""
import json
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class Cmdq(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        subprocess.run(["make", "--no-print-directory", "-C", "tests/unit",
                        "-f", "../bench/cmdq.mk"], cwd=ROOT, check=True)

    def bench(self, flavour):
        with tempfile.NamedTemporaryFile(suffix=".json") as f:
            p = subprocess.run([f"build/unit/{flavour}/bench_cmdq", "-t", "20",
                                "-n", "1", f.name], cwd=ROOT, text=True,
                               timeout=600, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, check=False)
            self.assertEqual(p.returncode, 0, p.stdout)
            return json.load(f)

    def test_threads_without_races(self):
        rows = self.bench("tsan")["rows"]
        # Some have published what others had marked, or this shows nothing.
        self.assertLess(min(r["ours"]["prod_writes_per_batch"] for r in rows),
                        0.95)

    def test_one_prod_write_for_a_batch(self):
        result = self.bench("opt")
        self.assertEqual([(r["smmu"], r["threads"]) for r in result["rows"]],
                         [(s, n) for s in ("fast", "slow")
                          for n in (1, 2, 4, 8, 16)])
        for r in result["rows"]:
            # At most two, when a publisher meets a batch that is half marked.
            self.assertLess(r["ours"]["prod_writes_per_batch"], 2, r)
            self.assertEqual(r["locked"]["prod_writes_per_batch"],
                             result["batch"] + 1, r)


if __name__ == "__main__":
    unittest.main()
