"""Finished numbers of other tools as measurements: the same frames come out as of a report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ncu_roofline.formats.inputs.tables import ImportedPoint, ImportedRoof, PointTable
from ncu_roofline.model.measurements import MEASURED, IntArray, Measurements, Origin, Quantity, objects

IMPORTED = "imported"


def imported(table: PointTable, label: str) -> Measurements:
    """The points of a table, one element each; its roofs hold for all of them.  ``label`` is its name in the frames."""
    points = table.points
    count = len(points)
    numbers = _Numbers(points)
    work = numbers.quantities(lambda point: point.work)
    shares = numbers.quantities(lambda point: point.fma_share)
    return Measurements(
        report=objects([label] * count),
        ncu_version=objects([""] * count),
        launch=np.arange(count),
        function=objects([point.name for point in points]),
        name=objects([point.name for point in points]),
        kind=objects(["kernel"] * count),
        grid=objects([point.grid for point in points]),
        block=objects([point.block for point in points]),
        nvtx=objects([""] * count),
        device=objects([point.device for point in points]),
        capability=objects([point.compute_capability for point in points]),
        seconds=np.array([point.seconds for point in points], dtype=np.float64),
        clock=np.full(count, np.nan),
        clock_max=np.full(count, np.nan),
        memory_clock=np.full(count, np.nan),
        tensor_active=np.full(count, np.nan),
        tensor_gaps=np.zeros(count, dtype=bool),
        invocations=np.array([point.launches for point in points], dtype=np.int64),
        remarks=objects([""] * count),
        label=objects([point.label for point in points]),
        step=np.full(count, -1),
        rates=np.array([point.rates for point in points], dtype=bool),
        work=work,
        summands=work,
        fused={
            # Of instructions the share is alpha, of operations 2 alpha / (1 + alpha): a fused instruction does two.
            name: work[name].scaled(2 * share.values / (1 + share.values))
            for name, share in shares.items()
            if name in work
        },
        traffic=numbers.quantities(lambda point: point.traffic),
        compute=_roofs(table, "compute"),
        bandwidth=_roofs(table, "bandwidth"),
        charts=objects([()] * count),
        samples=objects([None] * count),
    )


def _roofs(table: PointTable, kind: str) -> dict[str, Quantity]:
    """The roofs of a kind by id: a point's own, else the table's."""
    count = len(table.points)
    rows: dict[str, dict[int, ImportedRoof]] = {
        roof.id: dict.fromkeys(range(count), roof) for roof in table.roofs if roof.kind == kind
    }
    for index, point in enumerate(table.points):
        for roof in point.roofs:
            if roof.kind == kind:
                rows.setdefault(roof.id, {})[index] = roof
    return {name: _roof(of_point, count) for name, of_point in rows.items()}


def _roof(of_point: Mapping[int, ImportedRoof], count: int) -> Quantity:
    values, choice = np.full(count, np.nan), np.full(count, -1, dtype=np.int64)
    origins: dict[Origin, int] = {}
    for index, roof in of_point.items():
        values[index] = roof.value
        origin = Origin(MEASURED if roof.measured else IMPORTED, roof.label, roof.note)
        choice[index] = origins.setdefault(origin, len(origins))
    return Quantity(values, choice, tuple(origins))


class _Numbers:
    """What the points say, key by key; the origins are the columns that they name."""

    def __init__(self, points: Sequence[ImportedPoint]) -> None:
        self._points = points
        origins: dict[Origin, int] = {}
        codes = [origins.setdefault(Origin(IMPORTED, point.columns, point.note), len(origins)) for point in points]
        self._codes: IntArray = np.array(codes, dtype=np.int64)
        self._origins = tuple(origins)

    def quantities(self, mapping: Callable[[ImportedPoint], Mapping[str, float]]) -> dict[str, Quantity]:
        """For each key of the points' mapping a quantity."""
        keys = dict.fromkeys(key for point in self._points for key in mapping(point))
        result = {}
        for key in keys:
            values = np.array([mapping(point).get(key, np.nan) for point in self._points], dtype=np.float64)
            result[key] = Quantity(values, np.where(np.isnan(values), -1, self._codes), self._origins)
        return result
