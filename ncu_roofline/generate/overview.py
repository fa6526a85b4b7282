"""Tables: the overview's figures, and how busy the tensor pipe is."""

from __future__ import annotations

from dataclasses import replace

from ncu_roofline.formula import WeightedSum
from ncu_roofline.generate.document import Metric, Table
from ncu_roofline.generate.lower import Chips, Lowering
from ncu_roofline.spec import Level, Precision
from ncu_roofline.spec.validation import LAST

_LETTERS = {"fp64": "d", "fp32": "f", "fp16": "h"}
_CLOCK = "sm__cycles_elapsed.avg.per_second"
_MAX_KILOHERTZ = "device__attribute_max_gpu_frequency_khz"
_INST = "sm__inst_executed_pipe_"
# Tensor instructions by kind, and the capabilities whose chips have the counter (asked of the metric library).
_PIPES = (
    ("Tensor pipe busy, all kinds [% of cycles]", "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active", (7, 0), LAST),
    ("HMMA instructions", f"{_INST}tensor_op_hmma.sum", (7, 0), (9, 0)),
    ("IMMA instructions", f"{_INST}tensor_op_imma.sum", (7, 5), (9, 0)),
    ("DMMA instructions", f"{_INST}tensor_op_dmma.sum", (8, 0), (8, 0)),
    ("DMMA instructions, FP64 pipe", f"{_INST}fp64_op_dmma.sum", (8, 6), (8, 9)),
    ("DMMA instructions", f"{_INST}tensor_op_dmma.sum", (9, 0), (9, 0)),
    ("GMMA instructions (wgmma)", f"{_INST}tensor_op_gmma.sum", (9, 0), (9, 0)),
    ("HMMA subpipe instructions", f"{_INST}tensor_subpipe_hmma.sum", (10, 0), LAST),
    ("IMMA subpipe instructions", f"{_INST}tensor_subpipe_imma.sum", (10, 0), LAST),
)


def pipe_table(lowering: Lowering) -> Table:
    """Instructions of the tensor pipe, as far as the chip and the dialect tell kinds apart."""
    rows = []
    for label, name, since, until in _PIPES:
        chips = frozenset(chip for chip in lowering.chips if since <= chip <= until)
        if lowering.ranges(chips):
            rows.append(lowering.metric({name: chips}, label))
    return Table("Tensor instructions", tuple(rows))


def overview_tables(lowering: Lowering) -> tuple[Table, ...]:
    """Operations, traffic and clock."""
    spec = lowering.spec
    work = [metric for name in _LETTERS for metric in _operations(lowering, spec.precision(name))]
    traffic = [
        replace(reading.value.metrics[0], label=f"{level.label} [byte/s]")
        for level in spec.levels
        for reading in lowering.traffic(level)
        if reading.value.clock is None
    ]
    duration = lowering.metric({"gpu__time_duration.sum": lowering.chips}, "Duration")
    clock = lowering.metric({_CLOCK: lowering.chips}, "SM clock")
    return (
        Table("Operations", tuple(work)),
        Table("Traffic", tuple(traffic)),
        Table("Time and clock", (duration, clock, _clock_ratio(lowering))),
    )


def _clock_ratio(lowering: Lowering) -> Metric:
    divisor, unit = (f"({_MAX_KILOHERTZ} * 10)", "%") if lowering.dialect.nested_expressions else (_MAX_KILOHERTZ, "per mille")
    name = lowering.define("sm_clock_share", f"{_CLOCK} / {divisor}", [_CLOCK, _MAX_KILOHERTZ])
    return lowering.metric({name: lowering.chips}, f"SM clock / maximum clock [{unit}]")


def _operations(lowering: Lowering, precision: Precision) -> list[Metric]:
    """FLOP/s, share of fused instructions, and intensities of a precision of the CUDA cores."""
    letter, label = _LETTERS[precision.id], precision.label
    together = f"smsp__sass_thread_inst_executed_ops_{letter}add_{letter}mul_{letter}fma_pred_on.sum.per_second"
    fused = f"smsp__sass_thread_inst_executed_op_{letter}fma_pred_on.sum.per_second"
    share = lowering.define(f"{precision.id}_fma_share", f"{fused} / {together}", [fused, together])
    rows = [lowering.metric({share: lowering.chips}, f"{label} fused share of add, multiply and FMA instructions")]
    if lowering.dialect.nested_expressions:
        return _exact(lowering, precision) + rows
    # The library counts add, multiply and fused instructions together: with the fused ones once more it is operations.
    name = lowering.define(f"{precision.id}_flop_per_second", f"{together} + {fused}", [together, fused])
    unit = "FLOP/s, to be doubled: packed" if precision.id == "fp16" else "FLOP/s"
    rows.insert(0, lowering.metric({name: lowering.chips}, f"{label} [{unit}]"))
    for level in _roofed(lowering):
        for sums, chips in lowering.sums(level).items():
            if len(sums.terms) == 1:
                rows.append(_per_traffic(lowering, precision, level, together, sums, chips))
    return rows


def _roofed(lowering: Lowering) -> list[Level]:
    """Levels with a roof and hardware counters: those whose intensity is worth a row."""
    return [level for level in lowering.spec.levels if level.bindings[0].clock and not lowering.patched(level)]


def _per_traffic(
    lowering: Lowering, precision: Precision, level: Level, together: str, sums: WeightedSum, chips: Chips
) -> Metric:
    (counter, weight) = sums.terms[0]
    traffic = f"{counter}.sum.per_second"
    name = lowering.define(f"{precision.id}_per_{counter}", f"{together} / {traffic}", [together, traffic], chips)
    unit = "byte" if weight == 1 else f"{weight:g} bytes"
    return lowering.metric({name: chips}, f"{precision.label} instructions per {unit} at {level.label}")


def _exact(lowering: Lowering, precision: Precision) -> list[Metric]:
    rows, intensities = {}, {level.id: dict[str, Chips]() for level in _roofed(lowering)}
    for variant, (work, chips) in enumerate(lowering.sums(precision).items()):
        name, inputs = f"{precision.id}_{variant}", _inputs(work)
        rows[lowering.define(f"{name}_flop_per_second", _expression(work), inputs, chips)] = chips
        for level in _roofed(lowering):
            for sums, here in lowering.sums(level).items():
                if chips & here:
                    text = f"({_expression(work)}) / ({_expression(sums)})"
                    intensity = f"{name}_per_{sums.counters()[0]}"
                    found = lowering.define(intensity, text, inputs + _inputs(sums), chips & here)
                    intensities[level.id][found] = chips & here
    metrics = [lowering.metric(rows, f"{precision.label} [FLOP/s]")]
    labels = {level.id: f"{precision.label} intensity at {level.label} [FLOP/byte]" for level in lowering.spec.levels}
    return metrics + [lowering.metric(found, labels[level]) for level, found in intensities.items() if found]


def _inputs(sums: WeightedSum) -> list[str]:
    return [f"{counter}.sum.per_second" for counter in sums.counters()]


def _expression(sums: WeightedSum) -> str:
    return " + ".join(f"{c}.sum.per_second" + (f" * {weight:g}" if weight != 1 else "") for c, weight in sums.terms)
