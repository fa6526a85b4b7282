"""The metrics of one kernel and the code of its module, decoded when asked for; and of all kernels at once, by column.

The kernels of a file mostly carry the same metrics in the same order, so the way from name to position is worked out once per
order that occurs (`Layout`).  Where a name occurs twice in one result, the last one counts.

A report has a source record per loaded module; results refer to it by a number that counts within their process.  The record
can come behind its results, and a module has several where functions were met later: what the first ones lack, others add.
Opening a report notes only which blocks have such records; they are looked at when the first kernel is asked for its code.
"""

from __future__ import annotations

import functools
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.texts import clean, shorten
from ncu_roofline.chips.sass import CUBIN_BYTES, IMPORTED_BYTES
from ncu_roofline.formats.report.framing import Kind, RawFile, block_at, damage_errors, message, text
from ncu_roofline.formats.report.session import Process
from ncu_roofline.formats.wire import Field, NoFieldError, split

_ID, _CUBIN, _FILES, _FUNCTIONS, _ENTRY = 1, 4, 8, 9, 1  # numbers of fields in the schema
_MOST_ENTRIES = 250_000  # functions or files that a record of a module lists; those seen have up to 43
Value = float | int | str
Instances = list[tuple[Value | None, Value | None]]
ByAddress = tuple["array[int]", "array[float]"]

_LAYOUTS_KEPT = 64  # one or two in nearly all files; bounds the memory where every kernel has its own
_SHOWN, _VALUE_LENGTH = 12, 60  # values at a prompt, characters of each
_NUMERIC_FIELDS = ("double", "uint64", "float", "uint32")


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


class CodeIndex:
    """The source records of an open report, found when first asked for."""

    def __init__(self, raw: RawFile, blocks: array[int], processes: dict[bytes, Process]) -> None:
        """``blocks`` has the offsets of the blocks with source records, ``processes`` all that blocks name, by their bytes."""
        self._raw = raw
        self._blocks = blocks
        self._processes = processes
        self._places: dict[tuple[Process, int], list[tuple[int, int]]] | None = None  # (offset, length) of a module's records
        self._last: tuple[Sequence[tuple[int, int]], Code] | None = None  # kernels of one module mostly follow each other

    def find(self, process: Process, number: int) -> Code | None:
        """The module ``number`` of ``process``, None if the report does not have it.  Raises RooflineError for damaged bytes.

        Numbers count within a process; a record in a block that names none stands in for one that is not there.
        """
        if self._places is None:
            self._places = {}
            for start in self._blocks:
                block = block_at(self._raw, start)
                owner = self._processes[block.header.process]
                for offset, length in block.records[: block.counts[0]]:
                    # Its cubin, of megabytes, and its sources are not looked at.
                    ids = [self._raw.data[one.start : one.end] for one in self._fields(offset, offset + length, _ID)]
                    record = self._raw.decode("SourceId", b"".join(ids), offset)
                    if record.HasField("id"):
                        self._places.setdefault((owner, record.id), []).append((offset, length))
        places = self._places.get((process, number)) or self._places.get((Process(), number))
        if places is None:
            return None
        if self._last is None or self._last[0] is not places:
            self._last = (places, self._read(places))
        return self._last[1]

    def _fields(self, start: int, end: int, number: int) -> Iterator[Field]:
        try:
            for count, field in enumerate(split(self._raw.data, start, end), 1):
                self._check(count, start)
                if field.number == number:
                    yield field
        except NoFieldError as error:
            raise self._raw.damaged(error.position, "SourceRecord does not parse") from error

    def _read(self, places: Iterable[tuple[int, int]]) -> Code:
        cubin = b""
        files: dict[str, str] = {}
        functions: dict[CodeFunction, None] = {}
        unread, room = 0, IMPORTED_BYTES
        for offset, length in places:
            end = offset + length
            cubins = list(self._fields(offset, end, _CUBIN))
            if cubins and not cubin:  # one byte more than is read tells that it is too long
                cubin = self._raw.data[cubins[-1].content : min(cubins[-1].end, cubins[-1].content + CUBIN_BYTES + 1)]
            for entry in self._entries(offset, end, _FILES):
                size = entry.end - entry.content
                if size > room:
                    unread += 1
                    continue
                room -= size
                file = self._raw.parse("ImportedFile", entry.content, size)
                if file.HasField("text"):  # ncu lists files, too, that it did not find
                    files.setdefault(text(file.name), text(file.text))
            for entry in self._entries(offset, end, _FUNCTIONS):
                function = self._raw.parse("CodeFunction", entry.content, entry.end - entry.content)
                if function.HasField("name") and function.HasField("address"):
                    symbol = function.symbol if function.HasField("symbol") else None
                    functions[CodeFunction(text(function.name), function.address, symbol)] = None
        return Code(cubin, tuple(ImportedFile(*item) for item in files.items()), tuple(functions), unread)

    def _entries(self, start: int, end: int, number: int) -> Iterator[Field]:
        """The entries of the tables that are in the fields of this number."""
        tables = (self._fields(one.content, one.end, _ENTRY) for one in self._fields(start, end, number))
        for count, entry in enumerate(chain.from_iterable(tables), 1):
            self._check(count, start)
            yield entry

    def _check(self, count: int, offset: int) -> None:
        if count > _MOST_ENTRIES:
            raise self._raw.damaged(offset, f"a module of more than {_MOST_ENTRIES:,} entries, which no compiler makes")


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


