"""Which launches, precisions and levels a user wants to see, which launches make one row, and which rows come first."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any

import numpy as np

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.files import REPORT_SUFFIXES, natural_order
from ncu_roofline.base.texts import expression, first_found
from ncu_roofline.model.measurements import FloatArray, IntArray, Mask, Measurements, TextArray, objects
from ncu_roofline.model.names import across_numbers, short_names

GROUPINGS = ("launch", "kernel", "kernel-report", "application")
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
        return len(self.first)

    def total(self, values: FloatArray) -> FloatArray:
        if self.by == "launch":
            return values
        if not len(self.index):  # old numpy wants as many weights
            return np.zeros(self.count)
        return np.bincount(self.index, weights=values, minlength=self.count).astype(np.float64)

    def any(self, launches: Mask) -> Mask:
        return self.total(launches.astype(np.float64)) > 0

    def sum_known(self, values: FloatArray) -> FloatArray:
        """Sum over the launches of each row of which it is known; NaN where of none."""
        return np.where(self.any(np.isfinite(values)), self.total(np.nan_to_num(values)), np.nan)

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


def group(m: Measurements, by: str) -> Grouping:
    """Group by one of GROUPINGS.

    Launches of one kernel are those with the same `kernel_keys`, in all reports (by kernel-report: in one report); an
    application is one report on one GPU model.  In a sweep kernels and applications are taken step by step, and the steps of
    the application are one application.
    """
    if by not in GROUPINGS:
        raise ValueError(f"by must be one of {', '.join(GROUPINGS)}, not {by!r}")
    owners, rows = np.where(m.step >= 0, "application", m.report), dict[Hashable, int]()
    keys: list[Hashable] = list(kernel_keys(m)) if by != "application" else list(zip(owners, m.device, m.step, strict=True))
    names = [] if by == "application" else short_names([name or function for name, function, _ in kernel_keys(m)])
    if by in ("kernel", "kernel-report"):
        keys = list(zip(keys, m.step if by == "kernel" else m.report, strict=True))
    index = first = np.arange(len(m))
    if by != "launch":
        index = np.array([rows.setdefault(key, len(rows)) for key in keys], dtype=np.int64)
        first = np.unique(index, return_index=True)[1]
    if by == "application":
        several = len({(owners[i], m.step[i]) for i in first}) < len(first)
        return Grouping(by, index, first, tuple(f"{owners[i]} on {m.device[i]}" if several else str(owners[i]) for i in first))
    return Grouping(by, index, first, tuple(names[i] for i in first))


def where(m: Measurements, grouping: Grouping) -> dict[str, Any]:
    """The first columns of all frames: which launch or group a row is of.

    The report of a row is '' for a kernel of several reports, and for a step of a sweep that several reports have.
    """
    first, several = grouping.first, grouping.by == "kernel" and len(set(m.report)) > 1 and not (m.step >= 0).any()
    return {
        "report": objects([""] * len(first)) if several else grouping.common(m.report),
        "launch": m.launch[first] if grouping.by == "launch" else np.full(len(first), -1, dtype=np.int64),
        "kernel": np.array(grouping.label, dtype=object),
        "device": m.device[first],
        "compute_capability": m.capability_text[first],
        "label": grouping.common(m.label),
        "step": m.step[first],
    }


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
        alike.setdefault((*(re.sub(r"\d+", "*", name) for name in key[:2]), key[2]), []).append(key)
    joined: dict[tuple[str, str, str], tuple[str, str, str]] = {}
    for kernels in alike.values():
        taken = [step for key in kernels for step in steps[key]]
        if len(kernels) > 1 and len(set(taken)) == len(taken):
            names, functions, devices = zip(*kernels, strict=True)
            joined |= dict.fromkeys(kernels, (across_numbers(names), across_numbers(functions), devices[0]))
    return [joined.get(key, key) for key in keys]


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
        of_precision = any(precision == one or precision.startswith(f"{one}.") for one in self.precisions)
        chosen = not self.precisions or not precision or of_precision
        return chosen and (not self.levels or not level or level in self.levels)

    def launches(self, m: Measurements) -> Measurements:
        index = self.positions(m)
        return m if len(index) == len(m) else m.take(index)

    def positions(self, m: Measurements) -> IntArray:
        keep = np.ones(len(m), dtype=bool)
        if self.kernel:
            names = list(zip(m.name, m.function, strict=True))
            found = _matches([f"{name}\n{function}" for name, function in names], self.kernel)
            if not any(sign in self.kernel for sign in _EXCLUDING):
                short = short_names([name or function for name, function in names])
                found |= _matches(m.function, self.kernel) | _matches(short, self.kernel)
            keep &= found
        if self.nvtx:
            keep &= _matches(m.nvtx, self.nvtx)
        if self.launch:
            keep &= np.any([(m.launch >= first) & (m.launch <= last) for first, last in self.launch], axis=0)
        index = np.flatnonzero(keep)
        seconds = np.nan_to_num(m.seconds[index])
        if self.top and self.top_by != "kernel":
            index = index[np.sort(np.argsort(-seconds, kind="stable")[: self.top])]
        elif self.top:
            keys, totals = kernel_keys(m), dict[object, float]()
            for i, time in zip(index, seconds.tolist(), strict=True):
                totals[keys[i]] = totals.get(keys[i], 0.0) + time
            chosen = set(sorted(totals, key=lambda key: -totals[key])[: self.top])
            index = index[[keys[i] in chosen for i in index]]
        return index


def _matches(texts: Iterable[str], pattern: str) -> Mask:
    wanted, texts = expression(pattern), list(texts)
    known = {text: bool(wanted.search(text)) for text in dict.fromkeys(texts)}
    return np.array([known[text] for text in texts], dtype=bool)


# Which kernels come first, in tables, pages, advice and notebooks alike: those that could save most time.

WORTH = 0.01
"""What is less of the run time is not worth reading first."""


def at_stake(seconds: float, recoverable: float) -> float:
    """Seconds that a kernel could lose by its headroom: all of its time where nobody knows what could be saved."""
    stake = seconds if math.isnan(recoverable) else recoverable
    return stake if stake > 0 else 0.0


def rank(seconds: float, recoverable: float, share: float) -> tuple[bool, bool, float, float]:
    """Sorts what could save most to the front; behind it what takes next to none of the time, and last what has no time.

    ``seconds`` and ``recoverable`` [s] may be NaN; ``share`` is that of the time of all on the same GPU, a ratio.
    """
    timed = seconds > 0
    return not timed, not share >= WORTH, -at_stake(seconds, recoverable), -seconds if timed else 0.0


def time_by_gpu(kernels: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Seconds of all kernels of each GPU, each given as GPU and its seconds; what is unknown adds nothing."""
    totals: dict[str, float] = {}
    for device, seconds in kernels:
        totals[device] = totals.get(device, 0.0) + (seconds if seconds > 0 else 0.0)
    return totals


