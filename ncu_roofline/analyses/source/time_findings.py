"""Findings on warps: lanes that do nothing, and where warps wait."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from ncu_roofline.analyses.source.sites import Array, Cause, Finding, Launch, Site, per
from ncu_roofline.facts import load_stalls
from ncu_roofline.facts.source_counters import WARP
from ncu_roofline.facts.thresholds import BUSY_SHARE, FINDING_SHARE, LANES_WORKING, SAMPLES_MIN, STALL_SHARE
from ncu_roofline.facts.verdict import as_percent

_MOST = 3  # places where warps wait that are told


def divergence(launch: Launch) -> Iterator[Finding]:
    """Places where many lanes of a warp are inactive.  Predicates that are false are none: of a whole warp they are mostly."""
    executed, per_row = launch.total("executed"), launch["executed"]
    begin, active = _begin(launch), _active(launch)
    if begin < LANES_WORKING:
        row = np.flatnonzero(per_row > 0)[:1]
        message = f"Warps begin with {WARP * begin:.1f} of {WARP} lanes: the blocks of this launch are no whole warps."
        yield Finding(
            "divergence", Site(row, 0.0, ""), 1.0, "instructions", message, f"Use blocks of a multiple of {WARP} threads."
        )
    few = launch.inside & (active < LANES_WORKING * begin)
    for site in launch.sites(per_row * (begin - active), few, FINDING_SHARE * executed):
        times = per(launch, site, "executed")
        message = (
            f"{site.place}: {WARP * float((active * per_row)[site.rows].sum()) / times:.1f} of {WARP} lanes are active in "
            f"{as_percent(times / executed)} of the kernel's warp instructions."
        )
        yield Finding("divergence", site, times / executed, "instructions", message, _DIVERGENCE_ADVICE)


_DIVERGENCE_ADVICE = (
    "Sort or compact work so that the lanes of a warp take one path, give neighbouring lanes equally many iterations, and let "
    "no lane leave early."
)


def _active(launch: Launch) -> Array:
    """Share of a warp's lanes that are active at each instruction; NaN where it was not executed.

    Where only lanes whose predicate is true were counted, those of a block's busiest instruction: its others have as many.
    """
    executed = np.where(launch["executed"] > 0, launch["executed"], np.nan) * WARP
    if not np.isnan(launch["active"]).all():
        return np.asarray(launch["active"] / executed)
    most: dict[tuple[str, int], float] = {}
    blocks = list(zip(launch["function"].tolist(), launch["block"].tolist(), strict=True))
    for block, share in zip(blocks, (launch["threads"] / executed).tolist(), strict=True):
        most[block] = max(share, most.get(block, math.nan)) if share == share else most.get(block, math.nan)
    return np.array([most[block] for block in blocks])


def _begin(launch: Launch) -> float:
    """Share of a warp's lanes at the kernel's first instruction: less than 1 where blocks are no whole warps."""
    rows = np.flatnonzero((launch["offset"] == 0) & (launch["function"] == launch["function"][0]) & launch.inside)
    found = _active(launch)[rows[:1]].tolist()
    return min(found[0], 1.0) if found and found[0] > 0 else 1.0


def hot_stalls(launch: Launch) -> Iterator[Finding]:
    """The places where most samples found warps waiting for one reason."""
    total, known = launch.total("samples"), load_stalls()
    if not total >= SAMPLES_MIN:
        return
    found: list[tuple[Site, str]] = []
    for reason, samples in launch.samples.items():
        if reason in known and known[reason].advice:
            least = (BUSY_SHARE if known[reason].issue else STALL_SHARE) * total
            found += [(site, reason) for site in launch.sites(samples, launch.inside, least)]
    for site, reason in sorted(found, key=lambda one: -one[0].amount)[:_MOST]:
        stall, share = known[reason], site.amount / total
        waits = f"in {as_percent(share)} of the kernel's samples warps wait here {stall.waits} ({reason})"
        message = f"{site.place}: {waits}. {stall.cause}{_hits(launch) if stall.caches else ''}"
        yield Finding("stall", site, share, "samples", message, stall.advice_on(launch.about.capability))


def _hits(launch: Launch) -> str:
    """What the caches served."""
    rates = [f"{as_percent(rate)} in {name}" for name, rate in launch.about.hit_rates.items()]
    return f" The kernel's hit rates: {', '.join(rates)}." if rates else ""


CAUSES: tuple[Cause, ...] = (divergence, hot_stalls)
