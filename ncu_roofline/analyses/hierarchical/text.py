"""The roofline as a table for a terminal of any width, plain or in colour."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from ncu_roofline.analyses.hierarchical import captions
from ncu_roofline.analyses.hierarchical.chart import ZERO
from ncu_roofline.analyses.hierarchical.summary import (
    Row,
    Summary,
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
    levels_of,
    occupancy_text,
    percent,
    reasons,
    unit_label,
    waves_text,
)
from ncu_roofline.rendering.frames import Frames
from ncu_roofline.rendering.table import Cells, columns_wide, table_lines
from ncu_roofline.texts import shorten
from ncu_roofline.units import UNITS, format_value

_MOST = 20


def absent_lines(frames: Frames, absent: Sequence[Usage], width: int) -> list[str]:
    """For each reason why kernels have no dots a sentence, and the longest of its kernels as a table."""
    lines: list[str] = []
    for status in dict.fromkeys(one.status for one in absent):
        members = [one for one in absent if one.status == status]
        lines += [""] if lines else []
        lines += textwrap.wrap(f"{_why(frames, status, members)}:", width, break_on_hyphens=False)
        lines += table_lines(_cells(members[:_MOST], width), width)
        if len(members) > _MOST:
            lines.append(f"and {len(members) - _MOST} more")
    return lines


def _why(frames: Frames, status: str, members: Sequence[Usage]) -> str:
    """How many rows have no dots, why, their share of the time and what their report lacks."""
    what = captions.plural(len(members), "launch" if members[0].launch >= 0 else "kernel")
    share = captions.of_the_time(one.share for one in members)
    lacks = captions.lacking(one.missing for one in members) if status not in ZERO else []
    return f"{what} {captions.why(frames, status)}{share}{'; lacks ' if lacks else ''}{', '.join(lacks)}"


def level_cell(one: Usage, level: str) -> str:
    """GB/s and percent of the peak, as far as known: ``512 43.1 %``."""
    rate, share = one.bandwidths.get(level, math.nan) / 1e9, one.fractions.get(level, math.nan)
    parts = [f"{rate:.0f}" if rate >= 1000 else f"{rate:.3g}"] if math.isfinite(rate) else []
    return " ".join([*parts, percent(share)] if math.isfinite(share) else parts)


def _cells(absent: Sequence[Usage], width: int) -> Cells:
    """Columns that nobody fills are left out; time, share and verdict stay whatever the width."""
    repeated = len({(one.kernel, one.step) for one in absent}) < len(absent)
    verdict = max(19, width // 4)
    columns = [
        ("kernel", 0, [one.kernel for one in absent]),
        ("step", 0, [one.step_label[:20] for one in absent]),
        ("launch", 0, [str(one.launch) if repeated and one.launch >= 0 else "" for one in absent]),
        ("launches", 9, [str(one.launches) if any(other.launches > 1 for other in absent) else "" for one in absent]),
        ("time", 0, [format_value(one.seconds, "second", 3) for one in absent]),
        ("share", 0, [percent(one.share) for one in absent]),
        ("verdict", 0, [shorten(one.verdict, verdict) for one in absent]),
        ("gain", 6, [one.gain for one in absent]),
        ("busiest", 1, [busiest_text(one) for one in absent]),
    ]
    levels = levels_of(absent)
    for place, level in enumerate(levels):
        columns.append((f"{unit_label(level)} GB/s, %", 2 + len(levels) - place, [level_cell(one, level) for one in absent]))
    columns += [
        ("occupancy", 10, [occupancy_text(one) for one in absent]),
        ("waves", 11, [waves_text(one) for one in absent]),
    ]
    filled = tuple(column for column in columns if any(column[2]) or column[0] in ("kernel", "time", "share"))
    return Cells(filled, ("kernel", "step", "verdict", "busiest"))


_GAP = "  "
_KERNEL_GOOD, _KERNEL_MIN, _BOUND_MIN, _VERDICT_MIN = 24, 14, 10, 17
_NARROW, _WIDTH_MIN = 90, 60
_STEP_MOST, _REASONS = 20, 5
_CHEAP = 8  # columns this spare go before names get short
ASCII = str.maketrans({"\N{MIDDLE DOT}": "-", "\N{MICRO SIGN}": "u", "\N{INFINITY}": "inf", "\N{MULTIPLICATION SIGN}": "x"})
_NEEDED = 3  # spare this low: performance, share of the roof, intensity at the outermost level
_ONCE = {"kernel", "step", "launch", "launches", "time", "share", "verdict", "gain"}  # on a kernel's first row only
_BOLD, _DIM, _GREEN, _YELLOW, _RED, _RESET = "\33[1m", "\33[2m", "\33[32m", "\33[33m", "\33[31m", "\33[0m"


@dataclass(frozen=True)
class _Column:
    """A column of the table: header, its group, text of a row, and whether it may go where room is short (lowest first)."""

    header: str
    group: str
    cell: Callable[[Row], str]
    left: bool = False
    spare: int = 0


def render_text(roofline: Frames, *, width: int = 120, ascii_only: bool = False) -> bytes:
    """The table of a Roofline as UTF-8 text without colours."""
    return (text_table(roofline, width=width, ascii_only=ascii_only) + "\n").encode()


def text_table(roofline: Frames, *, width: int = 100, color: bool = False, ascii_only: bool = False) -> str:
    """The table of a Roofline for a terminal of ``width`` characters (60 at least); what does not fit is cut or left out."""
    data = summary(roofline)
    width = max(width, _WIDTH_MIN)
    blocks = [_wrapped(data.heading, width)]
    if data.rows:
        blocks += [_table(data, width, color), absent_lines(roofline, data.absent, width)]
    elif answers(roofline, data.absent):
        blocks += [
            absent_lines(roofline, data.absent, width),
            _wrapped(captions.how_to_add(roofline), width),
        ]
    else:
        blocks.append([line for part in captions.explanation(roofline).splitlines() for line in _wrapped(part, width)])
        blocks.append(absent_lines(roofline, data.absent, width))
    blocks += [
        _reasons(data, width),
        _roofs(data, width, color),
        [line for note in data.notes for line in _wrapped(note, width)],
    ]
    notes = captions.notes_of(roofline, 8)
    blocks.append([line for note in notes for line in _wrapped(f"- {note}", width, "  ")])
    text = "\n\n".join("\n".join(block) for block in blocks if block)
    return text.translate(ASCII).encode("ascii", "replace").decode() if ascii_only else text


def _reasons(data: Summary, width: int) -> list[str]:
    """Why the longest kernels are as fast as they are, and how many more there are."""
    said = reasons(data.usages)
    shown = said if len(said) == _REASONS + 1 else said[:_REASONS]  # one more costs no more than to say so
    lines = [line for name, why in shown for line in _wrapped(f"{name}: {why}", width, "  ")]
    return [*lines, f"and {len(said) - len(shown)} more verdicts"] if len(shown) < len(said) else lines


def _wrapped(text: str, width: int, indent: str = "") -> list[str]:
    return textwrap.wrap(text, width, subsequent_indent=indent, break_on_hyphens=False)


def _columns(data: Summary, short: bool) -> tuple[list[_Column], list[_Column]]:
    """What is said of a kernel, its name first, and of its work in one precision, that first."""
    kernels = [(row.kernel, row.step, row.step_label, row.precision) for row in data.rows]
    columns = [_Column("kernel", "", lambda row: row.kernel, left=True)]
    if any(row.step_label for row in data.rows):  # of a sweep, or of a file that labels its rows
        columns.append(_Column("step", "", lambda row: row.step_label, left=True))
    if len(set(kernels)) < len(kernels):
        columns.append(_Column("launch", "", lambda row: str(row.launch) if row.launch >= 0 else ""))
    if any(row.launches > 1 for row in data.rows):
        columns.append(_Column("launches", "", lambda row: str(row.launches), spare=11))
    columns += [
        _Column("time", "", lambda row: time_text(row.seconds)),
        _Column("share", "", lambda row: percent(row.share)),
        *(_verdicts() if data.judged else []),
    ]
    return columns, [_precision(data), *_intensities(data), *_results(data, short)]


def _precision(data: Summary) -> _Column:
    """The kind of work; where all of it is of one kind, that may go."""
    spare = 0 if len({row.precision for row in data.rows}) > 1 else 8
    return _Column(captions.kind_of_work(row.unit for row in data.rows), "", label_of, left=True, spare=spare)


def _intensities(data: Summary) -> list[_Column]:
    group = f"intensity [{intensity_unit(data)}]"
    outermost = len(data.levels) - 1
    return [
        _Column(label, group, _intensity(level), spare=7 if index < outermost else 3)
        for index, (level, label) in enumerate(zip(data.levels, data.level_labels, strict=True))
    ]


def _verdicts() -> list[_Column]:
    """What limits a kernel, and by what it could at most be faster."""
    return [
        _Column("verdict", "", lambda row: row.verdict, left=True),
        _Column("gain", "", lambda row: row.gain, spare=6),
    ]


def _intensity(level: str) -> Callable[[Row], str]:
    return lambda row: intensity_text(row.intensity.get(level, math.nan))


def _results(data: Summary, short: bool) -> list[_Column]:
    """Performance, share of the roof and what binds; the unit moves to the header where room is ``short``."""
    units = {row.unit for row in data.rows}
    performance = _Column("performance", "", performance_text, spare=2)
    if short:
        header = UNITS[f"{units.pop()}/s"].symbol if len(units) == 1 else "work/s"
        performance = _Column(
            header, "", lambda row: performance_text(row).removesuffix(UNITS[f"{row.unit}/s"].symbol), spare=2
        )
    mix = [
        _Column("FMA", "", lambda row: share_text(row.fma_share), spare=12),
        _Column("of mix", "", lambda row: share_text(row.mix_fraction), spare=13),
    ]
    lanes = [_Column("lanes", "", lambda row: share_text(row.lanes), spare=9)]
    return [
        performance,
        _Column("of roof", "", lambda row: percent(row.fraction), spare=1),
        *(mix if any(row.fma_share >= 0 for row in data.rows) else []),
        *(lanes if any(row.lanes >= 0 for row in data.rows) else []),
        *([] if data.judged else [_Column("bound by", "", lambda row: row.binds, left=True)]),
    ]


@dataclass(frozen=True)
class _Part:
    """Columns that fit, with their widths and the texts of every row."""

    columns: list[_Column]
    widths: list[int]
    cells: dict[str, list[str]]

    @classmethod
    def of(cls, columns: list[_Column], data: Summary, width: int) -> _Part:
        """As many of ``columns`` as fit."""
        cells = {column.header: [column.cell(row) for row in data.rows] for column in columns}
        return cls(*_fit(columns, cells, width), cells)

    def lacks(self, columns: Sequence[_Column]) -> bool:
        """Whether one of ``columns`` had to go that says how fast a kernel is or where it stands."""
        return any(0 < column.spare <= _NEEDED and column not in self.columns for column in columns)

    def row(self, index: int, again: bool, colour: str) -> str:
        texts = ["" if again and column.header in _ONCE else self.cells[column.header][index] for column in self.columns]
        return _line(texts, self.columns, self.widths, colour).rstrip()

    @property
    def headers(self) -> list[str]:
        lines = [
            _group_line(self.columns, self.widths),
            _line([column.header for column in self.columns], self.columns, self.widths),
        ]
        return [line.rstrip() for line in lines if line.strip()]

    @property
    def total(self) -> int:
        return sum(self.widths) + len(_GAP) * (len(self.widths) - 1)


def _parts(data: Summary, width: int) -> list[_Part]:
    """One line for a kernel and precision where that has room for what matters, else one for the kernel and one for each."""
    for short in (False, True) if width >= _NARROW else (True,):
        columns = [column for part in _columns(data, short) for column in part]
        flat = _Part.of(columns, data, width)
        if not flat.lacks(columns):
            return [flat]
    kernel, (precision, *others) = _columns(data, short=False)
    indented = replace(precision, header=f"  {precision.header}", cell=lambda row: f"  {label_of(row)}", spare=0)
    return [_Part.of(kernel, data, width), _Part.of([indented, *others], data, width)]


def _table(data: Summary, width: int, color: bool) -> list[str]:
    """Header, rule and rows; the time and name of a kernel stand on the first of its rows only."""
    parts = _parts(data, width)
    lines = [_paint(line, _BOLD, color) for part in parts for line in part.headers]
    lines.append("-" * min(max(part.total for part in parts), width))
    repeated = [False, *(_same(a, b) for a, b in zip(data.rows, data.rows[1:], strict=False))]
    for index, (row, again) in enumerate(zip(data.rows, repeated, strict=True)):
        for part in parts[again and len(parts) > 1 :]:
            line = part.row(index, again, _colour(row) if color else "")
            lines.append(line if color else line[:width])
    return lines


def _same(before: Row, row: Row) -> bool:
    return before.usage is row.usage and _whose(before) == _whose(row)


def _whose(row: Row) -> tuple[object, ...]:
    """Of which dot in another precision a row may be; a time that nobody knows is as good as another."""
    return row.kernel, row.step, row.step_label, row.launch, None if math.isnan(row.seconds) else row.seconds


def _fit(columns: list[_Column], cells: dict[str, list[str]], width: int) -> tuple[list[_Column], list[int]]:
    """Columns and their widths: names are shortened first, then spare columns go, then names become very short.

    The cheap columns go for readable names, the others only for the shortest ones.
    """
    first = columns[0].header
    natural = {column.header: max(len(column.header), *map(columns_wide, cells[column.header])) for column in columns}
    natural["step"] = min(natural.get("step", 0), _STEP_MOST)
    natural["bound by"] = min(natural.get("bound by", 0), max(_BOUND_MIN, width // 7))
    natural["verdict"] = min(natural.get("verdict", 0), max(_VERDICT_MIN, width // 5))
    kept = list(columns)
    for least, cheap in ((_KERNEL_GOOD, _CHEAP), (_KERNEL_MIN, 1)):
        least = min(least, natural[first])
        while _room(kept, natural, width) < least:
            spare = max(kept, key=lambda column: column.spare)
            if spare.spare < cheap:
                break
            kept.remove(spare)
    natural[first] = min(natural[first], max(_room(kept, natural, width), 8))
    return kept, _widths(kept, natural)


def _widths(kept: Sequence[_Column], natural: dict[str, int]) -> list[int]:
    """Widths of columns; the last of a group takes what its unit needs beyond them."""
    widths: list[int] = []
    for name, members in groupby(kept, key=lambda column: column.group):
        sizes = [natural[column.header] for column in members]
        sizes[-1] += max(len(_group_names(name)[-1]) - sum(sizes) - len(_GAP) * (len(sizes) - 1), 0)
        widths += sizes
    return widths


def _room(kept: Sequence[_Column], natural: dict[str, int], width: int) -> int:
    """Characters left for the names of kernels."""
    return width - sum(size + len(_GAP) for size in _widths(kept, natural)[1:])


def _group_names(name: str) -> list[str]:
    """A group's name, from complete to terse: a unit has to stay."""
    unit = name.partition("[")[2].rstrip("]")
    return [name, unit, "work/B"] if " or " in unit else [name, unit]


