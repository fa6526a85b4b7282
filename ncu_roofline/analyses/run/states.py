"""Runs as states of an application that `compare` takes: operators as kernels, their needs as work and traffic."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ncu_roofline.analyses.run.frames import Calls, Run
from ncu_roofline.chips import load_spec
from ncu_roofline.formats.inputs.tables import ImportedPoint, ImportedRoof, PointTable
from ncu_roofline.model import Measurements, Roofline, Selection, roofline
from ncu_roofline.model.extract import imported
from ncu_roofline.rendering.frames import records

OPERATOR = "operator"
"""The kind of a row that is an operator; what no operator asked for is a kernel, as in reports."""
_MOST = 200  # rows per operator: the model takes 0.2 ms for each


def state_of(run: Run, select: Selection) -> Roofline:
    """The calls of a run's operators as launches, under its roofs: an operator is named with its shapes, types and group.

    Verdicts are left out: needs don't tell what limits kernels.
    """
    spec = load_spec()
    ids = {one.id: one.roof_ids()[0] for one in spec.precisions}
    parts: list[Measurements] = []
    operators, roofs = records(run.operator_columns), records(run.roof_columns)
    for place in dict.fromkeys((row["run"], row["gpu"]) for row in operators):
        stated = tuple(
            ImportedRoof(
                ids.get(row["roof"], row["roof"]),
                "bandwidth" if row["roof"] == spec.memory else "compute",
                row["origin"],
                row["value"],
                not row["origin"].startswith("theory"),
            )
            for row in roofs
            if (row["run"], row["gpu"]) == place
        )
        points, kinds = list[ImportedPoint](), list[str]()
        for row, calls in zip(operators, run.calls, strict=True):
            if (row["run"], row["gpu"]) != place:
                continue
            about = " ".join(filter(None, (row["operator"], row["shapes"], row["types"])))
            within = f", {row['direction']}" if row["direction"] not in ("", "forward") else ""
            within += f", within {row['group']}" if row["group"] else ""
            need = {row["precision"]: row["flops"] / row["calls"]}, {calls.level: row["bytes"] / row["calls"]}
            known = [{key: value for key, value in one.items() if key and not math.isnan(value)} for one in need]
            for seconds, count, kernel, grid, block in _folded(_times(calls, bool(row["operator"]))):
                work, traffic = ({key: value * count for key, value in one.items()} for one in known)
                name, where = (f"{about}{within}" if about else kernel), {"device": row["device"], "grid": grid, "block": block}
                points.append(ImportedPoint(name, seconds, work, traffic, launches=count, **where))
                kinds.append(OPERATOR if row["operator"] else "kernel")
        found = imported(PointTable(place[0], "run", tuple(points), stated), place[0])
        parts.append(replace(found, kind=np.array(kinds, dtype=object)))
    made = roofline(select.launches(Measurements.joined(parts)), select=select)
    nothing = np.full(len(made.kernel_columns["verdict"]), "", dtype=object)
    return replace(made, kernel_columns={**made.kernel_columns, "verdict": nothing, "limit": nothing})


def _times(calls: Calls, asked: bool) -> Iterator[tuple[float, int, str, str, str]]:
    """Of each call its time (s), how many it stands for, and of what no operator asked for the kernel."""
    work = calls.work
    for kernels in calls.kernels:
        first, seconds = kernels[0], sum(work.seconds[kernel] for kernel in kernels)
        where = ("", "", "") if asked else (work.name[first], work.grid[first], work.block[first])
        yield (seconds, 1 if asked else work.count[first], *where)


def _folded(took: Iterable[tuple[float, int, str, str, str]]) -> Iterator[tuple[float, int, str, str, str]]:
    """The calls of a row; of many the sums of some that took nearly as long, by which medians and spreads hardly change."""
    found: dict[tuple[str, str, str], list[tuple[float, int]]] = defaultdict(list)
    for seconds, count, *kernel in took:
        found[tuple(kernel)].append((seconds, count))  # type: ignore[index]
    for where, calls in found.items():
        calls.sort(key=lambda call: call[0] / call[1])
        step = math.ceil(len(calls) / _MOST)
        for at in range(0, len(calls), step):
            some = calls[at : at + step]
            yield (sum(seconds for seconds, _ in some), sum(count for _, count in some), *where)


def whole_of(run: Run) -> dict[str, Any]:
    """``wall`` (s): of its GPUs the longest; ``busy``: the share of their time in which they did something."""
    wall, busy = np.asarray(run.run_columns["wall"]), np.asarray(run.run_columns["busy"])
    return {"wall": float(wall.max()), "busy": float(busy.sum() / wall.sum()) if wall.sum() > 0 else math.nan}
