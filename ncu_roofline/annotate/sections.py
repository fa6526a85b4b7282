"""The sections that are written into reports: an overview, and a chart for each precision with work.

Only fields that every release since 2020.3 knows: no descriptions of charts or metrics, no conditions, no filters.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from ncu_roofline.annotate import naming
from ncu_roofline.annotate.append import OWN_IDENTIFIER
from ncu_roofline.annotate.plan import ChartPlan, LaunchPlan, LevelPlan, Measured, RoofPlan, WorkPlan
from ncu_roofline.facts import load_spec
from ncu_roofline.facts.palette import PLAIN, Color
from ncu_roofline.sectionfile.message import messages
from ncu_roofline.units import format_value

OVERVIEW = OWN_IDENTIFIER.decode() + "Overview"

_ORIGIN = "Written by ncu-roofline into a copy of this report; nothing of it was collected."
_FIRST_ORDER = 12  # behind "GPU Speed Of Light" (10) and its own roofline charts
_MOST_ORDERS = 7  # so that all come before the next stock section (20)
_ARGB = 1  # kind of a colour
_UNITS = {"flop": "FLOP", "op": "OP"}


def identifier(precision: str) -> str:
    """The identifier of a precision's section: tensor.fp16.wgmma is NcuRooflineAnnotatedTensorFP16Wgmma."""
    words = (word.upper() if word[-1:].isdigit() else word.capitalize() for word in precision.split("."))
    return OWN_IDENTIFIER.decode() + "".join(words)


def sections(plan: LaunchPlan) -> tuple[bytes, ...]:
    """The serialized sections of one launch."""
    charts = (_chart_section(chart, min(position, _MOST_ORDERS)) for position, chart in enumerate(plan.charts, 1))
    return (_overview(plan.works, plan.levels), *charts)


@lru_cache(maxsize=256)
def _overview(works: tuple[WorkPlan, ...], levels: tuple[LevelPlan, ...]) -> bytes:
    section = _section(OVERVIEW, "Roofline overview (ncu-roofline, added later)", 0)
    for work in works:
        _add_metric(section.header, f"{work.label} work [{_UNITS[work.unit]}]", naming.work(work.id))
    for level in levels:
        if level.derivation:
            _add_metric(section.header, f"{level.label} traffic", naming.traffic(level.id))
    section.header.rows = (len(section.header.metrics) + 1) // 2
    section.description = _text(
        " ".join(
            [
                _ORIGIN,
                *(f"{work.label} work = {work.derivation}." for work in works),
                *_traffic_texts(levels),
                "What is not listed could not be derived.",
            ]
        )
    )
    data: bytes = section.SerializeToString()
    return data


@lru_cache(maxsize=1024)
def _chart_section(chart: ChartPlan, order: int) -> bytes:
    section = _section(identifier(chart.id), f"{chart.label} roofline (ncu-roofline, added later)", order)
    section.description = _text(_description(chart))
    unit = _UNITS[chart.unit]
    _add_metric(section.header, f"{chart.label} performance [G{unit}/s]", naming.giga_rate(chart.id))
    if chart.placed:
        _add_metric(section.header, "Bound by", naming.bound_by(chart.id))
        _add_metric(section.header, "Share of what it allows", naming.attained(chart.id))
    counted = [one for one in chart.levels if one.moved]
    for level in counted:
        _add_metric(section.header, f"{level.label} intensity [{unit}/byte]", naming.intensity(chart.id, level.id))
    section.header.rows = (len(section.header.metrics) + 1) // 2
    if chart.drawn:
        _add_chart(section, chart, counted)
    data: bytes = section.SerializeToString()
    return data


def _section(name: str, title: str, order: int) -> Any:
    return messages()["Section"](identifier=name.encode(), display_name=title.encode(), order=_FIRST_ORDER + order)


def _description(chart: ChartPlan) -> str:
    parts = [
        _ORIGIN,
        f"{chart.label} work = {chart.derivation}.",
        *_traffic_texts(chart.levels),
        *(f"{roof.label} roof = {roof.theory}." for roof in chart.roofs if roof.theory),
        *(f"{one.label} roof = {one.roof.theory}." for one in chart.levels if one.roof.theory),
        f"Theoretical roofs stand at {chart.clock}.",
        *(f"Measured {roof.label}: {_measured(roof.measured, chart)}." for roof in chart.roofs if roof.measured),
        *(f"Measured {one.label}: {_measured(one.roof.measured)}." for one in chart.levels if one.roof.measured),
    ]
    missing = [one.label for one in chart.levels if not one.derivation]
    if missing:
        parts.append(f"No counter of the report gives the traffic of {', '.join(missing)}.")
    if not chart.drawn:
        parts.append("The report does not give a compute roof and a bandwidth roof, so there is no chart.")
    return " ".join(parts)


