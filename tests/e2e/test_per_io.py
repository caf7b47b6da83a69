# SPDX-License-Identifier: GPL-2.0-only
"""The benchmark of an I/O runs, with Xen and without, and counts what it has
to: make bench-io is the long form."""
import contextlib
import io
import os
import sys
import unittest

from bed import TOP

sys.path.insert(0, str(TOP / "tests/bench"))
# pylint: disable-next=wrong-import-position
import per_io     # noqa: E402


class PerIo(unittest.TestCase):
    @unittest.skipIf(os.environ.get("XEN_IMAGE"),
                     "it runs with the Xen that is built here")
    def test_short(self):
        with contextlib.redirect_stdout(io.StringIO()):
            rows, bad = per_io.run(per_io.SHORT, True)
        self.assertEqual(bad, [])
        ours, qemu = rows[0], rows[-1]
        # Strict and strict: an unmap is a kick, a TLBI and a SYNC; two disks.
        for key in ("tlbi", "sync", "unmap_requests"):
            self.assertAlmostEqual(ours[key] / ours["ios"], 1, delta=0.05)
        self.assertGreater(ours["kicks"], 1.9 * ours["ios"])
        # QEMU's own: what its trace says; lazy, so unmaps share kicks.
        self.assertEqual((qemu["tlbi"], qemu["sync"]), (0, 0))
        self.assertGreater(qemu["map_requests"], 0.9 * qemu["ios"])
        self.assertLess(qemu["kicks"], 1.5 * qemu["ios"])
        self.assertGreater(len(per_io.table(rows)), 4)

    def test_wrong(self):
        row = {"xen_strict": None, "ios": 0, "verify_errors": 0}
        self.assertTrue(per_io.wrong(row))
        self.assertEqual(per_io.wrong({**row, "ios": 1}), [])


if __name__ == "__main__":
    unittest.main()
