"""The description of the instruction roofline: what is refused in its file, and that a rule reads the same counters."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

import pytest

from ncu_roofline.chips import SpecError, load_instructions, load_spec
from ncu_roofline.chips.fields import DATA
from ncu_roofline.chips.instruction import FILE, read_instructions

RULE = resources.files("ncu_roofline.plugin.generate") / "templates" / "rules" / "access_pattern.py.j2"


def test_the_file_of_the_package_is_read() -> None:
    assert read_instructions(DATA) == load_instructions()


@pytest.mark.parametrize(
    ("pattern", "replacement", "reason"),
    [
        (r"transaction = 32\n", "", "transaction: is missing"),
        (r"warp = 32", "warp = 0", "warp: must be positive and finite, not 0"),
        (r"per_sm = 4", "per_sm = 4\nper_gpu = 1", "issue.per_gpu: is not a key of such a table"),
        (r'id = "inst"\n', 'id = "instructions"\n', "kinds: the first must be 'inst', and each id stand once"),
        (r'id = "inst.shared"', 'id = "inst.global_ld"', "kinds: the first must be 'inst', and each id stand once"),
        (r'kind = "inst.shared"', 'kind = "inst.texture"', "walls: there is no kind 'inst.texture'"),
        (r'level = "l1"\n', "", "kinds[1].transactions: go with a level, and a level with transactions"),
        (r"smsp__inst_executed = 1", "smsp_inst = 1", "'smsp_inst' is no name of a counter without suffix"),
        (r"\[issue\]", "[issue", "(whole file): "),
    ],
    ids=["absent", "zero", "unknown key", "first kind", "twice", "wall", "level", "counter", "syntax"],
)
def test_mistakes_are_named(tmp_path: Path, pattern: str, replacement: str, reason: str) -> None:
    text, count = re.subn(pattern, replacement, (DATA / FILE).read_text(encoding="utf-8"), count=1)
    assert count == 1
    (tmp_path / FILE).write_text(text, encoding="utf-8")
    with pytest.raises(SpecError, match=re.escape(reason)) as caught:
        read_instructions(tmp_path)
    assert FILE in str(caught.value)


@pytest.mark.parametrize(
    "architecture", load_spec().architectures, ids=lambda one: one.name + "{}.{}".format(*one.compute_capability)
)
def test_what_is_collected(architecture: object) -> None:
    capability = architecture.compute_capability  # type: ignore[attr-defined]
    names = load_instructions().collect(load_spec(), capability, ("l1", "l2", "dram"))
    assert len(set(names)) == len(names)
    assert {"gpu__time_duration.sum", "smsp__inst_executed.sum", "sm__inst_issued.sum.peak_sustained"} <= set(names)
    assert set(load_instructions().needs(load_spec(), capability, ("l1", "l2", "dram"))) <= set(names)


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
