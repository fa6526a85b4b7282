"""The instruction roofline: warp instructions per second over warp instructions per memory transaction; its viewer.

Source: Ding, Williams, "An Instruction Roofline Model for GPUs" (2019); the counters are in ``data/instruction.toml``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ncu_roofline.analyses.hierarchical.view import Asked, Viewer, check_known
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.texts import advice
from ncu_roofline.chips import Precision, Spec, load_instructions, load_spec
from ncu_roofline.chips.tables import EXECUTED, Kind
from ncu_roofline.chips.verdict import CLOCK_WARNING
from ncu_roofline.formats.ceilings import Ceilings
from ncu_roofline.formats.inputs.tables import MetricTable
from ncu_roofline.formats.report import Report
from ncu_roofline.model import columns
from ncu_roofline.model.explanations import Explanation, availability, chip_notes, command_of, devices_of
from ncu_roofline.model.extract import LANES, UNKNOWN_CAPABILITY
from ncu_roofline.model.kernels import Verdicts, availability_of, everything_of, kernels_table, remarks_of
from ncu_roofline.model.measurements import Measurements, Origin, Quantity, RoofValues
from ncu_roofline.model.plausible import disbelieved, left_out, told
from ncu_roofline.model.points import ABOVE, LOW_CLOCK, Roofs, points_table
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
from ncu_roofline.model.selection import Grouping, Selection, group
from ncu_roofline.rendering.frames import Column

WITHOUT_SHARED = "L1 transactions are sectors of 32 B, without shared memory"
_LOST_LANES = 0.3  # said of a kernel that loses more than this share of its lanes, as the rule on access patterns does


@dataclass(frozen=True, repr=False)
class InstructionRoofline(Roofline):
    """A Roofline whose work is warp instructions (inst) and whose traffic is memory transactions (txn).

    Units of the points: `TABLES`.  ``to_collect`` are metrics that some launch lacks for its dots.
    """

    view: ClassVar[str] = "instruction"
    to_collect: tuple[str, ...] = ()


def _counted(column: Column) -> Column:
    """A column of the model, counted in warp instructions and transactions."""
    unit = column.unit.replace("flop", "inst").replace("byte", "txn")
    return replace(column, unit=unit, meaning="warp instructions executed" if column.name == "work" else column.meaning)


TABLES = {
    "points": tuple(map(_counted, columns.POINTS)),
    "roofs": columns.ROOFS,
    "kernels": tuple(map(_counted, columns.KERNELS)),
}


class _CountedKind(Precision):
    """A kind of instruction in the place of a precision; all kinds stand under the one roof of instruction issue."""

    def roof_ids(self) -> tuple[str, ...]:
        return (load_instructions().issue,)


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
    with np.errstate(all="ignore"):  # counters of odd reports may be any number: what overflows is missing, without a warning
        return _built(measurements, files, clock, by, select or Selection())


def _built(every: Measurements, files: Sequence[Ceilings], clock: str, by: str, select: Selection) -> InstructionRoofline:
    counted, plain = load_instructions(), load_spec()
    kinds = tuple(_CountedKind(kind.id, kind.label, "core", "inst", i, ()) for i, kind in enumerate(counted.kinds))
    spec: Spec = replace(plain, precisions=kinds)
    m = select.launches(every)
    everything, grouping, roofs = everything_of(every, m), group(m, by), Roofs(m, files, clock)
    levels = tuple(level.id for level in m.levels(spec) if select.wants("", level.id))
    chain = [level for level in spec.chain if level in levels]
    traffic = _in_transactions(m)
    tables: list[dict[str, Any]] = []
    for kind in counted.kinds:
        work = m.instructions.get(kind.id)
        if work is None:
            continue
        alone = {kind.level: m.transactions[kind.id]} if kind.id in m.transactions else {}
        mine = replace(m, work={kind.id: work}, summands={}, fused={}, traffic=alone if kind.level else traffic)
        bandwidth = {
            name: RoofValues(roof.value / kind.bytes, roof.theoretical / kind.bytes, roof.measured)
            for name, roof in roofs.bandwidth().items()
            if name in mine.traffic
        }
        made = points_table(mine, grouping, spec, roofs.compute(), bandwidth, select)
        tables += made
        # With the share of the lanes that had a true predicate, over the launches of which it is known.
        working, warp = m.instructions.get(LANES, Quantity.missing(len(m))).values, counted.warp
        every_lane = grouping.total(np.nan_to_num(np.where(np.isnan(working), np.nan, work.values)))
        lanes = grouping.total(np.nan_to_num(working)) / every_lane
        for table in made if kind.id == EXECUTED else ():
            table["lanes"] = own = lanes[table["_row"]]
            table["notes"] = table["notes"].copy()
            for row in np.flatnonzero(own < 1 - _LOST_LANES):
                text = f"{own[row] * warp:.0f} of {warp:g} lanes work on average"
                table["notes"][row] = "; ".join(filter(None, (table["notes"][row], text)))
    points, to_collect = ordered(tables, columns.POINTS), list[str]()
    for chip in dict.fromkeys(m.capability):  # what some launch lacks; one that another counter served lacks nothing
        if plain.read_as(chip):
            here, nothing = np.array([one == chip for one in m.capability]), Quantity.missing(len(m))
            lacking = tuple(level for level in chain if np.isnan(traffic.get(level, nothing).values[here]).any())
            uncounted = bool(np.isnan(m.instructions.get(EXECUTED, nothing).values[here]).any())
            to_collect += counted.needs(plain, chip, lacking, work=uncounted)
    kernels = kernels_table(m, grouping, spec, levels, Verdicts(m, grouping, plain, roofs), everything)
    return InstructionRoofline(
        points,
        of_rows([*_roof_rows(roofs, spec, points, select)], columns.ROOFS),
        of_columns(kernels | _availability(m, grouping, spec, traffic, chain, kernels["notes"]), columns.KERNELS),
        to_collect=tuple(dict.fromkeys(to_collect)),
        sources=gpu_reports(m),
        everything=everything,
    )


def _of_shared() -> Kind:
    """The kind of instruction whose transactions are of another size than the others'."""
    counted = load_instructions()
    return next(kind for kind in counted.kinds if kind.bytes != counted.transaction)


