"""Roofs: theoretical from the report or the data sheet, measured from ceilings files, at a stated clock."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ncu_roofline.ceilings import MEASURED, SAME_CLOCK, Ceiling, Ceilings
from ncu_roofline.facts import Precision, Spec, load_spec
from ncu_roofline.facts.fields import capability_text
from ncu_roofline.model.measurements import FloatArray, Measurements, Quantity, levels_of, precisions_of

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
    """A roof per launch, in operations or bytes per second: the one in use, the theoretical one, and whether it is measured."""

    value: FloatArray
    theoretical: FloatArray
    measured: np.ndarray[Any, np.dtype[np.bool_]]

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
        # One ceilings file per launch: the first that was measured on its GPU model.
        self._files = ceilings
        by_device = {key: _file_for(ceilings, key) for key in dict.fromkeys(zip(m.device, m.capability, strict=True))}
        self._file = np.array([by_device[key] for key in zip(m.device, m.capability, strict=True)], dtype=np.int64)

    def compute(self) -> dict[str, RoofValues]:
        """Compute roofs by roof id."""
        ids = dict.fromkeys(
            [*self._m.compute, *(name for file in self._files for name in file.by_id if _is_compute(file.by_id[name]))]
        )
        return {
            name: self._values(self._m.compute.get(name), self._factor, lambda one, name=name: one.compute(name))
            for name in ids
        }

    def bandwidth(self) -> dict[str, RoofValues]:
        """Bandwidth roofs by level id."""
        levels = dict.fromkeys([*self._m.bandwidth, *self._m.traffic])
        own_clock = {level.id for level in load_spec().levels if level.has_own_clock}
        result = {}
        for level in levels:
            factor = np.ones(len(self._m)) if level in own_clock else self._factor
            result[level] = self._values(self._m.bandwidth.get(level), factor, lambda one, level=level: one.bandwidth(level))
        return result

    def launch_latency(self) -> FloatArray:
        """What a launch costs at least on each launch's GPU (s): measured, else published, NaN where neither is."""
        found = [file.launch_latency() for file in self._files]
        table = np.array([latency.value if latency else np.nan for latency in found] + [np.nan])
        measured = table[self._file]  # -1, no file, picks the last entry
        known = {key: _published(*key) for key in dict.fromkeys(zip(self._m.device, self._m.capability, strict=True))}
        published = [known[key] for key in zip(self._m.device, self._m.capability, strict=True)]
        return np.where(np.isnan(measured), np.array(published, dtype=np.float64), measured)

    def _values(self, quantity: Quantity | None, factor: FloatArray, find: Any) -> RoofValues:
        stated = quantity.measured() if quantity else np.full(len(self._m), np.nan)
        theoretical = np.where(np.isnan(stated), quantity.values * factor, np.nan) if quantity else stated
        ceilings = [find(file) for file in self._files]
        measured = np.array(stated)
        for number, ceiling in enumerate(ceilings):
            here = self._file == number
            if ceiling is not None and here.any():
                measured[here] = at_clock(ceiling, self._m.clock[here])
        is_measured = np.isfinite(measured)
        return RoofValues(np.where(is_measured, measured, theoretical), theoretical, is_measured)

    def rows(self, spec: Spec, shown: Shown) -> list[dict[str, Any]]:
        """Rows of the roofs frame: theoretical and measured ones, per GPU model, as far as ``shown`` asks for them."""
        compute, bandwidth = self.compute(), self.bandwidth()
        rows = []
        roof_ids = {precision: _roof_ids(precision, compute, spec) for precision in precisions_of(self._m, spec)}
        known_levels = levels_of(self._m, spec)
        models: dict[tuple[str, tuple[int, int]], list[int]] = {}
        for row, key in enumerate(zip(self._m.device, self._m.capability, strict=True)):
            models.setdefault(key, []).append(row)
        for key, launches in models.items():
            index = np.array(launches)
            timed = index[np.isfinite(self._m.seconds[index])]
            index = timed if len(timed) else index  # a launch without any number says nothing of the others' roofs
            where = _Where(self._m, index, key, self._clock, spec)
            measured_by = self._files[self._file[index[0]]] if self._file[index[0]] >= 0 else None
            precisions, levels = shown.precisions(key[0]), shown.levels(key[0])
            for precision, ids in roof_ids.items():
                if precision.id in precisions:
                    for roof_id in ids:
                        ceiling = measured_by.compute(roof_id) if measured_by else None
                        facts = {
                            "roof": roof_id,
                            "kind": "compute",
                            "precision": precision.id,
                            "level": "",
                            "label": precision.roof_label(roof_id),
                            "unit": f"{precision.unit}/s",
                        }
                        rows += where.both(facts, compute.get(roof_id), self._m.compute.get(roof_id), ceiling, measured_by)
            for level in known_levels:
                if level.id in levels:
                    ceiling = measured_by.bandwidth(level.id) if measured_by else None
                    facts = {
                        "roof": level.id,
                        "kind": "bandwidth",
                        "precision": "",
                        "level": level.id,
                        "label": level.label,
                        "unit": "byte/s",
                    }
                    rows += where.both(facts, bandwidth.get(level.id), self._m.bandwidth.get(level.id), ceiling, measured_by)
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


