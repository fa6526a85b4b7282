"""Instructions made up at random, and what nvdisasm says of them; `.ci/encodings` asks it about many more."""

from __future__ import annotations

import random
import re
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

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
