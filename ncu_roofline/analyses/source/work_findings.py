"""Findings on what instructions do: multiplications and additions apart, FP64 among FP32, conversions, integer arithmetic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from ncu_roofline.analyses.source.sites import Array, Cause, Finding, Launch, Site, per
from ncu_roofline.facts import load_stalls
from ncu_roofline.facts.thresholds import FINDING_SHARE, INTEGER_SHARE, ISSUE_SHARE, UNFUSED_LEFT
from ncu_roofline.facts.verdict import as_percent

# Additions, multiplications and fused ones of one type, and operations of one that is not fused.
_ARITHMETIC = (
    ("FP64", ("DADD",), ("DMUL",), ("DFMA",), 1),
    ("FP32", ("FADD", "FADD32I"), ("FMUL", "FMUL32I"), ("FFMA", "FFMA32I"), 1),
    ("packed FP32", ("FADD2",), ("FMUL2",), ("FFMA2",), 2),
    ("FP16", ("HADD2", "HADD2_32I"), ("HMUL2", "HMUL2_32I"), ("HFMA2", "HFMA2_32I"), 2),
)
# Those of a quarter of the rate or less; I2FP, F2FP, I2IP and HADD2.F32 are faster.
_SLOW = ("F2F", "F2I", "I2F", "I2I", "FRND")
_BETWEEN = ("F2F",)
# What indices and addresses are made of; logic is left out, which works on data as well.
_INDEXING = (
    "IADD", "IADD3", "IADD32I", "IMAD", "IMUL", "ISCADD", "ISETP", "LEA", "SHF", "SHL", "VIADD",
    "UIADD3", "UIMAD", "UISETP", "ULEA", "USHF",
)  # fmt: skip
_BETWEEN_SHARE = 0.1  # conversions beside FP64 arithmetic that is no more than between FP32 values


def unfused(launch: Launch) -> Iterator[Finding]:
    """Additions beside multiplications of the same line, where the compiler fused next to nothing."""
    work = launch.total("work")
    for label, adds, multiplies, fused, operations in _ARITHMETIC:
        add, multiply, both = (np.where(launch.among(*names), launch["threads"], 0.0) for names in (adds, multiplies, fused))
        if not both.sum() < UNFUSED_LEFT * (add.sum() + multiply.sum()):
            continue
        for site in launch.sites(_pairs(launch, add, multiply, both) * 2 * operations, launch.inside, FINDING_SHARE * work):
            if not _issues(launch, site):
                continue
            share = site.amount / work
            message = (
                f"{site.place}: multiplications and additions in {label} and no fused ones. {as_percent(share)} of the "
                "kernel's operations could be half as many instructions, if one adds what the other multiplied."
            )
            yield Finding("unfused", site, share, "work", message, _UNFUSED_ADVICE)


_UNFUSED_ADVICE = (
    "Compile without -fmad=false, write fma(), and avoid __fmul_rn and __fadd_rn, where a rounding less does no harm."
)


def _pairs(launch: Launch, add: Array, multiply: Array, fused: Array) -> Array:
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


def fp64_by_accident(launch: Launch) -> Iterator[Finding]:
    """FP64 arithmetic between conversions from FP32 and back, in kernels whose work is FP32."""
    for site in _accidents(launch):
        share = site.amount / launch.total("executed")
        message = (
            f"{site.place}: FP64 arithmetic between conversions in a kernel whose work is FP32 ({_mix(launch, site)}): "
            f"{as_percent(share)} of its warp instructions, at the lower rate of FP64."
        )
        yield Finding("fp64-by-accident", site, share, "instructions", message, _FP64_ADVICE)


def _accidents(launch: Launch) -> Iterator[Site]:
    if not launch.total("work_fp32") > launch.total("work_fp64") > 0:
        return
    least = FINDING_SHARE * launch.total("executed")
    for site in launch.sites(launch["executed"], launch.of_kind("fp64") | launch.among(*_BETWEEN), least):
        between = float(launch["executed"][site.rows][np.isin(launch.names[site.rows], _BETWEEN)].sum())
        if between >= _BETWEEN_SHARE * (site.amount - between) > 0:
            yield site


_FP64_ADVICE = (
    "If it is not meant so: write constants with an f (0.5f), call float functions (sqrtf, powf), and look for a double in "
    "between."
)


def conversions(launch: Launch) -> Iterator[Finding]:
    """Conversions that run at a quarter of the rate or less, where warps don't wait for memory."""
    executed, chosen = launch.total("executed"), launch.among(*_SLOW)
    for accident in _accidents(launch):  # which says it of these
        chosen[accident.rows] = False
    for site in launch.sites(launch["executed"], chosen, FINDING_SHARE * executed):
        if not _issues(launch, site):
            continue
        share = site.amount / executed
        divides = _divides(launch, site)
        message = (
            f"{site.place}: conversions ({_mix(launch, site)}){', as divisions of integers make them,' if divides else ''} are "
            f"{as_percent(share)} of the kernel's warp instructions; they run at a quarter of the rate of FP32 or less."
        )
        yield Finding("conversion", site, share, "instructions", message, _DIVISION_ADVICE if divides else _CONVERSION_ADVICE)


