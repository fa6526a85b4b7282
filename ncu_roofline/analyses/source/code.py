"""The code of a launch: its functions, where they lie on the GPU, their instructions, loops, source lines and their text."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from ncu_roofline.analyses.source.counts import IntArray
from ncu_roofline.chips.code_limits import FUNCTIONS, IMPORTED_BYTES, INLINED_LEVELS, INSTRUCTIONS
from ncu_roofline.formats.inputs.text import find_source, last_part, lines_of_source, most_alike
from ncu_roofline.formats.report import Kernel
from ncu_roofline.formats.sass import CodeError
from ncu_roofline.formats.sass.control_flow import Block, Flow, control_flow
from ncu_roofline.formats.sass.cubin import Cubin, Function, read_cubin
from ncu_roofline.formats.sass.instructions import SIZE, Instruction, decode
from ncu_roofline.formats.sass.line_program import Place
from ncu_roofline.model.displayed import several
from ncu_roofline.model.halves import placed

_MOST_TEXT = IMPORTED_BYTES >> 20
_ROOM = 2**26  # bytes of cubins that are kept: those of large libraries have a hundred million
_MOST_FILES, _MOST_LETTERS = 1_000, 64_000_000
"""Files of one report, and letters of all: a template library brings some hundred, a hostile report as many as it has lines."""
Disassemble = Callable[[Sequence[bytes], tuple[int, int]], Sequence[Mapping[int, str]]]
"""From the code of functions and the compute capability it is for to the text of each instruction by offset, per function."""
_Key = tuple[bytes, str]  # digest of a module, name of a function


@dataclass(frozen=True)
class Body:
    """A function in which something was counted: its instructions in the order of their addresses, and its loops.

    ``places``: of each instruction the source lines, innermost first, () without.  ``notes``: what of it can't be known.
    ``address`` is where it lies.
    """

    function: Function
    instructions: tuple[Instruction, ...]
    flow: Flow
    places: Sequence[tuple[Place, ...]]
    notes: tuple[str, ...]
    address: int = 0

    @property
    def name(self) -> str:
        """Mangled."""
        return self.function.name

    @property
    def end(self) -> int:
        """The address behind it."""
        return self.address + SIZE * len(self.instructions)


@dataclass(frozen=True)
class LaunchCode:
    """The functions of a launch, its own first, and what a reader must know of them.

    ``texts`` gives for each function whole instructions by offset, as far as they are known: a program makes them, when they
    are asked for.
    """

    bodies: tuple[Body, ...] = ()
    notes: tuple[str, ...] = ()
    texts: Callable[[], Sequence[Mapping[int, str]]] = tuple


class Cubins:
    """Cubins and decoded functions, which the launches of a report mostly share."""

    def __init__(self, disassemble: Disassemble | None) -> None:
        self._disassemble = disassemble
        self._cubins: OrderedDict[bytes, tuple[int, Cubin | str]] = OrderedDict()  # by digest, that used last at the end
        self._decoded: dict[_Key, Body] = {}
        self._texts: dict[_Key, Mapping[int, str]] = {}
        self._levels = INLINED_LEVELS
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
        found = placed(kernel, code, cubin, addresses.tolist())
        if reason := _too_large(found, addresses):
            return LaunchCode(notes=(f"the machine code is not shown: {reason}; counts stand by address",))
        bodies = [replace(self._decode(digest, cubin, function), address=address) for function, address in found]
        notes = [note for body in bodies for note in body.notes]
        if code.unread:
            notes.append(f"sources of a module are read up to {_MOST_TEXT} MB: without {several(code.unread, 'imported file')}")
        if kernel.mangled_name not in {one.name for one in bodies}:
            known = kernel.mangled_name in cubin.functions
            lacks = "where the kernel's code lies on the GPU" if known else "the code of the kernel"
            notes.append(f"the report doesn't tell {lacks}: its counts stand by address")
        functions = [function for function, _ in found]
        return LaunchCode(tuple(bodies), tuple(dict.fromkeys(notes)), cache(lambda: self._whole(digest, functions)))

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

    def _decode(self, digest: bytes, cubin: Cubin, function: Function) -> Body:
        key = (digest, function.name)
        if key not in self._decoded:
            instructions = decode(function.code, function.capability)
            places: Sequence[tuple[Place, ...]] = [()] * len(instructions)
            notes = []
            try:
                lines = cubin.lines(function.name)
                self._levels -= sum(lines.levels(one.offset) for one in instructions)
                if self._levels < 0:
                    raise CodeError(f"its instructions have more than {INLINED_LEVELS:,} levels of inlined code")
                places = [lines.at(one.offset) for one in instructions]
            except CodeError as error:
                notes.append(f"the line table can't be read: {error}")
            try:
                flow = control_flow(instructions, cubin.jump_tables(function.name))
            except CodeError as error:
                count = len(instructions)
                blocks = (Block(0, SIZE * count, ()),) if count else ()
                flow = Flow(blocks, (), [0] * count, [-1] * count, irreducible=True, unresolved=())
                notes.append(f"its loops are unknown: {error}")
            self._decoded[key] = Body(function, instructions, flow, places, tuple(notes))
        return self._decoded[key]

    def _whole(self, digest: bytes, functions: Sequence[Function]) -> list[Mapping[int, str]]:
        """The texts of functions of one module: the launch's own apart from the others, of which one may not be known."""
        new = [one for one in functions if (digest, one.name) not in self._texts]
        for some in (new[:1], new[1:]):
            capability = some[0].capability if some else None
            if self._disassemble is None or capability is None:
                continue
            texts = self._disassemble([one.code for one in some], capability)
            if texts is None:
                raise TypeError("disassemble must give the texts of instructions by offset per function, not None")
            self._texts.update(zip(((digest, one.name) for one in some), texts, strict=True))
        return [self._texts.get((digest, one.name), {}) for one in functions]


