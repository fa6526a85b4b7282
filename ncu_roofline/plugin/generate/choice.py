"""Which of the specification's ways of counting a section uses on each chip, in one dialect."""

from __future__ import annotations

from ncu_roofline.chips import Binding, Level, Precision, Spec
from ncu_roofline.chips.fields import LAST, Capability
from ncu_roofline.chips.formula import WeightedSum
from ncu_roofline.plugin.generate.dialects import Dialect

Chips = frozenset[Capability]

_OPS_PATH = "sm__ops_path_tensor_"


class Choice:
    """Bindings by chip.  ``dense``: of tensor work, sparse products, which cost a replay pass more, are not counted."""

    def __init__(self, spec: Spec, dialect: Dialect, *, dense: bool = False) -> None:
        self.spec, self.dialect, self._dense = spec, dialect, dense
        self.chips: Chips = frozenset([*(a.compute_capability for a in spec.architectures), LAST])
        self._nameless = frozenset(chip for chip in self.chips if not dialect.number(chip))
        self._chosen: dict[tuple[str, Capability], Binding | None] = {}

    def binding(self, item: Precision | Level, chip: Capability) -> Binding | None:
        """How an item is counted on a chip in this dialect; None if it is not, or only at a price."""
        key = (item.id, chip)
        if key not in self._chosen:
            self._chosen[key] = self._choose(item, chip)
        return self._chosen[key]

    def told(self, chips: Chips) -> Chips:
        """Those of some chips whose filter lets no other chip through: all, if they are all that the dialect can't name."""
        return chips if self.dialect.exact or self._nameless <= chips else chips - self._nameless

    def falls_short(self, item: Precision | Level) -> tuple[Capability, ...]:
        """The chips on which an item has more counters than those used, as its dialect can't tell them from chips without."""
        short = []
        for chip in sorted(self.chips - {LAST}):
            used = self.binding(item, chip)
            best = next((one for one in self.spec.bindings(item, chip) if one.source == "binding"), None)
            if used and best and set(used.counters.counters()) < set(best.counters.counters()):
                short.append(chip)
        return tuple(short)

    # Sparse work, which `BASE` counts where chips can't be told apart, left out

    def counts_dense(self, item: Precision | Level) -> bool:
        """Whether `dense_work` is what counts instead of `binding`, which has dense work where every chip has a name."""
        return self._dense and not self.dialect.exact and isinstance(item, Precision) and item.kind == "tensor"

    def dense_work(self, item: Precision | Level, chip: Capability) -> WeightedSum | None:
        """The dense work of a type; None if there is none, or if a chip that can't be told from this one has more of it."""
        work = self._dense_counters(item, chip)
        return None if work and self._confused(item, chip, work) else work

    def stands_in(self, part: Precision) -> bool:
        """Whether some chip does all work of a type in this part of it, and can't be told from chips that have more parts."""
        if not part.part_of or not self.counts_dense(part):
            return False
        whole = self.spec.precision(part.part_of)
        work = {chip: self._dense_counters(whole, chip) for chip in self.chips}
        left_out = {one for chip, one in work.items() if one and self._confused(whole, chip, one)}
        return any(self._dense_counters(part, chip) in left_out for chip in self.chips)

    def _dense_counters(self, item: Precision | Level, chip: Capability) -> WeightedSum | None:
        return next((one.counters for one in self._usable(item, chip) if not one.includes), None)

    def _confused(self, item: Precision | Level, chip: Capability, work: WeightedSum) -> bool:
        """Whether a chip that can't be told from this one has the counters of this work as well, but needs others."""
        alike = self._nameless if chip in self._nameless else ()
        others = (self._dense_counters(item, one) for one in alike)
        return any(set(work.counters()) < set(other.counters()) for other in others if other)

    def _choose(self, item: Precision | Level, chip: Capability) -> Binding | None:
        bindings = self._usable(item, chip)
        if not self.dialect.exact:
            # Chips that can't be told apart count what they have in common; sparse and dense work then come together.
            common = {one.counters for one in self._usable(item, LAST)} if chip in self._nameless else set()
            bindings = sorted(bindings, key=lambda one: one.counters not in common)
            bindings = sorted(bindings, key=lambda one: not one.includes)
        return next((binding for binding in bindings if binding.collect), bindings[0] if bindings else None)

    def _usable(self, item: Precision | Level, chip: Capability) -> list[Binding]:
        architecture = self.spec.architecture(chip)
        lacking = architecture is not None and item.id in architecture.lacks
        if self._left_out(item.id, chip) or (lacking and not self.dialect.exact):
            return []
        return [binding for binding in self.spec.bindings(item, chip) if self._may_use(binding, chip)]

    def _left_out(self, item: str, chip: Capability) -> bool:
        """Whether counting it would cost a replay pass of its own (asked of the metric library)."""
        architecture = self.spec.architecture(chip)
        return architecture is not None and item in architecture.left_out

    def _may_use(self, binding: Binding, chip: Capability) -> bool:
        alike = self._nameless if chip in self._nameless else (chip,)
        if binding.source == "embedded" or any(self._left_out(part, one) for part in binding.includes for one in alike):
            return False
        return self.dialect.ops_path or not any(_OPS_PATH in name for name in binding.counters.counters())
