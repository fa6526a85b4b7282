"""Counters of CUPTI's range profiler in traces of the PyTorch profiler: read like what ncu prints."""

from __future__ import annotations

import gzip
import json
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
from tests.golden import assert_golden

COUNTER = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum"
FFMA, HFMA = map(COUNTER.format, ("ffma", "hfma"))
NONE = {COUNTER.format(f"{a}{b}"): 0 for a in "dfh" for b in ("add", "mul", "fma")}
GEMM = "void at::gemm<float, 4>(float const*, float*)"
TIMES = {"gpu__time_duration.sum": 2000, "dram__bytes.sum": 4e6}


def counted(*names: str, calls: tuple[str, ...] = ("cudaLaunchKernel",), gpus: int = 1, **more: float) -> dict[str, Any]:
    """A trace of kernels that did 1e6, 2e6, ... fused multiply-adds, with calls that launched them inside operators."""
    ranges, around = [], [event("user_annotation", "step", 0, 9000)]
    for number, name in enumerate(names):
        at, call = 1000 * number, calls[number % len(calls)]
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


def test_kernels_have_counters_and_the_operators_around_their_calls(path: Path, run: Command) -> None:
    table = read(path, counted(GEMM, "__missing__", "relu"))
    first, second, third = table.rows
    assert [first.name, first.function_name, third.name] == [GEMM, "gemm", "relu"]
    assert "unnamed" in second.name  # so that it is never taken for another of that name
    assert [one.nvtx for one in table.rows] == [("step", f"aten::op{number}", "aten::in") for number in range(3)]
    assert (table.values[FFMA], table.values[MAJOR]) == ([1e6, 2e6, 3e6], [9, 9, 9])
    assert (first.grid, "gpu__time_duration.sum" in table.lacks, table.warnings) == (None, True, ())
    with pytest.raises(RooflineError, match="in the place of a report"):
        read_trace(path)
    times = path.with_name("times.json")
    times.write_text(json.dumps(document(MM)))
    assert [has_counters(path), has_counters(times)] == [True, False]
    assert "aten::mm" in run("show", str(times)).out
    assert run("show", str(path), str(times)).code == 2  # only counters without times are no run


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


def test_what_show_says(path: Path, run: Command) -> None:
    """Operations per kernel and what is missing; with times and bytes, also from another pass of the run, they are dots."""
    read(path, counted(GEMM, "relu", "relu", **{HFMA: 3}))
    alone = run("show", str(path))
    times, trace = path.with_name("times.json.gz"), counted(GEMM, "relu", "relu")
    for one in trace["traceEvents"][:3]:
        one["args"] = dict(TIMES)
    read(times, trace)
    both = run("show", str(path), str(times))
    table = read(path, counted(GEMM, "relu", **TIMES))
    assert (table.warnings, table.lacks) == ((), "")
    (gemm, relu) = roofline(table).points.query("precision == 'fp32'").to_dict("records")
    assert (gemm["level"], gemm["intensity"]) == ("dram", 0.5)  # 2e6 FLOP in 2 us, of 4 MB
    assert [gemm["performance"], relu["performance"]] == pytest.approx([1e12, 2e12])
    text = "".join(f"{one.out}{one.err}\n" for one in (alone, both)).replace(f"{path.parent}/", "")
    assert_golden(Path(__file__).with_name("range-profiler.txt"), text)


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
    table = open_input(path)
    assert isinstance(table, MetricTable)
    assert len(table) == len(mine) == 77
    found = roofline(table)
    for kind, precision, lanes in (("f", "fp32", 1), ("h", "fp16", 2), ("d", "fp64", 1)):
        add, mul, fma = (sum(one[COUNTER.format(kind + of)] for one in mine) for of in ("add", "mul", "fma"))
        assert found.work[precision].sum() == pytest.approx(lanes * (add + mul + 2 * fma), rel=1e-12)
    linear = found.kernels.query("kernel.str.contains('sgemm_32x32') and nvtx.str.contains('aten::addmm')")
    assert len(linear) == 6
    assert table.rows[1].nvtx[-1] == "aten::cudnn_convolution"
    assert "16 kernels, 77 launches" in run("show", str(path)).out
