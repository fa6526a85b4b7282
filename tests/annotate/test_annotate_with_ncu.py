"""What real releases of ncu show of annotated reports: all that they showed before, and our charts with the right values."""

from __future__ import annotations

import csv
import io
import os
import subprocess
from pathlib import Path

import pandas as pd
import pytest

from ncu_roofline.formats.report import read_report
from ncu_roofline.model import roofline
from tests.annotate.helpers import OWN, PREFIX, added, annotated
from tests.sectionfile.ncu_details import PrintedChart, interval, print_details, read_details

pytestmark = [pytest.mark.ncu, pytest.mark.reports, pytest.mark.exhaustive]
COMPLAINTS = ("ERROR", "WARNING", "FATAL", "libprotobuf")
DETAILS = {"2020.3": ["--details-all"], "2022.3": ["--details-all"]}
RELEASES = ["2020.3", "2022.3", "2024.1", "2024.2"]


def ncu(binary: Path, home: Path, *words: str | Path) -> tuple[int, str]:
    done = subprocess.run([binary, *words], capture_output=True, env={**os.environ, "HOME": str(home)}, check=False)
    return done.returncode, (done.stdout + done.stderr).decode("utf-8", "replace")


class Copies(dict[str, Path]):
    """Annotated copies by name of the report, each made when it is first asked for."""

    def __init__(self, sources: dict[str, Path], folder: Path) -> None:
        super().__init__()
        self._sources, self._folder = sources, folder

    def __missing__(self, name: str) -> Path:
        annotated(self._sources[name], self._folder / name)
        self[name] = self._folder / name
        return self[name]


