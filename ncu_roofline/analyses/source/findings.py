"""What is worth looking at in a launch, line by line, each with the share of the kernel that it touches."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ncu_roofline.analyses.source.columns import FINDINGS, INT32, WHERE
from ncu_roofline.analyses.source.counts import IntArray
from ncu_roofline.analyses.source.examined import About, Array, Examined, Finding, Site
from ncu_roofline.base.texts import clean, conjoined, shorten
from ncu_roofline.chips import load_stalls
from ncu_roofline.chips.arithmetic import (
    ARITHMETIC,
    BETWEEN,
    CONVERSION_ADVICE,
    CONVERSIONS,
    DIVIDING,
    DIVISION_ADVICE,
    FP64_ADVICE,
    FP64_AMONG_FP32,
    INDEXED,
    INDEXING,
    INDEXING_ADVICE,
    OF_DIVISIONS,
    SLOW,
    UNFUSED,
    UNFUSED_ADVICE,
)
from ncu_roofline.chips.circumstances import ACCESSES, circumstances, holding
from ncu_roofline.chips.source_counters import SECTOR, WARP, WORKING
from ncu_roofline.chips.stalls import ASYNCHRONOUS, Stall
from ncu_roofline.chips.thresholds import (
    BETWEEN_SHARE,
    FINDING_SHARE,
    FULL_LANES,
    INTEGER_SHARE,
    ISSUE_SHARE,
    LANES_WORKING,
    SAMPLES_MIN,
    UNFUSED_LEFT,
    UNIT_SHARE,
)
from ncu_roofline.chips.verdict import as_percent

Cause = Callable[[Examined], Iterator[Finding]]
_SECTORS_PER_CYCLE, _WAVEFRONTS_PER_CYCLE, _ISSUE_PER_CYCLE = 4, 1, 4  # of an SM
_LOADS = ("LD", "LDG", "LDGSTS")
_ATOMICS = ("ATOM", "ATOMG", "RED", "REDG")
_TRAFFIC = "traffic of global memory at L1"
_STORES = dict(ACCESSES)["narrow_stores"]
_MOST_PLACES = 3  # places where warps wait that are told
_WHOLE = 1 + 1e-9  # a share, rounded
_NEAR = 0.02  # of a whole number
_TMA = (9, 0)  # compute capability


def per(launch: Examined, site: Site, column: str) -> float:
    """The sum of a column over a place."""
    return float(launch[column][site.rows].sum())


def hits(launch: Examined) -> str:
    """What the caches served, as a sentence behind others."""
    rates = [f"{as_percent(rate)} in {name}" for name, rate in launch.about.hit_rates.items()]
    return f" The kernel's hit rates: {', '.join(rates)}." if rates else ""


DIVERGENCE_ADVICE = (
    "Sort or compact work so that the lanes of a warp take one path, give neighbouring lanes equally many iterations, and let "
    "no lane leave early."
)


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


def unfused(launch: Examined) -> Iterator[Finding]:
    """Additions beside multiplications of the same line, where the compiler fused next to nothing."""
    work, none = launch.total("work"), launch.of_kind("conversion", "move")  # HADD2.F32, and HFMA2 that loads constants
    for label, adds, multiplies, fused, operations in ARITHMETIC:
        add, multiply, both = (
            np.where(launch.among(*names) & ~none, launch["threads"], 0.0) for names in (adds, multiplies, fused)
        )
        if not both.sum() < UNFUSED_LEFT * (add.sum() + multiply.sum()):
            continue
        for site in launch.sites(_pairs(launch, add, multiply, both) * 2 * operations, launch.inside, FINDING_SHARE * work):
            if not _issues(launch, site):
                continue
            share = site.amount / work
            message = f"{site.place}: {UNFUSED.format(label, as_percent(share))}"
            yield Finding("unfused", site, share, "work", message, UNFUSED_ADVICE)


def _pairs(launch: Examined, add: Array, multiply: Array, fused: Array) -> Array:
    """Additions that have a multiplication on their line (without lines: in their block), at the additions."""
    keys = [
        (key if len(key) == 2 else (key[1], block)) for key, block in zip(launch.keys, launch["block"].tolist(), strict=True)
    ]
    sums: dict[tuple[Any, ...], list[float]] = {}
    for key, *values in zip(keys, add.tolist(), multiply.tolist(), fused.tolist(), strict=True):
        found = sums.setdefault(key, [0.0, 0.0, 0.0])
        for place, value in enumerate(values):
            found[place] += value
    part = {}
    for key, (added, multiplied, together) in sums.items():
        usable = added > 0 and multiplied > 0 and together < UNFUSED_LEFT * (added + multiplied)
        part[key] = min(added, multiplied) / added if usable else 0.0
    return np.asarray(add * np.array([part[key] for key in keys]))


def fp64_by_accident(launch: Examined) -> Iterator[Finding]:
    """FP64 arithmetic between conversions from FP32 and back, in kernels whose work is FP32."""
    for site in _accidents(launch):
        share = site.amount / launch.total("executed")
        message = f"{site.place}: {FP64_AMONG_FP32.format(_mix(launch, site), as_percent(share))}"
        yield Finding("fp64-by-accident", site, share, "instructions", message, FP64_ADVICE)


def _accidents(launch: Examined) -> Iterator[Site]:
    if not launch.total("work_fp32") > launch.total("work_fp64") > 0:
        return
    least = FINDING_SHARE * launch.total("executed")
    for site in launch.sites(launch["executed"], launch.of_kind("fp64") | launch.among(*BETWEEN), least):
        between = float(launch["executed"][site.rows][np.isin(launch.names[site.rows], BETWEEN)].sum())
        if between >= BETWEEN_SHARE * (site.amount - between) > 0:
            yield site


def conversions(launch: Examined) -> Iterator[Finding]:
    """Conversions that run at a quarter of the rate or less, where warps don't wait for memory."""
    executed, chosen = launch.total("executed"), launch.among(*SLOW)
    for accident in _accidents(launch):  # which says it of these
        chosen[accident.rows] = False
    for site in launch.sites(launch["executed"], chosen, FINDING_SHARE * executed):
        if not _issues(launch, site):
            continue
        share = site.amount / executed
        divides = _divides(launch, site)
        said = CONVERSIONS.format(_mix(launch, site), OF_DIVISIONS if divides else "", as_percent(share))
        advice = DIVISION_ADVICE if divides else CONVERSION_ADVICE
        yield Finding("conversion", site, share, "instructions", f"{site.place}: {said}", advice)


