"""`ncu-roofline bench`: measure, build, list, theory, merge, compare, draw."""

from __future__ import annotations

import json
import os
import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from ncu_roofline.base.errors import RooflineError, UsageError
from ncu_roofline.base.records import inside
from ncu_roofline.base.records import number as finite
from ncu_roofline.base.texts import printable
from ncu_roofline.base.units import percent
from ncu_roofline.bench import build, campaign, catalogue, device, document, files, measuring, picture, runner
from ncu_roofline.chips import spec
from ncu_roofline.chips.fields import capability_text
from ncu_roofline.cli import outputs
from ncu_roofline.cli.options import number, ratio, value, whole_from, words
from ncu_roofline.formats.ceilings import CPU, GPU, MEASURE_AGAIN, proven, read_document
from ncu_roofline.plugin.machine.install import keep
from ncu_roofline.plugin.machine.machine import this_machine
from ncu_roofline.rendering.table import listing

_NVCC = "compiler (default: of NVCC, PATH, CUDA_HOME)"
_RUN = """\
Everything about how it measures, and what a number means, is in the file it writes.
Exit code: 1 if nothing could be measured, or no ceiling of a device was accepted."""
_COMPARE = """\
Each file is compared with the first, A; files of `bench run` and `bench merge` may be mixed.  Differences below the
spread of both (95 % interval or variation between sessions; between the GPUs of a merged file) are none; of a file
with one session it is unknown.
Exit code: 1 if --threshold is given and an accepted ceiling is slower by more, and by more than the spread."""


class Bar(campaign.Progress):
    """The ceiling being measured in a bar on standard error, above it those found; not ``shown``, only lines that stay."""

    def __init__(self, title: str, shown: bool) -> None:
        self._title, self._shown, self._headed = printable(title), shown, False
        self._bar: Any = None

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def start(self, steps: int) -> None:
        """Show an empty bar of so many steps."""
        from tqdm import tqdm

        looks: dict[str, Any] = {"leave": False, "unit": "run", "dynamic_ncols": True, "disable": not self._shown}
        self._bar = tqdm(total=steps, desc=self._title, **looks)

    def begin(self, ceiling: str) -> None:
        """What is being measured now."""
        self._bar.set_postfix_str(f"{ceiling} ...")

    def step(self) -> None:
        """One step on."""
        self._bar.update()

    def line(self, text: str) -> None:
        """A line that stays, above the bar where there is one."""
        if self._shown:
            self._bar.write(printable(text), file=sys.stderr)
        else:
            outputs.say(text)

    def found(self, entry: Mapping[str, Any]) -> None:
        """A line of a table that grows."""
        if not self._headed:
            self.line(files.live_line(None))
        self._headed = True
        self.line(files.live_line(entry))


