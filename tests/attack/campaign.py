"""Attack after attack: a seed and a number give a report and the commands it meets; what comes of each run is judged."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.attack import bombs, judging, meaning, raw, relations, wire
from tests.attack.attack import Anything, AsWithout, Attack, Same
from tests.attack.bases import made
from tests.attack.commands import QUICK_LINES, SLOW_LINES, TABLE_LINES, Line
from tests.attack.document import raw_records
from tests.attack.judging import Finding
from tests.attack.running import Outcome, run

REPORT, BASE = "report.ncu-rep", "base.ncu-rep"
_QUICK_EACH, _SLOW_EVERY = 4, 6

Made = Callable[[bytes, random.Random], tuple]  # type: ignore[type-arg]  # bytes, words, and a promise where there is one
# How often which sort of attack comes, what it is made of (None: any base), and whether nothing may change by it.
FAMILIES: dict[str, tuple[int, str | None, bool, Made]] = {
    "fields": (30, None, False, wire.damaged),
    "bytes": (6, None, False, raw.damaged),
    "containers": (3, None, False, raw.contained),
    "descriptions": (8, None, False, meaning.described),
    "size": (5, None, False, lambda _, rng: bombs.bomb(rng)),
    "other writing": (8, None, True, wire.rewritten),
    "other layout": (10, None, True, meaning.unchanged),
    "names": (8, None, False, meaning.renamed),
    "impossible numbers": (14, None, False, meaning.impossible),
    "other numbers": (10, "several", False, meaning.scaled),
    "launches gone": (3, "several", False, meaning.gone),
    "launches twice": (3, "several", False, meaning.doubled),
}


def attack(seed: int, number: int, bases: Mapping[str, bytes], only: Sequence[str] = ()) -> Attack:
    """The report number ``number`` of a seed; of the families ``only``, or all."""
    rng = random.Random(f"{seed}:{number}")
    families = list(only or FAMILIES)
    family = rng.choices(families, [FAMILIES[name][0] for name in families])[0]
    _, wanted, same, make = FAMILIES[family]
    base = wanted or rng.choice(list(bases))
    data, what, *promise = make(made()[base] if wanted else bases[base], rng)
    return Attack(base, family, what, data, promise[0] if promise else Same() if same else Anything())


def lines(seed: int, number: int) -> list[Line]:
    """The commands that report number ``number`` meets: a few of a shuffled pack, so that all come up equally often."""
    quick, slow = list(QUICK_LINES), list(SLOW_LINES)
    rng = random.Random(seed)
    rng.shuffle(quick)
    rng.shuffle(slow)
    found = [quick[(number * _QUICK_EACH + index) % len(quick)] for index in range(_QUICK_EACH)]
    return found + ([slow[number // _SLOW_EVERY % len(slow)]] if number % _SLOW_EVERY == 0 else [])


@dataclass
class Tally:
    """What was run: runs by class and by command line, reports by family, seconds of the slowest run."""

    classes: Counter[str] = field(default_factory=Counter)
    commands: Counter[str] = field(default_factory=Counter)
    families: Counter[str] = field(default_factory=Counter)
    reports: int = 0
    slowest: float = 0.0


class Campaign:
    """Attacks of one seed, in a folder of its own."""

    def __init__(self, seed: int, folder: Path, bases: Mapping[str, bytes], only: Sequence[str] = ()) -> None:
        self.seed, self.folder, self.bases, self.only = seed, folder, bases, only
        self.tally = Tally()
        self._known: dict[tuple[str, bytes], Outcome] = {}

    def attack(self, number: int) -> list[tuple[Attack, Line, Finding]]:
        """Make report ``number`` and let it meet its commands; what was found."""
        made_of = attack(self.seed, number, self.bases, self.only)
        base = self.bases.get(made_of.base) or made()[made_of.base]
        found = []
        self.tally.reports += 1
        self.tally.families[made_of.family] += 1
        for line in [*self._tables(made_of, number), *lines(self.seed, number)]:
            finding = self.meet(made_of, base, line)
            self.tally.classes[finding.kind] += 1
            self.tally.commands[line.text] += 1
            if finding.kind in judging.FINDINGS:
                found.append((made_of, line, finding))
            if finding.kind == judging.HANG:
                break  # the others would, too, and one is enough
        return found

    def _tables(self, one: Attack, number: int) -> tuple[Line, ...]:
        """The tables in which numbers are compared: more than the first only where the promise speaks of them."""
        if isinstance(one.promise, (Same, AsWithout)):
            return (TABLE_LINES[0], TABLE_LINES[1 + number % 2])
        return TABLE_LINES[:1]

    def meet(self, one: Attack, base: bytes, line: Line) -> Finding:
        """What comes of one command on an attacked report, made of ``base``."""
        result = f"result{line.result}" if line.writes else ""
        outcome = self._run(line, one.data, base)
        self.tally.slowest = max(self.tally.slowest, outcome.seconds)
        finding = judging.judge(line, outcome, result)
        if finding.kind in judging.FINDINGS:
            return finding
        problem = self._broken(one, base, line, outcome)
        return Finding(judging.WRONG, problem) if problem else finding

    def _broken(self, one: Attack, base: bytes, line: Line, after: Outcome) -> str:
        """What of the attack's promise the outcome of a command breaks."""
        if isinstance(one.promise, Same) and line.command != "annotate":
            before = self._cached(line, base, base)
            return differs(before, after)
        if line.command == "annotate" and after.code == 0 and "result.ncu-rep" in after.files:
            return "" if one.base == "annotated" else _not_kept(one.data, after.files["result.ncu-rep"])
        if line not in TABLE_LINES or isinstance(one.promise, Anything):
            return ""
        other = one.promise.other if isinstance(one.promise, AsWithout) else base
        before = self._cached(line, other, other)
        if before.code != after.code:
            return f"exit code {after.code} instead of {before.code}: {after.said[:300]}"
        if before.code:
            return ""
        if line != TABLE_LINES[0] and not isinstance(one.promise, AsWithout):
            return ""
        problem = relations.compare(one.promise, json.loads(before.out), json.loads(after.out))
        if problem or not isinstance(one.promise, AsWithout) or not one.promise.told or b'"kernels": [' not in after.out:
            return problem  # tables without notes say of nothing why it is missing
        unchanged = self._cached(line, base, base)
        counted = relations.compare(Same(), json.loads(unchanged.out), json.loads(before.out))
        silent = counted and b"left out" not in after.out + after.err
        return f"a number that can't be true went without a word: {counted}" if silent else ""

    def _cached(self, line: Line, report: bytes, base: bytes) -> Outcome:
        key = (line.text, report)
        if key not in self._known:
            if len(self._known) > 500:
                self._known.clear()
            self._known[key] = self._run(line, report, base)
        return self._known[key]

    def _run(self, line: Line, report: bytes, base: bytes) -> Outcome:
        for name, data in ((REPORT, report), (BASE, base)):
            (self.folder / name).write_bytes(data)
        words = line.words(REPORT, BASE, "result")
        outcome = run(words, self.folder, frozenset((REPORT, BASE)))
        for name, data in ((REPORT, report), (BASE, base)):
            if (self.folder / name).read_bytes() != data:
                raise AssertionError(f"{words} changed {name}")
        return outcome


