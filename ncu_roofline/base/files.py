"""Files: opened where they are files or pipes, written so that nothing is ever half-written; where the plugin pack lies."""

from __future__ import annotations

import errno
import io
import os
import re
import stat
import sys
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.temporary import part_of

REPORT_SUFFIXES = (".ncu-rep", ".ncu-repz", ".nsight-cuprof-report")
"""What files of reports are called: as ncu writes them, compressed (from 2025.4 on), and before 2020."""
HELPER = "NcuRooflineShared"
"""What the file beside the rules that they import, and that is no rule, is called; a hash of its text follows."""
_PACKAGE = Path(__file__).resolve().parents[1]
# How long a pipe may be without a writer: whoever starts one by hand beside the command has to get there.
_PIPE_SECONDS = 5.0
_LOOK_SECONDS = 0.02
# What systems say of file systems that have no hard links.
_NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK}


JOINED = " + "
"""What stands between the paths of files that are one report together."""


def natural_order(path: str) -> tuple[tuple[int, str, str], ...]:
    """Sort key under which whole numbers in names count as numbers: nw2 before nw10, and still dt0.25 before dt0.5."""
    pieces = re.findall(r"([0-9]+)((?:\.[0-9]+)*)|([^0-9]+)", path)
    return tuple((-1, text, "") if text else (len(n := whole.lstrip("0")), n, rest) for whole, rest, text in pieces)


@dataclass(frozen=True)
class ReportNames:
    """What reports are called in results: their base names, for ``shared`` ones the last ``depth`` parts of their paths; their
    absolute paths if ``full``.

    Results are passed on, and folders say who made them where.
    """

    shared: frozenset[str] = frozenset()
    depth: int = 1
    full: bool = False

    @classmethod
    def apart(cls, paths: Iterable[str]) -> ReportNames:
        """As short as tells all these files apart."""
        parts = [PurePath(path).parts for path in dict.fromkeys(one for path in paths for one in _files_of(path))]
        count = Counter(words[-1:] for words in parts)
        alike = [words for words in parts if count[words[-1:]] > 1]
        longest = max(map(len, alike), default=1)
        ends = ({words[-depth:] for words in alike} for depth in range(1, longest))
        depth = next((depth for depth, found in enumerate(ends, 1) if len(found) == len(alike)), longest)
        return cls(frozenset("".join(words[-1:]) for words in alike), depth)

    def __call__(self, path: str) -> str:
        """The name of one of them, as text that can be written."""
        return JOINED.join(map(self._name, _files_of(path))).encode("utf-8", "replace").decode()

    def _name(self, path: str) -> str:
        words = PurePath(path).parts
        most = self.depth if words[-1:] and words[-1] in self.shared else 1
        return os.path.abspath(path) if self.full else PurePath(*words[-most:]).as_posix()


def _files_of(path: str) -> list[str]:
    """The files of a report, several where they complete each other."""
    return path.split(JOINED) if JOINED in path and not os.path.exists(path) else [path]


def matching(folder: str | os.PathLike[str], pattern: str) -> list[Path]:
    """What in a folder matches, sorted; nothing where there is no such folder, or none that may be read."""
    try:
        return sorted(Path(folder).glob(pattern))
    except OSError:
        return []


def open_file(path: str | os.PathLike[str]) -> io.BufferedReader:
    """The file ``path`` for reading, or a pipe that somebody writes to, such as a shell's ``<(...)``.

    Raises OSError; its text is a clause that says what it is instead (a device, a socket, a pipe without a writer).
    """
    _check_kind(os.stat(path).st_mode)  # before it is opened: some devices act on that
    flags = (getattr(os, name, 0) for name in ("O_BINARY", "O_CLOEXEC", "O_NOCTTY", "O_NONBLOCK"))
    handle = os.open(path, sum(flags, os.O_RDONLY))
    try:
        mode = os.fstat(handle).st_mode
        _check_kind(mode)
        if not stat.S_ISFIFO(mode):
            return os.fdopen(handle, "rb")
        head = _first_bytes(handle)
        os.set_blocking(handle, True)
    except BaseException:
        os.close(handle)
        raise
    return io.BufferedReader(_Pipe(handle, head))


