"""Attack after attack: a seed and a number give a report and the commands it meets; what comes of each run is judged."""

from __future__ import annotations

import functools
import json
import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.attack import runs
from tests.attack.changes import ANYTHING, Attack, Promise, attack
from tests.attack.reports import made
from tests.attack.runs import QUICK_LINES, SLOW_LINES, TABLE_LINES, Finding, Line, Outcome
from tests.report.factory import blocks_of, write
from tests.report.frames import MAGIC, zstd

REPORT, BASE = "report.ncu-rep", "base.ncu-rep"
KEEP = frozenset((REPORT, BASE))
# What a row says of itself besides numbers and what it stands for; "kernel" is made unique among the names there are.
_SAID = {"notes", "reason", "missing", "metrics", "name", "kernel", "nvtx", "report", "label", "step", "ncu_version"}
_KEY = ("launch", "precision", "level", "roof")
Rows = Sequence[Mapping[str, Any]]


def lines(seed: int, number: int) -> list[Line]:
    """The commands that report number ``number`` meets: a few of a shuffled pack, so that all come up equally often."""
    rng = random.Random(seed)
    quick, slow = rng.sample(QUICK_LINES, len(QUICK_LINES)), rng.sample(SLOW_LINES, len(SLOW_LINES))
    found = [quick[(4 * number + index) % len(quick)] for index in range(4)]
    return found if number % 6 else [*found, slow[number // 6 % len(slow)]]


class Campaign:
    """Attacks of one seed, in a folder of its own; ``classes`` and ``families`` count runs and reports."""

    def __init__(self, seed: int, folder: Path, bases: Mapping[str, bytes], only: Sequence[str] = ()) -> None:
        self.seed, self.folder, self.bases, self.only = seed, folder, bases, only
        self.classes, self.families, self.slowest = Counter[str](), Counter[str](), 0.0
        self._cached = functools.lru_cache(500)(self._run)

    def attack(self, number: int) -> list[tuple[Attack, Line, Finding]]:
        """Make report ``number`` and let it meet its commands; what was found."""
        made_of, found = attack(self.seed, number, self.bases, self.only), []
        self.families[made_of.family] += 1
        # The tables in which numbers are compared: more than the first only where the promise speaks of them.
        more = TABLE_LINES[1 + number % 2] if made_of.promise.same or made_of.promise.as_of else None
        for line in filter(None, [TABLE_LINES[0], more, *lines(self.seed, number)]):
            finding = self.meet(made_of, line)
            self.classes[finding.kind] += 1
            if finding.kind in runs.FINDINGS:
                found.append((made_of, line, finding))
            if finding.kind == runs.HANG:
                break  # the others would, too, and one is enough
        return found

    def meet(self, one: Attack, line: Line) -> Finding:
        """What comes of one command on an attacked report."""
        base = self.bases.get(one.base) or made()[one.base]
        outcome = self._run(line, one.data, base)
        self.slowest = max(self.slowest, outcome.seconds)
        finding = runs.judge(line, outcome)
        problem = "" if finding.kind in runs.FINDINGS else self._broken(one, base, line, outcome)
        return Finding(runs.WRONG, problem) if problem else finding

    def _broken(self, one: Attack, base: bytes, line: Line, after: Outcome) -> str:
        """What of the attack's promise the outcome of a command breaks."""
        promise, other = one.promise, one.promise.as_of or base
        if line.text.startswith("annotate"):
            copies = after.files.values() if after.code == 0 and one.base != "annotated" else ()
            return next(filter(None, (not_kept(one.data, copy) for copy in copies)), "")
        if promise.as_of is None or not (promise.same or line in TABLE_LINES):
            return ""
        before = self._cached(line, other, other)
        if before.code != after.code:
            return f"exit code {after.code} instead of {before.code}: {after.said[:300]}"
        if promise.same:
            return differs(before, after)
        problem = "" if before.code else compare(promise, json.loads(before.out), json.loads(after.out))
        notes = b'"kernels": [' in after.out  # tables without say of nothing why it is missing
        if before.code or problem or not promise.told or not notes or b"left out" in after.out + after.err:
            return problem
        counted = compare(ANYTHING, json.loads(self._cached(line, base, base).out), json.loads(before.out))
        return counted and f"a number that can't be true went without a word: {counted}"

    def _run(self, line: Line, report: bytes, base: bytes) -> Outcome:
        paths = {write(self.folder, report, REPORT): report, write(self.folder, base, BASE): base}
        outcome = runs.run(line.words(REPORT, BASE), self.folder, KEEP)
        changed = [path.name for path, data in paths.items() if path.read_bytes() != data]
        assert not changed, f"{line.text} changed {changed}"
        return outcome


def not_kept(report: bytes, copy: bytes) -> str:
    """Why a copy does not hold a report bit for bit; "" where it does."""
    plain = [zstd().decompress(data) if data.startswith(MAGIC) else data for data in (report, copy)]
    ours, theirs = ([record for _, records in blocks_of(data) for record in records] for data in plain)
    kept = len(ours) == len(theirs) and all(map(bytes.startswith, theirs, ours))
    return "" if kept else "a record of the copy does not begin with that of the report"


def differs(before: Outcome, after: Outcome) -> str:
    """Where what two runs printed and wrote is not the same; "" for nowhere."""
    ours, theirs = ({"standard output": one.out, "standard error": one.err, **one.files} for one in (before, after))
    for what, one in ours.items():
        other = theirs.get(what, b"")
        if one != other and not what.endswith((".pdf", ".parquet")):
            at = max(next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), 0) - 60, 0)
            return f"{what} differs: {one[at : at + 120]!r}, {other[at : at + 120]!r}"
    return ""


