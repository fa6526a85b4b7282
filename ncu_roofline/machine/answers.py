"""Run a program that only answers, for so long and as far as its answer is of a sensible size."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from typing import IO

_CHUNK = 1 << 16


class TooLongError(Exception):
    """A program wrote more than an answer can have."""


class _Heard(threading.Thread):
    """Takes what a program writes; more than ``most`` bytes end it.  The pipe is closed then, for its children too."""

    def __init__(self, stream: IO[bytes], most: int, process: subprocess.Popen[bytes]) -> None:
        super().__init__(daemon=True)
        self._stream, self._most, self._process = stream, most, process
        self.data = bytearray()

    @property
    def flooded(self) -> bool:
        return len(self.data) > self._most

    def run(self) -> None:
        with self._stream:
            while not self.flooded and (chunk := self._stream.read(_CHUNK)):
                self.data += chunk
        if self.flooded:
            self._process.kill()


def answer(command: Sequence[str], environ: Mapping[str, str], seconds: float, most: int) -> tuple[int, bytes, bytes]:
    """Exit code, output and errors.

    Raises OSError if it can't be run, TooLongError for more than ``most`` bytes of either, subprocess.TimeoutExpired.
    """
    end = time.monotonic() + seconds
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, bufsize=0, env=dict(environ))
    assert process.stdout is not None
    assert process.stderr is not None
    heard = [_Heard(stream, most, process) for stream in (process.stdout, process.stderr)]
    try:
        for one in heard:
            one.start()
        for one in heard:
            one.join(max(0.0, end - time.monotonic()))
        process.wait(max(0.0, end - time.monotonic()))
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    if any(one.flooded for one in heard):
        raise TooLongError
    if any(one.is_alive() for one in heard):  # what it started keeps on
        raise subprocess.TimeoutExpired(command, seconds)
    return process.returncode, bytes(heard[0].data), bytes(heard[1].data)
