"""The pack put into a folder and taken away again: nothing that is not ours is ever overwritten or removed.

A manifest in the folder says which files are ours, by their hashes; a file that is not as it says is somebody else's.  What is
to be replaced goes first, then the manifest comes, then the files: whenever it ends, doing it once more, or uninstalling,
leaves nothing behind.  Measured ceilings are kept among the user's data, one file per GPU.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from ncu_roofline.base.errors import RooflineError, explained
from ncu_roofline.base.files import HELPER, PART, matching, read_file, write_atomically
from ncu_roofline.formats.ceilings import MOST_BYTES, Ceilings, read_ceilings
from ncu_roofline.plugin.machine.machine import VENDOR_FOLDER, Gpu, Machine, Ncu, list_files
from ncu_roofline.version import __version__

MANIFEST = "ncu-roofline.manifest.json"
SCHEMA = "ncu-roofline-install"
_MOST_BYTES = 10_000_000  # more than any manifest has
_NO_FILE = "no ordinary file"


class Pack(NamedTuple):
    """What to deploy: ``files`` by name; ``ncu`` is the release they are for, ``ceilings`` where measured roofs come from."""

    files: Mapping[str, bytes]
    ncu: str = ""
    ceilings: str = ""


class Change(NamedTuple):
    """What is done to a folder; ``kept`` are files of ours that somebody changed, ``needed`` the helper that they import."""

    folder: Path
    written: tuple[str, ...]
    unchanged: tuple[str, ...]
    removed: tuple[str, ...]
    kept: tuple[str, ...]
    needed: tuple[str, ...] = ()


class Manifest(NamedTuple):
    """One deployment: ``files`` maps names to SHA-256; ``created``: the folder was not there before.

    ``ncu`` is the release the files were rendered for, "" for any; ``ceilings`` says which measured ceilings they hold, "" for
    none.  No time is recorded: installing the same again changes nothing.
    """

    version: str = ""
    ncu: str = ""
    ceilings: str = ""
    files: Mapping[str, str] = {}
    created: bool = False


def render_pack(version: str, ceilings: Ceilings | None = None, *, tensor: str = "") -> Pack:
    """Sections and rules for a version of Nsight Compute; for "" such as every release loads.

    ``tensor`` is the type that the section of few passes counts ("": the one that stands for all).  Measured roofs scale with
    the clock of the profiled kernel where the file says what theory gives at the clock they were measured at, else they are
    constants.  Raises RooflineError for a release without rooflines.
    """
    from ncu_roofline.plugin.generate.lowering import BASE, dialect_of
    from ncu_roofline.plugin.generate.rules import render_rules
    from ncu_roofline.plugin.generate.sections import render_sections

    dialect = dialect_of(version) if version else BASE
    known = {name for name, one in ceilings.by_id.items() if one.share > 0} if ceilings else set()
    consistent = "dram.read" in known and any(name.endswith(".fma") or name.startswith("tensor.") for name in known)
    texts = render_sections(dialect, ceilings, clock_consistent=consistent, light_type=tensor)
    texts |= render_rules(dialect, [ceilings] if ceilings else [])
    files = {name: text.encode() for name, text in sorted(texts.items())}
    return Pack(files, version, ceilings.provenance if ceilings else "")


def digest(data: bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def _present(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """Those of some files that are there, with their hashes; what is no ordinary file is nobody's."""
    found = {}
    for name in dict.fromkeys(names):
        path = folder / name
        if os.path.lexists(path):
            found[name] = digest(path.read_bytes()) if path.is_file() and not path.is_symlink() else _NO_FILE
    return found


def plan(folder: Path, pack: Pack, *, force: bool = False) -> Change:
    """What deploying the pack would do; with ``force`` also to files of ours that were changed.

    Raises RooflineError where a file of the same name is not ours.
    """
    ours = (read_manifest(folder) or Manifest()).files
    there = _present(folder, [*pack.files, *ours])
    unchanged = [name for name, data in pack.files.items() if there.get(name) == digest(data)]
    others = [name for name in there if name not in unchanged]
    for name in others:
        if name not in ours:
            next_step = "Move that file away, or install elsewhere with --dest DIR."
            raise RooflineError("Cannot install over", folder / name, "the file is not one that was installed", next_step)
    kept = [name for name in others if there[name] == _NO_FILE or (there[name] != ours[name] and not force)]
    gone = [name for name in others if name not in pack.files and name not in kept]
    needed = [name for name in gone if name.startswith(HELPER) and any(one.endswith(".py") for one in kept)]
    written = [name for name in pack.files if name not in unchanged and name not in kept]
    return Change(folder, *map(tuple, (written, unchanged, [name for name in gone if name not in needed], kept, needed)))


