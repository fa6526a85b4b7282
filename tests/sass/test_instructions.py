"""Names, modifiers, predicates and targets of instructions, against nvdisasm."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ncu_roofline.chips.fields import parse_capability
from ncu_roofline.chips.opcodes import load_opcodes
from ncu_roofline.chips.sass import load_sass
from ncu_roofline.formats.sass.cubin import Cubin
from ncu_roofline.formats.sass.instructions import SIZE, Instruction, decode
from ncu_roofline.plugin.machine.machine import disassemble
from tests.sass import fixtures
from tests.sass.encodings import CHIPS, NUMBERS, OLD, Disassembler, sample
from tests.sass.oracle import nvdisasm

_TEXT = re.compile(r"(?:(@!?U?P\w+) )?(\S+) ?(.*)")
_TARGET = re.compile(r"(?:^|, )(0x[0-9a-f]+)$")
_SIZES = {"U8", "S8", "U16", "S16", "64", "96", "128", "256"}
_LOADS = re.compile(r"(LD[GSL]?|ST[GSL]?|LDGSTS)\b")
_CONDITION = re.compile(r"(^|, )!?U?P(T\b|\d)")


def same_work(ours: str, theirs: str, capability: tuple[int, int]) -> bool:
    """Whether both opcodes weigh the same."""
    table = load_opcodes()
    return (table.work(ours, capability), table.unknown(ours, capability)) == (
        table.work(theirs, capability),
        table.unknown(theirs, capability),
    )


def sizes(opcode: str) -> set[str]:
    return _SIZES & set(opcode.split(".")) if _LOADS.match(opcode) else set()


def check(ours: Instruction, text: str, capability: tuple[int, int], end: int) -> None:
    """One instruction against nvdisasm's text of it."""
    match = _TEXT.match(text)
    assert match
    predicate, opcode, operands = match[1], match[2], match[3]
    assert ours.name == opcode.partition(".")[0]
    assert same_work(ours.opcode, opcode, capability), (ours.opcode, opcode)
    assert sizes(ours.opcode) == sizes(opcode)
    words = iter(opcode.split("."))
    assert all(word in words for word in ours.opcode.split(".")), (ours.opcode, opcode)
    if not ours.flow:
        assert ours.guarded == bool(predicate)
    if ours.flow == "branch":
        second = _CONDITION.search(operands) or {"U", "DIV", "CONV"} & set(opcode.split("."))
        assert ours.guarded == bool(predicate or second)
        target = _TARGET.search(operands)
        inside = int(target[1], 16) if target and int(target[1], 16) < end else None
        assert ours.target == inside


@pytest.mark.sampled("75")
@pytest.mark.parametrize("chip", fixtures.CHIPS)
def test_compiled_code(chip: str) -> None:
    tool = nvdisasm()
    cubin = Cubin(fixtures.cubin(chip))
    assert cubin.capability
    for function in cubin.functions.values():
        [texts] = disassemble([function.code], cubin.capability, tool)
        instructions = decode(function.code, cubin.capability)
        assert [each.offset for each in instructions] == sorted(texts) == list(range(0, len(function.code), SIZE))
        for each in instructions:
            check(each, texts[each.offset], cubin.capability, len(function.code))


@pytest.mark.sampled("10.0")
@pytest.mark.parametrize("chip", [chip for chip in CHIPS if chip not in OLD])
def test_made_up_code(chip: str) -> None:
    """Other instructions than the table was written from."""
    capability = parse_capability(chip)
    assert capability
    said = sample(Disassembler(nvdisasm(), chip), random.Random(f"of {chip}"), range(NUMBERS), 1)
    assert len(said) > 150
    for word, (predicate, opcode, _) in said:
        (ours,) = decode(word.to_bytes(SIZE, "little"), capability)
        assert ours.guarded == bool(predicate) or ours.flow
        wrong = "INVALID" in opcode or "?" in opcode or ".." in opcode or opcode.endswith(".") or opcode.startswith("_")
        if not wrong:
            assert ours.name == opcode.partition(".")[0], f"{word:032x} {opcode}"
            assert same_work(ours.opcode, opcode, capability), f"{word:032x} {ours.opcode} {opcode}"
            assert sizes(ours.opcode) == sizes(opcode), f"{word:032x} {ours.opcode} {opcode}"


@given(st.binary(max_size=500), st.sampled_from([None, (5, 2), (7, 0), (8, 6), (9, 0), (10, 3), (10, 7), (12, 1), (99, 9)]))
def test_any_bytes_can_be_decoded(code: bytes, capability: tuple[int, int] | None) -> None:
    instructions = decode(code, capability)
    assert [each.offset for each in instructions] == list(range(0, len(code) // SIZE * SIZE, SIZE))
    assert all(each.target is None or each.target in range(0, len(instructions) * SIZE, SIZE) for each in instructions)


def test_chips_and_numbers_that_are_not_known_are_not_guessed() -> None:
    code = fixtures.cubin("80")[:SIZE]
    for capability in (None, (6, 1), (10, 7), (13, 0)):
        assert {each.name for each in decode(code, capability)} == {f"op {code[0] | (code[1] & 1) << 8:#05x}"}
    (unknown,) = decode(b"\x0e\x70" + bytes(14), (8, 0))
    assert unknown == Instruction(0, "op 0x00e", "op 0x00e", False, "", None)


@pytest.mark.parametrize(("number", "capability"), [(0x31, (7, 5)), (0x35, (8, 0)), (0x35, (9, 0)), (0x31, (12, 0))])
def test_halves_that_add_nothing_load_constants(number: int, capability: tuple[int, int]) -> None:
    """HFMA2 R5, -RZ, RZ, 1, 1; not HFMA2 R5, -RZ, R7, 1, 1, nor R5, -RZ, R0, RZ, nor R5, -RZ, 1, 1, RZ."""

    def constant(form: int, factor: int, other: int) -> bool:
        low = number | form << 9 | 7 << 12 | 5 << 16 | factor << 24 | 0x3C003C00 << 32
        (one,) = decode((low | (other | 1 << 8) << 64).to_bytes(SIZE, "little"), capability)
        assert one.name == "HFMA2"
        return one.constant

    assert constant(2, 255, 255)
    assert not any((constant(2, 255, 7), constant(2, 7, 255), constant(1, 255, 255), constant(4, 255, 255)))


def test_modifiers_that_are_not_known_make_an_opcode_unknown() -> None:
    fields = load_sass().encodings((8, 0)).by_number[0x3C]
    assert fields is not None
    (source,) = [field for field in fields.fields if "TF32" in field.words]
    assert source.words[3] is None
    word = 0x3C | 7 << 12 | sum(1 << bit for bit in source.bits)
    assert decode(word.to_bytes(SIZE, "little"), (8, 0))[0].opcode == "op 0x03c"


@pytest.mark.exhaustive
def test_the_code_of_the_largest_function_takes_a_second() -> None:
    import time

    code = fixtures.cubin("90") * 40
    start = time.process_time()
    count = len(decode(code, (9, 0)))
    assert count > 100_000
    assert time.process_time() - start < 10
