"""The tables of opcodes against what the assembler makes of PTX, whose shapes and types state the work by themselves."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from ncu_roofline.chips import OpcodeWork, kind_of, load_opcodes, load_spec
from ncu_roofline.chips.fields import SpecError, parse_capability, parse_target
from ncu_roofline.chips.formulas import covers
from ncu_roofline.chips.opcodes import KINDS, LONGEST, OTHER, load_opcode_kinds, load_opcode_units, read_opcodes
from tests.facts import sassing
from tests.facts.ptx import FP6FP4, FP8, Case, cases
from tests.facts.stated import FACTS

CASES = {case.ptx: case for case in cases()}
RECORDED = sassing.read()
TARGETS = (*sassing.OLD_TARGETS, *sassing.TARGETS)
Capability = tuple[int, int]

SOURCES = {"f16": "tensor.fp16", "bf16": "tensor.bf16", "tf32": "tensor.tf32", "f64": "tensor.fp64", "b1": "tensor.int1"}
SOURCES |= {"s8": "tensor.int8", "u8": "tensor.int8", "s4": "tensor.int4", "u4": "tensor.int4"}
SOURCES |= dict.fromkeys(FP8, "tensor.fp8") | dict.fromkeys(FP6FP4, "tensor.fp6fp4")
ACCUMULATORS = {"f16": "fp16", "f32": "fp32", "f64": "fp64", "s32": "int32"}


def capability(target: str) -> Capability:
    found = parse_target(target)
    assert found
    return found


def stated(case: Case) -> str:
    """The precision that PTX names: of two 8-bit types, the narrower one's."""
    if "mxf4" in case.ptx:
        return "tensor.fp4"
    found = {SOURCES[one] for one in case.types}
    return "tensor.fp6fp4" if "tensor.fp6fp4" in found else found.pop()


def executed(case: Case, chip: Capability) -> tuple[str, float]:
    """Precision and operations of the tensor instructions that a chip without such ones takes instead; PTX's own elsewhere."""
    precision, work = stated(case), case.work
    if case.family == "wgmma":
        return precision, work
    if precision in ("tensor.fp8", "tensor.fp6fp4") and (9, 0) <= chip < (12, 0):
        return "tensor.fp16", work  # unpacked to FP16
    eights = ".m8n8k" in case.ptx and case.types[0] in ("s8", "u8", "s4", "u4", "b1")
    padded = 2 * work if eights and chip >= (10, 0) else work  # there is no instruction of 8 rows any more
    if (precision == "tensor.int4" and chip >= (9, 0)) or (precision == "tensor.int1" and chip >= (10, 0)):
        return "tensor.int8", padded
    if precision == "tensor.int1" and chip == (9, 0) and ".xor" in case.ptx:
        return precision, 2 * work  # of two ANDs
    return precision, padded


def works(opcodes: dict[str, int], chip: Capability) -> list[tuple[OpcodeWork, int]]:
    table = load_opcodes()
    assert not [one for one in opcodes if table.unknown(one, chip)]
    return [(work, count) for one, count in opcodes.items() if (work := table.work(one, chip))]


def recorded(family: tuple[str, ...], target: str) -> list[tuple[Case, dict[str, int]]]:
    found = [(CASES[ptx], by_target[target]) for ptx, by_target in RECORDED.items() if target in by_target]
    return [(case, opcodes) for case, opcodes in found if case.family in family]


def test_products() -> None:
    """The weights of what one PTX product becomes add up to 2 M N K of the PTX shape, of its types."""
    for target in TARGETS:
        chip, looked_at = capability(target), 0
        for case, opcodes in recorded(("mma", "wgmma"), target):
            tensor = [(work, count) for work, count in works(opcodes, chip) if work.per == "warp"]
            if case.ptx.startswith("mma.sync.aligned.m8n8k4.") and case.types[0] == "f16" and chip >= (8, 0):
                assert not tensor, case.ptx  # made of FFMA on all but Volta and Turing
                continue
            precision, operations = executed(case, chip)
            warps = 4 if case.family == "wgmma" else 1
            assert sum(work.weight * count for work, count in tensor) * warps == operations, (case.ptx, opcodes)
            said = {(w.precision, w.family, w.sparse, w.accumulator, w.proven) for w, _ in tensor}
            of = precision, case.family, case.sparse, ACCUMULATORS[case.accumulator], case.family == "mma"
            assert said == {of}, case.ptx
            looked_at += 1
        assert looked_at >= {(7, 0): 14, (7, 2): 20}.get(chip, 30)


