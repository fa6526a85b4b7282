"""Reports of many MPI ranks, merged by kernel: totals and roofs over all ranks, spread, load imbalance and outliers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, ClassVar

import numpy as np

from ncu_roofline.analyses.ranks import columns
from ncu_roofline.analyses.ranks.parts import RankPart, RankSource, natural, rank_names, rank_part
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.files import ReportNames
from ncu_roofline.chips import load_spec
from ncu_roofline.formats.ceilings import Ceilings
from ncu_roofline.formats.inputs import as_inputs
from ncu_roofline.formats.inputs.tables import MetricTable, PointTable
from ncu_roofline.formats.report import Report
from ncu_roofline.model import Displayed, Measurements, Roofline, Selection, closing_input, roofline
from ncu_roofline.model.displayed import seen
from ncu_roofline.model.measurements import FloatArray
from ncu_roofline.model.roofline import Columns, Table, frame_of, of_columns, of_rows
from ncu_roofline.rendering.document import Column

THRESHOLD = 3.5
OFF_MEDIAN = 0.05
MINIMUM_RANKS = 3
_NORMAL_QUARTILE = 0.6745
_NORMAL_MEAN = 1.2533
_SIGNS = {1.0: "slow", -1.0: "fast", 0.0: ""}
Row = dict[str, Any]
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


class _Cells:
    """Rows of all ranks together and those of each rank: numbers become matrices of shape (rows, ranks)."""

    def __init__(self, whole: Columns, each: Columns, ranks: Sequence[str], *key: str) -> None:
        homes = {key: row for row, key in enumerate(zip(*(whole[name] for name in key), strict=True))}
        places = {rank: place for place, rank in enumerate(ranks)}
        self._shape = len(homes), len(ranks)
        self._rows = [homes[key] for key in zip(*(each[name] for name in key), strict=True)]
        self._ranks = [places[rank] for rank in each["report"]]

    def of(self, values: Any) -> FloatArray:
        """NaN where a rank lacks the row."""
        result = np.full(self._shape, np.nan)
        result[self._rows, self._ranks] = values
        return result


def _over_ranks(name: str, cells: FloatArray) -> dict[str, FloatArray]:
    """Minimum, median and maximum over the ranks that have the number; NaN where none has."""
    known = np.where(np.isfinite(cells), cells, np.nan)
    medians = np.array([np.median(row[~np.isnan(row)]) if not np.isnan(row).all() else np.nan for row in known])
    return {
        f"{name}_min": np.fmin.reduce(known, axis=1),
        f"{name}_median": medians,
        f"{name}_max": np.fmax.reduce(known, axis=1),
    }


def _tables(whole: Roofline, each: Roofline, names: Sequence[str], sources: Mapping[RankSource, str]) -> tuple[Table, ...]:
    """RANK_KERNELS, RANK_POINTS and RANK_RANKS."""
    kernels, of_rank = whole.kernel_columns, each.kernel_columns
    # Of an application the label is the rank, so what tells rows apart is the GPU model only.
    key = ("device",) if (kernels["kind"] == "application").any() else ("kernel", "device")
    cells = _Cells(kernels, of_rank, names, *key)
    seconds, work, launches, clock = (cells.of(of_rank[name]) for name in ("seconds", "work", "launches", "clock_profiled"))
    loads = {"launches": launches, "FLOPs": work, **{f"{level} bytes": cells.of(each.traffic[level]) for level in each.traffic}}
    ran, signs = np.isfinite(launches), np.array([outliers(row) for row in seconds])
    return (
        _kernels_table(kernels, names, seconds, work, launches, signs, by_name=len(key) > 1),
        _points_table(whole.point_columns, each.point_columns, names, key),
        _ranks_table(kernels, names, _about(sources), ran, signs, seconds, clock, loads),
    )


def _kernels_table(
    kernels: Columns,
    names: Sequence[str],
    seconds: FloatArray,
    work: FloatArray,
    launches: FloatArray,
    signs: FloatArray,
    *,
    by_name: bool,
) -> Table:
    def listed(where: Any) -> list[str]:
        return ["; ".join(names[rank] for rank in np.flatnonzero(row).tolist()) for row in where]

    ran, known = np.isfinite(launches), np.isfinite(seconds)
    # A kernel is missing where a rank ran it neither on this GPU model nor on another.
    full = kernels["name"] if by_name else np.zeros(len(ran))
    number = np.unique(full.astype(str), return_inverse=True)[1]
    somewhere = np.zeros_like(ran)
    np.logical_or.at(somewhere, number, ran)
    lacking = ~somewhere[number]
    times = _over_ranks("seconds", seconds)
    longest = np.argmax(np.where(known, seconds, -np.inf), axis=1).tolist()
    table = {
        **{name: kernels[name] for name in ("kernel", "device", "name", "compute_capability", "seconds", "time_share", "work")},
        "ranks": ran.sum(axis=1),
        "missing": lacking.sum(axis=1),
        "missing_ranks": listed(lacking),
        "launches": np.nansum(launches, axis=1),
        "launches_min": np.fmin.reduce(launches, axis=1),
        "launches_max": np.fmax.reduce(launches, axis=1),
        **times,
        "slowest": [names[rank] if any(row) else "" for rank, row in zip(longest, known, strict=True)],
        "imbalance": times["seconds_max"] / (np.where(known, seconds, 0.0).sum(axis=1) / known.sum(axis=1)),
        "imbalance_median": times["seconds_max"] / times["seconds_median"],
        "spread": (times["seconds_max"] - times["seconds_min"]) / times["seconds_median"],
        **_over_ranks("work", work),
        "outliers": (signs != 0).sum(axis=1),
        "slow_ranks": listed(signs > 0),
        "fast_ranks": listed(signs < 0),
        "status": kernels["status"],
        "notes": kernels["notes"],
    }
    order = np.argsort(-np.nan_to_num(kernels["seconds"]), kind="stable")
    return of_columns({name: np.asarray(values)[order] for name, values in table.items()}, columns.RANK_KERNELS)


def _points_table(whole: Columns, each: Columns, names: Sequence[str], key: Sequence[str]) -> Table:
    cells = _Cells(whole, each, names, *key, "precision", "level")
    table = {**whole, "ranks": np.isfinite(cells.of(1.0)).sum(axis=1)}
    for name in ("intensity", "performance", "fraction"):
        table |= _over_ranks(name, cells.of(each[name]))
    return of_columns(table, columns.RANK_POINTS)


def _ranks_table(
    kernels: Columns,
    names: Sequence[str],
    about: Mapping[str, Row],
    ran: Any,
    signs: FloatArray,
    seconds: FloatArray,
    clock: FloatArray,
    loads: Mapping[str, FloatArray],
) -> Table:
    """Kernel by kernel, ranks in their order."""
    numbers = {"seconds": seconds, "clock": clock, **loads}
    to_median = {name: np.array([ratio_to_median(row) for row in cells]) for name, cells in numbers.items()}
    score = np.array([modified_z(row) for row in seconds])
    levels = [level for level in reversed(load_spec().chain) if f"{level} bytes" in loads]
    rows = []
    for k, r in np.argwhere(ran).tolist():
        # The outermost level whose bytes are known of some rank.
        level = next((one for one in levels if np.isfinite(loads[f"{one} bytes"][k]).any()), "")
        ratio = {name: values[k, r] for name, values in to_median.items()}
        rows.append(
            {
                "kernel": kernels["kernel"][k],
                "device": kernels["device"][k],
                "rank": names[r],
                **about[names[r]],
                "launches": loads["launches"][k, r],
                "seconds": seconds[k, r],
                "seconds_ratio": ratio["seconds"],
                "score": score[k, r],
                "outlier": _SIGNS[signs[k, r]],
                "cause": cause(signs[k, r], ratio["seconds"], {name: ratio[name] for name in loads}, ratio["clock"])
                if signs[k, r]
                else "",
                "work": loads["FLOPs"][k, r],
                "work_ratio": ratio["FLOPs"],
                "traffic_level": level,
                "traffic": loads[f"{level} bytes"][k, r] if level else np.nan,
                "traffic_ratio": ratio[f"{level} bytes"] if level else np.nan,
                "clock_profiled": clock[k, r],
                "clock_ratio": ratio["clock"],
            }
        )
    return of_rows(rows, columns.RANK_RANKS)


def _about(ranks: Mapping[RankSource, str]) -> dict[str, Row]:
    """What is known of each rank, whatever it ran."""
    called = ReportNames.apart(source.report for source in ranks)
    found: dict[str, Row] = {}
    for rank in dict.fromkeys(ranks.values()):
        sources = [source for source, mine in ranks.items() if mine == rank]
        texts = {
            "reports": [called(source.report) for source in sources],
            "host": [source.host for source in sources],
            "pid": [str(source.pid or "") for source in sources],
            "gpu": [source.gpu for source in sources],
        }
        apart = {"reports": "; "}
        found[rank] = {name: apart.get(name, " ").join(filter(None, dict.fromkeys(values))) for name, values in texts.items()}
    return found


@dataclass(frozen=True, repr=False)
class Ranks(Displayed):
    """Tables of equally long columns; `kernels`, `points`, `ranks` are the same as DataFrames.

    Columns, their units and their meaning: ``RANK_KERNELS``, ``RANK_POINTS``, ``RANK_RANKS``.
    ``names`` are the ranks in order, ``origin`` says where they were taken from, ``roofline`` is that of all ranks together.
    """

    view: ClassVar[str] = "ranks"
    counted: ClassVar[Mapping[str, str]] = {"kernel_columns": "kernel", "rank_columns": "rank time", "point_columns": "point"}
    glance: ClassVar[tuple[Column, ...]] = seen(
        columns.RANK_KERNELS, "kernel", "ranks", "launches", "seconds", "time_share", "imbalance", "slowest"
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
    offsets = np.cumsum([0, *(len(part.sources) for part in parts)])
    index = np.concatenate([part.index + offset for part, offset in zip(parts, offsets, strict=False)])
    m = replace(m, report=np.array([*named.ranks], dtype=object)[index])
    m = Selection(top=chosen.top, top_by="kernel").launches(m)
    unfiltered = Selection(precisions=chosen.precisions, levels=chosen.levels)
    together = replace(m, report=np.full(len(m), ALL_RANKS, dtype=object))
    whole = roofline(together, ceilings, clock=clock, by=by, select=unfiltered)
    each = roofline(m, ceilings, clock=clock, by="kernel-report" if by == "kernel" else by, select=unfiltered)
    names = tuple(sorted(dict.fromkeys(named.ranks), key=natural))
    with np.errstate(all="ignore"):
        tables = _tables(whole, each, names, dict(zip(sources, named.ranks, strict=True)))
    return Ranks(names, named.origin, whole, *tables)


def _part(one: Source, select: Selection) -> RankPart:
    if isinstance(one, RankPart):
        return one
    if isinstance(one, (str, PathLike)):
        with closing_input(one) as opened:
            return rank_part(opened, str(one), select)
    return rank_part(one, str(one.path), select)
