"""The tables of opcodes against what the assembler makes of PTX, whose shapes and types state the work by themselves."""

from __future__ import annotations

from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ncu_roofline.chips import OpcodeWork, kind_of, load_opcodes, load_spec
from ncu_roofline.chips.fields import SpecError
from ncu_roofline.chips.formulas import covers
from ncu_roofline.chips.opcodes import KINDS, LONGEST, OTHER, load_opcode_kinds, read_opcodes
from tests.facts import sassing
from tests.facts.ptx import FP6FP4, FP8, Case, cases

CASES = {case.ptx: case for case in cases()}
RECORDED = sassing.read()
TARGETS = (*sassing.OLD_TARGETS, *sassing.TARGETS)
Capability = tuple[int, int]

SOURCES = {"f16": "tensor.fp16", "bf16": "tensor.bf16", "tf32": "tensor.tf32", "f64": "tensor.fp64", "b1": "tensor.int1"}
SOURCES |= {"s8": "tensor.int8", "u8": "tensor.int8", "s4": "tensor.int4", "u4": "tensor.int4"}
SOURCES |= dict.fromkeys(FP8, "tensor.fp8") | dict.fromkeys(FP6FP4, "tensor.fp6fp4")
ACCUMULATORS = {"f16": "fp16", "f32": "fp32", "f64": "fp64", "s32": "int32"}


def capability(target: str) -> Capability:
    digits = target.removeprefix("sm_").rstrip("a")
    return int(digits[:-1]), int(digits[-1])


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
    if precision == "tensor.int4" and chip >= (9, 0):
        return "tensor.int8", padded
    if precision == "tensor.int1" and chip >= (10, 0):
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


def on_cuda_cores(case: Case, chip: Capability) -> bool:
    """The m8n8k4 of Volta is made of FFMA on all but Volta and Turing."""
    return case.ptx.startswith("mma.sync.aligned.m8n8k4.") and case.types[0] == "f16" and chip >= (8, 0)


@pytest.mark.parametrize("target", TARGETS)
def test_products(target: str) -> None:
    """The weights of what one PTX product becomes add up to 2 M N K of the PTX shape, of its types."""
    chip, table = capability(target), load_opcodes()
    looked_at = 0
    for case, opcodes in recorded(("mma", "wgmma"), target):
        tensor = [(work, count) for work, count in works(opcodes, chip) if work.per == "warp"]
        if on_cuda_cores(case, chip):
            assert not tensor, case.ptx
            continue
        precision, operations = executed(case, chip)
        warps = 4 if case.family == "wgmma" else 1
        assert {work.precision for work, _ in tensor} == {precision}, case.ptx
        assert sum(work.weight * count for work, count in tensor) * warps == operations, (case.ptx, opcodes)
        assert {work.family for work, _ in tensor} == {case.family}, case.ptx
        assert {work.sparse for work, _ in tensor} == {case.sparse}, case.ptx
        assert {work.accumulator for work, _ in tensor} == {ACCUMULATORS[case.accumulator]}, case.ptx
        assert {work.proven for work, _ in tensor} == {case.family == "mma"}, case.ptx
        assert not any(table.unknown(one, chip) for one in opcodes)
        looked_at += 1
    assert looked_at >= {(7, 0): 14, (7, 2): 20}.get(chip, 30)


def test_every_shape_and_type_is_there() -> None:
    """What the record holds: nothing that PTX has and no chip takes, and all types of all families."""
    tensor = {ptx for ptx in RECORDED if CASES[ptx].family in ("mma", "wgmma")}
    never = {case.ptx for case in CASES.values() if case.family in ("mma", "wgmma")} - tensor
    assert all(ptx.startswith("mma.sp.sync.aligned.m16n8k64.row.col.f16.e") for ptx in never)  # only with ordered metadata
    seen: dict[str, set[tuple[str, bool]]] = defaultdict(set)
    for ptx in tensor:
        seen[CASES[ptx].family].add((stated(CASES[ptx]), CASES[ptx].sparse))
    types = set(SOURCES.values()) | {"tensor.fp4"}
    dense_only = {"tensor.fp64", "tensor.int1"}
    assert seen["mma"] == {(one, sparse) for one in types for sparse in (False, True) if not (sparse and one in dense_only)}
    of_wgmma = types - {"tensor.fp64", "tensor.int4", "tensor.fp4", "tensor.fp6fp4"}
    assert seen["wgmma"] == {
        (one, sparse) for one in of_wgmma for sparse in (False, True) if not (sparse and one in dense_only)
    }


