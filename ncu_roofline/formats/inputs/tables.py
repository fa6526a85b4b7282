"""What an importer hands over: metrics per launch where a file has ncu's own, else finished numbers per kernel."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ncu_roofline.formats.report import Instances, Launch, Session, Value

ANY_PRECISION = "fp"
"""Precision id of floating-point work whose file does not say of which precision it is."""
MAJOR = "device__attribute_compute_capability_major"
MINOR = "device__attribute_compute_capability_minor"


@dataclass(frozen=True, repr=False)
class MetricTable:
    """Launches with ncu's metrics, from a file that is no report; read like a `Report`.

    ``values``: full metric name -> a value per launch in a report's unit (byte, nanosecond, hertz, percent), None for none.
    ``warnings`` are sentences on what was left out, for the user.  ``instances``: metric -> those of each
    launch, where it is made of reports that have them; ``lacks``: a sentence on what its format leaves out unless asked.
    """

    path: str
    format: str
    rows: Sequence[Launch]
    values: Mapping[str, Sequence[Value | None]]
    ncu_version: str = ""
    warnings: tuple[str, ...] = ()
    session: Session = field(default_factory=Session)
    instances: Mapping[str, Sequence[Instances]] = field(default_factory=dict)
    lacks: str = ""

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def metric_names(self) -> frozenset[str]:
        """The names of all metrics that some launch has."""
        return frozenset(self.values)

    def launches(self) -> list[Launch]:
        """What each launch says about itself."""
        return list(self.rows)

    def columns(self, names: Iterable[str]) -> dict[str, list[Value | None]]:
        """For each metric name its values over all launches, None where one lacks it."""
        missing: list[Value | None] = [None] * len(self.rows)
        return {name: list(self.values.get(name, missing)) for name in names}


def names_gpu(table: MetricTable) -> bool:
    """Whether every launch says its compute capability; without it no counter can be chosen."""
    return all(isinstance(value, (int, float)) and value > 0 for value in table.columns([MAJOR])[MAJOR])


def with_gpu(table: MetricTable, capability: tuple[int, int]) -> MetricTable:
    """The same launches, those that name no GPU on one of this compute capability: (7, 0) for a V100."""
    columns = table.columns([MAJOR, MINOR])
    silent = [not isinstance(value, (int, float)) or not value > 0 for value in columns[MAJOR]]
    filled: dict[str, Sequence[Value | None]] = {
        name: [number if lacks else value for value, lacks in zip(columns[name], silent, strict=True)]
        for name, number in zip((MAJOR, MINOR), capability, strict=True)
    }
    return replace(table, values={**table.values, **filled})


@dataclass(frozen=True)
class ImportedRoof:
    """A roof that a file states.

    ``id`` is a level id for a bandwidth (byte/s), else ``<precision>.fma``, ``<precision>.nofma`` or ``<precision>.<word>``
    for operations per second; the highest compute roof of a precision must be ``<precision>.fma`` (tensor ones: the bare id).
    ``label`` is what the file calls it.  ``measured`` is False only where the file says that it is theoretical.
    """

    id: str
    kind: str
    label: str
    value: float
    measured: bool = True


@dataclass(frozen=True)
class ImportedPoint:
    """One kernel or application as another tool counted it: SI units, totals over all ``launches`` of it.

    ``work`` maps precision ids to operations, ``traffic`` level ids to bytes, ``fma_share`` precision ids to the share of fused
    instructions among floating-point ones (0 to 1).  Ids may be unknown to the specification.  With ``rates`` the file gives no
    times and no totals: work and traffic are per second, and ``seconds`` is 1.  ``columns`` names the columns (counters) used.
    ``label`` says which run of a sweep it is; ``roofs`` are those of this point alone, beside the table's.
    """

    name: str
    seconds: float = math.nan
    work: Mapping[str, float] = field(default_factory=dict)
    traffic: Mapping[str, float] = field(default_factory=dict)
    fma_share: Mapping[str, float] = field(default_factory=dict)
    device: str = ""
    compute_capability: tuple[int, int] = (0, 0)
    launches: int = 1
    grid: str = ""
    block: str = ""
    rates: bool = False
    columns: str = ""
    note: str = ""
    label: str = ""
    roofs: tuple[ImportedRoof, ...] = ()


@dataclass(frozen=True, repr=False)
class PointTable:
    """Kernels and roofs with finished numbers; ``warnings`` are sentences on what was left out, for the user.

    Where tables of several files complete each other, ``parts`` (each has its ``path``) are what the points are made of, and
    ``reading`` says what was left out whatever they are joined with.
    """

    path: str
    format: str
    points: tuple[ImportedPoint, ...]
    roofs: tuple[ImportedRoof, ...] = ()
    warnings: tuple[str, ...] = ()
    parts: tuple[Any, ...] = ()
    reading: tuple[str, ...] = ()
