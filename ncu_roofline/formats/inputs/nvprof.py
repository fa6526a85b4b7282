"""``nvprof --csv``: metrics, times or both, for GPUs up to Volta.

One file gives what it has: ``--metrics`` counts without times, ``--print-gpu-trace`` and ``--print-gpu-summary`` times without
counts.  `joined` puts files of one application together.  Tables of a log, and which metrics count what: `nvprof_tables`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike, fspath

from ncu_roofline.base.files import JOINED
from ncu_roofline.base.texts import listed
from ncu_roofline.chips import load_spec
from ncu_roofline.formats.inputs.nvprof_tables import (
    TENSOR_LEVEL,
    TENSOR_LEVELS,
    USED,
    NvprofLogTable,
    capability_of,
    could_count,
    device_name,
    holds_table,
    tables_of,
    tensor_peak,
    traffic_of,
    without_traffic,
    work_of,
)
from ncu_roofline.formats.inputs.tables import ImportedPoint, PointTable
from ncu_roofline.formats.inputs.text import SECONDS, cell_number, damaged, split_number, text_of

Key = tuple[str, str]
# In tables of metrics per launch some releases head the columns with the metric's description.
_DESCRIPTIONS = {
    "Floating Point Operations(Double Precision)": "flop_count_dp",
    "Floating Point Operations(Single Precision)": "flop_count_sp",
    "Floating Point Operations(Half Precision)": "flop_count_hp",
    "Global Load Transactions": "gld_transactions",
    "Global Store Transactions": "gst_transactions",
    "Local Load Transactions": "local_load_transactions",
    "Local Store Transactions": "local_store_transactions",
    "Atomic Transactions": "atomic_transactions",
    "Shared Load Transactions": "shared_load_transactions",
    "Shared Store Transactions": "shared_store_transactions",
    "L2 Read Transactions": "l2_read_transactions",
    "L2 Write Transactions": "l2_write_transactions",
    "Device Memory Read Transactions": "dram_read_transactions",
    "Device Memory Write Transactions": "dram_write_transactions",
    "System Memory Read Transactions": "sysmem_read_transactions",
    "System Memory Write Transactions": "sysmem_write_transactions",
    "Tensor-Precision Function Unit Utilization": TENSOR_LEVEL,
}
_NO_METRIC = {
    *("Start", "Duration", "Size", "Throughput", "SrcMemType", "DstMemType", "Device", "Context", "Stream", "Name", "Kernel"),
    *("Src Dev", "Src Ctx", "Dst Dev", "Dst Ctx", "Correlation_ID"),
} | {"Static SMem", "Dynamic SMem", "Registers Per Thread", *(f"{what} {axis}" for what in ("Grid", "Block") for axis in "XYZ")}
_LEVEL = re.compile(r"(?:[A-Za-z ]+\()?(\d+)\)?")
_ON_GPU = "GPU activities"
_API_CALL = re.compile(r"cu(?:da)?[A-Z]\w*")  # summaries before CUDA 9 don't say which of their rows are kernels
FORMAT = "nvprof"


@dataclass(frozen=True)
class NvprofKernel:
    """A kernel, or one launch of it: sums of the metrics over ``launches``, its time (NaN without), in SI units.

    ``tensor_level`` is the mean utilisation of the tensor cores on nvprof's scale from 0 to 10, NaN where not collected.
    """

    name: str
    device: str
    launches: int
    totals: Mapping[str, float] = field(default_factory=dict)
    tensor_level: float = math.nan
    seconds: float = math.nan
    grid: str = ""
    block: str = ""

    @property
    def key(self) -> Key:
        """What tells kernels apart."""
        return self.device, self.name

    @property
    def brings(self) -> set[str]:
        """The metrics that were counted."""
        return {*self.totals, *([] if math.isnan(self.tensor_level) else ["tensor level"])}


@dataclass(frozen=True)
class NvprofPart:
    """What one table of a log brings: kernels with counts, or kernels with times."""

    path: str
    counted: tuple[NvprofKernel, ...] = ()
    timed: tuple[NvprofKernel, ...] = ()


@dataclass
class NvprofRun:
    """Parts that belong together."""

    parts: list[NvprofPart] = field(default_factory=list)
    counted: dict[Key, list[NvprofKernel]] = field(default_factory=dict)
    timed: list[NvprofKernel] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def takes(self, part: NvprofPart) -> bool:
        """Whether a part brings what this run lacks for kernels that it has."""
        own = {name for _, name in self.counted} | {kernel.name for kernel in self.timed}
        if own and not own & {kernel.name for kernel in (*part.counted, *part.timed)}:
            return False
        if part.timed and self.timed:
            return False
        return not any(kernel.brings & mine.brings for kernel in part.counted for mine in self.counted.get(kernel.key, ()))

    def add(self, part: NvprofPart) -> None:
        """Take a part in; counts of a kernel that is here already are scaled to its launches."""
        self.parts.append(part)
        self.timed += part.timed
        given: dict[Key, list[NvprofKernel]] = {}
        for kernel in part.counted:
            given.setdefault(kernel.key, []).append(kernel)
        for key, more in given.items():
            mine = self.counted.get(key)
            if mine is None:
                self.counted[key] = more
                continue
            if len(mine) != len(more):
                mine, more = [summed(mine)], [summed(more)]
            if any(one.launches != other.launches for one, other in zip(mine, more, strict=True)):
                self.warnings.append(
                    f"kernel {mine[0].name} was launched {mine[0].launches} times in one file and {more[0].launches} times in "
                    "another: the counts of the second were scaled to the launches of the first"
                )
            self.counted[key] = [
                replace(
                    one,
                    totals={**{k: v * (one.launches / other.launches) for k, v in other.totals.items()}, **one.totals},
                    tensor_level=other.tensor_level if math.isnan(one.tensor_level) else one.tensor_level,
                )
                for one, other in zip(mine, more, strict=True)
            ]

    def kernels(self) -> list[NvprofKernel]:
        """The kernels with counts and times together; notes on what does not fit are added to the warnings."""
        named: dict[str, list[NvprofKernel]] = {}
        for kernel in self.timed:
            named.setdefault(kernel.name, []).append(kernel)
        result = []
        for (device, name), kernels in self.counted.items():
            times = [one for one in named.get(name, ()) if device in (one.device, "") or not one.device]
            result += self._with_times(kernels, times) if times else kernels
        counted = {name for _, name in self.counted}
        devices = {device for device, _ in self.counted}
        device = devices.pop() if len(devices) == 1 else ""
        result += [one if one.device else replace(one, device=device) for one in self.timed if one.name not in counted]
        return result

    def _with_times(self, kernels: list[NvprofKernel], times: list[NvprofKernel]) -> list[NvprofKernel]:
        if [one.launches for one in kernels] != [one.launches for one in times]:
            whole = summed(times)
            counted = sum(one.launches for one in kernels)
            if whole.launches != counted:
                self.warnings.append(
                    f"kernel {kernels[0].name} was counted over {counted} launches and timed over {whole.launches}: "
                    "its time is the mean of the timed launches times the launches counted"
                )
            each = whole.seconds / whole.launches
            times = [replace(whole, seconds=each * one.launches) for one in kernels]
        return [
            replace(one, seconds=time.seconds, grid=one.grid or time.grid, block=one.block or time.block)
            for one, time in zip(kernels, times, strict=True)
        ]


def runs_of(parts: Iterable[NvprofPart]) -> list[NvprofRun]:
    """The runs that the parts make up, in the order of their first parts."""
    runs: list[NvprofRun] = []
    for part in parts:
        run = next((run for run in runs if run.takes(part)), None)
        if run is None:
            run = NvprofRun()
            runs.append(run)
        run.add(part)
    return runs


def summed(kernels: Sequence[NvprofKernel]) -> NvprofKernel:
    """Several launches as one: sums, and the tensor level as the mean over launches; a metric that one lacks has no sum."""
    if len(kernels) == 1:
        return kernels[0]
    launches = sum(kernel.launches for kernel in kernels)
    shared = [name for name in kernels[0].totals if all(name in kernel.totals for kernel in kernels)]
    grids, blocks = {kernel.grid for kernel in kernels}, {kernel.block for kernel in kernels}
    return replace(
        kernels[0],
        launches=launches,
        totals={name: sum(kernel.totals[name] for kernel in kernels) for name in shared},
        tensor_level=sum(kernel.tensor_level * kernel.launches for kernel in kernels) / launches,
        seconds=sum(kernel.seconds for kernel in kernels),
        grid=kernels[0].grid if len(grids) == 1 else "",
        block=kernels[0].block if len(blocks) == 1 else "",
    )


class _NvprofReader:
    """Reads tables of one file and collects what it leaves out."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._unused: list[str] = []
        self._overflows: list[str] = []
        self._calls: list[str] = []
        self._events = False

    def sentences(self) -> list[str]:
        """What was left out, as sentences without full stop."""
        overflown = "metrics without a value for some kernel (nvprof's counters overflowed, say)"
        calls = "rows called like functions of CUDA, which are no kernels, are left out"
        found = (("metrics that are not used", self._unused), (overflown, self._overflows), (calls, self._calls))
        result = [f"{what}: {listed(names)}" for what, names in found if names]
        return [*result, "events are not used, only metrics are"] if self._events else result

    def read(self, table: NvprofLogTable) -> NvprofPart:
        """The part that a table brings, an empty one for API calls and events."""
        self._events = self._events or table.layout == "events"
        if table.layout == "metrics":
            return NvprofPart(self._path, counted=tuple(self._summed_metrics(table)))
        if table.layout == "summary":
            return NvprofPart(self._path, timed=tuple(self._summary(table)))
        return self._launches(table) if table.layout in ("trace", "launches") else NvprofPart(self._path)

    def _summed_metrics(self, table: NvprofLogTable) -> Iterator[NvprofKernel]:
        found: dict[Key, tuple[int, dict[str, float]]] = {}
        for line, row in table.rows:
            launches = self._number(line, row, "Invocations")
            if launches is None or launches < 1 or launches != int(launches):
                raise damaged(self._path, f"line {line} has no number of invocations")
            values = found.setdefault((device_name(row["Device"]), row["Kernel"]), (int(launches), {}))[1]
            self._take(values, row["Metric Name"], row["Avg"], line)
        for (device, name), (count, values) in found.items():
            level = values.pop(TENSOR_LEVEL, math.nan)
            yield NvprofKernel(name, device, count, {metric: mean * count for metric, mean in values.items()}, level)

    def _summary(self, table: NvprofLogTable) -> Iterator[NvprofKernel]:
        for line, row in table.rows:
            if "Type" not in row and _API_CALL.fullmatch(row["Name"]):
                self._calls.append(row["Name"])
            elif _is_kernel(row["Name"]) and row.get("Type", _ON_GPU) == _ON_GPU:
                calls, time = self._number(line, row, "Calls"), self._number(line, row, "Time")
                if calls is None or calls < 1 or time is None:
                    raise damaged(self._path, f"line {line} has no number of calls or no time")
                yield NvprofKernel(row["Name"], "", int(calls), seconds=time * SECONDS[table.units["Time"]])

    def _launches(self, table: NvprofLogTable) -> NvprofPart:
        name_column = "Name" if table.layout == "trace" else "Kernel"
        metrics = [column for column in table.columns if column not in _NO_METRIC]
        counts = any(_DESCRIPTIONS.get(column, column) in USED for column in metrics)
        counted, timed = [], []
        for line, row in table.rows:
            if not _is_kernel(row[name_column]):
                continue
            values: dict[str, float] = {}
            for column in metrics:
                self._take(values, _DESCRIPTIONS.get(column, column), row[column], line)
            # Older releases put the number of the launch behind the name.
            name = re.sub(r" \[\d+\]$", "", row[name_column])
            sizes = ([row.get(f"{what} {axis}", "") for axis in "XYZ"] for what in ("Grid", "Block"))
            grid, block = ("x".join(one) if all(one) else "" for one in sizes)
            kernel = NvprofKernel(name, device_name(row["Device"]), 1, grid=grid, block=block)
            if counts:  # also without a value: each launch keeps its own time
                level = values.pop(TENSOR_LEVEL, math.nan)
                counted.append(replace(kernel, totals=values, tensor_level=level))
            if table.layout == "trace":
                time = self._number(line, row, "Duration")
                seconds = math.nan if time is None else time * SECONDS[table.units["Duration"]]
                timed.append(replace(kernel, seconds=seconds))
        return NvprofPart(self._path, tuple(counted), tuple(timed))

    def _take(self, values: dict[str, float], metric: str, cell: str, line: int) -> None:
        if metric not in USED:
            self._unused += [metric] * could_count(metric)
            return
        read = _level if metric == TENSOR_LEVEL else None
        value = cell_number(self._path, f"{metric} in line {line}", cell, read)
        if value is None:
            self._overflows.append(metric)
        else:
            values[metric] = value

    def _number(self, line: int, row: dict[str, str], column: str) -> float | None:
        return cell_number(self._path, f"{column} in line {line}", row[column])


