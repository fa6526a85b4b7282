"""What the driver tells about GPUs: NVML, asked through NVIDIA's package nvidia-ml-py (the extra "bench").

It makes no CUDA context, and finds GPUs by their bus: CUDA_VISIBLE_DEVICES and MIG number them in other ways.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from ncu_roofline.bench.device import Device
from ncu_roofline.bench.telemetry import Counters, NoTelemetry, Reading, Telemetry, scaled

CLOCK_GRAPHICS, CLOCK_SM, CLOCK_MEMORY = 0, 1, 2
GPU_SENSOR = 0
POWER_POLICY, THERMAL_POLICY = 0, 1
MEMORY_TEMPERATURE, POWER_INSTANT = 82, 186
"""Field numbers: degrees Celsius; mW, of the GPU alone in scope 0."""
COMPUTE_MODES = {0: "default", 1: "exclusive thread", 2: "prohibited", 3: "exclusive process"}
INSTANT, AVERAGE = "instant", "average (1 s)"
"""What readings of power can be."""
_VALUE_TYPES = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
# What older drivers have instead.
_OLDER = {
    "nvmlDeviceGetCurrentClocksEventReasons": "nvmlDeviceGetCurrentClocksThrottleReasons",
    "nvmlDeviceGetComputeRunningProcesses": "nvmlDeviceGetComputeRunningProcesses_v2",
}

Answer = TypeVar("Answer")


class NvmlError(Exception):
    """NVML is not there, or refused a call; says which and why."""


class Nvml:
    """The package, initialised by `load`; a device is a handle."""

    def __init__(self, package: Any) -> None:
        self._package = package

    def ask(self, name: str, *inputs: Any) -> Any:
        """What a function of NVML tells.  NvmlError where the driver does not have it or refuses."""
        problem = "this driver's NVML does not have it"
        for each in (name, _OLDER.get(name, "")):
            function = getattr(self._package, each, None)
            if function is None:
                continue
            try:
                return function(*inputs)
            except self._package.NVMLError_FunctionNotFound:
                continue
            except self._package.NVMLError as error:
                problem = str(error)
                break
        raise NvmlError(f"{name}: {problem}")

    def fields(self, device: Any, numbers: Sequence[int]) -> list[float | None]:
        """Values of fields, None for those that this GPU or driver does not have."""
        fields = self.ask("nvmlDeviceGetFieldValues", device, list(numbers))
        known = [not field.nvmlReturn and field.valueType < len(_VALUE_TYPES) for field in fields]
        values = zip(fields, known, strict=True)
        return [getattr(field.value, _VALUE_TYPES[field.valueType]) if good else None for field, good in values]

    def processes(self, device: Any) -> list[int]:
        """Numbers of the processes that compute on a device, as the host counts them (also inside a container)."""
        return [process.pid for process in self.ask("nvmlDeviceGetComputeRunningProcesses", device)]


def load() -> Nvml:
    """NVML, ready to be asked.  NvmlError if the package or the driver is missing."""
    try:
        import pynvml
    except ImportError:
        raise NvmlError("the package nvidia-ml-py is not installed (pip install nvidia-ml-py)") from None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise NvmlError(f"nvmlInit: {error}") from None
    return Nvml(pynvml)


def or_none(call: Callable[..., Answer], *inputs: Any) -> Answer | None:
    """The answer of a method of Nvml, None where it refuses: not supported, no permission and a lost GPU all mean unknown."""
    try:
        return call(*inputs)
    except NvmlError:
        return None


@dataclass(frozen=True)
class AttachedGpu:
    """A GPU; None where NVML does not say.

    ``index`` is NVML's, in the order of the bus: not the number that CUDA gives.  ``mig`` tells whether it is split into
    instances, ``other_processes`` how many compute on it.
    """

    index: int
    name: str | None
    mig: bool | None
    compute_mode: str | None
    other_processes: int | None

    def __str__(self) -> str:
        """Like "GPU 0 NVIDIA H200 (compute mode default, 0 other processes)"."""
        told = state(self.mig, self.compute_mode, self.other_processes)
        return " ".join(part for part in (f"GPU {self.index}", self.name or "", f"({told})" if told else "") if part)


def gpus() -> list[AttachedGpu]:
    """All GPUs that NVML lists; one that fell off the bus is left out.  NvmlError without NVML or a driver."""
    nvml, found = load(), []
    for index in range(nvml.ask("nvmlDeviceGetCount")):
        handle = or_none(nvml.ask, "nvmlDeviceGetHandleByIndex", index)
        if handle is not None:
            name, mig = or_none(nvml.ask, "nvmlDeviceGetName", handle), _mig(nvml, handle)
            found.append(AttachedGpu(index, name, mig, _compute_mode(nvml, handle), _other_processes(nvml, handle)))
    return found


def state(mig: bool | None, compute_mode: str | None, other_processes: int | None) -> str:
    """What may keep programs off a GPU, for people; what NVML does not say is left out."""
    parts = ["MIG enabled"] if mig else []
    parts += [f"compute mode {compute_mode}"] if compute_mode else []
    if other_processes is not None:
        parts.append(f"{other_processes} other process{'' if other_processes == 1 else 'es'}")
    return ", ".join(parts)


def _mig(nvml: Nvml, handle: Any) -> bool | None:
    mode = or_none(nvml.ask, "nvmlDeviceGetMigMode", handle)
    return bool(mode[0]) if mode else None


def _compute_mode(nvml: Nvml, handle: Any) -> str | None:
    mode = or_none(nvml.ask, "nvmlDeviceGetComputeMode", handle)
    return None if mode is None else COMPUTE_MODES.get(mode)


def _other_processes(nvml: Nvml, handle: Any) -> int | None:
    """How many processes but this one compute on a device; None where NVML does not say."""
    processes = or_none(nvml.processes, handle)
    return None if processes is None else len([process for process in processes if process != os.getpid()])


def open_telemetry(device: Device) -> Telemetry:
    """Telemetry of a device, found by its PCI bus id.  Never raises: without NVML the result is a NoTelemetry that says why."""
    try:
        nvml = load()
        if device.pci_bus_id:
            handle = nvml.ask("nvmlDeviceGetHandleByPciBusId", device.pci_bus_id)
        else:
            handle = nvml.ask("nvmlDeviceGetHandleByUUID", device.uuid)
    except NvmlError as error:
        return NoTelemetry(str(error))
    # Up to GA100 what is called the usage is no average (nvml.h).
    return NvmlTelemetry(nvml, handle, INSTANT if device.compute_capability <= (8, 0) else AVERAGE)


class NvmlTelemetry(Telemetry):
    """One GPU seen through NVML; a MIG instance is seen as the GPU it is part of.

    ``usage`` says what ``nvmlDeviceGetPowerUsage`` means on it; it is asked where the driver lacks the field of instant power.
    """

    def __init__(self, nvml: Nvml, handle: Any, usage: str = AVERAGE) -> None:
        self._nvml, self._handle = nvml, handle
        self._has_instant_power = self._field(POWER_INSTANT) is not None
        self._power_source = INSTANT if self._has_instant_power else usage

    def identity(self) -> dict[str, Any]:
        """Facts of the driver and the board, keys as in a ceilings file; ``power_source`` says what readings of power are."""
        ecc, persistence = self._ask("nvmlDeviceGetEccMode"), self._ask("nvmlDeviceGetPersistenceMode")
        cuda = or_none(self._nvml.ask, "nvmlSystemGetCudaDriverVersion")
        return {
            "driver": or_none(self._nvml.ask, "nvmlSystemGetDriverVersion"),
            "cuda_driver_api": f"{cuda // 1000}.{cuda % 1000 // 10}" if cuda is not None else None,
            "vbios": self._ask("nvmlDeviceGetVbiosVersion"),
            "ecc": {"current": bool(ecc[0]), "pending": bool(ecc[1])} if ecc else None,
            "mig_enabled": _mig(self._nvml, self._handle),
            "compute_mode": _compute_mode(self._nvml, self._handle),
            "persistence": None if persistence is None else bool(persistence),
            "power_limit_w": scaled(self._ask("nvmlDeviceGetEnforcedPowerLimit"), 1e-3),
            "power_limit_default_w": scaled(self._ask("nvmlDeviceGetPowerManagementDefaultLimit"), 1e-3),
            "power_source": self._power_source if self._power() is not None else None,
            "app_clocks_mhz": self._ask("nvmlDeviceGetApplicationsClock", CLOCK_GRAPHICS),
            "pcie": {
                "gen": self._ask("nvmlDeviceGetCurrPcieLinkGeneration"),
                "width": self._ask("nvmlDeviceGetCurrPcieLinkWidth"),
                "gen_max": self._ask("nvmlDeviceGetMaxPcieLinkGeneration"),
                "width_max": self._ask("nvmlDeviceGetMaxPcieLinkWidth"),
            },
            "other_processes": _other_processes(self._nvml, self._handle),
        }

    def read(self, thorough: bool = True) -> Reading:
        """Clocks, power and reasons; temperatures and the link only where ``thorough``."""
        reading = Reading(
            sm_clock=scaled(self._ask("nvmlDeviceGetClockInfo", CLOCK_SM), 1e6),
            memory_clock=scaled(self._ask("nvmlDeviceGetClockInfo", CLOCK_MEMORY), 1e6),
            power=self._power(),
            reasons=int(self._ask("nvmlDeviceGetCurrentClocksEventReasons") or 0),
        )
        if not thorough:
            return reading
        generation, lanes = self._ask("nvmlDeviceGetCurrPcieLinkGeneration"), self._ask("nvmlDeviceGetCurrPcieLinkWidth")
        return replace(
            reading,
            temperature=scaled(self._ask("nvmlDeviceGetTemperature", GPU_SENSOR), 1.0),
            memory_temperature=scaled(self._field(MEMORY_TEMPERATURE), 1.0),
            link=(generation, lanes) if generation and lanes else None,
        )

    def energy(self) -> float | None:
        """Since the driver was loaded, in J."""
        return scaled(self._ask("nvmlDeviceGetTotalEnergyConsumption"), 1e-3)

    def counters(self) -> Counters:
        """Time held back."""
        power, thermal = (self._ask("nvmlDeviceGetViolationStatus", policy) for policy in (POWER_POLICY, THERMAL_POLICY))
        return Counters(*(scaled(getattr(each, "violationTime", None), 1e-9) for each in (power, thermal)))

    def _ask(self, name: str, *inputs: Any) -> Any:
        return or_none(self._nvml.ask, name, self._handle, *inputs)

    def _field(self, number: int) -> float | None:
        values = or_none(self._nvml.fields, self._handle, [number])
        return values[0] if values else None

    def _power(self) -> float | None:
        milliwatts = self._field(POWER_INSTANT) if self._has_instant_power else self._ask("nvmlDeviceGetPowerUsage")
        return scaled(milliwatts, 1e-3)
