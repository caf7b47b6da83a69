# SPDX-License-Identifier: GPL-2.0-only
"""The documents are true to the tree, as far as a program can tell: links,
anchors, make targets, paths, functions, tests, messages and counters."""
import functools
import os
import re
import tempfile
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
SKIP = {"build", ".git", "__pycache__"}
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6} +(.*?) *#*$", re.M)
FENCE = re.compile(r"^ *```.*?^ *```", re.M | re.S)
SPAN = re.compile(r"`([^`\n]+)`")
MAKE = re.compile(r"\bmake (?:[A-Z_]+=\S+ )*([a-z][a-z0-9-]*)(?![\w=./-])")
# Of Xen's own make, in instructions for a Xen tree.
XEN_TARGETS = {"defconfig", "olddefconfig"}
TARGET = re.compile(r"^([a-z][a-z0-9-]*):", re.M)
# A path, or a file, that may be followed by a name in it.
NAMED = re.compile(r"^([\w.*/+-]+?)(?::([\w.]+))?$")
SUFFIXES = (".c", ".h", ".py", ".sh", ".md", ".toml", ".mk")
# Of a Xen tree or made by the build, though they begin like ours.
NOT_OURS = re.compile(r"^(build|xen/(arch|drivers|common|xsm|tools)|"
                      r"arch/arm|/)(/|$)")
TEST_FILE = re.compile(r"^test_\w+\.(c|py)$")
PRINTK = re.compile(r'\b(?:printk|printk_once)\(\s*(?:XENLOG_\w+\s*)?'
                    r'((?:"(?:[^"\\]|\\.)*"\s*(?:PRI\w+\s*)?)+)')
FORMAT = re.compile(r"%[-#0-9.*]*(?:l*[duxsc]|p[dpv]|\"\s*PRI\w+\s*\")")
# Calls whose string becomes a part of a message.
REASON = re.compile(r'\b(?:REFUSE|pvi_fail|viommu_needs_reset|smmu_distrust)\('
                    r'[^;]*?"([^"]+)"\s*\)')


@functools.lru_cache(maxsize=2)
def files(top):
    """All files of the tree, built things left out."""
    out = []
    for where, dirs, names in os.walk(top):
        dirs[:] = sorted(set(dirs) - SKIP)
        out += [Path(where) / n for n in sorted(names)]
    return out


def documents(top):
    """All Markdown files of the tree."""
    return [p for p in files(top) if p.suffix == ".md"]


