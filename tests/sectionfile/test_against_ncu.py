"""Every roof and point of every embedded chart of real reports, against the tables that a real ncu prints of them."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from ncu_roofline.formats.report import read_report
from ncu_roofline.formats.sectionfile.charts import (
    IMPLAUSIBLE,
    NOT_A_NUMBER,
    NOT_POSITIVE,
    Chart,
    Dropped,
    Point,
    Roof,
    evaluate_charts,
)
from ncu_roofline.formats.sectionfile.section import parse_section
from tests.sectionfile.ncu_details import PrintedChart, PrintedLine, interval, print_details, read_details

CHARTS = {  # report: charts per kernel, kernels; one has NaN for every counter
    "a10g-ncu2023.1-roofline-1": (5, 4), "a100-ncu2020.3-full-1": (1, 1), "a100-ncu2021.2-full-1": (1, 4),
    "a100-ncu2022.4-full-1": (1, 14), "a100-ncu2022.4-full-2": (1, 1), "a40-ncu2022.1-full-1": (1, 2),
    "a40-ncu2022.4-full-1": (1, 5), **{f"rtx4060-ncu2024.2-custom-{n}": (1, 2 if n < 3 else 4) for n in (1, 2, 3, 4)},
}  # fmt: skip
PAIRS = [(name, release) for name in CHARTS for release in ("2024.2", "2024.1")]


def product(rows: list[tuple[str, str]]) -> tuple[float, float, bool]:
    """Lowest and highest value that the printed rows of one part can stand for, and whether all of them are numbers."""
    ranges = {name: interval(value) for name, value in rows}
    clocks = [limits for name, limits in ranges.items() if "__cycles_elapsed.avg.per_second" in name and len(ranges) > 1]
    low, high = (sum(limits[at] for limits in ranges.values() if limits not in clocks) for at in (0, 1))
    factor = clocks[0] if clocks else (1.0, 1.0)
    return low * factor[0], high * factor[1], math.isfinite(low + high + factor[0])


def check_drawn(ours: Roof | Point, printed: PrintedLine) -> None:
    for part, value, names in (("work", ours.work, ours.work_metrics), ("traffic", ours.traffic, ours.traffic_metrics)):
        assert sorted(names) == sorted(name for name, _ in printed.parts[part])
        low, high, known = product(printed.parts[part])
        assert known
        assert low <= value <= high


def check_dropped(ours: Dropped, printed: PrintedLine) -> None:
    rows = printed.parts[ours.part]
    low, _, known = product(rows)
    if ours.reason == NOT_A_NUMBER or (ours.reason == IMPLAUSIBLE and not known):
        assert not known
        word = "nan" if ours.reason == NOT_A_NUMBER else "inf"
        assert set(ours.metrics) <= {name for name, value in rows if value == word}
    else:
        assert ours.reason in (NOT_POSITIVE, IMPLAUSIBLE)
        assert (known, low <= 0, sorted(ours.metrics)) == (True, True, sorted(name for name, _ in rows))


def check(ours: Chart, printed: PrintedChart) -> None:
    assert (ours.title, ours.label, ours.walls) == (printed.section, printed.label, ())
    for kind, drawn, lines in (("roof", ours.roofs, printed.roofs), ("point", ours.points, printed.points)):
        mine = {one.label: one for one in drawn} | {one.label: one for one in ours.dropped if one.kind == kind}
        assert sorted(mine) == sorted(line.label for line in lines)
        assert [one.label for one in drawn] == [line.label for line in lines if not isinstance(mine[line.label], Dropped)]
        for line in lines:
            one = mine[line.label]
            check_dropped(one, line) if isinstance(one, Dropped) else check_drawn(one, line)


@pytest.mark.ncu
@pytest.mark.reports
@pytest.mark.parametrize(
    ("name", "release"), [PAIRS[0], *(pytest.param(*pair, marks=pytest.mark.exhaustive) for pair in PAIRS[1:])]
)
def test_charts_as_printed(
    name: str, release: str, real_reports: dict[str, Path], ncu_releases: dict[str, Path], tmp_path: Path
) -> None:
    path = real_reports.get(f"{name}.ncu-rep")
    if release not in ncu_releases or path is None:
        pytest.skip(f"no Nsight Compute {release}, or no {name}.ncu-rep in the collection of reports")
    printed = read_details(print_details(ncu_releases[release], path, tmp_path, stock_only=True))
    with read_report(path) as report:
        capability = report.device.compute_capability
        ours = [
            [one for data in kernel.sections for one in evaluate_charts(parse_section(data), kernel.metrics, capability)]
            for kernel in report.kernels
        ]
    per_kernel, kernels = CHARTS[name]
    assert [len(charts) for charts in printed] == [len(charts) for charts in ours] == [per_kernel] * kernels
    for mine, theirs in zip(ours, printed, strict=True):
        for chart, other in zip(sorted(mine, key=lambda c: c.title), sorted(theirs, key=lambda c: c.section), strict=True):
            check(chart, other)
