"""Runs, beside what `run-*.frames` and the sessions hold: needs by hand, hostile traces, pictures, and real runs."""

from __future__ import annotations

import json
import math
import random
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from ncu_roofline.analyses import render
from ncu_roofline.analyses.run.frames import Run, run_of
from ncu_roofline.analyses.run.need import MATRIX, NoFormulaError, load, need
from ncu_roofline.analyses.run.picture import chart
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.chips.spec import named
from ncu_roofline.formats.traces import is_trace, read_trace
from ncu_roofline.rendering.chart import Point
from tests.analyses.data import first, read
from tests.analyses.made import SQUARES, trace
from tests.analyses.traces_made import BF16, COPY, H100, LATE, MM, SOFTMAX, call, document, event, real, write
from tests.analyses.traces_made import HOSTILE as HOSTILE
from tests.analyses.traces_made import TRACES as TRACES
from tests.cli.command import Command
from tests.schemas import assert_fits

TFLOPS, BANDWIDTH = 989.4e12, 3.352e12  # BF16 of an H100's tensor cores and DRAM, by NVIDIA's data sheet
NEEDS = read("needs")


def made(folder: Path, *events: list[dict[str, Any]], **options: Any) -> Run:
    gpus = options.pop("gpus", (H100,))
    return run_of([read_trace(write(folder / "a.json", document(*events, gpus=gpus)))], **options)


def rows(run: Run) -> dict[str, dict[str, Any]]:
    return {row["operator"]: row for row in run.operators.to_dict("records")}


def asked(case: dict[str, Any]) -> Any:
    """The need of a case of needs.toml."""
    shapes = case.get("shapes")
    types = case.get("types", ["float" if shape else "Scalar" for shape in shapes or []])
    return need(load(), case["name"], shapes, types, case.get("values"), [case.get("kernel", "kernel")])


def test_needs_by_hand(tmp_path: Path) -> None:
    for case in NEEDS["needs"]:
        wanted = {name: eval(case[name]) for name in ("flops", "bytes") if name in case}
        wanted |= {"bytes": 4 * eval(case["elements"])} if "elements" in case else {}
        wanted |= {"precision": case["precision"]} if "precision" in case else {}
        said = asked(case)
        assert {name: getattr(said, name) for name in wanted} == wanted, case
    for case in NEEDS["refused"]:
        with pytest.raises(NoFormulaError, match=case["refused"]):
            asked(case)
    (tmp_path / "bad.toml").write_text("[[")
    with pytest.raises(RooflineError, match="whole file"):
        load([str(tmp_path / "bad.toml")])


def test_operators_under_the_roofs_of_the_gpu(tmp_path: Path) -> None:
    """By hand, of a compressed trace: 2 x 4096^3 FLOPs in 100 us, and 2 x 2 x 64 x 1024^2 bytes in 400 us of 550."""
    path = write(tmp_path / "a.pt.trace.json.gz", document(MM, SOFTMAX, LATE))
    assert is_trace(path)
    found = rows(run_of([read_trace(path)]))
    mm, softmax = found["aten::mm"], found["aten::_softmax"]
    assert (mm["flops"], mm["bytes"], softmax["bytes"]) == (2 * 4096**3, 3 * 2 * 4096**2, 2 * 2 * 64 * 1024**2)
    assert (mm["least"], mm["fraction"]) == pytest.approx((mm["flops"] / TFLOPS, mm["flops"] / TFLOPS / 100e-6), rel=1e-3)
    assert softmax["recoverable"] == pytest.approx((400e-6 - softmax["bytes"] / BANDWIDTH) / 550e-6, rel=1e-3)


