"""Synthetic rooflines for the renderers' tests: frames as the model makes them, with data-sheet sized values."""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ncu_roofline.model import columns

NAN = float("nan")
tomllib = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")


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


GIVEN = tomllib.loads(Path(__file__).with_name("frames.toml").read_text(encoding="utf-8"))
CHIPS = {name: Chip(**chip) for name, chip in GIVEN["chips"].items()}
A100 = CHIPS["a100"]
TAME, ODD = (tuple(map(tuple, GIVEN["names"][kind])) for kind in ("tame", "odd"))
LEVEL_LABELS = {"l1": "L1/TEX", "shared": "Shared", "l2": "L2", "dram": "HBM", "system": "System memory"}
ROOF_LABELS = {"fma": "FMA", "nofma": "no FMA", "mma": "mma.sync", "wgmma": "wgmma"}


def kernel_names(count: int, odd: bool) -> list[tuple[str, str]]:
    """``count`` pairs (full name, unique short name), the odd ones first when ``odd``."""
    names = [*(ODD if odd else ()), *TAME][:count]
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
    origins = [("theoretical", chip.clock_profiled, "profiled", "binding", "sm__cycles_elapsed.avg.per_second")]
    if measured:
        origins.append(("measured", chip.clock_max, "measured", "ceilings", "ceilings.json, 2024-05-01, 5 runs"))
    rows = []
    for origin, clock, basis, source, metrics in origins:
        common = {**where, "origin": origin, "clock": clock, "clock_basis": basis, "source": source, "metrics": metrics}
        scale, spread = (0.89, 0.0) if origin == "measured" else (chip.clock_profiled / chip.clock_max, clocks_differ / 2)

        def add(value: float, by: float, **roof: str) -> None:
            ends = {"value_min": value * (1 - by), "value_max": value * (1 + by)}
            rows.append({**common, **roof, "value": value, **ends})  # noqa: B023

        for precision in precisions:
            called = f"{precision.removeprefix('tensor.').upper()}{' Tensor' * ('.' in precision)}"
            unit = "op/s" if "int" in precision else "flop/s"
            for name, peak in chip.compute.get(precision, {}).items():
                label = f"{called} {ROOF_LABELS[name]}"
                roof = {"roof": f"{precision}.{name}", "kind": "compute", "precision": precision, "label": label, "unit": unit}
                add(peak * scale, spread, **roof)
        for level in levels:
            own = level in ("dram", "system")  # a clock of its own
            value = chip.bandwidth[level] * (1.0 if own and origin == "theoretical" else scale)
            roof = {"roof": level, "kind": "bandwidth", "level": level, "label": LEVEL_LABELS[level], "unit": "byte/s"}
            add(value, 0.0 if own else spread, **roof)
    return rows


class _Roofs:
    """The highest roofs by origin, and the one that limits."""

    def __init__(self, roofs: pd.DataFrame) -> None:
        self.origin = "measured" if roofs.origin.eq("measured").any() else "theoretical"
        self.highest = roofs.assign(of=roofs.precision + roofs.level).groupby(["origin", "of"])["value"].max().to_dict()

    def limit(self, precision: str, level: str, intensity: float, origin: str = "") -> float:
        origin = origin or self.origin
        return float(min(self.highest[origin, precision], intensity * self.highest[origin, level]))


def _point_rows(
    base: dict[str, Any], chip: Chip, precisions: Sequence[str], roofs: _Roofs, levels: Sequence[str], rng: random.Random
) -> list[dict[str, Any]]:
    """The rows of one kernel, one per precision and level, on or below the roofs; the last precision does most of the work."""
    main, traffic, attainable = precisions[-1], dict[str, float](), list[float]()
    intensity = 10 ** rng.uniform(-1.2, 0.8) * (20 if main.startswith("tensor") else 1)
    for level in levels:
        traffic[level] = 1 / intensity
        attainable.append(roofs.limit(main, level, intensity))
        intensity *= 10 ** rng.uniform(0.02, 0.8)
    whole, rows = min(attainable) * rng.uniform(0.12, 0.97), list[dict[str, Any]]()
    for precision in precisions:
        compute = float(roofs.highest[roofs.origin, precision])
        share = 1.0 if precision == main else min(0.9 * compute / whole, 10 ** rng.uniform(-2.0, -0.8))
        performance, work, mine = whole * share, whole * share * base["seconds"], list[dict[str, Any]]()
        # 60 % fused instructions, as the published GPP has; tensor pipes know no such mix.
        mix = {} if precision.startswith("tensor") else {"compute_roof": compute, "fma_share": 0.6, "mix_roof": 0.8 * compute}
        for level, ratio in ((level, ratio / share) for level, ratio in traffic.items()):
            limits = [roofs.limit(precision, level, 1 / ratio, origin) for origin in (roofs.origin, "theoretical")]
            mine.append(
                {
                    **base, "precision": precision, "level": level, "work": work, "traffic": work * ratio,
                    "unit": "op" if "int" in precision else "flop", "intensity": 1 / ratio, "performance": performance,
                    "bandwidth": performance * ratio, "attainable": limits[0], "fraction": performance / limits[0],
                    "roof_origin": roofs.origin, "attainable_theoretical": limits[1],
                    "fraction_theoretical": performance / limits[1], "coverage": 1.0, "source": "binding", **mix,
                    "metrics": "smsp__sass_thread_inst_executed_op_dfma_pred_on.sum, dram__bytes.sum",
                }
            )  # fmt: skip
        lowest = min(mine, key=lambda row: row["attainable"])
        binds = lowest["level"] if lowest["attainable"] < compute else f"{precision}.{next(iter(chip.compute[precision]))}"
        for row, outer in zip(mine, [*mine[1:], None], strict=True):
            row.update(binds=binds, binding_fraction=performance / lowest["attainable"])
            if outer:
                row.update(locality=outer["intensity"] / row["intensity"], locality_to=outer["level"])
        rows += mine
    return rows


