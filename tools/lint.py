#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""make lint: static checks; the last line is 'lint: N findings'.

  lint.py [CHECK...]     of: style layout cppcheck shell python spelling

style: what Xen's coding style says and a script can tell.
layout: clang-format with Xen's style, where it can hold it (tools/cformat.py).
cppcheck: its own checks, and the MISRA C:2012 rules that Xen follows.
Findings are FILE:LINE: CHECK: WHAT.  Links, commands and messages in docs/ are
checked by tests/tools/test_docs.py.
"""
import os
import re
import subprocess
import sys
from pathlib import Path

import cformat

TOP = Path(__file__).resolve().parent.parent
DRIVER = ("passthrough", "arch", "xen/include")
# The rules that Xen's docs/misra accepts and cppcheck's addon knows.
MISRA = """
2.1 2.6 3.1 3.2 4.1 4.2 5.1 5.2 5.3 5.4 5.6 6.1 6.2 7.1 7.2 7.3 8.1 8.2 8.3 8.4
8.5 8.6 8.8 8.10 8.12 8.14 9.1 9.3 9.4 10.2 11.1 11.2 11.3 11.6 11.7 12.5 13.2
13.6 14.1 14.3 16.1 16.2 16.3 16.4 16.6 16.7 17.1 17.2 17.3 17.4 17.5 17.6 18.1
18.2 18.3 18.6 18.8 19.1 20.2 20.3 20.4 20.6 20.9 20.11 20.12 20.13 20.14 21.1
21.2 21.3 21.4 21.5 21.6 21.7 21.8 21.9 21.10 21.11 21.12 21.13 21.14 21.15
21.16 21.17 21.18 21.19 21.20 22.1 22.2 22.3 22.4 22.5 22.6 22.7 22.8 22.9 22.10
""".split()
# Accepted by Xen too, and not asked of cppcheck, which does not know what Xen
# has excepted or what its macros are: it would only cry wolf.
#   5.5                  the stubs of a hooks' header, which replace functions
#   7.4 9.2 11.8 11.9    what Xen's and the tests' macros expand to
#   10.1 10.3 10.4 14.4  Xen excepts integer conversions that keep the value,
#   12.2                 and conditions that are pointers or integers
#   13.1                 a call in an initialiser that is the only one there
#   17.7 20.7            min(), set_timer() and other macros of Xen's

# cppcheck's own: (id, file) -> why it is no fault.  A file ends so.
NO_FAULT = {
    ("arithOperationsOnVoidPointer", ""): "Xen is compiled by GNU C",
    ("variableScope", ""): "Xen declares at the head of a function, or where "
                           "it pleases",
    ("unreadVariable", "cmdq.c"): "read by a macro that the tests leave out",
    ("selfAssignment", ""): "rc = rc ?: f() names no other value",
    ("clarifyCalculation", ""): "a bit test before a question mark is usual",
    ("redundantContinue", ""): "says that the loop's body is empty",
    ("redundantPointerOp", ""): "what write_atomic() expands to",
    ("constParameter", ""): "callbacks have the type that Xen calls",
    ("constParameterPointer", ""): "likewise",
    ("misra-c2012-11.3", "vring.c"): "guest memory is bytes and then a ring; "
                                     "its alignment was checked",
    ("misra-c2012-16.3", "request.c"): "a comment says that it falls through",
    ("misra-c2012-11.3", "dom0.c"): "list_first_entry()",
    ("misra-c2012-11.3", "s2pt.c"): "container_of()",
}
TEXT = ("*.md", "*.c", "*.h", "*.py", "*.sh", "*.toml", "Makefile", "*.mk",
        "*.pl", "*.pm", "*.pml", "*.S", "MAINTAINERS", "COPYING")
# Words of the field that a dictionary of typing errors knows as some.
WORDS = "extraversion,fo,inout,ser,te,ba,nd,hist,ot,aks,crate,ans,strat,bu,mmaped,hsi,datas"


def files(*patterns):
    """Files in git, or about to be, that match."""
    out = subprocess.run(["git", "ls-files", "-co", "--exclude-standard",
                          *patterns], cwd=TOP, check=True, text=True,
                         stdout=subprocess.PIPE).stdout
    return [f for f in out.splitlines() if (TOP / f).is_file()]


def run(*command):
    """Lines that a linter prints."""
    done = subprocess.run(command, cwd=TOP, text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.stdout.splitlines()


def style_of(name, text):
    """Findings in one file of C."""
    lines = text.splitlines()
    out = []

    def say(number, what):
        out.append(f"{name}:{number}: style: {what}")

    if "SPDX-License-Identifier:" not in lines[0]:
        say(1, "no SPDX line")
    if "c-file-style: \"BSD\"" not in text and name.endswith(".c"):
        say(len(lines), "no footer for editors")
    for i, line in enumerate(lines, 1):
        code = re.sub(r'"(\\.|[^"\\])*"|/\*.*', '""', line)
        if "\t" in line:
            say(i, "a tab")
        if line != line.rstrip():
            say(i, "blanks at the end")
        if len(line) > 80 and '"' not in line:
            say(i, f"{len(line)} columns")
        if line.lstrip().startswith("*") or "#define" in line:
            continue
        if re.search(r"\b(if|while|for|switch) ?\((?! )", code) or \
                re.search(r"\b(if|while|for|switch) \(.*\S\)$", code):
            say(i, "no blanks inside the brackets of a condition")
        if re.search(r"\)\s*\{$", code) and not re.search(r"\bdo \{$", code) \
                and not code.lstrip().startswith("#") and "({" not in code:
            if re.match(r"\s*(\} else )?(if|while|for|switch)\b", code):
                say(i, "a brace at the end of a condition's line")
        if re.search(r"//", code):
            say(i, "a comment of C++")
    return out


def driver(names):
    return names or [f for f in files("*.c", "*.h") if f.startswith(DRIVER)]


def style(names=None):
    """Xen's CODING_STYLE, as far as it goes."""
    return [f for n in driver(names)
            for f in style_of(n, (TOP / n).read_text())]


