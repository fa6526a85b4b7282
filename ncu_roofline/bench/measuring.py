"""One ceiling, one variant, one session: how much is measured, when it is enough, and whether it is fit to stand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ncu_roofline.bench.catalogue import CeilingKind
from ncu_roofline.bench.runner import HANGS, Trial
from ncu_roofline.bench.statistics import kept, median, outliers, stable_from, variation
from ncu_roofline.bench.telemetry import HARMFUL, POWER_CAP, names
from ncu_roofline.formats.ceilings import CPU, GPU

NOT_HERE = ("unsupported", "emulated")
POWER_CAP_NOTE = "power cap"


@dataclass(frozen=True)
class Settings:
    """Amount of work of a run; times in seconds.

    ``trials`` are those that count in a session: the last ones, once they agree (see `settled`), after at most ``most`` times
    as many.  ``spare`` trials come before them where the clock never stands still.  ``budget`` is for all of one GPU:
    everything is measured once first, so that what does not fit are repeats.  What stands in no session has one more, after
    ``cool_down`` where the GPU was held back.  ``burst`` is how long the trials last that follow a ``rest``: as long as a
    kernel under a profiler, too short for the power limit to act.  The program hangs when it says nothing for ``silence``.
    """

    trials: int = 15
    sessions: int = 3
    min_time: float = 0.020
    spare: int = 10
    most: int = 3
    warm_up: float = 1.5
    budget: float = 170.0
    data: str = "random"
    seed: int = 1
    cool_down: float = 4.0
    quick: bool = False
    silence: float = 40.0
    burst: float = 0.004
    rest: float = 0.2
    bursts: int = 7

    def key(self) -> dict[str, object]:
        """What the file says of them."""
        return {name: getattr(self, name) for name in ("trials", "sessions", "min_time", "data", "seed", "quick")}


_SHORTER: dict[str, Any] = {"warm_up": 0.7, "budget": 27.0, "cool_down": 1.0, "silence": 10.0, "bursts": 0}
FULL, QUICK = Settings(), Settings(trials=9, sessions=1, min_time=0.010, spare=6, quick=True, **_SHORTER)


class Spread(NamedTuple):
    """How far trials ``within`` a session and medians ``between`` sessions may differ (coefficients of variation)."""

    within: float
    between: float


def spread_of(domain: str, device: str) -> Spread:
    """What is asked of a ceiling by its clock's domain and the kind of device.

    On a GPU trials agree to a thousandth; a CPU runs other programs, too; links and launches depend on the host.
    """
    if domain not in ("sm", "memory"):
        return Spread(0.10, 0.10)
    return {GPU: Spread(0.02, 0.01), CPU: Spread(0.05, 0.05)}[device]


class LIMITS:
    """What else makes a good measurement.

    Share of ``outliers``; a core clock below ``clock`` of the highest seen in the warm-up is told; ``impossible`` and ``low``
    are shares of the theory at the measured clock; a value and the work per cycle may differ by ``swing`` of the clock; the
    host's clock may give a trial ``timers`` more time than the GPU's, and ``overhead`` seconds for the launch.  From ``trials``
    on their spread is known; a share of the CPU above ``disturbed`` that other programs took is told.
    """

    outliers = 0.10
    clock = 0.95
    impossible = 1.01
    low = 0.80
    slow_gpu = 0.03
    swing = 0.05
    timers = 0.02
    overhead = 0.0005
    trials = 3
    disturbed = 0.01


@dataclass(frozen=True)
class Record:
    """A finished run: plain values, SI units.

    ``role`` is "session", or "burst" for short trials after a rest; ``rejections`` say why it does not stand; ``failure`` why
    there are no values at all.
    """

    kind: CeilingKind
    variant: str
    role: str = "session"
    session: int = 0
    values: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    clocks: list[float] = field(default_factory=list)
    work: float = 0.0
    discarded: int = 0
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
        return over_clocks(self.values, self.clocks)

    @property
    def stands(self) -> bool:
        """Whether nothing speaks against it."""
        return not self.rejections and not self.failure

    @property
    def final(self) -> bool:
        """Whether another session can't say anything else: after a hang, a wrong result, or on a part that lacks it."""
        return self.failure in NOT_HERE or self.failure.startswith(HANGS) or self.verified is False


