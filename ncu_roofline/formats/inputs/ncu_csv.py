"""What Nsight Compute prints with `--csv`: the pages raw and details of a report, and live output, of every release.

The values are rounded as ncu printed them, to two or six decimals of a scaled unit; here they are in the units of a report.
"""

from __future__ import annotations

import csv
import math
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from os import PathLike
from typing import NamedTuple

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.texts import listed
from ncu_roofline.chips.fields import parse_capability
from ncu_roofline.formats.inputs.tables import MAJOR, MINOR, MetricTable
from ncu_roofline.formats.inputs.text import damaged, delimiter_of, lines_of, row_of, unpadded
from ncu_roofline.formats.inputs.words import load_words
from ncu_roofline.formats.report import Launch, Process, Session, Value

_AGAIN = "Print it again with `ncu --import REPORT --csv --page raw`, or give the report itself."
_OWN_LINE = re.compile(r"^==(?:PROF|ERROR|WARNING)==", re.MULTILINE)
_KERNEL = "Kernel Name"
_LONG = {"ID", "Metric Name", "Metric Unit", "Metric Value"}  # of the layout with a row per metric, not per launch
_OF_A_RULE = ("Rule ", "Estimated Speedup")
_FULL_NAME = re.compile(r"(?:[A-Za-z]\w*:)*[a-z]\w*(?:\.[a-z]\w*)*")
_LABEL_AND_NAME = re.compile(r".* \(([a-z]\w+(?:\.\w+)*)\)")
_CUT = re.compile(r'"\d*(?:$|".*[^"]$|"$)')
_SIZE = re.compile(r"\(?\s*(\d{1,10})\s*,\s*(\d{1,10})\s*,\s*(\d{1,10})\s*\)?")
_NVTX = "Range:PL_Type"
# "<default domain>:solver:none:none:none:none:none:none": domain, name and six facts on its payload, colour and message.
_RANGE, _RANGE_FACTS = re.compile(r'"([^"]*)"'), 6
# For the decimal mark so many values are looked at, and until one has decimals so many rows.
_ENOUGH_VALUES, _LOOK_AHEAD = 100, 20_000
_LONGEST_CELL = 2**31 - 1  # a metric with the values of all its instances; the csv module stops at 128 kB unless told
_MANY_DIGITS = 20  # more than any number of a stream, context or process has

# A value may be followed by those of its instances: "12 (4; 8)".
_INSTANCES = re.compile(r"(\S+) \(.*\)", re.DOTALL)
_NUMBER = re.compile(r"[+-]?\d[\d.,'\s]*(?:[eE][+-]?\d+)?")  # \s has the narrow and the fixed blank of some locales
# With each decimal mark: groups end with one of three digits ("1,234", "12,34,567" in India), so "1,5" is none of a point.
_GROUPED = {
    mark: re.compile(
        rf"[+-]?(?:\d{{1,3}}(?:[\s'{group}]\d{{2,3}})*[\s'{group}]\d{{3}}|\d+)(?:{re.escape(mark)}\d*)?(?:[eE][+-]?\d+)?"
    )
    for mark, group in ((".", ","), (",", "."))
}
# "(!)" is what ncu of 2019 and 2020 put before values that were not measured.
_MISSING = re.compile(r"|n/a|no data|-|\(!\).*|[+-]?(?:nan|1\.#(?:ind|qnan|snan))\b.*", re.IGNORECASE | re.DOTALL)
_INFINITE = re.compile(r"([+-]?)(?:inf(?:inity)?|1\.#inf\d*)", re.IGNORECASE)
_PREFIXES = {"": 1.0, "K": 1e3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "m": 1e-3, "u": 1e-6, "n": 1e-9, "p": 1e-12}
_TIME_UNITS = ("s", "second")
_TIMES = [f"gpu__time_duration.{how}" for how in ("sum", "avg", "max")]
_TIMES += [f"{unit}__cycles_elapsed.{how}" for unit in ("sm", "gpc") for how in ("max", "avg")]
# Facts that are known without measuring.
_NOT_MEASURED = ("device__", "launch__", "profiler__")
Rows = Iterator[tuple[int, list[str]]]


