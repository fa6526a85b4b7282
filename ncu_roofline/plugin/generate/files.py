"""Generated files on disk: compared with what would be written, or written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.files import HELPER, read_file, write_atomically
from ncu_roofline.plugin.generate.environment import GENERATED

_SUFFIXES = (".section", ".py")
_MARKED_LINES = 3
_MOST_BYTES = 100_000_000


def differences(folder: Path, texts: Mapping[str, str]) -> list[str]:
    """What is not as it would be generated: "path: reason" for each file that differs, is missing, or is left over."""
    found = []
    for name, text in texts.items():
        present = _read(folder / name)
        if present != text.encode():
            found.append(f"{folder / name}: {'is missing' if present is None else 'differs from what is generated'}")
    return found + [f"{path}: is generated no more; delete it" for path in _left_over(folder, texts)]


def write_files(folder: Path, texts: Mapping[str, str], *, force: bool) -> list[Path]:
    """Write the files whose content changes, and take away the helper of rules that were there before; returns all paths.

    Raises RooflineError, before anything is written, if a file of that name was not generated (unless ``force``), or if the
    folder can't be made or read.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or str(error)
        raise RooflineError("Cannot write to", folder, reason, "Choose another folder with --out.") from error
    present = {name: _read(folder / name) for name in texts}
    for name, content in present.items():
        if content is not None and not _is_generated(content) and not force:
            reason = "the file exists and was not generated"
            raise RooflineError("Cannot write", folder / name, reason, "Choose another folder or add --force to overwrite it.")
    former = _former_helpers(folder, texts)
    for name, text in texts.items():
        if present[name] != text.encode():
            write_atomically(folder / name, [text.encode()], overwrite=True)
    for path in former:
        _remove(path)
    return [folder / name for name in texts]


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        reason = error.strerror or str(error)
        raise RooflineError("Cannot remove", path, reason, "Remove it by hand; no rule here imports it.") from error


def _former_helpers(folder: Path, texts: Mapping[str, str]) -> list[Path]:
    """Helpers of rules that were here before, which no other file here imports."""
    others = [path for path in _listed(folder) if path.suffix == ".py" and path.is_file() and path.name not in texts]
    helpers = [path for path in others if path.name.startswith(HELPER) and _is_generated(_read(path) or b"")]
    users = [_read(path) or b"" for path in others if path not in helpers] if helpers else []
    return [path for path in helpers if not any(path.stem.encode() in user for user in users)]


def _left_over(folder: Path, texts: Mapping[str, str]) -> Iterator[Path]:
    for path in _listed(folder) if folder.is_dir() else ():
        content = _read(path) if path.suffix in _SUFFIXES and path.is_file() and path.name not in texts else None
        if content is not None and _is_generated(content):
            yield path


def _listed(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError as error:
        reason = error.strerror or str(error)
        raise RooflineError("Cannot read", folder, reason, "Choose another folder with --out.") from error


def _is_generated(content: bytes) -> bool:
    return any(GENERATED.encode() in line for line in content.splitlines()[:_MARKED_LINES])


def _read(path: Path) -> bytes | None:
    """The content; None if there is no such file.  Raises RooflineError if it can't be read."""
    try:
        return read_file(path, _MOST_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        reason = error.strerror or str(error)
        raise RooflineError("Cannot read", path, reason, "Choose another folder with --out.") from error
