"""One launch of the frames: its rows with their shares, what these are ranked by, and what its report and files are called."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ncu_roofline.analyses.hierarchical.style import COUNTED
from ncu_roofline.analyses.hierarchical.usage import Usage, usages
from ncu_roofline.analyses.source.columns import FLOPS, INT32, INTEGERS, INTENSITIES, WHERE
from ncu_roofline.analyses.source.counts import FloatArray
from ncu_roofline.analyses.source.frames import SourceRoofline
from ncu_roofline.analyses.source.sums import has_lines
from ncu_roofline.base.texts import clean, one_line
from ncu_roofline.base.units import UNITS, format_value
from ncu_roofline.model.roofline import Table

Row = Mapping[str, Any]
Key = tuple[str, int, str, str]
KEY = tuple(one.name for one in WHERE)


@dataclass(frozen=True)
class Measure:
    """What rows are ranked by or heat bars show: the column of its share.

    ``heading`` stands above it in texts, ``noun`` is what it is a share of, or ``saved`` where that are bytes to be saved;
    ``label`` and ``meaning`` stand on the page, and ``said`` behind a share there.
    """

    share: str
    heading: str = ""
    noun: str = ""
    label: str = ""
    meaning: str = ""
    said: str = ""
    saved: str = ""


EXECUTED = "executed"
MEASURES = {
    "samples": Measure(
        *("share_samples", "samples", "samples"),
        *("Samples", "share of the kernel's samples: of the time of its warps", "of samples"),
    ),
    "work": Measure(
        *("share_work", "work", "operations"),
        *("Work", "share of the kernel's floating-point and tensor operations", "of work"),
    ),
    INT32: Measure(
        *("share_int32", "INT32", "INT32 operations"),
        *("Integer work", "share of the kernel's INT32 operations", "of integer work"),
    ),
    "traffic": Measure(
        *("share_traffic", "L1 bytes", "bytes asked of L1", "L1 bytes"),
        "share of all bytes that the kernel asks of L1, by accesses to global and to local memory",
        "of L1 bytes",
    ),
    "local": Measure(
        *("share_local", "local bytes", "", "Local bytes"),
        "share of all bytes that the kernel asks of L1 (global and local memory) that is of local memory here: spilled "
        "registers, arrays indexed at run time",
        "of L1 bytes, by local memory",
    ),
    "excess": Measure(
        *("share_excess", "excess", "bytes that contiguous addresses would save", "Excess"),
        "share of the bytes that the kernel asks of L1 for global memory, those for local memory left out, that contiguous "
        "addresses would save here",
        "of global bytes, in excess",
        "kernel's bytes of global memory",
    ),
    EXECUTED: Measure(
        *("share_executed", "of executed", "executed instructions"),
        *("Instructions", "share of the instructions executed", "of instructions"),
    ),
}
RANKED = tuple(name for name, one in MEASURES.items() if one.noun)
"""What the rows of texts can be ranked by."""
HEATED = tuple(name for name, one in MEASURES.items() if one.label)
"""What the heat bars of the page can show."""
_USUAL = ("samples", EXECUTED, "traffic")
"""The first that a launch knows is what its rows are ranked by unless somebody says."""


@dataclass(frozen=True)
class Launch:
    """One launch of the frames, by its report and its position there."""

    frames: SourceRoofline
    report: str
    launch: int
    kernel: str
    device: str
    _rows: dict[str, list[Row]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def key(self) -> Key:
        """What its rows have in the columns KEY."""
        return self.report, self.launch, self.kernel, self.device

    @property
    def report_name(self) -> str:
        """As short as tells the reports of the frames apart; "" of none."""
        return self.frames.report_names(self.report) if self.report else ""

    @cached_property
    def usage(self) -> Usage | None:
        """Its row in the roofline of the kernels."""
        return next((one for key, one in usages(self.frames.roofline).items() if (*key[:3], key[4]) == self.key), None)

    @property
    def heading(self) -> dict[str, Any]:
        """What is said of it as a whole above charts."""
        about = self.of_kernel
        facts = [
            clean(self.device),
            f"launch {self.launch} of {one_line(self.report_name)}" if self.report else f"launch {self.launch}",
            f"grid {about['grid']}, block {about['block']}" if about.get("grid") else "",
            format_value(self.seconds, "second", 3) if self.seconds > 0 else "",
        ]
        kernel = clean(self.kernel)
        return {"kernel": kernel, "name": clean(about.get("name") or self.kernel), "facts": [fact for fact in facts if fact]}

    @property
    def limit(self) -> str:
        """What limits it by its verdict, as a sentence."""
        reason = self.usage.reason if self.usage else ""
        return f"{reason[0].upper()}{reason[1:]}." if reason else ""

    @cached_property
    def function_names(self) -> dict[str, str]:
        """Of its functions the readable names by the mangled ones."""
        functions = self._own("functions")
        return dict(zip(functions["function"].tolist(), functions["name"].tolist(), strict=True))

    @cached_property
    def of_kernel(self) -> Row:
        """Its name, run time and sizes as the roofline of the kernels has them; empty where that lacks it."""
        kernels = self.frames.roofline.kernel_columns
        rows = np.flatnonzero(self._here(kernels)).tolist()
        return {name: kernels[name][rows[0]] for name in ("name", "seconds", "grid", "block")} if rows else {}

    @property
    def seconds(self) -> float:
        """Run time; NaN where unknown."""
        return float(self.of_kernel.get("seconds", math.nan))

    @cached_property
    def unit(self) -> str:
        """What its performance counts: flop or op."""
        return next(iter(self._own("loops")["unit"].tolist()), "flop")

    @cached_property
    def works(self) -> str:
        """The column of the operations that its performance and intensities count."""
        return INTEGERS if INTEGERS in self._own("loops")["performance_of"].tolist() else FLOPS

    @cached_property
    def work_unit(self) -> str:
        """What its column ``work`` counts: flop or op."""
        totals = self._own("totals")
        return next(iter(totals["unit"][totals["quantity"] == FLOPS].tolist()), "flop")

    @property
    def intensity(self) -> str:
        """The unit of its intensities: FLOP/B or OP/B."""
        return UNITS[COUNTED[self.unit].intensity_unit].symbol

    def intensities(self, rows: Sequence[Row]) -> list[float]:
        """The intensity of each row, of the operations that performance counts."""
        return [row[INTENSITIES[self.works]] for row in rows]

    @cached_property
    def has_lines(self) -> bool:
        """Whether there are source lines to show; its instructions stand in their place otherwise."""
        return has_lines(self._own("lines"))

    @cached_property
    def counted(self) -> str:
        """The column of what was executed: of warps, or of threads where nobody counted warps."""
        return next((name for name in (EXECUTED, "threads") if self._wholes[name] > 0), EXECUTED)

    def table(self, name: str) -> Table:
        """Its rows of a table as columns, where they have counts with shares that the frames lack.

        ``share_executed`` is of threads where a report has only these; ``share_traffic`` of all bytes asked of L1, by global
        and by local memory, of which ``share_local`` is the second part.
        """
        own = self._own(name)
        if EXECUTED not in own:
            return own
        wholes = self._wholes
        parts = {
            "share_executed": (own[self.counted], wholes[self.counted]),
            "share_traffic": (_asked(own), wholes["traffic"]),
            "share_local": (own["local"], wholes["traffic"]),
        }
        with np.errstate(all="ignore"):
            shares = {
                share: np.asarray(part / whole if whole > 0 else np.full(len(part), math.nan))
                for share, (part, whole) in parts.items()
            }
        return own | shares

    def rows(self, name: str) -> list[Row]:
        """The same row by row, as Python values."""
        if name not in self._rows:
            columns = self.table(name)
            cells = zip(*(values.tolist() for values in columns.values()), strict=True)
            self._rows[name] = [dict(zip(columns, row, strict=True)) for row in cells]
        return self._rows[name]

    def _own(self, name: str) -> Table:
        columns = self.frames.table(name)
        here = self._here(columns)
        return {column: values[here] for column, values in columns.items()}

    def _here(self, columns: Mapping[str, Any]) -> Any:
        """Which rows of a table are its own."""
        here = np.ones(len(columns["launch"]), dtype=bool)
        for name, value in zip(KEY, self.key, strict=True):
            here &= np.asarray(columns[name] == value, dtype=bool)
        return here

    @cached_property
    def _wholes(self) -> dict[str, float]:
        """What shares are of: the sums over its instructions."""
        own = self._own("instructions")
        counts = {name: own[name] for name in (EXECUTED, "threads")} | {"traffic": _asked(own)}
        return {name: float(values[values > 0].sum()) for name, values in counts.items()}

    def most(self, name: str) -> float:
        """The largest share of this measure that a function has; NaN if nobody counted it."""
        shares = self.table("functions")[MEASURES[name].share]
        return float(max(shares[np.isfinite(shares)], default=math.nan))

    def measure(self, asked: str = "") -> str:
        """What its rows are ranked by: what is ``asked``, unless there is none of that."""
        there = (name for name in (asked, *_USUAL) if name and self.most(name) > 0)
        return next(there, asked or _USUAL[0])


def launches(frames: SourceRoofline) -> list[Launch]:
    """The launches of the frames, in their order."""
    tables = map(frames.table, ("functions", "loops", "instructions", "lines"))
    keys = dict.fromkeys(key for table in tables for key in zip(*(table[name].tolist() for name in KEY), strict=True))
    return [Launch(frames, *key) for key in keys]


def longest_first(found: Sequence[Launch]) -> list[Launch]:
    """Launches by run time; those without come last."""
    return sorted(found, key=lambda one: -_known(one.seconds))


def ranked(rows: Sequence[Row], measure: str) -> list[Row]:
    """Those with most of it first; what is not known comes last."""
    share = MEASURES[measure].share
    return sorted(rows, key=lambda row: (-_known(row[share]), -_known(row["share_executed"])))


def _known(value: float) -> float:
    return value if math.isfinite(value) else -1.0


def _asked(counts: Table) -> FloatArray:
    """Bytes asked of L1, by local memory too where that was counted; NaN if those of global memory were not."""
    local = counts["local"]
    return np.asarray(counts["requested"] + np.where(np.isfinite(local), local, 0.0))
