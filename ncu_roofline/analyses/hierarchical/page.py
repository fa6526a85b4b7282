"""The interactive page: one self-contained html file, drawn by plotly.js, that needs no network and runs from file://."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ncu_roofline.analyses.hierarchical import captions
from ncu_roofline.analyses.hierarchical.kernels import (
    KEY,
    LONGEST,
    NAMED,
    ZERO,
    Kernel,
    answers_of,
    bars,
    kernels_of,
    per_kernel,
    ranked,
    tells,
    tensor_caveat,
    unit_label,
    without_dots,
)
from ncu_roofline.analyses.hierarchical.roofs import Band
from ncu_roofline.analyses.hierarchical.style import (
    COUNTED,
    DEFAULT_UNIT,
    apart,
    is_instruction,
    label_of,
    level_order,
    level_style,
    precision_label,
    precision_order,
)
from ncu_roofline.analyses.hierarchical.text import about_table
from ncu_roofline.analyses.hierarchical.view import TABLES
from ncu_roofline.base.texts import listed, one_line, plural
from ncu_roofline.base.units import format_value, percent
from ncu_roofline.chips import load_spec
from ncu_roofline.chips.verdict import REACHED
from ncu_roofline.formats.ceilings import PUBLISHED
from ncu_roofline.model.columns import KERNELS, LEVELS_WITH_COLUMNS, POINTS, ROOFS, UNUSED
from ncu_roofline.model.selection import order
from ncu_roofline.rendering.frames import Column, Frames, Tables, column, optional, rows, view_of
from ncu_roofline.rendering.page import explanations_of, number, plain_columns, self_contained, shown_table, texts_of
from ncu_roofline.rendering.style import THEMES

_ADVICE = ("kernel", "rule", "type", "title", "text")
_FINDINGS = 3  # whose titles stand beside the name of a kernel
_SHOWN, _ROOFS, _NOTES, _BARS = 100, 500, 12, 30  # rows in words; the rest is summed up or left out
_OTHER = "other"  # label of points that an embedded chart gives without saying of what
# One classic script, in this order: later files use what earlier ones define.
_SCRIPTS = ("csv", "state", "labels", "ranges", "dots", "sweep", "chart", "tip", "columns", "controls", "usage")


def render_html(
    roofline: Frames,
    *,
    title: str = "",
    theme: str = "auto",
    explanations: Iterable[Mapping[str, str]] = (),
    advice: Iterable[Mapping[str, Any]] = (),
    tables: Tables = TABLES,
) -> bytes:
    """The page of a Roofline as UTF-8 bytes.

    ``explanations`` are dicts with report, text and command (what the report lacks and the ncu command that adds it),
    ``advice`` dicts with kernel, rule, type, title and text, where known launches, share and recoverable seconds, those that
    matter most first.  Nothing of the frames is trusted: it reaches the page escaped or as JSON.  ``tables`` declare the
    columns as of the view.
    Raises ValueError for an unknown theme.
    """
    kernels = list(kernels_of(roofline).values())
    absent = without_dots(roofline)
    reports = [one_line(name) for name in captions.report_names(roofline).values()]
    of = f" of {reports[0] if len(reports) == 1 else plural(len(reports), 'report')}" if reports else ""
    statuses, missing = _statuses(roofline, absent), _missing(kernels)
    notes = [captions.above_note(roofline), captions.source_note(roofline), *captions.notes_of(roofline, _NOTES)]
    return self_contained(
        __package__,
        [*(f"page_{name}.js" for name in _SCRIPTS), "page.js"],
        payload(roofline, tables),
        title=one_line(title) or f"{captions.name_of(roofline)}{of}",
        theme=theme,
        subtitle=one_line(captions.subtitle(roofline)),
        reports=reports,
        answers=answers_of(roofline),
        clock=captions.clock_note(roofline),
        roof_note=one_line(captions.roof_note(roofline)),
        tensor=one_line(tensor_caveat(roofline)),
        usage=_usage(roofline, absent),
        answered=tells(roofline, absent),
        has_points=len(column(roofline, "points", "kernel")) > 0,
        has_kernels=bool(kernels),
        view=view_of(roofline),
        statuses=statuses,
        missing=missing,
        lacking=bool(statuses or missing),
        explanations=explanations_of(explanations),
        told=[one_line(note) for note in notes if note],
        roofs=_roofs(roofline),
        advice=_by_kernel(advice),
        strips=getattr(roofline, "strips", ()),
    )


def _statuses(frames: Frames, absent: Sequence[Kernel]) -> list[tuple[str, str]]:
    """Of each reason why kernels have no dots a sentence, and their names; none for those without any work."""
    found: dict[str, list[Kernel]] = {}
    for one in absent:
        if one.status not in ZERO:
            found.setdefault(one.status, []).append(one)
    return [
        (one_line(captions.why_absent(frames, members)[0]), one_line(listed((one.kernel for one in members), NAMED)))
        for members in found.values()
    ]


def _missing(kernels: Iterable[Kernel]) -> list[tuple[str, str]]:
    """Precisions and levels that launches lack and how many these are; of work that was counted and is zero none."""
    found: dict[str, int] = {}
    for one in kernels:
        for word in dict.fromkeys(one.missing.split()) if one.status not in ZERO else ():
            found[word] = found.get(word, 0) + max(one.launches, 1)
    return [(one_line(label_of(word)), plural(found[word], "launch")) for word in sorted(found, key=lambda word: -found[word])]


def _usage(frames: Frames, absent: Sequence[Kernel]) -> dict[str, Any]:
    """Kernels without dots as a table of texts, ranked; the tail is summed up."""
    found = ranked(per_kernel(absent))
    shown, tail = found[:_SHOWN], found[_SHOWN:]
    table = about_table(shown, used=True)
    several = ("device",) if len({one.device for one in found}) > 1 else ()
    show = (table.show[0], *several, *(name for name in table.show[1:] if name not in ("label", "launch")))
    more = [{"kernel": one.marked, **({"launches": one.launches_text} if one.longest else {})} for one in shown]
    cells = [{**row, **known} for row, known in zip(table.rows, more, strict=True)]
    made = shown_table(replace(table, rows=cells, show=show)) or {"headers": [], "rows": []}
    left = [left for _, left in made["headers"]]
    return {
        "headers": [(f"{header[:1].upper()}{header[1:]}", not left) for header, left in made["headers"]],
        "rows": [
            {
                "device": one_line(one.device),
                "reason": "; ".join(filter(None, (one.reason, f"no dot: {captions.why(frames, one.status)}"))),
                "cells": [(text, not left) for text, left in zip(row, left, strict=True)],
            }
            for one, row in zip(shown, made["rows"], strict=True)
        ],
        "more": f"{len(tail)} more kernels{captions.of_the_time(one.time_share for one in tail)}" if tail else "",
        "note": LONGEST if any(one.longest for one in shown) else "",
    }


def _roofs(frames: Frames) -> list[dict[str, str]]:
    """Every roof as a row of texts."""
    called, found = captions.report_names(frames), []
    names = ("label", "source", "device", "metrics", "notes")
    about = ("report", "origin", "unit", "clock", "clock_basis", "value", "value_min", "value_max")
    for *texts, report, origin, unit, clock, basis, value, low, high in rows(frames, "roofs", *names, *about):
        row = dict(zip(names, map(one_line, texts), strict=True)) | {"report": one_line(called.get(report, report))}
        row["value"] = Band.of(value, low, high).text(unit, 4) if unit else f"{value:.4g}"
        row["origin"] = PUBLISHED if row["source"] == PUBLISHED and origin != UNUSED else one_line(origin)
        row["clock"] = f"{format_value(clock, 'hertz')} {one_line(basis)}".strip() if math.isfinite(clock) else ""
        found.append(row)
    return found[:_ROOFS]


def _by_kernel(advice: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Findings of a kernel together with the first of their titles, kernels and findings in the order of ``advice``."""
    groups: dict[str, list[dict[str, str]]] = {}
    for entry in advice:
        (texts,) = texts_of([entry], _ADVICE)
        groups.setdefault(texts["kernel"], []).append({**texts, "facts": _concerns(entry)})
    found = []
    for kernel, findings in groups.items():
        titles = list(dict.fromkeys(entry["title"] for entry in findings))
        more = [f"{len(titles) - _FINDINGS} more"] if len(titles) > _FINDINGS else []
        found.append({"kernel": kernel, "findings": findings, "summary": "; ".join([*titles[:_FINDINGS], *more])})
    return found


