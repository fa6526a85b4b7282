"""What is written opens in real ncu releases without complaint and shows the values that were written."""

from __future__ import annotations

import csv
import io
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ncu_roofline.formats.report import ReportData, RuleMessage, RuleResult, read_report, write_report
from ncu_roofline.formats.report.framing import KINDS
from tests.report.factory import SESSION, saxpy

pytestmark = pytest.mark.ncu
COMPLAINTS = ("ERROR", "WARNING", "FATAL", "libprotobuf")
# The first of the releases here that knows a kind of result; older ones find nothing or refuse.
SINCE = {"kernel": "2020.3", "range": "2022.3", "graph": "2024.1", "cmdlist": "2024.1"}
DETAILS = {"2020.3": ["--details-all"], "2022.3": ["--details-all"]}


def ncu(binary: Path, home: Path, *words: str | Path) -> str:
    done = subprocess.run([binary, *words], capture_output=True, env={**os.environ, "HOME": str(home)}, check=False)
    output = (done.stdout + done.stderr).decode("utf-8", "replace")
    assert done.returncode == 0, output
    assert not [word for word in COMPLAINTS if word in output], output
    return output


def field(number: int, content: bytes | str) -> bytes:
    """A field of a serialized message, for fields and contents below 16 and 128."""
    data = content.encode() if isinstance(content, str) else content
    assert number < 16
    assert len(data) < 128
    return bytes((number << 3 | 2, len(data))) + data


def roofline_section() -> bytes:
    """A section with a header table and a roofline chart of one roof and one point."""
    table = field(2, field(1, "dram__bytes.sum") + field(2, "My traffic"))
    value = field(2, field(1, "sm__cycles_elapsed.avg.per_second"))
    roof = field(1, value) + field(2, value)
    chart = field(1, "My chart") + field(4, roof)
    body = field(1, field(6, chart))
    return field(1, "MySection") + field(2, "My section") + field(4, table) + field(5, body)


@pytest.fixture(params=sorted(SINCE))
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def written(tmp_path: Path, kind: str) -> Path:
    rule = RuleResult("MyRule", "My rule", "MySection", (RuleMessage("warning", "Do this."),))
    metrics = {**saxpy().metrics, "sm__cycles_elapsed.avg.per_second": 1e9, "gpu__time_duration.sum": 12345.5, "my__own": 7}
    instances = {"only__instances": [(1, 2.5), (2, 3)]}
    common: dict[str, Any] = {
        "metrics": metrics,
        "instances": instances,
        "sections": (roofline_section(),),
        "clock_locked": True,
    }
    kernels = [saxpy(kind=kind, rule_results=(rule,), nvtx=("outer", "inner"), **common) for _ in range(2)]
    path = tmp_path / "x.ncu-rep"
    write_report(path, ReportData(kernels, SESSION))
    return path


def test_all_kinds_are_covered() -> None:
    assert sorted(SINCE) == sorted(kind.name for kind in KINDS)


@pytest.mark.exhaustive
def test_raw_page_shows_the_values(kind: str, written: Path, ncu_releases: dict[str, Path], tmp_path: Path) -> None:
    for release, binary in ncu_releases.items():
        if release < SINCE[kind]:
            continue
        output = ncu(binary, tmp_path, "--import", written, "--page", "raw", "--csv", "--print-units", "base")
        header, _units, *rows = csv.reader(io.StringIO(output, newline=""))
        assert len(rows) == 2, release
        row = dict(zip(header, rows[1], strict=True))
        assert (row["ID"], row["Process Name"], row["Host Name"]) == ("1", "app", "box")
        assert row["Kernel Name"] == ("saxpy(int, float *)" if kind == "kernel" else kind)
        assert float(row["dram__bytes.sum"].replace(",", "")) == 1e9 + 0.25
        assert float(row["gpu__time_duration.sum"].replace(",", "")) == 12345.5
        assert (row["launch__grid_size"], row["my__own"], row["text__metric"]) == ("256", "7", "a b")
        assert row["only__instances"] == ""


@pytest.mark.exhaustive
def test_details_page_shows_section_chart_and_rule(
    kind: str, written: Path, ncu_releases: dict[str, Path], tmp_path: Path
) -> None:
    for release, binary in ncu_releases.items():
        if release < SINCE[kind]:
            continue
        options = DETAILS.get(release, ["--print-details", "all"])
        output = ncu(binary, tmp_path, "--import", written, "--page", "details", *options)
        assert "Section: My section" in output, release
        assert output.index("outer") < output.index("inner")
        if kind == "kernel":
            assert "My traffic" in output, release
            assert "Do this." in output, release
        if release >= "2024":
            assert "My chart" in output, release


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", ["kernel"])
def test_session_page(written: Path, ncu_releases: dict[str, Path], tmp_path: Path) -> None:
    for release, binary in ncu_releases.items():
        if release >= "2024":  # older ones have no such page
            output = ncu(binary, tmp_path, "--import", written, "--page", "session")
            for text in ("NVIDIA A100-PCIE-40GB", "/home/user/app", SESSION.command_line, "550.54"):
                assert text in output, release


@pytest.mark.parametrize("kind", ["kernel"])
def test_instances_and_nvtx_order(written: Path, ncu_releases: dict[str, Path], tmp_path: Path) -> None:
    newest = ncu_releases[max(ncu_releases)]
    words = ["--page", "raw", "--csv", "--print-metric-instances", "details", "--print-nvtx-rename", "kernel"]
    output = ncu(newest, tmp_path, "--import", written, *words)
    assert "(1: 2.50; 2: 3)" in output
    assert "inner/saxpy" in output  # the innermost range, hence the last of `Kernel.nvtx`
    with read_report(written) as report:
        assert report.kernels[0].nvtx[-1] == "inner"


@pytest.mark.exhaustive
def test_an_optimization_message_needs_a_newer_release(tmp_path: Path, ncu_releases: dict[str, Path]) -> None:
    rule = RuleResult("MyRule", "My rule", "", (RuleMessage("optimization", "Do this.", "Title", 1, 12.5, "global"),))
    path = tmp_path / "x.ncu-rep"
    write_report(path, ReportData([saxpy(rule_results=(rule,))], SESSION))
    for release, binary in ncu_releases.items():
        if release >= "2024":
            output = ncu(binary, tmp_path, "--import", path, "--page", "details")
            assert "OPT   Est. Speedup: 12.5%" in output
