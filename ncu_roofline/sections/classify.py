"""What the metrics of a roof or point measure: precision and memory level, told from their names alone.

Only for embedded charts of others, whose labels are free text; the metrics of this program's own bindings need no guessing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

# First match wins.  Names are without "derived__"; clocks are no evidence: every level has one.
_CLOCK = re.compile(r"__cycles_(elapsed|active)|^(sm|smsp)__cycles|^gpu__time")

_LEVELS = tuple(
    (re.compile(pattern), level)
    for pattern, level in (
        (r"^syslts__|^pcie__|^ctc__|^lts__\w*sysmem", "system"),
        (r"^nvl|^lts__\w*peer", ""),
        (r"^dram__|^fbpa__|^mcc__|^lts__d_sectors_fill_device", "dram"),
        (r"mem_shared|^l1tex__data_bank", "shared"),
        (r"^lts__|^l1tex__m_(xbar2l1tex|l1tex2xbar)", "l2"),
        (r"^l1tex__(t_|lsu_writeback|tex_writeback|data_pipe|data_bank)", "l1"),
        (r"^smsp__sass_data_bytes_mem_(global|local)", "l1"),
    )
)

_CORE = re.compile(r"__sass_thread_inst_executed_ops?_(?P<type>[dfh])(add|mul|fma)")
_CORE_TYPES = {"d": "fp64", "f": "fp32", "h": "fp16"}

_TENSOR_OPS = re.compile(r"__ops_path_tensor(_op_(?P<op>[a-z]+))?_src_(?P<source>[a-z0-9_]+)")
_FAMILIES = tuple(
    (re.compile(pattern), family)
    for pattern, family in ((r"^utc", ".tcgen05"), (r"^[a-z]?gmma$", ".wgmma"), (r"^[a-z]+mma$", ".mma"))
)
# One counter for several source types: on Turing only FP16 exists; the narrow types of Blackwell are one precision of the spec.
_SOURCES = tuple(
    (re.compile(pattern), name)
    for pattern, name in (
        (r"^fp16_bf16_tf32(_|$)", "fp16"),
        (r"^fp4_fp6_fp8(_|$)", "fp8fp6fp4"),
        (r"^fp4_fp6(_|$)", "fp6fp4"),
        (r"^(?P<source>fp64|fp32|tf32|bf16|fp16|fp8|fp6|fp4|int8|int4|int1)(_|$)", ""),
    )
)

_SPARSE = ".sparse"

_TENSOR_INSTRUCTIONS = tuple(
    (re.compile(pattern), name)
    for pattern, name in (
        (r"__inst_executed_pipe_(tensor|fp64)\w*_(op|subpipe)_dmma", "tensor.fp64"),
        (r"__inst_executed_pipe_tensor", "tensor"),
    )
)


def classify(metrics: Iterable[str]) -> tuple[str, str]:
    """(precision id, level id) of a roof or point with these metrics: ("fp64", "dram"), ("tensor.fp16.wgmma", "l2"), ...

    Either is "" where the names do not tell.  Several types of the tensor pipe together give what they share ("tensor.fp16",
    "tensor"); anything else that mixes precisions or levels gives "".  Sparse counters end in ".sparse".
    """
    names = [name.removeprefix("derived__").removeprefix("rl_") for name in metrics]
    precisions = {precision for name in names if (precision := _precision(name))}
    levels = {level for name in names if (level := _level(name)) is not None}
    return _shared(precisions), levels.pop() if len(levels) == 1 else ""


def _level(name: str) -> str | None:
    if _CLOCK.search(name) and "lts2xbar_cycles_active" not in name and "xbar2lts_cycles_active" not in name:
        return None
    return next((level for pattern, level in _LEVELS if pattern.search(name)), None)


def _precision(name: str) -> str:
    core = _CORE.search(name)
    if core:
        return _CORE_TYPES[core["type"]]
    tensor = _TENSOR_OPS.search(name)
    if tensor:
        return _tensor(tensor["op"] or "", tensor["source"])
    return next((precision for pattern, precision in _TENSOR_INSTRUCTIONS if pattern.search(name)), "")


def _tensor(op: str, source: str) -> str:
    for pattern, known in _SOURCES:
        match = pattern.match(source)
        if match:
            family = next((suffix for rule, suffix in _FAMILIES if rule.match(op)), "")
            sparse = _SPARSE if "sparsity_on" in source else ""
            return f"tensor.{known or match['source']}{family}{sparse}"
    return "tensor"


def _shared(ids: set[str]) -> str:
    """The dotted prefix that all ids have in common, sparse if all of them are."""
    common: list[str] = []
    for parts in zip(*(one.removesuffix(_SPARSE).split(".") for one in sorted(ids)), strict=False):
        if len(set(parts)) > 1:
            break
        common.append(parts[0])
    return ".".join(common) + (_SPARSE if len(common) > 1 and all(one.endswith(_SPARSE) for one in ids) else "")
