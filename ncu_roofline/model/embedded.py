"""The roofline charts that a report carries in itself, as measurements and as frames.

Every result embeds the sections it was collected with.  Their charts serve twice: as a source of work and traffic that our
own bindings don't cover (third-party sections), and, drawn exactly as Nsight Compute draws them, as a view of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ncu_roofline.chips import Spec, load_spec
from ncu_roofline.chips.ncu import subject
from ncu_roofline.formats.ceilings import MEASURED
from ncu_roofline.formats.report import Kernel, Report
from ncu_roofline.formats.sectionfile.charts import Chart, Point, Roof, evaluate_charts
from ncu_roofline.formats.sectionfile.classify import (
    classify,
    counts_instructions,
    is_unfused,
    levels_of,
    peaks_of,
    stock_half_factor,
    tensor_caveat,
)
from ncu_roofline.formats.sectionfile.section import parse_section
from ncu_roofline.model.above import with_reasons
from ncu_roofline.model.foreign import disbelieved
from ncu_roofline.model.measurements import Measurements, Origin, Quantity
from ncu_roofline.model.plausible import DrawnGate, PlausibleMetrics, has_lost
from ncu_roofline.model.selection import Grouping, Selection

Row = dict[str, Any]


def embedded_points(m: Measurements, grouping: Grouping, select: Selection) -> list[Row]:
    """Rows of the points frame, one per dot that the viewer draws in a chart of operations."""
    rows = []
    for launch, chart in _charts(m):
        drawn = [_point_row(m, launch, chart, point) for point in chart.points]
        if not has_lost(chart, "roof", "point"):
            _add_binding(drawn)
        for row in drawn:
            row["notes"] = str(with_reasons({name: np.array([value], dtype=object) for name, value in row.items()})[0])
            row["kernel"] = grouping.label[launch]
            if select.wants(row["precision"], row["level"]):
                rows.append(row)
    return rows


def _add_binding(rows: Sequence[Row]) -> None:
    """What binds each precision of a chart: the lowest roof over all of its levels."""
    for one in rows:
        alike = [row for row in rows if row["precision"] == one["precision"] and np.isfinite(row["attainable"])]
        if alike:
            lowest = min(alike, key=lambda row: row["attainable"])
            memory = lowest["intensity"] * lowest["bandwidth_roof"] < lowest["compute_roof"]
            one["binds"] = lowest["level"] if memory else _highest_roof(one["precision"])
            one["binding_fraction"] = one["performance"] / lowest["attainable"]


def _charts(m: Measurements) -> Iterator[tuple[int, Chart]]:
    """The charts of each launch whose work is operations."""
    for launch in range(len(m)):
        for chart in m.charts[launch] or ():
            if not _is_of_instructions(chart):
                yield launch, chart


def _is_of_instructions(chart: Chart) -> bool:
    lines = [point.work_metrics for point in chart.points] + [roof.work_metrics for roof in chart.roofs]
    return bool(lines) and all(map(counts_instructions, lines))


def charts_left_out(m: Measurements, launch: int) -> str:
    """Which charts of a launch are in no frame, and why; "" if all are."""
    names = dict.fromkeys(chart.section for chart in m.charts[launch] or () if _is_of_instructions(chart))
    return "; ".join(f"the report's chart {name} counts instructions: --view instruction draws these" for name in names)


def _point_row(m: Measurements, launch: int, chart: Chart, point: Point) -> Row:
    precision, level = classify(point.work_metrics)[0], classify(point.traffic_metrics)[1]
    seconds, clock, clock_max = m.seconds[launch], m.clock[launch], m.clock_max[launch]
    peak, bandwidth = (np.nan, np.nan) if has_lost(chart, "roof") else peaks_of(chart, point)
    attainable = float(np.minimum(point.intensity * bandwidth, peak))  # NaN where either is unknown
    notes = (
        f"{chart.section}: {point.label}",
        tensor_caveat(point.work_metrics, m.capability[launch]),
        stock_half_factor(chart, m.ncu_version[launch]).sentence,
        f"computed here, the viewer had no value: {', '.join(point.computed)}" if point.computed else "",
        f"drawn too low, as the viewer does: the report lacks {', '.join(point.lacking)}" if point.lacking else "",
    )
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
        **dict.fromkeys(("attainable", "attainable_theoretical"), attainable),
        **dict.fromkeys(("fraction", "fraction_theoretical"), point.work / attainable),
        "compute_roof": peak,
        "bandwidth_roof": bandwidth,
        **dict.fromkeys(("fma_share", "mix_roof", "lanes", "binding_fraction", "locality"), np.nan),
        "roof_origin": "theoretical",
        **dict.fromkeys(("binds", "locality_to"), ""),
        "clock_profiled": clock,
        "clock_max": clock_max,
        "clock_ratio": clock / clock_max,
        "coverage": 1.0,
        "source": "embedded",
        "metrics": "; ".join(", ".join(names) for names in (point.work_metrics, point.traffic_metrics)),
        "notes": "; ".join(filter(None, notes)),
    }


def _where(m: Measurements, launch: int) -> Row:
    return {"report": m.report[launch], "device": m.device[launch], "compute_capability": m.capability_text[launch]}


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
            key = (str(m.device[launch]), row["kind"], row["roof"], row["origin"], row["metrics"])
            facts.setdefault(key, {**_where(m, launch), **row})
            found.setdefault(key, []).append(row["value"])
            clocks.setdefault(key, []).append(m.clock[launch])
    return [
        {
            **facts[key],
            "value": float(np.median(values)),
            "value_min": min(values),
            "value_max": max(values),
            "clock": float(np.median(clocks[key])),
            "clock_basis": "profiled",
            "source": "embedded",
        }
        for key, values in found.items()
    ]


def _lines(chart: Chart, capability: tuple[int, int]) -> list[Row]:
    dots = {classify(point.traffic_metrics)[1] for point in chart.points}
    rows: list[Row] = []
    for roof in chart.roofs:
        rows.append(_compute_line(chart, roof, capability))
        first, *others = levels_of(roof) or (_level_in(roof.label) if roof.is_measured else "",)
        for level in (first, *(one for one in others if one in dots)):
            label = next((one.label for one in load_spec().levels if one.id == level), roof.label)
            own = _line(chart, roof, "traffic_metrics")
            name, value = level or roof.label, roof.peak_traffic
            rows.append(dict(own, kind="bandwidth", roof=name, level=level, label=label, value=value, unit="byte/s"))
    for wall in chart.walls:
        own = _texts(chart, wall.label, wall.metrics)
        rows += [dict(own, kind="wall", roof=wall.label, label=wall.label, value=wall.intensity, unit="flop/byte")]
    return [row for row in rows if np.isfinite(row["value"])]


def _texts(chart: Chart, label: str, metrics: Sequence[str], *notes: str) -> Row:
    return {
        "origin": "theoretical",
        "precision": "",
        "level": "",
        "metrics": ", ".join(metrics),
        "notes": "; ".join(filter(None, (f"{chart.section}: {label}", *notes))),
    }


def _line(chart: Chart, roof: Roof, of: str, caveat: str = "") -> Row:
    """What the line of a roof says of itself, ``of`` its work or traffic.

    Where the other line of a measured roof was measured, this one may be the same as in theory.
    """
    lacking = f"too low: the report lacks {', '.join(roof.lacking)}" if roof.lacking else ""
    metrics, theoretical = getattr(roof, of), [getattr(one, of) for one in chart.roofs if not one.is_measured]
    origin = MEASURED if roof.is_measured and metrics not in theoretical else "theoretical"
    label = roof.label if roof.metrics else f"{roof.label} (a constant)"
    return {**_texts(chart, label, metrics, caveat, lacking), "origin": origin}


def _compute_line(chart: Chart, roof: Roof, capability: tuple[int, int]) -> Row:
    line = _line(chart, roof, "work_metrics", tensor_caveat(roof.work_metrics, capability))
    precision = classify(roof.work_metrics)[0]
    name = _highest_roof(precision or chart.section)
    if line["origin"] == MEASURED and not precision:
        precision, name = _roof_in(roof.label) or (precision, name)
    known = next((one for one in load_spec().precisions if one.id == precision), None)
    if known and len(known.roof_ids()) > 1 and is_unfused(roof.work_metrics):
        name = known.roof_ids()[1]
    return {
        **line,
        "kind": "compute",
        "roof": name,
        "precision": precision,
        "label": known.roof_label(name) if known else precision.upper() or roof.label,
        "value": roof.peak_work,
        "unit": f"{_unit(precision)}/s",
    }


def _parts(label: str) -> list[str]:
    """What our labels of measured roofs name: "measured: DRAM ...; FP64 FMA ...", "DRAM bandwidth, FP64 FMA peak, ..."."""
    return [f"{part} " for part in re.split(r"; | bandwidth, ", label.removeprefix("measured: "))]


def _level_in(label: str) -> str:
    """The level that a label of ours names; "" if none."""
    named = (one.id for one in load_spec().levels if any(part.startswith(f"{one.label} ") for part in _parts(label)))
    return next(named, "")


def _roof_in(label: str) -> tuple[str, str] | None:
    """The precision and the compute roof that a label of ours names."""
    known = ((one.id, roof, f"{one.roof_label(roof)} ") for one in load_spec().precisions for roof in one.roof_ids())
    named = [(precision, roof, name) for precision, roof, name in known if any(part.startswith(name) for part in _parts(label))]
    return max(named, key=lambda one: len(one[2]))[:2] if named else None


def _highest_roof(precision: str) -> str:
    """The id of the highest roof of a precision, whether or not the spec knows it."""
    return next((one.roof_ids()[0] for one in load_spec().precisions if one.id == precision), f"{precision}.peak")


def charts_of(kernel: Kernel, capability: tuple[int, int]) -> tuple[Chart, ...]:
    """All roofline charts that the viewer shows for a result; sections that can't be decoded show none."""
    charts: list[Chart] = []
    metrics = PlausibleMetrics(kernel.metrics)
    for data in kernel.sections:
        try:
            section = parse_section(data)
        except ValueError:
            continue
        charts += evaluate_charts(section, metrics, capability)
    return tuple(charts)


