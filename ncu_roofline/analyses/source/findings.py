"""The findings of one launch as a frame: its instructions as `chips.findings` looks at them, and what places are called."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from ntpath import basename
from typing import Any

import numpy as np

from ncu_roofline.analyses.source.columns import FINDINGS, WHERE, WITHIN
from ncu_roofline.base.texts import clean, shorten
from ncu_roofline.chips import findings as rules
from ncu_roofline.chips import load_stalls, load_units
from ncu_roofline.chips.findings import About, Called
from ncu_roofline.chips.libraries import of_library
from ncu_roofline.chips.opcodes import load_opcode_units
from ncu_roofline.chips.source_counters import COUNTED
from ncu_roofline.formats.sass.instructions import SIZE

_CALLS = 3  # places where a line is inlined that are named
_MOST = 2.0**80  # of a count: 64 bits, times bytes or operations
_ABOUT = ("function", "offset", "opcode", "kind", "file", "line", "inlined", "block", "loop")
_WORK = {"": "work", "fp32": "work_fp32", "fp64": "work_fp64"}
_LIBRARY = re.compile(r"__cuda_sm\d+x?_|__internal_|__nv_|slowpath")


def findings(
    instructions: Mapping[str, Any],
    stalls: Mapping[str, Any],
    loops: Mapping[str, Any],
    about: About,
    called: Sequence[Called] = (),
) -> dict[str, list[Any]]:
    """The findings of one launch, those that touch most first: `columns.FINDINGS` but for where they are from.

    ``instructions``, ``stalls`` and ``loops`` are columns of its frames of those names; ``called``: functions that are called.
    """
    columns = {name: _listed(instructions[name]) for name in (*_ABOUT, *COUNTED, *_WORK.values())}
    code = _Code(columns, loops, about)
    library = [one._replace(name=shorten(clean(one.name))) for one in called if _LIBRARY.search(one.name)]
    found = rules.findings(_launch(columns, stalls, code, about), library) if columns["offset"] else []
    rows = []
    for one in sorted(found, key=lambda one: -one.share):
        at = {name: columns[name][one.site.rows[0]] for name in ("file", "line", "function", "offset", "loop")}
        message = " ".join(filter(None, (f"{one.site.place}:" if one.site.place else "", one.said, one.more)))
        said = {"finding": one.kind, "share": one.share, "of": one.of, "cause": one.cause}
        rows.append(at | said | {"message": message, "advice": one.advice})
    return {column.name: [row[column.name] for row in rows] for column in FINDINGS if column not in WHERE}


def _listed(values: Any) -> list[Any]:
    listed: list[Any] = values.tolist() if isinstance(values, np.ndarray) else list(values)
    return listed


def _launch(columns: Mapping[str, list[Any]], stalls: Mapping[str, Any], code: _Code, about: About) -> Any:
    counts = {}
    for name, (_, worth) in COUNTED.items():
        values = np.asarray(columns[name], dtype=np.float64)
        if values.size and np.all((values >= 0) & (values <= _MOST)):  # counts that can't be are unknown, NaN among them
            some = np.flatnonzero(values)
            counts[name] = dict(zip(some.tolist(), (values[some] / worth).tolist(), strict=True))
    rows = {key: row for row, key in enumerate(zip(columns["function"], columns["offset"], strict=True))}
    samples: dict[str, dict[int, float]] = {}
    where = (_listed(stalls[name]) for name in ("function", "offset", "reason", "samples"))
    for function, offset, reason, number in zip(*where, strict=True):
        row = rows.get((function, offset))
        if row is not None and function:
            mine = samples.setdefault(reason, {})
            mine[row] = mine.get(row, 0.0) + number
    opcodes: dict[str, float] = {}
    for row, times in counts.get("executed", {}).items():
        opcodes[columns["opcode"][row]] = opcodes.get(columns["opcode"][row], 0.0) + times
    return rules.Launch(
        counts=counts,
        work=lambda: {kind: sum(columns[name]) for kind, name in _WORK.items()},
        code=lambda: code.known,
        opcodes=lambda: opcodes,
        sampled={reason: sum(mine.values()) for reason, mine in samples.items()},
        samples=samples.__getitem__,
        stalls=load_stalls(),
        about=about,
        begin=None,
        first=rows.get((columns["function"][0], 0)) if columns["function"][0] else None,
    )


@dataclass
class _Code:
    """What instructions are, and what places of them are called."""

    columns: Mapping[str, list[Any]]
    frame: Mapping[str, Any]
    about: About

    @cached_property
    def loops(self) -> list[tuple[str, int | None] | None]:
        """Of each instruction its function and innermost loop; None outside of the report's code."""
        pairs = zip(self.columns["function"], self.columns["loop"], strict=True)
        return [(function, loop if loop >= 0 else None) if function else None for function, loop in pairs]

    @cached_property
    def known(self) -> Any:
        """As `chips.findings` wants it."""
        own = self.columns
        files = list(zip(own["file"], own["line"], strict=True))
        around = [("", function, loop) for function, loop in zip(own["function"], own["loop"], strict=True)]
        blocks = list(zip(own["function"], own["block"], strict=True))
        capability, units = self.about.capability, load_opcode_units()
        labels = {unit.id: unit.label for unit in load_units().units}
        names = [opcode.partition(".")[0] for opcode in own["opcode"]]
        return rules.Code(
            names=names,
            kinds=own["kind"],
            lines=[file if file[1] > 0 else loop for file, loop in zip(files, around, strict=True)],
            pairs=[file if file[1] > 0 else block for file, block in zip(files, blocks, strict=True)],
            blocks=blocks,
            loops=self.loops,
            around=self._around,
            unit=lambda row: labels.get(units.of(own["opcode"][row], capability), ""),
            place=self._place,
            known=True,
            rows=rules.rows_by_name((row, name) for row, name in enumerate(names) if self.loops[row]),
        )

    @cached_property
    def _parents(self) -> dict[int, int]:
        return dict(zip(*(_listed(self.frame[name]) for name in ("loop", "parent")), strict=True))

    def _around(self, place: tuple[str, int | None]) -> set[int]:
        """The numbers of a loop and of those around it."""
        found: set[int] = set()
        loop = place[1]
        while loop is not None and loop >= 0:
            found.add(loop)
            loop = self._parents[loop]
        return found

    @cached_property
    def _loop_names(self) -> dict[int, str]:
        names = ("loop", "file", "first_line", "last_line", "header", "end")
        found = {}
        for number, file, first, last, header, end in zip(*(self.frame[name] for name in names), strict=True):
            lines = f"{_file(file)}:{first}{f'-{last}' if last > first else ''}"
            found[number] = f"loop {number} ({lines if first > 0 else f'{header:#x}-{end - SIZE:#x}'})" if number >= 0 else ""
        return found

    def _place(self, rows: Sequence[int], lines: Sequence[tuple[Any, ...]]) -> str:
        own, top, line, more = self.columns, rows[0], lines[0], len(lines) - 1
        loop = self._loop_names.get(own["loop"][top], "")
        if len(line) == 2:
            others = f" and {more} more line{'s' if more > 1 else ''}" if more else ""
            inside = f" {'of' if more else 'in'} {loop}" if loop else ""
            mine = next((one for one in lines if len(one) == 2 and not of_library(one[0])), line)
            place = _called(f"{line[0]}:{line[1]}", own["inlined"][top])
            if mine != line and place.startswith(_file(line[0])):  # nobody knows what calls it
                place, others = f"{_file(mine[0])}:{mine[1]}", f"{others}, most at {place},"
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
