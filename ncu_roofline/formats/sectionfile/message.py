"""Sections and the message that reports embed: `parse_section` reads the bytes, `encode_section` makes them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from functools import lru_cache
from typing import Any, TypeVar

from ncu_roofline.formats.sectionfile.schema import messages
from ncu_roofline.formats.sectionfile.section import (
    EVERYWHERE,
    PER_SECOND,
    ArchFilter,
    ChartValue,
    ConstantValue,
    MetricValue,
    PerSecondValue,
    Section,
    SectionChart,
    SectionTable,
    SectionTimeline,
    Style,
)

_ITEMS: dict[Any, str] = {SectionTable: "Table", SectionChart: "RooflineChart", SectionTimeline: "Timeline"}
_VALUES = {PerSecondValue: PER_SECOND, MetricValue: "Metric", ConstantValue: "Constant"}
_PLACES: dict[Any, tuple[tuple[str, str, Any], ...]] = {}
MOST_BYTES = 2_000_000
"""Of a section, as text or message: the largest known, of Nsight Compute, has 0.6 MB."""
_MAX_NESTING = 20  # containers in containers; stock sections have one level
_ARGB = 1  # kind of a colour

_Part = TypeVar("_Part")


@lru_cache(maxsize=512)
def parse_section(data: bytes) -> Section:
    """Decode an embedded section.

    Reports repeat the same section in every kernel, so results are cached by content and equal bytes give the same object.
    Raises ValueError for bytes that are not a section (damaged, larger than `MOST_BYTES`, or nested beyond reason).
    """
    if len(data) > MOST_BYTES:
        raise ValueError(f"a section of more than {MOST_BYTES / 1e6:g} MB")
    message = messages()["Section"]()
    try:
        message.ParseFromString(data)
    except Exception as error:  # the kind depends on protobuf's version and implementation
        raise ValueError(f"not a section message: {error}") from error
    return section_of(message)


def section_of(message: Any) -> Section:
    """The section that a message holds.  Raises ValueError for one without identifier, or nested beyond reason."""
    if not message.Identifier:
        raise ValueError("section without identifier")
    shown: dict[Any, list[Any]] = {kind: [] for kind in _ITEMS}
    for item, body, filters in _items(message):
        for kind, name in _ITEMS.items():
            if item.HasField(name):
                shown[kind].append(replace(read(kind, getattr(item, name)), body=body, filters=filters))
    return replace(
        read(Section, message),
        sets=tuple(_text(one.Identifier) for one in message.Sets),
        tables=tuple(shown[SectionTable]),
        charts=tuple(shown[SectionChart]),
        timelines=tuple(shown[SectionTimeline]),
    )


def _items(section: Any) -> Iterator[tuple[Any, str, tuple[ArchFilter, ...]]]:
    """Body items in document order, those in containers included, with their filters, the outermost first."""
    for body in section.Body:
        name = _text(body.DisplayName)
        pending: list[tuple[Any, tuple[ArchFilter, ...]]] = [(item, ()) for item in reversed(body.Items)]
        while pending:
            item, around = pending.pop()
            if len(around) > _MAX_NESTING:
                raise ValueError("section with containers nested beyond reason")
            filters = (*around, read(ArchFilter, item.Filter))
            yield item, name, filters
            pending.extend((inner, filters) for inner in reversed(item.HorizontalContainer.Items))


def _places(part: Any) -> tuple[tuple[str, str, Any], ...]:
    """Name, path in the message and kind of each field of a part of the model that has a place of its own."""
    if part not in _PLACES:
        _PLACES[part] = tuple((one.name, one.metadata["path"], one.metadata["kind"]) for one in fields(part) if one.metadata)
    return _PLACES[part]


def read(part: type[_Part], message: Any) -> _Part:
    """A part of the model, such as a `SectionMetric`, from its message."""
    values = {}
    for name, path, kind in _places(part):
        owner, last = _end(message, path)
        if not last:
            values[name] = read(kind, message)
        elif kind is str:
            values[name] = _text(getattr(owner, last))
        elif isinstance(kind, list):
            values[name] = tuple(read(kind[0], one) for one in getattr(owner, last))
        elif owner.HasField(last):
            content = getattr(owner, last)
            values[name] = _value(content) if kind is ChartValue else content if kind in (int, float) else read(kind, content)
    return part(**values)


def _end(message: Any, path: str) -> tuple[Any, str]:
    first, _, rest = path.partition(".")
    return _end(getattr(message, first), rest) if rest else (message, first)


def _value(message: Any) -> ChartValue:
    return next((read(kind, message) for kind, field in _VALUES.items() if message.HasField(field)), None)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def encode_section(section: Section) -> bytes:
    """The bytes of a section: `parse_section` gives the same section back."""
    message = messages()["Section"]()
    _write(section, message)
    for one in section.sets:
        message.Sets.add(Identifier=one.encode())
    bodies: dict[str, Any] = {}
    parts: tuple[SectionTable | SectionChart | SectionTimeline, ...] = (*section.tables, *section.charts, *section.timelines)
    for shown in parts:
        if shown.body not in bodies:
            bodies[shown.body] = message.Body.add(DisplayName=shown.body.encode())
        item = bodies[shown.body].Items.add()
        for depth, around in enumerate(shown.filters):
            item = item.HorizontalContainer.Items.add() if depth else item
            if around != EVERYWHERE:
                _write(around, item.Filter)
        content = getattr(item, _ITEMS[type(shown)])
        content.SetInParent()
        _write(shown, content)
    data: bytes = message.SerializeToString()
    return data


def _write(part: Any, message: Any) -> None:
    for name, path, _ in _places(type(part)):
        content = getattr(part, name)
        owner, last = _end(message, path)
        if not last:
            _write(content, message)
        elif isinstance(content, tuple):
            for one in content:
                _write(one, getattr(owner, last).add())
        elif isinstance(content, str | int | float):
            if content != "":
                setattr(owner, last, content.encode() if isinstance(content, str) else content)
        elif content is not None and content != EVERYWHERE:
            _write(content, getattr(owner, last))
    if isinstance(part, Style) and part.color is not None:
        message.Options.Color.ColorType = _ARGB