def test_the_dialect_of_2021(tmp_path: Path) -> None:
    renamed = {"cpu_op": "Operator", "kernel": "Kernel", "cuda_runtime": "Runtime"}
    events = [{**one, "cat": renamed[one["cat"]]} for one in MM]
    events[0]["args"] = {"Input dims": [[64, 64], [64, 64]], "Input type": []}
    events[2]["name"] = "volta_sgemm_64x64_nn"
    mm = rows(made(tmp_path, events, gpus=(), board=named("V100 SXM2")[0]))["aten::mm"]
    assert (mm["flops"], mm["bytes"], mm["roof"], mm["device"]) == (2 * 64**3, 3 * 4 * 64**2, "dram", "V100-SXM2")


def test_what_two_processes_launched_under_one_number_is_nobody_s(tmp_path: Path) -> None:
    other = [{**one, "pid": 8} for one in call("aten::relu", 1500, 10, [[64]], [BF16])[:2]]
    other[1]["args"] = {"correlation": 1000}
    again = [{**one, "ts": one["ts"] + 1} for one in other]
    unnumbered = [{**one, "args": {k: v for k, v in one["args"].items() if k != "correlation"}} for one in MM]
    for events in ((MM, other), (MM, other, again), (unnumbered,)):
        assert list(rows(made(tmp_path, *events))) == [""]


def test_sizes_of_convolutions_from_the_way_back(tmp_path: Path) -> None:
    """Without strides (2021): what the gradient looks like tells, unless two convolutions differ there alone."""
    x, weight, out = [2, 4, 9, 9], [6, 4, 3, 3], [2, 6, 5, 5]
    flops = 2 * math.prod(out) * 36
    for grads, expected in (([out], [flops] * 2), ([out, [2, 6, 9, 9]], [flops]), ([], [])):
        back = [event("cpu_op", "aten::cudnn_convolution_backward", 5000, 99, **{"Input Dims": [x, g, weight]}) for g in grads]
        forth = call("aten::cudnn_convolution", 1000, 9, [x, weight], ["float"] * 2)
        weights = call("aten::cudnn_convolution_backward_weight", 2000, 9, [[], out, x], ["", "float", "float"])
        assert list(made(tmp_path, forth, weights, back).operators["flops"].dropna()) == expected


@pytest.mark.parametrize("seed", first(range(24), 2))
def test_odd_values_give_an_answer_or_one_sentence(run: Command, tmp_path: Path, seed: int) -> None:
    dice, odd = random.Random(seed), [None, -1, 1e308, "x", [], {}, [[1, 2]], True, 2**70, "\x1b[31m"]
    content = json.loads(json.dumps(document(MM, SOFTMAX, LATE)))
    for _ in range(dice.choice([1, 3, 9])):
        one = dice.choice(content["traceEvents"])
        target = one if dice.random() < 0.4 else one["args"]
        if isinstance(target, dict) and target:
            target[dice.choice(list(target))] = dice.choice(odd)
    outcome = run("show", write(tmp_path / "a.json", content))
    assert outcome.code == 0 or (outcome.code == 1 and len(outcome.err.splitlines()) == 1), outcome.err
    assert [word for word in ("bug", "\x1b") if word in outcome.out + outcome.err] == []
    for one in (still := json.loads(json.dumps(document(MM))))["traceEvents"]:
        one |= {"ts": 0, "dur": 0}
    assert "No timeline: 1 kernel takes 0 s" in run("show", write(tmp_path / "still.json", still)).out


def test_a_database_that_is_still_written(run: Command, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "a.sqlite") as database:
        database.execute("PRAGMA journal_mode = wal")
        database.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER)")
        database.commit()
        outcome = run("show", tmp_path / "a.sqlite")
    assert (outcome.code, outcome.out, "-wal" in outcome.err) == (1, "", True)


