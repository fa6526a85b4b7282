"""Cubins: the functions in them, what these call, and the source lines of their instructions."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

from ncu_roofline.chips.sass import NOTE_BYTES
from ncu_roofline.formats.sass import CodeError
from ncu_roofline.formats.sass.elf import NO_BITS, Elf, Relocation, Section, Symbol
from ncu_roofline.formats.sass.instructions import SIZE, Instruction, decode
from ncu_roofline.formats.sass.line_program import Lines, LineTable, Rows

_GPU = 190  # the number of CUDA among machines
_EXECUTABLE = 4
_FUNCTION = 2
_TEXT = ".text."
_NOTES = ".nv.info."
_ATTRIBUTE = struct.Struct("<BBH")
_WORD = struct.Struct("<I")
_WITH_PAYLOAD = 4  # the form of attributes that are followed by as many bytes as they say; others hold their value themselves
_BRANCH_TARGETS = 0x34
_MOST = 100  # functions that are followed: more are made to take long
_TABLES = ("BRX", "BRXU")  # jumps by a table of the function that they are in


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
    """A file of machine code for one chip.

    ``capability``: the compute capability, None if the file has it in a way that isn't known.  ``functions``: by mangled name;
    of several of one name (each file that was compiled apart may bring one) the later ones are called "name__1" and so on, as
    by nvdisasm.  ``sections``: the numbers of the functions' sections.
    """

    def __init__(self, elf: Elf) -> None:
        self._elf = elf
        self._notes_left = NOTE_BYTES
        # By the flags, two digits: in the lowest byte up to CUDA 12, since then (ABI version 8) in the next.
        shift = {(0x33, 7): 0, (0x41, 8): 8}.get((elf.abi, elf.abi_version))
        capability = elf.flags >> shift & 0xFF if shift is not None else 0
        self.capability = divmod(capability, 10) if capability >= 30 else None
        self.sections: Mapping[str, int] = MappingProxyType(_named(elf))
        self._names = {number: name for name, number in self.sections.items()}
        _check_apart(elf, self._names)
        symbols: dict[int, list[Symbol]] = {number: [] for number in self._names}
        for symbol in elf.symbols:
            if symbol.type == _FUNCTION and symbol.section in symbols:
                symbols[symbol.section].append(symbol)
        # In cubins that the driver had loaded, kernels have absolute addresses, and what else is in their sections may, too.
        self._bases = {
            number: next((each.value for each in inside if _TEXT + each.name == elf.sections[number].name), 0)
            for number, inside in symbols.items()
        }
        self.functions: Mapping[str, Function] = MappingProxyType(
            {name: self._function(name, number, symbols[number]) for name, number in self.sections.items()}
        )

    def _function(self, name: str, number: int, symbols: list[Symbol]) -> Function:
        section = self._elf.sections[number]
        content = self._elf.content(section)
        inside = []
        for symbol in symbols:
            offset = self._offset(symbol)
            if _TEXT + symbol.name != section.name:
                if symbol.size > len(content) - offset:
                    raise CodeError("one of its functions lies outside its section")
                inside.append((offset, symbol.size, symbol.name))
        calls = set()
        for each in self._elf.relocations(number):
            called = self._elf.symbols[each.symbol]
            if called.type == _FUNCTION and called.section != number:
                calls.add((each.offset // SIZE * SIZE, self._names.get(called.section, called.name)))
        whole = len(content) // SIZE * SIZE
        return Function(name, bytes(content[:whole]), self.capability, tuple(sorted(inside)), tuple(sorted(calls)))

    def _offset(self, symbol: Symbol) -> int:
        """Where a symbol stands in its section."""
        base = self._bases[symbol.section]
        return symbol.value - base if base and symbol.value >= base else symbol.value

    def lines(self, name: str) -> Lines:
        """The source lines of a function's instructions; empty (false) if the cubin has none for it.

        Raises KeyError for a name that isn't among the functions, CodeError if the line table is damaged.
        """
        number = self.sections[name]
        size, base = len(self.functions[name].code), self._bases[number]
        pieces: list[Rows] = []
        end = 0
        for each in self._first_addresses.get(number, ()):
            if each.offset < end:  # so that no byte is run twice
                raise CodeError("its line table is damaged")
            symbol = self._elf.symbols[each.symbol]
            rows, end = self._line_table.rows(each.offset, size, base, self._offset(symbol) + each.addend)
            pieces.append(rows)
        return Lines(pieces)

    def jump_tables(self, name: str) -> dict[int, tuple[int, ...]]:
        """Where indirect jumps of a function go, by their offsets.

        Raises KeyError for a name that isn't among the functions, CodeError for more notes than compilers write.
        """
        notes = self._bytes(_notes_of(self._elf.sections[self.sections[name]]))
        self._notes_left -= len(notes)
        if self._notes_left < 0:
            raise CodeError(f"the notes on its functions are longer than {NOTE_BYTES:,} bytes")
        return jump_tables(notes)

    @cached_property
    def _line_table(self) -> LineTable:
        return LineTable(self._bytes(".debug_line"), self._bytes(".debug_str"))

    def _bytes(self, section: str) -> bytes:
        number = self._elf.number(section)
        return b"" if number is None else bytes(self._elf.content(self._elf.sections[number]))

    @cached_property
    def _first_addresses(self) -> dict[int, list[Relocation]]:
        """Where the line table has the first addresses of a section's pieces, in its order."""
        found: dict[int, list[Relocation]] = {}
        number = self._elf.number(".debug_line")
        if number is not None:
            for each in sorted(self._elf.relocations(number), key=lambda each: each.offset):
                found.setdefault(self._elf.symbols[each.symbol].section, []).append(each)
            if not found and self._elf.sections[number].size:
                raise CodeError("its line table doesn't say which functions the lines belong to")
        return found


