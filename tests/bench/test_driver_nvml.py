"""The binding to NVML: against NVIDIA's package, against a made-up one, and without either."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from ncu_roofline.bench import telemetry
from ncu_roofline.bench.telemetry import Nvml, NvmlError, gpus, load, open_telemetry, state_text
from tests.bench.fakes import device, fake_nvml

NUMBERS = {
    "NVML_CLOCK_GRAPHICS": 0,
    "NVML_CLOCK_MEM": 2,
    "NVML_TEMPERATURE_GPU": 0,
    "NVML_PERF_POLICY_POWER": 0,
    "NVML_PERF_POLICY_THERMAL": 1,
    "NVML_FI_DEV_MEMORY_TEMP": telemetry.MEMORY_TEMPERATURE,
    "NVML_FI_DEV_POWER_INSTANT": telemetry.POWER_INSTANT,
    "NVML_SUCCESS": 0,
    "NVML_VALUE_TYPE_COUNT": len(telemetry._VALUE_TYPES),
    "NVML_COMPUTEMODE_COUNT": len(telemetry.COMPUTE_MODES),
}
MODES = {0: "DEFAULT", 1: "EXCLUSIVE_THREAD", 2: "PROHIBITED", 3: "EXCLUSIVE_PROCESS"}
REASONS = {
    "ApplicationsClocksSetting": "application clocks",
    "SwPowerCap": "power cap",
    "HwSlowdown": "hardware slowdown",
    "SyncBoost": "sync boost",
    "SwThermalSlowdown": "software thermal slowdown",
    "HwThermalSlowdown": "hardware thermal slowdown",
    "HwPowerBrakeSlowdown": "power brake",
    "DisplayClockSetting": "display clocks",
}
CALLS = (
    "SystemGetDriverVersion",
    "SystemGetCudaDriverVersion",
    "DeviceGetCount",
    "DeviceGetHandleByIndex",
    "DeviceGetHandleByPciBusId",
    "DeviceGetHandleByUUID",
    "DeviceGetName",
    "DeviceGetVbiosVersion",
    "DeviceGetEccMode",
    "DeviceGetMigMode",
    "DeviceGetComputeMode",
    "DeviceGetPersistenceMode",
    "DeviceGetEnforcedPowerLimit",
    "DeviceGetPowerManagementDefaultLimit",
    "DeviceGetPowerUsage",
    "DeviceGetTotalEnergyConsumption",
    "DeviceGetApplicationsClock",
    "DeviceGetClockInfo",
    "DeviceGetTemperature",
    "DeviceGetCurrentClocksThrottleReasons",
    "DeviceGetViolationStatus",
    "DeviceGetCurrPcieLinkGeneration",
    "DeviceGetCurrPcieLinkWidth",
    "DeviceGetMaxPcieLinkGeneration",
    "DeviceGetMaxPcieLinkWidth",
    "DeviceGetFieldValues",
    "DeviceGetComputeRunningProcesses",
)


def test_names_and_numbers_are_those_of_the_package() -> None:
    package = pytest.importorskip("pynvml", reason="no nvidia-ml-py on this machine (pip install nvidia-ml-py)")
    assert {name: getattr(package, name) for name in NUMBERS} == NUMBERS
    assert {number: f"NVML_COMPUTEMODE_{name}" for number, name in MODES.items()}.keys() == telemetry.COMPUTE_MODES.keys()
    assert all(getattr(package, f"NVML_COMPUTEMODE_{name}") == number for number, name in MODES.items())
    bits = {words: bit for bit, words in telemetry.REASONS.items()}
    assert all(getattr(package, f"nvmlClocksThrottleReason{name}") == bits[words] for name, words in REASONS.items())
    value = package.c_nvmlFieldValue_t().value
    assert all(hasattr(value, name) for name in telemetry._VALUE_TYPES)
    assert [name for name in CALLS if not hasattr(package, f"nvml{name}")] == []


def attached(index: int, *facts: object) -> dict[str, object]:
    """A GPU of the list."""
    return {"index": index, **dict(zip(("name", "mig_enabled", "compute_mode", "other_processes"), facts, strict=True))}


def reading(**changes: object) -> dict[str, object]:
    """What a thorough look tells."""
    return {"memory_clock": 1.98e9, "temperature": 58.0, "link": (4, 8), **changes}


class NotFoundError(Exception):
    """``NVMLError_FunctionNotFound`` of the made-up package."""


class RefusedError(Exception):
    """``NVMLError`` of the made-up package."""


def answering(answer: Any) -> Any:
    """A function that gives an answer or raises it."""

    def function(*_words: object) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    return function


def package(**changes: Any) -> SimpleNamespace:
    """Answers as the package gives them for an H200."""

    def field(_handle: object, numbers: list[int]) -> list[SimpleNamespace]:
        (number,) = numbers
        types: dict[int, tuple[int, dict[str, int]]] = {186: (1, {"uiVal": 612_500}), 82: (5, {"siVal": -3})}
        kind, value = types.get(number, (0, {}))
        return [SimpleNamespace(nvmlReturn=0 if value else 3, valueType=kind, value=SimpleNamespace(**value))]

    answers: dict[str, Any] = {
        "nvmlInit": None,
        "nvmlSystemGetDriverVersion": "580.65.06",
        "nvmlSystemGetCudaDriverVersion": 13000,
        "nvmlDeviceGetCount": 1,
        "nvmlDeviceGetHandleByIndex": "handle",
        "nvmlDeviceGetHandleByPciBusId": "handle",
        "nvmlDeviceGetName": "NVIDIA H200",
        "nvmlDeviceGetVbiosVersion": "96.00",
        "nvmlDeviceGetEccMode": [1, 0],
        "nvmlDeviceGetMigMode": [0, 0],
        "nvmlDeviceGetComputeMode": 3,
        "nvmlDeviceGetPersistenceMode": 1,
        "nvmlDeviceGetEnforcedPowerLimit": 650_000,
        "nvmlDeviceGetPowerManagementDefaultLimit": 700_000,
        "nvmlDeviceGetApplicationsClock": 1830,
        "nvmlDeviceGetCurrPcieLinkGeneration": 4,
        "nvmlDeviceGetCurrPcieLinkWidth": 8,
        "nvmlDeviceGetMaxPcieLinkGeneration": 5,
        "nvmlDeviceGetMaxPcieLinkWidth": 16,
        "nvmlDeviceGetClockInfo": 1980,
        "nvmlDeviceGetPowerUsage": 580_000,
        "nvmlDeviceGetTemperature": 58,
        "nvmlDeviceGetCurrentClocksEventReasons": 0x100000004,
        "nvmlDeviceGetTotalEnergyConsumption": 1 << 40,
        "nvmlDeviceGetViolationStatus": SimpleNamespace(violationTime=5_000_000_000),
        "nvmlDeviceGetComputeRunningProcesses": [SimpleNamespace(pid=pid) for pid in (100, 101, 102)],
    }
    functions = {name: answering(answer) for name, answer in {**answers, **changes}.items()}
    functions.setdefault("nvmlDeviceGetFieldValues", field)
    return SimpleNamespace(NVMLError=RefusedError, NVMLError_FunctionNotFound=NotFoundError, **functions)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Installs a made-up package."""
    return lambda **changes: monkeypatch.setitem(sys.modules, "pynvml", package(**changes))


