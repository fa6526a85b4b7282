"""`ncu-roofline install`, `uninstall` and `doctor`: our files where Nsight Compute looks, and what this machine lacks."""

from __future__ import annotations

import json
import shlex
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.texts import plural, printable
from ncu_roofline.cli.options import add_ceilings
from ncu_roofline.cli.outputs import AUTO, has_cursor, say, warn, write_text
from ncu_roofline.formats.ceilings import CPU, Ceilings, read_ceilings
from ncu_roofline.plugin.machine import install as pack
from ncu_roofline.plugin.machine import machine as here
from ncu_roofline.plugin.machine.install import Change, render_pack
from ncu_roofline.plugin.machine.machine import Machine, Ncu, this_machine

NEWEST_TRIED = (2025, 4)
"""The last release whose section format is known; later ones are taken to understand it, too."""
Target = tuple[str, tuple[Ncu, ...], bool, Change]
"""The release ("" for any), the programs that prove it, whether they look there by themselves, and what was done."""


def add_install(parser: ArgumentParser) -> None:
    """What to install, and where."""
    about = "folder to put sections and rules into, instead of where Nsight Compute looks"
    parser.add_argument("--dest", metavar="DIR", default="", help=about)
    parser.add_argument("--ncu", metavar="PATH", default="", help="the ncu to install for (default: every one on this machine)")
    roofs = parser.add_mutually_exclusive_group()
    about = "measured ceilings (JSON) to draw, and to keep for their GPU; none is measured"
    add_ceilings(roofs, about, action="store", default="")
    about = "measure nothing; ceilings kept from before are used all the same"
    roofs.add_argument("--no-bench", action="store_true", help=about)
    parser.add_argument("--device", metavar="GPU", default="", help="index or UUID of the GPU to measure (default: the first)")
    parser.add_argument("--force", action="store_true", help="also replace installed files that were changed since")
    parser.add_argument("--dry-run", action="store_true", help="say what would be done, and do nothing")
    parser.add_argument("--json", action="store_true", help="what was done, as JSON on standard output")


def run_install(args: Namespace) -> int:
    """Install for every ncu found; exit code 1 if it failed for one of them."""
    machine = this_machine()
    ncus = _usable(machine, args)
    done: list[Target] = []
    errors: list[RooflineError] = []
    with pack.one_at_a_time(machine):
        chosen, why = _ceilings(machine, args)
        # One of each x.y.z, as these share a folder, newest first; all of them together where the folder is named.
        versions = {ncu.folder_name: ncu for ncu in reversed(ncus)}
        newest_first = sorted(versions.values(), key=lambda ncu: ncu.release, reverse=True)
        for group in [newest_first] if args.dest else [[ncu] for ncu in newest_first]:
            try:
                done.append(_install(machine, tuple(group), chosen, args))
            except RooflineError as error:  # noqa: PERF203 - few
                errors.append(error)
    if len(errors) == 1 and not done:
        raise errors[0]
    warn(map(str, errors))
    for *_, change in done:
        for name in change.kept:
            say(f"Kept {change.folder / name}: it was changed after it was installed (--force replaces it)")
    if args.json:
        rows = [
            {
                "folder": str(change.folder),
                "ncu": version,
                **{name: getattr(change, name) for name in ("written", "unchanged", "removed", "kept")},
                "proven_with": [str(ncu.path) for ncu in proofs],
            }
            for version, proofs, _, change in done
        ]
        write_text(json.dumps({"roofs": why, "ceilings": chosen.path if chosen else None, "installed": rows}, indent=2))
    else:
        write_text(_text(done, why, args.dry_run))
    return 1 if errors else 0


