"""Reports of many MPI ranks, merged by kernel: totals and roofs over all ranks, spread, load imbalance and outliers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
from ncu_roofline.model.measurements import FloatArray, IntArray
from ncu_roofline.model.roofline import Columns, Table, ceilings_of, frame_of, of_columns, of_rows
from ncu_roofline.model.selection import Grouping, group
from ncu_roofline.model.work import total_flops, uncounted_tensor
from ncu_roofline.rendering.document import Column

THRESHOLD = 3.5
OFF_MEDIAN = 0.05
MINIMUM_RANKS = 3
_NORMAL_QUARTILE = 0.6745
_NORMAL_MEAN = 1.2533
_SIGNS = {1.0: "slow", -1.0: "fast", 0.0: ""}
ALL_RANKS = "all ranks"
_POINT = ("kernel", "device", "precision", "level")
_AT_ONCE = 2_000  # rows whose points are made at once: they take memory
GROUPINGS = ("kernel", "application")
Source = Report | MetricTable | PointTable | RankPart | str | PathLike[str]
CeilingsFile = Ceilings | str | PathLike[str]


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
    parts = []
    for report in as_inputs(reports, RankPart):
        if isinstance(report, (str, PathLike)):
            with closing_input(report) as opened:
                parts.append(rank_part(opened, str(report), chosen))
        else:
            parts.append(report if isinstance(report, RankPart) else rank_part(report, str(report.path), chosen))
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
    files = ceilings_of(ceilings)
    together = replace(m, report=np.full(len(m), ALL_RANKS, dtype=object))
    whole = roofline(together, files, clock=clock, by=by, select=unfiltered)
    names = tuple(sorted(dict.fromkeys(named.ranks), key=natural))
    places = {name: place for place, name in enumerate(names)}
    rank_of = np.array([places[name] for name in m.report], dtype=np.int64)
    rows = group(together, by)
    owner = "kernel-report" if by == "kernel" else by

    def points_of(some: Measurements) -> Columns:
        models = set(zip(some.device, some.capability, strict=True))
        fitting = [one for one in files if any(one.applies_to(*model) for model in models)]
        return roofline(some, fitting, clock=clock, by=owner, select=unfiltered).point_columns

    with np.errstate(all="ignore"):
        cells = _cells(m, rows, rank_of, len(names))
        signs = np.array([outliers(row) for row in cells["seconds"]])
        about = _about(dict(zip(sources, named.ranks, strict=True)))
        return Ranks(
            names,
            named.origin,
            whole,
            _kernels_table(whole.kernel_columns, names, cells, signs, by),
            _points_table(whole.point_columns, m, rows, rank_of, len(names), owner, points_of),
            _ranks_table(whole.kernel_columns, names, about, cells, signs),
        )


def _cells(m: Measurements, rows: Grouping, rank_of: IntArray, ranks: int) -> dict[str, FloatArray]:
    """Sums over the launches of each kernel on each rank (the clock is a mean), of shape (rows, ranks); NaN where unknown."""
    index, shape = rows.index * ranks + rank_of, (rows.count, ranks)

    def total(values: Any) -> FloatArray:
        return np.bincount(index, weights=values, minlength=rows.count * ranks).reshape(shape).astype(np.float64)

    def known(values: FloatArray) -> FloatArray:
        return np.where(total(np.isfinite(values)) > 0, total(np.nan_to_num(values)), np.nan)

    work = known(np.where(m.rates, np.nan, total_flops(m)))
    uncounted = total(uncounted_tensor(m, load_spec())) > 0
    weights = np.where(np.isfinite(m.clock) & np.isfinite(m.seconds), m.seconds, 0.0)
    ran = total(np.ones(len(m))) > 0
    return {
        "seconds": np.where(total(m.rates) > 0, np.nan, known(m.seconds)),
        "clock": total(np.nan_to_num(m.clock) * weights) / total(weights),
        "launches": np.where(ran, total(m.invocations), np.nan),
        "FLOPs": np.where(uncounted & ~(work > 0), np.nan, work),  # zero of what was counted is not zero in all
        **{f"{level} bytes": known(np.where(m.rates, np.nan, one.values)) for level, one in m.traffic.items()},
    }


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
    words = [f"uneven work: {load:.2f} x the {name}"] if uneven else []
    rest = (time / load if load > 0 else np.nan) if uneven else time
    if not uneven or sign * (rest - 1) > OFF_MEDIAN:
        when = "beyond that" if uneven else "with the same work and bytes"
        if np.isfinite(clock) and sign * (1 - clock) > OFF_MEDIAN:
            words.append(f"{'lower' if sign > 0 else 'higher'} clock: {clock:.2f} x the others' {when}")
        else:
            words.append(f"{'slow GPU: longer' if sign > 0 else 'fast GPU: shorter'} {when}")
    return "; ".join(words)


def _over_ranks(name: str, cells: FloatArray) -> dict[str, FloatArray]:
    """Minimum, median and maximum over the ranks that have the number; NaN where none has."""
    known = np.where(np.isfinite(cells), cells, np.nan)
    medians = np.array([np.median(row[~np.isnan(row)]) if not np.isnan(row).all() else np.nan for row in known])
    return {
        f"{name}_min": np.fmin.reduce(known, axis=1),
        f"{name}_median": medians,
        f"{name}_max": np.fmax.reduce(known, axis=1),
    }


def _kernels_table(
    kernels: Columns, names: Sequence[str], cells: Mapping[str, FloatArray], signs: FloatArray, by: str
) -> Table:
    def listed(where: Any) -> list[str]:
        return ["; ".join(names[rank] for rank in np.flatnonzero(row).tolist()) for row in where]

    seconds, launches = cells["seconds"], cells["launches"]
    ran, known = np.isfinite(launches), np.isfinite(seconds)
    # A kernel is missing where a rank ran it neither on this GPU model nor on another.
    full = kernels["name"].astype(str) if by == "kernel" else np.zeros(len(ran))
    number = np.unique(full, return_inverse=True)[1]
    somewhere = np.zeros_like(ran)
    np.logical_or.at(somewhere, number, ran)
    lacking = ~somewhere[number]
    times = _over_ranks("seconds", seconds)
    longest = np.argmax(np.where(known, seconds, -np.inf), axis=1).tolist()
    copied = ("kernel", "device", "name", "compute_capability", "seconds", "time_share", "work", "status", "notes")
    table = {
        **{name: kernels[name] for name in copied},
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
        **_over_ranks("work", cells["FLOPs"]),
        "outliers": (signs != 0).sum(axis=1),
        "slow_ranks": listed(signs > 0),
        "fast_ranks": listed(signs < 0),
    }
    order = np.argsort(-np.nan_to_num(kernels["seconds"]), kind="stable")
    return of_columns({name: np.asarray(values)[order] for name, values in table.items()}, columns.RANK_KERNELS)


def _points_table(
    whole: Columns,
    m: Measurements,
    rows: Grouping,
    rank_of: IntArray,
    ranks: int,
    owner: str,
    points_of: Callable[[Measurements], Columns],
) -> Table:
    """The points of all ranks together, with the spread of those of each rank, which are made of some ranks at a time."""
    homes = {point: row for row, point in enumerate(zip(*(whole[name] for name in _POINT), strict=True))}
    cells = {name: np.full((len(homes), ranks), np.nan) for name in ("intensity", "performance", "fraction")}
    there = np.zeros((len(homes), ranks), dtype=bool)
    step = max(_AT_ONCE // rows.count, 1)
    for start in range(0, ranks, step):
        mine = np.flatnonzero((rank_of >= start) & (rank_of < start + step))
        if not len(mine):
            continue
        some = m.take(mine)
        own, each = group(some, owner), points_of(some)
        # What a row is called among some ranks need not be what it is called among all.
        called = {}
        for launch, label in zip(own.first.tolist(), own.label, strict=True):
            row = some.report[launch], label, some.device[launch]
            called[row] = rows.label[rows.index[mine[launch]]], rank_of[mine[launch]]
        place = []
        for report, kernel, device, precision, level in zip(*(each[name] for name in ("report", *_POINT)), strict=True):
            label, rank = called[report, kernel, device]
            place.append((homes[label, device, precision, level], rank))
        where = tuple(np.array(place, dtype=np.int64).reshape(-1, 2).T)
        there[where] = True
        for name, values in cells.items():
            values[where] = each[name]
    table = {**whole, "ranks": there.sum(axis=1)}
    for name, values in cells.items():
        table |= _over_ranks(name, values)
    return of_columns(table, columns.RANK_POINTS)


def _ranks_table(
    kernels: Columns,
    names: Sequence[str],
    about: Mapping[str, dict[str, str]],
    cells: Mapping[str, FloatArray],
    signs: FloatArray,
) -> Table:
    """Kernel by kernel, ranks in their order."""
    to_median = {name: np.array([ratio_to_median(row) for row in values]) for name, values in cells.items()}
    score = np.array([modified_z(row) for row in cells["seconds"]])
    loads = [name for name in cells if name not in ("seconds", "clock")]
    rows = []
    for k, r in np.argwhere(np.isfinite(cells["launches"])).tolist():
        value = {name: values[k, r] for name, values in cells.items()}
        ratio = {name: values[k, r] for name, values in to_median.items()}
        # The outermost level whose bytes are known of some rank.
        levels = (level for level in reversed(load_spec().chain) if f"{level} bytes" in cells)
        level = next((one for one in levels if np.isfinite(cells[f"{one} bytes"][k]).any()), "")
        sign = signs[k, r]
        why = cause(sign, ratio["seconds"], {name: ratio[name] for name in loads}, ratio["clock"]) if sign else ""
        rows.append(
            {
                "kernel": kernels["kernel"][k],
                "device": kernels["device"][k],
                "rank": names[r],
                **about[names[r]],
                "launches": value["launches"],
                "seconds": value["seconds"],
                "seconds_ratio": ratio["seconds"],
                "score": score[k, r],
                "outlier": _SIGNS[sign],
                "cause": why,
                "work": value["FLOPs"],
                "work_ratio": ratio["FLOPs"],
                "traffic_level": level,
                "traffic": value.get(f"{level} bytes", np.nan),
                "traffic_ratio": ratio.get(f"{level} bytes", np.nan),
                "clock_profiled": value["clock"],
                "clock_ratio": ratio["clock"],
            }
        )
    return of_rows(rows, columns.RANK_RANKS)


def _about(ranks: Mapping[RankSource, str]) -> dict[str, dict[str, str]]:
    """What is known of each rank, whatever it ran."""
    called = ReportNames.apart(source.report for source in ranks)
    found = {}
    for rank in dict.fromkeys(ranks.values()):
        sources = [source for source, mine in ranks.items() if mine == rank]
        found[rank] = {
            "reports": "; ".join(dict.fromkeys(called(source.report) for source in sources)),
            "host": " ".join(dict.fromkeys(source.host for source in sources if source.host)),
            "pid": " ".join(dict.fromkeys(str(source.pid) for source in sources if source.pid)),
            "gpu": " ".join(dict.fromkeys(source.gpu for source in sources if source.gpu)),
        }
    return found
