"""The time-based roofline: complexity (bytes, operations) and time (bandwidth time, compute time) of each kernel.

Source: Wang et al., "Time-Based Roofline for Deep Learning Performance Analysis" (2020), section II.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, ClassVar

import numpy as np

from ncu_roofline.analyses.hierarchical import captions
from ncu_roofline.analyses.hierarchical.style import precision_label
from ncu_roofline.analyses.hierarchical.view import Asked, Viewer
from ncu_roofline.base.errors import UsageError
from ncu_roofline.base.texts import clean
from ncu_roofline.chips import load_spec
from ncu_roofline.chips.fields import parse_capability
from ncu_roofline.formats.ceilings import MEASURED, PUBLISHED, UNKNOWN_CAPABILITY, Ceilings
from ncu_roofline.model import Displayed, Measurements, Roofline, roofline_of
from ncu_roofline.model.columns import UNUSED
from ncu_roofline.model.roofline import CeilingsFile, Columns, Source, ceilings_of, frame_of, of_columns, of_rows, seen
from ncu_roofline.rendering.document import ALIKE, MISSING, Column

KEY = ("report", "launch", "kernel", "device", "label", "step")
ABOVE_ROOF = 0.98  # of the roofline's time; what is faster than this does not fit its roof
_TOO_FAST = "faster than its roof allows: the roof is too low for this kernel, or the counters do not fit it"
Table = dict[str, np.ndarray[Any, Any]]
Latency = Callable[[str, str], tuple[float, str]]  # seconds (NaN: nobody measured it) and origin, of a GPU and its capability
WHY = {
    **captions.WHY,
    "no-level": "without traffic at this memory level",
    "no-precision": "without work in the precisions chosen",
    "no-totals": "of which only rates are known",
}
_text, _integer, _number = Column.text, Column.integer, Column.number


def why(status: str) -> str:
    return WHY.get(status, clean(status))


_TIME_WHERE = (
    _text("report", "report the row comes from: its path, or of commands its base name; '' for a kernel of several reports"),
    _integer("launch", "position of the result in its report, from 0; -1 for an aggregate"),
    _text("kernel", "short readable name, unique among different kernels"),
    _text("device", "name of the GPU", "GPU", 6, omit=ALIKE),
    _text("label", "what the step of a sweep is called; '' outside of sweeps", "step"),
    _integer("step", "position in a sweep, from 0; -1 outside of sweeps"),
)
_TIME_RESULT = (
    _number("latency", "second", "launch latency: what one launch costs at least; NaN where not measured"),
    _number("overhead_seconds", "second", "invocations * latency", "overhead", 1, omit=MISSING),
    _text("overhead_bound", "yes if compute and bandwidth time are both below the overhead, no, or '' if unknown"),
    _number("roofline_seconds", "second", "run time at the roofline: max(work / compute roof, traffic / bandwidth roof)"),
    _number("inefficiency", "ratio", "seconds / roofline_seconds: 1 at the roofline", form="factor", omit=MISSING),
    _text("notes", "what a reader must know of this row, sentences separated by '; '"),
)
TIME_POINTS = (
    *_TIME_WHERE,
    _text(
        "precision", "precision id with most work, or mixed: the sum over pipes under one roof", "", 7, words=precision_label
    ),
    _text("level", "memory level id that traffic and bandwidth belong to"),
    _integer("invocations", "launches in this row", "launches", omit=1),
    _number("seconds", "second", "run time of all invocations", "time"),
    _number("time_share", "ratio", "share of the time of all rows, absent ones too", "share", 8),
    _number("work", "flop", "computational complexity: operations of all invocations (see unit)", priority=4),
    _text("unit", "flop or op: what work counts"),
    _number("traffic", "byte", "bandwidth complexity: bytes of all invocations at this level", "{level} traffic", 5),
    _number("intensity", "flop/byte", "work / traffic", "{unit}"),
    _number("compute_roof", "flop/s", "compute roof of this precision, measured where given"),
    _number("bandwidth_roof", "byte/s", "bandwidth roof of this level, measured where given"),
    _number("balance", "flop/byte", "machine balance: compute_roof / bandwidth_roof"),
    _text("bound", "compute (intensity >= balance), memory, overhead, or '' if unknown", "bound by", missing="unknown"),
    _number("compute_seconds", "second", "seconds if intensity >= balance, else seconds * intensity / balance", "compute", 3),
    _number(
        "bandwidth_seconds", "second", "seconds if intensity < balance, else seconds * balance / intensity", "bandwidth", 2
    ),
    _text("source", "source of work and traffic as in the frame of points: binding, derived, embedded or imported"),
    _text("metrics", "ncu metrics that gave work and traffic"),
    *_TIME_RESULT,
)
TIME_MACHINES = (
    _text("device", "name of the GPU", "GPU"),
    _text("compute_capability", "compute capability, as 9.0"),
    _text("precision", "precision id of the peak; mixed: where the busiest pipe of a kernel is full", words=precision_label),
    _text("level", "memory level id that the bandwidth belongs to"),
    _number("peak", "flop/s", "compute roof: median over the rows"),
    _number("peak_min", "flop/s", "lowest over the rows (clocks differ, and for mixed the kernels)"),
    _number("peak_max", "flop/s", "highest over the rows"),
    _text("peak_origin", "theoretical, measured or published; '' where unknown", "peak origin", 3),
    _number("bandwidth", "byte/s", "bandwidth roof: median over the rows", "{level}"),
    _text("bandwidth_origin", "theoretical, measured or published; '' where unknown", "{level} origin", 2),
    _number("balance", "flop/byte", "machine balance: peak / bandwidth"),
    _number("latency", "second", "launch latency; NaN where not measured", omit=MISSING),
    _text("latency_origin", "where the latency comes from: given, or the measured ceiling and its file"),
    _number("overhead_work", "flop", "latency * peak: the work that hides one launch", "hidden by", 4, omit=MISSING),
    _number("overhead_traffic", "byte", "latency * bandwidth: the traffic that hides one launch", "or", 4, omit=MISSING),
)
TIME_ABSENT = (
    *_TIME_WHERE,
    _text("status", "why the row has no symbol: no-level, no-precision, no-totals, or a kernel's status", "why", 3, words=why),
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


@dataclass(frozen=True, repr=False)
class TimeRoofline(Displayed):
    """Kernels in the complexity and the time plane, as tables of equally long columns.

    `points`, `machines` and `absent` are the same as DataFrames (columns: `ncu_roofline.analyses.time.frames`, TIME_POINTS,
    TIME_MACHINES and TIME_ABSENT); `roofs` and `kernels` are those of the ordinary model it was made of.
    """

    view: ClassVar[str] = "time"
    counted: ClassVar[Mapping[str, str]] = {
        "point_columns": "point",
        "machine_columns": "machine",
        "absent_columns": "absent kernel",
        "roof_columns": "roof",
    }
    glance: ClassVar[tuple[Column, ...]] = seen(
        TIME_POINTS,
        *("kernel", "invocations", "seconds", "time_share", "bound", "compute_seconds", "bandwidth_seconds", "inefficiency"),
    )
    level: str
    point_columns: Table
    machine_columns: Table
    absent_columns: Table
    roof_columns: Table
    kernel_columns: Columns
    sources: tuple[tuple[str, str], ...] = ()

    points = frame_of("point_columns", "One row per kernel (or launch, or application) that has work, traffic and time.")
    machines = frame_of(
        "machine_columns", "One row per GPU, precision and memory level: peak, bandwidth, balance, launch latency."
    )
    absent = frame_of(
        "absent_columns", "One row per kernel that no logarithmic axis can show, with its time, bytes and the reason."
    )
    roofs = frame_of("roof_columns", "The roofs of the ordinary model.")
    kernels = frame_of("kernel_columns", "The kernels of the ordinary model.")


def time_roofline(
    roofline: Roofline | Source | Sequence[Source],
    *,
    level: str = "",
    launch_latency: float | None = None,
    ceilings: CeilingsFile | Sequence[CeilingsFile] = (),
) -> TimeRoofline:
    """The time-based roofline of an ordinary one (Wang et al. 2020, section II), one row per row of its kernels.

    Of reports (paths, open ones, or a list, as the function `roofline` takes them) that is one row per kernel, under the
    ``ceilings``; those of an ordinary one that was made already count for its latency only.
    ``level``: the memory level whose traffic is the bandwidth complexity, "" for device memory.  ``launch_latency``: seconds
    that one launch costs; without it the latency comes from ``ceilings`` measured on the GPU (launch.stream, else launch.sync,
    else launch.graph), and without those there is no overhead: no number is assumed.
    Of each kernel the precision is the sum over pipes ("mixed") where there is one, else the one with the most work.
    Units are SI.  Raises ValueError for a latency that is no positive number, RooflineError for files that can't be read, and
    TypeError for what is neither a Roofline nor a report.

    >>> found = time_roofline("gpp-v100.ncu-rep", ceilings="gpp-v100-ceilings.json")
    >>> found.points[["kernel", "bound"]].iloc[0].tolist(), found.machines["latency"].tolist()
    (['sigma_gpp_gpu<1>', 'memory'], [4.2e-06, 4.2e-06, 4.2e-06])
    """
    if launch_latency is not None and not 0 < launch_latency < math.inf:
        raise ValueError(f"launch_latency must be a positive number of seconds, not {launch_latency!r}")
    files = ceilings_of(ceilings)
    roofline = roofline_of(roofline, files, by="kernel")
    level = level or load_spec().memory

    @cache
    def latency(device: str, compute_capability: str) -> tuple[float, str]:
        if launch_latency is not None:
            return launch_latency, "given"
        capability = parse_capability(compute_capability) or UNKNOWN_CAPABILITY
        for file in files:
            if file.applies_to(device, capability) and (measured := file.launch_latency()):
                return measured.value, f"measured: {measured.id} of {file.provenance}"
        return math.nan, ""

    chosen = _chosen_points(roofline, level)
    points = _points(roofline, chosen, latency)
    rest = np.setdiff1d(np.arange(len(roofline.kernel_columns["kernel"])), [kernel for kernel, _ in chosen])
    return TimeRoofline(
        level,
        of_columns(points, TIME_POINTS),
        of_rows(_machines(roofline, points, latency), TIME_MACHINES),
        of_columns(_absent(roofline, rest.astype(np.int64), level, latency), TIME_ABSENT),
        roofline.roof_columns,
        roofline.kernel_columns,
        roofline.sources,
    )


def _chosen_points(roofline: Roofline, level: str) -> list[tuple[int, int]]:
    """For each kernel with points at ``level``: its row among the kernels and the row of the point that stands for it.

    That is the sum over pipes, else of floating point before integers the one with most work.
    """
    points, kernels = roofline.point_columns, roofline.kernel_columns
    homes = {key: row for row, key in enumerate(zip(*(kernels[name].tolist() for name in KEY), strict=True))}
    work = np.where(np.isfinite(points["work"]), points["work"], -1.0)
    ranks = list(zip(points["precision"] == "mixed", points["unit"] == "flop", work, strict=True))
    here, best = np.flatnonzero(points["level"] == level), dict[tuple[Any, ...], int]()
    for row, key in zip(here.tolist(), zip(*(points[name][here].tolist() for name in KEY), strict=True), strict=True):
        best[key] = max(best.get(key, row), row, key=ranks.__getitem__)
    complete = np.isfinite(points["work"] + points["traffic"] + points["seconds"])
    return sorted((homes[key], row) for key, row in best.items() if complete[row])


def _points(roofline: Roofline, chosen: Sequence[tuple[int, int]], latency: Latency) -> dict[str, Any]:
    """Compute and bandwidth time (Wang et al., section II): the longer is the run time, the balance gives the other.

    Its equations 2 and 3 print the minimum of two equal terms; the text beside them says what is meant.
    """
    points, kernels = roofline.point_columns, roofline.kernel_columns
    homes, rows = np.array(chosen, dtype=np.int64).reshape(-1, 2).T
    table: dict[str, Any] = {one.name: points[one.name][rows] for one in TIME_POINTS if one.name in points}
    table |= {"invocations": points["launches"][rows], "time_share": kernels["time_share"][homes]}
    seconds, intensity = table["seconds"], table["intensity"]
    with np.errstate(all="ignore"):
        balance = table["compute_roof"] / table["bandwidth_roof"]
        balance = np.where(np.isfinite(balance) & (balance > 0), balance, np.nan)
        by_compute, known = intensity >= balance, np.isfinite(balance)
        compute = np.where(known, np.where(by_compute, seconds, seconds * intensity / balance), np.nan)
        bandwidth = np.where(known, np.where(by_compute, seconds * balance / intensity, seconds), np.nan)
        ideal = np.maximum(table["work"] / table["compute_roof"], table["traffic"] / table["bandwidth_roof"])
    table |= {"balance": balance, "compute_seconds": compute, "bandwidth_seconds": bandwidth}
    _add_results(table, np.maximum(compute, bandwidth), ideal, kernels["compute_capability"][homes], latency)
    bound = np.where(table["overhead_bound"] == "yes", "overhead", np.where(by_compute, "compute", "memory"))
    return table | {"bound": np.where(known, bound, "").astype(object)}


def _add_results(table: dict[str, Any], longest: Any, ideal: Any, capabilities: Any, latency: Latency) -> None:
    """Launch overhead, which binds a kernel both of whose times are below it; run time at the roofline (``ideal``).

    ``longest`` is the longer of the two times; all are in seconds.
    """
    keys = zip(table["device"], capabilities, strict=True)
    of_launch = np.array([latency(*key)[0] for key in keys], dtype=np.float64)
    overhead = table["invocations"] * of_launch
    with np.errstate(all="ignore"):
        bound, ratio = np.where(longest < overhead, "yes", "no"), table["seconds"] / ideal
        usable = np.isfinite(ratio) & (ideal > 0)
        odd = usable & (ratio < ABOVE_ROOF)
    notes = ["; ".join(filter(None, (note, _TOO_FAST if fast else ""))) for note, fast in zip(table["notes"], odd, strict=True)]
    table |= {
        "latency": of_launch,
        "overhead_seconds": overhead,
        "overhead_bound": np.where(np.isfinite(longest) & np.isfinite(overhead), bound, "").astype(object),
        "roofline_seconds": np.where(usable, ideal, np.nan),
        "inefficiency": np.where(usable, ratio, np.nan),
        "notes": notes,
    }


def _known(values: Any) -> Any:
    """The values that are known, NaN for none."""
    known = values[np.isfinite(values)]
    return known if len(known) else np.array([math.nan])


def _machines(roofline: Roofline, points: Mapping[str, Any], latency: Latency) -> list[dict[str, Any]]:
    """A row per GPU, precision that some of the ``points`` has, and level that the ordinary model has points at."""
    ordinary, roofs, rows = roofline.point_columns, roofline.roof_columns, []
    used = roofs["origin"] != UNUSED

    def origins(of_roofs: Any) -> list[str]:
        """Where the values of some roofs are from, the best first."""
        pairs = set(zip(roofs["origin"][of_roofs].tolist(), roofs["source"][of_roofs].tolist(), strict=True))
        found = {PUBLISHED if source == PUBLISHED else origin for origin, source in pairs}
        return [origin for origin in (MEASURED, PUBLISHED, "theoretical") if origin in found]

    for device, precision in dict.fromkeys(zip(points["device"], points["precision"], strict=True)):
        mine, of_gpu = ordinary["device"] == device, used & (roofs["device"] == device)
        capability = str(ordinary["compute_capability"][mine][0])
        seconds, origin = latency(device, capability)
        peaks = _known(points["compute_roof"][(points["device"] == device) & (points["precision"] == precision)])
        peak, mixed = float(np.median(peaks)), precision == "mixed"  # several answers for the sum over pipes
        of_peak = origins(of_gpu & (roofs["kind"] == "compute" if mixed else roofs["precision"] == precision))
        for level in dict.fromkeys(ordinary["level"][mine].tolist()):
            bandwidth = float(np.median(_known(ordinary["bandwidth_roof"][mine & (ordinary["level"] == level)])))
            of_level = origins(of_gpu & (roofs["level"] == level))
            row = {"device": device, "compute_capability": capability, "precision": precision, "level": level}
            row |= {"peak": peak, "peak_min": float(peaks.min()), "peak_max": float(peaks.max())}
            row |= {"bandwidth": bandwidth, "balance": peak / bandwidth if bandwidth > 0 else math.nan}
            row |= {"latency": seconds, "latency_origin": origin}
            row |= {"overhead_work": seconds * peak, "overhead_traffic": seconds * bandwidth}
            row["peak_origin"] = "" if math.isnan(peak) else " and ".join(of_peak if mixed else of_peak[:1])
            row["bandwidth_origin"] = "" if math.isnan(bandwidth) else "".join(of_level[:1])
            rows.append(row)
    return rows


def _absent(roofline: Roofline, rows: Any, level: str, latency: Latency) -> dict[str, Any]:
    """The kernels without symbol; without work, the bytes at the bandwidth roof are the run time at the roofline."""
    kernels, roofs, points = roofline.kernel_columns, roofline.roof_columns, roofline.point_columns
    drawn: dict[tuple[Any, ...], set[str]] = {}
    for *key, where in zip(*(points[name].tolist() for name in (*KEY, "level")), strict=True):
        drawn.setdefault(tuple(key), set()).add(where)
    table: dict[str, Any] = {name: kernels[name][rows] for name in (*KEY, "seconds", "time_share", "notes", "status")}
    for place, row in enumerate(zip(*(table[name].tolist() for name in KEY), strict=True)):
        levels = drawn.get(row, set())
        if table["status"][place] == "ok":
            table["status"][place] = "no-totals" if level in levels else "no-level" if levels else "no-precision"
    traffic = roofline.traffic[level][rows] if level in roofline.traffic else np.full(len(rows), np.nan)
    table |= {"invocations": kernels["launches"][rows], "level": np.full(len(rows), level, dtype=object), "traffic": traffic}
    mine, speeds = (roofs["kind"] == "bandwidth") & (roofs["level"] == level) & (roofs["origin"] != UNUSED), {}
    for device in set(table["device"].tolist()):
        here = mine & (roofs["device"] == device)
        measured = here & (roofs["origin"] == MEASURED)
        speeds[device] = np.median(_known(roofs["value"][measured if measured.any() else here]))
    with np.errstate(all="ignore"):
        ideal = traffic / np.array([speeds[device] for device in table["device"]], dtype=np.float64)
    longest, ideal = (np.where(table["status"] == "zero-flop", one, np.nan) for one in (table["seconds"], ideal))
    _add_results(table, longest, ideal, kernels["compute_capability"][rows], latency)
    return table


class _Time(Viewer):
    name = "time"
    by = "kernel"
    embedded = "charts inside a report give rates, and the time view needs operations, bytes and seconds"

    def check(self, asked: Asked) -> None:
        if len(asked.select.levels) > 1:
            reason = "the time view shows the traffic of one memory level"
            raise UsageError("Cannot use --level", ",".join(asked.select.levels), reason, "Name one level.")
        super().check(replace(asked, launch_latency=None))

    def frames(self, measurements: Measurements, ceilings: Sequence[Ceilings], asked: Asked) -> TimeRoofline:
        level, *_ = (*asked.select.levels, "")
        everywhere = replace(asked, select=replace(asked.select, levels=()))  # its machine has a bandwidth at every level
        ordinary = super().frames(measurements, ceilings, everywhere)
        return time_roofline(ordinary, level=level, launch_latency=asked.launch_latency, ceilings=ceilings)


VIEWER = _Time()
