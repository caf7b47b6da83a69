# SPDX-License-Identifier: GPL-2.0-only
"""series.toml: which files and hooks are in which patch, and what a Xen tree is
like after some of them."""
import re
import tomllib
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

import integrate
from integrate import Error

DESCRIPTION = "tools/dist/series.toml"
OBJECT = re.compile(r"^obj-\S+ \+= (\S+)$")
KEYS = {"subject", "message", "files", "hooks"}


class Plan(NamedTuple):
    """The description, with everything at its place."""
    cover: dict
    patches: list       # of dicts: subject, message
    files: list         # (number of the patch, path in Xen, bytes)
    hooks: list         # (number of the patch, hook), in integrate.py's order
    makefiles: dict     # path in Xen: text


def load(top):
    """The plan of the tree TOP."""
    try:
        said = tomllib.loads((top / DESCRIPTION).read_text())
    except tomllib.TOMLDecodeError as e:
        raise Error(f"{DESCRIPTION}: not TOML: {e}") from None
    patches = said["patch"]
    bad = [f"'{p.get('subject')}': unknown key {k}"
           for p in patches for k in sorted(set(p) - KEYS)]
    copied = integrate.copied(top)
    makefiles = {dest: f for dest, f in copied.items() if f.name == "Makefile"}
    files = {str(f): dest for dest, f in copied.items()
             if dest not in makefiles}
    hooks = {h["id"]: h for h in integrate.load_hooks(top / "xen/hooks")}
    of_file = assign("files", files, patches, bad)
    of_hook = assign("hooks", hooks, patches, bad)
    if bad:
        raise Error(f"{DESCRIPTION}:\n  " + "\n  ".join(bad))
    return Plan(said["cover"], patches,
                [(of_file[f], dest, (top / f).read_bytes())
                 for f, dest in files.items()],
                [(of_hook[n], h) for n, h in hooks.items()],
                {dest: (top / f).read_text() for dest, f in makefiles.items()})


def assign(key, names, patches, bad):
    """{name: number of its patch}; what is wrong is appended to BAD."""
    where = {n: [] for n in names}
    for i, p in enumerate(patches):
        for pattern in p.get(key, []):
            hits = [n for n in names if fnmatchcase(n, pattern)]
            if not hits:
                bad.append(f"'{p['subject']}': no {key} are '{pattern}'")
            for n in hits:
                where[n].append(i)
    for n, at in where.items():
        if len(at) != 1:
            bad.append(f"{key}: {n} is in " + (
                " and ".join(f"'{patches[i]['subject']}'" for i in at)
                or "no patch: add it to one"))
    return {n: at[0] for n, at in where.items() if at}


def makefile(path, text, present):
    """What of the folder's list of objects is PRESENT; None if nothing."""
    folder = str(Path(path).parent)

    def here(line):
        m = OBJECT.match(line)
        if not m:
            return True
        if m[1].endswith("/"):
            return any(p.startswith(f"{folder}/{m[1]}") and p.endswith(".c")
                       for p in present)
        return f"{folder}/{m[1][:-2]}.c" in present
    kept = [l for l in text.splitlines() if here(l)]
    return "\n".join(kept).encode() + b"\n" if \
        any(OBJECT.match(l) for l in kept) else None


def with_hooks(pristine, hooks):
    """{path: bytes} of what HOOKS, or their conditions, look at."""
    tree = integrate.Tree(pristine)
    for hook in hooks:
        tree.put(hook)
    return {p: "".join(l).encode() for p, l in tree.text.items()
            if l is not None}


def changed(pristine, files):
    """Those of FILES that are not as in the tree PRISTINE."""
    return {p: d for p, d in files.items() if not (pristine / p).is_file()
            or (pristine / p).read_bytes() != d}


def state(pristine, plan, count):
    """{path: bytes} of what the first COUNT patches have made or changed."""
    out = with_hooks(pristine, [h for i, h in plan.hooks if i < count])
    out.update({dest: data for i, dest, data in plan.files if i < count})
    for path, text in plan.makefiles.items():
        data = makefile(path, text, out)
        if data:
            out[path] = data
    return changed(pristine, out)


def integrated(pristine, top):
    """The same of what integrate.py makes, with all files and hooks."""
    out = with_hooks(pristine, integrate.load_hooks(top / "xen/hooks"))
    out.update(integrate.driver_files(top))
    return changed(pristine, out)


def same(got, want):
    """Both are the same, or an error says what is not."""
    differ = sorted(p for p in got.keys() | want.keys()
                    if got.get(p) != want.get(p))
    if differ:
        raise Error("after the last patch these are not as integrate.py makes "
                    "them (in a Makefile: one object a line): "
                    + ", ".join(differ))
