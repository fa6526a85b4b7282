"""Temporary files and folders: of names that say they are ours, gone at the end, and where a run was killed with the next one.

A run holds a lock (flock) on what it made for as long as it lives.  What nobody on this host holds any more was left by a run
that was killed.  Where that can't be told, for other hosts of a file server and systems without flock, a day has to pass.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path

from ncu_roofline.base.errors import RooflineError

_SUFFIX = ".ncu-roofline.part"
_FOLDER = "ncu-roofline-"
_OURS = r"(?P<host>[0-9a-f]{8})-[a-z0-9_]{8}"
_FILES = re.compile(rf"\A\..*\.{_OURS}{re.escape(_SUFFIX)}\Z", re.DOTALL)
_FOLDERS = re.compile(rf"\A\.?{_FOLDER}{_OURS}\Z")
_FRESH_SECONDS = 60  # between being made and being locked, and clocks of hosts and file servers differ
_OLD_SECONDS = 86_400
_FREE, _TAKEN, _UNKNOWN = "free", "taken", "unknown"
_ADVICE = "Set TMPDIR to a folder with space that you may write to."


def part_of(target: Path) -> tuple[int, str]:
    """A new, locked file beside ``target`` to write it in: its handle and path.  Raises OSError."""
    remove_left_over(target.parent)
    prefix = f".{target.name[:40]}.{_host()}-"
    handle, path = tempfile.mkstemp(dir=target.parent, prefix=prefix, suffix=_SUFFIX)
    _lock(handle)
    return handle, path


def remove_left_over(folder: Path, *, alone: bool = False) -> None:
    """Remove what killed runs left of files that they wrote in ``folder``; ``alone``: no other run writes there now."""
    _remove_left_over(os.fspath(folder), _FILES, 0 if alone else _FRESH_SECONDS)


def temporary_place() -> Path:
    """Where the system wants temporary files.  Raises RooflineError where there is no such folder."""
    try:
        return Path(tempfile.gettempdir())
    except OSError as error:
        raise no_room(error) from error


@contextmanager
def temporary_folder(files: Mapping[str, bytes] | None = None) -> Iterator[Path]:
    """A folder of our own with these ``files`` in it, gone afterwards.  Raises RooflineError where there is no room for it."""
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(folder_in(temporary_place()))
            for file, data in (files or {}).items():
                (folder / file).write_bytes(data)
        except OSError as error:
            raise no_room(error) from error
        yield folder


@contextmanager
def folder_in(place: Path, *, hidden: bool = False) -> Iterator[Path]:
    """A new folder of our own in ``place``, gone afterwards; ``hidden`` where people keep files.  Raises OSError."""
    _remove_left_over(os.fspath(place), _FOLDERS, _FRESH_SECONDS)
    prefix = f"{'.' if hidden else ''}{_FOLDER}{_host()}-"
    with tempfile.TemporaryDirectory(dir=place, prefix=prefix, ignore_cleanup_errors=True) as name, _held(name):
        yield Path(name)


def no_room(error: OSError) -> RooflineError:
    """The sentence where a temporary file can't be written."""
    return RooflineError("Cannot write", tempfile.tempdir or "temporary files", error.strerror or str(error), _ADVICE)


@contextmanager
def _held(folder: str) -> Iterator[None]:
    handle = None
    with suppress(OSError):  # Windows opens no folders
        handle = os.open(folder, os.O_RDONLY)
        _lock(handle)
    try:
        yield
    finally:
        if handle is not None:
            os.close(handle)


def _lock(handle: int) -> str:
    """Take the lock until ``handle`` is closed; whether it was free, or taken by another, or there are no locks here."""
    try:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return _TAKEN
    except (ImportError, OSError):
        return _UNKNOWN
    return _FREE


def _remove_left_over(folder: str, ours: re.Pattern[str], fresh: float) -> None:
    """Remove what killed runs of this user left in ``folder``, with names of ``ours`` and ``fresh`` seconds ago or more."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            name = ours.search(entry.name)
            if name:
                with suppress(OSError):
                    _remove_dead(entry.path, name["host"] == _host(), fresh)


def _remove_dead(path: str, this_host: bool, fresh: float) -> None:
    """Raises OSError."""
    found = os.lstat(path)
    wanted = stat.S_ISREG if path.endswith(_SUFFIX) else stat.S_ISDIR
    age = time.time() - found.st_mtime
    if not wanted(found.st_mode) or age < fresh or (hasattr(os, "getuid") and found.st_uid != os.getuid()):
        return
    lock = _state(path)
    if lock == _TAKEN or (age < _OLD_SECONDS and not (this_host and lock == _FREE)):
        return
    if stat.S_ISDIR(found.st_mode):
        shutil.rmtree(path, ignore_errors=True)
    else:
        os.unlink(path)


def _state(path: str) -> str:
    """Who holds the lock of ``path``."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError:  # Windows opens no folders
        return _UNKNOWN
    try:
        return _lock(handle)
    finally:
        os.close(handle)


@cache
def _host() -> str:
    """This host in a name: eight digits, as names of hosts may be long."""
    import hashlib
    import platform

    return hashlib.sha256(platform.node().encode("utf-8", "surrogateescape")).hexdigest()[:8]
