"""What real releases of ncu show of annotated reports: all that they showed before, and our charts with the right values."""

from __future__ import annotations

import csv
import io
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from ncu_roofline.formats.report import read_report
from ncu_roofline.model import roofline
from tests.annotate.helpers import OWN, PREFIX, added, annotated
from tests.sectionfile.ncu_details import PrintedChart, interval, print_details, read_details

pytestmark = [pytest.mark.ncu, pytest.mark.reports, pytest.mark.exhaustive]
COMPLAINTS = ("ERROR", "WARNING", "FATAL", "libprotobuf")
OVERVIEW = "Section: Roofline overview (ncu-roofline, added later)"
LABELS = {"l1": "L1/TEX", "l2": "L2", "dram": "DRAM", "shared": "Shared memory"}
Page = Callable[..., tuple[int, str]]


@pytest.fixture(params=["2020.3", "2022.3", "2024.1", "2024.2"])
def release(request: pytest.FixtureRequest, ncu_releases: dict[str, Path]) -> str:
    if request.param not in ncu_releases:
        pytest.skip(f"no Nsight Compute {request.param}")
    return str(request.param)


@pytest.fixture
def page(release: str, ncu_releases: dict[str, Path], tmp_path: Path) -> Page:

    def shown(path: Path, *words: str) -> tuple[int, str]:
        details = ["--details-all"] if release < "2023" else ["--print-details", "all"]
        command = [ncu_releases[release], "--import", path, *(words or ["--page", "details", *details])]
        done = subprocess.run(command, capture_output=True, env={**os.environ, "HOME": str(tmp_path)}, check=False)
        return done.returncode, (done.stdout + done.stderr).decode("utf-8", "replace")

    return shown


@pytest.fixture
def copy(real_reports: dict[str, Path], tmp_path: Path) -> Callable[[str], Path]:
    """The annotated copy of a real report, made when it is first asked for."""

    def made(name: str) -> Path:
        source = real_reports.get(name) or pytest.skip(f"no {name} in the collection of reports")
        if not (tmp_path / name).exists():
            annotated(source, tmp_path / name)
        return tmp_path / name

    return made


def table(output: str) -> list[dict[str, str]]:
    """The raw page, without the lines for people around it: units and one row per kernel; ours left out."""
    header, *rows = csv.reader(io.StringIO(output[output.index('"ID"') :], newline=""))
    found = [dict(zip(header, row, strict=True)) for row in rows]
    return [{key: cell for key, cell in row.items() if not key.startswith(PREFIX)} for row in found]


def test_pages_keep_what_they_had(release: str, page: Page, real_reports: dict[str, Path], copy: Callable[[str], Path]) -> None:
    """ncu prints 3 MB a second, so large reports only where all are asked for."""
    opened, most = 0, 10**9 if os.environ.get("NCU_ROOFLINE_ALL_REPORTS") else 1_000_000
    for source in real_reports.values():
        if source.stat().st_size > most:
            continue
        pages = [("--page", "raw", "--csv", "--print-units", "base"), *[()] * (source.stat().st_size < most * 0.4)]
        for words in pages:
            (code, before), (new_code, after) = page(source, *words), page(copy(source.name), *words)
            assert new_code == code, (source.name, after[-500:])
            if code:
                with read_report(source) as report:
                    assert not words or report.ncu_version[:6] > release  # older releases refuse newer reports
                continue
            assert not [word for word in COMPLAINTS if word in after and word not in before], source.name
            if words:
                assert table(after) == table(before), source.name
                assert f"{PREFIX}annotated_by" in after
                opened += 1
            else:
                assert OVERVIEW in after
                rest = iter(after.splitlines())
                assert all(line in rest for line in before.splitlines() if "---" not in line), source.name  # in the same order
    assert opened >= 9


