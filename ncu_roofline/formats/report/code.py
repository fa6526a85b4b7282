"""The code of kernels as a report brings it: cubin, functions with their addresses, imported source files.

A report has a source record per loaded module; results refer to it by a number that counts within their process.  The record
can come behind its results, and a module has several where functions were met later: what the first ones lack, others add.
Opening a report notes only which blocks have such records; they are looked at when the first kernel is asked for its code.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from ncu_roofline.chips.sass import CUBIN_BYTES, IMPORTED_BYTES
from ncu_roofline.formats.report.framing import RawFile, block_at, text
from ncu_roofline.formats.report.session import Process
from ncu_roofline.formats.wire import Field, NoFieldError, split

_ID, _CUBIN, _FILES, _FUNCTIONS, _ENTRY = 1, 4, 8, 9, 1  # numbers of fields in the schema
_MOST_ENTRIES = 250_000  # functions or files that a record of a module lists; those seen have up to 43


@dataclass(frozen=True)
class ImportedFile:
    """A source file in a report (``ncu --import-source``): its path where it was compiled, and its content."""

    name: str
    text: str


@dataclass(frozen=True)
class CodeFunction:
    """A function of a module: mangled name, address on the GPU in bytes, index in the symbol table of the cubin if given."""

    name: str
    address: int
    symbol: int | None = None


@dataclass(frozen=True)
class Code:
    """What a report says about the module of a kernel.

    ``cubin`` is an ELF file, b"" if the report has none; ``functions`` (from 2022.4 on) has what ncu met of the module, not
    only the kernel; ``files`` is empty unless sources were imported.  All of it is as hostile as any text of a report.
    """

    cubin: bytes = b""
    files: tuple[ImportedFile, ...] = ()
    functions: tuple[CodeFunction, ...] = ()
    unread: int = 0


_Places = dict[tuple[Process, int], list[tuple[int, int]]]  # (offset, length) of the records of a module


class CodeIndex:
    """The source records of an open report, found when first asked for."""

    def __init__(self, raw: RawFile, blocks: array[int], processes: dict[bytes, Process]) -> None:
        """``blocks`` has the offsets of the blocks with source records, ``processes`` all that blocks name, by their bytes."""
        self._raw = raw
        self._blocks = blocks
        self._processes = processes
        self._places: _Places | None = None
        self._last: tuple[Sequence[tuple[int, int]], Code] | None = None  # kernels of one module mostly follow each other

    def find(self, process: Process, number: int) -> Code | None:
        """The module ``number`` of ``process``, None if the report does not have it.  Raises RooflineError for damaged bytes.

        Numbers count within a process; a record in a block that names none stands in for one that is not there.
        """
        if self._places is None:
            self._places = self._look()
        places = self._places.get((process, number)) or self._places.get((Process(), number))
        if places is None:
            return None
        if self._last is None or self._last[0] is not places:
            self._last = (places, self._read(places))
        return self._last[1]

    def _look(self) -> _Places:
        places: _Places = {}
        for start in self._blocks:
            block = block_at(self._raw, start)
            process = self._processes[block.header.process]
            for offset, length in block.records[: block.counts[0]]:
                # Its cubin, of megabytes, and its sources are not looked at.
                fields = (one for one in self._fields(offset, offset + length) if one.number == _ID)
                record = self._raw.decode("SourceId", b"".join(self._bytes(one.start, one.end) for one in fields), offset)
                if record.HasField("id"):
                    places.setdefault((process, record.id), []).append((offset, length))
        return places

    def _bytes(self, start: int, end: int) -> bytes:
        return self._raw.data[start:end]

    def _fields(self, start: int, end: int) -> Iterator[Field]:
        try:
            for count, field in enumerate(split(self._raw.data, start, end), 1):
                self._check(count, start)
                yield field
        except NoFieldError as error:
            raise self._raw.damaged(error.position, "SourceRecord does not parse") from error

    def _read(self, places: Iterable[tuple[int, int]]) -> Code:
        cubin = b""
        files: dict[str, str] = {}
        functions: dict[CodeFunction, None] = {}
        unread, room = 0, IMPORTED_BYTES
        for offset, length in places:
            fields = list(self._fields(offset, offset + length))
            cubins = [one for one in fields if one.number == _CUBIN]
            if cubins and not cubin:  # one byte more than is read tells that it is too long
                cubin = self._bytes(cubins[-1].content, min(cubins[-1].end, cubins[-1].content + CUBIN_BYTES + 1))
            for entry in self._entries(fields, _FILES, offset):
                size = entry.end - entry.content
                if size > room:
                    unread += 1
                    continue
                room -= size
                file = self._raw.parse("ImportedFile", entry.content, size)
                if file.HasField("text"):  # ncu lists files, too, that it did not find
                    files.setdefault(text(file.name), text(file.text))
            for entry in self._entries(fields, _FUNCTIONS, offset):
                function = self._raw.parse("CodeFunction", entry.content, entry.end - entry.content)
                if function.HasField("name") and function.HasField("address"):
                    symbol = function.symbol if function.HasField("symbol") else None
                    functions[CodeFunction(text(function.name), function.address, symbol)] = None
        return Code(cubin, tuple(ImportedFile(*item) for item in files.items()), tuple(functions), unread)

    def _entries(self, fields: Iterable[Field], number: int, offset: int) -> Iterator[Field]:
        """The entries of the tables that are in the fields of this number."""
        tables = (self._fields(one.content, one.end) for one in fields if one.number == number)
        entries = (one for one in chain.from_iterable(tables) if one.number == _ENTRY)
        for count, entry in enumerate(entries, 1):
            self._check(count, offset)
            yield entry

    def _check(self, count: int, offset: int) -> None:
        if count > _MOST_ENTRIES:
            raise self._raw.damaged(offset, f"a module of more than {_MOST_ENTRIES:,} entries, which no compiler makes")
