"""The binding to NVML: against NVIDIA's header, against a library built with it, and without either."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ncu_roofline.bench import nvml, telemetry
from ncu_roofline.bench.attached import AttachedGpu, gpus
from ncu_roofline.bench.nvml import Nvml, NvmlError, load
from ncu_roofline.bench.telemetry import Counters, NoTelemetry, Reading, open_telemetry
from tests.bench.fakes import device

STRUCTURES = {
    "nvmlPciInfo_t": nvml.PciInfo,
    "nvmlViolationTime_t": nvml.ViolationTime,
    "nvmlValue_t": nvml.Value,
    "nvmlFieldValue_t": nvml.FieldValue,
    "nvmlProcessInfo_v2_t": nvml.ProcessInfo,
    "nvmlProcessInfo_t": nvml.ProcessInfo,
    "nvmlProcessInfo_v1_t": nvml.ProcessInfo1,
}
NUMBERS = {
    "NVML_CLOCK_GRAPHICS": nvml.CLOCK_GRAPHICS,
    "NVML_CLOCK_SM": nvml.CLOCK_SM,
    "NVML_CLOCK_MEM": nvml.CLOCK_MEMORY,
    "NVML_TEMPERATURE_GPU": nvml.GPU_SENSOR,
    "NVML_PERF_POLICY_POWER": nvml.POWER_POLICY,
    "NVML_PERF_POLICY_THERMAL": nvml.THERMAL_POLICY,
    "NVML_FI_DEV_MEMORY_TEMP": nvml.MEMORY_TEMPERATURE,
    "NVML_FI_DEV_POWER_INSTANT": nvml.POWER_INSTANT,
    "NVML_SUCCESS": nvml._SUCCESS,
    "NVML_ERROR_INSUFFICIENT_SIZE": nvml._INSUFFICIENT_SIZE,
    "NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE": 80,
    "NVML_DEVICE_NAME_V2_BUFFER_SIZE": 96,
    "NVML_DEVICE_UUID_V2_BUFFER_SIZE": 96,
    "NVML_DEVICE_VBIOS_VERSION_BUFFER_SIZE": 32,
    "NVML_VALUE_TYPE_COUNT": len(nvml.VALUE_TYPES),
    "NVML_COMPUTEMODE_COUNT": len(nvml.COMPUTE_MODES),
}
VALUE_TYPES = {
    "DOUBLE": "dVal",
    "UNSIGNED_INT": "uiVal",
    "UNSIGNED_LONG": "ulVal",
    "UNSIGNED_LONG_LONG": "ullVal",
    "SIGNED_LONG_LONG": "sllVal",
    "SIGNED_INT": "siVal",
    "UNSIGNED_SHORT": "usVal",
}
MODES = {
    "DEFAULT": "default",
    "EXCLUSIVE_THREAD": "exclusive thread",
    "PROHIBITED": "prohibited",
    "EXCLUSIVE_PROCESS": "exclusive process",
}
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


@pytest.fixture(scope="module")
def include() -> Path:
    """The folder of nvml.h; skips without it or a C compiler."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    package, nvcc = importlib.util.find_spec("nvidia"), shutil.which("nvcc")
    places = [Path(place) for place in (package.submodule_search_locations or [] if package else [])]
    found = [header for place in places for header in place.glob("*/include/nvml.h")]
    if nvcc is not None:
        found += Path(nvcc).resolve().parents[1].glob("include/nvml.h")
    if not found:
        pytest.skip("no nvml.h on this machine (pip install nvidia-nvml-dev)")
    return found[0].parent


