"""Line programs: the small machine of DWARF (versions 2 to 4) whose output is the table of lines.

NVIDIA's compilers write version 2 with an extended opcode of their own, 0x90, and two numbers: the row of the same sequence
(counted from 1) where the code of the following rows is inlined, 0 for not at all, and where its function's name begins in
``.debug_str``.  pyelftools leaves that opcode out, begins a program where the file table ends (NVIDIA's begin later, where the
header says) and makes objects of every step, so the few steps are done here, of the function in question only.
"""

from __future__ import annotations

import bisect
import re
import struct
from array import array
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice, pairwise
from operator import length_hint
from typing import NamedTuple

from ncu_roofline.chips.sass import LINE_BYTES
from ncu_roofline.formats.sass import CodeError

_CUT = "its line table is cut off"
_DAMAGED = "its line table is damaged"
_DEEPEST = 256  # inlined functions: deeper is made to take long
_LONGEST = 70  # bits of a number, which has 64: seven per byte
_FILE = re.compile(rb"([^\0]+)\0([\x80-\xff]*[\0-\x7f])(?:[\x80-\xff]*[\0-\x7f]){2}")  # its folder's number, time, size
_COPY, _ADVANCE_PC, _ADVANCE_LINE, _SET_FILE, _CONSTANT_ADVANCE, _FIXED_ADVANCE = 1, 2, 3, 4, 8, 9
_END_SEQUENCE, _SET_ADDRESS, _INLINED = 1, 2, 0x90
# Of the standard opcodes that don't matter: columns, statements, prologues, ISA.
_OPERANDS = {5: 1, 6: 0, 7: 0, 10: 0, 11: 0, 12: 1}


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


@dataclass
class Rows:
    """The rows of one sequence: offset in the function, file (from 1), line (0: of none), where it is inlined (row, or -1).

    ``depths``: lines around it.  ``end``: where the code of the last row ends.
    """

    files: tuple[str, ...]
    names: Texts | None
    offsets: array[int] = field(default_factory=lambda: array("Q"))
    file_numbers: array[int] = field(default_factory=lambda: array("I"))
    lines: array[int] = field(default_factory=lambda: array("I"))
    callers: array[int] = field(default_factory=lambda: array("q"))
    functions: array[int] = field(default_factory=lambda: array("I"))
    depths: array[int] = field(default_factory=lambda: array("H"))
    end: int = 0

    def add(self, offset: int, file: int, line: int, inlined_at: int, function: int) -> None:
        """One more row.  Raises CodeError for numbers that can't be."""
        count = len(self.offsets)
        if not 0 <= offset < 1 << 64 or not 0 <= line < 1 << 32 or not 0 < file <= len(self.files):
            raise CodeError(_DAMAGED)
        if inlined_at > count or function >= 1 << 32 or (count and offset < self.offsets[-1]):
            raise CodeError(_DAMAGED)
        depth = self.depths[inlined_at - 1] + 1 if inlined_at else 0
        if depth > _DEEPEST:
            raise CodeError(f"its line table has more than {_DEEPEST} functions inlined in each other")
        self.offsets.append(offset)
        self.file_numbers.append(file)
        self.lines.append(line)
        self.callers.append(inlined_at - 1)
        self.functions.append(function)
        self.depths.append(depth)


class _Unit(NamedTuple):
    """A program: where its bytes begin and end, the parameters of its special opcodes, its files' paths."""

    start: int
    end: int
    step: int
    line_base: int
    line_range: int
    operands: bytes
    files: tuple[str, ...]


