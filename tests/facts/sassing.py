"""From PTX to the opcodes that a chip executes, by nvcc's assembler and nvdisasm.

``python -m tests.facts.sassing`` records them anew in ``opcodes.json``.  CUDA 13 knows neither 7.0 nor 7.2: what is recorded of
them, by CUDA 11.8 and 12, stays.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from pathlib import Path

from tests.facts.ptx import FRAME, Case, cases, module

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
    places = (
        [bins for folder in (spec.submodule_search_locations or []) for bins in Path(folder).glob("cu*/bin")] if spec else []
    )
    found = [one for one in (place / "nvdisasm" for place in sorted(places, reverse=True)) if one.is_file()]
    found += [Path(one)] if (one := shutil.which("nvdisasm")) else []
    return ([nvcc, "-cubin"], found[0]) if nvcc and found else None


def version(command: list[str], nvdisasm: Path) -> str:
    """The releases of assembler and disassembler."""
    texts = [
        subprocess.run([one, "--version"], check=True, capture_output=True, text=True).stdout for one in (command[0], nvdisasm)
    ]
    return " and ".join(
        f"{name} {re.findall(r'V([0-9.]+)', text)[0]}" for name, text in zip(("ptxas", "nvdisasm"), texts, strict=True)
    )


def opcodes_of(command: list[str], nvdisasm: Path, target: str, folder: Path, chosen: list[Case]) -> dict[str, dict[str, int]]:
    """What each case that the chip takes is made of, by its PTX: of tensor cases the floating-point and tensor opcodes.

    ``chosen`` begins with the case that does nothing.
    """
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


def write(found: Recorded, tools: str) -> None:
    """Record, chips that do the same together."""
    lines = []
    for case in cases():
        by_text: dict[str, list[str]] = {}
        for target, counts in found.get(case.ptx, {}).items():
            text = " ".join(name if count == 1 else f"{name}*{count}" for name, count in counts.items())
            by_text.setdefault(text, []).append(target.removeprefix("sm_"))
        if by_text:
            lines.append(f"{json.dumps(case.ptx)}: {json.dumps({' '.join(names): text for text, names in by_text.items()})}")
    before = json.loads(RECORD.read_text(encoding="utf-8"))
    head = {name: tools if name == "tools" else text for name, text in before.items() if name != "opcodes"}
    body = ",\n".join(lines)
    RECORD.write_text(json.dumps(head, indent=0)[:-2] + ',\n"opcodes": {\n' + body + "\n}\n}\n", encoding="utf-8")


def main() -> None:
    """Record anew; of chips that CUDA 13 does not know what is recorded stays."""
    tools = toolkit()
    if tools is None:
        raise SystemExit("no nvcc, or no nvdisasm (pip install nvidia-cuda-nvdisasm)")
    found: Recorded = {ptx: {t: each[t] for t in OLD_TARGETS if t in each} for ptx, each in read().items()}
    with tempfile.TemporaryDirectory() as folder:
        for target in TARGETS:
            for ptx, counts in opcodes_of(*tools, target, Path(folder), cases()).items():
                found.setdefault(ptx, {})[target] = counts
    write(found, version(*tools))


if __name__ == "__main__":
    main()
