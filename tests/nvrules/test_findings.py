"""Findings: grouped by kernel, rule and title, ranked by what they could save, with the numbers of all launches."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

from ncu_roofline import roofline
from ncu_roofline.formats.report import read_report
from ncu_roofline.model import measurements_of
from ncu_roofline.plugin.nvrules.findings import LONGEST, RANGES, VERDICT, Finding, findings
from ncu_roofline.plugin.nvrules.runner import KernelAdvice, advise, load_rules
from tests.cli.command import Command
from tests.factory import Metrics, complete, kernel, report
from tests.nvrules.running import our_rules
FEW_LANES: Metrics = {"smsp__thread_inst_executed_per_inst_executed.ratio": 8.0}

jsonschema = pytest.importorskip("jsonschema")

TEXT, NUMBER = {"type": "string"}, {"type": ["number", "null"]}
COUNT = {"type": "integer", "minimum": 0}


def record(**properties: Any) -> dict[str, Any]:
    """A JSON object with exactly these properties."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def listing(**properties: Any) -> dict[str, Any]:
    """An array of such objects."""
    return {"type": "array", "items": record(**properties)}


DOCUMENT = record(
    schema={"const": "ncu-roofline-advice"},
    schema_version={"const": 1},
    reports=listing(report=TEXT, ncu_version=TEXT),
    gpus=listing(device=TEXT, sentences={"type": "array", "items": TEXT}),
    findings=listing(
        id={"type": "string", "pattern": "^[0-9a-f]{12}$"},
        device=TEXT,
        kernel=TEXT,
        name=TEXT,
        rule=TEXT,
        type={"enum": ["error", "optimization", "warning", "ok"]},
        title=TEXT,
        text=TEXT,
        spoken={"enum": ["", "ranges", "longest launch"]},
        count={"type": "integer", "minimum": 1},
        launches={**listing(report=TEXT, launch=COUNT), "minItems": 1},
        seconds=NUMBER,
        share={"type": ["number", "null"], "minimum": 0, "maximum": 1.000001},
        recoverable=NUMBER,
        speedup=NUMBER,
    ),
    without_advice=listing(rule=TEXT, text=TEXT, launches=COUNT),
    notes={"type": "array", "items": TEXT},
    left_out=record(minor=COUNT, findings=COUNT, notes=COUNT, texts=COUNT),
)
PROMISES = """
import NvRules
def get_identifier(): return "Promises"
def apply(handle):
    context = NvRules.get_context(handle)
    action = context.range_by_idx(0).action_by_idx(0)
    seconds = action.metric_by_name("gpu__time_duration.sum").as_double() / 1e9
    fe = context.frontend()
    message = fe.message(NvRules.IFrontend.MsgType_MSG_OPTIMIZATION, "Took %.3g s." % seconds, "Promise of 90 %")
    fe.speedup(message, NvRules.IFrontend.SpeedupType_GLOBAL, 90.0)
"""


def promising(folder: Path) -> Path:
    """A folder with a rule that promises 90 % of every kernel."""
    folder.mkdir()
    (folder / "Promises.py").write_text(PROMISES)
    return folder


def found(*paths: Path, rules: Path | None = None, share: float = 0.0) -> tuple[Finding, ...]:
    """What rules, ours unless others are given, find in reports."""
    advice: list[KernelAdvice] = []
    for path in paths:
        with read_report(path) as opened:
            advice += advise(opened, load_rules([rules]) if rules else our_rules())
    return findings(advice, measurements_of(list(paths)), share=share).found


def of_rule(all_of: tuple[Finding, ...], rule: str) -> list[Finding]:
    return [one for one in all_of if one.rule == rule]


def slow(seconds: float = 1e-3, share: float = 0.5) -> Metrics:
    """A kernel of so many seconds that uses a share of the bandwidth of DRAM."""
    return {**complete(seconds=seconds), "dram__bytes.sum": int(share * 1.555e12 * seconds)}