def _level(cell: str) -> float | None:
    """ "Mid (5)" as 5."""
    match = _LEVEL.fullmatch(cell.strip())
    if not match:
        if split_number(cell) is None:
            return None
        raise ValueError(f"{cell.strip()[:40]!r} is no level")
    level = float(match.group(1))
    if level > TENSOR_LEVELS:
        raise ValueError(f"{cell.strip()[:40]!r} is above the highest level, {TENSOR_LEVELS:.0f}")
    return level


def _is_kernel(name: str) -> bool:
    """Copies and fills stand among the kernels, in brackets."""
    return bool(name) and not name.startswith("[")


def points_of(kernels: Sequence[NvprofKernel]) -> Iterator[ImportedPoint]:
    """One point per kernel or launch, in SI units."""
    devices = dict.fromkeys(kernel.device for kernel in kernels)
    facts = {device: (capability_of(device), tensor_peak(device)) for device in devices}
    for kernel in kernels:
        capability, peak = facts[kernel.device]
        work, shares, counted = work_of(kernel.totals)
        traffic, moved, lacking = traffic_of(kernel.totals, capability)
        used, notes = [*counted, *moved], []
        if lacking:
            notes.append(f"L1 traffic without {', '.join(lacking)}, which were not collected")
        if capability == (0, 0) and traffic:
            notes.append("transactions counted as on Volta: the GPU's name does not tell its generation")
        if peak is not None and not math.isnan(kernel.tensor_level) and not math.isnan(kernel.seconds):
            # The estimate of Wang et al. (2020), section III.
            tensor = load_spec().standard_tensor.id
            work[tensor] = kernel.tensor_level / TENSOR_LEVELS * peak * kernel.seconds
            used.append(TENSOR_LEVEL)
            notes.append(f"{tensor} work is utilisation / 10 x {peak:.4g} FLOP/s x time, to half a level (5 % of peak)")
        yield ImportedPoint(
            name=kernel.name,
            seconds=kernel.seconds,
            work=work,
            traffic=traffic,
            fma_share=shares,
            device=kernel.device,
            compute_capability=capability,
            launches=kernel.launches,
            grid=kernel.grid,
            block=kernel.block,
            columns=", ".join(dict.fromkeys(used)),
            note="; ".join(notes),
        )


