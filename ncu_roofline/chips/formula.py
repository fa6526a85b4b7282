"""Weighted sums of counters: the one form that every peak, work and traffic has.

A term names a counter without its suffix (``smsp__sass_thread_inst_executed_op_ffma_pred_on``); the suffix
(``.sum``, ``.sum.per_second``, ``.sum.peak_sustained``) is added by whoever uses the sum, so the same object serves the
offline model, a section's chart and a rule.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class WeightedSum:
    """``sum(weight * counter)``; weights are finite, non-zero and without unit unless the owner says otherwise."""

    terms: tuple[tuple[str, float], ...]

    def __post_init__(self) -> None:
        names = [name for name, _ in self.terms]
        if not names:
            raise ValueError("a weighted sum needs at least one counter")
        if len(set(names)) != len(names):
            raise ValueError(f"counter named twice in a weighted sum: {', '.join(names)}")
        for name, weight in self.terms:
            if not 0 < weight < float("inf"):
                raise ValueError(f"weight of {name} must be positive and finite, not {weight!r}")

    @classmethod
    def of(cls, table: Mapping[str, float]) -> WeightedSum:
        """From ``{counter: weight}``."""
        return cls(tuple((name, float(weight)) for name, weight in table.items()))

    def counters(self) -> tuple[str, ...]:
        """The counters, in order."""
        return tuple(name for name, _ in self.terms)

    def evaluate(self, value_of: Callable[[str], Any]) -> Any:
        """The sum over ``value_of(counter)``: numbers, or arrays of one shape.  NaN (missing) stays NaN."""
        return functools.reduce(operator.add, (value_of(name) * weight for name, weight in self.terms))

    def text(self) -> str:
        """Readable form: ``dadd + dmul + 2*dfma``."""
        return " + ".join(name if weight == 1 else f"{weight:g}*{name}" for name, weight in self.terms)


def twin(counter: str) -> str | None:
    """The same count under the other unit's name: SASS and pipe counters exist per SM and per partition, sums are equal."""
    unit, _, rest = counter.partition("__")
    if not rest.startswith(("sass_", "inst_executed_pipe_")):
        return None
    return {"sm": "smsp__" + rest, "smsp": "sm__" + rest}.get(unit)
