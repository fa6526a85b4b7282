"""The published GPP figures, put into a report, come out again as published."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ncu_roofline import roofline
from ncu_roofline.cli import main
from tests import published, published_report


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    published_report.write(tmp_path)
    return tmp_path / published_report.REPORT, tmp_path / published_report.CEILINGS


def test_intensities_and_performance(files: tuple[Path, Path]) -> None:
    points = roofline(*files).points
    expected = {"l1": published.INTENSITY_L1, "l2": published.INTENSITY_L2, "dram": published.INTENSITY_DRAM}
    for level, intensities in expected.items():
        rows = points[points["level"] == level]
        assert list(rows["precision"]) == ["fp64"] * 6
        assert rows["intensity"].tolist() == pytest.approx(intensities, rel=1e-9)
        assert rows["performance"].tolist() == pytest.approx([g * 1e9 for g in published.GFLOPS], rel=1e-9)


def test_efficiency_against_the_measured_roofs(files: tuple[Path, Path]) -> None:
    points = roofline(*files).points
    dram = points[points["level"] == "dram"]
    assert (dram["fraction"] * 100).tolist() == pytest.approx(published.EFFICIENCY, abs=0.02)
    # Published: bound by HBM at nw = 1, by compute at nw = 6.
    assert dram["binds"].iloc[0] == "dram"
    assert dram["binds"].iloc[5] == "fp64.fma"
    assert set(dram["roof_origin"]) == {"measured"}


def test_theoretical_peak_is_the_published_one(files: tuple[Path, Path]) -> None:
    roofs = roofline(files[0]).roofs.set_index("roof")
    assert roofs.loc["fp64.fma", "value"] == pytest.approx(7.83e12, rel=1e-3)
    assert roofs.loc["fp64.nofma", "value"] == pytest.approx(3.92e12, rel=1e-3)
    assert roofs.loc["dram", "value"] == pytest.approx(898e9, rel=1e-3)
    assert roofs.loc["l1", "value"] == pytest.approx(80 * 128 * 1.53e9)


def test_show_json(files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(files[0]), "--ceilings", str(files[1]), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    first = next(p for p in document["points"] if p["launch"] == 0 and p["level"] == "dram")
    assert first["intensity"] == pytest.approx(2.584785579, rel=1e-9)
    assert first["performance"] == pytest.approx(2085.756683e9, rel=1e-9)
    assert first["fraction"] == pytest.approx(0.9736, abs=2e-4)


def test_bundled_demo_is_these_figures(tmp_path: Path) -> None:
    published_report.write(tmp_path)
    bundled = Path(__file__).parents[2] / "ncu_roofline" / "data" / "demo"
    for name in (published_report.REPORT, published_report.CEILINGS, published_report.PLATFORMS):
        assert (bundled / name).read_bytes() == (tmp_path / name).read_bytes()
