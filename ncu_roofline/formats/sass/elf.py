"""The tables of an ELF file: sections, symbols, relocations, read with bounded time and memory from a file of any origin.

By ``struct``, not by pyelftools (0.33), with which the tests compare: its DWARF information can't be had of cubins, whose
relocations (type 2) it doesn't support, its line programs drop where code is inlined, and it took 0.69 s for a cubin of a real
report that takes 0.03 s here.  And a cubin in a report is whatever somebody sent: pyelftools reads a name once for each section
or symbol that has it; 500 sections of one long name in a file of 0.5 MB took 4.6 s and 251 MB.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from ncu_roofline.chips.sass import CUBIN_BYTES, TABLE_ROWS
from ncu_roofline.formats.sass import CodeError

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = {4: struct.Struct("<QQq"), 9: struct.Struct("<QQ")}  # by type of section: RELA, REL
_SYMBOL_TABLE, NO_BITS = 2, 8
_COMPRESSED = 0x800
_ELSEWHERE = 0xFFFF  # a number of a section that doesn't fit


class Section(NamedTuple):
    """A row of the section table."""

    name: str
    type: int
    flags: int
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
    """What has to be filled in at ``offset`` of a section: the value of a symbol (its number) plus ``addend``."""

    offset: int
    symbol: int
    addend: int


class Elf:
    """The tables of a 64-bit little-endian ELF file.  Whatever it does raises CodeError if the file is damaged."""

    def __init__(self, data: bytes) -> None:
        if data[:4] != b"\x7fELF":
            raise CodeError("it doesn't begin like an ELF file")
        if len(data) < _HEADER.size:
            raise CodeError("its ELF header is cut off")
        if len(data) > CUBIN_BYTES:
            raise CodeError(f"it has more than {CUBIN_BYTES:,} bytes")
        self.data = data
        ident, _, self.machine, _, _, _, table, self.flags, _, _, _, width, count, names = _HEADER.unpack_from(data)
        self.abi, self.abi_version = ident[7], ident[8]
        if ident[4:6] != b"\x02\x01":
            raise CodeError("it is no 64-bit little-endian ELF file")
        self._names = Texts(data)
        self.sections = self._read_sections(table, width, count, names) if table else ()
        self._numbers: dict[str, int] = {}
        for number, section in enumerate(self.sections):
            self._numbers.setdefault(section.name, number)
        self.symbols = self._read_symbols()

    def _read_sections(self, table: int, width: int, count: int, names: int) -> tuple[Section, ...]:
        if width != _SECTION.size or table + width > len(self.data):
            raise CodeError("its section table is damaged or lies outside the file")
        if not count or names == _ELSEWHERE:
            raise CodeError("it has more than 65,279 sections")
        if table + count * width > len(self.data):
            raise CodeError("its section table is cut off")
        rows = list(_SECTION.iter_unpack(memoryview(self.data)[table : table + count * width]))
        if names >= len(rows):
            raise CodeError("it has no names of sections")
        start, end = rows[names][4], rows[names][4] + rows[names][5]
        return tuple(
            Section(self._names.at(start + name, end), type_, flags, offset, size, link, info)
            for name, type_, flags, _, offset, size, link, info, _, _ in rows
        )

    def _read_symbols(self) -> tuple[Symbol, ...]:
        tables = [section for section in self.sections if section.type == _SYMBOL_TABLE]
        if len(tables) > 1:
            raise CodeError("it has several symbol tables")
        if not tables:
            return ()
        if tables[0].link >= len(self.sections):
            raise CodeError("its symbols have no names")
        _check_rows("symbols", tables[0].size // _SYMBOL.size)
        strings = self.sections[tables[0].link]
        start, end = strings.offset, strings.offset + strings.size
        return tuple(
            Symbol(self._names.at(start + name, end), info & 15, section, value, size)
            for name, info, _, section, value, size in _SYMBOL.iter_unpack(self._whole(tables[0], _SYMBOL.size))
        )

    def number(self, name: str) -> int | None:
        """The number of the first section of a name, None if there is none."""
        return self._numbers.get(name)

    def content(self, section: Section) -> memoryview:
        """The bytes of a section; of one that holds none in the file, none."""
        if section.type == NO_BITS:
            return memoryview(b"")
        if section.flags & _COMPRESSED:
            raise CodeError("one of its sections is compressed, which no CUDA compiler does")
        if section.offset + section.size > len(self.data):
            raise CodeError("one of its sections lies outside the file")
        return memoryview(self.data)[section.offset : section.offset + section.size]

    def relocations(self, number: int) -> Iterator[Relocation]:
        """What has to be filled into the section of a number, in the file's order."""
        for section in self.relocating.get(number, ()):
            rows = _RELOCATION[section.type]
            for offset, info, *addend in rows.iter_unpack(self._whole(section, rows.size)):
                if info >> 32 >= len(self.symbols):
                    raise CodeError("one of its relocations names a symbol that isn't there")
                yield Relocation(offset, info >> 32, addend[0] if addend else 0)

    @cached_property
    def relocating(self) -> dict[int, list[Section]]:
        """The sections of relocations of each section's number."""
        found: dict[int, list[Section]] = {}
        for section in self.sections:
            if section.type in _RELOCATION:
                found.setdefault(section.info, []).append(section)
        rows = sum(each.size // _RELOCATION[each.type].size for each in self.sections if each.type in _RELOCATION)
        _check_rows("relocations", rows)
        return found

    def _whole(self, section: Section, width: int) -> memoryview:
        content = self.content(section)
        if len(content) % width:
            raise CodeError("one of its tables is cut off")
        return content


def _check_rows(what: str, count: int) -> None:
    if count > TABLE_ROWS:
        raise CodeError(f"it has {count:,} {what}, and no more than {TABLE_ROWS:,} are read")


class Texts:
    """Texts that end with a zero byte, each read once: they may overlap, so their sum is held to what a sound file can have."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._known: dict[tuple[int, int | None], str] = {}
        self._left = 4 * len(data)

    def at(self, begin: int, limit: int | None = None) -> str:
        """The text that begins at a place and ends before ``limit`` (the end of the data)."""
        if (known := self._known.get((begin, limit))) is not None:
            return known
        end = self._data.find(b"\0", begin, limit)
        if end < 0:
            raise CodeError("one of its names is cut off")
        self._left -= end - begin
        if self._left < 0:
            raise CodeError("its names are longer than the file")
        return self._known.setdefault((begin, limit), self._data[begin:end].decode("utf-8", "replace"))
