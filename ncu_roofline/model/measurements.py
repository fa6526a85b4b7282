"""What one or many reports say about their launches, as arrays with an element each: the step between metrics and frames."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ncu_roofline.chips import Level, Precision, Spec
from ncu_roofline.chips.fields import capability_text
from ncu_roofline.formats.inputs.tables import ANY_PRECISION

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Mask = NDArray[np.bool_]
TextArray = NDArray[np.object_]

MEASURED = "imported, measured"


@dataclass(frozen=True)
class Origin:
    """Where a number comes from: the way, the metrics (or columns of a file), and what to know of it.

    The way is binding, derived, embedded, architecture, imported, or MEASURED for roofs that a file gives as measured.
    ``lower_bound``: what it counts is not all.
    """

    source: str
    metrics: str
    note: str = ""
    lower_bound: bool = False


@dataclass(frozen=True)
class Quantity:
    """One number per launch with its origin: ``origins[choice[i]]`` is the origin of ``values[i]`` (choice -1: missing)."""

    values: FloatArray
    choice: IntArray
    origins: tuple[Origin, ...] = ()

    @classmethod
    def missing(cls, count: int) -> Quantity:
        return cls.of(np.full(count, np.nan), None)

    @classmethod
    def of(cls, values: FloatArray, origin: Origin | None) -> Quantity:
        """All values from one origin; NaN where missing."""
        choice = np.where(np.isnan(values), -1, 0).astype(np.int64)
        return cls(values, choice, (origin,) if origin is not None else ())

    @classmethod
    def of_rows(cls, count: int, rows: Mapping[int, tuple[float, Origin]]) -> Quantity:
        """Of ``count`` launches those in ``rows``."""
        values, choice, origins = np.full(count, np.nan), np.full(count, -1, dtype=np.int64), dict[Origin, int]()
        for row, (value, origin) in rows.items():
            values[row], choice[row] = value, origins.setdefault(origin, len(origins))
        return cls(values, choice, tuple(origins))

    def complete(self) -> bool:
        return not np.isnan(self.values).any()

    def filled(self, other: Quantity) -> Quantity:
        """This quantity, with the gaps filled from another one."""
        gaps = np.isnan(self.values)
        if not gaps.any() or not other.origins:
            return self
        if not self.origins:
            return other
        shifted = np.where(other.choice < 0, -1, other.choice + len(self.origins))
        choice = np.where(gaps, shifted, self.choice)
        return Quantity(np.where(gaps, other.values, self.values), choice, self.origins + other.origins)

    def scaled(self, factor: FloatArray | float) -> Quantity:
        """The same with values multiplied (NaN where the factor is)."""
        return Quantity(self.values * factor, self.choice, self.origins)

    def where(self, mask: Mask) -> Quantity:
        return self.scaled(np.where(mask, 1.0, np.nan))

    def with_note(self, rows: Mask, note: str) -> Quantity:
        """The same with one more note on the values of ``rows``."""
        return self.changed(rows, lambda origin: replace(origin, note="; ".join(filter(None, (origin.note, note)))))

    def changed(self, rows: Mask, change: Callable[[Origin], Origin]) -> Quantity:
        """The same with other origins of the values of ``rows``."""
        rows = rows & (self.choice >= 0)
        if not rows.any():
            return self
        choice = np.where(rows, self.choice + len(self.origins), self.choice)
        return Quantity(self.values, choice, (*self.origins, *map(change, self.origins)))

    def has_origin(self, such: Callable[[Origin], bool]) -> Mask:
        found: Mask = np.array([*map(such, self.origins), False])[self.choice]
        return found

    def is_lower_bound(self) -> Mask:
        return self.has_origin(lambda origin: origin.lower_bound) & np.isfinite(self.values)

    def take(self, index: IntArray) -> Quantity:
        return Quantity(self.values[index], self.choice[index], self.origins)

    @staticmethod
    def joined(parts: Sequence[Quantity]) -> Quantity:
        """Launches of several quantities behind each other."""
        origins: dict[Origin, int] = {}
        choices = []
        for part in parts:
            codes = np.array([origins.setdefault(origin, len(origins)) for origin in part.origins] + [-1], dtype=np.int64)
            choices.append(codes[part.choice])  # choice -1 picks the last entry, -1
        return Quantity(np.concatenate([part.values for part in parts]), np.concatenate(choices), tuple(origins))


class Columns:
    """What `formulas` does to numbers, of many launches at once."""

    where, rounded, known = staticmethod(np.where), staticmethod(np.round), staticmethod(np.isfinite)
    at_most, any_of = staticmethod(np.minimum), staticmethod(np.any)
    origin, quantity = Origin, staticmethod(Quantity.of)

    @staticmethod
    def divided(a: FloatArray, b: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.divide(a, b)

    @staticmethod
    def first_known(*candidates: FloatArray) -> FloatArray:
        """Element by element the first candidate that is not NaN."""
        result = candidates[0]
        for candidate in candidates[1:]:
            if not np.isnan(result).any():
                break
            result = np.where(np.isnan(result), candidate, result)
        return result

    @staticmethod
    def usual(values: FloatArray, weights: FloatArray) -> FloatArray | float:
        """The mean of those values that are known and have a weight, NaN where none has."""
        usable = np.isfinite(values) & (weights > 0)
        return float(np.average(values[usable], weights=weights[usable])) if usable.any() else np.nan

    @staticmethod
    def middle(values: FloatArray) -> float:
        """The median of the values that are numbers; NaN if there is none."""
        known = np.sort(values[np.isfinite(values)])  # np.median imports numpy.ma, which takes as long as a small report
        return float(known[(len(known) - 1) // 2 : len(known) // 2 + 1].mean()) if len(known) else np.nan


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


def objects(values: Sequence[object] | TextArray) -> TextArray:
    """Texts, tuples and the like as an array of one dimension."""
    result = np.empty(len(values), dtype=object)
    result[:] = values
    return result


def as_floats(column: Sequence[object]) -> FloatArray:
    """A metric's values as floats; missing ones and text are NaN, integers beyond the range of a float infinite."""
    if not set(map(type, column)) - {int, float, type(None)}:  # NumPy would read a text of digits as a number
        with contextlib.suppress(OverflowError):
            return np.array(column, dtype=np.float64)  # None becomes NaN
    return np.array([as_float(value) for value in column], dtype=np.float64)