def test_tcgen05_is_unknown() -> None:
    table = load_opcodes()
    names = set()
    for target in ("sm_100a", "sm_103a", "sm_110a"):
        found = recorded(("tcgen05",), target)
        assert len(found) > 20
        for case, opcodes in found:
            tensor = [one for one in opcodes if "MMA" in one]
            assert tensor, case.ptx
            assert all(table.unknown(one, capability(target)) for one in tensor)
            assert all(table.work(one, capability(target)) is None for one in tensor)
            names |= {one.partition(".")[0] for one in tensor}
    assert names == {"UTCHMMA", "UTCQMMA", "UTCIMMA", "UTCOMMA"}


# PTX type -> precision, and how many times the work PTX states is counted: one half of a register counts as two.
ARITHMETIC = {"f32": ("fp32", 1), "f64": ("fp64", 1), "f16": ("fp16", 2), "bf16": ("bf16", 2), "f16x2": ("fp16", 1)}
ARITHMETIC |= {"bf16x2": ("bf16", 1), "f32x2": ("fp32", 1), "f32.f16": ("fp32", 1), "f32.bf16": ("fp32", 1)}


def test_precisions_are_those_of_the_chip() -> None:
    """Where a row applies, counters or opcodes tell of its precision there."""
    spec = load_spec()
    for row in load_opcodes().rows:
        if row.precision.startswith("tensor."):
            chips = [one.compute_capability for one in spec.architectures if covers(row.capabilities, one.compute_capability)]
            assert chips
            assert all(spec.bindings(spec.precision(row.precision), chip) for chip in chips), row


@pytest.mark.parametrize("target", TARGETS)
def test_scalars(target: str) -> None:
    """Integers: at least one operation each, and of 32-bit ones but for their constants exactly one an instruction."""
    chip, seen = capability(target), defaultdict(int)
    for case, opcodes in recorded(("",), target):
        done = works(opcodes, chip)
        kind = case.types[0]
        seen["cvt" if case.ptx == "cvt.f32.f16" else "fp" if kind in ARITHMETIC else kind] += 1
        if kind in ARITHMETIC:
            precision, times = ARITHMETIC[kind]
            if kind.endswith("16x2") and not case.ptx.startswith("fma") and any("HFMA2" in one for one in opcodes):
                times = 2  # packed sums and products made by a fused multiply-add, which its opcode counts as
            assert {(work.precision, work.per, work.conversion) for work, _ in done} == {(precision, "thread", False)}, case.ptx
            assert sum(work.weight * count for work, count in done) == times * case.work, (case.ptx, opcodes)
            assert {work.fused for work, _ in done} == {"FMA" in one for one in opcodes}
        elif kind == "none":
            assert not [work for work, _ in done if work.precision != "int32"], (case.ptx, opcodes)
        elif case.ptx == "cvt.f32.f16":
            assert done == [(OpcodeWork("fp16", 0, "thread", conversion=True), 1)]
        elif kind == "int32":
            integers = [(work, count) for work, count in done if work.precision == "int32"]
            if chip == (7, 0) and case.ptx.startswith(("min", "max")):
                assert not integers  # a comparison and a selection
            else:
                assert sum(work.weight * count for work, count in integers) >= 1, (case.ptx, opcodes)
                assert {work.weight for work, _ in integers} == {1}
    assert seen["fp"] >= 20
    assert seen["int32"] > 30
    assert seen["none"]
    assert seen["cvt"] == 1