def test_a_folder_of_traces_some_of_them_broken(run: Command, tmp_path: Path) -> None:
    write(tmp_path / "good.pt.trace.json.gz", document(MM))
    (tmp_path / "notes.txt").write_text("nothing of a trace")
    assert run("show", tmp_path, "--json").code == 0
    (tmp_path / "cut.json").write_text('{"traceEvents": [{"ph": "X", "ts": 1')
    (tmp_path / "settings.json").write_text("{}")
    outcome = run("show", tmp_path, "--keep-going")
    assert (outcome.code, outcome.out.partition(" for")[0]) == (1, "The GPU is busy")
    assert sorted(line.split(": ")[1].split("/")[-1] for line in outcome.err.splitlines()) == ["cut.json", "settings.json"]
    assert run("show", tmp_path).code == 2
    (tmp_path / "settings.json").unlink()
    assert "no JSON of a trace" in run("render", tmp_path, "-o", tmp_path / "a.md").err
    assert run("render", tmp_path, "-o", tmp_path / "a.md", "--keep-going").code == 1
    (tmp_path / "good.pt.trace.json.gz").unlink()
    assert "none of the reports could be read" in run("show", tmp_path, "--keep-going").err


def test_a_picture_has_the_roofline_beside_where_the_time_goes(tmp_path: Path) -> None:
    run = made(tmp_path, MM, SOFTMAX, COPY, LATE, HOSTILE)
    said = "\n".join(ElementTree.fromstring(render(run, "svg")).itertext())
    told = ("GPU 14.8 % busy, 56.7 % of kernels' time could be saved", "mm", "[64,1024,1024]", "DRAM", "Tensor BF16 989 TF")
    listed = ("copy_", "no formula", "launch not recorded", "53.3 % could be saved", "<script>")  # no operations, or formula
    assert [text for text in (*told, *listed) if text not in said] == []
    drawn = chart(run)
    panel, times = drawn.rows[1]
    dots = sorted((mark.x, mark.y) for mark in panel.marks if isinstance(mark, Point))
    worked = run.operators[run.operators["flops"] > 0]
    assert dots == sorted(zip(worked["intensity"], worked["performance"], strict=True))
    assert len(dots) == 2
    assert sum(part for row in times.rows for part, _ in row.scales[0].bars) == pytest.approx(600 / 400)  # of the longest
    assert [row.name for row in times.rows[:2]] == ["_softmax", "mm"]
    second = [{**one, "args": {**one["args"], "device": 1}} if one["cat"] == "kernel" else one for one in COPY]
    two_gpus = made(tmp_path, MM, SOFTMAX, LATE, second, gpus=(H100, {**H100, "id": 1}))
    two = chart(two_gpus)
    assert len(two.rows) == len(drawn.rows) + 1  # for each GPU
    bare = chart(made(tmp_path, MM, SOFTMAX, gpus=()))
    said = [" could be saved, " in " ".join(one.sentences) for one in (drawn, bare)]  # not without roofs
    assert (bare.title, said) == ("GPU 35.3 % busy", [True, False])
    with pytest.raises(ValueError, match="no room"):
        render(run, "png", height="1.5in", font=20.0)


def kernels(outcome: Any) -> dict[str, dict[str, Any]]:
    return {row["kernel"].partition(" ")[0]: row for row in assert_fits("run-comparison", outcome.out)["kernels"]}


def test_times_of_operators_before_and_after(run: Command, tmp_path: Path) -> None:
    before, after = (write(tmp_path / f"{us}.json", trace(us)) for us in (400, 480))
    outcome = run("compare", before, after, "--json")
    softmax, copy = (kernels(outcome)[name] for name in ("aten::_softmax", "aten::copy_"))
    assert (softmax["seconds_before"], softmax["seconds"]) == pytest.approx((400e-6, 480e-6))
    least = 2 * 2 * 64 * 1024**2 / BANDWIDTH
    assert (softmax["fraction_before"], softmax["fraction"]) == pytest.approx((least / 400e-6, least / 480e-6), rel=1e-3)
    assert copy["fraction"] == pytest.approx(2 * 2 * 2048**2 / BANDWIDTH / 40e-6, rel=1e-3)  # without any operation
    assert (copy["binds"], copy["precision"]) == ("dram", "")
    (whole,) = json.loads(outcome.out)["summary"]
    assert (whole["total_seconds_before"], whole["total_seconds"]) == pytest.approx((2260e-6, 2660e-6))
    assert whole["busy"] == pytest.approx(2660e-6 / whole["wall"], rel=1e-6)
    for spread, said in ((0.0, "slower"), (0.02, "slower"), (0.1, "same")):  # a change within the spread of calls is none
        write(after, trace(440, spread=spread))
        softmax = kernels(run("compare", before, after, "--json"))["aten::_softmax"]
        assert (softmax["outcome"], softmax["noise"]) == (said, pytest.approx(max(0.02, 1.4826 * spread), rel=1e-6))


