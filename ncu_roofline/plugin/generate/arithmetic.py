"""What the rule on arithmetic has to know: names of opcodes, their work, and its sentences."""

from __future__ import annotations

from ncu_roofline.chips import Spec, arithmetic, load_opcodes, load_stalls
from ncu_roofline.chips.opcodes import load_opcode_kinds
from ncu_roofline.chips.source_counters import OPCODE_THREADS, OPCODE_WARPS
from ncu_roofline.chips.thresholds import BETWEEN_SHARE, INTEGER_SHARE, ISSUE_SHARE, LEFT_OUT, UNFUSED_LEFT
from ncu_roofline.formats.sass.instructions import FLOWS, FUSED_HALVES, SIZE

_NAMES = (
    *("UNFUSED", "FP64_AMONG_FP32", "CONVERSIONS", "OF_DIVISIONS", "INDEXED"),
    *("UNFUSED_ADVICE", "FP64_ADVICE", "CONVERSION_ADVICE", "DIVISION_ADVICE", "INDEXING_ADVICE"),
)
SENTENCES = "\n".join(f"{name} = {getattr(arithmetic, name)!r}" for name in _NAMES)
"""What is said, as Python source."""
_DOUBLE, _SINGLE = "fp64", "fp32"


def arithmetic_facts(spec: Spec) -> dict[str, object]:
    """By the name that each has in the template."""
    table, kinds = load_opcodes(), load_opcode_kinds()
    core = {one.id for one in spec.precisions if one.kind == "core" and one.unit == "flop"}
    work = {
        name: (kind if (kind := kinds.of(name)) in (_DOUBLE, _SINGLE) else "", int(row.weight))
        for row in table.rows
        if row.precision in core and row.does == "arithmetic"
        for name, _ in row.opcodes
    }
    converting = [(name, words) for row in table.rows if row.does == "conversion" for name, words in row.opcodes]
    double = [name for name, kind in kinds.names.items() if kind == _DOUBLE]
    double += [".".join(pair) for pair, kind in kinds.modifiers.items() if kind == _DOUBLE]
    return {
        "arithmetic": arithmetic.ARITHMETIC,
        "slow": arithmetic.SLOW,
        "between": arithmetic.BETWEEN,
        "dividing": arithmetic.DIVIDING,
        "indexing": arithmetic.INDEXING,
        "moving": tuple(".".join(pair) for pair, kind in kinds.modifiers.items() if kind == "move"),
        "work": work,
        "converting": tuple(".".join((name, *words)) for name, words in converting),
        "unknown": "|".join(map(_searched, table.unknown_names)),
        "fused_halves": FUSED_HALVES,
        "double": tuple(double),
        "ends": tuple(FLOWS),
        "indirect": tuple(name for name, flow in FLOWS.items() if flow == "indirect"),
        "size": SIZE,
        "issuing": tuple(reason for reason, stall in load_stalls().items() if stall.issue),
        "opcode_threads": OPCODE_THREADS,
        "opcode_warps": OPCODE_WARPS,
        "unfused_left": UNFUSED_LEFT,
        "between_share": BETWEEN_SHARE,
        "issue_share": ISSUE_SHARE,
        "left_out": LEFT_OUT,
        "integer_share": INTEGER_SHARE,
    }


def _searched(pattern: str) -> str:
    """A pattern of names as a regular expression to search by: its cost is linear."""
    return f"{'' if pattern.startswith('*') else '^'}{pattern.strip('*')}{'' if pattern.endswith('*') else '$'}"
