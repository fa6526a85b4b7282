"""What starting costs: commands load only what they need, and importing does nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import ncu_roofline
from tests.factory import complete, kernel, report

HEAVY = {
    "numpy", "pandas", "matplotlib", "google.protobuf", "jinja2", "rich", "tqdm", "pyarrow", "multiprocessing", "shtab",
}  # fmt: skip
DRAWING = {"pandas", "matplotlib", "jinja2", "pyarrow"}
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(ncu_roofline.__file__).resolve().parents[1])}
AFTER_A_COMMAND = """
import json, sys
from ncu_roofline.cli import main
try:
    code = main(sys.argv[1:])
except SystemExit as error:
    code = error.code or 0
sys.stdout.flush()
print(json.dumps([code, sorted(sys.modules)]), file=sys.stderr)
"""
AFTER_ALL_HELP = """
import json, sys
from ncu_roofline.cli import COMMANDS, parse
for command in COMMANDS:
    try:
        parse([command, "--help"])
    except SystemExit as error:
        assert error.code == 0, command
    assert not set(json.loads(sys.argv[1])) & set(sys.modules), command
"""
AFTER_IMPORTING_EVERYTHING = """
import importlib, json, os, pkgutil, sys, threading
environment, here = dict(os.environ), os.getcwd()
import ncu_roofline
for module in pkgutil.walk_packages(ncu_roofline.__path__, "ncu_roofline."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
assert dict(os.environ) == environment and os.getcwd() == here
assert threading.active_count() == 1
print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""
AFTER_READING = """
import sys, ncu_roofline
opened = ncu_roofline.read_report(sys.argv[1])
opened.columns(opened.metric_names)
assert [dict(one.metrics) for one in opened.kernels] and "numpy" not in sys.modules
assert not hasattr(ncu_roofline, "nope")
assert not [name for name in ncu_roofline.__all__ if getattr(ncu_roofline, name) is None]
"""


def python(folder: Path, program: str, *words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-c", program, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, cwd=folder, env=ENVIRONMENT)


def loaded_by(folder: Path, *words: object) -> set[str]:
    """The modules that a command loads."""
    done = python(folder, AFTER_A_COMMAND, *words)
    code, modules = json.loads(done.stderr.splitlines()[-1])
    assert code == 0, done.stderr
    return set(modules)


def test_help_and_lists_load_nothing_heavy(tmp_path: Path) -> None:
    loaded = loaded_by(tmp_path, "--help")
    assert not loaded & HEAVY
    assert {one for one in loaded if one.startswith("ncu_roofline.cli.")} == {"ncu_roofline.cli.outputs"}  # no command
    python(tmp_path, AFTER_ALL_HELP, json.dumps(sorted(HEAVY)))
    assert not loaded_by(tmp_path, "list", "formats") & {"numpy", "pandas", "matplotlib", "google.protobuf"}


@pytest.mark.parametrize(
    ("words", "without"),
    [
        ("show", DRAWING | {"ncu_roofline.analyses.source.build"}),  # nothing was counted by instruction
        ("render -o out.csv", DRAWING),
        ("render -o out.svg", {"jinja2", "pandas"}),
        ("render -o out.html", {"matplotlib"}),
    ],
)
def test_commands_load_what_they_need(tmp_path: Path, words: str, without: set[str]) -> None:
    source = report(tmp_path / "r.ncu-rep", kernel(complete()))
    assert not loaded_by(tmp_path, *words.split(), source) & without


def test_importing_has_no_effect(tmp_path: Path) -> None:
    done = python(tmp_path, AFTER_IMPORTING_EVERYTHING)
    assert (done.stdout, len(done.stderr.splitlines())) == ("", 1)
    assert not set(json.loads(done.stderr)) & {*DRAWING, "tqdm"}
    assert not list(tmp_path.iterdir())
    python(tmp_path, AFTER_READING, report(tmp_path / "r.ncu-rep", kernel(complete())))
