"""What an instruction is for: arithmetic of a precision, memory, control ..., by its opcode."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING

from ncu_roofline.chips.loading import read_fields

if TYPE_CHECKING:
    from importlib.abc import Traversable

FILE = "opcode_kinds.toml"
KINDS = ("fp64", "fp32", "fp16", "bf16", "tensor", "integer", "conversion", "memory", "shared", "control", "move", "other")
OTHER = "other"


@dataclass(frozen=True)
class OpcodeKinds:
    """Kinds of opcodes by name, and of those that a modifier makes another kind of, by ``(name, modifier)``."""

    names: Mapping[str, str]
    modifiers: Mapping[tuple[str, str], str]

    def of(self, opcode: str) -> str:
        """One of `KINDS`; OTHER for a name that is not known."""
        name, *modifiers = opcode.split(".")
        for modifier in modifiers:
            found = self.modifiers.get((name, modifier))
            if found is not None:
                return found
        return self.names.get(name, OTHER)


def kind_of(opcode: str) -> str:
    """The kind of an opcode, with or without modifiers ("HFMA2.BF16_V2"): one of `KINDS`."""
    return load_opcode_kinds().of(opcode)


@lru_cache(maxsize=1)
def load_opcode_kinds() -> OpcodeKinds:
    """The table that comes with the package, read once."""
    return read_opcode_kinds(resources.files("ncu_roofline") / "data" / FILE)


def read_opcode_kinds(path: Traversable) -> OpcodeKinds:
    """Read and check a table.  `SpecError` names file and key of the first mistake."""
    file = read_fields(path, FILE)
    listed, special = file.table("names"), file.table("modifiers")
    names: dict[str, str] = {}
    for kind in listed.names():
        if kind not in KINDS or kind == OTHER:
            listed.fail(kind, f"is none of {', '.join(KINDS[:-1])}")
        for name in listed.texts(kind):
            if names.setdefault(name, kind) != kind:
                listed.fail(kind, f"{name} is of kind {names[name]}, too")
    modifiers = {}
    for opcode in special.names():
        name, _, modifier = opcode.partition(".")
        if name not in names or not modifier:
            special.fail(opcode, "is no known name with a modifier")
        modifiers[name, modifier] = special.text(opcode, allowed=KINDS)
    for fields in (listed, special, file):
        fields.finish()
    return OpcodeKinds(names, modifiers)
