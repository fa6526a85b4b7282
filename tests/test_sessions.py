"""Sessions: what a user types and what he sees, in files `*.session` beside the tests of a room.

    #: Anything about what follows.
    === notes.csv
    a file of the session, up to the line of three signs
    ===
    $ ncu-roofline show gpp-v100.ncu-rep | grep "DRAM"
    what it prints; lines on standard error begin with "! ", and "[1]" at the end is an exit code other than 0

A session runs in an empty folder.  Files that its commands name are put there: those of the demo, and those in ``FILES`` of
`made.py` in the room's folder (name -> function that writes it to a path).  A command is run in this process; after it may come
`< FILE`, `| grep REGEX`, `| head N`, `| json KEY.0.KEY KEY.*.KEY ...` (parts of a document, numbers to six digits) and
`| csv COLUMN COLUMN ...` (of a table).  `cat FILE`, `cp FILE FILE` and `ls` are there, too.
UPDATE_GOLDEN=1 rewrites what is printed.
"""

from __future__ import annotations

import csv
import importlib
import io
import json
import re
import shlex
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from tests.cli.command import Command
from tests.golden import assert_golden

TESTS = Path(__file__).resolve().parent
DEMO = TESTS.parent / "ncu_roofline" / "data" / "demo"
SESSIONS = sorted(TESTS.glob("**/*.session"))


def blocks(text: str) -> Iterator[tuple[list[str], str]]:
    """What stands before a command as it is (comments, files, an empty line), and the command; "" at the end of the session."""
    lines, before, content = text.splitlines(), list[str](), False
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        if line.startswith("==="):
            content = line != "==="
        if line.startswith("$ ") and not content:
            yield before, line[2:]
            before = []
        elif content or line.startswith(("===", "#:")) or (not line and after.startswith(("===", "#:", "$ "))):
            before.append(line)
    yield before, ""


def written(before: list[str], folder: Path) -> None:
    """The files that a session brings."""
    path, lines = None, list[str]()
    for line in before:
        if line.startswith("=== "):
            path, lines = folder / line[4:], []
        elif line == "===" and path:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("\n".join([*lines, ""]), encoding="utf-8")
            path = None
        else:
            lines.append(line)


def put(words: list[str], folder: Path, room: Path) -> None:
    """The files that a command names, where they are known and not there yet."""
    made = importlib.import_module(f"tests.{room.name}.made").FILES if (room / "made.py").is_file() else {}
    for word in words:
        name = word.rpartition("=")[2]
        if not name or (folder / name).exists():
            continue
        if name in made:
            made[name](folder / name)
        elif (DEMO / name).is_file():
            shutil.copy(DEMO / name, folder / name)


def part(document: Any, path: str) -> Any:
    key, _, rest = path.partition(".")
    if key == "*":
        return [part(one, rest) for one in document]
    inner = document[int(key)] if isinstance(document, list) else document[key]
    return part(inner, rest) if rest else inner


def rounded(number: str) -> float:
    return float(f"{float(number):.6g}")


def filtered(text: str, words: list[str]) -> str:
    """What is left of a text behind a `|`."""
    name, *rest = words
    if name == "json":
        document = json.loads(text, parse_float=rounded, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
        return "".join(f"{path}: {json.dumps(part(document, path))}\n" for path in rest)
    if name == "csv":
        return "".join(", ".join(row[column] for column in rest) + "\n" for row in csv.DictReader(io.StringIO(text)))
    lines = text.splitlines(keepends=True)
    kept = lines[: int(rest[0])] if name == "head" else [line for line in lines if re.search(rest[0], line)]
    return "".join(kept)


def printed(line: str, run: Command, folder: Path, room: Path) -> str:
    """What a command shows."""
    words = shlex.split(line)
    pipes = [index for index, word in enumerate(words) if word == "|"] + [len(words)]
    command, filters = words[: pipes[0]], [words[a + 1 : b] for a, b in pairwise(pipes)]
    out, err, code = "", "", 0
    if command[0] == "ls":
        out = "".join(f"{path.relative_to(folder)}\n" for path in sorted(folder.rglob("*")))
    elif command[0] == "cat":
        out = Path(command[1]).read_text(encoding="utf-8")
    elif command[0] == "cp":
        put(command[1:2], folder, room)
        Path(command[2]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(command[1], command[2])
    else:
        put(command[1:], folder, room)
        given = Path(command.pop()).read_bytes() if "<" in command else b""
        with mock.patch("sys.stdin", io.TextIOWrapper(io.BytesIO(given))):
            outcome = run(*(word for word in command[1:] if word != "<"))
        out, err, code = outcome.out, outcome.err, outcome.code
    for words in filters:
        out = filtered(out, words)
    text = f"{out.rstrip()}\n" if out.strip() else ""
    text += "".join(f"! {line}\n" for line in err.splitlines()) + (f"[{code}]\n" if code else "")
    return text.replace(f"{folder}/", "")


@pytest.mark.parametrize("path", SESSIONS, ids=lambda path: str(path.relative_to(TESTS)))
def test_session(path: Path, run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = ""
    for before, command in blocks(path.read_text(encoding="utf-8")):
        written(before, tmp_path)
        found += "".join(f"{line}\n" for line in before)
        if command:
            found += f"$ {command}\n{printed(command, run, tmp_path, path.parent)}"
    assert_golden(path, found)
