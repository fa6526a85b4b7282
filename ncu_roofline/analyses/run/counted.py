"""A run with the counts of reports: kernels at the time that they take in the run, and what operators need, move and execute.

A kernel under a profiler takes another time than in its run: other clocks, caches that are flushed before it.  So times, and
what follows from them, are the trace's, counts the reports', needs those of the operators' shapes.
"""

from __future__ import annotations

import math
import re
import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from itertools import chain
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ncu_roofline.analyses.hierarchical import text as roofline_text
from ncu_roofline.analyses.hierarchical.view import TABLES as OF_ROOFLINES
from ncu_roofline.analyses.run.frames import OPERATORS, Run
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.texts import clean, plural, shorten
from ncu_roofline.base.units import format_value, percent
from ncu_roofline.chips import load_spec, load_units
from ncu_roofline.formats.ceilings import Ceilings
from ncu_roofline.model.kernels import Everything
from ncu_roofline.model.measurements import FloatArray, Measurements, Quantity
from ncu_roofline.model.names import parse
from ncu_roofline.model.roofline import Roofline, frame_of, of_launches, of_rows
from ncu_roofline.model.selection import Selection
from ncu_roofline.model.work import TENSOR_PIPE, total_flops
from ncu_roofline.rendering.document import Column, Document, Note, Table
from ncu_roofline.rendering.frames import records

_text, _integer, _number = Column.text, Column.integer, Column.number
_SHARED = {one.name: one for one in OPERATORS}
NEEDS = (
    *(_SHARED[name] for name in ("run", "gpu", "device", "operator", "shapes", "types", "direction", "group")),
    replace(_SHARED["calls"], priority=7),
    *(_SHARED[name] for name in ("kernels", "seconds", "share")),
    _number("profiled", "second", "what its counted kernels took under the profiler, as often as the run launches them"),
    _number("counted", "ratio", "share of its time in kernels that reports have counts of"),
    replace(_SHARED["bytes"], label="needs bytes", priority=2),
    _number(
        "moved", "byte", "bytes that its kernels moved to and from DRAM; NaN where not all of them were counted", "moves", 2
    ),
    _number("waste", "ratio", "moved / bytes", "waste", form="factor"),
    _number("bandwidth", "byte/s", "moved / seconds", "attains", 8),
    _number("bandwidth_fraction", "ratio", "bandwidth as a share of the DRAM roof", "of DRAM", 3),
    replace(_SHARED["flops"], label="needs FLOP", priority=4),
    _number("executed", "flop", "floating-point operations that its kernels executed; NaN likewise", "executes", 4),
    _number("performance", "flop/s", "executed / seconds", "attains", 6),
    *(_SHARED[name] for name in ("roof", "least", "fraction", "recoverable", "origin", "why")),
)
COVERAGE = (
    _text("device", "name of the GPU"),
    _number("kernel_seconds", "second", "time of all kernels in the run"),
    _number("covered", "ratio", "share of it in kernels that reports have counts of"),
    _integer("kernels", "different kernels in the run, by name, grid and block"),
    _integer("counted_kernels", "those that reports have counts of"),
    _integer("launches", "kernels that were launched in the run"),
    _integer("counted_launches", "those of the kernels that are counted"),
    _number("profiled", "second", "what these took under the profiler, as often as the run launches them"),
    _integer("absent", "launches in the reports whose kernels are not in the run"),
    _text("command", "ncu's command line that counts more of the run; '' where that is not worth it"),
)
TABLES = {**OF_ROOFLINES, "needs": NEEDS, "coverage": COVERAGE}
_SHOWN = (
    *("operator", "shapes", "direction", "group", "calls", "seconds", "share", "bytes", "moved", "waste", "bandwidth"),
    *("bandwidth_fraction", "flops", "executed", "performance", "recoverable"),
)
_PAGE = 100  # operators on a page
_ENOUGH = 0.9  # of the kernels' time: more is not worth another run under the profiler
_TOLD, _WORTH = 3, 0.02  # operators in sentences, and the share of the time that makes one worth it
_WASTE = 1.1
# What a profiler says of a launch whatever time it takes.
_OF_ANY_TIME = (TENSOR_PIPE, "occupancy", "occupancy_theoretical", "waves", "lanes")
_LABELS = {"time_share": "of run"}
_LONGEST_NAME = 60_000  # of mangled names: none is longer that a compiler made
_MOST_NAMED = 20  # kernels in a command line
Key = tuple[str, str, str]  # name as the run has it, grid, block
Place = tuple[int, int]  # of a kernel: which trace, which row of its work


