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
from tests.factory import A100, H100, V100, Metrics, complete, kernel, report
from tests.nvrules.running import messages, outcomes

# Of the A100 of the factory: 64 FMAs per SM and cycle, 5120 bits of memory at 1.215 GHz.
FP64, DRAM = 2 * 32 * 108 * 1.41e9, 1555.2e9
CLOCK = {"sm_mhz_mean": 1410}
H100_NAME, V100_NAME = (one["device__attribute_display_name"] for one in (H100, V100))
FP64_BOUND = complete(seconds=1.2e-4, **{"dram__bytes.sum": 1e6, "lts__t_sectors_srcunit_tex.sum": 1e6})
DRAM_BOUND = complete(seconds=2e-4)
L2_BOUND = complete(seconds=1e-4, **{"dram__bytes.sum": 1e6, "smsp__sass_thread_inst_executed_op_dfma_pred_on.sum": 1e6})
L2 = 64 * 80 * 1.41e9


def judged(folder: Path, metrics: Metrics, content: dict[str, Any] | None) -> tuple[Any, Any]:
    """The row of kernels and the frame of roofs."""
    source = report(folder / "r.ncu-rep", kernel(metrics))
    result = roofline(source, write(folder, content)) if content else roofline(source)
    return result.kernels.iloc[0], result.roofs[result.roofs.origin != "theoretical"].set_index("roof")


def said_by_rules(folder: Path, metrics: Metrics, content: dict[str, Any], rule: str) -> str:
    rules = folder / "rules"
    rules.mkdir(exist_ok=True)
    for name, text in render_rules(ceilings=[read_ceilings(write(folder, content))]).items():
        (rules / name).write_text(text)
    return " ".join(one.text for one in messages(folder, metrics, rule, load_rules([rules])))


IMPOSSIBLE = {
    "dram x 1000": (DRAM_BOUND, "dram", ceiling("dram.read", 1000 * 0.9 * DRAM)),
    "dram x 1.1": (DRAM_BOUND, "dram", ceiling("dram.read", 1.1 * DRAM)),
    "fp64 x 1000": (FP64_BOUND, "fp64.fma", ceiling("fp64.fma", 1000 * FP64, clock=CLOCK)),
    "clock in GHz": (FP64_BOUND, "fp64.fma", ceiling("fp64.fma", 0.95 * FP64, clock={"sm_mhz_mean": 1.41})),
    "cycles x 1000": (FP64_BOUND, "fp64.fma", ceiling("fp64.fma", 0.95 * FP64, clock=CLOCK, per_sm_and_cycle=64000)),
    "fp64 x 1000, not by the cycle": (
        FP64_BOUND,
        "fp64.fma",
        ceiling("fp64.fma", 1000 * FP64, clock=CLOCK, per_sm_and_cycle=61, theory={"value": FP64, "at_measured_clock": FP64}),
    ),
    "l2 x 1000": (L2_BOUND, "l2", ceiling("l2.read", 1000 * L2)),
}


