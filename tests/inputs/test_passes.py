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
DRAM = {"dram__bytes.sum": SUMS["dram__bytes.sum"]}
LATER = TIME | {"gpu__time_duration.sum": ("msecond", "2.10")}
ALONE = {"device__attribute_display_name": ("", "NVIDIA A100-SXM4-40GB")}
FIRST, SECOND = (TIME | FMA,) * 2, (BYTES,) * 2


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
    sides = " + ".join(paths), " + ".join(write(f"{name}2", *[TIME | more] * 2) for name, more in (("a", ADD), ("b", BYTES)))
    assert "a2.csv + b2.csv against a.csv + b.csv + c.csv" in run("compare", *sides).out
    steps = json.loads(run("show", *paths[:2], "--trajectory", "--json").out)["kernels"]  # a sweep is no passes
    assert {(row["report"], row["step"]) for row in steps} == {("a.csv", 0), ("b.csv", 1)}


@pytest.mark.parametrize(("moved", "apart"), [("1.50", "0.0 %"), ("1.55", "3.2 %"), ("1.80", "")])
def test_companions_of_counters_may_be_in_all_passes(write: Callable[..., str], run: Command, moved: str, apart: str) -> None:
    again = {"dram__bytes.sum": ("Gbyte", moved)}
    out = run("show", write("base", TIME | DRAM | ADD), write("tensor", LATER | again | FMA), write("alone", MUL), "--json")
    reports = {row["report"] for row in json.loads(out.out)["kernels"]}
    if not apart:
        assert len(reports) == 3
        assert "dram__bytes.sum (16.7 %) too differently for passes of one run" in out.err
        return
    assert reports == {"base.csv + tensor.csv + alone.csv"}
    assert f"Of what several count the first stands: dram__bytes.sum ({apart} apart in all)." in out.err
    (dot,) = [row for row in json.loads(out.out)["points"] if row["level"] == "dram"]
    assert (dot["work"], dot["traffic"]) == (3e9, 1.5e9)


# Metrics of the launches of each file, and what is another fact of the last one.
APART: list[tuple[list[tuple[Metrics, ...]], dict[str, str]]] = [
    ([(SUMS,), (SUMS,)], {}),  # before and after, or two ranks
    ([(SUMS,), (TIME | BYTES,)], {}),
    ([(TIME | FMA,), (LATER,)], {}),  # which adds nothing
    ([(TIME | FMA,), SECOND], {}),
    ([(TIME | FMA,), (BYTES,), (SUMS,)], {}),
    ([FIRST, SECOND], {"Kernel_Name": "void ns::axpy<float>(float *, int)"}),
    *(([FIRST, SECOND], fact) for fact in ({"Grid_Size": "(54, 2, 1)"}, {"Block_Size": "(128, 1, 1)"}, {"CC": "9.0"})),
]


@pytest.mark.parametrize(("files", "fact"), APART)
def test_what_is_no_pass_of_the_same_run_stays_apart(
    write: Callable[..., str], files: list[tuple[Metrics, ...]], fact: dict[str, str], run: Command
) -> None:
    given = [write(f"f{at}", *one, **(fact if at else {})) for at, one in enumerate(files)]
    assert of_one_run(given, open_input)[0] is None
    out = run("show", *given, "--json")
    assert {row["report"] for row in json.loads(out.out)["kernels"]} == {Path(path).name for path in given}
    other = files == [(TIME | FMA,), SECOND]  # of launches, which is said
    assert ("f0.csv, f1.csv count different metrics of other launches, so they are not merged." in out.err) == other or fact
    with pytest.raises(RooflineError, match="Cannot join"):
        open_input(" + ".join(given))
    absent = Path(given[0]).with_name("none.csv")
    assert_refused(run("show", given[0], str(absent)), absent)


def test_reports_are_passes_as_well_with_their_opcodes(tmp_path: Path, run: Command) -> None:
    about, counted = factory.A100, factory.opcodes(DFMA=100.0)
    kernels = [
        factory.kernel(about | factory.timing() | factory.flops("f", fma=1000), instances=counted),
        factory.kernel(about | factory.timing(1.5e-3) | factory.traffic(dram=4000)),
    ]
    paths = [str(factory.report(tmp_path / f"{number}.ncu-rep", one)) for number, one in enumerate(kernels)]
    merged, _ = of_one_run(paths, open_input)
    assert merged is not None
    works = [{name: work.tolist() for name, work in roofline(one).work.items()} for one in (merged, paths[0])]
    assert works[0] == works[1]
    (dot, *_) = roofline(merged).points.query("precision == 'fp32'").to_dict("records")
    assert (dot["work"], dot["traffic"], dot["seconds"]) == (2000, 4000, 1e-3)
    assert "50.0 % longer" in run("show", *paths).err


def test_no_two_real_reports_are_passes(real_reports: dict[str, Path]) -> None:
    pairs = list(combinations(sorted(map(str, real_reports.values())), 2))
    assert [pair for pair in pairs[::25] if of_one_run(pair, open_input)[0]] == []
