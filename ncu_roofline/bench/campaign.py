"""All ceilings of one GPU within a time budget: everything once, then again in fresh contexts, and what did not stand."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Protocol

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.forms import number
from ncu_roofline.bench.catalogue import CeilingKind
from ncu_roofline.bench.measuring import Bench, Record, throttled, worth_retrying
from ncu_roofline.bench.runner import Variant
from ncu_roofline.bench.telemetry import Observed

_VERSION = 2
_FIELDS = {field.name for field in fields(Record)}
_OBSERVED = {field.name for field in fields(Observed)}

OUT_OF_TIME = "not measured: out of time"

RunKey = tuple[str, str, str, int]


class Journal:
    """The finished runs of one output file; ``path`` None keeps them in memory only.

    Those that failed are not on disk: who calls again wants them tried again.  Raises RooflineError where ``path`` is
    something else than a file of its own.
    """

    def __init__(self, path: Path | None, key: Mapping[str, Any]) -> None:
        self.path = path
        self._head = {"journal": _VERSION, "key": dict(key)}
        self._records: dict[RunKey, Record] = {}
        if path is not None:
            self._records = _read(path, self._head)
            self._start()

    def __len__(self) -> int:
        return len(self._records)

    def find(self, ceiling: str, variant: str, role: str, session: int) -> Record | None:
        """The record of a run, None if it was not finished."""
        return self._records.get((ceiling, variant, role, session))

    def records(self, ceiling: str) -> list[Record]:
        """All records of a ceiling, in the order they were made."""
        return [record for record in self._records.values() if record.ceiling == ceiling]

    def add(self, record: Record) -> None:
        """Keep a finished run, also on disk unless it failed.  Raises RooflineError."""
        self._records[(record.ceiling, record.variant, record.role, record.session)] = record
        if self.path is not None and not record.failure:
            self._write("a", [record.as_json()])

    def remove(self) -> None:
        """Everything is in the output file now."""
        if self.path is not None:
            with suppress(OSError):
                self.path.unlink()

    def _start(self) -> None:
        self._write("w", [self._head, *(record.as_json() for record in self._records.values())])

    def _write(self, mode: str, lines: list[dict[str, Any]]) -> None:
        assert self.path is not None
        try:
            with open(self.path, mode, encoding="utf-8", opener=_without_links) as stream:
                stream.writelines(json.dumps(line) + "\n" for line in lines)
                stream.flush()
                os.fsync(stream.fileno())
        except OSError as error:
            next_step = "Choose a place that you may write to, with space on its disk, with --output."
            raise RooflineError("Cannot write", self.path, error.strerror or str(error), next_step) from error


def _without_links(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)


def _read(path: Path, head: Mapping[str, Any]) -> dict[RunKey, Record]:
    """The records of a journal with this head; lines that are torn or damaged are left out."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            next_step = "Remove it, or choose another name with --output."
            raise RooflineError("Cannot use", path, "it is no ordinary file, and finished runs are kept there", next_step)
        first, *lines = path.read_text(encoding="utf-8").splitlines() or [""]
    except (OSError, ValueError):
        return {}
    if _parsed(first) != json.loads(json.dumps(head)):
        return {}
    records = [Record(**row) for line in lines if _is_record(row := _parsed(line))]
    return {(one.ceiling, one.variant, one.role, one.session): one for one in records}


