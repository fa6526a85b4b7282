"""What texts of the source view are made of: the rows of one launch, their shares as cells and heat bars, names of places."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ncu_roofline.analyses.hierarchical.style import COUNTED
from ncu_roofline.analyses.hierarchical.usage import percent, usages
from ncu_roofline.analyses.source.columns import TABLES, WITHIN
from ncu_roofline.analyses.source.frames import SourceRoofline, files_apart
from ncu_roofline.analyses.source.instructions import OUTSIDE
from ncu_roofline.inputs.source_text import last_part
from ncu_roofline.model.roofline import Table
from ncu_roofline.texts import clean
from ncu_roofline.units import UNITS

Row = dict[str, Any]
_BAR = 8  # characters of a whole heat bar
_EIGHTHS = " ▏▎▍▌▋▊▉"
_FULL, _ASCII_FULL = "█", "#"


@dataclass(frozen=True)
class Measure:
    """What rows are ranked by: the column of their share, and what stands above it."""

    share: str
    heading: str
    noun: str


EXECUTED = "executed"
MEASURES = {
    "samples": Measure("share_samples", "samples", "samples"),
    "work": Measure("share_work", "work", "operations"),
    "traffic": Measure("share_traffic", "L1 bytes", "bytes asked of L1"),
    "excess": Measure("share_excess", "excess", "bytes that contiguous addresses would save"),
    EXECUTED: Measure("share_executed", "of executed", "executed instructions"),
}
"""The first that a launch knows is what its rows are ranked by unless somebody says."""
_USUAL = ("samples", EXECUTED, "traffic")


@dataclass(frozen=True)
class Launch:
    """One launch of the frames, by its report and its position there."""

    frames: SourceRoofline
    report: str
    launch: int
    kernel: str
    device: str

    @cached_property
    def unit(self) -> str:
        """What its work counts: flop or op."""
        return next((row["unit"] for row in self._rows("loops")), "flop")

    @property
    def intensity(self) -> str:
        """The unit of its intensities: FLOP/B or OP/B."""
        return UNITS[COUNTED[self.unit].intensity_unit].symbol

    def rows(self, name: str) -> list[Row]:
        """Its rows of a table, in their order; those with counts have ``share_executed``, ``_traffic`` and ``_local``, too.

        The first is of threads where a report has only these, the others of all bytes asked of L1, by global and local memory.
        """
        rows = self._rows(name)
        if not rows or EXECUTED not in rows[0]:
            return rows
        counted, total = self._executed
        whole = _asked(self._sums)
        return [
            {
                **row,
                "share_executed": _share(row[counted], total),
                "share_traffic": _share(_asked(row), whole),
                "share_local": _share(row["local"], whole),
            }
            for row in rows
        ]

    def _rows(self, name: str) -> list[Row]:
        columns: Table = getattr(self.frames, f"{name.removesuffix('s')}_columns")
        here = ((columns["report"] == self.report) & (columns["launch"] == self.launch)).nonzero()[0]
        names = [one.name for one in TABLES[name]]
        return [dict(zip(names, row, strict=True)) for row in zip(*(columns[n][here].tolist() for n in names), strict=True)]

    @cached_property
    def _sums(self) -> dict[str, float]:
        """The sums over its instructions by quantity."""
        return {row["quantity"]: row["sum"] for row in self._rows("totals")}

    @cached_property
    def _executed(self) -> tuple[str, float]:
        """What is counted of its instructions, and how much of it there is."""
        sums = self._sums
        return next(((name, sums[name]) for name in (EXECUTED, "threads") if sums.get(name, 0.0) > 0), (EXECUTED, math.nan))

    @cached_property
    def places(self) -> Callable[[str], str]:
        """What its source files are called: as short as tells them apart."""
        columns = self.frames.line_columns
        called = files_apart(sorted({name for name in columns["file"].tolist() if name}))
        return lambda file: called.get(file) or last_part(file)

    def most(self, name: str) -> float:
        """The largest share of this measure that a function has; NaN if nobody counted it."""
        shares = (row[MEASURES[name].share] for row in self.rows("functions"))
        return max((share for share in shares if math.isfinite(share)), default=math.nan)

    def measure(self, asked: str = "") -> str:
        """What its rows are ranked by: what is ``asked``, unless there is none of that."""
        there = (name for name in (asked, *_USUAL) if name and self.most(name) > 0)
        return next(there, asked or _USUAL[0])


def launches(frames: SourceRoofline) -> list[Launch]:
    """The launches of the frames, those that took most time first."""
    columns = frames.function_columns
    keys = zip(*(columns[name].tolist() for name in ("report", "launch", "kernel", "device")), strict=True)
    seconds = {(one.report, one.launch): one.seconds for one in usages(frames.roofline).values()}
    found = [Launch(frames, *key) for key in dict.fromkeys(keys)]
    return sorted(found, key=lambda one: -_known(seconds.get((one.report, one.launch), math.nan)))


def _asked(counts: Mapping[str, float]) -> float:
    """Bytes asked of L1, by local memory too where that was counted; NaN if those of global memory were not."""
    local = counts.get("local", math.nan)
    return counts.get("requested", math.nan) + (local if math.isfinite(local) else 0.0)


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else math.nan


def ranked(rows: Sequence[Row], measure: str) -> list[Row]:
    """Those with most of it first; what is not known comes last."""
    share = MEASURES[measure].share

    def place(row: Row) -> tuple[float, float]:
        return -_known(row[share]), -_known(row["share_executed"])

    return sorted(rows, key=place)


def _known(value: float) -> float:
    return value if math.isfinite(value) else -1.0


def share_text(value: float) -> str:
    """A share in per cent; "0 %" is counted, "n/a" is not."""
    return "0 %" if value == 0 else percent(value)


def bars(shares: Sequence[float], ascii_only: bool) -> list[str]:
    """Bars as long as the shares are, the largest of them whole."""
    largest = max((share for share in shares if share > 0), default=math.nan)
    return [_bar(share / largest, ascii_only) if share > 0 else "" for share in shares]


def _bar(part: float, ascii_only: bool) -> str:
    if ascii_only:
        return _ASCII_FULL * math.ceil(_BAR * part)
    whole, rest = divmod(math.ceil(8 * _BAR * part), 8)
    return _FULL * whole + (_EIGHTHS[rest] if rest else "")


def stall_text(row: Mapping[str, Any]) -> str:
    """The most frequent stall with its share: ``long scoreboard 62 %``."""
    if not row["stall"]:
        return ""
    share = f" {100 * row['share_stall']:.0f} %" if math.isfinite(row["share_stall"]) else ""
    return clean(row["stall"]).replace("_", " ") + share


def place_text(file: str, line: int, called: Callable[[str], str]) -> str:
    """``smooth.cu:13``; what code without line is."""
    if line == OUTSIDE:
        return "outside"
    if line <= 0 or not file:
        return "no line"
    return f"{clean(called(file))}:{line}"


def code_text(row: Row) -> str:
    """The whole instruction, or what is known of its opcode."""
    return clean(row["sass"] or row["opcode"])


def chain(row: Row, called: Callable[[str], str]) -> str:
    """The line of an instruction, with the places at which it is inlined: ``weights.cuh:3 < smooth.cu:13``."""
    if not row["line"] > 0:
        return ""
    return WITHIN.join((place_text(row["file"], row["line"], called), *_inlined(row["inlined"], called)))


def _inlined(text: str, called: Callable[[str], str]) -> Iterator[str]:
    for place in filter(None, text.split(WITHIN)):
        file, _, line = place.rpartition(":")
        yield f"{clean(called(file))}:{clean(line)}"
