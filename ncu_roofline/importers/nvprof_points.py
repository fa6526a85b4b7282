"""nvprof's kernels as points, with the sentences that say what they lack."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ncu_roofline.importers.cells import listed
from ncu_roofline.importers.nvprof_devices import capability_of, tensor_peak
from ncu_roofline.importers.nvprof_metrics import (
    TENSOR_LEVEL,
    TENSOR_LEVELS,
    fma_share_of,
    not_added,
    traffic_of,
    without_traffic,
    work_of,
)
from ncu_roofline.importers.nvprof_runs import Kernel
from ncu_roofline.importers.tables import ImportedPoint

TENSOR = "tensor.fp16"


def points_of(kernels: Sequence[Kernel]) -> Iterator[ImportedPoint]:
    """One point per kernel or launch, in SI units."""
    capabilities = {device: capability_of(device) for device in dict.fromkeys(kernel.device for kernel in kernels)}
    peaks = {device: tensor_peak(device) for device in capabilities}
    for kernel in kernels:
        capability = capabilities[kernel.device]
        counted = list(work_of(kernel.totals))
        work = {precision: value for precision, value, _ in counted}
        traffic = traffic_of(kernel.totals, capability)
        used = [*(metrics for _, _, metrics in counted), *(metrics for _, metrics in traffic.values())]
        notes = list(_notes(kernel, capability))
        flops = _tensor_work(kernel, peaks[kernel.device])
        if flops is not None:
            work[TENSOR] = flops
            used.append((TENSOR_LEVEL,))
            notes.append(
                f"{TENSOR} work is utilisation / 10 x {peaks[kernel.device]:.4g} FLOP/s x time, to half a level (5 % of peak)"
            )
        yield ImportedPoint(
            name=kernel.name,
            seconds=kernel.seconds,
            work=work,
            traffic={level: value for level, (value, _) in traffic.items()},
            fma_share=fma_share_of(kernel.totals),
            device=kernel.device,
            compute_capability=capability,
            launches=kernel.launches,
            grid=kernel.grid,
            block=kernel.block,
            columns=", ".join(dict.fromkeys(name for names in used for name in names)),
            note="; ".join(notes),
        )


def _tensor_work(kernel: Kernel, peak: float | None) -> float | None:
    """FLOP of the tensor cores from their utilisation: the estimate of Wang et al. (2020), section III."""
    if peak is None or math.isnan(kernel.tensor_level) or math.isnan(kernel.seconds):
        return None
    return kernel.tensor_level / TENSOR_LEVELS * peak * kernel.seconds


def _notes(kernel: Kernel, capability: tuple[int, int]) -> Iterator[str]:
    if lacking := not_added(kernel.totals, capability):
        yield f"L1 traffic without {', '.join(lacking)}, which were not collected"
    if capability == (0, 0) and traffic_of(kernel.totals, capability):
        yield "transactions counted as on Volta: the GPU's name does not tell its generation"


def warnings_of(kernels: Sequence[Kernel]) -> Iterator[str]:
    """What the kernels lack, as sentences without full stop."""
    counted = [kernel for kernel in kernels if kernel.totals or not math.isnan(kernel.tensor_level)]
    timeless = [kernel.name for kernel in counted if math.isnan(kernel.seconds)]
    if not counted:
        yield "it holds times and no counts; give the output of a run with `nvprof --csv --metrics ...` as well"
    elif timeless:
        what = "it holds counts and no times" if len(timeless) == len(kernels) else f"no times for {listed(timeless, 3)}"
        yield f"{what}; give the output of a run with `nvprof --csv --print-gpu-summary` as well"
    reasons = dict.fromkeys(
        (level, reason) for kernel in counted for level, reason in without_traffic(kernel.totals, capability_of(kernel.device))
    )
    for level, reason in reasons:
        yield f"{level} traffic left out: {reason}"
    unknown = [
        kernel.device for kernel in counted if not math.isnan(kernel.tensor_level) and tensor_peak(kernel.device) is None
    ]
    if unknown:
        yield f"{TENSOR_LEVEL} left out: the tensor peak of {listed(unknown, 3)} at its clock is not known"
