"""Roofs: theoretical from the report or the data sheet, measured from ceilings files, at a stated clock."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ncu_roofline.chips import Level, Precision, Spec, load_spec
from ncu_roofline.chips.fields import capability_text
from ncu_roofline.chips.formulas import SAME_CLOCK, measured_roof, why_not
from ncu_roofline.chips.verdict import as_percent
from ncu_roofline.formats.ceilings import MEASURED, Ceiling, Ceilings
from ncu_roofline.model.columns import UNUSED
from ncu_roofline.model.measurements import MEASURED as STATED
from ncu_roofline.model.measurements import Columns, FloatArray, IntArray, Mask, Measurements

CLOCKS = ("profiled", "max")
Wanted = Callable[[str], set[str]]  # ids that are wanted of a GPU
_SCALED = "measured roofs of arithmetic, L1 and shared memory stand at the clock of the launches"


class RoofValues(NamedTuple):
    """A roof per launch, in operations or bytes per second: the one in use, the theoretical one, and whether it is measured.

    ``drawn`` is the measured one, in use or not, and ``share`` what it is of theory at the same clock (NaN where unknown).
    """

    value: FloatArray
    theoretical: FloatArray
    measured: Mask
    drawn: FloatArray = np.empty(0)
    share: FloatArray = np.empty(0)

    @classmethod
    def missing(cls, count: int) -> RoofValues:
        nothing = np.full(count, np.nan)
        return cls(nothing, nothing, np.zeros(count, dtype=bool))


class Roofs:
    """All roofs of some measurements at one clock, with measured ceilings where they apply."""

    def __init__(self, m: Measurements, ceilings: Sequence[Ceilings], clock: str) -> None:
        if clock not in CLOCKS:
            raise ValueError(f"clock must be one of {', '.join(CLOCKS)}, not {clock!r}")
        self._m, self._clock, self._files = m, clock, ceilings
        factor = m.clock_max / m.clock if clock == "max" else np.ones(len(m))
        self._factor = np.where(np.isfinite(factor), factor, 1.0)
        self._at_maximum = ~(m.clock < (1 - SAME_CLOCK) * m.clock_max)
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
        for number, file in enumerate(self._files):
            here, ceiling = np.flatnonzero(self._file == number), _ceiling_of(file, kind, name)
            if ceiling is not None and len(here):
                mixes = [(writes, one.value) for writes, one in file.by_writes(name)]
                launches = [one[here] for one in (m.clock, self._slower(level), self._at_maximum, self._writes(name))]
                drawn[here], share[here], used[here] = measured_roof(Columns, ceiling, mixes, theory[here], launches)
        theoretical = theory if level and level.has_own_clock else theory * self._factor
        roof = RoofValues(np.where(used, drawn, theoretical), theoretical, used, drawn, share)
        self._known[kind, name] = roof
        return roof

    def _slower(self, level: Level | None) -> FloatArray:
        """What theory of a launch is of theory at the clock of a measurement: where that can't be scaled, at the maximum."""
        if level is None or level.domain == "sm":
            return np.ones(len(self._m))
        share = self._m.memory_clock if level.has_own_clock else self._m.clock / self._m.clock_max
        return np.where(np.isfinite(share), share, 1.0)

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

    def rows(self, spec: Spec, precisions: Wanted, levels: Wanted) -> list[dict[str, Any]]:
        """Rows of the roofs frame: theoretical and measured ones, per GPU model."""
        m, rows = self._m, list[dict[str, Any]]()
        known = list(self.compute())
        kinds = [
            ("compute", roof, precision.id, "", precision.roof_label(roof), f"{precision.unit}/s", True)
            for precision in m.precisions(spec)
            for roof in _roof_ids(precision, known, spec)
        ]
        others = [level.id for level in spec.levels if level.domain != "sm"]  # that don't stand at the SM clock
        kinds += [
            ("bandwidth", level.id, "", level.id, level.label, "byte/s", level.id not in others) for level in m.levels(spec)
        ]
        for (device, capability), index in m.gpus.items():
            timed = index[np.isfinite(m.seconds[index])]
            index = timed if len(timed) else index  # a launch without any number says nothing of the others' roofs
            reports, unknown = set(m.report[index]), not np.isfinite(m.clock[index]).any()
            basis = "max" if self._clock == "profiled" and unknown else self._clock  # what stands in where no clock is recorded
            clock = Columns.middle((m.clock_max if basis == "max" else m.clock)[index])
            facts = {"report": reports.pop() if len(reports) == 1 else "", "device": device}
            facts["compute_capability"] = capability_text(capability)
            wanted = {"compute": precisions(device), "bandwidth": levels(device)}
            for kind, roof, precision, level_id, label, unit, at_sm_clock in kinds:
                if (precision or level_id) in wanted[kind]:
                    of = {"roof": roof, "kind": kind, "precision": precision, "level": level_id, "label": label, "unit": unit}
                    rows += self._rows(index, facts | of, basis, clock if at_sm_clock else np.nan)
        return rows

    def _rows(self, index: IntArray, facts: Mapping[str, Any], basis: str, clock: float) -> list[dict[str, Any]]:
        """The theoretical row of one roof of a GPU, and the measured one, or ones where it judges only some of the launches."""
        kind, name = facts["kind"], facts["roof"]
        roof, quantity = self.values(kind, name), getattr(self._m, kind).get(name)
        rows: list[dict[str, Any]] = []

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
            values, variant = roof.drawn[mine], f" ({ceiling.variant})" if ceiling.variant else ""
            scaled = ceiling.follows_sm_clock & (np.abs(values / ceiling.value - 1) > SAME_CLOCK)
            some = f"in {len(mine)} of {len(index)} launches " if len(mine) < len(index) else ""
            reason = "" if judges else some + why_not(Columns.middle(roof.share[mine]), ceiling.clock_known)
            notes = "; ".join(filter(None, (reason, ceiling.source, _SCALED if scaled.any() else "")))
            metrics = self.between(file, ceiling, name, mine) or f"{ceiling.id}{variant}"
            at = Columns.middle(np.where(scaled, self._m.clock[mine], ceiling.clock))
            source = "ceilings" if file.status == MEASURED else file.status
            add(values, "measured" if judges else UNUSED, at, "measured", source, f"{metrics} of {file.provenance}", notes)
        return rows


def _roof_ids(precision: Precision, known: Sequence[str], spec: Spec) -> list[str]:
    """Roofs of a precision, highest first: the specification's, then what a file calls by other names.

    Of instructions there is the issue limit only: files count the operations of a multiply-add, two.
    """
    own = precision.roof_ids()
    elsewhere = {roof for one in spec.precisions for roof in one.roof_ids()}
    others = [name for name in known if name.startswith(f"{precision.id}.") and name not in elsewhere and name not in own]
    return [*own, *([] if precision.counts_instructions else others)]


def _ceiling_of(file: Ceilings, kind: str, name: str) -> Ceiling | None:
    return file.compute(name) if kind == "compute" else file.bandwidth(name)
