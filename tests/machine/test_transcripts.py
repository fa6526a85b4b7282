"""`install`, `uninstall`, `doctor` and `profile` on machines with stand-ins for ncu and others: transcripts `*.machine`.

A command is one of ncu-roofline, run in the folder `@/work` of a machine whose home is `@/home` and whose PATH is `@/bin` (the
demo's ceilings are `@/demo.json`), or

    + ncu FOLDER [VERSION]    + smi NAME=VALUE,... ...    + nvcc RELEASE [CODE]    + driver [ADMIN_ONLY]    + env NAME=VALUE ...
    + write PATH TEXT         + program PATH SCRIPT       + remove PATH            + link PATH TARGET       + copy PATH PATH
    tree PATH                 cat PATH                    called (how ncu was run last)

with `| grep REGEX` and `| head N` behind it.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

from ncu_roofline.plugin.machine.machine import Machine
from ncu_roofline.version import __version__
from tests.cli.command import Command
from tests.machine.fakes import CEILINGS, H100, fake_ncu, fake_nvcc, fake_smi, program, set_env, with_driver
from tests.replay import assert_replays
from tests.test_sessions import filtered

HERE = Path(__file__).parent
UNSTABLE = {
    r"(/tmp|@)/[\w./-]*\bncu-roofline-\w+": "TEMPORARY",
    r"--section-folder \S+/(sections|rules) ": r"--section-folder \1 ",
    r"\b\d+ files\b": "N files",
}


def set_up(machine: Machine, folder: Path, what: str, words: list[str]) -> None:
    """Another thing on the machine, or one less."""
    if what == "ncu":
        fake_ncu(Path(words[0]), *words[1:])
    elif what == "smi":
        gpus = [{**H100, **dict(pair.split("=") for pair in word.split(",") if pair)} for word in words]
        fake_smi(folder / "bin", gpus)
    elif what == "nvcc":
        fake_nvcc(folder / "bin", words[0], *map(int, words[1:]))
    elif what == "driver":
        with_driver(machine, *words)
    elif what == "env":
        set_env(machine, **dict(word.split("=", 1) for word in words))
    elif what == "program":
        program(Path(words[0]), words[1])
    elif what == "write":
        Path(words[0]).parent.mkdir(parents=True, exist_ok=True)
        Path(words[0]).write_text(words[1], encoding="utf-8")
    elif what == "copy":
        shutil.copy(*words)
    elif what == "remove":
        Path(words[0]).unlink()
    else:
        assert what == "link"
        Path(words[0]).symlink_to(words[1])


def answer(command: str, machine: Machine, folder: Path, run: Command) -> str:
    """What a command gives; lines on standard error begin with "! "."""
    line, *filters = (shlex.split(part) for part in command.replace("@/", f"{folder}/").split(" | "))
    name, *words = line
    err, code = "", 0
    if name == "+":
        set_up(machine, folder, words[0], [word.encode().decode("unicode_escape") for word in words[1:]])
        return ""
    if name == "tree":
        below = sorted(Path(words[0]).rglob("*"))
        out = "".join(f"{path.relative_to(words[0])}{'/' * path.is_dir()}\n" for path in below)
    elif name == "cat":
        out = Path(words[0]).read_text(encoding="utf-8")
    elif name == "called":
        out = shlex.join(json.loads((folder / "bin" / "calls").read_text().splitlines()[-1]))
    else:
        outcome = run(*words)
        out, err, code = outcome.out, outcome.err, outcome.code
    for words in filters:
        out = filtered(out, words)
    text = f"{out.rstrip()}\n" if out.strip() else ""
    text += "".join(f"! {line}\n" for line in err.splitlines()) + (f"[{code}]\n" if code else "")
    text = text.replace(f"{folder}/", "@/").replace(__version__, "VERSION")
    for pattern, instead in UNSTABLE.items():
        text = re.sub(pattern, instead, text)
    return text


@pytest.mark.parametrize("path", sorted(HERE.glob("*.machine")), ids=lambda path: path.stem)
def test_transcripts(path: Path, machine: Machine, run: Command, tmp_path: Path) -> None:
    shutil.copy(CEILINGS, tmp_path / "demo.json")
    assert_replays(path, tmp_path, lambda command: answer(command, machine, tmp_path, run))
