"""Which measured roof a launch is held against: by the model, by the rules, and what is told where theory judges instead."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ncu_roofline import roofline
from ncu_roofline.formats.ceilings import read_ceilings
from ncu_roofline.plugin.generate.rules import render_rules
from ncu_roofline.plugin.nvrules.runner import load_rules
from tests.cli.command import Command
from tests.cli.test_ceilings import ceiling, document, write
from tests.factory import A100, V100, Metrics, complete, kernel, report
from tests.nvrules.running import messages, outcomes

# Of the A100 of the factory: 64 FMAs per SM and cycle, 5120 bits of memory at 1.215 GHz, 64 B per cycle of 80 slices.
FP64, DRAM, L2 = 2 * 32 * 108 * 1.41e9, 1555.2e9, 64 * 80 * 1.41e9
CLOCK, SM_CLOCK, WRITTEN = {"sm_mhz_mean": 1410}, "sm__cycles_elapsed.avg.per_second", "dram__bytes_write.sum"
FP64_BOUND = complete(seconds=1.2e-4, **{"dram__bytes.sum": 1e6, "lts__t_sectors_srcunit_tex.sum": 1e6})
DRAM_BOUND = complete(seconds=2e-4)
L2_BOUND = complete(seconds=1e-4, **{"dram__bytes.sum": 1e6, "smsp__sass_thread_inst_executed_op_dfma_pred_on.sum": 1e6})


def at(clock: float) -> Metrics:
    return {**FP64_BOUND, SM_CLOCK: clock}


def written(share: float | None, form: str = WRITTEN) -> Metrics:
    """The share of the bytes at DRAM that is written, in some form of the counters."""
    divisor = 32 if "sectors" in form else 2e-4 if "per_second" in form else 1
    shares = {} if share is None else {form: share, form.replace("write", "read"): 1 - share}
    return {**DRAM_BOUND, **{name: part * 2.5e8 / divisor for name, part in shares.items()}}


FOUR = {"read": 1.4e12, "triad": 1.3e12, "copy": 1.25e12, "write": 1.45e12}
MIX = [ceiling(f"dram.{name}", value) for name, value in FOUR.items()]
BELOW = ceiling("dram.read", 1.4e12, theory={"at_measured_clock": 1.555e12})
PUBLISHED = [ceiling("fp64.fma", share * FP64, source="A paper") for share in (0.95, 1.01, 0.7)]
PER_CYCLE = ceiling("fp64.fma", 1.02 * FP64, clock=CLOCK, per_sm_and_cycle=63.5)
OWN_THEORY = {"value": FP64, "at_measured_clock": FP64}
NO_BUS = {name: value for name, value in DRAM_BOUND.items() if "bus_width" not in name}
SLOW_MEMORY = {**complete(seconds=5e-5), "dram__cycles_elapsed.avg.per_second": 0.6e9}
TO_TRIAD, SHARE = "dram.read to dram.triad (by the share of writes, 17 %)", "(by the share of writes, {})"
# Metrics, what was measured, the limit; the value that judges (None: theory's), words of the roof's metrics, and of the rules.
CASES: dict[str, tuple[Metrics, list[Any], str, float | None, str]] = {
    "dram x 1000": (DRAM_BOUND, [ceiling("dram.read", 900 * DRAM)], "dram", None, ""),
    "dram x 1.1": (DRAM_BOUND, [ceiling("dram.read", 1.1 * DRAM)], "dram", None, ""),
    "fp64 x 1000": (FP64_BOUND, [ceiling("fp64.fma", 1000 * FP64, clock=CLOCK)], "fp64.fma", None, ""),
    "clock in GHz": (FP64_BOUND, [ceiling("fp64.fma", 0.95 * FP64, clock={"sm_mhz_mean": 1.41})], "fp64.fma", None, ""),
    "cycles x 1000": (FP64_BOUND, [{**PER_CYCLE, "per_sm_and_cycle": 64_000}], "fp64.fma", None, ""),
    "not by the cycle": (FP64_BOUND, [{**PER_CYCLE, "value": 1e3 * FP64, "theory": OWN_THEORY}], "fp64.fma", None, ""),
    "l2 x 1000": (L2_BOUND, [ceiling("l2.read", 1000 * L2)], "l2", None, ""),
    "disproved by the file": (NO_BUS, [{**BELOW, "value": 1.4e15}], "", None, ""),  # the report tells no width of the bus
    "not disproved": (NO_BUS, [BELOW], "dram", 1.4e12, ""),
    # In short launches memory clocks are measured too low, and theory with them: no proof.
    "memory clock": (SLOW_MEMORY, [ceiling("dram.read", 1.4e12)], "", 1.4e12, ""),
    # Under a power limit the value over the mean clock may be more than the silicon can do: the work of a cycle counts.
    "per cycle": (FP64_BOUND, [PER_CYCLE], "fp64.fma", 63.5 * 108 * 1.41e9, ""),
    "per cycle, slower": (at(1.1e9), [PER_CYCLE], "fp64.fma", 63.5 * 108 * 1.1e9, ""),
    # A roof of an unknown clock judges launches at the highest only.
    "published": (FP64_BOUND, PUBLISHED[:1], "fp64.fma", 0.95 * FP64, ""),
    "published, too high": (FP64_BOUND, PUBLISHED[1:2], "fp64.fma", None, ""),
    "published, of another clock": (at(1.2e9), PUBLISHED[2:], "fp64.fma", None, ""),
    # Memory follows reads and writes.
    "sectors": (
        written(1 / 6, "dram__sectors_write.sum"),
        MIX,
        "dram",
        1.35e12,
        TO_TRIAD,
    ),
    "rates": (written(1 / 6, f"{WRITTEN}.per_second"), MIX, "dram", 1.35e12, TO_TRIAD),
    "reads": (written(0.0), MIX, "dram", 1.4e12, "dram.read " + SHARE.format("0 %")),
    "halves": (written(0.5), MIX, "dram", 1.25e12, "dram.copy " + SHARE.format("50 %")),
    "most writes": (written(0.75), MIX, "dram", 1.35e12, "dram.copy to dram.write " + SHARE.format("75 %")),
    "writes": (written(1.0), MIX, "dram", 1.45e12, "dram.write " + SHARE.format("100 %")),
    "unknown": (written(None), MIX, "dram", 1.45e12, "dram.write (the highest, as the share of writes is not known)"),
    "below the lowest": (written(0.1), MIX[1:3], "dram", 1.3e12, ""),
    "above the highest": (written(0.9), MIX[1:3], "dram", 1.25e12, ""),
}
RULES = ("dram x 1000", "per cycle, slower", "published", "published, of another clock", "sectors")


@pytest.mark.parametrize("which", CASES)
def test_case(which: str, tmp_path: Path) -> None:
    metrics, entries, limit, value, words = CASES[which]
    content = document(*entries, **({"status": "published"} if "published" in which else {}))
    content["device"]["sm_count"] = 108
    source, file = report(tmp_path / "r.ncu-rep", kernel(metrics)), write(tmp_path, content)
    plain, found = roofline(source).kernels.iloc[0], roofline(source, file)
    row, (roof,) = found.kernels.iloc[0], found.roofs[found.roofs["origin"] != "theoretical"].to_dict("records")
    if value is None:
        assert (row["limit"], roof["origin"]) == (plain["limit"], "unused")
        assert roof["notes"].startswith("theory judges: the measured roof is ")
        assert row["limit_fraction"] == pytest.approx(plain["limit_fraction"], nan_ok=True)
    else:
        assert (roof["origin"], roof["value"]) == ("measured", pytest.approx(value, rel=1e-6))
        assert roof["metrics"].startswith(words)
        done = 1e9 / 1.2e-4 if limit == "fp64.fma" else 2.5e8 / 2e-4
        assert row["limit_fraction"] == pytest.approx(done / value, rel=1e-6) or not limit
    assert row["limit"] == limit or not limit
    if which in RULES:
        said = said_by_rules(tmp_path, metrics, file)
        assert row["reason"][:22] in said["Verdict"]
        assert ("theory judges: the measured roof is " in said["Clocks"]) == (value is None)
        assert ("its own clock is not known" in said["Clocks"]) == (which == "published, of another clock")
        assert ("(published, conditions not comparable)" in said["BoundDouble"]) == (which == "published")


def said_by_rules(folder: Path, metrics: Metrics, ceilings: Path) -> dict[str, str]:
    rules = folder / "rules"
    rules.mkdir()
    for name, text in render_rules(ceilings=[read_ceilings(ceilings)]).items():
        (rules / name).write_text(text)
    loaded = load_rules([rules])
    for others in (metrics, dict(A100), complete(clock=1.0e9), complete(seconds=1e-5)):
        assert {one.status for one in outcomes(folder, others, loaded).values()} == {"done"}
    named = ("Verdict", "Clocks", "BoundDouble")
    return {name: " ".join(one.text for one in messages(folder, metrics, name, loaded)) for name in named}


def test_launches_that_write_differently_have_roofs_of_their_own(tmp_path: Path) -> None:
    launches = [kernel({**DRAM_BOUND, WRITTEN: share * 2.5e8}) for share in (0.1, 0.5)]
    result = roofline(report(tmp_path / "r.ncu-rep", *launches, kernel(DRAM_BOUND)), write(tmp_path, document(*MIX)))
    row = result.roofs[(result.roofs.roof == "dram") & (result.roofs.origin == "measured")].iloc[0]
    between = "dram.read to dram.copy (by the share of writes, 10 % to 50 %, dram.write where that is not"
    assert row["metrics"].startswith(between)
    assert (row["value_min"], row["value_max"]) == pytest.approx((1.25e12, 1.45e12))
    assert result.kernels["limit_fraction"].tolist() == pytest.approx([1.25e12 / 1.37e12, 1.0, 1.25e12 / 1.45e12])


def test_every_command_tells_it(tmp_path: Path, run: Command) -> None:
    impossible, told = (
        ceiling("dram.read", 1.5552e15, theory={"at_measured_clock": DRAM}),
        "theory judges: the measured roof is 1000x",
    )
    source, path = report(tmp_path / "r.ncu-rep", kernel(complete())), write(tmp_path, document(impossible))
    table = tmp_path / "t.csv"
    head = "platform,device,application,gflop/s,ai_dram,peak_gflops,bandwidth_dram_gbs"
    table.write_text(f"{head}\np,{A100['device__attribute_display_name']},x,100,0.5,9700,1555\n")
    for words in (
        ("show", source),
        ("advise", source, "--all-findings"),
        ("portability", source, "--json"),
        ("portability", table),
    ):
        outcome = run(*words, "--ceilings", path)
        assert told in " ".join(f"{outcome.out} {outcome.err}".split()), words
    assert json.loads(run("portability", source, "--ceilings", path, "--json").out)["platforms"][0]["bandwidth_roof"] == DRAM
    # Charts of annotated copies have the roof that judges.
    mixed = write(tmp_path, document(*MIX, ceiling("fp64.fma", 1000 * FP64, clock=CLOCK)))
    source = report(tmp_path / "r.ncu-rep", kernel(written(0.5)))
    assert run("annotate", source, "--ceilings", mixed, "-o", tmp_path / "out.ncu-rep").code == 0
    copy = (tmp_path / "out.ncu-rep").read_bytes()
    assert b"DRAM 1.25 TB/s, dram.copy (by the share of writes, 50 %) of ceilings.json" in copy
    assert b"fp64.fma of ceilings.json" not in copy


def test_published_roofs_of_a_v100_do_not_judge_at_the_base_clock(tmp_path: Path, run: Command) -> None:
    metrics = {**complete(V100, clock=1.29e9, seconds=2e-4), "device__attribute_display_name": "Tesla V100-SXM2-32GB"}
    source, peak = report(tmp_path / "r.ncu-rep", kernel(metrics)), pytest.approx(64 * 80 * 1.29e9)
    found = json.loads(run("show", source, "--ceilings", "auto", "--json").out)
    by_origin = {row["origin"]: row["value"] for row in found["roofs"] if row["roof"] == "fp64.fma"}
    assert by_origin == {"unused": 7.7e12, "theoretical": peak}
    assert [one["compute_roof"] for one in found["points"]] == [peak] * 3
    machine = json.loads(run("show", source, "--view", "time", "--ceilings", "auto", "--json").out)["machines"][0]
    assert (machine["peak"], machine["peak_origin"]) == (peak, "theoretical")
