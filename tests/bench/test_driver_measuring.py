"""From the trials of a session to a ceiling: warm-up, outliers, slowdowns, clocks that disagree, verdicts; no process."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ncu_roofline.bench.document import summary_line
from ncu_roofline.bench.files import measured
from ncu_roofline.bench.measuring import timers_agree
from ncu_roofline.bench.runner import Trial
from ncu_roofline.bench.telemetry import Telemetry
from ncu_roofline.formats.ceilings import CPU, GPU
from tests.bench.fakes import FakeTelemetry, kind, scenario
from tests.bench.rig import FAST, HW_SLOWDOWN, HW_THERMAL, ONCE, POWER_BRAKE, POWER_CAP, SW_THERMAL, Rig

FMA = kind("fp64.fma")


def test_a_clean_run_is_accepted_with_median_and_interval() -> None:
    entry = Rig(scenario()).entry("fp64.fma")
    assert entry["accepted"]
    assert entry["verdict"] == "ok"
    assert entry["reasons"] == []
    assert entry["value"] == pytest.approx(33.0e12, rel=1e-3)
    low, high = entry["ci95"]
    assert low <= entry["value"] <= high
    assert (high - low) / entry["value"] < 1e-3
    assert (entry["trials"], entry["sessions"], entry["outliers"], entry["discarded"]) == (45, 3, 0, 0)
    assert entry["between_session_cv"] < 1e-3
    assert entry["theory"]["at_measured_clock"] == pytest.approx(132 * 128 * 1.98e9)
    assert entry["theory"]["fraction"] == pytest.approx(0.986, abs=2e-3)
    assert entry["per_sm_and_cycle"] == pytest.approx(126.3, abs=0.2)
    # These trials take no real time, so nothing was read while they ran.
    assert (entry["power_w"], entry["temp_c"]["gpu"]) == (None, 55.0)
    assert (entry["energy_per_unit_j"], entry["burst"]) == (None, None)
    assert entry["clock"] == {
        "sm_mhz_mean": pytest.approx(1980),
        "sm_mhz_min": 1980,
        "mem_mhz": 3201,
        "mem_mhz_max": 3201,
        "method": "clock64/globaltimer",
    }


def test_latencies_are_seconds_per_launch_and_have_no_theory() -> None:
    entry = Rig(scenario()).entry("launch.stream")
    assert entry["value"] == pytest.approx(2.5e-6, rel=1e-3)
    assert entry["unit"] == "s"
    assert entry["theory"]["value"] is None
    assert entry["per_sm_and_cycle"] is None


def test_trials_before_the_clock_stands_still_do_not_count() -> None:
    rig = Rig(scenario(fp64_fma={"calls": [{"drift": [1200, 1500, 1700, 1850, 1930, 1960]}]}))
    record = rig.session("fp64.fma")
    assert record.discarded == 6
    assert len(record.values) == FAST.trials
    assert min(record.clocks) == 1.98e9
    assert record.rejections == []


def test_without_clocks_the_first_trials_do_not_count() -> None:
    content = scenario()
    content["ceilings"]["launch.stream"]["clock"] = None
    record = Rig(content).session("launch.stream")
    assert (record.discarded, len(record.values)) == (2, FAST.trials)


def test_a_session_ends_when_its_last_trials_agree() -> None:
    rig = Rig(scenario(fp64_fma={"calls": [{"drift": [1200, 1500, 1980]}]}))
    record = rig.session("fp64.fma")
    assert (record.discarded, len(record.values), record.rejections) == (2, FAST.trials, [])
    assert rig.clock.now == pytest.approx(1 + (2 + FAST.trials + 1) * FAST.min_time)  # one more had begun


def test_trials_that_disagree_are_followed_by_more() -> None:
    rig = Rig(scenario(fp64_fma={"noise": 0.08}))
    record = rig.session("fp64.fma")
    assert (record.discarded, len(record.values)) == ((FAST.most - 1) * FAST.trials, FAST.trials)
    assert record.rejections[0].startswith("unstable: ")


def test_few_outliers_are_counted_and_do_no_harm() -> None:
    late = {"outliers": FAST.most * FAST.trials - FAST.trials + 1}  # from the last of the first 15 on
    record = Rig(scenario(fp64_fma={"calls": [late]})).session("fp64.fma")
    assert (record.discarded, record.rejections) == (0, [])
    assert min(record.values) < 17e12 < 32e12 < record.value


def test_many_outliers_do_harm() -> None:
    content = scenario(fp64_fma={"calls": [{"outliers": 32}]})  # the last 13 of 26, then all 15
    record = Rig(content, settings=replace(FAST, most=1)).session("fp64.fma")
    assert record.rejections == []
    record = Rig(scenario(fp64_fma={"calls": [{"outliers": 2}]}), settings=replace(FAST, most=1)).session("fp64.fma")
    assert record.rejections == ["unstable: 2 outliers in 15 trials"]


@pytest.mark.parametrize("trials", [1, 2, 3])
def test_fewer_than_three_trials_tell_no_spread(trials: int) -> None:
    entry = Rig(scenario(), settings=replace(FAST, trials=trials)).entry("fp64.fma")
    assert entry["value"] == pytest.approx(33.0e12, rel=1e-3)
    assert entry["accepted"] == (trials == 3)
    assert entry["trials"] == 3 * trials
    if trials < 3:
        assert (entry["verdict"], entry["reasons"]) == ("unstable", [f"unstable: no spread of fewer than 3 trials ({trials})"])
    assert (entry["cv"] is None) == (trials == 1)


def test_one_session_has_no_spread_between_sessions() -> None:
    entry = Rig(scenario(), settings=ONCE).entry("fp64.fma")
    assert entry["accepted"]
    assert (entry["between_session_cv"], entry["between_session_cv_per_cycle"]) == (None, None)
    assert entry["cv"] < 1e-3
    content = {"device": {"name": "x", "cc": "9.0"}, "ceilings": [entry]}
    assert summary_line(content) == "1 ceilings"
    assert "sessions" not in measured(content)  # a column of "-" is left out


# Programs beside the benchmark


@pytest.mark.parametrize(("share", "told"), [(0.521, True), (0.011, True), (0.01, False), (0.0, False), ("much", False)])
def test_what_others_took_of_the_cpu_is_told(share: object, told: bool) -> None:
    rig = Rig(scenario(fp64_fma={"calls": [{"launch": {"disturbed": share}}]}))
    (of_cpu, of_gpu) = (replace(rig.bench, device=kind).measure(FMA, "best").notes for kind in (CPU, GPU))
    assert of_gpu == []
    assert of_cpu == ([f"other programs took {share:.0%} of the CPU"] if told else [])


# Two clocks


@pytest.mark.parametrize(
    ("gpu", "host", "agree"),
    [(0.02, 0.02, True), (0.02, 0.0204, True), (0.02, 0.021, False), (0.004, 0.0045, True), (0.004, 0.0047, False)],
)
def test_the_host_must_confirm_the_time_but_for_a_launch(gpu: float, host: float, agree: bool) -> None:
    assert timers_agree(Trial(gpu, 1.0, None, None, 5.0, 5.0 + host)) is agree


def test_a_host_that_saw_less_time_does_no_harm() -> None:
    """The events of the GPU lie outside the work, the host's times may lie closer."""
    assert timers_agree(Trial(0.02, 1.0, None, None, 5.0, 5.0195))


