"""The columns of the table of kernels: the answer on each kernel first, then its work in each precision."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

from ncu_roofline.analyses.hierarchical import captions
from ncu_roofline.analyses.hierarchical.summary import (
    RooflineSummary,
    Row,
    intensity_text,
    intensity_unit,
    label_of,
    performance_text,
    share_text,
    time_text,
)
from ncu_roofline.analyses.hierarchical.usage import (
    Usage,
    busiest_text,
    levels_of,
    limit_text,
    occupancy_text,
    percent,
    times_text,
    unit_label,
    waves_text,
)
from ncu_roofline.base.units import UNITS
from ncu_roofline.chips.verdict import TOO_SHORT
from ncu_roofline.rendering.kernel_names import cut_apart, numbered, told_apart
from ncu_roofline.rendering.table import DIM, GREEN, RED, YELLOW, Table, TextColumn

STEPS = ((24, 7), (14, 1))  # the cheap columns go for readable names of kernels, the others only for the shortest ones
_LEAST = 14  # characters of a kernel's name
_WIDE, _READABLE = 100, ((24, 1),)  # from this width on names of kernels are worth more than a second line of numbers
_STEP_MOST = 20
_NARROW = 80
_PROFILED = "profiled launches", "profiled"
_VERDICT_SHORT, _VERDICT = 20, 28  # characters of a verdict, the first on a narrow terminal: "tensor work unknown" is whole


def kernel_columns(data: RooflineSummary, width: int = 0) -> list[TextColumn]:
    """What is said of a kernel whatever its work: its name first, then time, verdict and headroom."""

    def cells(text: Callable[[Row], str]) -> list[str]:
        return [text(row) for row in data.rows]

    def said(text: Callable[[Usage], str]) -> list[str]:
        return [text(row.usage) if row.usage else "" for row in data.rows]

    names = [(row.kernel, row.step, row.step_label, row.precision) for row in data.rows]
    columns = [TextColumn("kernel", cells(lambda row: row.kernel), left=True)]
    if any(row.step_label for row in data.rows):  # of a sweep, or of a file that labels its rows
        columns.append(TextColumn("step", cells(lambda row: row.step_label), left=True, most=_STEP_MOST))
    if len(set(names)) < len(names):
        columns.append(TextColumn("launch", cells(lambda row: str(row.launch) if row.launch >= 0 else "")))
    if any(_launches(row) > 1 for row in data.rows):
        header = "count" if 0 < width < _NARROW else "launches"
        columns.append(TextColumn(header, cells(lambda row: str(_launches(row))), spare=3))
    columns.append(TextColumn("time", cells(lambda row: time_text(_seconds(row))), group=_PROFILED))
    columns.append(TextColumn("share", cells(lambda row: percent(row.share)), own=True, group=_PROFILED))
    if data.judged:
        most = _VERDICT_SHORT if 0 < width < _NARROW else _VERDICT
        columns.append(TextColumn("verdict", cells(lambda row: row.verdict), left=True, most=most))
        columns.append(TextColumn("headroom", said(_headroom), own=True))
        more = (
            TextColumn("to compute", said(lambda one: times_text(one.headroom_compute)), spare=4, own=True),
            TextColumn("could save", said(_saves), spare=15, own=True),
            TextColumn("at its limit", said(limit_text), left=True, spare=14),
        )
        columns += [column for column in more if any(column.cells)]
    return columns


def _seconds(row: Row) -> float:
    """Of the kernel: a precision may be known of some of its launches only."""
    return row.usage.seconds if row.usage else row.seconds


def _launches(row: Row) -> int:
    """Of the kernel, likewise."""
    return row.usage.launches if row.usage else row.launches


def _headroom(one: Usage) -> str:
    return one.headroom_text or ("unknown" if one.verdict not in ("", TOO_SHORT) and one.seconds > 0 else "")


def _saves(one: Usage) -> str:
    return time_text(one.recoverable) if one.seconds > 0 and math.isfinite(one.recoverable) else ""


def work_columns(data: RooflineSummary) -> list[TextColumn]:
    """The work of a kernel in one precision, that first; where no kernel has dots, how full it kept the GPU.

    Intensities and the share of the roof are what the table is for: they never go.
    """
    if not data.dots:
        return _use_columns([row.usage for row in data.rows if row.usage])

    def cells(text: Callable[[Row], str]) -> list[str]:
        return [text(row) for row in data.rows]

    units, kinds = [row.unit for row in data.rows if row.unit], {row.precision for row in data.rows if row.precision}
    spare = 0 if len(kinds) > 1 else 8  # where all work is of one kind, that may go
    work = [TextColumn(captions.kind_of_work(units), cells(label_of), left=True, spare=spare)]
    work += [
        TextColumn(
            label,
            [intensity_text(row.intensity.get(level, math.nan)) for row in data.rows],
            group=_intensities(intensity_unit(data)),
        )
        for level, label in zip(data.levels, data.level_labels, strict=True)
    ]
    work.append(TextColumn("performance", cells(performance_text), spare=2))
    of_roof, colours = cells(lambda row: percent(row.fraction) if row.precision else ""), cells(_colour)
    work.append(TextColumn("of roof", of_roof, colours=colours, own=True))
    if any(row.fma_share >= 0 for row in data.rows):
        work.append(TextColumn("FMA", cells(lambda row: share_text(row.fma_share)), spare=12, own=True))
        work.append(TextColumn("of mix", cells(lambda row: share_text(row.mix_fraction)), spare=13, own=True))
    if any(row.lanes >= 0 for row in data.rows):
        work.append(TextColumn("lanes", cells(lambda row: share_text(row.lanes)), spare=10, own=True))
    if not data.judged:
        work.append(TextColumn("bound by", cells(lambda row: row.binds), left=True, most=20))
    return work


def _intensities(unit: str) -> tuple[str, ...]:
    """What stands over intensities, from complete to terse: a unit has to stay."""
    return f"intensity [{unit}]", unit, *(["work/B"] if " or " in unit else [])


def _colour(row: Row) -> str:
    if not row.fraction >= 0:
        return DIM
    return GREEN if row.fraction >= 0.8 else YELLOW if row.fraction >= 0.4 else RED


def _use_columns(found: Sequence[Usage]) -> list[TextColumn]:
    """How full each unit was; columns that nobody fills are left out."""
    columns = [
        TextColumn("busiest", [busiest_text(one) for one in found], left=True, spare=6),
        *(
            TextColumn(f"{unit_label(level)} GB/s, %", [_level_cell(one, level) for one in found], spare=7)
            for level in levels_of(found)
        ),
        TextColumn("occupancy", [occupancy_text(one) for one in found], spare=10),
        TextColumn("waves", [waves_text(one) for one in found], spare=11),
    ]
    return [column for column in columns if any(column.cells)]


def _level_cell(one: Usage, level: str) -> str:
    """GB/s and percent of the peak, as far as known: ``512 43.1 %``."""
    rate, share = one.bandwidths.get(level, math.nan) / 1e9, one.fractions.get(level, math.nan)
    parts = [f"{rate:.0f}" if rate >= 1000 else f"{rate:.3g}"] if math.isfinite(rate) else []
    return " ".join([*parts, percent(share)] if math.isfinite(share) else parts)


def fitted(data: RooflineSummary, width: int) -> list[Table]:
    """One line for a kernel and precision where that has room for as much as one for the kernel and one for each.

    What is said of a kernel stands on its first line only, which holds the sum over pipes where there is one.
    """
    again = repeated(data.rows)
    about = [
        replace(one, cells=["" if hidden else text for hidden, text in zip(again, one.cells, strict=True)])
        for one in kernel_columns(data, width)
    ]
    work = work_columns(data)
    if not data.dots:
        return [told_apart(Table((*about, *work), STEPS).fitted(width))]
    parts = _parts(data.rows)
    work[0] = replace(work[0], cells=[f"  {text}" if part else text for part, text in zip(parts, work[0].cells, strict=True)])
    precision, *others = work
    indented = replace(precision, header=f"  {precision.header}", cells=[f"  {text}" for text in precision.cells], spare=0)
    kernels, works = (Table(tuple(columns), STEPS).fitted(width) for columns in (about, (indented, *others)))
    for columns in (work, _short(data, work)) if width >= _NARROW else (_short(data, work),):
        flat = Table((*about, *columns), _READABLE if width >= _WIDE else STEPS).fitted(width)
        whole = flat.total <= width and flat.widths[0] >= min(_LEAST, about[0].wide)
        if whole and len(flat.columns) >= len(kernels.columns) + len(works.columns):
            return [told_apart(flat)]
    return [told_apart(kernels), works]


def names_in_full(data: RooflineSummary, tables: Sequence[Table]) -> list[str]:
    """A line for each name that a table numbers as it could not tell it from others."""
    return numbered(cut_apart((row.kernel for row in data.rows), tables[0].widths[0]))


def repeated(rows: Sequence[Row]) -> list[bool]:
    """Whether each row is of the same kernel as the one before."""
    return [False, *(a.usage is b.usage and _whose(a) == _whose(b) for a, b in pairwise(rows))][: len(rows)]


def _parts(rows: Sequence[Row]) -> list[bool]:
    """Whether each row is a part of a sum over pipes above it."""
    found, inside = [], False
    for row, same in zip(rows, repeated(rows), strict=True):
        found.append(inside and same)
        inside = (inside and same) or row.precision == "mixed"
    return found


def _whose(row: Row) -> tuple[object, ...]:
    return row.kernel, row.step, row.step_label, row.launch


def _short(data: RooflineSummary, work: Sequence[TextColumn]) -> list[TextColumn]:
    """The columns of work with the unit of performance in the header."""
    units = [UNITS[f"{row.unit}/s"].symbol if row.unit else "" for row in data.rows]
    symbols = set(filter(None, units))
    header = next(iter(symbols)) if len(symbols) == 1 else "work/s"
    return [
        replace(one, header=header, cells=[text.removesuffix(unit) for text, unit in zip(one.cells, units, strict=True)])
        if one.header == "performance"
        else one
        for one in work
    ]
