"""Building the benchmark with compilers that are played: targets, the cache, who may write to it, and every way it fails."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ncu_roofline.base.errors import RooflineError, UsageError
from ncu_roofline.bench import build as module
from ncu_roofline.bench.build import Built, build, describe, find_compiler, find_host_compiler
from tests.cli.command import Command, assert_refused

RECIPE = {"output": "ncu-roofline-bench", "sources": ["a.cu", "b/c.cpp"], "flags": ["-O3"], "link_flags": ["-cudart", "static"]}


class Toolkit:
    """A bench folder, a played nvcc beside it, and a cache; ``answers``: what other programs print, None where they fail."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.cache, self.version, self.asked = folder / "bench", folder / "cache", "13.0", list[str]()
        self.answers: dict[str, str | None] = {}
        for name, text in {"bench/b/c.cpp": "// c", "bench/a.cu": "// a", "bench/build.json": json.dumps(RECIPE)}.items():
            self.put(name, text)
        self.nvcc = self.put("nvcc")

    def put(self, name: str, text: str = "") -> Path:
        """A file, which can be executed."""
        path = self.folder.parent / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
        return path

    def run(self, command: list[str], **_options: Any) -> SimpleNamespace:
        """In place of `subprocess.run`."""
        words, name = command[1:], Path(command[0]).name
        answer = "" if name == "nvcc" else self.answers.get(name, "none")
        if answer == "none":
            raise FileNotFoundError(name)
        if name == "nvcc" and words == ["--version"]:
            answer = f"Cuda compilation tools, release {self.version}, V{self.version}.88"
        elif name == "nvcc" and ("compute_70" in " ".join(words) or words[-1].endswith("broken.cu")):
            text = "broken.cu(3): warning: unused variable\nbroken.cu(7): error: expected a ;"
            return SimpleNamespace(returncode=1, stdout=text)
        elif name == "nvcc" and "--dryrun" not in words:
            self.asked.append(" ".join(words))
            out = Path(words[words.index("-o") + 1])
            out.write_text("object" if "-c" in words else "program", encoding="utf-8")
            out.chmod(0o755)
        return SimpleNamespace(returncode=int(answer is None), stdout=answer or "")

    def build(self, arch: str = "9.0", **how: Any) -> Built:
        """Build."""
        return build(arch, str(self.nvcc), folder=self.folder, cache=self.cache, **how)


