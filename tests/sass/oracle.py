"""What nvdisasm says of code: the reference for decoding and control flow."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from ncu_roofline.formats.sass.cubin import Cubin
from ncu_roofline.plugin.machine.machine import find_nvdisasm

Edges = set[tuple[int, int]]
"""Of a graph: offset of a block's last instruction, offset of the first one of a block that may follow."""

_OFFSET = re.compile(r"(?:\\l|<entry>|<exit\d+>)([0-9a-f]{4,}):\\ ")
_EXIT = re.compile(r"<(exit\d+)>([0-9a-f]{4,}):")
_EDGE = re.compile(r'^"([^"]*)":(\w+)(?::\w)? -> "([^"]*)":')
_CLUSTER = re.compile(r'^subgraph "cluster_(?:\.text\.)?([^"]*)"')


def nvdisasm() -> Path:
    """The program; the test is skipped where there is none."""
    found = find_nvdisasm()
    if found is None:
        pytest.skip("no nvdisasm (pip install nvidia-cuda-nvdisasm)")
    return found


def edges(tool: Path, path: Path, cubin: Cubin) -> dict[str, tuple[Edges, set[int]]]:
    """The edges between basic blocks of each function, and the ends of its blocks; functions inside others are these's."""
    done = subprocess.run([tool, "-bbcfg", "-poff", path], check=True, capture_output=True, text=True)
    around = {inner: name for name, function in cubin.functions.items() for _, _, inner in function.inside}
    found: dict[str, tuple[Edges, set[int]]] = {}
    blocks: dict[str, tuple[int, int, dict[str, int]]] = {}
    pending: list[tuple[str, str, str]] = []
    name = block = ""
    for line in [*done.stdout.splitlines(), 'subgraph "cluster_"']:
        if match := _CLUSTER.match(line):
            into = found.setdefault(around.get(name, name), (set(), set()))
            for source, port, target in pending:
                if source in blocks and target in blocks:
                    into[0].add((blocks[source][2].get(port, blocks[source][1]), blocks[target][0]))
            into[1].update(last for _, last, _ in blocks.values())
            name, blocks, pending = match[1], {}, []
        elif line.startswith("[label="):
            if offsets := [int(text, 16) for text in _OFFSET.findall(line)]:
                blocks[block] = offsets[0], offsets[-1], {port: int(text, 16) for port, text in _EXIT.findall(line)}
        elif match := _EDGE.match(line):
            pending.append((match[1], match[2], match[3]))
        elif line.startswith('"'):
            block = line.strip().strip('"')
    return {name: each for name, each in found.items() if name in cubin.functions}
