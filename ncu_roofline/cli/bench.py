"""`ncu-roofline bench`: measure, build, list, theory, merge, compare, verify, draw."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ncu_roofline.base.errors import RooflineError, UsageError
from ncu_roofline.base.forms import inside, number
from ncu_roofline.base.texts import printable
from ncu_roofline.cli.options import argument, choice, flag, option, ratio, words
from ncu_roofline.cli.outputs import (
    STANDARD_OUTPUT,
    Bar,
    check_output,
    check_unread,
    chosen_format,
    deliver,
    has_cursor,
    say,
    write_output,
    write_text,
)
from ncu_roofline.formats.ceilings import CPU, GPU

if TYPE_CHECKING:
    from ncu_roofline.bench.build import Built
    from ncu_roofline.bench.device import Device
    from ncu_roofline.bench.session import Wish
    from ncu_roofline.bench.settings import Settings


def _count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 10_000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to 10000")
    return int(text)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e6:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return value


def _ids(text: str) -> tuple[str, ...]:
    found = words(text)
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} names no ceiling")
    return found


def _nvcc() -> Any:
    return option("compiler (default: of NVCC, PATH, CUDA_HOME)", "PATH")


@dataclass(frozen=True, kw_only=True)
class ProgramOptions:
    """The benchmark: built, or built before."""

    TITLE: ClassVar[str] = "how"
    nvcc: str = _nvcc()
    runner: str = option("a benchmark program that is built already", "PATH")


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How long it measures, and on what."""

    TITLE: ClassVar[str] = "how"
    data: str = choice("what is computed on; zeros flatter (default: %(default)s)", ("random", "zeros"))
    trials: int | None = option("trials per session (default: 15, quick 9)", "N", type=_count, default=None)
    sessions: int | None = option("sessions per ceiling (default: 3, quick 1)", "N", type=_count, default=None)
    budget: float | None = option("time for each GPU (default: 170, quick 27)", "SECONDS", type=_seconds, default=None)
    seed: int = option("of the random data (default: %(default)s)", "N", type=_count, default=1)
    program: ProgramOptions


@dataclass(frozen=True, kw_only=True)
class MeasureRequest:
    """What to measure, on which GPUs."""

    EPILOG: ClassVar[str] = (
        "Everything about how it measures, and what a number means, is in the file it writes.\n"
        "Exit code: 1 if nothing could be measured, or no ceiling of a device was accepted."
    )
    device: str = option(
        "index, UUID or its beginning, or all, or cpu (default: the first GPU; under srun or mpirun the rank's own)",
        "GPU,...",
        default="auto",
    )
    only: tuple[str, ...] = option("only these ceilings, as dram,fp64.fma,tensor", "ID,...", type=_ids, default=())
    skip: tuple[str, ...] = option("all but these ceilings", "ID,...", type=_ids, default=())
    quick: bool = flag("under 30 s: the main ceilings, one session (default: under 3 min)")
    output: str = option("file to write, or a folder where there are several", "FILE", short="-o")
    no_picture: bool = flag("write no picture of the machine's roofline beside FILE (FILE with .svg for .json)")
    force: bool = flag("overwrite FILE, and the picture")
    json: bool = flag("print what is written instead of a table")
    how: Effort


