"""The section message that reports embed and `.section` files spell out: field numbers of what rooflines need.

Source: ProfilerSection.proto and ProfilerMetricOptions.proto, which every Nsight Compute release ships in extras/FileFormat.
The numbers have not changed since rooflines came (2020.1).  Fields that are not listed survive as unknown fields.  Text is
`bytes` (real reports hold text that is not UTF-8) and enums are `int32` (an unknown architecture must survive).
"""

from __future__ import annotations

from functools import cache
from typing import Any

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
    return build_messages("ncu_roofline.sections", _TABLE)
