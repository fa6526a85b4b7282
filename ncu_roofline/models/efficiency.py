"""Architectural efficiency of one run on one platform, and the choices behind it.

Yang et al., "An Empirical Roofline Methodology for Quantitatively Assessing Performance Portability" (P3HPC 2018), equation 2:
e = P / min(F, B * I) with P performance and F compute ceiling in FLOP/s, B bandwidth ceiling in B/s, I intensity in FLOP/B.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ncu_roofline.errors import RooflineError
from ncu_roofline.models.columns import PORTABILITY_PLATFORMS
from ncu_roofline.models.platform_roofs import Roof
from ncu_roofline.models.runs import Run

FLOPS = ("executed", "canonical")
CEILINGS = ("fma", "nofma", "divide", "divide_nofma", "mix")
BINDING = "binding"
"""Instead of a level: whichever level limits most."""
_WHAT = "Cannot compare"


@dataclass(frozen=True)
class Choices:
    """What goes into the efficiency of each platform.

    ``level`` is a level id or "binding" (equation 2 has one level; the paper takes device memory), ``levels`` those of single
    platforms; ``canonical`` maps variants ("" for the only one) to operations; ``platforms`` is H, all that occur if empty.
    """

    flops: str = "executed"
    ceiling: str = "fma"
    level: str = "dram"
    levels: Mapping[str, str] = field(default_factory=dict)
    canonical: Mapping[str, float] = field(default_factory=dict)
    platforms: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.flops not in FLOPS or self.ceiling not in CEILINGS:
            raise ValueError(f"flops must be one of {', '.join(FLOPS)}, and ceiling one of {', '.join(CEILINGS)}")


def efficiency(performance: float, compute: float, bandwidth: float, intensity: float) -> float:
    """Architectural efficiency, equation 2: FLOP/s over min(FLOP/s, B/s * FLOP/B), as a ratio."""
    return performance / min(compute, bandwidth * intensity)


def efficiency_row(run: Run, choices: Choices) -> dict[str, Any]:
    """A row of the platforms frame, without the portability of its variant."""
    row: dict[str, Any] = {column.name: math.nan if column.dtype == "float" else "" for column in PORTABILITY_PLATFORMS}
    row.update(application=run.application, variant=run.variant, platform=run.platform, device=run.device, source=run.source)
    row.update(status=run.supported, flops=choices.flops, ceiling=choices.ceiling, notes="; ".join(run.notes))
    if run.supported != "yes":
        return {**row, "efficiency": math.nan if run.supported == "not run" else 0.0}
    run = _counted(run, choices)
    compute, level, bandwidth = _limits(run, choices)
    intensity = run.intensity.get(level, math.nan)
    slope = bandwidth.value * intensity
    attainable = min(compute.value, slope)
    bound = "compute" if compute.value <= slope else level
    if math.isnan(compute.value) or math.isnan(slope):
        attainable, bound = run.attainable, "stated"
    share = run.performance / attainable if attainable > 0 else math.nan
    if not 0 < share < math.inf:
        raise RooflineError(_WHAT, run.source, f"the numbers of {run.about} give no efficiency", "Check their units.")
    row.update(precision=run.precision, performance=run.performance, work=run.work, seconds=run.seconds, level=level)
    row.update(intensity=intensity, compute_roof=compute.value, compute_origin=compute.origin, bound=bound)
    row.update(bandwidth_roof=bandwidth.value, bandwidth_origin=bandwidth.origin, attainable=attainable)
    return {**row, "efficiency": share}


def _counted(run: Run, choices: Choices) -> Run:
    """The run with the operations that count: executed ones as they are, canonical ones in the same time and traffic."""
    if choices.flops == "executed":
        return run
    canonical = choices.canonical.get(run.variant, choices.canonical.get("", run.canonical))
    if math.isnan(canonical):
        next_step = "Add a column canonical_flops, or give --canonical-flops."
        raise RooflineError(_WHAT, run.source, f"{run.about} has no canonical FLOP count", next_step)
    if math.isnan(run.work):
        reason = f"{run.about} has rates only, and a canonical count needs the time or the executed FLOPs"
        raise RooflineError(_WHAT, run.source, reason, "Add a column seconds or flops.")
    ratio = canonical / run.work
    scaled = {level: intensity * ratio for level, intensity in run.intensity.items()}
    return replace(run, performance=run.performance * ratio, work=canonical, intensity=scaled)


def _limits(run: Run, choices: Choices) -> tuple[Roof, str, Roof]:
    """The compute ceiling, the level and its bandwidth ceiling; NaN ones where the run states what is attainable.

    Raises RooflineError where one is missing.
    """
    missing = Roof(math.nan, "")
    stated = Roof(math.nan, "stated")
    compute = _ceiling(run, choices.ceiling) or missing
    level = choices.levels.get(run.platform, choices.level)
    if level == BINDING:
        slopes = {name: run.intensity[name] * roof.value for name, roof in run.bandwidth.items() if name in run.intensity}
        level = min(slopes, key=lambda name: slopes[name], default="dram")
    bandwidth = run.bandwidth.get(level, missing)
    if not math.isnan(compute.value) and not math.isnan(bandwidth.value) and level in run.intensity:
        return compute, level, bandwidth
    if not math.isnan(run.attainable):
        return stated, level, stated
    raise _lacks(run, choices.ceiling, level, compute)


def _lacks(run: Run, ceiling: str, level: str, compute: Roof) -> RooflineError:
    if level not in run.intensity:
        known = ", ".join(run.intensity) or "none"
        reason = f"{run.about} has no intensity at {level} (it has {known})"
        return RooflineError(_WHAT, run.source, reason, f"Choose another with --level '{run.platform}=LEVEL'.")
    if math.isnan(compute.value):
        known = ", ".join(run.compute) or "none"
        reason = f"{run.about} has no {ceiling} ceiling in {run.precision} (it has {known})"
        return RooflineError(_WHAT, run.source, reason, f"Give measured ceilings, as --ceilings '{run.platform}=FILE'.")
    reason = f"{run.about} has no bandwidth ceiling of {level}"
    return RooflineError(_WHAT, run.source, reason, f"Give measured ceilings, as --ceilings '{run.platform}=FILE'.")


def _ceiling(run: Run, ceiling: str) -> Roof | None:
    """A compute ceiling; "mix" is what the run's share of fused instructions can reach (Yang, Kurth, Williams 2019, eq. 7)."""
    if ceiling != "mix":
        return run.compute.get(ceiling)
    peak = run.compute.get("fma")
    if peak is None or math.isnan(run.fma_share):
        return None
    return replace(peak, value=peak.value * (1 + run.fma_share) / 2)
