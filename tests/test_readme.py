"""All commands and all Python of README and guide run on what the demo wrote; output and picture are what the program makes."""

from __future__ import annotations

import html
import os
import re
import shlex
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest

import ncu_roofline
from ncu_roofline.cli import main
from ncu_roofline.cli.demo import GALLERY

ROOT = Path(__file__).parents[1]
PATH = ROOT / "README.md"
README = PATH.read_text(encoding="utf-8")
GUIDE = Path(ncu_roofline.__file__).parent / "guide"
PAGES = {"README": README, **{f"guide/{path.stem}": path.read_text(encoding="utf-8") for path in sorted(GUIDE.glob("*.md"))}}
BLOCKS = [
    (name, language, block)
    for name, text in PAGES.items()
    for language, block in re.findall(r"^```(\w+)\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
]
COMPILING = ("bench list", "--device cpu")  # half a minute each
COMMANDS = [
    pytest.param(
        line.partition("  #")[0].partition(" # ")[0].strip(),
        id=f"{name}: {line.partition(' #')[0].strip()}",
        marks=[pytest.mark.exhaustive] if any(part in line for part in COMPILING) else [],
    )
    for name, language, block in BLOCKS
    if language == "sh"
    for line in re.sub(r" \\\n +", " ", block).splitlines()
    if line.startswith("ncu-roofline")
]
PYTHON = [block for _, language, block in BLOCKS if language == "python"]
OUTPUTS = [
    (name, command, text)
    for name, page in PAGES.items()
    for command, text in re.findall(r"^```text\n\$ (.*?)\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)
]
PICTURES = {
    "roofline": "render ncu-roofline-demo/gpp-v100.ncu-rep --ceilings ncu-roofline-demo/gpp-v100-ceilings.json --width 800px",
    "tutorial-before": "render ncu-roofline-demo/smooth-made-up.ncu-repz --width 800px",
    "tutorial-after": "compare ncu-roofline-demo/smooth-made-up.ncu-repz ncu-roofline-demo/smooth-after-made-up.ncu-repz",
}
SAMPLES = Path(ncu_roofline.__file__).parent / "data" / "demo"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the demo copies, without what it draws."""
    folder = tmp_path_factory.mktemp("demo")
    shutil.copytree(SAMPLES, folder / "ncu-roofline-demo")
    return folder


@pytest.fixture
def demo(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of that folder, the current one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # where the lock is: other tests measure this CPU, too
    return Path(shutil.copytree(made, tmp_path, dirs_exist_ok=True))


def test_the_demo_copies_what_the_examples_name() -> None:
    assert {name for one in GALLERY.values() for name in one.samples} == {path.name for path in SAMPLES.iterdir()}


def test_there_are_commands_and_python() -> None:
    assert len(COMMANDS) >= 30
    assert PYTHON
    assert OUTPUTS


def test_the_readme_is_short_and_its_links_lead_somewhere() -> None:
    assert len(README.splitlines()) <= 200
    for target in re.findall(r"\]\(([^)]+)\)|src=\"([^\"]+)\"", README):
        assert (ROOT / "".join(target)).is_file(), target
    assert {f"guide/{topic}" for topic in re.findall(r"\(ncu_roofline/guide/(\w+)\.md\)", README)} >= {*PAGES} - {
        "README",
        "guide/README",
    }


@pytest.mark.parametrize("command", COMMANDS)
def test_command(command: str, demo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = shlex.split(command)
    for part, compiler in (("bench list", os.environ.get("NVCC", "nvcc")), ("--device cpu", os.environ.get("CXX", "c++"))):
        if part in command and not shutil.which(compiler):
            pytest.skip(f"no {compiler} on this machine: `{command}` is not tried")
    before = set(demo.rglob("*"))
    code, said = main(words[1:]), capsys.readouterr()
    busy = "--device cpu" in command and "no ceiling was accepted" in said.err  # this machine does other work meanwhile
    assert code == (1 if busy else 0)
    assert "No kernel can be drawn" not in said.out
    if "-o" in words:
        assert (demo / words[words.index("-o") + 1]) in set(demo.rglob("*")) - before
    else:
        assert said.out.strip()


def test_commands_work_inside_the_checkout(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("bench", "ncu_roofline", "rules", "sections", "tests", "pyproject.toml", "README.md"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    shutil.copytree(made / "ncu-roofline-demo", tmp_path / "ncu-roofline-demo")
    ours = [one.values[0] for one in COMMANDS if str(one.id).startswith("README")]
    assert len(ours) >= 6
    for command in ours:
        assert main(shlex.split(str(command))[1:]) == 0, command


@pytest.mark.parametrize(("page", "command", "text"), OUTPUTS, ids=[f"{page}: {command}" for page, command, _ in OUTPUTS])
@pytest.mark.usefixtures("demo")
def test_what_is_shown_is_what_is_printed(
    page: str, command: str, text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    capsys.readouterr()
    assert main(shlex.split(command)[1:]) == 0
    printed = capsys.readouterr().out
    if os.environ.get("UPDATE_GOLDEN"):
        mark = f"```text\n$ {command}\n"
        path = PATH if page == "README" else GUIDE.parent / f"{page}.md"
        path.write_text(path.read_text(encoding="utf-8").replace(f"{mark}{text}```", f"{mark}{printed}```"), encoding="utf-8")
        return
    assert text == printed


def words_of(svg: str) -> list[str]:
    """All text of a picture, whether it is text or curves with the text as a comment."""
    texts = re.findall(r"<text[^>]*>(.*?)</text>", svg, flags=re.DOTALL)
    found = [re.sub(r"<[^>]+>", "", text) for text in texts] or re.findall(r"<!-- (.*?) -->", svg)
    return sorted(html.unescape(text).strip() for text in found)


@pytest.mark.parametrize("name", PICTURES)
def test_the_pictures_are_what_is_drawn(name: str, demo: Path) -> None:
    """Their words: shapes differ a little between releases of matplotlib."""
    picture = ROOT / ".github" / f"{name}.svg"
    assert main([*shlex.split(PICTURES[name]), "--theme", "auto", "-o", f"{name}.svg"]) == 0
    drawn = (demo / f"{name}.svg").read_text(encoding="utf-8")
    if os.environ.get("UPDATE_GOLDEN"):
        picture.write_text(drawn, encoding="utf-8")
    words = words_of(picture.read_text(encoding="utf-8"))
    assert len(words) >= 20
    assert words == words_of(drawn)


@pytest.mark.parametrize("text", PYTHON)
def test_python(text: str, demo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scope: dict[str, Any] = {}
    exec(text, scope)
    said = capsys.readouterr().out
    assert any(kernel in said for kernel in ("sigma_gpp_gpu", "stencil", "smooth"))
    starts = {"svg": b"<?xml", "page": b"<!DOCTYPE html>", "picture": b"\x89PNG"}
    drawn = {name for name in starts if name in scope}
    assert drawn
    assert all(scope[name].startswith(starts[name]) for name in drawn)
    assert demo.is_dir()


def test_set_up_blocks_are_where_continuous_integration_reads_them() -> None:
    for mark in ("demo", "tests"):
        block = re.search(rf"^<!-- {mark} -->\n```sh\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)
        assert block
        assert len(block[1].splitlines()) == 1
