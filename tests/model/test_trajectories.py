"""Sweeps, and the published figures of one: labels and steps, their order, and what one kernel is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ncu_roofline import Roofline, roofline
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.files import natural_order
from ncu_roofline.formats.report import ReportData, write_report
from ncu_roofline.model import Measurements, Selection, as_trajectory, measurements_of
from ncu_roofline.model.names import across_numbers
from ncu_roofline.model.selection import differing, file_labels
from tests import published, published_report
from tests.factory import complete, kernel
from tests.facts.stated import toml

DEMO = Path(__file__).parents[2] / "ncu_roofline" / "data" / "demo"
REPORT, CEILINGS = DEMO / published_report.REPORT, DEMO / published_report.CEILINGS
SWEEPS = toml(Path(__file__).parent / "cases.toml")["sweeps"]
NW = [f"nw{nw}" for nw in range(1, 7)]
PUBLISHED = {"l1": published.INTENSITY_L1, "l2": published.INTENSITY_L2, "dram": published.INTENSITY_DRAM}


def gpp_sweep(folder: Path, names: Sequence[str] = NW) -> list[Path]:
    """The six published runs as one report each, gpp-NAME.ncu-rep."""
    data = published_report.gpp_report()
    paths = [folder / f"gpp-{name}.ncu-rep" for name in names]
    for path, one in zip(paths, data.kernels, strict=True):
        write_report(path, ReportData(kernels=[one], session=data.session))
    return paths


def report(path: Path, *kernels: tuple[str, str, float]) -> Path:
    """A report of (name, NVTX range, seconds)."""
    data = [kernel(complete(seconds=seconds), name, nvtx=(where,) if where else ()) for name, where, seconds in kernels]
    write_report(path, ReportData(kernels=data), overwrite=True)
    return path


def steps(result: Roofline, level: str = "dram") -> list[tuple[str, str, int]]:
    """(kernel, label, step) of the points at a level, by kernel and step."""
    rows = result.points[result.points["level"] == level].sort_values(["kernel", "step"], kind="stable")
    return list(zip(rows["kernel"], rows["label"], rows["step"], strict=True))


def test_the_published_figures_come_out_as_published(tmp_path: Path) -> None:
    published_report.write(tmp_path)
    for name in (published_report.REPORT, published_report.CEILINGS, published_report.PLATFORMS):
        assert (DEMO / name).read_bytes() == (tmp_path / name).read_bytes()
    dram = roofline(REPORT, CEILINGS).points.query("level == 'dram'")
    assert (dram["fraction"] * 100).tolist() == pytest.approx(published.EFFICIENCY, abs=0.02)
    assert dram["binds"].iloc[[0, 5]].tolist() == ["dram", "fp64.fma"]
    assert set(dram["roof_origin"]) == {"measured"}
    roofs = roofline(REPORT).roofs.set_index("roof")["value"]
    found = {name: roofs[name] for name in ("fp64.fma", "fp64.nofma", "dram", "l1")}
    assert found == pytest.approx({"fp64.fma": 7.83e12, "fp64.nofma": 3.92e12, "dram": 898e9, "l1": 15.67e12}, rel=1e-3)


def test_published_sweeps(tmp_path: Path) -> None:
    """Of six reports, and of ranges inside one; by patterns in either."""
    paths = gpp_sweep(tmp_path)
    assert roofline(paths, trajectory=True).points.sort_values("step")["report"].unique().tolist() == [str(p) for p in paths]
    inside = [f"nw={nw}" for nw in range(1, 7)]
    for files, label, labels in (
        *((paths, given, NW) for given in (True, r"gpp-(nw\d)", r"nw\d")),
        *((REPORT, given, labels) for given, labels in (("nvtx", inside), (r"nvtx:=(\d)", [*"123456"]))),
    ):
        result = roofline(files, trajectory=label)
        for level, intensities in PUBLISHED.items():
            assert steps(result, level) == [("sigma_gpp_gpu", one, step) for step, one in enumerate(labels)]
            rows = result.points[result.points["level"] == level].sort_values("step")
            assert rows["intensity"].tolist() == pytest.approx(intensities, rel=1e-9)
            assert rows["performance"].tolist() == pytest.approx([g * 1e9 for g in published.GFLOPS], rel=1e-9)
        assert len(result.kernels) == 6
        assert result.kernels["name"].tolist()[0].startswith("void sigma_gpp_gpu<1>")
    result = roofline(paths)  # without a sweep nothing has a step
    assert set(result.points["step"]) == set(result.kernels["step"]) == {-1}
    assert set(result.points["label"]) == {""}


def test_labels_names_and_order(tmp_path: Path) -> None:
    for paths, labels in SWEEPS["files"]:
        assert file_labels(paths) == labels
    for texts, labels in SWEEPS["texts"]:
        assert differing(texts) == labels
    for names, across in SWEEPS["across"]:
        assert across_numbers(names) == across
    names = ["b", "nw10", "nw2", "nw2b", "nw002", "dt0.5", "dt0.25", "7"]
    assert sorted(names, key=natural_order) == ["b", "dt0.25", "dt0.5", "nw2", "nw002", "nw2b", "nw10", "7"]
    for given, expected in SWEEPS["order"]:
        paths = [report(tmp_path / f"app-{name}.ncu-rep", ("k", "", 1e-3)) for name in given]
        assert steps(roofline(paths, trajectory=True)) == [("k", label, step) for step, label in enumerate(expected)]
    for names, kernels in SWEEPS["kernels"]:
        paths = [report(tmp_path / f"n{i}.ncu-rep", *((one, "", 1e-3) for one in each)) for i, each in enumerate(names)]
        assert sorted(set(roofline(paths, trajectory=True).points["kernel"])) == kernels
    path = report(tmp_path / "alone.ncu-rep", ("k", "", 1e-3))
    for label, sentence in SWEEPS["refused"]:
        with pytest.raises(RooflineError) as error:
            roofline(path, trajectory=label or True)
        assert f"Cannot draw a trajectory of {path}: " in str(error.value)
        assert sentence in str(error.value)


def test_what_is_one_step(tmp_path: Path) -> None:
    paths = [report(tmp_path / f"n{i}.ncu-rep", ("k", "", 1e-3), ("other", "", 1e-3), ("k", "", 3e-3)) for i in (1, 2)]
    result = roofline(paths, trajectory=True)  # several launches of a kernel are one dot
    assert steps(result) == [("k", "n1", 0), ("k", "n2", 1), ("other", "n1", 0), ("other", "n2", 1)]
    rows = result.kernels[result.kernels["kernel"] == "k"]
    assert rows["launches"].tolist() == [2, 2]
    assert rows["seconds"].tolist() == pytest.approx([4e-3, 4e-3])
    assert rows["report"].tolist() == [str(path) for path in paths]
    whole = roofline(paths, trajectory=True, by="application")
    assert steps(whole) == [("application", "n1", 0), ("application", "n2", 1)]
    paths = [report(tmp_path / f"nw{nw}-run{run}.ncu-rep", ("k", "", 1e-3)) for nw in (1, 2) for run in (1, 2)]
    result = roofline(paths, trajectory=r"nw\d")  # reports with one label
    assert steps(result) == [("k", "nw1", 0), ("k", "nw2", 1)]
    assert result.kernels["launches"].tolist() == [2, 2]
    assert set(result.kernels["report"]) == {""}
    path = report(tmp_path / "a.ncu-rep", ("k", "", 1e-3), ("k", "n=1", 1e-3), ("k", "n=2", 1e-3))
    assert steps(roofline(path, trajectory="nvtx")) == [("k", "", -1), ("k", "n=1", 0), ("k", "n=2", 1)]
    # Of kernels the one with most time, in all steps; labels that a file gives its points stay.
    chosen = Selection(top=1, top_by="kernel").launches(as_trajectory(measurements_of(REPORT), "nvtx"))
    assert chosen.label.tolist() == [f"nw={nw}" for nw in range(1, 7)]
    own: Measurements = replace(measurements_of(path), label=np.array(["p", "q", ""], dtype=object))
    labelled = as_trajectory(own)
    assert (labelled.label.tolist(), labelled.step.tolist()) == (["p", "q", ""], [0, 1, -1])
