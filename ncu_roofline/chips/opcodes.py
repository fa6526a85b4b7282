"""What one executed instruction does, by its opcode with modifiers: its work, what it is for, and the unit that it needs."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from ncu_roofline.base.records import Stated
from ncu_roofline.chips.fields import ALL, DATA, Capability, Ranges, covers, read

FILE = "opcodes.toml"
LONGEST = 200
"""Characters of the longest opcode that is looked at; real ones have less than 60."""

_WARPGROUP = 4
"""Warps that execute a wgmma instruction together."""
_WARPGROUP_M, _LARGEST_N, _N_STEP = 64, 256, 8
"""M, the largest N and the unit of N of wgmma shapes (PTX ISA)."""
_PATTERN = r"[A-Z][A-Z0-9_]*(\.[A-Z0-9_]+\*?(\|[A-Z0-9_]+\*?)*)*"
_SPARSE = "SP"


class OpcodeWork(NamedTuple):
    """What one execution does.

    ``weight``: operations per thread's instruction (``per`` "thread", CUDA cores) or per warp's ("warp", tensor cores).
    ``precision``: id without family and sparsity.  ``fused``: a multiply-add of CUDA cores.  ``family``, mma or
    wgmma, and ``accumulator``, a type, are "" for CUDA cores.  ``conversion``: counters count it as
    arithmetic of this precision although it is none; its weight is 0.  ``proven`` is false where neither a report nor a GPU
    confirmed the weight.
    """

    precision: str
    weight: float
    per: str
    fused: bool = False
    family: str = ""
    sparse: bool = False
    accumulator: str = ""
    conversion: bool = False
    proven: bool = True


def _patterns(texts: tuple[str, ...]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Names and modifiers, one for each choice of alternatives."""
    found: list[tuple[str, tuple[str, ...]]] = []
    for text in texts:
        if not re.fullmatch(_PATTERN, text):
            raise ValueError(f"{text!r} is no opcode with modifiers")
        name, *modifiers = text.split(".")
        found += ((name, chosen) for chosen in product(*(word.split("|") for word in modifiers)))
    if not found:
        raise ValueError("must name at least one opcode")
    return tuple(found)


Patterns = Annotated[tuple[tuple[str, tuple[str, ...]], ...], Stated(tuple[str, ...], _patterns)]


class OpcodeRow(NamedTuple):
    """One row: opcodes as (name, modifiers), without alternatives, and what fits them does.

    ``weight`` is 0 where the shape in the name says it; ``k`` are K of a wgmma shape, dense and sparse.
    """

    opcodes: Patterns
    does: Literal["arithmetic", "products", "conversion", "nothing"] = "arithmetic"
    capabilities: Ranges = ALL
    precision: str = ""
    weight: float = 0.0
    fused: bool = False
    family: Literal["mma", "wgmma", ""] = ""
    accumulator: Literal["fp16", "fp32", "fp64", "int32", ""] = ""
    k: tuple[int, ...] = ()

    def covers(self, compute_capability: Capability) -> bool:
        """Whether the row is for chips of this compute capability."""
        return covers(self.capabilities, compute_capability)


class OpcodeTable:
    """All rows, in the order in which they are tried; any text may be asked for."""

    def __init__(
        self, rows: tuple[OpcodeRow, ...], shapes: Mapping[str, int], neutral: tuple[str, ...], unknown: tuple[str, ...]
    ) -> None:
        """``shapes``: as spelled in opcodes -> M N K; ``neutral``: modifiers of products that change neither size nor type;
        ``unknown``: patterns of names that do work even where no row fits."""
        self.rows, self.unknown_names = rows, unknown
        self._shapes, self._neutral = shapes, frozenset(neutral)
        self._by_name: dict[str, list[tuple[tuple[str, ...], OpcodeRow]]] = {}
        for row in rows:
            for name, modifiers in row.opcodes:
                self._by_name.setdefault(name, []).append((modifiers, row))
        self._known = lru_cache(maxsize=4096)(self._look_up)

    def work(self, opcode: str, compute_capability: Capability) -> OpcodeWork | None:
        """What the opcode does; None if it does no work, or work that the table cannot weigh (`unknown` tells)."""
        return self._known(opcode, compute_capability)[0] if len(opcode) <= LONGEST else None

    def unknown(self, opcode: str, compute_capability: Capability) -> bool:
        """Whether the opcode does floating-point or tensor work that the table cannot weigh: then the sum is unknown."""
        if len(opcode) > LONGEST:  # nothing that exists: only its name is looked at
            name = opcode[:LONGEST].partition(".")[0]
            return any(fnmatchcase(name, pattern) for pattern in self.unknown_names)
        return self._known(opcode, compute_capability)[1]

    def _look_up(self, opcode: str, compute_capability: Capability) -> tuple[OpcodeWork | None, bool]:
        name, *modifiers = opcode.split(".")
        for pattern, row in self._by_name.get(name, ()):
            left = _left(modifiers, pattern) if row.covers(compute_capability) else None
            if left is None:
                continue
            if row.does == "products":
                work = self._products(row, left)
                return work, work is None
            if row.does == "nothing":
                return None, False
            return OpcodeWork(row.precision, row.weight, "thread", row.fused, conversion=row.does == "conversion"), False
        return None, any(fnmatchcase(name, pattern) for pattern in self.unknown_names)

    def _products(self, row: OpcodeRow, left: list[str]) -> OpcodeWork | None:
        """``left``: modifiers that the pattern does not name; None if they are more than a shape and neutral ones."""
        sparse = _SPARSE in left
        others = [word for word in left if word not in self._neutral]
        if row.weight:
            weight = 0.0 if others else row.weight
        else:
            weight = self._of_shape(row, others[0], sparse) if len(others) == 1 else 0.0
        if not weight:
            return None
        return OpcodeWork(
            precision=row.precision,
            weight=weight,
            per="warp",
            family=row.family,
            sparse=sparse,
            accumulator=row.accumulator,
            proven=row.family != "wgmma",
        )

    def _of_shape(self, row: OpcodeRow, shape: str, sparse: bool) -> float:
        """2 M N K of a shape, for wgmma (64x128x16) a warp's share of it; 0 if there is none such for these types."""
        if row.family != "wgmma":
            return 2.0 * self._shapes.get(shape, 0)
        for k in row.k[1:2] if sparse else row.k[:1]:
            for n in range(_N_STEP, _LARGEST_N + 1, _N_STEP):
                if shape == f"{_WARPGROUP_M}x{n}x{k}":
                    return 2.0 * _WARPGROUP_M * n * k / _WARPGROUP
        return 0.0