def recognises(head: str) -> bool:
    """Whether text begins with a table of ncu, perhaps below other lines, or with the lines that ncu prints above one."""
    named = any(_heading_in(line) or (_KERNEL in line and '"Metric Name"' in line) for line in head.split("\n"))
    return named or _OWN_LINE.search(head) is not None


def read(path: str | PathLike[str]) -> MetricTable:
    """All launches of a file, streamed.  Raises RooflineError for one that is cut off or has no launch."""
    limit = csv.field_size_limit(_LONGEST_CELL)
    failure = ""
    try:
        with closing(lines_of(path)) as text:
            lines = enumerate(text, 1)
            for _, line in lines:
                failure = failure or line.removeprefix("==ERROR==").strip() * line.startswith("==ERROR==")
                if heading := _heading_in(line):
                    reader = _Reader(str(path), heading)
                    reader.read(lines)
                    return reader.table()
    except csv.Error as error:
        raise damaged(path, f"its table is cut off or damaged ({error})", _AGAIN) from error
    finally:
        csv.field_size_limit(limit)
    reason = f"ncu printed an error instead of a table: {failure}" if failure else "ncu printed no table of launches into it"
    next_step = "Solve that first." if failure else "Run ncu again with --csv, without --print-summary."
    raise RooflineError("Cannot use", path, reason, next_step)


class _Heading(NamedTuple):
    """The line with the names of the columns: ``quoted`` as ncu prints them, ``wide`` where metrics are columns, not rows."""

    columns: list[str]
    delimiter: str
    quoted: bool
    wide: bool


def _heading_in(line: str) -> _Heading | None:
    if _KERNEL not in line:
        return None
    delimiter = delimiter_of(line)
    columns = row_of(line.strip("\n"), delimiter)
    long = _LONG.issubset(columns)
    wide = not long and "ID" in columns and any("__" in name and _full_name(name) for name in columns)
    return _Heading(columns, delimiter, line.lstrip().startswith('"'), wide) if _KERNEL in columns and (long or wide) else None


def _full_name(text: str) -> str:
    """The metric that a heading names, "" for display labels; "Duration (gpu__time_duration.sum)" names one."""
    if (match := _LABEL_AND_NAME.fullmatch(text)) and "__" in match[1].partition(".")[0]:
        return match[1]
    return text if _FULL_NAME.fullmatch(text) else ""