def _in_transactions(m: Measurements) -> dict[str, Quantity]:
    """Transactions of 32 bytes by level id.

    L1 contains shared memory as in Ding and Williams (2019): 4 transactions of 32 bytes for a wavefront of up to 128 bytes.
    Where the report has no wavefronts, or its L1 traffic is what a stock chart counts, L1 stays as it is; notes say which.
    """
    transaction, innermost, shared = load_instructions().transaction, load_spec().chain[0], _of_shared()
    scale = np.full(len(m), 1 / transaction)
    traffic = {level: quantity.scaled(scale) for level, quantity in m.traffic.items() if level != shared.level}
    if innermost not in traffic:
        return traffic
    l1, wavefronts = traffic[innermost], m.transactions.get(shared.id, Quantity.missing(len(m)))
    weight = shared.bytes / transaction
    text = f"L1 transactions are sectors of 32 B and {weight:g} for each wavefront of shared loads and stores"

    def noted(origin: Origin, note: str, *metrics: str) -> Origin:
        notes = dict.fromkeys(filter(None, (origin.note, note)))
        return replace(origin, note="; ".join(notes), metrics=", ".join((origin.metrics, *metrics)))

    origins = []  # one for every pair of origins that there is
    for origin in l1.origins:
        origins.append(origin if origin.source == "embedded" else noted(origin, WITHOUT_SHARED))
        origins += [noted(origin, text, other.metrics) for other in wavefronts.origins]
    own = np.array([origin.source != "embedded" for origin in l1.origins] + [False])
    added = own[l1.choice] & np.isfinite(wavefronts.values)
    pairs = l1.choice * (len(wavefronts.origins) + 1) + np.where(added, wavefronts.choice + 1, 0)
    values = np.where(added, l1.values + weight * wavefronts.values, l1.values)
    traffic[innermost] = Quantity(values, np.where(np.isnan(values), -1, pairs), tuple(origins))
    return traffic


def _roof_rows(roofs: Roofs, spec: Spec, points: dict[str, Any], select: Selection) -> Iterator[dict[str, Any]]:
    """Rows of the roofs frame: instruction issue, bandwidths in transactions per second, and walls of each GPU.

    ``spec`` has the kinds of instruction for precisions.
    """
    counted, shared, devices = load_instructions(), _of_shared(), {}
    core = {level for level in spec.chain if select.wants("", level)}  # of every chart
    for row in roofs.rows(spec, lambda _: {EXECUTED}, lambda gpu: core | set(points["level"][points["device"] == gpu])):
        devices[row["device"]] = row
        if row["kind"] == "compute":
            yield {**row, "label": counted.issue_label}
            continue
        alone = row["level"] == shared.level
        size = shared.bytes if alone else counted.transaction
        scaled = {name: row[name] / size for name in ("value", "value_min", "value_max")}
        label = f"{row['label']}, wavefronts of {size:g} B" if alone else row["label"]
        yield {**row, **scaled, "unit": "txn/s", "precision": shared.id if alone else "", "label": label}
    chosen = {kind.id for kind in counted.kinds if kind.level != shared.level and select.wants(kind.id)}
    of_wall: dict[str, Any] = {one.name: "" if one.dtype == "str" else np.nan for one in columns.ROOFS}
    of_wall |= {"kind": "wall", "unit": "inst/txn", "origin": "theoretical", "source": "architecture"}
    for device, row in devices.items():
        where = of_wall | {name: row[name] for name in ("report", "device", "compute_capability")}
        kinds = chosen | set(points["precision"][points["device"] == device])
        for wall in (wall for wall in counted.walls if wall.kind in kinds):
            place = dict.fromkeys(("value", "value_min", "value_max"), wall.intensity)
            yield {**where, **place, "roof": wall.id, "precision": wall.kind, "label": wall.short}


