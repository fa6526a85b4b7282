"""Building the benchmark: a fake nvcc, the cache, and every way it fails."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ncu_roofline.base.errors import RooflineError, UsageError
from ncu_roofline.bench.build import build, cache_folder, describe, find_compiler, native_capabilities, parse_architectures

NVCC = """
import pathlib, sys
words = sys.argv[1:]
log = pathlib.Path(__file__).with_name("log")
with log.open("a") as stream:
    stream.write(" ".join(words) + "\\n")
if words == ["--version"]:
    print("nvcc: NVIDIA (R) Cuda compiler driver\\nCuda compilation tools, release VERSION, VVERSION.88")
    sys.exit()
if "compute_70" in " ".join(words):
    sys.exit("nvcc fatal   : Unsupported gpu architecture 'compute_70'")
if "--dryrun" in words:
    sys.exit()
out = pathlib.Path(words[words.index("-o") + 1])
if words[-1].endswith("broken.cu"):
    print("broken.cu(3): warning: unused variable\\nbroken.cu(7): error: expected a ;")
    sys.exit(1)
out.write_text("program" if "-c" not in words else "object")
out.chmod(0o755)
"""

RECIPE = {
    "output": "ncu-roofline-bench",
    "sources": ["a.cu", "b/c.cpp"],
    "flags": ["-O3", "-std=c++17"],
    "link_flags": ["-cudart", "static"],
}


def script(path: Path, text: str) -> Path:
    """An executable Python script."""
    path.write_text(f"#!{sys.executable} -S\n{text}")
    path.chmod(0o755)
    return path


class Toolkit:
    """A bench folder, a fake nvcc beside it, and a cache."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "bench"
        self.cache = folder / "cache"
        (self.folder / "b").mkdir(parents=True)
        self.recipe(RECIPE)
        (self.folder / "a.cu").write_text("// a")
        (self.folder / "b" / "c.cpp").write_text("// c")
        self.nvcc = script(folder / "nvcc", NVCC.replace("VERSION", "13.0"))

    def recipe(self, content: object) -> None:
        """Write build.json."""
        (self.folder / "build.json").write_text(json.dumps(content))

    def commands(self) -> list[str]:
        """What nvcc was asked for, without questions."""
        lines = (self.nvcc.parent / "log").read_text().splitlines()
        return [line for line in lines if "--dryrun" not in line and line != "--version"]

    def build(self, arch: str = "9.0", force: bool = False) -> object:
        """Build."""
        return build(arch, str(self.nvcc), folder=self.folder, cache=self.cache, force=force)


@pytest.fixture
def toolkit(tmp_path: Path) -> Toolkit:
    return Toolkit(tmp_path)


def test_sources_are_compiled_and_linked_for_the_best_target(toolkit: Toolkit) -> None:
    built = build("9.0,80", str(toolkit.nvcc), folder=toolkit.folder, cache=toolkit.cache)
    assert built.path.read_text() == "program"
    assert (built.compiler, built.target, built.reused) == ("nvcc 13.0.88", "sm_90a,sm_80", False)
    code = "-gencode arch=compute_90a,code=sm_90a -gencode arch=compute_80,code=sm_80"
    *compiles, link = toolkit.commands()
    assert len(compiles) == 2
    assert all(line.startswith(f"-c -O3 -std=c++17 {code}") for line in compiles)
    assert link.startswith(f"-cudart static {code}")
    assert [path.name for path in built.path.parent.iterdir()] == sorted(["build-info.json", "ncu-roofline-bench"])


def test_a_program_is_built_once(toolkit: Toolkit) -> None:
    first = build("9.0", str(toolkit.nvcc), folder=toolkit.folder, cache=toolkit.cache)
    second = build("sm_90a", str(toolkit.nvcc), folder=toolkit.folder, cache=toolkit.cache)
    assert (second.path, second.sha256, second.reused) == (first.path, first.sha256, True)
    assert len(toolkit.commands()) == 3
    toolkit.build(force=True)
    assert len(toolkit.commands()) == 6


