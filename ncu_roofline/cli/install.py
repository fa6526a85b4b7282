"""`ncu-roofline install`: sections and rules where Nsight Compute looks, with measured ceilings."""

from __future__ import annotations

import json
import shlex
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import NamedTuple

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.chips import load_spec
from ncu_roofline.cli.ceilings import Shelf
from ncu_roofline.cli.options import AUTO, AUTO_HELP
from ncu_roofline.cli.outputs import Bar, has_cursor, say, write_text
from ncu_roofline.formats.ceilings import CPU, Ceilings, read_ceilings
from ncu_roofline.plugin.generate.sections import drawable
from ncu_roofline.plugin.machine.install import Change, deploy, keep, kept_for, one_at_a_time, plan, prove, render_pack
from ncu_roofline.plugin.machine.machine import Machine, choose, find_gpus, this_machine
from ncu_roofline.plugin.machine.ncu import NO_DEPLOYMENT, Ncu, expected_folder, find_ncus, sections_folder

NEWEST_TRIED = (2025, 4)
"""The last release whose section format is known; later ones are taken to understand it, too."""


class Target(NamedTuple):
    """A folder to install into: for which release ("" for any), proven with which programs."""

    folder: Path
    version: str
    proofs: tuple[Ncu, ...]
    searched: bool


def add_options(parser: ArgumentParser) -> None:
    """What to install, and where."""
    about = "folder to put sections and rules into, instead of where Nsight Compute looks"
    parser.add_argument("--dest", metavar="DIR", default="", help=about)
    about = "the ncu to install for (default: every one on this machine)"
    parser.add_argument("--ncu", metavar="PATH", default="", help=about)
    roofs = parser.add_mutually_exclusive_group()
    about = f"measured ceilings (JSON) to draw, and to keep for their GPU; {AUTO_HELP}, and none is measured"
    roofs.add_argument("--ceilings", metavar="FILE|auto", default="", help=about)
    about = "measure nothing; ceilings kept from before are used all the same"
    roofs.add_argument("--no-bench", action="store_true", help=about)
    about = "index or UUID of the GPU to measure (default: the first)"
    parser.add_argument("--device", metavar="GPU", default="", help=about)
    parser.add_argument("--force", action="store_true", help="also replace installed files that were changed since")
    parser.add_argument("--dry-run", action="store_true", help="say what would be done, and do nothing")
    parser.add_argument("--json", action="store_true", help="what was done, as JSON on standard output")


def run(args: Namespace) -> int:
    """Install for every ncu found; exit code 1 if it failed for one of them."""
    machine = this_machine()
    ncus = _usable(machine, args)
    done: list[tuple[Target, Change]] = []
    errors: list[RooflineError] = []
    with one_at_a_time(machine):
        chosen, why = _ceilings(machine, args)
        # One of each x.y.z, as these share a folder, newest first; all of them together where the folder is named.
        versions = {ncu.folder_name: ncu for ncu in reversed(ncus)}
        newest_first = sorted(versions.values(), key=lambda ncu: ncu.release, reverse=True)
        for group in [newest_first] if args.dest else [[ncu] for ncu in newest_first]:
            try:
                target = _target(machine, tuple(group), args)
                done.append((target, _install(machine, target, chosen, args)))
            except RooflineError as error:  # noqa: PERF203 - few
                errors.append(error)
    if len(errors) == 1 and not done:
        raise errors[0]
    for one in errors:
        say(f"ncu-roofline: {one}")
    for _, change in done:
        for name in change.kept:
            say(f"Kept {change.folder / name}: it was changed after it was installed (--force replaces it)")
    if args.json:
        document = {"roofs": why, "ceilings": chosen.path if chosen else None, "installed": [_row(*one) for one in done]}
        write_text(json.dumps(document, indent=2))
    else:
        write_text(_text(done, why, args.dry_run))
    return 1 if errors else 0


def _usable(machine: Machine, args: Namespace) -> list[Ncu]:
    """The releases to install for; without any only a folder that was named can be filled."""
    usable = []
    for ncu in find_ncus(machine, args.ncu):
        problem = ncu.problem
        if not problem and ncu.release < (2020, 3):
            problem = f"{ncu.version} is older than 2020.3, the first that can draw our roofs"
        if problem and args.ncu:
            raise RooflineError("Cannot use", ncu.path, problem, "Name another ncu with --ncu PATH.")
        if problem:
            say(f"Left out {ncu.path}: {problem}")
        else:
            if ncu.release > NEWEST_TRIED:
                say(f"Nsight Compute {ncu.version} is newer than this program: taken as one that reads what 2025.4 reads")
            usable.append(ncu)
    if not usable and not args.dest:
        next_step = "Name it with --ncu PATH, or put sections and rules into a folder with --dest DIR."
        raise RooflineError("Cannot install", "sections and rules", "there is no working ncu on this machine", next_step)
    return usable


