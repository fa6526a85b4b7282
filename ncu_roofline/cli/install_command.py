"""`ncu-roofline install`: sections and rules where Nsight Compute looks, with measured ceilings."""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ncu_roofline.cli.machine_ceilings import Chosen, ceilings_for_install
from ncu_roofline.cli.outputs import say, write_text
from ncu_roofline.errors import RooflineError
from ncu_roofline.facts import load_spec
from ncu_roofline.machine.deploy import Change, Pack, deploy, plan, prove
from ncu_roofline.machine.machine import Machine, this_machine
from ncu_roofline.machine.manifest import one_at_a_time
from ncu_roofline.machine.ncu import NO_DEPLOYMENT, Ncu, expected_folder, find_ncus, sections_folder
from ncu_roofline.machine.pack import render_pack

NEWEST_TRIED = (2025, 4)
"""The last release whose section format is known; later ones are taken to understand it, too."""


@dataclass(frozen=True)
class Target:
    """A folder to install into: for which release ("" for any), proven with which programs."""

    folder: Path
    version: str
    proofs: tuple[Ncu, ...]
    searched: bool


@dataclass(frozen=True)
class Done:
    """One target and what happened there."""

    target: Target
    change: Change


def run(args: argparse.Namespace) -> int:
    """Install for every ncu found; exit code 1 if it failed for one of them."""
    machine = this_machine()
    ncus = _usable(machine, args)
    with one_at_a_time(machine):
        chosen = ceilings_for_install(machine, args.ceilings, args.device, bench=not args.no_bench, dry_run=args.dry_run)
        results = [_attempt(machine, group, chosen, args) for group in _groups(ncus, args.dest)]
    errors = [one for one in results if isinstance(one, RooflineError)]
    done = [one for one in results if isinstance(one, Done)]
    if len(errors) == 1 and not done:
        raise errors[0]
    for error in errors:
        say(f"ncu-roofline: {error}")
    for one in done:
        for name in one.change.kept:
            say(f"Kept {one.change.folder / name}: it was changed after it was installed (--force replaces it)")
    write_text(_json(done, chosen) if args.json else _text(done, chosen, args.dry_run))
    return 1 if errors else 0


def _usable(machine: Machine, args: argparse.Namespace) -> list[Ncu]:
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


def _groups(ncus: Sequence[Ncu], dest: str) -> list[tuple[Ncu, ...]]:
    """The programs that share a folder: one of each x.y.z by itself, newest first; all of them where the folder is named."""
    versions = {ncu.folder_name: ncu for ncu in reversed(ncus)}
    newest_first = sorted(versions.values(), key=lambda ncu: ncu.release, reverse=True)
    return [tuple(newest_first)] if dest else [(ncu,) for ncu in newest_first]


def _attempt(machine: Machine, group: tuple[Ncu, ...], chosen: Chosen, args: argparse.Namespace) -> Done | RooflineError:
    try:
        return _install(machine, _target(machine, group, args), chosen, args)
    except RooflineError as error:
        return error


def _target(machine: Machine, group: tuple[Ncu, ...], args: argparse.Namespace) -> Target:
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


def _install(machine: Machine, target: Target, chosen: Chosen, args: argparse.Namespace) -> Done:
    pack = render_pack(target.version, chosen.ceilings)
    if args.dry_run:
        return Done(target, plan(target.folder, pack, force=args.force))
    return Done(target, deploy(machine, target.folder, pack, _proof(machine, target, pack), force=args.force))


def _proof(machine: Machine, target: Target, pack: Pack) -> Callable[[], None]:
    def run_all() -> None:
        for one in checks:
            one()

    names = list(pack.files)
    checks = [partial(prove, machine, ncu, target.folder, names, searched=target.searched) for ncu in target.proofs]
    return run_all


def _text(done: list[Done], chosen: Chosen, dry_run: bool) -> str:
    lines = [chosen.why, *(_line(one, dry_run) for one in done)]
    if done and not dry_run:
        lines += ["", "Try:", f"  {_try(done[0].target)}", "  ncu-roofline profile -- ./app"]
    return "\n".join(lines)


def _line(one: Done, dry_run: bool) -> str:
    change, target = one.change, one.target
    release = f"Nsight Compute {target.version}" if target.version else "every release of Nsight Compute"
    if dry_run:
        verb = f"would write {len(change.written)} files to" if change.any else "nothing to do in"
    else:
        verb = f"wrote {len(change.written)} files to" if change.any else "nothing to do, all is installed in"
    proven = f"; proven with {', '.join(str(ncu.path) for ncu in target.proofs)}" if target.proofs and not dry_run else ""
    unproven = "; no ncu here to prove it with" if not target.proofs else ""
    removed = f", removed {len(change.removed)} old ones" if change.removed else ""
    return f"For {release}: {verb} {change.folder}{removed}{proven}{unproven}"


def _try(target: Target) -> str:
    program = str(target.proofs[0].path) if target.proofs and target.proofs[0].found != "PATH" else "ncu"
    words = [program] if target.searched else [program, "--section-folder", str(target.folder)]
    return shlex.join([*words, "--section", load_spec().sections[load_spec().core[0]], "-o", "report", "./app"])


def _json(done: list[Done], chosen: Chosen) -> str:
    rows = [
        {
            "folder": str(one.change.folder),
            "ncu": one.target.version,
            "written": one.change.written,
            "unchanged": one.change.unchanged,
            "removed": one.change.removed,
            "kept": one.change.kept,
            "proven_with": [str(ncu.path) for ncu in one.target.proofs],
        }
        for one in done
    ]
    ceilings = chosen.ceilings.path if chosen.ceilings else None
    return json.dumps({"roofs": chosen.why, "ceilings": ceilings, "installed": rows}, indent=2)
