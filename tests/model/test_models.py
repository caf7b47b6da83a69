# SPDX-License-Identifier: GPL-2.0-only
"""The two models, searched exhaustively by spin; see the head of each.

Each entry of GOOD must have no error in any state.  Each of MUTATIONS takes
one rule away, and spin must find the error named with it: a model that finds
nothing wrong with a broken algorithm says nothing about the right one.
"""
import concurrent.futures
import fnmatch
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
TIMEOUT = 240           # of one search; the longest takes a few seconds

DEADLOCK = "invalid end state"

# model: {name: definitions}
GOOD = {
    "cmdq": {
        "three_producers": "PRODUCERS=3",
        "three_producers_four_slots": "PRODUCERS=3 N=4 ALL_WAIT",
        "two_producers_again": "PRODUCERS=2 ROUNDS=3",
        "two_producers_four_slots": "PRODUCERS=2 ROUNDS=2 N=4",
        # Xen's cmpxchg() has the barrier: [A] is there for the reader.
        "barrier_in_cmpxchg": "PRODUCERS=3 ALL_WAIT FULL_CMPXCHG NO_A",
        "errors_without_interrupt": "PRODUCERS=2 ROUNDS=2 ERRORS=1 ALL_WAIT",
        "errors_and_interrupt": "PRODUCERS=2 ERRORS=1 INTERRUPT OTHER",
        "errors_and_hang": "PRODUCERS=2 ERRORS=1 INTERRUPT HANG",
        "words": "PRODUCERS=3 MSI ALL_WAIT ONLY_SYNC",
        "words_again": "PRODUCERS=2 ROUNDS=2 MSI ALL_WAIT ONLY_SYNC",
        "words_and_errors": "PRODUCERS=2 ERRORS=1 INTERRUPT MSI ALL_WAIT",
    },
    "flushq": {
        "switch": "SWITCH",
        "fail": "FAIL",
        "two_smmus": "SMMUS=2",
        "longer_entries": "UNMAPS=2",
        "full": "UNMAPS=2 RING=2",
        "early": "EARLY",
        "early_longer": "EARLY UNMAPS=2 REMOVALS=0",
        "early_switch": "EARLY SWITCH REMOVALS=0",
        "early_fail": "EARLY FAIL REMOVALS=0",
    },
}

# model: {mutation: (bounds, what is found)}
CMDQ = "PRODUCERS=2 ROUNDS=2"
REFUSED = "PRODUCERS=2 ERRORS=1 INTERRUPT"
WORDS = CMDQ + " MSI ALL_WAIT ONLY_SYNC"
UNWRITTEN = "slot[(i%2)]&&"
BEFORE_SYNC = "stale[0]"
MUTATIONS = {
    "cmdq": {
        "NO_A": (CMDQ, DEADLOCK),
        "NO_B": (CMDQ, DEADLOCK),
        "NO_RECHECK": (CMDQ, DEADLOCK),
        "NO_WMB": (CMDQ, UNWRITTEN),
        "MARK_FIRST": (CMDQ, UNWRITTEN),
        "NO_PARITY": (CMDQ, "(i+16)-published"),
        "NO_RELEASE": (CMDQ, "sb_prod[me]-1"),
        "NO_RMB_D": (CMDQ, "reg+(2*2)"),
        "OFF_BY_ONE": (CMDQ, "reg+(2*2)"),
        "NO_WRAP": (CMDQ, "consumed+16"),
        "IRQS_ON": (CMDQ, DEADLOCK),
        "NOT_DEAD": (REFUSED, "executed&(1<<first)"),
        "ACK_EARLY": (REFUSED, "consumed)%16)<2"),
        "ACK_UNLOCKED": (REFUSED + " OTHER", "consumed)%16)<2"),
        "WORD_FLAG": (WORDS, "consumed+16"),
        "WORD_MOVES_CONS": (WORDS, "reg+(2*2)"),
    },
    "flushq": {
        "UP_TO_TAIL": ("NO_PAGES", BEFORE_SYNC),
        "MERGE_STARTED": ("UNMAPS=2 NO_PAGES", BEFORE_SYNC),
        "RELEASE_QUEUED": ("NO_PAGES", "synced+8"),
        "FAIL_ADVANCES": ("FAIL", BEFORE_SYNC),
        "ONE_SMMU": ("SMMUS=2", "stale[1]"),
        "FROM_STARTED": ("NO_PAGES", "head==tail"),
        "MAY_GO_BACK": ("", "synced+8"),
        "PAGES_ZERO": ("", "pages==sum"),
        "ANSWER_FIRST": ("", "strict"),
        "SWITCH_LATE": ("SWITCH", "answered&stale"),
        "NO_TIMER_OFF": ("SWITCH", DEADLOCK),
        "STOP_TIMER": ("", DEADLOCK),
        "NO_GAP": ("", DEADLOCK),
        "NO_TIMER_AGAIN": ("", DEADLOCK),
        "NO_KILL": ("", "domain_freed"),
        "KILL_LOCKED": ("", DEADLOCK),
        "EARLY_FOR_ALL": ("EARLY NO_PAGES", BEFORE_SYNC),
        "EARLY_UNWAITED": ("EARLY UNMAPS=2 REMOVALS=0", BEFORE_SYNC),
    },
}


