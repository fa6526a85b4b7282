"""Which roofs a chart calls for."""

from __future__ import annotations

from typing import Any

from ncu_roofline.model.kernels import CORE_LEVELS
from ncu_roofline.model.selection import Selection
from ncu_roofline.model.works import MIXED
from ncu_roofline.spec import Spec

# Shown when no launch has any work: a chart without points still shows what the GPU could do.
_DEFAULT_PRECISIONS = ("fp64", "fp32")


class Shown:
    """The roofs that a GPU's points (columns of the points frame) call for; without points, those of the plain precisions."""

    def __init__(self, points: dict[str, Any], spec: Spec, select: Selection) -> None:
        self._parents = {p.id: p.part_of for p in spec.precisions}
        self._defaults = {name for name in _DEFAULT_PRECISIONS if select.wants(name)}
        self._precisions = set(zip(points["device"].tolist(), points["precision"].tolist(), strict=True))
        self._levels = set(zip(points["device"].tolist(), points["level"].tolist(), strict=True))
        self._core = {level for level in CORE_LEVELS if select.wants("", level)}

    def precisions(self, device: str) -> set[str]:
        """Ids of the precisions with points on this GPU, and of those they are a view of."""
        found = {precision for where, precision in self._precisions if where == device} - {MIXED} or self._defaults
        return found | {parent for name in found if (parent := self._parents.get(name, ""))}

    def levels(self, device: str) -> set[str]:
        """The levels that belong into every chart, and those with points on this GPU."""
        return self._core | {level for where, level in self._levels if where == device}
