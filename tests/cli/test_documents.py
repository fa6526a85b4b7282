"""What commands write as data: CSV and Parquet hold the tables of JSON; and what they print fits the terminal."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from ncu_roofline.analyses import ANALYSES
from ncu_roofline.base.units import UNITS
from ncu_roofline.rendering.table import columns_wide
from tests.cli import made
from tests.cli.command import Command

DEMO = Path(__file__).parents[2] / "ncu_roofline" / "data" / "demo"
SMOOTH = DEMO / "smooth-made-up.ncu-repz"
# Analysis -> the command that writes a table of it, and one that prints all of them as JSON.
WRITING = {
    **{view: ("render {counted} --view " + view, "show {counted} --json --view " + view) for view in ("time", "instruction")},
    "roofline": ("render {four}", "show {four} --json"),
    "phases": ("render {phases} --view phases", "show {phases} --json --view phases"),
    "comparison": ("compare {before} {after} --fail-if time>1", "compare {before} {after} --fail-if time>1 --json"),
    "source": (f"source {SMOOTH} --no-disassembly", f"source {SMOOTH} --no-disassembly --json"),
    "ranks": ("ranks {ranks}", "ranks {ranks} --json"),
}


@pytest.fixture
def given(tmp_path: Path) -> dict[str, Path]:
    names = ("four", "counted", "phases", "before", "after", "many")
    paths = {name: tmp_path / f"{name}.ncu-rep" for name in names} | {"ranks": tmp_path / "sixteen-ranks"}
    for path in paths.values():
        made.FILES[path.name](path)
    return paths


@pytest.mark.parametrize("view", WRITING)
def test_tables_are_those_of_json(run: Command, given: dict[str, Path], tmp_path: Path, view: str) -> None:
    table_of, whole = ([word.format(**given) for word in words.split()] for words in WRITING[view])
    document = json.loads(run(*whole).out)
    assert set(document["units"].values()) <= set(UNITS)
    for table, declared in ANALYSES[view].tables.items():
        names = [one.name for one in declared]
        printed = run(*table_of, "-o", "-", "--format", "csv", "--table", table).out
        rows = list(csv.DictReader(io.StringIO(printed)))
        assert (printed.splitlines()[0].split(","), len(rows)) == (names, len(document[table])), table
        assert all(list(row) == names for row in document[table])
        if table == next(iter(ANALYSES[view].tables)):
            parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
            run(*table_of, "-o", tmp_path / "x.parquet", "--table", table)
            found = parquet.read_table(tmp_path / "x.parquet")
            assert found.to_pylist() == document[table]
            assert {one.name: one.metadata[b"unit"].decode() for one in found.schema} == {
                one.name: one.unit for one in declared
            }


def test_parquet_without_pyarrow(run: Command, given: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ncu_roofline.analyses.find_spec", lambda _: None)
    outcome = run("render", given["four"], "-o", given["four"].with_suffix(".parquet"))
    assert outcome.code == 1
    assert "pip install 'ncu-roofline[parquet]'" in outcome.err


@pytest.mark.parametrize("width", [60, 80, pytest.param(100, marks=pytest.mark.exhaustive), 200])
def test_text_fits(run: Command, given: dict[str, Path], width: int) -> None:
    for words in ("show {many}", "compare {before} {after} {many} --fail-if time>baseline", "ranks {ranks}",
                  f"source {SMOOTH} --no-disassembly", "show {counted} --view instruction --notes"):  # fmt: skip
        outcome = run(*(word.format(**given) for word in words.split()), "--width", width)
        assert outcome.out
        assert [line for line in outcome.out.splitlines() if columns_wide(line) > width] == [], words
        assert "\x1b" not in outcome.out


def test_a_png_of_the_width_and_dots_asked_for(run: Command, given: dict[str, Path], tmp_path: Path) -> None:
    """84 x 70 mm at 200 dots per inch; a preset gives a column of a paper its width."""
    asked = ("--width", "84mm", "--height", "7cm", "--font", "7", "--dpi", "200", "--size", "time")
    assert run("render", given["four"], "-o", tmp_path / "x.png", *asked).code == 0
    data = (tmp_path / "x.png").read_bytes()
    assert [int.from_bytes(data[place : place + 4], "big") for place in (16, 20)] == [661, 551]
    assert run("render", given["four"], "-o", tmp_path / "x.svg", "--view", "time", "--preset", "column").code == 0
    assert b'width="237.6pt"' in (tmp_path / "x.svg").read_bytes()