def test_launches_of_a_kernel_are_one_finding_with_the_range_of_their_numbers(tmp_path: Path) -> None:
    shares = (0.2, 0.4, 0.3)
    path = report(tmp_path / "r.ncu-rep", *[kernel(slow(share=share), "void often(int)") for share in shares])
    (verdict,) = of_rule(found(path), VERDICT)
    assert verdict.launches == ((str(path), 0), (str(path), 1), (str(path), 2))
    assert (verdict.spoken, verdict.title) == (RANGES, "latency")
    assert re.search("highest: DRAM at 20\N{EN DASH}40 % of its roof", verdict.text)
    assert "2.5\N{EN DASH}5.0x at its present traffic" in verdict.text
    row = roofline(path, by="kernel").kernels.iloc[0]
    assert verdict.recoverable == pytest.approx(row["recoverable"])
    assert verdict.speedup == pytest.approx(row["headroom"])


def test_where_launches_say_different_things_the_longest_speaks(tmp_path: Path, run: Command) -> None:
    few = {"sm__warps_active.avg.pct_of_peak_sustained_active": 20.0}
    path = report(
        tmp_path / "r.ncu-rep", kernel({**slow(1e-3), **few}, "void often(int)"), kernel(slow(3e-3, 0.3), "void often(int)")
    )
    (verdict,) = of_rule(found(path), VERDICT)
    assert verdict.spoken == LONGEST
    assert verdict.launches[0] == (str(path), 1)
    assert "DRAM at 30 % of its roof); what keeps it was not collected" in verdict.text
    assert "\n    In its longest launch (1): Latency-bound, " in run("advise", path, "--verbose").out
    assert "often (2 launches): 4 ms: latency-bound, " in " ".join(run("advise", path).out.split())


def test_of_a_kernel_the_verdict_comes_first_and_what_is_left_out_has_one_line(tmp_path: Path, run: Command) -> None:
    some = [
        kernel({**slow(5e-3, 0.7), **FEW_LANES}, "void some(int)"),
        kernel({**slow(5e-3, 0.3), **FEW_LANES}, "void some(int)"),
    ]
    path = report(tmp_path / "r.ncu-rep", *some, kernel({**slow(5e-5), **FEW_LANES}, "void tiny(int)"))
    heads = [line for line in run("advise", path, "--verbose").out.splitlines() if line.startswith("  try: ")]
    assert [VERDICT in head for head in heads] == [True, True, *[False] * (len(heads) - 2)]
    assert len(heads) > 2
    said = run("advise", path, "--top", "1").out
    assert re.search(r"\n\d+ findings left out, and \d+ worth less than 1 % of the run time each: ", said)
    assert said.count("left out") == 1


def test_the_gain_of_a_kernel_is_counted_once(tmp_path: Path) -> None:
    """Each of two verdicts on launches of a kernel promises what these could gain; hints have no number of their own."""
    full, idle = kernel(slow(1e-3, 0.95), "void both(int)"), kernel({**slow(1e-3, 0.1), **FEW_LANES}, "void both(int)")
    path = report(tmp_path / "r.ncu-rep", full, idle)
    all_of = found(path)
    verdicts = {one.launches: one for one in of_rule(all_of, VERDICT)}
    for launch in roofline(path).kernels.to_dict("records"):
        one = verdicts[(launch["report"], launch["launch"]),]
        assert (one.seconds, one.recoverable) == (pytest.approx(launch["seconds"]), pytest.approx(launch["recoverable"]))
        assert one.speedup == pytest.approx(one.seconds / (one.seconds - one.recoverable)) == pytest.approx(launch["speedup"])
    hints = [one for one in all_of if one.rule != VERDICT and one.type == "optimization"]
    assert {one.title for one in hints} >= {"Lanes without work"}
    for one in hints:
        assert math.isnan(one.recoverable)
        assert math.isnan(one.speedup)


