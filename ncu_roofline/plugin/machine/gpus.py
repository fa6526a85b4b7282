"""The GPUs of the machine, as nvidia-smi tells: names, clocks, MIG."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.chips.fields import parse_capability
from ncu_roofline.plugin.machine.machine import Machine

# The longest list first: an nvidia-smi that does not know one of the fields answers none of them.
_FIELDS = (
    "index,name,uuid,driver_version,compute_cap,mig.mode.current,clocks.sm,clocks.max.sm,clocks_throttle_reasons.active",
    "index,name,uuid,driver_version,compute_cap,mig.mode.current,clocks.sm,clocks.max.sm",
    "index,name,uuid,driver_version,clocks.sm,clocks.max.sm",
    "index,name,uuid,driver_version",
)
_SLOWED = {0x8: "hardware slowdown", 0x20: "software thermal slowdown", 0x40: "heat", 0x80: "power brake"}
"""Bits of nvmlClocksEventReasons that make a measurement worthless (nvml.h)."""


@dataclass(frozen=True)
class Gpu:
    """A GPU; clocks in Hz and None where unknown, texts "" where unknown."""

    index: int
    name: str
    uuid: str
    driver: str
    compute_capability: tuple[int, int] | None = None
    mig: bool = False
    clock: float | None = None
    clock_max: float | None = None
    slowed: tuple[str, ...] = ()


def find_gpus(machine: Machine) -> tuple[list[Gpu], str]:
    """The GPUs, and why there are none ("" where there are some)."""
    program = machine.which("nvidia-smi")
    if not program:
        return [], "there is no nvidia-smi on the PATH"
    reason = ""
    for fields in _FIELDS:
        output = machine.run([program, f"--query-gpu={fields}", "--format=csv,noheader,nounits"])
        if output.code == 0:
            cells = (map(str.strip, row) for row in csv.reader(output.text.splitlines()) if len(row) >= 4)
            rows = (dict(zip(fields.split(","), row, strict=False)) for row in cells)
            gpus = [_gpu(row) for row in rows if row["index"].isdecimal()]
            return gpus, "" if gpus else "nvidia-smi lists none"
        reason = output.reason
    return [], f"nvidia-smi failed: {reason}"


def _gpu(row: dict[str, str]) -> Gpu:
    known = {key: value for key, value in row.items() if value and value[0] not in "[N"}  # [N/A], [Not Supported]
    active = row.get("clocks_throttle_reasons.active", "")
    bits = int(active, 16) if re.fullmatch(r"0x[0-9a-fA-F]+", active) else 0
    return Gpu(
        index=int(row["index"]),
        name=row["name"],
        uuid=known.get("uuid", ""),
        driver=known.get("driver_version", ""),
        compute_capability=parse_capability(row.get("compute_cap", "")),
        mig=row.get("mig.mode.current") == "Enabled",
        clock=_hertz(known.get("clocks.sm")),
        clock_max=_hertz(known.get("clocks.max.sm")),
        slowed=tuple(text for bit, text in _SLOWED.items() if bits & bit),
    )


def _hertz(megahertz: str | None) -> float | None:
    return float(megahertz) * 1e6 if megahertz and megahertz.replace(".", "", 1).isdecimal() else None


def choose(gpus: list[Gpu], device: str) -> Gpu | None:
    """The GPU that ``device`` names by index or (part of) UUID, "" for the first; None where there is none at all.

    Raises RooflineError for a device that is not there.
    """
    if not device:
        return gpus[0] if gpus else None
    found = [gpu for gpu in gpus if device in (str(gpu.index), gpu.uuid) or (len(device) > 4 and gpu.uuid.startswith(device))]
    if len(found) == 1:
        return found[0]
    known = ", ".join(f"{gpu.index} ({gpu.name}, {gpu.uuid})" for gpu in gpus) or "none"
    reason = "it names several GPUs" if found else f"the GPUs here are: {known}"
    raise RooflineError("Cannot use --device", device, reason, "Give an index or a UUID, as `nvidia-smi -L` lists them.")
