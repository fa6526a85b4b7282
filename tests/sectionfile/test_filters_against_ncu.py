"""Which metrics of a hand-made section hold on which chip: ours against what a real ncu prints for the same section."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ncu_roofline.formats.report import KernelData, ReportData, write_report
from ncu_roofline.formats.sectionfile.charts import Chart, evaluate_charts
from ncu_roofline.formats.sectionfile.section import parse_section
from tests.sectionfile.ncu_details import print_details, read_details
from tests.sectionfile.section_factory import chart, metric, one, per_second, point, roof, section

pytestmark = pytest.mark.ncu

# Every metric of a section has a name of its own: ncu resolves filters once per base name of a section, not once per use.
METRICS = {f"m{number}": 1.0 for number in range(7000)}
ARCHES = (50, 60, 70, 72, 75, 80, 86, 87, 89, 90)  # those that ncu 2024.2 knows
TRAFFIC = one("m0")


def _random_filter(rng: random.Random) -> dict[str, Any] | None:
    def bounds() -> dict[str, Any]:
        return {name: rng.choice(ARCHES) for name in ("MinArch", "MaxArch") if rng.random() < 0.5}

    kind = rng.random()
    if kind < 0.25:
        return None
    return bounds() if kind < 0.7 else {**bounds(), "Items": [bounds() for _ in range(rng.randint(1, 3))]}


def _random_metric(rng: random.Random, names: Iterator[str]) -> dict[str, Any]:
    options = tuple(metric(next(names), arch=_random_filter(rng)) for _ in range(rng.choice((0, 0, 1, 3))))
    return metric(next(names), arch=_random_filter(rng), options=options)


def _random_value(rng: random.Random, names: Iterator[str]) -> dict[str, Any]:
    if rng.random() < 0.4:
        return {"Metric": _random_metric(rng, names)}
    return per_second(_random_metric(rng, names), _random_metric(rng, names), clock=_random_metric(rng, names))


def _section(seed: int, charts: int) -> bytes:
    rng = random.Random(seed)
    names = iter(tuple(METRICS)[1 + 1000 * seed :])
    items = []
    for number in range(charts):
        more = {"Filter": found} if (found := _random_filter(rng)) is not None else {}
        roofs = tuple(roof(_random_value(rng, names), TRAFFIC, f"r{i}") for i in range(6))
        points = tuple(point(_random_value(rng, names), TRAFFIC, f"p{i}") for i in range(6))
        items.append(chart(roofs=roofs, points=points, Label=f"chart {number}".encode(), **more))
    around = {"Filter": {"MinArch": 70}} if seed % 2 else {}
    return section(*items, **around, Identifier=f"Section{seed}".encode(), DisplayName=f"section {seed}".encode())


def _expected(ours: Chart) -> dict[str, list[str]]:
    """Metric names of the work part by label, for what is drawn."""
    return {one.label: sorted(one.work_metrics) for one in (*ours.roofs, *ours.points)}


@pytest.mark.sampled("capability1")
@pytest.mark.parametrize("capability", [(7, 0), (8, 0), (8, 6), (8, 9), (9, 0)])
def test_random_filters(capability: tuple[int, int], ncu_releases: dict[str, Path], tmp_path: Path) -> None:
    ncu = ncu_releases.get("2024.2")
    if ncu is None:
        pytest.skip("no Nsight Compute 2024.2")
    data = [_section(seed, charts=8) for seed in range(6)]
    device = dict(zip(("major", "minor"), capability, strict=True))
    metrics = {**METRICS, **{f"device__attribute_compute_capability_{part}": value for part, value in device.items()}}
    path = tmp_path / "made.ncu-rep"
    write_report(path, ReportData([KernelData("kernel()", "kernel", metrics=metrics, sections=data)]))
    (printed,) = read_details(print_details(ncu, path, tmp_path))
    theirs = {(chart.section, chart.label): chart for chart in printed}
    ours = [chart for one in data for chart in evaluate_charts(parse_section(one), METRICS, capability)]
    assert {(chart.title, chart.label) for chart in ours} == set(theirs)
    drawn = 0
    for mine in ours:
        lines = {line.label: line for part in (theirs[mine.title, mine.label],) for line in (*part.roofs, *part.points)}
        expected = _expected(mine)
        for label, names in expected.items():
            assert sorted(name for name, _ in lines[label].parts["work"]) == names, (mine.label, label)
        for dropped in mine.dropped:  # ncu prints what is left of it: the summands without clock, or the clock without summands
            left = sorted(name for name, _ in lines[dropped.label].parts.get("work", []))
            assert left == sorted(dropped.metrics) or (not dropped.metrics and len(left) == 1), (mine.label, dropped)
        drawn += len(expected)
    assert drawn > 50


def test_section_filter(ncu_releases: dict[str, Path], tmp_path: Path) -> None:
    ncu = ncu_releases.get("2024.2")
    if ncu is None:
        pytest.skip("no Nsight Compute 2024.2")
    item = chart(roofs=(roof(TRAFFIC, TRAFFIC),), Label=b"c")
    data = [
        section(item, Filter=bounds, DisplayName=name) for bounds, name in (({"MaxArch": 80}, b"no"), ({"MinArch": 80}, b"yes"))
    ]
    path = tmp_path / "made.ncu-rep"
    metrics = {**METRICS, "device__attribute_compute_capability_major": 8, "device__attribute_compute_capability_minor": 9}
    write_report(path, ReportData([KernelData("kernel()", "kernel", metrics=metrics, sections=data)]))
    (printed,) = read_details(print_details(ncu, path, tmp_path))
    assert [chart.section for chart in printed] == ["yes"]
    ours = [chart.title for one in data for chart in evaluate_charts(parse_section(one), METRICS, (8, 9))]
    assert ours == ["yes"]
