"""NVML through a fake, and what is read while trials run."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from ncu_roofline.bench.telemetry import Counters, NoTelemetry, Reading, Watch, names, observe, open_telemetry
from tests.bench.fakes import H200, FakeTelemetry, NvmlError, device, fake_nvml


def test_identity_and_readings() -> None:
    telemetry = open_telemetry(device(), fake_nvml())
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
        "app_clocks_mhz": 1980,
        "pcie": {"gen": 5, "width": 16, "gen_max": 5, "width_max": 16},
        "other_processes": 1,
    }
    reading = telemetry.read()
    assert (reading.sm_clock, reading.memory_clock) == (1.98e9, 3.201e9)
    assert (reading.power, reading.temperature, reading.memory_temperature) == (612.5, 58, 71)
    assert (reading.reasons, reading.link) == (0x4, (5, 16))
    assert telemetry.counters() == Counters(energy=5.0, power_violation=2e-3, thermal_violation=2e-3)


def test_every_call_may_fail() -> None:
    """Whatever NVML refuses is None, and nothing is raised."""
    good = fake_nvml()
    for name in vars(good):
        if name in ("nvmlInit", "nvmlDeviceGetHandleByPciBusId"):
            continue
        for answer in (NvmlError("Not Supported"), ..., None):
            telemetry = open_telemetry(device(), fake_nvml(**{name: answer}))
            telemetry.identity()
            telemetry.read()
            telemetry.counters()
    names_of_all = [name for name in vars(good) if name not in ("nvmlInit", "nvmlDeviceGetHandleByPciBusId")]
    telemetry = open_telemetry(device(), fake_nvml(**{name: NvmlError("GPU is lost") for name in names_of_all}))
    assert telemetry.read() == Reading()
    assert telemetry.counters() == Counters()
    assert {value for key, value in telemetry.identity().items() if key != "pcie"} == {None}


@pytest.mark.parametrize("call", ["nvmlInit", "nvmlDeviceGetHandleByPciBusId"])
def test_without_a_library_or_the_gpu_in_it(call: str) -> None:
    telemetry = open_telemetry(device(), fake_nvml(**{call: NvmlError("NVML Shared Library Not Found")}))
    assert isinstance(telemetry, NoTelemetry)
    assert "Library Not Found" in telemetry.reason
    assert telemetry.identity() == {}
    assert telemetry.read() == Reading()


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pynvml", None)
    telemetry = open_telemetry(device())
    assert isinstance(telemetry, NoTelemetry)
    assert "ncu-roofline[bench]" in telemetry.reason


def test_a_device_without_bus_id_is_found_by_its_uuid() -> None:
    asked = []
    nvml = fake_nvml(nvmlDeviceGetHandleByUUID=lambda uuid: asked.append(uuid))
    open_telemetry(device({**H200, "pci_bus_id": ""}), nvml)
    assert asked == [H200["uuid"]]


def test_old_drivers_call_it_throttle_reasons() -> None:
    nvml = fake_nvml(nvmlDeviceGetCurrentClocksEventReasons=..., nvmlDeviceGetCurrentClocksThrottleReasons=0x48)
    assert names(open_telemetry(device(), nvml).read().reasons) == ["hardware slowdown", "hardware thermal slowdown"]


def test_the_numbers_are_those_of_nvidias_package() -> None:
    nvml = pytest.importorskip("pynvml")
    assert nvml.nvmlClocksThrottleReasonHwSlowdown == 0x8
    assert nvml.nvmlClocksThrottleReasonSwThermalSlowdown == 0x20
    assert nvml.nvmlClocksThrottleReasonHwThermalSlowdown == 0x40
    assert nvml.nvmlClocksThrottleReasonHwPowerBrakeSlowdown == 0x80
    assert nvml.nvmlClocksThrottleReasonSwPowerCap == 0x4
    assert (nvml.NVML_CLOCK_GRAPHICS, nvml.NVML_CLOCK_SM, nvml.NVML_CLOCK_MEM) == (0, 1, 2)
    assert (nvml.NVML_PERF_POLICY_POWER, nvml.NVML_PERF_POLICY_THERMAL, nvml.NVML_TEMPERATURE_GPU) == (0, 1, 0)
    assert nvml.NVML_FI_DEV_MEMORY_TEMP == 82


def test_only_readings_while_trials_ran_count() -> None:
    readings = [
        Reading(time=t, power=p, reasons=r) for t, p, r in ((0, 90.0, 0x8), (1, 600.0, 0), (2, 610.0, 0x4), (3, 80.0, 0x40))
    ]
    seen = observe(readings, Counters(energy=10.0), Counters(energy=35.0), 0.5, 2.5)
    assert (seen.power, seen.reasons, seen.energy, seen.samples) == (605.0, 0x4, 25.0, 2)
    assert seen.harmful == []
    everything = observe(readings, Counters(), Counters(), 7.0, 8.0)
    assert (everything.samples, everything.energy) == (4, None)
    assert everything.harmful == ["hardware slowdown", "hardware thermal slowdown"]


def test_a_watch_reads_from_a_thread_and_ends_it() -> None:
    before = time.monotonic()
    with Watch(FakeTelemetry(), period=0.002) as watch:
        time.sleep(0.05)
        seen = watch.seen(before, time.monotonic())
    assert seen.samples >= 2
    assert (seen.power, seen.memory_clock, seen.energy) == (600.0, 3.201e9, 100.0)


def test_a_watch_ends_when_what_it_watches_fails() -> None:
    watch = Watch(FakeTelemetry(), period=0.002)
    with pytest.raises(ZeroDivisionError), watch:
        1 / 0  # noqa: B018
    assert watch._thread is None


def test_other_processes_do_not_count_this_one() -> None:
    own = SimpleNamespace(pid=__import__("os").getpid())
    assert open_telemetry(device(), fake_nvml(nvmlDeviceGetComputeRunningProcesses=[own])).identity()["other_processes"] == 0
