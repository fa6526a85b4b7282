"""Putting the pack into a folder and taking it away: nothing that is not ours is ever overwritten or removed."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.files import HELPER
from ncu_roofline.plugin.machine.machine import Machine
from ncu_roofline.plugin.machine.manifest import (
    MANIFEST,
    Manifest,
    changing,
    digest,
    forget,
    missing_folders,
    read_manifest,
    record,
    recover,
    remove_empty,
)
from ncu_roofline.plugin.machine.ncu import Listing, Ncu, list_files
from ncu_roofline.version import __version__

_NO_FILE = "no ordinary file"
_WRITABLE = "Choose a folder that you may write to, with space on its disk, by --dest DIR."


@dataclass(frozen=True)
class Pack:
    """What to deploy: ``files`` by name; ``ncu`` is the release they are for, ``ceilings`` where measured roofs come from."""

    files: Mapping[str, bytes]
    ncu: str = ""
    ceilings: str = ""


@dataclass(frozen=True)
class Change:
    """What a deployment does to its folder; ``kept`` are files of ours that somebody changed.

    ``needed`` are files of an earlier pack that stay for them: the helper that a changed rule imports.
    """

    folder: Path
    written: tuple[str, ...]
    unchanged: tuple[str, ...]
    removed: tuple[str, ...]
    kept: tuple[str, ...]
    needed: tuple[str, ...] = ()

    @property
    def any(self) -> bool:
        """Whether something is written or removed."""
        return bool(self.written or self.removed)


@dataclass(frozen=True)
class Removal:
    """What an uninstallation removes from a folder; ``kept`` are files of ours that somebody changed."""

    folder: Path
    removed: tuple[str, ...]
    kept: tuple[str, ...]
    unfinished: bool = False


def plan(folder: Path, pack: Pack, *, force: bool = False) -> Change:
    """What deploying the pack would do; with ``force`` also to files of ours that were changed.

    Raises RooflineError where a file of the same name is not ours.
    """
    manifest = read_manifest(folder)
    ours = manifest.files if manifest else {}
    written, unchanged, kept = [], [], []
    for name, data in pack.files.items():
        there = _digest_of(folder / name)
        if there == digest(data):
            unchanged.append(name)
        elif there and name not in ours:
            next_step = "Move that file away, or install elsewhere with --dest DIR."
            raise RooflineError("Cannot install over", folder / name, "the file is not one that was installed", next_step)
        elif there and there != ours[name] and not force:
            kept.append(name)
        else:
            written.append(name)
    gone = {name: there for name in ours if name not in pack.files and (there := _digest_of(folder / name))}
    kept += [name for name, there in gone.items() if there != ours[name] and (not force or there == _NO_FILE)]
    rules = [folder / name for name in kept if name.endswith(".py") and (folder / name).is_file()]
    changed = [path.read_text(encoding="utf-8", errors="replace") for path in rules]
    helpers = [name for name in gone if name.startswith(HELPER) and name not in kept]
    needed = [name for name in helpers if any(Path(name).stem in text for text in changed)]
    removed = [name for name in gone if name not in kept and name not in needed]
    return Change(folder, tuple(written), tuple(unchanged), tuple(removed), tuple(kept), tuple(needed))


def deploy(
    machine: Machine, folder: Path, pack: Pack, prove: Callable[[], None] = lambda: None, *, force: bool = False
) -> Change:
    """Put the pack into ``folder``; what ``prove`` raises undoes it.  Raises RooflineError, and then nothing has changed."""
    try:
        recover(folder)
        change = plan(folder, pack, force=force)
        manifest = _manifest(folder, pack, change)
        old = read_manifest(folder)
        if not change.any and manifest == old:
            prove()
            return change
        writes = {name: pack.files[name] for name in change.written}
        known = record(machine, folder)
        try:
            with changing(folder, {**writes, MANIFEST: manifest.data()}, change.removed):
                prove()
        except BaseException:
            if known:
                forget(machine, folder)
            raise
    except OSError as error:
        raise RooflineError("Cannot install into", folder, error.strerror or str(error), _WRITABLE) from error
    return change


def _manifest(folder: Path, pack: Pack, change: Change) -> Manifest:
    """The manifest after the change.  A file that was there before, byte for byte, without being ours stays somebody else's."""
    old = read_manifest(folder)
    ours = old.files if old else {}
    files = {name: digest(data) for name, data in pack.files.items() if name in change.written or name in ours}
    files |= {name: ours[name] for name in (*change.kept, *change.needed)}
    created = old.created if old else tuple(os.fspath(path) for path in missing_folders(folder))
    return Manifest(__version__, pack.ncu, pack.ceilings, dict(sorted(files.items())), created)


