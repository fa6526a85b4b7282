"""Kernels of the time-based roofline that have no place on logarithmic axes, and what they share with those that have one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ncu_roofline.model import Roofline
from ncu_roofline.models.time_machines import Latencies

KEY = ("report", "launch", "kernel", "device", "label", "step")
ABOVE_ROOF = 0.98  # of the roofline's time; what is faster than this does not fit its roof


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
    bandwidth = np.array([_bandwidth(roofline, device, level) for device in table["device"]], dtype=np.float64)
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


def _bandwidth(roofline: Roofline, device: str, level: str) -> float:
    """The bandwidth roof of a GPU: measured where given."""
    roofs = roofline.roof_columns
    mine = (roofs["device"] == device) & (roofs["kind"] == "bandwidth") & (roofs["level"] == level)
    for origin in ("measured", "theoretical"):
        values = roofs["value"][mine & (roofs["origin"] == origin)]
        if len(values):
            return float(np.median(values))
    return math.nan
