"""What Nsight Compute prints with `--csv`: the pages raw and details of a report, and live output, of every release.

The values are rounded as ncu printed them, to two or six decimals of a scaled unit.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import chain
from os import PathLike

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.texts import listed
from ncu_roofline.chips.fields import parse_capability
from ncu_roofline.formats.inputs.ncu_cells import Values, decimal_mark, mark_of
from ncu_roofline.formats.inputs.tables import MAJOR, MetricTable
from ncu_roofline.formats.inputs.text import damaged, delimiter_of, lines_of, row_of, unpadded
from ncu_roofline.formats.report import Launch, Process, Session, Value

FORMAT = "ncu-csv"
_AGAIN = "Print it again with `ncu --import REPORT --csv --page raw`, or give the report itself."
_OWN_LINE = re.compile(r"^==(?:PROF|ERROR|WARNING)==", re.MULTILINE)
_KERNEL = "Kernel Name"
# Of its layouts: a row per metric, a row per launch, a row per kernel and metric.
_LONG = ("Metric Name", "Metric Value")
_SUMMARY = ("Metric Name", "Minimum", "Maximum", "Average")
# Columns that say which launch it is; all others of a wide table are metrics.
_FACTS = frozenset({
    "", "ID", "Process ID", "Process Name", "Host Name", _KERNEL, "Kernel Time", "Context", "Stream", "Block Size", "Grid Size",
    "Device", "CC", "Invocations",
})  # fmt: skip
_PROCESS = ("Process ID", "Process Name", "Host Name")
_OF_A_RULE = ("Rule ", "Estimated Speedup")
_SPEED_OF_LIGHT = "GPU Speed Of Light"  # "GPU Speed Of Light Throughput" since 2021
_LABELS = {
    (_SPEED_OF_LIGHT, "Duration"): "gpu__time_duration.sum",
    (_SPEED_OF_LIGHT, "SM Frequency"): "gpc__cycles_elapsed.avg.per_second",
    (_SPEED_OF_LIGHT, "DRAM Frequency"): "dram__cycles_elapsed.avg.per_second",
    (_SPEED_OF_LIGHT, "Elapsed Cycles"): "gpc__cycles_elapsed.max",
    ("Memory Workload Analysis", "Memory Throughput"): "dram__bytes.sum.per_second",
    ("Instruction Statistics", "Executed Instructions"): "smsp__inst_executed.sum",
}
_FULL_NAME = re.compile(r"(?:[A-Za-z]\w*:)*[a-z]\w*(?:\.[a-z]\w*)*")
_LABEL_AND_NAME = re.compile(r".* \(([a-z]\w+(?:\.\w+)*)\)")
_CUT = re.compile(r'"\d*(?:$|".*[^"]$|"$)')
_SIZE = re.compile(r"\(?\s*(\d{1,10})\s*,\s*(\d{1,10})\s*,\s*(\d{1,10})\s*\)?")
_NVTX = re.compile(r"Range:PL_Type")
# "<default domain>:solver:none:none:none:none:none:none": domain, name and six facts on its payload, colour and message.
_RANGE, _RANGE_FACTS = re.compile(r'"([^"]*)"'), 6
_ANONYMOUS = ("(anonymous namespace)", "(anonymous class)")
_OPEN, _CLOSE = "<([{", ">)]}"
# For the decimal mark so many values are looked at, and until one has decimals so many rows.
_ENOUGH_VALUES, _LOOK_AHEAD = 100, 20_000
_LONGEST_CELL = 2**31 - 1  # a metric with the values of all its instances; the csv module stops at 128 kB unless told
_MANY_DIGITS = 20  # more than any number of a stream, context or process has
Rows = Iterator[tuple[int, list[str]]]


def recognises(head: str) -> bool:
    """Whether text begins with a table of ncu, perhaps below other lines, or with the lines that ncu prints above one."""
    return _OWN_LINE.search(head) is not None or any(_header_in(line) for line in head.split("\n") if _KERNEL in line)


def read(path: str | PathLike[str]) -> MetricTable:
    """All launches of a file, streamed.  Raises RooflineError for one that is cut off or has no launch."""
    limit = csv.field_size_limit(_LONGEST_CELL)
    try:
        with closing(lines_of(path)) as text:
            lines = enumerate(text, 1)
            reader = _Reader(str(path), _first_header(path, lines))
            reader.read(reader.header.rows(lines))
    except csv.Error as error:
        raise damaged(path, f"its table is cut off or damaged ({error})", _AGAIN) from error
    finally:
        csv.field_size_limit(limit)
    return reader.table()


class _Header:
    """The line with the names of the columns; ``quoted`` if they stand in quotation marks, as ncu prints them.

    ``nvtx``: positions of the columns with NVTX ranges; those started and ended first, they are the outer ones.
    """

    def __init__(self, columns: tuple[str, ...], delimiter: str, quoted: bool, wide: bool) -> None:
        self.columns, self.delimiter, self.quoted, self.wide = columns, delimiter, quoted, wide
        self.places = {name: place for place, name in reversed(list(enumerate(columns)))}
        ranges = [place for place, name in enumerate(columns) if _NVTX.search(name)]
        self.nvtx = sorted(ranges, key=lambda place: "Start/Stop" not in columns[place])
        self.metrics = [(place, name) for place, name in enumerate(columns) if name not in _FACTS and place not in ranges]
        first = r" *\d* *" if columns[0] in ("ID", "") else r"[^\"]*" if quoted else r".*?"
        mark = '"' if quoted else '"?'
        self._beginning = re.compile(rf"{mark}{first}{mark} *{re.escape(delimiter)}")

    def cell(self, row: Sequence[str], name: str) -> str:
        """The cell of a column without blanks around it, "" where the table has none or the row ends before."""
        place = self.places.get(name, len(row))
        return row[place].strip() if place < len(row) else ""

    def rows(self, lines: Iterable[tuple[int, str]]) -> Rows:
        """The rows in the numbered lines below, each with the number of its table: the header again begins the next.

        Raises csv.Error with the line where the last row is not complete.
        """
        table = 0
        for row in csv.reader(self._lines(lines), delimiter=self.delimiter, skipinitialspace=True):
            if row and row[-1].strip() == self.columns[-1] and tuple(name.strip() for name in row) == self.columns:
                table += 1
            else:
                yield table, row

    def _lines(self, lines: Iterable[tuple[int, str]]) -> Iterator[str]:
        inside, begun = False, 0  # a text in quotation marks may go over several lines, as those of rules do
        line = "\n"
        for number, padded in lines:
            line = padded if inside else unpadded(padded, self.delimiter)
            # Applications print what they like between the rows.
            begins = inside or (self._beginning.match(line) is not None and not line.startswith("=="))
            if begins or ((again := _header_in(line)) and (again.columns, again.quoted) == (self.columns, self.quoted)):
                if line.count('"') % 2 == 1:
                    inside, begun = not inside, number
                yield line.replace("\0", "")
        if inside:
            raise csv.Error(f"its last row is not complete, for the quotation mark that opens in line {begun} is not closed")
        # Within a row of quoted cells: ncu ends every line.
        if self.quoted and _CUT.match(line) and not line.endswith("\n"):
            raise csv.Error("its last row is not complete")


def _header_in(line: str) -> _Header | None:
    if _KERNEL not in line:
        return None
    delimiter = delimiter_of(line)
    columns = tuple(row_of(line.strip("\n"), delimiter))
    if _KERNEL not in columns:
        return None
    long = any(set(names) <= set(columns) for names in (_LONG, _SUMMARY))
    wide = not long and any(_full_name(name) and "__" in name for name in columns)
    return _Header(columns, delimiter, line.lstrip().startswith('"'), wide) if long or wide else None


def _full_name(text: str) -> str:
    """The metric that a heading names, "" for display labels; "Duration (gpu__time_duration.sum)" names one."""
    if (match := _LABEL_AND_NAME.fullmatch(text)) and "__" in match[1].partition(".")[0]:
        return match[1]
    return text if _FULL_NAME.fullmatch(text) else ""


def _first_header(path: str | PathLike[str], lines: Iterator[tuple[int, str]]) -> _Header:
    failure = ""
    for _, line in lines:
        if line.startswith("==ERROR=="):
            failure = failure or line.removeprefix("==ERROR==").strip()
        header = _header_in(line)
        if header is None:
            continue
        if not header.wide and not set(_LONG) <= set(header.columns):
            reason = "it is a summary, averages over launches"
            raise RooflineError("Cannot use", path, reason, "Print it without --print-summary.")
        for name in ("ID",) if header.wide else ("ID", "Metric Unit"):
            if name not in header.places:
                raise damaged(path, f"its table has no column {name!r}", _AGAIN)
        return header
    if failure:
        raise RooflineError("Cannot use", path, f"ncu printed an error instead of a table: {failure}", "Solve that first.")
    raise RooflineError("Cannot use", path, "ncu printed no table into it", "Run ncu again with --csv.")


class _Reader:
    """Rows to launches and values."""

    def __init__(self, path: str, header: _Header) -> None:
        self.path, self.header = path, header
        self.launches: list[Launch] = []
        self.process = Process()
        self.values = Values(".")
        self.strange: dict[str, None] = {}  # headings or labels that name no metric

    def read(self, rows: Rows) -> None:
        checked = self._checked(rows)
        ahead: list[tuple[int, list[str]]] = []
        texts: list[str] = []
        header = self.header
        cells = [place for place, _ in header.metrics] if header.wide else [header.places["Metric Value"]]
        for row in checked:
            ahead.append(row)
            texts += [text for place in cells if mark_of(text := row[1][place])]
            if len(ahead) * len(cells) >= _ENOUGH_VALUES and (texts or len(ahead) >= _LOOK_AHEAD):
                break
        self.values = Values(decimal_mark(texts) or ".")
        (self._wide if header.wide else self._long)(chain(ahead, checked))

    def _checked(self, rows: Rows) -> Rows:
        """The rows, each as long as it has to be; ncu leaves out the last cells of rows without a rule."""
        width = len(self.header.columns)
        least = max(place for place, name in enumerate(self.header.columns, 1) if not name.startswith(_OF_A_RULE))
        for number, (table, row) in enumerate(rows, 1):
            if not least <= len(row) <= width + (not row[-1]):
                cells = f"{len(row)} of {width} cells"
                raise damaged(self.path, f"row {number} of its table has {cells}, so it is cut off or damaged", _AGAIN)
            yield table, row

    def _wide(self, rows: Rows) -> None:
        names = [(place, _full_name(heading)) for place, heading in self.header.metrics]
        self.strange = dict.fromkeys(self.header.columns[place] for place, name in names if not name)
        names = [(place, name) for place, name in names if name]
        columns = {}
        for table, row in rows:
            if not self.header.cell(row, "ID"):
                columns[table] = self.values.columns(names, row)
            elif table in columns:
                self._begin(row)
                self.values.append(len(self.launches) - 1, row, *columns[table])
            else:
                raise damaged(self.path, "its table has no row of units, so its numbers can't be scaled", _AGAIN)

    def _long(self, rows: Rows) -> None:
        header = self.header
        unit, value = header.places["Metric Unit"], header.places["Metric Value"]
        keys = [header.places[name] for name in ("ID", "Process ID", "Host Name", _KERNEL) if name in header.places]
        seen: dict[tuple[str, ...], int] = {}
        for table, row in rows:
            launch = seen.setdefault((str(table), *(row[place] for place in keys)), len(self.launches))
            if launch == len(self.launches):
                self._begin(row)
            label = header.cell(row, "Metric Name")
            if not label:
                continue  # a rule's row
            section = header.cell(row, "Section Name").removesuffix(" Throughput")
            name = _full_name(label) or _LABELS.get((section, label), "")
            if name:
                self.values.put(launch, name, row[unit], row[value])
            else:
                self.strange[label] = None

    def _begin(self, row: Sequence[str]) -> None:
        if not self.launches:
            number, *names = (self.header.cell(row, name) for name in _PROCESS)
            self.process = Process(_whole(number) or 0, *names)
        self.launches.append(_launch(self.header, row))
        stated = self.header.cell(row, "CC") if MAJOR not in self.header.places else ""
        if capability := parse_capability(stated.replace(",", ".")):
            self.values.put_capability(len(self.launches) - 1, capability)

    def table(self) -> MetricTable:
        if not self.launches:
            raise RooflineError(
                "Cannot use", self.path, "it holds no profiled kernel", "Check that ncu's filters let one pass."
            )
        failed = self.values.drop_unmeasured()
        values = self.values.finished(len(self.launches))
        warnings = []
        if self.strange and self.header.wide:
            warnings.append(f"Columns of {self.path} that name no metric were left out: {listed(self.strange, 3)}.")
        elif self.strange:
            warnings.append(
                f"Rows of {self.path} with display labels that stand for no known metric were left out: "
                f"{listed(self.strange, 3)}. --page raw prints metrics by their full names."
            )
        if failed:
            launches = listed(map(str, failed))
            warnings.append(
                f"{self.path}: launch {launches} took no time, so it was not measured, and its counters are left out."
            )

        def size(what: str, row: int) -> tuple[int, int, int] | None:  # where the table has no columns for them
            names = (f"launch__{what}_dim_{axis}" for axis in "xyz")
            cells: list[Value | None] = [values[name][row] if name in values else None for name in names]
            x, y, z = (int(cell) if isinstance(cell, float) and 0 <= cell < 2**32 else -1 for cell in cells)
            return (x, y, z) if min(x, y, z) >= 0 else None

        return MetricTable(
            path=self.path,
            format=FORMAT,
            rows=[
                replace(one, grid=one.grid or size("grid", row), block=one.block or size("block", row))
                for row, one in enumerate(self.launches)
            ],
            values=values,
            warnings=(*warnings, *self.values.warnings(self.path)),
            session=Session(process=self.process, host=self.process.host),
        )


def _launch(header: _Header, row: Sequence[str]) -> Launch:
    name = header.cell(row, _KERNEL)
    sizes = (_SIZE.fullmatch(header.cell(row, what)) for what in ("Grid Size", "Block Size"))
    grid, block = ((int(size[1]), int(size[2]), int(size[3])) if size else None for size in sizes)
    ranges = []
    for place in header.nvtx:
        for text in _RANGE.findall(row[place]) if place < len(row) else ():
            numbered = header.columns[place].startswith("Id:")
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
