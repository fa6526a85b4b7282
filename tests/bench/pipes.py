"""How many cycles an SM's parts are busy with a loop: which one binds.

Rates are per cycle and SM: operations from the architecture data of the package, the rest from data sheets and microbenchmarks.
"""

from __future__ import annotations

import re
from collections import defaultdict

from ncu_roofline.chips import load_spec
from tests.bench.sass import Instruction, moved, operations, products, width

# What the package's architecture data do not know: scheduled like that by ptxas, unknown until measured.
_UNPUBLISHED = {("fp16", (10, 3)): 256.0, ("bf16", (10, 3)): 256.0, ("tensor.int8", (10, 3)): 512.0}
_BF16 = {(8, 0): 256.0, (8, 6): 256.0, (8, 9): 256.0, (9, 0): 512.0, (12, 0): 256.0}
# Parts without published rates, and the relative whose rates stand in for the question what binds.
_RELATIVES = {(8, 7): (8, 6), (8, 8): (8, 6), (11, 0): (10, 3), (12, 1): (12, 0)}
_INT32 = 128.0  # 64 lanes of multiply-adds
# DRAM bytes per cycle and SM of the widest memory of a capability, B/s over (SMs x clock); else the narrowest that is known
_DRAM = {(7, 5): 5.0, (8, 0): 13.4, (8, 6): 6.7, (8, 9): 3.1, (9, 0): 18.4, (10, 0): 27.5, (10, 3): 27.5, (12, 0): 4.4}
_L2 = 64.0  # bytes per cycle and SM: what no part exceeds
_HOST = 1.0
_ALU = r"(IMAD|IADD|LOP3|ISETP|SHF|LEA|MOV|SEL|PRMT|IMNMX|FSETP|FSEL|FMNMX|PLOP|P2R|R2P|IABS|VIADD|FCHK|VIMNMX)"


def rate(pipe: str, capability: tuple[int, int]) -> float | None:
    """Operations or bytes per cycle and SM of a pipe or level; None where the part has no such pipe."""
    capability = _RELATIVES.get(capability, capability)
    if pipe in ("dram", "l2", "host"):
        return {"dram": _DRAM.get(capability, 3.0), "l2": _L2, "host": _HOST}[pipe]
    if pipe == "int32":
        return _INT32
    if (pipe, capability) in _UNPUBLISHED:
        return _UNPUBLISHED[pipe, capability]
    architecture = load_spec().architecture(capability)
    assert architecture is not None, capability
    if pipe in ("l1", "shared"):
        return float(architecture.bandwidth[pipe][0])
    if pipe == "bf16":
        return _BF16.get(capability, architecture.peaks.get("fp16.fma"))
    if pipe == "tensor.fp8":
        return architecture.peaks.get(pipe, architecture.peaks.get("tensor.fp8fp6fp4"))
    return architecture.peaks.get(pipe if pipe.startswith("tensor.") else f"{pipe}.fma")


def busy(loop: list[Instruction], pipe: str, capability: tuple[int, int]) -> dict[str, float]:
    """Cycles of an SM per trip of a warp, by part: what ``pipe`` names, and all that could stand in its way."""
    cycles: dict[str, float] = defaultdict(float)
    own = rate(pipe, capability)
    assert own, f"no rate of {pipe} on {capability}"
    for each in loop:
        part, count = _part(each, pipe, own, capability)
        cycles[part] += count
        cycles["issue"] += 0.25
    cycles["registers"] = _register_cycles(loop)
    if pipe in ("dram", "l2", "host"):
        cycles[pipe] += moved(loop, r"(LDG|STG)") * 32 / own
        if any(each.opcode.startswith("UBLKCP") for each in loop):  # the bytes of asynchronous copies: all are then read
            cycles[pipe] += moved(loop, "LDS") * 32 / own
    return cycles


def _part(each: Instruction, pipe: str, own: float, capability: tuple[int, int]) -> tuple[str, float]:
    opcode = each.opcode
    if re.match(r"[HIQ]GMMA", opcode):
        return pipe, products(opcode) * 2 / own / 4  # one of the group's four warps
    if re.match(r"UTC[HIQO]MMA", opcode):
        return pipe, 128 * 256 * _depth(pipe) * 2 / own / 4  # one of the block's four warps issues for all
    if products(opcode):
        return pipe, products(opcode) * 2 / own
    if re.match(r"(LDG|LDS|STG|STS|LDL|STL)", opcode):
        level = "shared" if pipe == "shared" else "l1"
        return level, width(opcode) * 32 / (rate(level, capability) or 1)
    for kind, pattern in (("fp64", r"D(FMA|ADD|MUL|SETP)"), ("fp32", r"F(FMA|ADD|MUL)"), ("half", r"H(FMA|ADD|MUL)2")):
        if re.match(pattern, opcode):
            return _arithmetic(each, kind, pipe, capability)
    if pipe == "int32" and opcode == "IMAD":
        return pipe, 64 / own
    if re.match(r"(MUFU|I2F|F2I|F2F)", opcode):
        return "xu", 2.0
    return ("alu", 0.5) if re.match(_ALU, opcode) else ("other", 0.25)


def _arithmetic(each: Instruction, kind: str, pipe: str, capability: tuple[int, int]) -> tuple[str, float]:
    if kind == "half":
        name = "bf16" if "BF16" in each.opcode else "fp16"
        part = pipe if pipe in ("fp16", "bf16") else "half"
        return part, 4 * 32 / (rate(name, capability) or 256)  # an add takes the pipe as long as an FMA
    packed = 2 if kind == "fp32" and re.match(r"F(FMA|ADD|MUL)2", each.opcode) else 1
    return kind, 2 * packed * 32 / (rate(kind, capability) or 1)


def _register_cycles(loop: list[Instruction]) -> float:
    """Cycles that the register files of an SM's four parts need: two banks (even, odd), one read of each per cycle.

    Operands kept by .reuse for the same place of the next instruction are free.
    """
    kept: dict[int, int] = {}
    cycles = 0.0
    for each in loop:
        if not re.match(r"(FFMA|FADD|FMUL|HFMA2|HADD2|HMUL2)\b", each.opcode):
            kept = {}
            cycles += 0.25
            continue
        read, keep = set(), {}
        for place, operand in enumerate(each.operands.split(",")[1:]):
            if match := re.match(r"\s*[-|]*R(\d+)(\.reuse)?", operand):
                number = int(match[1])
                if kept.get(place) != number:
                    read.add(number)
                if match[2]:
                    keep[place] = number
        kept = keep
        even = sum(number % 2 == 0 for number in read)
        cycles += max(1, even, len(read) - even) / 4
    return cycles


def _depth(pipe: str) -> int:
    """K of one tcgen05.mma: 32 bytes of operand."""
    return {"tensor.tf32": 8, "tensor.fp16": 16, "tensor.bf16": 16}.get(pipe, 32)


def counted(loop: list[Instruction], pipe: str) -> float:
    """Operations per thread and trip of the pipe's kind, from the machine code."""
    if not pipe.startswith("tensor."):
        return sum(operations(each, pipe) for each in loop)
    total = 0.0
    for each in loop:
        if re.match(r"UTC[HIQO]MMA", each.opcode):
            total += 128 * 256 * _depth(pipe) * 2 / 128  # shape is in a register: M, N of the kernel's descriptor
        elif re.match(r"[HIQ]GMMA", each.opcode):
            total += products(each.opcode) * 2 / 128
        else:
            total += products(each.opcode) * 2 / 32
    return total