def _run(request: MeasureRequest) -> int:
    from ncu_roofline.bench.catalogue import kinds_of, select
    from ncu_roofline.bench.device import choose, local_rank
    from ncu_roofline.bench.picture import draw
    from ncu_roofline.bench.runner import Runner
    from ncu_roofline.bench.session import Wish, find_devices, list_variants
    from ncu_roofline.bench.settings import LIMITS

    if request.output == STANDARD_OUTPUT:
        next_step = "Name a file; --json prints what is written, too."
        raise UsageError("Cannot use --output", request.output, "a run goes on from a file when it is interrupted", next_step)
    programs = [path for path in (request.how.program.runner, request.how.program.nvcc) if path]
    check_unread(request.output, programs)
    on_cpu = request.device == CPU
    built = _program(request.how.program, on_cpu=on_cpu)
    runner, rank = Runner(built.path, CPU if on_cpu else GPU), None if on_cpu else local_rank()
    devices = choose(find_devices(runner), "auto" if on_cpu else request.device, rank)
    select(kinds_of(list_variants(runner)), request.only, request.skip)
    targets = _targets(request.output, devices, rank is not None)
    pictured = not request.no_picture and rank is None
    for target in targets:
        check_output(str(target), request.force, programs)
        if pictured:
            check_output(str(_picture_of(target)), request.force, programs)
    nothing = 0
    wish = Wish(_settings(request.how, request.quick), request.only, request.skip, request.force)
    for device, target in zip(devices, targets, strict=True):
        if rank is not None:
            content = _one(built, device, target, wish)
        else:
            with Bar(device.name, shown=has_cursor(sys.stderr)) as bar:
                content = _one(built, device, target, replace(wish, progress=bar))
        _tell(content, target, request.json, rank is not None)
        if not any(entry["accepted"] for entry in content["ceilings"]):
            shares = [number(inside(entry, "variant", "disturbed")) for entry in content["ceilings"]]
            taken = max((share for share in shares if share > LIMITS.disturbed), default=None)
            others = "" if taken is None else f"; other programs took up to {taken:.0%} of the CPU"
            say(f"ncu-roofline: {target}: no ceiling was accepted, nothing in it stands, and it says why{others}")
            nothing += 1
            continue
        if pictured:
            say(draw(content, _picture_of(target), overwrite=True))
        # What is partial or flattering is no GPU's ceilings, and ranks of a whole cluster share one home folder.
        if not (request.quick or request.only or request.skip or request.how.data != "random" or rank is not None):
            _keep(target)
    return 1 if nothing else 0


def _picture_of(target: Path) -> Path:
    """The picture beside a file of measurements, which it must not replace.  Raises UsageError."""
    picture = target.with_suffix(".svg")
    if os.path.realpath(picture).lower() == os.path.realpath(target).lower():
        reason = "the picture of the roofline would replace the measurements"
        raise UsageError("Cannot use --output", str(target), reason, "Give a name that ends in .json, or --no-picture.")
    return picture


def _keep(target: Path) -> None:
    from ncu_roofline.plugin.machine.kept import keep
    from ncu_roofline.plugin.machine.machine import this_machine

    try:
        keep(this_machine(), target)
    except RooflineError as error:
        say(f"ncu-roofline: not kept for --ceilings auto: {error}")
    else:
        say("ncu-roofline: kept for --ceilings auto")


def _one(built: Built, device: Device, target: Path, wish: Wish) -> dict[str, Any]:
    from ncu_roofline.bench.session import measure_device

    try:
        return measure_device(built, device, target, wish)
    except KeyboardInterrupt:
        say(f"ncu-roofline: what is measured is kept in {target}.journal; the same command goes on from there")
        raise


def _tell(content: dict[str, Any], target: Path, as_json: bool, is_rank: bool) -> None:
    from ncu_roofline.bench.catalogue import UNPROVEN
    from ncu_roofline.bench.document import as_text, summary_line
    from ncu_roofline.bench.tables import measured
    from ncu_roofline.formats.ceilings import proven

    if as_json:
        write_text(as_text(content).rstrip())
    elif not is_rank:
        write_text(measured(content))
    say(f"ncu-roofline: {target}: {summary_line(content)}")
    capability = content["device"].get("cc")
    if capability and capability not in proven() and not is_rank:
        say(f"ncu-roofline: {UNPROVEN}: the authors never ran this benchmark on compute capability {capability}")


def _targets(output: str, devices: Sequence[Device], is_rank: bool) -> list[Path]:
    """One file per GPU: the one named, or one in the folder named, or in the current one."""
    from ncu_roofline.bench.session import file_name

    given = Path(output)
    if given.is_dir():
        return [given / file_name(device) for device in devices]
    if len(devices) > 1 or is_rank:
        reason = "each GPU gets a file of its own, and this is no folder"
        raise UsageError("Cannot use --output", output, reason, "Give a folder that is there.")
    return [given]


def _settings(how: Effort, quick: bool) -> Settings:
    from ncu_roofline.bench.settings import FULL, QUICK

    given = {name: value for name in ("trials", "sessions", "budget") if (value := getattr(how, name)) is not None}
    return replace(QUICK if quick else FULL, data=how.data, seed=how.seed, **given)


def _program(program: ProgramOptions, arch: str = "native", on_cpu: bool = False) -> Built:
    from ncu_roofline.bench.build import build, describe
    from ncu_roofline.bench.host import build_host

    runner = program.runner
    if not runner:
        return build_host(say=say) if on_cpu else build(arch, program.nvcc, say=say)
    if not os.access(runner, os.X_OK) or os.path.isdir(runner):
        reason = "it is no program" if os.path.exists(runner) else "there is no such file"
        raise RooflineError("Cannot use --runner", runner, reason, "Build one with `ncu-roofline bench build`.")
    return describe(Path(runner).absolute())