class Kernel(NamedTuple):
    """A row of a run's work: some ``launches`` of one kernel."""

    place: Place
    key: Key
    seconds: float
    launches: int
    start: float


@dataclass(frozen=True, repr=False)
class Counted(Roofline):
    """A Roofline whose kernels stand at the time of a run, with `NEEDS` and `COVERAGE`; ``told`` comes first."""

    view: ClassVar[str] = "counted"
    need_columns: Mapping[str, Any] = field(default_factory=dict)
    coverage_columns: Mapping[str, Any] = field(default_factory=dict)
    told: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    needs = frame_of("need_columns", "Operators: what they need, what was counted, what they attain in the run.")
    coverage = frame_of("coverage_columns", "How much of the run was counted.")

    @property
    def beside(self) -> Table | None:
        """The table that a page has below its chart."""
        return next(iter(_needs_table(self, _PAGE)), None)


class Found(NamedTuple):
    """Where the counts of a run's kernels are: of each, launches of reports and how many each stands for."""

    rows: Mapping[Place, Sequence[tuple[int, int]]]
    seconds: FloatArray  # of each launch of the reports the time that it stands for; 0 for none
    launches: FloatArray
    absent: Sequence[int]  # launches of the reports whose kernels are not in the run
    doubled: int  # launches of the run that have counts of another one of the same kernel


def counted(run: Run, m: Measurements, ceilings: Sequence[Ceilings] = (), *, by: str = "kernel", select: Selection) -> Counted:
    """The launches of reports at the time that their kernels take in a run, as a Roofline, with its operators' needs.

    Kernels are the same that have the same full name, grid and block.  Theoretical roofs are at the GPU's highest clock, as a
    trace does not tell that of the run.  Raises RooflineError where no kernel is counted, and for reports of another GPU.
    """
    operators = _operators(run, m)
    kernels = sorted(one for _, mine in operators for one in mine)
    found = _matched(kernels, m, _names(m))
    spec, device = load_spec(), str(m.device[0])
    known = [one for one in kernels if one.place in found.rows]
    total, covered = (sum(one.seconds for one in some) for some in (kernels, known))
    if not covered > 0:
        of = ", ".join(dict.fromkeys(m.report))
        reason = f"none of the kernels in {of} was launched in it with the same name, grid and block"
        raise _unusable(run, reason, "Give the trace of the program that was profiled.")
    per_launch = 1 / m.invocations
    took = m.seconds * per_launch * found.launches
    dram, flops = m.values(m.traffic, spec.memory) * per_launch, total_flops(m) * per_launch

    def summed(values: FloatArray, some: Sequence[Kernel]) -> float:
        return sum((values[launch] * count for one in some for launch, count in found.rows[one.place]), 0.0)

    roofs = {(row["run"], row["gpu"]): row["value"] for row in records(run.roof_columns) if row["roof"] == spec.memory}
    needs = []
    for row, mine in operators:
        seen = [one for one in mine if one.place in found.rows]
        moved, executed = (summed(values, mine) if len(seen) == len(mine) else math.nan for values in (dram, flops))
        per_second = 1 / row["seconds"] if row["seconds"] > 0 else math.nan
        needs.append(
            {
                **row,
                "profiled": summed(m.seconds * per_launch, seen) if seen else math.nan,
                "counted": sum(one.seconds for one in seen) * per_second,
                "moved": moved,
                "waste": moved / row["bytes"],
                "bandwidth": moved * per_second,
                "bandwidth_fraction": moved * per_second / roofs.get((row["run"], row["gpu"]), math.nan),
                "executed": executed,
                "performance": executed * per_second,
            }
        )
    coverage: dict[str, Any] = {
        "device": device,
        "kernel_seconds": total,
        "covered": covered / total,
        "kernels": len({one.key for one in kernels}),
        "counted_kernels": len({one.key for one in known}),
        "launches": sum(one.launches for one in kernels),
        "counted_launches": sum(one.launches for one in known),
        "profiled": float(np.nansum(np.where(found.launches > 0, took, 0.0))) if np.isfinite(took).any() else math.nan,
        "absent": len(found.absent),
        "command": _command(run, operators, kernels, known),
    }
    whole = Everything(device, len({one.key[0] for one in kernels}), coverage["launches"], total)
    made = of_launches(_timed(m, found), ceilings, "max", by, select, (whole,))
    made_of: Any = {name: value for name, value in vars(made).items() if name in {one.name for one in fields(Roofline)}}
    told = (*_coverage(coverage, [str(m.name[row]) for row in found.absent], kernels, found), *_waste(needs))
    columns: Any = {"need_columns": of_rows(needs, NEEDS), "coverage_columns": of_rows([coverage], COVERAGE)}
    return Counted(**made_of, **columns, told=told, notes=tuple(_notes(coverage, found)))


