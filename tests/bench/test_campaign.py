"""What is measured when, from the trials of sessions to a ceiling: cases as data, statistics, whole machines; theory."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from ncu_roofline.base.errors import UsageError
from ncu_roofline.bench import measuring
from ncu_roofline.bench.campaign import candidates
from ncu_roofline.bench.catalogue import about, data_sheet, is_quick, kinds_of, select, table, theory
from ncu_roofline.bench.document import Origin, as_text, ceiling, document
from ncu_roofline.bench.measuring import FULL, QUICK, Measured
from ncu_roofline.bench.runner import Trial, Variant
from ncu_roofline.bench.telemetry import Telemetry
from ncu_roofline.chips import Gpu, load_spec
from ncu_roofline.chips.spec import find_gpu, gpus
from ncu_roofline.formats.ceilings import CPU, GPU, Ceiling, read_ceilings
from tests.bench import fakes
from tests.bench.fakes import EPYC, FAST, H100_LIST, H200, HERE, FakeTelemetry, Program, device, kind, read_toml
from tests.bench.scrubbing import MEASURED, rejudged
from tests.golden import assert_golden

TOLD = read_toml("theory.toml")
PUBLISHED = TOLD["published"]
COLUMNS = PUBLISHED.pop("columns").split()


def digits(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else "-" if value is None else str(value)


def told(entry: Mapping[str, Any]) -> Iterator[str]:
    accepted = "accepted" if entry["accepted"] else "not accepted"
    yield f"{entry['id']}: {entry['verdict']}, {accepted}, {digits(entry['value'])} {entry['unit']}"
    if entry["value"] is not None:
        assert entry["ci95"][0] <= entry["value"] <= entry["ci95"][1]
        spread = [f"{entry[name + per] or 0:.2g}" for name in ("cv", "between_session_cv") for per in ("", "_per_cycle")]
        shares = (entry["theory"]["fraction"], entry["theory"]["fraction_vendor_clock"], entry["per_sm_and_cycle"])
        counts = f"{entry['trials']} trials in {entry['sessions']} sessions, {entry['outliers']} outliers, {entry['discarded']}"
        yield f"  {counts} discarded, right {entry['verified']['checksum']}, cv {', '.join(spread)}, {entry['variant']}"
        held = ", ".join(entry["throttle"]["reasons"]) or "not held back"
        clocks = [digits(entry["clock"][name]) for name in ("sm_mhz_min", "sm_mhz_mean")]
        yield f"  {' to '.join(clocks)} MHz, theory {', '.join(map(digits, shares))}, {held}"
    for name in ("burst", "power_limit"):
        if entry.get(name):
            yield f"  {name}: {', '.join(f'{key} {digits(value)}' for key, value in entry[name].items())}"
    runs = Counter(f"{one['kernel']} {one['role']} {digits(one['value'])}" for one in entry["variants"])
    yield f"  runs: {', '.join(f'{count} x {name}' for name, count in runs.items())}"
    yield from (f"  - {reason}" for reason in entry["reasons"])


def test_cases(program: Program) -> None:
    text = ""
    for name, case in read_toml("campaigns.toml").items():
        of, changes = case.pop("of", ["fp64.fma"]), case.pop("settings", {})
        settings = QUICK if changes.pop("quick", False) else replace(FAST, **changes)
        on, telemetry = case.pop("device", GPU), FakeTelemetry(case.pop("reasons", 0))
        view = telemetry if case.pop("nvml", True) else Telemetry("not installed")
        budget, spend, progress, found = case.pop("budget", 1e9), case.pop("spend", 0.0), Mock(), list[str]()
        program.play(fakes.scenario(case), set_up=spend)
        wanted = [Measured(kind(one), tuple(case.get(one, {}).get("variants", ["best"]))) for one in of]
        made = program.campaign(view, settings, budget, on)
        made.progress, made.told = progress, lambda outcome, found=found: found.append(outcome.kind.id)
        outcomes = [*wanted, Measured(kind("fp64.div"), (), "unsupported")][: 9 if len(of) > 1 else 1]
        made.run(outcomes)
        assert progress.step.call_count == sum(call.args[0] for call in progress.start.call_args_list), name
        assert sorted(found) == sorted(of), name
        lines = [line for one in outcomes for line in told(ceiling(one, device(EPYC if on == CPU else H200), None))]
        jobs = [f"{one['ceiling']}/{one['variant']} {one['trials']}x{one['min-time-ms']}" for one in program.runs]
        rests = "".join(f", {pause} ms between" for pause in {one["pause-ms"] for one in program.runs} - {"0"})
        after = f"{program.now - 1:.3f} s, {program.contexts} contexts{rests}: {', '.join(jobs)}"
        text += "\n".join([f"# {name}", *lines, f"after {after}", "", ""])
    assert_golden(HERE / "campaigns.txt", text)


def test_numbers_derived_by_hand(program: Program) -> None:
    """33 TFLOP/s at 1980 MHz on 132 SMs, each with 64 FP64 units of two operations per cycle; a power cap on tensor cores."""
    program.content = fakes.scenario({"tensor.fp16.wgmma": {"clock": 1500, "rate": 743e12, "rested": 1900 / 1500}})
    entries = {}
    for name, bits in (("fp64.fma", 0), ("launch.stream", 0), ("tensor.fp16.wgmma", 4)):
        program.campaign(FakeTelemetry(bits), FAST).run([outcome := Measured(kind(name), ("best",))])
        entries[name] = ceiling(outcome, device(), None)
    close, entry, launch, tensor = (lambda value: pytest.approx(value, rel=1e-3)), *entries.values()
    assert (entry["value"], entry["work"]["operations"], entry["seconds_median"]) == (close(33e12), close(33e12 * 0.020), 0.020)
    of_theory = [entry["theory"][key] for key in ("at_measured_clock", "fraction")]
    assert of_theory == [pytest.approx(132 * 64 * 2 * 1.98e9), close(33e12 / (132 * 128 * 1.98e9))]
    assert (entry["per_sm_and_cycle"], entry["energy_per_unit_j"]) == (close(33e12 / 132 / 1.98e9), close(600 / 33e12))
    assert (entry["clock"]["mem_mhz"], entry["temp_c"]["gpu"]) == (3201, 55.0)
    assert (launch["value"], launch["unit"], launch["energy_per_unit_j"]) == (close(1 / 4e5), "s", close(600 / 4e5))
    assert tensor["theory"]["fraction"] == close(743e12 / (4096 * 132 * 1.5e9))
    assert (tensor["burst"]["value"], tensor["burst"]["sm_mhz"]) == (close(743e12 * 1900 / 1500), pytest.approx(1900))
    assert tensor["burst"]["per_sm_and_cycle"] == close(743e12 / 1.5e9 / 132)


def test_which_variants_apply() -> None:
    variants = [Variant(one, name, "FLOP/s", tuple(on), reason) for one, name, on, reason in TOLD["variants"]]
    kinds = [*kinds_of(variants), kind("dram.read")]
    found = [c.variants or c.absent for c in candidates(kinds, variants, "9.0", quick=True)]
    assert found == ["emulated", ("b",), "not measured: left out of a quick run", "unsupported", "unsupported"]
    assert [c.variants for c in candidates(kinds, variants, "8.0", quick=False)] == [(), ("b", "c"), ("d",), (), ()]


@pytest.mark.parametrize("told", [H200, EPYC], ids=["GPU", "CPU"])
def test_the_file_is_read_back_by_the_reader(machine: Program, told: dict[str, Any], tmp_path: Path) -> None:
    own = device(told)
    names = ("dram.read", "fp64.fma", *(() if own.is_cpu else ("tensor.fp16.mma", "tensor.fp16.wgmma", "launch.stream")))
    wanted = [Measured(kind(name), ("best",)) for name in names] + [Measured(kind("fp64.div"), (), "emulated")]
    machine.campaign(FakeTelemetry(), replace(FAST, trials=3), kind=own.kind).run(wanted)
    identity = {"driver": "580.65", "other_processes": 2, "ecc": {"current": True, "pending": False}}
    origin = Origin({"compiler": "nvcc 13.0.88"}, {"clock_governor": "performance"} if own.is_cpu else identity, "")
    content = document(own, wanted, FAST, origin)
    (tmp_path / "c.json").write_text(as_text(content), encoding="utf-8")
    read = read_ceilings(tmp_path / "c.json")
    assert (read.kind, read.device, read.compute_capability) == (own.kind, told["name"], (0, 0) if own.is_cpu else (9, 0))
    assert read.by_id.keys() == set(names)
    assert (read.by_id["fp64.fma"].clock, read.by_id["fp64.fma"].variant) == (pytest.approx(1.98e9), "best")
    assert own.is_cpu or getattr(read.compute("tensor.fp16"), "id", "") == "tensor.fp16.wgmma"
    host = re.sub(r'"(cpu|kernel|version)": ".*"', r'"\1": "..."', as_text(content))
    host = re.sub(r"\d+\.\d+(e[+-]\d+)?", lambda number: f"{float(number[0]):.5g}", re.sub(r"\n {4,}", " ", host))
    assert_golden(HERE / f"{own.kind}.json", host)


def test_intervals_medians_outliers_variation_still_clocks_and_summaries() -> None:
    # Ranks of the 95 % interval of the median as printed in tables of the sign test.
    for count, rank in ((6, 1), (9, 2), (11, 2), (15, 4), (20, 6), (31, 10), (50, 18), (100, 40)):
        assert measuring.median_interval(list(range(1, count + 1))) == (rank, count + 1 - rank)
    assert [measuring.median_interval(list(range(few))) for few in (1, 2, 5)] == [(0, 0), (0, 1), (0, 4)]  # the range
    assert [str(measuring.median(values)) for values in ([3, 1, 2], [4, 1, 3, 2], [])] == ["2", "2.5", "nan"]
    values = [100.0, 100.1, 99.9, 100.2, 99.8, 100.0, 50.0, 100.1]
    assert (measuring.outliers(values).index(True), measuring.kept(values)) == (6, [one for one in values if one != 50.0])
    assert [measuring.outliers([5.0] * 20 + [last])[-1] for last in (5.0005, 5.1)] == [False, True]
    assert (measuring.variation([9.0, 10.0, 11.0]), measuring.variation([-1.0, 1.0])) == (pytest.approx(0.1), math.inf)
    clocks: list[list[float]] = [[1000, 1400, 1700, 1900, 1980, 1980, 1979, 1981, 1980, 1980], [1980] * 5, [1980] * 4]
    assert [measuring.stable_from(one) for one in (*clocks, [1980, 1400] * 10, [0.0] * 10, [])] == [4, 0, *[None] * 4]
    # The better session is the ceiling, however long another is, by a trial that it had; interval and spread hold the others.
    trials = ([10.0] * 31, [10.4, 10.0, 10.2, 10.1], [9.0] * 310)
    made = {unit: [measuring.Record(Ceiling("x", unit=unit), "", values=one) for one in trials] for unit in ("B/s", "s")}
    rate, latency = (measuring.summarise(made[unit]) for unit in ("B/s", "s"))
    keys = ("value", "ci95", "trials", "sessions", "min", "max", "cv")
    assert [rate[key] for key in keys] == [10.1, [9, 10.4], 345, 3, 9, 10.4, pytest.approx(0.0168, abs=1e-3)]
    assert (latency["value"], rate["between_session_cv"]) == (9.0, pytest.approx(0.0627, abs=1e-3))
    # The host must confirm the time, but for a launch; it may have seen less.
    seen = ((0.02, 0.02), (0.02, 0.0204), (0.02, 0.021), (0.004, 0.0045), (0.004, 0.0047), (0.02, 0.0195))
    agree = [measuring.timers_agree(Trial(gpu, 1.0, None, None, 5.0, 5.0 + host)) for gpu, host in seen]
    assert agree == [True, True, False, True, False, True]


RECORDED = {entry["id"]: entry for entry in rejudged(MEASURED)["ceilings"] if entry["value"]}
SOUND = {"value": 1e12, "unit": "", "cv": 1e-3, "cv_per_cycle": 1e-3, "burst": None, "throttle": {"reasons": []}}
SOUND["variants"] = [{"value": 1e12, "sm_mhz": [1980.0] * 15}]


def machine(case: Mapping[str, Any], variants: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    """The H100 that was recorded, trial by trial; other ceilings are sound; but for what the case says."""
    ceilings: dict[str, dict[str, Any]] = {}
    for name, names in variants.items():
        told = RECORDED.get(name, SOUND)
        run = next(run for run in told["variants"] if run["value"] == told["value"])
        clock, burst = measuring.median(run["sm_mhz"] or [0]), (told["burst"] or {}).get("sm_mhz")
        spread = 1.7 * (told["cv"] if told["cv_per_cycle"] is None else told["cv_per_cycle"])
        broken = [{"mode": mode} for mode in (case.get("broken", {}).get(name),) if mode]
        calls = [*(broken or [{"drift": run["sm_mhz"] * 3}]), *([{}] if case.get("once") else [])]
        one = {"rate": told["value"] ** (-1 if told["unit"] == "s" else 1), "clock": clock, "longer": 1.1, "calls": calls}
        one |= {"noise": 0.08 if name == case.get("noisy") else case.get("noise", spread)}
        one |= {"variants": {variant: 1 - 0.02 * place for place, variant in enumerate(names)}}
        one |= {"rested": burst / clock if burst else 1.0, "reasons": 4 * ("power cap" in told["throttle"]["reasons"])}
        ceilings[name] = one
    return {"ceilings": ceilings}


def test_whole_machines_within_their_budget(program: Program) -> None:
    """What does not fit are repeats, but where a quick run waits for a hang (simulations.txt)."""
    own, text = device(fakes.facts("H100")), ""
    for name, case in read_toml("simulations.toml").items():
        rows = H100_LIST | {f"fp64.more{one}": ("one", "other")[: 1 + one % 2] for one in range(case.get("more", 0))}
        variants = [Variant(one, variant, kind(one).unit, ("9.0",), "") for one, names in rows.items() for variant in names]
        settings = QUICK if case.get("quick") else replace(FULL, **{key: case[key] for key in {*case} & {"budget", "sessions"}})
        program.play(machine(case, rows), case.get("start", 3.0), 0.53)

        def bits_now(held: tuple[float, float, int] = tuple(case.get("reasons", (0, 0, 0)))) -> int:
            of: int = program.content["ceilings"][program.runs[-1]["ceiling"]]["reasons"]
            return of | (held[2] if held[0] < program.now < held[1] else 0)

        wanted = candidates(kinds_of(variants), variants, "9.0", settings.quick)
        program.campaign(FakeTelemetry(bits_now), settings, settings.budget).run(wanted)
        entries = document(own, wanted, settings, Origin({}, {}, ""))["ceilings"]
        entries = [entry for entry in entries if "quick run" not in "".join(entry["reasons"])]
        measured, took = [entry for entry in entries if entry["value"]], program.now - 1
        assert took <= settings.budget + 8.0  # the last job and its pause
        trials, discarded = (sum(one[count] for one in measured) for count in ("trials", "discarded"))
        if {*case} <= {"start", "quick", "more", "sessions"}:  # all sessions fit, and few good trials are thrown away
            assert ({one["sessions"] for one in measured}, discarded < 0.2 * trials) == ({settings.sessions}, True), name
        told = [f"{one['verdict']}, {'' if one['accepted'] else 'not '}accepted" for one in measured]
        beside = [(key, one) for key in ("burst", "power_limit") for one in measured if one[key]]
        told += [f"{key} of {one[key]['value'] / one['value']:.2f}" for key, one in beside]
        told += [f"held back by {reason}" for one in measured for reason in one["throttle"]["reasons"]]
        told += [f"{one['sessions']} sessions" for one in measured]
        told += [reason for one in entries for reason in one["reasons"] if "%" not in reason]
        gone = ", ".join(sorted(entry["id"] for entry in entries if not entry["value"]))
        text += f"# {name}\n{took:.1f} s, gone: {gone or 'none'}, {trials} trials count, {discarded} do not\n"
        text += "".join(f"{count} x {what}\n" for what, count in sorted(Counter(told).items()))
        for entry in measured:
            assert (math.isfinite(entry["cv"]), entry["variant"]["kernel"]) == (True, rows[entry["id"]][0])
            assert entry["ci95"][0] <= entry["value"] <= entry["ci95"][1], entry["id"]
            if "noisy" not in case:
                assert entry["value"] == pytest.approx(RECORDED.get(entry["id"], SOUND)["value"], rel=0.06), entry["id"]
    assert_golden(HERE / "simulations.txt", text)


@pytest.mark.parametrize("gpu", gpus(), ids=lambda gpu: gpu.id)
def test_peaks_are_the_published_ones_to_the_printed_digit(gpu: Gpu) -> None:
    peaks = {name: peak.value for name, peak in table(gpu).items()}
    for column, printed in zip(COLUMNS, PUBLISHED.get(gpu.id, "").split(), strict=gpu.id in PUBLISHED):
        value = max((peak for key, peak in peaks.items() if key == column or key.startswith(column + ".")), default=None)
        assert (value is None) == (printed == "-"), column
        if value is not None:
            last_digit = 10.0 ** -len(printed.partition(".")[2])
            assert value / 1e12 == pytest.approx(float(printed), abs=0.6 * last_digit), column
    assert peaks["dram.read"] == pytest.approx(TOLD["bus"].get(gpu.id, gpu.dram / 1e9) * 1e9, rel=3e-3)
    assert peaks["dram.read"] == pytest.approx(gpu.dram, rel=0.05)  # vendors round, B200's by 4 %
    assert gpu.source
    assert PUBLISHED.keys() <= {one.id for one in gpus()}


@pytest.mark.parametrize("of", ["", *TOLD["peaks_of"]])
def test_theory_of_devices(of: str) -> None:
    changes = dict(TOLD["peaks_of"].get(of, {}))
    peaks = {name: changes.pop(name) for name in list(changes) if "." in name} if of else TOLD["peaks"]
    own = device(fakes.facts(changes.pop("like", "H200"), **changes))
    for name, wanted in peaks.items():
        link = wanted.pop("link", None)
        found = theory(kind(name), own, link and tuple(link))
        assert (found is None) == (wanted == {}), name
        if found:
            assert found.per_cycle == pytest.approx(wanted.get("per_cycle", found.per_cycle)), name
            assert found.vendor_clock == pytest.approx(wanted.get("clock", found.vendor_clock / 1e6) * 1e6), name
            assert found.uncertain == wanted.get("uncertain", False), name
            assert (bool(found.slow), found.slow.startswith(wanted.get("slow", ""))) == ("slow" in wanted, True), name
            assert (found.at(None), found.at(1.5e9)) == (found.value, found.per_cycle * 1.5e9)


def test_what_names_of_gpus_and_ids_say_and_the_data_sheet_has() -> None:
    found = {name: [count, getattr(find_gpu(name, count or None), "id", "")] for name, (count, _) in TOLD["names"].items()}
    assert found == TOLD["names"]
    sheet, more = data_sheet(), [kind(name) for name in ("l3.read", "host.bidir", "launch.graph", "fp64.div")]
    assert {one.id: one.unit for one in sheet} == {one.id: kind(one.id).unit for one in sheet}
    told = [(one.id, one.unit, one.kind, about(one), one.domain, is_quick(one), one.level) for one in (*sheet, *more)]
    assert_golden(HERE / "ids.txt", "".join(f"{one}\n" for one in told))
    for architecture in (one for one in load_spec().architectures if one.bandwidth):
        own = device(H200, cc="{}.{}".format(*architecture.compute_capability), name="?")
        assert any(theory(one, own) for one in sheet if one.kind == "compute"), architecture.name
    kinds = kinds_of([Variant(one, variant, kind(one).unit, (), "") for one in TOLD["select"]["of"] for variant in "ab"])
    for only, skip, chosen in TOLD["select"]["cases"]:
        assert [one.id for one in select(kinds, only, skip)] == chosen
    for words, skip in ((["nothing"], []), ([], ["nothing"]), (["dram"], ["dram"])):
        with pytest.raises(UsageError):
            select(kinds, words, skip)
