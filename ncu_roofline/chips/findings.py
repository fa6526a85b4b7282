"""What counts by instruction say of a kernel: what is wrong, where, how much of the kernel it touches, and what to do.

Plain functions over plain numbers: the source view calls them, and the rule generator puts the source of this file, without
annotations, into the rules, where Python may be 3.5: no f-strings, no classes but named tuples, only the standard library.

Instructions are *rows*: positions in a table, or addresses.  Amounts are dictionaries from rows to numbers above zero.
"""

from __future__ import annotations

import math
import re
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ncu_roofline.chips.source_counters import (
    ACCESSES,
    ALL_HIT,
    ARITHMETIC,
    BUSY,
    HIT_RATES,
    INDEXING,
    KINDS,
    LAUNCHED,
    LIMITS,
    SECTOR,
    SLOW,
    WARP,
    WORKING,
)
from ncu_roofline.chips.verdict import FEW_WAVES, LATENCY, REACHED, SHORT_LAUNCH, as_percent, in_words

# Below this share of what a finding is about it is not told: a few percent are within what counts and samples scatter.
FINDING_SHARE = 0.03
# A finding on memory accesses is told if what they could save costs their unit this share of the cycles in which all
# instructions of the kernel could be issued: in a cycle an SM issues 4 instructions, and L1 serves 4 sectors or 1 wavefront.
UNIT_SHARE = 0.05
# Lines of a loop that together have less than this share of an amount are no part of the place that a finding names.
LEFT_OUT = 0.05
# From this share of lanes on a warp is taken as full: what sectors per request say of strides holds.
FULL_LANES = 0.99
# Below this share of active lanes a place is called divergent; guards of loops and their last iterations stay above.
LANES_WORKING = 0.75
# Where fused multiply-adds are less than this share of a precision's arithmetic, the compiler did not fuse (-fmad=false) or
# could not; where they are more, the additions and multiplications that are left are those that can't be fused.
UNFUSED_LEFT = 0.1
# Conversions beside FP64 arithmetic that are a smaller share of it are not why it is there: it is meant.
BETWEEN_SHARE = 0.1
# From this share of a loop's instructions on integer arithmetic is named; indices and bounds of unrolled loops stay below.
INTEGER_SHARE = 0.4
# Where warps could issue or waited for arithmetic in a smaller share of the samples, fewer instructions would save little.
ISSUE_SHARE = 0.5
# Fewer samples say too little: of 200, a share of 10 % is known to 2 % (one standard deviation).
SAMPLES_MIN = 200
# What an SM serves or issues in a cycle.
SECTORS_PER_CYCLE, WAVEFRONTS_PER_CYCLE, ISSUE_PER_CYCLE = 4, 1, 4
MOST_PLACES = 3  # places where warps wait that are told
WHOLE = 1 + 1e-9  # a share, rounded
MOST_COUNTED = 2.0**80
NEAR = 0.02  # of a whole number
TMA, ASYNCHRONOUS = (9, 0), (8, 0)  # the first compute capabilities that have it, and cp.async
LOADS, ATOMICS = ("LD", "LDG", "LDGSTS"), ("ATOM", "ATOMG", "RED", "REDG")
INTEGER_LIMITS = ("int32", "alu")

# Instructions that are a smaller share of all than this hardly make a tenth of the samples, slow as each may be.
PRESENT = 0.01
# Where an SM holds a smaller share of the warps that it can, more of them would hide more.
MANY_WARPS = 0.75
# Instructions of 16 bytes that fit into the cache nearest to the scheduler: 12 KiB (Jia et al. 2018, of Volta).
NEAR_CODE = 768
WIDEST = "128"
FILLED = ("dram", "warps", "warps_possible")
# Conversions of a quarter of the rate or less (I2FP, F2FP, I2IP and HADD2.F32 are faster), and those of floating-point types.
SLOW_CONVERSIONS, BETWEEN = ("F2F", "F2I", "I2F", "I2I", "FRND"), ("F2F",)
DIVIDING = ("I2F", "F2I", "MUFU")

# The instructions of a kernel, by row: ``names`` of opcodes without modifiers, ``kinds`` ("" not known), ``lines`` that they
# are of: (file, line), or for code without line anything else; ``pairs``: where an addition may use what is multiplied;
# ``blocks``; ``loops``: (function, innermost loop or None), None for what is no code of the kernel's.  ``around`` gives of one
# of these the loops that it is in; ``unit`` the label of the hardware unit that a row needs, "" if not known; ``place`` what
# rows and their lines are called.  ``known``: names and loops are known; ``rows`` of the kernel's code by name.
Code = namedtuple("Code", "names kinds lines pairs blocks loops around unit place known rows")

