"""The findings of one launch: its instructions as `chips.findings` looks at them, and what places are called."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from ntpath import basename
from typing import Any

import numpy as np

from ncu_roofline.analyses.source.frames import FINDINGS, WHERE, WITHIN
from ncu_roofline.base.texts import clean, shorten
from ncu_roofline.chips import findings as rules
from ncu_roofline.chips import load_stalls, load_units
from ncu_roofline.chips.findings import About, Called, of_library
from ncu_roofline.chips.opcodes import load_opcode_units
from ncu_roofline.chips.source_counters import COUNTED
from ncu_roofline.chips.tables import load_findings
from ncu_roofline.formats.sass.instructions import SIZE

_CALLS = 3  # places where a line is inlined that are named
_MOST = 2.0**80  # of a count: 64 bits, times bytes or operations
_ABOUT = ("function", "offset", "opcode", "kind", "file", "line", "inlined", "block", "loop")
_LOOP = ("loop", "file", "first_line", "last_line", "header", "end", "parent")
_WORK = {"": "work", "fp32": "work_fp32", "fp64": "work_fp64"}
_LIBRARY = re.compile(r"__cuda_sm\d+x?_|__internal_|__nv_|slowpath")


def findings(
    instructions: Mapping[str, Any],
    stalls: Mapping[str, Any],
    loops: Mapping[str, Any],
    about: About,
    called: Sequence[Called] = (),
) -> dict[str, list[Any]]:
    """The findings of one launch, those that touch most first: `frames.FINDINGS` but for where they are from.

    ``instructions``, ``stalls`` and ``loops`` are columns of its frames of those names; ``called``: functions that are called.
    """
    own = _listed(instructions, (*_ABOUT, *COUNTED, *_WORK.values()))
    counts: dict[str, dict[int, float]] = {}
    samples: dict[str, dict[int, float]] = {}
    for name, (_, worth) in COUNTED.items():
        values = np.asarray(own[name], dtype=np.float64)
        if values.size and np.all((values >= 0) & (values <= _MOST)):  # counts that can't be are unknown, NaN among them
            some = np.flatnonzero(values)
            counts[name] = dict(zip(some.tolist(), (values[some] / worth).tolist(), strict=True))
    rows = {key: row for row, key in enumerate(zip(own["function"], own["offset"], strict=True))}
    sampled = _listed(stalls, ("function", "offset", "reason", "samples")).values()
    for function, offset, reason, number in zip(*sampled, strict=True):
        if function and (row := rows.get((function, offset))) is not None:
            samples.setdefault(reason, {})[row] = samples.get(reason, {}).get(row, 0.0) + number
    opcodes: dict[str, float] = {}
    for row, times in counts.get("executed", {}).items():
        opcodes[own["opcode"][row]] = opcodes.get(own["opcode"][row], 0.0) + times
    if not own["offset"]:
        return {column.name: [] for column in FINDINGS if column not in WHERE}
    code = _code(own, _listed(loops, _LOOP), about.capability)
    launch = rules.Launch(
        counts=counts,
        work=lambda: {kind: sum(own[name]) for kind, name in _WORK.items()},
        code=lambda: code,
        opcodes=lambda: opcodes,
        sampled={reason: sum(each.values()) for reason, each in samples.items()},
        samples=samples.__getitem__,
        stalls=load_stalls(),
        told=load_findings(),
        about=about,
        begin=None,
        first=rows.get((own["function"][0], 0)) if own["function"][0] else None,
    )
    library = [one._replace(name=shorten(clean(one.name))) for one in called if _LIBRARY.search(one.name)]
    table = []
    for one in sorted(rules.findings(launch, library), key=lambda one: -one.share):
        at = {name: own[name][one.site.rows[0]] for name in ("file", "line", "function", "offset", "loop")}
        message = " ".join(filter(None, (f"{one.site.place}:" if one.site.place else "", one.said, one.more)))
        about_it = {"finding": one.kind, "share": one.share, "of": one.of, "cause": one.cause}
        table.append(at | about_it | {"message": message, "advice": one.advice})
    return {column.name: [row[column.name] for row in table] for column in FINDINGS if column not in WHERE}


def _listed(columns: Mapping[str, Any], names: Iterable[str]) -> dict[str, list[Any]]:
    return {name: [*(each.tolist() if isinstance(each := columns[name], np.ndarray) else each)] for name in names}


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
    top, line, more, loop = rows[0], lines[0], len(lines) - 1, ""
    if own["loop"][top] >= 0:
        row = loops["loop"].index(own["loop"][top])
        number, file, first, last, header, end, _ = (loops[name][row] for name in _LOOP)
        span = f"{_file(file)}:{first}{f'-{last}' if last > first else ''}"
        loop = f"loop {number} ({span if first > 0 else f'{header:#x}-{end - SIZE:#x}'})"
    if len(line) == 2:
        others = f" and {more} more line{'s' if more > 1 else ''}" if more else ""
        inside = f" {'of' if more else 'in'} {loop}" if loop else ""
        chosen = next((one for one in lines if len(one) == 2 and not of_library(one[0])), line)
        place = _called(f"{line[0]}:{line[1]}", own["inlined"][top])
        if chosen != line and place.startswith(_file(line[0])):  # nobody knows what calls it
            place, others = f"{_file(chosen[0])}:{chosen[1]}", f"{others}, most at {place},"
        return f"{place}{others}{inside}"
    function = own["function"][top]
    other = "" if function == own["function"][0] else f" of {shorten(clean(function))}"
    where = f"{own['opcode'][top]} at offset {own['offset'][top]:#x}{other}"
    if loop:
        return f"{loop[0].upper()}{loop[1:]}, most at {where}"
    return where if len(rows) == 1 else f"Code in no loop, most at {where}"


def _called(line: str, inlined: str) -> str:
    """A line and where it is inlined, innermost first; of a library's header the line that uses it, and where that is."""
    chain = [line, *(place for place in inlined.split(WITHIN) if place)]
    first = next((number for number, place in enumerate(chain) if not of_library(place.rpartition(":")[0])), 0)
    inside, places = (list(map(_file, part)) for part in (chain[:first], chain[first + 1 :]))
    if len(places) > _CALLS:
        places = [*places[: _CALLS - 1], "...", places[-1]]
    said = ", ".join([f"in {name}" for name in inside[:1]] + [f"inlined at {' < '.join(places)}"] * bool(places))
    return f"{_file(chain[first])} ({said})" if said else _file(chain[first])


def _file(path: str) -> str:
    """The name of a file, without folders, as it may stand in a sentence."""
    return shorten(clean(basename(path)))
