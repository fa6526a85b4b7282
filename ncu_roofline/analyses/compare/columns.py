"""The columns of the tables of a comparison, declared once."""

from __future__ import annotations

from typing import NamedTuple

from ncu_roofline.rendering.frames import Column

_COMPARISON_WHERE = (
    Column("step", "int", "", "position of the new report among those compared; the baseline is 0"),
    Column("against", "str", "", "what it is compared with: baseline (the first report) or previous (the step before)"),
    Column("baseline", "str", "", "the report it is compared with"),
    Column("report", "str", "", "the new report"),
)


def _both(name: str, dtype: str, unit: str, meaning: str) -> tuple[Column, Column]:
    """A column of the baseline, and that of the new report."""
    return Column(f"{name}_before", dtype, unit, meaning), Column(name, dtype, unit, "the same of the new report")


COMPARISON_KERNELS = (
    *_COMPARISON_WHERE,
    Column("kernel", "str", "", "short readable name, unique among different kernels of the comparison"),
    Column("name_before", "str", "", "full demangled name; '' of added kernels"),
    Column("name", "str", "", "the same of the new report; of removed kernels the one before"),
    *_both("grid", "str", "", "grid size, as 65535x1x1; '' where launches differ"),
    *_both("block", "str", "", "block size, as 128x1x1; '' where launches differ"),
    Column("occurrence", "int", "", "which of the launches of this kernel, from 0, if matched in order; -1: all of them"),
    Column(
        "matched",
        "str",
        "",
        "how: configuration (name, grid, block), device (the same on another GPU), name (the configuration changed), "
        "parameters (the function's parameters changed), numbers (numbers in the name changed), template (it became a template "
        "or ceased to be one), or ''",
    ),
    Column(
        "outcome",
        "str",
        "",
        "faster, slower, same (within noise), closer or further (of the roof), added, removed, unknown, not judged (a change "
        "of what is small, or of which sum and median of the launches disagree)",
    ),
    Column(
        "small",
        "str",
        "",
        "in both reports: launches under 20 us, or under 1 % of the time; '' otherwise, or if judged as asked",
    ),
    *_both("verdict", "str", "", "what limits it: verdict in the frame of kernels; where launches differ, of most time"),
    *_both("limit", "str", "", "its nearest limit: limit in the frame of kernels, of launches with that verdict"),
    *_both("device", "str", "", "name of the GPU"),
    *_both("launches", "int", "", "launches in this row"),
    Column("seconds_before", "float", "second", "run time of a launch: the median"),
    Column("seconds", "float", "second", "the same of the new report, as measured"),
    Column(
        "seconds_normalised",
        "float",
        "second",
        "the same at the baseline's SM clock: seconds * clock / clock_before if limit (else binds) is compute, L1, shared "
        "memory or L2, else seconds; NaN where clocks or what limits are unknown, or the GPUs differ",
    ),
    Column("time_basis", "str", "", "which of the two the comparison uses: raw or normalised"),
    Column("time_change", "float", "ratio", "new time of a launch on that basis / seconds_before - 1", form="change"),
    Column("total_seconds_before", "float", "second", "run time of all launches"),
    Column("total_seconds", "float", "second", "the same of the new report, as measured"),
    Column("total_seconds_normalised", "float", "second", "the same at the baseline's SM clock, as seconds_normalised"),
    Column(
        "seconds_saved",
        "float",
        "second",
        "total_seconds_before - total new time on that basis; where the numbers of launches differ, launches_before * "
        "(seconds_before - new time of a launch on that basis); of added and removed kernels, all",
    ),
    Column("spread_before", "float", "ratio", "1.4826 * median absolute deviation of the launches' times / their median"),
    Column("spread", "float", "ratio", "the same of the new report; NaN below two launches"),
    Column(
        "noise",
        "float",
        "ratio",
        "larger of the tolerance and sqrt(spread_before^2 + spread^2), less change is none; where shares of the roof are "
        "compared, the spreads of both measured roofs are added in squares",
    ),
    Column("time_share", "float", "ratio", "share of the new report's total time (of a removed kernel, of the baseline's)"),
    *_both("clock", "float", "hertz", "SM clock while profiled, mean over time"),
    Column("cycles_before", "float", "", "SM cycles: seconds_before * clock_before"),
    Column("cycles", "float", "", "SM cycles: seconds * clock"),
    *_both("work", "float", "flop", "floating-point operations of a launch over all precisions known: the mean"),
    Column("total_work_before", "float", "flop", "the same of all launches"),
    Column("total_work", "float", "flop", "the same of all launches of the new report"),
    *_both("precision", "str", "", "precision id with the most work (mixed is the sum over pipes): fraction is its"),
    *_both("performance", "float", "flop/s", "of that precision, over all launches"),
    *_both("fraction", "float", "ratio", "performance / lowest attainable over all levels"),
    *_both("binds", "str", "", "what binds: a level id or a compute roof id"),
    Column("notes", "str", "", "what a reader must know of this row, sentences separated by '; '"),
)


