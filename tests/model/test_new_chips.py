"""Reports of chips that are unproven (10.7), newer than this version (11.5, 13.0) or too old (6.1)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ncu_roofline import roofline
from ncu_roofline.analyses.instruction import instruction_roofline
from ncu_roofline.cli import main
from ncu_roofline.formats.report import read_report
from ncu_roofline.model import Roofline, measurements_of
from ncu_roofline.model.explanations import explain
from tests.factory import H100, Metrics, complete, kernel, report

TENSOR = "sm__ops_path_tensor_op_utchmma_src_fp16_dst_fp32_sparsity"
DFMA = "sm__sass_thread_inst_executed_op_dfma_pred_on.sum.peak_sustained"
NEWER = {(10, 7): "10.7 is unproven", (11, 5): "read with the counters of 10.7", (13, 0): "read with the counters of 12.0"}
EACH = pytest.mark.parametrize("capability", NEWER, ids=lambda one: "{}.{}".format(*one))


def of_chip(capability: tuple[int, int], **extra: float) -> Metrics:
    """FP64 work of a millisecond with counters that 7.0 to 12.1 have, and their own peaks for FP64, L2 and DRAM."""
    device = {
        **H100,
        "device__attribute_display_name": "NVIDIA X100",
        "device__attribute_compute_capability_major": capability[0],
        "device__attribute_compute_capability_minor": capability[1],
    }
    peaks = {
        DFMA: 132 * 64,
        "lts__t_sectors_srcunit_tex.sum.peak_sustained": 160,
        "dram__bytes.sum.peak_sustained": 1280,
        "dram__cycles_elapsed.avg.per_second": 2.6e9,
    }
    packed = {f"smsp__sass_thread_inst_executed_op_{op}2_pred_on.sum": 0 for op in ("fadd", "fmul", "ffma")}
    return {**complete(device, clock=1.9e9), **packed, **peaks, **extra}


def drawn(tmp_path: Path, metrics: Metrics) -> Roofline:
    return roofline(report(tmp_path / "r.ncu-rep", kernel(metrics)))


@EACH
def test_points_with_a_caveat_on_every_row(tmp_path: Path, capability: tuple[int, int]) -> None:
    result = drawn(tmp_path, of_chip(capability))
    points = result.points.set_index("level")
    assert set(points.index) == {"l1", "l2", "dram"}
    assert set(points["precision"]) == {"fp64"}
    assert points["performance"].tolist() == pytest.approx([1e12] * 3)
    assert points.loc["dram", "intensity"] == pytest.approx(4.0)
    assert all(NEWER[capability] in note for note in points["notes"])
    assert result.kernels["status"].tolist() == ["ok"]
    assert NEWER[capability] in result.kernels["notes"].iloc[0]
    assert result.kernels["compute_capability"].tolist() == ["{}.{}".format(*capability)]


@EACH
def test_roofs_are_those_that_counters_state(tmp_path: Path, capability: tuple[int, int]) -> None:
    result = drawn(tmp_path, of_chip(capability))
    points = result.points.set_index("level")
    assert points["compute_roof"].tolist() == pytest.approx([132 * 64 * 2 * 1.9e9] * 3)
    assert points.loc["l2", "bandwidth_roof"] == pytest.approx(160 * 32 * 1.9e9)
    assert points.loc["dram", "bandwidth_roof"] == pytest.approx(1280 * 2.6e9)
    assert np.isnan(points.loc["l1", "bandwidth_roof"])  # only data sheets know it
    bare = {name: value for name, value in of_chip(capability).items() if not name.endswith("peak_sustained")}
    result = drawn(tmp_path, bare)
    assert len(result.points) == 3
    assert result.points["compute_roof"].isna().all()
    assert not len(result.roofs)


def test_tensor_counters_of_rubin(tmp_path: Path) -> None:
    work = {f"{TENSOR}_off.sum": 3e12, f"{TENSOR}_off.sum.peak_sustained": 132 * 8192, f"{TENSOR}_on.sum": 0}
    work |= {name.replace("utchmma", "hmma"): value for name, value in work.items() if not name.endswith("sustained")}
    work |= {
        f"sm__ops_path_tensor_op_{op}_src_fp16_dst_fp16_sparsity_{sparse}.sum": 0
        for op in ("hmma", "utchmma")
        for sparse in ("on", "off")
    }
    work[f"{TENSOR.replace('utchmma', 'hmma')}_off.sum"] = 1e12
    points = drawn(tmp_path, of_chip((10, 7), **work)).points
    found = {row["precision"]: row["work"] for _, row in points[points["level"] == "dram"].iterrows()}
    assert found["tensor.fp16"] == pytest.approx(4e12)
    assert found["tensor.fp16.tcgen05"] == pytest.approx(3e12)
    assert found["tensor.fp16.mma"] == pytest.approx(1e12)


@EACH
def test_explained(tmp_path: Path, capability: tuple[int, int]) -> None:
    metrics = {name: value for name, value in of_chip(capability).items() if not name.startswith("dram__")}
    with read_report(report(tmp_path / "r.ncu-rep", kernel(metrics))) as opened:
        found = explain(opened, measurements_of(opened))
    assert found.missing == ("dram",)
    assert any(NEWER[capability] in note for note in found.notes)
    assert all(NEWER[capability] in one.notes for one in (*found.precisions, *found.levels) if one.launches)
    assert "dram__bytes.sum" in found.command


@EACH
def test_instructions(tmp_path: Path, capability: tuple[int, int]) -> None:
    path = report(tmp_path / "r.ncu-rep", kernel(of_chip(capability, **{"smsp__inst_executed.sum": 1e6})))
    with read_report(path) as opened:
        result = instruction_roofline(measurements_of(opened, instructions=True))
    assert result.kernels["status"].tolist() == ["ok"]
    assert NEWER[capability] in result.kernels["notes"].iloc[0]
    assert len(result.points)


@EACH
def test_shown(tmp_path: Path, capability: tuple[int, int], capsys: pytest.CaptureFixture[str]) -> None:
    path = report(tmp_path / "r.ncu-rep", kernel(of_chip(capability)))
    assert main(["show", str(path)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert NEWER[capability] in said
    assert "1 TFLOP/s" in said


def test_pascal_stays_without_counters(tmp_path: Path) -> None:
    result = drawn(tmp_path, of_chip((6, 1)))
    assert result.kernels["status"].tolist() == ["unknown-chip"]
    assert not len(result.points)
    with read_report(report(tmp_path / "r.ncu-rep", kernel(of_chip((6, 1))))) as opened:
        found = explain(opened, measurements_of(opened))
    assert "compute capability 6.1 is not known to this version" in found.notes
    assert found.command == ""


def test_known_and_unknown_chips_in_one_report(tmp_path: Path) -> None:
    path = report(tmp_path / "r.ncu-rep", kernel(of_chip((9, 0))), kernel(of_chip((13, 0))), kernel(of_chip((6, 1))))
    result = roofline(path)
    assert result.kernels["status"].tolist() == ["ok", "ok", "unknown-chip"]
    notes = result.points.groupby("launch")["notes"].apply(lambda column: "13.0 is not known" in " ".join(column))
    assert notes.to_dict() == {0: False, 1: True}
