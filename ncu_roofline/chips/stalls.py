"""Why warps wait: reasons that ncu samples, in plain words."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from ncu_roofline.chips.fields import DATA, read
from ncu_roofline.chips.thresholds import BUSY_SHARE, STALL_SHARE

FILE = "stalls.toml"
ASYNCHRONOUS = (8, 0)
"""The first compute capability with cp.async."""
HIT_RATES = (("L1", "l1tex__t_sector_hit_rate.pct"), ("L2", "lts__t_sector_hit_rate.pct"))
"""Metrics of what caches served, in percent."""
ALL_HIT = 101.0
"""Percent of hits up to which they may be: sums of several passes come out a little above 100."""
BUSY = (
    ("dram", ("gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", "dram__throughput.avg.pct_of_peak_sustained_elapsed")),
    ("warps", ("sm__warps_active.avg.pct_of_peak_sustained_active",)),
    ("warps_possible", ("sm__maximum_warps_per_active_cycle_pct",)),
)
"""Metrics, in percent, of how full a kernel keeps DRAM and an SM with warps; the first that is there."""
COUNTED = (
    ("waves", "launch__waves_per_multiprocessor"),
    ("limit_registers", "launch__occupancy_limit_registers"),
    ("limit_shared", "launch__occupancy_limit_shared_mem"),
    ("limit_blocks", "launch__occupancy_limit_blocks"),
    ("limit_warps", "launch__occupancy_limit_warps"),
)
"""Metrics of waves of blocks, and of the blocks that an SM has room for."""


class Sentence(NamedTuple):
    """A text, the words of `circumstances` that must be shown for it, and those that must not be."""

    text: str
    where: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()


class Stall(NamedTuple):
    """``waits`` completes "warps wait here ..."; ``advice`` is empty where there is no reason to act.

    ``caches``: hit rates of the kernel say more.  ``issue``: the warp issued, could issue, or waited for its own arithmetic
    only.  ``unit``: ``waits`` with {} for a unit that is waited for, "" where that is not one of several.  ``limits``: ids or
    kinds of limits that make warps wait so.
    """

    id: str
    waits: str
    cause: tuple[Sentence, ...]
    advice: tuple[Sentence, ...] = ()
    caches: bool = False
    issue: bool = False
    unit: str = ""
    limits: tuple[str, ...] = ()

    @property
    def least(self) -> float:
        """The share of all samples from which on the reason is told."""
        return BUSY_SHARE if self.issue else STALL_SHARE

    @property
    def least_at_place(self) -> float:
        """The share that one place must have: what a reason must have in all holds for its units together."""
        return STALL_SHARE if self.unit else self.least


class _Stalls(NamedTuple):
    stalls: tuple[Stall, ...]


@lru_cache(maxsize=1)
def load_stalls() -> Mapping[str, Stall]:
    """By reason as ncu names it (long_scoreboard), those that come with the package, read once."""
    return {stall.id: stall for stall in read(DATA / FILE, FILE, _Stalls).stalls}