def compare(promise: Promise, before: Mapping[str, Rows], after: Mapping[str, Rows]) -> str:
    """What of the promise does not hold of the tables of two reports; "" for nothing."""
    if promise.launches is None:
        names = [name for name, value in before.items() if isinstance(value, list)]
        return next(filter(None, (_rows(name, before[name], after[name], _SAID) for name in names)), "")
    count = len(promise.launches) + (promise.launch >= 0)
    if len(after["kernels"]) != count:
        return f"{len(after['kernels'])} kernels, not {count}"

    def of(launch: int, new: int, name: str, promise: Promise = ANYTHING) -> str:
        ours, theirs = ([row for row in rows[name] if row["launch"] == at] for rows, at in ((before, launch), (after, new)))
        return _rows(name, ours, theirs, {"time_share", "launch"}, promise)

    others = (of(*pair, name) for name in ("points", "kernels") for pair in promise.launches)
    return next(filter(None, others), "") or of(promise.launch, promise.launch, "points", promise)


def _rows(name: str, before: Rows, after: Rows, leave: set[str], promise: Promise = ANYTHING) -> str:
    if len(before) != len(after):
        keys = [{tuple(str(row.get(key)) for key in _KEY) for row in rows} for rows in (before, after)]
        lost, new = (sorted(one - other)[:4] for one, other in (keys, keys[::-1]))
        return f"{len(after)} {name} instead of {len(before)}: lost {lost}, new {new}"
    scope, wanted = promise.scope
    for one, other in zip(before, after, strict=True):
        if scope == "precision" and one["precision"] == "mixed":
            continue  # a sum with work that did not change
        for column in promise.factors or [column for column in one if column not in leave]:
            factor = promise.factors.get(column, 1.0) if not scope or one[scope] == wanted else 1.0
            if not same(one[column], other[column], factor):
                where = ", ".join(str(one[key]) for key in _KEY if key in one)
                return f"{name} ({where}): {column} was {one[column]!r}, is {other[column]!r}, not {factor} times that"
    return ""


def same(one: Any, other: Any, factor: float = 1.0) -> bool:
    """Whether two cells say the same, the other times ``factor``."""
    if isinstance(one, float) and isinstance(other, (int, float)) and not isinstance(other, bool):
        return math.isclose(one * factor, other, rel_tol=1e-9, abs_tol=0.0)
    return bool(one == other)
