"""Counters of CUPTI's range profiler in traces of the PyTorch profiler: read like what ncu prints."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.formats.inputs import open_input
from ncu_roofline.formats.inputs.tables import MAJOR, MetricTable
from ncu_roofline.formats.traces import has_counters, read_trace
from ncu_roofline.model import roofline
from tests.analyses.test_run import H100, MM, TRACES, document, event
from tests.cli.command import Command

FFMA, HFMA = (f"smsp__sass_thread_inst_executed_op_{name}_pred_on.sum" for name in ("ffma", "hfma"))
NONE = {f"smsp__sass_thread_inst_executed_op_{a}{b}_pred_on.sum": 0 for a in "dfh" for b in ("add", "mul", "fma")}
GEMM = "void at::gemm<float, 4>(float const*, float*)"
TIMES = {"gpu__time_duration.sum": 2000, "dram__bytes.sum": 4e6}


def counted(*names: str, calls: tuple[str, ...] = ("cudaLaunchKernel",), gpus: int = 1, **more: float) -> dict[str, Any]:
    """A trace of kernels that did 1e6, 2e6, ... fused multiply-adds, with calls that launched them inside operators."""
    ranges, around = [], [event("user_annotation", "step", 0, 9000)]
    for number, name in enumerate(names):
        at = 1000 * number
        call = calls[number % len(calls)]
        around += [event("cpu_op", f"aten::op{number}", at + 10, 100), event("cpu_op", "aten::in", at + 20, 50)]
        around += [event("cuda_runtime", call, at + 30, 5, correlation=number)] if call else []
        one = event("cuda_profiler_range", name, at + 5e5, 1000, tid=0, **NONE | {FFMA: 1e6 * (number + 1)} | more)
        ranges.append(one | {"pid": number % gpus})
    return document(ranges, around, gpus=[H100 | {"id": gpu} for gpu in range(gpus)])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "counters.pt.trace.json.gz"


def read(path: Path, trace: dict[str, Any]) -> MetricTable:
    path.write_bytes(gzip.compress(json.dumps(trace).encode()))
    found = open_input(path)
    assert isinstance(found, MetricTable)
    return found


def test_kernels_have_counters_and_the_operators_around_their_calls(path: Path) -> None:
    table = read(path, counted(GEMM, "__missing__", "relu"))
    first, second, third = table.rows
    assert [first.name, first.function_name, third.name] == [GEMM, "gemm", "relu"]
    assert "unnamed" in second.name  # so that it is never taken for another of that name
    assert [one.nvtx for one in table.rows] == [("step", f"aten::op{number}", "aten::in") for number in range(3)]
    assert (table.values[FFMA], table.values[MAJOR]) == ([1e6, 2e6, 3e6], [9, 9, 9])
    assert first.grid is None
    assert "gpu__time_duration.sum" in table.lacks
    assert table.warnings == ()


@pytest.mark.parametrize(
    ("trace", "names", "told"),
    [
        (counted(GEMM, "relu", calls=("cudaLaunchKernel", "")), [GEMM, "relu"], "1 launches"),
        (counted(GEMM, "relu", calls=("cudaGraphLaunch",)), ["unnamed kernel 0", "unnamed kernel 1"], "CUDA graphs"),
        (counted(GEMM, "relu", gpus=2), [GEMM, "relu"], "several GPUs"),
        (counted(GEMM, "7"), ["unnamed kernel 0 of aten::in", "unnamed kernel 1 of aten::in"], "no name is sure"),
        # A kernel that the driver launched is counted, and its name is the next one's.
        (
            counted(GEMM, "relu", calls=("cuLaunchKernel", "cudaLaunchKernel")),
            ["unnamed kernel 0 of aten::in", "unnamed kernel 1 of aten::in"],
            "no name is sure",
        ),
        (counted("__profile__", calls=("",)), ["range"], "no times"),
    ],
)
def test_names_and_operators_are_never_guessed(path: Path, trace: dict[str, Any], names: list[str], told: str) -> None:
    table = read(path, trace)
    assert [one.name for one in table.rows] == names
    assert told in " ".join((*table.warnings, table.lacks))
    assert all(one.nvtx == () for one in table.rows) == ("of aten::in" not in names[0])


def test_show_tells_operations_per_kernel_and_what_is_missing(path: Path, run: Command) -> None:
    read(path, counted(GEMM, "relu", "relu", **{HFMA: 3}))
    out = run("show", str(path))
    assert "2 kernels, 3 launches: the run time is not known." in out.out
    assert "Counted were 12 MFLOP in FP32 and 36 FLOP in FP16." in out.out
    rows = [line.split() for line in out.out.splitlines() if "FLOP  " in line]
    amounts = [re.findall(r"[0-9.]+ M?FLOP", " ".join(row)) for row in rows]
    assert [row[0] for row in rows] == ["relu", "gemm"]
    assert amounts == [["10 MFLOP", "24 FLOP"], ["2 MFLOP", "12 FLOP"]]
    assert "profiler_metrics" in out.err
    assert "aten::in" in out.out


def test_with_times_and_bytes_they_are_dots(path: Path, run: Command) -> None:
    table = read(path, counted(GEMM, "relu", **TIMES))
    assert (table.warnings, table.lacks) == ((), "")
    (gemm, relu) = roofline(table).points.query("precision == 'fp32'").to_dict("records")
    assert (gemm["level"], gemm["intensity"]) == ("dram", 0.5)
    assert [gemm["performance"], relu["performance"]] == pytest.approx([1e12, 2e12])
    assert run("render", str(path), "-o", str(path.with_name("a.csv"))).code == 0


def test_only_counters_without_times_are_no_run(path: Path, run: Command) -> None:
    read(path, counted(GEMM))
    with pytest.raises(RooflineError, match="in the place of a report"):
        read_trace(path)
    times = path.with_name("times.json")
    times.write_text(json.dumps(document(MM)))
    assert [has_counters(path), has_counters(times)] == [True, False]
    assert "aten::mm" in run("show", str(times)).out
    assert run("show", str(path), str(times)).code == 2


def test_traces_with_other_counters_each_are_passes_of_a_run(path: Path, run: Command) -> None:
    read(path, counted(GEMM, "__missing__"))
    times = path.with_name("times.json.gz")
    trace = counted(GEMM, "__missing__")
    for one in trace["traceEvents"][:2]:
        one["args"] = dict(TIMES)
    read(times, trace)
    out = run("show", str(path), str(times))
    assert "are passes of one run: 2 launches" in out.err
    assert "without which there are no dots" not in out.err
    assert "1 TFLOP/s" in out.out


@pytest.mark.parametrize("damage", [[], "x", {FFMA: None}, {FFMA: "1e9", "weird name": 3}, {FFMA: True}])
def test_what_is_no_counter_is_missing_or_refused(path: Path, damage: Any) -> None:
    trace = counted(GEMM)
    trace["traceEvents"][0]["args"] = damage
    if isinstance(damage, dict):
        assert FFMA not in read(path, trace).values
    else:
        with pytest.raises(RooflineError, match="counters of kernel 0"):
            read(path, trace)


def test_a_real_trace(run: Command) -> None:
    path = TRACES / "alexnet-a100-counters.pt.trace.json.gz"
    if not path.exists():
        pytest.skip("real traces are not here")
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    mine = [one["args"] for one in events if one.get("cat") == "cuda_profiler_range"]
    name = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum"
    table = open_input(path)
    assert isinstance(table, MetricTable)
    assert len(table) == len(mine) == 77
    found = roofline(table)
    for kind, precision, lanes in (("f", "fp32", 1), ("h", "fp16", 2), ("d", "fp64", 1)):
        add, mul, fma = (sum(one[name.format(kind + of)] for one in mine) for of in ("add", "mul", "fma"))
        assert found.work[precision].sum() == pytest.approx(lanes * (add + mul + 2 * fma), rel=1e-12)
    linear = found.kernels.query("kernel.str.contains('sgemm_32x32') and nvtx.str.contains('aten::addmm')")
    assert len(linear) == 6
    assert table.rows[1].nvtx[-1] == "aten::cudnn_convolution"
    assert "16 kernels, 77 launches" in run("show", str(path)).out
