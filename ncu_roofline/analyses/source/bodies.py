"""The code of a launch: its functions, where they lie on the GPU, their instructions, loops and source lines."""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ncu_roofline.analyses.source.counts import IntArray
from ncu_roofline.report import Kernel
from ncu_roofline.sass import CodeError
from ncu_roofline.sass.control_flow import Block, Flow, control_flow
from ncu_roofline.sass.cubin import Cubin, Function, read_cubin
from ncu_roofline.sass.instructions import SIZE, Instruction, decode
from ncu_roofline.sass.lines import Place

_LAST = 2**63
_ROOM = 2**26  # bytes of cubins that are kept: those of large libraries have a hundred million
Disassemble = Callable[[bytes, tuple[int, int]], Mapping[int, str]]
"""From the code of a function and the compute capability it is for to the text of each instruction by offset."""


@dataclass(frozen=True)
class Decoded:
    """A function with its instructions and loops; ``notes``: what of it can't be known.

    ``places``: of each instruction the source lines, innermost first, () without; ``texts`` by offset.
    """

    function: Function
    instructions: tuple[Instruction, ...]
    flow: Flow
    places: Sequence[tuple[Place, ...]]
    texts: Mapping[int, str]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Body:
    """A function in which something was counted, and the address at which it lies."""

    code: Decoded
    address: int

    @property
    def name(self) -> str:
        """Mangled."""
        return self.code.function.name

    @property
    def instructions(self) -> tuple[Instruction, ...]:
        """In the order of their addresses, without gaps."""
        return self.code.instructions

    @property
    def flow(self) -> Flow:
        """Blocks and loops."""
        return self.code.flow

    @property
    def end(self) -> int:
        """The address behind it."""
        return self.address + SIZE * len(self.instructions)


@dataclass(frozen=True)
class LaunchCode:
    """The functions of a launch, its own first, and what a reader must know of them."""

    bodies: tuple[Body, ...] = ()
    notes: tuple[str, ...] = ()


class Cubins:
    """Cubins and decoded functions, which the launches of a report mostly share."""

    def __init__(self, disassemble: Disassemble | None) -> None:
        self._disassemble = disassemble
        self._cubins: OrderedDict[bytes, tuple[int, Cubin | str]] = OrderedDict()  # by digest, that used last at the end
        self._decoded: dict[tuple[bytes, str], Decoded] = {}
        self._last = b"", b""  # data and its digest

    def code(self, kernel: Kernel, addresses: IntArray) -> LaunchCode:
        """The functions that hold some of ``addresses`` (sorted), and the launch's own."""
        code = kernel.code
        if code is None or not code.cubin:
            return LaunchCode(notes=("the report doesn't hold the machine code: counts stand by address",))
        digest = self._digest(code.cubin)
        cubin = self._read(code.cubin, digest)
        if isinstance(cubin, str):
            return LaunchCode(notes=(f"the machine code can't be read: {cubin}; counts stand by address",))
        placed = {one.name: one.address for one in code.functions}
        base = kernel.base_address()
        if base is not None:
            placed[kernel.mangled_name] = base
        bodies: list[Body] = []
        notes: list[str] = []
        counted = addresses.tolist()
        for name in dict.fromkeys((kernel.mangled_name, *placed)):
            address, function = placed.get(name), cubin.functions.get(name)
            if address is None or function is None or address + len(function.code) >= _LAST:
                continue
            end = address + len(function.code)
            empty = bisect_left(counted, address) == bisect_left(counted, end)
            if (empty and name != kernel.mangled_name) or any(one.address < end and address < one.end for one in bodies):
                continue
            decoded = self._decode(digest, cubin, function)
            bodies.append(Body(decoded, address))
            notes += decoded.notes
        if kernel.mangled_name not in {one.name for one in bodies}:
            known = kernel.mangled_name in cubin.functions
            lacks = "where the kernel's code lies on the GPU" if known else "the code of the kernel"
            notes.append(f"the report doesn't tell {lacks}: its counts stand by address")
        return LaunchCode(tuple(bodies), tuple(dict.fromkeys(notes)))

    def _digest(self, data: bytes) -> bytes:
        """What tells modules apart: the reader keeps the last one only, so that one of before comes as another object."""
        if data is not self._last[0]:
            self._last = data, hashlib.sha256(data).digest()
        return self._last[1]

    def _read(self, data: bytes, digest: bytes) -> Cubin | str:
        """The cubin, or why it can't be read."""
        if digest not in self._cubins:
            try:
                self._cubins[digest] = len(data), read_cubin(data)
            except CodeError as error:
                self._cubins[digest] = 0, str(error)
        self._cubins.move_to_end(digest)
        while len(self._cubins) > 1 and sum(size for size, _ in self._cubins.values()) > _ROOM:
            self._cubins.popitem(last=False)
        return self._cubins[digest][1]

    def _decode(self, digest: bytes, cubin: Cubin, function: Function) -> Decoded:
        key = (digest, function.name)
        if key not in self._decoded:
            instructions = decode(function.code, function.capability)
            places: list[tuple[Place, ...]] = [()] * len(instructions)
            notes = []
            try:
                if lines := cubin.lines(function.name):
                    places = [lines.at(one.offset) for one in instructions]
            except CodeError as error:
                notes.append(f"the line table can't be read: {error}")
            try:
                flow = control_flow(instructions, cubin.jump_tables(function.name))
            except CodeError as error:
                flow = _one_block(len(instructions))
                notes.append(f"its loops are unknown: {error}")
            texts = self._disassemble(function.code, function.capability) if self._disassemble and function.capability else {}
            self._decoded[key] = Decoded(function, instructions, flow, places, texts, tuple(notes))
        return self._decoded[key]


def _one_block(count: int) -> Flow:
    """The flow of code whose flow nobody knows."""
    blocks = (Block(0, SIZE * count, ()),) if count else ()
    return Flow(blocks, (), [0] * count, [-1] * count, irreducible=True, unresolved=())
