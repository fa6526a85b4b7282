"""`source_roofline()`: reports in, frames of instructions, lines, loops and functions out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from ntpath import basename
from typing import Any, NamedTuple

import numpy as np

from ncu_roofline.analyses.hierarchical.kernels import leading
from ncu_roofline.analyses.source import code, frames
from ncu_roofline.analyses.source.code import Disassemble
from ncu_roofline.analyses.source.findings import findings
from ncu_roofline.analyses.source.frames import SourceRoofline, field_of
from ncu_roofline.analyses.source.loops import Loops
from ncu_roofline.analyses.source.totals import LaunchRoofs, Totals, launch_roofs
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.texts import clean, listed, shorten
from ncu_roofline.chips import load_spec
from ncu_roofline.chips.code_limits import ALL_INSTRUCTIONS, INSTRUCTIONS
from ncu_roofline.chips.findings import Called, about_of
from ncu_roofline.chips.verdict import LATENCY, as_percent
from ncu_roofline.formats.ceilings import Ceilings
from ncu_roofline.formats.inputs import as_inputs
from ncu_roofline.formats.report import Kernel, Report
from ncu_roofline.model.explanations import SOURCE_COUNTERS, command_of
from ncu_roofline.model.kernels import bounds_of
from ncu_roofline.model.measurements import Measurements, as_float
from ncu_roofline.model.opcodes import THREADS, WARPS
from ncu_roofline.model.roofline import (
    CeilingsFile,
    Roofline,
    Source,
    ceilings_of,
    check_ceilings,
    closing_input,
    measurements_of,
    of_columns,
    roofline,
)
from ncu_roofline.model.roofs import Roofs
from ncu_roofline.model.selection import Selection, kernel_keys
from ncu_roofline.model.work import MIXED

_WHAT = "Cannot show the source of"
_SECTION = b"\x0eSourceCounters"  # as a serialized section has its identifier
_OTHERS = 8  # launches that are named where others were chosen
_ODD = (
    "left out, as some of their values can be no counts or have no address, or they don't add up to what the metric itself says"
)
_LANES = "lanes are those whose predicate is true: the report does not tell which are active"

_WORDS = {
    "excess": "uncoalesced accesses",
    "tensor-feed": "uncoalesced loads for tensor instructions",
    "gaps": "accesses by few lanes",
    "spill": "local memory",
    "bank-conflict": "bank conflicts",
    "divergence": "inactive lanes",
    "stall": "waiting warps",
    "called-library": "slow paths of the compiler's library",
    "unfused": "multiplications and additions apart",
    "fp64-by-accident": "FP64 among FP32",
    "conversion": "slow conversions",
    "integer": "integer arithmetic",
    "address": "address arithmetic",
}
_SLOW = ("called-library", "divergence", "unfused", "fp64-by-accident", "conversion", "integer", "address")
# By the beginning of a verdict: findings that are about what limits a kernel.
_ABOUT = {
    "memory": ("spill", "excess", "tensor-feed", "gaps", "bank-conflict", "called-library"),
    "compute": _SLOW,
    LATENCY: ("stall", *_SLOW),
}
_PLACE = re.compile(r"\S+:\d+(?=[ :])")  # what a message begins with: of a library's line the one that uses it


class NotCountedError(RooflineError):
    """A report, or the launches chosen of it, without counts by instruction."""


class _Options(NamedTuple):
    ceilings: Sequence[Ceilings]
    select: Selection
    top: int
    clock: str
    disassemble: Disassemble | None
    only_unlined: bool
    folders: Sequence[str]


def source_roofline(
    report: Source | Sequence[Source],
    ceilings: CeilingsFile | Sequence[CeilingsFile] | None = None,
    *,
    select: Selection | None = None,
    top: int = 1,
    clock: str = "profiled",
    disassemble: Disassemble | None = None,
    only_unlined: bool = False,
    folders: Sequence[str] = (),
    label: str = "",
) -> SourceRoofline:
    """What the instructions, lines, loops and functions of the hottest kernels did.

    ``top``: of each report so many kernels, by run time, each by its longest launch that has counts by instruction; launches
    that ``select`` names by position are all taken.  ``disassemble`` gives for each of several functions
    the text of instructions by offset, from the code of each and the compute capability; with ``only_unlined`` it does so for
    launches without source lines, where instructions stand in the place of lines, and for no others.  ``folders`` is where
    source files are looked for that the reports don't bring along.
    ``ceilings``, ``clock`` and ``label`` as of `roofline` and `measurements_of`.
    Raises RooflineError for files that can't be read, that aren't reports, and (NotCountedError) without counts by instruction,
    TypeError for what is no report and for a ``disassemble`` that gives None, ValueError for a ``top`` below 1.

    >>> found = source_roofline("smooth-made-up.ncu-repz")
    >>> found.loops[["first_line", "last_line", "trips"]].iloc[1].tolist()
    [15.0, 16.0, 64.0]
    """
    if top < 1:
        raise ValueError(f"top must be 1 or more, not {top!r}")
    options = _Options(ceilings_of(ceilings), select or Selection(), top, clock, disassemble, only_unlined, tuple(folders))
    parts = []
    for one in as_inputs(report):
        with nullcontext(one) if isinstance(one, Report) else closing_input(one) as opened:
            if not isinstance(opened, Report):
                reason = "it holds no code and no counts by instruction"
                raise RooflineError("Cannot use", str(one), reason, "Give the report (.ncu-rep) itself.")
            parts.append(_of_report(opened, label if opened is one else label or str(one), options))
    return SourceRoofline.joined(parts)


def _of_report(report: Report, label: str, options: _Options) -> SourceRoofline:
    m = measurements_of(report, label=label)
    check_ceilings(options.ceilings, zip(m.device, m.capability, strict=True))
    chosen = dict(_chosen(report, m, options))
    if not chosen:
        raise _not_counted(report, m, options)
    m = m.take(np.array(sorted(chosen), dtype=np.int64))
    texts, count = dict[str, tuple[str, ...]](), 0
    made: list[LaunchFrames] = []
    with np.errstate(all="ignore"):
        # Precisions that are drawn on request only, too: which of them performance counts is decided by the code.
        spec = load_spec()
        everything = Selection(precisions=(*(one.id for one in spec.precisions), MIXED))
        drawn = roofline(m, options.ceilings, clock=options.clock, select=everything)
        bounds = bounds_of(zip(*(drawn.kernel_columns[name].tolist() for name in ("verdict", "limit")), strict=True))
        limits = launch_roofs(m, Roofs(m, options.ceilings, options.clock), spec, bounds)
        for row, (_, counts) in enumerate(sorted(chosen.items())):
            kernel = report.kernels[int(m.launch[row])]
            made.append(LaunchFrames(kernel, counts, limits[row], m, row))
            code.add_texts(texts, kernel, made[-1].files(), options.folders)
            count += len(made[-1].found.address)
            if count > ALL_INSTRUCTIONS:
                what = f"the first {len(made)} of {len(chosen)} launches have {count:,} instructions"
                raise _too_much(report, what, ALL_INSTRUCTIONS)
        names = drawn.kernel_columns["kernel"].tolist()
        parts = [launch.tables(name, texts, options) for launch, name in zip(made, names, strict=True)]
    # INT32 is left out of launches whose performance counts other work.
    others = {int(m.launch[row]) for row, launch in enumerate(made) if launch.performance_of == frames.FLOPS}
    points = drawn.point_columns
    pairs = zip(points["precision"].tolist(), points["launch"].tolist(), strict=True)
    kept = np.array([precision != frames.INT32 or launch not in others for precision, launch in pairs], dtype=bool)
    tables = {}
    for name, declared in frames.TABLES.items():
        each = {one.name: [part[name][one.name] for part in parts] for one in declared}
        values = {
            column: [value for one in some for value in (one.tolist() if isinstance(one, np.ndarray) else one)]
            for column, some in each.items()
        }
        tables[field_of(name)] = of_columns(values, declared)
    return SourceRoofline(
        **tables,
        roofline=replace(drawn, point_columns={name: values[kept] for name, values in points.items()}, asked=()),
        texts={name: lines for name, lines in texts.items() if lines},
        notes=tuple(dict.fromkeys(note for launch in made for note in launch.notes)),
    )


def _chosen(report: Report, m: Measurements, options: _Options) -> Iterator[tuple[int, code.Counts]]:
    """Positions of the launches in ``m`` that are to be shown, with their counts."""
    positions = options.select.positions(m).tolist()
    keys, seconds = kernel_keys(m), np.nan_to_num(m.seconds)
    times: dict[tuple[str, str, str], float] = {}
    for row in positions:
        times[keys[row]] = times.get(keys[row], 0.0) + float(seconds[row])
    seen: set[tuple[str, str, str]] = set()
    for row in sorted(positions, key=lambda row: (-times[keys[row]], keys[row], -seconds[row])):
        if not options.select.launch and (len(seen) >= options.top or keys[row] in seen):
            continue
        metrics = report.kernels[int(m.launch[row])].metrics
        counts = code.counts_of(metrics) if code.counted(metrics.names()) else None
        if counts is None or not len(counts.addresses):
            continue
        if len(counts.addresses) > INSTRUCTIONS:
            what = f"launch {int(m.launch[row])} has counts at {len(counts.addresses):,} addresses"
            raise _too_much(report, what, INSTRUCTIONS)
        seen.add(keys[row])
        yield row, counts


def _too_much(report: Report, what: str, most: int) -> RooflineError:
    reason = f"{what}, and no more than {most:,} are shown at once"
    return RooflineError(_WHAT, report.path, reason, "Choose fewer with --top, --launch or --kernel.")


def _not_counted(report: Report, m: Measurements, options: _Options) -> NotCountedError:
    """What there is instead of the counts that were asked for."""
    positions = options.select.positions(m).tolist()
    some = options.select != Selection() and len(positions) < len(m)
    reason = f"{'none of the launches chosen has' if some else 'it has no'} counts by instruction"
    others = _chosen(report, m, options._replace(select=Selection(), top=_OTHERS)) if some else ()
    if having := sorted(int(m.launch[row]) for row, _ in others):
        numbers = ",".join(map(str, having))
        have = f"launch {numbers} has" if len(having) == 1 else f"launches {numbers} have"
        return NotCountedError(_WHAT, report.path, f"{reason}; {have}", f"Choose with --launch {numbers}.")
    command = command_of(report, (), "", collect=SOURCE_COUNTERS)
    for metrics in (report.kernels[int(m.launch[row])].metrics for row in positions):
        if code.counted(metrics.names()) and (odd := code.counts_of(metrics).odd):
            what = "negative, too large, no numbers, not what the metric itself says they add up to, or without address"
            reason = f"values of {listed(odd, 3)} can be no counts: {what}"
            return NotCountedError(_WHAT, report.path, reason, f"Profile again, with `{command}`.")
    next_step = f"Collect them with `{command}`; code built by `nvcc -lineinfo` has lines."
    if any(_SECTION in section for row in positions for section in report.kernels[int(m.launch[row])].sections):
        reason += ", although it was collected with section SourceCounters: ncu got none of its metrics"
        next_step = f"Collect it again and see what ncu prints: `{command}`."
    return NotCountedError(_WHAT, report.path, reason, next_step)


class LaunchFrames:
    """One launch: its instructions and loops, and the frames made of them.  ``row`` is its position in ``m``."""

    def __init__(self, kernel: Kernel, counts: code.Counts, roofs: LaunchRoofs, m: Measurements, row: int) -> None:
        self._kernel, values = kernel, kernel.metrics
        self._about = about_of(m.capability[row], lambda name: as_float(values.get(name)), float(m.seconds[row]), roofs.bound)
        machine = code.LaunchCode(kernel, counts.addresses)
        metrics = [metric for metric in (WARPS, THREADS) if values.has_name(metric)]
        pairs = (pair for metric in metrics for pair in values.instances(metric))
        executed = [opcode for opcode, count in pairs if isinstance(opcode, str) and count]
        work_of = code.works_of(m.capability[row], executed, constants=roofs.constants)
        self.found = found = code.Instructions(machine, counts, work_of)
        self._totals = Totals(found, values, roofs)
        self._loops, whole = Loops(found), found.whole
        self._columns, self._loop_columns = found.columns(), self._loops.columns()
        self._stalls = found.stall_columns(self._columns)
        self.notes = [*machine.notes, *self._totals.notes]
        self.notes += [f"{_ODD}: {listed(counts.odd, 3)}"] if counts.odd else []
        self.notes += [_LANES] if found.lanes == "threads" and whole["threads"] + whole["executed"] > 0 else []
        self.performance_of = roofs.performance_of(whole)
        self._where = {name: getattr(m, name)[row] for name in ("report", "launch", "device")} | {
            "performance_of": self.performance_of,
            "unit": "op" if self.performance_of == frames.INTEGERS else roofs.unit,
        }

    def files(self) -> Iterator[str]:
        """The source files of its lines."""
        chains = {id(places): places for places in self.found.places}
        return (place.file for places in chains.values() for place in places)

    def findings(self) -> dict[str, list[Any]]:
        """The frame of findings, but for where they are from."""
        found = self.found
        called = [
            Called(found.owners[owner], np.flatnonzero(found.owner == owner), sites)
            for owner, sites in self._loops.called.items()
        ]
        return findings(self._columns | dict(found.counts), self._stalls, self._loop_columns, self._about, called)

    def tables(self, name: str, texts: Mapping[str, Sequence[str]], options: _Options) -> dict[str, dict[str, Any]]:
        """All frames by name, of a launch of the kernel of this ``name``."""
        found, machine = self.found, self.found.code
        lines, loops = found.lines(texts), self._loops.summed(self._loop_columns)
        whole = machine.texts(None if options.only_unlined and code.has_lines(lines) else options.disassemble)
        sass = [some.get(one.offset, "") for body, some in zip(machine.bodies, whole, strict=True) for one in body.instructions]
        sass += [""] * (len(found.address) - len(sass))
        own = {
            "instructions": self._columns | {"sass": sass} | found.shown(found.counts),
            "lines": lines,
            "outer_lines": found.lines(texts, outermost=True),
            "loops": loops | self._totals.performance(loops, self.performance_of),
            "functions": found.functions(self._kernel.mangled_name),
            "stalls": self._stalls,
            "totals": {column: [row[column] for row in self._totals.rows] for column in self._totals.rows[0]},
            "findings": self.findings(),
        }
        where, tables = self._where | {"kernel": name}, {}
        for table, values in own.items():
            size = len(next(iter(values.values())))
            names = [one.name for one in frames.TABLES[table]]
            tables[table] = {one: values[one] if one in values else [where[one]] * size for one in names}
        return tables


def spots(roofline: Roofline, m: Measurements, paths: Mapping[str, str]) -> dict[tuple[str, str], str]:
    """By GPU and kernel the place that matters most, of the kernel that comes first on each GPU, if its code was counted.

    ``roofline`` is that of ``m``; ``paths``: where the reports with counts by instruction lie, by their names in ``m``.
    """
    found: dict[tuple[str, str], str] = {}
    for kernel, launch in leading(roofline, m, paths):
        with suppress(RooflineError):  # of code that can't be read there is nothing to say
            if text := _spot(kernel.verdict, kernel.limit, launch, paths[launch.report[0]]):
                found[kernel.device, kernel.kernel] = text
    return found


def _spot(verdict: str, limit: str, launch: Measurements, path: str) -> str:
    """The finding on a launch that touches most of those that are about what limits the kernel, in a few words."""
    with closing_input(path) as report:
        if not isinstance(report, Report):
            return ""
        kernel = report.kernels[int(launch.launch[0])]
        counts = code.counts_of(kernel.metrics)
        if not 0 < len(counts.addresses) <= INSTRUCTIONS:
            return ""
        roofs = launch_roofs(launch, Roofs(launch, (), "profiled"), load_spec(), bounds_of([(verdict, limit)]))[0]
        with np.errstate(all="ignore"):
            table = LaunchFrames(kernel, counts, roofs, launch, 0).findings()
    about = _ABOUT.get(verdict.partition(":")[0], ())
    columns = ("finding", "file", "line", "cause", "share", "of", "message")
    for finding, file, line, cause, share, of, message in zip(*(table[name] for name in columns), strict=True):
        if finding in about and line > 0:
            named = _PLACE.match(clean(message))
            place = named[0] if named else f"{shorten(clean(basename(file)))}:{line}"
            return f"{place}: {cause or _WORDS[finding]}, {as_percent(share)} of {of}"
    return ""