@pytest.mark.parametrize("change", ["source", "flags", "program"])
def test_what_changes_is_built_again(toolkit: Toolkit, change: str) -> None:
    built = build("9.0", str(toolkit.nvcc), folder=toolkit.folder, cache=toolkit.cache)
    if change == "source":
        (toolkit.folder / "a.cu").write_text("// other")
    elif change == "flags":
        toolkit.recipe({**RECIPE, "flags": ["-O2"]})
    else:
        built.path.write_text("damaged")
    again = build("9.0", str(toolkit.nvcc), folder=toolkit.folder, cache=toolkit.cache)
    assert not again.reused
    assert again.path.read_text() == "program"
    assert (again.path == built.path) == (change == "program")


def test_a_failed_build_leaves_nothing(toolkit: Toolkit) -> None:
    (toolkit.folder / "broken.cu").write_text("")
    toolkit.recipe({**RECIPE, "sources": ["a.cu", "broken.cu"]})
    with pytest.raises(RooflineError, match=r"Cannot compile broken\.cu: broken\.cu\(7\): error: expected a ;\. Try"):
        toolkit.build()
    assert list((toolkit.cache / "bench").iterdir()) == []


def test_volta_needs_an_older_compiler(toolkit: Toolkit) -> None:
    with pytest.raises(RooflineError, match=r"does not compile for compute capability 7\.0\. Name an nvcc of CUDA 12"):
        toolkit.build("7.0")


