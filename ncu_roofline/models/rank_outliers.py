"""Ranks whose time stands out, and why: slower silicon, or more to do.

Outliers: the modified z-score of Iglewicz and Hoaglin, How to Detect and Handle Outliers (ASQC, 1993), section 3.3:
M = 0.6745 (x - median) / MAD, an outlier if abs(M) > 3.5, with MAD the median of abs(x - median).  Where more than half of the
values are equal, MAD is 0 and the mean of abs(x - median) times 1.2533 (a normal distribution's standard deviation) stands in
for MAD / 0.6745.  Both need a few ranks, and kernels repeat to a percent, so a rank must also be 5 % off the median.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ncu_roofline.model.measurements import FloatArray

THRESHOLD = 3.5
OFF_MEDIAN = 0.05
MINIMUM_RANKS = 3
_NORMAL_QUARTILE = 0.6745
_NORMAL_MEAN = 1.2533


def modified_z(values: FloatArray) -> FloatArray:
    """The modified z-score of each value; NaN for missing ones, and for all where fewer than MINIMUM_RANKS are known."""
    known = np.isfinite(values)
    if known.sum() < MINIMUM_RANKS:
        return np.full(len(values), np.nan)
    off = values - np.median(values[known])
    mad = float(np.median(np.abs(off[known])))
    scale = mad / _NORMAL_QUARTILE if mad > 0 else float(np.mean(np.abs(off[known]))) * _NORMAL_MEAN
    if scale == 0:
        return np.where(known, 0.0, np.nan)
    return np.asarray(off / scale, dtype=np.float64)


def ratio_to_median(values: FloatArray) -> FloatArray:
    """Each value over the median of the known ones; NaN where that is unknown or 0."""
    known = values[np.isfinite(values)]
    median = float(np.median(known)) if len(known) else np.nan
    return values / median if median > 0 else np.full(len(values), np.nan)


def outliers(seconds: FloatArray) -> FloatArray:
    """1 for ranks that took too long, -1 for those that were too fast, 0 for the others."""
    score, ratio = modified_z(seconds), ratio_to_median(seconds)
    with np.errstate(invalid="ignore"):
        far = (np.abs(score) > THRESHOLD) & (np.abs(ratio - 1) > OFF_MEDIAN)
    return np.where(far, np.sign(score), 0.0)


def cause(sign: float, time: float, loads: Mapping[str, float], clock: float) -> str:
    """Why a rank is an outlier of this sign, in words.

    ``time``, ``loads`` (launches, FLOPs, bytes of a level: what it had to do) and ``clock`` (of its SMs) are ratios to the
    medians over the ranks, NaN where unknown.  What it had to do explains a time as far as the ratio goes; the rest is the GPU.
    """
    known = {name: ratio for name, ratio in loads.items() if np.isfinite(ratio)}
    if not set(known) - {"launches"}:
        return "unknown: neither work nor bytes are known of these ranks"
    name, load = max(known.items(), key=lambda item: sign * item[1])
    uneven = sign * (load - 1) > OFF_MEDIAN
    rest = time / load if load > 0 else np.nan
    pace = sign * ((rest if uneven else time) - 1) > OFF_MEDIAN
    words = []
    if uneven:
        words.append(f"uneven work: {load:.2f} x the {name}")
    if pace or not uneven:
        words.append(_pace(sign, clock, "beyond that" if uneven else "with the same work and bytes"))
    return "; ".join(words)


def _pace(sign: float, clock: float, when: str) -> str:
    if np.isfinite(clock) and sign * (1 - clock) > OFF_MEDIAN:
        return f"{'lower' if sign > 0 else 'higher'} clock: {clock:.2f} x the others' {when}"
    return f"{'slow' if sign > 0 else 'fast'} GPU: {'longer' if sign > 0 else 'shorter'} {when}"
