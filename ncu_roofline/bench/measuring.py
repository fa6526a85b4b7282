"""One ceiling, one variant, one session: how much is measured, when it is enough, whether it is fit to stand, and its numbers.

The median trial stands for a session, the better session for a ceiling: never a mean that no trial had.  Order statistics give
the confidence interval (no normal distribution is assumed: trials share a thermal state, so the interval of a mean would be too
narrow), and the median absolute deviation tells outliers.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ncu_roofline.base.records import known
from ncu_roofline.base.units import percent
from ncu_roofline.bench.runner import HANGS, Trial
from ncu_roofline.bench.telemetry import HARMFUL, POWER_CAP, names
from ncu_roofline.formats.ceilings import CPU, GPU, Ceiling

Floats = Sequence[float]
NOT_HERE = ("unsupported", "emulated")
POWER_CAP_NOTE = "power cap"
_MAD_TO_SIGMA = 1.4826
# Least sigma, as a share of the median: trials of an H100 vary by 0.1 % as a rule, and what is 1 % off does no harm.
_RESOLUTION = 2e-3


@dataclass(frozen=True)
class Settings:
    """Amount of work of a run; times in seconds.

    ``trials`` are those that count in a session: the last ones, once they agree (see `settled`), after at most ``most`` times
    as many.  ``spare`` trials come before them where the clock never stands still.  ``budget`` is for all of one GPU:
    everything is measured once first, so that what does not fit are repeats.  Of arithmetic that the power limit slows down,
    ``bursts`` trials of ``burst`` s, each after a ``rest``, are as long as a kernel under a profiler, too short for the limit
    to act; ``holds`` of ``hold`` s without one let its control settle (the sensor is renewed every 100 ms), and the last half
    of them counts.  The program hangs when it says nothing for ``silence``.
    """

    trials: int = 15
    sessions: int = 3
    min_time: float = 0.020
    spare: int = 10
    most: int = 3
    warm_up: float = 1.5
    budget: float = 220.0
    data: str = "random"
    seed: int = 1
    quick: bool = False
    silence: float = 40.0
    burst: float = 0.004
    rest: float = 0.2
    bursts: int = 3
    hold: float = 0.1
    holds: int = 10


FULL = Settings()
QUICK = Settings(9, 1, min_time=0.010, spare=6, quick=True, warm_up=0.7, budget=27.0, silence=10.0, bursts=0, holds=0)


class LIMITS:
    """What makes a good measurement.

    Share of ``outliers``; a core clock below ``clock`` of the highest seen in the warm-up is told; ``impossible`` and ``low``
    are shares of the theory at the measured clock; a value and the work per cycle may differ by ``swing`` of the clock; the
    host's clock may give a trial ``timers`` more time than the GPU's, and ``overhead`` seconds for the launch.  From ``trials``
    on their spread is known; the share of the CPU that others took is told above ``disturbed``, rejects above ``taken``.
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
    taken = 0.10


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


@dataclass(frozen=True)
class Record:
    """A finished run: plain values, SI units.

    ``role`` is "session", "burst" for short trials after a rest, or "limit" for long ones without; ``rejections`` say why it
    does not stand; ``failure`` why there are no values at all.
    """

    kind: Ceiling
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
        """That of the median trial, of an even number the lower one of the middle; NaN without any."""
        return statistics.median_low(self.values) if self.values else math.nan

    @property
    def per_cycle(self) -> list[float]:
        """Each trial's value over its own SM clock; empty where the clock is not known of all."""
        return _over_clocks(self.values, self.clocks)

    @property
    def stands(self) -> bool:
        """Whether nothing speaks against it."""
        return not self.rejections and not self.failure

    @property
    def capped(self) -> bool:
        """Whether the power limit held its clock back."""
        return any(note.startswith(POWER_CAP_NOTE) for note in self.notes)

    @property
    def final(self) -> bool:
        """Whether another session can't say anything else: after a hang, a wrong result, or on a part that lacks it."""
        return self.failure in NOT_HERE or self.failure.startswith(HANGS) or self.verified is False


