"""The source view: what each instruction of a launch did, summed to lines, loops and functions; its columns.

Bytes are those requested of L1 by global memory accesses (32-byte sectors x 32), work is operations executed.  A number that
nobody counted is NaN.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import PureWindowsPath
from typing import Any, ClassVar

import numpy as np

from ncu_roofline.analyses.source.code import WITHIN
from ncu_roofline.base.files import ReportNames
from ncu_roofline.base.texts import clean, one_line, plural
from ncu_roofline.chips.fields import DATA, read
from ncu_roofline.formats.inputs.text import last_part
from ncu_roofline.model import Displayed, Roofline
from ncu_roofline.model.roofline import Table, frame_of, seen
from ncu_roofline.rendering.document import Column, columns_of

_OF = columns_of(read(DATA / "columns" / "source.toml", dict[str, Any]))
WHERE, COUNTS = _OF["where"], _OF["counts"]
_COUNTED = (*COUNTS, *_OF["shares"])
INSTRUCTIONS = (*WHERE, *_OF["instructions"], *_COUNTED)
LINES = (*WHERE, *_OF["lines"], *_COUNTED)
LOOPS = (*WHERE, *_OF["loops"], *_COUNTED, *_OF["performance"])
FUNCTIONS = (*WHERE, *_OF["functions"], *_COUNTED)
STALLS, TOTALS, FINDINGS = ((*WHERE, *_OF[name]) for name in ("stalls", "totals", "findings"))
SEEN = {name: _OF[f"seen_{name}"] for name in ("loops", "lines", "functions", "instructions")}
TABLES = {
    "lines": LINES,
    "outer_lines": LINES,
    "loops": LOOPS,
    "functions": FUNCTIONS,
    "instructions": INSTRUCTIONS,
    "stalls": STALLS,
    "totals": TOTALS,
    "findings": FINDINGS,
}

_PARTS = 6  # of a path at most that a file is called by


@dataclass(frozen=True, repr=False)
class SourceRoofline(Displayed):
    """Lines, loops, functions and instructions of the launches chosen, as tables of equally long columns.

    Columns, their units and their meaning: `TABLES`.  ``roofline`` has the points and roofs of
    the same launches; ``texts`` the source files that are known, by name.
    """

    view: ClassVar[str] = "source"
    counted: ClassVar[Mapping[str, str]] = {f"{name}_columns": name for name in ("loop", "line", "instruction")}
    glance: ClassVar[tuple[Column, ...]] = seen(
        LOOPS, "loop", "file", header="offset", first_line="from", last_line="to", share_samples="samples"
    )
    line_columns: Table
    outer_line_columns: Table
    loop_columns: Table
    function_columns: Table
    instruction_columns: Table
    stall_columns: Table
    total_columns: Table
    finding_columns: Table
    roofline: Roofline
    texts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @staticmethod
    def joined(parts: Sequence[SourceRoofline]) -> SourceRoofline:
        """The launches of several, in order.  Raises ValueError for none."""
        if not parts:
            raise ValueError("no parts given")
        if len(parts) == 1:
            return parts[0]
        rooflines = [part.roofline for part in parts]
        missing = [np.full(len(one.kernel_columns["kernel"]), np.nan) for one in rooflines]

        def behind(tables: Sequence[Mapping[str, Any]]) -> Table:
            """The rows of several tables behind each other; of kernels what some lack is missing."""
            names = dict.fromkeys(name for table in tables for name in table)
            return {name: np.concatenate([t.get(name, m) for t, m in zip(tables, missing, strict=True)]) for name in names}

        held = ("point_columns", "roof_columns", "kernel_columns", "traffic", "work")
        whole: dict[str, Any] = {name: behind([getattr(one, name) for one in rooflines]) for name in held}
        for name in ("sources", "everything"):
            whole[name] = tuple(dict.fromkeys(each for one in rooflines for each in getattr(one, name)))
        return SourceRoofline(
            **{field_of(name): behind([part.table(name) for part in parts]) for name in TABLES},
            roofline=Roofline(**whole, asked=rooflines[0].asked),  # without what regroups them
            texts={name: lines for part in reversed(parts) for name, lines in part.texts.items()},
            notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
        )

    def without_folders(self) -> SourceRoofline:
        """The same with source files called by the last parts of their paths: folders say who built them where."""

        def cut(text: str) -> str:
            return WITHIN.join(f"{self.called(file)}:{line}" for file, line in inlined_at(text))

        tables: dict[str, Any] = {}
        for name in TABLES:
            table = tables[field_of(name)] = dict(self.table(name))
            for column, change in (("file", self.called), ("inlined", cut)):
                if column in table:
                    table[column] = np.array([change(one) if one else "" for one in table[column].tolist()], dtype=object)
        return replace(self, **tables, texts={self.called(file): lines for file, lines in self.texts.items()})

    def caveats(self) -> list[str]:
        """What a reader must know of the counts (``notes``), as sentences."""
        return [f"{note[:1].upper()}{note[1:]}." for note in map(clean, self.notes)]

    def table(self, name: str) -> Table:
        """The columns of one of `TABLES`."""
        found: Table = getattr(self, field_of(name))
        return found

    @cached_property
    def report_names(self) -> ReportNames:
        """What its reports are called: as short as tells them apart."""
        return ReportNames.apart(dict.fromkeys(report for report in self.function_columns["report"].tolist() if report))

    @cached_property
    def _file_names(self) -> dict[str, str]:
        named = {file for name in TABLES for file in self.table(name).get("file", np.empty(0)).tolist()}
        inlined = {file for text in set(self.instruction_columns["inlined"].tolist()) for file, _ in inlined_at(text)}
        return files_apart(sorted(file for file in named | inlined | set(self.texts) if file))

    def called(self, file: str) -> str:
        """The name of one of its source files, as short as tells them apart."""
        return self._file_names.get(file) or one_line(last_part(file))

    def counts(self) -> list[str]:
        """How many loops, lines and instructions there are, without the rows of code in none."""
        loops, lines = int((self.loop_columns["loop"] >= 0).sum()), int((self.line_columns["line"] > 0).sum())
        return [plural(loops, "loop"), plural(lines, "line"), *super().counts()[2:]]

    lines = frame_of("line_columns", "One row per source line of a launch.")
    outer_lines = frame_of(
        "outer_line_columns", "The same by the lines of the kernel's own (or a called function's) that code is inlined at."
    )
    loops = frame_of("loop_columns", "One row per loop, and one for the code in none.")
    functions = frame_of("function_columns", "One row per function.")
    instructions = frame_of("instruction_columns", "One row per instruction.")
    stalls = frame_of("stall_columns", "One row per instruction and stall reason that was sampled there.")
    totals = frame_of("total_columns", "One row per quantity: its sum over the instructions beside the kernel's counter.")
    findings = frame_of("finding_columns", "One row per finding.")


def field_of(table: str) -> str:
    """The field of a SourceRoofline that holds one of `TABLES`."""
    return f"{table.removesuffix('s')}_columns"


def inlined_at(text: str) -> list[tuple[str, str]]:
    """The places in a cell of the column ``inlined``, innermost first: file, and what stands for its line."""
    places = (place.rpartition(":") for place in text.split(WITHIN) if place)
    return [(file, line) for file, _, line in places]


def files_apart(paths: Iterable[str]) -> dict[str, str]:
    """What files are called, of Windows too: as many of the last parts of each path as tell it apart."""
    parts = {path: PureWindowsPath(path).parts for path in paths}
    ends = {path: [words[-depth:] for depth in range(1, min(len(words), _PARTS) + 1)] for path, words in parts.items()}
    times = Counter(end for each in ends.values() for end in each)
    return {
        path: one_line("/".join(next((end for end in each if times[end] == 1), parts[path][-_PARTS:])))
        for path, each in ends.items()
    }
