"""Independent readers of cubins: nvdisasm (instructions, lines, blocks), pyelftools (tables).

What nvdisasm says of the cubins of `fixtures` is recorded in ``answers.tar.xz``, so that tests compare with it anywhere; the
exhaustive run asks it again, and with UPDATE_GOLDEN=1 writes it anew.
"""

from __future__ import annotations

import io
import re
import struct
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ncu_roofline.formats.sass.cubin import Cubin
from ncu_roofline.plugin.machine.machine import find_nvdisasm
from tests.sass.fixtures import unpacked

ANSWERS = Path(__file__).parent / "answers.tar.xz"
QUESTIONS = {
    "listing": ("-ndf", "-gi", "-c"),
    "blocks": ("-bbcfg", "-poff"),
}
Edges = set[tuple[int, int]]
"""Of a graph: offset of a block's last instruction, offset of the first one of a block that may follow."""
Chain = tuple[tuple[str, int], ...]
"""File and line, the innermost first."""

_LINE = re.compile(r'\t//## File "(.*?)", line (\d+)(?: inlined at .*)?$')
_INSTRUCTION = re.compile(r"\s+/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;")
_OFFSET = re.compile(r"(?:\\l|<entry>|<exit\d+>)([0-9a-f]{4,}):\\ ")
_EXIT = re.compile(r"<(exit\d+)>([0-9a-f]{4,}):")
_EDGE = re.compile(r'^"([^"]*)":(\w+)(?::\w)? -> "([^"]*)":')
_CLUSTER = re.compile(r'^subgraph "cluster_(?:\.text\.)?([^"]*)"')


class Said(NamedTuple):
    """Of an instruction: its text, its lines, and whether they are printed.

    Of one whose innermost line is that of the one before, also that of the function before, nvdisasm prints none, even if it is
    inlined elsewhere.
    """

    text: str
    chain: Chain
    printed: bool


def nvdisasm() -> Path:
    """The program; the test is skipped where there is none."""
    found = find_nvdisasm()
    if found is None:
        pytest.skip("no nvdisasm on this machine (pip install nvidia-cuda-nvdisasm)")
    return found


def ask(question: str, cubin: bytes, folder: Path) -> str:
    """What nvdisasm says of a cubin."""
    data = bytearray(cubin)
    if question == "listing" and data[7] == 0x33 and data[48] == 70:  # 7.0, which nvdisasm 13.1 no longer takes, as 7.5
        struct.pack_into("<I", data, 48, 0x4B054B)
    (folder / "read.cubin").write_bytes(data)
    command = [nvdisasm(), *QUESTIONS[question], "read.cubin"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, timeout=60).stdout


def recorded(question: str, chip: str, name: str) -> str:
    """What it said of one of ours."""
    return unpacked(ANSWERS)[f"{chip}/{name}.{question}"].decode()


def listing(text: str) -> dict[str, dict[int, Said]]:
    """By function and offset."""
    found: dict[str, dict[int, Said]] = {}
    name, chain, printed = "", Chain(), False
    for line in text.splitlines():
        if line.startswith("//-----"):
            name = ""
        elif match := re.match(r"\.text\.(\S+):$", line):
            name, printed = match[1], False
        elif match := _LINE.match(line):
            chain = (*(chain if printed else ()), (match[1], int(match[2])))
            printed = True
        elif name and (match := _INSTRUCTION.match(line)):
            found.setdefault(name, {})[int(match[1], 16)] = Said(match[2].lstrip("{ "), chain, printed)
            printed = False
    return found


def edges(text: str, cubin: Cubin) -> dict[str, tuple[Edges, set[int]]]:
    """The edges between basic blocks of each function, and the ends of its blocks; functions inside others are these's."""
    around = {inner: name for name, function in cubin.functions.items() for _, _, inner in function.inside}
    found: dict[str, tuple[Edges, set[int]]] = {}
    blocks: dict[str, tuple[int, int, dict[str, int]]] = {}
    pending: list[tuple[str, str, str]] = []
    name = block = ""
    for line in [*text.splitlines(), 'subgraph "cluster_"']:
        if match := _CLUSTER.match(line):
            into = found.setdefault(around.get(name, name), (set(), set()))
            for source, port, target in pending:
                if source in blocks and target in blocks:
                    into[0].add((blocks[source][2].get(port, blocks[source][1]), blocks[target][0]))
            into[1].update(last for _, last, _ in blocks.values())
            name, blocks, pending = match[1], {}, []
        elif line.startswith("[label="):
            if offsets := [int(one, 16) for one in _OFFSET.findall(line)]:
                blocks[block] = offsets[0], offsets[-1], {port: int(one, 16) for port, one in _EXIT.findall(line)}
        elif match := _EDGE.match(line):
            pending.append((match[1], match[2], match[3]))
        elif line.startswith('"'):
            block = line.strip().strip('"')
    return {name: each for name, each in found.items() if name in cubin.functions}


def elf_file(cubin: bytes) -> Any:
    """As pyelftools reads it."""
    pytest.importorskip("elftools", reason="no pyelftools on this machine (pip install pyelftools): ELF tables stay unproven")
    from elftools.elf.elffile import ELFFile

    return ELFFile(io.BytesIO(cubin))
