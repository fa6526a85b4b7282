"""`ncu-roofline profile`: from an application to the page in one command."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from ncu_roofline.base.errors import RooflineError, UsageError, explained
from ncu_roofline.base.files import folder_in, pack_folder, temporary_folder
from ncu_roofline.base.texts import advice
from ncu_roofline.chips import load_spec
from ncu_roofline.chips.fields import parse_release, release_text
from ncu_roofline.chips.ncu import BOOST_OPTION_SINCE, default_clocks
from ncu_roofline.cli.install import NEWEST_TRIED
from ncu_roofline.cli.options import AUTO, add_ceilings, place, regex, whole, words
from ncu_roofline.cli.outputs import check_output, say, warn, write_text
from ncu_roofline.formats.ceilings import MEASURED, Ceilings, read_ceilings
from ncu_roofline.plugin.machine import profile
from ncu_roofline.plugin.machine.install import kept_for, read_manifest, render_pack
from ncu_roofline.plugin.machine.machine import (
    NO_DEPLOYMENT,
    Gpu,
    Machine,
    Ncu,
    expected_folder,
    find_gpus,
    find_ncus,
    this_machine,
)
from ncu_roofline.version import __version__


class Setting(NamedTuple):
    """What was found for a profile: the ncu, the GPU and its ceilings."""

    ncu: Ncu
    gpu: Gpu | None
    ceilings: Ceilings | None


def add_profile(parser: ArgumentParser) -> None:
    """What to run, what to count, and where the results go."""
    parser.epilog = "Exit code: the application's; 1 if it could not be profiled, 130 if it was interrupted."
    about = "count only these: fp64, fp32, fp16, tensor (default: all)"
    parser.add_argument("--precision", metavar="ID,...", type=words, default=(), help=about)
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
    about = "print it as a line of srun for Slurm, and run nothing"
    parser.add_argument("--scheduler", choices=("srun",), help=about)
    about = "with --scheduler: profile this task of the job alone (default: all, each into a report of its own)"
    parser.add_argument("--only-rank", metavar="N", type=whole, help=about)
    about = "the application and its arguments, after --"
    parser.add_argument("application", metavar="-- APPLICATION", nargs="+", help=about)


def run_profile(args: Namespace) -> int:
    """Profile and render; the exit code is the application's, or 1 for a failure of ours or ncu's."""
    if args.only_rank is not None and not args.scheduler:
        next_step = "Add --scheduler srun."
        raise UsageError("Cannot use --only-rank", str(args.only_rank), "there is no job to choose a task of", next_step)
    args.dry_run = args.dry_run or args.scheduler is not None
    machine = this_machine()
    setting = _setting(machine, args)
    wanted = _wanted(machine, args, setting)
    installed = _installed(machine, setting, args)
    folders: tuple[Path, ...] = ()
    if args.dry_run:
        folders = () if installed else (pack_folder("sections"), pack_folder("rules"))
        write_text(_planned(machine, args, setting, wanted._replace(folders=folders)))
        return 0
    # The first word is the application, and some of the others may be files that it reads.
    from ncu_roofline.cli.reading import ceiling_files

    given = [args.ceilings] if args.ceilings else []
    inputs = [os.fspath(setting.ncu.path), *ceiling_files(given), *args.application]
    for suffix in profile.possible(setting.ncu, wanted):
        check_output(f"{wanted.output}{suffix}", args.force, inputs)
    check_output(f"{wanted.output}.html", args.force, inputs)
    rendered = render_pack(setting.ncu.version, setting.ceilings, tensor=profile.light_type(args.precision))
    lighter = profile.sections_for(args.precision, light=True)
    say(profile.passes_text(rendered, wanted.sections, setting.gpu, lighter))
    say(_clocks_text(setting, wanted))
    with ExitStack() as stack:
        if not installed:
            folders = (stack.enter_context(temporary_folder(rendered.files)),)
        # Apart, so that a file that was there before can't pass for ncu's own; beside it, so that it can be moved at once.
        with explained("Cannot write", wanted.output, profile.ELSEWHERE):
            apart = stack.enter_context(folder_in(Path(os.path.realpath(wanted.output)).parent, ".ncu-roofline-"))
        inside = wanted._replace(folders=folders, output=os.fspath(apart / Path(wanted.output).name), force=False)
        # Messages of ncu call the report as the user does.
        shown = os.path.abspath(wanted.output)
        with explained("Cannot run", setting.ncu.path, "Name an ncu with --ncu."):
            command = profile.command(setting.ncu, inside)
            outcome = profile.run(machine, command, lambda line: say(line.replace(inside.output, shown)))
        report = profile.placed(apart, wanted.output, args.force)
    return _finish(machine, args, setting, outcome, report)


def _planned(machine: Machine, args: Namespace, setting: Setting, wanted: profile.Wanted) -> str:
    """The command of ncu as a line for a shell or for Slurm."""
    if args.scheduler is None:
        return profile.as_text(profile.command(setting.ncu, wanted), machine.system)
    alone = args.only_rank
    ranked = (
        wanted._replace(rank=profile.SLURM_RANK) if alone is None else wanted._replace(output=f"{wanted.output}.rank{alone}")
    )
    return profile.step(profile.command(setting.ncu, ranked), wanted.application, alone)


def _setting(machine: Machine, args: Namespace) -> Setting:
    ncu = _ncu(machine, args)
    gpus, _ = find_gpus(machine)
    gpu = gpus[0] if gpus else None
    if args.ceilings == AUTO:
        from ncu_roofline.cli.reading import Shelf

        return Setting(ncu, gpu, Shelf(machine).find(gpu.name, gpu.compute_capability) if gpu else None)
    if args.ceilings:
        return Setting(ncu, gpu, read_ceilings(args.ceilings))
    return Setting(ncu, gpu, kept_for(machine, gpu) if gpu else None)


def _ncu(machine: Machine, args: Namespace) -> Ncu:
    """The ncu to run, or where nothing is run one of the release named, else of the newest known."""
    named = bool(parse_release(args.ncu)) and not os.path.exists(args.ncu)
    found = [Ncu(Path("ncu"), args.ncu)] if args.dry_run and named else find_ncus(machine, args.ncu)
    usable = [ncu for ncu in found if not ncu.problem and ncu.release >= (2020, 3)]
    if not usable and args.dry_run and not args.ncu:
        release = release_text(NEWEST_TRIED)
        say(f"No ncu works here: the command is for Nsight Compute {release}; --ncu names another release, as in --ncu 2023.2.")
        return Ncu(Path("ncu"), release)
    if not usable:
        broken = "; ".join(f"{ncu.path}: {ncu.problem or f'{ncu.version} is older than 2020.3'}" for ncu in found)
        reason = broken or "there is no ncu on this machine"
        next_step = "Install Nsight Compute or load its module; `ncu-roofline doctor` says more."
        raise RooflineError("Cannot profile with", args.ncu or "ncu", reason, next_step)
    return usable[0]


def _wanted(machine: Machine, args: Namespace, setting: Setting) -> profile.Wanted:
    release, clocks = setting.ncu.release, args.clock_control
    known = [precision.id for precision in load_spec().precisions if precision.id.split(".")[0] in load_spec().sections]
    for one in args.precision:
        if one not in (*known, "tensor"):
            reason = f"no section counts it; there are sections for {', '.join(['tensor', *known])}"
            next_step = advice("Leave it out to count all", one, ("tensor", *known))
            raise UsageError("Cannot use --precision", one, reason, next_step)
    if clocks == "boost" and release < BOOST_OPTION_SINCE:
        reason = f"ncu {setting.ncu.version} does not know it, as releases from 2025.4 on do"
        raise UsageError("Cannot use --clock-control", clocks, reason, "Use none, or another ncu with --ncu.")
    rank = "" if args.scheduler else profile.rank_of(machine.environ)
    name, suffix = profile.output_name(args.output or "", args.application[0], rank)
    if suffix == ".ncu-repz" and release < profile.COMPRESSED_SINCE:
        reason = f"ncu {setting.ncu.version} does not compress reports, as releases from 2025.4 on do"
        raise UsageError("Cannot write", args.output, reason, "Name a .ncu-rep, or another ncu with --ncu.")
    return profile.Wanted(
        application=tuple(args.application),
        output=name,
        sections=profile.sections_for(args.precision, args.light),
        kernel=args.kernel,
        clocks=clocks or ("none" if setting.ceilings else ""),
        force=args.force,
        suffix=suffix,
    )


def _installed(machine: Machine, setting: Setting, args: Namespace) -> bool:
    """Whether what ncu finds by itself is ours, complete, of this version and with the ceilings wanted."""
    folder = expected_folder(machine, setting.ncu)
    if folder is None or machine.environ.get(NO_DEPLOYMENT):
        return False
    if profile.light_type(args.precision) not in ("", load_spec().standard_type):
        return False
    try:
        manifest = read_manifest(folder)
    except RooflineError:
        return False
    asked = (__version__, setting.ceilings.provenance if setting.ceilings else "")
    ours = manifest is not None and (manifest.version, manifest.ceilings) == asked
    return ours and all((folder / name).is_file() for name in (manifest.files if manifest else ()))


def _clocks_text(setting: Setting, wanted: profile.Wanted) -> str:
    if wanted.clocks == "none":
        known = setting.ceilings is not None and setting.ceilings.status == MEASURED
        why = ", as those the ceilings were measured at" if known else ""
        return f"Clocks are left free (--clock-control none){why}."
    usual = default_clocks(setting.ncu.version)
    kept = wanted.clocks or usual
    if setting.ceilings:
        return f"Clocks are locked to {kept}; the {setting.ceilings.status} ceilings stand at free clocks and can't be reached."
    why = f"as ncu {setting.ncu.version} does unless told" if kept == usual else "not left free as with"
    return f"Clocks are locked to {kept}, {why} --clock-control none; roofs stand at that clock, too."


def _finish(machine: Machine, args: Namespace, setting: Setting, outcome: profile.Run, report: Path | None) -> int:
    """Render what there is; the application's exit code comes first, then ours."""
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
    kernels = outcome.log.count("==PROF== Profiling ")
    say(f"Wrote {report} ({kernels} kernels)")
    from ncu_roofline.cli import parse

    page = os.fspath(report).removesuffix(report.suffix) + ".html"
    ceilings = [f"--ceilings={setting.ceilings.path}"] if setting.ceilings else []
    force = ["--force"] if args.force else []
    rendering = parse(["render", f"--output={page}", *ceilings, *force, "--", os.fspath(report)])
    code: int = rendering.run(rendering)
    if outcome.interrupted:
        warn(["interrupted; the report holds what ran before"])
        return 130  # as shells have it for what was ended by Ctrl-C
    partial = profile.find_failure(outcome.log) if outcome.code else None
    if partial:
        warn([f"some kernels could not be profiled: {partial.reason}. {partial.next_step}."])
    if ended:
        warn([f"the application failed with exit code {ended}; the report holds what ran before"])
    failed = outcome.code if outcome.code >= 0 else 128 - outcome.code  # as shells tell of a signal
    return ended or failed or code
