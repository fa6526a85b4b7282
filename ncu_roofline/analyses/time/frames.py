"""The time-based roofline: complexity (bytes, operations) and time (bandwidth time, compute time) of each kernel.

Source: Wang et al., "Time-Based Roofline for Deep Learning Performance Analysis" (2020), section II.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np

from ncu_roofline.analyses.time import columns
from ncu_roofline.chips import load_spec
from ncu_roofline.chips.fields import parse_capability
from ncu_roofline.formats.ceilings import MEASURED, PUBLISHED, UNKNOWN_CAPABILITY, Ceilings
from ncu_roofline.model import Displayed, Roofline, roofline_of
from ncu_roofline.model.columns import UNUSED
from ncu_roofline.model.displayed import seen
from ncu_roofline.model.roofline import CeilingsFile, Columns, Source, ceilings_of, frame_of, of_columns, of_rows
from ncu_roofline.rendering.document import Column

KEY = ("report", "launch", "kernel", "device", "label", "step")
ABOVE_ROOF = 0.98  # of the roofline's time; what is faster than this does not fit its roof
_TOO_FAST = "faster than its roof allows: the roof is too low for this kernel, or the counters do not fit it"
Table = dict[str, np.ndarray[Any, Any]]
Latency = Callable[[str, str], tuple[float, str]]  # seconds (NaN: nobody measured it) and origin, of a GPU and its capability


@dataclass(frozen=True, repr=False)
class TimeRoofline(Displayed):
    """Kernels in the complexity and the time plane, as tables of equally long columns.

    `points`, `machines` and `absent` are the same as DataFrames (columns: `ncu_roofline.analyses.time.columns`, TIME_POINTS,
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
        columns.TIME_POINTS,
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
    level, latency = level or load_spec().memory, _latencies(launch_latency, files)
    chosen = dict(_chosen_points(roofline, level))
    rest = [row for row in range(len(roofline.kernel_columns["kernel"])) if row not in chosen]
    points = _points(roofline, chosen, latency)
    return TimeRoofline(
        level,
        of_columns(points, columns.TIME_POINTS),
        of_rows(_machines(roofline, points, latency), columns.TIME_MACHINES),
        of_columns(_absent(roofline, np.array(rest, dtype=np.int64), level, latency), columns.TIME_ABSENT),
        roofline.roof_columns,
        roofline.kernel_columns,
        roofline.sources,
    )


def _latencies(given: float | None, files: Sequence[Ceilings]) -> Latency:
    """The launch latency of each GPU: given for all of them, or measured on the GPU's model."""

    @cache
    def latency(device: str, compute_capability: str) -> tuple[float, str]:
        if given is not None:
            return given, "given"
        capability = parse_capability(compute_capability) or UNKNOWN_CAPABILITY
        for file in files:
            if file.applies_to(device, capability) and (measured := file.launch_latency()):
                return measured.value, f"measured: {measured.id} of {file.provenance}"
        return math.nan, ""

    return latency


def _chosen_points(roofline: Roofline, level: str) -> list[tuple[int, int]]:
    """For each kernel with points at ``level``: its row among the kernels and the row of the point that stands for it.

    That is the sum over pipes, else of floating point before integers the one with most work.
    """
    points, kernels = roofline.point_columns, roofline.kernel_columns
    homes: dict[tuple[Any, ...], list[int]] = {}
    for row, key in enumerate(zip(*(kernels[name].tolist() for name in KEY), strict=True)):
        homes.setdefault(key, []).append(row)
    here = np.flatnonzero(points["level"] == level)
    groups: dict[tuple[Any, ...], list[dict[str, int]]] = {}  # points of each kernel by precision; some have the same key
    for row, key in zip(here.tolist(), zip(*(points[name][here].tolist() for name in KEY), strict=True), strict=True):
        members = groups.setdefault(key, [{}])
        if points["precision"][row] in members[-1]:
            members.append({})
        members[-1][points["precision"][row]] = row

    def rank(row: int) -> tuple[bool, bool, float]:
        work = float(points["work"][row])
        return points["precision"][row] == "mixed", points["unit"][row] == "flop", work if math.isfinite(work) else -1.0

    complete = np.isfinite(points["work"] + points["traffic"] + points["seconds"])
    found: list[tuple[int, int]] = []
    for key, members in groups.items():
        best = [max(kinds.values(), key=rank) for kinds in members]
        found += zip(homes.get(key, ()), [row for row in best if complete[row]], strict=False)
    return sorted(found)


def _points(roofline: Roofline, chosen: Mapping[int, int], latency: Latency) -> dict[str, Any]:
    """Compute and bandwidth time (Wang et al., section II): the longer is the run time, the balance gives the other.

    Its equations 2 and 3 print the minimum of two equal terms; the text beside them says what is meant.
    """
    points, kernels = roofline.point_columns, roofline.kernel_columns
    homes, rows = (np.array(list(one), dtype=np.int64) for one in (chosen, chosen.values()))
    table: dict[str, Any] = {one.name: points[one.name][rows] for one in columns.TIME_POINTS if one.name in points}
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
    notes = [f"{note}; {_TOO_FAST}" if note else _TOO_FAST for note in table["notes"]]
    table |= {
        "latency": of_launch,
        "overhead_seconds": overhead,
        "overhead_bound": np.where(np.isfinite(longest) & np.isfinite(overhead), bound, "").astype(object),
        "roofline_seconds": np.where(usable, ideal, np.nan),
        "inefficiency": np.where(usable, ratio, np.nan),
        "notes": np.where(odd, np.array(notes, dtype=object), table["notes"]),
    }


def _machines(roofline: Roofline, points: Mapping[str, Any], latency: Latency) -> list[dict[str, Any]]:
    """A row per GPU, precision that some of the ``points`` has, and level that the ordinary model has points at."""
    ordinary = roofline.point_columns
    rows = []
    for device, precision in dict.fromkeys(zip(points["device"], points["precision"], strict=True)):
        mine = ordinary["device"] == device
        capability = str(ordinary["compute_capability"][mine][0])
        seconds, origin = latency(device, capability)
        peaks = points["compute_roof"][(points["device"] == device) & (points["precision"] == precision)]
        peak = _typical(peaks, np.median)
        for level in dict.fromkeys(ordinary["level"][mine].tolist()):
            bandwidth = _typical(ordinary["bandwidth_roof"][mine & (ordinary["level"] == level)], np.median)
            rows.append(
                {
                    "device": device,
                    "compute_capability": capability,
                    "precision": precision,
                    "level": level,
                    "peak": peak,
                    "peak_min": _typical(peaks, np.min),
                    "peak_max": _typical(peaks, np.max),
                    "peak_origin": "" if math.isnan(peak) else _origin(roofline, device, "precision", precision),
                    "bandwidth": bandwidth,
                    "bandwidth_origin": "" if math.isnan(bandwidth) else _origin(roofline, device, "level", level),
                    "balance": peak / bandwidth if bandwidth > 0 else math.nan,
                    "latency": seconds,
                    "latency_origin": origin,
                    "overhead_work": seconds * peak,
                    "overhead_traffic": seconds * bandwidth,
                }
            )
    return rows


def _typical(values: Any, what: Callable[[Any], Any]) -> float:
    """Of the values that are known; NaN for none."""
    known = values[np.isfinite(values)]
    return float(what(known)) if len(known) else math.nan


def _origin(roofline: Roofline, device: str, column: str, wanted: str) -> str:
    """Whether the roofs of a precision or level are measured or published; several answers for the sum over pipes."""
    roofs = roofline.roof_columns
    mine = (roofs["device"] == device) & (roofs["origin"] != UNUSED)
    mine &= roofs["kind"] == "compute" if wanted == "mixed" else roofs[column] == wanted
    pairs = set(zip(roofs["origin"][mine].tolist(), roofs["source"][mine].tolist(), strict=True))
    origins = {PUBLISHED if source == PUBLISHED else origin for origin, source in pairs}
    known = [origin for origin in (MEASURED, PUBLISHED, "theoretical") if origin in origins]
    return " and ".join(known if wanted == "mixed" else known[:1])


def _absent(roofline: Roofline, rows: Any, level: str, latency: Latency) -> dict[str, Any]:
    """The kernels without symbol; without work, the bytes at the bandwidth roof are the run time at the roofline."""
    kernels, roofs, points = roofline.kernel_columns, roofline.roof_columns, roofline.point_columns
    drawn: dict[tuple[Any, ...], set[str]] = {}
    for *key, where in zip(*(points[name].tolist() for name in (*KEY, "level")), strict=True):
        drawn.setdefault(tuple(key), set()).add(where)
    statuses = []
    for row in rows.tolist():
        levels = drawn.get(tuple(kernels[name][row] for name in KEY), set())
        why = "no-totals" if level in levels else "no-level" if levels else "no-precision"
        statuses.append(why if kernels["status"][row] == "ok" else str(kernels["status"][row]))
    table: dict[str, Any] = {name: kernels[name][rows] for name in (*KEY, "seconds", "time_share", "notes")}
    traffic = roofline.traffic[level][rows] if level in roofline.traffic else np.full(len(rows), np.nan)
    table |= {"invocations": kernels["launches"][rows], "level": np.full(len(rows), level, dtype=object), "traffic": traffic}
    table["status"] = np.array(statuses, dtype=object)
    idle = table["status"] == "zero-flop"
    mine = (roofs["kind"] == "bandwidth") & (roofs["level"] == level) & (roofs["origin"] != UNUSED)
    speeds = {}
    for device in set(table["device"].tolist()):
        here = mine & (roofs["device"] == device)
        measured = here & (roofs["origin"] == MEASURED)
        speeds[device] = _typical(roofs["value"][measured if measured.any() else here], np.median)
    with np.errstate(all="ignore"):
        ideal = traffic / np.array([speeds[device] for device in table["device"]], dtype=np.float64)
    longest, ideal = (np.where(idle, one, np.nan) for one in (table["seconds"], ideal))
    _add_results(table, longest, ideal, kernels["compute_capability"][rows], latency)
    return table
