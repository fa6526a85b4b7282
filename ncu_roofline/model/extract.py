"""To measurements: from reports by the spec's bindings applied to each launch, GPU by GPU, and from files of other tools.

What the PM sampler of ncu recorded of a launch as well: values over the GPU's time, one run of the launch per pass group.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ncu_roofline.chips import InstructionSpec, Level, Precision, Spec, formulas, load_opcodes, load_units
from ncu_roofline.chips.fields import WeightedSum
from ncu_roofline.chips.formulas import ATTRIBUTE, DURATION, OF_ACTIVE, Counters
from ncu_roofline.chips.tables import EXECUTED, counter_of, load_limits, load_phases
from ncu_roofline.chips.verdict import MOST
from ncu_roofline.formats.inputs.tables import MAJOR, MINOR, ImportedPoint, MetricTable, PointTable
from ncu_roofline.formats.report import Report
from ncu_roofline.formats.report.metrics import Instances, Metrics
from ncu_roofline.model.measurements import MEASURED, Columns, FloatArray, Measurements, Origin, Quantity, objects
from ncu_roofline.model.plausible import REPLAY_METRICS, Gate, believed, foreign_counters, remark, short_name
from ncu_roofline.model.work import HALF, HALVES, TENSOR_PIPE, THREADS, WARPS, Executed, constant_loads, executed, work_of

LANES = "lanes"
"""Key of `Measurements.instructions` for threads with a true predicate / 32: the instructions that whole warps would need."""
UNKNOWN_CAPABILITY = (0, 0)
_DEVICE = ATTRIBUTE + "display_name"
_CLOCK_UNITS = ("sm", "smsp", "l1tex", "lts", "gpc", "dram")
_ATTRIBUTES = (
    *("multiprocessor_count", "fbp_count", "num_l2s_per_fbp", "max_gpu_frequency_khz", "clock_rate", "max_mem_frequency_khz"),
    "global_memory_bus_width",
)
IMPORTED = "imported"
Rows = dict[int, tuple[float, Origin]]
_SHARED, _TURING = "shared", (7, 5)
_WITH_COPIES = "wavefronts x 128 B, bank conflicts included, and bytes of asynchronous copies by opcode counts"


class ColumnCounters(Columns, Counters):
    """Counters of many launches."""


def spellings(sums: Iterable[WeightedSum], peaks: Iterable[WeightedSum]) -> set[str]:
    """Every metric name that could give these sums and peaks, or the times and clocks that go with them."""
    names = {*formulas.L2_CLOCK_PAIR, *(name for pair in formulas.slice_pairs(load_units().slices) for name in pair)}
    names |= {ATTRIBUTE + name for name in _ATTRIBUTES} | {DURATION + form for form in (".sum", ".avg", ".max")}
    cycles = [f"{unit}__cycles_elapsed.{how}" for unit in _CLOCK_UNITS for how in ("avg", "max")]
    names |= {name + per for name in cycles for per in ("", ".per_second")}
    peaked = {c + form for peak in peaks for c in peak.counters() for form in (formulas.PEAK_FORM, formulas.SLICE_PEAK_FORM)}
    return names | _counted_as(sums) | peaked


def _counted_as(sums: Iterable[WeightedSum]) -> set[str]:
    counters = {counter for one in sums for counter in one.counters()}
    counters |= {other for counter in counters if (other := formulas.twin(counter))}
    return {counter + form for counter in counters for form in formulas.count_forms([counter])}


@lru_cache(maxsize=2)
def _metric_names(spec: Spec, instructions: InstructionSpec | None) -> frozenset[str]:
    """Every metric that some chip's bindings read: one pass over the report then serves whatever chips it holds."""
    owners: list[Precision | Level] = [*spec.precisions, *spec.levels]
    bindings = [binding for owner in owners for binding in owner.bindings]
    names = spellings([one.counters for one in bindings], [one.peak for one in bindings if one.peak])
    if instructions:
        sums = [way.counters for kind in instructions.kinds for way in (*kind.instructions, *kind.transactions)]
        lanes, issue = (WeightedSum.of({name: 1.0}) for name in (instructions.lanes, instructions.issue_counter))
        names |= spellings([*sums, lanes], [issue]) | {f"{instructions.lanes_per_instruction}.ratio"}
    return frozenset((*names, *REPLAY_METRICS, THREADS, WARPS, _DEVICE, MAJOR, MINOR, *load_units().metrics()))


