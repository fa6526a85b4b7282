"""Telemetry through NVML (package nvidia-ml-py, optional).

Any call may fail: an old driver, a consumer card, a container, a MIG instance.  What fails is None.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from typing import Any

from ncu_roofline.bench.device import Device
from ncu_roofline.bench.telemetry import Counters, NoTelemetry, Reading, Telemetry

_COMPUTE_MODES = {0: "default", 1: "exclusive thread", 2: "prohibited", 3: "exclusive process"}
# Numbers of nvml.h: clock types, sensor, violation policies.
_GRAPHICS, _SM, _MEMORY = 0, 1, 2
_GPU_SENSOR = 0
_POWER_POLICY, _THERMAL_POLICY = 0, 1
_MEMORY_TEMPERATURE_FIELD = 82


def open_telemetry(device: Device, module: Any = None) -> Telemetry:
    """Telemetry of a device, found by its PCI bus id: CUDA_VISIBLE_DEVICES and MIG number devices in other ways than NVML.

    ``module`` stands in for ``pynvml``.  Never raises: without NVML the result is a NoTelemetry that says why.
    """
    try:
        nvml = module or importlib.import_module("pynvml")
    except ImportError:
        return NoTelemetry("the Python package nvidia-ml-py is not installed (pip install 'ncu-roofline[bench]')")
    try:
        nvml.nvmlInit()
        handle = _handle(nvml, device)
    except Exception as error:  # the package raises a class of its own per code, and others for a broken library
        return NoTelemetry(f"NVML: {error}")
    return NvmlTelemetry(nvml, handle)


def _handle(nvml: Any, device: Device) -> Any:
    if device.pci_bus_id:
        return nvml.nvmlDeviceGetHandleByPciBusId(device.pci_bus_id)
    return nvml.nvmlDeviceGetHandleByUUID(device.uuid)


class NvmlTelemetry:
    """One GPU seen through a ``pynvml`` module; a MIG instance is seen as the GPU it is part of."""

    available = True

    def __init__(self, nvml: Any, handle: Any) -> None:
        self._nvml = nvml
        self._handle = handle

    def identity(self) -> dict[str, Any]:
        """Facts of the driver and the board, keys as in a ceilings file."""
        ecc = self._ask("nvmlDeviceGetEccMode")
        mig = self._ask("nvmlDeviceGetMigMode")
        mode = self._ask("nvmlDeviceGetComputeMode")
        persistence = self._ask("nvmlDeviceGetPersistenceMode")
        cuda = self._call("nvmlSystemGetCudaDriverVersion")
        return {
            "driver": _text(self._call("nvmlSystemGetDriverVersion")),
            "cuda_driver_api": f"{cuda // 1000}.{cuda % 1000 // 10}" if isinstance(cuda, int) else None,
            "vbios": _text(self._ask("nvmlDeviceGetVbiosVersion")),
            "ecc": {"current": bool(ecc[0]), "pending": bool(ecc[1])} if ecc else None,
            "mig_enabled": bool(mig[0]) if mig else None,
            "compute_mode": _COMPUTE_MODES.get(mode) if mode is not None else None,
            "persistence": None if persistence is None else bool(persistence),
            "power_limit_w": _scaled(self._ask("nvmlDeviceGetEnforcedPowerLimit"), 1e-3),
            "power_limit_default_w": _scaled(self._ask("nvmlDeviceGetPowerManagementDefaultLimit"), 1e-3),
            "app_clocks_mhz": self._ask("nvmlDeviceGetApplicationsClock", _GRAPHICS),
            "pcie": self._link_limits(),
            "other_processes": self._other_processes(),
        }

    def read(self) -> Reading:
        """Clocks, power, temperature, reasons, link."""
        generation, lanes = self._ask("nvmlDeviceGetCurrPcieLinkGeneration"), self._ask("nvmlDeviceGetCurrPcieLinkWidth")
        reasons = self._ask("nvmlDeviceGetCurrentClocksEventReasons")
        if reasons is None:  # its name before driver 535
            reasons = self._ask("nvmlDeviceGetCurrentClocksThrottleReasons")
        return Reading(
            sm_clock=_scaled(self._ask("nvmlDeviceGetClockInfo", _SM), 1e6),
            memory_clock=_scaled(self._ask("nvmlDeviceGetClockInfo", _MEMORY), 1e6),
            power=_scaled(self._ask("nvmlDeviceGetPowerUsage"), 1e-3),
            temperature=_scaled(self._ask("nvmlDeviceGetTemperature", _GPU_SENSOR), 1.0),
            memory_temperature=self._memory_temperature(),
            reasons=int(reasons or 0),
            link=(generation, lanes) if generation and lanes else None,
        )

    def counters(self) -> Counters:
        """Energy and time held back."""
        return Counters(
            energy=_scaled(self._ask("nvmlDeviceGetTotalEnergyConsumption"), 1e-3),
            power_violation=self._violation(_POWER_POLICY),
            thermal_violation=self._violation(_THERMAL_POLICY),
        )

    def _ask(self, name: str, *arguments: Any) -> Any:
        return self._call(name, self._handle, *arguments)

    def _call(self, name: str, *arguments: Any) -> Any:
        function: Callable[..., Any] | None = getattr(self._nvml, name, None)
        if function is None:
            return None
        try:
            return function(*arguments)
        except Exception:  # NVMLError has a subclass per code; not supported, no permission and lost GPU all mean: unknown
            return None

    def _violation(self, policy: int) -> float | None:
        status = self._ask("nvmlDeviceGetViolationStatus", policy)
        return _scaled(getattr(status, "violationTime", None), 1e-9)

    def _memory_temperature(self) -> float | None:
        values = self._ask("nvmlDeviceGetFieldValues", [_MEMORY_TEMPERATURE_FIELD])
        if not values or getattr(values[0], "nvmlReturn", 1) != 0:
            return None
        return _scaled(getattr(values[0].value, "uiVal", None), 1.0)

    def _link_limits(self) -> dict[str, Any]:
        calls = {
            "gen": "nvmlDeviceGetCurrPcieLinkGeneration",
            "width": "nvmlDeviceGetCurrPcieLinkWidth",
            "gen_max": "nvmlDeviceGetMaxPcieLinkGeneration",
            "width_max": "nvmlDeviceGetMaxPcieLinkWidth",
        }
        return {key: self._ask(name) for key, name in calls.items()}

    def _other_processes(self) -> int | None:
        processes = self._ask("nvmlDeviceGetComputeRunningProcesses")
        if processes is None:
            return None
        return len([process for process in processes if getattr(process, "pid", None) != os.getpid()])


def _scaled(value: object, factor: float) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value * factor


def _text(value: object) -> str | None:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, str) else None
