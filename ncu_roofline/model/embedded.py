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

from ncu_roofline.chips import load_spec
from ncu_roofline.chips.ncu import subject
from ncu_roofline.chips.tables import load_limits
from ncu_roofline.formats.ceilings import MEASURED
from ncu_roofline.formats.report import Report
from ncu_roofline.formats.sectionfile import classify
from ncu_roofline.formats.sectionfile.charts import IMPLAUSIBLE, Chart, Dropped, Point, Roof, Wall, evaluate_charts
from ncu_roofline.formats.sectionfile.section import Section, parse_section
from ncu_roofline.model.measurements import IntArray, Measurements, Origin, Quantity, objects
from ncu_roofline.model.plausible import LEFT_OUT, PlausibleMetrics, disbelieved, short_name
from ncu_roofline.model.selection import Grouping, Selection

Row = dict[str, Any]
_NAMES = {"traffic": "bandwidth", "value": "intensity"}


def with_charts(report: Report, m: Measurements, rows: Iterable[int] | None = None) -> Measurements:
    """The measurements with the charts of these launches (all, if not said) in ``m.charts``, which stay where they are there.

    What no GPU can reach is left out of them, and remarked; launches with the counters of another have none, and sections that
    can't be decoded show none.
    """
    charts, remarks, foreign = m.charts.copy(), objects(m.remarks), disbelieved(m)
    for row in range(len(m)) if rows is None else rows:
        if charts[row] is not None:
            continue
        kernel = report.kernels[int(m.launch[row])]
        sections = [] if foreign[row] else [one for one in map(section_of, kernel.sections) if one]
        metrics, drawn, texts = PlausibleMetrics(kernel.metrics), list[Chart](), [remarks[row]]
        for chart in (chart for one in sections for chart in evaluate_charts(one, metrics, m.capability[row])):
            if _is_of_instructions(chart):
                drawn.append(chart)
                continue
            drawn.append(plausible_chart(chart))
            for one in (one for one in drawn[-1].dropped if one.reason == IMPLAUSIBLE):
                where = f"{short_name(one.label)!r} in the chart {short_name(chart.section)}"
                texts.append(f"{LEFT_OUT} {one.kind} {where}, whose {_NAMES.get(one.part, one.part)} no GPU can have")
        charts[row], remarks[row] = tuple(drawn), "; ".join(dict.fromkeys(filter(None, texts)))
    return replace(m, charts=charts, remarks=remarks)


def plausible_chart(chart: Chart) -> Chart:
    """A report's own chart without lines and dots that can't be; `Chart.dropped` has them."""
    limits = load_limits()
    most, dropped = limits.drawn_most, list(chart.dropped)

    def possible(line: Any, least: float, **parts: float) -> bool:
        wrong = [part for part, value in parts.items() if not least <= value <= most]
        dropped.extend(Dropped(type(line).__name__.lower(), line.label, part, IMPLAUSIBLE, line.metrics) for part in wrong)
        return not wrong

    roofs = [one for one in chart.roofs if possible(one, limits.drawn_least, work=one.work, traffic=one.traffic)]
    walls = [one for one in chart.walls if possible(one, 1 / most, value=one.intensity)]
    points = [one for one in chart.points if possible(one, 1 / most, work=one.work, traffic=one.traffic, value=one.intensity)]
    return replace(chart, roofs=tuple(roofs), points=tuple(points), walls=tuple(walls), dropped=tuple(dropped))


def section_of(data: bytes) -> Section | None:
    """A section that a report embeds, None where it can't be decoded."""
    try:
        return parse_section(data)
    except ValueError:
        return None


