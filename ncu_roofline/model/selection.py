"""Which launches, precisions and levels a user wants to see, and which launches make one row."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable
from dataclasses import dataclass

import numpy as np

from ncu_roofline.base.texts import expression
from ncu_roofline.model.measurements import FloatArray, IntArray, Measurements, TextArray
from ncu_roofline.model.names import across_numbers, short_names

GROUPINGS = ("launch", "kernel", "kernel-report", "application")
_NUMBER = re.compile(r"\d+")
_EXCLUDING = ("(?!", "(?<!")  # what such an expression is to keep out may be in the full name and not in a short one


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
        if not len(self.index):  # old numpy wants as many weights
            return np.zeros(self.count)
        return np.bincount(self.index, weights=values, minlength=self.count).astype(np.float64)

    def common(self, values: TextArray) -> TextArray:
        """The text that all launches of each row share, '' where they differ."""
        result: TextArray = values[self.first].copy()
        result[self.index[values != result[self.index]]] = ""
        return result

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

    Launches of one kernel are those with the same `kernel_keys`, in all reports (by kernel-report: in one report); an
    application is one report on one GPU model.  In a sweep kernels and applications are taken step by step, and the steps of
    the application are one application.
    """
    m = measurements
    keys = kernel_keys(m)
    labels = short_names([name or function for name, function, _ in keys])
    if by == "launch":
        everything = np.arange(len(m))
        return Grouping(by, everything, everything, tuple(labels))
    if by == "kernel":
        index, first = _factorize((*key, step) for key, step in zip(keys, m.step, strict=True))
        return Grouping(by, index, first, tuple(labels[i] for i in first))
    if by == "kernel-report":
        index, first = _factorize((*key, report) for key, report in zip(keys, m.report, strict=True))
        return Grouping(by, index, first, tuple(labels[i] for i in first))
    if by == "application":
        sweep = m.step >= 0
        owners = np.where(sweep, "application", m.report)
        index, first = _factorize(zip(owners, m.device, m.step, strict=True))
        several = len({(owners[i], m.step[i]) for i in first}) < len(first)
        names = [f"{owners[i]} on {m.device[i]}" if several else str(owners[i]) for i in first]
        return Grouping(by, index, first, tuple(names))
    raise ValueError(f"by must be one of {', '.join(GROUPINGS)}, not {by!r}")


def reports_of(m: Measurements, grouping: Grouping) -> TextArray:
    """The report of each row; '' for a kernel of several reports, and for a step of a sweep that several reports have."""
    result: TextArray = m.report[grouping.first].copy()
    if grouping.by == "kernel" and len(set(m.report)) > 1 and not (m.step >= 0).any():
        result[:] = ""
    result[grouping.index[m.report != result[grouping.index]]] = ""
    return result


def kernel_keys(m: Measurements) -> list[tuple[str, str, str]]:
    """For each launch its kernel: full name, function name, GPU model.

    In a sweep the parameter may be part of the name (a template argument, a tile size): kernels whose names differ in whole
    numbers only, and of which no step has two, are one kernel.
    """
    keys = list(zip(m.name, m.function, m.device, strict=True))
    if not (m.step >= 0).any():
        return keys
    steps: dict[tuple[str, str, str], set[int]] = {}
    for key, step in zip(keys, m.step.tolist(), strict=True):
        steps.setdefault(key, set()).add(step)
    alike: dict[Hashable, list[tuple[str, str, str]]] = {}
    for key in steps:
        alike.setdefault((_NUMBER.sub("*", key[0]), _NUMBER.sub("*", key[1]), key[2]), []).append(key)
    joined: dict[tuple[str, str, str], tuple[str, str, str]] = {}
    for kernels in alike.values():
        taken = [step for key in kernels for step in steps[key]]
        if len(kernels) > 1 and len(set(taken)) == len(taken):
            names, functions, devices = zip(*kernels, strict=True)
            joined |= dict.fromkeys(kernels, (across_numbers(names), across_numbers(functions), devices[0]))
    return [joined.get(key, key) for key in keys]


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


@dataclass(frozen=True)
class Selection:
    """Filters; the empty one keeps everything.

    ``kernel`` and ``nvtx`` are regular expressions: the first is searched in the full name, the function's and the short one
    that results have (one that excludes, with "(?!" or "(?<!", in the full name alone), the second in the NVTX range path;
    ``launch`` holds inclusive ranges of positions in the report; ``top`` keeps that many launches or, for ``top_by`` "kernel",
    all launches of that many kernels, largest time first.
    ``precisions`` holds precision ids or their first parts ("tensor" is every tensor type); ``levels`` level ids.
    """

    kernel: str = ""
    nvtx: str = ""
    launch: tuple[tuple[int, int], ...] = ()
    top: int = 0
    top_by: str = "launch"
    precisions: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()

    def wants(self, precision: str, level: str = "") -> bool:
        """Whether rows of this precision and level are to be shown; "" is not filtered."""
        chosen = (
            not self.precisions
            or not precision
            or any(precision == p or precision.startswith(f"{p}.") for p in self.precisions)
        )
        return chosen and (not self.levels or not level or level in self.levels)

    def launches(self, m: Measurements) -> Measurements:
        """The launches that pass the filters, in their order."""
        index = self.positions(m)
        return m if len(index) == len(m) else m.take(index)

    def positions(self, m: Measurements) -> IntArray:
        """Where these launches are."""
        keep = np.ones(len(m), dtype=bool)
        if self.kernel:
            keep &= self._called(m)
        if self.nvtx:
            keep &= _matches(list(m.nvtx), expression(self.nvtx))
        if self.launch:
            keep &= np.any([(m.launch >= first) & (m.launch <= last) for first, last in self.launch], axis=0)
        index = np.flatnonzero(keep)
        if self.top:
            index = index[_longest(m, index, self.top, self.top_by)]
        return index

    def _called(self, m: Measurements) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Which launches have a name in which ``kernel`` is found."""
        pattern = expression(self.kernel)
        found = _matches([f"{name}\n{function}" for name, function in zip(m.name, m.function, strict=True)], pattern)
        if any(sign in self.kernel for sign in _EXCLUDING):
            return found
        short = short_names([name or function for name, function in zip(m.name, m.function, strict=True)])
        return found | _matches(list(m.function), pattern) | _matches(short, pattern)


def _matches(texts: list[str], pattern: re.Pattern[str]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    known = {text: bool(pattern.search(text)) for text in dict.fromkeys(texts)}
    return np.array([known[text] for text in texts], dtype=bool)


def _longest(
    m: Measurements, index: np.ndarray[tuple[int], np.dtype[np.int64]], top: int, by: str
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    seconds = np.nan_to_num(m.seconds[index])
    if by == "kernel":
        all_keys = kernel_keys(m)
        keys = [all_keys[i] for i in index]
        totals: dict[object, float] = {}
        for key, time in zip(keys, seconds, strict=True):
            totals[key] = totals.get(key, 0.0) + float(time)
        chosen = set(sorted(totals, key=lambda key: -totals[key])[:top])
        return np.flatnonzero([key in chosen for key in keys])
    return np.sort(np.argsort(-seconds, kind="stable")[:top])