def test_telemetry_of_a_package(installed: Any) -> None:
    installed()
    seen = open_telemetry(device())
    assert seen.identity() == {
        "driver": "580.65.06",
        "cuda_driver_api": "13.0",
        "vbios": "96.00",
        "ecc": {"current": True, "pending": False},
        "mig_enabled": False,
        "compute_mode": "exclusive process",
        "persistence": True,
        "power_limit_w": 650.0,
        "power_limit_default_w": 700.0,
        "power_source": "instant",
        "app_clocks_mhz": 1830,
        "pcie": {"gen": 4, "width": 8, "gen_max": 5, "width_max": 16},
        "other_processes": 3,
    }
    assert seen.read() == reading(power=612.5, memory_temperature=-3.0, reasons=0x100000004)
    assert seen.held_back() == (5.0, 5.0)
    assert seen.energy() == pytest.approx(2**40 / 1e3)
    assert gpus() == [attached(0, "NVIDIA H200", False, "exclusive process", 3)]


def test_an_old_driver(installed: Any) -> None:
    """Older functions are taken; what it does not have is None."""
    missing = ("CurrentClocksEventReasons", "ComputeRunningProcesses", "FieldValues", "MigMode", "ViolationStatus")
    installed(
        **{f"nvmlDeviceGet{name}": NotFoundError() for name in missing},
        nvmlDeviceGetCurrentClocksThrottleReasons=0x48,
        nvmlDeviceGetComputeRunningProcesses_v2=[SimpleNamespace(pid=1)],
    )
    seen = open_telemetry(device())
    assert (seen.identity()["other_processes"], seen.identity()["mig_enabled"]) == (1, None)
    assert seen.identity()["power_source"] == "average (1 s)"
    assert seen.read() == reading(power=580.0, memory_temperature=None, reasons=0x48)
    assert seen.held_back() == (None, None)
    with pytest.raises(NvmlError, match="nvmlDeviceGetMigMode: this driver's NVML does not have it"):
        load().ask("nvmlDeviceGetMigMode", 0)


