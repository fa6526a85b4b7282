"""Why a file is not a whole report: one sentence with the likely cause, and what to do next.

Called only once reading has failed, so it may look twice.
"""

from __future__ import annotations

import itertools
import os

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.files import REPORT_SUFFIXES
from ncu_roofline.base.texts import nearest
from ncu_roofline.formats.report.schema import FORMAT_VERSION, MAGIC

Path = str | os.PathLike[str]


SHORT, _MOST_SHORT = 1024, 100_000
"""Bytes of a record that says next to nothing (the shortest of 1,643 real ones has 16 kB), and so many in one report: every
kernel takes memory and a row, whatever it says."""
PASS_REPORT = "Pass a .ncu-rep or .ncu-repz file as written by 'ncu -o'."
FETCH_AGAIN = "Copy the file again from where it was written, or profile again."
_UNPACK = "Unpack it and pass the .ncu-rep file inside."

# First bytes of files that end up under the name of a report, with what they are and what to do.
_SIGNATURES = (
    (b"version https://git-lfs.github.com/spec/", "it is a git-LFS pointer, not the report itself", "Run 'git lfs pull'."),
    (b"\x1f\x8b", "it is compressed with gzip", _UNPACK),
    (b"PK\x03\x04", "it is a zip archive", _UNPACK),
    (b"BZh", "it is compressed with bzip2", _UNPACK),
    (b"\xfd7zXZ\0", "it is compressed with xz", _UNPACK),
    (b"7z\xbc\xaf\x27\x1c", "it is a 7z archive", _UNPACK),
    (b"SQLite format 3\0", "it is an SQLite database, as Nsight Systems and nvprof write it", PASS_REPORT),
    (b"\x7fELF", "it is an executable", PASS_REPORT),
    (b'"ID","Process ID"', "it is the CSV that 'ncu --csv' printed", "Pass the .ncu-rep file that it was made from."),
)
_SKIPPABLE = b"\x2a\x4d\x18"  # behind a first byte of 0x50 to 0x5f
_LOOKED_AT = 2_000  # files of a folder, for one that is like a misspelt name
_NSYS_SUFFIXES = (".nsys-rep", ".qdrep", ".qdstrm")
# Tags with which a block header can begin: its fields 1 to 10, each with its wire type.
_HEADER_TAGS = b"\x08\x10\x1a\x22\x28\x32\x38\x40\x48\x50"


def cannot_read(path: Path, reason: str, next_step: str) -> RooflineError:
    """The error that every failure to read a report ends in."""
    return RooflineError("Cannot read", path, reason, next_step)


def cannot_open(path: Path, error: OSError | ValueError) -> RooflineError:
    """Why the operating system does not give us the file."""
    if isinstance(error, FileNotFoundError):
        for with_suffix in (f"{os.fspath(path)}{suffix}" for suffix in REPORT_SUFFIXES):
            if os.path.exists(with_suffix):
                return cannot_read(path, "there is no such file", f"Did you mean {with_suffix}?")
        pipe = os.fspath(path) == "-"
        next_step = "Give /dev/stdin to read standard input." if pipe else f"Check the path{_question(path) or '.'}"
        return cannot_read(path, "there is no such file", next_step)
    if isinstance(error, IsADirectoryError):
        return cannot_read(path, "it is a folder", PASS_REPORT)
    if isinstance(error, PermissionError):
        return cannot_read(path, "permission denied", "Check who may read it: what ncu wrote under sudo belongs to root.")
    return cannot_read(path, getattr(error, "strerror", None) or str(error), "Check the path.")


def _question(path: Path) -> str:
    """Whether a file of that folder with a name like this is meant, "" where there is none."""
    folder = os.path.dirname(os.fspath(path))
    try:
        with os.scandir(folder or ".") as found:
            names = sorted(entry.name for entry in itertools.islice(found, _LOOKED_AT) if entry.is_file())
    except (OSError, ValueError):
        return ""
    by_stem = {os.path.splitext(name)[0]: name for name in sorted(names, key=lambda name: name.endswith(REPORT_SUFFIXES))}
    near = nearest(os.path.splitext(os.path.basename(os.fspath(path)))[0], by_stem)  # all have the suffix of reports in common
    return f"; did you mean {os.path.join(folder, by_stem[near])}?" if near else ""


