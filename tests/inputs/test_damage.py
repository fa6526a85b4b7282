"""Files of other tools as they arrive: copied from terminals, saved by spreadsheets, cut, merged and edited."""

from __future__ import annotations

import codecs
import math
import random
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import is_dataclass
from pathlib import Path
from typing import NamedTuple

import pytest

from ncu_roofline import render, roofline
from ncu_roofline.analyses.portability import portability, read_runs
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.formats.inputs import open_ceilings, open_input
from ncu_roofline.formats.report import Report

HUGE = ("1.5e308", "1e999", "-17", "9" * 300, "9" * 401, "9" * 5000, "1e-320", "0", "0.0")
BAD_CELLS = ("many", "n/a", "", "-", "1,5", "1.234.567,8", "nan", "0x1f", "12 furlong", "1e", "--", "5%", "1,2,3")
SPLINTERS = ("\0", "\xff", "\x0c", "\u2028", "{", "]", "#", "%", "<", "-", ",", "\n", "'", '""', "TABLE,", "==", "AI ", "1e308")
METRICS = "values"  # of what ncu printed
Number = tuple[Hashable, ...]


class Original(NamedTuple):
    """A file: its cells are separated by ``delimiter``, "" where it has no tables, whose headings begin as ``heading`` says.

    The first ``fixed`` columns of a table stay where they are; rows may lack the last ``lacking`` cells.
    """

    name: str
    heading: str = ""
    delimiter: str = ","
    fixed: int = 0
    lacking: int = 0

    @property
    def text(self) -> str:
        source, _, change = self.name.partition(" ")
        text = (Path(__file__).parent / "files" / source).read_text()
        return text.replace(",", change) if change else text


ORIGINALS = {name: Original(name, *more) for name, *more in (
    ("nvprof-metrics.csv", '"Device'), ("nvprof-summary.csv", '"Type'), ("nvprof-trace.csv", '"Start'), ("advisor.csv", '"ID"'),
    ("advisor-roofs.csv", '"?Name', ",", 3), ("likwid.csv", "Metric,", ",", 1), ("plain.csv", "platform,"),
    ("plain.csv ;", "platform;", ";"), ("ncu-raw.csv", '"ID"'), ("ncu-live.csv", '"ID"', ",", 0, 1),
    ("vtune-events.csv", "Package", ",", 1), ("vtune-events.csv \t", "Package", "\t", 1),
    ("vtune-summary.csv", "Hierarchy", ",", 3), *((name, "", "") for name in ("sde-graph.txt", "gpp.txt", "roofline.json")),
)}  # fmt: skip


class Record(NamedTuple):
    """A line, or several where a quoted cell goes over them: its cells as they are written, and which row of a table it is."""

    cells: list[str]
    row: int = -1


def parsed(one: Original) -> list[Record]:
    lines, inside = list[str](), False
    for line in one.text.split("\n"):
        lines[-1:] = [f"{lines[-1]}\n{line}"] if inside else [*lines[-1:], line]
        inside ^= line.count('"') % 2 == 1
    found, width = list[Record](), 0
    for line in lines:
        cells = re.findall(rf'(?:"[^"]*"|[^"{one.delimiter}])+|(?<![^{one.delimiter}])', line) if one.delimiter else [line]
        if one.heading and re.match(one.heading, line):
            width, row = len(cells), 0
        elif width and 0 <= width - len(cells) <= one.lacking:
            row = found[-1].row + 1
        else:
            width, row = 0, -1
        found.append(Record(cells if row >= 0 else [line], row))
    return found


def joined(one: Original, records: list[Record]) -> str:
    return "\n".join(one.delimiter.join(record.cells) for record in records)


def each_cell(one: Original, change: Callable[[int, str], str]) -> str:
    """With another text for each cell of a table, by its column."""
    changed = ([change(at, c) for at, c in enumerate(r.cells)] if r.row >= 0 else r.cells for r in parsed(one))
    return joined(one, list(map(Record, changed)))


def columns(one: Original, rearrange: Callable[[list[int]], list[int]]) -> str:
    """With other columns; ``rearrange`` gets those that may be moved, and says which are written in their place."""
    records, order = list[Record](), list[int]()
    for record in parsed(one):
        if record.row == 0:
            named = [at for at, cell in enumerate(record.cells) if cell]
            rest = [at for at in range(len(record.cells)) if at not in named]
            order = [*named[: one.fixed], *rearrange(named[one.fixed :]), *rest]
        padded = [*record.cells, *['""'] * one.lacking]
        records.append(Record([padded[at] for at in order], record.row) if record.row >= 0 else record)
    return joined(one, records)


