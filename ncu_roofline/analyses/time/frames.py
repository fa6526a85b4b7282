"""The time-based roofline: complexity (bytes, operations) and time (bandwidth time, compute time) of each kernel.

Source: Wang et al., "Time-Based Roofline for Deep Learning Performance Analysis" (2020), section II.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ncu_roofline.analyses.time import columns
from ncu_roofline.chips import load_spec
from ncu_roofline.chips.fields import parse_capability
from ncu_roofline.formats.ceilings import MEASURED, PUBLISHED, UNKNOWN_CAPABILITY, Ceilings
from ncu_roofline.model import Displayed, Roofline, roofline_of
from ncu_roofline.model.columns import UNUSED
from ncu_roofline.model.displayed import seen
from ncu_roofline.model.roofline import CeilingsFile, Columns, Source, ceilings_of, frame_of, of_columns
from ncu_roofline.rendering.document import Column

KEY = ("report", "launch", "kernel", "device", "label", "step")
ABOVE_ROOF = 0.98  # of the roofline's time; what is faster than this does not fit its roof
Table = dict[str, np.ndarray[Any, Any]]


def add_overhead(table: dict[str, Any], longest: Any, latency: Any) -> None:
    """A kernel is bound by its launches if both of its times are below invocations * latency."""
    overhead = table["invocations"] * latency
    table["latency"], table["overhead_seconds"] = latency, overhead
    with np.errstate(invalid="ignore"):
        answer = np.where(longest < overhead, "yes", "no")
    table["overhead_bound"] = np.where(np.isfinite(longest) & np.isfinite(overhead), answer, "").astype(object)


def add_inefficiency(table: dict[str, Any], ideal: Any) -> None:
    """Adds the run time at the roofline (``ideal``, seconds) and how many times longer the kernel ran."""
    with np.errstate(all="ignore"):
        ratio = table["seconds"] / ideal
    usable = np.isfinite(ratio) & (ideal > 0)
    table["roofline_seconds"] = np.where(usable, ideal, np.nan)
    table["inefficiency"] = np.where(usable, ratio, np.nan)
    too_fast = "faster than its roof allows: the roof is too low for this kernel, or the counters do not fit it"
    with np.errstate(invalid="ignore"):
        odd = usable & (ratio < ABOVE_ROOF)
    notes = [f"{note}; {too_fast}" if note else too_fast for note in table["notes"]]
    table["notes"] = np.where(odd, np.array(notes, dtype=object), table["notes"])


def absent_rows(roofline: Roofline, rows: Any, level: str, latencies: Latencies) -> dict[str, Any]:
    """The kernels without symbol; without work, the bytes at the bandwidth roof are the run time at the roofline."""
    kernels = roofline.kernel_columns
    table: dict[str, Any] = {name: kernels[name][rows] for name in (*KEY, "seconds", "time_share", "notes")}
    table["invocations"] = kernels["launches"][rows]
    table["level"] = np.full(len(rows), level, dtype=object)
    table["status"] = np.array(_statuses(roofline, rows, level), dtype=object)
    table["traffic"] = roofline.traffic[level][rows] if level in roofline.traffic else np.full(len(rows), np.nan)
    keys = list(zip(table["device"], kernels["compute_capability"][rows], strict=True))
    idle = table["status"] == "zero-flop"
    longest = np.where(idle, table["seconds"], np.nan)
    add_overhead(table, longest, np.array([latencies.of(*key).seconds for key in keys], dtype=np.float64))
    known = _bandwidths(roofline, level)
    bandwidth = np.array([known.get(device, math.nan) for device in table["device"]], dtype=np.float64)
    add_inefficiency(table, np.where(idle, table["traffic"] / bandwidth, np.nan))
    return table


def _statuses(roofline: Roofline, rows: Any, level: str) -> list[str]:
    """Why these kernels have no symbol."""
    points, kernels = roofline.point_columns, roofline.kernel_columns
    drawn: dict[tuple[Any, ...], set[str]] = {}
    for *key, where in zip(*(points[name].tolist() for name in (*KEY, "level")), strict=True):
        drawn.setdefault(tuple(key), set()).add(where)
    result = []
    for row in rows.tolist():
        status = str(kernels["status"][row])
        if status == "ok":
            levels = drawn.get(tuple(kernels[name][row] for name in KEY), set())
            status = "no-totals" if level in levels else "no-level" if levels else "no-precision"
        result.append(status)
    return result


def _bandwidths(roofline: Roofline, level: str) -> dict[str, float]:
    """The bandwidth roof (byte/s) of each GPU that has one: measured where given."""
    roofs = roofline.roof_columns
    found: dict[str, dict[str, list[float]]] = {}
    mine = (roofs["kind"] == "bandwidth") & (roofs["level"] == level) & (roofs["origin"] != UNUSED)
    for device, origin, value in zip(*(roofs[name][mine] for name in ("device", "origin", "value")), strict=True):
        found.setdefault(device, {}).setdefault(origin, []).append(value)
    return {device: float(np.median(of.get("measured") or of["theoretical"])) for device, of in found.items()}


@dataclass(frozen=True)
class Latency:
    """What one launch costs in seconds (NaN: nobody measured it), and where the number comes from."""

    seconds: float
    origin: str


@dataclass(frozen=True)
class Latencies:
    """The launch latency of each GPU: given for all of them, or measured on the GPU's model."""

    given: float | None
    ceilings: tuple[Ceilings, ...]

    def of(self, device: str, compute_capability: str) -> Latency:
        """The latency of one GPU."""
        if self.given is not None:
            return Latency(self.given, "given")
        capability = parse_capability(compute_capability) or UNKNOWN_CAPABILITY
        for file in self.ceilings:
            if file.applies_to(device, capability) and (measured := file.launch_latency()):
                return Latency(measured.value, f"measured: {measured.id} of {file.provenance}")
        return Latency(math.nan, "")


