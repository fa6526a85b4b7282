"""CSV that real releases of ncu print of real reports gives the frames of the reports, within what is printed.

A pair of release and report by default, some more in the exhaustive run; NCU_ROOFLINE_ALL_CSV=1: every report that each opens.
"""

from __future__ import annotations

import csv
import io
import math
import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ncu_roofline.chips.verdict import SHORT_LAUNCH
from ncu_roofline.formats.inputs import open_input
from ncu_roofline.formats.inputs.tables import MetricTable, with_gpu
from ncu_roofline.formats.report import Report, Value, read_report
from ncu_roofline.model import measurements_of, roofline

# Releases open reports of their own version and of older ones; these are the pairs of the exhaustive run.
CHOSEN = {
    "2024.2": "rtx4060-ncu2024.2-custom-3 a10g-ncu2023.1-roofline-1 rtx3090-ncu2024.1-basic-1 rtx2080ti-ncu2022.3-basic-1",
    "2020.3": "a100-ncu2020.3-full-1 a100-ncu2022.4-full-2",
    "2022.3": "a100-ncu2021.2-full-1 a100-ncu2021.2-basic-1 a100-ncu2022.4-full-2",
    "2024.1": "a40-ncu2022.1-full-1 a100-ncu2020.3-full-1 a100-ncu2022.4-full-2",
}
PAIRS = [(release, report) for release, reports in CHOSEN.items() for report in reports.split()]
if os.environ.get("NCU_ROOFLINE_ALL_CSV"):
    FOLDER = Path(os.environ.get("NCU_ROOFLINE_REPORTS", Path(__file__).parents[3] / "shared" / "data" / "reports"))
    PAIRS = [(release, path.stem) for release in CHOSEN for path in sorted(FOLDER.glob("*.ncu-rep"))]
EVERY = pytest.mark.parametrize(
    ("release", "report"), [PAIRS[0], *(pytest.param(*pair, marks=pytest.mark.exhaustive) for pair in PAIRS[1:])]
)
# Profiling failed there: all metrics are NaN, the size of the launch, too, which differs between the report and its CSV.
FAILED = {(release, "a100-ncu2022.4-full-2") for release in ("2020.3", "2022.3")}
# A CSV does not say the release that made the report, and releases since 2023 print kernel names without casts in templates.
NOT_IN_CSV = {"ncu_version", "name", "kernel"}
# Printed unit -> what the report stores for 1, written down apart from the importer's own table.
SCALES = {
    "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "Tbyte": 1e12, "Kbyte/cycle": 1e3, "Kbyte/block": 1e3, "%/Kbyte": 1e-3,
    "Mbyte/second": 1e6, "Gbyte/second": 1e9, "Tbyte/second": 1e12, "Mbyte/s": 1e6, "Gbyte/s": 1e9, "Tbyte/s": 1e12,
    "usecond": 1e3, "msecond": 1e6, "second": 1e9, "us": 1e3, "ms": 1e6, "s": 1e9, "Mhz": 1e6, "Ghz": 1e9,
    "cycle/usecond": 1e6, "cycle/nsecond": 1e9, "sector/msecond": 1e3, "sector/usecond": 1e6, "sector/nsecond": 1e9,
    "sector/ms": 1e3, "sector/us": 1e6, "sector/ns": 1e9,
}  # fmt: skip
CLOCK = "gpc__cycles_elapsed.avg.per_second"
Printed = Callable[..., tuple[str, MetricTable, Report]]


@pytest.fixture
def printed(ncu_releases: Mapping[str, Path], real_reports: Mapping[str, Path], tmp_path: Path) -> Any:
    """What a release prints of a report as CSV, that imported, and the report."""
    opened = []

    def run(release: str, report: str, *options: str) -> tuple[str, MetricTable, Report]:
        path = real_reports.get(f"{report}.ncu-rep")
        if release not in ncu_releases or path is None:
            pytest.skip(f"no ncu {release} or no report {report} on this machine")
        command = [ncu_releases[release], "--import", path, "--csv", *options]
        done = subprocess.run(command, capture_output=True, env={**os.environ, "HOME": str(tmp_path)}, check=False, timeout=300)
        text = done.stdout.decode("utf-8", "replace")
        if "Failed to load report file" in text:
            pytest.skip(f"ncu {release} does not open {report}, which is newer")
        (tmp_path / "page.csv").write_text(text, encoding="utf-8")
        opened.append(read_report(path))
        table = open_input(tmp_path / "page.csv")
        assert isinstance(table, MetricTable)
        return text, table, opened[0]

    yield run
    for one in opened:
        one.close()


def as_printed(value: Value | None, cell: str, scale: float) -> Value | None:
    if not isinstance(value, (int, float)) or not math.isfinite(value):
        return value if isinstance(value, str) else None
    return round(value / scale, len(cell.partition(".")[2])) * scale


def rounded(report: Report, text: str) -> MetricTable:
    """The report with every value rounded to the digits that its cell of a raw page shows."""
    header, units, *rows = csv.reader(io.StringIO(text))
    columns = report.columns(report.metric_names)
    values = {
        name: [as_printed(value, row[i], SCALES.get(units[i], 1.0)) for value, row in zip(columns[name], rows, strict=True)]
        for i, name in enumerate(header)
        if name in columns
    }
    absent = [name for name in report.metric_names - set(header) if not name.startswith(("group:", "breakdown:"))]
    assert all(value is None for name in absent for value in columns[name])
    return MetricTable(str(report.path), "rounded", report.launches(), values)


