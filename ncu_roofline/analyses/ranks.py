"""Reports of many MPI ranks, merged by kernel: totals and roofs over all ranks, spread, load imbalance and outliers."""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from os import PathLike
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.files import TEMPORARY, ReportNames, natural_order
from ncu_roofline.base.texts import clean, expression, plural
from ncu_roofline.base.units import time_text
from ncu_roofline.chips import load_spec
from ncu_roofline.chips.fields import DATA, read
from ncu_roofline.chips.verdict import MIXED_SHARE
from ncu_roofline.formats.ceilings import Ceilings
from ncu_roofline.formats.inputs import as_inputs
from ncu_roofline.formats.inputs.tables import MetricTable, PointTable
from ncu_roofline.formats.report import Report
from ncu_roofline.model import Displayed, Measurements, Roofline, Selection, closing_input, measurements_of, roofline
from ncu_roofline.model.measurements import FloatArray, IntArray, Quantity
from ncu_roofline.model.roofline import Columns, ceilings_of, frame_of, of_columns, of_rows, points_of, seen
from ncu_roofline.model.roofline import Table as Frame
from ncu_roofline.model.selection import Grouping, group
from ncu_roofline.model.work import total_flops, uncounted_tensor
from ncu_roofline.rendering.document import Column, Document, Table, columns_of
from ncu_roofline.rendering.frames import records

THRESHOLD = 3.5
OFF_MEDIAN = 0.05
MINIMUM_RANKS = 3
_NORMAL_QUARTILE = 0.6745
_NORMAL_MEAN = 1.2533
ALL_RANKS = "all ranks"
_MOST, _NAMED = 20, 3  # lines of a list, kernels named in a line
_LEGEND = (
    "min, median, max: run time of a rank; max/mean: load imbalance; spread: (max - min) / median; of roof: of the attainable, "
    "all ranks together, at the level that limits most."
)
# What people see of a kernel and of the point that stands for it, in this order.
_SHOWN = (
    "kernel", "device", "ranks", "launches_min", "time_share", "seconds_min", "seconds_median", "seconds_max", "imbalance",
    "imbalance_median", "spread", "intensity", "level", "fraction", "fraction_min", "outliers",
)  # fmt: skip
_POINT = ("kernel", "device", "precision", "level")
_AT_ONCE = 2_000  # rows whose points are made at once: they take memory
GROUPINGS = ("kernel", "application")
# rank0, rank_12, task.3, procid=4, pe7, r12: what mpirun, srun and ncu users call their files and folders.
_WORD = r"(?i)(?:^|[^a-zA-Z])(?:mpi[-_.]?)?(?:rank|task|procid|proc|pe|r)[-_.=]?(\d+)"
_PCI = tuple(f"device__attribute_pci_{part}_id" for part in ("domain", "bus", "device"))
Row = dict[str, Any]


_OF = columns_of(read(DATA / "columns" / "ranks.toml", dict[str, Any]))
RANK_KERNELS, RANK_POINTS, RANK_RANKS = ((*_OF["where"], *_OF[name]) for name in ("kernels", "points", "ranks"))
TABLES = {"kernels": RANK_KERNELS, "ranks": RANK_RANKS, "points": RANK_POINTS}


class RankSource(NamedTuple):
    """One process on one GPU in one report: ``gpu`` is its PCI address, ``pid`` 0 and texts '' where the report is silent."""

    report: str
    host: str = ""
    pid: int = 0
    gpu: str = ""


@dataclass(frozen=True)
class RankPart:
    """What one report gives: measurements, for each element the position of its source, and the sources."""

    measurements: Measurements
    index: IntArray
    sources: tuple[RankSource, ...]


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
        RANK_KERNELS, "kernel", "ranks", "launches", "seconds", "time_share", "imbalance", "slowest"
    )
    names: tuple[str, ...]
    origin: str
    roofline: Roofline
    kernel_columns: Frame
    point_columns: Frame
    rank_columns: Frame

    kernels = frame_of("kernel_columns", "One row per kernel and GPU model.")
    points = frame_of("point_columns", "One row per kernel, precision and level.")
    ranks = frame_of("rank_columns", "One row per kernel and rank that ran it.")


