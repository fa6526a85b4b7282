"""Finished numbers of other tools as measurements: the same frames come out as of a report."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from ncu_roofline.chips.tables import load_limits
from ncu_roofline.formats.inputs.tables import ImportedPoint, PointTable
from ncu_roofline.model.measurements import MEASURED, FloatArray, Measurements, Origin, Quantity, objects
from ncu_roofline.model.plausible import LEFT_OUT, Remarks, short_name

IMPORTED = "imported"
Rows = dict[int, tuple[float, Origin]]


def imported(table: PointTable, label: str) -> Measurements:
    """The points of a table, one element each; its roofs hold for all of them.  ``label`` is its name in the frames.

    Numbers that can't be are left out; remarks tell which.
    """
    points, count, limits = table.points, len(table.points), load_limits()
    remarks = Remarks([""] * count)

    def checked(what: str, values: FloatArray, most: FloatArray | float, unit: str) -> FloatArray:
        wrong = ~np.isnan(values) & ~((values >= 0) & (values <= most))
        named = f"{LEFT_OUT} {what} of {{}} is {{:.4g}} {unit}, which no machine can"
        remarks.add(wrong, lambda row: named.format(short_name(points[row].name), values[row]), "row")
        return np.where(wrong, np.nan, values)

    def quantities(what: str, rows: Mapping[str, Rows], most: FloatArray | float, unit: str) -> dict[str, Quantity]:
        made = {key: Quantity.of_rows(count, mine) for key, mine in rows.items()}
        return {key: replace(one, values=checked(f"{what} {key}", one.values, most, unit)) for key, one in made.items()}

    def said(mapping: Callable[[ImportedPoint], Mapping[str, float]]) -> dict[str, Rows]:
        """For each key what the points say; the origins are the columns that they name."""
        rows: dict[str, Rows] = {}
        for row, point in enumerate(points):
            for key, value in mapping(point).items():
                if not math.isnan(value):
                    rows.setdefault(key, {})[row] = value, Origin(IMPORTED, point.columns, point.note)
        return rows

    roofs: dict[str, dict[str, Rows]] = {"compute": {}, "bandwidth": {}}
    for row, point in enumerate(points):
        for roof in (*table.roofs, *point.roofs):  # a point's own before the table's
            origin = Origin(MEASURED if roof.measured else IMPORTED, roof.label, roof.note)
            roofs[roof.kind].setdefault(roof.id, {})[row] = roof.value, origin
    seconds = checked("the time", np.array([point.seconds for point in points], dtype=np.float64), limits.imported_seconds, "s")
    total = limits.imported_rate * np.where(seconds > 0, seconds, limits.imported_seconds)
    work = quantities("work in", said(lambda point: point.work), total, "operations")
    shares = {key: Quantity.of_rows(count, rows).values for key, rows in said(lambda point: point.fma_share).items()}
    traffic = quantities("traffic at", said(lambda point: point.traffic), total, "byte")
    compute = quantities("the roof", roofs["compute"], limits.imported_rate, "operations per second")
    bandwidth = quantities("the roof", roofs["bandwidth"], limits.imported_rate, "byte per second")
    texts = {name: objects([getattr(point, name) for point in points]) for name in ("name", "grid", "block", "device", "label")}
    return Measurements.of(
        count,
        **texts,
        report=objects([label] * count),
        function=texts["name"],
        kind=objects(["kernel"] * count),
        capability=objects([point.compute_capability for point in points]),
        seconds=seconds,
        invocations=np.array([point.launches for point in points], dtype=np.int64),
        rates=np.array([point.rates for point in points], dtype=bool),
        work=work,
        summands=work,
        # Of instructions the share is alpha, of operations 2 alpha / (1 + alpha): a fused instruction does two.
        fused={name: work[name].scaled(2 * share / (1 + share)) for name, share in shares.items() if name in work},
        traffic=traffic,
        compute=compute,
        bandwidth=bandwidth,
        remarks=remarks.texts,
    )
