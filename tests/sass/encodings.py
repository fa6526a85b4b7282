"""How instructions are encoded, told by nvdisasm about made-up ones: every number and form of operands, the rest at random.

``python -m tests.sass.encodings --old-nvdisasm PROGRAM`` writes ``ncu_roofline/data/sass.toml`` anew; the old nvdisasm, of
CUDA 11 or 12 (wheels of triton up to 3.1 hold one), is for 7.0 and 7.2, which newer ones don't know.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import tempfile
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ncu_roofline.chips.fields import parse_capability, parse_target
from ncu_roofline.formats.sass.cubin import Cubin
from tests.facts import sassing
from tests.facts.sassing import cases

DATA = Path(__file__).parents[2] / "ncu_roofline" / "data" / "sass.toml"

Word = int
"""The 128 bits of an instruction."""
Said = tuple[str, str, str]
"""What nvdisasm says of an instruction: predicate, opcode with modifiers, operands."""

CHIPS = {
    "7.0": "SM70", "7.2": "SM72", "7.5": "SM75", "8.0": "SM80", "8.6": "SM86", "8.7": "SM87", "8.9": "SM89",
    "9.0": "SM90a", "10.0": "SM100a", "10.3": "SM103a", "11.0": "SM110a", "12.0": "SM120a", "12.1": "SM121a",
}  # fmt: skip
"""Compute capability -> what nvdisasm calls the chip."""

OLD = ("7.0", "7.2")
SIZE, NUMBERS, FORMS = 16, 512, 8
HEAD = """\
# How instructions are encoded, from compute capability 7.0 on: 16 bytes, of which the lowest nine bits are the number of the
# opcode.  Names and modifiers are written by `python -m tests.sass.encodings` from what nvdisasm says of made-up instructions;
# chips and numbers that it was not asked about are unknown.

"""
BETWEEN = """\
# Modifiers that decide work and bytes.  ``words``: what the values of the bits stand for, from 0 on; "?" where nothing is
# known.  The name itself where [[names]] has none.

"""
TAIL = """\
# Written as IMAD.MOV: a product with nothing, or with one and nothing added.  Those with a carry (bit 74, .X) are not, nor,
# from 7.5 on, those with uniform operands (bit 91).
[[aliases]]
capabilities = "7.0-7.2"
numbers = ["0x024"]
word = "MOV"
cases = [
  "74=0 24-31=255",
  "74=0 9-11=1 32-39=255",
  "74=0 9-11=2 64-71=255",
  "74=0 9-11=3 64-71=255",
  "74=0 9-11=4 32-63=0",
  "74=0 9-11=4 32-63=1 64-71=255",
]

[[aliases]]
capabilities = "7.5-12.1"
numbers = ["0x024"]
word = "MOV"
cases = [
  "74=0 91=0 24-31=255",
  "74=0 91=0 9-11=1 32-39=255",
  "74=0 91=0 9-11=2 64-71=255",
  "74=0 91=0 9-11=3 64-71=255",
  "74=0 91=0 9-11=4 32-63=0",
  "74=0 91=0 9-11=4 32-63=1 64-71=255",
]

# Bits of the signed distance of relative branches and calls, from the next instruction on, in units of four bytes.
[[targets]]
capabilities = "7.0-8.9"
bits = "34-81"