def test_many_calls_keep_sums_median_and_spread(run: Command, tmp_path: Path) -> None:
    times = [40 + (number * 37 % 100) / 10 for number in range(1000)]  # 40 to 49.9 us, mixed
    calls = (call("aten::copy_", 1000 + 100 * number, us, *SQUARES) for number, us in enumerate(times))
    path = write(tmp_path / "a.json", document(*calls))
    found = kernels(run("compare", path, path, "--json"))["aten::copy_"]
    assert (found["launches"], found["total_seconds"]) == (1000, pytest.approx(sum(times) * 1e-6))
    assert found["seconds"] == pytest.approx(44.95e-6, rel=1e-3)
    assert found["spread"] == pytest.approx(1.4826 * 2.5 / 44.95, rel=0.01)
    assert found["fraction"] == pytest.approx(1000 * 2 * 2 * 2048**2 / BANDWIDTH / (sum(times) * 1e-6), rel=1e-3)


# PyTorch's own counter


def needed(path: Path) -> Iterator[float]:
    """Operations of each matrix product and convolution that a trace has and that calls no other."""
    formulas = load()
    events = [one for one in json.loads(path.read_text())["traceEvents"] if one.get("cat") == "cpu_op"]
    for mine in events:
        recorded = (mine["args"].get(name) for name in ("Input Dims", "Input type", "Concrete Inputs"))
        same, end = [one for one in events if one is not mine and one["tid"] == mine["tid"]], mine["ts"] + mine["dur"]
        inner = [formulas.get(one["name"]) for one in same if mine["ts"] <= one["ts"] < end]
        try:
            found = need(formulas, mine["name"], *recorded, ())
        except NoFormulaError:
            continue
        if found.kind == MATRIX and not any(one and one.kind == MATRIX for one in inner):
            yield found.flops


def test_formulas_agree_with_pytorch_s_own_counter(tmp_path: Path) -> None:
    """On what its profiler records of the same calls."""
    torch: Any = pytest.importorskip("torch")
    from torch.profiler import ProfilerActivity, profile
    from torch.utils.flop_counter import FlopCounterMode

    functional, path = torch.nn.functional, tmp_path / "trace.json"

    def of(*shape: int) -> Any:
        return torch.randn(*shape, requires_grad=True)

    cases: dict[str, Callable[[], Any]] = {
        "mm": lambda: of(6, 5) @ of(5, 7),
        "mm of BF16": lambda: of(6, 5).bfloat16() @ of(5, 7).bfloat16(),
        "bmm": lambda: torch.bmm(of(3, 6, 5), of(3, 5, 7)),
        "baddbmm": lambda: torch.baddbmm(of(3, 6, 7), of(3, 6, 5), of(3, 5, 7)),
        "linear": lambda: functional.linear(of(2, 4, 5), of(7, 5), of(7)),
        "conv1d": lambda: functional.conv1d(of(2, 4, 20), of(6, 4, 3), of(6), 2, 1),
        "conv2d": lambda: functional.conv2d(of(2, 4, 20, 21), of(6, 4, 3, 5), of(6), (2, 1), (1, 2)),
        "conv2d, dilated": lambda: functional.conv2d(of(2, 4, 20, 21), of(8, 4, 3, 3), None, 1, 1, 2),
        "conv2d, weights alone need gradients": lambda: functional.conv2d(torch.randn(2, 4, 20, 21), of(8, 4, 3, 3)),
        "conv3d": lambda: functional.conv3d(of(1, 2, 8, 9, 10), of(4, 2, 3, 3, 3)),
        "conv_transpose2d": lambda: functional.conv_transpose2d(of(2, 4, 10, 11), of(4, 6, 3, 3), of(6), 2, 1, 1),
        "MultiheadAttention": lambda: torch.nn.MultiheadAttention(16, 2)(of(5, 2, 16), of(5, 2, 16), of(5, 2, 16))[0],
    }
    for case, made in cases.items():
        with FlopCounterMode(display=False) as counter:
            made().sum().backward()
        with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as recording:
            made().sum().backward()
        recording.export_chrome_trace(str(path))
        assert sum(needed(path)) == counter.get_total_flops() > 0, case