def rank_part(report: Report | MetricTable | PointTable, label: str = "", select: Selection | None = None) -> RankPart:
    """Read a report; ``label`` is what it is called.  Launches are filtered here, but for ``top``, which is of all ranks.

    Launches of one kernel that have the same metrics become one element: every sum over them stays the same, and a mean (a
    clock, a roof) becomes the mean weighted with their times, as it is weighted later on.  Raises RooflineError for damage.
    """
    label = label or str(report.path)
    m = measurements_of(report, label=label)
    found = [RankSource(label)] * len(m)
    if not isinstance(report, PointTable):
        session = report.session
        processes = [one.process for one in report.kernels] if isinstance(report, Report) else [session.process] * len(m)
        addresses = []  # domain, bus and device as lspci writes them; no report says the UUID
        for parts in zip(*report.columns(_PCI).values(), strict=True):
            known = all(isinstance(part, int) for part in parts)
            addresses.append("{:04x}:{:02x}:{:02x}.0".format(*parts) if known else "")
        facts = zip(processes, addresses, strict=True)
        found = [RankSource(label, one.host or session.host, one.id, gpu) for one, gpu in facts]
    kept = replace(select or Selection(), top=0).positions(m)
    places = {source: place for place, source in enumerate(dict.fromkeys(found))}  # also without any launch that passes
    owner = np.array([places[found[i]] for i in kept], dtype=np.int64)
    part = RankPart(m.take(kept), owner, tuple(places))
    m = part.measurements
    if m.rates.any() or len(m) < 2:  # rates are no sums
        return part
    # Elements with equal rows of these numbers may be summed.
    quantities = {item.name: value for item in fields(m) if isinstance(value := getattr(m, item.name), Mapping)}
    kernels: dict[tuple[Any, ...], int] = {}
    keys = zip(m.name, m.function, m.kind, m.device, m.capability, m.clock_max.astype(str), strict=True)
    columns = [[kernels.setdefault(key, len(kernels)) for key in keys], owner]
    columns += [np.isnan(values) for values in (m.seconds, m.clock, m.tensor_active)]
    for quantity in (one for several in quantities.values() for one in several.values()):
        columns += [quantity.choice, np.isnan(quantity.values)]
    if m.summands:  # which pipes are busy decides on the roof of their sum
        stack = np.nan_to_num(np.vstack([quantity.values for quantity in m.summands.values()]))
        columns += [*(stack > 0), *(stack >= MIXED_SHARE * stack.sum(axis=0))]
    patterns = np.column_stack([np.asarray(column, dtype=np.int64) for column in columns])
    rows: dict[bytes, int] = {}  # in the order of the first launch
    index = np.array([rows.setdefault(pattern.tobytes(), len(rows)) for pattern in patterns], dtype=np.int64)
    if len(rows) == len(m):
        return part
    same, weights = Grouping("part", index, np.unique(index, return_index=True)[1], ()), np.where(m.seconds > 0, m.seconds, 1.0)
    plain = [item.name for item in fields(m) if item.name not in quantities]
    changed: dict[str, Any] = {name: getattr(m, name)[same.first] for name in plain}
    changed |= {name: same.common(getattr(m, name)) for name in ("grid", "block", "nvtx")}
    changed |= {name: same.mean(getattr(m, name), weights) for name in ("clock", "tensor_active")}
    changed |= {"seconds": same.total(m.seconds), "invocations": same.total(m.invocations.astype(np.float64)).astype(np.int64)}
    for name, several in quantities.items():
        values = {key: same.mean(one.values, weights) for key, one in several.items()}
        if name not in ("compute", "bandwidth"):  # roofs are averaged, all others are counts
            values = {key: same.total(one.values) for key, one in several.items()}
        changed[name] = {key: Quantity(values[key], one.choice[same.first], one.origins) for key, one in several.items()}
    return RankPart(Measurements(**changed), owner[same.first], part.sources)


