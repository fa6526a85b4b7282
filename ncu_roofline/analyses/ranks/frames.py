"""Reports of many MPI ranks, merged by kernel: totals and roofs over all ranks, spread, load imbalance and outliers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from typing import Any, ClassVar

import numpy as np

from ncu_roofline.analyses.ranks import columns
from ncu_roofline.analyses.ranks.names import RankNames, RankSource, rank_names
from ncu_roofline.analyses.ranks.parts import RankPart, rank_part
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.files import ReportNames
from ncu_roofline.chips import load_spec
from ncu_roofline.formats.ceilings import Ceilings
from ncu_roofline.formats.inputs import MetricTable, PointTable, as_inputs
from ncu_roofline.formats.report import Report
from ncu_roofline.model import Displayed, Measurements, Roofline, Selection, closing_input, roofline
from ncu_roofline.model.displayed import KERNEL, LAUNCHES, SHARE, TIME, Shown, as_factor
from ncu_roofline.model.measurements import FloatArray, TextArray
from ncu_roofline.model.roofline import Columns, Table, frame_of, of_rows

THRESHOLD = 3.5
OFF_MEDIAN = 0.05
MINIMUM_RANKS = 3
_NORMAL_QUARTILE = 0.6745
_NORMAL_MEAN = 1.2533
_SIGNS = {1.0: "slow", -1.0: "fast", 0.0: ""}
Row = dict[str, Any]
Key = tuple[str, ...]
ALL_RANKS = "all ranks"
GROUPINGS = ("kernel", "application")
Source = Report | MetricTable | PointTable | RankPart | str | PathLike[str]
CeilingsFile = Ceilings | str | PathLike[str]


def modified_z(values: FloatArray) -> FloatArray:
    """The modified z-score of each value; NaN for missing ones, and for all where fewer than MINIMUM_RANKS are known."""
    known = np.isfinite(values)
    if known.sum() < MINIMUM_RANKS:
        return np.full(len(values), np.nan)
    off = values - np.median(values[known])
    mad = float(np.median(np.abs(off[known])))
    scale = mad / _NORMAL_QUARTILE if mad > 0 else float(np.mean(np.abs(off[known]))) * _NORMAL_MEAN
    if scale == 0:
        return np.where(known, 0.0, np.nan)
    return np.asarray(off / scale, dtype=np.float64)


def ratio_to_median(values: FloatArray) -> FloatArray:
    """Each value over the median of the known ones; NaN where that is unknown or 0."""
    known = values[np.isfinite(values)]
    median = float(np.median(known)) if len(known) else np.nan
    return values / median if median > 0 else np.full(len(values), np.nan)


def outliers(seconds: FloatArray) -> FloatArray:
    """1 for ranks that took too long, -1 for those that were too fast, 0 for the others."""
    score, ratio = modified_z(seconds), ratio_to_median(seconds)
    with np.errstate(invalid="ignore"):
        far = (np.abs(score) > THRESHOLD) & (np.abs(ratio - 1) > OFF_MEDIAN)
    return np.where(far, np.sign(score), 0.0)


def cause(sign: float, time: float, loads: Mapping[str, float], clock: float) -> str:
    """Why a rank is an outlier of this sign, in words.

    ``time``, ``loads`` (launches, FLOPs, bytes of a level: what it had to do) and ``clock`` (of its SMs) are ratios to the
    medians over the ranks, NaN where unknown.  What it had to do explains a time as far as the ratio goes; the rest is the GPU.
    """
    known = {name: ratio for name, ratio in loads.items() if np.isfinite(ratio)}
    if not set(known) - {"launches"}:
        return "unknown: neither work nor bytes are known of these ranks"
    name, load = max(known.items(), key=lambda item: sign * item[1])
    uneven = sign * (load - 1) > OFF_MEDIAN
    rest = time / load if load > 0 else np.nan
    pace = sign * ((rest if uneven else time) - 1) > OFF_MEDIAN
    words = []
    if uneven:
        words.append(f"uneven work: {load:.2f} x the {name}")
    if pace or not uneven:
        words.append(_pace(sign, clock, "beyond that" if uneven else "with the same work and bytes"))
    return "; ".join(words)


def _pace(sign: float, clock: float, when: str) -> str:
    if np.isfinite(clock) and sign * (1 - clock) > OFF_MEDIAN:
        return f"{'lower' if sign > 0 else 'higher'} clock: {clock:.2f} x the others' {when}"
    return f"{'slow' if sign > 0 else 'fast'} GPU: {'longer' if sign > 0 else 'shorter'} {when}"


class RankRows:
    """Numbers by kernel and rank: matrices of shape (kernels, ranks), NaN where a rank did not run a kernel."""

    def __init__(self, whole: Roofline, each: Roofline, names: tuple[str, ...], ranks: Mapping[RankSource, str]) -> None:
        self.whole, self.each, self.names, self.sources = whole, each, names, ranks
        self.places = {name: place for place, name in enumerate(names)}
        # Of an application the label is the rank, so what tells rows apart is the GPU model only.
        self.named = "kernel" if not (whole.kernel_columns["kind"] == "application").any() else "device"
        homes = {key: row for row, key in enumerate(self.keys(whole.kernel_columns))}
        self._row = np.array([homes[key] for key in self.keys(each.kernel_columns)], dtype=np.int64)
        self._column = self.columns_of(each.kernel_columns)
        table = each.kernel_columns
        self.ran = np.isfinite(self._matrix(np.ones(len(self._row))))
        self.seconds, self.work, self.clock, self.launches = (
            self._matrix(table[name].astype(np.float64)) for name in ("seconds", "work", "clock_profiled", "launches")
        )
        self.traffic = {level: self._matrix(values) for level, values in each.traffic.items()}

    def keys(self, table: Columns, *more: str) -> list[Key]:
        """What a row is about, whichever rank it is of."""
        return list(zip(*(table[name].tolist() for name in (self.named, "device", *more)), strict=True))

    def columns_of(self, table: Columns) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The rank of each row, as its position."""
        return np.array([self.places[rank] for rank in table["report"]], dtype=np.int64)

    def _matrix(self, values: FloatArray) -> FloatArray:
        result = np.full((len(self.whole.kernel_columns["kernel"]), len(self.names)), np.nan)
        result[self._row, self._column] = values
        return result

    @cached_property
    def signs(self) -> FloatArray:
        """1 where a rank was too slow, -1 where too fast."""
        return np.vstack([outliers(row) for row in self.seconds])

    def missing(self) -> list[list[str]]:
        """For each kernel the ranks that did not run it: neither on this GPU model nor on another."""
        names = self.whole.kernel_columns["name"] if self.named == "kernel" else np.full(len(self.ran), "")
        somewhere: dict[str, Any] = {}
        for name, ran in zip(names, self.ran, strict=True):
            somewhere[name] = somewhere.get(name, False) | ran
        return [[self.names[i] for i in np.flatnonzero(~somewhere[name])] for name in names]

    def chosen(self, kernel: int, sign: float) -> list[str]:
        """The outliers of a kernel with this sign."""
        return [self.names[i] for i in np.flatnonzero(self.signs[kernel] == sign)]


