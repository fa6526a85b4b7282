"""Sections made by hand, as bytes, for tests."""

from __future__ import annotations

from typing import Any

from ncu_roofline.sectionfile.message import messages

SM_CLOCK = "sm__cycles_elapsed.avg.per_second"
DRAM_CLOCK = "dram__cycles_elapsed.avg.per_second"


def metric(
    name: str, *, label: str = "", arch: dict[str, Any] | None = None, options: tuple[dict[str, Any], ...] = ()
) -> dict[str, Any]:
    """A Metric; `arch` is a Filter (min_arch, max_arch, items), options are metrics again."""
    fields: dict[str, Any] = {"name": name.encode(), "label": label.encode()}
    if arch is not None:
        fields["filter"] = arch
    if options:
        fields["options"] = list(options)
    return fields


def constant(value: float) -> dict[str, Any]:
    """A Value."""
    return {"constant": value}


def one(name: str, **kwargs: Any) -> dict[str, Any]:
    """A Value of one metric."""
    return {"metric": metric(name, **kwargs)}


def per_second(*per_cycle: str | dict[str, Any], clock: str | dict[str, Any] | None = SM_CLOCK) -> dict[str, Any]:
    """A Value: sum of metrics times a clock."""
    as_metric = [metric(m) if isinstance(m, str) else m for m in per_cycle]
    fields: dict[str, Any] = {"per_cycle": as_metric}
    if clock is not None:
        fields["clock"] = metric(clock) if isinstance(clock, str) else clock
    return {"per_second": fields}


def options(label: str, color: int | None = None, **more: Any) -> dict[str, Any]:
    """Options of a roof, point or wall."""
    fields: dict[str, Any] = {"label": label.encode(), **more}
    if color is not None:
        fields["color"] = {"kind": 1, "value": color}
    return fields


def roof(work: dict[str, Any], traffic: dict[str, Any], label: str = "roof", **more: Any) -> dict[str, Any]:
    """A Roof."""
    return {"peak_work": work, "peak_traffic": traffic, "options": options(label, **more)}


def point(work: dict[str, Any], traffic: dict[str, Any], label: str = "point", **more: Any) -> dict[str, Any]:
    """A Point."""
    return {"work": work, "traffic": traffic, "options": options(label, **more)}


def chart(
    *, roofs: tuple[Any, ...] = (), points: tuple[Any, ...] = (), walls: tuple[Any, ...] = (), **more: Any
) -> dict[str, Any]:
    """An Item with a RooflineChart; `filter=` goes to the item, the rest to the chart."""
    outer = {"filter": more.pop("filter")} if "filter" in more else {}
    body = {"roofs": list(roofs), "points": list(points), "walls": list(walls), **more}
    return {"roofline": body, **outer}


def section(*items: dict[str, Any], definitions: dict[str, str] | None = None, **more: Any) -> bytes:
    """A Section with one body."""
    fields: dict[str, Any] = {"identifier": b"Test", "display_name": b"Test section", **more}
    fields["body"] = [{"items": list(items), "display_name": b"Body"}]
    if definitions:
        fields["definitions"] = {
            "definitions": [{"name": name.encode(), "expression": text.encode()} for name, text in definitions.items()]
        }
    data = messages()["Section"](**fields).SerializeToString()
    assert isinstance(data, bytes)
    return data