def _concerns(entry: Mapping[str, Any]) -> str:
    """How much a finding is about, as far as that is known."""
    launches, share, seconds = (number(entry.get(key)) for key in ("launches", "share", "recoverable"))
    parts = [f"{launches} launches"] if launches is not None and launches > 1 else []
    parts += [f"{percent(share)} of the time"] if share is not None else []
    parts += [f"could save {format_value(seconds, 'second', 3)}"] if seconds else []
    return ", ".join(parts)


def payload(frames: Frames, tables: Tables) -> dict[str, Any]:
    """Everything the script of the page needs, as values that JSON knows: columns with a pool of texts.

    Of the kernels those that have points; a point says what its ``owner`` does not.
    """
    texts: dict[str, int] = {}
    called = captions.report_names(frames)
    kernels, points, roofs = (
        plain_columns(frames, name, declared, called)
        for name, declared in (("kernels", KERNELS), ("points", POINTS), ("roofs", ROOFS))
    )
    devices = list(dict.fromkeys(kernels["device"]))
    places = {key: place for place, key in enumerate(zip(*(kernels[name] for name in KEY), strict=True))}
    owners = [places[key] for key in zip(*(points[name] for name in KEY), strict=True)]
    kept = sorted(set(owners))
    told = {name: [values[owner] for owner in owners] for name, values in kernels.items()}
    beyond = {name: values for name, values in points.items() if told.get(name) != values}
    return {
        "devices": devices,
        "levels": _levels(frames),
        "precisions": _precisions(frames),
        "counted": {
            unit: {"intensity": one.intensity_axis, "unit": one.intensity_unit, "of": one.performance_of}
            for unit, one in COUNTED.items()
        },
        "unit": DEFAULT_UNIT.get(view_of(frames), "flop"),
        "columns": {one.name: [one.unit, one.meaning] for one in (*tables["kernels"], *tables["points"])},
        "kernels": _packed({name: [of[row] for row in kept] for name, of in kernels.items()}, KERNELS, texts),
        "points": {**_packed(beyond, POINTS, texts), "owner": list(map({row: n for n, row in enumerate(kept)}.get, owners))},
        "roofs": _packed(roofs, ROOFS, texts),
        "texts": list(texts),
        "order": _order(frames, kept),
        "usage": _bars(frames),
    }


