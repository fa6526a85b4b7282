"""The whole list of an H100 within the budget, on machines that are slow to start, noisy, hot, capped, or partly broken.

Time is a clock that moves by what each context, job and trial costs.  Whatever happens, each ceiling that can be measured has a
value; what does not fit are repeats.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from ncu_roofline.bench.campaign import Campaign, Outcome
from ncu_roofline.bench.document import Origin, document
from ncu_roofline.bench.measuring import FULL, QUICK, Settings
from ncu_roofline.bench.telemetry import Reading
from tests.bench.fakes import Clock, FakeTelemetry, Scripted, device, kind
from tests.bench.h100 import GPU, H100, machine, wanted
from tests.bench.rig import HW_THERMAL, POWER_CAP, SW_THERMAL

SET_UP = 0.3  # s of a job before its trials: memory filled, results verified
GRACE = 8.0  # s by which the last job and its pause may exceed the budget


@dataclass
class Sky(FakeTelemetry):
    """A driver whose reasons for a lower clock follow from the time."""

    clock: Clock | None = None
    reasons_at: Callable[[float], int] = lambda _now: 0

    def read(self, thorough: bool = True) -> Reading:
        assert self.clock is not None
        return {**super().read(thorough), "reasons": self.reasons_at(self.clock.now)}


@dataclass(frozen=True)
class Result:
    """What came out: entries of the file by id, outcomes by id, the time that it took (s), what the program did."""

    entries: dict[str, dict[str, Any]]
    outcomes: dict[str, Outcome]
    took: float
    source: Scripted

    def sure(self, *but: str) -> None:
        """Every ceiling but these has a value, with its spread, and within the time."""
        for name, entry in self.entries.items():
            if name in but or (entry["verdict"] == "not measured" and "quick" in entry["reasons"][0]):
                continue
            assert entry["value"], (name, entry["reasons"])
            assert math.isfinite(entry["cv"]), name
            assert (entry["between_session_cv"] is None) == (entry["sessions"] == 1), name
            low, high = entry["ci95"]
            assert low <= entry["value"] <= high, name

    def accepted(self, *but: str) -> None:
        """Every ceiling that has a value is accepted, but these."""
        refused = {name: e["reasons"] for name, e in self.entries.items() if e["value"] and not e["accepted"]}
        assert refused.keys() == set(but), refused


def simulate(content: dict[str, Any], settings: Settings, start: float = 3.0, sky: Sky | None = None) -> Result:
    """A whole run."""
    source = Scripted(content, start=start, set_up=SET_UP)
    sky = sky or Sky()
    sky.clock = source.clock
    began = source.clock.now
    bench = Campaign(source, sky, settings, source.clock.timing(), began + settings.budget)
    outcomes = bench.run(wanted(settings.quick))
    entries = document(device(GPU), outcomes, settings, Origin({}, {}, ""))["ceilings"]
    by_id = {outcome.kind.id: outcome for outcome in outcomes}
    return Result({entry["id"]: entry for entry in entries}, by_id, source.clock.now - began, source)


def out_of_time(result: Result) -> set[str]:
    """Ceilings that miss repeats."""
    return {name for name, outcome in result.outcomes.items() if any("out of time" in note for note in outcome.notes)}


@pytest.mark.parametrize("noise", [0.001, 0.005, 0.015], ids="cv {:.1%}".format)
@pytest.mark.parametrize("start", [0.5, 3.0])
@pytest.mark.parametrize("settings", [FULL, QUICK], ids=["full", "quick"])
def test_a_sound_machine(settings: Settings, start: float, noise: float) -> None:
    result = simulate(machine(noise), settings, start)
    result.sure()
    result.accepted()
    assert result.took <= 0.55 * settings.budget  # nothing good is thrown away
    assert out_of_time(result) == set()
    assert all(outcome.sessions[0].variant == H100[name][0] for name, outcome in result.outcomes.items() if outcome.sessions)
    for name, entry in result.entries.items():
        if entry["value"]:
            assert entry["sessions"] == settings.sessions, name
            assert entry["cv"] == pytest.approx(noise, rel=0.75), name
            rate = result.source.content["ceilings"][name]["rate"]
            assert entry["value"] == pytest.approx(1 / rate if entry["unit"] == "s" else rate, rel=2 * noise), name


@pytest.mark.parametrize("settings", [FULL, QUICK], ids=["full", "quick"])
@pytest.mark.parametrize(
    ("broken", "mode"),
    [
        ("dram.read", "crash"),
        ("dram.read", "fatal"),
        ("l2.read", "error"),
        ("tensor.fp16.wgmma", "crash"),
        ("tensor.fp16.wgmma", "error"),
        ("dram.read", "hang"),
        ("l1.read", "hang"),
        ("launch.stream", "hang"),
    ],
)
def test_one_broken_ceiling(broken: str, mode: str, settings: Settings) -> None:
    result = simulate(machine(0.005, **{broken.replace(".", "_", 1): {"calls": [{"mode": mode}]}}), settings)
    result.sure(broken)
    result.accepted()
    entry = result.entries[broken]
    assert (entry["value"], entry["verdict"]) == (None, "failed")
    assert (f"it said nothing for {settings.silence:g} s" in entry["reasons"][0]) == (mode == "hang")
    assert result.took <= settings.budget + GRACE


@pytest.mark.parametrize("mode", ["crash", "error", "hang"])
def test_a_ceiling_that_breaks_once(mode: str) -> None:
    """What does not hang has its other sessions."""
    result = simulate(machine(0.005, fp64_fma={"calls": [{"mode": mode}, {}]}), FULL)
    result.sure(*(["fp64.fma"] if mode == "hang" else []))
    result.accepted()
    assert result.took <= FULL.budget + GRACE


@pytest.mark.parametrize("mode", ["crash", "error", "hang"])
def test_what_warms_up_is_broken(mode: str) -> None:
    result = simulate(machine(0.005, fp32_fma={"calls": [{"mode": mode}]}), FULL)
    result.sure("fp32.fma")
    result.accepted()
    assert result.took <= FULL.budget + GRACE


def test_a_thermal_slowdown_that_passes() -> None:
    """Half a minute of it, early: what was hit then stands by what comes later."""
    sky = Sky(reasons_at=lambda now: SW_THERMAL if 10.0 < now < 40.0 else 0)
    result = simulate(machine(0.005), FULL, sky=sky)
    result.sure()
    result.accepted()
    assert result.took <= FULL.budget + GRACE
    hit = [entry for entry in result.entries.values() if entry["value"] and entry["reasons"]]
    assert len(hit) > 5


@pytest.mark.parametrize("settings", [FULL, QUICK], ids=["full", "quick"])
def test_a_thermal_slowdown_that_stays(settings: Settings) -> None:
    result = simulate(machine(0.005), settings, sky=Sky(reasons_at=lambda _now: HW_THERMAL))
    result.sure()
    result.accepted(*(name for name, entry in result.entries.items() if entry["value"]))
    measured = [entry for entry in result.entries.values() if entry["value"]]
    assert {entry["verdict"] for entry in measured} == {"throttled"}
    assert all(entry["throttle"]["reasons"] == ["hardware thermal slowdown"] for entry in measured)
    assert result.took <= settings.budget + GRACE


@pytest.mark.parametrize("settings", [FULL, QUICK], ids=["full", "quick"])
def test_under_the_power_cap(settings: Settings) -> None:
    """It takes nothing from what is measured; in a full run arithmetic has bursts besides, at the clock of a short kernel."""
    capped = {"calls": [{"clock": 1600, "scale": 1600 / 1980}], "rested": 1980 / 1600}
    arithmetic = {name for name in H100 if kind(name).kind == "compute"} - {"fp32.fma"}  # what warms up
    changes = {name.replace(".", "_", 1): capped for name in arithmetic}
    result = simulate(machine(0.005, **changes), settings, sky=Sky(reasons_at=lambda _now: POWER_CAP))
    result.sure()
    result.accepted()
    assert result.took <= settings.budget + GRACE
    measured = {name: entry for name, entry in result.entries.items() if entry["value"]}
    assert all(entry["throttle"]["reasons"] == ["power cap"] for entry in measured.values())
    for name, entry in measured.items():
        if name in arithmetic and not settings.quick:
            assert entry["burst"]["value"] == pytest.approx(entry["value"] * 1980 / 1600, rel=0.02)
            assert entry["burst"]["sm_mhz"] == pytest.approx(1980)
            assert entry["burst"]["per_sm_and_cycle"] == pytest.approx(entry["per_sm_and_cycle"], rel=0.02)
        elif name != "fp32.fma":
            assert entry["burst"] is None


def test_everything_at_once() -> None:
    changes: dict[str, dict[str, Any]] = {
        "dram_copy": {"calls": [{"mode": "fatal"}]},
        "l2_write": {"calls": [{"mode": "hang"}]},
        "fp16_nofma": {"calls": [{"mode": "error", "text": "out of memory"}]},
        "fp64_div": {"noise": 0.08},
    }
    sky = Sky(reasons_at=lambda now: SW_THERMAL if 20.0 < now < 50.0 else 0)
    result = simulate(machine(0.01, **changes), FULL, sky=sky)
    result.sure("dram.copy", "l2.write", "fp16.nofma")
    assert result.took <= FULL.budget + GRACE
    assert not result.entries["fp64.div"]["accepted"]
    assert result.entries["dram.read"]["accepted"]


@pytest.mark.parametrize("budget", [40.0, 60.0, 80.0])
def test_a_short_budget_leaves_out_repeats_only(budget: float) -> None:
    result = simulate(machine(0.005), replace(FULL, budget=budget))
    result.sure()
    result.accepted()
    assert out_of_time(result)
    assert all("out of time" in result.entries[name]["reasons"][0] for name in out_of_time(result))
