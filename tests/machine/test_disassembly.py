"""nvdisasm: found, run, and what is said where it fails."""

from __future__ import annotations

import os
import sys
import time
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.formats.sass.cubin import Cubin, Function
from ncu_roofline.formats.sass.instructions import decode
from ncu_roofline.plugin.machine import machine as disassembly
from ncu_roofline.plugin.machine.machine import Machine, disassemble, find_nvdisasm
from tests.machine.fakes import bare_machine, program
from tests.processes import parents
from tests.sass import fixtures

FAKE = r"""#!{python}
import os, sys
words = sys.argv[1:]
chip = words[words.index("--binary") + 1]
if chip not in {chips!r}:
    print("nvdisasm fatal   : Value '%s' is not defined for option 'binary'" % chip, file=sys.stderr)
    sys.exit(1)
{rest}
"""
LISTING = """
	.headerflags	@"EF_CUDA_SM80"
        /*0000*/                   MOV R1, c[0x0][0x28] ;
        /*0010*/              @!P0 EXIT ;
"""


CHILD = "import subprocess; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(3)'])"
"""It ends, and leaves behind what holds its output."""


def fake(folder: Path, rest: str, chips: tuple[str, ...] = ("SM80",)) -> Path:
    text = FAKE.replace("{python}", sys.executable).replace("{chips!r}", repr(chips)).replace("{rest}", rest)
    return program(folder / "nvdisasm", text)


class NoFiles:
    """A package whose program was removed."""

    name = "nvdisasm"

    def locate(self) -> Path:
        return Path("/nowhere/nvdisasm")


def no_package(_: str) -> Any:
    raise metadata.PackageNotFoundError


def test_the_path_comes_first(tmp_path: Path) -> None:
    assert find_nvdisasm(bare_machine(tmp_path, PATH=str(fake(tmp_path / "bin", "").parent))) == tmp_path / "bin" / "nvdisasm"


def test_the_package_comes_next(tmp_path: Path) -> None:
    pytest.importorskip("nvidia")
    found = find_nvdisasm(bare_machine(tmp_path))
    if found is None:
        pytest.skip("no package nvidia-cuda-nvdisasm")
    assert found.is_file()
    assert found.name == "nvdisasm"


@pytest.mark.parametrize("files", [no_package, lambda _: None, lambda _: [NoFiles()]])
def test_nowhere(files: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "files", files)
    assert find_nvdisasm(bare_machine(tmp_path)) is None


def test_what_it_prints(tmp_path: Path) -> None:
    tool = fake(tmp_path / "bin", f"assert os.path.getsize(words[-1]) == 32\nprint({LISTING!r})")
    assert disassemble([bytes(32)], (8, 0), tool, machine=bare_machine(tmp_path))[0] == {
        0: "MOV R1, c[0x0][0x28]",
        16: "@!P0 EXIT",
    }


