"""What is measured when: everything once, then again; variants, sessions, budget, progress."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ncu_roofline.bench.campaign import Candidate, Silent, candidates
from ncu_roofline.bench.catalogue import kinds_of
from ncu_roofline.bench.document import Origin, as_text, document
from ncu_roofline.bench.measuring import FULL, QUICK, Outcome, Record
from ncu_roofline.bench.runner import Variant
from ncu_roofline.formats.ceilings import read_ceilings
from tests.bench.fakes import RATES, FakeTelemetry, device, kind, scenario
from tests.bench.rig import FAST, ONCE, Rig

# The warm-up is the first run of a lone ceiling.
NOISY = {"noise": 0.08, "scale": 0.9}


# What does not stand


def test_a_crash_is_tried_once_more_and_then_told() -> None:
    rig = Rig(scenario(fp64_fma={"calls": [{}, {"mode": "crash"}, {}]}))
    assert rig.entry("fp64.fma")["accepted"]
    rig = Rig(scenario(fp64_fma={"calls": [{}, {"mode": "crash"}]}))
    entry = rig.entry("fp64.fma")
    assert (entry["value"], entry["verdict"]) == (None, "failed")
    assert entry["reasons"] == ["the benchmark failed: it ended with code 3"]
    assert len(rig.source.jobs) == 3  # warm-up, two runs; later sessions are spared


@pytest.mark.parametrize("call", [{"mode": "hang"}, {"mode": "wrong"}])
def test_hangs_and_wrong_results_are_not_tried_again(call: dict[str, str]) -> None:
    rig = Rig(scenario(fp64_fma={"calls": [{}, call]}))
    assert not rig.entry("fp64.fma")["accepted"]
    assert len(rig.source.jobs) == 2


@pytest.mark.parametrize("word", ["unsupported", "emulated"])
def test_what_the_program_finds_missing_at_run_time_is_listed_without_value(word: str) -> None:
    rig = Rig(scenario(fp64_fma={"calls": [{}, {"mode": "error", "text": f"fp64.fma is {word} on this GPU"}]}))
    entry = rig.entry("fp64.fma")
    assert (entry["value"], entry["accepted"], entry["verdict"], entry["reasons"]) == (None, False, word, [word])
    assert len(rig.source.jobs) == 2


# Variants and sessions


def test_the_best_variant_is_measured_again() -> None:
    rig = Rig(scenario(fp64_fma={"variants": {"a": 0.7, "b": 1.0, "c": 0.9}}))
    entry = rig.entry("fp64.fma", "a", "b", "c")
    assert entry["variant"] == {"kernel": "b", "grid": 528}
    assert [(row["kernel"], row["session"]) for row in entry["variants"]] == [("b", 0), ("b", 1), ("b", 2), ("a", 0), ("c", 0)]
    assert [round(row["value"] / 33e12, 2) for row in entry["variants"][2:]] == [1.0, 0.7, 0.9]


def test_the_best_variant_of_a_latency_is_the_shortest() -> None:
    content = scenario(launch_stream={"variants": {"a": 0.7, "b": 1.0}})
    assert Rig(content).entry("launch.stream", "a", "b")["variant"]["kernel"] == "b"


@pytest.mark.parametrize("mode", ["crash", "wrong"])
def test_a_variant_that_is_broken_is_not_chosen(mode: str) -> None:
    content = scenario(fp64_fma={"variants": {"a": 1.2, "b": 1.0}, "calls": [{}, {"mode": mode}, {}]})
    entry = Rig(content).entry("fp64.fma", "a", "b")
    assert entry["variant"]["kernel"] == "b"
    assert entry["accepted"]


def test_other_variants_come_after_every_ceiling_was_measured_once() -> None:
    rig = Rig(scenario(fp64_fma={"variants": {"a": 1.0, "b": 0.9}}), settings=ONCE)
    rig.campaign([Candidate(kind("fp64.fma"), ("a", "b")), Candidate(kind("dram.read"), ("best",))])
    assert [(job.ceiling, job.variant) for job in rig.source.jobs[1:]] == [
        ("fp64.fma", "a"),
        ("dram.read", "best"),
        ("fp64.fma", "b"),
    ]


def test_sessions_alternate_their_direction() -> None:
    rig = Rig(scenario())
    rig.outcomes("dram.read", "l1.read")
    order = ["dram.read", "l1.read", "l1.read", "dram.read", "dram.read", "l1.read"]
    assert [job.ceiling for job in rig.source.jobs[1:]] == order


def test_each_session_has_a_context_of_its_own() -> None:
    rig = Rig(scenario())
    rig.outcomes("dram.read", "l1.read", "fp64.fma")
    assert rig.source.contexts == FAST.sessions


def test_the_warm_up_runs_arithmetic_for_its_time() -> None:
    rig = Rig(scenario(), settings=replace(FULL, sessions=1))
    rig.outcomes("dram.read", "fp64.fma", "fp32.fma")
    first = rig.source.jobs[0]
    assert first.ceiling == "fp32.fma"
    assert first.trials * first.min_time == pytest.approx(1.5)


def test_what_a_quick_run_measures_comes_first() -> None:
    rig = Rig(scenario(fp64_div={"rate": 1e12}), settings=ONCE)
    outcomes = rig.outcomes("fp64.div", "dram.read")
    assert [job.ceiling for job in rig.source.jobs[1:]] == ["dram.read", "fp64.div"]
    assert [outcome.kind.id for outcome in outcomes] == ["fp64.div", "dram.read"]  # as they were asked for


def test_quick_is_one_session_of_one_variant_without_bursts() -> None:
    rig = Rig(scenario(fp64_fma={"variants": {"a": 0.9, "b": 1.0}}), FakeTelemetry([0x4]), settings=QUICK)
    entry = rig.entry("fp64.fma", "a", "b")
    assert (entry["variant"]["kernel"], entry["sessions"], entry["trials"]) == ("a", 1, QUICK.trials)
    assert entry["burst"] is None
    assert len(rig.source.jobs) == 2


@pytest.mark.parametrize("bad", [1, 2])
def test_bad_sessions_beside_a_good_one_are_left_out(bad: int) -> None:
    rig = Rig(scenario(fp64_fma={"calls": [{}, {}, *[NOISY] * bad, {}]}))
    entry = rig.entry("fp64.fma")
    assert entry["accepted"]
    assert (entry["sessions"], entry["attempts"]) == (3 - bad, 3)
    assert f"{bad} of 3 sessions left out" in entry["reasons"][0]
    assert len(rig.source.jobs) == 4


def test_sessions_that_fail_are_told() -> None:
    entry = Rig(scenario(fp64_fma={"calls": [{}, {}, {"mode": "crash"}]})).entry("fp64.fma")
    assert (entry["accepted"], entry["sessions"]) == (True, 1)
    assert entry["reasons"] == ["2 of 3 sessions failed: it ended with code 3"]


# The budget


def test_a_budget_leaves_out_repeats_and_says_so() -> None:
    rig = Rig(scenario(), spend=4.0)
    outcomes = rig.outcomes("dram.read", "l1.read", "fp64.fma", budget=20.0)
    assert [len(outcome.sessions) for outcome in outcomes] == [1, 1, 2]
    assert [outcome.notes for outcome in outcomes] == [
        ("out of time: 1 of 3 sessions",),
        ("out of time: 1 of 3 sessions",),
        ("out of time: 2 of 3 sessions",),
    ]
    entry = rig.told(outcomes[0])
    assert entry["accepted"]
    assert entry["reasons"] == ["out of time: 1 of 3 sessions"]


def test_out_of_time_before_the_first_trial() -> None:
    entry = Rig(scenario()).entry("fp64.fma", budget=-1.0)
    assert (entry["value"], entry["verdict"], entry["reasons"]) == (None, "not measured", ["not measured: out of time"])


def test_no_time_for_other_variants_leaves_the_preferred_one() -> None:
    rig = Rig(scenario(fp64_fma={"variants": {"a": 0.9, "b": 1.0}}), spend=4.0)
    entry = rig.entry("fp64.fma", "a", "b", budget=5.0)
    assert (entry["variant"]["kernel"], entry["reasons"]) == ("a", ["out of time: 1 of 3 sessions"])


# Progress


class Counting(Silent):
    """Counts what it is told."""

    def __init__(self) -> None:
        self.said: Counter[str] = Counter()

    def start(self, steps: int) -> None:
        self.said["steps"] = steps

    def step(self, ceiling: str, record: Record | None) -> None:  # noqa: ARG002
        self.said["done"] += 1


@pytest.mark.parametrize("settings", [FAST, QUICK])
@pytest.mark.parametrize("calls", [[{}], [{}, {"mode": "crash"}], [NOISY]])
def test_steps_are_as_many_as_announced(settings: Any, calls: list[dict[str, Any]]) -> None:
    rig = Rig(scenario(fp64_fma={"variants": {"a": 1.0, "b": 0.9}, "calls": calls}), settings=settings)
    counting = Counting()
    wanted = [Candidate(kind("fp64.fma"), ("a", "b")), Candidate(kind("dram.read"), ("best",))]
    replace(rig.bench, progress=counting).run([*wanted, Candidate(kind("fp64.div"), (), "unsupported")])
    assert counting.said["done"] == counting.said["steps"] > 0


def test_each_ceiling_is_told_once_when_it_is_measured_first() -> None:
    rig = Rig(scenario(dram_read={"calls": [NOISY]}))
    told: list[tuple[str, int]] = []

    def tell(found: Outcome) -> None:
        told.append((found.kind.id, len(rig.source.jobs)))

    wanted = [Candidate(kind(name), ("best",)) for name in ("dram.read", "fp64.fma")]
    replace(rig.bench, told=tell).run(wanted)
    assert told == [("dram.read", 2), ("fp64.fma", 3)]


# Which variants


def test_which_variants_apply() -> None:
    variants = [
        Variant("tensor.fp8.mma", "a", "FLOP/s", ("8.9", "12.0"), ""),
        Variant("tensor.fp8.mma", "a", "FLOP/s", ("9.0",), "emulated"),
        Variant("fp64.fma", "b", "FLOP/s", (), ""),
        Variant("fp64.fma", "c", "FLOP/s", ("8.0",), ""),
        Variant("fp64.div", "d", "FLOP/s", (), ""),
        Variant("tensor.fp16.tcgen05", "e", "FLOP/s", ("10.0",), ""),
    ]
    kinds = [*kinds_of(variants), kind("dram.read")]
    hopper = {c.kind.id: (c.variants, c.absent) for c in candidates(kinds, variants, "9.0", quick=True)}
    assert hopper["tensor.fp8.mma"] == ((), "emulated")
    assert hopper["fp64.fma"] == (("b",), "")
    assert hopper["fp64.div"] == ((), "not measured: left out of a quick run")
    assert hopper["tensor.fp16.tcgen05"] == ((), "unsupported")
    assert hopper["dram.read"] == ((), "not measured: the benchmark has no kernel for it")
    ampere = {c.kind.id: c.variants for c in candidates(kinds, variants, "8.0", quick=False)}
    assert ampere["fp64.fma"] == ("b", "c")
    assert ampere["fp64.div"] == ("d",)


# The file


def test_the_file_is_read_back_by_the_reader(tmp_path: Path) -> None:
    facts = {"driver": "580.65", "other_processes": 2, "ecc": {"current": True, "pending": False}}
    rig = Rig(scenario(), FakeTelemetry(facts=facts))
    wanted = [Candidate(kind(name), ("best",)) for name in RATES if not name.startswith(("l2", "launch"))]
    wanted.append(Candidate(kind("tensor.fp8.mma"), (), "emulated"))
    outcomes = rig.campaign(wanted)
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
