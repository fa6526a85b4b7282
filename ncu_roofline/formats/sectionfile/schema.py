"""The section message that reports embed and `.section` files spell out: its fields, and the releases that know each name.

Source: ProfilerSection.proto and ProfilerMetricOptions.proto of Nsight Compute 2020.3, 2022.3, 2024.1 and 2024.2 (each release
ships its own in extras/FileFormat); for the releases between and after them the sections that reports of those releases
embed, and their release notes.  A name without history is as old as 2020.1; where the first release is only known to lie
between two, the later one stands here.

Newer fields whose numbers are not published are known by name only (`NAMED_ONLY`): they are accepted and left out of the bytes.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from ncu_roofline.chips.fields import Release

RELEASES: tuple[Release, ...] = (
    *((2020, 3), (2021, 1), (2021, 2), (2021, 3), (2022, 1), (2022, 2), (2022, 3), (2022, 4)),
    *((2023, 1), (2023, 2), (2023, 3), (2024, 1), (2024, 2), (2024, 3), (2025, 1), (2025, 2), (2025, 3), (2025, 4)),
)
"""The releases that sections are checked for when none is named."""

ROOT = "Section"

# `Message: field=number type, ...`; behind a type `*` is a repeated and `!` a required field, `|name` a member of a choice.
# `@since`, `@-until` or `@since-until` behind an entry: the first and the last release that know it.
_TABLE = """
enum GpuArch: InvalidArch=0, MinArch=40, GK10x=40 @-2020.3, GK11x=43 @-2020.3, GK20x=50 @-2020.3, GM10x=50 @-2020.3,
    GM20x=52 @-2020.3, GM20b=53 @-2020.3, GP100=60 @-2020.3, GP10x=61 @-2020.3, GP10b=62 @-2020.3, GV100=70 @-2020.3,
    GV11b=72 @-2020.3, TU10x=75 @-2020.3, GA100=80 @-2020.3, GA10x=86 @-2020.3,
    CC_40=40 @2021.1-2023.3, CC_43=43 @2021.1-2023.3, CC_50=50 @2021.1-2025.2, CC_52=52 @2021.1-2025.2, CC_53=53 @2021.1,
    CC_60=60 @2021.1, CC_61=61 @2021.1, CC_62=62 @2021.1, CC_70=70 @2021.1, CC_72=72 @2021.1, CC_75=75 @2021.1,
    CC_80=80 @2021.1, CC_86=86 @2021.1, CC_87=87 @2022.3, CC_89=89 @2022.3, CC_90=90 @2022.3, CC_100=100 @2025.1,
    CC_101=101 @2025.1-2025.2, CC_120=120 @2025.1, CC_88=88 @2025.3, CC_103=103 @2025.3, CC_110=110 @2025.3,
    CC_121=121 @2025.3, CC_107=107 @2026.3, MaxArch=121

enum CollectionScope: CollectionScope_Launch=1, CollectionScope_Range=2, CollectionScope_Cmdlist=3 @2024.1

enum CollectionImportance: CollectionImportance_Required=1, CollectionImportance_Optional=2

enum PlatformSupport: Platform_Supported=1, Platform_NotSupported=2, Platform_Required=3

enum HWUnitType: Invalid=0, Default=1, Gpc=2, Tpc=3, Sm=4, Smsp=5, Tex=6, Lts=7, Ltc=8, Fbpa=9

enum SortKeys: ByLabel=0, ByValue=1

enum SortDirections: Ascending=0, Descending=1

enum DescriptionMode: DescrReplace=0

enum LayoutOrder: RowMajor=0, ColumnMajor=1

enum ColorType: ChartColorTypeUnknown=0, ChartColorTypeArgb=1

enum Directions: Horizontal=0, Vertical=1

enum ValueAxisAlignments: ValueAxisAlignments_Default=0, ValueAxisAlignments_Alternate=1, ValueAxisAlignments_Both=2

enum TimelineRowType: StackedBar=0, Ranges=1 @2024.2

CollectionFilter: CollectionScopes=1 CollectionScope*, Importance=2 CollectionImportance @2023.3

FilterItem: MinArch=1 GpuArch, MaxArch=2 GpuArch

Filter: MinArch=1 GpuArch, MaxArch=2 GpuArch, Items=3 FilterItem* @2021.3, CollectionFilter=4 CollectionFilter @2022.1,
    VGpu=5 PlatformSupport @2024.2

Option: Name=1 bytes!, Label=2 bytes, Filter=3 Filter

SourceCorrelation: Disabled=1 bool, DivideByCorrelatedLineCount=2 bool

SourceView: DefaultVisible=1 bool, DisableRelativeValues=2 bool @2024.1

DisplayProperties: SourceCorrelation=1 SourceCorrelation, SourceView=2 SourceView

CustomDescription: Text=1 bytes, Mode=2 DescriptionMode

