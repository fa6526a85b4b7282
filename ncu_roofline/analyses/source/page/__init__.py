"""The source view as an interactive page: chart, source and instructions in one self-contained html file, no plotly.

`payload` is the JSON that it carries: per launch its lines, loops, functions and instructions.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

from ncu_roofline.analyses.hierarchical.captions import roof_note, source_note
from ncu_roofline.analyses.hierarchical.kernels import answers_of
from ncu_roofline.analyses.source.frames import COUNTS, INTEGERS, SourceRoofline, inlined_at
from ncu_roofline.analyses.source.picture import chart_of
from ncu_roofline.analyses.source.text import MEASURES, Launch, Row, launches
from ncu_roofline.base.texts import clean, one_line, printable
from ncu_roofline.formats.sass.instructions import SIZE
from ncu_roofline.rendering.page import number, self_contained

# One classic script, in this order: later files use what earlier ones define.
_PARTS = ("labels", "state", "address", "chart", "rows", "listings", "tables", "details", "find")
_SCRIPTS = (*(f"page_{part}.js" for part in _PARTS), "page.js")
_INSTRUCTIONS = 25_000  # rows of a page, of all launches: more make it slow to load
_NUMBERS = ("executed", "lanes", "work", INTEGERS, "requested", "local", "share_stall")
_LINE_NUMBERS = (*_NUMBERS, "intensity", "instructions")
_LOOP_NUMBERS = ("entries", "trips", "performance", "performance_least", "attainable", *_LINE_NUMBERS)
_MEANINGS = {one.name: re.split("[:;(]", one.meaning)[0].strip() for one in COUNTS}
_PLACES = 8  # of an inlined instruction: deeper ones exist only in hostile reports
_ROOM = 1_500_000  # characters of all files together
_WHOLE = 5_000  # lines of a file that is shown whole
_AROUND = 20  # lines beside counted ones of longer files
_LINE, _TAB = 400, 4  # characters of a line, and of a tab
_Place = tuple[str, int]
_Shares = list[float | int | None]


def render_html(frames: SourceRoofline, *, title: str = "", theme: str = "auto") -> bytes:
    """The page as UTF-8 bytes.

    Nothing of the frames is trusted: source text, names and messages reach the page escaped or as JSON.  Very long files and
    kernels of very many instructions are shown where something was counted, and the page says so.
    Raises ValueError for an unknown theme.
    """
    found = launches(frames)
    reports = list(dict.fromkeys(one_line(frames.report_names(one.key[0])) for one in found if one.key[0]))
    kernels = list(dict.fromkeys(one.kernel for one in found))
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
        devices=list(dict.fromkeys(clean(one.key[3]) for one in found)),
        answers=answers_of(frames.roofline),
        has_rows=bool(found),
        notes=[one_line(note) for note in (*frames.notes, roof_note(frames.roofline), source_note(frames.roofline)) if note],
        reports=reports,
    )


def payload(frames: SourceRoofline) -> dict[str, Any]:
    """Everything the script of the page needs, as values that JSON knows; launches by their time.

    Texts and source files stand once, and elsewhere by their place among these.
    """
    every = launches(frames)
    page = _Page(frames)
    found = [page.launch(launch, _INSTRUCTIONS // len(every)) for launch in every]
    measures = [{"id": name, "label": one.label, "meaning": one.meaning, "said": one.said} for name, one in MEASURES.items()]
    return {"measures": measures, "launches": found, "files": page.source(), "texts": list(page.texts)}


def _kept(instructions: Sequence[Row], most: int) -> list[Row]:
    """All instructions; of very many those with most samples, or that were executed most."""
    heat = [tuple(-row[name] if row[name] > 0 else 0 for name in ("samples", "executed")) for row in instructions]
    hottest = sorted(range(len(instructions)), key=heat.__getitem__)[:most]
    return [instructions[place] for place in sorted(hottest)]


def _short(value: float) -> float | int | None:
    """A number with few digits; whole ones without a point."""
    found = number(value)
    return int(found) if isinstance(found, float) and found.is_integer() and abs(found) < 1e15 else found


def _shares(row: Row) -> _Shares:
    """What heat bars show of a row, in the order of MEASURES."""
    return [_short(row[one.share]) for one in MEASURES.values()]


def _numbers(row: Row, names: Iterable[str]) -> dict[str, float | int | None]:
    return {name: _short(row[name]) for name in names}


def _places(row: Row) -> list[_Place]:
    """Where an instruction is inlined, innermost first."""
    places = inlined_at(row["inlined"])[:_PLACES]
    return [(file, int(line)) for file, line in places if file and line.isdecimal() and len(line) < 10]


def _within(instructions: Sequence[Row]) -> dict[_Place, _Shares]:
    """Shares of what is inlined at a line, by file and line; None where nothing of it was counted."""
    found: dict[_Place, list[float]] = {}
    for row in (row for row in instructions if row["inlined"]):
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

    def launch(self, launch: Launch, most: int) -> dict[str, Any]:
        """A launch with ``most`` of its instructions.

        What was counted of executed instructions stands as ``executed``, and the intensity of what performance counts.
        """

        def rows(name: str) -> list[Row]:
            every = launch.rows(name)
            pairs = zip(every, launch.intensities(every), strict=True)
            return [{**row, "executed": row[launch.counted], "intensity": intensity} for row, intensity in pairs]

        instructions, lines = rows("instructions"), rows("lines")
        for row in (*lines, *instructions):
            if row["line"] > 0:
                self._counted.setdefault(row["file"], set()).add(row["line"])
        kept, within = _kept(instructions, most), _within(instructions)
        own = {(row["file"], row["line"]) for row in lines}
        at = {(row["function"], row["offset"]): place for place, row in enumerate(kept) if row["function"]}
        sampled = ((at.get((row["function"], row["offset"])), row) for row in launch.rows("stalls") if row["samples"] > 0)
        stalls = [(place, row) for place, row in sampled if place is not None]
        return {
            **launch.heading,
            "seconds": number(launch.seconds),
            "instructions": self._instructions(kept),
            "left_out": len(instructions) - len(kept),
            "counted": launch.counted,
            "works": launch.works.removeprefix("work_"),
            "work_unit": launch.work_unit,
            "functions": [
                {
                    "function": self.text(row["function"]),
                    "name": clean(row["name"] or row["function"]),
                    "role": clean(row["role"]),
                    "file": self.file(row["file"]),
                    "line": row["line"],
                    "shares": _shares(row),
                    **_numbers(row, _LINE_NUMBERS),
                }
                for row in rows("functions")
            ],
            "lines": [
                {
                    "file": self.file(row["file"]),
                    "line": row["line"],
                    "of": self.text(row["text"]) if row["line"] < 0 else 0,
                    "within": within.get((row["file"], row["line"]), 0),
                    "shares": _shares(row),
                    "stall": self.text(row["stall"]),
                    **_numbers(row, _LINE_NUMBERS),
                }
                for row in lines
            ],
            # Lines without an instruction of their own at which code is inlined.
            "callers": [
                {"file": self.file(place[0]), "line": place[1], "within": shares}
                for place, shares in within.items()
                if place not in own
            ],
            "loops": [
                {
                    **{name: row[name] for name in ("loop", "parent", "depth", "header")},
                    "end": row["end"] - SIZE,
                    "function": self.text(row["function"]),
                    "file": self.file(row["file"]),
                    "first": row["first_line"],
                    "last": row["last_line"],
                    "notes": one_line(row["notes"]),
                    "shares": _shares(row),
                    "stall": self.text(row["stall"]),
                    **_numbers(row, _LOOP_NUMBERS),
                }
                for row in rows("loops")
            ],
            "stalls": {  # by instruction (its place among those of the page) and reason, as columns
                "row": [place for place, _ in stalls],
                "reason": [self.text(row["reason"]) for _, row in stalls],
                "samples": [_short(row["samples"]) for _, row in stalls],
            },
            "findings": [
                {
                    "kind": one_line(row["finding"]),
                    "file": self.file(row["file"]),
                    "line": row["line"],
                    "at": at.get((row["function"], row["offset"]), -1),
                    "loop": row["loop"],
                    "share": number(row["share"]),
                    **{name: one_line(row[name]) for name in ("of", "message", "advice")},
                }
                for row in launch.rows("findings")
            ],
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
            "shares": [list(column) for column in zip(*map(_shares, rows), strict=True)],
        }

    def source(self) -> list[dict[str, Any]]:
        """Per file what it is called, whether all of it is shown, and the parts that are: [first line, texts].

        Files are whole as long as there is room, else what is near counted lines.
        """
        room, found = _ROOM, []
        for name in self._files:
            texts = self._frames.texts.get(name, ()) if name else ()
            lines: Sequence[int] = range(1, len(texts) + 1)
            if len(texts) > _WHOLE or sum(map(len, texts)) > room:
                near = {at for hot in self._counted.get(name, ()) for at in range(hot - _AROUND, hot + _AROUND + 1)}
                lines = sorted(near.intersection(lines))
            parts: list[tuple[int, list[str]]] = []
            for line in lines:
                text = _shown(texts[line - 1])
                room -= len(text) + 1
                if room < 0 and len(lines) < len(texts):
                    break
                if parts and parts[-1][0] + len(parts[-1][1]) == line:
                    parts[-1][1].append(text)
                else:
                    parts.append((line, [text]))
            whole = not parts or (len(parts) == 1 and len(parts[0][1]) == len(texts))
            found.append({"label": self._frames.called(name), "whole": whole, "parts": parts})
        return found


def _shown(text: str) -> str:
    """A line as it is shown: tabs as blanks, nothing that changes directions or looks like nothing, cut where very long."""
    cut = text[: _LINE + 1].expandtabs(_TAB)
    return printable(cut if len(cut) <= _LINE else f"{cut[:_LINE]}\N{HORIZONTAL ELLIPSIS}")
