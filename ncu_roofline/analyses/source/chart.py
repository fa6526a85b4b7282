"""What charts of the source view draw of a launch: the kernel's dots at its levels, and the roofs they stand under."""

from __future__ import annotations

import math
from collections.abc import Sequence, Set
from typing import Any

from ncu_roofline.analyses.hierarchical.roofs import RoofRow, roof_rows, roofs_of, tops
from ncu_roofline.analyses.hierarchical.style import COUNTED, level_order, level_style, precision_label
from ncu_roofline.analyses.source.columns import INT32, INTEGERS, WORKS
from ncu_roofline.analyses.source.launches import Launch
from ncu_roofline.chips import load_spec
from ncu_roofline.model.work import MIXED
from ncu_roofline.rendering.frames import rows
from ncu_roofline.rendering.page import number

_WORK, _OPERATIONS = "flop", "op"
_PRECISION = 3  # of a row of roofs


def chart_of(launch: Launch) -> dict[str, Any]:
    """Dots and roofs of a launch; the dots are those of the precision with most work, of what performance counts.

    What its loops do has roofs even where the kernel has no dot, and what they don't has none: counters of the kernel take some
    loads of constants for work.
    """
    roofline = launch.frames.roofline
    about = ("precision", "level", "unit", "work", "intensity", "performance", "attainable", "fraction")
    every = rows(roofline, "points", "report", "launch", "kernel", "device", *about)
    done, never = _kinds(launch)
    points = [dict(zip(about, row[4:], strict=True)) for row in every if row[:4] == launch.key and _kind(row[4]) not in never]
    drawn = [point for point in points if all(0 < point[name] < math.inf for name in ("intensity", "performance"))]
    # Floating-point work before integers.
    most = max(drawn, key=lambda point: (point["unit"] == _WORK, point["work"]), default=None)
    chosen = [point for point in drawn if most and point["precision"] == most["precision"]]
    unit = most["unit"] if most else _OPERATIONS if launch.works == INTEGERS else _WORK
    precisions = {point["precision"] for point in points if point["unit"] == unit} or done
    nearest = load_spec().chain[0]
    mine = [row for row in roof_rows(roofline).get(launch.device, ()) if _kind(row[_PRECISION]) not in never]
    counted = COUNTED.get(unit, COUNTED[_WORK])
    numbers = ("intensity", "performance", "attainable", "fraction")
    return {
        "unit": unit,
        "label": precision_label(most["precision"]) if most else "",
        "axes": [counted.intensity_axis, counted.intensity_unit, f"{unit}/s"],
        "dots": [{"level": one["level"], **{name: number(one[name]) for name in numbers}} for one in chosen],
        "roofs": _roofs(mine, precisions, unit),
        "levels": {level: _hues(level) for level in level_order({point["level"] for point in points} | {nearest})},
        "nearest": nearest,
    }


def _kinds(launch: Launch) -> tuple[set[str], Set[str]]:
    """Of the kinds of work those that loops do, and those that nothing is to be drawn of: none is done, or another counts."""
    integers, loops = launch.works == INTEGERS, launch.rows("loops")
    counts = (INT32,) if integers else WORKS
    done = {kind for loop in loops for kind in counts if loop[f"work_{kind}"] > 0}
    none = {kind for kind in counts if loops and all(loop[f"work_{kind}"] == 0 for loop in loops)}
    if integers:
        return done, {*WORKS, MIXED}
    alone = len(none) >= len(WORKS) - 1 and "tensor" in none  # then nothing is mixed; tensor types may be among themselves
    return done, none | {INT32} | ({MIXED} if alone else set())


def _kind(precision: str) -> str:
    return precision.partition(".")[0]


def _hues(level: str) -> list[str]:
    style = level_style(level)
    return [style.label, style.light, style.dark]


def _roofs(given: Sequence[RoofRow], precisions: set[str], unit: str) -> list[dict[str, Any]]:
    """Of compute roofs the highest of each precision, of bandwidths all."""
    found = []
    for roof in tops(roofs_of(given, precisions, unit), ()):
        origin = "theoretical" if math.isnan(roof.measured) else "measured"
        if roof.kind != "wall":
            found.append(
                {
                    "kind": roof.kind,
                    "level": roof.level,
                    "label": roof.label,
                    "unit": roof.unit,
                    "value": number(roof.highest),
                    "text": roof.band(origin).text(roof.unit),
                    "hues": _hues(roof.level) if roof.kind == "bandwidth" else None,
                    "origin": origin,
                }
            )
    return found
