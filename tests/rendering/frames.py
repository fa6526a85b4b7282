"""Synthetic rooflines for the renderers' tests: frames as the model makes them, with data-sheet sized values."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ncu_roofline.analyses.hierarchical.text import kernels_table
from ncu_roofline.model import columns

NAN = float("nan")


@dataclass(frozen=True)
class FakeRoofline:
    """The duck type that renderers take."""

    points: pd.DataFrame
    roofs: pd.DataFrame
    kernels: pd.DataFrame


@dataclass(frozen=True)
class Chip:
    """One GPU: dense peaks in FLOP/s and bandwidths in B/s at the maximum clock."""

    device: str
    compute_capability: str
    clock_max: float
    clock_profiled: float
    compute: dict[str, dict[str, float]]
    bandwidth: dict[str, float]


A100 = Chip(
    "NVIDIA A100-SXM4-40GB",
    "8.0",
    1.41e9,
    1.095e9,
    {
        "fp64": {"fma": 9.746e12, "nofma": 4.873e12},
        "fp32": {"fma": 19.49e12, "nofma": 9.746e12},
        "fp16": {"fma": 77.97e12, "nofma": 38.98e12},
        "tensor.fp64": {"mma": 19.49e12},
        "tensor.tf32": {"mma": 155.9e12},
        "tensor.fp16": {"mma": 311.9e12},
        "tensor.int8": {"mma": 623.7e12},
    },
    {"l1": 19.49e12, "shared": 19.49e12, "l2": 7.219e12, "dram": 1.555e12, "system": 31.5e9},
)

H100 = Chip(
    "NVIDIA H100 80GB HBM3",
    "9.0",
    1.98e9,
    1.59e9,
    {
        "fp64": {"fma": 33.45e12, "nofma": 16.73e12},
        "fp32": {"fma": 66.91e12, "nofma": 33.45e12},
        "fp16": {"fma": 133.8e12, "nofma": 66.91e12},
        "tensor.fp64": {"mma": 66.91e12},
        "tensor.tf32": {"mma": 356.8e12, "wgmma": 535.3e12},
        "tensor.fp16": {"mma": 713.7e12, "wgmma": 1070.5e12},
        "tensor.int8": {"mma": 1427e12, "wgmma": 2141e12},
    },
    {"l1": 33.45e12, "shared": 33.45e12, "l2": 10.37e12, "dram": 3.35e12, "system": 63e9},
)

CHIPS = {"a100": A100, "h100": H100}
LEVEL_ORDER = ("l1", "shared", "l2", "dram", "system")
LEVEL_LABELS = {"l1": "L1/TEX", "shared": "Shared", "l2": "L2", "dram": "HBM", "system": "System memory"}
ROOF_LABELS = {"fma": "FMA", "nofma": "no FMA", "mma": "mma.sync", "wgmma": "wgmma"}
PRECISION_LABELS = {
    "tensor.fp64": "FP64 Tensor",
    "tensor.tf32": "TF32 Tensor",
    "tensor.fp16": "FP16 Tensor",
    "tensor.int8": "INT8 Tensor",
}

# (full demangled name, short name): what real reports hold, first the tame ones.
TAME = (
    ("void gpp_kernel<double, 256>(int, int, double const*, double*)", "gpp_kernel"),
    ("smooth_kernel(level_type, int, int, double, double)", "smooth_kernel"),
    ("void cub::DeviceReduceKernel<cub::DeviceReducePolicy<float, int>, float*>(float*, int)", "DeviceReduceKernel"),
    ("ampere_sgemm_128x64_tn", "ampere_sgemm_128x64_tn"),
    ("void spmv_csr<int, double>(int const*, double const*, double*)", "spmv_csr"),
    ("triton_poi_fused_add_mul_0", "triton_poi_fused_add_mul_0"),
    (
        "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float> >(int)",
        "vectorized_elementwise_kernel",
    ),
    ("stencil27(double*, double const*, int)", "stencil27"),
    ("void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 64> >(Flash_fwd_params)", "flash_fwd_kernel"),
    ("julia_axpy__1234", "axpy!"),
    ("nbody_forces(float4*, float4*, int)", "nbody_forces"),
    ("void cutlass::Kernel<cutlass_80_tensorop_s16816gemm_f16_256x128>(Params)", "cutlass_80_tensorop_s16816gemm_f16"),
)

# Names that break a careless renderer: mathtext, markup, spreadsheets, tables, other alphabets, right-to-left.
ODD = (
    ("cost$_a^{2}$ and $x_y$", "cost$_a^{2}$ and $x_y$"),
    ("<script>alert('kernel')</script>", "<script>alert('kernel')</script>"),
    ("=cmd|' /C calc'!A0", "=cmd|' /C calc'!A0"),
    ("pipe|tick`star*under_score_", "pipe|tick`star*under_score_"),
    ("\u03bb_k\u00e9rnel<\u00b5>", "\u03bb_k\u00e9rnel<\u00b5>"),
    ("@export(-1) \\frac{a}{b} %s {0}", "@export(-1) \\frac{a}{b} %s {0}"),
)


def precision_label(precision: str) -> str:
    """Label of a precision id as the data files would give it."""
    return PRECISION_LABELS.get(precision, precision.upper())


def kernel_names(count: int, odd: bool) -> list[tuple[str, str]]:
    """``count`` pairs (full name, unique short name), the odd ones first when ``odd``."""
    pool = [*ODD, *TAME] if odd else [*TAME]
    names = pool[:count]
    for index in range(len(names), count):
        full, short = TAME[index % len(TAME)]
        names.append((f"{full} [instance {index}]", f"{short[:32]} #{index // len(TAME) + 1}"))
    return names


def _typed(rows: list[dict[str, Any]], declared: Sequence[columns.Column]) -> pd.DataFrame:
    """A frame with exactly the declared columns and dtypes; what a row leaves out is missing."""
    empty = {"str": "", "float": NAN, "int": -1}
    data = {}
    for column in declared:
        values = [row.get(column.name, empty[column.dtype]) for row in rows]
        data[column.name] = pd.Series(values, dtype={"str": object, "float": "float64", "int": "int64"}[column.dtype])
    return pd.DataFrame(data)


def _roof_rows(
    chip: Chip, precisions: Sequence[str], levels: Sequence[str], measured: bool, report: str, clocks_differ: float
) -> list[dict[str, Any]]:
    where = {"report": report, "device": chip.device, "compute_capability": chip.compute_capability}
    origins = [("theoretical", 1.0, chip.clock_profiled, "profiled", "binding", "sm__cycles_elapsed.avg.per_second")]
    if measured:
        origins.append(("measured", 0.89, chip.clock_max, "measured", "ceilings", "ceilings.json, 2024-05-01, 5 runs"))
    rows = []
    for origin, factor, clock, basis, source, metrics in origins:
        common = {**where, "origin": origin, "clock": clock, "clock_basis": basis, "source": source, "metrics": metrics}
        scale = factor if origin == "measured" else chip.clock_profiled / chip.clock_max
        spread = 0.0 if origin == "measured" else clocks_differ / 2
        for precision in precisions:
            for name, peak in chip.compute.get(precision, {}).items():
                value = peak * scale
                unit = "op/s" if "int" in precision else "flop/s"
                label = f"{precision_label(precision)} {ROOF_LABELS[name]}"
                rows.append(
                    {
                        **common, "roof": f"{precision}.{name}", "kind": "compute", "precision": precision, "label": label,
                        "value": value, "unit": unit, "value_min": value * (1 - spread), "value_max": value * (1 + spread),
                    }
                )  # fmt: skip
        for level in levels:
            own = level in ("dram", "system")  # a clock of its own
            value = chip.bandwidth[level] * (factor if own else scale)
            rows.append(
                {
                    **common, "roof": level, "kind": "bandwidth", "level": level, "label": LEVEL_LABELS[level], "value": value,
                    "unit": "byte/s", "value_min": value * (1 if own else 1 - spread),
                    "value_max": value * (1 if own else 1 + spread),
                }
            )  # fmt: skip
    return rows


def _highest(roofs: pd.DataFrame, origin: str, column: str, value: str) -> float:
    """The highest roof of one origin whose ``column`` is ``value``."""
    return float(roofs[(roofs.origin == origin) & (roofs[column] == value)]["value"].max())


def _point_rows(
    base: dict[str, Any], chip: Chip, precisions: Sequence[str], roofs: pd.DataFrame, levels: Sequence[str], rng: random.Random
) -> list[dict[str, Any]]:
    """The rows of one kernel, one per precision and level, on or below ``roofs``; the last precision does most of the work."""
    origin = "measured" if roofs.origin.eq("measured").any() else "theoretical"
    main = precisions[-1]
    intensity = 10 ** rng.uniform(-1.2, 0.8) * (20 if main.startswith("tensor") else 1)
    traffic, attainable, first = {}, [], 1.0
    for level in levels:
        traffic[level] = first / intensity
        attainable.append(min(_highest(roofs, origin, "precision", main), intensity * _highest(roofs, origin, "level", level)))
        intensity *= 10 ** rng.uniform(0.02, 0.8)
    performance = min(attainable) * rng.uniform(0.12, 0.97)
    rows = []
    for precision in precisions:
        room = 0.9 * _highest(roofs, origin, "precision", precision) / performance
        share = 1.0 if precision == main else min(room, 10 ** rng.uniform(-2.0, -0.8))
        rows += _level_rows(
            base, chip, precision, performance * share, {k: v / share for k, v in traffic.items()}, roofs, origin
        )
    return rows


def _usage(chip: Chip, levels: Sequence[str], rng: random.Random) -> dict[str, Any]:
    """What the hardware says of a kernel's units: shares of their peaks, the busiest of them, and the verdict on them."""
    shares = {level: rng.uniform(0.02, 0.9) for level in levels}
    shares["sm"] = rng.uniform(0.05, 0.7)
    busiest = max(shares, key=lambda unit: shares[unit])
    label = "SM" if busiest == "sm" else LEVEL_LABELS[busiest]
    full = shares[busiest] >= 0.6
    verdict = f"{'compute' if busiest == 'sm' else 'memory'}: {label}" if full else "latency"
    occupancy = rng.uniform(0.1, 0.5)
    state = f"nothing is full: nearest is {label} at {shares[busiest]:.0%} busy; occupancy {occupancy:.0%} of 50 % possible"
    return {
        **{f"fraction_{unit}": share for unit, share in shares.items()},
        **{f"bandwidth_{level}": shares[level] * chip.bandwidth[level] for level in levels},
        "busiest_unit": label, "busiest_fraction": shares[busiest], "limit": busiest, "limit_fraction": shares[busiest],
        "verdict": verdict, "headroom": 1 / shares[busiest], "headroom_or_less": 0, "headroom_compute": 2.5 / shares["sm"],
        "speedup": 1 / shares[busiest], "occupancy": occupancy, "occupancy_theoretical": 0.5,
        "waves": rng.uniform(0.3, 40), "ipc": rng.uniform(0.1, 3), "issue_fraction": rng.uniform(0.05, 0.6),
        "reason": f"bound by its {label} at {shares[busiest]:.0%} of peak: {1 / shares[busiest]:.1f}x" if full else state,
    }  # fmt: skip