def kernels_table(rows: RankRows) -> Table:
    """RANK_KERNELS."""
    whole = rows.whole.kernel_columns
    same = ("kernel", "device", "name", "compute_capability", "seconds", "time_share", "work", "status", "notes")
    table = []
    for k, missing in enumerate(rows.missing()):
        launches = rows.launches[k][rows.ran[k]].astype(np.int64)
        seconds = _numbers("seconds", rows.seconds[k])
        known = rows.seconds[k][np.isfinite(rows.seconds[k])]
        slow, fast = rows.chosen(k, 1.0), rows.chosen(k, -1.0)
        table.append(
            {
                **{name: whole[name][k] for name in same},
                "ranks": len(launches),
                "missing": len(missing),
                "missing_ranks": "; ".join(missing),
                "launches": launches.sum(),
                "launches_min": launches.min(),
                "launches_max": launches.max(),
                **seconds,
                "slowest": rows.names[int(np.nanargmax(rows.seconds[k]))] if len(known) else "",
                "imbalance": seconds["seconds_max"] / known.mean() if len(known) else np.nan,
                "imbalance_median": seconds["seconds_max"] / seconds["seconds_median"],
                "spread": (seconds["seconds_max"] - seconds["seconds_min"]) / seconds["seconds_median"],
                **_numbers("work", rows.work[k]),
                "outliers": len(slow) + len(fast),
                "slow_ranks": "; ".join(slow),
                "fast_ranks": "; ".join(fast),
            }
        )
    order = sorted(range(len(table)), key=lambda k: -np.nan_to_num(table[k]["seconds"]))
    return of_rows([table[k] for k in order], columns.RANK_KERNELS)