def _left(modifiers: Sequence[str], pattern: Sequence[str]) -> list[str] | None:
    """What modifiers hold beside the pattern's, which must be among them in order; None if they are not."""
    left, wanted = [], list(reversed(pattern))
    for word in modifiers:
        if wanted and _same(word, wanted[-1]):
            wanted.pop()
        else:
            left.append(word)
    return None if wanted else left


def _same(word: str, wanted: str) -> bool:
    return word.startswith(wanted[:-1]) if wanted.endswith("*") else word == wanted


class _Names(NamedTuple):
    names: tuple[str, ...]


class _Products(NamedTuple):
    products: tuple[str, ...]


class _File(NamedTuple):
    rows: tuple[OpcodeRow, ...]
    shapes: Mapping[str, tuple[int, ...]]
    modifiers: _Products
    unknown: _Names


@lru_cache(maxsize=1)
def load_opcodes() -> OpcodeTable:
    """The table that comes with the package, read once."""
    return read_opcodes(DATA)


def read_opcodes(folder: Path) -> OpcodeTable:
    """Read the file in a folder of data files; `SpecError` names the key of the first mistake."""
    file = read(folder / FILE, FILE, _File)
    # A shape is spelled 16816 and (from 9.0) 16x8x16.
    shapes = {spelled: math.prod(size) for size in file.shapes.values() for spelled in ("".join(map(str, size)), _x(size))}
    return OpcodeTable(file.rows, shapes, file.modifiers.products, file.unknown.names)


def _x(size: Sequence[int]) -> str:
    return "x".join(map(str, size))


KINDS = ("fp64", "fp32", "fp16", "bf16", "tensor", "integer", "conversion", "memory", "shared", "control", "move", "other")
OTHER = "other"
_KINDS_FILE, _UNITS_FILE = "opcode_kinds.toml", "opcode_units.toml"


class OpcodeKinds(NamedTuple):
    """What instructions are for: kinds of opcodes by name, and by ``(name, modifier)`` where a modifier changes it."""

    names: Mapping[str, str]
    modifiers: Mapping[tuple[str, str], str]

    def of(self, opcode: str) -> str:
        """One of `KINDS`; OTHER for a name that is not known."""
        name, *modifiers = opcode.split(".")
        for modifier in modifiers:
            found = self.modifiers.get((name, modifier))
            if found is not None:
                return found
        return self.names.get(name, OTHER)


class _KindsFile(NamedTuple):
    names: Mapping[Literal[KINDS], tuple[str, ...]]  # type: ignore[valid-type]
    modifiers: Mapping[str, Literal[KINDS]]  # type: ignore[valid-type]


def kind_of(opcode: str) -> str:
    """The kind of an opcode, with or without modifiers ("HFMA2.BF16_V2"): one of `KINDS`."""
    return load_opcode_kinds().of(opcode)


@lru_cache(maxsize=1)
def load_opcode_kinds() -> OpcodeKinds:
    """The table that comes with the package, read once."""
    file = read(DATA / _KINDS_FILE, _KINDS_FILE, _KindsFile)
    names = {name: kind for kind, listed in file.names.items() for name in listed}
    modifiers = {opcode.partition(".")[::2]: kind for opcode, kind in file.modifiers.items()}
    return OpcodeKinds(names, modifiers)


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


@lru_cache(maxsize=1)
def load_opcode_units() -> OpcodeUnits:
    """The table that comes with the package, read once."""
    return read(DATA / _UNITS_FILE, _UNITS_FILE, OpcodeUnits)
