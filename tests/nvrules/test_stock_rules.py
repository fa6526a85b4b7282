"""NVIDIA's own rules, run offline, say what they said when the report was made: text, type, title, speedup, focus metrics."""

from __future__ import annotations

from pathlib import Path

import pytest

from ncu_roofline.formats.report import RuleMessage, read_report
from ncu_roofline.plugin.nvrules.runner import load_rules

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


def spoken(messages: tuple[RuleMessage, ...]) -> list[tuple[object, ...]]:
    return [(m.type, m.title, m.text, m.speedup, m.speedup_type, m.focus) for m in messages]


def test_they_say_what_they_said(real_reports: dict[str, Path], ncu_releases: dict[str, Path]) -> None:
    """And no others run."""
    rules = {release: load_rules([ncu.parents[2] / "sections"]) for release, ncu in ncu_releases.items()}
    assert all(one.problems == () for one in rules.values())
    runs, different = 0, set()
    for name, path in real_reports.items():
        with read_report(path) as report:
            stock = rules.get(RELEASES.get(".".join(report.ncu_version.split(".")[:2]), ""))
            for kernel in report.kernels if stock else ():
                ours = {outcome.identifier: outcome for outcome in stock.run(kernel, collected_only=True)}
                ran = {identifier for identifier, outcome in ours.items() if outcome.status != "skipped"}
                assert ran == {result.identifier for result in kernel.rule_results}, name
                for result in kernel.rule_results:
                    runs += 1
                    outcome, messages = ours[result.identifier], result.messages
                    missing = any(m.type == "error" and "Metric" in m.text and "not found" in m.text for m in messages)
                    # Old releases word it otherwise; an error it must be.
                    same = outcome.status == "error" if missing else spoken(messages) == spoken(outcome.messages)
                    if not same:
                        different.add((name, result.identifier))
    if not runs:
        pytest.skip("no report of a release whose rules are here")
    assert different <= KNOWN
