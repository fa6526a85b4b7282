"""``nvprof --csv``: metrics, times or both, for GPUs up to Volta.

One file gives what it has: ``--metrics`` counts without times, ``--print-gpu-trace`` and ``--print-gpu-summary`` times without
counts.  `joined` puts files of one application together.  Metrics by the method of Yang, Kurth, Williams (2019), section II.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import chain
from os import PathLike
from typing import NamedTuple

from ncu_roofline.base.files import JOINED
from ncu_roofline.base.texts import listed
from ncu_roofline.chips import load_spec
from ncu_roofline.chips.fields import capability
from ncu_roofline.chips.spec import find_gpu
from ncu_roofline.formats.inputs.tables import ImportedPoint, PointTable
from ncu_roofline.formats.inputs.text import SECONDS, Table, row_of, text_of
from ncu_roofline.formats.inputs.words import load_words, traffic_of

# Tables of kernels, and which column of a table says how the times in it are scaled.
_OF_KERNELS = ("metrics", "summary", "trace", "launches")
_TIMED = {"summary": "Time", "trace": "Duration", "API trace": "Duration"}
_OWN_LINE = re.compile(r"={2,}\d*={2,}")
_ROW = re.compile(r'"|[\d.]+,|,')
_ON_GPU = "GPU activities"
_API_CALL = re.compile(r"cu(?:da)?[A-Z]\w*")  # summaries before CUDA 9 don't say which of their rows are kernels
_TENSOR_LEVEL = "tensor_precision_fu_utilization"
_TENSOR_LEVELS = 10  # nvprof gives utilisation as a whole number from 0 (idle) to 10 (full)
_LEVEL = re.compile(r"^[A-Za-z ]+\((\d+)\)$")  # "Mid (5)"
# FLOP of a precision may be in one sum, or in its parts.  Those of half precision are left out: nvprof counts a packed fused
# instruction as 4 and a packed add as 2, so the parts are no counts of instructions.
_PARTS = {metric: [f"{metric}_{kind}" for kind in ("add", "mul", "fma")] for metric in ("flop_count_dp", "flop_count_sp")}
_NOT_FLOP = "flop_count_sp_special"


@dataclass(frozen=True)
class Kernel(ImportedPoint):
    """A kernel, or one launch of it, with the sums of its metrics over ``launches``; its time is NaN where it is not known.

    The level of the tensor cores is among the sums, as if it added up; its mean over the launches is what counts.
    """

    totals: dict[str, float] = field(default_factory=dict)


class Part(NamedTuple):
    """What one table of a log brings: kernels with counts, or ``timed`` ones (and counts, in a trace with metrics)."""

    path: str
    timed: bool
    kernels: list[Kernel]


# One table of the log: layout, columns, units by column, rows as (line number, cells by column).
LogTable = tuple[str, list[str], dict[str, str], list[tuple[int, dict[str, str]]]]


def recognises(head: str) -> bool:
    """Whether some line is the heading of one of nvprof's tables."""
    return any(_layout(cells) for line in head.split("\n") if '"' in line and (cells := row_of(line)))


def _layout(cells: list[str]) -> str:
    if "Name" not in cells and "Kernel" not in cells:
        return ""
    return next((layout for layout, columns in load_words().nvprof_layouts.items() if set(columns).issubset(cells)), "")


@cache
def _used() -> frozenset[str]:
    """The metrics that are read."""
    words, parts = load_words(), chain.from_iterable(_PARTS.values())
    counted = chain.from_iterable((*way.needed, *way.added) for way in words.nvprof_traffic)
    return frozenset((*counted, *words.nvprof_work.values(), *parts, _TENSOR_LEVEL))


