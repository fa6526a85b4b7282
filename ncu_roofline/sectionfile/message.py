"""The section message that reports embed and `.section` files spell out: its fields, and bytes of it -> `Section`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Any

from ncu_roofline.sectionfile.filters import EVERYWHERE, ArchFilter, ArchRange, MetricName, SectionMetric
from ncu_roofline.sectionfile.section import (
    Axis,
    ChartPlan,
    ChartValue,
    ConstantValue,
    Definition,
    MetricValue,
    PerSecondValue,
    PointPlan,
    RoofPlan,
    Section,
    Style,
    TablePlan,
    WallPlan,
)
from ncu_roofline.wire import build_messages

_TABLE = """
ArchRange: min_arch=1 int32, max_arch=2 int32

CollectionFilter: scopes=1 int32*, importance=2 int32

Filter: min_arch=1 int32, max_arch=2 int32, items=3 ArchRange*, collection=4 CollectionFilter, vgpu=5 int32

Option: name=1 bytes, label=2 bytes, filter=3 Filter

Text: text=1 bytes, mode=2 int32

Metric: name=1 bytes, label=2 bytes, hw_unit=3 int32, show_instances=4 bool, unit=5 bytes, filter=6 Filter, options=7 Option*,
    groups=9 bytes*, disable_extra_suffixes=10 bool, counter_domains=11 bytes*, description=12 Text

Metrics: metrics=1 Metric*, order=2 uint32

Header: rows=1 uint32, metrics=2 Metric*

Definition: name=1 bytes, expression=2 bytes, filter=3 Filter

Definitions: definitions=1 Definition*

Set: identifier=1 bytes

Color: kind=1 int32, value=2 uint32

PerSecond: per_cycle=1 Metric*, clock=2 Metric

Value: constant=1 double, metric=2 Metric, per_second=3 PerSecond

RoofOptions: label=1 bytes, color=2 Color, show_extensions=3 bool, show_points=4 bool, show_only_if_not_zero=5 Value

Options: label=1 bytes, color=2 Color

Roof: peak_work=1 Value, peak_traffic=2 Value, options=3 RoofOptions

Point: work=1 Value, traffic=2 Value, options=3 Options

Wall: value=1 Value, options=2 Options

Axis: label=1 bytes, base=2 double, min=3 double, max=4 double

ChartOptions: aspect_ratio=1 bytes

RooflineChart: label=1 bytes, axis_intensity=2 Axis, axis_work=3 Axis, roofs=4 Roof*, points=5 Point*, walls=6 Wall*,
    description=7 bytes, options=8 ChartOptions

Table: label=1 bytes, rows=2 uint32, columns=3 uint32, order=4 int32, metrics=5 Metric*, sort_key=6 int32,
    sort_direction=7 int32, description=8 bytes

Container: items=1 Item*

Item: table=1 Table, container=5 Container, roofline=6 RooflineChart, filter=200 Filter

Body: items=1 Item*, display_name=2 bytes, set_default=3 bool

Group: name=1 bytes, label=2 bytes

Section: identifier=1 bytes, display_name=2 bytes, order=3 uint32, header=4 Header, body=5 Body*, metrics=6 Metrics,
    description=7 bytes, sets=8 Set*, extends=9 bytes, definitions=10 Definitions, filter=11 Filter, group=12 Group*,
    source_metrics=13 Metrics
