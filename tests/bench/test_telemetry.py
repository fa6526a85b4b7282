"""NVML through a fake and by its package, and what is read while trials run."""

from __future__ import annotations

import os
import sys
import threading
import time
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from ncu_roofline.bench import telemetry as module
from ncu_roofline.bench.telemetry import Nvml, NvmlError, Reading, Telemetry, Watch, load, names, observe, open_telemetry
from tests.bench.fakes import EPYC, H200, MACHINES, FakeNvml, FakeTelemetry, device, fake_nvml

ABSENT = "this driver's NVML does not have it"


def test_names_and_numbers_are_those_of_the_package() -> None:
    package = pytest.importorskip("pynvml", reason="no nvidia-ml-py on this machine (pip install nvidia-ml-py)")
    told = MACHINES["package"]
    assert {name: getattr(package, f"NVML_{name}") for name in told["numbers"]} == told["numbers"]
    own = [told["numbers"][name] for name in ("FI_DEV_MEMORY_TEMP", "FI_DEV_POWER_INSTANT", "COMPUTEMODE_COUNT")]
    assert own == [module.MEMORY_TEMPERATURE, module.POWER_INSTANT, len(module.COMPUTE_MODES)]
    modes = {
        getattr(package, f"NVML_COMPUTEMODE_{name.replace(' ', '_').upper()}"): name for name in module.COMPUTE_MODES.values()
    }
    assert modes == module.COMPUTE_MODES
    bits = {getattr(package, f"nvmlClocksThrottleReason{name}"): words for name, words in told["reasons"].items()}
    assert bits.items() <= module.REASONS.items()
    assert hasattr(package.c_nvmlFieldValue_t().value, "uiVal")
    # Its newer name is not in every package.
    calls = {*MACHINES["nvml"], "DeviceGetHandleByUUID", "DeviceGetCurrentClocksThrottleReasons"}
    calls -= {"DeviceGetCurrentClocksEventReasons"}
    assert [name for name in calls if not hasattr(package, f"nvml{name}")] == []


def opened(monkeypatch: pytest.MonkeyPatch, library: FakeNvml, **facts: str) -> Telemetry:
    """The telemetry of an H200 on a given NVML."""
    monkeypatch.setattr(module, "load", lambda: library)
    return open_telemetry(device({**H200, **facts}))


class NotFoundError(Exception):
    """``NVMLError_FunctionNotFound`` of the made-up package."""


class RefusedError(Exception):
    """``NVMLError`` of the made-up package."""


def install(monkeypatch: pytest.MonkeyPatch, **changes: Any) -> None:
    """A made-up package with the answers of an H200."""
    fake = fake_nvml(**{"Init": None, "DeviceGetName": "NVIDIA H200", **changes})
    functions = {f"nvml{name}": partial(fake.ask, f"nvml{name}") for name in fake.answers}
    package = SimpleNamespace(NVMLError=RefusedError, NVMLError_FunctionNotFound=NotFoundError, **functions)
    monkeypatch.setitem(sys.modules, "pynvml", package)


def test_identity_and_readings(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)
    telemetry = open_telemetry(device())
    assert (telemetry.available, telemetry.identity()) == (True, MACHINES["identity"])
    quick = {"memory_clock": 3.201e9, "power": 612.5, "reasons": 0x4}
    assert telemetry.read() == {**quick, "temperature": 58, "memory_temperature": 71, "link": (5, 16)}
    library = fake_nvml(DeviceGetComputeRunningProcesses=[os.getpid(), 1])
    own = opened(monkeypatch, library)
    assert own.identity()["other_processes"] == 1  # this one does not count
    library.asked.clear()
    assert (own.read(thorough=False), len(library.asked)) == (quick, 3)
    library.answers["DeviceGetFieldValues"] = NvmlError("Timeout")
    assert own.read()["power"] is None  # instant and average power are not mixed


def test_what_is_refused_or_missing_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    finding = "DeviceGetHandleByPciBusId"
    for name in fake_nvml().answers.keys() - {finding}:
        telemetry = opened(monkeypatch, fake_nvml(**{name: NvmlError("Not Supported")}))
        telemetry.identity()
        telemetry.read()
    telemetry = opened(monkeypatch, FakeNvml({finding: 1}))
    assert not any(telemetry.read().values())
    assert {value for key, value in telemetry.identity().items() if key != "pcie"} == {None}
    for cc, source in (("8.0", "instant"), ("8.6", "average (1 s)"), ("9.0", "average (1 s)")):  # what it calls the usage
        for fields in ({"82": 71}, NvmlError(f"nvmlDeviceGetFieldValues: {ABSENT}")):
            old = opened(monkeypatch, fake_nvml(DeviceGetFieldValues=fields), cc=cc)
            assert (old.read()["power"], old.identity()["power_source"]) == (580.0, source)