def test_every_shape_and_type_is_there() -> None:
    seen: dict[str, set[tuple[str, bool]]] = defaultdict(set)
    for case in (CASES[ptx] for ptx in RECORDED if CASES[ptx].family in ("mma", "wgmma")):
        seen[case.family].add((stated(case), case.sparse))
    types, dense_only = set(SOURCES.values()) | {"tensor.fp4"}, {"tensor.fp64", "tensor.int1"}
    both = {(one, sparse) for one in types for sparse in (False, True) if not (sparse and one in dense_only)}
    not_of_wgmma = {"tensor.fp64", "tensor.int4", "tensor.fp4", "tensor.fp6fp4"}
    assert seen == {"mma": both, "wgmma": {pair for pair in both if pair[0] not in not_of_wgmma}}


def test_tcgen05_is_unknown() -> None:
    table, names = load_opcodes(), set()
    for target in ("sm_100a", "sm_103a", "sm_110a"):
        found, chip = recorded(("tcgen05",), target), capability(target)
        assert len(found) > 20
        for case, opcodes in found:
            tensor = [one for one in opcodes if "MMA" in one]
            assert tensor, case.ptx
            assert all(table.unknown(one, chip) and table.work(one, chip) is None for one in tensor)
            names |= {one.partition(".")[0] for one in tensor}
    assert names == {"UTCHMMA", "UTCQMMA", "UTCIMMA", "UTCOMMA"}


# PTX type -> precision, and how many times the work PTX states is counted: one half of a register counts as two.
ARITHMETIC = {"f32": ("fp32", 1), "f64": ("fp64", 1), "f16": ("fp16", 2), "bf16": ("bf16", 2), "f16x2": ("fp16", 1)}
ARITHMETIC |= {"bf16x2": ("bf16", 1), "f32x2": ("fp32", 1), "f32.f16": ("fp32", 1), "f32.bf16": ("fp32", 1)}


def test_scalars() -> None:
    """Integers: at least one operation each, and of 32-bit ones but for their constants exactly one an instruction."""
    for target in TARGETS:
        chip, seen = capability(target), defaultdict[str, int](int)
        for case, opcodes in recorded(("",), target):
            done, kind = works(opcodes, chip), case.types[0]
            seen["cvt" if case.ptx == "cvt.f32.f16" else "fp" if kind in ARITHMETIC else kind] += 1
            if kind in ARITHMETIC:
                precision, times = ARITHMETIC[kind]
                if kind.endswith("16x2") and not case.ptx.startswith("fma") and any("HFMA2" in one for one in opcodes):
                    times = 2  # packed sums and products made by a fused multiply-add, which its opcode counts as
                assert {(work.precision, work.per, work.conversion) for work, _ in done} == {(precision, "thread", False)}
                assert sum(work.weight * count for work, count in done) == times * case.work, (case.ptx, opcodes)
                assert {work.fused for work, _ in done} == {"FMA" in one for one in opcodes}
            elif kind == "none":
                assert not [work for work, _ in done if work.precision != "int32"], (case.ptx, opcodes)
            elif case.ptx == "cvt.f32.f16":
                assert done == [(OpcodeWork("fp16", 0, "thread", conversion=True), 1)]
            elif kind == "int32":
                integers = [(work.weight, count) for work, count in done if work.precision == "int32"]
                if chip == (7, 0) and case.ptx.startswith(("min", "max")):
                    assert not integers  # a comparison and a selection
                else:
                    assert {weight for weight, _ in integers} == {1}, (case.ptx, opcodes)
        assert min(seen["fp"] - 19, seen["int32"] - 30, seen["none"]) > 0
        assert seen["cvt"] == 1


