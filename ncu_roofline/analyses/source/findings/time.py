"""Findings on warps: lanes that do nothing, and where warps wait."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

import numpy as np

from ncu_roofline.analyses.source.findings.examined import DIVERGENCE_ADVICE, Array, Cause, Examined, Finding, Site, hits, per
from ncu_roofline.chips import load_stalls
from ncu_roofline.chips.circumstances import ACCESSES, circumstances, holding
from ncu_roofline.chips.source_counters import SECTOR, WARP, WORKING
from ncu_roofline.chips.stalls import ASYNCHRONOUS, Stall
from ncu_roofline.chips.thresholds import FINDING_SHARE, LANES_WORKING, SAMPLES_MIN
from ncu_roofline.chips.verdict import as_percent

_STORES = dict(ACCESSES)["narrow_stores"]
_MOST = 3  # places where warps wait that are told


def divergence(launch: Examined) -> Iterator[Finding]:
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
    do = WORKING if np.isnan(launch["active"]).all() else "are active"
    for site in launch.sites(per_row * (begin - active), few, FINDING_SHARE * executed):
        times = per(launch, site, "executed")
        message = (
            f"{site.place}: {WARP * float((active * per_row)[site.rows].sum()) / times:.1f} of {WARP} lanes {do} in "
            f"{as_percent(times / executed)} of the kernel's warp instructions."
        )
        yield Finding("divergence", site, times / executed, "instructions", message, DIVERGENCE_ADVICE)


def _active(launch: Examined) -> Array:
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


def _begin(launch: Examined) -> float:
    """Share of a warp's lanes at the kernel's first instruction: less than 1 where blocks are no whole warps."""
    rows = np.flatnonzero((launch["offset"] == 0) & (launch["function"] == launch["function"][0]) & launch.inside)
    found = _active(launch)[rows[:1]].tolist()
    return min(found[0], 1.0) if found and found[0] > 0 else 1.0


def hot_stalls(launch: Examined) -> Iterator[Finding]:
    """The places where most samples found warps waiting for one reason."""
    total, known = launch.total("samples"), load_stalls()
    if not total >= SAMPLES_MIN:
        return
    shown = _circumstances(launch)
    advice = {reason: holding(known[reason].advice, *shown) for reason in launch.samples if reason in known}
    found: list[tuple[Site, str, str]] = []
    for reason in filter(advice.get, advice):
        for unit, mine, least in _by_unit(launch, known[reason], launch.samples[reason], total):
            found += [(site, reason, unit) for site in launch.sites(mine, launch.inside, least)]
    for site, reason, unit in sorted(found, key=lambda one: -one[0].amount)[:_MOST]:
        stall, share = known[reason], site.amount / total
        waits = f"in {as_percent(share)} of the kernel's samples warps wait here {stall.waiting_for(unit)} ({reason})."
        message = " ".join(filter(None, (f"{site.place}: {waits}", holding(stall.cause, *shown))))
        message += hits(launch) if stall.caches else ""
        yield Finding("stall", site, share, "samples", message, advice[reason], f"waiting warps ({reason})")


def _circumstances(launch: Examined) -> tuple[set[str], dict[str, str]]:
    """What the counts of the launch show."""
    opcodes: Counter[str] = Counter()
    for opcode, times in zip(launch["opcode"].tolist(), np.nan_to_num(launch["executed"]).tolist(), strict=True):
        opcodes[opcode] += times
    sums = {name: launch.total(name) / SECTOR for name in ("requested", "local")}
    sums |= {name: launch.total(name) for name in ("shared", "shared_ideal")}
    wasted = launch.wasted / SECTOR
    sums |= {"wasted": float(wasted.sum()), "wasted_stores": float(wasted[launch.among(*_STORES)].sum())}
    known = {name: value for name, value in sums.items() if not math.isnan(value)}
    amounts = {"instructions": float((launch["executed"] > 0).sum()), **known, **launch.about.amounts}
    return circumstances(opcodes, amounts, launch.about.capability >= ASYNCHRONOUS)


def _by_unit(launch: Examined, stall: Stall, samples: Array, total: float) -> Iterator[tuple[str, Array, float]]:
    """Samples of a reason by the unit that warps wait for, "" where that is not known, and how many a place must have."""
    if samples.sum() < stall.least * total:
        return
    units = launch.units() if stall.unit else np.full(launch.size, "", dtype=object)
    for unit in sorted(set(units.tolist())):
        yield unit, np.where(units == unit, samples, 0.0), stall.least_at_place * total


CAUSES: tuple[Cause, ...] = (divergence, hot_stalls)
