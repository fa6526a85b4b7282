"""Bytes of a ProfilerSection message -> `Section`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from ncu_roofline.sections.filters import EVERYWHERE, ArchFilter, ArchRange, MetricName, SectionMetric
from ncu_roofline.sections.schema import messages
from ncu_roofline.sections.tree import (
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
