"""What of counted half-precision work loads constants, as the machine code in a report tells.

By HFMA2 R0, -RZ, RZ, x, y compilers put x and y into a register.  Counters take it for four operations, and its name is that of
arithmetic: only its operands tell.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.chips import load_opcodes
from ncu_roofline.chips.source_counters import COUNTED
from ncu_roofline.chips.thresholds import COMPLETE
from ncu_roofline.formats.report import Code, Kernel, Report
from ncu_roofline.formats.sass import CodeError
from ncu_roofline.formats.sass.cubin import Cubin, Function, Reach, read_cubin
from ncu_roofline.model.measurements import FloatArray, IntArray, Quantity

HALF, BRAIN = "fp16", "bf16"
HALVES = (HALF, BRAIN)
"""What one set of counters counts together."""
_LOADS = "loads of constants (HFMA2 R0, -RZ, RZ, x, y)"
NO_ARITHMETIC = f"by the machine code no arithmetic, but {_LOADS} or conversions"
"""The note on work that is 0 although counters or opcodes say otherwise."""
_WITHOUT = f"without {_LOADS}, which the machine code tells"

(_THREADS,), _ = COUNTED["threads"]
_MOST = 2.0**64  # larger numbers count nothing
_LARGEST = 2**23  # bytes of a function's code: half a million instructions, fifty times as many as in recorded kernels
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class ConstantLoads:
    """What is known of each launch of one chip, by the ids of `HALVES`; empty where nothing is known of any.

    ``idle``: its code has no arithmetic of this precision.  ``operations``: what is counted for its loads of constants, NaN
    where that is not known.
    """

    idle: Mapping[str, Mask]
    operations: Mapping[str, FloatArray]

    def without(self, counted: Quantity, precisions: Sequence[str] = HALVES) -> tuple[Quantity, FloatArray]:
        """Operations of some precisions without those that are no arithmetic, and how many these are, NaN where not known."""
        loads = self._within(counted.values, precisions)
        if np.isnan(loads).all():
            return counted, loads
        left = Quantity(counted.values - np.nan_to_num(loads), counted.choice, counted.origins)
        some, none = (loads > 0) & (left.values > 0), (loads > 0) & (left.values == 0)
        return left.with_note(some, _WITHOUT).with_note(none, NO_ARITHMETIC), loads

    def _within(self, counted: FloatArray, precisions: Sequence[str]) -> FloatArray:
        if not self.operations:
            return np.full(len(counted), np.nan)
        idle = np.all([self.idle[one] for one in precisions], axis=0)
        loads = np.sum([self.operations[one] for one in precisions], axis=0)
        with np.errstate(invalid="ignore"):  # more than all are of another launch
            loads = np.where(loads <= (1 + COMPLETE) * counted, np.minimum(loads, counted), np.nan)
        return np.where(idle, counted, loads)


NOTHING_KNOWN = ConstantLoads({}, {})


def constant_loads(report: Report, index: IntArray, suspects: Mask, capability: tuple[int, int]) -> ConstantLoads:
    """Of the launches ``index`` of a report, by their code; only of the ``suspects`` among them: others cost nothing.

    Code that is damaged tells nothing.
    """
    if not suspects.any():
        return NOTHING_KNOWN
    idle = {one: np.zeros(len(index), dtype=bool) for one in HALVES}
    operations = {one: np.full(len(index), np.nan) for one in HALVES}
    modules: dict[object, list[int]] = {}
    for row in np.flatnonzero(suspects).tolist():
        kernel = report.kernels[int(index[row])]
        modules.setdefault((kernel.process, kernel.module), []).append(row)
    for rows in modules.values():  # one after the other: each may be large
        try:
            code = report.kernels[int(index[rows[0]])].code
            cubin = read_cubin(code.cubin) if code and code.cubin else None
        except (RooflineError, CodeError):
            continue
        if code is None or cubin is None or any(len(one.code) > _LARGEST for one in cubin.functions.values()):
            continue
        module = _Module(code, cubin, capability)
        for row in rows:
            none_of, loads = module.launch(report.kernels[int(index[row])])
            for one in HALVES:
                idle[one][row], operations[one][row] = one in none_of, loads.get(one, np.nan)
    return ConstantLoads(idle, operations)


class _Halves(NamedTuple):
    """Of a function: precisions of its arithmetic, loads of constants (offset, precision, operations), and whether it has
    conversions, and instructions that are not known."""

    arithmetic: frozenset[str]
    loads: tuple[tuple[int, str, float], ...]
    converts: bool
    unknown: bool


class _Module:
    """The code of a module, of which each function is looked at once."""

    def __init__(self, code: Code, cubin: Cubin, capability: tuple[int, int]) -> None:
        self._code, self._cubin, self._capability = code, cubin, capability
        self._table = load_opcodes()
        rows = [row for row in self._table.rows if row.precision in HALVES]
        self._names = frozenset(name for row in rows for name, _ in row.opcodes)
        self._reach = Reach(cubin, self._names)
        self._functions: dict[str, _Halves] = {}

    def launch(self, kernel: Kernel) -> tuple[Collection[str], Mapping[str, float]]:
        """Precisions of which a launch has no arithmetic, and operations counted for loads of constants, as far as is known.

        Nothing where its code does not explain what was counted.
        """
        names = self._reach.within(kernel.mangled_name) if kernel.mangled_name in self._cubin.functions else None
        found = [self._function(name) for name in names or ()]
        if not found or any(one.unknown for one in found):
            return (), self._counted(kernel)
        if not any(one.arithmetic or one.loads or one.converts for one in found):
            return (), {}
        idle = frozenset(HALVES).difference(*(one.arithmetic for one in found))
        loads = any(one.loads for one in found) and len(idle) < len(HALVES)
        return idle, self._counted(kernel) if loads else dict.fromkeys(HALVES, 0.0)

    def _function(self, name: str) -> _Halves:
        if name not in self._functions:
            instructions = self._reach.instructions(name)
            works = [(one, self._table.work(one.opcode, self._capability)) for one in instructions if one.name in self._names]
            self._functions[name] = _Halves(
                arithmetic=frozenset(work.precision for one, work in works if work and work.weight and not one.constant),
                loads=tuple((one.offset, work.precision, work.weight) for one, work in works if work and one.constant),
                converts=any(work and work.conversion for _, work in works),
                unknown=any(one.name.startswith("op ") for one in instructions) or any(work is None for _, work in works),
            )
        return self._functions[name]

    def _counted(self, kernel: Kernel) -> dict[str, float]:
        """Operations that are counted for loads of constants, by precision; empty where nobody counted by instruction."""
        if not kernel.metrics.has_name(_THREADS):
            return {}
        keys, values = (np.array(one) for one in kernel.metrics.by_address(_THREADS))
        if not len(keys) or not np.all((values >= 0) & (values < _MOST)):
            return {}
        addresses, threads = keys.tolist(), values.tolist()
        functions = placed(kernel, self._code, self._cubin, sorted(addresses))
        if kernel.mangled_name not in {function.name for function, _ in functions}:
            return {}
        listed = [(at, load) for function, at in functions for load in self._function(function.name).loads]
        loads = {at + offset: (precision, worth) for at, (offset, precision, worth) in listed}
        result = dict.fromkeys(HALVES, 0.0)
        for address, count in zip(addresses, threads, strict=True):
            if address in loads:
                precision, worth = loads[address]
                result[precision] += worth * count
        return result


_LAST = 2**63


def placed(kernel: Kernel, code: Code, cubin: Cubin, counted: Sequence[int]) -> list[tuple[Function, int]]:
    """The launch's own function, first, and those in which something was counted, with their addresses in bytes.

    ``code`` and ``cubin`` are of the kernel's module, ``counted`` the addresses with counts, sorted.  What the report places
    nowhere, or on another function, is left out; of several addresses of a function all but one.
    """
    addresses = _addresses(code, cubin, counted)
    base = kernel.base_address()
    if base is not None:
        addresses[kernel.mangled_name] = base
    found: list[tuple[Function, int]] = []
    starts: list[int] = []
    ends: list[int] = []  # of what is found, both sorted: no two lie on each other
    for name in dict.fromkeys((kernel.mangled_name, *addresses)):
        address, function = addresses.get(name), cubin.functions.get(name)
        if address is None or function is None or address + len(function.code) >= _LAST:
            continue
        end = address + len(function.code)
        empty = bisect_left(counted, address) == bisect_left(counted, end)
        place = bisect_left(starts, end)
        if (empty and name != kernel.mangled_name) or (place and ends[place - 1] > address):
            continue
        found.append((function, address))
        if end > address:
            starts.insert(place, address)
            ends.insert(place, end)
    return found


def _addresses(code: Code, cubin: Cubin, counted: Sequence[int]) -> dict[str, int]:
    """Where each function lies: of several addresses the first at which something was counted."""
    found: dict[str, int] = {}
    for one in code.functions:
        before = found.setdefault(one.name, one.address)
        function = cubin.functions.get(one.name)
        if function and before != one.address and not _any(counted, before, function) and _any(counted, one.address, function):
            found[one.name] = one.address
    return found


def _any(counted: Sequence[int], address: int, function: Function) -> bool:
    """Whether something was counted in a function that lies there."""
    return bisect_left(counted, address) < bisect_left(counted, address + len(function.code))
