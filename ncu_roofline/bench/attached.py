"""The GPUs of this machine as the driver lists them, without a CUDA context."""

from __future__ import annotations

from dataclasses import dataclass

from ncu_roofline.bench import nvml as library
from ncu_roofline.bench.nvml import or_none
from ncu_roofline.bench.telemetry import other_processes


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

    def __str__(self) -> str:
        """Like "GPU 0 NVIDIA H200 (compute mode default, 0 other processes)"."""
        told = state(self.mig, self.compute_mode, self.other_processes)
        return " ".join(part for part in (f"GPU {self.index}", self.name or "", f"({told})" if told else "") if part)


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


def state(mig: bool | None, compute_mode: str | None, other_processes: int | None) -> str:
    """What may keep programs off a GPU, for people; what NVML does not say is left out."""
    parts = ["MIG enabled"] if mig else []
    parts += [f"compute mode {compute_mode}"] if compute_mode else []
    if other_processes is not None:
        parts.append(f"{other_processes} other process{'' if other_processes == 1 else 'es'}")
    return ", ".join(parts)
