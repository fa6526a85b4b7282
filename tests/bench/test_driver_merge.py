"""Ceilings of several GPUs in one file, and files that can't be believed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ncu_roofline.bench.campaign import Candidate
from ncu_roofline.bench.document import Origin, as_text, document
from ncu_roofline.formats.ceilings import read_ceilings
from tests.bench.fakes import H200, device, kind, scenario
from tests.bench.rig import FAST, Rig
from tests.cli.command import Command, assert_refused

IDS = ("dram.read", "fp64.fma", "launch.stream")


Change = Callable[[dict[str, Any]], None]


def write(path: Path, number: int, speed: float = 1.0, host: str = "", change: Change = lambda _content: None) -> Path:
    """A ceilings file of GPU ``number`` whose rates are ``speed`` times the usual ones."""
    content = scenario()
    for one in content["ceilings"].values():
        one["rate"] *= speed
    wanted = [Candidate(kind(name), ("best",)) for name in IDS]
    outcomes = Rig(content).campaign([*wanted, Candidate(kind("tensor.fp8.mma"), (), "emulated")])
    gpu = device({**H200, "uuid": f"GPU-{number:08d}"}, number % 4)
    written = document(gpu, outcomes, FAST, Origin({"compiler": "nvcc 13.0.88"}, {"driver": "580.65"}, ""))
    written["host"]["name"] = host or f"node{number // 4}"
    change(written)
    path.write_text(as_text(written))
    return path


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Eight GPUs of two nodes: one is 5 % slow, one 2 %."""
    speeds = [1.0, 1.001, 0.95, 0.999, 1.0, 0.98, 1.002, 1.0]
    return [write(tmp_path / f"{number}.json", number, speed) for number, speed in enumerate(speeds)]


