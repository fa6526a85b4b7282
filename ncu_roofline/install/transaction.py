"""Changing several files of a folder so that all of the change happens, or none.

New files are written into a folder beside the others first, which is where disks fill up; then a journal is written; then files
are only renamed.  Removing the journal is what makes the change final.  Whoever finds a journal undoes what it describes.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

STAGE = ".ncu-roofline.part"
"""Inside the folder, so that renaming works.  Nothing in it has a name that Nsight Compute loads."""

_JOURNAL = "journal.json"


@contextmanager
def changing(folder: Path, writes: Mapping[str, bytes], removes: Sequence[str] = ()) -> Iterator[None]:
    """Write and remove files of ``folder``; an exception inside the ``with`` block undoes all of it.

    Folders that are missing are created, and taken away again if it fails.  Raises OSError.
    """
    recover(folder)
    created = _create(folder)
    try:
        _stage(folder, writes, removes, created)
        _rename(folder, [*writes, *removes], set(writes))
        yield
    except BaseException:
        undo(folder, created)
        raise
    os.unlink(folder / STAGE / _JOURNAL)  # final from here on
    shutil.rmtree(folder / STAGE, ignore_errors=True)


def recover(folder: Path) -> bool:
    """Undo what a killed process left unfinished in ``folder``; whether there was something.  Raises OSError."""
    stage = folder / STAGE
    if not stage.is_dir():
        return False
    journal = _journal(stage)
    undo(folder, [Path(name) for name in journal.get("created", [])])
    return True


def undo(folder: Path, created: Sequence[Path] = ()) -> None:
    """Put everything back as the journal says, and remove the stage and the folders ``created`` if they are empty."""
    stage = folder / STAGE
    journal = _journal(stage)
    for number, name in enumerate(journal.get("names", [])):
        target, old, new = folder / name, stage / f"{number}.old", stage / f"{number}.new"
        if os.path.lexists(old):
            os.replace(old, target)
        elif name in journal["added"] and not new.exists():
            with suppress(FileNotFoundError):
                os.unlink(target)
    with suppress(FileNotFoundError):
        os.unlink(stage / _JOURNAL)
    shutil.rmtree(stage, ignore_errors=True)
    remove_empty(created)


def remove_empty(folders: Sequence[Path]) -> None:
    """Remove those of ``folders`` that are empty, the innermost first."""
    for folder in sorted(folders, key=lambda path: len(path.parts), reverse=True):
        with suppress(OSError):
            folder.rmdir()


def missing_folders(folder: Path) -> list[Path]:
    """``folder`` and those of its parents that do not exist, outermost first."""
    missing = []
    while not os.path.lexists(folder):
        missing.append(folder)
        folder = folder.parent
    return missing[::-1]


def digest(data: bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def _create(folder: Path) -> list[Path]:
    created = missing_folders(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        remove_empty(created)
        raise
    return created


def _stage(folder: Path, writes: Mapping[str, bytes], removes: Sequence[str], created: Sequence[Path]) -> None:
    stage = folder / STAGE
    stage.mkdir()
    names = [*writes, *removes]
    for number, data in enumerate(writes.values()):
        _write(stage / f"{number}.new", data)
    added = [name for name in writes if not os.path.lexists(folder / name)]
    journal = {"names": names, "added": added, "created": [os.fspath(path) for path in created]}
    _write(stage / f"{_JOURNAL}.new", json.dumps(journal).encode())
    os.replace(stage / f"{_JOURNAL}.new", stage / _JOURNAL)


def _write(path: Path, data: bytes) -> None:
    with path.open("wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())


def _rename(folder: Path, names: Sequence[str], written: set[str]) -> None:
    stage = folder / STAGE
    for number, name in enumerate(names):
        target = folder / name
        if os.path.lexists(target):
            os.replace(target, stage / f"{number}.old")
        if name in written:
            os.replace(stage / f"{number}.new", target)


def _journal(stage: Path) -> dict[str, list[str]]:
    try:
        journal = json.loads((stage / _JOURNAL).read_bytes())
    except (OSError, ValueError):
        return {}
    return journal if isinstance(journal, dict) else {}
