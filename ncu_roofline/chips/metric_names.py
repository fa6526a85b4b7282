"""Since when metrics are known, and lists of their names written shortly."""

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