"""


@cache
def messages() -> dict[str, Any]:
    """Message classes by name (`Section`, `Body`, `Item`, `RooflineChart`, ...), built at the first call."""
    return build_messages("ncu_roofline.sectionfile", _TABLE)


_MAX_NESTING = 20  # containers in containers; stock sections have one level


@lru_cache(maxsize=512)
def parse_section(data: bytes) -> Section:
    """Decode an embedded section.

    Reports repeat the same section in every kernel, so results are cached by content and equal bytes give the same object.
    Raises ValueError for bytes that are not a section (damaged, or nested beyond reason).
    """
    message = messages()["Section"]()
    try:
        message.ParseFromString(data)
    except Exception as error:  # the kind depends on protobuf's version and implementation
        raise ValueError(f"not a section message: {error}") from error
    if not message.identifier:
        raise ValueError("section without identifier")
    items = tuple(_items(message))
    return Section(
        identifier=_text(message.identifier),
        display_name=_text(message.display_name),
        order=message.order,
        description=_text(message.description),
        extends=_text(message.extends),
        sets=tuple(_text(one.identifier) for one in message.sets),
        filter=_filter(message),
        header=_metrics(message.header.metrics),
        metrics=_metrics(message.metrics.metrics),
        definitions=tuple(
            Definition(_text(one.name), _text(one.expression), _filter(one)) for one in message.definitions.definitions
        ),
        tables=tuple(_table(item.table, body, filters) for item, body, filters in items if item.HasField("table")),
        charts=tuple(_chart(item.roofline, body, filters) for item, body, filters in items if item.HasField("roofline")),
    )


def _items(section: Any) -> Iterator[tuple[Any, str, tuple[ArchFilter, ...]]]:
    """Body items in document order, those in containers included, with their filters, the outermost first."""
    for body in section.body:
        name = _text(body.display_name)
        pending: list[tuple[Any, tuple[ArchFilter, ...]]] = [(item, ()) for item in reversed(body.items)]
        while pending:
            item, around = pending.pop()
            if len(around) > _MAX_NESTING:
                raise ValueError("section with containers nested beyond reason")
            filters = (*around, _filter(item))
            yield item, name, filters
            pending.extend((inner, filters) for inner in reversed(item.container.items))


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _filter(owner: Any) -> ArchFilter:
    """The `filter` field of a message."""
    if not owner.HasField("filter"):
        return EVERYWHERE
    message = owner.filter
    return ArchFilter(_range(message), tuple(_range(one) for one in message.items))


def _range(message: Any) -> ArchRange:
    low = message.min_arch if message.HasField("min_arch") else None
    return ArchRange(low, message.max_arch if message.HasField("max_arch") else None)


def _metrics(repeated: Any) -> tuple[SectionMetric, ...]:
    return tuple(_metric(one) for one in repeated)


def _metric(message: Any) -> SectionMetric:
    return SectionMetric(_name(message), tuple(_name(one) for one in message.options))


def _name(message: Any) -> MetricName:
    return MetricName(_text(message.name), _text(message.label), _filter(message))


def _table(message: Any, body: str, filters: tuple[ArchFilter, ...]) -> TablePlan:
    return TablePlan(_text(message.label), body, filters, _metrics(message.metrics))


def _chart(message: Any, body: str, filters: tuple[ArchFilter, ...]) -> ChartPlan:
    return ChartPlan(
        label=_text(message.label),
        body=body,
        filters=filters,
        axis_intensity=_axis(message.axis_intensity),
        axis_work=_axis(message.axis_work),
        roofs=tuple(
            RoofPlan(_value(one.peak_work), _value(one.peak_traffic), _style(one), _value(one.options.show_only_if_not_zero))
            for one in message.roofs
        ),
        points=tuple(PointPlan(_value(one.work), _value(one.traffic), _style(one)) for one in message.points),
        walls=tuple(WallPlan(_value(one.value), _style(one)) for one in message.walls),
    )


def _axis(message: Any) -> Axis:
    base, low, high = (getattr(message, name) if message.HasField(name) else None for name in ("base", "min", "max"))
    return Axis(_text(message.label), base, low, high)


def _style(owner: Any) -> Style:
    options = owner.options
    color = options.color.value if options.HasField("color") and options.color.HasField("value") else None
    return Style(_text(options.label), color)


def _value(message: Any) -> ChartValue:
    if message.HasField("per_second"):
        product = message.per_second
        clock = _metric(product.clock) if product.HasField("clock") else None
        return PerSecondValue(_metrics(product.per_cycle), clock)
    if message.HasField("metric"):
        return MetricValue(_metric(message.metric))
    return ConstantValue(message.constant) if message.HasField("constant") else None