def filled_from_charts(report: Report, m: Measurements, rows: IntArray) -> Measurements:
    """Gaps in work and traffic filled from embedded charts of precisions and levels that the spec knows.

    Only launches without any work or without any traffic are looked at (``rows``): there our own bindings found no counters,
    and a third party's section may have its own.
    """
    has_work, has_traffic, spec = m.known(m.work), m.known(m.traffic), load_spec()
    drawn = with_charts(report, m, rows)
    work: dict[str, dict[int, tuple[float, Origin]]] = {}
    traffic: dict[str, dict[int, tuple[float, Origin]]] = {}
    precisions, levels = {precision.id for precision in spec.precisions}, {level.id for level in spec.levels}
    for row, chart in _charts(drawn, rows):
        note, seconds = f"from the report's own chart {chart.section}", m.seconds[row]
        packed = 2.0 if classify.counts_halves_once(chart, m.ncu_version[row]) else 1.0
        for point in chart.points:
            if point.lacking or any(map(subject, point.work_metrics)):
                continue  # no count of the work, or what `annotate` derived from the same report
            # The precision, or what it is a kind of where the spec does not tell them apart; sparse work stays sparse.
            named, level = classify.classify(point.work_metrics)[0], classify.classify(point.traffic_metrics)[1]
            precision, sparse = named.removesuffix(".sparse"), ".sparse" if named.endswith(".sparse") else ""
            while precision and precision + sparse not in precisions:
                precision = precision.rpartition(".")[0]
            wrong = classify.tensor_caveat(point.work_metrics, m.capability[row])  # then the work is unknown
            if precision and not has_work[row] and not wrong:
                origin = Origin("embedded", ", ".join(point.work_metrics), note)
                work.setdefault(precision + sparse, {})[row] = point.work * seconds * packed, origin
            if level in levels and not has_traffic[row]:
                origin = Origin("embedded", ", ".join(point.traffic_metrics), note)
                traffic.setdefault(level, {})[row] = point.traffic * seconds, origin

    def filled(have: Mapping[str, Quantity], given: Mapping[str, dict[int, tuple[float, Origin]]]) -> dict[str, Quantity]:
        found = {name: Quantity.of_rows(len(m), of_rows) for name, of_rows in given.items()}
        return {**have, **{name: have[name].filled(one) if name in have else one for name, one in found.items()}}

    counts: Any = {"work": filled(m.work, work), "summands": filled(m.summands, work), "traffic": filled(m.traffic, traffic)}
    return replace(m, remarks=drawn.remarks, **counts)


def _charts(m: Measurements, launches: Iterable[int] | None = None) -> Iterator[tuple[int, Chart]]:
    """The charts of each launch whose work is operations."""
    for launch in range(len(m)) if launches is None else launches:
        yield from ((launch, chart) for chart in m.charts[launch] or () if not _is_of_instructions(chart))


def _is_of_instructions(chart: Chart) -> bool:
    lines = [one.work_metrics for one in (*chart.points, *chart.roofs)]
    return bool(lines) and all(map(classify.counts_instructions, lines))


def charts_left_out(m: Measurements, launch: int) -> str:
    """Which charts of a launch are in no frame, and why; "" if all are."""
    names = dict.fromkeys(chart.section for chart in m.charts[launch] or () if _is_of_instructions(chart))
    return "; ".join(f"the report's chart {name} counts instructions: --view instruction draws these" for name in names)


def embedded_points(m: Measurements, grouping: Grouping, select: Selection) -> list[Row]:
    rows = []
    for launch, chart in _charts(m):
        # What remains of a chart that lost lines says nothing of the roof of a dot, or, where it lost dots, of the lowest.
        lost = {one.kind for one in chart.dropped if one.reason == IMPLAUSIBLE}
        drawn = [_point_row(m, launch, chart, point, "roof" in lost) for point in chart.points]
        for one in drawn if not lost & {"roof", "point"} else ():
            # What binds a precision: the lowest roof over all of its levels.
            alike = [row for row in drawn if row["precision"] == one["precision"] and np.isfinite(row["attainable"])]
            if alike:
                lowest = min(alike, key=lambda row: row["attainable"])
                memory = lowest["intensity"] * lowest["bandwidth_roof"] < lowest["compute_roof"]
                one["binds"] = lowest["level"] if memory else _highest_roof(one["precision"])
                one["binding_fraction"] = one["performance"] / lowest["attainable"]
        for row in drawn:
            row["kernel"] = grouping.label[launch]
            if select.wants(row["precision"], row["level"]):
                rows.append(row)
    return rows


