"""The real reports that have counts by instruction."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

WITHOUT = "a100-ncu2022.4-full-2.ncu-rep"
"""Of an application that ended while it was profiled: the metrics are there, without values."""


def with_counts(reports: Mapping[str, Path]) -> list[Path]:
    """Those of sets that hold source counters."""
    return [path for name, path in reports.items() if ("full" in name or "custom-sections" in name) and name != WITHOUT]
