"""What an instruction is for, by its opcode."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ncu_roofline.chips import kind_of, load_opcodes
from ncu_roofline.chips.opcodes import KINDS, OTHER, load_opcode_kinds

COMPILED = json.loads((Path(__file__).parent / "opcodes.json").read_text(encoding="utf-8"))["opcodes"]


@pytest.mark.parametrize(
    ("opcode", "kind"),
    [
        ("DFMA", "fp64"),
        ("MUFU.RCP64H", "fp64"),
        ("MUFU.RCP", "fp32"),
        ("FADD.FTZ", "fp32"),
        ("HADD2.F32", "conversion"),
        ("HFMA2.MMA", "fp16"),
        ("HFMA2.RELU.BF16_V2", "bf16"),
        ("HMMA.16816.F32.BF16", "tensor"),
        ("IMAD.MOV.U32", "move"),
        ("IMAD.WIDE", "integer"),
        ("UIADD3", "integer"),
        ("F2F.F64.F32", "conversion"),
        ("LDGSTS.E.BYPASS.128", "memory"),
        ("LDSM.16.M88.4", "shared"),
        ("BRA", "control"),
        ("op 0x1a3", OTHER),
        ("", OTHER),
    ],
)
def test_kinds(opcode: str, kind: str) -> None:
    assert kind_of(opcode) == kind


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


def test_what_compilers_make_is_known() -> None:
    names = {word.partition("*")[0] for chips in COMPILED.values() for line in chips.values() for word in line.split()}
    assert {name for name in names if kind_of(name) == OTHER} == set()


def test_every_kind_has_opcodes() -> None:
    table = load_opcode_kinds()
    assert {*table.names.values(), *table.modifiers.values(), OTHER} == set(KINDS)
