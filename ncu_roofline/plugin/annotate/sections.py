"""The sections that are written into reports: an overview, and a chart for each precision with work.

Only fields that every release since 2020.3 knows: no descriptions of charts or metrics, no conditions, no filters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from ncu_roofline.base.units import format_value
from ncu_roofline.chips import load_spec
from ncu_roofline.chips.ncu import PEAK, TRAFFIC_RATE, WORK_RATE
from ncu_roofline.chips.palette import PLAIN, Color
from ncu_roofline.chips.spec import LIGHT_TENSOR_SECTION, OVERVIEW_SECTION, TENSOR_SECTION
from ncu_roofline.formats.sectionfile.section import made, made_point, made_roof, made_value
from ncu_roofline.plugin.annotate.append import OWN_IDENTIFIER
from ncu_roofline.plugin.annotate.plan import (
    BOUND_BY,
    CLOCK,
    GIGA_RATE,
    INTENSITY,
    ORIGIN,
    TRAFFIC,
    WORK,
    ChartPlan,
    LaunchPlan,
    LevelPlan,
    RoofPlan,
    attained,
    own_name,
)

OVERVIEW = OWN_IDENTIFIER.decode() + "Overview"

_ORIGIN = "Written by ncu-roofline into a copy of this report; nothing of it was collected."
_FIRST_ORDER = 12  # behind "GPU Speed Of Light" (10) and its own roofline charts
_MOST_ORDERS = 7  # so that all come before the next stock section (20)
_UNITS = {"flop": "FLOP", "op": "OP"}


def identifier(precision: str) -> str:
    """The identifier of a precision's section: tensor.fp16.wgmma is NcuRooflineAnnotatedTensorFP16Wgmma."""
    words = (word.upper() if word[-1:].isdigit() else word.capitalize() for word in precision.split("."))
    return OWN_IDENTIFIER.decode() + "".join(words)


def replaced(plan: LaunchPlan) -> frozenset[str]:
    """The identifiers of our collected sections in whose place those of one launch stand."""
    drawn = {chart.id for chart in plan.charts if chart.drawn}
    found = {OVERVIEW_SECTION}
    for p in load_spec().precisions:
        if p.id in drawn:
            found |= {one.section for one in load_spec().precisions if one.section and one.id in (p.id, p.beside)}
            found |= {TENSOR_SECTION, LIGHT_TENSOR_SECTION} if p.kind == "tensor" else set()
    return frozenset(found)


def sections(plan: LaunchPlan) -> tuple[bytes, ...]:
    """The serialized sections of one launch."""
    charts = (_chart_section(chart, min(position, _MOST_ORDERS)) for position, chart in enumerate(plan.charts, 1))
    return (_overview(plan.works, plan.levels), *charts)


@lru_cache(maxsize=256)
def _overview(counted: tuple[str, ...], levels: tuple[LevelPlan, ...]) -> bytes:
    works = [precision for precision in load_spec().precisions if precision.id in counted]
    header = [_metric(own_name(WORK, work.id), f"{work.label} work [{_UNITS[work.unit]}]") for work in works]
    header += [_metric(own_name(TRAFFIC, level.id), f"{level.label} traffic") for level in levels if level.derivation]
    rows = [_metric(own_name(ORIGIN, work.id), f"{work.label} work") for work in works]
    rows += [_metric(own_name(ORIGIN, level.id), f"{level.label} traffic") for level in levels if level.derivation]
    title = "Roofline overview (ncu-roofline, added later)"
    table = made("BodyItem", Table=made("Table", Label="What was counted", Columns=1, Metrics=rows))
    return _encoded(OVERVIEW, title, 0, f"{_ORIGIN} What is not listed could not be derived.", header, title, table)


@lru_cache(maxsize=1024)
def _chart_section(chart: ChartPlan, order: int) -> bytes:
    unit = _UNITS[chart.unit]
    header = [_metric(own_name(GIGA_RATE, chart.id), f"{chart.label} performance [G{unit}/s]")]
    if chart.placed:
        header.append(_metric(own_name(BOUND_BY, chart.id), "Bound by"))
        header.append(_metric(attained(chart.id), "Share of what it allows"))
    header += [
        _metric(own_name(INTENSITY, chart.id, level.id), f"{level.label} intensity [{unit}/byte]")
        for level in chart.levels
        if level.moved
    ]
    title = f"{chart.label} roofline (ncu-roofline, added later)"
    items = [made("BodyItem", RooflineChart=_chart(chart))] if chart.drawn else []
    return _encoded(identifier(chart.id), title, order, _description(chart), header, f"{chart.label} roofline", *items)


