"""Why a kernel may stand above a roof, which is impossible if all numbers are of one run: the one place that says it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ncu_roofline.base.units import format_value
from ncu_roofline.chips import load_spec
from ncu_roofline.chips.thresholds import CLOCK_WARNING, REPEATED, SHORT_LAUNCH
from ncu_roofline.model.measurements import FloatArray, TextArray

ABOVE = "above its roof:"
"""How a note begins on a dot, or on the bandwidth of a kernel, beyond what a roof allows."""
_ROUNDING = 1e-9  # of sums in another order
_COUNTED = ("binding", "imported")  # ways of counting that weigh nothing
_NUMBERS = ("performance", "attainable", "attainable_theoretical", "mix_roof")


def with_reasons(table: Mapping[str, Any]) -> TextArray:
    """The notes of rows of the points frame, each row above one of its roofs with the numbers and what can make it.

    ``table`` has the columns of the points frame.
    """
    performance, *roofs = (np.asarray(table[name], dtype=np.float64) for name in _NUMBERS)
    with np.errstate(invalid="ignore"):
        above = np.any([(performance > (1 + _ROUNDING) * roof) & (roof > 0) for roof in roofs], axis=0)
    notes: TextArray = np.array(table["notes"], dtype=object)
    for row in np.flatnonzero(above):
        note = above_roof({name: values[row] for name, values in table.items()})
        notes[row] = f"{notes[row]}; {note}" if notes[row] else note
    return notes


def above_roof(point: Mapping[str, Any]) -> str:
    """The note on one row of the points frame that stands above a roof: of those above which it is, the lowest."""
    unit = f"{point['unit']}/s"
    measured = point["roof_origin"] == "measured"
    roofs = {
        f"attainable at {_label(point['level'])} ({point['roof_origin']} roof)": point["attainable"],
        "that its share of fused instructions allows": point["mix_roof"],
        "attainable in theory": point["attainable_theoretical"],
    }
    passed = {name: roof for name, roof in roofs.items() if point["performance"] > roof > 0}
    name = next(iter(passed))
    theory = point["attainable_theoretical"] if measured else math.nan
    reached, roof = point["performance"], passed[name]
    reasons = _reasons(
        reached / roof if measured and roof == point["attainable"] else math.nan,
        format_value(theory, unit, 3) if theory > 0 else "",
        point["seconds"] / max(point["launches"], 1),
        (point["clock_profiled"], point["clock_max"]),
        point["source"],
    )
    return f"{ABOVE} {_share(reached / roof)} the {format_value(roof, unit, 3)} {name}{_listed(reasons)}"


def above_bandwidths(
    shares: Mapping[str, FloatArray],
    rates: Mapping[str, FloatArray],
    seconds: FloatArray,
    clocks: tuple[FloatArray, FloatArray],
) -> list[str]:
    """A note for each kernel that has more than the roof's share of a level's bandwidth, "" for the others.

    ``shares`` (of the roof) and ``rates`` (byte/s) by level id, ``seconds`` per launch, ``clocks`` while profiled and at most
    (Hz), a number per kernel each.
    """
    notes = [""] * len(seconds)
    for level, share in shares.items():
        for row in np.flatnonzero(share > 1 + _ROUNDING):
            rate = rates[level][row]
            of = f"the {format_value(rate / share[row], 'byte/s', 3)} of " if rate > 0 else ""
            reasons = _reasons(math.nan, "", seconds[row], (clocks[0][row], clocks[1][row]), _COUNTED[0])
            text = f"{ABOVE} {_share(share[row])} {of}{_label(level)}{_listed(reasons)}"
            notes[row] = f"{notes[row]}; {text}" if notes[row] else text
    return notes


def _reasons(measured: float, theory: str, seconds: float, clocks: tuple[float, float], source: str) -> list[str]:
    """What can make it, as far as the numbers allow it.

    ``measured``: the share of a measured roof, NaN of another; ``theory``: what theory allows there, "" where nobody knows.
    """
    found = []
    if measured <= REPEATED:
        found.append(f"two honest measurements differ by up to {REPEATED - 1:.0%}")
    elif measured > REPEATED:
        found.append(f"the roof was measured lower than the GPU can{f' (in theory {theory})' if theory else ''}")
    profiled, highest = clocks
    if profiled < CLOCK_WARNING * highest:
        at = format_value(profiled, "hertz", 3)
        found.append(f"the launch ran above the clock of {at} at which roofs stand (up to {format_value(highest, 'hertz', 3)})")
    if 0 < seconds < SHORT_LAUNCH:
        limit = format_value(SHORT_LAUNCH, "second", 3)
        found.append(f"a launch of {format_value(seconds, 'second', 3)} is too short (below {limit}) for its time and clock")
    if source not in _COUNTED:
        found.append(f"the counts are not direct (source: {source})")
    return [*found, "time, work and traffic were counted in several passes that differ"]


def _listed(reasons: list[str]) -> str:
    return f", possible if {', or '.join(reasons)}"


def _share(ratio: float) -> str:
    """How much more than 1, before the words for what 1 is: it never reads as 100 %."""
    return f"{100 * ratio:.4g} % of" if ratio >= 1.001 else f"{100 * (ratio - 1):.1g} % above"


def _label(level: str) -> str:
    return next((one.label for one in load_spec().levels if one.id == level), level)
