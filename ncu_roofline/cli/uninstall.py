"""`ncu-roofline uninstall`: takes away exactly what was installed."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from pathlib import Path

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.cli.outputs import say, write_text
from ncu_roofline.plugin.machine.install import MANIFEST, Removal, forget_ceilings, kept, known_folders, one_at_a_time, remove
from ncu_roofline.plugin.machine.machine import this_machine


def add_options(parser: ArgumentParser) -> None:
    """What to take away."""
    parser.add_argument("--dest", metavar="DIR", default="", help="only from this folder (default: from everywhere)")
    parser.add_argument("--forget-ceilings", action="store_true", help="also remove the measured ceilings that were kept")
    parser.add_argument("--dry-run", action="store_true", help="say what would be removed, and remove nothing")
    parser.add_argument("--json", action="store_true", help="what was removed, as JSON on standard output")


def run(args: Namespace) -> int:
    """Uninstall from one folder or from everywhere; exit code 1 if some folder could not be cleaned."""
    machine = this_machine()
    dest = Path(args.dest).absolute()
    if args.dest and not (dest / MANIFEST).exists():
        next_step = "Leave out --dest to uninstall from everywhere."
        raise RooflineError("Cannot uninstall from", args.dest, f"it holds no {MANIFEST}", next_step)
    folders = [dest] if args.dest else known_folders(machine)
    removals = []
    with one_at_a_time(machine, create=False):  # where nothing is installed, there may be no place to write to
        for folder in folders:
            try:
                removals.append(remove(machine, folder, dry_run=args.dry_run))
            except RooflineError as error:  # noqa: PERF203 - few
                say(f"ncu-roofline: {error}")
        ceilings = [Path(one.path) for one in kept(machine)]
        if args.forget_ceilings and not args.dry_run:
            ceilings = forget_ceilings(machine)
    for removal in removals:
        for name in removal.kept:
            say(f"Kept {removal.folder / name}: it was changed after it was installed")
    if ceilings and not args.forget_ceilings:
        say(f"Measured ceilings are kept in {ceilings[0].parent}; --forget-ceilings removes them")
    gone = [str(path) for path in ceilings] if args.forget_ceilings else []
    if args.json:
        rows = [{"folder": str(removal.folder), "removed": removal.removed, "kept": removal.kept} for removal in removals]
        write_text(json.dumps({"folders": rows, "ceilings": gone}, indent=2))
    else:
        write_text(_text(removals, gone, args.dry_run))
    return 1 if len(removals) < len(folders) else 0


def _text(removals: list[Removal], ceilings: list[str], dry_run: bool) -> str:
    verb = "Would remove" if dry_run else "Removed"
    lines = []
    for removal in removals:
        unfinished = " and what a killed installation left" if removal.unfinished else ""
        lines.append(f"{verb} {len(removal.removed)} files{unfinished} from {removal.folder}")
    lines += [f"{verb} {path}" for path in ceilings]
    return "\n".join(lines or ["Nothing is installed."])
