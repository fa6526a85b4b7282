"""What is counted on each chip: counters, weights, peaks and ranges of compute capability, work of opcodes; from data files."""

from __future__ import annotations

from ncu_roofline.chips.description import Architecture, Binding, BoardRule, Gpu, Level, Precision, Spec
from ncu_roofline.chips.fields import SpecError
from ncu_roofline.chips.hardware import Gauge, Rate, TensorActivity, Unit, Units, load_units
from ncu_roofline.chips.instruction import InstructionSpec, load_instructions
from ncu_roofline.chips.loading import load_spec, read_spec
from ncu_roofline.chips.opcode_kinds import kind_of
from ncu_roofline.chips.opcodes import OpcodeTable, OpcodeWork, load_opcodes
from ncu_roofline.chips.stalls import load_stalls

__all__ = [
    "Architecture",
    "Binding",
    "BoardRule",
    "Gauge",
    "Gpu",
    "InstructionSpec",
    "Level",
    "OpcodeTable",
    "OpcodeWork",
    "Precision",
    "Rate",
    "Spec",
    "SpecError",
    "TensorActivity",
    "Unit",
    "Units",
    "kind_of",
    "load_instructions",
    "load_opcodes",
    "load_spec",
    "load_stalls",
    "load_units",
    "read_spec",
]