def _encoded(name: str, title: str, order: int, description: str, header: Sequence[Any], body: str, *items: Any) -> bytes:
    section = made(
        "Section",
        Identifier=name,
        DisplayName=title,
        Order=_FIRST_ORDER + order,
        Description=description,
        Header=made("Header", Rows=(len(header) + 1) // 2, Metrics=header),
        Body=[made("Body", DisplayName=body, Items=items)] if items else [],
    )
    data: bytes = section.SerializeToString()
    return data


def _description(chart: ChartPlan) -> str:
    roofs = (*chart.roofs, *(level.roof for level in chart.levels))
    parts = [
        _ORIGIN,
        "Dots and lines say what they are made of when pointed at.",
        f"Theoretical roofs stand at {chart.clock}.",
        *dict.fromkeys(f"Lighter roofs are {one.measured.file}." for one in roofs if one.measured),
    ]
    missing = [level.label for level in chart.levels if not level.derivation]
    if missing:
        parts.append(f"No counter of the report gives the traffic of {', '.join(missing)}.")
    if not chart.drawn:
        parts.append("The report does not give a compute roof and a bandwidth roof, so there is no chart.")
    return " ".join(parts)


def _chart(chart: ChartPlan) -> Any:
    unit = _UNITS[chart.unit]
    intensity, performance = f"Intensity [{unit}/byte]", f"Performance [{unit}/s]"
    work = made_value(_metric(own_name(WORK_RATE, chart.id)))
    points = [
        made_point(
            work,
            made_value(_metric(own_name(TRAFFIC_RATE, level.id))),
            f"{level.label}: bytes = {level.derivation}; work = {chart.derivation}",
            _color(level).light,
        )
        for level in chart.levels
        if level.moved
    ]
    return made(
        "RooflineChart",
        Label=f"{chart.label} roofline, derived from the report",
        AxisIntensity=made("RooflineAxis", Label=intensity, Base=10.0),
        AxisWork=made("RooflineAxis", Label=performance, Base=10.0),
        Rooflines=[*_theoretical(chart), *_measured_roofs(chart)],
        AchievedValues=points,
    )


def _pairs(roofs: Sequence[RoofPlan], levels: Sequence[LevelPlan]) -> list[tuple[RoofPlan, LevelPlan, Color]]:
    """What is drawn together, in which colour: each level with the highest compute roof, the other compute roofs with the
    outermost level, and these first, as viewers draw later ones over them; then levels beside the chain (shared memory)."""
    if not roofs or not levels:
        return []
    others = [(roof, levels[-1], PLAIN) for roof in roofs[1:]]
    in_order = sorted(levels, key=lambda level: level.id in load_spec().chain)
    return others + [(roofs[0], level, _color(level)) for level in in_order]


def _theoretical(chart: ChartPlan) -> Iterator[Any]:
    levels = [one for one in chart.levels if one.roof.theory]
    for roof, level, color in _pairs([one for one in chart.roofs if one.theory], levels):
        label = f"{level.label} and {roof.label} roof at {chart.clock}: {level.roof.theory}; {roof.theory}"
        yield made_roof(_per_second(roof), _per_second(level.roof), label, color.light)


def _measured_roofs(chart: ChartPlan) -> Iterator[Any]:
    """The same with measured roofs as constants, lighter; where one of the two lines was not measured, the theoretical one."""
    levels = [one for one in chart.levels if one.roof.measured or one.roof.theory]
    for roof, level, color in _pairs(chart.roofs, levels):
        if roof.measured is None and level.roof.measured is None:
            continue
        if level.roof.measured is None and any(one.roof.measured for one in levels):
            continue  # the compute roof is there with a level that was measured
        traffic, traffic_text = _line(level.roof, "byte/s")
        work, work_text = _line(roof, f"{chart.unit}/s")
        yield made_roof(work, traffic, f"measured: {traffic_text}; {work_text}", color.dark)


def _line(roof: RoofPlan, unit: str) -> tuple[Any, str]:
    """The measured form of a roof, else the theoretical one, and which it is."""
    if roof.measured is None:
        return _per_second(roof), f"{roof.label} theoretical"
    text = f"{roof.label} {format_value(roof.measured.value, unit)}, {roof.measured.provenance}"
    return made_value(constant=roof.measured.value), text


def _per_second(roof: RoofPlan) -> Any:
    """A peak per cycle times the clock: the form that viewers want at least one roof in."""
    return made_value(_metric(own_name(PEAK, roof.id)), clock=_metric(CLOCK))


def _color(level: LevelPlan) -> Color:
    return load_spec().level(level.id).color


def _metric(name: str, label: str = "") -> Any:
    return made("Metric", Name=name, Label=label)
