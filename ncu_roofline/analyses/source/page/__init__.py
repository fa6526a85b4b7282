"""The source view as an interactive page: chart, source and instructions in one self-contained html file, no plotly.

`payload` is the JSON that it carries: per launch its lines, loops, functions and instructions.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ncu_roofline.analyses.hierarchical.answer import answers_of
from ncu_roofline.analyses.hierarchical.captions import roof_note, source_note
from ncu_roofline.analyses.source.chart import chart_of
from ncu_roofline.analyses.source.columns import COUNTS, INTEGERS
from ncu_roofline.analyses.source.frames import SourceRoofline, inlined_at
from ncu_roofline.analyses.source.launches import HEATED, MEASURES, Launch, Row, launches, longest_first
from ncu_roofline.base.texts import clean, one_line, printable
from ncu_roofline.formats.sass.instructions import SIZE
from ncu_roofline.rendering.page import number, self_contained

# One classic script, in this order: later files use what earlier ones define.
_SCRIPTS = (
    "page_labels.js",
    "page_state.js",
    "page_address.js",
    "page_chart.js",
    "page_rows.js",
    "page_listings.js",
    "page_tables.js",
    "page_details.js",
    "page_find.js",
    "page.js",
)
_INSTRUCTIONS = 25_000  # rows of a page, of all launches: more make it slow to load
_NEIGHBOURS = 4  # rows beside counted ones that stay where others are left out
_NUMBERS = ("executed", "lanes", "work", INTEGERS, "requested", "local", "share_stall")
_LINE_NUMBERS = (*_NUMBERS, "intensity", "instructions")
_LOOP_NUMBERS = ("entries", "trips", "performance", "performance_least", "attainable", *_LINE_NUMBERS)
_MEANINGS = {one.name: re.split("[:;(]", one.meaning)[0].strip() for one in COUNTS}
_PLACES = 8  # of an inlined instruction: deeper ones exist only in hostile reports
_ROOM = 1_500_000  # characters of all files together
_WHOLE = 5_000  # lines of a file that is shown whole
_AROUND = 20  # lines beside counted ones of longer files
_LINE, _TAB = 400, 4  # characters of a line, and of a tab


def render_html(frames: SourceRoofline, *, title: str = "", theme: str = "auto") -> bytes:
    """The page as UTF-8 bytes.

    Nothing of the frames is trusted: source text, names and messages reach the page escaped or as JSON.  Very long files and
    kernels of very many instructions are shown where something was counted, and the page says so.
    Raises ValueError for an unknown theme.
    """
    found = launches(frames)
    reports = list(dict.fromkeys(one_line(one.report_name) for one in found if one.report))
    kernels = list(dict.fromkeys(clean(one.kernel) for one in found))
    what = kernels[0] if len(kernels) == 1 else f"{len(kernels)} kernels"
    called = f"Source roofline of {what}" + (f" in {reports[0]}" if len(reports) == 1 else "")
    return self_contained(
        __package__,
        _SCRIPTS,
        payload(frames),
        styles=("page.css", "source.css"),
        bundle=False,
        title=one_line(title) or called,
        theme=theme,
        devices=list(dict.fromkeys(clean(one.device) for one in found)),
        answers=answers_of(frames.roofline),
        has_rows=bool(found),
        notes=[one_line(note) for note in (*frames.notes, roof_note(frames.roofline), source_note(frames.roofline)) if note],
        reports=reports,
    )


def payload(frames: SourceRoofline) -> dict[str, Any]:
    """Everything the script of the page needs, as values that JSON knows; launches by their time.

    Texts and source files stand once, and elsewhere by their place among these.
    """
    every = longest_first(launches(frames))
    rows = [_counted(launch, "instructions") for launch in every]
    most = _most([len(found) for found in rows])
    page = _Page(frames)
    found = [page.launch(launch, mine, most) for launch, mine in zip(every, rows, strict=True)]
    return {
        "measures": [
            {"id": name, **{part: getattr(MEASURES[name], part) for part in ("label", "meaning", "said")}} for name in HEATED
        ],
        "launches": found,
        "files": page.source(),
        "texts": list(page.texts),
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


def _short(value: float) -> float | int | None:
    """A number with few digits; whole ones without a point."""
    found = number(value)
    return int(found) if isinstance(found, float) and found.is_integer() and abs(found) < 1e15 else found


def _shares(row: Row) -> list[float | int | None]:
    """What heat bars show of a row, in the order of HEATED."""
    return [_short(row[MEASURES[name].share]) for name in HEATED]


def _numbers(row: Row, names: Iterable[str]) -> dict[str, float | int | None]:
    return {name: _short(row[name]) for name in names}


def _places(row: Row) -> list[tuple[str, int]]:
    """Where an instruction is inlined, innermost first."""
    places = inlined_at(row["inlined"])[:_PLACES]
    return [(file, int(line)) for file, line in places if file and line.isdecimal() and len(line) < 10]


def _within(instructions: Sequence[Row]) -> dict[tuple[str, int], list[float | int | None]]:
    """Shares of what is inlined at a line, by file and line; None where nothing of it was counted."""
    found: dict[tuple[str, int], list[float]] = {}
    for row in instructions:
        if not row["inlined"]:
            continue
        own = [math.nan if share is None else share for share in _shares(row)]
        for place in dict.fromkeys(_places(row)):
            if place != (row["file"], row["line"]):
                pairs = zip(found.get(place, [math.nan] * len(own)), own, strict=True)
                found[place] = [b if math.isnan(a) else a if math.isnan(b) else a + b for a, b in pairs]
    return {place: [_short(share) for share in shares] for place, shares in found.items()}


class _Page:
    """What launches share: texts and files, each once, by their places; file "" is the code without a line."""

    def __init__(self, frames: SourceRoofline) -> None:
        self._frames = frames
        self.texts: dict[str, int] = {}
        self._files: dict[str, int] = {}
        self._counted: dict[str, set[int]] = {}  # lines with counts by file: what is near them is shown

    def text(self, text: str) -> int:
        return self.texts.setdefault(one_line(text), len(self.texts))

    def file(self, file: str) -> int:
        return self._files.setdefault(file, len(self._files))

    def launch(self, launch: Launch, instructions: Sequence[Row], most: int) -> dict[str, Any]:
        """A launch with ``most`` of its instructions."""
        lines, loops, functions = (_counted(launch, name) for name in ("lines", "loops", "functions"))
        kept = _kept(instructions, most)
        for row in (*lines, *instructions):
            if row["line"] > 0:
                self._counted.setdefault(row["file"], set()).add(row["line"])
        within = _within(instructions)
        own = {(row["file"], row["line"]) for row in lines}
        at = {(row["function"], row["offset"]): place for place, row in enumerate(kept) if row["function"]}
        return {
            **launch.heading,
            "seconds": number(launch.seconds),
            "instructions": self._instructions(kept),
            "left_out": len(instructions) - len(kept),
            "counted": launch.counted,
            "works": launch.works.removeprefix("work_"),
            "work_unit": launch.work_unit,
            "functions": [self._function(row) for row in functions],
            "lines": [self._line(row, within) for row in lines],
            # Lines without an instruction of their own at which code is inlined.
            "callers": [
                {"file": self.file(place[0]), "line": place[1], "within": shares}
                for place, shares in within.items()
                if place not in own
            ],
            "loops": [self._loop(row) for row in loops],
            "stalls": self._stalls(launch.rows("stalls"), at),
            "findings": [self._finding(row, at) for row in launch.rows("findings")],
            "totals": [
                {
                    "quantity": one_line(_MEANINGS.get(row["quantity"], row["quantity"])),
                    **{name: one_line(row[name]) for name in ("unit", "metrics", "notes")},
                    **_numbers(row, ("sum", "counter", "outside", "unlined", "ratio")),
                }
                for row in launch.rows("totals")
            ],
            "chart": chart_of(launch),
        }

    def _instructions(self, rows: Sequence[Row]) -> dict[str, Any]:
        """As columns."""
        shares = [_shares(row) for row in rows]
        return {
            "function": [self.text(row["function"]) for row in rows],
            "owner": [self.text(row["owner"]) for row in rows],
            "offset": [row["offset"] for row in rows],
            "address": [f"{row['address']:x}" if row["offset"] < 0 else 0 for row in rows],
            "text": [self.text(row["sass"] or row["opcode"]) for row in rows],
            "file": [self.file(row["file"]) for row in rows],
            "line": [row["line"] for row in rows],
            "inlined": [[[self.file(file), line] for file, line in _places(row)] if row["inlined"] else 0 for row in rows],
            "loop": [row["loop"] for row in rows],
            "stall": [self.text(row["stall"]) for row in rows],
            **{name: [_short(row[name]) for row in rows] for name in _NUMBERS},
            "shares": [list(column) for column in zip(*shares, strict=True)],
        }

    def _line(self, row: Row, within: Mapping[tuple[str, int], Any]) -> dict[str, Any]:
        return {
            "file": self.file(row["file"]),
            "line": row["line"],
            "of": self.text(row["text"]) if row["line"] < 0 else 0,
            "shares": _shares(row),
            "within": within.get((row["file"], row["line"]), 0),
            "stall": self.text(row["stall"]),
            **_numbers(row, _LINE_NUMBERS),
        }

    def _loop(self, row: Row) -> dict[str, Any]:
        return {
            "loop": row["loop"],
            "function": self.text(row["function"]),
            "parent": row["parent"],
            "depth": row["depth"],
            "header": row["header"],
            "end": row["end"] - SIZE,
            "file": self.file(row["file"]),
            "first": row["first_line"],
            "last": row["last_line"],
            "notes": one_line(row["notes"]),
            "shares": _shares(row),
            "stall": self.text(row["stall"]),
            **_numbers(row, _LOOP_NUMBERS),
        }

    def _function(self, row: Row) -> dict[str, Any]:
        return {
            "function": self.text(row["function"]),
            "name": clean(row["name"] or row["function"]),
            "role": clean(row["role"]),
            "file": self.file(row["file"]),
            "line": row["line"],
            "shares": _shares(row),
            **_numbers(row, _LINE_NUMBERS),
        }

    def _stalls(self, rows: Sequence[Row], at: Mapping[tuple[str, int], int]) -> dict[str, Any]:
        """Samples by instruction (its place among those of the page) and reason, as columns."""
        places = ((at.get((row["function"], row["offset"])), row) for row in rows if row["samples"] > 0)
        found = [(place, row) for place, row in places if place is not None]
        return {
            "row": [place for place, _ in found],
            "reason": [self.text(row["reason"]) for _, row in found],
            "samples": [_short(row["samples"]) for _, row in found],
        }

    def _finding(self, row: Row, at: Mapping[tuple[str, int], int]) -> dict[str, Any]:
        return {
            "kind": one_line(row["finding"]),
            "file": self.file(row["file"]),
            "line": row["line"],
            "at": at.get((row["function"], row["offset"]), -1),
            "loop": row["loop"],
            "share": number(row["share"]),
            **{name: one_line(row[name]) for name in ("of", "message", "advice")},
        }

    def source(self) -> list[dict[str, Any]]:
        """Per file what it is called, whether all of it is shown, and the parts that are: [first line, texts].

        Files are whole as long as there is room, else what is near counted lines.
        """
        room, found = _ROOM, []
        for name in self._files:
            texts = self._frames.texts.get(name, ()) if name else ()
            parts: list[tuple[int, list[str]]] = []
            if texts and len(texts) <= _WHOLE and sum(map(len, texts)) <= room:
                parts = [(1, list(map(_shown, texts)))]
            elif texts:
                parts = self._near(texts, self._counted.get(name, ()), room)
            room -= sum(len(line) + 1 for _, lines in parts for line in lines)
            whole = not parts or (len(parts) == 1 and len(parts[0][1]) == len(texts))
            found.append({"label": self._frames.called(name), "whole": whole, "parts": parts})
        return found

    @staticmethod
    def _near(texts: Sequence[str], counted: Iterable[int], room: int) -> list[tuple[int, list[str]]]:
        parts: list[tuple[int, list[str]]] = []
        for line in sorted({at for hot in counted for at in range(hot - _AROUND, hot + _AROUND + 1)}):
            if not 0 < line <= len(texts):
                continue
            text = _shown(texts[line - 1])
            room -= len(text) + 1
            if room < 0:
                break
            if parts and parts[-1][0] + len(parts[-1][1]) == line:
                parts[-1][1].append(text)
            else:
                parts.append((line, [text]))
        return parts


def _shown(text: str) -> str:
    """A line as it is shown: tabs as blanks, nothing that changes directions or looks like nothing, cut where very long."""
    cut = text[: _LINE + 1].expandtabs(_TAB)
    return printable(cut if len(cut) <= _LINE else f"{cut[:_LINE]}\N{HORIZONTAL ELLIPSIS}")