def points_table(rows: RankRows) -> Table:
    """RANK_POINTS."""
    whole, each = rows.whole.point_columns, rows.each.point_columns
    of: dict[Key, list[int]] = {}
    for row, key in enumerate(rows.keys(each, "precision", "level")):
        of.setdefault(key, []).append(row)
    spread = ("intensity", "performance", "fraction")
    same = [point.name for point in columns.RANK_POINTS if point.name in whole]
    table = []
    for row, key in enumerate(rows.keys(whole, "precision", "level")):
        members = of.get(key, [])
        numbers = [_numbers(name, each[name][members]) for name in spread]
        ranks = {"ranks": len(members)}
        table.append({**{name: whole[name][row] for name in same}, **ranks, **numbers[0], **numbers[1], **numbers[2]})
    return of_rows(table, columns.RANK_POINTS)


def ranks_table(rows: RankRows) -> Table:
    """RANK_RANKS, kernel by kernel, ranks in their order."""
    about = _about(rows)
    table: list[Row] = []
    for k in range(len(rows.ran)):
        table += _ranks_of(rows, k, about)
    return of_rows(table, columns.RANK_RANKS)


def _ranks_of(rows: RankRows, k: int, about: Mapping[str, Row]) -> list[Row]:
    whole = rows.whole.kernel_columns
    where = {"kernel": whole["kernel"][k], "device": whole["device"][k]}
    ratios = {"seconds": rows.seconds, "work": rows.work, "clock": rows.clock, "launches": rows.launches, **rows.traffic}
    to_median = {name: ratio_to_median(matrix[k]) for name, matrix in ratios.items()}
    outermost_first = reversed(load_spec().chain)
    level = next((one for one in outermost_first if one in rows.traffic and np.isfinite(rows.traffic[one][k]).any()), "")
    nothing = np.full(len(rows.names), np.nan)
    traffic = rows.traffic[level][k] if level else nothing
    score = modified_z(rows.seconds[k])
    found = []
    for r in np.flatnonzero(rows.ran[k]):
        sign = float(rows.signs[k, r])
        loads = {"launches": to_median["launches"][r], "FLOPs": to_median["work"][r]}
        loads |= {f"{one} bytes": to_median[one][r] for one in rows.traffic}
        row = {
            **where,
            "rank": rows.names[r],
            **about[rows.names[r]],
            "launches": int(rows.launches[k, r]),
            "seconds": rows.seconds[k, r],
            "seconds_ratio": to_median["seconds"][r],
            "score": score[r],
            "outlier": _SIGNS[sign],
            "cause": cause(sign, to_median["seconds"][r], loads, to_median["clock"][r]) if sign else "",
            "work": rows.work[k, r],
            "work_ratio": to_median["work"][r],
            "traffic_level": level,
            "traffic": traffic[r],
            "traffic_ratio": to_median[level][r] if level else np.nan,
            "clock_profiled": rows.clock[k, r],
            "clock_ratio": to_median["clock"][r],
        }
        found.append(row)
    return found


def _about(rows: RankRows) -> dict[str, Row]:
    """What is known of each rank, whatever it ran."""
    sources: dict[str, list[RankSource]] = {}
    for source, rank in rows.sources.items():
        sources.setdefault(rank, []).append(source)
    called = ReportNames.apart(source.report for source in rows.sources)
    return {
        rank: {
            "reports": _joined("; ", [called(one.report) for one in several]),
            "host": _joined(" ", [one.host for one in several]),
            "pid": _joined(" ", [str(one.pid) if one.pid else "" for one in several]),
            "gpu": _joined(" ", [one.gpu for one in several]),
        }
        for rank, several in sources.items()
    }


def _joined(separator: str, texts: list[str]) -> str:
    return separator.join(dict.fromkeys(text for text in texts if text))


def _numbers(name: str, values: FloatArray) -> dict[str, float]:
    """Minimum, median and maximum over the ranks that have the number; NaN where none has."""
    known = values[np.isfinite(values)]
    if not len(known):
        return {f"{name}_{what}": np.nan for what in ("min", "median", "max")}
    return {f"{name}_min": known.min(), f"{name}_median": float(np.median(known)), f"{name}_max": known.max()}


