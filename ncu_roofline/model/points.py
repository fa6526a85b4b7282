"""Points and roofs: the rows of both frames.

Roofs are theoretical, from the report or the data sheet, or measured, from ceilings files, at a stated clock.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ncu_roofline.base.units import format_value
from ncu_roofline.chips import Spec, load_spec
from ncu_roofline.chips.fields import capability_text
from ncu_roofline.chips.formulas import SAME_CLOCK, measured_roof, why_not
from ncu_roofline.chips.verdict import CLOCK_WARNING, MATTERS, PCIE, REPEATED, SHORT_LAUNCH, as_percent
from ncu_roofline.formats.ceilings import MEASURED, Ceiling, Ceilings
from ncu_roofline.model.columns import UNUSED
from ncu_roofline.model.measurements import MEASURED as STATED
from ncu_roofline.model.measurements import Columns, FloatArray, IntArray, Mask, Measurements, Quantity, RoofValues, TextArray
from ncu_roofline.model.selection import Grouping, Selection, where
from ncu_roofline.model.work import OPCODES, Work, uncounted_tensor, works_of

Table = dict[str, Any]
CLOCKS = ("profiled", "max")
_SCALED = "measured roofs of arithmetic, L1 and shared memory stand at the clock of the launches"
_PARTIAL = "some launches lack the metrics"
_UNCOUNTED = "tensor FLOPs not collected although the tensor pipe was active: what binds is unknown"
LOW_CLOCK = f"profiled at less than {as_percent(CLOCK_WARNING)} of the maximum clock"


class Roofs:
    """All roofs of some measurements at one clock, with measured ceilings where they apply."""

    def __init__(self, m: Measurements, ceilings: Sequence[Ceilings], clock: str) -> None:
        if clock not in CLOCKS:
            raise ValueError(f"clock must be one of {', '.join(CLOCKS)}, not {clock!r}")
        self._m, self._clock, self._files = m, clock, ceilings
        factor = m.clock_max / m.clock if clock == "max" else np.ones(len(m))
        self._factor = np.where(np.isfinite(factor), factor, 1.0)
        self._known: dict[tuple[str, str], RoofValues] = {}
        # One ceilings file per launch: the first that was measured on its GPU model; -1 where none was.
        files = m.by_gpu(lambda *gpu: next((i for i, one in enumerate(ceilings) if one.applies_to(*gpu)), -1))
        self._file: IntArray = files.astype(np.int64)

    def compute(self) -> dict[str, RoofValues]:
        measured = (name for file in self._files for name, one in file.by_id.items() if one.unit in ("FLOP/s", "OP/s"))
        return {name: self.values("compute", name) for name in dict.fromkeys([*self._m.compute, *measured])}

    def bandwidth(self) -> dict[str, RoofValues]:
        return {level: self.values("bandwidth", level) for level in dict.fromkeys([*self._m.bandwidth, *self._m.traffic])}

    def launch_latency(self) -> FloatArray:
        """What a launch costs at least on each launch's GPU (s): measured, else published, NaN where neither is."""

        def published(device: str, capability: tuple[int, int]) -> float:
            architecture = load_spec().architecture(capability)
            costs = architecture.launching if architecture else {}
            return next((seconds for name, seconds in costs.items() if name in device), math.nan)

        found = [file.launch_latency() for file in self._files]
        measured = np.array([latency.value if latency else np.nan for latency in found] + [np.nan])[self._file]
        return np.where(np.isnan(measured), self._m.by_gpu(published).astype(np.float64), measured)

    def values(self, kind: str, name: str) -> RoofValues:
        if (kind, name) in self._known:
            return self._known[kind, name]
        m, missing = self._m, np.full(len(self._m), np.nan)
        quantity = getattr(m, kind).get(name)
        stated = quantity.where(quantity.has_origin(lambda origin: origin.source == STATED)).values if quantity else missing
        theory = np.where(np.isnan(stated), quantity.values, np.nan) if quantity else missing
        level = next((one for one in load_spec().levels if kind == "bandwidth" and one.id == name), None)
        drawn, share, used = np.array(stated), np.array(missing), np.isfinite(stated)
        # What theory of a launch is of theory at the clock of a measurement: where that can't be scaled, at the maximum.
        slower = np.ones(len(m))
        if level is not None and level.domain != "sm":
            slower = m.memory_clock if level.has_own_clock else m.clock / m.clock_max
            slower = np.where(np.isfinite(slower), slower, 1.0)
        at_maximum = ~(m.clock < (1 - SAME_CLOCK) * m.clock_max)
        for number, file in enumerate(self._files):
            here, ceiling = np.flatnonzero(self._file == number), _ceiling_of(file, kind, name)
            if ceiling is not None and len(here):
                mixes = [(writes, one.value) for writes, one in file.by_writes(name)]
                launches = [one[here] for one in (m.clock, slower, at_maximum, self._writes(name))]
                drawn[here], share[here], used[here] = measured_roof(Columns, ceiling, mixes, theory[here], launches)
        theoretical = theory if level and level.has_own_clock else theory * self._factor
        roof = RoofValues(np.where(used, drawn, theoretical), theoretical, used, drawn, share)
        self._known[kind, name] = roof
        return roof

    def _writes(self, level: str) -> FloatArray:
        share = Columns.divided(self._m.values(self._m.written, level), self._m.values(self._m.traffic, level))
        return np.where(np.isfinite(share), np.minimum(share, 1.0), np.nan)

    def between(self, file: Ceilings, best: Ceiling, level: str, index: Any) -> str:
        """Which ceilings the measured roof of memory is between in the launches of ``index``, "" where there is no choice."""
        roofs, writes = file.by_writes(level), self._writes(level)[index]
        known = writes[np.isfinite(writes)]
        if not roofs:
            return ""
        if not len(known):
            return f"{best.id} (the highest, as the share of writes is not known)"
        low, high = float(known.min()), float(known.max())
        first = [one.id for share, one in roofs if share <= low][-1:] or [roofs[0][1].id]
        last = [one.id for share, one in roofs if share >= high][:1] or [roofs[-1][1].id]
        shares = " to ".join(dict.fromkeys(map(as_percent, (low, high))))
        rest = f", {best.id} where that is not known" if len(known) < len(writes) else ""
        return f"{' to '.join(dict.fromkeys([*first, *last]))} (by the share of writes, {shares}{rest})"

    def rows(self, spec: Spec, precisions: Callable[[str], set[str]], levels: Callable[[str], set[str]]) -> list[Table]:
        """Rows of the roofs frame, per GPU model: of the ``precisions`` and ``levels`` wanted of a GPU of that name."""
        m, rows, roofs = self._m, list[Table](), list[Table]()
        elsewhere = {roof for one in m.precisions(spec) for roof in one.roof_ids()}
        elsewhere |= {name for name in self.compute() if "sparse" in name.split(".")}  # no roof of dense work
        for one in m.precisions(spec):  # highest first: the specification's, then what a file calls by other names
            others = [name for name in self.compute() if name.startswith(f"{one.id}.") and name not in elsewhere]
            # Of instructions there is the issue limit only: files count the operations of a multiply-add, two.
            for roof in (*one.roof_ids(), *(name for name in others if not one.counts_instructions)):
                of = {"roof": roof, "kind": "compute", "precision": one.id, "level": ""}
                roofs.append({**of, "label": one.roof_label(roof), "unit": f"{one.unit}/s"})
        for level in m.levels(spec):
            of = {"roof": level.id, "kind": "bandwidth", "precision": "", "level": level.id}
            roofs.append({**of, "label": level.label, "unit": "byte/s"})
        own_clock = {level.id for level in spec.levels if level.domain != "sm"}  # don't stand at the SM clock
        for (device, capability), index in m.gpus.items():
            timed = index[np.isfinite(m.seconds[index])]
            index = timed if len(timed) else index  # a launch without any number says nothing of the others' roofs
            reports, unknown = set(m.report[index]), not np.isfinite(m.clock[index]).any()
            basis = "max" if self._clock == "profiled" and unknown else self._clock  # what stands in where no clock is recorded
            clock = Columns.middle((m.clock_max if basis == "max" else m.clock)[index])
            about = {"report": reports.pop() if len(reports) == 1 else "", "device": device}
            wanted = precisions(device) | levels(device)
            for of in roofs:
                if (of["precision"] or of["level"]) in wanted:
                    facts = {**about, "compute_capability": capability_text(capability), **of}
                    rows += self._rows(index, facts, basis, math.nan if of["level"] in own_clock else clock)
        return rows

    def _rows(self, index: IntArray, facts: Mapping[str, Any], basis: str, clock: float) -> list[Table]:
        """The theoretical row of one roof of a GPU, and the measured one, or ones where it judges only some of the launches."""
        kind, name = facts["kind"], facts["roof"]
        roof, quantity = self.values(kind, name), getattr(self._m, kind).get(name)
        rows: list[Table] = []

        def add(values: FloatArray, origin: str, clock: float, basis: str, source: str, metrics: str, notes: str) -> None:
            least, most = float(np.nanmin(values)), float(np.nanmax(values))
            span = {"value": Columns.middle(values), "value_min": least, "value_max": most}
            about = {"origin": origin, "clock": clock, "clock_basis": basis}
            rows.append({**facts, **span, **about, "source": source, "metrics": metrics, "notes": notes})

        choice = quantity.choice[index] if quantity is not None else np.full(len(index), -1)
        by_theory, stated = (choice[np.isfinite(values[index])] for values in (roof.theoretical, roof.drawn))
        if quantity is not None and len(by_theory):
            usual = quantity.origins[int(np.bincount(by_theory).argmax())]
            add(roof.theoretical[index], "theoretical", clock, basis, usual.source, usual.metrics, usual.note)
        file = self._files[self._file[index[0]]] if self._file[index[0]] >= 0 else None
        ceiling = _ceiling_of(file, kind, name) if file else None
        if ceiling is None or file is None:
            if quantity is not None and len(stated):  # what an imported file calls measured
                first = quantity.origins[int(stated[0])]
                add(roof.drawn[index], "measured", np.nan, "", "imported", first.metrics, first.note)
            return rows
        for judges in (True, False):  # launches that all are held against it, or none is
            mine = index[roof.measured[index] == judges]
            if not len(mine):
                continue
            values, share, variant = roof.drawn[mine], roof.share[mine], f" ({ceiling.variant})" if ceiling.variant else ""
            scaled = ceiling.follows_sm_clock & (np.abs(values / ceiling.value - 1) > SAME_CLOCK)
            some = f"in {len(mine)} of {len(index)} launches " if len(mine) < len(index) else ""
            reason = "" if judges else some + why_not(Columns.middle(share), ceiling.clock_known, file.status)
            notes = "; ".join(filter(None, (reason or ceiling.regimes, ceiling.source, _SCALED if scaled.any() else "")))
            metrics = self.between(file, ceiling, name, mine) or f"{ceiling.id}{variant}"
            at = Columns.middle(np.where(scaled, self._m.clock[mine], ceiling.clock))
            source = "ceilings" if file.status == MEASURED else file.status
            add(values, "measured" if judges else UNUSED, at, "measured", source, f"{metrics} of {file.provenance}", notes)
        return rows