# What is known of a whole launch: hit rates by the name of the cache, ``amounts`` by the words of `circumstances`, ``bound``
# the id of the roof or unit that limits it, "" if none does.
About = namedtuple("About", "capability hit_rates amounts bound")
About.__new__.__defaults__ = ((0, 0), {}, {}, "")

# A launch.  ``counts``: amounts by column (those of `source_counters.COUNTED`, but in sectors), without columns that nobody
# counted.  When called, ``work`` gives operations of "fp32", "fp64" and all (""), ``code`` its `Code`, ``opcodes`` warp
# instructions by opcode.  ``sampled``: samples by reason, of which ``samples`` gives amounts; ``stalls``: what is known of
# reasons; ``told``: of kinds of findings.  ``begin``: share of a warp's lanes at its first instruction; None where the row
# ``first`` tells it.
Launch = namedtuple("Launch", "counts work code opcodes sampled samples stalls told about begin first")

# Lines of one loop (or of a function's code outside of loops) that have an amount, but for those with little of it: rows, that
# with most first, and what a sentence calls the place.
Site = namedtuple("Site", "rows amount place")

# What is wrong at a place: ``share`` of what ``of`` names, ``said`` in a sentence, ``more`` that holds for all places alike,
# ``cause`` in a few words where ``kind`` does not say it; the others as of `data/findings.toml`.
Finding = namedtuple("Finding", "kind site share said advice more cause title of column limits")

# A function that is called: its mangled name, or what it is called where nobody knows that; its rows, and those of the calls.
Called = namedtuple("Called", "name rows calls")


def about_of(
    capability: tuple[int, int], value: Callable[[str], float | None], seconds: float | None = None, bound: str = ""
) -> Any:
    """What a report says of a launch; ``value`` gives metrics, None for what is none."""

    def rate(name: str) -> float | None:
        percent = value(name)
        return min(percent / 100, 1.0) if percent is not None and 0 <= percent <= ALL_HIT else None

    rates = [(word, rate(name)) for word, names in BUSY for name in reversed(names)]
    counts = [(word, value(name)) for word, name in LAUNCHED] + [("seconds", seconds)]
    amounts = {word: float(number) for word, number in counts if number is not None and 0 < number <= MOST_COUNTED}
    amounts.update({word: number for word, number in rates if number is not None})
    return About(capability, {word: rate(name) for word, name in HIT_RATES if rate(name) is not None}, amounts, bound)


def finding(launch: Any, kind: str, site: Any, share: float, filled: Sequence[Any], advice: str = "", **own: Any) -> Any:
    """A finding of a kind; ``filled`` completes what is said, ``own`` is what differs from what is told of its kind."""
    told = launch.told.kinds[kind]
    said, advice = told.said.format(*filled), advice or told.advice
    return Finding(kind, site, share, said, advice, "", "", told.title, told.of, told.column, told.limits)._replace(**own)


def findings(launch: Any, called: Iterable[Any] = (), causes: Iterable[Callable[[Any], Any]] | None = None) -> list[Any]:
    """What is worth looking at in a launch, cause by cause.  What was not counted gives no finding, nor do counts that
    contradict each other."""
    every = MEMORY_CAUSES + ARITHMETIC_CAUSES + WARP_CAUSES
    found = [one for cause in (every if causes is None else causes) for one in cause(launch)]
    return [one for one in found + of_called(launch, called) if one.share <= WHOLE]