def search(model, definitions, optimise):
    """What spin's verifier says of tests/model/MODEL.pml."""
    defs = [f"-D{d}" for d in definitions.split()]
    where = Path(tempfile.mkdtemp(prefix="pviommu-spin-"))
    try:
        for cmd in (["spin", "-a", *defs, str(HERE / f"{model}.pml")],
                    ["gcc", optimise, "-w", "-DSAFETY",
                     "-DVECTORSZ=512", "-DMEMLIM=2000", "-o", "pan", "pan.c"],
                    ["./pan", "-m10000", "-w22"]):
            p = subprocess.run(cmd, cwd=where, text=True, timeout=TIMEOUT,
                               stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, check=False)
            if p.returncode:
                return f"{cmd[0]}: status {p.returncode}\n{p.stdout}"
        out = p.stdout
        for trail in where.glob("*.trail"):
            # The run that leads there, for who has to understand it.
            out += subprocess.run(
                ["spin", "-k", str(trail), "-p", "-g", *defs,
                 str(HERE / f"{model}.pml")], cwd=where, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                timeout=TIMEOUT, check=False).stdout
        return out
    finally:
        shutil.rmtree(where)


def verdict(out):
    """('', '') if no state is wrong, else what is wrong and how it came."""
    found = re.search(r"^pan:1: (.*) \(at depth", out, re.M)
    if found:
        return found.group(1), out
    # Every state was looked at, or this is no result at all.
    if (re.search(r"errors: 0$", out, re.M) and
            not re.search(r"max search depth too small|out of memory|"
                          r"Search not completed", out)):
        return "", ""
    return "no result", out


class Search(unittest.TestCase):
    """One search.  It begins when the test is made, beside others."""
    pool = concurrent.futures.ThreadPoolExecutor(os.cpu_count())

    def __init__(self, name, model, definitions, expected, optimise):
        super().__init__("found")
        self.name, self.expected = name, expected
        self.search = self.pool.submit(search, model, definitions, optimise)

    def id(self):
        return self.name

    def found(self):
        wrong, how = verdict(self.search.result())
        if self.expected:
            self.assertIn(self.expected, wrong or "nothing wrong found", how)
        else:
            self.assertEqual(wrong, "", how)


def load_tests(loader, _tests, _pattern):
    suite = unittest.TestSuite()
    for kind, models in ("good", GOOD), ("without", MUTATIONS):
        for model, cases in models.items():
            for name, case in cases.items():
                full = f"test_models.{model}.{kind}.{name}"
                if not any(fnmatch.fnmatch(full, p)
                           for p in loader.testNamePatterns or ["*"]):
                    continue
                if kind == "good":
                    suite.addTest(Search(full, model, case, None, "-O1"))
                else:
                    # Short runs: most of the time is the compiler's.
                    suite.addTest(Search(full, model, f"{case[0]} {name}",
                                         case[1], "-O0"))
    return suite
