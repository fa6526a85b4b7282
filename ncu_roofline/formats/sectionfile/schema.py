"""The section message that reports embed and `.section` files spell out: its fields, and the releases that know each name.

The table is `data/section_fields.txt`.  Newer fields whose numbers are not published are known by name only (`NAMED_ONLY`):
they are accepted and left out of the bytes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

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

_HISTORY = re.compile(r"\s@(\d{4}\.\d)?(?:-(\d{4}\.\d))?")


@dataclass(frozen=True)
class History:
    """The first and the last release that know a name; None is open."""

    since: Release | None = None
    until: Release | None = None

    def known_to(self, release: Release) -> bool:
        """Whether `release` knows it."""
        return (self.since is None or self.since <= release) and (self.until is None or release <= self.until)


ALWAYS = History()


@dataclass(frozen=True)
class EnumValue:
    """A value of an enum."""

    name: str
    number: int
    history: History


@dataclass(frozen=True)
class FieldType:
    """A field: `kind` is a scalar of protobuf, or the name of a message or an enum of the table."""

    name: str
    number: int
    kind: str
    repeated: bool
    required: bool
    oneof: str
    history: History


@dataclass(frozen=True)
class Schema:
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
        fields: dict[str, FieldType] = {}
        values = []
        for entry in entries.split(","):
            match = _HISTORY.search(entry)
            since, until = (release_of(group) if group else None for group in match.groups()) if match else (None, None)
            history = History(since, until) if match else ALWAYS
            words = _HISTORY.sub("", entry).split()
            name, _, number = words[0].partition("=")
            if owner.startswith("enum "):
                values.append(EnumValue(name, int(number), history))
            else:
                kind, _, oneof = words[1].partition("|")
                fields[name] = FieldType(
                    name, int(number), kind.rstrip("*!"), kind.endswith("*"), kind.endswith("!"), oneof, history
                )
        if values:
            enums[owner.removeprefix("enum ")] = tuple(values)
        else:
            messages[owner] = fields
    return Schema(messages, enums)


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
