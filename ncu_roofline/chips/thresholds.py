"""From where on a measured number means something: each limit once.  Those of the verdict stand with it in `verdict`."""

from __future__ import annotations

MIXED_SHARE = 0.01
"""Below this share of a kernel's work a second pipe is noise (an index computed in floating point), not a mixed kernel."""

ROOFLESS_SHARE = 0.01
"""Work without a roof that is less than this share of all says nothing against the verdict."""

CLOCK_WARNING = 0.9
"""Share of the maximum clock below which a profiled clock is warned of."""

SHORT_LAUNCH = 20e-6
"""Seconds below which a duration is launching as much as running, and cycles / duration is no clock.

612 MHz stood beside 1.29 GHz of longer launches in one report (V100), for the memory likewise.
"""

LEAST_CLOCK = 1e6
"""Hz below which a value is no clock: GPUs idle at tens of MHz and more, and short launches, whose duration is mostly
launching, still give hundreds."""

TELLING = 0.01
"""A smaller share of a peak, in percent as ncu writes it, has too few digits to work out the peak from."""

MATTERS, PCIE = 0.01, 31.5e9
"""A level drawn on request shows from this share of DRAM's traffic on, or if it takes this share of the time over a PCIe 4.0
link of 16 lanes (31.5 GB/s each way)."""

COMPLETE = 0.01
"""Instruction families that make up less or more of a total than this share were not all counted."""

REPEATED = 1.02
"""Up to this share of a measured roof two honest measurements may differ: table III of Yang et al. (2018) has 100.64 %."""

SAMPLED_WHOLE = 0.99
"""Share of the grid whose starts must have been sampled, and of the time, or a part of the launch is unknown."""

STRETCHED = 1.1
"""Runs of pass groups that differ more than this in length did not do the same at the same time."""

MOST = 1.5
"""A larger share of a peak is none: counters of several passes that don't fit together, or overflow."""

GROUP_LESS = 1e-6
"""A named part that is as busy as its group, but for this share, has the better name."""

MOST_OF_TIME = 0.5
"""Share of a kernel's samples from which on a loop's performance is told.

Warps run side by side, so samples of different code overlap in time: a line of one A100 kernel with 43.8 % of the samples and
all 2.199 TFLOP would stand at 325 TFLOP/s, above the chip's 312.
"""

FINDING_SHARE = 0.03
"""Below this share of what a finding is about it is not told: a few percent are within what counts and samples scatter."""

UNIT_SHARE = 0.05
"""A finding on memory accesses is told if what they could save costs their unit this share of the cycles in which all
instructions of the kernel could be issued: in a cycle an SM issues 4 instructions, and L1 serves 4 sectors or 1 wavefront."""

LEFT_OUT = 0.05
"""Lines of a loop that together have less than this share of an amount are no part of the place that a finding names."""

FULL_LANES = 0.99
"""From this share of lanes on a warp is taken as full: what sectors per request say of strides holds."""

LANES_WORKING = 0.75
"""Below this share of active lanes a place is called divergent; guards of loops and their last iterations stay above."""

UNFUSED_LEFT = 0.1
"""Where fused multiply-adds are less than this share of a precision's arithmetic, the compiler did not fuse (-fmad=false) or
could not; where they are more, the additions and multiplications that are left are those that can't be fused."""

BETWEEN_SHARE = 0.1
"""Conversions beside FP64 arithmetic that are a smaller share of it are not why it is there: it is meant."""

INTEGER_SHARE = 0.4
"""From this share of a loop's instructions on integer arithmetic is named; indices and bounds of unrolled loops stay below."""

ISSUE_SHARE = 0.5
"""Where warps could issue or waited for arithmetic in a smaller share of the samples, fewer instructions would save little."""

STALL_SHARE = 0.1
"""From this share of all samples on a place where warps wait is named."""

BUSY_SHARE = 0.2
"""The same for waiting on arithmetic, which every kernel does between its instructions."""

SAMPLES_MIN = 200
"""Fewer samples say too little: of 200, a share of 10 % is known to 2 % (one standard deviation)."""
