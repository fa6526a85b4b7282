"""The code of a launch: its functions and where they lie on the GPU, what was counted at its addresses, its source files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ncu_roofline.base.texts import listed, plural
from ncu_roofline.chips import code_limits as limits
from ncu_roofline.chips.source_counters import COUNTED, PARTS, STALLED, adds_up
from ncu_roofline.formats.inputs.text import find_source, last_part, lines_of_source, most_alike
from ncu_roofline.formats.report import Kernel, Metrics
from ncu_roofline.formats.sass import CodeError
from ncu_roofline.formats.sass.instructions import SIZE
from ncu_roofline.formats.sass.module import Body, Module, module_of
from ncu_roofline.model.measurements import as_float
from ncu_roofline.model.opcodes import placed

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Disassemble = Callable[[Sequence[bytes], tuple[int, int]], Sequence[Mapping[int, str]]]
"""From the code of functions and the compute capability it is for to the text of each instruction by offset, per function."""

SELECTED = "selected"
"""The state of a warp that issues: sampled like the reasons for stalls, and none."""
_NOT_ISSUED = "_not_issued"
_MOST, _LAST = 2.0**64, 2**63  # larger numbers count nothing, larger addresses are none
_REASON = re.compile(rf"{STALLED}(?!_not_issued$)[a-z0-9_]{{1,60}}(_not_issued)?")
_MOST_REASONS = 200  # metrics; releases have about twenty reasons
_ODD = (
    "left out, as some of their values can be no counts or have no address, or they don't add up to what the metric itself says"
)
_SAMPLED = "smsp__pcsamp"  # whether samples add up is for the totals to tell
_MOST_FILES, _MOST_LETTERS = 1_000, 64_000_000
"""Files of one report, and letters of all: a template library brings some hundred, a hostile report as many as it has lines."""


class Counts(NamedTuple):
    """Counts by address (sorted): an array for each column that the report has, 0 where a metric names no instance.

    ``stalls``: samples by stall reason, (all, of these not issued).  ``odd``: what is left out, as it can be no counts.
    """

    addresses: IntArray
    columns: Mapping[str, FloatArray]
    stalls: Mapping[str, tuple[FloatArray, FloatArray]]
    odd: Sequence[str]

    @property
    def notes(self) -> list[str]:
        return [f"{_ODD}: {listed(self.odd, 3)}"] if self.odd else []

    def at(self, values: FloatArray | None, addresses: IntArray) -> FloatArray:
        """The values at some addresses: NaN for what nobody counted."""
        if values is None or not len(self.addresses):
            return np.full(len(addresses), np.nan if values is None else 0.0)
        place = np.minimum(np.searchsorted(self.addresses, addresses), len(self.addresses) - 1)
        return np.where(self.addresses[place] == addresses, values[place], 0.0)


def counted(names: Iterable[str]) -> bool:
    """Whether a launch with metrics of these names has counts by instruction."""
    wanted = {name for alternatives, _ in COUNTED.values() for name in alternatives}
    return any(name in wanted or (name.startswith(STALLED) and _REASON.fullmatch(name)) for name in names)


def counts_of(metrics: Metrics) -> Counts:
    """What was counted at the addresses of a launch.  Raises RooflineError for damaged bytes."""
    chosen = {column: next(filter(metrics.has_name, names), "") for column, (names, _) in COUNTED.items()}
    reasons = sorted(name for name in metrics.names() if _REASON.fullmatch(name))[:_MOST_REASONS]
    read = {name: _read(metrics, name) for name in (*filter(None, chosen.values()), *reasons)}
    odd = [name for name, pair in read.items() if pair is None]
    found = {name: pair for name, pair in read.items() if pair is not None and (len(pair[0]) or metrics.get(name) == 0)}
    addresses = np.unique(np.concatenate([*(keys for keys, _ in found.values()), np.empty(0, dtype=np.int64)]))
    placed = {  # several values of one address are added
        name: np.bincount(np.searchsorted(addresses, keys), values, len(addresses)).astype(np.float64)
        for name, (keys, values) in found.items()
    }
    columns = {column: placed[name] * COUNTED[column][1] for column, name in chosen.items() if name in placed}
    missing = np.full(len(addresses), np.nan)
    stalls = {
        name.removeprefix(STALLED): (placed[name], placed.get(name + _NOT_ISSUED, missing))
        for name in reasons
        if name in placed and not name.endswith(_NOT_ISSUED)
    }
    if stalls:
        sampled, columns["not_issued"] = (np.sum(both, axis=0) for both in zip(*stalls.values(), strict=True))
        columns.setdefault("samples", sampled)  # releases until 2020.3 count them by reason only
        if np.any(sampled > columns["samples"]):
            odd, stalls = [*odd, "samples by stall reason"], {}
    for part, times, whole in PARTS:
        if {part, whole} <= columns.keys() and np.any(columns[part] > times * columns[whole]):
            del columns[part]
            odd.append(chosen.get(part) or part)
    return Counts(addresses, columns, stalls, odd)


def _read(metrics: Metrics, name: str) -> tuple[IntArray, FloatArray] | None:
    """Addresses and values; None if some of them can be none, or lack, or don't add up to the metric's own value."""
    keys, values = (np.array(one) for one in metrics.by_address(name))
    good = len(keys) == metrics.instance_count(name)
    good = good and bool(np.all((values >= 0) & (values < _MOST)) and np.all(keys < _LAST))
    if good and len(keys) and not name.startswith(_SAMPLED):
        good = adds_up(float(values.sum()), as_float(metrics.get(name)))
    return (keys.astype(np.int64), values.astype(np.float64)) if good else None


class LaunchCode:
    """The functions of a launch that hold some of ``addresses`` (sorted), its own first: ``bodies``, with their ``starts``.

    ``notes``: what a reader must know of them.
    """

    def __init__(self, kernel: Kernel, addresses: IntArray) -> None:
        self.bodies: list[Body] = []
        self.starts: list[int] = []
        self.notes: list[str] = []
        self._module: Module | None = None
        code = kernel.code
        if code is None or not code.cubin:
            self.notes = ["the report doesn't hold the machine code: counts stand by address"]
            return
        try:
            self._module = module = module_of(code.cubin)
        except CodeError as error:
            self.notes = [f"the machine code can't be read: {error}; counts stand by address"]
            return
        found = placed(kernel, code, module.cubin, addresses.tolist())
        sizes = np.array([len(function.code) for function, _ in found], dtype=np.int64)
        starts = np.array([address for _, address in found], dtype=np.int64)
        inside = np.searchsorted(addresses, starts + sizes) - np.searchsorted(addresses, starts)
        count = int(sizes.sum()) // SIZE + len(addresses) - int(inside.sum())
        functions = len(found) + sum(len(function.inside) for function, _ in found)
        if functions > limits.FUNCTIONS or count > limits.INSTRUCTIONS:
            what, most = f"with what has counts outside it has {count:,} instructions", limits.INSTRUCTIONS
            if functions > limits.FUNCTIONS:
                what, most = f"it has {functions:,} functions", limits.FUNCTIONS
            what = f"{what}, and no more than {most:,} are read; counts stand by address"
            self.notes = [f"the machine code is not shown: {what}"]
            return
        self.bodies, self.starts = [module.body(function.name) for function, _ in found], starts.tolist()
        for body in self.bodies:
            _ = body.places, body.flow
            self.notes += body.notes
        if code.unread:
            most = limits.IMPORTED_BYTES >> 20
            self.notes.append(f"sources of a module are read up to {most} MB: without {plural(code.unread, 'imported file')}")
        if kernel.mangled_name not in {one.name for one in self.bodies}:
            known = kernel.mangled_name in module.functions
            lacks = "where the kernel's code lies on the GPU" if known else "the code of the kernel"
            self.notes.append(f"the report doesn't tell {lacks}: its counts stand by address")

    def texts(self, disassemble: Disassemble | None) -> list[Mapping[int, str]]:
        """Of each function whole instructions by offset, as far as they are known; each is disassembled once."""
        if self._module is None or disassemble is None:
            return [{}] * len(self.bodies)
        texts = self._module.kept.setdefault(disassemble, {})
        new = [body.function for body in self.bodies if body.name not in texts]
        for some in (new[:1], new[1:]):  # the launch's own apart from the others, of which one may not be known
            capability = some[0].capability if some else None
            if capability is None:
                continue
            made = disassemble([one.code for one in some], capability)
            if made is None:
                raise TypeError("disassemble must give the texts of instructions by offset per function, not None")
            texts.update(zip((one.name for one in some), made, strict=True))
        return [texts.get(body.name, {}) for body in self.bodies]


class SourceTexts:
    """The lines of source files of a report, by the name that line tables give them."""

    def __init__(self, folders: Sequence[str]) -> None:
        self._folders = folders
        self.found: dict[str, tuple[str, ...]] = {}
        self._looked: set[str] = set()

    def add(self, kernel: Kernel, names: Iterable[str]) -> None:
        """Look for these files: what the report imported for this kernel's module, then what is in the folders."""
        new = [name for name in dict.fromkeys(names) if name and name not in self._looked]
        imported: dict[str, dict[str, str]] = {}
        for file in kernel.code.files if kernel.code and new else ():
            imported.setdefault(last_part(file.name), {})[file.name] = file.text
        letters = sum(len(line) for lines in self.found.values() for line in lines)
        for name in new[: _MOST_FILES - len(self._looked)]:
            if letters > _MOST_LETTERS:
                break
            self._looked.add(name)
            alike = imported.get(last_part(name), {})
            best = most_alike(name, alike)
            lines = lines_of_source(alike[best]) if best else find_source(name, self._folders)
            if lines is not None:
                self.found[name] = lines
                letters += sum(map(len, lines))
