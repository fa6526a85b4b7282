"""Rules of Nsight Compute, ours and NVIDIA's, on existing reports: no ncu, no GPU."""

from __future__ import annotations

from ncu_roofline.plugin.nvrules.advice import KernelAdvice, Lender, advise, collectable, plain_text
from ncu_roofline.plugin.nvrules.findings import Finding, Findings, advice_rows, findings, most_telling
from ncu_roofline.plugin.nvrules.interface import IAction, RuleTable
from ncu_roofline.plugin.nvrules.runner import (
    RuleOutcome,
    RuleProblem,
    RuleSet,
    load_rules,
    rendered_rules,
    section_identifier,
)

__all__ = [
    "Finding",
    "Findings",
    "IAction",
    "KernelAdvice",
    "Lender",
    "RuleOutcome",
    "RuleProblem",
    "RuleSet",
    "RuleTable",
    "advice_rows",
    "advise",
    "collectable",
    "findings",
    "load_rules",
    "most_telling",
    "plain_text",
    "rendered_rules",
    "section_identifier",
]
