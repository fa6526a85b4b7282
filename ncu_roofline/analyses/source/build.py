"""`source_roofline()`: reports in, frames of instructions, lines, loops and functions out."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ncu_roofline.analyses.source import columns
from ncu_roofline.analyses.source.code import Cubins, Disassemble, LaunchCode, SourceTexts
from ncu_roofline.analyses.source.counts import Counts, counted
from ncu_roofline.analyses.source.findings import findings
from ncu_roofline.analyses.source.frames import SourceRoofline, field_of
from ncu_roofline.analyses.source.instructions import instructions_of, works_of
from ncu_roofline.analyses.source.loops import Loops, loop_columns
from ncu_roofline.analyses.source.performance import LaunchRoofs, launch_roofs, performance_columns
from ncu_roofline.analyses.source.sums import function_columns, has_lines, line_columns, stall_columns, sum_columns
from ncu_roofline.analyses.source.totals import Totals
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.texts import listed, shorten
from ncu_roofline.chips import load_spec
from ncu_roofline.chips.code_limits import ALL_INSTRUCTIONS, INSTRUCTIONS
from ncu_roofline.chips.findings import Called, about_of
from ncu_roofline.formats.ceilings import Ceilings
from ncu_roofline.formats.inputs import as_inputs
from ncu_roofline.formats.report import Kernel, Report
from ncu_roofline.formats.sectionfile.section import parse_section
from ncu_roofline.model.counters import as_float
from ncu_roofline.model.explanations import SOURCE_COUNTERS, command_of
from ncu_roofline.model.measurements import Measurements
from ncu_roofline.model.opcodes import THREADS, WARPS
from ncu_roofline.model.roofline import (
    CeilingsFile,
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
from ncu_roofline.model.verdicts import bounds_of
from ncu_roofline.model.work import MIXED

_WHAT = "Cannot show the source of"
_SECTION = "SourceCounters"
_OTHERS = 8  # launches that are named where others were chosen
_NAMED = 3  # functions that a note names
_LANES = "lanes are those whose predicate is true: the report does not tell which are active"


class NotCountedError(RooflineError):
    """A report, or the launches chosen of it, without counts by instruction."""


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
        if isinstance(one, Report):
            parts.append(_of_report(one, label, options))
        else:
            with closing_input(one) as opened:
                if not isinstance(opened, Report):
                    reason = "it holds no code and no counts by instruction"
                    raise RooflineError("Cannot use", str(one), reason, "Give the report (.ncu-rep) itself.")
                parts.append(_of_report(opened, label or str(one), options))
    return SourceRoofline.joined(parts)


@dataclass(frozen=True)
class _Options:
    ceilings: Sequence[Ceilings]
    select: Selection
    top: int
    clock: str
    disassemble: Disassemble | None
    only_unlined: bool
    folders: tuple[str, ...]


def _of_report(report: Report, label: str, options: _Options) -> SourceRoofline:
    m = measurements_of(report, label=label)
    check_ceilings(options.ceilings, zip(m.device, m.capability, strict=True))
    chosen = dict(_chosen(report, m, options))
    if not chosen:
        raise _not_counted(report, m, options)
    mine = m.take(np.array(sorted(chosen), dtype=np.int64))
    with np.errstate(all="ignore"):
        # Precisions that are drawn on request only, too: which of them performance counts is decided by the code.
        everything = Selection(precisions=(*(one.id for one in load_spec().precisions), MIXED))
        drawn = roofline(mine, options.ceilings, clock=options.clock, select=everything)
        verdicts = (drawn.kernel_columns[name].tolist() for name in ("verdict", "limit"))
        roofs = Roofs(mine, options.ceilings, options.clock)
        limits = launch_roofs(mine, roofs, load_spec(), bounds_of(zip(*verdicts, strict=True)))
        cubins = Cubins(options.disassemble)
        sources = SourceTexts(options.folders)
        made, count = [], 0
        for row, (_, counts) in enumerate(sorted(chosen.items())):
            kernel = report.kernels[int(mine.launch[row])]
            made.append(LaunchFrames(kernel, counts, limits[row], cubins, sources, mine, row))
            count += len(made[-1].found)
            if count > ALL_INSTRUCTIONS:
                raise _too_much(report, f"the first {len(made)} of {len(chosen)} launches have {count:,} instructions")
        names = drawn.kernel_columns["kernel"]
        parts = [one.tables(str(names[row]), options.only_unlined) for row, one in enumerate(made)]
    # INT32 is left out of launches whose performance counts other work.
    others = {int(mine.launch[row]) for row, one in enumerate(made) if one.performance_of == columns.FLOPS}
    points = drawn.point_columns
    pairs = zip(points["precision"].tolist(), points["launch"].tolist(), strict=True)
    kept = np.array([precision != columns.INT32 or launch not in others for precision, launch in pairs], dtype=bool)
    notes = tuple(dict.fromkeys(note for one in made for note in one.notes))
    return SourceRoofline(
        **{
            field_of(name): of_columns(
                {one.name: [value for part in parts for value in _listed(part[name][one.name])] for one in declared},
                declared,
            )
            for name, declared in columns.TABLES.items()
        },
        roofline=replace(drawn, point_columns={name: values[kept] for name, values in points.items()}, asked=()),
        texts=dict(sources.found),
        notes=notes,
    )


def _listed(values: Any) -> list[Any]:
    listed: list[Any] = values.tolist() if isinstance(values, np.ndarray) else values
    return listed


def _not_counted(report: Report, m: Measurements, options: _Options) -> NotCountedError:
    """What there is instead of the counts that were asked for."""
    positions = options.select.positions(m).tolist()
    some = options.select != Selection() and len(positions) < len(m)
    reason = f"{'none of the launches chosen has' if some else 'it has no'} counts by instruction"
    others = _chosen(report, m, replace(options, select=Selection(), top=_OTHERS)) if some else ()
    if having := sorted(int(m.launch[row]) for row, _ in others):
        numbers = ",".join(map(str, having))
        have = f"launch {numbers} has" if len(having) == 1 else f"launches {numbers} have"
        return NotCountedError(_WHAT, report.path, f"{reason}; {have}", f"Choose with --launch {numbers}.")
    for row in positions:
        metrics = report.kernels[int(m.launch[row])].metrics
        if counted(metrics.names()) and (odd := Counts.of(metrics).odd):
            what = "negative, too large, no numbers, not what the metric itself says they add up to, or without address"
            reason = f"values of {listed(odd, 3)} can be no counts: {what}"
            command = command_of(report, (), "", collect=SOURCE_COUNTERS)
            return NotCountedError(_WHAT, report.path, reason, f"Profile again, with `{command}`.")
    command = f"`{command_of(report, (), '', collect=SOURCE_COUNTERS)}`"
    if any(_SECTION in map(_identifier, report.kernels[int(m.launch[row])].sections) for row in positions):
        reason += f", although it was collected with section {_SECTION}: ncu got none of its metrics"
        return NotCountedError(_WHAT, report.path, reason, f"Collect it again and see what ncu prints: {command}.")
    return NotCountedError(
        _WHAT, report.path, reason, f"Collect them with {command}; code built by `nvcc -lineinfo` has lines."
    )


def _too_much(report: Report, reason: str) -> RooflineError:
    limit = f"no more than {ALL_INSTRUCTIONS:,} are shown at once"
    return RooflineError(_WHAT, report.path, f"{reason}, and {limit}", "Choose fewer with --top, --launch or --kernel.")


def _identifier(section: bytes) -> str:
    try:
        return parse_section(section).identifier
    except ValueError:
        return ""


def _chosen(report: Report, m: Measurements, options: _Options) -> Iterator[tuple[int, Counts]]:
    """Positions of the launches in ``m`` that are to be shown, with their counts."""
    positions = options.select.positions(m).tolist()
    keys, seconds = kernel_keys(m), np.nan_to_num(m.seconds)
    times: dict[tuple[str, str, str], float] = {}
    for row in positions:
        times[keys[row]] = times.get(keys[row], 0.0) + float(seconds[row])
    seen: set[tuple[str, str, str]] = set()
    addresses = 0
    for row in sorted(positions, key=lambda row: (-times[keys[row]], keys[row], -seconds[row])):
        if not options.select.launch and (len(seen) >= options.top or keys[row] in seen):
            continue
        metrics = report.kernels[int(m.launch[row])].metrics
        if counted(metrics.names()):
            counts = Counts.of(metrics)
            if len(counts.addresses) > INSTRUCTIONS:
                where = f"launch {int(m.launch[row])} has counts at {len(counts.addresses):,} addresses"
                raise RooflineError(_WHAT, report.path, f"{where}, more than code has", "Choose another with --launch.")
            addresses += len(counts.addresses)
            if addresses > ALL_INSTRUCTIONS:
                raise _too_much(report, f"the launches chosen have counts at {addresses:,} addresses")
            if len(counts.addresses):
                seen.add(keys[row])
                yield row, counts


class LaunchFrames:
    """One launch: its instructions, and the frames made of them.  ``row`` is its position in ``m``."""

    def __init__(
        self, kernel: Kernel, counts: Counts, roofs: LaunchRoofs, cubins: Cubins, texts: SourceTexts, m: Measurements, row: int
    ) -> None:
        self._kernel, self._roofs, self._texts = kernel, roofs, texts
        values = kernel.metrics
        self._about = about_of(m.capability[row], lambda name: as_float(values.get(name)), float(m.seconds[row]), roofs.bound)
        code = cubins.code(kernel, counts.addresses)
        metrics = [metric for metric in (WARPS, THREADS) if values.has_name(metric)]
        pairs = (pair for metric in metrics for pair in values.instances(metric))
        executed = [opcode for opcode, count in pairs if isinstance(opcode, str) and count]
        works = works_of(m.capability[row], executed, constants=roofs.constants)
        self.found = found = instructions_of(code, counts, works)
        self.totals = Totals(found, values, roofs.counters(), roofs.unit)
        found.whole.update(self.totals.of_all())
        self.loops, whole = Loops(found), found.whole
        lanes = (_LANES,) if found.lanes == "threads" and whole["threads"] + whole["executed"] > 0 else ()
        self.notes = (*code.notes, *_elsewhere(kernel, code, counts), *self.totals.notes(), *counts.notes, *lanes)
        self.performance_of = roofs.performance_of(whole)
        self._where = {
            "report": m.report[row],
            "launch": m.launch[row],
            "device": m.device[row],
            "performance_of": self.performance_of,
            "unit": "op" if self.performance_of == columns.INTEGERS else roofs.unit,
        }
        chains = {id(places): places for places in self.found.places}
        texts.add(kernel, (place.file for places in chains.values() for place in places))

    def findings(self) -> dict[str, list[Any]]:
        """The frame of findings, but for where they are from."""
        found = self.found
        called = [
            Called(found.owners[owner], np.flatnonzero(found.owner == owner), sites)
            for owner, sites in self.loops.called.items()
        ]
        return findings(found.columns | dict(found.counts), stall_columns(found), self.loops.columns(), self._about, called)

    def tables(self, name: str, only_unlined: bool) -> dict[str, dict[str, Any]]:
        """All frames by name; with ``only_unlined`` instructions are whole only where no line can be shown."""
        found = self.found
        lines = line_columns(found, self._texts.found)
        whole = {"sass": [""] * len(found) if only_unlined and has_lines(lines) else found.texts()}
        loops = loop_columns(found, self.loops)
        mine = {
            "instructions": found.columns | whole | sum_columns(found, found.counts, found.waits),
            "lines": lines,
            "outer_lines": line_columns(found, self._texts.found, outermost=True),
            "loops": loops | performance_columns(loops, self._roofs, self.totals, found.whole, self.performance_of),
            "functions": function_columns(found, self._kernel.mangled_name),
            "stalls": stall_columns(found),
            "totals": {column: [row[column] for row in self.totals.rows] for column in self.totals.rows[0]},
            "findings": self.findings(),
        }
        where, tables = self._where | {"kernel": name}, {}
        for table, values in mine.items():
            size, declared = len(next(iter(values.values()))), [one.name for one in columns.TABLES[table]]
            tables[table] = {one: values[one] if one in values else [where[one]] * size for one in declared}
        return tables


def _elsewhere(kernel: Kernel, code: LaunchCode, counts: Counts) -> Iterator[str]:
    """A note on functions that were counted at further addresses: modules are loaded once, so that no report should have it."""
    shown = {body.name: body for body in code.bodies}
    bodies = sorted((body.address, body.end) for body in code.bodies)
    names = []
    for one in kernel.code.functions if kernel.code else ():
        body = shown.get(one.name)
        before = bisect_right(bodies, one.address, key=lambda pair: pair[0]) - 1
        if body and not (before >= 0 and one.address < bodies[before][1]):
            first, last = np.searchsorted(counts.addresses, [one.address, one.address + body.end - body.address])
            names += [shorten(one.name)] if first < last else []
    if names:
        yield f"functions at several addresses are shown at one, counts at others by address: {listed(names, _NAMED)}"
