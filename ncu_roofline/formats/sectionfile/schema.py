"""The section message that reports embed and `.section` files spell out: its fields, and the releases that know each name.

The table is `data/section_fields.txt`.  Newer fields whose numbers are not published are known by name only (`NAMED_ONLY`):
they are accepted and left out of the bytes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from ncu_roofline.chips.fields import Release

RELEASES: tuple[Release, ...] = (
    *((2020, 3), (2021, 1), (2021, 2), (2021, 3), (2022, 1), (2022, 2), (2022, 3), (2022, 4)),
    *((2023, 1), (2023, 2), (2023, 3), (2024, 1), (2024, 2), (2024, 3), (2025, 1), (2025, 2), (2025, 3), (2025, 4)),
)
"""The releases that sections are checked for when none is named."""

ROOT = "Section"

_TABLE = Path(__file__).resolve().parents[2] / "data" / "section_fields.txt"

NAMED_ONLY: Mapping[tuple[str, str], Release] = {
    ("Metric", "Multiplier"): (2025, 1),
    **dict.fromkeys((("Metric", "Color"), ("Metric", "UserMetricExpr"), ("Group", "SchedulingHints")), (2025, 3)),
    **dict.fromkeys((("Filter", "MinKmd"), ("Filter", "MaxKmd")), (2025, 3)),
    ("Filter", "EcSku"): (2026, 2),
    ("BodyItem", "MetricInstancesTable"): (2026, 2),
    **{(owner, "PmWarpSamplingMetric"): (2025, 4) for owner in ("Timeline", "TimelineGroup", "TimelineRow", "Metric")},
    **{
        (owner, name): (2026, 2)
        for owner in ("Timeline", "TimelineGroup", "TimelineRow")
        for name in ("GroupRow", "MaxType", "Overlay", "Markers")
    },
}
"""(message, field) -> first release, where neither number nor type is published."""


class History(NamedTuple):
    """The first and the last release that know a name."""

    since: Release = (0, 0)
    until: Release = (9999, 9)

    def known_to(self, release: Release) -> bool:
        """Whether `release` knows it."""
        return self.since <= release <= self.until


ALWAYS = History()


class EnumValue(NamedTuple):
    """A value of an enum."""

    name: str
    number: int
    history: History


class FieldType(NamedTuple):
    """A field: `kind` is a scalar of protobuf, or the name of a message or an enum of the table."""

    name: str
    number: int
    kind: str
    repeated: bool
    required: bool
    oneof: str
    history: History


class Schema(NamedTuple):
    """The table: fields of each message by name, values of each enum."""

    messages: Mapping[str, Mapping[str, FieldType]]
    enums: Mapping[str, tuple[EnumValue, ...]]


def release_of(text: str) -> Release:
    """(2024, 2) of "2024.2" or "2024.2.1".  Raises ValueError for anything else."""
    match = re.fullmatch(r"(20\d\d)\.([1-9])(\.\d+)*", text.strip(), re.ASCII)
    if not match:
        raise ValueError(f"{text!r} is no release of Nsight Compute, such as 2024.2")
    return int(match[1]), int(match[2])


@cache
def schema() -> Schema:
    """The table, read once."""
    messages: dict[str, dict[str, FieldType]] = {}
    enums: dict[str, tuple[EnumValue, ...]] = {}
    for paragraph in _TABLE.read_text("utf-8").strip().split("\n\n")[1:]:
        owner, _, entries = paragraph.partition(":")
        rows = [_row(entry) for entry in entries.split(",")]
        if owner.startswith("enum "):
            enums[owner.removeprefix("enum ")] = tuple(EnumValue(name, number, history) for name, number, _, history in rows)
            continue
        messages[owner] = {
            name: FieldType(name, number, kind.rstrip("*!"), "*" in kind, "!" in kind, oneof, history)
            for name, number, (kind, _, oneof), history in rows
        }
    return Schema(messages, enums)


def _row(entry: str) -> tuple[str, int, tuple[str, str, str], History]:
    """Name, number, type and history of `name=number type|choice @since-until`."""
    text, _, span = entry.partition("@")
    since, _, until = span.strip().partition("-")
    history = History(release_of(since) if since else ALWAYS.since, release_of(until) if until else ALWAYS.until)
    words = text.split()
    name, _, number = words[0].partition("=")
    return name, int(number), "".join(words[1:]).partition("|"), history


@cache
def messages() -> dict[str, Any]:
    """Message classes by name (`Section`, `Body`, `BodyItem`, `RooflineChart`, ...), built at the first call.

    They hold whatever a report embeds: enums are numbers, so that unknown values survive, and nothing is required.
    """
    from ncu_roofline.formats.wire import build_messages

    enums = schema().enums
    lines = []
    for owner, fields in schema().messages.items():
        entries = (
            f"{one.name}={one.number} {'int32' if one.kind in enums else one.kind}{'*' if one.repeated else ''}"
            for one in fields.values()
        )
        lines.append(f"{owner}: {', '.join(entries)}")
    return build_messages("ncu_roofline.sections", "\n\n".join(lines))
