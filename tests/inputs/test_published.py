"""Published figures come out of files of other tools again: GPP on a V100, STREAM on a CPU, and the GPUs of nvprof."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ncu_roofline import roofline
from ncu_roofline.bench.device import parse_device
from ncu_roofline.chips.spec import gpus
from ncu_roofline.formats.inputs import open_ceilings
from ncu_roofline.formats.inputs.nvprof import tensor_peak
from tests import published, published_report
from tests.bench import test_cpu_files
from tests.cli.command import Command
from tests.inputs import nvprof_logs as logs
from tests.inputs.made import FILES

INTENSITIES = {"l1": published.INTENSITY_L1, "l2": published.INTENSITY_L2, "dram": published.INTENSITY_DRAM}


def file(folder: Path, name: str) -> Path:
    FILES[name](folder / name)
    return folder / name


def test_gpp_of_nvprof(tmp_path: Path, run: Command) -> None:
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
    outcome = run("show", *sweep, "--ceilings", tmp_path / published_report.CEILINGS, "--json")
    assert (outcome.code, outcome.err) == (0, ""), "what completes each other leaves nothing to warn of"
    rows = [point for point in json.loads(outcome.out)["points"] if point["level"] == "dram"]
    assert [100 * point["fraction"] for point in rows] == pytest.approx(published.EFFICIENCY, abs=0.02)
    assert rows[0]["report"] == "nw1-metrics.csv + nw1-times.csv"


@pytest.mark.parametrize("source", ["gpp.txt", "roofs of gpp.txt", "roofs of ERT"])
def test_gpp_of_plot_scripts_and_roofs_of_others(tmp_path: Path, source: str) -> None:
    """The roofs name no precision: they stand for FP64, and the roof says so."""
    published_report.write(tmp_path)
    gpp, ert = file(tmp_path, "gpp.txt"), tmp_path / "roofline.json"
    pairs = {"gbytes": [["L1", 2996.77], ["DRAM", 828.758]], "gflops": [["GFLOPs", 7068.86]]}
    about = {"CONFIG": {"ERT_GPU": [True]}}
    ert.write_text(json.dumps({"empirical": {key: {"data": data} for key, data in pairs.items()} | {"metadata": about}}))
    ceilings = {"gpp.txt": None, "roofs of gpp.txt": open_ceilings(gpp), "roofs of ERT": open_ceilings(ert)}[source]
    result = roofline(tmp_path / published_report.REPORT if ceilings else gpp, ceilings)
    points = result.points.query("level == 'dram'")
    assert list(100 * points["fraction"]) == pytest.approx(published.EFFICIENCY, abs=0.02)
    assert list(points["intensity"]) == pytest.approx(published.INTENSITY_DRAM)
    if not ceilings:
        assert points[["work", "seconds"]].isna().all(axis=None)
        roofs = {"fp.fma": 7068.86e9, "fp.nofma": 3535.79e9, "l1": 14336e9, "l2": 2996.77e9, "dram": 828.758e9}
        assert dict(result.roofs.set_index("roof")["value"]) == pytest.approx(roofs)
    if source == "roofs of gpp.txt":
        (note,) = result.roofs.query("roof == 'fp64.fma' and origin == 'measured'")["notes"]
        assert note.startswith("taken as FP64")


def test_stream_of_nersc(tmp_path: Path) -> None:
    """What parse-sde.sh and parse-vtune2018.sh print in "Measuring Arithmetic Intensity", and below measured roofs of a CPU."""
    files = [file(tmp_path, name) for name in ("sde-stream.txt", "vtune-events.csv", "vtune-summary.csv")]
    points = roofline(files).points.set_index("level")
    assert points["intensity"].round(4).to_dict() == {"l1": 0.0802, "dram": 0.0825}
    assert points["traffic"].to_dict() == {"l1": 49_869_806_228, "dram": 48_511_113_024}
    assert points["performance"]["l1"] == pytest.approx(4_000_000_400 / 0.75)
    cpu = test_cpu_files.write(tmp_path / "cpu.json", parse_device(test_cpu_files.EPYC))
    for given, rate in ((files, 48_511_113_024 / 0.75), ([file(tmp_path, "advisor.csv")], 16e9 / 2)):
        dram = roofline(given, cpu).points.query("level == 'dram'")
        assert dram["fraction"].tolist() == pytest.approx([rate / 380e9])
