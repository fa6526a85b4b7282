"""The time-based roofline: complexity (bytes, operations) and time (bandwidth time, compute time) of each kernel.

Source: Wang et al., "Time-Based Roofline for Deep Learning Performance Analysis" (2020), section II.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ncu_roofline.ceilings import Ceilings
from ncu_roofline.model import Displayed, Roofline
from ncu_roofline.model.roofline import Columns, as_frame, of_columns
from ncu_roofline.models import columns
from ncu_roofline.models.time_absent import KEY, absent_rows, add_inefficiency, add_overhead
from ncu_roofline.models.time_machines import Latencies, machine_rows

if TYPE_CHECKING:
    import pandas as pd


Table = dict[str, np.ndarray[Any, Any]]


@dataclass(frozen=True)
class TimeRoofline(Displayed):
    """Kernels in the complexity and the time plane, as tables of equally long columns.

    `points`, `machines` and `absent` are the same as DataFrames (columns: `ncu_roofline.models.columns`, TIME_POINTS,
    TIME_MACHINES and TIME_ABSENT); `roofs` and `kernels` are those of the ordinary model it was made of.
    """

    view: ClassVar[str] = "time"
    level: str
    point_columns: Table
    machine_columns: Table
    absent_columns: Table
    roof_columns: Table
    kernel_columns: Columns

    @cached_property
    def points(self) -> pd.DataFrame:
        """One row per kernel (or launch, or application) that has work, traffic and time."""
        return as_frame(self.point_columns)

    @cached_property
    def machines(self) -> pd.DataFrame:
        """One row per GPU, precision and memory level: peak, bandwidth, balance, launch latency."""
        return as_frame(self.machine_columns)

    @cached_property
    def absent(self) -> pd.DataFrame:
        """One row per kernel that no logarithmic axis can show, with its time, bytes and the reason."""
        return as_frame(self.absent_columns)

    @cached_property
    def roofs(self) -> pd.DataFrame:
        """The roofs of the ordinary model."""
        return as_frame(self.roof_columns)

    @cached_property
    def kernels(self) -> pd.DataFrame:
        """The kernels of the ordinary model."""
        return as_frame(self.kernel_columns)


def time_roofline(
    roofline: Roofline, *, level: str = "dram", launch_latency: float | None = None, ceilings: Sequence[Ceilings] = ()
) -> TimeRoofline:
    """The time-based roofline of an ordinary one (Wang et al. 2020, section II), one row per row of its kernels.

    ``level``: the memory level whose traffic is the bandwidth complexity.  ``launch_latency``: seconds that one launch costs;
    without it the latency comes from ``ceilings`` measured on the GPU (launch.stream, else launch.sync, else launch.graph),
    and without those there is no overhead: no number is assumed.
    Of each kernel the precision is the sum over pipes ("mixed") where there is one, else the one with the most work.
    Units are SI.  Raises ValueError for a latency that is no positive number.
    """
    if launch_latency is not None and not 0 < launch_latency < math.inf:
        raise ValueError(f"launch_latency must be a positive number of seconds, not {launch_latency!r}")
    latencies = Latencies(launch_latency, tuple(ceilings))
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
    same = set(roofline.point_columns) & {one.name for one in columns.TIME_POINTS}
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
