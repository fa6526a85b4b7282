"""Section files, ours or not, held against what Nsight Compute, its releases and the chips make of them."""

from __future__ import annotations

from ncu_roofline.plugin.check.checking import Checked, check_files, check_section, metrics_to_collect, section_passes
from ncu_roofline.plugin.check.chips import Passes, passes
from ncu_roofline.plugin.check.content import ERROR, INFO, WARNING, Finding, has_error
from ncu_roofline.plugin.check.targets import Target, all_targets, default_targets, targets_of

__all__ = [
    "ERROR",
    "INFO",
    "WARNING",
    "Checked",
    "Finding",
    "Passes",
    "Target",
    "all_targets",
    "check_files",
    "check_section",
    "default_targets",
    "has_error",
    "metrics_to_collect",
    "passes",
    "section_passes",
    "targets_of",
]