Metric: Name=1 bytes!, Label=2 bytes, HWUnit=3 HWUnitType, ShowInstances=4 bool, Unit=5 bytes, Filter=6 Filter,
    Options=7 Option*, DisplayProperties=8 DisplayProperties @2022.1, Groups=9 bytes* @2022.2,
    DisableExtraSuffixes=10 bool @2024.1, CtrDomains=11 bytes* @2024.1, Description=12 CustomDescription @2024.2

Group: Name=1 bytes, Label=2 bytes, DisplayProperties=3 DisplayProperties

Highlight: Metrics=1 Metric*

Container: Items=1 BodyItem*

Table: Label=1 bytes, Rows=2 uint32, Columns=3 uint32!, Order=4 LayoutOrder, Metrics=5 Metric*, SortKey=6 SortKeys,
    SortDirection=7 SortDirections, Description=8 bytes @2022.2

Color: ColorType=1 ColorType!, ColorValue=2 uint32

AxisRange: Min=1 int64, Max=2 int64

ValueAxis: Label=1 bytes, Range=2 AxisRange, TickCount=3 int64, Size=4 int64, Precision=5 uint32

CategoryAxis: Label=1 bytes

HistogramAxis: Label=1 bytes, BinCount=2 int64

RooflineAxis: Label=1 bytes, Base=2 double, Min=3 double, Max=4 double

Product: ValuePerCycleMetrics=1 Metric*, CyclesPerSecondMetric=2 Metric

RooflineOptions: Label=1 bytes, Color=2 Color, ShowRooflineExtensions=3 bool, ShowRooflinePoints=4 bool,
    ShowOnlyIfNotZero=5 Value @2024.2

PlainOptions: Label=1 bytes, Color=2 Color

Value: Constant=1 double|RooflineValue, Metric=2 Metric|RooflineValue, ValueCyclesPerSecondExpression=3 Product|RooflineValue

Roofline: PeakWork=1 Value!, PeakTraffic=2 Value!, Options=3 RooflineOptions

Achieved: AchievedWork=1 Value!, AchievedTraffic=2 Value!, Options=3 PlainOptions

Wall: Value=1 Value!, Options=2 PlainOptions

SourceMetricTable: Label=1 bytes, Rows=2 uint32, Metrics=3 Metric*, SortDirection=4 SortDirections, Description=5 bytes @2022.2

Suffix: Name=1 bytes!, Label=2 bytes

Suffixes: Suffix=1 Suffix*

BaseNames: BaseName=1 Metric*

SuffixTable: Label=1 bytes, Suffixes=2 Suffixes!, BaseNames=3 BaseNames!, SortKey=4 SortKeys,
    SortDirection=5 SortDirections, Description=6 bytes

ChartOptions: AspectRatio=1 bytes

BarChart: Label=1 bytes, Direction=2 Directions, CategoryAxis=3 CategoryAxis, ValueAxis=4 ValueAxis, Metrics=5 Metric*,
    SortKey=6 SortKeys, SortDirection=7 SortDirections, ValueAxisAlignment=8 ValueAxisAlignments @2021.3,
    Description=9 bytes @2022.2

HistogramChart: Label=1 bytes, HistogramAxis=2 HistogramAxis, ValueAxis=3 ValueAxis, Metric=4 Metric!,
    Description=5 bytes @2022.2

LineChart: Label=1 bytes, AxisX=2 ValueAxis, AxisY=3 ValueAxis, Metrics=4 Metric*, HighlightX=5 Highlight,
    Description=6 bytes @2022.2

RooflineChart: Label=1 bytes, AxisIntensity=2 RooflineAxis, AxisWork=3 RooflineAxis, Rooflines=4 Roofline*,
    AchievedValues=5 Achieved*, Walls=6 Wall*, Description=7 bytes @2022.2, Options=8 ChartOptions @2022.2

MemorySharedTable: Label=1 bytes, ShowLoads=2 bool, ShowStores=3 bool, ShowAtomics=4 bool, ShowTotals=5 bool

MemoryFirstLevelCacheTable: Label=1 bytes, ShowLoads=2 bool, ShowStores=3 bool, ShowAtomics=4 bool, ShowReductions=5 bool,
    ShowGlobal=6 bool, ShowLocal=7 bool, ShowSurface=8 bool, ShowTexture=9 bool, ShowTotalLoads=10 bool,
    ShowTotalStores=11 bool, ShowTotals=12 bool

MemoryL1TEXCacheTable: Label=1 bytes, ShowLoads=2 bool, ShowStores=3 bool, ShowAtomics=4 bool, ShowReductions=5 bool,
    ShowGlobal=6 bool, ShowLocal=7 bool, ShowSurface=8 bool, ShowTexture=9 bool, ShowTotalLoads=10 bool,
    ShowTotalStores=11 bool, ShowTotals=12 bool, ShowTotalAtomicsAndReductions=13 bool @2022.3

MemoryL2CacheEvictPolicyTable: Label=1 bytes, ShowLoads=2 bool, ShowStores=3 bool, ShowAtomics=4 bool

