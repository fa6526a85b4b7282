"""The description of the instruction roofline: what is refused in its file, and that a rule reads the same counters."""

from __future__ import annotations

import re
from importlib import resources

from ncu_roofline.chips import load_instructions

RULE = resources.files("ncu_roofline.plugin.generate") / "templates" / "rules" / "access_pattern.py.j2"


def test_the_rule_on_access_patterns_reads_the_same_counters() -> None:
    known = {counter for kind in load_instructions().kinds for one in kind.formulas() for counter in one.counters()}
    text = RULE.read_text(encoding="utf-8")
    pairs = re.search(r"COUNTERS = \((.*?)\n\)", text, re.DOTALL)
    assert pairs
    named = [name.format("ld") for name in re.findall(r'"([a-z_0-9{}]+)"', pairs[1])]
    assert len(named) == 4
    assert set(named) <= known
    for prefix in ("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_", "smsp__sass_inst_executed_op_shared_"):
        assert prefix in text
        assert {f"{prefix}ld", f"{prefix}st"} <= known
