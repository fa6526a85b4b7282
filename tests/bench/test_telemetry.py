"""NVML through a fake and by its package, and what is read while trials run."""

from __future__ import annotations

import sys
import threading
import time
from typing import Any

import pytest

from ncu_roofline.bench import telemetry as module
from ncu_roofline.bench.device import Device
from ncu_roofline.bench.telemetry import Reading, Telemetry, Watch, names, observe, open_telemetry
from tests.bench.fakes import HERE, MACHINES, FakeNvml, FakeTelemetry, device, read_toml
from tests.golden import assert_golden


def test_names_and_numbers_are_those_of_the_package() -> None:
    package = pytest.importorskip("pynvml", reason="no nvidia-ml-py on this machine (pip install nvidia-ml-py)")
    told = MACHINES["package"]
    assert {name: getattr(package, f"NVML_{name}") for name in told["numbers"]} == told["numbers"]
    assert told["numbers"].items() >= {"FI_DEV_MEMORY_TEMP": module.MEMORY_TEMPERATURE, "FI_DEV_POWER_INSTANT": 186}.items()
    bits = {getattr(package, f"nvmlClocksThrottleReason{name}"): words for name, words in told["reasons"].items()}
    assert bits.items() <= module.REASONS.items()
    assert hasattr(package.c_nvmlFieldValue_t().value, "uiVal")
    calls = {*MACHINES["nvml"], "DeviceGetHandleByUUID", "DeviceGetCurrentClocksThrottleReasons"}
    calls -= {"DeviceGetCurrentClocksEventReasons"}  # its newer name is not in every package
    assert [name for name in calls if not hasattr(package, f"nvml{name}")] == []


def test_what_is_made_of_the_answers_of_nvml(monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(own: Device | None = None, **answers: Any) -> tuple[Telemetry, FakeNvml]:
        package = FakeNvml(**answers)
        monkeypatch.setitem(sys.modules, "pynvml", package)
        return open_telemetry(own or device()), package

    text = ""
    for name, told in read_toml("nvml.toml").items():
        own, answers = ({key: one for key, one in told.items() if key[0].islower() == low} for low in (True, False))
        telemetry, package = opened(device(**own), **answers)
        text += f"# {name}\n{telemetry.available}{telemetry.reason}\nfound by {package.asked[1:2]}\n"
        text += f"{telemetry.identity()}\n{telemetry.read()}\n"
        package.asked.clear()
        text += f"quickly {telemetry.read(thorough=False)} by {[one for one, *_ in package.asked]}\n"
    assert_golden(HERE / "nvml.txt", text)
    for name in FakeNvml().answers.keys() - {"DeviceGetHandleByPciBusId", "Init"}:  # whatever is refused, nothing is raised
        telemetry, _ = opened(**{name: "!Not Supported"})
        assert telemetry.identity() | telemetry.read()
    telemetry, package = opened()
    package.answers = {"DeviceGetPowerUsage": 580_000}
    assert not any(telemetry.read().values())  # instant and average power are not mixed
    assert {value for key, value in telemetry.identity().items() if key != "pcie"} == {None}
    assert names(0x48) == ["hardware slowdown", "hardware thermal slowdown"]
    assert opened(Init="!Driver Not Loaded")[0].reason == "NVML: Driver Not Loaded"
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert open_telemetry(device()).reason.endswith("is not installed (pip install 'ncu-roofline[bench]')")


def test_only_readings_while_trials_ran_count() -> None:
    """Reasons and settings outlast a trial; power is weighted with time, does not outlast it, and is not made up."""
    readings = ((0, 90.0, 0x8), (1, 600.0, 0), (2, 610.0, 0x4), (3, 80.0, 0x40))
    seen = observe([{"time": t, "power": p, "reasons": r} for t, p, r in readings], [(0.5, 2.5)])
    assert (seen["power"], seen["reasons"], seen["samples"]) == (605.0, 0x4, 2)
    found = ((0, 3e9, 50.0, 0x8), (1, 3e9 + 1, 51.0, 0x40))
    late = [{"time": t, "power": 90.0, "memory_clock": clock, "temperature": c, "reasons": r} for t, clock, c, r in found]
    known = {key: value for key, value in observe(late, [(7.0, 8.0)]).items() if value is not None}
    assert known == {"memory_clock": 3e9 + 0.5, "temperature": 51.0, "reasons": 0x48, "samples": 0}
    for watts, samples, windows in MACHINES["observed"]["power"]:
        found = observe([{"time": time, "power": power} for time, power in samples], windows)["power"]
        assert found == (pytest.approx(watts) if watts else None)


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
