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

MATTERS, PCIE = 0.01, 31.5e9
"""A level drawn on request shows from this share of DRAM's traffic on, or if it takes this share of the time over a PCIe 4.0
link of 16 lanes (31.5 GB/s each way)."""

COMPLETE = 0.01
"""Instruction families that make up less or more of a total than this share were not all counted."""

REPEATED = 1.02
"""Up to this share of a measured roof two honest measurements may differ: table III of Yang et al. (2018) has 100.64 %."""

MOST = 1.5
"""A larger share of a peak is none: counters of several passes that don't fit together, or overflow."""

GROUP_LESS = 1e-6
"""A named part that is as busy as its group, but for this share, has the better name."""
