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

CHARTS = {  # report: charts per kernel, kernels
    "a100-ncu2020.3-full-1": (1, 1),
    "a100-ncu2021.2-full-1": (1, 4),
    "a100-ncu2022.4-full-1": (1, 14),
    "a100-ncu2022.4-full-2": (1, 1),  # NaN for every counter
    "a10g-ncu2023.1-roofline-1": (5, 4),
    "a40-ncu2022.1-full-1": (1, 2),
    "a40-ncu2022.4-full-1": (1, 5),
    "rtx4060-ncu2024.2-custom-1": (1, 2),
    "rtx4060-ncu2024.2-custom-2": (1, 2),
    "rtx4060-ncu2024.2-custom-3": (1, 4),
    "rtx4060-ncu2024.2-custom-4": (1, 4),
}


def _ours(path: Path) -> list[list[Chart]]:
    with read_report(path) as report:
        return [
            [
                chart
                for data in kernel.sections
                for chart in evaluate_charts(parse_section(data), kernel.metrics, report.device.compute_capability)
            ]
            for kernel in report.kernels
        ]


def _product(rows: list[tuple[str, str]]) -> tuple[float, float, bool]:
    """Lowest and highest value that the printed rows of one part can stand for, and whether all of them are numbers."""
    ranges = {name: interval(value) for name, value in rows}
    clocks = [limits for name, limits in ranges.items() if "__cycles_elapsed.avg.per_second" in name and len(ranges) > 1]
    low = sum(limits[0] for limits in ranges.values() if limits not in clocks)
    high = sum(limits[1] for limits in ranges.values() if limits not in clocks)
    factor = clocks[0] if clocks else (1.0, 1.0)
    return low * factor[0], high * factor[1], math.isfinite(low + high + factor[0])


def _check_drawn(ours: Roof | Point, printed: PrintedLine) -> None:
    work, traffic = (ours.peak_work, ours.peak_traffic) if isinstance(ours, Roof) else (ours.work, ours.traffic)
    for part, value, names in (("work", work, ours.work_metrics), ("traffic", traffic, ours.traffic_metrics)):
        rows = printed.parts[part]
        assert sorted(names) == sorted(name for name, _ in rows)
        low, high, known = _product(rows)
        assert known
        assert low <= value <= high
    if isinstance(ours, Point):
        assert ours.intensity == work / traffic


def _check_dropped(ours: Dropped, printed: PrintedLine) -> None:
    low, _, known = _product(printed.parts[ours.part])
    if ours.reason == NOT_A_NUMBER:
        assert not known
        assert set(ours.metrics) <= {name for name, value in printed.parts[ours.part] if value == "nan"}
    elif ours.reason == IMPLAUSIBLE and not known:
        assert set(ours.metrics) <= {name for name, value in printed.parts[ours.part] if value == "inf"}
    else:
        assert ours.reason in (NOT_POSITIVE, IMPLAUSIBLE)
        assert known
        assert low <= 0
        assert sorted(ours.metrics) == sorted(name for name, _ in printed.parts[ours.part])


def _check(ours: Chart, printed: PrintedChart) -> None:
    assert (ours.title, ours.label) == (printed.section, printed.label)
    for kind, drawn, lines in (("roof", ours.roofs, printed.roofs), ("point", ours.points, printed.points)):
        mine = {one.label: one for one in drawn} | {one.label: one for one in ours.dropped if one.kind == kind}
        assert sorted(mine) == sorted(line.label for line in lines)
        assert [one.label for one in drawn] == [line.label for line in lines if not isinstance(mine[line.label], Dropped)]
        for line in lines:
            one = mine[line.label]
            if isinstance(one, Dropped):
                _check_dropped(one, line)
            else:
                _check_drawn(one, line)
    assert not ours.walls


@pytest.mark.exhaustive
@pytest.mark.ncu
@pytest.mark.reports
@pytest.mark.parametrize("release", ["2024.1", "2024.2"])
@pytest.mark.parametrize("name", CHARTS)
def test_charts_as_printed(
    name: str, release: str, real_reports: dict[str, Path], ncu_releases: dict[str, Path], tmp_path: Path
) -> None:
    if release not in ncu_releases:
        pytest.skip(f"no Nsight Compute {release}")
    path = real_reports.get(f"{name}.ncu-rep")
    if path is None:
        pytest.skip(f"no {name}.ncu-rep in the collection of reports")
    printed = read_details(print_details(ncu_releases[release], path, tmp_path, stock_only=True))
    ours = _ours(path)
    per_kernel, kernels = CHARTS[name]
    assert [len(charts) for charts in printed] == [len(charts) for charts in ours] == [per_kernel] * kernels
    for mine, theirs in zip(ours, printed, strict=True):
        for chart, other in zip(sorted(mine, key=lambda c: c.title), sorted(theirs, key=lambda c: c.section), strict=True):
            _check(chart, other)