def read(path: str | PathLike[str]) -> PointTable:
    """The kernels of one file.  Raises RooflineError for damaged tables, and for logs without any kernel."""
    log = Table(path, "Give nvprof's complete output (--log-file keeps the application's apart).")
    tables: list[LogTable] = []
    inside = False
    for number, padded in enumerate(text_of(path).split("\n"), 1):
        line = padded.strip()
        if not line or _OWN_LINE.match(line):
            inside = inside and not line
            continue
        cells = row_of(line)
        if layout := _layout(cells):
            tables.append((layout, cells, {}, []))
            inside = True
        elif inside and len(cells) == len(tables[-1][1]):
            layout, columns, units, rows = tables[-1]
            row = dict(zip(columns, cells, strict=True))
            # A row of units names no kernel; tables of metrics per launch have one where a metric has a unit.
            is_units = row[_TIMED[layout]] in SECONDS if layout in _TIMED else layout == "launches" and not row["Kernel"]
            if is_units and not rows and not units:
                units.update({name: unit for name, unit in row.items() if unit})
            else:
                rows.append((number, row))
        elif inside and _ROW.match(line):
            raise log.damaged(f"line {number} has {len(cells)} of the {len(tables[-1][1])} columns of its table")
    left_out: dict[str, list[str]] = {}
    parts = []
    for table in tables:
        timed = _TIMED.get(table[0], "")
        if table[3] and timed and timed not in table[2]:
            raise log.damaged(f'the row of units is missing below its heading, so "{timed}" can\'t be understood')
        if kernels := list(_kernels(log, table, left_out)):
            parts.append(Part(log.path, bool(timed), kernels))
    if not parts:
        next_step = "Profile again with `nvprof --csv --metrics ...` or `--print-gpu-summary`, and check nvprof's filters."
        raise log.damaged("its tables hold no kernel", next_step)
    return _table(log, parts, [f"{what}: {listed(names)}" for what, names in left_out.items()])


def _kernels(log: Table, table: LogTable, left_out: dict[str, list[str]]) -> Iterable[Kernel]:
    """The kernels or launches of a table, none for API calls and events; adds to ``left_out`` what is not used, by reason."""
    layout, columns, units, rows = table
    used, metrics = _used(), {column: load_words().nvprof_descriptions.get(column, column) for column in columns}
    if layout not in _OF_KERNELS or (layout == "launches" and used.isdisjoint(metrics.values())):
        return []
    counted = [(column, metric) for column, metric in metrics.items() if metric in used or _may_count(metric)]
    found: dict[object, Kernel] = {}
    for line, row in rows:
        called, timed = row.get("Name") or row.get("Kernel", ""), _TIMED.get(layout)
        if layout == "summary" and "Type" not in row and _API_CALL.fullmatch(called):
            why = "rows called like functions of CUDA, which are no kernels, are left out"
            left_out.setdefault(why, []).append(called)
            continue
        if not called or called.startswith("[") or row.get("Type", _ON_GPU) != _ON_GPU:  # copies and fills are in brackets
            continue
        calls = row.get("Calls", row.get("Invocations"))
        launches = log.number("the number of launches", line, calls) if calls is not None else 1.0
        time = log.number(timed, line, row[timed]) if timed else None
        if not launches or launches != int(launches) or (layout == "summary" and time is None):
            raise log.damaged(f"line {line} has no number of launches or no time")
        device = re.sub(r"\(\d+\)$", "", row.get("Device", "")).rstrip()  # "Tesla V100-SXM2-16GB (0)"
        sizes = [[row.get(f"{what} {axis}", "") for axis in "XYZ"] for what in ("Grid", "Block")]
        grid, block = ("x".join(size) if all(size) else "" for size in sizes)
        seconds = math.nan if timed is None or time is None else time * SECONDS[units[timed]]
        name = re.sub(r" \[\d+\]$", "", called) if layout == "trace" else called  # older releases number the launches
        kernel = Kernel(name, seconds, device=device, launches=int(launches), grid=grid, block=block)
        long = layout == "metrics"  # a row for each metric of a kernel, its mean over the launches
        kernel = found.setdefault((device, name) if long else line, kernel)
        for metric, cell in [(row["Metric Name"], row["Avg"])] if long else [(metric, row[one]) for one, metric in counted]:
            why = ""
            if metric in used:
                value = log.number(metric, line, _LEVEL.sub(r"\1", cell))
                if metric == _TENSOR_LEVEL and value is not None and value not in range(_TENSOR_LEVELS + 1):
                    raise log.damaged(f"{metric} in line {line}: {cell!r} is no level from 0 to {_TENSOR_LEVELS}")
                if value is not None:
                    kernel.totals[metric] = value * kernel.launches
                else:
                    why = "metrics without a value for some kernel (nvprof's counters overflowed, say)"
            elif _may_count(metric):
                why = "metrics that are not used"
            if why:
                left_out.setdefault(why, []).append(metric)
    return found.values()


def _may_count(metric: str) -> bool:
    """Whether a user may miss it, for it counts operations or bytes."""
    return metric != _NOT_FLOP and (metric.startswith("flop_count") or metric.endswith(("_transactions", "_bytes")))