@dataclass(frozen=True, repr=False)
class Ranks(Displayed):
    """Tables of equally long columns; `kernels`, `points`, `ranks` are the same as DataFrames.

    Columns, their units and their meaning: ``RANK_KERNELS``, ``RANK_POINTS``, ``RANK_RANKS``.
    ``names`` are the ranks in order, ``origin`` says where they were taken from, ``roofline`` is that of all ranks together.
    """

    view: ClassVar[str] = "ranks"
    counted: ClassVar[Mapping[str, str]] = {"kernel_columns": "kernel", "rank_columns": "rank time", "point_columns": "point"}
    glance: ClassVar[tuple[Shown, ...]] = (
        KERNEL,
        Shown("ranks", "ranks", str),
        LAUNCHES,
        TIME,
        SHARE,
        Shown("imbalance", "max/mean", as_factor),
        Shown("slowest", "slowest", left=True),
    )
    names: tuple[str, ...]
    origin: str
    roofline: Roofline
    kernel_columns: Table
    point_columns: Table
    rank_columns: Table

    kernels = frame_of("kernel_columns", "One row per kernel and GPU model.")
    points = frame_of("point_columns", "One row per kernel, precision and level.")
    ranks = frame_of("rank_columns", "One row per kernel and rank that ran it.")


def ranks(
    reports: Source | Sequence[Source],
    ceilings: CeilingsFile | Sequence[CeilingsFile] | None = None,
    *,
    rank: str = "",
    clock: str = "profiled",
    by: str = "kernel",
    select: Selection | None = None,
) -> Ranks:
    """Reports of ranks, merged: paths, open reports, or what an importer read; each of a rank, or of several.

    ``rank``: a regular expression on the path, as `rank_names` takes it.  ``by``: "kernel" (same full name, same GPU model) or
    "application" (everything a rank ran).  ``ceilings``, ``clock`` and ``select`` as in `roofline`; ``top`` is of all ranks.
    Several reports of a rank, and several launches of a kernel, are summed.  Imbalance is max / mean of the ranks' times, whose
    difference is the imbalance time of DeRose, Homer and Johnson (Euro-Par 2007).
    Times are in seconds, work in FLOP, traffic in byte: one row per kernel, and per kernel and rank.
    Raises RooflineError for files that can't be read and paths without rank, TypeError for what is no report, ValueError for no
    reports and an unknown ``by``.

    >>> ranks("gpp-v100.ncu-rep").kernels[["kernel", "slowest"]].iloc[0].tolist()
    ['sigma_gpp_gpu<6>', 'gpp-v100.ncu-rep']
    """
    if by not in GROUPINGS:
        raise ValueError(f"by must be one of {', '.join(GROUPINGS)}, not {by!r}")
    chosen = replace(select or Selection(), top_by="kernel")
    parts = [_part(report, chosen) for report in as_inputs(reports, RankPart)]
    sources = [source for part in parts for source in part.sources]
    named = rank_names(sources, rank)
    m = Measurements.joined([part.measurements for part in parts])
    if not len(m):
        raise RooflineError("Cannot merge", f"{len(parts)} reports", "no launch passes the filters", "Loosen the filters.")
    m = Selection(top=chosen.top, top_by="kernel").launches(replace(m, report=_rank_of_each(parts, named)))
    unfiltered = Selection(precisions=chosen.precisions, levels=chosen.levels)
    together = replace(m, report=np.full(len(m), ALL_RANKS, dtype=object))
    whole = roofline(together, ceilings, clock=clock, by=by, select=unfiltered)
    each = roofline(m, ceilings, clock=clock, by="kernel-report" if by == "kernel" else by, select=unfiltered)
    rows = RankRows(whole, each, tuple(named.ordered()), dict(zip(sources, named.ranks, strict=True)))
    return Ranks(rows.names, named.origin, whole, kernels_table(rows), points_table(rows), ranks_table(rows))


def _part(one: Source, select: Selection) -> RankPart:
    if isinstance(one, RankPart):
        return one
    if isinstance(one, (str, PathLike)):
        with closing_input(one) as opened:
            return rank_part(opened, str(one), select)
    return rank_part(one, str(one.path), select)


def _rank_of_each(parts: Sequence[RankPart], named: RankNames) -> TextArray:
    """The rank of each launch of all parts."""
    names = np.array([*named.ranks], dtype=object)
    offsets = np.cumsum([0, *(len(part.sources) for part in parts)])
    found: TextArray = names[np.concatenate([part.index + offset for part, offset in zip(parts, offsets[:-1], strict=True)])]
    return found