def _divides(launch: Examined, site: Site) -> bool:
    """Whether it looks like a division of integers: to float, reciprocal, and back."""
    top = site.rows[0]
    block = (launch["function"] == launch["function"][top]) & (launch["block"] == launch["block"][top])
    to, back, reciprocal = (launch["executed"][block & launch.among(name)].sum() for name in DIVIDING)
    return bool(to == back == reciprocal > 0)


def indexing(launch: Examined) -> Iterator[Finding]:
    """Integer arithmetic that makes much of a loop of floating-point code whose warps don't wait for memory."""
    executed, whole = launch.total("executed"), np.nan_to_num(launch["executed"])
    integer = launch.among(*INDEXING) & launch.of_kind("integer")
    floating = launch.total("work") > 0 and launch.about.bound not in _INTEGER_LIMITS  # of which `integers` tells
    for body in launch.loops() if floating else ():
        rows = body[integer[body] & (whole[body] > 0)]
        amount, of_loop = float(whole[rows].sum()), float(whole[body].sum())
        if not amount >= max(INTEGER_SHARE * of_loop, 2 * FINDING_SHARE * executed) or not amount > 0:
            continue
        site = launch.site(rows, whole)
        if not _issues(launch, site):
            continue
        said = INDEXED.format(as_percent(amount / of_loop), _mix(launch, site), as_percent(amount / executed))
        yield Finding("address", site, amount / executed, "instructions", f"{site.place}: {said}", INDEXING_ADVICE)


