"""The code of a module that a kernel ran from: each of its functions is decoded once, whoever asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any

from ncu_roofline.chips.sass import INLINED_LEVELS
from ncu_roofline.formats.sass import CodeError
from ncu_roofline.formats.sass.control_flow import Block, Flow, control_flow
from ncu_roofline.formats.sass.cubin import Cubin, Function, read_cubin
from ncu_roofline.formats.sass.instructions import SIZE, Instruction, decode
from ncu_roofline.formats.sass.line_program import Lines, Place


class Body:
    """A function of a module; what of it can't be read is empty, and said in ``notes`` once it was asked for."""

    def __init__(self, module: Module, function: Function) -> None:
        self._module, self.function = module, function
        self.name = function.name  # mangled
        self.notes: list[str] = []

    @cached_property
    def instructions(self) -> tuple[Instruction, ...]:
        """In the order of their addresses."""
        return decode(self.function.code, self.function.capability)

    @cached_property
    def lines(self) -> Lines:
        """Its line table."""
        try:
            return self._module.cubin.lines(self.name)
        except CodeError as error:
            self.notes.append(f"the line table can't be read: {error}")
            return Lines()

    @cached_property
    def places(self) -> Sequence[tuple[Place, ...]]:
        """Of each instruction the source lines, innermost first, () without."""
        self._module.levels_left -= sum(self.lines.levels(one.offset) for one in self.instructions)
        if self._module.levels_left < 0:
            what = f"its instructions have more than {INLINED_LEVELS:,} levels of inlined code"
            self.notes.append(f"the line table can't be read: {what}")
            return [()] * len(self.instructions)
        return [self.lines.at(one.offset) for one in self.instructions]

    @cached_property
    def flow(self) -> Flow:
        """Its blocks and loops."""
        try:
            return control_flow(self.instructions, self._module.cubin.jump_tables(self.name))
        except CodeError as error:
            self.notes.append(f"its loops are unknown: {error}")
            count = len(self.instructions)
            blocks = (Block(0, SIZE * count, ()),) if count else ()
            return Flow(blocks, (), [0] * count, [-1] * count, irreducible=True, unresolved=())


class Module:
    """A cubin and its functions.  ``kept`` is for what others know of them.  Raises CodeError for what can't be read."""

    def __init__(self, data: bytes) -> None:
        self.cubin: Cubin = read_cubin(data)
        self.levels_left = INLINED_LEVELS
        self.kept: dict[Any, Any] = {}
        self._bodies: dict[str, Body] = {}

    @property
    def functions(self) -> Mapping[str, Function]:
        """By mangled name."""
        return self.cubin.functions

    def body(self, name: str) -> Body:
        """A function by its name.  Raises KeyError for one that isn't among the functions."""
        if name not in self._bodies:
            self._bodies[name] = Body(self, self.functions[name])
        return self._bodies[name]


module_of = lru_cache(maxsize=4)(Module)
"""The module of these bytes; launches of one module mostly follow each other, and large ones have a hundred million."""
