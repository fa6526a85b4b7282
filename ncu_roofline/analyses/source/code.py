"""The code of a launch: what was counted at its addresses, its instructions with these counts as columns, and its loops."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, cached_property, lru_cache
from graphlib import CycleError, TopologicalSorter
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ncu_roofline.base.texts import listed, plural, shorten
from ncu_roofline.chips import OpcodeRow, kind_of, load_opcodes
from ncu_roofline.chips import sass as limits
from ncu_roofline.chips.source_counters import COUNTED, PARTS, STALLED, adds_up
from ncu_roofline.formats.report import Kernel, Metrics
from ncu_roofline.formats.sass import CodeError
from ncu_roofline.formats.sass.cubin import Body, Cubin, module_of
from ncu_roofline.formats.sass.instructions import SIZE, Flow
from ncu_roofline.formats.sass.line_program import Place
from ncu_roofline.model.measurements import as_float
from ncu_roofline.model.names import short_names
from ncu_roofline.model.work import HALF, THREADS, WARPS, placed

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Disassemble = Callable[[Sequence[bytes], tuple[int, int]], Sequence[Mapping[int, str]]]
"""From the code of functions and the compute capability it is for to the text of each instruction by offset, per function."""

WORKS = ("fp64", "fp32", "fp16", "bf16", "tensor")
"""Kinds of work that have a column ``work_KIND`` of their own and add to ``work``; tensor is the sum over tensor types."""

INT32 = "int32"
"""The kind whose column is ``work_int32``: a precision of the model, and no part of ``work``."""

FLOPS = "work"
INTEGERS = f"work_{INT32}"
INTENSITIES = {FLOPS: "intensity", INTEGERS: "intensity_int32"}
"""What performance may count, by column, and the column of its intensity."""

WITHIN = " < "
"""Between a line and the one that it is inlined at, in the column ``inlined``."""

SELECTED = "selected"
"""The state of a warp that issues: sampled like the reasons for stalls, and none."""
NOWHERE, OUTSIDE = -1, -2
"""Lines of code without line, and of addresses outside of the code; loops of code in no loop, and outside."""
_NOT_ISSUED = "_not_issued"
_MOST, _LAST = 2.0**64, 2**63  # larger numbers count nothing, larger addresses are none
_REASON = re.compile(rf"{STALLED}(?!_not_issued$)[a-z0-9_]{{1,60}}(_not_issued)?")
_MOST_REASONS = 200  # metrics; releases have about twenty reasons
_SAMPLED = "smsp__pcsamp"  # whether samples add up is for the totals to tell
_INTEGER = "integer"  # a kind; among counts, instructions of this kind
_WAIT = "wait:"  # before a reason for waiting, among counts: its samples
_LONGEST = 4_000  # letters of where code is inlined
_EMPTY = np.empty(0, dtype=np.int64)
_DEEPEST = 64  # loops around each other, through calls; people write a few
_ENTERED = ("executed", "threads")
"""Warps that execute a guarded call need not take it; of threads nobody counts at an instruction whose predicate is false."""
_NAMED = 3
_INSIDE = 0.9
"""Share of a loop's instructions that are inlined at one place from which on the loop is one of the function inlined there."""


class Counts(NamedTuple):
    """Counts by address (sorted): an array for each column that the report has, 0 where a metric names no instance.

    ``stalls``: samples by stall reason, (all, of these not issued).  ``odd``: what is left out, as it can be no counts.
    """

    addresses: IntArray
    columns: Mapping[str, FloatArray]
    stalls: Mapping[str, tuple[FloatArray, FloatArray]]
    odd: Sequence[str]


@lru_cache(maxsize=64)
def counted(names: tuple[str, ...]) -> bool:
    """Whether a launch with metrics of these names has counts by instruction."""
    wanted = {name for alternatives, _ in COUNTED.values() for name in alternatives}
    return any(name in wanted or (name.startswith(STALLED) and _REASON.fullmatch(name)) for name in names)