COMPARISON_LEVELS = (
    *_COMPARISON_WHERE,
    Column(
        "row",
        "int",
        "",
        "row in the frame of kernels; -1: the application, sums over the kernels that both reports have, for as many launches "
        "as the baseline has",
    ),
    Column("kernel", "str", "", "short readable name"),
    Column("precision", "str", "", "precision id; '' in rows of traffic alone"),
    Column("level", "str", "", "memory level id; '' in rows of work alone"),
    *_both(
        "work",
        "float",
        "flop",
        "operations of a launch (OP for integer types), the mean; rows with precision; zero is a measured zero",
    ),
    *_both("traffic", "float", "byte", "bytes of a launch at this level, the mean; rows with level"),
    *_both("total_work", "float", "flop", "operations of all launches"),
    *_both("total_traffic", "float", "byte", "bytes of all launches"),
    *_both("bandwidth", "float", "byte/s", "traffic / run time"),
    *_both("intensity", "float", "flop/byte", "work / traffic of the launches that have both"),
    *_both("performance", "float", "flop/s", "work / run time"),
    *_both(
        "fraction",
        "float",
        "ratio",
        "performance / min(compute roof, intensity * bandwidth roof of this level); without level, of the lowest over levels",
    ),
)


COMPARISON_THRESHOLDS = (
    Column("row", "int", "", "row in the frame of kernels"),
    *_COMPARISON_WHERE,
    Column("kernel", "str", "", "short readable name"),
    Column("configuration", "str", "", "grid and block size"),
    Column("seconds", "float", "second", "run time of a launch of the new report, as measured"),
    Column("threshold", "str", "", "the expression"),
    Column("result", "str", "", "passed, tripped, not evaluated (a number is missing), or not judged (true of a small kernel)"),
    Column("reason", "str", "", "the numbers of the expression, which are missing, or why it is small"),
)


COMPARISON_SUMMARY = (
    *_COMPARISON_WHERE,
    *_both("device", "str", "", "names of the GPUs"),
    *_both("launches", "int", "", "launches of the application"),
    Column(
        "seconds_before",
        "float",
        "second",
        "run time of the kernels that both reports have, with times: all launches; where the new report has another number of "
        "them, their median * launches of the baseline",
    ),
    Column(
        "seconds",
        "float",
        "second",
        "the same in the new report, as measured, also for as many launches as the baseline has",
    ),
    Column("seconds_normalised", "float", "second", "the same at the baseline's SM clock, kernels without that as measured"),
    Column("time_basis", "str", "", "which of the two the comparison uses: raw or normalised (for some kernel)"),
    Column("time_change", "float", "ratio", "new time on each kernel's basis / seconds_before - 1; NaN between GPU models"),
    Column("speedup", "float", "ratio", "seconds_before / new time on each kernel's basis; NaN between GPU models"),
    Column("seconds_saved", "float", "second", "seconds_before - new time on each kernel's basis; NaN between GPU models"),
    Column("noise", "float", "ratio", "larger of the tolerance and the kernels' noise in seconds, added in squares, / total"),
    Column("outcome", "str", "", "faster, slower, same (within noise), not judged (under 20 us), unknown or nothing in common"),
    Column("total_seconds_before", "float", "second", "run time of all launches of all kernels that have one"),
    Column("total_seconds", "float", "second", "the same of the new report, as measured"),
    Column("seconds_removed", "float", "second", "run time of the kernels that only the baseline has; NaN without any"),
    Column("seconds_added", "float", "second", "run time of the kernels that only the new report has; NaN without any"),
    Column("work_before", "float", "flop", "floating-point operations of these kernels, over all precisions known"),
    Column("work", "float", "flop", "the same of the new report, for as many launches as the baseline has"),
    Column("matched", "int", "", "kernels (rows) that both reports have"),
    Column("added", "int", "", "kernels that only the new report has"),
    Column("removed", "int", "", "kernels that only the baseline has"),
    Column("relaunched", "int", "", "kernels that both reports have, with another number of launches"),
    Column("notes", "str", "", "what a reader must know, sentences separated by '; '"),
)

