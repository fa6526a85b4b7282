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

HEAVY = (
    "numpy", "pandas", "matplotlib", "google.protobuf", "jinja2", "rich", "tqdm", "pyarrow", "multiprocessing", "shtab",
)  # fmt: skip
CORE = ("outputs",)  # of the command line: no command
DRAWING = ("pandas", "matplotlib", "jinja2", "pyarrow")

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


def loaded_by(folder: Path, *words: object) -> set[str]:
    """The modules that a command loads."""
    done = subprocess.run(
        [sys.executable, "-c", AFTER_A_COMMAND, *map(str, words)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        cwd=folder,
        env=ENVIRONMENT,
    )
    code, modules = json.loads(done.stderr.splitlines()[-1])
    assert code == 0, done.stderr
    return set(modules)


def test_help_and_lists_load_nothing_heavy(tmp_path: Path) -> None:
    loaded = loaded_by(tmp_path, "--help")
    assert not loaded & set(HEAVY)
    assert {one for one in loaded if one.startswith("ncu_roofline.cli.")} == {f"ncu_roofline.cli.{one}" for one in CORE}
    words = [sys.executable, "-c", AFTER_ALL_HELP, json.dumps(HEAVY)]
    subprocess.run(words, check=True, timeout=60, cwd=tmp_path, env=ENVIRONMENT, stdout=subprocess.DEVNULL)
    for what in ("architectures", "formats"):
        assert not loaded_by(tmp_path, "list", what) & {"numpy", "pandas", "matplotlib", "google.protobuf"}


@pytest.mark.parametrize("words", [("show",), ("render", "-o", "out.csv")])
def test_text_loads_nothing_that_draws(tmp_path: Path, words: tuple[str, ...]) -> None:
    source = report(tmp_path / "r.ncu-rep", kernel(complete()))
    loaded = loaded_by(tmp_path, *words, source)
    assert not loaded & set(DRAWING)
    assert "ncu_roofline.analyses.source.build" not in loaded  # nothing was counted by instruction


@pytest.mark.parametrize(("suffix", "without"), [("svg", {"jinja2", "pandas"}), ("html", {"matplotlib"})])
def test_drawing_loads_only_its_own_library(tmp_path: Path, suffix: str, without: set[str]) -> None:
    source = report(tmp_path / "r.ncu-rep", kernel(complete()))
    assert not loaded_by(tmp_path, "render", source, "-o", f"out.{suffix}") & without


def test_importing_has_no_effect(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", AFTER_IMPORTING_EVERYTHING],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd=tmp_path,
        env=ENVIRONMENT,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert not set(json.loads(done.stderr)) & {*DRAWING, "tqdm"}
    assert not list(tmp_path.iterdir())


def test_reading_a_report_needs_no_numpy(tmp_path: Path) -> None:
    source = report(tmp_path / "r.ncu-rep", kernel(complete()))
    program = (
        "import sys; from ncu_roofline import read_report; r = read_report(sys.argv[1]); "
        "r.columns(r.metric_names); [dict(k.metrics) for k in r.kernels]; assert 'numpy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", program, str(source)], check=True, timeout=60, env=ENVIRONMENT)


def test_the_public_names_are_there() -> None:
    for name in ncu_roofline.__all__:
        assert getattr(ncu_roofline, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nope'"):
        ncu_roofline.nope  # noqa: B018
