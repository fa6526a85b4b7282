"""Rules of Nsight Compute, ours and NVIDIA's, on existing reports: no ncu, no GPU."""

from __future__ import annotations

from ncu_roofline.rules.advice import KernelAdvice, advice_rows, advise
from ncu_roofline.rules.loading import RuleProblem
from ncu_roofline.rules.markup import plain_text
from ncu_roofline.rules.outcome import RuleOutcome, RuleTable
from ncu_roofline.rules.runner import RuleSet, load_rules, run_rules, section_identifier

__all__ = [
    "KernelAdvice",
    "RuleOutcome",
    "RuleProblem",
    "RuleSet",
    "RuleTable",
    "advice_rows",
    "advise",
    "load_rules",
    "plain_text",
    "run_rules",
    "section_identifier",
]
