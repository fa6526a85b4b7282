"""`--view time` on the command line: options, defaults, every format."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ncu_roofline.analyses.time import frames as columns
from ncu_roofline.cli.options import latency
from tests.cli.command import Command, assert_refused
from tests.factory import A100, NO_WORK, complete, kernel, report, timing, traffic

DEMO = Path(__file__).parents[2] / "ncu_roofline" / "data" / "demo"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Three launches of one kernel, and a copy."""
    copy = {**A100, **timing(), **NO_WORK, **traffic(10**6, 10**4, 10**6)}
    return report(tmp_path / "app.ncu-rep", *[kernel(complete())] * 3, kernel(copy, "void copy(int *)"))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("4.2us", 4.2e-6),
        ("4.2 \N{MICRO SIGN}s", 4.2e-6),
        ("4200NS", 4.2e-6),
        ("0.0042ms", 4.2e-6),
        ("1e-5s", 1e-5),
        (".5us", 5e-7),
    ],
)
def test_latencies(text: str, seconds: float) -> None:
    assert latency(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["4.2", "us", "0us", "-1us", "1e999s", "1 minute", "nan s", "1,5us"])
def test_no_latencies(run: Command, text: str) -> None:
    outcome = run("show", "r", "--view", "time", f"--launch-latency={text}")
    assert outcome.code == 2
    assert "is no time like 4.2us" in outcome.err


def test_launches_of_a_kernel_are_one_row(run: Command, source: Path) -> None:
    document = json.loads(run("show", source, "--view", "time", "--launch-latency", "4us", "--json").out)
    [point] = document["points"]
    assert (point["kernel"], point["invocations"], point["launch"]) == ("kernel", 3, -1)
    assert (point["seconds"], point["overhead_seconds"]) == pytest.approx((3e-3, 12e-6))
    assert [(one["kernel"], one["status"], one["traffic"]) for one in document["absent"]] == [("copy", "zero-flop", 1e6)]
    single = json.loads(run("show", source, "--view", "time", "--by", "launch", "--json").out)
    assert [one["invocations"] for one in single["points"]] == [1, 1, 1]
    ordinary = json.loads(run("show", source, "--json").out)
    assert len(ordinary["kernels"]) == 4


@pytest.mark.parametrize("level", ["l1", "l2", "dram"])
def test_level(run: Command, source: Path, level: str) -> None:
    document = json.loads(run("show", source, "--view", "time", "--level", level, "--json").out)
    assert document["points"][0]["traffic"] == pytest.approx({"l1": 3e9, "l2": 1.5e9, "dram": 7.5e8}[level])
    assert {one["level"] for one in document["machines"]} == {"l1", "l2", "dram"}


def test_sweep(run: Command) -> None:
    words = ("--view", "time", "--label", "nvtx", "--ceilings", DEMO / "gpp-v100-ceilings.json", "--launch-latency", "4.2us")
    out = run("show", DEMO / "gpp-v100.ncu-rep", *words).out
    rows = [line.split() for line in out.splitlines() if line.startswith("sigma_gpp_gpu")]
    assert [(row[1], row[-1]) for row in rows[:2]] == [
        ("nw=1", "1.03x"),
        ("nw=2", "1.09x"),
    ]
    assert "29.7 MFLOP" in out


def test_without_latency_the_way_to_one_is_said(run: Command, source: Path) -> None:
    assert (
        "give --ceilings from `ncu-roofline bench run` on this GPU, or --launch-latency TIME"
        in run("show", source, "--view", "time", "--width", "200").out
    )


@pytest.mark.parametrize(
    ("words", "about"),
    [
        (("--view", "time", "--level", "l1,l2"), "l1,l2"),
        (("--view", "time", "--source", "embedded"), "embedded"),
        (("--launch-latency", "5us"), "5e-06 s"),
        (("--view", "instruction", "--launch-latency", "5us"), "5e-06 s"),
    ],
)
def test_options_that_do_not_go_together(run: Command, source: Path, words: tuple[str, ...], about: str) -> None:
    assert_refused(run("show", source, *words), about, code=2)


@pytest.mark.parametrize(
    ("view", "table"), [("time", "roofs"), ("time", "kernels"), ("roofline", "machines"), ("roofline", "absent")]
)
def test_tables_of_another_view(run: Command, source: Path, tmp_path: Path, view: str, table: str) -> None:
    target = tmp_path / "out.csv"
    assert_refused(run("render", source, "--view", view, "--table", table, "-o", target), table, code=2)
    assert not target.exists()


@pytest.mark.sampled("html", "csv", "txt")
@pytest.mark.parametrize("suffix", ["html", "png", "svg", "pdf", "csv", "json", "md", "txt", "parquet"])
def test_formats(run: Command, source: Path, tmp_path: Path, suffix: str) -> None:
    if suffix == "parquet":
        pytest.importorskip("pyarrow")
    target = tmp_path / f"out.{suffix}"
    outcome = run("render", source, "--view", "time", "-o", target)
    assert (outcome.code, outcome.out, outcome.err) == (0, "", f"Wrote {target}\n")
    begins = {
        "html": b"<!DOCTYPE",
        "png": b"\x89PNG",
        "svg": b"<?xml",
        "pdf": b"%PDF",
        "json": b'{\n"schema"',
        "md": b"# Time",
        "parquet": b"PAR1",
    }
    assert target.read_bytes().startswith(begins.get(suffix, b""))


def test_csv_of_the_machines(run: Command, source: Path) -> None:
    out = run("render", source, "--view", "time", "--format", "csv", "--table", "machines", "-o", "-").out
    assert out.splitlines()[0].split(",") == [one.name for one in columns.TIME_MACHINES]
