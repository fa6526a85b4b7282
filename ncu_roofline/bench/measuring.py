"""One ceiling, one variant, one session: warm-up, trials, and whether they are fit to stand."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from ncu_roofline.bench.catalogue import CeilingKind
from ncu_roofline.bench.runner import HANGS, Job, Launch, RunnerFailed, Trial
from ncu_roofline.bench.settings import LIMITS, Settings
from ncu_roofline.bench.statistics import kept, median, outliers, stable_from, variation
from ncu_roofline.bench.telemetry import POWER_CAP, Observed, Telemetry, Watch

NOT_HERE = ("unsupported", "emulated")


class TrialSource(Protocol):
    """What runs jobs: the runner, or a fake."""

    def run(self, job: Job, launch: Launch, timeout: float = ...) -> Iterator[Trial]:
        """Trials as they are measured."""


@dataclass(frozen=True)
class Timing:
    """The clock on the wall and waiting, replaceable by tests."""

    now: Callable[[], float]
    sleep: Callable[[float], None]


@dataclass(frozen=True)
class Record:
    """A finished run as the journal keeps it: plain values, SI units.

    ``role`` is "sweep" or "session"; ``rejections`` say why it does not stand after all retries; ``failure`` why there are
    no values at all.
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

    def as_json(self) -> dict[str, Any]:
        """As the journal writes it."""
        return asdict(self)


@dataclass(frozen=True)
class Bench:
    """What a run needs: the program, the device's index, the driver's view, how much to do, and time.

    Nothing is begun after ``deadline`` (of ``timing.now``), no retry either.
    """

    source: TrialSource
    device: int
    telemetry: Telemetry
    settings: Settings
    timing: Timing
    deadline: float = math.inf

    def warm_up(self, ceiling: str, variant: str) -> float | None:
        """Run until the SM clock stands still, the set time at least; the highest clock seen in Hz, None where not told."""
        rounds = max(int(self.settings.warm_up / self.settings.min_time), 1)
        job = self._job(ceiling, variant, rounds, self.settings.min_time)
        try:
            trials = list(self.source.run(job, Launch(), self.settings.silence))
        except RunnerFailed:  # the ceiling itself will tell
            return None
        return max((trial.sm_clock for trial in trials if trial.sm_clock), default=None)

    def measure(self, kind: CeilingKind, variant: str, role: str, session: int, warm_clock: float | None) -> Record:
        """Trials until they are fit to stand or the retries are used up; longer trials and a pause before each retry.

        A crash gets one retry; a hang, a wrong result and what is not on the part get none.
        """
        count = self.settings.sweep_trials if role == "sweep" else self.settings.trials
        min_time, record = self.settings.min_time, Record(kind.id, variant, role, session, kind.unit)
        retries = self.settings.retries if role == "session" else 1
        for attempt in range(1, retries + 2):
            record = self._attempt(kind, variant, (role, session, attempt), (count, min_time), warm_clock)
            if _final(record, attempt, retries) or self.timing.now() > self.deadline:
                break
            throttled = any(reason.startswith("throttled") for reason in record.rejections)
            self.timing.sleep(self.settings.cool_down * attempt if throttled else 0.1)
            min_time = min_time * 2 if not record.failure else min_time
        return record

    def _attempt(
        self,
        kind: CeilingKind,
        variant: str,
        which: tuple[str, int, int],
        amount: tuple[int, float],
        warm_clock: float | None,
    ) -> Record:
        (role, session, attempt), (count, min_time) = which, amount
        job = self._job(kind.id, variant, count + self.settings.spare, min_time)
        launch, trials, failure = Launch(), [], ""
        with Watch(self.telemetry) as watch:
            try:
                trials = list(self.source.run(job, launch, self.settings.silence))
            except RunnerFailed as error:
                failure = next((word for word in NOT_HERE if word in str(error)), str(error))
            used, discarded = after_warm_up(trials, count)
            if failure or not used:
                failure = failure or "it measured nothing"
                return Record(kind.id, variant, role, session, kind.unit, attempts=attempt, failure=failure)
            observed = watch.seen(used[0].arrived - used[0].seconds, used[-1].arrived)
        values = [trial.work / trial.seconds if kind.higher_is_better else trial.seconds / trial.work for trial in used]
        clocks = [trial.sm_clock for trial in used if trial.sm_clock]
        rejections, notes = judge(kind, values, clocks, observed, warm_clock, self.telemetry.available)
        checks = [trial.checksum_ok for trial in used if trial.checksum_ok is not None]
        if not all(checks):
            rejections = ["wrong result: the checksum differs from the CPU's", *rejections]
        return Record(
            ceiling=kind.id,
            variant=variant,
            role=role,
            session=session,
            unit=kind.unit,
            values=values,
            seconds=[trial.seconds for trial in used],
            clocks=clocks,
            work=median([trial.work for trial in used]),
            discarded=discarded,
            attempts=attempt,
            verified=all(checks) if checks else None,
            rejections=rejections,
            notes=notes,
            launch=launch.facts,
            observed=asdict(observed),
        )

    def _job(self, ceiling: str, variant: str, trials: int, min_time: float) -> Job:
        return Job(self.device, ceiling, variant, trials, min_time, self.settings.data, self.settings.seed)


def _final(record: Record, attempt: int, retries: int) -> bool:
    if record.failure:
        return record.failure in NOT_HERE or record.failure.startswith(HANGS) or attempt > min(retries, 1)
    return not record.rejections or record.verified is False or attempt > retries


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
) -> tuple[list[str], list[str]]:
    """Why a run does not stand, and what else should be known of it.

    The driver's slowdowns reject; so does a clock below 95 % of the warm-up's for ceilings that run at it, unless the power
    cap explains it (then that is the ceiling) or nobody can tell why and it holds still.
    """
    rejections, notes = [], []
    cv, out = variation(kept(values)), sum(outliers(values))
    steady = cv <= LIMITS.cv and out <= LIMITS.outliers * len(values)
    if observed.harmful:
        rejections.append(f"throttled: {', '.join(observed.harmful)}")
    if observed.reasons & POWER_CAP:
        notes.append("power cap: the clock is what the power limit allows")
    fallen = median(clocks) / warm_clock if clocks and warm_clock and kind.domain == "sm" else 1.0
    if fallen < LIMITS.clock:
        text = f"the SM clock fell to {fallen:.1%} of the warm-up's"
        if observed.reasons & POWER_CAP:
            notes.append(text)
        elif not driver_tells and steady:
            notes.append(f"{text}; without NVML the cause is unknown")
        else:
            rejections.append(f"throttled: {text}")
    if not steady:
        cause = f"{cv:.1%} variation" if cv > LIMITS.cv else f"{out} outliers in {len(values)} trials"
        rejections.append(f"unstable: {cause}")
    return rejections, notes