class Outcome(NamedTuple):
    """What the campaign gives for one ceiling: the records of its best variant's sessions, the others', and the burst's."""

    kind: CeilingKind
    sessions: tuple[Record, ...] = ()
    others: tuple[Record, ...] = ()
    burst: Record | None = None
    absent: str = ""
    notes: tuple[str, ...] = ()


def over_clocks(values: Sequence[float], clocks: Sequence[float]) -> list[float]:
    """Each value over the clock of its trial; nothing where not all are known."""
    return [value / clock for value, clock in zip(values, clocks, strict=True)] if len(clocks) == len(values) else []


class Timing(NamedTuple):
    """The clock on the wall and waiting, replaceable by tests."""

    now: Callable[[], float]
    sleep: Callable[[float], None]


def timers_agree(trial: Trial) -> bool:
    """Whether the host's clock confirms the time that the GPU's tells: a GPU's timer that is set right meanwhile lies."""
    return trial.end - trial.begin <= trial.seconds * (1 + LIMITS.timers) + LIMITS.overhead


def values_of(kind: CeilingKind, trials: Sequence[Trial]) -> list[float]:
    """What trials say of a ceiling: work per second, or seconds per launch."""
    return [trial.work / trial.seconds if kind.higher_is_better else trial.seconds / trial.work for trial in trials]


def settled(kind: CeilingKind, trials: Sequence[Trial], settings: Settings, device: str) -> bool:
    """Whether the last ``settings.trials`` trials can stand: the clock stood still before them, and they agree."""
    agreed = [trial for trial in trials if timers_agree(trial)]
    clocks, spare = [trial.sm_clock or 0.0 for trial in agreed], len(agreed) - settings.trials
    start = stable_from(clocks) if any(clocks) else 2
    if spare < (settings.spare if start is None else min(start, settings.spare)):
        return False
    last = agreed[-settings.trials :]
    return not unstable(kind, values_of(kind, last), [trial.sm_clock for trial in last if trial.sm_clock], device)


def unstable(kind: CeilingKind, values: Sequence[float], clocks: Sequence[float], device: str) -> str:
    """Why trials don't agree, "" where they do; a clock under the power limit swings, the work per cycle does not."""
    values = over_clocks(values, clocks) or values if kind.domain == "sm" else values
    cv, out = variation(kept(values)), sum(outliers(values))
    if len(values) < LIMITS.trials:
        return f"unstable: {len(values)} trial{'s tell' if len(values) > 1 else ' tells'} no spread"
    if cv > spread_of(kind.domain, device).within:
        return f"unstable: {cv:.1%} variation"
    if out > LIMITS.outliers * len(values) and kind.domain in ("sm", "memory"):
        return f"unstable: {out} outliers in {len(values)} trials"
    return ""


def judge(
    kind: CeilingKind,
    values: Sequence[float],
    clocks: Sequence[float],
    observed: Mapping[str, Any],
    warm_clock: float | None,
    driver_tells: bool,
    device: str,
) -> tuple[list[str], list[str]]:
    """Why a run on a kind of ``device`` does not stand, and what else should be known of it.

    The driver's slowdowns reject.  A clock below the warm-up's that holds still does not: tensor cores have a lower one than
    the rest of the SM (1830 of 1980 MHz on an H100), and a power limit lowers it further.
    """
    rejections, notes = [], []
    on_sm, reasons = kind.domain == "sm", observed["reasons"]
    if harmful := names(reasons & HARMFUL):
        rejections.append(f"throttled: {', '.join(harmful)}")
    capped = on_sm and bool(reasons & POWER_CAP)
    if capped:
        notes.append(f"{POWER_CAP_NOTE}: the clock is what the power limit allows")
    fallen = median(clocks) / warm_clock if clocks and warm_clock and on_sm else 1.0
    if fallen < LIMITS.clock:
        text = f"the {'SM' if device == GPU else 'core'} clock fell to {fallen:.1%} of the warm-up's"
        if not capped and variation(clocks) > spread_of(kind.domain, device).within:
            rejections.append(f"throttled: {text}")
        else:
            notes.append(text if driver_tells else f"{text}; without NVML the cause is unknown")
    return [*rejections, *filter(None, [unstable(kind, values, clocks, device)])], notes
