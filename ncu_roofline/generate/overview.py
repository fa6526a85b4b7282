"""Tables: the overview's figures, and how busy the tensor pipe is."""

from __future__ import annotations

from dataclasses import replace

from ncu_roofline.facts import Level, Precision, load_units
from ncu_roofline.facts.formula import WeightedSum
from ncu_roofline.generate.lower import Chips, Lowering
from ncu_roofline.sectionfile.section import MetricValue, SectionMetric, SectionTable

_CLOCK = "sm__cycles_elapsed.avg.per_second"
_MAX_KILOHERTZ = "device__attribute_max_gpu_frequency_khz"


def pipe_table(lowering: Lowering) -> SectionTable:
    """Instructions of the tensor pipe, as far as the chip and the dialect tell kinds apart."""
    tensor = load_units().tensor
    busy = f"{tensor.whole[0]}.avg.pct_of_peak_sustained_active"
    rows = [lowering.metric({busy: lowering.chips}, "Tensor pipe busy, all kinds [% of cycles]")]
    for kind in tensor.instructions:
        chips = frozenset(filter(kind.applies, lowering.chips))
        if lowering.ranges(chips):
            rows.append(lowering.metric({kind.metric: chips}, kind.label))
    return SectionTable("Tensor instructions", tuple(rows))


def core_precisions(lowering: Lowering) -> tuple[Precision, ...]:
    """The precisions of CUDA cores that the library counts together."""
    return tuple(precision for precision in lowering.spec.precisions if precision.together)


def time_and_clock(lowering: Lowering) -> tuple[SectionMetric, ...]:
    """Duration and SM clock."""
    rows = (("Duration", "gpu__time_duration.sum"), ("SM Frequency", _CLOCK))
    return tuple(lowering.metric({name: lowering.chips}, label) for label, name in rows)


def clock_ratio(lowering: Lowering) -> SectionMetric:
    """The profiled clock against the maximum; without nested expressions in per mille: the one is in Hz, the other in kHz."""
    divisor, unit = (f"({_MAX_KILOHERTZ} * 10)", "%") if lowering.dialect.nested_expressions else (_MAX_KILOHERTZ, "per mille")
    name = lowering.define("sm_clock_share", f"{_CLOCK} / {divisor}", [_CLOCK, _MAX_KILOHERTZ])
    return lowering.metric({name: lowering.chips}, f"SM clock / maximum clock [{unit}]")


def traffic(lowering: Lowering, *, patched: bool = True) -> tuple[SectionMetric, ...]:
    """Bytes per second of each level; without ``patched`` only what hardware counts."""
    return tuple(
        SectionMetric(replace(reading.value.metric.base, label=f"{level.label} [byte/s]"), reading.value.metric.options)
        for level in lowering.spec.levels
        if patched or not lowering.patched(level)
        for reading in lowering.traffic(level)
        if isinstance(reading.value, MetricValue)
    )


def performance(lowering: Lowering, precision: Precision) -> tuple[SectionMetric, ...]:
    """Operations per second."""
    if lowering.dialect.nested_expressions:
        names = {}
        for variant, (work, chips) in enumerate(lowering.sums(precision).items()):
            name = f"{precision.id}_{variant}_flop_per_second"
            names[lowering.define(name, _expression(work), _inputs(work), chips)] = chips
        return (lowering.metric(names, f"{precision.label} [FLOP/s]"),)
    if not precision.together:
        return ()
    # The library counts add, multiply and fused instructions together: with the fused ones once more it is operations.
    together, fused = _together_and_fused(precision)
    name = lowering.define(f"{precision.id}_flop_per_second", f"{together} + {fused}", [together, fused])
    unit = "FLOP/s, to be doubled: packed" if precision.packed else "FLOP/s"
    return (lowering.metric({name: lowering.chips}, f"{precision.label} [{unit}]"),)


def fused_share(lowering: Lowering, precision: Precision) -> SectionMetric:
    """Fused multiply-adds as a share of add, multiply and fused instructions."""
    together, fused = _together_and_fused(precision)
    name = lowering.define(f"{precision.id}_fma_share", f"{fused} / {together}", [fused, together])
    return lowering.metric({name: lowering.chips}, f"{precision.label} fused share of add, multiply and FMA instructions")


def intensities(lowering: Lowering, precision: Precision) -> SectionTable:
    """Operations per byte at each level with a roof; without nested expressions instructions, and per sector at L2."""
    row = _intensity if lowering.dialect.nested_expressions else _instructions_per_traffic
    levels = [level for level in lowering.spec.levels if level.bindings[0].clock and not lowering.patched(level)]
    return SectionTable(
        f"{precision.label} intensity", tuple(metric for level in levels for metric in row(lowering, precision, level))
    )


def _instructions_per_traffic(lowering: Lowering, precision: Precision, level: Level) -> list[SectionMetric]:
    together, _ = _together_and_fused(precision)
    rows = []
    for sums, chips in lowering.sums(level).items():
        (counter, weight), *more = sums.terms
        if not more:
            rate = f"{counter}.sum.per_second"
            name = lowering.define(f"{precision.id}_per_{counter}", f"{together} / {rate}", [together, rate], chips)
            unit = "byte" if weight == 1 else f"{weight:g} bytes"
            rows.append(lowering.metric({name: chips}, f"{precision.label} instructions per {unit} at {level.label}"))
    return rows


def _intensity(lowering: Lowering, precision: Precision, level: Level) -> list[SectionMetric]:
    found: dict[str, Chips] = {}
    for variant, (work, chips) in enumerate(lowering.sums(precision).items()):
        for sums, here in lowering.sums(level).items():
            if chips & here:
                name = f"{precision.id}_{variant}_per_{sums.counters()[0]}"
                text = f"({_expression(work)}) / ({_expression(sums)})"
                found[lowering.define(name, text, _inputs(work) + _inputs(sums), chips & here)] = chips & here
    label = f"{precision.label} intensity at {level.label} [FLOP/byte]"
    return [lowering.metric(found, label)] if found else []


def _together_and_fused(precision: Precision) -> list[str]:
    """Adds, multiplies and FMAs per second, each one, and the FMAs alone: the one binding that has the former has both."""
    binding = next(one for one in precision.bindings if precision.together in one.counters.counters())
    return _inputs(binding.counters)


def _inputs(sums: WeightedSum) -> list[str]:
    return [f"{counter}.sum.per_second" for counter in sums.counters()]


def _expression(sums: WeightedSum) -> str:
    return " + ".join(f"{c}.sum.per_second" + (f" * {weight:g}" if weight != 1 else "") for c, weight in sums.terms)
