"""What importers make of files of other tools: transcripts `*.readings` of what each file gives, and with changes in it.

    $ read FILE [FILE ...] | OLD => NEW | until TEXT | twice
    $ points FILE [FILE ...] [--ceilings FILE]
    $ ceilings FILE
    $ passes FILE FILE

`read` shows what the importer hands over, several files joined; `points` the dots on a roofline; `passes` files of one run.
Files are those of the transcript and those in the folder `files` (NAME=FILE: under another name); behind a "|" stand changes
of the last one, for which see `tests.replay.changed`.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from ncu_roofline import roofline
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.formats.ceilings import Ceilings
from ncu_roofline.formats.inputs import joined, open_ceilings, open_input, recognised
from ncu_roofline.formats.inputs.passes import of_one_run
from ncu_roofline.formats.inputs.tables import ImportedPoint, ImportedRoof, MetricTable, PointTable
from tests.replay import assert_replays, changed

HERE = Path(__file__).parent
COLUMNS = ("work", "traffic", "seconds", "intensity", "performance", "fraction", "fma_share", "launches")


def number(value: object) -> str:
    return f"{value:.10g}" if isinstance(value, (int, float)) else str(value)


def pairs(title: str, values: dict[str, float]) -> str:
    return f", {title} {' '.join(f'{key}={number(value)}' for key, value in values.items())}" if values else ""


def of_roof(roof: ImportedRoof) -> str:
    origin = "measured" if roof.measured else "theoretical"
    return f"{roof.kind} roof {roof.id} = {number(roof.value)}, {origin}: {roof.label}"


def of_point(one: ImportedPoint) -> Iterator[str]:
    where = f" on {one.device}" if one.device else ""
    where += " {}.{}".format(*one.compute_capability) if one.compute_capability != (0, 0) else ""
    size = f", {one.grid} x {one.block}" if one.grid else ""
    time = "" if math.isnan(one.seconds) else f", {number(one.seconds)} s"
    parts = pairs("work", dict(one.work)) + pairs("bytes", dict(one.traffic)) + pairs("fused", dict(one.fma_share))
    name = f"{one.name} [{one.label}]" if one.label else one.name
    yield f"{name}{where}: {one.launches} x{size}{time}{' (rates)' * one.rates}{parts}"
    yield from (f"  {title}: {text}" for title, text in (("columns", one.columns), ("note", one.note)) if text)
    yield from (f"  {of_roof(roof)}" for roof in one.roofs)


def given(table: object) -> Iterator[str]:
    """What an importer hands over, for people."""
    if isinstance(table, Ceilings):
        yield f"ceilings of {table.device or 'anything'}, {table.date or 'no date'}"
        yield from (f"  {id_} = {number(one.value)} {one.unit}: {one.source}" for id_, one in table.by_id.items())
    elif isinstance(table, PointTable):
        yield from (line for one in table.points for line in of_point(one))
        yield from map(of_roof, table.roofs)
        yield from (f"! {warning}" for warning in table.warnings)
    else:
        assert isinstance(table, MetricTable)
        for one in table.rows:
            size = f", {one.grid} x {one.block}" if one.grid else ""
            nvtx = f", in {' > '.join(one.nvtx)}" if one.nvtx else ""
            process = table.session.process
            where = f", stream {one.stream} of {process.name} ({process.id}) on {table.session.host}" if process.name else ""
            yield f"{one.function_name} = {one.name}{size}{nvtx}{where}"
        yield from (f"  {name}: {' '.join(map(number, column))}" for name, column in sorted(table.values.items()))
        yield from (f"! {text}" for text in (*table.warnings, table.lacks) if text)


def dots(files: Sequence[Path], ceilings: Path | None) -> Iterator[str]:
    """The dots of a roofline, with what the model makes of them."""
    result = roofline(list(files), ceilings)
    for row in result.points.to_dict("records"):
        numbers = " ".join(f"{name}={number(row[name])}" for name in COLUMNS if row[name] == row[name])
        yield f"{row['kernel']} [{row['label']}] {row['precision']} {row['level']}: {numbers}".replace(" []", "")
    yield from (f"{row['kernel']}: {row['status']}" for row in result.kernels.to_dict("records") if row["status"] != "ok")


def answer(command: str, folder: Path) -> str:
    """What a command of a transcript gives."""
    words, *changes = command.split(" | ")
    what, *names = words.split()
    files = []
    for name in (name for name in names if name != "--ceilings"):
        target, _, source = name.partition("=")
        files.append(folder / target)
        if not files[-1].exists():
            shutil.copy(HERE / "files" / (source or target), files[-1])
    before = files[-1].read_bytes()
    for change in changes:
        files[-1].write_bytes(changed(files[-1].read_bytes().decode(), change).encode())
    try:
        if what == "points":
            lines = list(dots(files[:-1], files[-1]) if "--ceilings" in names else dots(files, None))
        elif what == "ceilings":
            lines = list(given(open_ceilings(files[0])))
        elif what == "passes":
            merged, why_not = of_one_run([str(path) for path in files], open_input)
            lines = list(given(merged)) if merged else [why_not or "no passes of one run"]
        else:
            tables = joined([open_input(path) for path in files])
            lines = [line for table in tables for line in given(table)]
            lines = [f"[{found.id if (found := recognised(files[-1])) else None}]", *lines]
    except RooflineError as error:
        lines = [str(error)]
    finally:
        files[-1].write_bytes(before)
    assert all(line.isprintable() for line in lines)
    return "\n".join(lines)


@pytest.mark.parametrize("path", sorted(HERE.glob("*.readings")), ids=lambda path: path.stem)
def test_readings(path: Path, tmp_path: Path) -> None:
    assert_replays(path, tmp_path, lambda command: answer(command, tmp_path))
