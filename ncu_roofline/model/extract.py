"""From a report to measurements: the spec's bindings applied to each launch, chip by chip."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from ncu_roofline.chips import InstructionSpec, Level, Precision, Spec, load_opcodes, load_units
from ncu_roofline.chips.fields import WeightedSum
from ncu_roofline.chips.formulas import OF_ACTIVE, Counters
from ncu_roofline.chips.tables import EXECUTED, Way
from ncu_roofline.formats.inputs.tables import MetricTable
from ncu_roofline.formats.report import Launch, Report
from ncu_roofline.model.counters import counted_as, counters_of, spellings
from ncu_roofline.model.foreign import REPLAY_METRICS, believed, foreign_counters
from ncu_roofline.model.halves import HALF, constant_loads
from ncu_roofline.model.measurements import FloatArray, IntArray, Measurements, Origin, Quantity, TextArray, objects
from ncu_roofline.model.opcodes import THREADS, WARPS, Executed, Instances, executed, metrics_of
from ncu_roofline.model.plausible import Gate, joined_remarks
from ncu_roofline.model.utilisation import TENSOR_PIPE, usage_of
from ncu_roofline.model.work import work_of

LANES = "lanes"
"""Key of `Measurements.instructions` for threads with a true predicate / 32: the instructions that whole warps would need."""
_DEVICE = "device__attribute_display_name"
_MAJOR = "device__attribute_compute_capability_major"
_MINOR = "device__attribute_compute_capability_minor"
UNKNOWN_CAPABILITY = (0, 0)
_SHARED, _TURING = "shared", (7, 5)
_WITH_COPIES = "wavefronts x 128 B, bank conflicts included, and bytes of asynchronous copies by opcode counts"


@lru_cache(maxsize=1)
def instruction_metrics(wanted: InstructionSpec) -> frozenset[str]:
    """Every metric that could say something of instructions."""
    sums = [formula for kind in wanted.kinds for formula in kind.formulas()]
    lanes, issue = WeightedSum.of({wanted.lanes: 1.0}), WeightedSum.of({wanted.issue_counter: 1.0})
    return frozenset(spellings([*sums, lanes], [issue])) | {f"{wanted.lanes_per_instruction}.ratio"}


def instructions_of(counters: Counters, wanted: InstructionSpec) -> tuple[dict[str, Quantity], dict[str, Quantity], Quantity]:
    """Of launches on one chip: warp instructions by kind, transactions by kind, and the peak of instructions per second."""
    instructions, transactions = {}, {}
    for kind in wanted.kinds:
        found = _first(counters, kind.instructions), _first(counters, kind.transactions)
        if found[0].origins:
            instructions[kind.id] = found[0]
        if found[1].origins:
            transactions[kind.id] = found[1]
    lanes = _lanes(counters, wanted, instructions)
    if lanes.origins:
        instructions[LANES] = lanes
    peak = counters.peak(WeightedSum.of({wanted.issue_counter: 1.0}), "sm", "binding")
    return instructions, transactions, peak.filled(counters.per_sm(wanted.issue_per_sm))


def _first(counters: Counters, ways: tuple[Way, ...]) -> Quantity:
    """Launch by launch the first way that the report has the counters of."""
    result = Quantity.missing(len(counters.seconds))
    for way in ways:
        if result.origins and not np.isnan(result.values).any():
            break
        result = result.filled(counters.count(way.counters, way.source, way.note))
    return result


def _lanes(counters: Counters, wanted: InstructionSpec, instructions: dict[str, Quantity]) -> Quantity:
    """Threads / 32, counted or from the recorded threads per instruction."""
    counted: Quantity = counters.count(WeightedSum.of({wanted.lanes: 1.0}), "binding", "")
    if EXECUTED in instructions:
        name = f"{wanted.lanes_per_instruction}.ratio"
        threads = instructions[EXECUTED].values * counters.get(name)
        threads = np.where(np.isfinite(threads) & (threads >= 0), threads, np.nan)
        counted = counted.filled(Quantity.of(threads, Origin("binding", name)))
    return counted.scaled(1 / wanted.warp)


def measure(report: Report | MetricTable, label: str, spec: Spec, instructions: InstructionSpec | None = None) -> Measurements:
    """All launches of a report; ``label`` is what the report is called in the frames.

    With ``instructions``, warp instructions and their transactions as well.
    """
    count = len(report)
    names = (
        frozenset((*REPLAY_METRICS, THREADS, WARPS))
        | _metric_names(spec)
        | frozenset(load_units().metrics())
        | (instruction_metrics(instructions) if instructions else frozenset())
    )
    wanted = [_DEVICE, *sorted(names & report.metric_names)]
    if isinstance(report, Report):
        raw, counted, others = report.columns_and_instances(wanted, metrics_of(report.metric_names))
    else:  # a table of metrics has no instances
        raw, counted, others = report.columns(wanted), {}, {}
    devices = [str(name).rstrip("\0") if name else "unknown GPU" for name in raw.pop(_DEVICE)]
    launches = report.launches()
    gate = Gate(raw, count, lambda row: launches[row].function_name)
    counted = {name: gate.instances(name, column) for name, column in counted.items()}
    gate.tell_others(others)
    columns = gate.columns
    capability = _capabilities(columns, count)
    foreign = foreign_counters(columns, [(launch.function_name, launch.name) for launch in launches])
    remarks = joined_remarks(foreign, gate.remarks)
    headers = replace(_headers(report, launches, label, capability, devices), remarks=remarks)
    parts, order = [], []
    gpus: dict[tuple[tuple[int, int], str], list[int]] = {}
    for row, gpu in enumerate(zip(capability, devices, strict=True)):
        gpus.setdefault(gpu, []).append(row)
    for (chip, device), rows in gpus.items():
        index = np.array(rows, dtype=np.int64)
        selected = columns if len(gpus) == 1 else {name: column[index] for name, column in columns.items()}
        known = spec.read_as(chip)
        opcodes = Executed.nothing(len(index))
        if known is not None:
            none: Sequence[Instances] = [()] * count
            threads, warps = ([counted.get(name, none)[i] for i in index] for name in (THREADS, WARPS))
            opcodes = executed(threads, warps, spec, load_opcodes(), known.compute_capability)
            opcodes = _without_loads(opcodes, report, index, selected, spec, known.compute_capability)
        counters = counters_of(selected, len(index), known, chip, device)
        part = _measure_gpu(headers.take(index), counters, spec, opcodes)
        if instructions and known:  # the counters are the same on every chip that is known
            executions, transactions, issue = instructions_of(counters, instructions)
            compute = {**part.compute, instructions.issue: issue}
            part = replace(part, instructions=executions, transactions=transactions, compute=compute)
        parts.append(part)
        order.append(index)
    if not parts:
        nothing = counters_of(columns, 0, None, UNKNOWN_CAPABILITY, "")
        return believed(_measure_gpu(headers, nothing, spec, Executed.nothing(0)))
    return believed(parts[0] if len(parts) == 1 else Measurements.joined(parts).take(np.argsort(np.concatenate(order))))


def _without_loads(
    opcodes: Executed,
    report: Report | MetricTable,
    index: IntArray,
    columns: Mapping[str, FloatArray],
    spec: Spec,
    capability: tuple[int, int],
) -> Executed:
    """Opcodes of launches on one chip, with loads of constants told from half-precision arithmetic by the report's code."""
    if not isinstance(report, Report):
        return opcodes
    bindings = [b for one in spec.precisions if one.id == HALF for b in spec.bindings(one, capability)]
    counts = [columns[name] > 0 for name in counted_as(b.counters for b in bindings) if name in columns]
    suspects = np.any([opcodes.halves, *counts], axis=0)
    return opcodes.without(constant_loads(report, index, suspects, capability))


