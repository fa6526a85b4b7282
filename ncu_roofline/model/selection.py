"""Which launches, precisions and levels a user wants to see."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from ncu_roofline.model.grouping import kernel_keys
from ncu_roofline.model.measurements import IntArray, Measurements


@dataclass(frozen=True)
class Selection:
    """Filters; the empty one keeps everything.

    ``kernel`` and ``nvtx`` are regular expressions searched in the full or the function name, and in the NVTX range path;
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
            pattern = re.compile(self.kernel)
            keep &= _matches([f"{name}\n{function}" for name, function in zip(m.name, m.function, strict=True)], pattern)
        if self.nvtx:
            keep &= _matches(list(m.nvtx), re.compile(self.nvtx))
        if self.launch:
            keep &= np.any([(m.launch >= first) & (m.launch <= last) for first, last in self.launch], axis=0)
        index = np.flatnonzero(keep)
        if self.top:
            index = index[_longest(m, index, self.top, self.top_by)]
        return index


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
