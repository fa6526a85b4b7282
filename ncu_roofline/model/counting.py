"""Work by precision: each launch's from the first way that its report has, and which of it adds up."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ncu_roofline.formula import WeightedSum
from ncu_roofline.model.counters import Counters
from ncu_roofline.model.measurements import Origin, Quantity, TextArray
from ncu_roofline.model.opcodes import COUNTED, Executed, told_apart
from ncu_roofline.spec import Binding, Precision, Spec

_CONVERSIONS = "additions may be conversions from half to float (HADD2.F32), which this counter holds; opcode counts would tell"


_HALF = "fp16"


def work_of(
    counters: Counters, spec: Spec, capability: tuple[int, int], opcodes: Executed
) -> tuple[dict[str, Quantity], dict[str, Quantity], dict[str, Quantity]]:
    """Work by precision, the part of it that adds up to all work with nothing counted twice, and that of fused instructions.

    A tensor type may be counted in total, by instruction family and by sparsity at once; which of them may be summed depends
    on the bindings that a launch had metrics for.
    """
    found: dict[str, Quantity] = {}
    used: dict[str, TextArray] = {}
    fused: dict[str, Quantity] = {}
    for precision in spec.precisions:
        one = _Counted(counters, opcodes, precision)
        for binding in _ways(spec.bindings(precision, capability)):
            one.fill(binding)
        if one.quantity.origins:
            found[precision.id], used[precision.id] = one.finished(), one.chosen
            if one.fused is not None:
                fused[precision.id] = one.fused
    summands = _summands(spec, found, used)
    if _HALF in summands:  # constants stay visible with their caveat, and add to nothing
        summands[_HALF] = summands[_HALF].scaled(np.where(opcodes.constants, np.nan, 1.0))
    return found, summands, fused


def _ways(bindings: Sequence[Binding]) -> list[Binding]:
    """The bindings, and the opcodes behind the last that counts operations themselves."""
    own = [one for one in bindings if one.source == "binding"]
    return [*own, COUNTED, *(one for one in bindings if one.source != "binding")]


class _Counted:
    """The work of one precision, launch by launch the first way that the report has."""

    def __init__(self, counters: Counters, opcodes: Executed, precision: Precision) -> None:
        count = len(counters.seconds)
        self._counters, self._opcodes, self._id, self._label = counters, opcodes, precision.id, precision.label
        self._by_opcodes = opcodes.work.get(precision.id, Quantity.missing(count))
        self.quantity = Quantity.missing(count)
        self.chosen: TextArray = np.full(count, None, dtype=object)
        self.fused: Quantity | None = None

    def fill(self, binding: Binding) -> None:
        """The gaps from one more way."""
        if binding is COUNTED:
            candidate, fused = self._by_opcodes, self._opcodes.fused.get(self._id)
        else:
            candidate = self._counters.count(binding.counters, binding.source, binding.note)
            candidate = self._without_conversions(candidate, binding)
            if binding.includes:  # dense and sparse products in one: opcodes tell them apart
                candidate = candidate.scaled(np.where(np.isfinite(self._by_opcodes.values), np.nan, 1.0))
            fused = self._counters.count(binding.fused, binding.source, "").values if binding.fused else None
        new = np.isnan(self.quantity.values) & ~np.isnan(candidate.values)
        if not new.any():
            return
        self.chosen[new] = binding
        self.quantity = self.quantity.filled(candidate)
        if fused is not None:
            part = Quantity.of(np.where(new, fused, np.nan), Origin(binding.source, ""))
            self.fused = self.fused.filled(part) if self.fused else part

    def _without_conversions(self, candidate: Quantity, binding: Binding) -> Quantity:
        """Half-precision counters hold conversions (HADD2.F32) and BF16: opcodes tell, without them the reader is told."""
        additions = [name for name, _ in binding.counters.terms if name.endswith("hadd_pred_on")]
        if not additions and "hadd" not in binding.counters.text():
            return candidate
        conversions, bf16 = self._opcodes.conversions, self._opcodes.work.get("bf16")
        with np.errstate(invalid="ignore"):
            wrong = (conversions > 0) | (bf16.values > 0 if bf16 else False)
        candidate = candidate.scaled(np.where(wrong, np.nan, 1.0))
        added = self._counters.count(
            WeightedSum.of(dict.fromkeys(additions or binding.counters.counters(), 1.0)), "", ""
        ).values
        with np.errstate(invalid="ignore"):
            doubtful = np.isnan(conversions) & (added > 0)
        return candidate.with_note(doubtful, _CONVERSIONS)

    def finished(self) -> Quantity:
        """All of it; where opcodes say something else than the counters, a note."""
        by_counters = np.array([one is not None and one is not COUNTED for one in self.chosen], dtype=bool)
        other = self._by_opcodes.scaled(np.where(by_counters, 1.0, np.nan))
        return told_apart(self.quantity, other, self._label) if self._by_opcodes.origins else self.quantity


def _summands(spec: Spec, found: dict[str, Quantity], used: dict[str, TextArray]) -> dict[str, Quantity]:
    flops = {p.id for p in spec.precisions if p.unit == "flop"}
    masks = {name: np.full(len(chosen), np.nan) for name, chosen in used.items() if name in flops}
    combinations: dict[tuple[int, ...], list[int]] = {}
    for row, bindings in enumerate(zip(*used.values(), strict=True)):
        combinations.setdefault(tuple(map(id, bindings)), []).append(row)
    for rows in combinations.values():
        here = {name: chosen[rows[0]] for name, chosen in used.items() if chosen[rows[0]] is not None}
        for name in spec.summands(here):
            if name in masks:
                masks[name][rows] = 1.0
    return {name: found[name].scaled(mask) for name, mask in masks.items()}
