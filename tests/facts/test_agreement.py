"""Whether the data files agree with each other: every name means something, every row can be reached, nothing stands twice."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from importlib import import_module
from math import prod
from pathlib import Path
from typing import Any

import pytest

from ncu_roofline.chips import load_instructions, load_opcodes, load_spec, load_stalls, load_units
from ncu_roofline.chips.fields import ANY_MINOR, DATA, LAST, ranges
from ncu_roofline.chips.findings import ACCESSES, KINDS
from ncu_roofline.chips.opcodes import _File, _left, load_opcode_kinds, load_opcode_units
from ncu_roofline.chips.sass import load_sass
from ncu_roofline.chips.spec import Level

SPEC = load_spec()
ITEMS = (*SPEC.precisions, *SPEC.levels)
PRECISIONS, LEVELS = {one.id for one in SPEC.precisions}, {one.id for one in SPEC.levels}
# Beside kinds of instructions: sectors that addresses waste, local memory, bank conflicts; whether DRAM's bandwidth limits; why
# an SM holds few warps.
WORDS = {word for word, _ in KINDS + ACCESSES} | {
    *("slow", "scattered", "scattered_stores", "spills", "conflicts", "dram", "no_dram", "capped", "few_blocks", "last_wave"),
    *("few_warps", "long_code", "short", "asynchronous"),
}


def toml(path: Path) -> dict[str, Any]:
    tomllib = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    found: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    return found


def twice(words: Iterable[object]) -> list[object]:
    return [word for word, count in Counter(words).items() if count > 1]


def test_nothing_stands_twice() -> None:
    assert twice(one.compute_capability for one in SPEC.architectures) == []
    for kind in (SPEC.precisions, SPEC.levels):
        assert twice(one.order for one in kind) == []
        assert twice(word for one in kind for word in (one.id, *one.aliases)) == []
    assert twice(ceiling for level in SPEC.levels for ceiling in level.ceilings) == []
    assert twice(unit.id for unit in load_units().units) == []
    assert twice(row["id"] for row in toml(DATA / "stalls.toml")["stalls"]) == []
    assert twice(row["id"] for row in toml(DATA / "plausible.toml")["quantity"]) == []
    assert twice(name for names in toml(DATA / "opcode_kinds.toml")["names"].values() for name in names) == []
    assert twice(kind.id for kind in load_instructions().kinds) == []


@pytest.mark.parametrize("item", ITEMS, ids=lambda one: one.id)
def test_bindings(item: Any) -> None:
    bindings = item.bindings
    assert bool(bindings) != getattr(item, "opcodes", False)
    for index, one in enumerate(bindings):
        assert one.capabilities, "of no chip that there is"
        assert one.note or (one.source == "binding" and not one.lower_bound), "must say what it leaves out"
        assert one.clock or not one.peak
        assert not one.lacking or (isinstance(item, Level) and one.source != "binding")
        assert set(one.includes) <= PRECISIONS
        for earlier in bindings[:index]:
            fewer = set(earlier.counters.counters()) <= set(one.counters.counters())
            together = any(a <= d and c <= b for a, b in earlier.capabilities for c, d in one.capabilities)
            assert not (fewer and together), f"{one.counters.text()} can never be chosen"


def test_ranges_are_of_chips_that_there_are() -> None:
    chips = {one.compute_capability for one in SPEC.architectures}

    def stated(value: object) -> Iterable[str]:
        if isinstance(value, dict):
            for key, one in value.items():
                yield from [one] if key == "capabilities" else stated(one)
        elif isinstance(value, list):
            for one in value:
                yield from stated(one)

    for path in [*DATA.glob("precisions/*.toml"), *DATA.glob("levels/*.toml")]:
        ends = {end for text in stated(toml(path)) for pair in ranges(text) for end in pair if end != LAST}
        assert [one for one in ends if one not in chips and not (one[1] == ANY_MINOR and one[0] in {c[0] for c in chips})] == []


@pytest.mark.parametrize("one", SPEC.precisions, ids=lambda one: one.id)
def test_families(one: Any) -> None:
    named = {one.part_of, one.beside, *one.replacements} - {""}
    assert named <= PRECISIONS - {one.id}
    assert one.part_of or not one.disjoint


def test_one_tensor_type_stands_for_all() -> None:
    assert [one.kind for one in SPEC.precisions if one.standard] == ["tensor"]


@pytest.mark.parametrize("one", SPEC.architectures, ids=lambda one: "{}.{}".format(*one.compute_capability))
def test_architectures(one: Any) -> None:
    owners = {roof: precision for precision in SPEC.precisions for roof in precision.roof_ids()}
    roofs = {*one.peaks, *(roof for rule in one.boards for roof in (*rule.peaks, *rule.absent))}
    assert roofs <= owners.keys()
    capability = one.compute_capability
    assert [roof for roof in roofs if not owners[roof].opcodes and not SPEC.bindings(owners[roof], capability)] == []
    assert {*one.lacks, *one.bandwidth} <= LEVELS
    assert one.left_out <= LEVELS | PRECISIONS
    assert one.costly <= {binding.clock for level in SPEC.levels for binding in level.bindings}


# What a row does -> the keys that it needs beside its opcodes, and those that it may have.
KEYS = {
    "arithmetic": ({"precision", "weight"}, {"fused"}),
    "products": ({"family", "precision", "accumulator"}, {"weight", "k"}),
    "conversion": ({"precision"}, set()),
    "nothing": (set(), set()),
}


def test_rows_of_opcodes_say_what_they_need_and_no_more() -> None:
    table = toml(DATA / "opcodes.toml")
    for row, stated in zip(load_opcodes().rows, table["rows"], strict=True):
        needed, possible = KEYS[row.does]
        assert needed <= stated.keys() <= needed | possible | {"opcodes", "does", "capabilities"}, stated
        assert not row.precision or row.precision in PRECISIONS
        assert (row.does == "products") == row.precision.startswith("tensor.")
        assert len(row.k) in ((1, 2) if row.family == "wgmma" else (0,))
    assert all(len(size) == 3 and "".join(map(str, size)) == digits for digits, size in table["shapes"].items())
    assert load_opcodes()._shapes["16x8x16"] == prod((16, 8, 16))
    assert _File.__annotations__.keys() == table.keys()


def test_every_row_of_opcodes_can_be_reached() -> None:
    rows = load_opcodes().rows
    for index, row in enumerate(rows):
        for name, modifiers in row.opcodes:
            for earlier in rows[:index]:
                hides = any(other == name and _left(modifiers, words) is not None for other, words in earlier.opcodes)
                within = all(any(a <= c and d <= b for a, b in earlier.capabilities) for c, d in row.capabilities)
                assert not (hides and within), f"{'.'.join((name, *modifiers))} can never fit, a row before it takes it"


def test_kinds_and_units_of_opcodes() -> None:
    kinds = load_opcode_kinds()
    assert [pair for pair in kinds.modifiers if pair[0] not in kinds.names or not pair[1]] == []
    assert "other" not in kinds.names.values()
    assert {row.unit for row in load_opcode_units().rows} <= {unit.id for unit in load_units().units}


def test_the_instruction_roofline() -> None:
    spec = load_instructions()
    assert spec.kinds[0].id == "inst"
    assert all(bool(kind.level) == bool(kind.transactions) for kind in spec.kinds)
    assert {wall.kind for wall in spec.walls} <= {kind.id for kind in spec.kinds}


def test_stalls_speak_of_what_is_known() -> None:
    sentences = [one for stall in load_stalls().values() for one in (*stall.cause, *stall.advice)]
    assert {word for one in sentences for word in (*one.where, *one.unless)} <= WORDS
    assert {stall.unit.count("{}") for stall in load_stalls().values() if stall.unit} <= {1}


def test_fields_of_instructions_have_a_word_for_each_value() -> None:
    fields = [field for row in load_sass().modifiers for field in row.fields]
    assert [field for field in fields if len(field.words) != 1 << len(field.bits)] == []
