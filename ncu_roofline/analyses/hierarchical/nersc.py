"""A Roofline as a data file of NERSC's plot_roofline_hierarchical.py: one precision of one GPU, a name and values per line.

The same text that `ncu_roofline.formats.inputs.roofline_data` reads: GB/s, GFLOP/s and FLOP/byte with every digit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ncu_roofline.analyses.hierarchical.kernels import points_of
from ncu_roofline.analyses.hierarchical.roofs import RoofRow, roof_rows
from ncu_roofline.analyses.hierarchical.style import level_order, precision_label
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.texts import clean
from ncu_roofline.model.work import MIXED
from ncu_roofline.rendering.frames import Frames, view_of

_LEVEL_NAMES = {"l1": "L1", "shared": "Shared", "l2": "L2", "l3": "L3", "dram": "HBM", "system": "System"}
_ROOF_NAMES = {"fma": "FMA", "nofma": "No-FMA", "divide": "Div FMA", "divide_nofma": "Div No-FMA"}
_QUOTES = dict.fromkeys(map(ord, "'\"`\N{ACUTE ACCENT}\N{LEFT SINGLE QUOTATION MARK}\N{RIGHT SINGLE QUOTATION MARK}"), "_")


def render_nersc(roofline: Frames) -> bytes:
    """Roofs and points of the precision with the most work, which a comment names; measured roofs where given.

    Raises RooflineError for points of several GPUs, which the format can't tell apart, and for other views.
    """
    if view_of(roofline) != "roofline":
        raise _error("it holds rooflines only", "Leave out --view, or choose another format.")
    points = points_of(roofline, ("level", "intensity", "performance", "work", "label"))
    if not points:
        raise _error("no kernel has a point", "Ask `ncu-roofline explain` what the report lacks.")
    devices = list(dict.fromkeys(device for *_, device in points))
    if len(devices) > 1:
        reason = f"it has one set of roofs, and the points are of {len(devices)} GPUs"
        raise _error(reason, "Give the reports of one GPU.")
    totals: dict[str, float] = {}
    for kinds in points.values():
        for name, (row, *_) in kinds.items():
            amount = row["performance"] if math.isnan(row["work"]) else row["work"]  # files of rates have no work
            totals[name] = totals.get(name, 0.0) + (0.0 if math.isnan(amount) else amount)
    totals = {name: total for name, total in totals.items() if name != MIXED} or totals
    precision = max(totals, key=totals.__getitem__)
    others = ", ".join(precision_label(one) for one in totals if one != precision)
    kernels = [{row["level"]: row for row in reversed(kinds[precision])} for kinds in points.values() if precision in kinds]
    levels = level_order(level for at in kernels for level in at)
    # The format's readers take DRAM to be HBM; where a machine has both, each gets its own name.
    names = {level: _LEVEL_NAMES.get(level, level.upper()) for level in levels}
    if "mcdram" in names:
        names.update(mcdram="HBM", dram="DDR")
    # Its readers look for their keywords anywhere in a line: comments stand apart and use none of them.
    note = f"{precision_label(precision)} only{f'; with less work and left out: {others}' if others else ''}"
    lines = [f"# {clean(devices[0]) or 'unnamed machine'}, {note}", "# in GB/s, GFLOP/s and FLOP/byte"]
    lines += [*_roofs([row for rows in roof_rows(roofline).values() for row in rows], precision, names), ""]
    for level, name in names.items():
        lines.append(f"AI_{name} {_values(at[level]['intensity'] if level in at else math.nan for at in kernels)}")
    first = [next(iter(reversed(at.values()))) for at in kernels]
    lines.append(f"FLOPS {_values(row['performance'] / 1e9 for row in first)}")
    lines.append(f"labels {_quoted(row['label'] or row['kernel'] for row in first)}")
    return "\n".join(lines).encode("utf-8", "replace") + b"\n"


def _error(reason: str, next_step: str) -> RooflineError:
    return RooflineError("Cannot render", "nersc", reason, next_step)


def _roofs(given: Sequence[RoofRow], precision: str, names: Mapping[str, str]) -> Iterator[str]:
    """Bandwidths and compute roofs, each kind in two lines."""
    ids = dict.fromkeys(roof for roof, _, _, of, *_ in given if of == precision)
    memory = [(name, [row for row in given if row[2] == level]) for level, name in names.items()]
    compute = [(_roof_name(precision, one), [row for row in given if row[0] == one]) for one in ids]
    for kind, pairs in (("mem", memory), ("comp", compute)):
        best = [(name, *min(rows, key=lambda row: row[6] != "measured")[6:8]) for name, rows in pairs if rows]
        if best:
            yield f"{kind}roofs {_values(value / 1e9 for _, _, value in best)}"
            called = (name if origin == "measured" else f"Theoretical {name}" for name, origin, _ in best)
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
