"""The roofline as tables: for a terminal of any width, plain or in colour, and as Markdown with GitHub tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby

from ncu_roofline.analyses.hierarchical import captions
from ncu_roofline.analyses.hierarchical.chart import ZERO
from ncu_roofline.analyses.hierarchical.summary import (
    RooflineSummary,
    Row,
    intensity_text,
    intensity_unit,
    label_of,
    performance_text,
    share_text,
    summary,
    time_text,
)
from ncu_roofline.analyses.hierarchical.usage import (
    Usage,
    answers,
    busiest_text,
    level_text,
    levels_of,
    occupancy_text,
    percent,
    reasons,
    unit_label,
    waves_text,
)
from ncu_roofline.rendering.frames import Frames
from ncu_roofline.rendering.table import (
    DIM,
    GREEN,
    RED,
    YELLOW,
    Table,
    TextColumn,
    blocks_text,
    bullets,
    escape,
    markdown,
    markdown_document,
    terminal,
    wrapped,
)
from ncu_roofline.units import UNITS

_MOST, _REASONS, _STEP_MOST = 20, 5, 20
_NARROW, _WIDTH_MIN = 90, 60
_STEPS = ((24, 8), (14, 1))  # the cheap columns go for readable names of kernels, the others only for the shortest ones
_NEEDED = 3  # spare this low: performance, share of the roof, intensity at the outermost level


def _launch(number: int) -> str:
    return str(number) if number >= 0 else ""


def _columns(data: RooflineSummary, width: int = 0) -> tuple[list[TextColumn], list[TextColumn]]:
    """What is said of a kernel, its name first, and of its work in one precision, that first."""

    def cells(text: Callable[[Row], str]) -> list[str]:
        return [text(row) for row in data.rows]

    kernels = [(row.kernel, row.step, row.step_label, row.precision) for row in data.rows]
    columns = [TextColumn("kernel", cells(lambda row: row.kernel), left=True)]
    if any(row.step_label for row in data.rows):  # of a sweep, or of a file that labels its rows
        columns.append(TextColumn("step", cells(lambda row: row.step_label), left=True, most=_STEP_MOST))
    if len(set(kernels)) < len(kernels):
        columns.append(TextColumn("launch", cells(lambda row: _launch(row.launch))))
    if any(row.launches > 1 for row in data.rows):
        columns.append(TextColumn("launches", cells(lambda row: str(row.launches)), spare=11))
    columns.append(TextColumn("time", cells(lambda row: time_text(row.seconds))))
    columns.append(TextColumn("share", cells(lambda row: percent(row.share)), own=True))
    if data.judged:
        columns.append(TextColumn("verdict", cells(lambda row: row.verdict), left=True, most=max(17, width // 5)))
        columns.append(TextColumn("gain", cells(lambda row: row.gain), spare=6, own=True))
    spare = 0 if len({row.precision for row in data.rows}) > 1 else 8  # where all work is of one kind, that may go
    work = [TextColumn(captions.kind_of_work(row.unit for row in data.rows), cells(label_of), left=True, spare=spare)]
    work += [
        TextColumn(
            label,
            [intensity_text(row.intensity.get(level, math.nan)) for row in data.rows],
            spare=3 if level == data.levels[-1] else 7,
            group=_intensities(intensity_unit(data)),
        )
        for level, label in zip(data.levels, data.level_labels, strict=True)
    ]
    work.append(TextColumn("performance", cells(performance_text), spare=2))
    of_roof, colours = cells(lambda row: percent(row.fraction)), cells(_colour)
    work.append(TextColumn("of roof", of_roof, spare=1, colours=colours, own=True))
    if any(row.fma_share >= 0 for row in data.rows):
        work.append(TextColumn("FMA", cells(lambda row: share_text(row.fma_share)), spare=12, own=True))
        work.append(TextColumn("of mix", cells(lambda row: share_text(row.mix_fraction)), spare=13, own=True))
    if any(row.lanes >= 0 for row in data.rows):
        work.append(TextColumn("lanes", cells(lambda row: share_text(row.lanes)), spare=9, own=True))
    if not data.judged:
        work.append(TextColumn("bound by", cells(lambda row: row.binds), left=True, most=max(10, width // 7)))
    return columns, work


def _intensities(unit: str) -> tuple[str, ...]:
    """What stands over intensities, from complete to terse: a unit has to stay."""
    return f"intensity [{unit}]", unit, *(["work/B"] if " or " in unit else [])


def _colour(row: Row) -> str:
    if not row.fraction >= 0:
        return DIM
    return GREEN if row.fraction >= 0.8 else YELLOW if row.fraction >= 0.4 else RED


def _absent_columns(absent: Sequence[Usage], width: int, levels: Sequence[TextColumn]) -> list[TextColumn]:
    """Of kernels without points, how full they kept the GPU; columns that nobody fills are left out, but for time and share."""
    repeated = len({(kernel.kernel, kernel.step) for kernel in absent}) < len(absent)
    several = any(kernel.launches > 1 for kernel in absent)
    columns = [
        TextColumn("kernel", [kernel.kernel for kernel in absent], left=True),
        TextColumn("step", [kernel.step_label[:_STEP_MOST] for kernel in absent], left=True),
        TextColumn("launch", [_launch(kernel.launch) if repeated else "" for kernel in absent]),
        TextColumn("launches", [str(kernel.launches) if several else "" for kernel in absent], spare=9),
        TextColumn("time", [time_text(kernel.seconds) for kernel in absent]),
        TextColumn("share", [percent(kernel.share) for kernel in absent], own=True),
        TextColumn("verdict", [kernel.verdict for kernel in absent], left=True, most=max(19, width // 4)),
        TextColumn("gain", [kernel.gain for kernel in absent], spare=6, own=True),
        TextColumn("busiest", [busiest_text(kernel) for kernel in absent], left=True, spare=1),
        *levels,
        TextColumn("occupancy", [occupancy_text(kernel) for kernel in absent], spare=10),
        TextColumn("waves", [waves_text(kernel) for kernel in absent], spare=11),
    ]
    return [column for column in columns if any(column.cells) or column.header in ("kernel", "time", "share")]


def render_text(roofline: Frames, *, width: int = 120, ascii_only: bool = False) -> bytes:
    """The table of a Roofline as UTF-8 text without colours."""
    return (text_table(roofline, width=width, ascii_only=ascii_only) + "\n").encode()


def text_table(roofline: Frames, *, width: int = 100, color: bool = False, ascii_only: bool = False) -> str:
    """The table of a Roofline for a terminal of ``width`` characters (60 at least); what does not fit is cut or left out."""
    data = summary(roofline)
    width = max(width, _WIDTH_MIN)
    absent = absent_lines(roofline, data.absent, width)
    blocks = [wrapped(data.heading, width)]
    if data.rows:
        blocks += [_table(data, width, color), absent]
    elif answers(roofline, data.absent):
        blocks += [absent, wrapped(captions.how_to_add(roofline), width)]
    else:
        blocks += [wrapped(captions.explanation(roofline).splitlines(), width), absent]
    blocks += [
        _reasons(data, width),
        _roofs(data, width, color),
        wrapped(data.notes, width),
        wrapped([f"- {note}" for note in captions.notes_of(roofline, 8)], width, "  "),
    ]
    return blocks_text(blocks, ascii_only)


def _parts(data: RooflineSummary, width: int, repeated: Sequence[bool]) -> list[Table]:
    """One line for a kernel and precision where that has room for what matters, else one for the kernel and one for each."""
    about, work = _columns(data, width)
    about = [
        replace(one, cells=["" if again else text for again, text in zip(repeated, one.cells, strict=True)]) for one in about
    ]
    for columns in (work, _short(data, work)) if width >= _NARROW else (_short(data, work),):
        flat = Table((*about, *columns), _STEPS).fitted(width)
        if all(any(kept.header == column.header for kept in flat.columns) for column in columns if 0 < column.spare <= _NEEDED):
            return [flat]
    precision, *others = work
    indented = replace(precision, header=f"  {precision.header}", cells=[f"  {text}" for text in precision.cells], spare=0)
    return [Table(tuple(columns), _STEPS).fitted(width) for columns in (about, (indented, *others))]


def _short(data: RooflineSummary, work: Sequence[TextColumn]) -> list[TextColumn]:
    """The columns of work with the unit of performance in the header."""
    units = [UNITS[f"{row.unit}/s"].symbol for row in data.rows]
    header = units[0] if len(set(units)) == 1 else "work/s"
    return [
        replace(one, header=header, cells=[text.removesuffix(unit) for text, unit in zip(one.cells, units, strict=True)])
        if one.header == "performance"
        else one
        for one in work
    ]


def _table(data: RooflineSummary, width: int, color: bool) -> list[str]:
    """Header, rule and rows; the time and name of a kernel stand on the first of its rows only."""
    repeated = [False, *(_same(a, b) for a, b in zip(data.rows, data.rows[1:], strict=False))]
    parts = _parts(data, width, repeated)
    lines = [line for part in parts for line in part.head(color)]
    lines.append("-" * min(max(part.total for part in parts), width))
    for again, *row in zip(repeated, *(part.body(color) for part in parts), strict=True):
        lines += [line if color else line[:width] for line in row[again and len(parts) > 1 :]]
    return lines


def _same(before: Row, row: Row) -> bool:
    return before.usage is row.usage and _whose(before) == _whose(row)


def _whose(row: Row) -> tuple[object, ...]:
    """Of which dot in another precision a row may be; a time that nobody knows is as good as another."""
    return row.kernel, row.step, row.step_label, row.launch, None if math.isnan(row.seconds) else row.seconds


def absent_lines(frames: Frames, absent: Sequence[Usage], width: int) -> list[str]:
    """For each reason why kernels have no dots a sentence, and the longest of its kernels as a table."""
    lines: list[str] = []
    for status in dict.fromkeys(kernel.status for kernel in absent):
        members = [kernel for kernel in absent if kernel.status == status]
        lines += [""] if lines else []
        lines += wrapped(f"{_why(frames, status, members)}:", width)
        lines += terminal(_absent_table(members[:_MOST], width), width)
        if len(members) > _MOST:
            lines.append(f"and {len(members) - _MOST} more")
    return lines


def _why(frames: Frames, status: str, members: Sequence[Usage]) -> str:
    """How many rows have no dots, why, their share of the time and what their report lacks."""
    what = captions.plural(len(members), "launch" if members[0].launch >= 0 else "kernel")
    share = captions.of_the_time(member.share for member in members)
    lacks = captions.lacking(member.missing for member in members) if status not in ZERO else []
    return f"{what} {captions.why(frames, status)}{share}{'; lacks ' if lacks else ''}{', '.join(lacks)}"


def level_cell(one: Usage, level: str) -> str:
    """GB/s and percent of the peak, as far as known: ``512 43.1 %``."""
    rate, share = one.bandwidths.get(level, math.nan) / 1e9, one.fractions.get(level, math.nan)
    parts = [f"{rate:.0f}" if rate >= 1000 else f"{rate:.3g}"] if math.isfinite(rate) else []
    return " ".join([*parts, percent(share)] if math.isfinite(share) else parts)


def _absent_table(absent: Sequence[Usage], width: int) -> Table:
    """Time, share and verdict stay whatever the width."""
    levels = levels_of(absent)
    columns = [
        TextColumn(
            f"{unit_label(level)} GB/s, %", [level_cell(kernel, level) for kernel in absent], spare=2 + len(levels) - place
        )
        for place, level in enumerate(levels)
    ]
    return Table(tuple(_absent_columns(absent, width, columns)))


def _reasons(data: RooflineSummary, width: int) -> list[str]:
    """Why the longest kernels are as fast as they are, and how many more there are."""
    said = reasons(data.usages)
    shown = said if len(said) == _REASONS + 1 else said[:_REASONS]  # one more costs no more than to say so
    lines = wrapped([f"{name}: {why}" for name, why in shown], width, "  ")
    return [*lines, f"and {len(said) - len(shown)} more verdicts"] if len(shown) < len(said) else lines


def _roofs(data: RooflineSummary, width: int, color: bool) -> list[str]:
    """The roofs of each GPU: measured beside theoretical where both are known."""
    known = [name for name in ("measured", "theoretical") if any(roof.text(name) for roof in data.roofs)]
    said = {"measured": data.empirical}
    values = (TextColumn(f"{said.get(name, name):>14}", [roof.text(name) for roof in data.roofs]) for name in known)
    table = Table((TextColumn("roof", [roof.label for roof in data.roofs], left=True), *values)).fitted(width)
    body, lines = iter(table.body()), []
    several = len({roof.device for roof in data.roofs}) > 1
    for device, roofs in groupby(data.roofs, key=lambda roof: roof.device):
        lines += wrapped(device, width) if several else []
        lines += [*table.head(color), *(next(body) for _ in roofs)]
    return lines


def render_md(roofline: Frames, *, title: str = "") -> bytes:
    """Tables of a Roofline: kernels, roofs, kernels without points, notes."""
    data = summary(roofline)
    blocks = [f"# {escape(title or captions.name_of(roofline))}", escape(data.heading)]
    if data.rows:
        blocks.append(_kernels_md(data))
    elif answers(roofline, data.absent):
        blocks += [escape(captions.how_to_add(roofline))]
    else:
        blocks += [escape(line) for line in captions.explanation(roofline).splitlines()]
    if data.absent:
        blocks += ["## Kernels without points", _absent_md(roofline, data.absent)]
    if said := reasons(data.usages):
        blocks += ["## Verdicts", bullets(f"{name}: {why}" for name, why in said)]
    if data.roofs:
        blocks += ["## Roofs", _roofs_md(data)]
    if notes := [*data.notes, *captions.notes_of(roofline, 8)]:
        blocks += ["## Notes", bullets(notes)]
    return markdown_document(blocks)


def _markdown(columns: Sequence[TextColumn], first: Sequence[str], left: Sequence[str]) -> str:
    """A table with some columns first, and some to the left."""
    ordered = sorted(columns, key=lambda one: first.index(one.header) if one.header in first else len(first))
    return markdown(Table(tuple(replace(one, left=one.header in left) for one in ordered)))


def _kernels_md(data: RooflineSummary) -> str:
    """One row per kernel and precision; what is said of a kernel stands on each of its rows."""
    about, work = _columns(data)
    left = ["kernel", "step", work[0].header, "launch", "verdict", "bound by"]
    columns = [
        replace(one, header=f"{escape(one.header)} [{intensity_unit(data)}]") if one.group
        else replace(one, header="of mix roof") if one.header == "of mix"
        else one
        for one in (*about, *work)
    ]  # fmt: skip
    return _markdown(columns, [*left[:5], "gain", "bound by"], left)


def _roofs_md(data: RooflineSummary) -> str:
    columns = [
        TextColumn("GPU", [roof.device for roof in data.roofs], left=True),
        TextColumn("roof", [roof.label for roof in data.roofs], left=True),
        TextColumn(data.empirical, [roof.text("measured") for roof in data.roofs], own=True),
        TextColumn("theoretical", [roof.text("theoretical") for roof in data.roofs], own=True),
    ]
    return markdown(Table(tuple(columns)))


def _absent_md(roofline: Frames, absent: Sequence[Usage]) -> str:
    """Kernels without points: why, and what of the GPU they kept busy."""
    levels = [
        TextColumn(unit_label(level), [level_text(kernel, level) for kernel in absent], own=True) for level in levels_of(absent)
    ]
    _, *columns = (one for one in _absent_columns(absent, 0, levels) if one.header != "step")
    columns += [
        TextColumn("kernel", [kernel.name for kernel in absent]),
        TextColumn("why", [captions.why(roofline, kernel.status) for kernel in absent]),
        TextColumn("missing", ["" if kernel.status in ZERO else kernel.missing for kernel in absent]),
    ]
    left = ("kernel", "launch", "why", "verdict")
    return _markdown([column for column in columns if any(column.cells)], (*left, "gain"), left)