def _unusable(run: Run, reason: str, next_step: str) -> RooflineError:
    return RooflineError("Cannot use --run", ", ".join(dict.fromkeys(run.run_columns["run"])), reason, next_step)


# Which kernels are the same


def _operators(run: Run, m: Measurements) -> list[tuple[dict[str, Any], list[Kernel]]]:
    """The operators on the GPU that reports are of, with their kernels.  Raises RooflineError for two GPUs."""
    devices = {_device(name) for name in m.device.tolist()}
    if len(devices) > 1:
        about = " and ".join(sorted(set(m.device.tolist())))
        raise _unusable(
            run, f"the reports are of several GPUs ({about}), and the run used one of them", "Give reports of one GPU."
        )
    (device,) = devices
    traces = {name: place for place, name in enumerate(dict.fromkeys(run.run_columns["run"].tolist()))}
    found, others = [], set[str]()
    for row, calls in zip(records(run.operator_columns), run.calls, strict=True):
        if row["device"] and device and _device(row["device"]) != device:
            others.add(row["device"])
            continue
        work, kernels = calls.work, list[Kernel]()
        for at in chain.from_iterable(calls.kernels):
            key = work.name[at], _sizes(work.grid[at]), _sizes(work.block[at])
            kernels.append(Kernel((traces[row["run"]], at), key, work.seconds[at], work.count[at], work.start[at]))
        found.append((row, kernels))
    if others and not found:
        reason = f"it is of {' and '.join(sorted(others))}, the report of {m.device[0]}"
        raise _unusable(run, reason, "Give a report and a trace of one GPU.")
    return found


def _device(name: str) -> str:
    """A GPU's name, which drivers begin with NVIDIA or not; "" where a file does not say it."""
    return "" if name == "unknown GPU" else name.removeprefix("NVIDIA ").casefold()


def _sizes(text: str) -> str:
    return "x".join(re.findall(r"\d+", text))


def _names(m: Measurements) -> list[tuple[str, ...]]:
    """For each launch of reports the names that a trace may have for it: Nsight's own, and as GNU's demangler writes it.

    The PyTorch profiler asks the C++ library; newer ones refuse symbols of over a thousand characters, and Windows has none.
    """
    import cxxfilt

    known: dict[str, str] = {}
    for mangled in set(m.mangled.tolist()):
        if mangled.startswith("_Z") and len(mangled) < _LONGEST_NAME:
            try:
                known[mangled] = cxxfilt.demangle(mangled)
            except (cxxfilt.Error, UnicodeError):
                with suppress(ImportError):  # for Python 3.11 and later
                    from demangle import demangle

                    known[mangled] = demangle(mangled, style="gnu")
    pairs = zip(m.name.tolist(), m.mangled.tolist(), strict=True)
    return [tuple(dict.fromkeys(filter(None, (name, known.get(mangled, mangled))))) for name, mangled in pairs]