def build(source: Path, target: Path, include: Path, *options: str) -> Path:
    """A C program or library."""
    command = [
        "cc",
        "-Wall",
        "-Werror",
        "-Wno-deprecated-declarations",
        f"-I{include}",
        *options,
        "-o",
        str(target),
        str(source),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return target


def fake(folder: Path, include: Path, *options: str) -> Path:
    """A folder with a library as the driver installs it."""
    build(Path(__file__).parent / "nvml_fake.c", folder / "libnvidia-ml.so.1", include, "-shared", "-fPIC", *options)
    return folder / "libnvidia-ml.so.1"


@pytest.fixture(scope="module")
def library(include: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fake(tmp_path_factory.mktemp("new"), include)


@pytest.fixture(scope="module")
def old_library(include: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fake(tmp_path_factory.mktemp("old"), include, "-DOLD")


def test_layouts_and_numbers_are_those_of_the_header(include: Path, tmp_path: Path) -> None:
    lines, expected = [], []
    for name, structure in STRUCTURES.items():
        lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
        expected.append(f"{name} {ctypes.sizeof(structure)}")
        for field, *_ in structure._fields_:
            lines.append(f'printf("{name}.{field} %zu %zu\\n", offsetof({name}, {field}), sizeof((({name} *)0)->{field}));')
            place = getattr(structure, field)
            expected.append(f"{name}.{field} {place.offset} {place.size}")
    numbers = dict(NUMBERS)
    numbers |= {f"NVML_VALUE_TYPE_{name}": nvml.VALUE_TYPES.index(member) for name, member in VALUE_TYPES.items()}
    modes = {words: number for number, words in nvml.COMPUTE_MODES.items()}
    numbers |= {f"NVML_COMPUTEMODE_{name}": modes[words] for name, words in MODES.items()}
    bits = {words: bit for bit, words in telemetry.REASONS.items()}
    numbers |= {f"nvmlClocksThrottleReason{name}": bits[words] for name, words in REASONS.items() if "Display" not in name}
    numbers["nvmlClocksThrottleReasonDisplayClockSetting"] = bits[REASONS["DisplayClockSetting"]]
    lines += [f'printf("{name} %lld\\n", (long long)({name}));' for name in numbers]
    expected += [f"{name} {number}" for name, number in numbers.items()]
    source = tmp_path / "layout.c"
    source.write_text(
        "#include <nvml.h>\n#include <stddef.h>\n#include <stdio.h>\nint main(void) {" + "\n".join(lines) + "return 0; }"
    )
    told = subprocess.run([build(source, tmp_path / "layout", include)], capture_output=True, text=True, check=True).stdout
    assert told.splitlines() == expected


def test_every_call_has_a_prototype_in_the_header(include: Path) -> None:
    text = (include / "nvml.h").read_text()
    names = [symbol for name in nvml._CALLS for symbol in nvml._SYMBOLS.get(name, (name,))]
    names += [symbol for symbol, _ in nvml._PROCESS_SYMBOLS]
    assert [name for name in names if f" {name}(" not in text] == []


def test_what_a_library_says(library: Path) -> None:
    found = load(str(library))
    handle = found.ask("nvmlDeviceGetHandleByPciBusId", "00000000:1B:00.0")
    assert handle == found.ask("nvmlDeviceGetHandleByUUID", "GPU-1") == found.ask("nvmlDeviceGetHandleByIndex", 0)
    assert found.ask("nvmlDeviceGetName", handle) == "NVIDIA H200"
    assert found.ask("nvmlDeviceGetEccMode", handle) == (1, 0)
    assert found.ask("nvmlDeviceGetTotalEnergyConsumption", handle) == 1 << 40
    assert found.ask("nvmlDeviceGetCurrentClocksEventReasons", handle) == 0x100000004
    assert found.fields(handle, [186, 999, 83, 82]) == [612_500, None, 1 << 40, -3]
    assert found.processes(handle) == [100, 101, 102]
    with pytest.raises(NvmlError, match="nvmlDeviceGetHandleByPciBusId: Not Found"):
        found.ask("nvmlDeviceGetHandleByPciBusId", "00000000:3B:00.0")
    with pytest.raises(NvmlError, match="nvmlDeviceGetHandleByIndex: GPU is lost"):
        found.ask("nvmlDeviceGetHandleByIndex", 1)


def test_telemetry_of_a_library(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml, "load", lambda: load(str(library)))
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
    assert seen.read() == Reading(0.0, 1.98e9, 3.201e9, 612.5, 58.0, -3.0, 0x100000004, (4, 8))
    assert seen.counters() == Counters(power_violation=5.0, thermal_violation=0.0)


def test_a_driver_of_2016(old_library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Older symbols are taken; what it does not have is None."""
    monkeypatch.setattr(nvml, "load", lambda: load(str(old_library)))
    seen = open_telemetry(device())
    assert (seen.identity()["other_processes"], seen.identity()["mig_enabled"]) == (3, None)
    assert seen.identity()["power_source"] == "average (1 s)"
    assert seen.read() == Reading(0.0, 1.98e9, 3.201e9, 580.0, 58.0, None, 0x48, (4, 8))
    assert seen.counters() == Counters()
    assert [gpu.pci_bus_id for gpu in gpus()] == [None]
    with pytest.raises(NvmlError, match="nvmlDeviceGetMigMode: this driver's NVML does not have it"):
        load(str(old_library)).ask("nvmlDeviceGetMigMode", 0)


def test_gpus_without_a_context(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml, "load", lambda: load(str(library)))
    assert gpus() == [AttachedGpu(0, "NVIDIA H200", "GPU-1", "00000000:1B:00.0", False, "exclusive process", 3)]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks the loader of Linux")
def test_the_library_is_found_by_the_name_that_drivers_install(library: Path) -> None:
    words = "from ncu_roofline.bench.attached import gpus; print(gpus()[0].uuid)"
    environment = {**os.environ, "LD_LIBRARY_PATH": str(library.parent)}
    done = subprocess.run([sys.executable, "-c", words], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "GPU-1\n", done.stderr


def test_without_a_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = tmp_path / "libnvidia-ml.so.1"
    monkeypatch.setattr(nvml, "load", lambda: load(str(missing)))
    seen = open_telemetry(device())
    assert isinstance(seen, NoTelemetry)
    assert seen.reason.startswith(f"the NVIDIA driver's library {missing} cannot be loaded (")
    with pytest.raises(NvmlError, match="cannot be loaded"):
        gpus()


class Words:
    """``nvmlErrorString`` of a made-up library."""

    restype: Any = None

    def __call__(self, code: int) -> bytes:
        return b"Driver Not Loaded" if code == 9 else b"Unknown Error"


class Broken:
    """A library of which nothing works."""

    def __init__(self, **functions: Any) -> None:
        self.__dict__.update(functions)


def test_errors_in_the_library_s_own_words() -> None:
    with pytest.raises(NvmlError, match=r"^nvmlInit: Driver Not Loaded$"):
        Nvml(Broken(nvmlInit_v2=lambda: 9, nvmlErrorString=Words())).ask("nvmlInit")
    with pytest.raises(NvmlError, match=r"^nvmlInit: error 9$"):
        Nvml(Broken(nvmlInit=lambda: 9)).ask("nvmlInit")
    with pytest.raises(NvmlError, match=r"^nvmlInit: this driver's NVML does not have it$"):
        Nvml(Broken()).ask("nvmlInit")


def test_processes_that_cannot_be_told() -> None:
    def nvmlDeviceGetComputeRunningProcesses_v2(*_words: Any) -> int:  # noqa: N802
        return 4

    found = Nvml(Broken(nvmlDeviceGetComputeRunningProcesses_v2=nvmlDeviceGetComputeRunningProcesses_v2))
    with pytest.raises(NvmlError, match="nvmlDeviceGetComputeRunningProcesses: error 4"):
        found.processes(1)
