"""The attack finds what there is to find: each class of finding, made on purpose, is told as what it is."""

from __future__ import annotations

import contextlib
import json
import pickle
import random
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import tests.attack.running as running
from ncu_roofline.cli import main as command_line
from tests.attack import judging, meaning, relations
from tests.attack.__main__ import main
from tests.attack.attack import AsWithout, Same, Scaled
from tests.attack.bases import made
from tests.attack.campaign import Campaign, attack
from tests.attack.commands import Line

SEED = 1


def sabotaged(monkeypatch: pytest.MonkeyPatch, does: Callable[[list[str]], int]) -> None:
    monkeypatch.setattr(running, "main", does)


def crash(_: list[str]) -> int:
    raise KeyError("Type")


def catch(_: list[str]) -> int:
    print("ncu-roofline: Cannot run ncu-roofline: ncu-roofline itself failed: KeyError (Type). Report it.", file=sys.stderr)
    return 1


def call_home(_: list[str]) -> int:
    with contextlib.suppress(OSError), socket.socket() as one:
        one.connect(("127.0.0.1", 9))
    return 0


def unpickle(_: list[str]) -> int:
    pickle.loads(pickle.dumps(Path))
    return 0


def write_elsewhere(_: list[str]) -> int:
    with contextlib.suppress(OSError), open("/nowhere/x", "w"):
        pass
    return 0


def start_a_program(_: list[str]) -> int:
    subprocess.run([sys.executable, "-c", ""], check=True)
    return 0


def hang(_: list[str]) -> int:
    while True:
        time.monotonic()


def leak(_: list[str]) -> int:
    print("NVIDIA \x1b]0;owned\x07 A100")
    return 0


def leave_half(words: list[str]) -> int:
    Path(".result.csv.part").write_bytes(b"1,2")
    return command_line(words)


def say_nothing(_: list[str]) -> int:
    return 1


def say_half_a_sentence(_: list[str]) -> int:
    print("error: list index out of range", file=sys.stderr)
    return 1


def eat(_: list[str]) -> int:
    bytearray(900_000_000)[::4096] = b"x" * 219_727
    return 0


def draw_nothing(words: list[str]) -> int:
    code = command_line(words)
    for path in Path().glob("result*"):
        path.write_bytes(path.read_bytes()[:-9])
    return code


SABOTAGE = {
    crash: judging.TRACEBACK,
    call_home: judging.REACHES,
    unpickle: judging.REACHES,
    write_elsewhere: judging.REACHES,
    start_a_program: judging.REACHES,
    catch: judging.TRACEBACK,
    hang: judging.HANG,
    leak: judging.LEAK,
    leave_half: judging.HALF,
    say_nothing: judging.UNEXPLAINED,
    say_half_a_sentence: judging.UNEXPLAINED,
    eat: judging.GREEDY,
}


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize("does", SABOTAGE)
def test_what_goes_wrong_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, does: Callable[[list[str]], int]) -> None:
    sabotaged(monkeypatch, does)
    if does is hang and sys.platform == "win32":
        pytest.skip("nothing can be stopped there but the process")
    outcome = running.run(["show", "x"], tmp_path, frozenset(), limit=1.0 if does is hang else 60.0)
    assert judging.judge(Line("show {r}"), outcome, "").kind == SABOTAGE[does]


@pytest.mark.parametrize("suffix", ["json", "csv", "svg", "png", "pdf", "html", "parquet"])
def test_results_without_their_end_are_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, suffix: str) -> None:
    if suffix == "parquet":
        pytest.importorskip("pyarrow")
    line = Line(f"render {{r}} -o {{o}}.{suffix}")
    sabotaged(monkeypatch, draw_nothing)
    campaign = Campaign(SEED, tmp_path, made())
    one = attack(SEED, 0, made(), ("launches gone",))
    assert campaign.meet(one, made()["several"], line).kind in (judging.HALF, judging.LEAK)


def test_an_input_that_is_changed_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sabotaged(monkeypatch, lambda _: Path("report.ncu-rep").write_bytes(b"") or 0)
    with pytest.raises(AssertionError, match=r"changed report.ncu-rep"):
        Campaign(SEED, tmp_path, made()).attack(0)


def tables(tmp_path: Path, data: bytes) -> dict[str, list[dict[str, object]]]:
    path = tmp_path / "report.ncu-rep"
    path.write_bytes(data)
    outcome = running.run(["show", "--json", "report.ncu-rep"], tmp_path, frozenset(["report.ncu-rep"]))
    found: dict[str, list[dict[str, object]]] = json.loads(outcome.out)
    return found


@pytest.mark.parametrize(
    "make",
    [
        meaning.scaled,
        meaning.gone,
        meaning.doubled,
        meaning.impossible,
        meaning.renamed,
        lambda data, rng: (*meaning.unchanged(data, rng), Same()),
    ],
)
def test_numbers_that_a_change_does_not_explain_are_found(
    tmp_path: Path, make: Callable[..., tuple[bytes, str, object]]
) -> None:
    base = made()["several"]
    data, _, found = make(base, random.Random(4))
    other = found.other if isinstance(found, AsWithout) else base
    before, after = tables(tmp_path, other), tables(tmp_path, data)
    assert relations.compare(found, before, after) == ""  # type: ignore[arg-type]
    row = next(row for row in after["points"] if row["launch"] != getattr(found, "launch", -1) and row["work"])
    row["performance"] = 1.001 * row["performance"]  # type: ignore[operator]
    problem = relations.compare(found, before, after)  # type: ignore[arg-type]
    assert re.search(r"performance was .*, is ", problem), problem


def test_a_number_of_the_changed_launch_that_does_not_follow_is_found(tmp_path: Path) -> None:
    base = made()["several"]
    before = tables(tmp_path, base)
    promise = Scaled(0, {"traffic": 2.0, "work": 1.0}, level="dram")
    assert "not 2.0 times that" in relations.compare(promise, before, before)


@pytest.mark.parametrize(
    ("column", "value"), [("seconds", -1.0), ("seconds", 1e308), ("performance", 1e19), ("traffic", -5.0), ("fraction", 1.2)]
)
def test_impossible_numbers_are_found(tmp_path: Path, column: str, value: float) -> None:
    found = tables(tmp_path, made()["several"])
    assert judging.impossible(found) == ""
    found["points"][3][column] = value
    assert judging.impossible(found).startswith((f"points: {column} is {value}", "fraction of fp"))
    if column == "fraction":
        found["points"][3]["notes"] = f"{judging.ABOVE}: 120 % of it, possible if ..."
        assert judging.impossible(found) == ""


def test_a_finding_is_told_saved_and_comes_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    sabotaged(monkeypatch, crash)
    words = ["--save", str(tmp_path), "--replay", "7:3"]
    assert main(words) == 1
    assert "--replay 7:3" in capsys.readouterr().out
    saved = tmp_path / "7-3"
    assert (saved / "report.ncu-rep").read_bytes() == attack(7, 3, made()).data
    assert "KeyError: 'Type'" in (saved / "found.txt").read_text()
    monkeypatch.undo()
    assert main([*words[:3], "7:4"]) == 0
    assert "1 reports" in capsys.readouterr().out
