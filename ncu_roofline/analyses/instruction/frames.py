"""The instruction roofline: warp instructions per second over warp instructions per memory transaction.

Source: Ding, Williams, "An Instruction Roofline Model for GPUs" (2019); the counters are in ``data/instruction.toml``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ncu_roofline.chips import InstructionSpec, Precision, Spec, load_instructions, load_spec
from ncu_roofline.chips.tables import EXECUTED, Kind
from ncu_roofline.chips.thresholds import CLOCK_WARNING
from ncu_roofline.formats.ceilings import Ceilings
from ncu_roofline.model import columns
from ncu_roofline.model.above import ABOVE
from ncu_roofline.model.extract import LANES
from ncu_roofline.model.foreign import disbelieved
from ncu_roofline.model.kernels import everything_of, kernels_table, remarks_of
from ncu_roofline.model.measurements import FloatArray, Measurements, Origin, Quantity, levels_of
from ncu_roofline.model.points import LOW_CLOCK, points_table
from ncu_roofline.model.roofline import (
    CeilingsFile,
    Roofline,
    Source,
    ceilings_of,
    check_ceilings,
    gpu_reports,
    measurements_of,
    of_columns,
    of_rows,
    ordered,
)
from ncu_roofline.model.roofs import Roofs, RoofValues
from ncu_roofline.model.selection import Grouping, Selection, group
from ncu_roofline.model.verdicts import Verdicts

WITHOUT_SHARED = "L1 transactions are sectors of 32 B, shared memory is not among them"
_UNKNOWN_CHIP = "unknown-chip"
# Said of a kernel that loses more than this share of its lanes, as the rule on access patterns does.
_LOST_LANES = 0.3


def _in_transactions(m: Measurements, counted: InstructionSpec) -> dict[str, Quantity]:
    """Transactions of 32 bytes by level id.

    L1 contains shared memory as in Ding and Williams (2019): 4 transactions of 32 bytes for a wavefront of up to 128 bytes.
    Where the report has no wavefronts, or its L1 traffic is what a stock chart counts, L1 stays as it is; notes say which.
    """
    scale = np.full(len(m), 1 / counted.transaction)
    innermost = load_spec().chain[0]
    shared = next(kind for kind in counted.kinds if kind.bytes != counted.transaction)
    traffic = {level: quantity.scaled(scale) for level, quantity in m.traffic.items() if level != shared.level}
    if innermost not in traffic:
        return traffic
    l1, wavefronts = traffic[innermost], m.transactions.get(shared.id, Quantity.missing(len(m)))
    weight = shared.bytes / counted.transaction
    text = f"L1 transactions are sectors of 32 B and {weight:g} for each wavefront of shared loads and stores"
    origins = []  # one for every pair of origins that there is
    for origin in l1.origins:
        origins.append(origin if origin.source == "embedded" else _with_note(origin, WITHOUT_SHARED))
        both = (replace(origin, metrics=f"{origin.metrics}, {other.metrics}") for other in wavefronts.origins)
        origins += [_with_note(pair, text) for pair in both]
    own = np.array([origin.source != "embedded" for origin in l1.origins] + [False])
    added = own[l1.choice] & np.isfinite(wavefronts.values)
    pairs = l1.choice * (len(wavefronts.origins) + 1) + np.where(added, wavefronts.choice + 1, 0)
    values = np.where(added, l1.values + weight * wavefronts.values, l1.values)
    traffic[innermost] = Quantity(values, np.where(np.isnan(values), -1, pairs), tuple(origins))
    return traffic


def _with_note(origin: Origin, note: str) -> Origin:
    return replace(origin, note="; ".join(dict.fromkeys(part for part in (origin.note, note) if part)))


@dataclass(frozen=True)
class _Shown:
    """Instruction issue, the levels of every chart, and what has points of a GPU model (columns of the points frame)."""

    points: dict[str, Any]
    select: Selection

    def precisions(self, device: str) -> set[str]:  # noqa: ARG002 - the same roof for every GPU
        return {EXECUTED}

    def levels(self, device: str) -> set[str]:
        core = {level for level in load_spec().chain if self.select.wants("", level)}
        return core | set(self.points["level"][self.points["device"] == device])


def _roof_rows(
    roofs: Roofs, spec: Spec, counted: InstructionSpec, points: dict[str, Any], select: Selection
) -> list[dict[str, Any]]:
    """Rows of the roofs frame: instruction issue, bandwidths in transactions per second, and walls of each GPU.

    ``spec`` has the kinds of instruction for precisions.
    """
    alone = {kind.level: kind for kind in counted.kinds if kind.bytes != counted.transaction}
    rows = []
    for row in roofs.rows(spec, _Shown(points, select)):
        if row["kind"] == "compute":
            rows.append({**row, "label": counted.issue_label})
            continue
        kind = alone.get(row["level"])
        size = kind.bytes if kind else counted.transaction
        scaled = {name: row[name] / size for name in ("value", "value_min", "value_max")}
        label = f"{row['label']}, wavefronts of {size:g} B" if kind else row["label"]
        rows.append({**row, **scaled, "unit": "txn/s", "precision": kind.id if kind else "", "label": label})
    chosen = {kind.id for kind in counted.kinds if kind.level not in alone and select.wants(kind.id)}
    of_wall = {one.name: "" if one.dtype == "str" else np.nan for one in columns.ROOFS}
    of_wall |= {"kind": "wall", "unit": "inst/txn", "origin": "theoretical", "source": "architecture"}
    for device, row in {row["device"]: row for row in rows}.items():
        where = of_wall | {name: row[name] for name in ("report", "device", "compute_capability")}
        kinds = chosen | set(points["precision"][points["device"] == device])
        for wall in (wall for wall in counted.walls if wall.kind in kinds):
            place = dict.fromkeys(("value", "value_min", "value_max"), wall.intensity)
            rows.append({**where, **place, "roof": wall.id, "precision": wall.kind, "label": wall.short})
    return rows


def _availability(
    m: Measurements,
    grouping: Grouping,
    traffic: Mapping[str, Quantity],
    levels: Sequence[str],
    of_hierarchical: Sequence[str],
) -> dict[str, Any]:
    """Columns of the kernels frame: which rows have instructions and transactions, from any of their launches, and notes.

    ``of_hierarchical``: the notes of the same rows in the hierarchical roofline, of which only those on a level above its roof
    are true here.
    """

    def known(values: FloatArray) -> Any:
        return grouping.total(np.isfinite(values).astype(np.float64)) > 0

    missing = Quantity.missing(len(m))
    work = m.instructions.get(EXECUTED, missing).values
    executed = grouping.total(np.nan_to_num(work))
    moved = np.any([np.isfinite(values) for values in (missing.values, *(one.values for one in traffic.values()))], axis=0)
    has = {EXECUTED: known(work)} | {level: known(traffic.get(level, missing).values) for level in levels}
    read = {one: load_spec().read_as(one) for one in dict.fromkeys(m.capability)}
    chips = [read[one] for one in m.capability[grouping.first]]
    unknown = np.array([chip is None for chip in chips], dtype=bool) & ~has[EXECUTED]
    timeless = ~known(m.seconds)
    reasons = {
        "foreign": timeless & (disbelieved(m)[grouping.first] != ""),
        _UNKNOWN_CHIP: unknown,
        "no-time": timeless,
        "no-work-metrics": ~has[EXECUTED],
        "no-instructions": ~(executed > 0),
        "no-traffic-metrics": ~known(np.where(moved, work, np.nan)),
    }
    lacking, notes = [], []
    low = grouping.mean(m.clock, m.seconds) / m.clock_max[grouping.first] < CLOCK_WARNING
    for row, (chip, remarks) in enumerate(zip(chips, remarks_of(m, grouping), strict=True)):
        lacks = chip.lacks if chip else frozenset()
        lacking.append(" ".join(name for name, there in has.items() if not there[row] and name not in lacks))
        above = [note for note in of_hierarchical[row].split("; ") if note.startswith(ABOVE)]
        texts = (remarks, *above, LOW_CLOCK if low[row] else "", chip.caveat if chip else "")
        notes.append("; ".join(filter(None, texts)))
    return {
        "status": np.select(list(reasons.values()), list(reasons), default="ok").astype(object),
        "missing": np.array(lacking, dtype=object),
        "notes": np.array(notes, dtype=object),
        "work": np.where(has[EXECUTED], executed, np.nan),
    }


@dataclass(frozen=True, repr=False)
class InstructionRoofline(Roofline):
    """A Roofline whose work is warp instructions (inst) and whose traffic is memory transactions (txn).

    Units of the points: `TABLES` of this folder's columns.  ``to_collect`` are metrics that some launch lacks for its dots.
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
    Raises RooflineError for files that can't be read and for ceilings that fit no GPU of the reports, TypeError for what is no
    report.

    >>> instruction_roofline("gpp-v100.ncu-rep").kernels["status"].unique().tolist()
    ['no-work-metrics']
    """
    measurements = report if isinstance(report, Measurements) else measurements_of(report, instructions=True)
    files = ceilings_of(ceilings)
    check_ceilings(files, zip(measurements.device, measurements.capability, strict=True))
    selection = select or Selection()
    with np.errstate(all="ignore"):  # counters of odd reports may be any number: what overflows is missing, without a warning
        return _Build(measurements, files, clock, by, selection).roofline()


class _CountedKind(Precision):
    """A kind of instruction in the place of a precision; all kinds stand under the one roof of instruction issue."""

    def roof_ids(self) -> tuple[str, ...]:
        return (load_instructions().issue,)


class _Build:
    """The tables of an instruction roofline, from the launches that are wanted."""

    def __init__(self, m: Measurements, files: Sequence[Ceilings], clock: str, by: str, select: Selection) -> None:
        every, self.select = m, select
        self.m = m = select.launches(every)
        self.everything = everything_of(every, m)
        self.counted: InstructionSpec = load_instructions()
        kinds = tuple(_CountedKind(kind.id, kind.label, "core", "inst", i, ()) for i, kind in enumerate(self.counted.kinds))
        self.spec: Spec = replace(load_spec(), precisions=kinds)
        self.grouping: Grouping = group(m, by)
        self.roofs = Roofs(m, files, clock)
        self.traffic: Mapping[str, Quantity] = _in_transactions(m, self.counted)

    @cached_property
    def levels(self) -> tuple[str, ...]:
        """Levels that are shown."""
        return tuple(level.id for level in levels_of(self.m, self.spec) if self.select.wants("", level.id))

    def roofline(self) -> InstructionRoofline:
        points = ordered([table for kind in self.counted.kinds for table in self._points(kind)], columns.POINTS)
        verdicts = Verdicts(self.m, self.grouping, load_spec(), self.roofs)
        kernels = kernels_table(self.m, self.grouping, self.spec, self.levels, verdicts, self.everything)
        levels = [level for level in self.spec.chain if level in self.levels]
        kernels |= _availability(self.m, self.grouping, self.traffic, levels, kernels["notes"])
        return InstructionRoofline(
            points,
            of_rows(_roof_rows(self.roofs, self.spec, self.counted, points, self.select), columns.ROOFS),
            of_columns(kernels, columns.KERNELS),
            to_collect=self._to_collect(),
            sources=gpu_reports(self.m),
            everything=self.everything,
        )

    def _points(self, kind: Kind) -> list[dict[str, Any]]:
        """The tables of one kind: of all instructions at every level, of the others at theirs."""
        work = self.m.instructions.get(kind.id)
        if work is None:
            return []
        alone = {kind.level: self.m.transactions[kind.id]} if kind.id in self.m.transactions else {}
        traffic = alone if kind.level else self.traffic
        m = replace(self.m, work={kind.id: work}, summands={}, fused={}, traffic=traffic)
        bandwidth = {
            name: RoofValues(roof.value / kind.bytes, roof.theoretical / kind.bytes, roof.measured)
            for name, roof in self.roofs.bandwidth().items()
            if name in traffic
        }
        tables = points_table(m, self.grouping, self.spec, self.roofs.compute(), bandwidth, self.select, self.levels)
        if kind.id == EXECUTED:
            # Share of the lanes that had a true predicate, over the launches of which it is known.
            working = self.m.instructions.get(LANES, Quantity.missing(len(self.m))).values
            warp, every = self.counted.warp, np.where(np.isnan(working), np.nan, work.values)
            lanes = self.grouping.total(np.nan_to_num(working)) / self.grouping.total(np.nan_to_num(every))
            for table in tables:
                table["lanes"] = lanes[table["_row"]]
                table["notes"] = notes = table["notes"].copy()
                for row in np.flatnonzero(table["lanes"] * warp < (1 - _LOST_LANES) * warp):
                    text = f"{table['lanes'][row] * warp:.0f} of {warp:g} lanes work on average"
                    notes[row] = f"{notes[row]}; {text}" if notes[row] else text
        return tables

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
                for level in self.spec.chain
                if level in self.levels and np.isnan(self.traffic.get(level, missing).values[rows]).any()
            ]
            work = bool(np.isnan(self.m.instructions.get(EXECUTED, missing).values[rows]).any())
            found += self.counted.needs(load_spec(), chip, tuple(lacking), work=work)
        return tuple(dict.fromkeys(found))
