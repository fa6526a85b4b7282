"""Frames of the source view to the JSON that its page carries: per launch its lines, loops, functions and instructions."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ncu_roofline.analyses.source.chart import chart_of
from ncu_roofline.analyses.source.columns import COUNTS, INTEGERS
from ncu_roofline.analyses.source.frames import SourceRoofline, inlined_at
from ncu_roofline.analyses.source.launches import HEATED, MEASURES, Launch, Row, launches, longest_first
from ncu_roofline.analyses.source.page.files import Files
from ncu_roofline.base.texts import clean, one_line
from ncu_roofline.base.units import UNITS, format_value
from ncu_roofline.formats.sass.instructions import SIZE
from ncu_roofline.rendering.page import number

_INSTRUCTIONS = 25_000  # rows of a page, of all launches: more make it slow to load
_NEIGHBOURS = 4  # rows beside counted ones that stay where others are left out
_NUMBERS = ("executed", "lanes", "work", INTEGERS, "requested", "local", "share_stall")
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
    """Everything the script of the page needs, as values that JSON knows; launches by their time."""
    pool, files, every = Pool(), Files(frames), longest_first(launches(frames))
    rows = [_counted(launch, "instructions") for launch in every]
    most = _most([len(found) for found in rows])
    found = [_launch(launch, mine, pool, files, most) for launch, mine in zip(every, rows, strict=True)]
    return {
        "title": title,
        "theme": theme,
        "units": {key: [unit.symbol, unit.prefixed] for key, unit in UNITS.items()},
        "measures": [
            {"id": name, **{part: getattr(MEASURES[name], part) for part in ("label", "meaning", "said")}} for name in HEATED
        ],
        "launches": found,
        "files": files.payload(),
        "texts": list(pool.texts),
    }


def _most(sizes: Sequence[int]) -> int:
    """How many instructions a launch may have, so that all together have no more than a page bears."""
    room, left = _INSTRUCTIONS, len(sizes)
    for size in sorted(sizes):
        if size > room // left:
            return room // left
        room, left = room - size, left - 1
    return _INSTRUCTIONS


def _counted(launch: Launch, name: str) -> list[Row]:
    """The rows of a table, with what was counted of executed instructions as ``executed``, and `Launch.intensities`."""
    rows = launch.rows(name)
    pairs = zip(rows, launch.intensities(rows), strict=True)
    return [{**row, "executed": row[launch.counted], "intensity": intensity} for row, intensity in pairs]


def _launch(launch: Launch, instructions: Sequence[Row], pool: Pool, files: Files, most: int) -> dict[str, Any]:
    lines, loops, functions = (_counted(launch, name) for name in ("lines", "loops", "functions"))
    kept = _kept(instructions, most)
    files.use(lines, instructions)
    within = _within(instructions)
    at = {(row["function"], row["offset"]): place for place, row in enumerate(kept) if row["function"]}
    return {
        **heading(launch),
        "instructions": _instructions(kept, pool, files),
        "left_out": len(instructions) - len(kept),
        "counted": launch.counted,
        "works": launch.works.removeprefix("work_"),
        "work_unit": launch.work_unit,
        "functions": [_function(row, pool, files) for row in functions],
        "lines": [_line(row, within, pool, files) for row in lines],
        "callers": _callers(lines, within, files),
        "loops": [_loop(row, pool, files) for row in loops],
        "stalls": _stalls(launch.rows("stalls"), at, pool),
        "findings": [_finding(row, at, files) for row in launch.rows("findings")],
        "totals": [_total(row) for row in launch.rows("totals")],
        "chart": chart_of(launch),
    }


def heading(launch: Launch) -> dict[str, Any]:
    """What is said of a launch as a whole."""
    about, seconds, report = launch.of_kernel, launch.seconds, launch.report_name
    facts = [
        clean(launch.device),
        f"launch {launch.launch} of {one_line(report)}" if report else f"launch {launch.launch}",
        f"grid {about['grid']}, block {about['block']}" if about.get("grid") else "",
        format_value(seconds, "second", 3) if seconds > 0 else "",
    ]
    return {
        "kernel": clean(launch.kernel),
        "name": clean(about.get("name") or launch.kernel),
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


def _shares(row: Row) -> list[float | int | None]:
    """What heat bars show of a row, in the order of HEATED."""
    return [_short(row[MEASURES[name].share]) for name in HEATED]


def _short(value: float) -> float | int | None:
    """A number with few digits; whole ones without a point."""
    found = number(value)
    return int(found) if isinstance(found, float) and found.is_integer() and abs(found) < 1e15 else found


def _numbers(row: Row, names: Iterable[str]) -> dict[str, float | int | None]:
    return {name: _short(row[name]) for name in names}


def _places(row: Row) -> list[tuple[str, int]]:
    """Where an instruction is inlined, innermost first."""
    places = inlined_at(row["inlined"])[:_PLACES]
    return [(file, int(line)) for file, line in places if file and line.isdecimal() and len(line) < 10]


def _instructions(rows: Sequence[Row], pool: Pool, files: Files) -> dict[str, Any]:
    """As columns, texts as places in the pool."""
    shares = [_shares(row) for row in rows]
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


def _within(instructions: Sequence[Row]) -> dict[tuple[str, int], list[float]]:
    """Shares of what is inlined at a line, by file and line, NaN where nothing of it was counted."""
    found: dict[tuple[str, int], list[float]] = {}
    for row in instructions:
        if not row["inlined"]:
            continue
        own = [math.nan if share is None else share for share in _shares(row)]
        for place in dict.fromkeys(_places(row)):
            if place == (row["file"], row["line"]):
                continue
            sums = found.get(place)
            found[place] = own if sums is None else [_sum(a, b) for a, b in zip(sums, own, strict=True)]
    return found


def _sum(a: float, b: float) -> float:
    """The sum of what is known."""
    return b if math.isnan(a) else a if math.isnan(b) else a + b


def _line(row: Row, within: Mapping[tuple[str, int], list[float]], pool: Pool, files: Files) -> dict[str, Any]:
    inner = within.get((row["file"], row["line"]))
    return {
        "file": files.place(row["file"]),
        "line": row["line"],
        "of": pool(row["text"]) if row["line"] < 0 else 0,
        "shares": _shares(row),
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


def _loop(row: Row, pool: Pool, files: Files) -> dict[str, Any]:
    return {
        "loop": row["loop"],
        "function": pool(row["function"]),
        "parent": row["parent"],
        "depth": row["depth"],
        "header": row["header"],
        "end": row["end"] - SIZE,
        "file": files.place(row["file"]),
        "first": row["first_line"],
        "last": row["last_line"],
        "notes": one_line(row["notes"]),
        "shares": _shares(row),
        "stall": pool(row["stall"]),
        **_numbers(row, _LOOP_NUMBERS),
    }


def _function(row: Row, pool: Pool, files: Files) -> dict[str, Any]:
    return {
        "function": pool(row["function"]),
        "name": clean(row["name"] or row["function"]),
        "role": clean(row["role"]),
        "file": files.place(row["file"]),
        "line": row["line"],
        "shares": _shares(row),
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
