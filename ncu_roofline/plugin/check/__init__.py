"""Section files, ours or not, held against what Nsight Compute, its releases and the chips make of them."""

from __future__ import annotations

from ncu_roofline.plugin.check.chips import Passes, Target, all_targets, default_targets, passes, targets_of
from ncu_roofline.plugin.check.content import ERROR, INFO, WARNING, Content, Finding
from ncu_roofline.plugin.check.section_rules import Checked, check_files, check_section, metrics_to_collect, section_passes

__all__ = [
    "ERROR",
    "INFO",
    "WARNING",
    "Checked",
    "Content",
    "Finding",
    "Passes",
    "Target",
    "all_targets",
    "check_files",
    "check_section",
    "default_targets",
    "metrics_to_collect",
    "passes",
    "section_passes",
    "targets_of",
]
