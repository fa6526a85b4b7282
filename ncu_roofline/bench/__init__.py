"""Measured ceilings of the GPU at hand: the driver around the benchmark program, its statistics and its files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ncu_roofline.bench.campaign import Progress


def measure(
    device: str = "auto",
    quick: bool = False,
    output: str | Path | None = None,
    nvcc: str = "",
    progress: Progress | None = None,
) -> Path:
    """Build the benchmark, measure one GPU and return the path of its ceilings file (JSON).

    ``device``: index, UUID or "auto", the first (under an MPI launcher the rank's own).  ``output`` is overwritten; without
    one the file lies in the user's cache folder.  ``progress`` is told of each ceiling (silent without).  Raises
    RooflineError without a compiler or GPU, and where nothing could be measured.
    """
    from ncu_roofline.base.errors import explained
    from ncu_roofline.bench.build import NEXT_CACHE, build, cache_folder
    from ncu_roofline.bench.campaign import Progress, file_name, measure_device
    from ncu_roofline.bench.device import choose, local_rank
    from ncu_roofline.bench.measuring import FULL, QUICK
    from ncu_roofline.bench.runner import Runner

    built = build(nvcc=nvcc)
    chosen = choose(Runner(built.path).devices(), device, local_rank())[0]
    target = Path(output) if output is not None else cache_folder() / "ceilings" / file_name(chosen)
    if output is None:
        with explained("Cannot write", target.parent, NEXT_CACHE):
            target.parent.mkdir(parents=True, exist_ok=True)
    settings, say = QUICK if quick else FULL, progress or Progress()
    measure_device(built, chosen, target, settings, only=(), skip=(), force=True, progress=say)
    return target


__all__ = ["measure"]
