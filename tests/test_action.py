"""The GitHub Action that compares two reports: its scripts in a shell, as the service runs them, with a stub of `gh`."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ACTION = ROOT / ".github" / "actions" / "roofline" / "action.yml"
DEMO = ROOT / "ncu_roofline" / "data" / "demo"


def steps() -> dict[str, str]:
    """The script of each step."""
    yaml = pytest.importorskip("ruamel.yaml", reason="no check-jsonschema: the action was not tried")
    return {one["name"]: one["run"] for one in yaml.YAML(typ="safe", pure=True).load(ACTION)["runs"]["steps"]}


def test_it_is_what_the_service_reads() -> None:
    pytest.importorskip("check_jsonschema", reason="no check-jsonschema: the action was not held against its schema")
    words = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-actions", ACTION]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.skipif(not shutil.which("bash"), reason="no bash: the action was not tried")
@pytest.mark.parametrize(("thresholds", "code"), [("", 0), ("time > 2 * baseline\n\ntime > 1.1 * baseline\n", 1)])
def test_a_pull_request(tmp_path: Path, thresholds: str, code: int) -> None:
    """The stencil is faster, one kernel of it slower by 30 %."""
    scripts, programs = steps(), tmp_path / "bin"
    programs.mkdir()
    (programs / "ncu-roofline").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ncu_roofline "$@"\n')
    (programs / "gh").write_text('#!/bin/sh\necho "$@" > told\ncp compare.md commented\n')
    for program in programs.iterdir():
        program.chmod(0o755)
    for name in ("before", "after"):
        shutil.copy(DEMO / f"stencil-{name}-made-up.ncu-repz", tmp_path / f"{name}.ncu-repz")
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT), "FAIL_IF": thresholds}
    environment |= {"BEFORE": "before.ncu-repz", "AFTER": "after.ncu-repz", "NUMBER": "7"}
    environment |= {name: str(tmp_path / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}

    def run(name: str, **more: str) -> int:
        words = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", scripts[name]]
        return subprocess.run(words, cwd=tmp_path, env={**environment, **more}, capture_output=True, check=False).returncode

    assert run("compare") == 0
    assert (tmp_path / "GITHUB_OUTPUT").read_text() == f"code={code}\n"
    assert run("comment") == 0
    assert (tmp_path / "told").read_text() == "pr comment 7 --body-file compare.md --edit-last --create-if-none\n"
    comment = (tmp_path / "commented").read_text()
    assert re.search(r"1\.38x faster", comment)
    assert (tmp_path / "GITHUB_STEP_SUMMARY").read_text() == comment
    assert (tmp_path / "compare.html").read_bytes().startswith(b"<!DOCTYPE html>")
    assert run("thresholds", CODE=str(code)) == code
