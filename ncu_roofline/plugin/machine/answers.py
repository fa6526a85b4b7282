"""Run a program that only answers, for so long and as far as its answer is of a sensible size."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
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
            _kill(self._process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a program and what it started, which is in its group; nothing where it was waited for: others may have its number."""
    if process.returncode is not None:
        return
    if os.name == "posix":
        with suppress(ProcessLookupError, PermissionError):  # of one that has ended there may be no group
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()


def answer(command: Sequence[str], environ: Mapping[str, str], seconds: float, most: int) -> tuple[int, bytes, bytes]:
    """Exit code, output and errors.  When it returns or raises nothing of what the program started in its group is left.

    Raises OSError if it can't be run, TooLongError for more than ``most`` bytes of either, subprocess.TimeoutExpired.
    """
    end = time.monotonic() + seconds
    pipe, environ = subprocess.PIPE, dict(environ)
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, bufsize=0, env=environ, start_new_session=True
    )
    assert process.stdout is not None
    assert process.stderr is not None
    heard = [_Heard(stream, most, process) for stream in (process.stdout, process.stderr)]
    try:
        for one in heard:
            one.start()
        for one in heard:
            one.join(max(0.0, end - time.monotonic()))
        if not any(one.flooded for one in heard):
            if any(one.is_alive() for one in heard):  # it, or what it started, keeps on
                raise subprocess.TimeoutExpired(command, seconds)
            process.wait(max(0.0, end - time.monotonic()))
    finally:
        _kill(process)
        process.wait()
    if any(one.flooded for one in heard):
        raise TooLongError
    return process.returncode, bytes(heard[0].data), bytes(heard[1].data)
