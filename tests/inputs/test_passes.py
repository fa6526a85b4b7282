"""Files that are passes of one run: read as one where each counted other metrics of the same launches, and never else."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.formats.inputs import open_input
from ncu_roofline.formats.inputs.passes import of_one_run
from ncu_roofline.model import roofline
from tests import factory
from tests.cli.command import Command, assert_refused
from tests.inputs.ncu_tables import IDENTITY, SUMS, Metrics, long, text_of, wide

TIME = {name: SUMS[name] for name in SUMS if name.startswith(("gpu__", "sm__cycles"))}
ADD, MUL, FMA = ({name: SUMS[name]} for name in SUMS if "_op_d" in name)
BYTES = {name: SUMS[name] for name in SUMS if "bytes" in name or "sectors" in name}
LATER = TIME | {"gpu__time_duration.sum": ("msecond", "2.10")}
ALONE = {"device__attribute_display_name": ("", "NVIDIA A100-SXM4-40GB")}


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., str]:
    """A table of launches in a file."""

    def written(name: str, *launches: Metrics, rows: Callable[..., Any] = wide, **identity: str) -> str:
        path = tmp_path / f"{name}.csv"
        facts = IDENTITY | {key.replace("_", " "): value for key, value in identity.items()}
        path.write_text(text_of(rows(*launches, identity=facts)))
        return str(path)

    return written


@pytest.mark.parametrize("rows", [wide, long])
def test_passes_of_a_run_are_what_one_file_with_all_would_be(write: Callable[..., str], rows: Any, run: Command) -> None:
    launch = TIME | ALONE
    paths = [write("a", *[launch | ADD | MUL] * 2), write("b", *[LATER | FMA] * 2, rows=rows), write("c", *[BYTES] * 2)]
    whole = roofline(write("whole", *[launch | ADD | MUL | FMA | BYTES] * 2)).points
    joined = json.loads(run("show", *paths, "--json").out)
    assert {row["report"] for row in joined["points"]} == {"a.csv + b.csv + c.csv"}
    for name in ("precision", "level", "launch", "work", "traffic", "seconds", "performance", "intensity"):
        assert [row[name] for row in joined["points"]] == whole[name].tolist()
    out = run("show", *paths)
    assert "1 kernel, 2 launches" in out.out
    assert "2 launches, of which each counts other metrics" in out.err
    assert "Times are those of a.csv; those of b.csv are 5.0 % longer in all, of one launch up to 5.0 % apart" in out.err
    assert "To add FP32, FP16, run:" in run("explain", *paths).out  # nothing that one of the passes has
    assert roofline(" + ".join(paths)).points["work"].sum() == whole["work"].sum()


@pytest.mark.parametrize(("moved", "merged"), [("1.50", True), ("1.55", True), ("1.80", False)])
def test_companions_of_counters_may_be_in_all_passes(write: Callable[..., str], run: Command, moved: str, merged: bool) -> None:
    dram = {"dram__bytes.sum": SUMS["dram__bytes.sum"]}
    again = {"dram__bytes.sum": ("Gbyte", moved)}
    paths = [write("base", TIME | dram | ADD), write("tensor", LATER | again | FMA), write("alone", MUL)]
    out = run("show", *paths, "--json")
    reports = {row["report"] for row in json.loads(out.out)["kernels"]}
    if not merged:
        assert len(reports) == 3
        assert "dram__bytes.sum (16.7 %) too differently for passes of one run" in out.err
        return
    assert reports == {"base.csv + tensor.csv + alone.csv"}
    apart = {"1.50": "0.0 %", "1.55": "3.2 %"}[moved]
    assert f"Of what several count the first stands: dram__bytes.sum ({apart} apart in all)." in out.err
    (dot,) = [row for row in json.loads(out.out)["points"] if row["level"] == "dram"]
    assert (dot["work"], dot["traffic"]) == (3e9, 1.5e9)


def test_sides_of_a_comparison_are_joined_by_name(write: Callable[..., str], run: Command) -> None:
    sides = [f"{write(f'{side}1', TIME | ADD | MUL | FMA)} + {write(f'{side}2', BYTES)}" for side in "ab"]
    assert "b1.csv + b2.csv against a1.csv + a2.csv" in run("compare", *sides).out


def other(write: Callable[..., str], **more: Any) -> list[str]:
    return [write("a", TIME | FMA, TIME | FMA), write("b", BYTES, BYTES, **more)]


@pytest.mark.parametrize(
    "paths",
    [
        lambda write: [write("a", SUMS), write("b", SUMS)],  # before and after, or two ranks
        lambda write: [write("a", SUMS), write("b", TIME | BYTES)],
        lambda write: [write("a", TIME | FMA), write("b", LATER)],  # which adds nothing
        lambda write: [write("a", TIME | FMA), write("b", BYTES, BYTES)],
        lambda write: [write("a", TIME | FMA), write("b", BYTES), write("c", SUMS)],
        lambda write: other(write, Kernel_Name="void ns::axpy<float>(float *, int)"),
        lambda write: other(write, Grid_Size="(54, 2, 1)"),
        lambda write: other(write, Block_Size="(128, 1, 1)"),
        lambda write: other(write, CC="9.0"),
    ],
)
def test_what_is_no_pass_of_the_same_run_stays_apart(write: Callable[..., str], paths: Any, run: Command) -> None:
    given = paths(write)
    assert of_one_run(given, open_input)[0] is None
    found = json.loads(run("show", *given, "--json").out)
    assert {row["report"] for row in found["kernels"]} == {Path(path).name for path in given}
    with pytest.raises(RooflineError, match="Cannot join"):
        open_input(" + ".join(given))


def test_that_launches_differ_is_said(write: Callable[..., str], run: Command) -> None:
    paths = write("a", TIME | FMA), write("b", BYTES, BYTES)
    assert "a.csv, b.csv count different metrics of other launches, so they are not merged." in run("show", *paths).err


def test_steps_of_a_sweep_are_no_passes(write: Callable[..., str], run: Command) -> None:
    paths = write("n1", TIME | FMA), write("n2", LATER | BYTES)
    found = json.loads(run("show", *paths, "--trajectory", "--json").out)
    assert [row["step"] for row in found["kernels"]] == [0, 1]


def test_reports_are_passes_as_well_with_their_opcodes(tmp_path: Path, run: Command) -> None:
    about, time = factory.A100, factory.timing()
    counted = factory.opcodes(DFMA=100.0)
    kernels = [
        factory.kernel(about | time | factory.flops("f", fma=1000), instances=counted),
        factory.kernel(about | factory.timing(1.5e-3) | factory.traffic(dram=4000)),
    ]
    paths = [str(factory.report(tmp_path / f"{number}.ncu-rep", one)) for number, one in enumerate(kernels)]
    merged, _ = of_one_run(paths, open_input)
    assert merged is not None
    alone = roofline(paths[0])
    assert {name: work.tolist() for name, work in roofline(merged).work.items()} == {
        name: work.tolist() for name, work in alone.work.items()
    }
    (dot, *_) = roofline(merged).points.query("precision == 'fp32'").to_dict("records")
    assert (dot["work"], dot["traffic"], dot["seconds"]) == (2000, 4000, 1e-3)
    assert "50.0 % longer" in run("show", *paths).err


def test_an_unreadable_pass_is_told_as_ever(write: Callable[..., str], tmp_path: Path, run: Command) -> None:
    path = tmp_path / "none.csv"
    assert_refused(run("show", write("a", TIME | FMA), str(path)), path)


def test_no_two_real_reports_are_passes(real_reports: dict[str, Path]) -> None:
    pairs = list(combinations(sorted(map(str, real_reports.values())), 2))
    assert [pair for pair in pairs[::5] if of_one_run(pair, open_input)[0]] == []