@dataclass(frozen=True, kw_only=True)
class BuildRequest:
    """What to compile for, and with what."""

    arch: str = option("native, or compute capabilities as 8.0,9.0 (default: %(default)s)", "LIST", default="native")
    nvcc: str = _nvcc()
    apps: bool = flag("the applications to try a roofline on (gpp, gsrb, lecture) instead of the benchmark")
    force: bool = flag("compile even if it was compiled before")


def _build(request: BuildRequest) -> int:
    from ncu_roofline.bench.build import build, build_apps

    if request.apps:
        found = build_apps(request.arch, request.nvcc, force=request.force, say=say)
    else:
        found = (build(request.arch, request.nvcc, force=request.force, say=say),)
    for built in found:
        say(f"ncu-roofline: {'built before' if built.reused else 'built'} with {built.compiler} for {built.target}")
        write_text(str(built.path))
    return 0


@dataclass(frozen=True, kw_only=True)
class ListRequest:
    """For which GPU or compute capabilities, and how."""

    device: str = option("those of this GPU (index or UUID), or cpu", "GPU")
    arch: str = option("those of compute capabilities, as 9.0", "LIST")
    json: bool = flag("as JSON")
    program: ProgramOptions


def _list(request: ListRequest) -> int:
    from ncu_roofline.bench.build import parse_architectures
    from ncu_roofline.bench.catalogue import rows
    from ncu_roofline.bench.device import choose
    from ncu_roofline.bench.runner import Runner
    from ncu_roofline.bench.session import find_devices, list_variants
    from ncu_roofline.rendering.table import listing

    on_cpu = request.device == CPU
    built = _program(request.program, request.arch or "native", on_cpu)
    runner = Runner(built.path, CPU if on_cpu else GPU)
    capabilities = parse_architectures(request.arch) if request.arch else ()
    if request.device and not on_cpu:
        chosen = choose(find_devices(runner), request.device, None)
        capabilities = tuple(dict.fromkeys(device.capability_text for device in chosen))
    listed = rows(list_variants(runner), capabilities)
    if request.json:
        write_text(json.dumps(listed, indent=1))
        return 0
    shown = [
        {key: ", ".join(value) if isinstance(value, list) else value or "-" for key, value in row.items()} for row in listed
    ]
    write_text("\n".join(listing(shown)))
    return 0


@dataclass(frozen=True, kw_only=True)
class TheoryRequest:
    """Of which GPUs, and how."""

    gpu: str = option("only GPUs whose name contains NAME (default: all)", "NAME")
    json: bool = flag("as JSON, in SI units, by ceiling")


def _theory(request: TheoryRequest) -> int:
    from ncu_roofline.bench.tables import theory_table
    from ncu_roofline.bench.theory import table
    from ncu_roofline.chips.fields import capability_text
    from ncu_roofline.chips.gpus import gpus, named

    chosen = named(request.gpu) if request.gpu else gpus()
    if not chosen:
        known = ", ".join(gpu.id for gpu in gpus())
        raise UsageError("Cannot use --gpu", request.gpu, "it is in no table", f"There are: {known}.")
    peaks = [(gpu, table(gpu)) for gpu in chosen]
    if request.json:
        capabilities = [{"compute_capability": capability_text(gpu.compute_capability)} for gpu in chosen]
        rows = [{**asdict(gpu), **cc, "peaks": found} for (gpu, found), cc in zip(peaks, capabilities, strict=True)]
        write_text(json.dumps(rows, indent=1))
    else:
        write_text(theory_table(peaks))
    return 0


@dataclass(frozen=True, kw_only=True)
class MergeRequest:
    """Which files, into what."""

    files: tuple[str, ...] = argument("ceilings files (JSON) of GPUs of one model", "FILE", nargs="+")
    output: str = option("file to write the merged ceilings to", "FILE", short="-o")
    force: bool = flag("overwrite FILE")
    json: bool = flag("print the merged ceilings instead of a table")


def _merge(request: MergeRequest) -> int:
    from ncu_roofline.bench.document import as_text
    from ncu_roofline.bench.merging import merge, read_source
    from ncu_roofline.bench.tables import measured

    output = request.output
    if output:
        check_output(output, request.force, request.files)
    content = merge([read_source(path) for path in request.files])
    if output:
        write_output(output, as_text(content).encode(), request.force)
    if output != STANDARD_OUTPUT:
        write_text(as_text(content).rstrip() if request.json else measured(content))
    return 0