def add_bench(parser: ArgumentParser) -> None:
    """An action, and its own options."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    def action(name: str, about: str, act: Callable[[Namespace], int], epilog: str = "") -> ArgumentParser:
        one = actions.add_parser(name, help=about, description=f"{about[0].upper()}{about[1:]}.", epilog=epilog)
        if epilog:
            one.formatter_class = RawDescriptionHelpFormatter
        one.set_defaults(act=act)
        return one

    def add_program(parser: ArgumentParser) -> Any:
        how = parser.add_argument_group("how")
        how.add_argument("--nvcc", metavar="PATH", default="", help=_NVCC)
        how.add_argument("--runner", metavar="PATH", default="", help="a benchmark program that is built already")
        return how

    run = action("run", "measure the ceilings of the GPUs here and write them as JSON", _run, _RUN)
    about = "index, UUID or its beginning, or all, or cpu (default: the first GPU; under srun or mpirun the rank's own)"
    run.add_argument("--device", metavar="GPU,...", default="auto", help=about)
    ids = value("names no ceiling", lambda text: words(text) or None)
    run.add_argument("--only", metavar="ID,...", type=ids, default=(), help="only these ceilings, as dram,fp64.fma,tensor")
    run.add_argument("--skip", metavar="ID,...", type=ids, default=(), help="all but these ceilings")
    about = "under 30 s: the main ceilings, one session (default: under 4 min)"
    run.add_argument("--quick", action="store_true", help=about)
    about = "file to write, or a folder where there are several"
    run.add_argument("-o", "--output", metavar="FILE", default="", help=about)
    about = "write no picture of the machine's roofline beside FILE (FILE with .svg for .json)"
    run.add_argument("--no-picture", action="store_true", help=about)
    run.add_argument("--force", action="store_true", help="overwrite FILE, and the picture")
    run.add_argument("--json", action="store_true", help="print what is written instead of a table")
    how, count = add_program(run), whole_from(1, 10_000)
    about = "what is computed on; zeros flatter (default: %(default)s)"
    how.add_argument("--data", choices=("random", "zeros"), default="random", help=about)
    how.add_argument("--trials", metavar="N", type=count, help="trials per session (default: 15, quick 9)")
    how.add_argument("--sessions", metavar="N", type=count, help="sessions per ceiling (default: 3, quick 1)")
    seconds = number("is not a number of seconds", lambda found: 0 < found < 1e6)
    how.add_argument("--budget", metavar="SECONDS", type=seconds, help="time for each GPU (default: 220, quick 27)")
    how.add_argument("--seed", metavar="N", type=count, default=1, help="of the random data (default: %(default)s)")
    build = action("build", "compile the benchmark or the applications with nvcc, and print their paths", _build)
    about = "native, or compute capabilities as 8.0,9.0 (default: %(default)s)"
    build.add_argument("--arch", metavar="LIST", default="native", help=about)
    build.add_argument("--nvcc", metavar="PATH", default="", help=_NVCC)
    about = "the applications to try a roofline on (gpp, gsrb, lecture) instead of the benchmark"
    build.add_argument("--apps", action="store_true", help=about)
    build.add_argument("--force", action="store_true", help="compile even if it was compiled before")
    listing = action("list", "list ceilings and variants, where they apply, and what is unproven on hardware", _list)
    listing.add_argument("--device", metavar="GPU", default="", help="those of this GPU (index or UUID), or cpu")
    listing.add_argument("--arch", metavar="LIST", default="", help="those of compute capabilities, as 9.0")
    listing.add_argument("--json", action="store_true", help="as JSON")
    add_program(listing)
    theory = action("theory", "print peaks of GPUs, mostly of data sheets, and their sources; needs no GPU", _theory)
    theory.add_argument("--gpu", metavar="NAME", default="", help="only GPUs whose name contains NAME (default: all)")
    theory.add_argument("--json", action="store_true", help="as JSON, in SI units, by ceiling")
    merge = action("merge", "combine files of several nodes or MPI ranks; names slow GPUs", _merge)
    merge.add_argument("files", metavar="FILE", nargs="+", help="ceilings files (JSON) of GPUs of one model")
    merge.add_argument("-o", "--output", metavar="FILE", default="", help="file to write the merged ceilings to")
    merge.add_argument("--force", action="store_true", help="overwrite FILE")
    merge.add_argument("--json", action="store_true", help="print the merged ceilings instead of a table")
    compare = action("compare", "compare ceilings files: GPUs, drivers, a node with its cluster's median", _compare, _COMPARE)
    compare.add_argument("files", metavar="FILE", nargs="+", help="ceilings files (JSON), the first is A")
    about = "exit code 1 if a ceiling is slower by more, as 3%%"
    compare.add_argument("--threshold", metavar="RATIO", type=ratio, help=about)
    compare.add_argument("--json", action="store_true", help="as JSON, in SI units")
    draw = action("draw", "draw the roofline of the machine that a ceilings file was measured on", _draw)
    draw.add_argument("file", metavar="CEILINGS", help="ceilings file (JSON)")
    about = "picture to write; its suffix says the format: png, svg or pdf; - is standard output"
    draw.add_argument("-o", "--output", metavar="FILE", action="append", required=True, help=about)
    draw.add_argument("--format", metavar="FORMAT", default="", help="format, where the suffix does not say it")
    draw.add_argument("--theme", choices=("light", "dark"), default="light", help="colours (default: %(default)s)")
    draw.add_argument("--force", action="store_true", help="overwrite FILE")


def run_bench(args: Namespace) -> int:
    """What the action does."""
    code: int = args.act(args)
    return code


def _run(args: Namespace) -> int:
    if args.output == outputs.STANDARD_OUTPUT:
        reason = "a run may write a picture beside it and keep it for --ceilings auto"
        raise UsageError("Cannot use --output", args.output, reason, "Name a file; --json prints what is written, too.")
    programs = [path for path in (args.runner, args.nvcc) if path]
    outputs.check_unread(args.output, programs)
    on_cpu = args.device == CPU
    built = _program(args, on_cpu=on_cpu)
    program, rank = runner.Runner(built.path, CPU if on_cpu else GPU), None if on_cpu else device.local_rank()
    gpus = device.choose(program.devices(), "auto" if on_cpu else args.device, rank)
    catalogue.select(catalogue.kinds_of(program.variants()), args.only, args.skip)
    # One file per GPU: the one named, or one in the folder named, or in the current one; ranks draw nothing.
    given, alone = Path(args.output), rank is None
    targets = [given / campaign.file_name(gpu) for gpu in gpus] if given.is_dir() else [given]
    if not given.is_dir() and (len(gpus) > 1 or not alone):
        reason = "each GPU gets a file of its own, and this is no folder"
        raise UsageError("Cannot use --output", args.output, reason, "Give a folder that is there.")
    drawn = {target: target.with_suffix(".svg") for target in targets if alone and not args.no_picture}
    for target in targets:
        svg = [drawn[target]] if target in drawn else []
        if any(os.path.realpath(path).lower() == os.path.realpath(target).lower() for path in svg):
            reason = "the picture of the roofline would replace the measurements"
            raise UsageError("Cannot use --output", str(target), reason, "Give a name that ends in .json, or --no-picture.")
        for path in (target, *svg):
            outputs.check_output(str(path), args.force, programs)
    options = {name: found for name in ("trials", "sessions", "budget") if (found := getattr(args, name)) is not None}
    settings = replace(measuring.QUICK if args.quick else measuring.FULL, data=args.data, seed=args.seed, **options)
    # What is partial or flattering is no GPU's ceilings, and ranks of a whole cluster share one home folder.
    kept = alone and not (args.quick or args.only or args.skip or args.data != "random")
    measure = partial(campaign.measure_device, settings=settings, only=args.only, skip=args.skip, force=args.force)
    code = 0
    for gpu, target in zip(gpus, targets, strict=True):
        if alone:
            with Bar(gpu.name, shown=outputs.has_cursor(sys.stderr)) as bar:
                content = measure(built, gpu, target, progress=bar)
        else:
            content = measure(built, gpu, target, progress=campaign.Progress())
        if args.json:
            outputs.write_text(document.as_text(content).rstrip())
        elif alone:
            outputs.write_text(files.measured(content))
        told, capability = [f"{target}: {document.summary_line(content)}"], content["device"].get("cc")
        if capability and capability not in proven() and alone:
            told.append(f"{catalogue.UNPROVEN}: the authors never ran this benchmark on compute capability {capability}")
        shaken = [entry for entry in content["ceilings"] if entry["verdict"] in ("disturbed", "unstable")]
        shares = [finite(inside(entry, "variant", "disturbed")) for entry in shaken]
        taken = max((share for share in shares if share > measuring.LIMITS.disturbed), default=0.0)
        others = f"other programs took up to {percent(taken)} of the CPU. " if taken else ""
        told += [f"{target}: {others}{MEASURE_AGAIN}"] if shaken else []
        if not any(entry["accepted"] for entry in content["ceilings"]):
            code = 1
            outputs.warn([*told, f"{target}: no ceiling was accepted, nothing in it stands, and it says why"])
            continue
        outputs.warn(told)
        if target in drawn:
            try:
                outputs.deliver(str(drawn[target]), picture.render(content, "svg"), force=True)
            except RooflineError as error:
                outputs.say(str(error))
        if kept:
            try:
                keep(this_machine(), target)
                outputs.warn(["kept for --ceilings auto"])
            except RooflineError as error:
                outputs.warn([f"not kept for --ceilings auto: {error}"])
    return code


def _program(args: Namespace, arch: str = "native", on_cpu: bool = False) -> build.Built:
    if not args.runner:
        how = build.How(say=outputs.say)
        return build.build_host(how) if on_cpu else build.build(arch, args.nvcc, how)
    if not os.access(args.runner, os.X_OK) or os.path.isdir(args.runner):
        reason = "it is no program" if os.path.exists(args.runner) else "there is no such file"
        raise RooflineError("Cannot use --runner", args.runner, reason, "Build one with `ncu-roofline bench build`.")
    return build.describe(Path(args.runner).absolute())


def _build(args: Namespace) -> int:
    make = build.build_apps if args.apps else lambda *words: (build.build(*words),)
    for built in make(args.arch, args.nvcc, build.How(force=args.force, say=outputs.say)):
        outputs.say(f"ncu-roofline: {'built before' if built.reused else 'built'} with {built.compiler} for {built.target}")
        outputs.write_text(str(built.path))
    return 0


def _list(args: Namespace) -> int:
    on_cpu = args.device == CPU
    program = runner.Runner(_program(args, args.arch or "native", on_cpu).path, CPU if on_cpu else GPU)
    capabilities = build.parse_architectures(args.arch) if args.arch else ()
    if args.device and not on_cpu:
        chosen = device.choose(program.devices(), args.device, None)
        capabilities = tuple(dict.fromkeys(gpu.capability_text for gpu in chosen))
    rows = catalogue.rows(program.variants(), capabilities)
    texts = [{key: ", ".join(cell) if isinstance(cell, list) else cell or "-" for key, cell in row.items()} for row in rows]
    outputs.write_text(json.dumps(rows, indent=1) if args.json else "\n".join(listing(texts)))
    return 0


def _theory(args: Namespace) -> int:
    chosen = spec.named(args.gpu) if args.gpu else spec.gpus()
    if not chosen:
        known = ", ".join(gpu.id for gpu in spec.gpus())
        raise UsageError("Cannot use --gpu", args.gpu, "it is in no table", f"There are: {known}.")
    peaks = [(gpu, catalogue.table(gpu)) for gpu in chosen]
    rows = [{**asdict(gpu), "compute_capability": capability_text(gpu.compute_capability)} for gpu in chosen]
    for row, (_, found) in zip(rows, peaks, strict=True):
        row["peaks"] = {name: peak.value for name, peak in found.items()}
        row["uncertain"] = {name: True for name, peak in found.items() if peak.uncertain}
    outputs.write_text(json.dumps(rows, indent=1) if args.json else files.theory_table(peaks))
    return 0


def _merge(args: Namespace) -> int:
    if args.output:
        outputs.check_output(args.output, args.force, args.files)
    content = files.merge([files.open_file(path) for path in args.files])
    if args.output:
        outputs.write_output(args.output, document.as_text(content).encode(), args.force)
    if args.output != outputs.STANDARD_OUTPUT:
        outputs.write_text(document.as_text(content).rstrip() if args.json else files.measured(content))
    return 0


def _compare(args: Namespace) -> int:
    first, *others = [files.open_file(path) for path in args.files]
    if not others:
        raise UsageError("Cannot compare", first.path, "there is nothing to compare it with", "Give two files or more.")
    found, limit = [files.compare(first, other) for other in others], args.threshold
    slower = [[] if limit is None else [row["ceiling"] for row in files.over(one, limit)] for one in found]
    rows = [{**one, "over_threshold": ids} for one, ids in zip(found, slower, strict=True)]
    outputs.write_text(json.dumps(rows, indent=1) if args.json else "\n\n".join(files.compared(one, limit) for one in found))
    return 1 if any(slower) else 0


def _draw(args: Namespace) -> int:
    targets = outputs.targets(args, picture.FORMATS, lambda: [args.file])
    content = read_document(args.file)
    for path, output_format in targets.items():
        outputs.deliver(path, picture.render(content, output_format, args.theme), args.force)
    return 0
