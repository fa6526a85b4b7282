"""A whole run from its trace: what is read, which operator asked for what, what it needs, what could go."""

from __future__ import annotations

import gzip
import json
import math
import os
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from ncu_roofline.analyses import render
from ncu_roofline.analyses.run.frames import Run, run_of
from ncu_roofline.analyses.run.need import NoFormulaError, load, need
from ncu_roofline.analyses.run.picture import chart
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.chips.spec import named
from ncu_roofline.formats.traces import is_trace, read_trace
from ncu_roofline.rendering.chart import Point
from tests.cli.command import Command

TRACES = Path(os.environ.get("NCU_ROOFLINE_TRACES", Path(__file__).parents[3] / "shared" / "data" / "traces"))
H100 = {"id": 0, "name": "NVIDIA H100 80GB HBM3", "computeMajor": 9, "computeMinor": 0, "numSms": 132}
TFLOPS, BANDWIDTH = 989.4e12, 3.352e12  # BF16 of its tensor cores and DRAM, by NVIDIA's data sheet
BF16 = "c10::BFloat16"


def event(cat: str, name: str, ts: float, dur: float, tid: int = 1, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "pid": 7, "tid": tid, "ts": ts, "dur": dur, "args": args}


def call(
    name: str, at: float, kernel: float, shapes: Any = None, types: Any = None, values: Any = None
) -> list[dict[str, Any]]:
    """An operator at a time (us) that launches a kernel of some us, which runs right after it."""
    asked = {"Input Dims": shapes, "Input type": types, "Concrete Inputs": values}
    args = {key: value for key, value in asked.items() if value is not None}
    number = int(at)
    return [
        event("cpu_op", name, at, 10, **args),
        event("cuda_runtime", "cudaLaunchKernel", at + 2, 3, correlation=number),
        event(
            "kernel",
            f"kernel_of_{name}",
            at + 20,
            kernel,
            tid=70,
            correlation=number,
            device=0,
            grid=[4, 1, 1],
            block=[64, 1, 1],
        ),
    ]


def document(*events: list[dict[str, Any]], gpus: Any = (H100,)) -> dict[str, Any]:
    return {"schemaVersion": 1, "deviceProperties": list(gpus), "traceEvents": [one for group in events for one in group]}


MM = call("aten::mm", 1000, 100, [[4096, 4096], [4096, 4096]], [BF16, BF16])
SOFTMAX = call("aten::_softmax", 2000, 400, [[64, 1024, 1024], [], []], [BF16, "Scalar", "Scalar"], ["", "-1", "False"])
LATE = [event("kernel", "graph_kernel", 3000, 50, tid=70, correlation=999, device=0)]


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """A trace in a file."""

    def written(content: Any, name: str = "a.pt.trace.json") -> Path:
        data = json.dumps(content).encode()
        path = tmp_path / name
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return written


def rows(run: Run) -> dict[str, dict[str, Any]]:
    return {row["operator"]: row for row in run.operators.to_dict("records")}


# Reading, attribution, needs


@pytest.mark.parametrize("name", ["a.json", "a.pt.trace.json.gz"])
def test_operators_under_the_roofs_of_the_gpu(write: Callable[..., Path], name: str) -> None:
    path = write(document(MM, SOFTMAX, LATE), name)
    assert is_trace(path)
    run = run_of([read_trace(path)])
    found = rows(run)
    mm, softmax, late = found["aten::mm"], found["aten::_softmax"], found[""]
    assert (mm["flops"], mm["bytes"]) == (2 * 4096**3, 3 * 2 * 4096**2)
    assert (mm["roof"], mm["calls"], mm["kernels"]) == ("tensor.bf16", 1, 1)
    assert mm["seconds"] == pytest.approx(100e-6)
    assert mm["least"] == pytest.approx(2 * 4096**3 / TFLOPS, rel=1e-3)
    assert mm["fraction"] == pytest.approx(2 * 4096**3 / TFLOPS / 100e-6, rel=1e-3)
    assert softmax["bytes"] == 2 * 2 * 64 * 1024**2
    assert (softmax["roof"], softmax["origin"]) == ("dram", "theory, H100 SXM5")
    assert softmax["recoverable"] == pytest.approx((400e-6 - softmax["bytes"] / BANDWIDTH) / 550e-6, rel=1e-3)
    assert (late["why"], math.isnan(late["recoverable"])) == ("launch not recorded", True)
    (whole,) = run.runs.to_dict("records")
    assert whole["kernel_seconds"] == pytest.approx(550e-6) == pytest.approx(sum(row["seconds"] for row in found.values()))
    assert whole["attributed"] == pytest.approx(500 / 550)
    assert whole["busy"] == pytest.approx(550e-6)
    assert whole["wall"] == pytest.approx(2048e-6)


def test_idle_time_by_who_was_late(write: Callable[..., Path]) -> None:
    """Launched at once, the second kernel follows in a queue; the third's launch comes when the GPU is idle for long."""
    queued = call("aten::mm", 1005, 100)
    queued[2]["ts"] = 1130  # 10 us after the first has ended
    run = run_of([read_trace(write(document(MM, queued, call("aten::relu", 2000, 2))))])
    (whole,) = run.runs.to_dict("records")
    assert whole["delay"] == pytest.approx(18e-6)
    assert (whole["gaps"], whole["after_gap"], whole["kernels"], whole["streams"]) == (3, "aten::relu", 3, 1)
    assert whole["longest_gap"] == pytest.approx(790e-6)
    assert whole["late"] == pytest.approx((18 + 790) * 1e-6)  # before the first, too
    assert whole["queued"] == pytest.approx(10e-6)
    assert whole["late"] + whole["queued"] + whole["busy"] == pytest.approx(whole["wall"])
    assert (whole["launch_call"], whole["short"]) == pytest.approx((3e-6, 1 / 3))


