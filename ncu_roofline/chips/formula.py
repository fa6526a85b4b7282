"""Weighted sums of counters: the one form that every peak, work and traffic has.

A term names a counter without its suffix (``smsp__sass_thread_inst_executed_op_ffma_pred_on``); the suffix
(``.sum``, ``.sum.per_second``, ``.sum.peak_sustained``) is added by whoever uses the sum, so the same object serves the
offline model, a section's chart and a rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any


class WeightedSum(tuple[tuple[str, float], ...]):
    """``sum(weight * counter)`` as its terms; weights are finite, non-zero and without unit unless the owner says otherwise."""

    __slots__ = ()

    def __new__(cls, terms: Iterable[tuple[str, float]]) -> WeightedSum:
        made = super().__new__(cls, terms)
        names = made.counters()
        if not names:
            raise ValueError("a weighted sum needs at least one counter")
        if len(set(names)) != len(names):
            raise ValueError(f"counter named twice in a weighted sum: {', '.join(names)}")
        for name, weight in made:
            if not 0 < weight < float("inf"):
                raise ValueError(f"weight of {name} must be positive and finite, not {weight!r}")
        return made

    @classmethod
    def of(cls, table: Mapping[str, float]) -> WeightedSum:
        """From ``{counter: weight}``."""
        return cls(tuple((name, float(weight)) for name, weight in table.items()))

    @property
    def terms(self) -> tuple[tuple[str, float], ...]:
        """Counters with their weights."""
        return self

    def counters(self) -> tuple[str, ...]:
        """The counters, in order."""
        return tuple(name for name, _ in self)

    def text(self) -> str:
        """Readable form: ``dadd + dmul + 2*dfma``."""
        return " + ".join(name if weight == 1 else f"{weight:g}*{name}" for name, weight in self)


def summed(terms: Sequence[tuple[str, float]], value_of: Callable[[str], Any], form: str = "") -> Any:
    """The weighted sum over ``value_of(counter + form)``: numbers, or arrays of one shape.  NaN (missing) stays NaN."""
    values = [value_of(name + form) * weight for name, weight in terms]
    return sum(values[1:], values[0])


def twin(counter: str) -> str | None:
    """The same count under the other unit's name: SASS and pipe counters exist per SM and per partition, sums are equal."""
    unit, _, rest = counter.partition("__")
    if not rest.startswith(("sass_", "inst_executed_pipe_")):
        return None
    return {"sm": "smsp__" + rest, "smsp": "sm__" + rest}.get(unit)
