"""What one or many reports say about their launches, as arrays: the step between metrics and frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ncu_roofline.base.texts import clean, listed
from ncu_roofline.chips import Level, Precision, Spec
from ncu_roofline.chips.fields import capability_text
from ncu_roofline.formats.inputs.tables import ANY_PRECISION
from ncu_roofline.model.numbers import MEASURED, FloatArray, IntArray, Mask, Origin, Quantity

__all__ = [
    "MEASURED",
    "FloatArray",
    "IntArray",
    "Mask",
    "Measurements",
    "Origin",
    "Quantity",
    "TextArray",
    "levels_of",
    "objects",
    "precisions_of",
]

TextArray = NDArray[np.object_]


def objects(values: Sequence[object]) -> TextArray:
    """Texts, tuples and the like as an array of one dimension."""
    result = np.empty(len(values), dtype=object)
    result[:] = values
    return result


@dataclass(frozen=True, repr=False)
class Measurements:
    """Launches of one or many reports, one array element each; quantities in SI units (FLOP or OP, byte, second, Hz)."""

    report: TextArray
    ncu_version: TextArray
    launch: IntArray
    function: TextArray
    name: TextArray
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
    tensor_gaps: NDArray[np.bool_]
    invocations: IntArray  # launches that the element stands for: 1, more where a tool gave only sums
    remarks: TextArray  # what a reader must know of the launch as a whole, '' for nothing
    label: TextArray  # what the step of a sweep is called, '' outside of sweeps
    step: IntArray  # position in a sweep, -1 outside of sweeps
    rates: NDArray[np.bool_]  # work and traffic are per second, and seconds is 1: a file without times
    work: Mapping[str, Quantity] = field(default_factory=dict)  # precision id -> operations
    summands: Mapping[str, Quantity] = field(default_factory=dict)  # the floating-point part of it that may be added up
    fused: Mapping[str, Quantity] = field(default_factory=dict)  # core precision id -> the part of work done by FMAs
    traffic: Mapping[str, Quantity] = field(default_factory=dict)  # level id -> bytes
    written: Mapping[str, Quantity] = field(default_factory=dict)  # level id -> the part of these that was written
    compute: Mapping[str, Quantity] = field(default_factory=dict)  # compute roof id -> operations per second
    bandwidth: Mapping[str, Quantity] = field(default_factory=dict)  # level id -> bytes per second
    instructions: Mapping[str, Quantity] = field(default_factory=dict)  # id of a kind (and lanes) -> warp instructions
    transactions: Mapping[str, Quantity] = field(default_factory=dict)  # id of a kind -> transactions of this kind alone
    units: Mapping[str, Quantity] = field(default_factory=dict)  # id of a hardware unit -> share of its peak
    shares: Mapping[str, Quantity] = field(default_factory=dict)  # level id -> bytes per second as a share of the roof
    gauges: Mapping[str, Quantity] = field(default_factory=dict)  # occupancy, waves, ... (data/units.toml)
    charts: TextArray = field(default_factory=lambda: np.empty(0, dtype=object))  # the report's own charts, where asked for
    samples: TextArray = field(default_factory=lambda: np.empty(0, dtype=object))  # `Samples` or None, likewise

    def __len__(self) -> int:
        return len(self.launch)

    def __repr__(self) -> str:
        about = [clean(str(name)) for name in dict.fromkeys(self.device) if name]
        counted = listed((*self.work, *self.traffic), most=12)
        return f"<Measurements: {len(self)} launches, {listed(about)}; {counted or 'neither work nor traffic'}>"

    @cached_property
    def capability_text(self) -> TextArray:
        """(9, 0) as "9.0", unknown ones as ''."""
        return objects([capability_text(one) for one in self.capability])

    def take(self, index: IntArray) -> Measurements:
        """The launches of ``index``, in its order."""
        changed: dict[str, Any] = {}
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, Mapping):
                changed[item.name] = {key: quantity.take(index) for key, quantity in value.items()}
            else:
                changed[item.name] = value[index]
        return replace(self, **changed)

    @staticmethod
    def joined(parts: Sequence[Measurements]) -> Measurements:
        """All launches of several measurements, in order; what one of them does not know is missing for its launches."""
        if len(parts) == 1:
            return parts[0]
        merged: dict[str, Any] = {}
        for item in fields(Measurements):
            values = [getattr(part, item.name) for part in parts]
            if isinstance(values[0], Mapping):
                keys = dict.fromkeys(key for value in values for key in value)
                merged[item.name] = {
                    key: Quantity.joined(
                        [value.get(key) or Quantity.missing(len(part)) for value, part in zip(values, parts, strict=True)]
                    )
                    for key in keys
                }
            else:
                merged[item.name] = np.concatenate(values)
        return Measurements(**merged)


def precisions_of(m: Measurements, spec: Spec) -> list[Precision]:
    """The precisions of the spec, and after them those that only imported measurements know."""
    known = {precision.id for precision in spec.precisions}
    extra = {name: "FP (any)" if name == ANY_PRECISION else name.upper() for name in m.work if name not in known}
    return [
        *spec.precisions,
        *(Precision(name, label, "core", "flop", 99, (), ("fma", "nofma")) for name, label in extra.items()),
    ]


def levels_of(m: Measurements, spec: Spec) -> list[Level]:
    """The levels of the spec, and after them those that only imported measurements know."""
    known = {level.id for level in spec.levels}
    extra = dict.fromkeys(name for name in (*m.traffic, *m.bandwidth) if name not in known)
    return [*spec.levels, *(Level(name, name.upper(), 99, ()) for name in extra)]