def test_kernels_of_cuda_graphs_are_no_operator_s(write: Callable[..., Path]) -> None:
    replay = call("vllm::forward", 2000, 60)
    replay[1]["name"] = "cudaGraphLaunch"
    node = call("aten::mm", 3000, 40)
    node[2]["args"] |= {"graph id": 3, "graph node id": 7}
    eager = [{**one, "args": {**one["args"], "graph id": 0, "graph node id": 0}} for one in MM]
    run = run_of([read_trace(write(document(eager, replay, node, LATE)))])
    assert {row["why"]: (row["operator"], round(row["seconds"] * 1e6)) for row in run.operators.to_dict("records")} == {
        "": ("aten::mm", 100),
        "in a CUDA graph": ("", 100),
        "launch not recorded": ("", 50),
    }
    assert run.runs[["graphs", "unrecorded", "attributed"]].to_numpy().tolist() == [pytest.approx([0.4, 0.2, 0.4])]


@pytest.mark.parametrize(
    "around", ["autograd::engine::evaluate_function: ReluBackward0", "ReluBackward1", "MyFunctionBackward"]
)
def test_forward_and_backward_are_apart(write: Callable[..., Path], around: str) -> None:
    events = [call("aten::mul", at, 10, [[64]], [BF16]) for at in (1000, 2000, 3000)]
    ranges = [
        event("cpu_op", around, 1990, 60),
        event("user_annotation", "Optimizer.step#Adam.step", 2990, 60),
    ]
    path = write(document(*events, ranges, LATE))
    found = run_of([read_trace(path)]).operators
    assert set(zip(found["operator"], found["direction"], strict=True)) == {
        *(("aten::mul", one) for one in ("forward", "backward", "optimizer")),
        ("", ""),
    }
    assert set(run_of([read_trace(write(document(*events)))]).operators["direction"]) == {""}


def test_modules_and_streams_tell_rows_apart(write: Callable[..., Path]) -> None:
    modules = [
        event("python_function", "nn.Module: Model_0", 900, 2000),
        event("python_function", "nn.Module: Linear_3", 990, 100),
        event("python_function", "linear.py(3): forward", 991, 90),
    ]
    other = [{**one, "args": {**one["args"], "stream": 9}} for one in SOFTMAX]
    path = write(document(modules, MM, other))
    groups = {by: set(run_of([read_trace(path)], by=by).operators["group"]) for by in ("module", "stream")}
    assert groups == {"module": {"Model_0", "Linear_3"}, "stream": {"stream 70", "stream 9"}}
    (note,) = run_of([read_trace(write(document(MM)))], by="module").notes
    assert "with_stack=True" in note


def test_ranks_of_one_run(write: Callable[..., Path], run: Command) -> None:
    for rank, kernel in enumerate((100, 300)):
        content = document(call("aten::mm", 1000, kernel)) | {"distributedInfo": {"rank": rank, "world_size": 2}}
        path = write(content, f"rank{rank}.json")
    outcome = run("show", path.with_name("rank0.json"), path, "--width", "150")
    assert outcome.out.startswith(
        "2 ranks: rank 1 takes longest, 318 µs, rank 0 least, 118 µs (62.9 % less); rank 1 computes longest, 300 µs"
    )
    assert "Rank 1, GPU 0" in outcome.out
    path.with_name("rank2.json").write_text(json.dumps(content | {"distributedInfo": {"rank": 2, "world_size": 2}}))
    alike = run("show", path, path.with_name("rank2.json"), "--width", "150")
    assert alike.out.startswith("2 ranks: all take 318 µs; all compute for 300 µs; their GPUs are busy for 94.3 % to 94.3 %.")


def test_the_innermost_operator_on_the_same_thread_asked_for_it(write: Callable[..., Path]) -> None:
    outer = [event("cpu_op", "aten::linear", 990, 60), event("cpu_op", "aten::relu", 1001, 2, tid=2)]
    beside = [event("cpu_op", "aten::view", 1000.5, 1)]  # it ends before the launch
    run = run_of([read_trace(write(document(outer, MM, beside)))])
    assert list(rows(run)) == ["aten::mm"]


def test_annotations_and_kernels_tell_rows_apart(write: Callable[..., Path]) -> None:
    note = [event("user_annotation", "forward", 900, 300), event("user_annotation", "backward", 1900, 300)]
    path = write(document(note, MM, SOFTMAX))
    groups = {
        by: {row["group"] for row in run_of([read_trace(path)], by=by).operators.to_dict("records")}
        for by in ("annotation", "kernel")
    }
    assert groups == {"annotation": {"forward", "backward"}, "kernel": {"kernel_of_aten::mm", "kernel_of_aten::_softmax"}}


def test_operators_on_each_others_results_are_a_chain_whose_middle_stays_on_the_chip(write: Callable[..., Path]) -> None:
    shape, half = [16, 512, 512], [16, 512, 64]
    events = [
        call("aten::bmm", 1000, 50, [half, [16, 64, 512]], [BF16, BF16]),
        call("aten::_softmax", 1100, 80, [shape], [BF16]),
        call("aten::bmm", 1300, 50, [shape, half], [BF16, BF16]),
        call("aten::bmm", 1500, 50, [half, [16, 64, 512]], [BF16, BF16]),
    ]
    (chain,) = run_of([read_trace(write(document(*events)))]).chains.to_dict("records")
    assert (chain["chain"], chain["calls"]) == ("bmm + _softmax + bmm", 1)
    assert chain["seconds"] == pytest.approx(180e-6)
    assert chain["bytes"] == 2 * 4 * math.prod(half)  # queries, keys, values and the result
    assert chain["flops"] == 4 * 16 * 512 * 512 * 64 + 5 * math.prod(shape)


def test_only_the_chain_itself_is_told_of_it(write: Callable[..., Path], run: Command) -> None:
    """Another product of the chain's name and number of calls is none of it."""
    shape, half = [16, 512, 512], [16, 512, 64]
    events = [
        call("aten::bmm", 1000, 500, [[16, 4096, 64], [16, 64, 4096]], [BF16, BF16]),
        call("aten::bmm", 2000, 50, [half, [16, 64, 512]], [BF16, BF16]),
        call("aten::_softmax", 2100, 880, [shape], [BF16]),
        call("aten::bmm", 3100, 50, [shape, half], [BF16, BF16]),
    ]
    text = run("show", write(document(*events)), "--width", "200").out
    (told,) = (line for line in text.splitlines() if "as one kernel" in line and "%" in line)
    assert told == "  bmm + _softmax + bmm, 1 time: 66.2 % of the kernels' time; as one kernel 66.1 % could go."
    assert "At the roofs 88.1 % of the kernels' time could go (1.3 ms):\n  aten::_softmax [16,512,512]: 59.5 %" in text
    assert "Roofs: DRAM 3.35 TB/s (theory, H100 SXM5)." in text


