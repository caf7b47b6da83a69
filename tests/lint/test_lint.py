# SPDX-License-Identifier: GPL-2.0-only
"""make lint finds nothing in the project, and each of its checks can."""
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import lint         # noqa: E402

C_FILE = """/* SPDX-License-Identifier: GPL-2.0-only */
int f(int a);
int f(int a)
{
    int *p = 0;

    switch ( a )
    {
    case 1:
        *p = 1;
        return a / 0;
    }
    return a ? f(a - 1) : 0;
}
"""
FOOTER = '/*\n * c-file-style: "BSD"\n */\n'
STYLES = {
    "no SPDX line": "int a;\n",
    "a tab": "\tint a;\n",
    "blanks at the end": "int a; \n",
    "82 columns": "int " + "a" * 77 + ";\n",
    "no blanks inside the brackets of a condition": "    if (a)\n",
    "a brace at the end of a condition's line": "    while ( a ) {\n",
    "a comment of C++": "int a; // a\n",
}


class Clean(unittest.TestCase):
    """The project itself."""

    def clean(self, name):
        found = lint.CHECKS[name]()
        self.assertEqual(found, [], "\n".join(found))

    def test_style(self):
        self.clean("style")

    def test_cppcheck(self):
        self.clean("cppcheck")

    def test_shell(self):
        self.clean("shell")

    def test_python(self):
        self.clean("python")

    def test_spelling(self):
        self.clean("spelling")


class Finds(unittest.TestCase):
    """What a check is there for."""

    def setUp(self):
        tmp = tempfile.TemporaryDirectory()
        self.addCleanup(tmp.cleanup)
        self.dir = Path(tmp.name)

    def file(self, name, text):
        (self.dir / name).write_text(text)
        return [str(self.dir / name)]

    def found(self, check, name, text, *what):
        found = "\n".join(lint.CHECKS[check](self.file(name, text)))
        for w in what:
            self.assertIn(w, found)

    def test_style(self):
        good = "/* SPDX-License-Identifier: GPL-2.0-only */\n"
        self.assertEqual(
            lint.style_of("a.c", good + "    if ( a )\n" + FOOTER), [])
        for what, text in STYLES.items():
            with self.subTest(what):
                spdx = "" if "SPDX" in what else good
                found = lint.style_of("a.c", spdx + text + FOOTER)
                self.assertEqual([f.split(": ", 2)[2] for f in found], [what])
        self.assertIn("no footer", lint.style_of("a.c", good)[0])

    def test_cppcheck(self):
        self.found("cppcheck", "a.c", C_FILE, "cppcheck zerodiv",
                   "misra-c2012-16.4", "misra-c2012-17.2")

    def test_shell(self):
        self.found("shell", "a.sh", "#!/bin/sh\ncd $(pwd)\n", "SC2046")

    def test_python(self):
        self.found("python", "a.py", '"""A."""\nimport os\n', "unused-import")

    def test_spelling(self):
        self.found("spelling", "a.md", "t" + "eh\n", "==> the")


if __name__ == "__main__":
    unittest.main()
