"""The metrics of one kernel and the code of its module, decoded when asked for; and of all kernels at once, by column.

The kernels of a file mostly carry the same metrics in the same order, so the way from name to position is worked out once per
order that occurs (`Layout`).  Where a name occurs twice in one result, the last one counts.

A report has a source record per loaded module; results refer to it by a number that counts within their process.  The record
can come behind its results, and a module has several where functions were met later: what the first ones lack, others add.
They are looked at when the first kernel is asked for its code.
"""

from __future__ import annotations

import functools
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any, NamedTuple

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.texts import clean, shorten
from ncu_roofline.chips.sass import CUBIN_BYTES, IMPORTED_BYTES
from ncu_roofline.formats.report.framing import Kind, RawFile, stated
from ncu_roofline.formats.report.session import Process
from ncu_roofline.formats.wire import Field, NoFieldError, split

_ID, _CUBIN, _FILES, _FUNCTIONS, _ENTRY = 1, 4, 8, 9, 1  # numbers of fields in the schema
_MOST_ENTRIES = 250_000  # functions or files that a record of a module lists; those seen have up to 43
Value = float | int | str
Instances = list[tuple[Value | None, Value | None]]
ByAddress = tuple["array[int]", "array[float]"]

_SHOWN, _VALUE_LENGTH = 12, 60  # values at a prompt, characters of each
_FIELDS = ("double", "uint64", "float", "uint32", "text")  # of a Value, the most frequent first


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


class Modules:
    """The source records of an open report, looked at when first asked for."""

    def __init__(self, raw: RawFile, records: Iterable[tuple[Process, Sequence[tuple[int, int]]]]) -> None:
        """``records`` has (offset, length) of those of each block, and its process."""
        self._raw = raw
        self._records = records
        self._last: tuple[Sequence[tuple[int, int]], Code] | None = None  # kernels of one module mostly follow each other

    def find(self, process: Process, number: int) -> Code | None:
        """The module ``number`` of ``process``, None if the report does not have it.  Raises RooflineError for damaged bytes.

        Numbers count within a process; a record in a block that names none stands in for one that is not there.
        """
        places = self._places.get((process, number)) or self._places.get((Process(), number))
        if places is None:
            return None
        if self._last is None or self._last[0] is not places:
            self._last = (places, self._read(places))
        return self._last[1]

    @functools.cached_property
    def _places(self) -> dict[tuple[Process, int], list[tuple[int, int]]]:
        """(offset, length) of the records of each module."""
        found: dict[tuple[Process, int], list[tuple[int, int]]] = {}
        for process, records in self._records:
            for offset, length in records:
                # Its cubin, of megabytes, and its sources are not looked at.
                ids = [self._raw[one.start : one.end] for _, one in self._fields(offset, length) if one.number == _ID]
                record = self._raw.decode("SourceId", b"".join(ids), offset)
                if record.HasField("id"):
                    found.setdefault((process, record.id), []).append((offset, length))
        return found

    def _fields(self, offset: int, length: int, tables: Collection[int] = ()) -> Iterator[tuple[int, Field]]:
        """The fields of a source record with 0, and with the number of their table the entries of these tables in it."""
        count = 0
        try:
            for field in split(self._raw, offset, offset + length):
                entries = split(self._raw, field.content, field.end) if field.number in tables else ()
                for table, one in chain([(0, field)], zip(repeat(field.number), entries)):
                    count += 1
                    if count > _MOST_ENTRIES:
                        reason = f"a module of more than {_MOST_ENTRIES:,} entries, which no compiler makes"
                        raise self._raw.damaged(offset, reason)
                    yield table, one
        except NoFieldError as error:
            raise self._raw.damaged(offset, f"SourceRecord does not parse ({error})") from error

    def _read(self, places: Iterable[tuple[int, int]]) -> Code:
        cubin = b""
        files: dict[str, str] = {}
        functions: dict[CodeFunction, None] = {}
        unread, room = 0, IMPORTED_BYTES
        for offset, length in places:
            own = b""
            for table, field in self._fields(offset, length, (_FILES, _FUNCTIONS)):
                size = field.end - field.content
                if (table, field.number) == (0, _CUBIN):  # one byte more than is read tells that it is too long
                    own = self._raw[field.content : field.content + min(size, CUBIN_BYTES + 1)]
                elif (table, field.number) == (_FUNCTIONS, _ENTRY):
                    said = stated(self._raw.parse("CodeFunction", field.content, size))
                    if said.keys() >= {"name", "address"}:
                        functions[CodeFunction(**said)] = None
                elif (table, field.number) == (_FILES, _ENTRY) and size > room:
                    unread += 1
                elif (table, field.number) == (_FILES, _ENTRY):
                    room -= size
                    said = stated(self._raw.parse("ImportedFile", field.content, size))
                    if "text" in said:  # ncu lists files, too, that it did not find
                        files.setdefault(said.get("name", ""), said["text"])
            cubin = cubin or own
        return Code(cubin, tuple(ImportedFile(*item) for item in files.items()), tuple(functions), unread)


class Place(NamedTuple):
    """Where a result is: its kind, and the bytes of its record in the file."""

    kind: Kind
    offset: int
    length: int
    process: Process


