"""NVML through a fake, and what is read while trials run."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from ncu_roofline.bench import telemetry as module
from ncu_roofline.bench.telemetry import (
    Nvml,
    NvmlError,
    Reading,
    Telemetry,
    Watch,
    load,
    names,
    observe,
    open_telemetry,
)
from tests.bench.fakes import H200, FakeNvml, FakeTelemetry, device, fake_nvml

Open = Callable[..., Telemetry]


NUMBERS = {
    "NVML_CLOCK_GRAPHICS": 0,
    "NVML_CLOCK_MEM": 2,
    "NVML_TEMPERATURE_GPU": 0,
    "NVML_FI_DEV_MEMORY_TEMP": module.MEMORY_TEMPERATURE,
    "NVML_FI_DEV_POWER_INSTANT": module.POWER_INSTANT,
    "NVML_SUCCESS": 0,
    "NVML_COMPUTEMODE_COUNT": len(module.COMPUTE_MODES),
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
    "DeviceGetApplicationsClock",
    "DeviceGetClockInfo",
    "DeviceGetTemperature",
    "DeviceGetCurrentClocksThrottleReasons",
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
    assert {number: f"NVML_COMPUTEMODE_{name}" for number, name in MODES.items()}.keys() == module.COMPUTE_MODES.keys()
    assert all(getattr(package, f"NVML_COMPUTEMODE_{name}") == number for number, name in MODES.items())
    bits = {words: bit for bit, words in module.REASONS.items()}
    assert all(getattr(package, f"nvmlClocksThrottleReason{name}") == bits[words] for name, words in REASONS.items())
    value = package.c_nvmlFieldValue_t().value
    assert hasattr(value, "uiVal")
    assert [name for name in CALLS if not hasattr(package, f"nvml{name}")] == []


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Open:
    """Opens the telemetry of an H200 on a given NVML."""

    def open_on(library: FakeNvml, **facts: str) -> Telemetry:
        monkeypatch.setattr(module, "load", lambda: library)
        return open_telemetry(device({**H200, **facts}))

    return open_on


class NotFoundError(Exception):
    """``NVMLError_FunctionNotFound`` of the made-up package."""


class RefusedError(Exception):
    """``NVMLError`` of the made-up package."""


def package(**changes: Any) -> SimpleNamespace:
    """NVIDIA's package, with the answers of an H200."""
    listed = {"nvmlDeviceGetCount": 1, "nvmlDeviceGetHandleByIndex": 1, "nvmlDeviceGetName": "NVIDIA H200"}
    fake = fake_nvml(**{"nvmlInit": None, **listed, **changes})
    functions = {name: partial(fake.ask, name) for name in fake.answers}
    return SimpleNamespace(NVMLError=RefusedError, NVMLError_FunctionNotFound=NotFoundError, **functions)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Installs a made-up package."""
    return lambda **changes: monkeypatch.setitem(sys.modules, "pynvml", package(**changes))


def test_identity_and_readings(installed: Any) -> None:
    installed()
    telemetry = open_telemetry(device())
    assert telemetry.available
    assert telemetry.identity() == {
        "driver": "580.65.06",
        "cuda_driver_api": "13.0",
        "vbios": "96.00.BC.00.01",
        "ecc": {"current": True, "pending": True},
        "mig_enabled": False,
        "compute_mode": "default",
        "persistence": True,
        "power_limit_w": 700.0,
        "power_limit_default_w": 700.0,
        "power_source": "instant",
        "app_clocks_mhz": 1980,
        "pcie": {"gen": 5, "width": 16, "gen_max": 5, "width_max": 16},
        "other_processes": 1,
    }
    reading = telemetry.read()
    assert reading["memory_clock"] == 3.201e9
    assert (reading["power"], reading["temperature"], reading["memory_temperature"]) == (612.5, 58, 71)
    assert (reading["reasons"], reading["link"]) == (0x4, (5, 16))


def test_every_call_may_fail(opened: Open) -> None:
    """Whatever NVML refuses is None, and nothing is raised."""
    refused = NvmlError("Not Supported")
    finding = "nvmlDeviceGetHandleByPciBusId"
    for name in fake_nvml().answers:
        if name != finding:
            telemetry = opened(fake_nvml(**{name: refused}))
            telemetry.identity()
            telemetry.read()
    telemetry = opened(FakeNvml({finding: 1}))
    assert not any(telemetry.read().values())
    assert {value for key, value in telemetry.identity().items() if key != "pcie"} == {None}


@pytest.mark.parametrize("fields", [{82: 71}, NvmlError("nvmlDeviceGetFieldValues: this driver's NVML does not have it")])
@pytest.mark.parametrize(
    ("cc", "source"), [("7.0", "instant"), ("8.0", "instant"), ("8.6", "average (1 s)"), ("9.0", "average (1 s)")]
)
def test_an_older_driver_tells_what_its_power_is(opened: Open, fields: object, cc: str, source: str) -> None:
    telemetry = opened(fake_nvml(nvmlDeviceGetFieldValues=fields), cc=cc)
    assert (telemetry.read()["power"], telemetry.identity()["power_source"]) == (580.0, source)


def test_instant_and_average_power_are_not_mixed(opened: Open) -> None:
    library = fake_nvml()
    telemetry = opened(library)
    library.answers["nvmlDeviceGetFieldValues"] = NvmlError("Timeout")
    assert telemetry.read()["power"] is None


def test_a_quick_reading_asks_for_little(opened: Open) -> None:
    library = fake_nvml()
    telemetry = opened(library)
    library.asked.clear()
    reading = telemetry.read(thorough=False)
    assert reading == {"power": 612.5, "reasons": 0x4, "memory_clock": 3.201e9}
    assert sorted(name for name, *_ in library.asked) == [
        "nvmlDeviceGetClockInfo",
        "nvmlDeviceGetCurrentClocksEventReasons",
        "nvmlDeviceGetFieldValues",
    ]


def test_without_the_gpu(opened: Open) -> None:
    telemetry = opened(fake_nvml(nvmlDeviceGetHandleByPciBusId=NvmlError("nvmlDeviceGetHandleByPciBusId: Not Found")))
    assert telemetry.reason == "nvmlDeviceGetHandleByPciBusId: Not Found"


def test_a_device_without_bus_id_is_found_by_its_uuid(opened: Open) -> None:
    library = fake_nvml(nvmlDeviceGetHandleByUUID=1)
    assert opened(library, pci_bus_id="").available
    assert library.asked[0] == ("nvmlDeviceGetHandleByUUID", H200["uuid"])


def test_an_old_driver(installed: Any) -> None:
    """Older functions are taken; what it does not have is None."""
    missing = ("CurrentClocksEventReasons", "FieldValues", "MigMode")
    installed(
        **{f"nvmlDeviceGet{name}": NotFoundError() for name in missing},
        nvmlDeviceGetCurrentClocksThrottleReasons=0x48,
    )
    seen = open_telemetry(device())
    assert (seen.identity()["other_processes"], seen.identity()["mig_enabled"]) == (1, None)
    assert seen.identity()["power_source"] == "average (1 s)"
    assert (seen.read()["power"], seen.read()["memory_temperature"], seen.read()["reasons"]) == (580.0, None, 0x48)
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


def test_names_of_reasons() -> None:
    assert names(0x48) == ["hardware slowdown", "hardware thermal slowdown"]


def test_only_readings_while_trials_ran_count() -> None:
    readings = [
        {"time": t, "power": p, "reasons": r} for t, p, r in ((0, 90.0, 0x8), (1, 600.0, 0), (2, 610.0, 0x4), (3, 80.0, 0x40))
    ]
    seen = observe(readings, [(0.5, 2.5)])
    assert (seen["power"], seen["reasons"], seen["samples"]) == (605.0, 0x4, 2)


def test_where_no_reading_falls_into_a_trial() -> None:
    """Reasons and settings outlast it; power does not, and is not made up."""
    readings = [
        {"time": t, "power": 90.0, "memory_clock": 3e9, "temperature": 50.0 + t, "reasons": 0x8 << 3 * t} for t in (0, 1)
    ]
    seen = observe(readings, [(7.0, 8.0)])
    known = {key: value for key, value in seen.items() if value is not None}
    assert known == {"memory_clock": 3e9, "temperature": 51.0, "reasons": 0x48, "samples": 0}


@dataclass
class Play(FakeTelemetry):
    """A GPU that is idle at 100 W, but loaded with 600 W from 1 s to 2 s; each look at it takes 1 ms of a made-up clock."""

    now: float = 0.0
    until: float = 3.0
    over: threading.Event = field(default_factory=threading.Event)
    asked: list[str] = field(default_factory=list)

    def clock(self) -> float:
        return self.now

    def read(self, thorough: bool = True) -> Reading:
        self.asked.append("all" if thorough else "quick")
        time_ = self.pass_time()
        power = 600.0 if 1.0 <= time_ <= 2.0 else 100.0
        return {"power": power, **({"link": (5, 16), "temperature": 60.0} if thorough else {})}

    def pass_time(self) -> float:
        if self.now >= self.until:
            self.over.set()
            time.sleep(0.001)
        else:
            self.now += 0.001
        return self.now

    def watched(self, windows: list[tuple[float, float]]) -> dict[str, Any]:
        with Watch(self, period=0.0, clock=self.clock) as watch:
            assert self.over.wait(30)
            return watch.seen_in(windows)


def test_a_watch_tells_power_of_the_trials_only() -> None:
    seen = Play().watched([(1.1, 1.4), (1.5, 1.9)])
    assert seen["power"] == pytest.approx(600.0)
    assert (seen["link"], seen["temperature"]) == ((5, 16), 60.0)


def test_a_window_without_a_thorough_reading_knows_the_last_one() -> None:
    play = Play()
    seen = play.watched([(1.1, 1.103)])
    assert 0 < seen["samples"] < 5
    assert (seen["link"], seen["temperature"]) == ((5, 16), 60.0)


def test_what_is_slow_to_change_is_asked_for_seldom() -> None:
    play = Play(until=0.5)
    play.watched([(0.0, 0.5)])
    kinds = {kind: play.asked.count(kind) for kind in ("all", "quick")}
    looks = kinds["all"] + kinds["quick"]
    assert play.asked[0] == "all"
    assert kinds["all"] == pytest.approx(looks / 10, abs=1)


def test_a_watch_reads_from_a_thread_and_ends_it() -> None:
    before = time.monotonic()
    telemetry = FakeTelemetry()
    with Watch(telemetry, period=0.002) as watch:
        while telemetry.reads < 3:
            time.sleep(0.002)
        seen = watch.seen_in([(before, time.monotonic())])
        assert watch._thread is None
    assert seen["samples"] >= 2
    assert (seen["power"], seen["memory_clock"]) == (600.0, 3.201e9)


def test_a_watch_ends_when_what_it_watches_fails() -> None:
    watch = Watch(FakeTelemetry(), period=0.002)
    with pytest.raises(ZeroDivisionError), watch:
        1 / 0  # noqa: B018
    assert watch._thread is None


def test_other_processes_do_not_count_this_one(opened: Open) -> None:
    library = fake_nvml(nvmlDeviceGetComputeRunningProcesses=[os.getpid(), 1])
    assert opened(library).identity()["other_processes"] == 1