@dataclass(frozen=True, kw_only=True)
class CompareRequest:
    """What is compared with what, and what fails the command."""

    EPILOG: ClassVar[str] = (
        "Each file is compared with the first, A; files of `bench run` and `bench merge` may be mixed.  Differences below the\n"
        "spread of both (95 % interval or variation between sessions; between the GPUs of a merged file) are none; of a file\n"
        "with one session it is unknown.\n"
        "Exit code: 1 if --threshold is given and an accepted ceiling is slower by more, and by more than the spread."
    )
    files: tuple[str, ...] = argument("ceilings files (JSON), the first is A", "FILE", nargs="+")
    threshold: float | None = option("exit code 1 if a ceiling is slower by more, as 3%%", "RATIO", type=ratio, default=None)
    json: bool = flag("as JSON, in SI units")


def _compare(request: CompareRequest) -> int:
    from ncu_roofline.bench.comparing import as_text, compare, read_side

    first, *others = [read_side(path) for path in request.files]
    if not others:
        raise UsageError("Cannot compare", first.path, "there is nothing to compare it with", "Give two files or more.")
    found = [compare(first, other) for other in others]
    limit = request.threshold
    if request.json:
        over = [[] if limit is None else [row.ceiling for row in one.over(limit)] for one in found]
        rows = [{**one.as_dict(), "over_threshold": ids} for one, ids in zip(found, over, strict=True)]
        write_text(json.dumps(rows, indent=1))
    else:
        write_text("\n\n".join(as_text(one, limit) for one in found))
    return 1 if limit is not None and any(one.over(limit) for one in found) else 0


@dataclass(frozen=True, kw_only=True)
class VerifyRequest:
    """Which file, and how it is told."""

    file: str = argument("ceilings file (JSON)", "FILE")
    json: bool = flag("findings as JSON")


def _verify(request: VerifyRequest) -> int:
    from ncu_roofline.bench.verifying import verify

    found = verify(request.file)
    errors = [finding for finding in found if finding.severity == "error"]
    if request.json:
        write_text(json.dumps([asdict(finding) for finding in found], indent=1))
    else:
        lines = [f"{f.severity}: {f.ceiling}: {f.text}" if f.ceiling else f"{f.severity}: {f.text}" for f in found]
        write_text("\n".join([*lines, f"{printable(request.file)}: {f'{len(errors)} errors' if errors else 'can be used'}"]))
    return 1 if errors else 0


@dataclass(frozen=True, kw_only=True)
class DrawRequest:
    """Which file, into what picture."""

    file: str = argument("ceilings file (JSON)", "CEILINGS")
    output: str = option(
        "picture to write; its suffix says the format: png, svg or pdf; - is standard output", "FILE", short="-o", required=True
    )
    format: str = option("format, where the suffix does not say it", "FORMAT")
    theme: str = choice("colours (default: %(default)s)", ("light", "dark"))
    force: bool = flag("overwrite FILE")


def _draw(request: DrawRequest) -> int:
    from ncu_roofline.bench.picture import FORMATS, render
    from ncu_roofline.formats.ceilings import read_document

    output_format = chosen_format(request.output, request.format, FORMATS, "no format known ({})")
    check_output(request.output, request.force, [request.file])
    deliver(request.output, render(read_document(request.file), output_format, request.theme), request.force)
    return 0


ACTIONS = {
    "run": ("measure the ceilings of the GPUs here and write them as JSON", MeasureRequest, _run),
    "build": ("compile the benchmark or the applications with nvcc, and print their paths", BuildRequest, _build),
    "list": ("list ceilings and variants, where they apply, and what is unproven on hardware", ListRequest, _list),
    "theory": ("print data-sheet peaks and their sources; needs no GPU", TheoryRequest, _theory),
    "merge": ("combine files of several nodes or MPI ranks; names slow GPUs", MergeRequest, _merge),
    "compare": ("compare ceilings files: GPUs, drivers, a node with its cluster's median", CompareRequest, _compare),
    "verify": ("check a ceilings file: form, shares of theory, spread", VerifyRequest, _verify),
    "draw": ("draw the roofline of the machine that a ceilings file was measured on", DrawRequest, _draw),
}