@pytest.fixture
def toolkit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Toolkit:
    made = Toolkit(tmp_path)
    pipes = {name: getattr(subprocess, name) for name in ("DEVNULL", "PIPE", "STDOUT", "TimeoutExpired")}
    monkeypatch.setattr(module, "subprocess", SimpleNamespace(run=made.run, **pipes))
    for name in ("NVCC", "CUDA_HOME", "CUDA_PATH", "CXX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return made


def test_sources_are_compiled_and_linked_for_the_best_target_once(toolkit: Toolkit) -> None:
    said: list[str] = []
    built = toolkit.build("9.0,80", say=said.append)
    assert built.path.read_text(encoding="utf-8") == "program"
    assert (built.compiler, built.target, built.reused) == ("nvcc 13.0.88", "sm_90a,sm_80", False)
    assert built.facts() == {"compiler": built.compiler, "target": built.target, "flags": "-O3", "sha256": built.sha256}
    code = "-gencode arch=compute_90a,code=sm_90a -gencode arch=compute_80,code=sm_80"
    *compiles, link = toolkit.asked
    assert sorted(line.rpartition("/")[2] for line in compiles) == ["a.cu", "c.cpp"]
    assert all(line.startswith(f"-c -O3 {code} -I {toolkit.folder} ") for line in compiles)
    assert link.startswith(f"-cudart static {code} ")
    assert sorted(path.name for path in built.path.parent.iterdir()) == ["build-info.json", "ncu-roofline-bench"]
    again = toolkit.build("sm_90a,8.0", say=said.append)
    assert (again.path, again.sha256, again.reused, describe(built.path)) == (built.path, built.sha256, True, again)
    assert said == ["compiling ncu-roofline-bench with nvcc 13.0.88 for sm_90a, sm_80 ..."]
    assert not toolkit.build("9.0,80", force=True).reused
    assert len(toolkit.asked) == 6
    mine = describe(toolkit.put("mine", "x"))
    assert (mine.compiler, len(mine.sha256)) == ("", 64)


@pytest.mark.parametrize("change", ["source", "flags", "program", "compiler"])
def test_what_changes_is_built_again(toolkit: Toolkit, change: str) -> None:
    built = toolkit.build()
    if change == "source":
        toolkit.put("bench/a.cu", "// other")
    elif change == "flags":
        toolkit.put("bench/build.json", json.dumps({**RECIPE, "flags": ["-O2"]}))
    elif change == "compiler":
        toolkit.version = "12.8"
    else:
        built.path.write_text("damaged", encoding="utf-8")
    again = toolkit.build()
    assert (again.reused, again.path.read_text(encoding="utf-8")) == (False, "program")
    assert (again.path == built.path) == (change == "program")


def test_what_does_not_compile_leaves_nothing(toolkit: Toolkit) -> None:
    toolkit.put("bench/broken.cu")
    recipe = {**RECIPE, "sources": ["a.cu", "broken.cu"], "strict_flags": ["-Werror"], "apps": {"gpp": "a.cu", "x": "b/c.cpp"}}
    toolkit.put("bench/build.json", json.dumps(recipe))
    with pytest.raises(RooflineError, match=r"Cannot compile broken\.cu: broken\.cu\(7\): error: expected a ;\. Try"):
        toolkit.build(strict=True)
    assert list((toolkit.cache / "bench").iterdir()) == []
    assert " -O3 -Werror " in toolkit.asked[0]
    with pytest.raises(RooflineError, match=r"does not compile for compute capability 7\.0\. Name an nvcc of CUDA 12"):
        toolkit.build("7.0")
    toolkit.cache.joinpath("bench").rmdir()
    toolkit.cache.rmdir()
    toolkit.cache.write_text("a file", encoding="utf-8")
    with pytest.raises(RooflineError, match="XDG_CACHE_HOME"):
        toolkit.build()


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="Windows keeps folders of users apart")
def test_nobody_else_may_put_a_program_where_ours_is_looked_for(toolkit: Toolkit, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be run, also with a digest that matches."""
    before = os.umask(0)
    try:
        program = toolkit.build().path
    finally:
        os.umask(before)
    places = [toolkit.cache, toolkit.cache / "bench", program.parent, program, program.parent / "build-info.json"]
    assert [place.stat().st_mode & 0o777 for place in places[:3]] == [0o700] * 3
    shutil.rmtree(toolkit.cache)
    toolkit.build()

    def refused(place: Path, reason: str) -> None:
        for force in (False, True):
            with pytest.raises(RooflineError) as caught:
                toolkit.build(force=force)
            assert str(caught.value) == f"Cannot use {place}: {reason}. Set XDG_CACHE_HOME to a folder of your own."

    for place, mode in zip(places, (0o770, 0o702, 0o720, 0o777, 0o722), strict=True):
        before = place.stat().st_mode
        place.chmod(mode)
        refused(place, "another user may write to it")
        place.chmod(before)
    if os.getuid():  # only root can give files away
        monkeypatch.setattr(os, "getuid", lambda: 12345)
        refused(toolkit.cache, "it belongs to another user")
        return
    for place in places:
        os.chown(place, 12345, -1)
        refused(place, "it belongs to another user")
        os.chown(place, 0, -1)
    toolkit.cache.rename(toolkit.folder.parent / "ours")
    toolkit.cache.symlink_to(toolkit.folder.parent / "ours")
    toolkit.build()
    os.chown(toolkit.cache, 12345, -1, follow_symlinks=False)  # a link of another user is no folder of ours
    refused(toolkit.cache, "it belongs to another user")


def test_which_compiler(toolkit: Toolkit, monkeypatch: pytest.MonkeyPatch) -> None:
    for version, text in (("11.7", "11.8 is the oldest"), ("?", "does not tell a version")):
        toolkit.version = version
        with pytest.raises(RooflineError, match=text):
            find_compiler(str(toolkit.nvcc))
    toolkit.version = "11.8"
    assert find_compiler(str(toolkit.nvcc)).version == (11, 8)
    with pytest.raises(RooflineError, match="there is no such program"):
        find_compiler("/no/nvcc")
    for name, value, path in (
        ("CUDA_PATH", "b", "b/bin/nvcc"),
        ("CUDA_HOME", "a", "a/bin/nvcc"),
        ("PATH", "c", "c/nvcc"),
        ("NVCC", "n/nvcc", "n/nvcc"),
    ):
        found = toolkit.put(path)
        monkeypatch.setenv(name, str(toolkit.folder.parent / value))
        assert find_compiler().path == found  # each goes before the ones above


def test_gpus_and_architectures(toolkit: Toolkit) -> None:
    with pytest.raises(RooflineError, match=r"Cannot find an NVIDIA GPU: .*missing.*\. Run where there is one"):
        module.native_capabilities()
    toolkit.answers["nvidia-smi"] = "9.0\n8.0\n9.0\n"
    assert module.native_capabilities() == ("8.0", "9.0")
    assert toolkit.build("native").target == "sm_80,sm_90a"
    toolkit.answers["nvidia-smi"] = "No devices were found"
    with pytest.raises(RooflineError, match="lists no GPU"):
        module.native_capabilities()
    texts = {"9.0": ("9.0",), "80,9.0,sm_90a": ("8.0", "9.0"), "100a": ("10.0",), "compute_121": ("12.1",)}
    assert {text: module.parse_architectures(text) for text in texts} == texts
    for text in ("", "hopper", "9", "9.0;8.0", "1000"):
        with pytest.raises(UsageError):
            module.parse_architectures(text)


def test_a_compiler_of_the_system(toolkit: Toolkit, monkeypatch: pytest.MonkeyPatch) -> None:
    """One without OpenMP is passed over."""
    with pytest.raises(RooflineError, match=r"Cannot find a C\+\+ compiler: there is none of .*\. Install GCC or Clang"):
        find_host_compiler()
    for name in ("c++", "g++"):
        toolkit.put(f"bin/{name}")
    toolkit.answers = {"c++": None, "g++": "new 2.0\n(c)"}
    assert find_host_compiler().text == "new 2.0"
    toolkit.answers["g++"] = None
    with pytest.raises(RooflineError, match="it does not compile and link with -fopenmp"):
        find_host_compiler()
    monkeypatch.setenv("CXX", "no-such-compiler -O2")
    with pytest.raises(RooflineError, match="Cannot find no-such-compiler: CXX names it, and there is no such program"):
        find_host_compiler()
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(RooflineError, match="Cannot measure on this CPU"):
        module.build_host()


def test_bench_build_and_what_needs_a_compiler(run: Command, toolkit: Toolkit, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = {**RECIPE, "strict_flags": [], "apps": {"gpp": "a.cu", "gsrb": "b/c.cpp"}}
    toolkit.put("bench/build.json", json.dumps(recipe))
    monkeypatch.setattr(module, "pack_folder", lambda _name: toolkit.folder)
    monkeypatch.setenv("XDG_CACHE_HOME", str(toolkit.cache))
    outcome = run("bench", "build", "--arch", "8.0,9.0", "--nvcc", toolkit.nvcc)
    assert outcome.code == 0, outcome.err
    assert Path(outcome.out.strip()).read_text(encoding="utf-8") == "program"
    assert "built with nvcc 13.0.88 for sm_80,sm_90a" in outcome.err
    assert "built before" in run("bench", "build", "--arch", "8.0,9.0", "--nvcc", toolkit.nvcc).err
    apps = run("bench", "build", "--apps", "--arch", "8.0", "--nvcc", toolkit.nvcc)
    assert [Path(line).name for line in apps.out.splitlines()] == ["gpp", "gsrb"]
    for words in (("run",), ("list",)):
        assert_refused(run("bench", *words), "an NVIDIA GPU")
    assert_refused(run("bench", "list", "--arch", "9.0", "--nvcc", "/no/nvcc"), "/no/nvcc")
    assert_refused(run("bench", "run", "--device", "cpu"), "a C++ compiler")


def test_the_cache_folder() -> None:
    for platform, environment, expected in (
        ("linux", "HOME=/h", "/h/.cache/ncu-roofline"),
        ("linux", "HOME=/h XDG_CACHE_HOME=/c", "/c/ncu-roofline"),
        ("linux", "XDG_CACHE_HOME=/c", "/c/ncu-roofline"),
        ("darwin", "HOME=/h XDG_CACHE_HOME=/c", "/h/Library/Caches/ncu-roofline"),
        ("win32", "LOCALAPPDATA=/l", "/l/ncu-roofline/cache"),
    ):
        told = dict(one.split("=") for one in environment.split())
        assert module.cache_folder(told, platform).as_posix() == expected
    assert module.cache_folder({}, "linux").is_absolute()
