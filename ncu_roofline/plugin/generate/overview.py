"""Headers, tables and the timeline: figures of the overview, how busy the tensor pipe is, what is sampled over time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ncu_roofline.chips import Precision, load_units
from ncu_roofline.chips.fields import LAST, capability_text
from ncu_roofline.chips.formula import WeightedSum
from ncu_roofline.chips.phases import counter_of, load_phases
from ncu_roofline.chips.precisions import PHASES_SECTION
from ncu_roofline.formats.sectionfile.section import PER_SECOND, made, text_of
from ncu_roofline.plugin.generate.dialects import Chips
from ncu_roofline.plugin.generate.lower import Lowering, number

_CLOCK = "sm__cycles_elapsed.avg.per_second"
GIGA = 10**9
_MAX_KILOHERTZ = "device__attribute_max_gpu_frequency_khz"
_COLUMN_MAJOR = 1  # order of a table
_SAMPLER_SINCE = (7, 5)  # what the PM sampler runs on


def pipe_table(lowering: Lowering) -> Any:
    """Instructions of the tensor pipe, as far as the chip and the dialect tell kinds apart."""
    units = load_units()
    pipe, tensor = next(unit for unit in units.units if unit.id == "tensor"), units.tensor
    busy = f"{pipe.metrics[0]}.avg.pct_of_peak_sustained_active"
    rows = [lowering.metric({busy: lowering.chips}, "Tensor pipe busy, all kinds [% of cycles]")]
    for kind in tensor.instructions:
        chips = frozenset(filter(kind.applies, lowering.chips))
        since, until = kind.releases
        if lowering.ranges(chips) and since <= lowering.dialect.metrics <= until:
            rows.append(lowering.metric({kind.metric: chips}, kind.label))
    return _table("Tensor instructions", rows)


def core_precisions(lowering: Lowering) -> tuple[Precision, ...]:
    """The precisions of CUDA cores that the library counts together."""
    return tuple(precision for precision in lowering.spec.precisions if precision.together)


def time_and_clock(lowering: Lowering) -> tuple[Any, ...]:
    """Duration and SM clock."""
    rows = (("Duration", "gpu__time_duration.sum"), ("SM Frequency", _CLOCK))
    return tuple(lowering.metric({name: lowering.chips}, label) for label, name in rows)


def clock_share(lowering: Lowering) -> Any:
    """The profiled SM clock as a share of the maximum; one operator can't do that (Hz over kHz), so the maximum itself."""
    if not lowering.dialect.nested_expressions:
        return lowering.metric({_MAX_KILOHERTZ: lowering.chips}, "Maximum SM Frequency [kHz]")
    name = lowering.define("sm_clock_share", f"{_CLOCK} / ({_MAX_KILOHERTZ} * 10)", [_CLOCK, _MAX_KILOHERTZ])
    return lowering.metric({name: lowering.chips}, "SM clock / maximum clock [%]")


def traffic(lowering: Lowering, *, patched: bool = True) -> tuple[Any, ...]:
    """Bytes per second of each level; without ``patched`` only what hardware counts.  ncu shows their unit by itself.

    A level that chips count differently which the dialect can't tell apart has no row: one of two would be empty on each chip.
    """
    levels = [level for level in lowering.spec.levels if patched or not lowering.patched(level)]
    metrics = {level: [one.value.Metric for one in lowering.traffic(level) if one.value.HasField("Metric")] for level in levels}
    return tuple(_labelled(found[0], f"{level.label} traffic") for level, found in metrics.items() if len(found) == 1)


def performance(lowering: Lowering, precision: Precision) -> tuple[Any, ...]:
    """Operations per second, thousand millions of them where the dialect's expressions can divide, too.

    Where one operator can't give the sum those of the instruction families that it is of, where they can't either none.  Rows
    that stay empty on chips that can't be told apart are left out, but for the type that stands for all: there each way of
    counting has a row that says whose it is.
    """
    found: dict[str, Chips] = {}
    left: Chips = frozenset()
    sums = lowering.sums(precision)
    giga = lowering.dialect.nested_expressions or all(len(work.terms) == 1 for work in sums)
    for variant, (work, counted) in enumerate(sums.items()):
        chips = counted if _standard(lowering, precision) else lowering.choice.told(counted)
        name = _rate(lowering, precision, work, chips, variant, giga) if chips else ""
        if name:
            found[name] = chips
        else:
            left |= chips
    unit = f"{'G' if giga else ''}{precision.unit.upper()}/s"
    rows = []
    for position, (metric, chips) in enumerate(lowering.apart(found)):
        capabilities = ", ".join(capability_text(chip) for chip in sorted(chips) if chip != LAST)
        whose = f", compute capability {capabilities}" if position else ""
        rows.append(_labelled(metric, f"{precision.label}{whose} [{unit}]"))
    parts = [part for part in lowering.spec.precisions if part.part_of == precision.id and not part.disjoint]
    choice = lowering.choice
    families = [part for part in parts if choice.stands_in(part) or any(choice.binding(part, chip) for chip in left)]
    return (*rows, *(row for part in families for row in performance(lowering, part)))


def _standard(lowering: Lowering, precision: Precision) -> bool:
    return precision.standard or (bool(precision.part_of) and _standard(lowering, lowering.spec.precision(precision.part_of)))


def _labelled(metric: Any, label: str) -> Any:
    metric.Label = label.encode()
    return metric