class _Reader:
    """Rows to launches and values; numbers are packed, for a table may have millions of them."""

    def __init__(self, path: str, heading: _Heading) -> None:
        self.path, self.heading, columns = path, heading, heading.columns
        self.places = {name: place for place, name in reversed(list(enumerate(columns)))}
        ranges = [place for place, name in enumerate(columns) if _NVTX in name]
        # Those started and ended are the outer ones.
        self.nvtx = sorted(ranges, key=lambda place: "Start/Stop" not in columns[place])
        facts = load_words().ncu["facts"]
        self.metrics = [(place, name) for place, name in enumerate(columns) if name not in facts and _NVTX not in name]
        first = r" *\d* *" if columns[0] in ("ID", "") else r"[^\"]*" if heading.quoted else r".*?"
        mark = '"' if heading.quoted else '"?'
        self._beginning = re.compile(rf"{mark}{first}{mark} *{re.escape(heading.delimiter)}")
        self.launches: list[Launch] = []
        self.process = Process()
        self.mark = "."
        self.numbers: dict[str, array[float]] = {}
        self.texts: dict[str, dict[int, str]] = {}
        self.strange: dict[str, None] = {}  # headings or labels that name no metric
        self.unknown: dict[str, dict[str, None]] = {}  # metrics by a unit that is not known

    def _cell(self, row: Sequence[str], name: str) -> str:
        """The cell of a column without blanks around it, "" where the table has none."""
        return row[self.places[name]].strip() if name in self.places else ""

    def _rows(self, lines: Iterable[tuple[int, str]]) -> Rows:
        """The rows in the numbered lines below, each with the number of its table: the header again begins the next.

        Raises csv.Error with the line where the last row is not complete, RooflineError for rows of another width.
        """
        table, number, width = 0, 0, len(self.heading.columns)
        # ncu leaves out the last cells of rows without a rule.
        least = max(place for place, name in enumerate(self.heading.columns, 1) if not name.startswith(_OF_A_RULE))
        for row in csv.reader(self._lines(lines), delimiter=self.heading.delimiter, skipinitialspace=True):
            if row and row[-1].strip() == self.heading.columns[-1] and [name.strip() for name in row] == self.heading.columns:
                table += 1
                continue
            number += 1
            if not least <= len(row) <= width + (not row[-1]):
                cells = f"{len(row)} of {width} cells"
                raise damaged(self.path, f"row {number} of its table has {cells}, so it is cut off or damaged", _AGAIN)
            yield table, row + [""] * (width - len(row))

    def _lines(self, lines: Iterable[tuple[int, str]]) -> Iterator[str]:
        inside, begun = False, 0  # a text in quotation marks may go over several lines, as those of rules do
        line = "\n"
        for number, padded in lines:
            line = padded if inside else unpadded(padded, self.heading.delimiter)
            # Applications print what they like between the rows.
            begins = inside or (self._beginning.match(line) is not None and not line.startswith("=="))
            if begins or ((again := _heading_in(line)) and again == self.heading):
                if line.count('"') % 2 == 1:
                    inside, begun = not inside, number
                yield line.replace("\0", "")
        if inside:
            raise csv.Error(f"its last row is not complete, for the quotation mark that opens in line {begun} is not closed")
        # Within a row of quoted cells: ncu ends every line.
        if self.heading.quoted and _CUT.match(line) and not line.endswith("\n"):
            raise csv.Error("its last row is not complete")

    def read(self, lines: Iterable[tuple[int, str]]) -> None:
        rows, wide = self._rows(lines), self.heading.wide
        ahead: list[tuple[int, list[str]]] = []
        texts: list[str] = []
        cells = [place for place, _ in self.metrics] if wide else [self.places["Metric Value"]]
        for row in rows:
            ahead.append(row)
            texts += [text for place in cells if mark_of(text := row[1][place])]
            if len(ahead) * len(cells) >= _ENOUGH_VALUES and (texts or len(ahead) >= _LOOK_AHEAD):
                break
        self.mark = decimal_mark(texts) or "."
        (self._wide if wide else self._long)(chain(ahead, rows))

    def _wide(self, rows: Rows) -> None:
        names = [(place, _full_name(heading)) for place, heading in self.metrics]
        self.strange = dict.fromkeys(self.heading.columns[place] for place, name in names if not name)
        last = {name: place for place, name in names if name}
        columns: dict[int, list[tuple[int, str, str, float, array[float]]]] = {}  # of each table
        for table, row in rows:
            if not self._cell(row, "ID"):  # the units
                columns[table] = []
                for name, place in last.items():
                    factor = factor_of(row[place])
                    if factor is None:
                        self.unknown.setdefault(row[place], {})[name] = None
                    packed = self.numbers.setdefault(name, array("d"))
                    columns[table].append((place, name, row[place], math.nan if factor is None else factor, packed))
            elif table not in columns:
                raise damaged(self.path, "its table has no row of units, so its numbers can't be scaled", _AGAIN)
            else:
                launch = self._begin(row)
                for place, name, unit, factor, packed in columns[table]:
                    try:  # as `_put` for each, at a fifth of the time
                        packed.append(float(row[place] if self.mark == "." else "") * factor)
                    except ValueError:  # noqa: PERF203 - the fast way for nearly all cells of a table
                        self._put(launch, name, unit, row[place])

    def _long(self, rows: Rows) -> None:
        unit, value = self.places["Metric Unit"], self.places["Metric Value"]
        keys = [self.places[name] for name in ("ID", "Process ID", "Host Name", _KERNEL) if name in self.places]
        seen: dict[tuple[str, ...], int] = {}
        for table, row in rows:
            launch = seen.setdefault((str(table), *(row[place] for place in keys)), len(self.launches))
            if launch == len(self.launches):
                self._begin(row)
            label = self._cell(row, "Metric Name")  # "" in a rule's row
            section = self._cell(row, "Section Name").removesuffix(" Throughput")
            if name := _full_name(label) or load_words().ncu_labels.get(section, {}).get(label, ""):
                self._put(launch, name, row[unit], row[value])
            elif label:
                self.strange[label] = None

    def _begin(self, row: Sequence[str]) -> int:
        """Begin a launch, and say which one it is."""
        cell, launch = self._cell, len(self.launches)
        if not launch:
            self.process = Process(_whole(cell(row, "Process ID")) or 0, cell(row, "Process Name"), cell(row, "Host Name"))
        name = cell(row, _KERNEL)
        sizes = (_SIZE.fullmatch(cell(row, what)) for what in ("Grid Size", "Block Size"))
        grid, block = ((int(size[1]), int(size[2]), int(size[3])) if size else None for size in sizes)
        ranges = []
        for place in self.nvtx:
            for text in _RANGE.findall(row[place]):
                numbered = self.heading.columns[place].startswith("Id:")
                domain, _, inner = (text.partition(":")[2] if numbered else text).rsplit(":", _RANGE_FACTS)[0].partition(":")
                ranges.append(inner or domain)
        self.launches.append(
            Launch(
                kind="kernel",
                function_name=function_of(name),
                name=name,
                mangled_name=name if name.startswith("_Z") else "",
                grid=grid,
                block=block,
                stream=_whole(cell(row, "Stream")),
                context=_whole(cell(row, "Context")),
                nvtx=tuple(ranges),
            )
        )
        # The GPU's attributes, where they are printed, say the same and are put as any metric.
        stated = cell(row, "CC") if MAJOR not in self.places else ""
        for metric, number in zip((MAJOR, MINOR), parse_capability(stated.replace(",", ".")) or (), strict=False):
            self._store(launch, metric, float(number))
        return launch

    def _put(self, launch: int, name: str, unit: str, text: str) -> None:
        factor, number = factor_of(unit), math.nan
        value = value_of(text, self.mark)
        if isinstance(value, str):
            self.texts.setdefault(name, {})[launch] = value
        elif factor is None:
            self.unknown.setdefault(unit, {})[name] = None
        elif value is not None:
            number = float(value) * factor
        self._store(launch, name, number)

    def _store(self, launch: int, name: str, value: float) -> None:
        column = self.numbers.setdefault(name, array("d"))
        if launch >= len(column):
            column.extend([math.nan] * (launch + 1 - len(column)))
        column[launch] = value

    def table(self) -> MetricTable:
        count = len(self.launches)
        if not count:
            raise RooflineError(
                "Cannot use", self.path, "it holds no profiled kernel", "Check that ncu's filters let one pass."
            )
        for column in self.numbers.values():
            column.extend([math.nan] * (count - len(column)))
        # Launches that took no time failed, and ncu prints the NaN of all their counters as 0; these become NaN.  One time of
        # several that is 0 is only printed in too large a unit.
        times = [self.numbers[name] for name in _TIMES if name in self.numbers]
        known = ([time for column in times if not math.isnan(time := column[launch])] for launch in range(count))
        failed = [launch for launch, found in enumerate(known) if found and not any(found)]
        for name, column in self.numbers.items():
            for launch in failed if not name.startswith(_NOT_MEASURED) and not name.endswith(".peak_sustained") else ():
                column[launch] = math.nan
        values: dict[str, Sequence[Value | None]] = dict(self.numbers)
        for name, texts in self.texts.items():  # what is missing is NaN among numbers, None among texts
            values[name] = [texts.get(launch, None if n != n else n) for launch, n in enumerate(self.numbers[name])]

        def size(what: str, row: int) -> tuple[int, int, int] | None:  # where the table has no columns for them
            cells = [values[name][row] if (name := f"launch__{what}_dim_{axis}") in values else None for axis in "xyz"]
            x, y, z = (int(cell) if isinstance(cell, float) and 0 <= cell < 2**32 else -1 for cell in cells)
            return (x, y, z) if min(x, y, z) >= 0 else None

        warnings = []
        if self.strange:
            what = "Columns" if self.heading.wide else "Rows with display labels"
            more = "" if self.heading.wide else " --page raw prints metrics by their full names."
            warnings.append(f"{what} of {self.path} that name no metric were left out: {listed(self.strange, 3)}.{more}")
        if failed:
            why = "took no time, so it was not measured, and its counters are left out"
            warnings.append(f"{self.path}: launch {listed(map(str, failed))} {why}.")
        for unit, metrics in self.unknown.items():
            why = f"in a unit that is not known, {unit!r}, were left out"
            warnings.append(f"Metrics of {self.path} {why}: {listed(metrics, 3)}.")
        return MetricTable(
            path=self.path,
            format="ncu-csv",
            rows=[
                replace(one, grid=one.grid or size("grid", row), block=one.block or size("block", row))
                for row, one in enumerate(self.launches)
            ],
            values=values,
            warnings=tuple(warnings),
            session=Session(process=self.process, host=self.process.host),
        )


