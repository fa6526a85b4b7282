"""`ncu-roofline demo`: the bundled sample reports, rendered as a gallery."""

from __future__ import annotations

import shlex
import textwrap
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from ncu_roofline.base.errors import UsageError, explained
from ncu_roofline.cli.outputs import STANDARD_OUTPUT, check_output, progress, say, terminal_width, write_output, write_text

REPORT = "gpp-v100.ncu-rep"
CEILINGS = "gpp-v100-ceilings.json"
PLATFORMS = "gpp-platforms.csv"
_SWEEP = tuple(f"gpp-h100-nw{step}.ncu-repz" for step in range(1, 7))
_GEMM, _BASIC = "gemm-made-up.ncu-repz", "basic-set-made-up.ncu-repz"
_SOURCE, _MENDED = "smooth-made-up.ncu-repz", "smooth-after-made-up.ncu-repz"
_STATES = ("stencil-before-made-up.ncu-repz", "stencil-after-made-up.ncu-repz")


class Exhibit(NamedTuple):
    """A part of the gallery: a sentence what to ``see``.

    ``samples`` are files of the package, ``drawn`` those made of them by name, with their formats; ``frames`` is what they
    show, from the samples in a folder; ``next_steps`` are commands to type, {} stands before the name of a file.
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


def _roofline(paths: list[Path], **options: Any) -> Any:
    from ncu_roofline.model import roofline

    return roofline(paths, **options)


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
        " and its FMA-mix ceiling limits it.",
        (REPORT, CEILINGS, PLATFORMS),
        {"roofline.html": "html", "roofline.png": "png", "roofline.txt": "text"},
        lambda folder: _roofline([folder / REPORT], ceilings=folder / CEILINGS),
        (f"show {{}}{REPORT} --ceilings {{}}{CEILINGS}", f"portability {{}}{PLATFORMS}"),
    ),
    "gemm": Exhibit(
        "Tensor GEMMs counted by opcodes (made-up counts)",
        "No counter of this report gives the tensor FLOPs, but the executed opcodes do: the square GEMM is "
        "limited by them, the skinny one by DRAM.",
        (_GEMM,),
        {"gemm.html": "html", "gemm.png": "png"},
        lambda folder: _roofline([folder / _GEMM], by="kernel"),
        (f"show {{}}{_GEMM}",),
    ),
    "basic": Exhibit(
        "A report of --set basic (made-up numbers)",
        "Operations and bytes were not collected, so there are no dots; the utilization of the units still shows what limits "
        "each kernel, and explain says what to collect.",
        (_BASIC,),
        {"basic-set.html": "html", "basic-set.png": "png"},
        lambda folder: _roofline([folder / _BASIC], by="kernel"),
        (f"explain {{}}{_BASIC}",),
    ),
    "sweep": Exhibit(
        "GPP on an H100 with 1 to 6 frequencies: a sweep",
        "Measured by the authors of this program: each arrow is one more frequency, which does more work on the same "
        "data, until the FP64 units limit the kernel.",
        _SWEEP,
        {"sweep.html": "html", "sweep.svg": "svg"},
        lambda folder: _roofline([folder / name for name in _SWEEP], trajectory=True),
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
        "double by accident.  `ncu-roofline guide tutorial` mends both.",
        (_SOURCE, _MENDED),
        {"source.html": "html", "source.png": "png", "source.txt": "text"},
        _lines,
        (f"source {{}}{_SOURCE}", f"compare {{}}{_SOURCE} {{}}{_MENDED}"),
    ),
}


def add_demo(parser: ArgumentParser) -> None:
    """Where to write to, and what."""
    about = "folder to write to (default: %(default)s)"
    parser.add_argument("-o", "--out", metavar="DIR", default="ncu-roofline-demo", help=about)
    parser.add_argument("--only", choices=tuple(GALLERY), help="one part of the gallery instead of all")
    parser.add_argument("--force", action="store_true", help="overwrite files that are not as the demo writes them, too")


def run_demo(args: Namespace) -> int:
    """Copy the samples into the folder, render them there, and say what is what."""
    from ncu_roofline.analyses import render
    from ncu_roofline.rendering.table import command_lines, wrapped

    if args.out == STANDARD_OUTPUT:
        raise UsageError("Cannot write to", "standard output", "the gallery is a folder of files", "Name a folder with --out.")
    folder = Path(args.out)
    with explained("Cannot write", folder, "Choose another folder with --out."):
        folder.mkdir(parents=True, exist_ok=True)
    exhibits = [GALLERY[args.only]] if args.only else list(GALLERY.values())
    made: dict[str, bytes] = {}
    todo = [(one, name, output_format) for one in exhibits for name, output_format in one.drawn.items()]
    # Below 80 characters the table of the demo is no picture of what `show` prints.
    width = max(terminal_width(100), 80)
    with resources.as_file(resources.files("ncu_roofline") / "data" / "demo") as samples:
        made |= {name: (samples / name).read_bytes() for one in exhibits for name in one.samples}
        frames = {one.title: one.frames(samples) for one in exhibits}
        for one, name, output_format in progress(todo, "drawing", len(todo)):
            made[name] = render(frames[one.title], output_format, title=one.title)
        text = render(frames[exhibits[0].title], "text", width=width).decode().rstrip()
    there = [name for name in made if (folder / name).exists()]
    for name, data in made.items():
        ours = name in there and (folder / name).is_file() and (folder / name).read_bytes() == data
        check_output(str(folder / name), args.force or ours, ())
    if there:
        say(f"Overwriting the files of an earlier run in {folder}")
    for name, data in made.items():
        write_output(str(folder / name), data, force=True)
    lines = [text]
    for one in exhibits:  # what is where, and what to type next
        lines += [f"\n{one.title}", textwrap.fill(one.see, width, initial_indent="  ", subsequent_indent="  ")]
        lines += wrapped(", ".join(str(folder / name) for name in one.drawn), width, "  ", first="  ", whole=True)
        for line in one.next_steps:
            command = f"ncu-roofline {line.replace('{}', f'{shlex.quote(str(folder))}/')}"
            lines += command_lines(command, width, "  try: ")
    write_text("\n".join(lines))
    return 0