def test_a_cache_that_cannot_be_written(toolkit: Toolkit) -> None:
    toolkit.cache.write_text("a file")
    with pytest.raises(RooflineError, match="XDG_CACHE_HOME"):
        toolkit.build()


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="Windows keeps folders of users apart")
class TestOtherUsers:
    """Nobody else may put a program where we look for ours: it would be run."""

    def planted(self, toolkit: Toolkit) -> Path:
        """The program that was built, as another user could have put it there: with a matching digest."""
        return build("9.0", str(toolkit.nvcc), folder=toolkit.folder, cache=toolkit.cache).path

    def test_what_is_kept_is_for_its_user_alone(self, toolkit: Toolkit) -> None:
        before = os.umask(0)
        try:
            path = self.planted(toolkit)
        finally:
            os.umask(before)
        assert [folder.stat().st_mode & 0o777 for folder in (toolkit.cache, toolkit.cache / "bench", path.parent)] == [
            0o700
        ] * 3

    @pytest.mark.sampled
    @pytest.mark.parametrize("mode", [0o770, 0o702, 0o777])
    @pytest.mark.parametrize("place", ["cache", "bench", "folder", "program", "build-info.json"])
    def test_who_may_write_there_could_have_planted_it(self, toolkit: Toolkit, place: str, mode: int) -> None:
        path = self.planted(toolkit)
        folders = {"cache": toolkit.cache, "bench": toolkit.cache / "bench", "folder": path.parent, "program": path}
        chosen = folders.get(place, path.parent / place)
        chosen.chmod(mode)
        for force in (False, True):
            with pytest.raises(RooflineError) as caught:
                toolkit.build(force=force)
            said = f"Cannot use {chosen}: another user may write to it. Set XDG_CACHE_HOME to a folder of your own."
            assert str(caught.value) == said

    @pytest.mark.parametrize("place", ["cache", "bench", "folder", "program"])
    def test_what_belongs_to_another_user(self, toolkit: Toolkit, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
        path = self.planted(toolkit)
        folders = {"cache": toolkit.cache, "bench": toolkit.cache / "bench", "folder": path.parent, "program": path}
        chosen = folders[place]
        if os.getuid() == 0:
            os.chown(chosen, 12345, -1)
        else:
            monkeypatch.setattr(os, "getuid", lambda: 12345)
            chosen = toolkit.cache
        with pytest.raises(RooflineError, match="it belongs to another user") as caught:
            toolkit.build()
        assert caught.value.path == str(chosen)

    def test_a_link_of_another_user_is_no_folder_of_ours(self, toolkit: Toolkit, tmp_path: Path) -> None:
        if os.getuid():
            pytest.skip("only root can make a link of another user")
        (tmp_path / "ours").mkdir(mode=0o700)
        toolkit.cache.symlink_to(tmp_path / "ours")
        toolkit.build()
        os.chown(toolkit.cache, 12345, -1, follow_symlinks=False)
        with pytest.raises(RooflineError, match="it belongs to another user"):
            toolkit.build()


@pytest.mark.parametrize(("version", "text"), [("11.7", "11.8 is the oldest"), ("?", "does not tell a version")])
def test_compilers_that_will_not_do(tmp_path: Path, version: str, text: str) -> None:
    nvcc = script(tmp_path / "nvcc", NVCC.replace("VERSION", version))
    with pytest.raises(RooflineError, match=text):
        find_compiler(str(nvcc))


def test_no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RooflineError, match="there is no such program"):
        find_compiler(str(tmp_path / "nvcc"))
    script(tmp_path / "nvcc", NVCC.replace("VERSION", "12.4"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("NVCC", raising=False)
    assert find_compiler().version == (12, 4)


@pytest.mark.parametrize("name", ["NVCC", "CUDA_HOME"])
def test_where_a_compiler_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    (tmp_path / "bin").mkdir()
    nvcc = script(tmp_path / "bin" / "nvcc", NVCC.replace("VERSION", "12.8"))
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv(name, str(nvcc if name == "NVCC" else tmp_path))
    assert find_compiler().path == nvcc


def test_native_asks_nvidia_smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RooflineError, match=r"Cannot find an NVIDIA GPU: .*missing.*\. Run where there is one"):
        native_capabilities()
    script(tmp_path / "nvidia-smi", "print('9.0\\n8.0\\n9.0')")
    assert native_capabilities() == ("8.0", "9.0")
    script(tmp_path / "nvidia-smi", "print('No devices were found')")
    with pytest.raises(RooflineError, match="lists no GPU"):
        native_capabilities()


@pytest.mark.parametrize(
    ("text", "expected"),
    [("9.0", ("9.0",)), ("80,9.0,sm_90a", ("8.0", "9.0")), ("100a", ("10.0",)), ("compute_121", ("12.1",))],
)
def test_architectures(text: str, expected: tuple[str, ...]) -> None:
    assert parse_architectures(text) == expected


@pytest.mark.parametrize("text", ["", "hopper", "9", "9.0;8.0", "1000"])
def test_no_architectures(text: str) -> None:
    with pytest.raises(UsageError):
        parse_architectures(text)


def test_a_program_built_elsewhere(tmp_path: Path) -> None:
    program = tmp_path / "mine"
    program.write_text("x")
    built = describe(program)
    assert (built.path, built.compiler, len(built.sha256)) == (program, "", 64)


@pytest.mark.parametrize(
    ("platform", "environment", "expected"),
    [
        ("linux", {"HOME": "/h"}, "/h/.cache/ncu-roofline"),
        ("linux", {"HOME": "/h", "XDG_CACHE_HOME": "/c"}, "/c/ncu-roofline"),
        ("linux", {"XDG_CACHE_HOME": "/c"}, "/c/ncu-roofline"),
        ("darwin", {"HOME": "/h"}, "/h/Library/Caches/ncu-roofline"),
        ("win32", {"LOCALAPPDATA": "/l"}, "/l/ncu-roofline/cache"),
    ],
)
def test_the_cache_folder(platform: str, environment: dict[str, str], expected: str) -> None:
    assert cache_folder(environment, platform).as_posix() == expected
    assert cache_folder({}, "linux").is_absolute()


def test_what_takes_long_is_said(toolkit: Toolkit) -> None:
    said: list[str] = []
    say: Callable[[str], None] = said.append
    for _ in range(2):
        build("9.0", str(toolkit.nvcc), folder=toolkit.folder, cache=toolkit.cache, say=say)
    assert said == ["compiling ncu-roofline-bench with nvcc 13.0.88 for sm_90a ..."]