def measure(report: Report | MetricTable, label: str, spec: Spec, instructions: InstructionSpec | None = None) -> Measurements:
    """All launches of a report; ``label`` is what the report is called in the frames.

    With ``instructions``, warp instructions and their transactions as well.
    """
    count, launches = len(report), report.launches()
    wanted = [_DEVICE, *sorted(_metric_names(spec, instructions) & report.metric_names - {_DEVICE})]
    counted: Mapping[str, Any]
    if isinstance(report, Report):
        raw, counted = report.columns_and_instances(wanted, [one for one in (THREADS, WARPS) if one in report.metric_names])
    else:
        raw, counted = report.columns(wanted), report.instances
    devices = [str(name).rstrip("\0") if name else "unknown GPU" for name in raw.pop(_DEVICE)]
    gate = Gate(raw, [launch.function_name for launch in launches])
    counted = {name: gate.instances(name, column) for name, column in counted.items()}
    columns, nothing = gate.columns, np.full(count, np.nan)
    foreign = foreign_counters(columns, [(launch.function_name, launch.name) for launch in launches])
    pairs = zip(columns.get(MAJOR, nothing).tolist(), columns.get(MINOR, nothing).tolist(), strict=True)
    known = ((major, minor, 0 < major < 1000 and 0 <= minor < 1000) for major, minor in pairs)  # NaN is unknown as well
    headers = Measurements.of(
        count,
        report=objects([label] * count),
        ncu_version=objects([report.ncu_version] * count),
        function=objects([launch.function_name for launch in launches]),
        name=objects([launch.name for launch in launches]),
        mangled=objects([launch.mangled_name for launch in launches]),
        kind=objects([launch.kind for launch in launches]),
        grid=objects(["x".join(map(str, launch.grid or ())) for launch in launches]),
        block=objects(["x".join(map(str, launch.block or ())) for launch in launches]),
        nvtx=objects(["/".join(launch.nvtx) for launch in launches]),
        device=objects(devices),
        capability=objects([(int(major), int(minor)) if good else UNKNOWN_CAPABILITY for major, minor, good in known]),
        remarks=objects(["; ".join(filter(None, both)) for both in zip(foreign, gate.texts, strict=True)]),
    )
    parts = []
    gpus = headers.gpus or {("", UNKNOWN_CAPABILITY): np.arange(0)}
    for (device, capability), index in gpus.items():
        selected = columns if len(gpus) == 1 else {name: column[index] for name, column in columns.items()}
        missing, chip = nothing[index], spec.read_as(capability)
        opcodes = Executed.nothing(len(index))
        if chip is not None:
            threads, warps = ([counted[one][i] if one in counted else () for i in index] for one in (THREADS, WARPS))
            opcodes = executed(threads, warps, spec, load_opcodes(), chip.compute_capability)
            if isinstance(report, Report):  # the code of launches that have what looks like half-precision arithmetic
                half = next(one for one in spec.precisions if one.id == HALF)
                names = _counted_as([binding.counters for binding in spec.bindings(half, chip.compute_capability)])
                found = [opcodes.work[one].values > 0 for one in HALVES if one in opcodes.work]
                found += [selected[name] > 0 for name in names if name in selected]
                suspects = np.any([np.zeros(len(index), dtype=bool), *found], axis=0)
                opcodes = opcodes.without(constant_loads(report, index, suspects, chip.compute_capability))
        counters = ColumnCounters(
            lambda name, selected=selected, missing=missing: selected.get(name, missing),  # type: ignore[misc]
            selected.__contains__,
            load_units(),
            chip,
            capability,
            device,
            load_limits().slices,
        )
        part = _used(headers if len(gpus) == 1 else headers.take(index), counters, opcodes)
        if chip is not None:
            part = _counted(part, counters, spec, opcodes)
            if instructions:
                part = _with_instructions(part, counters, instructions)
        parts.append(part)
    if len(parts) == 1:
        return believed(parts[0])
    return believed(Measurements.joined(parts).take(np.argsort(np.concatenate(list(gpus.values())))))