def test_sums_by_name_and_how_to_get_shapes(write: Callable[..., Path], run: Command) -> None:
    bare = [call("aten::mm", at, 100, None, None, None) for at in (3000, 4000)]
    told = run("show", write(document(MM, call("aten::mm", 1500, 50, [[64, 64], [64, 64]], [BF16, BF16]), SOFTMAX, *bare))).out
    assert "  By operator, whatever its shapes: _softmax 53.3 %, mm 46.7 %.\n" in told  # 400 and 350 us of 750
    assert "  Shapes are recorded with torch.profiler.profile(record_shapes=True).\n" in told
    assert "By operator" not in run("show", write(document(MM, SOFTMAX))).out


def test_copies_come_first_where_they_take_most(write: Callable[..., Path], run: Command) -> None:
    copy = event("gpu_memcpy", "Memcpy HtoD", 1130, 900, tid=70, device=0, bytes=1 << 20)
    assert "with 2 kernels, copies and fills: mostly with copies" in run("show", write(document(MM, [copy]))).out


def test_the_dialect_of_2021(write: Callable[..., Path]) -> None:
    renamed = {"cpu_op": "Operator", "kernel": "Kernel", "cuda_runtime": "Runtime"}
    events = [{**one, "cat": renamed[one["cat"]]} for one in MM]
    events[0]["args"] = {"Input dims": [[64, 64], [64, 64]], "Input type": []}
    events[2]["name"] = "volta_sgemm_64x64_nn"
    run = run_of([read_trace(write(document(events, gpus=())))], board=named("V100 SXM2")[0])
    mm = rows(run)["aten::mm"]
    assert (mm["flops"], mm["bytes"], mm["roof"]) == (2 * 64**3, 3 * 4 * 64**2, "dram")
    assert mm["device"] == "V100-SXM2"


def test_gpus_are_apart(write: Callable[..., Path]) -> None:
    other = [{**one, "args": {**one["args"], "device": 1, "correlation": 5}} for one in SOFTMAX]
    gpus = (H100, {**H100, "id": 1})
    run = run_of([read_trace(write(document(MM, other, gpus=gpus)))])
    assert [(row["gpu"], row["operator"], row["share"]) for row in run.operators.to_dict("records")] == [
        (1, "aten::_softmax", 1.0),
        (0, "aten::mm", 1.0),
    ]


