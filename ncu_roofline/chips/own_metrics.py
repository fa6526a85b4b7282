"""Names of the metrics that `annotate` writes into reports: made here, and understood again where their charts are read."""

from __future__ import annotations

PREFIX = "rl__"
"""Metrics of such names are ours and nobody else's."""
WORK_RATE, TRAFFIC_RATE, PEAK = "work_rate_", "bytes_rate_", "peak_"
"""What follows the prefix in the metrics of charts; then comes what they are of."""
# ncu 2024.2 sees no bytes in names that contain "l1".
_LEVELS = {"l1": "tex"}


def slug(identifier: str) -> str:
    """An id of the spec as part of a metric name: tensor.fp16.wgmma is tensor_fp16_wgmma, l1 is tex."""
    return _LEVELS.get(identifier, identifier).replace(".", "_")


def subject(metric: str) -> str:
    """The id of the precision, compute roof or level that a metric of a chart is of; "" for all other metrics."""
    name = metric.removeprefix(PREFIX) if metric.startswith(PREFIX) else ""
    for start in (WORK_RATE, TRAFFIC_RATE, PEAK):
        if name.startswith(start):
            found = name.removeprefix(start)
            return next((level for level, spelled in _LEVELS.items() if found == spelled), found.replace("_", "."))
    return ""
