"""Sweeps: labels and steps of published and synthetic reports, their order, and what one kernel is."""

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

DEMO = Path(__file__).parents[2] / "ncu_roofline" / "data" / "demo"
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
    write_report(path, ReportData(kernels=data))
    return path


def steps(result: Roofline, level: str = "dram") -> list[tuple[str, str, int]]:
    """(kernel, label, step) of the points at a level, by kernel and step."""
    rows = result.points[result.points["level"] == level].sort_values(["kernel", "step"], kind="stable")
    return list(zip(rows["kernel"], rows["label"], rows["step"], strict=True))


def assert_published(result: Roofline, labels: Sequence[str]) -> None:
    for level, intensities in PUBLISHED.items():
        rows = result.points[result.points["level"] == level].sort_values("step")
        assert rows["kernel"].tolist() == ["sigma_gpp_gpu"] * 6
        assert rows["label"].tolist() == list(labels)
        assert rows["step"].tolist() == list(range(6))
        assert rows["intensity"].tolist() == pytest.approx(intensities, rel=1e-9)
        assert rows["performance"].tolist() == pytest.approx([g * 1e9 for g in published.GFLOPS], rel=1e-9)
    assert result.kernels["name"].tolist()[0].startswith("void sigma_gpp_gpu<1>")


def test_published_sweep_of_six_reports(tmp_path: Path) -> None:
    paths = gpp_sweep(tmp_path)
    result = roofline(paths, trajectory=True)
    assert_published(result, NW)
    assert result.points.sort_values("step")["report"].unique().tolist() == [str(path) for path in paths]


def test_published_sweep_inside_the_bundled_report() -> None:
    result = roofline(DEMO / "gpp-v100.ncu-rep", DEMO / "gpp-v100-ceilings.json", trajectory="nvtx")
    assert_published(result, [f"nw={nw}" for nw in range(1, 7)])
    assert len(result.kernels) == 6


def test_pattern_in_the_path_and_in_nvtx_ranges(tmp_path: Path) -> None:
    paths = gpp_sweep(tmp_path)
    assert_published(roofline(paths, trajectory=r"gpp-(nw\d)"), NW)
    assert_published(roofline(paths, trajectory=r"nw\d"), NW)
    assert_published(roofline(DEMO / "gpp-v100.ncu-rep", trajectory=r"nvtx:=(\d)"), "123456")


def test_without_a_sweep_nothing_has_a_step(tmp_path: Path) -> None:
    result = roofline(gpp_sweep(tmp_path))
    assert set(result.points["step"]) == set(result.kernels["step"]) == {-1}
    assert set(result.points["label"]) == {""}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["nw1", "nw2", "nw10"], ["nw1", "nw2", "nw10"]),
        (["nw1", "nw10", "nw2"], ["nw1", "nw2", "nw10"]),  # as a shell lists nw*.ncu-rep
        (["nw2", "nw10", "nw1"], ["nw2", "nw10", "nw1"]),  # nobody but a person orders them so
        (["dt0.25", "dt0.5", "dt1"], ["dt0.25", "dt0.5", "dt1"]),
    ],
)
def test_order_of_the_steps(tmp_path: Path, given: list[str], expected: list[str]) -> None:
    paths = [report(tmp_path / f"app-{name}.ncu-rep", ("k", "", 1e-3)) for name in given]
    assert steps(roofline(paths, trajectory=True)) == [("k", label, step) for step, label in enumerate(expected)]


def test_natural_order() -> None:
    names = ["b", "nw10", "nw2", "nw2b", "nw002", "dt0.5", "dt0.25", "7"]
    assert sorted(names, key=natural_order) == ["b", "dt0.25", "dt0.5", "nw2", "nw002", "nw2b", "nw10", "7"]


@pytest.mark.parametrize(
    ("paths", "labels"),
    [
        (["gpp-nw1.ncu-rep", "gpp-nw2.ncu-rep"], ["nw1", "nw2"]),
        (["a/gpp-nw1-v100.ncu-rep", "a/gpp-nw2-v100.ncu-rep"], ["nw1", "nw2"]),
        (["nw1/out.ncu-rep", "nw2/out.ncu-rep"], ["nw1", "nw2"]),
        (["run_nw=1.ncu-rep", "run_nw=2.ncu-rep"], ["nw=1", "nw=2"]),
        (["run_nw_1.ncu-rep", "run_nw_2.ncu-rep"], ["nw_1", "nw_2"]),
        (["gpp.ncu-rep", "gpp-fast.ncu-rep"], ["gpp", "gpp-fast"]),
        (["before.ncu-rep", "after.ncu-rep"], ["before", "after"]),
        (["m_0.25.csv", "m_0.5.csv"], ["m_0.25", "m_0.5"]),
        (["only.ncu-rep"], [""]),
    ],
)
def test_labels_from_file_names(paths: list[str], labels: list[str]) -> None:
    assert file_labels(paths) == labels


@pytest.mark.parametrize(
    ("texts", "labels"),
    [
        (["app/nw=1/solve", "app/nw=2/solve"], ["nw=1", "nw=2"]),
        (["a", "b"], ["a", "b"]),
        (["a"], ["a"]),
        ([], []),
        (["", "a"], ["", "a"]),
    ],
)
def test_differing(texts: list[str], labels: list[str]) -> None:
    assert differing(texts) == labels