def _parsed(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _is_record(row: Any) -> bool:
    """Whether a line is a run with values as `Record` has them."""
    if not isinstance(row, dict) or row.keys() != _FIELDS or row["failure"] != "":
        return False
    numbers = [row[key] for key in ("values", "seconds", "clocks")]
    texts = [row[key] for key in ("rejections", "notes")]
    launch, observed = row["launch"], row["observed"]
    return (
        all(isinstance(row[key], str) for key in ("ceiling", "variant", "unit"))
        and row["role"] in ("session", "burst")
        and all(type(row[key]) is int and 0 <= row[key] < 1_000_000 for key in ("session", "discarded", "attempts"))
        and all(isinstance(each, list) and all(map(_is_measured, each)) for each in numbers)
        and 0 < len(row["values"]) == len(row["seconds"])
        and _is_measured(row["work"])
        and (row["verified"] is None or isinstance(row["verified"], bool))
        and all(isinstance(each, list) and all(isinstance(one, str) for one in each) for each in texts)
        and isinstance(launch, dict)
        and not any(isinstance(value, (dict, list)) for value in launch.values())
        and isinstance(observed, dict)
        and observed.keys() <= _OBSERVED
        and all(_is_observed(key, value) for key, value in observed.items())
    )


def _is_observed(key: str, value: Any) -> bool:
    if key == "link" and value is not None:
        return isinstance(value, list) and len(value) == 2 and all(type(one) is int and one > 0 for one in value)
    if key in ("reasons", "samples"):
        return type(value) is int and value >= 0
    return value is None or value == 0 or _is_measured(value)


def _is_measured(value: Any) -> bool:
    """Whether it is a number of a size that sums and quotients of many stay numbers."""
    return 1e-60 < number(value) < 1e60


class Progress(Protocol):
    """Where to say how far it is."""

    def start(self, steps: int) -> None:
        """Before the first step."""

    def begin(self, ceiling: str) -> None:
        """Before a step that measures."""

    def step(self, ceiling: str, record: Record | None) -> None:
        """After each step; None where it was left out."""

    def found(self, entry: Mapping[str, Any]) -> None:
        """A ceiling has been measured once: what its entry in the file would be if this were all."""


class Silent:
    """Says nothing."""

    def start(self, steps: int) -> None:
        """Nothing."""

    def begin(self, ceiling: str) -> None:
        """Nothing."""

    def step(self, ceiling: str, record: Record | None) -> None:
        """Nothing."""

    def found(self, entry: Mapping[str, Any]) -> None:
        """Nothing."""


@dataclass(frozen=True)
class Candidate:
    """A ceiling and the variants that can measure it here, preferred first; ``absent`` says why there are none."""

    kind: CeilingKind
    variants: tuple[str, ...]
    absent: str = ""


@dataclass(frozen=True)
class Outcome:
    """What the campaign gives for one ceiling: the records of its best variant's sessions, the others', and the burst's."""

    kind: CeilingKind
    variant: str = ""
    sessions: tuple[Record, ...] = ()
    others: tuple[Record, ...] = ()
    burst: Record | None = None
    absent: str = ""
    notes: tuple[str, ...] = field(default_factory=tuple)


def candidates(kinds: Sequence[CeilingKind], variants: Sequence[Variant], capability: str, quick: bool) -> list[Candidate]:
    """Which variants apply to a GPU; a ceiling without any says so: emulated, unsupported, or left out of a quick run."""
    found = []
    for kind in kinds:
        here = [variant for variant in variants if variant.ceiling == kind.id and variant.on(capability)]
        usable = tuple(dict.fromkeys(variant.name for variant in here if not variant.reason))
        absent = ""
        if not any(variant.ceiling == kind.id for variant in variants):
            absent = "not measured: the benchmark has no kernel for it"
        elif not usable:
            absent = "emulated" if any(variant.reason == "emulated" for variant in here) else "unsupported"
        elif quick and not kind.quick:
            usable, absent = (), "not measured: left out of a quick run"
        found.append(Candidate(kind, usable, absent))
    return found


class Campaign:
    """The work on one GPU; finished runs come from the journal and go into it.

    ``told`` gets each ceiling when it has been measured once.
    """

    def __init__(
        self, bench: Bench, journal: Journal, progress: Progress, told: Callable[[Outcome], None] = lambda _outcome: None
    ) -> None:
        self._bench, self._journal, self._progress, self._told = bench, journal, progress, told
        self._settings = bench.settings
        self._warm_clock: float | None = None

    def run(self, wanted: Sequence[Candidate]) -> list[Outcome]:
        """One outcome per candidate, in their order."""
        # What a quick run measures comes first: if time runs out, the others are missing.
        usable = sorted((c for c in wanted if c.variants), key=lambda candidate: not candidate.kind.quick)
        more = 0 if self._settings.quick else sum(len(c.variants) - 1 for c in usable)
        self._progress.start(len(usable) * self._settings.sessions + more)
        if usable and not self._finished(usable):
            self._warm_clock = self._bench.warm_up(*_warmer(usable))
        self._first(usable)
        for session in range(1, self._settings.sessions):
            self._bench.source.renew()
            # Each session goes the other way, so that what drifts with time does not always hit the same ceilings.
            for candidate in usable if session % 2 == 0 else reversed(usable):
                self._again(candidate, session)
        self._retry(usable)
        self._fill(usable)
        return [self._outcome(candidate) for candidate in wanted]

    def _first(self, usable: Sequence[Candidate]) -> None:
        """Every ceiling by its preferred variant, then what makes the numbers better: other variants, retries, bursts."""
        for place in range(1 if self._settings.quick else max((len(c.variants) for c in usable), default=0)):
            for candidate in usable:
                if place < len(candidate.variants):
                    self._measure(candidate.kind, candidate.variants[place], 0)
                if place == 0:
                    self._told(self._outcome(candidate))
        for candidate in usable:
            self._burst(candidate)

    def _again(self, candidate: Candidate, session: int) -> None:
        variant = self._best(candidate)
        first = self._journal.find(candidate.kind.id, variant, "session", 0)
        if first is None or first.failure:  # what crashes or is refused once is not run again in each session
            self._progress.step(candidate.kind.id, None)
        else:
            self._measure(candidate.kind, variant, session)

    def _measure(self, kind: CeilingKind, variant: str, session: int, before: Record | None = None) -> None:
        record = None if before else self._journal.find(kind.id, variant, "session", session)
        if record is None and self._time_left():
            self._progress.begin(kind.id)
            record = self._bench.measure(kind, variant, session, self._warm_clock, before)
            if before is not None and before.values and not record.values:  # a retry that fails takes nothing away
                record = replace(before, attempts=record.attempts, notes=[*before.notes, f"a retry failed: {record.failure}"])
            self._journal.add(record)
        if before is None:
            self._progress.step(kind.id, record)

    def _retry(self, usable: Sequence[Candidate]) -> None:
        """Rounds over what did not stand, with longer trials; a GPU that was held back rests before each."""
        for attempt in range(1, self._settings.retries + 1):
            bad = [(candidate.kind, record) for candidate in usable for record in self._bad(candidate)]
            if not bad or not self._time_left():
                return
            if any(throttled(record) for _, record in bad):
                self._bench.timing.sleep(self._settings.cool_down * attempt)
            for kind, record in bad:
                self._measure(kind, record.variant, record.session, record)

    def _fill(self, usable: Sequence[Candidate]) -> None:
        """The sessions of variants that are the best ones only since a retry changed the value of another."""
        for session in range(1, self._settings.sessions):
            missing = [candidate for candidate in usable if self._lacks(candidate, session)]
            if missing and self._time_left():
                self._bench.source.renew()
            for candidate in missing:
                if self._time_left():
                    self._journal.add(self._bench.measure(candidate.kind, self._best(candidate), session, self._warm_clock))

    def _lacks(self, candidate: Candidate, session: int) -> bool:
        variant = self._best(candidate)
        first = self._journal.find(candidate.kind.id, variant, "session", 0)
        other = self._journal.find(candidate.kind.id, variant, "session", session)
        return first is not None and not first.failure and other is None

    def _bad(self, candidate: Candidate) -> list[Record]:
        """The sessions of a ceiling that another attempt may save; none where most of them stand."""
        sessions = self._sessions(candidate)
        if 2 * sum(not record.rejections and not record.failure for record in sessions) > len(sessions):
            return []
        return [r for r in sessions if worth_retrying(r) and r.attempts <= self._settings.retries]

    def _sessions(self, candidate: Candidate) -> list[Record]:
        """The records of a ceiling's best variant."""
        variant = self._best(candidate)
        records = self._journal.records(candidate.kind.id)
        return [record for record in records if record.role == "session" and record.variant == variant]

    def _burst(self, candidate: Candidate) -> None:
        """The short trials of a ceiling that was measured below the clock it can have: under the power limit."""
        variant = self._best(candidate)
        record = self._journal.find(candidate.kind.id, variant, "session", 0)
        if candidate.kind.kind != "compute" or record is None or not record.held_back:
            return
        if not self._settings.bursts or not self._time_left():
            return
        if self._journal.find(candidate.kind.id, variant, "burst", 0) is None:
            self._progress.begin(candidate.kind.id)
            self._journal.add(self._bench.burst(candidate.kind, variant, self._warm_clock))

    def _time_left(self) -> bool:
        return self._bench.timing.now() <= self._bench.deadline

    def _best(self, candidate: Candidate) -> str:
        found = [
            record
            for variant in candidate.variants
            if (record := self._journal.find(candidate.kind.id, variant, "session", 0)) is not None
            and record.values
            and record.verified is not False
        ]
        if not found:
            return candidate.variants[0]
        choose = max if candidate.kind.higher_is_better else min
        return choose(found, key=lambda record: record.value).variant

    def _outcome(self, candidate: Candidate) -> Outcome:
        if candidate.absent:
            return Outcome(candidate.kind, absent=candidate.absent)
        variant = self._best(candidate)
        records = [record for record in self._journal.records(candidate.kind.id) if record.role == "session"]
        sessions, others = tuple(self._sessions(candidate)), tuple(r for r in records if r.variant != variant)
        burst = self._journal.find(candidate.kind.id, variant, "burst", 0)
        if not sessions:
            return Outcome(candidate.kind, absent=OUT_OF_TIME)
        planned = self._settings.sessions
        short = len(sessions) < planned and not any(record.failure for record in sessions)
        notes = (f"out of time: {len(sessions)} of {planned} sessions",) if short else ()
        return Outcome(candidate.kind, variant, sessions, others, burst, "", notes)

    def _finished(self, usable: Sequence[Candidate]) -> bool:
        sessions = range(self._settings.sessions)
        return all(
            self._journal.find(c.kind.id, self._best(c), "session", session) is not None for c in usable for session in sessions
        )


def _warmer(usable: Sequence[Candidate]) -> tuple[str, str]:
    """What warms the GPU up: plain arithmetic, whose clock is the highest there is."""
    preferred = [c for c in usable if c.kind.id == "fp32.fma"] or [c for c in usable if c.kind.domain == "sm"]
    first = (preferred or list(usable))[0]
    return first.kind.id, first.variants[0]