def one_number(one: Original, chance: random.Random, replacement: str) -> str:
    """With one cell that holds a number replaced; quotes stay.  Without tables, any number."""
    if not one.heading:
        match = chance.choice(list(re.finditer(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.])", one.text)))
        return one.text[: match.start()] + replacement + one.text[match.end() :]
    records = parsed(one)
    numeric = re.compile(r'"?(?!\d\.\d"?$)\d[\d.]*(?:e[+-]?\d+)?[a-z%]{0,2}"?')  # 8.0 is a compute capability
    places = [(r, at) for r in records if r.row > 0 for at, cell in enumerate(r.cells) if numeric.fullmatch(cell)]
    record, at = chance.choice(places)
    quoted = record.cells[at].startswith('"') or one.delimiter in replacement
    record.cells[at] = f'"{replacement}"' if quoted else replacement
    return joined(one, records)


def padded(cell: str) -> str:
    return f'" {cell[1:-1]}  "' if len(cell) > 2 and cell[0] == cell[-1] == '"' else f" {cell} " if cell.strip('"') else cell


def short_row(one: Original, chance: random.Random) -> str:
    records = parsed(one)
    cells = chance.choice([record for record in records if record.row > 0]).cells
    del cells[chance.randrange(1, len(cells)) :]
    return joined(one, records)


def splinter(one: Original, chance: random.Random) -> str:
    place = chance.randrange(len(one.text) + 1)
    return one.text[:place] + chance.choice(SPLINTERS) + one.text[place + chance.choice((0, 1, 5, 40)) :]


Mutation = Callable[[Original, random.Random], str | bytes]
# The same numbers come out of these,
SAME: dict[str, Mutation] = {
    "Windows line ends": lambda one, _: one.text.replace("\n", "\r\n"),
    "old Macintosh line ends": lambda one, _: one.text.replace("\n", "\r"),
    "byte order mark": lambda one, _: codecs.BOM_UTF8 + one.text.encode(),
    "UTF-16": lambda one, _: codecs.BOM_UTF16_LE + one.text.encode("utf-16-le"),
    "UTF-16, big end first": lambda one, _: codecs.BOM_UTF16_BE + one.text.encode("utf-16-be"),
    "blanks around lines": lambda one, _: "\n".join(f"  {record}    " for record in joined(one, parsed(one)).split("\n")),
    "tabs before lines": lambda one, _: one.text if one.delimiter == "\t" else re.sub(r"(?m)^(?=.)", "\t", one.text),
    "blanks in cells": lambda one, _: each_cell(one, lambda _at, cell: padded(cell)),
    "blanks before cells": lambda one, _: each_cell(one, lambda at, cell: f" {cell}" if at else cell),
    "columns in another order": lambda one, chance: columns(one, lambda named: chance.sample(named, len(named))),
    "empty lines at the end": lambda one, _: f"{one.text}\n\n\n",
}
# of these fewer,
LESS: dict[str, Mutation] = {
    "a column missing": lambda one, chance: columns(one, lambda named: chance.sample(named, max(0, len(named) - 1))),
    "a cell spoilt": lambda one, chance: one_number(one, chance, chance.choice(BAD_CELLS)),
    "a row cut short": short_row,
    "the heading twice": lambda one, _: joined(one, [r for record in parsed(one) for r in [record] * (1 + (record.row == 0))]),
    "twice in one file": lambda one, _: one.text * 2,
}
# and of these some, or one sentence.
OTHER: dict[str, Mutation] = {
    "cut": lambda one, chance: one.text[: chance.randrange(len(one.text))],
    "a number huge or zero": lambda one, chance: one_number(one, chance, chance.choice(HUGE)),
    "a quote too many, or something else": splinter,
    "half in another encoding, and an odd byte": lambda one, _: one.text.encode("utf-16") + b"x",
}


def numbers_of(path: Path) -> dict[Number, float]:
    """All numbers that a file gives, by what they are of.  Raises RooflineError where it gives none."""
    found: dict[Number, float] = {}
    refusals = []
    for use in (open_input, open_ceilings):
        try:
            result = use(path)
        except RooflineError as error:
            refusals.append(error)
            continue
        for part in ("values", "points", "roofs", "by_id"):
            found.update(numbers_in(getattr(result, part, None), part))
        if isinstance(result, Report):
            result.close()
    if refusals and not found:
        raise refusals[0]
    return found


def numbers_in(value: object, *key: Hashable) -> Iterator[tuple[Number, float]]:
    """The numbers in mappings, tuples and what importers hand over, first by their quantity."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        yield key, value
    elif is_dataclass(value):
        about = tuple(text for name, text in vars(value).items() if isinstance(text, str) and name != "columns")
        for name, inner in vars(value).items():
            yield from numbers_in(inner, name, about, *key)
    elif isinstance(value, Iterable) and not isinstance(value, str):
        for name, inner in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from numbers_in(inner, *key, name)


def written(path: Path, mutation: Mutation | None, one: Original, seed: int = 0) -> Path:
    data = mutation(one, random.Random(seed)) if mutation else one.text
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


@contextmanager
def told(path: Path) -> Iterator[None]:
    """Takes a refusal for an answer, if it names the file."""
    refusal = ""
    try:
        yield
    except RooflineError as error:
        refusal = str(error)
    assert not refusal or (str(path) in refusal and refusal.isprintable())


def agree(one: float, other: float) -> bool:
    return one == other or (math.isnan(one) and math.isnan(other)) or math.isclose(one, other, rel_tol=1e-12)


def quantity(key: Number) -> Hashable:
    return key[1] if key[0] == METRICS else key[0]


SEEDS = pytest.mark.parametrize(
    "seeds", [range(1), pytest.param(range(1, 20), marks=pytest.mark.exhaustive)], ids=("few", "many")
)


@SEEDS
@pytest.mark.parametrize("name", ORIGINALS)
def test_the_same_or_less(tmp_path: Path, name: str, seeds: range) -> None:
    one, path = ORIGINALS[name], tmp_path / "file.csv"
    expected = numbers_of(written(path, None, one))
    assert expected
    said: dict[Hashable, list[float]] = {}
    for key, value in expected.items():
        said.setdefault(quantity(key), []).append(value)
    for seed in seeds:
        for what, mutation in SAME.items():
            found = numbers_of(written(path, mutation, one, seed))
            assert found.keys() == expected.keys(), what
            assert all(agree(value, found[key]) for key, value in expected.items()), what
        for what, mutation in LESS.items() if one.heading else ():
            with told(written(path, mutation, one, seed)):
                # Of whatever kernel: one may lose its name or its precision with a column.
                more = [(k, v) for k, v in numbers_of(path).items() if not any(agree(v, n) for n in said.get(quantity(k), ()))]
                assert all(math.isnan(value) for _, value in more) or (name, what) == ("likwid.csv", "a column missing"), what


REST = [name for name in ORIGINALS if name not in ("ncu-live.csv", "plain.csv")]


@SEEDS
@pytest.mark.parametrize(
    "name", ["ncu-live.csv", "plain.csv", *(pytest.param(name, marks=pytest.mark.exhaustive) for name in REST)]
)
def test_a_result_or_one_sentence(tmp_path: Path, name: str, seeds: range) -> None:
    one, path = ORIGINALS[name], tmp_path / "file.csv"
    for what, mutation in OTHER.items():
        for seed in seeds:
            written(path, mutation, one, seed)
            with told(path):  # what ncu measured is judged by the model, with the reports
                finished = [value for key, value in numbers_of(path).items() if key[0] != METRICS]
                assert not any(math.isinf(value) or value < 0 for value in finished), (what, seed)
            with told(path):
                render(roofline(path), "json")
            with told(path):
                portability(read_runs([path])[0])


MANY = "9" * 5000


def test_numbers_of_thousands_of_digits_end_nothing(tmp_path: Path) -> None:
    for name, old, new in (
        ("sde-graph.txt", "*mem-read-16 ", f"*mem-read-{MANY} "),
        ("likwid.csv", "Group 1 Metric", f"Group {MANY} Metric"),
        ("likwid.csv", ",MEM_DP,9,", f",MEM_DP,{MANY},"),
        ("ncu-raw.csv", '"4711"', f'"{MANY}"'),
        ("ncu-raw.csv", "(256, 1, 1)", f"({MANY}, 1, 1)"),
    ):
        text = ORIGINALS[name].text
        assert old in text
        (tmp_path / "file.csv").write_text(text.replace(old, new))
        with told(tmp_path / "file.csv"):
            numbers_of(tmp_path / "file.csv")