def machine_rows(roofline: Roofline, points: dict[str, Any], latencies: Latencies) -> list[dict[str, Any]]:
    """A row per GPU, precision that some of the ``points`` has, and level that the ordinary model has points at."""
    ordinary = roofline.point_columns
    found = dict.fromkeys(zip(points["device"], points["precision"], strict=True))
    rows = []
    for device, precision in found:
        mine = ordinary["device"] == device
        capability = str(ordinary["compute_capability"][mine][0])
        latency = latencies.of(device, capability)
        peaks = points["compute_roof"][(points["device"] == device) & (points["precision"] == precision)]
        peaks = peaks[np.isfinite(peaks)]
        peak, low, high = (float(one(peaks)) if len(peaks) else math.nan for one in (np.median, np.min, np.max))
        for level in dict.fromkeys(ordinary["level"][mine].tolist()):
            speeds = ordinary["bandwidth_roof"][mine & (ordinary["level"] == level)]
            speeds = speeds[np.isfinite(speeds)]
            bandwidth = float(np.median(speeds)) if len(speeds) else math.nan
            rows.append(
                {
                    "device": device,
                    "compute_capability": capability,
                    "precision": precision,
                    "level": level,
                    "peak": peak,
                    "peak_min": low,
                    "peak_max": high,
                    "peak_origin": _origin(roofline, device, "precision", precision) if len(peaks) else "",
                    "bandwidth": bandwidth,
                    "bandwidth_origin": _origin(roofline, device, "level", level) if len(speeds) else "",
                    "balance": peak / bandwidth if bandwidth > 0 else math.nan,
                    "latency": latency.seconds,
                    "latency_origin": latency.origin,
                    "overhead_work": latency.seconds * peak,
                    "overhead_traffic": latency.seconds * bandwidth,
                }
            )
    return rows


def _origin(roofline: Roofline, device: str, column: str, wanted: str) -> str:
    """Whether the roofs of a precision or level are measured or published; several answers for the sum over pipes."""
    roofs = roofline.roof_columns
    mine = (roofs["device"] == device) & (roofs["origin"] != UNUSED)
    mine &= roofs["kind"] == "compute" if wanted == "mixed" else roofs[column] == wanted
    pairs = set(zip(roofs["origin"][mine].tolist(), roofs["source"][mine].tolist(), strict=True))
    origins = {PUBLISHED if source == PUBLISHED else origin for origin, source in pairs}
    known = [origin for origin in (MEASURED, PUBLISHED, "theoretical") if origin in origins]
    return " and ".join(known if wanted == "mixed" else known[:1])


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
    level, latencies = level or load_spec().memory, Latencies(launch_latency, tuple(files))
    kernels = roofline.kernel_columns
    chosen = _chosen_points(roofline, level)
    taken = [index for index, _ in chosen]
    points = _points(roofline, np.array([point for _, point in chosen], dtype=np.int64), np.array(taken, dtype=np.int64))
    machine = machine_rows(roofline, points, latencies)
    _add_times(points, _latency_of(points, kernels, taken, latencies))
    rest = np.array(sorted(set(range(len(kernels["kernel"]))) - set(taken)), dtype=np.int64)
    return TimeRoofline(
        level,
        of_columns(points, columns.TIME_POINTS),
        of_columns({one.name: [row[one.name] for row in machine] for one in columns.TIME_MACHINES}, columns.TIME_MACHINES),
        of_columns(absent_rows(roofline, rest, level, latencies), columns.TIME_ABSENT),
        roofline.roof_columns,
        kernels,
        roofline.sources,
    )


