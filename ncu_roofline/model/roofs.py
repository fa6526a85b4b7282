"""Roofs: theoretical from the report or the data sheet, measured from ceilings files, at a stated clock."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from ncu_roofline.chips import Level, Precision, Spec, load_spec
from ncu_roofline.chips.fields import capability_text
from ncu_roofline.chips.formulas import SAME_CLOCK, measured_roof, why_not
from ncu_roofline.chips.verdict import as_percent
from ncu_roofline.formats.ceilings import MEASURED, Ceiling, Ceilings
from ncu_roofline.model.columns import UNUSED
from ncu_roofline.model.measurements import FloatArray, Measurements, levels_of, precisions_of
from ncu_roofline.model.numbers import Columns
from ncu_roofline.model.utilisation import values_of

CLOCKS = ("profiled", "max")
_SCALED = "measured roofs of arithmetic, L1 and shared memory stand at the clock of the launches"


class Shown(Protocol):
    """Which roofs of a GPU model are wanted."""

    def precisions(self, device: str) -> set[str]:
        """Precision ids."""

    def levels(self, device: str) -> set[str]:
        """Level ids."""


@dataclass(frozen=True)
class RoofValues:
    """A roof per launch, in operations or bytes per second: the one in use, the theoretical one, and whether it is measured.

    ``drawn`` is the measured one, in use or not, and ``share`` what it is of theory at the same clock (NaN where unknown).
    """

    value: FloatArray
    theoretical: FloatArray
    measured: np.ndarray[Any, np.dtype[np.bool_]]
    drawn: FloatArray = field(default_factory=lambda: np.empty(0))
    share: FloatArray = field(default_factory=lambda: np.empty(0))

    @classmethod
    def missing(cls, count: int) -> RoofValues:
        """No roof for any launch."""
        nothing = np.full(count, np.nan)
        return cls(nothing, nothing, np.zeros(count, dtype=bool))


class Roofs:
    """All roofs of some measurements at one clock, with measured ceilings where they apply."""

    def __init__(self, m: Measurements, ceilings: Sequence[Ceilings], clock: str) -> None:
        if clock not in CLOCKS:
            raise ValueError(f"clock must be one of {', '.join(CLOCKS)}, not {clock!r}")
        self._m, self._clock = m, clock
        self._factor = m.clock_max / m.clock if clock == "max" else np.ones(len(m))
        self._factor = np.where(np.isfinite(self._factor), self._factor, 1.0)
        self._at_maximum = ~(m.clock < (1 - SAME_CLOCK) * m.clock_max)
        # One ceilings file per launch: the first that was measured on its GPU model.
        self._files = ceilings
        by_device = {key: _file_for(ceilings, key) for key in dict.fromkeys(zip(m.device, m.capability, strict=True))}
        self._file = np.array([by_device[key] for key in zip(m.device, m.capability, strict=True)], dtype=np.int64)
        self._known: dict[tuple[str, str], RoofValues] = {}

    def compute(self) -> dict[str, RoofValues]:
        """Compute roofs by roof id."""
        measured = (name for file in self._files for name, one in file.by_id.items() if one.unit in ("FLOP/s", "OP/s"))
        return {name: self.values("compute", name) for name in dict.fromkeys([*self._m.compute, *measured])}

    def bandwidth(self) -> dict[str, RoofValues]:
        """Bandwidth roofs by level id."""
        return {level: self.values("bandwidth", level) for level in dict.fromkeys([*self._m.bandwidth, *self._m.traffic])}

    def launch_latency(self) -> FloatArray:
        """What a launch costs at least on each launch's GPU (s): measured, else published, NaN where neither is."""
        found = [file.launch_latency() for file in self._files]
        table = np.array([latency.value if latency else np.nan for latency in found] + [np.nan])
        measured = table[self._file]  # -1, no file, picks the last entry
        known = {key: _published(*key) for key in dict.fromkeys(zip(self._m.device, self._m.capability, strict=True))}
        published = [known[key] for key in zip(self._m.device, self._m.capability, strict=True)]
        return np.where(np.isnan(measured), np.array(published, dtype=np.float64), measured)

    def values(self, kind: str, name: str) -> RoofValues:
        """A roof (``kind``: compute or bandwidth) of all launches."""
        if (kind, name) in self._known:
            return self._known[kind, name]
        missing = np.full(len(self._m), np.nan)
        quantity = getattr(self._m, kind).get(name)
        stated = quantity.measured() if quantity else missing
        theory = np.where(np.isnan(stated), quantity.values, np.nan) if quantity else missing
        level = next((one for one in load_spec().levels if kind == "bandwidth" and one.id == name), None)
        slower = self._slower(level)
        drawn, share, used = np.array(stated), np.array(missing), np.isfinite(stated)
        for number, file in enumerate(self._files):
            here, ceiling = np.flatnonzero(self._file == number), _ceiling_of(file, kind, name)
            if ceiling is None or not len(here):
                continue
            mixes = [(writes, one.value) for writes, one in file.by_writes(name)]
            launches = [one[here] for one in (self._m.clock, slower, self._at_maximum, self._writes(name))]
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

    def _writes(self, level: str) -> FloatArray:
        """The share of a level's bytes that were written."""
        written, moved = (values_of(of, level, len(self._m)) for of in (self._m.written, self._m.traffic))
        with np.errstate(divide="ignore", invalid="ignore"):
            share = written / moved
        return np.where(np.isfinite(share), np.minimum(share, 1.0), np.nan)

    def rows(self, spec: Spec, shown: Shown) -> list[dict[str, Any]]:
        """Rows of the roofs frame: theoretical and measured ones, per GPU model, as far as ``shown`` asks for them."""
        m, compute, rows = self._m, self.compute(), list[dict[str, Any]]()
        kinds = [
            ("compute", roof, precision.id, "", precision.roof_label(roof), f"{precision.unit}/s", True)
            for precision in precisions_of(m, spec)
            for roof in _roof_ids(precision, compute, spec)
        ]
        known = [level.id for level in spec.levels if level.domain != "sm"]  # others stand at the SM clock
        kinds += [
            ("bandwidth", level.id, "", level.id, level.label, "byte/s", level.id not in known) for level in levels_of(m, spec)
        ]
        models: dict[tuple[str, tuple[int, int]], list[int]] = {}
        for row, key in enumerate(zip(m.device, m.capability, strict=True)):
            models.setdefault(key, []).append(row)
        for (device, capability), launches in models.items():
            index = np.array(launches)
            timed = index[np.isfinite(m.seconds[index])]
            index = timed if len(timed) else index  # a launch without any number says nothing of the others' roofs
            reports, unknown = set(m.report[index]), not np.isfinite(m.clock[index]).any()
            basis = "max" if self._clock == "profiled" and unknown else self._clock  # what stands in where no clock is recorded
            clock = _median((m.clock_max if basis == "max" else m.clock)[index])
            facts = {
                "report": reports.pop() if len(reports) == 1 else "",
                "device": device,
                "compute_capability": capability_text(capability),
            }
            wanted = {"compute": shown.precisions(device), "bandwidth": shown.levels(device)}
            for kind, roof, precision, level, label, unit, at_sm_clock in kinds:
                if (precision or level) in wanted[kind]:
                    facts |= {"roof": roof, "kind": kind, "precision": precision, "level": level, "label": label, "unit": unit}
                    rows += self._rows(index, facts, basis, clock if at_sm_clock else np.nan)
        return rows

    def _rows(self, index: Any, facts: Mapping[str, Any], basis: str, clock: float) -> list[dict[str, Any]]:
        """The theoretical row of one roof of a GPU, and the measured one, or ones where it judges only some of the launches."""
        kind, name = facts["kind"], facts["roof"]
        roof, quantity = self.values(kind, name), getattr(self._m, kind).get(name)
        rows: list[dict[str, Any]] = []

        def add(values: FloatArray, origin: str, clock: float, basis: str, *words: str) -> None:
            span = {"value": _median(values), "value_min": float(np.nanmin(values)), "value_max": float(np.nanmax(values))}
            about = {"origin": origin, "clock": clock, "clock_basis": basis}
            rows.append({**facts, **span, **about, **dict(zip(("source", "metrics", "notes"), words, strict=True))})

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
            reason = "" if judges else some + why_not(_median(roof.share[mine]), ceiling.clock_known)
            notes = "; ".join(filter(None, (reason, ceiling.source, _SCALED if scaled.any() else "")))
            metrics = self.between(file, ceiling, name, mine) or f"{ceiling.id}{variant}"
            at = _median(np.where(scaled, self._m.clock[mine], ceiling.clock))
            source = "ceilings" if file.status == MEASURED else file.status
            origin = "measured" if judges else UNUSED
            add(values, origin, at, "measured", source, f"{metrics} of {file.provenance}", notes)
        return rows