def function_of(name: str) -> str:
    """The bare function of a demangled kernel name: ``void a::b<int>(c)`` is b."""
    depth, kept = 0, ""
    for character in name.replace("(anonymous namespace)", "{}").replace("(anonymous class)", "{}"):
        if character == "(" and not depth and kept:
            break
        if character in "<([{":
            depth += 1
        elif character in ">)]}":
            depth = max(depth - 1, 0)
        elif not depth:
            kept += character
    words = kept.replace("::", " ").split()
    return words[-1] if words else name


def _whole(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) < _MANY_DIGITS else None


def decimal_mark(texts: Iterable[str]) -> str:
    """The decimal point or comma that most of the values that leave no doubt show, "" where none does.

    "9,00" and "1.234,5" have a decimal comma, "0.25" and "1,234.5" a decimal point, "1,234" may be either.
    """
    found = Counter(filter(None, map(mark_of, texts)))
    return found.most_common(1)[0][0] if found else ""


def mark_of(text: str) -> str:
    """The decimal mark of a value, "" where there is none or it may be one of groups."""
    value = _plain(text) if "." in text or "," in text else ""
    marks = re.findall(r"[.,]", value) if _NUMBER.fullmatch(value) else []
    if len(set(marks)) == 2 and marks.count(marks[-1]) == 1:
        return str(marks[-1])
    before, _, after = value.partition(marks[0]) if len(marks) == 1 else ("1", "", "000")
    group = len(after) == 3 and after.isdecimal() and before.lstrip("+-0") and len(before.lstrip("+-")) <= 3
    return "" if group else str(marks[0])


