"""The static proof: what the table promises of a kernel is what its machine code does."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.pipes import busy, counted, rate
from tests.bench.sass import Function, Instruction, hot_loop, loads_in_flight, moved, operations

# What the hot loop of a kernel is made of, by the pipe that must bind.
_TARGETS = {
    "fp64": r"D(FMA|ADD|MUL)",
    "fp32": r"F(FMA|ADD|MUL)",
    "fp16": r"H(FMA|ADD|MUL)2",
    "bf16": r"H(FMA|ADD|MUL)2",
    "int32": r"IMAD$",
    "shared": r"LDS",
}
_TENSOR = r"([HIDQ]G?MMA|UTC[HIQO]MMA)"
_BUSY = 0.9
# One add of each kind: what does more is fused.  Packed FP32 is fused or absent.
_HALF_OF = {
    "fp64": Instruction("", "DADD", ""),
    "fp32": Instruction("", "FADD", ""),
    "fp16": Instruction("", "HADD2", ""),
    "bf16": Instruction("", "HADD2", ""),
}
# Packed multiplies and adds: sm_80 and sm_90 issue half of them as FMAs with constants, and the common addend then stands in
# another operand place, where the operand cache does not keep it: some read two registers of one bank.
_BUSY_PACKED = 0.85
_EMULATION = {"tensor.fp8": r"F2FP|HADD2|PRMT"}


@dataclass(frozen=True)
class Finding:
    """A kernel on an architecture: "" where the promise holds, else why not; whether it is emulated."""

    symbol: str
    reason: str
    emulated: bool = False


def capability_of(target: str) -> tuple[int, int]:
    """(9, 0) of "90a"."""
    digits = re.sub(r"\D", "", target)
    return int(digits[:-1]), int(digits[-1])


def applies(row: dict[str, Any], target: str) -> bool:
    """Whether a kernel exists on a target; those of wgmma and tcgen05 need the targets with an a."""
    major, minor = capability_of(target)
    number = major * 10 + minor
    special = re.search(r"(wgmma|tcgen05)$", row["ceiling"])
    return row["since"] <= number and (not row["until"] or number <= row["until"]) and (not special or target.endswith("a"))


def prove(row: dict[str, Any], function: Function, target: str) -> Finding:
    """Hold one kernel's code to its row."""
    capability = capability_of(target)
    pipe = row["pipe"]
    loop = hot_loop(function, _target(row))
    # Some compilers even hoist emulated products out of the loop: then all of the function is looked at.
    if (pattern := _EMULATION.get(pipe)) and any(re.match(pattern, each.opcode) for each in loop or function.instructions):
        return Finding(row["symbol"], "", emulated=True)
    if not loop:
        return Finding(row["symbol"], "no loop holds what it should be made of")
    if rate(pipe, capability) is None:
        return Finding(row["symbol"], "", emulated=True)
    reasons = [*_memory_of(function), *_work(row, loop), *_bytes(row, loop), *_bound(row, loop, capability)]
    return Finding(row["symbol"], "; ".join(reasons))


def _target(row: dict[str, Any]) -> str:
    if row["pipe"].startswith("tensor."):
        return _TENSOR
    if "bulk" in row["variant"]:
        return r"LDS"
    return _TARGETS.get(row["pipe"], r"(LDG|STG)")


def _memory_of(function: Function) -> Iterable[str]:
    spills = sum(each.opcode.startswith(("LDL", "STL")) for each in function.instructions)
    if spills or function.stack or function.local:
        yield f"local memory: {spills} loads and stores, {function.stack} bytes of stack"


def _work(row: dict[str, Any], loop: list[Any]) -> Iterable[str]:
    pipe = "fp32" if row["ceiling"] == "dram.triad" else row["pipe"]
    if row["operations"] and abs(counted(loop, pipe) - row["operations"]) > 1e-6:
        yield f"{counted(loop, pipe):g} operations per trip, {row['operations']:g} promised"
    fused = sum(operations(each, pipe) > operations(_HALF_OF[pipe], pipe) for each in loop) if pipe in _HALF_OF else 0
    if row["ceiling"].endswith(".nofma") and fused:
        yield f"{fused} fused multiply-adds where none was meant"
    if row["ceiling"].endswith(".fma") and sum(operations(each, pipe) > 0 for each in loop) > fused:
        yield "multiplies and adds apart where fused ones were meant"


def _bytes(row: dict[str, Any], loop: list[Any]) -> Iterable[str]:
    bulk = "bulk" in row["variant"]
    found = moved(loop, r"LDS") if bulk or row["pipe"] == "shared" else moved(loop, r"(LDG|STG)")
    if found != row["bytes"]:
        yield f"{found} bytes per trip, {row['bytes']:g} promised"
    if bulk and not any(each.opcode.startswith("UBLKCP") for each in loop):
        yield "no asynchronous copy"
    if row["bytes"] and not bulk and "write" not in row["ceiling"] and "stg" not in row["variant"]:
        wanted = 16 if row["streams"] == 3 else 8
        if loads_in_flight(loop) < wanted:
            yield f"{loads_in_flight(loop)} loads in flight, {wanted} promised"


def _bound(row: dict[str, Any], loop: list[Any], capability: tuple[int, int]) -> Iterable[str]:
    cycles = busy(loop, row["pipe"], capability)
    binding, most = max(cycles.items(), key=lambda item: item[1])
    wanted = _BUSY_PACKED if row["ceiling"] in ("fp16.nofma", "bf16.nofma") else _BUSY
    if not row["ceiling"].endswith(".div") and cycles[row["pipe"]] < wanted * most:
        yield f"{binding} binds ({most:g} cycles per trip) before {row['pipe']} ({cycles[row['pipe']]:g})"


def read_table(program: Path) -> list[dict[str, Any]]:
    """The rows of the table, from the model program."""
    text = subprocess.run([str(program), "table"], check=True, capture_output=True, text=True).stdout
    return [json.loads(line) for line in text.splitlines()]