@pytest.mark.parametrize("case", ["dram x 1000", "clock in GHz", "the others"])
def test_what_is_far_above_theory_does_not_judge_and_is_told(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for metrics, roof, entry in [IMPOSSIBLE[case]] if case in IMPOSSIBLE else IMPOSSIBLE.values():
        content = document(entry)
        content["device"]["sm_count"] = 108
        plain, _ = judged(tmp_path, metrics, None)
        kernels, roofs = judged(tmp_path, metrics, content)
        assert kernels["limit"] == plain["limit"] == roof
        assert kernels["limit_fraction"] == plain["limit_fraction"]
        assert roofs.loc[roof, "origin"] == "unused"
        assert roofs.loc[roof, "notes"].startswith("theory judges: the measured roof is ")
    if case not in IMPOSSIBLE:
        return
    assert plain["reason"][:15] in said_by_rules(tmp_path, metrics, content, "Verdict")
    assert "theory judges: the measured roof is " in said_by_rules(tmp_path, metrics, content, "Clocks")
    run, words = Command(capsys), (tmp_path / "r.ncu-rep", "--ceilings", tmp_path / "ceilings.json")
    assert "theory judges: the measured roof is " in " ".join(run("show", *words).out.split())
    assert "theory judges: the measured roof is " in " ".join(run("advise", *words, "--all-findings").out.split())
    assert run("render", *words, "-o", tmp_path / "r.html").code == 0
    assert "theory judges: the measured roof is " in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_what_the_file_itself_disproves_does_not_judge_without_other_theory(tmp_path: Path) -> None:
    """The report tells no width of the bus, and so no theory of DRAM."""
    metrics = {name: value for name, value in DRAM_BOUND.items() if "bus_width" not in name}
    entry = ceiling("dram.read", 1.4e15, theory={"at_measured_clock": 1.555e12})
    _, roofs = judged(tmp_path, metrics, document(entry))
    assert roofs.loc["dram", "origin"] == "unused"
    entry = ceiling("dram.read", 1.4e12, theory={"at_measured_clock": 1.555e12})
    kernels, roofs = judged(tmp_path, metrics, document(entry))
    assert roofs.loc["dram", "origin"] == "measured"
    assert kernels["limit_fraction"] == pytest.approx(2.5e8 / 2e-4 / 1.4e12)


@pytest.mark.parametrize("clock", [0.9e9, 0.6e9])
def test_memory_clocks_of_launches_do_not_disprove_a_measurement(tmp_path: Path, clock: float) -> None:
    """In short launches they are measured too low, and theory with them."""
    metrics = {**complete(seconds=5e-5), "dram__cycles_elapsed.avg.per_second": clock}
    content = document(ceiling("dram.read", 1.4e12))
    _, roofs = judged(tmp_path, metrics, content)
    assert roofs.loc["dram", "origin"] == "measured"
    assert "theory judges" not in said_by_rules(tmp_path, metrics, content, "Clocks")


def test_roofs_are_scaled_by_the_work_of_a_cycle(tmp_path: Path) -> None:
    """Under a power limit the value over the mean clock may be more than the silicon can do."""
    entry = ceiling("fp64.fma", 1.02 * FP64, clock=CLOCK, per_sm_and_cycle=63.5)
    content = document(entry)
    content["device"]["sm_count"] = 108
    for clock in (1.41e9, 1.1e9):
        metrics = {**FP64_BOUND, "sm__cycles_elapsed.avg.per_second": clock}
        kernels, roofs = judged(tmp_path, metrics, content)
        assert roofs.loc["fp64.fma", "value"] == pytest.approx(63.5 * 108 * clock)
        assert kernels["limit_fraction"] == pytest.approx(1e9 / 1.2e-4 / (63.5 * 108 * clock))
        share = f"FP64 FMA-bound at {100 * kernels['limit_fraction']:.0f} %"
        assert share in said_by_rules(tmp_path, metrics, content, "Verdict")


@pytest.mark.parametrize(
    ("value", "clock", "origin"),
    [(0.95 * FP64, 1.41e9, "measured"), (1.01 * FP64, 1.41e9, "unused"), (0.7 * FP64, 1.2e9, "unused")],
)
def test_a_roof_of_an_unknown_clock_judges_launches_at_the_highest_only(
    tmp_path: Path, value: float, clock: float, origin: str
) -> None:
    metrics = {**FP64_BOUND, "sm__cycles_elapsed.avg.per_second": clock}
    content = document(ceiling("fp64.fma", value, source="A paper"), status="published")
    plain, _ = judged(tmp_path, metrics, None)
    kernels, roofs = judged(tmp_path, metrics, content)
    assert (roofs.loc["fp64.fma", "origin"], roofs.loc["fp64.fma", "value"]) == (origin, value)
    expected = plain["limit_fraction"] if origin == "unused" else 1e9 / 1.2e-4 / value
    assert kernels["limit_fraction"] == pytest.approx(expected)
    said = said_by_rules(tmp_path, metrics, content, "Clocks")
    assert ("its own clock is not known" in said) == (origin == "unused")
    bound = said_by_rules(tmp_path, metrics, content, "BoundDouble")
    assert ("(published, conditions not comparable)" in bound) == (origin == "measured")


def test_published_roofs_of_a_v100_do_not_judge_at_the_base_clock(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "Tesla V100-SXM2-32GB"
    metrics = {**complete(V100, clock=1.29e9, seconds=2e-4), "device__attribute_display_name": name}
    source = report(tmp_path / "r.ncu-rep", kernel(metrics))
    found = json.loads(Command(capsys)("show", source, "--ceilings", "auto", "--json").out)
    by_origin = {row["origin"]: row["value"] for row in found["roofs"] if row["roof"] == "fp64.fma"}
    assert by_origin == {"unused": 7.7e12, "theoretical": pytest.approx(64 * 80 * 1.29e9)}
    point = next(one for one in found["points"] if one["level"] == "l1")
    assert point["compute_roof"] == pytest.approx(64 * 80 * 1.29e9)
    shown = Command(capsys)("show", source, "--view", "time", "--ceilings", "auto", "--json")
    machine = json.loads(shown.out)["machines"][0]
    assert (machine["peak"], machine["peak_origin"]) == (pytest.approx(64 * 80 * 1.29e9), "theoretical")


def test_portability_tells_which_roofs_it_does_not_believe(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "t.csv"
    table.write_text(
        "platform,device,application,gflop/s,ai_dram,peak_gflops,bandwidth_dram_gbs\n"
        f"p,{A100['device__attribute_display_name']},x,100,0.5,9700,1555\n"
    )
    path = write(tmp_path, document(ceiling("dram.read", 1.5552e15, theory={"at_measured_clock": DRAM})))
    outcome = Command(capsys)("portability", table, "--ceilings", path, "--json")
    (row,) = json.loads(outcome.out)["platforms"]
    assert (row["bandwidth_roof"], row["bound"]) == (1.555e12, "dram")
    assert "p: dram.read: theory judges: the measured roof is 1000x as high at the same clock" in outcome.err
    source = report(tmp_path / "r.ncu-rep", kernel(complete()))
    outcome = Command(capsys)("portability", source, "--ceilings", path, "--json")
    assert json.loads(outcome.out)["platforms"][0]["bandwidth_roof"] == pytest.approx(DRAM)
    assert "DRAM: theory judges: the measured roof is 1000x as high at the same clock" in outcome.err


MIX = document(
    *(
        ceiling(f"dram.{name}", value)
        for name, value in {"read": 1.4e12, "triad": 1.3e12, "copy": 1.25e12, "write": 1.45e12}.items()
    )
)

TO_TRIAD, BYTES = "dram.read to dram.triad (by the share of writes, 17 %)", "dram__bytes_write.sum"


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("written", "roof", "between", "form"),
    [
        (1 / 6, 1.35e12, TO_TRIAD, "dram__sectors_write.sum"),
        (1 / 6, 1.35e12, TO_TRIAD, "dram__bytes_write.sum.per_second"),
        (0.0, 1.4e12, "dram.read (by the share of writes, 0 %)", BYTES),
        (1 / 6, 1.35e12, TO_TRIAD, BYTES),
        (0.5, 1.25e12, "dram.copy (by the share of writes, 50 %)", BYTES),
        (0.75, 1.35e12, "dram.copy to dram.write (by the share of writes, 75 %)", BYTES),
        (1.0, 1.45e12, "dram.write (by the share of writes, 100 %)", BYTES),
        (None, 1.45e12, "dram.write (the highest, as the share of writes is not known)", BYTES),
    ],
)
def test_the_roof_of_memory_follows_reads_and_writes(
    written: float | None, roof: float, between: str, form: str, tmp_path: Path
) -> None:
    divisor = 32 if "sectors" in form else 2e-4 if "per_second" in form else 1
    metrics = {**DRAM_BOUND, **({} if written is None else {form: written * 2.5e8 / divisor})}
    other = form.replace("write", "read")
    metrics |= {} if written is None else {other: (1 - written) * 2.5e8 / divisor}
    kernels, roofs = judged(tmp_path, metrics, MIX)
    assert kernels["limit"] == "dram"
    assert kernels["limit_fraction"] == pytest.approx(2.5e8 / 2e-4 / roof, rel=1e-6)
    assert roofs.loc["dram", "value"] == pytest.approx(roof, rel=1e-6)
    assert roofs.loc["dram", "metrics"].startswith(f"{between} of ceilings.json")
    share = f"DRAM-bound at {100 * kernels['limit_fraction']:.0f} % of its roof"
    assert share in said_by_rules(tmp_path, metrics, MIX, "Verdict")


def test_launches_that_write_differently_have_roofs_of_their_own(tmp_path: Path) -> None:
    launches = [kernel({**DRAM_BOUND, "dram__bytes_write.sum": share * 2.5e8}) for share in (0.1, 0.5)]
    result = roofline(report(tmp_path / "r.ncu-rep", *launches, kernel(DRAM_BOUND)), write(tmp_path, MIX))
    row = result.roofs[(result.roofs.roof == "dram") & (result.roofs.origin == "measured")].iloc[0]
    assert row["metrics"].startswith(
        "dram.read to dram.copy (by the share of writes, 10 % to 50 %, dram.write where that is not"
    )
    assert (row["value_min"], row["value_max"]) == pytest.approx((1.25e12, 1.45e12))
    assert result.kernels["limit_fraction"].tolist() == pytest.approx([1.25e12 / 1.37e12, 1.0, 1.25e12 / 1.45e12])


def test_ends_that_were_not_measured_are_the_nearest_ones(tmp_path: Path) -> None:
    content = document(ceiling("dram.triad", 1.3e12), ceiling("dram.copy", 1.25e12))
    for written, roof in ((0.1, 1.3e12), (0.9, 1.25e12)):
        kernels, _ = judged(tmp_path, {**DRAM_BOUND, "dram__bytes_write.sum": written * 2.5e8}, content)
        assert kernels["limit_fraction"] == pytest.approx(1.25e12 / roof)


def test_charts_of_annotated_copies_have_the_same_roof(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = report(tmp_path / "r.ncu-rep", kernel({**DRAM_BOUND, "dram__bytes_write.sum": 0.5 * 2.5e8}))
    impossible = ceiling("fp64.fma", 1000 * FP64, clock=CLOCK)
    path = write(tmp_path, {**MIX, "ceilings": [*MIX["ceilings"], impossible]})
    assert Command(capsys)("annotate", source, "--ceilings", path, "-o", tmp_path / "out.ncu-rep").code == 0
    written = (tmp_path / "out.ncu-rep").read_bytes()
    assert b"DRAM 1.25 TB/s, dram.copy (by the share of writes, 50 %) of ceilings.json" in written
    assert b"fp64.fma of ceilings.json" not in written


def test_no_rule_fails_for_measured_roofs(tmp_path: Path) -> None:
    rules = tmp_path / "rules"
    rules.mkdir()
    for name, text in render_rules(ceilings=[read_ceilings(write(tmp_path, MIX))]).items():
        (rules / name).write_text(text)
    for metrics in (DRAM_BOUND, dict(A100), complete(clock=1.0e9), complete(seconds=1e-5)):
        assert {one.status for one in outcomes(tmp_path, metrics, load_rules([rules])).values()} == {"done"}
