"""A Roofline as plain data for charts: panels with series of dots and roofs, the kernels to draw, what is left out and why.

One panel holds one GPU and one group of precisions whose numbers belong on one axis: all that the cores compute in FLOP, all
tensor types of one unit, or another unit of work.  The precisions of a panel differ by how their symbols are filled.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from types import MappingProxyType

from ncu_roofline.analyses.hierarchical.roofs import WIDE, RoofRow, roof_rows, roofs_of, tops
from ncu_roofline.analyses.hierarchical.roofs import Band as Band
from ncu_roofline.analyses.hierarchical.roofs import ChartRoof as ChartRoof
from ncu_roofline.analyses.hierarchical.roofs import range_text as range_text
from ncu_roofline.analyses.hierarchical.series import MIXED, Placed, series_of
from ncu_roofline.analyses.hierarchical.series import Series as Series
from ncu_roofline.analyses.hierarchical.series import by_verdict as by_verdict
from ncu_roofline.analyses.hierarchical.style import (
    DEFAULT_UNIT,
    level_order,
    on_request,
    precision_label,
    precision_order,
)
from ncu_roofline.base.texts import clean, conjoined
from ncu_roofline.chips.tables import EXECUTED
from ncu_roofline.chips.verdict import TENSOR_ACTIVE
from ncu_roofline.formats.ceilings import PUBLISHED
from ncu_roofline.rendering.frames import Frames, column, optional, rows, view_of

ZERO = frozenset({"zero-flop", "zero-asked"})  # work was counted, and is none: nothing is lacking
_KEY = ("report", "launch", "kernel", "step", "device")
MAX_KERNELS = 30
MAX_PANELS = 8
_MATTERS = 0.01  # share of the time
FILLS = ("full", "none", "left", "bottom", "right", "top")  # of symbols, as matplotlib calls them


def statuses(frames: Frames) -> list[str]:
    """The status of each row of the kernels; "ok" only of rows with points.

    Beside those of the frame: "zero-asked" (all work asked for was counted and is zero), "uncounted-asked" (it was not
    counted) and "unshown" (it is there, but at none of the levels chosen).
    """
    found = column(frames, "kernels", "status")
    if view_of(frames) not in ("roofline", "instruction"):
        return found
    drawn = set(rows(frames, "points", *_KEY))
    active = optional(frames, "kernels", "tensor_active", math.nan)
    return [
        _without_point(frames, index, active[index]) if status == "ok" and key not in drawn else status
        for index, (status, key) in enumerate(zip(found, rows(frames, "kernels", *_KEY), strict=True))
    ]


def _without_point(frames: Frames, row: int, active: float) -> str:
    asked: tuple[str, ...] = getattr(frames, "asked", ())
    if not asked:
        return "unshown"
    counted = [
        float(values[row])
        for precision, values in getattr(frames, "work", {}).items()
        if any(precision == one or precision.startswith(f"{one}.") for one in asked) and math.isfinite(values[row])
    ]
    if any(work > 0 for work in counted):
        return "unshown"
    tensor = any(one.split(".")[0] == "tensor" for one in asked)
    return "uncounted-asked" if not counted or (tensor and active >= TENSOR_ACTIVE) else "zero-asked"


def asked_work(frames: Frames) -> str:
    """What was asked for, in words: ``tensor or FP32 work``."""
    names = ["tensor" if one == "tensor" else precision_label(one) for one in getattr(frames, "asked", ())]
    return f"{' or '.join(names)} work"


@dataclass(frozen=True)
class Panel:
    """One set of axes."""

    title: str
    unit: str
    series: tuple[Series, ...]
    roofs: tuple[ChartRoof, ...]

    @property
    def kernels(self) -> frozenset[str]:
        """The kernels that have dots in it."""
        return frozenset(one.kernel for one in self.series)

    @property
    def precisions(self) -> tuple[str, ...]:
        """Its precisions, from wide to narrow."""
        return tuple(sorted({one.precision for one in self.series}, key=precision_order))

    def of_kind(self, kind: str) -> list[ChartRoof]:
        """The roofs of one kind, highest first."""
        return sorted((roof for roof in self.roofs if roof.kind == kind), key=lambda roof: (-roof.value, roof.id))


@dataclass(frozen=True)
class ChartKernel:
    """A kernel in the picture; ``share`` of the time of all rows is NaN where unknown, ``mark`` goes behind its name.

    ``recoverable``: seconds that its headroom would save, all of its time where that is unknown; NaN without a time.
    ``matters`` where it takes more than next to none of the time of a GPU: only then its dots decide how far the axes reach.
    """

    label: str
    share: float
    mark: str = ""
    recoverable: float = math.nan
    matters: bool = True

    @property
    def marked(self) -> str:
        """The name with its mark."""
        return f"{self.label} {self.mark}".rstrip()


@dataclass(frozen=True)
class RooflineChart:
    """Everything a picture shows; ``total`` counts the kernels that have points, drawn or not.

    ``fills`` says by precision how symbols are filled; ``seconds`` is the time of all rows.
    """

    panels: tuple[Panel, ...]
    kernels: tuple[ChartKernel, ...]
    total: int
    panels_left_out: int
    levels: tuple[str, ...]
    level_labels: dict[str, str]
    several_origins: bool
    empirical: str = "measured"
    fills: Mapping[str, str] = field(default_factory=dict)
    seconds: float = math.nan

    def share_of(self, one: Series) -> float:
        """Share of the time of all rows that a dot stands for; NaN where unknown."""
        return one.seconds / self.seconds if self.seconds > 0 else math.nan

    def precisions(self) -> list[str]:
        """Those that are told apart by how their symbols are filled: of panels that have several."""
        several = [panel for panel in self.panels if len(panel.precisions) > 1]
        return [one for one in self.fills if any(one in panel.precisions for panel in several)]


def empirical_name(frames: Frames) -> str:
    """What the roofs that are not theoretical are called: measured, or what others published, or both where GPUs differ."""
    found = {source == PUBLISHED for origin, source in rows(frames, "roofs", "origin", "source") if origin == "measured"}
    return " or ".join(name for name, known in (("measured", False), ("published", True)) if known in found) or "measured"


def chart(frames: Frames, limit: int = MAX_KERNELS, marks: Mapping[str, str] = MappingProxyType({})) -> RooflineChart:
    """The chart of a Roofline: its ``limit`` largest kernels by time, all their precisions and levels.

    Panels whose kernels take next to no time are left out where there are others.

    ``marks`` by label of a kernel go behind its name.
    """
    labels = kernel_labels(frames)
    series = series_of(frames, labels)
    kernels, total = largest(frames, "kernels", labels, {one.series.kernel for one in series}, limit)
    saved = _recoverable(frames, labels)
    longest, brief = _seconds_of_devices(frames), _brief(frames, labels)
    kernels = tuple(
        replace(
            kernel,
            mark=marks.get(kernel.label, ""),
            recoverable=saved.get(kernel.label, math.nan),
            matters=any((device, kernel.label) not in brief for device in longest),
        )
        for kernel in kernels
    )
    drawn = {kernel.label for kernel in kernels}
    groups: dict[tuple[str, str], list[Placed]] = {}
    for one in series:
        if one.series.kernel in drawn:
            groups.setdefault((one.device, one.group), []).append(one)
    order = sorted(groups, key=lambda key: (-longest.get(key[0], 0.0), key[0], key[1] != "core", *precision_order(key[1])))
    several = len({device for device, _ in groups}) > 1
    roofs = roof_rows(frames)
    notable = [key for key in order if any((key[0], one.series.kernel) not in brief for one in groups[key])] or order
    panels = [_panel(roofs.get(device, []), device, group, groups[device, group], several) for device, group in notable]
    kept = tuple(panels[:MAX_PANELS]) or _empty_panels(frames)
    kernels = tuple(kernel for kernel in kernels if any(kernel.label in panel.kernels for panel in kept))
    present = {level for panel in kept for one in panel.series for level, _ in one.dots}
    present |= {roof.level for panel in kept for roof in panel.roofs if roof.level}
    level_labels = {level: clean(label) for level, label in rows(frames, "roofs", "level", "label") if level}
    origins = {origin for panel in kept for roof in panel.roofs for origin in _origins(roof)}
    left_out = max(len(order) - len(kept), 0)
    shown = tuple(level_order(present))
    several_origins, fills, seconds = len(origins) > 1, _fills(groups), sum(longest.values())
    origin = empirical_name(frames)
    return RooflineChart(kept, kernels, total, left_out, shown, level_labels, several_origins, origin, fills, seconds)


def without_last(data: RooflineChart) -> RooflineChart:
    """The chart without its last panel and the kernels that are drawn nowhere else."""
    panels = data.panels[:-1]
    kernels = tuple(kernel for kernel in data.kernels if any(kernel.label in panel.kernels for panel in panels))
    return replace(data, panels=panels, kernels=kernels, panels_left_out=data.panels_left_out + 1)


def of_largest(data: RooflineChart, count: int) -> RooflineChart:
    """The chart of no more than its ``count`` largest kernels, in the panels that those have dots in."""
    kernels = data.kernels[:count]
    names = {kernel.label for kernel in kernels}
    panels = [replace(panel, series=tuple(one for one in panel.series if one.kernel in names)) for panel in data.panels]
    return replace(data, kernels=kernels, panels=tuple(panel for panel in panels if panel.series))


def _fills(groups: Mapping[tuple[str, str], Sequence[Placed]]) -> dict[str, str]:
    """How the symbols of each precision are filled: the widest of a group wholly, the next not at all, others by halves."""
    found: dict[str, str] = {}
    for group in dict.fromkeys(group for _, group in groups):
        present = {one.series.precision for (_, name), members in groups.items() if name == group for one in members}
        for index, precision in enumerate(sorted(present, key=precision_order)):
            found.setdefault(precision, FILLS[index % len(FILLS)])
    return found


def _seconds_of_devices(frames: Frames) -> dict[str, float]:
    found = defaultdict[str, float](float)
    for device, seconds in rows(frames, "kernels", "device", "seconds"):
        found[device] += seconds if math.isfinite(seconds) else 0.0
    return found


def _brief(frames: Frames, labels: Mapping[tuple[str, str], str]) -> set[tuple[str, str]]:
    """(device, kernel) of kernels that take next to none of the time of a GPU, or are not run on it."""
    found = defaultdict[tuple[str, str], float](float)
    for device, report, kernel, seconds in rows(frames, "kernels", "device", "report", "kernel", "seconds"):
        found[device, labels[report, kernel]] += seconds  # unknown where one is
    longest = _seconds_of_devices(frames)
    every = {(device, label) for device in longest for _, label in found}
    return {key for key in every if found.get(key, 0.0) < _MATTERS * longest[key[0]]}


def _recoverable(frames: Frames, labels: Mapping[tuple[str, str], str]) -> dict[str, float]:
    """Seconds that the headroom of each kernel would save: where none is known, its whole time."""
    found: dict[str, float] = {}
    saved = optional(frames, "kernels", "recoverable", math.nan)
    for (report, kernel, seconds), part in zip(rows(frames, "kernels", "report", "kernel", "seconds"), saved, strict=True):
        if math.isfinite(seconds):
            label = labels[report, kernel]
            found[label] = found.get(label, 0.0) + (part if math.isfinite(part) else seconds)
    return found


def _origins(roof: ChartRoof) -> list[str]:
    return [name for name in ("measured", "theoretical") if not math.isnan(getattr(roof, name))]


def kernel_labels(frames: Frames) -> dict[tuple[str, str], str]:
    """(report, kernel) -> label: the short name, with the report where several reports have that kernel outside of a sweep."""
    pairs = {row for name in ("kernels", "points") for row in rows(frames, name, "report", "kernel", "step")}
    holders = Counter(kernel for kernel, _ in {(kernel, report) for report, kernel, step in pairs if step < 0})
    swept = {kernel for _, kernel, step in pairs if step >= 0}
    return {
        (report, kernel): clean(kernel)
        if holders[kernel] <= 1 or kernel in swept
        else f"{clean(kernel)} [{clean(PurePath(report).stem)}]"
        for report, kernel, _ in pairs
    }


def largest(
    frames: Frames, name: str, labels: dict[tuple[str, str], str], drawable: set[str], limit: int
) -> tuple[tuple[ChartKernel, ...], int]:
    """The kernels that can be drawn, the longest first by the frame ``name``, and how many there are."""
    seconds, share = defaultdict[str, float](float), defaultdict[str, float](float)
    for report, kernel, time, part in rows(frames, name, "report", "kernel", "seconds", "time_share"):
        label = labels[report, kernel]
        seconds[label] += time if math.isfinite(time) else 0.0
        share[label] += part if math.isfinite(part) else 0.0
    order = sorted(drawable, key=lambda label: (-seconds[label], label))
    return tuple(ChartKernel(label, share[label] or math.nan) for label in order[:limit]), len(order)


def _panel(roofs: Sequence[RoofRow], device: str, group: str, members: Sequence[Placed], several: bool) -> Panel:
    unit, series = members[0].unit, tuple(one.series for one in members)
    precisions = {one.precision for one in series}
    levels = {level for one in series for level, _ in one.dots}
    title = _group_title(group, precisions)
    title = f"{title}, {clean(device)}" if several else title
    limited = {one.precision for one in series if not one.side} or precisions
    limited = limited - {MIXED} or limited
    wanted = roofs_of(roofs, limited, unit)
    if group == "core" and len(precisions) > 1:
        # Of what is by the way the roofs that don't stretch the chart.
        top = max((roof.value for roof in wanted if roof.kind == "compute"), default=0.0)
        aside = [roof for roof in roofs_of(roofs, precisions - {MIXED}, unit) if roof.kind == "compute" and roof not in wanted]
        wanted += [roof for roof in tops(aside, ()) if roof.value <= (1 + WIDE) * top]
        title = _group_title(group, limited | {roof.precision for roof in wanted if roof.precision in precisions})
        title = f"{title}, {clean(device)}" if several else title
    if group == "core" and len(limited) > 1:  # no FMA, half rates: over several precisions they would be too many lines
        wanted = tops(wanted, {one.binds for one in series})
    # A link to the host is a decade or more slower than the rest: without dots there it would only squeeze the chart.
    return Panel(title, unit, series, tuple(roof for roof in wanted if roof.level in levels or not on_request(roof.level)))


def _group_title(group: str, precisions: set[str]) -> str:
    names = [precision_label(one) for one in sorted(precisions, key=precision_order)]
    if len(names) == 1 or group == "core":
        return conjoined(names)
    return {"tensor": "Tensor", EXECUTED: precision_label(EXECUTED)}.get(
        group, "Tensor, integer" if group.startswith("tensor") else group.upper()
    )


def _empty_panels(frames: Frames) -> tuple[Panel, ...]:
    """For a Roofline without points: the roofs of its first GPU that count FLOP."""
    unit = DEFAULT_UNIT.get(view_of(frames), "flop")
    wanted = roofs_of(next(iter(roof_rows(frames).values()), []), {"mixed"}, unit)
    return (Panel("", unit, (), tuple(roof for roof in wanted if not on_request(roof.level))),)
