"""Files: written so that nothing is ever half-written, and where the plugin pack lies."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from ncu_roofline.errors import RooflineError

REPORT_SUFFIXES = (".ncu-rep", ".ncu-repz", ".nsight-cuprof-report")
"""What files of reports are called: as ncu writes them, compressed (from 2025.4 on), and before 2020."""
HELPER = "NcuRooflineShared"
"""What the file beside the rules that they import, and that is no rule, is called; a hash of its text follows."""
_PACKAGE = Path(__file__).resolve().parent


def natural_order(path: str) -> tuple[tuple[int, str, str], ...]:
    """Sort key under which whole numbers in names count as numbers: nw2 before nw10, and still dt0.25 before dt0.5."""
    pieces = re.findall(r"([0-9]+)((?:\.[0-9]+)*)|([^0-9]+)", path)
    return tuple((-1, text, "") if text else (len(n := whole.lstrip("0")), n, rest) for whole, rest, text in pieces)


def check_target(path: str | os.PathLike[str], overwrite: bool) -> None:
    """Raise RooflineError if ``path`` is a folder or a device, exists without ``overwrite``, or has no folder to be in."""
    target = os.fspath(path)
    if os.path.isdir(target):
        raise RooflineError("Cannot write", path, "it is a folder", "Give the name of a file.")
    if os.path.exists(target) and not os.path.isfile(target):  # replacing /dev/null would harm the whole machine
        raise RooflineError("Cannot write", path, "it is no ordinary file", "Give the name of a file.")
    if os.path.lexists(target) and not overwrite:
        raise RooflineError("Cannot write", path, "the file exists", "Choose another name or add --force to overwrite it.")
    folder = os.path.dirname(os.path.realpath(target))
    if not os.path.isdir(folder):
        raise RooflineError("Cannot write", path, f"there is no folder {folder}", "Create the folder first.")


def write_atomically(path: str | os.PathLike[str], chunks: Iterable[bytes], *, overwrite: bool) -> None:
    """Write ``chunks`` to a file beside ``path`` and move it there at the end; a link stays a link.  Raises RooflineError."""
    check_target(path, overwrite)
    try:
        _write_beside(Path(os.path.realpath(path)), chunks)
    except OSError as error:
        reason = error.strerror or str(error)
        next_step = "Choose a place that you may write to, with space on its disk."
        raise RooflineError("Cannot write", path, reason, next_step) from error


def _write_beside(target: Path, chunks: Iterable[bytes]) -> None:
    handle, beside = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:40]}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.writelines(chunks)
        os.chmod(beside, 0o666 & ~_umask())
        os.replace(beside, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def pack_folder(name: str) -> Path:
    """The folder ``sections``, ``rules`` or ``bench``: package data of an installed wheel, else of the checkout."""
    installed = _PACKAGE / "data" / name
    return installed if installed.is_dir() else _PACKAGE.parent / name