class LineTable:
    """The section ``.debug_line`` and the names it refers to."""

    def __init__(self, data: bytes, names: bytes) -> None:
        self._data = data
        self._budget = 64 * len(data) + (1 << 24)  # characters of paths: a long folder can be that of a million files
        self._left = LINE_BYTES
        self._starts, self._ends = list[int](), list[int]()  # of programs
        place = 0
        while place < len(data):
            length = int.from_bytes(data[place : place + 4], "little")
            if length < 4 or length > len(data) - place - 4:
                raise CodeError(_CUT)
            self._starts.append(place)
            place += 4 + length
            self._ends.append(place)
        # nvlink puts the names of all files behind each other and leaves the numbers that say where they begin as they were.
        self._names = Texts(names) if len(self._starts) == 1 else None
        self._units: dict[int, _Unit] = {}

    def rows(self, place: int, size: int, base: int, addend: int) -> tuple[Rows, int]:
        """The sequence whose first address is written at ``place``, of a function of ``size`` bytes; and where it ends.

        An address from ``base`` on is absolute (if that isn't 0), to others ``addend`` is added: then they are offsets in the
        function.
        """
        data, index = self._data, bisect.bisect_right(self._starts, place) - 1
        if index < 0 or place >= self._ends[index]:
            raise CodeError(_DAMAGED)
        if index not in self._units:
            self._units[index] = self._read_unit(self._starts[index], self._ends[index])
        unit = self._units[index]
        begin = place - 3  # 0 (extended), length, opcode
        if begin < unit.start or data[begin:place] != bytes((0, 9, _SET_ADDRESS)):
            raise CodeError(_DAMAGED)
        rows, most, first_special = Rows(unit.files, self._names), begin + self._left, len(unit.operands) + 1
        address, file, line, inlined_at, function = 0, 1, 1, 0, 0
        end = min(unit.end, most)
        steps = iter(memoryview(data)[begin:end])

        def offset() -> int:
            found = address - base if base and address >= base else address + addend
            if not 0 <= found <= size:
                raise CodeError("its line table has lines outside the function's code")
            return found

        with suppress(StopIteration):  # of a number that is cut off
            for opcode in steps:
                if opcode >= first_special:
                    more, lines = divmod(opcode - first_special, unit.line_range)
                    address += more * unit.step
                    line += unit.line_base + lines
                    rows.add(offset(), file, line, inlined_at, function)
                elif not opcode:
                    length = min(_number(steps), len(data))
                    kind, *operands = islice(steps, length) if length else (0,)
                    if len(operands) != length - 1:
                        break
                    if kind == _END_SEQUENCE:
                        rows.end = offset()
                        if rows.offsets and rows.end < rows.offsets[-1]:
                            raise CodeError(_DAMAGED)
                        behind = end - length_hint(steps)
                        self._left -= behind - begin
                        return rows, behind
                    if kind == _SET_ADDRESS:
                        address = int.from_bytes(operands, "little")
                    elif kind == _INLINED:
                        numbers = iter(operands)
                        inlined_at, function = _number(numbers), _number(numbers)
                elif opcode == _COPY:
                    rows.add(offset(), file, line, inlined_at, function)
                elif opcode == _ADVANCE_PC:
                    address += _number(steps) * unit.step
                elif opcode == _ADVANCE_LINE:
                    line += _number(steps, signed=True)
                elif opcode == _SET_FILE:
                    file = _number(steps)
                elif opcode == _CONSTANT_ADVANCE:
                    address += (255 - first_special) // unit.line_range * unit.step
                elif opcode == _FIXED_ADVANCE:
                    address += int.from_bytes(islice(steps, 2), "little")
                else:
                    for _ in range(_OPERANDS.get(opcode, unit.operands[opcode - 1])):
                        _number(steps)
        raise CodeError(_CUT if unit.end <= most else f"more than {LINE_BYTES:,} bytes of it would have to be run")

    def _read_unit(self, begin: int, end: int) -> _Unit:
        data = self._data
        try:
            version, length, step = struct.unpack_from("<HIB", data, begin + 4)
            if version not in (2, 3, 4):
                raise CodeError(f"its line table has version {version}")
            place = begin + 11 + (version == 4)  # which has the most operations of an instruction: 1
            line_base, line_range, opcode_base = struct.unpack_from("<xbBB", data, place)
            place += 4
        except struct.error:
            raise CodeError(_CUT) from None
        start, names = begin + 10 + length, place + opcode_base - 1
        if not line_range or not opcode_base or not names < start <= end or (version == 4 and data[begin + 11] != 1):
            raise CodeError(_DAMAGED)
        # The paths, with their folders' as they are written: of folders and files alike the list ends with an empty name.
        stop = data.find(b"\0\0", names, start) + 1 if data[names] else names
        if not stop:
            raise CodeError(_CUT)
        folders, files, after = [b"", *data[names:stop].split(b"\0")], list[str](), stop + 1
        while match := _FILE.match(data, after, start):
            name, folder, after = match[1], _number(iter(match[2])), match.end()
            if folder >= len(folders) - 1:  # behind the last there is nothing
                raise CodeError(_DAMAGED)
            path = name if not folder or name.startswith(b"/") else folders[folder] + b"/" + name
            self._budget -= len(path)
            if self._budget < 0:
                raise CodeError("the paths in its line table are longer than the file")
            files.append(path.decode("utf-8", "replace"))
        if after >= start or data[after]:
            raise CodeError(_CUT)
        return _Unit(start, end, step, line_base, line_range, data[place:names], tuple(files))


