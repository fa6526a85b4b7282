"""The code of kernels as a report brings it: cubin, functions with their addresses, imported source files.

A report has a source record per loaded module; results refer to it by a number that counts within their process.  The record
can come behind its results, and a module has several where functions were met later: what the first ones lack, others add.
Opening a report notes only which blocks have such records; they are looked at when the first kernel is asked for its code.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ncu_roofline.report.framing import RawFile, block_at
from ncu_roofline.report.schema import text
from ncu_roofline.report.session import Process

_NUMBER_TAG, _CUBIN_TAG = b"\x08", b"\x22"  # of fields 1, a varint, and 4, bytes
_HEAD_BYTES = 2 * 11  # tags and longest varints
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
                number = self._number(offset, length)
                if number is not None:
                    places.setdefault((process, number), []).append((offset, length))
        return places

    def _number(self, offset: int, length: int) -> int | None:
        record = self._raw.decode("SourceId", self._without_cubin(offset, length), offset)
        return int(record.id) if record.HasField("id") else None

    def _without_cubin(self, offset: int, length: int) -> bytes:
        """A record without the megabytes of code that every release writes behind the number; all of it if it is otherwise."""
        data, end = self._raw.data, offset + length
        head = data[offset : min(offset + _HEAD_BYTES, end)]
        number = _varint_end(head, 1) if head.startswith(_NUMBER_TAG) else 0
        size = _varint_end(head, number + 1) if head.startswith(_CUBIN_TAG, number) else 0
        behind = offset + size + sum((byte & 0x7F) << 7 * index for index, byte in enumerate(head[number + 1 : size]))
        return head[:number] + data[behind:end] if 0 < number < size and behind <= end else data[offset:end]

    def _read(self, places: Iterable[tuple[int, int]]) -> Code:
        cubin = b""
        files: dict[str, str] = {}
        functions: dict[CodeFunction, None] = {}
        for offset, length in places:
            record = self._raw.parse("SourceRecord", offset, length)
            cubin = cubin or record.cubin
            for file in self._entries("ImportedFile", record.files.files, offset):
                if file.HasField("text"):  # ncu lists files, too, that it did not find
                    files.setdefault(text(file.name), text(file.text))
            for function in self._entries("CodeFunction", record.functions.functions, offset):
                if function.HasField("name") and function.HasField("address"):
                    symbol = function.symbol if function.HasField("symbol") else None
                    functions[CodeFunction(text(function.name), function.address, symbol)] = None
        return Code(cubin, tuple(ImportedFile(*item) for item in files.items()), tuple(functions))

    def _entries(self, name: str, items: Sequence[bytes], offset: int) -> Iterator[Any]:
        if len(items) > _MOST_ENTRIES:
            raise self._raw.damaged(offset, f"a module of {len(items):,} entries {name}, which no compiler makes")
        return (self._raw.decode(name, item, offset) for item in items)


def _varint_end(data: bytes, start: int) -> int:
    """Behind the varint that begins at ``start``; 0 if it has no end."""
    return next((index + 1 for index in range(start, len(data)) if data[index] < 0x80), 0)
