"""What an analysis makes of given numbers: files `*.frames` in this folder, whose inputs and tables stand one below the other.

    ## What a case is about.
    before = [{ms = 1}]            (inputs, in TOML, of the maker in makers.py that the file is named after: MAKER-ABOUT.frames)
    > kernels where outcome == "slower": kernel, seconds
    one row per line               (UPDATE_GOLDEN=1 writes all below a question)

Questions: `> TABLE: COLUMN, ...`, with `where QUERY` (of pandas); `> sum TABLE: ...` (also max, min, nunique); `> ATTRIBUTE`;
`> text: REGEX` (also md, csv, json, repr), the lines that have it.  What a maker refuses is told in the first line.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from ncu_roofline.analyses import render
from ncu_roofline.base.errors import RooflineError
from tests.analyses import makers
from tests.analyses.data import toml
from tests.golden import assert_golden

ROOM = Path(__file__).parent


def word(value: Any) -> str:
    if isinstance(value, float):
        return "nan" if value != value else f"{value + 0.0:.6g}"
    return str(value) or '""'


def answers(found: Any, question: str) -> list[str]:
    """The lines below a question."""
    about, _, wanted = question.partition(": ")
    name, _, where = about.partition(" where ")
    evaluated, _, table = name.rpartition(" ")
    if table in ("text", "md", "csv", "json"):
        text = render(found, table, **({"width": 250} if table == "text" else {})).decode()
        return [line.strip() for line in text.splitlines() if re.search(wanted, line)]
    thing = repr(found) if table == "repr" else getattr(found, table)
    if not isinstance(thing, pd.DataFrame):
        lines = thing.splitlines() if isinstance(thing, str) else map(word, thing)
        return [line for line in lines if re.search(wanted, line)]
    rows = (thing.query(where) if where else thing)[wanted.split(", ")]
    if evaluated:
        return [" | ".join(map(word, rows.agg(evaluated)))]
    return [" | ".join(map(word, row)) for row in rows.astype(object).itertuples(index=False)]


def told(case: str, maker: Any, folder: Path) -> str:
    """A case, with what its questions find now."""
    given, *asked = re.split(r"^> ", case, flags=re.MULTILINE)
    inputs = [line for line in given.rstrip().splitlines() if not line.startswith("! ")]
    lines, questions = list(inputs), [one.splitlines()[0] for one in asked]
    folder.mkdir()
    try:
        found = maker(folder, **toml("\n".join(inputs)))
        for question in questions:
            lines += [f"> {question}", *answers(found, question)]
    except (RooflineError, ValueError, TypeError) as error:
        lines = [*inputs, f"! {type(error).__name__}: {error}", *(f"> {question}" for question in questions)]
    return "\n".join(lines).replace(f"{folder}/", "") + "\n"


@pytest.mark.parametrize("path", sorted(ROOM.glob("*.frames")), ids=lambda path: path.stem)
def test_frames(path: Path, tmp_path: Path) -> None:
    about, *cases = re.split(r"^(?=## )", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    maker = getattr(makers, path.stem.partition("-")[0])
    assert_golden(path, about + "\n".join(told(case, maker, tmp_path / str(place)) for place, case in enumerate(cases)))
