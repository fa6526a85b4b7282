"""Intel Advisor's survey and roofs as CSV."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from ncu_roofline import roofline
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.formats.inputs import intel, open_ceilings
from tests.cli.command import Command, assert_refused

PREAMBLE = (
    'sep={0}\n\n"Intel(R) Advisor Command Line Tool\nCopyright (C). All rights reserved."\n'
    '"Survey Data version=1.1.0"{0}"x"\n\n'
)
COLUMNS = {
    "ID": "id",
    "Function Call Sites and Loops": "name",
    "Total Time": "total",
    "Self Time": "time",
    "Self Elapsed Time": "elapsed",
    "Self GFLOPS": "rate",
    "Self AI": "ai",
    "Self GFLOP": "gflop",
    "Total GFLOP": "all",
    "Self Memory GB": "l1",
    "Self L2 GB": "l2",
    "Self DRAM GB": "dram",
    "Data Types": "types",
    "Source Location": "where",
}
TRIAD = {"name": "[loop in triad at a.c:7]", "time": "7.5s", "elapsed": "2.000s", "rate": "5", "ai": "0.25", "gflop": "10"} | {
    "l1": "40",
    "l2": "20",
    "dram": "16",
    "types": "Float64; UInt64",
}


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def survey(
    *rows: Mapping[str, str], columns: Sequence[str] = tuple(COLUMNS), delimiter: str = ",", preamble: bool = True
) -> str:
    """A report as `advisor --report=survey --format=csv --show-all-columns` writes it."""
    lines = [
        columns,
        *([{"id": str(number), **row}.get(COLUMNS.get(name, name), "") for name in columns] for number, row in enumerate(rows)),
    ]
    table = "\n".join(delimiter.join(f'"{cell}"' for cell in line) for line in lines) + "\n"
    return (PREAMBLE.format(delimiter) if preamble else "") + table


@pytest.mark.parametrize("delimiter", [",", "\t", ";"])
@pytest.mark.parametrize("preamble", [True, False])
def test_a_loop_by_what_it_does_itself(tmp_path: Path, delimiter: str, preamble: bool) -> None:
    points = roofline(write(tmp_path / "s.csv", survey(TRIAD, delimiter=delimiter, preamble=preamble))).points
    rows = points.set_index("level")
    assert set(points["precision"]) == {"fp64"}
    assert rows["intensity"].to_dict() == pytest.approx({"l1": 0.25, "l2": 0.5, "dram": 0.625})
    assert rows["performance"].tolist() == pytest.approx([5e9] * 3)
    assert "cache simulation" in rows.loc["dram", "notes"]


def test_rows_of_the_python_interface(tmp_path: Path, run: Command) -> None:
    columns = (
        "function_call_sites_and_loops",
        "self_gflop",
        "self_elapsed_time",
        "self_loaded_gb",
        "self_stored_gb",
        "self_time",
    )
    text = "\t" + "\t".join(columns) + "\n0\t[loop in f at f.c:1]\t4\t2.0\t6\t2\t2.0\n1\tmain\t\t\t\t\t0.5\n"
    outcome = run("show", write(tmp_path / "s.csv", text), "--json")
    assert outcome.code == 0, outcome
    (point,) = json.loads(outcome.out)["points"]
    assert (point["precision"], point["level"]) == ("fp", "l1")
    assert (point["intensity"], point["performance"]) == (pytest.approx(0.5), pytest.approx(2e9))
    assert 'the time is "Self Time", which is summed over the threads, for main' in outcome.err


@pytest.mark.parametrize(
    ("types", "precision"),
    [("Float64", "fp64"), ("Float32; Int32", "fp32"), ("Float32; Float64", "fp"), ("", "fp"), ("Int64", "fp")],
)
def test_precision(tmp_path: Path, types: str, precision: str) -> None:
    (point,) = intel.read_advisor(write(tmp_path / "s.csv", survey({**TRIAD, "types": types}))).points
    assert point.work == {precision: 10e9}


def test_the_rate_stands_in_for_the_operations(tmp_path: Path) -> None:
    (point,) = intel.read_advisor(write(tmp_path / "s.csv", survey({**TRIAD, "gflop": ""}))).points
    assert point.work == {"fp64": pytest.approx(10e9)}
    assert "Self GFLOPS" in point.columns
    (point,) = intel.read_advisor(write(tmp_path / "t.csv", survey({**TRIAD, "elapsed": ""}))).points
    assert point.seconds == pytest.approx(2.0)


def test_parts_of_a_loop_only_without_the_loop(tmp_path: Path) -> None:
    part = {**TRIAD, "name": "[child] [loop in triad at a.c:7]"}
    empty = {"name": "[loop in copy at a.c:9]"}
    other = {**TRIAD, "name": "[child] [loop in copy at a.c:9]"}
    points = intel.read_advisor(write(tmp_path / "s.csv", survey(TRIAD, part, empty, other))).points
    assert [point.name for point in points] == [TRIAD["name"], empty["name"], other["name"]]


def test_times_below_the_smallest_are_no_numbers(tmp_path: Path) -> None:
    point = intel.read_advisor(write(tmp_path / "s.csv", survey(TRIAD, {"name": "tiny", "time": "< 0.001s"}))).points[1]
    assert (point.name, math.isnan(point.seconds), point.work) == ("tiny", True, {})


GOOD = survey(TRIAD)
BAD = {
    "cut off in a cell": GOOD[:-20],
    "cut off behind a cell": GOOD[: GOOD.rindex(',"Float64')],
    "no rows": survey(),
    "times only": survey(TRIAD, columns=("ID", "Function Call Sites and Loops", "Self Time", "Total GFLOP")),
    "no number": survey({**TRIAD, "gflop": "ten"}),
    "negative": survey({**TRIAD, "l1": "-3"}),
    "no time": survey({**TRIAD, "elapsed": "soon"}),
    "another unit of time": survey({**TRIAD, "elapsed": "2 hours"}),
    "bytes with a unit": survey({**TRIAD, "dram": "3 GiB"}),
}


@pytest.mark.parametrize("bad", BAD)
def test_bad_files_are_refused(tmp_path: Path, run: Command, bad: str) -> None:
    path = write(tmp_path / "bad.csv", BAD[bad])
    assert intel.recognises_advisor(BAD[bad])
    assert_refused(run("show", path), path)
    with pytest.raises(RooflineError):
        roofline(path)


ROOFS = """"Roofs"
Name,Bandwidth,Type,Device
DRAM Bandwidth (single node),80000000000,memory,CPU
DRAM Bandwidth,100000000000,memory,CPU
L1 Bandwidth,2000000000000,memory,CPU
DP Vector FMA Peak,1000000000000,compute,CPU
DP Vector Add Peak,500000000000,compute,CPU
Scalar Add Peak,50000000000,compute,CPU
"""


def test_roofs_are_ceilings(tmp_path: Path, run: Command) -> None:
    roofs = write(tmp_path / "roofs.csv", ROOFS)
    by_id = open_ceilings(roofs).by_id
    assert {name: (one.value, one.unit) for name, one in by_id.items()} == {
        "dram": (1e11, "B/s"),
        "l1": (2e12, "B/s"),
        "fp64.fma": (1e12, "FLOP/s"),
        "fp64.nofma": (5e11, "FLOP/s"),
    }
    outcome = run("show", write(tmp_path / "s.csv", GOOD), "--ceilings", roofs, "--json")
    assert outcome.code == 0, outcome
    dram = next(point for point in json.loads(outcome.out)["points"] if point["level"] == "dram")
    assert dram["attainable"] == pytest.approx(0.625 * 1e11)
    assert dram["fraction"] == pytest.approx(5e9 / 0.625e11)
    assert dram["roof_origin"] == "measured"


BAD_ROOFS = {
    "no number": ROOFS.replace("2000000000000", "fast"),
    "cut off": ROOFS[: ROOFS.index("L1 Bandwidth")] + "L1 Bandwidth,2000\n",
    "none known": "Name,Bandwidth,Type,Device\nL1 Bandwidth (single-threaded),1,memory,CPU\n",
}


@pytest.mark.parametrize("bad", BAD_ROOFS)
def test_bad_roofs_are_refused(tmp_path: Path, run: Command, bad: str) -> None:
    path = write(tmp_path / "roofs.csv", BAD_ROOFS[bad])
    assert intel.recognises_roofs(BAD_ROOFS[bad])
    assert_refused(run("show", write(tmp_path / "s.csv", GOOD), "--ceilings", path), path)


def test_roofs_are_no_kernels(tmp_path: Path, run: Command) -> None:
    path = write(tmp_path / "roofs.csv", ROOFS)
    assert_refused(run("show", path), path)


@pytest.mark.parametrize(
    "text", ["kernel,flops,bytes\n", "Name,Bandwidth,Type\nx,1,memory\n", "Function Call Sites and Loops\n"]
)
def test_other_files_are_not_taken(text: str) -> None:
    assert not intel.recognises_advisor(text)
    assert not intel.recognises_roofs(text)
