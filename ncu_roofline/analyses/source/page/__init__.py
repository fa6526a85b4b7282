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
from ncu_roofline.analyses.source.code import INTEGERS
from ncu_roofline.analyses.source.frames import COUNTS, SourceRoofline, inlined_at
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
_LOOP = ("loop", "parent", "depth", "header", "end", "first", "last", "function", "notes", "stall")
_TOTAL = ("quantity", "unit", "metrics", "notes", "sum", "counter", "outside", "unlined", "ratio")
_ONCE = ("function", "stall")  # texts that stand once, and in rows by their places
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


def _short(value: float) -> float | int | None:
    """A number with few digits; whole ones without a point."""
    found = number(value)
    return int(found) if isinstance(found, float) and found.is_integer() and abs(found) < 1e15 else found


def _shares(row: Row) -> list[float | int | None]:
    """What heat bars show of a row, in the order of MEASURES."""
    return [_short(row[one.share]) for one in MEASURES.values()]


def _places(row: Row) -> list[tuple[str, int]]:
    """Where an instruction is inlined, innermost first."""
    places = inlined_at(row["inlined"])[:_PLACES]
    return [(file, int(line)) for file, line in places if file and line.isdecimal() and len(line) < 10]


def _inlined(instructions: Iterable[Row]) -> dict[tuple[str, int], list[float | int | None]]:
    """The shares of what is inlined at each line; those that nobody counted for any of it are missing."""
    sums: dict[tuple[str, int], list[float]] = {}
    for row in (row for row in instructions if row["inlined"]):
        own = [math.nan if share is None else share for share in _shares(row)]
        for place in dict.fromkeys(_places(row)):
            if place != (row["file"], row["line"]):
                pairs = zip(sums.get(place, [math.nan] * len(own)), own, strict=True)
                sums[place] = [b if math.isnan(a) else a if math.isnan(b) else a + b for a, b in pairs]
    return {place: [_short(share) for share in shares] for place, shares in sums.items()}


class _Page:
    """What launches share: texts and files, each once, by their places; file "" is the code without a line."""

    def __init__(self, frames: SourceRoofline) -> None:
        self._frames = frames
        self.texts: dict[str, int] = {}
        self._files: dict[str, int] = {}
        self._counted: dict[str, set[int]] = {}  # lines with counts by file: what is near them is shown

    def _text(self, text: str) -> int:
        return self.texts.setdefault(one_line(text), len(self.texts))

    def _row(self, row: Row, *names: str) -> dict[str, Any]:
        """A row of functions, lines, loops, findings or totals: where it is, its shares, and what it has under these names."""
        made: dict[str, Any] = {"file": self._files.setdefault(row["file"], len(self._files))} if "file" in row else {}
        if "share_samples" in row:
            made["shares"] = _shares(row)
        for name in names:
            value = row[name]
            made[name] = self._text(value) if name in _ONCE else one_line(value) if isinstance(value, str) else _short(value)
        return made

    def _columns(self, instructions: Sequence[Row]) -> dict[str, list[Any]]:
        """Instructions as columns."""
        text, files = self._text, self._files
        return {
            **{name: [text(row[name]) for row in instructions] for name in ("function", "owner", "stall")},
            **{name: [row[name] for row in instructions] for name in ("offset", "line", "loop")},
            "address": [f"{row['address']:x}" if row["offset"] < 0 else 0 for row in instructions],
            "text": [text(row["sass"] or row["opcode"]) for row in instructions],
            "file": [files.setdefault(row["file"], len(files)) for row in instructions],
            "inlined": [
                [[files.setdefault(file, len(files)), line] for file, line in _places(row)] if row["inlined"] else 0
                for row in instructions
            ],
            **{name: [_short(row[name]) for row in instructions] for name in _NUMBERS},
            "shares": [list(column) for column in zip(*map(_shares, instructions), strict=True)],
        }

    def launch(self, launch: Launch, most: int) -> dict[str, Any]:
        """A launch with ``most`` of its instructions, of very many those with most samples, or that were executed most.

        What was counted of executed instructions stands as ``executed``.
        """

        def rows(name: str) -> list[Row]:
            return [{**row, "executed": row[launch.counted]} for row in launch.rows(name)]

        instructions, lines = rows("instructions"), rows("lines")
        for row in (*lines, *instructions):
            if row["line"] > 0:
                self._counted.setdefault(row["file"], set()).add(row["line"])
        within = _inlined(instructions)
        heat = [tuple(-row[name] if row[name] > 0 else 0 for name in ("samples", "executed")) for row in instructions]
        kept = [instructions[place] for place in sorted(sorted(range(len(heat)), key=heat.__getitem__)[:most])]
        at = {(row["function"], row["offset"]): place for place, row in enumerate(kept) if row["function"]}
        sampled = ((at.get((row["function"], row["offset"])), row) for row in launch.rows("stalls") if row["samples"] > 0)
        stalls = [(place, row) for place, row in sampled if place is not None]
        text, files = self._text, self._files
        found: dict[str, Any] = {
            **launch.heading,
            "seconds": number(launch.seconds),
            "instructions": self._columns(kept),
            "left_out": len(instructions) - len(kept),
            "counted": launch.counted,
            "works": launch.works.removeprefix("work_"),
            "work_unit": launch.work_unit,
            "chart": chart_of(launch),
        }
        found["functions"] = [
            self._row(
                {**row, "name": clean(row["name"] or row["function"])}, *_LINE_NUMBERS, "function", "name", "role", "line"
            )
            for row in rows("functions")
        ]
        found["lines"] = [
            self._row(row, *_LINE_NUMBERS, "line")
            | {"of": text(row["text"]) if row["line"] < 0 else 0, "stall": text(row["stall"])}
            | {"within": within.get((row["file"], row["line"]), 0)}
            for row in lines
        ]
        counted = {(row["file"], row["line"]) for row in lines}
        found["callers"] = [  # lines without an instruction of their own at which code is inlined
            {"file": files.setdefault(file, len(files)), "line": line, "within": shares}
            for (file, line), shares in within.items()
            if (file, line) not in counted
        ]
        renamed = (
            {**row, "end": row["end"] - SIZE, "first": row["first_line"], "last": row["last_line"]} for row in rows("loops")
        )
        found["loops"] = [self._row(row, *_LOOP_NUMBERS, *_LOOP) for row in renamed]
        # By instruction (its place among those of the page) and reason, as columns.
        found["stalls"] = {"row": [place for place, _ in stalls], "reason": [text(row["reason"]) for _, row in stalls]}
        found["stalls"]["samples"] = [_short(row["samples"]) for _, row in stalls]
        found["findings"] = [
            self._row(row)
            | {"at": at.get((row["function"], row["offset"]), -1), "kind": one_line(row["finding"])}
            | self._row(row, "line", "loop", "share", "of", "message", "advice")
            for row in launch.rows("findings")
        ]
        named = ({**row, "quantity": _MEANINGS.get(row["quantity"], row["quantity"])} for row in launch.rows("totals"))
        found["totals"] = [self._row(row, *_TOTAL) for row in named]
        return found

    def source(self) -> list[dict[str, Any]]:
        """Per file what it is called, whether all of it is shown, and the parts that are: [first line, texts].

        Files are whole as long as there is room, else what is near counted lines.  Of lines tabs are blanks, and nothing
        changes directions or looks like nothing.
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
                text = texts[line - 1][: _LINE + 1].expandtabs(_TAB)
                text = printable(text if len(text) <= _LINE else f"{text[:_LINE]}\N{HORIZONTAL ELLIPSIS}")
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
