"""Findings on memory accesses: sectors that better addresses would save, bank conflicts, spilled registers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ncu_roofline.analyses.source.findings.examined import DIVERGENCE_ADVICE, Cause, Examined, Finding, Site, hits, per
from ncu_roofline.chips.source_counters import SECTOR, WARP
from ncu_roofline.chips.stalls import ASYNCHRONOUS
from ncu_roofline.chips.thresholds import FINDING_SHARE, FULL_LANES, UNIT_SHARE
from ncu_roofline.chips.verdict import as_percent

_SECTORS_PER_CYCLE, _WAVEFRONTS_PER_CYCLE, _ISSUE_PER_CYCLE = 4, 1, 4  # of an SM
_LOADS = ("LD", "LDG", "LDGSTS")
_ATOMICS = ("ATOM", "ATOMG", "RED", "REDG")
_TRAFFIC = "traffic of global memory at L1"
_NEAR = 0.02  # of a whole number
_TMA = (9, 0)  # compute capability


def excess(launch: Examined) -> Iterator[Finding]:
    """Accesses whose addresses ask for more sectors than their bytes need; tensor-feed where tensor instructions wait."""
    requested = launch.total("requested")
    for site in launch.sites(launch.wasted, launch.of_kind("memory"), FINDING_SHARE * requested):
        if not _matters(launch, site.amount / SECTOR / _SECTORS_PER_CYCLE):
            continue
        feeds = _feeds_tensor(launch, site)
        loads = f"{_words(launch, site)}{' of a loop with tensor instructions' if feeds else ''}"
        share = per(launch, site, "requested") / requested
        message = (
            f"{site.place}: {_pattern(launch, site)}{_used(launch, site)}. {_these(site, loads)} "
            f"{as_percent(share)} of the kernel's {_TRAFFIC}; of all that traffic "
            f"{as_percent(site.amount / requested)} would be saved."
        )
        advice = _ATOMIC_ADVICE if launch.names[site.rows[0]] in _ATOMICS else _tensor_advice(launch) if feeds else _ADVICE
        advice += hits(launch) if advice == _ADVICE else ""
        yield Finding("tensor-feed" if feeds else "excess", site, share, _TRAFFIC, message, advice)


def gaps(launch: Examined) -> Iterator[Finding]:
    """Accesses in which few lanes take part, so that they ask for parts of sectors."""
    requested = launch.total("requested")
    for site in launch.sites(launch.gaps, launch.of_kind("memory"), FINDING_SHARE * requested):
        if not _matters(launch, site.amount / SECTOR / _SECTORS_PER_CYCLE):
            continue
        share, row = per(launch, site, "requested") / requested, site.rows[0]
        lanes = launch.lanes[row] / launch["executed"][row]
        message = (
            f"{site.place}: {_used(launch, site)}, as {lanes:.1f} of {WARP} lanes take part: whole warps that access "
            f"neighbouring addresses have no such gaps. {_these(site, _words(launch, site))} {as_percent(share)} of "
            f"the kernel's {_TRAFFIC}; gaps are up to {as_percent(site.amount / requested)} of all that "
            "traffic."
        )
        yield Finding("gaps", site, share, _TRAFFIC, message, DIVERGENCE_ADVICE)


def _used(launch: Examined, site: Site) -> str:
    """What is used of the sectors that the access with most of it asks for."""
    row = site.rows[0]
    return f"{SECTOR * launch['ideal'][row] / launch['requested'][row]:.1f} of the {SECTOR} bytes of a sector are needed"


def _these(site: Site, loads: str) -> str:
    """The accesses of a place, by their number where they are several: what they make follows."""
    return f"These {f'{len(site.rows)} ' if len(site.rows) > 1 else ''}{loads} make"


_ADVICE = (
    "Let neighbouring lanes access neighbouring addresses: structure of arrays, loops exchanged so that threadIdx.x runs along "
    "memory, or a tile transposed through shared memory. Bytes of DRAM are saved only where L1 and L2 miss."
)
_ATOMIC_ADVICE = "Add up within a warp or block first (shuffles, shared memory), then let one lane write."


def _tensor_advice(launch: Examined) -> str:
    capability = launch.about.capability
    by = " (cp.async or TMA)" if capability >= _TMA else " (cp.async)" if capability >= ASYNCHRONOUS else ""
    return (
        f"Load tiles so that a warp covers whole rows of 128 bytes, 16 bytes per lane{by}, and change their layout in shared "
        "memory: tensor instructions wait for what comes late."
    )


def _pattern(launch: Examined, site: Site) -> str:
    """Sectors per warp of the access with most, where all its lanes work: then what it needs is whole; else ""."""
    row = site.rows[0]
    executed = launch["executed"][row]
    if not launch.lanes[row] >= FULL_LANES * WARP * executed >= 1 or launch.names[row] in _ATOMICS:
        return ""
    sectors, needed = (launch[name][row] / SECTOR / executed for name in ("requested", "ideal"))
    where = f"where {needed:.3g} would do"
    if needed < WARP // 2 and abs(sectors - WARP) <= _NEAR * WARP:
        return f"each lane asks for a sector of its own (strides of {SECTOR} bytes or more), {WARP} per warp {where}; "
    if sectors <= needed + 1 + _NEAR:
        return f"{sectors:.3g} sectors per warp {where}, as where rows don't begin at a multiple of {SECTOR} bytes; "
    return f"{sectors:.3g} sectors per warp {where}; "


def _words(launch: Examined, site: Site) -> str:
    names = set(launch.names[site.rows].tolist())
    if names <= set(_LOADS):
        return "loads"
    return "atomics" if names <= set(_ATOMICS) else "accesses" if names & {*_LOADS, *_ATOMICS} else "stores"


def _feeds_tensor(launch: Examined, site: Site) -> bool:
    """Whether loads stand in a loop that has tensor instructions, or in one within it or around it."""
    row = site.rows[0]
    if launch.names[row] not in _LOADS:
        return False
    mine = int(launch["loop"][row])
    tensor = {int(one) for one in launch["loop"][launch.of_kind("tensor") & (launch["executed"] > 0)]}
    return any(one in launch.around(mine) or mine in launch.around(one) for one in tensor)


def bank_conflicts(launch: Examined) -> Iterator[Finding]:
    """Shared memory accesses that take more wavefronts than their bytes need."""
    wavefronts, saved = launch.total("shared"), launch["shared"] - launch["shared_ideal"]
    for site in launch.sites(saved, launch.of_kind("shared"), FINDING_SHARE * wavefronts):
        mine, least = per(launch, site, "shared"), per(launch, site, "shared_ideal")
        if not least >= 1 or not _matters(launch, site.amount / _WAVEFRONTS_PER_CYCLE):
            continue
        times = mine / least
        ways = f"{round(times)}-way " if abs(times - round(times)) <= _NEAR * times else ""
        message = (
            f"{site.place}: {ways}bank conflicts: these accesses to shared memory take {times:.2g} times the wavefronts they "
            f"need. They make {as_percent(mine / wavefronts)} of the kernel's wavefronts, and "
            f"{as_percent(site.amount / wavefronts)} of all would be saved."
        )
        atomic = launch.names[site.rows[0]] == "ATOMS"
        advice = _SHARED_ATOMIC_ADVICE if atomic else _SHARED_ADVICE
        yield Finding("bank-conflict", site, mine / wavefronts, "shared wavefronts", message, advice)


_SHARED_ADVICE = "Pad rows by one element, swizzle the index, or let a lane access 8 or 16 bytes at once."
_SHARED_ATOMIC_ADVICE = "Add up in registers first, and give each warp a copy of its own."


def spills(launch: Examined) -> Iterator[Finding]:
    """Local memory: registers spilled, and arrays indexed at run time."""
    whole = launch.total("local") + np.nan_to_num(launch.total("requested"))
    for site in launch.sites(launch["local"], launch.of_kind("memory"), FINDING_SHARE * whole):
        if not _matters(launch, site.amount / SECTOR / _SECTORS_PER_CYCLE):
            continue
        share = site.amount / whole
        message = (
            f"{site.place}: loads and stores of local memory are {as_percent(share)} of the bytes that the kernel asks of L1: "
            "registers that the compiler spilled, or arrays of a thread that are indexed at run time."
        )
        yield Finding("spill", site, share, "bytes asked of L1", message, _SPILL_ADVICE)


_SPILL_ADVICE = (
    "See what ptxas says (-Xptxas -v): allow more registers (__launch_bounds__, -maxrregcount), unroll less, or unroll fully "
    "so that indices of small arrays are known."
)


def _matters(launch: Examined, cycles: float) -> bool:
    """Whether cycles of a unit of an SM are many beside those in which all instructions could be issued."""
    executed = launch.total("executed")
    return not executed > 0 or cycles >= UNIT_SHARE * executed / _ISSUE_PER_CYCLE


CAUSES: tuple[Cause, ...] = (excess, gaps, bank_conflicts, spills)
