# SPDX-License-Identifier: GPL-2.0-only
"""The benchmark of requests on the host runs, and no mapping has a node of its
own: memory for each is that of its entry."""
import json
import unittest
from pathlib import Path

import native


class Native(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        native.build()

    def test_rows(self):
        for what in native.WHAT:
            for order in native.ORDERS:
                with self.subTest(what=what, order=order):
                    row = native.times(256, 1, (what, order, 8192, 128))
                    self.assertEqual(row["mappings"], 8192)
                    if what == "tree":
                        self.assertGreater(row["bytes"], 40)
                    else:
                        # 8 for the entry; 18 tables of 512, and three above.
                        self.assertLessEqual(row["bytes"], 10.5)

    def test_instructions_do_not_grow(self):
        """A million live mappings cost what 8192 do."""
        few, many = (native.instructions(1280, ("lazy", "row", n, 128))
                     for n in (8192, 262144))
        for a, b in zip(few, many):
            self.assertLess(b, a * 1.1, (few, many))

    def test_table(self):
        row = {"what": "lazy", "order": "row", "mappings": 8192, "batch": 1,
               "map_ns": 1.0, "unmap_ns": 2.0, "map_insn": 3.0,
               "unmap_insn": 4.0, "bytes": 9.0}
        self.assertEqual(len(native.table([row, row])), 3)
        self.assertTrue(json.dumps(row))
        self.assertTrue(Path(native.BINARY).is_file())


if __name__ == "__main__":
    unittest.main()