def _roof_ids(precision: Precision, compute: Mapping[str, RoofValues], spec: Spec) -> list[str]:
    """Roofs of a precision, highest first: the specification's, then what a file calls by other names.

    Of instructions there is the issue limit only: files count the operations of a multiply-add, two.
    """
    own = precision.roof_ids()
    if precision.counts_instructions:
        return list(own)
    elsewhere = {roof for one in spec.precisions for roof in one.roof_ids()}
    prefix = f"{precision.id}."
    return [*own, *(name for name in compute if name.startswith(prefix) and name not in own and name not in elsewhere)]


def _published(device: str, capability: tuple[int, int]) -> float:
    architecture = load_spec().architecture(capability)
    costs = architecture.launching if architecture else {}
    return next((seconds for name, seconds in costs.items() if name in device), math.nan)


def _ceiling_of(file: Ceilings, kind: str, name: str) -> Ceiling | None:
    """The ceiling of a roof in a file: of kind compute or bandwidth."""
    return file.compute(name) if kind == "compute" else file.bandwidth(name)


def _file_for(ceilings: Sequence[Ceilings], key: tuple[str, tuple[int, int]]) -> int:
    return next((i for i, one in enumerate(ceilings) if one.applies_to(*key)), -1)


def _median(values: FloatArray) -> float:
    """Median of the values that are numbers; NaN if there is none."""
    usable = values[np.isfinite(values)]
    return float(np.median(usable)) if len(usable) else float("nan")
