"""Findings on what instructions do: multiplications and additions apart, FP64 among FP32, conversions, integer arithmetic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from ncu_roofline.analyses.source.columns import INT32
from ncu_roofline.analyses.source.findings.examined import Array, Cause, Examined, Finding, Site, per
from ncu_roofline.base.texts import conjoined
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


CAUSES: tuple[Cause, ...] = (unfused, fp64_by_accident, conversions, indexing, integers)