def _unknown_tensor(kernel: dict[str, Any], points: list[dict[str, Any]]) -> None:
    """Make the tensor work of a kernel unknown: what binds it is withheld."""
    kernel["verdict"] = "tensor work unknown"
    kernel["reason"] = "the tensor pipe was active in 43 % of the cycles but its operations were not collected"
    kernel["tensor_active"] = 0.43
    kernel.update(dict.fromkeys(("headroom", "headroom_compute", "speedup", "recoverable"), NAN))
    kernel["notes"] = "; ".join(filter(None, [kernel["notes"], "tensor cores were busy in 43% of the cycles"]))
    for row in points:
        row.update(binds="", binding_fraction=NAN)


def _mix(precision: str, peak: float) -> dict[str, float]:
    """60 % fused instructions, as the published GPP has; tensor pipes know no such mix."""
    return {} if precision.startswith("tensor") else {"compute_roof": peak, "fma_share": 0.6, "mix_roof": 0.8 * peak}


def _level_rows(
    base: dict[str, Any],
    chip: Chip,
    precision: str,
    performance: float,
    bytes_per_flop: dict[str, float],
    roofs: pd.DataFrame,
    origin: str,
) -> list[dict[str, Any]]:
    """The rows of one kernel and precision, one per level."""
    work = performance * base["seconds"]
    rows: list[dict[str, Any]] = []
    for level, ratio in bytes_per_flop.items():
        intensity = 1 / ratio
        limits = {}
        for kind in (origin, "theoretical"):
            limits[kind] = min(_highest(roofs, kind, "precision", precision), intensity * _highest(roofs, kind, "level", level))
        rows.append(
            {
                **base, "precision": precision, "level": level, "work": work, "unit": "op" if "int" in precision else "flop",
                "traffic": work * ratio, "intensity": intensity, "performance": performance, "bandwidth": performance * ratio,
                "attainable": limits[origin], "fraction": performance / limits[origin], "roof_origin": origin,
                "attainable_theoretical": limits["theoretical"], "fraction_theoretical": performance / limits["theoretical"],
                "coverage": 1.0, "source": "binding", **_mix(precision, _highest(roofs, origin, "precision", precision)),
                "metrics": "smsp__sass_thread_inst_executed_op_dfma_pred_on.sum, dram__bytes.sum",
            }
        )  # fmt: skip
    lowest = min(rows, key=lambda row: row["attainable"])
    compute = _highest(roofs, origin, "precision", precision)
    binds = lowest["level"] if lowest["attainable"] < compute else f"{precision}.{next(iter(chip.compute[precision]))}"
    for inner, row in enumerate(rows):
        row.update(binds=binds, binding_fraction=performance / lowest["attainable"])
        if inner + 1 < len(rows):
            row.update(locality=rows[inner + 1]["intensity"] / row["intensity"], locality_to=rows[inner + 1]["level"])
    return rows


