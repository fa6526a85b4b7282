"""Measurements to rows of the points frame: one per launch (or group), precision and level."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ncu_roofline.base.units import format_value
from ncu_roofline.chips import Spec, load_spec
from ncu_roofline.chips.verdict import CLOCK_WARNING, MATTERS, PCIE, REPEATED, SHORT_LAUNCH
from ncu_roofline.model.measurements import FloatArray, Mask, Measurements, Quantity, TextArray
from ncu_roofline.model.opcodes import OPCODES
from ncu_roofline.model.roofs import RoofValues
from ncu_roofline.model.selection import Grouping, Selection, where
from ncu_roofline.model.work import Work, uncounted_tensor, works_of

_PARTIAL = "some launches lack the metrics"
_UNCOUNTED = "tensor work unknown: the tensor pipe was active but its operations were not collected, so what binds is not told"
LOW_CLOCK = f"profiled at less than {CLOCK_WARNING:.0%} of the maximum clock"
Table = dict[str, Any]


def points_table(
    m: Measurements,
    grouping: Grouping,
    spec: Spec,
    compute: Mapping[str, RoofValues],
    bandwidth: Mapping[str, RoofValues],
    select: Selection,
    levels: tuple[str, ...],
    bounds: Callable[[], TextArray] | None = None,
) -> list[Table]:
    """Column tables, one per precision and level, to be concatenated; rows without work, traffic or time are absent.

    ``bounds``: gives for each launch the id of what limits it; asked for only where that decides what is drawn.
    What binds is left open ("") where the tensor pipe did work that nobody counted.
    """
    tables = []
    m = with_levels_that_matter(m, spec, select)
    uncounted = grouping.any(uncounted_tensor(m, spec))
    for work in works_of(m, spec, compute):
        if not select.wants(work.precision):
            continue
        work = _if_it_counts(m, spec, work, select, bounds)
        rows = {
            level: _numbers(m, grouping, work, moved, bandwidth.get(level, RoofValues.missing(len(m))))
            for level, moved in m.traffic.items()
        }
        lowest, binds = np.full(grouping.count, np.nan), np.full(grouping.count, "", dtype=object)
        for level, one in rows.items():  # the level whose slope is lowest, or the compute roof if that is lower still
            better = one["present"] & np.isfinite(one["attainable"]) & ~(one["attainable"] >= lowest)
            lowest = np.where(better, one["attainable"], lowest)
            binds = np.where(better, np.where(one["memory_binds"], level, work.roof_id[one["who"]]), binds)
        binding = np.where(uncounted, np.nan, lowest), np.where(uncounted, "", binds)
        for level in rows:
            if level in levels:
                outer = spec.chain[spec.chain.index(level) + 1 :] if level in spec.chain else ()
                tables.append(_table(m, grouping, work, level, rows, outer, binding, uncounted))
    return [table for table in tables if len(table["launch"])]


def with_levels_that_matter(m: Measurements, spec: Spec, select: Selection) -> Measurements:
    """The same without the traffic of levels that are drawn on request only, where it is next to nothing."""
    traffic = dict(m.traffic)
    for level in spec.levels:
        if level.on_request and level.id in traffic and level.id not in select.levels:
            with np.errstate(invalid="ignore"):
                least = MATTERS * np.fmin(m.values(m.traffic, spec.memory), PCIE * m.seconds)
                traffic[level.id] = traffic[level.id].where(traffic[level.id].values > least)
    return replace(m, traffic=traffic)


def _if_it_counts(m: Measurements, spec: Spec, work: Work, select: Selection, bounds: Callable[[], TextArray] | None) -> Work:
    """The work of a precision, missing where it is drawn on request only and other work of the launch is not bound by it."""
    if work.precision in select.precisions or work.precision not in spec.on_request:
        return work
    others = [m.work[p.id].values > 0 for p in spec.precisions if not p.on_request and p.id in m.work]
    busy = np.any([np.zeros(len(m), dtype=bool), *others], axis=0)
    if bounds and (busy & (work.quantity.values > 0)).any():
        busy &= bounds() != work.roof_id
    return work._replace(quantity=work.quantity.where(~busy))


def _numbers(m: Measurements, grouping: Grouping, work: Work, moved: Quantity, bandwidth: RoofValues) -> Table:
    """All numbers of one precision at one level, an element per row of the grouping.

    ``who``: the launch that lends a row its texts, the longest with the numbers, else the first.
    """
    known = np.isfinite(work.quantity.values) & np.isfinite(moved.values) & np.isfinite(m.seconds)
    weights = np.where(known, m.seconds, np.nan)

    def total(values: FloatArray) -> FloatArray:
        return grouping.total(np.where(known, values, 0.0))

    def mean(values: FloatArray) -> FloatArray:
        return grouping.mean(values, weights)

    operations, traffic, seconds, fused = map(total, (work.quantity.values, moved.values, m.seconds, work.fused))
    intensity, performance = operations / traffic, operations / seconds
    peak, peak_theoretical, slope = mean(work.roof.value), mean(work.roof.theoretical), mean(bandwidth.value)
    attainable = np.minimum(peak, intensity * slope)
    theoretical = np.minimum(peak_theoretical, intensity * mean(bandwidth.theoretical))
    # Alpha of Yang, Kurth, Williams (2019), equation 6: of instructions, so a fused one counts half its operations.
    unfused = grouping.any(known & np.isnan(work.fused)) | ~(operations > 0)
    share = np.where(unfused, np.nan, np.clip((fused / 2) / (operations - fused / 2), 0.0, 1.0))
    who = grouping.first.copy()
    if grouping.by != "launch":
        order = np.argsort(np.where(known, np.nan_to_num(m.seconds), -1.0), kind="stable")
        who[grouping.index[order]] = order  # the last one assigned is the longest
    memory_binds = intensity * slope < peak
    present = (operations > 0) & (traffic > 0) & (seconds > 0) & np.isfinite(intensity) & np.isfinite(performance)
    clock = mean(m.clock)
    return {
        "launches": total(m.invocations.astype(np.float64)),
        "work": operations,
        "traffic": traffic,
        "seconds": seconds,
        "intensity": intensity,
        "performance": performance,
        "bandwidth": traffic / seconds,
        "attainable": attainable,
        "fraction": performance / attainable,
        "compute_roof": peak,
        "bandwidth_roof": slope,
        "fma_share": share,
        "mix_roof": (1 + share) / 2 * peak,
        "attainable_theoretical": theoretical,
        "fraction_theoretical": performance / theoretical,
        "clock_profiled": clock,
        "clock_max": m.clock_max[who],
        "clock_ratio": clock / m.clock_max[who],
        "coverage": np.minimum(seconds / grouping.total(np.nan_to_num(m.seconds)), 1.0),
        "present": present,
        "memory_binds": memory_binds,
        "measured": np.where(memory_binds, bandwidth.measured[who], work.roof.measured[who]),
        "rates": grouping.any(known & m.rates),
        "who": who,
    }


def _table(
    m: Measurements,
    grouping: Grouping,
    work: Work,
    level: str,
    rows: Mapping[str, Table],
    outer: Sequence[str],
    binding: tuple[FloatArray, TextArray],
    uncounted: Mask,
) -> Table:
    """The columns of the rows that are present; each level of the chain gets what the one before it could not serve."""
    own, (lowest, binds) = rows[level], binding
    ratio, to = np.full(grouping.count, np.nan), np.full(grouping.count, "", dtype=object)
    for other in outer:
        if other in rows:
            usable = np.isnan(ratio) & rows[other]["present"] & own["present"]
            ratio = np.where(usable, own["traffic"] / rows[other]["traffic"], ratio)
            to[usable] = other
    keep = np.flatnonzero(own["present"])
    own = {name: values[keep] for name, values in own.items()}
    own |= {name: np.where(own["rates"], np.nan, own[name]) for name in ("work", "traffic", "seconds")}  # of no totals
    table = {
        **own,
        **{name: values[keep] for name, values in where(m, grouping).items()},
        "precision": np.full(len(keep), work.precision, dtype=object),
        "level": np.full(len(keep), level, dtype=object),
        "launches": own["launches"].astype(np.int64),
        "unit": np.full(len(keep), work.unit, dtype=object),
        "lanes": np.full(len(keep), np.nan),
        "roof_origin": np.where(own["measured"], "measured", "theoretical").astype(object),
        "binds": binds[keep],
        "binding_fraction": own["performance"] / lowest[keep],
        "locality": ratio[keep],
        "locality_to": to[keep],
        "_row": keep,
    }
    flags = {LOW_CLOCK: own["clock_ratio"] < CLOCK_WARNING, _PARTIAL: own["coverage"] < 1.0 - 1e-9, _UNCOUNTED: uncounted[keep]}
    table |= _texts(work.quantity, m.traffic[level], own["who"], flags)
    return {**table, "notes": with_reasons(table)}


def _texts(work: Quantity, traffic: Quantity, who: Any, flags: Mapping[str, Mask]) -> Table:
    """Source, metrics and notes per row, which launches ``who`` lend: few distinct combinations, built once each."""
    # One small number per combination, so that counting finds the few that occur (choices begin at -1).
    code = (work.choice[who] + 1) * (len(traffic.origins) + 1) + traffic.choice[who] + 1
    for flag in flags.values():
        code = code * 2 + flag
    texts = np.empty((int(code.max(initial=0)) + 1, 3), dtype=object)
    places, examples = np.unique(code, return_index=True)
    rank = ("binding", "embedded", "derived")
    for place, row in zip(places.tolist(), examples.tolist(), strict=True):
        of_work, of_traffic = work.origins[work.choice[who[row]]], traffic.origins[traffic.choice[who[row]]]
        sources = (of_work.source, of_traffic.source)
        indirect = max(sources, key=lambda one: rank.index(one) if one in rank else len(rank))
        notes = [of_work.note, of_traffic.note, *(note for note, flag in flags.items() if flag[row])]
        texts[place] = (
            OPCODES if of_work.source == OPCODES else indirect,
            f"{of_work.metrics}; {of_traffic.metrics}",
            "; ".join(dict.fromkeys(filter(None, notes))),
        )
    return dict(zip(("source", "metrics", "notes"), texts[code].T, strict=True))


# Why a kernel may stand above a roof, which is impossible if all numbers are of one run.

ABOVE = "above its roof:"
"""How a note begins on a dot, or on the bandwidth of a kernel, beyond what a roof allows."""
_ROUNDING = 1e-9  # of sums in another order
_COUNTED = ("binding", "imported")  # ways of counting that weigh nothing
_ROOFS = ("attainable", "mix_roof", "attainable_theoretical")


def with_reasons(table: Mapping[str, Any]) -> TextArray:
    """The notes of rows of the points frame, each row above one of its roofs with the lowest such and what can make it."""
    performance, *roofs = (np.asarray(table[name], dtype=np.float64) for name in ("performance", *_ROOFS))
    with np.errstate(invalid="ignore"):
        above = np.any([(performance > (1 + _ROUNDING) * roof) & (roof > 0) for roof in roofs], axis=0)
    notes: TextArray = np.array(table["notes"], dtype=object)
    for row in np.flatnonzero(above):
        point = {name: values[row] for name, values in table.items()}
        origin, reached = point["roof_origin"], point["performance"]
        words = (
            f"attainable at {_label(point['level'])} ({origin} roof)",
            "that its share of fused instructions allows",
            "attainable in theory",
        )
        which = next(i for i, one in enumerate(_ROOFS) if reached > point[one] > 0)
        roof, measured = point[_ROOFS[which]], origin == "measured" and point[_ROOFS[which]] == point["attainable"]
        unit, theory = f"{point['unit']}/s", point["attainable_theoretical"] if origin == "measured" else math.nan
        reasons = _reasons(
            reached / roof if measured else math.nan,
            f" (in theory {format_value(theory, unit, 3)})" if theory > 0 else "",
            point["seconds"] / max(point["launches"], 1),
            (point["clock_profiled"], point["clock_max"]),
            point["source"],
        )
        note = f"{ABOVE} {_share(reached / roof)} the {format_value(roof, unit, 3)} {words[which]}{reasons}"
        notes[row] = f"{notes[row]}; {note}" if notes[row] else note
    return notes


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
            text = f"{ABOVE} {_share(share[row])} {of}{_label(level)}{reasons}"
            notes[row] = f"{notes[row]}; {text}" if notes[row] else text
    return notes


def _reasons(measured: float, theory: str, seconds: float, clocks: tuple[float, float], source: str) -> str:
    """What can make it, as far as the numbers allow it.

    ``measured``: the share of a measured roof, NaN of another; ``theory``: what theory allows there, "" where nobody knows.
    """
    found = []
    if measured <= REPEATED:
        found.append(f"two honest measurements differ by up to {REPEATED - 1:.0%}")
    elif measured > REPEATED:
        found.append(f"the roof was measured lower than the GPU can{theory}")
    at, most = (format_value(clock, "hertz", 3) for clock in clocks)
    if clocks[0] < CLOCK_WARNING * clocks[1]:
        found.append(f"the launch ran above the clock of {at} at which roofs stand (up to {most})")
    if 0 < seconds < SHORT_LAUNCH:
        limit = format_value(SHORT_LAUNCH, "second", 3)
        found.append(f"a launch of {format_value(seconds, 'second', 3)} is too short (below {limit}) for its time and clock")
    if source not in _COUNTED:
        found.append(f"the counts are not direct (source: {source})")
    found.append("time, work and traffic were counted in several passes that differ")
    return f", possible if {', or '.join(found)}"


def _share(ratio: float) -> str:
    """How much more than 1, before the words for what 1 is: it never reads as 100 %."""
    return f"{100 * ratio:.4g} % of" if ratio >= 1.001 else f"{100 * (ratio - 1):.1g} % above"


def _label(level: str) -> str:
    return next((one.label for one in load_spec().levels if one.id == level), level)
