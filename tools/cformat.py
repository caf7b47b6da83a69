# SPDX-License-Identifier: GPL-2.0-only
"""clang-format as a yardstick: where C differs from Xen's style.

clang-format changes nothing but blanks and line breaks, so a file and what it
makes of it are the same characters with other gaps between them.  Each gap that
differs is of one of these kinds:

  indentation     a line begins at another column
  brace           a line is broken before or after a brace, or is not
  blanks          there is a blank, or there is none

and is a finding unless it is something that clang-format (14) can't hold:

  - preprocessor lines: macros keep their own layout, `do {` in one line
  - `do {`, which Xen writes so, and braces of initialisers and of structures in
    one line; `case X: return Y;` and other breaks away from braces: how lines are
    filled is the author's
  - lines with an operator at their start, or at the end of the line before, but
    && and ||; those that begin with ? or : with the rest of their statement
  - goto labels, which Xen indents by one blank, or not
  - several blanks that align what follows (definitions, comments)
  - & * < >, which it takes for C++'s at times (`new & x`, `a < b && c > d`);
    format macros beside strings; widths of bit fields; `for ( ; ; )`; `{ }`
  - code between /* clang-format off */ and on
"""
import re
import subprocess
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
LABEL = re.compile(r"\s*\w+:(?!:)")


def formatted(name, text):
    """What clang-format makes of TEXT."""
    return subprocess.run(
        ["clang-format", f"--style=file:{TOP / '.clang-format'}",
         f"--assume-filename={name}"], input=text, text=True, check=True,
        stdout=subprocess.PIPE).stdout


def gaps(text):
    """(offset, blanks before it) of each character that is not blank, or a
    backslash that continues a line."""
    last = 0
    for m in re.finditer(r"\S", re.sub(r"\\\n", " \n", text)):
        yield m.start(), text[last:m.start()]
        last = m.end()


def preprocessor(text):
    """Numbers of the lines that are directives, with their continuations."""
    out, inside = set(), False
    for i, line in enumerate(text.split("\n"), 1):
        if inside or line.lstrip().startswith("#"):
            out.add(i)
            inside = line.endswith("\\")
    return out


def column(gap):
    return len(gap.rsplit("\n", 1)[-1])


def kind(text, at, old, new):
    """What is wrong with the gap before text[AT], or None."""
    before = text[:at].rstrip()
    prev, char = before[-1:], text[at]
    if "\n" in old and "\n" in new:
        line = text[at:].split("\n", 1)[0]
        if column(old) == column(new) or LABEL.match(line) and \
                not line.startswith(("case", "default")) or \
                continues(before, char):
            return None
        return f"indentation: column {column(old)}, not {column(new)}"
    if ("\n" in old) != ("\n" in new):
        if "{" not in (prev, char) and "}" not in (prev, char) or \
                char in ";,)" or re.search(r"(\bdo|[=(,{]|\])$", before) or \
                in_line(text, at):
            return None
        return "brace: a line ends here" if "\n" in old else \
            "brace: a line has to end here"
    if bool(old) == bool(new) or {prev, char} & set('&*<>":;') or \
            prev + char == "{}" or re.search(r"\bPRI\w+$", before):
        return None
    return f"blanks: '{prev}{old}{char}', not '{prev}{new}{char}'"


def continues(before, char):
    """Is this a line in the middle of an expression, with an operator other
    than && and || at its start or the end of the one before?"""
    statement = re.split(r"[;{}]", before)[-1]
    return char in "?:&|+-<>=" or bool(re.search(
        r"\n\s*[?:&|]|[-+*/?:=]$|(?<!\|)\|$|\?:", statement))


def in_line(text, at):
    """Is the brace at or before AT one of { ... } in one line?"""
    begin = text.rfind("\n", 0, at) + 1
    line = text[begin:].split("\n", 1)[0]
    return line.count("{") == line.count("}") > 0


def findings(name, text):
    """FILE:LINE: layout: WHAT, for one file."""
    other = formatted(name, text)
    skip = preprocessor(text)
    out, number, last = [], 1, 0
    for (at, old), (_, new) in zip(gaps(text), gaps(other)):
        number += text.count("\n", last, at)
        last = at
        if old == new or number in skip or number - 1 in skip and "\n" in old:
            continue
        what = kind(text, at, old, new)
        if what:
            out.append(f"{name}:{number}: layout: {what}")
    return out
