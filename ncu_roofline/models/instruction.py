"""The instruction roofline: warp instructions per second over warp instructions per memory transaction.

Source: Ding, Williams, "An Instruction Roofline Model for GPUs" (2019); the counters are in ``data/instruction.toml``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ncu_roofline.ceilings import Ceilings
from ncu_roofline.model import columns
from ncu_roofline.model.grouping import Grouping, group
from ncu_roofline.model.instructions import LANES
from ncu_roofline.model.kernels import CORE_LEVELS, kernels_table
from ncu_roofline.model.known import levels_of
from ncu_roofline.model.measurements import FloatArray, Measurements, Quantity
from ncu_roofline.model.points import points_table
from ncu_roofline.model.roofline import (
    CeilingsFile,
    Roofline,
    Source,
    ceilings_of,
    check_ceilings,
    measurements_of,
    of_columns,
    of_rows,
    ordered,
)
from ncu_roofline.model.roofs import Roofs, RoofValues
from ncu_roofline.model.selection import Selection
from ncu_roofline.model.verdicts import Verdicts
from ncu_roofline.models.instruction_kernels import Availability
from ncu_roofline.models.instruction_roofs import roof_rows
from ncu_roofline.models.instruction_traffic import in_transactions
from ncu_roofline.spec import InstructionSpec, Precision, Spec, load_instructions, load_spec
from ncu_roofline.spec.instruction import EXECUTED, Kind

# Said of a kernel that loses more than this share of its lanes, as the rule on access patterns does.
_LOST_LANES = 0.3


@dataclass(frozen=True)
class InstructionRoofline(Roofline):
    """A Roofline whose work is warp instructions (inst) and whose traffic is memory transactions (txn).

    Units of the points: `columns.points_of("instruction")`.  ``to_collect`` are metrics that some launch lacks for its dots.
    """

    view: ClassVar[str] = "instruction"
    to_collect: tuple[str, ...] = ()


def instruction_roofline(
    report: Source | Measurements | Sequence[Source],
    ceilings: CeilingsFile | Sequence[CeilingsFile] | None = None,
    *,
    clock: str = "profiled",
    by: str = "launch",
    select: Selection | None = None,
) -> InstructionRoofline:
    """The instruction roofline of one or several reports; Measurements must be those of `measurements_of(instructions=True)`.

    Points: ``inst`` is all executed warp instructions against the transactions of 32 bytes of each level (L1 as Ding and
    Williams count it: sectors of global, local and texture memory, and 4 for each wavefront of shared memory where the report
    has them); ``inst.global_ld`` global loads against the L1 sectors that they ask for, ``inst.shared`` shared loads and stores
    against wavefronts of 128 bytes.  Roofs: instruction issue (inst/s), bandwidths (txn/s; bytes per second / bytes of a
    transaction, measured ceilings too), and walls (inst/txn) at 1 / transactions of one instruction for ``inst.global_ld``
    (1, 4, 8, 32) and ``inst.shared`` (1 to 32).
    ``clock``, ``by`` and ``select`` as of `roofline`; precisions of ``select`` are these ids.
    Raises RooflineError for files that can't be read and for ceilings that fit no GPU of the reports.
    """
    measurements = report if isinstance(report, Measurements) else measurements_of(report, instructions=True)
    files = ceilings_of(ceilings)
    check_ceilings(files, zip(measurements.device, measurements.capability, strict=True))
    selection = select or Selection()
    with np.errstate(all="ignore"):  # counters of odd reports may be any number: what overflows is missing, without a warning
        return _Build(selection.launches(measurements), files, clock, by, selection).roofline()


class _Counted(Precision):
    """A kind of instruction in the place of a precision; all kinds stand under the one roof of instruction issue."""

    def roof_ids(self) -> tuple[str, ...]:
        return (load_instructions().issue,)


class _Build:
    """The tables of an instruction roofline, from the launches that are wanted."""

    def __init__(self, m: Measurements, files: Sequence[Ceilings], clock: str, by: str, select: Selection) -> None:
        self.m, self.select = m, select
        self.counted: InstructionSpec = load_instructions()
        kinds = tuple(_Counted(kind.id, kind.label, "core", "inst", i, ()) for i, kind in enumerate(self.counted.kinds))
        self.spec: Spec = replace(load_spec(), precisions=kinds)
        self.grouping: Grouping = group(m, by)
        self.roofs = Roofs(m, files, clock)
        self.traffic: Mapping[str, Quantity] = in_transactions(m, self.counted)

    @cached_property
    def levels(self) -> tuple[str, ...]:
        """Levels that are shown."""
        return tuple(level.id for level in levels_of(self.m, self.spec) if self.select.wants("", level.id))

    def roofline(self) -> InstructionRoofline:
        points = ordered([table for kind in self.counted.kinds for table in self._points(kind)], columns.POINTS)
        kernels = kernels_table(
            self.m, self.grouping, self.spec, self.levels, Verdicts(self.m, self.grouping, load_spec(), self.roofs)
        )
        available = Availability(
            self.m, self.grouping, self.traffic, tuple(level for level in CORE_LEVELS if level in self.levels)
        )
        kernels |= {"status": available.status(), "missing": available.missing(), "notes": available.notes()}
        kernels["work"] = available.executed()
        return InstructionRoofline(
            points,
            of_rows(roof_rows(self.roofs, self.spec, self.counted, points, self.select), columns.ROOFS),
            of_columns(kernels, columns.KERNELS),
            to_collect=self._to_collect(),
        )

    def _points(self, kind: Kind) -> list[dict[str, Any]]:
        """The tables of one kind: of all instructions at every level, of the others at theirs."""
        work = self.m.instructions.get(kind.id)
        if work is None:
            return []
        alone = {kind.level: self.m.transactions[kind.id]} if kind.id in self.m.transactions else {}
        traffic = alone if kind.level else self.traffic
        m = replace(self.m, work={kind.id: work}, summands={}, fused={}, traffic=traffic)
        bandwidth = {name: _scaled(roof, 1 / kind.bytes) for name, roof in self.roofs.bandwidth().items() if name in traffic}
        tables = points_table(m, self.grouping, self.spec, self.roofs.compute(), bandwidth, self.select, self.levels)
        if kind.id == EXECUTED:
            lanes = self._lanes()
            for table in tables:
                table["lanes"] = lanes[table["_row"]]
                table["notes"] = _noted(table["notes"], table["lanes"] * self.counted.warp, self.counted.warp)
        return tables

    def _lanes(self) -> FloatArray:
        """Share of the lanes that had a true predicate, over the launches of which it is known."""
        missing = Quantity.missing(len(self.m))
        lanes = self.m.instructions.get(LANES, missing).values
        everything = np.where(np.isnan(lanes), np.nan, self.m.instructions.get(EXECUTED, missing).values)
        return self.grouping.total(np.nan_to_num(lanes)) / self.grouping.total(np.nan_to_num(everything))

    def _to_collect(self) -> tuple[str, ...]:
        """For what some launch of a known chip lacks; a launch that another counter served lacks nothing."""
        found: list[str] = []
        missing = Quantity.missing(len(self.m))
        for chip in dict.fromkeys(self.m.capability):
            if not self.spec.read_as(chip):
                continue
            rows = np.array([one == chip for one in self.m.capability])
            lacking = [
                level
                for level in CORE_LEVELS
                if level in self.levels and np.isnan(self.traffic.get(level, missing).values[rows]).any()
            ]
            work = bool(np.isnan(self.m.instructions.get(EXECUTED, missing).values[rows]).any())
            found += self.counted.needs(load_spec(), chip, tuple(lacking), work=work)
        return tuple(dict.fromkeys(found))


def _scaled(roof: RoofValues, factor: float) -> RoofValues:
    return RoofValues(roof.value * factor, roof.theoretical * factor, roof.measured)


def _noted(notes: Any, working: FloatArray, warp: float) -> Any:
    """Notes with a sentence where many lanes do nothing."""
    result = notes.copy()
    for row in np.flatnonzero(working < (1 - _LOST_LANES) * warp):
        text = f"{working[row]:.0f} of {warp:g} lanes work on average"
        result[row] = f"{result[row]}; {text}" if result[row] else text
    return result
