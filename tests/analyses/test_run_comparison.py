"""`compare` of traces: operators by name, shapes and types, their times against the spread of their calls."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.analyses.test_run import BF16, H100, LATE, call, document, real
from tests.analyses.test_run import write as write  # the fixture
from tests.cli.command import Command
from tests.schemas import assert_fits

SIZES = [[64, 1024, 1024], [], []], [BF16, "Scalar", "Scalar"], ["", "-1", "False"]
COPY = [[2048, 2048], [2048, 2048]], [BF16, BF16]


def trace(softmax: float, copy: float = 40, spread: float = 0, last: str = "aten::relu") -> dict[str, Any]:
    """Calls of a softmax whose kernels take some us, more or less by a ``spread``, copies, and one of something else."""
    events = []
    for number, more in enumerate((-2, -1, 0, 1, 2)):
        events.append(call("aten::_softmax", 1000 + 1500 * number, softmax * (1 + more * spread), *SIZES))
        events.append(call("aten::copy_", 2200 + 1500 * number, copy, *COPY))
    return document(*events, call(last, 9500, 60, [[1024, 1024]], [BF16]), gpus=(H100,))


def kernels(outcome: Any) -> dict[str, dict[str, Any]]:
    return {row["kernel"].partition(" ")[0]: row for row in json.loads(outcome.out)["kernels"]}


def test_operators_before_and_after(run: Command, write: Callable[..., Path]) -> None:
    before, after = write(trace(400), "a.json"), write(trace(480, last="aten::gelu"), "b.json")
    outcome = run("compare", before, after, "--json")
    found, (whole,) = kernels(outcome), assert_fits("run-comparison", outcome.out)["summary"]
    assert {name: row["outcome"] for name, row in found.items()} == {
        "aten::_softmax": "slower",
        "aten::copy_": "same",
        "aten::relu": "removed",
        "aten::gelu": "added",
    }
    softmax, copy = found["aten::_softmax"], found["aten::copy_"]
    assert softmax["kernel"] == "aten::_softmax [64,1024,1024] BFloat16"
    assert (softmax["launches"], softmax["verdict"]) == (5, "")
    assert (softmax["seconds_before"], softmax["seconds"]) == pytest.approx((400e-6, 480e-6))
    least = 2 * 2 * 64 * 1024**2 / 3.352e12
    assert (softmax["fraction_before"], softmax["fraction"]) == pytest.approx((least / 400e-6, least / 480e-6), rel=1e-3)
    assert copy["fraction"] == pytest.approx(2 * 2 * 2048**2 / 3.352e12 / 40e-6, rel=1e-3)  # without any operation
    assert (copy["binds"], copy["precision"]) == ("dram", "")
    assert (whole["total_seconds_before"], whole["total_seconds"]) == pytest.approx((2260e-6, 2660e-6))
    assert whole["busy"] == pytest.approx(2660e-6 / whole["wall"], rel=1e-6)
    text = " ".join(run("compare", before, after, "--width", 200).out.split())
    for told in ("1.18x slower", "1 operator new; 1 operator gone", "GPU busy 26.3 % → 31.0 %, kernels 2.26 ms → 2.66 ms"):
        assert told in text
    assert "needed" not in text.partition("FLOPs and bytes are what operators need")[0]
    assert not any(word in text for word in ("kernel ", "launch", "verdict", "reports"))


@pytest.mark.parametrize(("spread", "outcome"), [(0.0, "slower"), (0.02, "slower"), (0.1, "same")])
def test_a_change_within_the_spread_of_calls_is_none(
    run: Command, write: Callable[..., Path], spread: float, outcome: str
) -> None:
    found = kernels(run("compare", write(trace(400), "a.json"), write(trace(440, spread=spread), "b.json"), "--json"))
    softmax = found["aten::_softmax"]
    assert softmax["outcome"] == outcome
    assert softmax["noise"] == pytest.approx(max(0.02, 1.4826 * spread), rel=1e-6)


def test_small_operators_that_stayed_the_same_are_summed_up(run: Command, write: Callable[..., Path]) -> None:
    small = [call(f"aten::small{number}", 2000 + 100 * number, 2, *COPY) for number in range(3)]
    before, after = (document(call("aten::_softmax", 1000, time, *SIZES), *small) for time in (400, 800))
    told = " ".join(run("compare", write(before, "a.json"), write(after, "b.json")).out.split())
    assert "Kernels 1.99x slower: 406 µs → 806 µs" in told
    assert "3 operators with less than 1.0 % of the time left out: same." in told
    assert "aten::small0" not in told


def test_many_calls_keep_sums_median_and_spread(run: Command, write: Callable[..., Path]) -> None:
    times = [40 + (number * 37 % 100) / 10 for number in range(1000)]  # 40 to 49.9 us, mixed
    calls = (call("aten::copy_", 1000 + 100 * number, time, *COPY) for number, time in enumerate(times))
    path = write(document(*calls))
    found = kernels(run("compare", path, path, "--json"))["aten::copy_"]
    assert (found["launches"], found["total_seconds"]) == (1000, pytest.approx(sum(times) * 1e-6))
    assert found["seconds"] == pytest.approx(44.95e-6, rel=1e-3)
    assert found["spread"] == pytest.approx(1.4826 * 2.5 / 44.95, rel=0.01)
    assert found["fraction"] == pytest.approx(1000 * 2 * 2 * 2048**2 / 3.352e12 / (sum(times) * 1e-6), rel=1e-3)
    outcome = run("compare", path, path, "--match", "order")
    assert (outcome.code, "Cannot use --match order" in outcome.err) == (2, True)


def test_other_sizes_are_another_operator_and_kernels_of_nobody_are_matched_as_in_reports(
    run: Command, write: Callable[..., Path]
) -> None:
    larger = [[[128, 1024, 1024], [], []], *SIZES[1:]]
    late = [{**one, "name": "graph_kernel<8>"} for one in LATE]
    before = write(document(call("aten::_softmax", 1000, 400, *SIZES), LATE), "a.json")
    after = write(document(call("aten::_softmax", 1000, 800, *larger), late), "b.json")
    found = json.loads(run("compare", before, after, "--json").out)["kernels"]
    assert sorted((row["name"], row["outcome"]) for row in found) == [
        ("aten::_softmax [128,1024,1024] BFloat16", "added"),
        ("aten::_softmax [64,1024,1024] BFloat16", "removed"),
        ("graph_kernel<8>", "same"),
    ]


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("time > 1.05 * baseline", 1),
        ("time > 1.25 * baseline", 0),
        ("fraction < 0.9 * baseline", 1),
        ("bytes.dram != baseline", 0),
        ("share > 95 %", 0),
    ],
)
def test_thresholds(run: Command, write: Callable[..., Path], condition: str, code: int) -> None:
    outcome = run("compare", write(trace(400), "a.json"), write(trace(480), "b.json"), "--fail-if", condition)
    assert outcome.code == code
    assert ("tripped: " in outcome.out) == bool(code)
    assert "not evaluated" not in outcome.out


@pytest.mark.parametrize("suffix", ["md", "html", "svg", "csv", "json", "txt"])
def test_files(run: Command, write: Callable[..., Path], tmp_path: Path, suffix: str) -> None:
    target = tmp_path / f"out.{suffix}"
    assert run("compare", write(trace(400), "a.json"), write(trace(480), "b.json"), "-o", target).code == 0
    assert "softmax" in target.read_text()


def test_what_has_nothing_in_common(run: Command, write: Callable[..., Path], tmp_path: Path) -> None:
    before, other = write(trace(400), "a.json"), write(document(call("aten::relu", 1, 50, [[8]], [BF16])), "b.json")
    (tmp_path / "x.ncu-rep").write_bytes(b"NVR\0")
    cases = {
        (before, other): "no operator of one is in the other",
        (before, tmp_path / "x.ncu-rep"): "it is no trace",
        (before, tmp_path / "none.json"): "there is no such file",
    }
    for paths, told in cases.items():
        outcome = run("compare", *paths)
        assert outcome.code == 1
        assert told in outcome.err
        assert len(outcome.err.splitlines()) == 1


def test_sums_of_kernels(run: Command, tmp_path: Path) -> None:
    head = "Time (%),Total Time (ns),Instances,Avg (ns),Name\n"
    for name, total in (("a", 600_000), ("b", 900_000)):
        (tmp_path / f"{name}.csv").write_text(f"{head}60.0,{total},3,{total / 3},gemm\n40.0,400000,1,400000,copy\n")
    found = kernels(outcome := run("compare", tmp_path / "a.csv", tmp_path / "b.csv", "--json"))
    assert (found["gemm"]["launches"], found["gemm"]["seconds"]) == (3, pytest.approx(300e-6))
    assert math.isclose(found["gemm"]["time_change"], 0.5)
    assert json.loads(outcome.out)["summary"][0]["wall"] is None


def test_a_real_run_against_itself(run: Command) -> None:
    path = real("owlv2-h100.pt.trace.json.gz")
    found = json.loads(run("compare", path, path, "--json").out)
    shown = json.loads(run("show", path, "--json").out)["operators"]
    shares = {" ".join(filter(None, (row["operator"], row["shapes"], row["types"]))): row["fraction"] for row in shown}
    assert {row["outcome"] for row in found["kernels"]} == {"same"}
    assert len(found["kernels"]) == len(shares) == 80
    for row in found["kernels"]:
        share = shares[row["name"]]
        assert row["fraction"] == (None if share is None else pytest.approx(share, rel=1e-9))
    assert found["summary"][0]["total_seconds"] == pytest.approx(sum(row["seconds"] for row in shown), abs=1e-9)
