"""Frames of the source view to the JSON that its page carries: per launch its lines, loops, functions and instructions."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ncu_roofline.analyses.source.columns import COUNTS, WITHIN
from ncu_roofline.analyses.source.frames import SourceRoofline
from ncu_roofline.analyses.source.page_chart import chart_of, kinds_of
from ncu_roofline.analyses.source.page_texts import Files
from ncu_roofline.files import ReportNames
from ncu_roofline.model.roofline import Table
from ncu_roofline.rendering.page import number
from ncu_roofline.texts import clean, one_line
from ncu_roofline.units import UNITS, format_value

Row = Mapping[str, Any]
Key = tuple[str, int, str, str]
Wholes = Mapping[str, float]
KEY = ("report", "launch", "kernel", "device")
MEASURES = (
    ("samples", "Samples", "share of the kernel's samples: of the time of its warps"),
    ("work", "Work", "share of the kernel's operations"),
    ("requested", "Traffic", "share of the bytes that the kernel asked of L1"),
    ("excess", "Excess", "share of the kernel's traffic that contiguous addresses would save"),
    ("local", "Local", "share of the kernel's bytes of local memory: spilled registers, arrays that have none"),
    ("executed", "Instructions", "share of the instructions executed"),
)
"""What heat bars can show: id, label, meaning; shares of the columns ``share_ID``, those of _SUMMED worked out here."""
_SUMMED = ("local", "executed")
_INSTRUCTIONS = 25_000  # rows of a page, of all launches: more make it slow to load
_NEIGHBOURS = 4  # rows beside counted ones that stay where others are left out
_NUMBERS = ("executed", "lanes", "work", "requested", "local", "share_stall")
_LINE_NUMBERS = (*_NUMBERS, "intensity", "instructions")
_LOOP_NUMBERS = ("entries", "trips", "performance", "performance_least", "attainable", *_LINE_NUMBERS)
_MEANINGS = {one.name: re.split("[:;(]", one.meaning)[0].strip() for one in COUNTS}
_PLACES = 8  # of an inlined instruction: deeper ones exist only in hostile reports


@dataclass
class Pool:
    """Texts, each once; their places."""

    texts: dict[str, int] = field(default_factory=dict)

    def __call__(self, text: str) -> int:
        return self.texts.setdefault(one_line(text), len(self.texts))


def payload(frames: SourceRoofline, *, title: str, theme: str) -> dict[str, Any]:
    """Everything the script of the page needs, as values that JSON knows."""
    pool, files, heads = Pool(), Files(frames.texts), heads_of(frames)
    rows = {key: rows_of(frames.instruction_columns, key) for key in heads}
    most = _most([len(found) for found in rows.values()])
    found = [{**head, **_launch(frames, key, rows[key], pool, files, most)} for key, head in heads.items()]
    return {
        "title": title,
        "theme": theme,
        "units": {key: [unit.symbol, unit.prefixed] for key, unit in UNITS.items()},
        "measures": [{"id": name, "label": label, "meaning": meaning} for name, label, meaning in MEASURES],
        "launches": found,
        "files": files.payload(),
        "texts": list(pool.texts),
    }


def launches(frames: SourceRoofline) -> list[Key]:
    """The launches of the frames, in their order."""
    tables = (frames.loop_columns, frames.instruction_columns, frames.line_columns)
    return list(dict.fromkeys(key for table in tables for key in zip(*(table[name].tolist() for name in KEY), strict=True)))


def heads_of(frames: SourceRoofline) -> dict[Key, dict[str, Any]]:
    """What is said of each launch as a whole, the longest first; reports by their base names."""
    keys = launches(frames)
    called = ReportNames.apart([report for report, *_ in keys if report])
    heads = {key: _head(frames, key, called(key[0]) if key[0] else "") for key in keys}
    return dict(sorted(heads.items(), key=lambda pair: -(pair[1]["seconds"] or 0)))


def _most(sizes: Sequence[int]) -> int:
    """How many instructions a launch may have, so that all together have no more than a page bears."""
    room, left = _INSTRUCTIONS, len(sizes)
    for size in sorted(sizes):
        if size > room // left:
            return room // left
        room, left = room - size, left - 1
    return _INSTRUCTIONS


def _launch(
    frames: SourceRoofline, key: Key, instructions: Sequence[Row], pool: Pool, files: Files, most: int
) -> dict[str, Any]:
    counted = counted_of(instructions)
    found = (rows_of(table, key) for table in (frames.line_columns, frames.loop_columns, frames.function_columns))
    instructions, lines, loops, functions = (
        [{**row, "executed": row[counted]} for row in rows] for rows in (instructions, *found)
    )
    wholes = {name: sum(row[name] for row in instructions if row[name] > 0) for name in _SUMMED}
    kept = _kept(instructions, most)
    files.use(lines, instructions)
    within = _within(instructions, wholes)
    at = {(row["function"], row["offset"]): place for place, row in enumerate(kept) if row["function"]}
    return {
        "instructions": _instructions(kept, wholes, pool, files),
        "left_out": len(instructions) - len(kept),
        "counted": counted,
        "functions": [_function(row, wholes, pool, files) for row in functions],
        "lines": [_line(row, wholes, within, pool, files) for row in lines],
        "callers": _callers(lines, within, files),
        "loops": [_loop(row, wholes, pool, files) for row in loops],
        "stalls": _stalls(rows_of(frames.stall_columns, key), at, pool),
        "findings": [_finding(row, at, files) for row in rows_of(frames.finding_columns, key)],
        "totals": [_total(row) for row in rows_of(frames.total_columns, key)],
        "chart": chart_of(frames.roofline, key, kinds_of(loops)),
    }


def rows_of(table: Table, key: Key) -> list[dict[str, Any]]:
    """The rows of a launch, as Python values."""
    mask = np.ones(len(table["launch"]), dtype=bool)
    for name, value in zip(KEY, key, strict=True):
        mask &= np.asarray(table[name] == value, dtype=bool)
    columns = {name: values[mask].tolist() for name, values in table.items()}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def counted_of(rows: Sequence[Row]) -> str:
    """The column of what was executed: of warps, or of threads where nobody counted warps."""
    some = {name for name in ("executed", "threads") if any(row[name] > 0 for row in rows)}
    return "threads" if some == {"threads"} else "executed"


def _head(frames: SourceRoofline, key: Key, report: str) -> dict[str, Any]:
    _, launch, kernel, device = key
    kernels = frames.roofline.kernel_columns
    found = next((row for row in rows_of(dict(kernels), key)), {})
    seconds = found.get("seconds", math.nan)
    facts = [
        clean(device),
        f"launch {launch} of {one_line(report)}" if report else f"launch {launch}",
        f"grid {found['grid']}, block {found['block']}" if found.get("grid") else "",
        format_value(seconds, "second", 3) if seconds > 0 else "",
    ]
    return {
        "kernel": clean(kernel),
        "name": clean(found.get("name") or kernel),
        "facts": [fact for fact in facts if fact],
        "seconds": number(seconds),
    }


def _kept(instructions: Sequence[Row], most: int) -> list[Row]:
    """All instructions; of very many those that were counted, with their neighbours, and if need be the hottest of them."""
    if len(instructions) <= most:
        return list(instructions)
    counted = [place for place, row in enumerate(instructions) if row["executed"] > 0 or row["samples"] > 0]
    if len(counted) * (2 * _NEIGHBOURS + 1) > most:
        heat = ("samples", "executed")
        counted.sort(key=lambda place: [-value if (value := instructions[place][name]) > 0 else 0 for name in heat])
    kept: set[int] = set()
    for place in counted:
        beside = range(max(place - _NEIGHBOURS, 0), min(place + _NEIGHBOURS + 1, len(instructions)))
        if len(kept) + len(beside) > most:
            break
        kept.update(beside)
    return [instructions[place] for place in sorted(kept)]


def _shares(row: Row, wholes: Wholes) -> list[float | int | None]:
    """What heat bars show of a row, in the order of MEASURES."""
    own = {name: row[name] / whole if whole else math.nan for name, whole in wholes.items()}
    return [_short(own[name] if name in own else row[f"share_{name}"]) for name, *_ in MEASURES]


def _short(value: float) -> float | int | None:
    """A number with few digits; whole ones without a point."""
    found = number(value)
    return int(found) if isinstance(found, float) and found.is_integer() and abs(found) < 1e15 else found


def _numbers(row: Row, names: Iterable[str]) -> dict[str, float | int | None]:
    return {name: _short(row[name]) for name in names}


def _places(row: Row) -> list[tuple[str, int]]:
    """Where an instruction is inlined, innermost first."""
    found = []
    for text in row["inlined"].split(WITHIN, _PLACES)[:_PLACES]:
        file, _, line = text.rpartition(":")
        if file and line.isdecimal() and len(line) < 10:
            found.append((file, int(line)))
    return found


def _instructions(rows: Sequence[Row], wholes: Wholes, pool: Pool, files: Files) -> dict[str, Any]:
    """As columns, texts as places in the pool."""
    shares = [_shares(row, wholes) for row in rows]
    return {
        "function": [pool(row["function"]) for row in rows],
        "owner": [pool(row["owner"]) for row in rows],
        "offset": [row["offset"] for row in rows],
        "address": [f"{row['address']:x}" if row["offset"] < 0 else 0 for row in rows],
        "text": [pool(row["sass"] or row["opcode"]) for row in rows],
        "file": [files.place(row["file"]) for row in rows],
        "line": [row["line"] for row in rows],
        "inlined": [[[files.place(file), line] for file, line in _places(row)] if row["inlined"] else 0 for row in rows],
        "loop": [row["loop"] for row in rows],
        "stall": [pool(row["stall"]) for row in rows],
        **{name: [_short(row[name]) for row in rows] for name in _NUMBERS},
        "shares": [list(column) for column in zip(*shares, strict=True)],
    }


def _within(instructions: Sequence[Row], wholes: Wholes) -> dict[tuple[str, int], list[float]]:
    """Shares of what is inlined at a line, by file and line, NaN where nothing of it was counted."""
    found: dict[tuple[str, int], list[float]] = {}
    for row in instructions:
        if not row["inlined"]:
            continue
        own = [math.nan if share is None else share for share in _shares(row, wholes)]
        for place in {*_places(row)} - {(row["file"], row["line"])}:
            sums = found.get(place)
            found[place] = own if sums is None else [_sum(a, b) for a, b in zip(sums, own, strict=True)]
    return found


def _sum(a: float, b: float) -> float:
    """The sum of what is known."""
    return b if math.isnan(a) else a if math.isnan(b) else a + b


def _line(row: Row, wholes: Wholes, within: Mapping[tuple[str, int], list[float]], pool: Pool, files: Files) -> dict[str, Any]:
    inner = within.get((row["file"], row["line"]))
    return {
        "file": files.place(row["file"]),
        "line": row["line"],
        "of": pool(row["text"]) if row["line"] < 0 else 0,
        "shares": _shares(row, wholes),
        "within": [_short(share) for share in inner] if inner else 0,
        "stall": pool(row["stall"]),
        **_numbers(row, _LINE_NUMBERS),
    }


def _callers(lines: Sequence[Row], within: Mapping[tuple[str, int], list[float]], files: Files) -> list[dict[str, Any]]:
    """Lines without an instruction of their own at which code is inlined."""
    own = {(row["file"], row["line"]) for row in lines}
    return [
        {"file": files.place(file), "line": line, "within": [_short(share) for share in shares]}
        for (file, line), shares in within.items()
        if (file, line) not in own
    ]


def _loop(row: Row, wholes: Wholes, pool: Pool, files: Files) -> dict[str, Any]:
    return {
        "loop": row["loop"],
        "function": pool(row["function"]),
        "parent": row["parent"],
        "depth": row["depth"],
        "header": row["header"],
        "end": row["end"],
        "file": files.place(row["file"]),
        "first": row["first_line"],
        "last": row["last_line"],
        "notes": one_line(row["notes"]),
        "shares": _shares(row, wholes),
        "stall": pool(row["stall"]),
        **_numbers(row, _LOOP_NUMBERS),
    }


def _function(row: Row, wholes: Wholes, pool: Pool, files: Files) -> dict[str, Any]:
    return {
        "function": pool(row["function"]),
        "name": clean(row["name"] or row["function"]),
        "role": clean(row["role"]),
        "file": files.place(row["file"]),
        "line": row["line"],
        "shares": _shares(row, wholes),
        **_numbers(row, _LINE_NUMBERS),
    }


def _stalls(rows: Sequence[Row], at: Mapping[tuple[str, int], int], pool: Pool) -> dict[str, Any]:
    """Samples by instruction (its place among those of the page) and reason, as columns."""
    found = [(at[row["function"], row["offset"]], row) for row in rows if (row["function"], row["offset"]) in at]
    found = [(place, row) for place, row in found if row["samples"] > 0]
    return {
        "row": [place for place, _ in found],
        "reason": [pool(row["reason"]) for _, row in found],
        "samples": [_short(row["samples"]) for _, row in found],
    }


def _finding(row: Row, at: Mapping[tuple[str, int], int], files: Files) -> dict[str, Any]:
    return {
        "kind": one_line(row["finding"]),
        "file": files.place(row["file"]),
        "line": row["line"],
        "at": at.get((row["function"], row["offset"]), -1),
        "loop": row["loop"],
        "share": number(row["share"]),
        "of": one_line(row["of"]),
        "message": one_line(row["message"]),
        "advice": one_line(row["advice"]),
    }


def _total(row: Row) -> dict[str, Any]:
    meaning = _MEANINGS.get(row["quantity"], row["quantity"])
    said = {name: one_line(row[name]) for name in ("unit", "metrics", "notes")}
    return {"quantity": one_line(meaning), **said, **_numbers(row, ("sum", "counter", "outside", "unlined", "ratio"))}