# Real traces


@pytest.mark.exhaustive
def test_a_real_run_against_itself(run: Command) -> None:
    path = real("owlv2-h100.pt.trace.json.gz")
    found = json.loads(run("compare", path, path, "--json").out)
    shown = json.loads(run("show", path, "--json").out)["operators"]
    shares = {" ".join(filter(None, (row["operator"], row["shapes"], row["types"]))): row["fraction"] or 0 for row in shown}
    assert {row["outcome"] for row in found["kernels"]} == {"same"}
    assert {row["name"]: row["fraction"] or 0 for row in found["kernels"]} == pytest.approx(shares, rel=1e-9)
    assert len(shares) == 80
    assert found["summary"][0]["total_seconds"] == pytest.approx(sum(row["seconds"] for row in shown), abs=1e-9)


def test_owlv2_is_half_a_softmax() -> None:
    """What TraceLens counts for its products: 55.06 GFLOP and 840.7 MiB a call; it has no model of softmax."""
    run = run_of([read_trace(real("owlv2-h100.pt.trace.json.gz"))])
    most, *products = run.operators.to_dict("records")[:3]
    assert (most["operator"], most["shapes"]) == ("aten::_softmax", "[16,5185,5185]")
    assert (most["share"], most["fraction"], most["recoverable"]) == pytest.approx((0.476, 0.235, 0.364), abs=1e-3)
    for product in products:
        a_call = product["flops"] / product["calls"], product["bytes"] / product["calls"]
        assert a_call == pytest.approx((55.06e9, 840.7 * 2**20), rel=1e-4)
    chain = run.chains.iloc[0]
    assert (chain["chain"][:20], chain["recoverable"]) == ("bmm + _softmax + bmm", pytest.approx(0.871, abs=1e-3))


REAL = {
    "nsys-h100-2gpu-1s.sqlite": (0.516, 0.0, 0.993),
    "owlv2-h100.pt.trace.json.gz": (1.0, 0.9995, 0.526),
    "qwen-h100.pt.trace.json.gz": (0.699, 0.699, 0.919),
    "bert-small-h100.pt.trace.json.gz": (1.0, 1.0, 0.079),
    "resnet50-2021.pt.trace.json.gz": (0.911, 0.884, 0.896),
    "alexnet-a100-times.pt.trace.json.gz": (1.0, 0.0, 0.0051),
}


@pytest.mark.parametrize("name", first(REAL))
def test_real_runs(name: str) -> None:
    """Share of the kernels' time that was asked for by operators, that formulas know, and of the run that GPUs were busy."""
    trace = read_trace(real(name))
    run = run_of([trace], board=named("H100 SXM5")[0])
    whole = run.runs.iloc[0]
    assert (whole["attributed"], whole["modelled"], whole["busy"] / whole["wall"]) == pytest.approx(REAL[name], abs=2e-3)
    summed = sum(seconds for seconds, kind in zip(trace.work.seconds, trace.work.kind, strict=True) if kind == "kernel")
    assert run.operators["seconds"].sum() == pytest.approx(summed, abs=1e-6)
