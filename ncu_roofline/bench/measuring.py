"""One ceiling, one variant, one session: warm-up, trials, and whether they are fit to stand."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Protocol

from ncu_roofline.base.forms import number
from ncu_roofline.bench.catalogue import CeilingKind
from ncu_roofline.bench.runner import HANGS, Job, RunnerFailed, Trial
from ncu_roofline.bench.settings import LIMITS, Settings, spread_of
from ncu_roofline.bench.statistics import kept, median, outliers, stable_from, variation
from ncu_roofline.bench.telemetry import POWER_CAP, Observed, Telemetry, Watch
from ncu_roofline.formats.ceilings import CPU, GPU

NOT_HERE = ("unsupported", "emulated")
POWER_CAP_NOTE = "power cap"


class TrialSource(Protocol):
    """What runs jobs: a session of the program, or a fake."""

    def run(self, job: Job, timeout: float = ...) -> tuple[list[Trial], dict[str, Any]]:
        """The trials, and what is said of the launch."""

    def renew(self) -> None:
        """The next job gets a fresh context."""


@dataclass(frozen=True)
class Timing:
    """The clock on the wall and waiting, replaceable by tests."""

    now: Callable[[], float]
    sleep: Callable[[float], None]


@dataclass(frozen=True)
class Record:
    """A finished run as the journal keeps it: plain values, SI units.

    ``role`` is "session", or "burst" for short trials after a rest; ``rejections`` say why it does not stand; ``failure`` why
    there are no values at all; ``attempts`` counts this one and those it replaces.
    """

    ceiling: str
    variant: str
    role: str
    session: int
    unit: str
    values: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    clocks: list[float] = field(default_factory=list)
    work: float = 0.0
    discarded: int = 0
    attempts: int = 1
    verified: bool | None = None
    rejections: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    failure: str = ""
    launch: dict[str, Any] = field(default_factory=dict)
    observed: dict[str, Any] = field(default_factory=dict)

    @property
    def value(self) -> float:
        """Median of the trials; NaN without any."""
        return median(self.values)

    @property
    def per_cycle(self) -> list[float]:
        """Each trial's value over its own SM clock; empty where the clock is not known of all."""
        if len(self.clocks) != len(self.values):
            return []
        return [value / clock for value, clock in zip(self.values, self.clocks, strict=True)]

    @property
    def held_back(self) -> bool:
        """Whether the power limit lowered its clock."""
        return any(note.startswith(POWER_CAP_NOTE) for note in self.notes)


@dataclass(frozen=True)
class Bench:
    """What a run needs: the program, the driver's view, how much to do, time, and the kind of device ("gpu" or "cpu").

    Nothing is begun after ``deadline`` (of ``timing.now``), no retry either.
    """

    source: TrialSource
    telemetry: Telemetry
    settings: Settings
    timing: Timing
    deadline: float = math.inf
    device: str = GPU

    def warm_up(self, ceiling: str, variant: str) -> float | None:
        """Run until the SM clock stands still, the set time at least; the highest clock seen in Hz, None where not told."""
        rounds = max(int(self.settings.warm_up / self.settings.min_time), 1)
        job = self._job(ceiling, variant, rounds, self.settings.min_time)
        try:
            trials, _ = self.source.run(job, self.settings.silence)
        except RunnerFailed:  # the ceiling itself will tell
            return None
        return max((trial.sm_clock for trial in trials if trial.sm_clock), default=None)

    def measure(
        self, kind: CeilingKind, variant: str, session: int, warm_clock: float | None, before: Record | None = None
    ) -> Record:
        """The trials of one session; ``before``: the record that these are to replace, whose trials were half as long."""
        attempt = before.attempts + 1 if before else 1
        longer = 2 ** (attempt - 1) if before and not before.failure else 1
        job = self._job(kind.id, variant, self.settings.trials + self.settings.spare, self.settings.min_time * longer)
        record = Record(kind.id, variant, "session", session, kind.unit, attempts=attempt)
        return self._record(kind, record, job, self.settings.trials, warm_clock)

    def burst(self, kind: CeilingKind, variant: str, warm_clock: float | None) -> Record:
        """Short trials, each after a rest: the clock of a kernel by itself, before the power limit lowers it."""
        settings = self.settings
        job = replace(self._job(kind.id, variant, settings.bursts, settings.burst), pause=settings.rest)
        return self._record(kind, Record(kind.id, variant, "burst", 0, kind.unit), job, settings.bursts, warm_clock)

    def _record(self, kind: CeilingKind, empty: Record, job: Job, count: int, warm_clock: float | None) -> Record:
        with Watch(self.telemetry) as watch:
            try:
                trials, launch = self.source.run(job, self.settings.silence)
            except RunnerFailed as error:
                return replace(empty, failure=next((word for word in NOT_HERE if word in str(error)), str(error)))
            agreed = [trial for trial in trials if timers_agree(trial)]
            used, discarded = after_warm_up(agreed, count)
            if not used:
                why = (
                    "the clocks of GPU and host disagree about how long its trials lasted" if trials else "it measured nothing"
                )
                return replace(empty, failure=why)
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
            observed=asdict(observed),
        )

    def _job(self, ceiling: str, variant: str, trials: int, min_time: float) -> Job:
        return Job(ceiling, variant, trials, min_time, self.settings.data, self.settings.seed)