def not_a_report(path: Path, head: bytes, size: int, *, piped: bool = False) -> RooflineError:
    """What a file is whose first bytes (``head``) are not those of a report; ``piped``: it came through a pipe."""
    if size == 0:
        return cannot_read(path, "the file is empty", "Profile again: ncu writes the report when the application ends.")
    if MAGIC.startswith(head[: len(MAGIC)]):
        return cut_off_at_start(path, size)
    if head[1:4] == _SKIPPABLE:
        reason = "it begins with a skippable zstd frame, which ncu does not write"
        return cannot_read(path, reason, "Unpack it with `zstd -d` and pass the .ncu-rep file inside.")
    for signature, reason, next_step in _SIGNATURES:
        if head.startswith(signature):
            return cannot_read(path, reason, next_step)
    if str(path).endswith(_NSYS_SUFFIXES):
        return cannot_read(path, "it is a report of Nsight Systems, not of Nsight Compute", PASS_REPORT)
    start = head.lstrip().lower()
    if start.startswith((b"<!doctype html", b"<html")):
        return cannot_read(path, "it is a web page", "Download the raw file instead of the page that shows it.")
    if _is_text(head):
        next_step = "Write it to a file and pass that: of what comes through a pipe only reports are read."
        return cannot_read(path, "it is a text file, not an Nsight Compute report", next_step if piped else PASS_REPORT)
    beginning = f"the letters {MAGIC[:3].decode()} and a zero byte"
    return cannot_read(path, f"it does not begin with {beginning}, as every Nsight Compute report does", PASS_REPORT)


def cut_off_at_start(path: Path, size: int) -> RooflineError:
    """A report that ends before its first block."""
    return cannot_read(path, f"it is cut off after {size} bytes, before anything that was profiled", FETCH_AGAIN)


def _is_text(head: bytes) -> bool:
    decoded = head.decode("utf-8", "surrogateescape").rstrip("".join(map(chr, range(0xDC80, 0xDD00))))  # a letter cut in two
    return all(c.isprintable() or c in "\t\r\n\f" for c in decoded)


def changed(path: Path) -> RooflineError:
    """A file that somebody wrote to, or cut short, since it was opened."""
    return cannot_read(path, "it changed while it was read", "Wait until nothing writes to it, then run the command again.")


def bad_version(path: Path, version: int) -> RooflineError:
    """A file header of another format version than the one known."""
    if version > FORMAT_VERSION:
        reason = f"its format version {version} is newer than version {FORMAT_VERSION}, which this program knows"
        return cannot_read(path, reason, "Update ncu-roofline.")
    reason = f"its format version {version} is older than version {FORMAT_VERSION}, which this program knows, or it is damaged"
    return cannot_read(path, reason, FETCH_AGAIN)


def damaged(path: Path, offset: int, cause: str) -> RooflineError:
    """Bytes inside the file that make no sense."""
    return cannot_read(path, f"it is damaged at byte {offset}: {cause}", FETCH_AGAIN)


def broken_block(path: Path, size: int, start: int, begun: bytes, end: int, reason: str, whole: int) -> RooflineError:
    """No block can be read at ``start``, behind ``whole`` complete results: cut off, or followed by something else.

    ``begun`` are the first bytes there, ``end`` is where the block says that it ends; ``reason`` is a clause for damage.
    """
    if begun.startswith(MAGIC):
        reason = f"a second report begins at byte {start}: two files were joined"
        return cannot_read(path, reason, "Pass the reports as separate files.")
    before = f"{whole} whole kernel{'' if whole == 1 else 's'} before it"
    plausible = begun[4:5] in _HEADER_TAGS and begun[:4] not in (b"", bytes(4))
    if end > size and plausible:
        return cannot_read(path, f"it is cut off at byte {size}, in the block at byte {start} ({before})", FETCH_AGAIN)
    return damaged(path, start, f"{reason} ({before})")


def check_short(path: Path, short: int) -> None:
    """Raise RooflineError for a report with more ``short`` records (of up to `SHORT` bytes) than any profiler writes."""
    if short > _MOST_SHORT:
        reason = f"over {_MOST_SHORT:,} of its records of kernels have no more than {SHORT:,} bytes, real ones 16,000 or more"
        raise cannot_read(path, f"{reason}: it is damaged or made up", "Profile again.")


def check_content(what: str, path: Path, launches: int, metrics: int) -> None:
    """Raise RooflineError, beginning with ``what``, for a report with so few that nothing could be drawn or said."""
    if not launches:
        next_step = "Profile again, and check that ncu's filters let some kernel pass."
        raise RooflineError(what, path, "it holds no profiled kernel", next_step)
    if not metrics:
        next_step = "Profile again with metrics, for instance with `ncu --set full`."
        raise RooflineError(what, path, "its kernels carry no metrics", next_step)