def deploy(
    machine: Machine, folder: Path, pack: Pack, prove: Callable[[], None] = lambda: None, *, force: bool = False
) -> Change:
    """Put the pack into ``folder``; where that fails, or ``prove`` raises, all of ours is taken away.  Raises RooflineError."""
    with explained(
        "Cannot install into", folder, "Choose a folder that you may write to, with space on its disk, by --dest DIR."
    ):
        change, old = plan(folder, pack, force=force), read_manifest(folder)
        ours = old.files if old else {}
        # A file that was there before, byte for byte, without being ours stays somebody else's.
        files = {name: digest(data) for name, data in pack.files.items() if name in change.written or name in ours}
        files |= {name: ours[name] for name in (*change.kept, *change.needed)}
        created = old.created if old else not os.path.lexists(folder)
        manifest = Manifest(__version__, pack.ncu, pack.ceilings, dict(sorted(files.items())), created)
        if manifest == old and not change.written:
            prove()
            return change
        folder.mkdir(parents=True, exist_ok=True)
        _record(machine, folder, known=True)
        try:
            for name in (*change.written, *change.removed):
                (folder / name).unlink(missing_ok=True)
            document = {"schema": SCHEMA, "schema_version": 1, **manifest._asdict()}
            write_atomically(folder / MANIFEST, [json.dumps(document, indent=1).encode(), b"\n"], overwrite=True)
            for name in change.written:
                write_atomically(folder / name, [pack.files[name]], overwrite=False)
            prove()
        except BaseException:
            remove(machine, folder)
            raise
        for part in matching(folder, f".*{PART}"):  # what a killed installation left half-written
            part.unlink()
    return change


def remove(machine: Machine, folder: Path, *, dry_run: bool = False) -> Change:
    """Take away what was installed into ``folder``, and what a killed installation left.  Raises RooflineError."""
    with explained("Cannot uninstall from", folder, "Make the folder writable, then uninstall again."):
        manifest = read_manifest(folder) or Manifest()
        there = _present(folder, manifest.files)
        removed = tuple(name for name, found in there.items() if found == manifest.files[name])
        if not dry_run:
            for path in (*matching(folder, f".*{PART}"), *(folder / name for name in (*removed, MANIFEST))):
                path.unlink(missing_ok=True)
            # Python files leave compiled ones beside them where something other than ncu imports them.
            _remove_empty([folder / "__pycache__", *([folder] if manifest.created else [])])
            _record(machine, folder, known=False)
    return Change(folder, (), (), removed, tuple(name for name in there if name not in removed))


def prove(machine: Machine, ncu: Ncu, folder: Path, names: Sequence[str], *, searched: bool) -> None:
    """Have ncu list every section and rule of ``names`` from ``folder``.  Raises RooflineError naming the first it does not.

    ``searched``: it finds the folder by itself; else it is told.
    """
    for what, suffix in (("sections", ".section"), ("rules", ".py")):
        wanted = [folder / name for name in names if name.endswith(suffix) and not name.startswith(HELPER)]
        listing = list_files(machine, ncu, what, None if searched else folder)
        listed = {os.path.realpath(file) for _, file in listing.entries}
        absent = next((path for path in wanted if os.path.realpath(path) not in listed), None)
        if absent is None:
            continue
        text = absent.read_text(encoding="utf-8", errors="replace")
        reasons = [error for file, error in listing.errors.items() if os.path.realpath(file) == os.path.realpath(absent)]
        reasons += [f"{file} has the same identifier, {name}" for name, file in listing.entries if f'"{name}"' in text]
        reasons += [*listing.messages.splitlines()[-1:], "it says no reason"]
        where = f"{ncu.path} (Nsight Compute {ncu.version}) does not list it among its {what}: {reasons[0]}"
        next_step = "What was installed there was taken away; try another release with --ncu PATH, or --dest DIR."
        raise RooflineError("Cannot install", absent, where, next_step)


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest of a folder; None if there is none.  Raises RooflineError for one that can't be understood."""
    path = folder / MANIFEST
    try:
        if path.is_symlink() or (path.exists() and not path.is_file()):
            raise ValueError("it is no ordinary file")
        document = json.loads(read_file(path, _MOST_BYTES))
        ours = isinstance(document, dict) and (document.get("schema"), document.get("schema_version")) == (SCHEMA, 1)
        files = document.get("files") if ours else None
        name, value = re.compile(r"\w[\w.-]*", re.ASCII), re.compile("[0-9a-f]{64}")  # no path, no device
        if not isinstance(files, dict) or not all(name.fullmatch(one) and value.fullmatch(str(files[one])) for one in files):
            raise ValueError("it is no manifest of this program, or of a later version of it")
        version, ncu, ceilings = (str(document[key]) for key in ("version", "ncu", "ceilings"))
        return Manifest(version, ncu, ceilings, files, bool(document.get("created")))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, KeyError, RecursionError) as error:
        reason = (error.strerror if isinstance(error, OSError) else "") or str(error)
        next_step = "Remove it, and the files named NcuRoofline*.py and *Roofline*.section beside it that are not yours."
        raise RooflineError("Cannot read the manifest", path, reason, next_step) from error


