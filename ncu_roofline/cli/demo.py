"""`ncu-roofline demo`: the bundled sample reports, rendered as a gallery."""

from __future__ import annotations

import shlex
import textwrap
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any, NamedTuple

from ncu_roofline.base.errors import UsageError, explained
from ncu_roofline.base.files import REPORT_SUFFIXES
from ncu_roofline.chips.fields import DATA, read
from ncu_roofline.cli.outputs import STANDARD_OUTPUT, check_output, progress, say, terminal_width, write_output, write_text


class Exhibit(NamedTuple):
    """A part of the gallery: a row of `data/gallery.toml`."""

    title: str
    see: str
    samples: tuple[str, ...]
    drawn: dict[str, str]
    next_steps: tuple[str, ...]
    view: str = "roofline"
    by: str = "launch"
    trajectory: bool = False

    @property
    def files(self) -> tuple[str, ...]:
        """Everything that it writes."""
        return (*self.samples, *self.drawn)

    def frames(self, folder: Path) -> Any:
        """What is drawn, of its samples in a folder."""
        paths = [folder / name for name in self.samples]
        if self.view == "comparison":
            from ncu_roofline.analyses.compare.frames import compare

            return compare(*paths)
        if self.view == "source":
            from ncu_roofline.analyses.source.build import source_roofline

            return source_roofline(paths[0], label=paths[0].name)
        from ncu_roofline.model import roofline

        reports, ceilings = ([path for path in paths if path.suffix in kinds] for kinds in (REPORT_SUFFIXES, (".json",)))
        return roofline(reports, ceilings, by=self.by, trajectory=self.trajectory)


GALLERY = read(DATA / "gallery.toml", dict[str, Exhibit])


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
    todo = [(one, name, output_format) for one in exhibits for name, output_format in one.drawn.items()]
    # Below 80 characters the table of the demo is no picture of what `show` prints.
    width = max(terminal_width(100), 80)
    samples = DATA / "demo"
    made = {name: (samples / name).read_bytes() for one in exhibits for name in one.samples}
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
