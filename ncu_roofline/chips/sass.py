"""Code of kernels: how much of it is read; numbers of opcodes to names, bits to modifiers, where targets of jumps stand."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, reduce
from operator import or_
from typing import Annotated, NamedTuple

from ncu_roofline.base.records import Stated
from ncu_roofline.chips.fields import ALL, Capability, Ranges, table
from ncu_roofline.chips.formulas import covers

# How much of a report's code is read, so that whatever it holds a launch takes about 10 s and 1 GB.  What is known to be large:
# kernels of 50,000 to 200,000 instructions, in modules of hundreds of functions and 100 MB, inlined up to 40 deep; shared
# reports have up to 8,688 instructions, 155 functions, 626 symbols, 2 MB, 98 kB of lines, 9 levels.
CUBIN_BYTES = 1 << 28  # of a module: the largest of NVIDIA's libraries have about 100 MB
TABLE_ROWS = 1 << 19  # symbols of a module, relocations of its code and lines: a library of 10,000 functions has ten for each
FUNCTIONS = 1 << 14  # of a launch, those inside of others too: what is not inlined into large kernels are hundreds
INSTRUCTIONS = 1 << 18  # of a launch, with addresses that have counts outside of its code: 4 MB of code, 1 GB of memory
LINE_BYTES = 1 << 23  # of a module's line programs that are run: compilers write 10 to 20 per instruction, 4 MB for 200,000
INLINED_LEVELS = 1 << 23  # lines over each other of all instructions of a report: 200,000 instructions with 40 levels each
NOTE_BYTES = 1 << 24  # of the notes of a module's functions (.nv.info): one of 8,688 instructions has 11 kB
INLINED_LETTERS = 1 << 27  # of texts that say where a launch's code is inlined: 50,000 such places with 2,600 letters each
IMPORTED_BYTES = 1 << 26  # of source files imported for a module: a template library with its headers has 10 to 30 MB


def _number(text: str) -> int:
    """A number of an opcode, written ``"0x03c"``."""
    return int(text, 16)


def _bits(text: str) -> tuple[int, ...]:
    """Bits written as ``"16-23, 34-81"``, the lowest first; none as ``""``."""
    bits: list[int] = []
    for part in text.split(",") if text else ():
        first, _, last = part.partition("-")
        bits += range(int(first), int(last or first) + 1)
    return tuple(bits)


def _case(text: str) -> tuple[int, int]:
    """Bits and their values, written ``"9-11=1 32-39=255"``."""
    looked_at = values = 0
    for places, _, value in (part.partition("=") for part in text.split()):
        bits = _bits(places)
        looked_at |= sum(1 << bit for bit in bits)
        values |= int(value) << bits[0]
    return looked_at, values


Number = Annotated[int, Stated(str, _number)]
Numbers = Annotated[tuple[int, ...], Stated(tuple[str, ...], lambda texts: tuple(map(_number, texts)))]
Cases = Annotated[tuple[tuple[int, int], ...], Stated(tuple[str, ...], lambda texts: tuple(map(_case, texts)))]
Bits = Annotated[tuple[int, ...], Stated(str, _bits)]


class Field(NamedTuple):
    """Bits of an instruction, the lowest first, and what each of their values adds to an opcode.  "" adds nothing; None (``?``
    in the file) is a value of no instruction that is known."""

    bits: Bits
    words: Annotated[
        tuple[str | None, ...], Stated(str, lambda text: tuple(None if word == "?" else word for word in text.split("|")))
    ]


class Encoding(NamedTuple):
    """What a number stands for on one chip: a name, and the fields and aliases that add modifiers to it, in their order.
    Where the name is "", the first field gives it."""

    name: str
    fields: tuple[Field, ...] = ()
    aliases: tuple[Alias, ...] = ()

    @property
    def mask(self) -> int:
        """The bits that decide the opcode, the number aside."""
        looked_at = [case for alias in self.aliases for case, _ in alias.cases]
        return reduce(or_, [*looked_at, *(1 << bit for field in self.fields for bit in field.bits)], 0)


class Encodings(NamedTuple):
    """The instructions of one chip that are known, and the bits that decide their opcodes, by the number of an opcode.
    ``target``: bits of the signed distance of a relative jump, the lowest first, counted in units of four bytes from the next
    instruction."""

    by_number: Mapping[int, Encoding]
    masks: Mapping[int, int]
    target: tuple[int, ...]


class _Names(NamedTuple):
    numbers: Mapping[Number, str]
    capabilities: Ranges = ALL


class _Modifiers(NamedTuple):
    numbers: Numbers
    fields: tuple[Field, ...]
    capabilities: Ranges = ALL


class Alias(NamedTuple):
    """A modifier of instructions that are written like another one because of their operands, as IMAD.MOV, which moves.
    ``cases``: bits that are looked at and their values; one of them has to fit."""

    numbers: Numbers
    word: str
    cases: Cases
    capabilities: Ranges = ALL


class _Targets(NamedTuple):
    bits: Bits
    capabilities: Ranges = ALL


class SassTable(NamedTuple):
    """All chips; names first, to which modifiers and aliases add."""

    names: tuple[_Names, ...]
    modifiers: tuple[_Modifiers, ...]
    aliases: tuple[Alias, ...]
    targets: tuple[_Targets, ...]


load_sass = table("sass.toml", SassTable)


@cache
def encodings(capability: Capability | None) -> Encodings:
    """The instructions of a chip; none where the chip is not known."""
    names, modifiers, aliases, targets = load_sass()
    found: dict[int, Encoding] = {}
    rows: list[_Names | _Modifiers | Alias] = [*names, *modifiers, *aliases]
    for row in rows:
        for number in row.numbers if capability and covers(row.capabilities, capability) else ():
            name, fields, others = found.get(number, Encoding(""))
            if isinstance(row, _Names):
                found.setdefault(number, Encoding(row.numbers[number]))
            elif isinstance(row, _Modifiers):
                found[number] = Encoding(name, (*fields, *row.fields), others)
            else:
                found[number] = Encoding(name, fields, (*others, row))
    of_chip = (one.bits for one in targets if one.bits and capability and covers(one.capabilities, capability))
    return Encodings(found, {number: one.mask for number, one in found.items()}, next(of_chip, ()))
