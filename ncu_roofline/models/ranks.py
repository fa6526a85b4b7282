"""Reports of many MPI ranks, merged by kernel: totals and roofs over all ranks, spread, load imbalance and outliers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ncu_roofline.ceilings import Ceilings
from ncu_roofline.errors import RooflineError
from ncu_roofline.importers import MetricTable, PointTable
from ncu_roofline.model import Displayed, Measurements, Roofline, Selection, closing_input, roofline
from ncu_roofline.model.measurements import TextArray
from ncu_roofline.model.roofline import Table, as_frame
from ncu_roofline.models.rank_names import RankNames, rank_names
from ncu_roofline.models.rank_parts import RankPart, rank_part
from ncu_roofline.models.rank_tables import RankRows, kernels_table, points_table, ranks_table
from ncu_roofline.report import Report

if TYPE_CHECKING:
    import pandas as pd

ALL_RANKS = "all ranks"
GROUPINGS = ("kernel", "application")

Source = Report | MetricTable | PointTable | RankPart | str | PathLike[str]
CeilingsFile = Ceilings | str | PathLike[str]


@dataclass(frozen=True)
class Ranks(Displayed):
    """Tables of equally long columns; `kernels`, `points`, `ranks` are the same as DataFrames.

    Columns, their units and their meaning: ``RANK_KERNELS``, ``RANK_POINTS``, ``RANK_RANKS`` of `ncu_roofline.models.columns`.
    ``names`` are the ranks in order, ``origin`` says where they were taken from, ``roofline`` is that of all ranks together.
    """

    view: ClassVar[str] = "ranks"
    names: tuple[str, ...]
    origin: str
    roofline: Roofline
    kernel_columns: Table
    point_columns: Table
    rank_columns: Table

    @cached_property
    def kernels(self) -> pd.DataFrame:
        """One row per kernel and GPU model."""
        return as_frame(self.kernel_columns)

    @cached_property
    def points(self) -> pd.DataFrame:
        """One row per kernel, precision and level."""
        return as_frame(self.point_columns)

    @cached_property
    def ranks(self) -> pd.DataFrame:
        """One row per kernel and rank that ran it."""
        return as_frame(self.rank_columns)


def ranks(
    reports: Sequence[Source],
    ceilings: CeilingsFile | Sequence[CeilingsFile] | None = None,
    *,
    rank: str = "",
    clock: str = "profiled",
    by: str = "kernel",
    select: Selection | None = None,
) -> Ranks:
    """Reports of ranks, merged.

    ``rank``: a regular expression on the path, as `rank_names` takes it.  ``by``: "kernel" (same full name, same GPU model) or
    "application" (everything a rank ran).  ``ceilings``, ``clock`` and ``select`` as in `roofline`; ``top`` is of all ranks.
    Several reports of a rank, and several launches of a kernel, are summed.  Imbalance is max / mean of the ranks' times, whose
    difference is the imbalance time of DeRose, Homer and Johnson (Euro-Par 2007).
    Raises RooflineError for files that can't be read and paths without rank, ValueError for no reports and an unknown ``by``.
    """
    if by not in GROUPINGS:
        raise ValueError(f"by must be one of {', '.join(GROUPINGS)}, not {by!r}")
    chosen = replace(select or Selection(), top_by="kernel")
    parts = [_part(one, chosen) for one in reports]
    if not parts:
        raise ValueError("no reports given")
    sources = [source for part in parts for source in part.sources]
    named = rank_names(sources, rank)
    m = Measurements.joined([part.measurements for part in parts])
    if not len(m):
        raise RooflineError("Cannot merge", f"{len(parts)} reports", "no launch passes the filters", "Loosen the filters.")
    m = Selection(top=chosen.top, top_by="kernel").launches(replace(m, report=_rank_of_each(parts, named)))
    unfiltered = Selection(precisions=chosen.precisions, levels=chosen.levels)
    together = replace(m, report=np.full(len(m), ALL_RANKS, dtype=object))
    whole = roofline(together, ceilings, clock=clock, by=by, select=unfiltered)
    each = roofline(m, ceilings, clock=clock, by="kernel-report" if by == "kernel" else by, select=unfiltered)
    rows = RankRows(whole, each, tuple(named.ordered()), dict(zip(sources, named.ranks, strict=True)))
    return Ranks(rows.names, named.origin, whole, kernels_table(rows), points_table(rows), ranks_table(rows))


def _part(one: Source, select: Selection) -> RankPart:
    if isinstance(one, RankPart):
        return one
    if isinstance(one, (str, PathLike)):
        with closing_input(one) as opened:
            return rank_part(opened, str(one), select)
    return rank_part(one, str(one.path), select)


def _rank_of_each(parts: Sequence[RankPart], named: RankNames) -> TextArray:
    """The rank of each launch of all parts."""
    names = np.array([*named.ranks], dtype=object)
    offsets = np.cumsum([0, *(len(part.sources) for part in parts)])
    found: TextArray = names[np.concatenate([part.index + offset for part, offset in zip(parts, offsets[:-1], strict=True)])]
    return found