def test_exports_of_nsight_systems(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    with sqlite3.connect(path) as database:
        database.executescript(
            """CREATE TABLE StringIds (id INTEGER, value TEXT);
            INSERT INTO StringIds VALUES (1, 'ampere_bf16_s16816gemm'),
              (2, 'aten::mm, op_id = 3, sizes = [[64, 64], [64, 64]]');
            CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER,
              correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, gridX INTEGER, gridY INTEGER, gridZ INTEGER,
              blockX INTEGER, blockY INTEGER, blockZ INTEGER);
            INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (5000, 9000, 0, 7, 11, 16777216, 1, 4, 1, 1, 128, 1, 1);
            CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER);
            INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1500, 1700, 16777217, 11);
            CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, textId INTEGER, globalTid INTEGER);
            INSERT INTO NVTX_EVENTS VALUES (1000, 2000, 59, 2, 16777217);
            CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT, smMajor INTEGER, smMinor INTEGER, smCount INTEGER);
            INSERT INTO TARGET_INFO_GPU VALUES (0, 'NVIDIA H100 80GB HBM3', 9, 0, 132);"""
        )
    trace = read_trace(path)
    (mm,) = run_of([trace]).operators.to_dict("records")
    assert (mm["operator"], mm["flops"], mm["bytes"], mm["seconds"]) == (
        "aten::mm",
        2 * 64**3,
        3 * 2 * 64**2,
        pytest.approx(4e-6),
    )
    assert (trace.work.grid, trace.work.block) == (["(4, 1, 1)"], ["(128, 1, 1)"])


def test_sums_of_nsight_systems(tmp_path: Path) -> None:
    path = tmp_path / "sums.csv"
    head = "Time (%),Total Time (ns),Instances,Avg (ns),GridXYZ,BlockXYZ,Name\n"
    path.write_text(
        f"{head}60.0,6000,3,2000, 128    1    1,  64    1    1,forward:1:at::gemm<a::b>\n40.0,4000,1,4000,1 1 1,32 1 1,copy\n"
    )
    run = run_of([read_trace(path)], by="kernel")
    assert {row["group"]: (row["calls"], row["why"]) for row in run.operators.to_dict("records")} == {
        "at::gemm<a::b>": (3, "no timeline"),
        "copy": (1, "no timeline"),
    }
    within = run_of([read_trace(path)], by="annotation").operators
    assert dict(zip(within["group"], within["seconds"], strict=True)) == pytest.approx({"forward:1": 6e-6, "copy": 4e-6})
    (whole,) = run.runs.to_dict("records")
    assert all(math.isnan(whole[name]) for name in ("wall", "gaps", "late", "delay", "launch_call", "short"))


NSYS = """CREATE TABLE StringIds (id INTEGER, value TEXT);
INSERT INTO StringIds VALUES (1, 'gemm'), (2, 'nn.Module: Linear_1'), (3, 'cudaGraphLaunch_v10000');
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, correlationId INTEGER,
  globalPid INTEGER, demangledName INTEGER{more});
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (5000, 9000, 0, 7, 11, 16777216, 1{values});
"""
LAUNCHED = """CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER,
  nameId INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1500, 1700, 16777217, 11, {name});
"""


@pytest.mark.parametrize(
    ("tables", "module", "why", "device"),
    [
        (NSYS.format(more="", values=""), "", "launch not recorded", ""),  # kernels alone
        (
            NSYS.format(more="", values="")
            + LAUNCHED.format(name=1)
            + "CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, textId INTEGER, "
            + "globalTid INTEGER);"
            + "INSERT INTO NVTX_EVENTS VALUES (1000, 2000, 59, NULL, 2, 16777217), (1, NULL, 59, 'open', NULL, 16777217);"
            + "CREATE TABLE EXPORT_META_DATA (name TEXT, value TEXT);",
            "Linear_1",
            "launched by no operator",
            "",
        ),
        (
            NSYS.format(more=", graphId INTEGER, graphNodeId INTEGER", values=", 0, NULL")
            + LAUNCHED.format(name=3)
            + "CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);"
            + "CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT); INSERT INTO TARGET_INFO_GPU VALUES (4, 'NVIDIA A100');"
            + "CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId INTEGER, cudaId INTEGER);"
            + "INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (4, 0);",
            "",
            "in a CUDA graph",
            "NVIDIA A100",
        ),
        (
            "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER,"
            "correlationId INTEGER, globalPid INTEGER, graphId INTEGER);"
            "INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (5000, 9000, 0, 7, 11, 16777216, 3);",
            "",
            "in a CUDA graph",
            "",
        ),
    ],
)
def test_schemas_of_nsight_systems(tmp_path: Path, tables: str, module: str, why: str, device: str) -> None:
    with sqlite3.connect(tmp_path / "a.sqlite") as database:
        database.executescript(tables)
    (row,) = run_of([read_trace(tmp_path / "a.sqlite")], by="module").operators.to_dict("records")
    assert (row["group"], row["why"], row["device"], row["seconds"]) == (module, why, device, pytest.approx(4e-6))


def test_what_two_processes_launched_under_one_number_is_nobody_s(write: Callable[..., Path]) -> None:
    other = [{**one, "pid": 8} for one in call("aten::relu", 1500, 10, [[64]], [BF16])[:2]]
    other[1]["args"] = {"correlation": 1000}
    found = rows(run_of([read_trace(write(document(MM, other)))]))
    assert list(found) == [""]
    again = [{**one, "ts": one["ts"] + 1} for one in other]
    assert list(rows(run_of([read_trace(write(document(MM, other, again)))]))) == [""]
    nobody = [{**one, "args": {k: v for k, v in one["args"].items() if k != "correlation"}} for one in MM]
    assert list(rows(run_of([read_trace(write(document(nobody)))]))) == [""]


def test_fills_copies_and_reductions_hold_no_chain_together(write: Callable[..., Path]) -> None:
    shape = [[1024, 1024]]
    events = [
        call(name, at, 9, shape, [BF16]) for at, name in ((1000, "aten::zero_"), (1100, "aten::zero_"), (1200, "aten::sum"))
    ]
    events += [call("aten::copy_", at, 9, shape * 2, [BF16] * 2) for at in (1300, 1400)]
    events += [call("aten::cumsum", 1500, 9, shape, [BF16]), call("aten::sum", 1600, 9, shape, [BF16])]
    assert run_of([read_trace(write(document(*events)))]).chains.empty


def test_a_board_is_for_traces_that_name_no_gpu(write: Callable[..., Path]) -> None:
    found = rows(run_of([read_trace(write(document(SOFTMAX)))], board=named("A40")[0]))["aten::_softmax"]
    assert (found["device"], found["origin"]) == ("NVIDIA H100 80GB HBM3", "theory, H100 SXM5")


# Formulas


@pytest.mark.parametrize(
    ("name", "shapes", "values", "flops", "elements"),
    [
        ("aten::addmm", [[8], [4, 6], [6, 8]], None, 2 * 4 * 6 * 8, 8 + 24 + 48 + 32),
        ("aten::addmv_", [[4], [4, 6], [6]], None, 2 * 4 * 6, 4 + 24 + 6 + 4),
        ("aten::linear", [[2, 3, 6], [8, 6], [8]], None, 2 * 6 * 6 * 8, 36 + 48 + 8 + 48),
        (
            "aten::convolution",
            [[2, 4, 9, 9], [6, 4, 3, 3], [6], [], [], [], [], [], []],
            ["", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1"],
            2 * (2 * 6 * 5 * 5) * 4 * 9,
            2 * 4 * 81 + 6 * 4 * 9 + 6 + 2 * 6 * 25,
        ),
        (
            "aten::convolution",  # depthwise
            [[1, 8, 10], [8, 1, 3], [], [], [], [], [], [], []],
            ["", "", "", "[1]", "[0]", "[1]", "False", "[0]", "8"],
            2 * 8 * 8 * 3,
            80 + 24 + 64,
        ),
        (
            "aten::convolution",  # transposed: each input meets each tap
            [[1, 4, 5, 5], [4, 6, 2, 2], [], [], [], [], [], [], []],
            ["", "", "", "[2, 2]", "[0, 0]", "[1, 1]", "True", "[0, 0]", "1"],
            2 * 100 * 6 * 4,
            100 + 96 + 6 * 100,
        ),
        ("aten::_flash_attention_forward", [[2, 128, 4, 64]] * 3, None, 4 * 2 * 4 * 128 * 128 * 64, 4 * 2 * 128 * 4 * 64),
        (
            "aten::_scaled_dot_product_flash_attention",
            [[2, 4, 128, 64]] * 3,
            None,
            4 * 2 * 4 * 128 * 128 * 64,
            4 * 2 * 128 * 4 * 64,
        ),
        ("aten::add_", [[4, 1, 8], [5, 1]], None, 4 * 5 * 8, 32 + 5 + 160),
        ("aten::copy_", [[4, 8], [8]], None, 0, 32 + 8),
        ("aten::native_layer_norm", [[4, 8], [], [8], [8]], None, 8 * 32, 32 + 8 + 8 + 32),
        ("aten::sum", [[4, 8]], None, 32, 32 + 1),
        ("aten::mean", [[4, 8], [], [], []], ["", "[-1]", "True", ""], 32, 32 + 4),
        ("aten::sum", [[4, 8], []], ["", "6"], 32, 32 + 1),  # a type, no dimension
        ("aten::logsumexp", [[2, 4, 8], [], []], ["", "[0, 2]", "False"], 64, 64 + 4),
        ("aten::amax", [[2, 4, 8], [], []], ["", "[0, 2]", "False"], 64, 64 + 4),
        ("aten::addmv", [[4], [4, 8], [8]], None, 64, 4 + 32 + 8 + 4),
        (
            "aten::_conv_depthwise2d",
            [[1, 8, 5, 5], [8, 1, 3, 3], [], [], [], [], []],
            ["", "", "[3, 3]", "", "[1, 1]", "[1, 1]", "[1, 1]"],
            2 * 200 * 9,
            200 + 72 + 200,
        ),
        (
            "aten::max_pool2d_with_indices",
            [[1, 2, 8, 8], *[[]] * 5],
            ["", "[2, 2]", "[]", "[0]", "[1]", "False"],
            128,
            128 + 32 + 64,
        ),
        ("aten::avg_pool2d", [[1, 2, 7, 7], *[[]] * 4], ["", "[2]", "[2]", "[0]", "True"], 98, 98 + 32),
        ("aten::upsample_nearest2d", [[1, 2, 4, 4], [], [], []], ["", "[8, 8]", "", ""], 0, 32 + 128),
        (
            "aten::_cudnn_rnn",
            [[5, 3, 8], [[64, 8], [64, 16], [64], [64]], [], [], [1, 3, 16], [1, 3, 16], *[[]] * 8],
            [*[""] * 6, "2", "16", "0", "1", "False", "0.", "True", "False"],
            2 * 15 * 4 * 16 * 24,
            120 + 64 * 26 + 5 * 3 * 16,
        ),
        ("aten::embedding_dense_backward", [[6, 4], [6], [], [], []], ["", "", "10", "-1", "False"], 24, 24 + 6 + 40),
        ("aten::nll_loss_forward", [[4, 10], [4]], None, 4, 8),
        ("aten::_foreach_add_", [[[4, 8], [8]], [[4, 8], [8]], []], None, 40, 3 * 40),
        ("aten::_fused_adamw_", [[[4, 8], [8]]] * 4, None, 14 * 40, 7 * 40),
    ],
)
def test_needs_by_hand(name: str, shapes: Any, values: Any, flops: float, elements: int) -> None:
    types = ["float" if shape else "Scalar" for shape in shapes]
    found = need(load(), name, shapes, types, values, ["kernel"])
    assert (found.flops, found.bytes) == (flops, 4 * elements)


def test_needs_that_arguments_change() -> None:
    half = [BF16] * 3
    flash = [[2, 128, 4, 64]] * 3 + [[]] * 6
    causal = need(load(), "aten::_flash_attention_forward", flash, half, [*[""] * 8, "True"], [])
    assert causal.flops == 2 * 2 * 4 * 128 * 128 * 64
    several = [[256, 4, 64]] * 3 + [[3]] * 2  # sequences of several lengths
    with pytest.raises(NoFormulaError, match="does not fit"):
        need(load(), "aten::_flash_attention_forward", several, [*half, "int", "int"], [""] * 9, [])
    backward = [[2, 6, 5, 5], [2, 4, 9, 9], [6, 4, 3, 3], *[[]] * 8]
    told = ["", "", "", "[0]", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1", "[False, True, False]"]
    weights_only = need(load(), "aten::convolution_backward", backward, ["float"] * 3, told, [])
    assert weights_only.flops == 2 * (2 * 6 * 25) * 4 * 9
    assert weights_only.bytes == 4 * (300 + 648 + 216)
    assert need(load(), "aten::eq", [[64]], ["float"], None, []).bytes == 64 * 5


@pytest.mark.parametrize(
    ("name", "shapes", "types", "values", "moved"),
    [
        ("aten::_softmax", [[8, 8], [], []], [BF16, "Scalar", "Scalar"], ["", "-1", "True"], 64 * (2 + 4)),
        ("aten::sum", [[8, 8], [], [], []], [BF16, "ScalarList", "Scalar", "Scalar"], ["", "[0]", "False", "6"], 128 + 8 * 4),
        ("aten::_to_copy", [[8, 8], []], ["long int", "Scalar"], ["", "15"], 64 * (8 + 2)),
        ("aten::copy_", [[8, 8], [8, 8]], [BF16, "float"], None, 64 * (2 + 4)),
        ("aten::mul", [[8, 8], [8, 1]], [BF16, "float"], None, 128 + 32 + 256),
        ("aten::mul", [[8, 8], []], [BF16, "double"], None, 128 + 8 + 128),  # one number changes no type
        ("aten::add_", [[8, 8], [8, 8]], [BF16, "float"], None, 128 + 256 + 128),
        ("aten::argmax", [[8, 8], [], []], [BF16, "Scalar", "Scalar"], ["", "1", "False"], 128 + 8 * 8),
        ("aten::argmax", [[8, 8], [], []], [BF16, "", "Scalar"], ["", "", "False"], 128 + 8),
        ("aten::any", [[8, 4], [], []], ["bool", "Scalar", "Scalar"], ["", "0", "False"], 32 + 4),
    ],
)
def test_types_of_results(name: str, shapes: Any, types: Any, values: Any, moved: float) -> None:
    assert need(load(), name, shapes, types, values, []).bytes == moved


def test_what_is_expanded_counts_once(write: Callable[..., Path]) -> None:
    events = call("aten::mul", 1000, 9, [[64, 32], [64, 32]], ["float", "float"])
    events[0]["args"]["Input Strides"] = [[32, 1], [0, 1]]
    found = rows(run_of([read_trace(write(document(events)))]))["aten::mul"]
    assert found["bytes"] == 4 * (2 * 64 * 32 + 32)


def test_sizes_of_convolutions_from_the_way_back(write: Callable[..., Path]) -> None:
    """Without strides (2021): what the gradient looks like tells, unless two convolutions differ there alone."""
    x, weight, out = [2, 4, 9, 9], [6, 4, 3, 3], [2, 6, 5, 5]

    def modelled(*grads: list[int]) -> list[float]:
        back = [
            event("cpu_op", "aten::cudnn_convolution_backward", 5000, 99, **{"Input Dims": [x, grad, weight]}) for grad in grads
        ]
        events = [
            call("aten::cudnn_convolution", 1000, 9, [x, weight], ["float"] * 2),
            call("aten::cudnn_convolution_backward_weight", 2000, 9, [[], out, x], ["", "float", "float"]),
        ]
        return list(run_of([read_trace(write(document(*events, back)))]).operators["flops"].dropna())

    assert modelled(out) == [2 * math.prod(out) * 36] * 2
    assert modelled(out, [2, 6, 9, 9]) == [2 * math.prod(out) * 36]
    assert modelled() == []


def test_sequences_of_several_lengths_are_known_where_all_are_the_longest() -> None:
    def flops(tokens: int, causal: str = "False") -> float:
        shapes = [*[[tokens, 4, 64]] * 3, [4], [4], [], [], [], []]
        types, values = [*[BF16] * 3, "int", "int", *["Scalar"] * 4], [*[""] * 5, "100", "100", "0.", causal]
        return need(load(), "aten::_flash_attention_forward", shapes, types, values, []).flops

    assert flops(300) == 3 * 4 * 4 * 100 * 100 * 64 == 2 * flops(300, "True")
    with pytest.raises(NoFormulaError):
        flops(299)


def test_types_choose_the_roof() -> None:
    def roof(kind: str, kernel: str = "gemm") -> str:
        return need(load(), "aten::mm", [[8, 8], [8, 8]], [kind, kind], None, [kernel]).precision

    assert [roof(one) for one in ("c10::Half", BF16, "c10::Float8_e4m3fn", "signed char", "double")] == [
        *("tensor.fp16", "tensor.bf16", "tensor.fp8", "tensor.int8", "tensor.fp64")
    ]
    assert (roof("float"), roof("float", "cutlass_tf32_gemm")) == ("fp32", "tensor.tf32")
    assert need(load(), "aten::mul", [[8]], [BF16], None, []).precision == "fp32"


def test_grouped_convolutions_need_what_each_group_does() -> None:
    """PyTorch's counter counts the gradient of a grouped convolution's weights as if it were not grouped."""
    given = [[2, 8, 20, 21], [2, 4, 20, 21], [8, 2, 3, 3], [], [], [], [], [], [], [], []]
    types = ["float"] * 3 + [""] * 8
    values = ["", "", "", "[8]", "[1, 1]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "2", "[True, True, True]"]
    found = need(load(), "aten::convolution_backward", given, types, values, ())
    outputs, per_output = 2 * 8 * 20 * 21, 2 * 3 * 3  # of 4 channels in 2 groups each result sees 2
    assert found.flops == 2 * (2 * outputs * per_output)


MINE = """[[operator]]
names = ["vllm::moe"]
arguments = ["x", "w"]
kind = "matrix"
flops = "2 * numel(x) * w[1]"
bytes = "size(x)"
"""


def test_formulas_of_the_user(tmp_path: Path, write: Callable[..., Path]) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(MINE)
    trace = read_trace(write(document(call("vllm::moe", 1000, 9, [[8, 16], [4, 32]], [BF16, BF16]))))
    assert rows(run_of([trace]))["vllm::moe"]["why"] == "no formula"
    found = rows(run_of([trace], operators=[str(path)]))["vllm::moe"]
    assert (found["flops"], found["bytes"]) == (2 * 128 * 32, 256)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('[[operator]]\nnames = ["x"]\narguments = ["a"]\nflops = "__import__(1)"', "may hold numbers"),
        ('[[operator]]\nnames = ["x"]\narguments = ["a"]\nflops = "a.b"', "may hold numbers"),
        ('[[operator]]\nnames = ["x"]\narguments = ["a"]\nflops = "2 *"', "is no expression"),
        ('[[operator]]\nnames = ["x"]\narguments = ["a"]\nwork = "2"', "work"),
        ('[[operator]]\narguments = ["a"]', "names"),
        ("operator = 3", "operator"),
        ("[[", "whole file"),
    ],
)
def test_formulas_that_are_none_are_told(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(RooflineError, match=reason):
        load([str(path)])


def test_what_a_formula_does_not_fit_is_unknown() -> None:
    with pytest.raises(NoFormulaError, match="stride and padding"):
        need(load(), "aten::cudnn_convolution", [[1, 2, 3, 3], [2, 2, 3, 3], [], [], [], []], ["float"] * 2, None, [])
    with pytest.raises(NoFormulaError, match="does not fit"):
        need(load(), "aten::mm", [[1], [2]], ["float"] * 2, [], [])
    with pytest.raises(NoFormulaError, match="no shapes"):
        need(load(), "aten::mm", None, None, None, [])


# Commands


def test_show_begins_with_how_busy_the_gpu_was(write: Callable[..., Path], run: Command) -> None:
    outcome = run("show", write(document(MM, SOFTMAX, LATE)), "--width", "150")
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    assert lines[0].startswith("The GPU is busy for 26.9 % of 2.05 ms, with 3 kernels: most of the time it waits")
    assert (
        "Of the kernels' time 90.9 % was asked for by operators, and for 90.9 % their shapes tell what they need."
        in outcome.out
    )
    assert "aten::_softmax [64,1024,1024]: 72.7 % of the kernels' time, at 20.0 % of the DRAM roof" in " ".join(
        outcome.out.split()
    )


def test_json_markdown_and_csv(write: Callable[..., Path], run: Command, tmp_path: Path) -> None:
    path = write(document(MM, SOFTMAX))
    told = json.loads(run("show", path, "--json").out)
    assert (told["view"], [row["operator"] for row in told["operators"]]) == ("run", ["aten::_softmax", "aten::mm"])
    assert run("render", path, "-o", tmp_path / "a.md").code == 0
    assert "| aten" in (tmp_path / "a.md").read_text()
    assert run("render", path, "-o", tmp_path / "a.csv").code == 0
    assert len((tmp_path / "a.csv").read_text().splitlines()) == 3


COPY = call("aten::copy_", 4000, 20, [[4096], [4096], []], [BF16, BF16, "Scalar"])  # bytes, and no operations
HOSTILE = call("<script>alert(1)</script> $x^$ {unit}", 5000, 30)


def texts(svg: bytes) -> str:
    return "\n".join(ElementTree.fromstring(svg).itertext())


def test_a_picture_has_the_roofline_beside_where_the_time_goes(write: Callable[..., Path]) -> None:
    run = run_of([read_trace(write(document(MM, SOFTMAX, COPY, LATE, HOSTILE)))])
    said = texts(render(run, "svg"))
    for text in (
        "GPU 14.8 % busy, 56.7 % of kernels' time could go",
        "mm",
        "[64,1024,1024]",
        "DRAM",
        "Tensor BF16 989 TFLOP/s",
    ):
        assert text in said
    # What needs no operations or has no formula stands in the list all the same.
    assert "copy_" in said
    assert "no formula" in said
    assert "launch not recorded" in said
    assert "53.3 % could go" in said
    assert "<script>" in said
    drawn = chart(run)
    panel, times = drawn.rows[1] if drawn else ((), ())
    dots = {(mark.x, mark.y): mark for mark in panel.marks if isinstance(mark, Point)}
    rows = [row for row in run.operators.to_dict("records") if row["flops"] > 0]
    assert sorted(dots) == sorted((row["intensity"], row["performance"]) for row in rows)
    assert len(rows) == 2
    assert sum(part for row in times.rows for part, _ in row.scales[0].bars) == pytest.approx(600 / 400)  # of the longest
    assert [row.name for row in times.rows[:2]] == ["_softmax", "mm"]


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize("options", [{"preset": "column"}, {"preset": "slide", "theme": "dark"}, {"top": 1}, {"height": "3in"}])
def test_a_picture_fits_its_paper(write: Callable[..., Path], options: dict[str, Any]) -> None:
    others = [{"id": 1, **{key: value for key, value in H100.items() if key != "id"}}]
    second = [{**one, "args": {**one["args"], "device": 1}} if one["cat"] == "kernel" else one for one in COPY]
    run = run_of([read_trace(write(document(MM, SOFTMAX, LATE, second, gpus=(H100, *others))))])
    said = texts(render(run, "svg", **options))
    assert "Operators of a run" in said
    assert "GPU 0" in said or "1 further GPU left out" in said
    assert render(run, "png", **options)[:4] == b"\x89PNG"
    with pytest.raises(ValueError, match="no room"):
        render(run, "png", height="1.5in", font=20.0)


def test_rows_that_have_no_roof_or_no_timeline_are_drawn(write: Callable[..., Path], tmp_path: Path) -> None:
    bare = texts(render(run_of([read_trace(write(document(MM, SOFTMAX, gpus=())))]), "svg"))
    assert "roof unknown" in bare
    assert "could go" not in bare
    path = tmp_path / "sums.csv"
    path.write_text("Time (%),Total Time (ns),Instances,Avg (ns),GridXYZ,BlockXYZ,Name\n60.0,6000,3,2000,1 1 1,64 1 1,gemm\n")
    told = texts(render(run_of([read_trace(path)]), "svg"))
    assert "gemm" in told
    assert "busy" not in told


def test_pages_and_pictures_from_the_command_line(write: Callable[..., Path], run: Command, tmp_path: Path) -> None:
    path = write(document(MM, SOFTMAX, LATE, HOSTILE))
    for name in ("a.html", "a.png", "a.pdf"):
        assert run("render", path, "-o", tmp_path / name, "--title", "Mine", "--theme", "dark").code == 0
    page = (tmp_path / "a.html").read_text()
    assert "<title>Mine</title>" in page
    assert "The GPU is busy for 14.3 %" in page
    assert "<script>alert" not in page
    assert len(page) < 1.5e6
    for words, reason in (
        (("-o", "b.md", "--preset", "column"), "a run as md has no use for it"),
        (("-o", "b.csv", "--top", "3"), "a run as csv has all operators"),
        (("-o", "b.png", "--height", "900in"), "--height"),
        (("-o", "b.png", "--size", "time"), "a run as png has no use for it"),
    ):
        outcome = run("render", path, *words)
        assert (outcome.code, outcome.out) == (2, "")
        assert reason in outcome.err
    assert "... and 3 more, 31.0 % of the kernels' time" in run("show", path, "--top", "1").out


def damaged(tmp_path: Path) -> dict[str, tuple[bytes, str]]:
    whole = gzip.compress(json.dumps(document(MM)).encode())
    with sqlite3.connect(tmp_path / "empty.sqlite") as database:
        database.execute("CREATE TABLE other (a INTEGER)")
    with sqlite3.connect(tmp_path / "viewed.sqlite") as database:
        database.execute("CREATE TABLE kept (start INTEGER, end INTEGER)")
        database.execute("CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS SELECT * FROM kept")
    sums = b"Total Time (ns),Instances,Name\n"
    return {
        "cut.json.gz": (whole[:-20], "cut or damaged"),
        "cut.json": (json.dumps(document(MM)).encode()[:-9], "no JSON of a trace"),
        "cpu.json": (json.dumps(document(MM[:1])).encode(), "no kernel, copy or fill"),
        "none.sqlite": ((tmp_path / "empty.sqlite").read_bytes(), "no table of what GPUs did"),
        "bad.sqlite": (b"SQLite format 3\x00" + bytes(200), "damaged or of another program"),
        "a.nsys-rep": (b"something", "nsys export --type sqlite"),
        "view.sqlite": ((tmp_path / "viewed.sqlite").read_bytes(), "CUPTI_ACTIVITY_KIND_KERNEL is a view"),
        "sums.csv": (sums + b"x,1,k\n", "line 2 has no count"),
        "open.csv": (sums + b'1000,10,"k1\n1000,10,k2\n', "its table is cut or damaged"),
        "long.csv": (sums + b"1000,10," + b"k" * 200_000 + b"\n", "its table is cut or damaged"),
        "short.csv": (sums + b"1000,10\n", "more or fewer cells"),
        "bare.csv": (sums + b"1000,10,k<a,b>(int)\n", "more or fewer cells"),
    }


_DAMAGED = ["cut.json.gz", "cut.json", "cpu.json", "none.sqlite", "bad.sqlite", "view.sqlite", "a.nsys-rep"]


@pytest.mark.parametrize("name", [*_DAMAGED, "sums.csv", "open.csv", "long.csv", "short.csv", "bare.csv"])
def test_what_is_no_run_gets_one_sentence(run: Command, tmp_path: Path, name: str) -> None:
    data, reason = damaged(tmp_path)[name]
    (tmp_path / name).write_bytes(data)
    outcome = run("show", tmp_path / name)
    assert (outcome.code, outcome.out) == (1, "")
    assert reason in outcome.err
    assert len(outcome.err.splitlines()) == 1


def test_a_database_that_is_still_written(run: Command, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "a.sqlite") as database:
        database.execute("PRAGMA journal_mode = wal")
        database.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER)")
        database.commit()
        outcome = run("show", tmp_path / "a.sqlite")
    assert (outcome.code, outcome.out) == (1, "")
    assert "-wal" in outcome.err


@pytest.mark.parametrize("seed", range(12))
def test_odd_values_give_an_answer_or_one_sentence(run: Command, write: Callable[..., Path], seed: int) -> None:
    dice, odd = random.Random(seed), [None, -1, 1e308, "x", [], {}, [[1, 2]], True, 2**70, "\x1b[31m"]
    content = json.loads(json.dumps(document(MM, SOFTMAX, LATE)))
    for _ in range(dice.choice([1, 3, 9])):
        one = dice.choice(content["traceEvents"])
        target = one if dice.random() < 0.4 else one["args"]
        if isinstance(target, dict) and target:
            target[dice.choice(list(target))] = dice.choice(odd)
    outcome = run("show", write(content))
    assert outcome.code == 0 or (outcome.code == 1 and len(outcome.err.splitlines()) == 1), outcome.err
    assert "bug" not in outcome.err
    assert "\x1b" not in outcome.out + outcome.err


def test_traces_and_reports_are_not_mixed(run: Command, write: Callable[..., Path], tmp_path: Path) -> None:
    (tmp_path / "x.ncu-rep").write_bytes(b"no report")
    outcome = run("show", write(document(MM)), tmp_path / "x.ncu-rep")
    assert outcome.code == 2
    assert "Cannot mix" in outcome.err


def test_a_folder_of_traces_some_of_them_broken(run: Command, write: Callable[..., Path], tmp_path: Path) -> None:
    write(document(MM), "good.pt.trace.json.gz")
    (tmp_path / "notes.txt").write_text("nothing of a trace")
    assert run("show", tmp_path, "--json").code == 0
    (tmp_path / "cut.json").write_text('{"traceEvents": [{"ph": "X", "ts": 1')
    (tmp_path / "settings.json").write_text("{}")
    outcome = run("show", tmp_path, "--keep-going")
    assert outcome.code == 1
    assert outcome.out.startswith("The GPU is busy")
    assert sorted(line.split(": ")[1].split("/")[-1] for line in outcome.err.splitlines()) == ["cut.json", "settings.json"]
    assert run("show", tmp_path).code == 2
    (tmp_path / "settings.json").unlink()
    assert "no JSON of a trace" in run("render", tmp_path, "-o", tmp_path / "a.md").err
    assert run("render", tmp_path, "-o", tmp_path / "a.md", "--keep-going").code == 1
    (tmp_path / "good.pt.trace.json.gz").unlink()
    assert "none of the reports could be read" in run("show", tmp_path, "--keep-going").err


@pytest.mark.parametrize("words", [("--kernel", "mm"), ("--view", "time"), ("--by", "launch"), ("--launch-latency", "4us")])
def test_options_of_reports_are_refused(run: Command, write: Callable[..., Path], words: tuple[str, str]) -> None:
    outcome = run("show", write(document(MM)), *words)
    assert (outcome.code, outcome.out) == (2, "")
    assert f"Cannot use {words[0]}" in outcome.err


# Real traces


def real(name: str) -> Path:
    path = TRACES / name
    if not path.exists():
        pytest.skip("no collection of real traces (set NCU_ROOFLINE_TRACES)")
    return path


def test_owlv2_is_half_a_softmax() -> None:
    """What TraceLens counts for its products: 55.06 GFLOP and 840.7 MiB a call; it has no model of softmax."""
    run = run_of([read_trace(real("owlv2-h100.pt.trace.json.gz"))])
    first, second, third = run.operators.to_dict("records")[:3]
    assert (first["operator"], first["shapes"]) == ("aten::_softmax", "[16,5185,5185]")
    assert (first["share"], first["fraction"], first["recoverable"]) == pytest.approx((0.476, 0.235, 0.364), abs=1e-3)
    for product in (second, third):
        assert product["flops"] / product["calls"] == pytest.approx(55.06e9, rel=1e-4)
        assert product["bytes"] / product["calls"] == pytest.approx(840.7 * 2**20, rel=1e-4)
    chain = run.chains.to_dict("records")[0]
    assert chain["chain"].startswith("bmm + _softmax + bmm")
    assert chain["recoverable"] == pytest.approx(0.871, abs=1e-3)


@pytest.mark.parametrize(
    ("name", "attributed", "modelled", "busy"),
    [
        ("owlv2-h100.pt.trace.json.gz", 1.0, 0.9995, 0.526),
        ("qwen-h100.pt.trace.json.gz", 0.699, 0.699, 0.919),
        ("bert-small-h100.pt.trace.json.gz", 1.0, 1.0, 0.079),
        ("resnet50-2021.pt.trace.json.gz", 0.911, 0.884, 0.896),
        ("alexnet-a100-times.pt.trace.json.gz", 1.0, 0.0, 0.0051),
        ("nsys-h100-2gpu-1s.sqlite", 0.516, 0.0, 0.993),
    ],
)
def test_real_runs(name: str, attributed: float, modelled: float, busy: float) -> None:
    trace = read_trace(real(name))
    run = run_of([trace], board=named("H100 SXM5")[0])
    whole = run.runs.to_dict("records")[0]
    assert (whole["attributed"], whole["modelled"], whole["busy"] / whole["wall"]) == pytest.approx(
        (attributed, modelled, busy), abs=2e-3
    )
    kernels = sum(seconds for seconds, kind in zip(trace.work.seconds, trace.work.kind, strict=True) if kind == "kernel")
    assert run.operators["seconds"].sum() == pytest.approx(kernels, abs=1e-6)
