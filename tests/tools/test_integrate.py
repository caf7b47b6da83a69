# SPDX-License-Identifier: GPL-2.0-only
"""tools/integrate.py on small made-up Xen trees."""
import os
import sys
import tempfile
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tools"))
import integrate  # noqa: E402

SOURCE = """\
void start(void);
void start(void)
{
    first();
    second();
}

void stop(void)
{
    first();
}
"""


class Integrate(unittest.TestCase):
    def setUp(self):
        tmp = tempfile.TemporaryDirectory()
        self.addCleanup(tmp.cleanup)
        self.top = Path(tmp.name) / "project"
        self.xen = Path(tmp.name) / "xen-src"
        self.put(self.xen, "xen/Makefile",
                 "export XEN_VERSION       = 4\n"
                 "export XEN_SUBVERSION    = 17\n"
                 "export XEN_EXTRAVERSION ?= .5$(XEN_VENDORVERSION)\n")
        self.put(self.xen, "xen/a.c", SOURCE)
        self.put(self.top, "passthrough/x/one.c", "one\n")
        self.put(self.top, "arch/arm64/pt.c", "pt\n")
        self.put(self.top, "xen/include/public/v.h", "v\n")
        (self.top / "xen/hooks").mkdir(parents=True)

    @staticmethod
    def put(root, path, text):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)

    def hook(self, *hooks):
        out = []
        for i, h in enumerate(hooks):
            h = {"name": f"h{i}", "file": "xen/a.c", "where": "after",
                 "text": f"    mine{i}();\n", **h}
            out.append("[[hook]]")
            for k, v in h.items():
                out.append(f"{k} = {self.toml(v)}")
        self.put(self.top, "xen/hooks/h.toml", "\n".join(out) + "\n")

    def toml(self, v):
        if isinstance(v, list):
            return "[" + ", ".join(map(self.toml, v)) + "]"
        if isinstance(v, dict):
            return "{" + ", ".join(f"{k} = {self.toml(x)}"
                                   for k, x in v.items()) + "}"
        return '"' + v.replace("\\", "\\\\").replace("\n", "\\n") + '"'

    def run_it(self):
        return integrate.integrate(self.xen, self.top)

    def a(self):
        return (self.xen / "xen/a.c").read_text()

    def fails(self, *words):
        before = {p: p.read_bytes() for p in self.xen.rglob("*")
                  if p.is_file()}
        with self.assertRaises(integrate.Error) as e:
            self.run_it()
        for w in words:
            self.assertIn(w, str(e.exception))
        after = {p: p.read_bytes() for p in self.xen.rglob("*")
                 if p.is_file()}
        self.assertEqual(before, after)

    def test_copies(self):
        self.run_it()
        d = self.xen / integrate.DRIVER
        self.assertEqual((d / "x/one.c").read_text(), "one\n")
        self.assertEqual((d / "arm64/pt.c").read_text(), "pt\n")
        self.assertEqual((self.xen / "xen/include/public/v.h").read_text(),
                         "v\n")

    def test_only_changed_files_are_written(self):
        self.hook({"find": r"second\(\)"})
        self.run_it()
        for f in self.xen.rglob("*.c"):
            os.utime(f, (1, 1))
        self.put(self.top, "passthrough/x/one.c", "two\n")
        self.assertEqual(self.run_it(), [f"{integrate.DRIVER}/x/one.c"])
        self.assertEqual((self.xen / "xen/a.c").stat().st_mtime, 1)

    def test_removed_source_is_removed(self):
        self.run_it()
        (self.top / "passthrough/x/one.c").unlink()
        self.run_it()
        self.assertFalse((self.xen / integrate.DRIVER / "x/one.c").exists())

    def test_places(self):
        self.hook({"find": r"second\(\)", "where": "after"},
                  {"find": r"second\(\)", "where": "before"},
                  {"find": r"^void start\(void\)$", "where": "replace",
                   "text": "int start(void)\n"})
        self.run_it()
        want = SOURCE.replace("    second();\n", "    mine1();\n"
                              "    second();\n    mine0();\n") \
            .replace("void start(void)\n{", "int start(void)\n{")
        self.assertEqual(self.a(), want)
        self.assertEqual(self.run_it(), [])

    def test_in(self):
        self.hook({"in": r"^void stop\(", "find": r"first\(\)"})
        self.run_it()
        self.assertEqual(self.a()[-28:], "    first();\n    mine0();\n}\n"[-28:])

    def test_in_list(self):
        self.hook({"in": [r"^void start\(void\)$", r"second"], "find": "^}"})
        self.run_it()
        self.assertIn("second();\n}\n    mine0();\n", self.a())

    def test_two_hooks_at_one_place_twice(self):
        self.hook({"find": "second"}, {"find": "second"})
        self.run_it()
        once = self.a()
        self.assertEqual(self.run_it(), [])
        self.assertEqual(self.a(), once)

    def test_changed_and_removed_hook(self):
        self.hook({"find": "second"}, {"find": "second"})
        self.run_it()
        self.hook({"find": "second", "text": "    other();\n"})
        self.run_it()
        self.assertEqual(self.a(), SOURCE.replace(
            "    second();\n", "    second();\n    other();\n"))
        self.hook()
        self.run_it()
        self.assertEqual(self.a(), SOURCE)

    def test_without_record(self):
        for where in integrate.PLACES:
            self.put(self.xen, "xen/a.c", SOURCE)
            self.hook({"find": "second", "where": where})
            self.run_it()
            once = self.a()
            self.assertNotEqual(once, SOURCE)
            (self.xen / integrate.RECORD).unlink()
            self.assertEqual(self.run_it(), [])
            self.assertEqual(self.a(), once)
            (self.xen / integrate.RECORD).unlink()

    def test_tree_reset_by_user(self):
        self.hook({"find": "second"})
        self.run_it()
        once = self.a()
        self.put(self.xen, "xen/a.c", SOURCE)
        self.run_it()
        self.assertEqual(self.a(), once)

    def test_conditions(self):
        yes = {"file": "xen/Makefile", "match": "SUBVERSION"}
        no = {"file": "xen/absent.h"}
        self.hook({"find": "second", "when": yes},
                  {"find": "second", "when": no},
                  {"find": "second", "unless": yes},
                  {"find": "second", "unless": [no, {"match": "third"}]},
                  {"find": "second", "when": [yes, no]})
        self.run_it()
        got = [i for i in range(5) if f"mine{i}" in self.a()]
        self.assertEqual(got, [0, 3])

    def test_no_place(self):
        self.hook({"find": "first", "in": "stop"}, {"find": "third"})
        self.fails("'h1'", "xen/a.c", "'third'", "4.17.5", "no line matches")

    def test_ambiguous(self):
        self.hook({"find": "first"})
        self.fails("2 lines match 'first'", "4, 10")

    def test_in_not_found(self):
        self.hook({"find": "first", "in": "nowhere"})
        self.fails("'nowhere'")

    def test_no_file(self):
        self.hook({"find": "x", "file": "xen/b.c"})
        self.fails("xen/b.c", "no such file")

    def test_syntax(self):
        for change, word in (({"where": "near"}, "near"),
                             ({"fnid": "x"}, "fnid"),
                             ({"find": "("}, "no regex"),
                             ({"when": {"x": "y"}}, "condition")):
            self.hook({"find": "second", **change})
            self.fails(word)
        self.put(self.top, "xen/hooks/h.toml", "[[hook]\n")
        self.fails("not TOML")
        self.put(self.top, "xen/hooks/h.toml", "[[hook]]\nname = 'n'\n")
        self.fails("'n'", "lacks file, find")

    def test_not_a_tree(self):
        with self.assertRaisesRegex(integrate.Error, "not a Xen tree"):
            integrate.integrate(self.top, self.top)


if __name__ == "__main__":
    unittest.main()