def differing(ours: pd.DataFrame, theirs: pd.DataFrame) -> set[str]:
    """Columns of two frames that are not the same, numbers to 1e-9."""
    assert len(ours) == len(theirs)
    different = set()
    for name in set(ours.columns) - NOT_IN_CSV:
        one, other = ours[name].to_numpy(), theirs[name].to_numpy()
        close = one.dtype.kind == "f" and np.allclose(one, other, rtol=1e-9, atol=0, equal_nan=True)
        if not close and (one.dtype.kind == "f" or not (one == other).all()):
            different.add(name)
    return different


@pytest.mark.parametrize("units", ["auto", pytest.param("base", marks=pytest.mark.exhaustive)])
@EVERY
def test_a_raw_page_gives_the_frames_of_the_report(printed: Printed, release: str, report: str, units: str) -> None:
    text, table, original = printed(release, report, "--page", "raw", "--print-units", units)
    assert [launch.function_name for launch in table.launches()] == [one.function_name for one in original.launches()]
    expected, exact = (roofline(measurements_of(one, label="x")) for one in (rounded(original, text), original))
    found = roofline(measurements_of(table, label="x"))
    for frame in ("points", "roofs", "kernels"):
        allowed = {"grid", "block"} if frame == "kernels" and (release, report) in FAILED else set()
        assert differing(getattr(found, frame), getattr(expected, frame)) == allowed, frame
    if not (exact.points.source == "opcodes").any():  # a raw page holds no counts per opcode
        assert list(found.kernels.status) == list(exact.kernels.status)
        assert found.points[["level", "precision"]].equals(exact.points[["level", "precision"]])
    assert not [warning for warning in table.warnings if "were left out" in warning]


def nine_digits(value: float) -> float:
    return float(f"{value:.9g}")


def half_steps(text: str) -> dict[float, float]:
    """Half of the last digit that is printed of each value of a details page, by value, in the units of a report."""
    result: dict[float, float] = {}
    for row in csv.DictReader(io.StringIO(text)):
        cell, scale = row["Metric Value"] or "", SCALES.get(row["Metric Unit"] or "", 1.0)
        if cell and cell.replace(".", "").isdecimal():
            step, value = 0.5 * 10.0 ** -len(cell.partition(".")[2]) * scale, nine_digits(float(cell) * scale)
            result[value] = min(step, result.get(value, step))
    return result


@pytest.mark.parametrize("units", ["base", pytest.param("auto", marks=pytest.mark.exhaustive)])
@EVERY
def test_a_details_page_gives_times_and_clocks(printed: Printed, release: str, report: str, units: str) -> None:
    text, table, original = printed(release, report, "--page", "details", "--print-units", units)
    steps = half_steps(text)
    names = {name for name in table.metric_names if not name.startswith("device__")}  # those are the column CC
    expected = original.columns(names)
    assert len(table) == len(original)
    assert names <= original.metric_names
    for name, column in table.columns(names).items():
        for found, exact in zip(column, expected[name], strict=True):
            if isinstance(found, float) and math.isfinite(found):
                assert isinstance(exact, (int, float))
                assert abs(found - exact) <= steps[nine_digits(found)] * (1 + 1e-6) + 1e-15 * abs(exact), name
    if units == "base" and "GPU Speed Of Light" in text:  # in scaled units a time may have no digit left
        kernels, exact_kernels = roofline(with_gpu(table, (8, 0))).kernels, roofline(original).kernels
        assert kernels.seconds.to_numpy() == pytest.approx(exact_kernels.seconds.to_numpy(), rel=1e-6, nan_ok=True)
        # The report may have the clock of other units beside this one.
        clocks = np.array([float(one) if isinstance(one, (int, float)) else math.nan for one in expected[CLOCK]])
        long = exact_kernels.seconds.to_numpy() >= SHORT_LAUNCH  # of shorter ones cycles / duration is no clock
        assert kernels.clock_profiled.to_numpy()[long] == pytest.approx(clocks[long], rel=1e-6, nan_ok=True)


OPTIONS = (
    "details --print-metric-name name --print-details all", "details --print-metric-name label-name", "raw --print-fp",
    "raw --print-metric-instances details", "raw --print-kernel-base mangled", "raw --print-nvtx-rename kernel",
)  # fmt: skip


@pytest.mark.exhaustive
@pytest.mark.parametrize("options", OPTIONS)
def test_options_that_change_the_page(printed: Printed, options: str) -> None:
    _, table, original = printed("2024.2", "a10g-ncu2023.1-roofline-1", "--page", *options.split())
    name = "gpc__cycles_elapsed.max" if "label-name" in options else "dram__bytes.sum.per_second"
    expected = original.columns([name, "gpu__time_duration.sum"])
    assert len(table) == len(original)
    for one, column in table.columns(list(expected)).items():
        assert column == pytest.approx(expected[one], rel=2e-3), one


@pytest.mark.exhaustive
def test_a_summary_is_refused_by_name(printed: Printed) -> None:
    with pytest.raises(Exception, match="no table of launches"):
        printed("2024.2", "rtx2080ti-ncu2022.3-basic-1", "--page", "details", "--print-summary", "per-kernel")
