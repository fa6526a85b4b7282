"""The demo's gallery: what is drawn from which of the package's reports, what to see, and the page that leads to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

INDEX = "index.html"
REPORT = "gpp-v100.ncu-rep"
CEILINGS = "gpp-v100-ceilings.json"
PLATFORMS = "gpp-platforms.csv"
_SWEEP = tuple(f"gpp-h100-nw{step}.ncu-repz" for step in range(1, 7))
_GEMM, _BASIC = "gemm-made-up.ncu-repz", "basic-set-made-up.ncu-repz"
_SOURCE = "smooth-made-up.ncu-repz"
_STATES = ("stencil-before-made-up.ncu-repz", "stencil-after-made-up.ncu-repz")


@dataclass(frozen=True)
class Exhibit:
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


def _roofline(*names: str, **options: Any) -> Callable[[Path], Any]:
    def frames(folder: Path) -> Any:
        from ncu_roofline.model import roofline

        return roofline([folder / name for name in names], **options)

    return frames


def _published(folder: Path) -> Any:
    from ncu_roofline.model import roofline

    return roofline(folder / REPORT, folder / CEILINGS)


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
        _published,
        (f"show {{}}{REPORT} --ceilings {{}}{CEILINGS}", f"portability {{}}{PLATFORMS}"),
    ),
    "gemm": Exhibit(
        "Tensor GEMMs counted by opcodes (made-up counts)",
        "No counter of this report knows the work of the tensor cores, but the executed opcodes do: the square GEMM is "
        "limited by them, the skinny one by DRAM.",
        (_GEMM,),
        {"gemm.html": "html", "gemm.png": "png"},
        _roofline(_GEMM, by="kernel"),
        (f"show {{}}{_GEMM}",),
    ),
    "basic": Exhibit(
        "A report of --set basic (made-up numbers)",
        "Nobody counted operations or bytes, so there are no dots; how busy the hardware was still says what limits each "
        "kernel, and explain says what to collect.",
        (_BASIC,),
        {"basic-set.html": "html", "basic-set.png": "png"},
        _roofline(_BASIC, by="kernel"),
        (f"explain {{}}{_BASIC}",),
    ),
    "sweep": Exhibit(
        "GPP on an H100 with 1 to 6 frequencies: a sweep",
        "Measured by the authors of this program: each arrow is one more frequency, which does more work on the same "
        "data, until the FP64 units limit the kernel.",
        _SWEEP,
        {"sweep.html": "html", "sweep.svg": "svg"},
        _roofline(*_SWEEP, trajectory=True),
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

_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
h2 { font-size: 1.25rem; margin: 0; }
section { display: grid; grid-template-columns: minmax(0, 2fr) minmax(0, 3fr); gap: 0 2rem; margin: 2.5rem 0; }
img { width: 100%; background: #fff; border: 1px solid #8888; box-sizing: border-box; }
code { overflow-wrap: anywhere; }
@media (max-width: 50rem) { section { display: block; } }
"""
# Pictures are the files beside the page; nothing else is loaded, and no script runs.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src 'self' file:; base-uri 'none'; form-action 'none'"
_PICTURES = ("png", "svg")


def index_page(exhibits: Sequence[Exhibit], commands: Callable[[Exhibit], Sequence[str]]) -> bytes:
    """The page that leads to all of them; ``commands`` gives the lines to type."""
    sections = "\n".join(_section(one, commands(one)) for one in exhibits)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>ncu-roofline: gallery</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>ncu-roofline: gallery</h1>
<p>What the program draws from reports of Nsight Compute, without a GPU. All files are beside this page.</p>
{sections}
</body>
</html>
""".encode()


def _section(one: Exhibit, commands: Sequence[str]) -> str:
    links = " · ".join(f'<a href="{escape(name)}">{escape(name)}</a>' for name in one.drawn)
    typed = "<br>".join(f"<code>{escape(line)}</code>" for line in commands)
    picture = next(name for name, output_format in one.drawn.items() if output_format in _PICTURES)
    first = next(iter(one.drawn))
    image = f'<a href="{escape(first)}"><img src="{escape(picture)}" alt="{escape(one.title)}" loading="lazy"></a>'
    words = f"<h2>{escape(one.title)}</h2><p>{escape(one.see)}</p><p>{links}</p><p>In this folder:<br>{typed}</p>"
    return f"<section>\n<div>{words}</div>\n{image}\n</section>"
