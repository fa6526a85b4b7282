"""`ncu-roofline generate`: the sections and rules of the pack, from the specification."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from ncu_roofline.base.errors import UsageError
from ncu_roofline.base.files import pack_folder
from ncu_roofline.cli.outputs import check_unread, say, write_text

DEFAULT_TYPE = "fp16"


def add_options(parser: ArgumentParser) -> None:
    """What to generate, for whom and where."""
    about = "write DIR/sections and DIR/rules (default: the pack's own)"
    parser.add_argument("-o", "--out", metavar="DIR", default="", help=about)
    about = "for this Nsight Compute (default: what every release from 2020.3 loads)"
    parser.add_argument("--ncu", metavar="VERSION", default="", help=about)
    about = "draw these measured ceilings beside the theoretical roofs"
    parser.add_argument("--ceilings", metavar="FILE", default="", help=about)
    about = "measured roofs follow the clock that a kernel is profiled at"
    parser.add_argument("--clock-consistent", action="store_true", help=about)
    about = "source type of the tensor section with few passes (default: %(default)s)"
    parser.add_argument("--tensor", metavar="TYPE", default=DEFAULT_TYPE, help=about)
    about = "also draw the dots of this memory level, which stands aside: system (host memory)"
    parser.add_argument("--level", metavar="LEVEL", action="append", default=[], help=about)
    about = "write nothing; exit 1 and name every file that differs"
    parser.add_argument("--check", action="store_true", help=about)
    parser.add_argument("--force", action="store_true", help="overwrite files that were not generated")


def run(args: Namespace) -> int:
    """Write both folders, or with --check compare them; 1 if a file differs."""
    from ncu_roofline.plugin.generate.files import differences, write_files

    out = _folder(args)
    folders = {out / name: texts for name, texts in _render(args).items()}
    if args.check:
        wrong = [line for folder, texts in folders.items() for line in differences(folder, texts)]
        for line in wrong:
            say(f"ncu-roofline: {line}")
        if wrong:
            say("ncu-roofline: run `ncu-roofline generate` with the same options to bring them up to date")
            return 1
        write_text(f"{sum(map(len, folders.values()))} files in {out} are as generated")
        return 0
    for path in (folder / name for folder, texts in folders.items() for name in texts):
        check_unread(str(path), [args.ceilings] if args.ceilings else [])
    paths = [path for folder, texts in folders.items() for path in write_files(folder, texts, force=args.force)]
    write_text("\n".join(map(str, paths)))
    return 0


def _folder(args: Namespace) -> Path:
    """Where the two folders are.

    Files for one release or GPU never replace the general ones, and an installed package is no place to write to.
    """
    if args.out:
        return Path(args.out)
    general = pack_folder("sections").parent
    special = args.ncu or args.ceilings or args.level or args.tensor != DEFAULT_TYPE
    if special or (general.name == "data" and not args.check):
        reason = "files for one release or GPU do not replace the pack's" if special else "the installed pack is not changed"
        raise UsageError("Cannot generate into", general, reason, "Name a folder with --out.")
    return general


def _aside(args: Namespace) -> tuple[str, ...]:
    """Ids of the levels asked for.  Raises UsageError for one that is not drawn on args."""
    from ncu_roofline.chips import load_spec

    known = [level.id for level in load_spec().levels if level.on_request]
    for name in args.level:
        if name not in known:
            raise UsageError(
                "Cannot draw the level", name, f"those that stand aside are {', '.join(known)}", "Name one of them."
            )
    return tuple(args.level)


def _render(args: Namespace) -> dict[str, dict[str, str]]:
    """Everything is rendered before anything is written."""
    from ncu_roofline.cli.ceilings import check_named
    from ncu_roofline.formats.ceilings import CPU, read_ceilings
    from ncu_roofline.plugin.generate.lowering import BASE, dialect_of
    from ncu_roofline.plugin.generate.rules import render_rules
    from ncu_roofline.plugin.generate.sections import render_sections

    if not args.tensor:
        raise UsageError("Cannot count the tensor type", "''", "its name is empty", "Leave out --tensor, or name a type.")
    if args.clock_consistent and not args.ceilings:
        raise UsageError("Cannot use", "--clock-consistent", "there are no measured roofs", "Name them with --ceilings FILE.")
    check_named(args.ceilings, "it goes by the GPU of a report, and there is none here")
    dialect = dialect_of(args.ncu) if args.ncu else BASE
    ceilings = read_ceilings(args.ceilings) if args.ceilings else None
    if ceilings and ceilings.kind == CPU:
        say(f"ncu-roofline: {ceilings.path} holds ceilings of a CPU, which sections and rules for GPUs do not draw")
    sections = render_sections(
        dialect, ceilings, clock_consistent=args.clock_consistent, light_type=args.tensor, aside=_aside(args)
    )
    return {"sections": sections, "rules": render_rules(dialect, [ceilings] if ceilings else [])}
