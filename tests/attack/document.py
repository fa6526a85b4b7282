"""An open report that can be changed at will: blocks of messages, written back as they then are, right or wrong."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ncu_roofline.formats.report.framing import KINDS, file_start, frame, message, open_raw, scan

COUNTERS = ("sources", "graphs", *(kind.counter for kind in KINDS))  # in the order of their records
MESSAGES = {kind.counter: kind.result_message for kind in KINDS}
_RECORDS = {**MESSAGES, "sources": "SourceRecord"}
NUMBERS = ("double", "uint64", "float", "uint32")  # the fields of a value that are numbers


@dataclass
class Part:
    """A block: its header, and its records as (counter of the header, message; bytes where the schema names none)."""

    header: Any
    records: list[tuple[str, Any]]

    def encode(self) -> bytes:
        """The block with a payload size and counters that fit its records."""
        header = type(self.header)()
        header.CopyFrom(self.header)
        for counter in COUNTERS:
            count = sum(counter == found for found, _ in self.records)
            if count or header.HasField(counter):
                setattr(header, counter, count)
        ordered = sorted(self.records, key=lambda record: COUNTERS.index(record[0]))
        payload = b"".join(frame(bytes_of(record)) for _, record in ordered)
        header.payload_size = len(payload)
        return frame(header.SerializeToString()) + payload


def raw_records(data: bytes) -> list[bytes]:
    """The records of a report as they are."""
    with tempfile.TemporaryDirectory(prefix="attack-") as folder:
        path = Path(folder) / "x.ncu-rep"
        path.write_bytes(data)
        raw = open_raw(path)
        found = [bytes(raw.data[start : start + length]) for block in scan(raw) for start, length in block.records]
        raw.close()
        return found


def bytes_of(record: Any) -> bytes:
    """A record as it is written."""
    return record if isinstance(record, bytes) else bytes(record.SerializeToString())


@dataclass
class Document:
    """All blocks of a report."""

    parts: list[Part]

    @classmethod
    def of(cls, data: bytes) -> Document:
        """The report that these bytes are."""
        with tempfile.TemporaryDirectory(prefix="attack-") as folder:
            path = Path(folder) / "x.ncu-rep"
            path.write_bytes(data)
            raw = open_raw(path)
            parts = []
            for block in scan(raw):
                kinds = [name for name, count in zip(COUNTERS, block.counts, strict=True) for _ in range(count)]
                texts = [raw.data[start : start + length] for start, length in block.records]
                parts.append(Part(block.header, [(k, _message(k, text)) for k, text in zip(kinds, texts, strict=True)]))
            raw.close()
        return cls(parts)

    def encode(self) -> bytes:
        """The report as bytes."""
        return file_start() + b"".join(part.encode() for part in self.parts)

    @property
    def results(self) -> list[Any]:
        """All results in the order in which they are numbered."""
        return [record for part in self.parts for counter in MESSAGES for kind, record in part.records if kind == counter]

    @property
    def names(self) -> list[str]:
        """The table of names."""
        return [name.decode("utf-8", "replace") for part in self.parts for name in part.header.strings.strings]

    def name_id(self, name: str) -> int:
        """The number of a name, which is added where the table lacks it."""
        names = self.names
        if name in names:
            return len(names) - 1 - names[::-1].index(name)
        self.parts[-1].header.strings.strings.append(name.encode())
        return len(names)

    def metric(self, result: Any, name: str) -> Any:
        """The metric of a result that counts, None where it has none."""
        names = self.names
        return next((metric for metric in reversed(result.metrics) if names[metric.name_id] == name), None)

    def put(self, result: Any, name: str, value: float | int | str) -> None:
        """Give a metric of a result this value."""
        metric = self.metric(result, name)
        if metric is None:
            metric = result.metrics.add(name_id=self.name_id(name))
        set_value(metric.value, value)

    def remove(self, result: Any, name: str) -> None:
        """Take a metric of a result away."""
        names = self.names
        kept = [metric for metric in result.metrics if names[metric.name_id] != name]
        del result.metrics[:]
        result.metrics.extend(kept)

    def numbers(self, result: Any) -> dict[str, float]:
        """The metrics of a result that are numbers, by name."""
        names = self.names
        found = {names[metric.name_id]: number_of(metric.value) for metric in result.metrics}
        return {name: value for name, value in found.items() if value is not None}


def _message(counter: str, data: bytes) -> Any:
    return message(_RECORDS[counter]).FromString(data) if counter in _RECORDS else data


def number_of(value: Any) -> float | None:
    """The number in a value, as the reader picks it."""
    return next((float(getattr(value, name)) for name in NUMBERS if value.HasField(name)), None)


def set_value(target: Any, value: float | int | str) -> None:
    """Make a value hold just this."""
    target.Clear()
    if isinstance(value, str):
        target.text = value.encode("utf-8", "surrogateescape")
    elif isinstance(value, int) and 0 <= value < 1 << 64:
        target.uint64 = value
    else:
        target.double = float(value)
