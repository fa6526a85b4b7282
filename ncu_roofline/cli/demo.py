"""`ncu-roofline demo`: the bundled sample reports, rendered as a gallery."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import Any

from ncu_roofline.base.errors import RooflineError, UsageError
from ncu_roofline.cli.gallery import CEILINGS, GALLERY, INDEX, PLATFORMS, REPORT, Exhibit, index_page
from ncu_roofline.cli.options import choice, flag, option
from ncu_roofline.cli.outputs import (
    STANDARD_OUTPUT,
    check_output,
    progress,
    say,
    terminal_width,
    write_output,
    write_text,
)
from ncu_roofline.rendering.table import command_lines, wrapped

__all__ = ["CEILINGS", "PLATFORMS", "REPORT", "Request", "run"]
_NARROWEST = 80  # characters; below, the table of the demo is no picture of what `show` prints
WRITTEN = ".ncu-roofline-demo"
"""In the folder: the digests of what runs of the demo wrote there, as `sha256sum` has them."""


class _Folder:
    """Where the demo writes: over files that are as it wrote them before, over others only with ``force``."""

    def __init__(self, folder: Path, force: bool) -> None:
        self._folder, self._force = folder, force
        self._written = self._read(WRITTEN).decode("ascii", "replace").splitlines()

    def check(self, names: Sequence[str]) -> None:
        """Raise RooflineError before the work if a file is in the way; tell if there is an earlier run."""
        for name in names:
            check_output(str(self._folder / name), self._may(name), ())
        if any((self._folder / name).exists() for name in names):
            say(f"Overwriting the files of an earlier run in {self._folder}")

    def write(self, name: str, data: bytes) -> None:
        """Write a file, noted before: the next run knows it even where this one ends here.  Raises RooflineError."""
        may, line = self._may(name), _line(name, data)
        if line not in self._written:
            self._written.append(line)
            noted = "".join(f"{one}\n" for one in self._written)
            write_output(str(self._folder / WRITTEN), noted.encode("ascii", "replace"), force=True)
        write_output(str(self._folder / name), data, may)

    def _may(self, name: str) -> bool:
        return self._force or _line(name, self._read(name)) in self._written

    def _read(self, name: str) -> bytes:
        with suppress(OSError):
            return (self._folder / name).read_bytes()
        return b""


def _line(name: str, data: bytes) -> str:
    return f"{sha256(data).hexdigest()}  {name}"


@dataclass(frozen=True, kw_only=True)
class Request:
    """Where to write to, and what."""

    out: str = option("folder to write to (default: %(default)s)", "DIR", short="-o", default="ncu-roofline-demo")
    only: str | None = choice("one part of the gallery instead of all", tuple(GALLERY), default=None)
    force: bool = flag("overwrite files that are not as an earlier run wrote them, too")


def run(request: Request) -> int:
    """Copy the samples into the folder, render them there, and say what is what."""
    if request.out == STANDARD_OUTPUT:
        raise UsageError("Cannot write to", "standard output", "the gallery is a folder of files", "Name a folder with --out.")
    folder = Path(request.out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or str(error)
        raise RooflineError("Cannot write", folder, reason, "Choose another folder with --out.") from error
    exhibits = [GALLERY[request.only]] if request.only else list(GALLERY.values())
    index = [] if request.only else [INDEX]
    place = _Folder(folder, request.force)
    place.check([*(name for one in exhibits for name in one.files), *index])
    sample = resources.files("ncu_roofline") / "data" / "demo"
    for name in (name for one in exhibits for name in one.samples):
        place.write(name, (sample / name).read_bytes())
    text = _draw(exhibits, folder, place)
    if index:
        place.write(INDEX, index_page(exhibits, lambda one: list(_commands(one, ""))))
    write_text("\n".join([text, *_told(exhibits, folder, bool(index))]))
    return 0


def _draw(exhibits: Sequence[Exhibit], folder: Path, place: _Folder) -> str:
    """Everything but the samples; returns the first of them as text for the terminal."""
    from ncu_roofline.analyses import render

    frames: dict[str, Any] = {}
    todo = [(one, name, output_format) for one in exhibits for name, output_format in one.drawn.items()]
    for one, name, output_format in progress(todo, "drawing", len(todo)):
        if one.title not in frames:
            frames[one.title] = one.frames(folder)
        place.write(name, render(frames[one.title], output_format, title=one.title))
    return render(frames[exhibits[0].title], "text", width=_width()).decode().rstrip()


def _width() -> int:
    return max(terminal_width(100), _NARROWEST)


def _commands(one: Exhibit, folder: str) -> Iterator[str]:
    """What to type next, as a shell takes it; ``folder`` is "" for the one where it is typed."""
    before = f"{shlex.quote(folder)}/" if folder else ""
    return (f"ncu-roofline {line.replace('{}', before)}" for line in one.next_steps)


def _told(exhibits: Sequence[Exhibit], folder: Path, indexed: bool) -> Iterator[str]:
    """What is where, and what to type next."""
    for one in exhibits:
        yield f"\n{one.title}"
        yield textwrap.fill(one.see, _width(), initial_indent="  ", subsequent_indent="  ")
        yield from wrapped(", ".join(str(folder / name) for name in one.drawn), _width(), "  ", first="  ", whole=True)
        yield from (line for command in _commands(one, str(folder)) for line in command_lines(command, _width(), "  try: "))
    if indexed:
        yield f"\nAll of it on one page: open {folder / INDEX} in a browser."
