"""One model of a section, from its text or the message that reports embed, and its charts as Nsight Compute draws them."""

from __future__ import annotations

from ncu_roofline.formats.sectionfile.charts import (
    IMPLAUSIBLE,
    Chart,
    Dropped,
    Point,
    Roof,
    Wall,
    evaluate_charts,
    needed_metrics,
)
from ncu_roofline.formats.sectionfile.classify import classify, counts_instructions, is_unfused, levels_of, meaning, peaks_of
from ncu_roofline.formats.sectionfile.section import Section, parse_section
from ncu_roofline.formats.sectionfile.stock_faults import HalfFactor, stock_half_factor, tensor_caveat

__all__ = [
    "IMPLAUSIBLE",
    "Chart",
    "Dropped",
    "HalfFactor",
    "Point",
    "Roof",
    "Section",
    "Wall",
    "classify",
    "counts_instructions",
    "evaluate_charts",
    "is_unfused",
    "levels_of",
    "meaning",
    "needed_metrics",
    "parse_section",
    "peaks_of",
    "stock_half_factor",
    "tensor_caveat",
]
