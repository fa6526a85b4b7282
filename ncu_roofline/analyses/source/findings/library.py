"""Findings on functions of the compiler's own library: divisions, powers and other slow paths that a line calls."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ncu_roofline.analyses.source.counts import IntArray
from ncu_roofline.analyses.source.findings.examined import Examined, Finding
from ncu_roofline.base.texts import clean, shorten
from ncu_roofline.chips.thresholds import FINDING_SHARE
from ncu_roofline.chips.verdict import as_percent

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
_OF = {"samples": "the kernel's samples", "instructions": "its warp instructions"}
_ADVICE = "Call it less often, or compute in FP32 or by -use_fast_math, where accuracy permits."


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
        does, cause, advice = next((about for known, *about in _KNOWN if known.search(one.name)), ("", "", _ADVICE))
        # The place of a finding is the line that calls.
        calls = np.where(np.isin(np.arange(launch.size), list(one.sites)), launch["executed"], 0.0)
        site = launch.site(np.array(one.sites, dtype=np.int64), calls)
        parts = " and ".join(f"{as_percent(value)} of {_OF[name]}" for name, value in shares.items())
        name = shorten(clean(one.name))
        message = f"{site.place}: calls {name}{f', which {does}' if does else ''}: {parts} are there."
        yield Finding("called-library", site, share, of, message, advice, cause)
