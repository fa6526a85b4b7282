"""Reports that nobody should have made end right or explained; the attack finds what there is; its promises are held."""

from __future__ import annotations

import argparse
import contextlib
import json
import pickle
import random
import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ncu_roofline import roofline
from ncu_roofline.analyses import FORMATS, views
from ncu_roofline.cli import declare
from ncu_roofline.cli import main as command_line
from ncu_roofline.formats.report import read_report
from ncu_roofline.formats.report.framing import message, messages
from tests.attack import changes, runs
from tests.attack.__main__ import main
from tests.attack.campaign import Campaign, compare, lines
from tests.attack.changes import BOMBS, FAMILIES, WRITTEN, Attack, Promise, attack
from tests.attack.reports import Document, Field, made, real
from tests.attack.runs import QUICK_LINES, SLOW_LINES, TABLE_LINES, Line, impossible, judge
from tests.report.factory import write

SEED = 1
EVERY = (*QUICK_LINES, *SLOW_LINES, *TABLE_LINES)
PICTURES, exhaustive = ("svg", "png", "pdf", "html"), pytest.mark.exhaustive


def found_by(campaign: Campaign, *numbers: int) -> list[str]:
    """What was found, a line each."""
    found = [(number, *one) for number in numbers for one in campaign.attack(number)]
    return [f"--replay {campaign.seed}:{n} {one.what[:99]}: {line.text}: {f.kind}: {f.why[-800:]}" for n, one, line, f in found]


def test_attacked_reports_end_right_or_explained(tmp_path: Path) -> None:
    """Of the 500 that are made before a release (`python -m tests.attack`) the first; continuous integration makes 100."""
    assert found_by(Campaign(SEED, tmp_path, made()), *range(5)) == []


@exhaustive
@pytest.mark.reports
def test_attacked_real_reports(tmp_path: Path, real_reports: dict[str, Path]) -> None:
    assert real_reports
    assert found_by(Campaign(SEED, tmp_path, real()), *range(6)) == []


@exhaustive
def test_each_family(tmp_path: Path) -> None:
    for family in FAMILIES:
        assert found_by(Campaign(SEED + 1, tmp_path, made(), (family,)), 0) == []


@exhaustive
@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_read_in_time_or_refused(tmp_path: Path, name: str) -> None:
    campaign, large = Campaign(SEED, tmp_path, made()), Attack("size", "several", BOMBS[name](5), name, changes.ANYTHING)
    for text in ("show {r}", "show --json {r}", "show --source embedded {r}", "explain {r}", "render {r} -o {o}.html"):
        finding = campaign.meet(large, Line(text))
        assert finding.kind not in runs.FINDINGS, finding


# What is attacked, and with what.
def test_bases_hold_what_the_reader_knows(tmp_path: Path) -> None:
    kinds, held, met = set(), {"points": 0, "charts": 0, "rules": 0}, set[tuple[str, int]]()
    for data in made().values():
        Document(data).encode(lambda one: met.add((one.owner.name, one.number)) or one.encode())
        with read_report(write(tmp_path, data)) as report:
            kinds |= {one.kind for one in report.kernels}
            held["rules"] += sum(len(one.rule_results) for one in report.kernels)
            held["points"] += len(roofline(report).points)
            held["charts"] += len(roofline(report, source="embedded").points)
        assert Document(data).encode() == data or data == made()["annotated"]  # which has later fields behind earlier ones
    assert kinds == {"kernel", "range", "graph", "cmdlist"}
    assert all(held.values())
    views = re.compile(  # parts of messages, and other views of them
        ".*(Head|Body|NameIds|Metrics)|FileHeader|Source|SourceId|KernelSource|MetricScalar|MetricInstances|InstanceBytes"
        "|MergedInstances|Column|ColumnValues"
    )
    known = {(name, field.number) for name in messages() for field in message(name).DESCRIPTOR.fields}
    assert {name for name, _ in known - met if not views.fullmatch(name)} == {"BlockHeader"}
    assert {number for name, number in known - met if name == "BlockHeader"} <= {1, 2, 5, 7, 8, 9, 10}
    assert "Section" in {name for name, _ in met}


