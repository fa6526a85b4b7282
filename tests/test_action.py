"""What others take from here: the GitHub Action and the GitLab template that compare two reports, their scripts in a shell as
the services run them, with stubs of `gh` and `curl` (services.toml); the conda recipe; the tasks of an editor."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import ncu_roofline
from ncu_roofline.cli import parse
from tests.rendering.frames import tomllib

ROOT = Path(__file__).parents[1]
FILES = {"github-actions": ROOT / ".github/actions/roofline/action.yml", "gitlab-ci": ROOT / ".gitlab/roofline.yml"}
DEMO = Path(ncu_roofline.__path__[0], "data", "demo")
SERVICES = tomllib.loads(Path(__file__).with_name("services.toml").read_text(encoding="utf-8"))


def document(path: Path) -> Any:
    yaml = pytest.importorskip("ruamel.yaml", reason="no check-jsonschema: action, template and recipe were not tried")
    return yaml.YAML(typ="safe", pure=True).load(path)


def steps(service: str) -> dict[str, str]:
    """The script of each step."""
    if service == "github":
        return {one["name"]: one["run"] for one in document(FILES["github-actions"])["runs"]["steps"]}
    return dict(zip(("compare", "comment", "thresholds"), document(FILES["gitlab-ci"])[".roofline"]["script"], strict=True))


@pytest.mark.parametrize("schema", FILES)
def test_it_is_what_the_service_reads(schema: str) -> None:
    pytest.importorskip("check_jsonschema", reason="no check-jsonschema: the action was not held against its schema")
    words = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", FILES[schema]]
    assert subprocess.run(words, check=False).returncode == 0


def test_both_compare_alike() -> None:
    assert len({steps(service)["compare"].partition("echo")[0] for service in ("github", "gitlab")}) == 1


@pytest.mark.skipif(not shutil.which("bash"), reason="no bash: the action was not tried")
@pytest.mark.parametrize("name", SERVICES["cases"])
def test_a_request(tmp_path: Path, name: str) -> None:
    case, scripts = SERVICES["cases"][name], steps(name.partition("-")[0])
    for program, script in SERVICES["programs"].items():
        (tmp_path / program).write_text(f"#!/bin/sh\n{script}")
        (tmp_path / program).chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT), "PYTHON": sys.executable}
    environment |= {**SERVICES["environment"], **case["environment"]}
    environment |= {when: str(DEMO / environment[when]) for when in ("BEFORE", "AFTER")}

    def read(one: str) -> str:
        return (tmp_path / one).read_text(encoding="utf-8") if (tmp_path / one).exists() else ""

    for step, code in case["steps"].items():
        words = [*case.get("shell", ("bash", "--noprofile", "--norc", "-eo", "pipefail")), "-c", scripts[step]]
        environment["CODE"] = read("output").strip().removeprefix("code=")
        assert subprocess.run(words, cwd=tmp_path, env=environment, check=False).returncode == code, step
    assert read("told").splitlines() == case["told"]
    assert read("commented") == (read("compare.md") if case["told"] else "")
    assert read("summary") == (read("compare.md") if "output" in os.listdir(tmp_path) else "")
    assert ("1.38x faster" in read("compare.md")) == (tmp_path / "compare.html").exists() == ("no-report" not in name)


def test_the_recipe_is_the_project() -> None:
    path, project = ROOT / ".conda" / "recipe.yaml", tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    recipe, about, python = document(path), project["project"], project["project"]["requires-python"]
    host, run = ([line.replace(" ", "") for line in recipe["requirements"][one]] for one in ("host", "run"))
    wanted = {line.partition(";")[0].replace("matplotlib", "matplotlib-base") for line in about["dependencies"]}
    assert {*run[1:], "demangle>=0.6"} == wanted  # which is not known to be there
    assert set(project["build-system"]["requires"]) < set(host)
    assert recipe["context"]["version"] == ncu_roofline.__version__
    assert recipe["build"]["python"]["entry_points"] == [" = ".join(*about["scripts"].items())]
    assert (recipe["about"]["summary"], recipe["about"]["license"]) == (about["description"], about["license"]["text"])
    rattler = pytest.importorskip("rattler_build", reason="no py-rattler-build: the recipe was not rendered")
    variants = rattler.VariantConfig({"python_min": [python.removeprefix(">=")]})
    (made,) = rattler.Stage0Recipe.from_file(path).render(variants)
    assert f"python {python}" in str(made.recipe.to_dict())


def test_the_tasks_of_an_editor_are_commands() -> None:
    tasks = json.loads((ROOT / ".vscode" / "tasks.json").read_text(encoding="utf-8"))["tasks"]
    commands = [words for task in tasks for one in task["command"].split(" && ") if (words := shlex.split(one))[0] != "ncu"]
    assert [parse(words[1:]).command for words in commands] == ["show", "render", "compare"]