def _used(m: Measurements, counters: Counters, opcodes: Executed) -> Measurements:
    hardware, origin = counters.hardware, Origin("derived", f"{formulas.ACTIVE} / elapsed cycles")
    gauges = {gauge.id: counters.gauge(gauge) for gauge in (*hardware.gauges, *hardware.counts)}
    gauges |= {f"active_{how}": Quantity.of(counters.active(how), origin) for how in ("avg", "min", "max")}
    units = {unit.id: counters.busy(unit) for unit in hardware.units}
    shares = {level: counters.rate_share(level) for level in dict.fromkeys(rate.level for rate in hardware.rates)}
    tensor = counters.tensor_activity()
    return replace(
        m,
        seconds=counters.seconds,
        clock=counters.profiled_clock,
        clock_max=counters.clock_max,
        memory_clock=counters.clock("dram").values / counters.memory_clock_max,
        tensor_active=np.where(tensor.has_origin(lambda origin: origin.note != OF_ACTIVE), tensor.values, np.nan),
        tensor_gaps=opcodes.gaps,
        units={name: unit for name, unit in units.items() if np.isfinite(unit.values).any()},
        shares={level: share for level, share in shares.items() if share.origins},
        gauges={name: gauge for name, gauge in gauges.items() if np.isfinite(gauge.values).any()} | {TENSOR_PIPE: tensor},
    )


def _counted(m: Measurements, counters: Counters, spec: Spec, opcodes: Executed) -> Measurements:
    chip = counters.chip
    work, summands, fused = work_of(counters, spec, chip.compute_capability, opcodes)
    compute: dict[str, Quantity] = {}
    for precision in spec.precisions:  # whether or not a launch has work of that precision
        main, *others = precision.roof_ids()
        roof = counters.compute_roof(main, spec.bindings(precision, chip.compute_capability))
        if not np.isnan(roof.values).all():
            compute[main] = roof
            compute |= {other: roof.scaled(0.5) for other in others}  # without FMA every instruction does half the operations
    traffic, written, bandwidth = dict[str, Quantity](), dict[str, Quantity](), dict[str, Quantity]()
    for level in spec.levels:
        moved, stored, roof = counters.level(level, spec.bindings(level, chip.compute_capability))
        if moved.origins:
            traffic[level.id] = _shared(moved, opcodes, chip) if level.id == _SHARED else moved
        if stored is not None:
            written[level.id] = stored
        if not np.isnan(roof.values).all():
            bandwidth[level.id] = roof
    if chip.caveat:
        everywhere = np.ones(len(m), dtype=bool)
        work, summands, traffic = (
            {name: one.with_note(everywhere, chip.caveat) for name, one in found.items()} for found in (work, summands, traffic)
        )
    counts: Any = {"work": work, "summands": summands, "fused": fused, "traffic": traffic, "written": written}
    return replace(m, **counts, compute=compute, bandwidth=bandwidth)


def _shared(moved: Quantity, opcodes: Executed, chip: Any) -> Quantity:
    """Bytes of shared memory where opcodes say more than the counters: no access at all, or those of asynchronous copies."""
    if chip.compute_capability == _TURING:  # the total, with loads of matrices, counts other things in kernels without any
        return Quantity(np.where(opcodes.shared == 0, 0.0, moved.values), moved.choice, moved.origins)
    lower = moved.is_lower_bound() & np.isfinite(opcodes.copied)
    with_copies = Quantity(moved.values + np.where(lower, opcodes.copied, 0.0), moved.choice, moved.origins)
    return with_copies.changed(lower, lambda origin: replace(origin, note=_WITH_COPIES, lower_bound=False))


def _with_instructions(m: Measurements, counters: Counters, wanted: InstructionSpec) -> Measurements:
    """The same with warp instructions by kind, transactions by kind, and the peak of instructions per second."""
    instructions, transactions = dict[str, Quantity](), dict[str, Quantity]()
    for kind in wanted.kinds:
        for counted, ways in ((instructions, kind.instructions), (transactions, kind.transactions)):
            found = Quantity.missing(len(m))
            for way in ways:
                if not (found.origins and found.complete()):
                    found = found.filled(counters.count(way.counters, way.source, way.note))
            if found.origins:
                counted[kind.id] = found
    lanes: Quantity = counters.count(WeightedSum.of({wanted.lanes: 1.0}), "binding")
    if EXECUTED in instructions:  # threads / 32, counted or from the recorded threads per instruction
        name = f"{wanted.lanes_per_instruction}.ratio"
        threads: FloatArray = instructions[EXECUTED].values * counters.get(name)
        threads = np.where(np.isfinite(threads) & (threads >= 0), threads, np.nan)
        lanes = lanes.filled(Quantity.of(threads, Origin("binding", name)))
    if lanes.origins:
        instructions[LANES] = lanes.scaled(1 / wanted.warp)
    peak = counters.peak(WeightedSum.of({wanted.issue_counter: 1.0}), "sm", "binding")
    compute = {**m.compute, wanted.issue: peak.filled(counters.per_sm(wanted.issue_per_sm))}
    return replace(m, instructions=instructions, transactions=transactions, compute=compute)


