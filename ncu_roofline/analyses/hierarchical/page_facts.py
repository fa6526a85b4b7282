"""What the page says in words, from the frames: header, kernels without dots, what is missing, notes, and roofs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from ncu_roofline.analyses.hierarchical import captions
from ncu_roofline.analyses.hierarchical.answer import ranked
from ncu_roofline.analyses.hierarchical.chart import ZERO, Band, asked_work
from ncu_roofline.analyses.hierarchical.style import label_of
from ncu_roofline.analyses.hierarchical.text import about_table
from ncu_roofline.analyses.hierarchical.usage import LONGEST, NAMED, Usage, answers, per_kernel, tensor_caveat, usages
from ncu_roofline.base.texts import listed, one_line
from ncu_roofline.base.units import format_value, percent
from ncu_roofline.chips.thresholds import CLOCK_WARNING
from ncu_roofline.formats.ceilings import PUBLISHED
from ncu_roofline.model.columns import UNUSED
from ncu_roofline.rendering.document import text_columns
from ncu_roofline.rendering.frames import Frames, column, rows, view_of

_SHOWN, _ROOFS, _NOTES = 100, 500, 20  # rows of a table in words; the rest is summed up

_STATUS = {
    "no-work-metrics": "the report has no counters of operations for them",
    "no-traffic-metrics": "the report has no counters of memory traffic for them",
    "no-time": "the report has no run time for them",
    "foreign": "their counters may be another kernel's",
    "unknown-chip": "their GPU is not known, and the report brings no roofline of its own",
    "unshown": "they have no dot of the kinds of work and levels chosen",
}
_STATUS_OF_VIEW = {
    "instruction": {
        "no-work-metrics": "the report has no counters of executed instructions for them",
        "no-instructions": "they executed no instructions",
        "unknown-chip": "their GPU is not known",
    }
}


def facts(frames: Frames) -> dict[str, Any]:
    """All the words of a page, as plain values for the template."""
    kernels = list(usages(frames).values())
    absent = [one for one in kernels if one.status != "ok"]
    devices = dict.fromkeys(rows(frames, "kernels" if kernels else "roofs", "device", "compute_capability"))
    asked = {"uncounted-asked": f"the report has no counters of {asked_work(frames)} for them"}
    return {
        "devices": [one_line(f"{name or 'unknown GPU'}{f' (compute capability {cc})' if cc else ''}") for name, cc in devices],
        "reports": [one_line(name) for name in captions.report_names(frames).values()],
        "versions": [one_line(text) for text in dict.fromkeys(column(frames, "kernels", "ncu_version")) if text],
        "clocks": _clocks(frames),
        "tiles": _tiles(frames, kernels),
        "usage": _usage(frames, absent),
        "tensor": tensor_caveat(frames),
        "statuses": _statuses(kernels, {**_STATUS, **asked, **_STATUS_OF_VIEW.get(view_of(frames), {})}),
        "missing": _missing(kernels),
        "notes": _notes(kernels),
        "row_notes": [one_line(note) for note in (captions.above_note(frames), *captions.row_notes(frames, 12)) if note],
        "answered": answers(frames, absent),
        "roofs": _roofs(frames),
        "has_points": len(column(frames, "points", "kernel")) > 0,
        "view": view_of(frames),
        "has_kernels": bool(kernels),
    }


def _clocks(frames: Frames) -> dict[str, Any]:
    """Profiled SM clock over the kernels' time, its maximum, whether they are too far apart, and that of theoretical roofs."""
    ratios = captions.time_weighted(frames, "clock_ratio")
    ratio = ratios[0] if ratios else math.nan
    between = f" ({percent(ratios[1])} to {percent(ratios[2])})" if ratios and captions.differ(*ratios[1:]) else ""
    found = rows(frames, "roofs", "clock_basis", "origin", "kind")
    bases = {one_line(basis) for basis, origin, kind in found if basis and origin == "theoretical" and kind != "wall"}
    return {
        "profiled": captions.profiled_clock(frames),
        "maximum": captions.frequency(column(frames, "kernels", "clock_max")),
        "ratio": f"{percent(ratio)}{between}",
        "warn": ratio < CLOCK_WARNING,
        "roofs": bases.pop() if len(bases) == 1 else "",
    }


def _sum(values: Iterable[float]) -> float:
    """Of what is known; NaN where nothing is."""
    known = [value for value in values if math.isfinite(value)]
    return math.fsum(known) if known else math.nan


def _launches(kernels: Sequence[Usage]) -> int:
    return sum(max(one.launches, 1) for one in kernels)


def _tiles(frames: Frames, kernels: Sequence[Usage]) -> list[tuple[str, str]]:
    """The few numbers of the header: (label, value)."""
    names, launches = len(set(column(frames, "kernels", "kernel"))), _launches(kernels)
    tiles = [("kernel" if names == 1 else "kernels", str(names)), ("launch" if launches == 1 else "launches", str(launches))]
    seconds, drawn = _sum(one.seconds for one in kernels), [one for one in kernels if one.status == "ok"]
    if not math.isnan(seconds):
        tiles.append(("GPU time", format_value(seconds, "second", 4)))
        share = _sum(one.seconds for one in drawn) / seconds if seconds else math.nan
        tiles += [("of it on the chart", percent(share))] if drawn else []
    return tiles


