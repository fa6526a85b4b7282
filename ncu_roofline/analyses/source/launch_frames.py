"""One launch: its instructions, and the frames made of them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ncu_roofline.analyses.source import columns
from ncu_roofline.analyses.source.calls import Calls
from ncu_roofline.analyses.source.code import Cubins, LaunchCode
from ncu_roofline.analyses.source.counts import Counts
from ncu_roofline.analyses.source.findings import findings
from ncu_roofline.analyses.source.findings.examined import About
from ncu_roofline.analyses.source.findings.library import Called
from ncu_roofline.analyses.source.functions import function_columns
from ncu_roofline.analyses.source.instructions import Instructions, Weights, instructions_of
from ncu_roofline.analyses.source.lines import has_lines, line_columns
from ncu_roofline.analyses.source.loops import loop_columns
from ncu_roofline.analyses.source.performance import LaunchRoofs, performance_columns
from ncu_roofline.analyses.source.source_texts import SourceTexts
from ncu_roofline.analyses.source.sums import Sums
from ncu_roofline.analyses.source.totals import Totals
from ncu_roofline.base.texts import listed, shorten
from ncu_roofline.formats.report import Kernel
from ncu_roofline.model.measurements import Measurements
from ncu_roofline.model.opcodes import THREADS, WARPS
from ncu_roofline.rendering.frames import Column

_NAMED = 3  # functions that a note names
_LANES = "lanes are those whose predicate is true: the report does not tell which are active"


class LaunchFrames:
    """One launch: its instructions, and the frames made of them."""

    def __init__(
        self,
        kernel: Kernel,
        counts: Counts,
        roofs: LaunchRoofs,
        cubins: Cubins,
        texts: SourceTexts,
        m: Measurements,
        row: int,
    ) -> None:
        self._where = {
            "report": m.report[row],
            "launch": m.launch[row],
            "device": m.device[row],
        }
        self._kernel, self._roofs, self._texts = kernel, roofs, texts
        self._about = About.of(m.capability[row], kernel.metrics, float(m.seconds[row]), roofs.bound)
        code = cubins.code(kernel, counts.addresses)
        self.found = instructions_of(code, counts, Weights(m.capability[row], _variants(kernel), constants=roofs.constants))
        self.totals = Totals(Sums(self.found), kernel.metrics, roofs.counters(), roofs.unit)
        self.sums, self.calls = Sums(self.found, self.totals.of_all()), Calls(self.found)
        whole = self.sums.whole
        lanes = (_LANES,) if self.sums.lanes == "threads" and whole["threads"] + whole["executed"] > 0 else ()
        self.performance_of = roofs.performance_of(self.sums.whole)
        unit = "op" if self.performance_of == columns.INTEGERS else roofs.unit
        self._where |= {"performance_of": self.performance_of, "unit": unit}
        self.notes = (*code.notes, *_elsewhere(kernel, code, counts), *self.totals.notes(), *counts.notes, *lanes)
        chains = {id(places): places for places in self.found.places}
        texts.add(kernel, (place.file for places in chains.values() for place in places))

    def tables(self, name: str, only_unlined: bool) -> dict[str, dict[str, Any]]:
        """All frames by name; with ``only_unlined`` instructions are whole only where no line can be shown."""
        found, sums = self.found, self.sums
        lines = line_columns(sums, self._texts.found)
        whole = {"sass": [""] * len(found) if only_unlined and has_lines(lines) else found.texts()}
        loops = loop_columns(sums, self.calls)
        mine = {
            "instructions": found.columns | whole | sums.table(found.counts, sums.stalls),
            "lines": lines,
            "outer_lines": line_columns(sums, self._texts.found, outermost=True),
            "loops": loops | performance_columns(loops, self._roofs, self.totals, sums.whole, self.performance_of),
            "functions": function_columns(sums, self._kernel.mangled_name),
            "stalls": _stalls(found),
            "totals": {column: [row[column] for row in self.totals.rows] for column in self.totals.rows[0]},
        }
        mine["findings"] = findings(mine["instructions"], mine["stalls"], loops, self._about, self._called())
        where = self._where | {"kernel": name}
        return {table: _placed(where, values, columns.TABLES[table]) for table, values in mine.items()}

    def _called(self) -> list[Called]:
        """The functions that are called, with their code and the calls."""
        found = self.found
        return [
            Called(found.owners[one.owner], np.flatnonzero(found.owner == one.owner), one.sites) for one in self.calls.called
        ]


def _placed(where: Mapping[str, Any], values: Mapping[str, Any], declared: tuple[Column, ...]) -> dict[str, Any]:
    """Columns of one launch with where they are from."""
    size = len(next(iter(values.values())))
    return {one.name: values[one.name] if one.name in values else [where[one.name]] * size for one in declared}


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


def _variants(kernel: Kernel) -> dict[str, list[str]]:
    """The opcodes with all modifiers that a launch executed, by their names."""
    result: dict[str, list[str]] = {}
    for metric in (WARPS, THREADS):
        if kernel.metrics.has_name(metric):
            for opcode, count in kernel.metrics.instances(metric):
                if isinstance(opcode, str) and count:
                    result.setdefault(opcode.partition(".")[0], []).append(opcode)
    return result


def _stalls(found: Instructions) -> dict[str, Any]:
    """A row per instruction and reason that was sampled there."""
    names = list(found.stalls)
    table = np.vstack([every for every, _ in found.stalls.values()]) if names else np.empty((0, len(found)))
    not_issued = np.vstack([one for _, one in found.stalls.values()]) if names else table
    rows, reasons = np.nonzero(table.T > 0)
    return {
        "function": [found.columns["function"][row] for row in rows.tolist()],
        "offset": found.columns["offset"][rows],
        "reason": [names[one] for one in reasons.tolist()],
        "samples": table[reasons, rows],
        "not_issued": not_issued[reasons, rows],
    }
