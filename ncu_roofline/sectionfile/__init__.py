"""The sections that reports carry inside: decoded, and their roofline charts computed as Nsight Compute draws them."""

from __future__ import annotations

from ncu_roofline.sectionfile.charts import Chart, Dropped, Point, Roof, Wall, evaluate_charts, needed_metrics
from ncu_roofline.sectionfile.classify import classify, meaning, peaks_of
from ncu_roofline.sectionfile.message import parse_section
from ncu_roofline.sectionfile.section import Section
from ncu_roofline.sectionfile.stock_faults import HalfFactor, stock_half_factor, tensor_caveat

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
