"""Instructions from their bytes: names, the modifiers that decide work and bytes, and where control goes next."""

from __future__ import annotations

import struct
from collections.abc import Callable, Container, Sequence
from typing import NamedTuple

from ncu_roofline.chips.fields import Capability
from ncu_roofline.chips.sass import Encoding, load_sass

SIZE = 16
"""Bytes of an instruction, since compute capability 7.0."""

_NUMBER = 0x1FF
_UNGUARDED = 7
"""The predicate that is always true (PT), not negated."""
FUSED_HALVES, _IMMEDIATE_ADDED = "HFMA2", 2
_ZERO = 255
"""The register that is always zero (RZ)."""
_BRANCH, _RELATIVE_CALL = 0x147, 0x144
_UNKNOWN = "op {:#05x}"
FLOWS = {
    "BRA": "branch",
    **dict.fromkeys(("BRX", "BRXU", "JMP", "JMX", "JMXU"), "indirect"),
    "CALL": "call",
    **dict.fromkeys(("RET", "RTT"), "return"),
    **dict.fromkeys(("EXIT", "KILL"), "exit"),
}
"""What changes where control goes next, by name: see `Instruction.flow`."""


class Instruction(NamedTuple):
    """One instruction.

    ``offset`` and ``target``: bytes from the beginning of the code.  ``name`` is its mnemonic ("HMMA"), ``opcode`` has those
    modifiers, too, that decide its work and bytes ("HMMA.16816.F32"); both are "op 0x1a3" where the encoding is not known.
    ``guarded``: it depends on a predicate.  ``flow``: "" (goes on with the next), "branch", "indirect", "call", "return" or
    "exit"; ``target``: of branches and calls, where it is part of the instruction and inside the code, else None.
    ``constant``: it is HFMA2 R0, -RZ, RZ, x, y, which adds nothing: by it compilers load constants.
    """

    offset: int
    name: str
    opcode: str
    guarded: bool
    flow: str
    target: int | None
    constant: bool = False


def decode(code: bytes, capability: Capability | None, names: Container[str] | None = None) -> tuple[Instruction, ...]:
    """The instructions of a function's code, in order; with ``names`` only those, jumps, and those that are not known.

    Any bytes can be decoded; what does not fill an instruction at the end is no instruction.
    """
    encodings = load_sass().encodings(capability)
    wanted = [
        names is None or one is None or not one.name or one.name in names or one.name in FLOWS for one in encodings.by_number
    ]
    opcode_of = _opcodes(encodings.by_number)
    sign = 1 << len(encodings.target) >> 1
    whole = len(code) - len(code) % SIZE
    found = []
    for index, (low, high) in enumerate(struct.iter_unpack("<QQ", memoryview(code)[:whole])):
        number = low & _NUMBER
        if not wanted[number]:
            continue
        name, opcode, flow = opcode_of(low, high)
        guarded = low >> 12 & 15 != _UNGUARDED
        target = None
        if flow:
            # A jump may have a second condition: a predicate as its operand, or (branches) of the warp: .U, .DIV, .CONV.
            guarded = guarded or high >> 23 & 15 != _UNGUARDED or (number == _BRANCH and low >> 32 & 3 != 0)
            # A call may add a register to its distance (forms of operands 1, and bit 91).
            if number == _BRANCH or (number == _RELATIVE_CALL and low >> 9 & 7 == 4 and not high >> 27 & 1):
                distance = 4 * ((_value(low | high << 64, encodings.target) ^ sign) - sign)
                target = (index + 1) * SIZE + distance
        inside = target is not None and 0 <= target < whole and target % SIZE == 0
        constant = name == FUSED_HALVES and low >> 9 & 7 == _IMMEDIATE_ADDED and low >> 24 & 0xFF == high & 0xFF == _ZERO
        found.append(Instruction(index * SIZE, name, opcode, guarded, flow, target if inside else None, constant))
    return tuple(found)


def _opcodes(by_number: tuple[Encoding | None, ...]) -> Callable[[int, int], tuple[str, str, str]]:
    """Name, opcode and flow of an instruction's two halves."""
    masks = [one.mask if one else 0 for one in by_number]
    seen: dict[int, tuple[str, str, str]] = {}

    def opcode_of(low: int, high: int) -> tuple[str, str, str]:
        number = low & _NUMBER
        bits = (low | high << 64) & masks[number] | number
        if bits not in seen:
            encoding, opcode = by_number[number], ""
            fields = [field.words[_value(bits, field.bits)] for field in encoding.fields] if encoding else [None]
            if encoding and None not in fields:
                words = [word for word in (encoding.name, *fields) if word]
                also = (one.word for one in encoding.aliases if any(bits & mask == value for mask, value in one.cases))
                opcode = ".".join((*words[:1], *also, *words[1:])) if words else ""
            opcode = opcode or _UNKNOWN.format(number)  # a value of its fields is none that is known
            name = opcode.partition(".")[0]
            seen[bits] = name, opcode, FLOWS.get(name, "")
        return seen[bits]

    return opcode_of


def _value(bits: int, places: Sequence[int]) -> int:
    return sum((bits >> place & 1) << index for index, place in enumerate(places))