class MetricRecord(NamedTuple):
    """The metrics of one result: serialized ones in file order and where to find which."""

    layout: Layout
    items: Sequence[bytes]
    offset: int

    def item(self, name: str) -> bytes:
        """The last metric of a name, serialized.  Raises KeyError."""
        return self.items[self.layout.index[name]]


class Source:
    """What all results of one report need to be decoded; layouts by their list of name ids, each worked out once."""

    def __init__(self, raw: RawFile, strings: Sequence[str], code: CodeIndex) -> None:
        self.raw, self.code = raw, code
        self._strings = strings
        self._known: dict[tuple[int, ...], Layout] = {}

    def record(self, place: Place) -> MetricRecord:
        """The metrics of the result at ``place``.  Raises RooflineError for damaged bytes."""
        raw, kind, offset = self.raw, place.kind, place.offset
        data = raw.data[offset : offset + place.length]
        # A slice is made at twice the speed of iteration.
        ids = tuple(raw.decode(kind.ids_message, data, offset).metrics.ids[:])
        items = raw.decode(kind.metrics_message, data, offset).metrics
        if len(ids) != len(items):  # some metric has no name or two, which only damage brings about
            named = [raw.decode("MetricScalar", item, offset) for item in items]
            if not all(metric.HasField("name_id") for metric in named):
                raise raw.damaged(offset, "a metric has no name")
            ids = tuple([metric.name_id for metric in named])
        layout = self._known.get(ids)
        if layout is None:
            beyond = next((name_id for name_id in ids if name_id >= len(self._strings)), None)
            if beyond is not None:
                raise raw.damaged(offset, f"a metric has name {beyond} of a table of {len(self._strings)} names")
            if len(self._known) >= _LAYOUTS_KEPT:
                self._known.clear()
            layout = self._known[ids] = Layout({self._strings[name_id]: position for position, name_id in enumerate(ids)})
        return MetricRecord(layout, items, offset)


def plain_value(value: Any) -> Value | None:
    """The scalar in a Value message, or None if there is none of a known type."""
    for name in _NUMERIC_FIELDS:
        if value.HasField(name):
            number: float | int = getattr(value, name)
            return number
    return value.text.decode("utf-8", "replace") if value.HasField("text") else None


