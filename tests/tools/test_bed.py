# SPDX-License-Identifier: GPL-2.0-only
"""What the test bed computes without a machine."""
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests/e2e"))
import bed  # noqa: E402
import demo  # noqa: E402
import measure  # noqa: E402

DUMP = """\
(XEN) 'I' pressed -> dumping
(XEN) pviommu: smmu0 tlbi=10 sync=0x4 cfgi=2
(XEN) pviommu: smmu0 events=0 gerror=0
(XEN) [2026-01-01 00:00:00] pviommu: d0 strict=1 kicks=7 req_map=3
(XEN) pviommu: d12 strict=0
(XEN) pviommu: probe done
"""
TRACE = """\
smmuv3_cmdq_opcode <--- SMMU_CMD_TLBI_S2_IPA
smmuv3_cmdq_opcode <--- SMMU_CMD_TLBI_S12_VMALL
smmuv3_cmdq_opcode <--- SMMU_CMD_CFGI_STE
smmuv3_cmdq_opcode <--- SMMU_CMD_SYNC
"""
ROW = {"xen_strict": 1, "guest_strict": 1, "job": "j", "ios": 100,
       "iops": 10.0, "map_requests": 100, "unmap_requests": 100,
       "kicks": 200, "tlbi": 100, "sync": 100, "tlbi_trace": 100,
       "sync_trace": 100, "verify_errors": 0, "faults": 0, "flushes": 100,
       "domain_sync": 100, "flush_causes": {}}


class Parsing(unittest.TestCase):
    def test_counters(self):
        self.assertEqual(bed.parse_counters(DUMP), {
            "smmu0": {"tlbi": 10, "sync": 4, "cfgi": 2, "events": 0,
                      "gerror": 0},
            "d0": {"strict": 1, "kicks": 7, "req_map": 3},
            "d12": {"strict": 0}})

    def test_trace(self):
        with tempfile.NamedTemporaryFile("w") as f:
            f.write(TRACE)
            f.flush()
            self.assertEqual(bed.count_trace(f.name), (2, 1))
            # A window: without the first line and the last.
            first, last = (len(l) + 1 for l in (TRACE.splitlines()[0],
                                                TRACE.splitlines()[-1]))
            self.assertEqual(bed.count_trace(f.name, first,
                                             len(TRACE) - last), (1, 0))

    def test_lines_of_xen_within_lines_of_dom0(self):
        parts = ("$ a", "(XEN) x (1)\n", "b\n", "(XEN) y\n", "c")
        text = "".join(parts)
        ours = "".join(p if i % 2 == 0 else "\0" * len(p)
                       for i, p in enumerate(parts))
        # From wherever, also from within a line of Xen's.
        for start in range(len(text)):
            self.assertEqual(bed.without_xen(text, start),
                             ours[start:].replace("\0", ""), start)


class Hypervisor(unittest.TestCase):
    def image(self, data):
        with tempfile.NamedTemporaryFile() as f:
            f.write(data)
            f.flush()
            with mock.patch.dict("os.environ", XEN_IMAGE=f.name):
                self.assertEqual(bed.xen_image(), Path(f.name).resolve())

    def test_image(self):
        self.image(bytes(56) + b"ARMd")

    def test_not_an_image(self):
        for data in (b"", b"\x7fELF" + bytes(100)):
            with self.assertRaisesRegex(bed.BedError, "no arm64 Image"):
                self.image(data)

    def test_missing(self):
        with mock.patch.dict("os.environ", XEN_IMAGE="/nonexistent"), \
                self.assertRaisesRegex(bed.BedError, "/nonexistent"):
            bed.xen_image()


class Problems(unittest.TestCase):
    def test_none(self):
        self.assertEqual(measure.problems(ROW), [])

    def test_each(self):
        for change, word in (({"tlbi_trace": 99}, "traced 99"),
                             ({"sync_trace": 101}, "traced 101"),
                             ({"verify_errors": 1}, "verify_errors"),
                             ({"faults": 2}, "faults is 2"),
                             ({"flushes": 99}, "causes"),
                             ({"ios": 0}, "no I/O"),
                             ({"kicks": 99}, "100 syncs for 99 kicks")):
            with self.subTest(change):
                found = measure.problems({**ROW, **change})
                self.assertEqual(len(found), 1)
                self.assertIn(word, found[0])

    def test_lazy_does_not_wait(self):
        row = {**ROW, "xen_strict": 0, "flush_causes": {"flush_strict": 1}}
        self.assertIn("lazy: 1", measure.problems(row)[0])

    def test_table(self):
        lines = demo.table([ROW, {**ROW, "xen_strict": 0, "iops": 15.0}])
        self.assertEqual(len({len(l) for l in lines[2:]}), 1)
        self.assertIn(" 1.50 ", lines[3])
        self.assertIn(" 2.000 ", lines[3])


if __name__ == "__main__":
    unittest.main()
