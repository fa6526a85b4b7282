"""What changed between reports of one application: `compare()`, kernel by kernel, level by level, and in total."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ncu_roofline.model import Displayed, Roofline
from ncu_roofline.model.names import short_names
from ncu_roofline.model.roofline import as_frame, of_rows
from ncu_roofline.models import columns
from ncu_roofline.models.comparison_levels import level_rows
from ncu_roofline.models.comparison_matching import match
from ncu_roofline.models.comparison_rows import Noise, Pair, kernel_rows, summary_row
from ncu_roofline.models.comparison_sides import Side, Totals, side_of

if TYPE_CHECKING:
    import pandas as pd

TIMES = ("auto", "raw", "normalised")
AGAINST = ("baseline", "previous", "both")
TOLERANCE = 0.02  # of the run time: what back-to-back runs of one kernel under a profiler's locked clocks differ by

Table = Mapping[str, Any]


@dataclass(frozen=True)
class Settings:
    """How to compare.

    ``tolerance``: changes up to this ratio are none, whatever the measured spread.  ``times``: "normalised" compares times at
    the baseline's SM clock (where what binds runs at that clock), "raw" as measured, "auto" normalised where clocks differ by
    more than 1 %.  ``in_order``: the n-th launch of a kernel and configuration is compared with the n-th, instead of all
    with all.  ``against``: the "baseline", the "previous" step, or "both".  ``top``: only that many kernels, those with the
    most time in either report; the totals keep all.  ``precisions`` and ``levels`` (ids) limit `levels`; empty is all.
    ``roof_spreads``: relative spread of measured roofs by level or roof id, which counts where shares of the roof are compared.
    """

    tolerance: float = TOLERANCE
    times: str = "auto"
    in_order: bool = False
    against: str = "both"
    top: int = 0
    precisions: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()
    roof_spreads: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.times not in TIMES:
            raise ValueError(f"times must be one of {', '.join(TIMES)}, not {self.times!r}")
        if self.against not in AGAINST:
            raise ValueError(f"against must be one of {', '.join(AGAINST)}, not {self.against!r}")
        if not 0 <= self.tolerance < 1:
            raise ValueError(f"tolerance must be a ratio from 0 to 1, not {self.tolerance!r}")


@dataclass(frozen=True)
class Comparison(Displayed):
    """Kernels, levels, summary and thresholds as tables of equally long columns; the properties are the same as DataFrames.

    Columns, units and meaning: `ncu_roofline.models.columns`, COMPARISON_KERNELS and so on.
    """

    view: ClassVar[str] = "comparison"
    kernel_columns: Table
    level_columns: Table
    summary_columns: Table
    threshold_columns: Table = field(default_factory=lambda: of_rows([], columns.COMPARISON_THRESHOLDS))

    @cached_property
    def kernels(self) -> pd.DataFrame:
        """One row per kernel and pair of reports, the largest change of time first."""
        return as_frame(self.kernel_columns)

    @cached_property
    def levels(self) -> pd.DataFrame:
        """Per kernel (and for the application) its work by precision, traffic by level, and the roofline of each two."""
        return as_frame(self.level_columns)

    @cached_property
    def summary(self) -> pd.DataFrame:
        """One row per pair of reports: the application."""
        return as_frame(self.summary_columns)

    @cached_property
    def thresholds(self) -> pd.DataFrame:
        """One row per kernel and threshold, after `ncu_roofline.models.thresholds.evaluate`."""
        return as_frame(self.threshold_columns)


def compare(
    baseline: Roofline, *new: Roofline, settings: Settings | None = None, labels: Sequence[str] | None = None
) -> Comparison:
    """Compare Rooflines of one application with the first of them, and each with the one before.

    Give Rooflines by launch (`roofline(report)`), unfiltered by level: what binds is sought among the levels they hold.
    Kernels are matched by full name, grid and block, what is left then by name alone.  Launches of one kernel and configuration
    are compared per launch: median of their times, mean of their work and traffic; sums are told apart.
    ``labels``: what to call the reports, the baseline first; default their paths.
    Raises ValueError without a second Roofline, and for as many labels as there are not reports.
    """
    settings = settings or Settings()
    if not new:
        raise ValueError("there is nothing to compare the baseline with")
    names = labels if labels is not None else [""] * (len(new) + 1)
    sides = [side_of(one, label) for one, label in zip((baseline, *new), names, strict=True)]
    full = [name for side in sides for name in side.names]
    short = dict(zip(full, short_names(full), strict=True))
    kernels: list[dict[str, Any]] = []
    levels: list[dict[str, Any]] = []
    summaries: list[dict[str, Any]] = []
    with np.errstate(all="ignore"):  # counters of odd reports may be any number: what overflows is no number
        for pair in _pairs(sides, settings, short):
            rows = kernel_rows(pair, Noise(settings.tolerance, settings.roof_spreads), settings.times)
            summaries.append(summary_row(pair, rows, settings.tolerance))
            kept = _longest(rows, settings.top)
            levels += level_rows(pair, kept, len(kernels), settings.precisions, settings.levels)
            kernels += kept
        return Comparison(
            of_rows(kernels, columns.COMPARISON_KERNELS),
            of_rows(levels, columns.COMPARISON_LEVELS),
            of_rows(summaries, columns.COMPARISON_SUMMARY),
        )


def _pairs(sides: Sequence[Side], settings: Settings, short: Mapping[str, str]) -> list[Pair]:
    """Each report with the baseline and with the one before; the first report after the baseline has but one."""
    result = []
    for step in range(1, len(sides)):
        for against, reference in (("baseline", 0), ("previous", step - 1)):
            same = reference == 0 and against == "previous" and settings.against == "both"
            if settings.against in (against, "both") and not same:
                before, after = sides[reference], sides[step]
                found = match(before, after, settings.in_order)
                totals = Totals(before, found.before, found.count), Totals(after, found.after, found.count)
                result.append(Pair(step, against, before, after, found, *totals, short))
    return result


def _longest(rows: list[dict[str, Any]], top: int) -> list[dict[str, Any]]:
    """The ``top`` rows with the most time on either side, in the order given; all for 0."""
    if not top:
        return rows

    def most(row: dict[str, Any]) -> float:
        return float(np.nanmax([row["total_seconds_before"], row["total_seconds"], 0.0]))

    least = sorted(map(most, rows), reverse=True)[:top][-1:] or [0.0]
    return [row for row in rows if most(row) >= least[0]][:top]