def _not_kept(report: bytes, copy: bytes) -> str:
    """Why a copy does not hold a report bit for bit; "" where it does."""
    ours, theirs = raw_records(report), raw_records(copy)
    kept = len(ours) == len(theirs) and all(map(bytes.startswith, theirs, ours))
    return "" if kept else "a record of the copy does not begin with that of the report"


def differs(before: Outcome, after: Outcome) -> str:
    """Where two outcomes that should be the same are not; "" for nowhere."""
    if before.code != after.code:
        return f"exit code {after.code} instead of {before.code}: {after.said[:300]}"
    for what, one, other in (
        ("standard output", before.out, after.out),
        ("standard error", before.err, after.err),
        *((name, data, after.files.get(name, b"")) for name, data in before.files.items()),
    ):
        if one != other and not what.endswith((".pdf", ".parquet")):
            at = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
            return f"{what} differs at byte {at}: {one[max(at - 60, 0) : at + 60]!r}, {other[max(at - 60, 0) : at + 60]!r}"
    return ""


def numbers(first: int, count: int | None, until: float | None) -> Iterator[int]:
    """Numbers of reports from the first on: so many, or until a time."""
    number = first
    while (count is None or number < first + count) and (until is None or time.monotonic() < until or number == first):
        yield number
        number += 1
