"""Data files, ERT's JSON and plain tables with bytes changed, lost or doubled: a result or one sentence, and nothing else."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from ncu_roofline import render, roofline
from ncu_roofline.analyses.portability.frames import portability
from ncu_roofline.analyses.portability.platforms import read_runs
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.formats.inputs import open_ceilings
from tests.inputs.test_ert import CPU, document
from tests.inputs.test_plain_table import JSON_ROWS, PLAIN
from tests.inputs.test_roofline_data import GPP

TEXTS = {
    "data file": GPP,
    "roofline.json": json.dumps(document(CPU, [["GFLOPs", 288.33]]), indent=3),
    "csv": PLAIN,
    "json": json.dumps(JSON_ROWS),
}
SPLINTERS = (
    b"",
    b"\0",
    b"\xff\xfe",
    b"'",
    b'"',
    b",",
    b"\n",
    b"-",
    b"1e308",
    b"1e-320",
    b"nan",
    b"inf",
    b"{",
    b"]",
    b"#",
    b"AI ",
)
ROUNDS = 150


def damaged(data: bytes, chance: random.Random) -> bytes:
    """One to three places changed."""
    for _ in range(chance.randint(1, 3)):
        start = chance.randrange(len(data) + 1)
        end = min(len(data), start + chance.choice((0, 1, 1, 3, 40)))
        data = data[:start] + chance.choice(SPLINTERS) + data[end:]
    return data


def refusal(use: Callable[[], object]) -> str:
    """The sentence of a refusal, "" for a result."""
    try:
        use()
    except RooflineError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("name", TEXTS)
def test_damage(tmp_path: Path, name: str) -> None:
    chance = random.Random(name)
    path = tmp_path / "input"
    sentences = []
    for _ in range(ROUNDS):
        path.write_bytes(damaged(TEXTS[name].encode(), chance))
        sentences += [
            refusal(lambda: render(roofline(path), "json")),
            refusal(lambda: open_ceilings(path)),
            refusal(lambda: portability(read_runs([path])[0])),
        ]
    assert any(sentences)
    assert all(sentence.isprintable() for sentence in sentences)
