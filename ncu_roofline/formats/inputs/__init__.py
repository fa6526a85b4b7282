"""Files of other tools, and of ncu itself, that hold what a report would: recognised by content, never by suffix."""

from __future__ import annotations

from ncu_roofline.formats.inputs.opening import (
    FORMATS,
    InputFormat,
    as_inputs,
    check_report,
    joined,
    open_ceilings,
    open_input,
)
from ncu_roofline.formats.inputs.tables import (
    ANY_PRECISION,
    ImportedPoint,
    ImportedRoof,
    MetricTable,
    PointTable,
    names_gpu,
    with_gpu,
)

__all__ = [
    "ANY_PRECISION",
    "FORMATS",
    "ImportedPoint",
    "ImportedRoof",
    "InputFormat",
    "MetricTable",
    "PointTable",
    "as_inputs",
    "check_report",
    "joined",
    "names_gpu",
    "open_ceilings",
    "open_input",
    "with_gpu",
]
