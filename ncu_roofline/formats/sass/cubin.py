"""Cubins: the functions of a module that kernels run from, what these call, their instructions, loops and source lines.

The ELF file is read by ``struct``, not by pyelftools (0.33), with which the tests compare: its DWARF information can't be had
of cubins, whose relocations (type 2) it doesn't support, its line programs drop where code is inlined, and it took 0.69 s for a
cubin of a real report that takes 0.03 s here.  And a cubin in a report is whatever somebody sent: pyelftools reads a name once
for each section or symbol that has it; 500 sections of one long name in a file of 0.5 MB took 4.6 s and 251 MB.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

from ncu_roofline.chips.sass import CUBIN_BYTES, INLINED_LEVELS, NOTE_BYTES, TABLE_ROWS
from ncu_roofline.formats.sass import CodeError
from ncu_roofline.formats.sass.instructions import SIZE, Block, Flow, Instruction, control_flow, decode
from ncu_roofline.formats.sass.line_program import Lines, LineTable, Place, Rows, Texts

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = {4: struct.Struct("<QQq"), 9: struct.Struct("<QQ")}  # by type of section: RELA, REL
_SYMBOL_TABLE, _NO_BITS = 2, 8
_COMPRESSED = 0x800
_ELSEWHERE = 0xFFFF  # a number of a section that doesn't fit
_GPU = 190  # the number of CUDA among machines
_EXECUTABLE = 4
_FUNCTION = 2
_TEXT, _NOTES = ".text.", ".nv.info."
_ATTRIBUTE = struct.Struct("<BBH")
_WITH_PAYLOAD = 4  # the form of attributes that are followed by as many bytes as they say; others hold their value themselves
_BRANCH_TARGETS = 0x34
_MOST = 100  # functions that are followed: more are made to take long
_TABLES = ("BRX", "BRXU")  # jumps by a table of the function that they are in
_CUT = "its tables are damaged or cut off"
_OUTSIDE = "its sections lie outside the file or on each other"


class Section(NamedTuple):
    """A row of the section table."""

    name: str
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int


class Symbol(NamedTuple):
    """A row of the symbol table; ``section`` is the number of its section, 0 if it is defined elsewhere."""

    name: str
    type: int
    section: int
    value: int
    size: int


class Relocation(NamedTuple):
    """What has to be filled in at ``offset`` of a section: the value of a symbol plus ``addend``."""

    offset: int
    symbol: Symbol
    addend: int


class Elf:
    """The tables of a 64-bit little-endian ELF file, read with bounded time and memory.

    ``numbers``: of the first section of each name; ``relocating``: the sections of relocations of each section's number.
    Whatever it does raises CodeError if the file is damaged.
    """

    def __init__(self, data: bytes) -> None:
        if data[:6] != b"\x7fELF\x02\x01" or len(data) < _HEADER.size:
            raise CodeError("it is no 64-bit little-endian ELF file")
        if len(data) > CUBIN_BYTES:
            raise CodeError(f"it has more than {CUBIN_BYTES:,} bytes")
        self.data, texts = data, Texts(data)
        ident, _, self.machine, _, _, _, table, self.flags, _, _, _, width, count, names = _HEADER.unpack_from(data)
        self.abi = ident[7], ident[8]
        end = table + count * width if table else 0
        if table and (width != _SECTION.size or not names < count or names == _ELSEWHERE or end > len(data)):
            raise CodeError(_CUT)
        rows = list(_SECTION.iter_unpack(memoryview(data)[table:end])) if table else []
        start, limit = (rows[names][4], rows[names][4] + rows[names][5]) if rows else (0, 0)
        self.sections = tuple(Section(texts.at(start + row[0], limit), *row[1:8]) for row in rows)
        self.numbers = {section.name: number for number, section in reversed(list(enumerate(self.sections)))}
        tables = [section for section in self.sections if section.type == _SYMBOL_TABLE]
        if len(tables) > 1 or any(one.link >= len(rows) for one in tables):
            raise CodeError(_CUT)
        _check_rows("symbols", sum(one.size // _SYMBOL.size for one in tables))
        self.symbols = tuple(
            Symbol(texts.at(names.offset + name, names.offset + names.size), info & 15, section, value, size)
            for one, names in ((one, self.sections[one.link]) for one in tables)
            for name, info, _, section, value, size in self._unpacked(one, _SYMBOL)
        )
        self.relocating: dict[int, list[Section]] = {}
        for section in self.sections:
            if section.type in _RELOCATION:
                self.relocating.setdefault(section.info, []).append(section)
        every = (each for sections in self.relocating.values() for each in sections)
        _check_rows("relocations", sum(each.size // _RELOCATION[each.type].size for each in every))

    def content(self, section: Section) -> memoryview:
        """The bytes of a section; of one that holds none in the file, none."""
        if section.type == _NO_BITS:
            return memoryview(b"")
        if section.flags & _COMPRESSED:
            raise CodeError("one of its sections is compressed, which no CUDA compiler does")
        if section.offset + section.size > len(self.data):
            raise CodeError(_OUTSIDE)
        return memoryview(self.data)[section.offset : section.offset + section.size]

    def named(self, name: str) -> bytes:
        """The bytes of the first section of a name, none if there is none."""
        return bytes(self.content(self.sections[self.numbers[name]])) if name in self.numbers else b""

    def relocations(self, number: int) -> Iterator[Relocation]:
        """What has to be filled into the section of a number, in the file's order."""
        for section in self.relocating.get(number, ()):
            for offset, info, *addend in self._unpacked(section, _RELOCATION[section.type]):
                if info >> 32 >= len(self.symbols):
                    raise CodeError(_CUT)
                yield Relocation(offset, self.symbols[info >> 32], addend[0] if addend else 0)

    def _unpacked(self, section: Section, row: struct.Struct) -> Iterator[tuple[Any, ...]]:
        content = self.content(section)
        if len(content) % row.size:
            raise CodeError(_CUT)
        return row.iter_unpack(content)