def as_float(value: object) -> float:
    if not isinstance(value, (int, float)):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.copysign(math.inf, value)


Quantities = Mapping[str, Quantity]
Gpu = tuple[str, tuple[int, int]]


@dataclass(frozen=True, repr=False)
class Measurements:
    """Launches of one or many reports, one array element each; quantities in SI units (FLOP or OP, byte, second, Hz)."""

    report: TextArray
    ncu_version: TextArray
    launch: IntArray
    function: TextArray
    name: TextArray
    mangled: TextArray  # name as its symbol in the program, '' where unknown
    kind: TextArray
    grid: TextArray
    block: TextArray
    nvtx: TextArray
    device: TextArray
    capability: TextArray
    seconds: FloatArray
    clock: FloatArray
    clock_max: FloatArray
    memory_clock: FloatArray  # of DRAM, as a share of its maximum
    tensor_active: FloatArray  # share of cycles in which the tensor pipe was active
    # Executed tensor instructions of which no opcode tells the operations, or kept the pipe active in cycles that nobody can
    # relate to all.
    tensor_gaps: Mask
    invocations: IntArray  # launches that the element stands for: 1, more where a tool gave only sums
    remarks: TextArray  # what a reader must know of the launch as a whole, '' for nothing
    label: TextArray  # what the step of a sweep is called, '' outside of sweeps
    step: IntArray  # position in a sweep, -1 outside of sweeps
    rates: Mask  # work and traffic are per second, and seconds is 1: a file without times
    charts: TextArray  # the report's own charts, None where they were not asked for
    samples: TextArray  # `Samples` or None, likewise
    work: Quantities = field(default_factory=dict)  # precision id -> operations
    summands: Quantities = field(default_factory=dict)  # the floating-point part of it that may be added up
    fused: Quantities = field(default_factory=dict)  # core precision id -> the part of work done by FMAs
    traffic: Quantities = field(default_factory=dict)  # level id -> bytes
    written: Quantities = field(default_factory=dict)  # level id -> the part of these that was written
    compute: Quantities = field(default_factory=dict)  # compute roof id -> operations per second
    bandwidth: Quantities = field(default_factory=dict)  # level id -> bytes per second
    instructions: Quantities = field(default_factory=dict)  # id of a kind (and lanes) -> warp instructions
    transactions: Quantities = field(default_factory=dict)  # id of a kind -> transactions of this kind alone
    units: Quantities = field(default_factory=dict)  # id of a hardware unit -> share of its peak
    shares: Quantities = field(default_factory=dict)  # level id -> bytes per second as a share of the roof
    gauges: Quantities = field(default_factory=dict)  # occupancy, waves, ... (data/units.toml)

    @classmethod
    def of(cls, count: int, **known: Any) -> Measurements:
        """Launches of which nothing else is known: texts are "", numbers NaN."""
        makers: dict[str, Callable[[], Any]] = {
            "TextArray": lambda: objects([""] * count),
            "FloatArray": lambda: np.full(count, np.nan),
            "Mask": lambda: np.zeros(count, dtype=bool),
        }
        usual = {"launch": np.arange(count), "invocations": np.ones(count, dtype=np.int64), "step": np.full(count, -1)}
        usual |= dict.fromkeys(("charts", "samples"), objects([None] * count))
        made = {one.name: makers[str(one.type)]() for one in fields(cls) if one.type in makers and one.name not in usual}
        return cls(**(made | usual | known))

    def __len__(self) -> int:
        return len(self.launch)

    @cached_property
    def capability_text(self) -> TextArray:
        """(9, 0) as "9.0", unknown ones as ''."""
        return objects([capability_text(one) for one in self.capability])

    @cached_property
    def gpus(self) -> dict[Gpu, IntArray]:
        """The launches of each GPU model, which is a name and a compute capability."""
        rows: dict[Gpu, list[int]] = {}
        for row, gpu in enumerate(zip(self.device, self.capability, strict=True)):
            rows.setdefault(gpu, []).append(row)
        return {gpu: np.array(mine, dtype=np.int64) for gpu, mine in rows.items()}

    def by_gpu(self, value: Callable[[str, tuple[int, int]], Any]) -> TextArray:
        """For each launch what holds of its GPU model."""
        result: TextArray = np.empty(len(self), dtype=object)
        for gpu, rows in self.gpus.items():
            result[rows] = value(*gpu)
        return result

    def values(self, quantities: Quantities, name: str) -> FloatArray:
        """The values of one of them; NaN for all launches where it is not there."""
        return quantities[name].values if name in quantities else np.full(len(self), np.nan)

    def known(self, quantities: Quantities) -> Mask:
        found: Mask = np.any([np.zeros(len(self), dtype=bool), *(np.isfinite(q.values) for q in quantities.values())], axis=0)
        return found

    def precisions(self, spec: Spec) -> list[Precision]:
        """The precisions of the spec, and after them those that only imported measurements know."""
        known = {precision.id for precision in spec.precisions}
        extra = {name: "FP (any)" if name == ANY_PRECISION else name.upper() for name in self.work if name not in known}
        others = (Precision(name, label, "core", "flop", 99, (), ("fma", "nofma")) for name, label in extra.items())
        return [*spec.precisions, *others]

    def levels(self, spec: Spec) -> list[Level]:
        """The levels of the spec, and after them those that only imported measurements know."""
        known = {level.id for level in spec.levels}
        extra = dict.fromkeys(name for name in (*self.traffic, *self.bandwidth) if name not in known)
        return [*spec.levels, *(Level(name, name.upper(), 99, ()) for name in extra)]

    def take(self, index: IntArray) -> Measurements:
        changed: dict[str, Any] = {}
        for item in fields(self):
            value = getattr(self, item.name)
            of_mapping = isinstance(value, Mapping)
            changed[item.name] = {key: one.take(index) for key, one in value.items()} if of_mapping else value[index]
        return replace(self, **changed)

    @staticmethod
    def joined(parts: Sequence[Measurements]) -> Measurements:
        """All launches of several measurements, in order; what one of them does not know is missing for its launches."""
        if len(parts) == 1:
            return parts[0]
        nothing, made = [Quantity.missing(len(part)) for part in parts], dict[str, Any]()
        for item in fields(Measurements):
            values = [getattr(part, item.name) for part in parts]
            if isinstance(values[0], Mapping):
                pairs, keys = list(zip(values, nothing, strict=True)), dict.fromkeys(key for value in values for key in value)
                made[item.name] = {key: Quantity.joined([value.get(key, none) for value, none in pairs]) for key in keys}
            else:
                made[item.name] = np.concatenate(values)
        return Measurements(**made)
