"""`ncu-roofline profile`: from an application to the page in one command."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from ncu_roofline.base.errors import RooflineError, UsageError, explained
from ncu_roofline.base.files import pack_folder, temporary_folder
from ncu_roofline.base.texts import advice, plural
from ncu_roofline.chips import load_spec
from ncu_roofline.chips.fields import parse_release, release_text
from ncu_roofline.chips.ncu import BOOST_OPTION_SINCE, default_clocks
from ncu_roofline.cli.install import NEWEST_TRIED
from ncu_roofline.cli.options import add_ceilings, ids, place, regex, whole
from ncu_roofline.cli.outputs import AUTO, check_output, say, warn, write_text
from ncu_roofline.formats.ceilings import Ceilings, read_ceilings
from ncu_roofline.plugin.machine import machine as here
from ncu_roofline.plugin.machine import profile
from ncu_roofline.plugin.machine.install import kept_for, read_manifest, render_pack
from ncu_roofline.plugin.machine.machine import Machine, Ncu, this_machine
from ncu_roofline.version import __version__


def add_profile(parser: ArgumentParser) -> None:
    """What to run, what to count, and where the results go."""
    parser.epilog = "Exit code: the application's; 1 if it could not be profiled, 130 if it was interrupted."
    about = "count only these: fp64, fp32, fp16, tensor (default: all)"
    parser.add_argument("--precision", metavar="ID,...", type=ids, default=(), help=about)
    about = "fewer replay passes: one tensor type (--precision tensor.bf16, else fp16), not all"
    parser.add_argument("--light", action="store_true", help=about)
    parser.add_argument("--kernel", metavar="REGEX", type=regex, default="", help="only kernels whose name matches")
    about = "write NAME.ncu-rep (NAME.ncu-repz with ncu from 2026.3 on) and NAME.html (default: APPLICATION-roofline)"
    parser.add_argument("-o", "--output", metavar="NAME", type=place, help=about)
    add_ceilings(parser, "measured ceilings (JSON; default: those kept for this GPU)", action="store", default="")
    about = "as of ncu (default: none with measured ceilings, which were measured at free clocks, else what ncu does)"
    parser.add_argument("--clock-control", choices=("base", "boost", "none"), help=about)
    about = "the ncu to use (default: the first found); with --dry-run also its release alone, as 2024.3"
    parser.add_argument("--ncu", metavar="PATH", default="", help=about)
    parser.add_argument("--force", action="store_true", help="overwrite an earlier report and page")
    about = "print the command of ncu, and run nothing; needs neither ncu nor a GPU"
    parser.add_argument("--dry-run", action="store_true", help=about)
    parser.add_argument("--scheduler", choices=("srun",), help="print it as a line of srun for Slurm, and run nothing")
    about = "with --scheduler: profile this task of the job alone (default: all, each into a report of its own)"
    parser.add_argument("--only-rank", metavar="N", type=whole, help=about)
    parser.add_argument("application", metavar="-- APPLICATION", nargs="+", help="the application and its arguments, after --")


def run_profile(args: Namespace) -> int:
    """Profile and render; the exit code is the application's, or 1 for a failure of ours or ncu's."""
    from ncu_roofline.cli.reading import Shelf, ceiling_files

    if args.only_rank is not None and not args.scheduler:
        next_step = "Add --scheduler srun."
        raise UsageError("Cannot use --only-rank", str(args.only_rank), "there is no job to choose a task of", next_step)
    args.dry_run = args.dry_run or args.scheduler is not None
    machine = this_machine()
    ncu = _ncu(machine, args)
    gpu = next(iter(here.find_gpus(machine)[0]), None)
    ceilings = kept_for(machine, gpu) if gpu and not args.ceilings else None
    if args.ceilings == AUTO:
        ceilings = Shelf(machine).find(gpu.name, gpu.compute_capability) if gpu else None
    elif args.ceilings:
        ceilings = read_ceilings(args.ceilings)
    wanted = _wanted(machine, args, ncu, ceilings)
    installed = _installed(machine, ncu, ceilings, args)
    folders: tuple[Path, ...] = ()
    if args.dry_run:
        alone, planned = args.only_rank, wanted
        if not installed:
            planned = planned._replace(folders=(pack_folder("sections"), pack_folder("rules")))
        if alone is not None:
            planned = planned._replace(output=f"{wanted.output}.rank{alone}")
        elif args.scheduler:
            planned = planned._replace(rank=profile.SLURM_RANK)
        command = profile.command(ncu, planned)
        write_text(
            profile.step(command, args.application, alone) if args.scheduler else profile.as_text(command, machine.system)
        )
        return 0
    # The first word is the application, and some of the others may be files that it reads.
    inputs = [os.fspath(ncu.path), *ceiling_files([args.ceilings] if args.ceilings else []), *args.application]
    old = ncu.release < profile.COMPRESSED_SINCE
    suffixes = profile.SUFFIXES[:1] if old else (wanted.suffix or profile.SUFFIXES[0], wanted.suffix or profile.SUFFIXES[1])
    for suffix in (*suffixes, ".html"):
        check_output(f"{wanted.output}{suffix}", args.force, inputs)
    rendered = render_pack(ncu.version, ceilings, tensor=profile.light_type(args.precision))
    say(profile.passes_text(rendered, wanted.sections, gpu, profile.sections_for(args.precision, light=True)))
    say(_clocks_text(ncu, ceilings, wanted))
    with ExitStack() as stack:
        if not installed:
            folders = (stack.enter_context(temporary_folder(rendered.files)),)
        # Apart, so that a file that was there before can't pass for ncu's own; beside it, so that it can be moved at once.
        with explained("Cannot write", wanted.output, profile.ELSEWHERE):
            beside = os.path.dirname(os.path.realpath(wanted.output))
            made = TemporaryDirectory(dir=beside, prefix=".ncu-roofline-", ignore_cleanup_errors=True)
            apart = Path(stack.enter_context(made))
        inside = wanted._replace(folders=folders, output=os.fspath(apart / Path(wanted.output).name), force=False)
        # Messages of ncu call the report as the user does.
        shown = os.path.abspath(wanted.output)
        with explained("Cannot run", ncu.path, "Name an ncu with --ncu."):
            outcome = profile.run(machine, profile.command(ncu, inside), lambda line: say(line.replace(inside.output, shown)))
        report = profile.placed(apart, wanted.output, args.force)
    ended = profile.application_code(outcome.log)
    if report is None and outcome.interrupted:
        raise KeyboardInterrupt
    if report is None:
        failure = profile.explain(machine, outcome.log, outcome.code, args.kernel, args.application[0])
        error = RooflineError("Cannot profile", args.application[0], failure.reason, f"{failure.next_step}.")
        if failure.id != "application" or not ended:
            raise error
        warn([str(error)])
        return ended
    say(f"Wrote {report} ({plural(outcome.log.count('==PROF== Profiling '), 'kernel')})")
    from ncu_roofline.cli import parse

    page = os.fspath(report).removesuffix(report.suffix) + ".html"
    options = [*([f"--ceilings={ceilings.path}"] if ceilings else []), *(["--force"] if args.force else [])]
    rendering = parse(["render", f"--output={page}", *options, "--", os.fspath(report)])
    code: int = rendering.run(rendering)
    if outcome.interrupted:
        warn(["interrupted; the report holds what ran before"])
        return 130  # as shells have it for what was ended by Ctrl-C
    if outcome.code and (partial := profile.find_failure(outcome.log)):
        warn([f"some kernels could not be profiled: {partial.reason}. {partial.next_step}."])
    if ended:
        warn([f"the application failed with exit code {ended}; the report holds what ran before"])
    failed = outcome.code if outcome.code >= 0 else 128 - outcome.code  # as shells tell of a signal
    return ended or failed or code


def _ncu(machine: Machine, args: Namespace) -> Ncu:
    """The ncu to run, or where nothing is run one of the release named, else of the newest known."""
    release_alone = args.dry_run and bool(parse_release(args.ncu)) and not os.path.exists(args.ncu)
    found = [here.named(Path("ncu"), args.ncu)] if release_alone else here.find_ncus(machine, args.ncu)
    usable = [ncu for ncu in found if not ncu.problem]
    if not usable and args.dry_run and not args.ncu:
        release = release_text(NEWEST_TRIED)
        say(f"No ncu works here: the command is for Nsight Compute {release}; --ncu names another release, as in --ncu 2023.2.")
        return Ncu(Path("ncu"), release)
    if not usable:
        broken = "; ".join(f"{ncu.path}: {ncu.problem}" for ncu in found)
        next_step = "Install Nsight Compute or load its module; `ncu-roofline doctor` says more."
        raise RooflineError("Cannot profile with", args.ncu or "ncu", broken or "there is no ncu on this machine", next_step)
    return usable[0]


def _wanted(machine: Machine, args: Namespace, ncu: Ncu, ceilings: Ceilings | None) -> profile.Wanted:
    clocks = args.clock_control
    known = ["tensor", *(one.id for one in load_spec().precisions if one.id.split(".")[0] in load_spec().sections)]
    for one in args.precision:
        if one not in known:
            reason = f"no section counts it; there are sections for {', '.join(known)}"
            raise UsageError("Cannot use --precision", one, reason, advice("Leave it out to count all", one, known))
    if clocks == "boost" and ncu.release < BOOST_OPTION_SINCE:
        reason = f"ncu {ncu.version} does not know it, as releases from 2025.4 on do"
        raise UsageError("Cannot use --clock-control", clocks, reason, "Use none, or another ncu with --ncu.")
    output = args.output or ""
    suffix = next((one for one in profile.SUFFIXES if output.endswith(one)), "")
    if suffix == ".ncu-repz" and ncu.release < profile.COMPRESSED_SINCE:
        reason = f"ncu {ncu.version} does not compress reports, as releases from 2025.4 on do"
        raise UsageError("Cannot write", output, reason, "Name a .ncu-rep, or another ncu with --ncu.")
    rank = "" if args.scheduler else profile.rank_of(machine.environ)
    name = output.removesuffix(suffix) or f"{Path(args.application[0]).stem}-roofline"
    return profile.Wanted(
        application=tuple(args.application),
        output=f"{name}.rank{rank}" if rank else name,
        sections=profile.sections_for(args.precision, args.light),
        kernel=args.kernel,
        clocks=clocks or ("none" if ceilings else ""),
        force=args.force,
        suffix=suffix,
    )


def _installed(machine: Machine, ncu: Ncu, ceilings: Ceilings | None, args: Namespace) -> bool:
    """Whether what ncu finds by itself is ours, complete, of this version and with the ceilings wanted."""
    folder = here.expected_folder(machine, ncu)
    usual = profile.light_type(args.precision) in ("", load_spec().standard_type)
    if folder is None or machine.environ.get(here.NO_DEPLOYMENT) or not usual:
        return False
    try:
        manifest = read_manifest(folder)
    except RooflineError:
        return False
    asked = (__version__, ceilings.provenance if ceilings else "")
    ours = manifest is not None and (manifest.version, manifest.ceilings) == asked
    return ours and all((folder / name).is_file() for name in (manifest.files if manifest else ()))


def _clocks_text(ncu: Ncu, ceilings: Ceilings | None, wanted: profile.Wanted) -> str:
    if wanted.clocks == "none":
        return "Clocks are left free (--clock-control none), as measured ceilings have them."
    kept, roofs = wanted.clocks or default_clocks(ncu.version), "roofs stand at that clock, too"
    if ceilings:
        roofs = f"the {ceilings.status} ceilings stand at free clocks and can't be reached"
    return f"Clocks are locked to {kept}, not left free as with --clock-control none; {roofs}."