def _usage(chip: Chip, levels: Sequence[str], rng: random.Random) -> dict[str, Any]:
    """What the hardware says of a kernel's units: shares of their peaks, the busiest of them, and the verdict on them."""
    shares = {level: rng.uniform(0.02, 0.9) for level in levels}
    shares["sm"] = rng.uniform(0.05, 0.7)
    busiest = max(shares, key=lambda unit: shares[unit])
    most, label = shares[busiest], "SM" if busiest == "sm" else LEVEL_LABELS[busiest]
    verdict = f"{'compute' if busiest == 'sm' else 'memory'}: {label}" if most >= 0.6 else "latency"
    occupancy = rng.uniform(0.1, 0.5)
    state = f"nothing is full: nearest is {label} at {most:.0%} busy; occupancy {occupancy:.0%} of 50 % possible"
    return {
        **{f"fraction_{unit}": share for unit, share in shares.items()},
        **{f"bandwidth_{level}": shares[level] * chip.bandwidth[level] for level in levels},
        "busiest_unit": label, "busiest_fraction": most, "limit": busiest, "limit_fraction": most, "verdict": verdict,
        "headroom": 1 / most, "headroom_or_less": 0, "headroom_compute": 2.5 / shares["sm"], "speedup": 1 / most,
        "occupancy": occupancy, "occupancy_theoretical": 0.5, "waves": rng.uniform(0.3, 40), "ipc": rng.uniform(0.1, 3),
        "issue_fraction": rng.uniform(0.05, 0.6),
        "reason": f"bound by its {label} at {most:.0%} of peak: {1 / most:.1f}x" if most >= 0.6 else state,
    }  # fmt: skip


def _unknown_tensor(kernel: dict[str, Any], points: list[dict[str, Any]]) -> None:
    """Make the tensor work of a kernel unknown: what binds it is withheld."""
    why = "the tensor pipe was active in 43 % of the cycles but its operations were not collected"
    kernel |= {"verdict": "tensor work unknown", "tensor_active": 0.43, "reason": why}
    kernel |= dict.fromkeys(("headroom", "headroom_compute", "speedup", "recoverable"), NAN)
    kernel["notes"] = "; ".join(filter(None, [kernel["notes"], "tensor cores were busy in 43% of the cycles"]))
    for row in points:
        row.update(binds="", binding_fraction=NAN)


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
    ratio = gpu.clock_profiled / gpu.clock_max
    clock = {"clock_profiled": gpu.clock_profiled, "clock_max": gpu.clock_max, "clock_ratio": ratio}
    where = {"report": report, "device": gpu.device, "compute_capability": gpu.compute_capability, **(clock if clocks else {})}
    points, kernels = list[dict[str, Any]](), list[dict[str, Any]]()
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
            rows = _point_rows(base, gpu, precisions if index % 2 == 0 else precisions[:1], _Roofs(roofs), levels, rng)
        composite = _mixed(rows, levels) if mixed and len({row["precision"] for row in rows}) > 1 else []
        work = {"ok": sum(row["work"] for row in rows if row["level"] == levels[0]), "zero-flop": 0.0}.get(status, NAN)
        kernels.append(
            {
                **base, "name": full, "kind": "kernel", "grid": "4096x1x1", "block": "256x1x1", "nvtx": "step/solve",
                "ncu_version": "2024.2.1.0", "work": work, "status": status,
                "missing": "fp64 l2" if status == "no-work-metrics" else "",
                "notes": "profiled at less than 90% of the maximum clock" if clocks and ratio < 0.9 else "",
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


def joined(*parts: FakeRoofline) -> FakeRoofline:
    """The rows of several, one below the other."""
    frames = ("points", "roofs", "kernels")
    return FakeRoofline(*(pd.concat([getattr(one, name) for one in parts], ignore_index=True) for name in frames))


def sweep(kernels: int = 2, steps: int = 3) -> FakeRoofline:
    """Synthetic kernels, each in some steps that move to the right."""
    parts = []
    for step in range(steps):
        made = make_roofline(kernels, zero_flop=0, report=f"n{step}.ncu-rep")
        for frame in (made.points, made.kernels):
            frame["step"], frame["label"], frame["launch"] = step, f"n={step}", -1
        made.points["intensity"] *= 1.7**step
        parts.append(made)
    whole = joined(*parts)
    return FakeRoofline(whole.points, parts[0].roofs, whole.kernels)


def many(copies: int) -> FakeRoofline:
    """A hundred kernels over and over, each time with names of their own and a little elsewhere."""
    few = make_roofline(100, ("fp32",), levels=("l1", "l2", "dram", "system"), zero_flop=5)
    frames = []
    for frame in (few.points, few.kernels):
        parts = [frame.assign(kernel=[f"{name} ({copy})" for name in frame["kernel"]]) for copy in range(copies)]
        frames.append(pd.concat(parts, ignore_index=True))
    points, kernels = frames
    away = np.random.default_rng(1).uniform(0.4, 2.5, len(points))
    points = points.assign(intensity=points["intensity"] * away, performance=points["performance"] / away)
    return FakeRoofline(points, few.roofs, kernels)