def joined(tables: Sequence[PointTable]) -> list[PointTable]:
    """Tables of several files, those that complete each other as one: counts of one run, times of another.

    Kernels are the same where name and device are (a summary names no device).  A table that fits to no other one comes back as
    it is; in a sweep, where all files have the same kernels, the first metrics go with the first times, and so on.
    """
    given = {table.path: table for table in tables}
    parts: dict[tuple[str, ...], list[Part]] = {}
    for run in _runs_of(part for table in tables for part in table.parts):
        parts.setdefault(tuple(dict.fromkeys(part.path for part in run)), []).extend(run)
    result = []
    for paths, several in parts.items():
        reading = [sentence for path in paths for sentence in given[path].reading]
        whole = len(paths) == 1 and len(several) == len(given[paths[0]].parts)
        result.append(given[paths[0]] if whole else _table(Table(JOINED.join(paths)), several, reading))
    return result


def _runs_of(parts: Iterable[Part]) -> list[list[Part]]:
    """The parts that belong together, in the order of the first ones: each brings what the others lack for the same kernels."""
    runs: list[tuple[list[Part], set[str], set[tuple[str, ...]]]] = []
    for part in parts:
        names = {kernel.name for kernel in part.kernels}
        brings: set[tuple[str, ...]] = {(one.device, one.name, metric) for one in part.kernels for metric in one.totals}
        brings |= {("times",)} if part.timed else set()
        found = next((run for run in runs if run[1] & names and not run[2] & brings), None)
        if found is None:
            runs.append(found := ([], set(), set()))
        found[0].append(part)
        found[1].update(names)
        found[2].update(brings)
    return [run for run, _, _ in runs]


def _kernels_of(run: Sequence[Part], warnings: list[str]) -> list[Kernel]:
    """The kernels of parts that belong together, with what each says of them; what does not fit is told in ``warnings``."""
    found: dict[str, dict[str, list[Kernel]]] = {}  # by name and device, which a summary of times does not have
    for part in sorted(run, key=lambda one: one.timed):  # counts first: they name the device
        launches: dict[tuple[str, str], list[Kernel]] = {}
        for kernel in part.kernels:
            launches.setdefault((kernel.device, kernel.name), []).append(kernel)
        for (device, name), more in launches.items():
            known = found.setdefault(name, {})
            same = [one for one in known if one == device or not one or not device]
            for one in same:
                known[one] = _completed(known[one], more, warnings)
            if not same:
                known[device] = more
    devices = {device for known in found.values() for device in known if device}
    only = devices.pop() if len(devices) == 1 else ""
    kernels = (kernel for known in found.values() for several in known.values() for kernel in several)
    return [kernel if kernel.device else replace(kernel, device=only) for kernel in kernels]


def _completed(kernels: list[Kernel], more: list[Kernel], warnings: list[str]) -> list[Kernel]:
    """Launches of a kernel with what others say of the same ones; of other numbers of launches counts their mean."""
    if [one.launches for one in kernels] != [one.launches for one in more]:
        launches, counted = sum(one.launches for one in more), sum(one.launches for one in kernels)
        seconds, grids, blocks = sum(one.seconds for one in more), {one.grid for one in more}, {one.block for one in more}
        shared = [name for name in more[0].totals if all(name in one.totals for one in more)]
        totals = {name: sum(one.totals[name] for one in more) for name in shared}  # what one launch lacks has no sum
        if launches != counted or (totals and len(kernels) > 1):
            how = "counted again" if math.isnan(seconds) else "timed"
            warnings.append(
                f"kernel {more[0].name} was counted over {counted} launches and {how} over {launches}: "
                "of the latter it gets the mean times the launches counted first"
            )
        grid, block = (sizes.pop() if len(sizes) == 1 else "" for sizes in (grids, blocks))
        shares = [one.launches / launches for one in kernels]
        scaled = [({name: value * share for name, value in totals.items()}, seconds * share) for share in shares]
        more = [replace(more[0], totals=some, seconds=time, grid=grid, block=block) for some, time in scaled]
    return [
        replace(
            one,
            totals={**other.totals, **one.totals},
            seconds=other.seconds if math.isnan(one.seconds) else one.seconds,
            grid=one.grid or other.grid,
            block=one.block or other.block,
        )
        for one, other in zip(kernels, more, strict=True)
    ]