MemoryL2CacheTable: Label=1 bytes, ShowLoads=2 bool, ShowStores=3 bool, ShowAtomics=4 bool, ShowReductions=5 bool

MemoryDeviceMemoryTable: Label=1 bytes, ShowLoads=2 bool, ShowStores=3 bool, ShowTotals=4 bool

Labelled: Label=1 bytes

GfxMetricsWidget: Type=1 bytes!, Label=2 bytes, Metrics=3 Metric*

TimelineRow: Label=1 bytes, Description=2 bytes, Type=3 TimelineRowType, Metrics=4 Metric*

TimelineGroup: Label=1 bytes, Description=2 bytes, Expanded=3 bool, MetricRows=4 TimelineRow*

Timeline: Label=1 bytes, MetricGroups=2 TimelineGroup*, Metrics=3 Metric*

Header: Rows=1 uint32, Metrics=2 Metric*

BodyItem: Table=1 Table, BarChart=2 BarChart, HistogramChart=3 HistogramChart, LineChart=4 LineChart,
    HorizontalContainer=5 Container, RooflineChart=6 RooflineChart, SourceMetricTable=7 SourceMetricTable,
    SuffixTable=8 SuffixTable @2024.1, MemorySharedTable=101 MemorySharedTable,
    MemoryFirstLevelCacheTable=102 MemoryFirstLevelCacheTable, MemorySecondLevelCacheTable=103 MemoryFirstLevelCacheTable,
    MemoryDeviceMemoryTable=104 MemoryDeviceMemoryTable, MemoryChart=105 Labelled,
    MemoryL1TEXCacheTable=106 MemoryL1TEXCacheTable, MemoryL2CacheTable=107 MemoryL2CacheTable,
    NvlinkTopology=108 Labelled @2022.3, NvlinkPropertyTable=109 Labelled @2022.3,
    NvlinkThroughputTable=110 Labelled @2022.3, MemoryL2CacheEvictPolicyTable=111 MemoryL2CacheEvictPolicyTable @2022.3,
    NumaIdTable=112 Labelled @2024.1, Timeline=113 Timeline @2023.3, GfxMetricsWidget=150 GfxMetricsWidget, Filter=200 Filter

Body: Items=1 BodyItem*, DisplayName=2 bytes, SetDefault=3 bool @2023.3

Metrics: Metrics=1 Metric*, Order=2 uint32

Definition: Name=1 bytes!, Expression=2 bytes!, Filter=3 Filter @2023.1

Definitions: MetricDefinitions=1 Definition*

Set: Identifier=1 bytes!

Section: Identifier=1 bytes!, DisplayName=2 bytes!, Order=3 uint32, Header=4 Header, Body=5 Body*, Metrics=6 Metrics,
    Description=7 bytes, Sets=8 Set*, Extends=9 bytes, MetricDefinitions=10 Definitions @2020.3, Filter=11 Filter @2022.1,
    Group=12 Group* @2022.2, SourceMetrics=13 Metrics @2023.3
"""

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
    for paragraph in _TABLE.strip().split("\n\n"):
        name, _, entries = paragraph.partition(":")
        if name.startswith("enum "):
            enums[name.removeprefix("enum ")] = tuple(
                EnumValue(words[0].partition("=")[0], int(words[0].partition("=")[2]), history)
                for words, history in _entries(entries)
            )
        else:
            fields = [_field(words, history) for words, history in _entries(entries)]
            messages[name] = {field.name: field for field in fields}
    return Schema(messages, enums)


def _entries(text: str) -> Iterator[tuple[list[str], History]]:
    for entry in text.split(","):
        match = _HISTORY.search(entry)
        since, until = (release_of(group) if group else None for group in match.groups()) if match else (None, None)
        yield _HISTORY.sub("", entry).split(), History(since, until) if match else ALWAYS


def _field(words: list[str], history: History) -> FieldType:
    name, _, number = words[0].partition("=")
    kind, _, oneof = words[1].partition("|")
    return FieldType(name, int(number), kind.rstrip("*!"), kind.endswith("*"), kind.endswith("!"), oneof, history)


@cache
def messages() -> dict[str, Any]:
    """Message classes by name (`Section`, `Body`, `BodyItem`, `RooflineChart`, ...), built at the first call.

    They hold whatever a report embeds: enums are numbers, so that unknown values survive, and nothing is required.
    """
    from ncu_roofline.formats.wire import build_messages

    messages, enums = schema().messages, schema().enums
    entries = {name: (_entry(field, enums) for field in fields.values()) for name, fields in messages.items()}
    return build_messages("ncu_roofline.sections", "\n\n".join(f"{name}: {', '.join(e)}" for name, e in entries.items()))


def _entry(field: FieldType, enums: Container[str]) -> str:
    return f"{field.name}={field.number} {'int32' if field.kind in enums else field.kind}{'*' if field.repeated else ''}"
