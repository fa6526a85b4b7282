"""Files: opened where they are files or pipes, written so that nothing is ever half-written; where the plugin pack lies."""

from __future__ import annotations

import errno
import io
import os
import re
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePath

from ncu_roofline.base.errors import RooflineError, explained

REPORT_SUFFIXES = (".ncu-rep", ".ncu-repz", ".nsight-cuprof-report")
"""What files of reports are called: as ncu writes them, compressed (from 2025.4 on), and before 2020."""
HELPER = "NcuRooflineShared"
"""What the file beside the rules that they import, and that is no rule, is called; a hash of its text follows."""
JOINED = " + "
"""What stands between the paths of files that are one report together."""
PART = ".ncu-roofline.part"
"""How the name ends under which a file is written first; it begins with a dot, and Nsight Compute loads none such."""
TEMPORARY = "ncu-roofline-"
"""How the names of our folders for temporary files begin; eight characters of chance follow."""
_PACKAGE = Path(__file__).resolve().parents[1]


def natural_order(path: str) -> tuple[tuple[int, str, str], ...]:
    """Sort key under which whole numbers in names count as numbers: nw2 before nw10, and still dt0.25 before dt0.5."""
    pieces = re.findall(r"([0-9]+)((?:\.[0-9]+)*)|([^0-9]+)", path)
    return tuple((-1, text, "") if text else (len(n := whole.lstrip("0")), n, rest) for whole, rest, text in pieces)


@dataclass(frozen=True)
class ReportNames:
    """What reports are called in results, which are passed on, while folders say who made them where: their base names, for
    ``shared`` ones the last ``depth`` parts of their paths; their absolute paths if ``full``.
    """

    shared: frozenset[str] = frozenset()
    depth: int = 1
    full: bool = False

    @classmethod
    def apart(cls, paths: Iterable[str]) -> ReportNames:
        """As short as tells all these files apart."""
        parts = [PurePath(path).parts for path in dict.fromkeys(one for path in paths for one in files_of(path))]
        count = Counter(words[-1:] for words in parts)
        alike = [words for words in parts if count[words[-1:]] > 1]
        longest = max(map(len, alike), default=1)
        tells = (depth for depth in range(1, longest) if len({words[-depth:] for words in alike}) == len(alike))
        return cls(frozenset("".join(words[-1:]) for words in alike), next(tells, longest))

    def __call__(self, path: str) -> str:
        """The name of one of them, as text that can be written."""
        names = []
        for file in files_of(path):
            words = PurePath(file).parts
            depth = self.depth if words[-1:] and words[-1] in self.shared else 1
            names.append(os.path.abspath(file) if self.full else PurePath(*words[-depth:]).as_posix())
        return JOINED.join(names).encode("utf-8", "replace").decode()


def files_of(path: str) -> list[str]:
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

    Raises OSError; its text is a clause that says what it is instead (a folder, a device, a socket).
    """
    mode = os.stat(path).st_mode  # before it is opened: some devices act on that
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder")
    if stat.S_ISCHR(mode) or stat.S_ISBLK(mode) or stat.S_ISSOCK(mode):
        raise OSError(errno.EINVAL, f"it is a {'socket' if stat.S_ISSOCK(mode) else 'device'}, not a file")
    return open(path, "rb")


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
    target, reason, next_step = os.fspath(path), "", "Give the name of a file."
    folder = os.path.dirname(os.path.realpath(target))
    if os.path.isdir(target):
        reason = "it is a folder"
    elif os.path.exists(target) and not os.path.isfile(target):  # replacing /dev/null would harm the whole machine
        reason = "it is no ordinary file"
    elif os.path.lexists(target) and not overwrite:
        reason, next_step = "the file exists", "Choose another name or add --force to overwrite it."
    elif not os.path.isdir(folder):
        reason, next_step = f"there is no folder {folder}", "Create the folder first."
    if reason:
        raise RooflineError("Cannot write", path, reason, next_step)


def write_atomically(path: str | os.PathLike[str], chunks: Iterable[bytes], *, overwrite: bool) -> None:
    """Write ``chunks`` to a file beside ``path`` and move it there at the end; a link stays a link.

    What was there hands on its permissions.  Raises RooflineError.
    """
    import tempfile

    check_target(path, overwrite)
    target = Path(os.path.realpath(path))
    with explained("Cannot write", path, "Choose a place that you may write to, with space on its disk."):
        handle, beside = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:40]}.", suffix=PART)
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.writelines(chunks)
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(beside, stat.S_IMODE(target.stat().st_mode) & 0o777 if target.exists() else 0o666 & ~mask)
            os.replace(beside, target)
        except BaseException:
            with suppress(OSError):
                os.unlink(beside)
            raise


def pack_folder(name: str) -> Path:
    """The folder ``sections``, ``rules`` or ``bench``: package data of an installed wheel, else of the checkout."""
    installed = _PACKAGE / "data" / name
    return installed if installed.is_dir() else _PACKAGE.parent / name


def room() -> AbstractContextManager[None]:
    """Makes a RooflineError of an OSError where a temporary file can't be written."""
    import tempfile

    next_step = "Set TMPDIR to a folder with space that you may write to."
    return explained("Cannot write", tempfile.tempdir or "temporary files", next_step)


def temporary_place() -> Path:
    """Where the system wants temporary files.  Raises RooflineError where there is no such folder."""
    import tempfile

    with room():
        return Path(tempfile.gettempdir())


@contextmanager
def temporary_folder(files: Mapping[str, bytes] | None = None) -> Iterator[Path]:
    """A folder of our own with these ``files`` in it, gone afterwards.  Raises RooflineError where there is no room for it."""
    import tempfile

    with ExitStack() as stack:
        with room():
            made = tempfile.TemporaryDirectory(prefix=TEMPORARY, ignore_cleanup_errors=True)
            folder = Path(stack.enter_context(made))
            for file, data in (files or {}).items():
                (folder / file).write_bytes(data)
        yield folder