def _usable(machine: Machine, args: Namespace) -> list[Ncu]:
    """The releases to install for; without any only a folder that was named can be filled."""
    usable = []
    for ncu in here.find_ncus(machine, args.ncu):
        if ncu.problem and args.ncu:
            raise RooflineError("Cannot use", ncu.path, ncu.problem, "Name another ncu with --ncu PATH.")
        if ncu.problem:
            say(f"Left out {ncu.path}: {ncu.problem}")
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
    from ncu_roofline.cli.reading import Shelf
    from ncu_roofline.plugin.generate.sections import drawable

    given = args.ceilings
    gpus, why_none = here.find_gpus(machine)
    gpu = here.choose(gpus, args.device)
    if given and given != AUTO:
        ceilings = read_ceilings(given)
        drawable(ceilings, clock_consistent=False)  # what can't be drawn takes the place of none
        ceilings = ceilings if args.dry_run else pack.keep(machine, given)
        if ceilings.kind == CPU:
            return None, f"Theoretical roofs: those of {ceilings.provenance} are a CPU's"
        if gpu and gpu.compute_capability and not ceilings.applies_to(gpu.name, gpu.compute_capability):
            say(f"The ceilings are those of {ceilings.device or 'an unnamed GPU'}; the GPU here is {gpu.name}")
        return ceilings, f"{ceilings.status.capitalize()} roofs: {ceilings.provenance}"
    if gpu is None:
        return None, f"Theoretical roofs: {why_none}"
    if given == AUTO:
        found = Shelf(machine).find(gpu.name, gpu.compute_capability)
        if found is None:
            return None, f"Theoretical roofs: there are no ceilings of {gpu.name}"
        return found, f"{found.status.capitalize()} roofs: {found.provenance}"
    if found := pack.kept_for(machine, gpu):
        return found, f"Measured roofs, kept from before: {found.provenance}"
    if args.no_bench:
        return None, f"Theoretical roofs: {gpu.name} was not measured (--no-bench)"
    if args.dry_run:
        return None, f"Would measure the ceilings of {gpu.name}"
    try:
        from ncu_roofline.bench import measure
        from ncu_roofline.cli.bench import Bar

        say(f"Measuring the ceilings of {gpu.name}: up to 4 minutes, once (--no-bench leaves it out)")
        with Bar(gpu.name, shown=has_cursor(sys.stderr)) as bar:
            ceilings = pack.keep(machine, measure(gpu.uuid or str(gpu.index), progress=bar))
    except RooflineError as error:
        return None, f"Theoretical roofs: {error}"
    return ceilings, f"Measured roofs: {ceilings.provenance}"


def _install(machine: Machine, group: tuple[Ncu, ...], ceilings: Ceilings | None, args: Namespace) -> Target:
    """Install for releases that share a folder.

    Only with --dry-run ncu is not asked for its folder where asking would make it deploy its own files.
    """
    if args.dest:
        version, folder = group[0].version if len(group) == 1 else "", Path(args.dest).absolute()
    else:
        expected = here.expected_folder(machine, group[0])
        untouched = expected is not None and not expected.is_dir() and not machine.environ.get(here.NO_DEPLOYMENT)
        version, looked = group[0].version, expected if args.dry_run and untouched else here.sections_folder(machine, group[0])
        if looked is None:
            reason = "it looks for sections nowhere: there is no home folder"
            next_step = "Set HOME, or install into a folder with --dest DIR."
            raise RooflineError("Cannot install for", group[0].path, reason, next_step)
        folder = looked
    rendered = render_pack(version, ceilings)

    def proof() -> None:
        for ncu in group:
            pack.prove(machine, ncu, folder, list(rendered.files), searched=not args.dest)

    if args.dry_run:
        return version, group, not args.dest, pack.plan(folder, rendered, force=args.force)
    return version, group, not args.dest, pack.deploy(machine, folder, rendered, proof, force=args.force)


