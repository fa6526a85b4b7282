"""A Roofline as plain data for charts: panels with series of dots and roofs, the kernels to draw, what is left out and why.

One panel holds one GPU and one group of precisions whose numbers belong on one axis: all that the cores compute in FLOP, all
tensor types of one unit, or another unit of work.  The precisions of a panel differ by how their symbols are filled.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ncu_roofline.analyses.hierarchical.kernels import MARK, kernel_labels, kernels_of, points_of
from ncu_roofline.analyses.hierarchical.roofs import WIDE, ChartRoof, RoofRow, roof_rows, roofs_of, tops
from ncu_roofline.analyses.hierarchical.style import (
    DEFAULT_UNIT,
    apart,
    level_order,
    on_request,
    precision_label,
    precision_order,
)
from ncu_roofline.base.texts import clean, conjoined
from ncu_roofline.chips.tables import EXECUTED
from ncu_roofline.model.work import MIXED
from ncu_roofline.rendering.frames import Frames, rows, view_of

MAX_KERNELS = 30
MAX_PANELS = 8
_MATTERS = 0.01  # share of the time
_FILLS = ("full", "none", "left", "bottom", "right", "top")  # of symbols, as matplotlib calls them
_SIDE = 0.02  # of the share of its roof of a launch's main precision: less is by the way, as constants loaded by HFMA2
_MORE = 1.01  # by so much nearer to its roof is what binds
_SAME = 1e-3  # performances of one count under two names
_POINT = ("level", "intensity", "performance", "unit", "seconds", "label", "fma_share", "mix_roof")
_LIMITS = ("binding_fraction", "compute_roof", "bandwidth_roof", "binds")


class Series(NamedTuple):
    """The dots of one launch (or aggregate) and precision: (level id, FLOP/B) each, all at ``performance`` FLOP/s.

    ``step`` is its place in a sweep, -1 outside of sweeps; ``fma_share`` and ``mix_roof`` (FLOP/s) are NaN where unknown.
    ``nearest`` is the level whose roof is the lowest above it, "" where no roof is known; ``binds`` the level or roof that
    limits it, ``binding`` and ``compute`` the shares of that and of its compute roof; ``side``: other precisions do all but all
    of its work.  ``group`` of precisions: those whose axes it stands on.
    """

    kernel: str
    precision: str
    performance: float
    seconds: float
    dots: Sequence[tuple[str, float]]
    device: str = ""
    unit: str = "flop"
    step: int = -1
    step_label: str = ""
    fma_share: float = math.nan
    mix_roof: float = math.nan
    nearest: str = ""
    binds: str = ""
    binding: float = math.nan
    compute: float = math.nan
    side: bool = False
    group: str = ""


def by_verdict(one: Series) -> tuple[bool, float, float, float, float]:
    """Sort key of the series of a kernel: its last step, its longest launch, and the precision nearest to its roof first."""
    seconds, share = (value if value > 0 else 0.0 for value in (one.seconds, one.compute))
    return one.side, -one.step, -seconds, -share, -one.performance


class Panel(NamedTuple):
    """One set of axes."""

    title: str
    unit: str
    series: Sequence[Series]
    roofs: Sequence[ChartRoof]

    @property
    def precisions(self) -> list[str]:
        """Its precisions, from wide to narrow."""
        return sorted({one.precision for one in self.series}, key=precision_order)

    def of_kind(self, kind: str) -> list[ChartRoof]:
        """The roofs of one kind, highest first."""
        return sorted((roof for roof in self.roofs if roof.kind == kind), key=lambda roof: (-roof.value, roof.id))


class ChartKernel(NamedTuple):
    """A kernel in the picture; ``share`` of the time of all rows is NaN where unknown, ``mark`` goes behind its name.

    ``recoverable``: seconds that its headroom would save, all of its time where that is unknown; NaN without a time.
    ``matters`` where it takes more than next to none of the time of a GPU: only then its dots decide how far the axes reach.
    """

    label: str
    share: float
    mark: str = ""
    recoverable: float = math.nan
    matters: bool = True


class RooflineChart(NamedTuple):
    """Everything a picture shows; ``total`` counts the kernels that have points, drawn or not.

    ``fills`` says by precision how symbols are filled; ``seconds`` is the time of all rows.
    """

    panels: Sequence[Panel]
    kernels: Sequence[ChartKernel]
    total: int
    panels_left_out: int
    fills: Mapping[str, str]
    seconds: float

    @property
    def levels(self) -> list[str]:
        """Levels that have dots or roofs, innermost first."""
        dots = {level for panel in self.panels for one in panel.series for level, _ in one.dots}
        return level_order(dots | {roof.level for panel in self.panels for roof in panel.roofs if roof.level})

    @property
    def origins(self) -> list[str]:
        """Where the values of its roofs come from, measured first."""
        given = {origin for panel in self.panels for roof in panel.roofs for origin in roof.bands}
        return [origin for origin in ("measured", "theoretical") if origin in given]

    def precisions(self) -> list[str]:
        """Those that are told apart by how their symbols are filled: of panels that have several."""
        several = [panel.precisions for panel in self.panels if len(panel.precisions) > 1]
        return [one for one in self.fills if any(one in precisions for precisions in several)]


def chart(frames: Frames, limit: int = MAX_KERNELS, most: int = MAX_PANELS) -> RooflineChart:
    """The chart of a Roofline: its ``limit`` largest kernels by time, all their precisions and levels, in ``most`` panels.

    Panels whose kernels take next to no time are left out where there are others.
    """
    found = kernels_of(frames)
    series = list(_series_of(frames))
    longest, times, saved = defaultdict[str, float](float), defaultdict[tuple[str, str], float](float), dict[str, float]()
    for (*_, device), row in found.items():
        times[device, row.kernel] += row.seconds  # unknown where row is
        longest[device] += row.seconds if math.isfinite(row.seconds) else 0.0
        if math.isfinite(row.seconds):
            part = row.recoverable if math.isfinite(row.recoverable) else row.seconds
            saved[row.kernel] = saved.get(row.kernel, 0.0) + part

    def matters(device: str, kernel: str) -> bool:
        return not times.get((device, kernel), 0.0) < _MATTERS * longest[device]

    drawn, total = largest(frames, "kernels", kernel_labels(frames), {one.kernel for one in series}, limit)
    names = {kernel.label for kernel in drawn}
    groups: dict[tuple[str, str], list[Series]] = {}
    for one in series:
        if one.kernel in names:
            groups.setdefault((one.device, one.group), []).append(one)
    order = sorted(groups, key=lambda key: (-longest.get(key[0], 0.0), key[0], key[1] != "core", *precision_order(key[1])))
    notable = [key for key in order if any(matters(key[0], one.kernel) for one in groups[key])] or order
    roofs, several = roof_rows(frames), len({device for device, _ in groups}) > 1
    panels = [_panel(roofs.get(key[0], []), *key, groups[key], several) for key in notable[:most]]
    shown = {one.kernel for panel in panels for one in panel.series}
    marked = {one.kernel for one in found.values() if one.tensor_unknown}
    kernels = [
        kernel._replace(
            mark=MARK if kernel.label in marked else "",
            recoverable=saved.get(kernel.label, math.nan),
            matters=any(matters(device, kernel.label) for device in longest),
        )
        for kernel in drawn
        if kernel.label in shown
    ]
    left_out = max(len(order) - len(panels or [()]), 0)
    if not panels:  # the roofs of the first GPU
        unit = DEFAULT_UNIT.get(view_of(frames), "flop")
        known = [roof for roof in roofs_of(next(iter(roofs.values()), []), {MIXED}, unit) if not on_request(roof.level)]
        panels = [Panel("", unit, (), known)]
    return RooflineChart(panels, kernels, total, left_out, _fills(groups), sum(longest.values()))


def _series_of(frames: Frames) -> Iterator[Series]:
    """All series that can stand on a log-log chart; of several that say the same of a launch the one that binds."""
    labels = kernel_labels(frames)
    for (report, _, kernel, step, device), kinds in points_of(frames, (*_POINT, *_LIMITS)).items():
        members = []
        for precision, points in kinds.items():
            drawable = [row for row in points if 0 < row["intensity"] < math.inf and 0 < row["performance"] < math.inf]
            if not drawable:
                continue
            at, first = {row["level"]: row["intensity"] for row in drawable}, drawable[0]
            limits = ((row["intensity"] * row["bandwidth_roof"], row["level"]) for row in drawable)
            roof = first["compute_roof"]
            series = Series(
                labels[report, kernel], precision, first["performance"], first["seconds"],
                [(level, at[level]) for level in level_order(at)], device, first["unit"], step, clean(first["label"]),
                first["fma_share"], first["mix_roof"], min((pair for pair in limits if pair[0] > 0), default=(0.0, ""))[1],
                first["binds"], first["binding_fraction"], first["performance"] / roof if roof > 0 else math.nan,
            )  # fmt: skip
            members.append(series)
        yield from _drawn(members)


def _drawn(members: Sequence[Series]) -> Iterator[Series]:
    """The series of one launch that are drawn, with the axes they stand on."""
    kept = [one for one in members if not any(_said_by(one, other) for other in members)]
    single = [one for one in kept if one.precision != MIXED]
    nearest = max((one.binding for one in single if not math.isnan(one.binding)), default=math.nan)
    most: dict[str, float] = defaultdict(float)
    for one in single:
        if one.compute > 0 and one.unit != "inst":  # kinds of instruction are looked for
            most[one.unit] = max(most[one.unit], one.compute)
    main = max((one for one in single if one.unit == "flop"), key=lambda one: one.performance, default=None)
    for one in kept:
        # The sum over pipes is as near to its roof as the nearest of them, but where pipes share what limits them.
        if one.precision != MIXED or not single or not one.binding <= _MORE * nearest:
            of = main.precision if one.precision == MIXED and main else one.precision
            yield one._replace(side=one.compute < _SIDE * most[one.unit], group=_group_of(of, one.unit))


def _said_by(one: Series, other: Series) -> bool:
    """Whether another series has the same work under a name that is as near to its roof, or shorter and as near."""
    a, b = one.precision, other.precision
    related = one is not other and (a.startswith(f"{b}.") or b.startswith(f"{a}."))
    if not related or one.dots != other.dots or not math.isclose(one.performance, other.performance, rel_tol=_SAME):
        return False
    if one.binding > _MORE * other.binding or other.binding > _MORE * one.binding:
        return one.binding < other.binding
    return len(b) < len(a)


def _group_of(precision: str, unit: str) -> str:
    """The axes that a precision stands on: those of the cores that count FLOP, all tensor types of one unit, or its own."""
    if precision.startswith("tensor"):
        return "tensor" if unit == "flop" else f"tensor.{unit}"
    if unit == "flop":
        return "core"
    return unit if unit == "inst" and not apart(precision) else precision


def _fills(groups: Mapping[tuple[str, str], Sequence[Series]]) -> dict[str, str]:
    """How the symbols of each precision are filled: the widest of a group wholly, the next not at all, others by halves."""
    present = defaultdict[str, set[str]](set)
    for (_, group), members in groups.items():
        present[group] |= {one.precision for one in members}
    found: dict[str, str] = {}
    for precisions in present.values():
        for index, precision in enumerate(sorted(precisions, key=precision_order)):
            found.setdefault(precision, _FILLS[index % len(_FILLS)])
    return found


def largest(
    frames: Frames, name: str, labels: Mapping[tuple[str, str], str], drawable: set[str], limit: int
) -> tuple[tuple[ChartKernel, ...], int]:
    """The kernels that can be drawn, the longest first by the frame ``name``, and how many there are."""
    seconds, share = defaultdict[str, float](float), defaultdict[str, float](float)
    for report, kernel, time, part in rows(frames, name, "report", "kernel", "seconds", "time_share"):
        label = labels[report, kernel]
        seconds[label] += time if math.isfinite(time) else 0.0
        share[label] += part if math.isfinite(part) else 0.0
    order = sorted(drawable, key=lambda label: (-seconds[label], label))
    return tuple(ChartKernel(label, share[label] or math.nan) for label in order[:limit]), len(order)


def _panel(given: Sequence[RoofRow], device: str, group: str, series: Sequence[Series], several: bool) -> Panel:
    unit, precisions = series[0].unit, {one.precision for one in series}
    limited = {one.precision for one in series if not one.side} or precisions
    limited = limited - {MIXED} or limited
    roofs, titled = roofs_of(given, limited, unit), precisions
    if group == "core" and len(precisions) > 1:
        # Of what is by the way the roofs that don't stretch the chart.
        top = max((roof.value for roof in roofs if roof.kind == "compute"), default=0.0)
        aside = [roof for roof in roofs_of(given, precisions - {MIXED}, unit) if roof.kind == "compute" and roof not in roofs]
        roofs += [roof for roof in tops(aside, ()) if roof.value <= (1 + WIDE) * top]
        titled = limited | {roof.precision for roof in roofs if roof.precision in precisions}
    if group == "core" and len(limited) > 1:  # no FMA, half rates: over several precisions they would be too many lines
        roofs = tops(roofs, {one.binds for one in series})
    title = f"{_group_title(group, titled)}{f', {clean(device)}' if several else ''}"
    # A link to the host is a decade or more slower than the rest: without dots there it would only squeeze the chart.
    levels = {level for one in series for level, _ in one.dots}
    return Panel(title, unit, series, [roof for roof in roofs if roof.level in levels or not on_request(roof.level)])


def _group_title(group: str, precisions: set[str]) -> str:
    names = [precision_label(one) for one in sorted(precisions, key=precision_order)]
    if len(names) == 1 or group == "core":
        return conjoined(names)
    special = {"tensor": "Tensor", EXECUTED: precision_label(EXECUTED)}
    return special.get(group, "Tensor, integer" if group.startswith("tensor") else group.upper())
