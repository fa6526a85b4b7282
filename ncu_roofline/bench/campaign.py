"""All ceilings of one GPU within a time budget: everything once, then again in fresh contexts, and what did not stand."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.files import write_atomically
from ncu_roofline.base.records import number
from ncu_roofline.bench.catalogue import CeilingKind
from ncu_roofline.bench.measuring import LIMITS, NOT_HERE, Record, Settings, Timing, after_warm_up, judge, timers_agree
from ncu_roofline.bench.runner import Job, RunnerFailed, Session, Variant
from ncu_roofline.bench.statistics import median
from ncu_roofline.bench.telemetry import Telemetry, Watch
from ncu_roofline.formats.ceilings import CPU, GPU

OUT_OF_TIME = "not measured: out of time"


class Journal:
    """The finished runs of one output file, in a file of their own; ``path`` None keeps them in memory only.

    Those that failed are not in the file: who calls again wants them tried again.  Raises RooflineError where ``path`` is
    something else than an ordinary file, or can't be written.
    """

    def __init__(self, path: Path | None, key: Mapping[str, Any]) -> None:
        self.path, self._key = path, dict(key)
        self._records: dict[tuple[str, str, str, int], Record] = {}
        if path is None:
            return
        if os.path.lexists(path) and (path.is_symlink() or not path.is_file()):
            next_step = "Remove it, or choose another name with --output."
            raise RooflineError("Cannot use", path, "it is no ordinary file, and finished runs are kept there", next_step)
        with suppress(OSError, ValueError, TypeError, KeyError, RecursionError):
            found = json.loads(path.read_text(encoding="utf-8"))
            records = [Record(**one) for one in found["records"]]
            self._records = {_run_of(record): record for record in records if found["key"] == self._key}

    def __len__(self) -> int:
        return len(self._records)

    def find(self, ceiling: str, variant: str, role: str, session: int) -> Record | None:
        """The record of a run, None if it was not finished."""
        return self._records.get((ceiling, variant, role, session))

    def records(self, ceiling: str) -> list[Record]:
        """All records of a ceiling, in the order they were made."""
        return [record for record in self._records.values() if record.ceiling == ceiling]

    def add(self, record: Record) -> None:
        """Keep a finished run, also on disk unless it failed."""
        self._records[_run_of(record)] = record
        if self.path is not None:
            records = [vars(one) for one in self._records.values() if not one.failure]
            write_atomically(self.path, [json.dumps({"key": self._key, "records": records}).encode()], overwrite=True)

    def remove(self) -> None:
        """Everything is in the output file now."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)


def _run_of(record: Record) -> tuple[str, str, str, int]:
    return record.ceiling, record.variant, record.role, record.session


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

    def start(self, *_words: object) -> None:
        pass

    begin = step = found = start


class Candidate(NamedTuple):
    """A ceiling and the variants that can measure it here, preferred first; ``absent`` says why there are none."""

    kind: CeilingKind
    variants: tuple[str, ...]
    absent: str = ""


class Outcome(NamedTuple):
    """What the campaign gives for one ceiling: the records of its best variant's sessions, the others', and the burst's."""

    kind: CeilingKind
    variant: str = ""
    sessions: tuple[Record, ...] = ()
    others: tuple[Record, ...] = ()
    burst: Record | None = None
    absent: str = ""
    notes: tuple[str, ...] = ()


def candidates(kinds: Sequence[CeilingKind], variants: Sequence[Variant], capability: str, quick: bool) -> list[Candidate]:
    """Which variants apply to a GPU; a ceiling without any says so: emulated, unsupported, or left out of a quick run."""
    return [_candidate(kind, [v for v in variants if v.ceiling == kind.id], capability, quick) for kind in kinds]


def _candidate(kind: CeilingKind, variants: Sequence[Variant], capability: str, quick: bool) -> Candidate:
    here = [variant for variant in variants if variant.on(capability)]
    usable = tuple(dict.fromkeys(variant.name for variant in here if not variant.reason))
    if not variants:
        return Candidate(kind, (), "not measured: the benchmark has no kernel for it")
    if not usable:
        return Candidate(kind, (), "emulated" if any(variant.reason == "emulated" for variant in here) else "unsupported")
    if quick and not kind.quick:
        return Candidate(kind, (), "not measured: left out of a quick run")
    return Candidate(kind, usable)


