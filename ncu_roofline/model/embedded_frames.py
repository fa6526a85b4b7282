"""The report's own roofline charts as points and roofs, exactly as Nsight Compute draws them.

Nothing is corrected here: where a release is known to count wrongly, a note says so and by how much.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ncu_roofline.model.grouping import Grouping
from ncu_roofline.model.measurements import Measurements
from ncu_roofline.model.selection import Selection
from ncu_roofline.sections import Chart, Point, Wall, meaning, peaks_of, stock_half_factor, tensor_caveat

Row = dict[str, Any]


def embedded_points(m: Measurements, grouping: Grouping, select: Selection) -> list[Row]:
    """Rows of the points frame, one per dot that the viewer draws."""
    rows = []
    for launch, chart in _charts(m):
        for point in chart.points:
            row = _point_row(m, launch, chart, point)
            row["kernel"] = grouping.label[launch]
            if select.wants(row["precision"], row["level"]):
                rows.append(row)
    return rows


def _charts(m: Measurements) -> Iterator[tuple[int, Chart]]:
    for launch in range(len(m)):
        for chart in m.charts[launch] or ():
            yield launch, chart


def _point_row(m: Measurements, launch: int, chart: Chart, point: Point) -> Row:
    precision, level = _meaning(point.work_metrics, point.traffic_metrics)
    seconds = m.seconds[launch]
    peak, bandwidth = peaks_of(chart, point)
    slope = point.intensity * bandwidth
    attainable = float(np.minimum(slope, peak))  # NaN where either is unknown
    half = stock_half_factor(chart, m.ncu_version[launch]).sentence
    tensor = tensor_caveat(point.work_metrics, m.capability[launch])
    computed = f"computed here, the viewer had no value: {', '.join(point.computed)}" if point.computed else ""
    clock, clock_max = m.clock[launch], m.clock_max[launch]
    return {
        **_where(m, launch),
        "launch": int(m.launch[launch]),
        "label": m.label[launch],
        "step": int(m.step[launch]),
        "precision": precision,
        "level": level,
        "launches": 1,
        "work": point.work * seconds,
        "unit": _unit(precision),
        "traffic": point.traffic * seconds,
        "seconds": seconds,
        "intensity": point.intensity,
        "performance": point.work,
        "bandwidth": point.traffic,
        "attainable": attainable,
        "fraction": point.work / attainable,
        "compute_roof": peak,
        "bandwidth_roof": bandwidth,
        "fma_share": np.nan,
        "mix_roof": np.nan,
        "lanes": np.nan,
        "attainable_theoretical": attainable,
        "fraction_theoretical": point.work / attainable,
        "roof_origin": "theoretical",
        "binds": "" if np.isnan(attainable) else level if slope < peak else f"{precision}.peak",
        "binding_fraction": point.work / attainable,
        "locality": np.nan,
        "locality_to": "",
        "clock_profiled": clock,
        "clock_max": clock_max,
        "clock_ratio": clock / clock_max,
        "coverage": 1.0,
        "source": "embedded",
        "metrics": "; ".join(", ".join(names) for names in (point.work_metrics, point.traffic_metrics)),
        "notes": "; ".join(text for text in (f"{chart.section}: {point.label}", tensor, half, computed) if text),
    }


def _where(m: Measurements, launch: int) -> Row:
    return {"report": m.report[launch], "device": m.device[launch], "compute_capability": m.capability_text[launch]}


def _meaning(work: tuple[str, ...], traffic: tuple[str, ...]) -> tuple[str, str]:
    return meaning(work)[0], meaning(traffic)[1]


def _unit(precision: str) -> str:
    return "op" if precision.startswith("tensor.int") else "flop"


def embedded_roofs(m: Measurements, select: Selection) -> list[Row]:
    """Rows of the roofs frame: each line that the viewer draws, the median over the launches whose charts hold it."""
    found: dict[tuple[str, ...], list[float]] = {}
    facts: dict[tuple[str, ...], Row] = {}
    clocks: dict[tuple[str, ...], list[float]] = {}
    for launch, chart in _charts(m):
        for row in _lines(chart, m.capability[launch]):
            if not select.wants(row["precision"], row["level"]):
                continue
            key = (str(m.device[launch]), row["kind"], row["roof"], row["metrics"])
            facts.setdefault(key, {**_where(m, launch), **row})
            found.setdefault(key, []).append(row["value"])
            clocks.setdefault(key, []).append(m.clock[launch])
    return [
        {
            **facts[key],
            "value": float(np.median(values)),
            "value_min": min(values),
            "value_max": max(values),
            "origin": "theoretical",
            "clock": float(np.median(clocks[key])),
            "clock_basis": "profiled",
            "source": "embedded",
        }
        for key, values in found.items()
    ]


def _lines(chart: Chart, capability: tuple[int, int]) -> list[Row]:
    rows: list[Row] = []
    for roof in chart.roofs:
        precision, level = _meaning(roof.work_metrics, roof.traffic_metrics)
        note = f"{chart.section}: {roof.label}" if roof.metrics else f"{chart.section}: {roof.label} (a constant)"
        tensor = tensor_caveat(roof.work_metrics, capability)
        compute = {"kind": "compute", "roof": f"{precision or chart.section}.peak", "precision": precision, "level": ""}
        slope = {"kind": "bandwidth", "roof": level or roof.label, "precision": "", "level": level}
        rows.append(
            {
                **compute,
                "label": precision.upper() or roof.label,
                "value": roof.peak_work,
                "unit": f"{_unit(precision)}/s",
                "metrics": ", ".join(roof.work_metrics),
                "notes": f"{note}; {tensor}" if tensor else note,
            }
        )
        rows.append(
            {
                **slope,
                "label": level.upper() or roof.label,
                "value": roof.peak_traffic,
                "unit": "byte/s",
                "metrics": ", ".join(roof.traffic_metrics),
                "notes": note,
            }
        )
    rows += [_wall(chart, wall) for wall in chart.walls]
    return rows


def _wall(chart: Chart, wall: Wall) -> Row:
    return {
        "kind": "wall",
        "roof": wall.label,
        "precision": "",
        "level": "",
        "label": wall.label,
        "value": wall.intensity,
        "unit": "flop/byte",
        "metrics": ", ".join(wall.metrics),
        "notes": f"{chart.section}: {wall.label}",
    }
