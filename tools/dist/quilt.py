# SPDX-License-Identifier: GPL-2.0-only
"""The series as Debian's packaging takes it: quilt, with DEP-3 headers.

Patches are in a folder of their own, so that they can be put into
debian/patches as they are and `series` be appended to debian/patches/series.
"""
import re

FOLDER = "pviommu"


def slug(subject):
    return re.sub(r"[^A-Za-z0-9.]+", "-", subject).strip("-")[:52].rstrip("-.")


def header(subject, body, author, day):
    """DEP-3: a blank line inside a field is a dot."""
    *text, _ = body.strip().rsplit("\n\n", 1)   # without the trailers
    lines = "\n\n".join(text).splitlines()
    return "".join([f"Description: {subject}\n",
                    *(f" {l}\n" if l.strip() else " .\n" for l in lines),
                    f"Author: {author}\n", "Forwarded: no\n",
                    f"Last-Update: {day}\n", "---\n"])


def write(git, out):
    """One patch for each commit after the tag `base`."""
    (out / FOLDER).mkdir(parents=True)
    names = []
    for n, commit in enumerate(
            git("rev-list", "--reverse", "base..").split(), 1):
        subject, author, day, body = git(
            "log", "-1", "--format=%s%x00%an <%ae>%x00%as%x00%b",
            commit).split("\0")
        name = f"{FOLDER}/{n:04}-{slug(subject)}.patch"
        (out / name).write_text(
            header(subject, body, author, day)
            + git("diff", "--no-renames", "--no-ext-diff", f"{commit}^",
                  commit))
        names.append(name)
    (out / "series").write_text("".join(n + "\n" for n in names))
