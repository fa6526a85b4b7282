"""On which GPU launches ran, where a file of metrics does not say it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ncu_roofline.importers.tables import MetricTable
from ncu_roofline.report import Value

MAJOR = "device__attribute_compute_capability_major"
MINOR = "device__attribute_compute_capability_minor"


def names_gpu(table: MetricTable) -> bool:
    """Whether every launch says its compute capability; without it no counter can be chosen."""
    return all(isinstance(one, (int, float)) and one > 0 for one in table.columns([MAJOR])[MAJOR])


def with_gpu(table: MetricTable, capability: tuple[int, int]) -> MetricTable:
    """The same launches, those that name no GPU on one of this compute capability: (7, 0) for a V100."""
    columns = table.columns([MAJOR, MINOR])
    silent = [not isinstance(one, (int, float)) or not one > 0 for one in columns[MAJOR]]
    filled: dict[str, Sequence[Value | None]] = {
        name: [number if lacks else one for one, lacks in zip(columns[name], silent, strict=True)]
        for name, number in zip((MAJOR, MINOR), capability, strict=True)
    }
    return replace(table, values={**table.values, **filled})
