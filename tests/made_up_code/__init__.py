"""Reports with source counters whose code is real and whose counts are made up: `smooth.cu`, before and after its findings were
mended (`smooth-after.cu`), each compiled as /made-up/smooth.cu by

nvcc -arch=sm_80 -lineinfo -cubin smooth.cu -o smooth-sm80.cubin

Beside it kernels with arithmetic that could be cheaper, for tests: `arithmetic.cu`, compiled so with -fmad=false.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from ncu_roofline.formats.report import Code, CodeFunction, ImportedFile, KernelData
from tests.factory import A100, NO_WORK, Metrics, flops, timing, traffic

FOLDER = Path(__file__).parent
NAME, BASE = "smooth_made_up", 0x7F30_0000_0000
ROWS, WIDTH, SWEEPS, SECONDS = 1_048_576, 64, 16, 6.9e-3
WARPS = ROWS // 32
_INNER, _OUTER = 32 * WARPS * SWEEPS * WIDTH, 32 * WARPS * SWEEPS  # times that threads go round the loops


class _State(NamedTuple):
    """What is made up of a state of the code."""

    files: str
    executed: tuple[tuple[int, int], ...]  # instructions up to this offset, and how often a warp executes them
    sectors: Mapping[int, tuple[int, int]]  # by offset: sectors that the addresses touch, and that neighbouring ones would
    samples: Mapping[int, tuple[int, str]]  # by offset, and stall reason; the warp that issues is sampled, too
    work: Metrics
    seconds: float
    eligible: float


_BEFORE = _State(
    "smooth", ((0x110, 1), (0x170, SWEEPS), (0x230, SWEEPS * WIDTH), (0x250, SWEEPS), (0x290, 1), (0x380, 0)),
    {0x190: (32, 4), 0x270: (4, 4)},
    {
        0x030: (31, "long_scoreboard"), 0x050: (12, "wait"), 0x110: (40, "wait"), 0x160: (26, "wait"), 0x170: (610, "wait"),
        0x180: (520, "wait"), 0x190: (1905, "lg_throttle"), 0x1a0: (1390, "math_pipe_throttle"), 0x1b0: (640, "wait"),
        0x1c0: (585, "wait"), 0x1d0: (940, "math_pipe_throttle"), 0x1e0: (560, "wait"), 0x1f0: (380, "wait"),
        0x200: (3430, "math_pipe_throttle"), 0x210: (7120, "long_scoreboard"), 0x220: (870, "branch_resolving"),
        0x230: (85, "wait"), 0x240: (95, "branch_resolving"), 0x270: (58, "long_scoreboard"), 0x280: (9, "drain"),
    },
    {**flops("f", mul=_OUTER, fma=_INNER), **flops("d", add=_INNER, mul=_INNER), **flops("h", fma=32 * WARPS)},
    SECONDS, 0.4,
)  # fmt: skip
_AFTER = _State(
    "smooth-after", ((0x0f0, 1), (0x140, SWEEPS), (0x1d0, SWEEPS * WIDTH), (0x1f0, SWEEPS), (0x230, 1), (0x300, 0)),
    {0x140: (4, 4), 0x210: (4, 4)},
    {
        0x030: (12, "long_scoreboard"), 0x100: (18, "wait"), 0x140: (310, "lg_throttle"), 0x150: (240, "wait"),
        0x160: (170, "wait"), 0x170: (160, "wait"), 0x180: (190, "wait"), 0x190: (150, "wait"), 0x1a0: (260, "wait"),
        0x1b0: (5120, "long_scoreboard"), 0x1c0: (310, "branch_resolving"), 0x1d0: (30, "wait"), 0x210: (21, "long_scoreboard"),
    },
    {**flops("f", mul=_INNER + _OUTER, fma=_INNER), **flops("h", fma=32 * WARPS + _INNER)},
    2.5e-3, 0.6,
)  # fmt: skip
# What it has none of.
_NONE = ("memory_l2_theoretical_sectors_local", "memory_l1_wavefronts_shared", "memory_l1_wavefronts_shared_ideal")
_STALLED, _NOT_ISSUED = "smsp__pcsamp_warps_issue_stalled_", "_not_issued"


def executed(state: _State = _BEFORE) -> dict[int, int]:
    """Warp instructions by offset."""
    starts = (0, *(end for end, _ in state.executed))
    return {
        offset: times * WARPS
        for start, (end, times) in zip(starts, state.executed, strict=False)
        for offset in range(start, end, 16)
    }


def _at(values: Mapping[int, int]) -> list[tuple[int, int]]:
    return [(BASE + offset, value) for offset, value in values.items()]


def _stalls(state: _State) -> dict[str, list[tuple[int, int]]]:
    """Three quarters of the samples for the reason of their place, the others for the warp that issues."""
    found: dict[str, dict[int, int]] = {}
    for offset, (count, reason) in state.samples.items():
        waiting = count * 3 // 4
        found.setdefault(reason, {})[offset] = waiting
        found.setdefault(f"{reason}{_NOT_ISSUED}", {})[offset] = waiting * 2 // 3
        found.setdefault("selected", {})[offset] = count - waiting
    return {_STALLED + reason: _at(values) for reason, values in found.items()}


def smooth(*, code: bool = True, text: bool = True, sampled: bool = True, after: bool = False) -> KernelData:
    """The launch; ``code`` with the cubin, ``text`` with the source, ``sampled`` with samples of its warps; ``after`` or before
    its findings were mended."""
    state = _AFTER if after else _BEFORE
    warps = executed(state)
    sectors = {offset: warps[offset] * count for offset, (count, _) in state.sectors.items()}
    ideal = {offset: warps[offset] * count for offset, (_, count) in state.sectors.items()}
    threads = {offset: 32 * count for offset, count in warps.items()}
    samples = {offset: count for offset, (count, _) in state.samples.items()}
    sums = {"inst_executed": warps, "thread_inst_executed": threads, "thread_inst_executed_true": threads,
            "memory_l2_theoretical_sectors_global": sectors, "memory_l2_theoretical_sectors_global_ideal": ideal,
            **({"smsp__pcsamp_sample_count": samples} if sampled else {})}  # fmt: skip
    metrics: Metrics = {
        **A100, **timing(state.seconds), **NO_WORK, **state.work,
        **traffic(32 * sum(sectors.values()), 134_217_728, 3_200_000_000),
        **{name: sum(values.values()) for name, values in sums.items()},
        **dict.fromkeys(_NONE, 0),
        "smsp__inst_executed.sum": sum(warps.values()),
        "sm__warps_active.avg.pct_of_peak_sustained_active": 88.0,
        "smsp__warps_eligible.avg.per_cycle_active": state.eligible,
    }  # fmt: skip
    source = (FOLDER / f"{state.files}.cu").read_text(encoding="utf-8")
    files = (ImportedFile("/made-up/smooth.cu", source),) if text else ()
    cubin = (FOLDER / f"{state.files}-sm80.cubin").read_bytes() if code else b""
    return KernelData(
        NAME, NAME, NAME, grid=(ROWS // 128, 1, 1), block=(128, 1, 1),
        metrics=metrics,
        instances={**{name: _at(values) for name, values in sums.items()}, **(_stalls(state) if sampled else {}),
                   "launch__function_pcs": [(None, BASE)]},
        code=Code(cubin, files, (CodeFunction(NAME, BASE),)) if code or text else None,
    )  # fmt: skip