def _ceiling_of(file: Ceilings, kind: str, name: str) -> Ceiling | None:
    return file.compute(name) if kind == "compute" else file.bandwidth(name)


def points_table(
    m: Measurements,
    grouping: Grouping,
    spec: Spec,
    compute: Mapping[str, RoofValues],
    bandwidth: Mapping[str, RoofValues],
    select: Selection,
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
        if work.precision in spec.on_request and work.precision not in select.precisions:
            # Missing where other work of the launch is not bound by it.
            others = [m.work[p.id].values > 0 for p in spec.precisions if not p.on_request and p.id in m.work]
            busy = np.any([np.zeros(len(m), dtype=bool), *others], axis=0)
            if bounds and (busy & (work.quantity.values > 0)).any():
                busy &= bounds() != work.roof_id
            work = work._replace(quantity=work.quantity.where(~busy))
        missing = RoofValues.missing(len(m))
        rows = {level: _numbers(m, grouping, work, one, bandwidth.get(level, missing)) for level, one in m.traffic.items()}
        lowest, binds = np.full(grouping.count, np.nan), np.full(grouping.count, "", dtype=object)
        for level, one in rows.items():  # the level whose slope is lowest, or the compute roof if that is lower still
            better = one["present"] & np.isfinite(one["attainable"]) & ~(one["attainable"] >= lowest)
            lowest = np.where(better, one["attainable"], lowest)
            binds = np.where(better, np.where(one["memory_binds"], level, work.roof_id[one["who"]]), binds)
        binding = np.where(uncounted, np.nan, lowest), np.where(uncounted, "", binds)
        for level in rows:
            if select.wants("", level):
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
    memory_binds, clock = intensity * slope < peak, mean(m.clock)
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
        "present": (traffic > 0) & (seconds > 0) & (operations > 0) & np.isfinite(intensity) & np.isfinite(performance),
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
    same = {"precision": work.precision, "level": level, "unit": work.unit}
    table = {
        **own,
        **{name: values[keep] for name, values in where(m, grouping).items()},
        **{name: np.full(len(keep), value, dtype=object) for name, value in same.items()},
        "launches": own["launches"].astype(np.int64),
        "lanes": np.full(len(keep), np.nan),
        "roof_origin": np.where(own["measured"], "measured", "theoretical").astype(object),
        "binds": binds[keep],
        "binding_fraction": own["performance"] / lowest[keep],
        "locality": ratio[keep],
        "locality_to": to[keep],
        "_row": keep,
    }
    # Source, metrics and notes of rows are those of the launches that lend them: few distinct combinations, built once each.
    # One small number per combination, so that counting finds the few that occur (choices begin at -1).
    flags = {LOW_CLOCK: own["clock_ratio"] < CLOCK_WARNING, _PARTIAL: own["coverage"] < 1.0 - 1e-9, _UNCOUNTED: uncounted[keep]}
    done, moved, who = work.quantity, m.traffic[level], own["who"]
    code = (done.choice[who] + 1) * (len(moved.origins) + 1) + moved.choice[who] + 1
    for flag in flags.values():
        code = code * 2 + flag
    texts = np.empty((int(code.max(initial=0)) + 1, 3), dtype=object)
    places, examples = np.unique(code, return_index=True)
    rank = ("binding", "embedded", "derived")
    for place, row in zip(places.tolist(), examples.tolist(), strict=True):
        of_work, of_traffic = done.origins[done.choice[who[row]]], moved.origins[moved.choice[who[row]]]
        indirect = max((of_work.source, of_traffic.source), key=lambda one: rank.index(one) if one in rank else len(rank))
        notes = [of_work.note, of_traffic.note, *(note for note, flag in flags.items() if flag[row])]
        texts[place] = (
            OPCODES if of_work.source == OPCODES else indirect,
            f"{of_work.metrics}; {of_traffic.metrics}",
            "; ".join(dict.fromkeys(filter(None, notes))),
        )
    table |= zip(("source", "metrics", "notes"), texts[code].T, strict=True)
    return {**table, "notes": with_reasons(table)}


# Why a kernel may stand above a roof, which is impossible if all numbers are of one run.

ABOVE = "above its roof:"
"""How a note begins on a dot, or on the bandwidth of a kernel, beyond what a roof allows."""
_ROUNDING = 1e-9  # of sums in another order
_COUNTED = ("binding", "imported")  # ways of counting that weigh nothing
_ROOFS = {
    "attainable": "attainable at {level} ({origin} roof)",
    "mix_roof": "that its share of fused instructions allows",
    "attainable_theoretical": "attainable in theory",
}


def with_reasons(table: Mapping[str, Any]) -> TextArray:
    """The notes of rows of the points frame, each row above one of its roofs with the first such and what can make it."""
    roofs = [table[name] for name in _ROOFS]
    with np.errstate(invalid="ignore"):
        above = np.any([(table["performance"] > (1 + _ROUNDING) * roof) & (roof > 0) for roof in roofs], axis=0)
    notes: TextArray = np.array(table["notes"], dtype=object)
    for row in np.flatnonzero(above):
        point = {name: values[row] for name, values in table.items()}
        which = next(one for one in _ROOFS if point["performance"] > point[one] > 0)
        words = _ROOFS[which].format(level=_label(point["level"]), origin=point["roof_origin"])
        roof = f"the {format_value(point[which], point['unit'] + '/s', 3)} {words}"
        share, each = point["performance"] / point[which], point["seconds"] / max(point["launches"], 1)
        measured = point["roof_origin"] == "measured" and point[which] == point["attainable"]
        doubts = {
            f"two measurements may differ by up to {as_percent(REPEATED - 1)}": measured and share <= REPEATED,
            "the roof was measured lower than the GPU can": measured and share > REPEATED,
            "the counts are indirect": point["source"] not in _COUNTED,
        }
        note = _above(share, roof, each, point["clock_ratio"], doubts)
        notes[row] = f"{notes[row]}; {note}" if notes[row] else note
    return notes


def above_bandwidths(
    shares: Mapping[str, FloatArray], rates: Mapping[str, FloatArray], seconds: FloatArray, clock_ratio: FloatArray
) -> list[str]:
    """A note for each kernel that has more than the roof's share of a level's bandwidth, "" for the others.

    ``shares`` (of the roof) and ``rates`` (byte/s) by level id, ``seconds`` per launch, the profiled clock as a share of the
    highest: a number per kernel each.
    """
    notes = [""] * len(seconds)
    for level, share in shares.items():
        for row in np.flatnonzero(share > 1 + _ROUNDING):
            rate = rates[level][row]
            of = f"the {format_value(rate / share[row], 'byte/s', 3)} of " if rate > 0 else ""
            note = _above(share[row], f"{of}{_label(level)}", seconds[row], clock_ratio[row], {})
            notes[row] = f"{notes[row]}; {note}" if notes[row] else note
    return notes


def _above(share: float, roof: str, seconds: float, clock_ratio: float, doubts: Mapping[str, bool]) -> str:
    """That something is so much of a roof, and what can make it, as far as the numbers allow it."""
    amount = f"{100 * share:.4g} % of" if share >= 1.001 else f"{100 * (share - 1):.1g} % above"  # it never reads as 100 %
    reasons = {
        **doubts,
        "the launch ran above the clock at which roofs stand": clock_ratio < CLOCK_WARNING,
        "its launches are too short for their time and clock": 0 < seconds < SHORT_LAUNCH,
        "time, work and traffic were counted in several passes that differ": True,
    }
    return f"{ABOVE} {amount} {roof}, possible if {', or '.join(text for text, holds in reasons.items() if holds)}"


def _label(level: str) -> str:
    return next((one.label for one in load_spec().levels if one.id == level), level)
