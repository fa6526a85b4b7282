"""Which metrics of a hand-made section hold on which chip: ours against what a real ncu prints for the same section."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ncu_roofline.formats.report import KernelData, ReportData, write_report
from ncu_roofline.formats.sectionfile.charts import evaluate_charts
from ncu_roofline.formats.sectionfile.section import parse_section
from tests.sectionfile.ncu_details import print_details, read_details
from tests.sectionfile.section_factory import chart, metric, one, per_second, point, roof, section

# Every metric of a section has a name of its own: ncu resolves filters once per base name of a section, not once per use.
METRICS = {f"m{number}": 1.0 for number in range(7000)}
ARCHES = (50, 60, 70, 72, 75, 80, 86, 87, 89, 90)  # those that ncu 2024.2 knows
TRAFFIC = one("m0")


def made(seed: int) -> bytes:
    """A section with random filters of charts, metrics and their alternatives."""
    rng, names = random.Random(seed), iter(tuple(METRICS)[1 + 1000 * seed :])

    def bounds() -> dict[str, Any]:
        return {name: rng.choice(ARCHES) for name in ("MinArch", "MaxArch") if rng.random() < 0.5}

    def filtered() -> dict[str, Any] | None:
        kind = rng.random()
        more = {} if kind < 0.7 else {"Items": [bounds() for _ in range(rng.randint(1, 3))]}
        return None if kind < 0.25 else {**bounds(), **more}

    def some() -> dict[str, Any]:
        options = tuple(metric(next(names), arch=filtered()) for _ in range(rng.choice((0, 0, 1, 3))))
        return metric(next(names), arch=filtered(), options=options)

    def values(kind: str) -> Iterator[tuple[dict[str, Any], str]]:
        for number in range(6):
            yield {"Metric": some()} if rng.random() < 0.4 else per_second(some(), some(), clock=some()), f"{kind}{number}"

    items = []
    for number in range(8):
        more = {"Filter": found} if (found := filtered()) is not None else {}
        roofs = tuple(roof(value, TRAFFIC, label) for value, label in values("r"))
        points = tuple(point(value, TRAFFIC, label) for value, label in values("p"))
        items.append(chart(roofs=roofs, points=points, Label=f"chart {number}".encode(), **more))
    around = {"Filter": {"MinArch": 70}} if seed % 2 else {}
    return section(*items, **around, Identifier=f"Section{seed}".encode(), DisplayName=f"section {seed}".encode())


EVERY = [(8, 0), *(pytest.param(one, marks=pytest.mark.exhaustive) for one in ((7, 0), (8, 6), (8, 9), (9, 0)))]


@pytest.mark.ncu
@pytest.mark.parametrize("capability", EVERY)
def test_random_filters(capability: tuple[int, int], ncu_releases: dict[str, Path], tmp_path: Path) -> None:
    ncu = ncu_releases.get("2024.2")
    if ncu is None:
        pytest.skip("no Nsight Compute 2024.2")
    data = [made(seed) for seed in range(6)]
    device = zip(("major", "minor"), capability, strict=True)
    metrics = METRICS | {f"device__attribute_compute_capability_{part}": value for part, value in device}
    path = tmp_path / "made.ncu-rep"
    write_report(path, ReportData([KernelData("kernel()", "kernel", metrics=metrics, sections=data)]))
    (printed,) = read_details(print_details(ncu, path, tmp_path))
    theirs = {(chart.section, chart.label): chart for chart in printed}
    ours = [chart for one in data for chart in evaluate_charts(parse_section(one), METRICS, capability)]
    assert {(chart.title, chart.label) for chart in ours} == set(theirs)
    count = 0
    for mine in ours:
        lines = {line.label: line for part in (theirs[mine.title, mine.label],) for line in (*part.roofs, *part.points)}
        for drawn in (*mine.roofs, *mine.points):
            names = sorted(name for name, _ in lines[drawn.label].parts["work"])
            assert names == sorted(drawn.work_metrics), (mine.label, drawn.label)
            count += 1
        for dropped in mine.dropped:  # ncu prints what is left of it: the summands without clock, or the clock without summands
            left = sorted(name for name, _ in lines[dropped.label].parts.get("work", []))
            assert left == sorted(dropped.metrics) or (not dropped.metrics and len(left) == 1), (mine.label, dropped)
    assert count > 50