def rows_by_name(names: Iterable[tuple[Any, str]]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for row, name in names:
        found.setdefault(name, []).append(row)
    return found


def total(launch: Any, column: str) -> float:
    """The sum over all instructions; NaN where nobody counted."""
    return float(sum(launch.counts[column].values())) if column in launch.counts else math.nan


def per(launch: Any, site: Any, column: str) -> float:
    counts = launch.counts.get(column, {})
    return float(sum([counts.get(row, 0.0) for row in site.rows]))


def of_names(launch: Any, column: str, names: Iterable[str]) -> dict[Any, float]:
    rows, counts = launch.code().rows, launch.counts.get(column, {})
    return {row: counts[row] for name in names for row in rows.get(name, ()) if row in counts}


def sites(launch: Any, amounts: Mapping[Any, float], least: float, kinds: Sequence[str] = ()) -> list[Any]:
    """Where there is at least so much of an amount, most first; the lines of a loop are one place.  A line belongs to the loop
    in which it has most.  Code without lines is taken loop by loop."""
    if not amounts or not sum(amounts.values()) >= least:
        return []
    code, sums = launch.code(), OrderedDict()  # type: Any, dict[Any, float]
    # Of these kinds, or of a kind that nobody knows.
    chosen = [row for row in amounts if not kinds or code.kinds[row] in kinds or not code.kinds[row]]
    rows = sorted([row for row in chosen if code.loops[row] is not None])
    for row in rows:
        key = (code.lines[row], code.loops[row])
        sums[key] = sums.get(key, 0.0) + amounts[row]
    home: dict[Any, Any] = {}
    for line, loop in sums:
        if line not in home or sums[line, loop] >= sums[line, home[line]]:
            home[line] = loop
    members: dict[Any, list[Any]] = {}
    for row in rows:
        members.setdefault(home[code.lines[row]], []).append(row)
    found = [site_of(code, mine, amounts) for mine in members.values() if sum([amounts[row] for row in mine]) >= least]
    return sorted([site for site in found if site.amount >= least], key=lambda site: (-site.amount, min(site.rows)))


def site_of(code: Any, rows: Sequence[Any], amounts: Mapping[Any, float]) -> Any:
    """These instructions as one place: the line with most of the amount first, and of it the instruction with most."""
    by_line, kept, amount = OrderedDict(), [], 0.0  # type: dict[Any, float], list[Any], float
    for row in rows:
        by_line[code.lines[row]] = by_line.get(code.lines[row], 0.0) + amounts[row]
    whole = sum(by_line.values())
    for line in sorted(by_line, key=lambda line: -by_line[line]):
        if kept and amount >= (1 - LEFT_OUT) * whole:
            break
        kept.append(line)
        amount += by_line[line]
    lines = frozenset(kept)
    chosen = [row for row in rows if code.lines[row] in lines]
    ordered = sorted(chosen, key=lambda row: (code.lines[row] != kept[0], -amounts[row]))
    return Site(ordered, amount, code.place(ordered, kept))


def matters(launch: Any, cycles: float) -> bool:
    """Whether cycles of a unit of an SM are many beside those in which all instructions could be issued."""
    executed = total(launch, "executed")
    return not executed > 0 or cycles >= UNIT_SHARE * executed / ISSUE_PER_CYCLE


def hits(launch: Any) -> str:
    rates = ["{} in {}".format(as_percent(rate), name) for name, rate in sorted(launch.about.hit_rates.items())]
    return "The kernel's hit rates: {}.".format(", ".join(rates)) if rates else ""


def lanes_of(launch: Any) -> Mapping[Any, float]:
    """Threads that take part: all active ones where nobody counted those whose predicate is true."""
    counts = launch.counts
    return counts.get("threads", counts.get("active", {}))  # type: ignore[no-any-return]


def beyond_need(launch: Any) -> tuple[dict[Any, float], dict[Any, float]]:
    """Sectors that accesses of global memory waste by their addresses, and those that gaps between inactive lanes explain.  A
    whole warp of lanes that access neighbouring addresses takes ``least`` / ``lanes`` sectors for each lane, whatever part of
    it is active, and no lane takes more than one: what is more than that is wasted by addresses."""
    wasted, gaps = {}, {}  # type: dict[Any, float], dict[Any, float]
    if "requested" not in launch.counts or "ideal" not in launch.counts:
        return wasted, gaps
    ideal, executed, lanes_by_row = launch.counts["ideal"], launch.counts.get("executed", {}), lanes_of(launch)
    for row, requested in launch.counts["requested"].items():
        least, warps, lanes = ideal.get(row, 0.0), WARP * executed.get(row, 0.0), lanes_by_row.get(row, 0.0)
        if requested > least:
            gap = 0.0
            if 0 < lanes < FULL_LANES * warps:
                gap = max(min(requested, min(least / lanes * warps, lanes)) - least, 0.0)
            for table, amount in ((gaps, gap), (wasted, requested - least - gap)):
                if amount > 0:
                    table[row] = amount
    return wasted, gaps


def excess(launch: Any) -> Iterator[Any]:
    """Accesses whose addresses ask for more sectors than their bytes need; tensor-feed where tensor instructions wait.  And
    those in which few lanes take part, so that they ask for parts of sectors."""
    requested, counts = total(launch, "requested"), launch.counts
    for kind, amounts in zip(("excess", "gaps"), beyond_need(launch)):  # noqa: B905
        for site in sites(launch, amounts, FINDING_SHARE * requested, ("memory",)):
            if not matters(launch, site.amount / SECTORS_PER_CYCLE):
                continue
            code, row = launch.code(), site.rows[0]
            names = {code.names[row] for row in site.rows}
            loads = "accesses" if "" in names or not names.isdisjoint(LOADS + ATOMICS) else "stores"
            loads = "loads" if names <= set(LOADS) else "atomics" if names <= set(ATOMICS) else loads
            share, saved = per(launch, site, "requested") / requested, as_percent(site.amount / requested)
            needed = SECTOR * counts["ideal"].get(row, 0.0) / counts["requested"][row]
            used = "{:.1f} of the {} bytes of a sector are used".format(needed, SECTOR)
            these = "These {}{{}} make".format("{} ".format(len(site.rows)) if len(site.rows) > 1 else "")
            if kind == "gaps":
                lanes = lanes_of(launch)[row] / counts["executed"][row]
                filled = (used, lanes, WARP, these.format(loads), as_percent(share), saved)  # type: tuple[Any, ...]
                yield finding(launch, kind, site, share, filled)
                continue
            feeds, capability = code.names[row] in LOADS and feeds_tensor(launch, row), launch.about.capability
            told = launch.told.kinds["tensor-feed" if feeds else kind]
            advice = " ".join([text for text in (told.advice, hits(launch)) if text])
            if code.names[row] in ATOMICS:
                advice = told.other
            elif feeds:
                copies = " (cp.async or TMA)" if capability >= TMA else " (cp.async)" if capability >= ASYNCHRONOUS else ""
                loads, advice = loads + " of a loop with tensor instructions", told.advice.format(copies)
            filled = (pattern(launch, row), used, these.format(loads), as_percent(share), saved)
            yield finding(launch, told.kind, site, share, filled, advice)


def pattern(launch: Any, row: Any) -> str:
    """Sectors per warp of an access where all its lanes work: then what it needs is whole; else ""."""
    counts = launch.counts
    executed, lanes = counts.get("executed", {}).get(row, 0.0), lanes_of(launch).get(row, 0.0)
    if not lanes >= FULL_LANES * WARP * executed >= 1 or launch.code().names[row] in ATOMICS:
        return ""
    sectors, needed = [counts[name].get(row, 0.0) / executed for name in ("requested", "ideal")]
    where = "per request where {:.3g} would do".format(needed)
    if needed < WARP // 2 and abs(sectors - WARP) <= NEAR * WARP:
        own = "each lane requests a sector of its own (stride of {} bytes or more), {} {}; "
        return own.format(SECTOR, WARP, where)
    shifted = ", as where rows are not aligned to {} bytes".format(SECTOR) if sectors <= needed + 1 + NEAR else ""
    return "{:.3g} sectors {}{}; ".format(sectors, where, shifted)


def feeds_tensor(launch: Any, row: Any) -> bool:
    """Whether a load stands in a loop that has tensor instructions, or in one within it or around it."""
    code, mine = launch.code(), launch.code().loops[row]
    executed = launch.counts.get("executed", {})
    tensor = {code.loops[row] for row in executed if code.kinds[row] == "tensor" and code.loops[row] is not None}
    return any(loop[1] in code.around(mine) or mine[1] in code.around(loop) for loop in tensor)


def bank_conflicts(launch: Any) -> Iterator[Any]:
    """Shared memory accesses that take more wavefronts than their bytes need."""
    wavefronts, least = total(launch, "shared"), launch.counts.get("shared_ideal")
    shared = launch.counts.get("shared", {}) if least is not None else {}
    saved = {row: count - least.get(row, 0.0) for row, count in shared.items() if count > least.get(row, 0.0)}
    for site in sites(launch, saved, FINDING_SHARE * wavefronts, ("shared",)):
        mine, needed = per(launch, site, "shared"), per(launch, site, "shared_ideal")
        if needed >= 1 and matters(launch, site.amount / WAVEFRONTS_PER_CYCLE):
            times, share = mine / needed, mine / wavefronts
            ways = "{}-way ".format(round(times)) if abs(times - round(times)) <= NEAR * times else ""
            filled = (ways, times, as_percent(share), as_percent(site.amount / wavefronts))
            other = launch.told.kinds["bank-conflict"].other if launch.code().names[site.rows[0]] == "ATOMS" else ""
            yield finding(launch, "bank-conflict", site, share, filled, other)


def spills(launch: Any) -> Iterator[Any]:
    requested = total(launch, "requested")
    whole = total(launch, "local") + (requested if requested == requested else 0.0)
    for site in sites(launch, launch.counts.get("local", {}), FINDING_SHARE * whole, ("memory",)):
        if matters(launch, site.amount / SECTORS_PER_CYCLE):
            share = site.amount / whole
            yield finding(launch, "spill", site, share, (as_percent(share),))


def unfused(launch: Any) -> Iterator[Any]:
    """Additions beside multiplications of the same line, where the compiler fused next to nothing."""
    work, threads = launch.work().get("", math.nan), launch.counts.get("threads", {})
    if not work > 0 or not launch.code().known:
        return
    kinds, pairs = launch.code().kinds, launch.code().pairs
    for label, adds, multiplies, fused, operations in ARITHMETIC:
        counted = [of_names(launch, "threads", names) for names in (adds, multiplies, fused)]
        # HADD2.F32 converts, and there is an HFMA2 that loads constants.
        parts = [{row: part[row] for row in part if kinds[row] not in ("conversion", "move")} for part in counted]
        if not are_apart(*[sum(part.values()) for part in parts]):
            continue
        sums: dict[Any, list[float]] = {}  # by where an addition may use what is multiplied
        for place, part in enumerate(parts):
            for row, count in part.items():
                sums.setdefault(pairs[row], [0.0, 0.0, 0.0])[place] += count
        usable = {key: min(counts[:2]) / counts[0] for key, counts in sums.items() if are_apart(*counts)}
        twice = {row: usable[pairs[row]] * 2 * operations * threads[row] for row in parts[0] if pairs[row] in usable}
        for site in sites(launch, twice, FINDING_SHARE * work):
            if issues(launch, site):
                share = site.amount / work
                yield finding(launch, "unfused", site, share, (label, as_percent(share)))


def are_apart(add: float, multiply: float, fused: float) -> bool:
    return add > 0 and multiply > 0 and fused < UNFUSED_LEFT * (add + multiply)


def conversions(launch: Any) -> Iterator[Any]:
    """FP64 arithmetic between conversions from FP32 and back, in kernels whose work is FP32; and other slow conversions.  Slow
    are those that run at a quarter of the rate or less; they matter where warps don't wait for memory."""
    counts, executed = launch.counts.get("executed", {}), total(launch, "executed")
    if not executed > 0 or not launch.code().known:
        return
    code = launch.code()
    slow = of_names(launch, "executed", SLOW_CONVERSIONS)
    mostly_single = launch.work().get("fp32", math.nan) > launch.work().get("fp64", math.nan) > 0
    double = {row: count for row, count in counts.items() if code.kinds[row] == "fp64" or code.names[row] in BETWEEN}
    for site in sites(launch, double, FINDING_SHARE * executed) if mostly_single else ():
        between = sum([counts[row] for row in site.rows if code.names[row] in BETWEEN])
        if between >= BETWEEN_SHARE * (site.amount - between) > 0:
            share = site.amount / executed
            yield finding(launch, "fp64-by-accident", site, share, (mix(launch, site), as_percent(share)))
            slow = {row: count for row, count in slow.items() if row not in site.rows}
    for site in sites(launch, slow, FINDING_SHARE * executed):
        if issues(launch, site):
            # Equally many of these in a block look like a division of integers: to float and back, and a reciprocal.
            block = [row for row in counts if code.blocks[row] == code.blocks[site.rows[0]]]
            times = [sum([counts[row] for row in block if code.names[row] == name]) for name in DIVIDING]
            divides, share = len(set(times)) == 1 and times[0] > 0, site.amount / executed
            as_divisions = ", as in integer divisions," if divides else ""
            other = launch.told.kinds["conversion"].other if divides else ""
            yield finding(launch, "conversion", site, share, (mix(launch, site), as_divisions, as_percent(share)), other)


def indexing(launch: Any) -> Iterator[Any]:
    """Integer arithmetic that makes much of a loop of floating-point code whose warps don't wait for memory."""
    executed, whole = launch.counts.get("executed", {}), total(launch, "executed")
    floating = launch.work().get("", math.nan) > 0 and launch.about.bound not in INTEGER_LIMITS  # of which `integers` tells
    if not floating or not whole > 0 or not launch.code().known:
        return
    code = launch.code()
    bodies: dict[Any, list[Any]] = {}
    for row in sorted(executed):
        if code.loops[row] is not None and code.loops[row][1] is not None:
            bodies.setdefault(code.loops[row], []).append(row)
    for body in sorted(bodies.values()):
        rows = [row for row in body if code.kinds[row] == "integer" and code.names[row] in INDEXING]
        amount, of_loop = sum([executed[row] for row in rows]), sum([executed[row] for row in body])
        if amount > 0 and amount >= max(INTEGER_SHARE * of_loop, 2 * FINDING_SHARE * whole):
            site, share = site_of(code, rows, executed), amount / whole
            if issues(launch, site):
                filled = (as_percent(amount / of_loop), mix(launch, site), as_percent(share))
                yield finding(launch, "address", site, share, filled)


def integers(launch: Any) -> Iterator[Any]:
    """Where a kernel does the integer arithmetic that limits it: its loops, and lines that no loop holds."""
    if launch.about.bound not in INTEGER_LIMITS or not launch.code().known:
        return
    column, of = ("executed", "warp") if "executed" in launch.counts else ("threads", "thread")
    code, counts, whole = launch.code(), launch.counts.get(column, {}), total(launch, column)
    integer = {row: count for row, count in counts.items() if code.kinds[row] == "integer"}
    for site in sites(launch, integer, 2 * FINDING_SHARE * whole):
        on: dict[str, float] = {}
        for row in site.rows:
            on[code.unit(row)] = on.get(code.unit(row), 0.0) + counts[row]
        shares = sorted([(amount / site.amount, unit) for unit, amount in on.items() if unit], reverse=True)
        told = ["{} of it on the {}".format(as_percent(share), unit) for share, unit in shares if share >= FINDING_SHARE]
        share, pipes = site.amount / whole, ": " + in_words(told) if told else ""
        yield finding(launch, "integer", site, share, (as_percent(share), of, mix(launch, site, column), pipes), column=column)


def issues(launch: Any, site: Any) -> bool:
    """Whether fewer instructions would save time in the loop of a place: unknown without samples."""
    loops, every, issued = launch.code().loops, 0.0, 0.0
    for reason in launch.sampled:
        here = sum([samples for row, samples in launch.samples(reason).items() if loops[row] == loops[site.rows[0]]])
        every += here
        issued += here if reason in launch.stalls and launch.stalls[reason].issue else 0.0
    return issued >= ISSUE_SHARE * every


def mix(launch: Any, site: Any, column: str = "executed") -> str:
    """The names of a place that make up most of its instructions, with their shares."""
    times: dict[str, float] = {}
    names, whole = [launch.code().names[row] for row in site.rows], per(launch, site, column)
    for row, name in zip(site.rows, names):  # noqa: B905
        times[name] = times.get(name, 0.0) + launch.counts[column][row]
    most = sorted(times, key=lambda name: (-times[name], names.index(name)))[:3]
    shares = [(name, times[name] / whole) for name in most if times[name] >= FINDING_SHARE * whole]
    return ", ".join(["{} {}".format(name, as_percent(share)) for name, share in shares])


def divergence(launch: Any) -> Iterator[Any]:
    """Places where many lanes of a warp are inactive.  Predicates that are false are none: of a whole warp they are mostly.
    Where only lanes whose predicate is true were counted, those of a block's busiest instruction: its others have as many."""
    counts, executed, whole = launch.counts, launch.counts.get("executed", {}), total(launch, "executed")
    column, do = ("active", "are active") if "active" in counts else ("threads", WORKING)
    if not executed or column not in counts or not whole > 0:
        return
    active = {row: counts[column].get(row, 0.0) / (WARP * times) for row, times in executed.items()}
    if column == "threads":
        blocks, most = launch.code().blocks, {}  # type: Any, dict[Any, float]
        for row, share in active.items():
            most[blocks[row]] = max(share, most.get(blocks[row], 0.0))
        active = {row: most[blocks[row]] for row in executed}
    begin = min(active.get(launch.first) or 1.0, 1.0) if launch.begin is None else launch.begin
    if begin < LANES_WORKING:
        site, filled = Site([min(executed)], (1 - begin) * whole, ""), (WARP * begin, WARP)
        yield finding(launch, "no-whole-warps", site, 1.0, filled, column=column)._replace(kind="divergence")
    lost = {row: executed[row] * (begin - share) for row, share in active.items() if share < LANES_WORKING * begin}
    for site in sites(launch, lost, FINDING_SHARE * whole):
        times = per(launch, site, "executed")
        lanes = WARP * sum([active[row] * executed[row] for row in site.rows]) / times
        yield finding(launch, "divergence", site, times / whole, (lanes, WARP, do, as_percent(times / whole)), column=column)


def hot_stalls(launch: Any) -> Iterator[Any]:
    """The places where most samples found warps waiting for one reason."""
    whole, known, found = total(launch, "samples"), launch.stalls, []
    if not whole >= SAMPLES_MIN:
        return
    much = [name for name in launch.sampled if name in known and launch.sampled[name] >= known[name].least * whole]
    shown = ((), {})  # type: tuple[Collection[str], Mapping[str, str]]
    if [name for name in much if known[name].advice]:
        amounts = dict(launch.about.amounts)
        counted = [name for name in ("requested", "local", "shared", "shared_ideal") if name in launch.counts]
        amounts.update({name: total(launch, name) for name in counted})
        amounts["instructions"] = float(len(launch.counts.get("executed", ())))
        wasted, stores = beyond_need(launch)[0], dict(ACCESSES)["narrow_stores"]
        amounts["wasted"] = sum(wasted.values())
        amounts["wasted_stores"] = sum([amount for row, amount in wasted.items() if launch.code().names[row] in stores])
        shown = circumstances(launch.opcodes(), amounts, launch.about.capability >= ASYNCHRONOUS)
    for reason in much:
        stall, advice = known[reason], holding(known[reason].advice, *shown)
        by_unit: dict[str, dict[Any, float]] = {}  # "" where it is not known for which unit warps wait
        for row, count in launch.samples(reason).items() if advice else ():
            by_unit.setdefault(launch.code().unit(row) if stall.unit else "", {})[row] = count
        for unit, samples in sorted(by_unit.items()):
            waits = stall.unit.replace("{}", unit) if stall.unit and unit else stall.waits
            found += [(site, reason, waits, advice) for site in sites(launch, samples, stall.least_at_place * whole)]
    for site, reason, waits, advice in sorted(found, key=lambda one: -one[0].amount)[:MOST_PLACES]:
        share = site.amount / whole
        texts = (holding(known[reason].cause, *shown), hits(launch) if known[reason].caches else "")
        own = {"title": launch.told.kinds["stall"].title.format(reason), "limits": tuple(known[reason].limits) + (LATENCY,)}
        own.update(more=" ".join([text for text in texts if text]), cause="warp stalls ({})".format(reason))
        yield finding(launch, "stall", site, share, (as_percent(share), waits, reason), advice, **own)


# What the counts of a kernel show, as words, and which sentences of `data/stalls.toml` hold where they are shown.


def circumstances(
    opcodes: Mapping[str, float], amounts: Mapping[str, float], asynchronous: bool
) -> tuple[set[str], dict[str, str]]:
    """The words for what is shown, and what sentences are filled with; what is not known shows nothing.  ``opcodes``: warp
    instructions by opcode, with modifiers.  ``amounts``, as far as they are known: sectors ``requested``, ``wasted`` by
    addresses, ``wasted_stores`` of these by stores, ``local``; wavefronts ``shared`` and ``shared_ideal``; ``instructions`` of
    the code that were executed; ``seconds``; ``waves`` of blocks; blocks of an SM by each of `LIMITS`; shares ``dram``,
    ``warps`` and ``warps_possible``.  ``asynchronous``: whether there is cp.async."""
    every = sum(opcodes.values())
    counts = dict.fromkeys([word for word, _ in KINDS + ACCESSES], 0.0)  # what kinds of instructions there are enough of
    for opcode, count in opcodes.items():
        parts = opcode.split(".")
        for word in [word for word, names in (KINDS if WIDEST in parts else KINDS + ACCESSES) if parts[0] in names]:
            counts[word] += count
    words = {word for word, count in counts.items() if count > 0 and count >= PRESENT * every}
    times = UNIT_SHARE * every
    local, requested, shared = [amounts.get(name, 0.0) for name in ("local", "requested", "shared")]
    least = (
        ("scattered", amounts.get("wasted", 0.0), max(FINDING_SHARE * requested, times)),
        ("scattered_stores", amounts.get("wasted_stores", 0.0), max(FINDING_SHARE * requested, times)),
        ("spills", local, max(FINDING_SHARE * (local + requested), times)),
        ("conflicts", shared - amounts.get("shared_ideal", shared), FINDING_SHARE * shared),
        ("long_code", amounts.get("instructions", 0), NEAR_CODE),
    )
    words |= {word for word, amount, enough in least if amount > 0 and amount >= enough}
    if "dram" in amounts:
        words.add("dram" if amounts["dram"] >= REACHED else "no_dram")
    if 0 < amounts.get("seconds", 0.0) < SHORT_LAUNCH:
        words.add("short")
    if asynchronous and "copies" not in words:
        words.add("asynchronous")
    filled = {name: as_percent(min(amounts[name], 1.0)) for name in FILLED if name in amounts}
    slow = [text for word, text in SLOW if word in words]
    if slow:
        words.add("slow")
        filled["slow"] = in_words(slow)
    holds, room = amounts.get("warps"), amounts.get("warps_possible")
    known = [amounts[name] for name, _ in LIMITS if name in amounts]
    tight = [text for name, text in LIMITS if name in amounts and amounts[name] == min(known)]
    tight = sorted(set(tight), key=tight.index)  # what keeps more blocks from an SM
    if holds is not None and room is not None and holds < MANY_WARPS * room:
        words.add(why_few(amounts, known, holds / room))
        filled["waves"] = "{:.3g}".format(amounts.get("waves", 0.0))
    elif room is not None and room < MANY_WARPS and tight:
        words.add("capped")
        filled["limits"] = in_words(tight)
    return words, filled


def why_few(amounts: Mapping[str, float], limits: Sequence[float], share: float) -> str:
    """The word for why SMs hold a share of the warps that they have room for; ``few_warps`` where that is not known.  Were all
    blocks to take equally long, an SM with blocks would hold ``equal`` of them over time: of the last wave each gets a block
    before one gets a second."""
    waves = amounts.get("waves", 0.0)
    if len(limits) < len(LIMITS) or not waves > 0:
        return "few_warps"
    equal = waves / (waves - waves % 1 + min(waves % 1 * min(limits), 1.0))
    if waves < FEW_WAVES:
        return "few_blocks" if equal < MANY_WARPS else "few_warps"
    return "last_wave" if share >= (1 - FINDING_SHARE) * equal else "few_warps"


def holding(sentences: Sequence[Any], words: Collection[str], filled: Mapping[str, str]) -> str:
    """Those sentences (text, words that must be shown, words that must not be), filled."""
    words = set(words)
    held = [str(text) for text, where, unless in sentences if words.issuperset(where) and words.isdisjoint(unless)]
    return " ".join(held).format(**filled)


# Where CUDA, compilers, libraries and package managers put headers, and names of theirs; no others, as kernels may be theirs.
LIBRARY_FOLDER = (
    r"(?i)(?:^|/)(?:usr/(?:local/)?include|usr/local/cuda[^/]*|cuda[-.\d]*/(?:include|std|targets|v\d[.\d]*/include)|opt/nvidia|"
    r"crt|cooperative_groups|cub|cute|cutlass|libcudacxx|nv|thrust|Kokkos|(?:dist|site)-packages|\.julia/packages)/"
)
LIBRARY_NAME = r"(?:mma|sm_\d\w*|cuda_(?:bf|fp)\d+|cooperative_groups|(?:math|device)_functions)\.(?:h|hpp)$"
HEADER_ENDS = ("", "h", "hh", "hpp", "hxx", "cuh", "inl", "inc", "ipp", "tcc", "tpp", "jl", "py")


def of_library(path: str) -> bool:
    """Whether a source file is a header of a toolkit or library, whose lines tell less of a place than those that use them."""
    path = path.replace("\\", "/")
    name = path.split("/")[-1]
    if path == "./" + name and name.endswith(".jl"):  # Julia's own
        return True
    is_header = name.partition(".")[2].lower() in HEADER_ENDS
    return is_header and (re.search(LIBRARY_FOLDER, path) is not None or re.match(LIBRARY_NAME, name) is not None)


def of_called(launch: Any, called: Iterable[Any]) -> list[Any]:
    """Functions of the library that hold some of the kernel's samples or instructions; their names say what they do."""
    found, executed = [], launch.counts.get("executed", {})
    columns = (("samples", "samples", "the kernel's samples"), ("executed", "instructions", "its warp instructions"))
    for one in called:
        shares = [
            (of, sum([launch.counts[column].get(row, 0.0) for row in one.rows]) / total(launch, column), text)
            for column, of, text in columns
            if total(launch, column) > 0
        ]
        if not shares or max([share for _, share, _ in shares]) < FINDING_SHARE:
            continue
        calls = {row: executed.get(row, 0.0) for row in one.calls or one.rows}
        site = site_of(launch.code(), sorted(calls), calls)  # the place of a finding is the line that calls
        row = next(row for row in launch.told.library if re.search(row.name, one.name))
        parts = " and ".join(["{} of {}".format(as_percent(share), text) for _, share, text in shares])
        (of, share, _), filled = shares[0], ("calls " if one.calls else "", one.name, row.does, parts)
        found.append(finding(launch, "called-library", site, share, filled, row.advice, cause=row.cause, of=of))
    return found


MEMORY_CAUSES = (excess, bank_conflicts, spills)
ARITHMETIC_CAUSES = (unfused, conversions, indexing, integers)
WARP_CAUSES = (divergence, hot_stalls)