@dataclass(frozen=True, eq=False)
class Layout:
    """Where in a result the last metric of each name is."""

    index: dict[str, int]

    @functools.cached_property
    def in_order(self) -> tuple[str, ...]:
        """The names in alphabetical order."""
        return tuple(sorted(self.index))


def plain_value(value: Any) -> Value | None:
    """The scalar in a Value message, or None if there is none of a known type."""
    for kind in _FIELDS:
        if value.HasField(kind):
            found: Value = value.text.decode("utf-8", "replace") if kind == "text" else getattr(value, kind)
            return found
    return None


def decode_column(raw: RawFile, items: Sequence[bytes], offset: int) -> list[Value | None]:
    """The scalars of serialized metrics of one name, in order; None for those without.  Raises RooflineError."""
    with suppress(RooflineError):  # the slow way says where
        if column := _uniform(raw.decode("Column", b"".join(items), offset).value, len(items)):
            return column
    return [plain_value(raw.decode("MetricScalar", item, offset).value) for item in items]


def _uniform(values: Any, count: int) -> list[Any] | None:
    """What is in merged Value messages if each of so many has a value, all of one type; else None."""
    for kind in _FIELDS:
        if column := getattr(values, kind):
            if len(column) != count:
                break
            return [data.decode("utf-8", "replace") for data in column] if kind == "text" else list(column[:])
    return None


class Metrics(Mapping[str, Value]):
    """Metrics by full name, such as ``dram__bytes.sum``; doubles are float, counters int, text str.

    A metric without a scalar (instances only) is not in the mapping; `instances` has it.  Damaged bytes raise RooflineError.
    """

    def __init__(self, raw: RawFile, layout: Layout, serialized: Sequence[bytes], offset: int) -> None:
        """``serialized``: the metrics of the result at ``offset`` in file order; ``layout``: where to find which."""
        self._raw, self._offset = raw, offset
        self.layout, self.serialized = layout, serialized

    def _parsed(self, view: str, name: str) -> Any:
        """The last metric of a name, as a message.  Raises KeyError."""
        return self._raw.decode(view, self.serialized[self.layout.index[name]], self._offset)

    def __getitem__(self, name: str) -> Value:
        value = plain_value(self._parsed("MetricScalar", name).value)
        if value is None:
            raise KeyError(name)
        return value

    def __iter__(self) -> Iterator[str]:
        return (name for name in self.layout.index if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        names = list(self.layout.index)
        lines = [f"<Metrics: {len(names)} names>"]
        for name in names[:_SHOWN]:
            try:
                said = shorten(clean(str(self[name])), _VALUE_LENGTH)
            except KeyError:
                said = "instances only"
            except (RooflineError, ValueError):  # damaged, or of a closed report: at a prompt nothing may raise
                said = "can't be read"
            lines.append(f"  {clean(name)}: {said}")
        return "\n".join([*lines, *([f"  ... and {len(names) - _SHOWN} more"] if len(names) > _SHOWN else [])])

    def names(self) -> tuple[str, ...]:
        """All names, also of metrics that have instances only."""
        return tuple(self.layout.index)

    def sorted_names(self) -> tuple[str, ...]:
        """`names` in alphabetical order; sorted once for all results that have the same."""
        return self.layout.in_order

    def has_name(self, name: str) -> bool:
        """Whether it is one of `names`; nothing is decoded for that."""
        return name in self.layout.index

    def instances(self, name: str) -> Instances:
        """(correlation id or None, value) of each instance, in file order; empty if there are none.

        The correlation id is an int (address, unit) or a str (opcode), None where the report has none.  Raises KeyError for a
        name that is not in the report.
        """
        return list(zip(*self._sides(name), strict=True))

    def _sides(self, name: str) -> tuple[list[Any], list[Any]]:
        """Correlation ids and values of all instances: at once where either are of one type, as in every release."""
        if not (count := self.instance_count(name)):
            return [], []
        merged = self._parsed("MetricInstances", name).instances
        ids, values = _uniform(merged.correlation, count), _uniform(merged.value, count)
        if ids and values:
            return ids, values
        found = self._parsed("MetricResult", name).instances
        return [plain_value(one.correlation) for one in found], [plain_value(one.value) for one in found]

    def by_address(self, name: str) -> ByAddress:
        """Addresses (array of type Q) and values (type d) of the instances whose correlation ids are integers, in file order.

        Those without such an id, or without a number as value, are left out; both arrays are empty if there are none.  Integers
        beyond 2^53 are rounded.  Raises KeyError for a name that is not in the report.
        """
        addresses, values = self._sides(name)
        try:
            return array("Q", addresses), array("d", values)
        except TypeError:  # not all are numbers
            pairs = zip(addresses, values, strict=True)
            kept = [pair for pair in pairs if isinstance(pair[0], int) and isinstance(pair[1], (int, float))]
            return array("Q", [address for address, _ in kept]), array("d", [value for _, value in kept])

    def instance_count(self, name: str) -> int:
        """How many instances there are, with or without address and value.  Raises KeyError as `instances`."""
        return len(self._parsed("InstanceBytes", name).instances)