def _traffic_texts(levels: Iterable[LevelPlan]) -> list[str]:
    return [f"{one.label} bytes = {one.derivation}." for one in levels if one.derivation]


def _measured(measured: Measured, chart: ChartPlan | None = None) -> str:
    return f"{format_value(measured.value, f'{chart.unit}/s' if chart else 'byte/s')} ({measured.provenance})"


def _add_chart(section: Any, chart: ChartPlan, counted: list[LevelPlan]) -> None:
    unit = _UNITS[chart.unit]
    roofline = section.body.add(display_name=_text(f"{chart.label} roofline")).items.add().roofline
    roofline.label = _text(f"{chart.label} roofline, derived from the report")
    for axis, label in ((roofline.axis_intensity, f"Intensity [{unit}/byte]"), (roofline.axis_work, f"Performance [{unit}/s]")):
        axis.label, axis.base = _text(label), 10.0
    _add_theoretical(roofline, chart)
    _add_measured(roofline, chart)
    for level in counted:
        point = roofline.points.add()
        point.work.metric.name = _text(naming.work_rate(chart.id))
        point.traffic.metric.name = _text(naming.traffic_rate(level.id))
        _style(point.options, f"{level.label}: bytes = {level.derivation}; work = {chart.derivation}", _color(level).light)


def _pairs(roofs: Sequence[RoofPlan], levels: Sequence[LevelPlan]) -> list[tuple[RoofPlan, LevelPlan, Color]]:
    """What is drawn together, in which colour: each level with the highest compute roof, the other compute roofs with the
    outermost level, and these first, as viewers draw later ones over them."""
    others = [(roof, levels[-1], PLAIN) for roof in roofs[1:]]
    return others + [(roofs[0], level, _color(level)) for level in levels]


def _add_theoretical(roofline: Any, chart: ChartPlan) -> None:
    levels = [one for one in chart.levels if one.roof.theory]
    roofs = [one for one in chart.roofs if one.theory]
    if not levels or not roofs:
        return
    pairs = _pairs(roofs, levels)
    for roof, level, color in pairs:
        line = roofline.roofs.add()
        _per_second(line.peak_work, roof)
        _per_second(line.peak_traffic, level.roof)
        _style(
            line.options,
            f"{level.label} and {roof.label} roof at {chart.clock}: {level.roof.theory}; {roof.theory}",
            color.light,
        )


def _add_measured(roofline: Any, chart: ChartPlan) -> None:
    """The same with measured roofs as constants, lighter; where one of the two lines was not measured, the theoretical one."""
    levels = [one for one in chart.levels if one.roof.measured or one.roof.theory]
    if not levels or not chart.roofs:
        return
    pairs = _pairs(chart.roofs, levels)
    for roof, level, color in pairs:
        if roof.measured is None and level.roof.measured is None:
            continue
        if level.roof.measured is None and any(one.roof.measured for one in levels):
            continue  # the compute roof is there with a level that was measured
        line = roofline.roofs.add()
        texts = []
        for value, one, unit in ((line.peak_traffic, level.roof, "byte/s"), (line.peak_work, roof, f"{chart.unit}/s")):
            if one.measured:
                value.constant = one.measured.value
                texts.append(f"{one.label} {format_value(one.measured.value, unit)}, {one.measured.provenance}")
            else:
                _per_second(value, one)
                texts.append(f"{one.label} theoretical")
        _style(line.options, f"measured: {'; '.join(texts)}", color.dark)


def _per_second(value: Any, roof: RoofPlan) -> None:
    """A peak per cycle times the clock: the form that viewers want at least one roof in."""
    value.per_second.per_cycle.add(name=_text(naming.peak(roof.id)))
    value.per_second.clock.name = _text(naming.CLOCK)


def _style(options: Any, label: str, color: str) -> None:
    options.label = _text(label)
    options.color.kind, options.color.value = _ARGB, 0xFF000000 | int(color[1:], 16)


def _color(level: LevelPlan) -> Color:
    return load_spec().level(level.id).color


def _add_metric(owner: Any, label: str, name: str) -> None:
    owner.metrics.add(name=_text(name), label=_text(label))


def _text(text: str) -> bytes:
    return text.encode()