def rank_names(sources: Sequence[RankSource], pattern: str = "") -> tuple[tuple[str, ...], str]:
    """The rank of each source, and in words where that was taken from.

    ``pattern`` is a regular expression searched in the report's path; its first group (without one, the whole match) is the
    rank.  Without it, in this order: the processes, where a report holds several; a number after a word such as rank in all
    paths; the one number in which all paths differ; host and process id; the file name.
    Raises RooflineError for a report whose path does not match ``pattern``.
    """
    reports = list(dict.fromkeys(source.report for source in sources))

    def by_report(ranks: Mapping[str, str], origin: str) -> tuple[tuple[str, ...], str]:  # 007 and 7 are one rank
        plain = {report: str(int(rank)) if rank.isdecimal() else rank for report, rank in ranks.items()}
        return tuple(plain[source.report] for source in sources), origin

    if pattern:
        wanted, told = expression(pattern), {}
        for report in reports:
            match = wanted.search(report)
            told[report] = match[1 if wanted.groups else 0] if match else ""
            if not told[report]:
                next_step = "Give a regular expression whose first group is the rank in every path, such as 'node(\\d+)'."
                raise RooflineError("Cannot find the rank of", report, f"--rank {pattern} finds none in its path", next_step)
        return by_report(told, f"--rank {pattern}")
    several = len({source.host for source in sources}) > 1
    processes = tuple(f"{source.host}:{source.pid}" if several else str(source.pid) for source in sources)
    counts = Counter(report for report, _, _ in {source[:3] for source in sources})
    if max(counts.values(), default=0) > 1:
        return processes, "processes in the reports"
    own = {report: re.sub(rf"^.*/{TEMPORARY}\w{{8}}/", "/", report) for report in reports}  # no path of ours: standard input
    words = {report: numbers[-1] for report in reports if (numbers := re.findall(_WORD, own[report]))}
    if len(words) == len(reports) and (len(reports) == 1 or len(set(map(int, words.values()))) > 1):
        return by_report(words, "ranks in the paths")
    # The one number that tells all paths apart; of several the one that counts from 0 or 1.
    split = [re.split(r"(\d+)", report) for report in reports]
    if len(reports) > 1 and len({tuple(parts[::2]) for parts in split}) == 1:
        columns = [[int(number) for number in column] for column in zip(*(parts[1::2] for parts in split), strict=True)]
        distinct = [column for column in columns if len(set(column)) == len(reports)]
        if len(distinct) > 1:
            distinct = [one for one in distinct if sorted(one) in (list(range(len(one))), list(range(1, len(one) + 1)))]
        if len(distinct) == 1:
            by_number = dict(zip(reports, map(str, distinct[0]), strict=True))
            ids = by_number == {source.report: str(source.pid) for source in sources}
            return by_report(by_number, f"{'process ids' if ids else 'numbers'} in the paths")
    apart = len({*zip(processes, (source.report for source in sources), strict=True)}) == len(set(processes))
    if all(source.pid for source in sources) and apart and len(reports) > 1:
        return processes, "host and process id"
    names = {report: os.path.basename(report) for report in reports}
    alone = len(set(names.values())) == len(reports)
    return tuple(names[source.report] if alone else source.report for source in sources), "file names"


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
    called, origin = rank_names(sources, rank)
    m = Measurements.joined([part.measurements for part in parts])
    if not len(m):
        raise RooflineError("Cannot merge", f"{len(parts)} reports", "no launch passes the filters", "Loosen the filters.")
    offsets = np.cumsum([0, *(len(part.sources) for part in parts)])
    index = np.concatenate([part.index + offset for part, offset in zip(parts, offsets, strict=False)])
    m = replace(m, report=np.array([*called], dtype=object)[index])
    m = Selection(top=chosen.top, top_by="kernel").launches(m)
    unfiltered = Selection(precisions=chosen.precisions, levels=chosen.levels)
    files = ceilings_of(ceilings)
    together = replace(m, report=np.full(len(m), ALL_RANKS, dtype=object))
    whole = roofline(together, files, clock=clock, by=by, select=unfiltered)
    names = tuple(sorted(dict.fromkeys(called), key=natural_order))
    places = {name: place for place, name in enumerate(names)}
    rank_of = np.array([places[name] for name in m.report], dtype=np.int64)
    rows = group(together, by)
    owner = "kernel-report" if by == "kernel" else by

    about: dict[str, Row] = {}  # what is known of each rank, whatever it ran
    paths = ReportNames.apart(source.report for source in sources)
    for name in names:
        mine = [source for source, one in zip(sources, called, strict=True) if one == name]
        facts = {"host": [one.host for one in mine], "gpu": [one.gpu for one in mine]}
        facts["pid"] = [str(one.pid or "") for one in mine]
        about[name] = {column: " ".join(dict.fromkeys(filter(None, texts))) for column, texts in facts.items()}
        about[name]["reports"] = "; ".join(dict.fromkeys(paths(source.report) for source in mine))
    with np.errstate(all="ignore"):
        cells = _cells(m, rows, rank_of, len(names))
        signs = np.array([outliers(row) for row in cells["seconds"]])
        kernels = _kernels_table(whole.kernel_columns, names, cells, signs, by)
        points_by_rank = partial(points_of, ceilings=files, clock=clock, by=owner, select=unfiltered)
        points = _points_table(whole.point_columns, m, rows, rank_of, owner, points_by_rank)
        return Ranks(names, origin, whole, kernels, points, _ranks_table(whole.kernel_columns, names, about, cells, signs))


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
    ends = {f"{name}_min": np.fmin.reduce(known, axis=1), f"{name}_max": np.fmax.reduce(known, axis=1)}
    return {**ends, f"{name}_median": medians}