def _ceilings(machine: Machine, args: Namespace) -> tuple[Ceilings | None, str]:
    """The ceilings to draw, None for theoretical roofs, and in one line why these.

    Raises RooflineError for what was named and is not there; a failed measurement only says so.
    """
    given = args.ceilings
    if given and given != AUTO:
        ceilings = read_ceilings(given)
        drawable(ceilings, clock_consistent=False)  # what can't be drawn takes the place of none
        ceilings = ceilings if args.dry_run else keep(machine, given)
        if ceilings.kind == CPU:
            return None, f"Theoretical roofs: those of {ceilings.provenance} are a CPU's"
        gpu = choose(find_gpus(machine)[0], args.device)
        if gpu and gpu.compute_capability and not ceilings.applies_to(gpu.name, gpu.compute_capability):
            say(f"The ceilings are those of {ceilings.device or 'an unnamed GPU'}; the GPU here is {gpu.name}")
        return ceilings, f"{ceilings.status.capitalize()} roofs: {ceilings.provenance}"
    gpus, why_none = find_gpus(machine)
    gpu = choose(gpus, args.device)
    if gpu is None:
        return None, f"Theoretical roofs: {why_none}"
    if given == AUTO:
        found = Shelf(machine).find(gpu.name, gpu.compute_capability)
        if found is None:
            return None, f"Theoretical roofs: there are no ceilings of {gpu.name}"
        return found, f"{found.status.capitalize()} roofs: {found.provenance}"
    found = kept_for(machine, gpu)
    if found:
        return found, f"Measured roofs, kept from before: {found.provenance}"
    if args.no_bench:
        return None, f"Theoretical roofs: {gpu.name} was not measured (--no-bench)"
    if args.dry_run:
        return None, f"Would measure the ceilings of {gpu.name}"
    try:
        from ncu_roofline.bench import measure

        say(f"Measuring the ceilings of {gpu.name}: up to 3 minutes, once (--no-bench leaves it out)")
        with Bar(gpu.name, shown=has_cursor(sys.stderr)) as bar:
            measured = measure(gpu.uuid or str(gpu.index), progress=bar)
        ceilings = keep(machine, measured)
    except RooflineError as error:
        return None, f"Theoretical roofs: {error}"
    return ceilings, f"Measured roofs: {ceilings.provenance}"


def _target(machine: Machine, group: tuple[Ncu, ...], args: Namespace) -> Target:
    """Where to install; only with --dry-run ncu is not asked where asking would make it deploy its own files."""
    if args.dest:
        version = group[0].version if len(group) == 1 else ""
        return Target(Path(args.dest).absolute(), version, group, False)
    expected = expected_folder(machine, group[0])
    untouched = expected is not None and not expected.is_dir() and not machine.environ.get(NO_DEPLOYMENT)
    folder = expected if args.dry_run and untouched else sections_folder(machine, group[0])
    if folder is None:
        reason = "it looks for sections nowhere: there is no home folder"
        next_step = "Set HOME, or install into a folder with --dest DIR."
        raise RooflineError("Cannot install for", group[0].path, reason, next_step)
    return Target(folder, group[0].version, group, True)


def _install(machine: Machine, target: Target, ceilings: Ceilings | None, args: Namespace) -> Change:
    pack = render_pack(target.version, ceilings)

    def proof() -> None:
        for ncu in target.proofs:
            prove(machine, ncu, target.folder, list(pack.files), searched=target.searched)

    if args.dry_run:
        return plan(target.folder, pack, force=args.force)
    return deploy(machine, target.folder, pack, proof, force=args.force)


def _text(done: list[tuple[Target, Change]], why: str, dry_run: bool) -> str:
    lines = [why]
    for target, change in done:
        release = f"Nsight Compute {target.version}" if target.version else "every release of Nsight Compute"
        if dry_run:
            verb = f"would write {len(change.written)} files to" if change.any else "nothing to do in"
        else:
            verb = f"wrote {len(change.written)} files to" if change.any else "nothing to do, all is installed in"
        removed = f", removed {len(change.removed)} old ones" if change.removed else ""
        proven = f"; proven with {', '.join(str(ncu.path) for ncu in target.proofs)}" if target.proofs and not dry_run else ""
        unproven = "; no ncu here to prove it with" if not target.proofs else ""
        lines.append(f"For {release}: {verb} {change.folder}{removed}{proven}{unproven}")
    if done and not dry_run:
        target = done[0][0]
        program = str(target.proofs[0].path) if target.proofs and target.proofs[0].found != "PATH" else "ncu"
        words = [program] if target.searched else [program, "--section-folder", str(target.folder)]
        words += ["--section", load_spec().sections[load_spec().core[0]], "-o", "report", "./app"]
        lines += ["", "Try:", f"  {shlex.join(words)}", "  ncu-roofline profile -- ./app"]
    return "\n".join(lines)


def _row(target: Target, change: Change) -> dict[str, object]:
    return {
        "folder": str(change.folder),
        "ncu": target.version,
        "written": change.written,
        "unchanged": change.unchanged,
        "removed": change.removed,
        "kept": change.kept,
        "proven_with": [str(ncu.path) for ncu in target.proofs],
    }
