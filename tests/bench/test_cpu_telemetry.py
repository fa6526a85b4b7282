"""Power and clocks of the CPU through a made-up /sys."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import pytest

from ncu_roofline.bench.telemetry import CpuTelemetry, Watch

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/sys is Linux's")


def write(folder: Path, **files: object) -> None:
    """Files of one line each."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in files.items():
        (folder / name).write_text(f"{value}\n", encoding="ascii")


@pytest.fixture
def sysfs(tmp_path: Path) -> Path:
    """Two packages, one with its cores apart, a zone of the whole system, and the clock of each CPU."""
    powercap = tmp_path / "class/powercap"
    write(powercap / "intel-rapl:0", name="package-0", energy_uj=1_000_000, max_energy_range_uj=10_000_000)
    write(powercap / "intel-rapl:0:0", name="core", energy_uj=400_000, max_energy_range_uj=10_000_000)
    write(powercap / "intel-rapl:1", name="package-1", energy_uj=9_000_000, max_energy_range_uj=10_000_000)
    write(powercap / "intel-rapl:2", name="psys", energy_uj=77, max_energy_range_uj=10_000_000)
    for cpu in os.sched_getaffinity(0):
        folder = tmp_path / f"devices/system/cpu/cpu{cpu}/cpufreq"
        write(folder, scaling_cur_freq=3_700_000, scaling_governor="performance", scaling_driver="acpi-cpufreq")
    return tmp_path


def opened(sysfs: Path) -> CpuTelemetry:
    """With a clock that goes half a second per look."""
    telemetry = CpuTelemetry.opened(sysfs)
    assert isinstance(telemetry, CpuTelemetry)
    times = iter(range(100))
    telemetry.clock = lambda: next(times) / 2
    return telemetry


def test_power_is_energy_over_time(sysfs: Path) -> None:
    telemetry = opened(sysfs)
    assert telemetry.read() == {}
    write(sysfs / "class/powercap/intel-rapl:0", energy_uj=6_000_000)
    assert telemetry.read() == {"power": pytest.approx(10.0)}
    write(sysfs / "class/powercap/intel-rapl:1", energy_uj=1_500_000)
    assert telemetry.read() == {"power": pytest.approx(5.0)}  # its counter began anew


def test_identity(sysfs: Path) -> None:
    assert opened(sysfs).identity() == {"clock_governor": "performance", "clock_driver": "acpi-cpufreq"}


def test_either_may_be_missing(sysfs: Path) -> None:
    for path in (sysfs / "class/powercap").glob("*/energy_uj"):
        path.unlink()
    telemetry = CpuTelemetry.opened(sysfs)
    assert (telemetry.available, telemetry.read(), telemetry.read()) == (True, {}, {})
    for path in (sysfs / "devices/system/cpu").glob("*/cpufreq/scaling_cur_freq"):
        path.unlink()
    nothing = CpuTelemetry.opened(sysfs)
    assert not nothing.available
    assert "powercap" in nothing.reason


def test_what_vanishes_or_turns_odd_is_left_out(sysfs: Path) -> None:
    telemetry = opened(sysfs)
    write(sysfs / "class/powercap/intel-rapl:0", energy_uj="-1")
    (sysfs / "class/powercap/intel-rapl:1/energy_uj").unlink()
    for path in (sysfs / "devices/system/cpu").glob("*/cpufreq/scaling_cur_freq"):
        path.write_text("<unknown>\n", encoding="ascii")
    assert telemetry.read() == telemetry.read() == {}


def test_a_watch_reads_it(sysfs: Path) -> None:
    milliseconds, over = 0, threading.Event()

    def clock() -> float:
        """A millisecond later at each look, at 5 W."""
        nonlocal milliseconds
        if milliseconds < 300:
            milliseconds += 1
            write(sysfs / "class/powercap/intel-rapl:0", energy_uj=1_000_000 + 5_000 * milliseconds)
        else:
            over.set()
        return milliseconds / 1_000

    telemetry = opened(sysfs)
    telemetry.clock = clock
    with Watch(telemetry, period=0.0, clock=clock) as watch:
        assert over.wait(60)
        power = watch.seen_in([(0.1, 0.2)])["power"]
    assert power == pytest.approx(5.0, rel=0.02)


def test_this_machine_raises_nothing() -> None:
    telemetry = CpuTelemetry.opened()
    telemetry.identity()
    telemetry.read()
