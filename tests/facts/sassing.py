"""PTX of every tensor shape and type, of scalar and packed arithmetic, and the opcodes that chips execute for it.

Tensor instructions are those recorded in ``opcodes.json``, the others those of ``ptx.toml``.  Where nvcc's assembler
and nvdisasm give others, UPDATE_GOLDEN=1 records these; CUDA 13 knows neither 7.0 nor 7.2: what is recorded of them stays.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ncu_roofline.chips.fields import expand
from tests.facts.stated import toml

BITS = {"f64": 64, "f32": 32, "s32": 32, "tf32": 32, "f16": 16, "bf16": 16, "s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1}
BITS |= dict.fromkeys(("e4m3", "e5m2", "e3m2", "e2m3", "e2m1"), 8)
"""Bits of an element in registers; FP6 and FP4 stand in bytes except in the MX kinds of FP4 alone."""

FRAME = "(frame)"  # name of the case that does nothing
LANES = 32 * 32  # bits of one 32-bit register of a warp
_IN_REGISTERS = " A in registers"
_SHAPE = re.compile(r"\.m(\d+)n(\d+)k(\d+)\.")


@dataclass(frozen=True)
class Case:
    """One PTX instruction.  ``work``: operations of a warp (mma, wmma), a warpgroup (wgmma) or a thread, 0 where unknown.
    ``family``: "mma", "wgmma", "tcgen05" or "" for arithmetic.  ``body``: what its kernel does."""

    ptx: str
    body: str
    family: str
    work: float
    types: tuple[str, ...]
    accumulator: str = ""
    sparse: bool = False


class _Body:
    """Registers with unknown contents, and stores of what an instruction gives."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._count = 0

    def register(self, kind: str) -> str:
        self._count += 1
        self.lines.append(f".reg .{kind} x{self._count};")
        return f"x{self._count}"

    def loaded(self, kind: str) -> str:
        name = self.register(kind)
        self.lines.append(f"ld.global.{kind} {name}, [in+{8 * self._count}];")
        return name

    def many(self, kind: str, count: float) -> str:
        """So many, in braces."""
        return _braces([self.loaded(kind) for _ in range(round(count))])

    def store(self, kind: str, names: list[str]) -> None:
        self.lines += [f"st.global.{kind} [out+{8 * index}], {name};" for index, name in enumerate(names)]


def _braces(names: list[str]) -> str:
    return "{" + ", ".join(names) + "}"


def _kind(element: str) -> str:
    return element if element in ("f64", "f32") else "b32"


def _product(ptx: str, shape: tuple[int, int, int], types: list[str]) -> Case:
    """A warp's product of matrices in registers (mma, wmma): types of D, A, B and C."""
    (m, n, k), (d, a, b, c), body = shape, types, _Body()
    sparse, quads, wmma = ".sp" in ptx, shape == (8, 8, 4) and types[1] == "f16", ptx.startswith("wmma")
    width = 4 if "::mxf4" in ptx else BITS[a]
    of_a, of_b, of_d = (size * bits / LANES for size, bits in ((m * k, width), (n * k, width), (m * n, BITS[d])))
    if quads:  # one product for each quad pair of the warp
        of_a, of_b, of_d = 2, 2, 8 if d == "f32" else 4
    elif wmma and a == "f16":
        of_a = of_b = 8
    words, source = (2, "f64") if a == "f64" else (1, "b32")
    left, right = body.many(source, of_a / (1 + sparse) / words), body.many(source, of_b / words)
    added = body.many(_kind(c), of_d / words * BITS[c] / BITS[d])
    given = [body.register(_kind(d)) for _ in range(round(of_d / words))]
    after = ["REG", "0x0"] * sparse + ["REG", "{0, 0}", "REG", "{0, 0}"] * ("block_scale" in ptx)
    extra = "".join(f", {body.loaded('b32') if word == 'REG' else word}" for word in after)
    body.lines.append(f"{ptx} {_braces(given)}, {left}, {right}, {added}{extra};")
    body.store(_kind(d), given)
    wider = max(c, d) if wmma else d  # f16 and f32: wmma adds products in the wider of the two
    return Case(ptx, "\n".join(body.lines), "mma", 2.0 * m * n * k * (4 if quads else 1), (a, b), wider, sparse)


