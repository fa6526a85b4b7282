"""Rules on made-up kernels, for the tests of this folder."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from types import ModuleType

from ncu_roofline.base.files import HELPER, pack_folder
from ncu_roofline.formats.report import RuleMessage, read_report
from ncu_roofline.plugin.nvrules.runner import RuleOutcome, RuleSet, load_rules
from tests.factory import Metrics, kernel, report

RULES = pack_folder("rules")


@lru_cache(maxsize=1)
def our_rules() -> RuleSet:
    """The rules that are committed."""
    return load_rules([RULES])


def helper(rules: RuleSet) -> ModuleType:
    """The module that these rules of ours share."""
    modules = rules.rules[0].namespace.modules
    return next(module for name, module in modules.items() if name.startswith(HELPER))


def outcomes(folder: Path, metrics: Metrics, rules: RuleSet | None = None, **rest: object) -> dict[str, RuleOutcome]:
    """What rules say about a kernel with these metrics, by identifier."""
    path = report(folder / "rules.ncu-rep", kernel(metrics, **rest))  # type: ignore[arg-type]
    with read_report(path) as opened:
        return {outcome.identifier: outcome for outcome in (rules or our_rules()).run(opened.kernels[0])}


def messages(folder: Path, metrics: Metrics, rule: str, rules: RuleSet | None = None) -> tuple[RuleMessage, ...]:
    """What one of our rules says; ``rule`` without its prefix."""
    outcome = outcomes(folder, metrics, rules)[f"NcuRoofline{rule}"]
    assert outcome.status == "done", outcome
    return outcome.messages


def only(folder: Path, metrics: Metrics, rule: str, rules: RuleSet | None = None) -> RuleMessage:
    """The single message of a rule."""
    found = messages(folder, metrics, rule, rules)
    assert len(found) == 1, found
    return found[0]