def test_attacks_are_reproducible_and_change_something() -> None:
    ones = [attack(5, number, made()) for number in range(60)]
    assert ones == [attack(5, number, made()) for number in range(60)]
    assert len({one.data for one in ones}) > 50
    assert {one.family for one in ones} >= {name for name, (weight, *_) in FAMILIES.items() if weight > 6}
    data, head = made()["several"], message("KernelHead").DESCRIPTOR
    field = Field(head, head.fields_by_name["stream"].number, 0, b"\7")
    for name, change in (changes.FIELD_CHANGES | changes.REWRITINGS).items():
        changed = {change(field, random.Random(seed)) for seed in range(9)} - {field.encode()}
        assert changed or name == "as it is", name
    for name, change in changes.BYTES.items():
        assert sum(change(data, place, random.Random(place)) != data for place in range(100, 1000, 100)) > 6, name
    assert changes.laid_out(data, random.Random(2))[0] != data


def test_every_command_option_view_and_format_is_met() -> None:
    for command in ("show", "source", "render", "explain", "advise", "annotate", "compare", "ranks", "portability"):
        words = {word for line in EVERY if line.text.startswith(f"{command} ") for word in line.text.split()}
        declare(parser := argparse.ArgumentParser(add_help=False), command)
        for action in parser._actions:
            options = set(action.option_strings)
            if action.help != argparse.SUPPRESS and options and not options & WRITTEN["options"].keys():
                assert options & words, f"{command} {options}"
            for choice in action.choices or ():
                if options & {"--view", "--table", "--by", "--source", "--match", "--against"}:
                    # Choices that are what happens without them, and tables of traces, which are no reports.
                    known = (action.default, *words, *WRITTEN["choices"].split())
                    assert choice in known, f"{command} {options} {choice}"
    for name, row in FORMATS.items():
        named = any(re.search(f"--(format )?{name}( |$)", line.text) for line in EVERY)
        assert named or set(row.suffixes) & {Path(line.result).suffix for line in EVERY}, name
    unseen = {view for view in views("render") if not any(f"--view {view}" in line.text for line in EVERY)}
    assert unseen == {"roofline"}  # the default
    met = [line for number in range(500) for line in lines(SEED, number)]
    assert min(met.count(line) for line in (*QUICK_LINES, *SLOW_LINES)) >= 5


# What there is to find is found: each class of finding, made on purpose, is told as what it is.
SABOTAGE: dict[str, tuple[str, Any]] = {
    "crash": (runs.TRACEBACK, lambda: {}["Type"]),
    "network": (runs.REACHES, lambda: socket.getaddrinfo("127.0.0.1", 9)),
    "pickle": (runs.REACHES, lambda: pickle.loads(pickle.dumps(Path))),
    "elsewhere": (runs.REACHES, lambda: Path("/nowhere/x").write_text("")),
    "program": (runs.REACHES, lambda: subprocess.run([sys.executable, "-c", ""], check=True)),
    "caught": (runs.TRACEBACK, lambda: print("ncu-roofline: Cannot run: ncu-roofline itself failed: K.", file=sys.stderr) or 1),
    "leak": (runs.LEAK, lambda: print("NVIDIA \x1b]0;owned\x07 A100")),
    "half": (runs.HALF, lambda: Path(".result.csv.part").write_bytes(b"1,2")),
    "nothing said": (runs.UNEXPLAINED, lambda: 1),
    "half a sentence": (runs.UNEXPLAINED, lambda: print("error: list index out of range", file=sys.stderr) or 1),
    "hang": (runs.HANG, lambda: any(never for never in iter(int, 1))),
    "memory": (runs.GREEDY, lambda: len(b"x" * 1_800_000_000)),
}


@pytest.mark.parametrize("name", [pytest.param(one, marks=[exhaustive] * (one in ("hang", "memory"))) for one in SABOTAGE])
def test_what_goes_wrong_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str) -> None:
    kind, does = SABOTAGE[name]

    def sabotaged(_: object) -> int:
        with contextlib.suppress(OSError):
            return int(does() == 1)
        return 0

    monkeypatch.setattr(runs, "main", sabotaged)
    outcome = runs.run(["show", "x"], tmp_path, limit=1.0 if name == "hang" else 60.0)
    assert judge(Line("show {r}"), outcome).kind == kind