def _packed(columns: Mapping[str, list[Any]], declared: Iterable[Column], texts: dict[str, int]) -> dict[str, Any]:
    """Columns with their texts replaced by positions in the pool ``texts``, which grows, and how many ``rows`` they have.

    One value instead of a list stands in every row, and the name of an earlier column for the values of that one.
    """
    kept = [one for one in declared if one.name in columns]
    count = max((len(columns[one.name]) for one in kept), default=0)
    packed: dict[str, Any] = {"rows": count, "text_columns": [c.name for c in kept if c.dtype == "str"]}
    for one in kept:
        values = columns[one.name]
        if one.dtype == "str":
            values = [texts.setdefault(v, len(texts)) for v in values]
        twin = next((name for name, other in packed.items() if isinstance(other, list) and other == values), None)
        same = values[0] if values and all(value == values[0] for value in values) else None
        packed[one.name] = same if same is not None or not any(v is not None for v in values) else twin or values
    return packed


def _order(frames: Frames, kept: Sequence[int]) -> list[int]:
    """Places in ``kept``, which are rows of the kernels, as `ranking` sorts these."""
    named = ("device", ""), ("seconds", math.nan), ("recoverable", math.nan)
    sorted_rows = order(zip(*(optional(frames, "kernels", name, missing) for name, missing in named), strict=True))
    places = {row: place for place, row in enumerate(sorted_rows)}
    return sorted(range(len(kept)), key=lambda index: places[kept[index]])


def _bars(frames: Frames) -> dict[str, Any]:
    """The utilisation bars of kernels without dots: units with their colours, and for each kernel its shares of their peaks."""
    data = bars(frames, _BARS)
    neutral = {"light": THEMES["light"].compute, "dark": THEMES["dark"].compute}
    styles = {unit: level_style(unit) for unit in data.units if unit in LEVELS_WITH_COLUMNS}
    units = [
        {"label": unit_label(unit)} | ({"light": styles[unit].light, "dark": styles[unit].dark} if unit in styles else neutral)
        for unit in data.units
    ]
    found = [
        {
            "kernel": one_line(row.marked),
            "device": one_line(row.device),
            "time": number(row.seconds),
            "share": number(row.time_share),
            "verdict": ", ".join(filter(None, (row.verdict, row.headroom_text))),
            "shares": list(map(number, data.shares(row))),
            "texts": [row.level_text(unit) or percent(share) for unit, share in zip(data.units, data.shares(row), strict=True)],
        }
        for row in ranked(data.rows)
    ]
    return {"units": units, "rows": found, "total": data.total, "time": data.of_time, "reached": REACHED}


def _levels(frames: Frames) -> list[dict[str, Any]]:
    """Levels that have points or roofs, innermost first, each with label, colours and whether it is of the chain of memories.

    "" only if a point has no level.
    """
    ids = {one_line(v) for name in ("points", "roofs") for v in column(frames, name, "level") if v or name == "points"}
    chain, styles = load_spec().chain, {level: level_style(level) for level in level_order(ids)}
    return [
        {"id": level, "label": style.label or _OTHER, "light": style.light, "dark": style.dark, "chain": level in chain}
        for level, style in styles.items()
    ]


def _precisions(frames: Frames) -> list[dict[str, Any]]:
    """Precisions that have points, widest first, "mixed" last; ``part`` of a kind of instruction that another one holds."""
    found = sorted({one_line(v) for v in column(frames, "points", "precision")}, key=precision_order)

    def part(one: str) -> bool:
        return is_instruction(one) and not apart(one) and any(one.startswith(f"{other}.") for other in found)

    return [
        {"id": one, "label": precision_label(one) if one else _OTHER, "apart": apart(one), "part": part(one)} for one in found
    ]
