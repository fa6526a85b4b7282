"""The source view: what each instruction of a launch did, summed to lines, loops and functions; its columns, declared once.

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

from ncu_roofline.base.files import ReportNames
from ncu_roofline.base.texts import clean, one_line, plural
from ncu_roofline.formats.inputs.text import last_part
from ncu_roofline.model import Displayed, Roofline
from ncu_roofline.model.roofline import Table, frame_of, seen
from ncu_roofline.rendering.document import Column

WORKS = ("fp64", "fp32", "fp16", "bf16", "tensor")
"""Kinds of work that have a column ``work_KIND`` of their own and add to ``work``; tensor is the sum over tensor types."""

INT32 = "int32"
"""The kind whose column is ``work_int32``: a precision of the model, and no part of ``work``."""

FLOPS = "work"
INTEGERS = f"work_{INT32}"
INTENSITIES = {FLOPS: "intensity", INTEGERS: "intensity_int32"}
"""What performance may count, by column, and the column of its intensity."""

WITHIN = " < "
"""Between a line and the one that it is inlined at, in the column ``inlined``."""


_text, _integer, _number = Column.text, Column.integer, Column.number

WHERE = (
    _text("report", "report the row comes from: its path, or of commands its base name"),
    _integer("launch", "position of the result in its report, from 0"),
    _text("kernel", "short readable name, unique among different kernels of the result"),
    _text("device", "name of the GPU"),
)

COUNTS = (
    _number("executed", "inst", "warp instructions executed"),
    _number("active", "thread_inst", "threads that took part in them, predicated off or not"),
    _number("threads", "thread_inst", "threads whose predicate was true"),
    *(_number(f"work_{kind}", "flop", f"operations of {kind}; integer tensor operations count as well") for kind in WORKS),
    _number("work", "flop", "floating-point and tensor operations over all kinds"),
    _number(
        INTEGERS,
        "op",
        "operations of INT32: integer arithmetic and logic on CUDA cores, a thread's instruction is one; no part of work",
    ),
    _number("requested", "byte", "bytes that global memory accesses requested from L1: sectors x 32"),
    _number("ideal", "byte", "the bytes that the same accesses would need, were their addresses contiguous"),
    _number("local", "byte", "bytes of local memory (register spills, arrays indexed at run time) requested from L1"),
    _number("shared", "", "wavefronts of shared memory accesses"),
    _number("shared_ideal", "", "wavefronts the same accesses would need without bank conflicts"),
    _number("samples", "", "samples of warps at these instructions"),
    _number("not_issued", "", "those samples in which the warp's scheduler issued nothing"),
)

SHARES = (
    _number("share_samples", "ratio", "share of the kernel's samples: of the time of its warps"),
    _number("share_work", "ratio", "share of the kernel's operations"),
    _number("share_int32", "ratio", "share of the kernel's INT32 operations"),
    _number("share_requested", "ratio", "share of the bytes that the kernel's accesses to global memory requested from L1"),
    _number("share_excess", "ratio", "share of the kernel's `requested` bytes that contiguous addresses would save"),
    _number("intensity", "flop/byte", "work / (requested + local): at L1"),
    _number("intensity_int32", "op/byte", "work_int32 / (requested + local): at L1"),
    _number(
        "lanes",
        "",
        "threads active per warp instruction, of 32: active / executed; threads / executed where these were not counted",
    ),
    _number(
        "share_integer",
        "ratio",
        "share of the instructions here (of warps; of threads where only these were counted) that are integer arithmetic",
    ),
    _text("stall", "the reason for which warps were stalled here most often, '' where not sampled"),
    _number("share_stall", "ratio", "its share of the samples here"),
)

INSTRUCTIONS = (
    *WHERE,
    _text("function", "function whose code it is, mangled; '' for addresses outside of all code of the report"),
    _text("owner", "function that it belongs to, mangled: `function`, or one whose code lies inside of it"),
    _integer("address", "address of the instruction on the GPU"),
    _integer("offset", "bytes from the start of the function; -1 outside"),
    _text("opcode", "opcode as far as it is known; 'op 0x1a3' for one that is not, '' outside"),
    _text("sass", "the whole instruction, where nvdisasm was at hand; else ''"),
    _text("kind", "what it does: fp64, fp32, fp16, bf16, tensor, integer, conversion, memory, shared, control, move, other"),
    _text("file", "source file of the innermost line; '' without line table"),
    _integer("line", "that line, from 1; -1 without"),
    _text("inlined", "where that line is inlined, innermost first: 'file:line' separated by ' < '"),
    _integer("block", "basic block of the function, from 0; -1 outside"),
    _integer("loop", "id of the innermost loop; -1 in none"),
    *COUNTS,
    *SHARES,
)

LINES = (
    *WHERE,
    _text("file", "source file; '' for code without line"),
    _integer("line", "line, from 1; -1 for code without line, by function, -2 outside of the report's code"),
    _text("text", "the line's text, where its source is known; of code without line its function, mangled"),
    _integer("instructions", "instructions of this line"),
    *COUNTS,
    *SHARES,
)

LOOPS = (
    *WHERE,
    _integer("loop", "id of the loop in its launch, from 0, outer before inner; -1 for code that none holds, -2 outside"),
    _text("function", "function whose loop it is, mangled"),
    _integer("parent", "id of the loop around it, or around all calls of its function; -1 for none"),
    _integer("depth", "1 for an outermost loop"),
    _integer("header", "offset of its first block in the function", form="hex"),
    _integer("end", "offset behind its last instruction"),
    _text("file", "file that its function begins in, or that most of its lines are in; '' without line table"),
    _integer("first_line", "first line in that file; -1 without"),
    _integer("last_line", "last line in that file; -1 without"),
    _integer("instructions", "instructions of the loop, with those of inner loops and called functions"),
    _number("entries", "", "how often warps entered it; NaN where counts do not show it"),
    _number("trips", "", "iterations per entry and warp"),
    *COUNTS,
    *SHARES,
    _number(
        "performance",
        "flop/s",
        "operations / (share_samples x run time), for loops that hold most of the kernel's time; per second in `unit`",
    ),
    _number("performance_least", "flop/s", "operations / run time of the kernel: what it did at least"),
    _number("attainable", "flop/s", "min(compute roof, intensity x L1 roof); NaN where performance is"),
    _text(
        "performance_of",
        "which operations these three count: work, or work_int32 in launches that INT32 limits or that do no other work",
    ),
    _text("unit", "their unit: flop, or op for work_int32 and where all work is of integer tensor instructions"),
    _text("notes", "why there is no performance, and which functions that it calls are counted with it"),
)

FUNCTIONS = (
    *WHERE,
    _text("function", "mangled name; '' for addresses outside of all code of the report"),
    _text("name", "readable name"),
    _text("role", "kernel, called (code in another function), inlined or outside"),
    _text("file", "source file of its first line; '' without"),
    _integer("line", "that line; -1 without"),
    _integer("instructions", "instructions of its code"),
    *COUNTS,
    *SHARES,
)

STALLS = (
    *WHERE,
    _text("function", "function, mangled; '' outside"),
    _integer("offset", "bytes from the start of the function; -1 outside"),
    _text("reason", "stall reason as ncu names it, without prefix: long_scoreboard, wait, selected ..."),
    _number("samples", "", "samples of warps for this reason"),
    _number("not_issued", "", "those in which the scheduler issued nothing"),
)

TOTALS = (
    *WHERE,
    _text("quantity", "a column of the frame of instructions, or opcodes: instructions of the names that the counter has"),
    _text("unit", "its unit"),
    _number("sum", "", "sum over all instructions, those outside of the code too"),
    _number("outside", "", "of it, at addresses outside of the report's code"),
    _number("unlined", "", "of it, at instructions without source line"),
    _number("counter", "", "what the kernel's own counters say; NaN without"),
    _number("ratio", "ratio", "sum / counter"),
    _text("metrics", "the counters"),
    _text("notes", "what to know where the two differ"),
)

FINDINGS = (
    *WHERE,
    _text(
        "finding",
        "excess, gaps, bank-conflict, divergence, unfused, fp64-by-accident, conversion, address, integer, tensor-feed, spill, "
        "called-library or stall",
    ),
    _text("file", "source file; '' without line table"),
    _integer("line", "line; -1 without"),
    _text("function", "function, mangled"),
    _integer("offset", "offset of the instruction that has the most of it"),
    _integer("loop", "innermost loop; -1 for none"),
    _number("share", "ratio", "share of the kernel that it touches, of what `of` names"),
    _text(
        "of",
        "what the share is of: samples, global-memory traffic at L1, bytes requested from L1 (of local memory, too), "
        "shared wavefronts, work, instructions",
    ),
    _text("cause", "what it is in a few words, where `finding` does not say that"),
    _text("message", "the finding in a sentence"),
    _text("advice", "what to do, in a sentence"),
)

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
