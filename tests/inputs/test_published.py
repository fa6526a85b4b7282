"""Published figures come out of files of other tools again: GPP on a V100, STREAM on a CPU, and the GPUs of nvprof."""

from __future__ import annotations

from pathlib import Path

import pytest

from ncu_roofline import roofline
from ncu_roofline.chips.spec import gpus
from ncu_roofline.formats.inputs import open_ceilings
from ncu_roofline.formats.inputs.nvprof import tensor_peak
from tests import published, published_report
from tests.bench import made
from tests.inputs import nvprof_logs as logs
from tests.inputs.made import FILES

INTENSITIES = {"l1": published.INTENSITY_L1, "l2": published.INTENSITY_L2, "dram": published.INTENSITY_DRAM}


def file(folder: Path, name: str) -> Path:
    FILES[name](folder / name)
    return folder / name


def test_gpp_of_nvprof(tmp_path: Path) -> None:
    """Six runs, a file of metrics and a file of times each, in any order; the efficiency under measured roofs, too."""
    counts, times = list[Path](), list[Path]()
    for gpp in published.gpp_runs():
        counts.append(tmp_path / f"nw{gpp.nw}-metrics.csv")
        counts[-1].write_text(logs.metrics(logs.gpp_metrics(gpp)))
        times.append(tmp_path / f"nw{gpp.nw}-times.csv")
        times[-1].write_text(logs.summary({logs.KERNEL: (gpp.seconds, 1)}))
    sweep = [path for pair in zip(counts, times, strict=True) for path in pair]
    for given in (sweep, counts + times, times + counts):
        points = roofline(given).points
        assert set(points["precision"]) == {"fp64"}
        assert set(points["compute_capability"]) == {"7.0"}
        for level, intensities in INTENSITIES.items():
            rows = points[points["level"] == level]
            assert rows["intensity"].tolist() == pytest.approx(intensities, rel=1e-8)
            assert rows["performance"].tolist() == pytest.approx([g * 1e9 for g in published.GFLOPS], rel=1e-8)
            assert rows["fma_share"].tolist() == pytest.approx([published.FMA_SHARE] * 6, rel=1e-8)
    for gpu in gpus():
        if gpu.compute_capability == (7, 0):
            assert tensor_peak(f"Tesla {gpu.names[0]}-16GB") == pytest.approx(gpu.sm_count * 1024 * gpu.tensor_clock)
    published_report.write(tmp_path)
    rows = roofline(sweep, tmp_path / published_report.CEILINGS).points.query("level == 'dram'")
    assert list(100 * rows["fraction"]) == pytest.approx(published.EFFICIENCY, abs=0.02)
    assert rows["report"].iloc[0] == f"{counts[0]} + {times[0]}"


def test_gpp_of_plot_scripts(tmp_path: Path) -> None:
    """As points, and its roofs under a report: they name no precision, so they stand for FP64, and the roof says so."""
    published_report.write(tmp_path)
    gpp = file(tmp_path, "gpp.txt")
    for result in (roofline(gpp), roofline(tmp_path / published_report.REPORT, open_ceilings(gpp))):
        points = result.points.query("level == 'dram'")
        assert list(100 * points["fraction"]) == pytest.approx(published.EFFICIENCY, abs=0.02)
        assert list(points["intensity"]) == pytest.approx(published.INTENSITY_DRAM)
    (note,) = result.roofs.query("roof == 'fp64.fma' and origin == 'measured'")["notes"]
    assert note.startswith("taken as FP64")


def test_stream_of_nersc(tmp_path: Path) -> None:
    """What parse-sde.sh and parse-vtune2018.sh print in "Measuring Arithmetic Intensity", and below measured roofs of a CPU."""
    files = [file(tmp_path, name) for name in ("sde-stream.txt", "vtune-events.csv", "vtune-summary.csv")]
    points = roofline(files).points.set_index("level")
    assert points["intensity"].round(4).to_dict() == {"l1": 0.0802, "dram": 0.0825}
    assert points["traffic"].to_dict() == {"l1": 49_869_806_228, "dram": 48_511_113_024}
    assert points["performance"]["l1"] == pytest.approx(4_000_000_400 / 0.75)
    cpu = made.write("epyc.json", tmp_path / "cpu.json")
    for given, rate in ((files, 48_511_113_024 / 0.75), ([file(tmp_path, "advisor.csv")], 16e9 / 2)):
        dram = roofline(given, cpu).points.query("level == 'dram'")
        assert dram["fraction"].tolist() == pytest.approx([rate / 190e9])