def _check_rows(what: str, count: int) -> None:
    if count > TABLE_ROWS:
        raise CodeError(f"it has {count:,} {what}, and no more than {TABLE_ROWS:,} are read")


@dataclass(frozen=True)
class Function:
    """A function that has a section of its own: a kernel, or what was compiled apart from its callers.

    ``name`` is mangled.  ``inside``: further functions in the same section (offset, size in bytes, name).  ``calls``: which
    instructions (their offset) name a function of another section or of the driver, as `vprintf`: calls, and the moves that
    fill the registers of calls through registers.
    """

    name: str
    code: bytes = field(repr=False)
    capability: tuple[int, int] | None
    inside: tuple[tuple[int, int, str], ...] = ()
    calls: tuple[tuple[int, str], ...] = ()


class Cubin:
    """A file of machine code for one chip.  Raises CodeError with the reason if it is none, damaged, or made to take long.

    ``capability``: the compute capability, None if the file has it in a way that isn't known.  ``functions``: by mangled name;
    of several of one name (each file that was compiled apart may bring one) the later ones are called "name__1" and so on, as
    by nvdisasm.  ``sections``: the numbers of the functions' sections.  ``kept`` is for what others know of the module.
    """

    def __init__(self, data: bytes) -> None:
        self._elf = elf = Elf(data)
        if elf.machine != _GPU:
            raise CodeError("it holds no code of an NVIDIA GPU")
        self._notes_left, self.levels_left = NOTE_BYTES, INLINED_LEVELS
        self.kept: dict[Any, Any] = {}
        self._bodies: dict[str, Body] = {}
        # By the flags, two digits: in the lowest byte up to CUDA 12, since then (ABI version 8) in the next.
        shift = {(0x33, 7): 0, (0x41, 8): 8}.get(elf.abi)
        capability = elf.flags >> shift & 0xFF if shift is not None else 0
        self.capability = divmod(capability, 10) if capability >= 30 else None
        numbers: dict[str, int] = {}
        times: Counter[str] = Counter()
        for number, section in enumerate(elf.sections):
            if section.name.startswith(_TEXT) and section.flags & _EXECUTABLE:
                name = unique = section.name[len(_TEXT) :]
                while unique in numbers:
                    times[name] += 1
                    unique = f"{name}__{times[name]}"
                numbers[unique] = number
        self.sections: Mapping[str, int] = MappingProxyType(numbers)
        # Code, relocations and notes are no larger than the file: sections may claim the same bytes a million times.
        notes = {elf.numbers[name] for number in numbers.values() if (name := self._notes_of(number)) in elf.numbers}
        claims = [
            one for number in {*numbers.values(), *notes} for one in (elf.sections[number], *elf.relocating.get(number, ()))
        ]
        if sum(each.size for each in claims if each.type != _NO_BITS) > len(data):
            raise CodeError(_OUTSIDE)
        symbols: dict[int, list[Symbol]] = {number: [] for number in numbers.values()}
        for symbol in elf.symbols:
            if symbol.type == _FUNCTION and symbol.section in symbols:
                symbols[symbol.section].append(symbol)
        # In cubins that the driver had loaded, kernels have absolute addresses, and what else is in their sections may, too.
        self._bases = {
            number: next((each.value for each in inside if _TEXT + each.name == elf.sections[number].name), 0)
            for number, inside in symbols.items()
        }
        functions, called = {}, {number: name for name, number in numbers.items()}
        for name, number in numbers.items():
            content, inside, calls = elf.content(elf.sections[number]), [], set()
            for symbol in symbols[number]:
                if _TEXT + symbol.name != elf.sections[number].name:
                    if symbol.size > len(content) - self._offset(symbol):
                        raise CodeError(_OUTSIDE)
                    inside.append((self._offset(symbol), symbol.size, symbol.name))
            for each in elf.relocations(number):
                if each.symbol.type == _FUNCTION and each.symbol.section != number:
                    calls.add((each.offset // SIZE * SIZE, called.get(each.symbol.section, each.symbol.name)))
            code = bytes(content[: len(content) // SIZE * SIZE])
            functions[name] = Function(name, code, self.capability, tuple(sorted(inside)), tuple(sorted(calls)))
        self.functions: Mapping[str, Function] = MappingProxyType(functions)

    def body(self, name: str) -> Body:
        """A function by its name, decoded once.  Raises KeyError for one that isn't among the functions."""
        if name not in self._bodies:
            self._bodies[name] = Body(self, self.functions[name])
        return self._bodies[name]

    def _notes_of(self, number: int) -> str:
        """The name of the section with what the compiler notes on the function of this one."""
        return _NOTES + self._elf.sections[number].name[len(_TEXT) :]

    def _offset(self, symbol: Symbol) -> int:
        """Where a symbol stands in its section."""
        base = self._bases[symbol.section]
        return symbol.value - base if base and symbol.value >= base else symbol.value

    def lines(self, name: str) -> Lines:
        """The source lines of a function's instructions; empty (false) if the cubin has none for it.

        Raises KeyError for a name that isn't among the functions, CodeError if the line table is damaged.
        """
        number, end, pieces = self.sections[name], 0, list[Rows]()
        size, base = len(self.functions[name].code), self._bases[number]
        for each in self._first_addresses.get(number, ()):
            if each.offset < end:  # so that no byte is run twice
                raise CodeError("its line table is damaged")
            rows, end = self._line_table.rows(each.offset, size, base, self._offset(each.symbol) + each.addend)
            pieces.append(rows)
        return Lines(pieces)

    def jump_tables(self, name: str) -> dict[int, tuple[int, ...]]:
        """Where indirect jumps of a function go, by their offsets.

        Raises KeyError for a name that isn't among the functions, CodeError for more notes than compilers write.
        """
        notes = self._elf.named(self._notes_of(self.sections[name]))
        self._notes_left -= len(notes)
        if self._notes_left < 0:
            raise CodeError(f"the notes on its functions are longer than {NOTE_BYTES:,} bytes")
        return jump_tables(notes)

    @cached_property
    def _line_table(self) -> LineTable:
        return LineTable(self._elf.named(".debug_line"), self._elf.named(".debug_str"))

    @cached_property
    def _first_addresses(self) -> dict[int, list[Relocation]]:
        """Where the line table has the first addresses of a section's pieces, in its order."""
        found: dict[int, list[Relocation]] = {}
        number = self._elf.numbers.get(".debug_line")
        if number is not None:
            for each in sorted(self._elf.relocations(number), key=lambda each: each.offset):
                found.setdefault(each.symbol.section, []).append(each)
            if not found and self._elf.sections[number].size:
                raise CodeError("its line table doesn't say which functions the lines belong to")
        return found


def jump_tables(notes: bytes) -> dict[int, tuple[int, ...]]:
    """Where indirect jumps may go, as the compiler notes it in the section ``.nv.info`` of a function.

    Targets by the offset of the jump, both in bytes from the beginning of the code; what is damaged is left out.
    """
    tables: dict[int, tuple[int, ...]] = {}
    place = 0
    while place + _ATTRIBUTE.size <= len(notes):
        form, attribute, size = _ATTRIBUTE.unpack_from(notes, place)
        place += _ATTRIBUTE.size
        if form != _WITH_PAYLOAD:
            continue
        payload = notes[place : place + size]
        place += size
        count = len(payload) // 4 if attribute == _BRANCH_TARGETS else 0
        words, at = struct.unpack_from(f"<{count}I", payload), 0
        # The offset of the jump, zero, the number of targets, targets.
        while at + 3 <= count and (end := at + 3 + words[at + 2]) <= count:
            tables[words[at]] = tuple(words[at + 3 : end])
            at = end
    return tables


class Reach:
    """The instructions of some ``names`` in the functions of a cubin, with those that are not known, and with all jumps."""

    def __init__(self, cubin: Cubin, names: Container[str]) -> None:
        self._cubin, self._names = cubin, names
        self._called: dict[str, frozenset[str] | None] = {}

    def instructions(self, name: str) -> tuple[Instruction, ...]:
        """Those of a function, decoded anew.  Raises KeyError for a name that isn't among the cubin's functions."""
        function = self._cubin.functions[name]
        return decode(function.code, function.capability, self._names)

    def within(self, name: str) -> frozenset[str] | None:
        """The functions that a run of the one of this name can come to, itself among them; None if that can't be told.

        Functions of the driver (`vprintf`), which the cubin does not have, are left out.  Raises KeyError as `instructions`.
        """
        found, left = {name}, [name]
        while left:
            function = left.pop()
            if function not in self._called:  # what it calls; None if it calls or jumps to where nobody knows
                named = dict(self._cubin.functions[function].calls)
                jumps = [one for one in self.instructions(function) if one.flow in ("branch", "call", "indirect")]
                known = all(one.offset in named or one.target is not None or one.name in _TABLES for one in jumps)
                callees = {named[one.offset] for one in jumps if one.offset in named}
                self._called[function] = frozenset(callees & self._cubin.functions.keys()) if known else None
            called = self._called[function]
            if called is None or len(found | called) > _MOST:
                return None
            left += called - found
            found |= called
        return frozenset(found)


class Body:
    """A function of a module, decoded once; what of it can't be read is empty, and said in ``notes`` once it was asked for."""

    def __init__(self, module: Cubin, function: Function) -> None:
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
            return self._module.lines(self.name)
        except CodeError as error:
            self.notes.append(f"the line table can't be read: {error}")
            return Lines()

    @cached_property
    def places(self) -> Sequence[tuple[Place, ...]]:
        """Of each instruction the source lines, innermost first, () without."""
        places: list[tuple[Place, ...]] = []
        for one in self.instructions:
            places.append(self.lines.at(one.offset))
            self._module.levels_left -= len(places[-1])
            if self._module.levels_left < 0:
                what = f"its instructions have more than {INLINED_LEVELS:,} levels of inlined code"
                self.notes.append(f"the line table can't be read: {what}")
                return [()] * len(self.instructions)
        return places

    @cached_property
    def flow(self) -> Flow:
        """Its blocks and loops."""
        try:
            return control_flow(self.instructions, self._module.jump_tables(self.name))
        except CodeError as error:
            self.notes.append(f"its loops are unknown: {error}")
            count = len(self.instructions)
            blocks = (Block(0, SIZE * count, ()),) if count else ()
            return Flow(blocks, (), [0] * count, [-1] * count, unresolved=())


module_of = lru_cache(maxsize=4)(Cubin)
"""The module of these bytes; launches of one module mostly follow each other, and large ones have a hundred million."""
