"""`--view time`, `instruction` and `phases` of show, render and explain: options, defaults, every format, refusals."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from ncu_roofline.analyses import ANALYSES
from ncu_roofline.analyses.phases.frames import MOST_SLICES
from ncu_roofline.analyses.time import frames as columns
from ncu_roofline.cli.options import latency
from tests.analyses.phases_made import DRAM, SM, TWO_PHASES, Group, Made, steps
from tests.cli.command import Command, assert_refused
from tests.factory import A100, NO_WORK, complete, kernel, report, timing, traffic
from tests.instruction_factory import accesses, executed

DEMO = Path(__file__).parents[2] / "ncu_roofline" / "data" / "demo"
STARTS = {
    "png": b"\x89PNG",
    "pdf": b"%PDF",
    "svg": b"<?xml",
    "parquet": b"PAR1",
    "html": b"<!DOCTYPE html>",
    "json": b'{\n"schema"',
}
PICTURES = ("png", "pdf")
COUNTS = accesses(global_ld=(10**6, 8 * 10**6), shared_ld=(10**6, 2 * 10**6), shared_st=(10**6, 2 * 10**6))


@pytest.fixture
def timed(tmp_path: Path) -> Path:
    """Three launches of one kernel, and a copy."""
    copy = {**A100, **timing(), **NO_WORK, **traffic(10**6, 10**4, 10**6)}
    return report(tmp_path / "app.ncu-rep", *[kernel(complete())] * 3, kernel(copy, "void copy(int *)"))


@pytest.fixture
def counted(tmp_path: Path) -> Path:
    """A kernel with every counter, and one with none of instructions."""
    whole = kernel({**complete(), **executed(40_000_000, 16.0), **COUNTS}, "void stencil(float *)")
    return report(tmp_path / "made.ncu-rep", whole, kernel(complete(seconds=2e-3), "void bare(float *)"))


@pytest.fixture
def sampled(tmp_path: Path) -> Path:
    return report(tmp_path / "phases.ncu-rep", Made().kernel(), kernel(complete(), "void plain(int *)"))


def shown(run: Command, path: Path, view: str, *words: object) -> Any:
    """The document of a view."""
    return json.loads(run("show", path, "--view", view, "--json", *words).out)


@pytest.mark.parametrize(("view", "given"), [("time", "timed"), ("instruction", "counted"), ("phases", "sampled")])
def test_every_format(run: Command, tmp_path: Path, view: str, given: str, request: pytest.FixtureRequest) -> None:
    target = tmp_path / "out"
    for name, form in ANALYSES[view].formats.items():
        if form.needs:
            pytest.importorskip(form.needs)
        if name in PICTURES and view != "time":  # one view draws them all
            continue
        outcome = run("render", request.getfixturevalue(given), "--view", view, "--format", name, "-o", target, "--force")
        assert (outcome.code, outcome.out) == (0, "")
        data = target.read_bytes()
        assert data.startswith(STARTS.get(name, b""))
        if view == "instruction" and name in ("md", "text", "html"):
            text = data.decode()
            assert "Instruction" in text
            assert "[FLOP/B]" not in text.partition('id="advice"')[0]  # rules of the report speak of all its rooflines
            assert "bank conflict" in text


def test_refusals(run: Command, timed: Path, counted: Path, sampled: Path, tmp_path: Path) -> None:
    for path, words, about, code in (
        (timed, "--view time --level l1,l2", "l1,l2", 2),
        (timed, "--view time --source embedded", "embedded", 2),
        (timed, "--launch-latency 5us", "5e-06 s", 2),
        (timed, "--view instruction --launch-latency 5us", "5e-06 s", 2),
        (counted, "--view instruction --precision fp64", "fp64", 1),
        (counted, "--view instruction --level l4", "l4", 1),
        (counted, "--view instruction --source embedded", "embedded", 2),
        (sampled, "--view phases --by application", "application", 2),
        (sampled, "--view phases --source embedded", "embedded", 2),
        (sampled, "--view phases --launch-latency 4us", "4e-06 s", 2),
    ):
        assert_refused(run("show", path, *words.split()), about, code)
    for view, table in (("time", "roofs"), ("time", "kernels"), ("roofline", "machines"), ("roofline", "absent")):
        target = tmp_path / "out.csv"
        assert_refused(run("render", timed, "--view", view, "--table", table, "-o", target), table, code=2)
        assert not target.exists()


class TestTime:
    def test_latencies(self, run: Command) -> None:
        for text in ("4.2us", "4.2 \N{MICRO SIGN}s", "4200NS", "0.0042ms", "4.2e-6s", "4.2E-6 s", "0.42e1us"):
            assert latency(text) == pytest.approx(4.2e-6)
        assert latency(".5us") == pytest.approx(5e-7)
        for text in ("4.2", "us", "0us", "-1us", "1e999s", "1 minute", "nan s", "1,5us"):
            outcome = run("show", "r", "--view", "time", f"--launch-latency={text}")
            assert (outcome.code, "is no time like 4.2us" in outcome.err) == (2, True)

    def test_launches_of_a_kernel_are_one_row(self, run: Command, timed: Path) -> None:
        document = shown(run, timed, "time", "--launch-latency", "4us")
        [point] = document["points"]
        assert (point["kernel"], point["invocations"], point["launch"]) == ("kernel", 3, -1)
        assert (point["seconds"], point["overhead_seconds"]) == pytest.approx((3e-3, 12e-6))
        assert [(one["kernel"], one["status"], one["traffic"]) for one in document["absent"]] == [("copy", "zero-flop", 1e6)]
        assert [one["invocations"] for one in shown(run, timed, "time", "--by", "launch")["points"]] == [1, 1, 1]
        assert len(shown(run, timed, "roofline")["kernels"]) == 4
        for level, moved in (("l1", 3e9), ("l2", 1.5e9), ("dram", 7.5e8)):
            document = shown(run, timed, "time", "--level", level)
            assert document["points"][0]["traffic"] == pytest.approx(moved)
            assert {one["level"] for one in document["machines"]} == {"l1", "l2", "dram"}
        out = run("render", timed, "--view", "time", "--format", "csv", "--table", "machines", "-o", "-").out
        assert out.splitlines()[0].split(",") == [one.name for one in columns.TIME_MACHINES]

    def test_sweep(self, run: Command, timed: Path) -> None:
        measured = ("--ceilings", DEMO / "gpp-v100-ceilings.json", "--launch-latency", "4.2us")
        out = run("show", DEMO / "gpp-v100.ncu-rep", "--view", "time", "--label", "nvtx", *measured).out
        rows = [line.split() for line in out.splitlines() if line.startswith("sigma_gpp_gpu")]
        assert [(row[1], row[-1]) for row in rows[:2]] == [("nw=1", "1.03x"), ("nw=2", "1.09x")]
        assert "29.7 MFLOP" in out
        without = run("show", timed, "--view", "time", "--width", "200").out
        assert "give --ceilings from `ncu-roofline bench run` on this GPU, or --launch-latency TIME" in without


class TestInstruction:
    def test_show(self, run: Command, counted: Path) -> None:
        outcome = run("show", counted, "--view", "instruction", "--width", 200)
        assert outcome.code == 0
        lines = [" ".join(line.split()) for line in outcome.out.splitlines()]
        assert any(line.endswith(("inst/TXN", "intensity [inst/TXN]")) for line in lines)
        answer = "stencil 1 ms 33.3 % latency 6.2x 9.7x 839 \N{MICRO SIGN}s DRAM 16 %"
        assert f"{answer} Warp instructions 0.847 2.56 5.12 40 GIPS 16.1 % 50.0 %" in lines
        assert "Instruction issue 609 GIPS" in lines
        assert "L1/TEX 609 GTXN/s" in lines
        assert "Global loads, unit stride, 8 B: 8 sectors 0.125 inst/TXN" in lines
        assert "Shared loads and stores, 2-way bank conflict 0.5 inst/TXN" in lines
        assert any(line.startswith("1 kernel without metrics of executed instructions") for line in lines)
        assert "Warp instructions" in outcome.out.splitlines()[-1]
        assert "`ncu-roofline explain --view instruction` tells how to add them" in outcome.out

    def test_json_and_csv(self, run: Command, counted: Path, tmp_path: Path) -> None:
        document = shown(run, counted, "instruction")
        assert document["view"] == "instruction"
        assert (document["units"]["intensity"], document["units"]["work"]) == ("inst/txn", "inst")
        found = [point["precision"] for point in document["points"]]
        assert {name: found.count(name) for name in found} == {"inst": 3, "inst.global_ld": 1, "inst.shared": 1}
        assert {row["kernel"]: row["status"] for row in document["kernels"]} == {"stencil": "ok", "bare": "no-work-metrics"}
        assert [row["work"] for row in document["kernels"]] == [40_000_000, None]
        assert {roof["unit"] for roof in document["roofs"]} == {"inst/s", "txn/s", "inst/txn"}
        for by in ("kernel", "application"):
            points = shown(run, counted, "instruction", "--by", by)["points"]
            assert {point["work"] for point in points if point["precision"] == "inst"} == {40_000_000}
        done = run("render", counted, "--view", "instruction", "--format", "csv", "-o", "-")
        rows = list(csv.DictReader(io.StringIO(done.out)))
        loads = next(row for row in rows if row["precision"] == "inst.global_ld")
        assert (loads["unit"], float(loads["intensity"]), loads["lanes"]) == ("inst", 0.125, "")
        assert {float(row["lanes"]) for row in rows if row["precision"] == "inst"} == {0.5}
        parquet = pytest.importorskip("pyarrow.parquet")
        run("render", counted, "--view", "instruction", "-o", tmp_path / "points.parquet")
        assert parquet.read_schema(tmp_path / "points.parquet").field("bandwidth").metadata[b"unit"] == b"txn/s"

    def test_explain_gives_the_command(self, run: Command, counted: Path, tmp_path: Path) -> None:
        (one,) = json.loads(run("explain", counted, "--view", "instruction", "--json").out)
        assert one["missing"] == ["inst", "inst.global_ld", "inst.shared"]
        assert [kind["launches"] for kind in one["precisions"]] == [1, 1, 1]
        assert "smsp__inst_executed.sum," in one["command"]
        text = run("explain", counted, "--view", "instruction").out
        assert "To add Warp instructions, Global loads, Shared loads and stores, run:" in text
        whole = report(tmp_path / "whole.ncu-rep", kernel({**complete(), **executed(100), **COUNTS}))
        assert "Nothing is missing for what was asked.\n" in run("explain", whole, "--view", "instruction").out
        bare = report(tmp_path / "bare.ncu-rep", kernel(complete()))
        text = " ".join(run("show", bare, "--view", "instruction", "--notes").out.split())
        assert "No kernel can be drawn." in text
        assert "Missing metrics: smsp__inst_executed.sum. The command" in text
        assert "The command ncu-roofline explain --view instruction prints the ncu command that adds them." in text


class TestPhases:
    def test_show(self, run: Command, sampled: Path, tmp_path: Path) -> None:
        lines = run("show", sampled, "--view", "phases", "--width", 100).out.splitlines()
        (heading,) = [line for line in lines if line.startswith("phased: 1 ms in 40 slices")]
        table = lines[lines.index(heading) + 3 :]
        assert [line.split()[0] for line in table[:4]] == ["SM", "FP64", "L2", "DRAM"]
        assert any("1 launch without samples over time" in line for line in lines)
        assert all(len(line) <= 100 for line in lines)
        both = (Made(TWO_PHASES, name=f"void {name}(int *)", seconds=1e-3).kernel() for name in "ab")
        out = run("show", report(tmp_path / "two.ncu-rep", *both), "--view", "phases").out
        assert "a: 1 ms in 40 slices" in out
        assert "b: 1 ms in 40 slices" in out

    def test_json(self, run: Command, sampled: Path) -> None:
        document = shown(run, sampled, "phases")
        assert document["view"] == "phases"
        assert {"points", "bands", "sampled", "roofs"} < set(document)
        assert [row["status"] for row in document["sampled"]] == ["ok", "no-samples"]
        assert len(document["points"]) == MOST_SLICES
        document = shown(run, sampled, "phases", "--clock", "max", "--level", "dram")  # options of the model
        assert {row["level"] for row in document["points"]} == {"dram"}
        assert shown(run, sampled, "phases", "--precision", "fp32")["points"] == []

    def test_launches_without_samples_are_told(self, run: Command, sampled: Path, tmp_path: Path) -> None:
        """Beside a picture or a page, which may be empty, and where a report is explained."""
        made = run("render", sampled, "--view", "phases", "-o", tmp_path / "x.html")
        assert made.code == 0
        assert "1 launch without samples over time" in made.err
        assert "--section PmSampling" in made.err
        said = " ".join(run("explain", sampled, "--view", "phases").out.split())
        assert "note 1 launch without samples over time" in said
        said = " ".join(run("explain", sampled, "--view", "phases", "--launch", "0").out.split())
        assert "note all launches have samples over their time" in said

    def test_without_dots_or_samples_a_table_holds_something_else(self, run: Command, tmp_path: Path) -> None:
        words = ("--view", "phases", "--format", "csv", "-o", "-")
        made = Made((Group({SM: steps(20, 60)}), Group({DRAM: steps(80, 20)})))
        bands = report(tmp_path / "bands.ncu-rep", made.kernel())
        done = run("render", bands, *words)
        assert done.out.splitlines()[0].startswith("report,launch,kernel,device,label,step,slice,begin,end,band")
        assert "holds the bands" in done.err
        assert len(run("render", bands, *words, "--table", "points").out.splitlines()) == 1
        done = run("render", report(tmp_path / "plain.ncu-rep", kernel(complete())), *words)
        assert "no-samples" in done.out
        assert "holds the kernels" in done.err

    def test_paper(self, run: Command, sampled: Path, tmp_path: Path) -> None:
        words = ("render", sampled, "--view", "phases", "-o")
        done = run(*words, tmp_path / "x.png", "--height", "1.5in")
        assert (done.code, "has no room for the picture" in done.err) == (2, True)
        assert not (tmp_path / "x.png").exists()
        assert run(*words, tmp_path / "x.svg", "--preset", "column").code == 0