def _text(done: list[Target], why: str, dry_run: bool) -> str:
    from ncu_roofline.chips import load_spec

    lines = [why]
    for version, proofs, _, change in done:
        release = f"Nsight Compute {version}" if version else "every release of Nsight Compute"
        verb = f"{'would write' if dry_run else 'wrote'} {plural(len(change.written), 'file')} to"
        if not change.written and not change.removed:
            verb = f"nothing to do{'' if dry_run else ', all is installed'} in"
        removed = f", removed {len(change.removed)} old ones" if change.removed else ""
        proven = f"; proven with {', '.join(str(ncu.path) for ncu in proofs)}" if not dry_run else ""
        lines.append(f"For {release}: {verb} {change.folder}{removed}{proven if proofs else '; no ncu here to prove it with'}")
    if done and not dry_run:
        _, proofs, searched, change = done[0]
        words = [str(proofs[0].path) if proofs and proofs[0].found != "PATH" else "ncu"]
        words += [] if searched else ["--section-folder", str(change.folder)]
        words += ["--section", load_spec().sections[load_spec().core[0]], "-o", "report", "./app"]
        lines += ["", "Try:", f"  {shlex.join(words)}", "  ncu-roofline profile -- ./app"]
    return "\n".join(lines)


def add_uninstall(parser: ArgumentParser) -> None:
    """What to take away."""
    parser.add_argument("--dest", metavar="DIR", default="", help="only from this folder (default: from everywhere)")
    parser.add_argument("--forget-ceilings", action="store_true", help="also remove the measured ceilings that were kept")
    parser.add_argument("--dry-run", action="store_true", help="say what would be removed, and remove nothing")
    parser.add_argument("--json", action="store_true", help="what was removed, as JSON on standard output")


def run_uninstall(args: Namespace) -> int:
    """Uninstall from one folder or from everywhere; exit code 1 if some folder could not be cleaned."""
    machine = this_machine()
    dest = Path(args.dest).absolute()
    if args.dest and not (dest / pack.MANIFEST).exists():
        next_step = "Leave out --dest to uninstall from everywhere."
        raise RooflineError("Cannot uninstall from", args.dest, f"it holds no {pack.MANIFEST}", next_step)
    folders = [dest] if args.dest else pack.known_folders(machine)
    removals = []
    with pack.one_at_a_time(machine, create=False):  # where nothing is installed, there may be no place to write to
        for folder in folders:
            try:
                removals.append(pack.remove(machine, folder, dry_run=args.dry_run))
            except RooflineError as error:  # noqa: PERF203 - few
                warn([str(error)])
        ceilings = [Path(one.path) for one in pack.kept(machine)]
        if args.forget_ceilings and not args.dry_run:
            ceilings = pack.forget_ceilings(machine)
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
        verb = "Would remove" if args.dry_run else "Removed"
        lines = [f"{verb} {plural(len(removal.removed), 'file')} from {removal.folder}" for removal in removals]
        write_text("\n".join([*lines, *(f"{verb} {path}" for path in gone)] or ["Nothing is installed."]))
    return 1 if len(removals) < len(folders) else 0


def add_doctor(parser: ArgumentParser) -> None:
    """How to say it."""
    parser.epilog = "Exit code 1 if something that is here does not work; what is absent is no problem for reading reports."
    parser.add_argument("--json", action="store_true", help="the same as JSON on standard output")


def run_doctor(args: Namespace) -> int:
    """Print every line; exit code 1 if something here does not work, 0 if things are merely absent."""
    from ncu_roofline.plugin.machine.doctor import ABSENT, PROBLEM, examine

    lines = examine(this_machine())
    problems = sum(line.status == PROBLEM for line in lines)
    if args.json:
        write_text(json.dumps([line._asdict() for line in lines], indent=2))
        return 1 if problems else 0
    texts = []
    for line in lines:
        texts.append(printable(f"{line.status:8} {line.topic:9} {line.text}"))
        texts += [f"{'':19}-> {printable(line.advice)}"] if line.advice else []
    if problems:
        verdict = f"{plural(problems, 'problem')}; reading and rendering reports needs only Python."
    elif any(line.status == ABSENT for line in lines):
        verdict = (
            "No problem: reports can be read and rendered here; what is absent is needed for measuring and profiling only."
        )
    else:
        verdict = "No problem."
    write_text("\n".join([*texts, "", verdict]))
    return 1 if problems else 0
