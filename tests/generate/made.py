"""Sections of every dialect, and kernels with values for all that a section reads."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable
from functools import cache

from ncu_roofline.chips import Architecture, load_spec
from ncu_roofline.formats.sectionfile.section import Section, arch_number, items_of, name_on, text_of
from ncu_roofline.formats.sectionfile.text import parse_document
from ncu_roofline.plugin.generate.lowering import BASE, Dialect, dialect_of
from ncu_roofline.plugin.generate.sections import render_sections
from tests.factory import A100, Metrics
from tests.sectionfile.reading import needed_metrics, rows

VERSIONS = ("base", "2020.3", "2021.3", "2022.3", "2023.1", "2024.1", "2024.2", "2025.1", "2025.3", "2025.4")
CAPABILITIES = tuple(a.compute_capability for a in load_spec().architectures)
SECONDS = 2e-3
CLOCKS = {"sm": 1.4e9, "smsp": 1.4e9, "l1tex": 1.4e9, "lts": 1.3e9, "dram": 1.2e9, "syslts": 1.1e9}
SMS, SLICES, BUS_BYTES = 108, 80, 1280
FILES: dict[str, object] = {}  # sessions bring their own


def dialect(version: str) -> Dialect:
    return BASE if version == "base" else dialect_of(version)


@cache
def texts(version: str) -> dict[str, str]:
    return {name.removesuffix(".section"): text for name, text in render_sections(dialect(version)).items()}


@cache
def section(version: str, identifier: str) -> Section:
    return parse_document(texts(version)[identifier]).section


@cache
def asked(version: str) -> dict[tuple[int, int], frozenset[str]]:
    """Counters and ratios (without suffix) that all sections made for a release ask for, by compute capability.

    Without attributes and what sections derive themselves, which are not of the metric library.
    """
    found, others = {}, ("derived__", "device__attribute_")
    for chip in (one.compute_capability for one in architectures(version)):
        names = {name for one in texts(version) for name in collected(section(version, one), chip)}
        found[chip] = frozenset(name.partition(".")[0] for name in names if not name.startswith(others))
    return found


def architectures(version: str) -> list[Architecture]:
    return [one for one in load_spec().architectures if one.compute_capability in dialect_of(version).numbers]


def sampled(made: Section, capability: tuple[int, int]) -> dict[str, list[str]]:
    """What a section samples on a chip, by the group that is sampled together."""
    ((item, _),), arch = items_of(made.message), arch_number(capability)
    names: dict[str, list[str]] = {}
    for group in item.Timeline.MetricGroups:
        found = [name_on(metric, arch) for row in group.MetricRows for metric in row.Metrics]
        names[text_of(group.Label)] = [name for name in found if name is not None]
    return names


IDENTIFIERS = tuple(texts("base"))


def profiled(version: str) -> tuple[tuple[int, int], ...]:
    made = dialect(version)
    return tuple(one for one in CAPABILITIES if not made.exact or one in made.numbers)


def collected(made: Section, capability: tuple[int, int]) -> set[str]:
    """Every metric that a section makes ncu collect on a chip, derived ones included."""
    arch = arch_number(capability)
    hidden = (name_on(metric, arch) for metric in made.message.Metrics.Metrics)
    return {*filter(None, hidden), *(name for _, name in rows(made, arch)), *needed_metrics(made, capability)}


def kernel_metrics(names: Iterable[str], capability: tuple[int, int]) -> Metrics:
    """The device's attributes and a value for each counter metric: any one, but all forms of a counter agree."""
    versions = zip(("major", "minor"), capability, strict=True)
    attributes = {**A100, **{f"device__attribute_compute_capability_{name}": number for name, number in versions}}
    wanted = [n for n in names if not n.startswith("derived__") and n not in attributes and _exists(n, capability)]
    return {**attributes, **{name: _value(name) for name in wanted}}


def _exists(metric: str, capability: tuple[int, int]) -> bool:
    """Whether a chip has a metric, as far as the specification says; what it does not mention is everywhere."""
    counter = metric.partition(".")[0]
    if counter.startswith("dram__"):
        architecture = load_spec().architecture(capability)
        return architecture is not None and "dram" not in architecture.lacks
    return counter not in _counters(None) or counter in _counters(capability)


@cache
def _counters(capability: tuple[int, int] | None) -> frozenset[str]:
    spec = load_spec()
    found: set[str] = set()
    for item in (*spec.precisions, *spec.levels):
        for one in spec.bindings(item, capability) if capability else item.bindings:
            for part in (one.counters, one.peak) if one.source != "embedded" else ():
                found.update(part.counters() if part else ())
    return frozenset(found)


def _count(counter: str) -> float:
    if together := re.fullmatch(r"(.*)_ops_(\w+)_pred_on", counter):
        return sum(_count(f"{together[1]}_op_{operation}_pred_on") for operation in together[2].split("_"))
    return float(zlib.crc32(counter.encode()) % 900 + 100) * 1e6


def _value(name: str) -> float:
    counter, _, rest = name.partition(".")
    unit = counter.partition("__")[0]
    count = _count(counter)
    if name == "gpu__time_duration.sum":
        return SECONDS * 1e9
    if rest == "avg.per_second":
        return CLOCKS[unit]
    if "pct_of_peak" in rest:
        return 42.0
    if rest == "sum.peak_sustained":
        known = {"l1tex__lsu_writeback_active": SMS, "dram__bytes": BUS_BYTES}
        return float(known.get(counter, zlib.crc32(counter.encode()) % 97 + 3))
    return {"sum": count, "sum.per_second": count / SECONDS, "sum.per_cycle_elapsed": count / SECONDS / CLOCKS[unit]}[rest]
