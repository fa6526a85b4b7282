"""Runs as states of an application that `compare` takes: operators as kernels, their needs as work and traffic."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from ncu_roofline.analyses.run.frames import Run
from ncu_roofline.chips import load_spec
from ncu_roofline.formats.inputs.tables import ImportedPoint, ImportedRoof, PointTable
from ncu_roofline.model import Measurements, Roofline, Selection, roofline
from ncu_roofline.model.extract import imported
from ncu_roofline.rendering.frames import records

OPERATOR = "operator"
"""The kind of a row that is an operator; what no operator asked for is a kernel, as in reports."""


def state_of(run: Run, select: Selection) -> Roofline:
    """The calls of a run's operators, one launch each, under its roofs: an operator is named with its shapes, types and group.

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
            known = not math.isnan(row["bytes"])
            work = {calls.precision: row["flops"] / len(calls.took)} if known and calls.precision else {}
            traffic = {calls.level: row["bytes"] / len(calls.took)} if known and calls.level else {}
            kinds += [OPERATOR if row["operator"] else "kernel"] * len(calls.took)
            points += [
                ImportedPoint(f"{about}{within}" if about else kernel, seconds, work, traffic, {}, row["device"], (0, 0), count)
                if about
                else ImportedPoint(kernel, seconds, device=row["device"], launches=count, grid=grid, block=block)
                for seconds, count, kernel, grid, block in calls.took
            ]
        found = imported(PointTable(place[0], "run", tuple(points), stated), place[0])
        parts.append(replace(found, kind=np.array(kinds, dtype=object)))
    made = roofline(select.launches(Measurements.joined(parts)), select=select)
    nothing = np.full(len(made.kernel_columns["verdict"]), "", dtype=object)
    return replace(made, kernel_columns={**made.kernel_columns, "verdict": nothing, "limit": nothing})


def whole_of(run: Run) -> dict[str, Any]:
    """``wall`` (s): of its GPUs the longest; ``busy``: the share of their time in which they did something."""
    wall, busy = np.asarray(run.run_columns["wall"]), np.asarray(run.run_columns["busy"])
    return {"wall": float(wall.max()), "busy": float(busy.sum() / wall.sum()) if wall.sum() > 0 else math.nan}
