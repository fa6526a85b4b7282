"""Findings of all launches together: their document, numbers and ids; what pages show.  What is printed: sessions."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest

from ncu_roofline import roofline
from ncu_roofline.formats.report import RuleMessage, read_report
from ncu_roofline.model import measurements_of
from ncu_roofline.plugin.nvrules import findings as of_launches
from ncu_roofline.plugin.nvrules.findings import VERDICT, Finding, ReportAdvice, Silence, Told
from ncu_roofline.plugin.nvrules.runner import KernelAdvice, RuleOutcome, advise
from tests.cli.command import Command
from tests.factory import complete, report
from tests.nvrules.made import FEW_LANES, FILES, launch, slow
from tests.nvrules.running import our_rules

DOCUMENT = json.loads(Path(__file__).with_name("advice.schema.json").read_text(encoding="utf-8"))


def made(folder: Path, name: str) -> Path:
    path = folder / f"{name}.ncu-rep"
    FILES[path.name](path)
    return path


def found(*paths: Path) -> tuple[Finding, ...]:
    """What our rules find in reports."""
    advice: list[KernelAdvice] = []
    for path in paths:
        with read_report(path) as opened:
            advice += advise(opened, our_rules())
    return of_launches.findings(advice, measurements_of(list(paths)), share=0.0).found


def test_documents_follow_their_schema_whose_words_are_documented(run: Command, tmp_path: Path) -> None:
    """In the help of the command, each with every value that has a meaning of its own."""
    jsonschema = pytest.importorskip("jsonschema")
    for name, words in (("ranges", ()), ("tensor", ("--all-findings",)), ("timeless", ()), ("differ", ("--top", "1"))):
        document = json.loads(run("advise", made(tmp_path, name), "--json", *words).out)
        jsonschema.validate(document, DOCUMENT)
        assert document["findings"]
    words = {*DOCUMENT["properties"]["findings"]["items"]["properties"], "optimization", "warning", "ok", "error"}
    assert words <= set(re.findall(r"\w+", run("advise", "--help").out))


@pytest.mark.parametrize("width", [60, 200])
def test_text_is_as_wide_as_the_terminal(run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    for words in ((), ("--verbose",)):
        widths = [len(line) for line in run("advise", made(tmp_path, "waits"), *words).out.splitlines()]
        assert width - 20 < max(widths) <= width


def test_the_gain_of_a_kernel_is_that_of_the_model_and_counted_once(tmp_path: Path) -> None:
    """Each of two verdicts on launches of a kernel promises what these could gain; hints have no number of their own."""
    ranges = made(tmp_path, "ranges")
    (verdict,) = (one for one in found(ranges) if one.rule == VERDICT)
    row = roofline(ranges, by="kernel").kernels.iloc[0]
    assert (verdict.recoverable, verdict.speedup) == pytest.approx((row["recoverable"], row["headroom"]))
    path = made(tmp_path, "both")
    all_of = found(path)
    verdicts = {one.launches: one for one in all_of if one.rule == VERDICT}
    for one in roofline(path).kernels.to_dict("records"):
        verdict = verdicts[(one["report"], one["launch"]),]
        assert (verdict.seconds, verdict.recoverable) == pytest.approx((one["seconds"], one["recoverable"]))
        assert verdict.speedup == pytest.approx(verdict.seconds / (verdict.seconds - verdict.recoverable))
        assert verdict.speedup == pytest.approx(one["speedup"])
    assert all(math.isnan(one.recoverable) and math.isnan(one.speedup) for one in all_of if one.rule != VERDICT)


def test_ids_are_of_kernel_rule_and_title_alone(tmp_path: Path) -> None:
    """Other numbers, another order, another report, other neighbours: the same finding."""
    mine, other = launch("mine", slow(1e-3, 0.7)), launch("other", slow(2e-3, 0.8))
    again = launch("mine", slow(5e-3, 0.8))
    first = found(report(tmp_path / "first.ncu-rep", mine, other))
    second = found(report(tmp_path / "second.ncu-rep", other, again, again))
    ids, others = (
        {(one.kernel.name, one.rule, re.sub("[0-9.]+ %", "", one.title)): one.id for one in some} for some in (first, second)
    )
    assert ids == others
    assert len(set(ids.values())) == len(first)
    renamed = found(report(tmp_path / "third.ncu-rep", launch("renamed", slow(1e-3, 0.7))))
    assert not {one.id for one in renamed} & set(ids.values())


def test_a_rule_that_spoke_is_not_without_advice(tmp_path: Path) -> None:
    """What it could not tell besides is told in full once, whatever numbers are in it."""
    advice = []
    for number in (2, 3, 7):
        unknown = RuleMessage("none", f"Collect {number} metrics")
        speaking = RuleOutcome("A", "A", "S", "", messages=(unknown, RuleMessage("ok", "Fine")))
        outcomes = (speaking, RuleOutcome("B", "B", "S", "", messages=(unknown,)))
        advice.append(KernelAdvice("r", len(advice), 1.0, outcomes))
    launches = measurements_of(made(tmp_path, "three"))
    told = Told([ReportAdvice("r", "2024.1", launches, tuple(advice), ())], of_launches.findings([], launches), {})
    text = "Collect 2\N{EN DASH}7 metrics"
    assert told.silences == [Silence("A", text, 3, alone=False), Silence("B", text, 3)]
    assert of_launches.as_text(told, 100).endswith("\n\nWithout advice: B. --all-findings shows why.")
    assert f"A (3 of 3 launches): {text}" in of_launches.as_text(told, 100, whole=True)


def test_a_page_leaves_out_what_advise_leaves_out(run: Command, tmp_path: Path) -> None:
    """Below a hundredth of the time nothing is told, whether the rest of the time is of launches with advice or not."""
    long = launch("long", complete(seconds=1.0))
    little, rare = (launch(name, {**complete(seconds=s), **FEW_LANES}) for name, s in (("little", 0.005), ("rare", 0.011)))
    flat = [launch("flat", complete(seconds=0.01))] * 170
    for expected, launches in (
        (False, [long, little]),
        (True, [long, *[little] * 3]),
        (True, [*[long] * 16, *[little] * 60]),  # 4 of the 60 are among the 20 longest: 0.1 % of the time, all are 1.8 %
        (False, [rare, *flat]),  # 0.6 % of the time of all launches counts, not 5 % of that of the 20 longest
    ):
        path, target = report(tmp_path / "r.ncu-rep", *launches), tmp_path / "r.html"
        assert run("render", path, "-o", target, "--force").code == 0
        for said in (target.read_text(encoding="utf-8"), run("advise", path).out):
            assert ("Lanes without work" in said) is expected


def test_a_page_has_advice_on_every_kernel_that_matters(tmp_path: Path) -> None:
    """Also on those of which no launch is among the 20 longest; the launch looked at stands for all of its kernel."""
    few = launch("often", {**complete(seconds=1e-3), **FEW_LANES})
    path = report(tmp_path / "r.ncu-rep", *[launch("long", complete(seconds=2e-3))] * 30, *[few] * 40)
    with read_report(path) as opened:
        m = measurements_of(opened)
        advice = advise(opened, our_rules(), m.take(of_launches.most_telling(m, 20)))
    assert [one.launch for one in advice] == [*range(19), 30]
    all_of = of_launches.findings(advice, m).found
    (hint,) = (one for one in all_of if one.title == "Lanes without work")
    assert hint.share == pytest.approx(0.4)
    rows = of_launches.advice_rows(all_of)
    names = "id kernel device rule type title text launches share recoverable speedup"
    assert all(set(row) == set(names.split()) for row in rows)
    assert {row["kernel"] for row in rows} == set(roofline(path).kernels["kernel"])
    assert not [row for row in rows if row["type"] == "none" or "@section" in row["text"]]
    assert json.loads(json.dumps(rows, allow_nan=False)) == rows