def _warpgroup(shown: str, shape: tuple[int, int, int], types: list[str]) -> Case:
    (_, n, k), (d, a, b), body = shape, types, _Body()
    ptx, sparse, registers = shown.removesuffix(_IN_REGISTERS), ".sp" in shown, shown.endswith(_IN_REGISTERS)
    given = [body.loaded(_kind(d)) for _ in range(round(64 * n * BITS[d] / LANES / 4))]
    left = body.many("b32", 4) if registers else body.loaded("b64")
    right = body.loaded("b64")
    meta = f", {body.loaded('b32')}, 0" if sparse else ""
    scales = "" if d == "s32" else ", 1, 1"
    turned = (", 0" if registers else ", 0, 0") if a in ("f16", "bf16") else ""
    body.lines += ["wgmma.fence.sync.aligned;", f"{ptx} {_braces(given)}, {left}, {right}{meta}, 1{scales}{turned};"]
    body.lines += ["wgmma.commit_group.sync.aligned;", "wgmma.wait_group.sync.aligned 0;"]
    body.store(_kind(d), given)
    return Case(shown, "\n".join(body.lines), "wgmma", 2.0 * 64 * n * k, (a, b), d, sparse)


def _descriptors(ptx: str) -> Case:
    """A product of tcgen05, whose shape is in a descriptor."""
    body, sparse = _Body(), ".sp" in ptx
    body.lines += [".reg .pred yes;", "setp.ne.b32 yes, one, 0;"]
    d, a, b = body.loaded("b32"), body.loaded("b64"), body.loaded("b64")
    meta = f", [{body.loaded('b32')}]" if sparse else ""
    descriptor = body.loaded("b32")
    factors = f", [{body.loaded('b32')}], [{body.loaded('b32')}]" if "block_scale" in ptx else ""
    body.lines.append(f"{ptx} [{d}], {a}, {b}{meta}, {descriptor}{factors}, yes;")
    return Case(ptx, "\n".join(body.lines), "tcgen05", 0, (ptx.partition("kind::")[2].partition(".")[0],), "", sparse)


def _tensor(ptx: str) -> Case:
    if ptx.startswith("tcgen05"):
        return _descriptors(ptx)
    found = _SHAPE.search(ptx)
    assert found
    m, n, k = map(int, found.groups())
    types = [word for word in ptx.removesuffix(_IN_REGISTERS)[found.end() :].split(".") if word in BITS]
    if ptx.startswith("wgmma"):
        return _warpgroup(ptx, (m, n, k), types)
    d, *others = types
    return _product(ptx, (m, n, k), types if len(types) == 4 else [d, "f16", "f16", *others])


def _simple(ptx: str, kind: str, sources: int, work: float, of: str, result: str = "", mixed: str = "") -> Case:
    body = _Body()
    given = [body.loaded(each) for each in [*[kind] * (sources - 1), mixed or kind]]
    d = body.register(result or kind)
    body.lines.append(f"{ptx} {', '.join([d, *given])};")
    body.store(result or kind, [d])
    return Case(ptx, "\n".join(body.lines), "", work, (of,))


@cache
def cases() -> list[Case]:
    """All of them, after one that only loads and stores; which ones a chip takes, its assembler says."""
    frame = _Body()
    frame.store("b32", [frame.loaded("b32")])
    record = json.loads((RECORD).read_text(encoding="utf-8"))["opcodes"]
    tensor = [ptx for ptx in record if ptx.startswith(("mma", "wmma", "wgmma", "tcgen05"))]
    rows = toml(RECORD.parent / "ptx.toml")["rows"]
    scalar = [_simple(**{**row, "ptx": ptx}) for row in rows for ptx in expand(row["ptx"])]
    return [Case(FRAME, "\n".join(frame.lines), "", 0, ()), *map(_tensor, tensor), *scalar]