ODD = ("", ".", "....", "HMMA", "HMMA.", "HMMA..F32", "hmma.16816.f32", "HMMA.16816\0.F32", "\ud800", "FADD*", "HMMA.٣")
LONG = ("HMMA" * 10**6, "HMMA" + ".F32" * 10**6, "A" * LONGEST, "*MMA" * 40)


def test_opcodes_by_hand() -> None:
    table = load_opcodes()
    for opcode, chip, precision, weight in map(str.split, FACTS["weights"]):
        work = table.work(opcode, parse_capability(chip))
        assert (work.precision, work.weight) == (precision, int(weight)), opcode
    for opcode in FACTS["no_work"].split():
        assert (table.work(opcode, (8, 0)), table.unknown(opcode, (8, 0))) == (None, False), opcode
    for chip, *opcodes in map(str.split, FACTS["unknown"]):
        for opcode in opcodes:
            assert table.work(opcode, parse_capability(chip)) is None, opcode
            assert table.unknown(opcode, parse_capability(chip)), opcode
    for text in ODD:
        assert table.work(text, (8, 0)) is None or not table.unknown(text, (8, 0)), text
    for text in LONG:
        assert table.work(text, (8, 0)) is None
        assert table.unknown(text, (8, 0)) == ("MMA" in text)
    assert table.work("FADD" + "." * (LONGEST - 4), (8, 0))


def test_wrong_tables(tmp_path: Path) -> None:
    head = 'neutral = []\nunknown = ["*MMA*"]\n[shapes]\n884 = [8, 8, 4]\n'
    for said, rows in FACTS["wrong"].items():
        (tmp_path / "opcodes.toml").write_text(head + rows, encoding="utf-8")
        with pytest.raises(SpecError) as caught:
            read_opcodes(tmp_path)
        assert "opcodes.toml" in str(caught.value)
        assert said in str(caught.value)


def test_kinds_and_units() -> None:
    """The tables of opcodes agree wherever an opcode does work."""
    for kind, opcodes in FACTS["kinds"].items():
        assert {kind_of(opcode) for opcode in opcodes.split()} == {kind}
    assert kind_of("op 0x1a3") == kind_of("") == OTHER
    made = {name for by_target in RECORDED.values() for opcodes in by_target.values() for name in opcodes}
    assert {name for name in made if kind_of(name) == OTHER} == set()
    table = load_opcode_kinds()
    assert {*table.names.values(), *table.modifiers.values(), OTHER} == set(KINDS)
    units = load_opcode_units()
    for chip, expected in FACTS["units"].items():
        assert {opcode: units.of(opcode, parse_capability(chip)) for opcode in expected} == expected
    for row in load_opcodes().rows:
        for name, modifiers in row.opcodes:
            kind = kind_of(".".join((name, *(modifier.rstrip("*") for modifier in modifiers))))
            expected = {"nothing": "move", "conversion": "conversion", "products": "tensor"}.get(row.does, row.precision)
            assert kind == {"int32": "integer"}.get(expected, expected), name
        if row.precision.startswith("tensor."):  # counters or opcodes tell of its precision on chips where it applies
            spec = load_spec()
            chips = [one.compute_capability for one in spec.architectures if covers(row.capabilities, one.compute_capability)]
            assert chips
            assert all(spec.bindings(spec.precision(row.precision), chip) for chip in chips), row


@pytest.mark.exhaustive
def test_the_record_is_what_the_assembler_gives(tmp_path: Path) -> None:
    """Of wgmma, whose registers take the assembler long, some N."""
    tools = sassing.toolkit()
    if tools is None:
        pytest.skip("no nvcc (set NVCC), or no nvdisasm (pip install nvidia-cuda-nvdisasm)")
    if not sassing.version(*tools).startswith("ptxas 13.0."):
        pytest.skip("the record is of CUDA 13.0")
    some = [case for case in cases() if case.family != "wgmma" or any(f"n{n}k" in case.ptx for n in (8, 40, 128))]
    wanted = {case.ptx for case in some}
    for target in sassing.TARGETS:
        found = sassing.opcodes_of(*tools, target, tmp_path, some)
        assert found == {ptx: each[target] for ptx, each in RECORDED.items() if target in each and ptx in wanted}, target
