"""Building the benchmark with compilers that are played: targets, the cache, who may write to it, and every way it fails."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.bench import build as module
from ncu_roofline.bench.build import Built
from tests.bench.fakes import HERE, read_toml
from tests.cli.command import Command, assert_refused
from tests.golden import assert_golden


class Toolkit:
    """A bench folder, a played nvcc beside it, and a cache; ``answers``: what programs print, "-" where they fail."""

    def __init__(self, folder: Path) -> None:
        self.place, self.cache = folder, folder / "cache"
        self.answers, self.release, self.asked = dict[str, str](), "13.0", list[str]()
        for name, text in read_toml("build.toml")["files"].items():
            self.put(name, text)

    def put(self, name: str, text: str = "") -> None:
        path = self.place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)

    def run(self, command: list[str], **_options: Any) -> SimpleNamespace:
        words, name = command[1:], Path(command[0]).name
        if name != "nvcc" and name not in self.answers:
            raise FileNotFoundError(name)
        answer = self.answers.get(name, "")
        if name == "nvcc" and words == ["--version"]:
            answer = f"Cuda compilation tools, release {self.release}, V{self.release}.88"
        elif name == "nvcc" and ("compute_70" in " ".join(words) or words[-1].endswith("broken.cu")):
            answer = "-broken.cu(3): warning: unused variable\nbroken.cu(7): error: expected a ;"
        elif name == "nvcc" and "--dryrun" not in words:
            out = Path(words.pop(words.index("-o") + 1))
            self.asked.append(" ".join(word if word[0] != "/" else Path(word).name for word in words))
            out.write_text("object" if "-c" in words else "program", encoding="utf-8")
            out.chmod(0o755)
        failed = answer.startswith("-") and words != ["--version"]
        return SimpleNamespace(returncode=int(failed), stdout=answer.lstrip("-"))

    def build(self, arch: str = "9.0", **how: Any) -> Built:
        return module.build(arch, str(self.place / "nvcc"), module.How(self.place / "bench", self.cache, **how))

    def do(self, step: str) -> str:
        word, _, rest = step.partition(" ")
        name, _, text = rest.partition(" ")
        if word == "build":
            said: list[str] = []
            built = self.build(name, force=text == "force", strict=text == "strict", say=said.append)
            assert module.describe(built.path).facts() == built.facts()
            facts, asked, self.asked = str(built.facts()).partition(", 'sha256")[0], sorted(self.asked), []
            return "\n".join([*said, *asked, f"{'kept' if built.reused else built.path.read_text()}: {facts}"])
        return {
            "put": lambda: self.put(name, text),
            "nvcc": lambda: setattr(self, "release", name),
            "says": lambda: self.answers.__setitem__(name, text),
            "env": lambda: os.environ.__setitem__(name, text if name == "CXX" else str(self.place / text)),
            "ls": lambda: sorted(path.name for path in (self.cache / "bench").iterdir()),
            "damage": lambda: [path.write_text("damaged") for path in self.cache.glob("bench/*/x")],
            "compiler": lambda: " ".join(map(str, module.find_compiler(str(self.place / name) if name else "")[::2])),
            "host": lambda: module.find_host_compiler().text,
            "native": module.native_capabilities,
            "arch": lambda: module.parse_architectures(rest),
            "cache": lambda: module.cache_folder(dict(one.split("=") for one in text.split()), name).as_posix(),
        }.get(word, lambda: None)()  # type: ignore[return-value]


@pytest.fixture
def toolkit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Toolkit:
    made = Toolkit(tmp_path)
    pipes = {name: getattr(subprocess, name) for name in ("DEVNULL", "PIPE", "STDOUT", "TimeoutExpired")}
    monkeypatch.setattr(module, "subprocess", SimpleNamespace(run=made.run, **pipes))
    for name in ("NVCC", "CUDA_HOME", "CUDA_PATH", "CXX"):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return made


@pytest.mark.parametrize(("name", "steps"), read_toml("build.toml")["steps"].items())
def test_steps(toolkit: Toolkit, name: str, steps: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda one, which=shutil.which: None if "/usr/local" in one else which(one))
    text = ""
    for step in steps:
        try:
            found = toolkit.do(step)
        except RooflineError as error:
            found = f"! {error}"
        text += f"$ {step!r}\n{'' if found is None else found}\n".replace(str(toolkit.place), "")
    text = re.sub(r"[0-9a-f]{20}", "DIGEST", text.replace("\n\n", "\n"))
    assert_golden(HERE / "builds" / f"{name.replace(' ', '-')}.txt", text)


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="Windows keeps folders of users apart")
def test_nobody_else_may_put_a_program_where_ours_is_looked_for(toolkit: Toolkit, monkeypatch: pytest.MonkeyPatch) -> None:
    before = os.umask(0)
    program = toolkit.build().path
    os.umask(before)
    places = [toolkit.cache, toolkit.cache / "bench", program.parent, program, program.parent / "build-info.json"]
    assert [place.stat().st_mode & 0o777 for place in places[:3]] == [0o700] * 3
    shutil.rmtree(toolkit.cache)
    toolkit.build()

    def refused(place: Path, reason: str = "it belongs to another user") -> None:
        for force in (False, True):
            with pytest.raises(RooflineError) as caught:
                toolkit.build(force=force)
            assert str(caught.value) == f"Cannot use {place}: {reason}. Set XDG_CACHE_HOME to a folder of your own."

    for place, mode in zip(places, (0o770, 0o702, 0o720, 0o777, 0o722), strict=True):
        before = place.stat().st_mode
        place.chmod(mode)
        refused(place, "another user may write to it")
        place.chmod(before)
    with monkeypatch.context() as patch:
        patch.setattr(os, "getuid", lambda: 12345)
        refused(toolkit.cache)
    if os.getuid():  # only root can give files away
        return
    os.chown(program, 12345, -1)
    refused(program)
    os.chown(program, 0, -1)
    toolkit.cache.rename(toolkit.place / "ours")
    toolkit.cache.symlink_to(toolkit.place / "ours")
    toolkit.build()
    os.chown(toolkit.cache, 12345, -1, follow_symlinks=False)  # a link of another user is no folder of ours
    refused(toolkit.cache)


def test_bench_build_and_what_needs_a_compiler(run: Command, toolkit: Toolkit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "pack_folder", lambda name: toolkit.place / name)
    monkeypatch.setenv("XDG_CACHE_HOME", str(toolkit.cache))
    words = ("bench", "build", "--arch", "8.0,9.0", "--nvcc", toolkit.place / "nvcc")
    outcome = run(*words)
    assert (outcome.code, Path(outcome.out.strip()).read_text(encoding="utf-8")) == (0, "program")
    assert "built with nvcc 13.0.88 for sm_80,sm_90a" in outcome.err
    assert "built before" in run(*words).err
    assert [Path(line).name for line in run(*words, "--apps").out.splitlines()] == ["gpp", "gsrb"]
    for command in (("run",), ("list",)):
        assert_refused(run("bench", *command), "an NVIDIA GPU")
    assert_refused(run("bench", "list", "--arch", "9.0", "--nvcc", "/no/nvcc"), "/no/nvcc")
    assert_refused(run("bench", "run", "--device", "cpu"), "a C++ compiler")
    assert module.cache_folder({}, "linux").is_absolute()  # where there is no home
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(RooflineError, match="Cannot measure on this CPU"):
        module.build_host()