# Opcode, chip, precision, weight; and what real reports pair: warps that executed it, operations.
BY_HAND = """
HMMA.16816.F32.BF16 8.0 tensor.bf16 4096
HMMA.1688.F16 7.5 tensor.fp16 2048
DMMA.884 8.0 tensor.fp64 512
IMMA.8816.S8.S8.SAT 7.5 tensor.int8 2048
IMMA.16832.S8.S8 8.6 tensor.int8 8192
HMMA.884.F32.F32.STEP3 7.0 tensor.fp16 512
HMMA.884.F16.F16.STEP1 7.0 tensor.fp16 1024
HGMMA.64x256x16.F32.BF16 9.0 tensor.bf16 131072
HFMA2.MMA 8.0 fp16 4
HFMA2.MMA.BF16_V2 9.0 bf16 4
HADD2.BF16 9.0 bf16 2
IMAD.WIDE.U32 8.0 int32 1
FFMA2 10.0 fp32 4
"""
PAIRS = [
    ("HMMA.1688.F32", (7, 5), 67_108_864, 137_438_953_472),  # a T4: sm__ops_path_tensor_*
    ("HMMA.16816.F32.BF16", (12, 0), 2_162_688, 8_858_370_048),  # an RTX 5090: sm__ops_path_tensor_*
    ("HMMA.16816.F16", (8, 6), 33_554_432, 2 * 4096**3),  # a GEMM of 4096 x 4096 x 4096
]
NO_WORK = "IMAD.MOV.U32 MOV FMNMX DSETP.GT.AND ISETP.NE.AND MUFU.RCP FSEL UIADD3 F2FP.PACK_AB R2UR"


def test_weights_by_hand() -> None:
    table = load_opcodes()
    for opcode, chip, precision, weight in map(str.split, BY_HAND.strip().splitlines()):
        work = table.work(opcode, tuple(map(int, chip.split("."))))
        assert (work.precision, work.weight) == (precision, int(weight)), opcode
    for opcode, capability, warps, operations in PAIRS:
        assert table.work(opcode, capability).weight * warps == operations
    for opcode in NO_WORK.split():
        assert table.work(opcode, (8, 0)) is None, opcode
        assert not table.unknown(opcode, (8, 0)), opcode


# A shape and a type that nobody has seen (which is not FP16), K of a sparse product without .SP, chips without such, new names.
UNKNOWN = """
8.0 HMMA.32832.F32 HMMA.F32 HMMA.16816.F32.FP9 HMMA.1688.16816.F32
7.0 HMMA.884.F32.F32
7.5 HMMA.16816.F32.BF16
9.0 IMMA.16832.S4.S4 HGMMA.64x256x32.F32 HGMMA.64x264x16.F32
10.0 QMMA.16832.F32.E4M3.E4M3 HGMMA.64x256x16.F32 UTCHMMA
12.0 QMMA.16832.F32.E4M3.E9M9
13.0 XMMA.16816.F32 FADD3 DFMA2
"""
ODD = ("", ".", "....", "HMMA", "HMMA.", "HMMA..F32", "hmma.16816.f32", "HMMA.16816\0.F32", "\ud800", "FADD*", "[DFH]ADD*")
LONG = ("HMMA" * 10**6, "HMMA" + ".F32" * 10**6, "A" * LONGEST, "*MMA" * 40)


def test_work_that_cannot_be_weighed_is_unknown() -> None:
    table = load_opcodes()
    for chip, *opcodes in map(str.split, UNKNOWN.strip().splitlines()):
        for opcode in opcodes:
            major, minor = map(int, chip.split("."))
            assert table.work(opcode, (major, minor)) is None, opcode
            assert table.unknown(opcode, (major, minor)), opcode
    for text in (*ODD, "HMMA.٣"):
        assert table.work(text, (8, 0)) is None or not table.unknown(text, (8, 0)), text
    for text in LONG:
        assert table.work(text, (8, 0)) is None
        table.unknown(text, (8, 0))
    table.work("FADD" + "." * (LONGEST - 4), (8, 0))


