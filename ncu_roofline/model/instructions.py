"""Warp instructions of launches, the transactions of some kinds of them, and how fast they may be issued."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ncu_roofline.formula import WeightedSum
from ncu_roofline.model.counters import Counters, spellings
from ncu_roofline.model.measurements import Origin, Quantity
from ncu_roofline.spec import InstructionSpec
from ncu_roofline.spec.description import Binding
from ncu_roofline.spec.instruction import EXECUTED

LANES = "lanes"
"""Key of `Measurements.instructions` for threads with a true predicate / 32: the instructions that whole warps would need."""


@lru_cache(maxsize=1)
def instruction_metrics(wanted: InstructionSpec) -> frozenset[str]:
    """Every metric that could say something of instructions."""
    sums = [one for kind in wanted.kinds for one in kind.formulas()]
    lanes, issue = WeightedSum.of({wanted.lanes: 1.0}), WeightedSum.of({wanted.issue_counter: 1.0})
    return frozenset(spellings([*sums, lanes], [issue])) | {f"{wanted.lanes_per_instruction}.ratio"}


def instructions_of(counters: Counters, wanted: InstructionSpec) -> tuple[dict[str, Quantity], dict[str, Quantity], Quantity]:
    """Of launches on one chip: warp instructions by kind, transactions by kind, and the peak of instructions per second."""
    instructions, transactions = {}, {}
    for kind in wanted.kinds:
        found = _first(counters, kind.instructions), _first(counters, kind.transactions)
        if found[0].origins:
            instructions[kind.id] = found[0]
        if found[1].origins:
            transactions[kind.id] = found[1]
    lanes = _lanes(counters, wanted, instructions)
    if lanes.origins:
        instructions[LANES] = lanes
    peak = counters.peak(WeightedSum.of({wanted.issue_counter: 1.0}), "sm", "binding")
    return instructions, transactions, peak.filled(counters.per_sm(wanted.issue_per_sm))


def _first(counters: Counters, ways: tuple[Binding, ...]) -> Quantity:
    """Launch by launch the first way that the report has the counters of."""
    result = Quantity.missing(len(counters.seconds))
    for binding in ways:
        if result.origins and not np.isnan(result.values).any():
            break
        result = result.filled(counters.count(binding.counters, binding.source, binding.note))
    return result


def _lanes(counters: Counters, wanted: InstructionSpec, instructions: dict[str, Quantity]) -> Quantity:
    """Threads / 32, counted or from the recorded threads per instruction."""
    counted = counters.count(WeightedSum.of({wanted.lanes: 1.0}), "binding", "")
    if EXECUTED in instructions:
        name = f"{wanted.lanes_per_instruction}.ratio"
        threads = instructions[EXECUTED].values * counters.metric(name)
        threads = np.where(np.isfinite(threads) & (threads >= 0), threads, np.nan)
        counted = counted.filled(Quantity.of(threads, Origin("binding", name)))
    return counted.scaled(np.full(len(counters.seconds), 1 / wanted.warp))