def _too_large(found: Sequence[tuple[Function, int]], addresses: IntArray) -> str:
    """Why functions are not decoded; "" if they can be a launch's with counts at these addresses."""
    functions = len(found) + sum(len(function.inside) for function, _ in found)
    if functions > FUNCTIONS:
        return f"it has {functions:,} functions, and no more than {FUNCTIONS:,} are read"
    sizes = np.array([len(function.code) for function, _ in found], dtype=np.int64)
    starts = np.array([address for _, address in found], dtype=np.int64)
    inside = np.searchsorted(addresses, starts + sizes) - np.searchsorted(addresses, starts)
    count = int(sizes.sum()) // SIZE + len(addresses) - int(inside.sum())
    reason = f"with what has counts outside it has {count:,} instructions, and no more than {INSTRUCTIONS:,} are read"
    return reason if count > INSTRUCTIONS else ""


class SourceTexts:
    """The lines of source files of a report, by the name that line tables give them."""

    def __init__(self, folders: Sequence[str]) -> None:
        self._folders = folders
        self.found: dict[str, tuple[str, ...]] = {}
        self._looked: set[str] = set()
        self._letters = 0

    def add(self, kernel: Kernel, names: Iterable[str]) -> None:
        """Look for these files: what the report imported for this kernel's module, then what is in the folders."""
        new = [name for name in dict.fromkeys(names) if name and name not in self._looked]
        imported: dict[str, dict[str, str]] = {}
        for file in kernel.code.files if kernel.code and new else ():
            imported.setdefault(last_part(file.name), {})[file.name] = file.text
        for name in new[: _MOST_FILES - len(self._looked)]:
            if self._letters > _MOST_LETTERS:
                break
            self._looked.add(name)
            alike = imported.get(last_part(name), {})
            best = most_alike(name, alike)
            lines = lines_of_source(alike[best]) if best else find_source(name, self._folders)
            if lines is not None:
                self.found[name] = lines
                self._letters += sum(map(len, lines))
