"""From the command's wishes to ceilings files: GPUs found and chosen, measured one after another, written."""

from __future__ import annotations

import os
import platform
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ncu_roofline.bench.build import Built
from ncu_roofline.bench.campaign import Campaign, Journal, Progress, Silent, candidates
from ncu_roofline.bench.catalogue import CeilingKind, catalogue, kind_of, select
from ncu_roofline.bench.device import Device, parse_device
from ncu_roofline.bench.document import Origin, as_text, document
from ncu_roofline.bench.measuring import Bench, Timing
from ncu_roofline.bench.runner import Runner, RunnerFailed, Variant
from ncu_roofline.bench.settings import FULL, Settings
from ncu_roofline.bench.telemetry import NoTelemetry, Telemetry, open_telemetry
from ncu_roofline.errors import RooflineError
from ncu_roofline.files import check_target, write_atomically
from ncu_roofline.version import __version__

REAL_TIME = Timing(time.monotonic, time.sleep)


@dataclass(frozen=True)
class Wish:
    """What to measure and how; the defaults are a full run of everything, silent."""

    settings: Settings = FULL
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    overwrite: bool = False
    progress: Progress = field(default_factory=Silent)
    telemetry: Callable[[Device], Telemetry] = open_telemetry
    timing: Timing = REAL_TIME


def find_devices(runner: Runner) -> tuple[Device, ...]:
    """The GPUs that the program sees, at least one.  Raises RooflineError with what to do where there is none."""
    found: list[Device] = []
    while True:
        try:
            device = parse_device(runner.device(len(found)))
        except RunnerFailed as error:
            if found:
                return tuple(found)
            raise RooflineError("Cannot measure on", "a GPU", str(error), _advice(str(error))) from error
        except (ValueError, TypeError) as error:
            raise _broken(runner, f"it describes a GPU wrongly ({error})") from error
        if device.uuid in {other.uuid for other in found}:  # a program that takes any index would go on for ever
            return tuple(found)
        found.append(device)


def _advice(reason: str) -> str:
    lower = reason.lower()
    if "insufficient" in lower:
        return "Install an NVIDIA driver as new as the CUDA toolkit; `ncu-roofline bench theory` needs neither."
    if "no cuda-capable device" in lower or "nodevice" in lower:
        advice = "Check `nvidia-smi -L` and CUDA_VISIBLE_DEVICES; with MIG enabled, create an instance"
        return f"{advice}; `ncu-roofline bench theory` needs no GPU."
    return "Check that `nvidia-smi` works here; `ncu-roofline bench theory` needs no GPU."


def _broken(runner: Runner, reason: str) -> RooflineError:
    return RooflineError("Cannot use", runner.path, reason, "Build it again with `ncu-roofline bench build --force`.")


def list_variants(runner: Runner) -> tuple[Variant, ...]:
    """What the program can measure.  Raises RooflineError."""
    try:
        return runner.variants()
    except RunnerFailed as error:
        raise _broken(runner, str(error)) from error


def all_kinds(variants: Sequence[Variant]) -> tuple[CeilingKind, ...]:
    """The catalogue, and after it what the program has beyond."""
    known = catalogue()
    more = dict.fromkeys((v.ceiling, v.unit) for v in variants if v.ceiling not in {kind.id for kind in known})
    return (*known, *(kind_of(ceiling, unit) for ceiling, unit in more))


def file_name(device: Device) -> str:
    """The name of a GPU's ceilings file: one per host and GPU, so that ranks never share one."""
    node = re.sub(r"[^A-Za-z0-9.-]+", "-", platform.node().partition(".")[0]) or "host"
    return f"ceilings.{node}.{re.sub(r'[^A-Za-z0-9-]+', '-', device.uuid)}.json"


def measure_device(built: Built, device: Device, output: Path, wish: Wish) -> dict[str, Any]:
    """Measure a GPU and write its file; what it says is returned, too.

    What is finished is kept in ``<output>.journal`` until the file is written, so that a later call goes on from there.
    Raises RooflineError where nothing could be measured or written.
    """
    check_target(output, wish.overwrite)
    runner = Runner(built.path)
    variants = list_variants(runner)
    kinds = select(all_kinds(variants), wish.only, wish.skip)
    wanted = candidates(kinds, variants, device.capability_text, wish.settings.quick)
    with _alone(device):
        telemetry = wish.telemetry(device)
        identity = telemetry.identity()
        if identity.get("mig_enabled"):  # then a program sees nothing but instances, whatever their names are
            device = replace(device, mig=True)
        key = {"version": __version__, "uuid": device.uuid, "program": built.sha256, **wish.settings.key()}
        journal = Journal(output.with_name(output.name + ".journal"), key)
        deadline = wish.timing.now() + wish.settings.budget
        bench = Bench(runner, device.index, telemetry, wish.settings, wish.timing, deadline)
        outcomes = Campaign(bench, journal, wish.progress).run(wanted)
    missing = telemetry.reason if isinstance(telemetry, NoTelemetry) else ""
    content = document(device, outcomes, wish.settings, Origin(built.facts(), identity, missing))
    _check_any(content, device)
    write_atomically(output, [as_text(content).encode()], overwrite=wish.overwrite)
    journal.remove()
    return content


def _check_any(content: Mapping[str, Any], device: Device) -> None:
    entries = content["ceilings"]
    if any(entry["value"] is not None for entry in entries):
        return
    failed = next((entry for entry in entries if entry["verdict"] == "failed"), entries[0])
    reason = f"no ceiling could be measured; {failed['id']}: {'; '.join(failed['reasons'])}"
    next_step = "Check `nvidia-smi`, build again with `ncu-roofline bench build --force`, or choose other ceilings."
    raise RooflineError("Cannot measure on", f"{device.name} {device.uuid}", reason, next_step)


@contextmanager
def _alone(device: Device) -> Iterator[None]:
    """Nobody else measures this GPU now: two ranks on one GPU would both see half of it."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    user = os.getuid()
    path = Path(tempfile.gettempdir()) / f"ncu-roofline-{user}-{re.sub(r'[^A-Za-z0-9-]+', '-', device.uuid)}.lock"
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError:  # a full or read-only disk is no reason not to measure
        yield
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        reason = "another `ncu-roofline bench run` is measuring it"
        next_step = "Wait for it; under MPI start as many ranks per node as there are GPUs."
        raise RooflineError("Cannot measure on", f"{device.name} {device.uuid}", reason, next_step) from error
    else:
        yield
    finally:
        os.close(handle)
