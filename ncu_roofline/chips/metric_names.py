"""Since when metrics are known, lists of their names written shortly, and names of the metrics that `annotate` makes."""

from __future__ import annotations

from collections.abc import Sequence

OPS_PATH_SINCE = (2023, 3)
"""The first release whose metric library knows operation counts of the tensor path, sm__ops_path_tensor_* (CUDA 12.3)."""

DRAM_OP_SINCE = (2025, 2)
"""The first release whose metric library tells what DRAM read from what it wrote on GB202, GB203 and GB205 (CUDA 12.9)."""


def braced(names: Sequence[str], marks: tuple[str, str, str] = ("{", ",", "}")) -> str:
    """Names that differ in the middle only, written once with braces as a shell would: a__{ld,st}.sum.

    ``marks`` are the opening one, the one between and the closing one.
    """
    before = _common_start(names)
    after = _common_start([name[len(before) :][::-1] for name in names])[::-1]
    if len(names) < 2 or len(before) < 4:
        return ", ".join(names)
    middles = (name[len(before) : len(name) - len(after)] for name in names)
    opening, between, closing = marks
    return f"{before}{opening}{between.join(middles)}{closing}{after}"


def compact(metrics: str) -> str:
    """`braced` on each of the lists that "; " separates, their names separated by ", "."""
    return "; ".join(braced(group.split(", ")) for group in metrics.split("; "))


def _common_start(names: Sequence[str]) -> str:
    first, last = min(names), max(names)
    length = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
    return first[:length]


# Metrics of `annotate`: made here, and understood again where their charts are read.
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