def test_what_could_save_most_comes_first(run: Command, tmp_path: Path) -> None:
    names = {"void half(int)": slow(4e-3, 0.5), "void full(int)": slow(6e-3, 0.97), "void tenth(int)": slow(5e-3, 0.1)}
    path = report(tmp_path / "r.ncu-rep", *[kernel(metrics, name) for name, metrics in names.items()])
    order = [one.kernel.name for one in of_rule(found(path), VERDICT)]
    assert order == ["tenth", "half", "full"]
    lines = run("advise", path).out.splitlines()
    assert [line.split()[0] for line in lines if "of the time" in line and not line.startswith(" ")] == order
    top = json.loads(run("advise", path, "--json", "--top", "2").out)
    assert [(one["kernel"], one["rule"]) for one in top["findings"]] == [("tenth", VERDICT), ("half", VERDICT)]
    assert top["left_out"]["findings"] > 0
    assert re.search("[0-9]+ findings left out", run("advise", path, "--top", "2").out)


@pytest.mark.parametrize("share", [0.97, 1.0])
def test_a_kernel_of_11_us_never_comes_first_whatever_is_promised(run: Command, tmp_path: Path, share: float) -> None:
    """Not in a run of 10 s, not if the rest has nothing to gain, and not if all findings are asked for."""
    long, little = kernel(slow(10.0, share), "void long(int)"), kernel(slow(11e-6, 0.01), "void little(int)")
    path = report(tmp_path / "r.ncu-rep", little, long)
    rules = promising(tmp_path / "rules")
    for more in ((), ("--rules", rules)):
        for words in (("--all-findings",), ("--all-findings", "--top", "1"), ()):
            first = json.loads(run("advise", path, "--json", *words, *more).out)["findings"][0]
            assert first["kernel"] == "long", (more, words)
            heads = [line for line in run("advise", path, *words, *more).out.splitlines() if " (launch " in line]
            assert heads[0].startswith("long (launch 1)")


def test_promises_of_rules_are_of_the_time_that_they_concern(run: Command, tmp_path: Path) -> None:
    path = report(
        tmp_path / "r.ncu-rep", *[kernel(slow(seconds), "void some(int)") for seconds in (1e-3, 2e-3)], kernel(slow(7e-3))
    )
    rules = promising(tmp_path / "rules")
    one = next(one for one in found(path, rules=rules) if one.kernel.name == "some")
    assert one.recoverable == pytest.approx(0.9 * 3e-3)
    assert one.speedup == pytest.approx(10)
    assert one.share == pytest.approx(0.3)
    assert (one.title, one.text) == ("Promise of 90 %", "Took 0.001\N{EN DASH}0.002 s.")
    assert "[Promises; about 90 % less time, 2.7 ms]" in run("advise", path, "--rules", rules, "--verbose").out
    brief = run("advise", path, "--rules", rules).out
    assert "\n  Promise of 90 %: about 90 % less time: Took 0.001\N{EN DASH}0.002 s.\n" in brief


