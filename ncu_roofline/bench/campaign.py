"""All ceilings of one GPU: a sweep over variants, then sessions of the best ones, within a time budget."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Protocol

from ncu_roofline.bench.catalogue import CeilingKind
from ncu_roofline.bench.measuring import Bench, Record
from ncu_roofline.bench.runner import Variant
from ncu_roofline.errors import RooflineError

_VERSION = 1
_FIELDS = {field.name for field in fields(Record)}

RunKey = tuple[str, str, str, int]
# The share of the time that choosing variants may take.
_SWEEP_SHARE = 0.4


class Journal:
    """The finished runs of one output file; ``path`` None keeps them in memory only."""

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
        """Keep a finished run, also on disk.  Raises RooflineError."""
        self._records[(record.ceiling, record.variant, record.role, record.session)] = record
        if self.path is not None:
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
            with self.path.open(mode, encoding="utf-8") as stream:
                stream.writelines(json.dumps(line) + "\n" for line in lines)
                stream.flush()
                os.fsync(stream.fileno())
        except OSError as error:
            next_step = "Choose a place that you may write to, with space on its disk, with --output."
            raise RooflineError("Cannot write", self.path, error.strerror or str(error), next_step) from error


def _whole(lines: Iterable[str]) -> Iterator[Any]:
    """The lines up to the first that an interruption tore."""
    with suppress(ValueError):
        for line in lines:
            yield json.loads(line)


def _read(path: Path, head: Mapping[str, Any]) -> dict[RunKey, Record]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return {}
    parsed = list(_whole(lines))
    if not parsed or parsed[0] != json.loads(json.dumps(head)):
        return {}
    found = {}
    for row in parsed[1:]:
        if isinstance(row, dict) and row.keys() == _FIELDS:
            record = Record(**row)
            found[(record.ceiling, record.variant, record.role, record.session)] = record
    return found


class Progress(Protocol):
    """Where to say how far it is."""

    def start(self, steps: int) -> None:
        """Before the first step."""

    def begin(self, ceiling: str) -> None:
        """Before a step that measures."""

    def step(self, ceiling: str, record: Record | None) -> None:
        """After each step; None where it was left out."""


class Silent:
    """Says nothing."""

    def start(self, steps: int) -> None:
        """Nothing."""

    def begin(self, ceiling: str) -> None:
        """Nothing."""

    def step(self, ceiling: str, record: Record | None) -> None:
        """Nothing."""


@dataclass(frozen=True)
class Candidate:
    """A ceiling and the variants that can measure it here, preferred first; ``absent`` says why there are none."""

    kind: CeilingKind
    variants: tuple[str, ...]
    absent: str = ""


@dataclass(frozen=True)
class Outcome:
    """What the campaign gives for one ceiling: the records of its sessions (of the best variant) and of the sweep."""

    kind: CeilingKind
    variant: str = ""
    sessions: tuple[Record, ...] = ()
    sweep: tuple[Record, ...] = ()
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
    """The work on one GPU; finished runs come from the journal and go into it."""

    def __init__(self, bench: Bench, journal: Journal, progress: Progress) -> None:
        self._bench, self._journal, self._progress = bench, journal, progress
        self._settings = bench.settings
        # The sweep may take its share of the time that is left.
        self._sweep_until = min(bench.deadline, bench.timing.now() + _SWEEP_SHARE * bench.settings.budget)
        self._warm_clock: float | None = None

    def run(self, wanted: Sequence[Candidate]) -> list[Outcome]:
        """One outcome per candidate, in their order."""
        usable = [candidate for candidate in wanted if candidate.variants]
        sweeping = [c for c in usable if len(c.variants) > 1 and self._settings.sweep_trials]
        self._progress.start(sum(len(c.variants) for c in sweeping) + len(usable) * self._settings.sessions)
        if usable and not self._finished(usable):
            self._warm_clock = self._bench.warm_up(*_warmer(usable))
        for number in range(max((len(c.variants) for c in sweeping), default=0)):
            self._sweep(sweeping, number)
        chosen = {c.kind.id: self._best(c) for c in usable}
        for session in range(self._settings.sessions):
            # Each session goes the other way, so that what drifts with time does not always hit the same ceilings.
            for candidate in usable if session % 2 == 0 else reversed(usable):
                self._session(candidate.kind, chosen[candidate.kind.id], session)
        return [self._outcome(candidate, chosen.get(candidate.kind.id, "")) for candidate in wanted]

    def _sweep(self, wanted: Sequence[Candidate], number: int) -> None:
        for candidate in wanted:
            if number < len(candidate.variants):
                self._measure(candidate.kind, candidate.variants[number], "sweep", 0, self._sweep_until)

    def _session(self, kind: CeilingKind, variant: str, session: int) -> None:
        earlier = [r for r in self._journal.records(kind.id) if r.role == "session" and r.failure]
        if earlier and session:  # what crashes or is refused once is not run again in each session
            self._progress.step(kind.id, None)
            return
        self._measure(kind, variant, "session", session, self._bench.deadline)

    def _measure(self, kind: CeilingKind, variant: str, role: str, session: int, until: float) -> None:
        record = self._journal.find(kind.id, variant, role, session)
        if record is None and self._bench.timing.now() <= until:
            self._progress.begin(kind.id)
            record = self._bench.measure(kind, variant, role, session, self._warm_clock)
            self._journal.add(record)
        self._progress.step(kind.id, record)

    def _best(self, candidate: Candidate) -> str:
        found = [
            r for r in self._journal.records(candidate.kind.id) if r.role == "sweep" and r.values and r.verified is not False
        ]
        found = [record for record in found if record.variant in candidate.variants]
        if not found:
            return candidate.variants[0]
        choose = max if candidate.kind.higher_is_better else min
        return choose(found, key=lambda record: record.value).variant

    def _outcome(self, candidate: Candidate, variant: str) -> Outcome:
        if candidate.absent:
            return Outcome(candidate.kind, absent=candidate.absent)
        records = self._journal.records(candidate.kind.id)
        sessions = tuple(r for r in records if r.role == "session" and r.variant == variant)
        sweep = tuple(r for r in records if r.role == "sweep")
        notes: tuple[str, ...] = ()
        planned = self._settings.sessions
        if not sessions:
            sessions = tuple(r for r in sweep if r.variant == variant)
            notes = ("out of time: the trials of the sweep only",)
        elif len(sessions) < planned and not any(r.failure for r in sessions):
            notes = (f"out of time: {len(sessions)} of {planned} sessions",)
        absent = "" if sessions else "not measured: out of time"
        return Outcome(candidate.kind, variant, sessions, sweep, absent, notes if sessions else ())

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
