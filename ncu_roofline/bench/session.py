"""From the command's wishes to ceilings files: GPUs found and chosen, measured one after another, written."""

from __future__ import annotations

import os
import platform
import re
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.files import check_target, write_atomically
from ncu_roofline.base.texts import shorten
from ncu_roofline.bench.build import Built
from ncu_roofline.bench.campaign import OUT_OF_TIME, Campaign, Journal, Outcome, Progress, Silent, candidates
from ncu_roofline.bench.catalogue import kinds_of, select
from ncu_roofline.bench.device import Device, parse_device
from ncu_roofline.bench.document import Origin, as_text, ceiling, document, link_of
from ncu_roofline.bench.measuring import FULL, Settings, Timing
from ncu_roofline.bench.runner import TOLD, Runner, RunnerFailed, Session, Variant
from ncu_roofline.bench.telemetry import gpus, open_telemetry, state_text
from ncu_roofline.formats.ceilings import CPU
from ncu_roofline.version import __version__

TIMING = Timing(time.monotonic, time.sleep)


def find_devices(runner: Runner) -> tuple[Device, ...]:
    """The GPUs that the program sees, at least one, or the CPU.  Raises RooflineError with what to do where there is none."""
    try:
        rows = runner.devices()
        found = tuple(parse_device(row) for row in rows if "unusable" not in row)
    except RunnerFailed as error:
        raise _no_device(runner, str(error)) from error
    except (ValueError, TypeError) as error:
        what = "the CPU" if runner.kind == CPU else "a GPU"
        raise _broken(runner, f"it describes {what} wrongly ({shorten(str(error), TOLD)})") from error
    if not found:
        raise _no_device(runner, next((shorten(str(row["unusable"]), TOLD) for row in rows), "there is none"))
    return found


def _no_device(runner: Runner, reason: str) -> RooflineError:
    if runner.kind == CPU:
        return RooflineError("Cannot measure on", "this CPU", reason, f"See what `{runner.path} devices` says.")
    attached, lower = gpus(), reason.lower()
    seen = [" ".join(filter(None, (f"GPU {gpu['index']}", gpu["name"], f"({state_text(gpu)})"))) for gpu in attached]
    reason += f"; the driver sees {', '.join(seen)}" if seen else ""
    if "insufficient" in lower:
        next_step = "Install an NVIDIA driver as new as the CUDA toolkit; `ncu-roofline bench theory` needs neither."
        return RooflineError("Cannot measure on", "a GPU", reason, next_step)
    modes = [gpu["compute_mode"] or "" for gpu in attached]
    if "prohibited" in modes:
        advice = "Have computing allowed with `nvidia-smi -c DEFAULT`"
    elif any(gpu["mig_enabled"] for gpu in attached):
        advice = "Create an instance with `nvidia-smi mig`, and check CUDA_VISIBLE_DEVICES"
    elif any(gpu["other_processes"] for gpu, mode in zip(attached, modes, strict=True) if mode.startswith("exclusive")):
        advice = "Wait until the other processes have ended: the compute mode lets one at a time"
    elif "no cuda-capable device" in lower or "nodevice" in lower:
        advice = "Check `nvidia-smi -L` and CUDA_VISIBLE_DEVICES; with MIG enabled, create an instance"
    else:
        advice = "Check that `nvidia-smi` works here"
    return RooflineError("Cannot measure on", "a GPU", reason, f"{advice}; `ncu-roofline bench theory` needs no GPU.")


def _broken(runner: Runner, reason: str) -> RooflineError:
    next_step = "Build it again with `ncu-roofline bench build --force`."
    if runner.kind == CPU:
        next_step = "Remove it, so that the next run builds it again, or name another with --runner."
    return RooflineError("Cannot use", runner.path, reason, next_step)


def list_variants(runner: Runner) -> tuple[Variant, ...]:
    """What the program can measure, at least one way.  Raises RooflineError."""
    try:
        found = runner.variants()
    except RunnerFailed as error:
        raise _broken(runner, str(error)) from error
    if not found:
        raise _broken(runner, "its list of ceilings is empty")
    return found