def test_unknown_headroom_counts_as_all_of_the_time_and_is_said(run: Command, tmp_path: Path) -> None:
    """Tensor cores worked and nobody counted what: nobody knows that it can't be saved."""
    busy = {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active": 60.0}
    path = report(
        tmp_path / "r.ncu-rep",
        kernel(slow(2e-3, 0.4), "void known(int)"),
        kernel({**slow(3e-3, 0.9), **busy}, "void tensor(int)"),
    )
    first, second = of_rule(found(path), VERDICT)
    assert (first.kernel.name, first.title) == ("tensor", "tensor work unknown")
    assert math.isnan(first.recoverable)
    assert math.isnan(first.speedup)
    assert second.kernel.name == "known"
    said = run("advise", path, "--verbose").out
    assert "tensor (launch 1): 60 % of the time, 3 ms; limit unknown: the tensor pipe was active" in said


def test_a_hint_on_few_launches_stands_behind_what_all_could_gain(tmp_path: Path) -> None:
    """Also where a second verdict, on little of its time, takes its part of the kernel's gain."""
    plain = [kernel(slow(5e-3, 0.3), "void some(int)"), kernel(slow(1e-3, 0.97), "void some(int)")]
    path = report(tmp_path / "r.ncu-rep", *plain, kernel({**slow(1e-3, 0.3), **FEW_LANES}, "void some(int)"))
    titles = [one.title for one in found(path)]
    assert titles.index("latency") < titles.index("Lanes without work")


def test_what_has_no_time_comes_last(tmp_path: Path) -> None:
    timeless = {name: value for name, value in complete().items() if "time_duration" not in name and "elapsed" not in name}
    path = report(tmp_path / "r.ncu-rep", kernel(timeless, "void timeless(int)"), kernel(slow(), "void timed(int)"))
    kernels = [one.kernel.name for one in found(path)]
    assert set(kernels) == {"timed", "timeless"}
    assert kernels == sorted(kernels)


def test_ids_are_of_kernel_rule_and_title_alone(tmp_path: Path) -> None:
    """Other numbers, another order, another report, other neighbours: the same finding."""
    mine, other = kernel(slow(1e-3, 0.7), "void mine(int)"), kernel(slow(2e-3, 0.8), "void other(int)")
    again = kernel(slow(5e-3, 0.8), "void mine(int)")
    first = found(report(tmp_path / "first.ncu-rep", mine, other))
    second = found(report(tmp_path / "second.ncu-rep", other, again, again))
    ids = [
        {(one.kernel.name, one.rule, re.sub("[0-9.]+ %", "", one.title)): one.id for one in all_of}
        for all_of in (first, second)
    ]
    assert ids[0] == ids[1]
    for all_of in (first, second):
        assert len({one.id for one in all_of}) == len(all_of)
    assert {one.title for one in first} & {"FP64 at 70 % of its DRAM roof", "FP64 at 80 % of its DRAM roof"}
    renamed = found(report(tmp_path / "third.ncu-rep", kernel(slow(1e-3, 0.7), "void renamed(int)")))
    assert not {one.id for one in renamed} & set(ids[0].values())


def test_documents_follow_their_schema(run: Command, tmp_path: Path) -> None:
    path = report(
        tmp_path / "r.ncu-rep", *[kernel(slow(1e-3, share), "void some(int)") for share in (0.2, 0.7)], kernel(slow())
    )
    for words in ((), ("--all-findings",), ("--top", "1"), ("--rules", promising(tmp_path / "rules"))):
        document = json.loads(run("advise", path, "--json", *words).out)
        jsonschema.validate(document, DOCUMENT)
        assert document["findings"]


def test_the_words_of_the_schema_are_documented(run: Command) -> None:
    """In the help of the command, each with every value that has a meaning of its own."""
    said = run("advise", "--help").out
    for name in DOCUMENT["properties"]["findings"]["items"]["properties"]:
        assert re.search(rf"\b{name}\b", said), name
    for kind in ("optimization", "warning", "ok", "error"):
        assert kind in said


def test_a_kernel_with_nothing_to_save_still_has_its_verdict(tmp_path: Path, run: Command) -> None:
    """Full of replays: 1.00x as it is, many times that without them."""
    pipe = {
        f"l1tex__{name}.avg.pct_of_peak_sustained_elapsed": share
        for name, share in (
            ("data_pipe_lsu_wavefronts", 99.6), ("lsu_writeback_active", 10.0),
            ("data_bank_writes", 0.1), ("lsuin_requests", 6.9),
        )
    }  # fmt: skip
    path = report(tmp_path / "r.ncu-rep", kernel({**slow(1e-2, 0.1), **pipe}, "void replaying(int)"))
    said = " ".join(run("advise", path).out.split())
    assert "replaying (launch 0): 10 ms: L1/TEX-bound at 100 % of peak; 86 % or more of what its data pipe does" in said
    assert "Nothing to say." not in said
