"""The roofline charts that a report carries in itself, as measurements and as frames.

Every result embeds the sections it was collected with.  Their charts serve twice: as a source of work and traffic that our
own bindings don't cover (third-party sections), and, drawn exactly as Nsight Compute draws them, as a view of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ncu_roofline.facts import Spec
from ncu_roofline.model.measurements import FloatArray, Measurements, Origin, Quantity
from ncu_roofline.model.selection import Grouping, Selection
from ncu_roofline.report import Kernel, Report
from ncu_roofline.sectionfile import (
    Chart,
    Point,
    Wall,
    evaluate_charts,
    meaning,
    parse_section,
    peaks_of,
    stock_half_factor,
    tensor_caveat,
)

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


def charts_of(kernel: Kernel, capability: tuple[int, int]) -> tuple[Chart, ...]:
    """All roofline charts that the viewer shows for a result; sections that can't be decoded show none."""
    charts: list[Chart] = []
    for data in kernel.sections:
        try:
            section = parse_section(data)
        except ValueError:
            continue
        charts += evaluate_charts(section, kernel.metrics, capability)
    return tuple(charts)


def with_charts(report: Report, m: Measurements, rows: Iterable[int] | None = None) -> Measurements:
    """The measurements with the charts of these launches (all, if not said) in ``m.charts``."""
    charts = m.charts.copy()
    for row in range(len(m)) if rows is None else rows:
        charts[row] = charts_of(report.kernels[int(m.launch[row])], m.capability[row])
    return replace(m, charts=charts)


@dataclass(frozen=True)
class _Read:
    """A number that a chart gives for one launch."""

    row: int
    value: float
    origin: Origin


def filled_from_charts(report: Report, m: Measurements, spec: Spec) -> Measurements:
    """Gaps in work and traffic filled from embedded charts of precisions and levels that the spec knows.

    Only launches without any work or without any traffic are looked at: there our own bindings found no counters, and a
    third party's section may have its own.
    """
    has_work = _any_known(m.work.values(), len(m))
    has_traffic = _any_known(m.traffic.values(), len(m))
    rows = np.flatnonzero(~(has_work & has_traffic) & np.isfinite(m.seconds))
    work: dict[str, list[_Read]] = {}
    traffic: dict[str, list[_Read]] = {}
    precisions = {precision.id for precision in spec.precisions}
    levels = {level.id for level in spec.levels}
    for row in rows:
        for chart in charts_of(report.kernels[int(m.launch[row])], m.capability[row]):
            half = stock_half_factor(chart, m.ncu_version[row])
            for point in chart.points:
                precision, level = _known(meaning(point.work_metrics)[0], precisions), meaning(point.traffic_metrics)[1]
                wrong = tensor_caveat(point.work_metrics, m.capability[row])  # then the work is unknown
                note = f"from the report's own chart {chart.section}"
                if precision in precisions and not has_work[row] and not wrong:
                    value = point.work * m.seconds[row] * half.point
                    work.setdefault(precision, []).append(
                        _Read(int(row), value, Origin("embedded", ", ".join(point.work_metrics), note))
                    )
                if level in levels and not has_traffic[row]:
                    origin = Origin("embedded", ", ".join(point.traffic_metrics), note)
                    traffic.setdefault(level, []).append(_Read(int(row), point.traffic * m.seconds[row], origin))
    if not work and not traffic:
        return m
    return replace(
        m,
        work=_filled(m.work, work, len(m)),
        summands=_filled(m.summands, work, len(m)),
        traffic=_filled(m.traffic, traffic, len(m)),
    )


def _known(precision: str, precisions: set[str]) -> str:
    """The precision, or what it is a kind of where the spec does not tell them apart; sparse work stays sparse."""
    sparse = ".sparse" if precision.endswith(".sparse") else ""
    name = precision.removesuffix(".sparse")
    while name and name + sparse not in precisions:
        name = name.rpartition(".")[0]
    return name + sparse if name else ""


def _any_known(quantities: Iterable[Quantity], count: int) -> Any:
    return np.any([np.isfinite(quantity.values) for quantity in quantities] or [np.zeros(count, dtype=bool)], axis=0)


def _filled(have: Mapping[str, Quantity], reads: Mapping[str, list[_Read]], count: int) -> dict[str, Quantity]:
    result = dict(have)
    for name, found in reads.items():
        values: FloatArray = np.full(count, np.nan)
        choice = np.full(count, -1, dtype=np.int64)
        origins: dict[Origin, int] = {}
        for read in found:
            values[read.row] = read.value
            choice[read.row] = origins.setdefault(read.origin, len(origins))
        result[name] = result.get(name, Quantity.missing(count)).filled(Quantity(values, choice, tuple(origins)))
    return result