def warnings_of(kernels: Sequence[NvprofKernel]) -> Iterator[str]:
    """What the kernels lack, as sentences without full stop."""
    counted = [kernel for kernel in kernels if kernel.brings]
    timeless = [kernel.name for kernel in counted if math.isnan(kernel.seconds)]
    if not counted:
        yield "it holds times and no counts; give the output of a run with `nvprof --csv --metrics ...` as well"
    elif timeless:
        what = "it holds counts and no times" if len(timeless) == len(kernels) else f"no times for {listed(timeless, 3)}"
        yield f"{what}; give the output of a run with `nvprof --csv --print-gpu-summary` as well"
    reasons = dict.fromkeys(
        (level, reason) for kernel in counted for level, reason in without_traffic(kernel.totals, capability_of(kernel.device))
    )
    for level, reason in reasons:
        yield f"{level} traffic left out: {reason}"
    unknown = [
        kernel.device for kernel in counted if not math.isnan(kernel.tensor_level) and tensor_peak(kernel.device) is None
    ]
    if unknown:
        yield f"{TENSOR_LEVEL} left out: the tensor peak of {listed(unknown, 3)} at its clock is not known"


@dataclass(frozen=True, repr=False)
class NvprofTable(PointTable):
    """The points of one or several files, with the parts they were made of, so that they can be joined with others."""

    parts: tuple[NvprofPart, ...] = ()
    reading: tuple[str, ...] = ()
    """Sentences on what was left out while reading, whatever the parts are joined with."""

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that the parts are from."""
        return tuple(dict.fromkeys(part.path for part in self.parts))


def recognises(head: str) -> bool:
    """A log with the heading of one of nvprof's tables."""
    return holds_table(head)