def _group_line(columns: Sequence[_Column], widths: Sequence[int]) -> str:
    """The line above the headers: the name of a group of columns over its right end."""
    parts: list[str] = []
    for name, members in groupby(zip(columns, widths, strict=True), key=lambda pair: pair[0].group):
        sizes = [size for _, size in members]
        total = sum(sizes) + len(_GAP) * (len(sizes) - 1)
        shown = next(text for text in _group_names(name) if len(text) <= total)
        parts.append(f"{shown:>{total}}")
    return _GAP.join(parts)


def _line(texts: Sequence[str], columns: Sequence[_Column], widths: Sequence[int], colour: str = "") -> str:
    parts = []
    for text, column, size in zip(texts, columns, widths, strict=True):
        shown = text if columns_wide(text) <= size else shorten(text, size)
        padding = " " * max(size - columns_wide(shown), 0)
        painted = f"{colour}{shown}{_RESET}" if colour and column.header == "of roof" else shown
        parts.append(painted + padding if column.left else padding + painted)
    return _GAP.join(parts)


def _colour(row: Row) -> str:
    if not row.fraction >= 0:
        return _DIM
    return _GREEN if row.fraction >= 0.8 else _YELLOW if row.fraction >= 0.4 else _RED


def _paint(text: str, colour: str, color: bool) -> str:
    return f"{colour}{text}{_RESET}" if color else text


def _roofs(data: Summary, width: int, color: bool) -> list[str]:
    """The roofs of each GPU: measured beside theoretical where both are known."""
    lines = []
    several = len({roof.device for roof in data.roofs}) > 1
    known = [name for name in ("measured", "theoretical") if any(roof.text(name) for roof in data.roofs)]
    sizes = [max(14, *(columns_wide(roof.text(name)) for roof in data.roofs)) for name in known]
    room = width - sum(size + len(_GAP) for size in sizes)
    longest = min(max((columns_wide(roof.label) for roof in data.roofs), default=0), room)
    for device, roofs in groupby(data.roofs, key=lambda roof: roof.device):
        heading = _GAP.join([f"{'roof':<{longest}}", *(f"{name:>{size}}" for name, size in zip(known, sizes, strict=True))])
        if several:
            lines += _wrapped(device, width)
        lines.append(_paint(heading, _BOLD, color))
        for roof in roofs:
            texts = [f"{roof.text(name):>{size}}" for name, size in zip(known, sizes, strict=True)]
            label = shorten(roof.label, longest)
            lines.append((label + " " * (longest - columns_wide(label)) + _GAP + _GAP.join(texts)).rstrip())
    return lines