@pytest.mark.parametrize("name", ["bench.fp64.fma", "bench.dram.triad", "bench.tensor.int8.wgmma", "gpp-nw3"])
def test_copies_of_newer_reports_open_where_these_do(
    name: str, release: str, page: Page, h100_reports: Path, tmp_path: Path
) -> None:
    """Of 2025.3, with our sections and rules; those of `gpp` hold messages of a kind that old releases refuse."""
    source, target = h100_reports / f"{name}.ncu-rep", tmp_path / "out.ncu-rep"
    annotated(source, target)
    assert page(source)[0] == (name == "gpp-nw3" and release < "2024")
    code, after = page(target)
    assert (code, OVERVIEW in after) == (0, True), after[-500:]
    # Nothing stands for the FP64 chart of a kernel without FP64 work.
    assert ("Section: Hierarchical Roofline" in after) == (name == "bench.dram.triad")


@pytest.mark.parametrize("release", ["2024.1", "2024.2"], indirect=True)
@pytest.mark.parametrize(
    "name", ["a100-ncu2020.3-full-1", "a100-ncu2021.2-full-1", "a10g-ncu2023.1-roofline-1", "rtx4060-ncu2024.2-custom-4"]
)
def test_values_of_the_charts_and_advice_are_printed(
    name: str, release: str, copy: Callable[[str], Path], ncu_releases: dict[str, Path], tmp_path: Path
) -> None:
    path = copy(f"{name}.ncu-rep")
    result, output = roofline(path), print_details(ncu_releases[release], path, tmp_path)
    points, roofs = result.points, result.roofs.groupby("roof").value.max()
    launches = read_details(output)
    assert len(launches) == points.launch.nunique()
    for launch, charts in enumerate(launches):
        own = [chart for chart in charts if chart.section.endswith("(ncu-roofline, added later)")]
        rows = points[(points.launch == launch) & (points.precision != "mixed")]
        assert len(own) == rows.precision.nunique() > 0
        for chart, (_, mine) in zip(own, rows.groupby("precision", sort=False), strict=True):
            same_chart(chart, mine, roofs)
    squeezed = "".join(output.split())
    with read_report(path) as report:
        texts = [said.text for kernel in report.kernels for rule in added(kernel).rules for said in rule.messages]
    assert texts
    assert [text for text in texts if "".join(text.partition("@")[0].split()) not in squeezed] == []


def same_chart(chart: PrintedChart, rows: pd.DataFrame, roofs: pd.Series) -> None:
    assert [line.label.partition(":")[0] for line in chart.points] == [LABELS[level] for level in rows.level]
    for line, (_, row) in zip(chart.points, rows.iterrows(), strict=True):
        for part, value in (("work", row.performance), ("traffic", row.bandwidth)):
            ((_, shown),) = line.parts[part]
            low, high = interval(shown)
            assert low <= value <= high
    assert len(chart.roofs) >= 4
    for line in chart.roofs:
        values = dict(line.parts["work"])
        peak = next(float(shown) for metric, shown in values.items() if "_peak_" in metric)
        kind = "nofma" if any("nofma" in metric for metric in values) else "fma"
        expected = roofs[f"{rows.precision.iloc[0]}.{kind}"]
        assert peak * float(values["rl__clock"]) == pytest.approx(expected, rel=0.05)  # clocks of the launches differ


def test_the_verdict_is_printed_first(page: Page, copy: Callable[[str], Path]) -> None:
    """Releases print messages in the order in which they are stored."""
    path = copy("v100-ncu2022.2-full-1.ncu-rep")
    code, output = page(path, "--page", "details")
    assert code == 0
    overviews, most = output.split(OVERVIEW)[1:], 0
    with read_report(path) as report:
        for kernel, overview in zip(report.kernels, overviews, strict=True):
            squeezed = "".join(overview.partition("Section: ")[0].split())
            said = [(rule.identifier, message.text) for rule in added(kernel).rules for message in rule.messages]
            places = [(squeezed.find("".join(text.partition("@")[0].split())), name) for name, text in said]
            assert min(place for place in places if place[0] >= 0)[1] == f"{OWN}Verdict"
            most = max(most, len(places))
    assert most > 1  # of launches that are too short there is the verdict only