def _check_kind(mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder")
    for is_one, what in ((stat.S_ISCHR, "a device"), (stat.S_ISBLK, "a device"), (stat.S_ISSOCK, "a socket")):
        if is_one(mode):
            raise OSError(errno.EINVAL, f"it is {what}, not a file")


def _first_bytes(handle: int) -> bytes:
    """What is in a pipe, b"" where its writer is silent yet or gone.  Raises OSError where none comes."""
    until = time.monotonic() + _PIPE_SECONDS
    while time.monotonic() < until:
        try:
            data = os.read(handle, io.DEFAULT_BUFFER_SIZE)
        except BlockingIOError:  # there is a writer
            return b""
        if data or _was_closed(handle):
            return data
        time.sleep(_LOOK_SECONDS)
    raise OSError(errno.EINVAL, "it is a pipe that nobody writes to")


def _was_closed(handle: int) -> bool:
    """Whether a writer came and went without a word; only Linux tells that from one who has not come."""
    import select

    if sys.platform != "linux":
        return False
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return any(event & select.POLLHUP for _, event in poll.poll(0))


class _Pipe(io.FileIO):
    """A pipe of which something was read already."""

    def __init__(self, handle: int, head: bytes) -> None:
        super().__init__(handle, "rb")
        self._head = head

    def readinto(self, buffer: Any) -> int | None:
        """See io.RawIOBase."""
        if not self._head:
            return super().readinto(buffer)
        size = min(len(buffer), len(self._head))
        buffer[:size], self._head = self._head[:size], self._head[size:]
        return size

    def readall(self) -> bytes:
        """See io.RawIOBase."""
        head, self._head = self._head, b""
        return head + super().readall()


def read_file(path: str | os.PathLike[str], most: int) -> bytes:
    """All bytes of a file or pipe (see `open_file`).  Raises OSError, also where they are more than ``most``, or change."""
    with open_file(path) as file:
        before = os.fstat(file.fileno())
        data = file.read(most + 1)
        now = os.fstat(file.fileno())
    if stat.S_ISREG(now.st_mode) and (now.st_size, now.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
        raise OSError(errno.EIO, "it changed while it was read")
    if len(data) > most:
        raise OSError(errno.EFBIG, f"it has more than {most / 1e6:g} MB")
    return data


def check_target(path: str | os.PathLike[str], overwrite: bool) -> None:
    """Raise RooflineError if ``path`` is a folder or a device, exists without ``overwrite``, or has no folder to be in."""
    target = os.fspath(path)
    if os.path.isdir(target):
        raise RooflineError("Cannot write", path, "it is a folder", "Give the name of a file.")
    if os.path.exists(target) and not os.path.isfile(target):  # replacing /dev/null would harm the whole machine
        raise RooflineError("Cannot write", path, "it is no ordinary file", "Give the name of a file.")
    if os.path.lexists(target) and not overwrite:
        raise _exists(path)
    folder = os.path.dirname(os.path.realpath(target))
    if not os.path.isdir(folder):
        raise RooflineError("Cannot write", path, f"there is no folder {folder}", "Create the folder first.")


def _exists(path: str | os.PathLike[str]) -> RooflineError:
    return RooflineError("Cannot write", path, "the file exists", "Choose another name or add --force to overwrite it.")


def write_atomically(path: str | os.PathLike[str], chunks: Iterable[bytes], *, overwrite: bool) -> None:
    """Write ``chunks`` to a file beside ``path`` and move it there at the end; a link stays a link.

    With ``overwrite`` a file that was there hands on its permissions, and owner and group as far as permitted; without, what
    appears under the name meanwhile stays, and that is an error.  Raises RooflineError.
    """
    check_target(path, overwrite)
    try:
        _write_beside(Path(os.path.realpath(path)), chunks, overwrite)
    except FileExistsError as error:
        raise _exists(path) from error
    except OSError as error:
        reason = error.strerror or str(error)
        next_step = "Choose a place that you may write to, with space on its disk."
        raise RooflineError("Cannot write", path, reason, next_step) from error


def _write_beside(target: Path, chunks: Iterable[bytes], overwrite: bool) -> None:
    handle, beside = part_of(target)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.writelines(chunks)
        _set_mode(target, beside, overwrite)
        (os.replace if overwrite else _publish)(beside, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside)
        raise


def _publish(beside: str, target: Path) -> None:
    """Give the file its name if nothing has it.  Raises FileExistsError, or another OSError."""
    if os.name == "nt":  # where renaming replaces nothing
        os.rename(beside, target)
        return
    try:
        os.link(beside, target)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        _reserve(target)
        try:
            os.replace(beside, target)
        except BaseException:
            os.unlink(target)
            raise
    else:
        os.unlink(beside)


def _reserve(target: Path) -> None:
    """Take the name with an empty file: the next best where a file system has no hard links, such as FAT.  Raises OSError."""
    os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def _set_mode(target: Path, beside: str, overwrite: bool) -> None:
    """Permissions of what is replaced, else of a new file; a group that can't be kept hands none of its rights to another."""
    former = target.stat() if overwrite and target.exists() else None
    mode = stat.S_IMODE(former.st_mode) & 0o777 if former else 0o666 & ~_umask()
    if former:
        made = os.stat(beside)
        if made.st_uid != former.st_uid:
            with suppress(OSError):
                os.chown(beside, former.st_uid, -1)
        if made.st_gid != former.st_gid:
            try:
                os.chown(beside, -1, former.st_gid)
            except OSError:
                mode = mode & ~0o070 | (mode & 0o007) << 3
    os.chmod(beside, mode)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def pack_folder(name: str) -> Path:
    """The folder ``sections``, ``rules`` or ``bench``: package data of an installed wheel, else of the checkout."""
    installed = _PACKAGE / "data" / name
    return installed if installed.is_dir() else _PACKAGE.parent / name
