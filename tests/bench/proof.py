"""The static proof: machine code as nvdisasm prints it, what its hot loops do and what binds them, held to what the table says.

Rates are per cycle and SM: operations from the architecture data of the package, the rest from data sheets and microbenchmarks.
"""

from __future__ import annotations

import math
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ncu_roofline.chips import load_spec
from ncu_roofline.chips.fields import parse_capability
from tests.bench.fakes import read_toml

_INSTRUCTION = re.compile(r"\s+/\*[0-9a-f]{4,}\*/\s+(?!@!PT)(?:@!?U?P\w+\s+)?([A-Z][\w.]*)\s*([^;]*);")
_TOLD = read_toml("kernels.toml")
_HALF, _GLOBAL = r"H(FMA|ADD|MUL)2", r"(LDG|STG|RED)"
# Packed FP16 multiplies and adds that are issued as FMAs: by one, or with zero as the addend.
_DEGENERATE = re.compile(r"(-RZ(\.H0_H0)?$|-RZ,\s*-RZ|,\s*-0,\s*-0$|,\s*1,\s*1,|, -0\b)")


class Instruction(NamedTuple):
    opcode: str  # with modifiers
    operands: str


@dataclass
class Function:
    """A kernel: its instructions, where its labels stand, its registers, bytes of stack and local memory."""

    instructions: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    registers: int = 0
    stack: int = 0
    local: int = 0


def disassemble(tools: tuple[Path, Path], cubin: Path) -> dict[str, Function]:
    """The functions of a cubin; ``tools``: cuobjdump and nvdisasm."""
    words = ([tools[0], "--dump-resource-usage", cubin], [tools[1], "-c", cubin])
    told, listing = (subprocess.run(one, check=True, capture_output=True, text=True).stdout for one in words)
    functions, current = dict[str, Function](), Function()
    for line in listing.splitlines():
        if match := re.match(r"\.text\.(\S+):", line):
            current = functions.setdefault(match[1], Function())
        elif line.startswith("//-----"):
            current = Function()
        elif match := re.match(r"\s*(\.L_\S+|\$\S+):", line):
            current.labels[match[1]] = len(current.instructions)
        elif match := _INSTRUCTION.match(line):
            current.instructions.append(Instruction(match[1], match[2].strip()))
    resources = r"Function (\S+):\s+REG:(\d+) STACK:(\d+) SHARED:\d+ LOCAL:(\d+)"
    for name, *numbers in re.findall(resources, told):
        if (of := functions.get(name)) is not None:
            of.registers, of.stack, of.local = map(int, numbers)
    return functions


def hot_loop(function: Function, target: str) -> list[Instruction]:
    """The loop (jump backwards) that holds most instructions of the kind ``target``; the shortest such.  [] if there is none.

    Blocks that call slow paths (divisions of odd numbers) are left out, and what waits behind the end of the kernel.
    """
    code, found = function.instructions, []
    for end, each in enumerate(code[: max((at for at, one in enumerate(code) if one.opcode == "EXIT"), default=0)]):
        match = re.search(r"(\.L_[^)\s]+)", each.operands) if each.opcode.startswith("BRA") else None
        start = function.labels.get(match[1], end) if match else end
        if start < end and (count := sum(bool(re.match(target, one.opcode)) for one in code[start : end + 1])):
            found.append((count, start - end, -end))
    if not found:
        return []
    _, length, end = max(found)
    start, end = length - end, -end
    borders = {index for index in function.labels.values() if start < index <= end}
    blocks: list[list[Instruction]] = [[]]
    for index in range(start, end + 1):
        if index in borders and blocks[-1]:
            blocks.append([])
        blocks[-1].append(code[index])
        if code[index].opcode.startswith(("BRA", "EXIT", "BSYNC")):
            blocks.append([])
    # ptxas also leaves loops by a CALL to a plain label
    kept = [block for block in blocks if not any(one.opcode[:4] == "CALL" and "$" in one.operands for one in block)]
    return [each for block in kept for each in block]