def imported(table: PointTable, label: str) -> Measurements:
    """The points of a table, one element each; its roofs hold for all of them.  ``label`` is its name in the frames.

    Numbers that can't be are left out; remarks tell which.
    """
    points, count, limits = table.points, len(table.points), load_limits()
    remarks = objects([""] * count)

    def checked(what: str, values: FloatArray, most: FloatArray | float, unit: str) -> FloatArray:
        wrong = ~np.isnan(values) & ~((values >= 0) & (values <= most))
        names, end = [point.name for point in points], f"{unit}, which no machine can"
        remark(remarks, wrong, lambda row: f"{what} of {short_name(names[row])} is {values[row]:.4g} {end}", "row")
        return np.where(wrong, np.nan, values)

    def quantities(what: str, rows: Mapping[str, Rows], most: FloatArray | float, unit: str) -> dict[str, Quantity]:
        made = {key: Quantity.of_rows(count, mine) for key, mine in rows.items()}
        return {key: replace(one, values=checked(f"{what} {key}", one.values, most, unit)) for key, one in made.items()}

    def said(mapping: Callable[[ImportedPoint], Mapping[str, float]]) -> dict[str, Rows]:
        """For each key what the points say; the origins are the columns that they name."""
        rows: dict[str, Rows] = {}
        for row, point in enumerate(points):
            for key, value in mapping(point).items():
                if not math.isnan(value):
                    rows.setdefault(key, {})[row] = value, Origin(IMPORTED, point.columns, point.note)
        return rows

    roofs: dict[str, dict[str, Rows]] = {"compute": {}, "bandwidth": {}}
    for row, point in enumerate(points):
        for roof in (*table.roofs, *point.roofs):  # a point's own before the table's
            origin = Origin(MEASURED if roof.measured else IMPORTED, roof.label)
            roofs[roof.kind].setdefault(roof.id, {})[row] = roof.value, origin
    seconds = checked("the time", np.array([point.seconds for point in points], dtype=np.float64), limits.imported_seconds, "s")
    total = limits.imported_rate * np.where(seconds > 0, seconds, limits.imported_seconds)
    work = quantities("work in", said(lambda point: point.work), total, "operations")
    shares = {key: Quantity.of_rows(count, rows).values for key, rows in said(lambda point: point.fma_share).items()}
    texts = {name: objects([getattr(point, name) for point in points]) for name in ("name", "grid", "block", "device", "label")}
    return Measurements.of(
        count,
        **texts,
        report=objects([label] * count),
        function=texts["name"],
        kind=objects(["kernel"] * count),
        capability=objects([point.compute_capability for point in points]),
        seconds=seconds,
        invocations=np.array([point.launches for point in points], dtype=np.int64),
        rates=np.array([point.rates for point in points], dtype=bool),
        work=work,
        summands=work,
        # Of instructions the share is alpha, of operations 2 alpha / (1 + alpha): a fused instruction does two.
        fused={name: work[name].scaled(2 * share / (1 + share)) for name, share in shares.items() if name in work},
        traffic=quantities("traffic at", said(lambda point: point.traffic), total, "byte"),
        compute=quantities("the roof", roofs["compute"], limits.imported_rate, "operations per second"),
        bandwidth=quantities("the roof", roofs["bandwidth"], limits.imported_rate, "byte per second"),
        remarks=remarks,
    )


# Samples.

PASS_GROUPS = "profiler__pmsampler_pass_groups"
"""What every report has that was sampled over the time of its launches."""
_SAMPLER = "profiler__pmsampler_"
_LATEST = 2**62  # nanoseconds: later than any clock of a GPU
_MOST_GROUPS = 1_000
_NANO = 1e-9


class Series(NamedTuple):
    """One metric of a pass group: ``times`` (s, ascending, from the group's first sample on) and ``values``, equally many."""

    metric: str
    times: FloatArray
    values: FloatArray

    @property
    def counter(self) -> str:
        """The metric without the group of counters in front of its name."""
        return counter_of(self.metric)


