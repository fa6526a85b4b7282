"""Axes and roofs of a roofline as marks of a chart."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from ncu_roofline.analyses.hierarchical.roofs import ChartRoof
from ncu_roofline.analyses.hierarchical.style import COUNTED, level_style
from ncu_roofline.base.texts import shorten
from ncu_roofline.rendering.chart import Axis, Roof

_SAME = 0.01  # roofs closer than this are one line on paper


def axes_of(unit: str) -> tuple[Axis, Axis]:
    """Intensity and performance in a unit of work."""
    counted = COUNTED[unit]
    found = []
    for name, of, prefix in (
        (counted.intensity_axis, counted.intensity_unit, "none"),
        (counted.performance_axis("{unit}"), f"{unit}/s", "name"),
    ):
        words, _, bracket = name.partition(" [")
        found.append(Axis(of, (name, f"{words.split()[-1].capitalize()} [{bracket}", f"[{bracket}"), prefix=prefix))
    return found[0], found[1]


def twins(roofs: Sequence[ChartRoof]) -> list[list[ChartRoof]]:
    """Roofs, highest first, those of practically the same value together."""
    groups: list[list[ChartRoof]] = []
    for roof in roofs:
        if groups and math.isclose(groups[-1][0].value, roof.value, rel_tol=_SAME):
            groups[-1].append(roof)
        else:
            groups.append([roof])
    return groups


def roof_texts(roofs: Sequence[ChartRoof]) -> tuple[str, ...]:
    """Labels for roofs of the same value, from complete to terse."""
    first = roofs[0]
    names = list(dict.fromkeys(roof.label or roof.id for roof in roofs))
    names = [name for name in names if not any(name.startswith(f"{other}, ") for other in names)]  # a mode as fast as the rest
    name = ", ".join(names)
    name = shorten(name, 36) if len(name) <= 36 else f"{shorten(names[0], 24)} and {len(names) - 1} more"
    value = first.band("theoretical" if math.isnan(first.measured) else "measured").text(first.unit)
    if first.kind == "wall":  # its label says where it stands
        return name, name.partition(":")[0]
    texts = (f"{name} {value}", name)
    theory = f"{name} {value} (theory {first.band('theoretical').text(first.unit)})"
    return (theory, *texts) if len(first.values) == 2 else texts


def roof_marks(roofs: Sequence[ChartRoof], apart: bool) -> Iterator[Roof]:
    """Roofs of both origins, labelled once: compute roofs, the bandwidths from the outermost inwards, walls.

    Bandwidth roofs end at the highest compute roof of their own origin, compute roofs begin at the highest bandwidth roof.
    ``apart``: measured and theoretical ones are both in the picture, and drawn as such.
    """
    kinds = {kind: [roof for roof in roofs if roof.kind == kind] for kind in ("compute", "bandwidth", "wall")}
    groups = [*twins(kinds["compute"]), *reversed(twins(kinds["bandwidth"])), *twins(kinds["wall"])]
    for group in groups:
        labels, beside = roof_texts(group), tuple(value for roof in group for value in roof.values)
        for upon, roof in enumerate(group):
            hue = level_style(roof.level) if roof.level else None
            for origin in ("theoretical", "measured"):
                value, band = getattr(roof, origin), roof.band(origin)
                if math.isnan(value):
                    continue
                others = kinds["bandwidth" if roof.kind == "compute" else "compute"]
                same = [v for other in others if not math.isnan(v := getattr(other, origin))]
                role = "wall" if roof.kind == "wall" else "theory" if origin == "theoretical" and apart else "roof"
                yield Roof(
                    role=f"{role}-upon" if upon and roof.kind == "bandwidth" else role, labels=labels, hue=hue, kind=roof.kind,
                    value=value, meets=max(same or [other.value for other in others], default=math.inf), beside=beside,
                    band=(band.low, band.high) if band.wide else None,
                )  # fmt: skip
                labels = ()


def plain_roofs(roofs: Iterable[tuple[str, str, float, str, str]], role: str = "roof") -> Iterator[Roof]:
    """Roofs of one origin, of rows (kind, level, value, name, value as text), with their values where there is room.

    Compute roofs come first, then bandwidths from the outermost inwards.
    """
    found = sorted(roofs, key=lambda roof: (roof[0] != "compute", -roof[2] if roof[0] == "compute" else roof[2]))
    top, steepest = (max((roof[2] for roof in found if roof[0] == kind), default=math.inf) for kind in ("compute", "bandwidth"))
    for kind, level, value, name, text in found:
        hue, meets = level_style(level) if level else None, steepest if kind == "compute" else top
        labels = tuple(filter(None, (f"{name} {text}".strip(), name)))
        yield Roof(role=role, labels=labels, hue=hue, kind=kind, value=value, meets=meets)