def module(version: str, target: str, chosen: list[Case]) -> str:
    """The text of a module with one kernel, ``k<index>``, for each case; line numbers of errors find the case by its kernel."""
    kernels = [
        f".visible .entry k{index}(.param .u64 p, .param .u64 q, .param .u32 r)\n{{\n.reg .b64 in, out;\n.reg .b32 one;\n"
        f"ld.param.u64 in, [p];\nld.param.u64 out, [q];\nld.param.u32 one, [r];\n{case.body}\nret;\n}}"
        for index, case in enumerate(chosen)
    ]
    return f".version {version}\n.target {target}\n.address_size 64\n" + "\n".join(kernels) + "\n"


RECORD = Path(__file__).parent / "opcodes.json"
TARGETS = tuple(f"sm_{name}" for name in ["75", "80", "86", "87", "89", "90a", "100a", "103a", "110a", "120a", "121a"])
OLD_TARGETS = ("sm_70", "sm_72")
PTX_VERSION, OLD_PTX_VERSION = "9.0", "7.8"

_ERROR = re.compile(r", line (\d+); (?:error|fatal)")
_KERNEL = re.compile(r"\.text\.k(\d+):")
_OPCODE = re.compile(r"\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)")
_MOVES = re.compile(
    r"(BAR|BMOV|BRA|BSSY|BSYNC|CALL|CCTL|CS2U?R|DEPBAR|ELECT|EXIT|IMAD\.MOV|LDCU?|LDG|MOV|NOP|R2UR|RET|S2U?R)\b"
)
_MOVES_TOO = re.compile(r"(SHFL|STG|U?LDC|UMOV|UISETP|ULOP3|USHF|WARPGROUP|WARPSYNC|YIELD)\b")
_FLOATING = re.compile(r"U?[A-Z]*MMA|[DFH](ADD|MUL|FMA)|FH")

Recorded = dict[str, dict[str, dict[str, int]]]
"""PTX -> target -> opcode -> how many."""


def toolkit() -> tuple[list[str], Path] | None:
    """How to assemble, and nvdisasm of a toolkit or of the package nvidia-cuda-nvdisasm; None where one is absent."""
    nvcc = shutil.which(os.environ.get("NVCC", "nvcc"))
    spec = importlib.util.find_spec("nvidia")
    folders = (spec.submodule_search_locations or []) if spec else []
    places = [bins for folder in folders for bins in Path(folder).glob("cu*/bin")]
    found = [one for one in (place / "nvdisasm" for place in sorted(places, reverse=True)) if one.is_file()]
    found += [Path(one)] if (one := shutil.which("nvdisasm")) else []
    return ([nvcc, "-cubin"], found[0]) if nvcc and found else None


def version(command: list[str], nvdisasm: Path) -> str:
    """The releases of assembler and disassembler."""
    programs = (command[0], nvdisasm)
    texts = [subprocess.run([one, "--version"], check=True, capture_output=True, text=True).stdout for one in programs]
    return "ptxas {} and nvdisasm {}".format(*(re.findall(r"V([0-9.]+)", text)[0] for text in texts))


def opcodes_of(command: list[str], nvdisasm: Path, target: str, folder: Path, chosen: list[Case]) -> dict[str, dict[str, int]]:
    """What each case of ``chosen``, of which the first does nothing, is made of; of tensor cases only what computes."""
    ptx = OLD_PTX_VERSION if target in OLD_TARGETS else PTX_VERSION
    cubin, taken = assemble(command, ptx, target, chosen, folder)
    counted = _disassemble(nvdisasm, cubin)
    frame = counted[0]
    found = {}
    for index, case in enumerate(taken):
        only = {name: count for name, count in (counted[index] - frame).items() if not case.family or _FLOATING.match(name)}
        if case.ptx != FRAME:
            found[case.ptx] = dict(sorted(only.items()))
    return found


