"""NVIDIA's own rules, run offline, say what they said when the report was made: text, type, title, speedup, focus metrics."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ncu_roofline.formats.report import Kernel, Report, RuleMessage, read_report
from ncu_roofline.plugin.nvrules.runner import RuleSet, load_rules

# Release of the report: release of the rules.  Where they differ, the rules have the same texts in both.
RELEASES = {
    "2020.3": "2020.3",
    "2022.3": "2022.3",
    "2022.4": "2022.3",
    "2024.1": "2024.1",
    "2024.2": "2024.2",
    "2024.3": "2024.2",
}
KNOWN = {
    # sorts instructions by a value that several share, in the order of a dict of Python 3.5
    ("a100-ncu2020.3-full-1.ncu-rep", "UncoalescedGlobalAccess"),
    # made by 2022.4 with a file that has a misprint which 2022.3 does not have
    ("a100-ncu2022.4-full-2.ncu-rep", "SOLFPRoofline"),
}
pytestmark = [pytest.mark.ncu, pytest.mark.reports, pytest.mark.exhaustive]


@pytest.fixture(scope="module")
def stock(ncu_releases: dict[str, Path]) -> dict[str, RuleSet]:
    found = {}
    for release, ncu in ncu_releases.items():
        folder = ncu.parent.parent.parent / "sections"
        found[release] = load_rules([folder])
        assert found[release].problems == ()
    return found


def cases(real_reports: dict[str, Path], stock: dict[str, RuleSet]) -> Iterator[tuple[str, Report, RuleSet]]:
    for name, path in real_reports.items():
        with read_report(path) as report:
            rules = stock.get(RELEASES.get(".".join(report.ncu_version.split(".")[:2]), ""))
            if rules is not None:
                yield name, report, rules


def spoken(messages: tuple[RuleMessage, ...]) -> list[tuple[object, ...]]:
    return [(m.type, m.title, m.text, m.speedup, m.speedup_type, m.focus) for m in messages]


def missing_metric(messages: tuple[RuleMessage, ...]) -> bool:
    return any(m.type == "error" and "Metric" in m.text and "not found" in m.text for m in messages)


def compare(kernel: Kernel, rules: RuleSet) -> Iterator[tuple[str, bool]]:
    """Each rule that the report has results of, and whether ours are the same."""
    ours = {outcome.identifier: outcome for outcome in rules.run(kernel, collected_only=True)}
    for result in kernel.rule_results:
        outcome = ours[result.identifier]
        if missing_metric(result.messages):  # old releases word it otherwise; an error it must be
            yield result.identifier, outcome.status == "error"
        else:
            yield result.identifier, spoken(result.messages) == spoken(outcome.messages)


def test_they_say_what_they_said(real_reports: dict[str, Path], stock: dict[str, RuleSet]) -> None:
    runs, different = 0, set()
    for name, report, rules in cases(real_reports, stock):
        for kernel in report.kernels:
            for rule, same in compare(kernel, rules):
                runs += 1
                if not same:
                    different.add((name, rule))
    if not runs:
        pytest.skip("no report of a release whose rules are here")
    print(f"{runs} rule runs compared")
    assert different <= KNOWN


def test_no_other_rules_run(real_reports: dict[str, Path], stock: dict[str, RuleSet]) -> None:
    for name, report, rules in cases(real_reports, stock):
        for kernel in list(report.kernels)[:3]:
            ran = {outcome.identifier for outcome in rules.run(kernel, collected_only=True) if outcome.status != "skipped"}
            assert ran == {result.identifier for result in kernel.rule_results}, name
