"""What counts by instruction say of a launch: its findings, and of the kernel that comes first the place that matters most."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from ntpath import basename
from typing import Any

import numpy as np

from ncu_roofline.analyses.hierarchical.kernels import leading
from ncu_roofline.analyses.source.code import WITHIN, Instructions, Loops, counts_of
from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.texts import clean, shorten
from ncu_roofline.chips import findings as rules
from ncu_roofline.chips import load_stalls, load_units
from ncu_roofline.chips.opcodes import load_opcode_units
from ncu_roofline.chips.sass import INSTRUCTIONS
from ncu_roofline.chips.source_counters import COUNTED
from ncu_roofline.chips.tables import load_findings
from ncu_roofline.chips.verdict import as_percent
from ncu_roofline.formats.report import Kernel, read_report
from ncu_roofline.formats.sass.instructions import SIZE
from ncu_roofline.model.kernels import bounds_of
from ncu_roofline.model.measurements import FloatArray, Measurements, as_float
from ncu_roofline.model.roofline import Roofline
from ncu_roofline.model.work import loads_constants

_ABOUT = re.compile(r"Lines (with|that use) |Loops with much ")  # what titles begin with
_PLACE = re.compile(r"\S+:\d+(?=[ :])")  # what a message begins with: of a library's line the one that uses it
_CALLS = 3  # places where a line is inlined that are named
_MOST = 2.0**80  # of a count: 64 bits, times bytes or operations
_INSTRUCTION = ("function", "offset", "opcode", "kind", "file", "line", "inlined", "block", "loop")
_LOOP = ("loop", "file", "first_line", "last_line", "header", "end", "parent")
_WORK = {"": "work", "fp32": "work_fp32", "fp64": "work_fp64"}
_LIBRARY = re.compile(r"__cuda_sm\d+x?_|__internal_|__nv_|slowpath")


def findings_of(
    kernel: Kernel, found: Instructions, loops: Loops, m: Measurements, bound: str, row: int
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
            counts = counts_of(kernel.metrics)
            if not 0 < len(counts.addresses) <= INSTRUCTIONS:
                continue
            (bound,) = bounds_of([(first.verdict, first.limit)])
            found = Instructions(kernel, counts, launch.capability[0], constants=bool(loads_constants(launch)[0]))
            with np.errstate(all="ignore"):
                every = findings_of(kernel, found, Loops(found), launch, bound, 0)
            told, limits = load_findings().kinds, {first.verdict.partition(":")[0], bound}
            about = (one for one in every if limits.intersection(told[one["finding"]].limits) and one["line"] > 0)
            if one := next(about, None):
                named = _PLACE.match(clean(one["message"]))
                place = named[0] if named else f"{_file(one['file'])}:{one['line']}"
                title = _ABOUT.sub("", told[one["finding"]].title)
                words = one["cause"] or (title if title[1].isupper() else f"{title[0].lower()}{title[1:]}")
                places[first.device, first.kernel] = f"{place}: {words}, {as_percent(one['share'])} of {one['of']}"
    return places


def findings(
    instructions: Mapping[str, Any],
    samples: Mapping[str, Mapping[int, float]],
    loops: Mapping[str, Any],
    about: rules.About,
    called: Sequence[rules.Called] = (),
) -> list[dict[str, Any]]:
    """The findings of one launch, those that touch most first: rows of the frame of findings but for where they are from.

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
