"""The work of one executed instruction, by its opcode with modifiers, as the table in ``ncu_roofline/data`` has it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from importlib import resources
from itertools import product
from typing import TYPE_CHECKING

from ncu_roofline.chips.description import Spec
from ncu_roofline.chips.fields import Capability, Fields
from ncu_roofline.chips.loading import load_spec, read_fields

if TYPE_CHECKING:
    from importlib.abc import Traversable

FILE = "opcodes.toml"
DOES = ("arithmetic", "products", "conversion", "nothing")
ACCUMULATORS = ("fp16", "fp32", "fp64", "int32")
FAMILIES = ("mma", "wgmma")
LONGEST = 200
"""Characters of the longest opcode that is looked at; real ones have less than 60."""

_WARPGROUP = 4
"""Warps that execute a wgmma instruction together."""
_WARPGROUP_M, _LARGEST_N, _N_STEP = 64, 256, 8
"""M, the largest N and the unit of N of wgmma shapes (PTX ISA)."""
_PATTERN = re.compile(r"[A-Z][A-Z0-9_]*(\.[A-Z0-9_]+\*?(\|[A-Z0-9_]+\*?)*)*")
_SPARSE = "SP"


@dataclass(frozen=True)
class OpcodeWork:
    """What one execution does.

    ``weight``: operations per thread's instruction (``per`` "thread", CUDA cores) or per warp's ("warp", tensor cores).
    ``precision``: id without family and sparsity.  ``fused``: a multiply-add of CUDA cores.  ``family``, one of
    `FAMILIES`, and ``accumulator``, one of `ACCUMULATORS`, are "" for CUDA cores.  ``conversion``: counters count it as
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


@dataclass(frozen=True)
class OpcodeRow:
    """One row: patterns as (name, modifiers), without alternatives, and what fits them does.

    ``weight`` is 0 where the shape in the name says it; ``k`` are K of a wgmma shape, dense and sparse.
    """

    patterns: tuple[tuple[str, tuple[str, ...]], ...]
    ranges: tuple[tuple[Capability, Capability], ...]
    does: str
    precision: str
    weight: float
    fused: bool
    family: str
    accumulator: str
    k: tuple[int, ...]

    def covers(self, compute_capability: Capability) -> bool:
        """Whether the row is for chips of this compute capability."""
        return any(since <= compute_capability <= until for since, until in self.ranges)


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
            for name, modifiers in row.patterns:
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


@lru_cache(maxsize=1)
def load_opcodes() -> OpcodeTable:
    """The table that comes with the package, read once."""
    return read_opcodes(resources.files("ncu_roofline") / "data", load_spec())


def read_opcodes(folder: Traversable, spec: Spec) -> OpcodeTable:
    """Read and check the file in a folder of data files; `SpecError` names the key of the first mistake."""
    fields = read_fields(folder / FILE, FILE)
    shapes, modifiers, unknown = (fields.table(key) for key in ("shapes", "modifiers", "unknown"))
    known = {precision.id for precision in spec.precisions}
    table = [(_row(one, known), one) for one in fields.tables("rows")]
    neutral, names = modifiers.texts("products"), unknown.texts("names")
    sizes = {spelling: size for digits in shapes.names() for spelling, size in _sizes(shapes, digits)}
    for one in (fields, shapes, modifiers, unknown):
        one.finish()
    _check_reachable(table)
    return OpcodeTable(tuple(row for row, _ in table), sizes, neutral, names)


def _sizes(shapes: Fields, digits: str) -> Iterator[tuple[str, int]]:
    """M N K of a shape by its two spellings, 16816 and (from 9.0) 16x8x16."""
    sizes = shapes.integers(digits)
    if len(sizes) != 3 or "".join(map(str, sizes)) != digits:
        shapes.fail(digits, "must be M, N and K, whose digits run together are the key")
    for spelling in (digits, "x".join(map(str, sizes))):
        yield spelling, math.prod(sizes)


def _row(fields: Fields, known: set[str]) -> OpcodeRow:
    does = fields.text("does", "arithmetic", allowed=DOES)
    products = does == "products"
    family = fields.text("family", allowed=FAMILIES) if products else ""
    row = OpcodeRow(
        patterns=tuple(pattern for text in fields.texts("opcodes") for pattern in _patterns(fields, text)),
        ranges=fields.ranges("capabilities"),
        does=does,
        precision="" if does == "nothing" else fields.text("precision"),
        weight=fields.number("weight") if does == "arithmetic" or (products and fields.has("weight")) else 0.0,
        fused=does == "arithmetic" and fields.flag("fused"),
        family=family,
        accumulator=fields.text("accumulator", allowed=ACCUMULATORS) if products else "",
        k=fields.integers("k") if family == "wgmma" else (),
    )
    fields.finish()
    if row.precision and row.precision not in known:
        fields.fail("precision", f"there is no precision {row.precision!r}")
    if not row.patterns:
        fields.fail("opcodes", "must name at least one opcode")
    if family == "wgmma" and not 1 <= len(row.k) <= 2:
        fields.fail("k", "must be K of the dense shapes and, if there are any, of the sparse ones")
    if products != row.precision.startswith("tensor."):
        fields.fail("precision", "must be one of the tensor cores for products, and one of the CUDA cores for all else")
    return row


def _patterns(fields: Fields, text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """One for each choice of alternatives."""
    if not _PATTERN.fullmatch(text):
        fields.fail("opcodes", f"{text!r} is no opcode with modifiers")
    name, *modifiers = text.split(".")
    return ((name, chosen) for chosen in product(*(word.split("|") for word in modifiers)))


def _check_reachable(table: list[tuple[OpcodeRow, Fields]]) -> None:
    """Each pattern must be able to fit: none before it may fit everything that it fits."""
    for index, (row, fields) in enumerate(table):
        for name, modifiers in row.patterns:
            for earlier, _ in table[:index]:
                hides = any(other == name and _left(modifiers, words) is not None for other, words in earlier.patterns)
                if hides and all(any(a <= since and until <= b for a, b in earlier.ranges) for since, until in row.ranges):
                    fields.fail("opcodes", f"{'.'.join((name, *modifiers))} can never fit, a row before it takes it")
