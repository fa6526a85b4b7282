"""Rules, commands and copies hold launches against the same measured roofs as the frames (`launches.toml`)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ncu_roofline.formats.ceilings import read_ceilings
from ncu_roofline.plugin.generate.rules import render_rules
from ncu_roofline.plugin.nvrules.runner import load_rules
from tests.cli.command import Command
from tests.factory import A100, V100, complete, kernel, report
from tests.model.test_launches import CASES, ceilings_of, launch_of, seen
from tests.nvrules.running import messages, outcomes


@pytest.mark.parametrize("which", ["dram x 1000", "per cycle, slower", "published", "published, of another clock", "sectors"])
def test_the_rules_judge_by_the_same_roof(which: str, tmp_path: Path) -> None:
    case, rules = CASES[which], tmp_path / "rules"
    result, file, metrics = seen(case, tmp_path), ceilings_of(case, tmp_path), dict(launch_of(case).metrics)
    rules.mkdir()
    for name, text in render_rules(ceilings=[read_ceilings(file)]).items():
        (rules / name).write_text(text)
    loaded = load_rules([rules])
    for others in (metrics, dict(A100), complete(clock=1.0e9), complete(seconds=1e-5)):
        assert {one.status for one in outcomes(tmp_path, others, loaded).values()} == {"done"}
    names = ("Verdict", "Clocks", "BoundDouble")
    said = {name: " ".join(one.text for one in messages(tmp_path, metrics, name, loaded)) for name in names}
    assert result.kernels["reason"][0][:22] in said["Verdict"]
    assert ("theory judges: the measured roof is " in said["Clocks"]) == ("unused" in set(result.roofs["origin"]))
    assert ("its own clock is not known" in said["Clocks"]) == (which == "published, of another clock")
    assert ("(published, conditions not comparable)" in said["BoundDouble"]) == (which == "published")


def test_every_command_tells_it(tmp_path: Path, run: Command) -> None:
    impossible = {"id": "dram.read", "value": 1.5552e15, "theory": {"at_measured_clock": 1555.2e9}}
    source, path = report(tmp_path / "r.ncu-rep", kernel(complete())), ceilings_of({"ceilings": [impossible]}, tmp_path)
    table, head = tmp_path / "t.csv", "platform,device,application,gflop/s,ai_dram,peak_gflops,bandwidth_dram_gbs"
    table.write_text(f"{head}\np,{A100['device__attribute_display_name']},x,100,0.5,9700,1555\n")
    for words in (("show", source), ("advise", source, "--all-findings"), ("portability", source), ("portability", table)):
        outcome = run(*words, "--ceilings", path)
        assert "theory judges: the measured roof is 1000x" in " ".join(f"{outcome.out} {outcome.err}".split()), words
    # Charts of annotated copies have the roof that judges.
    mixed = {"ceilings": [*CASES["halves"]["ceilings"], {"id": "fp64.fma", "value": 1e16, "clock": {"sm_mhz_mean": 1410}}]}
    source = report(tmp_path / "r.ncu-rep", launch_of(CASES["halves"]))
    assert run("annotate", source, "--ceilings", ceilings_of(mixed, tmp_path), "-o", tmp_path / "out.ncu-rep").code == 0
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
