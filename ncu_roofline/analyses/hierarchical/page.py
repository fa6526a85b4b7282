"""The interactive page: one self-contained html file, drawn by plotly.js, that needs no network and runs from file://."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ncu_roofline.analyses.hierarchical import captions, kernels, style
from ncu_roofline.analyses.hierarchical.text import about_table
from ncu_roofline.analyses.hierarchical.view import TABLES
from ncu_roofline.base.texts import listed, one_line, plural
from ncu_roofline.base.units import format_value, percent
from ncu_roofline.chips import load_spec
from ncu_roofline.chips.tables import EXECUTED
from ncu_roofline.formats.ceilings import PUBLISHED
from ncu_roofline.model.columns import KERNELS, POINTS, ROOFS, UNUSED
from ncu_roofline.model.selection import order
from ncu_roofline.rendering.chart import THEMES
from ncu_roofline.rendering.document import Table
from ncu_roofline.rendering.frames import Frames, Tables, column, rows, view_of
from ncu_roofline.rendering.page import number, packed, plain_columns, self_contained, shown_table, texts_of

_FINDINGS = 3  # whose titles stand beside the name of a kernel
_SHOWN, _ROOFS, _NOTES = 100, 500, 12  # rows in words; the rest is summed up or left out
# One classic script, in this order: later files use what earlier ones define.
_SCRIPTS = ("labels", "plot", "state", "ranges", "dots", "sweep", "chart", "tip", "columns", "controls")


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
    columns as of the view; a table that the result has ``beside`` these stands below the chart.
    Raises ValueError for an unknown theme.
    """
    every, absent = list(kernels.kernels_of(roofline).values()), kernels.without_dots(roofline)
    called = captions.report_names(roofline)
    reports = [one_line(name) for name in called.values()]
    of = f" of {reports[0] if len(reports) == 1 else plural(len(reports), 'report')}" if reports else ""
    roofs = []
    names = ("label", "source", "device", "metrics", "notes")
    about = ("report", "origin", "unit", "clock", "clock_basis", "value", "value_min", "value_max")
    for *texts, report, origin, unit, clock, basis, value, low, high in rows(roofline, "roofs", *names, *about):
        row = dict(zip(names, map(one_line, texts), strict=True)) | {"report": one_line(called.get(report, report))}
        row["value"] = style.Band.of([(value, low, high)]).text(unit, 4) if unit else f"{value:.4g}"
        row["origin"] = PUBLISHED if row["source"] == PUBLISHED and origin != UNUSED else one_line(origin)
        row["clock"] = f"{format_value(clock, 'hertz')} {one_line(basis)}".strip() if math.isfinite(clock) else ""
        roofs.append(row)
    notes = [captions.above_note(roofline), captions.source_note(roofline), *captions.notes_of(roofline, _NOTES)]
    notes += map(one_line, getattr(roofline, "notes", ()))
    beside: Table | None = getattr(roofline, "beside", None)
    return self_contained(
        __package__,
        [*(f"page_{name}.js" for name in _SCRIPTS), "page.js"],
        payload(roofline, tables, every),
        title=one_line(title) or f"{captions.name_of(roofline)}{of}",
        theme=theme,
        subtitle=captions.subtitle(roofline),
        reports=reports,
        answers=kernels.answers_of(roofline),
        clock=captions.clock_note(roofline),
        roof_note=one_line(captions.roof_note(roofline)),
        tensor=one_line(kernels.tensor_caveat(roofline)),
        usage=_usage(roofline, absent),
        answered=kernels.tells(roofline, absent),
        has_points=len(column(roofline, "points", "kernel")) > 0,
        has_kernels=bool(every),
        view=view_of(roofline),
        lacking=captions.why_absent(roofline, (one for one in absent if one.status not in kernels.ZERO), lacks=True),
        explanations=explanations,
        told=[one_line(note) for note in notes if note],
        roofs=roofs[:_ROOFS],
        advice=_by_kernel(advice),
        beside={"title": beside.title, "about": beside.about, "table": shown_table(beside)} if beside else None,
    )


