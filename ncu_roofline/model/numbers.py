"""Numbers of launches as columns, NaN where unknown, and where they come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Mask = NDArray[np.bool_]

MEASURED = "imported, measured"


@dataclass(frozen=True)
class Origin:
    """Where a number comes from: the way, the metrics (or columns of a file), and what to know of it.

    The way is binding, derived, embedded, architecture, imported, or MEASURED for roofs that a file gives as measured.
    ``lower_bound``: what it counts is not all.
    """

    source: str
    metrics: str
    note: str = ""
    lower_bound: bool = False


@dataclass(frozen=True)
class Quantity:
    """One number per launch with its origin: ``origins[choice[i]]`` is the origin of ``values[i]`` (choice -1: missing)."""

    values: FloatArray
    choice: IntArray
    origins: tuple[Origin, ...] = ()

    @classmethod
    def missing(cls, count: int) -> Quantity:
        """No launch has it."""
        return cls(np.full(count, np.nan), np.full(count, -1, dtype=np.int64))

    @classmethod
    def of(cls, values: FloatArray, origin: Origin | None) -> Quantity:
        """All values from one origin; NaN where missing."""
        choice = np.where(np.isnan(values), -1, 0).astype(np.int64)
        return cls(values, choice, (origin,) if origin is not None else ())

    def complete(self) -> bool:
        """Whether every launch has it."""
        return not np.isnan(self.values).any()

    def filled(self, other: Quantity) -> Quantity:
        """This quantity, with the gaps filled from another one."""
        gaps = np.isnan(self.values)
        if not gaps.any() or not other.origins:
            return self
        if not self.origins:
            return other
        shifted = np.where(other.choice < 0, -1, other.choice + len(self.origins))
        return Quantity(
            np.where(gaps, other.values, self.values),
            np.where(gaps, shifted, self.choice),
            self.origins + other.origins,
        )

    def scaled(self, factor: FloatArray | float) -> Quantity:
        """The same with values multiplied (NaN where the factor is)."""
        return Quantity(self.values * factor, self.choice, self.origins)

    def where(self, mask: Mask) -> Quantity:
        """The values where the mask holds, NaN elsewhere."""
        return self.scaled(np.where(mask, 1.0, np.nan))

    def with_note(self, rows: Mask, note: str, *, replace_note: bool = False) -> Quantity:
        """The same with one more note (or with another one) on the values of ``rows``."""
        rows = rows & (self.choice >= 0)
        if not rows.any():
            return self
        told = [
            replace(origin, note=note, lower_bound=False)
            if replace_note
            else replace(origin, note="; ".join(filter(None, (origin.note, note))))
            for origin in self.origins
        ]
        return Quantity(self.values, np.where(rows, self.choice + len(self.origins), self.choice), (*self.origins, *told))

    def measured(self) -> FloatArray:
        """The values that a file states as measured, NaN elsewhere."""
        sources = np.array([origin.source == MEASURED for origin in self.origins] + [False])
        return np.where(sources[self.choice], self.values, np.nan)

    def is_lower_bound(self) -> Mask:
        """Which values are lower bounds."""
        lower = np.array([origin.lower_bound for origin in self.origins] + [False])
        return np.asarray(lower[self.choice] & np.isfinite(self.values))

    def take(self, index: IntArray) -> Quantity:
        """The launches of ``index``."""
        return Quantity(self.values[index], self.choice[index], self.origins)

    @staticmethod
    def joined(parts: Sequence[Quantity]) -> Quantity:
        """Launches of several quantities behind each other."""
        origins: dict[Origin, int] = {}
        choices = []
        for part in parts:
            codes = np.array([origins.setdefault(origin, len(origins)) for origin in part.origins] + [-1], dtype=np.int64)
            choices.append(codes[part.choice])  # choice -1 picks the last entry, -1
        return Quantity(np.concatenate([part.values for part in parts]), np.concatenate(choices), tuple(origins))


class Columns:
    """What `formulas` does to numbers, of many launches at once."""

    where = staticmethod(np.where)
    rounded = staticmethod(np.round)
    known = staticmethod(np.isfinite)
    origin = Origin
    quantity = staticmethod(Quantity.of)

    @staticmethod
    def divided(a: FloatArray, b: FloatArray) -> FloatArray:
        """``a / b``; what is divided by 0 is no number."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.divide(a, b)

    @staticmethod
    def at_most(a: FloatArray, most: FloatArray | float) -> FloatArray:
        """Numbers, none above ``most``."""
        return np.minimum(a, most)

    @staticmethod
    def any_of(mask: Mask) -> bool:
        """Whether it holds of some launch."""
        return bool(mask.any())

    @staticmethod
    def first_known(*candidates: FloatArray) -> FloatArray:
        """Element by element the first candidate that is not NaN."""
        result = candidates[0]
        for candidate in candidates[1:]:
            if not np.isnan(result).any():
                break
            result = np.where(np.isnan(result), candidate, result)
        return result

    @staticmethod
    def usual(values: FloatArray, weights: FloatArray) -> FloatArray | float:
        """The mean of those values that are known and have a weight, NaN where none has."""
        usable = np.isfinite(values) & (weights > 0)
        return float(np.average(values[usable], weights=weights[usable])) if usable.any() else np.nan

    @staticmethod
    def middle(values: FloatArray) -> float:
        """The median of those that are known, NaN where none is."""
        there = values[~np.isnan(values)]
        return float(np.median(there)) if len(there) else np.nan
