"""`--trajectory` and `--label` of `show` and `render`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests import published
from tests.cli.command import Command, assert_refused
from tests.factory import complete, kernel, report
from tests.model.test_trajectories import NW, gpp_sweep

DEMO = Path(__file__).parents[2] / "ncu_roofline" / "data" / "demo" / "gpp-v100.ncu-rep"


def sweep_of(run: Command, *words: object) -> list[tuple[Any, ...]]:
    """(label, step, intensity at DRAM) that `show --json` gives."""
    outcome = run("show", "--json", *words)
    assert (outcome.code, outcome.err) == (0, "")
    points = [point for point in json.loads(outcome.out)["points"] if point["level"] == "dram"]
    assert {point["kernel"] for point in points} == {"sigma_gpp_gpu"}
    return sorted((point["step"], point["label"], point["intensity"]) for point in points)


def expected(labels: list[str]) -> list[tuple[Any, ...]]:
    values = enumerate(zip(labels, published.INTENSITY_DRAM, strict=True))
    return [(step, label, pytest.approx(intensity, rel=1e-9)) for step, (label, intensity) in values]


def test_six_reports_however_they_are_named(run: Command, tmp_path: Path) -> None:
    paths = gpp_sweep(tmp_path)
    for words in (paths, [tmp_path], [tmp_path / "gpp-*.ncu-rep"]):
        assert sweep_of(run, *words, "--trajectory") == expected(NW)
    assert sweep_of(run, *reversed(paths), "--trajectory")[0][1] == "nw6"


def test_labels(run: Command, tmp_path: Path) -> None:
    gpp_sweep(tmp_path)
    assert sweep_of(run, tmp_path, "--label", r"nw(\d)") == expected(list("123456"))
    assert sweep_of(run, DEMO, "--label", "nvtx") == expected([f"nw={nw}" for nw in range(1, 7)])
    assert sweep_of(run, DEMO, "--label", r"nvtx:\d", "--trajectory") == expected(list("123456"))


def test_steps_in_a_folder_are_in_natural_order(run: Command, tmp_path: Path) -> None:
    gpp_sweep(tmp_path, ["n2", "n4", "n8", "n10", "n16", "n100"])
    assert sweep_of(run, tmp_path, "--trajectory") == expected(["n2", "n4", "n8", "n10", "n16", "n100"])


def test_by_application(run: Command, tmp_path: Path) -> None:
    gpp_sweep(tmp_path)
    document = json.loads(run("show", "--json", tmp_path, "--trajectory", "--by", "application").out)
    assert [(row["kernel"], row["label"]) for row in document["kernels"]] == [("application", label) for label in NW]


@pytest.mark.parametrize("suffix", ["html", "png", "svg", "csv", "md", "txt"])
def test_render(run: Command, tmp_path: Path, suffix: str) -> None:
    target = tmp_path / f"out.{suffix}"
    outcome = run("render", DEMO, "--label", "nvtx", "-o", target)
    assert outcome.code == 0, outcome.err
    data = target.read_bytes()
    assert len(data) > 500
    assert suffix in ("png", "svg") or b"nw=6" in data


def test_top_counts_kernels(run: Command, tmp_path: Path) -> None:
    for n in (1, 2):
        report(
            tmp_path / f"n{n}.ncu-rep", kernel(complete(seconds=1.0), "void long(int)"), kernel(complete(), "void short(int)")
        )
    document = json.loads(run("show", "--json", tmp_path, "--trajectory", "--top", "1").out)
    assert [(row["kernel"], row["label"]) for row in document["kernels"]] == [("long", "n1"), ("long", "n2")]


@pytest.mark.parametrize("words", [["--trajectory"], ["--label", "q{9}"], ["--label", "nvtx:zzz"]])
def test_nothing_to_join(run: Command, words: list[str]) -> None:
    assert_refused(run("show", DEMO, *words), DEMO)


def test_usage(run: Command) -> None:
    outcome = run("show", DEMO, "--label", "nvtx:(")
    assert outcome.code == 2
    assert "argument --label: '(' is not a regular expression" in outcome.err
    assert_refused(run("show", DEMO, "--trajectory", "--source", "embedded"), "embedded", code=2)