def _availability(
    m: Measurements, grouping: Grouping, spec: Spec, traffic: dict[str, Quantity], chain: Sequence[str], of_flops: Sequence[str]
) -> dict[str, Any]:
    """Columns of the kernels frame: which rows have instructions and transactions, from any of their launches, and notes.

    ``of_flops``: the notes of the same rows in the hierarchical roofline, of which only those on a level above its roof are
    true here.
    """
    work = m.instructions.get(EXECUTED, Quantity.missing(len(m)))
    counted, levels = replace(m, work={EXECUTED: work}, traffic=traffic), tuple(dict.fromkeys((*chain, *traffic)))
    executed = replace(spec, precisions=(replace(spec.precisions[0], section="InstructionRooflineChart"),))
    found = availability_of(counted, grouping, executed, levels, np.zeros(grouping.count, dtype=bool))
    low, notes = grouping.mean(m.clock, m.seconds) / m.clock_max[grouping.first] < CLOCK_WARNING, []
    for row, (remarks, caveat) in enumerate(zip(remarks_of(m, grouping), found["caveats"], strict=True)):
        above = [note for note in of_flops[row].split("; ") if note.startswith(ABOVE)]
        notes.append("; ".join(filter(None, (remarks, *above, LOW_CLOCK if low[row] else "", caveat))))
    status = found["status"]
    status[status == "zero-flop"] = "no-instructions"
    return {
        "status": status,
        "missing": found["missing"],
        "notes": np.array(notes, dtype=object),
        "work": grouping.sum_known(work.values),
    }


class _Instruction(Viewer):
    name = "instruction"
    instructions = True
    embedded = "the instruction roofline is made from counters, not from charts inside the report"
    more = ""

    def check_names(self, select: Selection) -> None:
        check_known("--level", select.levels, {level.id for level in load_spec().levels}, "levels")
        kinds = [kind.id for kind in load_instructions().kinds]
        for one in select.precisions:
            if one not in kinds:
                next_step = advice(f"With --view instruction name {', '.join(kinds)}", one, kinds)
                raise RooflineError("Cannot use --precision", one, "it is no kind of instruction", next_step)

    def explain(self, report: Report | MetricTable, measurements: Measurements, select: Selection) -> Explanation:
        """What a report lacks; precisions of the result are kinds of instruction."""
        m, spec, counted = measurements, load_spec(), load_instructions()
        levels, own = select.levels or spec.chain, int((disbelieved(m) == "").sum())  # of other launches nothing is missing
        capabilities = list(dict.fromkeys(capability for _, capability in m.gpus))
        chips = [chip for capability in capabilities if (chip := spec.read_as(capability))]
        there = {level for level in levels if any(level not in chip.lacks for chip in chips)} if own else set()
        reached = [availability(level, m.traffic.get(level.id)) for level in spec.levels if level.id in there]
        kinds = [availability(kind, m.instructions.get(kind.id)) for kind in counted.kinds if chips and own]
        moved = [availability(kind, m.transactions.get(kind.id)) for kind in counted.kinds if kind.level]
        without = {one.id for one in (*kinds, *moved, *reached) if one.launches < own}
        missing = tuple(one.id for one in (*kinds, *reached) if one.id in without)
        names = (name for chip in chips for name in counted.collect(spec, chip.compute_capability, tuple(levels)))
        collect = tuple(dict.fromkeys(names)) if missing and chips else ()
        notes = chip_notes([capability for capability in capabilities if capability != UNKNOWN_CAPABILITY])
        if not chips and not notes:
            notes = ["the report does not name its GPU, so no counter can be chosen"]
        return Explanation(
            report=str(m.report[0]) if len(m) else str(report.path),
            ncu_version=report.ncu_version,
            devices=devices_of(m),
            launches=len(m),
            precisions=tuple(kinds),
            levels=tuple(reached),
            missing=missing,
            partial=(),
            added=missing,
            command=command_of(report, collect, select.kernel, mixed=own < len(m)) if collect else "",
            notes=(*told(m), *left_out(m), *notes),
        )

    def frames(self, measurements: Measurements, ceilings: Sequence[Ceilings], asked: Asked) -> InstructionRoofline:
        return instruction_roofline(measurements, ceilings, clock=asked.clock, by=asked.by, select=asked.select)


VIEWER = _Instruction()