def _table(label: str, rows: Sequence[Any]) -> Any:
    return made("Table", Label=label, Columns=2, Order=_COLUMN_MAJOR, Metrics=rows)


def _rate(lowering: Lowering, precision: Precision, work: WeightedSum, chips: Chips, variant: int, giga: bool) -> str:
    """A metric of (``giga``: thousand million) operations per second, "" where the dialect's expressions can't say it."""
    kind = "_dense" if lowering.choice.counts_dense(precision) else ""  # names are global in a report: one sum, one name
    # ncu reads units off names: "per_second" would give operations one of their own, beside that of the label.
    name = f"{precision.id}{kind}_{variant}_{'giga_' if giga else ''}rate".replace(".", "_")
    if lowering.dialect.nested_expressions:
        return lowering.define(name, f"({_expression(work)}) / {GIGA}", _inputs(work), chips)
    if giga:
        ((counter, weight),) = work.terms
        factor = f"/ {GIGA}" if weight == 1 else f"* {number(weight / GIGA)}"
        return lowering.define(name, f"{counter}.sum.per_second {factor}", _inputs(work), chips)
    work = _together(precision) if precision.together else work
    if len(work.terms) > 2 or any(weight != 1 for _, weight in work.terms):
        return ""
    names = _inputs(work)
    return lowering.define(name, " + ".join(names) if len(names) > 1 else f"{names[0]} * 1", names, chips)


def fused_share(lowering: Lowering, precision: Precision) -> Any:
    """Fused multiply-adds as a share of add, multiply and fused instructions."""
    together, fused = _inputs(_together(precision))
    name = lowering.define(f"{precision.id}_fma_share", f"{fused} / {together}", [fused, together])
    return lowering.metric({name: lowering.chips}, f"{precision.label} fused share of add, multiply and FMA instructions")


def intensities(lowering: Lowering, precision: Precision) -> tuple[Any, ...]:
    """Operations per byte at each level with a roof; no table where expressions have one operator, which can't say it."""
    if not lowering.dialect.nested_expressions:
        return ()
    rows = []
    for level in (one for one in lowering.spec.levels if one.bindings[0].clock and not lowering.patched(one)):
        found: dict[str, Chips] = {}
        for variant, (work, chips) in enumerate(lowering.sums(precision).items()):
            for sums, here in lowering.sums(level).items():
                if chips & here:
                    name = f"{precision.id}_{variant}_per_{sums.counters()[0]}"
                    text = f"({_expression(work)}) / ({_expression(sums)})"
                    found[lowering.define(name, text, _inputs(work) + _inputs(sums), chips & here)] = chips & here
        if found:
            rows.append(lowering.metric(found, f"{precision.label} intensity at {level.label} [FLOP/byte]"))
    return (_table(f"{precision.label} intensity", rows),)


def _together(precision: Precision) -> WeightedSum:
    """Adds, multiplies and FMAs, counted together, and the FMAs once more."""
    return next(one.counters for one in precision.bindings if precision.together in one.counters.counters())


def _inputs(sums: WeightedSum) -> list[str]:
    return [f"{counter}.sum.per_second" for counter in sums.counters()]


def _expression(sums: WeightedSum) -> str:
    return " + ".join(f"{c}.sum.per_second" + (f" * {weight:g}" if weight != 1 else "") for c, weight in sums.terms)


def timeline(lowering: Lowering) -> Any:
    """All bands that are sampled, those of one pass together, and the starts of blocks with the first of them."""
    spec = load_phases()
    chips = frozenset(chip for chip in lowering.chips if chip >= _SAMPLER_SINCE)

    def sampled(metric: str) -> str:
        """As the sampler knows it: without it the profiler would be meant, but where a group of counters is named."""
        return metric if counter_of(metric) != metric else f"pmsampling:{metric}"

    groups: list[Any] = []
    for group in dict.fromkeys(one.group for band in spec.bands for one in band.collect):
        metrics = []
        for band in spec.bands:
            collected = [one for one in band.collect if one.group == group]
            chips_of = {sampled(one.metric): frozenset(filter(one.applies, chips)) for one in collected}
            known = {name: where for name, where in chips_of.items() if lowering.ranges(where)}
            if known:
                metrics.append((band.label, known))
        if not groups:
            metrics.append(("Blocks started", {sampled(spec.collected_blocks): chips}))
        rows = []
        for label, names in metrics:
            metric = lowering.metric(names, label)
            metric.Groups.append(pass_group(len(groups)).encode())
            rows.append(made("TimelineRow", Label=label, Metrics=[metric]))
        groups.append(made("TimelineGroup", Label=group, Expanded=True, MetricRows=rows))
    return made("Timeline", MetricGroups=groups)


def pass_group(position: int) -> str:
    """What the metrics that are sampled in one pass are marked with."""
    return f"{PHASES_SECTION}_{position}"


def collect_roofs(lowering: Lowering, precisions: Iterable[Precision]) -> None:
    """Have the peaks collected that the dots of the slices stand under."""
    for precision in precisions:
        lowering.peak(precision, precision.roof_ids()[0])
    for reading in lowering.bandwidth(lowering.spec.level(lowering.spec.memory)):
        value = reading.value  # the peaks are collected by now
        clock = value.ValueCyclesPerSecondExpression.CyclesPerSecondMetric if value.HasField(PER_SECOND) else value.Metric
        lowering.collect(text_of(clock.Name), reading.chips)
