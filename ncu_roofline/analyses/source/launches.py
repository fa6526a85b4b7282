"""One launch of the frames: its rows with their shares, what these are ranked by, and what its report and files are called."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ncu_roofline.analyses.hierarchical.kernels import kernels_of
from ncu_roofline.analyses.hierarchical.style import COUNTED
from ncu_roofline.analyses.source.code import FloatArray
from ncu_roofline.analyses.source.columns import FLOPS, INT32, INTEGERS, INTENSITIES, WHERE
from ncu_roofline.analyses.source.frames import SourceRoofline
from ncu_roofline.analyses.source.instructions import NOWHERE, OUTSIDE, has_lines
from ncu_roofline.base.texts import clean, one_line
from ncu_roofline.base.units import UNITS, format_value
from ncu_roofline.model.roofline import Table
from ncu_roofline.rendering.frames import records

Row = Mapping[str, Any]
KEY = tuple(one.name for one in WHERE)


class Measure(NamedTuple):
    """What rows are ranked by or heat bars show: the column of its share.

    ``heading`` stands above it in texts, ``noun`` is what it is a share of, or ``saved`` where that are bytes to be saved;
    ``label`` and ``meaning`` stand on the page, and ``said`` behind a share there.
    """

    share: str
    heading: str
    noun: str
    label: str
    meaning: str
    said: str
    saved: str = ""


EXECUTED = "executed"
_LOCAL = (
    "share of all bytes that the kernel asks of L1 (global and local memory) that is of local memory here: spilled registers, "
    "arrays indexed at run time"
)
_EXCESS = (
    "share of the bytes that the kernel asks of L1 for global memory, those for local memory left out, that contiguous "
    "addresses would save here"
)
_L1 = "share of all bytes that the kernel asks of L1, by accesses to global and to local memory"
_SAMPLES = "share of the kernel's samples: of the time of its warps"
_OPERATIONS = "share of the kernel's floating-point and tensor operations"
MEASURES = {
    "samples": Measure("share_samples", "samples", "samples", "Samples", _SAMPLES, "of samples"),
    "work": Measure("share_work", "work", "operations", "Work", _OPERATIONS, "of work"),
    INT32: Measure(
        *("share_int32", "INT32", "INT32 operations"),
        *("Integer work", "share of the kernel's INT32 operations", "of integer work"),
    ),
    "traffic": Measure("share_traffic", "L1 bytes", "bytes asked of L1", "L1 bytes", _L1, "of L1 bytes"),
    "local": Measure("share_local", "local bytes", "", "Local bytes", _LOCAL, "of L1 bytes, by local memory"),
    "excess": Measure(
        *("share_excess", "excess", "bytes that contiguous addresses would save"),
        *("Excess", _EXCESS, "of global bytes, in excess", "kernel's bytes of global memory"),
    ),
    EXECUTED: Measure(
        *("share_executed", "of executed", "executed instructions"),
        *("Instructions", "share of the instructions executed", "of instructions"),
    ),
}
RANKED = tuple(name for name, one in MEASURES.items() if one.noun)
"""What the rows of texts can be ranked by."""
_USUAL = ("samples", EXECUTED, "traffic")
"""The first that a launch knows is what its rows are ranked by unless somebody says."""


class Launch:
    """One launch of the frames: ``key`` is what its rows have in the columns KEY.

    ``usage``: its row in the roofline of the kernels.  ``names``: of its functions the readable names by the mangled ones.
    ``unit``: what its performance counts, flop or op; ``works`` is the column of these operations, and ``work_unit`` what the
    column ``work`` counts.  ``has_lines``: whether there are source lines to show; its instructions stand in their place
    otherwise.  ``counted``: the column of what was executed: of warps, or of threads where nobody counted warps.
    """

    def __init__(self, frames: SourceRoofline, *key: Any) -> None:
        self.frames, self.key = frames, key
        report, launch, kernel, device = key
        self.usage = next((one for own, one in kernels_of(frames.roofline).items() if (*own[:3], own[4]) == key), None)
        nothing: Row = {"name": "", "seconds": math.nan, "grid": "", "block": ""}
        about = next(iter(records(self._own(frames.roofline.kernel_columns, *nothing))), nothing)
        self.seconds = float(about["seconds"])
        self.kernel, name = clean(kernel), frames.report_names(report) if report else ""
        self.place = f"launch {launch} of {clean(name)}, {clean(device)}"
        facts = [
            clean(device),
            f"launch {launch} of {one_line(name)}" if report else f"launch {launch}",
            f"grid {about['grid']}, block {about['block']}" if about["grid"] else "",
            format_value(self.seconds, "second", 3) if self.seconds > 0 else "",
        ]
        self.heading = {"kernel": self.kernel, "name": clean(about["name"] or kernel), "facts": list(filter(None, facts))}
        reason = self.usage.reason if self.usage else ""
        self.limit = f"{reason[0].upper()}{reason[1:]}." if reason else ""
        functions = self._table("functions")
        self.names = dict(zip(functions["function"].tolist(), functions["name"].tolist(), strict=True))
        totals, loops = self._table("totals"), self._table("loops")
        self.unit = next(iter(loops["unit"].tolist()), "flop")
        self.works = INTEGERS if INTEGERS in loops["performance_of"].tolist() else FLOPS
        self.work_unit = next(iter(totals["unit"][totals["quantity"] == FLOPS].tolist()), "flop")
        self.has_lines = has_lines(self._table("lines"))
        own = self._table("instructions")
        counts = {EXECUTED: own[EXECUTED], "threads": own["threads"], "traffic": _asked(own)}
        self._wholes = {name: float(values[values > 0].sum()) for name, values in counts.items()}
        self.counted = next((name for name in (EXECUTED, "threads") if self._wholes[name] > 0), EXECUTED)
        self._rows: dict[str, Sequence[Row]] = {}

    @property
    def intensity(self) -> str:
        """The unit of its intensities: FLOP/B or OP/B."""
        return UNITS[COUNTED[self.unit].intensity_unit].symbol

    def table(self, name: str) -> Table:
        """Its rows of a table as columns, where they have counts with shares that the frames lack.

        ``share_executed`` is of threads where a report has only these; ``share_traffic`` of all bytes asked of L1, by global
        and by local memory, of which ``share_local`` is the second part.
        """
        own, wholes = self._table(name), self._wholes
        if EXECUTED not in own:
            return own
        parts = {
            "share_executed": (own[self.counted], wholes[self.counted]),
            "share_traffic": (_asked(own), wholes["traffic"]),
            "share_local": (own["local"], wholes["traffic"]),
        }
        with np.errstate(invalid="ignore"):
            shares = {share: np.asarray(part / (whole if whole > 0 else math.nan)) for share, (part, whole) in parts.items()}
        return own | shares

    def rows(self, name: str) -> Sequence[Row]:
        """The same row by row, as Python values."""
        if name not in self._rows:
            self._rows[name] = records(self.table(name))
        return self._rows[name]

    def intensities(self, rows: Sequence[Row]) -> list[float]:
        """The intensity of each row, of the operations that performance counts."""
        return [row[INTENSITIES[self.works]] for row in rows]

    def _table(self, name: str) -> Table:
        columns = self.frames.table(name)
        return self._own(columns, *columns)

    def _own(self, columns: Mapping[str, Any], *names: str) -> Table:
        here = np.ones(len(columns["launch"]), dtype=bool)
        for name, value in zip(KEY, self.key, strict=True):
            here &= np.asarray(columns[name] == value, dtype=bool)
        return {name: columns[name][here] for name in names}

    def most(self, name: str) -> float:
        """The largest share of this measure that a function has; NaN if nobody counted it."""
        shares = self.table("functions")[MEASURES[name].share]
        return float(max(shares[np.isfinite(shares)], default=math.nan))

    def measure(self, asked: str = "") -> str:
        """What its rows are ranked by: what is ``asked``, unless there is none of that."""
        there = (name for name in (asked, *_USUAL) if name and self.most(name) > 0)
        return next(there, asked or _USUAL[0])


def launches(frames: SourceRoofline) -> list[Launch]:
    """The launches of the frames, the longest first; those without a time come last."""
    tables = map(frames.table, ("functions", "loops", "instructions", "lines"))
    keys = dict.fromkeys(key for table in tables for key in zip(*(table[name].tolist() for name in KEY), strict=True))
    return sorted((Launch(frames, *key) for key in keys), key=lambda one: -_known(one.seconds))


def ranked(rows: Sequence[Row], measure: str) -> list[Row]:
    """Those with most of it first; what is not known comes last."""
    share = MEASURES[measure].share
    return sorted(rows, key=lambda row: (-_known(row[share]), -_known(row["share_executed"])))


def place_text(file: str, line: int, called: Callable[[str], str]) -> str:
    """``smooth.cu:13``; what code without line is."""
    if line == OUTSIDE:
        return "outside"
    return "no line" if line <= 0 or not file else f"{clean(called(file))}:{line}"


def line_text(row: Row, names: Mapping[str, str]) -> str:
    """The text of a line; of code without lines, which function it is; ``names``: readable ones of functions."""
    text = clean(row["text"])
    return f"in {clean(names.get(row['text'], '')) or text}" if row["line"] == NOWHERE and text else text


def _known(value: float) -> float:
    return value if math.isfinite(value) else -1.0


def _asked(counts: Table) -> FloatArray:
    """Bytes asked of L1, by local memory too where that was counted; NaN if those of global memory were not."""
    local = counts["local"]
    return np.asarray(counts["requested"] + np.where(np.isfinite(local), local, 0.0))
