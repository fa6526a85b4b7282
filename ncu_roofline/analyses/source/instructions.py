"""Each instruction of a launch: its code, its place in the source, and what the report counted at its address."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import chain
from typing import Any

import numpy as np

from ncu_roofline.analyses.source.code import LaunchCode
from ncu_roofline.analyses.source.columns import INT32, WITHIN, WORKS
from ncu_roofline.analyses.source.counts import SELECTED, Counts, FloatArray, IntArray
from ncu_roofline.base.texts import shorten
from ncu_roofline.chips import OpcodeWork, kind_of, load_opcodes
from ncu_roofline.chips.code_limits import INLINED_LETTERS
from ncu_roofline.chips.source_counters import COUNTED
from ncu_roofline.formats.sass.instructions import SIZE
from ncu_roofline.formats.sass.line_program import Place
from ncu_roofline.model.halves import HALF

INTEGER = "integer"
"""A kind; among counts, instructions of this kind by `issued_by`."""
BoolArray = np.ndarray[tuple[int], np.dtype[np.bool_]]
_LONGEST = 4_000  # letters of where code is inlined
NOWHERE, OUTSIDE = -1, -2
"""Lines of code without line, and of addresses outside of the code; loops of code in no loop, and outside."""


@dataclass(frozen=True)
class Instructions:
    """The instructions of a launch, those of its own function first, and behind them the addresses outside of all code.

    ``body`` has for each the position of its function in ``code``, -1 outside; ``places`` where it comes from, innermost
    first; ``loop`` the innermost loop, numbered over all functions.  ``counts`` are arrays over all rows.
    """

    code: LaunchCode
    address: IntArray
    body: IntArray
    opcodes: Sequence[str]
    kinds: Sequence[str]
    places: Sequence[tuple[Place, ...]]
    loop: IntArray
    counts: Mapping[str, FloatArray]
    stalls: Mapping[str, tuple[FloatArray, FloatArray]]
    unknown: tuple[str, ...]
    constant_work: Mapping[str, float]
    """By kind of work what counters of operations count for instructions that only load constants."""

    def __len__(self) -> int:
        return len(self.address)

    @cached_property
    def whole(self) -> dict[str, float]:
        """What shares are of: the sums of counts, but of work whose sum is unknown (see `Totals.of_all`)."""
        return {name: float(values.sum()) for name, values in self.counts.items()}

    @cached_property
    def lanes(self) -> str:
        """What lanes are counted by: threads with a true predicate where those that are active were not counted."""
        return "threads" if np.isnan(self.counts["active"]).all() else "active"

    @cached_property
    def waits(self) -> dict[str, FloatArray]:
        """Samples by reason for waiting."""
        return {reason: every for reason, (every, _) in self.stalls.items() if reason != SELECTED}

    @cached_property
    def outside(self) -> BoolArray:
        """Which rows are addresses outside of all code."""
        return self.body < 0

    @cached_property
    def starts(self) -> IntArray:
        """The row at which each function begins."""
        sizes = [len(body.instructions) for body in self.code.bodies]
        return np.cumsum([0, *sizes]).astype(np.int64)

    @cached_property
    def first_loops(self) -> IntArray:
        """The number of the first loop of each function."""
        return np.cumsum([0, *(len(body.flow.loops) for body in self.code.bodies)]).astype(np.int64)

    @cached_property
    def _owned(self) -> tuple[tuple[str, ...], IntArray]:
        names: list[str] = []
        parts = [np.empty(0, dtype=np.int64)]
        for body in self.code.bodies:
            mine = np.full(len(body.instructions), len(names), dtype=np.int64)
            names.append(body.name)
            end = 0
            for offset, size, name in body.function.inside:  # sorted; what lies on another is left out
                if end <= offset and 0 < size < SIZE * len(mine):
                    end = offset + size
                    mine[offset // SIZE : end // SIZE] = len(names)
                    names.append(name.rpartition("$")[2] or name)
            parts.append(mine)
        parts.append(np.full(len(self) - int(self.starts[-1]), len(names), dtype=np.int64))
        return (*names, ""), np.concatenate(parts)

    @property
    def owners(self) -> tuple[str, ...]:
        """The functions of all code, mangled: with sections of their own or inside those of others; last "", outside."""
        return self._owned[0]

    @property
    def owner(self) -> IntArray:
        """For each row the position of its function in `owners`."""
        return self._owned[1]

    def texts(self) -> list[str]:
        """Whole instructions, "" where they are not known."""
        found: list[str] = []
        for body, texts in zip(self.code.bodies, self.code.texts(), strict=False):
            found += [texts.get(one.offset, "") for one in body.instructions]
        return [*found, *[""] * (len(self) - len(found))]

    @cached_property
    def columns(self) -> dict[str, Any]:
        """The columns that say what and where each is."""
        bodies = self.code.bodies
        names = [body.name for body in bodies] + [""]
        inner = [places[0] if places else None for places in self.places]
        offset = np.full(len(self), -1, dtype=np.int64)
        known = ~self.outside
        starts = np.array([body.address for body in bodies] + [0], dtype=np.int64)
        offset[known] = (self.address - starts[self.body])[known]
        missing = len(self) - int(self.starts[-1])
        each = {id(places): places for places in self.places}  # rows of one line mostly share it, and comparing takes long
        distinct = set(each.values())
        longest = min(_LONGEST, INLINED_LETTERS // max(1, len(distinct)))
        texts = {one: shorten(WITHIN.join(f"{place.file}:{place.line}" for place in one[1:]), longest) for one in distinct}
        inlined = {key: texts[places] for key, places in each.items()}
        return {
            "function": [names[one] for one in self.body.tolist()],
            "owner": [self.owners[one] for one in self.owner.tolist()],
            "address": self.address,
            "offset": offset,
            "opcode": self.opcodes,
            "kind": self.kinds,
            "file": [one.file if one else "" for one in inner],
            "line": [one.line if one else -1 for one in inner],
            "inlined": [inlined[id(places)] for places in self.places],
            "block": [*chain.from_iterable(body.flow.block_of for body in bodies), *[-1] * missing],
            "loop": np.maximum(self.loop, NOWHERE),
        }


def instructions_of(code: LaunchCode, counts: Counts, works: Callable[[str], OpcodeWork | str | None]) -> Instructions:
    """All instructions of a launch; ``works`` as of `works_of`."""
    bodies = code.bodies
    inside = [np.arange(body.address, body.end, SIZE, dtype=np.int64) for body in bodies]
    beyond = np.setdiff1d(counts.addresses, np.concatenate([*inside, np.empty(0, dtype=np.int64)]))
    address = np.concatenate([*inside, beyond])
    owners = [np.full(len(one), number) for number, one in enumerate(inside)]
    opcodes = [*(one.opcode for body in bodies for one in body.instructions), *[""] * len(beyond)]
    loads = np.array([*(one.constant for body in bodies for one in body.instructions), *[False] * len(beyond)], dtype=bool)
    kinds = ["move" if load else kind_of(one) if one else "" for one, load in zip(opcodes, loads.tolist(), strict=True)]
    columns = {column: counts.at(column, address) for column in (*COUNTED, "not_issued")}
    work, unknown = _work_columns(opcodes, works, columns)
    integer = np.where([kind == INTEGER for kind in kinds], columns[issued_by(columns)], 0.0)
    loops, first = [], 0
    for body in bodies:
        mine = np.array(body.flow.loop_of, dtype=np.int64).reshape(-1)
        loops.append(np.where(mine < 0, NOWHERE, mine + first))
        first += len(body.flow.loops)
    return Instructions(
        code=code,
        address=address,
        body=np.concatenate([*owners, np.full(len(beyond), -1)]).astype(np.int64),
        opcodes=opcodes,
        kinds=kinds,
        places=[*chain.from_iterable(one.places for one in bodies), *[()] * len(beyond)],
        loop=np.concatenate([*loops, np.full(len(beyond), OUTSIDE, dtype=np.int64)]),
        counts=columns | {name: np.where(loads, 0.0, values) for name, values in work.items()} | {INTEGER: integer},
        stalls=counts.stalls_at(address),
        unknown=unknown,
        constant_work={kind: float(work[f"work_{kind}"][loads].sum()) for kind in WORKS},
    )


def issued_by(counts: Mapping[str, FloatArray]) -> str:
    """The column that counts instructions: of warps, of threads where nobody counted these."""
    return "threads" if np.isnan(counts["executed"]).all() else "executed"


def works_of(
    capability: tuple[int, int], executed: Iterable[str], *, constants: bool
) -> Callable[[str], OpcodeWork | str | None]:
    """What one execution of an opcode does: None for no work, and the opcode itself where nobody can tell.

    ``executed``: opcodes with all modifiers that the launch executed.  ``constants``: its half-precision arithmetic is none,
    but loads constants.
    """
    table = load_opcodes()
    variants: dict[str, list[str]] = {}
    for opcode in executed:
        variants.setdefault(opcode.partition(".")[0], []).append(opcode)

    @cache
    def work_of(opcode: str) -> OpcodeWork | str | None:
        if opcode.startswith("op "):
            return opcode
        if not table.unknown(opcode, capability):
            work = table.work(opcode, capability)
            return None if constants and work is not None and work.precision == HALF else work
        # What was executed may tell which of several forms it is.
        forms = variants.get(opcode.partition(".")[0], ())
        known = not any(table.unknown(one, capability) for one in forms)
        works = {table.work(one, capability) for one in forms} if known else set()
        return works.pop() if len(works) == 1 else opcode

    return work_of


def _work_columns(
    opcodes: Sequence[str], works: Callable[[str], OpcodeWork | str | None], columns: Mapping[str, FloatArray]
) -> tuple[dict[str, FloatArray], tuple[str, ...]]:
    """Operations by kind: threads or warp instructions times the weight of the opcode; and opcodes whose work nobody knows.

    NaN where a weight or the count is not known, and outside of the code; 0 where nothing was executed.
    """
    size = len(opcodes)
    weight = {kind: np.zeros(size) for kind in (*WORKS, INT32)}
    per_warp = np.zeros(size, dtype=bool)
    for row, opcode in enumerate(opcodes):
        work = works(opcode) if opcode else opcode
        if isinstance(work, str):
            mine = kind_of(work) if work else ""
            for kind in (mine,) if mine in weight else weight:
                weight[kind][row] = math.nan
        elif work is not None and not work.conversion and (kind := work.precision.partition(".")[0]) in weight:
            weight[kind][row] = work.weight
            per_warp[row] = work.per == "warp"
    numbers = np.where(per_warp, columns["executed"], columns["threads"])
    idle = np.isfinite(numbers) & (numbers == 0) | (columns["executed"] == 0)
    result = {f"work_{kind}": np.where((one == 0) | idle, 0.0, numbers * one) for kind, one in weight.items()}
    result["work"] = np.sum([result[f"work_{kind}"] for kind in WORKS], axis=0)
    unknown = [
        opcode for opcode, none in zip(opcodes, idle.tolist(), strict=True) if opcode and not none and works(opcode) == opcode
    ]
    return result, tuple(dict.fromkeys(unknown))