def worth_retrying(record: Record) -> bool:
    """Whether another attempt may stand: not after a hang or a wrong result, and only one after a crash."""
    if record.failure:
        return not (record.failure in NOT_HERE or record.failure.startswith(HANGS) or record.attempts > 1)
    return bool(record.rejections) and record.verified is not False


def throttled(record: Record) -> bool:
    """Whether the GPU was held back."""
    return any(reason.startswith("throttled") for reason in record.rejections)


def timers_agree(trial: Trial) -> bool:
    """Whether the host's clock confirms the time that the GPU's tells: a GPU's timer that is set right meanwhile lies."""
    return trial.end - trial.begin <= trial.seconds * (1 + LIMITS.timers) + LIMITS.overhead


def after_warm_up(trials: Sequence[Trial], count: int) -> tuple[list[Trial], int]:
    """The trials that count, and how many before them do not.

    The first ones go until the clock stands still, at most so many that ``count`` remain; without clocks two go.
    """
    spare = max(len(trials) - count, 0)
    clocks = [trial.sm_clock or 0.0 for trial in trials]
    start = stable_from(clocks)
    if start is None:
        start = spare if any(clocks) else 2
    start = min(start, spare)
    return list(trials[start : start + count]), start


def judge(
    kind: CeilingKind,
    values: Sequence[float],
    clocks: Sequence[float],
    observed: Observed,
    warm_clock: float | None,
    driver_tells: bool,
    device: str,
) -> tuple[list[str], list[str]]:
    """Why a run on a kind of ``device`` does not stand, and what else should be known of it.

    The driver's slowdowns reject.  A clock below the warm-up's that holds still does not: tensor cores have a lower one than
    the rest of the SM (1830 of 1980 MHz on an H100), and a power limit lowers it further.
    """
    rejections, notes = [], []
    on_sm = kind.domain == "sm"
    if on_sm and len(clocks) == len(values):  # a clock under the power limit swings, the work per cycle does not
        values = [value / clock for value, clock in zip(values, clocks, strict=True)]
    limit = spread_of(kind.domain, device).within
    cv, out = variation(kept(values)), sum(outliers(values))
    steady = cv <= limit and (out <= LIMITS.outliers * len(values) or kind.domain in ("link", ""))
    if observed.harmful:
        rejections.append(f"throttled: {', '.join(observed.harmful)}")
    capped = on_sm and bool(observed.reasons & POWER_CAP)
    if capped:
        notes.append(f"{POWER_CAP_NOTE}: the clock is what the power limit allows")
    fallen = median(clocks) / warm_clock if clocks and warm_clock and on_sm else 1.0
    if fallen < LIMITS.clock:
        text = f"the {'SM' if device == GPU else 'core'} clock fell to {fallen:.1%} of the warm-up's"
        if not capped and variation(clocks) > limit:
            rejections.append(f"throttled: {text}")
        elif not driver_tells:
            notes.append(f"{text}; without NVML the cause is unknown")
        else:
            notes.append(text)
    if len(values) < LIMITS.trials:
        rejections.append(f"unstable: {len(values)} trial{'s tell' if len(values) > 1 else ' tells'} no spread")
    elif not steady:
        cause = f"{cv:.1%} variation" if cv > limit else f"{out} outliers in {len(values)} trials"
        rejections.append(f"unstable: {cause}")
    return rejections, notes
