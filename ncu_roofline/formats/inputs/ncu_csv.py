"""What Nsight Compute prints with `--csv`: the pages raw and details of a report, and live output, of every release.

The values are rounded as ncu printed them, to two or six decimals of a scaled unit.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import chain

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.texts import listed
from ncu_roofline.chips.fields import parse_capability
from ncu_roofline.formats.inputs.ncu_cells import (
    SUMMARY,
    WIDE,
    CsvHeader,
    MetricColumn,
    Values,
    decimal_mark,
    full_name,
    header_of,
    looks_like_ncu,
    mark_of,
    table_rows,
)
from ncu_roofline.formats.inputs.tables import MAJOR, MetricTable
from ncu_roofline.formats.inputs.text import lines_of
from ncu_roofline.formats.report import Launch, Process, Session, Value

_SPEED_OF_LIGHT = "GPU Speed Of Light"  # "GPU Speed Of Light Throughput" since 2021
_LABELS = {
    (_SPEED_OF_LIGHT, "Duration"): "gpu__time_duration.sum",
    (_SPEED_OF_LIGHT, "SM Frequency"): "gpc__cycles_elapsed.avg.per_second",
    (_SPEED_OF_LIGHT, "DRAM Frequency"): "dram__cycles_elapsed.avg.per_second",
    (_SPEED_OF_LIGHT, "Elapsed Cycles"): "gpc__cycles_elapsed.max",
    ("Memory Workload Analysis", "Memory Throughput"): "dram__bytes.sum.per_second",
    ("Instruction Statistics", "Executed Instructions"): "smsp__inst_executed.sum",
}
Dim3 = tuple[int, int, int]
_SIZE = re.compile(r"\(?\s*(\d{1,10})\s*,\s*(\d{1,10})\s*,\s*(\d{1,10})\s*\)?")
# "<default domain>:solver:none:none:none:none:none:none": domain, name and six facts on its payload, colour and message.
_RANGE = re.compile(r'"([^"]*)"')
_RANGE_FACTS = 6
_ANONYMOUS = ("(anonymous namespace)", "(anonymous class)")
_OPEN, _CLOSE = "<([{", ">)]}"
FORMAT = "ncu-csv"
_AGAIN = "Print it again with `ncu --import REPORT --csv --page raw`, or give the report itself."
# For the decimal mark so many values are looked at, and until one has decimals so many rows.
_ENOUGH_VALUES, _LOOK_AHEAD = 100, 20_000
_LONGEST_CELL = 2**31 - 1  # a metric with the values of all its instances; the csv module stops at 128 kB unless told
_OF_A_RULE = ("Rule ", "Estimated Speedup")
_MANY_DIGITS = 20  # more than any number of a stream, context or process has
_PROCESS = ("Process ID", "Process Name", "Host Name")
Rows = Iterator[tuple[int, list[str]]]


def launch_of(header: CsvHeader, row: Sequence[str]) -> Launch:
    """The launch that a row belongs to."""
    name = header.cell(row, "Kernel Name")
    sizes = (_SIZE.fullmatch(header.cell(row, what)) for what in ("Grid Size", "Block Size"))
    grid, block = ((int(size[1]), int(size[2]), int(size[3])) if size else None for size in sizes)
    ranges = []
    for position in header.nvtx:
        for text in _RANGE.findall(row[position]) if position < len(row) else ():
            numbered = header.columns[position].startswith("Id:")
            domain, _, inner = (text.partition(":")[2] if numbered else text).rsplit(":", _RANGE_FACTS)[0].partition(":")
            ranges.append(inner or domain)
    return Launch(
        kind="kernel",
        function_name=function_of(name),
        name=name,
        mangled_name=name if name.startswith("_Z") else "",
        grid=grid,
        block=block,
        stream=_whole(header.cell(row, "Stream")),
        context=_whole(header.cell(row, "Context")),
        nvtx=tuple(ranges),
    )


def function_of(name: str) -> str:
    """The bare function of a demangled kernel name: ``void a::b<int>(c)`` is b."""
    for anonymous in _ANONYMOUS:
        name = name.replace(anonymous, "{}")
    depth, kept = 0, ""
    for character in name:
        if character == "(" and not depth and kept:
            break
        if character in _OPEN:
            depth += 1
        elif character in _CLOSE:
            depth = max(depth - 1, 0)
        elif not depth:
            kept += character
    words = kept.replace("::", " ").split()
    return words[-1] if words else name


def _whole(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) < _MANY_DIGITS else None


def recognises(head: str) -> bool:
    """Whether text begins like output of ncu."""
    return looks_like_ncu(head)


def read(path: str | os.PathLike[str]) -> MetricTable:
    """All launches of a file, streamed.  Raises RooflineError for one that is cut off or has no launch."""
    limit = csv.field_size_limit(_LONGEST_CELL)
    try:
        with closing(lines_of(path)) as text:
            lines = enumerate(text, 1)
            header = _header(path, lines)
            reader = _NcuCsvReader(str(path), header)
            reader.read(table_rows(lines, header))
    except csv.Error as error:
        raise _unusable(path, f"its table is cut off or damaged ({error})") from error
    finally:
        csv.field_size_limit(limit)
    return reader.table()


def _header(path: str | os.PathLike[str], lines: Iterator[tuple[int, str]]) -> CsvHeader:
    said = ""
    for _, line in lines:
        if line.startswith("==ERROR=="):
            said = said or line.removeprefix("==ERROR==").strip()
        header = header_of(line)
        if header is None:
            continue
        if header.layout == SUMMARY:
            raise RooflineError(
                "Cannot use", path, "it is a summary, averages over launches", "Print it without --print-summary."
            )
        for name in ("ID",) if header.layout == WIDE else ("ID", "Metric Unit"):
            if name not in header.places:
                raise _unusable(path, f"its table has no column {name!r}")
        return header
    if said:
        raise RooflineError("Cannot use", path, f"ncu printed an error instead of a table: {said}", "Solve that first.")
    raise RooflineError("Cannot use", path, "ncu printed no table into it", "Run ncu again with --csv.")


def _unusable(path: str | os.PathLike[str], reason: str) -> RooflineError:
    return RooflineError("Cannot read", path, reason, _AGAIN)


class _NcuCsvReader:
    """Rows to launches and values."""

    def __init__(self, path: str, header: CsvHeader) -> None:
        self.path, self.header = path, header
        self.launches: list[Launch] = []
        self.process = Process()
        self.values = Values(".")
        self.strange: dict[str, None] = {}  # headings or labels that name no metric

    def read(self, rows: Rows) -> None:
        """Read all rows."""
        checked = self._checked(rows)
        ahead: list[tuple[int, list[str]]] = []
        texts: list[str] = []
        wide = self.header.layout == WIDE
        cells = [i for i, _ in self.header.metrics()] if wide else [self.header.places["Metric Value"]]
        for row in checked:
            ahead.append(row)
            texts += [text for i in cells if mark_of(text := row[1][i])]
            if len(ahead) * len(cells) >= _ENOUGH_VALUES and (texts or len(ahead) >= _LOOK_AHEAD):
                break
        self.values = Values(decimal_mark(texts) or ".")
        (self._wide if wide else self._long)(chain(ahead, checked))

    def _checked(self, rows: Rows) -> Rows:
        """The rows, each as long as it has to be; ncu leaves out the last cells of rows without a rule."""
        width = len(self.header.columns)
        least = max(i for i, name in enumerate(self.header.columns, 1) if not name.startswith(_OF_A_RULE))
        for number, (table, row) in enumerate(rows, 1):
            if not least <= len(row) <= width + (not row[-1]):
                cells = f"{len(row)} of {width} cells"
                raise _unusable(self.path, f"row {number} of its table has {cells}, so it is cut off or damaged")
            yield table, row

    def _wide(self, rows: Rows) -> None:
        columns = [(i, full_name(name)) for i, name in self.header.metrics()]
        self.strange = dict.fromkeys(self.header.columns[i] for i, name in columns if not name)
        columns = [(i, name) for i, name in columns if name]
        units: dict[int, tuple[list[MetricColumn], list[MetricColumn]]] = {}
        for table, row in rows:
            if not self.header.cell(row, "ID"):
                units[table] = self.values.columns(columns, row)
                continue
            if table not in units:
                raise _unusable(self.path, "its table has no row of units, so its numbers can't be scaled")
            self._begin(row)
            launch = len(self.launches) - 1
            plain, special = units[table]
            self.values.append(launch, row, plain)
            for one in special:
                self.values.put(launch, one.name, one.unit, row[one.position])

    def _long(self, rows: Rows) -> None:
        header = self.header
        unit, value = header.places["Metric Unit"], header.places["Metric Value"]
        keys = [header.places[name] for name in ("ID", "Process ID", "Host Name", "Kernel Name") if name in header.places]
        seen: dict[tuple[str, ...], int] = {}
        for table, row in rows:
            launch = seen.setdefault((str(table), *(row[i] for i in keys)), len(self.launches))
            if launch == len(self.launches):
                self._begin(row)
            label = header.cell(row, "Metric Name")
            if not label:
                continue  # a rule's row
            section = header.cell(row, "Section Name").removesuffix(" Throughput")
            name = full_name(label) or _LABELS.get((section, label), "")
            if name:
                self.values.put(launch, name, row[unit], row[value])
            else:
                self.strange[label] = None

    def _begin(self, row: Sequence[str]) -> None:
        if not self.launches:
            number, *names = (self.header.cell(row, name) for name in _PROCESS)
            self.process = Process(_whole(number) or 0, *names)
        self.launches.append(launch_of(self.header, row))
        stated = self.header.cell(row, "CC") if MAJOR not in self.header.places else ""
        if capability := parse_capability(stated.replace(",", ".")):
            self.values.put_capability(len(self.launches) - 1, capability)

    def table(self) -> MetricTable:
        """What was read."""
        if not self.launches:
            raise RooflineError(
                "Cannot use", self.path, "it holds no profiled kernel", "Check that ncu's filters let one pass."
            )
        failed = self.values.drop_unmeasured()
        values = self.values.finished(len(self.launches))
        return MetricTable(
            path=self.path,
            format=FORMAT,
            rows=self._sized(values),
            values=values,
            warnings=(*self._warnings(failed), *self.values.warnings(self.path)),
            session=Session(process=self.process, host=self.process.host),
        )

    def _sized(self, values: Mapping[str, Sequence[Value | None]]) -> list[Launch]:
        """The launches, with grid and block from their metrics where the table has no columns for them."""
        dims = {what: [values.get(f"launch__{what}_dim_{axis}") for axis in "xyz"] for what in ("grid", "block")}

        def size(what: str, row: int) -> Dim3 | None:
            found = [column[row] if column is not None else None for column in dims[what]]
            x, y, z = (int(one) if isinstance(one, float) and 0 <= one < 2**32 else -1 for one in found)
            return (x, y, z) if min(x, y, z) >= 0 else None

        return [
            replace(one, grid=one.grid or size("grid", row), block=one.block or size("block", row))
            for row, one in enumerate(self.launches)
        ]

    def _warnings(self, failed: Sequence[int]) -> list[str]:
        found = []
        if self.strange and self.header.layout == WIDE:
            found.append(f"Columns of {self.path} that name no metric were left out: {listed(self.strange, 3)}.")
        elif self.strange:
            found.append(
                f"Rows of {self.path} with display labels that stand for no known metric were left out: "
                f"{listed(self.strange, 3)}. --page raw prints metrics by their full names."
            )
        if failed:
            launches = listed(map(str, failed))
            found.append(f"{self.path}: launch {launches} took no time, so it was not measured, and its counters are left out.")
        return found
