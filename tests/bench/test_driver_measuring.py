"""From trials to ceilings: warm-up, outliers, throttling, retries, sessions, verdicts; no process and no GPU."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ncu_roofline.bench.campaign import Campaign, Candidate, Journal, Outcome, Silent, candidates
from ncu_roofline.bench.catalogue import catalogue, kind_of
from ncu_roofline.bench.document import Origin, as_text, ceiling, document
from ncu_roofline.bench.measuring import Bench, Record, after_warm_up
from ncu_roofline.bench.runner import Job, Trial, Variant
from ncu_roofline.bench.settings import FULL, QUICK, Settings
from ncu_roofline.bench.telemetry import NoTelemetry, Telemetry
from ncu_roofline.ceilings import read_ceilings
from tests.bench.fakes import RATES, Clock, FakeTelemetry, Scripted, device, scenario

FAST = replace(FULL, warm_up=0.1)
POWER_CAP, HW_SLOWDOWN, SW_THERMAL, HW_THERMAL, POWER_BRAKE = 0x4, 0x8, 0x20, 0x40, 0x80


class Rig:
    """A bench around a scenario."""

    def __init__(self, content: dict[str, Any], telemetry: Telemetry | None = None, settings: Settings = FAST) -> None:
        self.source, self.clock, self.settings = Scripted(content), Clock(), settings
        self.bench = Bench(self.source, 0, telemetry or FakeTelemetry(), settings, self.clock.timing())

    def session(self, ceiling_id: str, warm_clock: float | None = 1.98e9) -> Record:
        """One session of a ceiling."""
        return self.bench.measure(kind_of(ceiling_id, "FLOP/s"), "best", "session", 0, warm_clock)

    def outcome(self, ceiling_id: str, *variants: str, journal: Journal | None = None) -> Outcome:
        """A whole campaign for one ceiling."""
        candidate = Candidate(kind_of(ceiling_id, "FLOP/s"), variants or ("best",))
        return Campaign(self.bench, Journal(None, {}) if journal is None else journal, Silent()).run([candidate])[0]

    def entry(self, ceiling_id: str, *variants: str) -> dict[str, Any]:
        """What the file says about it."""
        return ceiling(self.outcome(ceiling_id, *variants), device(), self.settings, None)


def test_a_clean_run_is_accepted_with_median_and_interval() -> None:
    entry = Rig(scenario()).entry("fp64.fma")
    assert entry["accepted"]
    assert entry["verdict"] == "ok"
    assert entry["reasons"] == []
    assert entry["value"] == pytest.approx(33.0e12, rel=1e-3)
    low, high = entry["ci95"]
    assert low <= entry["value"] <= high
    assert (high - low) / entry["value"] < 1e-3
    assert (entry["trials"], entry["sessions"], entry["outliers"]) == (93, 3, 0)
    assert entry["between_session_cv"] < 1e-3
    assert entry["theory"]["at_measured_clock"] == pytest.approx(132 * 128 * 1.98e9)
    assert entry["theory"]["fraction"] == pytest.approx(0.986, abs=2e-3)
    assert entry["per_sm_and_cycle"] == pytest.approx(126.3, abs=0.2)
    # These trials take no time, so nothing was read while they ran.
    assert (entry["power_w"], entry["temp_c"]["gpu"], entry["energy_j"]) == (None, 55.0, None)
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


def test_a_clock_that_never_stands_still_is_unstable() -> None:
    clocks = [1980 if i % 2 else 1900 for i in range(60)]
    record = Rig(scenario(fp64_fma={"calls": [{"drift": clocks}]})).session("fp64.fma")
    assert record.attempts == 4
    assert [reason.partition(":")[0] for reason in record.rejections] == ["unstable"]


def test_without_clocks_the_first_trials_do_not_count() -> None:
    trials = [Trial(1.0, float(i), None, None, 0.0) for i in range(10)]
    used, discarded = after_warm_up(trials, 6)
    assert (discarded, len(used)) == (2, 6)
    assert after_warm_up(trials[:3], 31) == (trials[:3], 0)


def test_few_outliers_are_counted_and_do_no_harm() -> None:
    entry = Rig(scenario(fp64_fma={"calls": [{"outliers": 10}]})).entry("fp64.fma")  # the last ten are spare trials
    assert entry["outliers"] == 0
    content = scenario(fp64_fma={"calls": [{"outliers": 12}]})
    entry = Rig(content).entry("fp64.fma")
    assert entry["accepted"]
    assert entry["outliers"] == 2 * 3
    assert entry["value"] == pytest.approx(33.0e12, rel=1e-3)
    assert entry["min"] < 17e12


def test_many_outliers_are_retried_with_longer_trials() -> None:
    rig = Rig(scenario(fp64_fma={"calls": [{"outliers": 16}, {"outliers": 16}, {}]}))
    record = rig.session("fp64.fma")
    assert record.attempts == 3
    assert record.rejections == []
    assert [job.min_time for job in rig.source.jobs] == [0.02, 0.04, 0.08]


def test_noise_above_two_per_cent_is_given_up_after_three_retries() -> None:
    rig = Rig(scenario(fp64_fma={"noise": 0.08}))
    record = rig.session("fp64.fma")
    assert record.attempts == 4
    entry = Rig(scenario(fp64_fma={"noise": 0.08})).entry("fp64.fma")
    assert not entry["accepted"]
    assert entry["verdict"] == "unstable"
    assert "variation" in entry["reasons"][0]
    assert entry["value"] is not None


@pytest.mark.parametrize(
    ("bit", "name"),
    [
        (HW_SLOWDOWN, "hardware slowdown"),
        (SW_THERMAL, "software thermal slowdown"),
        (HW_THERMAL, "hardware thermal slowdown"),
        (POWER_BRAKE, "power brake"),
    ],
)
def test_slowdowns_of_the_driver_reject_and_cool_down(bit: int, name: str) -> None:
    rig = Rig(scenario(), FakeTelemetry([bit]))
    record = rig.session("fp64.fma")
    assert record.rejections == [f"throttled: {name}"]
    assert rig.clock.waits == [4.0, 8.0, 12.0]


def test_a_gpu_that_cools_down_is_measured_again() -> None:
    rig = Rig(scenario(), FakeTelemetry([HW_THERMAL, HW_THERMAL, 0]))
    record = rig.session("fp64.fma")
    assert (record.attempts, record.rejections) == (3, [])


def test_a_fallen_clock_is_throttling() -> None:
    rig = Rig(scenario(fp64_fma={"calls": [{"clock": 1500}, {"clock": 1980}]}))
    assert rig.session("fp64.fma").attempts == 2
    record = Rig(scenario(fp64_fma={"clock": 1500})).session("fp64.fma")
    assert record.rejections == ["throttled: the SM clock fell to 75.8% of the warm-up's"]


def test_the_power_cap_is_recorded_not_rejected() -> None:
    content = scenario(tensor_fp16={"rate": 1})
    content["ceilings"]["tensor.fp16.wgmma"].update(clock=1500, rate=743e12)
    entry = Rig(content, FakeTelemetry([POWER_CAP])).entry("tensor.fp16.wgmma")
    assert entry["accepted"]
    assert entry["throttle"]["reasons"] == ["power cap"]
    assert any("power cap" in reason for reason in entry["reasons"])
    assert entry["theory"]["fraction"] == pytest.approx(0.916, abs=2e-3)
    assert entry["theory"]["fraction_vendor_clock"] == pytest.approx(0.751, abs=2e-3)
    assert entry["per_sm_and_cycle"] == pytest.approx(3752, rel=1e-3)


def test_without_nvml_a_steady_lower_clock_stands_with_a_note() -> None:
    rig = Rig(scenario(fp64_fma={"clock": 1500, "rate": 25e12}), NoTelemetry("not installed"))
    record = rig.session("fp64.fma")
    assert record.rejections == []
    assert "cause is unknown" in record.notes[0]
    assert record.observed["power"] is None


def test_memory_is_not_judged_by_the_sm_clock() -> None:
    content = scenario()
    content["ceilings"]["dram.read"]["clock"] = 1200
    rig = Rig(content)
    record = rig.bench.measure(kind_of("dram.read", "B/s"), "best", "session", 0, 1.98e9)
    assert record.rejections == []


def test_a_wrong_result_is_rejected_at_once() -> None:
    rig = Rig(scenario(fp64_fma={"calls": [{"mode": "wrong"}]}))
    entry = rig.entry("fp64.fma")
    assert not entry["accepted"]
    assert entry["verdict"] == "wrong"
    assert entry["verified"]["checksum"] is False
    assert all(record.attempts == 1 for record in rig.outcome("fp64.fma").sessions)


def test_more_than_theory_is_a_wrong_count() -> None:
    entry = Rig(scenario(fp64_fma={"rate": 34.0e12})).entry("fp64.fma")
    assert entry["theory"]["fraction"] > 1.01
    assert not entry["accepted"]
    assert entry["verdict"] == "impossible"
    assert "miscounted" in entry["reasons"][0]


def test_more_than_an_uncertain_theory_disproves_it() -> None:
    entry = Rig(scenario(int32_mad={"rate": 66e12})).entry("int32.mad")
    assert entry["accepted"]
    assert entry["verdict"] == "high"
    assert "disproves" in entry["reasons"][0]


def test_less_than_four_fifths_carries_a_reason() -> None:
    entry = Rig(scenario(fp64_fma={"rate": 20e12})).entry("fp64.fma")
    assert entry["accepted"]
    assert entry["verdict"] == "low"
    assert entry["reasons"] == ["59.8% of theory at the measured clock: no reason is known"]


def test_the_best_variant_of_the_sweep_is_measured() -> None:
    content = scenario(fp64_fma={"variants": {"a": 0.7, "b": 1.0, "c": 0.9}})
    rig = Rig(content)
    entry = rig.entry("fp64.fma", "a", "b", "c")
    assert entry["variant"] == {"kernel": "b", "grid": 528}
    sweep = [row for row in entry["variants"] if row["role"] == "sweep"]
    assert [row["kernel"] for row in sweep] == ["a", "b", "c"]
    assert [round(row["value"] / 33e12, 2) for row in sweep] == [0.7, 1.0, 0.9]
    assert {job.variant for job in rig.source.jobs[-3:]} == {"b"}


def test_the_best_variant_of_a_latency_is_the_shortest() -> None:
    content = scenario(launch_stream={"variants": {"a": 0.7, "b": 1.0}})
    assert Rig(content).entry("launch.stream", "a", "b")["variant"]["kernel"] == "b"


def test_a_variant_that_crashes_in_the_sweep_is_not_chosen() -> None:
    content = scenario(fp64_fma={"variants": {"a": 1.2, "b": 1.0}, "calls": [{}, {"mode": "crash"}, {"mode": "crash"}, {}]})
    entry = Rig(content).entry("fp64.fma", "a", "b")  # the first call is the warm-up
    assert entry["variant"]["kernel"] == "b"
    assert any("code 3" in str(row["rejections"]) for row in entry["variants"])


def test_sessions_alternate_their_direction() -> None:
    rig = Rig(scenario())
    wanted = [Candidate(kind_of(name, "B/s"), ("best",)) for name in ("dram.read", "l1.read")]
    Campaign(rig.bench, Journal(None, {}), Silent()).run(wanted)
    assert [job.ceiling for job in rig.source.jobs[1:]] == [
        "dram.read",
        "l1.read",
        "l1.read",
        "dram.read",
        "dram.read",
        "l1.read",
    ]


def test_the_warm_up_runs_arithmetic_for_its_time() -> None:
    rig = Rig(scenario(), settings=replace(FULL, sessions=1))
    wanted = [Candidate(kind_of(name, "B/s"), ("best",)) for name in ("dram.read", "fp32.fma")]
    Campaign(rig.bench, Journal(None, {}), Silent()).run(wanted)
    first = rig.source.jobs[0]
    assert first.ceiling == "fp32.fma"
    assert first.trials * first.min_time == pytest.approx(1.5)


def test_one_bad_session_of_three_is_left_out() -> None:
    calls: list[dict[str, float]] = [{}, {}, *[{"noise": 0.08}] * 4, {}]  # warm-up, good, bad with its retries, good
    entry = Rig(scenario(fp64_fma={"calls": calls})).entry("fp64.fma")
    assert entry["accepted"]
    assert entry["sessions"] == 2
    assert "1 of 3 sessions left out" in entry["reasons"][0]


def test_two_bad_sessions_of_three_are_not() -> None:
    calls: list[dict[str, float]] = [{}, {}, {"noise": 0.08}]
    entry = Rig(scenario(fp64_fma={"calls": calls})).entry("fp64.fma")
    assert not entry["accepted"]
    assert entry["sessions"] == 3


def test_a_crash_is_retried_once_and_then_told() -> None:
    rig = Rig(scenario(fp64_fma={"calls": [{}, {"mode": "crash"}, {}]}))
    assert rig.entry("fp64.fma")["accepted"]
    rig = Rig(scenario(fp64_fma={"calls": [{}, {"mode": "crash"}]}))
    entry = rig.entry("fp64.fma")
    assert (entry["value"], entry["verdict"]) == (None, "failed")
    assert entry["reasons"] == ["the benchmark failed: it ended with code 3"]
    assert len(rig.source.jobs) == 3  # warm-up, run, retry; later sessions are spared


@pytest.mark.parametrize("word", ["unsupported", "emulated"])
def test_what_the_program_finds_missing_at_run_time_is_listed_without_value(word: str) -> None:
    rig = Rig(scenario(fp64_fma={"calls": [{}, {"mode": "error", "text": f"fp64.fma is {word} on this GPU"}]}))
    entry = rig.entry("fp64.fma")
    assert (entry["value"], entry["accepted"], entry["verdict"], entry["reasons"]) == (None, False, word, [word])
    assert len(rig.source.jobs) == 2


def test_a_budget_leaves_out_what_does_not_fit_and_says_so() -> None:
    rig = Rig(scenario())
    spend = 4.0

    def pass_time(_job: Job) -> None:
        rig.clock.now += spend

    rig.source.on_run = pass_time
    bench = replace(rig.bench, deadline=18.0)
    wanted = [Candidate(kind_of(name, "B/s"), ("best",)) for name in ("dram.read", "l1.read", "fp64.fma")]
    outcomes = Campaign(bench, Journal(None, {}), Silent()).run(wanted)
    notes = {outcome.kind.id: outcome.notes for outcome in outcomes}
    assert notes["fp64.fma"] == ("out of time: 2 of 3 sessions",)
    assert notes["dram.read"] == ("out of time: 1 of 3 sessions",)
    entry = ceiling(outcomes[0], device(), FAST, None)
    assert entry["accepted"]
    assert entry["reasons"] == ["out of time: 1 of 3 sessions"]


def test_out_of_time_before_the_first_trial() -> None:
    rig = Rig(scenario())
    bench = replace(rig.bench, deadline=-1.0)
    outcome = Campaign(bench, Journal(None, {}), Silent()).run([Candidate(kind_of("fp64.fma", "FLOP/s"), ("best",))])[0]
    entry = ceiling(outcome, device(), FAST, None)
    assert (entry["value"], entry["verdict"]) == (None, "not measured")


def test_no_time_for_sessions_leaves_the_sweep() -> None:
    rig = Rig(scenario(fp64_fma={"variants": {"a": 1.0, "b": 0.9}}))
    rig.source.on_run = lambda _job: setattr(rig.clock, "now", rig.clock.now + 4.0)
    bench = replace(rig.bench, deadline=10.0)
    outcome = Campaign(bench, Journal(None, {}), Silent()).run([Candidate(kind_of("fp64.fma", "FLOP/s"), ("a", "b"))])[0]
    entry = ceiling(outcome, device(), FAST, None)
    assert entry["accepted"]
    assert entry["reasons"] == ["out of time: the trials of the sweep only"]
    assert entry["trials"] == FAST.sweep_trials


def test_no_retry_after_the_deadline() -> None:
    rig = Rig(scenario(fp64_fma={"noise": 0.08}))
    rig.source.on_run = lambda _job: setattr(rig.clock, "now", rig.clock.now + 4.0)
    record = replace(rig.bench, deadline=3.0).measure(kind_of("fp64.fma", "FLOP/s"), "best", "session", 0, None)
    assert record.attempts == 1


def _variants(*rows: tuple[str, str, tuple[str, ...], str]) -> list[Variant]:
    return [Variant(ceiling_id, name, "FLOP/s", capabilities, reason) for ceiling_id, name, capabilities, reason in rows]


def test_which_variants_apply() -> None:
    variants = _variants(
        ("tensor.fp8.mma", "a", ("8.9", "12.0"), ""),
        ("tensor.fp8.mma", "a", ("9.0",), "emulated"),
        ("fp64.fma", "b", (), ""),
        ("fp64.fma", "c", ("8.0",), ""),
        ("fp64.div", "d", (), ""),
        ("tensor.fp16.tcgen05", "e", ("10.0",), ""),
    )
    kinds = [kind for kind in catalogue() if kind.id in {variant.ceiling for variant in variants} | {"dram.read"}]
    hopper = {c.kind.id: (c.variants, c.absent) for c in candidates(kinds, variants, "9.0", quick=True)}
    assert hopper["tensor.fp8.mma"] == ((), "emulated")
    assert hopper["fp64.fma"] == (("b",), "")
    assert hopper["fp64.div"] == ((), "not measured: left out of a quick run")
    assert hopper["tensor.fp16.tcgen05"] == ((), "unsupported")
    assert hopper["dram.read"] == ((), "not measured: the benchmark has no kernel for it")
    ampere = {c.kind.id: c.variants for c in candidates(kinds, variants, "8.0", quick=False)}
    assert ampere["fp64.fma"] == ("b", "c")
    assert ampere["fp64.div"] == ("d",)


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    key = {"uuid": "GPU-1", **FAST.key()}
    path = tmp_path / "x.journal"
    first = Rig(scenario())

    def interrupt(_job: Job) -> None:
        if len(first.source.jobs) == 4:
            raise KeyboardInterrupt

    first.source.on_run = interrupt
    with pytest.raises(KeyboardInterrupt):
        first.outcome("fp64.fma", journal=Journal(path, key))
    second = Rig(scenario())
    journal = Journal(path, key)
    assert len(journal) == 2
    outcome = second.outcome("fp64.fma", journal=journal)
    assert [record.session for record in outcome.sessions] == [0, 1, 2]
    assert len(second.source.jobs) == 2  # a warm-up and the one session that was missing
    third = Rig(scenario())
    assert third.outcome("fp64.fma", journal=Journal(path, key)) == outcome
    assert third.source.jobs == []
    journal.remove()
    assert not path.exists()


@pytest.mark.parametrize("damage", ["other key", "torn", "empty", "text", "foreign record"])
def test_a_journal_of_something_else_or_torn(tmp_path: Path, damage: str) -> None:
    key = {"uuid": "GPU-1"}
    path = tmp_path / "x.journal"
    journal = Journal(path, key)
    for session in range(2):
        journal.add(Record("fp64.fma", "best", "session", session, "FLOP/s", values=[1.0]))
    if damage == "torn":
        path.write_text(path.read_text()[:-20])
    elif damage in ("empty", "text"):
        path.write_text("" if damage == "empty" else "hello\n")
    elif damage == "foreign record":
        path.write_text(path.read_text() + '{"ceiling": "x"}\n[]\n')
    read = Journal(path, {"uuid": "GPU-2"} if damage == "other key" else key)
    assert len(read) == {"torn": 1, "foreign record": 2}.get(damage, 0)


def test_the_file_is_read_back_by_the_reader(tmp_path: Path) -> None:
    rig = Rig(
        scenario(), FakeTelemetry(facts={"driver": "580.65", "other_processes": 2, "ecc": {"current": True, "pending": False}})
    )
    wanted = [Candidate(kind_of(name, "B/s" if name in ("dram.read", "l1.read") else "FLOP/s"), ("best",)) for name in RATES]
    wanted = [c for c in wanted if not c.kind.id.startswith(("l2", "launch"))]
    wanted.append(Candidate(kind_of("tensor.fp8.mma", "FLOP/s"), (), "emulated"))
    outcomes = Campaign(rig.bench, Journal(None, {}), Silent()).run(wanted)
    content = document(device(), outcomes, FAST, Origin({"compiler": "nvcc 13.0.88"}, rig.bench.telemetry.identity(), ""))
    path = tmp_path / "ceilings.json"
    path.write_text(as_text(content))
    read = read_ceilings(path)
    assert read.device == "NVIDIA H200"
    assert read.compute_capability == (9, 0)
    fma, wgmma, dram = read.compute("fp64.fma"), read.compute("tensor.fp16"), read.bandwidth("dram")
    assert fma is not None
    assert wgmma is not None
    assert dram is not None
    assert fma.clock == pytest.approx(1.98e9)
    assert fma.variant == "best"
    assert (wgmma.id, dram.id) == ("tensor.fp16.wgmma", "dram.read")
    assert "tensor.fp8.mma" not in read.by_id
    assert content["derived"]["machine_balance"]["fp64.fma/dram"] == pytest.approx(33 / 4.35, rel=1e-2)
    assert len(content["warnings"]) == 2


def test_quick_is_one_session_without_a_sweep() -> None:
    content = scenario(fp64_fma={"variants": {"a": 0.9, "b": 1.0}})
    rig = Rig(content, settings=QUICK)
    entry = rig.entry("fp64.fma", "a", "b")
    assert (entry["variant"]["kernel"], entry["sessions"], entry["trials"]) == ("a", 1, 11)


@pytest.mark.parametrize("settings", [FULL, QUICK])
def test_the_budgets_hold_what_is_promised(settings: Settings) -> None:
    """Each run on hardware costs its trials and the start of a process; the clock here charges 0.45 s for that."""
    everything = scenario(**{kind.id.replace(".", "_", 1): {"variants": {"a": 1, "b": 1}} for kind in catalogue()})
    rig = Rig(everything, settings=settings)

    def charge(job: Job) -> None:
        rig.clock.now += 0.45 + job.trials * job.min_time

    rig.source.on_run = charge
    bench = replace(rig.bench, deadline=settings.budget)
    wanted = [Candidate(kind, ("a", "b")) for kind in catalogue() if kind.quick or not settings.quick]
    wanted = [candidate for candidate in wanted if "tcgen05" not in candidate.kind.id and "fp4" not in candidate.kind.id]
    outcomes = Campaign(bench, Journal(None, {}), Silent()).run(wanted)
    assert rig.clock.now < (30 if settings.quick else 180)
    assert all(outcome.sessions for outcome in outcomes)