def test_trials_whose_clocks_disagree_are_dropped_and_counted() -> None:
    calls = [{"host": 1.05, "late": 4}]
    record = Rig(scenario(fp64_fma={"calls": calls})).session("fp64.fma")
    assert (record.discarded, len(record.values), record.rejections) == (4, FAST.trials, [])
    entry = Rig(scenario(fp64_fma={"calls": calls})).entry("fp64.fma")
    assert entry["accepted"]
    assert entry["discarded"] == 4 * 3


def test_more_of_them_than_that_leave_fewer() -> None:
    late = (FAST.most - 1) * FAST.trials + 5
    record = Rig(scenario(fp64_fma={"calls": [{"host": 1.05, "late": late}]})).session("fp64.fma")
    assert (record.discarded, len(record.values)) == (late, FAST.trials - 5)


def test_clocks_that_never_agree_are_a_failure() -> None:
    entry = Rig(scenario(fp64_fma={"calls": [{"host": 1.05}]})).entry("fp64.fma")
    assert (entry["value"], entry["verdict"]) == (None, "failed")
    assert "the clocks of GPU and host disagree" in entry["reasons"][0]


# Held back


@pytest.mark.parametrize(
    ("bit", "name"),
    [
        (HW_SLOWDOWN, "hardware slowdown"),
        (SW_THERMAL, "software thermal slowdown"),
        (HW_THERMAL, "hardware thermal slowdown"),
        (POWER_BRAKE, "power brake"),
    ],
)
def test_slowdowns_of_the_driver_reject(bit: int, name: str) -> None:
    assert Rig(scenario(), FakeTelemetry([bit])).session("fp64.fma").rejections == [f"throttled: {name}"]


