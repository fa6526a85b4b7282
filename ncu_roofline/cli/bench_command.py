"""`ncu-roofline bench`: measure, build, list, theory, merge, verify."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ncu_roofline.cli.outputs import check_output, say, write_output, write_text
from ncu_roofline.errors import RooflineError, UsageError

if TYPE_CHECKING:
    from ncu_roofline.bench.build import Built
    from ncu_roofline.bench.device import Device
    from ncu_roofline.bench.session import Wish
    from ncu_roofline.bench.settings import Settings
    from ncu_roofline.facts.gpus import Gpu


def run(args: argparse.Namespace) -> int:
    """Run the action asked for."""
    actions = {"run": _run, "build": _build, "list": _list, "theory": _theory, "merge": _merge, "verify": _verify}
    return actions[args.action](args)


def _run(args: argparse.Namespace) -> int:
    from ncu_roofline.bench.catalogue import select
    from ncu_roofline.bench.device import choose, local_rank
    from ncu_roofline.bench.runner import Runner
    from ncu_roofline.bench.session import Wish, all_kinds, find_devices, list_variants
    from ncu_roofline.cli.bench_progress import Bar

    built = _program(args)
    runner, rank = Runner(built.path), local_rank()
    devices = choose(find_devices(runner), args.device, rank)
    select(all_kinds(list_variants(runner)), args.only, args.skip)
    targets = _targets(args, devices, rank is not None)
    for target in targets:
        check_output(str(target), args.force)
    for device, target in zip(devices, targets, strict=True):
        with Bar(device.name, shown=rank is None and sys.stderr is not None and sys.stderr.isatty()) as bar:
            wish = Wish(_settings(args), args.only, args.skip, args.force, bar)
            content = _one(built, device, target, wish)
        _tell(content, target, args.json, rank is not None)
    return 0


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
    from ncu_roofline.facts.gpus import proven

    if as_json:
        write_text(as_text(content).rstrip())
    elif not is_rank:
        write_text(measured(content))
    say(f"ncu-roofline: {target}: {summary_line(content)}")
    capability = content["device"]["cc"]
    if capability not in proven() and not is_rank:
        say(f"ncu-roofline: {UNPROVEN}: the authors never ran this benchmark on compute capability {capability}")


def _targets(args: argparse.Namespace, devices: Sequence[Device], is_rank: bool) -> list[Path]:
    """One file per GPU: the one named, or one in the folder named, or in the current one."""
    from ncu_roofline.bench.session import file_name

    given = Path(args.output) if args.output else Path()
    if not args.output or given.is_dir():
        return [given / file_name(device) for device in devices]
    if len(devices) > 1 or is_rank:
        reason = "each GPU gets a file of its own, and this is no folder"
        raise UsageError("Cannot use --output", args.output, reason, "Give a folder that is there.")
    return [given]


def _settings(args: argparse.Namespace) -> Settings:
    from ncu_roofline.bench.settings import FULL, QUICK

    given = {name: value for name in ("trials", "sessions", "budget") if (value := getattr(args, name)) is not None}
    return dataclasses.replace(QUICK if args.quick else FULL, data=args.data, seed=args.seed, **given)


def _program(args: argparse.Namespace, arch: str = "native") -> Built:
    from ncu_roofline.bench.build import build, describe

    if args.runner:
        if not os.access(args.runner, os.X_OK) or os.path.isdir(args.runner):
            reason = "it is no program" if os.path.exists(args.runner) else "there is no such file"
            raise RooflineError("Cannot use --runner", args.runner, reason, "Build one with `ncu-roofline bench build`.")
        return describe(Path(args.runner).absolute())
    return build(arch, args.nvcc, say=say)


def _build(args: argparse.Namespace) -> int:
    from ncu_roofline.bench.build import build

    built = build(args.arch, args.nvcc, force=args.force, say=say)
    say(f"ncu-roofline: {'built before' if built.reused else 'built'} with {built.compiler} for {built.target}")
    write_text(str(built.path))
    return 0


def _list(args: argparse.Namespace) -> int:
    from ncu_roofline.bench.catalogue import rows
    from ncu_roofline.rendering.table import listing

    variants, capabilities, note = _listed(args)
    listed = rows(variants, capabilities)
    if args.json:
        write_text(json.dumps(listed, indent=1))
        return 0
    shown = [
        {key: ", ".join(value) if isinstance(value, list) else value or "-" for key, value in row.items()} for row in listed
    ]
    write_text("\n".join(listing(shown)))
    if note:
        say(f"ncu-roofline: {note}")
    return 0


def _listed(args: argparse.Namespace) -> tuple[Any, tuple[str, ...], str]:
    """Variants (None where there is no program to ask), the capabilities meant, and what else to say."""
    from ncu_roofline.bench.build import parse_architectures
    from ncu_roofline.bench.device import choose
    from ncu_roofline.bench.runner import Runner
    from ncu_roofline.bench.session import find_devices, list_variants

    wanted = parse_architectures(args.arch) if args.arch else ()
    try:
        runner = Runner(_program(args, args.arch or "native").path)
    except RooflineError as error:
        if args.runner or args.nvcc or args.device:
            raise
        return None, wanted, f"variants are known when the benchmark is built, and it is not. {error}"
    variants = list_variants(runner)
    if args.device:
        wanted = tuple(dict.fromkeys(d.capability_text for d in choose(find_devices(runner), args.device, None)))
    return variants, wanted, ""


def _theory(args: argparse.Namespace) -> int:
    from ncu_roofline.bench.catalogue import catalogue
    from ncu_roofline.bench.tables import theory_table
    from ncu_roofline.bench.theory import table
    from ncu_roofline.facts.gpus import gpus, named

    chosen = named(args.gpu) if args.gpu else gpus()
    if not chosen:
        known = ", ".join(gpu.id for gpu in gpus())
        raise UsageError("Cannot use --gpu", args.gpu, "it is in no table", f"There are: {known}.")
    kinds = {kind.id: kind for kind in catalogue()}
    peaks = [(gpu, table(gpu, kinds)) for gpu in chosen]
    if args.json:
        write_text(json.dumps([_theory_facts(gpu, found) for gpu, found in peaks], indent=1))
    else:
        write_text(theory_table(peaks))
    return 0


def _theory_facts(gpu: Gpu, peaks: dict[str, float]) -> dict[str, Any]:
    facts = dataclasses.asdict(gpu)
    facts["compute_capability"] = f"{gpu.compute_capability[0]}.{gpu.compute_capability[1]}"
    return {**facts, "peaks": peaks}


def _merge(args: argparse.Namespace) -> int:
    from ncu_roofline.bench.document import as_text
    from ncu_roofline.bench.merging import merge, read_source
    from ncu_roofline.bench.tables import measured

    if args.output:
        check_output(args.output, args.force)
    content = merge([read_source(path) for path in args.files])
    if args.output:
        write_output(args.output, as_text(content).encode(), args.force)
    if args.output != "-":
        write_text(as_text(content).rstrip() if args.json else measured(content))
    return 0


def _verify(args: argparse.Namespace) -> int:
    from ncu_roofline.bench.verifying import verify

    found = verify(args.file)
    errors = [finding for finding in found if finding.severity == "error"]
    if args.json:
        write_text(json.dumps([dataclasses.asdict(finding) for finding in found], indent=1))
    else:
        lines = [f"{f.severity}: {f.ceiling}: {f.text}" if f.ceiling else f"{f.severity}: {f.text}" for f in found]
        write_text("\n".join([*lines, f"{args.file}: {f'{len(errors)} errors' if errors else 'can be used'}"]))
    return 1 if errors else 0
