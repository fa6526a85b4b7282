"""What is counted on each chip: counters, weights, peaks and ranges of compute capability, work of opcodes; from data files."""

from __future__ import annotations

# Names are looked up when they are asked for, so that a start reads only the files that it needs.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ncu_roofline.chips.architectures import Architecture, Gpu
    from ncu_roofline.chips.instruction import InstructionSpec, load_instructions
    from ncu_roofline.chips.opcodes import OpcodeTable, OpcodeWork, kind_of, load_opcodes
    from ncu_roofline.chips.precisions import Binding, Level, Precision
    from ncu_roofline.chips.spec import Spec, load_spec, read_spec
    from ncu_roofline.chips.stalls import load_stalls
    from ncu_roofline.chips.units import load_units

_HOMES = {
    "architectures": ("Architecture", "Gpu"),
    "instruction": ("InstructionSpec", "load_instructions"),
    "opcodes": ("OpcodeTable", "OpcodeWork", "kind_of", "load_opcodes"),
    "precisions": ("Binding", "Level", "Precision"),
    "spec": ("Spec", "load_spec", "read_spec"),
    "stalls": ("load_stalls",),
    "units": ("load_units",),
}

__all__ = [
    "Architecture",
    "Binding",
    "Gpu",
    "InstructionSpec",
    "Level",
    "OpcodeTable",
    "OpcodeWork",
    "Precision",
    "Spec",
    "kind_of",
    "load_instructions",
    "load_opcodes",
    "load_spec",
    "load_stalls",
    "load_units",
    "read_spec",
]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    home = next((home for home, names in _HOMES.items() if name in names), None)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"{__name__}.{home}"), name)
    return found
