"""`ncu-roofline demo`: the bundled sample reports, rendered as a gallery."""

from __future__ import annotations

import shlex
import textwrap
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from ncu_roofline.base.errors import RooflineError, UsageError
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

_NARROWEST = 80  # characters; below, the table of the demo is no picture of what `show` prints
WRITTEN = ".ncu-roofline-demo"
"""In the folder: the digests of what runs of the demo wrote there, as `sha256sum` has them."""


REPORT = "gpp-v100.ncu-rep"
CEILINGS = "gpp-v100-ceilings.json"
PLATFORMS = "gpp-platforms.csv"
_SWEEP = tuple(f"gpp-h100-nw{step}.ncu-repz" for step in range(1, 7))
_GEMM, _BASIC = "gemm-made-up.ncu-repz", "basic-set-made-up.ncu-repz"
_SOURCE = "smooth-made-up.ncu-repz"
_STATES = ("stencil-before-made-up.ncu-repz", "stencil-after-made-up.ncu-repz")


class Exhibit(NamedTuple):
    """A part of the gallery.

    ``see`` is a sentence; ``samples`` are files of the package, ``drawn`` those made of them by name, with their formats;
    ``frames`` is what they show, from the samples in a folder; ``next_steps`` are commands to type, {} stands before the name
    of a file.
    """

    title: str
    see: str
    samples: tuple[str, ...]
    drawn: Mapping[str, str]
    frames: Callable[[Path], Any]
    next_steps: tuple[str, ...]

    @property
    def files(self) -> tuple[str, ...]:
        """Everything that it writes."""
        return (*self.samples, *self.drawn)


def _roofline(*paths: Path, **options: Any) -> Any:
    from ncu_roofline.model import roofline

    return roofline(list(paths), **options)


def _compared(folder: Path) -> Any:
    from ncu_roofline.analyses.compare.frames import compare

    return compare(*(folder / name for name in _STATES))


def _lines(folder: Path) -> Any:
    from ncu_roofline.analyses.source.build import source_roofline

    return source_roofline(folder / _SOURCE, label=_SOURCE)


GALLERY: dict[str, Exhibit] = {
    "gpp": Exhibit(
        "GPP on a V100: the published hierarchical roofline",
        "Figures of Yang, Kurth and Williams (2019): with more frequencies (nw = 1 to 6) the kernel leaves the DRAM roof,"
        " and what its mix of instructions can reach limits it.",
        (REPORT, CEILINGS, PLATFORMS),
        {"roofline.html": "html", "roofline.png": "png", "roofline.txt": "text"},
        lambda folder: _roofline(folder / REPORT, ceilings=folder / CEILINGS),
        (f"show {{}}{REPORT} --ceilings {{}}{CEILINGS}", f"portability {{}}{PLATFORMS}"),
    ),
    "gemm": Exhibit(
        "Tensor GEMMs counted by opcodes (made-up counts)",
        "No counter of this report knows the work of the tensor cores, but the executed opcodes do: the square GEMM is "
        "limited by them, the skinny one by DRAM.",
        (_GEMM,),
        {"gemm.html": "html", "gemm.png": "png"},
        lambda folder: _roofline(folder / _GEMM, by="kernel"),
        (f"show {{}}{_GEMM}",),
    ),
    "basic": Exhibit(
        "A report of --set basic (made-up numbers)",
        "Nobody counted operations or bytes, so there are no dots; how busy the hardware was still says what limits each "
        "kernel, and explain says what to collect.",
        (_BASIC,),
        {"basic-set.html": "html", "basic-set.png": "png"},
        lambda folder: _roofline(folder / _BASIC, by="kernel"),
        (f"explain {{}}{_BASIC}",),
    ),
    "sweep": Exhibit(
        "GPP on an H100 with 1 to 6 frequencies: a sweep",
        "Measured by the authors of this program: each arrow is one more frequency, which does more work on the same "
        "data, until the FP64 units limit the kernel.",
        _SWEEP,
        {"sweep.html": "html", "sweep.svg": "svg"},
        lambda folder: _roofline(*(folder / name for name in _SWEEP), trajectory=True),
        ("render {}gpp-h100-nw*.ncu-repz --trajectory -o sweep.pdf",),
    ),
    "compare": Exhibit(
        "Before and after tiling a stencil (made-up counts)",
        "Tiles keep bytes from DRAM: the stencil is faster and limited by FP64 now, another kernel got slower, and some "
        "are new or gone.",
        _STATES,
        {"comparison.html": "html", "comparison.png": "png", "comparison.md": "md"},
        _compared,
        ("compare " + " ".join(f"{{}}{name}" for name in _STATES),),
    ),
    "source": Exhibit(
        "Where in a kernel: loops and source lines (made-up counts)",
        "A report with source counters says which loop and which line has the time and the traffic: here a stride and a "
        "double by accident.",
        (_SOURCE,),
        {"source.html": "html", "source.png": "png", "source.txt": "text"},
        _lines,
        (f"source {{}}{_SOURCE}", f"source {{}}{_SOURCE} --by instruction"),
    ),
}


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


def add_options(parser: ArgumentParser) -> None:
    """Where to write to, and what."""
    about = "folder to write to (default: %(default)s)"
    parser.add_argument("-o", "--out", metavar="DIR", default="ncu-roofline-demo", help=about)
    parser.add_argument("--only", choices=tuple(GALLERY), help="one part of the gallery instead of all")
    about = "overwrite files that are not as an earlier run wrote them, too"
    parser.add_argument("--force", action="store_true", help=about)


def run(args: Namespace) -> int:
    """Copy the samples into the folder, render them there, and say what is what."""
    if args.out == STANDARD_OUTPUT:
        raise UsageError("Cannot write to", "standard output", "the gallery is a folder of files", "Name a folder with --out.")
    folder = Path(args.out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or str(error)
        raise RooflineError("Cannot write", folder, reason, "Choose another folder with --out.") from error
    exhibits = [GALLERY[args.only]] if args.only else list(GALLERY.values())
    place = _Folder(folder, args.force)
    place.check([name for one in exhibits for name in one.files])
    sample = resources.files("ncu_roofline") / "data" / "demo"
    for name in (name for one in exhibits for name in one.samples):
        place.write(name, (sample / name).read_bytes())
    text = _draw(exhibits, folder, place)
    write_text("\n".join([text, *_told(exhibits, folder)]))
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


def _told(exhibits: Sequence[Exhibit], folder: Path) -> Iterator[str]:
    """What is where, and what to type next."""
    for one in exhibits:
        yield f"\n{one.title}"
        yield textwrap.fill(one.see, _width(), initial_indent="  ", subsequent_indent="  ")
        yield from wrapped(", ".join(str(folder / name) for name in one.drawn), _width(), "  ", first="  ", whole=True)
        for line in one.next_steps:
            command = f"ncu-roofline {line.replace('{}', f'{shlex.quote(str(folder))}/')}"
            yield from command_lines(command, _width(), "  try: ")