def order(kernels: Iterable[tuple[str, float, float]]) -> list[int]:
    """Positions of kernels, each given as GPU, seconds and recoverable seconds, as `rank` sorts them."""
    given = list(kernels)
    totals = time_by_gpu((device, seconds) for device, seconds, _ in given)
    ranks = []
    for device, seconds, recoverable in given:
        ranks.append(rank(seconds, recoverable, seconds / totals[device] if totals[device] > 0 else math.nan))
    return sorted(range(len(given)), key=ranks.__getitem__)


# Parameter sweeps.  A trajectory joins the dots of one kernel over the steps, as figure 2 of Yang, Kurth, Williams,
# "Hierarchical Roofline Analysis for GPUs" (2019) does with GPP for nw = 1 ... 6.

NVTX = "nvtx"
_WHAT = "Cannot draw a trajectory of"
_PIECES = r"[^\W_]+(?:[=.][^\W_]+)*|[\W_]"  # words, "nw=1" and "0.5" among them, and what stands between


def as_trajectory(measurements: Measurements, label: str = "") -> Measurements:
    """The measurements with ``label`` and ``step`` set; launches of one step share both, whichever report they come from.

    ``label`` says what names a step: "" the part of the file names that differs, "nvtx" the NVTX range path, "nvtx:REGEX" what
    REGEX finds in that path, anything else a regular expression searched in the report's path; of an expression its first
    group counts, else the whole match.  Labels that an imported file gives its points stay.
    Steps follow the order of the reports and of the launches in them; reports in the order in which a shell sorts them (nw1,
    nw10, nw2) are taken in natural order (nw1, nw2, nw10).  Launches in no matching range get step -1.
    Raises RooflineError where nothing labels the steps or fewer than two are found; ValueError for a wrong expression.
    """
    m = measurements
    by_nvtx = label == NVTX or label.startswith(f"{NVTX}:")
    text = label[len(NVTX) + 1 :] if by_nvtx else label
    pattern = expression(text) if text else None
    sources = m.nvtx if by_nvtx else m.report
    named = list(dict.fromkeys(one for one, own in zip(sources, m.label, strict=True) if one and (by_nvtx or not own)))
    found = (differing if by_nvtx else file_labels)(named)
    if pattern:
        found = [first_found(pattern, one).strip() for one in named]
    if pattern and not by_nvtx and "" in found:  # such a report would be missing unseen
        reason = f"the pattern {pattern.pattern!r} finds nothing in its path"
        raise RooflineError(_WHAT, named[found.index("")], reason, "Change --label, or leave the report out.")
    labels_of = dict(zip(named, found, strict=True))
    labels = [own or labels_of.get(source, "") for own, source in zip(m.label, sources, strict=True)]
    reports = list(dict.fromkeys(m.report))
    # A list as `nw*.ncu-rep` gives it carries no wish of a person; any other order does.
    if reports in (sorted(reports), sorted(reports, key=str.casefold)):
        reports.sort(key=natural_order)
    places = {report: i for i, report in enumerate(reports)}
    steps: dict[str, int] = {}
    for i in sorted(range(len(m)), key=lambda i: places[m.report[i]]):
        if labels[i]:
            steps.setdefault(labels[i], len(steps))
    if len(steps) > 1:
        return replace(m, label=objects(labels), step=np.array([steps.get(one, -1) for one in labels], dtype=np.int64))
    about = reports[0] if len(reports) == 1 else f"{len(reports)} reports"
    reason = f"all of it has one label, {next(iter(steps))!r}" if steps else "nothing labels its steps"
    next_step = "Give reports of other steps, or use --label nvtx for ranges inside one, profiled with `ncu --nvtx`."
    raise RooflineError(_WHAT, about, reason, next_step)


