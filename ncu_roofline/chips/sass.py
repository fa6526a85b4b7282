"""How instructions are encoded: numbers of opcodes to names, bits to modifiers, where targets of jumps stand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING

from ncu_roofline.chips.fields import Capability, Fields
from ncu_roofline.chips.loading import read_fields

if TYPE_CHECKING:
    from importlib.abc import Traversable

FILE = "sass.toml"
NUMBERS = 512
"""Numbers of opcodes: the low nine bits of an instruction."""
WIDTH = 128
"""Bits of an instruction."""
_UNKNOWN = "?"


@dataclass(frozen=True)
class Field:
    """Bits of an instruction, the lowest first, and what each of their values adds to an opcode.

    "" adds nothing; None is a value of no instruction that is known.
    """

    bits: tuple[int, ...]
    words: tuple[str | None, ...]


@dataclass(frozen=True)
class Alias:
    """A modifier of instructions that are written like another one because of their operands, as IMAD.MOV, which moves.

    ``cases``: bits that are looked at and their values; one of them has to fit.
    """

    word: str
    cases: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Encoding:
    """What a number stands for on one chip: a name, and the fields and aliases that add modifiers to it, in their order.

    Where the name is "", the first field gives it.
    """

    name: str
    fields: tuple[Field, ...] = ()
    aliases: tuple[Alias, ...] = ()

    @property
    def mask(self) -> int:
        """The bits that decide the opcode, the number aside."""
        mask = 0
        for field in self.fields:
            mask |= sum(1 << bit for bit in field.bits)
        for alias in self.aliases:
            for looked_at, _ in alias.cases:
                mask |= looked_at
        return mask


@dataclass(frozen=True)
class Encodings:
    """The instructions of one chip.

    ``by_number``: `Encoding` by the number of an opcode, None where there is none that is known.  ``target``: bits of the
    signed distance of a relative jump, the lowest first, counted in units of four bytes from the next instruction.
    """

    by_number: tuple[Encoding | None, ...]
    target: tuple[int, ...]


@dataclass(frozen=True)
class _Row:
    """What holds for some chips: encodings by number, of which later rows add to earlier ones, or the bits of targets."""

    ranges: tuple[tuple[Capability, Capability], ...]
    by_number: Mapping[int, Encoding]
    target: tuple[int, ...] = ()

    def covers(self, capability: Capability) -> bool:
        return any(since <= capability <= until for since, until in self.ranges)


@dataclass(frozen=True)
class SassTable:
    """All chips."""

    rows: tuple[_Row, ...]

    def encodings(self, capability: Capability | None) -> Encodings:
        """The instructions of a chip; none where the chip is not known."""
        rows = [row for row in self.rows if capability is not None and row.covers(capability)]
        by_number: list[Encoding | None] = [None] * NUMBERS
        for row in rows:
            for number, one in row.by_number.items():
                before = by_number[number]
                by_number[number] = _both(before, one) if before else one
        return Encodings(tuple(by_number), next((row.target for row in rows if row.target), ()))


def _both(one: Encoding, other: Encoding) -> Encoding:
    return Encoding(one.name or other.name, one.fields + other.fields, one.aliases + other.aliases)


@lru_cache(maxsize=1)
def load_sass() -> SassTable:
    """The table that comes with the package, read once."""
    return read_sass(resources.files("ncu_roofline") / "data")


def read_sass(folder: Traversable) -> SassTable:
    """Read and check the file in a folder of data files; `SpecError` names the key of the first mistake."""
    file = read_fields(folder / FILE, FILE)
    rows = [_names(fields) for fields in file.tables("names")]
    rows += [_modifiers(fields) for fields in file.tables("modifiers")]
    rows += [_alias(fields) for fields in file.tables("aliases")]
    rows += [_targets(fields) for fields in file.tables("targets")]
    file.finish()
    return SassTable(tuple(rows))


def _names(fields: Fields) -> _Row:
    table = fields.table("numbers")
    row = _Row(fields.ranges("capabilities"), {_number(table, key): Encoding(table.text(key)) for key in table.names()})
    fields.finish()
    return row


def _modifiers(fields: Fields) -> _Row:
    encoding = Encoding("", tuple(_field(one) for one in fields.tables("fields")))
    return _of_numbers(fields, encoding)


def _alias(fields: Fields) -> _Row:
    cases = tuple(_case(fields, text) for text in fields.texts("cases"))
    return _of_numbers(fields, Encoding("", (), (Alias(fields.text("word"), cases),)))


def _of_numbers(fields: Fields, encoding: Encoding) -> _Row:
    ranges = fields.ranges("capabilities")
    row = _Row(ranges, {_number(fields, key): encoding for key in fields.texts("numbers")})
    fields.finish()
    return row


def _targets(fields: Fields) -> _Row:
    row = _Row(fields.ranges("capabilities"), {}, _bits(fields, fields.text("bits")))
    fields.finish()
    return row


def _number(fields: Fields, text: str) -> int:
    """A number of an opcode, written ``"0x03c"``."""
    try:
        number = int(text, 16)
    except ValueError:
        number = -1
    if not 0 <= number < NUMBERS:
        fields.fail(text, f"must be the number of an opcode, hexadecimal, below {NUMBERS:#x}")
    return number


def _field(fields: Fields) -> Field:
    bits = _bits(fields, fields.text("bits"))
    words = fields.text("words").split("|")
    if len(words) != 1 << len(bits):
        fields.fail("words", f"must be {1 << len(bits)}, one for each value of the bits")
    fields.finish()
    return Field(bits, tuple(None if word == _UNKNOWN else word for word in words))


def _case(fields: Fields, text: str) -> tuple[int, int]:
    """Bits and their values, written ``"9-11=1 32-39=255"``."""
    looked_at = values = 0
    for part in text.split():
        places, _, value = part.partition("=")
        bits = _bits(fields, places)
        if not value.isdecimal() or int(value) >> len(bits):
            fields.fail("cases", f"{part!r} is no value of bits")
        looked_at |= sum(1 << bit for bit in bits)
        values |= int(value) << bits[0]
    return looked_at, values


def _bits(fields: Fields, text: str) -> tuple[int, ...]:
    """Bits written as ``"16-23, 34-81"``, the lowest first; none as ``""``."""
    bits: list[int] = []
    for part in text.split(",") if text else ():
        first, _, last = part.strip().partition("-")
        if not (first.isdecimal() and (last or first).isdecimal() and int(first) <= int(last or first) < WIDTH):
            fields.fail("bits", f"{part.strip()!r} is no bit or range of bits of an instruction")
        bits += range(int(first), int(last or first) + 1)
    return tuple(bits)
