"""Findings on what instructions do: work that is not fused, FP64 among FP32, conversions, integers, calls of the library."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ncu_roofline.analyses.source.columns import INT32
from ncu_roofline.analyses.source.counts import IntArray
from ncu_roofline.analyses.source.findings.examined import Array, Cause, Examined, Finding, Site, per
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
from ncu_roofline.chips.thresholds import BETWEEN_SHARE, FINDING_SHARE, INTEGER_SHARE, ISSUE_SHARE, UNFUSED_LEFT
from ncu_roofline.chips.verdict import as_percent


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


CAUSES: tuple[Cause, ...] = (unfused, fp64_by_accident, conversions, indexing, integers)