def layout(names=None):
    """clang-format, where it can hold Xen's style."""
    return [f for n in driver(names)
            for f in cformat.findings(n, (TOP / n).read_text())]


def cppcheck(names=None):
    """cppcheck with MISRA, on the driver with the fake headers of tests."""
    subprocess.run(["make", "-s", "-C", "tests/unit", "headers"], cwd=TOP,
                   check=True, stdout=subprocess.DEVNULL)
    # No build directory: what it keeps of files that have not changed has the
    # old lines of headers that have, and rules over several files see double.
    found = run("cppcheck", "--addon=misra", "-q", f"-j{os.cpu_count()}",
                "--inline-suppr",
                "--enable=warning,style,performance,portability",
                "--std=c99", "--platform=unix64", "-DCONFIG_ARM_PVIOMMU",
                "-Ixen/include", "-Ibuild/unit/include", "-Itests/unit",
                "-Ipassthrough", "-Iarch",
                "--suppress=*:tests/unit/*", "--suppress=*:build/*",
                "--template={file}:{line}: {id}: {message}",
                *(names or ("passthrough", "arch")))
    out = []
    for line in found:
        m = re.match(r"([^:]+):(\d+): ([\w.-]+): (.*)", line)
        if not m:
            out.append(f"cppcheck:0: {line}")
            continue
        rule = re.fullmatch(r"misra-c2012-(.*)", m[3])
        if rule and rule[1] not in MISRA:
            continue
        if any(m[3] == k and m[1].endswith(f) for k, f in NO_FAULT):
            continue
        out.append(f"{m[1]}:{m[2]}: cppcheck {m[3]}: "
                   + ("" if rule else m[4]))
    return out


def is_shell(name):
    with open(TOP / name, "rb") as f:
        return re.match(rb"#!.*\bsh\b", f.readline()) is not None


def shell(names=None):
    """shellcheck."""
    names = names or [f for f in files() if is_shell(f)]
    # 2154: the steps' variables are set by who calls them, and described there.
    return run("shellcheck", "-f", "gcc", "-S", "warning", "-e", "SC2154",
               *names)


def python(names=None):
    """pylint; Debian's, which knows Debian's modules."""
    names = names or files("*.py")
    paths = sorted({str((TOP / n).parent) for n in names})
    return [l for l in run(
        "/usr/bin/python3", "-m", "pylint", "-j0", "--score=n",
        "--rcfile=.pylintrc", "--msg-template={path}:{line}: {symbol}: {msg}",
        f"--init-hook=import sys; sys.path[:0] = {paths!r}",
        *names) if re.match(r"\S+:\d+: ", l)]


def spelling(names=None):
    """codespell."""
    return run("codespell", "-L", WORDS, *(names or files(*TEXT)))


CHECKS = {f.__name__: f for f in (style, layout, cppcheck, shell, python,
                                  spelling)}


def main(argv):
    wrong = [a for a in argv[1:] if a not in CHECKS]
    if wrong:
        sys.exit(__doc__)
    count = 0
    for name in argv[1:] or CHECKS:
        found = CHECKS[name]()
        print("\n".join([f"lint: {name}: {len(found)}", *found]), flush=True)
        count += len(found)
    print(f"lint: {count} findings")
    sys.exit(count > 0)


if __name__ == "__main__":
    main(sys.argv)
