# SPDX-License-Identifier: GPL-2.0-only
"""make lint finds nothing in the project, and each of its checks can."""
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import cformat      # noqa: E402
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

# Good, and then what is wrong when a part of it is replaced.
LAYOUT = """int f(struct s *p, int a)
{
    struct s *q;
    unsigned int i;

    list_for_each_entry ( q, &p->list, list )
    {
        if ( q->a == a &&
             q->b )
            return call(q,
                        a);
        else
            a++;
    }
    for ( i = 0; ; i++ )
        switch ( a )
        {
        case 1: return 2;
        default:
            goto out;
        }

 out:
    do {
        a = p->a ? p->b
                 : p->c;
    } while ( a );

    return 0;
}
"""
LAYOUTS = (
    ("f(struct s *p, int a)\n{", "f(struct s *p, int a) {", "brace"),
    ("list )\n    {", "list ) {", "brace"),
    ("        else", "        } else", "brace"),
    ("    unsigned", "  unsigned", "indentation: column 2, not 4"),
    ("            a++", "          a++", "indentation"),
    ("             q->b", "         q->b", "indentation"),
    ("                        a);", "                a);", "indentation"),
    ("        case 1", "            case 1", "indentation"),
    ("if ( q", "if (q", "blanks: '(q', not '( q'"),
    ("if ( q", "if( q", "blanks"),
    ("q->b )", "q->b)", "blanks"),
    ("list_for_each_entry ( q", "list_for_each_entry (q", "blanks"),
    ("while ( a )", "while (a)", "blanks"),
    ("= 0;", "=0;", "blanks"),
    ("call(q,", "call (q,", "blanks"),
    ("*p, int", "*p,int", "blanks"),
)


class Clean(unittest.TestCase):
    """The project itself."""

    def clean(self, name):
        found = lint.CHECKS[name]()
        self.assertEqual(found, [], "\n".join(found))

    def test_style(self):
        self.clean("style")

    def test_layout(self):
        self.clean("layout")

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

    def test_layout(self):
        self.assertEqual(cformat.findings("a.c", LAYOUT), [])
        for good, bad, what in LAYOUTS:
            with self.subTest(bad):
                text = LAYOUT.replace(good, bad, 1)
                self.assertNotEqual(text, LAYOUT)
                found = cformat.findings("a.c", text)
                at = LAYOUT[:LAYOUT.index(good)].count("\n") + 1
                self.assertTrue([
                    f for f in found if what in f
                    and abs(int(f.split(":")[1]) - at) < 2], found)

    def test_layout_of_a_file(self):
        self.found("layout", "a.c", "int f(void)\n{\n  return 0;\n}\n",
                   "a.c:3: layout: indentation: column 2, not 4")

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
