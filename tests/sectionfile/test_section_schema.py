"""Field numbers against the .proto files that Nsight Compute ships."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ncu_roofline.sectionfile.message import messages

# ours -> theirs: message (without the prefix "ProfilerSection", where it has one) and fields, in our order of numbers
NAMES = {
    "ArchRange": ("MetricOptionFilterItem", "MinArch MaxArch"),
    "CollectionFilter": ("CollectionFilter", "CollectionScopes Importance"),
    "Filter": ("MetricOptionFilter", "MinArch MaxArch Items CollectionFilter VGpu"),
    "Option": ("MetricOption", "Name Label Filter"),
    "Text": ("CustomDescription", "Text Mode"),
    "Metric": (
        "Metric",
        "Name Label HWUnit ShowInstances Unit Filter Options Groups DisableExtraSuffixes CtrDomains Description",
    ),
    "Metrics": ("Metrics", "Metrics Order"),
    "Header": ("Header", "Rows Metrics"),
    "Definition": ("MetricDefinition", "Name Expression Filter"),
    "Definitions": ("MetricDefinitions", "MetricDefinitions"),
    "Set": ("ProfilerSet", "Identifier"),
    "Color": ("ChartColor", "ColorType ColorValue"),
    "PerSecond": ("RooflineValueCyclesPerSecondExpression", "ValuePerCycleMetrics CyclesPerSecondMetric"),
    "Value": ("RooflineValue", "Constant Metric ValueCyclesPerSecondExpression"),
    "RoofOptions": ("RooflineOptions", "Label Color ShowRooflineExtensions ShowRooflinePoints ShowOnlyIfNotZero"),
    "Options": ("RooflineAchievedValueOptions", "Label Color"),
    "Roof": ("ChartRoofline", "PeakWork PeakTraffic Options"),
    "Point": ("RooflineAchievedValue", "AchievedWork AchievedTraffic Options"),
    "Wall": ("RooflineWall", "Value Options"),
    "Axis": ("ChartRooflineAxis", "Label Base Min Max"),
    "ChartOptions": ("ChartOptions", "AspectRatio"),
    "RooflineChart": (
        "RooflineChart",
        "Label AxisIntensity AxisWork Rooflines AchievedValues Walls Description Options",
    ),
    "Table": ("Table", "Label Rows Columns Order Metrics SortKey SortDirection Description"),
    "Container": ("HorizontalContainer", "Items"),
    "Item": ("BodyItem", "Table HorizontalContainer RooflineChart Filter"),
    "Body": ("Body", "Items DisplayName SetDefault"),
    "Group": ("MetricGroup", "Name Label"),
    "Section": (
        "",
        "Identifier DisplayName Order Header Body Metrics Description Sets Extends MetricDefinitions Filter Group "
        "SourceMetrics",
    ),
}


def _shipped(folder: Path) -> dict[str, dict[str, int]]:
    text = "\n".join((folder / name).read_text() for name in ("ProfilerSection.proto", "ProfilerMetricOptions.proto"))
    text = re.sub(r"//[^\n]*", "", text)
    found: dict[str, dict[str, int]] = {}
    message = ""
    for line in text.splitlines():
        if match := re.match(r"\s*message (\w+)", line):
            message = match[1]
            found[message] = {}
        elif match := re.match(r"\s*(?:optional |required |repeated )?[\w.]+ (\w+) = (\d+)\s*(?:\[.*\])?;", line):
            found.setdefault(message, {})[match[1]] = int(match[2])
    return found


@pytest.mark.ncu
@pytest.mark.parametrize("release", ["2020.3", "2022.3", "2024.1", "2024.2"])
def test_field_numbers(release: str, ncu_releases: dict[str, Path]) -> None:
    ncu = ncu_releases.get(release)
    if ncu is None:
        pytest.skip(f"no Nsight Compute {release}")
    root = next(parent for parent in ncu.parents if parent.name == release)
    shipped = _shipped(next(root.glob("**/extras/FileFormat/ProfilerSection.proto")).parent)
    compared = 0
    for ours, (theirs, fields) in NAMES.items():
        known = shipped.get(f"ProfilerSection{theirs}", shipped.get(theirs, {}))
        numbers = sorted(field.number for field in messages()[ours].DESCRIPTOR.fields)
        assert len(numbers) == len(fields.split()), ours
        for number, name in zip(numbers, fields.split(), strict=True):
            assert known.get(name, number) == number, (ours, name)  # old releases lack some
            compared += name in known
    assert compared > (60 if release == "2020.3" else 75)
    if release == "2024.2":
        assert compared == sum(len(fields.split()) for _, fields in NAMES.values())


def test_every_message_is_compared() -> None:
    assert set(NAMES) == set(messages())