def with_charts(report: Report, m: Measurements, rows: Iterable[int] | None = None) -> Measurements:
    """The measurements with the charts of these launches (all, if not said) in ``m.charts``, which stay where they are there.

    What no GPU can reach is left out of them, and remarked; launches with the counters of another have none.
    """
    charts, gate, foreign = m.charts.copy(), DrawnGate(), disbelieved(m)
    for row in range(len(m)) if rows is None else rows:
        if charts[row] is None:
            drawn = () if foreign[row] else charts_of(report.kernels[int(m.launch[row])], m.capability[row])
            charts[row] = tuple(one if _is_of_instructions(one) else gate.checked(row, one) for one in drawn)
    return replace(m, charts=charts, remarks=gate.remarks(m))


def filled_from_charts(report: Report, m: Measurements, spec: Spec) -> Measurements:
    """Gaps in work and traffic filled from embedded charts of precisions and levels that the spec knows.

    Only launches without any work or without any traffic are looked at: there our own bindings found no counters, and a
    third party's section may have its own.
    """
    has_work, has_traffic = _any_known(m.work.values(), len(m)), _any_known(m.traffic.values(), len(m))
    rows = np.flatnonzero(~(has_work & has_traffic) & np.isfinite(m.seconds))
    drawn = with_charts(report, m, rows)
    work: dict[str, dict[int, tuple[float, Origin]]] = {}
    traffic: dict[str, dict[int, tuple[float, Origin]]] = {}
    precisions, levels = {precision.id for precision in spec.precisions}, {level.id for level in spec.levels}
    for row in rows.tolist():
        for chart in drawn.charts[row]:
            if _is_of_instructions(chart):
                continue
            note = f"from the report's own chart {chart.section}"
            half = stock_half_factor(chart, m.ncu_version[row])
            for point in chart.points:
                if point.lacking or any(map(subject, point.work_metrics)):
                    continue  # no count of the work, or what `annotate` derived from the same report
                precision, level = _known(classify(point.work_metrics)[0], precisions), classify(point.traffic_metrics)[1]
                wrong = tensor_caveat(point.work_metrics, m.capability[row])  # then the work is unknown
                if precision in precisions and not has_work[row] and not wrong:
                    origin = Origin("embedded", ", ".join(point.work_metrics), note)
                    work.setdefault(precision, {})[row] = point.work * m.seconds[row] * half.point, origin
                if level in levels and not has_traffic[row]:
                    origin = Origin("embedded", ", ".join(point.traffic_metrics), note)
                    traffic.setdefault(level, {})[row] = point.traffic * m.seconds[row], origin
    return replace(
        m,
        remarks=drawn.remarks,
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


def _filled(
    have: Mapping[str, Quantity], given: Mapping[str, Mapping[int, tuple[float, Origin]]], count: int
) -> dict[str, Quantity]:
    result = dict(have)
    for name, rows in given.items():
        values, choice = np.full(count, np.nan), np.full(count, -1, dtype=np.int64)
        origins: dict[Origin, int] = {}
        for row, (value, origin) in rows.items():
            values[row], choice[row] = value, origins.setdefault(origin, len(origins))
        result[name] = result.get(name, Quantity.missing(count)).filled(Quantity(values, choice, tuple(origins)))
    return result
