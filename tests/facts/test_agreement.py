"""Whether the data files agree with each other, and with what others state: names mean something, rows can be reached."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable
from importlib import resources
from itertools import chain
from math import prod
from pathlib import Path
from string import Formatter

import ncu_roofline
from ncu_roofline.chips import load_instructions, load_opcodes, load_spec, load_stalls, load_units
from ncu_roofline.chips.fields import ANY_MINOR, DATA, LAST, LAST_RELEASE, parse_release, ranges
from ncu_roofline.chips.findings import ACCESSES, KINDS, of_library
from ncu_roofline.chips.opcodes import _File, _left, load_opcode_kinds, load_opcode_units
from ncu_roofline.chips.sass import load_sass
from ncu_roofline.chips.spec import Level
from ncu_roofline.chips.tables import load_limits, load_sets
from ncu_roofline.model.extract import spellings
from tests.facts.stated import FACTS, toml

SPEC = load_spec()
PRECISIONS, LEVELS = {one.id for one in SPEC.precisions}, {one.id for one in SPEC.levels}
# Beside kinds of instructions: sectors that addresses waste, local memory, bank conflicts; whether DRAM's bandwidth limits; why
# an SM holds few warps.
WORDS = {word for word, _ in KINDS + ACCESSES} | {
    *("slow", "scattered", "scattered_stores", "spills", "conflicts", "dram", "no_dram", "capped", "few_blocks", "last_wave"),
    *("few_warps", "long_code", "short", "asynchronous"),
}
# What a sentence is filled with -> the words that ask for it, where it is known.
FILLED = {"dram": ("dram", "no_dram"), "warps": ("few_blocks", "last_wave", "few_warps"), "slow": ("slow",)}
FILLED |= {"warps_possible": ("capped",), "limits": ("capped",), "waves": ("last_wave",)}


def test_nothing_stands_twice() -> None:
    for words in (
        (one.compute_capability for one in SPEC.architectures),
        *((one.order for one in kind) for kind in (SPEC.precisions, SPEC.levels)),
        *((word for one in kind for word in (one.id, *one.aliases)) for kind in (SPEC.precisions, SPEC.levels)),
        (ceiling for level in SPEC.levels for ceiling in level.ceilings),
        (unit.id for unit in load_units().units),
        (kind.id for kind in load_instructions().kinds),
        (row["id"] for row in toml(DATA / "stalls.toml")["stalls"]),
        (row["id"] for row in toml(DATA / "plausible.toml")["quantity"]),
        chain.from_iterable(toml(DATA / "opcode_kinds.toml")["names"].values()),
    ):
        assert [word for word, count in Counter(words).items() if count > 1] == []


def test_bindings_and_families() -> None:
    for item in (*SPEC.precisions, *SPEC.levels):
        assert bool(item.bindings) != getattr(item, "opcodes", False)
        for index, one in enumerate(item.bindings):
            assert one.capabilities, "of no chip that there is"
            assert one.note or (one.source == "binding" and not one.lower_bound), "must say what it leaves out"
            assert one.clock or not one.peak
            assert not one.lacking or (isinstance(item, Level) and one.source != "binding")
            assert set(one.includes) <= PRECISIONS
            for earlier in item.bindings[:index]:
                fewer = set(earlier.counters.counters()) <= set(one.counters.counters())
                together = any(a <= d and c <= b for a, b in earlier.capabilities for c, d in one.capabilities)
                assert not (fewer and together), f"{one.counters.text()} can never be chosen"
    for one in SPEC.precisions:
        assert {one.part_of, one.beside, *one.replacements} - {""} <= PRECISIONS - {one.id}
        assert one.part_of or not one.disjoint
    assert [one.kind for one in SPEC.precisions if one.standard] == ["tensor"]


def test_architectures_and_ranges() -> None:
    owners = {roof: precision for precision in SPEC.precisions for roof in precision.roof_ids()}
    for one in SPEC.architectures:
        roofs = {*one.peaks, *(roof for rule in one.boards for roof in (*rule.peaks, *rule.absent))}
        counted = {roof for roof, owner in owners.items() if owner.opcodes or SPEC.bindings(owner, one.compute_capability)}
        assert roofs <= counted
        assert {*one.lacks, *one.bandwidth} <= LEVELS
        assert one.left_out <= LEVELS | PRECISIONS
        assert one.costly <= {binding.clock for level in SPEC.levels for binding in level.bindings}
    chips = {one.compute_capability for one in SPEC.architectures}
    majors = {(major, ANY_MINOR) for major, _ in chips}

    def stated(value: object) -> Iterable[str]:
        if isinstance(value, dict):
            for key, one in value.items():
                yield from [one] if key == "capabilities" else stated(one)
        elif isinstance(value, list):
            yield from chain.from_iterable(map(stated, value))

    for path in [*DATA.glob("precisions/*.toml"), *DATA.glob("levels/*.toml")]:
        ends = {end for text in stated(toml(path)) for pair in ranges(text) for end in pair}
        assert ends <= chips | majors | {LAST}, path


# What a row does -> the keys that it needs beside its opcodes, and those that it may have.
KEYS = {
    "arithmetic": ({"precision", "weight"}, {"fused"}),
    "products": ({"family", "precision", "accumulator"}, {"weight", "k"}),
    "conversion": ({"precision"}, set()),
    "nothing": (set(), set()),
}


def test_rows_of_opcodes() -> None:
    """They say what they need and no more, and can be reached."""
    table, rows = toml(DATA / "opcodes.toml"), load_opcodes().rows
    for index, (row, stated) in enumerate(zip(rows, table["rows"], strict=True)):
        needed, possible = KEYS[row.does]
        assert needed <= stated.keys() <= needed | possible | {"opcodes", "does", "capabilities"}, stated
        assert not row.precision or row.precision in PRECISIONS
        assert (row.does == "products") == row.precision.startswith("tensor.")
        assert len(row.k) in ((1, 2) if row.family == "wgmma" else (0,))
        for name, modifiers in row.opcodes:
            for earlier in rows[:index]:
                hides = any(other == name and _left(modifiers, words) is not None for other, words in earlier.opcodes)
                within = all(any(a <= c and d <= b for a, b in earlier.capabilities) for c, d in row.capabilities)
                assert not (hides and within), f"{'.'.join((name, *modifiers))} can never fit, a row before it takes it"
    assert all(len(size) == 3 and "".join(map(str, size)) == digits for digits, size in table["shapes"].items())
    assert load_opcodes()._shapes["16x8x16"] == prod((16, 8, 16))
    assert _File.__annotations__.keys() == table.keys()
    kinds = load_opcode_kinds()
    assert [pair for pair in kinds.modifiers if pair[0] not in kinds.names or not pair[1]] == []
    assert "other" not in kinds.names.values()
    assert {row.unit for row in load_opcode_units().rows} <= {unit.id for unit in load_units().units}
    fields = [field for row in load_sass().modifiers for field in row.fields]
    assert [field for field in fields if len(field.words) != 1 << len(field.bits)] == []


def test_the_instruction_roofline_and_the_rule_on_access_patterns() -> None:
    spec = load_instructions()
    assert spec.kinds[0].id == "inst"
    assert all(bool(kind.level) == bool(kind.transactions) for kind in spec.kinds)
    assert {wall.kind for wall in spec.walls} <= {kind.id for kind in spec.kinds}
    known = {counter for kind in spec.kinds for one in kind.formulas() for counter in one.counters()}
    rules = resources.files("ncu_roofline.plugin.generate") / "templates" / "rules"
    text = (rules / "access_pattern.py.j2").read_text(encoding="utf-8")
    (pairs,) = re.findall(r"COUNTERS = \((.*?)\n\)", text, re.DOTALL)
    named = {name.format("ld") for name in re.findall(r'"([a-z_0-9{}]+)"', pairs)}
    for prefix in ("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_", "smsp__sass_inst_executed_op_shared_"):
        assert prefix in text
        named |= {f"{prefix}ld", f"{prefix}st"}
    assert len(named) >= 6
    assert named <= known


def test_why_warps_wait_is_said_in_sentences_of_what_is_known() -> None:
    for name, stall in load_stalls().items():
        assert name.islower()
        assert not stall.waits.endswith("."), name
        assert f"{stall}".isascii(), name
        assert stall.unit.count("{}") == bool(stall.unit)
        for one in (*stall.cause, *stall.advice):
            assert re.fullmatch(r"[A-Z].*\.", one.text), name
            assert {*one.where, *one.unless} <= WORDS
            for _, field, _, _ in Formatter().parse(one.text):
                assert field is None or set(FILLED[field]) & set(one.where), (name, one.text)
    assert {name for name, stall in load_stalls().items() if not stall.advice} == {"selected", "not_selected", "misc"}


def test_sets_bounds_and_headers_as_stated() -> None:
    for release, sections, name in FACTS["tables"]["sets"]:
        found = load_sets().made(parse_release(release), iter(sections.split()))
        assert (found.name if found else "") == name, (release, sections)
    for one in load_sets().sets:
        assert set(one.work) <= {"tensor", *PRECISIONS}
        assert set(one.traffic) <= LEVELS
    for release in ((2020, 1), (2021, 3), (2023, 1), (2024, 3), (2025, 4), (2026, 3), LAST_RELEASE):
        names = [one.name for one in load_sets().of(release)]
        assert len(set(names)) == len(names)
        assert {"basic", "detailed", "full"} <= set(names)
    limits, bounds = load_limits(), FACTS["bounds"]
    assert {name: found.id if (found := limits.bound(name)) else "" for name in bounds} == bounds
    assert limits.bound("lts__t_bytes" + "x" * 1000 + ".sum") is None
    assert (limits.slices, round(limits.seconds)) == (960, 32_000_000)
    bindings = [one for owner in (*SPEC.precisions, *SPEC.levels) for one in owner.bindings]
    read = spellings([one.counters for one in bindings], [one.peak for one in bindings if one.peak])
    assert [name for name in {*read, *load_units().metrics()} if limits.bound(name) is None] == []
    assert [path for path in FACTS["tables"]["of_libraries"] if not of_library(path)] == []
    assert [path for path in FACTS["tables"]["of_the_kernel"] if of_library(path)] == []


def test_ids_stand_once() -> None:
    """Ids, colours and sections of levels and precisions stand in the data files; modules ask the specification for them."""
    facts = {name for one in SPEC.precisions for name in (one.id, *one.roof_ids())} | {*SPEC.sections.values()}
    facts |= {text for level in SPEC.levels for text in (level.id, *level.color)}
    facts |= {kind.id for kind in load_instructions().kinds if kind.level}
    root, found = Path(ncu_roofline.__file__).parent, {}
    for path in sorted(root.rglob("*.py")):
        place = path.relative_to(root)
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if place.parts[0] != "chips" else ()
        named = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)} & facts
        if named:
            found[place.as_posix()] = sorted(named)
    assert found == FACTS["copies"]