def anchors(text):
    """The anchors of a page's headings, as they are made by forges."""
    seen, out = {}, set()
    for h in HEADING.findall(FENCE.sub("", text)):
        h = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", h).replace("`", "")
        a = re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-")
        n = seen[a] = seen.get(a, -1) + 1
        out.add(f"{a}-{n}" if n else a)
    return out


def bad_links(_, page):
    text = page.read_text()
    for target in LINK.findall(FENCE.sub("", text)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists():
            yield f"link to {target}: no such file"
        elif anchor and anchor not in anchors(file.read_text()):
            yield f"link to {target}: no such heading"


def code(text):
    """Inline code and code blocks of a page."""
    return SPAN.findall(FENCE.sub("", text)) + FENCE.findall(text)


def bad_targets(top, page):
    known = XEN_TARGETS | set(
        TARGET.findall((top / "Makefile").read_text()))
    for text in code(page.read_text()):
        for target in MAKE.findall(text):
            if target not in known:
                yield f"make {target}: the Makefile has no such target"


def find(top, name):
    """The files that NAME may stand for."""
    if "/" not in name:
        return [p for p in files(top) if p.match(name)]
    return [p for base in (top, top / "passthrough")
            for p in base.glob(name.rstrip("/"))]


def holds(file, name):
    """Does FILE define, or register as a test, NAME?"""
    text = file.read_text()
    last = name.rsplit(".", maxsplit=1)[-1]
    if not TEST_FILE.match(file.name):
        return re.search(rf"\b{re.escape(last)}\b", text)
    if file.suffix == ".c":
        return re.search(rf"\b(?:[A-Z]|cmocka_unit_test\w*)\({last}\b", text)
    return all(re.search(rf"^\s*(?:class|def) {part}\b", text, re.M)
               for part in name.split("."))


def bad_names(top, page):
    """Paths, functions and tests in inline code that do not exist."""
    firsts = {p.name for p in top.iterdir()} - SKIP
    for span in SPAN.findall(FENCE.sub("", page.read_text())):
        m = NAMED.match(span)
        if not m or NOT_OURS.match(m[1]):
            continue
        path, name = m[1], m[2]
        file = path.endswith(SUFFIXES) and not path.startswith("*")
        if not file and not ("/" in path and path.split("/")[0] in firsts):
            continue
        hits = find(top, path)
        if not hits:
            yield f"`{span}`: no such file"
        elif name and not any(p.is_file() and holds(p, name) for p in hits):
            yield f"`{span}`: nothing of that name in it"


def messages(text):
    """Constant parts of the driver's messages in a C source."""
    for m in PRINTK.finditer(text):
        for p in FORMAT.split(m[1].replace('\\"', " ")):
            p = re.sub(r'"\s*"', "", p).replace("\\n", "").strip(' :(),"\n')
            if len(p) > 4 and p != "pviommu":
                yield p
    yield from REASON.findall(text)
    # Names of events.
    yield from re.findall(r'case EVT_\w+: +return "([^"]+)"', text)


def counters(text):
    """The names in the formats of a dump."""
    return re.findall(r"\b(\w+)=%", text.replace("%s=%", ""))


class Documents(unittest.TestCase):
    def each(self, check):
        pages = documents(TOP)
        self.assertGreater(len(pages), 5)
        bad = [f"{p.relative_to(TOP)}: {what}" for p in pages
               for what in check(TOP, p)]
        self.assertEqual(bad, [], "\n".join(bad))

    def test_links(self):
        self.each(bad_links)

    def test_make_targets(self):
        self.each(bad_targets)

    def test_paths_functions_and_tests(self):
        self.each(bad_names)

    def test_every_source_and_test_is_on_the_map(self):
        text = (TOP / "docs/source-map.md").read_text()
        lost = [str(rel) for p in files(TOP) for rel in [p.relative_to(TOP)]
                if (rel.parts[0] in ("passthrough", "arch", "xen", "tools")
                    or TEST_FILE.match(p.name))
                and p.suffix not in (".o", ".d") and f"`{rel}`" not in text]
        self.assertEqual(lost, [])

    def test_maintainers_files(self):
        globs = re.findall(r"^[FX]:\t(\S+)$",
                           (TOP / "MAINTAINERS").read_text(), re.M)
        self.assertGreater(len(globs), 10)
        self.assertEqual([g for g in globs if not find(TOP, g)], [])

    def test_every_message_of_the_driver_is_explained(self):
        text = (TOP / "docs/troubleshooting.md").read_text()
        lost, count = [], 0
        for p in sorted([*TOP.glob("passthrough/**/*.c"),
                         *TOP.glob("arch/**/*.c")]):
            if p.name == "dump.c":
                continue
            for part in messages(p.read_text()):
                count += 1
                if part not in text:
                    lost.append(f"{p.name}: {part}")
        self.assertGreater(count, 60)
        self.assertEqual(lost, [])

    def test_every_counter_is_explained(self):
        text = (TOP / "docs/command-line.md").read_text()
        dump = (TOP / "passthrough/dump.c").read_text()
        names = set(counters(dump)) | set(
            re.findall(r'^ +\[PVI_CAUSE_\w+\] += "(\w+)"', dump, re.M))
        self.assertGreater(len(names), 30)
        self.assertEqual([n for n in sorted(names) if f"`{n}`" not in text],
                         [])


class ItCanFail(unittest.TestCase):
    """Each check finds what is wrong, and only that."""

    def setUp(self):
        tmp = tempfile.TemporaryDirectory()
        self.addCleanup(tmp.cleanup)
        self.top = Path(tmp.name)
        (self.top / "docs").mkdir()
        (self.top / "passthrough/viommu").mkdir(parents=True)
        (self.top / "Makefile").write_text("demo: x\n")
        (self.top / "passthrough/viommu/a.c").write_text("int f(void);\n")
        (self.top / "test_a.c").write_text("static void g(void) {}\nT(h)\n")
        (self.top / "test_b.py").write_text("class C:\n    def t(self):\n")
        (self.top / "README.md").write_text("# Good `code`, and more\n")

    def found(self, check, text):
        page = self.top / "docs/x.md"
        page.write_text(text)
        files.cache_clear()
        return len(list(check(self.top, page)))

    def test_links(self):
        for text, bad in (("[a](../README.md#good-code-and-more)", 0),
                          ("[a](../README.md#good)", 1), ("[a](../no.md)", 1),
                          ("# B\n[a](#b)", 0), ("# B\n[a](#c)", 1),
                          ("[a](https://example.org/)", 0),
                          ("```\n[a](no.md)\n```", 0)):
            with self.subTest(text):
                self.assertEqual(self.found(bad_links, text), bad)

    def test_targets(self):
        for text, bad in (("`make demo`", 0), ("`make dmeo`", 1),
                          ("make believe", 0), ("```\nmake X=1 no\n```", 1),
                          ("`make -C tests check`", 0)):
            with self.subTest(text):
                self.assertEqual(self.found(bad_targets, text), bad)

    def test_names(self):
        for text, bad in (("`passthrough/viommu/a.c`", 0),
                          ("`passthrough/viommu/b.c`", 1), ("`a.c`", 0),
                          ("`viommu/a.c:f`", 0), ("`viommu/a.c:no`", 1),
                          ("`passthrough/`", 0), ("`passthrough/*/a.c`", 0),
                          ("`test_a.c:h`", 0), ("`test_a.c:g`", 1),
                          ("`test_b.py:C.t`", 0), ("`test_b.py:C.no`", 1),
                          ("`xen/drivers/any.c`", 0), ("`I/O`", 0)):
            with self.subTest(text):
                self.assertEqual(self.found(bad_names, text), bad)

    def test_messages(self):
        self.assertEqual(list(messages(
            'printk(XENLOG_ERR\n  "a: %s: long text %#"PRIx64" end\\n", s);'
            'printk_once("short %u\\n");')), ["long text", "short"])
        self.assertEqual(list(messages(
            'REFUSE(s, "IDR0", IDR(x), "no such");'
            'pvi_fail((a ?: b)->pd, "some reason");'
            'case EVT_A:  return "what";')),
            ["no such", "some reason", "what"])


if __name__ == "__main__":
    unittest.main()
