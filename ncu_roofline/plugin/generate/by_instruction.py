"""What the rules on instructions share: `chips.findings` and what goes with it, as text, with the facts that it needs."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

from ncu_roofline.chips import (
    circumstances,
    findings,
    listing,
    load_opcodes,
    load_spec,
    load_stalls,
    load_units,
    source_counters,
    verdict,
)
from ncu_roofline.chips.opcodes import load_opcode_kinds, load_opcode_units
from ncu_roofline.plugin.generate.files import python, render

_CARRIED = (circumstances, findings, listing)


class _Stall(NamedTuple):
    waits: str
    cause: tuple[tuple[object, ...], ...]
    advice: tuple[tuple[object, ...], ...]
    caches: bool
    issue: bool
    least: float
    least_at_place: float
    unit: str
    limits: tuple[str, ...]


def by_instruction(plain_source: Callable[[ModuleType], str]) -> str:
    """The text, a part of the rules' helper."""
    labels = {unit.id: unit.label for unit in load_units().units}
    kinds, table = load_opcode_kinds(), load_opcodes()
    core = {one.id for one in load_spec().precisions if one.kind == "core" and one.unit == "flop"}
    stalls = {
        name: _Stall(
            *(stall.waits, tuple(map(tuple, stall.cause)), tuple(map(tuple, stall.advice)), stall.caches, stall.issue),
            *(stall.least, stall.least_at_place, stall.unit, stall.limits),
        )
        for name, stall in load_stalls().items()
    }
    return render(
        "rules/_instructions.py.j2",
        constants="\n".join(f"{name} = {python(value)}" for name, value in sorted(_constants().items())),
        texts="\n\n\n".join(map(plain_source, _CARRIED)),
        columns={column: names for column, (names, _) in source_counters.COUNTED.items()},
        counters=source_counters,
        stall_fields=" ".join(_Stall._fields),
        stalls=stalls,
        opcode_units=tuple((row.capabilities, tuple(sorted(row.names)), labels[row.unit]) for row in load_opcode_units().rows),
        kinds=kinds.names,
        modifiers=kinds.modifiers,
        work={
            name: (kind if (kind := kinds.of(name)) in ("fp64", "fp32") else "", int(row.weight))
            for row in table.rows
            if row.precision in core and row.does == "arithmetic"
            for name, _ in row.opcodes
        },
        unknown="|".join(map(_searched, table.unknown_names)),
    )


def _constants() -> dict[str, Any]:
    """What the carried modules import of others: numbers, texts and tables of these."""
    carried = {module.__name__ for module in (*_CARRIED, verdict)}
    found = {}
    for module in _CARRIED:
        for node in ast.parse(inspect.getsource(module)).body:
            if isinstance(node, ast.ImportFrom) and node.module not in carried:
                values = {alias.name: getattr(module, alias.name, None) for alias in node.names if alias.name.isupper()}
                found.update({name: value for name, value in values.items() if value is not None})
    return found


def _searched(pattern: str) -> str:
    """A pattern of names as a regular expression to search by: its cost is linear."""
    return f"{'' if pattern.startswith('*') else '^'}{pattern.strip('*')}{'' if pattern.endswith('*') else '$'}"