def remove(machine: Machine, folder: Path, *, dry_run: bool = False) -> Removal:
    """Take away what was installed into ``folder``, and what a killed installation left.  Raises RooflineError."""
    try:
        unfinished = recover(folder, dry_run=dry_run)
        manifest = read_manifest(folder)
        ours = manifest.files if manifest else {}
        there = {name: found for name in ours if (found := _digest_of(folder / name))}
        removed = [name for name, found in there.items() if found == ours[name]]
        kept = [name for name in there if name not in removed]
        if not dry_run:
            if manifest:
                _take_away(folder, [*removed, MANIFEST], manifest.created)
            forget(machine, folder)
    except OSError as error:
        next_step = "Make the folder writable, then uninstall again."
        raise RooflineError("Cannot uninstall from", folder, error.strerror or str(error), next_step) from error
    return Removal(folder, tuple(removed), tuple(kept), unfinished)


def _take_away(folder: Path, names: Sequence[str], created: Sequence[str]) -> None:
    with changing(folder, {}, names):
        pass
    with suppress(OSError):  # Python files leave compiled ones beside them where something other than ncu imports them
        (folder / "__pycache__").rmdir()
    remove_empty([Path(name) for name in created])


def prove(machine: Machine, ncu: Ncu, folder: Path, names: Sequence[str], *, searched: bool) -> None:
    """Have ncu list every section and rule of ``names`` from ``folder``.  Raises RooflineError naming the first it does not.

    ``searched``: it finds the folder by itself; else it is told.
    """
    for what, suffix in (("sections", ".section"), ("rules", ".py")):
        wanted = [name for name in names if name.endswith(suffix) and not name.startswith(HELPER)]
        listing = list_files(machine, ncu, what, None if searched else folder)
        listed = {os.path.realpath(file) for _, file in listing.entries}
        absent = [name for name in wanted if os.path.realpath(folder / name) not in listed]
        if not absent:
            continue
        reason = _why_unlisted(listing, folder / absent[0])
        where = f"{ncu.path} (Nsight Compute {ncu.version}) does not list it among its {what}: {reason}"
        next_step = (
            "Nothing was changed; try another release with --ncu PATH, --dest DIR, or --force if an installed file was edited."
        )
        raise RooflineError("Cannot install", folder / absent[0], where, next_step)


def _why_unlisted(listing: Listing, path: Path) -> str:
    """What ncu says about a file that it does not list: its error, another file of the same identifier, or its last message."""
    errors = {os.path.realpath(file): text for file, text in listing.errors.items()}
    if os.path.realpath(path) in errors:
        return errors[os.path.realpath(path)]
    text = path.read_text(encoding="utf-8", errors="replace")
    taken = [
        f"{file} has the same identifier, {identifier}" for identifier, file in listing.entries if f'"{identifier}"' in text
    ]
    return (taken or listing.messages.splitlines()[-1:] or ["it says no reason"])[0]


def _digest_of(path: Path) -> str:
    """The hash of a file, "" where there is none; what is no ordinary file is nobody's."""
    if path.is_symlink() or (path.exists() and not path.is_file()):
        return _NO_FILE
    try:
        return digest(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return ""
