"""nvdisasm: found, run, and what is said where it fails."""

from __future__ import annotations

import os
import sys
import time
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.formats.sass.cubin import Cubin
from ncu_roofline.formats.sass.instructions import decode
from ncu_roofline.plugin.machine import machine as disassembly
from ncu_roofline.plugin.machine.machine import disassemble, find_nvdisasm
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
LISTING = "\t.headerflags\t@EF_CUDA_SM80\n  /*10000000000*/   MOV R1, c[0x0][0x28] ;\n /*10000000010*/ @!P0 EXIT ;\n"
# It ends, and leaves behind what holds its output.
CHILD = "import subprocess; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(3)'])"


def fake(folder: Path, rest: str, chips: tuple[str, ...] = ("SM80",)) -> Path:
    text = FAKE.replace("{python}", sys.executable).replace("{chips!r}", repr(chips)).replace("{rest}", rest)
    return program(folder / "nvdisasm", text)


def test_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the PATH, else in the package, whose program may have been removed."""
    here, bare = fake(tmp_path / "bin", ""), bare_machine(tmp_path, PATH="")
    assert find_nvdisasm(bare_machine(tmp_path, PATH=str(here.parent))) == here
    found = find_nvdisasm(bare)
    assert found is None or (found.is_file() and found.name == "nvdisasm")

    def no_package(_: str) -> Any:
        raise metadata.PackageNotFoundError

    gone = SimpleNamespace(name="nvdisasm", locate=lambda: Path("/nowhere/nvdisasm"))
    for files in (no_package, lambda _: None, lambda _: [gone]):
        monkeypatch.setattr(metadata, "files", files)
        assert find_nvdisasm(bare) is None


def test_what_it_prints(tmp_path: Path) -> None:
    tool = fake(tmp_path / "bin", f"assert os.path.getsize(words[-1]) == 32\nprint({LISTING!r})")
    machine = bare_machine(tmp_path)
    assert disassemble([bytes(32)], (8, 0), tool, machine=machine) == [{0: "MOV R1, c[0x0][0x28]", 16: "@!P0 EXIT"}]
    assert disassemble([b""], (8, 0), fake(tmp_path / "bin", ""), machine=machine) == [{}]


@pytest.mark.parametrize(
    ("rest", "chips", "said"),
    [
        ("sys.exit(3)", ("SM80a",), "exit code 3"),
        ("os.abort()", ("SM80a",), "exit code -6"),
        ("print('nvdisasm error   : Illegal instruction found', file=sys.stderr); sys.exit(1)", ("SM80",), "Illegal instr"),
        ("", ("SM99",), "Value 'SM80' is not defined"),
        ("", ("SM80",), "printed no instructions"),
        (CHILD, ("SM80a",), "did not answer within 1 seconds"),
        ("absent", (), "No such file"),
        ("no time", (), "the time for it was over with 1 function left"),
    ],
)
def test_what_it_fails_with(
    rest: str, chips: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "did not answer" in said:
        monkeypatch.setattr(disassembly, "_SECONDS", 1)
    tool = fake(tmp_path / "bin", rest, chips) if chips else tmp_path / "absent"
    with pytest.raises(RooflineError, match=said) as error:
        disassemble([bytes(16)], (8, 0), tool, 0.0 if rest == "no time" else 60.0, bare_machine(tmp_path))
    assert str(error.value).startswith(f"Cannot disassemble with {tool}: ")
    assert "\n" not in str(error.value)


def test_what_it_started_ends_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disassembly, "_SECONDS", 1)
    rest = f"sleep 1000 > {os.devnull} 2>&1 &\necho $! > {tmp_path}/number\nwait"
    tool = program(tmp_path / "nvdisasm", f"#!/bin/sh\n{rest}\n")
    with pytest.raises(RooflineError, match="did not answer within 1 seconds"):
        disassemble([bytes(16)], (8, 0), tool, machine=bare_machine(tmp_path, PATH=os.environ["PATH"]))
    deadline = time.monotonic() + 20
    while int((tmp_path / "number").read_text()) in parents():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_many_functions_take_one_run(tmp_path: Path) -> None:
    """Targets count from each function's beginning, as they do where it is disassembled alone."""
    rest = """
base = int(words[words.index("--base-address") + 1], 0)
with open(os.path.join(os.path.dirname(sys.argv[0]), "calls"), "a") as stream:
    stream.write("ran ")
for at in range(base, base + os.path.getsize(words[-1]), 16):
    print("/*%04x*/ @P0 LOP3 R1, -0x5, 0x10, %s ; /*%04x*/ BRA %s, 0x10 ;" % (at, hex(at - 16), at + 8, hex(at)))
"""
    tool = fake(tmp_path / "bin", rest)
    found = disassemble([bytes(16)] * 300, (8, 0), tool, machine=bare_machine(tmp_path))
    assert found == [{0: "@P0 LOP3 R1, -0x5, 0x10, -0x10"}] * 300
    assert (tmp_path / "bin" / "calls").read_text().split() == ["ran"]


CHIPS = [pytest.param(one, marks=() if one == "80" else pytest.mark.exhaustive) for one in fixtures.CHIPS]


@pytest.mark.parametrize("chip", CHIPS)
def test_the_real_one(chip: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many real functions together are what each is alone; hostile code is refused."""
    monkeypatch.setattr(disassembly, "_SECONDS", disassembly._MOST_SECONDS)  # it is large to load where others work
    real = find_nvdisasm()
    if real is None:
        pytest.skip("no nvdisasm (pip install nvidia-cuda-nvdisasm)")
    functions = Cubin(fixtures.cubin(chip)).functions.values()
    jumping = [one for one in functions if "BRA" in {line.name for line in decode(one.code, one.capability)}][:3]
    assert len(jumping) == 3
    capability = jumping[0].capability
    assert capability
    together = disassemble([one.code for one in jumping], capability, real)
    assert together == [disassemble([one.code], capability, real)[0] for one in jumping]
    if chip == "80":
        exits = bytes.fromhex("4d790000000000000000800300ea0f00")
        assert disassemble([exits], (8, 0), real) == [{0: "EXIT"}]
        with pytest.raises(RooflineError, match="of 16 bytes of code it says: "):
            disassemble([bytes(16)], (8, 0), real)