ROW = '[[rows]]\nopcodes = ["FADD"]\nprecision = "fp32"\nweight = 1\n'
TENSOR = '[[rows]]\nopcodes = ["HMMA"]\ndoes = "products"\nprecision = "tensor.fp16"\naccumulator = "fp32"\n'


@pytest.mark.parametrize(
    ("rows", "key"),
    [
        ("", "rows: is missing"),
        (ROW + ROW.replace("FADD", "FMUL|FADD"), "rows[1].opcodes: 'FMUL|FADD' is no opcode"),
        (ROW.replace("FADD", "fadd"), "rows[0].opcodes: 'fadd' is no opcode"),
        (ROW.replace('"FADD"', ""), "rows[0].opcodes: must name at least one"),
        (ROW.replace("1", "0"), "rows[0].weight: must be positive"),
        (ROW + "wieght = 1\n", "rows[0].wieght: is not a key"),
        (ROW + 'capabilities = "9.0-8.0"\n', "rows[0].capabilities: 9.0-8.0"),
        (TENSOR + 'family = "wgmma"\nk = ["16"]\n', "rows[0].k: must be a list of whole numbers"),
    ],
)
def test_wrong_tables(tmp_path: Path, rows: str, key: str) -> None:
    head = 'neutral = []\nunknown = ["*MMA*"]\n[shapes]\n884 = [8, 8, 4]\n'
    (tmp_path / "opcodes.toml").write_text(head + rows, encoding="utf-8")
    with pytest.raises(SpecError) as caught:
        read_opcodes(tmp_path)
    assert "opcodes.toml" in str(caught.value)
    assert key in str(caught.value)


OPCODES_OF_KINDS = {
    "fp64": "DFMA MUFU.RCP64H",
    "fp32": "MUFU.RCP FADD.FTZ",
    "fp16": "HFMA2.MMA",
    "bf16": "HFMA2.RELU.BF16_V2",
    "tensor": "HMMA.16816.F32.BF16",
    "conversion": "HADD2.F32 F2F.F64.F32",
    "move": "IMAD.MOV.U32",
    "integer": "IMAD.WIDE UIADD3",
    "memory": "LDGSTS.E.BYPASS.128",
    "shared": "LDSM.16.M88.4",
    "control": "BRA",
}


def test_kinds() -> None:
    for kind, opcodes in OPCODES_OF_KINDS.items():
        assert {kind_of(opcode) for opcode in opcodes.split()} == {kind}
    assert kind_of("op 0x1a3") == kind_of("") == OTHER
    made = {name for by_target in RECORDED.values() for opcodes in by_target.values() for name in opcodes}
    assert {name for name in made if kind_of(name) == OTHER} == set()
    table = load_opcode_kinds()
    assert {*table.names.values(), *table.modifiers.values(), OTHER} == set(KINDS)


def test_work_is_of_the_kind_of_its_precision() -> None:
    """The two tables of opcodes agree wherever an opcode does work."""
    seen = set()
    for row in load_opcodes().rows:
        for name, modifiers in row.opcodes:
            kind = kind_of(".".join((name, *(modifier.rstrip("*") for modifier in modifiers))))
            expected = {"nothing": "move", "conversion": "conversion", "products": "tensor"}.get(row.does, row.precision)
            assert kind == {"int32": "integer"}.get(expected, expected), name
            seen.add(kind)
    assert seen == {"fp64", "fp32", "fp16", "bf16", "tensor", "integer", "conversion", "move"}


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
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda target: sassing.opcodes_of(*tools, target, tmp_path, some), sassing.TARGETS))
    for target, by_ptx in zip(sassing.TARGETS, found, strict=True):
        assert by_ptx == {ptx: each[target] for ptx, each in RECORDED.items() if target in each and ptx in wanted}, target
