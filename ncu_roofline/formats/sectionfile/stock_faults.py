"""What stock charts count wrongly: packed half-precision instructions on old releases, tensor work by instructions."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ncu_roofline.chips.fields import parse_release
from ncu_roofline.formats.sectionfile.charts import Chart, Point, Roof
from ncu_roofline.formats.sectionfile.classify import classify

_FIRST_RIGHT = (2025, 1)
_STOCK = "SpeedOfLight_"
_COUNTED = re.compile(r"__inst_executed_pipe_(tensor|fp64\w{0,99}_dmma)")
_WEIGHT = re.compile(r"_x(\d{1,9})(\.|$)")
# HMMA.884, the tensor instruction of V100, is 8 x 8 x 4 multiply-adds x 2; so is DMMA.884, which only Hopper has larger kin of.
_OF_884 = 512
_V100, _HOPPER = (7, 0), 9


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
    weights = {match[1] for name in names if (match := re.search(r"_hfma_pred_on_x(\d{1,9})", name))}
    if weights:
        return _TWICE if weights == {"2"} else HalfFactor()
    old = (parse_release(ncu_version) or _FIRST_RIGHT) < _FIRST_RIGHT  # nothing is corrected on a guess
    return _TWICE if old and chart.section.startswith(_STOCK) else HalfFactor()


def tensor_caveat(metrics: tuple[str, ...], capability: tuple[int, int]) -> str:
    """What is wrong with work (or a roof) of these metrics on a chip: "" for work that is not counted by instructions.

    Stock charts of 2021.3 to 2024.1 count 512 operations for every tensor instruction; later chips have instructions of 512 to
    16384.  Instructions without any weight, as charts of others may have them, are not operations at all.
    """
    counted = [name for name in metrics if _COUNTED.search(name)]
    if not counted:
        return ""
    match = _WEIGHT.search(counted[0])
    weight = int(match[1]) if match else counted.count(counted[0])  # old sections list a metric as often as it counts
    dmma = all("dmma" in name for name in counted)
    if weight == _OF_884 and (capability[0] != _HOPPER if dmma else capability == _V100):
        return ""
    holds = ", which holds for V100 only" if weight == _OF_884 and not dmma else " whatever its shape"
    operations = f"{weight} operation{'' if weight == 1 else 's'}"
    return f"counts {operations} per tensor instruction{holds}; here the real work differs by shape and type"