COMPARISON_ROOFS = (
    Column("step", "int", "", "position of the report among those compared; the baseline is 0"),
    Column("report", "str", "", "the report"),
    Column("device", "str", "", "name of the GPU"),
    Column("roof", "str", "", "roof id: fp64.fma, dram, ..."),
    Column("kind", "str", "", "compute (a horizontal line) or bandwidth (a diagonal)"),
    Column("precision", "str", "", "precision id of a compute roof, else ''"),
    Column("level", "str", "", "level id of a bandwidth roof, else ''"),
    Column("label", "str", "", "label for people, without the value"),
    Column("value", "float", "", "roof, in the unit of the column unit; the highest where a state has several reports"),
    Column("unit", "str", "", "flop/s, op/s or byte/s"),
    Column("origin", "str", "", "theoretical, measured, or unused: measured, but theory judges in its place"),
)

TABLES = {
    "kernels": COMPARISON_KERNELS,
    "levels": COMPARISON_LEVELS,
    "summary": COMPARISON_SUMMARY,
    "thresholds": COMPARISON_THRESHOLDS,
    "roofs": COMPARISON_ROOFS,
}


class Quantity(NamedTuple):
    """What a threshold can name: ``column`` of the kernels or, with ``parts`` behind its name, of the levels."""

    column: str
    unit: str
    meaning: str
    parts: tuple[str, ...] = ()


_P, _L, _PL = "PRECISION", "LEVEL", "PRECISION.LEVEL"
QUANTITIES = {
    "time": Quantity("seconds", "second", "run time of a launch, the median, on the basis that --times chooses"),
    "time.raw": Quantity("seconds", "second", "run time as measured"),
    "time.normalised": Quantity("seconds_normalised", "second", "run time at the baseline's SM clock"),
    "time.total": Quantity("total_seconds", "second", "run time of all launches, on the basis that --times chooses"),
    "cycles": Quantity("cycles", "", "SM cycles of a launch: time.raw * clock"),
    "clock": Quantity("clock", "hertz", "SM clock while profiled"),
    "launches": Quantity("launches", "", "number of launches"),
    "share": Quantity("time_share", "ratio", "share of the report's time, all launches"),
    "noise": Quantity("noise", "ratio", "change of time up to which it counts as the same"),
    "flops": Quantity("work", "flop", "floating-point operations of a launch, the mean", ("", _P)),
    "flops.total": Quantity("total_work", "flop", "the same of all launches", ("", _P)),
    "bytes": Quantity("traffic", "byte", "bytes of a launch at a memory level, the mean", (_L,)),
    "bytes.total": Quantity("total_traffic", "byte", "the same of all launches", (_L,)),
    "bandwidth": Quantity("bandwidth", "byte/s", "bytes per second", (_L,)),
    "intensity": Quantity("intensity", "flop/byte", "FLOPs per byte", (_L, _PL)),
    "performance": Quantity("performance", "flop/s", "FLOPs per second", ("", _P)),
    "fraction": Quantity("fraction", "ratio", "share of the attainable performance", ("", _P, _L, _PL)),
}