def read_cubin(data: bytes) -> Cubin:
    """The functions of a cubin.  Raises CodeError with the reason if it is none, damaged, or made to take long."""
    elf = Elf(data)
    if elf.machine != _GPU:
        raise CodeError("it holds no code of an NVIDIA GPU")
    return Cubin(elf)


def _named(elf: Elf) -> dict[str, int]:
    numbers: dict[str, int] = {}
    times: Counter[str] = Counter()
    for number, section in enumerate(elf.sections):
        if section.name.startswith(_TEXT) and section.flags & _EXECUTABLE:
            name = unique = section.name[len(_TEXT) :]
            while unique in numbers:
                times[name] += 1
                unique = f"{name}__{times[name]}"
            numbers[unique] = number
    return numbers


def _notes_of(section: Section) -> str:
    """The name of the section with what the compiler notes on the function in this one."""
    return _NOTES + section.name[len(_TEXT) :]


def _check_apart(elf: Elf, numbers: Iterable[int]) -> None:
    """That code, relocations and notes are no larger than the file: sections may claim the same bytes a million times."""
    used = set(numbers)
    used |= {notes for number in used if (notes := elf.number(_notes_of(elf.sections[number]))) is not None}
    sections = [each for number in used for each in (elf.sections[number], *elf.relocating.get(number, ()))]
    claimed = sum(each.size for each in sections if each.type != NO_BITS)
    if claimed > len(elf.data):
        raise CodeError("its sections lie outside the file or on each other")


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
        words = [word for (word,) in _WORD.iter_unpack(payload[: len(payload) // _WORD.size * _WORD.size])]
        at = 0
        while attribute == _BRANCH_TARGETS and at + 3 <= len(words):  # offset of the jump, zero, number of targets, targets
            jump, _, count = words[at : at + 3]
            at += 3
            if count > len(words) - at:
                break
            tables[jump] = tuple(words[at : at + count])
            at += count
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
            called = self._callees(left.pop())
            if called is None or len(found | called) > _MOST:
                return None
            left += called - found
            found |= called
        return frozenset(found)

    def _callees(self, name: str) -> frozenset[str] | None:
        """The functions of other sections that one calls; None if it calls or jumps to where nobody knows."""
        if name not in self._called:
            named = dict(self._cubin.functions[name].calls)
            jumps = [one for one in self.instructions(name) if one.flow in ("branch", "call", "indirect")]
            known = all(one.offset in named or one.target is not None or one.name in _TABLES for one in jumps)
            callees = {named[one.offset] for one in jumps if one.offset in named}
            self._called[name] = frozenset(callees & self._cubin.functions.keys()) if known else None
        return self._called[name]
