"""What lies where, by a manifest in every folder deployed to; changes of several files happen as one or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.files import matching, read_file, write_atomically
from ncu_roofline.plugin.machine.machine import Machine
from ncu_roofline.plugin.machine.ncu import VENDOR_FOLDER

STAGE = ".ncu-roofline.part"
"""Inside the folder, so that renaming works.  Nothing in it has a name that Nsight Compute loads."""

_JOURNAL = "journal.json"
_MOST_BYTES = 10_000_000  # more than any journal or manifest has
MANIFEST = "ncu-roofline.manifest.json"
SCHEMA = "ncu-roofline-install"
_FOLDERS = "folders.json"
_PLAIN = re.compile(r"\w[\w.-]*", re.ASCII)  # of files in their folder; never the stage, a path or a device
_HASH = re.compile("[0-9a-f]{64}")


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


def recover(folder: Path, *, dry_run: bool = False) -> bool:
    """Undo what a killed process left unfinished in ``folder``; whether there was something.

    Raises OSError, and RooflineError for what no process of this program leaves: then nothing is changed.
    """
    if not (folder / STAGE).is_dir():
        return False
    created = _journal(folder)["created"]
    if not dry_run:
        undo(folder, list(map(Path, created)))
    return True


def undo(folder: Path, created: Sequence[Path] = ()) -> None:
    """Put everything back as the journal says, and remove the stage and the folders ``created`` if they are empty."""
    stage = folder / STAGE
    journal = _journal(folder)
    for number, name in enumerate(journal["names"]):
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
        _write_journal(stage / f"{number}.new", data)
    added = [name for name in writes if not os.path.lexists(folder / name)]
    journal = {"names": names, "added": added, "created": [os.fspath(path) for path in created]}
    _write_journal(stage / f"{_JOURNAL}.new", json.dumps(journal).encode())
    os.replace(stage / f"{_JOURNAL}.new", stage / _JOURNAL)


def _write_journal(path: Path, data: bytes) -> None:
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


def _journal(folder: Path) -> dict[str, list[str]]:
    """What was to be changed, nothing without a journal.  Raises OSError, and RooflineError for one that reaches elsewhere."""
    stage = folder / STAGE
    try:
        if stage.is_symlink():
            raise ValueError("the folder that it is in is a link")
        return _understood(folder, json.loads(read_file(stage / _JOURNAL, _MOST_BYTES)))
    except (FileNotFoundError, NotADirectoryError):
        return {"names": [], "added": [], "created": []}
    except (ValueError, RecursionError) as error:
        next_step = f"Nothing was changed; remove {stage}, or choose another folder with --dest DIR."
        raise RooflineError("Cannot undo", stage / _JOURNAL, str(error), next_step) from error


def _understood(folder: Path, document: Any) -> dict[str, list[str]]:
    lists: list[Any] = [isinstance(document, dict) and document.get(key) for key in ("names", "added", "created")]
    if not all(isinstance(one, list) and all(isinstance(name, str) for name in one) for one in lists):
        raise ValueError('"names", "added" and "created" must be lists of texts')
    names, added, created = lists
    if not all(map(_PLAIN.fullmatch, names + added)):
        raise ValueError("it names something that is no file inside its folder")
    if _around(folder, created) != created:
        raise ValueError('"created" names another folder than its own and those around it')
    return {"names": names, "added": added, "created": created}


def _around(folder: Path, names: Sequence[str]) -> list[str]:
    """Those of ``names`` that are this folder or one that it is in."""
    real = Path(os.path.realpath(folder))
    return [name for name in names if Path(os.path.realpath(name)) in (real, *real.parents)]


@dataclass(frozen=True)
class Manifest:
    """One deployment: ``files`` maps names to SHA-256; ``created`` are folders that were not there before.

    ``ncu`` is the release the files were rendered for, "" for any; ``ceilings`` says which measured ceilings they hold, "" for
    none.  No time is recorded: installing the same again changes nothing.
    """

    version: str
    ncu: str
    ceilings: str
    files: Mapping[str, str] = field(hash=False)
    created: tuple[str, ...] = ()

    def data(self) -> bytes:
        """The file."""
        return (json.dumps({"schema": SCHEMA, "schema_version": 1, **asdict(self)}, indent=1) + "\n").encode()


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest of a folder; None if there is none.  Raises RooflineError for one that can't be understood."""
    path = folder / MANIFEST
    try:
        document = json.loads(read_file(path, _MOST_BYTES))
        if not isinstance(document, dict) or document.get("schema") != SCHEMA or document.get("schema_version") != 1:
            raise ValueError("it is no manifest of this program, or of a later version of it")
        return _parse(folder, document)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise _unreadable(path, str(error)) from error