@dataclass
class Campaign:
    """The work on one device; finished runs come from the journal and go into it.

    ``source`` is the program, ``telemetry`` the driver's view, ``device`` "gpu" or "cpu".  Nothing is begun after ``deadline``
    (of ``timing.now``), no retry either.  ``told`` gets each ceiling when it has been measured once.
    """

    source: Session
    telemetry: Telemetry
    settings: Settings
    timing: Timing
    deadline: float = math.inf
    device: str = GPU
    journal: Journal = field(default_factory=lambda: Journal(None, {}))
    progress: Progress = field(default_factory=Silent)
    told: Callable[[Outcome], None] = lambda _outcome: None
    _warm_clock: float | None = field(default=None, init=False)

    def run(self, wanted: Sequence[Candidate]) -> list[Outcome]:
        """One outcome per candidate, in their order."""
        # What a quick run measures comes first: if time runs out, the others are missing.
        usable = sorted((c for c in wanted if c.variants), key=lambda candidate: not candidate.kind.quick)
        quick, sessions = self.settings.quick, self.settings.sessions
        more = 0 if quick else sum(len(c.variants) - 1 for c in usable)
        self.progress.start(len(usable) * sessions + more)
        if any(self._find(candidate, session) is None for candidate in usable for session in range(sessions)):
            # Plain arithmetic warms the GPU up: its clock is the highest there is.
            warmer = min(usable, key=lambda candidate: (candidate.kind.id != "fp32.fma", candidate.kind.domain != "sm"))
            self._warm_clock = self.warm_up(warmer.kind.id, warmer.variants[0])
        # Every ceiling by its preferred variant, then what makes the numbers better: other variants, bursts, sessions, retries.
        for place in range(1 if quick else max((len(c.variants) for c in usable), default=0)):
            for candidate in usable:
                if place < len(candidate.variants):
                    record = self._finished(candidate.kind, candidate.variants[place])
                    self.progress.step(candidate.kind.id, record)
                if place == 0:
                    self.told(self._outcome(candidate))
        # Short trials show which clock a ceiling can have that the power limit slowed down.
        for candidate in usable if self.settings.bursts else ():
            first = self._find(candidate)
            if first is not None and first.held_back and candidate.kind.kind == "compute":
                self._finished(candidate.kind, first.variant, role="burst")
        for session in range(1, sessions):
            self.source.renew()
            # Each session goes the other way, so that what drifts with time does not always hit the same ceilings.
            for candidate in usable if session % 2 == 0 else reversed(usable):
                first = self._find(candidate)
                fit = first is not None and not first.failure  # what crashes or is refused once is not run in each session
                record = self._finished(candidate.kind, first.variant, session) if first and fit else None
                self.progress.step(candidate.kind.id, record)
        self._retry(usable)
        self._fill(usable)
        return [self._outcome(candidate) for candidate in wanted]

    def _finished(
        self, kind: CeilingKind, variant: str, session: int = 0, role: str = "session", before: Record | None = None
    ) -> Record | None:
        """A run, as it was made before, or now while there is time; ``before``: the record that is to be replaced."""
        record = None if before else self.journal.find(kind.id, variant, role, session)
        if record is None and self._time_left():
            self.progress.begin(kind.id)
            if role == "burst":
                record = self.burst(kind, variant, self._warm_clock)
            else:
                record = self.measure(kind, variant, session, self._warm_clock, before)
            if before is not None and before.values and not record.values:  # a retry that fails takes nothing away
                record = replace(before, attempts=record.attempts, notes=[*before.notes, f"a retry failed: {record.failure}"])
            self.journal.add(record)
        return record

    def warm_up(self, ceiling: str, variant: str) -> float | None:
        """Run until the SM clock stands still, the set time at least; the highest clock seen in Hz, None where not told."""
        rounds = max(int(self.settings.warm_up / self.settings.min_time), 1)
        try:
            trials, _ = self.source.run(self._job(ceiling, variant, rounds), self.settings.silence)
        except RunnerFailed:  # the ceiling itself will tell
            return None
        return max((trial.sm_clock for trial in trials if trial.sm_clock), default=None)

    def measure(
        self, kind: CeilingKind, variant: str, session: int, warm_clock: float | None, before: Record | None = None
    ) -> Record:
        """The trials of one session; ``before``: the record that these are to replace, whose trials were half as long."""
        attempt = before.attempts + 1 if before else 1
        longer = 2 ** (attempt - 1) if before and not before.failure else 1
        job = self._job(kind.id, variant, self.settings.trials + self.settings.spare, longer)
        record = Record(kind.id, variant, "session", session, kind.unit, attempts=attempt)
        return self._record(kind, record, job, self.settings.trials, warm_clock)

    def burst(self, kind: CeilingKind, variant: str, warm_clock: float | None) -> Record:
        """Short trials, each after a rest: the clock of a kernel by itself, before the power limit lowers it."""
        count = self.settings.bursts
        job = self._job(kind.id, variant, count)._replace(min_time=self.settings.burst, pause=self.settings.rest)
        return self._record(kind, Record(kind.id, variant, "burst", 0, kind.unit), job, count, warm_clock)

    def _job(self, ceiling: str, variant: str, trials: int, longer: int = 1) -> Job:
        return Job(ceiling, variant, trials, self.settings.min_time * longer, self.settings.data, self.settings.seed)

    def _record(self, kind: CeilingKind, empty: Record, job: Job, count: int, warm_clock: float | None) -> Record:
        with Watch(self.telemetry) as watch:
            try:
                trials, launch = self.source.run(job, self.settings.silence)
            except RunnerFailed as error:
                return replace(empty, failure=next((word for word in NOT_HERE if word in str(error)), str(error)))
            agreed = [trial for trial in trials if timers_agree(trial)]
            used, discarded = after_warm_up(agreed, count)
            if not used:
                disagree = "the clocks of GPU and host disagree about how long its trials lasted"
                return replace(empty, failure=disagree if trials else "it measured nothing")
            observed = watch.seen_in([(trial.begin, trial.end) for trial in used])
        values = [trial.work / trial.seconds if kind.higher_is_better else trial.seconds / trial.work for trial in used]
        clocks = [trial.sm_clock for trial in used if trial.sm_clock]
        rejections, notes = judge(kind, values, clocks, observed, warm_clock, self.telemetry.available, self.device)
        taken = number(launch.get("disturbed")) if self.device == CPU else 0.0
        if taken > LIMITS.disturbed:
            notes.append(f"other programs took {taken:.0%} of the CPU")
        checks = [trial.checksum_ok for trial in used if trial.checksum_ok is not None]
        if not all(checks):
            rejections = ["wrong result: the checksum differs from the CPU's", *rejections]
        return replace(
            empty,
            values=values,
            seconds=[trial.seconds for trial in used],
            clocks=clocks,
            work=median([trial.work for trial in used]),
            discarded=discarded + len(trials) - len(agreed),
            verified=all(checks) if checks else None,
            rejections=rejections,
            notes=notes,
            launch=launch,
            observed=observed,
        )

    def _retry(self, usable: Sequence[Candidate]) -> None:
        """Rounds over what did not stand, with longer trials; a GPU that was held back rests before each."""
        for attempt in range(1, self.settings.retries + 1):
            bad = [(candidate.kind, record) for candidate in usable for record in self._bad(candidate)]
            if self._time_left() and any(record.throttled for _, record in bad):
                self.timing.sleep(self.settings.cool_down * attempt)
            for kind, record in bad:
                self._finished(kind, record.variant, record.session, before=record)

    def _bad(self, candidate: Candidate) -> list[Record]:
        """The sessions of a ceiling that another attempt may save; none where most of them stand."""
        sessions, _ = self._sessions(candidate)
        if 2 * sum(record.stands for record in sessions) > len(sessions):
            return []
        return [record for record in sessions if record.worth_retrying and record.attempts <= self.settings.retries]

    def _fill(self, usable: Sequence[Candidate]) -> None:
        """The sessions of variants that are the best ones only since a retry changed the value of another."""
        for session in range(1, self.settings.sessions):
            firsts = [(c, first) for c in usable if (first := self._find(c)) and not first.failure]
            missing = [(candidate, first) for candidate, first in firsts if self._find(candidate, session) is None]
            if missing and self._time_left():
                self.source.renew()
            for candidate, first in missing:
                self._finished(candidate.kind, first.variant, session)

    def _time_left(self) -> bool:
        return self.timing.now() <= self.deadline

    def _best(self, candidate: Candidate) -> str:
        firsts = (self.journal.find(candidate.kind.id, variant, "session", 0) for variant in candidate.variants)
        found = [record for record in firsts if record and record.values and record.verified is not False]
        choose = max if candidate.kind.higher_is_better else min
        return choose(found, key=lambda record: record.value).variant if found else candidate.variants[0]

    def _find(self, candidate: Candidate, session: int = 0, role: str = "session") -> Record | None:
        """A run of a ceiling's best variant."""
        return self.journal.find(candidate.kind.id, self._best(candidate), role, session)

    def _sessions(self, candidate: Candidate) -> tuple[tuple[Record, ...], tuple[Record, ...]]:
        """The sessions of a ceiling's best variant, and of the others."""
        variant = self._best(candidate)
        records = [record for record in self.journal.records(candidate.kind.id) if record.role == "session"]
        own = tuple(record for record in records if record.variant == variant)
        return own, tuple(record for record in records if record.variant != variant)

    def _outcome(self, candidate: Candidate) -> Outcome:
        if candidate.absent:
            return Outcome(candidate.kind, absent=candidate.absent)
        sessions, others = self._sessions(candidate)
        if not sessions:
            return Outcome(candidate.kind, absent=OUT_OF_TIME)
        planned = self.settings.sessions
        short = len(sessions) < planned and not any(record.failure for record in sessions)
        notes = (f"out of time: {len(sessions)} of {planned} sessions",) if short else ()
        burst = self._find(candidate, role="burst")
        return Outcome(candidate.kind, sessions[0].variant, sessions, others, burst, "", notes)
