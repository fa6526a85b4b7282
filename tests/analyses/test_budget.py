"""Budgets, beside budget.session: their JSON, and the fixture for pytest."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from tests.analyses.made import MAIN, ODD
from tests.analyses.makers import written
from tests.cli.command import Command
from tests.schemas import assert_fits

ENVIRON = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}


@pytest.fixture
def files(run: Command, tmp_path: Path) -> tuple[Path, Path]:
    """A report, and the budget that it makes."""
    path, budget = written(tmp_path, "now", [{"name": MAIN, "ms": 5}, {"name": ODD}]), tmp_path / "budget.toml"
    assert run("budget", "init", path, "-o", budget).code == 0
    return path, budget


def test_limits_as_json(run: Command, files: tuple[Path, Path]) -> None:
    """Of a budget for other GPUs times are unknown, of one for any GPU they count."""
    path, budget = files
    text = budget.read_text(encoding="utf-8")
    for limits, found in (
        (text.replace("A100-SXM4-40GB", "H100 80GB HBM3"), "unknown"),
        (text.replace("gpu =", "# gpu ="), "ok"),
    ):
        budget.write_text(limits, encoding="utf-8")
        rows = assert_fits("budget", run("budget", "check", path, "--budget", budget, "--json").out)["limits"]
        assert sorted(row["verdict"] for row in rows) == sorted([found, "ok", "ok", "ok"] * 2)


@pytest.mark.exhaustive
@pytest.mark.usefixtures("files")
def test_the_fixture(tmp_path: Path) -> None:
    """In a pytest of its own, with two processes: two tests hold, and one fails with the table for a message."""
    written(tmp_path, "slow", [{"name": MAIN, "ms": 6}])
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
    command = (sys.executable, "-m", "pytest", *words, "--rootdir", ".", "test_it.py")
    done = subprocess.run(command, cwd=tmp_path, env=ENVIRON, capture_output=True, text=True, timeout=120, check=False)
    assert "1 failed, 2 passed" in done.stdout, done.stdout + done.stderr
    assert "AssertionError: Over budget: main_loop. " in done.stdout
    assert "time > (1 + noise) * 5 ms" in done.stdout


def test_the_plugin_imports_nothing_heavy() -> None:
    code = (
        "import sys, pytest; old = set(sys.modules); import ncu_roofline.pytest_plugin; print(sorted(set(sys.modules) - old))"
    )
    done = subprocess.run((sys.executable, "-c", code), env=ENVIRON, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "['ncu_roofline', 'ncu_roofline.pytest_plugin', 'ncu_roofline.version']"