def _unreadable(path: Path, reason: str) -> RooflineError:
    next_step = "Remove it, and the files named NcuRoofline*.py and *Roofline*.section beside it that are not yours."
    return RooflineError("Cannot read the manifest", path, reason, next_step)


def _parse(folder: Path, document: dict[str, Any]) -> Manifest:
    files = document["files"]
    if not isinstance(files, dict) or not all(_HASH.fullmatch(str(value)) for value in files.values()):
        raise ValueError('"files" must map names to hashes')
    if not all(map(_PLAIN.fullmatch, files)):
        raise ValueError('"files" names something that is no file inside its folder')
    # Others are of a folder that was moved since; they are nobody's to remove.
    created = tuple(_around(folder, list(map(str, document.get("created", [])))))
    return Manifest(str(document["version"]), str(document["ncu"]), str(document["ceilings"]), files, created)


def known_folders(machine: Machine) -> list[Path]:
    """Every folder that holds, or may hold, a deployment: those recorded and those found among the user's documents."""
    found = dict.fromkeys(recorded_folders(machine))
    if machine.documents:
        for folder in matching(machine.documents / VENDOR_FOLDER, "*/Sections"):
            found[folder] = None
    return [folder for folder in found if os.path.exists(folder / MANIFEST) or os.path.exists(folder / STAGE)]


def recorded_folders(machine: Machine) -> list[Path]:
    """The folders recorded among the user's data."""
    try:
        names = json.loads((machine.data / _FOLDERS).read_bytes())
    except (OSError, ValueError):
        return []
    return [Path(name) for name in names if isinstance(name, str)] if isinstance(names, list) else []


def record(machine: Machine, folder: Path) -> bool:
    """Remember a folder before anything is put there; whether it was new.  Raises RooflineError."""
    folders = recorded_folders(machine)
    if folder in folders:
        return False
    _write(machine, [*folders, folder])
    return True


def forget(machine: Machine, folder: Path) -> None:
    """Forget a folder; the list and its place disappear with the last one.  Raises RooflineError."""
    folders = [one for one in recorded_folders(machine) if one != folder]
    if folders:
        _write(machine, folders)
        return
    with suppress(OSError):
        (machine.data / _FOLDERS).unlink()
    tidy(machine)


def tidy(machine: Machine) -> None:
    """Remove our data folder if it is empty, and what is then empty around it."""
    around = [machine.data, *machine.data.parents[:2]]
    remove_empty([folder for folder in around if machine.home and machine.home in folder.parents])


def _write(machine: Machine, folders: list[Path]) -> None:
    make_folder(machine.data)
    text = json.dumps([os.fspath(folder) for folder in folders], indent=1)
    write_atomically(machine.data / _FOLDERS, [text.encode()], overwrite=True)


def make_folder(folder: Path) -> None:
    """Create a folder of the user's data.  Raises RooflineError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        next_step = "Make your home folder writable, or set XDG_DATA_HOME to a folder that is."
        raise RooflineError("Cannot write", folder, error.strerror or str(error), next_step) from error


@contextmanager
def one_at_a_time(machine: Machine, *, create: bool = True) -> Iterator[None]:
    """Keep other installations of this user waiting (a job may start one per rank), where the system can do that.

    They wait at our data folder; with ``create`` it is made where it is missing.  Raises RooflineError where it can't be.
    """
    handle = None
    with suppress(ImportError, OSError):
        import fcntl

        if create:
            make_folder(machine.data)
        handle = os.open(machine.data, os.O_RDONLY)
        fcntl.flock(handle, fcntl.LOCK_EX)
    try:
        yield
    finally:
        tidy(machine)
        if handle is not None:
            os.close(handle)
