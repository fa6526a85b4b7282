"""A Roofline as a data file of NERSC's plot_roofline_hierarchical.py: one precision of one GPU, a name and values per line.

The same text that `ncu_roofline.formats.inputs.roofline_data` reads: GB/s, GFLOP/s and FLOP/byte with every digit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from ncu_roofline.analyses.hierarchical.style import level_order, precision_label
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.texts import clean
from ncu_roofline.rendering.frames import Frames, records, table, view_of

_LEVEL_NAMES = {"l1": "L1", "shared": "Shared", "l2": "L2", "l3": "L3", "dram": "HBM", "system": "System"}
_ROOF_NAMES = {"fma": "FMA", "nofma": "No-FMA", "divide": "Div FMA", "divide_nofma": "Div No-FMA"}
_QUOTES = dict.fromkeys(map(ord, "'\"`\N{ACUTE ACCENT}\N{LEFT SINGLE QUOTATION MARK}\N{RIGHT SINGLE QUOTATION MARK}"), "_")
Row = dict[str, Any]


def render_nersc(roofline: Frames) -> bytes:
    """Roofs and points of the precision with the most work, which a comment names; measured roofs where given.

    Raises RooflineError for points of several GPUs, which the format can't tell apart, and for other views.
    """
    points = records(table(roofline, "points"))
    if view_of(roofline) != "roofline":
        raise _error("it holds rooflines only", "Leave out --view, or choose another format.")
    if not points:
        raise _error("no kernel has a point", "Ask `ncu-roofline explain` what the report lacks.")
    devices = list(dict.fromkeys(point["device"] for point in points))
    if len(devices) > 1:
        reason = f"it has one set of roofs, and the points are of {len(devices)} GPUs"
        raise _error(reason, "Give the reports of one GPU.")
    precision, note = _precision(points)
    kernels: dict[tuple[Any, ...], dict[str, Row]] = {}
    for point in points:
        if point["precision"] == precision:
            key = tuple(point[name] for name in ("report", "launch", "kernel", "label"))
            kernels.setdefault(key, {}).setdefault(point["level"], point)
    levels = level_order({level for of_levels in kernels.values() for level in of_levels})
    # The format's readers take DRAM to be HBM; where a machine has both, each gets its own name.
    names = {level: _LEVEL_NAMES.get(level, level.upper()) for level in levels}
    if "mcdram" in names:
        names.update(mcdram="HBM", dram="DDR")
    # Its readers look for their keywords anywhere in a line: comments stand apart and use none of them.
    lines = [f"# {clean(devices[0]) or 'unnamed machine'}, {note}", "# in GB/s, GFLOP/s and FLOP/byte"]
    lines += [*_roofs(records(table(roofline, "roofs")), precision, names), ""]
    for level, name in names.items():
        found = [of_levels[level]["intensity"] if level in of_levels else math.nan for of_levels in kernels.values()]
        lines.append(f"AI_{name} {_values(found)}")
    lines.append(f"FLOPS {_values(next(iter(of_levels.values()))['performance'] / 1e9 for of_levels in kernels.values())}")
    lines.append(f"labels {_quoted(str(label or kernel) for _, _, kernel, label in kernels)}")
    return "\n".join(lines).encode("utf-8", "replace") + b"\n"


def _error(reason: str, next_step: str) -> RooflineError:
    return RooflineError("Cannot render", "nersc", reason, next_step)


def _precision(points: Sequence[Row]) -> tuple[str, str]:
    """The precision to write, and a comment on the choice."""
    single = [point for point in points if point["precision"] != "mixed"] or points
    totals: dict[str, float] = {}
    seen = set()
    for point in single:
        key = tuple(point[name] for name in ("report", "launch", "kernel", "label", "precision"))
        if key not in seen:
            amount = point["performance"] if math.isnan(point["work"]) else point["work"]  # files of rates have no work
            totals[point["precision"]] = totals.get(point["precision"], 0.0) + (0.0 if math.isnan(amount) else amount)
        seen.add(key)
    best = max(totals, key=totals.__getitem__)
    others = ", ".join(precision_label(one) for one in totals if one != best)
    return best, f"{precision_label(best)} only" + (f"; with less work and left out: {others}" if others else "")


def _roofs(roofs: Sequence[Row], precision: str, names: dict[str, str]) -> Iterable[str]:
    """Bandwidths and compute roofs, each kind in two lines."""
    ids = dict.fromkeys(roof["roof"] for roof in roofs if roof["precision"] == precision)
    pairs = [("mem", name, [roof for roof in roofs if roof["level"] == level]) for level, name in names.items()]
    pairs += [("comp", _roof_name(precision, str(one)), [roof for roof in roofs if roof["roof"] == one]) for one in ids]
    for kind in ("mem", "comp"):
        best = [
            (name, min(rows, key=lambda row: row["origin"] != "measured")) for of, name, rows in pairs if of == kind and rows
        ]
        if best:
            yield f"{kind}roofs {_values(roof['value'] / 1e9 for _, roof in best)}"
            called = (name if roof["origin"] == "measured" else f"Theoretical {name}" for name, roof in best)
            yield f"{kind}_roof_names {_quoted(called)}"


def _roof_name(precision: str, roof: str) -> str:
    kind = roof.removeprefix(precision).lstrip(".")
    words = ("" if precision == "fp" else precision_label(precision), _ROOF_NAMES.get(kind, kind))
    return " ".join(filter(None, words))


def _values(values: Iterable[float]) -> str:
    return " ".join(repr(float(value)) for value in values)


def _quoted(names: Iterable[str]) -> str:
    """Names in straight quotes, without any inside, since the format has no way to write one."""
    return " ".join(f"'{clean(name, None).translate(_QUOTES)}'" for name in names)
