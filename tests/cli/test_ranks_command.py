"""`ncu-roofline ranks`: who stands out is said in words, and the tables go where they are sent."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from ncu_roofline.analyses.ranks import RANK_KERNELS, RANK_POINTS, RANK_RANKS
from ncu_roofline.base.units import UNITS
from ncu_roofline.cli import executors
from tests.analyses.ranks_made import KERNELS, Faults, write_ranks
from tests.cli.command import Command, assert_no_leftovers, assert_refused

TABLES = {"kernels": RANK_KERNELS, "ranks": RANK_RANKS, "points": RANK_POINTS}
MANY = 40
FAULTS = Faults(slow={3}, uneven={5}, skipping={7, 8, 9, 11})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty ranks."""
    found = tmp_path_factory.mktemp("many")
    write_ranks(found, MANY, FAULTS)
    return found


def test_the_text_names_outliers_causes_and_missing_ranks(run: Command, folder: Path) -> None:
    outcome = run("ranks", folder, "--width", 200)
    assert (outcome.code, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert lines[0].startswith("40 ranks, 4 kernels, 468 launches, NVIDIA A100-SXM4-40GB, ")
    assert lines[0].endswith("Ranks told by numbers in the paths.")
    slow = next(line for line in lines if line.startswith("- rank 3 (node0, GPU 0000:44:00.0) is slow in 4 of its 4 kernels"))
    assert slow.endswith("x the median time; slow GPU: longer with the same work and bytes")
    uneven = next(line for line in lines if line.startswith("- rank 5 (node1, GPU 0000:42:00.0) is slow in solve<1>: "))
    assert uneven.endswith("x the median time; uneven work: 2.00 x the FLOPs")
    assert "- solve<2> did not run on 4 ranks: 7-9, 11" in lines


def test_the_text_fits(run: Command, folder: Path) -> None:
    for width in (60, 100):
        outcome = run("ranks", folder, "--width", width)
        assert max(map(len, outcome.out.splitlines())) <= width
        assert "max/mean" in outcome.out
        assert "of roof" in outcome.out


def test_data(run: Command, folder: Path, tmp_path: Path) -> None:
    document = json.loads(run("ranks", folder, "--json").out, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert (document["schema"], document["view"]) == ("ncu-roofline", "ranks")
    assert set(document["units"].values()) <= set(UNITS)
    assert {name: len(document[name]) for name in TABLES} == {"kernels": 4, "ranks": MANY * len(KERNELS) - 4, "points": 12}
    assert {row["rank"] for row in document["ranks"] if row["outlier"]} == {"3", "5"}
    for table, declared in TABLES.items():
        assert list(document[table][0]) == [one.name for one in declared]
        printed = run("ranks", folder, "-o", "-", "--format", "csv", "--table", table).out
        rows = list(csv.DictReader(io.StringIO(printed)))
        assert (list(rows[0]), len(rows)) == ([one.name for one in declared], len(document[table]))
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    target = tmp_path / "out.parquet"
    outcome = run("ranks", folder, "-o", target, "--table", "ranks")
    assert (outcome.code, outcome.out, outcome.err) == (0, "", f"Wrote {target}\n")
    read = parquet.read_table(target)
    assert read.to_pylist() == document["ranks"]
    fields = {field.name: field.metadata[b"unit"].decode() for field in read.schema}
    assert fields == {one.name: one.unit for one in RANK_RANKS}


def test_choices(run: Command, folder: Path) -> None:
    (row,) = json.loads(run("ranks", folder, "--by", "application", "--json").out)["kernels"]
    assert (row["kernel"], row["ranks"], row["launches_min"], row["launches_max"]) == ("all ranks", MANY, 9, 12)
    for words, expected in (
        (("--rank", r"report\.(\d)"), set("0123456789")),
        (("--rank", "report"), {"report"}),
        (("--kernel", "solve<1>"), {str(rank) for rank in range(MANY)}),
    ):
        document = json.loads(run("ranks", folder, "--json", *words).out)
        assert {row["rank"] for row in document["ranks"]} == expected


def test_a_pool_gives_the_same(run: Command, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = run("ranks", folder, "--json")
    monkeypatch.setattr(executors, "PARALLEL_FROM_BYTES", 0)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    assert run("ranks", folder, "--json") == alone


def test_keep_going(run: Command, folder: Path, tmp_path: Path) -> None:
    bad = tmp_path / "report.99.ncu-rep"
    bad.write_bytes(b"text")
    assert_refused(run("ranks", folder, bad), bad)
    outcome = run("ranks", folder, bad, "--keep-going")
    assert outcome.code == 1
    assert str(bad) in outcome.err
    assert outcome.out.startswith("40 ranks, ")


def test_words_that_make_no_sense(run: Command, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = folder / "report.0.ncu-rep"
    for words, about, code in (
        (r"--rank node(\d+)", path, 1),
        ("--kernel nothing", path, 1),
        ("-o out.png", "out.png", 2),
        ("-o out", "out", 2),
        ("-o out.csv --json", "out.csv", 2),
        ("--level l9", "l9", 1),
    ):
        assert_refused(run("ranks", path, *words.split()), about, code)
    for words in ("--rank (", "--by launch", "--dask somewhere", "--table roofs"):
        outcome = run("ranks", path, *words.split())
        assert (outcome.code, outcome.out) == (2, "")
        assert f"argument {words.split()[0]}: " in outcome.err
    assert_no_leftovers(tmp_path)
