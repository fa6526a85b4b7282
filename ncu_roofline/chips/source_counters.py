"""Metrics that tell of a launch's code, and opcodes by what findings say of them: the constants of `data/source.toml`.

The rule generator puts them into the rules under the same names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ncu_roofline.chips.fields import DATA, read

Pairs = tuple[tuple[str, str], ...]
Words = tuple[tuple[str, tuple[str, ...]], ...]


def _tuples(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _tuples(item) for name, item in value.items()}
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


STATED: Mapping[str, Any] = {name.upper(): _tuples(one) for name, one in read(DATA / "source.toml", dict[str, Any]).items()}
SECTOR: int = STATED["SECTOR"]
WARP: int = STATED["WARP"]
PARTS: tuple[tuple[str, int, str], ...] = STATED["PARTS"]
STALLED: str = STATED["STALLED"]
OPCODE_THREADS: str = STATED["OPCODE_THREADS"]
OPCODE_WARPS: str = STATED["OPCODE_WARPS"]
HIT_RATES: Pairs = STATED["HIT_RATES"]
ALL_HIT: float = STATED["ALL_HIT"]
BUSY: Words = STATED["BUSY"]
LAUNCHED: Pairs = STATED["LAUNCHED"]
WORKING: str = STATED["WORKING"]
KINDS: Words = STATED["KINDS"]
ACCESSES: Words = STATED["ACCESSES"]
SLOW: Pairs = STATED["SLOW"]
LIMITS: Pairs = STATED["LIMITS"]
ARITHMETIC: tuple[tuple[str, tuple[str, ...], tuple[str, ...], tuple[str, ...], int], ...] = STATED["ARITHMETIC"]
INDEXING: tuple[str, ...] = STATED["INDEXING"]
COUNTED: Mapping[str, tuple[tuple[str, ...], int]] = STATED["COUNTED"]


def adds_up(instances: float, total: float) -> bool:
    """Whether the sum over a metric's instances is the metric's own value (NaN: unknown), as in every recorded report.  Counts
    that are floats may be rounded."""
    return not abs(instances - total) > 1e-6 * max(instances, total)
