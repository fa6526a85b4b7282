"""`ncu-roofline demo`: the bundled sample report, rendered."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from ncu_roofline.cli.options import flag, option
from ncu_roofline.cli.outputs import check_output, terminal_width, write_output, write_text
from ncu_roofline.errors import RooflineError

REPORT = "gpp-v100.ncu-rep"
CEILINGS = "gpp-v100-ceilings.json"
PLATFORMS = "gpp-platforms.csv"
SAMPLES = (REPORT, CEILINGS, PLATFORMS)
PICTURES = {"roofline.html": "html", "roofline.png": "png", "roofline.txt": "text"}


@dataclass(frozen=True, kw_only=True)
class Request:
    """Where to write to."""

    out: str = option("folder to write to (default: %(default)s)", "DIR", short="-o", default="ncu-roofline-demo")
    force: bool = flag("overwrite files of an earlier run")


def run(request: Request) -> int:
    """Copy the sample into the folder, render it there, and say what is what."""
    from ncu_roofline.analyses import render, text_table
    from ncu_roofline.ceilings import read_ceilings
    from ncu_roofline.model import roofline

    folder = Path(request.out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or str(error)
        raise RooflineError("Cannot write", folder, reason, "Choose another folder with --out.") from error
    for name in (*SAMPLES, *PICTURES):
        check_output(str(folder / name), request.force, ())
    sample = resources.files("ncu_roofline") / "data" / "demo"
    for name in SAMPLES:
        write_output(str(folder / name), (sample / name).read_bytes(), request.force)
    result = roofline(folder / REPORT, read_ceilings(folder / CEILINGS))
    title = "GPP on a V100: the published hierarchical roofline"
    for name, output_format in PICTURES.items():
        write_output(str(folder / name), render(result, output_format, title=title), request.force)
    lines = [
        text_table(result, width=max(terminal_width(100), 80)),
        f"\nThe GPP kernel on a V100, nw = 1 to 6, as published by Yang, Kurth and Williams (2019); written to {folder}:",
        f"  {folder / 'roofline.html'}   interactive page: open it in a browser",
        f"  {folder / 'roofline.png'}    the same as a picture; roofline.txt as text",
        f"  {folder / REPORT}   the report; try: ncu-roofline show {folder / REPORT}",
        f"  {folder / PLATFORMS}   the same kernel on two machines; try: ncu-roofline portability {folder / PLATFORMS}",
    ]
    write_text("\n".join(lines))
    return 0