@dataclass
class Measured:
    """A ceiling, the variants that can measure it here, preferred first, and what they gave so far.

    ``absent`` says why there is nothing to measure, or was no time; ``notes`` what else must be known.
    """

    kind: Ceiling
    variants: tuple[str, ...] = ()
    absent: str = ""
    records: list[Record] = field(default_factory=list)
    notes: tuple[str, ...] = ()

    @property
    def best(self) -> str:
        """The best variant, by its first session."""
        first = [one for one in self.of("session") if one.session == 0 and one.values and one.verified is not False]
        return best_of(first).variant if first else self.variants[0]

    @property
    def sessions(self) -> list[Record]:
        """Those of the best variant."""
        found = self.of("session")
        return [record for record in found if record.variant == self.best] if found else []

    @property
    def runs(self) -> list[Record]:
        """All, those of the best variant first, bursts and what stands at the limit last."""
        others = [record for record in self.of("session") if record.variant != self.best]
        return [*self.sessions, *others, *self.of("burst"), *self.of("limit")]

    def of(self, role: str) -> list[Record]:
        """The runs of a role."""
        return [record for record in self.records if record.role == role]


def timers_agree(trial: Trial) -> bool:
    """Whether the host's clock confirms the time that the GPU's tells: a GPU's timer that is set right meanwhile lies."""
    return trial.end - trial.begin <= trial.seconds * (1 + LIMITS.timers) + LIMITS.overhead


def values_of(kind: Ceiling, trials: Sequence[Trial]) -> list[float]:
    """What trials say of a ceiling: work per second, or seconds per launch."""
    return [trial.work / trial.seconds if kind.unit != "s" else trial.seconds / trial.work for trial in trials]


def settled(kind: Ceiling, trials: Sequence[Trial], settings: Settings, device: str) -> bool:
    """Whether the last ``settings.trials`` trials can stand: the clock stood still before them, and they agree."""
    agreed = [trial for trial in trials if timers_agree(trial)]
    clocks, spare = [trial.sm_clock or 0.0 for trial in agreed], len(agreed) - settings.trials
    start = stable_from(clocks) if any(clocks) else 2
    if spare < (settings.spare if start is None else min(start, settings.spare)):
        return False
    last = agreed[-settings.trials :]
    return not _unstable(kind, values_of(kind, last), [trial.sm_clock for trial in last if trial.sm_clock], device)


def judge(
    kind: Ceiling, values: Floats, clocks: Floats, observed: Mapping[str, Any], warm: float | None, told: bool, device: str
) -> tuple[list[str], list[str]]:
    """Why a run on a kind of ``device`` does not stand, and what else should be known of it.

    ``warm``: the warm-up's clock; ``told``: whether the driver says what holds the clock back.

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
    fallen = median(clocks) / warm if clocks and warm and on_sm else 1.0
    if fallen < LIMITS.clock:
        text = f"the {'SM' if device == GPU else 'core'} clock fell to {percent(fallen)} of the warm-up's"
        if not capped and variation(clocks) > spread_of(kind.domain, device).within:
            rejections.append(f"throttled: {text}")
        else:
            notes.append(text if told or device == CPU else f"{text}; without NVML the cause is unknown")
    unstable = _unstable(kind, values, clocks, device)
    return [*rejections, unstable] if unstable else rejections, notes


def _unstable(kind: Ceiling, values: Floats, clocks: Floats, device: str) -> str:
    """Why trials don't agree, "" where they do; a clock under the power limit swings, the work per cycle does not."""
    rates = _over_clocks(values, clocks) if kind.domain == "sm" else []
    cv, out = variation(kept(rates or values)), sum(outliers(rates or values))
    if len(values) < LIMITS.trials:
        return f"unstable: no spread of fewer than {LIMITS.trials} trials ({len(values)})"
    if cv > spread_of(kind.domain, device).within:
        return f"unstable: {percent(cv)} variation{' per cycle' if rates else ''}"
    if out > LIMITS.outliers * len(values) and kind.domain in ("sm", "memory"):
        return f"unstable: {out} outliers in {len(values)} trials"
    return ""


