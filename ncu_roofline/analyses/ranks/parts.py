"""One report of a rank, read and made small: the launches of a kernel that have the same metrics become one element."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from ncu_roofline.analyses.ranks.names import RankSource
from ncu_roofline.chips.thresholds import MIXED_SHARE
from ncu_roofline.formats.inputs import MetricTable, PointTable
from ncu_roofline.formats.report import Report
from ncu_roofline.model import Measurements, Selection, measurements_of
from ncu_roofline.model.measurements import FloatArray, IntArray, Quantity

_PCI = tuple(f"device__attribute_pci_{part}_id" for part in ("domain", "bus", "device"))
_ROOFS = ("compute", "bandwidth")  # averaged; all other quantities are counts, which add up
_COMMON = ("grid", "block", "nvtx")


@dataclass(frozen=True)
class RankPart:
    """What one report gives: measurements, for each element the position of its source, and the sources."""

    measurements: Measurements
    index: IntArray
    sources: tuple[RankSource, ...]


def rank_part(report: Report | MetricTable | PointTable, label: str = "", select: Selection | None = None) -> RankPart:
    """Read a report; ``label`` is what it is called.  Launches are filtered here, but for ``top``, which is of all ranks.

    Raises RooflineError for damage.
    """
    label = label or str(report.path)
    measurements = measurements_of(report, label=label)
    found = _sources(report, label, len(measurements))
    kept = replace(select or Selection(), top=0).positions(measurements)
    sources = dict.fromkeys(found)  # also those without any launch that passes: they lack the kernel
    places = {source: place for place, source in enumerate(sources)}
    index = np.array([places[found[i]] for i in kept], dtype=np.int64)
    return _summed(RankPart(measurements.take(kept), index, tuple(sources)))


def _sources(report: Report | MetricTable | PointTable, label: str, count: int) -> list[RankSource]:
    if isinstance(report, PointTable):
        return [RankSource(label)] * count
    gpus = [_pci_address(parts) for parts in zip(*report.columns(_PCI).values(), strict=True)]
    processes = [report.session.process] * count
    if isinstance(report, Report):
        processes = [kernel.process for kernel in report.kernels]
    host = report.session.host
    return [RankSource(label, one.host or host, one.id, gpu) for one, gpu in zip(processes, gpus, strict=True)]


def _pci_address(parts: Sequence[object]) -> str:
    """Domain, bus and device as lspci writes them; no report says the UUID."""
    domain, bus, device = parts
    if not (isinstance(domain, int) and isinstance(bus, int) and isinstance(device, int)):
        return ""
    return f"{domain:04x}:{bus:02x}:{device:02x}.0"


def _summed(part: RankPart) -> RankPart:
    """Elements of one kernel, GPU and source with the same metrics known become one: every sum over them stays the same.

    A mean over launches (a clock, a roof) becomes the mean weighted with their times, as it is weighted later on.
    """
    m = part.measurements
    if m.rates.any() or len(m) < 2:  # rates are no sums
        return part
    rows, first, index = np.unique(_patterns(part), axis=0, return_index=True, return_inverse=True)
    if len(rows) == len(m):
        return part
    order = np.argsort(first, kind="stable")  # in the order of the first launch
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return RankPart(_aggregated(m, place[index.reshape(-1)], first[order]), part.index[first[order]], part.sources)


def _patterns(part: RankPart) -> IntArray:
    """A row of numbers for each element; elements with equal rows may be summed."""
    m = part.measurements
    kernels: dict[tuple[Any, ...], int] = {}
    keys = zip(m.name, m.function, m.kind, m.device, m.capability, m.clock_max.astype(str), strict=True)
    columns = [
        np.array([kernels.setdefault(key, len(kernels)) for key in keys], dtype=np.int64),
        part.index,
        *(np.isnan(values).astype(np.int64) for values in (m.seconds, m.clock, m.tensor_active)),
    ]
    for quantity in (one for _, quantities in _quantities(m) for one in quantities.values()):
        columns += [quantity.choice, np.isnan(quantity.values).astype(np.int64)]
    if m.summands:  # which pipes are busy decides on the roof of their sum
        stack = np.nan_to_num(np.vstack([quantity.values for quantity in m.summands.values()]))
        columns += [*(stack > 0).astype(np.int64), *(stack >= MIXED_SHARE * stack.sum(axis=0)).astype(np.int64)]
    return np.column_stack(columns)


def _quantities(m: Measurements) -> list[tuple[str, Mapping[str, Quantity]]]:
    """The fields that hold quantities by id."""
    return [(item.name, value) for item in fields(m) if isinstance(value := getattr(m, item.name), Mapping)]


def _aggregated(m: Measurements, index: IntArray, first: IntArray) -> Measurements:
    count = len(first)

    def total(values: FloatArray) -> FloatArray:
        return np.bincount(index, weights=values, minlength=count).astype(np.float64)

    weights = np.where(m.seconds > 0, m.seconds, 1.0)

    def mean(values: FloatArray) -> FloatArray:
        return total(values * weights) / total(weights)

    changed: dict[str, Any] = {
        "seconds": total(m.seconds),
        "clock": mean(m.clock),
        "tensor_active": mean(m.tensor_active),
        "invocations": total(m.invocations.astype(np.float64)).astype(np.int64),
    }
    for name, quantities in _quantities(m):
        combined = mean if name in _ROOFS else total
        changed[name] = {key: Quantity(combined(one.values), one.choice[first], one.origins) for key, one in quantities.items()}
    for item in fields(m):
        if item.name not in changed:
            changed[item.name] = getattr(m, item.name)[first]
    for name in _COMMON:
        values = getattr(m, name)
        changed[name][index[values != changed[name][index]]] = ""
    return Measurements(**changed)
