"""`source_roofline()`: reports in, frames of instructions, lines, loops and functions out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ncu_roofline.analyses.source import columns
from ncu_roofline.analyses.source.code import Cubins, Disassemble
from ncu_roofline.analyses.source.counts import Counts, counted
from ncu_roofline.analyses.source.frames import SourceRoofline
from ncu_roofline.analyses.source.launch_frames import LaunchFrames
from ncu_roofline.analyses.source.performance import launch_roofs
from ncu_roofline.analyses.source.source_texts import SourceTexts
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.texts import listed
from ncu_roofline.chips import load_spec
from ncu_roofline.chips.code_limits import ALL_INSTRUCTIONS, INSTRUCTIONS
from ncu_roofline.formats.ceilings import Ceilings
from ncu_roofline.formats.inputs import as_inputs
from ncu_roofline.formats.report import Report
from ncu_roofline.formats.sectionfile import parse_section
from ncu_roofline.model.explanations import SOURCE_COUNTERS, command_of
from ncu_roofline.model.measurements import Measurements
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
from ncu_roofline.model.verdicts import bounds_of
from ncu_roofline.model.work import MIXED

_WHAT = "Cannot show the source of"
_SECTION = "SourceCounters"
_NAMED = 8  # launches that are named where others were chosen


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
    whole = disassemble and _checked(disassemble)
    options = _Options(ceilings_of(ceilings), select or Selection(), top, clock, whole, only_unlined, tuple(folders))
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


def _checked(disassemble: Disassemble) -> Disassemble:
    """One that raises TypeError where it gives nothing."""

    def texts(*asked: Any) -> Any:
        if (found := disassemble(*asked)) is None:
            raise TypeError("disassemble must give the texts of instructions by offset per function, not None")
        return found

    return texts


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
        drawn = roofline(mine, options.ceilings, clock=options.clock, select=_everything())
        limits = launch_roofs(mine, Roofs(mine, options.ceilings, options.clock), load_spec(), _bounds(drawn))
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
        others = {int(mine.launch[row]) for row, one in enumerate(made) if one.performance_of == columns.FLOPS}
    tables = {name: of_columns(_stacked([part[name] for part in parts]), declared) for name, declared in columns.TABLES.items()}
    notes = tuple(dict.fromkeys(note for one in made for note in one.notes))
    return SourceRoofline(
        **{_field(name): table for name, table in tables.items()},
        roofline=_without(drawn, others),
        texts=dict(sources.found),
        notes=notes,
    )


def _everything() -> Selection:
    """Precisions that are drawn on request only, too: which of them performance counts is decided by the code."""
    return Selection(precisions=(*(one.id for one in load_spec().precisions), MIXED))


def _bounds(drawn: Roofline) -> list[str]:
    """For each launch the id of what limits it by its verdict, "" if nothing does."""
    kernels = drawn.kernel_columns
    return bounds_of(zip(kernels["verdict"].tolist(), kernels["limit"].tolist(), strict=True))


def _without(drawn: Roofline, launches: Set[int]) -> Roofline:
    """Without INT32 in these launches, whose performance counts other work."""
    points = drawn.point_columns
    pairs = zip(points["precision"].tolist(), points["launch"].tolist(), strict=True)
    kept = np.array([precision != columns.INT32 or launch not in launches for precision, launch in pairs], dtype=bool)
    return replace(drawn, point_columns={name: values[kept] for name, values in points.items()}, asked=())


def _not_counted(report: Report, m: Measurements, options: _Options) -> NotCountedError:
    """What there is instead of the counts that were asked for."""
    positions = options.select.positions(m).tolist()
    some = options.select != Selection() and len(positions) < len(m)
    reason = f"{'none of the launches chosen has' if some else 'it has no'} counts by instruction"
    others = _chosen(report, m, replace(options, select=Selection(), top=_NAMED)) if some else ()
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


def _stacked(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {name: [value for part in parts for value in _listed(part[name])] for name in parts[0]}


def _listed(values: Any) -> list[Any]:
    result: list[Any] = values.tolist() if isinstance(values, np.ndarray) else values
    return result


def _field(table: str) -> str:
    """The field of `SourceRoofline` that holds a table."""
    return f"{table.removesuffix('s')}_columns"
