"""What the chart of the source page draws of a launch: the kernel's dots at its levels, and the roofs they stand under."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

from ncu_roofline.analyses.hierarchical.roofs import roof_rows, roofs_of, tops
from ncu_roofline.analyses.hierarchical.style import COUNTED, level_order, level_style, precision_label
from ncu_roofline.analyses.source.columns import WORKS
from ncu_roofline.facts import load_spec
from ncu_roofline.model.roofline import Roofline
from ncu_roofline.rendering.frames import rows
from ncu_roofline.rendering.page import number

_WORK = "flop"


def chart_of(roofline: Roofline, key: tuple[str, int, str, str], kinds: Set[str]) -> dict[str, Any]:
    """Dots and roofs of a launch; the dots are those of the precision with most work.

    ``kinds``: of the work that its loops do, which have roofs even where the kernel has no dot.
    """
    names = ("precision", "level", "unit", "work", "intensity", "performance", "attainable", "fraction")
    points = [
        dict(zip(names, row, strict=True))
        for *found, row in (
            (*one[:4], one[4:]) for one in rows(roofline, "points", "report", "launch", "kernel", "device", *names)
        )
        if tuple(found) == key
    ]
    chosen = _chosen(points)
    unit = chosen[0]["unit"] if chosen else _WORK
    precisions = {point["precision"] for point in points if point["unit"] == unit} or set(kinds)
    if kinds:  # work of other kinds was counted and none in the end: constants that half-precision units load
        precisions -= set(WORKS) - kinds
    nearest = load_spec().chain[0]
    counted = COUNTED.get(unit, COUNTED[_WORK])
    return {
        "unit": unit,
        "label": precision_label(chosen[0]["precision"]) if chosen else "",
        "axes": [counted.intensity_axis, counted.intensity_unit, f"{unit}/s"],
        "dots": [_dot(point) for point in chosen],
        "roofs": _roofs(roofline, key[3], precisions, unit),
        "levels": {level: _hues(level) for level in level_order({point["level"] for point in points} | {nearest})},
        "nearest": nearest,
    }


def kinds_of(loops: Iterable[Mapping[str, Any]]) -> set[str]:
    """The kinds of work that loops do."""
    return {kind for loop in loops for kind in WORKS if loop[f"work_{kind}"] > 0}


def _chosen(points: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The points that stand on logarithmic axes, of the precision with most work; floating-point work before integers."""
    drawn = [point for point in points if 0 < point["intensity"] < math.inf and 0 < point["performance"] < math.inf]
    most = max(drawn, key=lambda point: (point["unit"] == _WORK, point["work"]), default=None)
    return [point for point in drawn if most and point["precision"] == most["precision"]]


def _dot(point: Mapping[str, Any]) -> dict[str, Any]:
    numbers = ("intensity", "performance", "attainable", "fraction")
    return {"level": point["level"], **{name: number(point[name]) for name in numbers}}


def _hues(level: str) -> list[str]:
    style = level_style(level)
    return [style.label, style.light, style.dark]


def _roofs(roofline: Roofline, device: str, precisions: set[str], unit: str) -> list[dict[str, Any]]:
    """Of compute roofs the highest of each precision, of bandwidths all."""
    found = roofs_of(roof_rows(roofline).get(device, ()), precisions, unit)
    return [
        {
            "kind": roof.kind,
            "level": roof.level,
            "label": roof.label,
            "unit": roof.unit,
            "value": number(roof.highest),
            "text": roof.band("theoretical" if math.isnan(roof.measured) else "measured").text(roof.unit),
            "hues": _hues(roof.level) if roof.kind == "bandwidth" else None,
            "origin": "theoretical" if math.isnan(roof.measured) else "measured",
        }
        for roof in tops(found, ())
        if roof.kind != "wall"
    ]
