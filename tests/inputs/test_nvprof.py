"""nvprof's CSV: counts and times of separate runs, joined; the published GPP figures come out of such pairs again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ncu_roofline import roofline
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.chips.spec import gpus
from ncu_roofline.formats.inputs import nvprof
from ncu_roofline.formats.inputs.nvprof import tensor_peak
from tests import published, published_report
from tests.cli.command import Command, assert_refused
from tests.inputs import nvprof_logs as logs


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def sweep(tmp_path: Path) -> list[Path]:
    """The six published runs, a file of metrics and a file of times each."""
    files = []
    for gpp in published.gpp_runs():
        files.append(write(tmp_path / f"nw{gpp.nw}-metrics.csv", logs.metrics(logs.gpp_metrics(gpp))))
        files.append(write(tmp_path / f"nw{gpp.nw}-times.csv", logs.summary({logs.KERNEL: (gpp.seconds, 1)})))
    return files


@pytest.mark.parametrize("order", ["pair by pair", "metrics first", "times first"])
def test_published_gpp_figures_come_back(sweep: list[Path], order: str) -> None:
    counts, times = sweep[::2], sweep[1::2]
    given = {"pair by pair": sweep, "metrics first": counts + times, "times first": times + counts}[order]
    points = roofline(given).points
    expected = {"l1": published.INTENSITY_L1, "l2": published.INTENSITY_L2, "dram": published.INTENSITY_DRAM}
    for level, intensities in expected.items():
        rows = points[points["level"] == level]
        assert set(rows["precision"]) == {"fp64"}
        assert rows["intensity"].tolist() == pytest.approx(intensities, rel=1e-8)
        assert rows["performance"].tolist() == pytest.approx([g * 1e9 for g in published.GFLOPS], rel=1e-8)
        assert rows["fma_share"].tolist() == pytest.approx([published.FMA_SHARE] * 6, rel=1e-8)
        assert set(rows["compute_capability"]) == {"7.0"}


def test_published_efficiency_under_measured_roofs(sweep: list[Path], tmp_path: Path, run: Command) -> None:
    published_report.write(tmp_path)
    outcome = run("show", *sweep, "--ceilings", tmp_path / published_report.CEILINGS, "--json")
    assert outcome.code == 0, outcome
    assert outcome.err == "", "what completes each other leaves nothing to warn of"
    points = [point for point in json.loads(outcome.out)["points"] if point["level"] == "dram"]
    assert [100 * point["fraction"] for point in points] == pytest.approx(published.EFFICIENCY, abs=0.02)
    first = points[0]
    assert first["report"] == "nw1-metrics.csv + nw1-times.csv"
    assert "flop_count_dp, gld_transactions, gst_transactions" in first["metrics"]


def test_mean_times_invocations(tmp_path: Path) -> None:
    gpp = published.gpp_runs()[0]
    one = write(tmp_path / "m.csv", logs.metrics(logs.gpp_metrics(gpp, launches=4), launches=4))
    two = write(tmp_path / "t.csv", logs.summary({logs.KERNEL: (gpp.seconds, 4)}, unit="ms"))
    row = roofline([one, two]).points.query("level == 'dram'").iloc[0]
    assert row["launches"] == 4
    assert row["work"] == pytest.approx(2 * gpp.dfma + gpp.dadd + gpp.dmul)
    assert row["performance"] == pytest.approx(published.GFLOPS[0] * 1e9)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("kind", [True, False])
def test_summaries_of_all_units_and_ages(tmp_path: Path, unit: str, kind: bool) -> None:
    table = nvprof.read(write(tmp_path / "t.csv", logs.summary({"a": (2.5, 5), "b(int, float)": (1e-5, 1)}, unit, kind)))
    assert [(point.name, point.seconds, point.launches) for point in table.points] == [
        ("a", pytest.approx(2.5), 5),
        ("b(int, float)", pytest.approx(1e-5), 1),
    ]
    assert "times and no counts" in table.warnings[0]


@pytest.mark.parametrize("numbered", [True, False])
def test_a_trace_gives_the_time_of_all_launches(tmp_path: Path, numbered: bool) -> None:
    counts = write(
        tmp_path / "m.csv", logs.metrics({"flop_count_sp": 100, "dram_read_bytes": 30, "dram_write_bytes": 20}, "k", 3)
    )
    launches = [("k", 1e-6), ("other", 5e-6), ("k", 2e-6), ("k", 3e-6)]
    times = write(tmp_path / "t.csv", logs.trace(launches, numbered=numbered))
    result = roofline([counts, times])
    row = result.points.iloc[0]
    assert (row["precision"], row["level"], row["launches"]) == ("fp32", "dram", 3)
    assert row["intensity"] == pytest.approx(2.0)
    assert row["seconds"] == pytest.approx(6e-6)
    assert dict(zip(result.kernels["kernel"], result.kernels["status"], strict=True)) == {"k": "ok", "other": "no-work-metrics"}
    assert set(result.kernels["grid"]) == {"80x1x1"}
    assert set(result.kernels["block"]) == {"256x1x1"}


def test_metrics_in_the_trace_give_launch_by_launch(tmp_path: Path) -> None:
    extra = {
        "Floating Point Operations(Double Precision)": (100, 300),
        "dram_read_transactions": (1, 2),
        "dram_write_transactions": (1, 4),
        "achieved_occupancy": (0.5, 0.5),
    }
    points = roofline(write(tmp_path / "t.csv", logs.trace([("k", 1e-6), ("k", 2e-6)], extra))).points
    assert points["intensity"].tolist() == pytest.approx([100 / 64, 300 / 192])
    assert points["performance"].tolist() == pytest.approx([1e8, 1.5e8])


def test_metrics_per_launch_join_a_trace_launch_by_launch(tmp_path: Path) -> None:
    text = '"Device","Context","Stream","Kernel","flop_count_hp","dram_read_bytes","dram_write_bytes"\n'
    text += "".join(f'"{logs.GPU}","1","7","k",{flop},10,10\n' for flop in (20, 80))
    times = write(tmp_path / "t.csv", logs.trace([("k", 1e-6), ("k", 4e-6)]))
    points = roofline([write(tmp_path / "m.csv", text), times]).points
    assert points["performance"].tolist() == pytest.approx([2e7, 2e7])
    assert points["intensity"].tolist() == pytest.approx([1.0, 4.0])


def test_other_numbers_of_launches_are_scaled_aloud(tmp_path: Path) -> None:
    counts = nvprof.read(write(tmp_path / "m.csv", logs.metrics({"flop_count_dp": 10}, "k", 2)))
    times = nvprof.read(write(tmp_path / "t.csv", logs.summary({"k": (6.0, 6)})))
    (table,) = nvprof.joined([counts, times])
    assert table.points[0].seconds == pytest.approx(2.0)
    assert "counted over 2 launches and timed over 6" in table.warnings[0]


def test_metrics_of_several_runs_of_one_application_add_up(tmp_path: Path) -> None:
    first = write(tmp_path / "a.csv", logs.metrics({"flop_count_dp": 8}, "k"))
    second = write(tmp_path / "b.csv", logs.metrics({"l2_read_transactions": 1, "l2_write_transactions": 1}, "k"))
    third = write(tmp_path / "c.csv", logs.summary({"k": (2.0, 1)}))
    points = roofline([first, second, third]).points
    assert points["intensity"].tolist() == pytest.approx([8 / 64])
    assert points["performance"].tolist() == pytest.approx([4.0])


def test_runs_appended_to_one_file_stay_apart(tmp_path: Path) -> None:
    text = "".join(logs.metrics({"flop_count_dp": value}, "k") + logs.summary({"k": (1.0, 1)}) for value in (5, 7))
    table = nvprof.read(write(tmp_path / "all.csv", text))
    assert [point.work["fp64"] for point in table.points] == [5, 7]
    assert table.warnings == ()


def test_files_without_a_common_kernel_stay_apart(tmp_path: Path, run: Command) -> None:
    counts = write(tmp_path / "m.csv", logs.metrics({"flop_count_dp": 8}, "k"))
    times = write(tmp_path / "t.csv", logs.summary({"another": (2.0, 1)}))
    outcome = run("show", counts, times)
    assert outcome.code == 0
    assert f"{counts}: it holds counts and no times" in outcome.err
    assert f"{times}: it holds times and no counts" in outcome.err


def test_reports_keep_their_place_beside_joined_files(tmp_path: Path, run: Command) -> None:
    counts = write(tmp_path / "m.csv", logs.metrics({"flop_count_dp": 8}, "k"))
    times = write(tmp_path / "t.csv", logs.summary({"k": (2.0, 1)}))
    published_report.write(tmp_path)
    report = tmp_path / published_report.REPORT
    outcome = run("show", report, counts, report, times, "--json", "--full-paths")
    assert outcome.code == 0, outcome
    names = dict.fromkeys(kernel["report"] for kernel in json.loads(outcome.out)["kernels"])
    assert list(names) == [str(report), f"{counts} + {times}"]
    outcome = run("show", times, report, counts, tmp_path / "missing.csv", "--json", "--keep-going")
    assert outcome.code == 1
    names = dict.fromkeys(kernel["report"] for kernel in json.loads(outcome.out)["kernels"])
    assert list(names) == ["t.csv + m.csv", report.name]


LEVELS = {
    "l1": ({"gld_transactions": 1, "gst_transactions": 2, "local_load_transactions": 3, "atomic_transactions": 4}, 320),
    "shared": ({"shared_load_transactions": 1, "shared_store_transactions": 2}, 384),
    "l2": ({"l2_read_transactions": 1, "l2_write_transactions": 2}, 96),
    "dram": ({"dram_read_transactions": 1, "dram_write_transactions": 2}, 96),
    "system": ({"sysmem_read_transactions": 1, "sysmem_write_transactions": 2}, 96),
}


@pytest.mark.parametrize("level", LEVELS)
def test_bytes_of_a_transaction(tmp_path: Path, level: str) -> None:
    values, size = LEVELS[level]
    (point,) = nvprof.read(write(tmp_path / "m.csv", logs.metrics(values))).points
    assert point.traffic == {level: size}
    assert point.columns == ", ".join(values)


def test_older_names_of_system_memory(tmp_path: Path) -> None:
    values = {"system_read_transactions": 1, "system_write_transactions": 2}
    assert nvprof.read(write(tmp_path / "m.csv", logs.metrics(values))).points[0].traffic == {"system": 96}


def test_work_from_its_parts(tmp_path: Path) -> None:
    values = {"flop_count_sp_add": 10, "flop_count_sp_mul": 20, "flop_count_sp_fma": 30}
    (point,) = nvprof.read(write(tmp_path / "m.csv", logs.metrics(values))).points
    assert point.work == {"fp32": 90}
    assert point.fma_share == {"fp32": pytest.approx(0.5)}


@pytest.mark.parametrize("given", ["gld_transactions", "l2_write_transactions", "dram_read_bytes"])
def test_half_a_level_is_no_level(tmp_path: Path, given: str) -> None:
    table = nvprof.read(write(tmp_path / "m.csv", logs.metrics({"flop_count_dp": 1, given: 7})))
    assert table.points[0].traffic == {}
    assert any("traffic left out" in warning and "not collected" in warning for warning in table.warnings)


def test_transactions_of_older_gpus(tmp_path: Path) -> None:
    values = {**LEVELS["l1"][0], **LEVELS["shared"][0], **LEVELS["dram"][0]}
    pascal = nvprof.read(write(tmp_path / "p.csv", logs.metrics(values, device="Tesla P100-PCIE-16GB (0)")))
    assert pascal.points[0].traffic == {"shared": 384, "dram": 96}
    assert pascal.points[0].compute_capability == (6, 0)
    assert any("l1 traffic left out: the size of its transactions" in warning for warning in pascal.warnings)
    unknown = nvprof.read(write(tmp_path / "u.csv", logs.metrics(values, device="Graphics Device (0)")))
    assert unknown.points[0].traffic == {"l1": 320, "shared": 384, "dram": 96}
    assert "as on Volta" in unknown.points[0].note


def test_tensor_work_is_estimated_from_the_utilisation(tmp_path: Path) -> None:
    values = {"tensor_precision_fu_utilization": "Mid (5)", "flop_count_hp": 0, **LEVELS["dram"][0]}
    counts = write(tmp_path / "m.csv", logs.metrics(values, "gemm", 10))
    times = write(tmp_path / "t.csv", logs.summary({"gemm": (2.0, 10)}))
    points = roofline([counts, times]).points
    row = points[points["precision"] == "tensor.fp16"].iloc[0]
    # Half of 80 SMs x 8 tensor cores x 64 FMA x 2 FLOP x 1.53 GHz = 125.3 TFLOP/s.
    assert row["performance"] == pytest.approx(0.5 * 80 * 8 * 64 * 2 * 1.53e9)
    assert "utilisation / 10" in row["notes"]
    assert "half a level" in row["notes"]


def test_tensor_work_needs_a_known_peak_and_a_time(tmp_path: Path) -> None:
    level = {"tensor_precision_fu_utilization": "Low (1)"}
    unknown = nvprof.read(write(tmp_path / "x.csv", logs.metrics(level, device="TITAN V (0)")))
    assert any("tensor_precision_fu_utilization left out: the tensor peak of TITAN V" in text for text in unknown.warnings)
    timeless = nvprof.read(write(tmp_path / "m.csv", logs.metrics(level)))
    assert timeless.points[0].work == {}


def test_the_boards_are_those_of_the_gpu_table() -> None:
    for gpu in gpus():
        if gpu.compute_capability == (7, 0):
            assert tensor_peak(f"Tesla {gpu.names[0]}-16GB") == pytest.approx(gpu.sm_count * 1024 * gpu.tensor_clock)


@pytest.mark.parametrize(
    ("name", "capability"),
    [
        ("Tesla V100-SXM2-16GB", (7, 0)),
        ("TITAN V", (7, 0)),
        ("Tesla K20c", (3, 5)),
        ("GeForce GTX 1070", (6, 1)),
        ("GeForce RTX 2080 Ti", (7, 5)),
        ("Graphics Device", (0, 0)),
    ],
)
def test_devices(tmp_path: Path, name: str, capability: tuple[int, int]) -> None:
    (point,) = nvprof.read(write(tmp_path / "m.csv", logs.metrics({"flop_count_dp": 1}, device=f"{name} (0)"))).points
    assert (point.device, point.compute_capability) == (name, capability)


def test_what_is_left_out_is_named(tmp_path: Path, run: Command) -> None:
    values = {
        "flop_count_dp": "<OVERFLOW>",
        "flop_count_sp": "1.2e+08",
        "l2_tex_read_transactions": 3,
        "achieved_occupancy": 0.5,
        "dram_read_throughput": "123.45GB/s",
    }
    outcome = run("show", write(tmp_path / "m.csv", logs.metrics(values)), "--json")
    assert outcome.code == 0, outcome
    assert "metrics that are not used: l2_tex_read_transactions." in outcome.err
    assert "overflowed, say): flop_count_dp." in outcome.err
    (kernel,) = json.loads(outcome.out)["kernels"]
    assert kernel["work"] == pytest.approx(1.2e8)


def test_between_lines_of_the_application(tmp_path: Path) -> None:
    lines = logs.metrics({"flop_count_dp": 8, "flop_count_sp": 4}, "k").splitlines()
    lines.insert(-1, "Step 1: residual 0.1, done")
    (point,) = nvprof.read(write(tmp_path / "m.csv", "hello\n" + "\r\n".join(lines))).points
    assert point.work == {"fp64": 8, "fp32": 4}


GOOD = logs.metrics({"flop_count_dp": 8, "gld_transactions": 4}, "k(int, int)")
BAD = {
    "cut off in a row": GOOD[:-20],
    "no rows": GOOD[: GOOD.index('"Avg"') + 6],
    "only copies": logs.summary({}),
    "only API calls": '"Start","Duration","Name"\nus,us,\n1.0,2.0,"cudaMalloc"\n',
    "no number": GOOD.replace(",8,8,8", ",8,8,eight"),
    "negative": GOOD.replace(",8,8,8", ",8,8,-8"),
    "with a unit": GOOD.replace(",8,8,8", ",8,8,8GB/s"),
    "no invocations": GOOD.replace('",1,"', '",0,"'),
    "infinite": GOOD.replace(",8,8,8", ",8,8,1e999"),
    "no units": "\n".join(line for line in logs.summary({"k": (1.0, 1)}).splitlines() if not line.startswith(",%")),
    "no time": logs.summary({"k": (1.0, 1)}).replace("1000000.0,1,", "soon,1,"),
    "no calls": logs.summary({"k": (1.0, 1)}).replace("1000000.0,1,", "1000000.0,0,"),
    "level above ten": logs.metrics({"tensor_precision_fu_utilization": "Max (11)"}),
    "no level": logs.metrics({"tensor_precision_fu_utilization": "high"}),
}


@pytest.mark.parametrize("bad", BAD)
def test_bad_files_are_refused(tmp_path: Path, run: Command, bad: str) -> None:
    path = write(tmp_path / "bad.csv", BAD[bad])
    assert nvprof.recognises(BAD[bad])
    assert_refused(run("show", path), path)
    with pytest.raises(RooflineError):
        roofline(path)


@pytest.mark.parametrize(
    "text", ['"ID","Kernel Name","Metric Name","Metric Value"\n"0","k","m","1"\n', "Device,Name\n", "TABLE,Group 1\n"]
)
def test_other_files_are_not_taken(text: str) -> None:
    assert not nvprof.recognises(text)
