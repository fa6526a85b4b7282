"""Precisions and levels of some measurements: those of the specification, and what only imported files know."""

from __future__ import annotations

from ncu_roofline.importers import ANY_PRECISION
from ncu_roofline.model.measurements import Measurements
from ncu_roofline.spec import Level, Precision, Spec


def precisions_of(m: Measurements, spec: Spec) -> list[Precision]:
    """The precisions of the spec, and after them those that only imported measurements know."""
    known = {precision.id for precision in spec.precisions}
    extra = [name for name in m.work if name not in known]
    return [*spec.precisions, *(Precision(name, _label(name), "core", "flop", 99, (), ("fma", "nofma")) for name in extra)]


def levels_of(m: Measurements, spec: Spec) -> list[Level]:
    """The levels of the spec, and after them those that only imported measurements know."""
    known = {level.id for level in spec.levels}
    extra = dict.fromkeys(name for name in (*m.traffic, *m.bandwidth) if name not in known)
    return [*spec.levels, *(Level(name, name.upper(), 99, ()) for name in extra)]


def _label(name: str) -> str:
    return "FP (any)" if name == ANY_PRECISION else name.upper()
