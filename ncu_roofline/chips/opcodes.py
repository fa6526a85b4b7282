"""What one executed instruction does, by its opcode with modifiers: its work, what it is for, and the unit that it needs."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from itertools import product
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from ncu_roofline.base.records import Stated
from ncu_roofline.chips.fields import ALL, DATA, Capability, Ranges, read, table
from ncu_roofline.chips.formulas import covers

LONGEST = 200
"""Characters of the longest opcode that is looked at; real ones have less than 60."""


def _patterns(texts: tuple[str, ...]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Names and modifiers, one for each choice of alternatives."""
    words = (text.split(".") for text in texts)
    return tuple((name, chosen) for name, *rest in words for chosen in product(*(word.split("|") for word in rest)))


class OpcodeRow(NamedTuple):
    """Opcodes as (name, modifiers), without alternatives, and what one execution does.  ``weight``: operations per thread's
    instruction (CUDA cores) or per warp's (``does`` "products", tensor cores), 0 where the shape in the name says it.
    ``precision``: id without family and sparsity.  ``fused``: a multiply-add of CUDA cores.  ``family`` and ``accumulator`` are
    "" for CUDA cores; neither a report nor a GPU confirmed weights of wgmma.  ``does`` "conversion": counters count it as
    arithmetic of this precision although it is none; its weight is 0.  ``sparse``: so its modifiers say, no row of the file."""

    opcodes: Annotated[tuple[tuple[str, tuple[str, ...]], ...], Stated(tuple[str, ...], _patterns)]
    does: Literal["arithmetic", "products", "conversion", "nothing"] = "arithmetic"
    capabilities: Ranges = ALL
    precision: str = ""
    weight: float = 0.0
    fused: bool = False
    family: Literal["mma", "wgmma", ""] = ""
    accumulator: Literal["fp16", "fp32", "fp64", "int32", ""] = ""
    k: tuple[int, ...] = ()
    sparse: bool = False


class _File(NamedTuple):
    rows: tuple[OpcodeRow, ...]
    shapes: Mapping[str, tuple[int, ...]]
    neutral: tuple[str, ...]
    unknown: tuple[str, ...]


class OpcodeTable:
    """All rows, in the order in which they are tried; any text may be asked for."""

    def __init__(self, file: _File) -> None:
        self.rows, self.unknown_names, self._neutral = file.rows, file.unknown, file.neutral
        # A shape is spelled 16816 and (from 9.0) 16x8x16.
        self._shapes = {mark.join(map(str, size)): math.prod(size) for size in file.shapes.values() for mark in ("", "x")}
        self._by_name: dict[str, list[tuple[tuple[str, ...], OpcodeRow]]] = {}
        for row in self.rows:
            for name, modifiers in row.opcodes:
                self._by_name.setdefault(name, []).append((modifiers, row))
        self._known = lru_cache(maxsize=4096)(self._look_up)

    def work(self, opcode: str, compute_capability: Capability) -> OpcodeRow | None:
        """What the opcode does, its row without opcodes; None for no work, or such as nobody can weigh (`unknown` tells)."""
        return self._known(opcode, compute_capability)[0] if len(opcode) <= LONGEST else None

    def unknown(self, opcode: str, compute_capability: Capability) -> bool:
        """Whether the opcode does floating-point or tensor work that the table cannot weigh: then the sum is unknown."""
        if len(opcode) > LONGEST:  # nothing that exists: only its name is looked at
            return self._says_work(opcode[:LONGEST].partition(".")[0])
        return self._known(opcode, compute_capability)[1]

    def _says_work(self, name: str) -> bool:
        return any(fnmatchcase(name, pattern) for pattern in self.unknown_names)

    def _look_up(self, opcode: str, compute_capability: Capability) -> tuple[OpcodeRow | None, bool]:
        name, *modifiers = opcode.split(".")
        for pattern, row in self._by_name.get(name, ()):
            left = _left(modifiers, pattern) if covers(row.capabilities, compute_capability) else None
            if left is None:
                continue
            if row.does == "nothing":
                return None, False
            if row.does != "products":
                return row._replace(opcodes=()), False
            # What is left may be a shape, where the row has no weight, and neutral modifiers.
            weight, sparse, others = row.weight, "SP" in left, [word for word in left if word not in self._neutral]
            if len(others) != (0 if weight else 1):
                return None, True
            if row.family == "wgmma" and not weight:
                # 64x128x16: a warp's share of 2 M N K, as four of them execute it; N is a multiple of 8 up to 256 (PTX ISA).
                shape = re.fullmatch(r"64x([1-9]\d{0,2})x([1-9]\d{0,3})", others[0], re.ASCII)
                n, k = map(int, shape.groups()) if shape else (0, 0)
                known = n <= 256 and n % 8 == 0 and k in (row.k[1:2] if sparse else row.k[:1])
                weight = 2.0 * 64 * n * k / 4 if known else 0.0
            elif not weight:
                weight = 2.0 * self._shapes.get(others[0], 0)
            return (row._replace(opcodes=(), weight=weight, sparse=sparse), False) if weight else (None, True)
        return None, self._says_work(name)


