"""Colours that stand in one chart can be told apart."""

from __future__ import annotations

from itertools import combinations

import pytest

from ncu_roofline.facts import load_spec
from ncu_roofline.facts.palette import PLAIN, TENSOR

SPEC = load_spec()
TYPES = [p for p in SPEC.precisions if p.kind == "tensor" and not p.part_of]
WHITE = (0.9505, 1.0, 1.089)
CLOSE = 14  # the two blues that people took for one were 8 apart


def lab(color: str) -> tuple[float, float, float]:
    """CIE L*a*b* of a colour #RRGGBB (IEC 61966-2-1, D65)."""
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    r, g, b = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    rows = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))
    x, y, z = (
        t ** (1 / 3) if t > 216 / 24389 else (24389 / 27 * t + 16) / 116
        for t in ((row[0] * r + row[1] * g + row[2] * b) / white for row, white in zip(rows, WHITE, strict=True))
    )
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def close(colors: dict[str, str]) -> list[tuple[str, str]]:
    """Pairs that look alike, by the distance of CIE 1976."""
    points = {name: lab(color) for name, color in colors.items()}
    return [
        (one, other)
        for one, other in combinations(points, 2)
        if sum((a - b) ** 2 for a, b in zip(points[one], points[other], strict=True)) < CLOSE**2
    ]


def test_lab_is_that_of_the_standard() -> None:
    assert lab("#FFFFFF") == pytest.approx((100, 0, 0), abs=0.02)
    assert lab("#FF0000") == pytest.approx((53.24, 80.09, 67.20), abs=0.05)
    assert close({"FP64 at shared memory": "#3B9CCB", "tensor FP64 at L1": "#3FA7E6"})


def test_levels_theory_and_measurement_of_a_core_chart() -> None:
    both = {f"{level.id} {kind}": getattr(level.color, kind) for level in SPEC.levels for kind in ("light", "dark")}
    assert close({**both, "tensor": TENSOR.light, "tensor measured": TENSOR.dark, "without FMA": PLAIN.light}) == []


def test_types_of_a_tensor_chart() -> None:
    chain = {level.id: level.color.light for level in SPEC.levels if level.chain}
    assert len({p.color for p in TYPES}) == len(TYPES) > 8
    assert close(chain | {p.id: p.color.light for p in TYPES}) == []