def test_what_is_refused_is_told(installed: Any) -> None:
    installed(nvmlDeviceGetName=RefusedError("GPU is lost"))
    with pytest.raises(NvmlError, match=r"^nvmlDeviceGetName: GPU is lost$"):
        load().ask("nvmlDeviceGetName", "handle")
    with pytest.raises(NvmlError, match=r"^nvmlNew: this driver's NVML does not have it$"):
        Nvml(package()).ask("nvmlNew")


def test_without_the_package_or_a_driver(monkeypatch: pytest.MonkeyPatch, installed: Any) -> None:
    installed(nvmlInit=RefusedError("Driver Not Loaded"))
    assert open_telemetry(device()).reason == "nvmlInit: Driver Not Loaded"
    monkeypatch.setitem(sys.modules, "pynvml", None)
    reason = "the package nvidia-ml-py is not installed (pip install nvidia-ml-py)"
    assert open_telemetry(device()).reason == reason
    assert gpus() == []


# The GPUs of a machine


def test_two_gpus_and_a_lost_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def handle(index: int) -> str:
        if index == 1:
            raise NvmlError("nvmlDeviceGetHandleByIndex: GPU is lost")
        return f"gpu {index}"

    answers = {
        "nvmlDeviceGetCount": 3,
        "nvmlDeviceGetHandleByIndex": handle,
        "nvmlDeviceGetName": lambda gpu: f"NVIDIA {gpu}",
        "nvmlDeviceGetMigMode": lambda gpu: (int(gpu == "gpu 2"), 0),
        "nvmlDeviceGetComputeMode": 3,
        "nvmlDeviceGetComputeRunningProcesses": [1, 2],
    }
    monkeypatch.setattr(telemetry, "load", lambda: fake_nvml(**answers))
    assert gpus() == [
        attached(0, "NVIDIA gpu 0", False, "exclusive process", 2),
        attached(2, "NVIDIA gpu 2", True, "exclusive process", 2),
    ]


def test_what_a_gpu_does_not_tell_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    silent = fake_nvml(nvmlDeviceGetCount=1, nvmlDeviceGetHandleByIndex=7)
    for name in ("MigMode", "ComputeMode", "ComputeRunningProcesses"):
        silent.answers[f"nvmlDeviceGet{name}"] = NvmlError("Not Supported")
    monkeypatch.setattr(telemetry, "load", lambda: silent)
    assert gpus() == [attached(0, None, None, None, None)]


@pytest.mark.parametrize(
    ("gpu", "text"),
    [
        (attached(0, "", True, "exclusive process", 1), "MIG enabled, compute mode exclusive process, 1 other process"),
        (attached(2, "T4", False, "default", 0), "compute mode default, 0 other processes"),
        (attached(1, None, None, None, None), ""),
    ],
)
def test_what_people_are_told(gpu: dict[str, Any], text: str) -> None:
    assert state_text(gpu) == text
