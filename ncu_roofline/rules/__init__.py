"""Rules of Nsight Compute, ours and NVIDIA's, on existing reports: no ncu, no GPU."""

from __future__ import annotations

from ncu_roofline.rules.advice import WORTH, KernelAdvice, advice_rows, advise, worth_telling
from ncu_roofline.rules.collectable import collectable
from ncu_roofline.rules.lending import Lender
from ncu_roofline.rules.loading import RuleProblem
from ncu_roofline.rules.markup import plain_text
from ncu_roofline.rules.outcome import RuleOutcome, RuleTable
from ncu_roofline.rules.runner import RuleSet, load_rules, run_rules, section_identifier

__all__ = [
    "WORTH",
    "KernelAdvice",
    "Lender",
    "RuleOutcome",
    "RuleProblem",
    "RuleSet",
    "RuleTable",
    "advice_rows",
    "advise",
    "collectable",
    "load_rules",
    "plain_text",
    "run_rules",
    "section_identifier",
    "worth_telling",
]