def width(opcode: str) -> int:
    return next((bits // 8 for bits in (256, 128, 64) if re.search(rf"\.(ENL2\.)?{bits}\b", opcode)), 4)


def moved(loop: Iterable[Instruction], opcodes: str) -> int:
    return sum(width(each.opcode) for each in loop if re.match(opcodes, each.opcode))


def products(opcode: str, pipe: str) -> float:
    """Multiply-adds of a tensor instruction, of the whole of it; 0 for others.

    The shape of tcgen05.mma is in a register: M, N of the kernel's descriptor, K 32 bytes of operand.
    """
    if re.match(_TOLD["tcgen05"].get(pipe, "UTCHMMA"), opcode):
        return 128 * 256 * {"tensor.tf32": 8, "tensor.fp16": 16, "tensor.bf16": 16, **_TOLD["fp4"]}.get(pipe, 32)
    if match := re.match(rf"([HIQ]G|[HIDQ])MMA\.{_TOLD['marks'].get(pipe, '')}(\d+)x(\d+)x(\d+)", opcode):
        return math.prod(int(each) for each in match.groups()[1:])
    match = re.match(rf"[HIDQO]MMA\.{_TOLD['marks'].get(pipe, '')}(16|8)8(\d+)", opcode)
    return int(match[1]) * 8 * int(match[2]) if match else 0


def operations(each: Instruction, kind: str) -> float:
    """Operations of the kind (fp64, fp32, fp16, bf16, int32) that an instruction does per thread."""
    opcode = each.opcode
    if kind == "fp64":
        return 2 if opcode.startswith("DFMA") else 1 if re.match(r"D(ADD|MUL)\b", opcode) else 0
    if kind == "fp32":
        packed = 2 if re.match(r"F(FMA|ADD|MUL)2", opcode) else 1
        return packed * (2 if opcode.startswith("FFMA") else 1 if re.match(r"F(ADD|MUL)", opcode) else 0)
    if kind in ("fp16", "bf16") and not opcode.startswith("HADD2.F32"):  # that is a conversion
        fused = opcode.startswith("HFMA2") and not _DEGENERATE.search(each.operands)
        return 4 if fused else 2 if re.match(_HALF, opcode) else 0
    return 2 if kind == "int32" and opcode == "IMAD" else 0


def loads_in_flight(loop: list[Instruction]) -> int:
    """The most loads of a thread that are under way before the first of them is used."""
    waiting, most = dict[int, int](), 0
    for each in loop * 2:  # the loads of a trip may overlap those of the next
        registers = [int(text) for text in re.findall(r"\bR(\d+)", each.operands)]
        is_load = each.opcode.startswith(("LDG", "LDS", "LD.", "ATOMS"))
        for used in registers[1:] if is_load else registers:
            waiting = {first: count for first, count in waiting.items() if not first <= used < first + count}
        if is_load:
            words = width(each.opcode) // 4
            halves = 2 if words == 8 and "ENL2" in each.opcode else 1
            for first, count in ((register, words // halves) for register in registers[:halves]):
                waiting = {one: size for one, size in waiting.items() if one + size <= first or first + count <= one}
                waiting[first] = count
            most = max(most, len(waiting) * min(4, words) * 4 // width(each.opcode))
    return most


def rate(pipe: str, capability: str) -> float | None:
    """Operations or bytes per cycle and SM of a pipe or level; None where the part has no such pipe."""
    of = _TOLD["relatives"].get(capability, capability)
    told = _TOLD["rates"].get(pipe, {})
    if found := told.get(of, told.get("else")):
        return float(found)
    architecture = load_spec().architecture(parse_capability(of) or (0, 0))
    assert architecture is not None, capability
    if pipe in ("l1", "shared"):
        return float(architecture.bandwidth[pipe][0])
    names = {"bf16": ["fp16.fma"], "tensor.fp8": [pipe, "tensor.fp8fp6fp4"]}.get(pipe, [pipe, f"{pipe}.fma"])
    return next((architecture.peaks[name] for name in names if name in architecture.peaks), None)


def busy(loop: list[Instruction], pipe: str, size: float, capability: str) -> dict[str, float]:
    """Cycles of an SM per trip of a warp, by part: what ``pipe`` names (``size`` bytes per thread), and all in its way."""
    cycles: dict[str, float] = defaultdict(float, issue=len(loop) / 4)
    own = rate(pipe, capability)
    assert own, f"no rate of {pipe} on {capability}"
    for part, count in (_part(each.opcode, pipe, own, capability) for each in loop):
        cycles[part] += count
    if pipe in ("dram", "l2", "host", "dsmem"):
        cycles[pipe] += size * 32 / own
    return cycles


def _part(opcode: str, pipe: str, own: float, capability: str) -> tuple[str, float]:
    if found := products(opcode, pipe):  # of a group of four warps, one issues for all
        return pipe, found * 2 / own / (1 if re.match(r"[HIDQO]MMA", opcode) else 4)
    if re.match(r"(LDG|LDS|STG|STS|LDL|STL|ATOMS|RED)", opcode):
        level = "shared" if pipe == "shared" else "l1"
        return level, width(opcode) * 32 / (rate(level, capability) or 1)
    if re.match(_HALF, opcode):
        name = "bf16" if "BF16" in opcode else "fp16"
        part = pipe if pipe in ("fp16", "bf16") else "half"
        return part, 4 * 32 / (rate(name, capability) or 256)  # an add takes the pipe as long as an FMA
    if re.match(r"D(FMA|ADD|MUL|SETP)", opcode):
        return "fp64", 64 / (rate("fp64", capability) or 1)
    if re.match(r"F(FMA|ADD|MUL)", opcode):
        return "fp32", (128 if re.match(r"F(FMA|ADD|MUL)2", opcode) else 64) / (rate("fp32", capability) or 1)
    if pipe == "int32" and opcode == "IMAD":
        return pipe, 64 / own
    if re.match(r"(MUFU|I2F|F2I|F2F)", opcode):
        return "xu", 2.0
    return ("alu", 0.5) if re.match(_TOLD["alu"], opcode) else ("other", 0.25)


def counted(loop: list[Instruction], pipe: str) -> float:
    """Operations per thread and trip of the pipe's kind, from the machine code."""
    if not pipe.startswith("tensor."):
        return sum(operations(each, pipe) for each in loop)
    return sum(products(each.opcode, pipe) * 2 / (32 if re.match(r"[HIDQO]MMA", each.opcode) else 128) for each in loop)


def capability_of(target: str) -> str:
    return re.sub(r"(\d+)(\d)\D*", r"\1.\2", target)


def applies(row: dict[str, Any], target: str) -> bool:
    """Whether a kernel exists on a target; those of wgmma and tcgen05 need the targets with an a."""
    number, special = int(re.sub(r"\D", "", target)), re.search(_TOLD["special"], row["ceiling"])
    return row["since"] <= number and (not row["until"] or number <= row["until"]) and (not special or target.endswith("a"))


def prove(row: dict[str, Any], function: Function, target: str) -> str:
    """Why a kernel's code does not do what its row promises: "" where it does, "emulated" where a pipe is missing."""
    pipe, capability = row["pipe"], capability_of(target)
    kind = r"UBLKCP\.G\.S|LDS|BAR" if "bulk" in row["variant"] else _TOLD["loops"].get(pipe.partition(".")[0], _GLOBAL)
    loop = hot_loop(function, kind)
    # Some compilers even hoist emulated products out of the loop: then all of the function is looked at.
    emulates = "tensor.fp8" in pipe and any(re.match(r"F2FP|HADD2|PRMT", one.opcode) for one in loop or function.instructions)
    if emulates or (loop and rate(pipe, capability) is None):
        return "emulated"
    return "; ".join(_reasons(row, function, loop, capability)) if loop else "no loop holds what it should be made of"


def _reasons(row: dict[str, Any], function: Function, loop: list[Instruction], capability: str) -> Iterator[str]:
    spills = sum(each.opcode.startswith(("LDL", "STL")) for each in function.instructions)
    if spills or function.stack or function.local:
        yield f"local memory: {spills} loads and stores, {function.stack} bytes of stack"
    pipe = "fp32" if row["ceiling"] == "dram.triad" else row["pipe"]
    if row["operations"] and abs(counted(loop, pipe) - row["operations"]) > 1e-6:
        yield f"{counted(loop, pipe):g} operations per trip, {row['operations']:g} promised"
    one = 2 if pipe in ("fp16", "bf16") else 1  # what does more is fused; packed FP32 is fused or absent
    fused = sum(operations(each, pipe) > one for each in loop) if pipe in ("fp64", "fp32", "fp16", "bf16") else 0
    if row["ceiling"].endswith(".nofma") and fused:
        yield f"{fused} fused multiply-adds where none was meant"
    if row["ceiling"].endswith(".fma") and sum(operations(each, pipe) > 0 for each in loop) > fused:
        yield "multiplies and adds apart where fused ones were meant"
    if told := _TOLD["hfma2"].get(row["ceiling"]):
        halves = [each.opcode.startswith("HFMA2") for each in loop if re.match(_HALF, each.opcode)]
        if (share := sum(halves) / len(halves)) > (most := told.get(capability, told["else"])):
            yield f"{share:.0%} of it are written as multiply-adds with one or zero, not {most:.0%}"
    bulk, streams = "bulk" in row["variant"], row["streams"]
    found = moved(loop, r"(LDS|STS)" if bulk else _TOLD["loops"][pipe] if pipe in ("shared", "dsmem") else _GLOBAL)
    if found != row["bytes"] and not (bulk and streams == 2):  # what is copied from slot to memory passes no thread
        yield f"{found} bytes per trip, {row['bytes']:g} promised"
    if bulk and (copies := sum(each.opcode.startswith("UBLKCP") for each in loop)) != streams:
        yield f"{copies} asynchronous copies per trip of {streams} arrays"
    match = re.match(r"(?:zero_copy_|coherent_)?(?:ld|atoms).*?(?:_i(\d+)|$)", row["variant"])
    if match and (flying := loads_in_flight(loop)) < (wanted := int(match[1] or 8) * max(streams - 1, 1)):
        yield f"{flying} loads in flight, {wanted} promised"
    if streams > 1 and 2 * row["threads"] * math.ceil(function.registers / 8) * 8 > 65536:
        yield f"{function.registers} registers: no two blocks on an SM, so that nobody loads while one stores"
    need = next((opcode for word, opcode in _TOLD["needs"].items() if word in row["variant"]), "")
    yield from [f"no {need}"] if not any(re.match(need, each.opcode) for each in loop) else []
    cycles = busy(loop, row["pipe"], row["bytes"], capability)
    binding, most = max(cycles.items(), key=lambda item: item[1])
    if not row["ceiling"].endswith(".div") and cycles[row["pipe"]] < 0.9 * most:
        yield f"{binding} binds ({most:g} cycles per trip) before {row['pipe']} ({cycles[row['pipe']]:g})"