def integers(launch: Examined) -> Iterator[Finding]:
    """Where a kernel does the integer arithmetic that limits it: its loops, and lines that no loop holds."""
    if launch.about.bound not in _INTEGER_LIMITS:
        return
    counted = "threads" if np.isnan(launch["executed"]).all() else "executed"
    integer, executed = launch.of_kind("integer"), launch.total(counted)
    for site in launch.sites(launch[counted], integer, 2 * FINDING_SHARE * executed):
        share = site.amount / executed
        message = (
            f"{site.place}: {as_percent(share)} of the kernel's {_OF[counted]} instructions are integer arithmetic here "
            f"({_mix(launch, site, counted)}), which limits the kernel{_pipes(launch, site, counted)}."
        )
        yield Finding("integer", site, share, "instructions", message, _INTEGER_ADVICE)


_OF = {"executed": "warp", "threads": "thread"}
_INTEGER_LIMITS = (INT32, "alu")
_INTEGER_ADVICE = (
    "Compute less: keep what is computed again (indices, masks, fields of bits), divide by constants or powers of two only, "
    "use 32 bits where 64 are not needed, and handle several small integers of a register at once (__dp4a, __vadd4)."
)


def _pipes(launch: Examined, site: Site, counted: str) -> str:
    """Where integer instructions go, as far as that is known: multiply-adds and all others have pipes of their own."""
    units, amounts = launch.units()[site.rows], launch[counted][site.rows]
    shares = {unit: float(amounts[units == unit].sum()) / site.amount for unit in set(units.tolist()) - {""}}
    told = sorted((unit for unit, share in shares.items() if share >= FINDING_SHARE), key=lambda unit: -shares[unit])
    return f": {conjoined([f'{as_percent(shares[unit])} of it on the {unit}' for unit in told])}" if told else ""


def _issues(launch: Examined, site: Site) -> bool:
    """Whether fewer instructions would save time in the loop of a place: unknown without samples."""
    top, known = site.rows[0], load_stalls()
    body = (launch["function"] == launch["function"][top]) & (launch["loop"] == launch["loop"][top])
    by_reason = {reason: float(values[body].sum()) for reason, values in launch.samples.items()}
    issued = sum(samples for reason, samples in by_reason.items() if reason in known and known[reason].issue)
    return issued >= ISSUE_SHARE * sum(by_reason.values())


def _mix(launch: Examined, site: Site, counted: str = "executed") -> str:
    """The names of a place that make up most of its instructions, with their shares."""
    count: Counter[str] = Counter()
    for name, times in zip(launch.names[site.rows].tolist(), launch[counted][site.rows].tolist(), strict=True):
        count[name] += times
    total = per(launch, site, counted)
    return ", ".join(
        f"{name} {as_percent(times / total)}" for name, times in count.most_common(3) if times >= FINDING_SHARE * total
    )


_LIBRARY = re.compile(r"__cuda_sm\d+x?_|__internal_|__nv_|slowpath")
# What a function does by its name, in a few words as well, and what may be done about it; the first that fits.
_KNOWN = (
    (
        re.compile(r"_(?:div|rem)_[us](?:16|32|64)|_(?:div|rem)_[us]"),
        "divides integers",
        "integer divisions",
        "Divide by constants or powers of two, use 32-bit indices, and keep quotients instead of dividing again.",
    ),
    (
        re.compile(r"_div_(?:[a-z0-9]{1,8}_){0,4}f64"),
        "divides in FP64",
        "FP64 divisions",
        "Multiply by a reciprocal that is computed once, where a rounding more does no harm; divide in FP32 where that is "
        "accurate enough.",
    ),
    (
        re.compile(r"_div_(?:[a-z0-9]{1,8}_){0,4}f32"),
        "divides in FP32",
        "FP32 divisions",
        "Multiply by a reciprocal that is computed once, or use __fdividef or -use_fast_math, where accuracy permits.",
    ),
    (
        re.compile(r"pow"),
        "raises to a power",
        "powers",
        "Multiply where the exponent is a small integer, use sqrt or cbrt for roots, and powf where FP32 is accurate enough.",
    ),
    (
        re.compile(r"trig_reduction"),
        "reduces large arguments of sine, cosine or tangent",
        "large arguments of sine and cosine",
        "Keep arguments small, use sinpi and cospi for multiples of pi, or in FP32 __sinf and __cosf, where accuracy permits.",
    ),
)
_OF_CALLED = {"samples": "the kernel's samples", "instructions": "its warp instructions"}
_LIBRARY_ADVICE = "Call it less often, or compute in FP32 or by -use_fast_math, where accuracy permits."