def assemble(command: list[str], ptx: str, target: str, left: list[Case], folder: Path) -> tuple[Path, list[Case]]:
    """A cubin of all cases that the assembler takes for ``target`` (``sm_90a``), and these cases, in order."""
    source, cubin = folder / f"{target}.ptx", folder / f"{target}.cubin"
    while True:
        text = module(ptx, target, left)
        source.write_text(text, encoding="ascii")
        words = [*command, f"-arch={target}", str(source), "-o", str(cubin)]
        done = subprocess.run(words, check=False, capture_output=True, text=True)
        if not done.returncode:
            return cubin, left
        wrong = _cases_at(text, {int(line) for line in _ERROR.findall(done.stdout + done.stderr)})
        if not wrong:
            raise RuntimeError(done.stdout + done.stderr)
        left = [case for index, case in enumerate(left) if index not in wrong]


def _cases_at(text: str, numbers: set[int]) -> set[int]:
    """Indices of the kernels that hold these lines, counted from 1."""
    found, index = set(), -1
    for number, line in enumerate(text.split("\n"), 1):
        index += line.startswith(".visible .entry k")
        if number in numbers:
            found.add(index)
    return found


def _disassemble(nvdisasm: Path, cubin: Path) -> dict[int, Counter[str]]:
    """Opcodes with modifiers of each kernel by its index, without moves, loads, stores and jumps."""
    done = subprocess.run([str(nvdisasm), "-c", str(cubin)], check=True, capture_output=True, text=True)
    found: dict[int, Counter[str]] = {}
    current: Counter[str] | None = None
    for line in done.stdout.splitlines():
        if match := _KERNEL.match(line):
            current = found.setdefault(int(match[1]), Counter())
        elif line.startswith("//-----"):
            current = None
        elif (
            current is not None
            and (match := _OPCODE.match(line))
            and not (_MOVES.match(match[1]) or _MOVES_TOO.match(match[1]))
        ):
            current[match[1]] += 1
    return found


def read() -> Recorded:
    """What is recorded."""
    record = json.loads(RECORD.read_text(encoding="utf-8"))["opcodes"]
    return {
        ptx: {f"sm_{name}": _counts(text) for names, text in by_chips.items() for name in names.split()}
        for ptx, by_chips in record.items()
    }


def _counts(text: str) -> dict[str, int]:
    return {name: int(count or 1) for name, _, count in (word.partition("*") for word in text.split())}


def write(found: dict[str, dict[str, dict[str, int]]], tools: str) -> None:
    """Record what targets make of cases, those that do the same together."""
    lines, kept = [], read()
    for case in cases():
        by_text: dict[str, list[str]] = {}
        of_case = {target: kept[case.ptx][target] for target in OLD_TARGETS if target in kept.get(case.ptx, {})}
        of_case |= {target: by_ptx[case.ptx] for target, by_ptx in found.items() if case.ptx in by_ptx}
        for target, counts in of_case.items():
            text = " ".join(name if count == 1 else f"{name}*{count}" for name, count in counts.items())
            by_text.setdefault(text, []).append(target.removeprefix("sm_"))
        if by_text:
            lines.append(f"{json.dumps(case.ptx)}: {json.dumps({' '.join(names): text for text, names in by_text.items()})}")
    before = json.loads(RECORD.read_text(encoding="utf-8"))
    head = {name: tools if name == "tools" else text for name, text in before.items() if name != "opcodes"}
    body = ",\n".join(lines)
    RECORD.write_text(json.dumps(head, indent=0)[:-2] + ',\n"opcodes": {\n' + body + "\n}\n}\n", encoding="utf-8")