def _capabilities(columns: Mapping[str, FloatArray], count: int) -> TextArray:
    missing = np.full(count, np.nan)
    pairs = zip(columns.get(_MAJOR, missing).tolist(), columns.get(_MINOR, missing).tolist(), strict=True)
    known = ((major, minor, 0 < major < 1000 and 0 <= minor < 1000) for major, minor in pairs)  # NaN is unknown as well
    return objects([(int(major), int(minor)) if good else UNKNOWN_CAPABILITY for major, minor, good in known])


@lru_cache(maxsize=1)
def _metric_names(spec: Spec) -> frozenset[str]:
    """Every metric that some chip's bindings read: one pass over the report then serves whatever chips it holds."""
    owners: list[Precision | Level] = [*spec.precisions, *spec.levels]
    bindings = [b for owner in owners for b in owner.bindings]
    return frozenset({_MAJOR, _MINOR} | spellings([b.counters for b in bindings], [b.peak for b in bindings if b.peak]))


def _headers(
    report: Report | MetricTable, launches: Sequence[Launch], label: str, capability: TextArray, devices: list[str]
) -> Measurements:
    count = len(launches)
    nothing = np.full(count, np.nan)

    return Measurements(
        report=objects([label] * count),
        ncu_version=objects([report.ncu_version] * count),
        launch=np.arange(count),
        function=objects([launch.function_name for launch in launches]),
        name=objects([launch.name for launch in launches]),
        kind=objects([launch.kind for launch in launches]),
        grid=objects([_size(launch.grid) for launch in launches]),
        block=objects([_size(launch.block) for launch in launches]),
        nvtx=objects(["/".join(launch.nvtx) for launch in launches]),
        device=objects(devices),
        capability=capability,
        seconds=nothing,
        clock=nothing,
        clock_max=nothing,
        memory_clock=nothing,
        tensor_active=nothing,
        tensor_gaps=np.zeros(count, dtype=bool),
        invocations=np.ones(count, dtype=np.int64),
        remarks=objects([""] * count),
        label=objects([""] * count),
        step=np.full(count, -1),
        rates=np.zeros(count, dtype=bool),
        charts=objects([None] * count),
        samples=objects([None] * count),
    )


