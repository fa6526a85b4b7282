"""A Roofline as a data file of NERSC's plot_roofline_hierarchical.py: one precision of one GPU, a name and values per line.

The same text that `ncu_roofline.formats.inputs.roofline_data` reads: GB/s, GFLOP/s and FLOP/byte with every digit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ncu_roofline.analyses.hierarchical.style import level_order, precision_label
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.texts import clean
from ncu_roofline.rendering.frames import Frames

if TYPE_CHECKING:
    import pandas as pd

_LEVEL_NAMES = {"l1": "L1", "shared": "Shared", "l2": "L2", "l3": "L3", "dram": "HBM", "system": "System"}
_ROOF_NAMES = {"fma": "FMA", "nofma": "No-FMA", "divide": "Div FMA", "divide_nofma": "Div No-FMA"}


def render_nersc(roofline: Frames) -> bytes:
    """Roofs and points of the precision with the most work, which a comment names; measured roofs where given.

    Raises RooflineError for points of several GPUs, which the format can't tell apart, and for other views.
    """
    points = roofline.points
    if getattr(roofline, "view", "roofline") != "roofline":
        raise _error("it holds rooflines only", "Leave out --view, or choose another format.")
    if not len(points):
        raise _error("no kernel has a point", "Ask `ncu-roofline explain` what the report lacks.")
    devices = list(dict.fromkeys(points["device"]))
    if len(devices) > 1:
        reason = f"it has one set of roofs, and the points are of {len(devices)} GPUs"
        raise _error(reason, "Give the reports of one GPU.")
    precision, note = _precision(points)
    chosen = points[points["precision"] == precision]
    levels = level_order(set(chosen["level"]))
    # The format's readers take DRAM to be HBM; where a machine has both, each gets its own name.
    names = {level: _LEVEL_NAMES.get(level, level.upper()) for level in levels}
    if "mcdram" in names:
        names.update(mcdram="HBM", dram="DDR")
    # Its readers look for their keywords anywhere in a line: comments stand apart and use none of them.
    lines = [
        f"# {clean(devices[0]) or 'unnamed machine'}, {note}",
        "# in GB/s, GFLOP/s and FLOP/byte",
        *_roofs(roofline.roofs, precision, names),
        "",
    ]
    return "\n".join([*lines, *_points(chosen, names)]).encode("utf-8", "replace") + b"\n"


def _error(reason: str, next_step: str) -> RooflineError:
    return RooflineError("Cannot render", "nersc", reason, next_step)


def _precision(points: pd.DataFrame) -> tuple[str, str]:
    """The precision to write, and a comment on the choice."""
    candidates = points[points["precision"] != "mixed"] if set(points["precision"]) != {"mixed"} else points
    first = candidates.drop_duplicates(["report", "launch", "kernel", "label", "precision"])
    amount = first["work"].where(first["work"].notna(), first["performance"])  # files of rates have no work
    total = amount.groupby(first["precision"], sort=False).sum()
    best = str(total.idxmax())
    others = ", ".join(precision_label(str(one)) for one in total.index if one != best)
    return best, f"{precision_label(best)} only" + (f"; with less work and left out: {others}" if others else "")


def _roofs(roofs: pd.DataFrame, precision: str, names: dict[str, str]) -> list[str]:
    memory = [(name, row) for level, name in names.items() if (row := _best(roofs[roofs["level"] == level])) is not None]
    ids = dict.fromkeys(roofs[roofs["precision"] == precision]["roof"])
    compute = [(_roof_name(precision, str(one)), row) for one in ids if (row := _best(roofs[roofs["roof"] == one])) is not None]
    lines = []
    for key, name_key, pairs in (("memroofs", "mem_roof_names", memory), ("comproofs", "comp_roof_names", compute)):
        if pairs:
            lines.append(f"{key} {_values([row['value'] / 1e9 for _, row in pairs])}")
            lines.append(f"{name_key} {_quoted([_named(name, row) for name, row in pairs])}")
    return lines


def _best(rows: pd.DataFrame) -> pd.Series | None:
    measured = rows[rows["origin"] == "measured"]
    rows = measured if len(measured) else rows
    return rows.iloc[0] if len(rows) else None


def _named(name: str, row: pd.Series) -> str:
    return name if row["origin"] == "measured" else f"Theoretical {name}"


def _roof_name(precision: str, roof: str) -> str:
    kind = roof.removeprefix(precision).lstrip(".")
    words = ("" if precision == "fp" else precision_label(precision), _ROOF_NAMES.get(kind, kind))
    return " ".join(filter(None, words))


def _points(chosen: pd.DataFrame, names: dict[str, str]) -> list[str]:
    keys = ["report", "launch", "kernel", "label"]
    runs = [(key, rows) for key, rows in chosen.groupby(keys, sort=False)]
    lines = []
    for level, name in names.items():
        found = [rows[rows["level"] == level]["intensity"] for _, rows in runs]
        lines.append(f"AI_{name} {_values([float(one.iloc[0]) if len(one) else math.nan for one in found])}")
    lines.append(f"FLOPS {_values([float(rows['performance'].iloc[0]) / 1e9 for _, rows in runs])}")
    lines.append(f"labels {_quoted([str(label or kernel) for (_, _, kernel, label), _ in runs])}")
    return lines


def _values(values: Sequence[float]) -> str:
    return " ".join(repr(float(value)) for value in values)


def _quoted(names: Sequence[str]) -> str:
    """Names in straight quotes, without any inside, since the format has no way to write one."""
    return " ".join(f"'{clean(name, None).translate(_QUOTES)}'" for name in names)


_QUOTES = dict.fromkeys(map(ord, "'\"`\N{ACUTE ACCENT}\N{LEFT SINGLE QUOTATION MARK}\N{RIGHT SINGLE QUOTATION MARK}"), "_")
