"""Why warps wait: reasons that ncu samples, in plain words."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, NamedTuple

from ncu_roofline.base.records import Stated
from ncu_roofline.chips.circumstances import ACCESSES, KINDS
from ncu_roofline.chips.fields import DATA, bad, read
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

WORDS = (
    *(word for word, _ in KINDS + ACCESSES),
    "slow",
    *("scattered", "scattered_stores", "spills", "conflicts"),  # sectors that addresses waste, local memory, bank conflicts
    *("dram", "no_dram"),  # its bandwidth limits, or doesn't
    *("capped", "few_blocks", "last_wave", "few_warps"),  # an SM has no room for its warps, or has it and yet holds few
    *("long_code", "short", "asynchronous"),
)
"""What `circumstances` may show."""


def _known(words: tuple[str, ...]) -> tuple[str, ...]:
    for word in words:
        if word not in WORDS:
            raise ValueError(f"{word} is none of {', '.join(WORDS)}")
    return words


def _with_place(text: str) -> str:
    if text.count("{}") != 1:
        raise ValueError("must name the place of the unit by {}")
    return text


Words = Annotated[tuple[str, ...], Stated(tuple[str, ...], _known)]
WithPlace = Annotated[str, Stated(str, _with_place)]


class Sentence(NamedTuple):
    """A text, the words of `circumstances` that must be shown for it, and those that must not be."""

    text: str
    where: Words = ()
    unless: Words = ()


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
    unit: WithPlace = ""
    limits: tuple[str, ...] = ()

    @property
    def least(self) -> float:
        """The share of all samples from which on the reason is told."""
        return BUSY_SHARE if self.issue else STALL_SHARE

    @property
    def least_at_place(self) -> float:
        """The share that one place must have: what a reason must have in all holds for its units together."""
        return STALL_SHARE if self.unit else self.least

    def waiting_for(self, unit: str) -> str:
        """What completes "warps wait here ..." where they need a unit, "" for one that is not known."""
        return self.unit.replace("{}", unit) if self.unit and unit else self.waits


class _Stalls(NamedTuple):
    stalls: tuple[Stall, ...]


@lru_cache(maxsize=1)
def load_stalls() -> Mapping[str, Stall]:
    """By reason as ncu names it (long_scoreboard), those that come with the package, read once."""
    return read_stalls(DATA / FILE)


def read_stalls(path: Path) -> Mapping[str, Stall]:
    """Read and check a file.  `SpecError` names file and key of the first mistake."""
    found: dict[str, Stall] = {}
    for index, stall in enumerate(read(path, FILE, _Stalls).stalls):
        if found.setdefault(stall.id, stall) is not stall:
            bad(FILE, f"stalls[{index}].id", f"{stall.id} stands there twice")
    return found