def _usage(frames: Frames, absent: Sequence[Usage]) -> dict[str, Any]:
    """Kernels without dots as a table of texts, ranked; the tail is summed up."""
    found = ranked(per_kernel(absent))
    shown, tail = found[:_SHOWN], found[_SHOWN:]
    table = about_table(shown, used=True)
    more = [{"kernel": one.marked, **({"launches": one.launches_text} if one.longest else {})} for one in shown]
    cells = [{**row, **known} for row, known in zip(table.rows, more, strict=True)]
    several = ("device",) if len({one.device for one in found}) > 1 else ()
    show = (table.show[0], *several, *(name for name in table.show[1:] if name not in ("label", "launch")))
    columns = list(text_columns(replace(table, rows=cells, show=show)).values())[1:]
    texts = zip(*(one.cells for one in columns), strict=True)
    return {
        "headers": [(f"{one.header[0].upper()}{one.header[1:]}", not one.left) for one in columns],
        "rows": [
            {
                "kernel": one.marked,
                "device": one_line(one.device),
                "reason": "; ".join(filter(None, (one.reason, f"no dot: {captions.why(frames, one.status)}"))),
                "cells": [(text, not of.left) for text, of in zip(row, columns, strict=True)],
            }
            for one, row in zip(shown, texts, strict=True)
        ],
        "more": f"{len(tail)} more kernels{captions.of_the_time(one.share for one in tail)}" if tail else "",
        "note": LONGEST if any(one.longest for one in shown) else "",
    }


def _total(label: str, members: Sequence[Usage], detail: str = "") -> dict[str, Any]:
    """Launches that share something: how many, and their share of all time."""
    return {
        "label": one_line(label),
        "launches": _launches(members),
        "percent": percent(_sum(one.share for one in members)),
        "detail": detail,
    }


def _statuses(kernels: Sequence[Usage], why: dict[str, str]) -> list[dict[str, Any]]:
    """Launches without a point, by reason; ``why`` by status."""
    members: dict[str, list[Usage]] = {}
    for one in kernels:
        if one.status not in {"ok", "", *ZERO}:
            members.setdefault(one.status, []).append(one)
    named = {status: listed((one.kernel for one in found), NAMED) for status, found in members.items()}
    return [_total(why.get(status, f"status {status}"), found, named[status]) for status, found in members.items()]


def _counted(kernels: Sequence[Usage], words: Callable[[Usage], Iterable[str]]) -> dict[str, list[Usage]]:
    """What launches say, each distinct text with those that do, that of most rows first."""
    members: dict[str, list[Usage]] = {}
    for one in kernels:
        for text in dict.fromkeys(filter(None, words(one))):
            members.setdefault(text, []).append(one)
    return {text: members[text] for text in sorted(members, key=lambda text: (-len(members[text]), text))}


def _missing(kernels: Sequence[Usage]) -> list[dict[str, Any]]:
    """Precisions and levels that launches lack, those of most launches first; of work that was counted and is zero none."""
    found = _counted(kernels, lambda one: () if one.status in ZERO else one.missing.split())
    return [_total(label_of(word), members) for word, members in found.items()]


def _notes(kernels: Sequence[Usage]) -> list[dict[str, Any]]:
    """Distinct sentences of the notes with the launches they hold for; the tail of very many is one row."""
    found = list(_counted(kernels, lambda one: one.notes.split("; ")).items())
    rest = {id(one): one for _, members in found[_NOTES:] for one in members}
    tail = [_total(f"{len(found) - _NOTES} more notes: see the kernels", list(rest.values()))] if rest else []
    return [*(_total(note, members) for note, members in found[:_NOTES]), *tail]


def _roofs(frames: Frames) -> list[dict[str, str]]:
    """Every roof as a row of texts."""
    called, found = captions.report_names(frames), []
    names = ("device", "report", "label", "source", "metrics", "notes")
    columns = (*names, "origin", "unit", "clock", "clock_basis", "value", "value_min", "value_max")
    for *texts, origin, unit, clock, basis, value, low, high in rows(frames, "roofs", *columns):
        row = dict(zip(names, map(one_line, texts), strict=True))
        row["report"] = one_line(called.get(texts[1], texts[1]))
        row["value"] = Band.of(value, low, high).text(unit, 4) if unit else f"{value:.4g}"
        row["origin"] = PUBLISHED if texts[3] == PUBLISHED and origin != UNUSED else one_line(origin)
        row["clock"] = f"{format_value(clock, 'hertz')} {one_line(basis)}".strip() if math.isfinite(clock) else ""
        found.append(row)
    return found[:_ROOFS]
