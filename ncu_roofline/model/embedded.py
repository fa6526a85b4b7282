"""The roofline charts that a report carries in itself, as measurements and as frames.

Every result embeds the sections it was collected with.  Their charts serve twice: as a source of work and traffic that our
own bindings don't cover (third-party sections), and, drawn exactly as Nsight Compute draws them, as a view of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ncu_roofline.model.measurements import FloatArray, Measurements, Origin, Quantity
from ncu_roofline.report import Kernel, Report
from ncu_roofline.sections import Chart, evaluate_charts, meaning, parse_section, stock_half_factor, tensor_caveat
from ncu_roofline.spec import Spec


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
