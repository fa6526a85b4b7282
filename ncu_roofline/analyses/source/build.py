"""`source_roofline()`: reports in, frames of instructions, lines, loops, functions and findings out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ncu_roofline.analyses.source import code, frames
from ncu_roofline.analyses.source.code import Disassemble
from ncu_roofline.analyses.source.findings import findings_of
from ncu_roofline.analyses.source.frames import FINDINGS, TOTALS, WHERE, SourceRoofline, field_of
from ncu_roofline.analyses.source.totals import Totals, launch_roofs
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.texts import listed
from ncu_roofline.chips import load_spec
from ncu_roofline.chips.sass import INSTRUCTIONS
from ncu_roofline.formats.ceilings import Ceilings
from ncu_roofline.formats.inputs import as_inputs
from ncu_roofline.formats.inputs.text import find_source, last_part, lines_of_source, most_alike
from ncu_roofline.formats.report import Kernel, Report
from ncu_roofline.model import Measurements, Selection, closing_input, measurements_of, roofline
from ncu_roofline.model.explanations import SOURCE_COUNTERS, command_of
from ncu_roofline.model.kernels import bounds_of
from ncu_roofline.model.points import Roofs
from ncu_roofline.model.roofline import CeilingsFile, Source, Table, ceilings_of, check_ceilings, of_columns
from ncu_roofline.model.selection import kernel_keys
from ncu_roofline.model.work import MIXED
from ncu_roofline.rendering.document import Column

_WHAT = "Cannot show the source of"
_SECTION = b"\x0eSourceCounters"  # as a serialized section has its identifier
_OTHERS = 8  # launches that are named where others were chosen
_ODD = "left out, as some of their values are no counts, have no address, or do not add up to the metric's own value"
_LANES = "lanes are those whose predicate is true: the report does not count active ones"
_MOST_FILES, _MOST_LETTERS = 1_000, 64_000_000
"""Files of one report, and letters of all: a template library brings some hundred, a hostile report as many as it has lines."""


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
    chosen = dict(_chosen(report, m, options.select, options.top))
    if not chosen:
        raise _not_counted(report, m, options.select)
    m = m.take(np.array(sorted(chosen), dtype=np.int64))
    texts, parts, notes, others = dict[str, tuple[str, ...]](), list[dict[str, Table]](), list[str](), set[int]()
    with np.errstate(all="ignore"):
        # Precisions that are drawn on request only, too: which of them performance counts is decided by the code.
        everything = Selection(precisions=(*(one.id for one in load_spec().precisions), MIXED))
        drawn = roofline(m, options.ceilings, clock=options.clock, select=everything)
        bounds = bounds_of(zip(*(drawn.kernel_columns[name].tolist() for name in ("verdict", "limit")), strict=True))
        limits = launch_roofs(m, Roofs(m, options.ceilings, options.clock), bounds)
        for row, (_, counts) in enumerate(sorted(chosen.items())):
            kernel, roofs = report.kernels[int(m.launch[row])], limits[row]
            found = code.Instructions(kernel, counts, m.capability[row], constants=roofs.constants)
            loops, totals = code.Loops(found), Totals(found, kernel.metrics, roofs)
            performance_of = roofs.performance_of(found.whole)
            if performance_of == code.FLOPS:
                others.add(int(m.launch[row]))
            _add_texts(texts, kernel, found, options.folders)
            lines, summed = found.lines(texts), loops.summed()
            sass = found.texts(None if options.only_unlined and code.has_lines(lines) else options.disassemble)
            own: dict[str, Mapping[str, Any]] = {
                "instructions": found.columns | {"sass": sass} | found.shown(found.counts),
                "lines": lines,
                "outer_lines": found.lines(texts, outermost=True),
                "loops": summed | totals.performance(summed, performance_of),
                "functions": found.functions(kernel.mangled_name),
                "stalls": found.stall_columns(),
                "totals": _by_column(totals.rows, TOTALS),
                "findings": _by_column(findings_of(kernel, found, loops, m, roofs.bound, row), FINDINGS),
            }
            where = {name: getattr(m, name)[row] for name in ("report", "launch", "device")}
            where |= {"kernel": drawn.kernel_columns["kernel"][row], "performance_of": performance_of}
            where["unit"] = "op" if performance_of == code.INTEGERS else roofs.unit
            part = {}
            for name, values in own.items():
                same = {column: [value] * len(next(iter(values.values()))) for column, value in where.items()}
                part[name] = of_columns(same | dict(values), frames.TABLES[name])
            parts.append(part)
            notes += [*found.notes, *totals.notes, *([f"{_ODD}: {listed(counts.odd, 3)}"] if counts.odd else [])]
            notes += [_LANES] if found.lanes == "threads" and found.whole["threads"] + found.whole["executed"] > 0 else []
    # INT32 is left out of launches whose performance counts other work.
    points = drawn.point_columns
    pairs = zip(points["precision"].tolist(), points["launch"].tolist(), strict=True)
    kept = np.array([precision != code.INT32 or launch not in others for precision, launch in pairs], dtype=bool)
    return SourceRoofline(
        **{
            field_of(name): {column: np.concatenate([part[name][column] for part in parts]) for column in values}
            for name, values in parts[0].items()
        },
        roofline=replace(drawn, point_columns={name: values[kept] for name, values in points.items()}, asked=()),
        texts={name: lines for name, lines in texts.items() if lines},
        notes=tuple(dict.fromkeys(notes)),
    )


def _by_column(rows: Sequence[Mapping[str, Any]], declared: Sequence[Column]) -> dict[str, list[Any]]:
    return {one.name: [row[one.name] for row in rows] for one in declared if one not in WHERE}


def _chosen(report: Report, m: Measurements, select: Selection, top: int) -> Iterator[tuple[int, code.Counts]]:
    """Positions of the launches in ``m`` that are to be shown, with their counts."""
    positions = select.positions(m).tolist()
    keys, seconds = kernel_keys(m), np.nan_to_num(m.seconds)
    times: dict[tuple[str, str, str], float] = {}
    for row in positions:
        times[keys[row]] = times.get(keys[row], 0.0) + float(seconds[row])
    seen: set[tuple[str, str, str]] = set()
    for row in sorted(positions, key=lambda row: (-times[keys[row]], keys[row], -seconds[row])):
        if not select.launch and (len(seen) >= top or keys[row] in seen):
            continue
        metrics = report.kernels[int(m.launch[row])].metrics
        counts = code.counts_of(metrics) if code.counted(metrics.names()) else None
        if counts is None or not len(counts.addresses):
            continue
        if len(counts.addresses) > INSTRUCTIONS:
            what = f"launch {int(m.launch[row])} has counts at {len(counts.addresses):,} addresses"
            reason = f"{what}, and no more than {INSTRUCTIONS:,} are shown"
            raise RooflineError(_WHAT, report.path, reason, "Choose others with --top, --launch or --kernel.")
        seen.add(keys[row])
        yield row, counts


def _not_counted(report: Report, m: Measurements, select: Selection) -> NotCountedError:
    """What there is instead of the counts that were asked for."""
    positions = select.positions(m).tolist()
    some = select != Selection() and len(positions) < len(m)
    reason = f"{'none of the launches chosen has' if some else 'it has no'} counts by instruction"
    others = _chosen(report, m, Selection(), _OTHERS) if some else ()
    if having := sorted(int(m.launch[row]) for row, _ in others):
        numbers = ",".join(map(str, having))
        have = f"launch {numbers} has" if len(having) == 1 else f"launches {numbers} have"
        return NotCountedError(_WHAT, report.path, f"{reason}; {have}", f"Choose with --launch {numbers}.")
    command = command_of(report, (), "", collect=SOURCE_COUNTERS)
    for metrics in (report.kernels[int(m.launch[row])].metrics for row in positions):
        if code.counted(metrics.names()) and (odd := code.counts_of(metrics).odd):
            what = "negative, too large, no numbers, not adding up to the metric's own value, or without address"
            reason = f"values of {listed(odd, 3)} are no counts: {what}"
            return NotCountedError(_WHAT, report.path, reason, f"Profile again, with `{command}`.")
    next_step = f"Collect them with `{command}`; code built by `nvcc -lineinfo` has lines."
    if any(_SECTION in section for row in positions for section in report.kernels[int(m.launch[row])].sections):
        reason += ", although section SourceCounters was requested: ncu collected none of its metrics"
        next_step = f"Collect it again and see what ncu prints: `{command}`."
    return NotCountedError(_WHAT, report.path, reason, next_step)


def _add_texts(
    found: dict[str, tuple[str, ...]], kernel: Kernel, instructions: code.Instructions, folders: Sequence[str]
) -> None:
    """Look for source files that are not ``found`` yet, by the names that line tables give them; () for what is nowhere.

    The report may have imported them for this kernel's module, else they are looked for in the folders.
    """
    imported: dict[str, dict[str, str]] = {}
    for file in kernel.code.files if kernel.code else ():
        imported.setdefault(last_part(file.name), {})[file.name] = file.text
    letters = sum(len(line) for lines in found.values() for line in lines)
    chains = {id(places): places for places in instructions.places}
    for name in dict.fromkeys(place.file for places in chains.values() for place in places):
        if name and name not in found and len(found) < _MOST_FILES and letters <= _MOST_LETTERS:
            alike = imported.get(last_part(name), {})
            best = most_alike(name, alike)
            found[name] = (lines_of_source(alike[best]) if best else find_source(name, folders)) or ()
            letters += sum(map(len, found[name]))