def test_a_lower_clock_that_holds_still_is_told() -> None:
    """Tensor cores have one of their own."""
    record = Rig(scenario(fp64_fma={"clock": 1500})).session("fp64.fma")
    assert (record.rejections, record.notes) == ([], ["the SM clock fell to 75.8% of the warm-up's"])


def test_a_lower_clock_that_swings_is_throttling() -> None:
    clocks = [1400 if i % 2 else 1600 for i in range(60)]
    record = Rig(scenario(fp64_fma={"clock": 1500, "calls": [{"drift": clocks}]})).session("fp64.fma")
    assert record.rejections == ["throttled: the SM clock fell to 80.8% of the warm-up's"]


def test_a_clock_that_swings_is_not_the_ceilings_variation() -> None:
    clocks = [1860 + 30 * (i % 5) for i in range(60)]
    rig = Rig(scenario(fp64_fma={"calls": [{"drift": clocks}]}))
    entry = rig.entry("fp64.fma")
    assert entry["accepted"]
    assert entry["cv"] > 0.02
    assert entry["cv_per_cycle"] < 1e-3
    assert entry["between_session_cv_per_cycle"] < 1e-3


@pytest.mark.parametrize(("ceiling", "steady"), [("launch.stream", True), ("dram.read", False), ("fp64.fma", False)])
def test_what_depends_on_the_host_may_vary_more(ceiling: str, steady: bool) -> None:
    record = Rig(scenario(**{ceiling.replace(".", "_"): {"noise": 0.08}})).session(ceiling)
    assert (record.rejections == []) is steady


def test_without_nvml_a_steady_lower_clock_stands_with_a_note() -> None:
    rig = Rig(scenario(fp64_fma={"clock": 1500, "rate": 25e12}), Telemetry("not installed"))
    record = rig.session("fp64.fma")
    assert record.rejections == []
    assert "cause is unknown" in record.notes[0]
    assert record.observed["power"] is None


def test_memory_is_not_judged_by_the_sm_clock() -> None:
    content = scenario()
    content["ceilings"]["dram.read"]["clock"] = 1200
    assert Rig(content).session("dram.read").rejections == []


# The power cap, and bursts


def test_the_power_cap_is_recorded_not_rejected() -> None:
    content = scenario()
    content["ceilings"]["tensor.fp16.wgmma"].update(clock=1500, rate=743e12)
    entry = Rig(content, FakeTelemetry([POWER_CAP])).entry("tensor.fp16.wgmma")
    assert entry["accepted"]
    assert entry["throttle"]["reasons"] == ["power cap"]
    assert any("power cap" in reason for reason in entry["reasons"])
    assert entry["theory"]["fraction"] == pytest.approx(0.916, abs=2e-3)
    assert entry["theory"]["fraction_vendor_clock"] == pytest.approx(0.751, abs=2e-3)
    assert entry["per_sm_and_cycle"] == pytest.approx(3752, rel=1e-3)


def capped() -> Rig:
    """A tensor ceiling at 1500 MHz under the power cap, whose short trials after a rest run at 1900 MHz."""
    content = scenario()
    content["ceilings"]["tensor.fp16.wgmma"].update(clock=1500, rate=743e12, rested=1900 / 1500)
    return Rig(content, FakeTelemetry([POWER_CAP]))


def test_under_the_power_cap_a_burst_tells_the_clock_of_a_short_kernel() -> None:
    rig = capped()
    entry = rig.entry("tensor.fp16.wgmma")
    assert entry["value"] == pytest.approx(743e12, rel=1e-3)
    burst = entry["burst"]
    assert burst["value"] == pytest.approx(743e12 * 1900 / 1500, rel=1e-3)
    assert (burst["seconds"], burst["trials"], burst["sm_mhz"]) == (FAST.burst, FAST.bursts, pytest.approx(1900))
    assert burst["per_sm_and_cycle"] == pytest.approx(entry["per_sm_and_cycle"], rel=1e-3)
    assert [row["role"] for row in entry["variants"]] == ["session"] * 3 + ["burst"]
    (job,) = [job for job in rig.source.jobs if job.pause]
    assert (job.pause, job.min_time, job.trials) == (FAST.rest, FAST.burst, FAST.bursts)