[[targets]]
capabilities = "9.0-12.1"
bits = "16-23, 34-81"
"""
_NOP = 0x000FC000000000000000000000007918
_ALWAYS = 7 << 12
_SCHEDULING = 0x000FC << 108
"""Bits 105 and up tell when an instruction may start, nothing of what it does."""
_ADDRESS = re.compile(r"address (0x[0-9a-f]+)")
_LINE = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+\{?\s*(?:(@!?U?P\w+)\s+)?([A-Z_][\w.]*)(.*?);")


class Disassembler:
    """An nvdisasm, asked about instructions of one chip."""

    def __init__(self, tool: Path, chip: str) -> None:
        self._command = [str(tool), "--binary", CHIPS[chip], "--no-dataflow"]

    def say(self, words: Sequence[Word]) -> list[Said | None]:
        """What it says of each instruction alone; None of those that it refuses."""
        if not words:
            return []
        left = list(words)
        refused: set[int] = set()
        while True:
            done = self._run(left)
            if not done.returncode:
                break
            new = {int(one, 16) // SIZE for one in _ADDRESS.findall(done.stdout + done.stderr)} - refused
            if not new:  # an error without its place: in one half or the other
                half = len(words) // 2
                return [*self.say(words[:half]), *self.say(words[half:])] if half else [None]
            refused |= new
            left = [_NOP if index in new else word for index, word in enumerate(left)]
        said: list[Said | None] = [None] * len(left)
        for line in done.stdout.splitlines():
            if (match := _LINE.match(line)) and (index := int(match[1], 16) // SIZE) not in refused and index < len(left):
                said[index] = match[2] or "", match[3], match[4].strip()
        return said

    def _run(self, words: Sequence[Word]) -> subprocess.CompletedProcess[str]:
        with tempfile.NamedTemporaryFile(suffix=".bin") as file:
            file.write(b"".join(word.to_bytes(SIZE, "little") for word in words))
            file.flush()
            return subprocess.run([*self._command, file.name], check=False, capture_output=True, text=True, errors="replace")


def made_up(rng: random.Random, number: int, form: int) -> Word:
    """An instruction of this number: few bits or many, registers often RZ, predicates often PT, its own always."""
    share = rng.choice((0.03, 0.1, 0.3, 0.5))
    word = sum(1 << bit for bit in range(16, 105) if rng.random() < share)
    for register in (16, 24, 32, 64):
        word |= 0xFF << register if rng.random() < 0.5 else 0
    for predicate in (77, 81, 84, 87):
        word |= 7 << predicate if rng.random() < 0.5 else 0
    return word | number | form << 9 | _ALWAYS | _SCHEDULING


def sample(disassembler: Disassembler, rng: random.Random, numbers: Iterable[int], rounds: int) -> list[tuple[Word, Said]]:
    """Made-up instructions that nvdisasm takes, with what it says of them."""
    words = [made_up(rng, number, form) for number in numbers for form in range(FORMS) for _ in range(rounds)]
    return [(word, said) for word, said in zip(words, disassembler.say(words), strict=True) if said]


_MNK = r"(?:\.(SF))?(?:\.(SP))?(?:\.REGOFFSET)?\.(\d+(?:x\d+x\d+)?)"
_SUM, _SMALL, _INTEGER, _BITS = r"\.(F16|F32)", r"\.(E4M3|E5M2|E3M2|E2M3|E2M1)", r"\.([SU][48])", r"\.(XOR|AND)\.(POPC)"
_HALF = r"(?:\.(BF16|TF32))?(?:\.(SATFINITE))?"
_SIZE = r"(?=(?:\.\w+)*?\.(U8|S8|U16|S16|64|96|128|256)(?:\.|$)|)"
_MATRICES = r"\.(\w+)\.(\w+)(?:\.(\d))?$"
MODIFIERS = {
    0x030: r"HADD2(?:\.(F32|BF16_V2))?",
    0x031: r"HFMA2(?:\.(MMA))?(?:\.(BF16_V2))?",
    0x032: r"HMUL2(?:\.(BF16_V2))?",
    0x035: r"HFMA2\.(MMA)(?:\.(BF16_V2))?",
    0x036: rf"HMMA\.(\d+){_SUM}{_SUM}\.(STEP\d)(?:\.(SATFINITE))?$",
    0x037: rf"IMMA{_MNK}{_INTEGER}{_INTEGER}(?:\.(SAT))?$",
    0x03B: f"LDSM{_MATRICES}",
    0x03C: rf"HMMA{_MNK}{_SUM}{_HALF}$",
    0x03D: rf"BMMA{_MNK}{_BITS}$",
    0x03F: rf"DMMA{_MNK}(?:\.(RM|RP|RZ))?$",
    0x044: f"STSM{_MATRICES}",
    0x07A: rf"QMMA{_MNK}{_SUM}{_SMALL}{_SMALL}(?:\.(E8))?$",
    0x07F: rf"OMMA{_MNK}{_SUM}{_SMALL}{_SMALL}\.(E8|UE4M3)(?:\.(4X))?$",
    0x1AE: r"LDGSTS(?=(?:\.\w+)*?\.(BYPASS)(?:\.|$)|)" + _SIZE,
    0x1F0: rf"HGMMA{_MNK}{_SUM}{_HALF}$",
    0x1F1: rf"IGMMA{_MNK}{_INTEGER}{_INTEGER}(?:\.(SAT))?$",
    0x1F2: rf"BGMMA{_MNK}{_BITS}$",
    0x1F3: rf"QGMMA{_MNK}{_SUM}{_SMALL}{_SMALL}$",
} | dict.fromkeys((0x17E, 0x17F, 0x180, 0x181, *range(0x183, 0x189), 0x1BD), rf"\w+{_SIZE}")
"""Number of an opcode -> its modifiers that decide work and bytes, a group each."""

Bits = tuple[int, ...]
Words = tuple[str, ...]
Deciding = tuple[Bits, Words]
"""Bits, the lowest first, and what each of their values stands for; "?" where none is known."""


_SIZE_BITS = {73, 74, 75}
"""Where loads and stores have their sizes, several of which differ in more than one bit."""


def names(said: Iterable[tuple[Word, Said]]) -> dict[int, set[str]]:
    """The names of each number."""
    found: dict[int, set[str]] = {}
    for word, (_, opcode, _) in said:
        name = opcode.partition(".")[0]
        if not name.startswith("_"):  # nvdisasm's placeholders
            found.setdefault(word % NUMBERS, set()).add(name)
    return found


def deciding(disassembler: Disassembler, number: int, bases: Sequence[Word]) -> list[Deciding]:
    """The bits that decide each modifier of a number, in the order of modifiers; those that never appear left out.

    ``bases``: instructions of this number.  Every bit of them is turned, then those that changed modifiers, or (of patterns of
    whole opcodes) made nonsense of them, are, in all combinations.
    """
    groups = _groups(disassembler, number, bases)
    turned = [(base, bit, base ^ 1 << bit) for base in groups for bit in range(16, 105)]
    words = [word for *_, word in turned]
    after = _groups(disassembler, number, words)
    told = {word for word, one in zip(words, disassembler.say(words), strict=True) if one}
    changed = {bit for base, bit, word in turned if after.get(word, groups[base]) != groups[base]}
    wrong = {bit for _, bit, word in turned if word in told and word not in after}
    matter = sorted(changed | (wrong if MODIFIERS[number].endswith("$") else _SIZE_BITS))
    clear = ~sum(1 << bit for bit in matter)
    stems = list(dict.fromkeys(base & clear for base in groups))[: max(2, min(12, 16_000 >> len(matter)))]
    words = [stem | _placed(value, matter) for stem in stems for value in range(1 << len(matter))]
    seen = groups | _groups(disassembler, number, words)
    candidates = [9, 10, 11, *matter]  # forms of operands, too
    found = [decision(candidates, {word: each[index] for word, each in seen.items()}) for index in range(_count(number))]
    return [(bits, told) for bits, told in found if set(told) - {"", "?"}]


def decision(candidates: Sequence[int], seen: dict[Word, str]) -> Deciding:
    """Few of the bits that suffice to tell the texts of instructions apart."""
    bits = list(candidates)
    if _table(bits, seen) is None:
        raise ValueError(f"something beside the bits {bits} decides {sorted(set(seen.values()))}")
    for bit in candidates:
        fewer = [one for one in bits if one != bit]
        if _table(fewer, seen) is not None:
            bits = fewer
    table = _table(bits, seen) or {}
    return tuple(bits), tuple(table.get(value, "?") for value in range(1 << len(bits)))


def _table(bits: Sequence[int], seen: dict[Word, str]) -> dict[int, str] | None:
    table: dict[int, str] = {}
    for word, text in seen.items():
        if table.setdefault(sum((word >> bit & 1) << index for index, bit in enumerate(bits)), text) != text:
            return None
    return table


def _placed(value: int, bits: Sequence[int]) -> Word:
    return sum(1 << bit for index, bit in enumerate(bits) if value >> index & 1)


def _count(number: int) -> int:
    return re.compile(MODIFIERS[number]).groups


def _groups(disassembler: Disassembler, number: int, words: Sequence[Word]) -> dict[Word, tuple[str, ...]]:
    """The modifiers of instructions, of those that exist."""
    found = {}
    for word, said in zip(words, disassembler.say(words), strict=True):
        wrong = said is None or ".." in said[1] or said[1].endswith(".") or "INVALID" in said[1] or "?" in said[1]
        if said is not None and not wrong and (match := re.match(MODIFIERS[number], said[1])):
            found[word] = tuple(text or "" for text in match.groups())
    return found


def naming(disassembler: Disassembler, said: Sequence[tuple[Word, Said]]) -> Deciding:
    """The bits (forms of operands, a bit or two) that tell the names of one number apart."""
    seen = {word: opcode.partition(".")[0] for word, (_, opcode, _) in said}
    turned = [(word, bit, word ^ 1 << bit) for word in seen for bit in [*range(9, 12), *range(16, 105)]]
    after = disassembler.say([word for *_, word in turned])
    matter = {9, 10, 11, 72, 73}  # forms of operands and (tcgen05) types: many of them exist for one name only
    for (word, bit, other), one in zip(turned, after, strict=True):
        if one and (name := one[1].partition(".")[0]) != seen[word]:
            matter.add(bit)
            seen[other] = name
    return decision(sorted(matter), seen)


@dataclass
class Chip:
    """What was found out about one chip."""

    names: dict[int, str] = field(default_factory=dict)
    fields: dict[int, tuple[Deciding, ...]] = field(default_factory=dict)


def examine(disassembler: Disassembler, compiled: Sequence[Word], rounds: int = 64) -> Chip:
    """Names and modifiers of all numbers; ``compiled``: instructions that a compiler made, too."""
    rng = random.Random(0)
    said = sample(disassembler, rng, range(NUMBERS), rounds)
    said += [(word, one) for word, one in zip(compiled, disassembler.say(compiled), strict=True) if one]
    chip = Chip()
    for number, found in sorted(names(said).items()):
        if len(found) == 1:
            chip.names[number] = next(iter(found))
        else:
            more = [each for each in said if each[0] % NUMBERS == number] + sample(disassembler, rng, [number], 2 * rounds)
            chip.fields[number] = (naming(disassembler, more),)
    for number in MODIFIERS:
        more = sample(disassembler, rng, [number], 2 * rounds)
        bases = {opcode: word for word, (_, opcode, _) in [*said, *more] if word % NUMBERS == number}
        chosen = rng.sample(list(bases.values()), min(80, len(bases)))
        if number in chip.names and (found := deciding(disassembler, number, chosen)):
            chip.fields[number] = tuple(found)
    return chip


def text(chips: dict[str, Chip]) -> str:
    """The data file."""
    parts = [HEAD]
    by_range: dict[str, dict[int, str]] = {}
    for number in range(NUMBERS):
        for name, where in _grouped({chip: found.names[number] for chip, found in chips.items() if number in found.names}):
            by_range.setdefault(_ranges(where), {})[number] = name
    for where, numbers in sorted(by_range.items(), key=lambda each: (-len(each[1]), each[0])):
        parts.append(f'[[names]]\ncapabilities = "{where}"\n[names.numbers]\n')
        parts += [f'0x{number:03x} = "{name}"\n' for number, name in numbers.items()] + ["\n"]
    parts.append(BETWEEN)
    parts += _modifiers(chips)
    return "".join([*parts, TAIL])


def _modifiers(chips: dict[str, Chip]) -> Iterator[str]:
    rows: dict[tuple[str, tuple[Deciding, ...]], list[int]] = {}
    for number in range(NUMBERS):
        for fields, where in _grouped({chip: found.fields[number] for chip, found in chips.items() if number in found.fields}):
            rows.setdefault((_ranges(where), fields), []).append(number)
    for (where, fields), numbers in rows.items():
        yield f'[[modifiers]]\ncapabilities = "{where}"\nnumbers = {json.dumps([f"0x{number:03x}" for number in numbers])}\n'
        for bits, words in fields:
            yield f'[[modifiers.fields]]\nbits = "{", ".join(map(str, bits))}"\nwords = {_quoted("|".join(words))}\n'
        yield "\n"


def _quoted(line: str) -> str:
    if len(line) < 110:
        return f'"{line}"'
    lines = textwrap.wrap(line.replace("|", "| "), 120)
    return '"""\\\n' + "".join(f"  {each.replace('| ', '|')}\\\n" for each in lines) + '  """'


def _grouped(found: dict[str, Any]) -> list[tuple[Any, list[str]]]:
    """Chips by what was found out about them."""
    groups: dict[Any, list[str]] = {}
    for chip, each in found.items():
        groups.setdefault(each, []).append(chip)
    return list(groups.items())


def _ranges(chips: Sequence[str]) -> str:
    """Chips as ranges of those that are known."""
    known = list(CHIPS)
    parts: list[list[str]] = []
    for chip in chips:
        before = parts[-1][-1] if parts else ""
        # Nothing is said of what may come between major versions, as 10.7, which has other instructions.
        if before and known.index(before) + 1 == known.index(chip) and before.split(".")[0] == chip.split(".")[0]:
            parts[-1].append(chip)
        else:
            parts.append([chip])
    return ", ".join(part[0] if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts)


def main() -> None:
    """Write the data file anew."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--old-nvdisasm", type=Path, required=True, help="of CUDA 11 or 12, for 7.0 and 7.2")
    args = parser.parse_args()
    tools = sassing.toolkit()
    if tools is None:
        parser.error("no nvcc, or no nvdisasm (pip install nvidia-cuda-nvdisasm)")
    assembler, nvdisasm = tools
    chips = {}
    for chip in CHIPS:
        tool = args.old_nvdisasm if chip in OLD else nvdisasm
        chips[chip] = examine(Disassembler(tool, chip), compiled(assembler, chip))
        print(chip, len(chips[chip].names), flush=True)
    DATA.write_text(text(chips), encoding="utf-8")


def compiled(assembler: list[str], chip: str) -> list[Word]:
    """Instructions of the code that the assembler makes of all PTX cases; none where it doesn't know the chip."""
    target = next((one for one in sassing.TARGETS if parse_target(one) == parse_capability(chip)), None)
    if target is None:
        return []
    with tempfile.TemporaryDirectory() as folder:
        cubin, _ = sassing.assemble(assembler, sassing.PTX_VERSION, target, cases(), Path(folder))
        functions = Cubin(cubin.read_bytes()).functions.values()
    code = [function.code for function in functions]
    return list(dict.fromkeys(int.from_bytes(one[at : at + SIZE], "little") for one in code for at in range(0, len(one), SIZE)))


if __name__ == "__main__":
    main()
