# SPDX-License-Identifier: GPL-2.0-only
"""Requests cost no more in Xen than when the figures of tests/bench/gate.json
were committed, by 3 %."""
import contextlib
import io
import os
import sys
import unittest

from bed import TOP

sys.path.insert(0, str(TOP / "tests/bench"))
# pylint: disable-next=wrong-import-position
import gate     # noqa: E402

HOW = ("\nIf that is as it should be: make bench-gate ACCEPT=1, and commit "
       "tests/bench/gate.json with the reason.")


class Gate(unittest.TestCase):
    @unittest.skipIf(os.environ.get("XEN_IMAGE"),
                     "the figures are those of the Xen that is built here")
    def test_figures(self):
        with contextlib.redirect_stdout(io.StringIO()):
            now = gate.measure()
        worse, other = gate.compare(now, gate.committed_figures())
        for line in other:
            print("# better or new:", line)
        self.assertEqual(worse, [], HOW)
        self.assertGreater(len(now), 80)

    def test_notices(self):
        was = {"a": 1000.0, "b": 2000, "gone": 5, "none": 0}
        worse, other = gate.compare(
            {"a": 1030.0, "b": 2061, "new": 7, "none": 1}, was)
        self.assertEqual(worse, [
            "b: 2061, was 2000 (+3.0 %)", "gone: is not measured any more",
            "none: 1, was 0 (+100.0 %)"])
        self.assertEqual(other, ["new: 7, new"])
        self.assertEqual(gate.compare(was, was), ([], []))
        self.assertEqual(gate.compare({"a": 960}, {"a": 1000})[0], [])


if __name__ == "__main__":
    unittest.main()