def _point_row(m: Measurements, launch: int, chart: Chart, point: Point, roofless: bool) -> Row:
    precision, level = classify.classify(point.work_metrics)[0], classify.classify(point.traffic_metrics)[1]
    seconds, clock, clock_max = m.seconds[launch], m.clock[launch], m.clock_max[launch]
    peak, bandwidth = (np.nan, np.nan) if roofless else classify.peaks_of(chart, point)
    attainable = float(np.minimum(point.intensity * bandwidth, peak))  # NaN where either is unknown
    notes = (
        f"{chart.section}: {point.label}",
        classify.tensor_caveat(point.work_metrics, m.capability[launch]),
        classify.HALVED if classify.counts_halves_once(chart, m.ncu_version[launch]) else "",
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
    facts: dict[tuple[str, ...], Row] = {}
    found: dict[tuple[str, ...], list[tuple[float, float]]] = {}
    for launch, chart in _charts(m):
        for row in _lines(chart, m.capability[launch]):
            if np.isfinite(row["value"]) and select.wants(row["precision"], row["level"]):
                key = (str(m.device[launch]), row["kind"], row["roof"], row["origin"], row["metrics"])
                facts.setdefault(key, {**_where(m, launch), **row, "clock_basis": "profiled", "source": "embedded"})
                found.setdefault(key, []).append((row["value"], m.clock[launch]))
    for place, pairs in found.items():
        values = [value for value, _ in pairs]
        facts[place] |= {"value": float(np.median(values)), "value_min": min(values), "value_max": max(values)}
        facts[place]["clock"] = float(np.median([clock for _, clock in pairs]))
    return list(facts.values())


def _lines(chart: Chart, capability: tuple[int, int]) -> Iterator[Row]:
    """What the lines of a chart say of themselves."""
    dots, spec = {classify.classify(point.traffic_metrics)[1] for point in chart.points}, load_spec()

    def line(one: Roof | Wall, metrics: Sequence[str], caveat: str = "", *, measured: bool = False) -> Row:
        constant = "" if one.metrics or isinstance(one, Wall) else " (a constant)"
        lacking = f"too low: the report lacks {', '.join(one.lacking)}" if isinstance(one, Roof) and one.lacking else ""
        notes = "; ".join(filter(None, (f"{chart.section}: {one.label}{constant}", caveat, lacking)))
        origin = MEASURED if measured else "theoretical"
        return {"origin": origin, "precision": "", "level": "", "metrics": ", ".join(metrics), "notes": notes}

    for roof in chart.roofs:
        # Where the other line of a measured roof was measured, this one may be the same as in theory.
        of_theory = [one for one in chart.roofs if not one.is_measured]
        measured = roof.is_measured and roof.work_metrics not in [one.work_metrics for one in of_theory]
        row = line(roof, roof.work_metrics, classify.tensor_caveat(roof.work_metrics, capability), measured=measured)
        precision = classify.classify(roof.work_metrics)[0]
        name = _highest_roof(precision or chart.section)
        if measured and not precision:
            labels = ((one.roof_label(of), (one.id, of)) for one in spec.precisions for of in one.roof_ids())
            precision, name = _named_in(roof.label, labels) or (precision, name)
        own = next((one for one in spec.precisions if one.id == precision), None)
        if own and len(own.roof_ids()) > 1 and classify.is_unfused(roof.work_metrics):
            name = own.roof_ids()[1]
        label = own.roof_label(name) if own else precision.upper() or roof.label
        of = {"kind": "compute", "roof": name, "precision": precision, "label": label}
        yield {**row, **of, "value": roof.work, "unit": f"{_unit(precision)}/s"}
        measured = roof.is_measured and roof.traffic_metrics not in [one.traffic_metrics for one in of_theory]
        row = line(roof, roof.traffic_metrics, measured=measured)
        known = {one.id: one.label for one in spec.levels}
        named = _named_in(roof.label, ((label, level) for level, label in known.items())) if roof.is_measured else ""
        first, *others = classify.levels_of(roof) or (named or "",)
        for level in (first, *(one for one in others if one in dots)):
            of = {"kind": "bandwidth", "roof": level or roof.label, "level": level, "label": known.get(level, roof.label)}
            yield {**row, **of, "value": roof.traffic, "unit": "byte/s"}
    for wall in chart.walls:
        of = {"kind": "wall", "roof": wall.label, "label": wall.label}
        yield {**line(wall, wall.metrics), **of, "value": wall.intensity, "unit": "flop/byte"}


def _named_in(label: str, names: Iterable[tuple[str, Any]]) -> Any:
    """What our label of a measured roof names ("measured: DRAM ...; FP64 FMA ...", "DRAM bandwidth, FP64 FMA peak, ...")."""
    parts = [f"{part} " for part in re.split(r"; | bandwidth, ", label.removeprefix("measured: "))]
    named = [(name, found) for name, found in names if any(part.startswith(f"{name} ") for part in parts)]
    return max(named, key=lambda one: len(one[0]))[1] if named else None


def _highest_roof(precision: str) -> str:
    """The id of the highest roof of a precision, whether or not the spec knows it."""
    return next((one.roof_ids()[0] for one in load_spec().precisions if one.id == precision), f"{precision}.peak")
