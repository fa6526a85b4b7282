"""A GPU, or the CPU, as the benchmark sees it, and which of several is meant."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ncu_roofline.base.errors import RooflineError, UsageError
from ncu_roofline.base.records import number
from ncu_roofline.chips import Gpu
from ncu_roofline.chips.fields import Capability, capability, capability_text
from ncu_roofline.chips.spec import find_gpu
from ncu_roofline.formats.ceilings import CPU, GPU, UNKNOWN_CAPABILITY

LOCAL_RANKS = (
    *("OMPI_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID"),
    *("PMI_LOCAL_RANK", "PALS_LOCAL_RANKID", "SLURM_LOCALID"),
)
"""Variables in which launchers tell a process its number on its node, first one set wins (Open MPI under srun sets both)."""
RANK_COUNTS = ("OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE", "PMI_SIZE", "PALS_NRANKS", "SLURM_NTASKS")
_LARGEST_COUNT = 1e15


@dataclass(frozen=True)
class Device:
    """A GPU, a MIG instance (``mig``: the driver says so), or the CPU (``kind`` "cpu").

    Clocks in Hz, 0 where unknown, a CPU's compute capability is (0, 0); ``facts`` is all that the runner said about it.
    """

    index: int
    name: str
    uuid: str
    compute_capability: Capability
    sm_count: int
    bus_bits: int
    sm_clock_max: float
    memory_clock_max: float
    pci_bus_id: str
    kind: str
    facts: Mapping[str, Any] = field(hash=False, compare=False)
    mig: bool = False

    @property
    def is_mig(self) -> bool:
        """Whether this is a slice of a GPU."""
        return self.mig or self.uuid.startswith("MIG-") or " MIG " in f"{self.name} "

    @property
    def is_cpu(self) -> bool:
        """Whether it is no GPU."""
        return self.kind == CPU

    @property
    def capability_text(self) -> str:
        """Like "9.0"; "" for a CPU."""
        return capability_text(self.compute_capability)

    @property
    def gpu(self) -> Gpu | None:
        """Its row of the table of GPUs; None for a MIG instance, whose clocks are the GPU's but not its units."""
        return None if self.is_mig or self.is_cpu else find_gpu(self.name, self.sm_count)

    @property
    def core_clock(self) -> float:
        """The one behind the vendor's figures for CUDA cores, else the highest."""
        return self.gpu.core_clock if self.gpu else self.sm_clock_max

    @property
    def tensor_clock(self) -> float:
        """The same for tensor cores."""
        return self.gpu.tensor_clock if self.gpu else self.sm_clock_max


def device_of(gpu: Gpu) -> Device:
    """A row of the table of GPUs as a device."""
    units, clocks = (gpu.sm_count, gpu.bus_bits), (gpu.core_clock, gpu.memory_clock)
    return Device(0, gpu.names[0], "of the table", gpu.compute_capability, *units, *clocks, "", GPU, {})


def parse_device(facts: Mapping[str, Any]) -> Device:
    """The device that a line of the runner, or a ceilings file, describes.  ValueError if it lacks what is needed."""
    uuid, name, index = facts.get("uuid"), facts.get("name"), number(facts.get("index", 0))
    if not isinstance(uuid, str) or not isinstance(name, str) or not uuid:
        raise ValueError("a device has no name or uuid")
    if not 0 <= index < _LARGEST_COUNT:
        raise ValueError("a device has no index")

    def count(key: str) -> int:
        value = number(facts.get(key))
        return int(value) if 0 < value < _LARGEST_COUNT else 0

    kind = CPU if facts.get("kind") == CPU else GPU
    own = UNKNOWN_CAPABILITY if kind == CPU else capability(str(facts.get("cc")))
    sm_clock, memory_clock = (count(f"{one}_clock_max_mhz") * 1e6 for one in ("sm", "mem"))
    units, bus = (count("sm_count"), count("bus_bits")), str(facts.get("pci_bus_id", ""))
    return Device(int(index), name, uuid, own, *units, sm_clock, memory_clock, bus, kind, facts)


def local_rank(environment: Mapping[str, str] = os.environ) -> int | None:
    """The rank on its node that srun or mpirun gave this process; None where it runs alone."""
    local, total = (
        next((int(text) for name in names if (text := environment.get(name, "")).isdecimal()), None)
        for names in (LOCAL_RANKS, RANK_COUNTS)
    )
    return None if total == 1 else local


def choose(devices: Sequence[Device], wanted: str, rank: int | None) -> tuple[Device, ...]:
    """The devices that ``--device`` names: "auto", "all", indices and UUIDs (or their beginnings), with commas between.

    "auto" is the first device, and under an MPI launcher the one of the local rank.  Raises UsageError for one that is not
    there, RooflineError for a rank without a GPU of its own.
    """
    if wanted == "all":
        return tuple(devices)
    if wanted == "auto":
        # Of one, the launcher bound the rank to its GPU (--gpus-per-task); a lock tells if it did not.
        place = 0 if rank is None or len(devices) == 1 else rank
        if place >= len(devices):
            reason = f"rank {place} of this node has no GPU of its own, there are {len(devices)}"
            raise RooflineError("Cannot measure on", "this node", reason, f"Start {len(devices)} ranks per node.")
        return (devices[place],)
    chosen = []
    for text in filter(None, map(str.strip, wanted.split(","))):
        word = text.lower()
        found = [device for device in devices if word in (str(device.index), device.uuid.lower(), device.pci_bus_id.lower())]
        if not found and len(word) >= 4:  # the beginning of a UUID, with or without its "GPU-"
            uuids = [(device, device.uuid.lower()) for device in devices]
            found = [device for device, uuid in uuids if uuid.startswith(word) or uuid.partition("-")[2].startswith(word)]
        if len(found) != 1:
            known = "; ".join(f"{device.index} {device.name} {device.uuid}" for device in devices)
            reason = "several GPUs begin like that" if found else "there is no such GPU"
            raise UsageError("Cannot use --device", text, reason, f"There are: {known}.")
        chosen += found
    if not chosen:
        raise UsageError("Cannot use --device", wanted, "it names no GPU", "Give an index, a UUID or all.")
    return tuple(dict.fromkeys(chosen))
