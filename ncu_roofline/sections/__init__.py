"""The sections that reports carry inside: decoded, and their roofline charts computed as Nsight Compute draws them."""

from __future__ import annotations

from ncu_roofline.sections.chart import Chart, Dropped, Point, Roof, Wall
from ncu_roofline.sections.classify import classify
from ncu_roofline.sections.evaluate import evaluate_charts, needed_metrics
from ncu_roofline.sections.half import HalfFactor, stock_half_factor
from ncu_roofline.sections.matching import meaning, peaks_of
from ncu_roofline.sections.parse import parse_section
from ncu_roofline.sections.tensor import tensor_caveat
from ncu_roofline.sections.tree import Section

__all__ = [
    "Chart",
    "Dropped",
    "HalfFactor",
    "Point",
    "Roof",
    "Section",
    "Wall",
    "classify",
    "evaluate_charts",
    "meaning",
    "needed_metrics",
    "parse_section",
    "peaks_of",
    "stock_half_factor",
    "tensor_caveat",
]