def decode_column(raw: RawFile, items: Sequence[bytes], offset: int) -> list[Value | None]:
    """The scalars of serialized metrics of one name, in order; None for those without.  Raises RooflineError."""
    try:
        values = message("Column").FromString(b"".join(items)).value
        for name in _NUMERIC_FIELDS:
            column = getattr(values, name)
            if len(column) == len(items):
                return list(column)
        if len(values.text) == len(items):
            return [data.decode("utf-8", "replace") for data in values.text]
    except damage_errors():
        pass  # the slow way says where
    return [plain_value(raw.decode("MetricScalar", item, offset).value) for item in items]


def decode_counts(raw: RawFile, record: MetricRecord, name: str) -> Instances:
    """`Metrics.instances` of a metric whose instances are numbers by name: all at once where they are of one type."""
    names, numbers = _columns(raw, record, name, ("text",))
    if names is None or numbers is None:
        return Metrics(raw, record).instances(name)
    return [(data.decode("utf-8", "replace"), number) for data, number in zip(names, numbers, strict=True)]


def _columns(raw: RawFile, record: MetricRecord, name: str, kinds: Sequence[str]) -> tuple[list[Any] | None, list[Any] | None]:
    """Correlation ids, of one of these types, and numbers of all instances; None where not all have one of a single type."""
    item = record.item(name)
    count = len(raw.decode("InstanceBytes", item, record.offset).instances)
    merged = raw.decode("MetricInstances", item, record.offset).instances
    found: list[list[Any] | None] = []
    for values, allowed in ((merged.correlation, kinds), (merged.value, _NUMERIC_FIELDS)):
        columns = {kind: column for kind in ("text", *_NUMERIC_FIELDS) if len(column := getattr(values, kind))}
        whole = [list(column[:]) for kind, column in columns.items() if kind in allowed and len(column) == count]
        found.append(whole[0] if len(columns) == 1 and whole else None)
    return found[0], found[1]


class Metrics(Mapping[str, Value]):
    """Metrics by full name, such as ``dram__bytes.sum``; doubles are float, counters int, text str.

    A metric without a scalar (instances only) is not in the mapping; `instances` has it.  Damaged bytes raise RooflineError.
    """

    def __init__(self, raw: RawFile, record: MetricRecord) -> None:
        self._raw = raw
        self._record = record

    def __getitem__(self, name: str) -> Value:
        value = plain_value(self._raw.decode("MetricScalar", self._record.item(name), self._record.offset).value)
        if value is None:
            raise KeyError(name)
        return value

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._record.layout.index if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        names = list(self._record.layout.index)
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
        return tuple(self._record.layout.index)

    def sorted_names(self) -> tuple[str, ...]:
        """`names` in alphabetical order; sorted once for all results that have the same."""
        return self._record.layout.in_order

    def has_name(self, name: str) -> bool:
        """Whether it is one of `names`; nothing is decoded for that."""
        return name in self._record.layout.index

    def instances(self, name: str) -> Instances:
        """(correlation id or None, value) of each instance, in file order; empty if there are none.

        The correlation id is an int (address, unit) or a str (opcode), None where the report has none.  Raises KeyError for a
        name that is not in the report.
        """
        metric = self._raw.decode("MetricResult", self._record.item(name), self._record.offset)
        return [(plain_value(instance.correlation), plain_value(instance.value)) for instance in metric.instances]

    def by_address(self, name: str) -> ByAddress:
        """Addresses (array of type Q) and values (type d) of the instances whose correlation ids are integers, in file order.

        Those without such an id, or without a number as value, are left out; both arrays are empty if there are none.  Integers
        beyond 2^53 are rounded.  Raises KeyError for a name that is not in the report.
        """
        addresses, values = _columns(self._raw, self._record, name, ("uint64", "uint32"))
        if addresses is not None and values is not None:  # as in every release
            return array("Q", addresses), array("d", values)
        result = array("Q"), array("d")
        for address, value in self.instances(name):
            if isinstance(address, int) and isinstance(value, (int, float)):
                result[0].append(address)
                result[1].append(value)
        return result

    def instance_count(self, name: str) -> int:
        """How many instances there are, with or without address and value.  Raises KeyError as `instances`."""
        return len(self._raw.decode("InstanceBytes", self._record.item(name), self._record.offset).instances)