def value_of(text: str, mark: str) -> Value | None:
    """A printed value with decimal mark ``mark``: a float, the text itself where it is no number, None where there is none."""
    if mark == ".":
        try:
            number = float(text)
            return None if math.isnan(number) else number
        except ValueError:
            pass
    value = _plain(text)
    if _MISSING.fullmatch(value):
        return None
    if match := _INFINITE.fullmatch(value):
        return float(f"{match[1]}inf")
    if not _GROUPED[mark].fullmatch(value):
        return text.strip().rstrip("\0")
    grouping = "," if mark == "." else "."
    return float(re.sub(rf"[\s'{grouping}]", "", value).replace(mark, "."))


def _plain(text: str) -> str:
    value = text.strip()
    found = _INSTANCES.fullmatch(value) if value.endswith(")") else None
    return found[1] if found else value


@lru_cache(maxsize=1024)
def factor_of(unit: str) -> float | None:
    """What a printed number has to be multiplied with, None for a unit that is not known.

    Rates are stored per second, cycle, block, ...; only a time that stands alone is in nanoseconds.
    """
    units, factors, names = load_words().ncu["units"], [], []
    above, _, below = unit.strip().partition("/")
    for word in (above, below):
        whole = word == "" or word.lower() in units  # "pass", "page": the first letter is no prefix
        names.append(word.lower() if whole else word[1:].lower())
        prefix = "" if whole else word[0]
        if not (whole or names[-1] in units) or prefix not in _PREFIXES:
            return None
        factors.append(_PREFIXES[prefix])
    return factors[0] / factors[1] * (1e9 if not below and names[0] in _TIME_UNITS else 1.0)