def _table(of: Table, parts: Sequence[Part], reading: Sequence[str]) -> PointTable:
    sentences = list(reading)
    kernels = [kernel for run in _runs_of(parts) for kernel in _kernels_of(run, sentences)]
    counted = [kernel for kernel in kernels if kernel.totals]
    timeless = [kernel.name for kernel in counted if math.isnan(kernel.seconds)]
    if not counted:
        sentences.append("it holds times and no counts; give the output of a run with `nvprof --csv --metrics ...` as well")
    elif timeless:
        what = "it holds counts and no times" if len(timeless) == len(kernels) else f"no times for {listed(timeless, 3)}"
        sentences.append(f"{what}; give the output of a run with `nvprof --csv --print-gpu-summary` as well")
    for kernel in counted:
        known = _traffic(kernel)[0]
        for way in load_words().nvprof_traffic:
            if way.level not in known and any(name in kernel.totals for name in (*way.needed, *way.added)):
                missing = " and ".join(name for name in way.needed if name not in kernel.totals)
                why = f"{missing} not collected" if missing else "the size of its transactions on this GPU is not known"
                sentences.append(f"{way.level} traffic left out: {why}")
    if unknown := [one.device for one in counted if _TENSOR_LEVEL in one.totals and tensor_peak(one.device) is None]:
        sentences.append(f"{_TENSOR_LEVEL} left out: the tensor peak of {listed(unknown, 3)} at its clock is not known")
    points, warnings = tuple(map(_point, kernels)), of.warnings(sentences)
    return PointTable(of.path, "nvprof", points, warnings=warnings, parts=tuple(parts), reading=tuple(reading))


def _point(kernel: Kernel) -> ImportedPoint:
    """A kernel or launch in SI units.

    Its share of fused instructions is alpha of Yang, Kurth, Williams (2019), equation 6: of add, multiply and fused ones.
    """
    if not kernel.totals:
        return replace(kernel, compute_capability=capability_of(kernel.device))
    words, totals, work, shares, used, notes = load_words(), kernel.totals, {}, {}, [], []
    for precision, metric in words.nvprof_work.items():
        parts = _PARTS.get(metric, [])
        complete = bool(parts) and all(name in totals for name in parts)
        add, mul, fma = (totals[name] for name in parts) if complete else (0.0, 0.0, 0.0)
        if metric in totals or complete:
            work[precision] = totals.get(metric, add + mul + 2 * fma)
            used += [metric] if metric in totals else parts
        if add + mul + fma > 0:
            shares[precision] = fma / (add + mul + fma)
    traffic, moved = _traffic(kernel)
    used += moved
    chip, peak = capability_of(kernel.device), tensor_peak(kernel.device)
    if lacking := [name for way in words.nvprof_traffic if way.level in traffic for name in way.added if name not in totals]:
        notes.append(f"L1 traffic without {', '.join(lacking)}, which were not collected")
    if chip == (0, 0) and traffic:
        notes.append("transactions counted as on Volta: the GPU's name does not give its generation")
    if peak is not None and _TENSOR_LEVEL in totals and not math.isnan(kernel.seconds):
        # The estimate of Wang et al. (2020), section III.
        tensor = load_spec().standard_tensor.id
        work[tensor] = totals[_TENSOR_LEVEL] / kernel.launches / _TENSOR_LEVELS * peak * kernel.seconds
        used.append(_TENSOR_LEVEL)
        notes.append(f"{tensor} work is utilisation / 10 x {peak:.4g} FLOP/s x time, to half a level (5 % of peak)")
    return replace(
        kernel,
        work=work,
        traffic=traffic,
        fma_share=shares,
        compute_capability=chip,
        columns=", ".join(dict.fromkeys(used)),
        note="; ".join(notes),
    )


def _traffic(kernel: Kernel) -> tuple[dict[str, float], list[str]]:
    """Bytes by level, and the metrics used; a level is there where its metrics are complete and its transactions known."""
    chip = capability_of(kernel.device)
    ways = (way for way in load_words().nvprof_traffic if chip == (0, 0) or chip >= way.since)
    return traffic_of(kernel.totals, ways)


@cache
def capability_of(device: str) -> tuple[int, int]:
    """The compute capability that a GPU's name tells, (0, 0) where it tells none."""
    products = ((product, one.compute_capability) for one in load_spec().architectures for product in one.products)
    known = ((rf"(?i)\b{re.escape(product)}\b", chip) for product, chip in products)
    older = ((pattern, capability(text)) for pattern, text in load_words().nvprof_gpus.items())
    return next((found for pattern, found in (*older, *known) if re.search(pattern, device)), (0, 0))


@cache
def tensor_peak(device: str) -> float | None:
    """FLOP/s of the tensor cores at boost clock, None for GPUs whose number of SMs and clock are not known here."""
    board, chip = find_gpu(device), load_spec().architecture(capability_of(device))
    per_cycle = chip.peak(load_spec().standard_tensor.id, device) if board and chip else None
    return board.sm_count * board.tensor_clock * per_cycle if board and per_cycle else None
