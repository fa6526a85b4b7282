"""The columns of the frames of the time view, declared once."""

from __future__ import annotations

from ncu_roofline.analyses.hierarchical.style import precision_label
from ncu_roofline.analyses.time.captions import WHY
from ncu_roofline.base.texts import clean
from ncu_roofline.rendering.document import ALIKE, MISSING, Column

_TIME_WHERE = (
    Column(
        "report",
        "str",
        "",
        "report the row comes from: its path, or of commands its base name; '' for a kernel of several reports",
    ),
    Column("launch", "int", "", "position of the result in its report, from 0; -1 for an aggregate"),
    Column("kernel", "str", "", "short readable name, unique among different kernels"),
    Column("device", "str", "", "name of the GPU", "GPU", 6, omit=ALIKE),
    Column("label", "str", "", "what the step of a sweep is called; '' outside of sweeps", "step"),
    Column("step", "int", "", "position in a sweep, from 0; -1 outside of sweeps"),
)


_TIME_RESULT = (
    Column("latency", "float", "second", "launch latency: what one launch costs at least; NaN where nobody measured it"),
    Column("overhead_seconds", "float", "second", "invocations * latency", "overhead", 1, omit=MISSING),
    Column("overhead_bound", "str", "", "yes if compute and bandwidth time are both below the overhead, no, or '' if unknown"),
    Column(
        "roofline_seconds", "float", "second", "run time at the roofline: max(work / compute roof, traffic / bandwidth roof)"
    ),
    Column("inefficiency", "float", "ratio", "seconds / roofline_seconds: 1 at the roofline", form="factor", omit=MISSING),
    Column("notes", "str", "", "what a reader must know of this row, sentences separated by '; '"),
)


TIME_POINTS = (
    *_TIME_WHERE,
    Column(
        "precision",
        "str",
        "",
        "precision id with the most work, or mixed: the sum over pipes under the busiest one's roof",
        priority=7,
        words=precision_label,
    ),
    Column("level", "str", "", "memory level id that traffic and bandwidth belong to"),
    Column("invocations", "int", "", "launches in this row", "launches", omit=1),
    Column("seconds", "float", "second", "run time of all invocations", "time"),
    Column("time_share", "float", "ratio", "share of the time of all rows, absent ones too", "share", 8),
    Column(
        "work",
        "float",
        "flop",
        "computational complexity: operations of all invocations (OP for integer types, see unit)",
        priority=4,
    ),
    Column("unit", "str", "", "flop or op: what work counts"),
    Column("traffic", "float", "byte", "bandwidth complexity: bytes of all invocations at this level", "{level} traffic", 5),
    Column("intensity", "float", "flop/byte", "work / traffic", "{unit}"),
    Column("compute_roof", "float", "flop/s", "compute roof of this precision, measured where given"),
    Column("bandwidth_roof", "float", "byte/s", "bandwidth roof of this level, measured where given"),
    Column("balance", "float", "flop/byte", "machine balance: compute_roof / bandwidth_roof"),
    Column(
        "bound",
        "str",
        "",
        "compute (intensity >= balance), memory, overhead (overhead_bound), or '' where a roof is unknown",
        "bound by",
        missing="unknown",
    ),
    Column(
        "compute_seconds",
        "float",
        "second",
        "compute time: seconds if intensity >= balance, else seconds * intensity / balance",
        "compute",
        3,
    ),
    Column(
        "bandwidth_seconds",
        "float",
        "second",
        "bandwidth time: seconds if intensity < balance, else seconds * balance / intensity",
        "bandwidth",
        2,
    ),
    Column("source", "str", "", "source of work and traffic as in the frame of points: binding, derived, embedded or imported"),
    Column("metrics", "str", "", "ncu metrics that gave work and traffic"),
    *_TIME_RESULT,
)


TIME_MACHINES = (
    Column("device", "str", "", "name of the GPU", "GPU"),
    Column("compute_capability", "str", "", "compute capability, as 9.0"),
    Column(
        "precision",
        "str",
        "",
        "precision id that the peak belongs to; mixed: a roof per kernel, at which its busiest pipe is full",
        words=precision_label,
    ),
    Column("level", "str", "", "memory level id that the bandwidth belongs to"),
    Column("peak", "float", "flop/s", "compute roof: median over the rows"),
    Column("peak_min", "float", "flop/s", "lowest over the rows (clocks differ, and for mixed the kernels)"),
    Column("peak_max", "float", "flop/s", "highest over the rows"),
    Column("peak_origin", "str", "", "theoretical, measured or published; '' where unknown", "peak origin", 3),
    Column("bandwidth", "float", "byte/s", "bandwidth roof: median over the rows", "{level}"),
    Column("bandwidth_origin", "str", "", "theoretical, measured or published; '' where unknown", "{level} origin", 2),
    Column("balance", "float", "flop/byte", "machine balance: peak / bandwidth"),
    Column("latency", "float", "second", "launch latency; NaN where nobody measured it", omit=MISSING),
    Column("latency_origin", "str", "", "where the latency comes from: given, or the measured ceiling and its file"),
    Column(
        "overhead_work",
        "float",
        "flop",
        "latency * peak: the work that hides the latency of one launch",
        "hidden by",
        4,
        omit=MISSING,
    ),
    Column(
        "overhead_traffic",
        "float",
        "byte",
        "latency * bandwidth: the traffic that hides the latency of one launch",
        "or",
        4,
        omit=MISSING,
    ),
)


TIME_ABSENT = (
    *_TIME_WHERE,
    Column(
        "status",
        "str",
        "",
        "why the row has no symbol: zero-flop, no-level, no-precision, no-totals, or a status of the frame of kernels",
        "why",
        3,
        words=lambda status: WHY.get(status, clean(status)),
    ),
    Column("level", "str", "", "memory level id that traffic belongs to"),
    Column("invocations", "int", "", "launches in this row", "launches", 2),
    Column("seconds", "float", "second", "run time of all invocations; without work, all of it is bandwidth time", "time"),
    Column("time_share", "float", "ratio", "share of the time of all rows", "share", 1),
    Column(
        "traffic",
        "float",
        "byte",
        "bytes of all invocations at this level; NaN where unknown",
        "{level} traffic",
        missing="",
    ),
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
