"""Rows of nvprof's tables as kernels with counts or times."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from ncu_roofline.importers.cells import SECONDS, damaged, listed, plain_number, split_number
from ncu_roofline.importers.nvprof_devices import device_name
from ncu_roofline.importers.nvprof_metrics import TENSOR_LEVEL, TENSOR_LEVELS, USED, could_count
from ncu_roofline.importers.nvprof_runs import Kernel, Part
from ncu_roofline.importers.nvprof_text import Table

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


def parts_of(tables: list[Table], path: str) -> tuple[list[Part], list[str]]:
    """The parts of a log, and sentences on what is not used.  Raises RooflineError for cells that can't be understood."""
    reader = _Reader(path)
    parts = [reader.read(table) for table in tables]
    return [part for part in parts if part.counted or part.timed], reader.sentences()


class _Reader:
    """Reads tables of one file and collects what it leaves out."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._unused: list[str] = []
        self._overflows: list[str] = []
        self._events = False

    def sentences(self) -> list[str]:
        """What was left out, as sentences without full stop."""
        result = []
        if self._unused:
            result.append(f"metrics that are not used: {listed(self._unused)}")
        if self._overflows:
            result.append(
                f"metrics without a value for some kernel (nvprof's counters overflowed, say): {listed(self._overflows)}"
            )
        if self._events:
            result.append("events are not used, only metrics are")
        return result

    def read(self, table: Table) -> Part:
        """The part that a table brings, an empty one for API calls and events."""
        self._events = self._events or table.layout == "events"
        readers: dict[str, Callable[[Table], Part]] = {
            "metrics": lambda table: Part(self._path, counted=tuple(self._summed_metrics(table))),
            "summary": lambda table: Part(self._path, timed=tuple(self._summary(table))),
            "trace": self._launches,
            "launches": self._launches,
        }
        return readers[table.layout](table) if table.layout in readers else Part(self._path)

    def _summed_metrics(self, table: Table) -> Iterator[Kernel]:
        found: dict[tuple[str, str], tuple[int, dict[str, float]]] = {}
        for line, row in table.rows:
            launches = self._number(line, row, "Invocations")
            if launches is None or launches < 1 or launches != int(launches):
                raise damaged(self._path, f"line {line} has no number of invocations")
            key = (device_name(row["Device"]), row["Kernel"].strip())
            values = found.setdefault(key, (int(launches), {}))[1]
            self._take(values, row["Metric Name"].strip(), row["Avg"], line)
        for (device, name), (count, values) in found.items():
            yield self._kernel(name, device, count, values)

    def _summary(self, table: Table) -> Iterator[Kernel]:
        for line, row in table.rows:
            if _is_kernel(row["Name"]) and row.get("Type", "GPU activities") == "GPU activities":
                calls, time = self._number(line, row, "Calls"), self._number(line, row, "Time")
                if calls is None or calls < 1 or time is None:
                    raise damaged(self._path, f"line {line} has no number of calls or no time")
                yield Kernel(row["Name"].strip(), "", int(calls), seconds=time * SECONDS[table.units["Time"]])

    def _launches(self, table: Table) -> Part:
        name_column = "Name" if table.layout == "trace" else "Kernel"
        metrics = [column for column in table.columns if column not in _NO_METRIC]
        counted, timed = [], []
        for line, row in table.rows:
            if not _is_kernel(row[name_column]):
                continue
            values: dict[str, float] = {}
            for column in metrics:
                self._take(values, _DESCRIPTIONS.get(column, column), row[column], line)
            # Older releases put the number of the launch behind the name.
            name = re.sub(r" \[\d+\]$", "", row[name_column].strip())
            kernel = self._kernel(name, device_name(row["Device"]), 1, values)
            kernel = replace(kernel, grid=_shape(row, "Grid"), block=_shape(row, "Block"))
            if kernel.totals or not math.isnan(kernel.tensor_level):
                counted.append(kernel)
            if table.layout == "trace":
                time = self._number(line, row, "Duration")
                seconds = math.nan if time is None else time * SECONDS[table.units["Duration"]]
                timed.append(replace(kernel, totals={}, tensor_level=math.nan, seconds=seconds))
        return Part(self._path, tuple(counted), tuple(timed))

    def _kernel(self, name: str, device: str, launches: int, means: dict[str, float]) -> Kernel:
        level = means.pop(TENSOR_LEVEL, math.nan)
        return Kernel(name, device, launches, {metric: mean * launches for metric, mean in means.items()}, level)

    def _take(self, values: dict[str, float], metric: str, cell: str, line: int) -> None:
        if metric not in USED:
            self._unused += [metric] * could_count(metric)
            return
        try:
            value = _level(cell) if metric == TENSOR_LEVEL else plain_number(cell)
        except ValueError as error:
            raise damaged(self._path, f"{metric} in line {line}: {error}") from error
        if value is None:
            self._overflows.append(metric)
        else:
            values[metric] = value

    def _number(self, line: int, row: dict[str, str], column: str) -> float | None:
        try:
            return plain_number(row[column])
        except ValueError as error:
            raise damaged(self._path, f"{column} in line {line}: {error}") from error


def _level(cell: str) -> float | None:
    """ "Mid (5)" as 5."""
    found = _LEVEL.fullmatch(cell.strip())
    if not found:
        if split_number(cell) is None:
            return None
        raise ValueError(f"{cell.strip()[:40]!r} is no level")
    level = float(found.group(1))
    if level > TENSOR_LEVELS:
        raise ValueError(f"{cell.strip()[:40]!r} is above the highest level, {TENSOR_LEVELS:.0f}")
    return level


def _is_kernel(name: str) -> bool:
    """Copies and fills stand among the kernels, in brackets."""
    return bool(name.strip()) and not name.lstrip().startswith("[")


def _shape(row: dict[str, str], what: str) -> str:
    sizes = [row.get(f"{what} {axis}", "").strip() for axis in "XYZ"]
    return "x".join(sizes) if all(sizes) else ""