def _over_clocks(values: Floats, clocks: Floats) -> list[float]:
    return [value / clock for value, clock in zip(values, clocks, strict=True)] if len(clocks) == len(values) else []


def median(values: Floats) -> float:
    """The median; NaN of nothing."""
    return statistics.median(values) if values else math.nan


def median_interval(values: Floats) -> tuple[float, float]:
    """Distribution-free 95 % confidence interval of the median: two order statistics.

    The number of values below the true median is binomial(n, 1/2).  With fewer than six values no pair reaches 95 %, and
    the whole range is returned.
    """
    ordered, count = sorted(values), len(values)
    tail, rank = 0.0, 0
    while rank < count // 2:
        tail += math.comb(count, rank) / 2.0**count
        if 2 * tail > 1 - 0.95:
            break
        rank += 1
    rank = max(rank, 1)
    return ordered[rank - 1], ordered[count - rank]


def outliers(values: Floats) -> list[bool]:
    """Which values lie more than five MAD-sigmas from the median."""
    middle = median(values)
    sigma = max(_MAD_TO_SIGMA * median([abs(value - middle) for value in values]), _RESOLUTION * abs(middle))
    return [abs(value - middle) > 5.0 * sigma for value in values]


def kept(values: Floats) -> list[float]:
    """The values that are no outliers."""
    return [value for value, out in zip(values, outliers(values), strict=True) if not out]


def variation(values: Floats) -> float:
    """Coefficient of variation: standard deviation over mean; NaN of fewer than two values, which tell none."""
    if len(values) < 2:
        return math.nan
    mean = statistics.fmean(values)
    return statistics.stdev(values) / abs(mean) if mean else math.inf


def largest_variation(sessions: Sequence[Floats]) -> float:
    """The largest variation within a session, outliers left out; NaN where no session tells one."""
    return max((found for values in sessions if not math.isnan(found := variation(kept(values)))), default=math.nan)


def stable_from(clocks: Floats, tolerance: float = 0.005, window: int = 5) -> int | None:
    """First index from which ``window`` successive clocks differ by less than ``tolerance``; None if there is none."""
    for start in range(len(clocks) - window + 1):
        part = clocks[start : start + window]
        if min(part) > 0 and max(part) - min(part) < tolerance * max(part):
            return start
    return None


def summarise(sessions: Sequence[Record]) -> dict[str, Any]:
    """What a ceiling's sessions, each with values, give as its entry in a ceilings file says it.

    "value" is that of the better session; "ci95" reaches from the lowest to the highest end of the sessions' own intervals, so
    that it holds what differs between sessions, too.  "cv" is the largest within a session, outliers left out,
    "between_session_cv" that of the medians; None where too few tell it.
    """
    everything = [value for one in sessions for value in one.values]
    intervals = [median_interval(one.values) for one in sessions]
    found: dict[str, Any] = {"value": best_of(sessions).value}
    found["ci95"] = [min(low for low, _ in intervals), max(high for _, high in intervals)]
    found |= {"min": min(everything), "max": max(everything), "cv": known(largest_variation([one.values for one in sessions]))}
    found |= {"trials": len(everything), "sessions": len(sessions)}
    found["between_session_cv"] = known(variation([one.value for one in sessions]))
    return {**found, "outliers": sum(sum(outliers(one.values)) for one in sessions)}


def best_of(records: Sequence[Record]) -> Record:
    """The best of some with values of one ceiling, the first of equal ones."""
    choose = min if records[0].kind.unit == "s" else max
    return choose(records, key=lambda record: record.value)
