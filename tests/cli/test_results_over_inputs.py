"""No result replaces what its command reads, whatever the two are called: every command that writes, every option it reads."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.cli import COMMANDS, declare
from ncu_roofline.cli.outputs import check_unread
from tests.cli.command import Command, assert_refused
from tests.factory import complete, kernel, report
from tests.machine.fakes import fake_ncu

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")

DEMO = Path(__file__).parents[2] / "ncu_roofline" / "data" / "demo"
# How the values of options that name files are called in the help.
_FILES = ("FILE", "REPORT", "CEILINGS", "PATH", "ADDRESS", "APPLICATION")


class Case(NamedTuple):
    """``words`` with {} for the output and {x} for the input; the file, of this ``name``, is what the output stands for."""

    words: str
    name: str = "x.json"
    output: Callable[[Path], Path] = lambda path: path


def _without_suffix(path: Path) -> Path:
    return path.with_suffix("")


def _two_above(path: Path) -> Path:
    return path.parent.parent


SECTION = "sections/InstructionRooflineChart.section"
CASES = {
    ("render", "-o", "reports"): Case("render {x} -o {out} --format json"),
    ("render", "-o", "--dask"): Case("render {report} --dask {x} -o {out}"),
    ("render", "-o", "--operators"): Case("render {report} --operators {x} -o {out}"),
    ("render", "-o", "--ceilings"): Case("render {report} --ceilings {x} -o {out}"),
    ("compare", "-o", "reports"): Case("compare {report} {x} -o {out} --format json"),
    ("compare", "-o", "--dask"): Case("compare {report} {report} --dask {x} -o {out}"),
    ("compare", "-o", "--ceilings"): Case("compare {report} {report} --ceilings {x} -o {out}"),
    ("compare", "-o", "--operators"): Case("compare {report} {report} --operators {x} -o {out}"),
    ("budget init", "-o", "reports"): Case("budget init {x} -o {out}"),
    **{
        (f"budget {action}", "-o", option): Case(f"budget {action} {{report}} {more} {option} {{x}} -o {{out}}")
        for action, more in (("init", ""), ("check", "--budget none.toml"))
        for option in ("--dask", "--ceilings", "--operators")
    },
    ("budget check", "-o", "reports"): Case("budget check {x} --budget none.toml -o {out} --format json"),
    ("budget check", "-o", "--budget"): Case("budget check {report} --budget {x} -o {out}"),
    ("portability", "-o", "inputs"): Case("portability V100={x} {report} -o {out} --format json"),
    ("portability", "-o", "--ceilings"): Case("portability V100={report} --ceilings V100={x} -o {out}"),
    ("ranks", "-o", "reports"): Case("ranks {report} {x} -o {out} --format json"),
    ("ranks", "-o", "--dask"): Case("ranks {report} --dask {x} -o {out}"),
    ("ranks", "-o", "--ceilings"): Case("ranks {report} --ceilings {x} -o {out}"),
    ("source", "-o", "reports"): Case("source {x} -o {out} --format json"),
    ("source", "-o", "--dask"): Case("source {report} --dask {x} -o {out}"),
    ("source", "-o", "--ceilings"): Case("source {report} --ceilings {x} -o {out}"),
    ("annotate", "-o", "report"): Case("annotate {x} -o {out}"),
    ("annotate", "-o", "--ceilings"): Case("annotate {report} --ceilings {x} -o {out}"),
    ("generate", "-o", "--ceilings"): Case("generate --ceilings {x} -o {out}", SECTION, _two_above),
    ("bench run", "-o", "--nvcc"): Case("bench run --nvcc {x} -o {out}"),
    ("bench run", "-o", "--runner"): Case("bench run --runner {x} -o {out}"),
    ("bench merge", "-o", "files"): Case("bench merge {ceilings} {x} -o {out}"),
    ("bench draw", "-o", "file"): Case("bench draw {x} --format svg -o {out}"),
    ("profile", "-o", "--ceilings"): Case("profile --ceilings {x} -o {out} --ncu {ncu} -- ./app", "x.html", _without_suffix),
    ("profile", "-o", "--ncu"): Case("profile -o {out} --ncu {x} -- ./app", "x.ncu-rep", _without_suffix),
    ("profile", "-o", "application"): Case("profile -o {out} --ncu {ncu} -- ./app {x}", "x.ncu-rep", _without_suffix),
}
# As what the command reads it, where it matters before the refusal.
REPORTS = ("reports", "report", "inputs")


def options() -> Iterator[tuple[str, list[str], list[str]]]:
    """Each command with the options that name what it writes and what it reads."""
    for name in COMMANDS:
        parser = argparse.ArgumentParser()
        declare(parser, name)
        inner = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
        for action, one in inner[0].choices.items() if inner else [("", parser)]:
            told = [action for action in one._actions if action.help != argparse.SUPPRESS]  # others are refused with advice
            named = [action for action in told if any(word in (action.metavar or "") for word in _FILES)]
            folders = [action for action in told if "-o" in action.option_strings]
            writes = [one for one in named if (one.help or "").startswith(("write", "file to write", "picture to write"))]
            outputs = {one.option_strings[0]: one for one in (*folders, *writes)}
            inputs = [(one.option_strings or [one.dest])[0] for one in named if one not in outputs.values()]
            yield f"{name} {action}".strip(), list(outputs), inputs


def test_every_option_is_tried() -> None:
    found = {(name, out, one) for name, outputs, inputs in options() for out in outputs for one in inputs}
    assert found == set(CASES)
    assert {name for name, outputs, _ in options() if outputs} - {name for name, *_ in CASES} == {"demo"}  # which reads nothing


Alias = Callable[[Path, Path], Path]


def _itself(path: Path, _: Path) -> Path:
    return path


def _spelled(path: Path, _: Path) -> Path:
    return Path(f"{path.parent}{os.sep}.{os.sep}..{os.sep}{path.parent.name}{os.sep}{path.name}")


def _linked(path: Path, other: Path) -> Path:
    other.symlink_to(path)
    return other


def _hard_linked(path: Path, other: Path) -> Path:
    os.link(path, other)
    return other


# Every option under a link, which only the file itself tells; every kind of name for one option.
ALIASES = {"same": _itself, "spelled": _spelled, "link": _linked, "hard link": _hard_linked}
NAMES = [(case, "link") for case in CASES] + [(("render", "-o", "reports"), name) for name in ALIASES if name != "link"]


@pytest.mark.parametrize(("case", "name"), NAMES, ids=lambda one: one if isinstance(one, str) else " ".join(one))
def test_refused(run: Command, tmp_path: Path, case: tuple[str, str, str], name: str) -> None:
    check_refused(run, tmp_path, case, ALIASES[name])


@pytest.mark.exhaustive
@pytest.mark.parametrize("alias", ["same", "spelled", "hard link"])
@pytest.mark.parametrize("case", CASES, ids=" ".join)
def test_refused_whatever_the_two_are_called(run: Command, tmp_path: Path, case: tuple[str, str, str], alias: str) -> None:
    check_refused(run, tmp_path, case, ALIASES[alias])


def check_refused(run: Command, tmp_path: Path, case: tuple[str, str, str], alias: Alias) -> None:
    words, name, output = CASES[case]
    path, other = tmp_path / "a" / name, tmp_path / "b" / name
    path.parent.mkdir(parents=True)
    other.parent.mkdir(parents=True)
    sample = report(tmp_path / "r.ncu-rep", kernel(complete()))
    ncu = fake_ncu(tmp_path)
    ceilings = DEMO / "gpp-v100-ceilings.json"
    source = {"--ncu": ncu, "application": ceilings, "--runner": ncu}.get(case[2], sample if case[2] in REPORTS else ceilings)
    shutil.copy2(source, path)
    before = path.read_bytes()
    given = {"x": path, "out": output(alias(path, other)), "report": sample, "ceilings": ceilings, "ncu": ncu}
    before_dashes, dashes, application = words.partition(" -- ")
    line = f"{before_dashes} --force {dashes} {application}"
    outcome = run(*(word.format(**given) for word in line.split()))
    assert path.read_bytes() == before
    assert outcome.code == 1, outcome
    assert outcome.err.count("\n") == 1
    assert "it is one of the files that the command reads" in outcome.err


def test_what_folders_and_patterns_stand_for(run: Command, tmp_path: Path) -> None:
    paths = [report(tmp_path / f"{letter}.ncu-rep", kernel(complete())) for letter in "ab"]
    before = paths[1].read_bytes()
    for named in (tmp_path, tmp_path / "*.ncu-rep"):
        assert_refused(run("render", named, "-o", paths[1], "--format", "csv", "--force"), paths[1])
        assert paths[1].read_bytes() == before


def test_ceilings_that_auto_may_choose(run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    kept = tmp_path / "ncu-roofline" / "ceilings" / "v100.json"
    kept.parent.mkdir(parents=True)
    shutil.copy(DEMO / "gpp-v100-ceilings.json", kept)
    sample = report(tmp_path / "r.ncu-rep", kernel(complete()))
    assert_refused(run("render", sample, "--ceilings", "auto", "-o", kept, "--force"), kept)
    assert json.loads(kept.read_bytes())["schema"]


def test_what_is_not_there_is_nobodys_input(tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.touch()
    for output, inputs in ((tmp_path / "new", [there]), (there, [tmp_path / "missing"]), (there, []), (Path("a\0b"), [there])):
        check_unread(str(output), map(str, inputs))
    with pytest.raises(RooflineError, match=r"it is one of the files that the command reads\. Give the result another name\."):
        check_unread(str(there), [str(there)])