def _usage(frames: Frames, absent: Sequence[kernels.Kernel]) -> dict[str, Any]:
    """Kernels without dots as a table of texts and bars, ranked; the tail is summed up."""
    found = kernels.ranked(kernels.per_kernel(absent))
    shown, tail = found[:_SHOWN], found[_SHOWN:]
    table = about_table(shown, used=True)
    several = ("device",) if len({one.device for one in found}) > 1 else ()
    show = (table.show[0], *several, *(name for name in table.show[1:] if name not in ("label", "launch")))
    more = [{"kernel": one.marked, **({"launches": one.launches_text} if one.longest else {})} for one in shown]
    cells = [{**row, **known} for row, known in zip(table.rows, more, strict=True)]
    made = shown_table(replace(table, rows=cells, show=show)) or {"headers": [], "rows": []}
    headers = [(f"{header[:1].upper()}{header[1:]}", not left) for header, left in made["headers"]]
    inside = style.Style("SM", THEMES["light"].compute, THEMES["dark"].compute)
    units = {unit: inside if unit == kernels.SM else style.level_style(unit) for unit in kernels.units_of(shown)}
    return {
        "headers": headers,
        "units": list(units.values()),
        "rows": [
            {
                "device": one_line(one.device),
                "reason": "; ".join(filter(None, (one.reason, f"no dot: {captions.why(frames, one.status)}"))),
                "cells": [(header, text, number) for (header, number), text in zip(headers, row, strict=True)],
                "bars": [(*look, one.fractions[unit]) for unit, look in units.items() if unit in one.fractions],
            }
            for one, row in zip(shown, made["rows"], strict=True)
        ],
        "more": f"{len(tail)} more kernels{captions.of_the_time(one.time_share for one in tail)}" if tail else "",
        "note": kernels.LONGEST if any(one.longest for one in shown) else "",
    }


def _by_kernel(advice: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Findings of a kernel together with the first of their titles, kernels and findings in the order of ``advice``."""
    groups: dict[str, list[dict[str, str]]] = {}
    for entry in advice:
        (texts,) = texts_of([entry], ("kernel", "rule", "type", "title", "text"))
        launches, share, seconds = (number(entry.get(key)) for key in ("launches", "share", "recoverable"))
        parts = [f"{launches} launches"] if launches is not None and launches > 1 else []
        parts += [f"{percent(share)} of the time"] if share is not None else []
        parts += [f"could save {format_value(seconds, 'second', 3)}"] if seconds else []
        groups.setdefault(texts["kernel"], []).append({**texts, "facts": ", ".join(parts)})
    return [
        {"kernel": kernel, "findings": findings, "summary": listed((entry["title"] for entry in findings), _FINDINGS)}
        for kernel, findings in groups.items()
    ]


def payload(frames: Frames, tables: Tables, every: Sequence[kernels.Kernel]) -> dict[str, Any]:
    """Everything the script of the page needs, as values that JSON knows: columns with a pool of texts.

    Of the kernels those that have points, their ``order`` as `ranked` has it; a point says what its ``owner`` does not.
    Of levels whether they are of the chain of memories, of precisions whether they are ``part`` of a kind of instruction.
    """
    texts: dict[str, int] = {}
    called = captions.report_names(frames)
    about, points, roofs = (
        plain_columns(frames, name, declared, called)
        for name, declared in (("kernels", KERNELS), ("points", POINTS), ("roofs", ROOFS))
    )
    places = {key: place for place, key in enumerate(zip(*(about[name] for name in kernels.KEY), strict=True))}
    owners = [places[key] for key in zip(*(points[name] for name in kernels.KEY), strict=True)]
    keys, strips = list(rows(frames, "kernels", "report", "device", "kernel")), getattr(frames, "strips", {})
    kept = {row: place for place, row in enumerate(sorted(set(owners)))}
    told = {name: [values[owner] for owner in owners] for name, values in about.items()}
    beyond = {name: values for name, values in points.items() if told.get(name) != values}
    ids = {*points["level"], *filter(None, roofs["level"])}  # "" only if a point has no level
    levels = {level: style.level_style(level) for level in style.level_order(ids)}
    precisions = sorted(set(points["precision"]), key=style.precision_order)
    whole = {one for one in precisions if one.startswith(EXECUTED) and not style.apart(one)}
    part = {one for one in whole if any(one.startswith(f"{other}.") for other in precisions)}
    return {
        "devices": list(dict.fromkeys(about["device"])),
        "levels": [{"id": level, **look._asdict(), "chain": level in load_spec().chain} for level, look in levels.items()],
        "precisions": [
            {"id": one, "label": style.precision_label(one) if one else "", "apart": style.apart(one), "part": one in part}
            for one in precisions
        ],
        "counted": {
            unit: {"intensity": one.intensity_axis, "unit": one.intensity_unit, "of": one.performance_of}
            for unit, one in style.COUNTED.items()
        },
        "unit": style.default_unit(frames),
        "columns": {one.name: [one.unit, one.meaning] for one in (*tables["kernels"], *tables["points"])},
        "kernels": packed({name: [of[row] for row in kept] for name, of in about.items()}, KERNELS, texts),
        "strips": [strips.get(keys[row]) for row in kept],
        "points": {**packed(beyond, POINTS, texts), "owner": [kept[owner] for owner in owners]},
        "roofs": packed(roofs, ROOFS, texts),
        "texts": list(texts),
        "order": [kept[row] for row in order((one.device, one.seconds, one.recoverable) for one in every) if row in kept],
    }