def _is_compute(ceiling: Ceiling) -> bool:
    return ceiling.unit in ("FLOP/s", "OP/s")


def _file_for(ceilings: Sequence[Ceilings], key: tuple[str, tuple[int, int]]) -> int:
    return next((i for i, one in enumerate(ceilings) if one.applies_to(*key)), -1)


class _Where:
    """The launches of one GPU model, and what all of its roof rows share."""

    def __init__(self, m: Measurements, index: Any, key: tuple[str, tuple[int, int]], clock: str, spec: Spec) -> None:
        self.index, self.clock_basis = index, clock
        self._not_at_sm_clock = {level.id for level in spec.levels if level.domain != "sm"}
        reports = set(m.report[index])
        if clock == "profiled" and not np.isfinite(m.clock[index]).any():
            self.clock_basis = "max"  # what stands in where the report records no clock
        self.clock = _median((m.clock_max if self.clock_basis == "max" else m.clock)[index])
        self.clocks = m.clock[index]
        device, capability = key
        self.shared = {
            "report": reports.pop() if len(reports) == 1 else "",
            "device": device,
            "compute_capability": capability_text(capability),
        }

    def both(
        self,
        facts: Mapping[str, Any],
        roof: RoofValues | None,
        quantity: Quantity | None,
        ceiling: Ceiling | None,
        file: Ceilings | None,
    ) -> list[dict[str, Any]]:
        """The theoretical and the measured row of one roof, as far as they are known."""
        rows = []
        if roof is not None and quantity is not None:
            values = roof.theoretical[self.index]
            choices = quantity.choice[self.index][np.isfinite(values)]
            values = values[np.isfinite(values)]
            if len(values) and len(choices):
                origin = quantity.origins[int(np.bincount(choices).argmax())]
                rows.append(
                    {
                        **self.shared,
                        **facts,
                        "value": _median(values),
                        "value_min": values.min(),
                        "value_max": values.max(),
                        "origin": "theoretical",
                        "clock": self.clock if facts["level"] not in self._not_at_sm_clock else np.nan,
                        "clock_basis": self.clock_basis,
                        "source": origin.source,
                        "metrics": origin.metrics,
                        "notes": origin.note,
                    }
                )
        stated = quantity.take(self.index).measured() if quantity is not None else np.empty(0)
        if quantity is not None and ceiling is None and np.isfinite(stated).any():
            rows.append({**self.shared, **facts, **_stated(stated, quantity, self.index)})
        if ceiling is not None and file is not None:
            values = at_clock(ceiling, self.clocks)
            notes = [ceiling.source, _SCALED if (values != ceiling.value).any() else ""]
            rows.append(
                {
                    **self.shared,
                    **facts,
                    "value": _median(values),
                    "value_min": values.min(),
                    "value_max": values.max(),
                    "origin": "measured",
                    "clock": _median(np.where(values != ceiling.value, self.clocks, ceiling.clock)),
                    "clock_basis": "measured",
                    "source": "ceilings" if file.status == MEASURED else file.status,
                    "metrics": f"{ceiling.id}{f' ({ceiling.variant})' if ceiling.variant else ''} of {file.provenance}",
                    "notes": "; ".join(filter(None, notes)),
                }
            )
        return rows


def at_clock(ceiling: Ceiling, clocks: FloatArray) -> FloatArray:
    """A measured roof for launches at SM clocks (Hz): the same work per cycle; as measured where a clock is unknown.

    Profilers lock clocks below those of the measurement, and under its power limit a GPU sustains less than a launch of a few
    milliseconds reaches at a higher clock.
    """
    if not ceiling.follows_sm_clock:
        return np.full(len(clocks), ceiling.value)
    ratio = clocks / ceiling.clock
    return np.asarray(ceiling.value * np.where(np.abs(ratio - 1) > SAME_CLOCK, ratio, 1.0))


def _stated(values: FloatArray, quantity: Quantity, index: Any) -> dict[str, Any]:
    """What a roof row says of a value that the imported file calls measured."""
    origin = quantity.origins[int(quantity.choice[index][np.isfinite(values)][0])]
    return {
        "value": _median(values),
        "value_min": np.nanmin(values),
        "value_max": np.nanmax(values),
        "origin": "measured",
        "clock": np.nan,
        "clock_basis": "",
        "source": "imported",
        "metrics": origin.metrics,
        "notes": origin.note,
    }


def _median(values: FloatArray) -> float:
    """Median of the values that are numbers; NaN if there is none."""
    usable = values[np.isfinite(values)]
    return float(np.median(usable)) if len(usable) else float("nan")
