"""The code of a launch: its functions, what was counted at its addresses, and its instructions with these counts as columns."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ncu_roofline.analyses.source.frames import COUNTS, INT32, INTEGERS, INTENSITIES, WITHIN, WORKS
from ncu_roofline.base.texts import plural, shorten
from ncu_roofline.chips import OpcodeWork, kind_of, load_opcodes
from ncu_roofline.chips import code_limits as limits
from ncu_roofline.chips.code_limits import INLINED_LETTERS
from ncu_roofline.chips.source_counters import COUNTED, PARTS, STALLED, adds_up
from ncu_roofline.formats.inputs.text import find_source, last_part, lines_of_source, most_alike
from ncu_roofline.formats.report import Kernel, Metrics
from ncu_roofline.formats.sass import CodeError
from ncu_roofline.formats.sass.instructions import SIZE
from ncu_roofline.formats.sass.module import Body, Module, module_of
from ncu_roofline.model.measurements import as_float
from ncu_roofline.model.names import short_names
from ncu_roofline.model.opcodes import HALF, placed

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


def add_texts(found: dict[str, tuple[str, ...]], kernel: Kernel, names: Iterable[str], folders: Sequence[str]) -> None:
    """Look for source files that are not ``found`` yet, by the names that line tables give them; () for what is nowhere.

    The report may have imported them for this kernel's module, else they are looked for in the folders.
    """
    imported: dict[str, dict[str, str]] = {}
    for file in kernel.code.files if kernel.code else ():
        imported.setdefault(last_part(file.name), {})[file.name] = file.text
    letters = sum(len(line) for lines in found.values() for line in lines)
    for name in (name for name in dict.fromkeys(names) if name and name not in found):
        if len(found) < _MOST_FILES and letters <= _MOST_LETTERS:
            alike = imported.get(last_part(name), {})
            best = most_alike(name, alike)
            found[name] = (lines_of_source(alike[best]) if best else find_source(name, folders)) or ()
            letters += sum(map(len, found[name]))


NOWHERE, OUTSIDE = -1, -2
"""Lines of code without line, and of addresses outside of the code; loops of code in no loop, and outside."""
_INTEGER = "integer"  # a kind; among counts, instructions of this kind
_WAIT = "wait:"  # before a reason for waiting, among counts: its samples
_LONGEST = 4_000  # letters of where code is inlined
_EMPTY = np.empty(0, dtype=np.int64)
WorkOf = Callable[[str], OpcodeWork | str | None]


class Instructions:
    """The instructions of a launch, those of its own function first, and behind them the addresses outside of all code.

    By row: ``address``; ``body`` the position of its function in ``code.bodies``, -1 outside; ``owner`` the position in
    ``owners`` (mangled names of all functions: with sections of their own or inside those of others; last "", outside);
    ``opcodes``, ``kinds``; ``places`` where it comes from, innermost first; ``loop`` the innermost loop, numbered over all
    functions; ``counts`` by column.  ``starts`` has the row that each function begins at.  ``whole``: what shares are of.
    ``unknown``: opcodes whose work nobody knows.  ``constant_work``: by kind of work what counters of operations count for
    instructions that only load constants.  ``lanes``: what lanes are counted by.
    """

    def __init__(self, code: LaunchCode, counts: Counts, work_of: WorkOf) -> None:
        self.code, bodies = code, code.bodies
        sizes = [len(body.instructions) for body in bodies]
        self.starts = [0, *np.cumsum(sizes, dtype=np.int64).tolist()]
        inside = [start + SIZE * np.arange(size, dtype=np.int64) for start, size in zip(code.starts, sizes, strict=True)]
        beyond = np.setdiff1d(counts.addresses, np.concatenate([*inside, _EMPTY]))
        outside = len(beyond)
        self.address: IntArray = np.concatenate([*inside, beyond])
        self.body: IntArray = np.repeat([*range(len(bodies)), -1], [*sizes, outside])
        self.opcodes = [*(one.opcode for body in bodies for one in body.instructions), *[""] * outside]
        loads = np.array([*(one.constant for body in bodies for one in body.instructions), *[False] * outside], dtype=bool)
        kinds = map(cache(lambda opcode: kind_of(opcode) if opcode else ""), self.opcodes)
        self.kinds = ["move" if load else kind for kind, load in zip(kinds, loads.tolist(), strict=True)]
        self.places = [*chain.from_iterable(body.places for body in bodies), *[()] * outside]
        loops, first = [_EMPTY], 0
        for body in bodies:
            own = np.array(body.flow.loop_of, dtype=np.int64)
            loops.append(np.where(own < 0, NOWHERE, own + first))
            first += len(body.flow.loops)
        self.loop: IntArray = np.concatenate([*loops, np.full(outside, OUTSIDE)])
        self.owners, self.owner = _owners(bodies, outside)
        columns = {column: counts.at(counts.columns.get(column), self.address) for column in (*COUNTED, "not_issued")}
        work, self.unknown = _work(self.opcodes, work_of, columns)
        self.constant_work = {kind: float(work[f"work_{kind}"][loads].sum()) for kind in WORKS}
        columns |= {name: np.where(loads, 0.0, values) for name, values in work.items()}
        self.issued = "threads" if np.isnan(columns["executed"]).all() else "executed"
        self.lanes = "threads" if np.isnan(columns["active"]).all() else "active"
        columns[_INTEGER] = np.where([kind == _INTEGER for kind in self.kinds], columns[self.issued], 0.0)
        self.stalls = {
            reason: (counts.at(every, self.address), counts.at(not_issued, self.address))
            for reason, (every, not_issued) in counts.stalls.items()
        }
        waits = {_WAIT + reason: every for reason, (every, _) in self.stalls.items() if reason != SELECTED}
        self.counts: dict[str, FloatArray] = columns | waits
        self.whole = {name: float(values.sum()) for name, values in columns.items()}

    def columns(self) -> dict[str, Any]:
        """What and where each is."""
        bodies, flows = self.code.bodies, (body.flow.block_of for body in self.code.bodies)
        names = [*(body.name for body in bodies), ""]
        inner = [places[0] if places else None for places in self.places]
        starts = np.array([*self.code.starts, 0], dtype=np.int64)
        each = {id(places): places for places in self.places}  # rows of one line mostly share it, and comparing takes long
        distinct = set(each.values())
        longest = min(_LONGEST, INLINED_LETTERS // max(1, len(distinct)))
        texts = {one: shorten(WITHIN.join(f"{place.file}:{place.line}" for place in one[1:]), longest) for one in distinct}
        inlined = {key: texts[places] for key, places in each.items()}
        return {
            "function": [names[one] for one in self.body.tolist()],
            "owner": [self.owners[one] for one in self.owner.tolist()],
            "address": self.address,
            "offset": np.where(self.body < 0, -1, self.address - starts[self.body]),
            "opcode": self.opcodes,
            "kind": self.kinds,
            "file": [one.file if one else "" for one in inner],
            "line": [one.line if one else -1 for one in inner],
            "inlined": [inlined[id(places)] for places in self.places],
            "block": [*chain.from_iterable(flows), *[-1] * (len(self.address) - self.starts[-1])],
            "loop": np.maximum(self.loop, NOWHERE),
        }

    def sums(self, group: IntArray, groups: int, rows: IntArray | None = None) -> dict[str, FloatArray]:
        """All counts in sum over each group of instructions, or of these ``rows``; a negative group is none."""
        chosen = group >= 0
        kept, rows = group[chosen], np.flatnonzero(chosen) if rows is None else rows[chosen]
        return {name: np.bincount(kept, values[rows], groups).astype(np.float64) for name, values in self.counts.items()}

    def shown(self, sums: Mapping[str, FloatArray]) -> dict[str, Any]:
        """The columns of counts and shares, with the reason for most stalls in each row."""
        whole, asked, samples = self.whole, sums["requested"] + sums["local"], sums["samples"]
        stall, share = np.full(len(samples), "", dtype=object), np.full(len(samples), np.nan)
        waits = [name for name in sums if name.startswith(_WAIT)]
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = {
                "share_samples": samples / whole["samples"],
                "share_work": sums["work"] / whole["work"],
                "share_int32": sums[INTEGERS] / whole[INTEGERS],
                "share_requested": sums["requested"] / whole["requested"],
                "share_excess": np.maximum(sums["requested"] - sums["ideal"], 0) / whole["requested"],
                **{name: sums[work] / asked for work, name in INTENSITIES.items()},
                "share_integer": sums[_INTEGER] / sums[self.issued],
                "lanes": sums[self.lanes] / sums["executed"],
            }
            if waits:
                names = np.array([name.removeprefix(_WAIT) for name in waits], dtype=object)
                table = np.vstack([sums[name] for name in waits])
                most = np.max(table, axis=0)
                stall = np.where(most > 0, names[np.argmax(table, axis=0)], "")
                share = np.where((most > 0) & (samples > 0), most / samples, np.nan)
        finite = {name: np.where(np.isfinite(values), values, np.nan) for name, values in shares.items()}
        return {column.name: sums[column.name] for column in COUNTS} | finite | {"stall": stall, "share_stall": share}

    def lines(self, texts: Mapping[str, Sequence[str]], *, outermost: bool = False) -> dict[str, Any]:
        """A row per line in the order of files and lines, then what has no line, by function, then what lies outside.

        Lines are the innermost ones, or the ``outermost``: of the function's own, at which code is inlined.
        """
        own, names = -1 if outermost else 0, [self.owners[one] for one in self.owner.tolist()]
        keys = [
            (places[own].file, places[own].line, "") if places else ("", NOWHERE if name else OUTSIDE, name)
            for places, name in zip(self.places, names, strict=True)
        ]
        sizes = Counter(keys)
        ordered = sorted(sizes, key=lambda key: (key[1] < 0, key[0], abs(key[1]), key[2]))
        place = {key: row for row, key in enumerate(ordered)}
        group = np.array([place[key] for key in keys], dtype=np.int64)
        return {
            "file": [file for file, _, _ in ordered],
            "line": [line for _, line, _ in ordered],
            "text": ["".join(texts.get(file, ())[line - 1 : line]) if line > 0 else name for file, line, name in ordered],
            "instructions": [sizes[key] for key in ordered],
            **self.shown(self.sums(group, len(ordered))),
        }

    def functions(self, kernel: str) -> dict[str, Any]:
        """The kernel (its mangled name) and what it calls, which add up to all; then, of these, what is inlined."""
        chosen = []
        for number, name in enumerate(self.owners):
            rows = np.flatnonzero(self.owner == number)
            if len(rows):
                chosen.append((name, ("kernel" if name == kernel else "called") if name else "outside", rows))
        inlined: dict[str, list[int]] = {}
        for row, places in enumerate(self.places):
            for name in {place.function for place in places if place.function}:
                inlined.setdefault(name, []).append(row)
        chosen += [(name, "inlined", np.array(inlined[name], dtype=np.int64)) for name in sorted(inlined)]
        names, sizes = [name for name, _, _ in chosen], [len(rows) for _, _, rows in chosen]
        begins = [self._begin(name if role == "inlined" else "", rows) for name, role, rows in chosen]
        every = np.concatenate([*(rows for _, _, rows in chosen), _EMPTY])
        return {
            "function": names,
            "name": short_names(names),
            "role": [role for _, role, _ in chosen],
            "file": [file for file, _ in begins],
            "line": [line for _, line in begins],
            "instructions": sizes,
            **self.shown(self.sums(np.repeat(np.arange(len(chosen)), sizes), len(chosen), every)),
        }

    def _begin(self, function: str, rows: IntArray) -> tuple[str, int]:
        """File and the lowest line of a function: of its own code, not of what is inlined into it."""
        lines: dict[str, int] = {}
        chains = {id(places): places for places in map(self.places.__getitem__, rows.tolist())}
        for file, line, of in chain.from_iterable(chains.values()):
            if of == function:
                lines[file] = min(line, lines.get(file, line))
        return next(iter(lines.items()), ("", -1))

    def stall_columns(self, columns: Mapping[str, Any]) -> dict[str, Any]:
        """A row per instruction and reason that was sampled there; ``columns`` say what instructions are."""
        names, size = list(self.stalls), len(self.address)
        table, not_issued = (
            np.vstack([np.empty((0, size)), *(pair[part] for pair in self.stalls.values())]) for part in (0, 1)
        )
        rows, reasons = np.nonzero(table.T > 0)
        return {
            "function": [columns["function"][row] for row in rows.tolist()],
            "offset": columns["offset"][rows],
            "reason": [names[one] for one in reasons.tolist()],
            "samples": table[reasons, rows],
            "not_issued": not_issued[reasons, rows],
        }


def _owners(bodies: Sequence[Body], outside: int) -> tuple[list[str], IntArray]:
    names: list[str] = []
    parts = []
    for body in bodies:
        own = np.full(len(body.instructions), len(names))
        names.append(body.name)
        end = 0
        for offset, size, name in body.function.inside:  # sorted; what lies on another is left out
            if end <= offset and 0 < size < SIZE * len(own):
                end = offset + size
                own[offset // SIZE : end // SIZE] = len(names)
                names.append(name.rpartition("$")[2] or name)
        parts.append(own)
    return [*names, ""], np.concatenate([*parts, np.full(outside, len(names))]).astype(np.int64)


def has_lines(lines: Mapping[str, Any]) -> bool:
    """Whether warps were counted at some line of the source, by the frame of lines; where not, instructions are shown."""
    line, executed, samples = (np.asarray(lines[name]) for name in ("line", "executed", "samples"))
    return bool(np.any((line > 0) & ((executed != 0) | (samples > 0))))


def works_of(capability: tuple[int, int], executed: Iterable[str], *, constants: bool) -> WorkOf:
    """What one execution of an opcode does: None for no work, and the opcode itself where nobody can tell.

    ``executed``: opcodes with all modifiers that the launch executed.  ``constants``: its half-precision arithmetic is none,
    but loads constants.
    """
    table = load_opcodes()
    variants: dict[str, list[str]] = {}
    for opcode in executed:
        variants.setdefault(opcode.partition(".")[0], []).append(opcode)

    @cache
    def work_of(opcode: str) -> OpcodeWork | str | None:
        if opcode.startswith("op "):
            return opcode
        if not table.unknown(opcode, capability):
            work = table.work(opcode, capability)
            return None if constants and work is not None and work.precision == HALF else work
        # What was executed may tell which of several forms it is.
        forms = variants.get(opcode.partition(".")[0], ())
        known = not any(table.unknown(one, capability) for one in forms)
        works = {table.work(one, capability) for one in forms} if known else set()
        return works.pop() if len(works) == 1 else opcode

    return work_of


def _work(opcodes: Sequence[str], work_of: WorkOf, columns: Mapping[str, Any]) -> tuple[dict[str, FloatArray], list[str]]:
    """Operations by kind: threads or warp instructions times the weight of the opcode; and opcodes whose work nobody knows.

    NaN where a weight or the count is not known, and outside of the code; 0 where nothing was executed.
    """
    weight = {kind: np.zeros(len(opcodes)) for kind in (*WORKS, INT32)}
    per_warp = np.zeros(len(opcodes), dtype=bool)
    for row, opcode in enumerate(opcodes):
        work = work_of(opcode) if opcode else opcode
        if isinstance(work, str):
            own = kind_of(work) if work else ""
            for kind in (own,) if own in weight else weight:
                weight[kind][row] = math.nan
        elif work is not None and not work.conversion and (kind := work.precision.partition(".")[0]) in weight:
            weight[kind][row] = work.weight
            per_warp[row] = work.per == "warp"
    numbers = np.where(per_warp, columns["executed"], columns["threads"])
    idle = np.isfinite(numbers) & (numbers == 0) | (columns["executed"] == 0)
    result = {f"work_{kind}": np.where((one == 0) | idle, 0.0, numbers * one) for kind, one in weight.items()}
    result["work"] = np.sum([result[f"work_{kind}"] for kind in WORKS], axis=0)
    done = (opcode for opcode, none in zip(opcodes, idle.tolist(), strict=True) if opcode and not none)
    return result, [opcode for opcode in dict.fromkeys(done) if work_of(opcode) == opcode]