def counts_of(metrics: Metrics) -> Counts:
    """What was counted at the addresses of a launch; without metrics some of whose values can be none, or don't add up to
    the metric's own.  Raises RooflineError for damaged bytes.
    """
    chosen = {column: next(filter(metrics.has_name, names), "") for column, (names, _) in COUNTED.items()}
    reasons = sorted(name for name in metrics.names() if _REASON.fullmatch(name))[:_MOST_REASONS]
    found, odd = dict[str, tuple[IntArray, FloatArray]](), []
    for name in dict.fromkeys((*filter(None, chosen.values()), *reasons)):
        keys, values = (np.array(one) for one in metrics.by_address(name))
        good = len(keys) == metrics.instance_count(name)
        good = good and bool(np.all((values >= 0) & (values < _MOST)) and np.all(keys < _LAST))
        if good and len(keys) and not name.startswith(_SAMPLED):
            good = adds_up(float(values.sum()), as_float(metrics.get(name)))
        if not good:
            odd.append(name)
        elif len(keys) or metrics.get(name) == 0:
            found[name] = keys.astype(np.int64), values.astype(np.float64)
    every = np.concatenate([*(keys for keys, _ in found.values()), _EMPTY])
    addresses = np.unique(every, return_index=True)[0]  # without indices it imports numpy.ma
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


def _read_code(kernel: Kernel, addresses: IntArray) -> tuple[Cubin | None, list[tuple[Body, int]], list[str]]:
    """The module of a launch; its functions that hold some of ``addresses`` (sorted), its own first, and where they begin;
    what a reader must know of them.
    """
    code = kernel.code
    if code is None or not code.cubin:
        return None, [], ["the report doesn't hold the machine code: counts stand by address"]
    try:
        module = module_of(code.cubin)
    except CodeError as error:
        return None, [], [f"the machine code can't be read: {error}; counts stand by address"]
    found = placed(kernel, code, module, addresses.tolist())
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
        return None, [], [f"the machine code is not shown: {what}"]
    bodies, notes = [(module.body(function.name), address) for function, address in found], list[str]()
    for body, _ in bodies:
        _ = body.places, body.flow  # which says what of them can't be read
        notes += body.notes
    if code.unread:
        most = limits.IMPORTED_BYTES >> 20
        notes.append(f"sources of a module are read up to {most} MB: without {plural(code.unread, 'imported file')}")
    if kernel.mangled_name not in {body.name for body, _ in bodies}:
        known = kernel.mangled_name in module.functions
        lacks = "where the kernel's code lies on the GPU" if known else "the code of the kernel"
        notes.append(f"the report lacks {lacks}: its counts stand by address")
    return module, bodies, notes


