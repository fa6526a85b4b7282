"""Frames to the JSON that the page carries: columns with a pool of texts, and nothing that a browser could take for markup."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ncu_roofline.analyses.hierarchical.answer import ranked
from ncu_roofline.analyses.hierarchical.captions import report_names
from ncu_roofline.analyses.hierarchical.style import (
    COUNTED,
    DEFAULT_UNIT,
    apart,
    is_instruction,
    level_order,
    level_style,
    precision_label,
    precision_order,
)
from ncu_roofline.analyses.hierarchical.usage import bars, level_text, unit_label
from ncu_roofline.base.texts import one_line
from ncu_roofline.base.units import percent
from ncu_roofline.chips import load_spec
from ncu_roofline.chips.verdict import REACHED
from ncu_roofline.model.columns import KERNELS, LEVELS_WITH_COLUMNS, POINTS, ROOFS
from ncu_roofline.model.ranking import order
from ncu_roofline.rendering.frames import Column, Frames, Tables, column, optional, view_of
from ncu_roofline.rendering.page import number, plain_columns
from ncu_roofline.rendering.style import THEMES

_KEY = ("report", "launch", "kernel", "device", "step")
_OTHER = "other"  # label of points that an embedded chart gives without saying of what
_MOST_BARS = 30


def payload(frames: Frames, tables: Tables) -> dict[str, Any]:
    """Everything the script of the page needs, as values that JSON knows."""
    texts: dict[str, int] = {}
    called = report_names(frames)
    kernels = plain_columns(frames, "kernels", KERNELS, called)
    points = plain_columns(frames, "points", POINTS, called)
    devices = list(dict.fromkeys(kernels["device"]))
    owners, kept = _drawn(kernels, _owners(kernels, points))
    found = precisions(frames)
    roofs = plain_columns(frames, "roofs", ROOFS, called)
    return {
        "devices": devices,
        "levels": levels(frames),
        "precisions": [
            {"id": p, "label": precision_label(p) if p else _OTHER, "apart": apart(p), "part": _is_part(p, found)}
            for p in found
        ],
        "counted": {
            unit: {"intensity": one.intensity_axis, "unit": one.intensity_unit, "of": one.performance_of}
            for unit, one in COUNTED.items()
        },
        "unit": DEFAULT_UNIT.get(view_of(frames), "flop"),
        "columns": {one.name: [one.unit, one.meaning] for one in (*tables["kernels"], *tables["points"])},
        "kernels": _packed(kernels, KERNELS, texts),
        "points": {**_packed(_beyond(points, kernels, owners), POINTS, texts), "owner": owners},
        "roofs": _packed(roofs, ROOFS, texts),
        "texts": list(texts),
        "order": _order(frames, kept),
        "usage": _bars(frames),
    }


def _order(frames: Frames, kept: Sequence[int]) -> list[int]:
    """Places in ``kept``, which are rows of the kernels, as `ranking` sorts these; what is in no frame comes last."""
    named = ("device", ""), ("seconds", math.nan), ("recoverable", math.nan)
    ranked = order(zip(*(optional(frames, "kernels", name, missing) for name, missing in named), strict=True))
    places = {row: place for place, row in enumerate(ranked)}
    return sorted(range(len(kept)), key=lambda index: places.get(kept[index], len(places)))


def _bars(frames: Frames) -> dict[str, Any]:
    """The utilisation bars of kernels without dots: units with their colours, and for each kernel its shares of their peaks."""
    data = bars(frames, _MOST_BARS)
    neutral = {"light": THEMES["light"].compute, "dark": THEMES["dark"].compute}
    styles = {unit: level_style(unit) for unit in data.units if unit in LEVELS_WITH_COLUMNS}
    units = [
        {"label": unit_label(unit)} | ({"light": styles[unit].light, "dark": styles[unit].dark} if unit in styles else neutral)
        for unit in data.units
    ]
    rows = [
        {
            "kernel": one_line(row.marked),
            "device": one_line(row.device),
            "time": number(row.seconds),
            "share": number(row.share),
            "verdict": ", ".join(filter(None, (row.verdict, row.headroom_text))),
            "shares": [number(data.shares(row).get(unit, math.nan)) for unit in data.units],
            "texts": [level_text(row, unit) or percent(data.shares(row).get(unit, math.nan)) for unit in data.units],
        }
        for row in ranked(data.rows)
    ]
    return {"units": units, "rows": rows, "total": data.total, "time": data.of_time, "reached": REACHED}


def levels(frames: Frames) -> list[dict[str, Any]]:
    """Levels that have points or roofs, innermost first, each with label, colours and whether it is of the chain of memories.

    "" only if a point has no level.
    """
    ids = {one_line(v) for name in ("points", "roofs") for v in column(frames, name, "level") if v or name == "points"}
    styles = [(level, level_style(level)) for level in level_order(ids)]
    chain = load_spec().chain
    return [
        {"id": level, "label": style.label or _OTHER, "light": style.light, "dark": style.dark, "chain": level in chain}
        for level, style in styles
    ]


def _is_part(precision: str, among: Sequence[str]) -> bool:
    """Whether a kind of instruction is a part of another one that is there."""
    return is_instruction(precision) and not apart(precision) and any(precision.startswith(f"{other}.") for other in among)


def precisions(frames: Frames) -> list[str]:
    """Precisions that have points, widest first, "mixed" last."""
    return sorted({one_line(v) for v in column(frames, "points", "precision")}, key=precision_order)


def _packed(columns: Mapping[str, list[Any]], declared: Iterable[Column], texts: dict[str, int]) -> dict[str, Any]:
    """Columns with their texts replaced by positions in the pool ``texts``, which grows, and how many ``rows`` they have.

    One value instead of a list stands in every row, and the name of an earlier column for the values of that one.
    """
    kept = [one for one in declared if one.name in columns]
    rows = max((len(columns[one.name]) for one in kept), default=0)
    packed: dict[str, Any] = {"rows": rows, "text_columns": [c.name for c in kept if c.dtype == "str"]}
    for one in kept:
        values = columns[one.name]
        if one.dtype == "str":
            values = [texts.setdefault(v, len(texts)) for v in values]
        twin = next((name for name, other in packed.items() if isinstance(other, list) and other == values), None)
        same = values[0] if values and all(value == values[0] for value in values) else None
        packed[one.name] = same if same is not None or not any(v is not None for v in values) else twin or values
    return packed


def _beyond(points: dict[str, list[Any]], kernels: Mapping[str, list[Any]], owners: Sequence[int]) -> dict[str, list[Any]]:
    """The columns of the points that say more than their kernels' rows do."""
    told = {name: [values[owner] for owner in owners] for name, values in kernels.items() if name in points}
    return {name: values for name, values in points.items() if told.get(name) != values}