@dataclass(frozen=True)
class Called:
    """A function that is called: its name as in the cubin, the rows of its instructions, and of the calls of it."""

    name: str
    rows: IntArray
    sites: Sequence[int]


def called_library(launch: Examined, called: Sequence[Called]) -> Iterator[Finding]:
    """Functions of the library that hold some of the kernel's samples or instructions; their names say what they do."""
    for one in called:
        if not _LIBRARY.search(one.name):
            continue
        shares = {
            of: float(launch[column][one.rows].sum()) / launch.total(column)
            for of, column in (("samples", "samples"), ("instructions", "executed"))
            if launch.total(column) > 0
        }
        if not shares or max(shares.values()) < FINDING_SHARE:
            continue
        of, share = next(iter(shares.items()))
        does, cause, advice = next((about for known, *about in _KNOWN if known.search(one.name)), ("", "", _LIBRARY_ADVICE))
        # The place of a finding is the line that calls.
        calls = np.where(np.isin(np.arange(launch.size), list(one.sites)), launch["executed"], 0.0)
        site = launch.site(np.array(one.sites, dtype=np.int64), calls)
        parts = " and ".join(f"{as_percent(value)} of {_OF_CALLED[name]}" for name, value in shares.items())
        name = shorten(clean(one.name))
        message = f"{site.place}: calls {name}{f', which {does}' if does else ''}: {parts} are there."
        yield Finding("called-library", site, share, of, message, advice, cause)


def divergence(launch: Examined) -> Iterator[Finding]:
    """Places where many lanes of a warp are inactive.  Predicates that are false are none: of a whole warp they are mostly."""
    executed, per_row = launch.total("executed"), launch["executed"]
    active, begin = _active(launch), 1.0
    first = np.flatnonzero((launch["offset"] == 0) & (launch["function"] == launch["function"][0]) & launch.inside)[:1]
    if len(first) and active[first[0]] > 0:  # share of a warp's lanes at the kernel's first instruction
        begin = min(float(active[first[0]]), 1.0)
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
    for site, reason, unit in sorted(found, key=lambda one: -one[0].amount)[:_MOST_PLACES]:
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


_CAUSES: tuple[Cause, ...] = (
    *(excess, gaps, bank_conflicts, spills),
    *(unfused, fp64_by_accident, conversions, indexing, integers),
    *(divergence, hot_stalls),
)


def findings(
    instructions: Mapping[str, Any],
    stalls: Mapping[str, Any],
    loops: Mapping[str, Any],
    about: About,
    called: Sequence[Called] = (),
) -> dict[str, list[Any]]:
    """The findings of one launch, those that touch most first: `columns.FINDINGS` but for where they are from.

    ``instructions``, ``stalls`` and ``loops`` are its frames of those names, ``called`` the functions that are called.  What
    was not counted (NaN) gives no finding, nor do counts that contradict each other.
    """
    launch = Examined(instructions, stalls, loops, about)
    with np.errstate(all="ignore"):
        causes = [*(cause(launch) for cause in _CAUSES), called_library(launch, called)] if launch.size else []
        found = [one for cause in causes for one in cause if one.share <= _WHOLE]
    rows = []
    for one in sorted(found, key=lambda one: -one.share):
        top = int(one.site.rows[0])
        at = {name: launch[name][top] for name in ("file", "line", "function", "offset", "loop")}
        rows.append(at | {name: getattr(one, name) for name in ("finding", "share", "of", "message", "advice", "cause")})
    return {column.name: [row[column.name] for row in rows] for column in FINDINGS if column not in WHERE}