def _mixed(rows: list[dict[str, Any]], levels: Sequence[str]) -> list[dict[str, Any]]:
    """The composite rows of a kernel that works in several precisions: one per level, work summed."""
    unknown = ("compute_roof", "fma_share", "mix_roof", "fraction", "attainable", "binding_fraction", "attainable_theoretical")
    mixed = []
    for level in levels:
        parts = [row for row in rows if row["level"] == level]
        work = sum(row["work"] for row in parts)
        rates = {"intensity": work / parts[0]["traffic"], "performance": work / parts[0]["seconds"]}
        row = {**parts[0], "precision": "mixed", "work": work, "unit": "flop", "binds": "", "notes": "sum over pipes", **rates}
        mixed.append({**row, **dict.fromkeys((*unknown, "fraction_theoretical"), NAN)})
    return mixed


def make_roofline(
    n_kernels: int = 5,
    precisions: Sequence[str] = ("fp64",),
    measured: bool = True,
    levels: Sequence[str] = ("l1", "l2", "dram"),
    *,
    chip: str = "a100",
    odd: bool = False,
    zero_flop: int = 1,
    missing: int = 0,
    mixed: bool = False,
    aggregated: bool = False,
    clocks: bool = True,
    seed: int = 1,
    report: str = "sample.ncu-rep",
    usage: bool = True,
    tensor_unknown: int = 0,
    clocks_differ: float = 0.0,
) -> FakeRoofline:
    """A roofline of ``n_kernels`` kernels with points, plus ``zero_flop`` copies and ``missing`` kernels without metrics.

    Every kernel works in the first precision, every second one in the others too; those get a "mixed" row with ``mixed``.
    Of the first ``tensor_unknown`` kernels nobody counted the tensor work; without ``usage`` nothing is known of units and
    verdicts; theoretical roofs range over ``clocks_differ`` times their value.
    """
    gpu, rng, of_units = CHIPS[chip], random.Random(seed), random.Random(seed + 1000)
    roofs = _typed(_roof_rows(gpu, precisions, levels, measured, report, clocks_differ), columns.ROOFS)
    clock = {
        "clock_profiled": gpu.clock_profiled,
        "clock_max": gpu.clock_max,
        "clock_ratio": gpu.clock_profiled / gpu.clock_max,
    }
    where = {"report": report, "device": gpu.device, "compute_capability": gpu.compute_capability, **(clock if clocks else {})}
    points: list[dict[str, Any]] = []
    kernels: list[dict[str, Any]] = []
    statuses = ["ok"] * n_kernels + ["zero-flop"] * zero_flop + ["no-work-metrics"] * missing
    names = kernel_names(n_kernels, odd)
    names += [(f"void transpose_{i}<float>(float*, float const*)", f"transpose_{i}") for i in range(zero_flop)]
    names += [(f"void unmeasured_{i}(int)", f"unmeasured_{i}") for i in range(missing)]
    for index, (status, (full, short)) in enumerate(zip(statuses, names, strict=True)):
        launches = 1 + index % 7 if aggregated else 1
        base = {**where, "launch": -1 if aggregated else index, "kernel": short, "launches": launches, "untimed": 0}
        base["seconds"] = 10 ** rng.uniform(-5.5, -2)
        rows: list[dict[str, Any]] = []
        if status == "ok":
            rows = _point_rows(base, gpu, precisions if index % 2 == 0 else precisions[:1], roofs, levels, rng)
        composite = _mixed(rows, levels) if mixed and len({row["precision"] for row in rows}) > 1 else []
        work = {"ok": sum(row["work"] for row in rows if row["level"] == levels[0]), "zero-flop": 0.0}.get(status, NAN)
        kernels.append(
            {
                **base, "name": full, "kind": "kernel", "grid": "4096x1x1", "block": "256x1x1", "nvtx": "step/solve",
                "ncu_version": "2024.2.1.0", "work": work, "status": status,
                "missing": "fp64 l2" if status == "no-work-metrics" else "",
                "notes": "profiled at less than 90% of the maximum clock" if clocks and clock["clock_ratio"] < 0.9 else "",
                **(_usage(gpu, levels, of_units) if usage else {}),
            }
        )  # fmt: skip
        kernels[-1]["recoverable"] = base["seconds"] * (1 - 1 / kernels[-1].get("headroom", NAN))
        if index < tensor_unknown:
            _unknown_tensor(kernels[-1], rows + composite)
        points += rows + composite
    total = sum(row["seconds"] for row in kernels)
    for row in kernels:
        known = row.get("recoverable", NAN) == row.get("recoverable", NAN)
        row |= {"time_share": row["seconds"] / total, "judged_seconds": known * row["seconds"], "short_seconds": 0.0}
    return FakeRoofline(_typed(points, columns.POINTS), roofs, _typed(kernels, columns.KERNELS))


def shown_rows(frames: Any) -> list[dict[str, Any]]:
    """What the table of kernels holds: a row per kernel and precision."""
    table = kernels_table(frames)
    works = iter(table.detail.rows if table.detail else ())
    pairs = zip(table.rows, table.parts, strict=True)
    return [{**row, **work} for row, parts in pairs for work in ([next(works) for _ in range(parts)] or [{"precision": ""}])]


def many(copies: int) -> FakeRoofline:
    """A hundred kernels over and over, each time with names of their own and a little elsewhere."""
    few = make_roofline(100, ("fp32",), levels=("l1", "l2", "dram", "system"), zero_flop=5)
    frames = []
    for frame in (few.points, few.kernels):
        parts = [frame.assign(kernel=[f"{name} ({copy})" for name in frame["kernel"]]) for copy in range(copies)]
        frames.append(pd.concat(parts, ignore_index=True))
    points, kernels = frames
    away = np.random.default_rng(1).uniform(0.4, 2.5, len(points))
    return FakeRoofline(
        points.assign(intensity=points["intensity"] * away, performance=points["performance"] / away), few.roofs, kernels
    )