def _kernels_table(
    kernels: Columns, names: Sequence[str], cells: Mapping[str, FloatArray], signs: FloatArray, by: str
) -> Frame:
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
    return of_columns({name: np.asarray(values)[order] for name, values in table.items()}, RANK_KERNELS)


def _points_table(
    whole: Columns, m: Measurements, rows: Grouping, rank_of: IntArray, owner: str, points_of: Callable[[Measurements], Columns]
) -> Frame:
    """The points of all ranks together, with the spread of those of each rank, which are made of some ranks at a time."""
    ranks = int(rank_of.max()) + 1
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
    return of_columns(table, RANK_POINTS)


def _ranks_table(
    kernels: Columns, names: Sequence[str], about: Mapping[str, Row], cells: Mapping[str, FloatArray], signs: FloatArray
) -> Frame:
    """Kernel by kernel, ranks in their order."""
    to_median = {name: np.array([ratio_to_median(row) for row in values]) for name, values in cells.items()}
    score = np.array([modified_z(row) for row in cells["seconds"]])
    loads = [name for name in cells if name not in ("seconds", "clock")]
    levels = [level for level in reversed(load_spec().chain) if f"{level} bytes" in cells]
    nothing, rows = np.full(signs.shape, np.nan), []
    for k, r in np.argwhere(np.isfinite(cells["launches"])).tolist():
        # The outermost level whose bytes are known of some rank.
        level = next((one for one in levels if np.isfinite(cells[f"{one} bytes"][k]).any()), "")
        ratio = {name: values[k, r] for name, values in to_median.items()}
        row = {"kernel": kernels["kernel"][k], "device": kernels["device"][k], "rank": names[r], **about[names[r]]}
        row |= {"launches": cells["launches"][k, r], "score": score[k, r], "traffic_level": level, "outlier": "", "cause": ""}
        amounts = {"seconds": "seconds", "work": "FLOPs", "traffic": f"{level} bytes", "clock": "clock"}
        for column, name in amounts.items():
            row["clock_profiled" if column == "clock" else column] = cells.get(name, nothing)[k, r]
            row[f"{column}_ratio"] = ratio.get(name, np.nan)
        if sign := signs[k, r]:
            row["outlier"] = "slow" if sign > 0 else "fast"
            row["cause"] = cause(sign, ratio["seconds"], {name: ratio[name] for name in loads}, ratio["clock"])
        rows.append(row)
    return of_rows(rows, RANK_RANKS)


def document(ranks: Ranks) -> Document:
    """The kernels with the point that stands for each, the ranks that stand out and why, and who did not run what."""

    def weight(point: Row) -> tuple[float, ...]:
        return tuple(number if number == number else -1.0 for number in (point["work"], point["fraction"]))

    # The point of the busiest precision, at the level that limits most.
    best: dict[tuple[str, str], Row] = {}
    for point in sorted(records(ranks.point_columns), key=weight, reverse=True):
        best.setdefault((point["kernel"], point["device"]), point)
    nothing, kernels = dict.fromkeys(column.name for column in RANK_POINTS), records(ranks.kernel_columns)
    rows = [
        {**best.get((row["kernel"], row["device"]), nothing), **row, "outliers": row["outliers"] or None} for row in kernels
    ]
    table = Table("kernels", (*RANK_POINTS, *RANK_KERNELS), rows, _SHOWN, legend=_LEGEND)
    return Document("Ranks", heading(ranks), blocks=[table, tuple(_outlier_lines(ranks)), tuple(_missing_lines(kernels))])


