"""From where on a measured number means something: each limit once.  Those of the verdict and of findings stand with them.

The rule generator puts the source of this file into the rules, where Python may be 3.5.
"""

from __future__ import annotations

# Below this share of a kernel's work a second pipe is noise (an index computed in floating point), not a mixed kernel.
MIXED_SHARE = 0.01
# Work without a roof that is less than this share of all says nothing against the verdict.
ROOFLESS_SHARE = 0.01
# Share of the maximum clock below which a profiled clock is warned of.
CLOCK_WARNING = 0.9
# Seconds below which a duration is launching as much as running, and cycles / duration is no clock: 612 MHz stood beside 1.29
# GHz of longer launches in one report (V100), for the memory likewise.
SHORT_LAUNCH = 20e-6
# Hz below which a value is no clock: GPUs idle at tens of MHz and more, and short launches, whose duration is mostly launching,
# still give hundreds.
LEAST_CLOCK = 1e6
# A smaller share of a peak, in percent as ncu writes it, has too few digits to work out the peak from.
TELLING = 0.01
# A level drawn on request shows from this share of DRAM's traffic on, or if it takes this share of the time over a PCIe 4.0
# link of 16 lanes (31.5 GB/s each way).
MATTERS, PCIE = 0.01, 31.5e9
# Instruction families that make up less or more of a total than this share were not all counted.
COMPLETE = 0.01
# Up to this share of a measured roof two honest measurements may differ: table III of Yang et al. (2018) has 100.64 %.
REPEATED = 1.02
# Share of the grid whose starts must have been sampled, and of the time, or a part of the launch is unknown.
SAMPLED_WHOLE = 0.99
# Runs of pass groups that differ more than this in length did not do the same at the same time.
STRETCHED = 1.1
# A larger share of a peak is none: counters of several passes that don't fit together, or overflow.
MOST = 1.5
# A named part that is as busy as its group, but for this share, has the better name.
GROUP_LESS = 1e-6
# Share of a kernel's samples from which on a loop's performance is told.  Warps run side by side, so samples of different code
# overlap in time: a line of one A100 kernel with 43.8 % of the samples and all 2.199 TFLOP would stand at 325 TFLOP/s, above
# the chip's 312.
MOST_OF_TIME = 0.5
