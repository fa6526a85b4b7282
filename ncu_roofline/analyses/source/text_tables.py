"""The tables of the source view as texts: loops, lines, functions and instructions of one launch."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, count

from ncu_roofline.analyses.hierarchical.usage import percent
from ncu_roofline.analyses.source.columns import INT32, INTEGERS, WITHIN
from ncu_roofline.analyses.source.frames import inlined_at
from ncu_roofline.analyses.source.instructions import NOWHERE, OUTSIDE
from ncu_roofline.analyses.source.launches import MEASURES, Launch, Row, ranked
from ncu_roofline.base.texts import clean, shorten
from ncu_roofline.base.units import format_value, intensity_text
from ncu_roofline.formats.sass.instructions import SIZE
from ncu_roofline.rendering.table import RED, YELLOW, Table, TextColumn, columns_wide

TEXT = "source"
_CODE = (TEXT, "instruction")  # columns that take what the others leave
_HOT, _WARM = 0.25, 0.1  # shares from which on a row is red or yellow
_TEXT_LEAST, _TEXT_PART, _TEXT_MOST = 24, 0.3, 100  # characters of code, of a line the part that numbers leave it
_NAME = 60
# The cheap columns go for whole names of places, the others for readable ones.  Bars, which the numbers beside them say again,
# go before numbers; stalls, bytes and what would be saved of them stay longest.
_STEPS = ((32, 5), (20, 1))
_IN_NONE = {NOWHERE: "in no loop", OUTSIDE: "outside of the code"}
_CUT = "..."
_ALL_LANES = 31.95  # reads 32
_UNKNOWN = "-"  # in the place of a performance that can't be told: a note says why
_BAR, _EIGHTHS = 8, " ▏▎▍▌▋▊▉"  # characters of a whole heat bar
_EQUAL = 1e-9  # sums that differ by less of the whole do so by rounding


@dataclass(frozen=True)
class How:
    """How a launch is told: what its rows are ranked by, how many of them, and in which letters."""

    measure: str = "samples"
    rows: int = 0
    ascii_only: bool = False

    def first(self, rows: Sequence[Row]) -> list[Row]:
        """The rows that are shown, all of them for 0."""
        return list(rows[: self.rows or None])


def share_text(value: float) -> str:
    """A share in per cent; "0 %" is counted, "n/a" is not."""
    return "0 %" if value == 0 else percent(value)


def bars(shares: Sequence[float], ascii_only: bool) -> list[str]:
    """Bars as long as the shares are, the largest of them whole."""
    largest = max((share for share in shares if share > 0), default=math.nan)

    def bar(part: float) -> str:
        if ascii_only:
            return "#" * math.ceil(_BAR * part)
        whole, rest = divmod(math.ceil(8 * _BAR * part), 8)
        return "█" * whole + (_EIGHTHS[rest] if rest else "")

    return [bar(share / largest) if share > 0 else "" for share in shares]


def place_text(file: str, line: int, called: Callable[[str], str]) -> str:
    """``smooth.cu:13``; what code without line is."""
    if line == OUTSIDE:
        return "outside"
    return "no line" if line <= 0 or not file else f"{clean(called(file))}:{line}"


def line_text(row: Row, names: Mapping[str, str]) -> str:
    """The text of a line; of code without lines, which function it is; ``names``: readable ones of functions."""
    text = clean(row["text"])
    return f"in {clean(names.get(row['text'], '')) or text}" if row["line"] == NOWHERE and text else text


def _chain(row: Row, called: Callable[[str], str]) -> str:
    """The line of an instruction, with the places at which it is inlined: ``weights.cuh:3 < smooth.cu:13``."""
    if not row["line"] > 0:
        return ""
    callers = (f"{clean(called(file))}:{clean(line)}" for file, line in inlined_at(row["inlined"]))
    return WITHIN.join((place_text(row["file"], row["line"], called), *callers))


def _count(value: float) -> str:
    """A number in three digits; "" for a missing one."""
    if not math.isfinite(value):
        return ""
    return f"{value:.3g}" if value < 1000 else format_value(value, "inst", 3).removesuffix("inst").replace(" ", "")


def _shares(rows: Sequence[Row], how: How, launch: Launch, only: bool = False) -> Iterator[TextColumn]:
    """The measure as bars and numbers, then, but for ``only``, other shares; of integer work where performance counts it."""
    measure = MEASURES[how.measure]
    shares = [row[measure.share] for row in rows]
    colours = [RED if share >= _HOT else YELLOW if share >= _WARM else "" for share in shares]
    if any(share > 0 for share in shares):
        yield TextColumn("", bars(shares, how.ascii_only), left=True, spare=9, colours=colours)
    yield TextColumn(measure.heading, [share_text(share) for share in shares], own=True, colours=colours)
    if only:
        return
    others = {"work": 6, "traffic": 2, "local": 4, "excess": 2}
    for name, spare in ({INT32: 3} | others if launch.works == INTEGERS else others).items():
        other = MEASURES[name]
        if name != how.measure and (name != "local" or any(row[other.share] > 0 for row in rows)):
            yield TextColumn(other.heading, [share_text(row[other.share]) for row in rows], spare=spare, own=True)


def _intensity(rows: Sequence[Row], launch: Launch) -> TextColumn:
    return TextColumn(launch.intensity, [intensity_text(one) for one in launch.intensities(rows)], spare=5)


def _lanes(rows: Sequence[Row]) -> TextColumn:
    """Active threads per warp instruction; nothing where all are active everywhere."""
    told = any(row["lanes"] < _ALL_LANES for row in rows)
    return TextColumn("lanes", [_count(row["lanes"]) if told else "" for row in rows], spare=8)


def _stalls(rows: Sequence[Row]) -> TextColumn:
    """The most frequent stall with its share: ``long scoreboard 62 %``."""
    shares = [f" {100 * row['share_stall']:.0f} %" if math.isfinite(row["share_stall"]) else "" for row in rows]
    names = [clean(row["stall"]).replace("_", " ") for row in rows]
    texts = [name + share if row["stall"] else "" for row, name, share in zip(rows, names, shares, strict=True)]
    return TextColumn("stall", texts, left=True, spare=3)


def _table(*columns: TextColumn) -> Table:
    """The columns that say something: what nobody counted has none."""
    kept = (one for place, one in enumerate(columns) if not place or any(cell not in ("", "n/a") for cell in one.cells))
    return Table(tuple(kept), _STEPS)


def only_file(rows: Iterable[Row], launch: Launch) -> str:
    """What the source file of these rows is called, if there is one only: rows need not repeat it."""
    files = {row["file"] for row in rows if row["file"]}
    return clean(launch.frames.called(files.pop())) if len(files) == 1 else ""


def loop_rows(launch: Launch, how: How) -> list[Row]:
    """The loops that are shown as a tree, those with most of the measure first; the code in none comes last."""
    rows = [row for row in launch.rows("loops") if row["executed"] != 0]
    inside: dict[int, list[Row]] = {}
    for row in ranked([row for row in rows if row["loop"] >= 0], how.measure):
        inside.setdefault(row["parent"], []).append(row)
    result, left = [], list(reversed(inside.get(NOWHERE, [])))
    while left:
        row = left.pop()
        result.append(row)
        left += reversed(inside.pop(row["loop"], []))
    return how.first([*result, *sorted((row for row in rows if row["loop"] < 0), key=lambda row: -row["loop"])])


def loop_table(launch: Launch, how: How, file: str = "") -> Table:
    """`loop_rows`; those in ``file`` go by their lines."""
    rows = loop_rows(launch, how)
    kernel = next((row["function"] for row in launch.rows("functions") if row["role"] == "kernel"), "")
    performance, of_roof = [], []
    for row in rows:
        known = math.isfinite(row["performance"])
        performance.append(format_value(row["performance"], f"{launch.unit}/s", 3) if known else _UNKNOWN)
        of_roof.append(percent(row["performance"] / row["attainable"]) if known and row["attainable"] > 0 else "")
    told = any(text != _UNKNOWN for text in performance)
    return _table(
        TextColumn("loop", [_loop_name(row, launch, kernel, file) for row in rows], left=True),
        TextColumn("trips", [_count(row["trips"]) if row["loop"] >= 0 else "" for row in rows], spare=7),
        *_shares(rows, how, launch),
        _intensity(rows, launch),
        _stalls(rows),
        TextColumn("performance", performance if told else [""] * len(rows), spare=4),
        TextColumn("of roof at L1", of_roof, spare=4),
    )


def _loop_name(row: Row, launch: Launch, kernel: str, file: str) -> str:
    if row["loop"] < 0:
        return _IN_NONE[row["loop"]]
    lines = f"{row['first_line']}" + (f"-{row['last_line']}" if row["last_line"] > row["first_line"] else "")
    if row["first_line"] > 0:
        called = clean(launch.frames.called(row["file"]))
        where = f"line{'s' * ('-' in lines)} {lines}" if called == file else f"{called}:{lines}"
    else:
        where = f"{row['header']:#x}-{row['end'] - SIZE:#x}"
    function = f" in {shorten(clean(row['function']))}" if row["function"] != kernel else ""
    return f"{'  ' * min(row['depth'] - 1, 8)}{row['loop']} {where}{function}"


def line_rows(launch: Launch, how: How, name: str) -> list[Row]:
    """The lines that are shown, with most of the measure, of the frame with this name."""
    return how.first([row for row in ranked(launch.rows(name), how.measure) if row["executed"] != 0 or row["samples"] > 0])


def line_table(launch: Launch, how: How, name: str = "lines", file: str = "") -> Table:
    """`line_rows`; those of ``file`` go by their numbers."""
    rows = line_rows(launch, how, name)
    places = [place_text(row["file"], row["line"], launch.frames.called).removeprefix(f"{file}:") for row in rows]
    return _table(
        TextColumn("line", places, left=True),
        *_shares(rows, how, launch),
        _intensity(rows, launch),
        _lanes(rows),
        _stalls(rows),
        TextColumn(TEXT, [line_text(row, launch.function_names) for row in rows], left=True),
    )


def function_table(launch: Launch, how: How) -> Table:
    """The kernel, what it calls and what is inlined into it."""
    rows = how.first(ranked(launch.rows("functions"), how.measure))
    names = [_IN_NONE[OUTSIDE] if row["role"] == "outside" else shorten(clean(row["name"]), _NAME) for row in rows]
    places = [place_text(row["file"], row["line"], launch.frames.called) if row["line"] > 0 else "" for row in rows]
    return _table(
        TextColumn("function", names, left=True),
        TextColumn("role", [clean(row["role"]) for row in rows], left=True, spare=4),
        *_shares(rows, how, launch),
        _intensity(rows, launch),
        TextColumn("instructions", [f"{row['instructions']:,}" if row["instructions"] >= 0 else "" for row in rows], spare=6),
        _stalls(rows),
        TextColumn("line", places, left=True, spare=7),
    )


def hottest_stretch(launch: Launch, measure: str, most: int) -> tuple[list[Row], int, int]:
    """Neighbouring instructions of a launch, ``most`` at most (0: all), and how many of their function stand before and behind.

    Their function is the one with most of the measure.
    """
    share = MEASURES[measure].share
    rows = launch.rows("instructions")

    def weight(row: Row) -> float:
        return row[share] if math.isfinite(row[share]) else 0.0

    of_functions: dict[str, float] = {}
    for row in rows:
        of_functions[row["function"]] = of_functions.get(row["function"], 0.0) + weight(row)
    if not of_functions:
        return [], 0, 0
    function = max(of_functions, key=lambda name: (of_functions[name], bool(name)))
    mine = sorted((row for row in rows if row["function"] == function), key=lambda row: int(row["address"]))
    start, end = hottest([weight(row) for row in mine], most)
    return mine[start:end], start, len(mine) - end


def hottest(weights: Sequence[float], most: int) -> tuple[int, int]:
    """Where the ``most`` neighbours with the largest sum begin and end; of equal ones where the heaviest is in the middle."""
    if not 0 < most < len(weights):
        return 0, len(weights)
    sums = [0.0, *accumulate(weights)]
    found = [sums[start + most] - sums[start] for start in range(len(weights) - most + 1)]
    least = max(found) - _EQUAL * sums[-1]
    equal = [one for one, total in enumerate(found) if total >= least]
    heaviest = max(range(equal[0], equal[0] + most), key=weights.__getitem__)
    start = min(equal, key=lambda one: abs(one + (most - 1) // 2 - heaviest))
    return start, start + most


def instruction_table(launch: Launch, rows: Sequence[Row], how: How) -> Table:
    """Instructions in the order of their addresses, those of loops moved to the right."""
    depths = {row["loop"]: row["depth"] for row in launch.rows("loops")}
    inside = ["  " * min(depths.get(row["loop"], 0), 8) + clean(row["sass"] or row["opcode"]) for row in rows]
    alone = not any(math.isfinite(row["executed"]) for row in rows)  # then threads are all that was counted
    return _table(
        TextColumn("offset", [f"{row['offset'] if row['offset'] >= 0 else row['address']:05x}" for row in rows], left=True),
        *_shares(rows, how, launch, only=True),
        TextColumn("executed", [_count(row["executed"]) for row in rows], spare=4),
        TextColumn("threads", [_count(row["threads"]) if alone else "" for row in rows], spare=4),
        _lanes(rows),
        _stalls(rows),
        TextColumn("loop", [str(row["loop"]) if row["loop"] >= 0 else "" for row in rows], spare=7),
        TextColumn("line", [_chain(row, launch.frames.called) for row in rows], left=True, spare=3, most=40),
        TextColumn("instruction", inside, left=True),
    )


def marked(made: Table) -> Table:
    """A table whose first column says with dashes what blanks said: Markdown has no blanks at the beginning of cells."""
    first = made.columns[0]
    blanks = [len(cell) - len(cell.lstrip()) for cell in first.cells]
    cells = [f"{'-' * (n // 2)} {cell[n:]}" if n else cell for n, cell in zip(blanks, first.cells, strict=True)]
    return replace(made, columns=(replace(first, cells=cells), *made.columns[1:]))


def fitted(made: Table, width: int) -> Table:
    """A table as wide as ``width`` at most; its last column, if that is code, takes what the others leave."""
    *others, last = made.columns
    if last.header not in _CODE:
        return made.fitted(width)
    before = replace(made, columns=tuple(others)).fitted(width - _wanted(last, width) - 2)
    room = min(max(width - before.total - 2, len(last.header)), _TEXT_MOST)
    return replace(before, columns=(*before.columns, replace(last, cells=[_begun(cell, room) for cell in last.cells])))


def _wanted(code: TextColumn, width: int) -> int:
    """Characters that a column of code should have at least."""
    return min(code.wide, max(_TEXT_LEAST, int(_TEXT_PART * width)))


def left_out(made: Table, shown: Table) -> str:
    """A sentence on the columns of a table that it has no more when it is `fitted`, and the width that has them all."""
    there = {column.header for column in shown.columns}
    gone = [column.header for column in made.columns if column.header not in there and column.header]
    if not gone:
        return ""
    first, *others, last = (column for column in made.columns if column.header)
    code = last.header in _CODE
    columns = (first, *others) if code else (first, *others, last)
    need = replace(made, columns=columns).total - first.wide + min(_STEPS[0][0], first.wide)
    width = next(one for one in count(10 * math.ceil(need / 10), 10) if not code or need + 2 + _wanted(last, one) <= one)
    return f"Left out for width: {', '.join(gone)}: --width {width} shows them."


def _begun(text: str, room: int) -> str:
    """The beginning of a line of code; wide characters take two columns."""
    shown = text[:room]
    while columns_wide(shown) > room:
        shown = shown[:-1]
    return text if shown == text else f"{shown[: -len(_CUT)]}{_CUT}"
