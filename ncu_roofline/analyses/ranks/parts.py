"""One report of a rank, read and made small, and which rank it is of: told by its path, else by its process."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.texts import expression
from ncu_roofline.chips.verdict import MIXED_SHARE
from ncu_roofline.formats.inputs.tables import MetricTable, PointTable
from ncu_roofline.formats.report import Report
from ncu_roofline.model import Measurements, Selection, measurements_of
from ncu_roofline.model.measurements import FloatArray, IntArray, Quantity

# rank0, rank_12, task.3, procid=4, pe7, r12: what mpirun, srun and ncu users call their files and folders.
_WORD = r"(?i)(?:^|[^a-zA-Z])(?:mpi[-_.]?)?(?:rank|task|procid|proc|pe|r)[-_.=]?(\d+)"
_PCI = tuple(f"device__attribute_pci_{part}_id" for part in ("domain", "bus", "device"))
_ROOFS = ("compute", "bandwidth")  # averaged; all other quantities are counts, which add up
_COMMON = ("grid", "block", "nvtx")


class RankSource(NamedTuple):
    """One process on one GPU in one report: ``gpu`` is its PCI address, ``pid`` 0 and texts '' where the report is silent."""

    report: str
    host: str = ""
    pid: int = 0
    gpu: str = ""


@dataclass(frozen=True)
class RankPart:
    """What one report gives: measurements, for each element the position of its source, and the sources."""

    measurements: Measurements
    index: IntArray
    sources: tuple[RankSource, ...]


def rank_part(report: Report | MetricTable | PointTable, label: str = "", select: Selection | None = None) -> RankPart:
    """Read a report; ``label`` is what it is called.  Launches are filtered here, but for ``top``, which is of all ranks.

    Launches of one kernel that have the same metrics become one element.  Raises RooflineError for damage.
    """
    label = label or str(report.path)
    m = measurements_of(report, label=label)
    found = [RankSource(label)] * len(m)
    if not isinstance(report, PointTable):
        of_report = isinstance(report, Report)
        processes = [one.process for one in report.kernels] if of_report else [report.session.process] * len(m)  # type: ignore[union-attr]
        gpus = map(_pci_address, zip(*report.columns(_PCI).values(), strict=True))
        host = report.session.host
        found = [RankSource(label, one.host or host, one.id, gpu) for one, gpu in zip(processes, gpus, strict=True)]
    kept = replace(select or Selection(), top=0).positions(m)
    places = {source: place for place, source in enumerate(dict.fromkeys(found))}  # also without any launch that passes
    return _summed(RankPart(m.take(kept), np.array([places[found[i]] for i in kept], dtype=np.int64), tuple(places)))


def _pci_address(parts: Sequence[object]) -> str:
    """Domain, bus and device as lspci writes them; no report says the UUID."""
    numbers = [part for part in parts if isinstance(part, int)]
    return "{:04x}:{:02x}:{:02x}.0".format(*numbers) if len(numbers) == len(parts) else ""


def _summed(part: RankPart) -> RankPart:
    """Elements of one kernel, GPU and source with the same metrics known become one: every sum over them stays the same.

    A mean over launches (a clock, a roof) becomes the mean weighted with their times, as it is weighted later on.
    """
    m = part.measurements
    if m.rates.any() or len(m) < 2:  # rates are no sums
        return part
    quantities = {item.name: value for item in fields(m) if isinstance(value := getattr(m, item.name), Mapping)}
    patterns = _patterns(part, [one for several in quantities.values() for one in several.values()])
    places: dict[bytes, int] = {}  # in the order of the first launch
    index = np.array([places.setdefault(pattern.tobytes(), len(places)) for pattern in patterns], dtype=np.int64)
    if len(places) == len(m):
        return part
    first = np.unique(index, return_index=True)[1]

    def total(values: FloatArray) -> FloatArray:
        return np.bincount(index, weights=values, minlength=len(places)).astype(np.float64)

    weights = np.where(m.seconds > 0, m.seconds, 1.0)

    def mean(values: FloatArray) -> FloatArray:
        return total(values * weights) / total(weights)

    changed: dict[str, Any] = {item.name: getattr(m, item.name)[first] for item in fields(m) if item.name not in quantities}
    changed |= {"seconds": total(m.seconds), "clock": mean(m.clock), "tensor_active": mean(m.tensor_active)}
    changed["invocations"] = total(m.invocations.astype(np.float64)).astype(np.int64)
    for name, several in quantities.items():
        combined = mean if name in _ROOFS else total
        changed[name] = {key: Quantity(combined(one.values), one.choice[first], one.origins) for key, one in several.items()}
    for name in _COMMON:
        values = getattr(m, name)
        changed[name][index[values != changed[name][index]]] = ""
    return RankPart(Measurements(**changed), part.index[first], part.sources)


def _patterns(part: RankPart, quantities: Sequence[Quantity]) -> IntArray:
    """A row of numbers for each element; elements with equal rows may be summed."""
    m = part.measurements
    kernels: dict[tuple[Any, ...], int] = {}
    keys = zip(m.name, m.function, m.kind, m.device, m.capability, m.clock_max.astype(str), strict=True)
    columns = [[kernels.setdefault(key, len(kernels)) for key in keys], part.index]
    columns += [np.isnan(values) for values in (m.seconds, m.clock, m.tensor_active)]
    for quantity in quantities:
        columns += [quantity.choice, np.isnan(quantity.values)]
    if m.summands:  # which pipes are busy decides on the roof of their sum
        stack = np.nan_to_num(np.vstack([quantity.values for quantity in m.summands.values()]))
        columns += [*(stack > 0), *(stack >= MIXED_SHARE * stack.sum(axis=0))]
    return np.column_stack([np.asarray(column, dtype=np.int64) for column in columns])


class RankNames(NamedTuple):
    """The rank of each source as text, and in words where that was taken from."""

    ranks: tuple[str, ...]
    origin: str


def natural(text: str) -> list[tuple[int, int, str]]:
    """A sort key that orders r2 before r10."""
    parts = ((part, part.lstrip("0")) for part in re.split(r"(\d+)", text) if part)
    return [(0, len(number), number) if part.isdecimal() else (1, 0, part) for part, number in parts]


def rank_names(sources: Sequence[RankSource], pattern: str = "") -> RankNames:
    """The rank of each source.

    ``pattern`` is a regular expression searched in the report's path; its first group (without one, the whole match) is the
    rank.  Without it, in this order: the processes, where a report holds several; a number after a word such as rank in all
    paths; the one number in which all paths differ; host and process id; the file name.
    Raises RooflineError for a report whose path does not match ``pattern``.
    """
    reports = list(dict.fromkeys(source.report for source in sources))

    def by_report(ranks: Mapping[str, str], origin: str) -> RankNames:
        return RankNames(tuple(ranks[source.report] for source in sources), origin)

    if pattern:
        return by_report(_matched(reports, pattern), f"--rank {pattern}")
    several = len({source.host for source in sources}) > 1
    processes = tuple(f"{source.host}:{source.pid}" if several else str(source.pid) for source in sources)
    counts = Counter(report for report, _, _ in {source[:3] for source in sources})
    if max(counts.values(), default=0) > 1:
        return RankNames(processes, "processes in the reports")
    words = {report: _plain(numbers[-1]) for report in reports if (numbers := re.findall(_WORD, report))}
    if len(words) == len(reports) and (len(reports) == 1 or len(set(words.values())) > 1):
        return by_report(words, "ranks in the paths")
    if by_number := _by_number(reports):
        told = "process ids" if by_number == {source.report: str(source.pid) for source in sources} else "numbers"
        return by_report(by_number, f"{told} in the paths")
    apart = len({*zip(processes, (source.report for source in sources), strict=True)}) == len(set(processes))
    if all(source.pid for source in sources) and apart and len(reports) > 1:
        return RankNames(processes, "host and process id")
    names = {report: os.path.basename(report) for report in reports}
    return by_report(
        names if len(set(names.values())) == len(reports) else dict(zip(reports, reports, strict=True)), "file names"
    )


def _matched(reports: Sequence[str], pattern: str) -> dict[str, str]:
    wanted, found = expression(pattern), {}
    for report in reports:
        match = wanted.search(report)
        text = (match.group(1) if wanted.groups else match.group()) if match else None
        if not text:
            next_step = "Give a regular expression whose first group is the rank in every path, such as 'node(\\d+)'."
            raise RooflineError("Cannot tell the rank of", report, f"--rank {pattern} finds none in its path", next_step)
        found[report] = _plain(text)
    return found


def _plain(number: str) -> str:
    """007 and 7 are one rank."""
    return str(int(number)) if number.isdecimal() else number


def _by_number(reports: Sequence[str]) -> dict[str, str]:
    """The one number that tells all paths apart; of several the one that counts from 0 or 1."""
    split = [re.split(r"(\d+)", report) for report in reports]
    if len(reports) < 2 or len({tuple(parts[::2]) for parts in split}) > 1:
        return {}
    columns = [[int(number) for number in column] for column in zip(*(parts[1::2] for parts in split), strict=True)]
    distinct = [column for column in columns if len(set(column)) == len(reports)]
    if len(distinct) > 1:
        distinct = [one for one in distinct if sorted(one) in (list(range(len(one))), list(range(1, len(one) + 1)))]
    return dict(zip(reports, map(str, distinct[0]), strict=True)) if len(distinct) == 1 else {}
