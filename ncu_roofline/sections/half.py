"""Half-precision charts of old releases count packed instructions too low."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ncu_roofline.sections.chart import Chart, Point, Roof
from ncu_roofline.sections.classify import classify

_FIRST_RIGHT = (2025, 1)
_STOCK = "SpeedOfLight_"


@dataclass(frozen=True)
class HalfFactor:
    """What to multiply a chart's roofs (peak work) and points (work) with, and the sentence that says so ("" for factors 1)."""

    roof: float = 1.0
    point: float = 1.0
    sentence: str = ""


_TWICE = HalfFactor(
    2.0,
    2.0,
    "Nsight Compute before 2025.1 counts a packed half-precision instruction as one lane: this chart's roofs are 2x too low, "
    "and so are its points if the kernel uses packed instructions (for scalar ones the points are right)",
)


def stock_half_factor(chart: Chart, ncu_version: str) -> HalfFactor:
    """Correction for an FP16 chart of a release (``"2024.2.1.0"``; "" if unknown); factors 1 for every other chart.

    Counters of half precision count instructions of a thread, and HFMA2 does 4 operations, HADD2 and HMUL2 do 2.  Stock
    sections weighted them 2, 1, 1 until 2024 and 4, 2, 2 since 2025.1.  The weights in the names of the derived metrics
    decide; the version does for stock charts whose names carry none.
    """
    lines: list[Roof | Point] = [*chart.roofs, *chart.points]
    if not any(classify(line.work_metrics)[0] == "fp16" for line in lines):
        return HalfFactor()
    names = {name for line in lines for name in line.work_metrics}
    weights = {match[1] for name in names if (match := re.search(r"_hfma_pred_on_x(\d+)", name))}
    if weights:
        return _TWICE if weights == {"2"} else HalfFactor()
    old = _release(ncu_version) < _FIRST_RIGHT
    return _TWICE if old and chart.section.startswith(_STOCK) else HalfFactor()


def _release(version: str) -> tuple[int, int]:
    """(year, number); an unknown release counts as new: nothing is corrected on a guess."""
    match = re.match(r"(\d{4})\.(\d+)", version)
    return (int(match[1]), int(match[2])) if match else _FIRST_RIGHT