def file_labels(paths: Sequence[str]) -> list[str]:
    """What tells report files apart: gpp-nw1.ncu-rep and gpp-nw2.ncu-rep are "nw1" and "nw2"; "" for a single file."""
    if len(paths) < 2:
        return [""] * len(paths)

    def without_suffix(name: str) -> str:
        return name.removesuffix(next((one for one in REPORT_SUFFIXES if name.endswith(one)), PurePath(name).suffix))

    names = [without_suffix(PurePath(path).name) for path in paths]
    if len(set(names)) < len(names):
        names = [PurePath(without_suffix(path)).as_posix() for path in paths]
    return differing(names)


def differing(texts: Sequence[str]) -> list[str]:
    """Distinct texts without the words that all begin or end with; a bare number keeps the word before it."""
    pieces = [re.findall(_PIECES, text) for text in texts]
    shortest = min(map(len, pieces), default=0)
    if len(texts) < 2 or shortest == 0:
        return list(texts)

    start = end = 0  # pieces that all have in common
    while start < shortest - 1 and len({part[start] for part in pieces}) == 1:
        start += 1
    while end < shortest - 1 - start and len({part[-1 - end] for part in pieces}) == 1:
        end += 1
    middles = [part[start : len(part) - end] for part in pieces]
    if start >= 2 and any(middle[0].replace(".", "").isdecimal() for middle in middles):
        middles = [[*part[start - 2 : start], *middle] for part, middle in zip(pieces, middles, strict=True)]
    return ["".join(middle).strip(" -_./\\") or text for middle, text in zip(middles, texts, strict=True)]