@pytest.mark.parametrize(
    ("rest", "chips", "said"),
    [
        ("sys.exit(3)", ("SM80a",), "exit code 3"),
        ("os.abort()", ("SM80a",), "exit code -6"),
        ("print('nvdisasm error   : Illegal instruction found', file=sys.stderr); sys.exit(1)", ("SM80",), "Illegal instr"),
        ("", ("SM99",), "Value 'SM80' is not defined"),
        ("", ("SM80",), "printed no instructions"),
        ("import time; time.sleep(60)", ("SM80a",), "did not answer within 1 seconds"),
        (CHILD, ("SM80a",), "did not answer within 1 seconds"),
    ],
)
def test_what_it_fails_with(
    rest: str, chips: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "did not answer" in said:
        monkeypatch.setattr(disassembly, "_SECONDS", 1)
    tool = fake(tmp_path / "bin", rest, chips)
    with pytest.raises(RooflineError, match=said) as error:
        disassemble([bytes(16)], (8, 0), tool, machine=bare_machine(tmp_path))
    assert str(error.value).startswith(f"Cannot disassemble with {tool}: ")
    assert "\n" not in str(error.value)


def test_what_it_started_ends_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disassembly, "_SECONDS", 1)
    rest = f"sleep 1000 > {os.devnull} 2>&1 &\necho $! > {tmp_path}/number\nwait"
    tool = program(tmp_path / "nvdisasm", f"#!/bin/sh\n{rest}\n")
    with pytest.raises(RooflineError, match="did not answer within 1 seconds"):
        disassemble([bytes(16)], (8, 0), tool, machine=bare_machine(tmp_path, PATH=os.environ["PATH"]))
    number = int((tmp_path / "number").read_text())
    deadline = time.monotonic() + 20
    while number in parents():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_many_functions_take_two_runs(tmp_path: Path) -> None:
    """Targets count from each function's beginning, as they do where it is disassembled alone."""
    rest = """
base = int(words[words.index("--base-address") + 1], 0) if "--base-address" in words else 0
with open(os.path.join(os.path.dirname(sys.argv[0]), "calls"), "a") as stream:
    stream.write("ran ")
for at in range(base, base + os.path.getsize(words[-1]), 16):
    print("/*%04x*/ @P0 LOP3 R1, -0x5, 0x10, %s ; /*%04x*/ BRA %s, 0x10 ;" % (at, hex(at - 16), at + 8, hex(at)))
"""
    tool = fake(tmp_path / "bin", rest)
    found = disassemble([bytes(16)] * 300, (8, 0), tool, machine=bare_machine(tmp_path))
    assert found == [{0: "@P0 LOP3 R1, -0x5, 0x10, -0x10"}] * 300
    assert (tmp_path / "bin" / "calls").read_text().split() == ["ran"] * 2


@pytest.mark.sampled("80")
@pytest.mark.parametrize("chip", fixtures.CHIPS)
def test_many_real_functions_are_what_each_is(chip: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disassembly, "_SECONDS", disassembly._MOST_SECONDS)
    tool = find_nvdisasm()
    if tool is None:
        pytest.skip("no nvdisasm (pip install nvidia-cuda-nvdisasm)")
    functions = [one for one in Cubin(fixtures.cubin(chip)).functions.values() if "BRA" in named(one)][:3]
    assert len(functions) == 3
    capability = functions[0].capability
    assert capability
    together = disassemble([one.code for one in functions], capability, tool)
    assert together == [disassemble([one.code], capability, tool)[0] for one in functions]


def named(function: Function) -> set[str]:
    return {one.name for one in decode(function.code, function.capability)}


def test_no_time_is_left(tmp_path: Path) -> None:
    with pytest.raises(RooflineError, match="the time for it was over with 2 functions left"):
        disassemble([bytes(16)] * 2, (8, 0), tmp_path / "nvdisasm", 0.0, bare_machine(tmp_path))


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(RooflineError, match="No such file"):
        disassemble([bytes(16)], (8, 0), tmp_path / "nvdisasm", machine=bare_machine(tmp_path))


def test_hostile_code_and_the_real_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disassembly, "_SECONDS", disassembly._MOST_SECONDS)  # it is large to load where others work
    tool = find_nvdisasm()
    if tool is None:
        pytest.skip("no nvdisasm (pip install nvidia-cuda-nvdisasm)")
    exits = bytes.fromhex("4d790000000000000000800300ea0f00")
    assert disassemble([exits], (8, 0), tool) == [{0: "EXIT"}]
    with pytest.raises(RooflineError, match="of 16 bytes of code it says: "):
        disassemble([bytes(16)], (8, 0), tool)


def test_no_code_has_no_instructions(tmp_path: Path) -> None:
    assert isinstance(bare_machine(tmp_path), Machine)
    assert disassemble([b""], (8, 0), fake(tmp_path / "bin", ""), machine=bare_machine(tmp_path)) == [{}]
