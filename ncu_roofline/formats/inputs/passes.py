"""Files that are passes of one run: the same launches in the same order, of which each file counted other metrics."""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from typing import Any

from ncu_roofline.base.errors import RooflineError
from ncu_roofline.base.files import JOINED
from ncu_roofline.base.texts import listed, plural
from ncu_roofline.base.units import percent
from ncu_roofline.chips.source_counters import OPCODE_THREADS, OPCODE_WARPS
from ncu_roofline.formats.inputs.tables import MAJOR, MINOR, MetricTable, PointTable
from ncu_roofline.formats.inputs.text import head_of
from ncu_roofline.formats.report import Report, Value, read_report
from ncu_roofline.formats.report.reader import DEVICE_PREFIX, TIME_METRIC

# What every pass may say: the launch, the GPU, times and clocks.
_FACT = re.compile(
    r"(?:device__attribute_|launch__|profiler__|gpu__time_|\w+__cycles_(?:elapsed|active)\b)[\w.]*|.*\.peak_sustained(?:\..*)?"
)
_GPU = (f"{DEVICE_PREFIX}display_name", MAJOR, MINOR)
_NAMED = re.compile(r"\b[a-z]\w*__\w+(?:\.\w+)+")
# Metrics that passes may share beside those, as companions of what each is for, and how far apart they may be.
_FEW, _FAR = 4, 0.1
_OPCODES = (OPCODE_THREADS, OPCODE_WARPS)  # whose instances count


def of_one_run(
    paths: Sequence[str], open_input: Callable[[str], Report | MetricTable | PointTable]
) -> tuple[MetricTable | None, str]:
    """The launches of files that are passes of one run, with the metrics of all; else None, and a sentence where only the
    launches are in the way.

    Reports of the same metrics are runs of their own, before and after or of several ranks.  Raises RooflineError for files
    that can't be read.
    """
    if len(paths) < 2 or any(JOINED in path for path in paths) or len(_shared(map(_named_in, paths[:2]))) > _FEW:
        return None, ""
    with ExitStack() as files:
        tables: list[Report | MetricTable] = []
        for path in paths:
            found = open_input(path)
            if isinstance(found, PointTable):
                return None, ""
            tables.append(files.enter_context(found) if isinstance(found, Report) else found)
        values, instances = [], dict[str, Any]()
        for one in tables:
            columns = one.columns(one.metric_names)
            values.append({name: column for name, column in columns.items() if any(map(_known, column))})
            counted = [name for name in _OPCODES if name in one.metric_names]
            instances |= one.columns_and_instances((), counted)[1] if isinstance(one, Report) else one.instances
        shared = _shared(values)
        alone = [{name for name in columns if not _FACT.fullmatch(name)} - shared for columns in values]
        if not all(alone) or len(shared) > _FEW:
            return None, ""
        launches, names = [one.launches() for one in tables], listed(map(os.path.basename, paths))
        same = {tuple((one.kind, one.name, one.grid, one.block) for one in some) for some in launches}
        gpus = [{tuple(columns[name]) for columns in values if name in columns} for name in _GPU]
        if len(same) > 1 or any(len(told) > 1 for told in gpus):
            alike = len({frozenset(launch.function_name for launch in some) for some in launches}) == 1
            return None, f"{names} count different metrics of other launches, so they are not merged." * alike
        apart = {name: _apart([columns[name] for columns in values if name in columns]) for name in sorted(shared)}
        if far := [f"{name} ({percent(one)})" for name, one in apart.items() if one > _FAR]:
            return None, f"{names} count different metrics, but {listed(far)} too differently for passes of one run."
        told = f"{names} are passes of one run: {plural(len(launches[0]), 'launch')}, of which each counts other metrics."
        timed = {path: columns[TIME_METRIC] for path, columns in zip(paths, values, strict=True) if TIME_METRIC in columns}
        if timed:
            other = _apart(list(timed.values()))
            others = f", up to {percent(other)} from those of others; rates and shares are of their own pass" if other else ""
            told += f" Times are those of {os.path.basename(next(iter(timed)))}{others}."
        twice = (f"{name} ({percent(one)} apart in all)" for name, one in apart.items())
        told += f" Of what several count the first stands: {listed(twice)}." if apart else ""
        merged = {name: column for columns in reversed(values) for name, column in columns.items()}
        warnings = [text for one in tables if isinstance(one, MetricTable) for text in one.warnings]
        version, session = tables[0].ncu_version, tables[0].session
        return MetricTable(
            JOINED.join(paths), "passes", launches[0], merged, version, (told, *warnings), session, instances
        ), ""


def _named_in(path: str) -> set[str]:
    """The metrics that a file names, as far as its beginning tells."""
    head = head_of(path)
    if head:
        return set(_NAMED.findall(head))
    try:
        with read_report(path) as report:
            return set(report.metric_names)
    except RooflineError:  # no report: it is told where it is read
        return set()


def _shared(given: Iterable[Iterable[str]]) -> set[str]:
    """The metrics that several of some sets have, but those that are facts of every pass."""
    counts = Counter(name for names in given for name in names)
    return {name for name, count in counts.items() if count > 1 and not _FACT.fullmatch(name)}


def _known(value: Value | None) -> bool:
    return value is not None and value == value  # NaN stands for none in tables


def _apart(columns: Sequence[Sequence[Value | None]]) -> float:
    """How far the sums of a metric over the launches are from that of the first file, as a share of the larger, at most."""
    apart = 0.0
    for column in columns[1:]:
        numbers = [pair for pair in zip(columns[0], column, strict=True) if all(map(_finite, pair))]
        first, other = (sum(one) for one in zip(*numbers, strict=True)) if numbers else (0, 0)
        apart = max(apart, abs(first - other) / max(abs(first), abs(other)) if first != other else 0.0)
    return apart


def _finite(value: Value | None) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)
