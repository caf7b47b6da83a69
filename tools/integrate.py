#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Put the driver and its hooks into a Xen tree.

  integrate.py [-q] XEN_SRC      -q: not each file that changes

Copies passthrough/, arch/arm64/, xen/include/, tools/libxl/ and the smoke test
of tests/gitlab to their places and applies xen/hooks/*.toml (the format:
xen/hooks/README.md).  Can be run again at any time: what a former run did to the
tree is recorded there and undone first, in memory, so only files whose content
really changes are written and a rebuild compiles only those.  All is checked
before the first file is written.
"""
import json
import re
import sys
import tomllib
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
DRIVER = "xen/drivers/passthrough/arm/pviommu"
RECORD = f"{DRIVER}/integrated.json"
COPIES = (("passthrough", DRIVER),
          ("arch/arm64", f"{DRIVER}/arm64"),
          ("xen/include", "xen/include"),
          ("tools/libxl/ctrl", "tools/libs/ctrl"),
          ("tools/libxl/include", "tools/include"),
          ("tools/libxl/light", "tools/libs/light"),
          ("tools/libxl/xl", "tools/xl"),
          ("tests/gitlab/pviommu.yaml", "automation/gitlab-ci/pviommu.yaml"),
          ("tests/gitlab/qemu-pviommu-arm64.sh",
           "automation/scripts/qemu-pviommu-arm64.sh"),
          ("tests/osstest/steps", "automation/scripts/pviommu"))
NEEDED = ("name", "file", "find", "where", "text")
ALLOWED = NEEDED + ("in", "when", "unless")
PLACES = ("after", "before", "replace")


class Error(Exception):
    """What is wrong, and what to do about it."""


def version(tree):
    """Xen's version as its Makefile states it, for messages."""
    text = (tree / "xen/Makefile").read_text()
    num = [re.search(rf"XEN_{k}\s*\??=\s*(\S+)", text)
           for k in ("VERSION", "SUBVERSION", "EXTRAVERSION")]
    return ".".join(m[1] for m in num[:2] if m) + \
        (num[2][1].split("$")[0] if num[2] else "")


def load_hooks(directory):
    """All hooks of DIRECTORY in order of application, syntax checked."""
    hooks = []
    for path in sorted(directory.glob("*.toml")):
        try:
            listed = tomllib.loads(path.read_text()).get("hook", [])
        except tomllib.TOMLDecodeError as e:
            raise Error(f"{path}: not TOML: {e}") from None
        for h in listed:
            where = f"{path}: hook '{h.get('name', '(no name)')}'"
            check_hook(where, h)
            h["id"] = f"{path.stem}/{h['name']}"
            hooks.append(h)
    return hooks


def check_hook(label, h):
    if not as_list(h.get("file")):
        h["file"] = None
    lacking = [k for k in NEEDED
               if not isinstance(h.get(k), (str, list) if k == "file" else str)]
    if lacking:
        raise Error(f"{label}: lacks {', '.join(lacking)} (each a string)")
    unknown = sorted(set(h) - set(ALLOWED))
    if unknown:
        raise Error(f"{label}: unknown key {', '.join(unknown)}; "
                    f"allowed: {', '.join(ALLOWED)}")
    if h["where"] not in PLACES:
        raise Error(f"{label}: where = '{h['where']}'; "
                    f"allowed: {', '.join(PLACES)}")
    if not h["text"].endswith("\n"):
        h["text"] += "\n"
    conditions = [c for k in ("when", "unless") for c in as_list(h.get(k))]
    for c in conditions:
        if not isinstance(c, dict) or set(c) - {"file", "match"} or not c:
            raise Error(f"{label}: a condition is {{ file = '...', "
                        f"match = 'regex' }} (one of them at least), not {c}")
    for rx in [h["find"], *as_list(h.get("in")),
               *(c["match"] for c in conditions if "match" in c)]:
        try:
            re.compile(rx)
        except re.error as e:
            raise Error(f"{label}: '{rx}' is no regex: {e}") from None


def as_list(value):
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


class Tree:
    """A Xen tree whose changes are held back until write()."""

    def __init__(self, root):
        self.root = root
        self.text = {}          # path -> list of lines, former edits undone
        path = root / RECORD
        self.old = json.loads(path.read_text()) if path.exists() else {}
        self.new = {"files": [], "edits": []}
        for e in reversed(self.old.get("edits", [])):
            self.undo(e)

    def lines(self, path):
        if path not in self.text:
            f = self.root / path
            self.text[path] = (f.read_text().splitlines(keepends=True)
                               if f.is_file() else None)
        return self.text[path]

    def undo(self, e):
        """Take back a recorded edit, unless the user already did."""
        lines = self.lines(e["file"])
        if lines is None:
            return
        new, old = e["new"], e["old"]
        found = [i for i in range(len(lines) - len(new) + 1)
                 if lines[i:i + len(new)] == new]
        if found:
            i = min(found, key=lambda i: abs(i - e["line"]))
            lines[i:i + len(new)] = old

    def holds(self, hook):
        """Do the conditions of HOOK hold in this tree?"""
        def match(c):
            lines = self.lines(c.get("file", hook["file"]))
            if lines is None:
                return False
            return "match" not in c or \
                any(re.search(c["match"], l.rstrip("\n")) for l in lines)
        return all(map(match, as_list(hook.get("when")))) and \
            not any(map(match, as_list(hook.get("unless"))))

    def put(self, hook):
        """Apply HOOK if it is for this tree; of alternatives, to the file
        that this version has."""
        files = as_list(hook["file"])
        hook = {**hook, "file": next(
            (f for f in files if (self.root / f).is_file()), files[0])}
        if self.holds(hook):
            self.apply(hook)

    def apply(self, hook):
        """Apply HOOK in memory."""
        lines = self.lines(hook["file"])
        if lines is None:
            raise Error(self.lost(hook, "there is no such file"))
        text = hook["text"].splitlines(keepends=True)
        start = 0
        for rx in as_list(hook.get("in")):
            start = self.only(hook, lines, rx, start) + 1
        try:
            at = self.only(hook, lines, hook["find"], start,
                           first="in" in hook)
        except Error:
            # A replaced line is gone; is its replacement there?
            if hook["where"] == "replace" and self.block(lines, text, start):
                return
            raise
        line = [lines[at]]
        new = {"after": line + text, "before": text + line,
               "replace": text}[hook["where"]]
        # Already there, though no record says so?
        first = at - len(text) if hook["where"] == "before" else at
        if first >= 0 and lines[first:first + len(new)] == new:
            at = first
        else:
            lines[at:at + 1] = new
        self.new["edits"].append({"hook": hook["name"], "file": hook["file"],
                                  "line": at, "old": line, "new": new})

    @staticmethod
    def block(lines, text, start):
        return any(lines[i:i + len(text)] == text
                   for i in range(start, len(lines)))

    def only(self, hook, lines, rx, start, first=False):
        """Index of the one line from START on that RX matches."""
        at = [i for i in range(start, len(lines))
              if re.search(rx, lines[i].rstrip("\n"))]
        if not at:
            raise Error(self.lost(hook, f"no line matches '{rx}'"))
        if len(at) > 1 and not first:
            raise Error(self.lost(
                hook, f"{len(at)} lines match '{rx}' (lines "
                + ", ".join(str(i + 1) for i in at[:5])
                + "), exactly one must"))
        return at[0]

    def lost(self, hook, why):
        return (f"hook '{hook['name']}' found no place in {hook['file']} of "
                f"Xen {version(self.root)} ({self.root}): {why}; adapt the "
                "hook in xen/hooks (nothing was written)")

    def write(self, copies):
        """Write what changed; return the paths that were."""
        out = {p: "".join(l).encode() for p, l in self.text.items()
               if l is not None}
        out.update(copies)
        self.new["files"] = sorted(copies)
        changed = []
        for path, data in sorted(out.items()):
            f = self.root / path
            if not f.is_file() or f.read_bytes() != data:
                f.parent.mkdir(parents=True, exist_ok=True)
                f.write_bytes(data)
                changed.append(path)
        for path in set(self.old.get("files", [])) - set(copies):
            (self.root / path).unlink(missing_ok=True)
            changed.append(path)
        if self.new != self.old:
            record = self.root / RECORD
            record.parent.mkdir(parents=True, exist_ok=True)
            record.write_text(json.dumps(self.new, indent=1) + "\n")
        return changed


def copied(top):
    """path in Xen's tree -> path here, of each file that is only copied."""
    files = {}
    for src, dest in COPIES:
        base = top / src
        if base.is_file():
            files[dest] = Path(src)
        for f in sorted(base.rglob("*")):
            rel = f.relative_to(base)
            if f.is_file() and f.suffix not in (".o", ".md") and \
                    not any(p.startswith(".") or p.endswith("~")
                            for p in rel.parts):
                files[f"{dest}/{rel}"] = f.relative_to(top)
    return files


def driver_files(top):
    """path in Xen's tree -> content, of each file that is only copied."""
    return {dest: (top / f).read_bytes() for dest, f in copied(top).items()}


def integrate(root, top=TOP):
    """Integrate into the tree at ROOT; return the paths that changed."""
    root = Path(root)
    if not (root / "xen/Makefile").is_file():
        raise Error(f"XEN_SRC={root} is not a Xen tree: it has no "
                    "xen/Makefile; name the directory that has")
    tree = Tree(root)
    for hook in load_hooks(top / "xen/hooks"):
        tree.put(hook)
    return tree.write(driver_files(top))


def main(argv):
    quiet = argv[1:2] == ["-q"]
    if len(argv) != 2 + quiet:
        sys.exit(__doc__)
    tree = argv[-1]
    try:
        changed = integrate(tree)
    except Error as e:
        sys.exit(f"integrate: {e}")
    for path in () if quiet else changed:
        print(f"integrate: {path}")
    print(f"integrate: Xen {version(Path(tree))}: {len(changed)} files "
          "changed")


if __name__ == "__main__":
    main(sys.argv)
