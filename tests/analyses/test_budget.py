"""`budget`: limits written into a file, and what of a new report or trace is over them; the fixture for pytest."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from tests.analyses.test_run import write as write  # the fixture
from tests.analyses.test_run_comparison import trace
from tests.cli.command import Command
from tests.factory import A100, complete, kernel, report
from tests.schemas import assert_fits

GPU = A100["device__attribute_display_name"]
MAIN, ODD = "void main_loop<double>(double *, int)", 'void odd("\x7f\u202e]\\n[[limits]]")'


def launches(*seconds: float, name: str = MAIN, **more: Any) -> list[Any]:
    return [kernel(complete(seconds=each, **more), name) for each in seconds]


@pytest.fixture
def files(run: Command, tmp_path: Path) -> tuple[Path, Path]:
    """A report, and the budget that it makes."""
    path = report(tmp_path / "now.ncu-rep", *launches(5e-3, 5.1e-3, 4.9e-3), *launches(1e-3, name=ODD))
    assert run("budget", "init", path, "-o", tmp_path / "budget.toml").code == 0
    return path, tmp_path / "budget.toml"


def checked(run: Command, new: Path, budget: Path, *words: object) -> tuple[int, list[tuple[str, str, str]]]:
    outcome = run("budget", "check", new, "--budget", budget, "--json", *words)
    assert outcome.err == ""
    rows = assert_fits("budget", outcome.out)["limits"]
    return outcome.code, [(row["kernel"], row["limit"].partition(" ")[0], row["verdict"]) for row in rows]


def test_the_file(files: tuple[Path, Path]) -> None:
    text = files[1].read_text(encoding="utf-8")
    first = text.partition("[[limits]]\n")[2].partition("\n\n")[0]
    assert first.splitlines()[:6] == [
        f'name = "{MAIN}"',
        'grid = "8x1x1"',
        'block = "128x1x1"',
        f'gpu = "{GPU}"',
        "noise = 0.042",  # 1.4826 x 2 % of each report, in squares
        "fail_if = [",
    ]
    assert '  "time > (1 + noise) * 5 ms",' in first
    assert '  "fraction < (1 - noise) * ' in first
    assert '  "bytes.dram > (1 + noise) * ' in first
    assert '  "flops > 1.02 * ' in first


def test_a_report_is_within_its_own_budget(run: Command, files: tuple[Path, Path]) -> None:
    code, rows = checked(run, *files, "--strict")
    assert (code, {verdict for *_, verdict in rows}, len(rows)) == (0, {"ok"}, 8)


@pytest.mark.parametrize(
    ("new", "over"),
    [
        (launches(5.3e-3), {"time", "fraction"}),
        (launches(5.15e-3), set()),  # within the spread
        (launches(5e-3, **{"dram__bytes.sum": 9e9}), {"bytes.dram"}),
        (launches(4e-3, **{"smsp__sass_thread_inst_executed_op_dfma_pred_on.sum": 1e6, "dram__bytes.sum": 1e6}), set()),
    ],
)
def test_what_is_over(run: Command, files: tuple[Path, Path], tmp_path: Path, new: Any, over: set[str]) -> None:
    path = report(tmp_path / "new.ncu-rep", *new, *launches(1e-3, name=ODD))
    code, rows = checked(run, path, files[1])
    found = {limit for name, limit, verdict in rows if name == "main_loop" and verdict == "over"}
    assert found - {"fraction"} == over - {"fraction"}
    assert code == bool(over)


def test_what_is_missing_new_or_renamed(run: Command, files: tuple[Path, Path], tmp_path: Path) -> None:
    path = report(tmp_path / "new.ncu-rep", *launches(5e-3), *launches(9e-3, name="void fresh()"))
    code, rows = checked(run, path, files[1])
    assert (code, checked(run, path, files[1], "--strict")[0]) == (0, 1)
    assert [verdict for *_, verdict in rows] == ["missing", *["ok"] * 4]
    outcome = run("budget", "check", path, "--budget", files[1])
    assert outcome.out.startswith("Within budget. 4 limits of 1 kernel: 4 ok. Missing: 1 kernel.")
    assert "Without a limit: 1 kernel, 64.3 % of the time (fresh)" in outcome.out
    renamed = report(tmp_path / "renamed.ncu-rep", *launches(5e-3, name=MAIN.replace("int", "long")))
    assert [verdict for *_, verdict in checked(run, renamed, files[1])[1]] == ["missing", *["ok"] * 4]
    assert "matched without the function's parameters" in run("budget", "check", renamed, "--budget", files[1]).out
    nothing = report(tmp_path / "nothing.ncu-rep", *launches(9e-3, name="void fresh()"))
    outcome = run("budget", "check", nothing, "--budget", files[1])
    assert (outcome.code, outcome.out.partition(".")[0]) == (1, "Nothing could be checked")
    chosen = run("budget", "check", path, "--budget", files[1], "--kernel", "main", "--strict")
    assert (chosen.code, "missing" in chosen.out) == (0, False)


def test_times_of_another_gpu_limit_nothing(run: Command, files: tuple[Path, Path]) -> None:
    text = files[1].read_text(encoding="utf-8")
    files[1].write_text(text.replace(f'"{GPU}"', '"NVIDIA H100 80GB HBM3"'), encoding="utf-8")
    assert {limit: verdict for _, limit, verdict in checked(run, *files)[1]} == {
        "time": "unknown",
        **dict.fromkeys(("fraction", "bytes.dram", "flops"), "ok"),
    }
    files[1].write_text(text.replace(f'gpu = "{GPU}"\n', ""), encoding="utf-8")
    assert {verdict for *_, verdict in checked(run, *files)[1]} == {"ok"}


def test_a_budget_by_hand(run: Command, files: tuple[Path, Path]) -> None:
    limits = "time > 4 ms and flops > 0", "intensity.dram < 1e9", "launches > 2"
    files[1].write_text(f'version = 1\nrows = "kernels"\n[[limits]]\nname = "{MAIN}"\nfail_if = {json.dumps(limits)}\n')
    assert [row[1:] for row in checked(run, *files)[1]] == [("time", "over"), ("intensity.dram", "over"), ("launches", "over")]


def test_small_launches_have_no_limits_of_time(run: Command, tmp_path: Path) -> None:
    path = report(tmp_path / "a.ncu-rep", *launches(5e-6))
    text, all_of_it = (run("budget", "init", path, *words).out for words in ((), ("--small",)))
    assert ("time >" in text, "flops >" in text, "time >" in all_of_it) == (False, True, True)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("version = 1", "version = 2", "version: must be one of 1, not 2"),
        ("rows =", "row =", "rows: is missing"),
        ("time > (", "tim > (", "limits[0].fail_if: tim > (1 + noise) * 5 ms: at character 1 ('tim'): the names known are"),
        ("time > (", "time > baseline * (", "limits[0].fail_if: "),
        ("time > (", "time > baseline.time * (", "a budget has no baseline"),
        ("noise = ", 'noise = "x" #', "limits[0].noise: must be positive and finite"),
        ("grid = ", "gird = ", "limits[0].gird: is not a key of such a table"),
        ("bytes.dram", "bytes.drum", "drum is no precision or level known"),
        ("[[limits]]", "[[limits", "(whole file): "),
    ],
)
def test_mistakes_are_named_by_their_key(run: Command, files: tuple[Path, Path], old: str, new: str, told: str) -> None:
    files[1].write_text(files[1].read_text(encoding="utf-8").replace(old, new, 1), encoding="utf-8")
    outcome = run("budget", "check", files[0], "--budget", files[1])
    assert (outcome.code, outcome.out, len(outcome.err.splitlines())) == (1, "", 1)
    assert told in outcome.err


def test_a_name_twice_and_no_file(run: Command, files: tuple[Path, Path]) -> None:
    text = files[1].read_text(encoding="utf-8")
    files[1].write_text(text + "[[limits]]" + text.split("[[limits]]")[1], encoding="utf-8")
    assert "main_loop<double>(double *, int) is there twice" in run("budget", "check", files[0], "--budget", files[1]).err
    outcome = run("budget", "check", files[0], "--budget", files[1].with_name("none.toml"))
    assert (outcome.code, outcome.err.count("\n")) == (1, 1)
    assert "Cannot read budget" in outcome.err


def test_nothing_is_overwritten(run: Command, files: tuple[Path, Path]) -> None:
    assert run("budget", "init", files[0], "-o", files[1]).code == 1
    assert run("budget", "init", files[0], "-o", files[1], "--force").code == 0
    assert run("budget", "check", files[0], "--budget", files[1], "-o", files[1], "--format", "md", "--force").code == 1


def test_operators_of_a_trace(run: Command, write: Callable[..., Path], files: tuple[Path, Path], tmp_path: Path) -> None:
    before, budget = write(trace(400, spread=0.01), "a.json"), tmp_path / "operators.toml"
    assert run("budget", "init", before, "-o", budget).code == 0
    assert checked(run, before, budget, "--strict")[0] == 0
    code, rows = checked(run, write(trace(480), "b.json"), budget)
    assert code == 1
    assert {row[1:] for row in rows if row[0].startswith("aten::_softmax")} == {("time", "over"), ("fraction", "over")}
    assert {row[2] for row in rows if not row[0].startswith("aten::_softmax")} == {"ok"}
    target = tmp_path / "budget.md"
    assert run("budget", "check", before, "--budget", budget, "-o", target).code == 0
    assert target.read_text(encoding="utf-8").startswith("# Budget\n\n- Within budget. ")
    for new, limits in ((before, files[1]), (files[0], budget)):
        outcome = run("budget", "check", new, "--budget", limits)
        assert outcome.code == 1
        assert "it limits" in outcome.err


@pytest.mark.exhaustive
@pytest.mark.usefixtures("files")
def test_the_fixture(tmp_path: Path) -> None:
    """In a pytest of its own, with two processes: two tests hold, and one fails with the table for a message."""
    report(tmp_path / "slow.ncu-rep", *launches(6e-3))
    (tmp_path / "test_it.py").write_text(
        "import pytest\n"
        "def test_now(roofline_budget):\n"
        "    assert roofline_budget.check('now.ncu-rep', 'budget.toml', '--strict').failed() is False\n"
        "def test_slow(roofline_budget):\n"
        "    roofline_budget.check('slow.ncu-rep', 'budget.toml')\n"
        "def test_error(roofline_budget):\n"
        "    with pytest.raises(Exception, match='Cannot read budget none.toml'):\n"
        "        roofline_budget.check('now.ncu-rep', 'none.toml')\n"
    )
    named = any(one.value == "ncu_roofline.pytest_plugin" for one in entry_points(group="pytest11"))
    words = ("-p", "no:cacheprovider", "-n", "2", "-W", "error", "-c", os.devnull)
    words += () if named else ("-p", "ncu_roofline.pytest_plugin")  # of a package that is not installed
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        (sys.executable, "-m", "pytest", *words, "--rootdir", ".", "test_it.py"),
        cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert "1 failed, 2 passed" in done.stdout, done.stdout + done.stderr
    assert "AssertionError: Over budget: main_loop. " in done.stdout
    assert "time > (1 + noise) * 5 ms" in done.stdout


def test_the_plugin_imports_nothing_heavy() -> None:
    code = (
        "import sys, pytest; old = set(sys.modules); import ncu_roofline.pytest_plugin; print(sorted(set(sys.modules) - old))"
    )
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run((sys.executable, "-c", code), env=environ, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "['ncu_roofline', 'ncu_roofline.pytest_plugin', 'ncu_roofline.version']"
