"""What is counted on each chip: counters, weights, peaks and ranges of compute capability, work of opcodes; from data files."""

from __future__ import annotations

# Names are looked up when they are asked for, so that a start reads only the files that it needs.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ncu_roofline.chips.opcodes import OpcodeRow, OpcodeTable, kind_of, load_opcodes
    from ncu_roofline.chips.spec import Architecture, Binding, Gpu, Level, Precision, Spec, load_spec, read_spec
    from ncu_roofline.chips.tables import InstructionSpec, load_instructions, load_stalls, load_units

__all__ = ["Architecture", "Binding", "Gpu", "InstructionSpec", "Level", "OpcodeRow", "OpcodeTable", "Precision", "Spec"]
__all__ += ["kind_of", "load_instructions", "load_opcodes", "load_spec", "load_stalls", "load_units", "read_spec"]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    of_tables = name in ("InstructionSpec", "load_instructions", "load_stalls", "load_units")
    home = "opcodes" if "pcode" in name or name == "kind_of" else "tables" if of_tables else "spec"
    found = globals()[name] = getattr(import_module(f"{__name__}.{home}"), name)
    return found