class PassGroup(NamedTuple):
    """What was sampled in one run of the launch.

    Times are in seconds from the group's first sample on, NaN where the report does not tell: ``begins`` and ``ends`` of the
    launch, ``switched`` when its context became active.  ``interval`` is in seconds, NaN where it was given in cycles.
    """

    series: tuple[Series, ...]
    begins: float
    ends: float
    switched: float
    interval: float
    dropped: int
    merged: int

    @property
    def last(self) -> float:
        return max((float(one.times[-1]) for one in self.series), default=math.nan)

    @property
    def step(self) -> float:
        """Seconds from a sample to the next, as most of them are; the interval where there is one sample."""
        steps = np.concatenate([np.diff(one.times) for one in self.series])
        steps = steps[steps > 0]
        return float(np.median(steps)) if len(steps) else self.interval


class Samples(NamedTuple):
    """The pass groups of a launch that hold something of use; ``unusable`` counts values that no sampler can have given."""

    groups: tuple[PassGroup, ...]
    unusable: int = 0


def with_samples(report: Report, m: Measurements) -> Measurements:
    return replace(m, samples=objects([samples_of(report.kernels[launch].metrics) for launch in m.launch.tolist()]))


def samples_of(metrics: Metrics) -> Samples | None:
    """What was sampled of the metrics that bands are made of, None without any.  Raises RooflineError for damaged bytes.

    There are no groups where every value is unusable.
    """
    candidates = _candidates(metrics.names())
    if not candidates:
        return None
    listed: dict[str, int] = {}  # the pass group of each metric, as far as the report tells
    for index, text in _instances(metrics, PASS_GROUPS)[:_MOST_GROUPS]:
        if isinstance(index, int) and isinstance(text, str):
            listed |= dict.fromkeys(text.split(","), index)
    unusable = 0
    # Metrics of which the report does not tell the group are together if they have the same first sample.
    groups: dict[tuple[int, int], dict[str, list[tuple[int, float]]]] = {}
    for name in candidates:
        if counter_of(name) == name and name not in listed:
            continue  # the profiler's own metrics have the same names without anything in front
        instances, most = metrics.instances(name), 100 * MOST if "pct_of_peak" in name else 2.0**62
        samples = [
            (time, float(value))
            for time, value in instances
            if isinstance(time, int) and 0 <= time < _LATEST and isinstance(value, (int, float)) and 0 <= value <= most
        ]
        unusable += len(instances) - len(samples)
        if samples:
            samples.sort(key=lambda sample: sample[0])
            key = (listed[name], 0) if name in listed else (-1, samples[0][0])
            groups.setdefault(key, {})[name] = samples
    found = tuple(_pass_group(metrics, key[0], groups[key]) for key in sorted(groups))
    return Samples(found, unusable) if found or unusable else None


@lru_cache(maxsize=64)
def _candidates(names: tuple[str, ...]) -> tuple[str, ...]:
    """The names that something is made of; thousands of launches have the same."""
    wanted = load_phases().counters()
    return tuple(name for name in names if counter_of(name) in wanted)


def _pass_group(metrics: Metrics, index: int, members: Mapping[str, Sequence[tuple[int, float]]]) -> PassGroup:
    origin = min(samples[0][0] for samples in members.values())

    def first(name: str, *, on: bool = False) -> float:
        """The time of a metric's first instance, which is its correlation id; ``on``: of the first that is not 0."""
        times = [time for time, value in _instances(metrics, name) if isinstance(time, int) and (value or not on)]
        return (times[0] - origin) * _NANO if times else math.nan

    def of_group(name: str) -> float:
        found = [value for group, value in _instances(metrics, _SAMPLER + name) if group == index]
        return float(found[0]) if found and isinstance(found[0], (int, float)) else math.nan

    series = []
    for name, samples in members.items():
        times = np.array([(time - origin) * _NANO for time, _ in samples], dtype=np.float64)
        series.append(Series(name, times, np.array([value for _, value in samples], dtype=np.float64)))
    interval, lost = of_group("interval_time"), map(of_group, ("dropped_samples", "merged_samples"))
    return PassGroup(
        tuple(series),
        first(f"profiler__timestamp_workload_start_{index}"),
        first(f"profiler__timestamp_workload_end_{index}"),
        first(f"{_SAMPLER}ctxsw_{index}", on=True),
        interval * _NANO if interval > 0 else math.nan,
        *(int(count) if 0 < count < _LATEST else 0 for count in lost),
    )


def _instances(metrics: Metrics, name: str) -> Instances:
    return metrics.instances(name) if metrics.has_name(name) else []