def _matched(kernels: Sequence[Kernel], m: Measurements, names: Sequence[tuple[str, ...]]) -> Found:
    """Launches of the run and of the reports that are of the same kernel, in order where there are as many of both.

    Where a side does not say grids and blocks, names do, if the other has one size of that kernel or both as many launches.
    Reports that have function names only (tables of ncu) match where one kernel in the run has that, with grid and block.
    """
    launched: dict[Key, list[Kernel]] = defaultdict(list)
    for one in kernels:
        launched[one.key].append(one)
    by_name: dict[str, list[Key]] = defaultdict(list)
    by_function: dict[Key, list[Key]] = defaultdict(list)
    for key in launched:
        by_name[key[0]].append(key)
        name = parse(key[0])
        by_function[name.base if name else key[0], key[1], key[2]].append(key)
    profiled: dict[tuple[Key, ...], list[int]] = defaultdict(list)  # launches of reports by the keys of the run that they are
    absent = []
    for launch in range(len(m)):
        sizes = str(m.grid[launch]), str(m.block[launch])
        keys = next((by_name[name] for name in names[launch] if name in by_name), [])
        if not keys and not m.mangled[launch]:
            called = by_function.get((str(m.function[launch]), *sizes), [])
            keys = called if len(called) == 1 and sizes != ("", "") else []
        agreeing = [key for key in keys if key[1:] == sizes]  # one, or none
        if not agreeing and (sizes == ("", "") or all(key[1:] == ("", "") for key in keys)):
            agreeing = keys
        if agreeing:
            profiled[tuple(agreeing)].append(launch)
        else:
            absent.append(launch)
    rows: dict[Place, list[tuple[int, int]]] = {}
    seconds, launches, doubled = np.zeros(len(m)), np.zeros(len(m)), 0
    for same, mine in profiled.items():
        theirs = sorted(one for key in same for one in launched[key])
        many = sum(one.launches for one in theirs)
        several = len(same) > 1 or len({(m.grid[launch], m.block[launch]) for launch in mine}) > 1
        if several and many != len(mine):
            absent += mine  # which of several sizes a launch has nobody tells
            continue
        doubled += max(many - len(mine), 0)
        position = 0
        for one in theirs:
            rows[one.place] = [
                (mine[(position + at) % len(mine)], one.launches // len(mine) + (at < one.launches % len(mine)))
                for at in range(min(one.launches, len(mine)))
            ]
            position += one.launches
            for launch, times in rows[one.place]:
                seconds[launch] += one.seconds * times / one.launches
                launches[launch] += times
    return Found(rows, seconds, launches, sorted(absent), doubled)


def _timed(m: Measurements, found: Found) -> Measurements:
    """The launches of reports that are in the run, with its times, and counts of as many launches as each stands for."""
    index = np.flatnonzero(found.launches > 0)
    part, times = m.take(index), found.launches[index]
    factor = times / part.invocations
    sums = {count.id for count in load_units().counts}
    gauges = {name: one for name, one in part.gauges.items() if name in sums or name in _OF_ANY_TIME}
    gauges = {name: one.scaled(factor) if name in sums else one for name, one in gauges.items()}

    def scaled(quantities: Mapping[str, Quantity]) -> dict[str, Quantity]:
        return {name: one.scaled(factor) for name, one in quantities.items()}

    nothing = np.full(len(index), np.nan)
    counts: Any = {name: scaled(getattr(part, name)) for name in ("work", "summands", "fused", "traffic", "written")}
    return replace(
        part,
        **counts,
        units={},  # percentages of the profiler's time, as the shares are
        shares={},
        seconds=found.seconds[index],
        clock=nothing,
        tensor_active=nothing,
        invocations=times.astype(np.int64),
        gauges=gauges,
    )


# What is said


def _coverage(coverage: Mapping[str, Any], absent: Sequence[str], kernels: Sequence[Kernel], found: Found) -> Iterator[str]:
    of = f"{coverage['counted_launches']:,} of {plural(coverage['launches'], 'launch')}"
    text = f"{percent(coverage['covered'])} of the kernels' time in the run is counted ({of})"
    missing: dict[str, float] = defaultdict(float)
    for one in kernels:
        if one.place not in found.rows:
            missing[one.key[0]] += one.seconds
    if missing and coverage["covered"] < _ENOUGH:
        name = max(missing, key=lambda name: missing[name])
        share = percent(missing[name] / coverage["kernel_seconds"])
        text += f"; of the rest most is {_short(name)}, {share}"
    yield f"{text}."
    if absent:
        count = plural(len(absent), "launch")
        yield (
            f"{count} in the reports {'is' if len(absent) == 1 else 'are'} not in the run, as {_short(absent[0])}: libraries "
            f"may choose other kernels in another run."
        )
    seconds = coverage["covered"] * coverage["kernel_seconds"]
    if coverage["profiled"] > 0:
        times = f"{coverage['profiled'] / seconds:.3g}x"
        yield (
            f"What is counted takes {format_value(seconds, 'second', 3)} in the run, and under the profiler "
            f"{format_value(coverage['profiled'], 'second', 3)} ({times}): times, rates and shares are the run's."
        )


def _short(name: str) -> str:
    found = parse(clean(name))
    return shorten(found.base if found else clean(name))


def _notes(coverage: Mapping[str, Any], found: Found) -> Iterator[str]:
    yield "Counts are the reports', times the run's; theoretical roofs are at the highest clock: traces lack the run's."
    if found.doubled:
        yield f"Of {plural(found.doubled, 'launch')} of the run the counts are those of another launch of the same kernel."
    if coverage["command"]:
        yield f"To count {percent(_ENOUGH)} of the kernels' time: {coverage['command']}"


def _command(
    run: Run,
    operators: Sequence[tuple[Mapping[str, Any], Sequence[Kernel]]],
    kernels: Sequence[Kernel],
    counted_ones: Sequence[Kernel],
) -> str:
    """ncu's command line that counts what is missing from 90 % of the time; "" where nothing is."""
    times: dict[Key, float] = defaultdict(float)
    for one in kernels:
        times[one.key] += one.seconds
    counted_keys = {one.key for one in counted_ones}
    known, wanted = sum(times[key] for key in counted_keys), list[Key]()
    for key in sorted(times.keys() - counted_keys, key=lambda key: -times[key]):
        if known >= _ENOUGH * sum(times.values()) or len(wanted) == _MOST_NAMED:
            break
        wanted.append(key)
        known += times[key]
    if not wanted:
        return ""
    parsed = {key: parse(key[0]) for key in times}
    functions = {key: name.base if name else key[0] for key, name in parsed.items()}
    chosen = dict.fromkeys(functions[key] for key in wanted)
    words = ["ncu", "--set", "full", "--kernel-name", f"regex:^({'|'.join(map(re.escape, chosen))})$"]
    # ncu counts the launches that pass its filters, in order of time; NVTX ranges are such where the trace has them.
    passing = [one for one in kernels if functions[one.key] in chosen]
    if run.by == "annotation" and "Nsight" in str(run.run_columns["format"][0]):
        group = {one.place: row["group"] for row, mine in operators for one in mine}
        around = [{group[one.place] for one in passing if one.key == key} for key in wanted]
        common = [name for name in sorted(set.intersection(*around)) if re.fullmatch(r"[\w .-]+", name)]
        if common:
            words += ["--nvtx", "--nvtx-include", f"{common[0]}/"]
            passing = [one for one in passing if group[one.place] == common[0]]
    if all(one.launches == 1 for one in passing):
        order = [one.key for one in sorted(passing, key=lambda one: one.start)]
        firsts = [order.index(key) for key in wanted]
        words += ["--launch-skip", str(min(firsts)), "--launch-count", str(max(firsts) - min(firsts) + 1)]
    return shlex.join([*words, "-o", "more", "./app"])


def document(frames: Counted, *, title: str = "", notes: bool = True) -> Document:
    """The coverage, what operators need, move and attain, then the roofline of the kernels at the run's times."""
    made = roofline_text.document(frames, title=title, notes=notes)
    blocks: list[Any] = _needs_table(frames)
    for block in made.blocks:
        if isinstance(block, Table) and block.name == "kernels":  # shares are of the run
            known = [replace(one, group=(), label=_LABELS.get(one.name, one.label), long="") for one in block.columns]
            block = replace(block, columns=known)
        blocks.append(block)
    return replace(
        made,
        blocks=blocks,
        notes=[*made.notes, *map(Note, frames.notes)],
    )


def _needs_table(frames: Counted, top: int = 0) -> list[Table]:
    rows = [row for row in records(frames.need_columns) if row["counted"] > 0 and (row["bytes"] > 0 or row["moved"] >= 0)]
    about = "What operators need by their shapes, what was counted of their kernels, and what that is at the run's time:"
    table = Table("needs", NEEDS, rows[: top or None], _SHOWN, "Operators", about=about, weight="share")
    return [table] if rows else []


def _waste(needs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Operators that move more than they need, those first of which most could go."""
    found = [row for row in needs if row["waste"] > _WASTE and row["share"] > _WORTH]
    for row in found[:_TOLD]:
        bytes_, moved = (format_value(row[name], "byte", 3) for name in ("bytes", "moved"))
        name = clean(f"{row['operator'] or 'work without an operator'} {row['shapes']}")
        yield (
            f"{name}: needs {bytes_}, moves {moved} ({row['waste']:.3g}x) at {percent(row['bandwidth_fraction'])} of the DRAM "
            f"roof, {percent(row['share'])} of the kernels' time."
        )
