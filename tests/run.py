#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Run the project's tests; the last line is 'N passed, N failed, N skipped'.

  run.py host          tests/unit (make -C tests/unit check), tests/bench and
                       tests/tools: what takes less than a minute
  run.py all           these, tests/lint, tests/fuzz, tests/model, tests/dist,
                       tests/e2e, tests/osstest, tests/gitlab
  run.py DIR [NAME]    the Python tests of one directory, of that name only
"""
import os
import re
import subprocess
import sys
import time
import unittest
from pathlib import Path

TESTS = Path(__file__).resolve().parent
SUMMARY = re.compile(r"^(\d+) passed, (\d+) failed, (\d+) skipped$", re.M)
CMOCKA = re.compile(r"^\[ +(PASSED|FAILED|SKIPPED) +\] (\d+) test\(s\)", re.M)


class Result(unittest.TestResult):
    """Counts, and prints each test when it ends."""

    def __init__(self):
        super().__init__()
        self.counts = [0, 0, 0]
        self.began = 0

    def startTest(self, test):
        super().startTest(test)
        self.began = time.monotonic()

    def say(self, test, kind, detail=""):
        self.counts[("ok", "FAILED", "skipped").index(kind)] += 1
        took = time.monotonic() - self.began if self.began else 0
        print(f"{kind:8}{test.id()} ({took:.1f} s)"
              + (f"\n{detail}" if detail else ""), flush=True)

    def addSuccess(self, test):
        self.say(test, "ok")

    def addError(self, test, err):
        super().addError(test, err)
        self.say(test, "FAILED", self.errors[-1][1])

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.say(test, "FAILED", self.failures[-1][1])

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err:
            self.say(subtest, "FAILED", self._exc_info_to_string(err, test))

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.say(test, "skipped", reason)


def python_tests(name, pattern=None):
    """Counts of the Python tests in the directory tests/NAME."""
    where = TESTS / name
    sys.path.insert(0, str(where))
    loader = unittest.TestLoader()
    if pattern:
        loader.testNamePatterns = [f"*{pattern}*"]
    result = Result()
    loader.discover(str(where), top_level_dir=str(where)).run(result)
    return result.counts


def make_check(name):
    """Counts of `make check` in tests/NAME: from its summary line, or else
    from cmocka's."""
    if not (TESTS / name / "Makefile").is_file():
        print(f"tests/{name}: none", flush=True)
        return [0, 0, 0]
    with subprocess.Popen(["make", "--no-print-directory", "-C", name,
                           "check"], cwd=TESTS, text=True,
                          stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT) as p:
        lines = []
        for line in p.stdout:
            sys.stdout.write(line)
            sys.stdout.flush()
            lines.append(line)
    text = "".join(lines)
    summaries = SUMMARY.findall(text)
    if summaries:
        counts = [int(n) for n in summaries[-1]]
    else:
        counts = [sum(int(n) for kind, n in CMOCKA.findall(text) if kind == k)
                  for k in ("PASSED", "FAILED", "SKIPPED")]
    if p.returncode and not counts[1]:
        print(f"FAILED  make -C tests/{name} check: status {p.returncode}")
        counts[1] += 1          # it did not even build, or crashed
    return counts


def main(argv):
    if len(argv) not in (2, 3):
        sys.exit(__doc__)
    what = argv[1]
    parts = []
    if what in ("host", "all"):
        parts += [make_check("unit")] + [python_tests(d) for d in ("bench", "tools")]
        if what == "all":
            parts += [python_tests("lint"), make_check("fuzz")]
            parts += [python_tests(d) for d in ("model", "dist", "e2e",
                                                 "osstest", "gitlab")]
    elif (TESTS / what).is_dir():
        parts.append(python_tests(what, argv[2] if len(argv) > 2 else None))
        if not any(parts[0]):
            print(f"run.py: no test in tests/{what} has "
                  f"'{argv[2] if len(argv) > 2 else 'test_'}' in its name")
    else:
        sys.exit(f"run.py: '{what}' is not host, all, or one of "
                 + ", ".join(sorted(d.name for d in TESTS.iterdir()
                                    if d.is_dir())))
    passed, failed, skipped = (sum(c) for c in zip(*parts))
    summary = f"{passed} passed, {failed} failed, {skipped} skipped"
    out = TESTS.parent / "build/results"
    out.mkdir(parents=True, exist_ok=True)
    (out / "summary").write_text(summary + "\n")
    print(summary, flush=True)
    sys.exit(failed > 0 or passed == 0)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    main(sys.argv)