def test_several_launches_of_a_step_are_one_dot(tmp_path: Path) -> None:
    paths = [report(tmp_path / f"n{i}.ncu-rep", ("k", "", 1e-3), ("other", "", 1e-3), ("k", "", 3e-3)) for i in (1, 2)]
    result = roofline(paths, trajectory=True)
    assert steps(result) == [("k", "n1", 0), ("k", "n2", 1), ("other", "n1", 0), ("other", "n2", 1)]
    rows = result.kernels[result.kernels["kernel"] == "k"]
    assert rows["launches"].tolist() == [2, 2]
    assert rows["seconds"].tolist() == pytest.approx([4e-3, 4e-3])
    assert rows["report"].tolist() == [str(path) for path in paths]


def test_the_application_is_one_trajectory(tmp_path: Path) -> None:
    paths = [report(tmp_path / f"n{i}.ncu-rep", ("k", "", 1e-3), (f"only{'ab'[i]}", "", 1e-3)) for i in (0, 1)]
    result = roofline(paths, trajectory=True, by="application")
    assert steps(result) == [("application", "n0", 0), ("application", "n1", 1)]


def test_reports_with_one_label_are_one_step(tmp_path: Path) -> None:
    paths = [report(tmp_path / f"nw{nw}-run{run}.ncu-rep", ("k", "", 1e-3)) for nw in (1, 2) for run in (1, 2)]
    result = roofline(paths, trajectory=r"nw\d")
    assert steps(result) == [("k", "nw1", 0), ("k", "nw2", 1)]
    assert result.kernels["launches"].tolist() == [2, 2]
    assert set(result.kernels["report"]) == {""}


def test_launches_outside_of_the_ranges_are_no_step(tmp_path: Path) -> None:
    path = report(tmp_path / "a.ncu-rep", ("k", "", 1e-3), ("k", "n=1", 1e-3), ("k", "n=2", 1e-3))
    assert steps(roofline(path, trajectory="nvtx")) == [("k", "", -1), ("k", "n=1", 0), ("k", "n=2", 1)]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("void f<1>(int)", "void f<2>(int)"), {"f"}),
        (("sgemm_32x128_tn", "sgemm_64x128_tn"), {"sgemm_*x128_tn"}),
        (("void f<float>(int)", "void f<double>(int)"), {"f<float>", "f<double>"}),
    ],
)
def test_parameter_in_the_name_of_the_kernel(tmp_path: Path, names: tuple[str, str], expected: set[str]) -> None:
    paths = [report(tmp_path / f"n{i}.ncu-rep", (name, "", 1e-3)) for i, name in enumerate(names)]
    assert set(roofline(paths, trajectory=True).points["kernel"]) == expected


def test_two_such_kernels_in_one_step_stay_two(tmp_path: Path) -> None:
    paths = [report(tmp_path / f"n{i}.ncu-rep", ("void f<1>()", "", 1e-3), ("void f<2>()", "", 1e-3)) for i in (0, 1)]
    assert steps(roofline(paths, trajectory=True)) == [
        ("f<1>", "n0", 0), ("f<1>", "n1", 1), ("f<2>", "n0", 0), ("f<2>", "n1", 1)
    ]  # fmt: skip


def test_top_counts_kernels_of_the_sweep() -> None:
    measurements = as_trajectory(measurements_of(DEMO / "gpp-v100.ncu-rep"), "nvtx")
    chosen = Selection(top=1, top_by="kernel").launches(measurements)
    assert chosen.label.tolist() == [f"nw={nw}" for nw in range(1, 7)]


def test_imported_labels_stay(tmp_path: Path) -> None:
    path = report(tmp_path / "a.ncu-rep", ("k", "", 1e-3), ("k", "", 2e-3), ("k", "", 3e-3))
    own: Measurements = replace(measurements_of(path), label=np.array(["p", "q", ""], dtype=object))
    result = as_trajectory(own)
    assert result.label.tolist() == ["p", "q", ""]
    assert result.step.tolist() == [0, 1, -1]


@pytest.mark.parametrize(
    ("label", "sentence"),
    [
        ("", "nothing labels its steps. Give reports of other steps, or use --label nvtx"),
        ("nvtx", "nothing labels its steps"),
        ("nvtx:n=", "nothing labels its steps"),
        ("q{9}", "the pattern 'q{9}' finds nothing in its path. Change --label"),
        ("alone", "all of it has one label, 'alone'"),
    ],
)
def test_nothing_to_join(tmp_path: Path, label: str, sentence: str) -> None:
    path = report(tmp_path / "alone.ncu-rep", ("k", "", 1e-3))
    with pytest.raises(RooflineError) as error:
        roofline(path, trajectory=label or True)
    assert f"Cannot draw a trajectory of {path}: " in str(error.value)
    assert sentence in str(error.value)


def test_wrong_options() -> None:
    with pytest.raises(ValueError, match="not a regular expression"):
        roofline(DEMO / "gpp-v100.ncu-rep", trajectory="nvtx:(")
    with pytest.raises(ValueError, match="per launch"):
        roofline(DEMO / "gpp-v100.ncu-rep", trajectory="nvtx", source="embedded")


@pytest.mark.parametrize(
    ("names", "expected"),
    [(("f<1>", "f<2>"), "f<*>"), (("f1_2", "f1_30"), "f1_*"), (("f", "g"), ""), (("a", "a1"), "")],
)
def test_across_numbers(names: tuple[str, str], expected: str) -> None:
    assert across_numbers(names) == expected