def test_an_old_driver_and_refusals(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = {f"DeviceGet{name}": NotFoundError() for name in ("CurrentClocksEventReasons", "FieldValues", "MigMode")}
    lost = {"DeviceGetName": RefusedError("GPU is lost")}
    install(monkeypatch, **missing, **lost, DeviceGetCurrentClocksThrottleReasons=0x48)
    seen = open_telemetry(device())
    assert [seen.identity()[name] for name in ("mig_enabled", "power_source")] == [None, "average (1 s)"]
    assert [seen.read()[name] for name in ("power", "memory_temperature", "reasons")] == [580.0, None, 0x48]
    for name, told in {"nvmlDeviceGetMigMode": ABSENT, "nvmlNew": ABSENT, "nvmlDeviceGetName": "GPU is lost"}.items():
        with pytest.raises(NvmlError, match=f"^{name}: {told}$"):
            load().ask(name, 0)
    assert Nvml(sys.modules["pynvml"]).tell("nvmlDeviceGetName", 0) is None
    assert names(0x48) == ["hardware slowdown", "hardware thermal slowdown"]


def test_who_cannot_be_asked_and_why(monkeypatch: pytest.MonkeyPatch) -> None:
    lost = opened(monkeypatch, fake_nvml(DeviceGetHandleByPciBusId=NvmlError("nvmlDeviceGetHandleByPciBusId: Not Found")))
    assert (lost.available, lost.reason) == (False, "nvmlDeviceGetHandleByPciBusId: Not Found")
    library = fake_nvml(DeviceGetHandleByUUID=1)
    assert opened(monkeypatch, library, pci_bus_id="").available
    assert library.asked[0] == ("DeviceGetHandleByUUID", H200["uuid"])
    monkeypatch.undo()
    install(monkeypatch, Init=RefusedError("Driver Not Loaded"))
    assert open_telemetry(device()).reason == "nvmlInit: Driver Not Loaded"
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert open_telemetry(device()).reason == "the package nvidia-ml-py is not installed (pip install nvidia-ml-py)"
    blind = open_telemetry(device(EPYC))
    assert (blind.reason, blind.identity(), blind.read()) == ("", {}, {})


def test_only_readings_while_trials_ran_count() -> None:
    """Reasons and settings outlast a trial; power is weighted with time, does not outlast it, and is not made up."""
    told = ((0, 90.0, 0x8), (1, 600.0, 0), (2, 610.0, 0x4), (3, 80.0, 0x40))
    seen = observe([{"time": t, "power": p, "reasons": r} for t, p, r in told], [(0.5, 2.5)])
    assert (seen["power"], seen["reasons"], seen["samples"]) == (605.0, 0x4, 2)
    late = [
        {"time": t, "power": 90.0, "memory_clock": 3e9 + t, "temperature": 50.0 + t, "reasons": 0x8 << 3 * t} for t in (0, 1)
    ]
    known = {key: value for key, value in observe(late, [(7.0, 8.0)]).items() if value is not None}
    assert known == {"memory_clock": 3e9 + 0.5, "temperature": 51.0, "reasons": 0x48, "samples": 0}
    one, paused = {0.5: 90, 1: 600, 1.2: 600, 2: 700, 2.5: 90}, {0.5: 600, 1.5: 100, 2.5: 700, 2.75: 700}
    for watts, samples, windows in (
        (0.6 * 600 + 0.4 * 700, one, [(1.0, 2.0)]),
        (600, {1.3: 600}, [(1.0, 2.0)]),
        (650, paused, [(0.0, 1.0), (2.0, 3.0)]),
        ((600 + 3 * 700) / 4, paused, [(0.0, 1.0), (1.6, 1.9), (2.0, 5.0)]),
        (None, paused, [(1.6, 1.9)]),
        (None, paused, []),
    ):
        found = observe([{"time": time, "power": float(power)} for time, power in samples.items()], windows)["power"]
        assert found == (watts and pytest.approx(watts))


def test_a_watch_reads_from_a_thread_and_asks_seldom_for_what_is_slow() -> None:
    threads, told, asked, clock = threading.active_count(), FakeTelemetry(), list[bool](), iter(range(10**9))

    def read(thorough: bool = True) -> Reading:
        asked.append(thorough)
        return {"power": float(len(asked)), **({"temperature": 60.0} if thorough else {})}

    told.read = read  # type: ignore[method-assign]
    with Watch(told, period=0.0, clock=lambda: float(next(clock))) as watch:  # two ticks for each look: it is at 0.5, 2.5, ...
        while len(asked) < 100:
            time.sleep(0.001)
    assert (asked[0], asked.count(True)) == (True, pytest.approx(len(asked) / 10, abs=1))
    seen = watch.seen_in([(46.0, 53.0)])  # looks 24 to 27; the temperature was asked for at the 21st
    assert (seen["samples"], seen["power"], seen["temperature"]) == (4, pytest.approx(25.5, abs=0.2), 60.0)
    with pytest.raises(ZeroDivisionError), Watch(told, period=0.002):
        1 / 0  # noqa: B018
    assert threading.active_count() == threads
