# SPDX-License-Identifier: GPL-2.0-only
"""The native benchmark of requests runs, and counts the same twice."""
import unittest

import native


class Native(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        native.build()

    def test_runs(self):
        for kind in native.KINDS:
            for batch in native.BATCHES:
                row = native.run(kind, native.MAPPINGS[0], batch, 3)
                self.assertEqual((row["what"], row["batch"]), (kind, batch))
                self.assertGreater(row["map_ns"], 0)
        # 8 for the entry, and tables that are filled to 8/9.
        self.assertLess(native.run("lazy", 1000000, 128, 1)["bytes"], 9.1)

    def test_counts_repeat(self):
        first = native.instructions("lazy", 128)
        self.assertEqual(native.instructions("lazy", 128), first)
        self.assertGreater(min(first), 100)


if __name__ == "__main__":
    unittest.main()