def known_folders(machine: Machine) -> list[Path]:
    """Every folder that holds a deployment: those recorded and those found among the user's documents."""
    found = recorded_folders(machine)
    if machine.documents:
        found += matching(machine.documents / VENDOR_FOLDER, "*/Sections")
    return [folder for folder in dict.fromkeys(found) if os.path.exists(folder / MANIFEST)]


def recorded_folders(machine: Machine) -> list[Path]:
    """The folders recorded among the user's data."""
    try:
        names = json.loads((machine.data / "folders.json").read_bytes())
    except (OSError, ValueError):
        return []
    return [Path(name) for name in names if isinstance(name, str)] if isinstance(names, list) else []


def _record(machine: Machine, folder: Path, *, known: bool) -> None:
    """Remember a folder, or forget it; the list disappears with the last one."""
    before = recorded_folders(machine)
    folders = [one for one in before if one != folder] + ([folder] if known else [])
    if folders and folders != before:
        _put_data(machine.data / "folders.json", json.dumps(list(map(os.fspath, folders)), indent=1).encode())
    if not folders:
        with suppress(OSError):
            (machine.data / "folders.json").unlink()
        _tidy(machine)


def _put_data(path: Path, data: bytes | None) -> None:
    """Write a file of the user's data, or without ``data`` make that folder.  Raises RooflineError."""
    with explained("Cannot write", path, "Make your home folder writable, or set XDG_DATA_HOME to a folder that is."):
        (path if data is None else path.parent).mkdir(parents=True, exist_ok=True)
    if data is not None:
        write_atomically(path, [data], overwrite=True)


def _tidy(machine: Machine) -> None:
    """Remove our data folder if it is empty, and what is then empty around it."""
    around = [machine.data, *machine.data.parents[:2]]
    _remove_empty(folder for folder in around if machine.home and machine.home in folder.parents)


def _remove_empty(folders: Iterable[Path]) -> None:
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()


@contextmanager
def one_at_a_time(machine: Machine, *, create: bool = True) -> Iterator[None]:
    """Keep other installations of this user waiting (a job may start one per rank), where the system can do that.

    They wait at our data folder; with ``create`` it is made where it is missing.  Raises RooflineError where it can't be.
    """
    handle = None
    with suppress(ImportError, OSError):
        import fcntl

        if create:
            _put_data(machine.data, None)
        handle = os.open(machine.data, os.O_RDONLY)
        fcntl.flock(handle, fcntl.LOCK_EX)
    try:
        yield
    finally:
        _tidy(machine)
        if handle is not None:
            os.close(handle)


def keep(machine: Machine, path: str | Path) -> Ceilings:
    """Keep a ceilings file for its GPU in place of an earlier one; returns what is kept.  Raises RooflineError."""
    ceilings = read_ceilings(path)
    target = _place(machine, ceilings.device, ceilings.uuid)
    if Path(path).resolve() == target.resolve():
        return ceilings
    with explained("Cannot keep", path, "Give the name of an ordinary file."):  # a pipe gives everything once
        data = read_file(path, MOST_BYTES)
    _put_data(target, data)
    return read_ceilings(target)


def folder(machine: Machine) -> Path:
    """Where ceilings are kept."""
    return machine.data / "ceilings"


def kept(machine: Machine) -> list[Ceilings]:
    """All ceilings kept that can be read, by file name."""
    return [one for one in map(_readable, matching(folder(machine), "*.json")) if one]


def kept_for(machine: Machine, gpu: Gpu) -> Ceilings | None:
    """The ceilings kept for this very GPU (name and UUID), None if there are none."""
    return _readable(_place(machine, gpu.name, gpu.uuid))


def _readable(path: Path) -> Ceilings | None:
    try:
        return read_ceilings(path) if os.path.isfile(path) else None
    except RooflineError:
        return None


def _place(machine: Machine, device: str, uuid: str) -> Path:
    words = re.findall(r"[A-Za-z0-9]+", f"{device.replace('NVIDIA', '')} {uuid.removeprefix('GPU-')}")
    return folder(machine) / f"{'-'.join(words)}.json"


def forget_ceilings(machine: Machine) -> list[Path]:
    """Remove all ceilings kept; returns their paths.  Raises RooflineError."""
    paths = matching(folder(machine), "*.json")
    with explained("Cannot remove", folder(machine), "Remove it by hand."):
        for path in paths:
            path.unlink()
    _remove_empty([folder(machine)])
    _tidy(machine)
    return paths
