"""The recipes of CONTRIBUTING.md, followed to the letter in a copy of the sources: they work, and touch no more than they say.

A recipe is a section "Add ...: N files".  Of its code blocks those with a path are files to write ("```toml PATH") or lines to
put behind a line of a file ("```python PATH after LINE"); "```sh" are commands, a comment behind one is what it prints.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / ".github" / "CONTRIBUTING.md").read_text(encoding="utf-8")
RECIPES = dict(re.findall(r"^### Add (.*?)\n(.*?)(?=^##)", TEXT, flags=re.MULTILINE | re.DOTALL))
BLOCK = re.compile(
    r"^```(?P<language>\w+)(?: (?P<path>\S+)(?: after (?P<line>[^\n]+))?)?\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
SOURCES = ("ncu_roofline", "sections", "rules", "bench")


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for name in SOURCES
        for path in (folder / name).rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }


def write(folder: Path, block: re.Match[str]) -> None:
    """Do what a block with a path says."""
    path = folder / block["path"]
    if not block["line"]:
        assert not path.exists()
        path.write_text(block["text"], encoding="utf-8")
        return
    before, found, after = path.read_text(encoding="utf-8").partition(f"{block['line']}\n")
    assert found, f"{block['path']} has no line {block['line']!r} any more: name another line in the recipe."
    path.write_text(before + found + block["text"] + after, encoding="utf-8")


def run(folder: Path, line: str) -> None:
    """A command of a recipe, with the changed sources; a comment is what it prints."""
    command, _, expected = line.partition("  # ")
    words = [sys.executable, "-m", "ncu_roofline", *shlex.split(command)[1:]]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"`{command}` fails: correct the recipe, or what it needs.\n{done.stderr}"
    assert expected in done.stdout, f"`{command}` prints no {expected!r}: correct the recipe's comment, or what is printed."


def test_all_kinds_of_things_have_a_recipe() -> None:
    kinds = [f"a {one}" for one in ("chip", "board", "column", "level", "precision", "rule")]
    kinds += ["an importer", "an analysis", "an output format"]
    assert [any(title.startswith(kind) for title in RECIPES) for kind in kinds] == [True] * len(kinds)


@pytest.mark.parametrize(
    "title",
    [
        title if title[:10] in ("an importe", "a column: ") else pytest.param(title, marks=pytest.mark.exhaustive)
        for title in RECIPES
    ],
)
def test_recipe(title: str, tmp_path: Path) -> None:
    for name in SOURCES:
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    before = files_of(tmp_path)
    blocks = list(BLOCK.finditer(RECIPES[title]))
    for block in blocks:
        if block["path"]:
            write(tmp_path, block)
    after = files_of(tmp_path)
    changed = {path for path in after if after[path] != before.get(path)}
    assert len(changed) == int(title.split(": ")[1].split()[0]), (
        f"'Add {title}' touches {sorted(changed)}: correct its heading."
    )
    commands = [line for block in blocks if block["language"] == "sh" for line in block["text"].splitlines()]
    assert commands, "a recipe ends with a block of commands that show what was added"
    for line in commands:
        run(tmp_path, line)
    generated = {path for path, content in files_of(tmp_path).items() if after.get(path) != content}
    ours = {path for path in generated if not path.startswith(("sections/", "rules/"))}
    assert not ours, f"'Add {title}': its commands write {sorted(ours)}, which the recipe should give as files."