def _owners(kernels: dict[str, list[Any]], points: Mapping[str, list[Any]]) -> list[int]:
    """For each point the row of its kernel; a point without one gets a row made of what the point knows."""
    rows = {key: index for index, key in enumerate(zip(*(kernels[name] for name in _KEY), strict=True))}
    owners = []
    for index, key in enumerate(zip(*(points[name] for name in _KEY), strict=True)):
        if key not in rows:
            rows[key] = len(kernels["kernel"])
            _adopt(kernels, points, index)
        owners.append(rows[key])
    return owners


def _drawn(kernels: dict[str, list[Any]], owners: Sequence[int]) -> tuple[list[int], list[int]]:
    """Leave of ``kernels`` those that have points, which is all that the script looks at.

    Returns their ``owners`` in what is left, and which rows these are.
    """
    kept = sorted(set(owners))
    for name, values in kernels.items():
        kernels[name] = [values[row] for row in kept]
    position = {row: index for index, row in enumerate(kept)}
    return [position[owner] for owner in owners], kept


def _adopt(kernels: dict[str, list[Any]], points: Mapping[str, list[Any]], index: int) -> None:
    """Append a kernel row for point ``index``."""
    for one in KERNELS:
        missing = "" if one.dtype == "str" else None
        kernels[one.name].append(points[one.name][index] if one.name in points else missing)
    kernels["name"][-1] = points["kernel"][index]
    kernels["status"][-1] = "ok"
    kernels["notes"][-1] = ""
    kernels["work"][-1] = None
