"""What was measured so far, on disk: an interrupted run goes on where it stopped.

One JSON line per finished run, after a head line that says what they belong to.  A torn last line is dropped.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any

from ncu_roofline.bench.measuring import Record
from ncu_roofline.errors import RooflineError

_VERSION = 1
_FIELDS = {field.name for field in fields(Record)}

RunKey = tuple[str, str, str, int]


class Journal:
    """The finished runs of one output file; ``path`` None keeps them in memory only."""

    def __init__(self, path: Path | None, key: Mapping[str, Any]) -> None:
        self.path = path
        self._head = {"journal": _VERSION, "key": dict(key)}
        self._records: dict[RunKey, Record] = {}
        if path is not None:
            self._records = _read(path, self._head)
            self._start()

    def __len__(self) -> int:
        return len(self._records)

    def find(self, ceiling: str, variant: str, role: str, session: int) -> Record | None:
        """The record of a run, None if it was not finished."""
        return self._records.get((ceiling, variant, role, session))

    def records(self, ceiling: str) -> list[Record]:
        """All records of a ceiling, in the order they were made."""
        return [record for record in self._records.values() if record.ceiling == ceiling]

    def add(self, record: Record) -> None:
        """Keep a finished run, also on disk.  Raises RooflineError."""
        self._records[(record.ceiling, record.variant, record.role, record.session)] = record
        if self.path is not None:
            self._write("a", [record.as_json()])

    def remove(self) -> None:
        """Everything is in the output file now."""
        if self.path is not None:
            with suppress(OSError):
                self.path.unlink()

    def _start(self) -> None:
        self._write("w", [self._head, *(record.as_json() for record in self._records.values())])

    def _write(self, mode: str, lines: list[dict[str, Any]]) -> None:
        assert self.path is not None
        try:
            with self.path.open(mode, encoding="utf-8") as stream:
                stream.writelines(json.dumps(line) + "\n" for line in lines)
                stream.flush()
                os.fsync(stream.fileno())
        except OSError as error:
            next_step = "Choose a place that you may write to, with space on its disk, with --output."
            raise RooflineError("Cannot write", self.path, error.strerror or str(error), next_step) from error


def _whole(lines: Iterable[str]) -> Iterator[Any]:
    """The lines up to the first that an interruption tore."""
    with suppress(ValueError):
        for line in lines:
            yield json.loads(line)


def _read(path: Path, head: Mapping[str, Any]) -> dict[RunKey, Record]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return {}
    parsed = list(_whole(lines))
    if not parsed or parsed[0] != json.loads(json.dumps(head)):
        return {}
    found = {}
    for row in parsed[1:]:
        if isinstance(row, dict) and row.keys() == _FIELDS:
            record = Record(**row)
            found[(record.ceiling, record.variant, record.role, record.session)] = record
    return found
