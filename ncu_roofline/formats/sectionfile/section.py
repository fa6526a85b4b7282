"""A section is the protobuf message that reports embed, and `.section` files spell out: its fields, how it is read and made.

The table of fields, with the releases that know each name, is `data/section_fields.txt`.  Fields whose numbers are not
published are accepted and left out of the bytes.  Texts are bytes in the message (real reports hold some that are not UTF-8),
enums are numbers.

Filters say which metric, definition, chart or section is meant for which compute capability.  What they do, as seen in the
output of ncu 2024.2 for reports with hand-made sections:

* a range is inclusive at both ends and open where a bound is absent;
* `Items` replace the filter's own bounds: any matching item will do;
* filters inside a filtered section or body item inherit what they leave open: the lower bound, the upper bound, the items;
* an alternative (`Options`) that matches replaces the base metric, even where the base metric's own filter matches, too;
  the first match wins, and an alternative without filter matches wherever its surroundings do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Any, NamedTuple

from ncu_roofline.chips.fields import DATA, Release
from ncu_roofline.formats.wire import Schema, build_messages, read_schema

RELEASES: tuple[Release, ...] = (
    *((2020, 3), (2021, 1), (2021, 2), (2021, 3), (2022, 1), (2022, 2), (2022, 3), (2022, 4)),
    *((2023, 1), (2023, 2), (2023, 3), (2024, 1), (2024, 2), (2024, 3), (2025, 1), (2025, 2), (2025, 3), (2025, 4)),
)
"""The releases that sections are checked for when none is named."""
ROOT = "Section"
MOST_BYTES = 2_000_000
"""Of a section, as text or message: the largest known, of Nsight Compute, has 0.6 MB."""
PER_SECOND = "ValueCyclesPerSecondExpression"
"""The field of a value that is a sum per cycle times the cycles per second."""
_MAX_NESTING = 20  # containers in containers; stock sections have one level
# Nsight Compute 2025.1 and 2025.2 called the chip of Thor 10.1; all later releases call the same chip 11.0.
_RENAMED = {101: 110}

Range = tuple[int | None, int | None]
"""Architecture numbers from the first to the last, both included; None is open."""


def release_of(text: str) -> Release:
    """(2024, 2) of "2024.2" or "2024.2.1".  Raises ValueError for anything else."""
    match = re.fullmatch(r"(20\d\d)\.([1-9])(\.\d+)*", text.strip(), re.ASCII)
    if not match:
        raise ValueError(f"{text!r} is no release of Nsight Compute, such as 2024.2")
    return int(match[1]), int(match[2])


@cache
def schema() -> Schema:
    return read_schema((DATA / "section_fields.txt").read_text("utf-8"))


@cache
def messages(*, strict: bool = False) -> dict[str, Any]:
    """Message classes by name (`Section`, `Body`, `BodyItem`, `RooflineChart`, ...), built at the first call.  They hold
    whatever a report embeds: enums are numbers, so that unknown values survive, and nothing is required. ``strict``: those
    that text is read into, where enums have names and choices are one field each."""
    return build_messages("section" if strict else "ncu_roofline.sections", schema(), strict=strict)


def arch_number(compute_capability: tuple[int, int]) -> int:
    """The number that sections use for a compute capability: (8, 6) is 86, (12, 1) is 121; 10.1 is 110."""
    major, minor = compute_capability
    number = 10 * major + minor
    return _RENAMED.get(number, number)


class Filter(NamedTuple):
    """Bounds, or any of some ranges in their place.  Without either it matches everything."""

    low: int | None = None
    high: int | None = None
    items: tuple[Range, ...] = ()

    def matches(self, arch: int) -> bool:
        """Whether `arch` (as of `arch_number`) passes."""
        return any(
            (low is None or _RENAMED.get(low, low) <= arch) and (high is None or arch <= _RENAMED.get(high, high))
            for low, high in self.items or ((self.low, self.high),)
        )

    def inside(self, outer: Filter) -> Filter:
        """This filter where `outer` surrounds it."""
        low = outer.low if self.low is None else self.low
        high = outer.high if self.high is None else self.high
        return Filter(low, high, self.items or outer.items)


EVERYWHERE = Filter()


def filter_of(owner: Any) -> Filter:
    """The filter of a section, body item, metric, alternative or definition."""
    if not owner.HasField("Filter"):
        return EVERYWHERE

    def ends(bounds: Any) -> Range:
        low = bounds.MinArch if bounds.HasField("MinArch") else None
        return low, bounds.MaxArch if bounds.HasField("MaxArch") else None

    return Filter(*ends(owner.Filter), tuple(map(ends, owner.Filter.Items)))


def name_on(metric: Any, arch: int, around: Filter = EVERYWHERE) -> str | None:
    """The name of a metric that holds on `arch` inside a filter, or None where the section has none for it."""
    named = next((one for one in (*metric.Options, metric) if filter_of(one).inside(around).matches(arch)), None)
    return None if named is None else text_of(named.Name)


def text_of(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def items_of(section: Any) -> Iterator[tuple[Any, tuple[Filter, ...]]]:
    """Body items in document order, those in containers included, and the filters around each, the outermost first.  Raises
    ValueError for nesting beyond reason."""
    for body in section.Body:
        pending: list[tuple[Any, tuple[Filter, ...]]] = [(item, ()) for item in reversed(body.Items)]
        while pending:
            item, around = pending.pop()
            if len(around) > _MAX_NESTING:
                raise ValueError("section with containers nested beyond reason")
            filters = (*around, filter_of(item))
            yield item, filters
            pending.extend((inner, filters) for inner in reversed(item.HorizontalContainer.Items))


def metrics_of(message: Any) -> Iterator[Any]:
    for field, value in message.ListFields():
        if field.message_type is not None:
            for inner in [value] if hasattr(value, "ListFields") else value:
                if field.message_type.name == "Metric":
                    yield inner
                else:
                    yield from metrics_of(inner)


class Section:
    """A section message with its roofline charts.  Compared by identity: sections are keys of caches, and large.  Raises
    ValueError for a message without identifier, or nested beyond reason."""

    def __init__(self, message: Any) -> None:
        if not message.Identifier:
            raise ValueError("section without identifier")
        self.message = message
        self.identifier = text_of(message.Identifier)
        self.charts = tuple(one for one in items_of(message) if one[0].HasField("RooflineChart"))


@lru_cache(maxsize=512)
def parse_section(data: bytes) -> Section:
    """Decode an embedded section: reports repeat one in every kernel, and equal bytes give the same object.  Raises ValueError
    for bytes that are not a section (damaged, larger than `MOST_BYTES`, or nested beyond reason)."""
    if len(data) > MOST_BYTES:
        raise ValueError(f"a section of more than {MOST_BYTES / 1e6:g} MB")
    message = messages()[ROOT]()
    try:
        message.ParseFromString(data)
    except Exception as error:  # the kind depends on protobuf's version and implementation
        raise ValueError(f"not a section message: {error}") from error
    return Section(message)


def made(kind: str, **fields: Any) -> Any:
    """A message of the schema with these fields; what is None or "" is left out."""
    given = {name: value.encode() if isinstance(value, str) else value for name, value in fields.items()}
    return messages()[kind](**{name: value for name, value in given.items() if value not in (None, b"")})


def made_value(*metrics: Any, clock: Any = None, constant: float | None = None) -> Any:
    """A value of a chart: a constant, one metric, or the sum of metrics per cycle times a clock."""
    if constant is not None:
        return made("Value", Constant=constant)
    if clock is None:
        return made("Value", Metric=metrics[0])
    return made("Value", **{PER_SECOND: made("Product", ValuePerCycleMetrics=metrics, CyclesPerSecondMetric=clock)})


def made_options(kind: str, label: str, color: str, **more: Any) -> Any:
    """Options of a roof, point or wall: a label and an opaque colour (#RRGGBB)."""
    argb = 0xFF000000 | int(color[1:], 16)
    return made(kind, Label=label, Color=made("Color", ColorType=1, ColorValue=argb), **more)


def made_roof(work: Any, traffic: Any, label: str, color: str, condition: Any = None) -> Any:
    """A roof; with a ``condition`` it is hidden while that value is zero."""
    options = made_options("RooflineOptions", label, color, ShowOnlyIfNotZero=condition)
    return made("Roofline", PeakWork=work, PeakTraffic=traffic, Options=options)


def made_point(work: Any, traffic: Any, label: str, color: str) -> Any:
    return made("Achieved", AchievedWork=work, AchievedTraffic=traffic, Options=made_options("PlainOptions", label, color))