class Instructions:
    """The instructions of a launch, those of its own function first, and behind them the addresses outside of all code.

    ``bodies``: its functions, each with the row that it begins at (``starts``).  By row: ``address``; ``offset`` and ``body``
    (the position of its function), -1 outside; ``owner`` the position in ``owners`` (mangled names of all functions: with
    sections of their own or inside those of others; last "", outside); ``opcodes``, ``kinds``; ``places`` where it comes from,
    innermost first; ``loop`` the innermost loop, numbered over all functions; ``counts`` by column; ``stalls`` by reason.
    ``whole``: what shares are of.  ``unknown``: opcodes whose work nobody knows.  ``constant_work``: by kind of work what
    counters of operations count for instructions that only load constants, as half-precision arithmetic that is none does where
    ``constants``.  ``lanes``: what lanes are counted by.  ``notes``: what a reader must know of the code.
    """

    def __init__(self, kernel: Kernel, counts: Counts, capability: tuple[int, int], *, constants: bool) -> None:
        self._module, placed, self.notes = _read_code(kernel, counts.addresses)
        self.bodies = bodies = [body for body, _ in placed]
        sizes = [len(body.instructions) for body in bodies]
        self.starts = [0, *np.cumsum(sizes, dtype=np.int64).tolist()]
        offsets = [SIZE * np.arange(size, dtype=np.int64) for size in sizes]
        inside = [offset + address for offset, (_, address) in zip(offsets, placed, strict=True)]
        beyond = np.setdiff1d(counts.addresses, np.concatenate([*inside, _EMPTY]), assume_unique=True)
        outside = len(beyond)
        self.address: IntArray = np.concatenate([*inside, beyond])
        self.offset: IntArray = np.concatenate([*offsets, np.full(outside, -1)])
        self.body: IntArray = np.repeat([*range(len(bodies)), -1], [*sizes, outside])
        self.opcodes = [*(one.opcode for body in bodies for one in body.instructions), *[""] * outside]
        loads = np.array([*(one.constant for body in bodies for one in body.instructions), *[False] * outside], dtype=bool)
        kinds = map(cache(lambda opcode: kind_of(opcode) if opcode else ""), self.opcodes)
        self.kinds = ["move" if load else kind for kind, load in zip(kinds, loads.tolist(), strict=True)]
        self.places = [*chain.from_iterable(body.places for body in bodies), *[()] * outside]
        self.owners: list[str] = []
        loops, owner, first = [_EMPTY], list[IntArray](), 0
        for body in bodies:
            loop_of = np.array(body.flow.loop_of, dtype=np.int64)
            loops.append(np.where(loop_of < 0, NOWHERE, loop_of + first))
            first += len(body.flow.loops)
            own, end = np.full(len(body.instructions), len(self.owners)), 0
            self.owners.append(body.name)
            for offset, size, name in body.function.inside:  # sorted; what lies on another is left out
                if end <= offset and 0 < size < SIZE * len(own):
                    end = offset + size
                    own[offset // SIZE : end // SIZE] = len(self.owners)
                    self.owners.append(name.rpartition("$")[2] or name)
            owner.append(own)
        self.loop: IntArray = np.concatenate([*loops, np.full(outside, OUTSIDE)])
        self.owner: IntArray = np.concatenate([*owner, np.full(outside, len(self.owners))]).astype(np.int64)
        self.owners.append("")
        place = np.minimum(np.searchsorted(counts.addresses, self.address), len(counts.addresses) - 1)
        here = counts.addresses[place] == self.address

        def at(values: FloatArray | None) -> FloatArray:
            return np.full(len(here), np.nan) if values is None else np.where(here, values[place], 0.0)

        columns = {column: at(counts.columns.get(column)) for column in (*COUNTED, "not_issued")}
        pairs = chain.from_iterable(kernel.metrics.instances(one) for one in (WARPS, THREADS) if kernel.metrics.has_name(one))
        executed = [opcode for opcode, count in pairs if isinstance(opcode, str) and count]
        work, self.unknown = _work(self.opcodes, columns, capability, executed, constants)
        self.constant_work = {kind: float(work[f"work_{kind}"][loads].sum()) for kind in WORKS}
        columns |= {name: np.where(loads, 0.0, values) for name, values in work.items()}
        self._issued = "threads" if np.isnan(columns["executed"]).all() else "executed"
        self.lanes = "threads" if np.isnan(columns["active"]).all() else "active"
        columns[_INTEGER] = np.where([kind == _INTEGER for kind in self.kinds], columns[self._issued], 0.0)
        self.stalls = {reason: (at(every), at(not_issued)) for reason, (every, not_issued) in counts.stalls.items()}
        waits = {_WAIT + reason: every for reason, (every, _) in self.stalls.items() if reason != SELECTED}
        self.counts: dict[str, FloatArray] = columns | waits
        self.whole = {name: float(values.sum()) for name, values in columns.items()}

    @cached_property
    def columns(self) -> dict[str, Any]:
        """What and where each is."""
        names = [*(body.name for body in self.bodies), ""]
        inner = [places[0] if places else None for places in self.places]
        each = {id(places): places for places in self.places}  # rows of one line mostly share it, and comparing takes long
        distinct = set(each.values())
        longest = min(_LONGEST, limits.INLINED_LETTERS // max(1, len(distinct)))
        texts = {one: shorten(WITHIN.join(f"{place.file}:{place.line}" for place in one[1:]), longest) for one in distinct}
        inlined = {key: texts[places] for key, places in each.items()}
        blocks = chain.from_iterable(body.flow.block_of for body in self.bodies)
        return {
            "function": [names[one] for one in self.body.tolist()],
            "owner": [self.owners[one] for one in self.owner.tolist()],
            "address": self.address,
            "offset": self.offset,
            "opcode": self.opcodes,
            "kind": self.kinds,
            "file": [one.file if one else "" for one in inner],
            "line": [one.line if one else -1 for one in inner],
            "inlined": [inlined[id(places)] for places in self.places],
            "block": [*blocks, *[-1] * (len(self.address) - self.starts[-1])],
            "loop": np.maximum(self.loop, NOWHERE),
        }

    def texts(self, disassemble: Disassemble | None) -> list[str]:
        """The whole instructions, as far as they are known; each function is disassembled once."""
        known: dict[str, Mapping[int, str]] = {}
        if self._module is not None and disassemble is not None:
            known = self._module.kept.setdefault(disassemble, {})
            new = [body.function for body in self.bodies if body.name not in known]
            for some in (new[:1], new[1:]):  # the launch's own apart from the others, of which one may not be known
                if some and (capability := some[0].capability) is not None:
                    made = disassemble([one.code for one in some], capability)
                    if made is None:
                        raise TypeError("disassemble must give the texts of instructions by offset per function, not None")
                    known.update(zip((one.name for one in some), made, strict=True))
        texts = [known.get(body.name, {}).get(one.offset, "") for body in self.bodies for one in body.instructions]
        return [*texts, *[""] * (len(self.address) - len(texts))]

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
                "share_integer": sums[_INTEGER] / sums[self._issued],
                "lanes": sums[self.lanes] / sums["executed"],
            }
            if waits:
                names = np.array([name.removeprefix(_WAIT) for name in waits], dtype=object)
                table = np.vstack([sums[name] for name in waits])
                most = np.max(table, axis=0)
                stall = np.where(most > 0, names[np.argmax(table, axis=0)], "")
                share = np.where((most > 0) & (samples > 0), most / samples, np.nan)
        finite = {name: np.where(np.isfinite(values), values, np.nan) for name, values in shares.items()}
        counts = {name: values for name, values in sums.items() if name not in waits}
        return counts | finite | {"stall": stall, "share_stall": share}

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
        begins = []
        for name, role, rows in chosen:  # the lowest line of its own code, not of what is inlined into it
            lines: dict[str, int] = {}
            chains = {id(places): places for places in map(self.places.__getitem__, rows.tolist())}
            for file, line, of in chain.from_iterable(chains.values()):
                if of == (name if role == "inlined" else ""):
                    lines[file] = min(line, lines.get(file, line))
            begins.append(next(iter(lines.items()), ("", -1)))
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

    def stall_columns(self) -> dict[str, Any]:
        """A row per instruction and reason that was sampled there."""
        names, empty, functions = list(self.stalls), np.empty((0, len(self.address))), self.columns["function"]
        table, not_issued = (np.vstack([empty, *(pair[part] for pair in self.stalls.values())]) for part in (0, 1))
        rows, reasons = np.nonzero(table.T > 0)
        return {
            "function": [functions[row] for row in rows.tolist()],
            "offset": self.offset[rows],
            "reason": [names[one] for one in reasons.tolist()],
            "samples": table[reasons, rows],
            "not_issued": not_issued[reasons, rows],
        }


def has_lines(lines: Mapping[str, Any]) -> bool:
    """Whether warps were counted at some line of the source, by the frame of lines; where not, instructions are shown."""
    line, executed, samples = (np.asarray(lines[name]) for name in ("line", "executed", "samples"))
    return bool(np.any((line > 0) & ((executed != 0) | (samples > 0))))


def _work(
    opcodes: Sequence[str], columns: Mapping[str, Any], capability: tuple[int, int], executed: Iterable[str], constants: bool
) -> tuple[dict[str, FloatArray], list[str]]:
    """Operations by kind: threads or warp instructions times the weight of the opcode; and opcodes whose work nobody knows.

    NaN where a weight or the count is not known, and outside of the code; 0 where nothing was executed.  ``executed``: opcodes
    with all modifiers that the launch executed.
    """
    table = load_opcodes()
    variants: dict[str, list[str]] = {}
    for opcode in executed:
        variants.setdefault(opcode.partition(".")[0], []).append(opcode)

    @cache
    def work_of(opcode: str) -> OpcodeRow | str | None:
        """What one execution does: None for no work, and the opcode itself where nobody can tell."""
        if not opcode or opcode.startswith("op "):
            return opcode
        if not table.unknown(opcode, capability):
            work = table.work(opcode, capability)
            return None if constants and work is not None and work.precision == HALF else work
        # What was executed may tell which of several forms it is.
        forms = variants.get(opcode.partition(".")[0], ())
        known = not any(table.unknown(one, capability) for one in forms)
        works = {table.work(one, capability) for one in forms} if known else set()
        return works.pop() if len(works) == 1 else opcode

    weight = {kind: np.zeros(len(opcodes)) for kind in (*WORKS, INT32)}
    per_warp = np.zeros(len(opcodes), dtype=bool)
    for row, work in enumerate(map(work_of, opcodes)):
        if isinstance(work, str):
            own = kind_of(work) if work else ""
            for kind in (own,) if own in weight else weight:
                weight[kind][row] = math.nan
        elif work is not None and work.does != "conversion" and (kind := work.precision.partition(".")[0]) in weight:
            weight[kind][row] = work.weight
            per_warp[row] = work.does == "products"
    numbers = np.where(per_warp, columns["executed"], columns["threads"])
    idle = np.isfinite(numbers) & (numbers == 0) | (columns["executed"] == 0)
    result = {f"work_{kind}": np.where((one == 0) | idle, 0.0, numbers * one) for kind, one in weight.items()}
    result["work"] = np.sum([result[f"work_{kind}"] for kind in WORKS], axis=0)
    done = (opcode for opcode, none in zip(opcodes, idle.tolist(), strict=True) if opcode and not none)
    return result, [opcode for opcode in dict.fromkeys(done) if work_of(opcode) == opcode]


class Loops:
    """The loops of all functions of a launch, numbered through: outer before inner within a function.

    ``called``: the functions that others call, by position in `Instructions.owners`, with the rows of the calls that were
    executed.  ``innermost``: for each instruction the innermost loop that its counts go with, NOWHERE and OUTSIDE as in
    `Instructions.loop`: a called function's go with the innermost loop that holds all its calls (its home), if these are all
    known: as many warps (or threads) took them as came to the function's first instruction.
    """

    def __init__(self, found: Instructions) -> None:
        self._found, bodies, owner_of = found, found.bodies, found.owner.tolist()
        self._loops = [(body, loop) for body in bodies for loop in body.flow.loops]
        self._within: list[int] = []  # the loop around it in its own function
        inside: dict[int, list[int]] = {}  # loops by the function that they are in
        calls: dict[int, list[int]] = {}  # by function the rows that go there from others, and the rows that these go to
        entries: dict[int, set[int]] = {}
        starts = {body.name: start for body, start in zip(bodies, found.starts, strict=False) if body.instructions}
        for body, start in zip(bodies, found.starts, strict=False):
            first = len(self._within)
            self._within += [NOWHERE if loop.parent is None else first + loop.parent for loop in body.flow.loops]
            for number, loop in enumerate(body.flow.loops, first):
                inside.setdefault(owner_of[start + loop.header // SIZE], []).append(number)
            named = dict(body.function.calls)
            for row, one in enumerate(body.instructions, start):
                target = None
                if one.target is not None:
                    target = start + one.target // SIZE
                elif one.flow == "call" and one.offset in named:
                    target = starts.get(named[one.offset])
                if target is not None and owner_of[target] != owner_of[row]:
                    calls.setdefault(owner_of[target], []).append(row)
                    entries.setdefault(owner_of[target], set()).add(target)
        counts = [found.counts[name] for name in _ENTERED]
        taken = ((owner, [row for row in rows if any(one[row] > 0 for one in counts)]) for owner, rows in sorted(calls.items()))
        self.called = {owner: rows for owner, rows in taken if rows}
        known = {}
        for owner, rows in self.called.items():
            first = int(np.argmax(found.owner == owner))
            came = any(one[first] > 0 and one[first] == one[rows].sum() for one in counts)
            if owner and entries[owner] == {first} and came:
                known[owner] = rows
        # Parents and depths of a called function's loops are those in its home.
        self._parents, self._depths = list(self._within), [loop.depth for _, loop in self._loops]
        self._home = [NOWHERE] * len(found.owners)
        order = TopologicalSorter({owner: {owner_of[row] for row in rows} & known.keys() for owner, rows in known.items()})
        with suppress(CycleError):  # then it gives those outside of circles: what calls itself, if by others, has no home
            order.prepare()
        while ready := order.get_ready():  # callers before what they call
            for owner in ready:
                home = self._common(known[owner])
                if home != NOWHERE and (deeper := self._depths[home]) < _DEEPEST:
                    self._home[owner] = home
                    for number in inside.get(owner, ()):
                        self._parents[number] = home if self._parents[number] == NOWHERE else self._parents[number]
                        self._depths[number] += deeper
            order.done(*ready)
        self._deepest_first = sorted(range(len(self._parents)), key=lambda loop: -self._depths[loop])
        homes = np.array(self._home, dtype=np.int64)[found.owner]
        self.innermost: IntArray = np.where(found.loop == NOWHERE, homes, found.loop)

    def _around(self, row: int) -> int:
        """The innermost loop around an instruction, that around its function's calls if it is in none."""
        loop = int(self._found.loop[row])
        return loop if loop >= 0 else self._home[int(self._found.owner[row])]

    def _common(self, rows: Sequence[int]) -> int:
        """The innermost loop that is around all of these instructions."""
        chains = [list(self._up(self._around(row))) for row in rows]
        return next((loop for loop in chains[0] if all(loop in chain for chain in chains)), NOWHERE)

    def _up(self, loop: int) -> Iterator[int]:
        """A loop and those around it."""
        while loop != NOWHERE:
            yield loop
            loop = self._parents[loop]

    def _with_inner(self, values: FloatArray) -> FloatArray:
        """Sums by `innermost` as sums by loop."""
        result: FloatArray = values.copy()
        for loop in self._deepest_first:
            if self._parents[loop] >= 0:
                result[self._parents[loop]] += result[loop]
        return result

    @cached_property
    def columns(self) -> dict[str, Any]:
        """A row per loop: what and where it is, how often it is entered and goes round, and what is counted with it."""
        found, executed, entered = self._found, self._found.counts["executed"], list[tuple[float, float]]()
        for body, start in zip(found.bodies, found.starts, strict=False):
            entered += _entries_and_trips(body.flow, executed[start : start + len(body.instructions)].tolist())
        # Lines are those of the function that a loop is written in: what is inlined into it counts where it is inlined.  The
        # file is the one that the function begins in, if the loop has lines there, else that of the most instructions.
        chains: list[Counter[tuple[Place, ...]]] = [Counter() for _ in self._loops]
        for loop, places in zip(found.loop.tolist(), found.places, strict=True):
            if loop >= 0 and places:
                chains[loop][places[::-1]] += 1
        for loop in self._deepest_first:
            if self._within[loop] >= 0:
                chains[self._within[loop]].update(chains[loop])
        begins = {body: next((places[-1].file for places in body.places if places), "") for body in found.bodies}
        spans = [_span(own, begins[body]) for own, (body, _) in zip(chains, self._loops, strict=True)]
        sizes = np.bincount(self.innermost[self.innermost >= 0], minlength=len(self._loops)).astype(np.float64)
        names = short_names(found.owners)
        counted, apart = ([list[str]() for _ in self._loops] for _ in range(2))
        for owner, sites in self.called.items():
            with_it = set(self._up(self._home[owner]))
            for loop in with_it:
                counted[loop].append(names[owner])
            for loop in {loop for site in sites for loop in self._up(self._around(site))} - with_it:
                apart[loop].append(names[owner])
        notes = []
        for here, elsewhere in zip(counted, apart, strict=True):
            own = [f"with what it calls: {listed(here, _NAMED)}"] if here else []
            own += [f"without what is not called from here only: {listed(elsewhere, _NAMED)}"] if elsewhere else []
            notes.append("; ".join(own))
        return {
            "loop": list(range(len(self._loops))),
            "function": [body.name for body, _ in self._loops],
            "parent": self._parents,
            "depth": self._depths,
            "header": [loop.header for _, loop in self._loops],
            "end": [max(body.flow.blocks[one].end for one in loop.blocks) for body, loop in self._loops],
            "file": [file for file, _, _ in spans],
            "first_line": [first for _, first, _ in spans],
            "last_line": [last for _, _, last in spans],
            "instructions": [int(size) for size in self._with_inner(sizes)],
            "entries": [entries for entries, _ in entered],
            "trips": [trips for _, trips in entered],
            "notes": notes,
        }

    def summed(self) -> dict[str, Any]:
        """The columns with counts and shares; behind the loops a row for the code in none, and one for what lies outside."""
        found, size = self._found, len(self._loops)
        rest = [one for one in (NOWHERE, OUTSIDE) if (self.innermost == one).any()]
        tables = [found.sums(np.where(self.innermost == one, 0, -1), 1) for one in rest]
        inner = {name: self._with_inner(values) for name, values in found.sums(np.maximum(self.innermost, -1), size).items()}
        sums = {name: np.concatenate([values, *(table[name] for table in tables)]) for name, values in inner.items()}
        empty: dict[str, list[Any]] = {
            "loop": rest,
            "instructions": [int((self.innermost == one).sum()) for one in rest],
            "depth": [0] * len(rest),
        }
        for name in self.columns.keys() - empty.keys():
            missing = "" if name in ("function", "file", "notes") else math.nan if name in ("entries", "trips") else -1
            empty[name] = [missing] * len(rest)
        return {name: [*values, *empty[name]] for name, values in self.columns.items()} | found.shown(sums)


def _span(chains: Counter[tuple[Place, ...]], begin: str) -> tuple[str, int, int]:
    """File, first and last line of what has these places, outermost first, so often; ``begin`` if there are lines of this."""
    total, level = chains.total(), 0
    while True:
        here: Counter[Place] = Counter()
        for places, count in chains.items():
            if len(places) > level + 1:
                here[places[level]] += count
        place, most = here.most_common(1)[0] if here else (None, 0)
        if not here or most < _INSIDE * total:
            break
        chains = Counter({places: count for places, count in chains.items() if len(places) > level and places[level] == place})
        level += 1
    lines: dict[str, Counter[int]] = {}
    for places, count in chains.items():
        lines.setdefault(places[level].file, Counter())[places[level].line] += count
    file, found = max(lines.items(), key=lambda item: (item[0] == begin, item[1].total()), default=("", Counter({-1: 0})))
    return file, min(found), max(found)


def _entries_and_trips(flow: Flow, executed: Sequence[float]) -> list[tuple[float, float]]:
    """For each loop how often warps entered it, and iterations per entry; NaN where the executions don't tell.

    ``executed`` counts warps by instruction of the function.  What a block hands to its only successor, and what a block gets
    from its only predecessor, is known; at a branch with several ways a warp may go more than one, so nothing is subtracted
    there.  What arrives at a header comes from outside or by a back edge.
    """
    first = [executed[block.start // SIZE] for block in flow.blocks]
    before: list[list[int]] = [[] for _ in flow.blocks]
    for number, block in enumerate(flow.blocks):
        for after in block.successors:
            before[after].append(number)
    known: dict[tuple[int, int], float] = {}
    for number, block in enumerate(flow.blocks):
        if len(block.successors) == 1:
            known[number, block.successors[0]] = executed[block.end // SIZE - 1]
        for after in block.successors:
            if len(before[after]) == 1 and after:
                known[number, after] = first[after]
    by_offset = {block.start: number for number, block in enumerate(flow.blocks)}
    result = []
    for loop in flow.loops:
        header = by_offset[loop.header]
        back = [(one, header) for one in before[header] if one in loop.blocks]
        into = [(one, header) for one in before[header] if one not in loop.blocks]
        arrived, entered = first[header], math.nan
        if not flow.unresolved:
            if into and header and all(edge in known for edge in into):
                entered = sum(known[edge] for edge in into)
            elif all(edge in known for edge in back):
                entered = arrived - sum(known[edge] for edge in back)
        plausible = 0 <= entered <= arrived
        result.append((entered, arrived / entered if entered > 0 else math.nan) if plausible else (math.nan, math.nan))
    return result
