"""`ncu-roofline generate`: the sections and rules of the pack, from the specification."""

from __future__ import annotations

import argparse
from pathlib import Path

from ncu_roofline import files as pack
from ncu_roofline.cli.outputs import say, write_text
from ncu_roofline.errors import UsageError

DEFAULT_TYPE = "fp16"


def run(args: argparse.Namespace) -> int:
    """Write both folders, or with --check compare them; 1 if a file differs."""
    from ncu_roofline.generate.files import differences, write_files

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
    paths = [path for folder, texts in folders.items() for path in write_files(folder, texts, force=args.force)]
    write_text("\n".join(map(str, paths)))
    return 0


def _folder(args: argparse.Namespace) -> Path:
    """Where the two folders are.

    Files for one release or GPU never replace the general ones, and an installed package is no place to write to.
    """
    if args.out:
        return Path(args.out)
    general = pack.folder("sections").parent
    special = args.ncu or args.ceilings or args.tensor != DEFAULT_TYPE
    if special or (general.name == "data" and not args.check):
        reason = "files for one release or GPU do not replace the pack's" if special else "the installed pack is not changed"
        raise UsageError("Cannot generate into", general, reason, "Name a folder with --out.")
    return general


def _render(args: argparse.Namespace) -> dict[str, dict[str, str]]:
    """Everything is rendered before anything is written."""
    from ncu_roofline.ceilings import read_ceilings
    from ncu_roofline.generate.dialects import BASE, dialect_of
    from ncu_roofline.generate.rules import render_rules
    from ncu_roofline.generate.sections import render_sections

    if args.clock_consistent and not args.ceilings:
        raise UsageError("Cannot use", "--clock-consistent", "there are no measured roofs", "Name them with --ceilings FILE.")
    dialect = dialect_of(args.ncu) if args.ncu else BASE
    ceilings = read_ceilings(args.ceilings) if args.ceilings else None
    sections = render_sections(dialect, ceilings, clock_consistent=args.clock_consistent, light_type=args.tensor)
    return {"sections": sections, "rules": render_rules(dialect, [ceilings] if ceilings else [])}
