"""The GPUs of this machine as the driver lists them, without a CUDA context, and the processors next to them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from ncu_roofline.bench import nvml as library
from ncu_roofline.bench.nvml import or_none
from ncu_roofline.bench.telemetry import other_processes

_PCI_DEVICES = Path("/sys/bus/pci/devices")
_BUS_ID = re.compile(r"([0-9a-fA-F]{4,8}):([0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])")
_CPUS = re.compile(r"(\d+)(?:-(\d+))?")


@dataclass(frozen=True)
class AttachedGpu:
    """A GPU; None where NVML does not say.

    ``index`` is NVML's, in the order of the bus: not the number that CUDA gives.  ``mig`` tells whether it is split into
    instances, ``other_processes`` how many compute on it.
    """

    index: int
    name: str | None
    uuid: str | None
    pci_bus_id: str | None
    mig: bool | None
    compute_mode: str | None
    other_processes: int | None


def gpus() -> list[AttachedGpu]:
    """All GPUs that NVML lists; one that fell off the bus is left out.  NvmlError without NVML or a driver."""
    nvml, found = library.load(), []
    for index in range(nvml.ask("nvmlDeviceGetCount")):
        handle = or_none(nvml.ask, "nvmlDeviceGetHandleByIndex", index)
        if handle is None:
            continue
        pci = or_none(nvml.ask, "nvmlDeviceGetPciInfo", handle)
        mig = or_none(nvml.ask, "nvmlDeviceGetMigMode", handle)
        mode = or_none(nvml.ask, "nvmlDeviceGetComputeMode", handle)
        found.append(
            AttachedGpu(
                index=index,
                name=or_none(nvml.ask, "nvmlDeviceGetName", handle),
                uuid=or_none(nvml.ask, "nvmlDeviceGetUUID", handle),
                pci_bus_id=None if pci is None else pci.busId.decode("ascii", "replace"),
                mig=None if mig is None else bool(mig[0]),
                compute_mode=None if mode is None else library.COMPUTE_MODES.get(mode),
                other_processes=other_processes(nvml, handle),
            )
        )
    return found


def local_cpus(pci_bus_id: str, devices: Path = _PCI_DEVICES) -> set[int]:
    """Numbers of the processors next to a GPU, as Linux tells them; empty where it does not.

    ``pci_bus_id`` reads like "0000:3B:00.0"; NVML writes the domain with eight digits, Linux with four.
    """
    bus_id = _BUS_ID.fullmatch(pci_bus_id)
    if bus_id is None:
        return set()
    try:
        text = (devices / f"{int(bus_id[1], 16):04x}:{bus_id[2].lower()}" / "local_cpulist").read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return set()
    ranges = [_CPUS.fullmatch(part) for part in text.split(",")]
    known = [found for found in ranges if found is not None]
    if len(known) < len(ranges):
        return set()
    return {cpu for found in known for cpu in range(int(found[1]), int(found[2] or found[1]) + 1)}