def heading(ranks: Ranks) -> str:
    """How many ranks ran what, on which GPUs, for how long, and how the ranks were told."""
    kernels = ranks.kernel_columns
    devices = ", ".join(dict.fromkeys(clean(name) for name in kernels["device"].tolist()))
    seconds = math.fsum(one for one in kernels["seconds"].tolist() if math.isfinite(one))
    facts = [plural(len(ranks.names), "rank"), plural(len(kernels["kernel"]), "kernel")]
    facts += [plural(int(kernels["launches"].sum()), "launch"), devices, f"{time_text(seconds)} of GPU time over all ranks"]
    return f"{', '.join(facts)}. Ranks identified by {clean(ranks.origin)}."


def _outlier_lines(ranks: Ranks) -> Iterator[str]:
    """Ranks that stand out, those that do in most kernels first; one line per reason."""
    if len(ranks.names) < MINIMUM_RANKS:
        yield f"Outliers are looked for from {MINIMUM_RANKS} ranks on."
        return
    table, place = ranks.rank_columns, {name: number for number, name in enumerate(ranks.names)}
    groups: dict[tuple[int, str, str], list[Row]] = {}
    for row in records({name: values[table["outlier"] != ""] for name, values in table.items()}):
        groups.setdefault((place[row["rank"]], row["outlier"], row["cause"].partition(":")[0]), []).append(row)
    if not groups:
        yield "No rank's time is an outlier (modified z-score above 3.5 and more than 5 % off the median)."
        return
    yield "Outliers in time (modified z-score above 3.5 and more than 5 % off the median):"
    ran = Counter(table["rank"].tolist())
    for rows in sorted((groups[key] for key in sorted(groups)), key=lambda rows: -len(rows))[:_MOST]:
        first, ratios, kernels = rows[0], [row["seconds_ratio"] for row in rows], [clean(row["kernel"]) for row in rows]
        facts = ", ".join(filter(None, (clean(first["host"]), f"GPU {clean(first['gpu'])}" if first["gpu"] else "")))
        what = ", ".join(kernels[:_NAMED])
        if len(kernels) > _NAMED:
            what = f"{len(kernels)} of its {ran[first['rank']]} kernels ({what}, ...)"
        where = "" if kernels[0].startswith(ALL_RANKS) else f" in {what}"  # by application there is nothing to name
        times = f"{min(ratios):.2f}" if len(ratios) == 1 else f"{min(ratios):.2f} to {max(ratios):.2f}"
        rank = f"- rank {clean(first['rank'])}{facts and f' ({facts})'} is {first['outlier']}"
        yield f"{rank}{where}: {times} x the median time; {first['cause']}"
    if len(groups) > _MOST:
        yield f"- and {len(groups) - _MOST} more: see --table ranks."


def _missing_lines(kernels: Sequence[Row]) -> Iterator[str]:
    """Which kernels some ranks did not run; consecutive numbers of these as ranges: 4, 6-9."""
    absent = [row for row in kernels if row["missing"]]
    for row in absent[:_MOST]:
        parts: list[list[str]] = []
        for name in row["missing_ranks"].split("; "):
            last = parts[-1][-1] if parts else ""
            if name.isdecimal() and last.isdecimal() and int(name) == int(last) + 1:
                parts[-1].append(name)
            else:
                parts.append([name])
        texts = [f"{part[0]}-{part[-1]}" if len(part) > 2 else ", ".join(part) for part in parts]
        names = clean(", ".join(texts[:_MOST])) + (", ..." if len(texts) > _MOST else "")
        yield f"- {clean(row['kernel'])} did not run on {plural(row['missing'], 'rank')}: {names}"
    if len(absent) > _MOST:
        yield f"- and {len(absent) - _MOST} more kernels: see --table kernels."