def _chosen_points(roofline: Roofline, level: str) -> list[tuple[int, int]]:
    """For each kernel with points at ``level``: its row among the kernels and the row of the point that stands for it."""
    points, kernels = roofline.point_columns, roofline.kernel_columns
    homes: dict[tuple[Any, ...], list[int]] = {}
    for index, key in enumerate(zip(*(kernels[name].tolist() for name in KEY), strict=True)):
        homes.setdefault(key, []).append(index)
    found = []
    for key, members in _groups(points, np.flatnonzero(points["level"] == level)):
        best = max(members, key=lambda row: _rank(points, row))
        if math.isfinite(points["work"][best] + points["traffic"][best] + points["seconds"][best]) and homes.get(key):
            found.append((homes[key].pop(0), best))
    return sorted(found)


def _groups(points: Table, rows: Any) -> Iterator[tuple[tuple[Any, ...], list[int]]]:
    """Rows of one kernel together: they follow each other, and no precision comes twice."""
    key, members, seen = None, list[int](), set[str]()
    keys = zip(*(points[name][rows].tolist() for name in KEY), strict=True)
    for row, next_key in zip(rows.tolist(), keys, strict=True):
        precision = points["precision"][row]
        if members and key is not None and (next_key != key or precision in seen):
            yield key, members
            members, seen = [], set()
        key = next_key
        members.append(row)
        seen.add(precision)
    if members and key is not None:
        yield key, members


def _rank(points: Table, row: int) -> tuple[bool, bool, float]:
    """The sum over pipes first, floating point before integers, then the most work."""
    work = float(points["work"][row])
    return points["precision"][row] == "mixed", points["unit"][row] == "flop", work if math.isfinite(work) else -1.0


def _points(roofline: Roofline, rows: Any, homes: Any) -> dict[str, Any]:
    """The columns that come from the ordinary model."""
    same = set(roofline.point_columns) & {point.name for point in columns.TIME_POINTS}
    table: dict[str, Any] = {name: roofline.point_columns[name][rows] for name in same}
    table["invocations"] = roofline.point_columns["launches"][rows]
    table["time_share"] = roofline.kernel_columns["time_share"][homes]
    return table


def _latency_of(points: dict[str, Any], kernels: Columns, homes: Sequence[int], latencies: Latencies) -> Any:
    capabilities = kernels["compute_capability"][np.array(homes, dtype=np.int64)]
    keys = zip(points["device"], capabilities, strict=True)
    return np.array([latencies.of(device, capability).seconds for device, capability in keys], dtype=np.float64)


def _add_times(table: dict[str, Any], latency: Any) -> None:
    """Compute and bandwidth time (Wang et al., section II): the longer is the run time, the balance gives the other.

    Its equations 2 and 3 print the minimum of two equal terms; the text beside them says what is meant.
    """
    seconds, intensity = table["seconds"], table["intensity"]
    with np.errstate(all="ignore"):
        balance = table["compute_roof"] / table["bandwidth_roof"]
        balance = np.where(np.isfinite(balance) & (balance > 0), balance, np.nan)
        by_compute, known = intensity >= balance, np.isfinite(balance)
        compute = np.where(by_compute, seconds, seconds * intensity / balance)
        bandwidth = np.where(by_compute, seconds * balance / intensity, seconds)
        ideal = np.maximum(table["work"] / table["compute_roof"], table["traffic"] / table["bandwidth_roof"])
    table["balance"] = balance
    table["compute_seconds"] = np.where(known, compute, np.nan)
    table["bandwidth_seconds"] = np.where(known, bandwidth, np.nan)
    longest = np.where(known, np.maximum(compute, bandwidth), np.nan)
    add_overhead(table, longest, latency)
    side = np.where(by_compute, "compute", "memory")
    bound = np.where(table["overhead_bound"] == "yes", "overhead", side)
    table["bound"] = np.where(known, bound, "").astype(object)
    add_inefficiency(table, ideal)
