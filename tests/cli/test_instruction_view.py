"""`--view instruction` of show, render and explain, in every format."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from ncu_roofline.analyses import ANALYSES
from tests import factory
from tests.cli.command import Command, assert_refused
from tests.instruction_factory import accesses, executed

TABLE = {"inst": 3, "inst.global_ld": 1, "inst.shared": 1}  # dots of the complete kernel


@pytest.fixture
def report(tmp_path: Path) -> Path:
    """A kernel with every counter, and one with none of instructions."""
    counts = accesses(global_ld=(10**6, 8 * 10**6), shared_ld=(10**6, 2 * 10**6), shared_st=(10**6, 2 * 10**6))
    complete = {**factory.complete(), **executed(40_000_000, 16.0), **counts}
    return factory.report(
        tmp_path / "made.ncu-rep",
        factory.kernel(complete, "void stencil(float *)"),
        factory.kernel(factory.complete(seconds=2e-3), "void bare(float *)"),
    )


def test_show(run: Command, report: Path) -> None:
    shown = run("show", report, "--view", "instruction", "--width", 200)
    assert shown.code == 0
    lines = [" ".join(line.split()) for line in shown.out.splitlines()]
    assert any(line.endswith(("inst/TXN", "intensity [inst/TXN]")) for line in lines)
    answer = "stencil 1 ms 33.3 % latency 6.2x 9.7x 839 \N{MICRO SIGN}s DRAM 16 %"
    assert f"{answer} Warp instructions 0.847 2.56 5.12 40 GIPS 16.1 % 50.0 %" in lines
    assert "Instruction issue 609 GIPS" in lines
    assert "L1/TEX 609 GTXN/s" in lines
    assert "Global loads, unit stride, 8 B: 8 sectors 0.125 inst/TXN" in lines
    assert "Shared loads and stores, 2-way bank conflict 0.5 inst/TXN" in lines
    assert any(line.startswith("1 kernel without metrics of executed instructions") for line in lines)
    assert "Warp instructions" in shown.out.splitlines()[-1]
    assert "`ncu-roofline explain --view instruction` tells how to add them" in shown.out


def test_show_json(run: Command, report: Path) -> None:
    document = json.loads(run("show", report, "--view", "instruction", "--json").out)
    assert document["view"] == "instruction"
    assert document["units"]["intensity"] == "inst/txn"
    assert document["units"]["work"] == "inst"
    found = [point["precision"] for point in document["points"]]
    assert {name: found.count(name) for name in found} == TABLE
    assert {row["kernel"]: row["status"] for row in document["kernels"]} == {"stencil": "ok", "bare": "no-work-metrics"}
    assert [row["work"] for row in document["kernels"]] == [40_000_000, None]
    assert {roof["unit"] for roof in document["roofs"]} == {"inst/s", "txn/s", "inst/txn"}


@pytest.mark.sampled("html", "csv", "text")
@pytest.mark.parametrize("name", ANALYSES["instruction"].formats)
def test_render(run: Command, report: Path, tmp_path: Path, name: str) -> None:
    target = tmp_path / "out"
    if ANALYSES["instruction"].formats[name].needs:
        pytest.importorskip(ANALYSES["instruction"].formats[name].needs)
    assert run("render", report, "--view", "instruction", "--format", name, "-o", target).code == 0
    data = target.read_bytes()
    starts = {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml", "parquet": b"PAR1", "html": b"<!DOCTYPE html>"}
    assert data.startswith(starts.get(name, b""))
    if name in ("md", "text", "html"):
        text = data.decode()
        assert "Instruction" in text
        assert "[FLOP/B]" not in text.partition('id="advice"')[0]  # rules of the report speak of all its rooflines
        assert "bank conflict" in text


def test_csv(run: Command, report: Path) -> None:
    done = run("render", report, "--view", "instruction", "--format", "csv", "-o", "-")
    rows = list(csv.DictReader(io.StringIO(done.out)))
    loads = next(row for row in rows if row["precision"] == "inst.global_ld")
    assert (loads["unit"], float(loads["intensity"]), loads["lanes"]) == ("inst", 0.125, "")
    assert {float(row["lanes"]) for row in rows if row["precision"] == "inst"} == {0.5}


def test_parquet_names_the_units(run: Command, report: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    run("render", report, "--view", "instruction", "-o", tmp_path / "points.parquet")
    schema = parquet.read_schema(tmp_path / "points.parquet")
    assert schema.field("bandwidth").metadata[b"unit"] == b"txn/s"


def test_explain_gives_the_command(run: Command, report: Path) -> None:
    explained = run("explain", report, "--view", "instruction", "--json")
    (one,) = json.loads(explained.out)
    assert one["missing"] == ["inst", "inst.global_ld", "inst.shared"]
    assert [kind["launches"] for kind in one["precisions"]] == [1, 1, 1]
    assert "smsp__inst_executed.sum," in one["command"]
    text = run("explain", report, "--view", "instruction").out
    assert "To add Warp instructions, Global loads, Shared loads and stores, run:" in text


def test_explain_says_when_nothing_is_missing(run: Command, tmp_path: Path) -> None:
    counts = accesses(global_ld=(1, 4), shared_ld=(1, 1), shared_st=(1, 1))
    whole = factory.report(tmp_path / "whole.ncu-rep", factory.kernel({**factory.complete(), **executed(100), **counts}))
    assert "Nothing is missing for what was asked.\n" in run("explain", whole, "--view", "instruction").out


def test_a_report_without_counters_says_what_to_collect(run: Command, tmp_path: Path) -> None:
    bare = factory.report(tmp_path / "bare.ncu-rep", factory.kernel(factory.complete()))
    shown = run("show", bare, "--view", "instruction", "--notes")
    assert shown.code == 0
    assert "No kernel can be drawn." in shown.out
    text = " ".join(shown.out.split())
    assert "Missing metrics: smsp__inst_executed.sum. The command" in text
    assert "The command ncu-roofline explain --view instruction prints the ncu command that adds them." in text


@pytest.mark.parametrize(
    ("words", "about", "code"),
    [
        (("--precision", "fp64"), "fp64", 1),
        (("--level", "l4"), "l4", 1),
        (("--source", "embedded"), "embedded", 2),
    ],
)
def test_refusals(run: Command, report: Path, words: tuple[str, ...], about: str, code: int) -> None:
    assert_refused(run("show", report, "--view", "instruction", *words), about, code)


@pytest.mark.parametrize("by", ["kernel", "application"])
def test_grouped(run: Command, report: Path, by: str) -> None:
    document = json.loads(run("show", report, "--view", "instruction", "--by", by, "--json").out)
    work = {point["work"] for point in document["points"] if point["precision"] == "inst"}
    assert work == {40_000_000}
