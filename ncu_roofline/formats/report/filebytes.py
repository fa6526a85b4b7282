"""The bytes of an open file, read where they are asked for.

Not mapped: where a mapped file is cut short by somebody else, the system ends the process that looks at what is gone.
"""

from __future__ import annotations

import os
import threading
from typing import BinaryIO

from ncu_roofline.formats.report import diagnose

_WINDOW = 1 << 20  # bytes read at a time: most records lie side by side, and a read costs more than a slice


class FileBytes:
    """Slices of ``file``, called ``path`` in errors, which is closed by `close` or when nobody refers to them any more.

    Slicing raises RooflineError where the file is not as it was when this was made, or can't be read, and ValueError once it
    is closed.
    """

    def __init__(self, path: str | os.PathLike[str], file: BinaryIO) -> None:
        self._path, self._file = path, file
        self._state = _state(file)
        self._size = self._state[0]
        self._window = (0, b"")
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, part: slice) -> bytes:
        start, stop, _ = part.indices(self._size)
        stop = max(start, stop)
        first, window = self._window
        if start < first or stop > first + len(window):
            first, window = start, self._read(start, max(stop - start, min(_WINDOW, self._size - start)))
            self._window = (first, window)
        return window[start - first : stop - first]

    def _read(self, start: int, size: int) -> bytes:
        if self._file.closed:
            raise ValueError(f"the report {self._path} is closed: read it before, or open it again")
        try:
            with self._lock:
                self._file.seek(start)
                data = self._file.read(size)
                state = _state(self._file)
        except OSError as error:
            raise diagnose.cannot_open(self._path, error) from error
        if len(data) < size or state != self._state:
            raise diagnose.changed(self._path)
        return data

    def close(self) -> None:
        """Give the file back."""
        self._window = (0, b"")
        self._file.close()

    __del__ = close


def _state(file: BinaryIO) -> tuple[int, int]:
    status = os.fstat(file.fileno())
    return status.st_size, status.st_mtime_ns