def _number(steps: Iterator[int], *, signed: bool = False) -> int:
    """The next number, of seven bits per byte.  Raises StopIteration where it is cut off."""
    number = 0
    for shift in range(0, _LONGEST, 7):
        byte = next(steps)
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number - (1 << shift + 7) if signed and byte & 0x40 else number
    raise CodeError(_DAMAGED)


class Place(NamedTuple):
    """A line of source; ``function`` is the inlined function (mangled) that it belongs to.

    It is "" for what isn't inlined, and in cubins linked from several files, whose names NVIDIA's linker mixes up.
    """

    file: str
    line: int
    function: str = ""


class Lines:
    """The source lines of one function, by offset of an instruction.  False if there are none."""

    def __init__(self, pieces: Iterable[Rows] = ()) -> None:
        self._pieces = tuple(sorted((piece for piece in pieces if piece.offsets), key=lambda piece: piece.offsets[0]))
        if any(after.offsets[0] < before.end for before, after in pairwise(self._pieces)):
            raise CodeError(_DAMAGED)
        self._begins = [piece.offsets[0] for piece in self._pieces]
        self._known: dict[tuple[int, int], tuple[Place, ...]] = {}
        self._made: dict[tuple[int, int], Place] = {}

    def __bool__(self) -> bool:
        return bool(self._pieces)

    def at(self, offset: int) -> tuple[Place, ...]:
        """Where an instruction comes from: the innermost line, then the lines it is inlined at; () if the table has none."""
        found = self._row(offset)
        if found is None:
            return ()
        if found not in self._known:
            self._known[found] = tuple(self._places(*found))
        return self._known[found]

    def first(self, offset: int) -> Place | None:
        """The line that Nsight Compute tells its rules, None if the table has none.

        Where several rows begin at one address it is that of the first, mostly a call of what is inlined.
        """
        found = self._row(offset)
        if found is None:
            return None
        piece = self._pieces[found[0]]
        return next(self._places(found[0], bisect.bisect_left(piece.offsets, piece.offsets[found[1]])), None)

    def _row(self, offset: int) -> tuple[int, int] | None:
        """The piece and the row in it that an instruction belongs to: of the rows of one address the last."""
        number = bisect.bisect_right(self._begins, offset) - 1
        if number < 0 or offset >= self._pieces[number].end:
            return None
        return number, bisect.bisect_right(self._pieces[number].offsets, offset) - 1

    def _places(self, number: int, row: int) -> Iterator[Place]:
        """The line of a row, then those it is inlined at, each made once."""
        piece = self._pieces[number]
        while row >= 0 and piece.lines[row]:
            if (number, row) not in self._made:
                function = piece.names.at(piece.functions[row]) if piece.names and piece.callers[row] >= 0 else ""
                self._made[number, row] = Place(piece.files[piece.file_numbers[row] - 1], piece.lines[row], function)
            yield self._made[number, row]
            row = piece.callers[row]
