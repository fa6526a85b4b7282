"""Temporary folders: gone at the end, and a sentence where there is no room for them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from ncu_roofline.base.errors import RooflineError


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
    prefix = f"{'.' if hidden else ''}ncu-roofline-"
    with tempfile.TemporaryDirectory(dir=place, prefix=prefix, ignore_cleanup_errors=True) as name:
        yield Path(name)


def no_room(error: OSError) -> RooflineError:
    """The sentence where a temporary file can't be written."""
    place, next_step = tempfile.tempdir or "temporary files", "Set TMPDIR to a folder with space that you may write to."
    return RooflineError("Cannot write", place, error.strerror or str(error), next_step)