def _size(size: tuple[int, int, int] | None) -> str:
    return "x".join(map(str, size)) if size else ""


def _measure_gpu(headers: Measurements, counters: Counters, spec: Spec, opcodes: Executed) -> Measurements:
    """All launches on one model of GPU."""
    active = counters.tensor_activity()
    related = np.array([origin.note != OF_ACTIVE for origin in active.origins] + [False])[active.choice]
    usage = usage_of(counters)
    m = replace(
        headers,
        seconds=counters.seconds,
        clock=counters.profiled_clock,
        clock_max=counters.clock_max,
        memory_clock=counters.clock("dram").values / counters.memory_clock_max,
        tensor_active=np.where(related, active.values, np.nan),
        tensor_gaps=opcodes.gaps,
        units=usage["units"],
        shares=usage["shares"],
        gauges={**usage["gauges"], TENSOR_PIPE: active},
    )
    chip = counters.chip
    if chip is None:
        return m
    work, summands, fused = work_of(counters, spec, chip.compute_capability, opcodes)
    compute = {}
    for precision in spec.precisions:  # whether or not a launch has work of that precision
        main, *others = precision.roof_ids()
        roof = counters.compute_roof(main, spec.bindings(precision, chip.compute_capability))
        if not np.isnan(roof.values).all():
            compute[main] = roof
            compute |= {other: roof.scaled(0.5) for other in others}  # without FMA every instruction does half the operations
    traffic, written, bandwidth = {}, {}, {}
    for level in spec.levels:
        moved, stored, roof = counters.level(level, spec.bindings(level, chip.compute_capability))
        if moved.origins:
            traffic[level.id] = moved
        if stored is not None:
            written[level.id] = stored
        if not np.isnan(roof.values).all():
            bandwidth[level.id] = roof
    _add_shared(traffic, spec, chip.compute_capability, opcodes)
    if chip.caveat:
        everywhere = np.ones(len(m), dtype=bool)
        work, summands, traffic = (
            {name: one.with_note(everywhere, chip.caveat) for name, one in found.items()} for found in (work, summands, traffic)
        )
    return replace(
        m, work=work, summands=summands, fused=fused, compute=compute, traffic=traffic, written=written, bandwidth=bandwidth
    )


def _add_shared(traffic: dict[str, Quantity], spec: Spec, capability: tuple[int, int], opcodes: Executed) -> None:
    """Shared memory where opcodes say more than the counters: no access at all, or the bytes of asynchronous copies."""
    if _SHARED not in traffic:
        return
    moved = traffic[_SHARED]
    if capability == _TURING:  # the total, which holds loads of matrices, counts other things in kernels without any
        moved = Quantity(np.where(opcodes.shared == 0, 0.0, moved.values), moved.choice, moved.origins)
    bindings = {binding.note: binding for binding in spec.bindings(spec.level(_SHARED), capability) if binding.lower_bound}
    lower = np.array([choice >= 0 and moved.origins[choice].note in bindings for choice in moved.choice], dtype=bool)
    lower &= np.isfinite(opcodes.copied) & (capability != _TURING)
    if lower.any():
        with_copies = moved.values + np.where(lower, opcodes.copied, 0.0)
        moved = Quantity(with_copies, moved.choice, moved.origins).with_note(lower, _WITH_COPIES, replace_note=True)
    traffic[_SHARED] = moved
