"""LIKWID's CSV: regions, threads, groups, versions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ncu_roofline import roofline
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.formats.inputs import likwid
from tests.cli.command import Command, assert_refused
from tests.inputs.likwid_output import CPU, STYLES, output

RUNTIME = "Runtime (RDTSC) [s]"
MEM_DP = {
    RUNTIME: (2.0, 1.5),
    "Clock [MHz]": (2400.0, 2400.0),
    "CPI": (0.5, "inf"),
    "DP [MFLOP/s]": (1000.0, 2000.0),
    "AVX DP [MFLOP/s]": (900.0, 1900.0),
    "Memory read data volume [GBytes]": (6.0, 0.0),
    "Memory bandwidth [MBytes/s]": (5000.0, 0.0),
    "Memory data volume [GBytes]": (10.0, 0.0),
    "Operational intensity": (0.1, "-"),
}


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("version", STYLES)
@pytest.mark.parametrize("region", ["", "triad"])
def test_threads_add_up(tmp_path: Path, version: str, region: str) -> None:
    path = write(tmp_path / "run.csv", output([("MEM_DP", MEM_DP)], region, STYLES[version], calls=10 if region else 0))
    points = roofline(path).points
    assert len(points) == 1
    row = points.iloc[0]
    # 1 GFLOP/s for 2 s and 2 GFLOP/s for 1.5 s; the volume of the socket stands at its first thread.
    assert (row["kernel"], row["precision"], row["level"], row["device"]) == (region or "run", "fp64", "dram", CPU)
    assert row["work"] == pytest.approx(5e9)
    assert row["traffic"] == pytest.approx(10e9)
    assert row["seconds"] == 2.0
    assert row["intensity"] == pytest.approx(0.5)
    assert row["performance"] == pytest.approx(2.5e9)
    assert row["launches"] == (10 if region else 1)


def test_regions_are_points(tmp_path: Path, run: Command) -> None:
    text = output([("MEM_DP", MEM_DP)], "triad", calls=1) + output([("MEM_DP", MEM_DP)], "sweep", calls=2)
    outcome = run("show", write(tmp_path / "run.csv", "hello from the application\n" + text), "--json")
    assert outcome.code == 0, outcome
    assert outcome.err == ""
    assert [point["kernel"] for point in json.loads(outcome.out)["points"]] == ["triad", "sweep"]


VOLUMES = {
    "L2 data volume [GBytes]": "l2",
    "L1 to/from L2 data volume [GBytes]": "l2",
    "L3 data volume [GBytes]": "l3",
    "L2 to/from L3 data volume [GBytes]": "l3",
    "Memory data volume [GBytes]": "dram",
    "DDR Memory data volume [GBytes]": "dram",
    "MCDRAM Memory data volume [GBytes]": "mcdram",
}


@pytest.mark.parametrize("metric", VOLUMES)
def test_levels(tmp_path: Path, metric: str) -> None:
    (point,) = likwid.read(write(tmp_path / "x.csv", output([("G", {RUNTIME: (1.0,), metric: (3.0,)})]))).points
    assert point.traffic == {VOLUMES[metric]: 3e9}


@pytest.mark.parametrize(
    ("cpu", "level"), [("Intel Xeon Phi (Knights Landing) (Co)Processor", "mcdram"), ("Intel SapphireRapids", "hbm")]
)
def test_memory_on_the_package(tmp_path: Path, cpu: str, level: str) -> None:
    text = output([("HBM", {RUNTIME: (1.0,), "Memory data volume [GBytes]": (3.0,)})], cpu_type=cpu)
    assert likwid.read(write(tmp_path / "x.csv", text)).points[0].traffic == {level: 3e9}


@pytest.mark.parametrize(
    ("metric", "precision"),
    [
        ("DP MFLOP/s", "fp64"),
        ("SP [MFLOP/s]", "fp32"),
        ("HP [MFLOP/s]", "fp16"),
        ("MFLOP/s", "fp"),
    ],
)
def test_precisions(tmp_path: Path, metric: str, precision: str) -> None:
    (point,) = likwid.read(write(tmp_path / "x.csv", output([("G", {RUNTIME: (2.0,), metric: (3.0,)})]))).points
    assert point.work == {precision: 6e6}


def test_several_guesses_are_no_count(tmp_path: Path) -> None:
    guesses = {f"DP [MFLOP/s] ({width} assumed)": (1.0,) for width in ("SSE", "AVX", "AVX512")}
    table = likwid.read(
        write(tmp_path / "x.csv", output([("FLOPS_DP", {RUNTIME: (1.0,), **guesses, "L2 data volume [GBytes]": (1.0,)})]))
    )
    assert table.points[0].work == {}
    assert "(AVX assumed)" in table.warnings[0]


def test_groups_measured_in_turns(tmp_path: Path) -> None:
    flops = {RUNTIME: (1.0,), "SP [MFLOP/s]": (100.0,)}
    bytes_ = {RUNTIME: (3.0,), "L3 data volume [GBytes]": (3.0,)}
    (point,) = likwid.read(write(tmp_path / "x.csv", output([("FLOPS_SP", flops), ("L3", bytes_)]))).points
    assert point.seconds == pytest.approx(4.0)
    assert point.work["fp32"] / point.seconds == pytest.approx(100e6)
    assert point.traffic["l3"] / point.seconds == pytest.approx(1e9)
    assert "measured in turns" in point.note


def test_what_is_left_out_is_named(tmp_path: Path) -> None:
    table = likwid.read(
        write(
            tmp_path / "x.csv", output([("G", {**MEM_DP, "Remote data volume [GBytes]": (1.0, 1.0), "Tensor [GFLOP]": (1, 1)})])
        )
    )
    assert table.warnings[0].endswith("metrics that are not used: Remote data volume [GBytes], Tensor [GFLOP].")


GOOD = output([("MEM_DP", MEM_DP)])
BAD = {
    "cut off": GOOD[: GOOD.index("Memory data volume")],
    "cut off in a statistic": GOOD[: GOOD.rindex("Memory data volume")],
    "heading only": "TABLE,Group 1 Metric,MEM_DP,9,,\n",
    "events only": GOOD[: GOOD.index("TABLE,Group 1 Metric")],
    "nothing counted": output([("CLOCK", {RUNTIME: (1.0,), "Clock [MHz]": (2400.0,)})]),
    "no number": GOOD.replace("DP [MFLOP/s],1000.0", "DP [MFLOP/s],many", 1),
    "negative": GOOD.replace("Memory data volume [GBytes],10.0", "Memory data volume [GBytes],-10.0", 1),
    "more values than threads": GOOD.replace("DP [MFLOP/s],1000.0", "DP [MFLOP/s],1,2,3", 1),
    "odd heading": GOOD + "TABLE,Something\n",
}


@pytest.mark.parametrize("bad", BAD)
def test_bad_files_are_refused(tmp_path: Path, run: Command, bad: str) -> None:
    path = write(tmp_path / "bad.csv", BAD[bad])
    assert likwid.recognises(BAD[bad])
    assert_refused(run("show", path), path)
    with pytest.raises(RooflineError):
        roofline(path)


@pytest.mark.parametrize("text", ["STRUCT,Info,3\nCPU name:,x\n", "a TABLE,Group 1 Metric\n", "TABLE,Groups,1\n"])
def test_other_files_are_not_taken(text: str) -> None:
    assert not likwid.recognises(text)
