"""`source_roofline()`: reports in, frames of instructions, lines, loops, functions and findings out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from ntpath import basename
from typing import Any, NamedTuple

import numpy as np

from ncu_roofline.analyses.hierarchical.kernels import leading
from ncu_roofline.analyses.source import code, frames
from ncu_roofline.analyses.source.code import Disassemble
from ncu_roofline.analyses.source.frames import FINDINGS, TOTALS, WHERE, WITHIN, SourceRoofline, field_of
from ncu_roofline.analyses.source.totals import Totals, launch_roofs
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.texts import clean, listed, shorten
from ncu_roofline.chips import findings as rules
from ncu_roofline.chips import load_spec, load_stalls, load_units
from ncu_roofline.chips.opcodes import load_opcode_units
from ncu_roofline.chips.sass import INSTRUCTIONS
from ncu_roofline.chips.source_counters import COUNTED
from ncu_roofline.chips.tables import load_findings
from ncu_roofline.chips.verdict import as_percent
from ncu_roofline.formats.ceilings import Ceilings
from ncu_roofline.formats.inputs import as_inputs
from ncu_roofline.formats.inputs.text import find_source, last_part, lines_of_source, most_alike
from ncu_roofline.formats.report import Kernel, Report, read_report
from ncu_roofline.formats.sass.instructions import SIZE
from ncu_roofline.model.explanations import SOURCE_COUNTERS, command_of
from ncu_roofline.model.kernels import bounds_of
from ncu_roofline.model.measurements import FloatArray, Measurements, as_float
from ncu_roofline.model.points import Roofs
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
from ncu_roofline.model.selection import Selection, kernel_keys
from ncu_roofline.model.work import MIXED, loads_constants
from ncu_roofline.rendering.document import Column

_WHAT = "Cannot show the source of"
_SECTION = b"\x0eSourceCounters"  # as a serialized section has its identifier
_OTHERS = 8  # launches that are named where others were chosen
_ODD = "left out, as some of their values are no counts, have no address, or do not add up to the metric's own value"
_LANES = "lanes are those whose predicate is true: the report does not count active ones"
_MOST_FILES, _MOST_LETTERS = 1_000, 64_000_000
"""Files of one report, and letters of all: a template library brings some hundred, a hostile report as many as it has lines."""
_WORDS = {
    "excess": "uncoalesced accesses",
    "tensor-feed": "uncoalesced loads for tensor instructions",
    "gaps": "partly used sectors",
    "spill": "local memory",
    "bank-conflict": "bank conflicts",
    "divergence": "inactive lanes",
    "stall": "warp stalls",
    "called-library": "slow paths of the compiler's library",
    "unfused": "unfused multiplies and adds",
    "fp64-by-accident": "FP64 in FP32 code",
    "conversion": "slow conversions",
    "integer": "integer arithmetic",
    "address": "address arithmetic",
}
_PLACE = re.compile(r"\S+:\d+(?=[ :])")  # what a message begins with: of a library's line the one that uses it
_CALLS = 3  # places where a line is inlined that are named
_MOST = 2.0**80  # of a count: 64 bits, times bytes or operations
_INSTRUCTION = ("function", "offset", "opcode", "kind", "file", "line", "inlined", "block", "loop")
_LOOP = ("loop", "file", "first_line", "last_line", "header", "end", "parent")
_WORK = {"": "work", "fp32": "work_fp32", "fp64": "work_fp64"}
_LIBRARY = re.compile(r"__cuda_sm\d+x?_|__internal_|__nv_|slowpath")


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
    texts, parts, notes, others = dict[str, tuple[str, ...]](), list[dict[str, Any]](), list[str](), set[int]()
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
            if performance_of == frames.FLOPS:
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
                "findings": _by_column(_findings_of(kernel, found, loops, m, roofs.bound, row), FINDINGS),
            }
            where = {name: getattr(m, name)[row] for name in ("report", "launch", "device")}
            where |= {"kernel": drawn.kernel_columns["kernel"][row], "performance_of": performance_of}
            where["unit"] = "op" if performance_of == frames.INTEGERS else roofs.unit
            sizes = {name: len(next(iter(values.values()))) for name, values in own.items()}
            parts.append({name: {one: [where[one]] * sizes[name] for one in where} | dict(own[name]) for name in own})
            notes += [*found.notes, *totals.notes, *([f"{_ODD}: {listed(counts.odd, 3)}"] if counts.odd else [])]
            notes += [_LANES] if found.lanes == "threads" and found.whole["threads"] + found.whole["executed"] > 0 else []
    tables = {}
    for name, declared in frames.TABLES.items():
        values = {one.name: [value for part in parts for value in _listed(part[name][one.name])] for one in declared}
        tables[field_of(name)] = of_columns(values, declared)
    # INT32 is left out of launches whose performance counts other work.
    points = drawn.point_columns
    pairs = zip(points["precision"].tolist(), points["launch"].tolist(), strict=True)
    kept = np.array([precision != frames.INT32 or launch not in others for precision, launch in pairs], dtype=bool)
    return SourceRoofline(
        **tables,
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


def _findings_of(
    kernel: Kernel, found: code.Instructions, loops: code.Loops, m: Measurements, bound: str, row: int
) -> list[dict[str, Any]]:
    """The findings of the launch ``row`` of ``m``, which has this code; ``bound`` is what limits it, as of `LaunchRoofs`."""
    metrics = kernel.metrics
    about = rules.about_of(m.capability[row], lambda name: as_float(metrics.get(name)), float(m.seconds[row]), bound)
    named = loops.called.items()
    called = [rules.Called(found.owners[owner], np.flatnonzero(found.owner == owner), sites) for owner, sites in named]
    samples = {reason: _amounts(np.where(found.body < 0, 0.0, values)) for reason, (values, _) in found.stalls.items()}
    return findings(found.columns | found.counts, samples, loops.columns, about, called)


def spots(roofline: Roofline, m: Measurements, paths: Mapping[str, str]) -> dict[tuple[str, str], str]:
    """By GPU and kernel the place that matters most, of the kernel that comes first on each GPU, if its code was counted.

    It is, in a few words, the finding that touches most of those that are about what limits the kernel.  ``roofline`` is that
    of ``m``; ``paths``: where the reports with counts by instruction lie, by their names in ``m``.
    """
    places: dict[tuple[str, str], str] = {}
    for first, launch in leading(roofline, m, paths):
        with suppress(RooflineError), read_report(paths[launch.report[0]]) as report:  # of damaged code there is nothing to say
            kernel = report.kernels[int(launch.launch[0])]
            counts = code.counts_of(kernel.metrics)
            if not 0 < len(counts.addresses) <= INSTRUCTIONS:
                continue
            (bound,) = bounds_of([(first.verdict, first.limit)])
            found = code.Instructions(kernel, counts, launch.capability[0], constants=bool(loads_constants(launch)[0]))
            with np.errstate(all="ignore"):
                every = _findings_of(kernel, found, code.Loops(found), launch, bound, 0)
            told, limits = load_findings().kinds, {first.verdict.partition(":")[0], bound}
            about = (one for one in every if limits.intersection(told[one["finding"]].limits) and one["line"] > 0)
            if one := next(about, None):
                named = _PLACE.match(clean(one["message"]))
                place = named[0] if named else f"{_file(one['file'])}:{one['line']}"
                words = one["cause"] or _WORDS.get(one["finding"], told[one["finding"]].title)
                places[first.device, first.kernel] = f"{place}: {words}, {as_percent(one['share'])} of {one['of']}"
    return places


def findings(
    instructions: Mapping[str, Any],
    samples: Mapping[str, Mapping[int, float]],
    loops: Mapping[str, Any],
    about: rules.About,
    called: Sequence[rules.Called] = (),
) -> list[dict[str, Any]]:
    """The findings of one launch, those that touch most first: rows of `frames.FINDINGS` but for where they are from.

    ``instructions`` and ``loops`` are columns of its frames of those names; ``samples`` by stall reason and row of the
    instructions; ``called``: functions that are called.
    """
    own = {name: _listed(instructions[name]) for name in (*_INSTRUCTION, *COUNTED, *_WORK.values())}
    if not own["offset"]:
        return []
    counts: dict[str, dict[int, float]] = {}
    for name, (_, worth) in COUNTED.items():
        values = np.asarray(own[name], dtype=np.float64)
        if np.all((values >= 0) & (values <= _MOST)):  # counts that can't be are unknown, NaN among them
            counts[name] = _amounts(values / worth)
    opcodes: dict[str, float] = {}
    for row, times in counts.get("executed", {}).items():
        opcodes[own["opcode"][row]] = opcodes.get(own["opcode"][row], 0.0) + times
    made = _code(own, {name: _listed(loops[name]) for name in _LOOP}, about.capability)
    launch = rules.Launch(
        counts=counts,
        work=lambda: {kind: sum(own[name]) for kind, name in _WORK.items()},
        code=lambda: made,
        opcodes=lambda: opcodes,
        sampled={reason: sum(each.values()) for reason, each in samples.items()},
        samples=samples.__getitem__,
        stalls=load_stalls(),
        told=load_findings(),
        about=about,
        begin=None,
        first=0 if own["function"][0] else None,
    )
    library = [one._replace(name=shorten(clean(one.name))) for one in called if _LIBRARY.search(one.name)]
    table = []
    for one in sorted(rules.findings(launch, library), key=lambda one: -one.share):
        at = {name: own[name][one.site.rows[0]] for name in ("file", "line", "function", "offset", "loop")}
        message = " ".join(filter(None, (f"{one.site.place}:" if one.site.place else "", one.said, one.more)))
        about_it = {"finding": one.kind, "share": one.share, "of": one.of, "cause": one.cause}
        table.append(at | about_it | {"message": message, "advice": one.advice})
    return table


def _amounts(values: FloatArray) -> dict[int, float]:
    """Numbers by row, without zeros."""
    some = np.flatnonzero(values)
    return dict(zip(some.tolist(), values[some].tolist(), strict=True))


def _listed(values: Iterable[Any]) -> list[Any]:
    return values.tolist() if isinstance(values, np.ndarray) else list(values)


def _code(own: Mapping[str, list[Any]], loops: Mapping[str, list[Any]], capability: tuple[int, int]) -> Any:
    """What instructions are, as `chips.findings` wants it."""
    files = list(zip(own["file"], own["line"], strict=True))
    apart = [("", function, loop) for function, loop in zip(own["function"], own["loop"], strict=True)]
    blocks = list(zip(own["function"], own["block"], strict=True))
    inside = [(function, loop if loop >= 0 else None) if function else None for _, function, loop in apart]
    units, labels = load_opcode_units(), {unit.id: unit.label for unit in load_units().units}
    names = [opcode.partition(".")[0] for opcode in own["opcode"]]
    parents = dict(zip(loops["loop"], loops["parent"], strict=True))

    def around(place: tuple[str, int | None]) -> set[int]:
        """The numbers of a loop and of those around it."""
        found: set[int] = set()
        loop = place[1]
        while loop is not None and loop >= 0:
            found.add(loop)
            loop = parents[loop]
        return found

    return rules.Code(
        names=names,
        kinds=own["kind"],
        lines=[file if file[1] > 0 else loop for file, loop in zip(files, apart, strict=True)],
        pairs=[file if file[1] > 0 else block for file, block in zip(files, blocks, strict=True)],
        blocks=blocks,
        loops=inside,
        around=around,
        unit=lambda row: labels.get(units.of(own["opcode"][row], capability), ""),
        place=lambda rows, lines: _place(own, loops, rows, lines),
        known=True,
        rows=rules.rows_by_name((row, name) for row, name in enumerate(names) if inside[row]),
    )


def _place(own: Mapping[str, Any], loops: Mapping[str, Any], rows: Sequence[int], lines: Sequence[tuple[Any, ...]]) -> str:
    """What rows are called that are of these lines (see `rules.Code`)."""
    top, line, more, loop = rows[0], lines[0], len(lines) - 1, ""
    if own["loop"][top] >= 0:
        row = loops["loop"].index(own["loop"][top])
        number, file, first, last, header, end, _ = (loops[name][row] for name in _LOOP)
        span = f"{_file(file)}:{first}{f'-{last}' if last > first else ''}"
        loop = f"loop {number} ({span if first > 0 else f'{header:#x}-{end - SIZE:#x}'})"
    if len(line) == 2:
        # The line and where it is inlined, innermost first; of a library's header the line that uses it, and where that is.
        chain = [f"{line[0]}:{line[1]}", *(place for place in own["inlined"][top].split(WITHIN) if place)]
        used = next((number for number, place in enumerate(chain) if not rules.of_library(place.rpartition(":")[0])), 0)
        inside, places = (list(map(_file, part)) for part in (chain[:used], chain[used + 1 :]))
        if len(places) > _CALLS:
            places = [*places[: _CALLS - 1], "...", places[-1]]
        said = ", ".join([f"in {name}" for name in inside[:1]] + [f"inlined at {' < '.join(places)}"] * bool(places))
        place = f"{_file(chain[used])} ({said})" if said else _file(chain[used])
        others = f" and {more} more line{'s' if more > 1 else ''}" if more else ""
        chosen = next((one for one in lines if len(one) == 2 and not rules.of_library(one[0])), line)
        if chosen != line and place.startswith(_file(line[0])):  # nobody knows what calls it
            place, others = f"{_file(chosen[0])}:{chosen[1]}", f"{others}, most at {place},"
        return f"{place}{others}" + (f" {'of' if more else 'in'} {loop}" if loop else "")
    function = own["function"][top]
    other = "" if function == own["function"][0] else f" of {shorten(clean(function))}"
    where = f"{own['opcode'][top]} at offset {own['offset'][top]:#x}{other}"
    if loop:
        return f"{loop[0].upper()}{loop[1:]}, most at {where}"
    return where if len(rows) == 1 else f"Code in no loop, most at {where}"


def _file(path: str) -> str:
    """The name of a file, without folders, as it may stand in a sentence."""
    return shorten(clean(basename(path)))