@pytest.mark.parametrize("suffix", ["json", "csv", "md", *(pytest.param(each, marks=exhaustive) for each in PICTURES)])
def test_results_without_their_end_and_changed_inputs_are_found(monkeypatch: Any, tmp_path: Path, suffix: str) -> None:
    def half(words: list[str]) -> int:
        code = command_line(words)
        for path in Path().glob("report.ncu-rep" if suffix == "md" else "result*"):
            path.write_bytes(path.read_bytes()[:-9])
        return code

    monkeypatch.setattr(runs, "main", half)
    one, line = attack(SEED, 0, made(), ("launches gone or twice",)), Line(f"render {{r}} -o {{o}}.{suffix}")
    with pytest.raises(AssertionError, match=r"changed .*report.ncu-rep") if suffix == "md" else contextlib.nullcontext():
        assert Campaign(SEED, tmp_path, made()).meet(one, line).kind in (runs.HALF, runs.LEAK)


def tables(tmp_path: Path, data: bytes) -> Any:
    return json.loads(runs.run(["show", "--json", str(write(tmp_path, data))], tmp_path).out)


def test_numbers_that_a_change_does_not_explain_are_found(tmp_path: Path) -> None:
    base = made()["several"]
    for change in (changes.scaled, changes.moved, changes.moved, changes.impossible, changes.names, changes.laid_out):
        data, what, promise = change(base, random.Random(f"{change.__name__}"))
        before, after = tables(tmp_path, promise.as_of or base), tables(tmp_path, data)
        assert compare(promise, before, after) == "", what
        row = next(row for row in after["points"] if row["launch"] not in (promise.launch, 3) and row["work"])
        row["performance"] *= 1.001
        assert re.search(r"performance was .*, is ", compare(promise, before, after)), what
    before = tables(tmp_path, base)
    twice = Promise(launches=[(1, 1), (2, 2), (3, 3)], launch=0, factors={"traffic": 2.0, "work": 1.0}, scope=("level", "dram"))
    assert "not 2.0 times that" in compare(twice, before, before)
    assert impossible(before) == ""
    kept = before["points"][3]
    for column, value in (("seconds", -1.0), ("seconds", 1e308), ("performance", 1e19), ("traffic", -5.0), ("fraction", 1.2)):
        before["points"][3] = {**kept, column: value}
        assert impossible(before).startswith((f"points: {column} is {value}", "fraction of fp"))
        before["points"][3]["notes"] = f"{runs.ABOVE}: 120 % of it, possible if ..."
        assert bool(impossible(before)) == (column != "fraction")


def test_a_finding_is_told_saved_and_comes_again(monkeypatch: Any, capsys: Any, tmp_path: Path) -> None:
    words = ["--save", str(tmp_path), "--replay", "7:3"]
    with monkeypatch.context() as patch:
        patch.setattr(runs, "main", lambda _: {}["Type"])
        assert main(words) == 1
    assert "--replay 7:3" in capsys.readouterr().out
    assert (tmp_path / "7-3" / "report.ncu-rep").read_bytes() == attack(7, 3, made()).data
    assert "KeyError: 'Type'" in (tmp_path / "7-3" / "found.txt").read_text()
    assert main([*words[:3], "7:4"]) == 0
    assert "1 reports" in capsys.readouterr().out


# What `.github/SECURITY.md` promises is held by tests that exist, and says of the attack what is so.
def test_promises() -> None:
    root = Path(__file__).resolve().parents[2]
    page = (root / ".github" / "SECURITY.md").read_text(encoding="utf-8")
    for path, function in set(re.findall(r"`(tests/[\w/]*test_\w+\.py)(?:::(\w+))?`", page)):
        assert f"def {function}" in (root / path).read_text(encoding="utf-8")
    promises = [line for line in page.splitlines() if line.startswith("| ") and not line.startswith("| promise")]
    assert len(promises) >= 10
    assert [line for line in promises if not re.search(r"\| `tests/[^|]*\|$", line)] == []
    words = " ".join(page.split())
    limits = f"after {runs.TOO_LONG:.0f} s of processor time", f"{runs.TOO_MUCH // 1000} MB of memory"
    assert [text for text in (f"{len({*EVERY})} command lines", *limits, *runs.FINDINGS) if text not in words] == []
