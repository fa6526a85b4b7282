"""Roofline charts with numbers: what `evaluate_charts` returns.  All values are SI: FLOP/s (OP/s), byte/s, FLOP/byte."""

from __future__ import annotations

from dataclasses import dataclass

from ncu_roofline.sections.tree import Axis

MISSING = "metric is not in the report"
NOT_A_NUMBER = "metric has no finite number"
NOT_FOR_THIS_CHIP = "the section has no metric for this compute capability"
NO_CLOCK = "the section names no cycles-per-second metric"
NO_VALUE = "the section gives no value"
NOT_POSITIVE = "value is not positive"
HIDDEN = "the section hides it while a metric is zero"
"""Why something of a section is not drawn: `Dropped.reason` is one of these."""


@dataclass(frozen=True)
class Roof:
    """Peak work (horizontal line) and peak traffic (diagonal line).

    `computed` names derived metrics that the report lacks and that were computed here from the section's definitions;
    NVIDIA's viewers, which compute them only while profiling, draw no such roof.
    """

    label: str
    peak_work: float
    peak_traffic: float
    work_metrics: tuple[str, ...]
    traffic_metrics: tuple[str, ...]
    color: int | None = None
    computed: tuple[str, ...] = ()

    @property
    def metrics(self) -> tuple[str, ...]:
        """All metrics that gave the roof; empty for one made of constants."""
        return tuple(dict.fromkeys(self.work_metrics + self.traffic_metrics))

    @property
    def ridge(self) -> float:
        """Intensity where the two lines meet, FLOP/byte."""
        return self.peak_work / self.peak_traffic


@dataclass(frozen=True)
class Point:
    """Achieved work and traffic per second, and their quotient."""

    label: str
    work: float
    traffic: float
    intensity: float
    work_metrics: tuple[str, ...]
    traffic_metrics: tuple[str, ...]
    color: int | None = None
    computed: tuple[str, ...] = ()

    @property
    def metrics(self) -> tuple[str, ...]:
        """All metrics that gave the point."""
        return tuple(dict.fromkeys(self.work_metrics + self.traffic_metrics))


@dataclass(frozen=True)
class Wall:
    """A vertical line at an intensity, FLOP/byte."""

    label: str
    intensity: float
    metrics: tuple[str, ...] = ()
    color: int | None = None
    computed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Dropped:
    """Something the section describes that is not drawn: kind is "roof", "point" or "wall", `part` the side at fault
    ("work", "traffic", "value" or "condition"), `metrics` those that caused it."""

    kind: str
    label: str
    part: str
    reason: str
    metrics: tuple[str, ...] = ()


@dataclass(frozen=True)
class Chart:
    """One roofline chart of one kernel."""

    section: str
    title: str
    label: str
    body: str
    axis_intensity: Axis
    axis_work: Axis
    roofs: tuple[Roof, ...]
    points: tuple[Point, ...]
    walls: tuple[Wall, ...]
    dropped: tuple[Dropped, ...]