def test_a_burst_rests_before_each_trial() -> None:
    rig = capped()
    before = rig.clock.now
    rig.bench.measure(kind("tensor.fp16.wgmma"), "best", role="burst")
    assert rig.clock.now - before == pytest.approx(FAST.bursts * (FAST.rest + FAST.burst))


def test_without_power_cap_there_is_no_burst() -> None:
    rig = Rig(scenario())
    assert rig.entry("tensor.fp16.wgmma")["burst"] is None
    assert not any(job.pause for job in rig.source.jobs)


@pytest.mark.parametrize("ceiling", ["dram.read", "l2.read"])
def test_memory_has_no_burst(ceiling: str) -> None:
    rig = Rig(scenario(**{ceiling.replace(".", "_"): {"rested": 1.1}}), FakeTelemetry([POWER_CAP]))
    assert rig.entry(ceiling)["burst"] is None
    assert not any(job.pause for job in rig.source.jobs)


def test_a_burst_that_is_no_faster_is_none() -> None:
    rig = Rig(scenario(fp64_fma={"rested": 0.99}), FakeTelemetry([POWER_CAP]))
    assert rig.entry("fp64.fma")["burst"] is None
    assert any(job.pause for job in rig.source.jobs)


@pytest.mark.parametrize("mode", ["crash", "wrong"])
def test_a_burst_that_fails_takes_nothing_away(mode: str) -> None:
    rig = capped()
    rig.source.content["ceilings"]["tensor.fp16.wgmma"]["calls"] = [{}, {}, {"mode": mode}, {}]
    entry = rig.entry("tensor.fp16.wgmma")
    assert entry["accepted"]
    assert entry["burst"] is None


def _powered(rig: Rig, ceiling: str, watts: float) -> dict[str, Any]:
    """The entry of a ceiling whose trials took so much power."""
    outcome = rig.outcome(ceiling)
    sessions = (replace(record, observed={**record.observed, "power": watts}) for record in outcome.sessions)
    return rig.told(outcome._replace(sessions=tuple(sessions)))


def test_energy_per_unit_is_power_over_rate() -> None:
    entry = _powered(Rig(scenario()), "fp64.fma", 650.0)
    assert entry["power_w"] == 650.0
    assert entry["energy_per_unit_j"] == pytest.approx(650.0 / entry["value"], rel=1e-3)
    launch = _powered(Rig(scenario()), "launch.stream", 200.0)
    assert launch["energy_per_unit_j"] == pytest.approx(200.0 * launch["value"], rel=1e-3)


# Right and wrong


def test_a_wrong_result_is_rejected_at_once() -> None:
    rig = Rig(scenario(fp64_fma={"calls": [{"mode": "wrong"}]}))
    outcome = rig.outcome("fp64.fma")
    entry = rig.told(outcome)
    assert not entry["accepted"]
    assert entry["verdict"] == "wrong"
    assert entry["verified"]["checksum"] is False
    assert len(outcome.sessions) == 1


def test_more_than_theory_is_a_wrong_count() -> None:
    entry = Rig(scenario(fp64_fma={"rate": 34.0e12})).entry("fp64.fma")
    assert entry["theory"]["fraction"] > 1.01
    assert not entry["accepted"]
    assert entry["verdict"] == "impossible"
    assert "miscounted" in entry["reasons"][0]


def test_more_than_an_uncertain_theory_disproves_it() -> None:
    entry = Rig(scenario(fp16_nofma={"rate": 70e12})).entry("fp16.nofma")
    assert entry["accepted"]
    assert entry["verdict"] == "high"
    assert "disproves" in entry["reasons"][0]


def test_less_than_four_fifths_carries_a_reason() -> None:
    entry = Rig(scenario(fp64_fma={"rate": 20e12})).entry("fp64.fma")
    assert entry["accepted"]
    assert entry["verdict"] == "low"
    assert entry["reasons"] == ["59.8% of theory at the measured clock: no reason is known"]
