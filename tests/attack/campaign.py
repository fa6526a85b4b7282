"""Attack after attack: a seed and a number give a report and the commands it meets; what comes of each run is judged."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.attack import runs
from tests.attack.changes import Attack, Promise, attack
from tests.attack.reports import made
from tests.attack.runs import QUICK_LINES, SLOW_LINES, TABLE_LINES, Finding, Line, Outcome
from tests.report.factory import blocks_of, write
from tests.report.frames import zstd

REPORT, BASE = "report.ncu-rep", "base.ncu-rep"
KEEP = frozenset((REPORT, BASE))
_QUICK_EACH, _SLOW_EVERY = 4, 6
# What a row says of itself besides numbers and what it stands for; "kernel" is made unique among the names there are.
_SAID = {"notes", "reason", "missing", "metrics", "name", "kernel", "nvtx", "report", "label", "step", "ncu_version"}
_OF_THE_WHOLE = {"time_share", "launch"}
_KEY = ("launch", "precision", "level", "roof")
Rows = Sequence[Mapping[str, Any]]


def lines(seed: int, number: int) -> list[Line]:
    """The commands that report number ``number`` meets: a few of a shuffled pack, so that all come up equally often."""
    rng = random.Random(seed)
    quick, slow = rng.sample(QUICK_LINES, len(QUICK_LINES)), rng.sample(SLOW_LINES, len(SLOW_LINES))
    found = [quick[(number * _QUICK_EACH + index) % len(quick)] for index in range(_QUICK_EACH)]
    return found + ([slow[number // _SLOW_EVERY % len(slow)]] if number % _SLOW_EVERY == 0 else [])


class Campaign:
    """Attacks of one seed, in a folder of its own; ``classes`` and ``families`` count runs and reports."""

    def __init__(self, seed: int, folder: Path, bases: Mapping[str, bytes], only: Sequence[str] = ()) -> None:
        self.seed, self.folder, self.bases, self.only = seed, folder, bases, only
        self.classes, self.families, self.slowest = Counter[str](), Counter[str](), 0.0
        self._known: dict[tuple[str, bytes], Outcome] = {}

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
        promise = one.promise
        if line.command == "annotate":
            copies = after.files.values() if after.code == 0 and one.base != "annotated" else ()
            return next(filter(None, (not_kept(one.data, copy) for copy in copies)), "")
        if promise.same:
            return differs(self._cached(line, base, base), after)
        if promise.as_of is None or line not in TABLE_LINES:
            return ""
        other = promise.as_of or base
        before = self._cached(line, other, other)
        if before.code != after.code:
            return f"exit code {after.code} instead of {before.code}: {after.said[:300]}"
        if before.code:
            return ""
        problem = compare(promise, json.loads(before.out), json.loads(after.out))
        if problem or not promise.told or b'"kernels": [' not in after.out:
            return problem  # tables without notes say of nothing why it is missing
        counted = compare(Promise(), json.loads(self._cached(line, base, base).out), json.loads(before.out))
        silent = counted and b"left out" not in after.out + after.err
        return f"a number that can't be true went without a word: {counted}" if silent else ""

    def _cached(self, line: Line, report: bytes, base: bytes) -> Outcome:
        if len(self._known) > 500:
            self._known.clear()
        if (line.text, report) not in self._known:
            self._known[line.text, report] = self._run(line, report, base)
        return self._known[line.text, report]

    def _run(self, line: Line, report: bytes, base: bytes) -> Outcome:
        paths = {write(self.folder, report, REPORT): report, write(self.folder, base, BASE): base}
        outcome = runs.run(line.words(REPORT, BASE), self.folder, KEEP)
        changed = [path.name for path, data in paths.items() if path.read_bytes() != data]
        assert not changed, f"{line.text} changed {changed}"
        return outcome


def not_kept(report: bytes, copy: bytes) -> str:
    """Why a copy does not hold a report bit for bit; "" where it does."""
    plain = [zstd().decompress(data) if data.startswith(b"\x28\xb5\x2f\xfd") else data for data in (report, copy)]
    ours, theirs = ([record for _, records in blocks_of(data) for record in records] for data in plain)
    kept = len(ours) == len(theirs) and all(map(bytes.startswith, theirs, ours))
    return "" if kept else "a record of the copy does not begin with that of the report"


def differs(before: Outcome, after: Outcome) -> str:
    """Where two outcomes that should be the same are not; "" for nowhere."""
    if before.code != after.code:
        return f"exit code {after.code} instead of {before.code}: {after.said[:300]}"
    printed = [("standard output", before.out, after.out), ("standard error", before.err, after.err)]
    for what, one, other in (*printed, *((name, data, after.files.get(name, b"")) for name, data in before.files.items())):
        if one != other and not what.endswith((".pdf", ".parquet")):
            at = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
            return f"{what} differs at byte {at}: {one[max(at - 60, 0) : at + 60]!r}, {other[max(at - 60, 0) : at + 60]!r}"
    return ""


# What must hold between the numbers of two reports when the difference between them is known.
def compare(promise: Promise, before: Mapping[str, Rows], after: Mapping[str, Rows]) -> str:
    """What of the promise does not hold of the tables of two reports; "" for nothing."""
    if promise.launches is None:
        names = [name for name, value in before.items() if isinstance(value, list)]
        return _first(_rows(name, before[name], after[name], _SAID) for name in names)

    def of(found: Mapping[str, Rows], name: str, launch: int) -> Rows:
        return [row for row in found[name] if row["launch"] == launch]

    problem = _first(
        _rows(name, of(before, name, launch), of(after, name, new), _OF_THE_WHOLE)
        for name in ("points", "kernels")
        for launch, new in promise.launches
    )
    if not problem and len(after["kernels"]) != (count := len(promise.launches) + (promise.launch >= 0)):
        return f"{len(after['kernels'])} kernels, not {count}"
    return problem or _scaled(promise, *(of(found, "points", promise.launch) for found in (before, after)))


def _scaled(promise: Promise, before: Rows, after: Rows) -> str:
    if len(before) != len(after):
        return f"launch {promise.launch} had {len(before)} points, now {len(after)}"
    for one, other in zip(before, after, strict=True):
        scope, wanted = promise.scope
        if scope == "precision" and one["precision"] == "mixed":
            continue  # a sum with work that did not change
        here = not scope or one[scope] == wanted
        for column, factor in ((column, factor if here else 1.0) for column, factor in promise.factors.items()):
            if not same(one[column], other[column], factor):
                at = f"{one['precision']} at {one['level']}"
                return f"{at}: {column} was {one[column]!r}, is {other[column]!r}, not {factor} times that"
    return ""


def _first(problems: Iterable[str]) -> str:
    return next(filter(None, problems), "")


def _rows(name: str, before: Rows, after: Rows, leave: set[str]) -> str:
    if len(before) != len(after):
        keys = [{tuple(str(row.get(key)) for key in _KEY) for row in rows} for rows in (before, after)]
        lost, new = (sorted(one - other)[:4] for one, other in (keys, keys[::-1]))
        return f"{len(after)} {name} instead of {len(before)}: lost {lost}, new {new}"
    for one, other in zip(before, after, strict=True):
        for column, value in one.items():
            if column not in leave and not same(value, other[column]):
                where = ", ".join(str(one[key]) for key in _KEY if key in one)
                return f"{name} ({where}): {column} was {value!r}, is {other[column]!r}"
    return ""


def same(one: Any, other: Any, factor: float = 1.0) -> bool:
    """Whether two cells say the same, the other times ``factor``."""
    if isinstance(one, float) and isinstance(other, (int, float)) and not isinstance(other, bool):
        return math.isclose(one * factor, other, rel_tol=1e-9, abs_tol=0.0)
    return bool(one == other)