@pytest.fixture(scope="module")
def copies(real_reports: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Copies:
    """Annotated copies of all real reports."""
    return Copies(real_reports, tmp_path_factory.mktemp("copies"))


def printed(real_reports: dict[str, Path]) -> dict[str, Path]:
    """The reports whose pages are compared: ncu prints 3 MB a second, so large ones only where all are asked for."""
    most = 10**9 if os.environ.get("NCU_ROOFLINE_ALL_REPORTS") else 1_000_000
    return {name: path for name, path in real_reports.items() if path.stat().st_size <= most}


def table(text: str) -> list[dict[str, str]]:
    """The raw page: units and one row per kernel."""
    header, *rows = csv.reader(io.StringIO(text, newline=""))
    return [dict(zip(header, row, strict=True)) for row in rows]


def version(path: Path) -> str:
    with read_report(path) as report:
        return report.ncu_version


@pytest.mark.parametrize("release", RELEASES)
def test_raw_page(
    release: str, real_reports: dict[str, Path], copies: Copies, ncu_releases: dict[str, Path], tmp_path: Path
) -> None:
    if release not in ncu_releases:
        pytest.skip(f"no Nsight Compute {release}")
    opened = 0
    for name, source in printed(real_reports).items():
        words = ["--page", "raw", "--csv", "--print-units", "base"]
        code, before = ncu(ncu_releases[release], tmp_path, "--import", source, *words)
        new_code, after = ncu(ncu_releases[release], tmp_path, "--import", copies[name], *words)
        assert new_code == code, (name, after[-500:])
        if code:
            assert version(source)[:6] > release  # older releases refuse newer reports
            continue
        assert not [word for word in COMPLAINTS if word in after and word not in before], name
        theirs = [{key: cell for key, cell in row.items() if not key.startswith(PREFIX)} for row in table(_csv(after))]
        assert theirs == table(_csv(before)), name
        assert f"{PREFIX}annotated_by" in after
        opened += 1
    assert opened >= 9


def _csv(output: str) -> str:
    """Without the lines for people around the table."""
    return output[output.index('"ID"') :]


@pytest.mark.parametrize("release", RELEASES)
def test_details_page_keeps_what_it_had(
    release: str, real_reports: dict[str, Path], copies: Copies, ncu_releases: dict[str, Path], tmp_path: Path
) -> None:
    if release not in ncu_releases:
        pytest.skip(f"no Nsight Compute {release}")
    for name, source in printed(real_reports).items():
        words = ["--page", "details", *DETAILS.get(release, ["--print-details", "all"])]
        code, before = ncu(ncu_releases[release], tmp_path, "--import", source, *words)
        new_code, after = ncu(ncu_releases[release], tmp_path, "--import", copies[name], *words)
        assert new_code == code, (name, after[-500:])
        if code:
            continue
        assert "Section: Roofline overview (ncu-roofline, added later)" in after
        assert not [word for word in COMPLAINTS if word in after and word not in before], name
        rest = iter(after.splitlines())
        assert all(line in rest for line in before.splitlines() if "---" not in line), name  # in the same order


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("name", ["bench.fp64.fma", "bench.dram.triad", "bench.tensor.int8.wgmma", "gpp-nw3"])
def test_copies_of_newer_reports_open_where_these_do(
    name: str, release: str, h100_reports: Path, ncu_releases: dict[str, Path], tmp_path: Path
) -> None:
    """Of 2025.3, with our sections and rules; those of `gpp` hold messages of a kind that old releases refuse."""
    if release not in ncu_releases:
        pytest.skip(f"no Nsight Compute {release}")
    source, target = h100_reports / f"{name}.ncu-rep", tmp_path / "out.ncu-rep"
    annotated(source, target)
    words = ["--page", "details", *DETAILS.get(release, ["--print-details", "all"])]
    assert ncu(ncu_releases[release], tmp_path, "--import", source, *words)[0] == (name == "gpp-nw3" and release < "2024")
    code, after = ncu(ncu_releases[release], tmp_path, "--import", target, *words)
    assert code == 0, after[-500:]
    assert "Section: Roofline overview (ncu-roofline, added later)" in after
    kept = name == "bench.dram.triad"  # without FP64 work, so nothing stands for its FP64 chart
    assert ("Section: Hierarchical Roofline" in after) == kept


@pytest.mark.parametrize("release", ["2024.1", "2024.2"])
@pytest.mark.parametrize(
    "name", ["a100-ncu2020.3-full-1", "a100-ncu2021.2-full-1", "a10g-ncu2023.1-roofline-1", "rtx4060-ncu2024.2-custom-4"]
)
def test_values_of_the_charts(
    name: str,
    release: str,
    real_reports: dict[str, Path],
    copies: Copies,
    ncu_releases: dict[str, Path],
    tmp_path: Path,
) -> None:
    source = real_reports.get(f"{name}.ncu-rep")
    if source is None or release not in ncu_releases:
        pytest.skip(f"no {name}.ncu-rep or no Nsight Compute {release}")
    printed = read_details(print_details(ncu_releases[release], copies[source.name], tmp_path))
    points = roofline(source).points
    roofs = roofline(source).roofs.groupby("roof").value.max()
    assert len(printed) == points.launch.nunique()
    for launch, charts in enumerate(printed):
        own = [chart for chart in charts if chart.section.endswith("(ncu-roofline, added later)")]
        rows = points[(points.launch == launch) & (points.precision != "mixed")]
        assert len(own) == rows.precision.nunique() > 0
        for chart, (_, mine) in zip(own, rows.groupby("precision", sort=False), strict=True):
            same_chart(chart, mine, roofs)


def same_chart(chart: PrintedChart, rows: pd.DataFrame, roofs: pd.Series) -> None:
    """One printed chart holds the points of its precision, and their roofs."""
    labels = {"l1": "L1/TEX", "l2": "L2", "dram": "DRAM", "shared": "Shared memory"}
    assert [line.label.partition(":")[0] for line in chart.points] == [labels[level] for level in rows.level]
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


@pytest.mark.parametrize("name", ["a100-ncu2021.2-full-1", "rtx4060-ncu2024.2-custom-4"])
def test_advice_is_printed(name: str, copies: Copies, ncu_releases: dict[str, Path], tmp_path: Path) -> None:
    path = copies.get(f"{name}.ncu-rep")
    if path is None:
        pytest.skip(f"no {name}.ncu-rep in the collection of reports")
    newest = max(ncu_releases)
    code, output = ncu(ncu_releases[newest], tmp_path, "--import", path, "--page", "details", "--print-details", "all")
    assert code == 0
    squeezed = "".join(output.split())
    with read_report(path) as report:
        texts = [said.text for kernel in report.kernels for rule in added(kernel).rules for said in rule.messages]
    assert len(texts) >= 10
    for text in texts:
        assert "".join(text.partition("@")[0].split()) in squeezed


@pytest.mark.parametrize("release", RELEASES)
def test_the_verdict_is_printed_first(
    release: str, real_reports: dict[str, Path], copies: Copies, ncu_releases: dict[str, Path], tmp_path: Path
) -> None:
    """Releases print messages in the order in which they are stored."""
    name = "v100-ncu2022.2-full-1.ncu-rep"
    if name not in real_reports or release not in ncu_releases:
        pytest.skip(f"no {name} or no Nsight Compute {release}")
    path = copies[name]
    code, output = ncu(ncu_releases[release], tmp_path, "--import", path, "--page", "details")
    assert code == 0
    overviews = output.split("Section: Roofline overview (ncu-roofline, added later)")[1:]
    with read_report(path) as report:
        assert len(overviews) == len(report.kernels)
        most = 0
        for kernel, overview in zip(report.kernels, overviews, strict=True):
            squeezed = "".join(overview.partition("Section: ")[0].split())
            places = {}
            for rule in added(kernel).rules:
                for said in rule.messages:
                    places.setdefault(rule.identifier, squeezed.find("".join(said.text.partition("@")[0].split())))
            assert 0 <= places[f"{OWN}Verdict"] == min(place for place in places.values() if place >= 0)
            most = max(most, len(places))
    assert most > 1  # of launches that are too short there is the verdict only
