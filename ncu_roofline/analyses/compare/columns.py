"""The columns of the tables of a comparison, declared once, and what a threshold can name of them."""

from __future__ import annotations

from typing import NamedTuple

from ncu_roofline.rendering.document import Column

_NOW = "the same of the new report"
_AS_MEASURED = f"{_NOW}, as measured"
_SIDES = "at the baseline's SM clock: scaled where compute, L1, shared memory or L2 limit; NaN where that is unknown"


def _texts(name: str, meaning: str) -> tuple[Column, Column]:
    """A column of the baseline, and that of the new report."""
    return Column.text(f"{name}_before", meaning), Column.text(name, _NOW)


def _numbers(name: str, unit: str, meaning: str, now: str = _NOW) -> tuple[Column, Column]:
    return Column.number(f"{name}_before", unit, meaning), Column.number(name, unit, now)


_WHERE = (
    Column.integer("step", "position of the new report among those compared; the baseline is 0"),
    Column.text("against", "what it is compared with: baseline (the first report) or previous (the step before)"),
    Column.text("baseline", "the report it is compared with"),
    Column.text("report", "the new report"),
)
COMPARISON_KERNELS = (
    *_WHERE,
    Column.text("kernel", "short readable name, unique among different kernels of the comparison"),
    Column.text("name_before", "full demangled name; '' of added kernels"),
    Column.text("name", f"{_NOW}; of removed kernels the one before"),
    *_texts("grid", "grid size, as 65535x1x1; '' where launches differ"),
    *_texts("block", "block size, as 128x1x1; '' where launches differ"),
    Column.integer("occurrence", "which of the launches of this kernel, from 0, if matched in order; -1: all of them"),
    Column.text(
        "matched", "how: configuration (name, grid, block), device, name, parameters, numbers, template, or '' (alone)"
    ),
    Column.text(
        "outcome", "faster, slower, same (within noise), closer, further (of the roof), added, removed, unknown, not judged"
    ),
    Column.text(
        "small", "in both reports: launches under 20 us, or under 1 % of the time; '' otherwise, or if judged as asked"
    ),
    *_texts("verdict", "what limits it: verdict in the frame of kernels; where launches differ, of most time"),
    *_texts("limit", "its nearest limit: limit in the frame of kernels, of launches with that verdict"),
    *_texts("device", "name of the GPU"),
    Column.integer("launches_before", "launches in this row"),
    Column.integer("launches", _NOW),
    *_numbers("seconds", "second", "run time of a launch: the median", _AS_MEASURED),
    Column.number("seconds_normalised", "second", f"the same {_SIDES}"),
    Column.text("time_basis", "which of the two the comparison uses: raw or normalised"),
    Column.number("time_change", "ratio", "new time of a launch on that basis / seconds_before - 1", form="change"),
    *_numbers("total_seconds", "second", "run time of all launches", _AS_MEASURED),
    Column.number("total_seconds_normalised", "second", "the same at the baseline's SM clock, as seconds_normalised"),
    Column.number(
        "seconds_saved", "second", "time before less new time on that basis, of as many launches; of added and removed all"
    ),
    Column.number("spread_before", "ratio", "1.4826 * median absolute deviation of the launches' times / their median"),
    Column.number("spread", "ratio", f"{_NOW}; NaN below two launches"),
    Column.number(
        "noise", "ratio", "larger of the tolerance and the spreads (between GPUs also of the roofs), added in squares"
    ),
    Column.number("time_share", "ratio", "share of the new report's total time (of a removed kernel, of the baseline's)"),
    *_numbers("clock", "hertz", "SM clock while profiled, mean over time"),
    *_numbers("cycles", "", "SM cycles: seconds_before * clock_before", "SM cycles: seconds * clock"),
    *_numbers("work", "flop", "floating-point operations of a launch over all precisions known: the mean"),
    *_numbers("total_work", "flop", "the same of all launches", "the same of all launches of the new report"),
    *_texts("precision", "precision id with the most work (mixed is the sum over pipes): fraction is its"),
    *_numbers("performance", "flop/s", "of that precision, over all launches"),
    *_numbers("fraction", "ratio", "performance / lowest attainable over all levels"),
    *_texts("binds", "what binds: a level id or a compute roof id"),
    Column.text("notes", "what a reader must know of this row, sentences separated by '; '"),
)
COMPARISON_LEVELS = (
    *_WHERE,
    Column.integer(
        "row", "row in the frame of kernels; -1: the application, of kernels of both reports, launched as in the baseline"
    ),
    Column.text("kernel", "short readable name"),
    Column.text("precision", "precision id; '' in rows of traffic alone"),
    Column.text("level", "memory level id; '' in rows of work alone"),
    *_numbers("work", "flop", "operations of a launch (OP for integer types), the mean; rows with precision; zero is measured"),
    *_numbers("traffic", "byte", "bytes of a launch at this level, the mean; rows with level"),
    *_numbers("total_work", "flop", "operations of all launches"),
    *_numbers("total_traffic", "byte", "bytes of all launches"),
    *_numbers("bandwidth", "byte/s", "traffic / run time"),
    *_numbers("intensity", "flop/byte", "work / traffic of the launches that have both"),
    *_numbers("performance", "flop/s", "work / run time"),
    *_numbers("fraction", "ratio", "performance / attainable at this level; without level, the lowest over levels"),
)
COMPARISON_THRESHOLDS = (
    Column.integer("row", "row in the frame of kernels"),
    *_WHERE,
    Column.text("kernel", "short readable name"),
    Column.text("configuration", "grid and block size"),
    Column.number("seconds", "second", "run time of a launch of the new report, as measured"),
    Column.text("threshold", "the expression"),
    Column.text("result", "passed, tripped, not evaluated (a number is missing), or not judged (of a small kernel)"),
    Column.text("reason", "the numbers of the expression, which are missing, or why it is small"),
)
_COMMON = "run time of the kernels that both reports have, with times, for as many launches as the baseline has"
COMPARISON_SUMMARY = (
    *_WHERE,
    *_texts("device", "names of the GPUs"),
    Column.integer("launches_before", "launches of the application"),
    Column.integer("launches", _NOW),
    *_numbers("seconds", "second", _COMMON, _AS_MEASURED),
    Column.number("seconds_normalised", "second", "the same at the baseline's SM clock, kernels without that as measured"),
    Column.text("time_basis", "which of the two the comparison uses: raw or normalised (for some kernel)"),
    Column.number("time_change", "ratio", "new time on each kernel's basis / seconds_before - 1; NaN between GPU models"),
    Column.number("speedup", "ratio", "seconds_before / new time on each kernel's basis; NaN between GPU models"),
    Column.number("seconds_saved", "second", "seconds_before - new time on each kernel's basis; NaN between GPU models"),
    Column.number("noise", "ratio", "larger of the tolerance and the kernels' noise in seconds, added in squares, / total"),
    Column.text("outcome", "faster, slower, same (within noise), not judged (under 20 us), unknown or nothing in common"),
    *_numbers("total_seconds", "second", "run time of all launches of all kernels that have one", _AS_MEASURED),
    Column.number("seconds_removed", "second", "run time of the kernels that only the baseline has; NaN without any"),
    Column.number("seconds_added", "second", "run time of the kernels that only the new report has; NaN without any"),
    Column.number("work_before", "flop", "floating-point operations of these kernels, over all precisions known"),
    Column.number("work", "flop", f"{_NOW}, for as many launches as the baseline has"),
    Column.integer("matched", "kernels (rows) that both reports have"),
    Column.integer("added", "kernels that only the new report has"),
    Column.integer("removed", "kernels that only the baseline has"),
    Column.integer("relaunched", "kernels that both reports have, with another number of launches"),
    Column.text("notes", "what a reader must know, sentences separated by '; '"),
)
COMPARISON_ROOFS = (
    Column.integer("step", "position of the report among those compared; the baseline is 0"),
    Column.text("report", "the report"),
    Column.text("device", "name of the GPU"),
    Column.text("roof", "roof id: fp64.fma, dram, ..."),
    Column.text("kind", "compute (a horizontal line) or bandwidth (a diagonal)"),
    Column.text("precision", "precision id of a compute roof, else ''"),
    Column.text("level", "level id of a bandwidth roof, else ''"),
    Column.text("label", "label for people, without the value"),
    Column.number("value", "", "roof, in the unit of the column unit; the highest where a state has several reports"),
    Column.text("unit", "flop/s, op/s or byte/s"),
    Column.text("origin", "theoretical, measured, or unused: measured, but the theoretical roof is used instead"),
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
    parts: tuple[str, ...] = ()


_P, _L, _PL = "PRECISION", "LEVEL", "PRECISION.LEVEL"
QUANTITIES = {
    "time": Quantity("seconds", "second"),
    "time.raw": Quantity("seconds", "second"),
    "time.normalised": Quantity("seconds_normalised", "second"),
    "time.total": Quantity("total_seconds", "second"),
    "cycles": Quantity("cycles", ""),
    "clock": Quantity("clock", "hertz"),
    "launches": Quantity("launches", ""),
    "share": Quantity("time_share", "ratio"),
    "noise": Quantity("noise", "ratio"),
    "flops": Quantity("work", "flop", ("", _P)),
    "flops.total": Quantity("total_work", "flop", ("", _P)),
    "bytes": Quantity("traffic", "byte", (_L,)),
    "bytes.total": Quantity("total_traffic", "byte", (_L,)),
    "bandwidth": Quantity("bandwidth", "byte/s", (_L,)),
    "intensity": Quantity("intensity", "flop/byte", (_L, _PL)),
    "performance": Quantity("performance", "flop/s", ("", _P)),
    "fraction": Quantity("fraction", "ratio", ("", _P, _L, _PL)),
}
