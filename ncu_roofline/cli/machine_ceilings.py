"""Which measured ceilings `install` and `profile` use: given, kept for the GPU, or measured now."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from ncu_roofline.ceilings import Ceilings
from ncu_roofline.cli.bench_progress import Bar
from ncu_roofline.cli.outputs import say
from ncu_roofline.errors import RooflineError
from ncu_roofline.machine.gpus import Gpu, choose, find_gpus
from ncu_roofline.machine.kept import keep, kept_for
from ncu_roofline.machine.machine import Machine


@dataclass(frozen=True)
class Chosen:
    """The ceilings, None for theoretical roofs, and in one line why these."""

    ceilings: Ceilings | None
    why: str


def ceilings_for_install(machine: Machine, given: str, device: str, *, bench: bool, dry_run: bool) -> Chosen:
    """The ceilings to draw.  Raises RooflineError for what was named and is not there; a failed measurement only says so."""
    if given:
        ceilings = _read(machine, given, dry_run)
        _check_gpu(machine, ceilings, device)
        return Chosen(ceilings, f"Measured roofs: {ceilings.provenance}")
    gpus, why_none = find_gpus(machine)
    gpu = choose(gpus, device)
    if gpu is None:
        return Chosen(None, f"Theoretical roofs: {why_none}")
    found = kept_for(machine, gpu)
    if found:
        return Chosen(found, f"Measured roofs, kept from before: {found.provenance}")
    if not bench:
        return Chosen(None, f"Theoretical roofs: {gpu.name} was not measured (--no-bench)")
    if dry_run:
        return Chosen(None, f"Would measure the ceilings of {gpu.name}")
    return _measured(machine, gpu)


def _read(machine: Machine, path: str, dry_run: bool) -> Ceilings:
    from ncu_roofline.ceilings import read_ceilings

    return read_ceilings(path) if dry_run else keep(machine, path)


def _check_gpu(machine: Machine, ceilings: Ceilings, device: str) -> None:
    gpu = choose(find_gpus(machine)[0], device)
    if gpu and gpu.compute_capability and not ceilings.applies_to(gpu.name, gpu.compute_capability):
        say(f"The ceilings are those of {ceilings.device or 'an unnamed GPU'}; the GPU here is {gpu.name}")


def _measured(machine: Machine, gpu: Gpu) -> Chosen:
    try:
        from ncu_roofline.bench import measure

        say(f"Measuring the ceilings of {gpu.name}: up to 3 minutes, once (--no-bench leaves it out)")
        with Bar(gpu.name, sys.stderr is not None and sys.stderr.isatty()) as bar:
            measured = measure(gpu.uuid or str(gpu.index), progress=bar)
        ceilings = keep(machine, measured)
    except RooflineError as error:
        return Chosen(None, f"Theoretical roofs: {error}")
    return Chosen(ceilings, f"Measured roofs: {ceilings.provenance}")