def _left(modifiers: Sequence[str], pattern: Sequence[str]) -> list[str] | None:
    """What modifiers hold beside the pattern's, which must be among them in order; None if they are not."""
    left, wanted = [], list(reversed(pattern))
    for word in modifiers:
        if wanted and (word.startswith(wanted[-1][:-1]) if wanted[-1].endswith("*") else word == wanted[-1]):
            wanted.pop()
        else:
            left.append(word)
    return None if wanted else left


@cache
def load_opcodes(folder: Path = DATA) -> OpcodeTable:
    """The file in a folder of data files, read once; `SpecError` names the key of the first mistake."""
    return OpcodeTable(read(folder / "opcodes.toml", _File))


KINDS = ("fp64", "fp32", "fp16", "bf16", "tensor", "integer", "conversion", "memory", "shared", "control", "move", "other")
OTHER = "other"


def _by_name(stated: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    return {name: kind for kind, names in stated.items() for name in names}


def _by_modifier(stated: Mapping[str, str]) -> dict[tuple[str, ...], str]:
    return {opcode.partition(".")[::2]: kind for opcode, kind in stated.items()}


class OpcodeKinds(NamedTuple):
    """What instructions are for: kinds of opcodes by name, and by ``(name, modifier)`` where a modifier changes it."""

    names: Annotated[Mapping[str, str], Stated(Mapping[Literal[KINDS], tuple[str, ...]], _by_name)]
    modifiers: Annotated[Mapping[tuple[str, ...], str], Stated(Mapping[str, Literal[KINDS]], _by_modifier)]

    def of(self, opcode: str) -> str:
        """One of `KINDS`; OTHER for a name that is not known."""
        name, *modifiers = opcode.split(".")
        changed = (self.modifiers[name, word] for word in modifiers if (name, word) in self.modifiers)
        return next(changed, self.names.get(name, OTHER))


load_opcode_kinds = table("opcode_kinds.toml", OpcodeKinds)


def kind_of(opcode: str) -> str:
    """The kind of an opcode, with or without modifiers ("HFMA2.BF16_V2"): one of `KINDS`."""
    return load_opcode_kinds().of(opcode)


class _Unit(NamedTuple):
    unit: str
    names: frozenset[str]
    capabilities: Ranges = ALL


class OpcodeUnits(NamedTuple):
    """Which hardware unit an arithmetic instruction needs: rows in the order in which they are tried."""

    rows: tuple[_Unit, ...]

    def of(self, opcode: str, capability: Capability) -> str:
        """The id of the unit; "" where it is not known."""
        name = opcode.partition(".")[0]
        return next((row.unit for row in self.rows if name in row.names and covers(row.capabilities, capability)), "")


load_opcode_units = table("opcode_units.toml", OpcodeUnits)