def file_name(device: Device) -> str:
    """The name of a GPU's ceilings file: one per host and GPU, so that ranks never share one."""
    node = re.sub(r"[^A-Za-z0-9.-]+", "-", platform.node().partition(".")[0]) or "host"
    return f"ceilings.{node}.{_as_word(device.uuid)}.json"


def _as_word(uuid: str) -> str:
    return re.sub(r"[^A-Za-z0-9-]+", "-", uuid)


def measure_device(
    built: Built,
    device: Device,
    output: Path,
    settings: Settings = FULL,
    *,
    only: tuple[str, ...] = (),
    skip: tuple[str, ...] = (),
    overwrite: bool = False,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Measure a GPU and write its file; what it says is returned, too.

    What is finished is kept in ``<output>.journal`` until the file is written, so that a later call goes on from there.
    Raises RooflineError where nothing could be measured or written.
    """
    check_target(output, overwrite)
    runner, progress = Runner(built.path, device.kind), progress or Silent()
    variants = list_variants(runner)
    kinds = select(kinds_of(variants), only, skip)
    # What is named is measured, in a quick run, too.
    wanted = candidates(kinds, variants, device.capability_text, settings.quick and not only)
    with _alone(device):
        telemetry = open_telemetry(device)
        identity = telemetry.identity()
        if identity.get("mig_enabled"):  # then a program sees nothing but instances, whatever their names are
            device = replace(device, mig=True)
        key = {"version": __version__, "uuid": device.uuid, "program": built.sha256, **settings.key()}
        journal = Journal(output.with_name(output.name + ".journal"), key)
        source = Session(runner, device.index)

        def told(outcome: Outcome) -> None:
            progress.found(ceiling(outcome, device, settings, link_of(identity)))

        try:
            deadline = TIMING.now() + settings.budget
            how = (settings, TIMING, deadline, device.kind)
            outcomes = Campaign(source, telemetry, *how, journal, progress, told).run(wanted)
        finally:
            source.renew()
    content = document(device, outcomes, settings, Origin(built.facts(), identity, telemetry.reason))
    if not any(entry["value"] is not None for entry in content["ceilings"]):
        journal.remove()
        raise _nothing(content, device)
    write_atomically(output, [as_text(content).encode()], overwrite=overwrite)
    journal.remove()
    return content


def _nothing(content: Mapping[str, Any], device: Device) -> RooflineError:
    entries, facts = content["ceilings"], content["device"]
    failed = [entry for entry in entries if entry["verdict"] == "failed"]
    late = [entry for entry in entries if OUT_OF_TIME in entry["reasons"]]
    told = (failed or late or entries)[0]
    reason = f"no ceiling could be measured; {told['id']}: {'; '.join(told['reasons'])}"
    if said := state_text({**facts, "mig_enabled": facts.get("mig", {}).get("enabled")}):
        reason += f"; the driver says: {said}"
    if not failed:
        next_step = "Give it more time with --budget." if late else "Choose other ceilings."
    elif device.is_cpu:
        next_step = "Choose other ceilings, or build with another compiler (CXX)."
    else:
        next_step = "Check `nvidia-smi`, build again with `ncu-roofline bench build --force`, or choose other ceilings."
    return RooflineError("Cannot measure on", f"{device.name} {device.uuid}", reason, next_step)


@contextmanager
def _alone(device: Device) -> Iterator[None]:
    """Nobody else measures this GPU now: two ranks on one GPU would both see half of it."""
    try:
        import fcntl

        path = Path(tempfile.gettempdir()) / f"ncu-roofline-{os.getuid()}-{_as_word(device.uuid)}.lock"
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except (ImportError, OSError):  # Windows; a full, read-only or missing folder is no reason not to measure
        yield
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        reason = "another `ncu-roofline bench run` is measuring it"
        next_step = "Wait for it; under MPI start as many ranks per node as there are GPUs."
        raise RooflineError("Cannot measure on", f"{device.name} {device.uuid}", reason, next_step) from error
    finally:
        os.close(handle)
