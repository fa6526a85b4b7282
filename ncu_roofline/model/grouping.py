"""Which launches make one row: each launch, all launches of a kernel, or the whole application."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

import numpy as np

from ncu_roofline.model.measurements import FloatArray, IntArray, Measurements
from ncu_roofline.model.names import short_names

GROUPINGS = ("launch", "kernel", "application")


@dataclass(frozen=True)
class Grouping:
    """``index[i]`` is the row of launch i; ``first[r]`` the first launch of row r; ``label[r]`` its short name."""

    by: str
    index: IntArray
    first: IntArray
    label: tuple[str, ...]

    @property
    def count(self) -> int:
        """Number of rows."""
        return len(self.first)

    def total(self, values: FloatArray) -> FloatArray:
        """Sum over the launches of each row."""
        if self.by == "launch":
            return values
        return np.bincount(self.index, weights=values, minlength=self.count).astype(np.float64)

    def mean(self, values: FloatArray, weights: FloatArray) -> FloatArray:
        """Mean over each row's launches with these weights; launches where either is NaN don't count."""
        if self.by == "launch":
            return values
        usable = np.isfinite(values) & np.isfinite(weights)
        total = self.total(np.where(usable, weights, 0.0))
        with np.errstate(invalid="ignore", divide="ignore"):
            return self.total(np.where(usable, values * weights, 0.0)) / total


def group(measurements: Measurements, by: str) -> Grouping:
    """Group by one of GROUPINGS.

    Launches of one kernel are those with the same full name on the same GPU model, in all reports; an application is one
    report on one GPU model.
    """
    m = measurements
    labels = short_names([f or n for f, n in zip(m.name, m.function, strict=True)])
    if by == "launch":
        everything = np.arange(len(m))
        return Grouping(by, everything, everything, tuple(labels))
    if by == "kernel":
        index, first = _factorize(zip(m.name, m.function, m.device, strict=True))
        return Grouping(by, index, first, tuple(labels[i] for i in first))
    if by == "application":
        index, first = _factorize(zip(m.report, m.device, strict=True))
        several = len({m.report[i] for i in first}) < len(first)
        names = [f"{m.report[i]} on {m.device[i]}" if several else str(m.report[i]) for i in first]
        return Grouping(by, index, first, tuple(names))
    raise ValueError(f"by must be one of {', '.join(GROUPINGS)}, not {by!r}")


def _factorize(keys: Iterable[Hashable]) -> tuple[IntArray, IntArray]:
    rows: dict[Hashable, int] = {}
    index: list[int] = []
    first: list[int] = []
    for position, key in enumerate(keys):
        row = rows.setdefault(key, len(rows))
        if row == len(first):
            first.append(position)
        index.append(row)
    return np.array(index, dtype=np.int64), np.array(first, dtype=np.int64)
