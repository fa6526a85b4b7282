"""Sections made by hand, as bytes, for tests."""

from __future__ import annotations

from typing import Any

from ncu_roofline.formats.sectionfile.section import messages

SM_CLOCK = "sm__cycles_elapsed.avg.per_second"


def metric(
    name: str, *, label: str = "", arch: dict[str, Any] | None = None, options: tuple[dict[str, Any], ...] = ()
) -> dict[str, Any]:
    """A Metric; `arch` is a Filter (MinArch, MaxArch, Items), options are metrics again."""
    fields: dict[str, Any] = {"Name": name.encode(), "Label": label.encode()}
    if arch is not None:
        fields["Filter"] = arch
    if options:
        fields["Options"] = list(options)
    return fields


def constant(value: float) -> dict[str, Any]:
    """A Value."""
    return {"Constant": value}


def one(name: str, **kwargs: Any) -> dict[str, Any]:
    """A Value of one metric."""
    return {"Metric": metric(name, **kwargs)}


def per_second(*per_cycle: str | dict[str, Any], clock: str | dict[str, Any] = SM_CLOCK) -> dict[str, Any]:
    """A Value: sum of metrics times a clock."""
    *summands, cycles = (metric(m) if isinstance(m, str) else m for m in (*per_cycle, clock))
    return {"ValueCyclesPerSecondExpression": {"ValuePerCycleMetrics": summands, "CyclesPerSecondMetric": cycles}}


def options(label: str, color: int | None = None, **more: Any) -> dict[str, Any]:
    """Options of a roof, point or wall."""
    fields: dict[str, Any] = {"Label": label.encode(), **more}
    if color is not None:
        fields["Color"] = {"ColorType": 1, "ColorValue": color}
    return fields


def roof(work: dict[str, Any], traffic: dict[str, Any], label: str = "roof", **more: Any) -> dict[str, Any]:
    """A Roof."""
    return {"PeakWork": work, "PeakTraffic": traffic, "Options": options(label, **more)}


def point(work: dict[str, Any], traffic: dict[str, Any], label: str = "point", **more: Any) -> dict[str, Any]:
    """A Point."""
    return {"AchievedWork": work, "AchievedTraffic": traffic, "Options": options(label, **more)}


def chart(
    *, roofs: tuple[Any, ...] = (), points: tuple[Any, ...] = (), walls: tuple[Any, ...] = (), **more: Any
) -> dict[str, Any]:
    """An Item with a RooflineChart; `Filter=` goes to the item, the rest to the chart."""
    outer = {"Filter": more.pop("Filter")} if "Filter" in more else {}
    body = {"Rooflines": list(roofs), "AchievedValues": list(points), "Walls": list(walls), **more}
    return {"RooflineChart": body, **outer}


def section(*items: dict[str, Any], definitions: dict[str, str] | None = None, **more: Any) -> bytes:
    """A Section with one body."""
    fields: dict[str, Any] = {"Identifier": b"Test", "DisplayName": b"Test section", **more}
    fields["Body"] = [{"Items": list(items), "DisplayName": b"Body"}]
    if definitions:
        fields["MetricDefinitions"] = {
            "MetricDefinitions": [{"Name": name.encode(), "Expression": text.encode()} for name, text in definitions.items()]
        }
    data = messages()["Section"](**fields).SerializeToString()
    assert isinstance(data, bytes)
    return data
