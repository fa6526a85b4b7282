"""The dots of a chart by launch and precision, and which of them say what limits a kernel."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ncu_roofline.analyses.hierarchical.style import apart, level_order
from ncu_roofline.base.texts import clean
from ncu_roofline.rendering.frames import Frames, optional, rows

MIXED = "mixed"
_SIDE = 0.02  # of the share of its roof of a launch's main precision: less is by the way, as constants loaded by HFMA2
_MORE = 1.01  # by so much nearer to its roof is what binds
_SAME = 1e-3  # performances of one count under two names


@dataclass(frozen=True)
class Series:
    """The dots of one launch (or aggregate) and precision: (level id, FLOP/B) each, all at ``performance`` FLOP/s.

    ``step`` is its place in a sweep, -1 outside of sweeps; ``fma_share`` and ``mix_roof`` (FLOP/s) are NaN where unknown.
    ``nearest`` is the level whose roof is the lowest above it, "" where no roof is known; ``binds`` the level or roof that
    limits it; ``compute`` the share of its compute roof; ``side``: other precisions do all but all of its work.
    """

    kernel: str
    precision: str
    performance: float
    seconds: float
    dots: tuple[tuple[str, float], ...]
    step: int = -1
    step_label: str = ""
    fma_share: float = math.nan
    mix_roof: float = math.nan
    nearest: str = ""
    binds: str = ""
    side: bool = False
    compute: float = math.nan


def by_verdict(one: Series) -> tuple[bool, float, float, float, float]:
    """Sort key of the series of a kernel: its last step, its longest launch, and the precision nearest to its roof first."""
    seconds, share = (value if value > 0 else 0.0 for value in (one.seconds, one.compute))
    return one.side, -one.step, -seconds, -share, -one.performance


@dataclass(frozen=True)
class Placed:
    """A series with its GPU, its unit of work and the group of precisions whose axes it stands on."""

    device: str
    unit: str
    group: str
    series: Series


@dataclass(frozen=True)
class _Known:
    """A series with what of its points decides: shares of the nearest roof and of its compute roof, NaN where unknown."""

    device: str
    unit: str
    series: Series
    binding: float
    compute: float


def series_of(frames: Frames, labels: Mapping[tuple[str, str], str]) -> list[Placed]:
    """All series that can stand on a log-log chart; of several that say the same of a launch the one that binds."""
    launches: dict[tuple[Any, ...], list[_Known]] = defaultdict(list)
    for launch, one in _all(frames, labels):
        launches[launch].append(one)
    return [placed for members in launches.values() for placed in _placed(members)]


def _all(frames: Frames, labels: Mapping[tuple[str, str], str]) -> list[tuple[tuple[Any, ...], _Known]]:
    found: dict[tuple[Any, ...], list[tuple[str, float, float]]] = {}
    about: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    columns = ("device", "unit", "report", "launch", "kernel", "precision", "performance", "step")
    more = ("seconds", "label", "fma_share", "mix_roof")
    numbers = (optional(frames, "points", name, math.nan) for name in ("binding_fraction", "compute_roof"))
    limits = (optional(frames, "points", "bandwidth_roof", math.nan), optional(frames, "points", "binds", ""))
    for identity, facts, (level, intensity), binding, roof, bandwidth, binds in zip(
        rows(frames, "points", *columns), rows(frames, "points", *more), rows(frames, "points", "level", "intensity"),
        *numbers, *limits, strict=True,
    ):  # fmt: skip
        if 0 < intensity < math.inf and 0 < identity[6] < math.inf:
            found.setdefault(identity, []).append((level, intensity, intensity * bandwidth))
            about.setdefault(identity, (*facts, binding, identity[6] / roof if roof > 0 else math.nan, binds))
    result = []
    for key, dots in found.items():
        device, unit, report, launch, kernel, precision, performance, step = key
        seconds, label, share, mix_roof, binding, compute, binds = about[key]
        order = level_order({level for level, *_ in dots})
        placed = tuple((level, x) for level, x, _ in sorted(dots, key=lambda dot: order.index(dot[0])))
        nearest = min(((limit, level) for level, _, limit in dots if limit > 0), default=(0.0, ""))[1]
        one = Series(
            labels[report, kernel], precision, performance, seconds, placed, step, clean(label), share, mix_roof, nearest, binds
        )
        result.append(((device, report, launch, kernel, step), _Known(device, unit, one, binding, compute)))
    return result


def _placed(members: Sequence[_Known]) -> list[Placed]:
    """The series of one launch that are drawn, and where."""
    kept = [one for one in members if not any(_said_by(one, other) for other in members)]
    single = [one for one in kept if one.series.precision != MIXED]
    nearest = max((one.binding for one in single if not math.isnan(one.binding)), default=math.nan)
    # The sum over pipes is as near to its roof as the nearest of them, but where pipes share what limits them.
    kept = [one for one in kept if one in single or not single or not one.binding <= _MORE * nearest]
    most: dict[str, float] = defaultdict(float)
    for one in kept:
        if one.series.precision != MIXED and one.compute > 0 and one.unit != "inst":  # kinds of instruction are looked for
            most[one.unit] = max(most[one.unit], one.compute)
    main = max((one for one in single if one.unit == "flop"), key=lambda one: one.series.performance, default=None)
    return [
        Placed(
            one.device,
            one.unit,
            group_of(
                one.series.precision if one.series.precision != MIXED or main is None else main.series.precision, one.unit
            ),
            replace(one.series, side=one.compute < _SIDE * most[one.unit], compute=one.compute),
        )
        for one in kept
    ]


def _said_by(one: _Known, other: _Known) -> bool:
    """Whether another series has the same work under a name that is as near to its roof, or shorter and as near."""
    a, b = one.series, other.series
    if one is other or not (a.precision.startswith(f"{b.precision}.") or b.precision.startswith(f"{a.precision}.")):
        return False
    if not math.isclose(a.performance, b.performance, rel_tol=_SAME) or a.dots != b.dots:
        return False
    if one.binding > _MORE * other.binding or other.binding > _MORE * one.binding:
        return one.binding < other.binding
    return len(b.precision) < len(a.precision)


def group_of(precision: str, unit: str) -> str:
    """The axes that a precision stands on: those of the cores that count FLOP, all tensor types of one unit, or its own."""
    if precision.startswith("tensor"):
        return "tensor" if unit == "flop" else f"tensor.{unit}"
    if unit == "flop":
        return "core"
    return unit if unit == "inst" and not apart(precision) else precision