_CONVERSION_ADVICE = "Convert once and keep the result, count in the type that is needed, and keep constants in it."
_DIVISION_ADVICE = (
    "Divide by constants or powers of two, keep quotients instead of dividing again (loops collapsed into one divide for "
    "each index), and use 32-bit indices."
)


def _divides(launch: Launch, site: Site) -> bool:
    """Whether it looks like a division of integers: to float, reciprocal, and back."""
    top = site.rows[0]
    block = (launch["function"] == launch["function"][top]) & (launch["block"] == launch["block"][top])
    to, back, reciprocal = (launch["executed"][block & launch.among(name)].sum() for name in ("I2F", "F2I", "MUFU"))
    return bool(to == back == reciprocal > 0)


def indexing(launch: Launch) -> Iterator[Finding]:
    """Integer arithmetic that makes much of a loop of floating-point code whose warps don't wait for memory."""
    executed, whole = launch.total("executed"), np.nan_to_num(launch["executed"])
    integer = launch.among(*_INDEXING) & launch.of_kind("integer")
    for body in launch.loops() if launch.total("work") > 0 else ():
        rows = body[integer[body] & (whole[body] > 0)]
        amount, of_loop = float(whole[rows].sum()), float(whole[body].sum())
        if not amount >= max(INTEGER_SHARE * of_loop, 2 * FINDING_SHARE * executed) or not amount > 0:
            continue
        site = launch.site(rows, whole)
        if not _issues(launch, site):
            continue
        message = (
            f"{site.place}: {as_percent(amount / of_loop)} of the loop's warp instructions are integer arithmetic, as indices "
            f"and addresses need it ({_mix(launch, site)}): {as_percent(amount / executed)} of the kernel's."
        )
        yield Finding("address", site, amount / executed, "instructions", message, _INDEXING_ADVICE)


_INDEXING_ADVICE = (
    "Move what does not change out of the loop, step pointers instead of computing indices, unroll, divide by constants or "
    "powers of two only, and use 32-bit indices."
)


def _issues(launch: Launch, site: Site) -> bool:
    """Whether fewer instructions would save time in the loop of a place: unknown without samples."""
    top, known = site.rows[0], load_stalls()
    body = (launch["function"] == launch["function"][top]) & (launch["loop"] == launch["loop"][top])
    by_reason = {reason: float(values[body].sum()) for reason, values in launch.samples.items()}
    issued = sum(samples for reason, samples in by_reason.items() if reason in known and known[reason].issue)
    return issued >= ISSUE_SHARE * sum(by_reason.values())


def _mix(launch: Launch, site: Site) -> str:
    """The names of a place that make up most of its instructions, with their shares."""
    count: Counter[str] = Counter()
    for name, times in zip(launch.names[site.rows].tolist(), launch["executed"][site.rows].tolist(), strict=True):
        count[name] += times
    total = per(launch, site, "executed")
    return ", ".join(
        f"{name} {as_percent(times / total)}" for name, times in count.most_common(3) if times >= FINDING_SHARE * total
    )


CAUSES: tuple[Cause, ...] = (unfused, fp64_by_accident, conversions, indexing)