def test_merge_gives_median_range_and_slow_gpus(run: Command, files: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "all.json"
    outcome = run("bench", "merge", *files, "-o", out)
    assert outcome.code == 0, outcome.err
    assert "8 GPUs on 2 hosts" in outcome.out
    assert "node0 GPU 2 (GPU-00000002): fp64.fma 5.0% behind the median" in outcome.out
    assert "GPU-00000005" not in outcome.out
    content = json.loads(out.read_text())
    entries = {entry["id"]: entry for entry in content["ceilings"]}
    fma = entries["fp64.fma"]
    assert fma["value"] == fma["median"] == pytest.approx(33.0e12, rel=1e-3)
    assert fma["min"] == pytest.approx(0.95 * 33.0e12, rel=1e-3)
    assert fma["max"] == pytest.approx(1.002 * 33.0e12, rel=1e-3)
    assert fma["gpus"] == 8
    assert [gpu["uuid"] for gpu in fma["slow"]] == ["GPU-00000002"]
    assert [gpu["uuid"] for gpu in entries["launch.stream"]["slow"]] == ["GPU-00000002"]  # there longer is slower
    assert entries["tensor.fp8.mma"]["value"] is None
    assert content["derived"]["slow_gpus"] == {"node0 GPU 2 GPU-00000002": ["dram.read", "fp64.fma", "launch.stream"]}
    read = read_ceilings(out)
    found = read.compute("fp64.fma")
    assert found is not None
    assert found.clock == pytest.approx(1.98e9)
    assert fma["per_sm_and_cycle"] == pytest.approx(33.0e12 / 1.98e9 / 132, rel=1e-3)
    assert run("bench", "verify", out).code == 0


def test_merge_prints_json(run: Command, files: list[Path]) -> None:
    assert json.loads(run("bench", "merge", *files, "--json").out)["device"]["name"] == "NVIDIA H200"
    assert json.loads(run("bench", "merge", *files, "-o", "-").out)["device"]["name"] == "NVIDIA H200"


def test_a_rejected_ceiling_of_one_gpu_is_not_counted(run: Command, files: list[Path], tmp_path: Path) -> None:
    def reject(content: dict[str, Any]) -> None:
        content["ceilings"][1].update(accepted=False, reasons=["throttled: heat"])

    bad = write(tmp_path / "bad.json", 9, 0.5, change=reject)
    entries = {e["id"]: e for e in json.loads(run("bench", "merge", *files[:2], bad, "--json").out)["ceilings"]}
    assert (entries["fp64.fma"]["gpus"], entries["fp64.fma"]["reasons"]) == (2, ["2 of 3 GPUs"])
    assert entries["dram.read"]["gpus"] == 3


def test_two_files_of_one_gpu(run: Command, tmp_path: Path) -> None:
    def late(content: dict[str, Any]) -> None:
        content["host"]["time_utc"] = "2099-01-01T00:00:00Z"

    old, new = write(tmp_path / "old.json", 1, 0.9), write(tmp_path / "new.json", 1, 1.0, change=late)
    content = json.loads(run("bench", "merge", new, old, "--json").out)
    assert len(content["device"]["gpus"]) == 1
    assert "old.json left out" in content["warnings"][0]
    assert content["ceilings"][1]["value"] == pytest.approx(33e12, rel=1e-3)


def test_what_differs_is_told(run: Command, tmp_path: Path) -> None:
    def other(content: dict[str, Any]) -> None:
        content["settings"]["data"] = "zeros"
        content["device"]["driver"] = "570.1"

    paths = [write(tmp_path / "a.json", 1), write(tmp_path / "b.json", 2, change=other)]
    warnings = json.loads(run("bench", "merge", *paths, "--json").out)["warnings"]
    assert warnings == ["data differ: random, zeros", "drivers differ: 570.1, 580.65"]


@pytest.mark.parametrize(("key", "value"), [("name", "NVIDIA H100 PCIe"), ("sm_count", 16), ("cc", "8.0")])
def test_other_models_are_refused(run: Command, tmp_path: Path, key: str, value: object) -> None:
    paths = [write(tmp_path / "a.json", 1), write(tmp_path / "b.json", 2, change=lambda c: c["device"].update({key: value}))]
    assert_refused(run("bench", "merge", *paths), paths[1])


def test_threads_of_a_cpu_are_told(run: Command, tmp_path: Path) -> None:
    """A CPU has one identity whatever the number of threads: both files count, and the difference is said."""

    def cpu(threads: int) -> Change:
        return lambda content: content["device"].update(kind="cpu", threads=threads, cores=8, uuid="CPU-1")

    paths = [write(tmp_path / f"{n}.json", n, change=cpu(n)) for n in (4, 8)]
    content = json.loads(run("bench", "merge", *paths, "--json").out)
    assert (len(content["device"]["gpus"]), content["warnings"]) == (2, ["CPU threads differ: 4, 8"])
    again = json.loads(run("bench", "merge", *paths, write(tmp_path / "late.json", 4, change=cpu(4)), "--json").out)
    assert len(again["device"]["gpus"]) == 2
    assert "left out" in again["warnings"][0]


def test_a_file_that_names_no_gpu_is_not_merged(run: Command, tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", 1, change=lambda content: content["device"].pop("name"))
    assert_refused(run("bench", "merge", path), path)


def refuse_all(content: dict[str, Any]) -> None:
    content["ceilings"][0].update(value=None, accepted=False, reasons=["not measured: out of time"])
    for entry in content["ceilings"][1:]:
        entry.update(accepted=False, reasons=["unstable: 9 % variation"])


def test_a_file_in_which_nothing_stands(run: Command, tmp_path: Path) -> None:
    """It is what `bench run` wrote; verify tells why each was refused, the others what to do."""
    path = write(tmp_path / "a.json", 1, change=refuse_all)
    outcome = run("bench", "verify", path)
    assert (outcome.code, outcome.err) == (1, "")
    for text in (
        "note: dram.read: no value: not measured: out of time",
        "note: fp64.fma: not accepted: unstable: 9 % variation",
        "error: no ceiling was accepted. Measure again where nothing else uses the device.",
    ):
        assert text in outcome.out.splitlines()
    for words in (("merge", path), ("compare", path, path)):
        outcome = run("bench", *words)
        assert_refused(outcome, path)
        assert "none of its ceilings was accepted. Measure again where nothing else uses the device." in outcome.err


def test_files_that_are_none(run: Command, files: list[Path], tmp_path: Path) -> None:
    text = tmp_path / "text.json"
    text.write_text("hello")
    for path in (text, tmp_path / "missing.json"):
        assert_refused(run("bench", "merge", files[0], path), path)
        assert_refused(run("bench", "verify", path), path)
    out = tmp_path / "all.json"
    assert run("bench", "merge", *files[:2], "-o", out).code == 0
    assert_refused(run("bench", "merge", files[0], out), out)
    assert_refused(run("bench", "merge", *files, "-o", out), out)


def test_verify_a_good_file(run: Command, tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", 1)
    outcome = run("bench", "verify", path)
    assert (outcome.code, outcome.out) == (0, f"{path}: can be used\n")
    assert json.loads(run("bench", "verify", path, "--json").out) == []


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"value": 36e12, "ci95": [35e12, 37e12]}, "accepted at 107"),
        ({"value": 20e12, "ci95": [19e12, 21e12]}, "and no reason given"),
        ({"ci95": [1.0, 2.0]}, "outside its confidence interval"),
        ({"ci95": None}, "outside its confidence interval"),
        ({"cv": 0.05, "cv_per_cycle": None}, "5.0% variation"),
        ({"cv_per_cycle": 0.05}, "5.0% variation"),
        ({"theory": {"at_measured_clock": 40e12}}, "its theory 4e+13 is not"),
        ({"throttle": {"reasons": ["power brake"]}}, "held back: power brake"),
        ({"verified": {"checksum": False}}, "its result is wrong"),
    ],
)
def test_verify_finds(run: Command, tmp_path: Path, change: dict[str, Any], text: str) -> None:
    path = write(tmp_path / "a.json", 1, change=lambda content: content["ceilings"][1].update(change))
    outcome = run("bench", "verify", path)
    assert outcome.code == 1
    assert text in outcome.out
    assert "fp64.fma" in outcome.out


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"between_session_cv": 0.03}, "sessions differ by 3.0%"),
        ({"between_session_cv": None, "between_session_cv_per_cycle": None, "sessions": 1}, "can be used"),
        ({"accepted": False, "reasons": ["unstable: 5 % variation"]}, "not accepted: unstable"),
        ({"value": 20e12, "ci95": [19e12, 21e12], "reasons": ["the crossbar"]}, "can be used"),
    ],
)
def test_verify_tells_what_is_no_error(run: Command, tmp_path: Path, change: dict[str, Any], text: str) -> None:
    path = write(tmp_path / "a.json", 1, change=lambda content: content["ceilings"][1].update(change))
    outcome = run("bench", "verify", path)
    assert outcome.code == 0, outcome.out
    assert text in outcome.out


def test_verify_files_of_others(run: Command, tmp_path: Path) -> None:
    """A file made from published figures has little more than ids and values."""
    content = {
        "schema": "ert-ceilings",
        "schema_version": 1,
        "device": {"name": "Tesla V100-SXM2-16GB", "uuid": "", "cc": "7.0"},
        "ceilings": [{"id": "fp64.fma", "value": 7e12, "unit": "FLOP/s"}],
    }
    path = tmp_path / "a.json"
    path.write_text(json.dumps(content))
    outcome = run("bench", "verify", path)
    assert outcome.code == 0
    assert "not described well enough" in outcome.out
