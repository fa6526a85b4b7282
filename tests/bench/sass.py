"""Machine code of a cubin as nvdisasm prints it: functions, hot loops, what their instructions do."""

from __future__ import annotations

import math
import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

_INSTRUCTION = re.compile(r"\s+/\*([0-9a-f]{4,})\*/\s+(@!?U?P\w+\s+)?([A-Z][\w.]*)\s*([^;]*);")
_LABEL = re.compile(r"\s*(\.L_\S+|\$\S+):")
_RESOURCES = re.compile(r"Function (\S+):\s+REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)")


@dataclass(frozen=True)
class Instruction:
    """One instruction: predicate ("" if none), opcode with modifiers, operands as text."""

    predicate: str
    opcode: str
    operands: str


@dataclass
class Function:
    """A kernel: its instructions, where its labels stand, its registers and bytes of stack and local memory."""

    instructions: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    registers: int = 0
    stack: int = 0
    local: int = 0


def disassemble(tools: tuple[Path, Path], cubin: Path) -> dict[str, Function]:
    """The functions of a cubin; ``tools``: cuobjdump and nvdisasm."""
    cuobjdump, nvdisasm = tools
    functions: dict[str, Function] = {}
    current: Function | None = None
    for line in _run(nvdisasm, "-c", cubin).splitlines():
        if match := re.match(r"\.text\.(\S+):", line):
            current = functions.setdefault(match[1], Function())
        elif line.startswith("//-----"):
            current = None
        elif current is not None:
            _take(current, line)
    for name, registers, stack, _, local in _RESOURCES.findall(_run(cuobjdump, "--dump-resource-usage", cubin)):
        if name in functions:
            function = functions[name]
            function.registers, function.stack, function.local = int(registers), int(stack), int(local)
    return functions


def _run(tool: Path, *words: object) -> str:
    return subprocess.run([str(tool), *map(str, words)], check=True, capture_output=True, text=True).stdout


def _take(function: Function, line: str) -> None:
    if match := _LABEL.match(line):
        function.labels[match[1]] = len(function.instructions)
    elif match := _INSTRUCTION.match(line):
        predicate, opcode, operands = match[2], match[3], match[4]
        function.instructions.append(Instruction((predicate or "").strip(), opcode, operands.strip()))


def hot_loop(function: Function, target: str) -> list[Instruction]:
    """The loop (jump backwards) that holds most instructions of the kind ``target``; the shortest such.  [] if there is none.

    Calls to slow paths (divisions of odd numbers) are left out: the blocks that hold them.
    """
    best: tuple[int, int, int] | None = None
    for end, instruction in enumerate(function.instructions):
        match = re.search(r"(\.L_[^)\s]+)", instruction.operands) if instruction.opcode.startswith("BRA") else None
        start = function.labels.get(match[1], end) if match else end
        if start >= end:
            continue
        found = sum(bool(re.match(target, each.opcode)) for each in function.instructions[start : end + 1])
        if found and (best is None or (found, start - end) > (best[0], best[1] - best[2])):
            best = (found, start, end)
    return [] if best is None else _without_calls(function, best[1], best[2])


def _without_calls(function: Function, start: int, end: int) -> list[Instruction]:
    borders = {index for index in function.labels.values() if start < index <= end}
    blocks: list[list[Instruction]] = [[]]
    for index in range(start, end + 1):
        if index in borders and blocks[-1]:
            blocks.append([])
        blocks[-1].append(function.instructions[index])
        if function.instructions[index].opcode.startswith(("BRA", "EXIT", "BSYNC")):
            blocks.append([])
    return [each for block in blocks if not any(_calls(one) for one in block) for each in block]


def _calls(each: Instruction) -> bool:
    return each.opcode.startswith("CALL") and "$" in each.operands  # ptxas also leaves loops by a CALL to a plain label


def width(opcode: str) -> int:
    """Bytes per thread of a load or store."""
    return next((bits // 8 for bits in (256, 128, 64) if re.search(rf"\.(ENL2\.)?{bits}\b", opcode)), 4)


def moved(loop: Iterable[Instruction], opcodes: str) -> int:
    """Bytes per thread that loads and stores of a kind move."""
    return sum(width(each.opcode) for each in loop if re.match(opcodes, each.opcode))


def products(opcode: str) -> float:
    """Multiply-adds of a tensor instruction, of the whole of it; 0 for others."""
    if match := re.match(r"[HIQ]GMMA\.(\d+)x(\d+)x(\d+)", opcode):
        return math.prod(int(each) for each in match.groups())
    if match := re.match(r"[HIDQ]MMA\.(\d+)x(\d+)x(\d+)", opcode):
        return math.prod(int(each) for each in match.groups())
    if match := re.match(r"[HIDQ]MMA\.(16|8)8(\d+)", opcode):
        return int(match[1]) * 8 * int(match[2])
    return 0


# Packed FP16 multiplies and adds that are issued as FMAs: by one, or with zero as the addend.
_DEGENERATE = re.compile(r"(-RZ(\.H0_H0)?$|-RZ,\s*-RZ|,\s*-0,\s*-0$|,\s*1,\s*1,|, -0\b)")


def operations(instruction: Instruction, kind: str) -> float:
    """Operations of the kind (fp64, fp32, fp16, bf16, int32) that an instruction does per thread."""
    opcode = instruction.opcode
    if kind == "fp64":
        return 2 if opcode.startswith("DFMA") else 1 if re.match(r"D(ADD|MUL)\b", opcode) else 0
    if kind == "fp32":
        packed = 2 if re.match(r"F(FMA|ADD|MUL)2", opcode) else 1
        return packed * (2 if opcode.startswith("FFMA") else 1 if re.match(r"F(ADD|MUL)", opcode) else 0)
    if kind in ("fp16", "bf16"):
        if opcode.startswith("HADD2.F32"):  # a conversion
            return 0
        if opcode.startswith("HFMA2"):
            return 2 if _DEGENERATE.search(instruction.operands) else 4
        return 2 if re.match(r"H(ADD|MUL)2", opcode) else 0
    return 2 if kind == "int32" and opcode == "IMAD" else 0


def loads_in_flight(loop: list[Instruction]) -> int:
    """The most loads of a thread that are under way before the first of them is used."""
    waiting: dict[int, int] = {}
    most = 0
    for each in loop * 2:  # the loads of a trip may overlap those of the next
        registers = [int(text) for text in re.findall(r"\bR(\d+)", each.operands)]
        is_load = each.opcode.startswith(("LDG", "LDS"))
        for used in registers[1:] if is_load else registers:
            waiting = {first: count for first, count in waiting.items() if not first <= used < first + count}
        if is_load:
            words = width(each.opcode) // 4
            halves = [(registers[0], 4), (registers[1], 4)] if words == 8 and "ENL2" in each.opcode else [(registers[0], words)]
            for first, count in halves:
                waiting = {one: size for one, size in waiting.items() if one + size <= first or first + count <= one}
                waiting[first] = count
            most = max(most, len(waiting) * min(4, words) * 4 // width(each.opcode))
    return most
