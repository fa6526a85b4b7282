"""The columns of the frames of the time view, declared once."""

from __future__ import annotations

from ncu_roofline.analyses.hierarchical.style import precision_label
from ncu_roofline.analyses.time.captions import WHY
from ncu_roofline.base.texts import clean
from ncu_roofline.rendering.document import ALIKE, MISSING, Column

_text, _integer, _number = Column.text, Column.integer, Column.number

_TIME_WHERE = (
    _text("report", "report the row comes from: its path, or of commands its base name; '' for a kernel of several reports"),
    _integer("launch", "position of the result in its report, from 0; -1 for an aggregate"),
    _text("kernel", "short readable name, unique among different kernels"),
    _text("device", "name of the GPU", "GPU", 6, omit=ALIKE),
    _text("label", "what the step of a sweep is called; '' outside of sweeps", "step"),
    _integer("step", "position in a sweep, from 0; -1 outside of sweeps"),
)


_TIME_RESULT = (
    _number("latency", "second", "launch latency: what one launch costs at least; NaN where nobody measured it"),
    _number("overhead_seconds", "second", "invocations * latency", "overhead", 1, omit=MISSING),
    _text("overhead_bound", "yes if compute and bandwidth time are both below the overhead, no, or '' if unknown"),
    _number("roofline_seconds", "second", "run time at the roofline: max(work / compute roof, traffic / bandwidth roof)"),
    _number("inefficiency", "ratio", "seconds / roofline_seconds: 1 at the roofline", form="factor", omit=MISSING),
    _text("notes", "what a reader must know of this row, sentences separated by '; '"),
)


TIME_POINTS = (
    *_TIME_WHERE,
    _text(
        "precision",
        "precision id with the most work, or mixed: the sum over pipes under the busiest one's roof",
        priority=7,
        words=precision_label,
    ),
    _text("level", "memory level id that traffic and bandwidth belong to"),
    _integer("invocations", "launches in this row", "launches", omit=1),
    _number("seconds", "second", "run time of all invocations", "time"),
    _number("time_share", "ratio", "share of the time of all rows, absent ones too", "share", 8),
    _number(
        "work", "flop", "computational complexity: operations of all invocations (OP for integer types, see unit)", priority=4
    ),
    _text("unit", "flop or op: what work counts"),
    _number("traffic", "byte", "bandwidth complexity: bytes of all invocations at this level", "{level} traffic", 5),
    _number("intensity", "flop/byte", "work / traffic", "{unit}"),
    _number("compute_roof", "flop/s", "compute roof of this precision, measured where given"),
    _number("bandwidth_roof", "byte/s", "bandwidth roof of this level, measured where given"),
    _number("balance", "flop/byte", "machine balance: compute_roof / bandwidth_roof"),
    _text(
        "bound",
        "compute (intensity >= balance), memory, overhead (overhead_bound), or '' where a roof is unknown",
        "bound by",
        missing="unknown",
    ),
    _number(
        "compute_seconds",
        "second",
        "compute time: seconds if intensity >= balance, else seconds * intensity / balance",
        "compute",
        3,
    ),
    _number(
        "bandwidth_seconds",
        "second",
        "bandwidth time: seconds if intensity < balance, else seconds * balance / intensity",
        "bandwidth",
        2,
    ),
    _text("source", "source of work and traffic as in the frame of points: binding, derived, embedded or imported"),
    _text("metrics", "ncu metrics that gave work and traffic"),
    *_TIME_RESULT,
)


TIME_MACHINES = (
    _text("device", "name of the GPU", "GPU"),
    _text("compute_capability", "compute capability, as 9.0"),
    _text(
        "precision",
        "precision id that the peak belongs to; mixed: a roof per kernel, at which its busiest pipe is full",
        words=precision_label,
    ),
    _text("level", "memory level id that the bandwidth belongs to"),
    _number("peak", "flop/s", "compute roof: median over the rows"),
    _number("peak_min", "flop/s", "lowest over the rows (clocks differ, and for mixed the kernels)"),
    _number("peak_max", "flop/s", "highest over the rows"),
    _text("peak_origin", "theoretical, measured or published; '' where unknown", "peak origin", 3),
    _number("bandwidth", "byte/s", "bandwidth roof: median over the rows", "{level}"),
    _text("bandwidth_origin", "theoretical, measured or published; '' where unknown", "{level} origin", 2),
    _number("balance", "flop/byte", "machine balance: peak / bandwidth"),
    _number("latency", "second", "launch latency; NaN where nobody measured it", omit=MISSING),
    _text("latency_origin", "where the latency comes from: given, or the measured ceiling and its file"),
    _number(
        "overhead_work", "flop", "latency * peak: the work that hides the latency of one launch", "hidden by", 4, omit=MISSING
    ),
    _number(
        "overhead_traffic",
        "byte",
        "latency * bandwidth: the traffic that hides the latency of one launch",
        "or",
        4,
        omit=MISSING,
    ),
)


TIME_ABSENT = (
    *_TIME_WHERE,
    _text(
        "status",
        "why the row has no symbol: zero-flop, no-level, no-precision, no-totals, or a status of the frame of kernels",
        "why",
        3,
        words=lambda status: WHY.get(status, clean(status)),
    ),
    _text("level", "memory level id that traffic belongs to"),
    _integer("invocations", "launches in this row", "launches", 2),
    _number("seconds", "second", "run time of all invocations; without work, all of it is bandwidth time", "time"),
    _number("time_share", "ratio", "share of the time of all rows", "share", 1),
    _number("traffic", "byte", "bytes of all invocations at this level; NaN where unknown", "{level} traffic", missing=""),
    *_TIME_RESULT,
)

TABLES = {"points": TIME_POINTS, "machines": TIME_MACHINES, "absent": TIME_ABSENT}

# What people see, in this order.
POINTS_SHOWN = (
    "kernel", "device", "label", "launch", "invocations", "seconds", "time_share", "precision", "work", "traffic", "intensity",
    "bound", "compute_seconds", "bandwidth_seconds", "overhead_seconds", "inefficiency",
)  # fmt: skip
MACHINES_SHOWN = (
    "device", "precision", "peak", "peak_origin", "bandwidth", "bandwidth_origin", "balance", "latency", "overhead_work",
    "overhead_traffic",
)  # fmt: skip
ABSENT_SHOWN = ("kernel", "label", "status", "invocations", "seconds", "time_share", "traffic", "inefficiency")