def read(path: str | PathLike[str]) -> NvprofTable:
    """The kernels of one file.  Raises RooflineError for damaged tables, and for logs without any kernel."""
    name = fspath(path)
    tables = tables_of(text_of(path), name)
    reader = _NvprofReader(name)
    parts = [part for part in map(reader.read, tables) if part.counted or part.timed]
    if not parts:
        seen = " and ".join(dict.fromkeys(table.layout for table in tables))
        next_step = "Profile again with `nvprof --csv --metrics ...` or `--print-gpu-summary`, and check nvprof's filters."
        raise damaged(path, f"its tables ({seen}) hold no kernel", next_step)
    return _table(name, parts, reader.sentences())


def joined(tables: Sequence[NvprofTable]) -> list[NvprofTable]:
    """Tables of several files, those that complete each other as one: counts of one run, times of another.

    Kernels are the same where name and device are (a summary names no device).  A table that fits to no other one comes back as
    it is; in a sweep, where all files have the same kernels, the first metrics go with the first times, and so on.
    """
    given: dict[str, NvprofTable] = {}
    for table in tables:
        given.setdefault(table.path, table)
    parts: dict[tuple[str, ...], list[NvprofPart]] = {}
    for run in runs_of(part for table in given.values() for part in table.parts):
        paths = tuple(dict.fromkeys(part.path for part in run.parts))
        parts.setdefault(paths, []).extend(run.parts)
    result = []
    for paths, several in parts.items():
        reading = [sentence for path in paths for sentence in given[path].reading]
        whole = len(paths) == 1 and len(several) == len(given[paths[0]].parts)
        result.append(given[paths[0]] if whole else _table(JOINED.join(paths), several, reading))
    return result


def _table(path: str, parts: Sequence[NvprofPart], reading: Sequence[str]) -> NvprofTable:
    runs = runs_of(parts)
    kernels = [kernel for run in runs for kernel in run.kernels()]
    warnings = [*reading, *(sentence for run in runs for sentence in run.warnings), *warnings_of(kernels)]
    return NvprofTable(
        path=path,
        format=FORMAT,
        points=tuple(points_of(kernels)),
        warnings=tuple(f"{path}: {sentence}." for sentence in dict.fromkeys(warnings)),
        parts=tuple(parts),
        reading=tuple(reading),
    )
